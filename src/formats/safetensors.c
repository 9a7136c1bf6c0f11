#include "formats/safetensors.h"

#include "core/memory.h"
#include "core/tensor.h"
#include "formats/json.h"
#include "formats/safetensors_internal.h"

#include <stdlib.h>
#include <string.h>

#define HEADER_LIMIT 100000000u /* bytes; the format's own limit */

/* Storage types of the format. Those without an ink_dtype have a size, so that their offsets are checked all the same. */
static const struct {
    const char *name;
    int dtype; /* ink_dtype or -1 */
    int64_t bits;
} storage_types[] = {
    {"F64", INK_F64, 64}, {"F32", INK_F32, 32}, {"F16", INK_F16, 16}, {"BF16", INK_BF16, 16},
    {"I64", INK_I64, 64}, {"I32", INK_I32, 32}, {"U8", INK_U8, 8},    {"BOOL", INK_BOOL, 8},
    {"I16", -1, 16},      {"I8", -1, 8},        {"U64", -1, 64},      {"U32", -1, 32},
    {"U16", -1, 16},      {"F8_E4M3", -1, 8},   {"F8_E5M2", -1, 8},   {"C64", -1, 64},
};

static int find_storage_type(const char *name)
{
    for (size_t i = 0; i < sizeof storage_types / sizeof *storage_types; i++)
        if (!strcmp(name, storage_types[i].name))
            return (int)i;
    return -1;
}

bool tensor_name_is_clean(const char *name)
{
    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        if (*p < 0x20 || *p == 0x7f)
            return false;
    return true;
}

/* A list of integers in [0, 2^63); dims beyond `room` are multiplied into the product but not stored. */
static ink_status read_shape(const char *label, const char *name, const json_t *shape, int room, int64_t *dims,
                             int64_t *numel)
{
    if (!json_is_array(shape))
        return failure(INK_BAD_DATA, "%s: tensor %s: shape is not a list", label, name);
    int64_t span = 1; /* the product without zeros: strides of an empty tensor must fit as well */
    bool empty = false;
    size_t index;
    json_t *value;
    json_array_foreach(shape, index, value)
    {
        int64_t d = json_is_integer(value) ? json_integer_value(value) : -1;
        if (d < 0)
            return failure(INK_BAD_DATA, "%s: tensor %s: dimension %zu is not an integer of 0 or more", label, name, index);
        if (index < (size_t)room)
            dims[index] = d;
        empty |= d == 0;
        if (__builtin_mul_overflow(span, d ? d : 1, &span) || span > INT64_MAX / 64)
            return failure(INK_BAD_DATA, "%s: tensor %s: its shape overflows", label, name);
    }
    *numel = empty ? 0 : span;
    return INK_OK;
}

static ink_status read_offsets(const char *label, const char *name, const json_t *offsets, int64_t *begin, int64_t *end)
{
    const json_t *b = json_array_get(offsets, 0), *e = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(b) || !json_is_integer(e))
        return failure(INK_BAD_DATA, "%s: tensor %s: data_offsets is not a pair of integers", label, name);
    *begin = json_integer_value(b);
    *end = json_integer_value(e);
    if (*begin < 0 || *end < *begin)
        return failure(INK_BAD_DATA, "%s: tensor %s: data_offsets [%lld,%lld] are not ordered", label, name,
                       (long long)*begin, (long long)*end);
    return INK_OK;
}

/* One header item. The data pointer is set after all offsets were seen to lie inside the file. */
static ink_status read_entry(arena *names, const char *label, const char *name, const json_t *item, safetensors_entry *out,
                             int64_t *begin)
{
    if (!tensor_name_is_clean(name))
        return failure(INK_BAD_DATA, "%s: a tensor name contains a control character", label);
    const char *dtype = json_string_value(json_object_get(item, "dtype"));
    if (!dtype || strlen(dtype) >= sizeof out->dtype || !tensor_name_is_clean(dtype))
        return failure(INK_BAD_DATA, "%s: tensor %s: dtype is missing or not a type name", label, name);
    const json_t *shape = json_object_get(item, "shape");
    int64_t dims[INK_MAX_RANK] = {0}, numel = 0, end = 0;
    TRY(read_shape(label, name, shape, INK_MAX_RANK, dims, &numel));
    TRY(read_offsets(label, name, json_object_get(item, "data_offsets"), begin, &end));
    int type = find_storage_type(dtype);
    if (type >= 0 && end - *begin != numel * (storage_types[type].bits / 8))
        return failure(INK_BAD_DATA, "%s: tensor %s: data_offsets span %lld bytes, its shape and dtype %s need %lld", label,
                       name, (long long)(end - *begin), dtype, (long long)(numel * (storage_types[type].bits / 8)));
    *out = (safetensors_entry){.file = label, .bytes = (size_t)(end - *begin)};
    memcpy(out->dtype, dtype, strlen(dtype) + 1);
    if (!(out->name = arena_string(names, name)))
        return INK_RESOURCE_EXHAUSTED;
    size_t rank = json_array_size(shape);
    if (type >= 0 && storage_types[type].dtype >= 0 && rank <= INK_MAX_RANK) {
        TRY(ink_tensor_init(&out->tensor, (ink_dtype)storage_types[type].dtype, (int)rank, dims, NULL));
        out->usable = true;
    }
    return INK_OK;
}

typedef struct span {
    int64_t begin;
    size_t entry;
} span;

static int by_begin(const void *a, const void *b)
{
    const span *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

/* Tensors must cover the data exactly once. Empty ones take no room and may share their offset with a neighbour: they are
 * left out by the caller. */
static ink_status check_cover(const char *label, const safetensors_entry *entries, span *spans, size_t count,
                              size_t available)
{
    qsort(spans, count, sizeof *spans, by_begin);
    int64_t at = 0;
    const char *last = NULL;
    for (size_t i = 0; i < count; i++) {
        const safetensors_entry *e = &entries[spans[i].entry];
        if (spans[i].begin < at)
            return failure(INK_BAD_DATA, "%s: tensors %s and %s overlap", label, last, e->name);
        if (spans[i].begin > at)
            return failure(INK_BAD_DATA, "%s: %lld bytes before tensor %s belong to no tensor", label,
                           (long long)(spans[i].begin - at), e->name);
        if (__builtin_add_overflow(at, (int64_t)e->bytes, &at))
            return failure(INK_BAD_DATA, "%s: the data size overflows", label);
        last = e->name;
    }
    if ((uint64_t)at > available)
        return failure(INK_BAD_DATA, "%s is truncated: its header describes %lld bytes of tensor data, the file has %zu",
                       label, (long long)at, available);
    if ((uint64_t)at < available)
        return failure(INK_BAD_DATA, "%s: %zu bytes behind the last tensor belong to no tensor", label,
                       available - (size_t)at);
    return INK_OK;
}

static ink_status read_entries(safetensors_file *f, arena *names, const json_t *header, const unsigned char *data,
                               size_t available)
{
    const char *label = f->file.label;
    size_t room = json_object_size(header), spans_used = 0;
    f->entries = alloc_array(room, sizeof *f->entries);
    span *spans = alloc_array(room, sizeof *spans);
    ink_status s = f->entries && spans ? INK_OK : INK_RESOURCE_EXHAUSTED;
    const char *name;
    json_t *item;
    json_object_foreach((json_t *)(uintptr_t)header, name, item)
    {
        int64_t begin = 0;
        if (s != INK_OK || !strcmp(name, "__metadata__"))
            continue;
        safetensors_entry *e = &f->entries[f->count];
        s = read_entry(names, label, name, item, e, &begin);
        if (s != INK_OK)
            break;
        /* An offset past the end of the data is only added to the base address once the cover check has passed. */
        if (e->bytes)
            spans[spans_used++] = (span){begin, f->count};
        else if ((uint64_t)begin > available)
            s = failure(INK_BAD_DATA, "%s: empty tensor %s lies behind the end of the file", label, name);
        e->tensor.data = NULL;
        f->count++;
    }
    if (s == INK_OK)
        s = check_cover(label, f->entries, spans, spans_used, available);
    for (size_t i = 0; s == INK_OK && i < spans_used; i++)
        f->entries[spans[i].entry].tensor.data = (void *)(uintptr_t)(data + spans[i].begin);
    free(spans);
    return s;
}

ink_status safetensors_file_parse(safetensors_file *f, arena *names)
{
    const unsigned char *bytes = f->file.data;
    const char *label = f->file.label;
    size_t size = f->file.size;
    if (size < 8)
        return failure(INK_BAD_DATA, "%s is truncated: %zu bytes, a safetensors file begins with an 8-byte header length",
                       label, size);
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--)
        n = n << 8 | bytes[i];
    if (n > HEADER_LIMIT)
        return failure(INK_BAD_DATA,
                       "%s: header length %llu is beyond the format's limit of %u bytes; not a safetensors file?", label,
                       (unsigned long long)n, HEADER_LIMIT);
    if (n > size - 8)
        return failure(INK_BAD_DATA, "%s is truncated: its header takes %llu bytes, the file has %zu", label,
                       (unsigned long long)n, size - 8);
    json_t *header;
    TRY(json_parse_object(bytes + 8, (size_t)n, label, &header));
    ink_status s = read_entries(f, names, header, bytes + 8 + n, size - 8 - (size_t)n);
    json_decref(header);
    return s;
}

/* ---- the set ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const safetensors_entry *)a)->name, ((const safetensors_entry *)b)->name);
}

void safetensors_sort(safetensors *st)
{
    qsort(st->entries, st->count, sizeof *st->entries, by_name);
    for (size_t i = 0; i < st->count; i++)
        st->bytes += st->entries[i].bytes;
}

ink_status safetensors_new(const char *label, safetensors **out)
{
    *out = alloc_array(1, sizeof **out);
    if (!*out)
        return INK_RESOURCE_EXHAUSTED;
    (*out)->label = copy_string(label);
    if (!(*out)->label) {
        free(*out);
        *out = NULL;
        return INK_RESOURCE_EXHAUSTED;
    }
    return INK_OK;
}

/* A set of one file; takes over `file`, also on failure. */
static ink_status open_single(model_file file, safetensors **out)
{
    safetensors *st = NULL;
    ink_status s = safetensors_new(file.label, &st);
    if (s == INK_OK) {
        st->files = alloc_array(1, sizeof *st->files);
        s = st->files ? INK_OK : INK_RESOURCE_EXHAUSTED;
    }
    if (s != INK_OK) {
        model_file_close(&file);
        safetensors_free(st);
        return s;
    }
    st->file_count = 1;
    st->files[0].file = file;
    s = safetensors_file_parse(&st->files[0], &st->names);
    if (s != INK_OK) {
        safetensors_free(st);
        return s;
    }
    st->entries = st->files[0].entries;
    st->count = st->files[0].count;
    st->files[0].entries = NULL;
    safetensors_sort(st);
    *out = st;
    return INK_OK;
}

ink_status safetensors_open(const model_files *files, const char *name, safetensors **out)
{
    model_file file;
    *out = NULL;
    TRY(model_file_open(files, name, &file));
    return open_single(file, out);
}

ink_status safetensors_open_path(const char *path, safetensors **out)
{
    model_file file;
    *out = NULL;
    TRY(model_file_open_path(path, &file));
    return open_single(file, out);
}

ink_status safetensors_open_memory(const void *data, size_t size, const char *label, safetensors **out)
{
    *out = NULL;
    model_file file = {.data = data ? data : "", .size = size, .label = copy_string(label)};
    return file.label ? open_single(file, out) : INK_RESOURCE_EXHAUSTED;
}

void safetensors_free(safetensors *st)
{
    if (!st)
        return;
    for (size_t i = 0; st->files && i < st->file_count; i++) {
        free(st->files[i].entries);
        model_file_close(&st->files[i].file);
    }
    free(st->files);
    free(st->entries);
    free(st->label);
    arena_free(&st->names);
    free(st);
}

size_t safetensors_count(const safetensors *st) { return st->count; }
const safetensors_entry *safetensors_at(const safetensors *st, size_t i) { return &st->entries[i]; }
const char *safetensors_label(const safetensors *st) { return st->label; }
size_t safetensors_bytes(const safetensors *st) { return st->bytes; }

const safetensors_entry *safetensors_find(const safetensors *st, const char *name)
{
    safetensors_entry key = {.name = name};
    return st->count ? bsearch(&key, st->entries, st->count, sizeof key, by_name) : NULL;
}

ink_status safetensors_get(const safetensors *st, const char *name, ink_tensor *out)
{
    const safetensors_entry *e = safetensors_find(st, name);
    if (!e)
        return failure(INK_NOT_FOUND, "%s has no tensor %s", st->label, name);
    if (!e->usable)
        return failure(INK_UNIMPLEMENTED, "%s: tensor %s has dtype %s or a rank that is not supported", e->file, name,
                       e->dtype);
    *out = e->tensor;
    return INK_OK;
}

size_t tensor_alignment(const ink_tensor *t)
{
    uintptr_t a = (uintptr_t)t->data | 4096;
    return (size_t)(a & -a);
}

bool tensor_is_aligned(const ink_tensor *t) { return (uintptr_t)t->data % ink_dtype_size(t->dtype) == 0; }

/* The file that holds p, and p's offset in it; NULL for memory of another origin. */
static const model_file *file_of(const safetensors *st, const void *data, size_t *offset)
{
    const unsigned char *p = data;
    for (size_t i = 0; p && i < st->file_count; i++) {
        const model_file *f = &st->files[i].file;
        const unsigned char *base = f->data;
        if (p >= base && p < base + f->size) {
            *offset = (size_t)(p - base);
            return f;
        }
    }
    return NULL;
}

void safetensors_prefetch(const safetensors *st, const safetensors_entry *entry)
{
    size_t offset;
    const model_file *f = file_of(st, entry->tensor.data, &offset);
    if (f)
        model_file_prefetch(f, offset, entry->bytes);
}

void safetensors_release(const safetensors *st, const ink_tensor *t)
{
    size_t offset;
    const model_file *f = file_of(st, t->data, &offset);
    if (f)
        model_file_release(f, offset, ink_tensor_bytes(t));
}
