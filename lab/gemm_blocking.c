/* gemm_blocking.c - study: how block sizes change the speed of one GEMM tile. Blocking is data (cpu/gemm.h), so a trial is
 * a changed copy of the tile.
 *
 *   lab_gemm_blocking --tile bf16_32x32_amx --m 1024 --n 1152 --k 1152 --kc 256,512,1152 --mc 128,256 --strips
 * 262144,786432
 *                     [--threads 1] [--cpu-time] [--rounds 3] [--calls 4]
 * Prints GFLOP/s, the median over rounds of the best of a few calls, trials interleaved. */
#include "common.h"

#include "cpu/gemm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 8, MAX_ROUNDS = 32, MAX_TRIALS = 512 };

static const struct {
    const char *name;
    const gemm_tile *tile;
    ink_dtype dtype;
} tiles[] = {
    {"bf16_6x16_avx2", &gemm_bf16_6x16_avx2, INK_BF16},
    {"f32_6x16_avx2", &gemm_f32_6x16_avx2, INK_F32},
    {"bf16_14x32_avx512", &gemm_bf16_14x32_avx512, INK_BF16},
    {"f32_14x32_avx512", &gemm_f32_14x32_avx512, INK_F32},
    {"bf16_dot_14x32_avx512", &gemm_bf16_dot_14x32_avx512, INK_BF16},
    {"bf16_32x32_amx", &gemm_bf16_32x32_amx, INK_BF16},
};

static int values(int argc, char **argv, const char *name, int now, int64_t *v)
{
    const char *text = bench_option(argc, argv, name, NULL);
    if (text)
        return bench_list(text, v, MANY);
    v[0] = now;
    return 1;
}

int main(int argc, char **argv)
{
    const char *name = bench_option(argc, argv, "tile", "bf16_6x16_avx2");
    const int rounds = atoi(bench_option(argc, argv, "rounds", "3")), calls = atoi(bench_option(argc, argv, "calls", "4"));
    size_t which = 0;
    device d;
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++)
        which = !strcmp(tiles[i].name, name) ? i : which;
    const gemm_tile *t = tiles[which].tile;
    bench_device(&d, NULL, atoi(bench_option(argc, argv, "threads", "1")));
    if (bench_flag(argc, argv, "cpu-time"))
        bench_use_cpu_time();
    gemm_job j = {.m = atoll(bench_option(argc, argv, "m", "1024")),
                  .n = atoll(bench_option(argc, argv, "n", "1152")),
                  .k = atoll(bench_option(argc, argv, "k", "1152")),
                  .dtype = tiles[which].dtype,
                  .y_dtype = tiles[which].dtype,
                  .threads = d.threads};
    j.x = bench_random(j.dtype, j.m * j.k, 1, 1);
    j.w[0] = bench_random(j.dtype, j.n * j.k, 1 / sqrt((double)j.k), 2);
    j.y = bench_alloc((size_t)(j.m * j.n) * 4);
    int64_t kc[MANY], mc[MANY], sb[MANY];
    const int nk = values(argc, argv, "kc", t->kc, kc), nm = values(argc, argv, "mc", t->mc, mc),
              ns = values(argc, argv, "strips", t->strips_bytes, sb);
    static gemm_tile trial[MAX_TRIALS];
    static double gflops[MAX_TRIALS][MAX_ROUNDS];
    int trials = 0;
    size_t scratch = 0;
    for (int i = 0; i < nk * nm * ns && trials < MAX_TRIALS; i++, trials++) {
        trial[i] = *t;
        trial[i].kc = (int)kc[i % nk];
        trial[i].mc = (int)mc[i / nk % nm];
        trial[i].strips_bytes = (int)sb[i / nk / nm];
        size_t need = gemm_scratch_bytes(&trial[i], j.m, j.n, j.k, 1, d.threads);
        scratch = need > scratch ? need : scratch;
    }
    j.scratch = bench_alloc(scratch);
    for (int r = 0; r < rounds && r < MAX_ROUNDS; r++)
        for (int i = 0; i < trials; i++) {
            double best = INFINITY;
            for (int call = 0; call < calls; call++) {
                double start = bench_now();
                gemm_run(&trial[i], &j);
                double time = bench_now() - start;
                best = call && time < best ? time : best;
            }
            gflops[i][r] = 2e-9 * (double)j.m * (double)j.n * (double)j.k / best;
        }
    printf("%s m %lld n %lld k %lld\n%6s %6s %8s %9s\n", name, (long long)j.m, (long long)j.n, (long long)j.k, "kc", "mc",
           "strips", "GFLOP/s");
    for (int i = 0; i < trials; i++)
        printf("%6d %6d %8d %9.1f\n", trial[i].kc, trial[i].mc, trial[i].strips_bytes, bench_median(gflops[i], rounds));
    return 0;
}
