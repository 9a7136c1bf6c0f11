/* decoders.h - one function per file type, for decode.c. Each gets the whole file, checks its header against the limits
 * before allocating, and returns an upright RGB image; on failure it may leave *out for the caller to free. */
#ifndef IMAGE_DECODERS_H
#define IMAGE_DECODERS_H
#include "image/image.h"

ink_status decode_jpeg(const uint8_t *data, size_t size, const image_limits *limits, image *out);
ink_status decode_png(const uint8_t *data, size_t size, const image_limits *limits, image *out);
ink_status decode_webp(const uint8_t *data, size_t size, const image_limits *limits, image *out);
ink_status decode_tiff(const uint8_t *data, size_t size, const image_limits *limits, image *out);
#endif
