/* smart_resize.h - the size an image is brought to: both sides multiples of one factor (patch times merge), about the
 * same aspect ratio, area between two limits. FP64 with halves rounded to even, step for step the reference's rule:
 *
 *   1. a height below f becomes f with the width scaled along; then the same for the width;
 *   2. an aspect ratio over 200 is refused;
 *   3. H = round(h / f) f, W = round(w / f) f;
 *   4. if H W > max: b = sqrt(h w / max), H = floor(h / b / f) f, W likewise, each at least f;
 *      if H W < min: b = sqrt(min / (h w)), H = ceil(h b / f) f, W likewise.
 *
 * Two consequences: a strip so long that a side would be floored to 0 keeps one factor and so may stay above max, and
 * step 4's ceilings may go above min by up to a row and a column. */
#ifndef IMAGE_SMART_RESIZE_H
#define IMAGE_SMART_RESIZE_H
#include "core/status.h"

/* INK_INVALID_ARGUMENT for a side or factor below 1, limits out of order, or an aspect ratio over 200. */
ink_status smart_resize(int width, int height, int factor, int64_t min_pixels, int64_t max_pixels, int *out_width,
                        int *out_height);
#endif
