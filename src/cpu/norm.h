/* norm.h - kernels of layer_norm and rms_norm: one function per row of the matrix, one driver that shares rows out.
 *
 * layer_norm works on d = x - c with a pivot c near the mean: sums of d and d^2 give mean = c + mean(d) and
 * var = mean(d^2) - mean(d)^2. Where the pivot is off by more than the deviation (the subtraction would cancel), the row is
 * read again with c = mean. y = ((d - mean(d)) / sqrt(var + eps)) scale + bias never subtracts nearly equal squares, and a
 * constant row gives exactly bias. Rows whose squares leave the range of FP32 (elements over 1e18, or tiny ones with an
 * epsilon of nearly 0) are scaled by a power of two first, which is exact: the result stays right at any magnitude. */
#ifndef CPU_NORM_H
#define CPU_NORM_H
#include "ops/op.h"

typedef struct norm_job {
    const void *x, *scale, *bias; /* scale: rms_norm's weight; NULL: absent */
    void *y;
    float *mean, *variance;     /* one per row, or NULL */
    ink_dtype dtype, parameter; /* of x and y; of scale and bias */
    int64_t n;                  /* elements of a row */
    float epsilon;
} norm_job;

typedef void norm_row(const norm_job *j, int64_t row);

/* Shares the rows of a layer_norm or rms_norm call out over its threads. */
ink_status norm_run(const op_call *c, norm_row *row);

/* Any dtype, any magnitude; the vector rows call these for rows outside the range where FP32 squares are safe. */
norm_row layer_norm_row_portable, rms_norm_row_portable;

/* Vector rows fall back when the sum of squares is not a usable number: inf, NaN, or so small that epsilon does not cover
 * what underflow took from it. */
static inline bool norm_squares_usable(float squares, float epsilon)
{
    return squares <= 3.0e38f && (squares >= 0x1p-80f || epsilon >= 0x1p-60f);
}

ink_status layer_norm_portable(const op_call *c);
ink_status rms_norm_portable(const op_call *c);
#ifdef __x86_64__
ink_status layer_norm_avx2(const op_call *c);
ink_status rms_norm_avx2(const op_call *c);
ink_status layer_norm_avx512(const op_call *c);
ink_status rms_norm_avx512(const op_call *c);
#endif
#endif
