/* gemm.c - blocking and task grid of gemm.h.
 *
 *     for each part of W:                                          (SHARED_BYTES of panels: the last-level cache)
 *         pack its panels                                          all threads, then a barrier
 *         for each task (rows x columns of C), in parallel:
 *             pack the rows' strips, all of K                      (second-level cache)
 *             for each panel, for each block of K:                 (kc of a panel: first-level cache)
 *                 for each strip: multiply
 *               finish the panel's columns */
#include "cpu/gemm.h"

#include "core/threads.h"

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t round_up(int64_t a, int64_t to) { return ceil_div(a, to) * to; }

enum { SHARED_BYTES = 16 << 20 };

/* ---- sizes ---- */

typedef struct layout {
    int matrices;
    int64_t words;               /* of a row, in strips and panels */
    int64_t depth, blocks;       /* elements of K in a block, and how many blocks */
    int64_t rows;                /* most in a task */
    int64_t part;                /* columns of C in a part of W */
    size_t shared, strips, sums; /* bytes: panels of a part; of each thread */
} layout;

static layout layout_of(const gemm_tile *t, int64_t m, int64_t n, int64_t k, int matrices)
{
    layout l = {.matrices = matrices, .words = round_up(ceil_div(k, t->elements), t->chunk)};
    const int64_t row = max64(l.words * 4, 1), m_whole = round_up(m, t->mr), n_whole = round_up(n, t->nr);
    l.blocks = k ? ceil_div(k, t->kc) : 1;
    l.depth = round_up(ceil_div(k, l.blocks), t->chunk * t->elements);
    l.rows = min64(m_whole, min64(t->mc, max64(t->strips_bytes / row / t->mr * t->mr, t->mr)));
    l.part = min64(n_whole, max64(SHARED_BYTES / (row * matrices) / t->nr * t->nr, t->nr));
    /* bounds of the above that grow with every dimension */
    l.shared = (size_t)round_up(min64(n_whole * matrices * row, max64(SHARED_BYTES, t->nr * matrices * row)), 64);
    l.strips = (size_t)round_up(min64(m_whole * row, max64(t->strips_bytes, t->mr * row)), 64);
    l.sums = (size_t)round_up(min64(m_whole, t->mc) * t->nr * matrices * 4, 64);
    return l;
}

size_t gemm_scratch_bytes(const gemm_tile *t, int64_t m, int64_t n, int64_t k, int matrices, int threads)
{
    layout l = layout_of(t, m, n, k, matrices);
    return l.shared + (l.strips + l.sums) * (size_t)threads;
}

/* ---- the task grid ---- */

typedef struct grid {
    int64_t rows, columns; /* of a task */
    int64_t row_tasks, tasks;
} grid;

static grid make_grid(const gemm_tile *t, int64_t m, int64_t n, int64_t row_tasks, int64_t column_tasks)
{
    grid g = {.rows = round_up(ceil_div(m, row_tasks), t->mr), .columns = round_up(ceil_div(n, column_tasks), t->nr)};
    g.row_tasks = ceil_div(m, g.rows);
    g.tasks = g.row_tasks * ceil_div(n, g.columns);
    return g;
}

/* The shape with the least work for the busiest thread, if all tasks are as large as the largest. Tried: as few row blocks
 * as fit, and up to one more for each thread; columns undivided, or into one, two or three tasks for each thread. */
static grid choose_grid(const gemm_tile *t, const layout *l, int64_t m, int64_t n, int threads)
{
    const int64_t least = ceil_div(m, l->rows), most = least + (threads > 1 ? threads : 0);
    grid best = {0};
    double best_cost = 0;
    for (int64_t r = least; r <= most; r++)
        for (int each = 0; each <= (threads > 1 ? 3 : 0); each++) {
            const grid g = make_grid(t, m, n, r, max64(1, ceil_div((int64_t)each * threads, r)));
            const double rows = (double)min64(g.rows, m), columns = (double)(g.columns * l->matrices);
            const double cost =
                (double)ceil_div(g.tasks, threads) * (rows * columns + rows * t->pack_a + columns * t->read_w);
            if (!best.rows || cost < best_cost * 0.999) {
                best = g;
                best_cost = cost;
            }
        }
    return best;
}

/* ---- packing ---- */

static const char *element_at(const gemm_job *j, const void *base, int64_t i)
{
    return (const char *)base + (size_t)i * (j->dtype == INK_F32 ? 4 : 2);
}

/* Panel p of a part that begins at column n0: for each block of K, the matrices' panels side by side in memory. Panels of
 * gate and up alternate. */
static void pack_panel(const gemm_tile *t, const gemm_job *j, const layout *l, uint32_t *panel, const void *w, int64_t n)
{
    for (int64_t b = 0; b < l->blocks; b++) {
        const int64_t k0 = b * l->depth, k = min64(l->depth, j->k - k0);
        t->pack_panel(panel + t->nr * (k0 / t->elements), element_at(j, w, n * j->k + k0), j->k, min64(t->nr, j->n - n), k);
    }
}

static void pack_strips(const gemm_tile *t, const gemm_job *j, const layout *l, uint32_t *strips, int64_t m, int64_t rows)
{
    for (int64_t b = 0; b < l->blocks; b++) {
        const int64_t k0 = b * l->depth, k = min64(l->depth, j->k - k0),
                      words = round_up(ceil_div(k, t->elements), t->chunk);
        uint32_t *block = strips + round_up(rows, t->mr) * (k0 / t->elements);
        for (int64_t i = 0; i < rows; i += t->mr)
            t->pack_strip(block + i * words, element_at(j, j->x, (m + i) * j->k + k0), j->k, min64(t->mr, rows - i), k);
    }
}

/* ---- one task ---- */

/* The lines of y[m .. m+rows)[n .. ] that will be written when the panel is finished. */
static void expect_writes(const gemm_job *j, int64_t m, int64_t rows, int64_t n)
{
    const int64_t size = j->y_dtype == INK_F32 ? 4 : 2;
    for (int64_t i = m; i < m + rows; i++)
        __builtin_prefetch((const char *)j->y + (i * j->n + n) * size, 1, 2);
}

/* sums[rows][ldc] = strips . panel, through all of K. */
static void multiply_panel(const gemm_tile *t, const gemm_job *j, const layout *l, const uint32_t *strips,
                           const uint32_t *panel, int64_t m, int64_t rows, int64_t n, float *sums, int64_t ldc)
{
    for (int64_t b = 0; b < l->blocks; b++) {
        const int64_t k0 = b * l->depth, words = round_up(ceil_div(min64(l->depth, j->k - k0), t->elements), t->chunk);
        const int64_t chunks = words / t->chunk;
        const uint32_t *strip = strips + round_up(rows, t->mr) * (k0 / t->elements),
                       *block = panel + t->nr * (k0 / t->elements);
        /* The block after this one is fetched by the first strips, an eighth or a quarter of it each. */
        const int64_t step = t->nr * t->chunk * 4 / (rows >= 8 * t->mr ? 8 : 4);
        const char *ahead = (const char *)(block + t->nr * words), *end = ahead + t->nr * words * 4;
        for (int64_t i = 0; i < rows; i += t->mr, ahead += chunks * step) {
            const int64_t count = min64(t->mr, rows - i);
            if (b == l->blocks - 1)
                expect_writes(j, m + i, count, n);
            t->multiply((int)count, strip + i * words, block, chunks, sums + i * ldc, ldc, b == 0,
                        ahead < end ? ahead : (const char *)block, step);
        }
    }
}

typedef struct task {
    int64_t m, rows, n0, n1; /* columns n0..n1 */
    int64_t part;            /* column where the packed part of W begins */
} task;

static void run_task(const gemm_tile *t, const gemm_job *j, const layout *l, const task *a, const uint32_t *panels,
                     const uint32_t *strips, float *sums)
{
    const int64_t ldc = t->nr * l->matrices, panel_words = t->nr * l->words;
    for (int64_t n = a->n0; n < a->n1; n += t->nr) {
        const uint32_t *panel = panels + (n - a->part) / t->nr * l->matrices * panel_words;
        for (int q = 0; q < l->matrices; q++)
            multiply_panel(t, j, l, strips, panel + q * panel_words, a->m, a->rows, n, sums + q * t->nr, ldc);
        t->finish(j, sums, l->matrices == 2 ? sums + t->nr : NULL, ldc, a->m, a->rows, n, min64(t->nr, a->n1 - n));
    }
}

/* ---- the whole ---- */

void gemm_run(const gemm_tile *t, const gemm_job *j)
{
    if (!j->m || !j->n)
        return;
    const layout l = layout_of(t, j->m, j->n, j->k, j->w[1] ? 2 : 1);
    const bool small = (double)j->m * (double)j->n * (double)max64(j->k, 1) * l.matrices < 1 << 18;
    const int threads = small ? 1 : j->threads;
    char *const own = (char *)j->scratch + l.shared;
    uint32_t *const panels = j->scratch;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        uint32_t *strips = (uint32_t *)(own + (l.strips + l.sums) * (size_t)thread_index());
        float *sums = (float *)((char *)strips + l.strips);
        if (t->enter)
            t->enter();
        for (int64_t part = 0; part < j->n; part += l.part) {
            const int64_t columns = min64(l.part, j->n - part), count = ceil_div(columns, t->nr) * l.matrices;
            const grid g = choose_grid(t, &l, j->m, columns, threads);
            int64_t packed =
                -1; /* first row of the strips at hand: of this part, whose grid may differ from the last one's */
#pragma omp for schedule(static)
            for (int64_t p = 0; p < count; p++)
                pack_panel(t, j, &l, panels + p * t->nr * l.words, j->w[p % l.matrices], part + p / l.matrices * t->nr);
#pragma omp for schedule(dynamic, 1)
            for (int64_t i = 0; i < g.tasks; i++) {
                task a = {.m = i % g.row_tasks * g.rows, .n0 = part + i / g.row_tasks * g.columns, .part = part};
                a.rows = min64(g.rows, j->m - a.m);
                a.n1 = min64(part + columns, a.n0 + g.columns);
                if (packed != a.m)
                    pack_strips(t, j, &l, strips, a.m, a.rows);
                packed = a.m;
                run_task(t, j, &l, &a, panels, strips, sums);
            }
        }
        if (t->leave)
            t->leave();
    }
}

gemm_job gemm_job_of(const op_call *c)
{
    const ink_tensor *x = c->in[0], *w = c->in[1];
    gemm_job j = {.x = x->data,
                  .w = {w->data},
                  .m = tensor_rows(x),
                  .n = w->dims[0],
                  .k = w->dims[1],
                  .y = c->out[0]->data,
                  .dtype = x->dtype,
                  .y_dtype = c->out[0]->dtype,
                  .act = c->attrs.linear.act,
                  .threads = c->threads,
                  .scratch = c->workspace};
    if (c->op == OP_linear_gated) {
        j.w[1] = c->in[2]->data;
        return j;
    }
    if (c->in[2]) {
        j.bias = c->in[2]->data;
        j.bias_dtype = c->in[2]->dtype;
    }
    j.residual = c->in[3] ? c->in[3]->data : NULL;
    return j;
}
