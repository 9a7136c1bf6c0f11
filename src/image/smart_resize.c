#include "image/smart_resize.h"

#include <limits.h>
#include <math.h>

/* Quotient of two integers below 2^53, rounded once; rint rounds halves to even in the default mode. */
static int64_t rounded_ratio(int64_t a, int64_t b) { return (int64_t)rint((double)a / (double)b); }

static int64_t at_least(int64_t least, int64_t v) { return v < least ? least : v; }

ink_status smart_resize(int width, int height, int factor, int64_t min_pixels, int64_t max_pixels, int *out_width,
                        int *out_height)
{
    if (width < 1 || height < 1 || factor < 1 || factor > 4096)
        return failure(INK_INVALID_ARGUMENT,
                       "image size %dx%d with factor %d: sides must be at least 1, the factor 1 to 4096", width, height,
                       factor);
    if (min_pixels < 0 || max_pixels < 1 || min_pixels > max_pixels || max_pixels > INT_MAX)
        return failure(INK_INVALID_ARGUMENT, "pixel limits %lld to %lld: expected 0 <= min_pixels <= max_pixels < 2^31",
                       (long long)min_pixels, (long long)max_pixels);
    const int64_t f = factor;
    int64_t h = height, w = width;
    if (h < f) {
        w = rounded_ratio(w * f, h);
        h = f;
    }
    if (w < f) {
        h = rounded_ratio(h * f, w);
        w = f;
    }
    const double ratio = h > w ? (double)h / (double)w : (double)w / (double)h;
    if (ratio > 200)
        return failure(INK_INVALID_ARGUMENT, "image of %dx%d pixels is too long and thin: its aspect ratio is over 200",
                       width, height);
    int64_t H = rounded_ratio(h, f) * f, W = rounded_ratio(w, f) * f;
    if (H * W > max_pixels) {
        const double beta = sqrt((double)(h * w) / (double)max_pixels);
        H = at_least(f, (int64_t)floor((double)h / beta / (double)f) * f);
        W = at_least(f, (int64_t)floor((double)w / beta / (double)f) * f);
    } else if (H * W < min_pixels) {
        const double beta = sqrt((double)min_pixels / (double)(h * w));
        H = (int64_t)ceil((double)h * beta / (double)f) * f;
        W = (int64_t)ceil((double)w * beta / (double)f) * f;
    }
    *out_width = (int)W;
    *out_height = (int)H;
    return INK_OK;
}
