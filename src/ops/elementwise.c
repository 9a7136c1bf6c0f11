/* elementwise.c - schemas of gelu, silu, relu, add, multiply. FP32 arithmetic, one rounding.
 * add and multiply take operands of one shape; broadcasting arrives with the operator library. */
#include "ops/op.h"

static ink_status infer_unary(op_call *c)
{
    TRY(want_float(c->op, "x", c->in[0]));
    out_like(c, 0, c->in[0]);
    return INK_OK;
}

static ink_status infer_binary(op_call *c)
{
    TRY(want_float(c->op, "x", c->in[0]));
    TRY(want_dtype(c->op, "y", c->in[1], c->in[0]->dtype));
    TRY(want_shape(c->op, "y", c->in[1], c->in[0]->rank, c->in[0]->dims));
    out_like(c, 0, c->in[0]);
    return INK_OK;
}

static op_cost cost_activation(const op_call *c) { return op_cost_streaming(c, 8); }
static op_cost cost_binary(const op_call *c) { return op_cost_streaming(c, 1); }

static void describe(const op_call *c, strbuf *out)
{
    tensor_shape_text(c->in[0], out);
    if (c->op == OP_gelu)
        strbuf_puts(out, c->attrs.gelu.approximate ? " tanh" : " erf");
}

#define UNARY(op)                   \
    const op_schema schema_##op = { \
        .name = #op,                \
        .inputs = "x",              \
        .outputs = "y",             \
        .n_in = 1,                  \
        .n_out = 1,                 \
        .infer = infer_unary,       \
        .cost = cost_activation,    \
        .describe = describe,       \
    }
#define BINARY(op)                  \
    const op_schema schema_##op = { \
        .name = #op,                \
        .inputs = "x, y",           \
        .outputs = "z",             \
        .n_in = 2,                  \
        .n_out = 1,                 \
        .infer = infer_binary,      \
        .cost = cost_binary,        \
        .describe = describe,       \
    }
UNARY(gelu);
UNARY(silu);
UNARY(relu);
BINARY(add);
BINARY(multiply);
