/* resize_avx2.c - weighted sums of rows, 32 bytes at a time: bytes widened to 32 bits, four accumulators of eight. */
#include "image/resize_loops.h"

#include <immintrin.h>

static inline __m256i add_product(__m256i sum, const uint8_t *bytes, __m256i weight)
{
    return _mm256_add_epi32(sum, _mm256_mullo_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)bytes)), weight));
}

/* Both packs saturate, which is the clamp; they work within 128-bit halves, hence the permutation. */
static inline void store_clamped(const __m256i sum[4], uint8_t *dst)
{
    const __m256i a = _mm256_packs_epi32(_mm256_srai_epi32(sum[0], RESIZE_FRACTION_BITS),
                                         _mm256_srai_epi32(sum[1], RESIZE_FRACTION_BITS));
    const __m256i b = _mm256_packs_epi32(_mm256_srai_epi32(sum[2], RESIZE_FRACTION_BITS),
                                         _mm256_srai_epi32(sum[3], RESIZE_FRACTION_BITS));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256((__m256i *)dst, _mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, b), order));
}

void resize_loop_avx2(const uint8_t *src, size_t stride, const int32_t *weights, int count, size_t n, uint8_t *dst)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m256i half = _mm256_set1_epi32(1 << (RESIZE_FRACTION_BITS - 1));
        __m256i sum[4] = {half, half, half, half};
        const uint8_t *p = src + i;
        for (int t = 0; t < count; t++, p += stride) {
            const __m256i weight = _mm256_set1_epi32(weights[t]);
            for (int j = 0; j < 4; j++)
                sum[j] = add_product(sum[j], p + 8 * j, weight);
        }
        store_clamped(sum, dst + i);
    }
    if (i < n)
        resize_loop_portable(src + i, stride, weights, count, n - i, dst + i);
}
