/* attention_amx.c - attention of prompt rows in BF16 on matrix tiles (AMX-BF16); attention and paged_attention.
 *
 * Everything is transposed, so that 16 queries lie side by side in a vector and the softmax needs no sideways step:
 *   S^T [keys, queries] = K Q^T      A: K as it is (16 keys x 32 columns), B: Q in pairs of columns, packed once per task
 *   P^T = 2^(c S^T - base)           maximum, sum and masking lane by lane
 *   O^T [D, queries] += V^T P^T      A: V transposed (16 columns x 32 keys), B: P^T in pairs of keys, as the softmax leaves
 * it A task is one key head of one sequence and up to ROWS of its (query, head of the group) pairs; blocks of KEYS keys
 * start at multiples of KEYS. Columns are padded to 32 (scores) and 16 (context) with zeros.
 *
 * Masked probabilities are exact zeros and change no sum, except against a value that is not finite: those are replaced by
 * zeros in V^T and added one by one to the rows that see them. Probabilities are rounded to BF16 (the tie, met once in
 * 2^16, goes up) after a polynomial of degree 3; tiles flush subnormals: KERNEL_P16 and KERNEL_FTZ. */
#ifdef __x86_64__
#include "core/status.h"
#include "core/threads.h"
#include "cpu/attention.h"
#include "cpu/attention_exp.h"
#include "cpu/tiles_amx.h"

enum {
    TILE = 16, /* rows of a tile; queries in a vector */
    STEP = 32, /* BF16 in a row of a tile */
    TILE_BYTES = 1024,
    ROWS = 1024,
    KEYS = 64,       /* K, V, scores and probabilities of a block stay in the first-level cache */
    PAIR = 2 * TILE, /* queries that go through the softmax together */
};

typedef struct scratch {
    char *q;                     /* [ROWS / 16][steps] tiles: 16 pairs of columns x 16 queries */
    char *k;                     /* [KEYS / 16][steps] tiles: 16 keys x 32 columns */
    char *v;                     /* [KEYS / 32][columns / 16] tiles: 16 columns x 32 keys, finite */
    char *o;                     /* [ROWS / 16][columns / 16] tiles of FP32: 16 columns x 16 queries */
    char *s;                     /* [KEYS / 16][2] tiles of FP32: 16 keys x 16 queries */
    char *p;                     /* [KEYS / 32][2] tiles: 16 pairs of keys x 16 queries */
    float base[ROWS], sum[ROWS]; /* base: maximum of c s so far, the lowest float at first */
    int32_t visible[ROWS];       /* keys */
    int64_t steps, column_tiles;
    int64_t keys; /* of the sequence, as far as the task sees them */
    bool special; /* the block of V in work holds values that are not finite */
} scratch;

static size_t head_bytes(void) { return (sizeof(scratch) + 63) / 64 * 64; }
static size_t scratch_bytes(int64_t dim)
{
    size_t steps = (size_t)(dim + STEP - 1) / STEP, tiles = (size_t)(dim + TILE - 1) / TILE;
    return head_bytes() +
           TILE_BYTES * (ROWS / TILE * (steps + tiles) + KEYS / TILE * (steps + 2) + KEYS / STEP * (tiles + 2));
}

static scratch *scratch_place(char *at, int64_t dim)
{
    scratch *w = (scratch *)at;
    w->steps = (dim + STEP - 1) / STEP;
    w->column_tiles = (dim + TILE - 1) / TILE;
    w->q = at + head_bytes();
    w->k = w->q + ROWS / TILE * w->steps * TILE_BYTES;
    w->v = w->k + KEYS / TILE * w->steps * TILE_BYTES;
    w->o = w->v + KEYS / STEP * w->column_tiles * TILE_BYTES;
    w->s = w->o + ROWS / TILE * w->column_tiles * TILE_BYTES;
    w->p = w->s + KEYS / TILE * 2 * TILE_BYTES;
    return w;
}

/* ---- packing ---- */

/* 16 x 16 words. */
VEC_INLINE void transpose16(__m512i v[16])
{
    __m512i t[16];
    UNROLL
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        v[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
        v[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
        v[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
        v[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
    }
    UNROLL
    for (int i = 0; i < 4; i++) { /* v[i + 4 j]: rows 4 j .. 4 j + 3 of columns i, i + 4, i + 8, i + 12 */
        __m512i a = _mm512_shuffle_i32x4(v[i], v[i + 4], 0x88), b = _mm512_shuffle_i32x4(v[i], v[i + 4], 0xdd);
        __m512i c = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0x88), d = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0xdd);
        t[i] = _mm512_shuffle_i32x4(a, c, 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(b, d, 0x88);
        t[i + 8] = _mm512_shuffle_i32x4(a, c, 0xdd);
        t[i + 12] = _mm512_shuffle_i32x4(b, d, 0xdd);
    }
    UNROLL
    for (int i = 0; i < 16; i++)
        v[i] = t[i];
}

/* The first n of 32 BF16, n <= 0: none. */
VEC_INLINE __m512i load_row(const uint16_t *p, int64_t n)
{
    if (n >= STEP)
        return _mm512_loadu_si512(p);
    return n > 0 ? _mm512_maskz_loadu_epi16((__mmask32)((1u << n) - 1), p) : _mm512_setzero_si512();
}

/* Element offset of row r of the task that starts at `first`. */
VEC_INLINE int64_t query_at(const attention_view *a, int64_t s, int64_t h, int64_t row)
{
    return attention_query(a, a->starts[s] + row / a->group, h * a->group + row % a->group);
}

static void pack_queries(const attention_view *a, int64_t s, int64_t h, int64_t first, int64_t rows, scratch *w)
{
    for (int64_t r = 0; r < (rows + PAIR - 1) / PAIR * PAIR; r += TILE)
        for (int64_t step = 0; step < w->steps; step++) {
            __m512i v[16];
            for (int64_t i = 0; i < TILE; i++)
                v[i] = r + i < rows ? load_row((const uint16_t *)a->q + query_at(a, s, h, first + r + i) + step * STEP,
                                               a->dim - step * STEP)
                                    : _mm512_setzero_si512();
            transpose16(v);
            char *to = w->q + (r / TILE * w->steps + step) * TILE_BYTES;
            for (int i = 0; i < 16; i++)
                _mm512_storeu_si512(to + 64 * i, v[i]);
        }
}

VEC_INLINE int64_t key_at(const attention_view *a, int64_t s, int64_t h, int64_t key)
{
    return attention_strip(a, s, h, key / KV_BLOCK) + key % KV_BLOCK * a->key_step;
}

static void pack_keys(const attention_view *a, int64_t s, int64_t h, int64_t first, int64_t n, scratch *w)
{
    for (int64_t j = 0; j < (n + STEP - 1) / STEP * STEP; j++) {
        const uint16_t *row = (const uint16_t *)a->k + (j < n ? key_at(a, s, h, first + j) : 0);
        char *to = w->k + j / TILE * w->steps * TILE_BYTES + j % TILE * 64;
        for (int64_t step = 0; step < w->steps; step++)
            _mm512_storeu_si512(to + step * TILE_BYTES, load_row(row + step * STEP, j < n ? a->dim - step * STEP : 0));
    }
}

/* Columns d .. d+15 of one value, widened to words; n of them exist. */
VEC_INLINE __m512i load_values(const uint16_t *p, int64_t n)
{
    return _mm512_cvtepu16_epi32(n >= 16 ? _mm256_loadu_si256((const __m256i *)p)
                                         : _mm256_maskz_loadu_epi16(v_first(n), p));
}

VEC_INLINE __m512i finite_only(__m512i pairs, bool *special)
{
    const __m512i low = _mm512_set1_epi16(0x7f80);
    __mmask32 bad = _mm512_cmpeq_epi16_mask(_mm512_and_si512(pairs, low), low);
    *special |= bad != 0;
    return _mm512_mask_mov_epi16(pairs, bad, _mm512_setzero_si512());
}

static void pack_values(const attention_view *a, int64_t s, int64_t h, int64_t first, int64_t n, scratch *w)
{
    w->special = false;
    for (int64_t j = 0; j < n; j += STEP) {
        const uint16_t *strip = (const uint16_t *)a->v + attention_strip(a, s, h, (first + j) / KV_BLOCK);
        const int64_t left = n - j;
        for (int64_t t = 0; t < w->column_tiles; t++) {
            const int64_t columns = a->dim - t * TILE;
            __m512i v[16];
            for (int64_t i = 0; i < 16; i++) {
                const uint16_t *p = strip + 2 * i * a->key_step + t * TILE;
                v[i] = 2 * i < left ? load_values(p, columns) : _mm512_setzero_si512();
                if (2 * i + 1 < left)
                    v[i] = _mm512_or_si512(v[i], _mm512_slli_epi32(load_values(p + a->key_step, columns), 16));
                v[i] = finite_only(v[i], &w->special);
            }
            transpose16(v);
            char *to = w->v + (j / STEP * w->column_tiles + t) * TILE_BYTES;
            for (int i = 0; i < 16; i++)
                _mm512_storeu_si512(to + 64 * i, v[i]);
        }
    }
}

/* Asks for keys and values from .. to - 1, as far as there are any. */
static void prefetch_rows(const attention_view *a, int64_t s, int64_t h, int64_t from, int64_t to, int64_t keys)
{
    for (int64_t j = from; j < to && j < keys; j++) {
        const int64_t at = key_at(a, s, h, j) * 2;
        for (int64_t d = 0; d < 2 * a->dim; d += 64) {
            _mm_prefetch(a->k + at + d, _MM_HINT_T1);
            _mm_prefetch(a->v + at + d, _MM_HINT_T1);
        }
    }
}

/* ---- scores ---- */

/* Step i of the scores of 32 keys (group g of the block) against the 32 queries of a pair, in tiles 0 .. 3. */
VEC_INLINE void score_step(const scratch *w, int64_t pair, int64_t g, int64_t i)
{
    const char *k0 = w->k + (2 * g * w->steps + i) * TILE_BYTES, *k1 = k0 + w->steps * TILE_BYTES;
    const char *q0 = w->q + (2 * pair * w->steps + i) * TILE_BYTES, *q1 = q0 + w->steps * TILE_BYTES;
    if (i == 0) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    _tile_loadd(4, k0, 64);
    _tile_loadd(6, q0, 64);
    _tile_loadd(5, k1, 64);
    _tile_loadd(7, q1, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
}

VEC_INLINE void score_store(const scratch *w, int64_t g)
{
    char *s = w->s + g * 4 * TILE_BYTES;
    _tile_stored(0, s, 64);
    _tile_stored(1, s + TILE_BYTES, 64);
    _tile_stored(2, s + 2 * TILE_BYTES, 64);
    _tile_stored(3, s + 3 * TILE_BYTES, 64);
}

/* ---- softmax ---- */

/* 2^t, t <= 0, relative error below 1.1e-4, which the rounding to BF16 (up to 4e-3) hides; otherwise as v_exp2_score. */
VEC_INLINE vf exp2_short(vf t)
{
    const vf shift = v_set(0x1.8p23f + 127);
    t = v_max(v_set(-127.f), t);
    vf n = v_add(t, shift), f = v_sub(t, v_sub(n, shift));
    vf p = v_fma(v_set(5.5008933e-2f), f, v_set(2.4221097e-1f));
    p = v_fma(p, f, v_set(6.9328290e-1f));
    p = v_fma(p, f, v_set(1.f));
    return v_mul(p, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(n), 23)));
}

/* Two probabilities of a query as a pair of BF16, the first one low. */
VEC_INLINE __m512i round_pair(vf first, vf second)
{
    const __m512i half = _mm512_set1_epi32(0x8000);
    __m512i low = _mm512_srli_epi32(_mm512_add_epi32(_mm512_castps_si512(first), half), 16);
    __m512i high = _mm512_add_epi32(_mm512_castps_si512(second), half);
    return _mm512_ternarylogic_epi32(high, _mm512_set1_epi32((int)0xffff0000), low, 0xea); /* (high & mask) | low */
}

VEC_INLINE vf masked(vf s, __m512i visible, int64_t key, const bool mask)
{
    if (!mask)
        return s;
    return _mm512_mask_mov_ps(v_set(-INFINITY), _mm512_cmpgt_epi32_mask(visible, _mm512_set1_epi32((int)key)), s);
}

/* The maximum of n scores (a multiple of 32) of 16 queries: half `half` of a pair. */
VEC_INLINE vf top_of(const scratch *w, int half, __m512i visible, int64_t first, int64_t n, const bool mask)
{
    vf m0 = v_set(-INFINITY), m1 = m0;
    for (int64_t tile = 0; tile < n / TILE; tile++) {
        const float *row = (const float *)(w->s + (tile * 2 + half) * TILE_BYTES);
        UNROLL
        for (int j = 0; j < TILE; j += 2) {
            m0 = v_max(m0, masked(v_load(row + j * TILE), visible, first + tile * TILE + j, mask));
            m1 = v_max(m1, masked(v_load(row + (j + 1) * TILE), visible, first + tile * TILE + j + 1, mask));
        }
    }
    return v_max(m0, m1);
}

/* Moves the base of 16 queries up to c times their new maximum, and sum and context with it. A NaN among the scores makes
 * the sum NaN later, whatever the base. */
VEC_INLINE vf move_base(scratch *w, int64_t r, vf top, vf c)
{
    const vf before = v_load(w->base + r), base = v_max(v_mul(top, c), before), fix = v_exp2_score(v_sub(before, base));
    v_store(w->base + r, base);
    v_store(w->sum + r, v_mul(v_load(w->sum + r), fix));
    if (_mm512_cmp_ps_mask(fix, v_set(1), _CMP_NEQ_UQ)) {
        float *o = (float *)(w->o + r / TILE * w->column_tiles * TILE_BYTES);
        for (int64_t d = 0; d < w->column_tiles * TILE; d++)
            v_store(o + d * TILE, v_mul(v_load(o + d * TILE), fix));
    }
    return v_sub(v_zero(), base);
}

/* One tile of scores to probabilities, key tile `tile` of the block; returns the sum with them. */
VEC_INLINE vf exponentials(const scratch *w, int64_t tile, int half, __m512i visible, int64_t first, vf c, vf minus, vf sum,
                           const bool mask)
{
    const float *row = (const float *)(w->s + (tile * 2 + half) * TILE_BYTES);
    char *out = w->p + (tile / 2 * 2 + half) * TILE_BYTES + tile % 2 * (TILE_BYTES / 2);
    UNROLL
    for (int j = 0; j < TILE; j += 2) {
        const int64_t key = first + tile * TILE + j;
        vf a = exp2_short(v_fma(masked(v_load(row + j * TILE), visible, key, mask), c, minus));
        vf b = exp2_short(v_fma(masked(v_load(row + (j + 1) * TILE), visible, key + 1, mask), c, minus));
        sum = v_add(sum, v_add(a, b));
        _mm512_storeu_si512(out + j / 2 * 64, round_pair(a, b));
    }
    return sum;
}

/* Softmax of a pair over n keys. Meanwhile the tiles compute the scores of the next pair over next_n keys: a step of them
 * in front of each quarter of a group of exponentials, and their result goes where the group's scores were. */
VEC_INLINE void soften(scratch *w, int64_t pair, int64_t first, int64_t n, int64_t next_n, float scale, const bool mask)
{
    const int64_t r = pair * PAIR, groups = n > next_n ? n / STEP : next_n / STEP;
    const vf c = v_set(scale);
    vf minus[2], sum[2];
    __m512i visible[2];
    for (int half = 0; half < 2; half++) {
        visible[half] = _mm512_loadu_si512(w->visible + r + half * TILE);
        minus[half] = move_base(w, r + half * TILE, top_of(w, half, visible[half], first, n, mask), c);
        sum[half] = v_load(w->sum + r + half * TILE);
    }
    for (int64_t g = 0; g < groups; g++) {
        UNROLL
        for (int quarter = 0; quarter < 4; quarter++) {
            if (g * STEP < next_n)
                for (int64_t i = quarter * w->steps / 4; i < (quarter + 1) * w->steps / 4; i++)
                    score_step(w, pair + 1, g, i);
            if (g * STEP < n)
                sum[quarter & 1] = exponentials(w, 2 * g + quarter / 2, quarter & 1, visible[quarter & 1], first, c,
                                                minus[quarter & 1], sum[quarter & 1], mask);
        }
        if (g * STEP < next_n)
            score_store(w, g);
    }
    v_store(w->sum + r, sum[0]);
    v_store(w->sum + r + TILE, sum[1]);
}

/* ---- context ---- */

/* Column tiles t and, if `two`, t + 1 of a pair: O^T += V^T P^T over n keys. */
VEC_INLINE void context_tiles(const scratch *w, int64_t pair, int64_t t, int64_t n, const bool two)
{
    char *o0 = w->o + (2 * pair * w->column_tiles + t) * TILE_BYTES, *o1 = o0 + w->column_tiles * TILE_BYTES;
    const char *v = w->v + t * TILE_BYTES, *p = w->p;
    tiles_fence();
    _tile_loadd(0, o0, 64);
    _tile_loadd(1, o1, 64);
    if (two) {
        _tile_loadd(2, o0 + TILE_BYTES, 64);
        _tile_loadd(3, o1 + TILE_BYTES, 64);
    }
    for (int64_t j = 0; j < n; j += STEP, v += w->column_tiles * TILE_BYTES, p += 2 * TILE_BYTES) {
        _tile_loadd(4, v, 64);
        _tile_loadd(6, p, 64);
        _tile_loadd(7, p + TILE_BYTES, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        if (two) {
            _tile_loadd(5, v + TILE_BYTES, 64);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, o0, 64);
    _tile_stored(1, o1, 64);
    if (two) {
        _tile_stored(2, o0 + TILE_BYTES, 64);
        _tile_stored(3, o1 + TILE_BYTES, 64);
    }
}

/* What the cleaned V^T lacks: values that are not finite, for the rows that see them. */
static void add_special(const attention_view *a, const scratch *w, int64_t s, int64_t h, int64_t pair, int64_t first,
                        int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t d = 0; d < a->dim; d++) {
            float v = bf16_to_f32(((const uint16_t *)a->v)[key_at(a, s, h, first + j) + d]);
            if (isfinite(v))
                continue;
            for (int64_t r = pair * PAIR; r < (pair + 1) * PAIR; r++) {
                const bf16 *p = (const bf16 *)(w->p + (j / STEP * 2 + r / TILE % 2) * TILE_BYTES + j % STEP / 2 * 64);
                float *o =
                    (float *)(w->o + (r / TILE * w->column_tiles + d / TILE) * TILE_BYTES) + d % TILE * TILE + r % TILE;
                if (first + j < w->visible[r])
                    *o += bf16_to_f32(p[r % TILE * 2 + (j & 1)]) * v;
            }
        }
}

/* ---- one task ---- */

/* Keys of a block of n that a pair sees: the most and the least of its rows, and the most rounded up to whole groups. */
typedef struct extent {
    int64_t most, least, whole;
} extent;

static extent extent_of(const scratch *w, int64_t pair, int64_t pairs, int64_t first, int64_t n)
{
    extent e = {0, n, 0};
    for (int64_t r = pair * PAIR; pair < pairs && r < (pair + 1) * PAIR; r++) {
        int64_t seen = w->visible[r] - first;
        e.most = seen > e.most ? seen : e.most;
        e.least = seen < e.least ? seen : e.least;
    }
    e.most = e.most > n ? n : e.most;
    e.whole = (e.most + STEP - 1) / STEP * STEP;
    return e;
}

/* The block of n keys from `first`, packed, against all pairs of queries. */
static void run_block(const attention_view *a, scratch *w, int64_t s, int64_t h, int64_t pairs, int64_t first, int64_t n)
{
    const float scale = a->scale * 1.44269504f;
    extent now = {0}, next = extent_of(w, 0, pairs, first, n);
    tiles_fence();
    for (int64_t g = 0; g < next.whole / STEP; g++) {
        for (int64_t i = 0; i < w->steps; i++)
            score_step(w, 0, g, i);
        score_store(w, g);
    }
    for (int64_t pair = 0; pair < pairs; pair++) {
        now = next;
        next = extent_of(w, pair + 1, pairs, first, n);
        if (now.least >= now.whole)
            soften(w, pair, first, now.whole, next.whole, scale, false);
        else
            soften(w, pair, first, now.whole, next.whole, scale, true);
        int64_t t = 0;
        for (; now.whole && t + 2 <= w->column_tiles; t += 2)
            context_tiles(w, pair, t, now.whole, true);
        if (now.whole && t < w->column_tiles)
            context_tiles(w, pair, t, now.whole, false);
        if (w->special && now.whole)
            add_special(a, w, s, h, pair, first, now.most);
        prefetch_rows(a, s, h, first + KEYS + pair * KEYS / pairs, first + KEYS + (pair + 1) * KEYS / pairs, w->keys);
    }
}

/* Rows of a tile of queries, divided by their sums. Adding 0 makes -0 a 0: which of the two a tile leaves behind depends
 * on how many masked keys were in it. */
static void store_rows(const attention_view *a, const scratch *w, int64_t s, int64_t h, int64_t first, int64_t r,
                       int64_t rows)
{
    const vf sum = _mm512_mask_mov_ps(
        v_set(1), _mm512_cmpgt_epi32_mask(_mm512_loadu_si512(w->visible + r), _mm512_setzero_si512()), v_load(w->sum + r));
    for (int64_t t = 0; t < w->column_tiles; t++) {
        const float *o = (const float *)(w->o + (r / TILE * w->column_tiles + t) * TILE_BYTES);
        __m512i v[16];
        for (int d = 0; d < TILE; d++)
            v[d] = _mm512_castps_si512(v_add(v_div(v_load(o + d * TILE), sum), v_zero()));
        transpose16(v);
        for (int64_t i = 0; i < TILE && r + i < rows; i++)
            v_store_16bit((uint16_t *)a->y + query_at(a, s, h, first + r + i) + t * TILE, _mm512_castsi512_ps(v[i]),
                          a->dim - t * TILE, INK_BF16);
    }
}

static void task(const attention_view *a, int64_t s, int64_t h, int64_t first, int64_t rows, scratch *w)
{
    const int64_t pairs = (rows + PAIR - 1) / PAIR;
    for (int64_t r = 0; r < pairs * PAIR; r++) {
        int64_t visible = r < rows ? attention_visible(a, s, (first + r) / a->group) : 0;
        w->visible[r] = (int32_t)(visible < 0 ? 0 : visible);
        w->base[r] = -3.4e38f;
        w->sum[r] = 0;
    }
    memset(w->o, 0, (size_t)(2 * pairs * w->column_tiles * TILE_BYTES));
    pack_queries(a, s, h, first, rows, w);
    w->keys = w->visible[rows - 1];
    for (int64_t key = 0; key < w->keys; key += KEYS) {
        const int64_t n = w->keys - key < KEYS ? w->keys - key : KEYS;
        pack_keys(a, s, h, key, n, w);
        pack_values(a, s, h, key, n, w);
        run_block(a, w, s, h, pairs, key, n);
    }
    for (int64_t r = 0; r < rows; r += TILE)
        store_rows(a, w, s, h, first, r, rows);
}

/* ---- the call ---- */

static size_t index_bytes(int64_t starts) { return ((size_t)starts * sizeof(int64_t) + 63) / 64 * 64; }

size_t attention_workspace_amx(const op_call *c)
{
    const ink_tensor *cu = c->in[c->op == OP_paged_attention ? 5 : 3];
    return index_bytes(cu->dims[0]) + (size_t)c->threads * scratch_bytes(c->in[0]->dims[2]);
}

/* Rows of a task: many, since each packs its keys anew, but three tasks or more for a thread. */
static int64_t task_rows(const attention_view *a, int threads)
{
    int64_t rows = a->rows * a->heads / (3 * (int64_t)threads);
    rows = (rows + PAIR - 1) / PAIR * PAIR;
    return rows < 4 * PAIR ? 4 * PAIR : rows > ROWS ? ROWS : rows;
}

ink_status attention_amx(const op_call *c)
{
    attention_view a;
    TRY(attention_open(c, &a));
    const int64_t most = task_rows(&a, c->threads);
    int64_t *before = c->workspace; /* tasks of the sequences before */
    before[0] = 0;
    for (int64_t s = 0; s < a.sequences; s++)
        before[s + 1] = before[s] + attention_row_blocks(&a, s, most) * a.kv_heads;
    const int64_t tasks = before[a.sequences];
    char *memory = (char *)c->workspace + index_bytes(a.sequences + 1);
#pragma omp parallel num_threads(c->threads) if (tasks > 1)
    {
        scratch *w = scratch_place(memory + (size_t)thread_index() * scratch_bytes(a.dim), a.dim);
        tiles_configure();
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < tasks; i++) { /* from the end: the last rows of a causal sequence have the most keys */
            const int64_t at = tasks - 1 - i, s = attention_find(before, a.sequences, at);
            const int64_t blocks = attention_row_blocks(&a, s, most), b = (at - before[s]) % blocks;
            int64_t rows, first = attention_row_block(&a, s, b, most, PAIR, &rows);
            task(&a, s, (at - before[s]) / blocks, first, rows, w);
        }
        tiles_release();
    }
    return INK_OK;
}
#endif
