/* test_api.c - inkstone.h from outside: defaults, misuse, ownership, cancelling, raw pixels, spotting, reports. Uses only
 * the public header and the sample images. */
#include "engine_support.h"

#include <pthread.h>

static ink_model *model;
static ink_session *shared;

static int open_all(void **state)
{
    return open_samples(state) || ink_model_load(NULL, NULL, &model) != INK_OK ||
           ink_session_create(model, NULL, &shared) != INK_OK;
}

static int close_all(void **state)
{
    ink_session_free(shared);
    ink_model_free(model);
    return close_samples(state);
}

/* ---- misuse ---- */

static void missing_arguments(void **state)
{
    (void)state;
    ink_model *m = (ink_model *)&m;
    ink_image *img;
    ink_session *s;
    ink_result r;
    assert_fails(ink_model_load(NULL, NULL, NULL), INK_INVALID_ARGUMENT, "ink_model_load: out is NULL");
    assert_fails(ink_image_load(NULL, &img), INK_INVALID_ARGUMENT, "ink_image_load: path is NULL");
    assert_null(img);
    assert_fails(ink_image_load("x.png", NULL), INK_INVALID_ARGUMENT, "out is NULL");
    assert_fails(ink_image_decode(NULL, 10, &img), INK_INVALID_ARGUMENT, "data is NULL");
    assert_fails(ink_image_from_pixels(NULL, INK_RGB, 1, 1, 0, &img), INK_INVALID_ARGUMENT, "data is NULL");
    assert_fails(ink_session_create(NULL, NULL, &s), INK_INVALID_ARGUMENT, "model is NULL");
    assert_null(s);
    assert_fails(ink_read(NULL, samples[0].handle, NULL, &r), INK_INVALID_ARGUMENT, "session is NULL");
    assert_int_equal(r.status, INK_INVALID_ARGUMENT);
    ink_result_free(&r);
    assert_fails(ink_read(shared, NULL, NULL, &r), INK_INVALID_ARGUMENT, "image 0 is NULL");
    assert_int_equal(r.status, INK_INVALID_ARGUMENT);
    assert_non_null(r.error);
    ink_result_free(&r);
    assert_fails(ink_read(shared, samples[0].handle, NULL, NULL), INK_INVALID_ARGUMENT, "out is NULL");
    assert_fails(ink_read_batch(shared, NULL, 1, NULL, &r), INK_INVALID_ARGUMENT, "images is NULL");
    ink_result_free(&r);
    assert_null(ink_format_text(INK_TASK_OCR, NULL, 0, INK_FORMAT_HTML));
    assert_null(ink_model_report(NULL, INK_REPORT_TEXT));
    assert_null(ink_session_profile(NULL, INK_REPORT_TEXT));
    ink_model_free(NULL);
    ink_session_free(NULL);
    ink_image_free(NULL);
    ink_result_free(NULL);
    ink_cancel(NULL);
    assert_int_equal(ink_image_width(NULL), 0);
    assert_int_equal(ink_image_height(NULL), 0);
    (void)m;
}

static void bad_model_options(void **state)
{
    (void)state;
    const ink_model_options good = INK_MODEL_OPTIONS_DEFAULT;
    ink_model_options o = good;
    ink_model *m;
    o.dtype = INK_I32;
    assert_fails(ink_model_load(NULL, &o, &m), INK_INVALID_ARGUMENT, "dtype i32, expected bf16, f16 or f32");
    assert_null(m);
    o = good, o.dtype = (ink_dtype)99;
    assert_int_equal(ink_model_load(NULL, &o, &m), INK_INVALID_ARGUMENT);
    o = good, o.fp32_modules = "visual,head";
    assert_fails(ink_model_load(NULL, &o, &m), INK_INVALID_ARGUMENT, "'head', expected visual, mlp_AR or language_model");
    o = good, o.threads = -1;
    assert_fails(ink_model_load(NULL, &o, &m), INK_INVALID_ARGUMENT, "threads: -1");
    o = good, o.max_sequences = 5000;
    assert_fails(ink_model_load(NULL, &o, &m), INK_INVALID_ARGUMENT, "max_sequences is 5000");
    o = good, o.max_pixels = -3;
    assert_fails(ink_model_load(NULL, &o, &m), INK_INVALID_ARGUMENT, "max_pixels -3");
    o = good, o.min_pixels = 500000, o.max_pixels = 1000;
    assert_fails(ink_model_load(NULL, &o, &m), INK_INVALID_ARGUMENT, "min_pixels 500000 is larger than max_pixels 1000");
    o = good, o.delete_passes = "no_such_pass";
    assert_fails(ink_model_load(NULL, &o, &m), INK_INVALID_ARGUMENT, "no_such_pass");
    assert_fails(ink_model_load("/nonexistent/model", NULL, &m), INK_NOT_FOUND, "/nonexistent/model");
    assert_fails(ink_model_load(GOLDEN_DIR, NULL, &m), INK_NOT_FOUND, "config.json");
    assert_fails(ink_model_load(MINI_DIR "/model.safetensors", NULL, &m), INK_INVALID_ARGUMENT, "model.safetensors");
    assert_null(m);
    ink_session_options so = INK_SESSION_OPTIONS_DEFAULT;
    ink_session *s;
    so.max_tokens_per_sequence = -1;
    assert_fails(ink_session_create(model, &so, &s), INK_INVALID_ARGUMENT, "max_tokens_per_sequence is -1");
}

static void refuse(const ink_read_options *o, const char *words)
{
    const ink_image *images[2] = {samples[0].handle, samples[1].handle};
    ink_result results[2];
    assert_fails(ink_read_batch(shared, images, 2, o, results), INK_INVALID_ARGUMENT, words);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(results[i].status, INK_INVALID_ARGUMENT);
        assert_non_null(strstr(results[i].error, words));
        assert_null(results[i].text);
        ink_result_free(&results[i]);
    }
}

static void bad_read_options(void **state)
{
    (void)state;
    const ink_read_options good = INK_READ_OPTIONS_DEFAULT;
    ink_read_options o = good;
    o.task = (ink_task)6;
    refuse(&o, "unknown task 6");
    o = good, o.task = (ink_task)-1;
    refuse(&o, "unknown task -1");
    o = good, o.max_tokens = -1;
    refuse(&o, "max_tokens is -1");
    o = good, o.temperature = -0.5f;
    refuse(&o, "temperature is -0.5");
    o = good, o.temperature = 0.0f / 0.0f;
    refuse(&o, "temperature is ");
    o = good, o.top_p = 1.5f;
    refuse(&o, "top_p is 1.5");
    o = good, o.repetition_penalty = -1;
    refuse(&o, "repetition_penalty is -1");
    o = good, o.min_pixels = -1;
    refuse(&o, "min_pixels -1");
    assert_string_equal(ink_task_name((ink_task)77), "?");
    assert_string_equal(ink_finish_name((ink_finish)77), "?");
    assert_string_equal(ink_status_name((ink_status)77), "unknown");
    ink_task t;
    assert_false(ink_task_parse("OCR", &t));
    assert_false(ink_task_parse(NULL, &t));
    for (int i = INK_TASK_OCR; i <= INK_TASK_SEAL; i++) {
        assert_true(ink_task_parse(ink_task_name((ink_task)i), &t));
        assert_int_equal(t, i);
    }
}

/* Limits of a call beyond what the model was planned for: an error that says what to do, not a crash. */
static void larger_than_planned(void **state)
{
    (void)state;
    ink_read_options o = INK_READ_OPTIONS_DEFAULT;
    ink_result r;
    o.min_pixels = 3000000;
    o.max_pixels = 4000000;
    assert_fails(ink_read(shared, samples[0].handle, &o, &r), INK_INVALID_ARGUMENT, "load it with a larger max_pixels");
    ink_result_free(&r);
    ink_session_options so = INK_SESSION_OPTIONS_DEFAULT;
    ink_session *s;
    so.max_tokens_per_sequence = 32;
    assert_ok(ink_session_create(model, &so, &s));
    o = INK_READ_OPTIONS_DEFAULT;
    o.max_tokens = 5000;
    assert_fails(ink_read(s, samples[0].handle, &o, &r), INK_INVALID_ARGUMENT, "KV cache");
    ink_result_free(&r);
    ink_session_free(s);
}

/* ---- defaults ---- */

static void check_read(ink_session *s, const ink_image *img, const ink_read_options *o, const char *text)
{
    ink_result r;
    assert_ok(ink_read(s, img, o, &r));
    assert_string_equal(r.text, text);
    ink_result_free(&r);
    ink_result_free(&r); /* an emptied result may be freed again */
}

/* NULL, the initialiser and zeroed memory mean the same. */
static void options_default_to_zero(void **state)
{
    (void)state;
    ink_read_options zero, initialised = INK_READ_OPTIONS_DEFAULT;
    ink_session_options none = INK_SESSION_OPTIONS_DEFAULT;
    ink_session *s;
    memset(&zero, 0, sizeof zero);
    check_read(shared, samples[0].handle, NULL, samples[0].text);
    check_read(shared, samples[0].handle, &zero, samples[0].text);
    check_read(shared, samples[0].handle, &initialised, samples[0].text);
    assert_ok(ink_session_create(model, &none, &s));
    check_read(s, samples[0].handle, NULL, samples[0].text);
    assert_null(ink_session_profile(s, INK_REPORT_TEXT));
    assert_non_null(strstr(ink_last_error(), "without profile"));
    ink_session_free(s);
    assert_int_equal(INK_MODEL_OPTIONS_DEFAULT.dtype, INK_BF16);
    assert_ok(ink_read_batch(shared, NULL, 0, NULL, NULL)); /* nothing to do */
}

/* A session small on purpose: the default length of an answer adapts, one asked for is refused. */
static void small_session(void **state)
{
    (void)state;
    ink_session_options so = INK_SESSION_OPTIONS_DEFAULT;
    ink_session *s;
    ink_result r;
    so.max_tokens_per_sequence = 64;
    assert_ok(ink_session_create(model, &so, &s));
    check_read(s, samples[0].handle, NULL, samples[0].text);
    so.max_tokens_per_sequence = 32;
    ink_session_free(s);
    assert_ok(ink_session_create(model, &so, &s));
    assert_ok(ink_read(s, samples[0].handle, NULL, &r)); /* room for a part of the answer */
    assert_int_equal(r.finish, INK_FINISH_LENGTH);
    assert_int_equal(r.prompt_tokens + r.generated_tokens, 32);
    assert_memory_equal(r.text, samples[0].text, r.text_length);
    ink_result_free(&r);
    ink_session_free(s);
}

/* ---- images ---- */

/* The bytes of a pixel in each format, from RGB. */
static size_t put_pixel(uint8_t *to, ink_pixel_format f, const uint8_t *rgb)
{
    const bool bgr = f == INK_BGR || f == INK_BGRA, alpha = f == INK_RGBA || f == INK_BGRA;
    for (int i = 0; i < 3; i++)
        to[i] = rgb[bgr ? 2 - i : i];
    to[3] = 255;
    return alpha ? 4 : 3;
}

/* Field report 112: pixels in any order and with any stride read like the file. */
static void report_112_raw_pixels(void **state)
{
    (void)state;
    static const ink_pixel_format formats[] = {INK_RGB, INK_RGBA, INK_BGR, INK_BGRA};
    const sample *x = &samples[4];
    const size_t w = (size_t)x->img.width, h = (size_t)x->img.height;
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
        for (size_t pad = 0; pad < 40; pad += 13) {
            const size_t bytes = formats[k] == INK_RGBA || formats[k] == INK_BGRA ? 4 : 3, stride = w * bytes + pad;
            uint8_t *p = malloc(stride * h + 1);
            ink_image *img;
            memset(p, 0x5A, stride * h + 1);
            for (size_t y = 0; y < h; y++)
                for (size_t i = 0; i < w; i++) {
                    uint8_t pixel[4];
                    memcpy(p + y * stride + i * bytes, pixel,
                           put_pixel(pixel, formats[k], x->img.pixels + 3 * (y * w + i)));
                }
            assert_ok(ink_image_from_pixels(p, formats[k], (int)w, (int)h, pad ? stride : 0, &img));
            free(p); /* copied */
            assert_int_equal(ink_image_width(img), w);
            assert_int_equal(ink_image_height(img), h);
            check_read(shared, img, NULL, x->text);
            ink_image_free(img);
        }
}

/* Grey images: the sample's green channel reads the same in all grey forms; nothing is invented on a clear one. */
static void report_112_grey_pixels(void **state)
{
    (void)state;
    const sample *x = &samples[4];
    const int w = x->img.width, h = x->img.height;
    uint8_t *grey = malloc((size_t)(w * h)), *with_alpha = malloc((size_t)(2 * w * h));
    ink_image *one, *two;
    ink_result r, q;
    for (int i = 0; i < w * h; i++) {
        grey[i] = with_alpha[2 * i] = x->img.pixels[3 * i + 1];
        with_alpha[2 * i + 1] = 255;
    }
    assert_ok(ink_image_from_pixels(grey, INK_GREY, w, h, 0, &one));
    assert_ok(ink_image_from_pixels(with_alpha, INK_GREY_ALPHA, w, h, 0, &two));
    assert_ok(ink_read(shared, one, NULL, &r));
    assert_ok(ink_read(shared, two, NULL, &q));
    assert_string_equal(r.text, q.text);
    ink_result_free(&r);
    ink_result_free(&q);
    ink_image_free(two);
    for (int i = 0; i < w * h; i++)
        with_alpha[2 * i + 1] = 0; /* all clear: white */
    assert_ok(ink_image_from_pixels(with_alpha, INK_GREY_ALPHA, w, h, 0, &two));
    check_read(shared, two, NULL, "");
    ink_image_free(one);
    ink_image_free(two);
    free(grey);
    free(with_alpha);
}

static void bad_pixels(void **state)
{
    (void)state;
    uint8_t p[12] = {0};
    ink_image *img;
    assert_int_equal(ink_image_from_pixels(p, INK_RGB, 2, 2, 5, &img), INK_INVALID_ARGUMENT); /* a row takes 6 */
    assert_null(img);
    assert_int_equal(ink_image_from_pixels(p, INK_RGB, 0, 2, 0, &img), INK_INVALID_ARGUMENT);
    assert_int_equal(ink_image_from_pixels(p, INK_RGB, 2, -2, 0, &img), INK_INVALID_ARGUMENT);
    assert_int_equal(ink_image_from_pixels(p, (ink_pixel_format)6, 2, 2, 0, &img), INK_INVALID_ARGUMENT);
    assert_int_equal(ink_image_from_pixels(p, (ink_pixel_format)-1, 2, 2, 0, &img), INK_INVALID_ARGUMENT);
    assert_int_equal(ink_image_from_pixels(p, INK_RGB, 70000, 70000, 0, &img), INK_RESOURCE_EXHAUSTED);
    assert_null(img);
    assert_fails(ink_image_decode("", 0, &img), INK_BAD_DATA, "empty");
    assert_int_equal(ink_image_decode("GIF89a..", 8, &img), INK_UNIMPLEMENTED);
    assert_null(img);
    assert_fails(ink_image_load("/nonexistent.png", &img), INK_NOT_FOUND, "/nonexistent.png");
    assert_int_equal(ink_image_load(GOLDEN_DIR, &img), INK_IO);
}

/* ---- callbacks ---- */

typedef struct log_entry {
    int texts, dones;
    strbuf text;
    ink_status status;
} log_entry;

typedef struct observer {
    log_entry of[8];
    ink_session *cancel;
    int cancel_after, total, stop_index;
} observer;

static bool see_text(void *user, size_t index, const char *text, size_t length)
{
    observer *o = user;
    o->of[index].texts++;
    assert_int_equal(o->of[index].dones, 0);
    strbuf_add(&o->of[index].text, text, length);
    if (++o->total == o->cancel_after)
        ink_cancel(o->cancel);
    return (int)index != o->stop_index;
}

static void see_done(void *user, size_t index, const ink_result *result)
{
    observer *o = user;
    o->of[index].dones++;
    o->of[index].status = result->status;
}

static void observe(observer *o, int n, ink_result *results)
{
    ink_read_options ro = INK_READ_OPTIONS_DEFAULT;
    const ink_image *images[8];
    for (int i = 0; i < n; i++)
        images[i] = i == 2 ? NULL : samples[i].handle;
    ro.on_text = see_text;
    ro.on_done = see_done;
    ro.user = o;
    assert_ok(ink_read_batch(shared, images, (size_t)n, &ro, results));
}

static void free_observed(observer *o, int n, ink_result *results)
{
    for (int i = 0; i < n; i++) {
        strbuf_free(&o->of[i].text);
        ink_result_free(&results[i]);
    }
}

/* Every image is done exactly once; pieces add up; false stops that image alone. */
static void callbacks(void **state)
{
    (void)state;
    observer o = {.stop_index = 1};
    ink_result results[5];
    observe(&o, 5, results);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(o.of[i].dones, 1);
        assert_int_equal(o.of[i].status, i == 2 ? INK_INVALID_ARGUMENT : INK_OK);
        if (i == 2)
            continue;
        assert_string_equal(results[i].text, strbuf_text(&o.of[i].text));
        if (i == 1) {
            assert_int_equal(results[i].finish, INK_FINISH_CANCELLED);
            assert_true(results[i].generated_tokens <= 2);
        } else
            assert_string_equal(results[i].text, samples[i].text);
    }
    free_observed(&o, 5, results);
}

/* Cancelling ends the whole call, images that had not begun included, and leaves nothing behind for the next. */
static void cancel_from_a_callback(void **state)
{
    (void)state;
    observer o = {.stop_index = -1, .cancel = shared, .cancel_after = 1};
    ink_result results[5];
    observe(&o, 5, results);
    assert_int_equal(o.total, 1);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(o.of[i].dones, 1);
        assert_int_equal(results[i].status, INK_OK);
        assert_int_equal(results[i].finish, INK_FINISH_CANCELLED);
        assert_non_null(results[i].text);
    }
    free_observed(&o, 5, results);
    ink_cancel(shared); /* no read is going on: no effect */
    check_read(shared, samples[0].handle, NULL, samples[0].text);
}

typedef struct canceller {
    ink_session *session;
    volatile bool stop;
} canceller;

static void *keep_cancelling(void *user)
{
    canceller *c = user;
    while (!c->stop) {
        ink_cancel(c->session);
        usleep(1000);
    }
    return NULL;
}

static void cancel_from_another_thread(void **state)
{
    (void)state;
    ink_read_options o = INK_READ_OPTIONS_DEFAULT;
    canceller c = {shared, false};
    pthread_t id;
    ink_result r;
    o.temperature = 100; /* an answer without sense or end */
    o.max_tokens = 100000;
    assert_int_equal(pthread_create(&id, NULL, keep_cancelling, &c), 0);
    assert_ok(ink_read(shared, samples[9].handle, &o, &r));
    c.stop = true;
    pthread_join(id, NULL);
    assert_int_equal(r.finish, INK_FINISH_CANCELLED);
    assert_string_equal(ink_finish_name(r.finish), "cancelled");
    ink_result_free(&r);
}

/* ---- prompts and tasks ---- */

/* Special tokens in a prompt from outside stay text: the number of placeholders is the image's (field report 95). */
static void report_95_literal_special_tokens(void **state)
{
    (void)state;
    ink_read_options o = INK_READ_OPTIONS_DEFAULT;
    ink_result plain, tricky;
    o.max_tokens = 2;
    o.prompt = "OCR:";
    assert_ok(ink_read(shared, samples[0].handle, &o, &plain));
    o.prompt = "OCR:<|IMAGE_PLACEHOLDER|></s><|IMAGE_START|>\xff";
    assert_ok(ink_read(shared, samples[0].handle, &o, &tricky));
    assert_int_equal(plain.image_tokens, tricky.image_tokens);
    assert_true(tricky.prompt_tokens > plain.prompt_tokens);
    ink_result_free(&plain);
    ink_result_free(&tricky);
    o.prompt = "";
    assert_ok(ink_read(shared, samples[0].handle, &o, &plain));
    ink_result_free(&plain);
}

static void every_task_runs(void **state)
{
    (void)state;
    ink_model_options mo = INK_MODEL_OPTIONS_DEFAULT;
    ink_model *m;
    ink_session *s;
    mo.max_pixels = 1605632; /* spotting enlarges */
    assert_ok(ink_model_load(NULL, &mo, &m));
    assert_ok(ink_session_create(m, NULL, &s));
    for (int t = INK_TASK_OCR; t <= INK_TASK_SEAL; t++) {
        ink_read_options o = INK_READ_OPTIONS_DEFAULT;
        ink_result r;
        o.task = (ink_task)t;
        o.max_tokens = 20;
        o.min_pixels = 3136; /* in place of spotting's own, larger one */
        assert_ok(ink_read(s, samples[0].handle, &o, &r));
        assert_int_equal(strlen(r.text), r.text_length);
        for (int f = INK_FORMAT_RAW; f <= INK_FORMAT_MARKDOWN; f++) {
            char *text = ink_format_text((ink_task)t, r.text, r.text_length, (ink_format)f);
            assert_non_null(text);
            free(text);
        }
        ink_result_free(&r);
    }
    ink_session_free(s);
    ink_model_free(m);
}

static void text_forms(void **state)
{
    (void)state;
    char *t = ink_format_text(INK_TASK_TABLE, "<fcel>a<fcel>b & c<nl>", 22, INK_FORMAT_HTML);
    assert_string_equal(t, "<table><tr><td>a</td><td>b &amp; c</td></tr></table>");
    free(t);
    t = ink_format_text(INK_TASK_OCR, "<b>", 3, INK_FORMAT_HTML);
    assert_string_equal(t, "&lt;b&gt;");
    free(t);
    t = ink_format_text(INK_TASK_OCR, "abc", 2, INK_FORMAT_RAW);
    assert_string_equal(t, "ab");
    free(t);
    assert_null(ink_format_text(INK_TASK_OCR, "abc", 3, (ink_format)9));
    assert_non_null(strstr(ink_last_error(), "unknown format 9"));
}

/* ---- reports ---- */

static json_t *parse(char *text)
{
    assert_non_null(text);
    json_t *j = json_loads(text, 0, NULL);
    assert_non_null(j);
    free(text);
    return j;
}

static void reports(void **state)
{
    (void)state;
    json_t *j = parse(ink_model_report(model, INK_REPORT_JSON));
    assert_int_equal(json_array_size(json_object_get(j, "plans")), 4);
    assert_int_equal(json_integer_value(json_object_get(j, "fp32_gemm_nodes")), 0);
    json_decref(j);
    json_decref(parse(ink_devices_report(INK_REPORT_JSON)));
    j = parse(ink_kernels_report("conv2d", "cpu", "bf16", INK_REPORT_JSON));
    assert_true(json_array_size(j) >= 2);
    json_decref(j);
    char *markdown = ink_kernels_report(NULL, NULL, NULL, INK_REPORT_MARKDOWN);
    assert_non_null(strstr(markdown, "| --- |"));
    free(markdown);
    assert_null(ink_kernels_report("conv9d", NULL, NULL, INK_REPORT_TEXT));
    assert_non_null(strstr(ink_last_error(), "no op is called 'conv9d'"));
    assert_null(ink_kernels_report(NULL, "rocm", NULL, INK_REPORT_TEXT));
    assert_null(ink_kernels_report(NULL, NULL, "bf17", INK_REPORT_TEXT));
    assert_null(ink_kernels_report(NULL, NULL, NULL, (ink_report)7));
    assert_null(ink_devices_report(INK_REPORT_MARKDOWN));
    assert_true(strlen(ink_version()) >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_arguments),
        cmocka_unit_test(bad_model_options),
        cmocka_unit_test(bad_read_options),
        cmocka_unit_test(larger_than_planned),
        cmocka_unit_test(options_default_to_zero),
        cmocka_unit_test(small_session),
        cmocka_unit_test(report_112_raw_pixels),
        cmocka_unit_test(report_112_grey_pixels),
        cmocka_unit_test(bad_pixels),
        cmocka_unit_test(callbacks),
        cmocka_unit_test(cancel_from_a_callback),
        cmocka_unit_test(cancel_from_another_thread),
        cmocka_unit_test(report_95_literal_special_tokens),
        cmocka_unit_test(every_task_runs),
        cmocka_unit_test(text_forms),
        cmocka_unit_test(reports),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
