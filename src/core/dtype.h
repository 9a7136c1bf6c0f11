/* dtype.h - exact conversions between the storage types and FP32/FP64.
 *
 * BF16 is the upper half of a binary32: 1 sign, 8 exponent and 7 fraction bits. Every narrowing rounds to nearest, ties
 * to even; a NaN keeps its sign and upper payload and becomes quiet; overflow gives infinity; subnormals are kept. */
#ifndef CORE_DTYPE_H
#define CORE_DTYPE_H
#include "inkstone/base.h"

#include <string.h>

typedef uint16_t bf16;
typedef uint16_t f16; /* IEEE binary16 bits */

static inline uint32_t f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float f32_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline float bf16_to_f32(bf16 h) { return f32_from_bits((uint32_t)h << 16); }

static inline bf16 f32_to_bf16(float f)
{
    uint32_t u = f32_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (bf16)(u >> 16 | 0x40u);
    return (bf16)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

float f16_to_f32(f16 h);
f16 f32_to_f16(float f);

/* One rounding from FP64; going through FP32 would round twice. */
bf16 f64_to_bf16(double d);
f16 f64_to_f16(double d);

/* Element i of an array of dtype t (F32, F16, BF16, F64, I32, I64, U8, BOOL), widened. */
float load_f32(const void *data, ink_dtype t, int64_t i);
double load_f64(const void *data, ink_dtype t, int64_t i);
void store_f32(void *data, ink_dtype t, int64_t i, float v);  /* rounds once; floating types only */
void store_f64(void *data, ink_dtype t, int64_t i, double v); /* rounds once; floating types only */

static inline bool dtype_is_float(ink_dtype t) { return t == INK_F32 || t == INK_F16 || t == INK_BF16 || t == INK_F64; }
#endif
