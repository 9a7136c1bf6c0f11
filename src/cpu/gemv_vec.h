/* gemv_vec.h - dot products of a few weight rows with a few activation rows, for AVX2 and AVX-512 (gemv.h).
 *
 * A step is 2 VF elements of K. Each (weight row, activation row) pair has one vector of sums, and each step adds two
 * products to a lane; lanes are added up at the end, always by the same tree. BF16 weights are loaded as 32-bit words:
 * a shift makes the even elements FP32 and a mask the odd ones, so x is packed as [even VF][odd VF] for each step. */
#ifndef CPU_GEMV_VEC_H
#define CPU_GEMV_VEC_H
#include "cpu/gemm_finish_vec.h"
#include "cpu/gemv.h"

enum { GEMV_STEP = 2 * VF, GEMV_BLOCK = 24, GEMV_GROUP = 4 /* activation rows side by side */ };

/* 1: BF16 by vdpbf16ps on the words as they are, x packed as BF16 (gemv_dot_avx512.c) */
#ifndef GEMV_DOT
#define GEMV_DOT 0
#endif

typedef struct weights {
    vf a, b; /* first and second half of a step, or even and odd elements; GEMV_DOT: a holds the words */
} weights;

VEC_INLINE int64_t gemv_words(const ink_dtype t, int64_t k) /* of packed x */
{
    int64_t steps = (k + GEMV_STEP - 1) / GEMV_STEP;
    return steps * (t == INK_BF16 && GEMV_DOT ? VF : GEMV_STEP);
}

/* ---- loads ---- */

#if defined(__AVX512F__)
VEC_INLINE vf gemv_words_at(const uint16_t *w, int64_t left)
{
    return _mm512_castsi512_ps(left >= GEMV_STEP ? _mm512_loadu_si512(w) : _mm512_maskz_loadu_epi16((1u << left) - 1, w));
}
VEC_INLINE vf gemv_even(vf words) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(words), 16)); }
VEC_INLINE vf gemv_odd(vf words)
{
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(words), _mm512_set1_epi32((int)0xffff0000)));
}
#else
VEC_INLINE vf gemv_words_at(const uint16_t *w, int64_t left)
{
    uint16_t tail[GEMV_STEP] = {0};
    if (left < GEMV_STEP)
        w = memcpy(tail, w, 2 * (size_t)left);
    return _mm256_loadu_ps((const float *)w);
}
VEC_INLINE vf gemv_even(vf words) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(words), 16)); }
VEC_INLINE vf gemv_odd(vf words)
{
    return _mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(words), _mm256_set1_epi32((int)0xffff0000)));
}
#endif

VEC_INLINE weights gemv_load(const ink_dtype t, const void *w, int64_t at, int64_t left)
{
    if (t == INK_BF16) {
        vf words = gemv_words_at((const uint16_t *)w + at, left);
        return GEMV_DOT ? (weights){words, words} : (weights){gemv_even(words), gemv_odd(words)};
    }
    return (weights){v_get(w, t, at, left), left > VF ? v_get(w, t, at + VF, left - VF) : v_zero()};
}

VEC_INLINE vf gemv_add(const ink_dtype t, vf sum, weights w, const float *x)
{
#if GEMV_DOT
    if (t == INK_BF16)
        return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_castps_si512(w.a), (__m512bh)_mm512_loadu_si512(x));
#endif
    (void)t;
    return v_fma(w.b, v_load(x + VF), v_fma(w.a, v_load(x), sum));
}

/* The sums of the lanes of four vectors; a vector's tree does not depend on its place. */
VEC_INLINE __m128 gemv_reduce(vf a, vf b, vf c, vf d)
{
#if defined(__AVX512F__)
#define HALVES(v) _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1))
#else
#define HALVES(v) (v)
#endif
    __m256 t = _mm256_hadd_ps(_mm256_hadd_ps(HALVES(a), HALVES(b)), _mm256_hadd_ps(HALVES(c), HALVES(d)));
#undef HALVES
    return _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1));
}

/* ---- the tile: sums[column * GEMV_BLOCK + row] for `rows` weight rows and `columns` activation rows ---- */

VEC_INLINE void gemv_dots(const ink_dtype t, const int rows, const int columns, const char *w, int64_t k, const float *x,
                          int64_t ldx, bool ahead, float *sums)
{
    const int64_t ld = k * (t == INK_F32 ? 4 : 2), whole = k / GEMV_STEP * GEMV_STEP,
                  x_step = t == INK_BF16 && GEMV_DOT ? VF : GEMV_STEP;
    vf sum[8][GEMV_GROUP];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int c = 0; c < columns; c++)
            sum[r][c] = v_zero();
    const float *xs = x;
    for (int64_t p = 0; p < whole; p += GEMV_STEP, xs += x_step)
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            const weights v = gemv_load(t, w + r * ld, p, GEMV_STEP);
            if (ahead)
                _mm_prefetch(w + (r + rows) * ld + p * (t == INK_F32 ? 4 : 2), _MM_HINT_T0);
#pragma GCC unroll 4
            for (int c = 0; c < columns; c++)
                sum[r][c] = gemv_add(t, sum[r][c], v, xs + c * ldx);
        }
    if (whole < k)
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            const weights v = gemv_load(t, w + r * ld, whole, k - whole);
#pragma GCC unroll 4
            for (int c = 0; c < columns; c++)
                sum[r][c] = gemv_add(t, sum[r][c], v, xs + c * ldx);
        }
#pragma GCC unroll 4
    for (int c = 0; c < columns; c++)
#pragma GCC unroll 2
        for (int r = 0; r < rows; r += 4) {
            float four[4];
            _mm_storeu_ps(four,
                          gemv_reduce(sum[r][c], rows > r + 1 ? sum[r + 1][c] : v_zero(),
                                      rows > r + 2 ? sum[r + 2][c] : v_zero(), rows > r + 3 ? sum[r + 3][c] : v_zero()));
            for (int i = 0; i < 4 && r + i < rows; i++)
                sums[c * GEMV_BLOCK + r + i] = four[i];
        }
}

/* All weight rows of a block with `columns` (1, 2 or 4) activation rows. */
VEC_INLINE void gemv_columns(const ink_dtype t, const int columns, const char *w, int64_t count, int64_t k, const float *x,
                             int64_t ldx, bool ahead, float *sums)
{
    const int rows = VF == 8 ? (columns == 4 ? 3 : columns == 2 ? 4 : 8) : (columns == 4 ? 6 : 8);
    const int64_t ld = k * (t == INK_F32 ? 4 : 2);
    int64_t r = 0;
    for (; r + rows <= count; r += rows)
        gemv_dots(t, rows, columns, w + r * ld, k, x, ldx, ahead, sums + r);
    for (; r < count; r++)
        gemv_dots(t, 1, columns, w + r * ld, k, x, ldx, ahead, sums + r);
}

VEC_INLINE void gemv_rows(const ink_dtype t, const gemm_job *j, const float *x, int64_t n0, int64_t n1)
{
    const int64_t ldx = gemv_words(t, j->k), ld = j->k * (t == INK_F32 ? 4 : 2);
    float sums[2][GEMV_GROUP * GEMV_BLOCK + 2 * VF]; /* gemm_finish reads whole vectors */
    memset(sums, 0, sizeof sums);
    for (int64_t n = n0; n < n1; n += GEMV_BLOCK) {
        const int64_t count = n1 - n < GEMV_BLOCK ? n1 - n : GEMV_BLOCK;
        for (int64_t m = 0; m < j->m;) {
            const int columns = j->m - m >= 4 ? 4 : j->m - m >= 2 ? 2 : 1;
            for (int q = 0; q < 2 && j->w[q]; q++) {
                const char *w = (const char *)j->w[q] + n * ld;
                if (columns == 4)
                    gemv_columns(t, 4, w, count, j->k, x + m * ldx, ldx, m == 0, sums[q]);
                else if (columns == 2)
                    gemv_columns(t, 2, w, count, j->k, x + m * ldx, ldx, m == 0, sums[q]);
                else
                    gemv_columns(t, 1, w, count, j->k, x + m * ldx, ldx, m == 0, sums[q]);
            }
            gemm_finish(t, GEMV_DOT, j, sums[0], j->w[1] ? sums[1] : NULL, GEMV_BLOCK, m, columns, n, count);
            m += columns;
        }
    }
}

/* ---- packing x ---- */

VEC_INLINE void gemv_pack_row(const ink_dtype t, float *d, const void *x, int64_t at, int64_t k)
{
    for (int64_t p = 0; p < k; p += GEMV_STEP) {
        const weights v = gemv_load(t, x, at + p, k - p);
        v_store(d, v.a);
        if (t != INK_BF16 || !GEMV_DOT) {
            v_store(d + VF, v.b);
            d += VF;
        }
        d += VF;
    }
}

VEC_INLINE void gemv_pack(const ink_dtype t, const gemm_job *j, float *d, int part, int parts)
{
    for (int64_t i = part; i < j->m; i += parts)
        gemv_pack_row(t, d + i * gemv_words(t, j->k), j->x, i * j->k, j->k);
}

#define GEMV_TILE(name, t)                                                                                            \
    static size_t name##_bytes(int64_t m, int64_t k) { return (size_t)(m * gemv_words(t, k)) * sizeof(float); }       \
    static void name##_pack(const gemm_job *j, void *d, int part, int parts) { gemv_pack(t, j, d, part, parts); }     \
    static void name##_rows(const gemm_job *j, const void *x, int64_t n0, int64_t n1) { gemv_rows(t, j, x, n0, n1); } \
    const gemv_tile name = {.block = GEMV_BLOCK, .packed_bytes = name##_bytes, .pack = name##_pack, .rows = name##_rows};
#endif
