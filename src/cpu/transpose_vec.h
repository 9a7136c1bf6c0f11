/* transpose_vec.h - a VF x VF block of 32-bit elements, turned. */
#ifndef CPU_TRANSPOSE_VEC_H
#define CPU_TRANSPOSE_VEC_H
#include "cpu/vec.h"

/* d[j * step + i] = s[i][j], VF x VF */
VEC_INLINE void v_transpose(const vf s[VF], float *d, int64_t step)
{
    vf t[VF], u[VF];
#if defined(__AVX512F__)
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_ps(s[2 * i], s[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_ps(s[2 * i], s[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) { /* u[4 i + j]: column 4 l + j of rows 4 i .. 4 i + 3 in 128-bit lane l */
        const __m512d a = _mm512_castps_pd(t[4 * i]), b = _mm512_castps_pd(t[4 * i + 2]);
        const __m512d e = _mm512_castps_pd(t[4 * i + 1]), f = _mm512_castps_pd(t[4 * i + 3]);
        u[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
        u[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        u[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(e, f));
        u[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(e, f));
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        const vf a = _mm512_shuffle_f32x4(u[j], u[4 + j], 0x88), b = _mm512_shuffle_f32x4(u[8 + j], u[12 + j], 0x88);
        const vf e = _mm512_shuffle_f32x4(u[j], u[4 + j], 0xdd), f = _mm512_shuffle_f32x4(u[8 + j], u[12 + j], 0xdd);
        v_store(d + j * step, _mm512_shuffle_f32x4(a, b, 0x88));
        v_store(d + (4 + j) * step, _mm512_shuffle_f32x4(e, f, 0x88));
        v_store(d + (8 + j) * step, _mm512_shuffle_f32x4(a, b, 0xdd));
        v_store(d + (12 + j) * step, _mm512_shuffle_f32x4(e, f, 0xdd));
    }
#else
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm256_unpacklo_ps(s[2 * i], s[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(s[2 * i], s[2 * i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) { /* u[4 i + j]: column 4 l + j of rows 4 i .. 4 i + 3 in 128-bit lane l */
        u[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
        u[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
        u[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
        u[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        v_store(d + j * step, _mm256_permute2f128_ps(u[j], u[4 + j], 0x20));
        v_store(d + (4 + j) * step, _mm256_permute2f128_ps(u[j], u[4 + j], 0x31));
    }
#endif
}
#endif
