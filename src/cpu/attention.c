/* attention.c - the rows of attention and paged_attention on the CPU, most specific first. */
#include "cpu/attention.h"

#include "registry/registry.h"

#define ROW(o, type, fn_isa, level, ...)                                                                    \
    {                                                                                                       \
        .name = #o "_" type##_NAME "_" fn_isa, .op = OP_##o, .dtype = INK_##type, .isa = level, __VA_ARGS__ \
    }
#define BF16_NAME "bf16"
#define F16_NAME "f16"
#define F32_NAME "f32"
#define ALL(row) row(BF16), row(F16), row(F32)

#ifdef __x86_64__
static const char *decline_few_rows(const op_call *c)
{
    return c->attrs.attention.few_rows ? "for prompts; few_rows asks for the rows for generated tokens" : NULL;
}
static const char *decline_prompt(const op_call *c)
{
    return c->attrs.attention.few_rows ? NULL : "for generated tokens (few_rows)";
}
static const char *decline_few_amx(const op_call *c)
{
    int64_t dim = c->in[0]->dims[2];
    return dim % 32 || dim > 128 ? "for head sizes 32, 64, 96 and 128" : decline_prompt(c);
}
#endif

static const kernel attention_rows[] = {
#ifdef __x86_64__
#define AVX512(t) \
    ROW(attention, t, "12x32_avx512", ISA_AVX512, .workspace = attention_workspace_avx512, .run = attention_avx512)
#define AVX2(t) ROW(attention, t, "6x16_avx2", ISA_AVX2, .workspace = attention_workspace_avx2, .run = attention_avx2)
    ROW(attention, BF16, "32x32_amx", ISA_AMX, .flags = KERNEL_FTZ | KERNEL_P16, .workspace = attention_workspace_amx,
        .run = attention_amx),
    ALL(AVX512),
    ALL(AVX2),
#undef AVX512
#undef AVX2
#endif
#define PORTABLE(t) ROW(attention, t, "portable", ISA_PORTABLE, .run = attention_portable)
    ALL(PORTABLE),
#undef PORTABLE
};
const kernel_list kernels_cpu_attention = {INK_CPU, OP_attention, sizeof attention_rows / sizeof *attention_rows,
                                           attention_rows};

static const kernel paged_attention_rows[] = {
#ifdef __x86_64__
#define AVX512(t)                                                                    \
    ROW(paged_attention, t, "12x32_avx512", ISA_AVX512, .decline = decline_few_rows, \
        .workspace = attention_workspace_avx512, .run = attention_avx512)
#define AVX2(t)                                                                                                        \
    ROW(paged_attention, t, "6x16_avx2", ISA_AVX2, .decline = decline_few_rows, .workspace = attention_workspace_avx2, \
        .run = attention_avx2)
#define FEW_AVX512(t)                                                            \
    ROW(paged_attention, t, "few_avx512", ISA_AVX512, .decline = decline_prompt, \
        .workspace = paged_attention_workspace_avx512, .run = paged_attention_avx512)
#define FEW_AVX2(t)                                                                                                       \
    ROW(paged_attention, t, "few_avx2", ISA_AVX2, .decline = decline_prompt, .workspace = paged_attention_workspace_avx2, \
        .run = paged_attention_avx2)
    ROW(paged_attention, BF16, "few_amx", ISA_AMX, .flags = KERNEL_FTZ | KERNEL_P16, .decline = decline_few_amx,
        .workspace = paged_attention_workspace_amx, .run = paged_attention_amx),
    ROW(paged_attention, BF16, "32x32_amx", ISA_AMX, .flags = KERNEL_FTZ | KERNEL_P16, .decline = decline_few_rows,
        .workspace = attention_workspace_amx, .run = attention_amx),
    ALL(FEW_AVX512),
    ALL(AVX512),
    ALL(FEW_AVX2),
    ALL(AVX2),
#endif
#define PORTABLE(t) ROW(paged_attention, t, "portable", ISA_PORTABLE, .run = attention_portable)
    ALL(PORTABLE),
};
const kernel_list kernels_cpu_paged_attention = {
    INK_CPU, OP_paged_attention, sizeof paged_attention_rows / sizeof *paged_attention_rows, paged_attention_rows};
