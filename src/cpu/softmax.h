/* softmax.h - kernels of softmax over any axis: x seen as [outer, n, inner]. FP32 throughout, the exponentials unrounded
 * in the sum. A row of only -inf, or holding +inf or NaN, gives NaN (operators.md 1.8); nothing else is special. */
#ifndef CPU_SOFTMAX_H
#define CPU_SOFTMAX_H
#include "ops/op.h"

typedef struct softmax_shape {
    int64_t outer, n, inner;
} softmax_shape;

static inline softmax_shape softmax_shape_of(const op_call *c)
{
    const ink_tensor *x = c->in[0];
    int axis = c->attrs.axis.axis < 0 ? c->attrs.axis.axis + x->rank : c->attrs.axis.axis;
    softmax_shape s = {1, 1, 1};
    for (int i = 0; i < x->rank; i++)
        *(i < axis ? &s.outer : i == axis ? &s.n : &s.inner) *= x->dims[i];
    return s;
}

ink_status softmax_portable(const op_call *c);
#ifdef __x86_64__
size_t softmax_workspace_avx2(const op_call *c);
ink_status softmax_avx2(const op_call *c);
size_t softmax_workspace_avx512(const op_call *c);
ink_status softmax_avx512(const op_call *c);
#endif
#endif
