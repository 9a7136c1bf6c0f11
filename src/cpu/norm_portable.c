#include "core/dtype.h"
#include "cpu/norm.h"

#include <float.h>
#include <math.h>

typedef struct extent {
    float top;       /* largest |x| among the finite elements */
    float nonfinite; /* sum of the infinities and NaN: inf, -inf or NaN; 0 when there are none */
} extent;

static extent extent_of(const void *x, ink_dtype t, int64_t first, int64_t n)
{
    extent e = {0};
    for (int64_t i = first; i < first + n; i++) {
        float v = load_f32(x, t, i), a = fabsf(v);
        if (!(a <= FLT_MAX))
            e.nonfinite += v;
        else if (a > e.top)
            e.top = a;
    }
    return e;
}

/* A power of two s for which squares of s * x can be summed in FP32: 1 in the usual range, else the largest of |x| and
 * sqrt(epsilon) becomes about 1. */
static float safe_scale(float top, float epsilon)
{
    top = fmaxf(top, sqrtf(epsilon));
    if (top == 0 || (top >= 0x1p-30f && top <= 0x1p30f))
        return 1;
    int e = -ilogbf(top);
    return ldexpf(1, e > 126 ? 126 : e);
}

static inline float parameter(const norm_job *j, const void *p, int64_t i, float absent)
{
    return p ? load_f32(p, j->parameter, i) : absent;
}

void layer_norm_row_portable(const norm_job *j, int64_t r)
{
    const int64_t first = r * j->n, n = j->n;
    extent e = extent_of(j->x, j->dtype, first, n);
    const float s = safe_scale(e.top, j->epsilon);
    float c = n ? s * load_f32(j->x, j->dtype, first) : 0, sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
        sum += s * load_f32(j->x, j->dtype, first + i) - c;
    c += sum / (float)n;
    sum = 0;
    for (int64_t i = 0; i < n; i++) {
        float d = s * load_f32(j->x, j->dtype, first + i) - c;
        sum += d;
        squares = fmaf(d, d, squares);
    }
    float m = sum / (float)n, variance = fmaxf(squares / (float)n - m * m, 0), mean = (c + m) / s;
    double inverse = 1 / sqrt(variance + (double)j->epsilon * s * s); /* FP64: s^2 epsilon may be below FP32's range */
    if (!(fabsf(e.nonfinite) <= 0) || !n) {
        mean = n ? e.nonfinite : NAN;
        inverse = variance = NAN;
    }
    for (int64_t i = 0; i < n; i++) {
        float h = (float)((s * load_f32(j->x, j->dtype, first + i) - c - m) * inverse);
        store_f32(j->y, j->dtype, first + i, h * parameter(j, j->scale, i, 1) + parameter(j, j->bias, i, 0));
    }
    if (j->mean)
        j->mean[r] = mean;
    if (j->variance)
        j->variance[r] = variance / s / s;
}

void rms_norm_row_portable(const norm_job *j, int64_t r)
{
    const int64_t first = r * j->n, n = j->n;
    extent e = extent_of(j->x, j->dtype, first, n);
    const float s = safe_scale(e.top, j->epsilon);
    float squares = 0;
    for (int64_t i = 0; i < n; i++) {
        float v = s * load_f32(j->x, j->dtype, first + i);
        squares = fmaf(v, v, squares); /* an infinity makes the others 0 and itself NaN, as in exact arithmetic */
    }
    float inverse = 1.0f / sqrtf(squares / (float)n + j->epsilon * s * s);
    for (int64_t i = 0; i < n; i++)
        store_f32(j->y, j->dtype, first + i,
                  s * load_f32(j->x, j->dtype, first + i) * inverse * parameter(j, j->scale, i, 1));
}

ink_status layer_norm_portable(const op_call *c) { return norm_run(c, layer_norm_row_portable); }
ink_status rms_norm_portable(const op_call *c) { return norm_run(c, rms_norm_row_portable); }
