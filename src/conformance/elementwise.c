#include "conformance/conformance.h"
#include "conformance/reference.h"

#include "core/dtype.h"

#include <math.h>

static void draw_shape(conf_case *k, int64_t dims[3], int *rank)
{
    *rank = (int)rng_below(&k->random, 4);
    dims[0] = conf_dim(k, k->size ? 4000 : 600, true);
    dims[1] = conf_dim(k, 20, true);
    dims[2] = conf_dim(k, 8, false);
}

static ink_status draw_unary(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)layout;
    int64_t dims[3];
    int rank;
    draw_shape(k, dims, &rank);
    static const double scales[] = {1, 5, 1, 30};
    conf_input(k, 0, dtype, rank, dims, scales[rng_below(&k->random, 4)]);
    if (conf_chance(k, 20))
        conf_special_values(k, 0, conf_chance(k, 50));
    k->call.attrs = (op_attrs){0};
    return INK_OK;
}

static ink_status draw_gelu(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    TRY(draw_unary(k, dtype, layout));
    k->call.attrs.gelu.approximate = conf_chance(k, 50);
    return INK_OK;
}

/* Activations are x sigmoid(u) or x Phi(x) in FP32: 2^-20 covers the polynomial, the exponential, the quotient; an argument
 * u of the exponential rounded three times moves the result by 3 * 2^-24 |u| in relative terms, as far as the sigmoid is
 * not saturated; results near the bottom of FP32 lose 2^-149 steps of the exponential, times |x|. */
static void expect_activation(conf_case *k, activation act)
{
    for (int64_t i = 0, n = ink_tensor_numel(&k->in[0]); i < n; i++) {
        double x = conf_in(k, 0, i), slope, y = ref_activation(x, act, &slope), u = 0;
        if (act == ACT_GELU_TANH)
            u = 2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x);
        k->expect[0][i] = y;
        k->bound[0][i] = 0;
        if (act == ACT_RELU || !isfinite(x))
            continue;
        double steep = u < 0 ? fmin(-u, 200) * 4 * 0x1p-24 : 0;
        k->bound[0][i] = fabs(y) * (0x1p-20 + steep) + fmin(fabs(x), 256) * 0x1p-148 + conf_store_error(k->out[0].dtype, y);
    }
}

static ink_status reference_gelu(conf_case *k)
{
    expect_activation(k, k->call.attrs.gelu.approximate ? ACT_GELU_TANH : ACT_GELU_ERF);
    return INK_OK;
}
static ink_status reference_silu(conf_case *k)
{
    expect_activation(k, ACT_SILU);
    return INK_OK;
}
static ink_status reference_relu(conf_case *k)
{
    expect_activation(k, ACT_RELU);
    return INK_OK;
}

const conf_op conf_gelu = {OP_gelu, draw_gelu, reference_gelu};
const conf_op conf_silu = {OP_silu, draw_unary, reference_silu};
const conf_op conf_relu = {OP_relu, draw_unary, reference_relu};

static ink_status draw_binary(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    (void)layout;
    int64_t dims[3];
    int rank;
    draw_shape(k, dims, &rank);
    for (int i = 0; i < 2; i++) {
        conf_input(k, i, dtype, rank, dims, conf_chance(k, 20) ? 100 : 1);
        if (conf_chance(k, 10))
            conf_special_values(k, i, conf_chance(k, 50));
    }
    return INK_OK;
}

/* One FP32 operation, then the store: where both round, the first may move the second across a tie. */
static void expect_binary(conf_case *k, bool product)
{
    for (int64_t i = 0, n = ink_tensor_numel(&k->in[0]); i < n; i++) {
        double x = conf_in(k, 0, i), y = conf_in(k, 1, i), z = product ? x * y : x + y;
        k->expect[0][i] = z;
        k->bound[0][i] = isfinite(z) ? 0x1p-24 * fabs(z) + 0x1p-150 + conf_store_error(k->out[0].dtype, z) : 0;
    }
}

static ink_status reference_add(conf_case *k)
{
    expect_binary(k, false);
    return INK_OK;
}
static ink_status reference_multiply(conf_case *k)
{
    expect_binary(k, true);
    return INK_OK;
}

const conf_op conf_add = {OP_add, draw_binary, reference_add};
const conf_op conf_multiply = {OP_multiply, draw_binary, reference_multiply};

static ink_status draw_cast(conf_case *k, ink_dtype dtype, ink_layout layout)
{
    static const ink_dtype types[] = {INK_F32, INK_F16, INK_BF16};
    TRY(draw_unary(k, dtype, layout));
    k->call.attrs.cast.to = types[rng_below(&k->random, 3)];
    ink_tensor *x = &k->in[0];
    if (x->data && conf_chance(k, 50)) /* any bits at all */
        for (size_t i = 0; i < ink_tensor_bytes(x) / 2; i++)
            ((uint16_t *)x->data)[i] = (uint16_t)rng_u64(&k->random);
    return INK_OK;
}

/* Correctly rounded, so exact: the reference is the library's FP64 conversion, itself checked against tables. */
static ink_status reference_cast(conf_case *k)
{
    for (int64_t i = 0, n = ink_tensor_numel(&k->in[0]); i < n; i++) {
        uint32_t stored = 0;
        store_f64(&stored, k->out[0].dtype, 0, conf_in(k, 0, i));
        k->expect[0][i] = load_f64(&stored, k->out[0].dtype, 0);
    }
    return INK_OK;
}

const conf_op conf_cast = {OP_cast, draw_cast, reference_cast};
