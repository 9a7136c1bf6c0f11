/* test_engine.c - the parts of generation: KV blocks, positions, prefill in chunks, ends of an answer, sampling, sessions.
 */
#include "engine_support.h"

#include "engine/session_internal.h"

#include <dirent.h>
#include <pthread.h>

/* ---- KV cache ---- */

static void kv_blocks_are_lent_once(void **state)
{
    (void)state;
    enum { BLOCKS = 50, LAYERS = 3, BYTES = 256 };
    kv_cache c;
    rng r = fresh_rng();
    int32_t held[BLOCKS], n = 0;
    bool lent[BLOCKS] = {false};
    assert_ok(kv_cache_open(&c, LAYERS, BYTES, BLOCKS));
    for (int step = 0; step < 2000; step++) {
        int32_t want = (int32_t)rng_below(&r, 12), got[12];
        if (rng_below(&r, 2)) {
            ink_status s = kv_cache_take(&c, want, got);
            assert_int_equal(s, want <= BLOCKS - n ? INK_OK : INK_RESOURCE_EXHAUSTED);
            for (int32_t i = 0; s == INK_OK && i < want; i++) {
                assert_true(got[i] >= 0 && got[i] < BLOCKS && !lent[got[i]]);
                lent[got[i]] = true;
                held[n++] = got[i];
            }
        } else {
            want = want < n ? want : n;
            n -= want;
            kv_cache_give(&c, want, held + n);
            for (int32_t i = 0; i < want; i++)
                lent[held[n + i]] = false;
        }
        assert_int_equal(c.n_free, BLOCKS - n);
    }
    kv_cache_close(&c);
}

static void kv_pools_do_not_overlap(void **state)
{
    (void)state;
    enum { BLOCKS = 7, LAYERS = 4, BYTES = 128 };
    kv_cache c;
    assert_ok(kv_cache_open(&c, LAYERS, BYTES, BLOCKS));
    for (int l = 0; l < LAYERS; l++) {
        memset(kv_cache_k_pool(&c, l), 2 * l + 1, (size_t)BLOCKS * BYTES);
        memset(kv_cache_v_pool(&c, l), 2 * l + 2, (size_t)BLOCKS * BYTES);
    }
    for (int l = 0; l < LAYERS; l++)
        for (int i = 0; i < BLOCKS * BYTES; i++) {
            assert_int_equal(((uint8_t *)kv_cache_k_pool(&c, l))[i], 2 * l + 1);
            assert_int_equal(((uint8_t *)kv_cache_v_pool(&c, l))[i], 2 * l + 2);
        }
    kv_cache_close(&c);
    assert_fails(kv_cache_open(&c, 1 << 20, SIZE_MAX / 4, 100), INK_RESOURCE_EXHAUSTED, "KV cache");
}

/* ---- positions ---- */
enum { IMG = 1000 }; /* the placeholder's id */

/* Writes "t t I I I t ...": text[0] text tokens, image 0, text[1] text tokens, and so on. */
static size_t lay_out(int32_t *ids, const int *text, const merged_grid *grids, size_t n_images)
{
    size_t n = 0;
    for (size_t i = 0; i <= n_images; i++) {
        for (int k = 0; k < text[i]; k++)
            ids[n++] = 5;
        for (int k = 0; i < n_images && k < grids[i].rows * grids[i].columns; k++)
            ids[n++] = IMG;
    }
    return n;
}

/* The specification's example (6.5): 4 tokens, an image of 20 x 25, then text. */
static void positions_of_the_specification(void **state)
{
    (void)state;
    int32_t ids[600], p[1800], delta;
    merged_grid g = {20, 25};
    size_t n = lay_out(ids, (int[]){4, 9}, &g, 1);
    assert_int_equal(n, 513);
    assert_ok(mrope_positions(ids, n, IMG, &g, 1, p, &delta));
    for (int axis = 0; axis < 3; axis++) {
        assert_int_equal(p[3 * 3 + axis], 3);
        assert_int_equal(p[3 * 4 + axis], 4);
        assert_int_equal(p[3 * 504 + axis], 29);
        assert_int_equal(p[3 * 512 + axis], 37);
    }
    assert_int_equal(p[3 * 503], 4); /* last image token: t, row 19, column 24 */
    assert_int_equal(p[3 * 503 + 1], 4 + 19);
    assert_int_equal(p[3 * 503 + 2], 4 + 24);
    assert_int_equal(delta, -475);
}

static void positions_of_several_images(void **state)
{
    (void)state;
    int32_t ids[100], p[300], delta;
    merged_grid g[3] = {{2, 3}, {4, 1}, {1, 1}};
    size_t n = lay_out(ids, (int[]){1, 0, 2, 1}, g, 3); /* the first two stand side by side */
    assert_ok(mrope_positions(ids, n, IMG, g, 3, p, &delta));
    const int32_t first[3] = {1, 1, 1}, second[3] = {4, 4, 4}, after[3] = {8, 8, 8}, third[3] = {10, 10, 10},
                  end[3] = {11, 11, 11};
    assert_memory_equal(p + 3 * 1, first, sizeof first);
    assert_memory_equal(p + 3 * 7, second, sizeof second);
    assert_int_equal(p[3 * 10 + 1], 4 + 3);
    assert_memory_equal(p + 3 * 11, after, sizeof after);
    assert_memory_equal(p + 3 * 13, third, sizeof third);
    assert_memory_equal(p + 3 * 14, end, sizeof end);
    assert_int_equal(delta, 12 - 15);

    assert_ok(mrope_positions(ids, 0, IMG, NULL, 0, p, &delta));
    assert_int_equal(delta, 0);
}

/* Field report 95: token and feature counts that disagree are named, both of them. */
static void positions_refuse_wrong_counts(void **state)
{
    (void)state;
    int32_t ids[100], p[300], delta;
    merged_grid g = {2, 3}, larger = {2, 4}, two[2] = {{2, 3}, {1, 1}};
    size_t n = lay_out(ids, (int[]){1, 1}, &g, 1);
    assert_fails(mrope_positions(ids, n, IMG, &larger, 1, p, &delta), INK_INVALID_ARGUMENT,
                 "image 1 of 1 has 6 placeholder tokens, its grid needs 8");
    assert_fails(mrope_positions(ids, n, IMG, NULL, 0, p, &delta), INK_INVALID_ARGUMENT, "its grid needs 0");
    assert_fails(mrope_positions(ids, n, IMG, two, 2, p, &delta), INK_INVALID_ARGUMENT,
                 "2 images given, placeholders for 1");
}

/* ---- prefill ---- */

/* Logits after the prompt of a sample, prefilled `chunk` tokens at a time. */
static float *prompt_logits(const vl_model *m, int chunk, const sample *x, size_t *n)
{
    session *s = open_session(m, (session_options){.prefill_chunk = chunk});
    prepared p;
    sequence *q;
    prepare_sample(s, x, &p);
    assert_ok(session_add(s, &p.request, &q));
    const ink_tensor *logits = run_output(s->runs[VL_PREFILL], "logits");
    *n = (size_t)ink_tensor_numel(logits);
    float *copy = alloc_array(*n, sizeof *copy);
    memcpy(copy, logits->data, *n * sizeof *copy);
    run_to_end(s);
    assert_same_ids(q, x->ids, x->n_ids, "prefilled in chunks");
    session_remove(s, q);
    prepared_free(&p);
    session_free(s);
    return copy;
}

/* A prompt gives the same bits in one piece and in chunks that cut through the image and through KV blocks. */
static void chunks_change_no_bit(void **state)
{
    (void)state;
    static const ink_dtype dtypes[] = {INK_BF16, INK_F32};
    static const int chunks[] = {1, 7, 32, 61};
    for (int t = 0; t < 2; t++) {
        vl_model *m = load_mini((vl_model_options){.dtype = dtypes[t]});
        for (int k = 4; k < 8; k += 3) {
            size_t n, n_chunked;
            float *whole = prompt_logits(m, 0, &samples[k], &n);
            for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
                float *chunked = prompt_logits(m, chunks[c], &samples[k], &n_chunked);
                assert_int_equal(n, n_chunked);
                if (memcmp(whole, chunked, n * sizeof *whole) != 0)
                    fail_msg("%s in %s: chunks of %d change the logits", samples[k].path, ink_dtype_name(dtypes[t]),
                             chunks[c]);
                free(chunked);
            }
            free(whole);
        }
        vl_model_free(m);
    }
}

/* Field report 71: the template puts the image before the text. */
static void report_71_image_first(void **state)
{
    (void)state;
    vl_model *m = load_mini((vl_model_options){.dtype = INK_BF16});
    session *s = open_session(m, (session_options){0});
    prepared p;
    prepare_sample(s, &samples[0], &p);
    token_list words = {0};
    assert_ok(tokenizer_encode(m->tokens, "OCR:", 4, TOKENIZE_TEXT, &words));
    size_t last_image = 0, n = p.request.n_ids, images = 0;
    for (size_t i = 0; i < n; i++)
        if (p.request.ids[i] == m->config.image_token_id) {
            last_image = i;
            images++;
        }
    assert_int_equal(images, p.f.grid.tokens);
    size_t at = last_image + 1;
    while (at + words.count <= n && memcmp(p.request.ids + at, words.ids, words.count * sizeof *words.ids) != 0)
        at++;
    assert_true(at + words.count < n);
    token_list_free(&words);
    prepared_free(&p);
    session_free(s);
    vl_model_free(m);
}

/* ---- the end of an answer ---- */

typedef struct engine {
    vl_model *m;
    session *s;
    prepared p;
} engine;

static void engine_open(engine *e, const sample *x)
{
    e->m = load_mini((vl_model_options){.dtype = INK_BF16});
    e->s = open_session(e->m, (session_options){0});
    prepare_sample(e->s, x, &e->p);
}

static void engine_close(engine *e)
{
    prepared_free(&e->p);
    session_free(e->s);
    vl_model_free(e->m);
}

static sequence *add(engine *e)
{
    sequence *q;
    assert_ok(session_add(e->s, &e->p.request, &q));
    return q;
}

static void max_tokens_ends_with_length(void **state)
{
    (void)state;
    engine e;
    const sample *x = &samples[3];
    engine_open(&e, x);
    for (int most = 1; most <= 7; most += 3) {
        e.p.request.max_tokens = most;
        sequence *q = add(&e);
        run_to_end(e.s);
        assert_int_equal(q->finish, FINISH_LENGTH);
        assert_false(q->looped);
        assert_same_ids(q, x->ids, (size_t)most, "cut short");
        session_remove(e.s, q);
    }
    engine_close(&e);
}

typedef struct collected {
    strbuf text;
    int calls, stop_after; /* 0: never */
    session *cancel;
} collected;

static bool collect_text(void *user, const char *text, size_t length)
{
    collected *c = user;
    strbuf_add(&c->text, text, length);
    assert_true(length > 0 && utf8_is_valid(text, length));
    if (++c->calls == c->stop_after && c->cancel)
        session_cancel(c->cancel);
    return c->cancel || c->calls != c->stop_after;
}

/* The pieces are whole characters and add up to the text; a callback that says no ends its own sequence only. */
static void callbacks_and_stopping(void **state)
{
    (void)state;
    engine e;
    engine_open(&e, &samples[3]); /* accents */
    collected all = {0}, some = {.stop_after = 3};
    e.p.request.on_text = collect_text;
    e.p.request.user = &all;
    sequence *q = add(&e);
    e.p.request.user = &some;
    sequence *stopped = add(&e);
    run_to_end(e.s);
    assert_int_equal(q->finish, FINISH_STOP);
    assert_string_equal(strbuf_text(&all.text), samples[3].text);
    assert_int_equal(stopped->finish, FINISH_CANCELLED);
    assert_int_equal(some.calls, 3);
    assert_string_equal(strbuf_text(&stopped->text), strbuf_text(&some.text));
    assert_memory_equal(samples[3].text, strbuf_text(&some.text), some.text.length);
    strbuf_free(&all.text);
    strbuf_free(&some.text);
    session_remove(e.s, q);
    session_remove(e.s, stopped);
    engine_close(&e);
}

static void cancel_ends_all_until_resumed(void **state)
{
    (void)state;
    engine e;
    engine_open(&e, &samples[3]);
    collected c = {.stop_after = 4, .cancel = e.s};
    sequence *other = add(&e);
    e.p.request.on_text = collect_text;
    e.p.request.user = &c;
    sequence *q = add(&e);
    run_to_end(e.s);
    assert_int_equal(q->finish, FINISH_CANCELLED);
    assert_int_equal(other->finish, FINISH_CANCELLED);
    assert_int_equal(c.calls, 4);
    session_remove(e.s, q);
    session_remove(e.s, other);
    e.p.request.on_text = NULL;
    q = add(&e); /* still cancelled */
    assert_int_equal(q->finish, FINISH_CANCELLED);
    assert_int_equal(q->generated.count, 0);
    session_remove(e.s, q);
    session_resume(e.s);
    q = add(&e);
    run_to_end(e.s);
    assert_string_equal(strbuf_text(&q->text), samples[3].text);
    session_remove(e.s, q);
    strbuf_free(&c.text);
    engine_close(&e);
}

/* ---- accepting tokens: the text is made up, through the tokenizer ---- */

/* Feeds the tokens of `text` until the sequence ends; how many were taken. */
static size_t feed(engine *e, sequence *q, const char *text)
{
    token_list ids = {0};
    size_t i = 0;
    assert_ok(tokenizer_encode(e->m->tokens, text, strlen(text), TOKENIZE_TEXT, &ids));
    for (; i < ids.count && q->finish == FINISH_NONE; i++)
        assert_ok(accept_token(e->s, q, ids.ids[i]));
    token_list_free(&ids);
    return i;
}

/* A sequence with an empty answer. */
static sequence *add_empty(engine *e)
{
    sequence *q = add(e);
    strbuf_truncate(&q->text, 0);
    q->generated.count = 0;
    q->finish = FINISH_NONE;
    detokenizer_free(q->decoder);
    detokenizer_init(q->decoder, e->m->tokens, true);
    return q;
}

static void feed_times(engine *e, sequence *q, const char *unit, int times)
{
    strbuf all = {0};
    for (int i = 0; i < times; i++)
        strbuf_puts(&all, unit);
    feed(e, q, strbuf_text(&all));
    strbuf_free(&all);
}

/* Field reports 73 and 76: endless repetition, also behind good lines, is stopped, cut and reported. */
static void report_73_76_loop_guard(void **state)
{
    (void)state;
    engine e;
    engine_open(&e, &samples[0]);
    e.p.request.max_tokens = 6000;
    e.p.request.loop_guard = true;
    e.p.request.loop_min_count = 50;

    sequence *q = add_empty(&e);
    feed_times(&e, q, "abcdefgh ", 300);
    assert_true(q->looped);
    assert_int_equal(q->finish, FINISH_LENGTH);
    assert_int_equal(q->generated.count % 32, 0);
    assert_true(q->text.length <= 9 && !strncmp(strbuf_text(&q->text), "abcdefgh", 8));
    session_remove(e.s, q);

    q = add_empty(&e);
    feed(&e, q, "Total 17,00\nVAT 3,40\nThank you\n");
    feed_times(&e, q, "abcdefgh ", 300);
    assert_true(q->looped);
    assert_int_equal(q->finish, FINISH_LENGTH);
    assert_non_null(strstr(strbuf_text(&q->text), "Thank you\nabcdefgh"));
    assert_true(q->text.length <= strlen("Total 17,00\nVAT 3,40\nThank you\nabcdefgh "));
    session_remove(e.s, q);

    q = add_empty(&e); /* the same line over and over */
    feed_times(&e, q, "0000 1111\n", 300);
    assert_true(q->looped);
    session_remove(e.s, q);

    q = add_empty(&e); /* an honest text of the same length goes through */
    strbuf honest = {0};
    for (int i = 0; i < 150; i++)
        strbuf_printf(&honest, "line %d of the page\n", i * 7919 % 1000);
    feed(&e, q, strbuf_text(&honest));
    assert_int_equal(q->finish, FINISH_NONE);
    assert_true(q->text.length >= honest.length - 1); /* the last newline is a byte token, which waits for its successor */
    assert_memory_equal(strbuf_text(&q->text), strbuf_text(&honest), q->text.length);
    strbuf_free(&honest);
    session_remove(e.s, q);

    e.p.request.loop_guard = false;
    q = add_empty(&e);
    feed_times(&e, q, "abcdefgh ", 300);
    assert_int_equal(q->finish, FINISH_NONE);
    assert_false(q->looped);
    assert_true(q->text.length >= 2699); /* a space may be waiting in the decoder */
    session_remove(e.s, q);

    e.p.request.loop_guard = true; /* tables: only beyond their own length */
    e.p.request.loop_min_count = 5000;
    q = add_empty(&e);
    feed_times(&e, q, "abcdefgh ", 300);
    assert_false(q->looped);
    session_remove(e.s, q);
    engine_close(&e);
}

/* Field report 92: whatever is decoded is the text; a lone byte becomes U+FFFD. */
static void report_92_any_text_passes(void **state)
{
    (void)state;
    static const char *const texts[] = {"{\"", "<tool", "<think>", "</s", "}]", "%s%n", "\\", "\t\r\n"};
    engine e;
    engine_open(&e, &samples[0]);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        sequence *q = add_empty(&e);
        feed(&e, q, texts[i]);
        assert_ok(accept_token(e.s, q, e.m->config.generation.eos_token_ids[0]));
        assert_int_equal(q->finish, FINISH_STOP);
        assert_string_equal(strbuf_text(&q->text), texts[i]);
        session_remove(e.s, q);
    }
    static const struct {
        const char *token;
        const char *text;
        size_t length;
    } bytes[] = {{"<0xC3>", "\xEF\xBF\xBD", 3}, {"<0x00>", "\0", 1}, {"<0x41>", "A", 1}};
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        int32_t id = tokenizer_id(e.m->tokens, bytes[i].token);
        if (id < 0)
            fail_msg("the mini model has no token %s", bytes[i].token);
        sequence *q = add_empty(&e);
        assert_ok(accept_token(e.s, q, id));
        assert_ok(accept_token(e.s, q, e.m->config.generation.eos_token_ids[0]));
        assert_int_equal(q->text.length, bytes[i].length);
        assert_memory_equal(strbuf_text(&q->text), bytes[i].text, bytes[i].length);
        session_remove(e.s, q);
    }
    engine_close(&e);
}

/* ---- sampling ---- */

static void assert_equal_ids(const sequence *a, const sequence *b, bool equal)
{
    bool same = a->generated.count == b->generated.count &&
                !memcmp(a->generated.ids, b->generated.ids, a->generated.count * sizeof *a->generated.ids);
    assert_int_equal(same, equal);
}

/* The same seed gives the same answer, alone or beside others; another seed another one; top_p towards 0 is greedy. */
static void sampling_follows_its_seed(void **state)
{
    (void)state;
    engine e;
    engine_open(&e, &samples[3]);
    rng r = fresh_rng();
    e.p.request.temperature = 4; /* far from greedy, so that two seeds cannot agree over 40 tokens */
    e.p.request.max_tokens = 40;
    e.p.request.seed = rng_u64(&r);
    sequence *alone = add(&e);
    run_to_end(e.s);
    sequence *again = add(&e);
    e.p.request.seed++;
    sequence *other = add(&e);
    run_to_end(e.s);
    assert_equal_ids(alone, again, true);
    assert_equal_ids(alone, other, false);
    e.p.request.top_p = 1e-6f;
    sequence *greedy = add(&e);
    run_to_end(e.s);
    assert_same_ids(greedy, samples[3].ids, samples[3].n_ids, "top_p 1e-6");
    engine_close(&e);
}

/* 1 is none; more keeps tokens of the prompt and answer from coming again. */
static void repetition_penalty_changes_the_answer(void **state)
{
    (void)state;
    engine e;
    const sample *x = &samples[8];
    engine_open(&e, x);
    sequence *plain = add(&e);
    e.p.request.repetition_penalty = 100;
    e.p.request.max_tokens = 60;
    sequence *penalised = add(&e);
    run_to_end(e.s);
    assert_same_ids(plain, x->ids, x->n_ids, "beside a penalised one");
    assert_equal_ids(plain, penalised, false);
    int repeats[2] = {0};
    for (int k = 0; k < 2; k++) {
        const token_list *l = k ? &penalised->generated : &plain->generated;
        for (size_t i = 0; i < l->count && i < 60; i++)
            for (size_t j = 0; j < i; j++)
                if (l->ids[i] == l->ids[j]) {
                    repeats[k]++;
                    break;
                }
    }
    assert_true(repeats[1] < repeats[0]);
    engine_close(&e);
}

static void requests_are_checked(void **state)
{
    (void)state;
    engine e;
    engine_open(&e, &samples[0]);
    const generation_request good = e.p.request;
    sequence *q;
    generation_request r = good;
    r.n_ids = 0;
    assert_fails(session_add(e.s, &r, &q), INK_INVALID_ARGUMENT, "the prompt is empty");
    r = good, r.max_tokens = 0;
    assert_fails(session_add(e.s, &r, &q), INK_INVALID_ARGUMENT, "max_tokens is 0");
    r = good, r.temperature = -1;
    assert_fails(session_add(e.s, &r, &q), INK_INVALID_ARGUMENT, "temperature is -1");
    r = good, r.top_p = 0;
    assert_fails(session_add(e.s, &r, &q), INK_INVALID_ARGUMENT, "top_p is 0");
    r = good, r.repetition_penalty = 0;
    assert_fails(session_add(e.s, &r, &q), INK_INVALID_ARGUMENT, "repetition_penalty is 0");
    r = good, r.n_images = 0;
    assert_fails(session_add(e.s, &r, &q), INK_INVALID_ARGUMENT, "placeholder");
    assert_null(q);
    int32_t wrong[] = {1, 2, 1 << 28};
    r = good, r.ids = wrong, r.n_ids = 3, r.n_images = 0;
    assert_fails(session_add(e.s, &r, &q), INK_OUT_OF_RANGE, "268435456");
    assert_int_equal(e.s->n_sequences, 0);
    assert_int_equal(e.s->kv.n_free, e.s->kv.blocks);
    q = add(&e); /* the session is as good as new */
    run_to_end(e.s);
    assert_string_equal(strbuf_text(&q->text), samples[0].text);
    engine_close(&e);
}

/* ---- sessions ---- */

static void a_full_session_says_so(void **state)
{
    (void)state;
    vl_model *m = load_mini((vl_model_options){.dtype = INK_BF16, .max_sequences = 2});
    session *s = open_session(m, (session_options){.max_tokens_per_sequence = 64});
    prepared p;
    sequence *a, *b, *c;
    prepare_sample(s, &samples[0], &p);
    assert_int_equal(s->kv.blocks, 4);
    assert_int_equal(session_capacity(s), 64);
    p.request.max_tokens = (int)(64 - p.request.n_ids);
    assert_ok(session_add(s, &p.request, &a));
    assert_ok(session_add(s, &p.request, &b));
    assert_fails(session_add(s, &p.request, &c), INK_RESOURCE_EXHAUSTED, "holds 2 sequences");
    session_remove(s, b);
    p.request.max_tokens = (int)(65 - p.request.n_ids);
    assert_fails(session_add(s, &p.request, &b), INK_RESOURCE_EXHAUSTED, "3 blocks wanted, 2 of 4 free");
    assert_int_equal(s->kv.n_free, 2);
    session_remove(s, a);
    assert_ok(session_add(s, &p.request, &a)); /* alone it may use the other's share */
    session_remove(s, a);
    p.request.max_tokens = 200;
    assert_fails(session_add(s, &p.request, &a), INK_INVALID_ARGUMENT, "does not fit a KV cache of 4 blocks of 32");
    assert_int_equal(s->kv.n_free, 4);
    prepared_free(&p);
    session_free(s);
    vl_model_free(m);
}

/* A small session reads a long list: images wait for room. The KV cache holds two of these sequences, not three. */
static void images_wait_for_room(void **state)
{
    (void)state;
    ink_model_options o = INK_MODEL_OPTIONS_DEFAULT;
    ink_session_options so = INK_SESSION_OPTIONS_DEFAULT;
    ink_read_options ro = INK_READ_OPTIONS_DEFAULT;
    ink_model *m;
    ink_session *s;
    const ink_image *images[8];
    ink_result results[8];
    o.max_sequences = 3;
    so.max_tokens_per_sequence = 256;
    ro.max_tokens = 300;
    assert_ok(ink_model_load(NULL, &o, &m));
    assert_ok(ink_session_create(m, &so, &s));
    for (int i = 0; i < 8; i++)
        images[i] = samples[i % 5].handle;
    assert_ok(ink_read_batch(s, images, 8, &ro, results));
    for (int i = 0; i < 8; i++) {
        if (results[i].status != INK_OK)
            fail_msg("image %d: %s", i, results[i].error);
        assert_string_equal(results[i].text, samples[i % 5].text);
        ink_result_free(&results[i]);
    }
    ink_session_free(s);
    ink_model_free(m);
}

typedef struct reader_thread {
    pthread_t id;
    const ink_model *m;
    int first, failures;
} reader_thread;

static void *read_several(void *user)
{
    reader_thread *t = user;
    ink_session *s;
    ink_result r;
    if (ink_session_create(t->m, NULL, &s) != INK_OK) {
        t->failures = 1000;
        return NULL;
    }
    for (int i = 0; i < 12; i++) {
        const sample *x = &samples[(t->first + i * 5) % SAMPLES];
        ink_read_options o = INK_READ_OPTIONS_DEFAULT;
        o.task = x->task;
        t->failures += ink_read(s, x->handle, &o, &r) != INK_OK || strcmp(r.text, x->text) != 0;
        ink_result_free(&r);
    }
    ink_session_free(s);
    return NULL;
}

/* Field report 141: one model, several threads, each answer belongs to its page. */
static void report_141_threads_share_a_model(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    reader_thread t[THREADS];
    ink_model_options o = INK_MODEL_OPTIONS_DEFAULT;
    ink_model *m;
    o.threads = 1;
    assert_ok(ink_model_load(NULL, &o, &m));
    for (int i = 0; i < THREADS; i++) {
        t[i] = (reader_thread){.m = m, .first = 3 * i};
        assert_int_equal(pthread_create(&t[i].id, NULL, read_several, &t[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i].id, NULL);
        assert_int_equal(t[i].failures, 0);
    }
    ink_model_free(m);
}

/* ---- memory ---- */

static size_t resident_kb(void)
{
    size_t total, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%zu %zu", &total, &resident), 2);
    fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

static int open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Under a sanitizer freed memory stays resident; its leak check is the proof there. */
static void assert_steady(size_t before, int files_before)
{
    assert_int_equal(open_files(), files_before);
    if (!SANITIZED && resident_kb() > before + 1024)
        fail_msg("resident memory grew from %zu to %zu KB", before, resident_kb());
}

/* Field report 67: 100 times create, read, destroy. */
static void report_67_create_and_destroy(void **state)
{
    (void)state;
    size_t before = 0;
    int files = 0;
    for (int i = 0; i < (SANITIZED ? 25 : 100); i++) {
        ink_model *m;
        ink_session *s;
        ink_image *img;
        ink_result r;
        if (i == 20) {
            before = resident_kb();
            files = open_files();
        }
        assert_ok(ink_model_load(i & 1 ? MINI_DIR : NULL, NULL, &m));
        assert_ok(ink_session_create(m, NULL, &s));
        assert_ok(ink_image_load(samples[i % 5].path, &img));
        assert_ok(ink_read(s, img, NULL, &r));
        assert_string_equal(r.text, samples[i % 5].text);
        ink_result_free(&r);
        ink_image_free(img);
        ink_session_free(s);
        ink_model_free(m);
    }
    assert_steady(before, files);
}

/* Field report 65: a loop of requests on one session. */
static void report_65_many_requests(void **state)
{
    (void)state;
    ink_model *m;
    ink_session *s;
    size_t before = 0;
    int files = 0;
    assert_ok(ink_model_load(NULL, NULL, &m));
    assert_ok(ink_session_create(m, NULL, &s));
    for (int i = 0; i < (SANITIZED ? 60 : 200); i++) {
        ink_result r;
        if (i == 50) {
            before = resident_kb();
            files = open_files();
        }
        const ink_image *img = i % 3 ? samples[i % 5].handle : NULL; /* failures too */
        assert_int_equal(ink_read(s, img, NULL, &r), img ? INK_OK : INK_INVALID_ARGUMENT);
        ink_result_free(&r);
    }
    assert_steady(before, files);
    ink_session_free(s);
    ink_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kv_blocks_are_lent_once),        cmocka_unit_test(kv_pools_do_not_overlap),
        cmocka_unit_test(positions_of_the_specification), cmocka_unit_test(positions_of_several_images),
        cmocka_unit_test(positions_refuse_wrong_counts),  cmocka_unit_test(chunks_change_no_bit),
        cmocka_unit_test(report_71_image_first),          cmocka_unit_test(max_tokens_ends_with_length),
        cmocka_unit_test(callbacks_and_stopping),         cmocka_unit_test(cancel_ends_all_until_resumed),
        cmocka_unit_test(report_73_76_loop_guard),        cmocka_unit_test(report_92_any_text_passes),
        cmocka_unit_test(sampling_follows_its_seed),      cmocka_unit_test(repetition_penalty_changes_the_answer),
        cmocka_unit_test(requests_are_checked),           cmocka_unit_test(a_full_session_says_so),
        cmocka_unit_test(images_wait_for_room),           cmocka_unit_test(report_141_threads_share_a_model),
        cmocka_unit_test(report_67_create_and_destroy),   cmocka_unit_test(report_65_many_requests),
    };
    return cmocka_run_group_tests(tests, open_samples, close_samples);
}
