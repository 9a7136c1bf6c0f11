/* synth_tokenizer.c - a byte-fallback BPE tokenizer with the published special ids and vocabulary size.
 *
 * Ids: <unk> <s> </s>, ten digits, 256 byte tokens, the pieces of a few merged words (so that merging is exercised), single
 * characters (Latin, Greek, Cyrillic, kana, CJK), then fillers `<|filler_ID|>` that no text encodes to. The special tokens
 * sit at the ids of the published tokenizer; ids it leaves open are fillers too. */
#include "models/paddleocr_vl/synth_internal.h"

#include <stdio.h>
#include <string.h>

typedef struct special_token {
    int id;
    const char *text; /* NULL: one of the <|LOC_n|> */
    bool special;     /* dropped by skip_special_tokens */
} special_token;

#define LOC_FIRST 100297
#define LOC_COUNT 1001

/* In id order, the LOC tokens apart. */
static const special_token named[] = {
    {0, "<unk>", true},
    {1, "<s>", true},
    {2, "</s>", true},
    {100272, "<|end_of_sentence|>", true},
    {100273, "<|begin_of_sentence|>", true},
    {100274, "<mask:1>", true},
    {100295, "<|IMAGE_PLACEHOLDER|>", true},
    {101298, "<|LOC_BEGIN|>", false},
    {101299, "<|LOC_END|>", false},
    {101300, "<|LOC_SEP|>", false},
    {101301, "<|TEXT_START|>", false},
    {101302, "<|TEXT_END|>", false},
    {101304, "<|image_pad|>", true},
    {101305, "<|IMAGE_START|>", true},
    {101306, "<|IMAGE_END|>", true},
    {101307, "<|video_pad|>", true},
    {101308, "<ecel>", false},
    {101309, "<fcel>", false},
    {101310, "<xcel>", false},
    {101311, "<lcel>", false},
    {101312, "<ucel>", false},
    {101313, "<nl>", false},
};
#define NAMED_COUNT (sizeof named / sizeof *named)
#define ADDED_COUNT (NAMED_COUNT + LOC_COUNT)

/* Added token number i in id order. */
static special_token added_token(size_t i, char loc[24])
{
    size_t before = 7; /* named tokens below the LOC block */
    if (i < before)
        return named[i];
    if (i >= before + LOC_COUNT)
        return named[i - LOC_COUNT];
    snprintf(loc, 24, "<|LOC_%zu|>", i - before);
    return (special_token){LOC_FIRST + (int)(i - before), loc, false};
}

/* Words whose prefixes are pieces: each character joins what stands left of it. */
static const char *const words[] = {"OCR",   "User",     "Assistant", "Table",      "Formula",
                                    "Chart", "Spotting", "Seal",      "Recognition"};
#define WORD_COUNT (sizeof words / sizeof *words)

/* Code points with a piece of their own, beside the digits and the space mark. */
static const struct {
    uint32_t first, last;
} singles[] = {
    {0x2581, 0x2581}, {0x21, 0x2f},     {0x3a, 0x7e},     {0xa1, 0xac},     {0xae, 0x17f},    {0x391, 0x3a1},
    {0x3a3, 0x3c9},   {0x410, 0x44f},   {0x2010, 0x2027}, {0x2030, 0x203b}, {0x20ac, 0x20ac}, {0x3000, 0x3003},
    {0x3008, 0x3011}, {0x3041, 0x3096}, {0x30a1, 0x30fc}, {0x4e00, 0x9fff}, {0xff01, 0xff5e},
};

static size_t put_utf8(uint32_t c, char out[5])
{
    size_t n = 0;
    if (c < 0x80) {
        out[n++] = (char)c;
    } else if (c < 0x800) {
        out[n++] = (char)(0xc0 | c >> 6);
        out[n++] = (char)(0x80 | (c & 0x3f));
    } else {
        out[n++] = (char)(0xe0 | c >> 12);
        out[n++] = (char)(0x80 | (c >> 6 & 0x3f));
        out[n++] = (char)(0x80 | (c & 0x3f));
    }
    out[n] = 0;
    return n;
}

static void put_quoted(strbuf *b, const char *s)
{
    strbuf_putc(b, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            strbuf_putc(b, '\\');
        strbuf_putc(b, *s);
    }
    strbuf_putc(b, '"');
}

/* ---- tokenizer.json ---- */

typedef struct vocabulary {
    strbuf *out;
    int next, size;
    size_t added; /* next added token to place */
} vocabulary;

static void put_piece(vocabulary *v, const char *piece)
{
    strbuf_puts(v->out, v->next ? ",\n      " : "\n      ");
    put_quoted(v->out, piece);
    strbuf_printf(v->out, ": %d", v->next++);
}

/* Added tokens whose turn it is. */
static void put_due_added(vocabulary *v)
{
    char loc[24];
    while (v->added < ADDED_COUNT) {
        special_token t = added_token(v->added, loc);
        if (t.id != v->next)
            return;
        put_piece(v, t.text);
        v->added++;
    }
}

static void put_vocabulary(strbuf *b, int size)
{
    vocabulary v = {.out = b, .size = size};
    char piece[40];
    put_due_added(&v);
    for (int d = 0; d < 10; d++) {
        snprintf(piece, sizeof piece, "%d", d);
        put_piece(&v, piece);
    }
    for (int i = 0; i < 256; i++) {
        snprintf(piece, sizeof piece, "<0x%02X>", (unsigned)i);
        put_piece(&v, piece);
    }
    for (size_t w = 0; w < WORD_COUNT; w++)
        for (size_t n = 2; n <= strlen(words[w]); n++) {
            snprintf(piece, sizeof piece, "%.*s", (int)n, words[w]);
            put_piece(&v, piece);
        }
    for (size_t r = 0; r < sizeof singles / sizeof *singles; r++)
        for (uint32_t c = singles[r].first; c <= singles[r].last; c++) {
            put_utf8(c, piece);
            put_piece(&v, piece);
        }
    while (v.next < v.size) {
        put_due_added(&v);
        if (v.next >= v.size)
            break;
        snprintf(piece, sizeof piece, "<|filler_%d|>", v.next);
        put_piece(&v, piece);
    }
}

static void put_merges(strbuf *b)
{
    bool first = true;
    for (size_t w = 0; w < WORD_COUNT; w++)
        for (size_t n = 1; n < strlen(words[w]); n++) {
            strbuf_printf(b, "%s\n      \"%.*s %c\"", first ? "" : ",", (int)n, words[w], words[w][n]);
            first = false;
        }
}

void synth_put_tokenizer(strbuf *b, const paddleocr_vl_config *c)
{
    char loc[24];
    strbuf_puts(b, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [");
    for (size_t i = 0; i < ADDED_COUNT; i++) {
        special_token t = added_token(i, loc);
        strbuf_printf(b, "%s\n    {\"id\": %d, \"content\": ", i ? "," : "", t.id);
        put_quoted(b, t.text);
        strbuf_printf(
            b, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": %s}",
            t.special ? "true" : "false");
    }
    strbuf_puts(b,
                "\n  ],\n"
                "  \"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [\n"
                "    {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"\xe2\x96\x81\"}]},\n"
                "  \"pre_tokenizer\": null,\n"
                "  \"post_processor\": null,\n"
                "  \"decoder\": {\"type\": \"Sequence\", \"decoders\": [\n"
                "    {\"type\": \"Replace\", \"pattern\": {\"String\": \"\xe2\x96\x81\"}, \"content\": \" \"},\n"
                "    {\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}]},\n"
                "  \"model\": {\n"
                "    \"type\": \"BPE\", \"dropout\": null, \"unk_token\": \"<unk>\", \"continuing_subword_prefix\": null,\n"
                "    \"end_of_word_suffix\": null, \"fuse_unk\": true, \"byte_fallback\": true, \"ignore_merges\": false,\n"
                "    \"vocab\": {");
    put_vocabulary(b, c->text.vocab_size);
    strbuf_puts(b, "\n    },\n    \"merges\": [");
    put_merges(b);
    strbuf_puts(b, "\n    ]\n  }\n}\n");
}

/* ---- tokenizer_config.json, special_tokens_map.json ---- */

static void put_named_tokens(strbuf *b)
{
    strbuf_puts(b, "  \"bos_token\": \"<s>\",\n"
                   "  \"cls_token\": \"<|begin_of_sentence|>\",\n"
                   "  \"eos_token\": \"</s>\",\n"
                   "  \"mask_token\": \"<mask:1>\",\n"
                   "  \"pad_token\": \"<unk>\",\n"
                   "  \"sep_token\": \"<|end_of_sentence|>\",\n"
                   "  \"unk_token\": \"<unk>\",\n"
                   "  \"additional_special_tokens\": [\"<|IMAGE_PLACEHOLDER|>\", \"<|image_pad|>\", \"<|IMAGE_START|>\", "
                   "\"<|IMAGE_END|>\", \"<|video_pad|>\"]");
}

void synth_put_tokenizer_config(strbuf *b, const paddleocr_vl_config *c)
{
    char loc[24];
    strbuf_puts(b, "{\n");
    put_named_tokens(b);
    strbuf_printf(b,
                  ",\n"
                  "  \"add_bos_token\": false,\n"
                  "  \"add_eos_token\": false,\n"
                  "  \"add_prefix_space\": false,\n"
                  "  \"clean_up_tokenization_spaces\": false,\n"
                  "  \"image_token\": \"<|IMAGE_PLACEHOLDER|>\",\n"
                  "  \"legacy\": true,\n"
                  "  \"model_max_length\": %d,\n"
                  "  \"processor_class\": \"PaddleOCRVLProcessor\",\n"
                  "  \"spaces_between_special_tokens\": false,\n"
                  "  \"tokenizer_class\": \"LlamaTokenizer\",\n"
                  "  \"use_default_system_prompt\": false,\n"
                  "  \"added_tokens_decoder\": {",
                  c->text.max_position_embeddings);
    for (size_t i = 0; i < ADDED_COUNT; i++) {
        special_token t = added_token(i, loc);
        strbuf_printf(b, "%s\n    \"%d\": {\"content\": ", i ? "," : "", t.id);
        put_quoted(b, t.text);
        strbuf_printf(
            b, ", \"lstrip\": false, \"normalized\": false, \"rstrip\": false, \"single_word\": false, \"special\": %s}",
            t.special ? "true" : "false");
    }
    strbuf_puts(b, "\n  }\n}\n");
}

void synth_put_special_tokens_map(strbuf *b, const paddleocr_vl_config *c)
{
    (void)c;
    strbuf_puts(b, "{\n");
    put_named_tokens(b);
    strbuf_puts(b, "\n}\n");
}
