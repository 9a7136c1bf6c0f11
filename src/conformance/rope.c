#include "conformance/conformance.h"

#include <math.h>

static ink_status draw_rope_table(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)dtype;
    (void)layout;
    rope_table_attrs *a = &k->call.attrs.rope_table;
    a->kind = conf_chance(k, 50) ? ROPE_AXIAL_2D : ROPE_MROPE;
    a->theta = conf_chance(k, 50) ? 10000 : 500000;
    a->head_dim = a->kind == ROPE_AXIAL_2D ? 4 * (int)rng_range(&k->random, 1, 64) : 2 * (int)rng_range(&k->random, 1, 128);
    a->sections[0] = (int)rng_range(&k->random, 0, a->head_dim / 2);
    a->sections[1] = (int)rng_range(&k->random, 0, a->head_dim / 2 - a->sections[0]);
    a->sections[2] = a->head_dim / 2 - a->sections[0] - a->sections[1];
    int64_t tokens = conf_dim(k, 60, true);
    conf_input_int(k, 0, INK_I32, 2, (int64_t[]){tokens, a->kind == ROPE_AXIAL_2D ? 2 : 3}, 0,
                   conf_chance(k, 50) ? 200 : 131071);
    return INK_OK;
}

/* The angle is defined by FP32 roundings (theta^(2k/d), its reciprocal, the product with the position), so the reference
 * makes them too; of its cosine and sine 2^-23 is the error of a good libm. */
static ink_status reference_rope_table(conf_case *k)
{
    const rope_table_attrs *a = &k->call.attrs.rope_table;
    const int axial = a->kind == ROPE_AXIAL_2D, half = a->head_dim / 2, period = axial ? half / 2 : half;
    const int axes = axial ? 2 : 3;
    for (int64_t t = 0; t < k->in[0].dims[0]; t++)
        for (int i = 0; i < half; i++) {
            const float exponent = (float)(2 * (i % period)) / (float)(2 * period),
                        omega = 1.0f / (float)pow(a->theta, exponent);
            const int axis = axial ? i / period : (i >= a->sections[0]) + (i >= a->sections[0] + a->sections[1]);
            const float angle = (float)conf_in(k, 0, t * axes + axis) * omega;
            for (int part = 0; part < 2; part++) {
                double y = part ? sin(angle) : cos(angle);
                k->expect[0][2 * (t * half + i) + part] = y;
                k->bound[0][2 * (t * half + i) + part] = fabs(y) * 0x1p-23;
            }
        }
    return INK_OK;
}

const conf_op conf_rope_table = {OP_rope_table, draw_rope_table, reference_rope_table};

static ink_status draw_rope(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)layout;
    int64_t tokens = conf_dim(k, 40, true), heads = conf_dim(k, k->size ? 16 : 5, true),
            half = conf_chance(k, 20) ? 36 : conf_dim(k, 70, true);
    conf_input(k, 0, dtype, 3, (int64_t[]){tokens, heads, 2 * half}, conf_chance(k, 20) ? 100 : 1);
    ink_tensor *table = conf_input(k, 1, INK_F32, 3, (int64_t[]){tokens, half, 2}, 1);
    if (!table)
        return INK_RESOURCE_EXHAUSTED;
    float *cs = table->data;
    for (int64_t i = 0; i < tokens * half; i++) {
        double angle = rng_unit(&k->random) * 1000;
        cs[2 * i] = (float)cos(angle);
        cs[2 * i + 1] = (float)sin(angle);
    }
    if (conf_chance(k, 10))
        conf_special_values(k, 0, conf_chance(k, 50));
    return INK_OK;
}

static ink_status reference_rope(conf_case *k)
{
    const int64_t tokens = k->in[0].dims[0], heads = k->in[0].dims[1], half = k->in[0].dims[2] / 2;
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < half; i++) {
                const int64_t low = (t * heads + h) * 2 * half + i, high = low + half;
                const double a = conf_in(k, 0, low), b = conf_in(k, 0, high);
                const double c = conf_in(k, 1, 2 * (t * half + i)), s = conf_in(k, 1, 2 * (t * half + i) + 1);
                const double y[2] = {a * c - b * s, b * c + a * s};
                const double size[2] = {fabs(a * c) + fabs(b * s), fabs(b * c) + fabs(a * s)};
                for (int part = 0; part < 2; part++) {
                    k->expect[0][part ? high : low] = y[part];
                    k->bound[0][part ? high : low] =
                        2 * 0x1p-24 * size[part] + 0x1p-148 + conf_store_error(k->out[0].dtype, y[part]);
                }
            }
    return INK_OK;
}

const conf_op conf_rope = {OP_rope, draw_rope, reference_rope};
