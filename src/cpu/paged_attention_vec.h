/* paged_attention_vec.h - attention of generated tokens (few_rows) for AVX2 and AVX-512: included by
 * paged_attention_avx2.c and paged_attention_avx512.c, which define NAME(x). Any dtype.
 *
 * Memory sets the pace, so every key and value is read once per group of query heads, and the keys of one row are spread
 * over threads: a unit is (row, key head), a task is one chunk of CHUNK keys of a unit (chunks start at multiples of
 * CHUNK), and the partial results (maximum, sum, context) of a unit's chunks are merged from the left in their order.
 * Tasks run in waves of WAVE, which bounds the memory for partial results; a unit cut by the end of a wave carries its
 * merged state into the next, so waves and threads leave no trace in the bits. */
#include "core/status.h"
#include "core/threads.h"
#include "cpu/attention.h"
#include "cpu/attention_exp.h"

enum { CHUNK = 256, WAVE = 512, HEADS = VF == 16 ? 8 : 4, SCORE_KEYS = 2, SLAB = 2 /* vectors */ };

/* Partial result of one unit, [group] rows: top, sum, then the context. */
static int64_t columns_of(int64_t dim) { return (dim + VF - 1) / VF * VF; }
static size_t partial_floats(int64_t group, int64_t dim) { return (size_t)group * (size_t)(columns_of(dim) + VF); }

typedef struct partial {
    float *o, *top, *sum; /* o [group][columns] */
} partial;

static partial partial_at(float *base, size_t i, int64_t group, int64_t dim)
{
    float *p = base + i * partial_floats(group, dim);
    return (partial){p, p + group * columns_of(dim), p + group * columns_of(dim) + group};
}

/* ---- one block of at most 32 keys, contiguous in the pool ---- */

/* s[g][j] = q[g] . k[j] for `keys` (1 or 2) keys: one FMA chain per lane in d, then the sum of the lanes. */
VEC_INLINE void score_keys(const int heads, const int keys, const float *q, int64_t columns, const char *k, int64_t dim,
                           float *s, const ink_dtype t)
{
    vf acc[HEADS][SCORE_KEYS];
    UNROLL
    for (int g = 0; g < heads; g++)
        UNROLL
        for (int j = 0; j < keys; j++)
            acc[g][j] = v_zero();
    for (int64_t d = 0; d < dim; d += VF) {
        vf kv[SCORE_KEYS];
        UNROLL
        for (int j = 0; j < keys; j++)
            kv[j] = v_get(k, t, j * dim + d, dim - d);
        UNROLL
        for (int g = 0; g < heads; g++) {
            vf x = v_load(q + g * columns + d);
            UNROLL
            for (int j = 0; j < keys; j++)
                acc[g][j] = v_fma(x, kv[j], acc[g][j]);
        }
    }
    UNROLL
    for (int g = 0; g < heads; g++)
        UNROLL
        for (int j = 0; j < keys; j++)
            s[g * CHUNK + j] = v_sum(acc[g][j]);
}

VEC_INLINE void score_block(const int heads, const float *q, int64_t columns, const char *k, int64_t dim, int n, float *s,
                            const ink_dtype t)
{
    const int64_t step = dim * (t == INK_F32 ? 4 : 2);
    int j = 0;
    for (; j + SCORE_KEYS <= n; j += SCORE_KEYS)
        score_keys(heads, SCORE_KEYS, q, columns, k + j * step, dim, s + j, t);
    for (; j < n; j++)
        score_keys(heads, 1, q, columns, k + j * step, dim, s + j, t);
}

/* o[g][d ..] += p[g][j] v[j][d ..] for `width` vectors of columns. */
VEC_INLINE void context_slab(const int heads, const int width, const float *p, const char *v, int64_t dim, int64_t d, int n,
                             float *o, int64_t columns, const ink_dtype t)
{
    vf acc[HEADS][SLAB];
    UNROLL
    for (int g = 0; g < heads; g++)
        UNROLL
        for (int x = 0; x < width; x++)
            acc[g][x] = v_load(o + g * columns + d + x * VF);
    for (int j = 0; j < n; j++) {
        vf b[SLAB];
        UNROLL
        for (int x = 0; x < width; x++)
            b[x] = v_get(v, t, j * dim + d + x * VF, dim - d - x * VF);
        UNROLL
        for (int g = 0; g < heads; g++) {
            vf a = v_set(p[g * CHUNK + j]);
            UNROLL
            for (int x = 0; x < width; x++)
                acc[g][x] = v_fma(a, b[x], acc[g][x]);
        }
    }
    UNROLL
    for (int g = 0; g < heads; g++)
        UNROLL
        for (int x = 0; x < width; x++)
            v_store(o + g * columns + d + x * VF, acc[g][x]);
}

VEC_INLINE void context_block(const int heads, const float *p, const char *v, int64_t dim, int n, float *o, int64_t columns,
                              const ink_dtype t)
{
    int64_t d = 0;
    for (; d + SLAB * VF <= columns; d += SLAB * VF)
        context_slab(heads, SLAB, p, v, dim, d, n, o, columns, t);
    for (; d < columns; d += VF)
        context_slab(heads, 1, p, v, dim, d, n, o, columns, t);
}

/* ---- one task ---- */

/* Scores of a chunk become 2^(scale score - scale top). */
static void soften(float *s, int64_t n, float scale, float *top, float *sum)
{
    vf m = v_set(-INFINITY), total = v_zero(), vscale = v_set(scale);
    const int64_t whole = (n + VF - 1) / VF * VF;
    for (int64_t j = n; j < whole; j++)
        s[j] = -INFINITY;
    for (int64_t j = 0; j < whole; j += VF)
        m = v_max(m, v_load(s + j));
    *top = v_top(m) * scale;
    vf base = v_set(*top == -INFINITY ? -0.f : -*top);
    for (int64_t j = 0; j < whole; j += VF) {
        vf e = v_exp2_score(v_fma(v_load(s + j), vscale, base));
        v_store(s + j, e);
        total = v_add(total, e);
    }
    *sum = v_sum(total);
}

#define PER_HEADS(group, call)                    \
    for (int64_t g = 0; g < (group);) {           \
        if ((group)-g >= HEADS) {                 \
            enum { heads = HEADS };               \
            call;                                 \
            g += heads;                           \
        } else if ((group)-g >= HEADS / 2) {      \
            enum { heads = HEADS / 2 };           \
            call;                                 \
            g += heads;                           \
        } else {                                  \
            enum { heads = 1 };                   \
            call;                                 \
            g += heads;                           \
        }                                         \
    }

/* Keys first .. first+n-1 (n <= CHUNK) of sequence s and key head h, against q [group][columns]. s_buf: [group][CHUNK]. */
VEC_INLINE void chunk(const attention_view *a, int64_t s, int64_t h, int64_t first, int64_t n, const float *q, float *scores,
                      partial out, const ink_dtype t)
{
    const int64_t columns = columns_of(a->dim), element = t == INK_F32 ? 4 : 2;
    for (int64_t j = 0; j < n; j += KV_BLOCK) {
        const int keys = (int)(n - j < KV_BLOCK ? n - j : KV_BLOCK);
        const char *k = a->k + attention_strip(a, s, h, (first + j) / KV_BLOCK) * element;
        PER_HEADS(a->group, score_block(heads, q + g * columns, columns, k, a->dim, keys, scores + g * CHUNK + j, t))
    }
    for (int64_t g = 0; g < a->group; g++)
        soften(scores + g * CHUNK, n, a->scale * 1.44269504f, out.top + g, out.sum + g);
    for (int64_t i = 0; i < a->group * columns; i += VF)
        v_store(out.o + i, v_zero());
    for (int64_t j = 0; j < n; j += KV_BLOCK) {
        const int keys = (int)(n - j < KV_BLOCK ? n - j : KV_BLOCK);
        const char *v = a->v + attention_strip(a, s, h, (first + j) / KV_BLOCK) * element;
        PER_HEADS(a->group, context_block(heads, scores + g * CHUNK + j, v, a->dim, keys, out.o + g * columns, columns, t))
    }
}

/* ---- merging ---- */

/* `into` holds the chunks so far, `next` the chunk after them. Tops carry the factor log2(e) scale. */
static void merge(partial into, partial next, int64_t group, int64_t columns)
{
    for (int64_t g = 0; g < group; g++) {
        float now = next.top[g] > into.top[g] ? next.top[g] : into.top[g], base = now == -INFINITY ? 0 : now;
        float old = exp2_score(into.top[g] - base), add = exp2_score(next.top[g] - base);
        into.top[g] = now;
        into.sum[g] = into.sum[g] * old + next.sum[g] * add;
        vf vold = v_set(old), vadd = v_set(add);
        for (int64_t d = g * columns; d < (g + 1) * columns; d += VF)
            v_store(into.o + d, v_fma(v_load(next.o + d), vadd, v_mul(v_load(into.o + d), vold)));
    }
}

VEC_INLINE void finish(const attention_view *a, int64_t row, int64_t h, partial r, const ink_dtype t)
{
    const int64_t columns = columns_of(a->dim);
    for (int64_t g = 0; g < a->group; g++) {
        vf sum = v_set(r.sum[g]);
        for (int64_t d = 0; d < a->dim; d += VF)
            v_put(a->y, t, attention_query(a, row, h * a->group + g) + d, v_div(v_load(r.o + g * columns + d), sum), a->dim - d);
    }
}

/* ---- the call ---- */

typedef struct decode {
    attention_view a;
    int64_t *before;   /* [rows + 1]: tasks of the rows before */
    int32_t *sequence; /* [rows] */
    int64_t tasks;
    float *partials;   /* [WAVE] */
    float *carry;      /* [2]: read in even and written in odd waves, and the other way round */
    float *scratch;    /* per thread: q, scores */
    size_t scratch_step;
} decode;

static size_t round64(size_t n) { return (n + 63) / 64 * 64; }
static size_t scratch_floats(int64_t group, int64_t dim) { return (size_t)group * (size_t)(columns_of(dim) + CHUNK) + 16; }

size_t NAME(paged_attention_workspace)(const op_call *c)
{
    const size_t rows = (size_t)c->in[0]->dims[0];
    const int64_t kv = c->in[1]->dims[1], dim = c->in[0]->dims[2], group = kv ? c->in[0]->dims[1] / kv : 0;
    return round64((rows + 1) * sizeof(int64_t)) + round64(rows * sizeof(int32_t)) +
           ((WAVE + 2) * partial_floats(group, dim) + (size_t)c->threads * scratch_floats(group, dim) + 64) * sizeof(float);
}

/* Lays the workspace out, counts the tasks and clears rows that see nothing. */
static void lay_out(decode *w, const op_call *c)
{
    const attention_view *a = &w->a;
    const size_t row_bytes = (size_t)(a->heads * a->dim) * a->element;
    char *at = c->workspace;
    w->before = (int64_t *)at;
    w->sequence = (int32_t *)(at += round64((size_t)(a->rows + 1) * sizeof(int64_t)));
    w->partials = (float *)(at += round64((size_t)a->rows * sizeof(int32_t)));
    w->carry = w->partials + WAVE * partial_floats(a->group, a->dim);
    w->scratch = w->carry + 2 * partial_floats(a->group, a->dim);
    w->scratch_step = scratch_floats(a->group, a->dim);
    w->before[0] = 0;
    for (int64_t s = 0; s < a->sequences; s++)
        for (int64_t i = 0; i < attention_queries(a, s); i++) {
            int64_t t = a->starts[s] + i, visible = attention_visible(a, s, i);
            w->sequence[t] = (int32_t)s;
            w->before[t + 1] = w->before[t] + (visible > 0 ? (visible + CHUNK - 1) / CHUNK * a->kv_heads : 0);
            if (visible <= 0)
                memset(a->y + (size_t)t * row_bytes, 0, row_bytes);
        }
    w->tasks = w->before[a->rows];
}

/* Row, key head and chunk of task i; *chunks of that row. */
static int64_t locate(const decode *w, int64_t i, int64_t *row, int64_t *h, int64_t *chunks)
{
    *row = attention_find(w->before, w->a.rows, i);
    *chunks = (w->before[*row + 1] - w->before[*row]) / w->a.kv_heads;
    *h = (i - w->before[*row]) / *chunks;
    return (i - w->before[*row]) % *chunks;
}

VEC_INLINE void run_task(const decode *w, int64_t i, int64_t wave, const ink_dtype t)
{
    const attention_view *a = &w->a;
    const int64_t columns = columns_of(a->dim);
    float *q = w->scratch + (size_t)thread_index() * w->scratch_step;
    int64_t row, h, chunks, c = locate(w, i, &row, &h, &chunks), s = w->sequence[row];
    int64_t visible = attention_visible(a, s, row - a->starts[s]), first = c * CHUNK;
    for (int64_t g = 0; g < a->group; g++)
        for (int64_t d = 0; d < a->dim; d += VF)
            v_store(q + g * columns + d, v_get(a->q, t, attention_query(a, row, h * a->group + g) + d, a->dim - d));
    chunk(a, s, h, first, visible - first < CHUNK ? visible - first : CHUNK, q, q + a->group * columns,
          partial_at(w->partials, (size_t)(i - wave), a->group, a->dim), t);
}

/* The unit whose first task in this wave is i: merges its chunks, then stores the result or carries it on. */
VEC_INLINE void run_merge(const decode *w, int64_t i, int64_t wave, int64_t end, const ink_dtype t)
{
    const attention_view *a = &w->a;
    const size_t number = (size_t)(wave / WAVE);
    int64_t row, h, chunks, c = locate(w, i, &row, &h, &chunks);
    partial r = partial_at(w->partials, (size_t)(i - wave), a->group, a->dim);
    if (c) { /* begun in the wave before */
        partial carried = partial_at(w->carry, number & 1, a->group, a->dim);
        merge(carried, r, a->group, columns_of(a->dim));
        r = carried;
    }
    for (i++, c++; c < chunks && i < end; i++, c++)
        merge(r, partial_at(w->partials, (size_t)(i - wave), a->group, a->dim), a->group, columns_of(a->dim));
    if (c == chunks)
        finish(a, row, h, r, t);
    else
        memcpy(partial_at(w->carry, ~number & 1, a->group, a->dim).o, r.o, partial_floats(a->group, a->dim) * sizeof(float));
}

VEC_INLINE void run_waves(const decode *w, int threads, const ink_dtype t)
{
#pragma omp parallel num_threads(threads) if (w->tasks > 1)
    for (int64_t wave = 0; wave < w->tasks; wave += WAVE) {
        const int64_t end = w->tasks - wave < WAVE ? w->tasks : wave + WAVE;
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = wave; i < end; i++)
            run_task(w, i, wave, t);
#pragma omp for schedule(static)
        for (int64_t i = wave; i < end; i++) {
            int64_t row, h, chunks;
            if (!locate(w, i, &row, &h, &chunks) || i == wave)
                run_merge(w, i, wave, end, t);
        }
    }
}

ink_status NAME(paged_attention)(const op_call *c)
{
    decode w;
    TRY(attention_open(c, &w.a));
    lay_out(&w, c);
    switch (w.a.dtype) {
    case INK_BF16: run_waves(&w, c->threads, INK_BF16); break;
    case INK_F16: run_waves(&w, c->threads, INK_F16); break;
    default: run_waves(&w, c->threads, INK_F32); break;
    }
    return INK_OK;
}
