#include "image/sniff.h"

#include <stdbool.h>
#include <string.h>

typedef struct signature {
    size_t at, length;
    const char *bytes;
    image_type type;
    const char *name;
} signature;

#define SIGNATURE(at, bytes, type, name)         \
    {                                            \
        at, sizeof(bytes) - 1, bytes, type, name \
    }

/* The first row that matches wins. ISO media files ("ftyp") are told apart by their major brand. */
static const signature signatures[] = {
    SIGNATURE(0, "\xff\xd8\xff", IMAGE_JPEG, "JPEG"),
    SIGNATURE(0, "\x89PNG\r\n\x1a\n", IMAGE_PNG, "PNG"),
    SIGNATURE(8, "WEBPVP8", IMAGE_WEBP, "WebP"),
    SIGNATURE(0, "II*\0", IMAGE_TIFF, "TIFF"),
    SIGNATURE(0, "MM\0*", IMAGE_TIFF, "TIFF"),
    SIGNATURE(0, "II+\0\x08\0", IMAGE_TIFF, "TIFF"),
    SIGNATURE(0, "MM\0+\0\x08", IMAGE_TIFF, "TIFF"),
    SIGNATURE(0, "GIF8", IMAGE_FOREIGN, "GIF images"),
    SIGNATURE(0, "%PDF-", IMAGE_FOREIGN, "PDF documents"),
    SIGNATURE(4, "ftypavi", IMAGE_FOREIGN, "AVIF images"),
    SIGNATURE(4, "ftyphei", IMAGE_FOREIGN, "HEIC images"),
    SIGNATURE(4, "ftyphev", IMAGE_FOREIGN, "HEIC images"),
    SIGNATURE(4, "ftypmif1", IMAGE_FOREIGN, "HEIF images"),
    SIGNATURE(4, "ftypmsf1", IMAGE_FOREIGN, "HEIF images"),
    SIGNATURE(4, "ftyp", IMAGE_FOREIGN, "ISO media files (video)"),
    SIGNATURE(0, "\0\0\0\x0cJXL \r\n", IMAGE_FOREIGN, "JPEG XL images"),
    SIGNATURE(0, "\xff\x0a", IMAGE_FOREIGN, "JPEG XL images"),
    SIGNATURE(0, "\0\0\0\x0cjP  \r\n", IMAGE_FOREIGN, "JPEG 2000 images"),
    SIGNATURE(0, "\xff\x4f\xff\x51", IMAGE_FOREIGN, "JPEG 2000 images"),
    SIGNATURE(0, "8BPS", IMAGE_FOREIGN, "Photoshop files"),
    SIGNATURE(0, "\0\0\1\0", IMAGE_FOREIGN, "icon files"),
    SIGNATURE(0, "AT&TFORM", IMAGE_FOREIGN, "DjVu documents"),
    SIGNATURE(0, "%!PS", IMAGE_FOREIGN, "PostScript files"),
    SIGNATURE(0, "PK\3\4", IMAGE_FOREIGN, "ZIP archives (office documents)"),
    SIGNATURE(0, "\x97JB2\r\n\x1a\n", IMAGE_FOREIGN, "JBIG2 images"),
};

/* BMP's two letters also begin ordinary words; its header size field (bytes 14 to 17) is one of a few small numbers. */
static bool is_bmp(const uint8_t *d, size_t n)
{
    return n >= 18 && d[0] == 'B' && d[1] == 'M' && d[14] >= 12 && d[14] <= 124 && !d[15] && !d[16] && !d[17];
}

static bool is_pnm(const uint8_t *d, size_t n)
{
    return n >= 3 && d[0] == 'P' && ((d[1] >= '1' && d[1] <= '7') || d[1] == 'F' || d[1] == 'f') &&
           strchr("\n\r\t ", d[2]) && d[2];
}

static bool contains(const uint8_t *d, size_t n, const char *word)
{
    size_t length = strlen(word);
    for (size_t i = 0; i + length <= n; i++)
        if (!memcmp(d + i, word, length))
            return true;
    return false;
}

/* No control characters but white space in the first bytes; UTF-16 text announces itself by a byte order mark. */
static bool is_text(const uint8_t *d, size_t n)
{
    if (n >= 2 && ((d[0] == 0xff && d[1] == 0xfe) || (d[0] == 0xfe && d[1] == 0xff)))
        return true;
    for (size_t i = 0; i < n; i++)
        if (d[i] == 0x7f || (d[i] < ' ' && !(d[i] >= '\t' && d[i] <= '\r')))
            return false;
    return n > 0;
}

image_type image_sniff(const uint8_t *data, size_t size, const char **name)
{
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
        const signature *s = &signatures[i];
        if (size >= s->at + s->length && !memcmp(data + s->at, s->bytes, s->length)) {
            *name = s->name;
            return s->type;
        }
    }
    size_t head = size < 1024 ? size : 1024;
    *name = is_bmp(data, size)              ? "BMP images"
            : is_pnm(data, size)            ? "PNM images"
            : contains(data, head, "%PDF-") ? "PDF documents"
            : !is_text(data, head)          ? NULL
            : contains(data, head, "<svg")  ? "SVG drawings"
            : contains(data, head, "<html") ? "HTML pages"
                                            : "text files";
    return *name ? IMAGE_FOREIGN : IMAGE_UNKNOWN;
}
