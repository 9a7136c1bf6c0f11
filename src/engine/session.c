#define _POSIX_C_SOURCE 200809L
#include "engine/session.h"

#include "engine/session_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double clock_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

const char *finish_reason_name(finish_reason r)
{
    static const char *const names[] = {"none", "stop", "length", "cancelled"};
    return names[r];
}

/* ---- life ---- */

static ink_status open_runs(session *s)
{
    static const int arena_of[VL_PLANS] = {0, 1, 0, 0};
    size_t bytes[2] = {0, 0};
    for (int i = 0; i < VL_PLANS; i++) {
        size_t need = plan_arena_bytes(s->model->plans[i]);
        bytes[arena_of[i]] = need > bytes[arena_of[i]] ? need : bytes[arena_of[i]];
    }
    for (int i = 0; i < 2; i++)
        TRY(pages_map(&s->arenas[i], bytes[i] ? bytes[i] : 64));
    for (int i = 0; i < VL_PLANS; i++)
        TRY(run_create(s->model->plans[i], s->arenas[arena_of[i]].data, &s->runs[i]));
    return INK_OK;
}

static ink_status open_kv(session *s)
{
    const paddleocr_vl_text_config *t = &s->model->config.text;
    int64_t tokens = s->options.max_tokens_per_sequence;
    if (tokens <= 0)
        tokens = s->model->bounds[DIM_TOKENS] + 8192;
    if (tokens > t->max_position_embeddings)
        tokens = t->max_position_embeddings;
    int64_t blocks = (tokens + KV_BLOCK - 1) / KV_BLOCK * (int64_t)s->max_sequences;
    if (blocks > s->model->bounds[DIM_POOL])
        return failure(INK_RESOURCE_EXHAUSTED, "KV cache: %lld blocks, at most %lld", (long long)blocks,
                       (long long)s->model->bounds[DIM_POOL]);
    size_t block_bytes =
        (size_t)t->num_key_value_heads * KV_BLOCK * (size_t)t->head_dim * ink_dtype_size(s->model->dtypes[2]);
    TRY(kv_cache_open(&s->kv, t->num_hidden_layers, block_bytes, (int32_t)blocks));
    for (int l = 0; l < t->num_hidden_layers; l++) {
        char name[32];
        for (int p = VL_PREFILL; p <= VL_DECODE; p++) {
            snprintf(name, sizeof name, "k_pool.%d", l);
            TRY(run_bind(s->runs[p], name, kv_cache_k_pool(&s->kv, l)));
            snprintf(name, sizeof name, "v_pool.%d", l);
            TRY(run_bind(s->runs[p], name, kv_cache_v_pool(&s->kv, l)));
        }
    }
    return INK_OK;
}

static ink_status open_session(session *s)
{
    s->max_sequences = (size_t)s->model->bounds[DIM_SEQUENCES];
    s->sequences = alloc_array(s->max_sequences, sizeof(sequence *));
    s->active = alloc_array(s->max_sequences, sizeof(sequence *));
    if (!s->sequences || !s->active)
        return INK_RESOURCE_EXHAUSTED;
    TRY(open_runs(s));
    TRY(batch_open(&s->batch, s->model));
    return open_kv(s);
}

ink_status session_create(const vl_model *m, const session_options *o, session **out)
{
    session *s = alloc_array(1, sizeof *s);
    *out = NULL;
    if (!s)
        return INK_RESOURCE_EXHAUSTED;
    s->model = m;
    if (o)
        s->options = *o;
    ink_status status = open_session(s);
    if (status == INK_OK)
        *out = s;
    else
        session_free(s);
    return status;
}

void session_free(session *s)
{
    if (!s)
        return;
    while (s->n_sequences)
        session_remove(s, s->sequences[0]);
    for (int i = 0; i < VL_PLANS; i++)
        run_free(s->runs[i]);
    for (int i = 0; i < 2; i++)
        pages_unmap(&s->arenas[i]);
    kv_cache_close(&s->kv);
    batch_close(&s->batch);
    profile_free(&s->prof);
    free(s->sequences);
    free(s->active);
    free(s);
}

const vl_model *session_model(const session *s) { return s->model; }
profile *session_profiler(session *s) { return s->options.profile ? &s->prof : NULL; }
const profile *session_profile(const session *s) { return s->options.profile ? &s->prof : NULL; }
void session_profile_reset(session *s) { profile_free(&s->prof); }
void session_cancel(session *s) { atomic_store(&s->cancelled, true); }
bool session_cancelled(const session *s) { return atomic_load(&s->cancelled); }
void session_resume(session *s) { atomic_store(&s->cancelled, false); }
int64_t session_capacity(const session *s) { return (int64_t)s->kv.blocks * KV_BLOCK / (int64_t)s->max_sequences; }

/* ---- images ---- */

void features_free(features *f)
{
    free(f->data);
    *f = (features){0};
}

static ink_status choose_grid(const session *s, const image *img, const pixel_limits *limits, image_processor *p,
                              image_grid *g)
{
    const paddleocr_vl_config *c = &s->model->config;
    *p = (image_processor){.min_pixels = c->image.min_pixels,
                           .max_pixels = c->image.max_pixels,
                           .patch_size = c->vision.patch_size,
                           .merge_size = c->vision.spatial_merge_size,
                           .rescale_factor = c->image.rescale_factor};
    for (int i = 0; i < 3; i++) {
        p->mean[i] = (float)c->image.image_mean[i];
        p->std[i] = (float)c->image.image_std[i];
    }
    if (limits)
        TRY(image_processor_limit(&p->min_pixels, &p->max_pixels, limits->min_pixels, limits->max_pixels));
    TRY(image_processor_check(p));
    TRY(image_processor_grid(p, img->width, img->height, g));
    if (g->patches > s->model->bounds[DIM_PATCHES])
        return failure(INK_INVALID_ARGUMENT,
                       "image: %lld patches, the model was loaded for at most %lld (load it with a larger max_pixels)",
                       (long long)g->patches, (long long)s->model->bounds[DIM_PATCHES]);
    return INK_OK;
}

static ink_status run_vision(session *s, void *patches, int32_t *positions, features *out)
{
    const image_grid *g = &out->grid;
    int32_t grid[3] = {1, g->thw[1], g->thw[2]}, cu_seqlens[2] = {0, (int32_t)g->patches};
    run *v = s->runs[VL_VISION], *p = s->runs[VL_PROJECTOR];
    for (int32_t i = 0; i < g->patches; i++) {
        positions[2 * i] = i / g->thw[2];
        positions[2 * i + 1] = i % g->thw[2];
    }
    run_set_symbol(v, DIM_PATCHES, g->patches);
    run_set_symbol(p, DIM_PATCHES, g->patches);
    TRY(run_bind(v, "patches", patches));
    TRY(run_bind(v, "positions", positions));
    TRY(run_bind(v, "grid_thw", grid));
    TRY(run_bind(v, "cu_seqlens", cu_seqlens));
    TRY(run_execute(v, session_profiler(s)));
    TRY(run_bind(p, "x", run_output(v, "z")->data));
    TRY(run_bind(p, "grid_thw", grid));
    TRY(run_execute(p, session_profiler(s)));
    const ink_tensor *f = run_output(p, "features");
    memcpy(out->data, f->data, ink_tensor_bytes(f));
    return INK_OK;
}

ink_status session_encode_patches(session *s, void *patches, features *out)
{
    double start = clock_ms();
    int32_t *positions = alloc_array((size_t)out->grid.patches * 2, sizeof *positions);
    out->data = alloc_aligned((size_t)out->grid.tokens * (size_t)s->model->config.text.hidden_size *
                              ink_dtype_size(s->model->dtypes[1]));
    ink_status status = positions && out->data ? run_vision(s, patches, positions, out) : INK_RESOURCE_EXHAUSTED;
    out->vision_ms = clock_ms() - start;
    free(positions);
    if (status != INK_OK)
        features_free(out);
    return status;
}

ink_status session_encode_image(session *s, const image *img, const pixel_limits *limits, features *out)
{
    image_processor p;
    *out = (features){0};
    double start = clock_ms();
    TRY(choose_grid(s, img, limits, &p, &out->grid));
    const ink_dtype dtype = s->model->dtypes[0];
    size_t bytes = image_grid_bytes(&p, &out->grid, dtype);
    void *patches = alloc_aligned(bytes);
    if (!patches)
        return INK_RESOURCE_EXHAUSTED;
    ink_status status = image_processor_run(&p, img, &out->grid, dtype, patches, bytes, s->model->dev.threads);
    out->preprocess_ms = clock_ms() - start;
    if (status == INK_OK)
        status = session_encode_patches(s, patches, out);
    free(patches);
    return status;
}

/* ---- sequences ---- */

static ink_status take_blocks(session *s, sequence *q)
{
    int64_t tokens = (int64_t)q->request.n_ids + q->request.max_tokens;
    int64_t limit = s->model->config.text.max_position_embeddings;
    if ((int64_t)q->request.n_ids >= limit)
        return failure(INK_INVALID_ARGUMENT, "prompt of %zu tokens, the model's context is %lld", q->request.n_ids,
                       (long long)limit);
    if (tokens > limit) {
        tokens = limit;
        q->request.max_tokens = (int)(limit - (int64_t)q->request.n_ids);
    }
    int64_t n = (tokens + KV_BLOCK - 1) / KV_BLOCK;
    if (n > s->kv.blocks)
        return failure(INK_INVALID_ARGUMENT, "a sequence of %lld tokens does not fit a KV cache of %d blocks of %d",
                       (long long)tokens, s->kv.blocks, KV_BLOCK);
    q->blocks = alloc_array((size_t)n, sizeof *q->blocks);
    if (!q->blocks)
        return INK_RESOURCE_EXHAUSTED;
    TRY(kv_cache_take(&s->kv, (int32_t)n, q->blocks));
    q->n_blocks = (int32_t)n;
    return INK_OK;
}

static ink_status check_request(const generation_request *r)
{
    if (!r->n_ids)
        return failure(INK_INVALID_ARGUMENT, "the prompt is empty");
    if (r->max_tokens < 1)
        return failure(INK_INVALID_ARGUMENT, "max_tokens is %d, expected at least 1", r->max_tokens);
    if (!(r->temperature >= 0 && r->temperature <= 100))
        return failure(INK_INVALID_ARGUMENT, "temperature is %g, expected 0 to 100", (double)r->temperature);
    if (!(r->top_p > 0 && r->top_p <= 1))
        return failure(INK_INVALID_ARGUMENT, "top_p is %g, expected more than 0 and at most 1", (double)r->top_p);
    if (!(r->repetition_penalty > 0 && r->repetition_penalty <= 100))
        return failure(INK_INVALID_ARGUMENT, "repetition_penalty is %g, expected more than 0 and at most 100",
                       (double)r->repetition_penalty);
    return INK_OK;
}

/* All images' features behind each other; the only image's own memory when there is one. */
static ink_status join_features(const session *s, const generation_request *r, const void **data, void **owned,
                                size_t *tokens)
{
    size_t row = (size_t)s->model->config.text.hidden_size * ink_dtype_size(s->model->dtypes[1]);
    *tokens = 0;
    *owned = NULL;
    for (size_t i = 0; i < r->n_images; i++)
        *tokens += (size_t)r->images[i].grid.tokens;
    if (r->n_images <= 1) {
        *data = r->n_images ? r->images[0].data : s->arenas[0].data; /* no image: bound, never read */
        return INK_OK;
    }
    char *p = *owned = alloc_aligned(*tokens * row);
    if (!p)
        return INK_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < r->n_images; i++) {
        size_t bytes = (size_t)r->images[i].grid.tokens * row;
        memcpy(p, r->images[i].data, bytes);
        p += bytes;
    }
    *data = *owned;
    return INK_OK;
}

static ink_status prompt_positions(const session *s, sequence *q, int32_t **positions)
{
    const generation_request *r = &q->request;
    const int merge = s->model->config.vision.spatial_merge_size;
    merged_grid *grids = alloc_array(r->n_images, sizeof *grids);
    *positions = alloc_array(3 * r->n_ids, sizeof **positions);
    ink_status status = grids && *positions ? INK_OK : INK_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < r->n_images && status == INK_OK; i++)
        grids[i] = (merged_grid){r->images[i].grid.thw[1] / merge, r->images[i].grid.thw[2] / merge};
    if (status == INK_OK)
        status =
            mrope_positions(r->ids, r->n_ids, s->model->config.image_token_id, grids, r->n_images, *positions, &q->delta);
    free(grids);
    return status;
}

static ink_status start_sequence(session *s, sequence *q)
{
    int32_t *positions = NULL;
    const void *feature_data = NULL;
    void *owned = NULL;
    double start = clock_ms();
    for (size_t i = 0; i < q->request.n_ids; i++)
        TRY(token_list_add(&q->history, q->request.ids[i]));
    q->decoder = alloc_array(1, sizeof *q->decoder);
    if (!q->decoder)
        return INK_RESOURCE_EXHAUSTED;
    detokenizer_init(q->decoder, s->model->tokens, !q->request.keep_special);
    TRY(take_blocks(s, q));
    ink_status status = join_features(s, &q->request, &feature_data, &owned, &q->image_tokens);
    if (status == INK_OK)
        status = prompt_positions(s, q, &positions);
    if (status == INK_OK)
        status = prefill_sequence(s, q, feature_data, positions);
    q->prompt_tokens = q->request.n_ids;
    q->prefill_ms = clock_ms() - start;
    free(owned);
    free(positions);
    return status == INK_OK ? accept_token(s, q, q->last_id) : status;
}

ink_status session_add(session *s, const generation_request *r, sequence **out)
{
    *out = NULL;
    TRY(check_request(r));
    if (s->n_sequences == s->max_sequences)
        return failure(INK_RESOURCE_EXHAUSTED, "the session holds %zu sequences already", s->n_sequences);
    sequence *q = alloc_array(1, sizeof *q);
    if (!q)
        return INK_RESOURCE_EXHAUSTED;
    q->request = *r;
    s->sequences[s->n_sequences++] = q;
    ink_status status = start_sequence(s, q);
    q->request.ids = NULL;
    q->request.images = NULL;
    if (status != INK_OK) {
        session_remove(s, q);
        return status;
    }
    *out = q;
    return INK_OK;
}

void session_remove(session *s, sequence *q)
{
    size_t i = 0;
    while (i < s->n_sequences && s->sequences[i] != q)
        i++;
    if (i == s->n_sequences)
        return;
    memmove(s->sequences + i, s->sequences + i + 1, (s->n_sequences - i - 1) * sizeof(sequence *));
    s->n_sequences--;
    kv_cache_give(&s->kv, q->n_blocks, q->blocks);
    free(q->blocks);
    if (q->decoder)
        detokenizer_free(q->decoder);
    free(q->decoder);
    token_list_free(&q->history);
    token_list_free(&q->generated);
    strbuf_free(&q->text);
    free(q);
}

int session_active(const session *s)
{
    int n = 0;
    for (size_t i = 0; i < s->n_sequences; i++)
        n += s->sequences[i]->finish == FINISH_NONE;
    return n;
}

ink_status session_step(session *s)
{
    int n = 0;
    double start = clock_ms();
    for (size_t i = 0; i < s->n_sequences; i++)
        if (s->sequences[i]->finish == FINISH_NONE)
            s->active[n++] = s->sequences[i];
    if (!n)
        return INK_OK;
    TRY(decode_sequences(s, s->active, n));
    double spent = clock_ms() - start;
    for (int i = 0; i < n; i++) {
        s->active[i]->generate_ms += spent;
        TRY(accept_token(s, s->active[i], s->active[i]->last_id));
    }
    return INK_OK;
}
