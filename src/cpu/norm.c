/* norm.c - the rows of layer_norm and rms_norm on the CPU, most specific first. */
#include "cpu/norm.h"

#include "registry/registry.h"

static const kernel layer_norm_rows[] = {
    {.name = "layer_norm_bf16_portable", .op = OP_layer_norm, .dtype = INK_BF16, .run = layer_norm_portable},
    {.name = "layer_norm_f16_portable", .op = OP_layer_norm, .dtype = INK_F16, .run = layer_norm_portable},
    {.name = "layer_norm_f32_portable", .op = OP_layer_norm, .dtype = INK_F32, .run = layer_norm_portable},
};
const kernel_list kernels_cpu_layer_norm = {INK_CPU, OP_layer_norm, sizeof layer_norm_rows / sizeof *layer_norm_rows, layer_norm_rows};
