#include "core/dtype.h"
#include "cpu/vision.h"

static void add_patch(const position_patch *p)
{
    for (int64_t i = 0; i < p->width; i++) {
        float v = 0;
        if (p->exact)
            v = load_f32(p->corner[0], p->dtype, i);
        else
            for (int k = 0; k < 4; k++)
                v += p->weight[k] * load_f32(p->corner[k], p->dtype, i);
        store_f32(p->y, p->dtype, i, v + load_f32(p->x, p->dtype, i));
    }
}

ink_status position_embedding_portable(const op_call *c) { return position_run(c, add_patch); }
