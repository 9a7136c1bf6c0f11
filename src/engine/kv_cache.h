/* kv_cache.h - the paged KV cache of a session: pools of 32-token blocks, one pair per layer, and who holds which block.
 *
 * The pools are mapped for the full number of blocks, but memory becomes resident only where tokens were written; freed
 * blocks are handed out again first, so the resident part is the largest number of tokens ever alive at once. */
#ifndef ENGINE_KV_CACHE_H
#define ENGINE_KV_CACHE_H
#include "core/memory.h"

typedef struct kv_cache {
    int layers;
    size_t block_bytes; /* of one block in one pool: kv heads * 32 * head_dim elements */
    int32_t blocks;
    pages memory;
    int32_t *free; /* stack of free block ids */
    int32_t n_free;
} kv_cache;

ink_status kv_cache_open(kv_cache *c, int layers, size_t block_bytes, int32_t blocks);
void kv_cache_close(kv_cache *c);

void *kv_cache_k_pool(const kv_cache *c, int layer);
void *kv_cache_v_pool(const kv_cache *c, int layer);

/* Takes n blocks into out[0..n). INK_RESOURCE_EXHAUSTED, with none taken, when fewer are free. */
ink_status kv_cache_take(kv_cache *c, int32_t n, int32_t *out);
void kv_cache_give(kv_cache *c, int32_t n, const int32_t *blocks);
#endif
