/* test_golden.c - the mini model's recorded activations: FP32 plans within 1e-5 of the FP32 file, BF16 plans near the BF16
 * file. */
#include "core/dtype.h"
#include "graph/run.h"
#include "models/paddleocr_vl/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct golden {
    safetensors *st;
    safetensors *exact; /* the FP32 recording, beside a 16-bit one; else NULL */
    int64_t grid[3], patches, tokens, features;
} golden;

static ink_tensor get(const golden *g, const char *name)
{
    ink_tensor t;
    assert_int_equal(safetensors_get(g->st, name, &t), INK_OK);
    return t;
}

static void open_golden(golden *g, const char *name, const char *type)
{
    char path[512];
    snprintf(path, sizeof path, "%s/models/mini/golden/%s.%s.safetensors", INK_SOURCE_DIR, name, type);
    assert_int_equal(safetensors_open_path(path, &g->st), INK_OK);
    g->exact = NULL;
    if (!strcmp(type, "bf16")) {
        snprintf(path, sizeof path, "%s/models/mini/golden/%s.fp32.safetensors", INK_SOURCE_DIR, name);
        assert_int_equal(safetensors_open_path(path, &g->exact), INK_OK);
    }
    ink_tensor grid = get(g, "image_grid_thw"), ids = get(g, "input_ids");
    for (int i = 0; i < 3; i++)
        g->grid[i] = (int64_t)load_f64(grid.data, grid.dtype, i);
    g->patches = g->grid[1] * g->grid[2];
    g->features = g->patches / 4;
    g->tokens = ids.dims[0];
}

/* max |y - ref| / max |ref|; `row` picks one row of y to compare with a one-row reference. */
static double difference(const ink_tensor *y, const ink_tensor *ref, int64_t first, int64_t n, double *rms, double *most)
{
    double top = 0, scale = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        double r = load_f64(ref->data, ref->dtype, i), d = fabs(load_f64(y->data, y->dtype, first + i) - r);
        assert_true(isfinite(d));
        top = fmax(top, d);
        scale = fmax(scale, fabs(r));
        squares += d * d;
    }
    *rms = sqrt(squares / (double)n);
    *most = top;
    return top / scale;
}

/* BF16: our distance from the FP32 recording may not exceed that of the BF16 recording, which rounds more often, by more
 * than a quarter (both are random walks of the same kind). */
static void compare_distance(const golden *g, const ink_tensor *y, const char *recorded, int64_t first)
{
    ink_tensor theirs = get(g, recorded), exact;
    assert_int_equal(safetensors_get(g->exact, recorded, &exact), INK_OK);
    int64_t n = ink_tensor_numel(&exact);
    double ours_rms, theirs_rms, most;
    difference(y, &exact, first, n, &ours_rms, &most);
    difference(&theirs, &exact, 0, n, &theirs_rms, &most);
    if (ours_rms > 1.25 * theirs_rms)
        print_error("%s: RMS %.3g from FP32, the recording's own distance is %.3g\n", recorded, ours_rms, theirs_rms);
    assert_true(ours_rms <= 1.25 * theirs_rms);
}

static void compare(const golden *g, const run *r, const char *output, const char *recorded, bool last_row, double limit)
{
    const ink_tensor *y = run_output(r, output);
    ink_tensor ref = get(g, recorded);
    int64_t n = ink_tensor_numel(&ref);
    double rms, most, d;
    assert_non_null(y);
    if (g->exact) {
        compare_distance(g, y, recorded, last_row ? ink_tensor_numel(y) - n : 0);
        return;
    }
    d = difference(y, &ref, last_row ? ink_tensor_numel(y) - n : 0, n, &rms, &most);
    if (d > limit)
        print_error("%s: %.3g of the largest value, limit %.3g\n", recorded, d, limit);
    assert_true(d <= limit);
}

static run *start(const vl_model *m, vl_plan p)
{
    run *r;
    assert_int_equal(run_create(m->plans[p], NULL, &r), INK_OK);
    return r;
}

static void *to_dtype(const ink_tensor *t, ink_dtype dtype)
{
    int64_t n = ink_tensor_numel(t);
    char *p = alloc_aligned((size_t)n * ink_dtype_size(dtype));
    assert_non_null(p);
    for (int64_t i = 0; i < n; i++) {
        double v = load_f64(t->data, t->dtype, i);
        if (dtype == INK_I32)
            ((int32_t *)(void *)p)[i] = (int32_t)v;
        else
            store_f64(p, dtype, i, v);
    }
    return p;
}

static void execute(run *r)
{
    if (run_execute(r, NULL) != INK_OK) {
        print_error("%s\n", ink_last_error());
        fail();
    }
}

static void check_vision(const vl_model *m, const golden *g, double limit, run **vision_out)
{
    run *r = start(m, VL_VISION);
    ink_tensor pixels = get(g, "pixel_values");
    void *patches = to_dtype(&pixels, m->dtypes[0]);
    int32_t *positions = alloc_array((size_t)g->patches * 2, sizeof *positions);
    int32_t grid[3] = {1, (int32_t)g->grid[1], (int32_t)g->grid[2]}, cu[2] = {0, (int32_t)g->patches};
    for (int64_t p = 0; p < g->patches; p++) {
        positions[2 * p] = (int32_t)(p / g->grid[2]);
        positions[2 * p + 1] = (int32_t)(p % g->grid[2]);
    }
    run_set_symbol(r, DIM_PATCHES, g->patches);
    run_set_symbol(r, DIM_IMAGES, 1);
    run_bind(r, "patches", patches);
    run_bind(r, "positions", positions);
    run_bind(r, "grid_thw", grid);
    run_bind(r, "cu_seqlens", cu);
    execute(r);
    compare(g, r, "patch_conv", "patch_conv", false, limit);
    compare(g, r, "patch_embeddings", "patch_embeddings", false, limit);
    for (int i = 0; i < m->config.vision.num_hidden_layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "vision_layer_%d", i);
        compare(g, r, name, name, false, limit);
    }
    compare(g, r, "z", "vision_post_norm", false, limit);
    free(patches);
    free(positions);
    *vision_out = r;
}

static run *check_projector(const vl_model *m, const golden *g, double limit, const run *vision)
{
    run *r = start(m, VL_PROJECTOR);
    int32_t grid[3] = {1, (int32_t)g->grid[1], (int32_t)g->grid[2]};
    run_set_symbol(r, DIM_PATCHES, g->patches);
    run_set_symbol(r, DIM_IMAGES, 1);
    run_bind(r, "x", run_output(vision, "z")->data);
    run_bind(r, "grid_thw", grid);
    execute(r);
    compare(g, r, "features", "projector", false, limit);
    return r;
}

typedef struct text_state {
    void *pools[64];
    int32_t blocks[8];
    float params[3];
    int64_t seeds[2];
    int32_t history[1], history_len[1], lengths[1], cu[2], last[1], ids[1], positions[3], slots[1];
} text_state;

static void bind_text(const vl_model *m, run *r, text_state *t)
{
    for (int i = 0; i < m->config.text.num_hidden_layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "k_pool.%d", i);
        assert_int_equal(run_bind(r, name, t->pools[2 * i]), INK_OK);
        snprintf(name, sizeof name, "v_pool.%d", i);
        assert_int_equal(run_bind(r, name, t->pools[2 * i + 1]), INK_OK);
    }
    run_set_symbol(r, DIM_SEQUENCES, 1);
    run_set_symbol(r, DIM_KV_BLOCKS, 8);
    run_set_symbol(r, DIM_POOL, 8);
    run_set_symbol(r, DIM_HISTORY, 1);
    run_bind(r, "block_table", t->blocks);
    run_bind(r, "params", t->params);
    run_bind(r, "seeds", t->seeds);
    run_bind(r, "history", t->history);
    run_bind(r, "history_len", t->history_len);
    run_bind(r, "lengths", t->lengths);
    run_bind(r, "cu_seqlens", t->cu);
}

/* Logits of one step against the recording; in FP32 as the other tensors, in BF16 by RMS and maximum. */
static void compare_logits(const golden *g, const run *r, int64_t step, double limit, bool bf16_run)
{
    ink_tensor ref = get(g, "logits");
    const ink_tensor *y = run_output(r, "logits");
    int64_t vocab = ref.dims[1];
    double rms, most;
    if (step >= ref.dims[0])
        return;
    ink_tensor row = ref;
    row.data = (char *)ref.data + (size_t)(step * vocab) * ink_dtype_size(ref.dtype);
    double d = difference(y, &row, 0, vocab, &rms, &most);
    if (bf16_run) {
        print_message("  step %d logits: RMS %.4f, max %.4f\n", (int)step, rms, most);
        if (step == 0) {
            assert_true(rms <= 0.1);
            assert_true(most <= 0.75);
        }
    } else
        assert_true(d <= limit);
}

static void check_text(const vl_model *m, const golden *g, double limit, bool bf16_run, const run *projector)
{
    ink_tensor ids = get(g, "input_ids"), pos = get(g, "position_ids"), want = get(g, "generated_ids"),
               delta = get(g, "rope_delta");
    text_state t = {.params = {0, 1, 1}};
    const size_t pool_bytes =
        (size_t)8 * m->config.text.num_key_value_heads * KV_BLOCK * m->config.text.head_dim * ink_dtype_size(m->dtypes[2]);
    for (int i = 0; i < 2 * m->config.text.num_hidden_layers; i++) {
        assert_non_null(t.pools[i] = alloc_aligned(pool_bytes));
        memset(t.pools[i], 0x7f, pool_bytes); /* NaN where nothing was appended */
    }
    for (int i = 0; i < 8; i++)
        t.blocks[i] = 7 - i;
    int32_t *prompt = to_dtype(&ids, INK_I32), *positions = alloc_array((size_t)g->tokens * 3, 4),
            *slots = alloc_array((size_t)g->tokens, 4), *rows = alloc_array((size_t)g->tokens, 4);
    int32_t next_row = 0;
    for (int32_t i = 0; i < g->tokens; i++) {
        for (int a = 0; a < 3; a++)
            positions[3 * i + a] = (int32_t)load_f64(pos.data, pos.dtype, a * g->tokens + i);
        slots[i] = t.blocks[i / KV_BLOCK] * KV_BLOCK + i % KV_BLOCK;
        rows[i] = prompt[i] == m->config.image_token_id ? next_row++ : -1;
    }
    assert_int_equal(next_row, g->features);
    t.lengths[0] = t.cu[1] = (int32_t)g->tokens;
    t.last[0] = (int32_t)g->tokens - 1;

    run *r = start(m, VL_PREFILL);
    bind_text(m, r, &t);
    run_set_symbol(r, DIM_TOKENS, g->tokens);
    run_set_symbol(r, DIM_FEATURES, g->features);
    run_bind(r, "ids", prompt);
    run_bind(r, "features", run_output(projector, "features")->data);
    run_bind(r, "feature_rows", rows);
    run_bind(r, "positions", positions);
    run_bind(r, "slots", slots);
    run_bind(r, "last", t.last);
    execute(r);
    for (int i = 0; i < m->config.text.num_hidden_layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "text_layer_%d", i);
        compare(g, r, name, name, true, limit);
    }
    compare_logits(g, r, 0, limit, bf16_run);
    int32_t id = *(const int32_t *)run_output(r, "next")->data;
    assert_int_equal(id, (int32_t)load_f64(want.data, want.dtype, 0));
    run_free(r);

    r = start(m, VL_DECODE);
    bind_text(m, r, &t);
    run_bind(r, "ids", t.ids);
    run_bind(r, "positions", t.positions);
    run_bind(r, "slots", t.slots);
    t.cu[1] = 1;
    for (int64_t step = 1; step < want.dims[0]; step++) {
        int32_t at = t.lengths[0]++;
        t.ids[0] = id;
        t.positions[0] = t.positions[1] = t.positions[2] = at + (int32_t)load_f64(delta.data, delta.dtype, 0);
        t.slots[0] = t.blocks[at / KV_BLOCK] * KV_BLOCK + at % KV_BLOCK;
        execute(r);
        compare_logits(g, r, step, limit, bf16_run);
        id = *(const int32_t *)run_output(r, "next")->data;
        assert_int_equal(id, (int32_t)load_f64(want.data, want.dtype, step));
    }
    run_free(r);
    for (int i = 0; i < 2 * m->config.text.num_hidden_layers; i++)
        free(t.pools[i]);
    free(prompt);
    free(positions);
    free(slots);
    free(rows);
}

static void check(ink_dtype dtype, const char *type, double limit)
{
    static const char *const names[] = {"01", "05", "10"};
    vl_model *m;
    vl_model_options o = {.dtype = dtype, .threads = 2, .taps = true};
    if (vl_model_load(&o, &m) != INK_OK) {
        print_error("%s\n", ink_last_error());
        fail();
    }
    for (int i = 0; i < 3; i++) {
        golden g;
        run *vision;
        print_message("%s against %s.%s\n", ink_dtype_name(dtype), names[i], type);
        open_golden(&g, names[i], type);
        check_vision(m, &g, limit, &vision);
        run *projector = check_projector(m, &g, limit, vision);
        check_text(m, &g, limit, dtype != INK_F32, projector);
        run_free(vision);
        run_free(projector);
        safetensors_free(g.st);
        safetensors_free(g.exact);
    }
    vl_model_free(m);
}

static void test_f32(void **state)
{
    (void)state;
    check(INK_F32, "fp32", 1e-5);
}

static void test_bf16(void **state)
{
    (void)state;
    check(INK_BF16, "bf16", 0);
}

static void test_f16(void **state)
{
    (void)state;
    check(INK_F16, "fp32", 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_f32), cmocka_unit_test(test_bf16), cmocka_unit_test(test_f16)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
