/* paged_attention.h - attention of generated tokens (few_rows): the part that the vector and the tile kernels share, in two
 * pieces. This one has the sizes, partial results and the softmax of a chunk; paged_attention_run.h, included last, has the
 * merging and the call, and needs from the kernels before it load_queries, chunk and in_order.
 *
 * Memory sets the pace, so every key and value is read once per group of query heads, and the keys of one row are spread
 * over threads: a unit is (row, key head), a task is one chunk of CHUNK keys of a unit (chunks start at multiples of
 * CHUNK), and the partial results (maximum, sum, context) of a unit's chunks are merged from the left in their order.
 * Tasks run in waves of WAVE, which bounds the memory for partial results; a unit cut by the end of a wave carries its
 * merged state into the next, so waves and threads leave no trace in the bits. */
#ifndef CPU_PAGED_ATTENTION_H
#define CPU_PAGED_ATTENTION_H
#include "core/status.h"
#include "core/threads.h"
#include "cpu/attention.h"
#include "cpu/attention_exp.h"

enum {
    CHUNK = 128,
    WAVE = 512,
    LANES = 8, /* query heads side by side in a vector of scores */
};

/* The group in tiles of LANES heads; heads that do not exist are rows of zeros. */
static int64_t padded_group(int64_t group) { return (group + LANES - 1) / LANES * LANES; }

/* A row of D elements in scratch; its order is the kernels' own, see in_order. */
static int64_t columns_of(int64_t dim) { return (dim + 2 * VF - 1) / (2 * VF) * (2 * VF); }

/* Asks for `bytes` from p on; p may be NULL. */
VEC_INLINE void prefetch(const char *p, int64_t bytes)
{
    for (int64_t i = 0; p && i < bytes; i += 64)
        _mm_prefetch(p + i, _MM_HINT_T0);
}

/* Partial result of a unit. Tops carry the factor scale log2(e); a chunk of nothing but -inf has the lowest float, so that
 * no difference of tops is NaN. */
typedef struct partial {
    float *o, *top, *sum; /* [padded group][columns], [padded group], [padded group] */
} partial;

static size_t partial_floats(int64_t group, int64_t dim)
{
    return (size_t)padded_group(group) * (size_t)(columns_of(dim) + 2);
}

static partial partial_at(float *base, size_t i, int64_t group, int64_t dim)
{
    float *p = base + i * partial_floats(group, dim), *top = p + padded_group(group) * columns_of(dim);
    return (partial){p, top, top + padded_group(group)};
}

/* The n x LANES scores of a chunk become 2^(scale score - top). */
static void soften(float *s, int64_t n, float scale, float *top, float *sum)
{
    for (int64_t j = n * LANES; j % VF; j++)
        s[j] = -INFINITY;
    vf m = v_load(s), total = v_zero(), vscale = v_set(scale);
    for (int64_t j = VF; j < n * LANES; j += VF)
        m = v_max(m, v_load(s + j));
#ifdef __AVX512F__
    m = v_max(m, _mm512_shuffle_f32x4(m, m, 0x4e));
#endif
    m = v_max(v_set(-3.4e38f), v_mul(m, vscale));
    v_store_n(top, m, LANES);
    vf base = v_sub(v_zero(), m);
    for (int64_t j = 0; j < n * LANES; j += VF) {
        vf e = v_exp2_score(v_fma(v_load(s + j), vscale, base));
        v_store(s + j, e);
        total = v_add(total, e);
    }
#ifdef __AVX512F__
    total = v_add(total, _mm512_shuffle_f32x4(total, total, 0x4e));
#endif
    v_store_n(sum, total, LANES);
}
#endif
