#include "image/image.h"

#include "core/memory.h"

#include <stdlib.h>
#include <string.h>

ink_status image_alloc(image *img, int width, int height)
{
    *img = (image){0};
    if (width < 1 || height < 1)
        return failure(INK_INVALID_ARGUMENT, "image size %dx%d: both sides must be at least 1", width, height);
    size_t bytes;
    uint8_t *p = mul_size((size_t)width * (size_t)height, 3, &bytes) ? malloc(bytes) : NULL;
    if (!p)
        return failure(INK_RESOURCE_EXHAUSTED, "out of memory for an image of %dx%d pixels", width, height);
    *img = (image){.width = width, .height = height, .pixels = p};
    return INK_OK;
}

void image_free(image *img)
{
    free(img->pixels);
    *img = (image){0};
}

ink_status image_check_size(const image_limits *limits, const char *what, uint64_t width, uint64_t height)
{
    const image_limits l = limits ? *limits : IMAGE_LIMITS_DEFAULT;
    unsigned long long w = width, h = height;
    if (!w || !h)
        return failure(INK_BAD_DATA, "%s of %llux%llu pixels is empty", what, w, h);
    if (l.max_side < 1 || l.max_pixels < 1)
        return failure(INK_INVALID_ARGUMENT, "image limits: max_side and max_pixels must be positive");
    if (w > (uint64_t)l.max_side || h > (uint64_t)l.max_side)
        return failure(INK_RESOURCE_EXHAUSTED, "%s of %llux%llu pixels: a side is longer than the limit of %d", what, w, h,
                       l.max_side);
    if (w * h > (uint64_t)l.max_pixels)
        return failure(INK_RESOURCE_EXHAUSTED, "%s of %llux%llu pixels is larger than the limit of %lld pixels", what, w, h,
                       (long long)l.max_pixels);
    return INK_OK;
}

int pixel_format_channels(pixel_format f)
{
    static const int channels[PIXEL_FORMAT_COUNT] = {1, 2, 3, 4, 3, 4};
    return (unsigned)f < PIXEL_FORMAT_COUNT ? channels[f] : 0;
}

void pixels_to_rgb(const uint8_t *src, int channels, size_t n, uint8_t *dst)
{
    switch (channels) {
    case 1:
        for (size_t i = 0; i < n; i++)
            dst[3 * i] = dst[3 * i + 1] = dst[3 * i + 2] = src[i];
        break;
    case 2:
        for (size_t i = 0; i < n; i++)
            dst[3 * i] = dst[3 * i + 1] = dst[3 * i + 2] = over_white(src[2 * i], src[2 * i + 1]);
        break;
    case 3: memcpy(dst, src, 3 * n); break;
    default:
        for (size_t i = 0; i < n; i++)
            for (int c = 0; c < 3; c++)
                dst[3 * i + c] = over_white(src[4 * i + c], src[4 * i + 3]);
    }
}

ink_status image_from_pixels(const void *data, pixel_format format, int width, int height, size_t stride,
                             const image_limits *limits, image *out)
{
    *out = (image){0};
    int channels = pixel_format_channels(format);
    if (!channels)
        return failure(INK_INVALID_ARGUMENT, "pixel format %d does not exist", (int)format);
    if (!data || width < 1 || height < 1)
        return failure(INK_INVALID_ARGUMENT, "pixels %p of size %dx%d: a pointer and sides of at least 1 are needed", data,
                       width, height);
    TRY(image_check_size(limits, "image", (uint64_t)width, (uint64_t)height));
    size_t row = (size_t)width * (size_t)channels, last;
    if (!stride)
        stride = row;
    if (stride < row || !mul_size(stride, (size_t)height, &last))
        return failure(INK_INVALID_ARGUMENT, "row stride of %zu bytes: a row of %d pixels takes %zu", stride, width, row);
    TRY(image_alloc(out, width, height));
    for (int y = 0; y < height; y++)
        pixels_to_rgb((const uint8_t *)data + stride * (size_t)y, channels, (size_t)width,
                      out->pixels + 3 * (size_t)width * (size_t)y);
    if (format == PIXEL_BGR || format == PIXEL_BGRA)
        for (uint8_t *p = out->pixels, *end = p + 3 * (size_t)width * (size_t)height; p < end; p += 3) {
            uint8_t blue = p[0];
            p[0] = p[2];
            p[2] = blue;
        }
    return INK_OK;
}

static void reverse_pixels(uint8_t *p, size_t n)
{
    for (size_t i = 0, j = n; i + 1 < j; i++) {
        j--;
        for (int c = 0; c < 3; c++) {
            uint8_t t = p[3 * i + c];
            p[3 * i + c] = p[3 * j + c];
            p[3 * j + c] = t;
        }
    }
}

static void mirror(image *img)
{
    for (int y = 0; y < img->height; y++)
        reverse_pixels(img->pixels + 3 * (size_t)img->width * (size_t)y, (size_t)img->width);
}

/* Pixel (x, y) of the result is pixel (y, x) of the source. Square tiles keep both sides in the cache. */
static ink_status transpose(image *img)
{
    enum { TILE = 32 };
    image t;
    TRY(image_alloc(&t, img->height, img->width));
    const size_t w = (size_t)img->width, h = (size_t)img->height;
    for (size_t y0 = 0; y0 < h; y0 += TILE)
        for (size_t x0 = 0; x0 < w; x0 += TILE)
            for (size_t x = x0; x < w && x < x0 + TILE; x++)
                for (size_t y = y0; y < h && y < y0 + TILE; y++)
                    memcpy(t.pixels + 3 * (x * h + y), img->pixels + 3 * (y * w + x), 3);
    t.more_pages = img->more_pages;
    image_free(img);
    *img = t;
    return INK_OK;
}

ink_status image_apply_orientation(image *img, int orientation)
{
    if (orientation < 2 || orientation > 8)
        return INK_OK;
    if (orientation >= 5)
        TRY(transpose(img));
    /* What is left after the transposition: 6 needs a mirror, 8 a flip, 7 both. A flip is a half turn and a mirror. */
    bool turn = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
    bool mirrored = orientation == 2 || orientation == 4 || orientation == 6 || orientation == 8;
    if (turn) // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): transpose() has put new pixels there
        reverse_pixels(img->pixels, (size_t)img->width * (size_t)img->height);
    if (mirrored)
        mirror(img);
    return INK_OK;
}
