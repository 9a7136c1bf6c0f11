/* gemm_pairs_avx512.h - packing for tiles whose word is a pair of BF16 values: the operands of vdpbf16ps and of AMX. */
#ifndef CPU_GEMM_PAIRS_AVX512_H
#define CPU_GEMM_PAIRS_AVX512_H
#include "cpu/transpose_vec.h"

/* 32 elements at p as 16 words; the last ones may be missing. */
VEC_INLINE vf pairs_at(const uint16_t *p, int64_t left)
{
    return _mm512_castsi512_ps(left >= 32 ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi16((1u << left) - 1, p));
}

enum { ROWS_AHEAD = 4 }; /* prefetch distances: rows of A, bytes of W */
enum { BYTES_AHEAD = 256 };

VEC_INLINE void pairs_strip(const int mr, uint32_t *strip, const void *a, int64_t ld, int64_t rows, int64_t k)
{
    for (int64_t i = 0; i < rows; i++) {
        const uint16_t *row = (const uint16_t *)a + i * ld;
        float *d = (float *)strip + i * 16;
        for (int64_t p = 0; p < k; p += 32, d += mr * 16) {
            _mm_prefetch((const char *)(row + ROWS_AHEAD * ld + p), _MM_HINT_T0);
            v_store(d, pairs_at(row + p, k - p));
        }
    }
}

/* `wide`: [pair][nr] words; otherwise [nr / 16][pair][16] in each chunk, one AMX tile after the other. */
VEC_INLINE void pairs_panel(const int nr, const bool wide, uint32_t *panel, const void *w, int64_t ld, int64_t rows,
                            int64_t k)
{
    for (int64_t p = 0; p < k; p += 32, panel += nr * 16)
        for (int part = 0; part < nr; part += 16) {
            const uint16_t *at = (const uint16_t *)w + part * ld + p;
            vf s[16];
            if (rows >= part + 16 && k - p >= 32) {
#pragma GCC unroll 16
                for (int i = 0; i < 16; i++) {
                    s[i] = v_load((const float *)(at + i * ld));
                    _mm_prefetch((const char *)(at + i * ld) + BYTES_AHEAD, _MM_HINT_T0);
                }
            } else
                for (int i = 0; i < 16; i++)
                    s[i] = part + i < rows ? pairs_at(at + i * ld, k - p) : v_zero();
            v_transpose(s, (float *)panel + (wide ? part : part * 16), wide ? nr : 16);
        }
}
#endif
