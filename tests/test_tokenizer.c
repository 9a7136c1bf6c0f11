/* test_tokenizer.c - vectors of the reference library, round trips, streaming, bad files. */
#include "text/tokenizer.h"

#include "text_support.h"

static tokenizer *open_tokenizer(const char *name)
{
    tokenizer *t;
    strbuf json = read_source_file(name);
    assert_ok(tokenizer_parse(json.text, json.length, &t));
    strbuf_free(&json);
    return t;
}

static tokenizer *open_mini(void) { return open_tokenizer("models/mini/tokenizer.json"); }

/* ---- vectors ---- */

typedef struct vector_run {
    const tokenizer *t;
    const char *file;
    size_t encodes, decodes;
} vector_run;

static void check_encode(vector_run *run, size_t number, const json_t *text, const json_t *want, tokenize_mode mode)
{
    token_list got = {0};
    assert_ok(tokenizer_encode(run->t, json_string_value(text), json_string_length(text), mode, &got));
    bool same = got.count == json_array_size(want);
    for (size_t i = 0; same && i < got.count; i++)
        same = got.ids[i] == json_integer_value(json_array_get(want, i));
    if (!same) {
        strbuf ids = {0};
        for (size_t i = 0; i < got.count; i++)
            strbuf_printf(&ids, " %d", got.ids[i]);
        fail_msg("%s line %zu: \"%s\" gives%s", run->file, number, json_string_value(text), strbuf_text(&ids));
    }
    token_list_free(&got);
    run->encodes++;
}

static void check_text(vector_run *run, size_t number, const strbuf *got, const json_t *want)
{
    if (got->length != json_string_length(want) || memcmp(strbuf_text(got), json_string_value(want), got->length) != 0)
        fail_msg("%s line %zu: decoded \"%s\", expected \"%s\"", run->file, number, strbuf_text(got),
                 json_string_value(want));
    run->decodes++;
}

static void check_decode(vector_run *run, size_t number, const json_t *ids, const json_t *want, bool skip)
{
    token_list list = {0};
    strbuf got = {0};
    for (size_t i = 0; i < json_array_size(ids); i++)
        assert_ok(token_list_add(&list, (int32_t)json_integer_value(json_array_get(ids, i))));
    assert_ok(tokenizer_decode(run->t, list.ids, list.count, skip, &got));
    check_text(run, number, &got, want);
    token_list_free(&list);
    strbuf_free(&got);
}

static void check_vector(const json_t *line, size_t number, void *user)
{
    vector_run *run = user;
    const json_t *a = json_array_get(line, 1), *b = json_array_get(line, 2);
    strbuf got = {0};
    switch (json_string_value(json_array_get(line, 0))[0]) {
    case 'e': check_encode(run, number, a, b, TOKENIZE_ALL); break;
    case 's': check_encode(run, number, a, b, TOKENIZE_TEXT); break;
    case 'd': check_decode(run, number, a, b, false); break;
    case 'k': check_decode(run, number, a, b, true); break;
    case 'v':
        for (size_t i = 0; i < json_array_size(b); i++) {
            int32_t id = (int32_t)(json_integer_value(a) + (json_int_t)i);
            strbuf_truncate(&got, 0);
            assert_ok(tokenizer_decode(run->t, &id, 1, false, &got));
            check_text(run, number, &got, json_array_get(b, i));
        }
        strbuf_free(&got);
        break;
    default: fail_msg("%s line %zu: unknown kind", run->file, number);
    }
}

static void check_vectors(const char *json, const char *vectors, size_t encodes, size_t decodes)
{
    tokenizer *t = open_tokenizer(json);
    vector_run run = {.t = t, .file = vectors};
    each_vector(vectors, check_vector, &run);
    print_message("%s: %zu encodings, %zu decodings\n", vectors, run.encodes, run.decodes);
    assert_true(run.encodes >= encodes && run.decodes >= decodes);
    tokenizer_free(t);
}

static void test_mini_vectors(void **state)
{
    (void)state;
    check_vectors("models/mini/tokenizer.json", "tests/data/text/mini.vectors", 1400, 2000);
}

static void test_synthetic_vectors(void **state)
{
    (void)state;
    check_vectors("tests/data/text/synthetic_llama.json", "tests/data/text/synthetic_llama.vectors", 300, 300);
    check_vectors("tests/data/text/synthetic_metaspace.json", "tests/data/text/synthetic_metaspace.vectors", 300, 200);
    check_vectors("tests/data/text/synthetic_whole.json", "tests/data/text/synthetic_whole.vectors", 300, 300);
}

/* ---- properties ---- */

static void test_lookups(void **state)
{
    (void)state;
    tokenizer *t = open_mini();
    size_t n;
    assert_int_equal(tokenizer_size(t), 1024);
    assert_int_equal(tokenizer_id(t, "</s>"), 2);
    assert_int_equal(tokenizer_id(t, "<|IMAGE_PLACEHOLDER|>"), 1014);
    assert_int_equal(tokenizer_id(t, "no such token"), -1);
    assert_string_equal(tokenizer_token(t, 1018, &n), "<nl>");
    assert_int_equal(n, 4);
    assert_null(tokenizer_token(t, -1, &n));
    assert_null(tokenizer_token(t, 1024, NULL));
    assert_int_equal(n, 0);
    assert_true(tokenizer_is_special(t, 2) && tokenizer_is_special(t, 1014));
    assert_false(tokenizer_is_special(t, 1018) || tokenizer_is_special(t, 500) || tokenizer_is_special(t, 9999));
    assert_true(tokenizer_is_added(t, 1018));
    assert_false(tokenizer_is_added(t, 500) || tokenizer_is_added(t, -5));
    for (int32_t id = 0; id < 1024; id++)
        assert_int_equal(tokenizer_id(t, tokenizer_token(t, id, NULL)), id);
    tokenizer_free(t);
}

/* Any text comes back from its ids, and text from users never yields a special token. (The mini vocabulary's marker
 * U+2581 is read as a space: it is left out of the texts.) */
static void test_round_trip(void **state)
{
    (void)state;
    rng r = fresh_rng();
    tokenizer *t = open_mini();
    strbuf text = {0}, back = {0};
    token_list ids = {0};
    for (int i = 0; i < 5000; i++) {
        strbuf_truncate(&text, 0);
        for (uint64_t n = rng_below(&r, i % 100 ? 40 : 3000); n > 0; n--) {
            uint32_t cp = random_scalar(&r);
            size_t length;
            if (rng_below(&r, 50) == 0)
                strbuf_puts(&text, tokenizer_token(t, (int32_t)rng_below(&r, tokenizer_size(t)), &length));
            else
                add_scalar(&text, cp == 0x2581 ? '_' : cp);
        }
        for (size_t k = 0; k + 3 <= text.length; k++)
            if (!memcmp(text.text + k, "\xE2\x96\x81", 3))
                memcpy(text.text + k, "---", 3);
        for (int mode = TOKENIZE_ALL; mode <= TOKENIZE_PLAIN; mode++) {
            ids.count = 0;
            strbuf_truncate(&back, 0);
            assert_ok(tokenizer_encode(t, strbuf_text(&text), text.length, (tokenize_mode)mode, &ids));
            assert_ok(tokenizer_decode(t, ids.ids, ids.count, false, &back));
            assert_int_equal(back.length, text.length);
            assert_memory_equal(strbuf_text(&back), strbuf_text(&text), text.length);
            for (size_t k = 0; mode != TOKENIZE_ALL && k < ids.count; k++)
                assert_false(tokenizer_is_special(t, ids.ids[k]));
            for (size_t k = 0; mode == TOKENIZE_PLAIN && k < ids.count; k++)
                assert_false(tokenizer_is_added(t, ids.ids[k]));
        }
    }
    strbuf_free(&text);
    strbuf_free(&back);
    token_list_free(&ids);
    tokenizer_free(t);
}

static void test_streaming_equals_batch(void **state)
{
    (void)state;
    static const char *const files[] = {"models/mini/tokenizer.json", "tests/data/text/synthetic_llama.json",
                                        "tests/data/text/synthetic_metaspace.json", "tests/data/text/synthetic_whole.json"};
    rng r = fresh_rng();
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        tokenizer *t = open_tokenizer(files[f]);
        detokenizer d[2];
        detokenizer_init(&d[0], t, false);
        detokenizer_init(&d[1], t, true);
        for (int i = 0; i < 4000; i++) {
            int32_t ids[24];
            size_t n = rng_below(&r, 25);
            bool skip = rng_below(&r, 2), bytes = rng_below(&r, 2);
            strbuf whole = {0}, streamed = {0};
            for (size_t k = 0; k < n; k++)
                ids[k] =
                    (int32_t)(bytes && rng_below(&r, 3) ? 3 + rng_below(&r, 280) : rng_below(&r, tokenizer_size(t) + 2));
            assert_ok(tokenizer_decode(t, ids, n, skip, &whole));
            for (size_t k = 0; k < n; k++) {
                assert_ok(detokenizer_feed(&d[skip], ids[k], &streamed));
                assert_true(utf8_is_valid(strbuf_text(&streamed), streamed.length));
                assert_true(streamed.length <= whole.length);
            }
            assert_ok(detokenizer_finish(&d[skip], &streamed));
            assert_int_equal(streamed.length, whole.length);
            assert_memory_equal(strbuf_text(&streamed), strbuf_text(&whole), whole.length);
            strbuf_free(&whole);
            strbuf_free(&streamed);
        }
        detokenizer_free(&d[0]);
        detokenizer_free(&d[1]);
        tokenizer_free(t);
    }
}

/* Characters that arrive byte by byte come out whole, and as soon as the run is over. */
static void test_streaming_holds_back(void **state)
{
    (void)state;
    tokenizer *t = open_mini();
    detokenizer d;
    strbuf out = {0};
    detokenizer_init(&d, t, true);
    static const char *const bytes[] = {"<0xF0>", "<0x9F>", "<0x98>", "<0x80>"};
    for (int i = 0; i < 4; i++) {
        assert_ok(detokenizer_feed(&d, tokenizer_id(t, bytes[i]), &out));
        assert_int_equal(out.length, 0);
    }
    assert_ok(detokenizer_feed(&d, tokenizer_id(t, "e"), &out));
    assert_string_equal(strbuf_text(&out), "\xF0\x9F\x98\x80"
                                           "e");
    assert_ok(detokenizer_feed(&d, tokenizer_id(t, "<0x0A>"), &out));
    assert_ok(detokenizer_feed(&d, tokenizer_id(t, "<0xC3>"), &out));
    assert_int_equal(out.length, 5);
    assert_ok(detokenizer_finish(&d, &out));
    assert_string_equal(strbuf_text(&out), "\xF0\x9F\x98\x80"
                                           "e" UTF8_REPLACEMENT UTF8_REPLACEMENT);
    detokenizer_free(&d);
    strbuf_free(&out);
    tokenizer_free(t);
}

static void test_ill_formed_text(void **state)
{
    (void)state;
    static const struct {
        const char *text, *same_as;
    } cases[] = {
        {"a\xFF"
         "b",
         "a\xEF\xBF\xBD"
         "b"},
        {"\xE6\x9D", "\xEF\xBF\xBD"},
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xC0\xAF\xF5", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xF0\x9F\x98z", "\xEF\xBF\xBDz"},
    };
    tokenizer *t = open_mini();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        token_list a = {0}, b = {0};
        assert_ok(tokenizer_encode(t, cases[i].text, strlen(cases[i].text), TOKENIZE_TEXT, &a));
        assert_ok(tokenizer_encode(t, cases[i].same_as, strlen(cases[i].same_as), TOKENIZE_TEXT, &b));
        assert_int_equal(a.count, b.count);
        assert_memory_equal(a.ids, b.ids, a.count * sizeof *a.ids);
        token_list_free(&a);
        token_list_free(&b);
    }
    tokenizer_free(t);
}

/* Without a pre-tokenizer a text is one word: half a million characters must not take quadratic time. */
static void test_long_word(void **state)
{
    (void)state;
    tokenizer *t = open_mini();
    rng r = fresh_rng();
    strbuf text = {0}, back = {0};
    token_list ids = {0};
    for (int i = 0; i < 500000; i++)
        strbuf_putc(&text, "etaoinshrdlu  "[rng_below(&r, 14)]);
    assert_ok(tokenizer_encode(t, text.text, text.length, TOKENIZE_TEXT, &ids));
    assert_ok(tokenizer_decode(t, ids.ids, ids.count, false, &back));
    assert_int_equal(back.length, text.length);
    assert_memory_equal(back.text, text.text, text.length);
    assert_true(ids.count < text.length * 3 / 4);
    strbuf_free(&text);
    strbuf_free(&back);
    token_list_free(&ids);
    tokenizer_free(t);
}

static void check_same_text(const tokenizer *t, const char *text)
{
    token_list ids = {0};
    strbuf back = {0};
    assert_ok(tokenizer_encode(t, text, strlen(text), TOKENIZE_TEXT, &ids));
    assert_ok(tokenizer_decode(t, ids.ids, ids.count, true, &back));
    assert_string_equal(strbuf_text(&back), text);
    token_list_free(&ids);
    strbuf_free(&back);
}

/* Spaces in formulas and text that looks like other markup pass unchanged. */
static void test_text_is_untouched(void **state)
{
    (void)state;
    tokenizer *t = open_mini();
    static const char *const texts[] = {"x \\in Z",
                                        "\\alpha x",
                                        "\\_\\_\\_",
                                        "2H_2 + O_2 \\rightarrow 2H_2O",
                                        "{\"",
                                        "<tool",
                                        "<think>",
                                        "a $5 b",
                                        " a",
                                        "a ",
                                        "  ",
                                        "'s",
                                        "a  b\t\tc\r\nd"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_same_text(t, texts[i]);
    tokenizer_free(t);
}

/* The ids that the mini model generated for its samples are the recorded texts. */
static void test_generated_samples(void **state)
{
    (void)state;
    tokenizer *t = open_mini();
    strbuf json = read_source_file("models/mini/golden/samples.json");
    json_t *samples = json_loadb(json.text, json.length, 0, NULL);
    assert_true(json_array_size(samples) >= 10);
    for (size_t i = 0; i < json_array_size(samples); i++) {
        const json_t *sample = json_array_get(samples, i), *ids = json_object_get(sample, "generated_ids");
        token_list list = {0};
        strbuf text = {0};
        for (size_t k = 0; k < json_array_size(ids); k++)
            assert_ok(token_list_add(&list, (int32_t)json_integer_value(json_array_get(ids, k))));
        assert_ok(tokenizer_decode(t, list.ids, list.count, true, &text));
        assert_string_equal(strbuf_text(&text), json_string_value(json_object_get(sample, "text")));
        token_list_free(&list);
        strbuf_free(&text);
    }
    json_decref(samples);
    strbuf_free(&json);
    tokenizer_free(t);
}

/* One tokenizer, many threads, different texts: each thread gets the serial answer. */
static void test_threads(void **state)
{
    (void)state;
    enum { TEXTS = 64 };
    rng r = fresh_rng();
    tokenizer *t = open_mini();
    static strbuf texts[TEXTS];
    static token_list serial[TEXTS];
    int wrong = 0;
    for (int i = 0; i < TEXTS; i++) {
        random_unicode(&r, &texts[i], 200);
        assert_ok(tokenizer_encode(t, texts[i].text, texts[i].length, TOKENIZE_TEXT, &serial[i]));
    }
#pragma omp parallel for num_threads(8) reduction(+ : wrong) schedule(static, 1)
    for (int i = 0; i < 8 * TEXTS; i++) {
        const strbuf *text = &texts[i % TEXTS];
        const token_list *want = &serial[i % TEXTS];
        token_list got = {0};
        strbuf back = {0}, want_back = {0};
        wrong += tokenizer_encode(t, text->text, text->length, TOKENIZE_TEXT, &got) != INK_OK || got.count != want->count ||
                 memcmp(got.ids, want->ids, got.count * sizeof *got.ids) != 0;
        add_replaced(&want_back, text->text, text->length, "\xE2\x96\x81", 3, " ", 1);
        wrong += tokenizer_decode(t, got.ids, got.count, false, &back) != INK_OK || back.length != want_back.length ||
                 memcmp(back.text, want_back.text, back.length) != 0;
        token_list_free(&got);
        strbuf_free(&back);
        strbuf_free(&want_back);
    }
    assert_int_equal(wrong, 0);
    for (int i = 0; i < TEXTS; i++) {
        strbuf_free(&texts[i]);
        token_list_free(&serial[i]);
    }
    tokenizer_free(t);
}

/* ---- bad and unsupported files ---- */

#define FILE_WITH(added, middle, vocab, merges, options)                                                        \
    "{\"added_tokens\":[" added "]," middle "\"model\":{\"type\":\"BPE\",\"unk_token\":\"u\",\"vocab\":{" vocab \
    "},\"merges\":[" merges "]" options "}}"
#define VOCAB "\"u\":0,\"a\":1,\"b\":2,\"ab\":3"

static void test_refused_files(void **state)
{
    (void)state;
    static const struct {
        const char *json, *message;
        ink_status status;
    } cases[] = {
        {"", "line 1", INK_BAD_DATA},
        {"[]", "\"model\" must be an object", INK_BAD_DATA},
        {"{\"model\":{\"type\":\"Unigram\"}}", "\"Unigram\" is not supported", INK_UNIMPLEMENTED},
        {"{\"model\":{\"type\":3}}", "only BPE", INK_UNIMPLEMENTED},
        {"{\"model\":{\"vocab\":[],\"merges\":[]}}", "\"vocab\" must be an object, found array", INK_BAD_DATA},
        {"{\"model\":{\"vocab\":{},\"merges\":{}}}", "\"merges\" must be an array, found object", INK_BAD_DATA},
        {FILE_WITH("", "", VOCAB ",\"c\":3", "", ""), "both have the id 3", INK_BAD_DATA},
        {FILE_WITH("", "", VOCAB ",\"a\":4", "", ""), "duplicate", INK_BAD_DATA},
        {FILE_WITH("", "", VOCAB ",\"c\":-1", "", ""), "outside 0..", INK_BAD_DATA},
        {FILE_WITH("", "", VOCAB ",\"c\":99999999999", "", ""), "outside 0..", INK_BAD_DATA},
        {FILE_WITH("", "", VOCAB ",\"c\":1.5", "", ""), "must be an integer, found real", INK_BAD_DATA},
        {FILE_WITH("", "", VOCAB ",\"\":4", "", ""), "empty piece", INK_BAD_DATA},
        {FILE_WITH("", "", "\"a\":0", "", ""), "unk_token \"u\" is not in the vocabulary", INK_BAD_DATA},
        {FILE_WITH("", "", VOCAB, "\"a c\"", ""), "merges[0]: \"c\" is not in the vocabulary", INK_BAD_DATA},
        {FILE_WITH("", "", VOCAB, "\"b a\"", ""), "result \"ba\" is not in the vocabulary", INK_BAD_DATA},
        {FILE_WITH("", "", VOCAB, "\"a b\",[\"a\",\"b\"]", ""), "merges[1]: \"a\" + \"b\" occurs twice", INK_BAD_DATA},
        {FILE_WITH("", "", VOCAB, "\"ab\"", ""), "one space between", INK_BAD_DATA},
        {FILE_WITH("", "", VOCAB, "\"a b c\"", ""), "one space between", INK_BAD_DATA},
        {FILE_WITH("", "", VOCAB, "[\"a\"]", ""), "array of two strings", INK_BAD_DATA},
        {FILE_WITH("", "", VOCAB, "[\"a\",2]", ""), "expected two strings, found integer", INK_BAD_DATA},
        {FILE_WITH("", "", VOCAB, "7", ""), "found integer", INK_BAD_DATA},
        {FILE_WITH("", "", VOCAB, "", ",\"dropout\":0.1"), "dropout", INK_UNIMPLEMENTED},
        {FILE_WITH("", "", VOCAB, "", ",\"end_of_word_suffix\":\"</w>\""), "end_of_word_suffix", INK_UNIMPLEMENTED},
        {FILE_WITH("", "", VOCAB, "", ",\"fuse_unk\":1"), "\"fuse_unk\" must be true or false", INK_BAD_DATA},
        {FILE_WITH("3", "", VOCAB, "", ""), "added_tokens[0]", INK_BAD_DATA},
        {FILE_WITH("{\"content\":\"x\"}", "", VOCAB, "", ""), "must be an integer, found nothing", INK_BAD_DATA},
        {FILE_WITH("{\"content\":\"\",\"id\":5}", "", VOCAB, "", ""), "is empty", INK_BAD_DATA},
        {FILE_WITH("{\"content\":\"a\",\"id\":5}", "", VOCAB, "", ""), "id 5 here and 1 in", INK_BAD_DATA},
        {FILE_WITH("{\"content\":\"x\",\"id\":1}", "", VOCAB, "", ""), "both have the id 1", INK_BAD_DATA},
        {FILE_WITH("{\"content\":\"a\",\"id\":1},{\"content\":\"a\",\"id\":1}", "", VOCAB, "", ""), "occurs twice",
         INK_BAD_DATA},
        {FILE_WITH("{\"content\":\"x\",\"id\":9,\"special\":\"yes\"}", "", VOCAB, "", ""), "found string", INK_BAD_DATA},
        {FILE_WITH("", "\"normalizer\":{\"type\":\"Lowercase\"},", VOCAB, "", ""), "\"Lowercase\" is not supported",
         INK_UNIMPLEMENTED},
        {FILE_WITH("", "\"normalizer\":7,", VOCAB, "", ""), "expected an object or null, found integer", INK_BAD_DATA},
        {FILE_WITH("", "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"x\"},\"content\":\"\"},", VOCAB, "",
                   ""),
         "regular expression", INK_UNIMPLEMENTED},
        {FILE_WITH("", "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"\"},", VOCAB, "",
                   ""),
         "pattern of Replace is empty", INK_BAD_DATA},
        {FILE_WITH("", "\"pre_tokenizer\":{\"type\":\"ByteLevel\"},", VOCAB, "", ""), "\"ByteLevel\" is not supported",
         INK_UNIMPLEMENTED},
        {FILE_WITH("", "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"ab\"},", VOCAB, "", ""),
         "one character", INK_BAD_DATA},
        {FILE_WITH("", "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"often\"},",
                   VOCAB, "", ""),
         "prepend_scheme \"often\"", INK_BAD_DATA},
        {FILE_WITH("", "\"post_processor\":{\"type\":\"RobertaProcessing\"},", VOCAB, "", ""), "\"RobertaProcessing\"",
         INK_UNIMPLEMENTED},
        {FILE_WITH("", "\"decoder\":{\"type\":\"WordPiece\"},", VOCAB, "", ""), "decoder: type \"WordPiece\"",
         INK_UNIMPLEMENTED},
        {FILE_WITH("",
                   "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":\"ByteFallback\"}]},",
                   VOCAB, "", ""),
         "ByteFallback behind Fuse", INK_UNIMPLEMENTED},
        {FILE_WITH("", "\"decoder\":{\"type\":\"Strip\",\"content\":\" \",\"start\":-1,\"stop\":0},", VOCAB, "", ""),
         "\"start\" and \"stop\"", INK_BAD_DATA},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tokenizer *t;
        ink_status s = tokenizer_parse(cases[i].json, strlen(cases[i].json), &t);
        if (s != cases[i].status || !strstr(ink_last_error(), cases[i].message))
            fail_msg("case %zu: status %d, message \"%s\", expected \"%s\"", i, s, ink_last_error(), cases[i].message);
        assert_null(t);
    }
    tokenizer *t;
    const char *header = FILE_WITH("", "", VOCAB, "\"#version: 0.2\",\"a b\"", ""); /* the one line that is skipped */
    assert_ok(tokenizer_parse(header, strlen(header), &t));
    tokenizer_free(t);
}

/* Every prefix of a good file is refused, cleanly. */
static void test_truncated_file(void **state)
{
    (void)state;
    strbuf json = read_source_file("tests/data/text/synthetic_metaspace.json");
    for (size_t n = 0; n + 2 < json.length; n++) {
        tokenizer *t;
        char *exact = malloc(n ? n : 1); /* of the exact size, so that a sanitizer sees an over-read */
        memcpy(exact, json.text, n);
        assert_int_equal(tokenizer_parse(exact, n, &t), INK_BAD_DATA);
        assert_null(t);
        free(exact);
    }
    strbuf_free(&json);
}

/* A vocabulary of the real size loads quickly; the bound is loose enough for a busy machine and a sanitizer. */
static void test_large_vocabulary(void **state)
{
    (void)state;
    strbuf json = {0};
    strbuf_puts(&json,
                "{\"added_tokens\":[],\"model\":{\"type\":\"BPE\",\"unk_token\":null,\"byte_fallback\":true,\"vocab\":{");
    static const char digits[] = "abcdefghijklmnopqrstuvwxyzABCDEF";
    size_t count = 0;
    for (int i = 0; i < 32; i++)
        strbuf_printf(&json, "%s\"%c\":%zu", i ? "," : "", digits[i], count++);
    for (int i = 0; i < 1024; i++)
        strbuf_printf(&json, ",\"%c%c\":%zu", digits[i / 32], digits[i % 32], count++);
    for (int i = 0; i < 32768; i++)
        strbuf_printf(&json, ",\"%c%c%c\":%zu", digits[i / 1024], digits[i / 32 % 32], digits[i % 32], count++);
    for (int i = 0; i < 70000; i++)
        strbuf_printf(&json, ",\"%c%c%c%c\":%zu", digits[i / 32768], digits[i / 1024 % 32], digits[i / 32 % 32],
                      digits[i % 32], count++);
    strbuf_puts(&json, "},\"merges\":[");
    for (int i = 0; i < 1024; i++)
        strbuf_printf(&json, "%s\"%c %c\"", i ? "," : "", digits[i / 32], digits[i % 32]);
    for (int i = 0; i < 32768; i++)
        strbuf_printf(&json, ",\"%c%c %c\",\"%c %c%c\"", digits[i / 1024], digits[i / 32 % 32], digits[i % 32],
                      digits[i / 1024], digits[i / 32 % 32], digits[i % 32]);
    for (int i = 0; i < 70000; i++)
        strbuf_printf(&json, ",[\"%c%c%c\",\"%c\"],[\"%c%c\",\"%c%c\"]", digits[i / 32768], digits[i / 1024 % 32],
                      digits[i / 32 % 32], digits[i % 32], digits[i / 32768], digits[i / 1024 % 32], digits[i / 32 % 32],
                      digits[i % 32]);
    strbuf_puts(&json, "]}}");
    assert_ok(strbuf_status(&json));
    struct timespec a, b;
    tokenizer *t;
    clock_gettime(CLOCK_MONOTONIC, &a);
    assert_ok(tokenizer_parse(json.text, json.length, &t));
    clock_gettime(CLOCK_MONOTONIC, &b);
    double ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) * 1e-6;
    print_message("%zu tokens, %zu bytes of JSON: %.0f ms\n", tokenizer_size(t), json.length, ms);
    assert_int_equal(tokenizer_size(t), count);
    assert_true(ms < 5000);
    token_list ids = {0};
    assert_ok(tokenizer_encode(t, "abcdefgh", 8, TOKENIZE_TEXT, &ids));
    assert_true(ids.count >= 2 && ids.count <= 4);
    token_list_free(&ids);
    tokenizer_free(t);
    strbuf_free(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mini_vectors),
        cmocka_unit_test(test_synthetic_vectors),
        cmocka_unit_test(test_lookups),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_streaming_equals_batch),
        cmocka_unit_test(test_streaming_holds_back),
        cmocka_unit_test(test_ill_formed_text),
        cmocka_unit_test(test_long_word),
        cmocka_unit_test(test_text_is_untouched),
        cmocka_unit_test(test_generated_samples),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_refused_files),
        cmocka_unit_test(test_truncated_file),
        cmocka_unit_test(test_large_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
