/* patchify.h - pixels to the normalised patches that the vision tower's patch embedding multiplies. */
#ifndef IMAGE_PATCHIFY_H
#define IMAGE_PATCHIFY_H
#include "image/image.h"

/* Value of each byte in each channel: float32(u * rescale), computed in FP64 and rounded once, minus the mean, divided by
 * the deviation, both in FP32; the order of the reference processor. */
typedef struct pixel_table {
    float value[3][256];
} pixel_table;

void pixel_table_make(pixel_table *t, double rescale, const float mean[3], const float std[3]);

/* patches [P, 3 * patch * patch] of `dtype` (INK_F32, INK_BF16, INK_F16: the FP32 value rounded to nearest even), with
 * P = (height / patch) (width / patch) in raster order and each patch's content in the order [channel][y][x].
 * `bytes` is the room at `patches`. INK_INVALID_ARGUMENT when a side is no multiple of `patch`, the room is short or the
 * dtype is another. */
ink_status image_patchify(const image *img, int patch, const pixel_table *t, ink_dtype dtype, void *patches, size_t bytes);
#endif
