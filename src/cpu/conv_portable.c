#include "cpu/activation.h"
#include "cpu/conv.h"

static bool is_patch(const conv2d_geometry *g)
{
    for (int i = 0; i < 2; i++)
        if (g->k[i] != g->in[i] || g->out[i] != 1 || g->pad[i] || (g->dilation[i] != 1 && g->k[i] != 1))
            return false;
    return g->groups == 1;
}

static bool is_pointwise(const conv2d_geometry *g)
{
    for (int i = 0; i < 2; i++)
        if (g->k[i] != 1 || g->stride[i] != 1 || g->out[i] != g->in[i])
            return false;
    return true;
}

static bool reaches_over(int64_t in, int64_t out, int64_t k, int64_t stride, int64_t dilation, int64_t pad)
{
    return pad > 0 || (out - 1) * stride - pad + (k - 1) * dilation >= in;
}

conv_problem conv_problem_of(const op_call *c)
{
    conv2d_geometry g;
    conv_problem p = {.x = c->in[0]->data, .w = c->in[1]->data, .y = c->out[0] ? c->out[0]->data : NULL};
    if (conv2d_geometry_of(c, &g) != INK_OK) /* cannot happen behind op_infer */
        return p;
    const ink_tensor *residual = c->op == OP_fused_conv2d_add_act ? c->in[3] : NULL;
    p.dtype = c->in[0]->dtype;
    p.bias = c->in[2] ? c->in[2]->data : NULL;
    p.bias_dtype = c->in[2] ? c->in[2]->dtype : INK_F32;
    p.residual = residual ? residual->data : NULL;
    p.act = c->attrs.conv2d.act;
    p.channels_last = c->in[0]->layout == INK_NHWC;
    p.images = g.n, p.groups = g.groups, p.channels = g.c, p.out_channels = g.m;
    p.h = g.in[0], p.w_in = g.in[1], p.oh = g.out[0], p.ow = g.out[1], p.kh = g.k[0], p.kw = g.k[1];
    p.sh = g.stride[0], p.sw = g.stride[1], p.dh = g.dilation[0], p.dw = g.dilation[1], p.ph = g.pad[0], p.pw = g.pad[1];
    p.padded = reaches_over(p.h, p.oh, p.kh, p.sh, p.dh, p.ph) || reaches_over(p.w_in, p.ow, p.kw, p.sw, p.dw, p.pw);
    if (is_patch(&g) && (!p.channels_last || g.c == 1 || g.in[0] * g.in[1] == 1)) {
        p.channels *= p.kh * p.kw;
        p.h = p.w_in = p.kh = p.kw = p.sh = p.sw = p.dh = p.dw = 1;
        p.channels_last = true; /* one pixel: y is [images, channels] in either layout */
    } else if (is_pointwise(&g)) {
        p.w_in *= p.h, p.ow *= p.oh;
        p.h = p.oh = 1;
        if (p.channels_last) { /* rows of all images follow each other */
            p.w_in *= p.images, p.ow *= p.images;
            p.images = 1;
        }
    }
    p.c = p.channels / p.groups, p.m = p.out_channels / p.groups;
    p.pixels = p.oh * p.ow;
    p.depth = p.c * p.kh * p.kw;
    return p;
}

float conv_point(const conv_problem *p, int64_t image, int64_t m, int64_t oh, int64_t ow)
{
    const int64_t first = m / p->m * p->c; /* the group's first channel */
    float sum = 0;
    for (int64_t c = 0; c < p->c; c++)
        for (int64_t r = 0; r < p->kh; r++) {
            int64_t ih = oh * p->sh + r * p->dh - p->ph;
            for (int64_t q = 0; q < p->kw && ih >= 0 && ih < p->h; q++) {
                int64_t iw = ow * p->sw + q * p->dw - p->pw, ch = first + c;
                if (iw < 0 || iw >= p->w_in)
                    continue;
                int64_t at = p->channels_last ? ((image * p->h + ih) * p->w_in + iw) * p->channels + ch
                                              : ((image * p->channels + ch) * p->h + ih) * p->w_in + iw;
                sum = fmaf(load_f32(p->x, p->dtype, at), load_f32(p->w, p->dtype, ((m * p->c + c) * p->kh + r) * p->kw + q),
                           sum);
            }
        }
    return sum;
}

static void finish(const conv_problem *p, int64_t image, int64_t m, int64_t oh, int64_t ow)
{
    float v = conv_point(p, image, m, oh, ow);
    int64_t at = conv_out_index(p, image, m, oh * p->ow + ow);
    if (p->bias)
        v += load_f32(p->bias, p->bias_dtype, m);
    if (p->residual)
        v += load_f32(p->residual, p->dtype, at);
    store_f32(p->y, p->dtype, at, activate(v, p->act));
}

ink_status conv_portable(const op_call *c)
{
    const conv_problem p = conv_problem_of(c);
    const int64_t rows = p.images * p.out_channels * p.oh;
#pragma omp parallel for num_threads(c->threads) if ((double)rows * (double)p.ow * (double)p.depth > 1e4)
    for (int64_t i = 0; i < rows; i++)
        for (int64_t ow = 0; ow < p.ow; ow++)
            finish(&p, i / (p.out_channels * p.oh), i / p.oh % p.out_channels, i % p.oh, ow);
    return INK_OK;
}

static bool window_inside(int64_t o, int64_t in, int64_t k, int64_t stride, int64_t dilation, int64_t pad)
{
    return o * stride >= pad && o * stride - pad + (k - 1) * dilation < in;
}

void conv_redo_border(const conv_problem *p, int threads)
{
    const int64_t rows = p->images * p->out_channels * p->oh;
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < rows; i++)
        for (int64_t ow = 0; ow < p->ow; ow++)
            if (!window_inside(i % p->oh, p->h, p->kh, p->sh, p->dh, p->ph) ||
                !window_inside(ow, p->w_in, p->kw, p->sw, p->dw, p->pw))
                finish(p, i / (p->out_channels * p->oh), i / p->oh % p->out_channels, i % p->oh, ow);
}
