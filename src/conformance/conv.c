#include "ops/conv.h"
#include "conformance/conformance.h"
#include "conformance/reference.h"
#include "core/dtype.h"

#include <math.h>

/* Spatial attributes that leave at least one output on each axis, and `extra` cells more at most. */
static void draw_geometry(conf_case *k, int64_t extra, int64_t in[2], int64_t window[2], conv2d_attrs *a)
{
    const bool patch = conf_chance(k, 12), same_axes = conf_chance(k, 50);
    a->algorithm = conf_chance(k, 75) ? PAD_EXPLICIT : conf_chance(k, 60) ? PAD_SAME : PAD_VALID;
    for (int i = 0; i < 2; i++) {
        window[i] = conf_chance(k, 40) ? 3 : rng_range(&k->random, 1, conf_chance(k, 10) ? 9 : 4);
        if (same_axes && i)
            window[i] = window[0];
        a->strides[i] = conf_chance(k, 60) ? 1 : rng_range(&k->random, 1, 4);
        a->dilations[i] = conf_chance(k, 75) ? 1 : rng_range(&k->random, 1, 3);
        if (conf_chance(k, 60))
            a->paddings[2 * i] = a->paddings[2 * i + 1] = rng_range(&k->random, 0, window[i] / 2 + 1);
        else
            for (int e = 0; e < 2; e++)
                a->paddings[2 * i + e] = rng_range(&k->random, 0, window[i] + 1);
        int64_t pads = a->algorithm == PAD_EXPLICIT ? a->paddings[2 * i] + a->paddings[2 * i + 1] : 0;
        int64_t extent = (a->algorithm == PAD_SAME ? 1 : a->dilations[i]) * (window[i] - 1) + 1;
        int64_t least = a->algorithm == PAD_SAME ? 1 : extent - pads > 1 ? extent - pads : 1;
        in[i] = least + (conf_chance(k, 15) ? 0 : rng_range(&k->random, 0, extra));
        if (patch) {
            in[i] = window[i] * (conf_chance(k, 60) ? 1 : rng_range(&k->random, 1, 4));
            a->strides[i] = window[i];
            a->dilations[i] = 1;
            a->paddings[2 * i] = a->paddings[2 * i + 1] = 0;
        }
    }
}

static int64_t draw_channels(conf_case *k)
{
    switch (rng_below(&k->random, 3)) {
    case 0: return rng_range(&k->random, 1, 5);
    case 1: return 8 * rng_range(&k->random, 1, 4) + rng_range(&k->random, -1, 1);
    default: return rng_range(&k->random, 1, k->size ? 150 : 48);
    }
}

static ink_status draw_conv(conf_case *k, ink_dtype dtype, ink_layout layout, bool fused)
{
    conv2d_attrs *a = &k->call.attrs.conv2d;
    int64_t in[2], window[2], c = draw_channels(k), m = draw_channels(k),
                              n = conf_chance(k, 3) ? 0 : rng_range(&k->random, 1, 3);
    a->groups = conf_chance(k, 65) ? 1 : rng_range(&k->random, 2, 8);
    if (a->groups > 1 && conf_chance(k, 30)) /* depthwise, with multiplier */
        a->groups = c, c = 1, m = rng_range(&k->random, 1, 2);
    else if (a->groups > 1)
        c = (c + 3) / 4, m = (m + 3) / 4;
    if (conf_chance(k, 10) && a->groups == 1) /* a long reduction */
        c += 300;
    if (k->size && conf_chance(k, 20) && a->groups == 1) /* several blocks of output channels */
        m += 500;
    const double cells = (k->size ? 1e7 : 5e5) / (double)(c * m * a->groups * (n ? n : 1)); /* FP64 products are slow */
    const int64_t most = k->size ? 40 : 14, extra = cells < 9.0 * (double)(most * most) ? (int64_t)sqrt(cells / 9) : most;
    draw_geometry(k, extra, in, window, a);
    if (fused)
        a->act = (activation)rng_below(&k->random, ACT_COUNT);
    if (layout == INK_LAYOUT_ANY)
        layout = conf_chance(k, 50) ? INK_NCHW : INK_NHWC;
    int64_t channels = c * a->groups, out_channels = m * a->groups;
    int64_t nchw[4] = {n, channels, in[0], in[1]}, nhwc[4] = {n, in[0], in[1], channels};
    int64_t filter[4] = {out_channels, c, window[0], window[1]};
    const bool exact = conf_chance(k, 20); /* small integers: every sum is exact */
    ink_tensor *x = exact ? conf_input_int(k, 0, dtype, 4, layout == INK_NHWC ? nhwc : nchw, -3, 3)
                          : conf_input(k, 0, dtype, 4, layout == INK_NHWC ? nhwc : nchw, conf_chance(k, 10) ? 1e-3 : 1);
    if (!x)
        return INK_RESOURCE_EXHAUSTED;
    x->layout = layout;
    if (exact)
        conf_input_int(k, 1, dtype, 4, filter, -2, 2);
    else
        conf_input(k, 1, dtype, 4, filter, 1 / sqrt((double)(c * window[0] * window[1])));
    if (!exact && conf_chance(k, 10))
        conf_special_values(k, 0, conf_chance(k, 50));
    if (!exact && conf_chance(k, 10))
        conf_special_values(k, 1, conf_chance(k, 60));
    if (conf_chance(k, 60)) {
        ink_dtype bias = conf_chance(k, 30) ? INK_F32 : dtype;
        if (exact)
            conf_input_int(k, 2, bias, 1, &out_channels, -4, 4);
        else
            conf_input(k, 2, bias, 1, &out_channels, 0.5);
    }
    if (!fused || conf_chance(k, 50))
        return INK_OK;
    conv2d_geometry g;
    TRY(conv2d_geometry_of(&k->call, &g));
    int64_t out_nchw[4] = {n, out_channels, g.out[0], g.out[1]}, out_nhwc[4] = {n, g.out[0], g.out[1], out_channels};
    const int64_t *out = layout == INK_NHWC ? out_nhwc : out_nchw;
    if (exact)
        conf_input_int(k, 3, dtype, 4, out, -4, 4);
    else
        conf_input(k, 3, dtype, 4, out, 1);
    return INK_OK;
}

static ink_status draw_conv2d(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    return draw_conv(k, dtype, layout, false);
}
static ink_status draw_fused(conf_case *k, ink_dtype dtype, ink_layout layout) { return draw_conv(k, dtype, layout, true); }

/* Element number of (image, channel, row, column) in a tensor of the given layout. */
static int64_t element(const ink_tensor *t, int64_t n, int64_t c, int64_t h, int64_t w)
{
    return t->layout == INK_NHWC ? ((n * t->dims[1] + h) * t->dims[2] + w) * t->dims[3] + c
                                 : ((n * t->dims[1] + c) * t->dims[2] + h) * t->dims[3] + w;
}

/* What one output sums up, bias and residual included; *exact: integers only, small enough for exact FP32 sums. */
static ref_sum window_sum(const conf_case *k, const conv2d_geometry *g, int64_t n, int64_t m, int64_t oh, int64_t ow,
                          bool *exact)
{
    const int64_t per_group = g->c / g->groups, first = m / (g->m / g->groups) * per_group;
    ref_sum s = {0};
    *exact = true;
    for (int64_t c = 0; c < per_group; c++)
        for (int64_t r = 0; r < g->k[0]; r++)
            for (int64_t q = 0; q < g->k[1]; q++) {
                int64_t h = oh * g->stride[0] + r * g->dilation[0] - g->pad[0],
                        w = ow * g->stride[1] + q * g->dilation[1] - g->pad[1];
                if (h < 0 || h >= g->in[0] || w < 0 || w >= g->in[1])
                    continue;
                double a = conf_in(k, 0, element(&k->in[0], n, first + c, h, w));
                double b = conf_in(k, 1, ((m * per_group + c) * g->k[0] + r) * g->k[1] + q);
                *exact = *exact && a == floor(a) && b == floor(b);
                ref_product(&s, a, b);
            }
    double bias = k->call.in[2] ? conf_in(k, 2, m) : 0;
    double residual =
        k->call.op == OP_fused_conv2d_add_act && k->call.in[3] ? conf_in(k, 3, element(&k->out[0], n, m, oh, ow)) : 0;
    ref_term(&s, bias);
    ref_term(&s, residual);
    *exact = *exact && bias == floor(bias) && residual == floor(residual) && s.magnitude < 0x1p24;
    return s;
}

static double rounded(ink_dtype t, double v)
{
    uint64_t element = 0;
    store_f64(&element, t, 0, v);
    return load_f64(&element, t, 0);
}

static ink_status reference(conf_case *k)
{
    conv2d_geometry g;
    TRY(conv2d_geometry_of(&k->call, &g));
    for (int64_t n = 0; n < g.n; n++)
        for (int64_t m = 0; m < g.m; m++)
            for (int64_t oh = 0; oh < g.out[0]; oh++)
                for (int64_t ow = 0; ow < g.out[1]; ow++) {
                    bool exact;
                    ref_sum s = window_sum(k, &g, n, m, oh, ow, &exact);
                    const activation act = k->call.attrs.conv2d.act;
                    const int64_t at = element(&k->out[0], n, m, oh, ow);
                    double slope, y = ref_activation(s.sum, act, &slope);
                    double error = ref_sum_error(k, &s) * slope + fabs(y) * 0x1p-20;
                    k->expect[0][at] = y;
                    k->bound[0][at] = error + conf_store_error(k->out[0].dtype, y);
                    if (exact && (act == ACT_NONE || act == ACT_RELU)) {
                        k->expect[0][at] = rounded(k->out[0].dtype, y);
                        k->bound[0][at] = 0;
                    }
                }
    return INK_OK;
}

const conf_op conf_conv2d = {OP_conv2d, draw_conv2d, reference};
const conf_op conf_fused_conv2d_add_act = {OP_fused_conv2d_add_act, draw_fused, reference};
