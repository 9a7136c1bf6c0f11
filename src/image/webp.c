/* webp.c - still WebP images through libwebp. */
#include "image/decoders.h"
#include "image/exif.h"

#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>

static uint32_t little_endian(const uint8_t *p) { return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24; }

/* Walks the RIFF chunks (name, size, content padded to an even length) behind the 12-byte file header. */
static int find_orientation(const uint8_t *data, size_t size)
{
    for (size_t at = 12; at <= size && size - at >= 8;) {
        size_t length = little_endian(data + at + 4), left = size - at - 8;
        if (length > left)
            return 1;
        if (!memcmp(data + at, "EXIF", 4))
            return exif_orientation(data + at + 8, length);
        if (length == left)
            return 1;
        at += 8 + length + (length & 1);
    }
    return 1;
}

static ink_status webp_failure(VP8StatusCode code)
{
    switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY: return failure(INK_RESOURCE_EXHAUSTED, "out of memory for a WebP image");
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED: return failure(INK_BAD_DATA, "WebP ends early");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return failure(INK_UNIMPLEMENTED, "WebP with an unsupported feature: convert to PNG");
    default: return failure(INK_BAD_DATA, "damaged WebP");
    }
}

/* Decodes into `to`, channels (3 or 4) bytes per pixel. */
static ink_status read_pixels(const uint8_t *data, size_t size, int channels, const image *dims, uint8_t *to)
{
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return failure(INK_UNAVAILABLE, "libwebp is of another version than its headers");
    config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = to;
    config.output.u.RGBA.stride = dims->width * channels;
    config.output.u.RGBA.size = (size_t)dims->width * (size_t)dims->height * (size_t)channels;
    VP8StatusCode code = WebPDecode(data, size, &config);
    WebPFreeDecBuffer(&config.output);
    return code == VP8_STATUS_OK ? INK_OK : webp_failure(code);
}

ink_status decode_webp(const uint8_t *data, size_t size, const image_limits *limits, image *out)
{
    WebPBitstreamFeatures f;
    VP8StatusCode code = WebPGetFeatures(data, size, &f);
    if (code != VP8_STATUS_OK)
        return webp_failure(code);
    TRY(image_check_size(limits, "WebP image", (uint64_t)f.width, (uint64_t)f.height));
    if (f.has_animation)
        return failure(INK_UNIMPLEMENTED, "animated WebP images are not supported: save one frame as PNG");
    TRY(image_alloc(out, f.width, f.height));
    if (!f.has_alpha) {
        TRY(read_pixels(data, size, 3, out, out->pixels));
    } else {
        size_t pixels = (size_t)f.width * (size_t)f.height;
        uint8_t *rgba = malloc(4 * pixels);
        if (!rgba)
            return failure(INK_RESOURCE_EXHAUSTED, "out of memory for a WebP image of %dx%d pixels", f.width, f.height);
        ink_status s = read_pixels(data, size, 4, out, rgba);
        if (s == INK_OK)
            pixels_to_rgb(rgba, 4, pixels, out->pixels);
        free(rgba);
        TRY(s);
    }
    return image_apply_orientation(out, find_orientation(data, size));
}
