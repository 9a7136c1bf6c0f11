/* peer_onednn.c - oneDNN 2.x matmul: plain source and destination, weights in the layout it asks for (reordered once, not
 * timed). */
#include "peer.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct state {
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[3];
    dnnl_exec_arg_t args[3];
} state;

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

static const char *about(void)
{
    static char text[64];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d, isa 0x%x", v->major, v->minor, v->patch, (unsigned)dnnl_get_effective_cpu_isa());
    return text;
}

static void limit(const char *isa)
{
    if (isa && !strcmp(isa, "avx2"))
        CHECK(dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2));
    else if (isa && !strcmp(isa, "avx512"))
        CHECK(dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16));
}

static dnnl_memory_desc_t plain(int64_t rows, int64_t columns, dnnl_data_type_t t, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t d;
    CHECK(dnnl_memory_desc_init_by_tag(&d, 2, (dnnl_dims_t){rows, columns}, t, tag));
    return d;
}

/* A memory of layout `to` filled from FP32 data of layout `from`. */
static dnnl_memory_t reordered(const dnnl_memory_desc_t *from, const float *data, const dnnl_memory_desc_t *to)
{
    dnnl_memory_t source, target;
    dnnl_primitive_desc_t d;
    dnnl_primitive_t p;
    CHECK(dnnl_memory_create(&source, from, engine, (void *)data));
    CHECK(dnnl_memory_create(&target, to, engine, DNNL_MEMORY_ALLOCATE));
    CHECK(dnnl_reorder_primitive_desc_create(&d, from, engine, to, engine, NULL));
    CHECK(dnnl_primitive_create(&p, d));
    dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}};
    CHECK(dnnl_primitive_execute(p, stream, 2, args));
    CHECK(dnnl_stream_wait(stream));
    dnnl_primitive_destroy(p);
    dnnl_primitive_desc_destroy(d);
    dnnl_memory_destroy(source);
    return target;
}

static void *create(ink_dtype dtype, const float *a, const float *w, float *c, int64_t m, int64_t n, int64_t k, int threads)
{
    (void)threads; /* it uses OpenMP's default */
    if (dtype != INK_F32 && dtype != INK_BF16)
        return NULL;
    if (!engine) {
        CHECK(dnnl_engine_create(&engine, dnnl_cpu, 0));
        CHECK(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
    }
    const dnnl_data_type_t t = dtype == INK_F32 ? dnnl_f32 : dnnl_bf16;
    dnnl_memory_desc_t da = plain(m, k, t, dnnl_ab), dw = plain(k, n, t, dnnl_format_tag_any), dc = plain(m, n, t, dnnl_ab);
    dnnl_memory_desc_t fa = plain(m, k, dnnl_f32, dnnl_ab), fw = plain(k, n, dnnl_f32, dnnl_ba);
    dnnl_matmul_desc_t md;
    dnnl_primitive_desc_t pd;
    state *s = malloc(sizeof *s);
    CHECK(dnnl_matmul_desc_init(&md, &da, &dw, NULL, &dc));
    if (!s || dnnl_primitive_desc_create(&pd, &md, NULL, engine, NULL) != dnnl_success) {
        free(s);
        return NULL;
    }
    CHECK(dnnl_primitive_create(&s->primitive, pd));
    s->memory[0] = reordered(&fa, a, &da);
    s->memory[1] = reordered(&fw, w, dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0));
    CHECK(dnnl_memory_create(&s->memory[2], &dc, engine, t == dnnl_f32 ? (void *)c : DNNL_MEMORY_ALLOCATE));
    s->args[0] = (dnnl_exec_arg_t){DNNL_ARG_SRC, s->memory[0]};
    s->args[1] = (dnnl_exec_arg_t){DNNL_ARG_WEIGHTS, s->memory[1]};
    s->args[2] = (dnnl_exec_arg_t){DNNL_ARG_DST, s->memory[2]};
    dnnl_primitive_desc_destroy(pd);
    return s;
}

static void run(void *p)
{
    const state *s = p;
    CHECK(dnnl_primitive_execute(s->primitive, stream, 3, s->args));
    CHECK(dnnl_stream_wait(stream));
}

static void destroy(void *p)
{
    state *s = p;
    dnnl_primitive_destroy(s->primitive);
    for (int i = 0; i < 3; i++)
        dnnl_memory_destroy(s->memory[i]);
    free(s);
}

const peer peer_onednn = {"onednn", about, limit, create, run, destroy};
