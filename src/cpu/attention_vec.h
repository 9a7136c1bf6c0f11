/* attention_vec.h - attention of prompt rows for AVX2 and AVX-512: included by attention_avx2.c and attention_avx512.c,
 * which define NAME(x). Serves attention and paged_attention in any dtype.
 *
 * A task is one key head of one sequence and up to ROWS of its (query, head of the group) pairs. For each block of KEYS
 * keys, starting at multiples of KEYS: K is packed to FP32 panels [KEYS / PANEL][D][PANEL] and V to FP32 slabs
 * [chunk][KEYS][width of the chunk]; scores by an outer-product tile (PANEL keys x SCORE_ROWS rows, one FMA chain in d per
 * score); running maximum and sum; context by a second tile, one FMA chain in the key per block. Scores, probabilities
 * and context stay FP32; the only rounding to the storage type is the last.
 *
 * A row stops at its last visible key: a tile runs to the smallest count among its rows and each row finishes alone, in
 * the same chain, so that its bits depend on nothing but itself. */
#include "core/status.h"
#include "core/threads.h"
#include "cpu/attention.h"
#include "cpu/attention_exp.h"

enum {
    PANEL = 2 * VF,
    SCORE_ROWS = VF == 16 ? 12 : 6,
    ROWS = 192, /* multiple of SCORE_ROWS */
    KEYS = VF == 16 ? 256 : 128,
    SCORES_STEP = KEYS + VF, /* odd multiple of a vector: rows of a tile fall into different cache sets */
    MAX_CHUNKS = 16
};

/* How the D columns of V are cut into chunks of whole vectors, so that a context tile fills the registers. */
typedef struct chunks {
    int count, width[MAX_CHUNKS + 1]; /* vectors */
    int64_t columns;                  /* D rounded up to whole vectors */
} chunks;

static chunks cut(int64_t dim)
{
    int vectors = (int)((dim + VF - 1) / VF), best = VF == 16 ? (vectors % 5 ? 4 : 5) : (vectors % 3 ? 2 : 3);
    chunks c = {.columns = (int64_t)vectors * VF};
    for (int left = vectors; left > 0; left -= best)
        c.width[c.count++] = left < best ? left : best;
    return c;
}

/* Scratch of one thread, floats. */
typedef struct scratch {
    float *q, *o, *s, *k, *v;
    float top[ROWS], sum[ROWS]; /* top: maximum of the raw scores so far */
    int64_t visible[ROWS];
} scratch;

static size_t scratch_floats(int64_t dim)
{
    size_t columns = (size_t)(dim + VF - 1) / VF * VF;
    return ROWS * (columns + columns + SCORES_STEP) + KEYS * (columns + columns);
}

static void scratch_place(scratch *w, float *at, const chunks *c)
{
    w->q = at;
    w->o = w->q + ROWS * c->columns;
    w->s = w->o + ROWS * c->columns;
    w->k = w->s + ROWS * SCORES_STEP;
    w->v = w->k + KEYS * c->columns;
}

/* ---- packing ---- */

VEC_INLINE __m256 load8(const void *p, ink_dtype t, int64_t i)
{
    if (t == INK_F32)
        return _mm256_loadu_ps((const float *)p + i);
    __m128i h = _mm_loadu_si128((const __m128i *)((const uint16_t *)p + i));
    return t == INK_BF16 ? _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16)) : _mm256_cvtph_ps(h);
}

VEC_INLINE void transpose8(__m256 v[8])
{
    __m256 t[8], u[8];
    UNROLL
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm256_unpacklo_ps(v[2 * i], v[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(v[2 * i], v[2 * i + 1]);
    }
    UNROLL
    for (int i = 0; i < 2; i++) {
        u[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
        u[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
        u[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
        u[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
        v[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
    }
}

/* n <= 8 keys at element `at` of k into 8 columns of a panel; missing keys become zeros. */
VEC_INLINE void pack_keys(const attention_view *a, int64_t at, int64_t n, float *panel, const ink_dtype t)
{
    int64_t d = 0;
    if (n == 8)
        for (; d + 8 <= a->dim; d += 8) {
            __m256 v[8];
            UNROLL
            for (int i = 0; i < 8; i++)
                v[i] = load8(a->k, t, at + i * a->key_step + d);
            transpose8(v);
            UNROLL
            for (int i = 0; i < 8; i++)
                _mm256_storeu_ps(panel + (d + i) * PANEL, v[i]);
        }
    for (; d < a->dim; d++)
        for (int i = 0; i < 8; i++)
            panel[d * PANEL + i] = i < n ? load_f32(a->k, t, at + i * a->key_step + d) : 0;
}

/* Keys first .. first+n-1 of sequence s, head h. */
VEC_INLINE void pack_block(const attention_view *a, const chunks *c, int64_t s, int64_t h, int64_t first, int64_t n,
                           scratch *w, const ink_dtype t)
{
    for (int64_t j = 0; j < (n + PANEL - 1) / PANEL * PANEL; j += 8) {
        int64_t left = n - j < 0 ? 0 : n - j > 8 ? 8 : n - j, key = first + j;
        int64_t at = left ? attention_strip(a, s, h, key / KV_BLOCK) + key % KV_BLOCK * a->key_step : 0;
        pack_keys(a, at, left, w->k + j / PANEL * PANEL * a->dim + j % PANEL, t);
    }
    float *slab = w->v;
    for (int i = 0, from = 0; i < c->count; from += c->width[i] * VF, slab += KEYS * c->width[i] * VF, i++)
        for (int64_t j = 0; j < n; j++) {
            int64_t key = first + j, at = attention_strip(a, s, h, key / KV_BLOCK) + key % KV_BLOCK * a->key_step + from;
            for (int x = 0; x < c->width[i]; x++)
                v_store(slab + (j * c->width[i] + x) * VF, v_get(a->v, t, at + x * VF, a->dim - from - x * VF));
        }
}

/* ---- scores ---- */

VEC_INLINE void score_tile(const int rows, const float *q, int64_t q_step, const float *k, int64_t dim, float *s)
{
    vf acc[SCORE_ROWS][2];
    UNROLL
    for (int i = 0; i < rows; i++)
        acc[i][0] = acc[i][1] = v_zero();
    for (int64_t d = 0; d < dim; d++, k += PANEL) {
        vf k0 = v_load(k), k1 = v_load(k + VF);
        UNROLL
        for (int i = 0; i < rows; i++) {
            vf x = v_set(q[i * q_step + d]);
            acc[i][0] = v_fma(x, k0, acc[i][0]);
            acc[i][1] = v_fma(x, k1, acc[i][1]);
        }
    }
    UNROLL
    for (int i = 0; i < rows; i++) {
        v_store(s + i * SCORES_STEP, acc[i][0]);
        v_store(s + i * SCORES_STEP + VF, acc[i][1]);
    }
}

/* Scores of rows from .. rows-1 against the n keys of the block, panel by panel; rows that see nothing of a panel are
 * left out (their counts rise with the row). */
static void scores(scratch *w, int64_t rows, int64_t q_step, int64_t dim, int64_t first, int64_t n)
{
    int64_t from = 0;
    for (int64_t j = 0; j < n; j += PANEL) {
        while (from < rows && w->visible[from] <= first + j)
            from++;
        const float *panel = w->k + j * dim;
        int64_t i = from;
        for (; i + SCORE_ROWS <= rows; i += SCORE_ROWS)
            score_tile(SCORE_ROWS, w->q + i * q_step, q_step, panel, dim, w->s + i * SCORES_STEP + j);
        for (; i + SCORE_ROWS / 2 <= rows; i += SCORE_ROWS / 2)
            score_tile(SCORE_ROWS / 2, w->q + i * q_step, q_step, panel, dim, w->s + i * SCORES_STEP + j);
        for (; i < rows; i++)
            score_tile(1, w->q + i * q_step, q_step, panel, dim, w->s + i * SCORES_STEP + j);
    }
}

/* ---- softmax ---- */

/* Turns the n raw scores of one row into 2^(c score - c top) and brings top, sum and context up to date. Only -inf so far
 * counts as top 0: exp(-inf) is then 0, not NaN, and a row of nothing else ends as 0 / 0. */
static void soften(float *s, int64_t n, float c, float *top, float *sum, float *o, int64_t columns)
{
    const int64_t whole = (n + VF - 1) / VF * VF;
    for (int64_t j = n; j < whole; j++)
        s[j] = -INFINITY;
    vf m0 = v_load(s), m1 = m0;
    int64_t j = VF;
    for (; j + 2 * VF <= whole; j += 2 * VF) {
        m0 = v_max(m0, v_load(s + j));
        m1 = v_max(m1, v_load(s + j + VF));
    }
    if (j < whole)
        m0 = v_max(m0, v_load(s + j));
    float block = v_top(v_max(m0, m1)), now = block > *top ? block : *top;
    float base = now == -INFINITY ? 0 : now * c, fix = *top == -INFINITY ? 0 : exp2_score(*top * c - base);
    vf vc = v_set(c), vbase = v_set(-base), a0 = v_zero(), a1 = v_zero();
    for (j = 0; j + 2 * VF <= whole; j += 2 * VF) {
        vf e0 = v_exp2_score(v_fma(v_load(s + j), vc, vbase)), e1 = v_exp2_score(v_fma(v_load(s + j + VF), vc, vbase));
        v_store(s + j, e0);
        v_store(s + j + VF, e1);
        a0 = v_add(a0, e0);
        a1 = v_add(a1, e1);
    }
    if (j < whole) {
        vf e = v_exp2_score(v_fma(v_load(s + j), vc, vbase));
        v_store(s + j, e);
        a0 = v_add(a0, e);
    }
    *sum = *sum * fix + v_sum(v_add(a0, a1));
    *top = now;
    if (fix != 1)
        for (int64_t d = 0; d < columns; d += VF)
            v_store(o + d, v_mul(v_set(fix), v_load(o + d)));
}

/* ---- context ---- */

VEC_INLINE void context_tile(const int rows, const int width, const float *p, const float *v, int64_t n, float *o,
                             int64_t o_step)
{
    vf acc[12][5];
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int x = 0; x < width; x++)
        acc[i][x] = v_load(o + i * o_step + x * VF);
    for (int64_t j = 0; j < n; j++, v += width * VF) {
        vf b[5];
        UNROLL
        for (int x = 0; x < width; x++)
            b[x] = v_load(v + x * VF);
        UNROLL
        for (int i = 0; i < rows; i++) {
            vf a = v_set(p[i * SCORES_STEP + j]);
            UNROLL
            for (int x = 0; x < width; x++)
                acc[i][x] = v_fma(a, b[x], acc[i][x]);
        }
    }
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int x = 0; x < width; x++)
        v_store(o + i * o_step + x * VF, acc[i][x]);
}

/* One slab: the keys that all rows of a tile see, then the rest row by row. count[i] keys of the block for row i. */
VEC_INLINE void context_slab(const int tile, const int width, const scratch *w, const int64_t *count, int64_t rows,
                             const float *slab, float *o, int64_t o_step)
{
    for (int64_t i = 0; i < rows;) {
        const int64_t r = rows - i >= tile ? tile : 1, shared = count[i];
        const float *p = w->s + i * SCORES_STEP;
        if (r == tile)
            context_tile(tile, width, p, slab, shared, o + i * o_step, o_step);
        else
            context_tile(1, width, p, slab, shared, o + i * o_step, o_step);
        for (int64_t x = 1; x < r; x++)
            if (count[i + x] > shared)
                context_tile(1, width, p + x * SCORES_STEP + shared, slab + shared * width * VF, count[i + x] - shared,
                             o + (i + x) * o_step, o_step);
        i += r;
    }
}

static void context(const scratch *w, const chunks *c, const int64_t *count, int64_t rows)
{
    const float *slab = w->v;
    float *o = w->o;
    for (int i = 0; i < c->count; i++) {
        switch (c->width[i]) {
#if VF_IS_16
        case 5: context_slab(5, 5, w, count, rows, slab, o, c->columns); break;
        case 4: context_slab(6, 4, w, count, rows, slab, o, c->columns); break;
        case 3: context_slab(8, 3, w, count, rows, slab, o, c->columns); break;
        case 2: context_slab(12, 2, w, count, rows, slab, o, c->columns); break;
        default: context_slab(12, 1, w, count, rows, slab, o, c->columns); break;
#else
        case 3: context_slab(4, 3, w, count, rows, slab, o, c->columns); break;
        case 2: context_slab(6, 2, w, count, rows, slab, o, c->columns); break;
        default: context_slab(12, 1, w, count, rows, slab, o, c->columns); break;
#endif
        }
        slab += KEYS * c->width[i] * VF;
        o += c->width[i] * VF;
    }
}

/* ---- one task ---- */

/* Rows first .. first+rows-1 of key head h of sequence s, where row r is query r / group, head h * group + r % group. */
VEC_INLINE void task(const attention_view *a, const chunks *c, int64_t s, int64_t h, int64_t first, int64_t rows,
                     scratch *w, const ink_dtype t)
{
    const float scale = a->scale * 1.44269504f;
    for (int64_t r = 0; r < rows; r++) {
        int64_t i = (first + r) / a->group,
                at = attention_query(a, a->starts[s] + i, h * a->group + (first + r) % a->group);
        for (int64_t d = 0; d < a->dim; d += VF)
            v_store(w->q + r * c->columns + d, v_get(a->q, t, at + d, a->dim - d));
        w->visible[r] = attention_visible(a, s, i);
        w->top[r] = -INFINITY;
        w->sum[r] = 0;
    }
    for (int64_t d = 0; d < rows * c->columns; d += VF)
        v_store(w->o + d, v_zero());
    for (int64_t key = 0, all = w->visible[rows - 1]; key < all; key += KEYS) {
        int64_t n = all - key < KEYS ? all - key : KEYS, count[ROWS];
        pack_block(a, c, s, h, key, n, w, t);
        scores(w, rows, c->columns, a->dim, key, n);
        for (int64_t r = 0; r < rows; r++) {
            int64_t seen = w->visible[r] - key;
            count[r] = seen < 0 ? 0 : seen > n ? n : seen;
            if (count[r])
                soften(w->s + r * SCORES_STEP, count[r], scale, &w->top[r], &w->sum[r], w->o + r * c->columns, c->columns);
        }
        context(w, c, count, rows);
    }
    for (int64_t r = 0; r < rows; r++) {
        int64_t at = attention_query(a, a->starts[s] + (first + r) / a->group, h * a->group + (first + r) % a->group);
        vf sum = v_set(w->visible[r] > 0 ? w->sum[r] : 1); /* a fully masked row: 0 / 1 */
        for (int64_t d = 0; d < a->dim; d += VF)
            v_put(a->y, t, at + d, v_div(v_load(w->o + r * c->columns + d), sum), a->dim - d);
    }
}

/* ---- the call ---- */

static size_t index_bytes(int64_t sequences) { return ((size_t)(sequences + 2) * sizeof(int64_t) + 63) / 64 * 64; }
static size_t scratch_bytes(int64_t dim) { return (sizeof(scratch) + 63) / 64 * 64 + scratch_floats(dim) * sizeof(float); }

size_t NAME(attention_workspace)(const op_call *c)
{
    const ink_tensor *cu = c->in[c->op == OP_paged_attention ? 5 : 3];
    return index_bytes(cu->dims[0]) + (size_t)c->threads * scratch_bytes(c->in[0]->dims[2]);
}

VEC_INLINE void run_tasks(const attention_view *a, const op_call *c, const ink_dtype t)
{
    /* before[s]: tasks of the sequences before s */
    int64_t *before = c->workspace;
    before[0] = 0;
    for (int64_t s = 0; s < a->sequences; s++)
        before[s + 1] = before[s] + attention_row_blocks(a, s, ROWS) * a->kv_heads;
    const int64_t tasks = before[a->sequences > 0 ? a->sequences : 0];
    const chunks cuts = cut(a->dim);
    char *memory = (char *)c->workspace + index_bytes(a->sequences + 1);
#pragma omp parallel num_threads(c->threads) if (tasks > 1)
    {
        scratch *w = (scratch *)(memory + (size_t)thread_index() * scratch_bytes(a->dim));
        scratch_place(w, (float *)((char *)w + (sizeof(scratch) + 63) / 64 * 64), &cuts);
        /* From the end: the last rows of a causal sequence have the most keys. */
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < tasks; i++) {
            const int64_t at = tasks - 1 - i, s = attention_find(before, a->sequences, at);
            const int64_t blocks = attention_row_blocks(a, s, ROWS), b = (at - before[s]) % blocks;
            int64_t rows, first = attention_row_block(a, s, b, ROWS, SCORE_ROWS, &rows);
            task(a, &cuts, s, (at - before[s]) / blocks, first, rows, w, t);
        }
    }
}

ink_status NAME(attention)(const op_call *c)
{
    attention_view a;
    TRY(attention_open(c, &a));
    switch (a.dtype) {
    case INK_BF16: run_tasks(&a, c, INK_BF16); break;
    case INK_F16: run_tasks(&a, c, INK_F16); break;
    default: run_tasks(&a, c, INK_F32); break;
    }
    return INK_OK;
}
