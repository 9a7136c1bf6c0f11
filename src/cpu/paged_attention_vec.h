/* paged_attention_vec.h - attention of generated tokens for AVX2 and AVX-512: included by paged_attention_avx2.c and
 * paged_attention_avx512.c, which define NAME(x). Any dtype. */
#include "cpu/paged_attention.h"

/* ---- rows of 16-bit and FP32 elements as FP32 vectors ----
 * BF16 rows are read 2 VF elements at a time: vector 2i holds the even elements of the i-th stretch and vector 2i + 1 the
 * odd ones, one shift or mask each. Queries and contexts live in the same order; `finish` undoes it. */

VEC_INLINE int64_t element_of(const ink_dtype t) { return t == INK_F32 ? 4 : 2; }

#ifdef __AVX512F__
typedef __m512i words;
VEC_INLINE words load_words(const uint16_t *p, int64_t n)
{
    return n >= 32 ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi16((__mmask32)((1ull << n) - 1), p);
}
VEC_INLINE vf evens(words h) { return _mm512_castsi512_ps(_mm512_slli_epi32(h, 16)); }
VEC_INLINE vf odds(words h) { return _mm512_castsi512_ps(_mm512_and_si512(h, _mm512_set1_epi32((int)0xffff0000))); }
#else
typedef __m256i words;
VEC_INLINE words load_words(const uint16_t *p, int64_t n) /* inline, without memcpy: a call would spill the accumulators */
{
    if (n >= 16)
        return _mm256_loadu_si256((const __m256i *)p);
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), pairs = _mm256_set1_epi32((int)(n / 2));
    __m256i h = _mm256_maskload_epi32((const int *)p, _mm256_cmpgt_epi32(pairs, lane));
    if (n & 1)
        h = _mm256_or_si256(h, _mm256_and_si256(_mm256_cmpeq_epi32(pairs, lane), _mm256_set1_epi32(p[n - 1])));
    return h;
}
VEC_INLINE vf evens(words h) { return _mm256_castsi256_ps(_mm256_slli_epi32(h, 16)); }
VEC_INLINE vf odds(words h) { return _mm256_castsi256_ps(_mm256_and_si256(h, _mm256_set1_epi32((int)0xffff0000))); }
#endif

/* Vectors i and i + 1, i even, of the row of dim elements that starts at p; `whole`: both lie inside it. */
VEC_INLINE void get_pair(const char *p, const ink_dtype t, int64_t i, int64_t dim, const bool whole, vf out[2])
{
    const int64_t n = whole ? 2 * VF : dim - i * VF;
    if (t == INK_BF16) {
        words h = load_words((const uint16_t *)p + i * VF, n);
        out[0] = evens(h);
        out[1] = odds(h);
    } else {
        out[0] = v_get(p, t, i * VF, n);
        out[1] = n > VF ? v_get(p, t, (i + 1) * VF, n - VF) : v_zero();
    }
}

/* What is left of four vectors after two steps of a transposition with additions: in each 128-bit lane, one partial sum of
 * a, b, c and d. */
#ifdef __AVX512F__
VEC_INLINE vf fold4(const vf v[4])
{
    vf ab = v_add(_mm512_unpacklo_ps(v[0], v[1]), _mm512_unpackhi_ps(v[0], v[1]));
    vf cd = v_add(_mm512_unpacklo_ps(v[2], v[3]), _mm512_unpackhi_ps(v[2], v[3]));
    return v_add(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
}
/* s[i]: the sum of the lanes of v[i], for 16 vectors. */
VEC_INLINE void store_sums(float *s, const vf v[16])
{
    vf a = fold4(v), b = fold4(v + 4), c = fold4(v + 8), d = fold4(v + 12);
    vf ab = v_add(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    vf cd = v_add(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
    v_store(s, v_add(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd)));
}
#else
VEC_INLINE vf fold4(const vf v[4])
{
    vf ab = v_add(_mm256_unpacklo_ps(v[0], v[1]), _mm256_unpackhi_ps(v[0], v[1]));
    vf cd = v_add(_mm256_unpacklo_ps(v[2], v[3]), _mm256_unpackhi_ps(v[2], v[3]));
    return v_add(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
}
/* For 4 vectors. */
VEC_INLINE void store_sums(float *s, const vf v[4])
{
    vf u = fold4(v);
    _mm_storeu_ps(s, _mm_add_ps(_mm256_castps256_ps128(u), _mm256_extractf128_ps(u, 1)));
}
#endif

/* ---- one block of at most 32 keys, contiguous in the pool ----
 * `next`: the block that will be read after it, or NULL. Scores and probabilities are [key][LANES]. */

typedef struct block {
    const char *rows, *next; /* [n][dim] */
    int64_t dim, columns;
    int n;
} block;

/* The register tiles: at least 8 accumulators to cover the latency of the FMA (4 cycles, two a cycle), few enough that
 * compilers keep them all in registers (16 on AVX2, where 12 sums beside keys, query and mask were not). */
enum {
    TILE_HEADS = VF == 16 ? LANES : 4, /* score tile */
    TILE_KEYS = 2,
};

/* Pair i of the columns of TILE_KEYS keys into the sums, acc [key][TILE_HEADS], of `heads` heads. One half of the pair
 * after the other on AVX2: the barrier keeps compilers from widening both at once, for which there are not registers
 * enough. */
VEC_INLINE void score_pair(const int heads, const float *q, const block *b, const char *const *keys, int64_t i,
                           const bool whole, vf *acc, const ink_dtype t)
{
    UNROLL
    for (int u = 0; u < 2; u++) {
        vf k[TILE_KEYS];
        UNROLL
        for (int x = 0; x < TILE_KEYS; x++) {
            vf both[2];
            get_pair(keys[x], t, i, b->dim, whole, both);
            k[x] = both[u];
        }
        UNROLL
        for (int g = 0; g < heads; g++) {
            vf z = v_load(q + g * b->columns + (i + u) * VF);
            UNROLL
            for (int x = 0; x < TILE_KEYS; x++)
                acc[x * TILE_HEADS + g] = v_fma(z, k[x], acc[x * TILE_HEADS + g]);
        }
        if (VF == 8)
            __asm__ volatile("" ::: "memory");
    }
}

/* s[j][g] = q[g] . k[j] for heads from .. from + heads - 1, up to TILE_HEADS of them: one FMA chain per lane in d, then the
 * sum of the lanes. Missing last keys are copies of the last one there is. */
VEC_INLINE void score_tile(const int from, const int heads, const float *q, const block *b, float *s, const ink_dtype t)
{
    const int64_t step = b->dim * element_of(t), whole = b->dim / (2 * VF) * 2;
    for (int j = 0; j < b->n; j += TILE_KEYS) {
        const char *keys[TILE_KEYS];
        vf acc[TILE_KEYS * TILE_HEADS];
        UNROLL
        for (int x = 0; x < TILE_KEYS; x++)
            keys[x] = b->rows + (j + x < b->n ? j + x : b->n - 1) * step;
        UNROLL
        for (int i = 0; i < TILE_KEYS * TILE_HEADS; i++)
            acc[i] = v_zero();
        for (int64_t i = 0; i < whole; i += 2)
            score_pair(heads, q + from * b->columns, b, keys, i, true, acc, t);
        if (whole * VF < b->dim)
            score_pair(heads, q + from * b->columns, b, keys, whole, false, acc, t);
        if (VF == 16)
            store_sums(s + j * LANES, acc);
        else
            UNROLL
        for (int x = 0; x < TILE_KEYS; x++)
            if (j + x < b->n)
                store_sums(s + (j + x) * LANES + from, acc + x * TILE_HEADS);
        prefetch(from == 0 && b->next ? b->next + j * step : NULL, TILE_KEYS * step);
    }
}

VEC_INLINE void score_block(const int heads, const float *q, const block *b, float *s, const ink_dtype t)
{
    score_tile(0, heads < TILE_HEADS ? heads : TILE_HEADS, q, b, s, t);
    if (heads > TILE_HEADS)
        score_tile(TILE_HEADS, heads - TILE_HEADS, q, b, s, t);
    for (int j = 0; VF == 8 && heads <= TILE_HEADS && j < b->n; j++) /* the lanes of no head */
        _mm_storeu_ps(s + j * LANES + TILE_HEADS, _mm_setzero_ps());
}

/* o[g] += p[j][g] v[j] for `pairs` (1 or 2) pairs of vectors from vector i on and heads from .. from + heads - 1. */
VEC_INLINE void context_tile(const int from, const int heads, const int pairs, const float *p, const block *b, int64_t i,
                             const bool whole, float *o, const ink_dtype t)
{
    const int64_t step = b->dim * element_of(t);
    const char *next = i || from ? NULL : b->next;
    vf acc[LANES][4];
    UNROLL
    for (int g = 0; g < heads; g++)
        UNROLL
    for (int x = 0; x < 2 * pairs; x++)
        acc[g][x] = v_load(o + (from + g) * b->columns + (i + x) * VF);
    for (int j = 0; j < b->n; j++) {
        vf v[4];
        UNROLL
        for (int x = 0; x < pairs; x++)
            get_pair(b->rows + j * step, t, i + 2 * x, b->dim, whole, v + 2 * x);
        UNROLL
        for (int g = 0; g < heads; g++) {
            vf a = v_set(p[j * LANES + from + g]);
            UNROLL
            for (int x = 0; x < 2 * pairs; x++)
                acc[g][x] = v_fma(a, v[x], acc[g][x]);
        }
        prefetch(next ? next + j * step : NULL, step);
    }
    UNROLL
    for (int g = 0; g < heads; g++)
        UNROLL
    for (int x = 0; x < 2 * pairs; x++)
        v_store(o + (from + g) * b->columns + (i + x) * VF, acc[g][x]);
}

VEC_INLINE void context_pair(const int heads, const float *p, const block *b, int64_t i, const bool whole, float *o,
                             const ink_dtype t)
{
    if (VF == 16 || heads < LANES) {
        context_tile(0, heads, 1, p, b, i, whole, o, t);
    } else {
        context_tile(0, 4, 1, p, b, i, whole, o, t);
        context_tile(4, 4, 1, p, b, i, whole, o, t);
    }
}

VEC_INLINE void context_block(const int heads, const float *p, const block *b, float *o, const ink_dtype t)
{
    const int64_t whole = b->dim / (2 * VF) * 2;
    int64_t i = 0;
    if (VF == 8 && heads == LANES)
        for (; i + 4 <= whole; i += 4) { /* 12, 12 and 8 accumulators */
            context_tile(0, 6, 1, p, b, i, true, o, t);
            context_tile(0, 6, 1, p, b, i + 2, true, o, t);
            context_tile(6, 2, 2, p, b, i, true, o, t);
        }
    else if (VF == 8 && heads <= 2)
        for (; i + 4 <= whole; i += 4)
            context_tile(0, heads, 2, p, b, i, true, o, t);
    for (; i < whole; i += 2)
        context_pair(heads, p, b, i, true, o, t);
    if (whole * VF < b->dim)
        context_pair(heads, p, b, whole, false, o, t);
}

/* One pair of functions for each dtype and number of heads, not inlined: each gets the registers for itself. */
typedef struct block_kernels {
    void (*score)(const float *q, const block *b, float *s);
    void (*context)(const float *p, const block *b, float *o);
} block_kernels;
#define BLOCK_KERNELS(t, heads)                                                                           \
    static __attribute__((noinline)) void score_##t##_##heads(const float *q, const block *b, float *s)   \
    {                                                                                                     \
        score_block(heads, q, b, s, INK_##t);                                                             \
    }                                                                                                     \
    static __attribute__((noinline)) void context_##t##_##heads(const float *p, const block *b, float *o) \
    {                                                                                                     \
        context_block(heads, p, b, o, INK_##t);                                                           \
    }
#define ALL_HEADS(t) BLOCK_KERNELS(t, 1) BLOCK_KERNELS(t, 2) BLOCK_KERNELS(t, 4) BLOCK_KERNELS(t, 8)
ALL_HEADS(BF16)
ALL_HEADS(F16)
ALL_HEADS(F32)

static block_kernels block_kernels_of(int64_t heads, ink_dtype dtype)
{
#define PAIR(t, h)                         \
    {                                      \
        score_##t##_##h, context_##t##_##h \
    }
#define ROW_OF(t)                                      \
    {                                                  \
        PAIR(t, 1), PAIR(t, 2), PAIR(t, 4), PAIR(t, 8) \
    }
    static const block_kernels all[3][4] = {ROW_OF(F32), ROW_OF(F16), ROW_OF(BF16)};
    return all[dtype == INK_F32 ? 0 : dtype == INK_F16 ? 1 : 2][heads > 4 ? 3 : heads > 2 ? 2 : heads > 1 ? 1 : 0];
}

/* ---- what paged_attention_run.h asks for ---- */

/* Two neighbouring vectors of a context in the order of memory: evens and odds interleaved. */
VEC_INLINE void in_order(vf *a, vf *b, const ink_dtype t)
{
    if (t != INK_BF16)
        return;
#ifdef __AVX512F__
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    vf first = _mm512_permutex2var_ps(*a, low, *b);
    *b = _mm512_permutex2var_ps(*a, _mm512_add_epi32(low, _mm512_set1_epi32(8)), *b);
    *a = first;
#else
    vf low = _mm256_unpacklo_ps(*a, *b), high = _mm256_unpackhi_ps(*a, *b);
    *a = _mm256_permute2f128_ps(low, high, 0x20);
    *b = _mm256_permute2f128_ps(low, high, 0x31);
#endif
}

/* The query at element `at` in the order of the pairs. */
VEC_INLINE void load_query(float *q, int64_t at, const attention_view *a, const ink_dtype t)
{
    for (int64_t i = 0; i * VF < a->dim; i += 2) {
        vf x[2];
        get_pair(a->q + at * element_of(t), t, i, a->dim, false, x);
        v_store(q + i * VF, x[0]);
        v_store(q + (i + 1) * VF, x[1]);
    }
}

/* The heads of a unit, the first at element `at`, to q [padded group][columns]. */
VEC_INLINE void load_queries(float *q, const attention_view *a, int64_t at, const ink_dtype t)
{
    const int64_t columns = columns_of(a->dim), padded = padded_group(a->group);
    for (int64_t g = 0; g < a->group; g++)
        load_query(q + g * columns, at + g * a->dim, a, t);
    memset(q + a->group * columns, 0, (size_t)((padded - a->group) * columns) * sizeof *q);
}

enum { MORE_SCRATCH = 0 };

/* Keys first .. first+n-1 (n <= CHUNK) of sequence s and key head h, against `heads` <= LANES rows of q. */
static void chunk(int64_t heads, const attention_view *a, int64_t s, int64_t h, int64_t first, int64_t n, const float *q,
                  float *scores, float *o, float *top, float *sum)
{
    const int64_t columns = columns_of(a->dim), blocks = (n + KV_BLOCK - 1) / KV_BLOCK;
    const block_kernels run = block_kernels_of(heads, a->dtype);
    int64_t at[CHUNK / KV_BLOCK + 1]; /* byte offsets of the blocks */
    for (int64_t b = 0; b < blocks; b++)
        at[b] = attention_strip(a, s, h, first / KV_BLOCK + b) * (int64_t)a->element;
    for (int64_t b = 0; b < blocks; b++) {
        block k = {a->k + at[b], b + 1 < blocks ? a->k + at[b + 1] : a->v + at[0], a->dim, columns,
                   (int)(n - b * KV_BLOCK < KV_BLOCK ? n - b * KV_BLOCK : KV_BLOCK)};
        run.score(q, &k, scores + b * KV_BLOCK * LANES);
    }
    soften(scores, n, a->scale * 1.44269504f, top, sum);
    for (int64_t i = 0; i < LANES * columns; i += VF)
        v_store(o + i, v_zero());
    for (int64_t b = 0; b < blocks; b++) {
        block v = {a->v + at[b], b + 1 < blocks ? a->v + at[b + 1] : NULL, a->dim, columns,
                   (int)(n - b * KV_BLOCK < KV_BLOCK ? n - b * KV_BLOCK : KV_BLOCK)};
        run.context(scores + b * KV_BLOCK * LANES, &v, o);
    }
}

#include "cpu/paged_attention_run.h"
