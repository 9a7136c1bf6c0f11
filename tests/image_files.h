/* image_files.h - what the image tests share: reading fixtures and PPM files. */
#ifndef TESTS_IMAGE_FILES_H
#define TESTS_IMAGE_FILES_H
#include "image/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMAGE_DIR INK_SOURCE_DIR "/tests/data/image/"

/* Whole file (of tests/data/image unless the name is absolute), or NULL. Free with free(). */
static inline uint8_t *read_fixture(const char *name, size_t *size)
{
    char path[2048];
    snprintf(path, sizeof path, "%s%s", name[0] == '/' ? "" : IMAGE_DIR, name);
    *size = 0;
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    rewind(f);
    uint8_t *p = malloc((size_t)n + 1);
    *size = fread(p, 1, (size_t)n, f);
    fclose(f);
    return p;
}

/* A binary PPM of 8 bits without comments. */
static inline bool read_ppm(const char *name, image *img)
{
    size_t size;
    uint8_t *p = read_fixture(name, &size);
    int w, h, header = 0;
    bool good = p && size && (p[size] = 0, sscanf((char *)p, "P6 %d %d 255%n", &w, &h, &header) == 2) && header &&
                image_alloc(img, w, h) == INK_OK && size == (size_t)header + 1 + 3 * (size_t)w * (size_t)h;
    if (good)
        memcpy(img->pixels, p + header + 1, 3 * (size_t)w * (size_t)h);
    free(p);
    return good;
}

/* Largest difference of a byte; 256 when the sizes differ. */
static inline int image_difference(const image *a, const image *b)
{
    if (a->width != b->width || a->height != b->height)
        return 256;
    int worst = 0;
    for (size_t i = 0; i < 3 * (size_t)a->width * (size_t)a->height; i++) {
        int d = abs(a->pixels[i] - b->pixels[i]);
        worst = d > worst ? d : worst;
    }
    return worst;
}
#endif
