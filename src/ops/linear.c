/* linear.c - schemas of linear and linear_gated.
 *
 * linear:       y = act(x W^T + bias) + residual      x [.., K], weight [N, K] as in a checkpoint, y [.., N]
 * linear_gated: y = silu(x Wg^T) * (x Wu^T)           the two halves of a gated MLP, one rounding at the end
 * Products accumulate in FP32; everything after is FP32 until the one rounding of the store. */
#include "ops/op.h"

static ink_status check_weight(const op_call *c, const char *name, const ink_tensor *w)
{
    int64_t n = w->rank == 2 ? w->dims[0] : 0;
    TRY(want_dtype(c->op, name, w, c->in[0]->dtype));
    return want_shape(c->op, name, w, 2, (int64_t[]){n, tensor_last(c->in[0])});
}

static ink_status infer_output(op_call *c, int64_t n)
{
    const ink_tensor *x = c->in[0];
    int64_t dims[INK_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    dims[x->rank - 1] = n;
    return out_shape(c, 0, c->attrs.linear.out_f32 ? INK_F32 : x->dtype, x->rank, dims);
}

static ink_status infer_linear(op_call *c)
{
    const ink_tensor *x = c->in[0], *w = c->in[1], *bias = c->in[2], *residual = c->in[3];
    const linear_attrs *a = &c->attrs.linear;
    TRY(want_float(c->op, "x", x));
    if (x->rank < 1)
        return failure(INK_INVALID_ARGUMENT, "linear: x has rank 0, expected at least 1");
    if ((unsigned)a->act >= ACT_COUNT)
        return failure(INK_INVALID_ARGUMENT, "linear: unknown activation %d", (int)a->act);
    TRY(check_weight(c, "weight", w));
    TRY(want_shape(c->op, "bias", bias, 1, w->dims));
    if (bias && bias->dtype != INK_F32)
        TRY(want_dtype(c->op, "bias", bias, x->dtype));
    TRY(infer_output(c, w->dims[0]));
    if (residual && c->out[0]) {
        TRY(want_dtype(c->op, "residual", residual, x->dtype));
        TRY(want_shape(c->op, "residual", residual, c->out[0]->rank, c->out[0]->dims));
    }
    return INK_OK;
}

static ink_status infer_linear_gated(op_call *c)
{
    const ink_tensor *x = c->in[0];
    TRY(want_float(c->op, "x", x));
    if (x->rank < 1)
        return failure(INK_INVALID_ARGUMENT, "linear_gated: x has rank 0, expected at least 1");
    if (c->attrs.linear.act != ACT_SILU)
        return failure(INK_INVALID_ARGUMENT, "linear_gated: activation %s, expected silu",
                       activation_name(c->attrs.linear.act));
    TRY(check_weight(c, "w_gate", c->in[1]));
    TRY(want_dtype(c->op, "w_up", c->in[2], x->dtype));
    TRY(want_shape(c->op, "w_up", c->in[2], 2, c->in[1]->dims));
    return infer_output(c, c->in[1]->dims[0]);
}

static op_cost cost(const op_call *c)
{
    double k = (double)tensor_last(c->in[0]), matrices = c->op == OP_linear_gated ? 2 : 1;
    return op_cost_streaming(c, 2 * k * matrices);
}

static void describe(const op_call *c, strbuf *out)
{
    strbuf_printf(out, "m%lld n%lld k%lld", (long long)tensor_rows(c->in[0]), (long long)c->in[1]->dims[0],
                  (long long)tensor_last(c->in[0]));
    if (c->attrs.linear.act != ACT_NONE)
        strbuf_printf(out, " act=%s", activation_name(c->attrs.linear.act));
    if (c->op == OP_linear && c->in[2])
        strbuf_printf(out, " bias=%s", ink_dtype_name(c->in[2]->dtype));
    if (c->op == OP_linear && c->in[3])
        strbuf_puts(out, " residual");
    if (c->attrs.linear.few_rows)
        strbuf_puts(out, " few_rows");
    if (c->attrs.linear.out_f32)
        strbuf_puts(out, " out=f32");
}

const op_schema schema_linear = {
    .name = "linear",
    .inputs = "x, weight, bias?, residual?",
    .outputs = "y",
    .n_in = 4,
    .n_out = 1,
    .infer = infer_linear,
    .cost = cost,
    .describe = describe,
};

const op_schema schema_linear_gated = {
    .name = "linear_gated",
    .inputs = "x, w_gate, w_up",
    .outputs = "y",
    .n_in = 3,
    .n_out = 1,
    .infer = infer_linear_gated,
    .cost = cost,
    .describe = describe,
};
