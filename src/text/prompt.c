#include "text/prompt.h"

#include "core/memory.h"
#include "text/json_check.h"

#include <stdlib.h>

/* ---- tasks ---- */

const prompt_task prompt_tasks[PROMPT_TASKS] = {
    {"ocr", "OCR:", "1.0", 50, false},
    {"table", "Table Recognition:", "1.0", 5000, false},
    {"formula", "Formula Recognition:", "1.0", 50, false},
    {"chart", "Chart Recognition:", "1.0", 50, false},
    {"spotting", "Spotting:", "1.5", 50, true},
    {"seal", "Seal Recognition:", "1.5", 50, false},
};

const prompt_task *prompt_task_find(const char *name)
{
    for (size_t i = 0; i < PROMPT_TASKS; i++)
        if (!strcmp(prompt_tasks[i].name, name))
            return &prompt_tasks[i];
    return NULL;
}

bool prompt_role_find(const char *name, prompt_role *out)
{
    static const char *const names[] = {"user", "assistant", "system"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(names[i], name)) {
            *out = (prompt_role)i;
            return true;
        }
    return false;
}

/* ---- the generation prefix ---- */

static const char newer_prefix[] = "Assistant:\n", older_prefix[] = "Assistant: ";

/* What the string literals of a template say. */
typedef struct template_facts {
    bool user, older, newer, other; /* "User: ", the two prefixes, some other literal that begins with "Assistant" */
} template_facts;

static void note_literal(template_facts *facts, const strbuf *literal)
{
    const char *s = strbuf_text(literal);
    if (!strcmp(s, "User: "))
        facts->user = true;
    else if (!strcmp(s, older_prefix))
        facts->older = true;
    else if (!strcmp(s, newer_prefix))
        facts->newer = true;
    else if (!strncmp(s, "Assistant", 9))
        facts->other = true;
}

/* Reads the literal whose opening quote is at s; returns the position behind its closing quote. */
static const char *read_literal(const char *s, const char *end, strbuf *literal)
{
    char quote = *s++;
    strbuf_truncate(literal, 0);
    for (; s < end && *s != quote; s++) {
        if (*s == '\\' && s + 1 < end) {
            s++;
            strbuf_putc(literal, *s == 'n' ? '\n' : *s == 't' ? '\t' : *s);
        } else {
            strbuf_putc(literal, *s);
        }
    }
    return s < end ? s + 1 : end;
}

/* Looks at the literals inside {{ }} and {% %}; text outside of them and {# comments #} does not count. */
static ink_status read_template(const char *s, size_t n, template_facts *facts)
{
    const char *end = s + n;
    strbuf literal = {0};
    char closing = 0; /* inside a block: what ends it, before a '}' */
    while (s < end) {
        if (!closing) {
            if (*s == '{' && s + 1 < end && strchr("{%#", s[1]) && s[1]) {
                closing = s[1] == '{' ? '}' : s[1];
                s++;
            }
            s++;
        } else if (*s == closing && s + 1 < end && s[1] == '}') {
            closing = 0;
            s += 2;
        } else if (closing != '#' && (*s == '"' || *s == '\'')) {
            s = read_literal(s, end, &literal);
            note_literal(facts, &literal);
        } else {
            s++;
        }
    }
    ink_status status = strbuf_status(&literal);
    strbuf_free(&literal);
    return status;
}

static ink_status prefix_of_template(const char *text, size_t n, const char *where, const char **prefix)
{
    template_facts facts = {0};
    TRY(read_template(text, n, &facts));
    if (!facts.user || facts.other || facts.older == facts.newer)
        return failure(INK_UNIMPLEMENTED,
                       "%s: not one of the published chat templates, which begin an answer with \"Assistant: \" or "
                       "\"Assistant:\\n\"; give the prefix with --assistant-prefix",
                       where);
    *prefix = facts.newer ? newer_prefix : older_prefix;
    return INK_OK;
}

/* The default among named templates, or the only one. */
static const json_t *choose_template(const json_t *list)
{
    const json_t *found = json_array_size(list) == 1 ? json_object_get(json_array_get(list, 0), "template") : NULL;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(entry, "name"));
        if (name && !strcmp(name, "default"))
            found = json_object_get(entry, "template");
    }
    return found;
}

static ink_status prefix_of_config(const char *text, size_t n, const char **prefix)
{
    static const char where[] = "tokenizer_config.json";
    json_error_t error;
    json_t *root = json_loadb(text, n, JSON_ALLOW_NUL, &error);
    if (!root)
        return failure(INK_BAD_DATA, "%s: line %d, column %d: %s", where, error.line, error.column, error.text);
    const json_t *chat = json_object_get(root, "chat_template");
    ink_status status = INK_OK;
    if (json_is_array(chat)) {
        chat = choose_template(chat);
        if (!chat)
            status = failure(INK_UNIMPLEMENTED,
                             "%s: none of the templates in \"chat_template\" is named \"default\"; give the prefix with "
                             "--assistant-prefix",
                             where);
    }
    if (status == INK_OK && json_is_string(chat))
        status = prefix_of_template(json_string_value(chat), json_string_length(chat), where, prefix);
    else if (status == INK_OK && !json_is_absent(chat))
        status = failure(INK_BAD_DATA, "%s: \"chat_template\" must be a string or a list of named templates, found %s",
                         where, json_type_name(chat));
    json_decref(root);
    return status;
}

ink_status prompt_find_prefix(const char *jinja, size_t jinja_length, const char *config, size_t config_length,
                              const char *override, char **out)
{
    const char *prefix = override ? override : newer_prefix;
    *out = NULL;
    if (!override && jinja)
        TRY(prefix_of_template(jinja, jinja_length, "chat_template.jinja", &prefix));
    else if (!override && config)
        TRY(prefix_of_config(config, config_length, &prefix));
    *out = copy_string(prefix);
    return *out ? INK_OK : INK_RESOURCE_EXHAUSTED;
}

/* ---- building ---- */

typedef struct builder {
    const tokenizer *t;
    int32_t begin, end, image_start, image, image_end; /* ids of the special tokens */
    strbuf span;                                       /* text since the last of them */
    prompt *out;
} builder;

static ink_status find_tokens(builder *b)
{
    const struct {
        const char *text;
        int32_t *id;
    } needed[] = {{"<|begin_of_sentence|>", &b->begin},
                  {"</s>", &b->end},
                  {"<|IMAGE_START|>", &b->image_start},
                  {"<|IMAGE_PLACEHOLDER|>", &b->image},
                  {"<|IMAGE_END|>", &b->image_end}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        *needed[i].id = tokenizer_id(b->t, needed[i].text);
        if (*needed[i].id < 0)
            return failure(INK_BAD_DATA, "the tokenizer has no token %s, which the prompt needs", needed[i].text);
    }
    return INK_OK;
}

/* Does the text encoded since `from` hold one of the tokens that give the prompt its structure? */
static bool has_structure(const builder *b, size_t from)
{
    for (size_t i = from; i < b->out->ids.count; i++) {
        int32_t id = b->out->ids.ids[i];
        if (id == b->begin || id == b->end || id == b->image_start || id == b->image || id == b->image_end)
            return true;
    }
    return false;
}

/* Encodes the text collected so far. A file that does not flag the structural tokens special would let a literal one in
 * the text through; then the span is encoded without any added token. */
static ink_status end_span(builder *b)
{
    token_list *ids = &b->out->ids;
    size_t from = ids->count;
    TRY(strbuf_status(&b->span));
    TRY(tokenizer_encode(b->t, strbuf_text(&b->span), b->span.length, TOKENIZE_TEXT, ids));
    if (has_structure(b, from)) {
        ids->count = from;
        TRY(tokenizer_encode(b->t, strbuf_text(&b->span), b->span.length, TOKENIZE_PLAIN, ids));
    }
    if (has_structure(b, from))
        return failure(INK_INVALID_ARGUMENT, "the text cannot be told apart from the special tokens of the prompt");
    strbuf_truncate(&b->span, 0);
    return INK_OK;
}

static ink_status add_special(builder *b, int32_t id)
{
    TRY(end_span(b));
    return token_list_add(&b->out->ids, id);
}

static ink_status add_image(builder *b, size_t placeholders)
{
    prompt *p = b->out;
    TRY(add_special(b, b->image_start));
    TRY(grow_array(&p->images, &p->image_capacity, p->image_count + 1, sizeof *p->images));
    p->images[p->image_count++] = (prompt_image){p->ids.count, placeholders};
    for (size_t i = 0; i < placeholders; i++)
        TRY(token_list_add(&p->ids, b->image));
    return add_special(b, b->image_end);
}

static ink_status add_message(builder *b, const prompt_message *m, const char *prefix, const size_t *image_tokens)
{
    switch (m->role) {
    case PROMPT_USER:
        strbuf_puts(&b->span, "User: ");
        for (size_t i = 0; i < m->images; i++)
            TRY(add_image(b, image_tokens[i]));
        break;
    case PROMPT_ASSISTANT: strbuf_puts(&b->span, prefix); break;
    case PROMPT_SYSTEM: break;
    }
    strbuf_add(&b->span, m->text, m->length);
    if (m->role == PROMPT_ASSISTANT)
        return add_special(b, b->end);
    strbuf_putc(&b->span, '\n');
    return INK_OK;
}

static ink_status check_messages(const prompt_message *messages, size_t n, const size_t *image_tokens, size_t image_count)
{
    size_t named = 0;
    if (!n)
        return failure(INK_INVALID_ARGUMENT, "the prompt has no messages");
    for (size_t i = 0; i < n; i++) {
        if (messages[i].images && messages[i].role != PROMPT_USER)
            return failure(INK_INVALID_ARGUMENT, "message %zu: only user messages can have images", i);
        named += messages[i].images;
    }
    if (named != image_count)
        return failure(INK_INVALID_ARGUMENT, "the messages name %zu image%s, but %zu %s given", named,
                       named == 1 ? "" : "s", image_count, image_count == 1 ? "was" : "were");
    for (size_t i = 0; i < image_count; i++)
        if (!image_tokens[i])
            return failure(INK_INVALID_ARGUMENT, "image %zu has no tokens", i);
    return INK_OK;
}

static ink_status build(builder *b, const char *prefix, const prompt_message *messages, size_t n,
                        const size_t *image_tokens)
{
    TRY(find_tokens(b));
    TRY(add_special(b, b->begin));
    for (size_t i = 0; i < n; image_tokens += messages[i].images, i++)
        TRY(add_message(b, &messages[i], prefix, image_tokens));
    strbuf_puts(&b->span, prefix);
    return end_span(b);
}

ink_status prompt_build(const tokenizer *t, const char *prefix, const prompt_message *messages, size_t message_count,
                        const size_t *image_tokens, size_t image_count, prompt *out)
{
    builder b = {.t = t, .out = out};
    *out = (prompt){0};
    TRY(check_messages(messages, message_count, image_tokens, image_count));
    ink_status status = build(&b, prefix, messages, message_count, image_tokens);
    strbuf_free(&b.span);
    if (status != INK_OK)
        prompt_free(out);
    return status;
}

void prompt_free(prompt *p)
{
    token_list_free(&p->ids);
    free(p->images);
    *p = (prompt){0};
}
