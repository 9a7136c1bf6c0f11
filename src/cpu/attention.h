/* attention.h - what the kernels of attention and paged_attention share: one view of both ops, and the check of the
 * integer inputs (cu_seqlens, lengths, block_table), which are data and so no schema can check them.
 *
 * Vocabulary. A sequence (segment) has `queries` rows of q and `keys` keys; query i of it is at position
 * keys - queries + i and sees keys 0 .. visible-1 (a length below the number of queries masks the first ones fully). A
 * group is the H / KV query heads that share a key head. Keys come in strips of KV_BLOCK = 32 consecutive ones, each with
 * its own base address: consecutive addresses in `attention`, blocks of the pool in `paged_attention`. */
#ifndef CPU_ATTENTION_H
#define CPU_ATTENTION_H
#include "ops/op.h"

typedef struct attention_view {
    const char *q, *k, *v;
    char *y;
    ink_dtype dtype;
    size_t element; /* bytes */
    int64_t rows;   /* T, all queries of the call */
    int64_t heads, kv_heads, group, dim;
    int64_t sequences;
    int64_t key_step;               /* elements between consecutive keys of a strip */
    const int32_t *starts;          /* [sequences + 1], rows of q */
    const int32_t *lengths, *table; /* paged only */
    int64_t table_width;
    float scale;
    bool causal;
} attention_view;

/* Fills `a` and checks cu_seqlens, lengths and block_table: INK_OUT_OF_RANGE names the first bad value. */
ink_status attention_open(const op_call *c, attention_view *a);

static inline int64_t attention_queries(const attention_view *a, int64_t s) { return a->starts[s + 1] - a->starts[s]; }
static inline int64_t attention_keys(const attention_view *a, int64_t s)
{
    return a->lengths ? a->lengths[s] : attention_queries(a, s);
}

/* Keys that query i of sequence s sees; 0 or less: none, a fully masked row. */
static inline int64_t attention_visible(const attention_view *a, int64_t s, int64_t i)
{
    int64_t keys = attention_keys(a, s);
    return a->causal ? keys - attention_queries(a, s) + i + 1 : keys;
}

/* Element offset, in k and in v, of the first of the 32 keys of a strip, for key head h. */
static inline int64_t attention_strip(const attention_view *a, int64_t s, int64_t h, int64_t strip)
{
    if (a->table)
        return (a->table[s * a->table_width + strip] * a->kv_heads + h) * KV_BLOCK * a->dim;
    return ((a->starts[s] + strip * KV_BLOCK) * a->kv_heads + h) * a->dim;
}

/* Element offset, in q and y, of query head h of row t. */
static inline int64_t attention_query(const attention_view *a, int64_t t, int64_t h) { return (t * a->heads + h) * a->dim; }

/* The s with before[s] <= at < before[s + 1], for an ascending `before` of n + 1 numbers that encloses `at`. */
static inline int64_t attention_find(const int64_t *before, int64_t n, int64_t at)
{
    int64_t low = 0, high = n; /* before[low] <= at < before[high] */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        *(before[middle] <= at ? &low : &high) = middle;
    }
    return low;
}

/* The rows (query, head of the group) of one key head of a sequence in near-equal blocks of at most `most` rows: how many
 * blocks, and first row and rows of block b. All but the last are multiples of `unit`, which divides `most`. */
static inline int64_t attention_row_blocks(const attention_view *a, int64_t s, int64_t most)
{
    return (attention_queries(a, s) * a->group + most - 1) / most;
}
static inline int64_t attention_row_block(const attention_view *a, int64_t s, int64_t b, int64_t most, int64_t unit,
                                          int64_t *rows)
{
    int64_t all = attention_queries(a, s) * a->group, blocks = attention_row_blocks(a, s, most);
    int64_t units = (all + unit - 1) / unit, first = units * b / blocks * unit, end = units * (b + 1) / blocks * unit;
    *rows = (end < all ? end : all) - first;
    return first;
}

/* ---- kernels ----
 * Every kernel of this family gives a query the same bits whatever other queries are in the call: key blocks start at
 * absolute key positions, and nothing else enters a row's arithmetic. Hidden keys and values are never multiplied. */
ink_status attention_portable(const op_call *c); /* both ops, any dtype */

#ifdef __x86_64__
/* Prompt rows: packed blocks of keys against blocks of queries; both ops, any dtype. */
size_t attention_workspace_avx2(const op_call *c);
ink_status attention_avx2(const op_call *c);
size_t attention_workspace_avx512(const op_call *c);
ink_status attention_avx512(const op_call *c);
/* BF16 on matrix tiles: probabilities rounded to 16 bits, subnormals flushed. */
size_t attention_workspace_amx(const op_call *c);
ink_status attention_amx(const op_call *c);

/* Generated tokens (few_rows): each key and value is read once per group of query heads. */
size_t paged_attention_workspace_avx2(const op_call *c);
ink_status paged_attention_avx2(const op_call *c);
size_t paged_attention_workspace_avx512(const op_call *c);
ink_status paged_attention_avx512(const op_call *c);
size_t paged_attention_workspace_amx(const op_call *c); /* BF16, head sizes 32, 64, 96, 128 */
ink_status paged_attention_amx(const op_call *c);
#endif
#endif
