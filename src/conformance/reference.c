#include "conformance/reference.h"

#include <math.h>

void ref_product(ref_sum *s, double a, double b)
{
    double p = a * b;
    s->sum += p;
    s->magnitude += fabs(p);
    if (fabs(a) < 0x1p-126 || fabs(b) < 0x1p-126 || fabs(p) < 0x1p-126)
        s->flushed += fabs(p);
    s->terms++;
}

void ref_term(ref_sum *s, double v)
{
    s->sum += v;
    s->magnitude += fabs(v);
    s->terms++;
}

double ref_sum_error(const conf_case *k, const ref_sum *s)
{
    double e = conf_sum_error(s->terms + 2, s->magnitude) + 0x1p-149 * s->terms;
    if (k->kernel && k->kernel->flags & KERNEL_FTZ)
        e += s->flushed + 0x1p-126 * 2;
    return e;
}

double ref_activation(double x, activation a, double *slope)
{
    *slope = a == ACT_NONE || a == ACT_RELU ? 1 : 1.13; /* max of |gelu'| and |silu'| is below 1.13 */
    switch (a) {
    case ACT_RELU: return x < 0 ? 0 : x;
    case ACT_GELU_ERF: return isinf(x) ? (x > 0 ? x : 0) : 0.5 * x * erfc(-x * 0.70710678118654752440);
    case ACT_GELU_TANH:
        return isinf(x) ? (x > 0 ? x : 0) : x / (1 + exp(-2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case ACT_SILU: return isinf(x) ? (x > 0 ? x : 0) : x / (1 + exp(-x));
    default: return x;
    }
}
