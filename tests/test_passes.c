/* test_passes.c - fusion passes never change the text, never strand a graph; a missing kernel is explained completely. */
#include "engine_support.h"

#include "core/dtype.h"
#include "graph/run.h"

#include <math.h>

/* ---- what a model with some passes gives ---- */

typedef struct activations {
    size_t n;
    float *values;      /* features of sample 5 */
    int applied, nodes; /* of all plans */
    int no_kernel;
} activations;

static void copy_output(activations *a, const session *s, const prepared *p)
{
    a->n = (size_t)p->f.grid.tokens * (size_t)session_model(s)->config.text.hidden_size;
    a->values = alloc_array(a->n, sizeof *a->values);
    for (size_t i = 0; i < a->n; i++)
        a->values[i] = load_f32(p->f.data, session_model(s)->dtypes[1], (int64_t)i);
}

static activations with_passes(const char *deleted, const char *disable, ink_dtype dtype)
{
    activations a = {0};
    vl_model *m = load_mini((vl_model_options){.dtype = dtype, .delete_passes = deleted, .disable = disable});
    session *s = open_session(m, (session_options){0});
    prepared p;
    for (int i = 0; i < SAMPLES; i += 2)
        if (!skipped(i))
            check_sample(s, &samples[i]);
    prepare_sample(s, &samples[4], &p);
    copy_output(&a, s, &p);
    prepared_free(&p);
    for (int k = 0; k < VL_PLANS; k++) {
        a.nodes += (int)m->plans[k]->n_nodes;
        for (int i = 0; i < pass_count(); i++) {
            a.applied += m->plans[k]->passes[i].applied;
            a.no_kernel += m->plans[k]->passes[i].no_kernel;
        }
    }
    session_free(s);
    vl_model_free(m);
    return a;
}

/* Fused and unfused graphs differ by roundings of the compute type: RMS below a few of its units of the features' RMS. */
static void assert_close(const activations *a, const activations *b, double limit)
{
    double d2 = 0, r2 = 0;
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        assert_true(isfinite(a->values[i]));
        d2 += ((double)a->values[i] - b->values[i]) * ((double)a->values[i] - b->values[i]);
        r2 += (double)b->values[i] * b->values[i];
    }
    if (sqrt(d2 / r2) > limit)
        fail_msg("features differ by %.3g of their RMS, limit %.3g", sqrt(d2 / r2), limit);
}

static void every_combination(ink_dtype dtype, double limit)
{
    activations on = with_passes(NULL, NULL, dtype), off = with_passes("all", NULL, dtype);
    assert_true(on.applied > 0);
    assert_int_equal(off.applied, 0);
    assert_true(on.nodes < off.nodes);
    assert_close(&on, &off, limit);
    for (int i = 0; i < pass_count(); i++) {
        activations one = with_passes(pass_at(i)->name, NULL, dtype);
        assert_true(one.nodes > on.nodes && one.nodes < off.nodes);
        assert_close(&one, &off, limit);
        free(one.values);
    }
    free(on.values);
    free(off.values);
}

static void on_off_and_one_by_one_in_bf16(void **state)
{
    (void)state;
    every_combination(INK_BF16, 0.02);
}

static void on_off_and_one_by_one_in_f32(void **state)
{
    (void)state;
    every_combination(INK_F32, 1e-5);
}

/* A Paddle name from an old delete list works; an unknown one is an error, not ignored. */
static void names(void **state)
{
    (void)state;
    ink_model_options o = INK_MODEL_OPTIONS_DEFAULT;
    ink_model *m;
    activations alias = with_passes("matmul_add_act_fuse_pass", NULL, INK_BF16),
                name = with_passes("linear_act_fuse", NULL, INK_BF16);
    assert_int_equal(alias.applied, name.applied);
    free(alias.values);
    free(name.values);
    o.delete_passes = "linear_act_fuse,conv2d_bn_fuse_pass";
    assert_fails(ink_model_load(NULL, &o, &m), INK_INVALID_ARGUMENT, "no pass is called 'conv2d_bn_fuse_pass'");
    assert_null(m);
}

/* Without the fused kernel the graph stays as it was and runs. */
static void no_kernel_no_rewrite(void **state)
{
    (void)state;
    activations full = with_passes(NULL, NULL, INK_BF16), hidden = with_passes(NULL, "linear_gated", INK_BF16);
    assert_int_equal(full.no_kernel, 0);
    assert_int_equal(hidden.no_kernel, 2 * 6); /* prefill and decode, 6 layers */
    assert_int_equal(hidden.nodes,
                     full.nodes + 2 * 2 * 6); /* the gate still takes in its activation: 3 nodes in place of 1 */
    free(full.values);
    free(hidden.values);
}

/* ---- missing kernels ---- */

/* "  declined: NAME: REASON" for each row of op and dtype, in the registry's order. */
static void declined_lines(op_id op, ink_dtype dtype, strbuf *out)
{
    const kernel_list *l = registry_list_of(INK_CPU, op);
    for (int i = 0; i < l->count; i++)
        if (l->rows[i].dtype == dtype)
            strbuf_printf(out, "  declined: %s: hidden by INK_DISABLE or the disable option\n", l->rows[i].name);
}

static const char *first_row(op_id op, ink_dtype dtype, int isa)
{
    const kernel_list *l = registry_list_of(INK_CPU, op);
    for (int i = 0; i < l->count; i++)
        if (l->rows[i].dtype == dtype && l->rows[i].isa <= isa)
            return l->rows[i].name;
    fail_msg("no row");
    return NULL;
}

/* The whole text (operators.md 2.3): code and key, device, call, registered keys by backend, reasons, nearest key, whether
 * a fallback is allowed, its price and the exact option, and where to look. */
static void whole_text_without_conv2d(void **state)
{
    (void)state;
    ink_model_options o = INK_MODEL_OPTIONS_DEFAULT;
    ink_model *m;
    strbuf expected = {0};
    const char *before = getenv("INK_DISABLE"), *cpu = getenv("INK_CPU");
    char *kept = before ? strdup(before) : NULL, *kept_cpu = cpu ? strdup(cpu) : NULL;
    setenv("INK_DISABLE", "conv2d:*:bf16", 1);
    setenv("INK_CPU", "portable", 1);
    o.threads = 2;
    assert_int_equal(ink_model_load(NULL, &o, &m), INK_MISSING_KERNEL);
    assert_null(m);
    strbuf_puts(&expected,
                "plan 'vision' on cpu (portable, 2 threads): 1 of 95 nodes have no kernel (1 key)\n"
                "E_MISSING_KERNEL op=conv2d backend=cpu layout=nchw dtype=bf16 node=patch_embedding module=visual\n"
                "  device: cpu (portable, 2 threads)\n"
                "  call: conv2d bf16 nchw n2404c3h14w14 o216k14x14 s14x14 p0,0,0,0 d1x1 g1 fwd bias=bf16\n"
                "  registered: cpu: f32/any, f16/any, bf16/any (hidden)\n");
    declined_lines(OP_conv2d, INK_BF16, &expected);
    strbuf_printf(
        &expected,
        "  nearest: conv2d in f32 (%s)\n"
        "  fallback: never taken silently; --fp32-modules visual allows it; cost at this node: 4.1 MB to convert\n"
        "  see: inkstone kernels --op conv2d\n",
        first_row(OP_conv2d, INK_F32, ISA_PORTABLE));
    assert_string_equal(ink_last_error(), strbuf_text(&expected));
    strbuf_free(&expected);

    /* The option that the message names does help. */
    o.fp32_modules = "visual";
    assert_ok(ink_model_load(NULL, &o, &m));
    ink_model_free(m);
    if (kept)
        setenv("INK_DISABLE", kept, 1);
    else
        unsetenv("INK_DISABLE");
    if (kept_cpu)
        setenv("INK_CPU", kept_cpu, 1);
    else
        unsetenv("INK_CPU");
    free(kept);
    free(kept_cpu);
}

static int count(const char *text, const char *part)
{
    int n = 0;
    for (const char *p = strstr(text, part); p; p = strstr(p + 1, part))
        n++;
    return n;
}

/* Every gap of every plan at once, each key of a plan once. */
static void all_gaps_at_once(void **state)
{
    (void)state;
    ink_model_options o = INK_MODEL_OPTIONS_DEFAULT;
    ink_model *m;
    o.disable_kernels = "layer_norm:cpu:bf16,rms_norm:*:bf16,kv_append,sample";
    assert_int_equal(ink_model_load(NULL, &o, &m), INK_MISSING_KERNEL);
    const char *e = ink_last_error();
    assert_int_equal(count(e, "E_MISSING_KERNEL"),
                     2 + 2 * 3); /* layer_norm in two plans; three ops in prefill and decode */
    assert_int_equal(count(e, "op=layer_norm"), 2);
    assert_int_equal(count(e, "op=rms_norm"), 2);
    assert_int_equal(count(e, "op=kv_append"), 2);
    assert_int_equal(count(e, "op=sample"), 2);
    assert_int_equal(count(e, "plan 'vision'") + count(e, "plan 'projector'") + count(e, "plan 'prefill'") +
                         count(e, "plan 'decode'"),
                     4);
    assert_int_equal(count(e, "fallback: none"), 4); /* kv_append and sample: every row is hidden */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_off_and_one_by_one_in_bf16),
        cmocka_unit_test(on_off_and_one_by_one_in_f32),
        cmocka_unit_test(names),
        cmocka_unit_test(no_kernel_no_rewrite),
        cmocka_unit_test(whole_text_without_conv2d),
        cmocka_unit_test(all_gaps_at_once),
    };
    return cmocka_run_group_tests(tests, open_samples, close_samples);
}
