/* roof.h - what this machine can do at most, measured: the ceilings that benchmarks compare with. They move on shared
 * machines, so measure them beside each result. */
#ifndef CPU_ROOF_H
#define CPU_ROOF_H
#include <stddef.h>

/* Multiply-add loops on registers only; 2 operations per multiply-add, in GFLOP/s. 0: the processor cannot. */
typedef enum roof { ROOF_AVX2, ROOF_AVX512, ROOF_AVX512_BF16, ROOF_AMX_BF16, ROOF_COUNT } roof;
const char *roof_name(roof p);
double roof_gflops(roof p, int isa /* cpu_isa of the processor */, int threads);

/* Best of several passes over a buffer much larger than the caches, every thread summing its part; GB/s. */
double roof_read_bandwidth(const void *data, size_t bytes, int threads);
#endif
