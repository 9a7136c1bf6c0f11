#define _GNU_SOURCE /* memmem */
#include "text/utf8.h"

#include <string.h>
#include <utf8proc.h>

size_t utf8_decode(const char *text, size_t n, uint32_t *cp)
{
    const unsigned char *s = (const unsigned char *)text;
    unsigned lead = s[0];
    size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    if (length == 1) {
        *cp = lead;
        return 1;
    }
    if (!length) {
        *cp = UTF8_BAD;
        return 1;
    }
    /* The second byte's range excludes overlong forms, surrogates and values above U+10FFFF. */
    unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    uint32_t value = lead & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (i == n) {
            *cp = UTF8_TRUNCATED;
            return i;
        }
        if (s[i] < low || s[i] > high) {
            *cp = UTF8_BAD;
            return i;
        }
        value = value << 6 | (s[i] & 0x3Fu);
        low = 0x80;
        high = 0xBF;
    }
    *cp = value;
    return length;
}

size_t utf8_encode(uint32_t cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    size_t length = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (cp & 0x3F));
        cp >>= 6;
    }
    out[0] = (char)((0xF00u >> length & 0xF0) | cp);
    return length;
}

bool utf8_is_valid(const char *s, size_t n)
{
    uint32_t cp;
    for (size_t i = 0; i < n;) {
        i += utf8_decode(s + i, n - i, &cp);
        if (cp >= UTF8_TRUNCATED)
            return false;
    }
    return true;
}

size_t utf8_count(const char *s, size_t n)
{
    size_t count = 0;
    uint32_t cp;
    for (size_t i = 0; i < n; count++)
        i += utf8_decode(s + i, n - i, &cp);
    return count;
}

void utf8_add_repaired(strbuf *out, const char *s, size_t n)
{
    size_t good = 0; /* start of the well-formed text not yet copied */
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t length = utf8_decode(s + i, n - i, &cp);
        if (cp >= UTF8_TRUNCATED) {
            strbuf_add(out, s + good, i - good);
            strbuf_puts(out, UTF8_REPLACEMENT);
            good = i + length;
        }
        i += length;
    }
    strbuf_add(out, s + good, n - good);
}

bool utf8_is_space(uint32_t cp)
{
    return (cp >= 0x09 && cp <= 0x0D) || cp == 0x20 || cp == 0x85 || cp == 0xA0 || cp == 0x1680 ||
           (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 || cp == 0x2029 || cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

bool utf8_is_word(uint32_t cp)
{
    if (cp == 0x200C || cp == 0x200D)
        return true;
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    default: /* the symbols that are Alphabetic: circled, squared and negative letters */
        return (cp >= 0x24B6 && cp <= 0x24E9) || (cp >= 0x1F130 && cp <= 0x1F149) || (cp >= 0x1F150 && cp <= 0x1F169) ||
               (cp >= 0x1F170 && cp <= 0x1F189);
    }
}

/* Start of the character that ends at s + n (well-formed text, n > 0). */
static size_t last_start(const char *s, size_t n)
{
    size_t i = n - 1;
    while (i > 0 && n - i < 4 && ((unsigned char)s[i] & 0xC0) == 0x80)
        i--;
    return i;
}

uint32_t utf8_last(const char *s, size_t n)
{
    uint32_t cp;
    size_t i = last_start(s, n);
    utf8_decode(s + i, n - i, &cp);
    return cp;
}

size_t utf8_space_before_end(const char *s, size_t n)
{
    size_t end = n;
    while (end > 0 && utf8_is_space(utf8_last(s, end)))
        end = last_start(s, end);
    return n - end;
}

size_t utf8_space_at_start(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        uint32_t cp;
        size_t length = utf8_decode(s + i, n - i, &cp);
        if (!utf8_is_space(cp))
            break;
        i += length;
    }
    return i;
}

static bool is_stripped(uint32_t cp) { return utf8_is_space(cp) || (cp >= 0x1C && cp <= 0x1F); }

void utf8_trim(const char **s, size_t *n)
{
    while (*n > 0) {
        uint32_t cp;
        size_t length = utf8_decode(*s, *n, &cp);
        if (!is_stripped(cp))
            break;
        *s += length;
        *n -= length;
    }
    while (*n > 0 && is_stripped(utf8_last(*s, *n)))
        *n = last_start(*s, *n);
}

void add_replaced(strbuf *out, const char *s, size_t n, const char *pattern, size_t pattern_length, const char *content,
                  size_t content_length)
{
    if (!n)
        return;
    const char *end = s + n;
    while (s < end) {
        const char *hit = memmem(s, (size_t)(end - s), pattern, pattern_length);
        if (!hit)
            break;
        strbuf_add(out, s, (size_t)(hit - s));
        strbuf_add(out, content, content_length);
        s = hit + pattern_length;
    }
    strbuf_add(out, s, (size_t)(end - s));
}
