/* tiff.c - the first page of a TIFF through libtiff's RGBA reader, band by band. Errors and warnings go to handlers of
 * this one file (libtiff 4.5), so no global handler is touched and nothing is printed. */
#include "core/memory.h"
#include "image/decoders.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tiffio.h>

typedef struct tiff_reader {
    const uint8_t *data;
    uint64_t size, at;
    bool reading_pixels; /* an error about a tag that is not used is none of ours, one about pixels is */
    bool damaged;
    char message[200]; /* of the first error, or of the first error about pixels */
} tiff_reader;

static tmsize_t on_read(thandle_t h, void *to, tmsize_t n)
{
    tiff_reader *r = h;
    uint64_t left = r->at < r->size ? r->size - r->at : 0, take = n < 0 ? 0 : (uint64_t)n < left ? (uint64_t)n : left;
    memcpy(to, r->data + (take ? r->at : 0), take);
    r->at += take;
    return (tmsize_t)take;
}

static tmsize_t on_write(thandle_t h, void *from, tmsize_t n)
{
    (void)h, (void)from, (void)n;
    return 0;
}

static toff_t on_seek(thandle_t h, toff_t offset, int whence)
{
    tiff_reader *r = h;
    r->at = whence == SEEK_CUR ? r->at + offset : whence == SEEK_END ? r->size + offset : offset;
    return r->at;
}

static int on_close(thandle_t h)
{
    (void)h;
    return 0;
}

static toff_t on_size(thandle_t h) { return ((tiff_reader *)h)->size; }

static void keep_message(tiff_reader *r, const char *fmt, va_list ap)
{
    if (!r->message[0] || (r->reading_pixels && !r->damaged))
        vsnprintf(r->message, sizeof r->message, fmt, ap);
    r->damaged |= r->reading_pixels;
}

static int on_error(TIFF *tif, void *user, const char *module, const char *fmt, va_list ap)
{
    (void)tif, (void)module;
    keep_message(user, fmt, ap);
    return 1;
}

/* The fax decoders only warn when data ends early, and leave the remaining rows as they were. */
static int on_warning(TIFF *tif, void *user, const char *module, const char *fmt, va_list ap)
{
    (void)tif, (void)module;
    tiff_reader *r = user;
    if (r->reading_pixels && strstr(fmt, "Premature EOF"))
        keep_message(r, fmt, ap);
    return 1;
}

static ink_status tiff_failure(const tiff_reader *r, const char *otherwise)
{
    return failure(INK_BAD_DATA, "damaged TIFF: %s", r->message[0] ? r->message : otherwise);
}

static TIFF *open_tiff(tiff_reader *r, const image_limits *limits)
{
    TIFFOpenOptions *o = TIFFOpenOptionsAlloc();
    if (!o)
        return NULL;
    int64_t most = limits->max_pixels < INT64_MAX / 16 ? 8 * limits->max_pixels + (16 << 20) : INT64_MAX / 2;
    TIFFOpenOptionsSetMaxSingleMemAlloc(o, (tmsize_t)most); /* a strip of 4 16-bit samples per pixel */
    TIFFOpenOptionsSetErrorHandlerExtR(o, on_error, r);
    TIFFOpenOptionsSetWarningHandlerExtR(o, on_warning, r);
    TIFF *tif = TIFFClientOpenExt("TIFF", "rm", r, on_read, on_write, on_seek, on_close, on_size, NULL, NULL, o);
    TIFFOpenOptionsFree(o);
    return tif;
}

/* Strips (or tiles) do not overlap in an honest file. A small lying one could otherwise have the same megabytes unpacked
 * once per row. */
static ink_status check_strips(TIFF *tif, const tiff_reader *r)
{
    uint64_t n = TIFFIsTiled(tif) ? TIFFNumberOfTiles(tif) : TIFFNumberOfStrips(tif), sum = 0;
    for (uint64_t i = 0; i < n && sum <= 4 * r->size + (1 << 20); i++) {
        uint64_t count = TIFFGetStrileByteCount(tif, (uint32_t)i);
        sum += count < r->size ? count : r->size;
    }
    if (sum > 4 * r->size + (1 << 20))
        return failure(INK_BAD_DATA, "damaged TIFF: its strips hold more bytes than the file");
    return INK_OK;
}

/* Rows decoded at a time: whole strips or rows of tiles, so that none is unpacked twice; small ones are grouped. */
static uint32_t band_rows(TIFF *tif, uint32_t height)
{
    uint32_t unit = 0;
    if (TIFFIsTiled(tif))
        TIFFGetField(tif, TIFFTAG_TILELENGTH, &unit);
    else
        TIFFGetFieldDefaulted(tif, TIFFTAG_ROWSPERSTRIP, &unit);
    if (unit == 0 || unit >= height)
        return height;
    uint64_t rows = unit < 64 ? (uint64_t)unit * ((63 + unit) / unit) : unit;
    return rows < height ? (uint32_t)rows : height;
}

/* The RGBA reader's pixels have their colour multiplied by alpha already, except grey with straight alpha; an extra
 * channel of no stated meaning is taken for alpha by it and ignored here. */
typedef enum alpha_kind { ALPHA_NONE, ALPHA_MULTIPLIED, ALPHA_STRAIGHT } alpha_kind;

static alpha_kind find_alpha(TIFF *tif, const TIFFRGBAImage *img)
{
    uint16_t extras = 0, *kinds = NULL;
    TIFFGetFieldDefaulted(tif, TIFFTAG_EXTRASAMPLES, &extras, &kinds);
    if (!img->alpha || !extras || kinds[0] == EXTRASAMPLE_UNSPECIFIED)
        return ALPHA_NONE;
    bool grey = img->photometric == PHOTOMETRIC_MINISBLACK || img->photometric == PHOTOMETRIC_MINISWHITE;
    return grey && kinds[0] == EXTRASAMPLE_UNASSALPHA ? ALPHA_STRAIGHT : ALPHA_MULTIPLIED;
}

static void abgr_to_rgb(const uint32_t *abgr, size_t n, alpha_kind alpha, uint8_t *rgb)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned a = TIFFGetA(abgr[i]), c[3] = {TIFFGetR(abgr[i]), TIFFGetG(abgr[i]), TIFFGetB(abgr[i])};
        for (int j = 0; j < 3; j++) {
            unsigned v = c[j];
            if (alpha == ALPHA_STRAIGHT)
                v = over_white(v, a);
            else if (alpha == ALPHA_MULTIPLIED)
                v = v + 255 - a < 255 ? v + 255 - a : 255;
            rgb[3 * i + j] = (uint8_t)v;
        }
    }
}

static ink_status read_bands(TIFF *tif, tiff_reader *r, TIFFRGBAImage *img, image *out)
{
    const uint32_t rows = band_rows(tif, img->height);
    const alpha_kind alpha = find_alpha(tif, img);
    TRY(image_alloc(out, (int)img->width, (int)img->height));
    uint32_t *raster = malloc((size_t)img->width * rows * sizeof *raster);
    if (!raster)
        return failure(INK_RESOURCE_EXHAUSTED, "out of memory for a TIFF of %ux%u pixels", img->width, img->height);
    ink_status s = INK_OK;
    img->req_orientation = img->orientation; /* rows as stored; turned later */
    for (uint32_t y = 0; y < img->height && s == INK_OK; y += rows) {
        uint32_t n = img->height - y < rows ? img->height - y : rows;
        img->row_offset = (int)y;
        if (!TIFFRGBAImageGet(img, raster, img->width, n) || r->damaged)
            s = tiff_failure(r, "pixels cannot be read");
        else
            abgr_to_rgb(raster, (size_t)img->width * n, alpha, out->pixels + 3 * (size_t)img->width * y);
    }
    free(raster);
    return s;
}

static ink_status read_page(TIFF *tif, tiff_reader *r, const image_limits *limits, image *out)
{
    uint32_t width = 0, height = 0;
    uint16_t samples = 1, bits = 1;
    TIFFGetField(tif, TIFFTAG_IMAGEWIDTH, &width);
    TIFFGetField(tif, TIFFTAG_IMAGELENGTH, &height);
    TIFFGetFieldDefaulted(tif, TIFFTAG_SAMPLESPERPIXEL, &samples);
    TIFFGetFieldDefaulted(tif, TIFFTAG_BITSPERSAMPLE, &bits);
    TRY(image_check_size(limits, "TIFF image", width, height));
    char why[1024] = "";
    if (samples > 8 || !TIFFRGBAImageOK(tif, why))
        return failure(INK_UNIMPLEMENTED, "TIFF with %u samples of %u bits is not supported (%s): convert to PNG", samples,
                       bits, why[0] ? why : "too many samples");
    TRY(check_strips(tif, r));
    TIFFRGBAImage img;
    if (!TIFFRGBAImageBegin(&img, tif, 1, why))
        return failure(INK_BAD_DATA, "damaged TIFF: %s", why);
    r->reading_pixels = true;
    ink_status s = read_bands(tif, r, &img, out);
    r->reading_pixels = false;
    int orientation = img.orientation;
    TIFFRGBAImageEnd(&img);
    TRY(s);
    out->more_pages = !TIFFLastDirectory(tif);
    return image_apply_orientation(out, orientation);
}

ink_status decode_tiff(const uint8_t *data, size_t size, const image_limits *limits, image *out)
{
    tiff_reader r = {.data = data, .size = size};
    TIFF *tif = open_tiff(&r, limits);
    if (!tif)
        return tiff_failure(&r, "it cannot be opened");
    ink_status s = read_page(tif, &r, limits, out);
    TIFFClose(tif);
    return s;
}
