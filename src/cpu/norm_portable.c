#include "core/dtype.h"
#include "cpu/norm.h"

#include <math.h>

ink_status layer_norm_portable(const op_call *c)
{
    const ink_tensor *x = c->in[0], *scale = c->in[1], *bias = c->in[2];
    ink_tensor *y = c->out[0], *mean_out = c->out[1], *var_out = c->out[2];
    int64_t rows = 1, n = 1;
    for (int i = 0; i < x->rank; i++)
        *(i < c->attrs.norm.begin_norm_axis ? &rows : &n) *= x->dims[i];
    const float epsilon = c->attrs.norm.epsilon;
#pragma omp parallel for num_threads(c->threads)
    for (int64_t r = 0; r < rows; r++) {
        float sum = 0, squares = 0;
        for (int64_t i = 0; i < n; i++)
            sum += load_f32(x->data, x->dtype, r * n + i);
        float mean = sum / (float)n;
        for (int64_t i = 0; i < n; i++) {
            float d = load_f32(x->data, x->dtype, r * n + i) - mean;
            squares = fmaf(d, d, squares);
        }
        float variance = squares / (float)n, inverse = 1.0f / sqrtf(variance + epsilon);
        for (int64_t i = 0; i < n; i++) {
            float v = (load_f32(x->data, x->dtype, r * n + i) - mean) * inverse;
            if (scale)
                v *= load_f32(scale->data, scale->dtype, i);
            if (bias)
                v += load_f32(bias->data, bias->dtype, i);
            store_f32(y->data, y->dtype, r * n + i, v);
        }
        if (mean_out)
            ((float *)mean_out->data)[r] = mean;
        if (var_out)
            ((float *)var_out->data)[r] = variance;
    }
    return INK_OK;
}
