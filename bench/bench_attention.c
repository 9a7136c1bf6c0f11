/* bench_attention.c - attention at the model's shapes, as a fraction of ceilings measured beside each figure.
 *
 *   bench_attention [--isa avx2|avx512|amx] [--threads N] [--dtype bf16|f16|f32] [--rounds N] [--only
 * vision|prefill|decode|softmax]
 *                   [--n 256,1024,4096] [--contexts 256,2048,8192] [--batches 1,8] [--pool MIB] [--cpu-time]
 *
 * vision: 16 heads of 72, one image of N patches, 4 N^2 D H operations against the FMA and tile ceilings.
 * prefill: a prompt of N tokens, 16 query and 2 key heads of 128, causal, paged: 2 N (N + 1) D H operations.
 * decode: one token per sequence; bytes of keys and values (each once) against the read bandwidth. Calls walk through a
 *   pool larger than the caches, as the layers of a model do, so that they find nothing cached.
 * softmax: 4096 rows of N, bytes in and out against the read bandwidth.
 * Figures are medians over rounds. --cpu-time: with --threads 1, on a machine that others use too. */
#include "common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROUNDS = 64 };

typedef struct options {
    device device;
    ink_dtype dtype;
    int isa, rounds; /* isa: of the processor */
    size_t pool_bytes;
    const void *memory; /* for the read bandwidth */
} options;

static double best_of(const bench_call *b, int calls)
{
    double best = INFINITY;
    bench_run(b);
    for (int i = 0; i < calls; i++) {
        double start = bench_now();
        bench_run(b);
        best = fmin(best, bench_now() - start);
    }
    return best;
}

static void against_peaks(const options *o, const bench_call *b, const char *what, double flops)
{
    double seconds[MAX_ROUNDS], share[ROOF_COUNT][MAX_ROUNDS];
    const int calls = flops > 2e10 ? 1 : flops > 2e9 ? 3 : 8;
    for (int r = 0; r < o->rounds; r++) {
        double before[ROOF_COUNT];
        for (int p = 0; p < ROOF_COUNT; p++)
            before[p] = roof_gflops((roof)p, o->isa, o->device.threads);
        seconds[r] = best_of(b, calls);
        for (int p = 0; p < ROOF_COUNT; p++)
            share[p][r] = before[p] > 0 ? flops / seconds[r] * 1e-9 / before[p] : 0;
    }
    double s = bench_median(seconds, o->rounds);
    printf("%-34s %-34s %9.3f ms %8.1f GFLOP/s", what, b->kernel->name, s * 1e3, flops / s * 1e-9);
    for (int p = 0; p < ROOF_COUNT; p++)
        printf("  %s %.1f%%", roof_name((roof)p), 100 * bench_median(share[p], o->rounds));
    printf("\n");
    fflush(stdout);
}

static void vision(const options *o, int64_t n)
{
    enum { H = 16, D = 72 };
    ink_tensor q, k, v, cu, y;
    int32_t starts[2] = {0, (int32_t)n};
    bench_call b = {.call = {.op = OP_attention, .in = {&q, &k, &v, &cu}, .out = {&y}}};
    b.call.attrs.attention = (attention_attrs){.scale = 1 / sqrtf(D)};
    ink_tensor_init(&q, o->dtype, 3, (int64_t[]){n, H, D}, bench_random(o->dtype, n * H * D, 1.5, 1));
    ink_tensor_init(&k, o->dtype, 3, (int64_t[]){n, H, D}, bench_random(o->dtype, n * H * D, 1, 2));
    ink_tensor_init(&v, o->dtype, 3, (int64_t[]){n, H, D}, bench_random(o->dtype, n * H * D, 1, 3));
    ink_tensor_init(&cu, INK_I32, 1, (int64_t[]){2}, starts);
    bench_prepare(&b, &o->device);
    y.data = bench_alloc(ink_tensor_bytes(&y));
    char what[64];
    snprintf(what, sizeof what, "vision n%lld h16 d72", (long long)n);
    against_peaks(o, &b, what, 4.0 * (double)n * (double)n * D * H);
    bench_release(&b);
    free(q.data), free(k.data), free(v.data), free(y.data);
}

/* Pools, tables and lengths of `batch` sequences with `keys` keys each, the last `queries` of them in the call. */
typedef struct paged {
    ink_tensor q, k, v, table, lengths, cu, y;
    int64_t blocks, width;
} paged;
enum { HEADS = 16, KV = 2, DIM = 128 };

static void paged_open(const options *o, paged *p, bench_call *b, int64_t batch, int64_t keys, int64_t queries,
                       size_t pool_bytes)
{
    const int64_t block_elements = KV * KV_BLOCK * DIM, element = (int64_t)ink_dtype_size(o->dtype);
    p->width = (keys + KV_BLOCK - 1) / KV_BLOCK;
    p->blocks = (int64_t)(pool_bytes / 2) / (block_elements * element);
    p->blocks = p->blocks < batch * p->width ? batch * p->width : p->blocks;
    const int64_t rows = batch * queries, pool[4] = {p->blocks, KV, KV_BLOCK, DIM};
    *b = (bench_call){
        .call = {.op = OP_paged_attention, .in = {&p->q, &p->k, &p->v, &p->table, &p->lengths, &p->cu}, .out = {&p->y}}};
    b->call.attrs.attention = (attention_attrs){.scale = 1 / sqrtf(DIM), .causal = true, .few_rows = queries == 1};
    ink_tensor_init(&p->q, o->dtype, 3, (int64_t[]){rows, HEADS, DIM}, bench_random(o->dtype, rows * HEADS * DIM, 1.5, 1));
    ink_tensor_init(&p->k, o->dtype, 4, pool, bench_random(o->dtype, p->blocks * block_elements, 1, 2));
    ink_tensor_init(&p->v, o->dtype, 4, pool, bench_random(o->dtype, p->blocks * block_elements, 1, 3));
    ink_tensor_init(&p->table, INK_I32, 2, (int64_t[]){batch, p->width}, bench_alloc((size_t)(batch * p->width) * 4));
    ink_tensor_init(&p->lengths, INK_I32, 1, (int64_t[]){batch}, bench_alloc((size_t)batch * 4));
    ink_tensor_init(&p->cu, INK_I32, 1, (int64_t[]){batch + 1}, bench_alloc((size_t)(batch + 1) * 4));
    for (int64_t s = 0; s < batch; s++) {
        ((int32_t *)p->lengths.data)[s] = (int32_t)keys;
        ((int32_t *)p->cu.data)[s + 1] = (int32_t)((s + 1) * queries);
    }
    bench_prepare(b, &o->device);
    p->y.data = bench_alloc(ink_tensor_bytes(&p->y));
}

/* Blocks from `next` on, with a stride that spreads neighbours over the pool; returns the next one. */
static int64_t paged_fill(paged *p, int64_t next)
{
    int64_t stride = p->blocks / 2 | 1;
    while (p->blocks % stride == 0 && stride > 1)
        stride -= 2;
    for (int64_t i = 0, n = ink_tensor_numel(&p->table); i < n; i++)
        ((int32_t *)p->table.data)[i] = (int32_t)((next + i) * stride % p->blocks);
    return next + ink_tensor_numel(&p->table);
}

static void paged_close(paged *p, bench_call *b)
{
    bench_release(b);
    free(p->q.data), free(p->k.data), free(p->v.data), free(p->table.data), free(p->lengths.data), free(p->cu.data),
        free(p->y.data);
}

static void prefill(const options *o, int64_t n)
{
    paged p;
    bench_call b;
    char what[64];
    paged_open(o, &p, &b, 1, n, n, 0);
    paged_fill(&p, 0);
    snprintf(what, sizeof what, "prefill n%lld h16:2 d128 causal", (long long)n);
    against_peaks(o, &b, what, 2.0 * (double)n * (double)(n + 1) * DIM * HEADS);
    paged_close(&p, &b);
}

static void decode(const options *o, int64_t batch, int64_t keys)
{
    paged p;
    bench_call b;
    double seconds[MAX_ROUNDS], share[MAX_ROUNDS], read[MAX_ROUNDS];
    paged_open(o, &p, &b, batch, keys, 1, o->pool_bytes);
    const double bytes = 2.0 * (double)(batch * keys) * KV * DIM * (double)ink_dtype_size(o->dtype);
    const int64_t calls = p.blocks / (batch * p.width);
    int64_t next = 0;
    for (int r = 0; r < o->rounds; r++) {
        read[r] = roof_read_bandwidth(o->memory, o->pool_bytes, o->device.threads);
        double spent = 0;
        for (int64_t i = 0; i < calls; i++) {
            next = paged_fill(&p, next);
            double start = bench_now();
            bench_run(&b);
            spent += bench_now() - start;
        }
        seconds[r] = spent / (double)calls;
        share[r] = bytes / seconds[r] * 1e-9 / read[r];
    }
    char what[64];
    snprintf(what, sizeof what, "decode b%lld ctx%lld h16:2 d128", (long long)batch, (long long)keys);
    printf("%-34s %-34s %9.1f us %8.1f GB/s  %.1f%% of read bandwidth %.1f GB/s\n", what, b.kernel->name,
           bench_median(seconds, o->rounds) * 1e6, bytes / bench_median(seconds, o->rounds) * 1e-9,
           100 * bench_median(share, o->rounds), bench_median(read, o->rounds));
    fflush(stdout);
    paged_close(&p, &b);
}

static void softmax(const options *o, int64_t n)
{
    enum { ROWS = 4096 };
    ink_tensor x, y;
    bench_call b = {.call = {.op = OP_softmax, .in = {&x}, .out = {&y}, .attrs.axis = {-1}}};
    double seconds[MAX_ROUNDS], share[MAX_ROUNDS];
    ink_tensor_init(&x, o->dtype, 2, (int64_t[]){ROWS, n}, bench_random(o->dtype, ROWS * n, 1, 1));
    bench_prepare(&b, &o->device);
    y.data = bench_alloc(ink_tensor_bytes(&y));
    const double bytes = 2.0 * (double)ink_tensor_bytes(&x);
    for (int r = 0; r < o->rounds; r++) {
        double read = roof_read_bandwidth(o->memory, o->pool_bytes, o->device.threads);
        seconds[r] = best_of(&b, 3);
        share[r] = bytes / seconds[r] * 1e-9 / read;
    }
    double s = bench_median(seconds, o->rounds);
    printf("softmax %d x %-19lld %-34s %9.3f ms %8.1f GB/s  %.1f%% of read bandwidth\n", ROWS, (long long)n, b.kernel->name,
           s * 1e3, bytes / s * 1e-9, 100 * bench_median(share, o->rounds));
    bench_release(&b);
    free(x.data), free(y.data);
}

static bool wanted(const char *only, const char *what) { return !*only || !strcmp(only, what); }

int main(int argc, char **argv)
{
    options o = {0};
    device whole;
    int64_t n[16], contexts[16], batches[16];
    const char *only = bench_option(argc, argv, "only", "");
    bench_device(&whole, NULL, 0);
    o.isa = whole.isa;
    device_close(&whole);
    bench_device(&o.device, bench_option(argc, argv, "isa", ""), atoi(bench_option(argc, argv, "threads", "0")));
    o.rounds = atoi(bench_option(argc, argv, "rounds", "5"));
    o.rounds = o.rounds < 1 ? 1 : o.rounds > MAX_ROUNDS ? MAX_ROUNDS : o.rounds;
    o.pool_bytes = (size_t)atoi(bench_option(argc, argv, "pool", "512")) << 20;
    if (!ink_dtype_parse(bench_option(argc, argv, "dtype", "bf16"), &o.dtype)) {
        fprintf(stderr, "--dtype: expected bf16, f16 or f32\n");
        return 2;
    }
    if (bench_flag(argc, argv, "cpu-time"))
        bench_use_cpu_time();
    o.memory = bench_alloc(o.pool_bytes);
    printf("%s, %s\n", o.device.name, ink_dtype_name(o.dtype));
    int sizes = bench_list(bench_option(argc, argv, "n", "256,1024,4096"), n, 16);
    for (int i = 0; wanted(only, "vision") && i < sizes; i++)
        vision(&o, n[i]);
    for (int i = 0; wanted(only, "prefill") && i < sizes; i++)
        prefill(&o, n[i]);
    int n_contexts = bench_list(bench_option(argc, argv, "contexts", "256,2048,8192"), contexts, 16);
    int n_batches = bench_list(bench_option(argc, argv, "batches", "1,8"), batches, 16);
    for (int i = 0; wanted(only, "decode") && i < n_contexts; i++)
        for (int j = 0; j < n_batches; j++)
            decode(&o, batches[j], contexts[i]);
    for (int i = 0; wanted(only, "softmax") && i < sizes; i++)
        softmax(&o, n[i]);
    free((void *)o.memory);
    device_close(&o.device);
    return 0;
}
