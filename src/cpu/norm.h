/* norm.h - kernels of layer_norm and rms_norm. */
#ifndef CPU_NORM_H
#define CPU_NORM_H
#include "ops/op.h"

ink_status layer_norm_portable(const op_call *c); /* any dtype, two passes per row in FP32 */
#endif
