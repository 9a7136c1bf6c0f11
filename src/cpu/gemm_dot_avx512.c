/* gemm_dot_avx512.c - 14 x 32 tiles of BF16 pairs with vdpbf16ps. Where that instruction runs at the rate of a multiply-add
 * it does twice the work; where it runs at a quarter of it, gemm_avx512.c is faster. */
#ifdef __x86_64__
#include "cpu/gemm_finish_vec.h"
#include "cpu/gemm_pairs_avx512.h"

enum { MR = 14, NR = 32 };

VEC_INLINE void dot_rows(const int rows, const uint32_t *a, const uint32_t *b, int64_t chunks, float *c, int64_t ldc,
                         bool first, const char *ahead, int64_t step)
{
    vf sum[MR][2];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        sum[i][0] = first ? v_zero() : v_load(c + i * ldc);
        sum[i][1] = first ? v_zero() : v_load(c + i * ldc + 16);
        _mm_prefetch((const char *)(c + (i + MR) * ldc), _MM_HINT_T0); /* the next strip's sums */
    }
    for (; chunks > 0; chunks--, a += MR * 16)
        for (int k = 0; k < 16; k += 4, ahead += step / 4) {
            _mm_prefetch(ahead, _MM_HINT_T1);
            _mm_prefetch(ahead + 64, _MM_HINT_T1);
#pragma GCC unroll 4
            for (int u = 0; u < 4; u++, b += NR) {
                const __m512bh b0 = (__m512bh)_mm512_loadu_si512(b), b1 = (__m512bh)_mm512_loadu_si512(b + 16);
#pragma GCC unroll 16
                for (int i = 0; i < rows; i++) {
                    const __m512bh x = (__m512bh)_mm512_set1_epi32((int)a[i * 16 + k + u]);
                    sum[i][0] = _mm512_dpbf16_ps(sum[i][0], x, b0);
                    sum[i][1] = _mm512_dpbf16_ps(sum[i][1], x, b1);
                }
            }
        }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        v_store(c + i * ldc, sum[i][0]);
        v_store(c + i * ldc + 16, sum[i][1]);
    }
}

#define DOT_CASE(r) \
    case r: dot_rows(r, strip, panel, chunks, c, ldc, first, ahead, step); break;

static void dot_multiply(int rows, const uint32_t *strip, const uint32_t *panel, int64_t chunks, float *c, int64_t ldc,
                         bool first, const char *ahead, int64_t step)
{
    switch (rows) {
        /* clang-format off */
        DOT_CASE(1) DOT_CASE(2) DOT_CASE(3) DOT_CASE(4) DOT_CASE(5) DOT_CASE(6) DOT_CASE(7)
        DOT_CASE(8) DOT_CASE(9) DOT_CASE(10) DOT_CASE(11) DOT_CASE(12) DOT_CASE(13) DOT_CASE(14)
        /* clang-format on */
    }
}

static void strip(uint32_t *s, const void *a, int64_t ld, int64_t rows, int64_t k) { pairs_strip(MR, s, a, ld, rows, k); }
static void panel(uint32_t *d, const void *w, int64_t ld, int64_t rows, int64_t k)
{
    pairs_panel(NR, true, d, w, ld, rows, k);
}
static void finish(const gemm_job *j, const float *c, const float *up, int64_t ldc, int64_t row, int64_t rows, int64_t n0,
                   int64_t count)
{
    gemm_finish(INK_BF16, true, j, c, up, ldc, row, rows, n0, count);
}

const gemm_tile gemm_bf16_dot_14x32_avx512 = {
    .mr = MR,
    .nr = NR,
    .chunk = 16,
    .elements = 2,
    .kc = 512,
    .mc = 14 * 24,
    .strips_bytes = 768 << 10,
    .pack_a = 4,
    .read_w = 6,
    .pack_strip = strip,
    .pack_panel = panel,
    .multiply = dot_multiply,
    .finish = finish,
};
#else
typedef int gemm_dot_avx512_is_for_x86;
#endif
