/* api.c - inkstone.h over the model and session. */
#include "inkstone/inkstone.h"

#include "engine/session.h"
#include "image/decode.h"
#include "image/resize.h"
#include "engine/report.h"
#include "text/markdown.h"
#include "text/otsl.h"
#include "text/prompt.h"
#include "text/spotting.h"

#include <stdlib.h>
#include <string.h>

struct ink_model {
    vl_model *model;
};

struct ink_image {
    image img;
};

struct ink_session {
    session *s;
};

const char *ink_version(void) { return INK_VERSION; }

/* ---- model ---- */

ink_status ink_model_load(const char *directory, const ink_model_options *options, ink_model **out)
{
    const ink_model_options o = options ? *options : INK_MODEL_OPTIONS_DEFAULT;
    const vl_model_options vo = {.directory = directory, .dtype = o.dtype, .fp32_modules = o.fp32_modules, .threads = o.threads,
                                 .disable = o.disable_kernels, .delete_passes = o.delete_passes, .min_pixels = o.min_pixels,
                                 .max_pixels = o.max_pixels, .max_sequences = o.max_sequences, .assistant_prefix = o.assistant_prefix};
    *out = NULL;
    if (o.max_sequences < 0 || o.max_sequences > 1024)
        return failure(INK_INVALID_ARGUMENT, "max_sequences is %d, expected 0 (the default) to 1024", o.max_sequences);
    if (o.min_pixels < 0 || o.max_pixels < 0)
        return failure(INK_INVALID_ARGUMENT, "pixel limits are negative");
    ink_model *m = alloc_array(1, sizeof *m);
    if (!m)
        return INK_RESOURCE_EXHAUSTED;
    ink_status s = vl_model_load(&vo, &m->model);
    if (s != INK_OK) {
        free(m);
        return s;
    }
    *out = m;
    return INK_OK;
}

void ink_model_free(ink_model *model)
{
    if (model)
        vl_model_free(model->model);
    free(model);
}

/* ---- images ---- */

static ink_status wrap_image(ink_status s, image *img, ink_image **out)
{
    *out = NULL;
    if (s != INK_OK)
        return s;
    if (!(*out = alloc_array(1, sizeof **out))) {
        image_free(img);
        return INK_RESOURCE_EXHAUSTED;
    }
    (*out)->img = *img;
    return INK_OK;
}

ink_status ink_image_load(const char *path, ink_image **out)
{
    image img;
    return wrap_image(image_load(path, NULL, &img), &img, out);
}

ink_status ink_image_decode(const void *data, size_t size, ink_image **out)
{
    image img;
    return wrap_image(image_decode(data, size, NULL, &img), &img, out);
}

ink_status ink_image_from_pixels(const void *data, ink_pixel_format format, int width, int height, size_t stride, ink_image **out)
{
    image img;
    return wrap_image(image_from_pixels(data, (pixel_format)format, width, height, stride, NULL, &img), &img, out);
}

int ink_image_width(const ink_image *i) { return i->img.width; }
int ink_image_height(const ink_image *i) { return i->img.height; }

void ink_image_free(ink_image *i)
{
    if (i)
        image_free(&i->img);
    free(i);
}

/* ---- session ---- */

ink_status ink_session_create(const ink_model *model, const ink_session_options *options, ink_session **out)
{
    const session_options so = {.max_tokens_per_sequence = options ? options->max_tokens_per_sequence : 0,
                                .profile = options && options->profile};
    *out = NULL;
    if (so.max_tokens_per_sequence < 0)
        return failure(INK_INVALID_ARGUMENT, "max_tokens_per_sequence is %d", so.max_tokens_per_sequence);
    ink_session *s = alloc_array(1, sizeof *s);
    if (!s)
        return INK_RESOURCE_EXHAUSTED;
    ink_status status = session_create(model->model, &so, &s->s);
    if (status != INK_OK) {
        free(s);
        return status;
    }
    *out = s;
    return INK_OK;
}

void ink_session_free(ink_session *s)
{
    if (s)
        session_free(s->s);
    free(s);
}

void ink_cancel(ink_session *s) { session_cancel(s->s); }

/* ---- tasks ---- */

static const char *const task_names[] = {"ocr", "table", "formula", "chart", "spotting", "seal"};

bool ink_task_parse(const char *name, ink_task *out)
{
    for (size_t i = 0; i < sizeof task_names / sizeof *task_names; i++)
        if (!strcmp(name, task_names[i])) {
            *out = (ink_task)i;
            return true;
        }
    return false;
}

const char *ink_task_name(ink_task task) { return (unsigned)task < sizeof task_names / sizeof *task_names ? task_names[task] : "?"; }
const char *ink_finish_name(ink_finish finish) { return finish_reason_name((finish_reason)finish); }

/* ---- reading ---- */

/* One image on its way through a batch. */
typedef struct reading {
    const ink_read_options *options;
    size_t index;
    sequence *q;
    ink_result *result;
    double width, height; /* of the image before any enlargement */
} reading;

static bool pass_text(void *user, const char *text, size_t length)
{
    const reading *r = user;
    return r->options->on_text(r->options->user, r->index, text, length);
}

static ink_status build_prompt(const vl_model *m, const char *text, size_t image_tokens, prompt *p)
{
    prompt_message message = {PROMPT_USER, text, strlen(text), 1};
    return prompt_build(m->tokens, m->assistant_prefix, &message, 1, &image_tokens, 1, p);
}

/* Spotting works on small images enlarged twice, within limits of its own (spec 9.6). */
static ink_status encode(session *s, const image *img, const ink_read_options *o, features *f)
{
    enum { SPOTTING_SIDE = 1500, SPOTTING_MIN = 112896, SPOTTING_MAX = 1605632 };
    pixel_limits limits = {o->min_pixels, o->max_pixels};
    if (o->task != INK_TASK_SPOTTING)
        return session_encode_image(s, img, &limits, f);
    const paddleocr_vl_image_config *c = &session_model(s)->config.image;
    if (!limits.max_pixels)
        limits.max_pixels = c->max_pixels < SPOTTING_MAX ? c->max_pixels : SPOTTING_MAX;
    if (!limits.min_pixels)
        limits.min_pixels = SPOTTING_MIN < limits.max_pixels ? SPOTTING_MIN : c->min_pixels;
    if (img->width >= SPOTTING_SIDE || img->height >= SPOTTING_SIDE)
        return session_encode_image(s, img, &limits, f);
    image larger;
    TRY(image_resize(img, 2 * img->width, 2 * img->height, RESIZE_LANCZOS, session_model(s)->dev.threads, &larger));
    ink_status status = session_encode_image(s, &larger, &limits, f);
    image_free(&larger);
    return status;
}

static int answer_limit(const vl_model *m, const ink_read_options *o)
{
    if (o->max_tokens)
        return o->max_tokens;
    return m->config.generation.max_new_tokens > 0 ? m->config.generation.max_new_tokens : 8192;
}

/* Starts the sequence of an image whose features exist. */
static ink_status start(session *s, reading *r, const features *f)
{
    const ink_read_options *o = r->options;
    const prompt_task *task = prompt_task_find(ink_task_name(o->task));
    prompt p = {0};
    TRY(build_prompt(session_model(s), o->prompt ? o->prompt : task->prompt, (size_t)f->grid.tokens, &p));
    generation_request g = {.ids = p.ids.ids, .n_ids = p.ids.count, .images = f, .n_images = 1, .max_tokens = answer_limit(session_model(s), o),
                            .temperature = o->temperature, .top_p = o->top_p, .repetition_penalty = o->repetition_penalty,
                            .seed = o->seed + r->index, .keep_special = task->keeps_special, .loop_guard = o->loop_guard,
                            .loop_min_count = task->repetition_count, .on_text = o->on_text ? pass_text : NULL, .user = r};
    ink_status status = session_add(s, &g, &r->q);
    prompt_free(&p);
    return status;
}

static ink_status fill_polygons(ink_result *out, const spotting *found)
{
    if (!(out->polygons = alloc_array(found->count, sizeof *out->polygons)))
        return INK_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < found->count; i++) {
        ink_polygon *p = &out->polygons[out->polygon_count];
        if (!(p->text = copy_bytes(found->items[i].text, found->items[i].length)))
            return INK_RESOURCE_EXHAUSTED;
        for (int k = 0; k < 4; k++) {
            p->x[k] = (float)found->items[i].points[k][0];
            p->y[k] = (float)found->items[i].points[k][1];
        }
        out->polygon_count++;
    }
    return INK_OK;
}

/* Turns the answer's location tokens into polygons and the answer into its texts; one without any stays as it is. */
static ink_status finish_spotting(reading *r, ink_result *out)
{
    spotting found;
    strbuf joined = {0};
    TRY(spotting_parse(out->text, strlen(out->text), r->width, r->height, &found));
    ink_status s = fill_polygons(out, &found);
    if (s == INK_OK && found.count) {
        spotting_add_text(&found, &joined);
        char *text = strbuf_take(&joined);
        s = text ? INK_OK : INK_RESOURCE_EXHAUSTED;
        if (text) {
            free(out->text);
            out->text = text;
        }
    }
    spotting_free(&found);
    return s;
}

static ink_status collect(session *s, reading *r)
{
    sequence *q = r->q;
    ink_result *out = r->result;
    out->finish = (ink_finish)q->finish;
    out->looped = q->looped;
    out->prompt_tokens = q->prompt_tokens;
    out->image_tokens = q->image_tokens;
    out->generated_tokens = q->generated.count;
    out->prefill_ms = q->prefill_ms;
    out->generate_ms = q->generate_ms;
    out->text = strbuf_take(&q->text);
    session_remove(s, q);
    r->q = NULL;
    if (!out->text)
        return INK_RESOURCE_EXHAUSTED;
    return r->options->task == INK_TASK_SPOTTING ? finish_spotting(r, out) : INK_OK;
}

static void fail_result(ink_result *r, ink_status s)
{
    r->status = s;
    r->error = strdup(ink_last_error());
}

static void done(reading *r)
{
    if (r->options->on_done)
        r->options->on_done(r->options->user, r->index, r->result);
}

static ink_status check_options(const ink_read_options *o)
{
    if ((unsigned)o->task > INK_TASK_SEAL)
        return failure(INK_INVALID_ARGUMENT, "unknown task %d", (int)o->task);
    if (o->max_tokens < 0)
        return failure(INK_INVALID_ARGUMENT, "max_tokens is %d, expected 0 (the default) or more", o->max_tokens);
    if (o->min_pixels < 0 || o->max_pixels < 0)
        return failure(INK_INVALID_ARGUMENT, "pixel limits are negative");
    if (!(o->temperature >= 0 && o->temperature <= 100) || !(o->top_p > 0 && o->top_p <= 1) ||
        !(o->repetition_penalty > 0 && o->repetition_penalty <= 100))
        return failure(INK_INVALID_ARGUMENT, "temperature %g, top_p %g, repetition_penalty %g: expected 0 to 100, (0, 1] and (0, 100]",
                       (double)o->temperature, (double)o->top_p, (double)o->repetition_penalty);
    return INK_OK;
}

typedef struct batch {
    session *s;
    const ink_image *const *images;
    reading *readings;
    size_t n, next;  /* images not yet started begin at next */
    features waiting; /* of image `next`, encoded but not yet started: the session was full */
} batch;

/* Starts images while the session has room. */
static void admit(batch *b)
{
    while (b->next < b->n) {
        reading *r = &b->readings[b->next];
        const ink_image *source = b->images[b->next];
        ink_status s = source ? INK_OK : failure(INK_INVALID_ARGUMENT, "image %zu is NULL", b->next);
        if (s == INK_OK && !b->waiting.data) {
            r->width = source->img.width;
            r->height = source->img.height;
            s = encode(b->s, &source->img, r->options, &b->waiting);
            r->result->decode_ms = b->waiting.preprocess_ms;
            r->result->vision_ms = b->waiting.vision_ms;
        }
        if (s == INK_OK)
            s = start(b->s, r, &b->waiting);
        if (s == INK_RESOURCE_EXHAUSTED && session_active(b->s))
            return; /* full: it waits until a sequence ends */
        features_free(&b->waiting);
        if (s != INK_OK) {
            fail_result(r->result, s);
            done(r);
        }
        b->next++;
    }
}

/* Takes the finished sequences out; returns how many are still going. */
static size_t reap(batch *b)
{
    size_t going = 0;
    for (size_t i = 0; i < b->next; i++) {
        reading *r = &b->readings[i];
        if (r->q && r->q->finish != FINISH_NONE) {
            ink_status s = collect(b->s, r);
            if (s != INK_OK)
                fail_result(r->result, s);
            done(r);
        }
        going += r->q != NULL;
    }
    return going;
}

/* A failed step ends all sequences under way. */
static void abandon(batch *b, ink_status s)
{
    for (size_t i = 0; i < b->n; i++) {
        reading *r = &b->readings[i];
        if (r->q)
            session_remove(b->s, r->q);
        if (r->q || i >= b->next)
            fail_result(r->result, s);
        r->q = NULL;
    }
    features_free(&b->waiting);
}

ink_status ink_read_batch(ink_session *owner, const ink_image *const *images, size_t n, const ink_read_options *options, ink_result *results)
{
    const ink_read_options o = options ? *options : INK_READ_OPTIONS_DEFAULT;
    for (size_t i = 0; i < n; i++)
        results[i] = (ink_result){0};
    TRY(check_options(&o));
    batch b = {.s = owner->s, .images = images, .n = n, .readings = alloc_array(n, sizeof *b.readings)};
    if (!b.readings)
        return INK_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < n; i++)
        b.readings[i] = (reading){.options = &o, .index = i, .result = &results[i]};
    ink_status s = INK_OK;
    do {
        admit(&b);
        reap(&b);
        s = session_step(b.s);
    } while (s == INK_OK && (reap(&b) || b.next < b.n));
    if (s != INK_OK)
        abandon(&b, s);
    free(b.readings);
    return s;
}

ink_status ink_read(ink_session *owner, const ink_image *source, const ink_read_options *options, ink_result *out)
{
    TRY(ink_read_batch(owner, &source, 1, options, out));
    return out->status == INK_OK ? INK_OK : failure_text(out->status, out->error ? out->error : "out of memory");
}

void ink_result_free(ink_result *r)
{
    free(r->error);
    free(r->text);
    for (size_t i = 0; i < r->polygon_count; i++)
        free(r->polygons[i].text);
    free(r->polygons);
    *r = (ink_result){0};
}

/* ---- text forms and introspection ---- */

static ink_status format_table(ink_task task, const char *text, bool html, strbuf *out, bool *done)
{
    size_t n = strlen(text);
    *done = false;
    if (task == INK_TASK_TABLE)
        return html ? otsl_to_html(text, n, out, done) : otsl_to_markdown(text, n, 0, out, done);
    if (task == INK_TASK_CHART)
        return html ? chart_to_html(text, n, out, done) : chart_to_markdown(text, n, 0, out, done);
    return INK_OK;
}

char *ink_format_text(ink_task task, const char *text, ink_format format)
{
    strbuf out = {0}, math = {0};
    bool table = false;
    if (format == INK_FORMAT_RAW)
        return copy_string(text);
    if (format_table(task, text, format == INK_FORMAT_HTML, &out, &table) != INK_OK) {
        strbuf_free(&out);
        return NULL;
    }
    if (!table && format == INK_FORMAT_HTML)
        html_escape(&out, text, strlen(text));
    else if (!table) {
        bool changed = math_delimiters(&math, text, strlen(text), false);
        markdown_escape(&out, strbuf_text(&math), math.length, changed ? MARKDOWN_KEEP_MATH : 0);
        strbuf_free(&math);
    }
    return strbuf_take(&out);
}

char *ink_session_profile(const ink_session *owner, bool json)
{
    strbuf out = {0};
    const profile *p = session_profile(owner->s);
    if (!p) {
        failure(INK_FAILED_PRECONDITION, "the session was created without profile");
        return NULL;
    }
    if (json) {
        if (profile_json(p, &out) != INK_OK) {
            strbuf_free(&out);
            return NULL;
        }
    } else
        profile_table(p, &out);
    return strbuf_take(&out);
}

static char *take_report(ink_status s, strbuf *out)
{
    if (s == INK_OK)
        return strbuf_take(out);
    strbuf_free(out);
    return NULL;
}

char *ink_model_report(const ink_model *model, bool json)
{
    strbuf out = {0};
    return take_report(model_report(model->model, json, &out), &out);
}

char *ink_devices_report(bool json)
{
    strbuf out = {0};
    return take_report(devices_report(json, &out), &out);
}

char *ink_kernels_report(const char *op, const char *backend, const char *dtype, ink_format format, bool json)
{
    strbuf out = {0};
    report_format f = json ? REPORT_JSON : format == INK_FORMAT_MARKDOWN ? REPORT_MARKDOWN : REPORT_TABLE;
    return take_report(kernels_report(op, backend, dtype, f, &out), &out);
}
