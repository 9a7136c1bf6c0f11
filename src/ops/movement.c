/* movement.c - schemas of embedding, index_select, merge_multimodal, cast, reshape.
 *
 * embedding:        y[t] = weight[ids[t]]
 * index_select:     y[t] = x[index[t]], rows of a matrix
 * merge_multimodal: y[t] = rows[t] < 0 ? x[t] : features[rows[t]]  (image features in place of placeholder tokens,
 * spec 6.1) Ids and rows outside their table are an error at run time (INK_OUT_OF_RANGE). All are bit-exact. */
#include "ops/op.h"

static ink_status infer_lookup(op_call *c, const char *index_name, const ink_tensor *index, const char *table_name,
                               const ink_tensor *table)
{
    TRY(want_float(c->op, table_name, table));
    TRY(want_rank(c->op, table_name, table, 2));
    TRY(want_rank(c->op, index_name, index, 1));
    TRY(want_dtype(c->op, index_name, index, INK_I32));
    return out_shape(c, 0, table->dtype, 2, (int64_t[]){index->dims[0], table->dims[1]});
}

static ink_status infer_embedding(op_call *c) { return infer_lookup(c, "ids", c->in[0], "weight", c->in[1]); }
static ink_status infer_index_select(op_call *c) { return infer_lookup(c, "index", c->in[1], "x", c->in[0]); }

static ink_status infer_merge_multimodal(op_call *c)
{
    const ink_tensor *x = c->in[0], *features = c->in[1], *rows = c->in[2];
    TRY(want_float(c->op, "x", x));
    TRY(want_rank(c->op, "x", x, 2));
    TRY(want_rank(c->op, "features", features, 2));
    TRY(want_dtype(c->op, "features", features, x->dtype));
    TRY(want_shape(c->op, "features", features, 2, (int64_t[]){features->dims[0], x->dims[1]}));
    TRY(want_dtype(c->op, "rows", rows, INK_I32));
    TRY(want_shape(c->op, "rows", rows, 1, x->dims));
    out_like(c, 0, x);
    return INK_OK;
}

static op_cost cost_rows(const op_call *c) { return (op_cost){.bytes = c->out[0] ? 2 * tensor_bytes_or_0(c->out[0]) : 0}; }
static void describe_rows(const op_call *c, strbuf *out)
{
    for (int i = 0; i < 2; i++) {
        strbuf_puts(out, i ? " " : "");
        tensor_shape_text(c->in[i], out);
    }
}

const op_schema schema_embedding = {
    .name = "embedding",
    .inputs = "ids, weight",
    .outputs = "y",
    .n_in = 2,
    .n_out = 1,
    .key_input = 1,
    .infer = infer_embedding,
    .cost = cost_rows,
    .describe = describe_rows,
};
const op_schema schema_index_select = {
    .name = "index_select",
    .inputs = "x, index",
    .outputs = "y",
    .n_in = 2,
    .n_out = 1,
    .infer = infer_index_select,
    .cost = cost_rows,
    .describe = describe_rows,
};
const op_schema schema_merge_multimodal = {
    .name = "merge_multimodal",
    .inputs = "x, features, rows",
    .outputs = "y",
    .n_in = 3,
    .n_out = 1,
    .infer = infer_merge_multimodal,
    .cost = cost_rows,
    .describe = describe_rows,
};

static ink_status infer_cast(op_call *c)
{
    ink_dtype to = c->attrs.cast.to;
    TRY(want_float(c->op, "x", c->in[0]));
    if (to != INK_F32 && to != INK_F16 && to != INK_BF16)
        return failure(INK_INVALID_ARGUMENT, "cast: to %s, expected f32, f16 or bf16", ink_dtype_name(to));
    return out_shape(c, 0, to, c->in[0]->rank, c->in[0]->dims);
}

static op_cost cost_cast(const op_call *c) { return op_cost_streaming(c, 0); }
static void describe_cast(const op_call *c, strbuf *out)
{
    tensor_shape_text(c->in[0], out);
    strbuf_printf(out, " to=%s", ink_dtype_name(c->attrs.cast.to));
}

const op_schema schema_cast = {
    .name = "cast",
    .inputs = "x",
    .outputs = "y",
    .n_in = 1,
    .n_out = 1,
    .infer = infer_cast,
    .cost = cost_cast,
    .describe = describe_cast,
};

static ink_status infer_reshape(op_call *c)
{
    const ink_tensor *x = c->in[0];
    const reshape_attrs *a = &c->attrs.reshape;
    int64_t dims[INK_MAX_RANK], known = 1, total = ink_tensor_numel(x);
    int inferred = -1;
    if (a->rank < 0 || a->rank > INK_MAX_RANK)
        return failure(INK_INVALID_ARGUMENT, "reshape: rank %d, expected 0 to %d", a->rank, INK_MAX_RANK);
    for (int i = 0; i < a->rank; i++) {
        dims[i] = a->dims[i];
        if (dims[i] == 0 && i >= x->rank)
            return failure(INK_INVALID_ARGUMENT, "reshape: dimension %d copies one that the input lacks", i);
        if (dims[i] == 0)
            dims[i] = x->dims[i];
        if (dims[i] < 0 && inferred >= 0)
            return failure(INK_INVALID_ARGUMENT, "reshape: more than one dimension is to be inferred");
        if (dims[i] < 0)
            inferred = i;
        else if (__builtin_mul_overflow(known, dims[i], &known))
            return failure(INK_INVALID_ARGUMENT, "reshape: the product of the dimensions does not fit 63 bits");
    }
    if (inferred >= 0)
        dims[inferred] = known ? total / known : 0;
    if (inferred >= 0 ? dims[inferred] * known != total : known != total)
        return failure(INK_INVALID_ARGUMENT, "reshape: %lld elements do not fit the new shape", (long long)total);
    return out_shape(c, 0, x->dtype, a->rank, dims);
}

static op_cost cost_nothing(const op_call *c)
{
    (void)c;
    return (op_cost){0};
}
static void describe_reshape(const op_call *c, strbuf *out) { tensor_shape_text(c->in[0], out); }

const op_schema schema_reshape = {
    .name = "reshape",
    .inputs = "x",
    .outputs = "y",
    .n_in = 1,
    .n_out = 1,
    .alias = {1},
    .view = true,
    .infer = infer_reshape,
    .cost = cost_nothing,
    .describe = describe_reshape,
};
