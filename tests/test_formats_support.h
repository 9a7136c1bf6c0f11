/* test_formats_support.h - temporary directories and hand-made safetensors files for the tests of the file formats. */
#ifndef TEST_FORMATS_SUPPORT_H
#define TEST_FORMATS_SUPPORT_H
#include "core/memory.h"
#include "core/strbuf.h"
#include "formats/safetensors.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define DATA_DIR INK_SOURCE_DIR "/tests/data/formats/"
#define MINI_DIR INK_SOURCE_DIR "/models/mini"

#define assert_ok(expr)                                  \
    do {                                                 \
        if ((expr) != INK_OK)                            \
            fail_msg("%s: %s", #expr, ink_last_error()); \
    } while (0)

/* The call fails with `status` and a message that contains `text`. */
#define assert_fails(expr, status, text)                                                               \
    do {                                                                                               \
        int got_ = (int)(expr);                                                                        \
        if (got_ != (int)(status))                                                                     \
            fail_msg("%s: status %d (%s), expected %d", #expr, got_, ink_last_error(), (int)(status)); \
        if (!strstr(ink_last_error(), text))                                                           \
            fail_msg("%s: message \"%s\" lacks \"%s\"", #expr, ink_last_error(), text);                \
    } while (0)

static inline void make_dir(char path[64])
{
    strcpy(path, "/tmp/inkstone-test-XXXXXX");
    assert_non_null(mkdtemp(path));
}

static inline void put_file(const char *dir, const char *name, const void *bytes, size_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static inline void put_string(const char *dir, const char *name, const char *text)
{
    put_file(dir, name, text, strlen(text));
}

/* A directory and all below it. */
static inline void remove_dir(const char *dir)
{
    DIR *d = opendir(dir);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));) {
        strbuf path = {0};
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        strbuf_printf(&path, "%s/%s", dir, e->d_name);
        if (unlink(strbuf_text(&path)) != 0)
            remove_dir(strbuf_text(&path));
        strbuf_free(&path);
    }
    closedir(d);
    rmdir(dir);
}

static inline size_t count_files(const char *dir)
{
    size_t n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

/* Whole file; the caller frees. */
static inline unsigned char *get_file(const char *path, size_t *size)
{
    model_file f;
    assert_ok(model_file_open_path(path, &f));
    unsigned char *copy = (unsigned char *)copy_bytes(f.data, f.size);
    assert_non_null(copy);
    *size = f.size;
    model_file_close(&f);
    return copy;
}

/* Header length, header, then `data` bytes counting 0, 1, 2, ...; the caller frees. */
static inline unsigned char *make_safetensors(const char *header, size_t data, size_t *size)
{
    size_t n = strlen(header);
    *size = 8 + n + data;
    unsigned char *p = malloc(*size); /* exact, so that a sanitizer sees the first byte too many */
    assert_non_null(p);
    for (int i = 0; i < 8; i++)
        p[i] = (unsigned char)(n >> 8 * i);
    memcpy(p + 8, header, n);
    for (size_t i = 0; i < data; i++)
        p[8 + n + i] = (unsigned char)i;
    return p;
}
#endif
