#include "conformance/conformance.h"

/* Lookups: `index` rows of input `table` in input `out of`; all bounds stay 0, the copies are exact. */
static ink_status draw_lookup(conf_case *k, ink_dtype dtype, int index, int table)
{
    const int64_t rows = conf_dim(k, 100, false), width = conf_dim(k, k->size ? 400 : 80, true),
                  tokens = conf_dim(k, 200, true);
    conf_input_int(k, index, INK_I32, 1, &tokens, 0, rows - 1);
    conf_input(k, table, dtype, 2, (int64_t[]){rows, width}, 1);
    if (conf_chance(k, 20))
        conf_special_values(k, table, true);
    k->no_bias_test = true;
    return INK_OK;
}

static ink_status reference_lookup(conf_case *k, int index, int table)
{
    const int64_t width = k->in[table].dims[1];
    for (int64_t t = 0; t < k->in[index].dims[0]; t++)
        for (int64_t i = 0; i < width; i++)
            k->expect[0][t * width + i] = conf_in(k, table, (int64_t)conf_in(k, index, t) * width + i);
    return INK_OK;
}

static ink_status draw_embedding(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)layout;
    return draw_lookup(k, dtype, 0, 1);
}
static ink_status reference_embedding(conf_case *k) { return reference_lookup(k, 0, 1); }
const conf_op conf_embedding = {OP_embedding, draw_embedding, reference_embedding};

static ink_status draw_index_select(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)layout;
    return draw_lookup(k, dtype, 1, 0);
}
static ink_status reference_index_select(conf_case *k) { return reference_lookup(k, 1, 0); }
const conf_op conf_index_select = {OP_index_select, draw_index_select, reference_index_select};

static ink_status draw_merge_multimodal(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)layout;
    const int64_t tokens = conf_dim(k, 150, true), width = conf_dim(k, k->size ? 400 : 80, true),
                  features = conf_dim(k, 60, true);
    conf_input(k, 0, dtype, 2, (int64_t[]){tokens, width}, 1);
    conf_input(k, 1, dtype, 2, (int64_t[]){features, width}, 1);
    conf_input_int(k, 2, INK_I32, 1, &tokens, -features - 1, features - 1);
    k->no_bias_test = true;
    return INK_OK;
}

static ink_status reference_merge_multimodal(conf_case *k)
{
    const int64_t width = k->in[0].dims[1];
    for (int64_t t = 0; t < k->in[0].dims[0]; t++) {
        const int64_t row = (int64_t)conf_in(k, 2, t);
        for (int64_t i = 0; i < width; i++)
            k->expect[0][t * width + i] = row < 0 ? conf_in(k, 0, t * width + i) : conf_in(k, 1, row * width + i);
    }
    return INK_OK;
}

const conf_op conf_merge_multimodal = {OP_merge_multimodal, draw_merge_multimodal, reference_merge_multimodal};
