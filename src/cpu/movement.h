/* movement.h - kernels that copy rows: embedding, index_select, merge_multimodal. */
#ifndef CPU_MOVEMENT_H
#define CPU_MOVEMENT_H
#include "ops/op.h"

/* INK_OUT_OF_RANGE, before anything is written, for an index outside its table; the message names op, position and value.
 */
ink_status embedding_portable(const op_call *c);
ink_status index_select_portable(const op_call *c);
ink_status merge_multimodal_portable(const op_call *c);
#endif
