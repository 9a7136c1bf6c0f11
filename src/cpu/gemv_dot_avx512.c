#ifdef __x86_64__
#define GEMV_DOT 1
#include "cpu/gemv_vec.h"

GEMV_TILE(gemv_bf16_dot_avx512, INK_BF16)
#else
typedef int gemv_dot_avx512_is_for_x86;
#endif
