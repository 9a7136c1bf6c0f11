#include "core/dtype.h"
#include "cpu/activation.h"
#include "cpu/linear.h"

static float dot(const ink_tensor *x, int64_t i, const ink_tensor *w, int64_t j)
{
    const int64_t k = w->dims[1];
    float sum = 0;
    for (int64_t p = 0; p < k; p++)
        sum = fmaf(load_f32(x->data, x->dtype, i * k + p), load_f32(w->data, w->dtype, j * k + p), sum);
    return sum;
}

ink_status linear_portable(const op_call *c)
{
    const ink_tensor *x = c->in[0], *w = c->in[1], *bias = c->in[2], *residual = c->in[3];
    ink_tensor *y = c->out[0];
    const int64_t m = tensor_rows(x), n = w->dims[0];
#pragma omp parallel for collapse(2) num_threads(c->threads)
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = dot(x, i, w, j);
            if (bias)
                sum += load_f32(bias->data, bias->dtype, j);
            sum = activate(sum, c->attrs.linear.act);
            if (residual)
                sum += load_f32(residual->data, residual->dtype, i * n + j);
            store_f32(y->data, y->dtype, i * n + j, sum);
        }
    return INK_OK;
}

ink_status linear_gated_portable(const op_call *c)
{
    const ink_tensor *x = c->in[0], *gate = c->in[1], *up = c->in[2];
    ink_tensor *y = c->out[0];
    const int64_t m = tensor_rows(x), n = gate->dims[0];
#pragma omp parallel for collapse(2) num_threads(c->threads)
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            store_f32(y->data, y->dtype, i * n + j, activate(dot(x, i, gate, j), ACT_SILU) * dot(x, i, up, j));
    return INK_OK;
}
