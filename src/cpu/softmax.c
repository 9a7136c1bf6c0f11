/* softmax.c - the rows of softmax on the CPU, most specific first. */
#include "cpu/softmax.h"

#include "registry/registry.h"

#define ROW(type, name_, level, ...)                                                         \
    {                                                                                        \
        .name = "softmax_" name_, .op = OP_softmax, .dtype = type, .isa = level, __VA_ARGS__ \
    }

static const kernel softmax_rows[] = {
#ifdef __x86_64__
    ROW(INK_BF16, "bf16_avx512", ISA_AVX512, .workspace = softmax_workspace_avx512, .run = softmax_avx512),
    ROW(INK_F16, "f16_avx512", ISA_AVX512, .workspace = softmax_workspace_avx512, .run = softmax_avx512),
    ROW(INK_F32, "f32_avx512", ISA_AVX512, .workspace = softmax_workspace_avx512, .run = softmax_avx512),
    ROW(INK_BF16, "bf16_avx2", ISA_AVX2, .workspace = softmax_workspace_avx2, .run = softmax_avx2),
    ROW(INK_F16, "f16_avx2", ISA_AVX2, .workspace = softmax_workspace_avx2, .run = softmax_avx2),
    ROW(INK_F32, "f32_avx2", ISA_AVX2, .workspace = softmax_workspace_avx2, .run = softmax_avx2),
#endif
    ROW(INK_BF16, "bf16_portable", ISA_PORTABLE, .run = softmax_portable),
    ROW(INK_F16, "f16_portable", ISA_PORTABLE, .run = softmax_portable),
    ROW(INK_F32, "f32_portable", ISA_PORTABLE, .run = softmax_portable),
};
const kernel_list kernels_cpu_softmax = {INK_CPU, OP_softmax, sizeof softmax_rows / sizeof *softmax_rows, softmax_rows};
