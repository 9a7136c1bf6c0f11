/* vision.h - kernels of position_embedding and patch_merge. */
#ifndef CPU_VISION_H
#define CPU_VISION_H
#include "ops/op.h"

/* One patch of position_embedding: y = x + sum of weight[k] * corner[k], the corners being rows of the table. `exact`: the
 * patch sits on a point of the table's grid; corner[0] is added as it is. */
typedef struct position_patch {
    const void *x, *corner[4];
    void *y;
    ink_dtype dtype;
    int64_t width;
    float weight[4];
    bool exact;
} position_patch;

typedef void position_add(const position_patch *p);

/* Walks the patches of all images, shared out over the call's threads. INK_INVALID_ARGUMENT when grid_thw does not
 * describe the rows of x. */
ink_status position_run(const op_call *c, position_add *add);

ink_status position_embedding_portable(const op_call *c);
ink_status patch_merge_portable(const op_call *c);
#ifdef __x86_64__
ink_status position_embedding_avx2(const op_call *c);
ink_status position_embedding_avx512(const op_call *c);
#endif
#endif
