/* test_read.c - the recorded answers of the mini model: every dtype, thread count, instruction set and batch gives them. */
#include "engine_support.h"

#include "cpu/isa.h"

static void every_sample(ink_dtype dtype, int threads)
{
    vl_model *m = load_mini((vl_model_options){.dtype = dtype, .threads = threads});
    session *s = open_session(m, (session_options){0});
    for (int i = 0; i < SAMPLES; i++)
        if (!skipped(i))
            check_sample(s, &samples[i]);
    session_free(s);
    vl_model_free(m);
}

static void samples_in_bf16(void **state)
{
    (void)state;
    every_sample(INK_BF16, 2);
    every_sample(INK_BF16, 1);
}

/* Field report 59: one checkpoint, several compute types. */
static void report_59_samples_in_f32_and_f16(void **state)
{
    (void)state;
    every_sample(INK_F32, 2);
    every_sample(INK_F16, 2);
}

/* Field report 58: every instruction set that the processor has, the portable code on small images. */
static void report_58_every_instruction_set(void **state)
{
    (void)state;
    static const char *const levels[] = {"portable", "avx2", "avx512", "amx"};
    const char *before = getenv("INK_CPU");
    char *kept = before ? strdup(before) : NULL;
    cpu_isa have;
    assert_ok(cpu_isa_detect(&have));
    for (int level = 0; level <= (int)have; level++) {
        setenv("INK_CPU", levels[level], 1);
        vl_model *m = load_mini((vl_model_options){.dtype = INK_BF16});
        session *s = open_session(m, (session_options){0});
        assert_int_equal(m->dev.isa, level);
        for (int i = 0; i < SAMPLES; i++)
            if (!skipped(i) && (level || i == 0 || i == 4 || i == SAMPLE_BLANK))
                check_sample(s, &samples[i]);
        session_free(s);
        vl_model_free(m);
    }
    setenv("INK_CPU", "sse9", 1);
    ink_model *model;
    assert_fails(ink_model_load(NULL, NULL, &model), INK_INVALID_ARGUMENT,
                 "INK_CPU=sse9: expected portable, avx2, avx512 or amx");
    if (kept)
        setenv("INK_CPU", kept, 1);
    else
        unsetenv("INK_CPU");
    free(kept);
}

/* ---- batches ---- */

static void check_result(const ink_result *r, const sample *x)
{
    if (r->status != INK_OK)
        fail_msg("%s: %s", x->path, r->error);
    assert_string_equal(r->text, x->text);
    assert_int_equal(r->text_length, strlen(x->text));
    assert_int_equal(r->finish, INK_FINISH_STOP);
    assert_int_equal(r->generated_tokens, x->n_ids);
    assert_false(r->looped);
    assert_null(r->error);
}

/* All samples of a task in one call; how many. */
static int read_task(ink_session *s, ink_task task)
{
    ink_read_options o = INK_READ_OPTIONS_DEFAULT;
    const ink_image *images[SAMPLES];
    const sample *of[SAMPLES];
    ink_result results[SAMPLES];
    int n = 0;
    o.task = task;
    for (int i = 0; i < SAMPLES; i++)
        if (samples[i].task == task && !skipped(i)) {
            of[n] = &samples[i];
            images[n++] = samples[i].handle;
        }
    assert_ok(ink_read_batch(s, images, (size_t)n, &o, results));
    for (int i = 0; i < n; i++) {
        check_result(&results[i], of[i]);
        ink_result_free(&results[i]);
    }
    return n;
}

static void one_batch(int max_sequences, int threads)
{
    ink_model_options o = INK_MODEL_OPTIONS_DEFAULT;
    ink_model *m;
    ink_session *s;
    o.max_sequences = max_sequences;
    o.threads = threads;
    assert_ok(ink_model_load(NULL, &o, &m));
    assert_ok(ink_session_create(m, NULL, &s));
    int n = read_task(s, INK_TASK_OCR) + read_task(s, INK_TASK_TABLE);
    assert_int_equal(n, SANITIZED ? 4 : SAMPLES);
    ink_session_free(s);
    ink_model_free(m);
}

/* All at once, in turns of three, and one after the other. */
static void batches_of_any_size(void **state)
{
    (void)state;
    one_batch(16, 2);
    one_batch(16, 1);
    one_batch(3, 2);
    one_batch(1, 2);
}

/* Field report 153: token ids do not depend on batch mates, which join and leave at different times. */
static void report_153_batch_mates(void **state)
{
    (void)state;
    enum { MATES = 8 };
    vl_model *m = load_mini((vl_model_options){.dtype = INK_BF16, .max_sequences = MATES + 1});
    session *s = open_session(m, (session_options){0});
    const sample *x = &samples[SANITIZED ? 4 : 8];
    for (int mates = 1; mates < (SANITIZED ? 2 : MATES); mates += 3) {
        prepared p[MATES + 1];
        sequence *q[MATES + 1];
        for (int i = 0; i <= mates; i++) {
            prepare_sample(s, i == mates ? x : &samples[i], &p[i]);
            assert_ok(session_add(s, &p[i].request, &q[i]));
            for (int k = 0; k < 2 * i; k++)
                assert_ok(session_step(s));
        }
        run_to_end(s);
        assert_same_ids(q[mates], x->ids, x->n_ids, "the last of a batch");
        for (int i = 0; i <= mates; i++) {
            if (i < mates)
                assert_same_ids(q[i], samples[i].ids, samples[i].n_ids, samples[i].path);
            session_remove(s, q[i]);
            prepared_free(&p[i]);
        }
    }
    session_free(s);
    vl_model_free(m);
}

/* Field reports 57 and 78: a blank image is an empty text, not an error and not an invention. */
static void report_57_78_blank(void **state)
{
    (void)state;
    ink_model *m;
    ink_session *s;
    ink_image *blank;
    ink_result r;
    uint8_t *white = malloc(64 * 256);
    memset(white, 255, 64 * 256);
    assert_ok(ink_model_load(NULL, NULL, &m));
    assert_ok(ink_session_create(m, NULL, &s));
    assert_ok(ink_read(s, samples[SAMPLE_BLANK].handle, NULL, &r));
    assert_string_equal(r.text, "");
    assert_int_equal(r.finish, INK_FINISH_STOP);
    ink_result_free(&r);
    assert_ok(ink_image_from_pixels(white, INK_GREY, 256, 64, 0, &blank));
    assert_ok(ink_read(s, blank, NULL, &r));
    assert_string_equal(r.text, "");
    assert_int_equal(r.finish, INK_FINISH_STOP);
    ink_result_free(&r);
    ink_image_free(blank);
    free(white);
    ink_session_free(s);
    ink_model_free(m);
}

/* ---- modules in F32 ---- */

typedef struct profile_counts {
    int64_t fp32_gemms, casts[3], bf16[3]; /* by module: visual, mlp_AR, language_model */
} profile_counts;

static profile_counts profile_of(const char *fp32_modules, ink_dtype dtype)
{
    static const char *const modules[3] = {"visual", "mlp_AR", "language_model"};
    ink_model_options o = INK_MODEL_OPTIONS_DEFAULT;
    ink_session_options so = INK_SESSION_OPTIONS_DEFAULT;
    ink_model *m;
    ink_session *s;
    ink_result r;
    profile_counts c = {0};
    o.fp32_modules = fp32_modules;
    o.dtype = dtype;
    so.profile = true;
    assert_ok(ink_model_load(NULL, &o, &m));
    assert_ok(ink_session_create(m, &so, &s));
    for (int i = 0; i < SAMPLES; i += 4) {
        assert_ok(ink_read(s, samples[i].handle, NULL, &r));
        check_result(&r, &samples[i]);
        ink_result_free(&r);
    }
    char *text = ink_session_profile(s, INK_REPORT_JSON);
    json_t *root = json_loads(text, 0, NULL), *row;
    assert_non_null(root);
    size_t i;
    c.fp32_gemms = json_integer_value(json_object_get(root, "fp32_gemm_calls"));
    json_array_foreach(json_object_get(root, "kernels"), i, row)
    {
        int64_t calls = json_integer_value(json_object_get(row, "calls"));
        int module = -1;
        for (int k = 0; k < 3; k++)
            if (!strcmp(json_string_value(json_object_get(row, "module")), modules[k]))
                module = k;
        assert_true(module >= 0 && calls > 0);
        if (!strcmp(json_string_value(json_object_get(row, "op")), "cast"))
            c.casts[module] += calls;
        else if (!strcmp(json_string_value(json_object_get(row, "dtype")), "bf16"))
            c.bf16[module] += calls;
    }
    json_decref(root);
    free(text);
    ink_session_free(s);
    ink_model_free(m);
    return c;
}

/* The reference's _keep_in_fp32_modules: same text, FP32 products in those modules only, casts at their boundary only. */
static void modules_in_f32(void **state)
{
    (void)state;
    const int64_t images = (SAMPLES + 3) / 4;
    profile_counts c = profile_of(NULL, INK_BF16);
    assert_int_equal(c.fp32_gemms, 0);
    assert_int_equal(c.casts[0] + c.casts[1] + c.casts[2], 0);
    assert_true(c.bf16[0] > 0 && c.bf16[1] > 0 && c.bf16[2] > 0);

    c = profile_of("visual,mlp_AR", INK_BF16);
    /* patch embedding, 6 products in each of 6 layers, 2 of the projector */
    assert_int_equal(c.fp32_gemms, images * (1 + 6 * 6 + 2));
    assert_int_equal(c.bf16[0] + c.bf16[1], 0);
    assert_int_equal(c.casts[0] + c.casts[1], 0);
    assert_int_equal(c.casts[2], images); /* features, once per image */

    c = profile_of("visual", INK_BF16);
    assert_int_equal(c.fp32_gemms, images * (1 + 6 * 6));
    assert_int_equal(c.casts[0] + c.casts[1], images); /* between tower and projector */
    assert_int_equal(c.casts[2], 0);

    c = profile_of("mlp_AR", INK_BF16);
    assert_int_equal(c.fp32_gemms, images * 2);
    assert_int_equal(c.casts[0] + c.casts[1], images);
    assert_int_equal(c.casts[2], images);

    c = profile_of("language_model", INK_BF16);
    assert_true(c.fp32_gemms > 0);
    assert_int_equal(c.bf16[2], 0);
    c = profile_of(NULL, INK_F32);
    assert_int_equal(c.bf16[0] + c.bf16[1] + c.bf16[2], 0);
    assert_int_equal(c.casts[0] + c.casts[1] + c.casts[2], 0);
}

/* ---- image sizes ---- */

static ink_status read_grey(ink_session *s, int width, int height, ink_result *r)
{
    uint8_t *pixels = malloc((size_t)width * (size_t)height);
    ink_image *img;
    memset(pixels, 240, (size_t)width * (size_t)height);
    assert_ok(ink_image_from_pixels(pixels, INK_GREY, width, height, 0, &img));
    free(pixels);
    ink_status status = ink_read(s, img, NULL, r);
    ink_image_free(img);
    return status;
}

/* Field reports 99 and 100: no size crashes; a strip over the aspect limit of 200 (98) is refused by name. */
static void report_98_99_100_odd_sizes(void **state)
{
    (void)state;
    static const int fine[][2] = {{1, 1},    {27, 257}, {257, 27}, {2, 3},     {28, 28},
                                  {31, 639}, {900, 5},  {5, 900},  {5600, 28}, {3000, 16}};
    static const int strips[][2] = {{900, 4}, {4, 900}, {1, 5000}, {5000, 1}, {3000, 14}};
    ink_model_options o = INK_MODEL_OPTIONS_DEFAULT;
    ink_model *m;
    ink_session *s;
    ink_result r;
    for (int budget = 0; budget < 2; budget++) {
        o.max_pixels = budget ? 15680 : 0; /* report 100: 20 cells of 28 x 28 */
        assert_ok(ink_model_load(NULL, &o, &m));
        assert_ok(ink_session_create(m, NULL, &s));
        for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
            assert_ok(read_grey(s, fine[i][0], fine[i][1], &r));
            assert_true(r.image_tokens >= 1);
            if (budget && fine[i][0] == 31)
                assert_true(r.image_tokens * 28 * 28 <= 15680);
            ink_result_free(&r);
        }
        for (size_t i = 0; i < sizeof strips / sizeof *strips; i++) {
            assert_fails(read_grey(s, strips[i][0], strips[i][1], &r), INK_INVALID_ARGUMENT, "aspect ratio");
            assert_int_equal(r.status, INK_INVALID_ARGUMENT);
            assert_null(r.text);
            ink_result_free(&r);
        }
        ink_session_free(s);
        ink_model_free(m);
    }
}

/* Field report 98: one strip among good images fails alone. */
static void report_98_strip_fails_alone(void **state)
{
    (void)state;
    uint8_t strip[900 * 4];
    ink_image *bad;
    ink_model *m;
    ink_session *s;
    ink_result results[7];
    memset(strip, 200, sizeof strip);
    assert_ok(ink_image_from_pixels(strip, INK_GREY, 900, 4, 0, &bad));
    assert_ok(ink_model_load(NULL, NULL, &m));
    assert_ok(ink_session_create(m, NULL, &s));
    const ink_image *images[7] = {samples[0].handle, samples[1].handle, bad, samples[2].handle, NULL,
                                  samples[3].handle, samples[4].handle};
    static const int expected[7] = {0, 1, -1, 2, -1, 3, 4};
    assert_ok(ink_read_batch(s, images, 7, NULL, results));
    for (int i = 0; i < 7; i++) {
        if (expected[i] >= 0)
            check_result(&results[i], &samples[expected[i]]);
        else {
            assert_int_equal(results[i].status, INK_INVALID_ARGUMENT);
            assert_non_null(strstr(results[i].error, i == 2 ? "aspect ratio" : "image 4 is NULL"));
        }
        ink_result_free(&results[i]);
    }
    ink_image_free(bad);
    ink_session_free(s);
    ink_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_in_bf16),
        cmocka_unit_test(report_59_samples_in_f32_and_f16),
        cmocka_unit_test(report_58_every_instruction_set),
        cmocka_unit_test(batches_of_any_size),
        cmocka_unit_test(report_153_batch_mates),
        cmocka_unit_test(report_57_78_blank),
        cmocka_unit_test(modules_in_f32),
        cmocka_unit_test(report_98_99_100_odd_sizes),
        cmocka_unit_test(report_98_strip_fails_alone),
    };
    return cmocka_run_group_tests(tests, open_samples, close_samples);
}
