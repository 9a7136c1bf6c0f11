/* attention.c - schemas of softmax, attention, paged_attention, kv_append and the rotary ops.
 *
 * attention: segments of a packed sequence, cu_seqlens [S+1] with cu_seqlens[0] = 0 and cu_seqlens[S] = T; a query sees
 *   the keys of its own segment only. q [T, H, D], k and v [T, KV, D]; query head h uses key head h / (H / KV).
 * paged_attention: the keys and values of sequence s live in blocks block_table[s][0..] of the pools
 *   [blocks, KV, 32, D]; lengths[s] counts its keys including those of this call. The queries of s are rows
 *   cu_seqlens[s] .. cu_seqlens[s+1] of q; the last of them is at position lengths[s] - 1. Always causal.
 * kv_append: writes row t of k and v to slot slots[t] = block * 32 + offset of the pools; a negative slot is skipped.
 * A fully masked row gives zeros. Scores and softmax are FP32; probabilities may be rounded to 16 bits before P V. */
#include "ops/op.h"

static ink_status infer_softmax(op_call *c)
{
    const ink_tensor *x = c->in[0];
    int axis = c->attrs.axis.axis;
    TRY(want_float(c->op, "x", x));
    if (x->rank > 0 && (axis < -x->rank || axis >= x->rank))
        return failure(INK_INVALID_ARGUMENT, "softmax: axis is %d, expected %d to %d", axis, -x->rank, x->rank - 1);
    out_like(c, 0, x);
    return INK_OK;
}

static op_cost cost_softmax(const op_call *c) { return op_cost_streaming(c, 5); }

static void describe_softmax(const op_call *c, strbuf *out)
{
    tensor_shape_text(c->in[0], out);
    strbuf_printf(out, " axis%d", c->attrs.axis.axis);
}

const op_schema schema_softmax = {
    .name = "softmax",
    .inputs = "x",
    .outputs = "y",
    .n_in = 1,
    .n_out = 1,
    .infer = infer_softmax,
    .cost = cost_softmax,
    .describe = describe_softmax,
};

static ink_status check_queries(const op_call *c, int64_t kv_heads)
{
    const ink_tensor *q = c->in[0];
    const char *name = op_schema_of(c->op)->name;
    if (kv_heads <= 0 || q->dims[1] % kv_heads)
        return failure(INK_INVALID_ARGUMENT, "%s: %lld query heads cannot be shared by %lld key heads", name,
                       (long long)q->dims[1], (long long)kv_heads);
    if (q->dims[2] < 1 || q->dims[2] > 256)
        return failure(INK_INVALID_ARGUMENT, "%s: head size %lld, expected 1 to 256", name, (long long)q->dims[2]);
    if (!(c->attrs.attention.scale > 0))
        return failure(INK_INVALID_ARGUMENT, "%s: scale is %g, expected a positive number", name,
                       (double)c->attrs.attention.scale);
    return INK_OK;
}

static ink_status infer_attention(op_call *c)
{
    const ink_tensor *q = c->in[0], *k = c->in[1], *v = c->in[2], *cu = c->in[3];
    TRY(want_float(c->op, "q", q));
    TRY(want_rank(c->op, "q", q, 3));
    TRY(want_rank(c->op, "k", k, 3));
    TRY(want_dtype(c->op, "k", k, q->dtype));
    TRY(want_dtype(c->op, "v", v, q->dtype));
    TRY(want_shape(c->op, "k", k, 3, (int64_t[]){q->dims[0], k->dims[1], q->dims[2]}));
    TRY(want_shape(c->op, "v", v, 3, k->dims));
    TRY(want_rank(c->op, "cu_seqlens", cu, 1));
    TRY(want_dtype(c->op, "cu_seqlens", cu, INK_I32));
    TRY(check_queries(c, k->dims[1]));
    out_like(c, 0, q);
    return INK_OK;
}

/* Segment lengths are data; the cost assumes one segment unless cu_seqlens can be read. */
static double pairs_of_segments(const op_call *c)
{
    double t = (double)c->in[0]->dims[0], pairs = 0;
    const int32_t *cu = c->in[3]->data;
    for (int64_t i = 0; cu && i + 1 < c->in[3]->dims[0]; i++)
        pairs += (double)(cu[i + 1] - cu[i]) * (cu[i + 1] - cu[i]);
    if (!cu)
        pairs = t * t;
    return c->attrs.attention.causal ? pairs / 2 : pairs;
}

static op_cost cost_attention(const op_call *c)
{
    op_cost k = op_cost_streaming(c, 0);
    k.flops = 4 * pairs_of_segments(c) * (double)c->in[0]->dims[1] * (double)c->in[0]->dims[2];
    return k;
}

static void describe_attention(const op_call *c, strbuf *out)
{
    const ink_tensor *q = c->in[0];
    strbuf_printf(out, "t%lld h%lld kv%lld d%lld seqs%lld%s", (long long)q->dims[0], (long long)q->dims[1],
                  (long long)c->in[1]->dims[1], (long long)q->dims[2],
                  (long long)(c->op == OP_attention ? c->in[3]->dims[0] - 1 : c->in[3]->dims[0]),
                  c->op == OP_paged_attention || c->attrs.attention.causal ? " causal" : "");
    if (c->attrs.attention.few_rows)
        strbuf_puts(out, " few_rows");
}

const op_schema schema_attention = {
    .name = "attention",
    .inputs = "q, k, v, cu_seqlens",
    .outputs = "y",
    .n_in = 4,
    .n_out = 1,
    .infer = infer_attention,
    .cost = cost_attention,
    .describe = describe_attention,
};

static ink_status check_pools(const op_call *c, const ink_tensor *k_pool, const ink_tensor *v_pool, int64_t head_dim)
{
    TRY(want_rank(c->op, "k_pool", k_pool, 4));
    TRY(want_dtype(c->op, "k_pool", k_pool, c->in[0]->dtype));
    TRY(want_dtype(c->op, "v_pool", v_pool, c->in[0]->dtype));
    TRY(want_shape(c->op, "k_pool", k_pool, 4, (int64_t[]){k_pool->dims[0], k_pool->dims[1], KV_BLOCK, head_dim}));
    return want_shape(c->op, "v_pool", v_pool, 4, k_pool->dims);
}

static ink_status infer_paged_attention(op_call *c)
{
    const ink_tensor *q = c->in[0], *table = c->in[3], *lengths = c->in[4], *cu = c->in[5];
    TRY(want_float(c->op, "q", q));
    TRY(want_rank(c->op, "q", q, 3));
    TRY(check_pools(c, c->in[1], c->in[2], q->dims[2]));
    TRY(check_queries(c, c->in[1]->dims[1]));
    TRY(want_rank(c->op, "block_table", table, 2));
    TRY(want_dtype(c->op, "block_table", table, INK_I32));
    TRY(want_dtype(c->op, "lengths", lengths, INK_I32));
    TRY(want_shape(c->op, "lengths", lengths, 1, (int64_t[]){table->dims[0]}));
    TRY(want_dtype(c->op, "cu_seqlens", cu, INK_I32));
    TRY(want_shape(c->op, "cu_seqlens", cu, 1, (int64_t[]){table->dims[0] + 1}));
    out_like(c, 0, q);
    return INK_OK;
}

static op_cost cost_paged_attention(const op_call *c)
{
    const ink_tensor *q = c->in[0], *pool = c->in[1];
    const int32_t *lengths = c->in[4]->data, *cu = c->in[5]->data;
    double pairs = 0, keys = 0, row = (double)pool->dims[1] * (double)pool->dims[3];
    for (int64_t s = 0; lengths && cu && s < c->in[4]->dims[0]; s++) {
        double n = cu[s + 1] - cu[s];
        pairs += n * (lengths[s] - (n - 1) / 2);
        keys += lengths[s];
    }
    op_cost k = {.flops = 4 * pairs * (double)q->dims[1] * (double)q->dims[2]};
    k.bytes = 2 * tensor_bytes_or_0(q) + 2 * keys * row * (double)ink_dtype_size(pool->dtype);
    return k;
}

const op_schema schema_paged_attention = {
    .name = "paged_attention",
    .inputs = "q, k_pool, v_pool, block_table, lengths, cu_seqlens",
    .outputs = "y",
    .n_in = 6,
    .n_out = 1,
    .infer = infer_paged_attention,
    .cost = cost_paged_attention,
    .describe = describe_attention,
};

static ink_status infer_kv_append(op_call *c)
{
    const ink_tensor *k = c->in[0], *v = c->in[1], *slots = c->in[2];
    TRY(want_float(c->op, "k", k));
    TRY(want_rank(c->op, "k", k, 3));
    TRY(want_dtype(c->op, "v", v, k->dtype));
    TRY(want_shape(c->op, "v", v, 3, k->dims));
    TRY(want_dtype(c->op, "slots", slots, INK_I32));
    TRY(want_shape(c->op, "slots", slots, 1, k->dims));
    TRY(check_pools(c, c->in[3], c->in[4], k->dims[2]));
    if (c->in[3]->dims[1] != k->dims[1])
        return failure(INK_INVALID_ARGUMENT, "kv_append: k has %lld heads, the pool %lld", (long long)k->dims[1],
                       (long long)c->in[3]->dims[1]);
    out_like(c, 0, c->in[3]);
    out_like(c, 1, c->in[4]);
    return INK_OK;
}

static op_cost cost_kv_append(const op_call *c)
{
    return (op_cost){.bytes = 2 * (tensor_bytes_or_0(c->in[0]) + tensor_bytes_or_0(c->in[1]))};
}

static void describe_first(const op_call *c, strbuf *out) { tensor_shape_text(c->in[0], out); }

const op_schema schema_kv_append = {
    .name = "kv_append",
    .inputs = "k, v, slots, k_pool, v_pool",
    .outputs = "k_pool, v_pool",
    .n_in = 5,
    .n_out = 2,
    .alias = {4, 5},
    .infer = infer_kv_append,
    .cost = cost_kv_append,
    .describe = describe_first,
};
