/* fuzz_otsl.c - model answers from hostile hands: tables, charts, repetition, spotting, Markdown. */
#include "text/markdown.h"
#include "text/otsl.h"
#include "text/repetition.h"
#include "text/spotting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "broken: %s (%s)\n", what, ink_last_error());
    abort();
}

/* Nothing but our own tags may be in the HTML, and they must nest. */
static void check_html(const char *s, size_t n, bool is_table)
{
    static const char *const tags[] = {"<table>", "</table>", "<thead>", "</thead>", "<tbody>", "</tbody>",
                                       "<tr>",    "</tr>",    "<td",     "</td>",    "<th>",    "</th>"};
    int depth = 0;
    for (const char *end = s + n; (s = n ? memchr(s, '<', (size_t)(end - s)) : NULL) != NULL; s++) {
        size_t i = 0;
        while (i < 12 && strncmp(s, tags[i], strlen(tags[i])) != 0)
            i++;
        demand(i < 12, "only table tags");
        depth += i % 2 ? -1 : 1;
        demand(depth >= 0 && depth <= 4, "tags nest");
    }
    demand(depth == 0 && is_table == (n > 0), "tags are closed");
}

static void check_tables(const char *text, size_t n)
{
    strbuf out = {0};
    bool is_table;
    if (otsl_to_html(text, n, &out, &is_table) == INK_OK)
        check_html(strbuf_text(&out), out.length, is_table);
    strbuf_truncate(&out, 0);
    if (otsl_to_markdown(text, n, MARKDOWN_KEEP_MATH, &out, &is_table) == INK_OK)
        demand(is_table == (out.length > 0), "a table or nothing");
    strbuf_truncate(&out, 0);
    if (chart_to_html(text, n, &out, &is_table) == INK_OK)
        check_html(strbuf_text(&out), out.length, is_table);
    strbuf_truncate(&out, 0);
    if (chart_to_markdown(text, n, 0, &out, &is_table) == INK_OK)
        demand(is_table == (out.length > 0), "a table or nothing");
    strbuf_free(&out);
}

static void check_repetition(const char *text, size_t n)
{
    for (unsigned rules = 0; rules <= REPETITION_ROBUST; rules++) {
        const char *kept;
        size_t length;
        unsigned rule;
        demand(repetition_truncate(text, n, rules % 3 * 50, rules, &kept, &length, &rule) == INK_OK, "truncate");
        demand(kept >= text && length <= n - (size_t)(kept - text), "a part of the text");
        demand((rule & ~rules) == 0 && (rule || length == n), "only the rules asked for");
    }
    size_t keep;
    demand(repetition_guard(text, n, 50, &keep) == INK_OK && keep <= n, "guard");
}

static void check_rest(const char *text, size_t n)
{
    strbuf out = {0};
    spotting s;
    demand(spotting_parse(text, n, 640, 480, &s) == INK_OK, "spotting");
    for (size_t i = 0; i < s.count; i++)
        demand(s.items[i].text >= text && s.items[i].text + s.items[i].length <= text + n, "texts of the answer");
    spotting_add_text(&s, &out);
    spotting_free(&s);
    for (unsigned flags = 0; flags < 4; flags++)
        markdown_escape(&out, text, n, flags);
    math_delimiters(&out, text, n, n % 2);
    demand(strbuf_status(&out) == INK_OK, "memory");
    strbuf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_tables((const char *)data, size);
    check_repetition((const char *)data, size);
    check_rest((const char *)data, size);
    return 0;
}
