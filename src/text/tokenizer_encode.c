/* tokenizer_encode.c - text -> ids.
 *
 * Added tokens are cut out of the raw text, then out of each normalised span; the rest becomes words (Metaspace) or one
 * word per span, and each word goes through byte-pair encoding. */
#include "text/tokenizer_impl.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TEXT ((size_t)1 << 29) /* symbol positions are int32_t */

/* A character, then a merged piece; a doubly linked list inside the array of the word. */
typedef struct symbol {
    int32_t id; /* -1: merged into its left neighbour */
    int32_t prev, next;
} symbol;

/* A merge that was possible when it was queued. */
typedef struct candidate {
    uint64_t order; /* rank << 32 | position: lowest rank first, leftmost among equals */
    int32_t result;
} candidate;

typedef struct encoder {
    const tokenizer *t;
    bool allow_special; /* may merges and look-ups yield special tokens? */
    tokenize_mode mode;
    symbol *symbols;
    size_t symbol_count, symbol_capacity;
    candidate *heap;
    size_t heap_count, heap_capacity;
    strbuf span, spare, word;
    token_list *out;
} encoder;

ink_status token_list_add(token_list *l, int32_t id)
{
    TRY(grow_array(&l->ids, &l->capacity, l->count + 1, sizeof *l->ids));
    l->ids[l->count++] = id;
    return INK_OK;
}

void token_list_free(token_list *l)
{
    free(l->ids);
    *l = (token_list){0};
}

/* ---- byte-pair encoding of one word ---- */

static bool may_produce(const encoder *e, int32_t id)
{
    return e->allow_special || !(e->t->pieces[id].flags & PIECE_SPECIAL) || (e->t->pieces[id].flags & PIECE_BYTE);
}

static ink_status add_symbol(encoder *e, int32_t id)
{
    TRY(grow_array(&e->symbols, &e->symbol_capacity, e->symbol_count + 1, sizeof *e->symbols));
    int32_t at = (int32_t)e->symbol_count++;
    e->symbols[at] = (symbol){id, at - 1, at + 1};
    return INK_OK;
}

/* The byte tokens of a character that has no piece; *done is false if the vocabulary lacks one of them. */
static ink_status add_bytes(encoder *e, const char *s, size_t n, bool *done)
{
    *done = false;
    for (size_t i = 0; i < n; i++)
        if (e->t->byte_id[(unsigned char)s[i]] < 0)
            return INK_OK;
    for (size_t i = 0; i < n; i++)
        TRY(add_symbol(e, e->t->byte_id[(unsigned char)s[i]]));
    *done = true;
    return INK_OK;
}

/* One symbol for each character of the word. An unknown token waits until the next character with a piece: like the
 * reference, byte tokens in between come first. That only happens in vocabularies with some byte tokens missing. */
static ink_status first_symbols(encoder *e, const char *s, size_t n)
{
    const tokenizer *t = e->t;
    bool waiting = false;
    e->symbol_count = 0;
    for (size_t i = 0, length; i < n; i += length) {
        uint32_t cp;
        length = utf8_decode(s + i, n - i, &cp);
        int32_t id = tokenizer_find(t, s + i, length, PIECE_MODEL);
        if (id >= 0 && may_produce(e, id)) {
            if (waiting)
                TRY(add_symbol(e, t->unknown));
            waiting = false;
            TRY(add_symbol(e, id));
            continue;
        }
        bool done = false;
        if (t->byte_fallback)
            TRY(add_bytes(e, s + i, length, &done));
        if (done || t->unknown < 0)
            continue;
        if (waiting && !t->fuse_unknown)
            TRY(add_symbol(e, t->unknown));
        waiting = true;
    }
    if (waiting)
        TRY(add_symbol(e, t->unknown));
    if (e->symbol_count)
        e->symbols[e->symbol_count - 1].next = -1;
    return INK_OK;
}

static const pair_slot *merge_at(const encoder *e, int32_t at)
{
    int32_t next = e->symbols[at].next;
    return next < 0 ? NULL : pair_map_find(&e->t->merges, pair_key(e->symbols[at].id, e->symbols[next].id));
}

/* Queues the merge of the symbol at `at` with its right neighbour, if there is one. */
static ink_status offer(encoder *e, int32_t at)
{
    const pair_slot *m = merge_at(e, at);
    if (!m || !may_produce(e, m->value))
        return INK_OK;
    TRY(grow_array(&e->heap, &e->heap_capacity, e->heap_count + 1, sizeof *e->heap));
    candidate c = {(uint64_t)m->rank << 32 | (uint32_t)at, m->value};
    size_t i = e->heap_count++;
    while (i > 0 && e->heap[(i - 1) / 2].order > c.order) {
        e->heap[i] = e->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    e->heap[i] = c;
    return INK_OK;
}

static candidate take_first(encoder *e)
{
    candidate first = e->heap[0], last = e->heap[--e->heap_count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < e->heap_count; i = child) {
        if (child + 1 < e->heap_count && e->heap[child + 1].order < e->heap[child].order)
            child++;
        if (e->heap[child].order >= last.order)
            break;
        e->heap[i] = e->heap[child];
    }
    if (e->heap_count)
        e->heap[i] = last;
    return first;
}

static ink_status merge_symbols(encoder *e)
{
    e->heap_count = 0;
    for (size_t i = 0; i < e->symbol_count; i++)
        TRY(offer(e, (int32_t)i));
    while (e->heap_count) {
        candidate c = take_first(e);
        int32_t at = (int32_t)(uint32_t)c.order;
        if (e->symbols[at].id < 0)
            continue;
        /* The neighbours may have changed since; what counts, as in the reference, is that the result is the same. */
        const pair_slot *m = merge_at(e, at);
        if (!m || m->value != c.result)
            continue;
        int32_t right = e->symbols[at].next, behind = e->symbols[right].next;
        e->symbols[right].id = -1;
        e->symbols[at].id = c.result;
        e->symbols[at].next = behind;
        if (behind >= 0)
            e->symbols[behind].prev = at;
        if (e->symbols[at].prev >= 0)
            TRY(offer(e, e->symbols[at].prev));
        TRY(offer(e, at));
    }
    return INK_OK;
}

static ink_status encode_word(encoder *e, const char *s, size_t n)
{
    if (e->t->ignore_merges) {
        int32_t id = tokenizer_find(e->t, s, n, PIECE_MODEL);
        if (id >= 0 && may_produce(e, id))
            return token_list_add(e->out, id);
    }
    TRY(first_symbols(e, s, n));
    TRY(merge_symbols(e));
    for (int32_t i = e->symbol_count ? 0 : -1; i >= 0; i = e->symbols[i].next)
        TRY(token_list_add(e->out, e->symbols[i].id));
    return INK_OK;
}

/* ---- words of a span ---- */

static ink_status encode_words(encoder *e, const char *s, size_t n, bool first)
{
    const metaspace *m = &e->t->metaspace;
    if (!n)
        return INK_OK;
    if (!m->present)
        return encode_word(e, s, n);
    bool marked = n >= m->mark_length && !memcmp(s, m->mark, m->mark_length);
    strbuf_truncate(&e->word, 0);
    if (s[0] != ' ' && !marked && (m->scheme == PREPEND_ALWAYS || (m->scheme == PREPEND_FIRST && first)))
        strbuf_add(&e->word, m->mark, m->mark_length);
    add_replaced(&e->word, s, n, " ", 1, m->mark, m->mark_length);
    TRY(strbuf_status(&e->word));
    const char *text = e->word.text, *end = text + e->word.length;
    while (text < end) { /* each mark begins a word */
        const char *next = end;
        if (m->split) {
            uint32_t cp;
            size_t step = utf8_decode(text, (size_t)(end - text), &cp);
            for (next = text + step;
                 next < end && ((size_t)(end - next) < m->mark_length || memcmp(next, m->mark, m->mark_length) != 0);)
                next++;
        }
        TRY(encode_word(e, text, (size_t)(next - text)));
        text = next;
    }
    return INK_OK;
}

/* ---- added tokens ---- */

typedef ink_status (*span_fn)(encoder *e, const char *s, size_t n, bool first);

/* Does the token found at text[start..stop) count, by the mode and its single_word flag? */
static bool accepts(const encoder *e, uint32_t flags, const char *text, size_t n, size_t start, size_t stop)
{
    uint32_t cp;
    if ((flags & PIECE_SPECIAL) && e->mode != TOKENIZE_ALL)
        return false;
    if (!(flags & PIECE_SINGLE_WORD))
        return true;
    if (start > 0 && utf8_is_word(utf8_last(text, start)))
        return false;
    if (stop == n)
        return true;
    utf8_decode(text + stop, n - stop, &cp);
    return !utf8_is_word(cp);
}

/* Emits the added tokens in text, leftmost and longest first, and hands the spans between them to `fn`. `first`: the
 * text begins the whole input. */
static ink_status split_at_tokens(encoder *e, const token_trie *trie, const char *text, size_t n, bool first, span_fn fn)
{
    size_t done = 0, length = 0;
    for (size_t i = 0; e->mode != TOKENIZE_PLAIN && i < n; i += length) {
        int32_t id = token_trie_longest(trie, text + i, n - i, &length);
        if (id < 0) {
            length = 1;
            continue;
        }
        uint32_t flags = e->t->pieces[id].flags;
        size_t start = i, stop = i + length;
        if (!accepts(e, flags, text, n, start, stop))
            continue;
        if (flags & PIECE_LSTRIP) {
            start -= utf8_space_before_end(text, start);
            start = start < done ? done : start;
        }
        if (flags & PIECE_RSTRIP)
            stop += utf8_space_at_start(text + stop, n - stop);
        if (done < start)
            TRY(fn(e, text + done, start - done, first && done == 0));
        TRY(token_list_add(e->out, id));
        done = stop;
    }
    return done < n ? fn(e, text + done, n - done, first && done == 0) : INK_OK;
}

static ink_status encode_raw_span(encoder *e, const char *s, size_t n, bool first)
{
    strbuf_truncate(&e->span, 0);
    strbuf_add(&e->span, s, n);
    TRY(strbuf_status(&e->span));
    TRY(normalizer_apply(e->t->normalizers, e->t->normalizer_count, &e->span, &e->spare));
    if (e->span.length > MAX_TEXT)
        return failure(INK_INVALID_ARGUMENT, "text of %zu bytes after normalisation is too long", e->span.length);
    return split_at_tokens(e, &e->t->normalized, e->span.text, e->span.length, first, encode_words);
}

ink_status tokenizer_encode(const tokenizer *t, const char *text, size_t n, tokenize_mode mode, token_list *out)
{
    encoder e = {.t = t, .mode = mode, .allow_special = mode == TOKENIZE_ALL, .out = out};
    strbuf repaired = {0};
    ink_status status = INK_OK;
    if (n > MAX_TEXT)
        return failure(INK_INVALID_ARGUMENT, "text of %zu bytes is too long, the limit is %zu", n, MAX_TEXT);
    if (!utf8_is_valid(text, n)) {
        utf8_add_repaired(&repaired, text, n);
        status = strbuf_status(&repaired);
        text = repaired.text;
        n = repaired.length;
    }
    if (status == INK_OK)
        status = split_at_tokens(&e, &t->raw, text, n, true, encode_raw_span);
    free(e.symbols);
    free(e.heap);
    strbuf_free(&e.span);
    strbuf_free(&e.spare);
    strbuf_free(&e.word);
    strbuf_free(&repaired);
    return status;
}
