/* softmax_vec.h - softmax for AVX2 and AVX-512: included by softmax_avx2.c and softmax_avx512.c, which define NAME(x). */
#include "core/status.h"
#include "core/threads.h"
#include "cpu/softmax.h"
#include "cpu/vec.h"

/* ---- the last axis: rows of n contiguous elements; `e` holds n floats ---- */

VEC_INLINE vf add_exp(const void *x, ink_dtype t, int64_t i, int64_t n, vf top, float *e, vf sum)
{
    vf v = v_exp(v_sub(v_get(x, t, i, n), top));
    v_put(e, INK_F32, i, v, n);
    if (n >= VF)
        return v_add(sum, v);
    return v_add(sum, v_load_n(e + i, n)); /* lanes behind the row count nothing */
}

VEC_INLINE void row(const void *x, void *y, int64_t n, float *e, const ink_dtype t)
{
    vf m[4] = {v_set(-INFINITY), v_set(-INFINITY), v_set(-INFINITY), v_set(-INFINITY)};
    int64_t i = 0;
    for (; i + 4 * VF <= n; i += 4 * VF)
        for (int u = 0; u < 4; u++)
            m[u] = v_max(v_get(x, t, i + u * VF, VF), m[u]); /* a NaN is dropped here and comes back through exp */
    for (; i + VF <= n; i += VF)
        m[0] = v_max(v_get(x, t, i, VF), m[0]);
    float top = v_top(v_max(v_max(m[0], m[1]), v_max(m[2], m[3])));
    for (; i < n; i++) {
        float v = load_f32(x, t, i);
        top = v > top ? v : top;
    }
    vf vtop = v_set(top), sums[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
    for (i = 0; i + 4 * VF <= n; i += 4 * VF)
        for (int u = 0; u < 4; u++)
            sums[u] = add_exp(x, t, i + u * VF, VF, vtop, e, sums[u]);
    for (; i < n; i += VF)
        sums[0] = add_exp(x, t, i, n - i, vtop, e, sums[0]);
    vf sum = v_set(v_sum(v_add(v_add(sums[0], sums[1]), v_add(sums[2], sums[3]))));
    for (i = 0; i < n; i += VF)
        v_put(y, t, i, v_div(n - i >= VF ? v_load(e + i) : v_load_n(e + i, n - i), sum), n - i);
}

/* ---- another axis: `lanes` <= VF neighbouring columns at once, each its own row of n elements `inner` apart ---- */

VEC_INLINE void columns(const void *x, void *y, int64_t at, int64_t lanes, int64_t n, int64_t inner, const ink_dtype t)
{
    vf top = v_set(-INFINITY), sum = v_zero();
    for (int64_t i = 0; i < n; i++)
        top = v_max(v_get(x, t, at + i * inner, lanes), top);
    for (int64_t b = 0; b < n; b += 256) { /* in blocks: a long chain of additions would lose bits */
        vf part = v_zero();
        for (int64_t i = b; i < n && i < b + 256; i++)
            part = v_add(part, v_exp(v_sub(v_get(x, t, at + i * inner, lanes), top)));
        sum = v_add(sum, part);
    }
    for (int64_t i = 0; i < n; i++)
        v_put(y, t, at + i * inner, v_div(v_exp(v_sub(v_get(x, t, at + i * inner, lanes), top)), sum), lanes);
}

/* Room for one row per thread, unless the output itself can hold the exponentials. */
size_t NAME(softmax_workspace)(const op_call *c)
{
    size_t row_bytes = ((size_t)softmax_shape_of(c).n * sizeof(float) + 63) / 64 * 64;
    return c->in[0]->dtype == INK_F32 ? 0 : (size_t)c->threads * row_bytes;
}

VEC_INLINE void run(const op_call *c, const ink_dtype t)
{
    const softmax_shape s = softmax_shape_of(c);
    const void *x = c->in[0]->data;
    void *y = c->out[0]->data;
    const int64_t element = t == INK_F32 ? 4 : 2, groups = (s.inner + VF - 1) / VF;
    const bool large = s.outer * s.n * s.inner > 1 << 15;
    if (s.inner == 1) {
#pragma omp parallel for num_threads(c->threads) if (large)
        for (int64_t r = 0; r < s.outer; r++) {
            char *to = (char *)y + r * s.n * element;
            float *e = t == INK_F32 ? (float *)to : (float *)c->workspace + thread_index() * ((s.n + 15) / 16 * 16);
            row((const char *)x + r * s.n * element, to, s.n, e, t);
        }
        return;
    }
#pragma omp parallel for num_threads(c->threads) if (large)
    for (int64_t i = 0; i < s.outer * groups; i++) {
        int64_t column = i % groups * VF;
        columns(x, y, i / groups * s.n * s.inner + column, s.inner - column < VF ? s.inner - column : VF, s.n, s.inner, t);
    }
}

ink_status NAME(softmax)(const op_call *c)
{
    switch (c->in[0]->dtype) {
    case INK_BF16: run(c, INK_BF16); break;
    case INK_F16: run(c, INK_F16); break;
    default: run(c, INK_F32); break;
    }
    return INK_OK;
}
