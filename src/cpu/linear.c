/* linear.c - the rows of linear and linear_gated on the CPU, most specific first.
 *
 * Rows come in pairs: gemm for attrs.few_rows = false, gemv for true. Which of the two serves a call depends on that
 * attribute only, never on sizes: a row of the output must not depend on how many rows are beside it. */
#include "cpu/linear.h"

#include "cpu/gemv.h"
#include "registry/registry.h"

#ifdef __x86_64__
static const char *decline_few_rows(const op_call *c)
{
    return c->attrs.linear.few_rows ? "for calls without few_rows" : NULL;
}
static const char *decline_many_rows(const op_call *c)
{
    return c->attrs.linear.few_rows ? NULL : "for calls with few_rows";
}

/* Functions of a row for a tile. */
#define GEMM(tile)                                                                                    \
    static size_t tile##_workspace(const op_call *c)                                                  \
    {                                                                                                 \
        return gemm_scratch_bytes(&tile, tensor_rows(c->in[0]), c->in[1]->dims[0], c->in[1]->dims[1], \
                                  c->op == OP_linear_gated ? 2 : 1, c->threads);                      \
    }                                                                                                 \
    static ink_status tile##_call(const op_call *c)                                                   \
    {                                                                                                 \
        gemm_job j = gemm_job_of(c);                                                                  \
        gemm_run(&tile, &j);                                                                          \
        return INK_OK;                                                                                \
    }
#define GEMV(tile)                                                                  \
    static size_t tile##_workspace(const op_call *c)                                \
    {                                                                               \
        return gemv_scratch_bytes(&tile, tensor_rows(c->in[0]), c->in[1]->dims[1]); \
    }                                                                               \
    static ink_status tile##_call(const op_call *c)                                 \
    {                                                                               \
        gemm_job j = gemm_job_of(c);                                                \
        gemv_run(&tile, &j);                                                        \
        return INK_OK;                                                              \
    }
GEMM(gemm_bf16_32x32_amx)
GEMM(gemm_bf16_dot_14x32_avx512)
GEMM(gemm_bf16_14x32_avx512)
GEMM(gemm_f16_14x32_avx512)
GEMM(gemm_f32_14x32_avx512)
GEMV(gemv_bf16_amx)
GEMV(gemv_bf16_dot_avx512)
GEMV(gemv_bf16_avx512)
GEMV(gemv_f16_avx512)
GEMV(gemv_f32_avx512)
GEMM(gemm_bf16_6x16_avx2)
GEMM(gemm_f16_6x16_avx2)
GEMM(gemm_f32_6x16_avx2)
GEMV(gemv_bf16_avx2)
GEMV(gemv_f16_avx2)
GEMV(gemv_f32_avx2)

#define ROW(o, text, t, i, fl, tile, no, slow) \
    {.name = text,                             \
     .op = OP_##o,                             \
     .dtype = t,                               \
     .isa = i,                                 \
     .flags = fl,                              \
     .decline = no,                            \
     .avoid = slow,                            \
     .workspace = tile##_workspace,            \
     .run = tile##_call},
#define MANY(o, t, name, i, fl, slow) ROW(o, #o "_" #name, t, i, fl, gemm_##name, decline_few_rows, slow)
#define FEW(o, t, name, i, fl, slow) ROW(o, #o "_few_rows_" #name, t, i, fl, gemv_##name, decline_many_rows, slow)
#define X86_ROWS(o)                                                                        \
    MANY(o, INK_BF16, bf16_32x32_amx, ISA_AMX, KERNEL_FTZ, NULL)                           \
    FEW(o, INK_BF16, bf16_amx, ISA_AMX, KERNEL_FTZ, NULL)                                  \
    MANY(o, INK_BF16, bf16_dot_14x32_avx512, ISA_AVX512, KERNEL_FTZ, cpu_bf16_dot_is_slow) \
    FEW(o, INK_BF16, bf16_dot_avx512, ISA_AVX512, KERNEL_FTZ, cpu_bf16_dot_is_slow)        \
    MANY(o, INK_BF16, bf16_14x32_avx512, ISA_AVX512, 0, NULL)                              \
    FEW(o, INK_BF16, bf16_avx512, ISA_AVX512, 0, NULL)                                     \
    MANY(o, INK_F16, f16_14x32_avx512, ISA_AVX512, 0, NULL)                                \
    FEW(o, INK_F16, f16_avx512, ISA_AVX512, 0, NULL)                                       \
    MANY(o, INK_F32, f32_14x32_avx512, ISA_AVX512, 0, NULL)                                \
    FEW(o, INK_F32, f32_avx512, ISA_AVX512, 0, NULL)                                       \
    MANY(o, INK_BF16, bf16_6x16_avx2, ISA_AVX2, 0, NULL)                                   \
    FEW(o, INK_BF16, bf16_avx2, ISA_AVX2, 0, NULL)                                         \
    MANY(o, INK_F16, f16_6x16_avx2, ISA_AVX2, 0, NULL)                                     \
    FEW(o, INK_F16, f16_avx2, ISA_AVX2, 0, NULL)                                           \
    MANY(o, INK_F32, f32_6x16_avx2, ISA_AVX2, 0, NULL)                                     \
    FEW(o, INK_F32, f32_avx2, ISA_AVX2, 0, NULL)
#else
#define X86_ROWS(o)
#endif

#define ROWS(o)                                                                                         \
    static const kernel o##_rows[] = {                                                                  \
        X86_ROWS(o){.name = #o "_bf16_portable", .op = OP_##o, .dtype = INK_BF16, .run = o##_portable}, \
        {.name = #o "_f16_portable", .op = OP_##o, .dtype = INK_F16, .run = o##_portable},              \
        {.name = #o "_f32_portable", .op = OP_##o, .dtype = INK_F32, .run = o##_portable},              \
    };                                                                                                  \
    const kernel_list kernels_cpu_##o = {INK_CPU, OP_##o, sizeof o##_rows / sizeof *o##_rows, o##_rows};
ROWS(linear)
ROWS(linear_gated)
