#include "conformance/conformance.h"

#include <math.h>

enum { MOST_IMAGES = 4 };

/* Grids of some images with sides that `merge` divides; returns the number of their patches. */
static int64_t draw_grids(conf_case *k, int input, int merge, int64_t side)
{
    const int64_t images = rng_range(&k->random, conf_chance(k, 5) ? 0 : 1, MOST_IMAGES), most = (k->size ? 20 : 8) / merge;
    ink_tensor *grid = conf_input_int(k, input, INK_I32, 2, (int64_t[]){images, 3}, 1, most);
    int64_t patches = 0;
    for (int64_t i = 0; grid && i < images; i++) {
        int32_t *g = (int32_t *)grid->data + 3 * i;
        g[0] = 1;
        if (conf_chance(k, 20) && side * side <= 400 && side % merge == 0)
            g[1] = g[2] = (int32_t)side / merge; /* as large as the table */
        g[1] *= merge;
        g[2] *= merge;
        patches += (int64_t)g[1] * g[2];
    }
    return patches;
}

static ink_status draw_position_embedding(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)layout;
    const int64_t side = rng_range(&k->random, 1, k->size ? 27 : 9), width = conf_dim(k, k->size ? 200 : 40, true);
    const int64_t patches = draw_grids(k, 2, 1, side);
    k->call.attrs.position.align_corners = conf_chance(k, 50);
    conf_input(k, 0, dtype, 2, (int64_t[]){patches, width}, 1);
    conf_input(k, 1, dtype, 2, (int64_t[]){side * side, width}, 1);
    if (conf_chance(k, 10))
        conf_special_values(k, 0, conf_chance(k, 50));
    return INK_OK;
}

static void source(const conf_case *k, int64_t r, int64_t g, int64_t side, int64_t cell[2], double *weight)
{
    double s = k->call.attrs.position.align_corners ? (g > 1 ? (double)(r * (side - 1)) / (double)(g - 1) : 0)
                                                    : ((double)r + 0.5) * (double)side / (double)g - 0.5;
    double nearest = round(s);
    if (fabs(s - nearest) < 1e-9) /* an exact grid point, but for the rounding of the quotient */
        s = nearest;
    s = fmin(fmax(s, 0), (double)(side - 1));
    cell[0] = (int64_t)floor(s);
    cell[1] = cell[0] + 1 < side ? cell[0] + 1 : cell[0];
    *weight = s - floor(s);
}

/* Weights carry two roundings and their product one; four products are summed, then x added. On a point of the table's
 * grid only x + table is rounded. */
static ink_status reference_position_embedding(conf_case *k)
{
    const int64_t width = k->in[0].dims[1], side = (int64_t)llround(sqrt((double)k->in[1].dims[0]));
    const double u = 0x1p-24;
    int64_t p = 0;
    for (int64_t image = 0; image < k->in[2].dims[0]; image++) {
        const int64_t gh = (int64_t)conf_in(k, 2, 3 * image + 1), gw = (int64_t)conf_in(k, 2, 3 * image + 2);
        for (int64_t at = 0; at < gh * gw; at++, p++) {
            int64_t ys[2], xs[2];
            double wy, wx;
            source(k, at / gw, gh, side, ys, &wy);
            source(k, at % gw, gw, side, xs, &wx);
            for (int64_t i = 0; i < width; i++) {
                double v = 0, size = 0, x = conf_in(k, 0, p * width + i);
                for (int c = 0; c < 4; c++) {
                    double w = (c & 2 ? wy : 1 - wy) * (c & 1 ? wx : 1 - wx);
                    double corner = conf_in(k, 1, (ys[c >> 1] * side + xs[c & 1]) * width + i);
                    if (w > 0)
                        v += w * corner, size += fabs(corner);
                }
                bool exact = wy == 0 && wx == 0;
                k->expect[0][p * width + i] = x + v;
                k->bound[0][p * width + i] =
                    (exact ? 0 : 7 * u * size) + u * fabs(x + v) + conf_store_error(k->out[0].dtype, x + v);
            }
        }
    }
    return INK_OK;
}

const conf_op conf_position_embedding = {OP_position_embedding, draw_position_embedding, reference_position_embedding};

static ink_status draw_patch_merge(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)layout;
    const int merge = (int)rng_range(&k->random, 1, 3);
    k->call.attrs.merge.merge = merge;
    const int64_t patches = draw_grids(k, 1, merge, 20);
    conf_input(k, 0, dtype, 2, (int64_t[]){patches, conf_dim(k, k->size ? 300 : 60, true)}, 1);
    k->no_bias_test = true;
    return INK_OK;
}

static ink_status reference_patch_merge(conf_case *k)
{
    const int64_t m = k->call.attrs.merge.merge, width = k->in[0].dims[1];
    int64_t first = 0, out = 0;
    for (int64_t image = 0; image < k->in[1].dims[0]; image++) {
        const int64_t gh = (int64_t)conf_in(k, 1, 3 * image + 1), gw = (int64_t)conf_in(k, 1, 3 * image + 2);
        for (int64_t row = 0; row < gh / m; row++)
            for (int64_t col = 0; col < gw / m; col++)
                for (int64_t dy = 0; dy < m; dy++)
                    for (int64_t dx = 0; dx < m; dx++)
                        for (int64_t i = 0; i < width; i++)
                            k->expect[0][out++] = conf_in(k, 0, (first + (row * m + dy) * gw + col * m + dx) * width + i);
        first += gh * gw;
    }
    return INK_OK; /* bounds stay 0: a copy */
}

const conf_op conf_patch_merge = {OP_patch_merge, draw_patch_merge, reference_patch_merge};
