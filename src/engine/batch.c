/* batch.c - filling the inputs of prefill and decode from sequences, and running them. */
#include "engine/session_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ink_status batch_open(text_batch *b, const vl_model *m)
{
    size_t t = (size_t)m->bounds[DIM_TOKENS], s = (size_t)m->bounds[DIM_SEQUENCES];
    if (t < s)
        t = s;
    b->ids = alloc_array(t, sizeof *b->ids);
    b->positions = alloc_array(3 * t, sizeof *b->positions);
    b->slots = alloc_array(t, sizeof *b->slots);
    b->feature_rows = alloc_array(t, sizeof *b->feature_rows);
    b->lengths = alloc_array(s, sizeof *b->lengths);
    b->cu_seqlens = alloc_array(s + 1, sizeof *b->cu_seqlens);
    b->last = alloc_array(s, sizeof *b->last);
    b->history_len = alloc_array(s, sizeof *b->history_len);
    b->params = alloc_array(3 * s, sizeof *b->params);
    b->seeds = alloc_array(2 * s, sizeof *b->seeds);
    bool ok = b->ids && b->positions && b->slots && b->feature_rows && b->lengths && b->cu_seqlens && b->last &&
              b->history_len && b->params && b->seeds;
    return ok ? INK_OK : INK_RESOURCE_EXHAUSTED;
}

void batch_close(text_batch *b)
{
    free(b->ids);
    free(b->positions);
    free(b->slots);
    free(b->feature_rows);
    free(b->lengths);
    free(b->cu_seqlens);
    free(b->last);
    free(b->history_len);
    free(b->params);
    free(b->seeds);
    free(b->block_table);
    free(b->history);
}

/* Block tables of the call, as wide as its longest sequence needs; unused entries are 0 and never read. */
static ink_status fill_block_table(text_batch *b, sequence *const *q, int n, int32_t new_tokens, int64_t *columns)
{
    *columns = 1;
    for (int i = 0; i < n; i++) {
        int64_t need = (q[i]->length + new_tokens + KV_BLOCK - 1) / KV_BLOCK;
        *columns = need > *columns ? need : *columns;
    }
    TRY(grow_array(&b->block_table, &b->block_table_cap, (size_t)(n * *columns), sizeof *b->block_table));
    for (int i = 0; i < n; i++)
        for (int64_t c = 0; c < *columns; c++)
            b->block_table[i * *columns + c] = c < q[i]->n_blocks ? q[i]->blocks[c] : 0;
    return INK_OK;
}

/* Sampler inputs. The history matters only with a repetition penalty; without one the table has a single unused column. */
static ink_status fill_sampling(text_batch *b, sequence *const *q, int n, int64_t *columns)
{
    *columns = 1;
    for (int i = 0; i < n; i++)
        if (q[i]->request.repetition_penalty != 1 && (int64_t)q[i]->history.count > *columns)
            *columns = (int64_t)q[i]->history.count;
    TRY(grow_array(&b->history, &b->history_cap, (size_t)(n * *columns), sizeof *b->history));
    for (int i = 0; i < n; i++) {
        const generation_request *r = &q[i]->request;
        bool penalised = r->repetition_penalty != 1;
        b->history_len[i] = penalised ? (int32_t)q[i]->history.count : 0;
        b->history[i * *columns] = 0;
        if (penalised && q[i]->history.count)
            memcpy(b->history + i * *columns, q[i]->history.ids, q[i]->history.count * sizeof *b->history);
        b->params[3 * i] = r->temperature;
        b->params[3 * i + 1] = r->top_p;
        b->params[3 * i + 2] = r->repetition_penalty;
        b->seeds[2 * i] = (int64_t)r->seed;
        b->seeds[2 * i + 1] = (int64_t)q[i]->generated.count;
    }
    return INK_OK;
}

ink_status batch_bind(session *s, run *r, sequence *const *q, int n, int32_t new_tokens)
{
    text_batch *b = &s->batch;
    int64_t block_columns, history_columns;
    TRY(fill_block_table(b, q, n, new_tokens, &block_columns));
    TRY(fill_sampling(b, q, n, &history_columns));
    b->cu_seqlens[0] = 0;
    for (int i = 0; i < n; i++) {
        b->lengths[i] = q[i]->length + new_tokens;
        b->cu_seqlens[i + 1] = b->cu_seqlens[i] + new_tokens;
    }
    run_set_symbol(r, DIM_SEQUENCES, n);
    run_set_symbol(r, DIM_KV_BLOCKS, block_columns);
    run_set_symbol(r, DIM_HISTORY, history_columns);
    run_set_symbol(r, DIM_POOL, s->kv.blocks);
    const struct {
        const char *name;
        void *data;
    } inputs[] = {
        {"ids", b->ids},         {"positions", b->positions},    {"slots", b->slots},   {"block_table", b->block_table},
        {"lengths", b->lengths}, {"cu_seqlens", b->cu_seqlens},  {"params", b->params}, {"seeds", b->seeds},
        {"history", b->history}, {"history_len", b->history_len}};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        TRY(run_bind(r, inputs[i].name, inputs[i].data));
    return INK_OK;
}

static int32_t slot_of(const sequence *q, int32_t index)
{
    return q->blocks[index / KV_BLOCK] * KV_BLOCK + index % KV_BLOCK;
}

/* Tokens [q->length, q->length + n) of the prompt. */
static void fill_prompt(text_batch *b, const sequence *q, const int32_t *positions, int32_t n, int32_t image_token,
                        int32_t *next_row)
{
    for (int32_t i = 0; i < n; i++) {
        int32_t at = q->length + i, id = q->request.ids[at];
        b->ids[i] = id;
        b->slots[i] = slot_of(q, at);
        b->feature_rows[i] = id == image_token ? (*next_row)++ : -1;
        memcpy(b->positions + 3 * i, positions + 3 * at, 3 * sizeof *positions);
    }
}

ink_status prefill_sequence(session *s, sequence *q, const void *feature_data, const int32_t *positions)
{
    run *r = s->runs[VL_PREFILL];
    const int32_t total = (int32_t)q->request.n_ids, chunk = s->options.prefill_chunk;
    const int32_t bound = (int32_t)s->model->bounds[DIM_TOKENS], most = chunk > 0 && chunk < bound ? chunk : bound;
    int32_t next_row = 0;
    while (q->length < total && !session_cancelled(s)) {
        int32_t n = total - q->length < most ? total - q->length : most;
        fill_prompt(&s->batch, q, positions, n, s->model->config.image_token_id, &next_row);
        s->batch.last[0] = n - 1;
        TRY(batch_bind(s, r, &q, 1, n));
        run_set_symbol(r, DIM_TOKENS, n);
        run_set_symbol(r, DIM_FEATURES, (int64_t)q->image_tokens);
        TRY(run_bind(r, "features", (void *)(uintptr_t)feature_data));
        TRY(run_bind(r, "feature_rows", s->batch.feature_rows));
        TRY(run_bind(r, "last", s->batch.last));
        TRY(run_execute(r, session_profiler(s)));
        q->length += n;
    }
    if (q->length == total)
        q->last_id = *(const int32_t *)run_output(r, "next")->data;
    return INK_OK;
}

ink_status decode_sequences(session *s, sequence *const *q, int n)
{
    text_batch *b = &s->batch;
    run *r = s->runs[VL_DECODE];
    for (int i = 0; i < n; i++) {
        b->ids[i] = q[i]->last_id;
        b->slots[i] = slot_of(q[i], q[i]->length);
        b->positions[3 * i] = b->positions[3 * i + 1] = b->positions[3 * i + 2] = q[i]->length + q[i]->delta;
    }
    TRY(batch_bind(s, r, q, n, 1));
    TRY(run_execute(r, session_profiler(s)));
    const int32_t *next = run_output(r, "next")->data;
    for (int i = 0; i < n; i++) {
        q[i]->length++;
        q[i]->last_id = next[i];
    }
    return INK_OK;
}
