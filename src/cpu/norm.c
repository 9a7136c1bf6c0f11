/* norm.c - the rows of layer_norm and rms_norm on the CPU, most specific first, and their common driver. */
#include "cpu/norm.h"

#include "cpu/parallel.h"
#include "cpu/rows.h"

ink_status norm_run(const op_call *c, norm_row *row)
{
    const bool layer = c->op == OP_layer_norm;
    const ink_tensor *x = c->in[0], *scale = c->in[1], *bias = layer ? c->in[2] : NULL;
    norm_job j = {.x = x->data, .y = c->out[0]->data, .dtype = x->dtype, .n = 1, .epsilon = c->attrs.norm.epsilon};
    j.parameter = scale ? scale->dtype : bias ? bias->dtype : x->dtype;
    j.scale = scale ? scale->data : NULL;
    j.bias = bias ? bias->data : NULL;
    j.mean = layer && c->out[1] ? c->out[1]->data : NULL;
    j.variance = layer && c->out[2] ? c->out[2]->data : NULL;
    int64_t rows = 1;
    for (int i = 0; i < x->rank; i++)
        *(i < (layer ? c->attrs.norm.begin_norm_axis : x->rank - 1) ? &rows : &j.n) *= x->dims[i];
#pragma omp parallel for num_threads(threads_for(c, 2 * tensor_bytes_or_0(x)))
    for (int64_t r = 0; r < rows; r++)
        row(&j, r);
    return INK_OK;
}

FLOAT_LIST(layer_norm);
FLOAT_LIST(rms_norm);
