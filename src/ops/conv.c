/* conv.c - schemas of conv2d and fused_conv2d_add_act (operators.md 1.1 to 1.3, 1.9).
 *
 * y[n,m,o] = act(sum_{c < C/g, k} w[m,c,k] x[n, gamma C/g + c, s o + d k - pad_begin] + bias[m] + residual[n,m,o]),
 * cross-correlation, x = 0 outside (not multiplied: an infinite weight meets no zero there). filter [M, C/g, Kh, Kw] in
 * every layout. out_i = (in_i + b_i + e_i - d_i (K_i - 1) - 1) / s_i + 1. FP32 accumulation, one rounding. bias [M] is x's
 * dtype or F32. SAME (Paddle): out = ceil(in / s), total = max((out - 1) s + K - in, 0) with the raw kernel size, the odd
 * cell at the end, and dilation becomes 1. VALID: no pads. */
#include "ops/conv.h"

static const char *const axis_names[2] = {"height", "width"};

int conv2d_channel_axis(const ink_tensor *x) { return x->layout == INK_NHWC ? 3 : 1; }
int conv2d_height_axis(const ink_tensor *x) { return x->layout == INK_NHWC ? 1 : 2; }

ink_status conv2d_geometry_of(const op_call *c, conv2d_geometry *g)
{
    const char *name = op_schema_of(c->op)->name;
    const conv2d_attrs *a = &c->attrs.conv2d;
    const ink_tensor *x = c->in[0], *w = c->in[1];
    int h = conv2d_height_axis(x);
    *g = (conv2d_geometry){.n = x->dims[0], .c = x->dims[conv2d_channel_axis(x)], .m = w->dims[0], .groups = a->groups};
    for (int i = 0; i < 2; i++) {
        int64_t in = x->dims[h + i], k = w->dims[2 + i], s = a->strides[i], d = a->dilations[i];
        int64_t b = a->paddings[2 * i], e = a->paddings[2 * i + 1];
        const int64_t limit = INT32_MAX;
        if (s < 1 || s > limit || d < 1 || d > limit)
            return failure(INK_INVALID_ARGUMENT, "%s: %s of %s is %lld, expected 1 to %lld", name,
                           s < 1 || s > limit ? "stride" : "dilation", axis_names[i],
                           (long long)(s < 1 || s > limit ? s : d), (long long)limit);
        if (b < 0 || e < 0 || b > limit || e > limit)
            return failure(INK_INVALID_ARGUMENT, "%s: padding of %s is %lld,%lld, expected 0 to %lld", name, axis_names[i],
                           (long long)b, (long long)e, (long long)limit);
        if (k < 1)
            return failure(INK_INVALID_ARGUMENT, "%s: the filter's %s is 0", name, axis_names[i]);
        if (k > limit || in > limit)
            return failure(INK_INVALID_ARGUMENT, "%s: %s of %lld is over the limit of %lld", name, axis_names[i],
                           (long long)(k > limit ? k : in), (long long)limit);
        if (a->algorithm == PAD_SAME) {
            int64_t out = (in + s - 1) / s, total = (out - 1) * s + k - in;
            total = total > 0 ? total : 0;
            d = 1;
            b = total / 2;
            e = total - b;
        } else if (a->algorithm == PAD_VALID)
            b = e = 0;
        int64_t extent = d * (k - 1) + 1;
        if (in + b + e < extent)
            return failure(INK_INVALID_ARGUMENT, "%s: a filter extent of %lld does not fit the padded %s of %lld", name,
                           (long long)extent, axis_names[i], (long long)(in + b + e));
        g->in[i] = in, g->k[i] = k, g->stride[i] = s, g->dilation[i] = d, g->pad[i] = b;
        g->out[i] = (in + b + e - extent) / s + 1;
    }
    return INK_OK;
}

static ink_status infer_conv2d(op_call *c)
{
    const char *name = op_schema_of(c->op)->name;
    const ink_tensor *x = c->in[0], *w = c->in[1], *bias = c->in[2],
                     *residual = c->op == OP_fused_conv2d_add_act ? c->in[3] : NULL;
    const conv2d_attrs *a = &c->attrs.conv2d;
    TRY(want_float(c->op, "input", x));
    TRY(want_rank(c->op, "input", x, 4));
    TRY(want_rank(c->op, "filter", w, 4));
    TRY(want_dtype(c->op, "filter", w, x->dtype));
    if (x->layout != INK_NCHW && x->layout != INK_NHWC)
        return failure(INK_INVALID_ARGUMENT, "%s: input layout is %s, expected nchw or nhwc", name,
                       ink_layout_name(x->layout));
    int64_t channels = x->dims[conv2d_channel_axis(x)];
    if (a->groups < 1 || a->groups > INT32_MAX)
        return failure(INK_INVALID_ARGUMENT, "%s: groups is %lld, expected at least 1", name, (long long)a->groups);
    if (w->dims[1] > INT64_MAX / a->groups || channels != w->dims[1] * a->groups)
        return failure(INK_INVALID_ARGUMENT,
                       "%s: the input has %lld channels, the filter expects %lld x %lld groups (data_format %s)", name,
                       (long long)channels, (long long)w->dims[1], (long long)a->groups, ink_layout_name(x->layout));
    if (w->dims[0] < 1 || w->dims[1] < 1 || w->dims[0] % a->groups)
        return failure(INK_INVALID_ARGUMENT, "%s: %lld output channels cannot be shared by %lld groups", name,
                       (long long)w->dims[0], (long long)a->groups);
    if ((unsigned)a->act >= ACT_COUNT || (c->op == OP_conv2d && a->act != ACT_NONE))
        return failure(INK_INVALID_ARGUMENT, "%s: activation %s is not accepted", name, activation_name(a->act));
    conv2d_geometry g;
    TRY(conv2d_geometry_of(c, &g));
    TRY(want_shape(c->op, "bias", bias, 1, w->dims));
    if (bias && bias->dtype != INK_F32)
        TRY(want_dtype(c->op, "bias", bias, x->dtype));
    int64_t nchw[4] = {g.n, g.m, g.out[0], g.out[1]}, nhwc[4] = {g.n, g.out[0], g.out[1], g.m};
    const int64_t *dims = x->layout == INK_NHWC ? nhwc : nchw;
    TRY(out_shape(c, 0, x->dtype, 4, dims));
    TRY(want_dtype(c->op, "residual", residual, x->dtype));
    return want_shape(c->op, "residual", residual, 4, dims);
}

static op_cost cost(const op_call *c)
{
    const ink_tensor *w = c->in[1];
    return op_cost_streaming(c, 2.0 * (double)w->dims[1] * (double)w->dims[2] * (double)w->dims[3]);
}

static void describe(const op_call *c, strbuf *out)
{
    const conv2d_attrs *a = &c->attrs.conv2d;
    const ink_tensor *w = c->in[1];
    conv2d_geometry g;
    if (conv2d_geometry_of(c, &g) != INK_OK)
        return;
    strbuf_printf(out, "n%lldc%lldh%lldw%lld o%lldk%lldx%lld s%lldx%lld", (long long)g.n, (long long)g.c,
                  (long long)g.in[0], (long long)g.in[1], (long long)g.m, (long long)w->dims[2], (long long)w->dims[3],
                  (long long)a->strides[0], (long long)a->strides[1]);
    if (a->algorithm == PAD_EXPLICIT)
        strbuf_printf(out, " p%lld,%lld,%lld,%lld", (long long)a->paddings[0], (long long)a->paddings[1],
                      (long long)a->paddings[2], (long long)a->paddings[3]);
    else
        strbuf_puts(out, a->algorithm == PAD_SAME ? " pSAME" : " pVALID");
    strbuf_printf(out, " d%lldx%lld g%lld fwd", (long long)a->dilations[0], (long long)a->dilations[1],
                  (long long)a->groups);
    if (c->in[2])
        strbuf_printf(out, " bias=%s", ink_dtype_name(c->in[2]->dtype));
    if (c->op == OP_fused_conv2d_add_act && c->in[3])
        strbuf_puts(out, " residual");
    if (a->act != ACT_NONE)
        strbuf_printf(out, " act=%s", activation_name(a->act));
}

const op_schema schema_conv2d = {
    .name = "conv2d",
    .inputs = "input, filter, bias?",
    .outputs = "out",
    .n_in = 3,
    .n_out = 1,
    .infer = infer_conv2d,
    .cost = cost,
    .describe = describe,
};
const op_schema schema_fused_conv2d_add_act = {
    .name = "fused_conv2d_add_act",
    .inputs = "input, filter, bias?, residual?",
    .outputs = "output",
    .n_in = 4,
    .n_out = 1,
    .infer = infer_conv2d,
    .cost = cost,
    .describe = describe,
};
