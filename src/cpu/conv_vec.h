/* conv_vec.h - convolution as an implicit matrix product, for AVX2 and AVX-512 from one source (cpu/vec.h).
 *
 * One register tile, ROWS rows by COLUMNS = 2 vectors, serves both layouts with the roles exchanged:
 *
 *     channels last   rows are pixels, columns output channels. x is widened pixel by pixel (channels are contiguous), the
 *                     filter is transposed into panels of COLUMNS channels; stores are contiguous in the channel.
 *     channels second rows are output channels, columns pixels. The filter is used in its own order, x is widened into
 *                     panels of COLUMNS pixels (contiguous along a row for stride 1); stores are contiguous in the pixel.
 *
 * The filter is widened and packed once per call, in passes of at most WEIGHT_BYTES. A task is a block of at most BLOCK
 * output channels of one group by a band of BAND pixels; for each DEPTH products it packs its part of x and continues the
 * FP32 sums of the band, which stay in a buffer of the thread until the epilogue. No im2col matrix exists.
 *
 * Every output is one chain of fused multiply-adds in an order that depends on the filter's shape alone: the same bits for
 * any number of threads, images or pixels. Cells outside the image are zeros in the packed band. A zero times a finite
 * weight changes no sum; if the filter holds an infinity or a NaN, conv_redo_border replaces the outputs concerned. */
#include "core/threads.h"
#include "cpu/conv.h"
#include "cpu/vec.h"

#include <string.h>

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

enum {
    ROWS = VF == 16 ? 12 : 6,
    COLUMNS = 2 * VF,
    DEPTH = 256,                    /* products per pass over a band: a panel of DEPTH x COLUMNS floats stays in L1 */
    BAND = 96,                      /* pixels per task: a multiple of ROWS and COLUMNS */
    BLOCK = 480,                    /* output channels per task: the same */
    LDA = DEPTH + 16,               /* floats between packed rows; not a power of two, for the caches' sake */
    LDC_PIXELS = BLOCK + 16,        /* floats between rows of sums when they are pixels */
    WEIGHT_BYTES = 16 << 20,
};
_Static_assert(BAND % ROWS == 0 && BAND % COLUMNS == 0 && BLOCK % ROWS == 0 && BLOCK % COLUMNS == 0, "tiles must fit");
#define PACKED_FLOATS (BAND * LDA + 16) /* band of x of one thread, in either form */
#define SUM_FLOATS (BAND * LDC_PIXELS)
#define THREAD_BYTES ((PACKED_FLOATS + SUM_FLOATS) * (int64_t)sizeof(float))

/* ---- register tile: c[R][COLUMNS] (+)= a[R][n] b[n][COLUMNS] ---- */

VEC_INLINE void tile(const int R, const float *a, int64_t lda, const float *b, int64_t n, float *c, int64_t ldc, bool first)
{
    vf s[ROWS][2];
    UNROLL
    for (int i = 0; i < R; i++) {
        s[i][0] = first ? v_zero() : v_load(c + i * ldc);
        s[i][1] = first ? v_zero() : v_load(c + i * ldc + VF);
    }
    for (int64_t k = 0; k < n; k++, b += COLUMNS) {
        vf b0 = v_load(b), b1 = v_load(b + VF);
        UNROLL
        for (int i = 0; i < R; i++) {
            vf x = v_set(a[i * lda + k]);
            s[i][0] = v_fma(x, b0, s[i][0]);
            s[i][1] = v_fma(x, b1, s[i][1]);
        }
    }
    UNROLL
    for (int i = 0; i < R; i++) {
        v_store(c + i * ldc, s[i][0]);
        v_store(c + i * ldc + VF, s[i][1]);
    }
}

static __attribute__((noinline)) void tile_rows(int rows, const float *a, int64_t lda, const float *b, int64_t n, float *c, int64_t ldc,
                                                bool first)
{
#define CASE(R) case R: tile(R, a, lda, b, n, c, ldc, first); break;
    switch (rows) {
    CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
#if defined(__AVX512F__)
    CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
#endif
    }
#undef CASE
}

/* rows x columns sums from packed a (rows lda apart) and panels of b (panel_step floats apart). */
static void multiply(int64_t rows, int64_t panels, const float *a, int64_t lda, const float *b, int64_t panel_step, int64_t n, float *c,
                     int64_t ldc, bool first)
{
    for (int64_t j = 0; j < panels; j++)
        for (int64_t i = 0; i < rows; i += ROWS)
            tile_rows((int)(rows - i < ROWS ? rows - i : ROWS), a + i * lda, lda, b + j * panel_step, n, c + i * ldc + j * COLUMNS, ldc,
                      first);
}

/* ---- copies ---- */

/* n elements from element `at` of src, widened. May write up to VF - 1 floats more behind them: buffers are filled in
 * ascending order and end with room for that. */
VEC_INLINE void widen(float *d, const void *src, ink_dtype t, int64_t at, int64_t n)
{
    int64_t i = 0;
    for (; i + VF <= n; i += VF)
        v_store(d + i, v_get(src, t, at + i, VF));
    if (i == n)
        return;
    if (VF == 16) /* masked */
        v_store(d + i, v_get(src, t, at + i, n - i));
    else if (i) /* overlaps what is done */
        v_store(d + n - VF, v_get(src, t, at + n - VF, VF));
    else
        for (; i < n; i++)
            d[i] = t == INK_F32    ? ((const float *)src)[at + i]
                   : t == INK_BF16 ? bf16_to_f32(((const bf16 *)src)[at + i])
                                   : load_f32(src, t, at + i);
}

/* Every second of 2 VF values. */
VEC_INLINE vf even_lanes(vf a, vf b)
{
#if defined(__AVX512F__)
    const __m512i pick = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(a, pick, b);
#else
    __m256d mixed = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88)); /* a0 a2 b0 b2 a4 a6 b4 b6 */
    return _mm256_castpd_ps(_mm256_permute4x64_pd(mixed, 0xd8));
#endif
}

VEC_INLINE void clear(float *d, int64_t n)
{
    if (n > 0)
        memset(d, 0, (size_t)n * sizeof *d);
}

static bool all_finite(const float *v, int64_t n)
{
    vf s = v_zero();
    float rest = 0;
    int64_t i = 0;
    for (; i + VF <= n; i += VF)
        s = v_fma(v_load(v + i), v_zero(), s); /* 0 for finite values, else NaN, which stays */
    for (; i < n; i++)
        rest = fmaf(v[i], 0, rest);
    return v_sum(s) + rest == 0;
}

/* ---- the filter ---- */

typedef struct conv_blocks { /* how output channels are cut */
    int64_t size, per_group, count; /* channels of a block, blocks of a group, blocks of all */
    int64_t lda;                    /* channels second: floats of a packed row */
    int64_t floats;                 /* of a packed block */
    int64_t per_pass;
} conv_blocks;

static conv_blocks blocks_of(const conv_problem *p)
{
    conv_blocks b = {.lda = (p->depth + 15) / 16 * 16 + 16};
    int64_t most = WEIGHT_BYTES / (int64_t)sizeof(float) / b.lda / COLUMNS * COLUMNS;
    b.size = (p->m + COLUMNS - 1) / COLUMNS * COLUMNS;
    b.size = b.size > BLOCK ? BLOCK : b.size;
    b.size = b.size > most ? most : b.size;
    if (!b.size)
        return b;
    b.per_group = (p->m + b.size - 1) / b.size;
    b.count = b.per_group * p->groups;
    b.floats = b.size * b.lda;
    b.per_pass = WEIGHT_BYTES / (int64_t)sizeof(float) / b.floats;
    b.per_pass = b.per_pass > b.count ? b.count : b.per_pass;
    return b;
}

/* Columns m0 .. of the filter (n <= VF of them) to d[tap][channel][COLUMNS], transposed from its [channel][tap] order. */
VEC_INLINE void pack_columns(float *d, const conv_problem *p, ink_dtype t, int64_t m0, int64_t n)
{
    const int64_t taps = p->kh * p->kw;
    float in[VF][VF];
    for (int64_t k0 = 0; k0 < p->depth; k0 += VF) {
        int64_t kn = p->depth - k0 < VF ? p->depth - k0 : VF;
        for (int64_t i = 0; i < VF; i++)
            if (i < n)
                widen(in[i], p->w, t, (m0 + i) * p->depth + k0, kn);
            else
                clear(in[i], kn);
        int64_t c = k0 / taps, tap = k0 % taps;
        for (int64_t k = 0; k < kn; k++) {
            float *o = d + (tap * p->c + c) * COLUMNS;
            for (int i = 0; i < VF; i++)
                o[i] = in[i][k];
            if (++tap == taps)
                tap = 0, c++;
        }
    }
}

/* Packs block `block`; part `part` of it: a half panel (channels last) or ROWS rows. Returns whether all is finite. */
VEC_INLINE bool pack_weights(float *d, const conv_problem *p, ink_dtype t, const conv_blocks *b, int64_t block, int64_t part)
{
    int64_t first = block % b->per_group * b->size, left = p->m - first, base = block / b->per_group * p->m + first;
    left = left > b->size ? b->size : left;
    bool finite = true;
    if (p->channels_last) {
        int64_t at = part * VF;
        if (at >= (left + COLUMNS - 1) / COLUMNS * COLUMNS)
            return true;
        int64_t n = left - at < 0 ? 0 : left - at < VF ? left - at : VF;
        float *panel = d + part / 2 * p->depth * COLUMNS + part % 2 * VF;
        pack_columns(panel, p, t, base + at, n);
        for (int64_t k = 0; k < p->depth && finite && p->padded; k++)
            finite = all_finite(panel + k * COLUMNS, VF);
        return finite;
    }
    for (int64_t i = part * VF; i < left && i < (part + 1) * VF; i++) {
        widen(d + i * b->lda, p->w, t, (base + i) * p->depth, p->depth);
        finite = finite && (!p->padded || all_finite(d + i * b->lda, p->depth));
    }
    return finite;
}

/* ---- a band of x ---- */

/* The part [from, to) of one run of a pixel's window, whose elements lo .. hi lie inside the image. */
VEC_INLINE float *pack_run(float *o, const conv_problem *p, ink_dtype t, int64_t at, int64_t from, int64_t to, int64_t lo, int64_t hi)
{
    lo = lo < from ? from : lo > to ? to : lo;
    hi = hi < lo ? lo : hi > to ? to : hi;
    clear(o, lo - from);
    if (hi > lo)
        widen(o + lo - from, p->x, t, at + lo, hi - lo);
    clear(o + hi - from, to - hi);
    return o + to - from;
}

/* Pixels first .. first + n of all images as rows of the products k0 .. k0 + kn, in the order (row, column, channel). */
VEC_INLINE void pack_pixel_rows(float *d, const conv_problem *p, ink_dtype t, int64_t group, int64_t first, int64_t n, int64_t k0,
                                int64_t kn)
{
    const bool merged = p->groups == 1 && p->dw == 1; /* the taps of a filter row are contiguous */
    const int64_t run = merged ? p->kw * p->c : p->c, runs_per_row = merged ? 1 : p->kw;
    const int64_t r0 = k0 / run / runs_per_row, q0 = k0 / run % runs_per_row, from0 = k0 % run;
    int64_t image = first / p->pixels, oh = first % p->pixels / p->ow, ow = first % p->ow;
    for (int64_t i = 0; i < n; i++, d += LDA) {
        float *o = d;
        int64_t left = kn;
        for (int64_t r = r0, q = q0, from = from0; left > 0; from = 0) {
            int64_t to = run - from < left ? run : from + left, lo = 0, hi = run;
            int64_t ih = oh * p->sh + r * p->dh - p->ph, iw = ow * p->sw + q * p->dw - p->pw;
            if (ih < 0 || ih >= p->h || (!merged && (iw < 0 || iw >= p->w_in)))
                hi = 0;
            else if (merged) {
                lo = iw < 0 ? -iw * p->c : 0;
                hi = iw + p->kw > p->w_in ? (p->w_in - iw) * p->c : run;
            }
            o = pack_run(o, p, t, ((image * p->h + ih) * p->w_in + iw) * p->channels + group * p->c, from, to, lo, hi);
            left -= to - from;
            if (++q == runs_per_row)
                q = 0, r++;
        }
        if (++ow == p->ow) {
            ow = 0;
            if (++oh == p->oh)
                oh = 0, image++;
        }
    }
}

/* Part of a panel: neighbouring outputs of one row. */
typedef struct stretch {
    int64_t at, n, ih, iw; /* column of the panel, outputs; top left cell of the first window */
} stretch;

static int stretches_of(stretch *s, const conv_problem *p, int64_t pixel, int64_t columns)
{
    int count = 0;
    for (int64_t i = 0; i < columns; count++) {
        int64_t oh = (pixel + i) / p->ow, ow = (pixel + i) % p->ow, n = p->ow - ow < columns - i ? p->ow - ow : columns - i;
        s[count] = (stretch){i, n, oh * p->sh - p->ph, ow * p->sw - p->pw};
        i += n;
    }
    return count;
}

/* One product of n neighbouring outputs: x[iw], x[iw + step], ... behind element `row`, zero outside [0, width). */
VEC_INLINE void gather(float *d, const void *x, ink_dtype t, int64_t row, int64_t iw, int64_t step, int64_t width, int64_t n)
{
    int64_t lo = iw < 0 ? (-iw + step - 1) / step : 0, hi = iw + (n - 1) * step < width ? n : iw >= width ? 0 : (width - iw + step - 1) / step;
    lo = lo > n ? n : lo;
    hi = hi < lo ? lo : hi;
    clear(d, lo);
    if (step == 1)
        widen(d + lo, x, t, row + iw + lo, hi - lo);
    else {
        int64_t i = lo, at = row + iw + lo * step;
        for (; step == 2 && i + VF <= hi && iw + 2 * (i + VF) <= width; i += VF, at += 2 * VF)
            v_store(d + i, even_lanes(v_get(x, t, at, VF), v_get(x, t, at + VF, VF)));
        for (; i < hi; i++, at += step)
            widen(d + i, x, t, at, 1);
    }
    clear(d + hi, n - hi);
}

/* Pixels first .. first + n of one image as panels [panel][k][COLUMNS], k = k0 .. k0 + kn in the filter's order. */
VEC_INLINE void pack_pixel_panels(float *d, const conv_problem *p, ink_dtype t, int64_t image, int64_t group, int64_t first, int64_t n,
                                  int64_t k0, int64_t kn)
{
    for (int64_t j = 0; j < n; j += COLUMNS, d += DEPTH * COLUMNS) {
        const int64_t columns = n - j < COLUMNS ? n - j : COLUMNS;
        stretch s[COLUMNS];
        const int stretches = stretches_of(s, p, first + j, columns);
        int64_t c = k0 / (p->kh * p->kw), r = k0 / p->kw % p->kh, q = k0 % p->kw;
        float *o = d;
        for (int64_t k = 0; k < kn; k++, o += COLUMNS) {
            const int64_t plane = (image * p->channels + group * p->c + c) * p->h;
            for (int i = 0; i < stretches; i++) {
                int64_t ih = s[i].ih + r * p->dh, iw = s[i].iw + q * p->dw;
                if (ih < 0 || ih >= p->h)
                    clear(o + s[i].at, s[i].n);
                else if (s[i].n == COLUMNS && p->sw == 1 && iw >= 0 && iw + COLUMNS <= p->w_in) {
                    v_store(o, v_get(p->x, t, (plane + ih) * p->w_in + iw, VF));
                    v_store(o + VF, v_get(p->x, t, (plane + ih) * p->w_in + iw + VF, VF));
                } else
                    gather(o + s[i].at, p->x, t, (plane + ih) * p->w_in, iw, p->sw, p->w_in, s[i].n);
            }
            clear(o + columns, COLUMNS - columns);
            if (++q == p->kw) {
                q = 0;
                if (++r == p->kh)
                    r = 0, c++;
            }
        }
    }
}

/* ---- epilogue ---- */

/* n sums of consecutive elements of y from `at`; bias by element (channels last) or one for all. */
VEC_INLINE void store_run(const conv_problem *p, ink_dtype t, const float *sum, int64_t at, int64_t n, int64_t channel, bool by_element)
{
    float one = p->bias && !by_element ? load_f32(p->bias, p->bias_dtype, channel) : 0;
    for (int64_t i = 0; i < n; i += VF) {
        vf v = v_load(sum + i);
        if (p->bias && by_element)
            v = v_add(v, p->bias_dtype == INK_F32 ? v_get(p->bias, INK_F32, channel + i, n - i) : v_get(p->bias, t, channel + i, n - i));
        else if (p->bias)
            v = v_add(v, v_set(one));
        if (p->residual)
            v = v_add(v, v_get(p->residual, t, at + i, n - i));
        v_put(p->y, t, at + i, v_activate(v, p->act), n - i);
    }
}

/* ---- tasks ---- */

typedef struct conv_bands {
    int64_t size, per_image, count;
} conv_bands;

/* Channels last: pixels of all images follow each other. */
static conv_bands bands_of(const conv_problem *p)
{
    conv_bands b = {.size = BAND, .per_image = (p->pixels + BAND - 1) / BAND};
    b.count = p->channels_last ? (p->images * p->pixels + BAND - 1) / BAND : p->images * b.per_image;
    return b;
}

VEC_INLINE void run_task(const conv_problem *p, ink_dtype t, const conv_blocks *b, const conv_bands *bands, const float *w, int64_t block,
                         int64_t band, float *packed, float *sums)
{
    const int64_t group = block / b->per_group, m0 = block % b->per_group * b->size, m = p->m - m0 < b->size ? p->m - m0 : b->size;
    const int64_t image = p->channels_last ? 0 : band / bands->per_image, all = p->channels_last ? p->images * p->pixels : p->pixels;
    const int64_t first = (p->channels_last ? band : band % bands->per_image) * bands->size;
    const int64_t n = all - first < bands->size ? all - first : bands->size, channel = group * p->m + m0;
    const int64_t ldc = p->channels_last ? LDC_PIXELS : BAND;
    for (int64_t k0 = 0; k0 < p->depth; k0 += DEPTH) {
        int64_t kn = p->depth - k0 < DEPTH ? p->depth - k0 : DEPTH;
        if (p->channels_last) {
            pack_pixel_rows(packed, p, t, group, first, n, k0, kn);
            multiply(n, (m + COLUMNS - 1) / COLUMNS, packed, LDA, w + k0 * COLUMNS, p->depth * COLUMNS, kn, sums, ldc, k0 == 0);
        } else {
            pack_pixel_panels(packed, p, t, image, group, first, n, k0, kn);
            multiply(m, (n + COLUMNS - 1) / COLUMNS, w + k0, b->lda, packed, DEPTH * COLUMNS, kn, sums, ldc, k0 == 0);
        }
    }
    if (p->channels_last)
        for (int64_t i = 0; i < n; i++)
            store_run(p, t, sums + i * ldc, (first + i) * p->out_channels + channel, m, channel, true);
    else
        for (int64_t i = 0; i < m; i++)
            store_run(p, t, sums + i * ldc, (image * p->out_channels + channel + i) * p->pixels + first, n, channel + i, false);
}

VEC_INLINE ink_status conv_vector(const op_call *call, ink_dtype t)
{
    const conv_problem p = conv_problem_of(call);
    const conv_blocks b = blocks_of(&p);
    const conv_bands bands = bands_of(&p);
    float *weights = call->workspace, *scratch = weights + b.per_pass * b.floats;
    const int64_t parts = b.size / VF;
    int nonfinite = 0;
    if (!bands.count)
        return INK_OK;
#pragma omp parallel num_threads(call->threads) reduction(| : nonfinite) \
    if ((double)p.images * (double)p.pixels * (double)p.out_channels * (double)p.depth > 2e5)
    {
        float *packed = scratch + thread_index() * (PACKED_FLOATS + SUM_FLOATS), *sums = packed + PACKED_FLOATS;
        for (int64_t from = 0; from < b.count; from += b.per_pass) {
            int64_t blocks = b.count - from < b.per_pass ? b.count - from : b.per_pass;
#pragma omp for schedule(dynamic, 1)
            for (int64_t i = 0; i < blocks * parts; i++)
                nonfinite |= !pack_weights(weights + i / parts * b.floats, &p, t, &b, from + i / parts, i % parts);
#pragma omp for schedule(dynamic, 1)
            for (int64_t i = 0; i < blocks * bands.count; i++)
                run_task(&p, t, &b, &bands, weights + i / bands.count * b.floats, from + i / bands.count, i % bands.count, packed, sums);
        }
    }
    if (nonfinite)
        conv_redo_border(&p, call->threads);
    return INK_OK;
}

/* ---- the row's functions ---- */

#if defined(__AVX512F__)
#define NAMED(stem) stem##_avx512
#else
#define NAMED(stem) stem##_avx2
#endif

const char *NAMED(conv_decline)(const op_call *c)
{
    const conv_problem p = conv_problem_of(c);
    return blocks_of(&p).size ? NULL : "more products per output than a pass of packed weights holds";
}

size_t NAMED(conv_workspace)(const op_call *c)
{
    const conv_problem p = conv_problem_of(c);
    const conv_blocks b = blocks_of(&p);
    int64_t weights = b.count * b.floats * (int64_t)sizeof(float);
    return (size_t)((weights < WEIGHT_BYTES ? weights : WEIGHT_BYTES) + c->threads * THREAD_BYTES);
}

ink_status NAMED(conv_bf16)(const op_call *c) { return conv_vector(c, INK_BF16); }
ink_status NAMED(conv_f16)(const op_call *c) { return conv_vector(c, INK_F16); }
ink_status NAMED(conv_f32)(const op_call *c) { return conv_vector(c, INK_F32); }
