/* kv.h - kernels of kv_append. */
#ifndef CPU_KV_H
#define CPU_KV_H
#include "ops/op.h"

/* Any dtype: bytes are copied. Slots are checked before anything is written: INK_OUT_OF_RANGE. When two rows name the same
 * slot the later one stays. */
ink_status kv_append_copy(const op_call *c);
#endif
