#include "conformance/conformance.h"

#include "core/dtype.h"

#include <math.h>

/* Rows on which careless statistics fail: a large common mean, one outlier, a constant, zeros, magnitudes whose squares
 * leave the range of FP32 (field reports of PyTorch, ONNX Runtime, Burn, DeepSpeed). */
static void draw_hard_row(conf_case *k, int64_t first, int64_t n)
{
    const ink_tensor *x = &k->in[0];
    static const double outliers[] = {3e4, 1e10, 1e18};
    const int kind = (int)rng_below(&k->random, 6);
    const bool wide = x->dtype != INK_F16;
    const double centre = rng_normal(&k->random) * (wide ? 1e4 : 1e3), step = rng_unit(&k->random) * 2;
    const double outlier = wide ? outliers[rng_below(&k->random, 3)] : 3e4;
    const double magnitude = !wide ? 1e-3 : conf_chance(k, 50) ? 1e30 : 1e-30;
    for (int64_t i = 0; i < n; i++) {
        double v = rng_normal(&k->random);
        switch (kind) {
        case 0: v = centre + (double)i * step; break;
        case 1: v = i == n / 3 ? outlier : v; break;
        case 2: v = centre; break;
        case 3: v = 0; break;
        case 4: v = i & 1 ? magnitude : -magnitude; break;
        default: v *= magnitude; break;
        }
        store_f64(x->data, x->dtype, first + i, v);
    }
}

static void draw_rows(conf_case *k, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows && n; r++)
        if (conf_chance(k, 20))
            draw_hard_row(k, r * n, n);
    if (conf_chance(k, 5))
        conf_special_values(k, 0, true);
}

static float draw_epsilon(conf_case *k)
{
    static const float some[] = {1e-6f, 1e-5f, 1e-12f, 1e-3f};
    return some[rng_below(&k->random, 4)];
}

static ink_status draw_layer_norm(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)layout;
    int64_t dims[3] = {conf_dim(k, 30, true), conf_dim(k, 6, false), conf_dim(k, k->size ? 2500 : 300, false)};
    int rank = 2 + conf_chance(k, 40), axis = rank == 3 && conf_chance(k, 30) ? 1 : rank - 1;
    int64_t shape[3] = {dims[0], rank == 3 ? dims[1] : dims[2], dims[2]}, rows = 1, n = 1;
    for (int i = 0; i < rank; i++)
        *(i < axis ? &rows : &n) *= shape[i];
    k->call.attrs.norm = (norm_attrs){draw_epsilon(k), axis};
    if (!conf_input(k, 0, dtype, rank, shape, conf_chance(k, 20) ? 50 : 1))
        return INK_RESOURCE_EXHAUSTED;
    draw_rows(k, rows, n);
    ink_dtype parameter = conf_chance(k, 30) ? INK_F32 : dtype;
    if (conf_chance(k, 80))
        conf_input(k, 1, parameter, 1, &n, 1);
    if (conf_chance(k, 80))
        conf_input(k, 2, parameter, 1, &n, 1);
    return INK_OK;
}

typedef struct row_stats {
    double mean, deviation, variance; /* deviation: mean |x - mean| */
    double range, top;                /* max - min, max |x| */
} row_stats;

static row_stats stats_of(const conf_case *k, int64_t first, int64_t n)
{
    row_stats s = {0};
    double lowest = INFINITY, highest = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        s.mean += conf_in(k, 0, first + i);
    s.mean /= (double)n;
    for (int64_t i = 0; i < n; i++) {
        double x = conf_in(k, 0, first + i);
        s.deviation += fabs(x - s.mean) / (double)n;
        s.variance += (x - s.mean) * (x - s.mean) / (double)n;
        lowest = fmin(lowest, x);
        highest = fmax(highest, x);
    }
    s.range = highest - lowest;
    s.top = fmax(fabs(lowest), fabs(highest));
    return s;
}

/* The kernels sum d = x - c for a pivot c that is within one standard deviation of the mean, or the FP32 mean itself, whose
 * error is at most (n + 2) u range + 2u |mean| (u = 2^-24). Call that distance o. Then d is off by u |d|, mean(d) by
 * (n + 2) u mean|d| <= (n + 2) u (deviation + o), and mean(d^2) - mean(d)^2 by 2 (n + 4) u (variance + o^2). In a constant
 * row c is that constant and d is 0: the result is exactly bias. */
static void expect_row(conf_case *k, int64_t r, int64_t n)
{
    const double u = 0x1p-24, epsilon = k->call.attrs.norm.epsilon, count = (double)n;
    const row_stats s = stats_of(k, r * n, n);
    const double sigma = sqrt(s.variance), inverse = 1 / sqrt(s.variance + epsilon);
    const double pivot = s.range > 0 ? fmax(sigma, (count + 2) * u * s.range + 2 * u * fabs(s.mean)) : 0;
    const double mean_error = (count + 4) * u * (s.deviation + pivot), tiny = 0x1p-148 * fmax(1, s.top);
    const double variance_error = 2 * (count + 6) * u * (s.variance + pivot * pivot) + 2 * mean_error * mean_error;
    const double room = s.variance + epsilon - variance_error,
                 relative = (room > 0 ? 0.5 * variance_error / room : 1e300) + 4 * u;
    k->expect[1][r] = s.mean;
    k->bound[1][r] = mean_error + u * fabs(s.mean) + tiny + conf_store_error(INK_F32, s.mean);
    k->expect[2][r] = s.variance;
    k->bound[2][r] = variance_error + conf_store_error(INK_F32, s.variance);
    for (int64_t i = 0; i < n; i++) {
        double x = conf_in(k, 0, r * n + i), g = k->call.in[1] ? conf_in(k, 1, i) : 1,
               b = k->call.in[2] ? conf_in(k, 2, i) : 0;
        double h = (x - s.mean) * inverse, y = h * g + b;
        double h_error =
            fabs(h) * relative + inverse * (mean_error + 2 * u * (fabs(x - s.mean) + pivot) + 0x1p-148) + 0x1p-148;
        k->expect[0][r * n + i] = y;
        k->bound[0][r * n + i] = fabs(g) * h_error + 3 * u * (fabs(h * g) + fabs(b)) + conf_store_error(k->out[0].dtype, y);
    }
}

static ink_status reference_layer_norm(conf_case *k)
{
    int64_t rows = 1, n = 1;
    for (int i = 0; i < k->in[0].rank; i++)
        *(i < k->call.attrs.norm.begin_norm_axis ? &rows : &n) *= k->in[0].dims[i];
    for (int64_t r = 0; r < rows; r++)
        expect_row(k, r, n);
    return INK_OK;
}

const conf_op conf_layer_norm = {OP_layer_norm, draw_layer_norm, reference_layer_norm};

static ink_status draw_rms_norm(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)layout;
    int64_t shape[3] = {conf_dim(k, 30, true), conf_dim(k, 6, true), conf_dim(k, k->size ? 2500 : 300, true)};
    int skip = (int)rng_below(&k->random, 3), rank = 3 - skip;
    int64_t n = shape[2], rows = (skip > 0 ? 1 : shape[0]) * (skip > 1 ? 1 : shape[1]);
    k->call.attrs.norm.epsilon = draw_epsilon(k);
    if (!conf_input(k, 0, dtype, rank, shape + skip, conf_chance(k, 20) ? 50 : 1))
        return INK_RESOURCE_EXHAUSTED;
    draw_rows(k, rows, n);
    conf_input(k, 1, conf_chance(k, 30) ? INK_F32 : dtype, 1, &n, 1);
    return INK_OK;
}

/* Squares are positive: their sum is within (n + 2) u relative, so is half of that the root; three more roundings. */
static ink_status reference_rms_norm(conf_case *k)
{
    const int64_t rows = tensor_rows(&k->in[0]), n = tensor_last(&k->in[0]);
    for (int64_t r = 0; r < rows; r++) {
        double squares = 0;
        for (int64_t i = 0; i < n; i++)
            squares += conf_in(k, 0, r * n + i) * conf_in(k, 0, r * n + i);
        const double inverse = 1 / sqrt(squares / (double)n + k->call.attrs.norm.epsilon),
                     relative = (0.5 * (double)n + 6) * 0x1p-24;
        for (int64_t i = 0; i < n; i++) {
            double g = conf_in(k, 1, i), y = conf_in(k, 0, r * n + i) * inverse * g;
            k->expect[0][r * n + i] = y;
            k->bound[0][r * n + i] = fabs(y) * relative + fabs(g) * 0x1p-148 + conf_store_error(k->out[0].dtype, y);
        }
    }
    return INK_OK;
}

const conf_op conf_rms_norm = {OP_rms_norm, draw_rms_norm, reference_rms_norm};
