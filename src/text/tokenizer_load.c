/* tokenizer_load.c - tokenizer.json -> tables. Every id and size is checked before it is used. */
#include "core/rng.h"
#include "text/json_check.h"
#include "text/tokenizer_impl.h"
#include "text/utf8.h"

#include <stdlib.h>

/* ---- pieces by text ---- */

static uint64_t text_hash(const char *text, size_t n)
{
    uint64_t h = n * 0x9e3779b97f4a7c15u, word;
    for (; n >= 8; text += 8, n -= 8) {
        memcpy(&word, text, 8);
        h = (h ^ word) * 0xbf58476d1ce4e5b9u;
        h ^= h >> 32;
    }
    word = 0;
    memcpy(&word, text, n);
    return rng_mix(h ^ word);
}

/* Slot that holds the piece with this text, or the empty one where it belongs; *tag: what belongs into the slot. */
static text_slot *find_slot(const tokenizer *t, const char *text, size_t n, uint32_t *tag)
{
    uint64_t hash = text_hash(text, n);
    size_t i = hash & t->by_text_mask;
    *tag = (uint32_t)(hash >> 32);
    for (; t->by_text[i].id >= 0; i = (i + 1) & t->by_text_mask) {
        if (t->by_text[i].tag != *tag)
            continue;
        const piece *p = &t->pieces[t->by_text[i].id];
        if (p->length == n && !memcmp(p->text, text, n))
            break;
    }
    return &t->by_text[i];
}

int32_t tokenizer_find(const tokenizer *t, const char *text, size_t n, uint32_t flags)
{
    uint32_t tag;
    int32_t id = find_slot(t, text, n, &tag)->id;
    return id >= 0 && (t->pieces[id].flags & flags) == flags ? id : -1;
}

static const char *keep_text(tokenizer *t, const char *text, size_t n)
{
    char *copy = arena_alloc(&t->memory, n + 1);
    if (copy)
        memcpy(copy, text, n);
    return copy;
}

/* Adds a piece whose text is new; the caller has checked the range of id. */
static ink_status add_piece(tokenizer *t, int32_t id, const char *text, size_t n, uint32_t flags)
{
    piece *p = &t->pieces[id];
    uint32_t tag;
    if (p->text)
        return failure(INK_BAD_DATA, "vocabulary: \"%.60s\" and \"%.60s\" both have the id %d", p->text, text, id);
    p->text = p->decoded = keep_text(t, text, n);
    if (!p->text)
        return INK_RESOURCE_EXHAUSTED;
    p->length = p->decoded_length = (uint32_t)n;
    p->flags = flags;
    text_slot *slot = find_slot(t, text, n, &tag);
    *slot = (text_slot){tag, id};
    if ((size_t)id >= t->count)
        t->count = (size_t)id + 1;
    return INK_OK;
}

static ink_status read_id(const json_t *j, const char *text, int32_t *id)
{
    *id = -1;
    if (!json_is_integer(j))
        return failure(INK_BAD_DATA, "vocabulary: the id of \"%.60s\" must be an integer, found %s", text,
                       json_type_name(j));
    json_int_t v = json_integer_value(j);
    if (v < 0 || v >= TOKENIZER_MAX_IDS)
        return failure(INK_BAD_DATA, "vocabulary: the id %lld of \"%.60s\" is outside 0..%d", (long long)v, text,
                       TOKENIZER_MAX_IDS - 1);
    *id = (int32_t)v;
    return INK_OK;
}

/* Room for every id of the file: by the largest one, which is at most TOKENIZER_MAX_IDS - 1. */
static ink_status reserve_pieces(tokenizer *t, json_t *vocab, const json_t *added)
{
    const char *text;
    const json_t *value;
    int32_t id, largest = -1;
    size_t entries = json_object_size(vocab) + json_array_size(added), slots = 16;
    json_object_foreach(vocab, text, value)
    {
        TRY(read_id(value, text, &id));
        largest = id > largest ? id : largest;
    }
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *token = json_array_get(added, i);
        const char *content = json_string_value(json_object_get(token, "content"));
        if (!content)
            return failure(INK_BAD_DATA, "added_tokens[%zu]: \"content\" must be a string", i);
        TRY(read_id(json_object_get(token, "id"), content, &id));
        largest = id > largest ? id : largest;
    }
    while (slots < 2 * entries)
        slots *= 2;
    t->pieces = alloc_array((size_t)largest + 1, sizeof *t->pieces);
    t->by_text = alloc_array(slots, sizeof *t->by_text);
    if (!t->pieces || !t->by_text)
        return INK_RESOURCE_EXHAUSTED;
    memset(t->by_text, -1, slots * sizeof *t->by_text); /* every id -1 */
    t->by_text_mask = slots - 1;
    return INK_OK;
}

static ink_status read_vocabulary(tokenizer *t, json_t *vocab)
{
    const char *text;
    const json_t *value;
    json_object_foreach(vocab, text, value)
    {
        size_t n = strlen(text);
        if (!n)
            return failure(INK_BAD_DATA, "vocabulary: an empty piece (id %lld)", (long long)json_integer_value(value));
        TRY(add_piece(t, (int32_t)json_integer_value(value), text, n, PIECE_MODEL));
    }
    return INK_OK;
}

/* ---- byte and unknown tokens ---- */

static int hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Marks every "<0xHH>" (either case decodes) and finds those that encoding falls back to (upper case only). */
static void find_byte_tokens(tokenizer *t)
{
    for (size_t id = 0; id < t->count; id++) {
        piece *p = &t->pieces[id];
        if (p->text && p->length == 6 && !memcmp(p->text, "<0x", 3) && p->text[5] == '>' && hex_value(p->text[3]) >= 0 &&
            hex_value(p->text[4]) >= 0)
            p->flags |= PIECE_BYTE;
    }
    for (int b = 0; b < 256; b++) {
        static const char digits[] = "0123456789ABCDEF";
        char name[] = {'<', '0', 'x', digits[b >> 4], digits[b & 15], '>'};
        t->byte_id[b] = tokenizer_find(t, name, sizeof name, PIECE_MODEL);
    }
}

static ink_status find_unknown(tokenizer *t, const json_t *model)
{
    const json_t *j = json_object_get(model, "unk_token");
    t->unknown = -1;
    if (json_is_absent(j))
        return INK_OK;
    if (!json_is_string(j))
        return failure(INK_BAD_DATA, "model: \"unk_token\" must be a string or null, found %s", json_type_name(j));
    t->unknown = tokenizer_find(t, json_string_value(j), json_string_length(j), 0);
    if (t->unknown < 0)
        return failure(INK_BAD_DATA, "model: unk_token \"%.60s\" is not in the vocabulary", json_string_value(j));
    return INK_OK;
}

/* ---- merges ---- */

static ink_status merge_halves(const json_t *j, size_t i, const char *half[2], size_t length[2])
{
    if (json_is_string(j)) {
        size_t n = json_string_length(j);
        const char *s = json_string_value(j), *space = memchr(s, ' ', n);
        if (!space || memchr(space + 1, ' ', n - (size_t)(space + 1 - s)))
            return failure(INK_BAD_DATA, "merges[%zu]: \"%.60s\" is not two pieces with one space between", i, s);
        half[0] = s;
        length[0] = (size_t)(space - s);
        half[1] = space + 1;
        length[1] = n - length[0] - 1;
        return INK_OK;
    }
    if (!json_is_array(j) || json_array_size(j) != 2)
        return failure(INK_BAD_DATA, "merges[%zu]: expected a string or an array of two strings, found %s", i,
                       json_type_name(j));
    for (size_t k = 0; k < 2; k++) {
        const json_t *part = json_array_get(j, k);
        if (!json_is_string(part))
            return failure(INK_BAD_DATA, "merges[%zu]: expected two strings, found %s", i, json_type_name(part));
        half[k] = json_string_value(part);
        length[k] = json_string_length(part);
    }
    return INK_OK;
}

static ink_status read_merge(tokenizer *t, const json_t *j, size_t i, strbuf *joined)
{
    const char *half[2] = {NULL, NULL};
    size_t length[2] = {0, 0};
    int32_t id[2];
    TRY(merge_halves(j, i, half, length));
    for (int k = 0; k < 2; k++) {
        id[k] = tokenizer_find(t, half[k], length[k], PIECE_MODEL);
        if (id[k] < 0)
            return failure(INK_BAD_DATA, "merges[%zu]: \"%.*s\" is not in the vocabulary", i,
                           (int)(length[k] < 60 ? length[k] : 60), half[k]);
    }
    strbuf_truncate(joined, 0);
    strbuf_add(joined, half[0], length[0]);
    strbuf_add(joined, half[1], length[1]);
    TRY(strbuf_status(joined));
    int32_t result = tokenizer_find(t, joined->text, joined->length, PIECE_MODEL);
    if (result < 0)
        return failure(INK_BAD_DATA, "merges[%zu]: the result \"%.60s\" is not in the vocabulary", i, joined->text);
    if (!pair_map_put(&t->merges, pair_key(id[0], id[1]), (uint32_t)i, result))
        return failure(INK_BAD_DATA, "merges[%zu]: \"%.60s\" + \"%.60s\" occurs twice", i, half[0], half[1]);
    return INK_OK;
}

static ink_status read_merges(tokenizer *t, const json_t *merges)
{
    strbuf joined = {0};
    ink_status status = pair_map_init(&t->merges, json_array_size(merges));
    for (size_t i = 0; status == INK_OK && i < json_array_size(merges); i++) {
        const json_t *j = json_array_get(merges, i);
        const char *line = json_string_value(j);
        if (!line || strncmp(line, "#version", 8) != 0) /* the old merges.txt header sometimes comes along */
            status = read_merge(t, j, i, &joined);
    }
    strbuf_free(&joined);
    return status;
}

/* ---- added tokens ---- */

static ink_status read_added_token(tokenizer *t, const json_t *j, size_t i)
{
    static const struct {
        const char *name;
        uint32_t flag;
    } flags[] = {{"special", PIECE_SPECIAL},
                 {"single_word", PIECE_SINGLE_WORD},
                 {"lstrip", PIECE_LSTRIP},
                 {"rstrip", PIECE_RSTRIP},
                 {"normalized", PIECE_NORMALIZED}};
    char where[48];
    const char *text;
    size_t n;
    snprintf(where, sizeof where, "added_tokens[%zu]", i);
    TRY(json_read_string(j, "content", where, &text, &n));
    if (!n)
        return failure(INK_BAD_DATA, "%s: \"content\" is empty", where);
    int32_t id = (int32_t)json_integer_value(json_object_get(j, "id")), known = tokenizer_find(t, text, n, 0);
    if (known < 0)
        TRY(add_piece(t, id, text, n, 0));
    else if (known != id)
        return failure(INK_BAD_DATA, "%s: \"%.60s\" has the id %d here and %d in the vocabulary", where, text, id, known);
    piece *p = &t->pieces[id];
    if (p->flags & PIECE_ADDED)
        return failure(INK_BAD_DATA, "%s: \"%.60s\" occurs twice", where, text);
    p->flags |= PIECE_ADDED;
    for (size_t k = 0; k < sizeof flags / sizeof *flags; k++) {
        bool on;
        TRY(json_read_bool(j, flags[k].name, false, where, &on));
        if (on)
            p->flags |= flags[k].flag;
    }
    return INK_OK;
}

/* Normalises p->decoded; `text` and `spare` are scratch. */
static ink_status normalize_piece(tokenizer *t, piece *p, strbuf *text, strbuf *spare)
{
    strbuf_truncate(text, 0);
    strbuf_add(text, p->text, p->length);
    TRY(strbuf_status(text));
    TRY(normalizer_apply(t->normalizers, t->normalizer_count, text, spare));
    p->decoded = keep_text(t, strbuf_text(text), text->length);
    p->decoded_length = (uint32_t)text->length;
    return p->decoded ? INK_OK : INK_RESOURCE_EXHAUSTED;
}

/* Puts the added tokens, special ones first, into the trie that finds them: tokens with the flag normalized are looked
 * for in normalised text, in their own normalised form. */
static ink_status build_tries(tokenizer *t)
{
    size_t total[2] = {0, 0};
    strbuf text = {0}, spare = {0};
    ink_status status = INK_OK;
    for (size_t id = 0; status == INK_OK && id < t->count; id++) {
        piece *p = &t->pieces[id];
        if ((p->flags & PIECE_ADDED) && (p->flags & PIECE_NORMALIZED))
            status = normalize_piece(t, p, &text, &spare);
        if (p->flags & PIECE_ADDED)
            total[(p->flags & PIECE_NORMALIZED) != 0] += p->decoded_length;
    }
    strbuf_free(&text);
    strbuf_free(&spare);
    TRY(status);
    TRY(token_trie_init(&t->raw, total[0]));
    TRY(token_trie_init(&t->normalized, total[1]));
    for (int special = 1; special >= 0; special--)
        for (size_t id = 0; id < t->count; id++) {
            const piece *p = &t->pieces[id];
            if ((p->flags & PIECE_ADDED) && ((p->flags & PIECE_SPECIAL) != 0) == special)
                token_trie_add(p->flags & PIECE_NORMALIZED ? &t->normalized : &t->raw, p->decoded, p->decoded_length,
                               (int32_t)id);
        }
    return INK_OK;
}

/* ---- the file ---- */

static ink_status check_model(const json_t *model)
{
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    if (!json_is_object(model))
        return failure(INK_BAD_DATA, "\"model\" must be an object, found %s", json_type_name(model));
    const json_t *type = json_object_get(model, "type"), *dropout = json_object_get(model, "dropout");
    if (!json_is_absent(type) && (!json_is_string(type) || strcmp(json_string_value(type), "BPE") != 0))
        return failure(INK_UNIMPLEMENTED, "model: type \"%.60s\" is not supported, only BPE",
                       json_is_string(type) ? json_string_value(type) : json_type_name(type));
    for (int i = 0; i < 2; i++) {
        const json_t *affix = json_object_get(model, affixes[i]);
        if (!json_is_absent(affix) && (!json_is_string(affix) || json_string_length(affix)))
            return failure(INK_UNIMPLEMENTED, "model: \"%s\" is not supported", affixes[i]);
    }
    if (!json_is_absent(dropout) && !(json_is_number(dropout) && json_number_value(dropout) == 0))
        return failure(INK_UNIMPLEMENTED, "model: \"dropout\" would make encoding random and is not supported");
    return INK_OK;
}

static ink_status load(tokenizer *t, const json_t *root)
{
    const json_t *model = json_object_get(root, "model"), *added = json_object_get(root, "added_tokens");
    TRY(check_model(model));
    json_t *vocab = json_object_get(model, "vocab"), *merges = json_object_get(model, "merges");
    if (!json_is_object(vocab))
        return failure(INK_BAD_DATA, "model: \"vocab\" must be an object, found %s", json_type_name(vocab));
    if (!json_is_array(merges))
        return failure(INK_BAD_DATA, "model: \"merges\" must be an array, found %s", json_type_name(merges));
    if (!json_is_absent(added) && !json_is_array(added))
        return failure(INK_BAD_DATA, "\"added_tokens\" must be an array, found %s", json_type_name(added));
    TRY(json_read_bool(model, "byte_fallback", false, "model", &t->byte_fallback));
    TRY(json_read_bool(model, "fuse_unk", false, "model", &t->fuse_unknown));
    TRY(json_read_bool(model, "ignore_merges", false, "model", &t->ignore_merges));
    TRY(reserve_pieces(t, vocab, added));
    TRY(read_vocabulary(t, vocab));
    TRY(read_merges(t, merges));
    for (size_t i = 0; i < json_array_size(added); i++)
        TRY(read_added_token(t, json_array_get(added, i), i));
    TRY(find_unknown(t, model));
    find_byte_tokens(t);
    TRY(tokenizer_read_components(t, root));
    return build_tries(t);
}

ink_status tokenizer_parse(const char *json, size_t n, tokenizer **out)
{
    json_error_t error;
    *out = NULL;
    json_t *root = json_loadb(json, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!root)
        return failure(INK_BAD_DATA, "line %d, column %d: %s", error.line, error.column, error.text);
    tokenizer *t = alloc_array(1, sizeof *t);
    ink_status status = t ? INK_OK : INK_RESOURCE_EXHAUSTED;
    if (t)
        status = load(t, root);
    json_decref(root);
    if (status != INK_OK) {
        tokenizer_free(t);
        return status;
    }
    *out = t;
    return INK_OK;
}

void tokenizer_free(tokenizer *t)
{
    if (!t)
        return;
    free(t->pieces);
    free(t->by_text);
    pair_map_free(&t->merges);
    token_trie_free(&t->raw);
    token_trie_free(&t->normalized);
    arena_free(&t->memory);
    free(t);
}

/* ---- lookups ---- */

size_t tokenizer_size(const tokenizer *t) { return t->count; }
int32_t tokenizer_id(const tokenizer *t, const char *token) { return tokenizer_find(t, token, strlen(token), 0); }

static const piece *piece_at(const tokenizer *t, int32_t id)
{
    return id >= 0 && (size_t)id < t->count && t->pieces[id].text ? &t->pieces[id] : NULL;
}

const char *tokenizer_token(const tokenizer *t, int32_t id, size_t *length)
{
    const piece *p = piece_at(t, id);
    if (length)
        *length = p ? p->length : 0;
    return p ? p->text : NULL;
}

bool tokenizer_is_special(const tokenizer *t, int32_t id)
{
    const piece *p = piece_at(t, id);
    return p && (p->flags & PIECE_SPECIAL);
}

bool tokenizer_is_added(const tokenizer *t, int32_t id)
{
    const piece *p = piece_at(t, id);
    return p && (p->flags & PIECE_ADDED);
}
