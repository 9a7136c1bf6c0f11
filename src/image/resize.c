#include "image/resize.h"

#include "core/memory.h"
#include "core/threads.h"
#include "cpu/isa.h"
#include "image/resize_loops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LANES = 32, /* rows that the columns pass does together */
    PIECE = 128 /* bytes of a row worked on at a time */
};

/* ---- filters ---- */
static double bicubic(double t)
{
    const double a = -0.5;
    t = fabs(t);
    if (t < 1.0)
        return ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0;
    if (t < 2.0)
        return (((t - 5.0) * t + 8.0) * t - 4.0) * a;
    return 0.0;
}

static double sinc(double t)
{
    if (t == 0.0)
        return 1.0;
    t *= 3.14159265358979323846;
    return sin(t) / t;
}

static double lanczos(double t) { return t >= -3.0 && t < 3.0 ? sinc(t) * sinc(t / 3.0) : 0.0; }

/* ---- taps of one axis ---- */
typedef struct axis_taps {
    int out, most;    /* outputs, most taps of one output */
    int *first;       /* [out] first input of each */
    int *count;       /* [out] */
    int32_t *weights; /* [out][most] in 22-bit fixed point */
} axis_taps;

static void taps_free(axis_taps *t)
{
    free(t->first);
    free(t->count);
    free(t->weights);
}

/* Weights of one output with its centre at c; returns their number. `real` has room for all of them. */
static int fill_taps(double c, double stretch, double radius, double (*k)(double), int in, double *real, int32_t *weights,
                     int *first)
{
    const double shrink = 1.0 / stretch;
    int lo = (int)(c - radius + 0.5), hi = (int)(c + radius + 0.5);
    lo = lo < 0 ? 0 : lo;
    hi = hi > in ? in : hi;
    double sum = 0;
    for (int x = lo; x < hi; x++) {
        real[x - lo] = k((x - c + 0.5) * shrink);
        sum += real[x - lo];
    }
    for (int i = 0; i < hi - lo; i++) {
        double w = (sum != 0.0 ? real[i] / sum : real[i]) * (1 << RESIZE_FRACTION_BITS);
        weights[i] = (int32_t)(w < 0 ? w - 0.5 : w + 0.5);
    }
    *first = lo;
    return hi - lo;
}

static ink_status taps_make(axis_taps *t, int in, int out, resize_filter filter)
{
    double (*k)(double) = filter == RESIZE_LANCZOS ? lanczos : bicubic;
    const double scale = (double)in / out, stretch = scale < 1.0 ? 1.0 : scale;
    const double radius = (filter == RESIZE_LANCZOS ? 3.0 : 2.0) * stretch;
    *t = (axis_taps){.out = out, .most = (int)ceil(radius) * 2 + 1};
    size_t n = (size_t)out;
    double *real = alloc_array((size_t)t->most, sizeof *real);
    t->first = alloc_array(n, sizeof *t->first);
    t->count = alloc_array(n, sizeof *t->count);
    t->weights = alloc_array(n * (size_t)t->most, sizeof *t->weights);
    bool complete = real && t->first && t->count && t->weights;
    for (int i = 0; complete && i < out; i++)
        t->count[i] = fill_taps((i + 0.5) * scale, stretch, radius, k, in, real, t->weights + (size_t)i * (size_t)t->most,
                                &t->first[i]);
    free(real);
    if (complete)
        return INK_OK;
    taps_free(t);
    return INK_RESOURCE_EXHAUSTED;
}

/* ---- the inner loop ---- */
void resize_loop_portable(const uint8_t *src, size_t stride, const int32_t *weights, int count, size_t n, uint8_t *dst)
{
    int32_t sums[PIECE]; /* in the first cache; the loop over them is vectorised */
    for (size_t i = 0; i < n; i += PIECE) {
        const size_t m = n - i < PIECE ? n - i : PIECE;
        for (size_t j = 0; j < m; j++)
            sums[j] = 1 << (RESIZE_FRACTION_BITS - 1);
        for (int t = 0; t < count; t++)
            for (size_t j = 0; j < m; j++)
                sums[j] += weights[t] * src[i + (size_t)t * stride + j];
        for (size_t j = 0; j < m; j++) {
            const int32_t v = sums[j] >> RESIZE_FRACTION_BITS;
            dst[i + j] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
        }
    }
}

static resize_loop *choose_loop(void)
{
#ifdef __x86_64__
    cpu_isa isa; /* a bad INK_CPU has been reported when the model was loaded; here it means portable */
    if (cpu_isa_detect(&isa) == INK_OK && isa >= ISA_AVX2)
        return resize_loop_avx2;
#endif
    return resize_loop_portable;
}

/* ---- passes ---- */

/* LANES rows side by side, dst[b][l] = byte b of row l, so that the columns pass runs the loop of the rows pass. Rows past
 * `rows` repeat the last. */
static void rows_to_lanes(const uint8_t *src, size_t row_bytes, int rows, uint8_t *dst)
{
    for (size_t b0 = 0; b0 < row_bytes; b0 += PIECE) { /* a piece of dst stays in the first cache */
        const size_t end = row_bytes - b0 < PIECE ? row_bytes : b0 + PIECE;
        for (size_t l = 0; l < LANES; l++) {
            const uint8_t *row = src + row_bytes * (l < (size_t)rows ? l : (size_t)rows - 1);
            for (size_t b = b0; b < end; b++)
                dst[b * LANES + l] = row[b];
        }
    }
}

static void lanes_to_rows(const uint8_t *src, size_t row_bytes, int rows, uint8_t *dst)
{
    for (size_t b0 = 0; b0 < row_bytes; b0 += PIECE) {
        const size_t end = row_bytes - b0 < PIECE ? row_bytes : b0 + PIECE;
        for (size_t l = 0; l < (size_t)rows; l++)
            for (size_t b = b0; b < end; b++)
                dst[row_bytes * l + b] = src[b * LANES + l];
    }
}

/* One output pixel of LANES rows after the other; in and result are [bytes][LANES]. */
static void weigh_columns(resize_loop *loop, const uint8_t *in, const axis_taps *t, uint8_t *result)
{
    for (int i = 0; i < t->out; i++)
        loop(in + LANES * 3 * (size_t)t->first[i], 3 * LANES, t->weights + (size_t)i * (size_t)t->most, t->count[i],
             3 * LANES, result + LANES * 3 * (size_t)i);
}

static ink_status resize_width(const image *src, int width, resize_filter filter, int threads, image *out)
{
    axis_taps taps;
    TRY(taps_make(&taps, src->width, width, filter));
    resize_loop *const loop = choose_loop();
    const size_t in_bytes = 3 * (size_t)src->width, out_bytes = 3 * (size_t)width,
                 lane_bytes = LANES * (in_bytes + out_bytes);
    uint8_t *scratch = alloc_array((size_t)threads, lane_bytes); /* per thread: input, result */
    ink_status s = scratch ? image_alloc(out, width, src->height) : INK_RESOURCE_EXHAUSTED;
    if (s == INK_OK) {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int y = 0; y < src->height; y += LANES) {
            uint8_t *in = scratch + lane_bytes * (size_t)thread_index(), *result = in + LANES * in_bytes;
            int rows = src->height - y < LANES ? src->height - y : LANES;
            rows_to_lanes(src->pixels + in_bytes * (size_t)y, in_bytes, rows, in);
            weigh_columns(loop, in, &taps, result);
            lanes_to_rows(result, out_bytes, rows, out->pixels + out_bytes * (size_t)y);
        }
    }
    free(scratch);
    taps_free(&taps);
    return s;
}

static ink_status resize_height(const image *src, int height, resize_filter filter, int threads, image *out)
{
    axis_taps taps;
    TRY(taps_make(&taps, src->height, height, filter));
    resize_loop *const loop = choose_loop();
    const size_t row = 3 * (size_t)src->width;
    ink_status s = image_alloc(out, src->width, height);
    if (s == INK_OK) {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int y = 0; y < height; y++)
            loop(src->pixels + row * (size_t)taps.first[y], row, taps.weights + (size_t)y * (size_t)taps.most,
                 taps.count[y], row, out->pixels + row * (size_t)y);
    }
    taps_free(&taps);
    return s;
}

static ink_status copy_image(const image *src, image *out)
{
    TRY(image_alloc(out, src->width, src->height));
    memcpy(out->pixels, src->pixels, 3 * (size_t)src->width * (size_t)src->height);
    return INK_OK;
}

ink_status image_resize(const image *src, int width, int height, resize_filter filter, int threads, image *out)
{
    *out = (image){0};
    if (width < 1 || height < 1 || !src->pixels)
        return failure(INK_INVALID_ARGUMENT, "resize of %dx%d to %dx%d pixels: every side must be at least 1", src->width,
                       src->height, width, height);
    if (threads < 1)
        threads = threads_default();
    if (width == src->width && height == src->height)
        return copy_image(src, out);
    if (height == src->height)
        return resize_width(src, width, filter, threads, out);
    if (width == src->width)
        return resize_height(src, height, filter, threads, out);
    image narrow;
    TRY(resize_width(src, width, filter, threads, &narrow));
    ink_status s = resize_height(&narrow, height, filter, threads, out);
    image_free(&narrow);
    return s;
}
