#include "conformance/conformance.h"

#include <math.h>
#include <stdlib.h>

static ink_status draw_argmax(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)layout;
    const int64_t rows = conf_dim(k, 12, true),
                  n = conf_chance(k, 30) ? rng_range(&k->random, 1000, k->size ? 30000 : 5000) : conf_dim(k, 300, false);
    if (conf_chance(k, 30)) /* many ties */
        conf_input_int(k, 0, dtype, 2, (int64_t[]){rows, n}, -4, conf_chance(k, 50) ? 4 : 300);
    else
        conf_input(k, 0, dtype, 2, (int64_t[]){rows, n}, 3);
    if (conf_chance(k, 30))
        conf_special_values(k, 0, true);
    if (conf_chance(k, 5))
        for (int64_t i = 0; k->in[0].data && i < rows * n; i++)
            ((float *)k->in[0].data)[i] = -INFINITY;
    k->no_bias_test = true;
    return INK_OK;
}

static int64_t largest(const double *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n && !isnan(x[best]); i++)
        if (isnan(x[i]) || x[i] > x[best])
            best = i;
    return best;
}

static ink_status reference_argmax(conf_case *k)
{
    const int64_t n = k->in[0].dims[1];
    double *row = arena_alloc(&k->memory, (size_t)n * sizeof *row);
    if (!row)
        return INK_RESOURCE_EXHAUSTED;
    for (int64_t r = 0; r < k->in[0].dims[0]; r++) {
        for (int64_t i = 0; i < n; i++)
            row[i] = conf_in(k, 0, r * n + i);
        k->expect[0][r] = (double)largest(row, n);
    }
    return INK_OK;
}

const conf_op conf_argmax = {OP_argmax, draw_argmax, reference_argmax};

/* ---- sample ---- */

typedef struct candidate {
    double logit;
    int64_t id;
} candidate;

static int by_logit(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->logit != y->logit)
        return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

/* The id that row r must draw, by sorting and in FP64; *clear is false when a decision is closer than the rounding of the
 * sums, 1e-10 of the total. */
static int64_t sampled(const conf_case *k, int64_t r, candidate *sorted, double *logit, bool *clear)
{
    const int64_t n = k->in[0].dims[1], most = k->in[3].dims[1];
    const double temperature = conf_in(k, 1, 3 * r), top_p = conf_in(k, 1, 3 * r + 1);
    const float penalty = (float)conf_in(k, 1, 3 * r + 2);
    *clear = true;
    for (int64_t i = 0; i < n; i++)
        logit[i] = conf_in(k, 0, r * n + i);
    for (int64_t i = 0; i < (int64_t)conf_in(k, 4, r); i++) {
        const int64_t id = (int64_t)conf_in(k, 3, r * most + i);
        const float l = (float)conf_in(k, 0, r * n + id);
        logit[id] = l > 0 ? l / penalty : l * penalty; /* FP32 by definition */
    }
    const int64_t best = largest(logit, n);
    if (temperature == 0 || !isfinite(logit[best]))
        return best;
    double total = 0, kept = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sorted[i] = (candidate){logit[i], i};
        total += exp((logit[i] - logit[best]) / temperature);
    }
    qsort(sorted, (size_t)n, sizeof *sorted, by_logit);
    double *weight = logit; /* from here on: weights of the kept ids, -1 for the others */
    const double top = logit[best];
    int64_t count = 0;
    for (bool reached = false; count < n && !(top_p < 1 && reached); count++) {
        kept += exp((sorted[count].logit - top) / temperature);
        reached = kept >= top_p * total;
        *clear &= top_p >= 1 || fabs(kept - top_p * total) > 1e-10 * total;
    }
    for (int64_t i = 0; i < n; i++)
        weight[sorted[i].id] = i < count ? exp((sorted[i].logit - top) / temperature) : 0;
    const double u =
        (double)(rng_at((uint64_t)((int64_t *)k->in[2].data)[2 * r], (uint64_t)((int64_t *)k->in[2].data)[2 * r + 1]) >>
                 11) *
        0x1p-53;
    for (int64_t i = 0; i < n; i++) {
        sum += weight[i];
        *clear &= fabs(sum - u * kept) > 1e-10 * kept;
        if (sum > u * kept)
            return i;
    }
    *clear = false;
    return best;
}

static void draw_row(conf_case *k, int64_t r)
{
    float *p = (float *)k->in[1].data + 3 * r;
    int64_t *seed = (int64_t *)k->in[2].data + 2 * r;
    p[0] = conf_chance(k, 20) ? 0 : (float)(0.1 + 2 * rng_unit(&k->random));
    p[1] = conf_chance(k, 30) ? 1 : conf_chance(k, 5) ? 0 : (float)rng_unit(&k->random);
    p[2] = conf_chance(k, 30) ? 1 : (float)(0.5 + rng_unit(&k->random));
    seed[0] = (int64_t)rng_u64(&k->random);
    seed[1] = (int64_t)rng_below(&k->random, 5000);
}

static ink_status draw_sample(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)layout;
    const int64_t rows = conf_dim(k, 6, true),
                  n = conf_chance(k, 20) ? rng_range(&k->random, 1000, k->size ? 20000 : 3000) : conf_dim(k, 200, false);
    const int64_t most = conf_dim(k, 40, true);
    if (conf_chance(k, 20)) /* ties at the cut of top_p */
        conf_input_int(k, 0, dtype, 2, (int64_t[]){rows, n}, -2, 2);
    else
        conf_input(k, 0, dtype, 2, (int64_t[]){rows, n}, conf_chance(k, 50) ? 1 : 5);
    conf_input(k, 1, INK_F32, 2, (int64_t[]){rows, 3}, 1);
    conf_input_int(k, 2, INK_I64, 2, (int64_t[]){rows, 2}, 0, 1);
    conf_input_int(k, 3, INK_I32, 2, (int64_t[]){rows, most}, 0, n - 1);
    conf_input_int(k, 4, INK_I32, 1, &rows, 0, most);
    candidate *sorted = arena_alloc(&k->memory, (size_t)n * sizeof *sorted);
    double *logit = arena_alloc(&k->memory, (size_t)n * sizeof *logit);
    for (int i = 0; i < 5; i++)
        if (!k->in[i].data || !sorted || !logit)
            return INK_RESOURCE_EXHAUSTED;
    if (conf_chance(k, 10))
        conf_special_values(k, 0, true);
    for (int64_t r = 0; r < rows; r++)
        for (bool clear = false; !clear; sampled(k, r, sorted, logit, &clear))
            draw_row(k, r);
    k->no_bias_test = true;
    return INK_OK;
}

static ink_status reference_sample(conf_case *k)
{
    const int64_t n = k->in[0].dims[1];
    candidate *sorted = arena_alloc(&k->memory, (size_t)n * sizeof *sorted);
    double *logit = arena_alloc(&k->memory, (size_t)n * sizeof *logit);
    if (!sorted || !logit)
        return INK_RESOURCE_EXHAUSTED;
    for (int64_t r = 0; r < k->in[0].dims[0]; r++) {
        bool clear;
        k->expect[0][r] = (double)sampled(k, r, sorted, logit, &clear);
    }
    return INK_OK;
}

const conf_op conf_sample = {OP_sample, draw_sample, reference_sample};
