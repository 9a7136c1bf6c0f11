#ifdef __x86_64__
#define NAME(x) x##_avx512
#define VF_IS_16 1
#include "cpu/attention_vec.h"
#endif
