/* paged_attention_vec.h - attention of generated tokens (few_rows) for AVX2 and AVX-512: included by
 * paged_attention_avx2.c and paged_attention_avx512.c, which define NAME(x). Any dtype.
 *
 * Memory sets the pace, so every key and value is read once per group of query heads, and the keys of one row are spread
 * over threads: a unit is (row, key head), a task is one chunk of CHUNK keys of a unit (chunks start at multiples of
 * CHUNK), and the partial results (maximum, sum, context) of a unit's chunks are merged from the left in their order.
 * Tasks run in waves of WAVE, which bounds the memory for partial results; a unit cut by the end of a wave carries its
 * merged state into the next, so waves and threads leave no trace in the bits. */
#include "core/status.h"
#include "core/threads.h"
#include "cpu/attention.h"
#include "cpu/attention_exp.h"

enum {
    CHUNK = 128,
    WAVE = 512,
    LANES = 8,                  /* query heads side by side in a vector of scores */
    SCORE_KEYS = VF / LANES,    /* keys in a vector of scores */
};

/* The group in tiles of LANES heads; heads that do not exist are rows of zeros. */
static int64_t padded_group(int64_t group) { return (group + LANES - 1) / LANES * LANES; }

/* ---- rows of 16-bit and FP32 elements as FP32 vectors ----
 * BF16 rows are read 2 VF elements at a time: vector 2i holds the even elements of the i-th stretch and vector 2i + 1 the
 * odd ones, one shift or mask each. Queries and contexts live in the same order; `finish` undoes it. */

static int64_t columns_of(int64_t dim) { return (dim + 2 * VF - 1) / (2 * VF) * (2 * VF); }
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

/* Evens and odds back in order. */
VEC_INLINE void interleave(vf *a, vf *b)
{
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

/* Lane i: the sum of the lanes of v[i]. */
VEC_INLINE vf sums_of_lanes(const vf v[VF])
{
#ifdef __AVX512F__
    vf u[4];
    UNROLL
    for (int i = 0; i < 4; i++) {
        const vf *a = v + 4 * i;
        vf ab = v_add(_mm512_unpacklo_ps(a[0], a[1]), _mm512_unpackhi_ps(a[0], a[1]));
        vf cd = v_add(_mm512_unpacklo_ps(a[2], a[3]), _mm512_unpackhi_ps(a[2], a[3]));
        u[i] = v_add(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
    }
    vf w0 = v_add(_mm512_shuffle_f32x4(u[0], u[1], 0x44), _mm512_shuffle_f32x4(u[0], u[1], 0xee));
    vf w1 = v_add(_mm512_shuffle_f32x4(u[2], u[3], 0x44), _mm512_shuffle_f32x4(u[2], u[3], 0xee));
    return v_add(_mm512_shuffle_f32x4(w0, w1, 0x88), _mm512_shuffle_f32x4(w0, w1, 0xdd));
#else
    vf u[2];
    UNROLL
    for (int i = 0; i < 2; i++) {
        const vf *a = v + 4 * i;
        vf ab = v_add(_mm256_unpacklo_ps(a[0], a[1]), _mm256_unpackhi_ps(a[0], a[1]));
        vf cd = v_add(_mm256_unpacklo_ps(a[2], a[3]), _mm256_unpackhi_ps(a[2], a[3]));
        u[i] = v_add(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
    }
    return v_add(_mm256_permute2f128_ps(u[0], u[1], 0x20), _mm256_permute2f128_ps(u[0], u[1], 0x31));
#endif
}

/* Asks for `bytes` from p on; p may be NULL. */
VEC_INLINE void prefetch(const char *p, int64_t bytes)
{
    for (int64_t i = 0; p && i < bytes; i += 64)
        _mm_prefetch(p + i, _MM_HINT_T0);
}

/* ---- one block of at most 32 keys, contiguous in the pool ----
 * `next`: the block that will be read after it, or NULL. Scores and probabilities are [key][LANES]. */

typedef struct block {
    const char *rows, *next; /* [n][dim] */
    int64_t dim, columns;
    int n;
} block;

/* One pair of vectors of one or two keys into the sums of `heads` heads. */
VEC_INLINE void score_pair(const int heads, const float *q, const block *b, const char *k0, const char *k1, int64_t i,
                           const bool whole, vf *acc, const ink_dtype t)
{
    vf x[2], y[2];
    get_pair(k0, t, i, b->dim, whole, x);
    if (VF == 16)
        get_pair(k1, t, i, b->dim, whole, y);
    UNROLL
    for (int u = 0; u < 2; u++)
        UNROLL
        for (int g = 0; g < heads; g++) {
            vf z = v_load(q + g * b->columns + (i + u) * VF);
            acc[g] = v_fma(z, x[u], acc[g]);
            if (VF == 16)
                acc[VF - LANES + g] = v_fma(z, y[u], acc[VF - LANES + g]);
        }
}

/* s[j][g] = q[g] . k[j]: one FMA chain per lane in d, then the sum of the lanes. A missing last key is a copy of the one
 * before it. */
VEC_INLINE void score_block(const int heads, const float *q, const block *b, float *s, const ink_dtype t)
{
    const int64_t step = b->dim * element_of(t), whole = b->dim / (2 * VF) * 2;
    for (int j = 0; j < b->n; j += SCORE_KEYS) {
        const char *k0 = b->rows + j * step, *k1 = j + 1 < b->n ? k0 + step : k0;
        vf acc[VF];
        UNROLL
        for (int i = 0; i < VF; i++)
            acc[i] = v_zero();
        for (int64_t i = 0; i < whole; i += 2)
            score_pair(heads, q, b, k0, k1, i, true, acc, t);
        if (whole * VF < b->dim)
            score_pair(heads, q, b, k0, k1, whole, false, acc, t);
        v_store(s + j * LANES, sums_of_lanes(acc));
        prefetch(b->next ? b->next + j * step : NULL, SCORE_KEYS * step);
    }
}

/* o[g] += p[j][g] v[j] for vectors i and i + 1; `half` 0 or 1: for one of the two only. */
VEC_INLINE void context_pair(const int heads, const int half, const float *p, const block *b, int64_t i, const bool whole,
                             float *o, const ink_dtype t)
{
    enum { BOTH = 2 };
    const int64_t step = b->dim * element_of(t);
    const int first = half == BOTH ? 0 : half, end = half == BOTH ? 2 : half + 1;
    const char *next = i || half == 1 ? NULL : b->next;
    vf acc[LANES][2];
    UNROLL
    for (int g = 0; g < heads; g++)
        UNROLL
        for (int x = first; x < end; x++)
            acc[g][x] = v_load(o + g * b->columns + (i + x) * VF);
    for (int j = 0; j < b->n; j++) {
        vf v[2];
        get_pair(b->rows + j * step, t, i, b->dim, whole, v);
        UNROLL
        for (int g = 0; g < heads; g++) {
            vf a = v_set(p[j * LANES + g]);
            UNROLL
            for (int x = first; x < end; x++)
                acc[g][x] = v_fma(a, v[x], acc[g][x]);
        }
        prefetch(next ? next + j * step : NULL, step);
    }
    UNROLL
    for (int g = 0; g < heads; g++)
        UNROLL
        for (int x = first; x < end; x++)
            v_store(o + g * b->columns + (i + x) * VF, acc[g][x]);
}

/* Eight heads times two vectors fill 16 registers, which is all that AVX2 has: there the two vectors take turns. */
VEC_INLINE void context_pairs(const int heads, const float *p, const block *b, int64_t i, const bool whole, float *o,
                              const ink_dtype t)
{
    if (VF == 16 || heads < LANES) {
        context_pair(heads, 2, p, b, i, whole, o, t);
    } else {
        context_pair(heads, 0, p, b, i, whole, o, t);
        context_pair(heads, 1, p, b, i, whole, o, t);
    }
}

VEC_INLINE void context_block(const int heads, const float *p, const block *b, float *o, const ink_dtype t)
{
    const int64_t whole = b->dim / (2 * VF) * 2;
    for (int64_t i = 0; i < whole; i += 2)
        context_pairs(heads, p, b, i, true, o, t);
    if (whole * VF < b->dim)
        context_pairs(heads, p, b, whole, false, o, t);
}

/* One pair of functions for each dtype and number of heads, not inlined: each gets the registers for itself. */
typedef struct block_kernels {
    void (*score)(const float *q, const block *b, float *s);
    void (*context)(const float *p, const block *b, float *o);
} block_kernels;
#define BLOCK_KERNELS(t, heads)                                                                                              \
    static __attribute__((noinline)) void score_##t##_##heads(const float *q, const block *b, float *s)                        \
    {                                                                                                                          \
        score_block(heads, q, b, s, INK_##t);                                                                                  \
    }                                                                                                                          \
    static __attribute__((noinline)) void context_##t##_##heads(const float *p, const block *b, float *o)                      \
    {                                                                                                                          \
        context_block(heads, p, b, o, INK_##t);                                                                                \
    }
#define ALL_HEADS(t) BLOCK_KERNELS(t, 1) BLOCK_KERNELS(t, 2) BLOCK_KERNELS(t, 4) BLOCK_KERNELS(t, 8)
ALL_HEADS(BF16)
ALL_HEADS(F16)
ALL_HEADS(F32)

static block_kernels block_kernels_of(int64_t heads, ink_dtype dtype)
{
#define PAIR(t, h) {score_##t##_##h, context_##t##_##h}
#define ROW_OF(t) {PAIR(t, 1), PAIR(t, 2), PAIR(t, 4), PAIR(t, 8)}
    static const block_kernels all[3][4] = {ROW_OF(F32), ROW_OF(F16), ROW_OF(BF16)};
    return all[dtype == INK_F32 ? 0 : dtype == INK_F16 ? 1 : 2][heads > 4 ? 3 : heads > 2 ? 2 : heads > 1 ? 1 : 0];
}

/* ---- one task ---- */

/* Partial result of a unit. Tops carry the factor scale log2(e); a chunk of nothing but -inf has the lowest float, so that
 * no difference of tops is NaN. */
typedef struct partial {
    float *o, *top, *sum; /* [padded group][columns], [padded group], [padded group] */
} partial;

static size_t partial_floats(int64_t group, int64_t dim) { return (size_t)padded_group(group) * (size_t)(columns_of(dim) + 2); }

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

/* ---- merging ---- */

/* `into` holds the chunks so far, `next` the chunk after them. */
static void merge(partial into, partial next, int64_t group, int64_t columns)
{
    for (int64_t g = 0; g < group; g++) {
        float now = next.top[g] > into.top[g] ? next.top[g] : into.top[g];
        float old = exp2_score(into.top[g] - now), add = exp2_score(next.top[g] - now);
        into.top[g] = now;
        into.sum[g] = into.sum[g] * old + next.sum[g] * add;
        vf vold = v_set(old), vadd = v_set(add);
        for (int64_t d = g * columns; d < (g + 1) * columns; d += VF)
            v_store(into.o + d, v_fma(v_load(next.o + d), vadd, v_mul(v_load(into.o + d), vold)));
    }
}

VEC_INLINE void finish(const attention_view *a, int64_t row, int64_t h, partial r, const ink_dtype t)
{
    const int64_t columns = columns_of(a->dim);
    for (int64_t g = 0; g < a->group; g++) {
        const int64_t at = attention_query(a, row, h * a->group + g);
        vf sum = v_set(r.sum[g]);
        for (int64_t d = 0; d < a->dim; d += 2 * VF) {
            vf x = v_load(r.o + g * columns + d), y = v_load(r.o + g * columns + d + VF);
            if (t == INK_BF16)
                interleave(&x, &y);
            v_put(a->y, t, at + d, v_div(x, sum), a->dim - d);
            if (d + VF < a->dim)
                v_put(a->y, t, at + d + VF, v_div(y, sum), a->dim - d - VF);
        }
    }
}

/* ---- the call ---- */

typedef struct decode {
    attention_view a;
    int64_t *before;   /* [rows + 1]: tasks of the rows before */
    int32_t *sequence; /* [rows] */
    int64_t tasks;
    float *partials;   /* [WAVE] */
    float *carry;      /* [2]: read in even and written in odd waves, and the other way round */
    float *scratch;    /* per thread: q, scores */
    size_t scratch_step;
} decode;

static size_t round64(size_t n) { return (n + 63) / 64 * 64; }
/* q of the group, scores of one tile of heads */
static size_t scratch_floats(int64_t group, int64_t dim) { return (size_t)(padded_group(group) * columns_of(dim) + CHUNK * LANES); }

size_t NAME(paged_attention_workspace)(const op_call *c)
{
    const size_t rows = (size_t)c->in[0]->dims[0];
    const int64_t kv = c->in[1]->dims[1], dim = c->in[0]->dims[2], group = kv ? c->in[0]->dims[1] / kv : 0;
    return round64((rows + 1) * sizeof(int64_t)) + round64(rows * sizeof(int32_t)) +
           ((WAVE + 2) * partial_floats(group, dim) + (size_t)c->threads * scratch_floats(group, dim) + 64) * sizeof(float);
}

/* Lays the workspace out, counts the tasks and clears rows that see nothing. */
static void lay_out(decode *w, const op_call *c)
{
    const attention_view *a = &w->a;
    const size_t row_bytes = (size_t)(a->heads * a->dim) * a->element;
    char *at = c->workspace;
    w->before = (int64_t *)at;
    w->sequence = (int32_t *)(at += round64((size_t)(a->rows + 1) * sizeof(int64_t)));
    w->partials = (float *)(at + round64((size_t)a->rows * sizeof(int32_t)));
    w->carry = w->partials + WAVE * partial_floats(a->group, a->dim);
    w->scratch = w->carry + 2 * partial_floats(a->group, a->dim);
    w->scratch_step = scratch_floats(a->group, a->dim);
    w->before[0] = 0;
    for (int64_t s = 0; s < a->sequences; s++)
        for (int64_t i = 0; i < attention_queries(a, s); i++) {
            int64_t t = a->starts[s] + i, visible = attention_visible(a, s, i);
            w->sequence[t] = (int32_t)s;
            w->before[t + 1] = w->before[t] + (visible > 0 ? (visible + CHUNK - 1) / CHUNK * a->kv_heads : 0);
            if (visible <= 0)
                memset(a->y + (size_t)t * row_bytes, 0, row_bytes);
        }
    w->tasks = w->before[a->rows];
}

/* Row, key head and chunk of task i; *chunks of that row. */
static int64_t locate(const decode *w, int64_t i, int64_t *row, int64_t *h, int64_t *chunks)
{
    *row = attention_find(w->before, w->a.rows, i);
    *chunks = (w->before[*row + 1] - w->before[*row]) / w->a.kv_heads;
    *h = (i - w->before[*row]) / *chunks;
    return (i - w->before[*row]) % *chunks;
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

VEC_INLINE void run_task(const decode *w, int64_t i, int64_t wave, const ink_dtype t)
{
    const attention_view *a = &w->a;
    const int64_t columns = columns_of(a->dim), padded = padded_group(a->group);
    float *q = w->scratch + (size_t)thread_index() * w->scratch_step, *scores = q + padded * columns;
    int64_t row, h, chunks, c = locate(w, i, &row, &h, &chunks), s = w->sequence[row];
    int64_t visible = attention_visible(a, s, row - a->starts[s]), first = c * CHUNK, n = visible - first;
    partial out = partial_at(w->partials, (size_t)(i - wave), a->group, a->dim);
    n = n < CHUNK ? n : CHUNK;
    for (int64_t g = 0; g < padded; g++)
        if (g < a->group)
            load_query(q + g * columns, attention_query(a, row, h * a->group + g), a, t);
        else
            memset(q + g * columns, 0, (size_t)columns * sizeof *q);
    for (int64_t g = 0; g < a->group; g += LANES)
        chunk(a->group - g, a, s, h, first, n, q + g * columns, scores, out.o + g * columns, out.top + g, out.sum + g);
}

/* The unit whose first task in this wave is i: merges its chunks, then stores the result or carries it on. */
VEC_INLINE void run_merge(const decode *w, int64_t i, int64_t wave, int64_t end, const ink_dtype t)
{
    const attention_view *a = &w->a;
    const size_t number = (size_t)(wave / WAVE);
    int64_t row, h, chunks, c = locate(w, i, &row, &h, &chunks);
    partial r = partial_at(w->partials, (size_t)(i - wave), a->group, a->dim);
    if (c) { /* begun in the wave before */
        partial carried = partial_at(w->carry, number & 1, a->group, a->dim);
        merge(carried, r, a->group, columns_of(a->dim));
        r = carried;
    }
    for (i++, c++; c < chunks && i < end; i++, c++)
        merge(r, partial_at(w->partials, (size_t)(i - wave), a->group, a->dim), a->group, columns_of(a->dim));
    if (c == chunks)
        finish(a, row, h, r, t);
    else
        memcpy(partial_at(w->carry, ~number & 1, a->group, a->dim).o, r.o, partial_floats(a->group, a->dim) * sizeof(float));
}

VEC_INLINE void run_waves(const decode *w, int threads, const ink_dtype t)
{
#pragma omp parallel num_threads(threads) if (w->tasks > 1)
    for (int64_t wave = 0; wave < w->tasks; wave += WAVE) {
        const int64_t end = w->tasks - wave < WAVE ? w->tasks : wave + WAVE;
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = wave; i < end; i++)
            run_task(w, i, wave, t);
#pragma omp for schedule(static)
        for (int64_t i = wave; i < end; i++) {
            int64_t row, h, chunks;
            if (!locate(w, i, &row, &h, &chunks) || i == wave)
                run_merge(w, i, wave, end, t);
        }
    }
}

ink_status NAME(paged_attention)(const op_call *c)
{
    decode w;
    TRY(attention_open(c, &w.a));
    lay_out(&w, c);
    switch (w.a.dtype) {
    case INK_BF16: run_waves(&w, c->threads, INK_BF16); break;
    case INK_F16: run_waves(&w, c->threads, INK_F16); break;
    default: run_waves(&w, c->threads, INK_F32); break;
    }
    return INK_OK;
}
