/* vision.c - the rows of position_embedding and patch_merge on the CPU, their walk over the patch grids. */
#include "cpu/vision.h"

#include "cpu/parallel.h"
#include "cpu/rows.h"

#include <string.h>

/* The grids must be [1, gh, gw] with sides that `merge` divides, and cover exactly the `patches` rows of x. */
static ink_status check_grids(const op_call *c, const ink_tensor *grid, int64_t patches, int merge)
{
    const char *op = op_schema_of(c->op)->name;
    const int32_t *g = grid->data;
    int64_t total = 0;
    for (int64_t i = 0; i < grid->dims[0]; i++, g += 3) {
        if (g[0] != 1 || g[1] < 0 || g[2] < 0 || g[1] % merge || g[2] % merge)
            return failure(INK_INVALID_ARGUMENT, "%s: grid_thw[%lld] is %d,%d,%d, expected 1 and two multiples of %d", op,
                           (long long)i, (int)g[0], (int)g[1], (int)g[2], merge);
        if (__builtin_add_overflow(total, (int64_t)g[1] * g[2], &total))
            return failure(INK_INVALID_ARGUMENT, "%s: the grids' patches do not fit 63 bits", op);
    }
    if (total != patches)
        return failure(INK_INVALID_ARGUMENT, "%s: grid_thw describes %lld patches, x has %lld", op, (long long)total,
                       (long long)patches);
    return INK_OK;
}

/* ---- position_embedding ---- */

/* Source position of row (or column) r of g on a table of side G: cell `low`, and the weight of the next cell. Both forms
 * are ratios of integers, so that `low` is exact and a grid as large as the table has weights of exactly 0:
 * align_corners r (G - 1) / (g - 1), else (r + 1/2) G / g - 1/2 not below 0. */
static int64_t source_cell(int64_t r, int64_t g, int64_t side, bool align_corners, float *weight)
{
    int64_t above = align_corners ? r * (side - 1) : (2 * r + 1) * side - g, below = align_corners ? g - 1 : 2 * g;
    if (below == 0 || above < 0) {
        *weight = 0;
        return 0;
    }
    int64_t low = above / below;
    *weight = low < side - 1 ? (float)((double)(above % below) / (double)below) : 0;
    return low < side - 1 ? low : side - 1;
}

static void set_patch(position_patch *p, const op_call *c, int64_t row, int64_t r, int64_t gh, int64_t col, int64_t gw,
                      int64_t side)
{
    const size_t bytes = (size_t)p->width * ink_dtype_size(p->dtype);
    float wy, wx;
    int64_t y0 = source_cell(r, gh, side, c->attrs.position.align_corners, &wy);
    int64_t x0 = source_cell(col, gw, side, c->attrs.position.align_corners, &wx);
    int64_t y1 = wy > 0 ? y0 + 1 : y0, x1 = wx > 0 ? x0 + 1 : x0;
    const int64_t cells[4] = {y0 * side + x0, y0 * side + x1, y1 * side + x0, y1 * side + x1};
    const float weights[4] = {(1 - wy) * (1 - wx), (1 - wy) * wx, wy * (1 - wx), wy * wx};
    for (int k = 0; k < 4; k++)
        p->corner[k] = (const char *)c->in[1]->data + (size_t)cells[k] * bytes;
    memcpy(p->weight, weights, sizeof weights);
    p->exact = wy == 0 && wx == 0;
    p->x = (const char *)c->in[0]->data + (size_t)row * bytes;
    p->y = (char *)c->out[0]->data + (size_t)row * bytes;
}

ink_status position_run(const op_call *c, position_add *add)
{
    const ink_tensor *x = c->in[0], *grid = c->in[2];
    const int32_t *g = grid->data;
    int64_t side = 1;
    while (side * side < c->in[1]->dims[0])
        side++;
    TRY(check_grids(c, grid, x->dims[0], 1));
#pragma omp parallel num_threads(threads_for(c, 2 * tensor_bytes_or_0(x)))
    for (int64_t i = 0, first = 0; i < grid->dims[0]; i++) {
        const int64_t gh = g[3 * i + 1], gw = g[3 * i + 2];
#pragma omp for nowait
        for (int64_t p = 0; p < gh * gw; p++) {
            position_patch patch = {.dtype = x->dtype, .width = x->dims[1]};
            set_patch(&patch, c, first + p, p / gw, gh, p % gw, gw, side);
            add(&patch);
        }
        first += gh * gw;
    }
    return INK_OK;
}

/* ---- patch_merge ---- */

ink_status patch_merge_portable(const op_call *c)
{
    const ink_tensor *x = c->in[0], *grid = c->in[1];
    const int32_t *g = grid->data;
    const int64_t m = c->attrs.merge.merge;
    const size_t bytes = (size_t)x->dims[1] * ink_dtype_size(x->dtype);
    TRY(check_grids(c, grid, x->dims[0], (int)m));
    if (!bytes)
        return INK_OK;
#pragma omp parallel num_threads(threads_for(c, 2 * tensor_bytes_or_0(x)))
    for (int64_t i = 0, first = 0; i < grid->dims[0]; i++) {
        const int64_t gh = g[3 * i + 1], gw = g[3 * i + 2];
#pragma omp for nowait
        for (int64_t p = 0; p < gh * gw;
             p++) { /* one piece of a token: p counts tokens, then rows and columns of the square */
            const int64_t token = p / (m * m), dy = p % (m * m) / m, dx = p % m;
            const int64_t row = token / (gw / m) * m + dy, col = token % (gw / m) * m + dx;
            memcpy((char *)c->out[0]->data + (size_t)(first + p) * bytes,
                   (const char *)x->data + (size_t)(first + row * gw + col) * bytes, bytes);
        }
        first += gh * gw;
    }
    return INK_OK;
}

FLOAT_LIST(position_embedding);
PORTABLE_LIST(patch_merge);
