#include "engine/kv_cache.h"

#include <stdlib.h>

ink_status kv_cache_open(kv_cache *c, int layers, size_t block_bytes, int32_t blocks)
{
    size_t bytes;
    *c = (kv_cache){.layers = layers, .block_bytes = block_bytes, .blocks = blocks, .n_free = blocks};
    if (!mul_size(block_bytes, (size_t)blocks, &bytes) || !mul_size(bytes, 2 * (size_t)layers, &bytes))
        return failure(INK_RESOURCE_EXHAUSTED, "KV cache: %d blocks of %zu bytes in %d layers", blocks, block_bytes,
                       layers);
    TRY(pages_map(&c->memory, bytes));
    c->free = alloc_array((size_t)blocks, sizeof *c->free);
    if (!c->free) {
        kv_cache_close(c);
        return INK_RESOURCE_EXHAUSTED;
    }
    for (int32_t i = 0; i < blocks; i++)
        c->free[i] = blocks - 1 - i;
    return INK_OK;
}

void kv_cache_close(kv_cache *c)
{
    pages_unmap(&c->memory);
    free(c->free);
    *c = (kv_cache){0};
}

static void *pool(const kv_cache *c, int index)
{
    return (char *)c->memory.data + (size_t)index * c->block_bytes * (size_t)c->blocks;
}
void *kv_cache_k_pool(const kv_cache *c, int layer) { return pool(c, 2 * layer); }
void *kv_cache_v_pool(const kv_cache *c, int layer) { return pool(c, 2 * layer + 1); }

ink_status kv_cache_take(kv_cache *c, int32_t n, int32_t *out)
{
    if (n > c->n_free)
        return failure(INK_RESOURCE_EXHAUSTED, "KV cache: %d blocks wanted, %d of %d free", n, c->n_free, c->blocks);
    for (int32_t i = 0; i < n; i++)
        out[i] = c->free[--c->n_free];
    return INK_OK;
}

void kv_cache_give(kv_cache *c, int32_t n, const int32_t *blocks)
{
    for (int32_t i = n - 1; i >= 0; i--)
        c->free[c->n_free++] = blocks[i];
}
