/* gemm_amx.c - 32 x 32 tiles of BF16 pairs: four tile registers of sums, two of activations and two of weights, so that
 * each operand loaded is used twice. A chunk of 16 pairs is one tile register deep. */
#ifdef __x86_64__
#include "cpu/gemm_finish_vec.h"
#include "cpu/gemm_pairs_avx512.h"
#include "cpu/tiles_amx.h"

enum { MR = 32, NR = 32 };

/* A quarter of `step` (256 or 512) bytes, into the second-level cache. */
VEC_INLINE void prefetch_quarter(const char *p, int64_t step)
{
    _mm_prefetch(p, _MM_HINT_T1);
    if (step > 256)
        _mm_prefetch(p + 64, _MM_HINT_T1);
}

static void multiply(int rows, const uint32_t *a, const uint32_t *b, int64_t chunks, float *c, int64_t ldc, bool first,
                     const char *ahead, int64_t step)
{
    const int64_t stride = ldc * 4;
    float *low = c + 16 * ldc;
    if (first) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, c, stride);
        _tile_loadd(1, c + 16, stride);
        _tile_loadd(2, low, stride);
        _tile_loadd(3, low + 16, stride);
    }
    if (rows > 16)
        for (int64_t i = 0; i < chunks; i++, a += MR * 16, b += NR * 16, ahead += step) {
            _tile_loadd(6, b, 64);
            _tile_stream_loadd(4, a,
                               64); /* the strip passes by: do not let it push the panel out of the first-level cache */
            _tile_dpbf16ps(0, 4, 6);
            prefetch_quarter(ahead, step);
            _tile_loadd(7, b + 256, 64);
            _tile_dpbf16ps(1, 4, 7);
            prefetch_quarter(ahead + step / 4, step);
            _tile_stream_loadd(5, a + 256, 64);
            _tile_dpbf16ps(2, 5, 6);
            prefetch_quarter(ahead + step / 2, step);
            _tile_dpbf16ps(3, 5, 7);
            prefetch_quarter(ahead + step / 4 * 3, step);
        }
    else
        for (int64_t i = 0; i < chunks; i++, a += MR * 16, b += NR * 16) {
            _tile_loadd(6, b, 64);
            _tile_stream_loadd(4, a, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(7, b + 256, 64);
            _tile_dpbf16ps(1, 4, 7);
        }
    _tile_stored(0, c, stride);
    _tile_stored(1, c + 16, stride);
    _tile_stored(2, low, stride);
    _tile_stored(3, low + 16, stride);
}

static void strip(uint32_t *s, const void *a, int64_t ld, int64_t rows, int64_t k) { pairs_strip(MR, s, a, ld, rows, k); }
static void panel(uint32_t *d, const void *w, int64_t ld, int64_t rows, int64_t k)
{
    pairs_panel(NR, false, d, w, ld, rows, k);
}
static void finish(const gemm_job *j, const float *c, const float *up, int64_t ldc, int64_t row, int64_t rows, int64_t n0,
                   int64_t count)
{
    gemm_finish(INK_BF16, true, j, c, up, ldc, row, rows, n0, count);
}

const gemm_tile gemm_bf16_32x32_amx = {
    .mr = MR,
    .nr = NR,
    .chunk = 16,
    .elements = 2,
    .kc = 576,
    .mc = 256,
    .strips_bytes = 1152 << 10,
    .pack_a = 60,
    .read_w = 40,
    .pack_strip = strip,
    .pack_panel = panel,
    .multiply = multiply,
    .finish = finish,
    .enter = tiles_configure,
    .leave = tiles_release,
};
#else
typedef int gemm_amx_is_for_x86;
#endif
