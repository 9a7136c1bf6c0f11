/* gemm.c - blocking and task grid of gemm.h. */
#include "cpu/gemm.h"

#include "core/threads.h"

#include <string.h>

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t round_up(int64_t a, int64_t to) { return ceil_div(a, to) * to; }

static size_t dtype_bytes(ink_dtype t) { return t == INK_F32 ? 4 : 2; }

/* ---- scratch of one thread: strips, panels, sums ---- */

typedef struct scratch {
    uint32_t *strips, *panels;
    float *sums;
    size_t bytes; /* all of it, a multiple of 64 */
} scratch;

enum { SUMS_PAD = 16 }; /* floats behind each row of sums, so that rows do not share cache sets */

static int64_t task_columns(const gemm_tile *t, int matrices)
{
    return matrices == 1 ? t->nc : t->nc / 2 / t->nr * t->nr;
}

static scratch scratch_layout(const gemm_tile *t, int64_t m, int64_t n, int64_t k, int matrices, char *at)
{
    const int64_t words = round_up(ceil_div(min64(k, t->kc), t->elements), t->chunk);
    const int64_t columns = min64(round_up(n, t->nr), task_columns(t, matrices)) * matrices;
    const int64_t strips = min64(round_up(m, t->mr), t->mc) * words, panels = columns * words;
    const int64_t sums = min64(round_up(m, t->mr), t->mt) * (columns + SUMS_PAD);
    size_t a = (size_t)round_up(strips * 4, 64) + 64, w = (size_t)round_up(panels * 4, 64) + 64, c = (size_t)round_up(sums * 4, 64);
    scratch s = {.bytes = a + w + c};
    if (at) {
        s.strips = (uint32_t *)at;
        s.panels = (uint32_t *)(at + a);
        s.sums = (float *)(at + a + w);
    }
    return s;
}

size_t gemm_scratch_bytes(const gemm_tile *t, int64_t m, int64_t n, int64_t k, int matrices, int threads)
{
    return scratch_layout(t, m, n, k, matrices, NULL).bytes * (size_t)threads;
}

/* ---- the task grid ---- */

typedef struct grid {
    int64_t rows, columns;     /* of a task */
    int64_t row_tasks, column_tasks;
} grid;

/* Time of the busiest thread in multiply-adds, if all tasks are as large as the largest. */
static double grid_cost(const gemm_tile *t, const gemm_job *j, const grid *g)
{
    int64_t rounds = ceil_div(g->row_tasks * g->column_tasks, j->threads);
    double m = (double)min64(g->rows, j->m), n = (double)min64(g->columns, round_up(j->n, t->nr)) * (j->w[1] ? 2 : 1);
    return (double)rounds * (m * n + m * t->pack_a + n * t->pack_w);
}

/* The cheapest of the grids with at most mt x nc tasks: several of them when threads share the work. */
static grid choose_grid(const gemm_tile *t, const gemm_job *j)
{
    const int64_t most_columns = task_columns(t, j->w[1] ? 2 : 1);
    const int64_t rows0 = ceil_div(j->m, t->mt), columns0 = ceil_div(j->n, most_columns), more = j->threads > 1 ? 2 * j->threads : 0;
    grid best = {0};
    double best_cost = 0;
    for (int64_t r = rows0; r <= rows0 + more; r++)
        for (int64_t c = columns0; c <= columns0 + more; c++) {
            grid g = {.rows = round_up(ceil_div(j->m, r), t->mr), .columns = round_up(ceil_div(j->n, c), t->nr)};
            g.row_tasks = ceil_div(j->m, g.rows);
            g.column_tasks = ceil_div(j->n, g.columns);
            double cost = grid_cost(t, j, &g);
            if (!best.rows || cost < best_cost) {
                best = g;
                best_cost = cost;
            }
        }
    return best;
}

/* ---- one task ---- */

typedef struct task {
    int64_t m0, m1, n0, n1, ldc; /* ldc: floats between rows of sums */
    int64_t panel_count;         /* of one matrix */
    scratch s;
} task;

static void pack_panels(const gemm_tile *t, const gemm_job *j, const task *a, int64_t k0, int64_t k, int64_t panel_words)
{
    const size_t element = dtype_bytes(j->dtype);
    uint32_t *panel = a->s.panels;
    for (int q = 0; q < 2 && j->w[q]; q++)
        for (int64_t n = a->n0; n < a->n1; n += t->nr, panel += panel_words)
            t->pack_panel(panel, (const char *)j->w[q] + (size_t)(n * j->k + k0) * element, j->k, min64(t->nr, a->n1 - n), k);
}

/* Rows m..m+rows of the task times all its panels. A panel stays in the first-level cache while the strips pass by. */
static void multiply_block(const gemm_tile *t, const gemm_job *j, const task *a, int64_t m, int64_t rows, int64_t k0, int64_t k)
{
    const int64_t words = round_up(ceil_div(k, t->elements), t->chunk), chunks = words / t->chunk;
    const int64_t panels = a->panel_count * (j->w[1] ? 2 : 1);
    const char *x = (const char *)j->x + (size_t)(m * j->k + k0) * dtype_bytes(j->dtype);
    for (int64_t i = 0; i < rows; i += t->mr)
        t->pack_strip(a->s.strips + i * words, x + (size_t)(i * j->k) * dtype_bytes(j->dtype), j->k, min64(t->mr, rows - i), k);
    for (int64_t p = 0; p < panels; p++)
        for (int64_t i = 0; i < rows; i += t->mr)
            t->multiply((int)min64(t->mr, rows - i), a->s.strips + i * words, a->s.panels + p * t->nr * words, chunks,
                        a->s.sums + (m - a->m0 + i) * a->ldc + p * t->nr, a->ldc, k0 == 0);
}

static void run_task(const gemm_tile *t, const gemm_job *j, const task *a)
{
    const int64_t columns = a->panel_count * t->nr, blocks = j->k ? ceil_div(j->k, t->kc) : 1;
    const int64_t depth = round_up(ceil_div(j->k, blocks), t->chunk * t->elements);
    for (int64_t k0 = 0; k0 == 0 || k0 < j->k; k0 += depth) {
        const int64_t k = min64(depth, j->k - k0);
        pack_panels(t, j, a, k0, k, t->nr * round_up(ceil_div(k, t->elements), t->chunk));
        for (int64_t m = a->m0; m < a->m1; m += t->mc) {
            const int64_t rows = min64(t->mc, a->m1 - m);
            multiply_block(t, j, a, m, rows, k0, k);
            for (int64_t i = 0; i < rows && k0 + k == j->k; i++) {
                const float *c = a->s.sums + (m - a->m0 + i) * a->ldc;
                t->finish(j, c, j->w[1] ? c + columns : NULL, m + i, a->n0, a->n1 - a->n0);
            }
        }
        if (!k)
            break;
    }
}

void gemm_run(const gemm_tile *t, const gemm_job *j)
{
    if (!j->m || !j->n)
        return;
    const int matrices = j->w[1] ? 2 : 1;
    const grid g = choose_grid(t, j);
    const int64_t tasks = g.row_tasks * g.column_tasks;
    const int threads = (int)min64(j->threads, tasks);
    const size_t share = scratch_layout(t, j->m, j->n, j->k, matrices, NULL).bytes;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        if (t->enter)
            t->enter();
        task a = {.s = scratch_layout(t, j->m, j->n, j->k, matrices, (char *)j->scratch + share * (size_t)thread_index())};
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t i = 0; i < tasks; i++) {
            a.m0 = i % g.row_tasks * g.rows;
            a.m1 = min64(j->m, a.m0 + g.rows);
            a.n0 = i / g.row_tasks * g.columns;
            a.n1 = min64(j->n, a.n0 + g.columns);
            a.panel_count = ceil_div(a.n1 - a.n0, t->nr);
            a.ldc = a.panel_count * t->nr * matrices + SUMS_PAD;
            run_task(t, j, &a);
        }
        if (t->leave)
            t->leave();
    }
}

gemm_job gemm_job_of(const op_call *c)
{
    const ink_tensor *x = c->in[0], *w = c->in[1];
    gemm_job j = {.x = x->data, .w = {w->data}, .m = tensor_rows(x), .n = w->dims[0], .k = w->dims[1], .y = c->out[0]->data,
                  .dtype = x->dtype, .y_dtype = c->out[0]->dtype, .act = c->attrs.linear.act, .threads = c->threads,
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
