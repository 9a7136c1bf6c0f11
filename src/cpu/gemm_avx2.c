/* gemm_avx2.c - 6 x 16 tiles: 12 vectors of sums, 2 of weights and 1 of activations fill the 16 registers. */
#ifdef __x86_64__
#include "cpu/gemm_vec.h"

GEMM_FUNCTIONS(bf16, INK_BF16)
GEMM_FUNCTIONS(f16, INK_F16)
GEMM_FUNCTIONS(f32, INK_F32)

/* A panel of a block (kc x 16 x 4 = 24 KiB) fits a first-level cache of 32 KiB beside the strip in flight. */
#define BLOCKING                                                                                               \
    .mr = GEMM_MR, .nr = GEMM_NR, .chunk = VF, .elements = 1, .kc = 384, .mc = 384, .strips_bytes = 768 << 10, \
    .pack_a = 3, .read_w = 2
#define TILE(t) .pack_strip = t##_strip, .pack_panel = t##_panel, .multiply = gemm_multiply_f32, .finish = t##_finish

const gemm_tile gemm_bf16_6x16_avx2 = {BLOCKING, TILE(bf16)};
const gemm_tile gemm_f16_6x16_avx2 = {BLOCKING, TILE(f16)};
const gemm_tile gemm_f32_6x16_avx2 = {BLOCKING, TILE(f32)};
#else
typedef int gemm_avx2_is_for_x86;
#endif
