#define _GNU_SOURCE
#include "common.h"

#include "core/dtype.h"
#include "core/memory.h"
#include "core/rng.h"
#include "core/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static clockid_t clock_in_use = CLOCK_MONOTONIC;
void bench_use_cpu_time(void) { clock_in_use = CLOCK_THREAD_CPUTIME_ID; }

double bench_now(void)
{
    struct timespec t;
    clock_gettime(clock_in_use, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- data ---- */

static void die(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

void *bench_alloc(size_t bytes)
{
    void *p = NULL;
    const size_t page = (size_t)2 << 20;
    bytes = (bytes + page) / page * page;
    if (posix_memalign(&p, page, bytes))
        die("out of memory");
    madvise(p, bytes, MADV_HUGEPAGE);
    memset(p, 0, bytes);
    return p;
}

void *bench_random(ink_dtype t, int64_t count, double scale, uint64_t seed)
{
    void *p = bench_alloc((size_t)count * (t == INK_F32 ? 4 : 2));
#pragma omp parallel for
    for (int64_t i = 0; i < count; i++)
        store_f32(p, t, i, rng_normal_bits(rng_at(seed, (uint64_t)i)) * (float)scale);
    return p;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(const double *v, int n)
{
    double t[1024];
    n = n > 1024 ? 1024 : n;
    memcpy(t, v, (size_t)n * sizeof *v);
    qsort(t, (size_t)n, sizeof *t, by_value);
    return n & 1 ? t[n / 2] : 0.5 * (t[n / 2 - 1] + t[n / 2]);
}

double bench_min(const double *v, int n)
{
    double best = v[0];
    for (int i = 1; i < n; i++)
        best = v[i] < best ? v[i] : best;
    return best;
}

/* ---- command line ---- */

const char *bench_option(int argc, char **argv, const char *name, const char *otherwise)
{
    const size_t n = strlen(name);
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], "--", 2) && !strncmp(argv[i] + 2, name, n)) {
            if (argv[i][2 + n] == '=')
                return argv[i] + 3 + n;
            if (!argv[i][2 + n])
                return i + 1 < argc && strncmp(argv[i + 1], "--", 2) ? argv[i + 1] : "1";
        }
    return otherwise;
}

bool bench_flag(int argc, char **argv, const char *name) { return bench_option(argc, argv, name, NULL) != NULL; }

int bench_list(const char *text, int64_t *values, int most)
{
    int n = 0;
    for (const char *p = text; *p && n < most; n++) {
        char *end;
        values[n] = strtoll(p, &end, 10);
        if (end == p)
            die("expected comma-separated integers");
        p = *end ? end + 1 : end;
    }
    return n;
}

/* ---- calls ---- */

void bench_device(device *d, const char *isa, int threads)
{
    if (isa && *isa)
        setenv("INK_CPU", isa, 1);
    if (device_open_cpu(d, threads, NULL) != INK_OK)
        die(ink_last_error());
}

void bench_prepare(bench_call *b, const device *d)
{
    strbuf why = {0};
    b->call.threads = d->threads;
    if (op_infer(&b->call) != INK_OK)
        die(ink_last_error());
    if (!(b->kernel = registry_find(d, &b->call, NULL))) {
        registry_explain(d, &b->call, "benchmark", NULL, &why);
        die(strbuf_text(&why));
    }
    b->call.workspace_bytes = b->kernel->workspace ? b->kernel->workspace(&b->call) : 0;
    b->call.workspace = bench_alloc(b->call.workspace_bytes + 64);
}

void bench_run(const bench_call *b)
{
    if (b->kernel->run(&b->call) != INK_OK)
        die(ink_last_error());
}

void bench_release(bench_call *b) { free(b->call.workspace); }
