/* resize.h - antialiased resampling, byte for byte what Pillow's Image.resize gives for 8-bit RGB (versions to 12.0; later
 * ones swap the two passes for some sizes, which rounds differently in between).
 *
 * Separable, columns first; either pass is left out when that side does not change. Per axis, with s = in / out,
 * F = max(s, 1) and a filter k of radius R: output i has its centre at c = (i + 0.5) s and the taps
 * x in [trunc(c - R F + 0.5), trunc(c + R F + 0.5)) clipped to the image, of weight k((x - c + 0.5) / F) divided by the
 * sum of the weights. The weights are rounded to 22 fractional bits (halves away from zero), the sum of products starts
 * at one half, and the result of each pass is clamped to 8 bits. Arithmetic up to the rounding of the weights is FP64. */
#ifndef IMAGE_RESIZE_H
#define IMAGE_RESIZE_H
#include "image/image.h"

typedef enum resize_filter {
    RESIZE_BICUBIC, /* cubic convolution with a = -1/2, radius 2 */
    RESIZE_LANCZOS, /* sinc(t) sinc(t / 3), radius 3 */
} resize_filter;

/* A new image of width x height; `src` is not touched. threads: 0 for the default. The result does not depend on it.
 * INK_INVALID_ARGUMENT for an empty size, INK_RESOURCE_EXHAUSTED when memory is short. */
ink_status image_resize(const image *src, int width, int height, resize_filter filter, int threads, image *out);
#endif
