/* session_internal.h - what the session's files share. */
#ifndef ENGINE_SESSION_INTERNAL_H
#define ENGINE_SESSION_INTERNAL_H
#include "engine/kv_cache.h"
#include "engine/session.h"
#include "graph/run.h"

#include <stdatomic.h>

/* Inputs of one prefill or decode call, sized for the plan's bounds. */
typedef struct text_batch {
    int32_t *ids, *positions, *slots, *feature_rows; /* by token */
    int32_t *lengths, *cu_seqlens, *last, *history_len;
    int32_t *block_table; /* [sequences, columns] of the call */
    float *params;
    int64_t *seeds;
    int32_t *history; /* [sequences, columns of the call] */
    size_t block_table_cap, history_cap;
} text_batch;

struct session {
    const vl_model *model;
    session_options options;
    pages arenas[2]; /* vision, prefill and decode use the first, the projector the second */
    run *runs[VL_PLANS];
    kv_cache kv;
    text_batch batch;
    sequence **sequences; /* all, finished ones too */
    size_t n_sequences, max_sequences;
    sequence **active; /* scratch of a step */
    profile prof;
    atomic_bool cancelled;
};

double clock_ms(void);
profile *session_profiler(session *s); /* NULL unless profiling */

/* Vision tower and projector on patches [P, 3, patch, patch] of the vision tower's dtype; out->grid says how many. Fills
 * out->data. */
ink_status session_encode_patches(session *s, void *patches, features *out);

/* batch.c */
ink_status batch_open(text_batch *b, const vl_model *m);
void batch_close(text_batch *b);
ink_status batch_bind(session *s, run *r, sequence *const *q, int n, int32_t new_tokens); /* everything per sequence */

/* Runs the rest of a sequence's prompt through prefill and returns the first token in q->last_id. */
ink_status prefill_sequence(session *s, sequence *q, const void *feature_data, const int32_t *positions);
/* One decode step; the new tokens go to each q->last_id. */
ink_status decode_sequences(session *s, sequence *const *q, int n);

/* Takes a generated token into a sequence: text, callback, end conditions. */
ink_status accept_token(session *s, sequence *q, int32_t id);
#endif
