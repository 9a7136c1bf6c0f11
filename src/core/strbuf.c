#include "core/strbuf.h"

#include "core/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(strbuf *b, size_t extra)
{
    size_t need;
    if (b->failed)
        return false;
    if (!add_size(b->length, extra, &need) || !add_size(need, 1, &need) ||
        grow_array(&b->text, &b->capacity, need, 1) != INK_OK) {
        b->failed = true;
        return false;
    }
    return true;
}

void strbuf_add(strbuf *b, const char *bytes, size_t n)
{
    if (!reserve(b, n))
        return;
    if (n)
        memcpy(b->text + b->length, bytes, n);
    b->length += n;
    b->text[b->length] = 0;
}

void strbuf_puts(strbuf *b, const char *s) { strbuf_add(b, s, strlen(s)); }
void strbuf_putc(strbuf *b, char c) { strbuf_add(b, &c, 1); }

void strbuf_printf(strbuf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n >= 0 && reserve(b, (size_t)n)) {
        vsnprintf(b->text + b->length, (size_t)n + 1, fmt, again);
        b->length += (size_t)n;
    }
    va_end(again);
}

void strbuf_truncate(strbuf *b, size_t length)
{
    if (length < b->length) {
        b->length = length;
        b->text[length] = 0;
    }
}

const char *strbuf_text(const strbuf *b) { return b->text ? b->text : ""; }

ink_status strbuf_status(const strbuf *b)
{
    return b->failed ? failure(INK_RESOURCE_EXHAUSTED, "out of memory while building a string") : INK_OK;
}

char *strbuf_take(strbuf *b)
{
    if (!b->text && !b->failed)
        reserve(b, 0);
    if (strbuf_status(b) != INK_OK) {
        strbuf_free(b);
        return NULL;
    }
    b->text[b->length] = 0;
    char *text = b->text;
    *b = (strbuf){0};
    return text;
}

void strbuf_free(strbuf *b)
{
    free(b->text);
    *b = (strbuf){0};
}
