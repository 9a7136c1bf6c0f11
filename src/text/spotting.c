#define _GNU_SOURCE /* memmem */
#include "text/spotting.h"

#include "core/memory.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Part of the answer. */
typedef struct slice {
    const char *text;
    size_t length;
} slice;

static const char *find(const char *s, const char *end, const char *what)
{
    return s < end ? memmem(s, (size_t)(end - s), what, strlen(what)) : NULL;
}

/* The next OPEN…CLOSE at or behind *s; *s moves behind it. */
static bool next_group(const char **s, const char *end, const char *open, const char *close, slice *inside)
{
    const char *start = find(*s, end, open);
    if (!start)
        return false;
    start += strlen(open);
    const char *stop = find(start, end, close);
    if (!stop)
        return false;
    *inside = (slice){start, (size_t)(stop - start)};
    *s = stop + strlen(close);
    return true;
}

/* The next <|LOC_n|> at or behind *s: its place and its number; *s moves behind it. */
static bool next_location(const char **s, const char *end, const char **at, double *value)
{
    static const char open[] = "<|LOC_";
    for (const char *start = *s; (start = find(start, end, open)) != NULL; start += 6) {
        const char *digit = start + 6;
        double v = 0;
        while (digit < end && *digit >= '0' && *digit <= '9')
            v = v < 1e9 ? v * 10 + (*digit++ - '0') : (digit++, v);
        if (digit == start + 6 || end - digit < 2 || digit[0] != '|' || digit[1] != '>')
            continue;
        *at = start;
        *value = v;
        *s = digit + 2;
        return true;
    }
    return false;
}

/* Reads eight locations from *s on; *first: where they begin. False when there are fewer. */
static bool next_corners(const char **s, const char *end, const char **first, double width, double height,
                         spotting_item *item)
{
    for (int i = 0; i < 8; i++) {
        const char *at;
        double value;
        if (!next_location(s, end, &at, &value))
            return false;
        if (i == 0)
            *first = at;
        item->points[i / 2][i % 2] = value / 1000.0 * (i % 2 ? height : width);
    }
    return true;
}

static ink_status add_item(spotting *out, spotting_item *item, slice text)
{
    utf8_trim(&text.text, &text.length);
    item->text = text.text;
    item->length = text.length;
    TRY(grow_array(&out->items, &out->capacity, out->count + 1, sizeof *out->items));
    out->items[out->count++] = *item;
    return INK_OK;
}

static ink_status parse(const char *answer, size_t n, double width, double height, spotting *out)
{
    const char *end = answer + n, *texts = answer, *groups = answer, *first;
    slice text, group;
    spotting_item item;
    while (next_group(&texts, end, "<|TEXT_START|>", "<|TEXT_END|>", &text) &&
           next_group(&groups, end, "<|LOC_BEGIN|>", "<|LOC_END|>", &group))
        if (next_corners(&group.text, group.text + group.length, &first, width, height, &item))
            TRY(add_item(out, &item, text));
    if (out->count)
        return INK_OK;
    for (const char *s = answer, *done = answer; next_corners(&s, end, &first, width, height, &item); done = s)
        TRY(add_item(out, &item, (slice){done, (size_t)(first - done)}));
    return INK_OK;
}

ink_status spotting_parse(const char *answer, size_t n, double width, double height, spotting *out)
{
    *out = (spotting){0};
    ink_status status = parse(answer, n, width, height, out);
    if (status != INK_OK)
        spotting_free(out);
    return status;
}

void spotting_free(spotting *s)
{
    free(s->items);
    *s = (spotting){0};
}

void spotting_add_text(const spotting *s, strbuf *out)
{
    for (size_t i = 0; i < s->count; i++) {
        if (i)
            strbuf_puts(out, "\n\n");
        strbuf_add(out, s->items[i].text, s->items[i].length);
    }
}
