#include "image/decode.h"

#include "core/memory.h"
#include "image/decoders.h"
#include "image/sniff.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static ink_status unknown_type(const uint8_t *p, size_t size)
{
    uint8_t b[8] = {0};
    memcpy(b, p, size < sizeof b ? size : sizeof b);
    return failure(INK_BAD_DATA,
                   "not a JPEG, PNG, WebP or TIFF image (%zu bytes, beginning %02x %02x %02x %02x %02x %02x %02x %02x)",
                   size, b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]);
}

static ink_status file_too_large(size_t limit)
{
    return failure(INK_RESOURCE_EXHAUSTED, "image file is larger than the limit of %zu bytes", limit);
}

ink_status image_decode(const void *data, size_t size, const image_limits *limits, image *out)
{
    const image_limits l = limits ? *limits : IMAGE_LIMITS_DEFAULT;
    *out = (image){0};
    if (!data || !size)
        return failure(INK_BAD_DATA, "image file is empty");
    if (size > l.max_file_bytes)
        return file_too_large(l.max_file_bytes);
    const char *name;
    ink_status s;
    switch (image_sniff(data, size, &name)) {
    case IMAGE_JPEG: s = decode_jpeg(data, size, &l, out); break;
    case IMAGE_PNG: s = decode_png(data, size, &l, out); break;
    case IMAGE_WEBP: s = decode_webp(data, size, &l, out); break;
    case IMAGE_TIFF: s = decode_tiff(data, size, &l, out); break;
    case IMAGE_FOREIGN: return failure(INK_UNIMPLEMENTED, "%s are not supported: convert to PNG", name);
    default: return unknown_type(data, size);
    }
    if (s != INK_OK)
        image_free(out);
    return s;
}

typedef struct file_bytes {
    uint8_t *data;
    size_t size, capacity;
} file_bytes;

/* Reads to the end, or one byte past the limit, in pieces: a pipe's size is not known beforehand and a file may grow. */
static ink_status read_all(int fd, size_t limit, file_bytes *f)
{
    struct stat st;
    if (fstat(fd, &st))
        return failure(INK_IO, "%s", strerror(errno));
    if (S_ISDIR(st.st_mode))
        return failure(INK_IO, "is a directory");
    if (S_ISREG(st.st_mode) && st.st_size > 0) {
        if ((uint64_t)st.st_size > limit)
            return file_too_large(limit);
        TRY(grow_array(&f->data, &f->capacity, (size_t)st.st_size + 1, 1));
    }
    for (;;) {
        if (f->size > limit)
            return file_too_large(limit);
        if (f->size == f->capacity)
            TRY(grow_array(&f->data, &f->capacity, f->size + 65536, 1));
        size_t room = f->capacity - f->size;
        if (room > limit - f->size)
            room = limit - f->size + 1;
        ssize_t n = read(fd, f->data + f->size, room);
        if (n == 0)
            return INK_OK;
        if (n < 0 && errno != EINTR)
            return failure(INK_IO, "%s", strerror(errno));
        if (n > 0)
            f->size += (size_t)n;
    }
}

ink_status image_load(const char *path, const image_limits *limits, image *out)
{
    const image_limits l = limits ? *limits : IMAGE_LIMITS_DEFAULT;
    *out = (image){0};
    bool standard_input = !strcmp(path, "-");
    int fd = standard_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        bool missing = errno == ENOENT || errno == ENOTDIR;
        return failure(missing ? INK_NOT_FOUND : INK_IO, "%s: %s", path, strerror(errno));
    }
    file_bytes f = {0};
    ink_status s = read_all(fd, l.max_file_bytes, &f);
    if (!standard_input)
        close(fd);
    if (s == INK_OK)
        s = image_decode(f.data, f.size, &l, out);
    free(f.data);
    return s == INK_OK ? s : failure_in(s, "%s", standard_input ? "standard input" : path);
}
