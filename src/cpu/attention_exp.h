/* attention_exp.h - 2^t for scores below their maximum, on the vectors of vec.h. */
#ifndef CPU_ATTENTION_EXP_H
#define CPU_ATTENTION_EXP_H
#include "cpu/vec.h"

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

/* 2^t for t <= 0 (a rounding above 0 does no harm): relative error below 2^-22.5; exactly 1 at 0; 0 below -126.5; NaN
 * stays. Minimax polynomial of degree 5 on [-1/2, 1/2], constrained to 1 at 0. Adding `shift` rounds t to an integer n
 * whose biased exponent n + 127 then stands in the low bits: shifted left by 23 they are the float 2^n, and 0 for n = -127.
 */
VEC_INLINE vf v_exp2_score(vf t)
{
    const vf shift = v_set(0x1.8p23f + 127);
    t = v_max(v_set(-127.f), t); /* NaN is the second operand: it survives */
    vf n = v_add(t, shift), f = v_sub(t, v_sub(n, shift));
    vf p = v_set(1.3264727e-3f);
    p = v_fma(p, f, v_set(9.6715130e-3f));
    p = v_fma(p, f, v_set(5.5507336e-2f));
    p = v_fma(p, f, v_set(2.4022242e-1f));
    p = v_fma(p, f, v_set(6.9314700e-1f));
    p = v_fma(p, f, v_set(1.f));
#ifdef __AVX512F__
    return v_mul(p, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(n), 23)));
#else
    return v_mul(p, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(n), 23)));
#endif
}
VEC_INLINE float exp2_score(float t)
{
#ifdef __AVX512F__
    return _mm512_cvtss_f32(v_exp2_score(v_set(t)));
#else
    return _mm256_cvtss_f32(v_exp2_score(v_set(t)));
#endif
}
#endif
