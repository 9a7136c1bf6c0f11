#define _DEFAULT_SOURCE
#include "core/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

bool mul_size(size_t a, size_t b, size_t *out) { return !__builtin_mul_overflow(a, b, out); }
bool add_size(size_t a, size_t b, size_t *out) { return !__builtin_add_overflow(a, b, out); }

void *alloc_array(size_t count, size_t size)
{
    size_t bytes;
    void *p = mul_size(count, size, &bytes) ? calloc(bytes ? bytes : 1, 1) : NULL;
    if (!p)
        failure(INK_RESOURCE_EXHAUSTED, "out of memory: %zu elements of %zu bytes", count, size);
    return p;
}

void *alloc_aligned(size_t bytes)
{
    size_t rounded;
    void *p = NULL;
    if (add_size(bytes ? bytes : 1, 63, &rounded))
        p = aligned_alloc(64, rounded & ~(size_t)63);
    if (!p)
        failure(INK_RESOURCE_EXHAUSTED, "out of memory: %zu bytes", bytes);
    return p;
}

ink_status grow_array(void *items_ptr, size_t *cap, size_t need, size_t size)
{
    void **items = items_ptr;
    if (need <= *cap)
        return INK_OK;
    size_t n = *cap ? *cap : 8, bytes;
    while (n < need)
        if (!mul_size(n, 2, &n))
            return failure(INK_RESOURCE_EXHAUSTED, "out of memory: %zu elements of %zu bytes", need, size);
    void *p = mul_size(n, size, &bytes) ? realloc(*items, bytes) : NULL;
    if (!p)
        return failure(INK_RESOURCE_EXHAUSTED, "out of memory: %zu elements of %zu bytes", n, size);
    *items = p;
    *cap = n;
    return INK_OK;
}

char *copy_bytes(const void *s, size_t n)
{
    char *p = alloc_array(n + 1, 1);
    if (p && n)
        memcpy(p, s, n);
    return p;
}

char *copy_string(const char *s) { return copy_bytes(s, strlen(s)); }

struct arena_block {
    arena_block *next;
    size_t used, capacity;
    _Alignas(16) unsigned char bytes[];
};

void *arena_alloc(arena *a, size_t bytes)
{
    const size_t standard = 64 * 1024;
    size_t need;
    if (!add_size(bytes, 15, &need) || need > SIZE_MAX / 2) {
        failure(INK_RESOURCE_EXHAUSTED, "out of memory: %zu bytes", bytes);
        return NULL;
    }
    need &= ~(size_t)15;
    if (!a->head || a->head->capacity - a->head->used < need) {
        size_t capacity = need > standard ? need : standard;
        arena_block *b = alloc_array(1, sizeof *b + capacity);
        if (!b)
            return NULL;
        b->capacity = capacity;
        b->next = a->head;
        a->head = b;
    }
    void *p = a->head->bytes + a->head->used;
    a->head->used += need;
    return p;
}

char *arena_string(arena *a, const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = arena_alloc(a, n);
    if (p)
        memcpy(p, s, n);
    return p;
}

void arena_free(arena *a)
{
    for (arena_block *b = a->head, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    a->head = NULL;
}

ink_status pages_map(pages *p, size_t bytes)
{
    p->data = NULL;
    p->bytes = 0;
    if (!bytes)
        return INK_OK;
    void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED)
        return failure(INK_RESOURCE_EXHAUSTED, "out of memory: cannot map %zu bytes", bytes);
    madvise(m, bytes, MADV_HUGEPAGE); /* a hint; its refusal changes nothing but speed */
    p->data = m;
    p->bytes = bytes;
    return INK_OK;
}

void pages_unmap(pages *p)
{
    if (p->data)
        munmap(p->data, p->bytes);
    p->data = NULL;
    p->bytes = 0;
}
