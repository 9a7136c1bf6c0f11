/* otsl.h - tables and charts as the model writes them -> HTML and Markdown.
 *
 * OTSL marks cells by tags: <fcel> cell with content, <ecel> empty cell, <lcel> merged with the cell to the left, <ucel>
 * merged with the cell above, <xcel> merged with both, <nl> end of a row. The conversion follows PaddleX (squaring of
 * ragged rows by least padding and cutting, spans from runs of tags), with two differences on ill-formed input:
 *   - an <fcel> without content is an empty cell (there, it takes the next tag's name as its text);
 *   - where the spans of two cells overlap, the later cell wins and the earlier one keeps the largest rectangle of its own
 *     that begins at its corner; the rest becomes empty cells (there, both spans are written, which pushes cells out of
 *     the table). Whatever the input, no cell leaves the grid and no two cells overlap. */
#ifndef TEXT_OTSL_H
#define TEXT_OTSL_H
#include "core/strbuf.h"

/* Most slots (rows times columns) of a table; more is refused with INK_OUT_OF_RANGE. */
#define OTSL_MAX_SLOTS (1 << 20)

/* Appends `<table><tr><td rowspan="2" colspan="3">…</td>…</tr></table>`. Contents are escaped (& < > " '), so nothing in
 * them can open or close a tag. *is_table is false, and nothing is appended, if the text holds no cell: keep the text. */
ink_status otsl_to_html(const char *otsl, size_t n, strbuf *out, bool *is_table);

/* A pipe table, whose first row is the header; contents escaped by markdown_escape with `flags` and MARKDOWN_CELL. Tables
 * with spans come out as HTML (line breaks in cells as <br>), which Markdown admits. */
ink_status otsl_to_markdown(const char *otsl, size_t n, unsigned flags, strbuf *out, bool *is_table);

/* Chart answers: lines of cells separated by '|', of which the first is the header. Blank lines are skipped, short rows
 * filled. If every line begins and ends with '|', those two do not count, nor does a second line |---|---|. *is_table is
 * false, and nothing is appended, if there is no '|' at all. HTML has <thead> and <tbody>. */
ink_status chart_to_html(const char *text, size_t n, strbuf *out, bool *is_table);
ink_status chart_to_markdown(const char *text, size_t n, unsigned flags, strbuf *out, bool *is_table);

/* Appends s with & < > " ' as entities. */
void html_escape(strbuf *out, const char *s, size_t n);
#endif
