/* api.c - inkstone.h except reading: models, images, sessions, text forms, reports. */
#include "engine/api_internal.h"
#include "engine/report.h"
#include "image/decode.h"
#include "text/markdown.h"
#include "text/otsl.h"

#include <stdlib.h>

const char *ink_version(void) { return INK_VERSION; }

ink_status api_wants(const void *p, const char *call, const char *what)
{
    return p ? INK_OK : failure(INK_INVALID_ARGUMENT, "%s: %s is NULL", call, what);
}

/* ---- model ---- */

static ink_status check_model_options(const ink_model_options *o)
{
    if (o->max_sequences < 0 || o->max_sequences > 1024)
        return failure(INK_INVALID_ARGUMENT, "max_sequences is %d, expected 0 (the default) to 1024", o->max_sequences);
    if (o->min_pixels < 0 || o->max_pixels < 0)
        return failure(INK_INVALID_ARGUMENT, "min_pixels %lld, max_pixels %lld: expected 0 (the checkpoint's) or more",
                       (long long)o->min_pixels, (long long)o->max_pixels);
    return INK_OK;
}

ink_status ink_model_load(const char *directory, const ink_model_options *options, ink_model **out)
{
    const ink_model_options o = options ? *options : INK_MODEL_OPTIONS_DEFAULT;
    const vl_model_options vo = {.directory = directory,
                                 .dtype = o.dtype,
                                 .fp32_modules = o.fp32_modules,
                                 .threads = o.threads,
                                 .disable = o.disable_kernels,
                                 .delete_passes = o.delete_passes,
                                 .min_pixels = o.min_pixels,
                                 .max_pixels = o.max_pixels,
                                 .max_sequences = o.max_sequences,
                                 .assistant_prefix = o.assistant_prefix};
    TRY(api_wants(out, "ink_model_load", "out"));
    *out = NULL;
    TRY(check_model_options(&o));
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
    TRY(api_wants(out, "ink_image_load", "out"));
    *out = NULL;
    TRY(api_wants(path, "ink_image_load", "path"));
    return wrap_image(image_load(path, NULL, &img), &img, out);
}

ink_status ink_image_decode(const void *data, size_t size, ink_image **out)
{
    image img;
    TRY(api_wants(out, "ink_image_decode", "out"));
    *out = NULL;
    TRY(api_wants(data, "ink_image_decode", "data"));
    return wrap_image(image_decode(data, size, NULL, &img), &img, out);
}

ink_status ink_image_from_pixels(const void *data, ink_pixel_format format, int width, int height, size_t stride,
                                 ink_image **out)
{
    image img;
    TRY(api_wants(out, "ink_image_from_pixels", "out"));
    *out = NULL;
    TRY(api_wants(data, "ink_image_from_pixels", "data"));
    return wrap_image(image_from_pixels(data, (pixel_format)format, width, height, stride, NULL, &img), &img, out);
}

int ink_image_width(const ink_image *i) { return i ? i->img.width : 0; }
int ink_image_height(const ink_image *i) { return i ? i->img.height : 0; }

void ink_image_free(ink_image *i)
{
    if (i)
        image_free(&i->img);
    free(i);
}

/* ---- session ---- */

ink_status ink_session_create(const ink_model *model, const ink_session_options *options, ink_session **out)
{
    const ink_session_options o = options ? *options : INK_SESSION_OPTIONS_DEFAULT;
    const session_options so = {.max_tokens_per_sequence = o.max_tokens_per_sequence, .profile = o.profile};
    TRY(api_wants(out, "ink_session_create", "out"));
    *out = NULL;
    TRY(api_wants(model, "ink_session_create", "model"));
    if (o.max_tokens_per_sequence < 0)
        return failure(INK_INVALID_ARGUMENT, "max_tokens_per_sequence is %d, expected 0 (the default) or more",
                       o.max_tokens_per_sequence);
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

void ink_cancel(ink_session *s)
{
    if (s)
        session_cancel(s->s);
}

/* ---- text forms ---- */

static ink_status format_table(ink_task task, const char *text, size_t n, bool html, strbuf *out, bool *done)
{
    *done = false;
    if (task == INK_TASK_TABLE)
        return html ? otsl_to_html(text, n, out, done) : otsl_to_markdown(text, n, 0, out, done);
    if (task == INK_TASK_CHART)
        return html ? chart_to_html(text, n, out, done) : chart_to_markdown(text, n, 0, out, done);
    return INK_OK;
}

static void format_plain(const char *text, size_t n, bool html, strbuf *out)
{
    strbuf math = {0};
    if (html) {
        html_escape(out, text, n);
        return;
    }
    bool changed = math_delimiters(&math, text, n, false);
    markdown_escape(out, strbuf_text(&math), math.length, changed ? MARKDOWN_KEEP_MATH : 0);
    out->failed |= math.failed;
    strbuf_free(&math);
}

char *ink_format_text(ink_task task, const char *text, size_t length, ink_format format)
{
    strbuf out = {0};
    bool table = false;
    if (api_wants(text, "ink_format_text", "text") != INK_OK)
        return NULL;
    if (format == INK_FORMAT_RAW)
        return copy_bytes(text, length);
    if (format != INK_FORMAT_HTML && format != INK_FORMAT_MARKDOWN) {
        failure(INK_INVALID_ARGUMENT, "ink_format_text: unknown format %d", (int)format);
        return NULL;
    }
    if (format_table(task, text, length, format == INK_FORMAT_HTML, &out, &table) != INK_OK) {
        strbuf_free(&out);
        return NULL;
    }
    if (!table)
        format_plain(text, length, format == INK_FORMAT_HTML, &out);
    return strbuf_take(&out);
}

/* ---- introspection ---- */

static char *take_report(ink_status s, strbuf *out)
{
    if (s == INK_OK)
        return strbuf_take(out);
    strbuf_free(out);
    return NULL;
}

/* Reports that exist as text and JSON only. */
static ink_status text_or_json(ink_report form, const char *call)
{
    if (form == INK_REPORT_TEXT || form == INK_REPORT_JSON)
        return INK_OK;
    return failure(INK_INVALID_ARGUMENT, "%s: form %d, expected INK_REPORT_TEXT or INK_REPORT_JSON", call, (int)form);
}

static ink_status profile_report(const ink_session *s, ink_report form, strbuf *out)
{
    TRY(api_wants(s, "ink_session_profile", "session"));
    TRY(text_or_json(form, "ink_session_profile"));
    const profile *p = session_profile(s->s);
    if (!p)
        return failure(INK_FAILED_PRECONDITION, "ink_session_profile: the session was created without profile");
    if (form == INK_REPORT_JSON)
        return profile_json(p, out);
    profile_table(p, out);
    return strbuf_status(out);
}

char *ink_session_profile(const ink_session *s, ink_report form)
{
    strbuf out = {0};
    return take_report(profile_report(s, form, &out), &out);
}

char *ink_model_report(const ink_model *m, ink_report form)
{
    strbuf out = {0};
    ink_status s = api_wants(m, "ink_model_report", "model");
    if (s == INK_OK)
        s = text_or_json(form, "ink_model_report");
    if (s == INK_OK)
        s = model_report(m->model, form == INK_REPORT_JSON, &out);
    return take_report(s, &out);
}

char *ink_devices_report(ink_report form)
{
    strbuf out = {0};
    ink_status s = text_or_json(form, "ink_devices_report");
    return take_report(s == INK_OK ? devices_report(form == INK_REPORT_JSON, &out) : s, &out);
}

char *ink_kernels_report(const char *op, const char *backend, const char *dtype, ink_report form)
{
    strbuf out = {0};
    if ((unsigned)form > INK_REPORT_MARKDOWN) {
        failure(INK_INVALID_ARGUMENT, "ink_kernels_report: unknown form %d", (int)form);
        return NULL;
    }
    report_format f = form == INK_REPORT_JSON ? REPORT_JSON : form == INK_REPORT_MARKDOWN ? REPORT_MARKDOWN : REPORT_TABLE;
    return take_report(kernels_report(op, backend, dtype, f, &out), &out);
}
