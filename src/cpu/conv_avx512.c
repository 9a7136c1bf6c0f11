#ifdef __x86_64__
#include "cpu/conv_vec.h"
#endif
