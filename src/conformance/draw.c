#include "conformance/conformance.h"

#include "core/dtype.h"

#include <math.h>
#include <stdlib.h>

bool conf_chance(conf_case *k, int percent) { return (int)rng_below(&k->random, 100) < percent; }

int64_t conf_dim(conf_case *k, int64_t most, bool zero)
{
    if (zero && conf_chance(k, 3))
        return 0;
    int64_t n;
    switch (rng_below(&k->random, 4)) {
    case 0: n = rng_range(&k->random, 1, 4); break;
    case 1: n = 8 * rng_range(&k->random, 1, 9) + rng_range(&k->random, -1, 1); break;
    case 2: n = 32 * rng_range(&k->random, 1, 5) + rng_range(&k->random, -1, 1); break;
    default: n = rng_range(&k->random, 1, most); break;
    }
    return n > most ? most : n;
}

static ink_tensor *new_input(conf_case *k, int i, ink_dtype dtype, int rank, const int64_t *dims)
{
    if (ink_tensor_init(&k->in[i], dtype, rank, dims, NULL) != INK_OK)
        return NULL;
    free(k->input_memory[i]);
    k->in[i].data = k->input_memory[i] = alloc_array(ink_tensor_bytes(&k->in[i]), 1);
    k->call.in[i] = &k->in[i];
    return k->in[i].data ? &k->in[i] : NULL;
}

ink_tensor *conf_input(conf_case *k, int i, ink_dtype dtype, int rank, const int64_t *dims, double scale)
{
    ink_tensor *t = new_input(k, i, dtype, rank, dims);
    for (int64_t e = 0, n = t ? ink_tensor_numel(t) : 0; e < n; e++)
        store_f32(t->data, dtype, e, rng_normal(&k->random) * (float)scale);
    return t;
}

ink_tensor *conf_input_int(conf_case *k, int i, ink_dtype dtype, int rank, const int64_t *dims, int64_t lo, int64_t hi)
{
    ink_tensor *t = new_input(k, i, dtype, rank, dims);
    for (int64_t e = 0, n = t ? ink_tensor_numel(t) : 0; e < n; e++) {
        int64_t v = rng_range(&k->random, lo, hi);
        if (dtype == INK_I32)
            ((int32_t *)t->data)[e] = (int32_t)v;
        else if (dtype == INK_I64)
            ((int64_t *)t->data)[e] = v;
        else
            store_f64(t->data, dtype, e, (double)v);
    }
    return t;
}

void conf_special_values(conf_case *k, int i, bool nonfinite)
{
    static const double values[] = {0.0, -0.0, 0x1p-130, -0x1p-133, 0x1p-120, 3e4, -3e4, INFINITY, -INFINITY, NAN};
    ink_tensor *t = &k->in[i];
    int64_t n = ink_tensor_numel(t);
    for (int times = 0; n && times < 5; times++)
        store_f64(t->data, t->dtype, (int64_t)rng_below(&k->random, (uint64_t)n),
                  values[rng_below(&k->random, nonfinite ? 10 : 7)]);
}

double conf_in(const conf_case *k, int input, int64_t i) { return load_f64(k->in[input].data, k->in[input].dtype, i); }

double conf_store_error(ink_dtype t, double value)
{
    double v = fabs(value);
    switch (t) {
    case INK_BF16: return v * 0x1p-8 + 0x1p-134;
    case INK_F16: return v * 0x1p-11 + 0x1p-25;
    case INK_F32: return v * 0x1p-24 + 0x1p-150;
    default: return 0;
    }
}

double conf_sum_error(double n, double magnitude) { return n * 0x1p-24 * magnitude; }
