/* activate_vec.h - the activations on several vectors at once. One vector's activation is a chain of some 20 dependent
 * operations and the processor cannot look far enough ahead to overlap it with the next one; here every step is taken for
 * all n vectors before the next step. Results agree with v_activate within the rounding of FP32. */
#ifndef CPU_ACTIVATE_VEC_H
#define CPU_ACTIVATE_VEC_H
#include "cpu/vec.h"

enum { ACTIVATE_MOST = 4 }; /* vectors */
#define EACH _Pragma("GCC unroll 4") for (int i = 0; i < n; i++)

/* 1 / d for d in [1, 2^126], relative error below 2e-7 */
VEC_INLINE vf v_reciprocal(vf d)
{
#if defined(__AVX512F__)
    vf r = _mm512_rcp14_ps(d);
    return v_fma(r, v_fnma(d, r, v_set(1.f)), r);
#else
    return v_div(v_set(1.f), d);
#endif
}

/* p 2^n for p in [1/2, 2], n integral in -125 .. 126 */
VEC_INLINE vf v_scale2_normal(vf p, vf n)
{
#if defined(__AVX512F__)
    return v_scale2(p, n);
#else
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23)));
#endif
}

/* s = sigmoid(s), s taken to lie in -87 .. 87; relative error below 5e-7 there; NaN stays. 2^f on [-1/2, 1/2] is a minimax
 * polynomial of degree 5, relative error 1.5e-7. */
VEC_INLINE void v_sigmoid_n(vf *s, const int n)
{
    const vf log2e = v_set(1.44269504f);
    vf whole[ACTIVATE_MOST], f[ACTIVATE_MOST], p[ACTIVATE_MOST];
    EACH s[i] = v_max(v_set(-87.f), v_min(v_set(87.f), s[i])); /* NaN is the second operand of both: it survives */
    EACH whole[i] = v_round(v_mul(s[i], v_set(-1.44269504f)));
    EACH f[i] = v_sub(v_zero(), v_fma(s[i], log2e, whole[i])); /* -s log2(e) - whole, with one rounding */
    EACH p[i] = v_fma(v_set(1.327646663e-3f), f[i], v_set(9.675540961e-3f));
    EACH p[i] = v_fma(p[i], f[i], v_set(5.550713465e-2f));
    EACH p[i] = v_fma(p[i], f[i], v_set(2.402212024e-1f));
    EACH p[i] = v_fma(p[i], f[i], v_set(6.931469440e-1f));
    EACH p[i] = v_fma(p[i], f[i], v_set(1.f));
    EACH p[i] = v_add(v_set(1.f), v_scale2_normal(p[i], whole[i]));
    EACH s[i] = v_reciprocal(p[i]);
}

/* Below `zero` the product is smaller than any FP32; there, also for -inf, it is -0. */
VEC_INLINE void v_times_sigmoid_n(vf *x, vf *s, float zero, const int n)
{
    v_sigmoid_n(s, n);
    EACH x[i] = v_where_lt(x[i], v_set(zero), v_set(-0.f), v_mul(x[i], s[i]));
}

VEC_INLINE void v_silu_n(vf *x, const int n)
{
    vf s[ACTIVATE_MOST];
    EACH s[i] = x[i];
    v_times_sigmoid_n(x, s, -104.f, n);
}

VEC_INLINE void v_gelu_tanh_n(vf *x, const int n)
{
    vf s[ACTIVATE_MOST];
    EACH s[i] = v_mul(x[i], x[i]);
    EACH s[i] = v_fma(s[i], v_set(1.59576912f * 0.044715f), v_set(1.59576912f));
    EACH s[i] = v_mul(s[i], x[i]);
    v_times_sigmoid_n(x, s, -11.f, n);
}

VEC_INLINE void v_activate_n(vf *x, activation a, const int n)
{
    switch (a) {
    case ACT_RELU: EACH x[i] = v_max(v_zero(), x[i]); break; /* NaN is the second operand: it survives */
    case ACT_GELU_ERF: EACH x[i] = v_gelu_erf(x[i]); break;
    case ACT_GELU_TANH: v_gelu_tanh_n(x, n); break;
    case ACT_SILU: v_silu_n(x, n); break;
    default: break;
    }
}
#undef EACH
#endif
