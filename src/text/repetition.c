#define _GNU_SOURCE /* memrchr */
#include "text/repetition.h"

#include "core/memory.h"
#include "core/rng.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

#define GUARD_WINDOW 65536
#define GUARD_SHORT_UNIT 8
#define GUARD_SHORT_UNIT_FILLS 256

/* ---- periods of the end of a text ---- */

/* A text as code points from its end to its start. match[u]: how many characters, counted from the end, equal the
 * character u before them (the Z-function of the reversed text), so that the end of the text has period u over
 * match[u] + u characters. */
typedef struct reversed {
    size_t length;
    uint32_t *character, *match;
} reversed;

static void reversed_free(reversed *r)
{
    free(r->character);
    free(r->match);
}

static void find_matches(reversed *r)
{
    size_t left = 0, right = 0; /* the match that reaches furthest: [left, right) equals the start */
    for (size_t u = 1; u < r->length; u++) {
        size_t k = 0;
        if (u < right)
            k = r->match[u - left] < right - u ? r->match[u - left] : right - u;
        while (u + k < r->length && r->character[k] == r->character[u + k])
            k++;
        r->match[u] = (uint32_t)k;
        if (u + k > right) {
            left = u;
            right = u + k;
        }
    }
}

static ink_status reverse(const char *s, size_t n, reversed *r)
{
    size_t at = r->length = utf8_count(s, n);
    if (n > UINT32_MAX)
        return failure(INK_INVALID_ARGUMENT, "text of %zu bytes is too long", n);
    r->character = alloc_array(r->length, sizeof *r->character);
    r->match = alloc_array(r->length, sizeof *r->match);
    if (!r->character || !r->match)
        return INK_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < n;)
        i += utf8_decode(s + i, n - i, &r->character[--at]);
    find_matches(r);
    return INK_OK;
}

/* Bytes of the last `characters` characters of s. */
static size_t bytes_at_end(const char *s, size_t n, const reversed *r, size_t characters)
{
    size_t i = 0;
    uint32_t cp;
    for (size_t skip = r->length - characters; skip > 0; skip--)
        i += utf8_decode(s + i, n - i, &cp);
    return n - i;
}

/* Rule 1: the longest unit, and how many characters its trailing copies fill; 0 if there is none. */
static size_t repeated_suffix(const reversed *r, size_t *unit)
{
    if (r->length <= 100)
        return 0;
    for (size_t u = r->length / 5; u >= 8; u--) {
        if (r->match[u] < 4 * u)
            continue;
        size_t fills = u * (1 + r->match[u] / u);
        *unit = u;
        return 2 * fills > r->length ? fills : 0;
    }
    return 0;
}

/* Rule 2: the shortest unit that the text is made of, if there are ten or more copies; 0 otherwise. */
static size_t whole_unit(const reversed *r)
{
    if (r->length <= 10)
        return 0;
    for (size_t u = 1; u <= r->length / 2; u++)
        if (r->length % u == 0 && r->match[u] == r->length - u)
            return r->length / u >= 10 ? u : 0;
    return 0;
}

/* ---- lines ---- */

typedef struct line {
    const char *text; /* trimmed; NULL: empty slot */
    size_t length, count, order;
} line;

static uint64_t line_hash(const char *s, size_t n)
{
    uint64_t h = n;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
    return rng_mix(h);
}

static line *find_line(line *table, size_t mask, const char *s, size_t n)
{
    size_t i = line_hash(s, n) & mask;
    while (table[i].text && (table[i].length != n || memcmp(table[i].text, s, n) != 0))
        i = (i + 1) & mask;
    return &table[i];
}

/* Rule 3: the line that the text consists of, as it first occurs; text NULL if the rule does not apply. */
static ink_status repeated_line(const char *s, size_t n, line *found)
{
    size_t breaks = 1, slots = 32, total = 0;
    *found = (line){0};
    for (size_t i = 0; i < n; i++)
        breaks += s[i] == '\n';
    if (breaks < 10)
        return INK_OK;
    while (slots < 2 * breaks)
        slots *= 2;
    line *table = alloc_array(slots, sizeof *table);
    if (!table)
        return INK_RESOURCE_EXHAUSTED;
    for (const char *end = s + n, *next; s < end; s = next + 1) {
        next = memchr(s, '\n', (size_t)(end - s));
        next = next ? next : end;
        const char *text = s;
        size_t length = (size_t)(next - s);
        utf8_trim(&text, &length);
        if (!length)
            continue;
        line *l = find_line(table, slots - 1, text, length);
        if (!l->text)
            *l = (line){text, length, 0, total};
        l->count++;
        total++;
    }
    for (size_t i = 0; i < slots; i++)
        if (table[i].text &&
            (table[i].count > found->count || (table[i].count == found->count && table[i].order < found->order)))
            *found = table[i];
    free(table);
    if (total < 10 || found->count < 10 || 5 * found->count < 4 * total)
        found->text = NULL;
    return INK_OK;
}

/* ---- both uses ---- */

/* Length of s without U+FFFD, ill-formed bytes and the white space between them at its end. */
static size_t without_broken_end(const char *s, size_t n)
{
    size_t good = 0;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        i += utf8_decode(s + i, n - i, &cp);
        if (cp < UTF8_TRUNCATED && cp != 0xFFFD && !utf8_is_space(cp))
            good = i;
    }
    return good;
}

/* Narrows s to its last line, trimmed. */
static void last_line(const char **s, size_t *n)
{
    const char *feed = *n ? memrchr(*s, '\n', *n) : NULL;
    if (feed) {
        *n -= (size_t)(feed + 1 - *s);
        *s = feed + 1;
    }
    utf8_trim(s, n);
}

/* Rules 1 and 2 on the trimmed text s; returns the rule that applied. */
static ink_status truncate_line(const char *s, size_t n, unsigned rules, bool one_line, const char **kept,
                                size_t *kept_length, unsigned *rule)
{
    reversed r = {0};
    size_t unit = 0, fills;
    ink_status status = reverse(s, n, &r);
    if (status == INK_OK && (rules & REPETITION_SUFFIX) && (fills = repeated_suffix(&r, &unit)) > 0) {
        *rule = REPETITION_SUFFIX;
        *kept_length = (size_t)(s - *kept) + n - bytes_at_end(s, n, &r, fills);
    } else if (status == INK_OK && one_line && (rules & REPETITION_WHOLE) && (unit = whole_unit(&r)) > 0) {
        *rule = REPETITION_WHOLE;
        *kept_length = n - bytes_at_end(s, n, &r, r.length - unit);
    }
    reversed_free(&r);
    return status;
}

ink_status repetition_truncate(const char *text, size_t n, size_t min, unsigned rules, const char **kept,
                               size_t *kept_length, unsigned *rule)
{
    const char *s = text;
    size_t length = n;
    *kept = text;
    *kept_length = n;
    *rule = 0;
    if (utf8_count(text, n) < min)
        return INK_OK;
    if (rules & REPETITION_BROKEN_END)
        n = length = without_broken_end(text, n);
    utf8_trim(&s, &length);
    if (!length)
        return INK_OK;
    bool one_line = !memchr(s, '\n', length);
    const char *start = s; /* rules 1 and 2 keep from here */
    size_t start_length = *kept_length;
    if (one_line || (rules & REPETITION_LAST_LINE)) {
        if (!one_line)
            last_line(&s, &length);
        TRY(truncate_line(s, length, rules, one_line, &start, &start_length, rule));
    }
    if (*rule) {
        *kept = start;
        *kept_length = start_length;
        return INK_OK;
    }
    line found = {0};
    if (rules & REPETITION_LINES)
        TRY(repeated_line(text, n, &found));
    if (found.text) {
        *rule = REPETITION_LINES;
        *kept = found.text;
        *kept_length = found.length;
    }
    return INK_OK;
}

/* Rule 1 for the guard: bytes of s to drop, so that one copy of the repeated unit is left; 0 if s is not stuck. */
static ink_status stuck_at_end(const char *s, size_t n, size_t *drop)
{
    reversed r = {0};
    size_t unit = 0, shortest = 1;
    ink_status status = reverse(s, n, &r);
    *drop = 0;
    if (status == INK_OK && repeated_suffix(&r, &unit) > 0) {
        size_t fills = unit + r.match[unit];
        while (shortest < unit && shortest + r.match[shortest] < fills)
            shortest++;
        if (shortest >= GUARD_SHORT_UNIT || fills >= GUARD_SHORT_UNIT_FILLS)
            *drop = bytes_at_end(s, n, &r, r.match[shortest]);
    }
    reversed_free(&r);
    return status;
}

ink_status repetition_guard(const char *text, size_t n, size_t min, size_t *keep)
{
    const char *s = text;
    size_t end = without_broken_end(text, n), length = end, drop;
    line found = {0};
    *keep = n;
    if (utf8_count(text, n) < min)
        return INK_OK;
    last_line(&s, &length);
    if (length > GUARD_WINDOW) {
        s += length - GUARD_WINDOW;
        length = GUARD_WINDOW;
        while (length > 0 && ((unsigned char)*s & 0xC0) == 0x80) { /* not inside a character */
            s++;
            length--;
        }
    }
    TRY(stuck_at_end(s, length, &drop));
    if (drop) {
        *keep = (size_t)(s - text) + length - drop;
        return INK_OK;
    }
    TRY(repeated_line(text, end, &found));
    if (found.text)
        *keep = (size_t)(found.text - text) + found.length;
    return INK_OK;
}
