#define _GNU_SOURCE /* fallocate */
#include "formats/safetensors_writer.h"

#include "core/memory.h"
#include "core/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATA_ALIGNMENT 64

typedef struct declared {
    char *name;
    ink_tensor shape; /* data is NULL */
    size_t bytes;
    uint64_t offset; /* from the first byte of the data */
} declared;

struct safetensors_writer {
    char *path, *partial;
    int fd; /* -1 until begin */
    declared *tensors;
    size_t count, capacity;
    uint64_t data_start, data_bytes;
    _Atomic uint64_t written;
};

ink_status safetensors_writer_create(const char *path, safetensors_writer **out)
{
    *out = NULL;
    safetensors_writer *w = alloc_array(1, sizeof *w);
    if (!w)
        return INK_RESOURCE_EXHAUSTED;
    w->fd = -1;
    w->path = copy_string(path);
    w->partial = alloc_array(strlen(path) + 48, 1);
    if (!w->path || !w->partial) {
        safetensors_writer_free(w);
        return INK_RESOURCE_EXHAUSTED;
    }
    *out = w;
    return INK_OK;
}

static const char *storage_name(ink_dtype t)
{
    static const char *const names[INK_DTYPE_COUNT] = {
        [INK_F32] = "F32", [INK_F16] = "F16", [INK_BF16] = "BF16", [INK_F64] = "F64",
        [INK_I32] = "I32", [INK_I64] = "I64", [INK_U8] = "U8",     [INK_BOOL] = "BOOL"};
    return names[t];
}

ink_status safetensors_writer_declare(safetensors_writer *w, const char *name, ink_dtype dtype, int rank,
                                      const int64_t *dims)
{
    if (w->fd >= 0)
        return failure(INK_FAILED_PRECONDITION, "%s: tensor %s is declared after the header was written", w->path, name);
    if (!strcmp(name, "__metadata__"))
        return failure(INK_INVALID_ARGUMENT, "%s: a tensor cannot be called __metadata__", w->path);
    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        if (*p < 0x20 || *p == 0x7f)
            return failure(INK_INVALID_ARGUMENT, "%s: a tensor name contains a control character", w->path);
    TRY(grow_array(&w->tensors, &w->capacity, w->count + 1, sizeof *w->tensors));
    declared *t = &w->tensors[w->count];
    *t = (declared){0};
    TRY(ink_tensor_init(&t->shape, dtype, rank, dims, NULL));
    t->bytes = ink_tensor_bytes(&t->shape);
    if (!(t->name = copy_string(name)))
        return INK_RESOURCE_EXHAUSTED;
    w->count++;
    return INK_OK;
}

static int by_layout(const void *a, const void *b)
{
    const declared *x = *(declared *const *)a, *y = *(declared *const *)b;
    int odd_x = x->bytes % DATA_ALIGNMENT != 0, odd_y = y->bytes % DATA_ALIGNMENT != 0;
    if (odd_x != odd_y)
        return odd_x - odd_y;
    size_t sx = ink_dtype_size(x->shape.dtype), sy = ink_dtype_size(y->shape.dtype);
    if (sx != sy) /* wide elements first keeps each type aligned to itself */
        return sx > sy ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(declared *const *)a)->name, (*(declared *const *)b)->name);
}

static void add_json_string(strbuf *b, const char *s)
{
    strbuf_putc(b, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            strbuf_putc(b, '\\');
        strbuf_putc(b, *s);
    }
    strbuf_putc(b, '"');
}

/* Assigns offsets in layout order and writes the header text behind 8 bytes left for its length. */
static ink_status lay_out(safetensors_writer *w, strbuf *header)
{
    declared **order = alloc_array(w->count, sizeof *order);
    if (!order)
        return INK_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < w->count; i++)
        order[i] = &w->tensors[i];
    ink_status s = INK_OK;
    qsort(order, w->count, sizeof *order, by_name);
    for (size_t i = 1; i < w->count && s == INK_OK; i++)
        if (!strcmp(order[i - 1]->name, order[i]->name))
            s = failure(INK_INVALID_ARGUMENT, "%s: tensor %s is declared twice", w->path, order[i]->name);
    qsort(order, w->count, sizeof *order, by_layout);
    strbuf_puts(header, "????????{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < w->count && s == INK_OK; i++) {
        declared *t = order[i];
        t->offset = w->data_bytes;
        if (__builtin_add_overflow(w->data_bytes, t->bytes, &w->data_bytes) || w->data_bytes > INT64_MAX / 2)
            s = failure(INK_INVALID_ARGUMENT, "%s: the tensors' total size overflows", w->path);
        strbuf_putc(header, ',');
        add_json_string(header, t->name);
        strbuf_printf(header, ":{\"dtype\":\"%s\",\"shape\":[", storage_name(t->shape.dtype));
        for (int d = 0; d < t->shape.rank; d++)
            strbuf_printf(header, "%s%lld", d ? "," : "", (long long)t->shape.dims[d]);
        strbuf_printf(header, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)t->offset,
                      (unsigned long long)w->data_bytes);
    }
    free(order);
    strbuf_putc(header, '}');
    while (header->length % DATA_ALIGNMENT != 0 && !header->failed)
        strbuf_putc(header, ' ');
    return s == INK_OK ? strbuf_status(header) : s;
}

static ink_status write_at(safetensors_writer *w, const void *data, size_t bytes, uint64_t position)
{
    const char *p = data;
    while (bytes) {
        ssize_t n = pwrite(w->fd, p, bytes < 1u << 30 ? bytes : 1u << 30, (off_t)position);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return failure(INK_IO, "cannot write %s: %s", w->partial, n < 0 ? strerror(errno) : "no progress");
        p += n;
        position += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return INK_OK;
}

static ink_status create_partial(safetensors_writer *w)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        snprintf(w->partial, strlen(w->path) + 48, "%s.partial-%ld-%d", w->path, (long)getpid(), attempt);
        w->fd = open(w->partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (w->fd >= 0 || errno != EEXIST)
            break;
    }
    return w->fd >= 0 ? INK_OK : failure(INK_IO, "cannot create %s: %s", w->partial, strerror(errno));
}

ink_status safetensors_writer_begin(safetensors_writer *w)
{
    if (w->fd >= 0)
        return failure(INK_FAILED_PRECONDITION, "%s: begun twice", w->path);
    strbuf header = {0};
    ink_status s = lay_out(w, &header);
    if (s == INK_OK)
        s = create_partial(w);
    if (s == INK_OK) {
        w->data_start = header.length;
        uint64_t n = header.length - 8;
        for (int i = 0; i < 8; i++)
            header.text[i] = (char)(n >> 8 * i & 0xff);
        /* Reserving fails early on a full disk; a file system that cannot reserve fails later, in a write. */
        if (fallocate(w->fd, 0, 0, (off_t)(w->data_start + w->data_bytes)) != 0 && (errno == ENOSPC || errno == EFBIG))
            s = failure(INK_IO, "cannot reserve %llu bytes for %s: %s", (unsigned long long)(w->data_start + w->data_bytes),
                        w->partial, strerror(errno));
    }
    if (s == INK_OK)
        s = write_at(w, header.text, header.length, 0);
    strbuf_free(&header);
    return s;
}

ink_status safetensors_writer_write(safetensors_writer *w, size_t index, size_t offset, const void *data, size_t bytes)
{
    if (w->fd < 0)
        return failure(INK_FAILED_PRECONDITION, "%s: data is written before the header", w->path);
    if (index >= w->count)
        return failure(INK_OUT_OF_RANGE, "%s: tensor %zu of %zu", w->path, index, w->count);
    const declared *t = &w->tensors[index];
    if (offset > t->bytes || bytes > t->bytes - offset)
        return failure(INK_OUT_OF_RANGE, "%s: bytes %zu to %zu of tensor %s, which has %zu", w->path, offset,
                       offset + bytes, t->name, t->bytes);
    TRY(write_at(w, data, bytes, w->data_start + t->offset + offset));
    atomic_fetch_add(&w->written, bytes);
    return INK_OK;
}

ink_status safetensors_writer_finish(safetensors_writer *w)
{
    if (w->fd < 0)
        return failure(INK_FAILED_PRECONDITION, "%s: finished before it was begun", w->path);
    if (atomic_load(&w->written) != w->data_bytes)
        return failure(INK_FAILED_PRECONDITION, "%s: %llu of %llu data bytes were written", w->path,
                       (unsigned long long)atomic_load(&w->written), (unsigned long long)w->data_bytes);
    int fd = w->fd;
    w->fd = -1;
    if (close(fd) != 0) {
        ink_status s = failure(INK_IO, "cannot write %s: %s", w->partial, strerror(errno));
        unlink(w->partial);
        return s;
    }
    if (rename(w->partial, w->path) != 0) {
        ink_status s = failure(INK_IO, "cannot rename %s to %s: %s", w->partial, w->path, strerror(errno));
        unlink(w->partial);
        return s;
    }
    return INK_OK;
}

void safetensors_writer_free(safetensors_writer *w)
{
    if (!w)
        return;
    if (w->fd >= 0) {
        close(w->fd);
        unlink(w->partial);
    }
    for (size_t i = 0; i < w->count; i++)
        free(w->tensors[i].name);
    free(w->tensors);
    free(w->path);
    free(w->partial);
    free(w);
}

ink_status safetensors_save(const char *path, size_t count, const char *const *names, const ink_tensor *tensors)
{
    safetensors_writer *w;
    TRY(safetensors_writer_create(path, &w));
    ink_status s = INK_OK;
    for (size_t i = 0; i < count && s == INK_OK; i++)
        s = ink_tensor_is_contiguous(&tensors[i])
                ? safetensors_writer_declare(w, names[i], tensors[i].dtype, tensors[i].rank, tensors[i].dims)
                : failure(INK_INVALID_ARGUMENT, "%s: tensor %s is not contiguous", path, names[i]);
    if (s == INK_OK)
        s = safetensors_writer_begin(w);
    for (size_t i = 0; i < count && s == INK_OK; i++)
        s = safetensors_writer_write(w, i, 0, tensors[i].data, ink_tensor_bytes(&tensors[i]));
    if (s == INK_OK)
        s = safetensors_writer_finish(w);
    safetensors_writer_free(w);
    return s;
}
