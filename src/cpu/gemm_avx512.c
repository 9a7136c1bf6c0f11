/* gemm_avx512.c - 14 x 32 tiles: 28 vectors of sums, 2 of weights and 1 of activations in 32 registers. BF16 is widened to
 * FP32 and multiplied exactly, which keeps subnormals; see gemm_dot_avx512.c for the BF16 instruction. */
#ifdef __x86_64__
#include "cpu/gemm_vec.h"

GEMM_FUNCTIONS(bf16, INK_BF16)
GEMM_FUNCTIONS(f16, INK_F16)
GEMM_FUNCTIONS(f32, INK_F32)

#define BLOCKING                                                                                                   \
    .mr = GEMM_MR, .nr = GEMM_NR, .chunk = VF, .elements = 1, .kc = 256, .mc = 14 * 24, .strips_bytes = 768 << 10, \
    .pack_a = 4, .read_w = 6
#define TILE(t) .pack_strip = t##_strip, .pack_panel = t##_panel, .multiply = gemm_multiply_f32, .finish = t##_finish

const gemm_tile gemm_bf16_14x32_avx512 = {BLOCKING, TILE(bf16)};
const gemm_tile gemm_f16_14x32_avx512 = {BLOCKING, TILE(f16)};
const gemm_tile gemm_f32_14x32_avx512 = {BLOCKING, TILE(f32)};
#else
typedef int gemm_avx512_is_for_x86;
#endif
