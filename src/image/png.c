/* png.c - PNG through libpng. Errors come back by longjmp. */
#include "core/memory.h"
#include "image/decoders.h"
#include "image/exif.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

typedef struct png_reader {
    png_structp png;
    png_infop info;
    const uint8_t *data;
    size_t size, at;
    const image_limits *limits;
    image *out;
    uint8_t *rows; /* one row, or all of an interlaced image, before the alpha channel is gone */
    char message[200];
} png_reader;

static void on_error(png_structp png, png_const_charp text)
{
    png_reader *r = png_get_error_ptr(png);
    strncpy(r->message, text, sizeof r->message - 1);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text) { (void)png, (void)text; }

static void on_read(png_structp png, png_bytep to, size_t n)
{
    png_reader *r = png_get_io_ptr(png);
    if (n > r->size - r->at)
        png_error(png, "it ends early");
    memcpy(to, r->data + r->at, n);
    r->at += n;
}

/* The declared size is checked against the limits, and against what the file can hold: DEFLATE packs at most 1032 to 1. */
static ink_status check_header(const png_reader *r)
{
    uint32_t width = png_get_image_width(r->png, r->info), height = png_get_image_height(r->png, r->info);
    TRY(image_check_size(r->limits, "PNG image", width, height));
    if (png_get_rowbytes(r->png, r->info) * height / 1032 > r->size)
        return failure(INK_BAD_DATA, "PNG of %ux%u pixels cannot come from %zu bytes", width, height, r->size);
    return INK_OK;
}

static void ask_for_8_bit_rgb(png_reader *r)
{
    png_set_expand(r->png); /* palettes, 1, 2 and 4 bit grey, and tRNS to a full alpha channel */
    png_set_scale_16(r->png);
    png_set_gray_to_rgb(r->png);
    png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
}

static ink_status read_rows(png_reader *r)
{
    const size_t width = png_get_image_width(r->png, r->info), height = png_get_image_height(r->png, r->info);
    const int channels = png_get_channels(r->png, r->info);
    const bool interlaced = png_get_interlace_type(r->png, r->info) != PNG_INTERLACE_NONE, alpha = channels == 4;
    TRY(image_alloc(r->out, (int)width, (int)height));
    const size_t row_bytes = width * (size_t)channels;
    if (alpha && !(r->rows = alloc_array(interlaced ? height : 1, row_bytes)))
        return INK_RESOURCE_EXHAUSTED;
    const int passes = interlaced ? 7 : 1;
    for (int pass = 0; pass < passes; pass++)
        for (size_t y = 0; y < height; y++) {
            uint8_t *rgb = r->out->pixels + 3 * width * y;
            uint8_t *row = !alpha ? rgb : interlaced ? r->rows + row_bytes * y : r->rows;
            png_read_row(r->png, row, NULL);
            if (alpha && pass + 1 == passes)
                pixels_to_rgb(row, channels, width, rgb);
        }
    return INK_OK;
}

static int find_orientation(png_reader *r)
{
    png_bytep exif;
    png_uint_32 size;
    return png_get_eXIf_1(r->png, r->info, &size, &exif) ? exif_orientation(exif, size) : 1;
}

static ink_status guarded(png_reader *r, int *orientation)
{
    /* Chunks that change nothing here are not even unpacked: text and profiles may be compressed without bound. */
    static const uint8_t ignored[] =
        "bKGD\0cHRM\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0sBIT\0sCAL\0sPLT\0sRGB\0tEXt\0tIME\0zTXt";
    if (setjmp(png_jmpbuf(r->png)))
        return failure(INK_BAD_DATA, "damaged PNG: %s", r->message);
    png_set_read_fn(r->png, r, on_read);
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, ignored, sizeof ignored / 5);
    png_set_chunk_malloc_max(r->png, 8 << 20);
    png_set_user_limits(r->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* ours come with a clearer message */
    png_read_info(r->png, r->info);
    TRY(check_header(r));
    ask_for_8_bit_rgb(r);
    TRY(read_rows(r));
    png_read_end(r->png, r->info);
    *orientation = find_orientation(r);
    return INK_OK;
}

ink_status decode_png(const uint8_t *data, size_t size, const image_limits *limits, image *out)
{
    png_reader r = {.data = data, .size = size, .limits = limits, .out = out};
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning);
    r.info = r.png ? png_create_info_struct(r.png) : NULL;
    int orientation = 1;
    ink_status s = r.info ? guarded(&r, &orientation) : failure(INK_RESOURCE_EXHAUSTED, "out of memory for a PNG decoder");
    png_destroy_read_struct(&r.png, &r.info, NULL);
    free(r.rows);
    return s == INK_OK ? image_apply_orientation(out, orientation) : s;
}
