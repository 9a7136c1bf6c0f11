/* norm_vec.h - layer_norm and rms_norm in vectors, for norm_avx2.c and norm_avx512.c, which define ISA(name). See norm.h.
 */
#include "cpu/norm.h"
#include "cpu/vec.h"

typedef struct row_sums {
    float sum, squares; /* of x - c */
} row_sums;

/* Four independent chains each, so that the adder's latency is hidden. */
VEC_INLINE row_sums sums_about(const void *x, ink_dtype t, int64_t first, int64_t n, float c)
{
    vf sum[4], squares[4], pivot = v_set(c);
    int64_t i = 0;
    for (int k = 0; k < 4; k++)
        sum[k] = squares[k] = v_zero();
    for (; i + 4 * VF <= n; i += 4 * VF) {
        vf v[4];
        v_get2(x, t, first + i, &v[0], &v[1]);
        v_get2(x, t, first + i + 2 * VF, &v[2], &v[3]);
        for (int k = 0; k < 4; k++) {
            vf d = v_sub(v[k], pivot);
            sum[k] = v_add(sum[k], d);
            squares[k] = v_fma(d, d, squares[k]);
        }
    }
    for (; i < n; i += VF) {
        vf d = v_keep(v_sub(v_get(x, t, first + i, n - i), pivot), n - i);
        sum[0] = v_add(sum[0], d);
        squares[0] = v_fma(d, d, squares[0]);
    }
    return (row_sums){v_sum(v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3]))),
                      v_sum(v_add(v_add(squares[0], squares[1]), v_add(squares[2], squares[3])))};
}

/* v_get2 of a row and of its parameters in one order, also when their types differ. */
VEC_INLINE void get2_like(const void *p, ink_dtype t, ink_dtype other, int64_t i, vf *a, vf *b)
{
    if (t == other) {
        v_get2(p, t, i, a, b);
        return;
    }
    *a = v_get(p, t, i, VF);
    *b = v_get(p, t, i + VF, VF);
}
VEC_INLINE void put2_like(void *p, ink_dtype t, ink_dtype other, int64_t i, vf a, vf b)
{
    if (t == other) {
        v_put2(p, t, i, a, b);
        return;
    }
    v_put(p, t, i, a, VF);
    v_put(p, t, i + VF, b, VF);
}

VEC_INLINE void layer_norm_row(const norm_job *j, int64_t r, ink_dtype t, ink_dtype p)
{
    const int64_t first = r * j->n, n = j->n;
    float c = 0;
    if (n) /* the mean of a few elements is a good pivot, and exact for a constant row */
        c = n >= VF ? v_sum(v_get(j->x, t, first, VF)) / VF : v_sum(v_get(j->x, t, first, 1));
    row_sums s = sums_about(j->x, t, first, n, c);
    float m = s.sum / (float)n;
    if (!(s.squares - m * s.sum >= 0.5f * s.squares)) {
        c += m;
        s = sums_about(j->x, t, first, n, c);
        m = s.sum / (float)n;
    }
    if (!n || !norm_squares_usable(s.squares, j->epsilon)) {
        layer_norm_row_portable(j, r);
        return;
    }
    float variance = fmaxf(s.squares / (float)n - m * m, 0), inverse = 1.0f / sqrtf(variance + j->epsilon);
    /* h = (x - c - m) inverse, the last subtraction in the fused multiply */
    const vf vc = v_set(c), vi = v_set(inverse), shift = v_set(-m * inverse);
    int64_t i = 0;
    for (; i + 2 * VF <= n; i += 2 * VF) {
        vf x0, x1, g0 = v_set(1.f), g1 = g0, b0 = v_zero(), b1 = b0;
        get2_like(j->x, t, p, first + i, &x0, &x1);
        if (j->scale)
            get2_like(j->scale, p, t, i, &g0, &g1);
        if (j->bias)
            get2_like(j->bias, p, t, i, &b0, &b1);
        vf h0 = v_fma(v_sub(x0, vc), vi, shift), h1 = v_fma(v_sub(x1, vc), vi, shift);
        put2_like(j->y, t, p, first + i, v_fma(h0, g0, b0), v_fma(h1, g1, b1));
    }
    for (; i < n; i += VF) {
        vf h = v_fma(v_sub(v_get(j->x, t, first + i, n - i), vc), vi, shift);
        vf g = j->scale ? v_get(j->scale, p, i, n - i) : v_set(1.f), b = j->bias ? v_get(j->bias, p, i, n - i) : v_zero();
        v_put(j->y, t, first + i, v_fma(h, g, b), n - i);
    }
    if (j->mean)
        j->mean[r] = c + m;
    if (j->variance)
        j->variance[r] = variance;
}

VEC_INLINE void rms_norm_row(const norm_job *j, int64_t r, ink_dtype t, ink_dtype p)
{
    const int64_t first = r * j->n, n = j->n;
    vf squares[4];
    int64_t i = 0;
    for (int k = 0; k < 4; k++)
        squares[k] = v_zero();
    for (; i + 4 * VF <= n; i += 4 * VF) {
        vf v[4];
        v_get2(j->x, t, first + i, &v[0], &v[1]);
        v_get2(j->x, t, first + i + 2 * VF, &v[2], &v[3]);
        for (int k = 0; k < 4; k++)
            squares[k] = v_fma(v[k], v[k], squares[k]);
    }
    for (; i < n; i += VF) {
        vf v = v_get(j->x, t, first + i, n - i);
        squares[0] = v_fma(v, v, squares[0]);
    }
    float sum = v_sum(v_add(v_add(squares[0], squares[1]), v_add(squares[2], squares[3])));
    if (!norm_squares_usable(sum, j->epsilon)) {
        rms_norm_row_portable(j, r);
        return;
    }
    vf inverse = v_set(1.0f / sqrtf(sum / (float)n + j->epsilon));
    for (i = 0; i + 2 * VF <= n; i += 2 * VF) {
        vf x0, x1, g0, g1;
        get2_like(j->x, t, p, first + i, &x0, &x1);
        get2_like(j->scale, p, t, i, &g0, &g1);
        put2_like(j->y, t, p, first + i, v_mul(v_mul(x0, inverse), g0), v_mul(v_mul(x1, inverse), g1));
    }
    for (; i < n; i += VF) {
        vf v = v_mul(v_get(j->x, t, first + i, n - i), inverse);
        v_put(j->y, t, first + i, v_mul(v, v_get(j->scale, p, i, n - i)), n - i);
    }
}

#define INSTANCES(name)                                                                                              \
    static void name##_bf16(const norm_job *j, int64_t r) { name##_row(j, r, INK_BF16, INK_BF16); }                  \
    static void name##_bf16_f32(const norm_job *j, int64_t r) { name##_row(j, r, INK_BF16, INK_F32); }               \
    static void name##_f16(const norm_job *j, int64_t r) { name##_row(j, r, INK_F16, INK_F16); }                     \
    static void name##_f16_f32(const norm_job *j, int64_t r) { name##_row(j, r, INK_F16, INK_F32); }                 \
    static void name##_f32(const norm_job *j, int64_t r) { name##_row(j, r, INK_F32, INK_F32); }                     \
    ink_status ISA(name)(const op_call *c)                                                                           \
    {                                                                                                                \
        const ink_tensor *x = c->in[0], *parameter = c->in[1] ? c->in[1] : c->op == OP_layer_norm ? c->in[2] : NULL; \
        bool wide = parameter && parameter->dtype == INK_F32;                                                        \
        return norm_run(c, x->dtype == INK_F32    ? name##_f32                                                       \
                           : x->dtype == INK_BF16 ? (wide ? name##_bf16_f32 : name##_bf16)                           \
                                                  : (wide ? name##_f16_f32 : name##_f16));                           \
    }
INSTANCES(layer_norm)
INSTANCES(rms_norm)
