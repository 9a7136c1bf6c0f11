#include "image/processor.h"

#include "image/patchify.h"
#include "image/resize.h"
#include "image/smart_resize.h"

#include <math.h>

ink_status image_processor_check(const image_processor *p)
{
    if (p->patch_size < 1 || p->patch_size > 256 || p->merge_size < 1 || p->merge_size > 16)
        return failure(INK_INVALID_ARGUMENT,
                       "image processor: patch_size %d must be 1 to 256, merge_size %d must be 1 to 16", p->patch_size,
                       p->merge_size);
    if (p->min_pixels < 0 || p->max_pixels < p->min_pixels || p->max_pixels < 1 || p->max_pixels > INT32_MAX)
        return failure(INK_INVALID_ARGUMENT,
                       "image processor: min_pixels %lld, max_pixels %lld: expected 0 <= min_pixels <= max_pixels < 2^31",
                       (long long)p->min_pixels, (long long)p->max_pixels);
    if (!isfinite(p->rescale_factor))
        return failure(INK_INVALID_ARGUMENT, "image processor: rescale_factor is not a finite number");
    for (int c = 0; c < 3; c++)
        if (!isfinite(p->mean[c]) || !isfinite(p->std[c]) || p->std[c] == 0)
            return failure(INK_INVALID_ARGUMENT,
                           "image processor: image_mean %g, image_std %g of channel %d cannot be used", (double)p->mean[c],
                           (double)p->std[c], c);
    return INK_OK;
}

ink_status image_processor_limit(int64_t *min, int64_t *max, int64_t given_min, int64_t given_max)
{
    if (given_min > 0 && given_max > 0 && given_min > given_max)
        return failure(INK_INVALID_ARGUMENT, "min_pixels %lld is larger than max_pixels %lld", (long long)given_min,
                       (long long)given_max);
    if (given_min > 0)
        *min = given_min;
    if (given_max > 0)
        *max = given_max;
    if (*min > *max && given_max > 0)
        *min = *max;
    else if (*min > *max)
        *max = *min;
    return INK_OK;
}

ink_status image_processor_grid(const image_processor *p, int width, int height, image_grid *g)
{
    TRY(image_processor_check(p));
    int w, h;
    TRY(smart_resize(width, height, p->patch_size * p->merge_size, p->min_pixels, p->max_pixels, &w, &h));
    int rows = h / p->patch_size, columns = w / p->patch_size;
    *g = (image_grid){.thw = {1, rows, columns}, .width = w, .height = h, .patches = (int64_t)rows * columns};
    g->tokens = g->patches / (p->merge_size * p->merge_size);
    return INK_OK;
}

size_t image_grid_bytes(const image_processor *p, const image_grid *g, ink_dtype dtype)
{
    return (size_t)g->patches * 3 * (size_t)p->patch_size * (size_t)p->patch_size * ink_dtype_size(dtype);
}

ink_status image_processor_run(const image_processor *p, const image *img, const image_grid *g, ink_dtype dtype,
                               void *patches, size_t bytes, int threads)
{
    TRY(image_processor_check(p));
    pixel_table table;
    pixel_table_make(&table, p->rescale_factor, p->mean, p->std);
    if (g->width == img->width && g->height == img->height)
        return image_patchify(img, p->patch_size, &table, dtype, patches, bytes);
    image resized;
    TRY(image_resize(img, g->width, g->height, RESIZE_BICUBIC, threads, &resized));
    ink_status s = image_patchify(&resized, p->patch_size, &table, dtype, patches, bytes);
    image_free(&resized);
    return s;
}
