#include "conformance/conformance.h"
#include "conformance/reference.h"

#include <math.h>

static ink_status draw(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)layout;
    int64_t most = k->size ? 400 : 130, n = conf_dim(k, most, true), depth = conf_dim(k, most, true);
    linear_attrs *a = &k->call.attrs.linear;
    a->few_rows = conf_chance(k, 50);
    a->out_f32 = conf_chance(k, 20);
    a->act = conf_chance(k, 50) ? (activation)rng_below(&k->random, ACT_COUNT) : ACT_NONE;
    int64_t m = conf_dim(k, a->few_rows ? 64 : most, true);
    bool integers = conf_chance(k, 15), batched = conf_chance(k, 20);
    int64_t x_dims[3] = {batched ? 1 : m, batched ? m : depth, depth};
    double scale = depth ? 1 / sqrt((double)depth) : 1;
    if (integers) {
        conf_input_int(k, 0, dtype, 2 + batched, x_dims, -3, 3);
        conf_input_int(k, 1, dtype, 2, (int64_t[]){n, depth}, -2, 2);
    } else {
        conf_input(k, 0, dtype, 2 + batched, x_dims, conf_chance(k, 10) ? 1e-3 : 1);
        conf_input(k, 1, dtype, 2, (int64_t[]){n, depth}, scale);
        if (conf_chance(k, 10))
            conf_special_values(k, 0, conf_chance(k, 50));
    }
    if (conf_chance(k, 50))
        conf_input(k, 2, conf_chance(k, 30) ? INK_F32 : dtype, 1, (int64_t[]){n}, 0.5);
    x_dims[1 + batched] = n;
    if (conf_chance(k, 40))
        conf_input(k, 3, dtype, 2 + batched, x_dims, 1);
    return INK_OK;
}

static ink_status reference(conf_case *k)
{
    const int64_t m = tensor_rows(&k->in[0]), n = k->in[1].dims[0], depth = k->in[1].dims[1];
    const activation act = k->call.attrs.linear.act;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            ref_sum s = {0};
            for (int64_t p = 0; p < depth; p++)
                ref_product(&s, conf_in(k, 0, i * depth + p), conf_in(k, 1, j * depth + p));
            if (k->call.in[2])
                ref_term(&s, conf_in(k, 2, j));
            double slope, y = ref_activation(s.sum, act, &slope);
            double error = ref_sum_error(k, &s) * slope + fabs(y) * 0x1p-20;
            if (k->call.in[3]) {
                double r = conf_in(k, 3, i * n + j);
                error += (fabs(y) + fabs(r)) * 0x1p-24;
                y += r;
            }
            k->expect[0][i * n + j] = y;
            k->bound[0][i * n + j] = error + conf_store_error(k->out[0].dtype, y);
        }
    return INK_OK;
}

const conf_op conf_linear = {OP_linear, draw, reference};
