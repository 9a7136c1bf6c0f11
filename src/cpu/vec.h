/* vec.h - one vector vocabulary for the AVX2 (8 lanes) and AVX-512 (16 lanes) kernels: the same source, included from
 * NAME_avx2.c and NAME_avx512.c, becomes both. Only files with such a suffix may include it. */
#ifndef CPU_VEC_H
#define CPU_VEC_H
#include "core/dtype.h"
#include "ops/attrs.h"

#include <immintrin.h>
#include <math.h>

#define VEC_INLINE static inline __attribute__((always_inline, unused))

#if defined(__AVX512F__)
enum { VF = 16 }; /* lanes */
typedef __m512 vf;
typedef __mmask16 vmask;

VEC_INLINE vmask v_first(int64_t n) { return (vmask)(n >= 16 ? 0xffff : (1u << n) - 1); } /* lanes 0..n-1 */
VEC_INLINE vf v_set(float x) { return _mm512_set1_ps(x); }
VEC_INLINE vf v_zero(void) { return _mm512_setzero_ps(); }
VEC_INLINE vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
VEC_INLINE vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
VEC_INLINE vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
VEC_INLINE vf v_div(vf a, vf b) { return _mm512_div_ps(a, b); }
VEC_INLINE vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }   /* a b + c */
VEC_INLINE vf v_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); } /* c - a b */
VEC_INLINE vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); }              /* b if either is NaN */
VEC_INLINE vf v_min(vf a, vf b) { return _mm512_min_ps(a, b); }
VEC_INLINE vf v_sqrt(vf a) { return _mm512_sqrt_ps(a); }
VEC_INLINE vf v_load(const float *p) { return _mm512_loadu_ps(p); }
VEC_INLINE void v_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
VEC_INLINE vf v_load_n(const float *p, int64_t n) { return _mm512_maskz_loadu_ps(v_first(n), p); } /* missing lanes 0 */
VEC_INLINE void v_store_n(float *p, vf v, int64_t n) { _mm512_mask_storeu_ps(p, v_first(n), v); }
VEC_INLINE float v_sum(vf v) { return _mm512_reduce_add_ps(v); }
VEC_INLINE float v_top(vf v) { return _mm512_reduce_max_ps(v); } /* NaN lanes: unspecified */
VEC_INLINE vf v_round(vf v) { return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
VEC_INLINE vf v_scale2(vf v, vf n) { return _mm512_scalef_ps(v, n); } /* v 2^n, n integral */
VEC_INLINE vf v_where_lt(vf a, vf b, vf yes, vf no)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}
VEC_INLINE vf v_abs(vf v) { return _mm512_abs_ps(v); }
VEC_INLINE vf v_minus_abs(vf v) { return _mm512_or_ps(v, _mm512_set1_ps(-0.f)); }
VEC_INLINE vf v_keep(vf v, int64_t n) { return _mm512_maskz_mov_ps(v_first(n), v); }        /* lanes from n on become 0 */
VEC_INLINE unsigned v_eq_lanes(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); } /* bit i: lane i */
VEC_INLINE unsigned v_nan_lanes(vf v) { return _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q); }

VEC_INLINE vf v_widen_bf16(__m256i h) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16)); }
/* Not vcvtneps2bf16: that flushes subnormals. */
VEC_INLINE __m256i v_narrow_bf16(vf v)
{
    __m512i u = _mm512_castps_si512(v);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    __m512i r = _mm512_srli_epi32(_mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
    __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    r = _mm512_mask_or_epi32(r, nan, _mm512_srli_epi32(u, 16), _mm512_set1_epi32(0x40));
    return _mm512_cvtepi32_epi16(r);
}
VEC_INLINE vf v_load_16bit(const void *p, int64_t n, ink_dtype t)
{
    __m256i h = n >= 16 ? _mm256_loadu_si256((const __m256i *)p) : _mm256_maskz_loadu_epi16(v_first(n), p);
    return t == INK_BF16 ? v_widen_bf16(h) : _mm512_cvtph_ps(h);
}
VEC_INLINE void v_store_16bit(void *p, vf v, int64_t n, ink_dtype t)
{
    __m256i h = t == INK_BF16 ? v_narrow_bf16(v) : _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
    if (n >= 16)
        _mm256_storeu_si256((__m256i *)p, h);
    else
        _mm256_mask_storeu_epi16(p, v_first(n), h);
}
/* 32 BF16: even elements in *a, odd ones in *b. */
VEC_INLINE void v_widen_pairs(const void *p, vf *a, vf *b)
{
    __m512i u = _mm512_loadu_si512(p);
    *a = _mm512_castsi512_ps(_mm512_slli_epi32(u, 16));
    *b = _mm512_castsi512_ps(_mm512_and_si512(u, _mm512_set1_epi32((int)0xffff0000u)));
}
/* vcvtne2ps2bf16 rounds as we do but takes subnormals for 0: vectors with such lanes go the long way. */
VEC_INLINE void v_narrow_pairs(void *p, vf a, vf b)
{
    const __m512i order = _mm512_setr_epi32(0x100000, 0x110001, 0x120002, 0x130003, 0x140004, 0x150005, 0x160006, 0x170007,
                                            0x180008, 0x190009, 0x1a000a, 0x1b000b, 0x1c000c, 0x1d000d, 0x1e000e, 0x1f000f);
    __m512i r = (__m512i)_mm512_cvtne2ps_pbh(b, a);
    if (__builtin_expect(_mm512_fpclass_ps_mask(a, 0x20) | _mm512_fpclass_ps_mask(b, 0x20), 0))
        r = _mm512_inserti64x4(_mm512_castsi256_si512(v_narrow_bf16(a)), v_narrow_bf16(b), 1);
    _mm512_storeu_si512(p, _mm512_permutexvar_epi16(order, r));
}

#elif defined(__AVX2__)
enum { VF = 8 };
typedef __m256 vf;
typedef __m256i vmask;

VEC_INLINE vmask v_first(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n > 8 ? 8 : (int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
VEC_INLINE vf v_set(float x) { return _mm256_set1_ps(x); }
VEC_INLINE vf v_zero(void) { return _mm256_setzero_ps(); }
VEC_INLINE vf v_add(vf a, vf b) { return _mm256_add_ps(a, b); }
VEC_INLINE vf v_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
VEC_INLINE vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
VEC_INLINE vf v_div(vf a, vf b) { return _mm256_div_ps(a, b); }
VEC_INLINE vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
VEC_INLINE vf v_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
VEC_INLINE vf v_max(vf a, vf b) { return _mm256_max_ps(a, b); }
VEC_INLINE vf v_min(vf a, vf b) { return _mm256_min_ps(a, b); }
VEC_INLINE vf v_sqrt(vf a) { return _mm256_sqrt_ps(a); }
VEC_INLINE vf v_load(const float *p) { return _mm256_loadu_ps(p); }
VEC_INLINE void v_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
VEC_INLINE vf v_load_n(const float *p, int64_t n) { return _mm256_maskload_ps(p, v_first(n)); }
VEC_INLINE void v_store_n(float *p, vf v, int64_t n) { _mm256_maskstore_ps(p, v_first(n), v); }
VEC_INLINE float v_sum(vf v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
VEC_INLINE float v_top(vf v)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
VEC_INLINE vf v_round(vf v) { return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
/* In two factors, so that results below 2^-126 come out as subnormals and |n| up to 252 works. */
VEC_INLINE vf v_scale2(vf v, vf n)
{
    __m256i e = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(e, 1), rest = _mm256_sub_epi32(e, half),
            bias = _mm256_set1_epi32(127);
    v = _mm256_mul_ps(v, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23)));
    return _mm256_mul_ps(v, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23)));
}
VEC_INLINE vf v_where_lt(vf a, vf b, vf yes, vf no) { return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
VEC_INLINE vf v_abs(vf v) { return _mm256_andnot_ps(_mm256_set1_ps(-0.f), v); }
VEC_INLINE vf v_minus_abs(vf v) { return _mm256_or_ps(v, _mm256_set1_ps(-0.f)); }
VEC_INLINE vf v_keep(vf v, int64_t n) { return _mm256_and_ps(v, _mm256_castsi256_ps(v_first(n))); }
VEC_INLINE unsigned v_eq_lanes(vf a, vf b) { return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)); }
VEC_INLINE unsigned v_nan_lanes(vf v) { return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)); }

VEC_INLINE vf v_widen_bf16(__m128i h) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16)); }
VEC_INLINE __m128i v_narrow_bf16(vf v)
{
    __m256i u = _mm256_castps_si256(v);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i r = _mm256_srli_epi32(_mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    r = _mm256_blendv_epi8(r, _mm256_or_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(0x40)), nan);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi32(r, r), 0xd8));
}
VEC_INLINE vf v_load_16bit(const void *p, int64_t n, ink_dtype t)
{
    __m128i h;
    if (n >= 8)
        h = _mm_loadu_si128((const __m128i *)p);
    else if (n == 4) /* the tail of 36, half a vision head */
        h = _mm_loadl_epi64((const __m128i *)p);
    else {
        uint16_t tail[8] = {0};
        memcpy(tail, p, 2 * (size_t)n);
        h = _mm_loadu_si128((const __m128i *)tail);
    }
    return t == INK_BF16 ? v_widen_bf16(h) : _mm256_cvtph_ps(h);
}
VEC_INLINE void v_store_16bit(void *p, vf v, int64_t n, ink_dtype t)
{
    __m128i h = t == INK_BF16 ? v_narrow_bf16(v) : _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
    if (n >= 8)
        _mm_storeu_si128((__m128i *)p, h);
    else if (n == 4)
        _mm_storel_epi64((__m128i *)p, h);
    else {
        uint16_t tail[8];
        _mm_storeu_si128((__m128i *)tail, h);
        memcpy(p, tail, 2 * (size_t)n);
    }
}
/* 16 BF16: even elements in *a, odd ones in *b. */
VEC_INLINE void v_widen_pairs(const void *p, vf *a, vf *b)
{
    __m256i u = _mm256_loadu_si256((const __m256i *)p);
    *a = _mm256_castsi256_ps(_mm256_slli_epi32(u, 16));
    *b = _mm256_castsi256_ps(_mm256_and_si256(u, _mm256_set1_epi32((int)0xffff0000u)));
}
/* u plus what makes the upper half round to nearest even; NaN aside. */
VEC_INLINE __m256i v_round_up_half(vf v)
{
    __m256i u = _mm256_castps_si256(v), odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
}
VEC_INLINE void v_narrow_pairs(void *p, vf a, vf b)
{
    __m256i even = _mm256_srli_epi32(v_round_up_half(a), 16), odd = v_round_up_half(b);
    if (__builtin_expect(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)), 0)) {
        even = _mm256_cvtepu16_epi32(v_narrow_bf16(a));
        odd = _mm256_slli_epi32(_mm256_cvtepu16_epi32(v_narrow_bf16(b)), 16);
    }
    _mm256_storeu_si256((__m256i *)p, _mm256_blend_epi16(even, odd, 0xaa));
}
#else
#error "vec.h needs a file compiled for AVX2 or AVX-512 (NAME_avx2.c, NAME_avx512.c)"
#endif

/* Elements i .. i+min(n, VF)-1 of a float array of dtype t, widened / rounded. Inline with a constant t. */
VEC_INLINE vf v_get(const void *p, ink_dtype t, int64_t i, int64_t n)
{
    if (t == INK_F32)
        return n >= VF ? v_load((const float *)p + i) : v_load_n((const float *)p + i, n);
    return v_load_16bit((const uint16_t *)p + i, n, t);
}
VEC_INLINE void v_put(void *p, ink_dtype t, int64_t i, vf v, int64_t n)
{
    if (t == INK_F32) {
        if (n >= VF)
            v_store((float *)p + i, v);
        else
            v_store_n((float *)p + i, v, n);
    } else
        v_store_16bit((uint16_t *)p + i, v, n, t);
}

/* Elements i .. i+2VF-1 as two vectors, in an order that depends on t alone: BF16 comes as even and odd elements, which
 * needs one instruction each instead of three; other types as first and second half. */
VEC_INLINE void v_get2(const void *p, ink_dtype t, int64_t i, vf *a, vf *b)
{
    if (t == INK_BF16) {
        v_widen_pairs((const uint16_t *)p + i, a, b);
        return;
    }
    *a = v_get(p, t, i, VF);
    *b = v_get(p, t, i + VF, VF);
}
VEC_INLINE void v_put2(void *p, ink_dtype t, int64_t i, vf a, vf b)
{
    if (t == INK_BF16) {
        v_narrow_pairs((uint16_t *)p + i, a, b);
        return;
    }
    v_put(p, t, i, a, VF);
    v_put(p, t, i + VF, b, VF);
}

/* 2^x, relative error below 2e-7 (degree-6 polynomial on [-1/2, 1/2]); underflow is gradual, overflow gives infinity, NaN
 * stays. */
VEC_INLINE vf v_exp2(vf x)
{
    x = v_max(v_set(-200.f), v_min(v_set(200.f), x)); /* NaN is the second operand of both: it survives */
    vf n = v_round(x), f = v_sub(x, n);
    vf p = v_set(1.5403530e-4f);
    p = v_fma(p, f, v_set(1.3333558e-3f));
    p = v_fma(p, f, v_set(9.6181291e-3f));
    p = v_fma(p, f, v_set(5.5504109e-2f));
    p = v_fma(p, f, v_set(2.4022651e-1f));
    p = v_fma(p, f, v_set(6.9314718e-1f));
    p = v_fma(p, f, v_set(1.f));
    return v_scale2(p, n);
}
/* e^x: log2(e) in two pieces, so that the relative error stays below 4e-7 for large |x| too. */
VEC_INLINE vf v_exp(vf x)
{
    x = v_max(v_set(-130.f), v_min(v_set(130.f), x));
    vf n = v_round(v_mul(x, v_set(1.44269504f)));
    vf f = v_fma(x, v_set(1.92596299e-8f),
                 v_fma(x, v_set(1.44269502f), v_sub(v_zero(), n))); /* the inner one is nearly exact */
    vf p = v_set(1.5403530e-4f);
    p = v_fma(p, f, v_set(1.3333558e-3f));
    p = v_fma(p, f, v_set(9.6181291e-3f));
    p = v_fma(p, f, v_set(5.5504109e-2f));
    p = v_fma(p, f, v_set(2.4022651e-1f));
    p = v_fma(p, f, v_set(6.9314718e-1f));
    p = v_fma(p, f, v_set(1.f));
    return v_scale2(p, n);
}
/* 1 / d for 1 <= d <= 2 within 1 ulp: a quadratic (1 %) and two Newton steps take less time than a division. */
VEC_INLINE vf v_inverse_1_2(vf d)
{
    vf r = v_fma(v_fma(d, v_set(0.32323211f), v_set(-1.4545448f)), d, v_set(2.1212122f));
    r = v_fma(r, v_fnma(d, r, v_set(1.f)), r);
    return v_fma(r, v_fnma(d, r, v_set(1.f)), r);
}
/* x * sigmoid(s), sign(s) = sign(x): e^-|s| cannot overflow, so results keep their relative accuracy down to the
 * subnormals; -inf gives -0 (-inf * 0 would be NaN). */
VEC_INLINE vf v_times_sigmoid(vf x, vf s)
{
    vf e = v_exp(v_minus_abs(s));
    vf top = v_where_lt(s, v_zero(), v_mul(v_max(v_set(-3e38f), x), e), x);
    return v_mul(top, v_inverse_1_2(v_add(v_set(1.f), e)));
}
VEC_INLINE vf v_silu(vf x) { return v_times_sigmoid(x, x); }
VEC_INLINE vf v_gelu_tanh(vf x)
{
    vf x2 = v_mul(x, x);
    return v_times_sigmoid(x, v_mul(x, v_fma(x2, v_set(1.59576912f * 0.044715f), v_set(1.59576912f))));
}
/* x Phi(x) = max(x, 0) - |x|/2 erfc(|x|/sqrt 2). erfc(z) = e^(-z^2) t Q(t - 1/2), t = 1 / (1 + z/2): Q is a minimax fit in
 * relative error (4.4e-8) to e^(z^2) erfc(z) / t on 0 <= z <= 10.3, beyond which |x|/2 erfc is 0 in FP32. The rounding of
 * x^2 is carried along, so the relative error stays below 1e-6 in the tail too. */
VEC_INLINE vf v_gelu_erf(vf x)
{
    vf a = v_min(v_set(14.5f), v_abs(x)); /* NaN survives */
    vf t = v_div(v_set(1.f), v_fma(a, v_set(0.35355339f), v_set(1.f))), s = v_sub(t, v_set(0.5f));
    vf q = v_set(-0.05914912f);
    q = v_fma(q, s, v_set(0.04837041f));
    q = v_fma(q, s, v_set(0.09532699f));
    q = v_fma(q, s, v_set(-0.10300751f));
    q = v_fma(q, s, v_set(-0.17186706f));
    q = v_fma(q, s, v_set(0.14574119f));
    q = v_fma(q, s, v_set(0.55893922f));
    q = v_fma(q, s, v_set(0.68716097f));
    q = v_fma(q, s, v_set(0.51079136f));
    vf x2 = v_mul(a, a), low = v_fma(a, a, v_sub(v_zero(), x2));
    vf e = v_exp(v_mul(x2, v_set(-0.5f)));
    e = v_fnma(v_mul(low, v_set(0.5f)), e, e);
    return v_sub(v_max(v_zero(), x), v_mul(v_mul(v_mul(a, v_set(0.5f)), v_mul(t, q)), e));
}
VEC_INLINE vf v_activate(vf x, activation a)
{
    switch (a) {
    case ACT_RELU: return v_max(v_zero(), x); /* NaN is the second operand: it survives */
    case ACT_GELU_ERF: return v_gelu_erf(x);
    case ACT_GELU_TANH: return v_gelu_tanh(x);
    case ACT_SILU: return v_silu(x);
    default: return x;
    }
}
#endif
