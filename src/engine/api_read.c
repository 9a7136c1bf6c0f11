/* api_read.c - reading images through inkstone.h: images enter a session while it has room and leave it as they finish. */
#include "engine/api_internal.h"
#include "image/resize.h"
#include "text/prompt.h"
#include "text/spotting.h"

#include <stdlib.h>
#include <string.h>

/* ---- tasks ---- */

static const char *const task_names[] = {"ocr", "table", "formula", "chart", "spotting", "seal"};

bool ink_task_parse(const char *name, ink_task *out)
{
    for (size_t i = 0; name && i < sizeof task_names / sizeof *task_names; i++)
        if (!strcmp(name, task_names[i])) {
            *out = (ink_task)i;
            return true;
        }
    return false;
}

const char *ink_task_name(ink_task task)
{
    return (unsigned)task < sizeof task_names / sizeof *task_names ? task_names[task] : "?";
}
const char *ink_finish_name(ink_finish finish)
{
    return (unsigned)finish <= INK_FINISH_CANCELLED ? finish_reason_name((finish_reason)finish) : "?";
}

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
    const int64_t model_max = session_model(s)->config.image.max_pixels;
    if (!limits.max_pixels)
        limits.max_pixels = model_max < SPOTTING_MAX ? model_max : SPOTTING_MAX;
    if (!limits.min_pixels && SPOTTING_MIN < limits.max_pixels)
        limits.min_pixels = SPOTTING_MIN;
    if (img->width >= SPOTTING_SIDE || img->height >= SPOTTING_SIDE)
        return session_encode_image(s, img, &limits, f);
    image larger;
    TRY(image_resize(img, 2 * img->width, 2 * img->height, RESIZE_LANCZOS, session_model(s)->dev.threads, &larger));
    ink_status status = session_encode_image(s, &larger, &limits, f);
    image_free(&larger);
    return status;
}

/* The tokens an answer may take: what was asked for, or the default as far as the session's share per sequence goes. */
static int answer_limit(const session *s, const ink_read_options *o, size_t prompt_tokens)
{
    if (o->max_tokens)
        return o->max_tokens;
    int most = session_model(s)->config.generation.max_new_tokens;
    int64_t room = session_capacity(s) - (int64_t)prompt_tokens;
    most = most > 0 ? most : 8192;
    return room < 1 ? 1 : room < most ? (int)room : most;
}

/* Starts the sequence of an image whose features exist. */
static ink_status start(session *s, reading *r, const features *f)
{
    const ink_read_options *o = r->options;
    const prompt_task *task = prompt_task_find(ink_task_name(o->task));
    prompt p = {0};
    TRY(build_prompt(session_model(s), o->prompt ? o->prompt : task->prompt, (size_t)f->grid.tokens, &p));
    generation_request g = {.ids = p.ids.ids,
                            .n_ids = p.ids.count,
                            .images = f,
                            .n_images = 1,
                            .max_tokens = answer_limit(s, o, p.ids.count),
                            .temperature = o->temperature,
                            .top_p = o->top_p,
                            .repetition_penalty = o->repetition_penalty,
                            .seed = o->seed + r->index,
                            .keep_special = task->keeps_special,
                            .loop_guard = o->loop_guard,
                            .loop_min_count = task->repetition_count,
                            .on_text = o->on_text ? pass_text : NULL,
                            .user = r};
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
    TRY(spotting_parse(out->text, out->text_length, r->width, r->height, &found));
    ink_status s = fill_polygons(out, &found);
    if (s == INK_OK && found.count) {
        spotting_add_text(&found, &joined);
        size_t length = joined.length;
        char *text = strbuf_take(&joined);
        s = text ? INK_OK : INK_RESOURCE_EXHAUSTED;
        if (text) {
            free(out->text);
            out->text = text;
            out->text_length = length;
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
    out->text_length = q->text.length;
    out->text = strbuf_take(&q->text);
    session_remove(s, q);
    r->q = NULL;
    if (!out->text)
        return INK_RESOURCE_EXHAUSTED;
    return r->options->task == INK_TASK_SPOTTING ? finish_spotting(r, out) : INK_OK;
}

/* Whatever the result holds already, only status and message remain. */
static void fail_result(ink_result *r, ink_status s)
{
    char *error = strdup(ink_last_error());
    ink_result_free(r);
    r->status = s;
    r->error = error;
}

static void done(reading *r)
{
    if (r->options->on_done)
        r->options->on_done(r->options->user, r->index, r->result);
}

static ink_status check_options(ink_read_options *o)
{
    if ((unsigned)o->task > INK_TASK_SEAL)
        return failure(INK_INVALID_ARGUMENT, "unknown task %d", (int)o->task);
    if (o->max_tokens < 0)
        return failure(INK_INVALID_ARGUMENT, "max_tokens is %d, expected 0 (the default) or more", o->max_tokens);
    if (o->min_pixels < 0 || o->max_pixels < 0)
        return failure(INK_INVALID_ARGUMENT, "min_pixels %lld, max_pixels %lld: expected 0 (the model's) or more",
                       (long long)o->min_pixels, (long long)o->max_pixels);
    if (o->top_p == 0)
        o->top_p = 1;
    if (o->repetition_penalty == 0)
        o->repetition_penalty = 1;
    if (!(o->temperature >= 0 && o->temperature <= 100))
        return failure(INK_INVALID_ARGUMENT, "temperature is %g, expected 0 to 100", (double)o->temperature);
    if (!(o->top_p > 0 && o->top_p <= 1))
        return failure(INK_INVALID_ARGUMENT, "top_p is %g, expected more than 0 and at most 1", (double)o->top_p);
    if (!(o->repetition_penalty > 0 && o->repetition_penalty <= 100))
        return failure(INK_INVALID_ARGUMENT, "repetition_penalty is %g, expected more than 0 and at most 100",
                       (double)o->repetition_penalty);
    return INK_OK;
}

typedef struct batch {
    session *s;
    const ink_image *const *images;
    reading *readings;
    size_t n, next;   /* images not yet started begin at next */
    features waiting; /* of image `next`, encoded but not yet started: the session was full */
} batch;

/* An image that was never started because the read was cancelled. */
static ink_status skip(ink_result *r)
{
    r->finish = INK_FINISH_CANCELLED;
    return (r->text = copy_string("")) ? INK_OK : INK_RESOURCE_EXHAUSTED;
}

/* Does any image still hold a sequence, finished ones included? They keep their place and KV blocks until reap. */
static bool holds_sequences(const batch *b)
{
    for (size_t i = 0; i < b->next; i++)
        if (b->readings[i].q)
            return true;
    return false;
}

/* Starts image `next` unless the session is full (*full). */
static ink_status admit_one(batch *b, bool *full)
{
    reading *r = &b->readings[b->next];
    const ink_image *source = b->images[b->next];
    *full = false;
    if (session_cancelled(b->s))
        return skip(r->result);
    if (!source)
        return failure(INK_INVALID_ARGUMENT, "image %zu is NULL", b->next);
    if (!b->waiting.data) {
        r->width = source->img.width;
        r->height = source->img.height;
        TRY(encode(b->s, &source->img, r->options, &b->waiting));
        r->result->decode_ms = b->waiting.preprocess_ms;
        r->result->vision_ms = b->waiting.vision_ms;
    }
    ink_status s = start(b->s, r, &b->waiting);
    *full = s == INK_RESOURCE_EXHAUSTED && holds_sequences(b);
    return s;
}

/* Starts images while the session has room. */
static void admit(batch *b)
{
    for (; b->next < b->n; b->next++) {
        reading *r = &b->readings[b->next];
        bool full;
        ink_status s = admit_one(b, &full);
        if (full)
            return; /* it waits until a sequence ends */
        features_free(&b->waiting);
        if (s != INK_OK)
            fail_result(r->result, s);
        if (!r->q)
            done(r);
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

/* A failed step ends all sequences under way; its message is every unfinished image's, and the call's. */
static void abandon(batch *b, ink_status s)
{
    char *message = copy_string(ink_last_error());
    for (size_t i = 0; i < b->n; i++) {
        reading *r = &b->readings[i];
        if (!r->q && i < b->next)
            continue;
        if (r->q)
            session_remove(b->s, r->q);
        r->q = NULL;
        failure_text(s, message ? message : "out of memory");
        fail_result(r->result, s);
        done(r);
    }
    failure_text(s, message ? message : "out of memory");
    free(message);
    features_free(&b->waiting);
}

static ink_status read_batch(session *s, const ink_image *const *images, size_t n, const ink_read_options *o,
                             ink_result *results)
{
    batch b = {.s = s, .images = images, .n = n, .readings = alloc_array(n, sizeof *b.readings)};
    ink_status status = INK_OK;
    if (!b.readings)
        return INK_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < n; i++)
        b.readings[i] = (reading){.options = o, .index = i, .result = &results[i]};
    session_resume(s);
    do {
        admit(&b);
        reap(&b);
        status = session_step(s);
    } while (status == INK_OK && (reap(&b) || b.next < b.n));
    if (status != INK_OK)
        abandon(&b, status);
    free(b.readings);
    return status;
}

ink_status ink_read_batch(ink_session *owner, const ink_image *const *images, size_t n, const ink_read_options *options,
                          ink_result *results)
{
    ink_read_options o = options ? *options : INK_READ_OPTIONS_DEFAULT;
    if (n)
        TRY(api_wants(results, "ink_read_batch", "results"));
    for (size_t i = 0; i < n; i++)
        results[i] = (ink_result){0};
    ink_status s = api_wants(owner, "ink_read_batch", "session");
    if (s == INK_OK && n)
        s = api_wants(images, "ink_read_batch", "images");
    if (s == INK_OK)
        s = check_options(&o);
    if (s == INK_OK)
        return read_batch(owner->s, images, n, &o, results);
    for (size_t i = 0; i < n; i++)
        fail_result(&results[i], s);
    return s;
}

ink_status ink_read(ink_session *owner, const ink_image *source, const ink_read_options *options, ink_result *out)
{
    TRY(api_wants(out, "ink_read", "out"));
    TRY(ink_read_batch(owner, &source, 1, options, out));
    return out->status == INK_OK ? INK_OK : failure_text(out->status, out->error ? out->error : "out of memory");
}

void ink_result_free(ink_result *r)
{
    if (!r)
        return;
    free(r->error);
    free(r->text);
    for (size_t i = 0; i < r->polygon_count; i++)
        free(r->polygons[i].text);
    free(r->polygons);
    *r = (ink_result){0};
}
