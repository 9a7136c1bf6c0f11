#include "image/exif.h"

#include <stdbool.h>
#include <string.h>

static uint32_t get(const uint8_t *p, int bytes, bool big_endian)
{
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint32_t)p[i] << 8 * (big_endian ? bytes - 1 - i : i);
    return v;
}

int exif_orientation(const uint8_t *exif, size_t size)
{
    enum { ENTRY = 12, TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3 };
    if (size >= 6 && !memcmp(exif, "Exif\0\0", 6)) {
        exif += 6;
        size -= 6;
    }
    if (size < 8)
        return 1;
    bool big = exif[0] == 'M';
    if (memcmp(exif, big ? "MM\0*" : "II*\0", 4) != 0)
        return 1;
    size_t at = get(exif + 4, 4, big);
    if (at > size - 2)
        return 1;
    size_t entries = get(exif + at, 2, big);
    at += 2;
    for (size_t i = 0; i < entries && size - at >= ENTRY; i++, at += ENTRY) {
        const uint8_t *e = exif + at;
        if (get(e, 2, big) != TAG_ORIENTATION)
            continue;
        uint32_t value = get(e + 8, 2, big);
        bool sound = get(e + 2, 2, big) == TYPE_SHORT && get(e + 4, 4, big) == 1 && value >= 1 && value <= 8;
        return sound ? (int)value : 1;
    }
    return 1;
}
