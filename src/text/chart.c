/* chart.c - chart answers (lines of cells separated by '|') -> tables; declared in otsl.h. */
#include "core/memory.h"
#include "text/markdown.h"
#include "text/otsl.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

typedef struct chart_line {
    const char *text;
    size_t length;
} chart_line;

typedef struct chart {
    chart_line *lines;
    size_t count, capacity, columns;
} chart;

static size_t count_bars(const chart_line *l)
{
    size_t bars = 0;
    for (size_t i = 0; i < l->length; i++)
        bars += l->text[i] == '|';
    return bars;
}

/* |---|:--:| : the row under the header of a Markdown table. */
static bool is_delimiter_row(const chart_line *l)
{
    size_t dashes = 0;
    for (size_t i = 0; i < l->length; i++) {
        dashes += l->text[i] == '-';
        if (!l->text[i] || !strchr("-:| \t", l->text[i]))
            return false;
    }
    return dashes > 0;
}

/* Removes the outer bars and the delimiter row if the text is a Markdown table. */
static void unwrap(chart *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const chart_line *l = &c->lines[i];
        if (l->length < 2 || l->text[0] != '|' || l->text[l->length - 1] != '|')
            return;
    }
    for (size_t i = 0; i < c->count; i++) {
        c->lines[i].text++;
        c->lines[i].length -= 2;
    }
    if (c->count > 1 && is_delimiter_row(&c->lines[1])) {
        memmove(&c->lines[1], &c->lines[2], (c->count - 2) * sizeof *c->lines);
        c->count--;
    }
}

static ink_status read_chart(chart *c, const char *s, size_t n)
{
    const char *end = s + n;
    if (!n || !memchr(s, '|', n))
        return INK_OK;
    for (const char *next; s < end; s = next + 1) {
        next = memchr(s, '\n', (size_t)(end - s));
        next = next ? next : end;
        chart_line l = {s, (size_t)(next - s)};
        utf8_trim(&l.text, &l.length);
        if (!l.length)
            continue;
        TRY(grow_array(&c->lines, &c->capacity, c->count + 1, sizeof *c->lines));
        c->lines[c->count++] = l;
    }
    unwrap(c);
    for (size_t i = 0; i < c->count; i++) {
        size_t columns = count_bars(&c->lines[i]) + 1;
        c->columns = columns > c->columns ? columns : c->columns;
    }
    if (c->count && c->columns > OTSL_MAX_SLOTS / c->count)
        return failure(INK_OUT_OF_RANGE, "chart of %zu rows and %zu columns is too large, the limit is %d cells", c->count,
                       c->columns, OTSL_MAX_SLOTS);
    return INK_OK;
}

/* Takes the next cell, trimmed, off the line; an empty one when none is left. */
static chart_line next_cell(chart_line *rest)
{
    const char *bar = rest->length ? memchr(rest->text, '|', rest->length) : NULL;
    chart_line cell = {rest->text, bar ? (size_t)(bar - rest->text) : rest->length};
    size_t used = cell.length + (bar != NULL);
    rest->text += used;
    rest->length -= used;
    utf8_trim(&cell.text, &cell.length);
    return cell;
}

static void write_html(const chart *c, strbuf *out)
{
    strbuf_puts(out, "<table><thead>");
    for (size_t r = 0; r < c->count; r++) {
        chart_line rest = c->lines[r];
        const char *tag = r ? "td" : "th";
        strbuf_puts(out, "<tr>");
        for (size_t k = 0; k < c->columns; k++) {
            chart_line cell = next_cell(&rest);
            strbuf_printf(out, "<%s>", tag);
            html_escape(out, cell.text, cell.length);
            strbuf_printf(out, "</%s>", tag);
        }
        strbuf_puts(out, r ? "</tr>" : "</tr></thead><tbody>");
    }
    strbuf_puts(out, "</tbody></table>");
}

static void write_markdown(const chart *c, unsigned flags, strbuf *out)
{
    for (size_t r = 0; r < c->count; r++) {
        chart_line rest = c->lines[r];
        strbuf_putc(out, '|');
        for (size_t k = 0; k < c->columns; k++) {
            chart_line cell = next_cell(&rest);
            strbuf_putc(out, ' ');
            markdown_escape(out, cell.text, cell.length, flags | MARKDOWN_CELL);
            strbuf_puts(out, " |");
        }
        strbuf_putc(out, '\n');
        if (r == 0)
            markdown_delimiter_row(out, c->columns);
    }
}

ink_status chart_to_html(const char *text, size_t n, strbuf *out, bool *is_table)
{
    chart c = {0};
    ink_status status = read_chart(&c, text, n);
    *is_table = status == INK_OK && c.count > 0;
    if (*is_table) {
        write_html(&c, out);
        status = strbuf_status(out);
    }
    free(c.lines);
    return status;
}

ink_status chart_to_markdown(const char *text, size_t n, unsigned flags, strbuf *out, bool *is_table)
{
    chart c = {0};
    ink_status status = read_chart(&c, text, n);
    *is_table = status == INK_OK && c.count > 0;
    if (*is_table) {
        write_markdown(&c, flags, out);
        status = strbuf_status(out);
    }
    free(c.lines);
    return status;
}
