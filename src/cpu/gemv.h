/* gemv.h - linear and linear_gated for few input rows (generated tokens): the weight is streamed once from memory, in
 * place.
 *
 * The order in which the products of an output are added is a function of K alone: an output row has the same bits
 * whatever rows are beside it and however many threads run. Up to 64 rows are meant; more work, but not faster. */
#ifndef CPU_GEMV_H
#define CPU_GEMV_H
#include "cpu/gemm.h"

typedef struct gemv_tile {
    int block; /* weight rows that are finished together; threads share the rows in multiples of it */
    /* Bytes of x in the order the tile reads it. */
    size_t (*packed_bytes)(int64_t m, int64_t k);
    /* Packs part `part` of `parts` of x. */
    void (*pack)(const gemm_job *j, void *packed, int part, int parts);
    /* y[0..m)[n0..n1) */
    void (*rows)(const gemm_job *j, const void *packed, int64_t n0, int64_t n1);
    void (*enter)(void), (*leave)(void); /* per thread; NULL: nothing to do */
} gemv_tile;

size_t gemv_scratch_bytes(const gemv_tile *t, int64_t m, int64_t k);
void gemv_run(const gemv_tile *t, const gemm_job *j);

extern const gemv_tile gemv_bf16_avx2, gemv_f16_avx2, gemv_f32_avx2;
extern const gemv_tile gemv_bf16_avx512, gemv_f16_avx512, gemv_f32_avx512;
extern const gemv_tile gemv_bf16_dot_avx512; /* vdpbf16ps: flushes subnormals */
extern const gemv_tile gemv_bf16_amx;
#endif
