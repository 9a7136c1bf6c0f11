/* fuzz_tokenizer.c - tokenizer.json from hostile hands, and hostile text and ids for a good one.
 *
 * The first byte chooses: odd - the rest up to the first 0xFF is a tokenizer.json, what follows it is text; even - the
 * tokenizer of the mini model (INK_SOURCE_DIR/models/mini, or the folder in INK_MODEL) works on the rest. Ids are taken
 * from the text's bytes. Encoding must round-trip with the mini tokenizer; streaming must equal batch decoding. */
#include "text/tokenizer.h"
#include "text/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef INK_SOURCE_DIR
#define INK_SOURCE_DIR "."
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "broken: %s (%s)\n", what, ink_last_error());
    abort();
}

static tokenizer *open_mini(void)
{
    char path[512], chunk[4096];
    strbuf json = {0};
    tokenizer *t = NULL;
    const char *folder = getenv("INK_MODEL");
    snprintf(path, sizeof path, "%s/tokenizer.json", folder ? folder : INK_SOURCE_DIR "/models/mini");
    FILE *f = fopen(path, "rb");
    demand(f != NULL, path);
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        strbuf_add(&json, chunk, n);
    fclose(f);
    demand(tokenizer_parse(json.text, json.length, &t) == INK_OK, "the mini tokenizer loads");
    strbuf_free(&json);
    return t;
}

static void check_decode(const tokenizer *t, const int32_t *ids, size_t n, bool skip)
{
    strbuf whole = {0}, streamed = {0};
    detokenizer d;
    detokenizer_init(&d, t, skip);
    demand(tokenizer_decode(t, ids, n, skip, &whole) == INK_OK, "decode");
    for (size_t i = 0; i < n; i++) {
        size_t before = streamed.length;
        demand(detokenizer_feed(&d, ids[i], &streamed) == INK_OK, "feed");
        demand(utf8_is_valid(strbuf_text(&streamed) + before, streamed.length - before), "each piece is UTF-8");
    }
    demand(detokenizer_finish(&d, &streamed) == INK_OK, "finish");
    demand(whole.length == streamed.length && !memcmp(strbuf_text(&whole), strbuf_text(&streamed), whole.length),
           "streaming equals batch");
    detokenizer_free(&d);
    strbuf_free(&whole);
    strbuf_free(&streamed);
}

static void check_encode(const tokenizer *t, const char *text, size_t n, bool round_trip)
{
    for (int mode = TOKENIZE_ALL; mode <= TOKENIZE_PLAIN; mode++) {
        token_list ids = {0};
        strbuf back = {0}, want = {0};
        demand(tokenizer_encode(t, text, n, (tokenize_mode)mode, &ids) == INK_OK, "encode");
        for (size_t i = 0; i < ids.count; i++)
            demand(tokenizer_token(t, ids.ids[i], NULL) != NULL, "ids are in the vocabulary");
        check_decode(t, ids.ids, ids.count, mode == TOKENIZE_TEXT);
        if (round_trip) { /* the marker U+2581 stands for a space */
            strbuf repaired = {0};
            utf8_add_repaired(&repaired, text, n);
            add_replaced(&want, strbuf_text(&repaired), repaired.length, "\xE2\x96\x81", 3, " ", 1);
            demand(tokenizer_decode(t, ids.ids, ids.count, false, &back) == INK_OK, "decode");
            demand(back.length == want.length && !memcmp(strbuf_text(&back), strbuf_text(&want), want.length),
                   "round trip");
            strbuf_free(&repaired);
        }
        strbuf_free(&back);
        strbuf_free(&want);
        token_list_free(&ids);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tokenizer *mini;
    if (!size)
        return 0;
    bool own_file = data[0] & 1;
    const char *text = (const char *)data + 1, *end = (const char *)data + size;
    tokenizer *t = NULL;
    if (own_file) {
        const char *split = memchr(text, 0xFF, (size_t)(end - text));
        size_t json = (size_t)((split ? split : end) - text);
        if (tokenizer_parse(text, json, &t) != INK_OK) {
            demand(t == NULL && ink_last_error()[0] != 0, "a refusal says why");
            return 0;
        }
        text = split ? split + 1 : end;
    } else {
        if (!mini)
            mini = open_mini();
        t = mini;
    }
    int32_t ids[256];
    size_t n = (size_t)(end - text), count = n / 2 < 256 ? n / 2 : 256;
    for (size_t i = 0; i < count; i++)
        ids[i] = (int32_t)((unsigned char)text[2 * i] | (unsigned)(unsigned char)text[2 * i + 1] << 8) % 1100 - 10;
    check_decode(t, ids, count, data[0] & 2);
    check_encode(t, text, n, !own_file);
    if (own_file)
        tokenizer_free(t);
    return 0;
}
