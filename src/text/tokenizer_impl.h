/* tokenizer_impl.h - the tables behind tokenizer.h, shared by its loader, encoder and decoder. */
#ifndef TEXT_TOKENIZER_IMPL_H
#define TEXT_TOKENIZER_IMPL_H
#include "core/memory.h"
#include "text/tokenizer.h"

/* ---- hash tables (tokenizer_tables.c): open addressing, linear probing, at most half full ---- */
typedef struct pair_slot {
    uint64_t key;
    uint32_t rank; /* order of a merge; unused by tries */
    int32_t value; /* -1: empty slot */
} pair_slot;

typedef struct pair_map {
    pair_slot *slots;
    size_t mask;
} pair_map;

ink_status pair_map_init(pair_map *m, size_t entries); /* room for `entries`, which cannot be exceeded */
/* Inserts; false if the key is present already (its entry is kept). */
bool pair_map_put(pair_map *m, uint64_t key, uint32_t rank, int32_t value);
const pair_slot *pair_map_find(const pair_map *m, uint64_t key); /* NULL: none */
void pair_map_free(pair_map *m);

static inline uint64_t pair_key(int32_t left, int32_t right) { return (uint64_t)(uint32_t)left << 32 | (uint32_t)right; }

/* ---- pieces ---- */
enum {
    PIECE_ADDED = 1,
    PIECE_SPECIAL = 2,
    PIECE_SINGLE_WORD = 4,
    PIECE_LSTRIP = 8,
    PIECE_RSTRIP = 16,
    PIECE_NORMALIZED = 32,
    PIECE_BYTE = 64,   /* "<0x0A>": stands for a byte */
    PIECE_MODEL = 128, /* in the model's vocabulary; an added token need not be */
};

/* Slot of the table from texts to ids; the tag (part of the hash) spares most looks at the piece. */
typedef struct text_slot {
    uint32_t tag;
    int32_t id; /* -1: empty */
} text_slot;

typedef struct piece {
    const char *text;    /* in the tokenizer's arena, 0-terminated; NULL: no token has this id */
    const char *decoded; /* what decoding sees: text, but for a NORMALIZED added token its normalised form */
    uint32_t length, decoded_length;
    uint32_t flags;
} piece;

/* ---- added tokens as a trie over bytes ---- */
typedef struct token_trie {
    pair_map edges; /* node << 8 | byte -> node */
    int32_t *token; /* by node: id of the token that ends here, or -1 */
    int32_t nodes;
    bool first[256]; /* bytes that begin a token */
} token_trie;

ink_status token_trie_init(token_trie *trie, size_t total_length);
void token_trie_add(token_trie *trie, const char *text, size_t n, int32_t id); /* the first of equal texts wins */
int32_t token_trie_longest(const token_trie *trie, const char *text, size_t n, size_t *length); /* -1: none */
void token_trie_free(token_trie *trie);

/* ---- components ---- */
typedef enum normalizer_kind { NORMALIZER_REPLACE, NORMALIZER_PREPEND, NORMALIZER_UNICODE } normalizer_kind;

typedef struct normalizer_step {
    normalizer_kind kind;
    const char *pattern, *content; /* REPLACE, PREPEND (content only) */
    size_t pattern_length, content_length;
    int unicode; /* utf8proc options of the normalisation form */
} normalizer_step;

/* Replaces the contents of `text` by its normalised form; `spare` is scratch. */
ink_status normalizer_apply(const normalizer_step *steps, size_t n, strbuf *text, strbuf *spare);

typedef enum prepend_scheme { PREPEND_NEVER, PREPEND_FIRST, PREPEND_ALWAYS } prepend_scheme;

typedef struct metaspace {
    bool present, split;
    prepend_scheme scheme;
    char mark[5]; /* one character, usually U+2581 */
    size_t mark_length;
} metaspace;

typedef enum decoder_kind {
    DECODER_REPLACE,
    DECODER_BYTES,
    DECODER_STRIP,
    DECODER_STRIP_FUSED, /* Strip behind Fuse: works on the whole text instead of each token */
    DECODER_METASPACE,
    DECODER_JOIN, /* no decoder in the file: tokens are joined by spaces */
} decoder_kind;

typedef struct decoder_step {
    decoder_kind kind;
    const char *pattern, *content;
    size_t pattern_length, content_length; /* STRIP: content is the character */
    size_t start, stop;                    /* STRIP: how many at most */
    bool drops_first;                      /* METASPACE: marks of the first token vanish */
} decoder_step;

struct tokenizer {
    arena memory;
    piece *pieces; /* by id */
    size_t count;  /* largest id + 1 */
    text_slot *by_text;
    size_t by_text_mask;
    pair_map merges;      /* (left id, right id) -> rank, resulting id */
    int32_t byte_id[256]; /* -1: the vocabulary has no token for this byte */
    int32_t unknown;      /* -1: unknown characters are dropped */
    bool byte_fallback, fuse_unknown, ignore_merges;
    token_trie raw, normalized; /* added tokens found before and after normalisation */
    normalizer_step *normalizers;
    size_t normalizer_count;
    metaspace metaspace;
    decoder_step decoders[DETOKENIZER_MAX_STAGES];
    size_t decoder_count;
};

/* Id of a piece by its text; -1 if there is none, or none with all of `flags`. */
int32_t tokenizer_find(const tokenizer *t, const char *text, size_t n, uint32_t flags);

/* The normalizer, pre_tokenizer and decoder sections of the file (tokenizer_components.c). */
struct json_t;
ink_status tokenizer_read_components(tokenizer *t, const struct json_t *root);
#endif
