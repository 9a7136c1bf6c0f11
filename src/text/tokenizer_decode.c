/* tokenizer_decode.c - ids -> text: a chain of stages, one for each step of the file's decoder, through which every token
 * flows. Decoding a whole list is feeding it id by id, so that streaming cannot differ. */
#include "text/tokenizer_impl.h"
#include "text/utf8.h"

#include <string.h>

static void push(detokenizer *d, size_t i, const char *s, size_t n);

static int hex_digit(char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; }

/* ---- ByteFallback: buffer holds the run of bytes so far, `checked` of them whole characters ---- */

static void end_byte_run(detokenizer *d, size_t i)
{
    detokenizer_stage *s = &d->stages[i];
    if (!s->buffer.length)
        return;
    if (s->checked == s->buffer.length)
        push(d, i + 1, s->buffer.text, s->buffer.length);
    else
        for (size_t k = 0; k < s->buffer.length; k++)
            push(d, i + 1, UTF8_REPLACEMENT, 3);
    strbuf_truncate(&s->buffer, 0);
    s->checked = 0;
}

static void add_byte(detokenizer *d, size_t i, char byte)
{
    detokenizer_stage *s = &d->stages[i];
    uint32_t cp = 0;
    if (s->broken) {
        push(d, i + 1, UTF8_REPLACEMENT, 3);
        return;
    }
    strbuf_putc(&s->buffer, byte);
    if (s->buffer.failed)
        return;
    size_t length = utf8_decode(s->buffer.text + s->checked, s->buffer.length - s->checked, &cp);
    if (cp == UTF8_BAD) { /* nothing that follows can make the run valid */
        s->broken = true;
        end_byte_run(d, i);
    } else if (cp != UTF8_TRUNCATED) {
        s->checked += length;
    }
}

/* ---- Strip ---- */

static void strip_token(detokenizer *d, size_t i, const char *s, size_t n)
{
    const decoder_step *step = &d->t->decoders[i];
    size_t width = step->content_length;
    for (size_t k = 0; k < step->start && n >= width && !memcmp(s, step->content, width); k++) {
        s += width;
        n -= width;
    }
    for (size_t k = 0; k < step->stop && n >= width && !memcmp(s + n - width, step->content, width); k++)
        n -= width;
    push(d, i + 1, s, n);
}

/* Strip of the whole text: count = characters seen at the start (all strippable while !broken), checked = strippable
 * characters held back because they may be the end. */
static void strip_text(detokenizer *d, size_t i, const char *s, size_t n)
{
    const decoder_step *step = &d->t->decoders[i];
    detokenizer_stage *state = &d->stages[i];
    size_t width = step->content_length, length;
    for (size_t at = 0; at < n; at += length) {
        uint32_t cp;
        length = utf8_decode(s + at, n - at, &cp);
        bool strippable = length == width && !memcmp(s + at, step->content, width);
        if (strippable && !state->broken && state->count < step->start) {
            state->count++;
        } else if (strippable) {
            state->broken = true;
            if (state->checked < step->stop)
                state->checked++;
            else
                push(d, i + 1, step->content, width);
        } else {
            state->broken = true;
            for (; state->checked; state->checked--)
                push(d, i + 1, step->content, width);
            push(d, i + 1, s + at, length);
        }
    }
}

/* ---- Replace and Metaspace ---- */

static void replace_token(detokenizer *d, size_t i, const char *s, size_t n)
{
    const decoder_step *step = &d->t->decoders[i];
    detokenizer_stage *state = &d->stages[i];
    bool is_metaspace = step->kind == DECODER_METASPACE;
    const char *content = is_metaspace ? " " : step->content;
    size_t length = is_metaspace ? !(step->drops_first && state->count == 0) : step->content_length;
    strbuf_truncate(&state->buffer, 0);
    add_replaced(&state->buffer, s, n, step->pattern, step->pattern_length, content, length);
    state->count = 1;
    push(d, i + 1, strbuf_text(&state->buffer), state->buffer.length);
}

/* ---- the chain ---- */

/* Hands a token (or, behind Fuse, a part of the text) to a stage; behind the last one it is output. */
static void push(detokenizer *d, size_t i, const char *s, size_t n)
{
    if (i == d->t->decoder_count) {
        strbuf_add(d->out, s, n);
        return;
    }
    switch (d->t->decoders[i].kind) {
    case DECODER_REPLACE:
    case DECODER_METASPACE: replace_token(d, i, s, n); break;
    case DECODER_STRIP: strip_token(d, i, s, n); break;
    case DECODER_STRIP_FUSED: strip_text(d, i, s, n); break;
    case DECODER_JOIN:
        if (d->stages[i].count)
            push(d, i + 1, " ", 1);
        d->stages[i].count = 1;
        push(d, i + 1, s, n);
        break;
    case DECODER_BYTES:
        if (n == 6 && !memcmp(s, "<0x", 3) && s[5] == '>' && strspn(s + 3, "0123456789abcdefABCDEF") == 2) {
            add_byte(d, i, (char)(hex_digit(s[3]) << 4 | hex_digit(s[4])));
            break;
        }
        end_byte_run(d, i);
        d->stages[i].broken = false;
        push(d, i + 1, s, n);
        break;
    }
}

void detokenizer_init(detokenizer *d, const tokenizer *t, bool skip_special)
{
    *d = (detokenizer){.t = t, .skip_special = skip_special};
}

static ink_status chain_status(detokenizer *d)
{
    for (size_t i = 0; i < d->t->decoder_count; i++)
        TRY(strbuf_status(&d->stages[i].buffer));
    return strbuf_status(d->out);
}

ink_status detokenizer_feed(detokenizer *d, int32_t id, strbuf *out)
{
    d->out = out;
    if (tokenizer_token(d->t, id, NULL) && !(d->skip_special && tokenizer_is_special(d->t, id)))
        push(d, 0, d->t->pieces[id].decoded, d->t->pieces[id].decoded_length);
    return chain_status(d);
}

ink_status detokenizer_finish(detokenizer *d, strbuf *out)
{
    d->out = out;
    for (size_t i = 0; i < d->t->decoder_count; i++) {
        detokenizer_stage *s = &d->stages[i];
        if (d->t->decoders[i].kind == DECODER_BYTES)
            end_byte_run(d, i);
        s->count = s->checked = 0;
        s->broken = false;
    }
    return chain_status(d);
}

void detokenizer_free(detokenizer *d)
{
    for (size_t i = 0; i < DETOKENIZER_MAX_STAGES; i++)
        strbuf_free(&d->stages[i].buffer);
    *d = (detokenizer){0};
}

ink_status tokenizer_decode(const tokenizer *t, const int32_t *ids, size_t n, bool skip_special, strbuf *out)
{
    detokenizer d;
    ink_status status = INK_OK;
    detokenizer_init(&d, t, skip_special);
    for (size_t i = 0; status == INK_OK && i < n; i++)
        status = detokenizer_feed(&d, ids[i], out);
    if (status == INK_OK)
        status = detokenizer_finish(&d, out);
    detokenizer_free(&d);
    return status;
}
