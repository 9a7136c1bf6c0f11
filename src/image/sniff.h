/* sniff.h - what a file is, from its first bytes and never from its name. */
#ifndef IMAGE_SNIFF_H
#define IMAGE_SNIFF_H
#include <stddef.h>
#include <stdint.h>

typedef enum image_type { IMAGE_UNKNOWN, IMAGE_JPEG, IMAGE_PNG, IMAGE_WEBP, IMAGE_TIFF, IMAGE_FOREIGN } image_type;

/* IMAGE_FOREIGN: something known that is not decoded here; *name then says what ("GIF images", "PDF documents").
 * For the decoded types *name is "JPEG", "PNG", "WebP", "TIFF"; for IMAGE_UNKNOWN it is NULL. */
image_type image_sniff(const uint8_t *data, size_t size, const char **name);
#endif
