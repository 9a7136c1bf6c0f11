/* gemm_finish_vec.h - what follows the sums of linear and linear_gated, in FP32 up to the one rounding of the store:
 * bias, activation, residual; or silu(gate) * up. */
#ifndef CPU_GEMM_FINISH_VEC_H
#define CPU_GEMM_FINISH_VEC_H
#include "cpu/gemm.h"
#include "cpu/vec.h"

VEC_INLINE vf gemm_finish_linear(const gemm_job *j, const ink_dtype t, vf v, int64_t at, int64_t n, int64_t left)
{
    if (j->bias)
        v = v_add(v, j->bias_dtype == INK_F32 ? v_get(j->bias, INK_F32, n, left) : v_get(j->bias, t, n, left));
    v = v_activate(v, j->act);
    return j->residual ? v_add(v, v_get(j->residual, t, at + n, left)) : v;
}

/* Reads whole vectors of c and up. */
VEC_INLINE void gemm_finish(const ink_dtype t, const gemm_job *j, const float *c, const float *up, int64_t row, int64_t n0, int64_t count)
{
    const int64_t at = row * j->n;
    for (int64_t i = 0; i < count; i += VF) {
        vf v = v_load(c + i);
        v = up ? v_mul(v_silu(v), v_load(up + i)) : gemm_finish_linear(j, t, v, at, n0 + i, count - i);
        if (j->y_dtype == INK_F32)
            v_put(j->y, INK_F32, at + n0 + i, v, count - i);
        else
            v_put(j->y, t, at + n0 + i, v, count - i);
    }
}
#endif
