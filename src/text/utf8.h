/* utf8.h - decoding, validation and the few character classes that text processing needs. Texts are (pointer, length):
 * they may contain NUL. */
#ifndef TEXT_UTF8_H
#define TEXT_UTF8_H
#include "core/strbuf.h"

#define UTF8_BAD 0xFFFFFFFFu       /* what utf8_decode stores for bytes that can begin no character */
#define UTF8_TRUNCATED 0xFFFFFFFEu /* ... for a character that the end of the text cuts short */
#define UTF8_REPLACEMENT "\xEF\xBF\xBD"

/* Reads one character at text (n > 0 bytes available) and returns its length. For ill-formed input it stores UTF8_BAD or
 * UTF8_TRUNCATED and returns the length of the maximal ill-formed part (Unicode 15, section 3.9, table 3-8): what one
 * U+FFFD should stand for. Surrogates and overlong forms are ill-formed. */
size_t utf8_decode(const char *text, size_t n, uint32_t *cp);

/* Writes a scalar value as 1 to 4 bytes; returns how many. */
size_t utf8_encode(uint32_t cp, char out[4]);

bool utf8_is_valid(const char *s, size_t n);

/* Number of characters; each ill-formed part counts as one. */
size_t utf8_count(const char *s, size_t n);

/* Appends s with each ill-formed part replaced by one U+FFFD (Python's errors="replace"). */
void utf8_add_repaired(strbuf *out, const char *s, size_t n);

/* White_Space of Unicode: \s of the reference tokenizer's regular expressions. */
bool utf8_is_space(uint32_t cp);

/* \w of the same: Alphabetic, marks, decimal numbers, connector punctuation, join controls. */
bool utf8_is_word(uint32_t cp);

/* Length of the white space that ends s, and of that which begins it. */
size_t utf8_space_before_end(const char *s, size_t n);
size_t utf8_space_at_start(const char *s, size_t n);

/* The last character of s (n > 0, valid UTF-8). */
uint32_t utf8_last(const char *s, size_t n);

/* Narrows (*s, *n) to the text without white space at both ends, as Python's str.strip() sees it (White_Space and
 * U+001C..U+001F). */
void utf8_trim(const char **s, size_t *n);

/* Appends s with every occurrence of pattern (not empty) replaced by content. */
void add_replaced(strbuf *out, const char *s, size_t n, const char *pattern, size_t pattern_length, const char *content,
                  size_t content_length);
#endif
