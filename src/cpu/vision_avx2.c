#ifdef __x86_64__
#define ISA(name) name##_avx2
#include "cpu/vision_vec.h"
#endif
