/* elementwise_vec.h - elementwise ops in vectors, for elementwise_avx2.c and elementwise_avx512.c, which define ISA(name).
 */
#include "cpu/elementwise.h"
#include "cpu/vec.h"

typedef enum map_kind { MAP_ACTIVATE, MAP_ADD, MAP_MULTIPLY, MAP_CAST } map_kind;

VEC_INLINE vf map_value(vf x, vf y, map_kind kind, activation act)
{
    switch (kind) {
    case MAP_ACTIVATE: return v_activate(x, act);
    case MAP_ADD: return v_add(x, y);
    case MAP_MULTIPLY: return v_mul(x, y);
    default: return x;
    }
}

VEC_INLINE void map_all(const map_job *j, int64_t begin, int64_t end, map_kind kind, activation act, ink_dtype from,
                        ink_dtype to)
{
    const bool two = kind == MAP_ADD || kind == MAP_MULTIPLY;
    int64_t i = begin;
    for (; from == to && i + 2 * VF <= end; i += 2 * VF) {
        vf a, b, c = v_zero(), d = v_zero();
        v_get2(j->x, from, i, &a, &b);
        if (two)
            v_get2(j->y, from, i, &c, &d);
        v_put2(j->z, to, i, map_value(a, c, kind, act), map_value(b, d, kind, act));
    }
    for (; i < end; i += VF) {
        vf x = v_get(j->x, from, i, end - i), y = two ? v_get(j->y, from, i, end - i) : v_zero();
        v_put(j->z, to, i, map_value(x, y, kind, act), end - i);
    }
}

/* One function per op and dtype, so that dtype and op are constants of the loop. */
#define MAP(name, kind, act, from, to) \
    static void name(const map_job *j, int64_t begin, int64_t end) { map_all(j, begin, end, kind, act, from, to); }
#define MAP3(name, kind, act)                                                        \
    MAP(name##_bf16, kind, act, INK_BF16, INK_BF16)                                  \
    MAP(name##_f16, kind, act, INK_F16, INK_F16)                                     \
    MAP(name##_f32, kind, act, INK_F32, INK_F32)                                     \
    static map_range *name##_of(ink_dtype t)                                         \
    {                                                                                \
        return t == INK_BF16 ? name##_bf16 : t == INK_F16 ? name##_f16 : name##_f32; \
    }
MAP3(gelu_erf, MAP_ACTIVATE, ACT_GELU_ERF)
MAP3(gelu_tanh, MAP_ACTIVATE, ACT_GELU_TANH)
MAP3(silu, MAP_ACTIVATE, ACT_SILU)
MAP3(relu, MAP_ACTIVATE, ACT_RELU)
MAP3(add, MAP_ADD, ACT_NONE)
MAP3(multiply, MAP_MULTIPLY, ACT_NONE)
MAP(f32_to_bf16_range, MAP_CAST, ACT_NONE, INK_F32, INK_BF16)
MAP(f32_to_f16_range, MAP_CAST, ACT_NONE, INK_F32, INK_F16)
MAP(bf16_to_f32_range, MAP_CAST, ACT_NONE, INK_BF16, INK_F32)
MAP(bf16_to_f16_range, MAP_CAST, ACT_NONE, INK_BF16, INK_F16)
MAP(f16_to_f32_range, MAP_CAST, ACT_NONE, INK_F16, INK_F32)
MAP(f16_to_bf16_range, MAP_CAST, ACT_NONE, INK_F16, INK_BF16)

ink_status ISA(gelu)(const op_call *c)
{
    ink_dtype t = c->in[0]->dtype;
    return map_run(c, c->attrs.gelu.approximate ? gelu_tanh_of(t) : gelu_erf_of(t));
}
ink_status ISA(silu)(const op_call *c) { return map_run(c, silu_of(c->in[0]->dtype)); }
ink_status ISA(relu)(const op_call *c) { return map_run(c, relu_of(c->in[0]->dtype)); }
ink_status ISA(add)(const op_call *c) { return map_run(c, add_of(c->in[0]->dtype)); }
ink_status ISA(multiply)(const op_call *c) { return map_run(c, multiply_of(c->in[0]->dtype)); }

ink_status ISA(cast)(const op_call *c)
{
    ink_dtype from = c->in[0]->dtype, to = c->attrs.cast.to;
    if (from == to)
        return cast_portable(c);
    switch (from) {
    case INK_F32: return map_run(c, to == INK_BF16 ? f32_to_bf16_range : f32_to_f16_range);
    case INK_BF16: return map_run(c, to == INK_F32 ? bf16_to_f32_range : bf16_to_f16_range);
    default: return map_run(c, to == INK_F32 ? f16_to_f32_range : f16_to_bf16_range);
    }
}
