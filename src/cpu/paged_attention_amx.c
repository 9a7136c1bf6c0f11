/* paged_attention_amx.c - attention of generated tokens in BF16 on matrix tiles, for head sizes 32, 64, 96 and 128.
 *
 * Eight query heads share each key and value:
 *   S^T [16 keys, 8 heads] = K Q^T       A: rows of the pool where they are, B: Q in pairs of columns
 *   O [8 heads, 16 columns] += P V       A: P rounded to BF16, B: two rows of V interleaved by 16-bit words
 * The interleaving works on 128-bit lanes, so a stretch of 32 columns comes as two tiles with columns 8 L .. 8 L + 3 and
 * 8 L + 4 .. 8 L + 7, L = 0 .. 3; in_order puts them right. KERNEL_P16 and KERNEL_FTZ. */
#ifdef __x86_64__
#define NAME(x) x##_amx
#define ONLY_BF16
#include "cpu/paged_attention.h"
#include "cpu/tiles_amx.h"

enum {
    STEP = 32,     /* BF16 in a row of a tile */
    MAX_STEPS = 4, /* 128 columns */
    TILE_BYTES = 1024,
    HALF_STEPS = 2, /* stretches of columns whose four tiles of O stay in registers */
    P_BYTES = CHUNK / KV_BLOCK * LANES * 64,
    AHEAD = 1, /* blocks that are asked for before they are read */
    MORE_SCRATCH = (P_BYTES + HALF_STEPS * 2 * TILE_BYTES) / 4,
};

VEC_INLINE void in_order(vf *a, vf *b, const ink_dtype t)
{
    (void)t;
    const __m512i low = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    vf first = _mm512_permutex2var_ps(*a, low, *b);
    *b = _mm512_permutex2var_ps(*a, _mm512_add_epi32(low, _mm512_set1_epi32(8)), *b);
    *a = first;
}

VEC_INLINE void transpose8(__m256i v[8])
{
    __m256i t[8], u[8];
    UNROLL
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm256_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
    }
    UNROLL
    for (int i = 0; i < 2; i++) {
        u[4 * i] = _mm256_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
        u[4 * i + 1] = _mm256_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
        u[4 * i + 2] = _mm256_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
        u[4 * i + 3] = _mm256_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2x128_si256(u[i], u[i + 4], 0x20);
        v[i + 4] = _mm256_permute2x128_si256(u[i], u[i + 4], 0x31);
    }
}

/* Eight heads at a time: [step][16 pairs of columns][8 heads], at the place of their rows in q. */
VEC_INLINE void load_queries(float *q, const attention_view *a, int64_t at, const ink_dtype t)
{
    (void)t;
    for (int64_t g = 0; g < a->group; g += LANES)
        for (int64_t pair = 0; pair < a->dim / 2; pair += 8) {
            __m256i v[8];
            for (int i = 0; i < LANES; i++)
                v[i] =
                    g + i < a->group
                        ? _mm256_loadu_si256((const __m256i *)((const uint16_t *)a->q + at + (g + i) * a->dim + 2 * pair))
                        : _mm256_setzero_si256();
            transpose8(v);
            for (int i = 0; i < 8; i++)
                _mm256_storeu_si256((__m256i *)(q + g * columns_of(a->dim) + (pair + i) * LANES), v[i]);
        }
}

/* ---- tiles ---- */

typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} tile_config;

/* 0, 1: scores; 2, 3: keys; 4 .. 7: queries, one tile a step */
static const tile_config score_config = {
    .palette = 1, .bytes = {32, 32, 64, 64, 32, 32, 32, 32}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
/* 0 .. 3: contexts; 4: probabilities; 5, 6: values */
static const tile_config context_config = {
    .palette = 1, .bytes = {64, 64, 64, 64, 64, 64, 64}, .rows = {8, 8, 8, 8, 8, 16, 16}};

/* `queries`: a literal, the tile 4 + i. The next block is asked for little by little: sixteen lines wanted at once would
 * hold up the loads behind them. */
#define SCORE_STEP(i, queries)                           \
    do {                                                 \
        prefetch(next, 16 * 64);                         \
        _tile_loadd(2, rows + (i)*64, step);             \
        _tile_dpbf16ps(0, 2, queries);                   \
        prefetch(next ? next + 16 * 64 : NULL, 16 * 64); \
        _tile_loadd(3, rows + 16 * step + (i)*64, step); \
        _tile_dpbf16ps(1, 3, queries);                   \
        next = next ? next + KV_BLOCK * 64 : NULL;       \
    } while (0)

/* s[j][g] for all 32 keys of a block; those behind the end come out of whatever the pool holds and are not looked at. */
VEC_INLINE void score_block(const char *rows, const char *next, int64_t dim, float *s)
{
    const int64_t step = 2 * dim;
    _tile_zero(0);
    _tile_zero(1);
    SCORE_STEP(0, 4);
    if (dim > STEP)
        SCORE_STEP(1, 5);
    if (dim > 2 * STEP)
        SCORE_STEP(2, 6);
    if (dim > 3 * STEP)
        SCORE_STEP(3, 7);
    _tile_stored(0, s, LANES * 4);
    _tile_stored(1, s + 16 * LANES, LANES * 4);
}

/* Probabilities [n][LANES] as A tiles, one a block: [8 heads][32 keys] BF16, zeros behind n. */
static void pack_probabilities(float *s, int64_t n, char *p)
{
    const __m256i half = _mm256_set1_epi32(0x8000), high = _mm256_set1_epi32((int)0xffff0000);
    const int64_t whole = (n + KV_BLOCK - 1) / KV_BLOCK * KV_BLOCK;
    for (int64_t j = (n + 1) / 2 * 2; j < whole; j += 2)
        v_store(s + j * LANES, v_zero());
    for (int64_t j = 0; j < whole; j += 16) {
        __m256i v[8];
        UNROLL
        for (int i = 0; i < 8; i++) {
            const __m256i *two = (const __m256i *)(s + (j + 2 * i) * LANES);
            __m256i first = _mm256_add_epi32(_mm256_loadu_si256(two), half),
                    second = _mm256_add_epi32(_mm256_loadu_si256(two + 1), half);
            v[i] = _mm256_or_si256(_mm256_srli_epi32(first, 16), _mm256_and_si256(second, high));
        }
        transpose8(v);
        UNROLL
        for (int i = 0; i < 8; i++)
            _mm256_storeu_si256((__m256i *)(p + j / KV_BLOCK * LANES * 64 + i * 64 + j % KV_BLOCK * 2), v[i]);
    }
}

/* Columns of `steps` stretches of n rows of V, two rows woven into one, to 2 steps tiles; rows behind n are zeros. */
VEC_INLINE void weave(const char *rows, const char *next, int64_t dim, int n, int steps, char *to)
{
    const int64_t step = 2 * dim;
    for (int i = 0; i < 16; i++) {
        prefetch(next ? next + 2 * i * step : NULL, 2 * step);
        for (int c = 0; c < steps; c++) {
            __m512i a = _mm512_setzero_si512(), b = a;
            if (2 * i < n)
                a = _mm512_loadu_si512(rows + 2 * i * step + c * 64);
            if (2 * i + 1 < n)
                b = _mm512_loadu_si512(rows + (2 * i + 1) * step + c * 64);
            _mm512_storeu_si512(to + 2 * c * TILE_BYTES + i * 64, _mm512_unpacklo_epi16(a, b));
            _mm512_storeu_si512(to + (2 * c + 1) * TILE_BYTES + i * 64, _mm512_unpackhi_epi16(a, b));
        }
    }
}

VEC_INLINE void context_block(const char *p, const char *woven, const bool two)
{
    tiles_fence();
    _tile_loadd(4, p, 64);
    _tile_loadd(5, woven, 64);
    _tile_dpbf16ps(0, 4, 5);
    _tile_loadd(6, woven + TILE_BYTES, 64);
    _tile_dpbf16ps(1, 4, 6);
    if (two) {
        _tile_loadd(5, woven + 2 * TILE_BYTES, 64);
        _tile_dpbf16ps(2, 4, 5);
        _tile_loadd(6, woven + 3 * TILE_BYTES, 64);
        _tile_dpbf16ps(3, 4, 6);
    }
    tiles_fence();
}

/* ---- one task ---- */

/* The blocks of a chunk: byte offsets in k and in v. */
typedef struct chunk_blocks {
    int64_t at[CHUNK / KV_BLOCK];
    int64_t count;
    const char *k, *v;
} chunk_blocks;

/* Block i of K, or of V behind them; NULL behind those. */
VEC_INLINE const char *block_of(const chunk_blocks *b, int64_t i)
{
    return i < b->count ? b->k + b->at[i] : i < 2 * b->count ? b->v + b->at[i - b->count] : NULL;
}

static void scores_of(const chunk_blocks *b, const attention_view *a, const float *q, float *s)
{
    _tile_loadconfig(&score_config);
    tiles_fence();
    _tile_loadd(4, q, LANES * 4);
    if (a->dim > STEP)
        _tile_loadd(5, q + 16 * LANES, LANES * 4);
    if (a->dim > 2 * STEP)
        _tile_loadd(6, q + 32 * LANES, LANES * 4);
    if (a->dim > 3 * STEP)
        _tile_loadd(7, q + 48 * LANES, LANES * 4);
    for (int64_t i = 0; i < b->count; i++)
        score_block(b->k + b->at[i], block_of(b, i + AHEAD), a->dim, s + i * KV_BLOCK * LANES);
}

static void contexts_of(const chunk_blocks *b, const attention_view *a, int64_t n, const char *p, char *woven, float *o)
{
    const int64_t columns = columns_of(a->dim);
    _tile_loadconfig(&context_config);
    for (int64_t c = 0; c < a->dim / STEP; c += HALF_STEPS) {
        const bool two = c + 1 < a->dim / STEP;
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        for (int64_t i = 0; i < b->count; i++) {
            const int64_t left = n - i * KV_BLOCK;
            weave(b->v + b->at[i] + c * 64, c ? NULL : block_of(b, b->count + i + AHEAD), a->dim,
                  (int)(left < KV_BLOCK ? left : KV_BLOCK), two ? 2 : 1, woven);
            context_block(p + i * LANES * 64, woven, two);
        }
        _tile_stored(0, o + c * STEP, columns * 4);
        _tile_stored(1, o + c * STEP + 16, columns * 4);
        if (two) {
            _tile_stored(2, o + c * STEP + 32, columns * 4);
            _tile_stored(3, o + c * STEP + 48, columns * 4);
        }
    }
    tiles_release();
}

/* Keys first .. first+n-1 (n <= CHUNK) of sequence s and key head h, against eight rows of q. */
static void chunk(int64_t heads, const attention_view *a, int64_t s, int64_t h, int64_t first, int64_t n, const float *q,
                  float *scores, float *o, float *top, float *sum)
{
    (void)heads;
    chunk_blocks b = {.count = (n + KV_BLOCK - 1) / KV_BLOCK, .k = a->k, .v = a->v};
    char *p = (char *)(scores + CHUNK * LANES);
    for (int64_t i = 0; i < b.count; i++)
        b.at[i] = attention_strip(a, s, h, first / KV_BLOCK + i) * 2;
    scores_of(&b, a, q, scores);
    soften(scores, n, a->scale * 1.44269504f, top, sum);
    pack_probabilities(scores, n, p);
    contexts_of(&b, a, n, p, p + P_BYTES, o);
}

#include "cpu/paged_attention_run.h"
#endif
