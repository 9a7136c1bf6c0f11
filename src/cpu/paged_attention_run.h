/* paged_attention_run.h - merging and the call of the kernels for generated tokens, see paged_attention.h. Included at the
 * end of a kernel file. MORE_SCRATCH: floats of a thread's scratch behind the queries and scores, for chunk. ONLY_BF16:
 * defined where chunk knows no other type. */
/* ---- merging ---- */

/* `into` holds the chunks so far, `next` the chunk after them. */
static void merge(partial into, partial next, int64_t group, int64_t columns)
{
    for (int64_t g = 0; g < group; g++) {
        float now = next.top[g] > into.top[g] ? next.top[g] : into.top[g];
        float old = exp2_score(into.top[g] - now), add = exp2_score(next.top[g] - now);
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
        const int64_t at = attention_query(a, row, h * a->group + g);
        vf sum = v_set(r.sum[g]);
        for (int64_t d = 0; d < a->dim; d += 2 * VF) {
            vf x = v_load(r.o + g * columns + d), y = v_load(r.o + g * columns + d + VF);
            in_order(&x, &y, t);
            v_put(a->y, t, at + d, v_div(x, sum), a->dim - d);
            if (d + VF < a->dim)
                v_put(a->y, t, at + d + VF, v_div(y, sum), a->dim - d - VF);
        }
    }
}

/* ---- the call ---- */

typedef struct decode {
    attention_view a;
    int64_t *before;   /* [rows + 1]: tasks of the rows before */
    int32_t *sequence; /* [rows] */
    int64_t tasks;
    float *partials; /* [WAVE] */
    float *carry;    /* [2]: read in even and written in odd waves, and the other way round */
    float *scratch;  /* per thread: q, scores */
    size_t scratch_step;
} decode;

static size_t round64(size_t n) { return (n + 63) / 64 * 64; }
/* q of the group, scores of one tile of heads */
static size_t scratch_floats(int64_t group, int64_t dim)
{
    return (size_t)(padded_group(group) * columns_of(dim) + CHUNK * LANES + MORE_SCRATCH);
}

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
    const int64_t columns = columns_of(a->dim), padded = padded_group(a->group);
    float *q = w->scratch + (size_t)thread_index() * w->scratch_step, *scores = q + padded * columns;
    int64_t row, h, chunks, c = locate(w, i, &row, &h, &chunks), s = w->sequence[row];
    int64_t visible = attention_visible(a, s, row - a->starts[s]), first = c * CHUNK, n = visible - first;
    partial out = partial_at(w->partials, (size_t)(i - wave), a->group, a->dim);
    n = n < CHUNK ? n : CHUNK;
    load_queries(q, a, attention_query(a, row, h * a->group), t);
    for (int64_t g = 0; g < a->group; g += LANES)
        chunk(a->group - g, a, s, h, first, n, q + g * columns, scores, out.o + g * columns, out.top + g, out.sum + g);
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
        memcpy(partial_at(w->carry, ~number & 1, a->group, a->dim).o, r.o,
               partial_floats(a->group, a->dim) * sizeof(float));
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
#ifndef ONLY_BF16
    case INK_F16: run_waves(&w, c->threads, INK_F16); break;
    default: run_waves(&w, c->threads, INK_F32); break;
#else
    default: return failure(INK_UNIMPLEMENTED, "paged_attention: these tiles are for bf16"); /* no row asks for it */
#endif
    }
    return INK_OK;
}
