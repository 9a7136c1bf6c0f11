/* isa.h - which instruction sets this processor has and the user allows. */
#ifndef CPU_ISA_H
#define CPU_ISA_H
#include "inkstone/base.h"

/* Ordered: each includes what is before it.
 *   avx2    AVX2, FMA, F16C
 *   avx512  F, BW, DQ, VL and BF16 dot products (BF16 subnormals are flushed by those)
 *   amx     AMX-TILE and AMX-BF16, with the operating system's permission to use tiles */
typedef enum cpu_isa { ISA_PORTABLE, ISA_AVX2, ISA_AVX512, ISA_AMX, ISA_COUNT } cpu_isa;

const char *cpu_isa_name(cpu_isa isa);

/* The best level of this processor, capped by INK_CPU=portable|avx2|avx512|amx. INK_INVALID_ARGUMENT for another value
 * of INK_CPU, INK_UNAVAILABLE when it names a level this processor lacks. Asks the kernel for tile permission once. */
ink_status cpu_isa_detect(cpu_isa *out);

/* For rows on vdpbf16ps (kernel.avoid). On Intel's Sapphire Rapids generation it does half the work of FP32 multiply-adds
 * in the same time (measured): a reason. On AMD's processors twice the work is expected (not measured by us): NULL. */
const char *cpu_bf16_dot_is_slow(void);
#endif
