/* linear.h - kernels of linear and linear_gated. */
#ifndef CPU_LINEAR_H
#define CPU_LINEAR_H
#include "ops/op.h"

ink_status linear_portable(const op_call *c); /* any dtype: plain loops, one FP32 chain in k per output */
ink_status linear_gated_portable(const op_call *c);
#endif
