/* safetensors.h - tensors by name from one safetensors file or from shards under an index.
 *
 * File: 8 bytes little-endian header length N, N bytes of JSON {"name": {"dtype", "shape", "data_offsets": [begin, end]},
 * "__metadata__": {...}}, then the data; offsets count from its first byte.
 *
 * What is checked when a file is opened (its data is never touched): N is at most 100 MB and inside the file; the header is
 * one JSON object without duplicate keys; names are free of control characters; dimensions are not negative and their
 * product fits 63 bits; end - begin is exactly the tensor's size; and the tensors cover the data without gap or overlap
 * from its first to its last byte, as the format demands: a gap, an overlap, a missing tail and bytes behind the last
 * tensor are errors. A dtype we have no name for (F8_E4M3, I16, ...) or a rank above INK_MAX_RANK makes only that tensor
 * unusable.
 *
 * A set is immutable after opening and may be shared by threads. */
#ifndef FORMATS_SAFETENSORS_H
#define FORMATS_SAFETENSORS_H
#include "formats/files.h"

#define SAFETENSORS_DTYPE_TEXT 16

typedef struct safetensors_entry {
    const char *name;
    const char *file;  /* label of the file it lies in */
    ink_tensor tensor; /* points into the mapping; read-only memory. Meaningful only if `usable` */
    size_t bytes;
    char dtype[SAFETENSORS_DTYPE_TEXT]; /* as written in the file: "BF16" */
    bool usable;                        /* dtype known and rank <= INK_MAX_RANK */
} safetensors_entry;

typedef struct safetensors safetensors;

/* One file of a source. Free with safetensors_free. */
ink_status safetensors_open(const model_files *files, const char *name, safetensors **out);

/* One file by path, e.g. golden activations in tests. */
ink_status safetensors_open_path(const char *path, safetensors **out);

/* A file already in memory; `data` is borrowed. */
ink_status safetensors_open_memory(const void *data, size_t size, const char *label, safetensors **out);

/* A checkpoint's weights: `model.safetensors`, or the shards of `model.safetensors.index.json` (one shard is fine). When
 * both exist the index counts only if it lists model.safetensors among its shards; otherwise it is a left-over of another
 * way of saving and is not used. All missing shards, or all tensors missing from their shard, are named at once. A tensor
 * that a shard holds but the index does not list is not part of the set. */
ink_status safetensors_open_model(const model_files *files, safetensors **out);

void safetensors_free(safetensors *st); /* NULL is fine; every tensor of the set becomes invalid */

size_t safetensors_count(const safetensors *st);
const safetensors_entry *safetensors_at(const safetensors *st, size_t i);             /* in strcmp order of names */
const safetensors_entry *safetensors_find(const safetensors *st, const char *name);   /* NULL if absent; sets no error */
ink_status safetensors_get(const safetensors *st, const char *name, ink_tensor *out); /* INK_NOT_FOUND, INK_UNIMPLEMENTED */
const char *safetensors_label(const safetensors *st);                                 /* file or index it came from */
size_t safetensors_bytes(const safetensors *st);                                      /* tensor data, all tensors */

/* Largest power of two, at most 4096, that divides the tensor's address. A file whose header is not padded leaves tensors
 * at any address: compare with the element size before loading elements. */
size_t tensor_alignment(const ink_tensor *t);
bool tensor_is_aligned(const ink_tensor *t); /* for its own element type */

/* The tensor's bytes will hardly be read again (it was converted): their memory may go. */
void safetensors_release(const safetensors *st, const ink_tensor *t);

/* Asks the system to read a tensor's bytes soon. */
void safetensors_prefetch(const safetensors *st, const safetensors_entry *entry);
#endif
