/* rope_vec.h - rope in vectors, for rope_avx2.c and rope_avx512.c, which define ISA(name). The table's cosines and sines
 * are pulled apart once per token and used for all heads. */
#include "cpu/rope.h"
#include "cpu/vec.h"

/* n pairs (cosine, sine) at p, split into two vectors. */
VEC_INLINE void load_pairs(const float *p, int64_t n, vf *cosine, vf *sine)
{
    vf a = v_get(p, INK_F32, 0, 2 * n), b = 2 * n > VF ? v_get(p, INK_F32, VF, 2 * n - VF) : v_zero();
#ifdef __AVX512F__
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    *cosine = _mm512_permutex2var_ps(a, even, b);
    *sine = _mm512_permutex2var_ps(a, _mm512_add_epi32(even, _mm512_set1_epi32(1)), b);
#else
    __m256 even = _mm256_shuffle_ps(a, b, 0x88), odd = _mm256_shuffle_ps(a, b, 0xdd); /* within 128-bit halves */
    *cosine = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(even), 0xd8));
    *sine = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(odd), 0xd8));
#endif
}

VEC_INLINE void rotate_token(const rope_job *j, int64_t t, ink_dtype type)
{
    const int64_t half = j->half, first = 2 * half * j->heads * t;
    for (int64_t i = 0; i < half; i += VF) {
        const int64_t n = half - i;
        vf cosine, sine;
        load_pairs(j->table + 2 * (t * half + i), n < VF ? n : VF, &cosine, &sine);
        for (int64_t h = 0, at = first + i; h < j->heads; h++, at += 2 * half) {
            vf a = v_get(j->x, type, at, n), b = v_get(j->x, type, at + half, n);
            v_put(j->y, type, at, v_fnma(b, sine, v_mul(a, cosine)), n);
            v_put(j->y, type, at + half, v_fma(a, sine, v_mul(b, cosine)), n);
        }
    }
}

static void token_bf16(const rope_job *j, int64_t t) { rotate_token(j, t, INK_BF16); }
static void token_f16(const rope_job *j, int64_t t) { rotate_token(j, t, INK_F16); }
static void token_f32(const rope_job *j, int64_t t) { rotate_token(j, t, INK_F32); }

ink_status ISA(rope)(const op_call *c)
{
    ink_dtype t = c->in[0]->dtype;
    return rope_run(c, t == INK_BF16 ? token_bf16 : t == INK_F16 ? token_f16 : token_f32);
}
