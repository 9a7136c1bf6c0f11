/* norm_vec.h - layer_norm and rms_norm in vectors, for norm_avx2.c and norm_avx512.c, which define ISA(name). See norm.h. */
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
    for (; i + 4 * VF <= n; i += 4 * VF)
        for (int k = 0; k < 4; k++) {
            vf d = v_sub(v_get(x, t, first + i + k * VF, VF), pivot);
            sum[k] = v_add(sum[k], d);
            squares[k] = v_fma(d, d, squares[k]);
        }
    for (; i < n; i += VF) {
        vf d = v_keep(v_sub(v_get(x, t, first + i, n - i), pivot), n - i);
        sum[0] = v_add(sum[0], d);
        squares[0] = v_fma(d, d, squares[0]);
    }
    return (row_sums){v_sum(v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3]))),
                      v_sum(v_add(v_add(squares[0], squares[1]), v_add(squares[2], squares[3])))};
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
    vf vc = v_set(c), vm = v_set(m), vi = v_set(inverse);
    for (int64_t i = 0; i < n; i += VF) {
        vf h = v_mul(v_sub(v_sub(v_get(j->x, t, first + i, n - i), vc), vm), vi);
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
    for (; i + 4 * VF <= n; i += 4 * VF)
        for (int k = 0; k < 4; k++) {
            vf v = v_get(j->x, t, first + i + k * VF, VF);
            squares[k] = v_fma(v, v, squares[k]);
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
    for (i = 0; i < n; i += VF) {
        vf v = v_mul(v_get(j->x, t, first + i, n - i), inverse);
        v_put(j->y, t, first + i, j->scale ? v_mul(v, v_get(j->scale, p, i, n - i)) : v, n - i);
    }
}

#define INSTANCES(name)                                                                                                 \
    static void name##_bf16(const norm_job *j, int64_t r) { name##_row(j, r, INK_BF16, INK_BF16); }                       \
    static void name##_bf16_f32(const norm_job *j, int64_t r) { name##_row(j, r, INK_BF16, INK_F32); }                    \
    static void name##_f16(const norm_job *j, int64_t r) { name##_row(j, r, INK_F16, INK_F16); }                          \
    static void name##_f16_f32(const norm_job *j, int64_t r) { name##_row(j, r, INK_F16, INK_F32); }                      \
    static void name##_f32(const norm_job *j, int64_t r) { name##_row(j, r, INK_F32, INK_F32); }                          \
    ink_status ISA(name)(const op_call *c)                                                                              \
    {                                                                                                                 \
        const ink_tensor *x = c->in[0], *parameter = c->in[1] ? c->in[1] : c->op == OP_layer_norm ? c->in[2] : NULL;  \
        bool wide = parameter && parameter->dtype == INK_F32;                                                         \
        return norm_run(c, x->dtype == INK_F32    ? name##_f32                                                          \
                           : x->dtype == INK_BF16 ? (wide ? name##_bf16_f32 : name##_bf16)                                \
                                                  : (wide ? name##_f16_f32 : name##_f16));                                \
    }
INSTANCES(layer_norm)
INSTANCES(rms_norm)
