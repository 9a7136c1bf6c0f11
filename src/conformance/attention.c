/* attention.c - cases of attention and paged_attention.
 *
 * Bound. For a visible key j let s_j be the scaled score, w_j = exp(s_j) / sum exp(s_i) and y = sum w_j v_j. A kernel gets
 *   s_j with an error e_j <= scale (D + 2) 2^-24 sum_d |q_d k_jd|                          (FP32 sum of the products)
 *                          + 2^-21 (|s_j| + |s_max|)          (rounding of scale log2(e), of the product, of the maximum)
 *   p_j with a relative error r_j <= exp(e_j) - 1 + (n / 32 + 4) 2^-21: the exponential (2^-22.5), and one exponential and
 *     one product each time a block of keys (at least 32) moves the maximum; 2^-8 + 2^-12 more in the numerator of rows
 *     flagged KERNEL_P16 (rounding to BF16 and a shorter polynomial);
 *   both sums with n additions, each within 2^-24 of the magnitude.
 * With m = sum w_j |v_j|, R = sum w_j r_j and a = n 2^-24:
 *   |numerator error| <= sum w_j r_j |v_j| + a m,  |denominator error| <= R + a,
 *   |y error| <= (sum w_j r_j |v_j| + a m + (R + a) |y|) / (1 - R - a); no bound once R + a reaches 1/2.
 * Probabilities below 2^-126 of the largest may vanish: n 2^-126 max |v| more. Rows flagged KERNEL_FTZ see subnormal
 * operands as 0. A value that is not finite and whose probability may vanish is not checked (0 inf is NaN, p inf is not).
 */
#include "conformance/conformance.h"
#include "conformance/reference.h"

#include "core/dtype.h"

#include <math.h>

/* ---- draw ---- */

typedef struct head_shape {
    int64_t kv, group, dim;
} head_shape;

static head_shape draw_heads(conf_case *k)
{
    static const int64_t dims[] = {64, 72, 128, 16, 32, 80, 256}, groups[] = {1, 1, 2, 3, 8, 5};
    int64_t kv = rng_range(&k->random, 1, k->size ? 3 : 2);
    return (head_shape){kv, groups[rng_below(&k->random, 6)],
                        conf_chance(k, 70) ? dims[rng_below(&k->random, 7)] : rng_range(&k->random, 1, 256)};
}

static void draw_scale(conf_case *k, int64_t dim)
{
    k->call.attrs.attention.scale = (float)((conf_chance(k, 20) ? 4 : 1) / sqrt((double)dim));
}

/* Lengths of `count` sequences, some 0, some 1, at most about `most` in all. */
static void draw_lengths(conf_case *k, int count, int64_t most, int64_t *lengths)
{
    for (int s = 0; s < count; s++) {
        lengths[s] = conf_chance(k, 15) ? 0 : conf_chance(k, 15) ? 1 : conf_dim(k, most, true);
        most = most - lengths[s] > 1 ? most - lengths[s] : 1;
    }
}

enum { MAX_SEQUENCES = 6 };

/* Input i: the running sums of lengths. */
static ink_status put_starts(conf_case *k, int i, int count, const int64_t *lengths)
{
    ink_tensor *t = conf_input_int(k, i, INK_I32, 1, (int64_t[]){count + 1}, 0, 0);
    if (!t)
        return INK_RESOURCE_EXHAUSTED;
    int32_t *cu = t->data;
    for (int s = 0; s < count; s++)
        cu[s + 1] = cu[s] + (int32_t)lengths[s];
    return INK_OK;
}

static ink_status draw_attention(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)layout;
    head_shape h = draw_heads(k);
    k->lost_infinities = true;
    int count = (int)rng_range(&k->random, 0, 4);
    int64_t lengths[MAX_SEQUENCES], rows = 0, most = k->size ? (conf_chance(k, 20) ? 1100 : 300) : 140;
    draw_lengths(k, count, h.kv * h.group * h.dim > 600 ? most / 2 : most, lengths);
    if (conf_chance(k, 10)) { /* few and small heads over more keys than any row takes in one block */
        h = (head_shape){.kv = 1, .group = 1, .dim = rng_range(&k->random, 1, 16)};
        count = 1;
        lengths[0] = rng_range(&k->random, 257, 600);
    }
    for (int s = 0; s < count; s++)
        rows += lengths[s];
    k->call.attrs.attention.causal = conf_chance(k, 50);
    draw_scale(k, h.dim);
    double scale = conf_chance(k, 15) ? 3 : 1;
    conf_input(k, 0, dtype, 3, (int64_t[]){rows, h.kv * h.group, h.dim}, scale);
    conf_input(k, 1, dtype, 3, (int64_t[]){rows, h.kv, h.dim}, scale);
    conf_input(k, 2, dtype, 3, (int64_t[]){rows, h.kv, h.dim}, 1);
    for (int i = 0; i < 3; i++)
        if (conf_chance(k, 8))
            conf_special_values(k, i, conf_chance(k, 60));
    return put_starts(k, 3, count, lengths);
}

/* Blocks of the sequences: shuffled, the leading ones now and then those of the sequence before (a shared prefix). Entries
 * behind the last block in use hold numbers that are no blocks. */
static ink_status put_table(conf_case *k, int count, int64_t width, int64_t blocks, const int64_t *keys)
{
    ink_tensor *t = conf_input_int(k, 3, INK_I32, 2, (int64_t[]){count, width}, -9, -1);
    int32_t *order = arena_alloc(&k->memory, (size_t)(blocks + 1) * sizeof *order);
    if (!t || !order)
        return INK_RESOURCE_EXHAUSTED;
    for (int64_t i = 0; i < blocks; i++) {
        int64_t j = rng_range(&k->random, 0, i);
        order[i] = order[j];
        order[j] = (int32_t)i;
    }
    int64_t next = 0;
    for (int s = 0; s < count; s++) {
        int32_t *row = (int32_t *)t->data + s * width;
        bool shared = s && conf_chance(k, 30);
        for (int64_t b = 0; b * KV_BLOCK < keys[s]; b++)
            row[b] = shared && b * KV_BLOCK < keys[s - 1] && b < 2 ? row[b - width] : order[next++];
    }
    return INK_OK;
}

/* NaN wherever no sequence has a key: freed blocks and the ends of the last ones hold anything. */
static ink_status poison_unused(conf_case *k, int count, int64_t width, const int64_t *keys)
{
    const ink_tensor *pool = &k->in[1];
    const int64_t heads = pool->dims[1], dim = pool->dims[3];
    int64_t *used = arena_alloc(&k->memory, (size_t)(pool->dims[0] + 1) * sizeof *used); /* keys in each block */
    if (!used)
        return INK_RESOURCE_EXHAUSTED;
    for (int s = 0; s < count; s++)
        for (int64_t b = 0; b * KV_BLOCK < keys[s]; b++) {
            int32_t block = ((const int32_t *)k->in[3].data)[s * width + b];
            int64_t n = keys[s] - b * KV_BLOCK;
            n = n > KV_BLOCK ? KV_BLOCK : n;
            used[block] = n > used[block] ? n : used[block];
        }
    for (int64_t i = 0, n = ink_tensor_numel(pool); i < n; i++)
        if (i / dim % KV_BLOCK >= used[i / dim / KV_BLOCK / heads])
            for (int p = 1; p <= 2; p++)
                store_f64(k->in[p].data, pool->dtype, i, i & 1 ? NAN : INFINITY);
    return INK_OK;
}

static ink_status draw_paged(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)layout;
    head_shape h = draw_heads(k);
    k->lost_infinities = true;
    int count = (int)rng_range(&k->random, 0, k->size ? 5 : 3);
    int64_t queries[MAX_SEQUENCES], keys[MAX_SEQUENCES], rows = 0, width = 0, blocks = rng_range(&k->random, 0, 3);
    bool few = k->call.attrs.attention.few_rows = conf_chance(k, 50);
    draw_lengths(k, count, k->size ? 300 : 70, queries);
    for (int s = 0; s < count; s++) {
        if (few)
            queries[s] = conf_chance(k, 70) ? 1 : rng_range(&k->random, 0, 3);
        int64_t before = conf_chance(k, 30) ? 0 : conf_dim(k, few ? (k->size ? 3000 : 700) : (k->size ? 900 : 200), true);
        keys[s] = queries[s] + before;
        if (conf_chance(k, 8)) /* fewer keys than queries: the first ones are fully masked */
            keys[s] = rng_range(&k->random, 0, queries[s]);
        rows += queries[s];
        int64_t used = (keys[s] + KV_BLOCK - 1) / KV_BLOCK;
        width = used > width ? used : width;
        blocks += used;
    }
    width += rng_range(&k->random, 0, 2);
    draw_scale(k, h.dim);
    double scale = conf_chance(k, 15) ? 3 : 1;
    int64_t pool[4] = {blocks, h.kv, KV_BLOCK, h.dim};
    conf_input(k, 0, dtype, 3, (int64_t[]){rows, h.kv * h.group, h.dim}, scale);
    conf_input(k, 1, dtype, 4, pool, scale);
    conf_input(k, 2, dtype, 4, pool, 1);
    for (int i = 0; i < 3; i++)
        if (conf_chance(k, 8))
            conf_special_values(k, i, conf_chance(k, 60));
    TRY(put_table(k, count, width, blocks, keys));
    ink_tensor *lengths = conf_input_int(k, 4, INK_I32, 1, (int64_t[]){count}, 0, 0);
    if (!lengths || !k->in[0].data || !k->in[1].data || !k->in[2].data)
        return INK_RESOURCE_EXHAUSTED;
    for (int s = 0; s < count; s++)
        ((int32_t *)lengths->data)[s] = (int32_t)keys[s];
    TRY(poison_unused(k, count, width, keys));
    return put_starts(k, 5, count, queries);
}

/* ---- reference ---- */

typedef struct wide {
    const double *q, *k, *v; /* the inputs as FP64 */
    double *s, *e;           /* score and its error, by key */
    int64_t *at;             /* offset of the key in k and v */
} wide;

static double *widen(conf_case *k, int i)
{
    int64_t n = ink_tensor_numel(&k->in[i]);
    double *d = arena_alloc(&k->memory, (size_t)(n + 1) * sizeof *d);
    for (int64_t j = 0; d && j < n; j++)
        d[j] = conf_in(k, i, j);
    return d;
}

/* Scores of one query head against the n keys at w->at; returns the largest (NaN if any is). */
static double score(const conf_case *k, const wide *w, const double *q, int64_t n, int64_t dim)
{
    const double scale = k->call.attrs.attention.scale;
    double top = -INFINITY;
    for (int64_t j = 0; j < n; j++) {
        ref_sum sum = {0};
        for (int64_t d = 0; d < dim; d++)
            ref_product(&sum, q[d], w->k[w->at[j] + d]);
        w->s[j] = sum.sum * scale;
        w->e[j] = ref_sum_error(k, &sum) * scale;
        top = w->s[j] > top || isnan(w->s[j]) ? w->s[j] : top;
    }
    return top;
}

static void context(const conf_case *k, const wide *w, double top, int64_t n, int64_t dim, double *expect, double *bound)
{
    const bool p16 = k->kernel && k->kernel->flags & KERNEL_P16, ftz = k->kernel && k->kernel->flags & KERNEL_FTZ;
    const double sums = (double)n * 0x1p-24, steps = ((double)n / 32 + 4) * 0x1p-21;
    double total = 0, error = 0;
    for (int64_t j = 0; j < n; j++) { /* s becomes p, e becomes r */
        double s = w->s[j];
        w->s[j] = exp(s - top);
        w->e[j] = w->s[j] > 0 ? expm1(w->e[j] + 0x1p-21 * (fabs(s) + fabs(top))) + steps : 0;
        total += w->s[j];
        error += w->s[j] * w->e[j];
    }
    error = error / total + sums;
    for (int64_t d = 0; d < dim; d++) {
        double y = 0, magnitude = 0, numerator = 0, vanish = 0, unchecked = 0;
        for (int64_t j = 0; j < n; j++) {
            double v = w->v[w->at[j] + d], p = w->s[j] / total;
            y += p * v;
            magnitude += p * fabs(v);
            numerator += p * fabs(v) * w->e[j];
            vanish = fmax(vanish, fabs(v));
            if (ftz && fabs(v) < 0x1p-126)
                numerator += p * fabs(v);
            if (!isfinite(v) && w->s[j] > 0 && w->s[j] < 0x1p-100)
                unchecked = INFINITY;
        }
        if (p16)
            numerator += (0x1p-8 + 0x1p-12) * magnitude;
        expect[d] = y;
        bound[d] = (numerator + sums * magnitude + error * fabs(y)) / (1 - error) + (double)n * 0x1p-126 * (vanish + 1) +
                   conf_store_error(k->out[0].dtype, y) + unchecked;
        if (error > 0.5)
            bound[d] = INFINITY;
    }
}

static ink_status reference_any(conf_case *k, bool paged)
{
    const ink_tensor *q = &k->in[0], *keys = &k->in[1];
    const int64_t heads = q->dims[1], dim = q->dims[2], kv = keys->dims[1], group = heads / kv;
    const int32_t *cu = k->in[paged ? 5 : 3].data, *table = k->in[3].data, *lengths = k->in[4].data;
    const int64_t count = k->in[paged ? 5 : 3].dims[0] - 1, width = paged ? k->in[3].dims[1] : 0;
    const int64_t most = paged ? width * KV_BLOCK : q->dims[0];
    wide w = {widen(k, 0),
              widen(k, 1),
              widen(k, 2),
              arena_alloc(&k->memory, (size_t)(most + 1) * sizeof(double)),
              arena_alloc(&k->memory, (size_t)(most + 1) * sizeof(double)),
              arena_alloc(&k->memory, (size_t)(most + 1) * sizeof(int64_t))};
    if (!w.q || !w.k || !w.v || !w.s || !w.e || !w.at)
        return INK_RESOURCE_EXHAUSTED;
    for (int64_t s = 0; s < count; s++)
        for (int64_t t = cu[s]; t < cu[s + 1]; t++)
            for (int64_t h = 0; h < heads; h++) {
                int64_t all = paged ? lengths[s] : cu[s + 1] - cu[s], out = (t * heads + h) * dim;
                int64_t n = paged || k->call.attrs.attention.causal ? all - (cu[s + 1] - 1 - t) : all;
                for (int64_t j = 0; j < n; j++)
                    w.at[j] = paged ? ((table[s * width + j / KV_BLOCK] * kv + h / group) * KV_BLOCK + j % KV_BLOCK) * dim
                                    : ((cu[s] + j) * kv + h / group) * dim;
                if (n > 0) {
                    double top = score(k, &w, w.q + out, n, dim);
                    context(k, &w, top, n, dim, k->expect[0] + out, k->bound[0] + out);
                }
                for (int64_t d = 0; n <= 0 && d < dim; d++)
                    k->expect[0][out + d] = k->bound[0][out + d] = 0;
            }
    return INK_OK;
}

static ink_status reference_attention(conf_case *k) { return reference_any(k, false); }
static ink_status reference_paged(conf_case *k) { return reference_any(k, true); }

const conf_op conf_attention = {OP_attention, draw_attention, reference_attention};
const conf_op conf_paged_attention = {OP_paged_attention, draw_paged, reference_paged};
