/* jpeg.c - JPEG through libjpeg(-turbo). Errors come back by longjmp; warnings that mean missing or wrong pixels are
 * errors here. */
#include "core/memory.h"
#include "image/decoders.h"
#include "image/exif.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

typedef struct jpeg_reader {
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    const image_limits *limits;
    image *out;
    uint8_t *row; /* of a CMYK image */
    int max_scans;
    bool hit_end; /* libjpeg asked for more than the file has and was given an end marker */
    ink_status status;
} jpeg_reader;

static void escape(jpeg_reader *r, ink_status s)
{
    r->status = s;
    longjmp(r->escape, 1);
}

static void on_error(j_common_ptr c)
{
    jpeg_reader *r = c->client_data;
    char text[JMSG_LENGTH_MAX];
    c->err->format_message(c, text);
    switch (c->err->msg_code) {
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL: escape(r, failure(INK_UNIMPLEMENTED, "JPEG: %s: convert to PNG", text)); break;
    case JERR_IMAGE_TOO_BIG: escape(r, failure(INK_RESOURCE_EXHAUSTED, "JPEG: %s", text)); break;
    case JERR_OUT_OF_MEMORY:
    case JERR_NO_BACKING_STORE:
        escape(r, failure(INK_RESOURCE_EXHAUSTED, "JPEG: decoding needs more memory than its size allows (%s)", text));
        break;
    default: escape(r, failure(INK_BAD_DATA, r->hit_end ? "JPEG ends early or is damaged: %s" : "damaged JPEG: %s", text));
    }
}

static void on_message(j_common_ptr c, int level)
{
    jpeg_reader *r = c->client_data;
    if (level >= 0) /* a trace message */
        return;
    c->err->num_warnings++;
    switch (c->err->msg_code) {
    case JWRN_JPEG_EOF: r->hit_end = true; break;
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC: on_error(c); break;
    default: break; /* odd but harmless */
    }
}

static void on_output(j_common_ptr c) { (void)c; }

/* A few bytes can announce any number of passes over a large image; honest ones have about ten. */
static void on_progress(j_common_ptr c)
{
    jpeg_reader *r = c->client_data;
    if (r->d.input_scan_number > r->max_scans)
        escape(r, failure(INK_BAD_DATA, "JPEG has more than %d scans", r->max_scans));
}

static void read_header(jpeg_reader *r, const uint8_t *data, size_t size)
{
    struct jpeg_decompress_struct *d = &r->d;
    jpeg_create_decompress(d);
    jpeg_mem_src(d, data, (unsigned long)size);
    jpeg_save_markers(d, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(d, TRUE);
    ink_status s = image_check_size(r->limits, "JPEG image", d->image_width, d->image_height);
    if (s != INK_OK)
        escape(r, s);
    int64_t pixels = (int64_t)d->image_width * d->image_height, scans = 20 * r->limits->max_pixels / pixels;
    r->max_scans = scans > 100 ? 100 : (int)scans;
    /* Coefficients of all blocks (2 bytes, up to 4 components, sides padded to whole MCUs) and a margin. */
    int64_t padded = ((int64_t)d->image_width + 64) * ((int64_t)d->image_height + 64);
    d->mem->max_memory_to_use = (long)(padded * 10 + (16 << 20));
    d->progress = &r->progress;
}

static int find_orientation(const jpeg_reader *r)
{
    for (jpeg_saved_marker_ptr m = r->d.marker_list; m; m = m->next)
        if (m->data_length >= 6 && !memcmp(m->data, "Exif\0\0", 6))
            return exif_orientation(m->data, m->data_length);
    return 1;
}

static void cmyk_row_to_rgb(const uint8_t *cmyk, size_t n, bool inverted, uint8_t *rgb)
{
    const unsigned flip = inverted ? 0 : 255; /* to light: 255 = no ink */
    for (size_t i = 0; i < n; i++) {
        unsigned k = cmyk[4 * i + 3] ^ flip;
        for (int c = 0; c < 3; c++)
            rgb[3 * i + c] = (uint8_t)(((cmyk[4 * i + c] ^ flip) * k + 127) / 255);
    }
}

static void read_pixels(jpeg_reader *r)
{
    struct jpeg_decompress_struct *d = &r->d;
    bool ink = d->jpeg_color_space == JCS_CMYK || d->jpeg_color_space == JCS_YCCK;
    if (d->num_components == 2 || (d->num_components > 3 && !ink))
        escape(r, failure(INK_UNIMPLEMENTED, "JPEG with %d colour components: convert to PNG", d->num_components));
    d->out_color_space = ink ? JCS_CMYK : JCS_RGB;
    ink_status s = image_alloc(r->out, (int)d->image_width, (int)d->image_height);
    if (s == INK_OK && ink && !(r->row = alloc_array(d->image_width, 4)))
        s = INK_RESOURCE_EXHAUSTED;
    if (s != INK_OK)
        escape(r, s);
    jpeg_start_decompress(d);
    while (d->output_scanline < d->output_height) {
        uint8_t *rgb = r->out->pixels + 3 * (size_t)d->output_width * d->output_scanline;
        JSAMPROW rows[1] = {ink ? r->row : rgb};
        if (jpeg_read_scanlines(d, rows, 1) == 1 && ink)
            cmyk_row_to_rgb(r->row, d->output_width, d->saw_Adobe_marker, rgb);
    }
    /* The Huffman decoder of a single scan notices when data is missing (JWRN_HIT_MARKER above). Of several scans some
     * may be missing altogether, and the arithmetic decoder reads zeros past the end. */
    if (r->hit_end && (jpeg_has_multiple_scans(d) || d->arith_code))
        escape(r, failure(INK_BAD_DATA, "JPEG ends early"));
}

static ink_status guarded(jpeg_reader *r, const uint8_t *data, size_t size)
{
    if (setjmp(r->escape))
        return r->status;
    read_header(r, data, size);
    read_pixels(r);
    return INK_OK;
}

ink_status decode_jpeg(const uint8_t *data, size_t size, const image_limits *limits, image *out)
{
    jpeg_reader r = {.limits = limits, .out = out};
    r.d.err = jpeg_std_error(&r.errors);
    r.d.client_data = &r; /* kept by jpeg_create_decompress */
    r.errors.error_exit = on_error;
    r.errors.emit_message = on_message;
    r.errors.output_message = on_output;
    r.progress.progress_monitor = on_progress;
    ink_status s = guarded(&r, data, size);
    int orientation = s == INK_OK ? find_orientation(&r) : 1;
    jpeg_destroy_decompress(&r.d);
    free(r.row);
    return s == INK_OK ? image_apply_orientation(out, orientation) : s;
}
