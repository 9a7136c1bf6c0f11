/* sampling.h - kernels of argmax and sample. */
#ifndef CPU_SAMPLING_H
#define CPU_SAMPLING_H
#include "ops/op.h"

/* Lowest index among the largest of n >= 1 values; the first NaN if there is one. */
int64_t argmax_of(const float *x, int64_t n);

typedef int64_t argmax_row(const float *x, int64_t n);
ink_status argmax_run(const op_call *c, argmax_row *row);

ink_status argmax_portable(const op_call *c);
#ifdef __x86_64__
ink_status argmax_avx2(const op_call *c);
ink_status argmax_avx512(const op_call *c);
#endif

/* Plain C for every processor, and only operations that IEEE 754 defines exactly, so that the same seed draws the same ids
 * everywhere. */
ink_status sample_portable(const op_call *c);
size_t sample_workspace(const op_call *c);
#endif
