#ifdef __x86_64__
#define NAME(x) x##_avx2
#include "cpu/paged_attention_vec.h"
#endif
