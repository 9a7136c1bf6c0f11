/* bench_gemv.c - linear and linear_gated for generated tokens (few_rows), as a fraction of the memory-read bandwidth.
 *
 *   bench_gemv [--isa avx2|avx512|amx] [--threads N] [--dtype bf16|f16|f32] [--m 1,4,16,64] [--shapes 2048x1024,..]
 * [--rounds N]
 *              [--weights MB] [--csv] [--cpu-time]
 *
 * A pass runs through copies of the weight that fill --weights MB (default 512), so that every byte comes from memory as it
 * does when a model is decoded; GB/s counts each weight byte once. Bandwidth is measured beside each pass on the same
 * bytes. */
#include "common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    int64_t n, k;
    bool gated;
} shapes[] = {
    {2048, 1024, false}, {256, 1024, false},  {1024, 2048, false},
    {3072, 1024, true},  {1024, 3072, false}, {103424, 1024, false},
};

typedef struct options {
    device device;
    ink_dtype dtype;
    int isa, rounds;
    size_t bytes;
    char *weights;
    bool csv;
} options;

enum { MAX_ROUNDS = 64 };

static void run_shape(const options *o, int64_t m, int64_t n, int64_t k, bool gated)
{
    const size_t one = (size_t)(n * k) * (o->dtype == INK_F32 ? 4 : 2), step = one * (gated ? 2 : 1);
    const int copies = o->bytes / step > 0 ? (int)(o->bytes / step) : 1;
    ink_tensor x, w, up, y;
    bench_call b = {
        .call = {.op = gated ? OP_linear_gated : OP_linear,
                 .in = {&x, &w, gated ? &up : NULL},
                 .out = {&y},
                 .attrs.linear = {.act = gated ? ACT_SILU : ACT_NONE, .few_rows = true, .out_f32 = n > 100000}}};
    ink_tensor_init(&x, o->dtype, 2, (int64_t[]){m, k}, bench_random(o->dtype, m * k, 1, 1));
    ink_tensor_init(&w, o->dtype, 2, (int64_t[]){n, k}, o->weights);
    ink_tensor_init(&up, o->dtype, 2, (int64_t[]){n, k}, o->weights + one);
    bench_prepare(&b, &o->device);
    y.data = bench_alloc(ink_tensor_bytes(&y));
    double time[MAX_ROUNDS], ratio[MAX_ROUNDS], peak[MAX_ROUNDS];
    for (int r = 0; r < o->rounds; r++) {
        double bandwidth = roof_read_bandwidth(o->weights, step * (size_t)copies, o->device.threads);
        peak[r] = roof_gflops(o->isa >= ISA_AVX512 ? ROOF_AVX512 : ROOF_AVX2, o->isa, o->device.threads);
        time[r] = INFINITY;
        for (int pass = 0; pass < 3; pass++) {
            double start = bench_now();
            for (int c = 0; c < copies; c++) {
                w.data = o->weights + (size_t)c * step;
                up.data = (char *)w.data + one;
                bench_run(&b);
            }
            time[r] = fmin(time[r], (bench_now() - start) / copies);
        }
        bandwidth = fmax(bandwidth, roof_read_bandwidth(o->weights, step * (size_t)copies, o->device.threads));
        ratio[r] = (double)step / time[r] * 1e-9 / bandwidth;
    }
    const double t = bench_median(time, o->rounds), gb = (double)step / t * 1e-9,
                 gflops = 2e-9 * (double)(m * n * k) * (gated ? 2 : 1) / t;
    printf(o->csv ? "%lld,%lld,%lld,%s,%.2f,%.2f,%.4f,%.1f,%.4f\n"
                  : "%4lld %7lld %5lld %-36s %9.1f us %7.1f GB/s %6.1f%% of read %8.1f GFLOP/s %6.1f%% of fma\n",
           (long long)m, (long long)n, (long long)k, b.kernel->name, 1e6 * t, gb,
           (o->csv ? 1 : 100) * bench_median(ratio, o->rounds), gflops,
           (o->csv ? 1 : 100) * gflops / bench_median(peak, o->rounds));
    fflush(stdout);
    bench_release(&b);
    free(x.data), free(y.data);
}

int main(int argc, char **argv)
{
    options o = {.csv = bench_flag(argc, argv, "csv")};
    int64_t ms[16], n_ms = bench_list(bench_option(argc, argv, "m", "1,2,4,16,64"), ms, 16);
    const char *only = bench_option(argc, argv, "shapes", NULL);
    cpu_isa have = ISA_PORTABLE;
    cpu_isa_detect(&have);
    o.isa = (int)have;
    bench_device(&o.device, bench_option(argc, argv, "isa", ""), atoi(bench_option(argc, argv, "threads", "0")));
    o.rounds = atoi(bench_option(argc, argv, "rounds", "5"));
    o.rounds = o.rounds < 1 ? 1 : o.rounds > MAX_ROUNDS ? MAX_ROUNDS : o.rounds;
    if (bench_flag(argc, argv, "cpu-time"))
        bench_use_cpu_time();
    if (!ink_dtype_parse(bench_option(argc, argv, "dtype", "bf16"), &o.dtype) || o.dtype == INK_F64) {
        fprintf(stderr, "unknown dtype\n");
        return 2;
    }
    const size_t element = o.dtype == INK_F32 ? 4 : 2, largest = (size_t)103424 * 1024 * element;
    o.bytes = (size_t)atoll(bench_option(argc, argv, "weights", "512")) << 20;
    o.bytes = o.bytes > largest ? o.bytes : largest;
    o.weights = bench_random(o.dtype, (int64_t)(o.bytes / element), 0.03, 3);
    printf("# %s, %s, read %.1f GB/s, medians of %d rounds\n", o.device.name, ink_dtype_name(o.dtype),
           roof_read_bandwidth(o.weights, o.bytes, o.device.threads), o.rounds);
    if (o.csv)
        printf("m,n,k,kernel,us,gbps,of_read,gflops,of_fma\n");
    for (int i = 0; i < n_ms; i++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            char name[48];
            snprintf(name, sizeof name, "%lldx%lld", (long long)shapes[s].n, (long long)shapes[s].k);
            if (!only || strstr(only, name))
                run_shape(&o, ms[i], shapes[s].n, shapes[s].k, shapes[s].gated);
        }
    free(o.weights);
    device_close(&o.device);
    return 0;
}
