/* norm.c - schemas of layer_norm and rms_norm (operators.md 1.6, 1.7).
 *
 * layer_norm: mean and biased variance over the axes from begin_norm_axis, y = (x - mean) rsqrt(var + eps) scale + bias
 * rms_norm:   y = x rsqrt(mean(x^2) + eps) weight over the last axis
 * Statistics are FP32 (two passes, not E[x^2] - mean^2), one rounding at the store. scale and bias may be x's dtype or F32.
 */
#include "ops/op.h"

static ink_status check_parameter(const op_call *c, const char *name, const ink_tensor *t, int64_t n)
{
    TRY(want_shape(c->op, name, t, 1, (int64_t[]){n}));
    if (t && t->dtype != INK_F32)
        TRY(want_dtype(c->op, name, t, c->in[0]->dtype));
    return INK_OK;
}

static ink_status infer_layer_norm(op_call *c)
{
    const ink_tensor *x = c->in[0];
    const norm_attrs *a = &c->attrs.norm;
    TRY(want_float(c->op, "x", x));
    if (a->begin_norm_axis <= 0 || a->begin_norm_axis >= x->rank)
        return failure(INK_INVALID_ARGUMENT, "layer_norm: begin_norm_axis is %d, expected 1 to %d for rank %d",
                       a->begin_norm_axis, x->rank - 1, x->rank);
    if (!(a->epsilon >= 0 && a->epsilon <= 0.001f))
        return failure(INK_INVALID_ARGUMENT, "layer_norm: epsilon is %g, expected 0 to 0.001", (double)a->epsilon);
    int64_t right = 1;
    for (int i = a->begin_norm_axis; i < x->rank; i++)
        right *= x->dims[i];
    TRY(check_parameter(c, "scale", c->in[1], right));
    TRY(check_parameter(c, "bias", c->in[2], right));
    if (c->in[1] && c->in[2])
        TRY(want_dtype(c->op, "bias", c->in[2], c->in[1]->dtype));
    out_like(c, 0, x);
    TRY(out_shape(c, 1, INK_F32, a->begin_norm_axis, x->dims));
    return out_shape(c, 2, INK_F32, a->begin_norm_axis, x->dims);
}

static ink_status infer_rms_norm(op_call *c)
{
    const ink_tensor *x = c->in[0];
    TRY(want_float(c->op, "x", x));
    if (x->rank < 1)
        return failure(INK_INVALID_ARGUMENT, "rms_norm: x has rank 0, expected at least 1");
    if (!(c->attrs.norm.epsilon >= 0 && c->attrs.norm.epsilon <= 0.001f))
        return failure(INK_INVALID_ARGUMENT, "rms_norm: epsilon is %g, expected 0 to 0.001", (double)c->attrs.norm.epsilon);
    TRY(check_parameter(c, "weight", c->in[1], tensor_last(x)));
    out_like(c, 0, x);
    return INK_OK;
}

static op_cost cost(const op_call *c) { return op_cost_streaming(c, 8); }

static void describe(const op_call *c, strbuf *out)
{
    tensor_shape_text(c->in[0], out);
    if (c->op == OP_layer_norm)
        strbuf_printf(out, " axis%d", c->attrs.norm.begin_norm_axis);
    if (c->in[1])
        strbuf_printf(out, " scale=%s", ink_dtype_name(c->in[1]->dtype));
    if (c->op == OP_layer_norm && c->in[2])
        strbuf_puts(out, " bias");
    strbuf_printf(out, " eps=%g", (double)c->attrs.norm.epsilon);
}

const op_schema schema_layer_norm = {
    .name = "layer_norm",
    .inputs = "x, scale?, bias?",
    .outputs = "y, mean, variance",
    .n_in = 3,
    .n_out = 3,
    .infer = infer_layer_norm,
    .cost = cost,
    .describe = describe,
};

const op_schema schema_rms_norm = {
    .name = "rms_norm",
    .inputs = "x, weight",
    .outputs = "y",
    .n_in = 2,
    .n_out = 1,
    .infer = infer_rms_norm,
    .cost = cost,
    .describe = describe,
};
