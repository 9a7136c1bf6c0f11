/* session.h - generation: sequences over one model, decoded together, each with its own text.
 *
 *   features f;                          // one image through vision tower and projector
 *   session_encode_image(s, &img, NULL, &f);
 *   session_add(s, &request, &seq);      // prefill; the first token is there
 *   while (session_active(s)) session_step(s); // one token for every active sequence
 *
 * A sequence's tokens do not depend on the others: every kernel's output row depends on its own input only. A session
 * belongs to one thread at a time, except session_cancel. */
#ifndef ENGINE_SESSION_H
#define ENGINE_SESSION_H
#include "engine/positions.h"
#include "graph/profile.h"
#include "image/processor.h"
#include "models/paddleocr_vl/model.h"
#include "text/tokenizer.h"

typedef struct session session;

typedef struct session_options {
    int32_t max_tokens_per_sequence; /* prompt and answer; sizes the KV pools. 0: what the largest image and 8192 new tokens
                                        need */
    int32_t
        prefill_chunk; /* most prompt tokens of one prefill call; 0: the plan's bound. The result does not depend on it */
    bool profile;      /* collect per-kernel times */
} session_options;

ink_status session_create(const vl_model *m, const session_options *o, session **out);
void session_free(session *s);
const vl_model *session_model(const session *s);
int64_t session_capacity(const session *s); /* tokens of one sequence when max_sequences share the KV cache evenly */

/* What was collected; NULL without `profile`. Valid until the next call on the session. */
const profile *session_profile(const session *s);
void session_profile_reset(session *s);

/* ---- images ---- */

/* An image as the language model sees it. */
typedef struct features {
    void *data; /* [grid.tokens, H] in the projector's dtype; owned */
    image_grid grid;
    double vision_ms, preprocess_ms;
} features;

/* Limits of one call, within the bounds the model was loaded for; 0: the model's. */
typedef struct pixel_limits {
    int64_t min_pixels, max_pixels;
} pixel_limits;

ink_status session_encode_image(session *s, const image *img, const pixel_limits *limits, features *out);
void features_free(features *f);

/* ---- sequences ---- */
typedef enum finish_reason { FINISH_NONE, FINISH_STOP, FINISH_LENGTH, FINISH_CANCELLED } finish_reason;
const char *finish_reason_name(finish_reason r); /* "stop" */

/* Called with each piece of text when it is complete (whole UTF-8 characters). Returning false ends the sequence. */
typedef bool (*text_callback)(void *user, const char *text, size_t length);

typedef struct generation_request {
    const int32_t *ids; /* the prompt, placeholders expanded */
    size_t n_ids;
    const features *images; /* in order of their placeholders */
    size_t n_images;
    int max_tokens;           /* of the answer; at least 1 */
    float temperature, top_p; /* 0 and any: greedy */
    float repetition_penalty; /* 1: none */
    uint64_t seed;
    bool keep_special;     /* special tokens stay in the text */
    bool loop_guard;       /* stop when the text starts to repeat itself without end */
    size_t loop_min_count; /* shortest text the guard looks at, in code points */
    text_callback on_text; /* may be NULL */
    void *user;
} generation_request;

typedef struct sequence {
    /* read by the owner */
    strbuf text;
    token_list generated; /* without the final end-of-text token */
    finish_reason finish;
    bool looped; /* the loop guard cut the text */
    size_t prompt_tokens, image_tokens;
    double prefill_ms, generate_ms;
    /* the session's */
    generation_request request; /* pointers of it are not used after session_add */
    token_list history;         /* prompt and answer, for the repetition penalty */
    detokenizer *decoder;
    int32_t *blocks, n_blocks;
    int32_t length;  /* tokens in the KV cache */
    int32_t last_id; /* generated, not yet in the cache */
    int32_t delta;   /* position of token i is i + delta */
} sequence;

/* Runs the prompt and yields the first token. INK_RESOURCE_EXHAUSTED when the session is full (too many sequences, or not
 * enough KV blocks until others are removed); INK_INVALID_ARGUMENT when it could never fit. */
ink_status session_add(session *s, const generation_request *r, sequence **out);

/* Number of sequences that have not finished. */
int session_active(const session *s);

/* One more token for every unfinished sequence. */
ink_status session_step(session *s);

/* Frees a sequence, finished or not, and gives back its blocks. */
void session_remove(session *s, sequence *q);

/* Ends all unfinished sequences at their next token with FINISH_CANCELLED, and those added later at their first, until
 * session_resume. session_cancel may be called from any thread and from a signal handler. */
void session_cancel(session *s);
bool session_cancelled(const session *s);
void session_resume(session *s);
#endif
