/* conv.c - the rows of conv2d and fused_conv2d_add_act on the CPU, most specific first.
 *
 * gemm rows take what is a plain matrix product (the patch embedding, 1 x 1 filters on channels-last maps) to the tiles of
 * linear; the other vector rows are implicit matrix products for every geometry. */
#include "cpu/conv.h"

#include "cpu/gemm.h"
#include "registry/registry.h"

#ifdef __x86_64__
static bool is_product(const conv_problem *p)
{
    return p->channels_last && p->groups == 1 && p->kh * p->kw == 1 && p->sh == 1 && p->sw == 1 && !p->padded;
}

static const char *decline_gemm(const op_call *c)
{
    const conv_problem p = conv_problem_of(c);
    if (!is_product(&p))
        return "no plain matrix product: neither a filter as large as the image nor 1 x 1 on nhwc";
    return p.act != ACT_NONE && c->in[3] ? "its epilogue adds the residual behind the activation" : NULL;
}

static gemm_job job_of(const op_call *c)
{
    const conv_problem p = conv_problem_of(c);
    return (gemm_job){.x = p.x,
                      .w = {p.w},
                      .m = p.images * p.pixels,
                      .n = p.out_channels,
                      .k = p.depth,
                      .bias = p.bias,
                      .residual = p.residual,
                      .y = p.y,
                      .dtype = p.dtype,
                      .bias_dtype = p.bias_dtype,
                      .y_dtype = p.dtype,
                      .act = p.act,
                      .threads = c->threads,
                      .scratch = c->workspace};
}

#define GEMM(tile)                                                             \
    static size_t tile##_workspace(const op_call *c)                           \
    {                                                                          \
        const gemm_job j = job_of(c);                                          \
        return gemm_scratch_bytes(&gemm_##tile, j.m, j.n, j.k, 1, c->threads); \
    }                                                                          \
    static ink_status tile##_run(const op_call *c)                             \
    {                                                                          \
        const gemm_job j = job_of(c);                                          \
        gemm_run(&gemm_##tile, &j);                                            \
        return INK_OK;                                                         \
    }
GEMM(bf16_32x32_amx)
GEMM(bf16_14x32_avx512)
GEMM(f16_14x32_avx512)
GEMM(f32_14x32_avx512)
GEMM(bf16_6x16_avx2)
GEMM(f16_6x16_avx2)
GEMM(f32_6x16_avx2)

#define PRODUCT(o, t, i, f, tile)   \
    {.name = #o "_gemm_" #tile,     \
     .op = OP_##o,                  \
     .dtype = t,                    \
     .isa = i,                      \
     .flags = f,                    \
     .decline = decline_gemm,       \
     .workspace = tile##_workspace, \
     .run = tile##_run},
#define GENERAL(o, t, i, type, tile, set)     \
    {.name = #o "_" #type "_" #tile "_" #set, \
     .op = OP_##o,                            \
     .dtype = t,                              \
     .isa = i,                                \
     .decline = conv_decline_##set,           \
     .workspace = conv_workspace_##set,       \
     .run = conv_##type##_##set},
#define VECTOR_ROWS(o)                                        \
    PRODUCT(o, INK_BF16, ISA_AMX, KERNEL_FTZ, bf16_32x32_amx) \
    PRODUCT(o, INK_BF16, ISA_AVX512, 0, bf16_14x32_avx512)    \
    PRODUCT(o, INK_F16, ISA_AVX512, 0, f16_14x32_avx512)      \
    PRODUCT(o, INK_F32, ISA_AVX512, 0, f32_14x32_avx512)      \
    GENERAL(o, INK_BF16, ISA_AVX512, bf16, 12x32, avx512)     \
    GENERAL(o, INK_F16, ISA_AVX512, f16, 12x32, avx512)       \
    GENERAL(o, INK_F32, ISA_AVX512, f32, 12x32, avx512)       \
    PRODUCT(o, INK_BF16, ISA_AVX2, 0, bf16_6x16_avx2)         \
    PRODUCT(o, INK_F16, ISA_AVX2, 0, f16_6x16_avx2)           \
    PRODUCT(o, INK_F32, ISA_AVX2, 0, f32_6x16_avx2)           \
    GENERAL(o, INK_BF16, ISA_AVX2, bf16, 6x16, avx2)          \
    GENERAL(o, INK_F16, ISA_AVX2, f16, 6x16, avx2)            \
    GENERAL(o, INK_F32, ISA_AVX2, f32, 6x16, avx2)
#else
#define VECTOR_ROWS(o)
#endif

#define ROWS(o)                                                                                             \
    static const kernel o##_rows[] = {                                                                      \
        VECTOR_ROWS(o){.name = #o "_bf16_portable", .op = OP_##o, .dtype = INK_BF16, .run = conv_portable}, \
        {.name = #o "_f16_portable", .op = OP_##o, .dtype = INK_F16, .run = conv_portable},                 \
        {.name = #o "_f32_portable", .op = OP_##o, .dtype = INK_F32, .run = conv_portable},                 \
    };                                                                                                      \
    const kernel_list kernels_cpu_##o = {INK_CPU, OP_##o, sizeof o##_rows / sizeof *o##_rows, o##_rows};
ROWS(conv2d)
ROWS(fused_conv2d_add_act)
