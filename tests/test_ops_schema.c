/* test_ops_schema.c - the operators' schemas: every way in which a call can be wrong and its message, output shapes, costs.
 *
 * A call is written as text: "nchw:bf16[1,3,8,8] bf16[4,3,3,3] -": one word per input, "-" for an absent one, an optional
 * layout in front. */
#include "ops/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct call {
    op_call c;
    ink_tensor in[OP_MAX_IN], out[OP_MAX_OUT];
} call;

static void parse_tensor(const char *word, ink_tensor *t)
{
    char name[16] = "";
    int64_t dims[INK_MAX_RANK];
    int rank = 0;
    ink_layout layout = INK_LAYOUT_ANY;
    ink_dtype dtype;
    for (int l = 0; l < INK_LAYOUT_COUNT; l++) {
        size_t n = strlen(ink_layout_name((ink_layout)l));
        if (!strncmp(word, ink_layout_name((ink_layout)l), n) && word[n] == ':') {
            layout = (ink_layout)l;
            word += n + 1;
            break;
        }
    }
    const char *p = strchr(word, '[');
    assert_non_null(p);
    memcpy(name, word, (size_t)(p - word));
    assert_true(ink_dtype_parse(name, &dtype));
    for (p++; *p != ']';) {
        char *end;
        assert_true(rank < INK_MAX_RANK);
        dims[rank++] = strtoll(p, &end, 10);
        p = *end == ',' ? end + 1 : end;
    }
    assert_int_equal(ink_tensor_init(t, dtype, rank, dims, NULL), INK_OK);
    t->layout = layout;
}

static void parse_call(call *k, op_id op, const char *inputs, const op_attrs *attrs)
{
    char text[512], *save = NULL;
    int n = 0;
    *k = (call){.c = {.op = op, .attrs = *attrs}};
    snprintf(text, sizeof text, "%s", inputs);
    for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save), n++) {
        assert_true(n < OP_MAX_IN);
        if (!strcmp(word, "-"))
            continue;
        parse_tensor(word, &k->in[n]);
        k->c.in[n] = &k->in[n];
    }
    for (int i = 0; i < op_schema_of(op)->n_out; i++)
        k->c.out[i] = &k->out[i];
}

/* ---- messages ---- */

typedef struct wrong {
    op_id op;
    const char *inputs;
    op_attrs attrs;
    const char *message;
} wrong;

#define NO_ATTRS                 \
    {                            \
        .conv2d = {.groups = 0 } \
    }
#define CONV(...)                 \
    {                             \
        .conv2d = { __VA_ARGS__ } \
    }
#define S1 .strides = {1, 1}
#define D1 .dilations = {1, 1}
#define G1 .groups = 1
#define X "nchw:bf16[1,4,8,8]"
#define W "bf16[6,4,3,3]"

static const wrong conv_cases[] = {
    {OP_conv2d, "nchw:i32[1,4,8,8] " W, CONV(S1, D1, G1), "conv2d: input is i32, expected f32, f16 or bf16"},
    {OP_conv2d, "nchw:bf16[4,8,8] " W, CONV(S1, D1, G1), "conv2d: input has rank 3, expected 4"},
    {OP_conv2d, X " bf16[6,4,9]", CONV(S1, D1, G1), "conv2d: filter has rank 3, expected 4"},
    {OP_conv2d, X " f32[6,4,3,3]", CONV(S1, D1, G1), "conv2d: filter is f32, expected bf16"},
    {OP_conv2d, "bf16[1,4,8,8] " W, CONV(S1, D1, G1), "conv2d: input layout is any, expected nchw or nhwc"},
    {OP_conv2d, "ncdhw:bf16[1,4,8,8] " W, CONV(S1, D1, G1), "conv2d: input layout is ncdhw, expected nchw or nhwc"},
    {OP_conv2d, X " " W, CONV(S1, D1, .groups = 0), "conv2d: groups is 0, expected at least 1"},
    {OP_conv2d, X " " W, CONV(S1, D1, .groups = 2),
     "conv2d: the input has 4 channels, the filter expects 4 x 2 groups (data_format nchw)"},
    {OP_conv2d, "nhwc:bf16[1,4,8,8] " W, CONV(S1, D1, G1),
     "conv2d: the input has 8 channels, the filter expects 4 x 1 groups (data_format nhwc)"},
    {OP_conv2d, X " bf16[6,1,3,3]", CONV(S1, D1, .groups = 4), "conv2d: 6 output channels cannot be shared by 4 groups"},
    {OP_conv2d, X " bf16[0,4,3,3]", CONV(S1, D1, G1), "conv2d: 0 output channels cannot be shared by 1 groups"},
    {OP_conv2d, X " " W, CONV(S1, D1, G1, .act = ACT_RELU), "conv2d: activation relu is not accepted"},
    {OP_fused_conv2d_add_act, X " " W, CONV(S1, D1, G1, .act = ACT_COUNT),
     "fused_conv2d_add_act: activation ? is not accepted"},
    {OP_conv2d, X " " W, CONV(D1, G1, .strides = {0, 1}), "conv2d: stride of height is 0, expected 1 to 2147483647"},
    {OP_conv2d, X " " W, CONV(D1, G1, .strides = {1, -2}), "conv2d: stride of width is -2, expected 1 to 2147483647"},
    {OP_conv2d, X " " W, CONV(S1, G1, .dilations = {1, 0}), "conv2d: dilation of width is 0, expected 1 to 2147483647"},
    {OP_conv2d, X " " W, CONV(S1, D1, G1, .paddings = {0, -1, 0, 0}),
     "conv2d: padding of height is 0,-1, expected 0 to 2147483647"},
    {OP_conv2d, X " " W, CONV(S1, D1, G1, .paddings = {0, 0, -3, 2}),
     "conv2d: padding of width is -3,2, expected 0 to 2147483647"},
    {OP_conv2d, X " bf16[6,4,0,3]", CONV(S1, D1, G1), "conv2d: the filter's height is 0"},
    {OP_conv2d, "nchw:bf16[1,4,2147483648,8] " W, CONV(S1, D1, G1),
     "conv2d: height of 2147483648 is over the limit of 2147483647"},
    {OP_conv2d, X " bf16[6,4,9,3]", CONV(S1, D1, G1), "conv2d: a filter extent of 9 does not fit the padded height of 8"},
    {OP_conv2d, X " " W, CONV(S1, G1, .dilations = {1, 5}, .paddings = {0, 0, 1, 1}),
     "conv2d: a filter extent of 11 does not fit the padded width of 10"},
    {OP_conv2d, X " " W " bf16[4]", CONV(S1, D1, G1), "conv2d: bias has shape [4], expected [6]"},
    {OP_conv2d, X " " W " f16[6]", CONV(S1, D1, G1), "conv2d: bias is f16, expected bf16"},
    {OP_fused_conv2d_add_act, X " " W " - f32[1,6,6,6]", CONV(S1, D1, G1),
     "fused_conv2d_add_act: residual is f32, expected bf16"},
    {OP_fused_conv2d_add_act, X " " W " - bf16[1,6,8,8]", CONV(S1, D1, G1),
     "fused_conv2d_add_act: residual has shape [1,6,8,8], expected [1,6,6,6]"},
};
#undef X
#undef W

#define SILU                         \
    {                                \
        .linear = {.act = ACT_SILU } \
    }
static const wrong linear_cases[] = {
    {OP_linear, "i64[2,8] bf16[4,8]", NO_ATTRS, "linear: x is i64, expected f32, f16 or bf16"},
    {OP_linear, "bf16[] bf16[4,8]", NO_ATTRS, "linear: x has rank 0, expected at least 1"},
    {OP_linear, "bf16[2,8] bf16[4,8]", {.linear = {.act = (activation)9}}, "linear: unknown activation 9"},
    {OP_linear, "bf16[2,8] f32[4,8]", NO_ATTRS, "linear: weight is f32, expected bf16"},
    {OP_linear, "bf16[2,8] bf16[4,7]", NO_ATTRS, "linear: weight has shape [4,7], expected [4,8]"},
    {OP_linear, "bf16[2,8] bf16[32]", NO_ATTRS, "linear: weight has shape [32], expected [0,8]"},
    {OP_linear, "bf16[2,8] bf16[4,8] bf16[3]", NO_ATTRS, "linear: bias has shape [3], expected [4]"},
    {OP_linear, "bf16[2,8] bf16[4,8] f16[4]", NO_ATTRS, "linear: bias is f16, expected bf16"},
    {OP_linear, "bf16[2,8] bf16[4,8] - f32[2,4]", NO_ATTRS, "linear: residual is f32, expected bf16"},
    {OP_linear, "bf16[2,8] bf16[4,8] - bf16[2,8]", NO_ATTRS, "linear: residual has shape [2,8], expected [2,4]"},
    {OP_linear_gated, "u8[2,8] bf16[4,8] bf16[4,8]", SILU, "linear_gated: x is u8, expected f32, f16 or bf16"},
    {OP_linear_gated, "bf16[] bf16[4,8] bf16[4,8]", SILU, "linear_gated: x has rank 0, expected at least 1"},
    {OP_linear_gated, "bf16[2,8] bf16[4,8] bf16[4,8]", NO_ATTRS, "linear_gated: activation none, expected silu"},
    {OP_linear_gated, "bf16[2,8] f16[4,8] bf16[4,8]", SILU, "linear_gated: w_gate is f16, expected bf16"},
    {OP_linear_gated, "bf16[2,8] bf16[4,9] bf16[4,8]", SILU, "linear_gated: w_gate has shape [4,9], expected [4,8]"},
    {OP_linear_gated, "bf16[2,8] bf16[4,8] f16[4,8]", SILU, "linear_gated: w_up is f16, expected bf16"},
    {OP_linear_gated, "bf16[2,8] bf16[4,8] bf16[5,8]", SILU, "linear_gated: w_up has shape [5,8], expected [4,8]"},
};

#define NORM(eps, axis)       \
    {                         \
        .norm = { eps, axis } \
    }
#define AXIS(a)       \
    {                 \
        .axis = { a } \
    }
static const wrong norm_cases[] = {
    {OP_layer_norm, "i32[2,8]", NORM(1e-5f, 1), "layer_norm: x is i32, expected f32, f16 or bf16"},
    {OP_layer_norm, "bf16[2,8]", NORM(1e-5f, 0), "layer_norm: begin_norm_axis is 0, expected 1 to 1 for rank 2"},
    {OP_layer_norm, "bf16[2,8]", NORM(1e-5f, -1), "layer_norm: begin_norm_axis is -1, expected 1 to 1 for rank 2"},
    {OP_layer_norm, "bf16[2,8,3]", NORM(1e-5f, 3), "layer_norm: begin_norm_axis is 3, expected 1 to 2 for rank 3"},
    {OP_layer_norm, "bf16[2,8]", NORM(-1e-5f, 1), "layer_norm: epsilon is -1e-05, expected 0 to 0.001"},
    {OP_layer_norm, "bf16[2,8]", NORM(0.0011f, 1), "layer_norm: epsilon is 0.0011, expected 0 to 0.001"},
    {OP_layer_norm, "bf16[2,8]", NORM(__builtin_nanf(""), 1), "layer_norm: epsilon is nan, expected 0 to 0.001"},
    {OP_layer_norm, "bf16[2,8] bf16[2]", NORM(1e-5f, 1), "layer_norm: scale has shape [2], expected [8]"},
    {OP_layer_norm, "bf16[2,8,3] bf16[8,3]", NORM(1e-5f, 1), "layer_norm: scale has shape [8,3], expected [24]"},
    {OP_layer_norm, "bf16[2,8] f16[8]", NORM(1e-5f, 1), "layer_norm: scale is f16, expected bf16"},
    {OP_layer_norm, "bf16[2,8] - bf16[9]", NORM(1e-5f, 1), "layer_norm: bias has shape [9], expected [8]"},
    {OP_layer_norm, "bf16[2,8] - f16[8]", NORM(1e-5f, 1), "layer_norm: bias is f16, expected bf16"},
    {OP_layer_norm, "bf16[2,8] f32[8] bf16[8]", NORM(1e-5f, 1), "layer_norm: bias is bf16, expected f32"},
    {OP_rms_norm, "bool[2,8] bf16[8]", NORM(1e-5f, 0), "rms_norm: x is bool, expected f32, f16 or bf16"},
    {OP_rms_norm, "bf16[] bf16[1]", NORM(1e-5f, 0), "rms_norm: x has rank 0, expected at least 1"},
    {OP_rms_norm, "bf16[2,8] bf16[8]", NORM(0.01f, 0), "rms_norm: epsilon is 0.01, expected 0 to 0.001"},
    {OP_rms_norm, "bf16[2,8] bf16[2]", NORM(1e-5f, 0), "rms_norm: weight has shape [2], expected [8]"},
    {OP_rms_norm, "bf16[2,8] f16[8]", NORM(1e-5f, 0), "rms_norm: weight is f16, expected bf16"},
    {OP_softmax, "i32[2,8]", AXIS(-1), "softmax: x is i32, expected f32, f16 or bf16"},
    {OP_softmax, "f16[2,8]", AXIS(2), "softmax: axis is 2, expected -2 to 1"},
    {OP_softmax, "f16[2,8]", AXIS(-3), "softmax: axis is -3, expected -2 to 1"},
};

#define SCALE(s)                   \
    {                              \
        .attention = {.scale = s } \
    }
static const wrong attention_cases[] = {
    {OP_attention, "i32[5,4,8] bf16[5,2,8] bf16[5,2,8] i32[2]", SCALE(1), "attention: q is i32, expected f32, f16 or bf16"},
    {OP_attention, "bf16[5,32] bf16[5,2,8] bf16[5,2,8] i32[2]", SCALE(1), "attention: q has rank 2, expected 3"},
    {OP_attention, "bf16[5,4,8] bf16[5,16] bf16[5,2,8] i32[2]", SCALE(1), "attention: k has rank 2, expected 3"},
    {OP_attention, "bf16[5,4,8] f16[5,2,8] bf16[5,2,8] i32[2]", SCALE(1), "attention: k is f16, expected bf16"},
    {OP_attention, "bf16[5,4,8] bf16[5,2,8] f32[5,2,8] i32[2]", SCALE(1), "attention: v is f32, expected bf16"},
    {OP_attention, "bf16[5,4,8] bf16[6,2,8] bf16[5,2,8] i32[2]", SCALE(1),
     "attention: k has shape [6,2,8], expected [5,2,8]"},
    {OP_attention, "bf16[5,4,8] bf16[5,2,8] bf16[5,4,8] i32[2]", SCALE(1),
     "attention: v has shape [5,4,8], expected [5,2,8]"},
    {OP_attention, "bf16[5,4,8] bf16[5,2,8] bf16[5,2,8] i32[1,2]", SCALE(1),
     "attention: cu_seqlens has rank 2, expected 1"},
    {OP_attention, "bf16[5,4,8] bf16[5,2,8] bf16[5,2,8] i64[2]", SCALE(1), "attention: cu_seqlens is i64, expected i32"},
    {OP_attention, "bf16[5,4,8] bf16[5,3,8] bf16[5,3,8] i32[2]", SCALE(1),
     "attention: 4 query heads cannot be shared by 3 key heads"},
    {OP_attention, "bf16[5,4,8] bf16[5,0,8] bf16[5,0,8] i32[2]", SCALE(1),
     "attention: 4 query heads cannot be shared by 0 key heads"},
    {OP_attention, "bf16[5,4,0] bf16[5,2,0] bf16[5,2,0] i32[2]", SCALE(1), "attention: head size 0, expected 1 to 256"},
    {OP_attention, "bf16[5,4,257] bf16[5,2,257] bf16[5,2,257] i32[2]", SCALE(1),
     "attention: head size 257, expected 1 to 256"},
    {OP_attention, "bf16[5,4,8] bf16[5,2,8] bf16[5,2,8] i32[2]", SCALE(0),
     "attention: scale is 0, expected a positive number"},
    {OP_attention, "bf16[5,4,8] bf16[5,2,8] bf16[5,2,8] i32[2]", SCALE(-0.5f),
     "attention: scale is -0.5, expected a positive number"},
    {OP_paged_attention, "u8[5,4,8] bf16[9,2,32,8] bf16[9,2,32,8] i32[3,2] i32[3] i32[4]", SCALE(1),
     "paged_attention: q is u8, expected f32, f16 or bf16"},
    {OP_paged_attention, "bf16[5,32] bf16[9,2,32,8] bf16[9,2,32,8] i32[3,2] i32[3] i32[4]", SCALE(1),
     "paged_attention: q has rank 2, expected 3"},
    {OP_paged_attention, "bf16[5,4,8] bf16[9,2,256] bf16[9,2,32,8] i32[3,2] i32[3] i32[4]", SCALE(1),
     "paged_attention: k_pool has rank 3, expected 4"},
    {OP_paged_attention, "bf16[5,4,8] f16[9,2,32,8] bf16[9,2,32,8] i32[3,2] i32[3] i32[4]", SCALE(1),
     "paged_attention: k_pool is f16, expected bf16"},
    {OP_paged_attention, "bf16[5,4,8] bf16[9,2,32,8] f16[9,2,32,8] i32[3,2] i32[3] i32[4]", SCALE(1),
     "paged_attention: v_pool is f16, expected bf16"},
    {OP_paged_attention, "bf16[5,4,8] bf16[9,2,16,8] bf16[9,2,16,8] i32[3,2] i32[3] i32[4]", SCALE(1),
     "paged_attention: k_pool has shape [9,2,16,8], expected [9,2,32,8]"},
    {OP_paged_attention, "bf16[5,4,8] bf16[9,2,32,8] bf16[8,2,32,8] i32[3,2] i32[3] i32[4]", SCALE(1),
     "paged_attention: v_pool has shape [8,2,32,8], expected [9,2,32,8]"},
    {OP_paged_attention, "bf16[5,4,8] bf16[9,3,32,8] bf16[9,3,32,8] i32[3,2] i32[3] i32[4]", SCALE(1),
     "paged_attention: 4 query heads cannot be shared by 3 key heads"},
    {OP_paged_attention, "bf16[5,4,8] bf16[9,2,32,8] bf16[9,2,32,8] i32[6] i32[3] i32[4]", SCALE(1),
     "paged_attention: block_table has rank 1, expected 2"},
    {OP_paged_attention, "bf16[5,4,8] bf16[9,2,32,8] bf16[9,2,32,8] i64[3,2] i32[3] i32[4]", SCALE(1),
     "paged_attention: block_table is i64, expected i32"},
    {OP_paged_attention, "bf16[5,4,8] bf16[9,2,32,8] bf16[9,2,32,8] i32[3,2] i64[3] i32[4]", SCALE(1),
     "paged_attention: lengths is i64, expected i32"},
    {OP_paged_attention, "bf16[5,4,8] bf16[9,2,32,8] bf16[9,2,32,8] i32[3,2] i32[2] i32[4]", SCALE(1),
     "paged_attention: lengths has shape [2], expected [3]"},
    {OP_paged_attention, "bf16[5,4,8] bf16[9,2,32,8] bf16[9,2,32,8] i32[3,2] i32[3] f32[4]", SCALE(1),
     "paged_attention: cu_seqlens is f32, expected i32"},
    {OP_paged_attention, "bf16[5,4,8] bf16[9,2,32,8] bf16[9,2,32,8] i32[3,2] i32[3] i32[3]", SCALE(1),
     "paged_attention: cu_seqlens has shape [3], expected [4]"},
    {OP_paged_attention, "bf16[5,4,8] bf16[9,2,32,8] bf16[9,2,32,8] i32[3,2] i32[3] i32[4]", SCALE(__builtin_nanf("")),
     "paged_attention: scale is nan, expected a positive number"},
    {OP_kv_append, "i32[5,2,8] bf16[5,2,8] i32[5] bf16[9,2,32,8] bf16[9,2,32,8]", NO_ATTRS,
     "kv_append: k is i32, expected f32, f16 or bf16"},
    {OP_kv_append, "bf16[5,16] bf16[5,2,8] i32[5] bf16[9,2,32,8] bf16[9,2,32,8]", NO_ATTRS,
     "kv_append: k has rank 2, expected 3"},
    {OP_kv_append, "bf16[5,2,8] f16[5,2,8] i32[5] bf16[9,2,32,8] bf16[9,2,32,8]", NO_ATTRS,
     "kv_append: v is f16, expected bf16"},
    {OP_kv_append, "bf16[5,2,8] bf16[4,2,8] i32[5] bf16[9,2,32,8] bf16[9,2,32,8]", NO_ATTRS,
     "kv_append: v has shape [4,2,8], expected [5,2,8]"},
    {OP_kv_append, "bf16[5,2,8] bf16[5,2,8] i64[5] bf16[9,2,32,8] bf16[9,2,32,8]", NO_ATTRS,
     "kv_append: slots is i64, expected i32"},
    {OP_kv_append, "bf16[5,2,8] bf16[5,2,8] i32[6] bf16[9,2,32,8] bf16[9,2,32,8]", NO_ATTRS,
     "kv_append: slots has shape [6], expected [5]"},
    {OP_kv_append, "bf16[5,2,8] bf16[5,2,8] i32[5] bf16[9,2,32,16] bf16[9,2,32,16]", NO_ATTRS,
     "kv_append: k_pool has shape [9,2,32,16], expected [9,2,32,8]"},
    {OP_kv_append, "bf16[5,2,8] bf16[5,2,8] i32[5] bf16[9,4,32,8] bf16[9,4,32,8]", NO_ATTRS,
     "kv_append: k has 2 heads, the pool 4"},
};

#define ROPE(...)                     \
    {                                 \
        .rope_table = { __VA_ARGS__ } \
    }
#define MERGE(m)       \
    {                  \
        .merge = { m } \
    }
static const wrong vision_cases[] = {
    {OP_rope_table, "i32[5,2]", ROPE(ROPE_AXIAL_2D, 1e4f, 6, {0}),
     "rope_table: head_dim is 6, expected a multiple of 4 up to 256"},
    {OP_rope_table, "i32[5,3]", ROPE(ROPE_MROPE, 1e4f, 7, {0}),
     "rope_table: head_dim is 7, expected a multiple of 2 up to 256"},
    {OP_rope_table, "i32[5,2]", ROPE(ROPE_AXIAL_2D, 1e4f, 0, {0}),
     "rope_table: head_dim is 0, expected a multiple of 4 up to 256"},
    {OP_rope_table, "i32[5,2]", ROPE(ROPE_AXIAL_2D, 1e4f, 260, {0}),
     "rope_table: head_dim is 260, expected a multiple of 4 up to 256"},
    {OP_rope_table, "i32[5,2]", ROPE(ROPE_AXIAL_2D, 0, 8, {0}), "rope_table: theta is 0, expected a positive number"},
    {OP_rope_table, "i32[5,3]", ROPE(ROPE_MROPE, 1e4f, 8, {1, 1, 1}), "rope_table: sections 1,1,1 do not add up to 4"},
    {OP_rope_table, "i32[5,3]", ROPE(ROPE_MROPE, 1e4f, 8, {5, -2, 1}), "rope_table: sections 5,-2,1 do not add up to 4"},
    {OP_rope_table, "i32[15]", ROPE(ROPE_MROPE, 1e4f, 8, {2, 1, 1}), "rope_table: positions has rank 1, expected 2"},
    {OP_rope_table, "i64[5,3]", ROPE(ROPE_MROPE, 1e4f, 8, {2, 1, 1}), "rope_table: positions is i64, expected i32"},
    {OP_rope_table, "i32[5,2]", ROPE(ROPE_MROPE, 1e4f, 8, {2, 1, 1}),
     "rope_table: positions has shape [5,2], expected [5,3]"},
    {OP_rope_table, "i32[5,3]", ROPE(ROPE_AXIAL_2D, 1e4f, 8, {0}), "rope_table: positions has shape [5,3], expected [5,2]"},
    {OP_rope, "i32[5,2,8] f32[5,4,2]", NO_ATTRS, "rope: x is i32, expected f32, f16 or bf16"},
    {OP_rope, "bf16[5,8] f32[5,4,2]", NO_ATTRS, "rope: x has rank 2, expected 3"},
    {OP_rope, "bf16[5,2,7] f32[5,4,2]", NO_ATTRS, "rope: head size 7 is odd"},
    {OP_rope, "bf16[5,2,8] bf16[5,4,2]", NO_ATTRS, "rope: table is bf16, expected f32"},
    {OP_rope, "bf16[5,2,8] f32[4,4,2]", NO_ATTRS, "rope: table has shape [4,4,2], expected [5,4,2]"},
    {OP_position_embedding, "i32[6,8] bf16[9,8] i32[1,3]", NO_ATTRS,
     "position_embedding: x is i32, expected f32, f16 or bf16"},
    {OP_position_embedding, "bf16[6,8,1] bf16[9,8] i32[1,3]", NO_ATTRS, "position_embedding: x has rank 3, expected 2"},
    {OP_position_embedding, "bf16[6,8] bf16[3,3,8] i32[1,3]", NO_ATTRS, "position_embedding: table has rank 3, expected 2"},
    {OP_position_embedding, "bf16[6,8] f32[9,8] i32[1,3]", NO_ATTRS, "position_embedding: table is f32, expected bf16"},
    {OP_position_embedding, "bf16[6,8] bf16[9,7] i32[1,3]", NO_ATTRS,
     "position_embedding: table has shape [9,7], expected [9,8]"},
    {OP_position_embedding, "bf16[6,8] bf16[8,8] i32[1,3]", NO_ATTRS,
     "position_embedding: a table of 8 rows is not a square grid"},
    {OP_position_embedding, "bf16[6,8] bf16[9,8] i32[3]", NO_ATTRS, "position_embedding: grid_thw has rank 1, expected 2"},
    {OP_position_embedding, "bf16[6,8] bf16[9,8] i64[1,3]", NO_ATTRS, "position_embedding: grid_thw is i64, expected i32"},
    {OP_position_embedding, "bf16[6,8] bf16[9,8] i32[1,2]", NO_ATTRS,
     "position_embedding: grid_thw has shape [1,2], expected [1,3]"},
    {OP_patch_merge, "i32[8,8] i32[1,3]", MERGE(2), "patch_merge: x is i32, expected f32, f16 or bf16"},
    {OP_patch_merge, "bf16[8] i32[1,3]", MERGE(2), "patch_merge: x has rank 1, expected 2"},
    {OP_patch_merge, "bf16[6,8] i32[1,3]", MERGE(2), "patch_merge: 6 patches cannot be merged 2 x 2"},
    {OP_patch_merge, "bf16[8,8] i32[1,3]", MERGE(0), "patch_merge: 8 patches cannot be merged 0 x 0"},
    {OP_patch_merge, "bf16[0,8] i32[1,3]", MERGE(17), "patch_merge: 0 patches cannot be merged 17 x 17"},
    {OP_patch_merge, "bf16[8,8] i32[1,4]", MERGE(2), "patch_merge: grid_thw has shape [1,4], expected [1,3]"},
};

#define TO(t)         \
    {                 \
        .cast = { t } \
    }
#define RESHAPE(...)               \
    {                              \
        .reshape = { __VA_ARGS__ } \
    }
static const wrong movement_cases[] = {
    {OP_embedding, "i32[5] i32[9,8]", NO_ATTRS, "embedding: weight is i32, expected f32, f16 or bf16"},
    {OP_embedding, "i32[5] bf16[72]", NO_ATTRS, "embedding: weight has rank 1, expected 2"},
    {OP_embedding, "i32[1,5] bf16[9,8]", NO_ATTRS, "embedding: ids has rank 2, expected 1"},
    {OP_embedding, "i64[5] bf16[9,8]", NO_ATTRS, "embedding: ids is i64, expected i32"},
    {OP_index_select, "u8[9,8] i32[5]", NO_ATTRS, "index_select: x is u8, expected f32, f16 or bf16"},
    {OP_index_select, "bf16[9,8,1] i32[5]", NO_ATTRS, "index_select: x has rank 3, expected 2"},
    {OP_index_select, "bf16[9,8] i32[5,1]", NO_ATTRS, "index_select: index has rank 2, expected 1"},
    {OP_index_select, "bf16[9,8] bf16[5]", NO_ATTRS, "index_select: index is bf16, expected i32"},
    {OP_merge_multimodal, "i32[5,8] bf16[2,8] i32[5]", NO_ATTRS, "merge_multimodal: x is i32, expected f32, f16 or bf16"},
    {OP_merge_multimodal, "bf16[5] bf16[2,8] i32[5]", NO_ATTRS, "merge_multimodal: x has rank 1, expected 2"},
    {OP_merge_multimodal, "bf16[5,8] bf16[16] i32[5]", NO_ATTRS, "merge_multimodal: features has rank 1, expected 2"},
    {OP_merge_multimodal, "bf16[5,8] f32[2,8] i32[5]", NO_ATTRS, "merge_multimodal: features is f32, expected bf16"},
    {OP_merge_multimodal, "bf16[5,8] bf16[2,9] i32[5]", NO_ATTRS,
     "merge_multimodal: features has shape [2,9], expected [2,8]"},
    {OP_merge_multimodal, "bf16[5,8] bf16[2,8] i64[5]", NO_ATTRS, "merge_multimodal: rows is i64, expected i32"},
    {OP_merge_multimodal, "bf16[5,8] bf16[2,8] i32[4]", NO_ATTRS, "merge_multimodal: rows has shape [4], expected [5]"},
    {OP_gelu, "i32[4]", NO_ATTRS, "gelu: x is i32, expected f32, f16 or bf16"},
    {OP_silu, "f64[4]", NO_ATTRS, "silu: x is f64, expected f32, f16 or bf16"},
    {OP_relu, "bool[4]", NO_ATTRS, "relu: x is bool, expected f32, f16 or bf16"},
    {OP_add, "i32[4] i32[4]", NO_ATTRS, "add: x is i32, expected f32, f16 or bf16"},
    {OP_add, "bf16[4] f32[4]", NO_ATTRS, "add: y is f32, expected bf16"},
    {OP_add, "bf16[4] bf16[1]", NO_ATTRS, "add: y has shape [1], expected [4]"},
    {OP_multiply, "i64[4] i64[4]", NO_ATTRS, "multiply: x is i64, expected f32, f16 or bf16"},
    {OP_multiply, "bf16[4,2] f16[4,2]", NO_ATTRS, "multiply: y is f16, expected bf16"},
    {OP_multiply, "bf16[4,2] bf16[2,4]", NO_ATTRS, "multiply: y has shape [2,4], expected [4,2]"},
    {OP_cast, "i32[4]", TO(INK_F32), "cast: x is i32, expected f32, f16 or bf16"},
    {OP_cast, "bf16[4]", TO(INK_I32), "cast: to i32, expected f32, f16 or bf16"},
    {OP_cast, "bf16[4]", TO(INK_DTYPE_COUNT), "cast: to ?, expected f32, f16 or bf16"},
    {OP_reshape, "bf16[4,2]", RESHAPE(7, {0}), "reshape: rank 7, expected 0 to 6"},
    {OP_reshape, "bf16[4,2]", RESHAPE(3, {4, 2, 0}), "reshape: dimension 2 copies one that the input lacks"},
    {OP_reshape, "bf16[4,2]", RESHAPE(2, {-1, -1}), "reshape: more than one dimension is to be inferred"},
    {OP_reshape, "bf16[4,2]", RESHAPE(2, {INT64_MAX, 4}), "reshape: the product of the dimensions does not fit 63 bits"},
    {OP_reshape, "bf16[4,2]", RESHAPE(2, {3, 3}), "reshape: 8 elements do not fit the new shape"},
    {OP_reshape, "bf16[4,2]", RESHAPE(2, {3, -1}), "reshape: 8 elements do not fit the new shape"},
    {OP_argmax, "f32[8]", NO_ATTRS, "argmax: x has rank 1, expected 2"},
    {OP_argmax, "bf16[2,8]", NO_ATTRS, "argmax: x is bf16, expected f32"},
    {OP_argmax, "f32[2,0]", NO_ATTRS, "argmax: rows are empty"},
    {OP_sample, "f32[8] f32[2,3] i64[2,2] i32[2,5] i32[2]", NO_ATTRS, "sample: logits has rank 1, expected 2"},
    {OP_sample, "f16[2,8] f32[2,3] i64[2,2] i32[2,5] i32[2]", NO_ATTRS, "sample: logits is f16, expected f32"},
    {OP_sample, "f32[2,0] f32[2,3] i64[2,2] i32[2,5] i32[2]", NO_ATTRS, "sample: rows are empty"},
    {OP_sample, "f32[2,8] f16[2,3] i64[2,2] i32[2,5] i32[2]", NO_ATTRS, "sample: params is f16, expected f32"},
    {OP_sample, "f32[2,8] f32[2,2] i64[2,2] i32[2,5] i32[2]", NO_ATTRS, "sample: params has shape [2,2], expected [2,3]"},
    {OP_sample, "f32[2,8] f32[2,3] i32[2,2] i32[2,5] i32[2]", NO_ATTRS, "sample: seeds is i32, expected i64"},
    {OP_sample, "f32[2,8] f32[2,3] i64[3,2] i32[2,5] i32[2]", NO_ATTRS, "sample: seeds has shape [3,2], expected [2,2]"},
    {OP_sample, "f32[2,8] f32[2,3] i64[2,2] i32[10] i32[2]", NO_ATTRS, "sample: history has rank 1, expected 2"},
    {OP_sample, "f32[2,8] f32[2,3] i64[2,2] i64[2,5] i32[2]", NO_ATTRS, "sample: history is i64, expected i32"},
    {OP_sample, "f32[2,8] f32[2,3] i64[2,2] i32[3,5] i32[2]", NO_ATTRS, "sample: history has shape [3,5], expected [2,5]"},
    {OP_sample, "f32[2,8] f32[2,3] i64[2,2] i32[2,5] i64[2]", NO_ATTRS, "sample: history_len is i64, expected i32"},
    {OP_sample, "f32[2,8] f32[2,3] i64[2,2] i32[2,5] i32[1]", NO_ATTRS, "sample: history_len has shape [1], expected [2]"},
};

static void check_messages(const wrong *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        call k;
        parse_call(&k, cases[i].op, cases[i].inputs, &cases[i].attrs);
        if (op_infer(&k.c) != INK_INVALID_ARGUMENT)
            fail_msg("case %zu is accepted, expected: %s", i, cases[i].message);
        assert_string_equal(ink_last_error(), cases[i].message);
    }
}

#define CHECK(cases) check_messages(cases, sizeof cases / sizeof *cases)
static void test_messages(void **state)
{
    (void)state;
    CHECK(conv_cases);
    CHECK(linear_cases);
    CHECK(norm_cases);
    CHECK(attention_cases);
    CHECK(vision_cases);
    CHECK(movement_cases);
}

/* Every op is in the tables at least once. */
static void test_every_op_is_covered(void **state)
{
    (void)state;
    const struct {
        const wrong *cases;
        size_t count;
    } all[] = {
#define TABLE(t) {t, sizeof t / sizeof *t}
        TABLE(conv_cases),      TABLE(linear_cases), TABLE(norm_cases),
        TABLE(attention_cases), TABLE(vision_cases), TABLE(movement_cases),
    };
    for (int op = 0; op < OP_COUNT; op++) {
        bool found = false;
        for (size_t t = 0; t < sizeof all / sizeof *all; t++)
            for (size_t i = 0; i < all[t].count; i++)
                found |= all[t].cases[i].op == (op_id)op;
        if (!found)
            fail_msg("%s has no case", op_schema_of((op_id)op)->name);
    }
}

/* ---- valid calls: shapes, and what every schema refuses alike ---- */

typedef struct valid {
    op_id op;
    const char *inputs;
    op_attrs attrs;
    const char *outputs; /* "bf16[2,8] f32[2]" */
    const char *described;
} valid;

static const valid valid_cases[] = {
    {OP_conv2d, "nchw:bf16[2,4,9,8] bf16[6,2,3,3] f32[6]",
     CONV(D1, .strides = {2, 1}, .paddings = {1, 0, 2, 1}, .groups = 2), "bf16[2,6,4,9]",
     "conv2d bf16 nchw n2c4h9w8 o6k3x3 s2x1 p1,0,2,1 d1x1 g2 fwd bias=f32"},
    {OP_conv2d, "nhwc:f16[1,9,9,4] f16[6,4,3,3] -", CONV(G1, .strides = {2, 2}, .dilations = {3, 3}, .algorithm = PAD_SAME),
     "f16[1,5,5,6]", "conv2d f16 nhwc n1c4h9w9 o6k3x3 s2x2 pSAME d3x3 g1 fwd"},
    {OP_fused_conv2d_add_act, "nchw:f32[0,4,3,3] f32[6,4,3,3] - f32[0,6,1,1]",
     CONV(S1, D1, G1, .algorithm = PAD_VALID, .act = ACT_SILU), "f32[0,6,1,1]",
     "fused_conv2d_add_act f32 nchw n0c4h3w3 o6k3x3 s1x1 pVALID d1x1 g1 fwd residual act=silu"},
    {OP_linear,
     "bf16[2,3,8] bf16[4,8] f32[4] bf16[2,3,4]",
     {.linear = {.act = ACT_GELU_TANH, .few_rows = true}},
     "bf16[2,3,4]",
     "linear bf16 any m6 n4 k8 act=gelu_tanh bias=f32 residual few_rows"},
    {OP_linear, "bf16[8] bf16[4,8] - -", {.linear = {.out_f32 = true}}, "f32[4]", "linear bf16 any m1 n4 k8 out=f32"},
    {OP_linear_gated, "f16[0,8] f16[4,8] f16[4,8]", SILU, "f16[0,4]", "linear_gated f16 any m0 n4 k8 act=silu"},
    {OP_layer_norm, "bf16[2,3,4] f32[12] -", NORM(1e-6f, 1), "bf16[2,3,4] f32[2] f32[2]",
     "layer_norm bf16 any [2,3,4] axis1 scale=f32 eps=1e-06"},
    {OP_rms_norm, "f32[5] f32[5]", NORM(0, 0), "f32[5]", "rms_norm f32 any [5] scale=f32 eps=0"},
    {OP_softmax, "f16[]", AXIS(7), "f16[]", "softmax f16 any [] axis7"},
    {OP_attention,
     "bf16[5,4,8] bf16[5,2,8] bf16[5,2,8] i32[3]",
     {.attention = {.scale = 1, .causal = true}},
     "bf16[5,4,8]",
     "attention bf16 any t5 h4 kv2 d8 seqs2 causal"},
    {OP_paged_attention,
     "bf16[5,4,8] bf16[9,2,32,8] bf16[9,2,32,8] i32[3,2] i32[3] i32[4]",
     {.attention = {.scale = 1, .few_rows = true}},
     "bf16[5,4,8]",
     "paged_attention bf16 any t5 h4 kv2 d8 seqs3 causal few_rows"},
    {OP_kv_append, "f32[5,2,8] f32[5,2,8] i32[5] f32[9,2,32,8] f32[9,2,32,8]", NO_ATTRS, "f32[9,2,32,8] f32[9,2,32,8]",
     "kv_append f32 any [5,2,8]"},
    {OP_rope_table, "i32[5,2]", ROPE(ROPE_AXIAL_2D, 1e4f, 72, {0}), "f32[5,36,2]", "rope_table f32 any t5 d72 axial_2d"},
    {OP_rope_table, "i32[5,3]", ROPE(ROPE_MROPE, 5e5f, 128, {16, 24, 24}), "f32[5,64,2]",
     "rope_table f32 any t5 d128 mrope"},
    {OP_rope, "bf16[5,2,8] f32[5,4,2]", NO_ATTRS, "bf16[5,2,8]", "rope bf16 any [5,2,8]"},
    {OP_position_embedding,
     "bf16[6,8] bf16[9,8] i32[1,3]",
     {.position = {true}},
     "bf16[6,8]",
     "position_embedding bf16 any [6,8] images1 align_corners"},
    {OP_patch_merge, "f16[8,3] i32[2,3]", MERGE(2), "f16[2,12]", "patch_merge f16 any [8,3] images2"},
    {OP_embedding, "i32[5] f16[9,8]", NO_ATTRS, "f16[5,8]", "embedding f16 any [5] [9,8]"},
    {OP_index_select, "bf16[9,8] i32[0]", NO_ATTRS, "bf16[0,8]", "index_select bf16 any [9,8] [0]"},
    {OP_merge_multimodal, "bf16[5,8] bf16[0,8] i32[5]", NO_ATTRS, "bf16[5,8]", "merge_multimodal bf16 any [5,8] [0,8]"},
    {OP_gelu, "bf16[2,3]", {.gelu = {true}}, "bf16[2,3]", "gelu bf16 any [2,3] tanh"},
    {OP_gelu, "bf16[]", NO_ATTRS, "bf16[]", "gelu bf16 any [] erf"},
    {OP_silu, "f16[2,0]", NO_ATTRS, "f16[2,0]", "silu f16 any [2,0]"},
    {OP_relu, "f32[1,2,3,4,5,6]", NO_ATTRS, "f32[1,2,3,4,5,6]", "relu f32 any [1,2,3,4,5,6]"},
    {OP_add, "bf16[2] bf16[2]", NO_ATTRS, "bf16[2]", "add bf16 any [2]"},
    {OP_multiply, "f32[2,2] f32[2,2]", NO_ATTRS, "f32[2,2]", "multiply f32 any [2,2]"},
    {OP_cast, "f32[3]", TO(INK_BF16), "bf16[3]", "cast f32 any [3] to=bf16"},
    {OP_reshape, "i32[4,2]", RESHAPE(3, {0, -1, 1}), "i32[4,2,1]", "reshape i32 any [4,2]"},
    {OP_argmax, "f32[0,8]", NO_ATTRS, "i32[0]", "argmax f32 any [0,8]"},
    {OP_sample, "f32[2,8] f32[2,3] i64[2,2] i32[2,0] i32[2]", NO_ATTRS, "i32[2]", "sample f32 any [2,8]"},
};

static void test_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof valid_cases / sizeof *valid_cases; i++) {
        const valid *v = &valid_cases[i];
        call k;
        strbuf got = {0};
        parse_call(&k, v->op, v->inputs, &v->attrs);
        if (op_infer(&k.c) != INK_OK)
            fail_msg("%s: %s", v->described, ink_last_error());
        for (int o = 0; o < op_schema_of(v->op)->n_out; o++) {
            strbuf_printf(&got, "%s%s", o ? " " : "", ink_dtype_name(k.out[o].dtype));
            tensor_shape_text(&k.out[o], &got);
            assert_true(ink_tensor_is_contiguous(&k.out[o]));
        }
        assert_string_equal(strbuf_text(&got), v->outputs);
        strbuf_truncate(&got, 0);
        op_describe(&k.c, &got);
        assert_string_equal(strbuf_text(&got), v->described);
        strbuf_free(&got);
        op_cost cost = op_schema_of(v->op)->cost(&k.c);
        assert_true(cost.flops >= 0 && cost.bytes >= 0);
    }
}

/* The name of input i in the schema's list. */
static void name_of_input(const op_schema *s, int i, char *out, bool *optional)
{
    const char *p = s->inputs;
    for (; i > 0; i--)
        p = strchr(p, ',') + 2;
    size_t n = strcspn(p, ",?");
    *optional = p[n] == '?';
    memcpy(out, p, n);
    out[n] = 0;
}

static void test_missing_and_strided_inputs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof valid_cases / sizeof *valid_cases; i++) {
        const valid *v = &valid_cases[i];
        const op_schema *s = op_schema_of(v->op);
        for (int in = 0; in < s->n_in; in++) {
            char name[32], expected[128];
            bool optional;
            call k;
            name_of_input(s, in, name, &optional);
            parse_call(&k, v->op, v->inputs, &v->attrs);
            k.c.in[in] = NULL;
            if (optional)
                assert_int_equal(op_infer(&k.c), INK_OK);
            else {
                snprintf(expected, sizeof expected, "%s: input %s is missing", s->name, name);
                assert_int_equal(op_infer(&k.c), INK_INVALID_ARGUMENT);
                assert_string_equal(ink_last_error(), expected);
            }
            parse_call(&k, v->op, v->inputs, &v->attrs);
            ink_tensor *t = &k.in[in];
            if (!k.c.in[in] || !t->rank || t->dims[t->rank - 1] < 2 || s->strided)
                continue;
            t->strides[t->rank - 1] = 2;
            snprintf(expected, sizeof expected, "%s: input %s must be contiguous", s->name, name);
            assert_int_equal(op_infer(&k.c), INK_INVALID_ARGUMENT);
            assert_string_equal(ink_last_error(), expected);
        }
    }
}

/* Shapes whose element count does not fit are refused, not wrapped. */
static void test_overflowing_outputs(void **state)
{
    (void)state;
    call k;
    parse_call(&k, OP_linear, "bf16[4611686018427387904,0] bf16[4,0] - -", &(op_attrs)NO_ATTRS);
    assert_int_equal(op_infer(&k.c), INK_INVALID_ARGUMENT);
    assert_string_equal(ink_last_error(), "linear: tensor: the product of its dimensions does not fit 63 bits");
    parse_call(&k, OP_embedding, "i32[1073741824] bf16[0,4611686018427387904]", &(op_attrs)NO_ATTRS);
    assert_int_equal(op_infer(&k.c), INK_INVALID_ARGUMENT);
    parse_call(&k, OP_rope_table, "i32[576460752303423488,2]", &(op_attrs)ROPE(ROPE_AXIAL_2D, 1e4f, 8, {0}));
    assert_int_equal(op_infer(&k.c), INK_INVALID_ARGUMENT);
}

static void test_costs(void **state)
{
    (void)state;
    call k;
    parse_call(&k, OP_linear, "bf16[6,8] bf16[4,8] bf16[4] -", &(op_attrs)NO_ATTRS);
    assert_int_equal(op_infer(&k.c), INK_OK);
    op_cost c = op_schema_of(OP_linear)->cost(&k.c);
    assert_true(c.flops == 2.0 * 6 * 8 * 4 && c.bytes == 2.0 * (6 * 8 + 4 * 8 + 4 + 6 * 4));
    parse_call(&k, OP_embedding, "i32[5] bf16[1000,8]", &(op_attrs)NO_ATTRS);
    assert_int_equal(op_infer(&k.c), INK_OK);
    c = op_schema_of(OP_embedding)->cost(&k.c);
    assert_true(c.flops == 0 && c.bytes == 2.0 * 5 * 8 * 2); /* rows read and written, not the table */
}

static void test_names(void **state)
{
    (void)state;
    op_id op;
    for (int i = 0; i < OP_COUNT; i++) {
        assert_true(op_parse(op_schema_of((op_id)i)->name, &op));
        assert_int_equal(op, i);
    }
    assert_false(op_parse("conv2", &op));
    assert_string_equal(activation_name((activation)-1), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_every_op_is_covered),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_missing_and_strided_inputs),
        cmocka_unit_test(test_overflowing_outputs),
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
