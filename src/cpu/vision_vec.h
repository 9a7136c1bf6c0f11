/* vision_vec.h - position_embedding in vectors, for vision_avx2.c and vision_avx512.c, which define ISA(name). */
#include "cpu/vec.h"
#include "cpu/vision.h"

VEC_INLINE void add_patch(const position_patch *p, ink_dtype t)
{
    vf w[4];
    for (int k = 0; k < 4; k++)
        w[k] = v_set(p->weight[k]);
    int64_t i = 0;
    for (; i + 2 * VF <= p->width; i += 2 * VF) {
        vf x0, x1, v0, v1, c0, c1;
        v_get2(p->x, t, i, &x0, &x1);
        v_get2(p->corner[0], t, i, &v0, &v1);
        if (!p->exact) {
            v0 = v_mul(v0, w[0]);
            v1 = v_mul(v1, w[0]);
            for (int k = 1; k < 4; k++) {
                v_get2(p->corner[k], t, i, &c0, &c1);
                v0 = v_fma(w[k], c0, v0);
                v1 = v_fma(w[k], c1, v1);
            }
        }
        v_put2(p->y, t, i, v_add(v0, x0), v_add(v1, x1));
    }
    for (; i < p->width; i += VF) {
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
