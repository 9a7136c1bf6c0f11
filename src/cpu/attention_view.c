#include "core/status.h"
#include "cpu/attention.h"

/* cu_seqlens starts at 0, never falls and ends at the number of rows. */
static ink_status check_starts(const attention_view *a, const char *op)
{
    const int32_t *cu = a->starts;
    if (a->sequences < 0 || cu[0] != 0)
        return failure(INK_OUT_OF_RANGE, "%s: cu_seqlens must start with 0", op);
    for (int64_t s = 0; s < a->sequences; s++)
        if (cu[s + 1] < cu[s])
            return failure(INK_OUT_OF_RANGE, "%s: cu_seqlens[%lld] is %d, below the one before, %d", op, (long long)s + 1,
                           (int)cu[s + 1], (int)cu[s]);
    if (cu[a->sequences] != a->rows)
        return failure(INK_OUT_OF_RANGE, "%s: cu_seqlens ends at %d, q has %lld rows", op, (int)cu[a->sequences],
                       (long long)a->rows);
    return INK_OK;
}

static ink_status check_blocks(const attention_view *a, int64_t pool_blocks)
{
    for (int64_t s = 0; s < a->sequences; s++) {
        int64_t keys = a->lengths[s], used = (keys + KV_BLOCK - 1) / KV_BLOCK;
        if (keys < 0 || used > a->table_width)
            return failure(INK_OUT_OF_RANGE, "paged_attention: lengths[%lld] is %lld, expected 0 to %lld", (long long)s,
                           (long long)keys, (long long)a->table_width * KV_BLOCK);
        if (!attention_queries(a, s))
            continue;
        for (int64_t b = 0; b < used; b++) {
            int32_t block = a->table[s * a->table_width + b];
            if (block < 0 || block >= pool_blocks)
                return failure(INK_OUT_OF_RANGE, "paged_attention: block_table[%lld][%lld] is %d, the pool has %lld blocks",
                               (long long)s, (long long)b, (int)block, (long long)pool_blocks);
        }
    }
    return INK_OK;
}

ink_status attention_open(const op_call *c, attention_view *a)
{
    const bool paged = c->op == OP_paged_attention;
    const ink_tensor *q = c->in[0], *k = c->in[1], *cu = c->in[paged ? 5 : 3];
    *a = (attention_view){.q = q->data,
                          .k = k->data,
                          .v = c->in[2]->data,
                          .y = c->out[0]->data,
                          .dtype = q->dtype,
                          .element = ink_dtype_size(q->dtype),
                          .rows = q->dims[0],
                          .heads = q->dims[1],
                          .kv_heads = k->dims[1],
                          .group = q->dims[1] / k->dims[1],
                          .dim = q->dims[2],
                          .sequences = cu->dims[0] - 1,
                          .starts = cu->data,
                          .scale = c->attrs.attention.scale,
                          .causal = paged || c->attrs.attention.causal};
    a->key_step = paged ? a->dim : a->kv_heads * a->dim;
    TRY(check_starts(a, op_schema_of(c->op)->name));
    if (!paged)
        return INK_OK;
    a->table = c->in[3]->data;
    a->table_width = c->in[3]->dims[1];
    a->lengths = c->in[4]->data;
    return check_blocks(a, k->dims[0]);
}
