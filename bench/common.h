/* common.h - what the benchmarks share: clock, random data, and the ceilings of this machine, measured in the same run.
 *
 * Ceilings are for all `threads` together. On a shared machine they move from minute to minute: measure them beside each
 * result and report ratios. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H
#include "cpu/roof.h"
#include "registry/registry.h"

double bench_now(void); /* seconds */
/* From now on bench_now counts the processor time of the calling thread instead of wall time: for runs with one thread on a
 * machine that others use too. What they do to caches and memory still shows. */
void bench_use_cpu_time(void);

/* N(0, scale^2), page-aligned; exits when memory is short. Free with free(). */
void *bench_random(ink_dtype t, int64_t count, double scale, uint64_t seed);
void *bench_alloc(size_t bytes); /* 2 MiB-aligned, touched */

double bench_median(const double *v, int n);
double bench_min(const double *v, int n);

/* "--name VALUE" or "--name=VALUE" of the command line, else `otherwise`; "--name" alone gives "1" for flags. */
const char *bench_option(int argc, char **argv, const char *name, const char *otherwise);
bool bench_flag(int argc, char **argv, const char *name);
/* Comma-separated integers; returns how many. */
int bench_list(const char *text, int64_t *values, int most);

/* The first row of the registry that takes the call on `d`, with a workspace; exits with the registry's message if none. */
typedef struct bench_call {
    op_call call;
    const kernel *kernel;
} bench_call;
void bench_prepare(bench_call *b, const device *d);
void bench_run(const bench_call *b);
void bench_release(bench_call *b);

/* Device capped at `isa` ("" or NULL: everything) with `threads` (0: all). Exits on a wrong name. */
void bench_device(device *d, const char *isa, int threads);
#endif
