/* test_ops_values.c - named cases on every kernel row of an op: failures that users of other libraries reported (the
 * numbers are those of the project's list of field reports), special values, and errors that only the data can cause. */
#include "core/dtype.h"
#include "core/memory.h"
#include "core/rng.h"
#include "ops/rope.h"
#include "registry/registry.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* ---- running a call on one row ---- */

typedef struct eager {
    op_call c;
    ink_tensor in[OP_MAX_IN], out[OP_MAX_OUT];
} eager;

static device cpu;

static int open_device(void **state)
{
    (void)state;
    return device_open_cpu(&cpu, 2, NULL);
}

static int close_device(void **state)
{
    (void)state;
    device_close(&cpu);
    return 0;
}

static ink_tensor *input(eager *e, int i, ink_dtype t, int rank, const int64_t *dims)
{
    assert_int_equal(ink_tensor_init(&e->in[i], t, rank, dims, NULL), INK_OK);
    e->in[i].data = alloc_array(ink_tensor_bytes(&e->in[i]), 1);
    assert_non_null(e->in[i].data);
    e->c.in[i] = &e->in[i];
    return &e->in[i];
}

static ink_tensor *values(eager *e, int i, ink_dtype t, int rank, const int64_t *dims, const double *v)
{
    ink_tensor *x = input(e, i, t, rank, dims);
    for (int64_t k = 0; k < ink_tensor_numel(x); k++)
        store_f64(x->data, t, k, v[k]);
    return x;
}

static ink_tensor *integers(eager *e, int i, int rank, const int64_t *dims, const int32_t *v)
{
    ink_tensor *x = input(e, i, INK_I32, rank, dims);
    memcpy(x->data, v, ink_tensor_bytes(x));
    return x;
}

static void prepare(eager *e, op_id op)
{
    e->c.op = op;
    e->c.threads = 2;
    for (int i = 0; i < op_schema_of(op)->n_out; i++) {
        free(e->out[i].data);
        e->out[i] = (ink_tensor){0};
        e->c.out[i] = &e->out[i];
    }
    if (op_infer(&e->c) != INK_OK)
        fail_msg("%s", ink_last_error());
    for (int i = 0; i < op_schema_of(op)->n_out; i++) {
        e->out[i].data = alloc_array(ink_tensor_bytes(&e->out[i]), 1);
        assert_non_null(e->out[i].data);
        memset(e->out[i].data, 0x7f, ink_tensor_bytes(&e->out[i]));
    }
}

static ink_status run_row(eager *e, const kernel *k)
{
    e->c.workspace_bytes = k->workspace ? k->workspace(&e->c) : 0;
    e->c.workspace = alloc_aligned(e->c.workspace_bytes + 64);
    assert_non_null(e->c.workspace);
    ink_status s = k->run(&e->c);
    free(e->c.workspace);
    return s;
}

static void release(eager *e)
{
    for (int i = 0; i < OP_MAX_IN; i++)
        free(e->in[i].data);
    for (int i = 0; i < OP_MAX_OUT; i++)
        free(e->out[i].data);
    *e = (eager){0};
}

/* The next row of the op's list, from *at on, that this machine can run for this call; NULL behind the last. */
static const kernel *next_row(const eager *e, int *at)
{
    const kernel_list *l = registry_list_of(INK_CPU, e->c.op);
    assert_non_null(l);
    while (*at < l->count) {
        const kernel *k = &l->rows[(*at)++];
        bool key = k->dtype == op_key_dtype(&e->c) && (k->layout == INK_LAYOUT_ANY || k->layout == op_key_layout(&e->c));
        if (key && k->isa <= cpu.isa && !(k->decline && k->decline(&e->c)))
            return k;
    }
    return NULL;
}

static double out_of(const eager *e, int o, int64_t i) { return load_f64(e->out[o].data, e->out[o].dtype, i); }

/* Every element of output 0 within `relative` of expect, plus `absolute`. NaN expects NaN. */
static void check_close(const eager *e, const kernel *k, const double *expect, double relative, double absolute)
{
    for (int64_t i = 0; i < ink_tensor_numel(&e->out[0]); i++) {
        double y = out_of(e, 0, i);
        if (isnan(expect[i]) ? !isnan(y)
                             : !(y == expect[i] || fabs(y - expect[i]) <= relative * fabs(expect[i]) + absolute))
            fail_msg("%s: element %lld is %.9g, expected %.9g", k->name, (long long)i, y, expect[i]);
    }
}

static void run_all(eager *e, op_id op, const double *expect, double relative, double absolute)
{
    int rows = 0;
    const kernel *k;
    prepare(e, op);
    for (int at = 0; (k = next_row(e, &at));) {
        if (run_row(e, k) != INK_OK)
            fail_msg("%s: %s", k->name, ink_last_error());
        check_close(e, k, expect, relative, absolute);
        rows++;
    }
    assert_true(rows > 0);
    release(e);
}

static const double unit_of[INK_DTYPE_COUNT] = {
    [INK_F32] = 0x1p-22, [INK_F16] = 0x1p-11 + 0x1p-18, [INK_BF16] = 0x1p-8 + 0x1p-16};

/* layer_norm (gain and bias may be NULL) or rms_norm in FP64. */
static void normalise(const ink_tensor *x, const ink_tensor *gain, const ink_tensor *bias, bool layer, double epsilon,
                      double *y)
{
    const int64_t n = tensor_last(x);
    for (int64_t r = 0; r < tensor_rows(x); r++) {
        double mean = 0, squares = 0;
        for (int64_t i = 0; layer && i < n; i++)
            mean += load_f64(x->data, x->dtype, r * n + i);
        mean /= (double)n;
        for (int64_t i = 0; i < n; i++)
            squares += pow(load_f64(x->data, x->dtype, r * n + i) - mean, 2) / (double)n;
        for (int64_t i = 0; i < n; i++) {
            double h = (load_f64(x->data, x->dtype, r * n + i) - mean) / sqrt(squares + epsilon);
            y[r * n + i] =
                h * (gain ? load_f64(gain->data, gain->dtype, i) : 1) + (bias ? load_f64(bias->data, bias->dtype, i) : 0);
        }
    }
}

/* Runs layer_norm and rms_norm (unit gain) on a matrix in one dtype against FP64. `absolute` allows for the cancellation
 * against the mean. */
static void check_norms(ink_dtype t, int64_t rows, int64_t n, const double *x, float epsilon, double absolute)
{
    double *y = malloc((size_t)(rows * n) * sizeof *y), *ones = malloc((size_t)n * sizeof *ones);
    assert_true(y && ones);
    for (int64_t i = 0; i < n; i++)
        ones[i] = 1;
    for (int layer = 0; layer < 2; layer++) {
        eager e = {0};
        values(&e, 0, t, 2, (int64_t[]){rows, n}, x);
        values(&e, 1, t, 1, &n, ones);
        e.c.attrs.norm = (norm_attrs){epsilon, 1};
        normalise(&e.in[0], NULL, NULL, layer, epsilon, y);
        run_all(&e, layer ? OP_layer_norm : OP_rms_norm, y, unit_of[t] + (double)n * 0x1p-25, absolute);
    }
    free(y);
    free(ones);
}

/* ---- norms ---- */

static void test_report_4_layer_norm_shapes(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{4, 64}, {1, 1152}, {1024, 1024}};
    rng r = {.seed = (uint64_t)time(NULL)};
    print_message("seed %llu\n", (unsigned long long)r.seed);
    for (int s = 0; s < 3; s++)
        for (int layer = 0; layer < 2; layer++) {
            const int64_t rows = shapes[s][0], n = shapes[s][1];
            eager e = {0};
            double *y = malloc((size_t)(rows * n) * sizeof *y);
            assert_non_null(y);
            const ink_tensor *x = input(&e, 0, INK_BF16, 2, shapes[s]), *gain = input(&e, 1, INK_BF16, 1, &n);
            const ink_tensor *bias = layer ? input(&e, 2, INK_BF16, 1, &n) : NULL;
            for (int i = 0; i < 2 + layer; i++)
                for (int64_t k = 0; k < ink_tensor_numel(&e.in[i]); k++)
                    store_f32(e.in[i].data, INK_BF16, k, rng_normal(&r));
            e.c.attrs.norm = (norm_attrs){1e-5f, 1};
            normalise(x, gain, bias, layer, 1e-5f, y);
            run_all(&e, layer ? OP_layer_norm : OP_rms_norm, y, unit_of[INK_BF16], 1e-4);
            free(y);
        }
}

static void test_report_48_common_mean(void **state)
{
    (void)state;
    double x[5 * 16], wide[2 * 64];
    static const double means[] = {0, 1, 100, 1000, 10000};
    for (int r = 0; r < 5; r++)
        for (int i = 0; i < 16; i++)
            x[r * 16 + i] = (float)(means[r] + i * 1e-3);
    check_norms(INK_F32, 5, 16, x, 1e-12f, 1e-5);
    for (int i = 0; i < 64; i++) {
        wide[i] = 256 + 2 * i;
        wide[64 + i] = i == 40 ? 3e4 : 0.01 * i - 0.3;
    }
    check_norms(INK_BF16, 2, 64, wide, 1e-6f, 1e-5);
    check_norms(INK_F16, 2, 64, wide, 1e-6f, 1e-5);
    check_norms(INK_F32, 2, 64, wide, 1e-6f, 1e-5);
}

static void test_report_50_zero_rows(void **state)
{
    (void)state;
    static const float epsilons[] = {1e-5f, 1e-6f, 1e-12f};
    static const double zeros[3 * 40];
    for (int e = 0; e < 3; e++)
        for (int t = 0; t < 3; t++)
            check_norms((ink_dtype[]){INK_F32, INK_F16, INK_BF16}[t], 3, 40, zeros, epsilons[e], 0);
}

static void test_report_51_outliers(void **state)
{
    (void)state;
    static const double outliers[] = {1e4, 1e10, 1e18, 3e38};
    double x[1024];
    for (int o = 0; o < 4; o++) {
        for (int i = 0; i < 1024; i++)
            x[i] = sin(i);
        x[700] = outliers[o];
        if (o == 0)
            check_norms(INK_F16, 1, 1024, x, 1e-5f, 1e-6);
        check_norms(INK_BF16, 1, 1024, x, 1e-5f, 1e-6);
        check_norms(INK_F32, 1, 1024, x, 1e-5f, 1e-6);
    }
}

static void test_report_52_extreme_range(void **state)
{
    (void)state;
    static const double magnitudes[] = {1e30, 1e-30, 3e38, 1e-38};
    double x[100], flat[100];
    for (int m = 0; m < 4; m++) {
        for (int i = 0; i < 100; i++) {
            x[i] = i % 3 ? magnitudes[m] : -magnitudes[m];
            flat[i] = magnitudes[m];
        }
        check_norms(INK_BF16, 1, 100, x, 1e-5f, 1e-6);
        check_norms(INK_F32, 1, 100, x, 1e-5f, 1e-6);
        check_norms(INK_F32, 1, 100, x, 0, 1e-6); /* epsilon 0: nothing hides what underflow would take */
        check_norms(INK_BF16, 1, 100, flat, 1e-5f, 0);
    }
}

static void test_constant_rows_give_bias_exactly(void **state)
{
    (void)state;
    enum { N = 72 };
    double bias[N], x[N];
    static const double constants[] = {0.1, 1e4, -3.3e38, 7e-39};
    for (int c = 0; c < 4; c++)
        for (int64_t n = 1; n <= N; n += 7) {
            eager e = {0};
            for (int i = 0; i < N; i++) {
                x[i] = constants[c];
                bias[i] = (float)(0.37 * i - 5);
            }
            values(&e, 0, INK_F32, 2, (int64_t[]){1, n}, x);
            values(&e, 2, INK_F32, 1, &n, bias);
            e.c.attrs.norm = (norm_attrs){1e-5f, 1};
            run_all(&e, OP_layer_norm, bias, 0, 0);
        }
}

static void test_norm_of_infinity_and_nan(void **state)
{
    (void)state;
    static const double x[] = {1, -2, INFINITY, 4, 1, 2, NAN, 4};
    static const double layer[] = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN}, rms[] = {0, 0, NAN, 0, NAN, NAN, NAN, NAN};
    static const double ones[] = {1, 1, 1, 1};
    for (int t = 0; t < 3; t++)
        for (int l = 0; l < 2; l++) {
            const ink_dtype type = (ink_dtype[]){INK_F32, INK_F16, INK_BF16}[t];
            eager e = {0};
            values(&e, 0, type, 2, (int64_t[]){2, 4}, x);
            values(&e, 1, type, 1, (int64_t[]){4}, ones);
            e.c.attrs.norm = (norm_attrs){1e-5f, 1};
            run_all(&e, l ? OP_layer_norm : OP_rms_norm, l ? layer : rms, 0, 0);
        }
}

/* ---- attention and softmax ---- */

static void test_report_46_hidden_row(void **state)
{
    (void)state;
    enum { D = 8 };
    for (int t = 0; t < 3; t++) { /* two queries, one key: the first query is at position -1 and sees nothing */
        const ink_dtype type = (ink_dtype[]){INK_F32, INK_F16, INK_BF16}[t];
        eager e = {0};
        double q[2 * D], expect[2 * D] = {0};
        for (int i = 0; i < 2 * D; i++)
            q[i] = i * 0.25 - 1;
        values(&e, 0, type, 3, (int64_t[]){2, 1, D}, q);
        for (int p = 1; p <= 2; p++) {
            ink_tensor *pool = input(&e, p, type, 4, (int64_t[]){1, 1, KV_BLOCK, D});
            for (int64_t i = 0; i < KV_BLOCK * D; i++)
                store_f64(pool->data, type, i, i < D ? (double)i + 1 : NAN);
        }
        for (int i = 0; i < D; i++)
            expect[D + i] = i + 1;
        integers(&e, 3, 2, (int64_t[]){1, 1}, (int32_t[]){0});
        integers(&e, 4, 1, (int64_t[]){1}, (int32_t[]){1});
        integers(&e, 5, 1, (int64_t[]){2}, (int32_t[]){0, 2});
        e.c.attrs.attention.scale = 1;
        run_all(&e, OP_paged_attention, expect, 0x1p-20, 0);
    }
}

static void test_report_47_nan_in_softmax(void **state)
{
    (void)state;
    static const double rows[5][2] = {{1, NAN}, {NAN, NAN}, {INFINITY, 1}, {-INFINITY, -INFINITY}, {-INFINITY, 3}};
    static const double expect[5][2] = {{NAN, NAN}, {NAN, NAN}, {NAN, NAN}, {NAN, NAN}, {0, 1}};
    for (int t = 0; t < 3; t++) {
        eager e = {0};
        values(&e, 0, (ink_dtype[]){INK_F32, INK_F16, INK_BF16}[t], 2, (int64_t[]){5, 2}, rows[0]);
        e.c.attrs.axis.axis = 1;
        run_all(&e, OP_softmax, expect[0], 0, 0);
    }
    static const double index[] = {1, 0, 0, 0, 1};
    eager e = {0};
    values(&e, 0, INK_F32, 2, (int64_t[]){5, 2}, rows[0]);
    run_all(&e, OP_argmax, index, 0, 0);
}

/* ---- conversions ---- */

static void test_report_53_f32_to_bf16_bits(void **state)
{
    (void)state;
    static const uint32_t from[] = {0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF, 0x3F808000, 0x3F818000, 0x00000001, 0x3F808001,
                                    0x00008000, 0x00008001, 0x007FFFFF, 0x7F7F7FFF, 0x7F7F8000, 0x7F800000, 0xFF800000,
                                    0x80000000, 0x3EAAAAAB, 0xFF812345, 0x80008001, 0x7FC00000};
    static const uint16_t to[] = {0x7FC0, 0xFFFF, 0x7F80, 0x3F80, 0x3F82, 0x0000, 0x3F81, 0x0000, 0x0001, 0x0080,
                                  0x7F7F, 0x7F80, 0x7F80, 0xFF80, 0x8000, 0x3EAB, 0xFFC1, 0x8001, 0x7FC0};
    const int64_t n = sizeof from / sizeof *from;
    eager e = {0};
    memcpy(input(&e, 0, INK_F32, 1, &n)->data, from, sizeof from);
    e.c.attrs.cast.to = INK_BF16;
    prepare(&e, OP_cast);
    const kernel *k;
    for (int at = 0; (k = next_row(&e, &at));) {
        assert_int_equal(run_row(&e, k), INK_OK);
        for (int64_t i = 0; i < n; i++)
            if (((bf16 *)e.out[0].data)[i] != to[i])
                fail_msg("%s: %08x became %04x, expected %04x", k->name, from[i], ((bf16 *)e.out[0].data)[i], to[i]);
    }
    release(&e);
}

/* All 65536 values of each 16-bit type, into every type, on every row: the same bits, NaN payloads included. */
static void test_cast_is_the_same_on_all_rows(void **state)
{
    (void)state;
    const int64_t n = 65536;
    static const ink_dtype types[] = {INK_F32, INK_F16, INK_BF16};
    for (int from = 0; from < 3; from++)
        for (int to = 0; to < 3; to++) {
            eager e = {0};
            ink_tensor *x = input(&e, 0, types[from], 1, &n);
            rng r = {.seed = 77 + (uint64_t)to};
            for (int64_t i = 0; i < n; i++)
                if (types[from] == INK_F32)
                    ((uint32_t *)x->data)[i] = (uint32_t)i << 16 | (uint32_t)(rng_u64(&r) & 0xffff);
                else
                    ((uint16_t *)x->data)[i] = (uint16_t)i;
            e.c.attrs.cast.to = types[to];
            prepare(&e, OP_cast);
            void *expect = malloc(ink_tensor_bytes(&e.out[0]));
            assert_non_null(expect);
            if (from == to)
                memcpy(expect, x->data, ink_tensor_bytes(x));
            else
                for (int64_t i = 0; i < n; i++)
                    store_f32(expect, types[to], i, load_f32(x->data, types[from], i));
            const kernel *k;
            for (int at = 0; (k = next_row(&e, &at));) {
                assert_int_equal(run_row(&e, k), INK_OK);
                if (memcmp(expect, e.out[0].data, ink_tensor_bytes(&e.out[0])))
                    fail_msg("%s to %s differs from the scalar conversion", k->name, ink_dtype_name(types[to]));
            }
            free(expect);
            release(&e);
        }
}

/* ---- activations ---- */

static void test_activations_of_special_values(void **state)
{
    (void)state;
    static const double x[] = {0, INFINITY, -INFINITY, NAN, 3e4, -3e4, 1};
    static const struct {
        op_id op;
        bool tanh;
        double at_one;
    } cases[] = {{OP_gelu, false, 0.8413447460685429},
                 {OP_gelu, true, 0.8411919906082768},
                 {OP_silu, false, 0.7310585786300049},
                 {OP_relu, false, 1}};
    for (int c = 0; c < 4; c++)
        for (int t = 0; t < 3; t++) {
            const ink_dtype type = (ink_dtype[]){INK_F32, INK_F16, INK_BF16}[t];
            const double large = load_f64(&(bf16){f64_to_bf16(3e4)}, INK_BF16, 0);
            const double expect[] = {0, INFINITY, 0, NAN, type == INK_BF16 ? large : 3e4, 0, cases[c].at_one};
            eager e = {0};
            values(&e, 0, type, 1, (int64_t[]){7}, x);
            e.c.attrs.gelu.approximate = cases[c].tanh;
            run_all(&e, cases[c].op, expect, unit_of[type], 0);
        }
}

/* ---- positions ---- */

/* torch: 1.0 / (10000.0 ** (torch.arange(0, 36, 2).float() / 36)) and 1.0 / (500000.0 ** (torch.arange(0, 128, 2).float() /
 * 128)), at most one unit in the last place away (its vectorised power is not correctly rounded). */
static void test_rope_frequencies(void **state)
{
    (void)state;
    float omega[ROPE_MAX_HALF];
    int axis[ROPE_MAX_HALF];
    rope_frequencies(&(rope_table_attrs){ROPE_AXIAL_2D, 10000, 72, {0}}, omega, axis);
    for (int i = 0; i < 36; i++) {
        double exact = pow(10000, -(double)(i % 18) / 18);
        assert_true(fabs(omega[i] - exact) <= 0x1.8p-23 * exact * (1 + log(10000)));
        assert_int_equal(axis[i], i / 18);
    }
    assert_true(omega[0] == 1 && omega[18] == 1);
    rope_frequencies(&(rope_table_attrs){ROPE_MROPE, 500000, 128, {16, 24, 24}}, omega, axis);
    for (int i = 0; i < 64; i++) {
        double exact = pow(500000, -(double)i / 64);
        assert_true(fabs(omega[i] - exact) <= 0x1.8p-23 * exact * (1 + log(500000)));
        assert_int_equal(axis[i], i < 16 ? 0 : i < 40 ? 1 : 2);
    }
}

/* The angle's cosine stays right at the far end of the longest context. */
static void test_rope_table_far_positions(void **state)
{
    (void)state;
    eager e = {0};
    integers(&e, 0, 2, (int64_t[]){2, 3}, (int32_t[]){131071, 131071, 131071, 3, 5, 7});
    e.c.attrs.rope_table = (rope_table_attrs){ROPE_MROPE, 500000, 8, {1, 1, 2}};
    double expect[2 * 4 * 2];
    float omega[ROPE_MAX_HALF];
    int axis[ROPE_MAX_HALF];
    rope_frequencies(&e.c.attrs.rope_table, omega, axis);
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < 4; i++) {
            float angle = (float)((int32_t *)e.in[0].data)[t * 3 + axis[i]] * omega[i];
            expect[2 * (t * 4 + i)] = cos(angle);
            expect[2 * (t * 4 + i) + 1] = sin(angle);
        }
    run_all(&e, OP_rope_table, expect, 0x1p-23, 0);
}

static void test_position_grid_as_large_as_the_table(void **state)
{
    (void)state;
    enum { SIDE = 27, WIDTH = 19 };
    static double x[SIDE * SIDE * WIDTH], table[SIDE * SIDE * WIDTH], expect[SIDE * SIDE * WIDTH];
    rng r = {.seed = (uint64_t)time(NULL)};
    for (int align = 0; align < 2; align++)
        for (int t = 0; t < 3; t++) {
            const ink_dtype type = (ink_dtype[]){INK_F32, INK_F16, INK_BF16}[t];
            eager e = {0};
            for (int i = 0; i < SIDE * SIDE * WIDTH; i++) {
                x[i] = rng_normal(&r);
                table[i] = i % 97 ? rng_normal(&r) : INFINITY; /* its neighbours must not meet 0 * infinity */
            }
            values(&e, 0, type, 2, (int64_t[]){SIDE * SIDE, WIDTH}, x);
            values(&e, 1, type, 2, (int64_t[]){SIDE * SIDE, WIDTH}, table);
            integers(&e, 2, 2, (int64_t[]){1, 3}, (int32_t[]){1, SIDE, SIDE});
            e.c.attrs.position.align_corners = align;
            for (int i = 0; i < SIDE * SIDE * WIDTH; i++) {
                uint32_t rounded = 0;
                store_f32(&rounded, type, 0, load_f32(e.in[0].data, type, i) + load_f32(e.in[1].data, type, i));
                expect[i] = load_f64(&rounded, type, 0);
            }
            run_all(&e, OP_position_embedding, expect, 0, 0);
        }
}

/* A 2 x 2 table on a 4 x 1 grid: the two forms of the spec, worked out by hand. */
static void test_position_forms(void **state)
{
    (void)state;
    static const double table[] = {0, 10, 100, 110}, zeros[4];
    static const double half_pixel[] = {5, 30, 80, 105};            /* rows at 0, 1/4, 3/4, 1; the only column halfway */
    static const double corners[] = {0, 100.0 / 3, 200.0 / 3, 100}; /* rows at 0, 1/3, 2/3, 1; the only column at 0 */
    for (int align = 0; align < 2; align++) {
        eager e = {0};
        values(&e, 0, INK_F32, 2, (int64_t[]){4, 1}, zeros);
        values(&e, 1, INK_F32, 2, (int64_t[]){4, 1}, table);
        integers(&e, 2, 2, (int64_t[]){1, 3}, (int32_t[]){1, 4, 1});
        e.c.attrs.position.align_corners = align;
        run_all(&e, OP_position_embedding, align ? corners : half_pixel, 0x1p-21, 0);
    }
}

/* ---- errors that only the data can cause ---- */

static void check_error(eager *e, op_id op, ink_status status, const char *message)
{
    const kernel *k;
    prepare(e, op);
    for (int at = 0; (k = next_row(e, &at));) {
        assert_int_equal(run_row(e, k), status);
        assert_string_equal(ink_last_error(), message);
        for (size_t i = 0; i < ink_tensor_bytes(&e->out[0]); i++) /* nothing was written */
            assert_int_equal(((unsigned char *)e->out[0].data)[i], 0x7f);
    }
    release(e);
}

static void test_indices_out_of_range(void **state)
{
    (void)state;
    eager e = {0};
    integers(&e, 0, 1, (int64_t[]){3}, (int32_t[]){0, 8, 9});
    input(&e, 1, INK_BF16, 2, (int64_t[]){9, 4});
    check_error(&e, OP_embedding, INK_OUT_OF_RANGE, "embedding: ids[2] is 9, the table has 9 rows");
    integers(&e, 0, 1, (int64_t[]){1}, (int32_t[]){-1});
    input(&e, 1, INK_F16, 2, (int64_t[]){9, 4});
    check_error(&e, OP_embedding, INK_OUT_OF_RANGE, "embedding: ids[0] is -1, the table has 9 rows");
    input(&e, 0, INK_F32, 2, (int64_t[]){0, 4});
    integers(&e, 1, 1, (int64_t[]){1}, (int32_t[]){0});
    check_error(&e, OP_index_select, INK_OUT_OF_RANGE, "index_select: index[0] is 0, the table has 0 rows");
    input(&e, 0, INK_BF16, 2, (int64_t[]){3, 4});
    input(&e, 1, INK_BF16, 2, (int64_t[]){2, 4});
    integers(&e, 2, 1, (int64_t[]){3}, (int32_t[]){-7, 1, 2});
    check_error(&e, OP_merge_multimodal, INK_OUT_OF_RANGE, "merge_multimodal: rows[2] is 2, the table has 2 rows");
}

static void test_grids_that_do_not_fit(void **state)
{
    (void)state;
    static const struct {
        int32_t grid[3];
        const char *position, *merge;
    } cases[] = {
        {{1, 2, 6}, NULL, NULL},
        {{1, 2, 4},
         "position_embedding: grid_thw describes 8 patches, x has 12",
         "patch_merge: grid_thw describes 8 patches, x has 12"},
        {{2, 2, 6},
         "position_embedding: grid_thw[0] is 2,2,6, expected 1 and two multiples of 1",
         "patch_merge: grid_thw[0] is 2,2,6, expected 1 and two multiples of 2"},
        {{1, -2, -6},
         "position_embedding: grid_thw[0] is 1,-2,-6, expected 1 and two multiples of 1",
         "patch_merge: grid_thw[0] is 1,-2,-6, expected 1 and two multiples of 2"},
        {{1, 3, 4}, NULL, "patch_merge: grid_thw[0] is 1,3,4, expected 1 and two multiples of 2"},
        {{1, 2147483646, 2147483646},
         "position_embedding: grid_thw describes 4611686009837453316 patches, x has 12",
         "patch_merge: grid_thw describes 4611686009837453316 patches, x has 12"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int merge = 0; merge < 2; merge++) {
            eager e = {0};
            const char *message = merge ? cases[i].merge : cases[i].position;
            input(&e, 0, INK_BF16, 2, (int64_t[]){12, 4});
            if (!merge)
                input(&e, 1, INK_BF16, 2, (int64_t[]){9, 4});
            integers(&e, merge ? 1 : 2, 2, (int64_t[]){1, 3}, cases[i].grid);
            e.c.attrs.merge.merge = 2;
            if (!merge)
                e.c.attrs.position.align_corners = false;
            if (message) {
                check_error(&e, merge ? OP_patch_merge : OP_position_embedding, INK_INVALID_ARGUMENT, message);
                continue;
            }
            static const double zeros[12 * 4];
            run_all(&e, merge ? OP_patch_merge : OP_position_embedding, zeros, 0, 0);
        }
}

/* A sample call of one row: logits, parameters, history. */
static void sample_call(eager *e, int64_t n, const double *logits, double temperature, double top_p, double penalty,
                        int32_t length, const int32_t history[2], int64_t step)
{
    values(e, 0, INK_F32, 2, (int64_t[]){1, n}, logits);
    values(e, 1, INK_F32, 2, (int64_t[]){1, 3}, (double[]){temperature, top_p, penalty});
    memcpy(input(e, 2, INK_I64, 2, (int64_t[]){1, 2})->data, (int64_t[]){42, step}, 16);
    integers(e, 3, 2, (int64_t[]){1, 2}, history);
    integers(e, 4, 1, (int64_t[]){1}, &length);
}

static void test_sample_errors(void **state)
{
    (void)state;
    static const double logits[] = {1, 2, 3};
    static const struct {
        double temperature, top_p, penalty;
        int32_t length, history[2];
        const char *message;
    } cases[] = {
        {-1, 1, 1, 0, {0}, "sample: params[0]: temperature is -1, expected 0 or more"},
        {NAN, 1, 1, 0, {0}, "sample: params[0]: temperature is nan, expected 0 or more"},
        {1, -0.5, 1, 0, {0}, "sample: params[0]: top_p is -0.5, expected 0 or more"},
        {1, 1, 0, 0, {0}, "sample: params[0]: repetition penalty is 0, expected a positive number"},
        {1, 1, INFINITY, 0, {0}, "sample: params[0]: repetition penalty is inf, expected a positive number"},
        {1, 1, 1, 3, {0}, "sample: history_len[0] is 3, expected 0 to 2"},
        {1, 1, 1, -1, {0}, "sample: history_len[0] is -1, expected 0 to 2"},
        {1, 1, 1, 2, {0, 3}, "sample: history[0][1] is 3, expected 0 to 2"},
        {1, 1, 1, 1, {-1, 0}, "sample: history[0][0] is -1, expected 0 to 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        eager e = {0};
        sample_call(&e, 3, logits, cases[i].temperature, cases[i].top_p, cases[i].penalty, cases[i].length,
                    cases[i].history, 0);
        check_error(&e, OP_sample, INK_OUT_OF_RANGE, cases[i].message);
    }
}

static void test_sample_decisions(void **state)
{
    (void)state;
    static const struct {
        double logits[4], temperature, top_p, penalty;
        int32_t length, history[2];
        double expect;
    } cases[] = {
        {{1, 5, 5, 2}, 0, 1, 1, 0, {0}, 1},       /* greedy, lowest of a tie */
        {{1, 5, 4, 2}, 0, 1, 2, 1, {1}, 2},       /* 5 / 2 < 4 */
        {{1, 5, 4, 2}, 0, 1, 2, 2, {1, 1}, 2},    /* once only: 5 / 4 would still lose, 4 wins either way */
        {{-1, -5, -4, -2}, 0, 1, 2.5, 1, {0}, 3}, /* negative logits move away from 0 */
        {{3, 5, 5, 2}, 0.5, 0, 1, 0, {0}, 1},     /* top_p 0: the most probable one, lowest id of a tie */
        {{1, NAN, 5, 2}, 1, 1, 1, 0, {0}, 1},     /* damage shows */
        {{1, 4, INFINITY, 2}, 1, 1, 1, 0, {0}, 2},
        {{-INFINITY, -INFINITY, -INFINITY, -INFINITY}, 1, 1, 1, 0, {0}, 0},
        {{-INFINITY, -INFINITY, 7, -INFINITY}, 1, 1, 1, 0, {0}, 2},
        {{0, 200, 0, 0}, 1, 0.9, 1, 0, {0}, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        eager e = {0};
        sample_call(&e, 4, cases[i].logits, cases[i].temperature, cases[i].top_p, cases[i].penalty, cases[i].length,
                    cases[i].history, (int64_t)i);
        run_all(&e, OP_sample, &cases[i].expect, 0, 0);
    }
}

/* 20000 draws follow the distribution, and top_p 0.75 of 0.5, 0.25, 0.15, 0.1 keeps exactly the first two. */
static void test_sample_frequencies(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    const double p[4] = {0.15, 0.5, 0.1, 0.25};
    for (int nucleus = 0; nucleus < 2; nucleus++) {
        int64_t count[4] = {0};
        double logits[4];
        for (int i = 0; i < 4; i++)
            logits[i] = 2 * log(p[i]); /* temperature 2 */
        eager e = {0};
        sample_call(&e, 4, logits, 2, nucleus ? 0.749 : 1, 1, 0, (int32_t[]){0, 0}, 0);
        prepare(&e, OP_sample);
        const kernel *k = next_row(&e, &(int){0});
        assert_non_null(k);
        for (int64_t step = 0; step < DRAWS; step++) {
            ((int64_t *)e.in[2].data)[1] = step;
            assert_int_equal(run_row(&e, k), INK_OK);
            count[((int32_t *)e.out[0].data)[0]]++;
        }
        for (int i = 0; i < 4; i++) {
            double q = nucleus ? (p[i] >= 0.25 ? p[i] / 0.75 : 0) : p[i];
            assert_true(fabs((double)count[i] - q * DRAWS) <= 4.5 * sqrt(q * (1 - q) * DRAWS));
        }
        release(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report_4_layer_norm_shapes),
        cmocka_unit_test(test_report_46_hidden_row),
        cmocka_unit_test(test_report_47_nan_in_softmax),
        cmocka_unit_test(test_report_48_common_mean),
        cmocka_unit_test(test_report_50_zero_rows),
        cmocka_unit_test(test_report_51_outliers),
        cmocka_unit_test(test_report_52_extreme_range),
        cmocka_unit_test(test_report_53_f32_to_bf16_bits),
        cmocka_unit_test(test_constant_rows_give_bias_exactly),
        cmocka_unit_test(test_norm_of_infinity_and_nan),
        cmocka_unit_test(test_cast_is_the_same_on_all_rows),
        cmocka_unit_test(test_activations_of_special_values),
        cmocka_unit_test(test_rope_frequencies),
        cmocka_unit_test(test_rope_table_far_positions),
        cmocka_unit_test(test_position_grid_as_large_as_the_table),
        cmocka_unit_test(test_position_forms),
        cmocka_unit_test(test_indices_out_of_range),
        cmocka_unit_test(test_grids_that_do_not_fit),
        cmocka_unit_test(test_sample_errors),
        cmocka_unit_test(test_sample_decisions),
        cmocka_unit_test(test_sample_frequencies),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
