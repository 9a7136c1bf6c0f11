#ifdef __x86_64__
#define ISA(name) name##_avx512
#include "cpu/sampling_vec.h"
#endif
