#ifdef __x86_64__
#define NAME(x) x##_avx2
#define VF_IS_16 0
#include "cpu/attention_vec.h"
#endif
