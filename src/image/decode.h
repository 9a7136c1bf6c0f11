/* decode.h - picture files to RGB. What is decoded, and by what rule:
 *
 *   JPEG   grey, RGB, YCbCr, CMYK, YCCK; 8 bits; baseline, progressive and arithmetic. With an Adobe marker four-channel
 *          values are inverted ink (255 = none), without one they are ink (0 = none). Ink is turned into light by
 *          (255 - C)(255 - K) / 255.
 *   PNG    every colour type and depth, interlaced or not. 16 bits are scaled to 8 with rounding.
 *   WebP   lossy, lossless, alpha. An animation is refused.
 *   TIFF   the first page (image.more_pages says that others follow): whatever libtiff turns into RGBA, among it
 *          bilevel of either polarity (G3, G4), grey, palette, RGB, YCbCr, CMYK of 1 to 16 bits.
 *
 * The type is found from the content; a file name means nothing. Transparency is composited on white. An orientation
 * (EXIF in JPEG, PNG and WebP, the tag of TIFF) is applied; a broken one is ignored. ICC profiles and gamma are ignored.
 * A file that ends early or contradicts itself is INK_BAD_DATA; nothing is decoded in part. A JPEG of one scan that
 * lacks nothing but its end marker, and libtiff's or libpng's tolerances for harmless oddities, are not errors. In
 * arithmetic JPEG a lost middle before the end marker cannot be told from blank rows, which may take no data.
 *
 * Peak memory: 3 bytes per pixel of the result, and while decoding up to 4 more for an image with transparency or a TIFF
 * of one strip, 3 more for a quarter turn, 2 per coefficient for a progressive JPEG.
 *
 * Errors: INK_BAD_DATA damaged or no picture at all; INK_UNIMPLEMENTED a kind not decoded here, by name;
 * INK_RESOURCE_EXHAUSTED over the limits or out of memory; INK_NOT_FOUND, INK_IO from the file system. Nothing is
 * printed and no global state is touched. On failure *out is empty. */
#ifndef IMAGE_DECODE_H
#define IMAGE_DECODE_H
#include "image/image.h"

/* limits: NULL for the defaults. */
ink_status image_decode(const void *data, size_t size, const image_limits *limits, image *out);

/* From a file, or from standard input for "-". Messages begin with the name. */
ink_status image_load(const char *path, const image_limits *limits, image *out);
#endif
