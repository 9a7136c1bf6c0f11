/* test_image_decode.c - every kind of picture file gives the expected pixels; what is not a picture is refused by name. */
#include "image/decode.h"
#include "image/exif.h"
#include "image_files.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- fixtures: tests/data/image/cases.txt ---- */
static void test_cases(void **state)
{
    (void)state;
    FILE *list = fopen(IMAGE_DIR "cases.txt", "r");
    assert_non_null(list);
    char file[100], expected[100], path[1200];
    int tolerance, cases = 0, failures = 0;
    while (fscanf(list, "%99s %99s %d", file, expected, &tolerance) == 3) {
        image got, want;
        cases++;
        assert_true(read_ppm(expected, &want));
        snprintf(path, sizeof path, IMAGE_DIR "%s", file);
        ink_status s = image_load(path, NULL, &got);
        int d = s == INK_OK ? image_difference(&got, &want) : -1;
        if (s != INK_OK || d > tolerance) {
            print_error("%s: %s, %dx%d, difference %d (allowed %d)\n", file, s ? ink_last_error() : "decoded", got.width,
                        got.height, d, tolerance);
            failures++;
        }
        image_free(&got);
        image_free(&want);
    }
    fclose(list);
    print_message("%d files\n", cases);
    assert_true(cases > 100);
    assert_int_equal(failures, 0);
}

static void test_more_pages(void **state)
{
    (void)state;
    image img;
    assert_int_equal(image_load(IMAGE_DIR "three_pages.tif", NULL, &img), INK_OK);
    assert_true(img.more_pages);
    image_free(&img);
    assert_int_equal(image_load(IMAGE_DIR "g3.tif", NULL, &img), INK_OK);
    assert_false(img.more_pages);
    image_free(&img);
}

/* ---- refusals ---- */
static void expect(const void *data, size_t size, ink_status status, const char *words)
{
    image img = {.width = 7};
    ink_status s = image_decode(data, size, NULL, &img);
    if (s != status || !strstr(ink_last_error(), words))
        fail_msg("expected %s \"%s\", got %s \"%s\"", ink_status_name(status), words, ink_status_name(s), ink_last_error());
    assert_null(img.pixels);
    assert_int_equal(img.width, 0);
}

#define EXPECT(bytes, status, words) expect(bytes, sizeof(bytes) - 1, status, words)

static void test_refused_by_name(void **state)
{
    (void)state;
    EXPECT("GIF89a\1\0\1\0", INK_UNIMPLEMENTED, "GIF images are not supported: convert to PNG");
    EXPECT("BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", INK_UNIMPLEMENTED, "BMP images");
    EXPECT("\0\0\0\x18"
           "ftypheic\0\0\0\0",
           INK_UNIMPLEMENTED, "HEIC images");
    EXPECT("\0\0\0\x18"
           "ftypmif1\0\0\0\0",
           INK_UNIMPLEMENTED, "HEIF images");
    EXPECT("\0\0\0\x1c"
           "ftypavif\0\0\0\0",
           INK_UNIMPLEMENTED, "AVIF images");
    EXPECT("\0\0\0\x1c"
           "ftypisom\0\0\0\0",
           INK_UNIMPLEMENTED, "video");
    EXPECT("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", INK_UNIMPLEMENTED, "PDF documents");
    EXPECT("junk\n%PDF-1.4\n", INK_UNIMPLEMENTED, "PDF documents");
    EXPECT("<?xml version=\"1.0\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"/>", INK_UNIMPLEMENTED, "SVG drawings");
    EXPECT("<html><body>404</body></html>", INK_UNIMPLEMENTED, "HTML pages");
    EXPECT("Dear reader,\n", INK_UNIMPLEMENTED, "text files");
    EXPECT("Zw\xc3\xb6lf Boxk\xc3\xa4mpfer", INK_UNIMPLEMENTED, "text files");
    EXPECT("P6\n1 1\n255\nabc", INK_UNIMPLEMENTED, "PNM images");
    EXPECT("\0\0\0\x0cjP  \r\n\x87\n", INK_UNIMPLEMENTED, "JPEG 2000");
    EXPECT("\xff\x0a\x01", INK_UNIMPLEMENTED, "JPEG XL");
    EXPECT("8BPS\0\1", INK_UNIMPLEMENTED, "Photoshop");
    EXPECT("\x01\x02\x03\x04", INK_BAD_DATA, "beginning 01 02 03 04");
    EXPECT("\x89PNG\r\n\x1a", INK_BAD_DATA, "not a JPEG, PNG, WebP or TIFF");
    EXPECT("", INK_BAD_DATA, "empty");
    expect(NULL, 0, INK_BAD_DATA, "empty");
    image img;
    assert_int_equal(image_load(IMAGE_DIR "gif_inside.jpg", NULL, &img), INK_UNIMPLEMENTED);
    assert_non_null(strstr(ink_last_error(), "gif_inside.jpg: GIF images"));
    assert_int_equal(image_load(IMAGE_DIR "picture.bmp", NULL, &img), INK_UNIMPLEMENTED);
    assert_int_equal(image_load(IMAGE_DIR "animated.webp", NULL, &img), INK_UNIMPLEMENTED);
    assert_non_null(strstr(ink_last_error(), "animated WebP"));
    assert_int_equal(image_load(IMAGE_DIR "cases.txt", NULL, &img), INK_UNIMPLEMENTED);
}

/* ---- files ---- */
static void test_load_errors(void **state)
{
    (void)state;
    image img;
    assert_int_equal(image_load(IMAGE_DIR "missing.png", NULL, &img), INK_NOT_FOUND);
    assert_non_null(strstr(ink_last_error(), "missing.png: No such file"));
    assert_int_equal(image_load(IMAGE_DIR "g3.tif/x", NULL, &img), INK_NOT_FOUND);
    assert_int_equal(image_load(IMAGE_DIR, NULL, &img), INK_IO);
    assert_non_null(strstr(ink_last_error(), "is a directory"));
    assert_int_equal(image_load("/dev/null", NULL, &img), INK_BAD_DATA);
    assert_non_null(strstr(ink_last_error(), "empty"));
    image_limits l = IMAGE_LIMITS_DEFAULT;
    l.max_file_bytes = 1000;
    assert_int_equal(image_load("/dev/zero", &l, &img), INK_RESOURCE_EXHAUSTED);
    assert_int_equal(image_load(IMAGE_DIR "rgb.ppm", &l, &img), INK_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(ink_last_error(), "larger than the limit of 1000 bytes"));
}

/* Any script, spaces and brackets in a name (field report 151). */
static void test_odd_names(void **state)
{
    (void)state;
    char folder[] = "/tmp/ink_image_XXXXXX", path[300];
    assert_non_null(mkdtemp(folder));
    size_t size;
    uint8_t *data = read_fixture("rgb8.png", &size);
    assert_non_null(data);
    static const char *const names[] = {"\xe9\xa1\xb5 1.png", "[a] (b) \xf0\x9f\x93\x84", "per%cent%s.png"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(data, 1, size, f), size);
        fclose(f);
        image img;
        assert_int_equal(image_load(path, NULL, &img), INK_OK);
        image_free(&img);
        assert_int_equal(truncate(path, 60), 0);
        assert_int_equal(image_load(path, NULL, &img), INK_BAD_DATA);
        assert_non_null(strstr(ink_last_error(), path));
        unlink(path);
    }
    rmdir(folder);
    free(data);
}

/* Standard input, through a pipe that delivers in small pieces. */
static void test_standard_input(void **state)
{
    (void)state;
    size_t size;
    uint8_t *data = read_fixture("rgb_420.jpg", &size);
    assert_non_null(data);
    int ends[2], old = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_true(size < 60000); /* a pipe holds that much without a reader */
    for (size_t at = 0; at < size; at += 97)
        assert_true(write(ends[1], data + at, size - at < 97 ? size - at : 97) > 0);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    image got, want;
    ink_status s = image_load("-", NULL, &got);
    assert_int_equal(s, INK_OK);
    assert_true(read_ppm("rgb_420_jpg.ppm", &want));
    assert_int_equal(image_difference(&got, &want), 0);
    image_free(&got);
    image_free(&want);
    assert_int_equal(image_load("-", NULL, &got), INK_BAD_DATA); /* nothing is left */
    assert_non_null(strstr(ink_last_error(), "standard input: image file is empty"));
    dup2(old, STDIN_FILENO);
    close(old);
    close(ends[0]);
    free(data);
}

/* ---- EXIF block parser on its own ---- */
static void test_exif(void **state)
{
    (void)state;
    uint8_t block[] = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0";
    size_t size = sizeof block - 1;
    assert_int_equal(exif_orientation(block, size), 6);
    for (size_t n = 0; n < size; n++) /* the entry ends at byte 22 */
        assert_int_equal(exif_orientation(block, n), n >= 22 ? 6 : 1);
    for (int v = 0; v < 256; v++) {
        block[18] = (uint8_t)v;
        assert_int_equal(exif_orientation(block, size), v >= 1 && v <= 8 ? v : 1);
    }
    static const uint8_t big[] = "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0\0\0\0\0";
    assert_int_equal(exif_orientation(big, sizeof big - 1), 8);
    assert_int_equal(exif_orientation(NULL, 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),       cmocka_unit_test(test_more_pages), cmocka_unit_test(test_refused_by_name),
        cmocka_unit_test(test_load_errors), cmocka_unit_test(test_odd_names),  cmocka_unit_test(test_standard_input),
        cmocka_unit_test(test_exif),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
