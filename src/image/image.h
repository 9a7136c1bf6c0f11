/* image.h - an 8-bit RGB picture in memory, its limits, and the ways to make one from raw pixels.
 *
 * Rows run from top to bottom, pixels from left to right, three bytes R, G, B per pixel, no padding: pixel (x, y) starts
 * at pixels[3 * (y * width + x)]. Whoever holds an image frees it with image_free. */
#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H
#include "core/status.h"

typedef struct image {
    int width, height; /* pixels; both positive once made */
    uint8_t *pixels;   /* [height][width][3] */
    bool more_pages;   /* the file holds further pages (TIFF) that were not read */
} image;

/* What a picture may cost. Checked from the file's header, before anything of its size is allocated. */
typedef struct image_limits {
    size_t max_file_bytes; /* of the encoded file */
    int max_side;          /* of width and of height */
    int64_t max_pixels;    /* of width * height */
} image_limits;

/* 256 MiB, 65,500 (the most libjpeg-turbo takes), 200 million pixels. A NULL limits pointer means these. */
#define IMAGE_LIMITS_DEFAULT ((image_limits){(size_t)256 << 20, 65500, 200000000})

/* Pixels of a new image are undefined until written. INK_INVALID_ARGUMENT for a side below 1, INK_RESOURCE_EXHAUSTED
 * when memory is short. On failure *img is empty and needs no image_free. */
ink_status image_alloc(image *img, int width, int height);
void image_free(image *img); /* also fine on an empty or already freed one */

/* INK_BAD_DATA for a side of 0, INK_RESOURCE_EXHAUSTED when a size goes beyond the limits. `what` names the data in the
 * message ("PNG image"). */
ink_status image_check_size(const image_limits *limits, const char *what, uint64_t width, uint64_t height);

/* ---- raw pixels ---- */
typedef enum pixel_format {
    PIXEL_GREY,
    PIXEL_GREY_ALPHA,
    PIXEL_RGB,
    PIXEL_RGBA,
    PIXEL_BGR,
    PIXEL_BGRA,
    PIXEL_FORMAT_COUNT
} pixel_format;

int pixel_format_channels(pixel_format f); /* bytes of one pixel; 0 for a value outside the enum */

/* A copy of raw pixels as RGB. Row y starts at data + y * stride; stride 0 means tightly packed rows, otherwise it is at
 * least a row's bytes, and bytes between rows are not read. RGB is taken as it is; the forms with (straight) alpha are
 * composited on white. INK_INVALID_ARGUMENT for a bad size, stride or format. */
ink_status image_from_pixels(const void *data, pixel_format format, int width, int height, size_t stride,
                             const image_limits *limits, image *out);

/* One channel of a straight-alpha pixel over white, rounded to nearest: (c a + 255 (255 - a)) / 255. */
static inline uint8_t over_white(unsigned c, unsigned a) { return (uint8_t)((c * a + 255 * (255 - a) + 127) / 255); }

/* n pixels of 1, 2 (grey, alpha), 3 or 4 (R, G, B, straight alpha) channels to RGB. */
void pixels_to_rgb(const uint8_t *src, int channels, size_t n, uint8_t *dst);

/* Makes upright an image stored under an EXIF/TIFF orientation: 1 as is, 2 mirrored, 3 turned 180, 4 flipped, 5
 * transposed, 6 to be turned 90 clockwise, 7 transverse, 8 to be turned 90 counter-clockwise. Other values: as is. */
ink_status image_apply_orientation(image *img, int orientation);
#endif
