/* markdown.h - recognised text inside Markdown: nothing in it may act as markup, unless it is meant to be mathematics. */
#ifndef TEXT_MARKDOWN_H
#define TEXT_MARKDOWN_H
#include "core/strbuf.h"

enum {
    MARKDOWN_CELL = 1,      /* inside a pipe table: line breaks become <br> */
    MARKDOWN_KEEP_MATH = 2, /* $…$ and $$…$$ are copied as they are: for text that math_delimiters has changed, in which
                             * every other '$' is gone */
};

/* Appends s so that a CommonMark or GFM renderer shows exactly its characters (white space at the ends of lines aside):
 * "10*20" -> "10\*20", "# 5" -> "\# 5", "1. x" -> "1\. x", "<b>" -> "\<b>". */
void markdown_escape(strbuf *out, const char *s, size_t n, unsigned flags);

/* Appends "| --- | --- |\n", the row under a table's header. */
void markdown_delimiter_row(strbuf *out, size_t columns);

/* Appends s with LaTeX delimiters made Markdown ones, as PaddleX does: if s has both \( and \), or both \[ and \], every
 * '$' is dropped and then \( -> " $ ", \) -> " $", \[\[ -> \[, \]\] -> \], \[ -> " $$ ", \] -> " $$ " (formula numbers
 * lose these '$', too). Otherwise s is copied. Returns whether the rule applied. */
bool math_delimiters(strbuf *out, const char *s, size_t n, bool is_formula_number);
#endif
