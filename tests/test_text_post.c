/* test_text_post.c - tables, charts, repetition, spotting and Markdown: vectors of the reference, hand-checked cases, and
 * random input against properties. */
#include "text/markdown.h"
#include "text/otsl.h"
#include "text/repetition.h"
#include "text/spotting.h"

#include "text_support.h"

/* ---- vectors ---- */

static size_t seen[4];

static void check_otsl_vector(const json_t *line, size_t number)
{
    const json_t *in = json_array_get(line, 1);
    strbuf out = {0};
    bool is_table;
    assert_ok(otsl_to_html(json_string_value(in), json_string_length(in), &out, &is_table));
    const char *want = json_string_value(json_array_get(line, 2));
    if (strcmp(strbuf_text(&out), want) != 0 || is_table != (want[0] != 0))
        fail_msg("line %zu: %s\n gives    %s\n expected %s", number, json_string_value(in), strbuf_text(&out), want);
    strbuf_free(&out);
    seen[0]++;
}

static uint64_t fnv(const char *s, size_t n)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * 0x100000001B3u;
    return h;
}

static void check_repeat_vector(const json_t *line, size_t number)
{
    const json_t *parts = json_array_get(line, 1), *part;
    strbuf text = {0};
    size_t i, n;
    unsigned rule;
    const char *kept;
    char hash[20];
    json_array_foreach(parts, i, part)
    {
        for (json_int_t k = json_integer_value(json_array_get(part, 1)); k > 0; k--)
            strbuf_puts(&text, json_string_value(json_array_get(part, 0)));
    }
    assert_ok(repetition_truncate(strbuf_text(&text), text.length, (size_t)json_integer_value(json_array_get(line, 2)),
                                  REPETITION_REFERENCE, &kept, &n, &rule));
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)fnv(kept, n));
    if ((json_int_t)n != json_integer_value(json_array_get(line, 3)) ||
        strcmp(hash, json_string_value(json_array_get(line, 4))) != 0)
        fail_msg("line %zu: rule %u keeps %zu of %zu bytes: %.*s", number, rule, n, text.length, (int)n, kept);
    strbuf_free(&text);
    seen[1]++;
}

static void check_spot_vector(const json_t *line, size_t number)
{
    const json_t *in = json_array_get(line, 1), *polygons = json_array_get(line, 5), *texts = json_array_get(line, 6);
    spotting s;
    strbuf joined = {0};
    assert_ok(spotting_parse(json_string_value(in), json_string_length(in), json_number_value(json_array_get(line, 2)),
                             json_number_value(json_array_get(line, 3)), &s));
    spotting_add_text(&s, &joined);
    if (s.count != json_array_size(texts) || strcmp(strbuf_text(&joined), json_string_value(json_array_get(line, 4))) != 0)
        fail_msg("line %zu: %s gives \"%s\"", number, json_string_value(in), strbuf_text(&joined));
    for (size_t i = 0; i < s.count; i++) {
        assert_int_equal(s.items[i].length, json_string_length(json_array_get(texts, i)));
        assert_memory_equal(s.items[i].text, json_string_value(json_array_get(texts, i)), s.items[i].length);
        for (size_t k = 0; k < 8; k++)
            assert_true(s.items[i].points[k / 2][k % 2] ==
                        json_number_value(json_array_get(json_array_get(json_array_get(polygons, i), k / 2), k % 2)));
    }
    spotting_free(&s);
    strbuf_free(&joined);
    seen[2]++;
}

static void check_math_vector(const json_t *line, size_t number)
{
    const json_t *in = json_array_get(line, 1);
    strbuf out = {0}, number_out = {0};
    bool changed = math_delimiters(&out, json_string_value(in), json_string_length(in), false);
    if (strcmp(strbuf_text(&out), json_string_value(json_array_get(line, 2))) != 0)
        fail_msg("line %zu: %s gives \"%s\"", number, json_string_value(in), strbuf_text(&out));
    assert_true(changed == math_delimiters(&number_out, json_string_value(in), json_string_length(in), true));
    assert_true(!changed || !strchr(strbuf_text(&number_out), '$'));
    strbuf_free(&out);
    strbuf_free(&number_out);
    seen[3]++;
}

static void check_vector(const json_t *line, size_t number, void *user)
{
    (void)user;
    switch (json_string_value(json_array_get(line, 0))[0]) {
    case 'o': check_otsl_vector(line, number); break;
    case 'r': check_repeat_vector(line, number); break;
    case 's': check_spot_vector(line, number); break;
    case 'm': check_math_vector(line, number); break;
    default: fail_msg("line %zu: unknown kind", number);
    }
}

static void test_reference_vectors(void **state)
{
    (void)state;
    each_vector("tests/data/text/postprocess.vectors", check_vector, NULL);
    assert_true(seen[0] >= 300 && seen[1] >= 400 && seen[2] >= 80 && seen[3] >= 100);
}

/* ---- tables ---- */

static void check_html(const char *otsl, const char *want)
{
    strbuf out = {0};
    bool is_table;
    assert_ok(otsl_to_html(otsl, strlen(otsl), &out, &is_table));
    assert_string_equal(strbuf_text(&out), want);
    assert_true(is_table == (want[0] != 0));
    strbuf_free(&out);
}

static void test_tables_by_hand(void **state)
{
    (void)state;
    check_html("", "");
    check_html("no table", "");
    check_html("<nl><nl>", "");
    check_html("<lcel><ucel><nl>", "");
    check_html("<fcel>a", "<table><tr><td>a</td></tr></table>");
    check_html("<fcel>a<fcel>b<nl><fcel>c<fcel>d<nl>",
               "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>");
    check_html("<fcel>a<lcel><nl><ucel><xcel><nl>",
               "<table><tr><td rowspan=\"2\" colspan=\"2\">a</td></tr><tr></tr></table>");
    check_html("<fcel>h<lcel><fcel>k<nl><fcel>1<fcel>2<ucel><nl>",
               "<table><tr><td colspan=\"2\">h</td><td rowspan=\"2\">k</td></tr><tr><td>1</td><td>2</td></tr></table>");
    /* ragged: the third row's last filled cell sets the width, shorter rows are filled */
    check_html("<fcel>a<nl><fcel>b<fcel>c<ecel><ecel><nl><ecel><fcel>d<nl>",
               "<table><tr><td>a</td><td></td></tr><tr><td>b</td><td>c</td></tr><tr><td></td><td>d</td></tr></table>");
    /* marks that have nothing to merge with leave empty cells */
    check_html("<lcel><fcel>a<nl><ucel><xcel><nl>",
               "<table><tr><td></td><td rowspan=\"2\">a</td></tr><tr><td></td></tr></table>");
    check_html("<fcel>a<ecel>stray<lcel><nl>", "<table><tr><td>a</td><td></td><td></td></tr></table>");
    /* a cell without content stays empty and does not swallow its neighbour */
    check_html("<fcel><fcel>x<nl><fcel> <lcel><nl>",
               "<table><tr><td></td><td>x</td></tr><tr><td colspan=\"2\"></td></tr></table>");
    /* overlapping spans: the later cell wins, the earlier one is clipped */
    check_html("<fcel>a<lcel><nl><ucel><fcel>b<nl>",
               "<table><tr><td colspan=\"2\">a</td></tr><tr><td></td><td>b</td></tr></table>");
    check_html("<fcel>a<fcel>b<nl><fcel>c<xcel><nl>",
               "<table><tr><td>a</td><td>b</td></tr><tr><td colspan=\"2\">c</td></tr></table>");
    /* contents cannot become markup */
    check_html("<fcel><a b=\"1\"/><fcel>x < 3 & y > 2<fcel></td><fcel>it's<nl>",
               "<table><tr><td>&lt;a b=&quot;1&quot;/&gt;</td><td>x &lt; 3 &amp; y &gt; 2</td><td>&lt;/td&gt;</td>"
               "<td>it&#x27;s</td></tr></table>");
    /* two equal rows and two equal neighbours are kept */
    check_html("<fcel>a<fcel>a<nl><fcel>a<fcel>a<nl>",
               "<table><tr><td>a</td><td>a</td></tr><tr><td>a</td><td>a</td></tr></table>");
    check_html("lead<fcel>a\nb<nl>between<fcel>\xE8\xA1\xA8<nl>tail",
               "<table><tr><td>a\nb</td></tr><tr><td>\xE8\xA1\xA8</td></tr></table>");
}

/* A minimal reader of our HTML: places the cells as a browser does and demands that they tile a rectangle. */
typedef struct html_reader {
    const char *s;
    size_t rows, columns; /* found so far */
    strbuf texts;         /* contents of the cells that have any, each followed by \x1E */
    bool used[64][64];
} html_reader;

static bool accept(html_reader *h, const char *what)
{
    size_t n = strlen(what);
    if (strncmp(h->s, what, n) != 0)
        return false;
    h->s += n;
    return true;
}

static size_t read_span(html_reader *h, const char *name)
{
    if (!accept(h, name))
        return 1;
    size_t n = strtoull(h->s, (char **)&h->s, 10);
    assert_true(n > 1);
    assert_true(accept(h, "\""));
    return n;
}

static void read_content(html_reader *h)
{
    static const char *const entities[][2] = {
        {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#x27;", "'"}};
    size_t before = h->texts.length;
    while (*h->s != '<') {
        size_t i = 0;
        assert_true(*h->s != 0 && *h->s != '>' && *h->s != '"' && *h->s != '\'');
        while (*h->s == '&' && i < 5 && strncmp(h->s, entities[i][0], strlen(entities[i][0])) != 0)
            i++;
        assert_true(i < 5);
        strbuf_putc(&h->texts, *h->s == '&' ? entities[i][1][0] : *h->s);
        h->s += *h->s == '&' ? strlen(entities[i][0]) : 1;
    }
    if (h->texts.length > before)
        strbuf_putc(&h->texts, '\x1E');
}

static void read_cell(html_reader *h)
{
    size_t column = 0, rowspan = read_span(h, " rowspan=\""), colspan = read_span(h, " colspan=\"");
    assert_true(accept(h, ">"));
    read_content(h);
    assert_true(accept(h, "</td>"));
    while (h->used[h->rows][column])
        column++;
    for (size_t r = 0; r < rowspan; r++)
        for (size_t c = 0; c < colspan; c++) {
            assert_true(h->rows + r < 64 && column + c < 64);
            assert_false(h->used[h->rows + r][column + c]);
            h->used[h->rows + r][column + c] = true;
        }
    h->columns = column + colspan > h->columns ? column + colspan : h->columns;
}

static void read_html(html_reader *h, const char *html)
{
    *h = (html_reader){.s = html};
    assert_true(accept(h, "<table>"));
    for (; accept(h, "<tr>"); h->rows++) {
        while (accept(h, "<td"))
            read_cell(h);
        assert_true(accept(h, "</tr>"));
    }
    assert_true(accept(h, "</table>"));
    assert_int_equal(*h->s, 0);
    for (size_t r = 0; r < 64; r++)
        for (size_t c = 0; c < 64; c++)
            assert_true(h->used[r][c] == (r < h->rows && c < h->columns));
}

/* 10 000 random tag sequences: always well-formed, spans tile the grid, and the contents of all filled cells come out, in
 * order and unharmed. */
static void test_random_tables(void **state)
{
    (void)state;
    static const char *const tags[] = {"<fcel>", "<ecel>", "<lcel>", "<ucel>", "<xcel>", "<nl>"};
    static const char *const texts[] = {"a", "x < 3 & y > 2", "</td>", "<a b=\"1\"/>", "it's", "\xC3\xA9", "<fce", "&lt;"};
    rng r = fresh_rng();
    size_t tables = 0;
    for (int i = 0; i < 10000; i++) {
        strbuf otsl = {0}, html = {0}, want = {0}, markdown = {0};
        bool is_table, in_markdown;
        uint64_t bias = rng_below(&r, 4);
        for (uint64_t k = rng_below(&r, 40); k > 0; k--) {
            uint64_t tag = bias && rng_below(&r, 3) ? (bias == 1 ? 0 : 2 + rng_below(&r, 3)) : rng_below(&r, 6);
            strbuf_puts(&otsl, tags[tag]);
            if (tag == 0 ? rng_below(&r, 8) : !rng_below(&r, 10)) {
                const char *text = texts[rng_below(&r, 8)];
                strbuf_printf(&otsl, " %s\n", text);
                if (tag == 0)
                    strbuf_printf(&want, "%s\x1E", text);
            }
        }
        assert_ok(otsl_to_html(strbuf_text(&otsl), otsl.length, &html, &is_table));
        assert_ok(otsl_to_markdown(strbuf_text(&otsl), otsl.length, 0, &markdown, &in_markdown));
        assert_true(is_table == in_markdown && is_table == (html.length > 0) && is_table == (markdown.length > 0));
        if (is_table) {
            html_reader h;
            read_html(&h, html.text);
            assert_string_equal(strbuf_text(&h.texts), strbuf_text(&want));
            if (markdown.text[0] == '<')
                assert_non_null(strstr(html.text, "span=\""));
            else
                assert_null(strstr(html.text, "span=\""));
            strbuf_free(&h.texts);
            tables++;
        }
        strbuf_free(&otsl);
        strbuf_free(&html);
        strbuf_free(&want);
        strbuf_free(&markdown);
    }
    assert_true(tables > 7000);
}

static void test_table_too_large(void **state)
{
    (void)state;
    strbuf otsl = {0}, out = {0};
    bool is_table = true;
    for (int i = 0; i < 2000; i++)
        strbuf_puts(&otsl, "<ecel>");
    strbuf_puts(&otsl, "<fcel>x");
    for (int i = 0; i < 2000; i++)
        strbuf_puts(&otsl, "<nl><ecel>");
    assert_int_equal(otsl_to_html(otsl.text, otsl.length, &out, &is_table), INK_OUT_OF_RANGE);
    assert_false(is_table);
    assert_int_equal(out.length, 0);
    assert_non_null(strstr(ink_last_error(), "2001 rows and 2001 columns"));
    strbuf_free(&otsl);
    strbuf_free(&out);
}

static void check_markdown(const char *otsl, unsigned flags, const char *want)
{
    strbuf out = {0};
    bool is_table;
    assert_ok(otsl_to_markdown(otsl, strlen(otsl), flags, &out, &is_table));
    assert_string_equal(strbuf_text(&out), want);
    strbuf_free(&out);
}

static void test_tables_in_markdown(void **state)
{
    (void)state;
    check_markdown("<fcel>a|b<ecel><nl><fcel>1\n2<fcel>*x*<nl>", 0, "| a\\|b |  |\n| --- | --- |\n| 1<br>2 | \\*x\\* |\n");
    check_markdown("<fcel>a<lcel><nl><fcel>1\n\n<2><fcel>2<nl>", 0,
                   "<table><tr><td colspan=\"2\">a</td></tr><tr><td>1<br><br>&lt;2&gt;</td><td>2</td></tr></table>");
    check_markdown("<fcel>$x_1$<nl><fcel>$5", MARKDOWN_KEEP_MATH, "| $x_1$ |\n| --- |\n| \\$5 |\n");
    check_markdown("none", 0, "");
}

static void check_chart(const char *text, const char *html, const char *markdown)
{
    strbuf out = {0};
    bool is_table;
    assert_ok(chart_to_html(text, strlen(text), &out, &is_table));
    assert_string_equal(strbuf_text(&out), html);
    assert_true(is_table == (html[0] != 0));
    strbuf_truncate(&out, 0);
    assert_ok(chart_to_markdown(text, strlen(text), 0, &out, &is_table));
    assert_string_equal(strbuf_text(&out), markdown);
    strbuf_free(&out);
}

static void test_charts(void **state)
{
    (void)state;
    check_chart("", "", "");
    check_chart("just words\n", "", "");
    check_chart(
        " | A | B<\n2019 | 1 | 2 \n\n2020|3\n",
        "<table><thead><tr><th></th><th>A</th><th>B&lt;</th></tr></thead><tbody><tr><td>2019</td><td>1</td><td>2</td></tr>"
        "<tr><td>2020</td><td>3</td><td></td></tr></tbody></table>",
        "|  | A | B< |\n| --- | --- | --- |\n| 2019 | 1 | 2 |\n| 2020 | 3 |  |\n");
    check_chart("|x|y|\n|---|:-:|\n|1|2|",
                "<table><thead><tr><th>x</th><th>y</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>",
                "| x | y |\n| --- | --- |\n| 1 | 2 |\n");
}

/* ---- Markdown ---- */

static void check_escape(const char *text, unsigned flags, const char *want)
{
    strbuf out = {0};
    markdown_escape(&out, text, strlen(text), flags);
    assert_string_equal(strbuf_text(&out), want);
    strbuf_free(&out);
}

static void test_markdown_escape(void **state)
{
    (void)state;
    check_escape("10*20*30 mm", 0, "10\\*20\\*30 mm");
    check_escape("# 5", 0, "\\# 5");
    check_escape("1. x\n12) y\n3.5 z\n2024.", 0, "1\\. x\n12\\) y\n3.5 z\n2024\\.");
    check_escape("a_b_c", 0, "a\\_b\\_c");
    check_escape("a|b", 0, "a\\|b");
    check_escape("- x\n-5\n---\n+ y\n+49", 0, "\\- x\n-5\n\\---\n\\+ y\n+49");
    check_escape("a\n===", 0, "a\n\\===");
    check_escape("> q\nx > 3", 0, "\\> q\nx > 3");
    check_escape("<b>x</b> 1 < 2 <3", 0, "\\<b>x\\</b> 1 < 2 <3");
    check_escape("R&D &amp; &#65; &x", 0, "R&D \\&amp; \\&#65; &x");
    check_escape("C:\\dir `x` [l](u) ~~s~~ $5", 0, "C:\\\\dir \\`x\\` \\[l\\](u) \\~\\~s\\~\\~ \\$5");
    check_escape("    code?  \nnext\t\n", 0, "code?\nnext\n");
    check_escape("a\nb | c", MARKDOWN_CELL, "a<br>b \\| c");
    check_escape("# 5", MARKDOWN_CELL, "# 5");
    check_escape(" $ x_1 $ and $$ a_b $$ a_b $", MARKDOWN_KEEP_MATH, "$ x_1 $ and $$ a_b $$ a\\_b \\$");
    check_escape("", 0, "");
}

/* ---- repetition ---- */

static void repeat(strbuf *out, const char *unit, int copies)
{
    while (copies-- > 0)
        strbuf_puts(out, unit);
}

static void check_truncate(const strbuf *text, size_t min, unsigned rules, unsigned want_rule, const char *want)
{
    const char *kept;
    size_t n;
    unsigned rule;
    assert_ok(repetition_truncate(strbuf_text(text), text->length, min, rules, &kept, &n, &rule));
    assert_int_equal(rule, want_rule);
    assert_int_equal(n, strlen(want));
    assert_memory_equal(kept, want, n);
}

static void test_truncate_by_hand(void **state)
{
    (void)state;
    strbuf t = {0};
    const char *good = "First line of text\nSecond line of text\nThird: ";
    check_truncate(&t, 0, REPETITION_ROBUST, 0, "");
    strbuf_puts(&t, good);
    check_truncate(&t, 0, REPETITION_ROBUST, 0, good); /* untouched */
    repeat(&t, "abcdefgh ", 200);
    check_truncate(&t, 50, REPETITION_REFERENCE, 0, t.text); /* several lines: the reference sees nothing */
    check_truncate(&t, 50, REPETITION_ROBUST, REPETITION_SUFFIX, "First line of text\nSecond line of text\nThird:");
    strbuf_puts(&t, UTF8_REPLACEMENT);
    check_truncate(&t, 50, REPETITION_ROBUST, REPETITION_SUFFIX, "First line of text\nSecond line of text\nThird:");
    strbuf_puts(&t, "\xE6\x9D"); /* a character cut in half */
    check_truncate(&t, 50, REPETITION_ROBUST, REPETITION_SUFFIX, "First line of text\nSecond line of text\nThird:");
    check_truncate(&t, 5000, REPETITION_ROBUST, 0, t.text);
    strbuf_free(&t);
    repeat(&t, "\xE5\xAD\x97", 49); /* 49 code points, not bytes */
    check_truncate(&t, 50, REPETITION_REFERENCE, 0, t.text);
    repeat(&t, "\xE5\xAD\x97", 1);
    check_truncate(&t, 50, REPETITION_REFERENCE, REPETITION_WHOLE, "\xE5\xAD\x97");
    check_truncate(&t, 50, REPETITION_SUFFIX | REPETITION_LINES, 0, t.text);
    strbuf_free(&t);
    repeat(&t, "same\n", 16);
    repeat(&t, "other\n", 4);
    check_truncate(&t, 50, REPETITION_REFERENCE, REPETITION_LINES, "same"); /* exactly 80 % */
    repeat(&t, "more\n", 1);
    check_truncate(&t, 50, REPETITION_REFERENCE, 0, t.text);
    strbuf_free(&t);
}

static void check_guard(strbuf *t, size_t min, size_t want)
{
    size_t keep;
    assert_ok(repetition_guard(strbuf_text(t), t->length, min, &keep));
    assert_int_equal(keep, want);
    strbuf_free(t);
}

static void test_guard(void **state)
{
    (void)state;
    strbuf t = {0};
    const char *good = "First line of text\nSecond line of text\nThird: ";
    size_t start = strlen(good);
    check_guard(&t, 0, 0);
    strbuf_puts(&t, good);
    check_guard(&t, 0, start);
    /* the first copy stays, wherever in a copy the text ends; it begins with the space behind the colon */
    for (int tail = 0; tail < 9; tail++) {
        strbuf_puts(&t, good);
        repeat(&t, "abcdefgh ", 40);
        strbuf_add(&t, "abcdefgh ", (size_t)tail);
        if (tail % 2)
            strbuf_puts(&t, "\xEF\xBF\xBD\xF0\x9F");
        check_guard(&t, 50, start + 8);
    }
    strbuf_puts(&t, good);
    repeat(&t, "abcdefgh ", 10); /* 90 characters: too short a line */
    check_guard(&t, 50, start + 90);
    repeat(&t, "abcdefgh ", 400);
    check_guard(&t, 5000, 3600);
    /* leaders of dots are no loop until they are very long */
    strbuf_puts(&t, "Introduction ");
    repeat(&t, ".", 150);
    check_guard(&t, 50, 163);
    strbuf_puts(&t, "Introduction ");
    repeat(&t, ".", 300);
    check_guard(&t, 50, 14);
    strbuf_puts(&t, "1\n");
    repeat(&t, "the same line\n", 12);
    check_guard(&t, 50, 15);
    for (int i = 0; i < 60; i++)
        strbuf_printf(&t, "row %d of a long and honest table\n", i);
    check_guard(&t, 50, t.length);
}

/* The guard stops growing text soon and cheaply. */
static void test_guard_while_growing(void **state)
{
    (void)state;
    rng r = fresh_rng();
    strbuf t = {0};
    size_t keep = 0;
    for (int i = 0; i < 3000; i++)
        strbuf_printf(&t, "%llx ", (unsigned long long)rng_u64(&r));
    for (size_t n = 0; n <= t.length; n += 997) {
        assert_ok(repetition_guard(t.text, n, 50, &keep));
        assert_int_equal(keep, n);
    }
    size_t honest = t.length;
    strbuf_putc(&t, '\n');
    for (int i = 0; i < 40 && (i == 0 || keep == t.length); i++) {
        repeat(&t, "Total: 0.00 EUR ", 4);
        assert_ok(repetition_guard(t.text, t.length, 50, &keep));
    }
    assert_int_equal(keep, honest + 1 + 16);
    assert_true(t.length < honest + 300);
    /* Much text, all of one period or none: linear work, or this would take minutes. */
    strbuf_truncate(&t, 0);
    repeat(&t, "a", 1 << 20);
    assert_ok(repetition_guard(t.text, t.length, 50, &keep));
    assert_int_equal(keep, (1 << 20) - 65535); /* of the part it looks at, one copy stays */
    repeat(&t, "\n\n b", 1 << 18);
    assert_ok(repetition_guard(t.text, t.length, 50, &keep));
    assert_int_equal(keep, t.length - 4 * ((1 << 18) - 1));
    strbuf_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_vectors),
        cmocka_unit_test(test_tables_by_hand),
        cmocka_unit_test(test_random_tables),
        cmocka_unit_test(test_table_too_large),
        cmocka_unit_test(test_tables_in_markdown),
        cmocka_unit_test(test_charts),
        cmocka_unit_test(test_markdown_escape),
        cmocka_unit_test(test_truncate_by_hand),
        cmocka_unit_test(test_guard),
        cmocka_unit_test(test_guard_while_growing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
