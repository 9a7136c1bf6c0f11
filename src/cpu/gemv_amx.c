/* gemv_amx.c - linear for few input rows on tile registers. The weight is the A operand, loaded in place (16 rows x 32
 * elements); x is the B operand, packed in groups of 16 rows; so the sums come out transposed, [weight row][x row]. A sum
 * takes its products 32 elements of K at a time, in order, whatever stands in the other columns: bits do not depend on the
 * number of rows. */
#ifdef __x86_64__
#include "cpu/gemm_finish_vec.h"
#include "cpu/gemm_pairs_avx512.h"
#include "cpu/gemv.h"
#include "cpu/tiles_amx.h"

enum { BLOCK = 32 /* weight rows, and x rows, in a step: 2 x 2 tiles */, TILE_WORDS = 256 };

static int64_t chunks_of(int64_t k) { return (k + 31) / 32; }
static int64_t groups_of(int64_t m) { return (m + 15) / 16; }

/* [group][chunk][16 pairs][16 rows of x] */
static size_t packed_bytes(int64_t m, int64_t k) { return (size_t)(groups_of(m) * chunks_of(k) * TILE_WORDS) * 4; }

/* A part is a range of chunks of every group, so that one row too is packed by all threads. */
static void pack(const gemm_job *j, void *packed, int part, int parts)
{
    const int64_t chunks = chunks_of(j->k), c0 = chunks * part / parts, c1 = chunks * (part + 1) / parts;
    const int64_t k = (c1 * 32 < j->k ? c1 * 32 : j->k) - c0 * 32;
    for (int64_t g = 0; g < groups_of(j->m) && c0 < c1; g++)
        pairs_panel(16, false, (uint32_t *)packed + (g * chunks + c0) * TILE_WORDS,
                    (const uint16_t *)j->x + g * 16 * j->k + c0 * 32, j->k, j->m - g * 16 < 16 ? j->m - g * 16 : 16, k);
}

/* 32 rows x 32 elements with zeros where the matrix has ended. */
static void copy_edge(uint16_t *d, const uint16_t *w, int64_t k, int64_t rows, int64_t left)
{
    for (int64_t i = 0; i < BLOCK; i++)
        v_store((float *)(d + i * 32), i < rows ? pairs_at(w + i * k, left) : v_zero());
}

/* tiles 0..3 += the chunk: [w rows 0-15, 16-31] x [group, next group]. */
VEC_INLINE void multiply_chunk(const int groups, const uint16_t *w, int64_t stride, const uint32_t *x, int64_t group_words)
{
    _tile_loadd(4, w, stride);
    _tile_loadd(6, x, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, (const char *)w + 16 * stride, stride);
    _tile_dpbf16ps(2, 5, 6);
    if (groups == 2) {
        _tile_loadd(7, x + group_words, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(3, 5, 7);
    }
}

/* sums[x row][32 weight rows] for `groups` groups. */
VEC_INLINE void multiply_block(const int groups, const uint16_t *w, int64_t k, int64_t rows, const uint32_t *x, float *sums)
{
    const int64_t chunks = chunks_of(k), whole = rows == BLOCK ? k / 32 : 0;
    _Alignas(64) uint16_t edge[BLOCK * 32];
    _Alignas(64) float c[4][TILE_WORDS];
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t i = 0; i < whole; i++) /* no prefetching: the hardware's does better (docs/speed/gemm.md) */
        multiply_chunk(groups, w + i * 32, k * 2, x + i * TILE_WORDS, chunks * TILE_WORDS);
    for (int64_t i = whole; i < chunks; i++) {
        copy_edge(edge, w + i * 32, k, rows, k - i * 32);
        __asm__ volatile("" ::"r"(edge) : "memory"); /* compilers do not know that tile loads read memory */
        multiply_chunk(groups, edge, 64, x + i * TILE_WORDS, chunks * TILE_WORDS);
    }
    _tile_stored(0, c[0], 64);
    _tile_stored(2, c[1], 64);
    _tile_stored(1, c[2], 64);
    _tile_stored(3, c[3], 64);
    __asm__ volatile("" ::"r"(c) : "memory");
    for (int t = 0; t < 2 * groups; t++) {
        vf s[16];
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
            s[i] = v_load(c[t] + i * 16);
        v_transpose(s, sums + t / 2 * 16 * BLOCK + t % 2 * 16, BLOCK);
    }
}

static void rows(const gemm_job *j, const void *packed, int64_t n0, int64_t n1)
{
    const int64_t group_words = chunks_of(j->k) * TILE_WORDS;
    _Alignas(64) float sums[2][BLOCK * BLOCK];
    for (int64_t n = n0; n < n1; n += BLOCK) {
        const int64_t count = n1 - n < BLOCK ? n1 - n : BLOCK;
        for (int64_t m = 0; m < j->m; m += BLOCK) {
            const uint32_t *x = (const uint32_t *)packed + m / 16 * group_words;
            for (int q = 0; q < 2 && j->w[q]; q++) {
                const uint16_t *w = (const uint16_t *)j->w[q] + n * j->k;
                if (j->m - m > 16)
                    multiply_block(2, w, j->k, count, x, sums[q]);
                else
                    multiply_block(1, w, j->k, count, x, sums[q]);
            }
            gemm_finish(INK_BF16, true, j, sums[0], j->w[1] ? sums[1] : NULL, BLOCK, m, j->m - m < BLOCK ? j->m - m : BLOCK,
                        n, count);
        }
    }
}

const gemv_tile gemv_bf16_amx = {
    .block = BLOCK,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .rows = rows,
    .enter = tiles_configure,
    .leave = tiles_release,
};
#else
typedef int gemv_amx_is_for_x86;
#endif
