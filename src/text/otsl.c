#include "text/otsl.h"

#include "core/memory.h"
#include "text/markdown.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

typedef enum otsl_tag { OTSL_FCEL, OTSL_ECEL, OTSL_LCEL, OTSL_UCEL, OTSL_XCEL, OTSL_NL, OTSL_NONE } otsl_tag;

/* One cell tag and the text up to the next tag, trimmed. Points into the input. */
typedef struct otsl_item {
    otsl_tag tag;
    const char *text;
    size_t length;
} otsl_item;

/* A cell of the result: its corner, its size in slots, its text. */
typedef struct table_cell {
    size_t row, column, rows, columns;
    const char *text;
    size_t length;
} table_cell;

typedef struct otsl_table {
    otsl_item *items; /* all rows one after the other */
    size_t item_count, item_capacity;
    size_t *row_start; /* row r is items[row_start[r] .. row_start[r + 1]) */
    size_t row_count, row_capacity;
    size_t columns;
    table_cell *cells;
    size_t cell_count, cell_capacity;
    int32_t *owner; /* by slot: index of the cell that covers it, -1 for none */
} otsl_table;

static void table_free(otsl_table *t)
{
    free(t->items);
    free(t->row_start);
    free(t->cells);
    free(t->owner);
}

/* ---- reading ---- */

/* The tag at s, and its length. */
static otsl_tag tag_at(const char *s, size_t n, size_t *length)
{
    static const char *const names[] = {"<fcel>", "<ecel>", "<lcel>", "<ucel>", "<xcel>", "<nl>"};
    for (int i = 0; n && s[0] == '<' && i < OTSL_NONE; i++) {
        *length = i == OTSL_NL ? 4 : 6;
        if (n >= *length && !memcmp(s, names[i], *length))
            return (otsl_tag)i;
    }
    return OTSL_NONE;
}

/* Length of the text before the next tag or the end. */
static size_t text_before_tag(const char *s, size_t n)
{
    size_t length;
    for (size_t i = 0; i < n; i++) {
        const char *next = memchr(s + i, '<', n - i);
        if (!next)
            break;
        i = (size_t)(next - s);
        if (tag_at(next, n - i, &length) != OTSL_NONE)
            return i;
    }
    return n;
}

/* Ends the row at hand; one without cells vanishes. */
static ink_status end_row(otsl_table *t)
{
    if (t->item_count == t->row_start[t->row_count])
        return INK_OK;
    TRY(grow_array(&t->row_start, &t->row_capacity, t->row_count + 2, sizeof *t->row_start));
    t->row_start[++t->row_count] = t->item_count;
    return INK_OK;
}

static ink_status read_items(otsl_table *t, const char *s, size_t n)
{
    TRY(grow_array(&t->row_start, &t->row_capacity, 1, sizeof *t->row_start));
    t->row_start[0] = 0;
    for (size_t i = text_before_tag(s, n), length = 0; i < n;) {
        otsl_item item = {.tag = tag_at(s + i, n - i, &length)};
        i += length;
        item.text = s + i;
        item.length = text_before_tag(s + i, n - i);
        i += item.length;
        utf8_trim(&item.text, &item.length);
        if (item.tag == OTSL_NL) { /* text between <nl> and the next tag belongs to no cell */
            TRY(end_row(t));
            continue;
        }
        TRY(grow_array(&t->items, &t->item_capacity, t->item_count + 1, sizeof *t->items));
        t->items[t->item_count++] = item;
    }
    return end_row(t);
}

static size_t row_length(const otsl_table *t, size_t row) { return t->row_start[row + 1] - t->row_start[row]; }

/* The common width: between the last filled cell of any row and the longest row, the one with the least cells to add and
 * cut, the smallest of equals. The sum of |length - width| falls while more rows are longer than the width than not. */
static ink_status choose_width(otsl_table *t)
{
    size_t need = 0, longest = 0;
    for (size_t r = 0; r < t->row_count; r++) {
        size_t length = row_length(t, r);
        longest = length > longest ? length : longest;
        for (size_t c = length; c > need; c--)
            if (t->items[t->row_start[r] + c - 1].tag == OTSL_FCEL)
                need = c;
    }
    size_t *rows_of_length = alloc_array(longest + 1, sizeof *rows_of_length), longer = 0;
    if (!rows_of_length)
        return INK_RESOURCE_EXHAUSTED;
    for (size_t r = 0; r < t->row_count; r++) {
        rows_of_length[row_length(t, r)]++;
        longer += row_length(t, r) > need;
    }
    for (t->columns = need; t->columns < longest && longer > t->row_count - longer; t->columns++)
        longer -= rows_of_length[t->columns + 1];
    free(rows_of_length);
    return INK_OK;
}

/* The item of a slot; padding is <ecel>. */
static const otsl_item *item_at(const otsl_table *t, size_t row, size_t column)
{
    static const otsl_item padding = {OTSL_ECEL, "", 0};
    return column < row_length(t, row) ? &t->items[t->row_start[row] + column] : &padding;
}

/* ---- cells and spans ---- */

static size_t span_right(const otsl_table *t, size_t row, size_t column)
{
    size_t c = column + 1;
    while (c < t->columns && (item_at(t, row, c)->tag == OTSL_LCEL || item_at(t, row, c)->tag == OTSL_XCEL))
        c++;
    return c - column;
}

static size_t span_down(const otsl_table *t, size_t row, size_t column)
{
    size_t r = row + 1;
    while (r < t->row_count && (item_at(t, r, column)->tag == OTSL_UCEL || item_at(t, r, column)->tag == OTSL_XCEL))
        r++;
    return r - row;
}

static void cover(otsl_table *t, size_t index)
{
    const table_cell *c = &t->cells[index];
    for (size_t r = c->row; r < c->row + c->rows; r++)
        for (size_t k = c->column; k < c->column + c->columns; k++)
            t->owner[r * t->columns + k] = (int32_t)index;
}

static ink_status find_cells(otsl_table *t)
{
    for (size_t r = 0; r < t->row_count; r++)
        for (size_t c = 0; c < t->columns; c++) {
            const otsl_item *item = item_at(t, r, c);
            if (item->tag != OTSL_FCEL && item->tag != OTSL_ECEL)
                continue;
            table_cell cell = {.row = r, .column = c, .rows = span_down(t, r, c), .columns = 1, .text = ""};
            if (item->tag == OTSL_FCEL) {
                cell.text = item->text;
                cell.length = item->length;
            }
            if (item->tag == OTSL_FCEL || !item->length) /* stray text behind <ecel> hides what is to its right */
                cell.columns = span_right(t, r, c);
            TRY(grow_array(&t->cells, &t->cell_capacity, t->cell_count + 1, sizeof *t->cells));
            t->cells[t->cell_count++] = cell;
            cover(t, t->cell_count - 1);
        }
    return INK_OK;
}

/* Makes each cell the largest rectangle, first wide then high, that it still owns; its other slots become free. */
static void clip_overlaps(otsl_table *t)
{
    for (size_t i = 0; i < t->cell_count; i++) {
        table_cell *c = &t->cells[i];
        const int32_t *corner = &t->owner[c->row * t->columns + c->column];
        size_t columns = 1, rows = 1;
        while (columns < c->columns && corner[columns] == (int32_t)i)
            columns++;
        for (; rows < c->rows; rows++) {
            size_t k = 0;
            while (k < columns && corner[rows * t->columns + k] == (int32_t)i)
                k++;
            if (k < columns)
                break;
        }
        c->rows = rows;
        c->columns = columns;
    }
    memset(t->owner, -1, t->row_count * t->columns * sizeof *t->owner);
    for (size_t i = 0; i < t->cell_count; i++)
        cover(t, i);
}

static ink_status parse_table(otsl_table *t, const char *otsl, size_t n)
{
    size_t slots;
    TRY(read_items(t, otsl, n));
    TRY(choose_width(t));
    if (!mul_size(t->row_count, t->columns, &slots) || slots > OTSL_MAX_SLOTS)
        return failure(INK_OUT_OF_RANGE, "table of %zu rows and %zu columns is too large, the limit is %d cells",
                       t->row_count, t->columns, OTSL_MAX_SLOTS);
    t->owner = alloc_array(slots, sizeof *t->owner);
    if (!t->owner)
        return INK_RESOURCE_EXHAUSTED;
    memset(t->owner, -1, slots * sizeof *t->owner);
    TRY(find_cells(t));
    clip_overlaps(t);
    return INK_OK;
}

/* ---- writing ---- */

void html_escape(strbuf *out, const char *s, size_t n)
{
    size_t done = 0;
    for (size_t i = 0; i < n; i++) {
        const char *entity = s[i] == '&'    ? "&amp;"
                             : s[i] == '<'  ? "&lt;"
                             : s[i] == '>'  ? "&gt;"
                             : s[i] == '"'  ? "&quot;"
                             : s[i] == '\'' ? "&#x27;"
                                            : NULL;
        if (!entity)
            continue;
        strbuf_add(out, s + done, i - done);
        strbuf_puts(out, entity);
        done = i + 1;
    }
    if (n > done)
        strbuf_add(out, s + done, n - done);
}

/* html_escape with line breaks as <br>: a blank line would end an HTML block of Markdown. */
static void html_escape_lines(strbuf *out, const char *s, size_t n)
{
    for (const char *end = s + n, *line = s; line <= end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        html_escape(out, line, (size_t)((next ? next : end) - line));
        if (!next)
            break;
        strbuf_puts(out, "<br>");
        line = next + 1;
    }
}

static void write_html(const otsl_table *t, bool break_lines, strbuf *out)
{
    strbuf_puts(out, "<table>");
    for (size_t r = 0; r < t->row_count; r++) {
        strbuf_puts(out, "<tr>");
        for (size_t c = 0; c < t->columns; c++) {
            int32_t index = t->owner[r * t->columns + c];
            const table_cell *cell = index < 0 ? NULL : &t->cells[index];
            if (cell && (cell->row != r || cell->column != c))
                continue;
            strbuf_puts(out, "<td");
            if (cell && cell->rows > 1)
                strbuf_printf(out, " rowspan=\"%zu\"", cell->rows);
            if (cell && cell->columns > 1)
                strbuf_printf(out, " colspan=\"%zu\"", cell->columns);
            strbuf_putc(out, '>');
            if (cell)
                (break_lines ? html_escape_lines : html_escape)(out, cell->text, cell->length);
            strbuf_puts(out, "</td>");
        }
        strbuf_puts(out, "</tr>");
    }
    strbuf_puts(out, "</table>");
}

static void write_pipe_table(const otsl_table *t, unsigned flags, strbuf *out)
{
    for (size_t r = 0; r < t->row_count; r++) {
        strbuf_putc(out, '|');
        for (size_t c = 0; c < t->columns; c++) {
            int32_t index = t->owner[r * t->columns + c];
            strbuf_putc(out, ' ');
            if (index >= 0)
                markdown_escape(out, t->cells[index].text, t->cells[index].length, flags | MARKDOWN_CELL);
            strbuf_puts(out, " |");
        }
        strbuf_putc(out, '\n');
        if (r == 0)
            markdown_delimiter_row(out, t->columns);
    }
}

static bool has_spans(const otsl_table *t)
{
    for (size_t i = 0; i < t->cell_count; i++)
        if (t->cells[i].rows > 1 || t->cells[i].columns > 1)
            return true;
    return false;
}

ink_status otsl_to_html(const char *otsl, size_t n, strbuf *out, bool *is_table)
{
    otsl_table t = {0};
    ink_status status = parse_table(&t, otsl, n);
    *is_table = status == INK_OK && t.cell_count > 0;
    if (*is_table) {
        write_html(&t, false, out);
        status = strbuf_status(out);
    }
    table_free(&t);
    return status;
}

ink_status otsl_to_markdown(const char *otsl, size_t n, unsigned flags, strbuf *out, bool *is_table)
{
    otsl_table t = {0};
    ink_status status = parse_table(&t, otsl, n);
    *is_table = status == INK_OK && t.cell_count > 0;
    if (*is_table) {
        if (has_spans(&t))
            write_html(&t, true, out);
        else
            write_pipe_table(&t, flags, out);
        status = strbuf_status(out);
    }
    table_free(&t);
    return status;
}
