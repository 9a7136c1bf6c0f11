/* elementwise.h - kernels of gelu, silu, relu, add, multiply and cast: a function on a range of elements, and one driver
 * that shares ranges out. FP32 arithmetic, one rounding; casts round once, and between equal types copy the bits. */
#ifndef CPU_ELEMENTWISE_H
#define CPU_ELEMENTWISE_H
#include "ops/op.h"

typedef struct map_job {
    const void *x, *y; /* y: second operand of add and multiply */
    void *z;
    ink_dtype from, to; /* of x and y; of z (differs for cast only) */
    activation act;     /* of gelu, silu, relu */
} map_job;

/* Elements begin .. end-1. */
typedef void map_range(const map_job *j, int64_t begin, int64_t end);

/* The activation that a call of gelu, silu or relu means. */
activation map_activation(const op_call *c);

/* Shares the elements of the call's output out over its threads, in ranges that start at multiples of 64. */
ink_status map_run(const op_call *c, map_range *range);

#define MAP_KERNELS(isa)                         \
    ink_status gelu_##isa(const op_call *c);     \
    ink_status silu_##isa(const op_call *c);     \
    ink_status relu_##isa(const op_call *c);     \
    ink_status add_##isa(const op_call *c);      \
    ink_status multiply_##isa(const op_call *c); \
    ink_status cast_##isa(const op_call *c);
MAP_KERNELS(portable)
#ifdef __x86_64__
MAP_KERNELS(avx2)
MAP_KERNELS(avx512)
#endif
#undef MAP_KERNELS
#endif
