#ifdef __x86_64__
#define ISA(name) name##_avx512
#include "cpu/vision_vec.h"
#endif
