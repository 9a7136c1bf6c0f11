/* conv.h - kernels of conv2d and fused_conv2d_add_act, and the form in which they see a call.
 *
 * y = act(conv(x, w) + bias + residual), FP32 accumulation, one rounding. Cells outside the input contribute nothing: no
 * product is formed there, so an infinite weight over the border gives no NaN. */
#ifndef CPU_CONV_H
#define CPU_CONV_H
#include "core/dtype.h"
#include "ops/conv.h"

/* A validated call with everything resolved; `c` and `m` count the channels of one group. */
typedef struct conv_problem {
    const void *x, *w, *bias, *residual; /* bias, residual: NULL if absent */
    void *y;
    ink_dtype dtype, bias_dtype;
    activation act;
    bool channels_last; /* x is [images, h, w, channels] and y the same, else channels come second */
    bool padded;        /* some window reaches over the border */
    int64_t images, groups, c, m, channels, out_channels;
    int64_t h, w_in, oh, ow, kh, kw, sh, sw, dh, dw, ph, pw;
    int64_t pixels; /* oh ow */
    int64_t depth;  /* c kh kw: products in one output */
} conv_problem;

/* Convolutions that are plain matrix products are refolded, with the same bytes in x, w and y: a filter as large as the
 * image without padding (the VLM's patch embedding: one output per image) becomes a 1 x 1 filter over c kh kw channels,
 * and a map under a 1 x 1 filter of stride 1 becomes one long row. */
conv_problem conv_problem_of(const op_call *c);

/* Output (image, channel m of all, oh, ow) before bias: one FP32 chain over (channel, row, column) of the filter. */
float conv_point(const conv_problem *p, int64_t image, int64_t m, int64_t oh, int64_t ow);

/* Element number of output (image, channel, pixel) in y and in the residual. */
static inline int64_t conv_out_index(const conv_problem *p, int64_t image, int64_t m, int64_t pixel)
{
    return p->channels_last ? (image * p->pixels + pixel) * p->out_channels + m
                            : (image * p->out_channels + m) * p->pixels + pixel;
}

/* Recomputes every output whose window reaches over the border, by conv_point. For kernels that read zeros there, when the
 * filter holds an infinity or a NaN. */
void conv_redo_border(const conv_problem *p, int threads);

ink_status conv_portable(const op_call *c); /* any dtype, plain loops */

#ifdef __x86_64__
/* Implicit GEMM in bands of pixels, FP32 FMA (conv_vec.h): 6 x 16 register tile, 12 x 32 for AVX-512. */
const char *conv_decline_avx2(const op_call *c);
size_t conv_workspace_avx2(const op_call *c);
ink_status conv_bf16_avx2(const op_call *c);
ink_status conv_f16_avx2(const op_call *c);
ink_status conv_f32_avx2(const op_call *c);
const char *conv_decline_avx512(const op_call *c);
size_t conv_workspace_avx512(const op_call *c);
ink_status conv_bf16_avx512(const op_call *c);
ink_status conv_f16_avx512(const op_call *c);
ink_status conv_f32_avx512(const op_call *c);
#endif
#endif
