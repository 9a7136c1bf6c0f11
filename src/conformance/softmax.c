#include "conformance/conformance.h"

#include "core/dtype.h"

#include <math.h>

/* Lines (runs along the axis) that hold the values operators.md 1.8 speaks about. */
static void put_special_lines(conf_case *k, int64_t n, int64_t inner, int64_t outer)
{
    static const double pairs[][2] = {{1, NAN},
                                      {NAN, NAN},
                                      {INFINITY, 1},
                                      {-INFINITY, 1},
                                      {-INFINITY, -INFINITY},
                                      {INFINITY, INFINITY},
                                      {INFINITY, -INFINITY},
                                      {3e4, -3e4}};
    ink_tensor *x = &k->in[0];
    for (int times = 0; times < 6 && n > 0 && inner > 0 && outer > 0; times++) {
        const double *p = pairs[rng_below(&k->random, 8)];
        int64_t line = (int64_t)rng_below(&k->random, (uint64_t)(inner * outer));
        bool all = conf_chance(k, 50); /* the whole line, or one element of each value */
        for (int64_t i = 0; i < n; i++)
            if (all || i == (int64_t)rng_below(&k->random, (uint64_t)n) || i == 0)
                store_f64(x->data, x->dtype, (line / inner * n + i) * inner + line % inner, p[i & 1]);
    }
}

static ink_status draw(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    static const int64_t lengths[] = {1, 2, 31, 32, 33, 1023, 1024, 1025, 8192, 65536};
    (void)layout;
    int rank = (int)rng_range(&k->random, 0, 4), axis = rank ? (int)rng_below(&k->random, (uint64_t)rank) : 0;
    int64_t dims[4] = {1, 1, 1, 1}, inner = 1, outer = 1, n = 1, room = k->size ? 1 << 18 : 1 << 14;
    if (rank) {
        n = conf_chance(k, 60) ? lengths[rng_below(&k->random, k->size ? 10 : 9)] : conf_dim(k, 300, true);
        room /= n ? n : 1;
        dims[axis] = n;
        for (int i = 0; i < rank; i++)
            if (i != axis) {
                dims[i] = conf_dim(k, room < 1 ? 1 : room > 90 ? 90 : room, true);
                room /= dims[i] ? dims[i] : 1;
                *(i < axis ? &outer : &inner) *= dims[i];
            }
    }
    k->call.attrs.axis.axis = rank && conf_chance(k, 50) ? axis - rank : axis;
    conf_input(k, 0, dtype, rank, dims, conf_chance(k, 30) ? 20 : 1);
    if (conf_chance(k, 30))
        put_special_lines(k, n, inner, outer);
    return INK_OK;
}

/* Errors, relative to y = exp(x - top) / sum: the rounding of x - top (2^-24 |x - top| in the exponent), the exponential
 * (5e-7), the sum (every kernel adds at most 256 + n / 32 + 16 terms in a chain), the division (2^-24). Exponentials
 * below 2^-149 vanish. */
static ink_status reference(conf_case *k)
{
    const ink_tensor *x = &k->in[0];
    int axis = k->call.attrs.axis.axis + (k->call.attrs.axis.axis < 0 ? x->rank : 0);
    int64_t outer = 1, n = 1, inner = 1;
    for (int i = 0; i < x->rank; i++)
        *(i < axis ? &outer : i == axis ? &n : &inner) *= x->dims[i];
    for (int64_t line = 0; line < outer * inner; line++) {
        const int64_t at = line / inner * n * inner + line % inner;
        double top = -INFINITY, sum = 0, spread = 0;
        for (int64_t i = 0; i < n; i++) {
            double v = conf_in(k, 0, at + i * inner);
            top = v > top || isnan(v) ? v : top;
        }
        for (int64_t i = 0; i < n; i++) {
            double d = conf_in(k, 0, at + i * inner) - top, e = exp(d);
            sum += e;
            spread += e > 0 ? e * -d : 0;
        }
        const double chain = fmin((double)n, 256 + (double)n / 32 + 16);
        for (int64_t i = 0; i < n; i++) {
            double d = conf_in(k, 0, at + i * inner) - top, y = exp(d) / sum;
            double relative = (exp(d) > 0 ? -d * 0x1p-24 : 0) + spread / sum * 0x1p-24 + (chain + 2) * 0x1p-24 + 1e-6;
            k->expect[0][at + i * inner] = y;
            k->bound[0][at + i * inner] = y * relative + 0x1p-148 / sum + conf_store_error(k->out[0].dtype, y);
        }
    }
    return INK_OK;
}

const conf_op conf_softmax = {OP_softmax, draw, reference};
