/* safetensors_internal.h - what safetensors.c and safetensors_index.c share. */
#ifndef FORMATS_SAFETENSORS_INTERNAL_H
#define FORMATS_SAFETENSORS_INTERNAL_H
#include "core/memory.h"
#include "formats/safetensors.h"

typedef struct safetensors_file {
    model_file file;
    safetensors_entry *entries; /* in header order; moved out once merged into the set */
    size_t count;
} safetensors_file;

struct safetensors {
    char *label;
    safetensors_file *files;
    size_t file_count;
    safetensors_entry *entries; /* sorted by name */
    size_t count, bytes;
    arena names;
};

ink_status safetensors_new(const char *label, safetensors **out);
ink_status safetensors_file_parse(safetensors_file *f, arena *names); /* f->file is open; fills entries and count */
void safetensors_sort(safetensors *st);                               /* by name; also sums the bytes */
bool tensor_name_is_clean(const char *name);                          /* no control characters */
#endif
