/* exif.h - the one EXIF value that changes what a picture shows. */
#ifndef IMAGE_EXIF_H
#define IMAGE_EXIF_H
#include <stddef.h>
#include <stdint.h>

/* Orientation (tag 0x0112 of the first directory) of an EXIF block, which is a small TIFF file ("II*\0" or "MM\0*"
 * first; a leading "Exif\0\0" is skipped): 1 to 8, and 1 when the block is broken, lacks the tag or holds another value. */
int exif_orientation(const uint8_t *exif, size_t size);
#endif
