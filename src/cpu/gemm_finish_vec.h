/* gemm_finish_vec.h - what follows the sums of linear and linear_gated, in FP32 up to the one rounding of the store:
 * bias, activation, residual; or silu(gate) * up. */
#ifndef CPU_GEMM_FINISH_VEC_H
#define CPU_GEMM_FINISH_VEC_H
#include "cpu/activate_vec.h"
#include "cpu/gemm.h"

/* Rows r = 0 .. rows-1, columns n .. n+min(left, 2 VF)-1 of y, from c[r * ldc], of which whole vectors are read; `at` is
 * the index of y[0][n], FULL: left >= 2 VF. FTZ: BF16 may be rounded by the instruction that flushes subnormals. */
VEC_INLINE void gemm_finish_block(const ink_dtype t, const bool ftz, const int rows, const bool full, const gemm_job *j,
                                  const float *c, const float *up, int64_t ldc, int64_t at, int64_t n, int64_t left)
{
    vf v[ACTIVATE_MOST];
    const int count = 2 * rows;
#define PLACE const int r = i / 2, h = i % 2 * VF
#define LEFT (full ? VF : left - h)
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        PLACE;
        v[i] = v_load(c + r * ldc + h);
    }
    if (up) {
        v_silu_n(v, count);
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) {
            PLACE;
            v[i] = v_mul(v[i], v_load(up + r * ldc + h));
        }
    } else {
        if (j->bias) {
#pragma GCC unroll 4
            for (int i = 0; i < count; i++) {
                PLACE;
                (void)r;
                if (full || left > h)
                    v[i] = v_add(v[i], j->bias_dtype == INK_F32 ? v_get(j->bias, INK_F32, n + h, LEFT)
                                                                : v_get(j->bias, t, n + h, LEFT));
            }
        }
        v_activate_n(v, j->act, count);
        if (j->residual) {
#pragma GCC unroll 4
            for (int i = 0; i < count; i++) {
                PLACE;
                if (full || left > h)
                    v[i] = v_add(v[i], v_get(j->residual, t, at + r * j->n + h, LEFT));
            }
        }
    }
#if defined(__AVX512BF16__)
    if (ftz && full && t == INK_BF16 && j->y_dtype != INK_F32) {
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++)
            _mm512_storeu_si512((uint16_t *)j->y + at + r * j->n, (__m512i)_mm512_cvtne2ps_pbh(v[2 * r + 1], v[2 * r]));
        return;
    }
#endif
    (void)ftz;
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        PLACE;
        if (!full && left <= h)
            continue;
        if (j->y_dtype == INK_F32)
            v_put(j->y, INK_F32, at + r * j->n + h, v[i], LEFT);
        else
            v_put(j->y, t, at + r * j->n + h, v[i], LEFT);
    }
#undef PLACE
#undef LEFT
}

/* y[row .. row+rows)[n0 .. n0+count), as gemm_tile.finish. */
VEC_INLINE void gemm_finish(const ink_dtype t, const bool ftz, const gemm_job *j, const float *c, const float *up,
                            int64_t ldc, int64_t row, int64_t rows, int64_t n0, int64_t count)
{
    for (int64_t i = 0; i < count; i += 2 * VF) {
        const float *ci = c + i, *ui = up ? up + i : NULL;
        const int64_t n = n0 + i;
        int64_t r = 0, at = row * j->n + n;
        if (count - i >= 2 * VF) {
            for (; r + 2 <= rows; r += 2, at += 2 * j->n)
                gemm_finish_block(t, ftz, 2, true, j, ci + r * ldc, ui ? ui + r * ldc : NULL, ldc, at, n, 2 * VF);
            if (r < rows)
                gemm_finish_block(t, ftz, 1, true, j, ci + r * ldc, ui ? ui + r * ldc : NULL, ldc, at, n, 2 * VF);
        } else
            for (; r < rows; r++, at += j->n)
                gemm_finish_block(t, ftz, 1, false, j, ci + r * ldc, ui ? ui + r * ldc : NULL, ldc, at, n, count - i);
    }
}
#endif
