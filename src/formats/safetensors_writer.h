/* safetensors_writer.h - writes a safetensors file under a temporary name and renames it when it is complete.
 *
 * Use: create, declare every tensor, begin, write the data of each (in any order and from any thread), finish, free. The
 * header is padded with spaces so that the data begins at a multiple of 64, and tensors whose size is a multiple of 64
 * come first, so that nearly every tensor of a real model lies 64-byte aligned in a mapping; the format allows no gaps. */
#ifndef FORMATS_SAFETENSORS_WRITER_H
#define FORMATS_SAFETENSORS_WRITER_H
#include "core/status.h"

typedef struct safetensors_writer safetensors_writer;

/* Nothing is written yet. `path` is the final name. */
ink_status safetensors_writer_create(const char *path, safetensors_writer **out);

/* Names are UTF-8 without control characters and unique. The order of the calls numbers the tensors from 0. */
ink_status safetensors_writer_declare(safetensors_writer *w, const char *name, ink_dtype dtype, int rank,
                                      const int64_t *dims);

/* Fixes the layout, creates the temporary file beside `path`, reserves its space and writes the header. */
ink_status safetensors_writer_begin(safetensors_writer *w);

/* Bytes [offset, offset + bytes) of tensor `index`. Thread-safe; each byte is to be written once. */
ink_status safetensors_writer_write(safetensors_writer *w, size_t index, size_t offset, const void *data, size_t bytes);

/* Checks that as many bytes were written as declared and renames the file over `path`. */
ink_status safetensors_writer_finish(safetensors_writer *w);

/* Also removes the temporary file if finish did not succeed. NULL is fine. */
void safetensors_writer_free(safetensors_writer *w);

/* All at once: `count` contiguous tensors. */
ink_status safetensors_save(const char *path, size_t count, const char *const *names, const ink_tensor *tensors);
#endif
