/* linear.c - cases and FP64 references of linear and linear_gated. */
#include "conformance/conformance.h"
#include "conformance/reference.h"

#include <math.h>

/* A dimension: as conf_dim, or at the edge of a register tile, a cache block or a size of the model. */
static int64_t draw_dim(conf_case *k, int64_t most, bool zero)
{
    static const int64_t tiles[] = {6, 14, 16, 24, 32, 64, 96, 128, 144, 288},
                         model[] = {72, 256, 384, 588, 1024, 1152, 4304};
    int64_t n;
    if (conf_chance(k, 60))
        return conf_dim(k, most, zero);
    if (conf_chance(k, 60))
        n = tiles[rng_below(&k->random, 10)] * rng_range(&k->random, 1, 3) + rng_range(&k->random, -1, 1);
    else
        n = model[rng_below(&k->random, 7)] + rng_range(&k->random, -1, 1);
    return n > most ? rng_range(&k->random, 1, most) : n;
}

typedef struct shape {
    int64_t m, n, k;
} shape;

/* One side may be as long as the model's; then the others shrink until the FP64 reference takes a moment only. */
static shape draw_shape(conf_case *k, bool few_rows)
{
    const int64_t most = k->size ? 400 : 130, longest[3] = {1000, 1200, 4700};
    const int64_t work = k->size == 2 ? 20000000 : k->size ? 4000000 : 400000;
    const int long_side = conf_chance(k, 40) ? (int)rng_below(&k->random, 3) : -1;
    shape s = {.m = draw_dim(k,
                             few_rows         ? 64
                             : long_side == 0 ? longest[0]
                                              : most,
                             true),
               .n = draw_dim(k, long_side == 1 ? longest[1] : most, true),
               .k = draw_dim(k, long_side == 2 ? longest[2] : most, true)};
    while (s.m * s.n * s.k > work) {
        int64_t *shrink = long_side != 0 && (s.m >= s.n || long_side == 1) ? &s.m : long_side != 1 ? &s.n : &s.k;
        *shrink = *shrink > 2 ? *shrink * 3 / 4 : 1;
        if (s.m <= 2 && s.n <= 2)
            break;
    }
    return s;
}

/* Inputs 0 .. matrices: x [.., k] and the weights [n, k]. */
static void draw_operands(conf_case *k, ink_dtype dtype, const shape *s, int matrices, bool batched)
{
    const int64_t x_dims[3] = {batched ? 1 : s->m, batched ? s->m : s->k, s->k}, w_dims[2] = {s->n, s->k};
    if (conf_chance(k, 15)) { /* small integers: every sum is exact */
        conf_input_int(k, 0, dtype, 2 + batched, x_dims, -3, 3);
        for (int i = 1; i <= matrices; i++)
            conf_input_int(k, i, dtype, 2, w_dims, -2, 2);
        return;
    }
    conf_input(k, 0, dtype, 2 + batched, x_dims, conf_chance(k, 10) ? 1e-3 : 1);
    for (int i = 1; i <= matrices; i++)
        conf_input(k, i, dtype, 2, w_dims, s->k ? (conf_chance(k, 10) ? 4 : 1) / sqrt((double)s->k) : 1);
    if (conf_chance(k, 10))
        conf_special_values(k, (int)rng_below(&k->random, 2), conf_chance(k, 50));
}

static ink_status draw_linear(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)layout;
    linear_attrs *a = &k->call.attrs.linear;
    a->few_rows = conf_chance(k, 50);
    a->out_f32 = conf_chance(k, 20);
    a->act = conf_chance(k, 50) ? (activation)rng_below(&k->random, ACT_COUNT) : ACT_NONE;
    const bool batched = conf_chance(k, 20);
    const shape s = draw_shape(k, a->few_rows);
    draw_operands(k, dtype, &s, 1, batched);
    if (conf_chance(k, 50))
        conf_input(k, 2, conf_chance(k, 30) ? INK_F32 : dtype, 1, (int64_t[]){s.n}, 0.5);
    if (conf_chance(k, 40))
        conf_input(k, 3, dtype, 2 + batched, (int64_t[]){batched ? 1 : s.m, batched ? s.m : s.n, s.n}, 1);
    return INK_OK;
}

static ref_sum dot(const conf_case *k, int64_t i, int w, int64_t j)
{
    const int64_t depth = k->in[1].dims[1];
    ref_sum s = {0};
    for (int64_t p = 0; p < depth; p++)
        ref_product(&s, conf_in(k, 0, i * depth + p), conf_in(k, w, j * depth + p));
    return s;
}

static ink_status reference_linear(conf_case *k)
{
    const int64_t m = tensor_rows(&k->in[0]), n = k->in[1].dims[0];
    const activation act = k->call.attrs.linear.act;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            ref_sum s = dot(k, i, 1, j);
            if (k->call.in[2])
                ref_term(&s, conf_in(k, 2, j));
            double slope, y = ref_activation(s.sum, act, &slope);
            double error = ref_sum_error(k, &s) * slope + fabs(y) * 0x1p-20;
            if (k->call.in[3]) {
                double r = conf_in(k, 3, i * n + j);
                error += (fabs(y) + fabs(r)) * 0x1p-24;
                y += r;
            }
            k->expect[0][i * n + j] = y;
            k->bound[0][i * n + j] = error + conf_store_error(k->out[0].dtype, y);
        }
    return INK_OK;
}

static ink_status draw_linear_gated(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)layout;
    linear_attrs *a = &k->call.attrs.linear;
    a->few_rows = conf_chance(k, 50);
    a->out_f32 = conf_chance(k, 20);
    a->act = ACT_SILU;
    const bool batched = conf_chance(k, 20);
    const shape s = draw_shape(k, a->few_rows);
    draw_operands(k, dtype, &s, 2, batched);
    return INK_OK;
}

/* y = silu(g) u with errors dg, du of the sums: |du silu(g)| + |dg slope u| + their product, and the arithmetic of silu. */
static ink_status reference_linear_gated(conf_case *k)
{
    const int64_t m = tensor_rows(&k->in[0]), n = k->in[1].dims[0];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            ref_sum g = dot(k, i, 1, j), u = dot(k, i, 2, j);
            double slope, s = ref_activation(g.sum, ACT_SILU, &slope), y = s * u.sum;
            double dg = ref_sum_error(k, &g) * slope + fabs(s) * 0x1p-20, du = ref_sum_error(k, &u);
            k->expect[0][i * n + j] = y;
            k->bound[0][i * n + j] =
                fabs(s) * du + dg * fabs(u.sum) + dg * du + fabs(y) * 0x1p-23 + conf_store_error(k->out[0].dtype, y);
        }
    return INK_OK;
}

const conf_op conf_linear = {OP_linear, draw_linear, reference_linear};
const conf_op conf_linear_gated = {OP_linear_gated, draw_linear_gated, reference_linear_gated};
