/* conv.c - the rows of conv2d and fused_conv2d_add_act on the CPU, most specific first. */
#include "cpu/conv.h"

#include "registry/registry.h"

#ifdef __x86_64__
#define VECTOR_ROWS(OP, NAME)                                                                                                   \
    {.name = NAME "_bf16_12x32_avx512", .op = OP, .dtype = INK_BF16, .isa = ISA_AVX512, .decline = conv_decline_avx512,         \
     .workspace = conv_workspace_avx512, .run = conv_bf16_avx512},                                                              \
    {.name = NAME "_f16_12x32_avx512", .op = OP, .dtype = INK_F16, .isa = ISA_AVX512, .decline = conv_decline_avx512,           \
     .workspace = conv_workspace_avx512, .run = conv_f16_avx512},                                                               \
    {.name = NAME "_f32_12x32_avx512", .op = OP, .dtype = INK_F32, .isa = ISA_AVX512, .decline = conv_decline_avx512,           \
     .workspace = conv_workspace_avx512, .run = conv_f32_avx512},                                                               \
    {.name = NAME "_bf16_6x16_avx2", .op = OP, .dtype = INK_BF16, .isa = ISA_AVX2, .decline = conv_decline_avx2,                \
     .workspace = conv_workspace_avx2, .run = conv_bf16_avx2},                                                                  \
    {.name = NAME "_f16_6x16_avx2", .op = OP, .dtype = INK_F16, .isa = ISA_AVX2, .decline = conv_decline_avx2,                  \
     .workspace = conv_workspace_avx2, .run = conv_f16_avx2},                                                                   \
    {.name = NAME "_f32_6x16_avx2", .op = OP, .dtype = INK_F32, .isa = ISA_AVX2, .decline = conv_decline_avx2,                  \
     .workspace = conv_workspace_avx2, .run = conv_f32_avx2},
#else
#define VECTOR_ROWS(OP, NAME)
#endif

#define ROWS(OP, NAME)                                                                       \
    VECTOR_ROWS(OP, NAME)                                                                    \
    {.name = NAME "_bf16_portable", .op = OP, .dtype = INK_BF16, .run = conv_portable},      \
    {.name = NAME "_f16_portable", .op = OP, .dtype = INK_F16, .run = conv_portable},        \
    {.name = NAME "_f32_portable", .op = OP, .dtype = INK_F32, .run = conv_portable},

static const kernel conv2d_rows[] = {ROWS(OP_conv2d, "conv2d")};
const kernel_list kernels_cpu_conv2d = {INK_CPU, OP_conv2d, sizeof conv2d_rows / sizeof *conv2d_rows, conv2d_rows};

static const kernel fused_rows[] = {ROWS(OP_fused_conv2d_add_act, "fused_conv2d_add_act")};
const kernel_list kernels_cpu_fused_conv2d_add_act = {INK_CPU, OP_fused_conv2d_add_act, sizeof fused_rows / sizeof *fused_rows,
                                                      fused_rows};
