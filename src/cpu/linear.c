/* linear.c - the rows of linear and linear_gated on the CPU, most specific first. */
#include "cpu/linear.h"

#include "registry/registry.h"

static const kernel linear_rows[] = {
    {.name = "linear_bf16_portable", .op = OP_linear, .dtype = INK_BF16, .run = linear_portable},
    {.name = "linear_f16_portable", .op = OP_linear, .dtype = INK_F16, .run = linear_portable},
    {.name = "linear_f32_portable", .op = OP_linear, .dtype = INK_F32, .run = linear_portable},
};
const kernel_list kernels_cpu_linear = {INK_CPU, OP_linear, sizeof linear_rows / sizeof *linear_rows, linear_rows};
