/* rows.h - the registry rows of an op whose kernels exist as NAME_avx512, NAME_avx2 and NAME_portable for BF16, F16, F32:
 * `FLOAT_LIST(gelu)` defines kernels_cpu_gelu. Row names read gelu_bf16_avx2. */
#ifndef CPU_ROWS_H
#define CPU_ROWS_H
#include "registry/registry.h"

#define ROW(name_, type, dtype_, isa_name, level) \
    {.name = #name_ "_" #type "_" #isa_name, .op = OP_##name_, .dtype = dtype_, .isa = level, .run = name_##_##isa_name},
#define FLOAT_ROWS(name, isa_name, level)      \
    ROW(name, bf16, INK_BF16, isa_name, level) \
    ROW(name, f16, INK_F16, isa_name, level)   \
    ROW(name, f32, INK_F32, isa_name, level)
#ifdef __x86_64__
#define VECTOR_ROWS(name) FLOAT_ROWS(name, avx512, ISA_AVX512) FLOAT_ROWS(name, avx2, ISA_AVX2)
#else
#define VECTOR_ROWS(name)
#endif

#define LIST_OF(name) \
    const kernel_list kernels_cpu_##name = {INK_CPU, OP_##name, sizeof name##_rows / sizeof *name##_rows, name##_rows}
#define FLOAT_LIST(name)                                                                              \
    static const kernel name##_rows[] = {VECTOR_ROWS(name) FLOAT_ROWS(name, portable, ISA_PORTABLE)}; \
    LIST_OF(name)
/* One implementation for every processor (copies, table lookups). */
#define PORTABLE_LIST(name)                                                         \
    static const kernel name##_rows[] = {FLOAT_ROWS(name, portable, ISA_PORTABLE)}; \
    LIST_OF(name)
#endif
