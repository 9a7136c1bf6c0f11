/* bench_conv.c - conv2d at shapes of the document models and the VLM's patch embedding, beside oneDNN FP32, as a fraction
 * of the measured multiply-add ceiling.
 *
 *   bench_conv [--isa avx2|avx512|amx] [--threads N] [--dtype bf16|f16|f32] [--layout nhwc|nchw|both] [--shape NAME]
 *              [--rounds N] [--no-peer] [--cpu-time]    (with --threads 1: processor time, for a machine that is shared)
 *
 * Ours: weights as stored, packing timed. oneDNN: FP32 operands, every layout of its own choice, weights reordered
 * beforehand, our instruction set as its cap. A round runs all of a shape once in turn; figures are medians over rounds. */
#include "common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef BENCH_HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

typedef struct shape {
    const char *name;
    int64_t n, c, in, m, k, stride, pad;
} shape;

static const shape shapes[] = {
    {"patch-1024", 1024, 3, 14, 1152, 14, 14, 0},  {"patch-4744", 4744, 3, 14, 1152, 14, 14, 0},
    {"L1-stem", 1, 3, 800, 32, 3, 2, 1},           {"L4-stem3", 1, 64, 400, 32, 3, 2, 1},
    {"L6-stage1", 1, 48, 200, 48, 3, 1, 1},        {"L7-squeeze", 1, 336, 200, 64, 1, 1, 0},
    {"L9-stage2", 1, 96, 100, 96, 3, 1, 1},        {"L12-pointwise", 1, 192, 50, 192, 1, 1, 0},
    {"L14-squeeze", 1, 2176, 50, 512, 1, 1, 0},    {"L19-excite", 1, 1024, 25, 2048, 1, 1, 0},
    {"L23-RepVGG-100", 1, 256, 100, 256, 3, 1, 1}, {"L23-RepVGG-25", 1, 256, 25, 256, 3, 1, 1},
    {"L24-down", 1, 256, 100, 256, 3, 2, 1},       {"L26-mask", 1, 64, 100, 64, 3, 1, 1},
};
enum { MAX_ROUNDS = 64 };

static int64_t out_size(const shape *s) { return (s->in + 2 * s->pad - s->k) / s->stride + 1; }
static double gflop(const shape *s)
{
    return 2e-9 * (double)(s->n * s->m * s->c * s->k * s->k) * (double)(out_size(s) * out_size(s));
}

/* ---- oneDNN ---- */

typedef struct peer_conv {
#ifdef BENCH_HAVE_ONEDNN
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[4];
    dnnl_exec_arg_t args[4];
#endif
    const char *implementation;
} peer_conv;

#ifdef BENCH_HAVE_ONEDNN
static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void check(dnnl_status_t s, const char *what)
{
    if (s != dnnl_success) {
        fprintf(stderr, "oneDNN: %s: status %d\n", what, (int)s);
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

static void limit_peer(int isa)
{
    CHECK(dnnl_set_max_cpu_isa(isa == ISA_AVX2 ? dnnl_cpu_isa_avx2 : dnnl_cpu_isa_avx512_core_bf16));
    CHECK(dnnl_engine_create(&engine, dnnl_cpu, 0));
    CHECK(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
}

static peer_conv create_peer(const shape *s)
{
    static const int argument[4] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST};
    static const dnnl_query_t query[4] = {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_weights_md,
                                          dnnl_query_dst_md};
    const int64_t o = out_size(s);
    dnnl_memory_desc_t x, w, b, y;
    dnnl_convolution_desc_t d;
    dnnl_primitive_desc_t pd;
    peer_conv p = {0};
    CHECK(dnnl_memory_desc_init_by_tag(&x, 4, (dnnl_dims_t){s->n, s->c, s->in, s->in}, dnnl_f32, dnnl_format_tag_any));
    CHECK(dnnl_memory_desc_init_by_tag(&w, 4, (dnnl_dims_t){s->m, s->c, s->k, s->k}, dnnl_f32, dnnl_format_tag_any));
    CHECK(dnnl_memory_desc_init_by_tag(&b, 1, (dnnl_dims_t){s->m}, dnnl_f32, dnnl_a));
    CHECK(dnnl_memory_desc_init_by_tag(&y, 4, (dnnl_dims_t){s->n, s->m, o, o}, dnnl_f32, dnnl_format_tag_any));
    CHECK(dnnl_convolution_forward_desc_init(&d, dnnl_forward_inference, dnnl_convolution_direct, &x, &w, &b, &y,
                                             (dnnl_dims_t){s->stride, s->stride}, (dnnl_dims_t){s->pad, s->pad},
                                             (dnnl_dims_t){s->pad, s->pad}));
    CHECK(dnnl_primitive_desc_create(&pd, &d, NULL, engine, NULL));
    CHECK(dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &p.implementation));
    for (int i = 0; i < 4; i++) {
        const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, query[i], i == 2);
        void *data;
        CHECK(dnnl_memory_create(&p.memory[i], md, engine, DNNL_MEMORY_ALLOCATE));
        CHECK(dnnl_memory_get_data_handle(p.memory[i], &data));
        for (size_t e = 0; e < dnnl_memory_desc_get_size(md) / sizeof(float); e++)
            ((float *)data)[e] = (float)((e * 2654435761u >> 7) % 1000) * 1e-3f - 0.5f;
        p.args[i] = (dnnl_exec_arg_t){argument[i], p.memory[i]};
    }
    CHECK(dnnl_primitive_create(&p.primitive, pd));
    dnnl_primitive_desc_destroy(pd);
    return p;
}

static void run_peer(const peer_conv *p)
{
    CHECK(dnnl_primitive_execute(p->primitive, stream, 4, p->args));
    CHECK(dnnl_stream_wait(stream));
}

static void destroy_peer(peer_conv *p)
{
    dnnl_primitive_destroy(p->primitive);
    for (int i = 0; i < 4; i++)
        dnnl_memory_destroy(p->memory[i]);
}
#endif

/* ---- ours ---- */

typedef struct own_conv {
    bench_call call;
    ink_tensor x, w, bias, y;
} own_conv;

static void create_own(own_conv *o, const shape *s, ink_dtype t, ink_layout layout, const device *d)
{
    *o = (own_conv){0};
    ink_tensor_init(&o->x, t, 4,
                    layout == INK_NHWC ? (int64_t[]){s->n, s->in, s->in, s->c} : (int64_t[]){s->n, s->c, s->in, s->in},
                    NULL);
    ink_tensor_init(&o->w, t, 4, (int64_t[]){s->m, s->c, s->k, s->k}, NULL);
    ink_tensor_init(&o->bias, t, 1, &s->m, NULL);
    o->x.layout = layout;
    o->x.data = bench_random(t, ink_tensor_numel(&o->x), 1, 1);
    o->w.data = bench_random(t, ink_tensor_numel(&o->w), 0.05, 2);
    o->bias.data = bench_random(t, s->m, 1, 3);
    o->call.call = (op_call){
        .op = OP_conv2d,
        .in = {&o->x, &o->w, &o->bias},
        .out = {&o->y},
        .attrs.conv2d = {{s->stride, s->stride}, {s->pad, s->pad, s->pad, s->pad}, {1, 1}, 1, PAD_EXPLICIT, ACT_NONE}};
    bench_prepare(&o->call, d);
    o->y.data = bench_alloc(ink_tensor_bytes(&o->y));
}

static void destroy_own(own_conv *o)
{
    bench_release(&o->call);
    free(o->x.data), free(o->w.data), free(o->bias.data), free(o->y.data);
}

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

typedef struct options {
    device device;
    ink_dtype dtype;
    int rounds, peak_isa;
    bool peer;
} options;

static void measure(const options *o, const shape *s, ink_layout layout)
{
    const double work = gflop(s);
    const int calls = work > 2 ? 3 : work > 0.3 ? 6 : 20;
    double speed[MAX_ROUNDS], share[MAX_ROUNDS], ratio[MAX_ROUNDS];
    own_conv own;
    peer_conv peer = {.implementation = ""};
    create_own(&own, s, o->dtype, layout, &o->device);
#ifdef BENCH_HAVE_ONEDNN
    if (o->peer)
        peer = create_peer(s);
#endif
    const roof ceiling = o->device.isa == ISA_AVX2 ? ROOF_AVX2 : ROOF_AVX512; /* also for amx rows: above 100 % there */
    for (int r = 0; r < o->rounds; r++) {
        double peak = roof_gflops(ceiling, o->peak_isa, o->device.threads), mine = BEST(calls, bench_run(&own.call)),
               its = NAN;
#ifdef BENCH_HAVE_ONEDNN
        if (o->peer)
            its = BEST(calls, run_peer(&peer));
#endif
        peak = fmax(peak, roof_gflops(ceiling, o->peak_isa, o->device.threads));
        speed[r] = work / mine;
        share[r] = work / mine / peak * 100;
        ratio[r] = its / mine;
    }
    printf("%-15s %-4s %8.2f %8.1f %6.1f", s->name, ink_layout_name(layout), work, bench_median(speed, o->rounds),
           bench_median(share, o->rounds));
    if (o->peer)
        printf(" %7.2f", bench_median(ratio, o->rounds));
    printf("  %s%s%s\n", own.call.kernel->name, o->peer ? " against " : "", peer.implementation);
    fflush(stdout);
#ifdef BENCH_HAVE_ONEDNN
    if (o->peer)
        destroy_peer(&peer);
#endif
    destroy_own(&own);
}

int main(int argc, char **argv)
{
    options o = {.rounds = atoi(bench_option(argc, argv, "rounds", "5"))};
    const char *layout = bench_option(argc, argv, "layout", "both"), *only = bench_option(argc, argv, "shape", "");
    device whole;
    if (!ink_dtype_parse(bench_option(argc, argv, "dtype", "bf16"), &o.dtype) || o.rounds < 1 || o.rounds > MAX_ROUNDS) {
        fprintf(stderr, "bench_conv: --dtype bf16|f16|f32, --rounds 1 to %d\n", MAX_ROUNDS);
        return 2;
    }
    bench_device(&whole, NULL, 1);
    bench_device(&o.device, bench_option(argc, argv, "isa", NULL), atoi(bench_option(argc, argv, "threads", "0")));
    o.peak_isa = whole.isa;
    if (bench_flag(argc, argv, "cpu-time"))
        bench_use_cpu_time();
#ifdef BENCH_HAVE_ONEDNN
    o.peer = !bench_flag(argc, argv, "no-peer");
    if (o.peer)
        limit_peer(o.device.isa);
#endif
    printf("%s, %s; oneDNN: FP32, its time over ours\n", o.device.name, ink_dtype_name(o.dtype));
    printf("%-15s %-4s %8s %8s %6s%s\n", "shape", "", "GFLOP", "GFLOP/s", "% FMA", o.peer ? "   ratio" : "");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int l = 0; l < 2; l++)
            if (!*only || !strcmp(only, shapes[i].name))
                if (strcmp(layout, l ? "nhwc" : "nchw"))
                    measure(&o, &shapes[i], l ? INK_NCHW : INK_NHWC);
    device_close(&whole);
    device_close(&o.device);
    return 0;
}
