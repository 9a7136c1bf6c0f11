/* parallel.h - whether a team of threads is worth waking. */
#ifndef CPU_PARALLEL_H
#define CPU_PARALLEL_H
#include "ops/op.h"

enum { PARALLEL_BYTES = 32 * 1024 }; /* memory traffic of about the 5 us that starting a parallel region costs */

/* Threads for a call that moves `bytes`: those of the call, or one. */
static inline int threads_for(const op_call *c, double bytes) { return bytes < PARALLEL_BYTES ? 1 : c->threads; }
#endif
