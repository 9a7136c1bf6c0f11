/* vision.c - schemas of the ops around the vision tower's patch grid.
 *
 * position_embedding: y[p] = x[p] + table resampled bilinearly from its G x G grid to each image's gh x gw grid (spec 5.2;
 *   no antialiasing). The patches of an image are in raster order; grid_thw [images, 3] holds 1, gh, gw per image.
 * patch_merge: token (R, C) of an image is the concatenation of its merge x merge patches, row by row (spec 5.5). */
#include "ops/op.h"

static ink_status check_grid(const op_call *c, const ink_tensor *grid)
{
    TRY(want_rank(c->op, "grid_thw", grid, 2));
    TRY(want_dtype(c->op, "grid_thw", grid, INK_I32));
    return want_shape(c->op, "grid_thw", grid, 2, (int64_t[]){grid->dims[0], 3});
}

static ink_status infer_position_embedding(op_call *c)
{
    const ink_tensor *x = c->in[0], *table = c->in[1];
    TRY(want_float(c->op, "x", x));
    TRY(want_rank(c->op, "x", x, 2));
    TRY(want_rank(c->op, "table", table, 2));
    TRY(want_dtype(c->op, "table", table, x->dtype));
    TRY(want_shape(c->op, "table", table, 2, (int64_t[]){table->dims[0], x->dims[1]}));
    int64_t side = 1;
    while (side * side < table->dims[0])
        side++;
    if (side * side != table->dims[0])
        return failure(INK_INVALID_ARGUMENT, "position_embedding: a table of %lld rows is not a square grid",
                       (long long)table->dims[0]);
    TRY(check_grid(c, c->in[2]));
    out_like(c, 0, x);
    return INK_OK;
}

static ink_status infer_patch_merge(op_call *c)
{
    const ink_tensor *x = c->in[0];
    int64_t m = c->attrs.merge.merge;
    TRY(want_float(c->op, "x", x));
    TRY(want_rank(c->op, "x", x, 2));
    if (m < 1 || m > 16 || x->dims[0] % (m * m))
        return failure(INK_INVALID_ARGUMENT, "patch_merge: %lld patches cannot be merged %lld x %lld",
                       (long long)x->dims[0], (long long)m, (long long)m);
    TRY(check_grid(c, c->in[1]));
    return out_shape(c, 0, x->dtype, 2, (int64_t[]){x->dims[0] / (m * m), x->dims[1] * m * m});
}

static op_cost cost_position(const op_call *c) { return op_cost_streaming(c, 8); }
static op_cost cost_merge(const op_call *c) { return op_cost_streaming(c, 0); }

static void describe(const op_call *c, strbuf *out)
{
    tensor_shape_text(c->in[0], out);
    strbuf_printf(out, " images%lld", (long long)c->in[c->op == OP_position_embedding ? 2 : 1]->dims[0]);
    if (c->op == OP_position_embedding && c->attrs.position.align_corners)
        strbuf_puts(out, " align_corners");
}

const op_schema schema_position_embedding = {
    .name = "position_embedding",
    .inputs = "x, table, grid_thw",
    .outputs = "y",
    .n_in = 3,
    .n_out = 1,
    .infer = infer_position_embedding,
    .cost = cost_position,
    .describe = describe,
};

const op_schema schema_patch_merge = {
    .name = "patch_merge",
    .inputs = "x, grid_thw",
    .outputs = "y",
    .n_in = 2,
    .n_out = 1,
    .infer = infer_patch_merge,
    .cost = cost_merge,
    .describe = describe,
};
