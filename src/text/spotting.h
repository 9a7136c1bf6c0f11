/* spotting.h - answers to "Spotting:" -> texts with their quadrilaterals. */
#ifndef TEXT_SPOTTING_H
#define TEXT_SPOTTING_H
#include "core/strbuf.h"

/* One text; its corners in pixels of the image before it was enlarged for the model. */
typedef struct spotting_item {
    const char *text; /* into the parsed answer, trimmed; not 0-terminated */
    size_t length;
    double points[4][2]; /* x, y */
} spotting_item;

typedef struct spotting {
    spotting_item *items;
    size_t count, capacity;
} spotting;

/* Reads an answer that was decoded with its special tokens. The k-th <|TEXT_START|>…<|TEXT_END|> belongs to the k-th
 * <|LOC_BEGIN|>…<|LOC_END|>, which holds x and y of four corners as <|LOC_0|>…<|LOC_1000|>, thousandths of width and
 * height; a group of fewer than eight is skipped with its text. If that finds nothing, every eight <|LOC_n|> of the whole
 * answer make a quadrilateral, whose text stands before them. An answer with neither gives no items. The items point into
 * `answer`; free with spotting_free. */
ink_status spotting_parse(const char *answer, size_t n, double width, double height, spotting *out);
void spotting_free(spotting *s);

/* Appends the texts with a blank line between them. */
void spotting_add_text(const spotting *s, strbuf *out);
#endif
