#include "conformance/conformance.h"

#include <math.h>

/* Slots are distinct, or now and then repeated: the later row stays. Some are negative. */
static ink_status draw(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)layout;
    int64_t rows = conf_dim(k, 90, true), heads = rng_range(&k->random, 1, 3), dim = conf_dim(k, 130, false);
    int64_t blocks = rows / KV_BLOCK + rng_range(&k->random, 0, 3), slots = blocks * KV_BLOCK;
    int64_t shape[3] = {rows, heads, dim}, pool[4] = {blocks, heads, KV_BLOCK, dim};
    conf_input(k, 0, dtype, 3, shape, 1);
    conf_input(k, 1, dtype, 3, shape, 1);
    conf_input(k, 3, dtype, 4, pool, 1);
    conf_input(k, 4, dtype, 4, pool, 1);
    if (conf_chance(k, 30))
        conf_special_values(k, 0, true);
    bool repeat = conf_chance(k, 20);
    ink_tensor *s = conf_input_int(k, 2, INK_I32, 1, &rows, -3, slots - 1);
    int32_t *order = arena_alloc(&k->memory, (size_t)slots * sizeof *order);
    if (!s || !s->data || !order)
        return INK_RESOURCE_EXHAUSTED;
    for (int64_t i = 0; i < slots; i++)
        order[i] = (int32_t)i;
    for (int64_t t = 0; t < rows && !repeat; t++) { /* the first of a shuffle; beyond the pool: skipped */
        if (t < slots) {
            int64_t j = rng_range(&k->random, t, slots - 1);
            int32_t swap = order[t];
            order[t] = order[j];
            order[j] = swap;
        }
        ((int32_t *)s->data)[t] = t < slots && !conf_chance(k, 10) ? order[t] : -1;
    }
    return INK_OK;
}

static ink_status reference(conf_case *k)
{
    const int64_t rows = k->in[0].dims[0], heads = k->in[0].dims[1], dim = k->in[0].dims[2];
    for (int p = 0; p < 2; p++) {
        for (int64_t i = 0, n = ink_tensor_numel(&k->in[3 + p]); i < n; i++) {
            k->expect[p][i] = conf_in(k, 3 + p, i);
            k->bound[p][i] = 0;
        }
        for (int64_t t = 0; t < rows; t++)
            for (int64_t i = 0; i < heads * dim; i++) {
                int64_t slot = (int64_t)conf_in(k, 2, t), h = i / dim, d = i % dim;
                if (slot >= 0)
                    k->expect[p][((slot / KV_BLOCK * heads + h) * KV_BLOCK + slot % KV_BLOCK) * dim + d] =
                        conf_in(k, p, t * heads * dim + i);
            }
    }
    k->no_bias_test = true;
    return INK_OK;
}

const conf_op conf_kv_append = {OP_kv_append, draw, reference};
