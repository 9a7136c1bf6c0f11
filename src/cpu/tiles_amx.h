/* tiles_amx.h - the tile registers of a thread: eight of 16 rows x 64 bytes. */
#ifndef CPU_TILES_AMX_H
#define CPU_TILES_AMX_H
#include <immintrin.h>
#include <stdint.h>

static inline __attribute__((unused)) void tiles_configure(void)
{
    _Alignas(64) struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.bytes[i] = 64;
        config.rows[i] = 16;
    }
    __asm__ volatile("" ::"r"(&config) : "memory"); /* compilers do not know that the next line reads it */
    _tile_loadconfig(&config);
}

/* Compilers do not know that tile loads read memory (the intrinsics say so for stores only): between the ordinary stores
 * that fill a tile's memory and its load, and between a load and the stores that reuse the memory. */
static inline __attribute__((unused, always_inline)) void tiles_fence(void) { __asm__ volatile("" ::: "memory"); }

/* Leaves the tiles in their initial state, so that context switches need not save them. */
static inline __attribute__((unused)) void tiles_release(void) { _tile_release(); }
#endif
