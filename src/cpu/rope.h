/* rope.h - kernels of rope_table and rope. */
#ifndef CPU_ROPE_H
#define CPU_ROPE_H
#include "ops/op.h"

ink_status rope_table_portable(const op_call *c);

typedef struct rope_job {
    const void *x;
    const float *table; /* [tokens, half, 2] */
    void *y;
    ink_dtype dtype;
    int64_t heads, half;
} rope_job;

typedef void rope_token(const rope_job *j, int64_t t);

/* Shares the tokens of a rope call out over its threads. */
ink_status rope_run(const op_call *c, rope_token *token);

ink_status rope_portable(const op_call *c);
#ifdef __x86_64__
ink_status rope_avx2(const op_call *c);
ink_status rope_avx512(const op_call *c);
#endif
#endif
