/* text_support.h - helpers of the text tests: files, vector lines, random Unicode. */
#ifndef TESTS_TEXT_SUPPORT_H
#define TESTS_TEXT_SUPPORT_H
#include "core/rng.h"
#include "core/strbuf.h"
#include "text/utf8.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define assert_ok(expr)                                  \
    do {                                                 \
        if ((expr) != INK_OK)                            \
            fail_msg("%s: %s", #expr, ink_last_error()); \
    } while (0)

static inline rng fresh_rng(void)
{
    const char *fixed = getenv("INK_TEST_SEED");
    rng r = {.seed = fixed ? strtoull(fixed, NULL, 10) : (uint64_t)time(NULL)};
    print_message("seed %llu (INK_TEST_SEED repeats it)\n", (unsigned long long)r.seed);
    return r;
}

/* Whole file below the source directory; the test fails if it cannot be read. */
static inline strbuf read_source_file(const char *name)
{
    char path[512], chunk[65536];
    strbuf text = {0};
    snprintf(path, sizeof path, "%s/%s", INK_SOURCE_DIR, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot open %s", path);
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        strbuf_add(&text, chunk, n);
    fclose(f);
    assert_ok(strbuf_status(&text));
    return text;
}

/* Calls fn for each line (a JSON value) of a vector file; returns how many there were. */
static inline size_t each_vector(const char *name, void (*fn)(const json_t *line, size_t number, void *user), void *user)
{
    strbuf text = read_source_file(name);
    size_t count = 0;
    for (const char *line = text.text, *end = text.text + text.length, *next; line < end; line = next + 1) {
        json_error_t error;
        next = memchr(line, '\n', (size_t)(end - line));
        next = next ? next : end;
        json_t *value = json_loadb(line, (size_t)(next - line), JSON_ALLOW_NUL, &error);
        if (!value)
            fail_msg("%s: line %zu: %s", name, count + 1, error.text);
        fn(value, ++count, user);
        json_decref(value);
    }
    strbuf_free(&text);
    return count;
}

/* A scalar value, with a bias to those that make trouble. */
static inline uint32_t random_scalar(rng *r)
{
    static const uint32_t awkward[] = {0,     '\t',   '\n',   ' ',    '<',    '>',    '|',     0x7F,     0x80,    0x7FF,
                                       0x800, 0x2581, 0xD7FF, 0xE000, 0xFFFD, 0xFFFF, 0x10000, 0x10FFFF, 0x1F600, 0x301};
    uint32_t cp;
    switch (rng_below(r, 5)) {
    case 0: return awkward[rng_below(r, sizeof awkward / sizeof *awkward)];
    case 1: return 0x20 + (uint32_t)rng_below(r, 0x5F);
    case 2: return 'a' + (uint32_t)rng_below(r, 6);
    case 3: return 0xA0 + (uint32_t)rng_below(r, 0x300);
    default:
        do
            cp = (uint32_t)rng_below(r, 0x110000);
        while (cp >= 0xD800 && cp < 0xE000);
        return cp;
    }
}

static inline void add_scalar(strbuf *out, uint32_t cp)
{
    char bytes[4];
    strbuf_add(out, bytes, utf8_encode(cp, bytes));
}

static inline void random_unicode(rng *r, strbuf *out, size_t characters)
{
    strbuf_truncate(out, 0);
    while (characters--)
        add_scalar(out, random_scalar(r));
}
#endif
