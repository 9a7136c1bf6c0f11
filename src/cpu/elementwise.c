/* elementwise.c - the rows of gelu, silu, relu, add, multiply and cast on the CPU, and their common driver. */
#include "cpu/elementwise.h"

#include "cpu/parallel.h"
#include "cpu/rows.h"

activation map_activation(const op_call *c)
{
    switch (c->op) {
    case OP_gelu: return c->attrs.gelu.approximate ? ACT_GELU_TANH : ACT_GELU_ERF;
    case OP_silu: return ACT_SILU;
    case OP_relu: return ACT_RELU;
    default: return ACT_NONE;
    }
}

ink_status map_run(const op_call *c, map_range *range)
{
    enum { ALIGN = 64 };
    const ink_tensor *x = c->in[0], *y = c->op == OP_add || c->op == OP_multiply ? c->in[1] : NULL;
    map_job j = {.x = x->data, .y = y ? y->data : NULL, .z = c->out[0]->data, .from = x->dtype, .to = c->out[0]->dtype};
    j.act = map_activation(c);
    const int64_t n = ink_tensor_numel(x),
                  parts = threads_for(c, tensor_bytes_or_0(x) + tensor_bytes_or_0(y) + tensor_bytes_or_0(c->out[0]));
    const int64_t step = ((n + parts - 1) / parts + ALIGN - 1) / ALIGN * ALIGN;
#pragma omp parallel for num_threads((int)parts)
    for (int64_t p = 0; p < parts; p++) {
        int64_t begin = p * step, end = begin + step < n ? begin + step : n;
        if (begin < end)
            range(&j, begin, end);
    }
    return INK_OK;
}

FLOAT_LIST(gelu);
FLOAT_LIST(silu);
FLOAT_LIST(relu);
FLOAT_LIST(add);
FLOAT_LIST(multiply);
FLOAT_LIST(cast);
