/* memory.h - checked allocation, a bump arena, and zero-filled pages that only cost what is touched. */
#ifndef CORE_MEMORY_H
#define CORE_MEMORY_H
#include "core/status.h"

/* count * size bytes, zeroed; NULL with this thread's error set (INK_RESOURCE_EXHAUSTED) when the product overflows or
 * memory is short. count 0 gives a unique freeable pointer. Free with free(). */
void *alloc_array(size_t count, size_t size);

/* 64-byte aligned, not zeroed; same errors. Free with free(). */
void *alloc_aligned(size_t bytes);

/* Grows *items (an array of `size`-byte elements with capacity *cap) to hold `need` elements. */
ink_status grow_array(void *items_ptr, size_t *cap, size_t need, size_t size);

/* Copy of a string, or of its first n bytes; NULL with the error set. */
char *copy_string(const char *s);
char *copy_bytes(const void *s, size_t n); /* result has a terminating 0 behind the n bytes */

/* size_t arithmetic that refuses to wrap. */
bool mul_size(size_t a, size_t b, size_t *out);
bool add_size(size_t a, size_t b, size_t *out);

/* ---- arena: many small allocations, one free ---- */
typedef struct arena_block arena_block;
typedef struct arena {
    arena_block *head;
} arena;

void *arena_alloc(arena *a, size_t bytes); /* 16-byte aligned, zeroed; NULL with the error set */
char *arena_string(arena *a, const char *s);
void arena_free(arena *a);

/* ---- pages: large zeroed memory mapped lazily; resident only where written ---- */
typedef struct pages {
    void *data;
    size_t bytes;
} pages;

ink_status pages_map(pages *p, size_t bytes);
void pages_unmap(pages *p);
#endif
