#include "core/dtype.h"
#include "core/rng.h"
#include "core/threads.h"
#include "cpu/sampling.h"

#include <math.h>

int64_t argmax_of(const float *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 0; i < n; i++) {
        if (x[i] != x[i])
            return i;
        if (x[i] > x[best])
            best = i;
    }
    return best;
}

ink_status argmax_portable(const op_call *c) { return argmax_run(c, argmax_of); }

/* ---- sample (see ops/sampling.c for what is computed) ---- */

enum { RADIX_BITS = 11, BUCKETS = 1 << RADIX_BITS };

typedef struct row_scratch {
    double *weight; /* e^((l - max) / temperature), by id; 0 once an id is dropped */
    float *logit;   /* with the penalty */
    double *sum;    /* weights by bucket */
    int32_t *count;
} row_scratch;

static size_t scratch_bytes(int64_t vocabulary)
{
    size_t n = (size_t)vocabulary * (sizeof(double) + sizeof(float)) + BUCKETS * (sizeof(double) + sizeof(int32_t));
    return (n + 63) & ~(size_t)63;
}

size_t sample_workspace(const op_call *c) { return (size_t)c->threads * scratch_bytes(c->in[0]->dims[1]); }

static row_scratch scratch_of(const op_call *c)
{
    const int64_t v = c->in[0]->dims[1];
    row_scratch s = {.weight = (double *)((char *)c->workspace + (size_t)thread_index() * scratch_bytes(v))};
    s.sum = s.weight + v;
    s.logit = (float *)(s.sum + BUCKETS);
    s.count = (int32_t *)(s.logit + v);
    return s;
}

/* e^x for x <= 0 within 2 ulp (Taylor series on |r| <= ln 2 / 2), from additions and multiplications only: the same bits on
 * every machine, which libm does not promise. Below -700: 0. */
static double exp_negative(double x)
{
    static const double inverse_factorial[] = {
        1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
        1.0 / 720,        1.0 / 120,       1.0 / 24,       1.0 / 6,       0.5,          1,           1};
    if (!(x > -700))
        return 0;
    const double to_integer = 0x1.8p52, n = (x * 0x1.71547652b82fep0 + to_integer) - to_integer;
    const double r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33; /* ln 2 in two parts */
    double p = inverse_factorial[0];
    for (int i = 1; i < 14; i++)
        p = p * r + inverse_factorial[i];
    uint64_t bits = (uint64_t)((int64_t)n + 1023) << 52;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

/* Unsigned keys in the order of the floats; -0 and 0 are one. */
static uint32_t key_of(float f)
{
    uint32_t u = f32_bits(f + 0.0f);
    return u & 0x80000000u ? ~u : u | 0x80000000u;
}

/* Among the ids whose key starts with the bits of `prefix` above `shift + bits`, adds weights by the next `bits` bits and
 * picks, from the top, the bucket in which *above (the sum over larger keys) reaches target. */
static uint32_t pick_bucket(const row_scratch *s, int64_t v, uint32_t prefix, int shift, int bits, double target,
                            double *above)
{
    const uint64_t mask = (1u << bits) - 1;
    for (int b = 0; b <= (int)mask; b++)
        s->sum[b] = 0, s->count[b] = 0;
    for (int64_t i = 0; i < v; i++) {
        uint64_t k = key_of(s->logit[i]);
        if (k >> (shift + bits) != (uint64_t)prefix >> (shift + bits))
            continue;
        s->sum[k >> shift & mask] += s->weight[i];
        s->count[k >> shift & mask]++;
    }
    uint32_t last = 0;
    for (int b = (int)mask; b >= 0; b--) {
        if (!s->count[b])
            continue;
        last = (uint32_t)b;
        if (*above + s->sum[b] >= target)
            return last;
        *above += s->sum[b];
    }
    *above -= s->sum[last]; /* rounding left the target just out of reach: everything is kept */
    return last;
}

/* Drops what is not in the smallest set of most probable ids whose weights reach `target`. A radix select by logit, so
 * that nothing is sorted. */
static void keep_nucleus(const row_scratch *s, int64_t v, double target)
{
    double above = 0;
    uint32_t cut = pick_bucket(s, v, 0, 21, 11, target, &above) << 21;
    cut |= pick_bucket(s, v, cut, 10, 11, target, &above) << 10;
    cut |= pick_bucket(s, v, cut, 0, 10, target, &above);
    bool any = false; /* of the ids with exactly the logit at the cut, the lower ones go in first, at least one */
    for (int64_t i = 0; i < v; i++) {
        uint32_t k = key_of(s->logit[i]);
        bool keep = k > cut || (k == cut && (!any || above < target));
        if (keep && k == cut) {
            above += s->weight[i];
            any = true;
        }
        if (!keep)
            s->weight[i] = 0;
    }
}

static double sum_of(const double *w, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += w[i];
    return sum;
}

static int32_t sample_row(const op_call *c, int64_t row)
{
    const row_scratch s = scratch_of(c);
    const int64_t v = c->in[0]->dims[1], *seed = (const int64_t *)c->in[2]->data + 2 * row;
    const float *x = (const float *)c->in[0]->data + row * v, *params = (const float *)c->in[1]->data + 3 * row;
    const int32_t *history = (const int32_t *)c->in[3]->data + row * c->in[3]->dims[1];
    const float temperature = params[0], top_p = params[1], penalty = params[2];
    memcpy(s.logit, x, (size_t)v * sizeof *x);
    for (int32_t i = 0; i < ((const int32_t *)c->in[4]->data)[row]; i++) { /* from x: a repeated id is changed once */
        float l = x[history[i]];
        s.logit[history[i]] = l > 0 ? l / penalty : l * penalty;
    }
    const int64_t best = argmax_of(s.logit, v);
    const float top = s.logit[best];
    if (temperature == 0 || !isfinite(top))
        return (int32_t)best;
    for (int64_t i = 0; i < v; i++)
        s.weight[i] = exp_negative(((double)s.logit[i] - (double)top) / (double)temperature);
    if (top_p < 1)
        keep_nucleus(&s, v, (double)top_p * sum_of(s.weight, v));
    const double u = (double)(rng_at((uint64_t)seed[0], (uint64_t)seed[1]) >> 11) * 0x1p-53;
    const double target = u * sum_of(s.weight, v);
    double sum = 0;
    for (int64_t i = 0; i < v; i++) {
        sum += s.weight[i];
        if (sum > target)
            return (int32_t)i;
    }
    return (int32_t)best; /* not reached: target < sum of the same additions */
}

static ink_status check_row(const op_call *c, int64_t row)
{
    const float *p = (const float *)c->in[1]->data + 3 * row;
    const int64_t most = c->in[3]->dims[1], v = c->in[0]->dims[1];
    const int32_t *history = (const int32_t *)c->in[3]->data + row * most, n = ((const int32_t *)c->in[4]->data)[row];
    const long long r = row;
    if (!(p[0] >= 0 && p[0] <= 3.0e38f))
        return failure(INK_OUT_OF_RANGE, "sample: params[%lld]: temperature is %g, expected 0 or more", r, (double)p[0]);
    if (!(p[1] >= 0))
        return failure(INK_OUT_OF_RANGE, "sample: params[%lld]: top_p is %g, expected 0 or more", r, (double)p[1]);
    if (!(p[2] > 0 && p[2] <= 3.0e38f))
        return failure(INK_OUT_OF_RANGE, "sample: params[%lld]: repetition penalty is %g, expected a positive number", r,
                       (double)p[2]);
    if (n < 0 || n > most)
        return failure(INK_OUT_OF_RANGE, "sample: history_len[%lld] is %d, expected 0 to %lld", r, (int)n, (long long)most);
    for (int32_t i = 0; i < n; i++)
        if (history[i] < 0 || history[i] >= v)
            return failure(INK_OUT_OF_RANGE, "sample: history[%lld][%d] is %d, expected 0 to %lld", r, (int)i,
                           (int)history[i], (long long)v - 1);
    return INK_OK;
}

ink_status sample_portable(const op_call *c)
{
    const int64_t rows = c->in[0]->dims[0];
    for (int64_t r = 0; r < rows; r++)
        TRY(check_row(c, r));
#pragma omp parallel for num_threads(rows > 1 ? c->threads : 1)
    for (int64_t r = 0; r < rows; r++)
        ((int32_t *)c->out[0]->data)[r] = sample_row(c, r);
    return INK_OK;
}
