/* test_image_processor.c - raw pixels, orientation, patches, and the mini model's recorded pixel values. */
#include "core/dtype.h"
#include "core/rng.h"
#include "image/patchify.h"
#include "image/processor.h"
#include "image_files.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

/* ---- image_from_pixels (field report 112) ---- */
static void test_pixel_formats(void **state)
{
    (void)state;
    rng r = {.seed = (uint64_t)time(NULL)};
    print_message("seed %llu\n", (unsigned long long)r.seed);
    for (int round = 0; round < 200; round++) {
        pixel_format f = (pixel_format)rng_below(&r, PIXEL_FORMAT_COUNT);
        int w = (int)rng_range(&r, 1, 20), h = (int)rng_range(&r, 1, 20), n = pixel_format_channels(f);
        size_t row = (size_t)(w * n), stride = rng_below(&r, 2) ? row + rng_below(&r, 9) : 0, step = stride ? stride : row;
        size_t size =
            step * (size_t)(h - 1) + row; /* nothing behind the last row: a reader of too much is caught by ASan */
        uint8_t *data = malloc(size);
        assert_non_null(data);
        for (size_t i = 0; i < size; i++)
            data[i] = (uint8_t)rng_u64(&r);
        image img;
        assert_int_equal(image_from_pixels(data, f, w, h, stride, NULL, &img), INK_OK);
        for (int y = 0; y < h; y++)
            for (int x = 0; x < w; x++)
                for (int c = 0; c < 3; c++) {
                    const uint8_t *p = data + step * (size_t)y + (size_t)(x * n);
                    int v = n <= 2 ? p[0] : f == PIXEL_BGR || f == PIXEL_BGRA ? p[2 - c] : p[c];
                    int a = n == 2 ? p[1] : n == 4 ? p[3] : 255;
                    int want = (int)floor((v * a + 255.0 * (255 - a)) / 255 + 0.5);
                    assert_int_equal(img.pixels[3 * (y * w + x) + c], want);
                }
        image_free(&img);
        free(data);
    }
}

static void test_pixel_arguments(void **state)
{
    (void)state;
    uint8_t data[300] = {0};
    image img = {.width = 9};
    assert_int_equal(image_from_pixels(data, PIXEL_FORMAT_COUNT, 2, 2, 0, NULL, &img), INK_INVALID_ARGUMENT);
    assert_int_equal(img.width, 0);
    assert_int_equal(image_from_pixels(data, PIXEL_RGB, 0, 2, 0, NULL, &img), INK_INVALID_ARGUMENT);
    assert_int_equal(image_from_pixels(data, PIXEL_RGB, 2, -2, 0, NULL, &img), INK_INVALID_ARGUMENT);
    assert_int_equal(image_from_pixels(NULL, PIXEL_RGB, 2, 2, 0, NULL, &img), INK_INVALID_ARGUMENT);
    assert_int_equal(image_from_pixels(data, PIXEL_RGB, 2, 2, 5, NULL, &img), INK_INVALID_ARGUMENT);
    assert_non_null(strstr(ink_last_error(), "row stride of 5 bytes: a row of 2 pixels takes 6"));
    assert_int_equal(image_from_pixels(data, PIXEL_RGB, 2, 2, SIZE_MAX / 2 + 2, NULL, &img), INK_INVALID_ARGUMENT);
    assert_int_equal(image_from_pixels(data, PIXEL_GREY, 65501, 1, 0, NULL, &img), INK_RESOURCE_EXHAUSTED);
    assert_int_equal(image_from_pixels(data, PIXEL_GREY, 65500, 65500, 0, NULL, &img), INK_RESOURCE_EXHAUSTED);
    image_limits l = {1000, 10, 20};
    assert_int_equal(image_from_pixels(data, PIXEL_RGB, 4, 5, 0, &l, &img), INK_OK);
    image_free(&img);
    assert_int_equal(image_from_pixels(data, PIXEL_RGB, 7, 3, 0, &l, &img), INK_RESOURCE_EXHAUSTED);
}

/* ---- orientation against the definition: where the stored row 0 and column 0 belong ---- */
static void test_orientation(void **state)
{
    (void)state;
    for (int w = 1; w <= 70; w += 23)
        for (int h = 1; h <= 40; h += 13)
            for (int o = -1; o <= 9; o++) {
                image img;
                assert_int_equal(image_alloc(&img, w, h), INK_OK);
                for (int i = 0; i < w * h; i++)
                    for (int c = 0; c < 3; c++)
                        img.pixels[3 * i + c] = (uint8_t)(i >> 8 * c);
                img.more_pages = true;
                assert_int_equal(image_apply_orientation(&img, o), INK_OK);
                bool sideways = o >= 5 && o <= 8;
                assert_true(img.width == (sideways ? h : w) && img.height == (sideways ? w : h) && img.more_pages);
                for (int y = 0; y < h; y++)
                    for (int x = 0; x < w; x++) {
                        int X = x, Y = y, mx = w - 1 - x, my = h - 1 - y;
                        switch (o) {
                        case 2: X = mx; break;         /* row 0 top, column 0 right */
                        case 3: X = mx, Y = my; break; /* bottom, right */
                        case 4: Y = my; break;         /* bottom, left */
                        case 5: X = y, Y = x; break;   /* left, top */
                        case 6: X = my, Y = x; break;  /* right, top */
                        case 7: X = my, Y = mx; break; /* right, bottom */
                        case 8: X = y, Y = mx; break;  /* left, bottom */
                        default: break;
                        }
                        const uint8_t *p = img.pixels + 3 * (Y * img.width + X);
                        assert_int_equal(p[0] | p[1] << 8 | p[2] << 16, y * w + x);
                    }
                image_free(&img);
            }
}

/* ---- patches ---- */
static void test_table(void **state)
{
    (void)state;
    static const float half[3] = {0.5f, 0.5f, 0.5f}, mean[3] = {0.48145466f, 0.4578275f, 0.40821073f},
                       std[3] = {0.26862954f, 0.26130258f, 0.27577711f};
    pixel_table t;
    pixel_table_make(&t, 1.0 / 255, half, half);
    assert_true(t.value[0][0] == -1.0f && t.value[1][255] == 1.0f && t.value[2][51] == (0.2f - 0.5f) / 0.5f);
    pixel_table_make(&t, 1.0 / 255, mean, std);
    for (int c = 0; c < 3; c++)
        for (int u = 0; u < 256; u++) {
            double exact = (u / 255.0 - (double)mean[c]) / (double)std[c];
            assert_true(fabs(t.value[c][u] - exact) < 4e-7);
        }
}

static void test_patch_order(void **state)
{
    (void)state;
    static const int sizes[][3] = {{14, 28, 56}, {1, 3, 2}, {5, 15, 10}, {16, 16, 16}}; /* patch, width, height */
    static const ink_dtype dtypes[] = {INK_F32, INK_BF16, INK_F16};
    static const float mean[3] = {0.5f, 0.25f, 0.125f}, std[3] = {0.5f, 0.3f, 0.7f};
    pixel_table t;
    pixel_table_make(&t, 1.0 / 255, mean, std);
    rng r = {.seed = 3};
    for (size_t i = 0; i < 4; i++) {
        int patch = sizes[i][0], w = sizes[i][1], h = sizes[i][2], n = 3 * w * h;
        image img;
        assert_int_equal(image_alloc(&img, w, h), INK_OK);
        for (int j = 0; j < n; j++)
            img.pixels[j] = (uint8_t)rng_u64(&r);
        for (int d = 0; d < 3; d++) {
            size_t bytes = (size_t)n * ink_dtype_size(dtypes[d]);
            void *patches = malloc(bytes);
            assert_int_equal(image_patchify(&img, patch, &t, dtypes[d], patches, bytes - 1), INK_INVALID_ARGUMENT);
            memset(patches, 0xff, bytes);
            assert_int_equal(image_patchify(&img, patch, &t, dtypes[d], patches, bytes), INK_OK);
            int64_t at = 0;
            for (int p = 0; p < w / patch * (h / patch); p++)
                for (int c = 0; c < 3; c++)
                    for (int y = 0; y < patch; y++)
                        for (int x = 0; x < patch; x++, at++) {
                            int X = p % (w / patch) * patch + x, Y = p / (w / patch) * patch + y;
                            float v = t.value[c][img.pixels[3 * (Y * w + X) + c]], want = v;
                            if (dtypes[d] == INK_BF16)
                                want = bf16_to_f32(f32_to_bf16(v));
                            if (dtypes[d] == INK_F16)
                                want = f16_to_f32(f32_to_f16(v));
                            assert_true(load_f32(patches, dtypes[d], at) == want);
                        }
            free(patches);
        }
        image_free(&img);
    }
}

static void test_patch_arguments(void **state)
{
    (void)state;
    image img;
    pixel_table t = {0};
    static float room[3 * 28 * 29];
    assert_int_equal(image_alloc(&img, 28, 29), INK_OK);
    memset(img.pixels, 0, 3 * 28 * 29);
    assert_int_equal(image_patchify(&img, 14, &t, INK_F32, room, sizeof room), INK_INVALID_ARGUMENT);
    assert_int_equal(image_patchify(&img, 0, &t, INK_F32, room, sizeof room), INK_INVALID_ARGUMENT);
    img.height = 28;
    assert_int_equal(image_patchify(&img, 14, &t, INK_U8, room, sizeof room), INK_INVALID_ARGUMENT);
    assert_non_null(strstr(ink_last_error(), "patches of type"));
    assert_int_equal(image_patchify(&img, 14, &t, INK_F32, room, sizeof room), INK_OK);
    image_free(&img);
}

static void test_processor_arguments(void **state)
{
    (void)state;
    image_grid g;
    for (int i = 0; i < 9; i++) {
        image_processor p = IMAGE_PROCESSOR_DEFAULT;
        assert_int_equal(image_processor_check(&p), INK_OK);
        switch (i) {
        case 0: p.patch_size = 0; break;
        case 1: p.merge_size = 17; break;
        case 2: p.min_pixels = p.max_pixels + 1; break;
        case 3: p.max_pixels = 0, p.min_pixels = 0; break;
        case 4: p.std[1] = 0; break;
        case 5: p.mean[2] = NAN; break;
        case 6: p.rescale_factor = INFINITY; break;
        case 7: p.min_pixels = -1; break;
        default: p.max_pixels = (int64_t)1 << 31; break;
        }
        assert_int_equal(image_processor_grid(&p, 100, 100, &g), INK_INVALID_ARGUMENT);
    }
    image_processor p = IMAGE_PROCESSOR_DEFAULT;
    assert_int_equal(image_processor_grid(&p, 1000, 4, &g), INK_INVALID_ARGUMENT);
    assert_int_equal(image_processor_grid(&p, 3000, 2000, &g), INK_OK);
    assert_true(g.width == 1204 && g.height == 812 && g.thw[0] == 1 && g.thw[1] == 58 && g.thw[2] == 86);
    assert_true(g.patches == 58 * 86 && g.tokens == 29 * 43);
    assert_int_equal(image_grid_bytes(&p, &g, INK_BF16), (size_t)(58 * 86) * 1176);
}

/* ---- the mini model's golden pixel values ----
 * A safetensors file is an 8-byte little-endian header length, a JSON header, then data; here it is enough to find
 * "pixel_values" and its first "data_offsets". */
static float *golden_pixels(const char *path, uint8_t **file, size_t *count)
{
    size_t size;
    *file = read_fixture(path, &size);
    assert_non_null(*file);
    uint64_t header = 0;
    memcpy(&header, *file, 8);
    assert_true(size > 8 && header < size - 8);
    char *json = calloc(header + 1, 1);
    memcpy(json, *file + 8, header);
    char *entry = strstr(json, "\"pixel_values\""), *offsets = entry ? strstr(entry, "\"data_offsets\": [") : NULL;
    assert_non_null(offsets);
    unsigned long long begin, end;
    assert_int_equal(sscanf(offsets, "\"data_offsets\": [%llu,%llu]", &begin, &end), 2);
    free(json);
    assert_true(begin <= end && end <= size - 8 - header && (begin + header) % 4 == 0);
    *count = (size_t)(end - begin) / 4;
    return (float *)(void *)(*file + 8 + header + begin);
}

static int ulps_apart(float a, float b)
{
    int32_t i = (int32_t)f32_bits(a), j = (int32_t)f32_bits(b);
    return (i ^ j) < 0 ? (a == b ? 0 : 1 << 30) : abs(i - j);
}

static void test_golden(void **state)
{
    (void)state;
    image_processor p = IMAGE_PROCESSOR_DEFAULT;
    p.min_pixels = 3136; /* models/mini/preprocessor_config.json */
    p.max_pixels = 470400;
    static const char *const names[] = {"01", "05", "10"};
    for (size_t i = 0; i < 3; i++) {
        char path[1024];
        image img;
        snprintf(path, sizeof path, INK_SOURCE_DIR "/models/mini/golden/%s.png", names[i]);
        assert_int_equal(image_load(path, NULL, &img), INK_OK);
        image_grid g;
        assert_int_equal(image_processor_grid(&p, img.width, img.height, &g), INK_OK);
        size_t bytes = image_grid_bytes(&p, &g, INK_F32), count;
        float *patches = malloc(bytes);
        assert_int_equal(image_processor_run(&p, &img, &g, INK_F32, patches, bytes, 0), INK_OK);
        uint8_t *file;
        snprintf(path, sizeof path, INK_SOURCE_DIR "/models/mini/golden/%s.fp32.safetensors", names[i]);
        const float *want = golden_pixels(path, &file, &count);
        assert_int_equal(count * 4, bytes);
        size_t different = 0;
        for (size_t j = 0; j < count; j++) {
            int ulps = ulps_apart(patches[j], want[j]);
            different += ulps != 0;
            if (ulps > 1)
                fail_msg("%s: value %zu is %.9g, recorded %.9g", names[i], j, (double)patches[j], (double)want[j]);
        }
        print_message("%s: %dx%d, %zu of %zu values differ by one ulp\n", names[i], g.width, g.height, different, count);
        free(file);
        free(patches);
        image_free(&img);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pixel_formats),       cmocka_unit_test(test_pixel_arguments),
        cmocka_unit_test(test_orientation),         cmocka_unit_test(test_table),
        cmocka_unit_test(test_patch_order),         cmocka_unit_test(test_patch_arguments),
        cmocka_unit_test(test_processor_arguments), cmocka_unit_test(test_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
