#include "cli/read.h"

#include "text/utf8.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void reader_start(reader *r)
{
    const read_arguments *a = r->args;
    r->terminal = isatty(fileno(r->out.file));
    r->stream = r->terminal && !a->json && a->format == INK_FORMAT_RAW && a->read.task != INK_TASK_SPOTTING;
}

/* ---- writing ---- */

/* Length of the control character at s other than newline and tab, in UTF-8 (C0, DEL, C1); 0: it is none. */
static size_t control_length(const char *s, size_t n)
{
    unsigned char c = (unsigned char)s[0], next = n > 1 ? (unsigned char)s[1] : 0;
    if (c == 0xC2 && next >= 0x80 && next < 0xA0)
        return 2;
    return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F;
}

/* Text as it is, but a terminal gets U+FFFD for control characters: what an image says must not drive it. */
static void put_text(reader *r, const char *text, size_t n)
{
    size_t from = 0;
    for (size_t i = 0; r->terminal && i < n;) {
        size_t bad = control_length(text + i, n - i);
        if (bad) {
            fwrite(text + from, 1, i - from, r->out.file);
            fputs(UTF8_REPLACEMENT, r->out.file);
            from = i + bad;
        }
        i += bad ? bad : 1;
    }
    fwrite(text + from, 1, n - from, r->out.file);
}

static void flush(reader *r)
{
    if (r->write_failed || (fflush(r->out.file) == 0 && !ferror(r->out.file)))
        return;
    if (errno != EINTR) /* a signal's doing */
        complain("%s: cannot write: %s", r->out.path ? r->out.path : "standard output", strerror(errno));
    r->write_failed = true;
}

/* ---- JSON ---- */

static json_t *polygons_json(const ink_result *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->polygon_count; i++) {
        const ink_polygon *p = &r->polygons[i];
        json_t *points = json_array();
        for (int k = 0; k < 4; k++)
            json_array_append_new(points, json_pack("[f,f]", (double)p->x[k], (double)p->y[k]));
        json_array_append_new(list, json_pack("{s:s,s:o}", "text", p->text, "points", points));
    }
    return list;
}

/* A file name need not be UTF-8; JSON must. */
static json_t *file_json(const char *file)
{
    strbuf name = {0};
    utf8_add_repaired(&name, file, strlen(file));
    json_t *j = strbuf_status(&name) == INK_OK ? json_stringn(strbuf_text(&name), name.length) : NULL;
    strbuf_free(&name);
    return j;
}

/* "html" when asked for and for tables, "markdown" when asked for. False when memory is short. */
static bool add_formatted(const reader *r, const ink_result *x, json_t *o)
{
    const read_arguments *a = r->args;
    ink_format f = a->format == INK_FORMAT_RAW && a->read.task == INK_TASK_TABLE ? INK_FORMAT_HTML : a->format;
    if (f == INK_FORMAT_RAW)
        return true;
    char *text = ink_format_text(a->read.task, x->text, x->text_length, f);
    bool ok = text && json_object_set_new(o, f == INK_FORMAT_HTML ? "html" : "markdown", json_string(text)) == 0;
    free(text);
    return ok;
}

static json_t *result_json(const reader *r, const input *in)
{
    const ink_result *x = &in->result;
    bool failed = x->status != INK_OK, ok = true;
    json_t *o = json_pack("{s:o,s:s,s:o}", "file", file_json(in->file), "task", ink_task_name(r->args->read.task), "text",
                          failed ? json_string("") : json_stringn(x->text, x->text_length));
    if (!failed)
        ok = add_formatted(r, x, o);
    ok &= json_object_set_new(o, "finish_reason", failed ? json_null() : json_string(ink_finish_name(x->finish))) == 0;
    ok &= json_object_set_new(o, "loop_guard", json_boolean(x->looped)) == 0;
    ok &= json_object_set_new(o, "tokens",
                              json_pack("{s:I,s:I,s:I}", "prompt", (json_int_t)x->prompt_tokens, "image",
                                        (json_int_t)x->image_tokens, "generated", (json_int_t)x->generated_tokens)) == 0;
    ok &= json_object_set_new(o, "timing_ms",
                              json_pack("{s:f,s:f,s:f,s:f}", "decode", in->load_ms + x->decode_ms, "vision", x->vision_ms,
                                        "prefill", x->prefill_ms, "generate", x->generate_ms)) == 0;
    if (!failed && r->args->read.task == INK_TASK_SPOTTING)
        ok &= json_object_set_new(o, "polygons", polygons_json(x)) == 0;
    if (failed)
        ok &= json_object_set_new(o, "error",
                                  json_pack("{s:s,s:s}", "code", ink_status_name(x->status), "message",
                                            x->error ? x->error : "out of memory")) == 0;
    if (ok)
        return o;
    json_decref(o);
    return NULL;
}

static void print_json(reader *r, const input *in)
{
    json_t *o = result_json(r, in);
    char *text = o ? json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    if (text)
        fprintf(r->out.file, "%s\n", text);
    else {
        complain("%s: the result cannot be written as JSON", in->file);
        r->write_failed = true;
    }
    free(text);
    json_decref(o);
}

/* ---- text ---- */

static void print_text(reader *r, const input *in)
{
    const ink_result *x = &in->result;
    if (r->args->format == INK_FORMAT_RAW)
        put_text(r, x->text, x->text_length);
    else {
        char *formatted = ink_format_text(r->args->read.task, x->text, x->text_length, r->args->format);
        if (formatted)
            put_text(r, formatted, strlen(formatted));
        else {
            complain(NULL);
            r->write_failed = true;
        }
        free(formatted);
    }
}

static void warn(const input *in)
{
    if (in->result.looped)
        complain("%s: the answer began to repeat itself and was cut (--no-loop-guard keeps it)", in->file);
    else if (in->result.finish == INK_FINISH_LENGTH)
        complain("%s: the answer reached the token limit", in->file);
}

/* ---- in turn ---- */

static void put_pending(reader *r, input *in)
{
    put_text(r, strbuf_text(&in->pending), in->pending.length);
    r->partial |= in->pending.length > 0;
    strbuf_free(&in->pending);
}

void reader_stream(reader *r, size_t i, const char *text, size_t length)
{
    input *in = &r->inputs[i];
    if (!r->stream)
        return;
    strbuf_add(&in->pending, text, length);
    if (i != r->turn)
        return;
    put_pending(r, in);
    flush(r);
}

/* "inkstone: FILE: message", the file once. */
static void print_failure(const input *in)
{
    const char *error = in->result.error ? in->result.error : "out of memory";
    size_t n = strlen(in->file);
    if (!strncmp(error, in->file, n) && error[n] == ':')
        complain("%s", error);
    else
        complain("%s: %s", in->file, error);
}

static void print_one(reader *r, input *in)
{
    bool failed = in->result.status != INK_OK;
    if (r->stream)
        put_pending(r, in);
    if (failed)
        print_failure(in);
    if (r->args->json)
        print_json(r, in);
    else if (!failed) {
        if (!r->stream)
            print_text(r, in);
        fputc('\n', r->out.file);
    }
    r->partial = false;
    r->texts += !failed;
    flush(r);
    if (!failed && !r->args->json)
        warn(in);
}

void reader_print_ready(reader *r)
{
    for (; r->turn < r->n && r->inputs[r->turn].done && !r->write_failed; r->turn++)
        print_one(r, &r->inputs[r->turn]);
    if (r->stream && r->turn < r->n && r->inputs[r->turn].pending.length) {
        put_pending(r, &r->inputs[r->turn]); /* what the next one has said while it waited */
        flush(r);
    }
}

size_t reader_finish(reader *r)
{
    size_t unread = 0;
    if (!r->inputs)
        return r->n;
    if (r->partial)
        fputc('\n', r->out.file);
    flush(r);
    for (size_t i = 0; i < r->n; i++) {
        unread += !r->inputs[i].done || r->inputs[i].result.status != INK_OK;
        ink_result_free(&r->inputs[i].result);
        strbuf_free(&r->inputs[i].pending);
    }
    free(r->inputs);
    r->inputs = NULL;
    return unread;
}
