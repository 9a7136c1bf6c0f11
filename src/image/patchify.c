#include "image/patchify.h"

#include "core/dtype.h"
#include "core/memory.h"

void pixel_table_make(pixel_table *t, double rescale, const float mean[3], const float std[3])
{
    for (int c = 0; c < 3; c++)
        for (int u = 0; u < 256; u++)
            t->value[c][u] = ((float)(u * rescale) - mean[c]) / std[c];
}

/* One row of pixels goes to one row of every patch it crosses. The three copies differ in the type of an element. */
#define SPREAD(name, type)                                                                      \
    static void name(const image *img, size_t patch, type table[3][256], type *out)             \
    {                                                                                           \
        const size_t columns = (size_t)img->width / patch, area = patch * patch;                \
        const uint8_t *p = img->pixels;                                                         \
        for (size_t y = 0; y < (size_t)img->height; y++)                                        \
            for (size_t column = 0; column < columns; column++) {                               \
                type *to = out + 3 * area * (y / patch * columns + column) + y % patch * patch; \
                for (size_t x = 0; x < patch; x++, p += 3)                                      \
                    for (size_t c = 0; c < 3; c++)                                              \
                        to[c * area + x] = table[c][p[c]];                                      \
            }                                                                                   \
    }
SPREAD(spread_f32, float)
SPREAD(spread_16, uint16_t)

ink_status image_patchify(const image *img, int patch, const pixel_table *t, ink_dtype dtype, void *patches, size_t bytes)
{
    if (patch < 1 || img->width < 1 || img->height < 1 || img->width % patch || img->height % patch)
        return failure(INK_INVALID_ARGUMENT, "image of %dx%d pixels: sides must be multiples of the patch size %d",
                       img->width, img->height, patch);
    if (dtype != INK_F32 && dtype != INK_BF16 && dtype != INK_F16)
        return failure(INK_INVALID_ARGUMENT, "patches of type %s: expected f32, bf16 or f16", ink_dtype_name(dtype));
    size_t need;
    if (!mul_size((size_t)img->width * (size_t)img->height * 3, ink_dtype_size(dtype), &need) || need > bytes)
        return failure(INK_INVALID_ARGUMENT, "patches of a %dx%d image need %zu bytes, the buffer has %zu", img->width,
                       img->height, need, bytes);
    pixel_table f32 = *t;
    uint16_t narrow[3][256];
    for (int c = 0; c < 3; c++)
        for (int u = 0; u < 256; u++)
            narrow[c][u] = dtype == INK_F16 ? f32_to_f16(t->value[c][u]) : f32_to_bf16(t->value[c][u]);
    if (dtype == INK_F32)
        spread_f32(img, (size_t)patch, f32.value, patches);
    else
        spread_16(img, (size_t)patch, narrow, patches);
    return INK_OK;
}
