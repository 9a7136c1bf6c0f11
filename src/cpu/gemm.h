/* gemm.h - the matrix product behind linear and linear_gated: one loop nest for every instruction set and dtype.
 *
 *     C[M, N] = A[M, K] W[N, K]^T          A: activations, W: weights as stored, both row-major; C in FP32
 *
 * Operands are seen as 32-bit words along K: one FP32 value, or one pair of neighbouring BF16 values. A block of A is
 * copied into strips and a block of W into panels, both in an order that the register tile reads front to back:
 *     strip   [K / chunk][mr][chunk] words        a chunk is one vector of a row
 *     panel   [K][nr] words                       the transposed weight
 * and zero-filled to whole chunks. Weights are packed for each call, never at load: all threads pack a part of W together,
 * then share out tasks of rows x columns of C.
 *
 * Every element of C is one chain of additions in ascending k, whatever the blocking, the task grid and the number of
 * threads or rows: blocks of K continue the chain through C. */
#ifndef CPU_GEMM_H
#define CPU_GEMM_H
#include "ops/op.h"

/* What a product needs beyond its operands; rows of y and residual are n long. */
typedef struct gemm_job {
    const void *x, *w[2]; /* w[1]: the up matrix of linear_gated, else NULL */
    int64_t m, n, k;
    const void *bias, *residual; /* NULL: none */
    void *y;
    ink_dtype dtype, bias_dtype, y_dtype; /* of x, w and residual; of bias; of y */
    activation act;
    int threads;
    void *scratch; /* gemm_scratch_bytes */
} gemm_job;

/* A register tile with its packing, its epilogue and the blocking that suits it: all an instruction set has to provide. */
typedef struct gemm_tile {
    int mr, nr;   /* rows of A and of W in a tile */
    int chunk;    /* words */
    int elements; /* of K in a word */
    int kc; /* elements of K in a block, a multiple of chunk * elements: kc of a panel stay in the first-level cache */
    int mc; /* most rows of A in a task, a multiple of mr */
    int strips_bytes; /* and most bytes of strips: they stay in the second-level cache */
    int pack_a,
        read_w; /* cost of packing an element of A and of reading one of a panel, in multiply-adds; weighs task shapes */
    /* rows (at most mr) of k elements, ld elements apart */
    void (*pack_strip)(uint32_t *strip, const void *a, int64_t ld, int64_t rows, int64_t k);
    void (*pack_panel)(uint32_t *panel, const void *w, int64_t ld, int64_t rows, int64_t k);
    /* c[rows][nr] = (first ? 0 : c) + strip . panel; writes whole tiles. `ahead`: needed soon; the tile may
     * prefetch ahead[0 .. chunks * step) while it multiplies */
    void (*multiply)(int rows, const uint32_t *strip, const uint32_t *panel, int64_t chunks, float *c, int64_t ldc,
                     bool first, const char *ahead, int64_t step);
    /* y[row .. row+rows)[n0 .. n0+count) from the finished sums; `up` NULL unless gated */
    void (*finish)(const gemm_job *j, const float *c, const float *up, int64_t ldc, int64_t row, int64_t rows, int64_t n0,
                   int64_t count);
    void (*enter)(void), (*leave)(void); /* per thread, around its tasks; NULL: nothing to do */
} gemm_tile;

/* Does not shrink when m, n, k or threads grow. matrices: 2 for linear_gated. */
size_t gemm_scratch_bytes(const gemm_tile *t, int64_t m, int64_t n, int64_t k, int matrices, int threads);
void gemm_run(const gemm_tile *t, const gemm_job *j);

/* The job of a linear or linear_gated call. */
gemm_job gemm_job_of(const op_call *c);

/* The tiles, by dtype and instruction set (NAME_<isa>.c). */
extern const gemm_tile gemm_bf16_6x16_avx2, gemm_f16_6x16_avx2, gemm_f32_6x16_avx2;
extern const gemm_tile gemm_bf16_14x32_avx512, gemm_f16_14x32_avx512, gemm_f32_14x32_avx512;
extern const gemm_tile gemm_bf16_dot_14x32_avx512; /* vdpbf16ps: flushes subnormals */
extern const gemm_tile gemm_bf16_32x32_amx;
#endif
