/* vision_vec.h - position_embedding in vectors, for vision_avx2.c and vision_avx512.c, which define ISA(name). */
#include "cpu/vec.h"
#include "cpu/vision.h"

VEC_INLINE void add_patch(const position_patch *p, ink_dtype t)
{
    vf w[4];
    for (int k = 0; k < 4; k++)
        w[k] = v_set(p->weight[k]);
    for (int64_t i = 0; i < p->width; i += VF) {
        const int64_t n = p->width - i;
        vf v = v_get(p->corner[0], t, i, n);
        if (!p->exact) {
            v = v_mul(v, w[0]);
            for (int k = 1; k < 4; k++)
                v = v_fma(w[k], v_get(p->corner[k], t, i, n), v);
        }
        v_put(p->y, t, i, v_add(v, v_get(p->x, t, i, n)), n);
    }
}

static void add_bf16(const position_patch *p) { add_patch(p, INK_BF16); }
static void add_f16(const position_patch *p) { add_patch(p, INK_F16); }
static void add_f32(const position_patch *p) { add_patch(p, INK_F32); }

ink_status ISA(position_embedding)(const op_call *c)
{
    ink_dtype t = c->in[0]->dtype;
    return position_run(c, t == INK_BF16 ? add_bf16 : t == INK_F16 ? add_f16 : add_f32);
}
