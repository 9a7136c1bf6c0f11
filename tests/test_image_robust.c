/* test_image_robust.c - damaged and lying picture files: an error or the right pixels, quickly, in little memory, silently.
 */
#include "core/rng.h"
#include "image_files.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const files[] = {
    "rgb_420.jpg",
    "progressive.jpg",
    "arithmetic.jpg",
    "cmyk_adobe.jpg",
    "restarts.jpg",
    "orientation6.jpg",
    "grey.jpg",
    "rgb8.png",
    "rgb8_interlaced.png",
    "palette4_clear.png",
    "rgba16.png",
    "orientation5.png",
    "lossless.webp",
    "lossless_alpha.webp",
    "lossy.webp",
    "lossy_alpha.webp",
    "orientation6.webp",
    "rgb8.tif",
    "rgb8_lzw_predictor.tif",
    "rgb8_deflate_tiles.tif",
    "g4_black_is_zero.tif",
    "g3.tif",
    "cmyk8.tif",
    "jpeg_in_tiff_ycbcr.tif",
    "rgb8_bigtiff.tif",
    "palette8.tif",
    "rgb8_packbits.tif",
    "rgb8_separate.tif",
    "three_pages.tif",
    "rgba8.tif",
};
enum { FILES = sizeof files / sizeof *files };

static const image_limits small = {1 << 20, 4096, 1 << 20};

/* Seconds of processor time: a busy machine does not fail a test. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* For a refusal. A sanitizer prepares its bookkeeping for memory that is asked for and never touched. */
#ifdef __SANITIZE_ADDRESS__
#define QUICK 5.0
#else
#define QUICK 0.3
#endif

static bool known_failure(ink_status s)
{
    return s == INK_BAD_DATA || s == INK_UNIMPLEMENTED || s == INK_RESOURCE_EXHAUSTED;
}

/* An exact copy, so that reading past the end is seen by a memory checker. */
static ink_status decode_copy(const uint8_t *data, size_t size, image *img)
{
    uint8_t *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    ink_status s = image_decode(copy, size, &small, img);
    free(copy);
    return s;
}

/* ---- cut at every length: an error, or every pixel right (a few files end in bytes that carry none) ---- */
static void test_truncated(void **state)
{
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        size_t size, decoded = 0;
        uint8_t *data = read_fixture(files[i], &size);
        image whole, part;
        assert_non_null(data);
        assert_int_equal(image_decode(data, size, &small, &whole), INK_OK);
        for (size_t n = 0; n < size; n++) {
            ink_status s = decode_copy(data, n, &part);
            if (s != INK_OK && known_failure(s))
                continue;
            if (s != INK_OK || image_difference(&whole, &part) != 0)
                fail_msg("%s cut to %zu of %zu bytes: %s, difference %d", files[i], n, size,
                         s ? ink_last_error() : "decoded", s ? -1 : image_difference(&whole, &part));
            image_free(&part);
            decoded++;
        }
        if (decoded)
            print_message("%s: complete in %zu of %zu lengths\n", files[i], decoded, size);
        image_free(&whole);
        free(data);
    }
}

/* ---- header bytes changed, and random damage anywhere ---- */
static void try_damaged(const uint8_t *data, size_t size, const char *name)
{
    image img;
    ink_status s = decode_copy(data, size, &img);
    if (s != INK_OK && !known_failure(s))
        fail_msg("%s: %s", name, ink_last_error());
    if (s == INK_OK)
        assert_true((int64_t)img.width * img.height <= small.max_pixels);
    image_free(&img);
}

static long peak_kib(void)
{
#ifdef __SANITIZE_ADDRESS__ /* keeps freed memory */
    return 0;
#else
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
#endif
}

static void test_damaged(void **state)
{
    (void)state;
    rng r = {.seed = (uint64_t)time(NULL)};
    print_message("seed %llu\n", (unsigned long long)r.seed);
    long before = peak_kib();
    double begin = now();
    for (size_t i = 0; i < FILES; i++) {
        size_t size;
        uint8_t *data = read_fixture(files[i], &size);
        assert_non_null(data);
        for (size_t at = 0; at < size; at++) {
            const uint8_t kept = data[at],
                          values[] = {0, 0xff, kept ^ 0x80, kept + 1, kept - 1, kept ^ 1, (uint8_t)rng_u64(&r)};
            for (size_t v = 0; v < (at < 200 || size - at < 400 ? sizeof values : 1); v++) {
                data[at] = values[v];
                try_damaged(data, size, files[i]);
            }
            data[at] = kept;
        }
        for (int round = 0; round < 200; round++) {
            uint8_t *copy = malloc(size);
            assert_non_null(copy);
            memcpy(copy, data, size);
            for (uint64_t n = 1 + rng_below(&r, 8); n; n--)
                copy[rng_below(&r, size)] = (uint8_t)rng_u64(&r);
            try_damaged(copy, size, files[i]);
            free(copy);
        }
        free(data);
    }
    print_message("peak memory grew by %ld KiB in %.1f s\n", peak_kib() - before, now() - begin);
    assert_true(peak_kib() - before < 64 << 10);
}

/* ---- sizes that a header only claims ---- */
static void put_big_endian(uint8_t *p, uint32_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
}

static uint32_t crc32_of(const uint8_t *p, size_t n)
{
    uint32_t c = ~0u;
    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
    }
    return ~c;
}

static void expect_refused(const uint8_t *data, size_t size, ink_status status, const char *words)
{
    image img;
    long before = peak_kib();
    double begin = now();
    ink_status s = image_decode(data, size, NULL, &img);
    if (s != status || !strstr(ink_last_error(), words))
        fail_msg("expected %s \"%s\", got %s \"%s\"", ink_status_name(status), words, ink_status_name(s), ink_last_error());
    if (now() - begin > QUICK)
        fail_msg("%.2f s for \"%s\"", now() - begin, words);
    assert_true(peak_kib() - before < 32 << 10);
}

static void test_huge_png(void **state)
{
    (void)state;
    static const struct {
        uint32_t width, height;
        ink_status status;
        const char *words;
    } sizes[] = {{65500, 65500, INK_RESOURCE_EXHAUSTED, "larger than the limit of 200000000 pixels"},
                 {0x7fffffff, 1, INK_RESOURCE_EXHAUSTED, "longer than the limit of 65500"},
                 {1, 0x7fffffff, INK_RESOURCE_EXHAUSTED, "longer than the limit of 65500"},
                 {0x80000001, 1, INK_BAD_DATA, "PNG"},
                 {0xffffffff, 0xffffffff, INK_BAD_DATA, "PNG"},
                 {0, 5, INK_BAD_DATA, "PNG"},
                 {14000, 14000, INK_BAD_DATA, "cannot come from"}};
    size_t size;
    uint8_t *data = read_fixture("rgb8.png", &size);
    assert_non_null(data);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        put_big_endian(data + 16, sizes[i].width, 4);
        put_big_endian(data + 20, sizes[i].height, 4);
        put_big_endian(data + 29, crc32_of(data + 12, 17), 4);
        expect_refused(data, size, sizes[i].status, sizes[i].words);
    }
    free(data);
}

static void test_huge_jpeg(void **state)
{
    (void)state;
    static const char *const names[] = {"rgb_420.jpg", "progressive.jpg", "arithmetic.jpg", "grey.jpg"};
    for (size_t i = 0; i < 4; i++) {
        size_t size, at = 2;
        uint8_t *data = read_fixture(names[i], &size);
        assert_non_null(data);
        while (data[at + 1] < 0xc0 || data[at + 1] > 0xcf || data[at + 1] == 0xc4 || data[at + 1] == 0xcc)
            at += 2 + ((size_t)data[at + 2] << 8 | data[at + 3]);
        put_big_endian(data + at + 5, 65500, 2);
        put_big_endian(data + at + 7, 65500, 2);
        expect_refused(data, size, INK_RESOURCE_EXHAUSTED, "larger than the limit of 200000000 pixels");
        put_big_endian(data + at + 7, 65535, 2);
        expect_refused(data, size, INK_RESOURCE_EXHAUSTED, "65500"); /* libjpeg's own limit is the same */
        put_big_endian(data + at + 5, 14000, 2);
        put_big_endian(data + at + 7, 14000, 2);
        if (i != 2) /* within the limits, and the data ends early; arithmetic coding may need no data for blank rows */
            expect_refused(data, size, INK_BAD_DATA, "JPEG");
        put_big_endian(data + at + 5, 0, 2);
        expect_refused(data, size, INK_BAD_DATA, "JPEG");
        free(data);
    }
}

static void test_huge_webp(void **state)
{
    (void)state;
    /* RIFF, WEBP, VP8L of 16384 x 16384: 14 bits each of size - 1 behind the signature byte. */
    uint8_t lossless[64] = "RIFF\x38\0\0\0WEBPVP8L\x2c\0\0\0\x2f\xff\xff\xff\x0f";
    expect_refused(lossless, sizeof lossless, INK_RESOURCE_EXHAUSTED, "WebP image of 16384x16384 pixels is larger");
    /* VP8X canvas of 2^24 x 2^24 */
    uint8_t extended[64] = "RIFF\x38\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff";
    expect_refused(extended, sizeof extended, INK_BAD_DATA, "WebP");
    memset(extended + 24, 0xff, 4); /* 65536 x 256 */
    extended[26] = 0, extended[28] = 0, extended[29] = 0;
    expect_refused(extended, sizeof extended, INK_RESOURCE_EXHAUSTED, "longer than the limit");
}

/* A little-endian TIFF of one strip, from a table of (tag, type, value). */
static size_t make_tiff(uint8_t *to, const uint32_t (*tags)[3], size_t n)
{
    memcpy(to, "II*\0\x08\0\0\0", 8);
    uint8_t *p = to + 8;
    *p++ = (uint8_t)n;
    *p++ = 0;
    for (size_t i = 0; i < n; i++, p += 12) {
        const uint32_t v[3] = {tags[i][0] | tags[i][1] << 16, 1, tags[i][2]};
        for (int b = 0; b < 12; b++)
            p[b] = (uint8_t)(v[b / 4] >> 8 * (b % 4));
    }
    memset(p, 0, 128);
    return (size_t)(p - to) + 128;
}

static void test_huge_tiff(void **state)
{
    (void)state;
    enum { SHORT = 3, LONG = 4 };
    uint8_t data[600];
    uint32_t tags[][3] = {{256, LONG, 65500}, {257, LONG, 65500}, {258, SHORT, 8},    {259, SHORT, 1}, {262, SHORT, 1},
                          {273, LONG, 130},   {277, SHORT, 1},    {278, LONG, 65500}, {279, LONG, 64}};
    enum { N = sizeof tags / sizeof *tags };
    size_t size = make_tiff(data, tags, N);
    expect_refused(data, size, INK_RESOURCE_EXHAUSTED, "TIFF image of 65500x65500 pixels is larger");
    tags[0][2] = 0xffffffff;
    size = make_tiff(data, tags, N);
    expect_refused(data, size, INK_RESOURCE_EXHAUSTED, "longer than the limit");
    tags[1][2] = 0xffffffff;
    size = make_tiff(data, tags, N);
    expect_refused(data, size, INK_BAD_DATA, "TIFF");
    tags[0][2] = tags[1][2] = 14000;
    size = make_tiff(data, tags, N);
    expect_refused(data, size, INK_BAD_DATA, "TIFF");
    tags[0][2] = 0;
    size = make_tiff(data, tags, N);
    expect_refused(data, size, INK_BAD_DATA, "TIFF");
    tags[0][2] = tags[1][2] = 8; /* and the same file told the truth decodes */
    size = make_tiff(data, tags, N);
    image img;
    assert_int_equal(image_decode(data, size, NULL, &img), INK_OK);
    assert_int_equal(img.width, 8);
    image_free(&img);
    tags[6][2] = 60000; /* samples per pixel */
    size = make_tiff(data, tags, N);
    expect_refused(data, size, INK_UNIMPLEMENTED, "60000 samples");
    tags[6][2] = 1;
    tags[2][2] = 12; /* bits */
    size = make_tiff(data, tags, N);
    expect_refused(data, size, INK_UNIMPLEMENTED, "of 12 bits");
}

/* ---- limits, each at its edge ---- */
static void test_limits(void **state)
{
    (void)state;
    static const char *const names[] = {"rgb_420.jpg", "rgb8.png", "lossless.webp", "rgb8.tif"};
    for (size_t i = 0; i < 4; i++) {
        size_t size;
        image img;
        uint8_t *data = read_fixture(names[i], &size);
        assert_non_null(data);
        const image_limits fits = {size, 37, 37 * 23}; /* the fixtures are 37 x 23 */
        assert_int_equal(image_decode(data, size, &fits, &img), INK_OK);
        image_free(&img);
        for (int which = 0; which < 3; which++) {
            image_limits l = fits;
            l.max_file_bytes -= which == 0;
            l.max_side -= which == 1;
            l.max_pixels -= which == 2;
            assert_int_equal(image_decode(data, size, &l, &img), INK_RESOURCE_EXHAUSTED);
            assert_null(img.pixels);
        }
        free(data);
    }
}

/* Strips that all lie on the same bytes make little data into much work. */
static void test_overlapping_strips(void **state)
{
    (void)state;
    enum {
        ROWS = 20000,
        ENTRIES = 9,
        HEADER = 8 + 2 + 12 * ENTRIES + 4,
        ARRAYS = HEADER + 8 * ROWS,
        SIZE = ARRAYS + 400000
    };
    uint8_t *data = calloc(SIZE, 1);
    assert_non_null(data);
    const uint32_t tags[ENTRIES][4] = {{256, 3, 1, 8},     {257, 4, 1, ROWS}, {258, 3, 1, 8},
                                       {259, 3, 1, 32773}, {262, 3, 1, 1},    {273, 4, ROWS, HEADER},
                                       {277, 3, 1, 1},     {278, 3, 1, 1},    {279, 4, ROWS, HEADER + 4 * ROWS}};
    memcpy(data, "II*\0\x08\0\0\0", 8);
    data[8] = ENTRIES;
    for (int i = 0; i < ENTRIES; i++)
        for (int b = 0; b < 12; b++)
            data[10 + 12 * i + b] = (uint8_t)((b < 4   ? tags[i][0] | tags[i][1] << 16
                                               : b < 8 ? tags[i][2]
                                                       : tags[i][3]) >>
                                              8 * (b % 4));
    for (uint32_t i = 0; i < ROWS; i++)
        for (int b = 0; b < 4; b++) {
            data[HEADER + 4 * i + (uint32_t)b] = (uint8_t)((uint32_t)ARRAYS >> 8 * b);
            data[HEADER + 4 * (ROWS + i) + (uint32_t)b] = (uint8_t)(400000u >> 8 * b);
        }
    expect_refused(data, SIZE, INK_BAD_DATA, "more bytes than the file");
    free(data);
}

/* ---- nothing is printed, whatever happens ---- */
static void test_silent(void **state)
{
    (void)state;
    char name[] = "/tmp/ink_silent_XXXXXX";
    int file = mkstemp(name), out = dup(1), err = dup(2);
    assert_true(file >= 0 && out >= 0 && err >= 0);
    fflush(stdout);
    fflush(stderr);
    dup2(file, 1);
    dup2(file, 2);
    for (size_t i = 0; i < FILES; i++) {
        size_t size;
        uint8_t *data = read_fixture(files[i], &size);
        for (size_t at = 0; data && at < size; at += 3) {
            image img;
            image_decode(data, at, &small, &img);
            image_free(&img);
            data[at] ^= 0x55;
            image_decode(data, size, &small, &img);
            image_free(&img);
            data[at] ^= 0x55;
        }
        free(data);
    }
    fflush(stdout);
    fflush(stderr);
    dup2(out, 1);
    dup2(err, 2);
    struct stat st = {0};
    fstat(file, &st);
    close(file), close(out), close(err);
    unlink(name);
    assert_int_equal(st.st_size, 0);
}

/* ---- decoders share nothing between threads ---- */
static void test_parallel(void **state)
{
    (void)state;
    image want[FILES];
    for (size_t i = 0; i < FILES; i++) {
        size_t size;
        uint8_t *data = read_fixture(files[i], &size);
        assert_int_equal(image_decode(data, size, NULL, &want[i]), INK_OK);
        free(data);
    }
    int wrong = 0;
#pragma omp parallel for num_threads(8) reduction(+ : wrong) schedule(dynamic)
    for (int round = 0; round < 40 * FILES; round++) {
        size_t size;
        uint8_t *data = read_fixture(files[round % FILES], &size);
        image img;
        ink_status s = round % 7 ? image_decode(data, size, NULL, &img) : image_decode(data, size / 3, NULL, &img);
        wrong += round % 7 ? s != INK_OK || image_difference(&img, &want[round % FILES]) != 0 : s == INK_OK;
        image_free(&img);
        free(data);
    }
    assert_int_equal(wrong, 0);
    for (size_t i = 0; i < FILES; i++)
        image_free(&want[i]);
}

int main(void)
{
    alarm(300); /* a hang is a failure */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_huge_png),
        cmocka_unit_test(test_huge_jpeg),
        cmocka_unit_test(test_huge_webp),
        cmocka_unit_test(test_huge_tiff),
        cmocka_unit_test(test_overlapping_strips),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_silent),
        cmocka_unit_test(test_parallel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
