/* tensor.h - tensor helpers the library keeps to itself. */
#ifndef CORE_TENSOR_H
#define CORE_TENSOR_H
#include "core/strbuf.h"

void tensor_make_contiguous(ink_tensor *t);               /* strides of a dense tensor with t's dims */
void tensor_shape_text(const ink_tensor *t, strbuf *out); /* "[2,3]" */

static inline int64_t tensor_last(const ink_tensor *t) { return t->rank ? t->dims[t->rank - 1] : 1; }
/* Product of all dims but the last: rows of a [.., C] tensor. */
static inline int64_t tensor_rows(const ink_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i + 1 < t->rank; i++)
        n *= t->dims[i];
    return n;
}
#endif
