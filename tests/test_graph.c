/* test_graph.c - building, passes, planning, memory reuse, running with symbolic sizes, the missing-kernel message. */
#include "core/dtype.h"
#include "core/rng.h"
#include "graph/builder.h"
#include "graph/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { MAX_TOKENS = 37, HIDDEN = 24, INNER = 40, LAYERS = 5 };

typedef struct weights {
    ink_tensor gamma, beta, up, up_bias, down;
    bf16 data[2 * HIDDEN + 2 * INNER * HIDDEN + INNER];
} weights;

static void fill(weights *w, rng *r)
{
    for (size_t i = 0; i < sizeof w->data / sizeof *w->data; i++)
        w->data[i] = f32_to_bf16(rng_normal(r) * 0.2f);
    bf16 *p = w->data;
    ink_tensor_init(&w->gamma, INK_BF16, 1, (int64_t[]){HIDDEN}, p);
    ink_tensor_init(&w->beta, INK_BF16, 1, (int64_t[]){HIDDEN}, p += HIDDEN);
    ink_tensor_init(&w->up, INK_BF16, 2, (int64_t[]){INNER, HIDDEN}, p += HIDDEN);
    ink_tensor_init(&w->up_bias, INK_BF16, 1, (int64_t[]){INNER}, p += INNER * HIDDEN);
    ink_tensor_init(&w->down, INK_BF16, 2, (int64_t[]){HIDDEN, INNER}, p += INNER);
}

/* x <- x + down(gelu(up(norm(x)))), LAYERS times. */
static graph *mlp(const weights *w)
{
    int64_t bounds[DIM_SYMBOLS] = {[DIM_TOKENS] = MAX_TOKENS};
    graph *g = graph_create(bounds);
    graph_set_module(g, "mlp");
    value_id x = graph_input(g, "x", INK_BF16, 2, (dim[]){dim_of(DIM_TOKENS), dim_fixed(HIDDEN)});
    value_id gamma = graph_weight(g, "gamma", &w->gamma), beta = graph_weight(g, "beta", &w->beta);
    value_id up = graph_weight(g, "up", &w->up), bias = graph_weight(g, "up.bias", &w->up_bias),
             down = graph_weight(g, "down", &w->down);
    for (int i = 0; i < LAYERS; i++) {
        value_id h = g_layer_norm(g, "norm", x, gamma, beta, 1e-6f);
        h = g_gelu(g, "act", g_linear(g, "up", h, up, bias, NULL), true);
        x = g_add(g, "residual", x, g_linear(g, "down", h, down, NO_VALUE, NULL));
    }
    graph_keep(g, x, "y");
    return g;
}

static void execute(const plan *p, bf16 *x, int64_t tokens, float *y)
{
    run *r;
    assert_int_equal(run_create(p, NULL, &r), INK_OK);
    run_set_symbol(r, DIM_TOKENS, tokens);
    assert_int_equal(run_execute(r, NULL), INK_FAILED_PRECONDITION);
    assert_int_equal(run_bind(r, "x", x), INK_OK);
    profile prof = {0};
    assert_int_equal(run_execute(r, &prof), INK_OK);
    assert_true(prof.count >= 2);
    assert_int_equal(profile_fp32_gemms(&prof), 0);
    profile_free(&prof);
    const ink_tensor *out = run_output(r, "y");
    assert_int_equal(out->dims[0], tokens);
    for (int64_t i = 0; i < tokens * HIDDEN; i++)
        y[i] = load_f32(out->data, out->dtype, i);
    run_set_symbol(r, DIM_TOKENS, MAX_TOKENS + 1);
    assert_int_equal(run_execute(r, NULL), INK_OUT_OF_RANGE);
    run_free(r);
}

static void test_plan_and_run(void **state)
{
    (void)state;
    rng r = {.seed = (uint64_t)time(NULL)};
    print_message("seed %llu\n", (unsigned long long)r.seed);
    weights *w = alloc_array(1, sizeof *w);
    fill(w, &r);
    device d;
    assert_int_equal(device_open_cpu(&d, 2, NULL), INK_OK);
    plan *p;
    assert_int_equal(plan_create(mlp(w), &d, NULL, "mlp", &p), INK_OK);
    /* gelu and residual went into the linears: 3 nodes a layer; two hidden states and one inner live at once, no more */
    assert_int_equal(p->n_nodes, 3 * LAYERS);
    size_t hidden = (MAX_TOKENS * HIDDEN * 2 + 63) & ~(size_t)63, inner = (MAX_TOKENS * INNER * 2 + 63) & ~(size_t)63;
    assert_true(p->activation_bytes <= 2 * hidden + inner);

    static bf16 x[MAX_TOKENS * HIDDEN];
    static float whole[MAX_TOKENS * HIDDEN], part[MAX_TOKENS * HIDDEN];
    for (int i = 0; i < MAX_TOKENS * HIDDEN; i++)
        x[i] = f32_to_bf16(rng_normal(&r));
    execute(p, x, MAX_TOKENS, whole);
    execute(p, x, 5, part);
    assert_memory_equal(whole, part, 5 * HIDDEN * sizeof(float)); /* rows do not depend on the rows beside them */
    plan_free(p);
    device_close(&d);
    free(w);
}

/* One plan, two size classes: the class follows the symbol, and each has a kernel for every node. */
static void test_size_buckets(void **state)
{
    (void)state;
    rng r = {.seed = 3};
    weights *w = alloc_array(1, sizeof *w);
    fill(w, &r);
    device d;
    plan *p;
    assert_int_equal(device_open_cpu(&d, 2, NULL), INK_OK);
    plan_options o = {.bucket_symbol = DIM_TOKENS, .n_buckets = 2, .buckets = {4, MAX_TOKENS}};
    assert_int_equal(plan_create(mlp(w), &d, &o, "mlp", &p), INK_OK);
    int64_t symbols[DIM_SYMBOLS] = {0};
    for (int64_t n = 0; n <= MAX_TOKENS; n++) {
        symbols[DIM_TOKENS] = n;
        assert_int_equal(plan_bucket(p, symbols), n > 4);
    }
    for (size_t i = 0; i < p->n_nodes; i++)
        assert_true(p->nodes[i].kernel[0] && p->nodes[i].kernel[1]);
    static bf16 x[MAX_TOKENS * HIDDEN];
    static float few[MAX_TOKENS * HIDDEN], many[MAX_TOKENS * HIDDEN];
    for (int i = 0; i < MAX_TOKENS * HIDDEN; i++)
        x[i] = f32_to_bf16(rng_normal(&r));
    execute(p, x, 3, few);
    execute(p, x, MAX_TOKENS, many);
    assert_memory_equal(few, many, 3 * HIDDEN * sizeof(float));
    plan_free(p);
    device_close(&d);
    free(w);
}

static void test_missing_kernels_are_listed(void **state)
{
    (void)state;
    rng r = {.seed = 1};
    weights *w = alloc_array(1, sizeof *w);
    fill(w, &r);
    device d;
    plan *p;
    assert_int_equal(device_open_cpu(&d, 1, "linear:*:bf16,layer_norm:cpu:bf16"), INK_OK);
    assert_int_equal(plan_create(mlp(w), &d, &(plan_options){.delete_passes = "all"}, "mlp", &p), INK_MISSING_KERNEL);
    const char *e = ink_last_error();
    assert_non_null(strstr(e, "E_MISSING_KERNEL op=linear backend=cpu layout=any dtype=bf16 node=up"));
    assert_non_null(strstr(e, "E_MISSING_KERNEL op=layer_norm backend=cpu layout=any dtype=bf16 node=norm"));
    assert_non_null(strstr(e, "bf16/any (hidden)"));
    assert_non_null(strstr(e, "f32/any"));
    assert_non_null(strstr(e, "--fp32-modules"));
    device_close(&d);
    free(w);
}

static void test_shape_errors_name_the_node(void **state)
{
    (void)state;
    rng r = {.seed = 1};
    weights *w = alloc_array(1, sizeof *w);
    fill(w, &r);
    graph *g = graph_create((int64_t[DIM_SYMBOLS]){[DIM_TOKENS] = 4});
    value_id x = graph_input(g, "x", INK_BF16, 2, (dim[]){dim_of(DIM_TOKENS), dim_fixed(HIDDEN + 1)});
    g_linear(g, "blocks.0.up", x, graph_weight(g, "up", &w->up), NO_VALUE, NULL);
    device d;
    plan *p;
    assert_int_equal(device_open_cpu(&d, 1, NULL), INK_OK);
    assert_int_equal(plan_create(g, &d, NULL, "x", &p), INK_INVALID_ARGUMENT);
    assert_string_equal(ink_last_error(), "blocks.0.up: linear: weight has shape [40,24], expected [40,25]");
    device_close(&d);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_and_run),
        cmocka_unit_test(test_size_buckets),
        cmocka_unit_test(test_missing_kernels_are_listed),
        cmocka_unit_test(test_shape_errors_name_the_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
