#include "conformance/conformance.h"

#include <math.h>

static ink_status draw_layer_norm(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)layout;
    int64_t dims[3] = {conf_dim(k, 40, true), conf_dim(k, 6, false), conf_dim(k, k->size ? 1200 : 300, false)};
    int rank = 2 + conf_chance(k, 40), axis = rank == 3 && conf_chance(k, 30) ? 1 : rank - 1;
    int64_t shape[3] = {dims[0], rank == 3 ? dims[1] : dims[2], dims[2]}, n = 1;
    for (int i = axis; i < rank; i++)
        n *= shape[i];
    ink_tensor *x = conf_input(k, 0, dtype, rank, shape, conf_chance(k, 20) ? 50 : 1);
    k->call.attrs.norm = (norm_attrs){conf_chance(k, 50) ? 1e-6f : 1e-5f, axis};
    if (!x)
        return INK_RESOURCE_EXHAUSTED;
    ink_dtype parameter = conf_chance(k, 30) ? INK_F32 : dtype;
    if (conf_chance(k, 80))
        conf_input(k, 1, parameter, 1, &n, 1);
    if (conf_chance(k, 80))
        conf_input(k, 2, parameter, 1, &n, 1);
    if (conf_chance(k, 5))
        conf_special_values(k, 0, true);
    return INK_OK;
}

/* Error of the FP32 statistics: mean within n 2^-24 mean|x|, variance within (n + 4) 2^-24 relative plus the square of the
 * mean's error; both then scale with 1/sigma. */
static ink_status reference_layer_norm(conf_case *k)
{
    int64_t rows = 1, n = 1;
    for (int i = 0; i < k->in[0].rank; i++)
        *(i < k->call.attrs.norm.begin_norm_axis ? &rows : &n) *= k->in[0].dims[i];
    double epsilon = k->call.attrs.norm.epsilon;
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0, magnitude = 0, squares = 0;
        for (int64_t i = 0; i < n; i++) {
            sum += conf_in(k, 0, r * n + i);
            magnitude += fabs(conf_in(k, 0, r * n + i));
        }
        double mean = sum / (double)n, mean_error = ((double)n + 2) * 0x1p-24 * magnitude / (double)n;
        for (int64_t i = 0; i < n; i++)
            squares += pow(conf_in(k, 0, r * n + i) - mean, 2);
        double variance = squares / (double)n, inverse = 1 / sqrt(variance + epsilon);
        double variance_error = ((double)n + 6) * 0x1p-24 * variance + mean_error * mean_error + 0x1p-22 * fabs(mean) * sqrt(variance);
        double relative = 0.5 * variance_error / (variance + epsilon) + 4 * 0x1p-24;
        k->expect[1][r] = mean;
        k->bound[1][r] = mean_error + conf_store_error(INK_F32, mean);
        k->expect[2][r] = variance;
        k->bound[2][r] = variance_error + conf_store_error(INK_F32, variance);
        for (int64_t i = 0; i < n; i++) {
            double x = conf_in(k, 0, r * n + i), g = k->call.in[1] ? conf_in(k, 1, i) : 1, b = k->call.in[2] ? conf_in(k, 2, i) : 0;
            double h = (x - mean) * inverse, y = h * g + b;
            double error = fabs(g) * (fabs(h) * relative + inverse * (mean_error + 0x1p-24 * (fabs(x) + fabs(mean))));
            k->expect[0][r * n + i] = y;
            k->bound[0][r * n + i] = error + 3 * 0x1p-24 * (fabs(h * g) + fabs(b)) + conf_store_error(k->out[0].dtype, y);
        }
    }
    return INK_OK;
}

const conf_op conf_layer_norm = {OP_layer_norm, draw_layer_norm, reference_layer_norm};
