/* fuzz_safetensors.c - any bytes are either refused or give tensors that lie inside them. */
#include "formats/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    safetensors *st;
    if (safetensors_open_memory(data, size, "fuzz", &st) != INK_OK)
        return 0;
    volatile unsigned char sink = 0;
    size_t total = 0;
    for (size_t i = 0; i < safetensors_count(st); i++) {
        const safetensors_entry *e = safetensors_at(st, i);
        if (safetensors_find(st, e->name) == NULL)
            abort();
        total += e->bytes;
        if (!e->usable)
            continue;
        if (ink_tensor_bytes(&e->tensor) != e->bytes)
            abort();
        for (size_t b = 0; b < e->bytes; b++)
            sink = sink ^ ((const unsigned char *)e->tensor.data)[b];
    }
    if (total > size || total != safetensors_bytes(st))
        abort();
    safetensors_free(st);
    return 0;
}
