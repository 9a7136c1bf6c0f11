/* engine_support.h - the mini model, its sample images and their recorded answers, for the tests of the engine. */
#ifndef TESTS_ENGINE_SUPPORT_H
#define TESTS_ENGINE_SUPPORT_H
#include "core/memory.h"
#include "core/rng.h"
#include "core/strbuf.h"
#include "engine/session.h"
#include "image/decode.h"
#include "inkstone/inkstone.h"
#include "text/prompt.h"
#include "text/utf8.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define MINI_DIR INK_SOURCE_DIR "/models/mini"
#define GOLDEN_DIR MINI_DIR "/golden/"

#define assert_ok(expr)                                  \
    do {                                                 \
        if ((expr) != INK_OK)                            \
            fail_msg("%s: %s", #expr, ink_last_error()); \
    } while (0)

/* The call fails with `status` and a message that contains `words`. */
#define assert_fails(expr, status, words)                                                              \
    do {                                                                                               \
        ink_status got_ = (expr);                                                                      \
        if (got_ != (status) || !strstr(ink_last_error(), (words)))                                    \
            fail_msg("%s: expected %s \"%s\", got %s \"%s\"", #expr, ink_status_name(status), (words), \
                     ink_status_name(got_), got_ == INK_OK ? "" : ink_last_error());                   \
    } while (0)

static inline rng fresh_rng(void)
{
    const char *fixed = getenv("INK_TEST_SEED");
    rng r = {.seed = fixed ? strtoull(fixed, NULL, 10) : (uint64_t)time(NULL)};
    print_message("seed %llu (INK_TEST_SEED repeats it)\n", (unsigned long long)r.seed);
    return r;
}

/* ---- samples ---- */
enum { SAMPLES = 13, SAMPLE_BLANK = 12 };

typedef struct sample {
    char path[512];
    const char *text, *prompt;
    ink_task task;    /* whose prompt it is */
    int32_t ids[256]; /* without the end-of-text token */
    size_t n_ids;
    image img;
    ink_image *handle;
} sample;

static sample samples[SAMPLES];
static json_t *samples_root;

static inline int open_samples(void **state)
{
    (void)state;
    samples_root = json_load_file(GOLDEN_DIR "samples.json", 0, NULL);
    if (json_array_size(samples_root) != SAMPLES)
        return -1;
    for (int i = 0; i < SAMPLES; i++) {
        sample *s = &samples[i];
        json_t *o = json_array_get(samples_root, (size_t)i), *ids = json_object_get(o, "generated_ids");
        snprintf(s->path, sizeof s->path, "%s%s", GOLDEN_DIR, json_string_value(json_object_get(o, "file")));
        s->text = json_string_value(json_object_get(o, "text"));
        s->prompt = json_string_value(json_object_get(o, "prompt"));
        s->task = !strcmp(s->prompt, prompt_task_find("table")->prompt) ? INK_TASK_TABLE : INK_TASK_OCR;
        if (strcmp(s->prompt, prompt_task_find(ink_task_name(s->task))->prompt) != 0)
            return -1;
        s->n_ids = json_array_size(ids) - 1;
        for (size_t k = 0; k < s->n_ids; k++)
            s->ids[k] = (int32_t)json_integer_value(json_array_get(ids, k));
        if (image_load(s->path, NULL, &s->img) != INK_OK || ink_image_load(s->path, &s->handle) != INK_OK)
            return -1;
    }
    return 0;
}

static inline int close_samples(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        image_free(&samples[i].img);
        ink_image_free(samples[i].handle);
    }
    json_decref(samples_root);
    return 0;
}

/* ---- the model under test ---- */
static inline vl_model *load_mini(vl_model_options o)
{
    vl_model *m;
    if (!o.threads)
        o.threads = 2;
    assert_ok(vl_model_load(&o, &m));
    return m;
}

static inline session *open_session(const vl_model *m, session_options o)
{
    session *s;
    assert_ok(session_create(m, &o, &s));
    return s;
}

/* An image's prompt, features and request, kept until prepared_free. */
typedef struct prepared {
    features f;
    prompt p;
    generation_request request;
} prepared;

static inline void prepare(session *s, const image *img, const char *text, prepared *out)
{
    const vl_model *m = session_model(s);
    *out = (prepared){0};
    assert_ok(session_encode_image(s, img, NULL, &out->f));
    size_t tokens = (size_t)out->f.grid.tokens;
    prompt_message message = {PROMPT_USER, text, strlen(text), 1};
    assert_ok(prompt_build(m->tokens, m->assistant_prefix, &message, 1, &tokens, 1, &out->p));
    out->request = (generation_request){.ids = out->p.ids.ids,
                                        .n_ids = out->p.ids.count,
                                        .images = &out->f,
                                        .n_images = 1,
                                        .max_tokens = 512,
                                        .top_p = 1,
                                        .repetition_penalty = 1};
}

static inline void prepare_sample(session *s, const sample *x, prepared *out) { prepare(s, &x->img, x->prompt, out); }

static inline void prepared_free(prepared *p)
{
    features_free(&p->f);
    prompt_free(&p->p);
}

static inline void run_to_end(session *s)
{
    while (session_active(s))
        assert_ok(session_step(s));
}

static inline void assert_same_ids(const sequence *q, const int32_t *ids, size_t n, const char *what)
{
    if (q->generated.count != n || (n && memcmp(q->generated.ids, ids, n * sizeof *ids) != 0))
        fail_msg("%s: %zu tokens \"%s\", expected %zu", what, q->generated.count, strbuf_text(&q->text), n);
}

/* Under a sanitizer only the small images are read: every path is the same, and the time bearable. */
#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
enum { SANITIZED = __has_feature(address_sanitizer) };
#else
enum { SANITIZED = 0 };
#endif
static inline bool skipped(int i) { return SANITIZED && i != 0 && i != 4 && i != 9 && i != SAMPLE_BLANK; }

/* Answer of one sample, checked against the recording. */
static inline void check_sample(session *s, const sample *x)
{
    prepared p;
    sequence *q;
    prepare_sample(s, x, &p);
    assert_ok(session_add(s, &p.request, &q));
    run_to_end(s);
    assert_same_ids(q, x->ids, x->n_ids, x->path);
    assert_string_equal(strbuf_text(&q->text), x->text);
    assert_int_equal(q->finish, FINISH_STOP);
    session_remove(s, q);
    prepared_free(&p);
}
#endif
