#ifdef __x86_64__
#include "cpu/gemv_vec.h"

GEMV_TILE(gemv_bf16_avx512, INK_BF16)
GEMV_TILE(gemv_f16_avx512, INK_F16)
GEMV_TILE(gemv_f32_avx512, INK_F32)
#else
typedef int gemv_avx512_is_for_x86;
#endif
