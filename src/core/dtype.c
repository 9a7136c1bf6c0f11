#include "core/dtype.h"

#include <math.h>

static const struct {
    const char *name;
    size_t size;
} types[INK_DTYPE_COUNT] = {
    [INK_F32] = {"f32", 4}, [INK_F16] = {"f16", 2}, [INK_BF16] = {"bf16", 2}, [INK_F64] = {"f64", 8},
    [INK_I32] = {"i32", 4}, [INK_I64] = {"i64", 8}, [INK_U8] = {"u8", 1},     [INK_BOOL] = {"bool", 1},
};

size_t ink_dtype_size(ink_dtype t) { return (unsigned)t < INK_DTYPE_COUNT ? types[t].size : 0; }
const char *ink_dtype_name(ink_dtype t) { return (unsigned)t < INK_DTYPE_COUNT ? types[t].name : "?"; }

bool ink_dtype_parse(const char *name, ink_dtype *out)
{
    for (int i = 0; i < INK_DTYPE_COUNT; i++)
        if (!strcmp(name, types[i].name)) {
            *out = (ink_dtype)i;
            return true;
        }
    return false;
}

float f16_to_f32(f16 h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 0x1fu, fraction = h & 0x3ffu;
    if (exponent == 0x1f)
        return f32_from_bits(sign | 0x7f800000u | fraction << 13 | (fraction ? 0x400000u : 0));
    if (exponent)
        return f32_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
    float v = (float)fraction * 0x1p-24f; /* zero or subnormal; exact */
    return sign ? -v : v;
}

f16 f32_to_f16(float f)
{
    uint32_t u = f32_bits(f), sign = u >> 16 & 0x8000u;
    u &= 0x7fffffffu;
    if (u > 0x7f800000u)
        return (f16)(sign | 0x7e00u | (u >> 13 & 0x3ffu));
    if (u >= 0x477ff000u) /* 65520 and above round to infinity */
        return (f16)(sign | 0x7c00u);
    if (u < 0x38800000u) { /* below 2^-14: add a constant whose last bit is worth 2^-24, so the hardware rounds for us */
        float shifted = f32_from_bits(u) + 0.5f;
        return (f16)(sign | (f32_bits(shifted) - f32_bits(0.5f)));
    }
    u += 0xfffu + (u >> 13 & 1u);
    return (f16)(sign | (u - (112u << 23)) >> 13);
}

/* FP64 to FP32 rounded to odd: a later rounding to 16 bits then sees every sticky bit. */
static float f64_to_f32_odd(double d)
{
    float f = (float)d;
    if (isnan(d) || (double)f == d)
        return f;
    uint32_t u = f32_bits(f);
    if (isinf(f) || fabs((double)f) > fabs(d)) /* step towards zero: now truncated */
        u--;
    return f32_from_bits(u | 1u);
}

bf16 f64_to_bf16(double d) { return f32_to_bf16(f64_to_f32_odd(d)); }
f16 f64_to_f16(double d) { return f32_to_f16(f64_to_f32_odd(d)); }

double load_f64(const void *data, ink_dtype t, int64_t i)
{
    switch (t) {
    case INK_F32: return ((const float *)data)[i];
    case INK_F16: return f16_to_f32(((const f16 *)data)[i]);
    case INK_BF16: return bf16_to_f32(((const bf16 *)data)[i]);
    case INK_F64: return ((const double *)data)[i];
    case INK_I32: return ((const int32_t *)data)[i];
    case INK_I64: return (double)((const int64_t *)data)[i];
    case INK_U8:
    case INK_BOOL: return ((const uint8_t *)data)[i];
    case INK_DTYPE_COUNT: break;
    }
    return NAN;
}

/* Not by way of FP64, which would make a signalling NaN quiet: widening BF16 and reading FP32 keep every bit. */
float load_f32(const void *data, ink_dtype t, int64_t i)
{
    switch (t) {
    case INK_F32: return ((const float *)data)[i];
    case INK_F16: return f16_to_f32(((const f16 *)data)[i]);
    case INK_BF16: return bf16_to_f32(((const bf16 *)data)[i]);
    default: return (float)load_f64(data, t, i);
    }
}

void store_f32(void *data, ink_dtype t, int64_t i, float v)
{
    switch (t) {
    case INK_F32: ((float *)data)[i] = v; break;
    case INK_F16: ((f16 *)data)[i] = f32_to_f16(v); break;
    case INK_BF16: ((bf16 *)data)[i] = f32_to_bf16(v); break;
    case INK_F64: ((double *)data)[i] = v; break;
    default: break;
    }
}

void store_f64(void *data, ink_dtype t, int64_t i, double v)
{
    switch (t) {
    case INK_F32: ((float *)data)[i] = (float)v; break;
    case INK_F16: ((f16 *)data)[i] = f64_to_f16(v); break;
    case INK_BF16: ((bf16 *)data)[i] = f64_to_bf16(v); break;
    case INK_F64: ((double *)data)[i] = v; break;
    default: break;
    }
}
