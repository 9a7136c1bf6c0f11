/* threads.h - the only file that knows OpenMP's run-time calls. Kernels write `#pragma omp parallel
 * num_threads(c->threads)` and ask thread_index() inside. Without OpenMP everything runs on one thread with the same
 * results. */
#ifndef CORE_THREADS_H
#define CORE_THREADS_H
#ifdef _OPENMP
#include <omp.h>
static inline int thread_index(void) { return omp_get_thread_num(); }
static inline int thread_count(void) { return omp_get_num_threads(); } /* of the current parallel region */
#else
static inline int thread_index(void) { return 0; }
static inline int thread_count(void) { return 1; }
#endif

/* Cores this process may use (its affinity mask and OMP_NUM_THREADS), at least 1. */
int threads_default(void);
#endif
