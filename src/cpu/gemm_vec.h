/* gemm_vec.h - register tile, packing and epilogue of gemm.h in the vocabulary of vec.h, for AVX2 and AVX-512.
 *
 * A word is one FP32 value: 16-bit operands are widened while they are packed. (AVX-512 multiplies BF16 pairs instead,
 * gemm_avx512.c.) The tile holds MR x 2 vectors of sums: MR broadcasts and two loads feed 2 MR multiply-adds. */
#ifndef CPU_GEMM_VEC_H
#define CPU_GEMM_VEC_H
#include "cpu/gemm_finish_vec.h"
#include "cpu/transpose_vec.h"

enum { GEMM_NR = 2 * VF, GEMM_MR = VF == 8 ? 6 : 14 };

/* ---- the tile ---- */

VEC_INLINE void gemm_rows(const int rows, const float *a, const float *b, int64_t chunks, float *c, int64_t ldc, bool first,
                          const char *ahead, int64_t step)
{
    vf sum[GEMM_MR][2];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        sum[i][0] = first ? v_zero() : v_load(c + i * ldc);
        sum[i][1] = first ? v_zero() : v_load(c + i * ldc + VF);
        _mm_prefetch((const char *)(c + (i + GEMM_MR) * ldc), _MM_HINT_T0); /* the next strip's sums */
    }
    for (; chunks > 0; chunks--, a += GEMM_MR * VF)
        for (int k = 0; k < VF; k += 4, ahead += step * 4 / VF) {
            _mm_prefetch(ahead, _MM_HINT_T1);
            if (VF == 16)
                _mm_prefetch(ahead + 64, _MM_HINT_T1);
#pragma GCC unroll 4
            for (int u = 0; u < 4; u++, b += GEMM_NR) {
                const vf b0 = v_load(b), b1 = v_load(b + VF);
#pragma GCC unroll 16
                for (int i = 0; i < rows; i++) {
                    const vf x = v_set(a[i * VF + k + u]);
                    sum[i][0] = v_fma(x, b0, sum[i][0]);
                    sum[i][1] = v_fma(x, b1, sum[i][1]);
                }
            }
        }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        v_store(c + i * ldc, sum[i][0]);
        v_store(c + i * ldc + VF, sum[i][1]);
    }
}

#define GEMM_CASE(r) \
    case r: gemm_rows(r, (const float *)strip, (const float *)panel, chunks, c, ldc, first, ahead, step); break;

static void gemm_multiply_f32(int rows, const uint32_t *strip, const uint32_t *panel, int64_t chunks, float *c, int64_t ldc,
                              bool first, const char *ahead, int64_t step)
{
    switch (rows) {
        /* clang-format off */
        GEMM_CASE(1) GEMM_CASE(2) GEMM_CASE(3) GEMM_CASE(4) GEMM_CASE(5) GEMM_CASE(6)
        /* clang-format on */
#if defined(__AVX512F__)
            /* clang-format off */
        GEMM_CASE(7) GEMM_CASE(8) GEMM_CASE(9) GEMM_CASE(10) GEMM_CASE(11) GEMM_CASE(12) GEMM_CASE(13) GEMM_CASE(14)
        /* clang-format on */
#endif
    }
}

/* ---- packing ---- */

enum { ROWS_AHEAD = 4, VECTORS_AHEAD = 8 }; /* prefetch distances: rows of A, vectors of a row of W */

VEC_INLINE void gemm_strip(const ink_dtype t, float *strip, const void *a, int64_t ld, int64_t rows, int64_t k)
{
    for (int64_t i = 0; i < rows; i++) {
        const char *ahead = (const char *)a + (i + ROWS_AHEAD) * ld * (t == INK_F32 ? 4 : 2);
        float *d = strip + i * VF;
        for (int64_t p = 0; p < k; p += VF, d += GEMM_MR * VF) {
            _mm_prefetch(ahead + p * (t == INK_F32 ? 4 : 2), _MM_HINT_T0);
            v_store(d, v_get(a, t, i * ld + p, k - p));
        }
    }
}

/* Elements of row i, zero outside the matrix. */
VEC_INLINE vf gemm_weight(const ink_dtype t, const void *w, int64_t ld, int64_t rows, int64_t i, int64_t p, int64_t k)
{
    return i < rows ? v_get(w, t, i * ld + p, k - p) : v_zero();
}

VEC_INLINE void gemm_panel(const ink_dtype t, float *panel, const void *w, int64_t ld, int64_t rows, int64_t k)
{
    for (int64_t p = 0; p < k; p += VF, panel += VF * GEMM_NR)
        for (int half = 0; half < 2; half++) {
            vf s[VF];
            if (rows == GEMM_NR && k - p >= VF) {
#pragma GCC unroll 16
                for (int i = 0; i < VF; i++) {
                    const int64_t at = (half * VF + i) * ld + p;
                    s[i] = v_get(w, t, at, VF);
                    _mm_prefetch((const char *)w + (at + VECTORS_AHEAD * VF) * (t == INK_F32 ? 4 : 2), _MM_HINT_T0);
                }
            } else
                for (int i = 0; i < VF; i++)
                    s[i] = gemm_weight(t, w, ld, rows, half * VF + i, p, k);
            v_transpose(s, panel + half * VF, GEMM_NR);
        }
}

/* The functions of a gemm_tile for one dtype. */
#define GEMM_FUNCTIONS(name, t)                                                                                           \
    static void name##_strip(uint32_t *s, const void *a, int64_t ld, int64_t rows, int64_t k)                             \
    {                                                                                                                     \
        gemm_strip(t, (float *)s, a, ld, rows, k);                                                                        \
    }                                                                                                                     \
    static void name##_panel(uint32_t *d, const void *w, int64_t ld, int64_t rows, int64_t k)                             \
    {                                                                                                                     \
        gemm_panel(t, (float *)d, w, ld, rows, k);                                                                        \
    }                                                                                                                     \
    static void name##_finish(const gemm_job *j, const float *c, const float *up, int64_t ldc, int64_t row, int64_t rows, \
                              int64_t n0, int64_t count)                                                                  \
    {                                                                                                                     \
        gemm_finish(t, false, j, c, up, ldc, row, rows, n0, count);                                                       \
    }
#endif
