#define _GNU_SOURCE /* memmem */
#include "text/markdown.h"

#include "text/utf8.h"

#include <string.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* Would s (which begins with '&') be read as a character reference: &name; or &#1; or &#x1; ? */
static bool is_entity(const char *s, size_t n)
{
    size_t i = 1;
    while (i < n && i < 34 && (is_letter(s[i]) || is_digit(s[i]) || (s[i] == '#' && i == 1)))
        i++;
    return i > 1 && i < n && s[i] == ';';
}

/* Would '<' followed by c open a tag, a comment or an autolink? */
static bool opens_tag(char c) { return is_letter(c) || c == '/' || c == '!' || c == '?'; }

/* Does the character at i need a backslash wherever it stands? */
static bool is_active(const char *s, size_t n, size_t i)
{
    switch (s[i]) {
    case '\\':
    case '`':
    case '*':
    case '_':
    case '[':
    case ']':
    case '~':
    case '|':
    case '$': return true;
    case '<': return i + 1 < n && opens_tag(s[i + 1]);
    case '&': return is_entity(s + i, n - i);
    default: return false;
    }
}

/* At the start of a line: position of the character that would make it a heading, a list item, a quotation, a rule or an
 * underline; n if there is none. */
static size_t line_marker(const char *s, size_t n)
{
    size_t digits = 0;
    if (!n)
        return n;
    if (s[0] == '#' || s[0] == '>' || s[0] == '=')
        return 0;
    if ((s[0] == '-' || s[0] == '+') &&
        (n == 1 || is_blank(s[1]) || s[1] == '\n' || s[1] == '\r' || s[1] == ':' || s[1] == s[0]))
        return 0;
    if (s[0] == ':' && n > 1 && s[1] == '-') /* the delimiter row of a table */
        return 0;
    while (digits < n && digits < 10 && is_digit(s[digits]))
        digits++;
    if (digits && digits < 10 && digits < n && (s[digits] == '.' || s[digits] == ')') &&
        (digits + 1 == n || is_blank(s[digits + 1]) || s[digits + 1] == '\n' || s[digits + 1] == '\r'))
        return digits;
    return n;
}

/* Length of the $…$ or $$…$$ that begins s; 0 if it is not closed. */
static size_t math_length(const char *s, size_t n)
{
    size_t mark = n > 1 && s[1] == '$' ? 2 : 1;
    const char *close = n > mark ? memmem(s + mark, n - mark, s, mark) : NULL;
    return close && close > s + mark ? (size_t)(close - s) + mark : 0;
}

/* Position behind the white space at s[i..], which ends a line if a line feed or the end of the text follows. */
static size_t skip_blanks(const char *s, size_t n, size_t i)
{
    while (i < n && (is_blank(s[i]) || s[i] == '\r'))
        i++;
    return i;
}

void markdown_escape(strbuf *out, const char *s, size_t n, unsigned flags)
{
    size_t marker = n; /* of the line at hand */
    bool line_start = true;
    for (size_t i = 0; i < n;) {
        if (line_start) {
            i = skip_blanks(s, n, i);
            marker = flags & MARKDOWN_CELL ? n : i + line_marker(s + i, n - i);
            line_start = false;
            continue;
        }
        if (is_blank(s[i]) || s[i] == '\r') { /* blanks before a line end would make a hard break */
            size_t behind = skip_blanks(s, n, i);
            if (behind < n && s[behind] != '\n')
                strbuf_add(out, s + i, behind - i);
            i = behind;
            continue;
        }
        if (s[i] == '\n') {
            strbuf_puts(out, flags & MARKDOWN_CELL ? "<br>" : "\n");
            line_start = true;
            i++;
            continue;
        }
        size_t math = (flags & MARKDOWN_KEEP_MATH) && s[i] == '$' ? math_length(s + i, n - i) : 0;
        if (math && !((flags & MARKDOWN_CELL) && (memchr(s + i, '|', math) || memchr(s + i, '\n', math)))) {
            strbuf_add(out, s + i, math);
            i += math;
            continue;
        }
        if (i == marker || is_active(s, n, i))
            strbuf_putc(out, '\\');
        strbuf_putc(out, s[i++]);
    }
}

void markdown_delimiter_row(strbuf *out, size_t columns)
{
    for (size_t c = 0; c < columns; c++)
        strbuf_puts(out, c ? " --- |" : "| --- |");
    strbuf_putc(out, '\n');
}

bool math_delimiters(strbuf *out, const char *s, size_t n, bool is_formula_number)
{
    static const char *const rules[][2] = {{"$", ""},         {"\\(", " $ "},  {"\\)", " $"},   {"\\[\\[", "\\["},
                                           {"\\]\\]", "\\]"}, {"\\[", " $$ "}, {"\\]", " $$ "}, {"$", ""}};
    size_t count = sizeof rules / sizeof *rules - !is_formula_number;
    strbuf text[2] = {{0}, {0}};
    if (!(memmem(s, n, "\\(", 2) && memmem(s, n, "\\)", 2)) && !(memmem(s, n, "\\[", 2) && memmem(s, n, "\\]", 2))) {
        strbuf_add(out, s, n);
        return false;
    }
    strbuf_add(&text[0], s, n);
    for (size_t i = 0; i < count; i++) {
        strbuf *from = &text[i % 2], *to = &text[(i + 1) % 2];
        strbuf_truncate(to, 0);
        add_replaced(to, strbuf_text(from), from->length, rules[i][0], strlen(rules[i][0]), rules[i][1],
                     strlen(rules[i][1]));
    }
    strbuf_add(out, strbuf_text(&text[count % 2]), text[count % 2].length);
    out->failed |= text[0].failed || text[1].failed;
    strbuf_free(&text[0]);
    strbuf_free(&text[1]);
    return true;
}
