/* peer.h - a matrix product of another library: C[M,N] = A[M,K] W[N,K]^T (+ bias), FP32 or, where it offers that, BF16. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H
#include "inkstone/base.h"

typedef struct peer {
    const char *name;
    /* Version and the kernel family it chose for this machine. */
    const char *(*about)(void);
    /* Caps its instruction set at ours ("avx2", "avx512"; NULL: no cap). Before the first create. */
    void (*limit)(const char *isa);
    /* FP32 operands (dtype: what the library computes in). Packs W if the library can; not timed. NULL: it cannot. */
    void *(*create)(ink_dtype dtype, const float *a, const float *w, float *c, int64_t m, int64_t n, int64_t k,
                    int threads);
    void (*run)(void *state);
    void (*destroy)(void *state);
} peer;

extern const peer peer_openblas, peer_onednn; /* present if BENCH_HAVE_OPENBLAS, BENCH_HAVE_ONEDNN */
#endif
