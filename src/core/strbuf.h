/* strbuf.h - a growing string. A failed append is remembered and reported once, by strbuf_status or strbuf_take. */
#ifndef CORE_STRBUF_H
#define CORE_STRBUF_H
#include "core/status.h"

typedef struct strbuf {
    char *text; /* always 0-terminated once something was appended; NULL before */
    size_t length, capacity;
    bool failed;
} strbuf;

void strbuf_add(strbuf *b, const char *bytes, size_t n);
void strbuf_puts(strbuf *b, const char *s);
void strbuf_putc(strbuf *b, char c);
void strbuf_printf(strbuf *b, const char *fmt, ...) INK_PRINTF(2, 3);
void strbuf_truncate(strbuf *b, size_t length);
const char *strbuf_text(const strbuf *b);  /* "" while empty */
ink_status strbuf_status(const strbuf *b); /* INK_RESOURCE_EXHAUSTED after a failed append */
char *strbuf_take(strbuf *b);              /* ownership to the caller (free); NULL with the error set on failure */
void strbuf_free(strbuf *b);
#endif
