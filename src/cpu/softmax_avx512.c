#ifdef __x86_64__
#define NAME(x) x##_avx512
#include "cpu/softmax_vec.h"
#endif
