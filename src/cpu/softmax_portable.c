#include "core/dtype.h"
#include "cpu/softmax.h"

#include <math.h>

/* n elements of x from `at`, `step` apart. The sum runs in pairs of blocks so that its error stays small for long rows. */
static void soften(const ink_tensor *x, ink_tensor *y, int64_t at, int64_t n, int64_t step)
{
    float top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        float v = load_f32(x->data, x->dtype, at + i * step);
        top = v > top ? v : top; /* a NaN is not larger; it reaches the sum through exp */
    }
    for (int64_t b = 0; b < n; b += 256) {
        float part = 0;
        for (int64_t i = b; i < n && i < b + 256; i++)
            part += expf(load_f32(x->data, x->dtype, at + i * step) - top);
        sum += part;
    }
    for (int64_t i = 0; i < n; i++)
        store_f32(y->data, y->dtype, at + i * step, expf(load_f32(x->data, x->dtype, at + i * step) - top) / sum);
}

ink_status softmax_portable(const op_call *c)
{
    const softmax_shape s = softmax_shape_of(c);
#pragma omp parallel for num_threads(c->threads) if (s.outer * s.n * s.inner > 1 << 14)
    for (int64_t r = 0; r < s.outer * s.inner; r++)
        soften(c->in[0], c->out[0], r / s.inner * s.n * s.inner + r % s.inner, s.n, s.inner);
    return INK_OK;
}
