/* tokenizer.h - text <-> token ids by a Hugging Face tokenizer.json (byte-pair encoding with byte fallback).
 *
 *     tokenizer *t;
 *     TRY(tokenizer_parse(bytes, n, &t));
 *     token_list ids = {0};
 *     TRY(tokenizer_encode(t, text, length, TOKENIZE_TEXT, &ids));
 *     ...
 *     token_list_free(&ids);
 *     tokenizer_free(t);
 *
 * A tokenizer never changes after tokenizer_parse: any number of threads may use one at the same time.
 *
 * Understood: model BPE (byte_fallback, fuse_unk, ignore_merges, merges as "a b" strings or as pairs); normalizer null,
 * Replace of a string, Prepend, NFC, NFD, NFKC, NFKD or a Sequence of them; pre_tokenizer null or Metaspace; decoder
 * null, Replace, ByteFallback, Fuse, Strip, Metaspace or a Sequence of them; added tokens with all their flags.
 * Everything else is refused by name with INK_UNIMPLEMENTED. post_processor TemplateProcessing, truncation and padding
 * are accepted and have no effect: no token is ever added or cut. Normal forms and the word test of single_word use the
 * Unicode tables of the utf8proc library at hand. */
#ifndef TEXT_TOKENIZER_H
#define TEXT_TOKENIZER_H
#include "core/strbuf.h"

typedef struct tokenizer tokenizer;

/* Largest id + 1 that a file may use; a bound on what a lying file can make us allocate. */
#define TOKENIZER_MAX_IDS (1 << 20)

/* A growing list of ids. Start with {0}. */
typedef struct token_list {
    int32_t *ids;
    size_t count, capacity;
} token_list;

ink_status token_list_add(token_list *l, int32_t id);
void token_list_free(token_list *l);

/* Parses the n bytes of a tokenizer.json (copied: they may be freed afterwards). INK_BAD_DATA for a file that is damaged
 * or contradicts itself, INK_UNIMPLEMENTED for a component not listed above. *out is NULL on failure. */
ink_status tokenizer_parse(const char *json, size_t n, tokenizer **out);
void tokenizer_free(tokenizer *t);

/* ---- lookups ---- */
size_t tokenizer_size(const tokenizer *t);                                   /* largest id + 1 */
int32_t tokenizer_id(const tokenizer *t, const char *token);                 /* -1: no such token */
const char *tokenizer_token(const tokenizer *t, int32_t id, size_t *length); /* NULL: unused or outside the table */
bool tokenizer_is_special(const tokenizer *t, int32_t id);
bool tokenizer_is_added(const tokenizer *t, int32_t id);

/* ---- encoding ---- */
typedef enum tokenize_mode {
    TOKENIZE_ALL,   /* all added tokens are found in the text, as the reference does by default: trusted text only */
    TOKENIZE_TEXT,  /* for text from users: literal special tokens stay text. Added tokens that are not special (the
                     * table tags) are found all the same. Equals the reference's encode_special_tokens=True */
    TOKENIZE_PLAIN, /* no added token is found */
} tokenize_mode;

/* Appends the ids of text. In the modes TEXT and PLAIN no special id is ever produced, except the unknown token and byte
 * tokens where the file flags them special. Text that is not UTF-8 is read as if each ill-formed part were U+FFFD. */
ink_status tokenizer_encode(const tokenizer *t, const char *text, size_t n, tokenize_mode mode, token_list *out);

/* ---- decoding ----
 * The text is always valid UTF-8: a run of byte tokens that is not, gives one U+FFFD for each token of the run (as the
 * reference does). An id without a token gives nothing. */
ink_status tokenizer_decode(const tokenizer *t, const int32_t *ids, size_t n, bool skip_special, strbuf *out);

/* Decoding as ids arrive. What has been appended is final; a run of byte tokens is held back until it ends, so no
 * character is ever split. All pieces together equal tokenizer_decode of all ids. One thread at a time; the tokenizer
 * must outlive it. */
#define DETOKENIZER_MAX_STAGES 8

typedef struct detokenizer_stage {
    strbuf buffer;
    size_t count, checked;
    bool broken;
} detokenizer_stage;

typedef struct detokenizer {
    const tokenizer *t;
    bool skip_special;
    detokenizer_stage stages[DETOKENIZER_MAX_STAGES];
    strbuf *out; /* of the call in progress */
} detokenizer;

void detokenizer_init(detokenizer *d, const tokenizer *t, bool skip_special);
ink_status detokenizer_feed(detokenizer *d, int32_t id, strbuf *out);
ink_status detokenizer_finish(detokenizer *d, strbuf *out); /* the rest; d is then as after init */
void detokenizer_free(detokenizer *d);
#endif
