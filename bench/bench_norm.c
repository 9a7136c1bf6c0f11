/* bench_norm.c - norms, rotary embedding, elementwise ops, casts, lookups, arg-max and sampling, as a fraction of memcpy.
 *
 *   bench_norm [--isa portable|avx2|avx512] [--threads N] [--dtype bf16|f16|f32] [--op NAME] [--rounds N] [--cpu-time]
 *
 * GB/s counts each input and output byte once. The ceiling is memcpy of half as many bytes (read once, written once),
 * shared out over the same threads and timed in turns with the kernel, so that both find the data in the same cache. */
#include "common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    op_id op;
    const char *note;
    int64_t rows, width, heads; /* rope: rows x heads x width */
    op_attrs attrs;
} shape;

static const shape shapes[] = {
    {OP_layer_norm, "vision, 1024 patches", 1024, 1152, 0, {.norm = {1e-6f, 1}}},
    {OP_layer_norm, "vision, 4070 patches", 4070, 1152, 0, {.norm = {1e-6f, 1}}},
    {OP_rms_norm, "prefill, 1024 tokens", 1024, 1024, 0, {.norm = {1e-5f, 1}}},
    {OP_rms_norm, "decode, 1 token", 1, 1024, 0, {.norm = {1e-5f, 1}}},
    {OP_rope, "vision", 1024, 72, 16, {.norm = {0, 0}}},
    {OP_rope, "prefill", 1024, 128, 16, {.norm = {0, 0}}},
    {OP_rope_table, "vision", 4070, 72, 0, {.rope_table = {ROPE_AXIAL_2D, 10000, 72, {0}}}},
    {OP_rope_table, "decode", 1, 128, 0, {.rope_table = {ROPE_MROPE, 500000, 128, {16, 24, 24}}}},
    {OP_position_embedding, "48 x 64 patches", 3072, 1152, 0, {.position = {false}}},
    {OP_patch_merge, "48 x 64 patches", 3072, 1152, 0, {.merge = {2}}},
    {OP_embedding, "1024 ids", 1024, 1024, 0, {.norm = {0, 0}}},
    {OP_merge_multimodal, "1024 tokens", 1024, 1024, 0, {.norm = {0, 0}}},
    {OP_gelu, "tanh", 1024, 4304, 0, {.gelu = {true}}},
    {OP_gelu, "erf", 768, 4608, 0, {.gelu = {false}}},
    {OP_silu, "", 1024, 3072, 0, {.norm = {0, 0}}},
    {OP_relu, "", 1024, 3072, 0, {.norm = {0, 0}}},
    {OP_add, "", 1024, 1152, 0, {.norm = {0, 0}}},
    {OP_multiply, "", 1024, 3072, 0, {.norm = {0, 0}}},
    {OP_cast, "to f32", 1024, 1152, 0, {.cast = {INK_F32}}},
    {OP_cast, "to bf16", 1024, 1152, 0, {.cast = {INK_BF16}}},
    {OP_argmax, "1 row of logits", 1, 103424, 0, {.norm = {0, 0}}},
    {OP_argmax, "32 rows of logits", 32, 103424, 0, {.norm = {0, 0}}},
    {OP_sample, "top_p 1", 1, 103424, 0, {.norm = {0, 0}}},
    {OP_sample, "top_p 0.9", 1, 103424, 1, {.norm = {0, 0}}},
};

typedef struct operands {
    ink_tensor in[OP_MAX_IN], out[OP_MAX_OUT];
} operands;

static void floats(op_call *c, operands *o, int i, ink_dtype t, int rank, const int64_t *dims)
{
    ink_tensor_init(&o->in[i], t, rank, dims, NULL);
    o->in[i].data = bench_random(t, ink_tensor_numel(&o->in[i]), 1, 1 + (uint64_t)i);
    c->in[i] = &o->in[i];
}

/* Integers k * step mod modulus. */
static void integers(op_call *c, operands *o, int i, int rank, const int64_t *dims, int64_t step, int64_t modulus)
{
    ink_tensor_init(&o->in[i], INK_I32, rank, dims, NULL);
    o->in[i].data = bench_alloc(ink_tensor_bytes(&o->in[i]) + 4);
    for (int64_t k = 0; k < ink_tensor_numel(&o->in[i]); k++)
        ((int32_t *)o->in[i].data)[k] = (int32_t)(k * step % modulus);
    c->in[i] = &o->in[i];
}

static void grid(op_call *c, operands *o, int i)
{
    integers(c, o, i, 2, (int64_t[]){1, 3}, 1, 2);
    memcpy(o->in[i].data, (int32_t[]){1, 48, 64}, 12);
}

static void build(op_call *c, operands *o, const shape *s, ink_dtype t)
{
    const int64_t matrix[2] = {s->rows, s->width};
    *c = (op_call){.op = s->op, .attrs = s->attrs};
    switch (s->op) {
    case OP_layer_norm: floats(c, o, 2, t, 1, &s->width); /* fall through */
    case OP_rms_norm:
        floats(c, o, 0, t, 2, matrix);
        floats(c, o, 1, t, 1, &s->width);
        break;
    case OP_rope:
        floats(c, o, 0, t, 3, (int64_t[]){s->rows, s->heads, s->width});
        floats(c, o, 1, INK_F32, 3, (int64_t[]){s->rows, s->width / 2, 2});
        break;
    case OP_rope_table:
        integers(c, o, 0, 2, (int64_t[]){s->rows, s->attrs.rope_table.kind == ROPE_AXIAL_2D ? 2 : 3}, 1, 4096);
        break;
    case OP_position_embedding:
        floats(c, o, 0, t, 2, matrix);
        floats(c, o, 1, t, 2, (int64_t[]){729, s->width});
        grid(c, o, 2);
        break;
    case OP_patch_merge:
        floats(c, o, 0, t, 2, matrix);
        grid(c, o, 1);
        break;
    case OP_embedding:
        integers(c, o, 0, 1, &s->rows, 7919, 103424);
        floats(c, o, 1, t, 2, (int64_t[]){103424, s->width});
        break;
    case OP_merge_multimodal:
        floats(c, o, 0, t, 2, matrix);
        floats(c, o, 1, t, 2, matrix);
        integers(c, o, 2, 1, &s->rows, 1, s->rows);
        break;
    case OP_argmax: floats(c, o, 0, INK_F32, 2, matrix); break;
    case OP_sample:
        floats(c, o, 0, INK_F32, 2, matrix);
        floats(c, o, 1, INK_F32, 2, (int64_t[]){s->rows, 3});
        for (int64_t r = 0; r < s->rows; r++)
            memcpy((float *)o->in[1].data + 3 * r, (float[]){1, s->heads ? 0.9f : 1, 1}, 12);
        ink_tensor_init(&o->in[2], INK_I64, 2, (int64_t[]){s->rows, 2}, bench_alloc((size_t)s->rows * 16));
        memset(o->in[2].data, 3, (size_t)s->rows * 16);
        c->in[2] = &o->in[2];
        integers(c, o, 3, 2, (int64_t[]){s->rows, 64}, 1, 64);
        integers(c, o, 4, 1, &s->rows, 0, 1);
        break;
    case OP_add:
    case OP_multiply: floats(c, o, 1, t, 2, matrix); /* fall through */
    default: floats(c, o, 0, s->op == OP_cast && s->attrs.cast.to == t ? INK_F32 : t, 2, matrix); break;
    }
    for (int i = 0; i < OP_MAX_OUT; i++)
        c->out[i] = &o->out[i];
}

static void copy(char *to, const char *from, size_t bytes, int threads)
{
    const size_t step = (bytes / (size_t)threads + 63) & ~(size_t)63;
#pragma omp parallel for num_threads(threads)
    for (int p = 0; p < threads; p++)
        if ((size_t)p * step < bytes)
            memcpy(to + (size_t)p * step, from + (size_t)p * step,
                   bytes - (size_t)p * step < step ? bytes - (size_t)p * step : step);
}

static void measure(const device *d, const shape *s, ink_dtype t, int rounds)
{
    enum { MOST = 64 };
    operands o = {0};
    bench_call b = {0};
    double time[MOST], ratio[MOST];
    build(&b.call, &o, s, t);
    bench_prepare(&b, d);
    const op_schema *schema = op_schema_of(s->op);
    for (int i = 0; i < schema->n_out; i++)
        o.out[i].data = bench_alloc(ink_tensor_bytes(&o.out[i]) + 64);
    const double bytes = schema->cost(&b.call).bytes;
    const size_t half = (size_t)(bytes / 2);
    char *from = bench_alloc(half + 64), *to = bench_alloc(half + 64);
    const int times = bytes < 4e7 ? (int)(4e7 / bytes) + 1 : 1;
    for (int r = 0; r < rounds && r < MOST; r++) {
        double start = bench_now();
        for (int i = 0; i < times; i++)
            bench_run(&b);
        double middle = bench_now();
        for (int i = 0; i < times; i++)
            copy(to, from, half, bytes < 65536 ? 1 : d->threads);
        double end = bench_now();
        time[r] = (middle - start) / times;
        ratio[r] = (end - middle) / (middle - start);
    }
    rounds = rounds < MOST ? rounds : MOST;
    printf("%-32s %-22s %9.1f us %7.2f GB/s %5.0f %% of memcpy\n", b.kernel->name, s->note,
           bench_median(time, rounds) * 1e6, bytes / bench_median(time, rounds) * 1e-9, 100 * bench_median(ratio, rounds));
    fflush(stdout);
    for (int i = 0; i < OP_MAX_IN; i++)
        free(o.in[i].data);
    for (int i = 0; i < OP_MAX_OUT; i++)
        free(o.out[i].data);
    free(from);
    free(to);
    bench_release(&b);
}

int main(int argc, char **argv)
{
    device d;
    ink_dtype t;
    const char *op = bench_option(argc, argv, "op", "");
    if (bench_flag(argc, argv, "help")) {
        puts("bench_norm [--isa portable|avx2|avx512] [--threads N] [--dtype bf16|f16|f32] [--op NAME] [--rounds N] "
             "[--cpu-time]");
        return 0;
    }
    if (!ink_dtype_parse(bench_option(argc, argv, "dtype", "bf16"), &t))
        return fputs("bench_norm: unknown dtype\n", stderr), 2;
    bench_device(&d, bench_option(argc, argv, "isa", ""), atoi(bench_option(argc, argv, "threads", "0")));
    if (bench_flag(argc, argv, "cpu-time"))
        bench_use_cpu_time();
    printf("%s, %s\n", d.name, ink_dtype_name(t));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (!*op || !strcmp(op, op_schema_of(shapes[i].op)->name))
            measure(&d, &shapes[i], t, atoi(bench_option(argc, argv, "rounds", "9")));
    device_close(&d);
    return 0;
}
