/* tokenizer_components.c - reads the sections normalizer, pre_tokenizer, post_processor and decoder of tokenizer.json. */
#include "text/json_check.h"
#include "text/tokenizer_impl.h"
#include "text/utf8.h"

#include <utf8proc.h>

#define MAX_NORMALIZERS 16
#define MAX_NESTING 8 /* Sequences inside Sequences */

static const char *type_of(const json_t *component)
{
    const char *type = json_string_value(json_object_get(component, "type"));
    return type ? type : "";
}

static ink_status unsupported(const char *section, const json_t *component)
{
    if (!json_is_object(component))
        return failure(INK_BAD_DATA, "%s: expected an object or null, found %s", section, json_type_name(component));
    return failure(INK_UNIMPLEMENTED, "%s: type \"%.60s\" is not supported", section, type_of(component));
}

static ink_status keep_string(tokenizer *t, const json_t *object, const char *name, const char *where, const char **text,
                              size_t *length)
{
    const char *s;
    TRY(json_read_string(object, name, where, &s, length));
    char *copy = arena_alloc(&t->memory, *length + 1);
    if (!copy)
        return INK_RESOURCE_EXHAUSTED;
    memcpy(copy, s, *length);
    *text = copy;
    return INK_OK;
}

/* The pattern of a Replace: {"String": "..."}; regular expressions are not supported. */
static ink_status keep_pattern(tokenizer *t, const json_t *object, const char *where, const char **text, size_t *length)
{
    const json_t *pattern = json_object_get(object, "pattern");
    if (json_object_get(pattern, "Regex"))
        return failure(INK_UNIMPLEMENTED, "%s: Replace of a regular expression is not supported", where);
    if (!json_is_object(pattern))
        return failure(INK_BAD_DATA, "%s: \"pattern\" must be an object, found %s", where, json_type_name(pattern));
    TRY(keep_string(t, pattern, "String", where, text, length));
    return *length ? INK_OK : failure(INK_BAD_DATA, "%s: the pattern of Replace is empty", where);
}

/* ---- normalizer ---- */

static int unicode_form(const char *type)
{
    static const struct {
        const char *name;
        int options;
    } forms[] = {
        {"NFC", UTF8PROC_STABLE | UTF8PROC_COMPOSE},
        {"NFD", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE},
        {"NFKC", UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
        {"NFKD", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(type, forms[i].name))
            return forms[i].options;
    return 0;
}

static ink_status read_normalizer(tokenizer *t, const json_t *j, int depth)
{
    const char *type = type_of(j);
    if (json_is_absent(j))
        return INK_OK;
    if (!strcmp(type, "Sequence") && depth < MAX_NESTING) {
        const json_t *list = json_object_get(j, "normalizers");
        if (!json_is_array(list))
            return failure(INK_BAD_DATA, "normalizer: \"normalizers\" must be an array, found %s", json_type_name(list));
        for (size_t i = 0; i < json_array_size(list); i++)
            TRY(read_normalizer(t, json_array_get(list, i), depth + 1));
        return INK_OK;
    }
    normalizer_step step = {.kind = NORMALIZER_UNICODE, .unicode = unicode_form(type)};
    if (!strcmp(type, "Replace")) {
        step.kind = NORMALIZER_REPLACE;
        TRY(keep_pattern(t, j, "normalizer", &step.pattern, &step.pattern_length));
        TRY(keep_string(t, j, "content", "normalizer", &step.content, &step.content_length));
    } else if (!strcmp(type, "Prepend")) {
        step.kind = NORMALIZER_PREPEND;
        TRY(keep_string(t, j, "prepend", "normalizer", &step.content, &step.content_length));
    } else if (!step.unicode) {
        return unsupported("normalizer", j);
    }
    if (t->normalizer_count == MAX_NORMALIZERS)
        return failure(INK_UNIMPLEMENTED, "normalizer: more than %d steps", MAX_NORMALIZERS);
    if (!t->normalizers)
        t->normalizers = arena_alloc(&t->memory, MAX_NORMALIZERS * sizeof *t->normalizers);
    if (!t->normalizers)
        return INK_RESOURCE_EXHAUSTED;
    t->normalizers[t->normalizer_count++] = step;
    return INK_OK;
}

/* ---- Metaspace, as pre-tokenizer and as decoder ---- */

static ink_status read_metaspace(const json_t *j, const char *where, metaspace *m)
{
    const char *mark, *scheme = json_string_value(json_object_get(j, "prepend_scheme"));
    uint32_t cp;
    bool prefix;
    TRY(json_read_string(j, "replacement", where, &mark, &m->mark_length));
    if (!m->mark_length || utf8_decode(mark, m->mark_length, &cp) != m->mark_length)
        return failure(INK_BAD_DATA, "%s: \"replacement\" of Metaspace must be one character", where);
    memcpy(m->mark, mark, m->mark_length);
    TRY(json_read_bool(j, "split", true, where, &m->split));
    TRY(json_read_bool(j, "add_prefix_space", true, where, &prefix));
    m->present = true;
    if (!scheme)
        m->scheme = prefix ? PREPEND_ALWAYS : PREPEND_NEVER;
    else if (!strcmp(scheme, "always"))
        m->scheme = PREPEND_ALWAYS;
    else if (!strcmp(scheme, "first"))
        m->scheme = PREPEND_FIRST;
    else if (!strcmp(scheme, "never"))
        m->scheme = PREPEND_NEVER;
    else
        return failure(INK_BAD_DATA, "%s: unknown prepend_scheme \"%.60s\"", where, scheme);
    if (!prefix && m->scheme != PREPEND_NEVER)
        return failure(INK_BAD_DATA, "%s: add_prefix_space false contradicts prepend_scheme \"%s\"", where, scheme);
    return INK_OK;
}

static ink_status read_pre_tokenizer(tokenizer *t, const json_t *j)
{
    if (json_is_absent(j))
        return INK_OK;
    if (strcmp(type_of(j), "Metaspace") != 0)
        return unsupported("pre_tokenizer", j);
    return read_metaspace(j, "pre_tokenizer", &t->metaspace);
}

/* Post-processors only add special tokens around a text or describe offsets; neither concerns us. */
static ink_status check_post_processor(const json_t *j)
{
    if (json_is_absent(j) || !strcmp(type_of(j), "TemplateProcessing"))
        return INK_OK;
    return unsupported("post_processor", j);
}

/* ---- decoder ---- */

static ink_status read_strip(tokenizer *t, const json_t *j, decoder_step *step)
{
    uint32_t cp;
    TRY(keep_string(t, j, "content", "decoder", &step->content, &step->content_length));
    if (!step->content_length || utf8_decode(step->content, step->content_length, &cp) != step->content_length)
        return failure(INK_BAD_DATA, "decoder: \"content\" of Strip must be one character");
    const json_t *start = json_object_get(j, "start"), *stop = json_object_get(j, "stop");
    if (!json_is_integer(start) || json_integer_value(start) < 0 || json_integer_value(start) > 1000000 ||
        !json_is_integer(stop) || json_integer_value(stop) < 0 || json_integer_value(stop) > 1000000)
        return failure(INK_BAD_DATA, "decoder: \"start\" and \"stop\" of Strip must be integers from 0 to 1000000");
    step->start = (size_t)json_integer_value(start);
    step->stop = (size_t)json_integer_value(stop);
    return INK_OK;
}

/* One decoder; *fused: a Fuse came before, so that the text is no longer divided into tokens. */
static ink_status read_decoder(tokenizer *t, const json_t *j, bool *fused, int depth)
{
    const char *type = type_of(j);
    decoder_step step = {0};
    if (!strcmp(type, "Sequence") && depth < MAX_NESTING) {
        const json_t *list = json_object_get(j, "decoders");
        if (!json_is_array(list))
            return failure(INK_BAD_DATA, "decoder: \"decoders\" must be an array, found %s", json_type_name(list));
        for (size_t i = 0; i < json_array_size(list); i++)
            TRY(read_decoder(t, json_array_get(list, i), fused, depth + 1));
        return INK_OK;
    }
    if (!strcmp(type, "Fuse")) {
        *fused = true;
        return INK_OK;
    }
    if (!strcmp(type, "Replace")) {
        uint32_t cp;
        step.kind = DECODER_REPLACE;
        TRY(keep_pattern(t, j, "decoder", &step.pattern, &step.pattern_length));
        TRY(keep_string(t, j, "content", "decoder", &step.content, &step.content_length));
        if (*fused && utf8_decode(step.pattern, step.pattern_length, &cp) != step.pattern_length)
            return failure(INK_UNIMPLEMENTED, "decoder: Replace of several characters behind Fuse is not supported");
    } else if (!strcmp(type, "Strip")) {
        step.kind = *fused ? DECODER_STRIP_FUSED : DECODER_STRIP;
        TRY(read_strip(t, j, &step));
    } else if (!strcmp(type, "ByteFallback") && !*fused) {
        step.kind = DECODER_BYTES;
    } else if (!strcmp(type, "Metaspace") && !*fused) {
        metaspace m = {0};
        step.kind = DECODER_METASPACE;
        TRY(read_metaspace(j, "decoder", &m));
        TRY(keep_string(t, j, "replacement", "decoder", &step.pattern, &step.pattern_length));
        step.drops_first = m.scheme != PREPEND_NEVER;
    } else if (*fused && (!strcmp(type, "ByteFallback") || !strcmp(type, "Metaspace"))) {
        return failure(INK_UNIMPLEMENTED, "decoder: %s behind Fuse is not supported", type);
    } else {
        return unsupported("decoder", j);
    }
    if (t->decoder_count == DETOKENIZER_MAX_STAGES)
        return failure(INK_UNIMPLEMENTED, "decoder: more than %d steps", DETOKENIZER_MAX_STAGES);
    t->decoders[t->decoder_count++] = step;
    return INK_OK;
}

ink_status tokenizer_read_components(tokenizer *t, const json_t *root)
{
    const json_t *decoder = json_object_get(root, "decoder");
    bool fused = false;
    TRY(read_normalizer(t, json_object_get(root, "normalizer"), 0));
    TRY(read_pre_tokenizer(t, json_object_get(root, "pre_tokenizer")));
    TRY(check_post_processor(json_object_get(root, "post_processor")));
    if (json_is_absent(decoder))
        t->decoders[t->decoder_count++] = (decoder_step){.kind = DECODER_JOIN};
    else
        TRY(read_decoder(t, decoder, &fused, 0));
    return INK_OK;
}
