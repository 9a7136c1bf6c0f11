/* processor.h - the model's image processor: any picture to the patches and grid the vision tower takes.
 *
 *   image_grid g;
 *   TRY(image_processor_grid(&p, img.width, img.height, &g));
 *   void *patches = alloc_aligned(image_grid_bytes(&p, &g, INK_BF16));
 *   TRY(image_processor_run(&p, &img, &g, INK_BF16, patches, image_grid_bytes(&p, &g, INK_BF16), threads)); */
#ifndef IMAGE_PROCESSOR_H
#define IMAGE_PROCESSOR_H
#include "image/image.h"

/* The fields of preprocessor_config.json. */
typedef struct image_processor {
    int64_t min_pixels, max_pixels; /* of the resized image */
    int patch_size, merge_size;
    float mean[3], std[3];
    double rescale_factor;
} image_processor;

/* The values of the published 1.5 and 1.6 models. */
#define IMAGE_PROCESSOR_DEFAULT \
    ((image_processor){112896, 1003520, 14, 2, {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}, 1.0 / 255.0})

/* INK_INVALID_ARGUMENT when a field cannot be right (sizes outside 1..256, limits out of order, a deviation of 0, a value
 * that is not finite). */
ink_status image_processor_check(const image_processor *p);

/* Puts a caller's limits (0: none) in place of *min and *max. The one that was not given follows the one that was, should
 * they come out of order; INK_INVALID_ARGUMENT when both were given so. */
ink_status image_processor_limit(int64_t *min, int64_t *max, int64_t given_min, int64_t given_max);

typedef struct image_grid {
    int thw[3];        /* grid_thw: 1, rows of patches, columns of patches */
    int width, height; /* of the resized image, in pixels */
    int64_t patches;   /* rows * columns */
    int64_t tokens;    /* patches / merge_size^2: image tokens in the prompt */
} image_grid;

/* Target of an image of width x height; smart_resize.h has the rule and its errors. */
ink_status image_processor_grid(const image_processor *p, int width, int height, image_grid *g);

/* Bytes of an image's patches [patches, 3 * patch_size^2]. */
size_t image_grid_bytes(const image_processor *p, const image_grid *g, ink_dtype dtype);

/* Resizes (bicubic), normalises and writes the patches; `g` comes from image_processor_grid for this image's size.
 * dtype: INK_F32, INK_BF16 or INK_F16. threads: 0 for the default; the result does not depend on it. */
ink_status image_processor_run(const image_processor *p, const image *img, const image_grid *g, ink_dtype dtype,
                               void *patches, size_t bytes, int threads);
#endif
