/* attrs.h - attributes of each operator family. A call carries one op_attrs; the schema says which member is meant. */
#ifndef OPS_ATTRS_H
#define OPS_ATTRS_H
#include "inkstone/base.h"

typedef enum activation {
    ACT_NONE,
    ACT_RELU,
    ACT_GELU_ERF,  /* x * Phi(x) */
    ACT_GELU_TANH, /* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    ACT_SILU,      /* x * sigmoid(x) */
    ACT_COUNT
} activation;

typedef enum padding_algorithm { PAD_EXPLICIT, PAD_SAME, PAD_VALID } padding_algorithm;

/* conv2d, fused_conv2d_add_act. Pads are top, bottom, left, right (operators.md 1.2). */
typedef struct conv2d_attrs {
    int64_t strides[2], paddings[4], dilations[2], groups;
    padding_algorithm algorithm;
    activation act; /* fused_conv2d_add_act only */
} conv2d_attrs;

/* linear, linear_gated. `few_rows` sends the call to the rows for generated tokens (at most 64 input rows), which stream
 * the weight once: a property of the graph, never of the number of rows at run time, so that a row's bits do not depend
 * on how many rows are beside it. */
typedef struct linear_attrs {
    activation act; /* linear: none or any; linear_gated: of the gate, ACT_SILU */
    bool few_rows;
    bool out_f32; /* store FP32 instead of the input's dtype (logits) */
} linear_attrs;

typedef struct norm_attrs {
    float epsilon;
    int begin_norm_axis; /* layer_norm; rms_norm normalises the last axis */
} norm_attrs;

typedef struct axis_attrs {
    int axis; /* softmax, argmax: negative counts from the end */
} axis_attrs;

typedef struct attention_attrs {
    float scale;
    bool causal;   /* attention: query i of a segment sees keys 0..i; paged_attention is always causal */
    bool few_rows; /* paged_attention: rows for generated tokens, see linear_attrs */
} attention_attrs;

typedef enum rope_kind {
    ROPE_AXIAL_2D, /* vision: positions (row, column), D/4 frequencies each, theta^(-2k/(D/2)); row first */
    ROPE_MROPE,    /* text: positions (t, h, w), D/2 frequencies theta^(-2i/D) shared out by `sections` */
} rope_kind;

typedef struct rope_table_attrs {
    rope_kind kind;
    float theta;
    int head_dim;
    int sections[3]; /* ROPE_MROPE: frequencies taken from t, h, w; sums to head_dim / 2 */
} rope_table_attrs;

typedef struct position_attrs {
    bool align_corners; /* source coordinate r*(G-1)/(g-1) instead of the half-pixel (r+0.5)*G/g - 0.5, clamped at 0 */
} position_attrs;

typedef struct merge_attrs {
    int merge; /* patch_merge: side of the square of patches that becomes one token */
} merge_attrs;

typedef struct gelu_attrs {
    bool approximate; /* the tanh form */
} gelu_attrs;

typedef struct cast_attrs {
    ink_dtype to;
} cast_attrs;

typedef struct reshape_attrs {
    int rank;
    int64_t dims[INK_MAX_RANK]; /* 0 copies the input's dimension of the same index, one -1 is inferred */
} reshape_attrs;

typedef union op_attrs {
    conv2d_attrs conv2d;
    linear_attrs linear;
    norm_attrs norm;
    axis_attrs axis;
    attention_attrs attention;
    rope_table_attrs rope_table;
    position_attrs position;
    merge_attrs merge;
    gelu_attrs gelu;
    cast_attrs cast;
    reshape_attrs reshape;
} op_attrs;
#endif
