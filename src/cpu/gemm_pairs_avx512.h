/* gemm_pairs_avx512.h - packing for tiles whose word is a pair of BF16 values: the operands of vdpbf16ps and of AMX. */
#ifndef CPU_GEMM_PAIRS_AVX512_H
#define CPU_GEMM_PAIRS_AVX512_H
#include "cpu/transpose_vec.h"

/* 32 elements at p as 16 words; the last ones may be missing. */
VEC_INLINE vf pairs_at(const uint16_t *p, int64_t left)
{
    return _mm512_castsi512_ps(left >= 32 ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi16((1u << left) - 1, p));
}

VEC_INLINE void pairs_strip(const int mr, uint32_t *strip, const void *a, int64_t ld, int64_t rows, int64_t k)
{
    for (int64_t p = 0; p < k; p += 32, strip += mr * 16)
        for (int64_t i = 0; i < rows; i++)
            v_store((float *)strip + i * 16, pairs_at((const uint16_t *)a + i * ld + p, k - p));
}

VEC_INLINE void pairs_panel(const int nr, uint32_t *panel, const void *w, int64_t ld, int64_t rows, int64_t k)
{
    for (int64_t p = 0; p < k; p += 32, panel += nr * 16)
        for (int part = 0; part < nr; part += 16) {
            const uint16_t *at = (const uint16_t *)w + part * ld + p;
            vf s[16];
            if (rows >= part + 16 && k - p >= 32) {
#pragma GCC unroll 16
                for (int i = 0; i < 16; i++)
                    s[i] = v_load((const float *)(at + i * ld));
            } else
                for (int i = 0; i < 16; i++)
                    s[i] = part + i < rows ? pairs_at(at + i * ld, k - p) : v_zero();
            v_transpose(s, (float *)panel + part, nr);
        }
}
#endif
