/* test_image_resize.c - resampling byte for byte as Pillow, target sizes as the reference, on recorded vectors. */
#include "core/rng.h"
#include "image/resize.h"
#include "image/resize_loops.h"
#include "image/smart_resize.h"
#include "image_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

/* The same integers as draw() in tools/vectors/image_resize.py. */
static uint32_t draw(const char *pattern, uint32_t x, uint32_t y, uint32_t c, uint32_t w)
{
    if (!strcmp(pattern, "noise")) {
        uint32_t v = x * 73856093u ^ y * 19349663u ^ c * 83492791u;
        v = (v ^ v >> 15) * 0x2c1b3c6du;
        return (v ^ v >> 12) >> 8;
    }
    if (!strcmp(pattern, "checker"))
        return ((x ^ y) & 1) * (255 - 60 * c);
    if (!strcmp(pattern, "chirp"))
        return (x * x * (3 + c) + y * y * 2) >> 4;
    if (!strcmp(pattern, "strokes"))
        return (x / 3 + y / 5 + c) % 4 ? 255 : 0;
    return x * 255 / (w > 1 ? w - 1 : 1) + y * c;
}

static void draw_image(const char *pattern, int w, int h, image *img)
{
    assert_int_equal(image_alloc(img, w, h), INK_OK);
    uint8_t *p = img->pixels;
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            for (int c = 0; c < 3; c++)
                *p++ = (uint8_t)draw(pattern, (uint32_t)x, (uint32_t)y, (uint32_t)c, (uint32_t)w);
}

static uint64_t fnv(const void *data, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
    return h;
}

static size_t bytes_of(const image *img) { return 3 * (size_t)img->width * (size_t)img->height; }

/* Where the whole output is recorded, says which byte is the first wrong one. */
static void compare_hex(const char *hex, const image *img)
{
    for (size_t i = 0; i < bytes_of(img); i++) {
        unsigned want;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &want), 1);
        if (img->pixels[i] != want)
            fail_msg("byte %zu of %dx%d is %u, Pillow's is %u", i, img->width, img->height, img->pixels[i], want);
    }
}

static void test_pillow(void **state)
{
    (void)state;
    FILE *f = fopen(IMAGE_DIR "resize.txt", "r");
    assert_non_null(f);
    char line[2048], pattern[20], name[20], hex[1024];
    int w, h, ow, oh, cases = 0, failures = 0;
    unsigned long long before, after;
    while (fgets(line, sizeof line, f)) {
        int n =
            sscanf(line, "%19s %d %d %d %d %19s %llx %llx %1000s", pattern, &w, &h, &ow, &oh, name, &before, &after, hex);
        if (n < 8)
            continue;
        image src, out;
        draw_image(pattern, w, h, &src);
        assert_true(fnv(src.pixels, bytes_of(&src)) == before);
        resize_filter filter = !strcmp(name, "lanczos") ? RESIZE_LANCZOS : RESIZE_BICUBIC;
        assert_int_equal(image_resize(&src, ow, oh, filter, 1 + cases % 3, &out), INK_OK);
        assert_true(out.width == ow && out.height == oh);
        if (n == 9)
            compare_hex(hex, &out);
        if (fnv(out.pixels, bytes_of(&out)) != after) {
            print_error("%s %dx%d to %dx%d %s differs from Pillow\n", pattern, w, h, ow, oh, name);
            failures++;
        }
        assert_true(fnv(src.pixels, bytes_of(&src)) == before);
        image_free(&src);
        image_free(&out);
        cases++;
    }
    fclose(f);
    print_message("%d cases\n", cases);
    assert_true(cases > 300);
    assert_int_equal(failures, 0);
}

/* One weight's definition, straight from the header's text, summed tap by tap: checks the fast loops on fresh sizes. */
static double cubic_weight(double t)
{
    t = t < 0 ? -t : t;
    return t < 1 ? 1.5 * t * t * t - 2.5 * t * t + 1 : t < 2 ? -0.5 * (t * t * t - 5 * t * t + 8 * t - 4) : 0;
}

static double exact_pixel(const image *src, int ow, int x, int y, int c) /* width only */
{
    double s = (double)src->width / ow, F = s < 1 ? 1 : s, centre = (x + 0.5) * s, sum = 0, weights = 0;
    for (int i = 0; i < src->width; i++) {
        double k = cubic_weight((i - centre + 0.5) / F);
        weights += k;
        sum += k * src->pixels[3 * ((size_t)y * (size_t)src->width + (size_t)i) + (size_t)c];
    }
    double v = sum / weights;
    return v < 0 ? 0 : v > 255 ? 255 : v;
}

static void test_against_definition(void **state)
{
    (void)state;
    rng r = {.seed = (uint64_t)time(NULL)};
    print_message("seed %llu\n", (unsigned long long)r.seed);
    for (int round = 0; round < 60; round++) {
        image src, out, again;
        int w = (int)rng_range(&r, 1, 90), h = (int)rng_range(&r, 1, 40), ow = (int)rng_range(&r, 1, 90);
        assert_int_equal(image_alloc(&src, w, h), INK_OK);
        for (size_t i = 0; i < bytes_of(&src); i++)
            src.pixels[i] = (uint8_t)rng_u64(&r);
        assert_int_equal(image_resize(&src, ow, h, RESIZE_BICUBIC, 2, &out), INK_OK);
        for (int y = 0; y < h; y++)
            for (int x = 0; x < ow; x++)
                for (int c = 0; c < 3; c++) {
                    double want = exact_pixel(&src, ow, x, y, c), d = out.pixels[3 * (y * ow + x) + c] - want;
                    if (d > 0.51 || d < -0.51)
                        fail_msg("%dx%d to %d at %d,%d: %d, exactly %f", w, h, ow, x, y, out.pixels[3 * (y * ow + x) + c],
                                 want);
                }
        assert_int_equal(image_resize(&src, ow, h, RESIZE_BICUBIC, 5, &again), INK_OK);
        assert_int_equal(image_difference(&out, &again), 0);
        image_free(&src);
        image_free(&out);
        image_free(&again);
    }
}

/* The inner loops give the same bytes for every length, also the clamped ones. */
static void test_loops_agree(void **state)
{
    (void)state;
#ifdef __x86_64__
    if (!__builtin_cpu_supports("avx2"))
        skip();
    rng r = {.seed = (uint64_t)time(NULL)};
    print_message("seed %llu\n", (unsigned long long)r.seed);
    uint8_t src[4000], a[300], b[300];
    int32_t weights[12];
    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (uint8_t)rng_u64(&r);
    for (size_t n = 0; n < 299; n++) {
        int count = (int)rng_range(&r, 0, 12);
        for (int t = 0; t < count; t++)
            weights[t] = (int32_t)rng_range(&r, -(1 << 19), 1 << 19);
        memset(a, 77, sizeof a);
        memset(b, 77, sizeof b);
        resize_loop_portable(src + n, 301, weights, count, n, a);
        resize_loop_avx2(src + n, 301, weights, count, n, b);
        assert_memory_equal(a, b, sizeof a);
        assert_int_equal(a[n], 77);
    }
#else
    skip();
#endif
}

/* The same picture on its side gives the same result on its side when only one axis changes. */
static void test_axes_agree(void **state)
{
    (void)state;
    for (int filter = RESIZE_BICUBIC; filter <= RESIZE_LANCZOS; filter++) {
        image a, b, ra, rb;
        draw_image("noise", 61, 29, &a);
        draw_image("noise", 61, 29, &b);
        assert_int_equal(image_apply_orientation(&b, 5), INK_OK);
        assert_int_equal(image_resize(&a, 45, 29, (resize_filter)filter, 0, &ra), INK_OK);
        assert_int_equal(image_resize(&b, 29, 45, (resize_filter)filter, 0, &rb), INK_OK);
        assert_int_equal(image_apply_orientation(&rb, 5), INK_OK);
        assert_int_equal(image_difference(&ra, &rb), 0);
        image_free(&a), image_free(&b), image_free(&ra), image_free(&rb);
    }
}

static void test_flat_stays_flat(void **state)
{
    (void)state;
    rng r = {.seed = 5};
    for (int round = 0; round < 40; round++) {
        image src, out;
        assert_int_equal(image_alloc(&src, (int)rng_range(&r, 1, 50), (int)rng_range(&r, 1, 50)), INK_OK);
        memset(src.pixels, round * 6 + 3, bytes_of(&src));
        resize_filter filter = round % 2 ? RESIZE_LANCZOS : RESIZE_BICUBIC;
        assert_int_equal(image_resize(&src, (int)rng_range(&r, 1, 150), (int)rng_range(&r, 1, 150), filter, 0, &out),
                         INK_OK);
        for (size_t i = 0; i < bytes_of(&out); i++)
            assert_int_equal(out.pixels[i], round * 6 + 3);
        image_free(&src);
        image_free(&out);
    }
}

static void test_resize_arguments(void **state)
{
    (void)state;
    image src, out = {.width = 3}, empty = {0};
    draw_image("noise", 3, 3, &src);
    assert_int_equal(image_resize(&src, 0, 5, RESIZE_BICUBIC, 1, &out), INK_INVALID_ARGUMENT);
    assert_null(out.pixels);
    assert_int_equal(image_resize(&src, 5, -1, RESIZE_BICUBIC, 1, &out), INK_INVALID_ARGUMENT);
    assert_int_equal(image_resize(&empty, 5, 5, RESIZE_BICUBIC, 1, &out), INK_INVALID_ARGUMENT);
    image_free(&src);
}

/* ---- smart_resize ---- */
static void target(int width, int height, int factor, long long low, long long high, int *w, int *h)
{
    ink_status s = smart_resize(width, height, factor, low, high, w, h);
    if (s != INK_OK) {
        assert_int_equal(s, INK_INVALID_ARGUMENT);
        assert_non_null(strstr(ink_last_error(), "aspect ratio is over 200"));
        *w = *h = 0;
    }
}

static uint64_t hash_rows(int factor, long long low, long long high, int first, int last)
{
    uint64_t hash = 0xcbf29ce484222325u;
    char text[40];
    for (int height = first; height <= last; height++)
        for (int width = 1; width <= 400; width++) {
            int w, h;
            target(width, height, factor, low, high, &w, &h);
            int n = snprintf(text, sizeof text, "%d %d ", w, h);
            for (int i = 0; i < n; i++)
                hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3u;
        }
    return hash;
}

static void test_smart_resize(void **state)
{
    (void)state;
    FILE *f = fopen(IMAGE_DIR "smart_resize.txt", "r");
    assert_non_null(f);
    char line[200];
    int lines = 0;
    while (fgets(line, sizeof line, f)) {
        int factor, a, b, c, d, w, h;
        long long low, high;
        unsigned long long hash;
        lines++;
        if (sscanf(line, "rows %d %lld %lld %d %d %llx", &factor, &low, &high, &a, &b, &hash) == 6) {
            if (hash_rows(factor, low, high, a, b) != hash)
                fail_msg("some size of %d..%d x 1..400 differs: factor %d, %lld to %lld pixels", a, b, factor, low, high);
            continue;
        }
        assert_int_equal(sscanf(line, "size %d %lld %lld %d %d %d %d", &factor, &low, &high, &a, &b, &c, &d), 7);
        target(a, b, factor, low, high, &w, &h);
        if (w != c || h != d)
            fail_msg("%dx%d factor %d, %lld to %lld: %dx%d, expected %dx%d", a, b, factor, low, high, w, h, c, d);
    }
    fclose(f);
    print_message("%d lines\n", lines);
    assert_true(lines > 2000);
}

static void expect_size(int width, int height, int64_t low, int64_t high, int w, int h)
{
    int got_w = 0, got_h = 0;
    assert_int_equal(smart_resize(width, height, 28, low, high, &got_w, &got_h), INK_OK);
    if (got_w != w || got_h != h)
        fail_msg("%dx%d: %dx%d, expected %dx%d", width, height, got_w, got_h, w, h);
}

/* The worked examples of the model specification, and sizes that users met. */
static void test_smart_resize_examples(void **state)
{
    (void)state;
    expect_size(28, 28, 112896, 1003520, 336, 336);
    expect_size(400, 20, 112896, 1003520, 1512, 84);
    expect_size(2000, 3000, 112896, 1003520, 812, 1204);
    expect_size(42, 70, 784, 1003520, 56, 56); /* halves go to the even neighbour: 1.5 to 2 and 2.5 to 2 */
    expect_size(31, 639, 784, 15680, 28, 560); /* field report 100: no side of 0 */
    expect_size(5600, 28, 784, 10000000, 5600, 28);
    int w, h;
    assert_int_equal(smart_resize(900, 4, 28, 112896, 1003520, &w, &h), INK_INVALID_ARGUMENT); /* field report 98 */
    assert_non_null(strstr(ink_last_error(), "900x4"));
    for (int side = 1; side <= 128; side++) { /* field report 101 */
        assert_int_equal(smart_resize(side, 65, 28, 784, 100352, &w, &h), INK_OK);
        assert_true(w >= 28 && h >= 28 && w % 28 == 0 && h % 28 == 0);
    }
}

static void test_smart_resize_arguments(void **state)
{
    (void)state;
    static const struct {
        int width, height, factor;
        int64_t low, high;
    } bad[] = {{0, 5, 28, 1, 1000},  {5, -3, 28, 1, 1000}, {5, 5, 0, 1, 1000}, {5, 5, 5000, 1, 1000},
               {5, 5, 28, 1000, 10}, {5, 5, 28, -1, 10},   {5, 5, 28, 0, 0},   {5, 5, 28, 0, (int64_t)1 << 40}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int w, h;
        assert_int_equal(smart_resize(bad[i].width, bad[i].height, bad[i].factor, bad[i].low, bad[i].high, &w, &h),
                         INK_INVALID_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pillow),
        cmocka_unit_test(test_against_definition),
        cmocka_unit_test(test_loops_agree),
        cmocka_unit_test(test_axes_agree),
        cmocka_unit_test(test_flat_stays_flat),
        cmocka_unit_test(test_resize_arguments),
        cmocka_unit_test(test_smart_resize),
        cmocka_unit_test(test_smart_resize_examples),
        cmocka_unit_test(test_smart_resize_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
