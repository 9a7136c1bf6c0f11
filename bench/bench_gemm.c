/* bench_gemm.c - linear at the model's shapes, beside OpenBLAS and oneDNN, as a fraction of measured ceilings.
 *
 *   bench_gemm [--isa avx2|avx512|amx] [--threads N] [--dtype bf16|f16|f32] [--m 256,1024,4744] [--shapes 1152x1152,..]
 *              [--act none|gelu_tanh|..] [--peer openblas|onednn|all|none] [--peer-dtype f32|bf16] [--peer-free] [--rounds
 * N] [--csv]
 *              [--cpu-time]    (with --threads 1: processor time, for a machine that is shared)
 *
 * Ours: 16-bit or FP32 operands, weights as stored, packing timed. Peers: FP32 (or --peer-dtype bf16) operands, oneDNN's
 * weights reordered beforehand. Peers that can be capped run with our instruction set unless --peer-free.
 * A round runs everything once in turn (best of a few calls each); figures are medians over rounds. */
#include "common.h"

#include "peer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    int64_t n, k;
} model_shapes[] = {
    {1152, 1152}, {4304, 1152}, {1152, 4304}, {3456, 1152}, {4608, 4608}, {1024, 4608}, /* vision tower, projector */
    {2048, 1024}, {256, 1024},  {1024, 2048}, {3072, 1024}, {1024, 3072},               /* text */
};

static const peer *const peers[] = {
#ifdef BENCH_HAVE_OPENBLAS
    &peer_openblas,
#endif
#ifdef BENCH_HAVE_ONEDNN
    &peer_onednn,
#endif
    NULL,
};

enum { MAX_PEERS = 2, MAX_ROUNDS = 64 };

typedef struct options {
    device device;
    int peak_isa, rounds; /* peak_isa: what the processor has */
    ink_dtype dtype, peer_dtype;
    activation act;
    const peer *peers[MAX_PEERS];
    int n_peers;
    bool csv;
} options;

typedef struct result {
    roof own;
    double gflops, peak[ROOF_COUNT], of_peak, peer_ratio[MAX_PEERS]; /* peer's time over ours */
} result;

/* Best time of some calls in a row, after a pause in which other libraries' threads stop spinning. */
#define BEST(calls, statement)                         \
    ({                                                 \
        double best_ = INFINITY;                       \
        usleep(20000);                                 \
        statement;                                     \
        for (int i_ = 0; i_ < (calls); i_++) {         \
            double start_ = bench_now();               \
            statement;                                 \
            best_ = fmin(best_, bench_now() - start_); \
        }                                              \
        best_;                                         \
    })

/* The loop that does what the kernel's inner loop does. */
static roof own_peak(const kernel *k)
{
    if (k->isa == ISA_AMX)
        return ROOF_AMX_BF16;
    return k->isa == ISA_AVX512 ? (strstr(k->name, "_dot_") ? ROOF_AVX512_BF16 : ROOF_AVX512) : ROOF_AVX2;
}

static void measure(const options *o, bench_call *b, void *const *state, double flops, result *r)
{
    double ours[MAX_ROUNDS], peak[ROOF_COUNT][MAX_ROUNDS], of[MAX_ROUNDS], ratio[MAX_PEERS][MAX_ROUNDS];
    r->own = own_peak(b->kernel);
    const int calls = flops > 2e10 ? 2 : flops > 2e9 ? 4 : 12;
    for (int t = 0; t < o->rounds; t++) {
        for (int p = 0; p < ROOF_COUNT; p++)
            peak[p][t] = roof_gflops((roof)p, o->peak_isa, o->device.threads);
        ours[t] = BEST(calls, bench_run(b));
        for (int p = 0; p < o->n_peers; p++)
            ratio[p][t] = state[p] ? BEST(calls, o->peers[p]->run(state[p])) / ours[t] : NAN;
        of[t] = flops / ours[t] * 1e-9 / peak[r->own][t];
    }
    r->gflops = flops / bench_median(ours, o->rounds) * 1e-9;
    r->of_peak = bench_median(of, o->rounds);
    for (int p = 0; p < ROOF_COUNT; p++)
        r->peak[p] = bench_median(peak[p], o->rounds);
    for (int p = 0; p < o->n_peers; p++)
        r->peer_ratio[p] = bench_median(ratio[p], o->rounds);
}

static void print_head(const options *o)
{
    printf(o->csv ? "m,n,k,kernel,gflops,of_peak,avx2_fma,avx512_fma,avx512_dot,amx_loop" : "%6s %5s %5s %-28s %9s %7s",
           "m", "n", "k", "kernel", "GFLOP/s", "of peak");
    for (int p = 0; p < o->n_peers; p++)
        printf(o->csv ? ",time_%s_over_ours" : " %9s", o->peers[p]->name);
    printf("\n");
}

static void print_row(const options *o, const bench_call *b, int64_t m, int64_t n, int64_t k, const result *r)
{
    if (o->csv)
        printf("%lld,%lld,%lld,%s,%.1f,%.4f,%.1f,%.1f,%.1f,%.1f", (long long)m, (long long)n, (long long)k, b->kernel->name,
               r->gflops, r->of_peak, r->peak[0], r->peak[1], r->peak[2], r->peak[3]);
    else
        printf("%6lld %5lld %5lld %-28s %9.1f %6.1f%%", (long long)m, (long long)n, (long long)k, b->kernel->name,
               r->gflops, 100 * r->of_peak);
    for (int p = 0; p < o->n_peers; p++)
        printf(o->csv ? ",%.3f" : " %8.3fx", r->peer_ratio[p]);
    printf("\n");
    fflush(stdout);
}

static void run_shape(const options *o, int64_t m, int64_t n, int64_t k, result *r)
{
    ink_tensor x, w, y;
    bench_call b = {.call = {.op = OP_linear, .in = {&x, &w}, .out = {&y}, .attrs.linear = {.act = o->act}}};
    void *state[MAX_PEERS] = {0};
    ink_tensor_init(&x, o->dtype, 2, (int64_t[]){m, k}, bench_random(o->dtype, m * k, 1, 1));
    ink_tensor_init(&w, o->dtype, 2, (int64_t[]){n, k}, bench_random(o->dtype, n * k, 1 / sqrt((double)k), 2));
    bench_prepare(&b, &o->device);
    y.data = bench_alloc(ink_tensor_bytes(&y));
    float *fa = NULL, *fw = NULL, *fc = NULL;
    if (o->n_peers) {
        fa = bench_random(INK_F32, m * k, 1, 1);
        fw = bench_random(INK_F32, n * k, 1 / sqrt((double)k), 2);
        fc = bench_alloc((size_t)(m * n) * 4);
    }
    for (int p = 0; p < o->n_peers; p++)
        state[p] = o->peers[p]->create(o->peer_dtype, fa, fw, fc, m, n, k, o->device.threads);
    measure(o, &b, state, 2.0 * (double)m * (double)n * (double)k, r);
    print_row(o, &b, m, n, k, r);
    for (int p = 0; p < o->n_peers; p++)
        if (state[p])
            o->peers[p]->destroy(state[p]);
    bench_release(&b);
    free(x.data), free(w.data), free(y.data), free(fa), free(fw), free(fc);
}

static void print_summary(const options *o, int64_t m, const result *r, int n)
{
    double of = 0, ratio[MAX_PEERS] = {0}, least[MAX_PEERS] = {INFINITY, INFINITY}, faster = 0;
    for (int i = 0; i < n; i++) {
        double best = INFINITY;
        of += log(r[i].of_peak) / n;
        for (int p = 0; p < o->n_peers; p++) {
            ratio[p] += log(r[i].peer_ratio[p]) / n;
            least[p] = fmin(least[p], r[i].peer_ratio[p]);
            best = fmin(best, r[i].peer_ratio[p]);
        }
        faster += log(best) / n;
    }
    printf("# m %lld: geometric mean %.1f%% of %s", (long long)m, 100 * exp(of), roof_name(r[0].own));
    for (int p = 0; p < o->n_peers; p++)
        printf("; %s %.3fx, least %.3fx", o->peers[p]->name, exp(ratio[p]), least[p]);
    if (o->n_peers)
        printf("; the faster of them %.3fx", exp(faster));
    printf("\n");
}

static activation parse_act(const char *name)
{
    for (int a = 0; a < ACT_COUNT; a++)
        if (!strcmp(name, activation_name((activation)a)))
            return (activation)a;
    fprintf(stderr, "unknown activation %s\n", name);
    exit(2);
}

static void parse(int argc, char **argv, options *o)
{
    const char *isa = bench_option(argc, argv, "isa", ""), *who = bench_option(argc, argv, "peer", "all");
    cpu_isa have = ISA_PORTABLE;
    cpu_isa_detect(&have);
    o->peak_isa = (int)have;
    bench_device(&o->device, isa, atoi(bench_option(argc, argv, "threads", "0")));
    o->rounds = atoi(bench_option(argc, argv, "rounds", "5"));
    o->rounds = o->rounds < 1 ? 1 : o->rounds > MAX_ROUNDS ? MAX_ROUNDS : o->rounds;
    o->act = parse_act(bench_option(argc, argv, "act", "none"));
    o->csv = bench_flag(argc, argv, "csv");
    if (bench_flag(argc, argv, "cpu-time"))
        bench_use_cpu_time();
    if (!ink_dtype_parse(bench_option(argc, argv, "dtype", "bf16"), &o->dtype) ||
        !ink_dtype_parse(bench_option(argc, argv, "peer-dtype", "f32"), &o->peer_dtype)) {
        fprintf(stderr, "unknown dtype\n");
        exit(2);
    }
    for (int p = 0; peers[p]; p++)
        if (!strcmp(who, "all") || !strcmp(who, peers[p]->name)) {
            o->peers[o->n_peers++] = peers[p];
            peers[p]->limit(bench_flag(argc, argv, "peer-free") ? NULL : cpu_isa_name((cpu_isa)o->device.isa));
        }
}

int main(int argc, char **argv)
{
    options o = {0};
    int64_t ms[16], n_ms = bench_list(bench_option(argc, argv, "m", "256,1024,4744"), ms, 16);
    const char *shapes = bench_option(argc, argv, "shapes", NULL);
    parse(argc, argv, &o);
    printf("# %s, %s, %d threads, act %s, medians of %d rounds\n", o.device.name, ink_dtype_name(o.dtype), o.device.threads,
           activation_name(o.act), o.rounds);
    for (int p = 0; p < o.n_peers; p++)
        printf("# peer %s: %s, %s\n", o.peers[p]->name, o.peers[p]->about(), ink_dtype_name(o.peer_dtype));
    for (int p = 0; p < ROOF_COUNT; p++)
        printf("# %s: %.1f GFLOP/s\n", roof_name((roof)p), roof_gflops((roof)p, o.peak_isa, o.device.threads));
    print_head(&o);
    for (int i = 0; i < n_ms; i++) {
        result r[32];
        int n = 0;
        for (size_t s = 0; s < sizeof model_shapes / sizeof *model_shapes; s++) {
            char name[48];
            snprintf(name, sizeof name, "%lldx%lld", (long long)model_shapes[s].n, (long long)model_shapes[s].k);
            if (!shapes || strstr(shapes, name))
                run_shape(&o, ms[i], model_shapes[s].n, model_shapes[s].k, &r[n++]);
        }
        if (n)
            print_summary(&o, ms[i], r, n);
    }
    device_close(&o.device);
    return 0;
}
