/* test_conv.c - conv2d and fused_conv2d_add_act on reported failures (numbers of the field reports in the names), on every
 * row that this processor runs: exact small integers, layouts, groups, dilation, pads, empty tensors, wrong arguments. */
#include "core/dtype.h"
#include "core/memory.h"
#include "core/rng.h"
#include "ops/conv.h"
#include "registry/registry.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

typedef struct conv_case {
    op_call call;
    ink_tensor x, w, bias, residual, y;
} conv_case;

static device cpu;
static uint64_t seed;

static const conv2d_attrs plain = {.strides = {1, 1}, .dilations = {1, 1}, .groups = 1};

static void tensor(ink_tensor *t, ink_dtype dtype, ink_layout layout, const int64_t dims[4])
{
    assert_int_equal(ink_tensor_init(t, dtype, 4, dims, NULL), INK_OK);
    t->layout = layout;
    assert_non_null(t->data = malloc(ink_tensor_bytes(t) + 1));
}

/* x in the given layout from NCHW dims; values lo..hi. */
static void setup(conv_case *k, op_id op, ink_dtype dtype, ink_layout layout, const int64_t x[4], const int64_t w[4],
                  const conv2d_attrs *a, int lo, int hi)
{
    rng r = {.seed = seed};
    *k = (conv_case){.call = {.op = op, .attrs.conv2d = *a, .threads = 2}};
    tensor(&k->x, dtype, layout, layout == INK_NHWC ? (int64_t[]){x[0], x[2], x[3], x[1]} : x);
    tensor(&k->w, dtype, INK_LAYOUT_ANY, w);
    for (int64_t i = 0; i < ink_tensor_numel(&k->x); i++)
        store_f64(k->x.data, dtype, i, (double)rng_range(&r, lo, hi));
    for (int64_t i = 0; i < ink_tensor_numel(&k->w); i++)
        store_f64(k->w.data, dtype, i, (double)rng_range(&r, lo, hi));
    k->call.in[0] = &k->x, k->call.in[1] = &k->w, k->call.out[0] = &k->y;
    assert_int_equal(op_infer(&k->call), INK_OK);
    assert_non_null(k->y.data = malloc(ink_tensor_bytes(&k->y) + 1));
}

static void teardown(conv_case *k) { free(k->x.data), free(k->w.data), free(k->y.data); }

static void run(conv_case *k, const kernel *row)
{
    memset(k->y.data, 0xff, ink_tensor_bytes(&k->y)); /* NaN */
    k->call.workspace = alloc_aligned(row->workspace ? row->workspace(&k->call) : 1);
    assert_non_null(k->call.workspace);
    assert_int_equal(row->run(&k->call), INK_OK);
    free(k->call.workspace);
}

static bool serves(const kernel *row, const op_call *c)
{
    return row->dtype == c->in[0]->dtype && row->isa <= cpu.isa && !(row->decline && row->decline(c));
}

static int64_t at(const ink_tensor *t, int64_t n, int64_t c, int64_t h, int64_t w)
{
    return t->layout == INK_NHWC ? ((n * t->dims[1] + h) * t->dims[2] + w) * t->dims[3] + c
                                 : ((n * t->dims[1] + c) * t->dims[2] + h) * t->dims[3] + w;
}

/* Integers: the sum is exact, so the stored value is its rounding. */
static double expected(const conv_case *k, const conv2d_geometry *g, int64_t n, int64_t m, int64_t oh, int64_t ow)
{
    double sum = 0;
    int64_t per_group = g->c / g->groups, first = m / (g->m / g->groups) * per_group;
    for (int64_t c = 0; c < per_group; c++)
        for (int64_t r = 0; r < g->k[0]; r++)
            for (int64_t q = 0; q < g->k[1]; q++) {
                int64_t h = oh * g->stride[0] + r * g->dilation[0] - g->pad[0],
                        w = ow * g->stride[1] + q * g->dilation[1] - g->pad[1];
                if (h >= 0 && h < g->in[0] && w >= 0 && w < g->in[1])
                    sum += load_f64(k->x.data, k->x.dtype, at(&k->x, n, first + c, h, w)) *
                           load_f64(k->w.data, k->w.dtype, ((m * per_group + c) * g->k[0] + r) * g->k[1] + q);
            }
    return sum;
}

static double rounded(ink_dtype t, double v)
{
    uint64_t element = 0;
    store_f64(&element, t, 0, v);
    return load_f64(&element, t, 0);
}

/* Every row of the case's key, on `samples` random outputs (0: all). */
static void check_exact(conv_case *k, int64_t samples)
{
    conv2d_geometry g;
    rng r = {.seed = seed + 1};
    int rows = 0;
    assert_int_equal(conv2d_geometry_of(&k->call, &g), INK_OK);
    const kernel_list *list = registry_list_of(INK_CPU, k->call.op);
    int64_t all = g.n * g.m * g.out[0] * g.out[1], count = samples && samples < all ? samples : all;
    for (int i = 0; i < list->count; i++) {
        if (!serves(&list->rows[i], &k->call) ||
            (samples && !list->rows[i].isa)) /* the portable row is slow on large cases */
            continue;
        run(k, &list->rows[i]);
        for (int64_t j = 0; j < count; j++) {
            int64_t o = count < all ? (int64_t)rng_below(&r, (uint64_t)all) : j;
            int64_t ow = o % g.out[1], oh = o / g.out[1] % g.out[0], m = o / g.out[1] / g.out[0] % g.m,
                    n = o / g.out[1] / g.out[0] / g.m;
            double y = load_f64(k->y.data, k->y.dtype, at(&k->y, n, m, oh, ow));
            double e = rounded(k->y.dtype, expected(k, &g, n, m, oh, ow));
            if (y != e)
                fail_msg("%s: output %lld,%lld,%lld,%lld is %g, expected %g", list->rows[i].name, (long long)n,
                         (long long)m, (long long)oh, (long long)ow, y, e);
        }
        rows++;
    }
    assert_true(rows > 0 || (samples && cpu.isa == ISA_PORTABLE));
}

static const ink_layout layouts[] = {INK_NCHW, INK_NHWC};
static const ink_dtype dtypes[] = {INK_BF16, INK_F16, INK_F32};

static void exact(const int64_t x[4], const int64_t w[4], const conv2d_attrs *a, int range, int64_t samples, int64_t oh,
                  int64_t ow)
{
    for (int l = 0; l < 2; l++)
        for (int t = 0; t < 3; t++) {
            conv_case k;
            setup(&k, OP_conv2d, dtypes[t], layouts[l], x, w, a, -range, range);
            assert_int_equal(k.y.dims[conv2d_height_axis(&k.x)], oh);
            assert_int_equal(k.y.dims[conv2d_height_axis(&k.x) + 1], ow);
            assert_int_equal(k.y.layout, layouts[l]);
            check_exact(&k, samples);
            teardown(&k);
        }
}

/* ---- the reports ---- */

static void test_11_integers_are_exact(void **state)
{
    (void)state;
    exact((int64_t[]){2, 8, 9, 11}, (int64_t[]){16, 8, 1, 1}, &plain, 3, 0, 9, 11);
    exact((int64_t[]){1, 3, 10, 8}, (int64_t[]){5, 3, 3, 3}, &plain, 3, 0, 8, 6);
}

static void test_15_layouts_agree(void **state)
{
    (void)state;
    conv_case a, b;
    rng r = {.seed = seed};
    setup(&a, OP_conv2d, INK_BF16, INK_NCHW, (int64_t[]){1, 3, 7, 7}, (int64_t[]){5, 3, 3, 3}, &plain, 0, 0);
    setup(&b, OP_conv2d, INK_BF16, INK_NHWC, (int64_t[]){1, 3, 7, 7}, (int64_t[]){5, 3, 3, 3}, &plain, 0, 0);
    for (int64_t i = 0; i < 5 * 27; i++)
        ((bf16 *)a.w.data)[i] = ((bf16 *)b.w.data)[i] = f32_to_bf16(rng_normal(&r));
    for (int64_t c = 0; c < 3; c++)
        for (int64_t h = 0; h < 7; h++)
            for (int64_t w = 0; w < 7; w++)
                ((bf16 *)a.x.data)[at(&a.x, 0, c, h, w)] = ((bf16 *)b.x.data)[at(&b.x, 0, c, h, w)] =
                    f32_to_bf16(rng_normal(&r));
    const kernel_list *list = registry_list_of(INK_CPU, OP_conv2d);
    for (int i = 0; i < list->count; i++) {
        if (!serves(&list->rows[i], &a.call) || !serves(&list->rows[i], &b.call))
            continue;
        run(&a, &list->rows[i]);
        run(&b, &list->rows[i]);
        for (int64_t m = 0; m < 5; m++)
            for (int64_t h = 0; h < 5; h++)
                for (int64_t w = 0; w < 5; w++) { /* sums of 27 in two orders, then one rounding each */
                    double p = load_f64(a.y.data, INK_BF16, at(&a.y, 0, m, h, w)),
                           q = load_f64(b.y.data, INK_BF16, at(&b.y, 0, m, h, w));
                    assert_true(fabs(p - q) <= 0x1p-7 * fabs(p) + 1e-4);
                }
    }
    teardown(&a);
    teardown(&b);
    /* NHWC data under the NCHW name: 7 channels against the filter's 3, never guessed */
    ink_tensor x, w, y;
    assert_int_equal(ink_tensor_init(&x, INK_BF16, 4, (int64_t[]){1, 7, 7, 3}, NULL), INK_OK);
    assert_int_equal(ink_tensor_init(&w, INK_BF16, 4, (int64_t[]){5, 3, 3, 3}, NULL), INK_OK);
    x.layout = INK_NCHW;
    op_call c = {.op = OP_conv2d, .attrs.conv2d = plain, .in = {&x, &w}, .out = {&y}};
    assert_int_equal(op_infer(&c), INK_INVALID_ARGUMENT);
    assert_string_equal(ink_last_error(),
                        "conv2d: the input has 7 channels, the filter expects 3 x 1 groups (data_format nchw)");
    x.layout = INK_LAYOUT_ANY;
    assert_int_equal(op_infer(&c), INK_INVALID_ARGUMENT);
    assert_string_equal(ink_last_error(), "conv2d: input layout is any, expected nchw or nhwc");
}

static void test_28_unequal_dilations(void **state)
{
    (void)state;
    conv2d_attrs a = plain;
    a.paddings[2] = a.paddings[3] = 9;
    a.dilations[1] = 3;
    exact((int64_t[]){1, 32, 1, 3006}, (int64_t[]){32, 32, 1, 7}, &a, 1, 4000, 1, 3006);
}

static void test_29_large_filters(void **state)
{
    (void)state;
    conv2d_attrs a = plain;
    a.strides[0] = 2;
    exact((int64_t[]){1, 32, 170, 96}, (int64_t[]){32, 32, 21, 11}, &a, 1, 300, 75, 86);
    exact((int64_t[]){2, 5, 23, 17}, (int64_t[]){7, 5, 23, 17}, &plain, 1, 0, 1, 1); /* as large as the input */
    a = plain;
    a.paddings[0] = 3, a.paddings[1] = 2, a.paddings[2] = a.paddings[3] = 2;
    exact((int64_t[]){1, 4, 2, 3}, (int64_t[]){9, 4, 6, 5}, &a, 2, 0, 2, 3); /* larger than the input */
}

static void test_30_groups(void **state)
{
    (void)state;
    for (int64_t g = 1; g <= 64; g *= 2) {
        conv2d_attrs a = plain;
        a.groups = g;
        a.paddings[0] = a.paddings[1] = a.paddings[2] = a.paddings[3] = 1;
        exact((int64_t[]){2, 64, 14, 14}, (int64_t[]){64, 64 / g, 3, 3}, &a, 1, 500, 14, 14);
    }
    conv2d_attrs a = plain;
    a.groups = 6;
    exact((int64_t[]){1, 6, 5, 5}, (int64_t[]){12, 1, 3, 3}, &a, 2, 0, 3, 3); /* depthwise with two outputs per channel */
}

/* 46342 x 46342 cells pass 2^31 elements. All is zero but a few cells near the end, so that only touched pages exist: x and
 * y are mapped, and the filter picks single cells. */
static void test_31_more_than_2_31_elements(void **state)
{
    (void)state;
    const char *memory = getenv("INK_TEST_LARGE");
    if (!memory)
        skip(); /* writes 4.3 GB of outputs */
    const int64_t side = 46342;
    pages x_pages, y_pages;
    conv_case k = {.call = {.op = OP_conv2d, .attrs.conv2d = plain, .threads = 2}};
    assert_int_equal(ink_tensor_init(&k.x, INK_BF16, 4, (int64_t[]){1, 1, side, side}, NULL), INK_OK);
    k.x.layout = INK_NCHW;
    assert_int_equal(pages_map(&x_pages, ink_tensor_bytes(&k.x)), INK_OK);
    k.x.data = x_pages.data;
    tensor(&k.w, INK_BF16, INK_LAYOUT_ANY, (int64_t[]){1, 1, 3, 3});
    for (int i = 0; i < 9; i++)
        ((bf16 *)k.w.data)[i] = f32_to_bf16((float)(i + 1));
    ((bf16 *)k.x.data)[side * side - 1] = f32_to_bf16(1);
    k.call.attrs.conv2d.paddings[0] = k.call.attrs.conv2d.paddings[1] = 1;
    k.call.attrs.conv2d.paddings[2] = k.call.attrs.conv2d.paddings[3] = 1;
    k.call.in[0] = &k.x, k.call.in[1] = &k.w, k.call.out[0] = &k.y;
    assert_int_equal(op_infer(&k.call), INK_OK);
    assert_int_equal(pages_map(&y_pages, ink_tensor_bytes(&k.y)), INK_OK);
    k.y.data = y_pages.data;
    run(&k, registry_find(&cpu, &k.call, NULL));
    assert_true(load_f32(k.y.data, INK_BF16, side * side - 1) == 5);
    assert_true(load_f32(k.y.data, INK_BF16, side * side - 2) == 6);
    assert_true(load_f32(k.y.data, INK_BF16, side * (side - 1) - 1) == 8);
    assert_true(load_f32(k.y.data, INK_BF16, side * (side - 1) - 2) == 9);
    assert_true(load_f32(k.y.data, INK_BF16, side * (side - 1) - 3) == 0);
    free(k.w.data);
    pages_unmap(&x_pages);
    pages_unmap(&y_pages);
}

static ink_status infer_shape(const int64_t x[4], const int64_t w[4], const conv2d_attrs *a, ink_tensor *y)
{
    ink_tensor tx = {.dtype = INK_BF16, .rank = 4, .layout = INK_NCHW}, tw = {.dtype = INK_BF16, .rank = 4};
    memcpy(tx.dims, x, 4 * sizeof *x);
    memcpy(tw.dims, w, 4 * sizeof *w);
    tx.strides[3] = tw.strides[3] = 1;
    for (int i = 2; i >= 0; i--) {
        tx.strides[i] = (int64_t)((uint64_t)tx.strides[i + 1] * (uint64_t)(x[i + 1] > 1 ? x[i + 1] : 1));
        tw.strides[i] = (int64_t)((uint64_t)tw.strides[i + 1] * (uint64_t)(w[i + 1] > 1 ? w[i + 1] : 1));
    }
    op_call c = {.op = OP_conv2d, .attrs.conv2d = *a, .in = {&tx, &tw}, .out = {y}};
    return op_infer(&c);
}

static void test_33_dimension_products(void **state)
{
    (void)state;
    ink_tensor y = {0};
    assert_int_equal(infer_shape((int64_t[]){46341, 1, 46341, 1}, (int64_t[]){1, 1, 1, 1}, &plain, &y), INK_OK);
    assert_int_equal(ink_tensor_numel(&y), INT64_C(2147488281));
    assert_int_equal(infer_shape((int64_t[]){1 << 30, 1, 1 << 30, 1 << 10}, (int64_t[]){1, 1, 1, 1}, &plain, &y),
                     INK_INVALID_ARGUMENT);
    assert_string_equal(ink_last_error(), "conv2d: tensor: the product of its dimensions does not fit 63 bits");
    assert_int_equal(infer_shape((int64_t[]){1, 1, INT64_C(1) << 40, 1}, (int64_t[]){1, 1, 1, 1}, &plain, &y),
                     INK_INVALID_ARGUMENT);
    assert_string_equal(ink_last_error(), "conv2d: height of 1099511627776 is over the limit of 2147483647");
    assert_int_equal(infer_shape((int64_t[]){1, 4, 8, 8}, (int64_t[]){1, INT64_MAX / 2, 1, 1},
                                 &(conv2d_attrs){{1, 1}, {0}, {1, 1}, 4, 0, 0}, &y),
                     INK_INVALID_ARGUMENT);
}

static void refused(const conv2d_attrs *a, const char *message)
{
    ink_tensor y;
    assert_int_equal(infer_shape((int64_t[]){1, 4, 8, 8}, (int64_t[]){4, 4, 3, 3}, a, &y), INK_INVALID_ARGUMENT);
    assert_string_equal(ink_last_error(), message);
}

static void test_34_attributes_are_checked(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        bool range; /* fails the range check, else "does not fit" or channels */
        const char *text;
    } values[] = {
        {0, true, "0"}, {-1, true, "-1"}, {INT64_MAX, true, "9223372036854775807"}, {INT32_MAX, false, "2147483647"}};
    for (int i = 0; i < 4; i++)
        for (int axis = 0; axis < 2; axis++) {
            char want[160];
            const char *side = axis ? "width" : "height";
            conv2d_attrs a = plain;
            a.strides[axis] = values[i].value;
            snprintf(want, sizeof want, "conv2d: stride of %s is %s, expected 1 to 2147483647", side, values[i].text);
            ink_tensor y;
            if (values[i].range)
                refused(&a, want);
            else {
                assert_int_equal(infer_shape((int64_t[]){1, 4, 8, 8}, (int64_t[]){4, 4, 3, 3}, &a, &y), INK_OK);
                assert_int_equal(y.dims[2 + axis], 1);
            }
            a = plain;
            a.dilations[axis] = values[i].value;
            if (values[i].range)
                snprintf(want, sizeof want, "conv2d: dilation of %s is %s, expected 1 to 2147483647", side, values[i].text);
            else
                snprintf(want, sizeof want, "conv2d: a filter extent of 4294967295 does not fit the padded %s of 8", side);
            refused(&a, want);
            a = plain;
            a.paddings[2 * axis + 1] = values[i].range && !values[i].value ? -3 : values[i].value;
            if (values[i].range) {
                snprintf(want, sizeof want, "conv2d: padding of %s is 0,%s, expected 0 to 2147483647", side,
                         values[i].value ? values[i].text : "-3");
                refused(&a, want);
            }
        }
    conv2d_attrs a = plain;
    a.groups = 0;
    refused(&a, "conv2d: groups is 0, expected at least 1");
    a.groups = -1;
    refused(&a, "conv2d: groups is -1, expected at least 1");
    a.groups = INT64_MAX;
    refused(&a, "conv2d: groups is 9223372036854775807, expected at least 1");
    a.groups = INT32_MAX;
    refused(&a, "conv2d: the input has 4 channels, the filter expects 4 x 2147483647 groups (data_format nchw)");
    a = plain;
    a.act = ACT_RELU;
    refused(&a, "conv2d: activation relu is not accepted");
}

static void test_38_asymmetric_pads(void **state)
{
    (void)state;
    conv2d_attrs a = plain;
    memcpy(a.paddings, (int64_t[]){0, 1, 2, 0}, sizeof a.paddings);
    exact((int64_t[]){1, 3, 5, 5}, (int64_t[]){4, 3, 3, 3}, &a, 3, 0, 4, 5);
    memcpy(a.paddings, (int64_t[]){1, 0, 0, 2}, sizeof a.paddings);
    exact((int64_t[]){1, 3, 5, 5}, (int64_t[]){4, 3, 3, 3}, &a, 3, 0, 4, 5);
    a = plain;
    a.algorithm = PAD_SAME;
    a.strides[0] = a.strides[1] = 2;
    exact((int64_t[]){1, 3, 8, 6}, (int64_t[]){4, 3, 3, 3}, &a, 3, 0, 4, 3);
    /* where the odd cell goes: ones under ones count the taps inside; 8 wide, stride 2, window 3: total 1, all at the end
     */
    conv_case k;
    setup(&k, OP_conv2d, INK_BF16, INK_NCHW, (int64_t[]){1, 1, 8, 8}, (int64_t[]){1, 1, 3, 3}, &a, 1, 1);
    const kernel_list *list = registry_list_of(INK_CPU, OP_conv2d);
    for (int i = 0; i < list->count; i++)
        if (serves(&list->rows[i], &k.call)) {
            run(&k, &list->rows[i]);
            assert_true(load_f32(k.y.data, INK_BF16, 0) == 9);
            assert_true(load_f32(k.y.data, INK_BF16, 3) == 6);
            assert_true(load_f32(k.y.data, INK_BF16, 15) == 4);
        }
    teardown(&k);
}

static void test_42_empty_filters_are_refused(void **state)
{
    (void)state;
    ink_tensor y;
    assert_int_equal(
        infer_shape((int64_t[]){1, 8, 8, 8}, (int64_t[]){8, 1, 3, 0}, &(conv2d_attrs){{1, 1}, {0}, {1, 1}, 8, 0, 0}, &y),
        INK_INVALID_ARGUMENT);
    assert_string_equal(ink_last_error(), "conv2d: the filter's width is 0");
    assert_int_equal(infer_shape((int64_t[]){1, 8, 1, 8}, (int64_t[]){8, 8, 0, 1}, &plain, &y), INK_INVALID_ARGUMENT);
    assert_string_equal(ink_last_error(), "conv2d: the filter's height is 0");
    assert_int_equal(infer_shape((int64_t[]){1, 8, 8, 8}, (int64_t[]){0, 8, 3, 3}, &plain, &y), INK_INVALID_ARGUMENT);
    assert_string_equal(ink_last_error(), "conv2d: 0 output channels cannot be shared by 1 groups");
}

static void test_43_no_images(void **state)
{
    (void)state;
    conv2d_attrs a = plain;
    a.paddings[0] = a.paddings[1] = a.paddings[2] = a.paddings[3] = 1;
    exact((int64_t[]){0, 3, 8, 8}, (int64_t[]){4, 3, 3, 3}, &a, 3, 0, 8, 8);
    exact((int64_t[]){1, 3, 0, 4}, (int64_t[]){4, 3, 2, 3}, &a, 3, 0, 1, 4); /* only padding: all zeros */
}

/* pytorch/pytorch#163347: 2 x 2 ones under 2 x 2 ones gave 1. */
static void test_163347_ones(void **state)
{
    (void)state;
    for (int l = 0; l < 2; l++)
        for (int t = 0; t < 3; t++) {
            conv_case k;
            setup(&k, OP_conv2d, dtypes[t], layouts[l], (int64_t[]){1, 1, 2, 2}, (int64_t[]){1, 1, 2, 2}, &plain, 1, 1);
            const kernel_list *list = registry_list_of(INK_CPU, OP_conv2d);
            for (int i = 0; i < list->count; i++)
                if (serves(&list->rows[i], &k.call)) {
                    run(&k, &list->rows[i]);
                    assert_true(load_f32(k.y.data, dtypes[t], 0) == 4);
                }
            teardown(&k);
        }
}

/* A weight of infinity over the border meets no zero; inside it does its work. */
static void test_infinite_weight_over_the_border(void **state)
{
    (void)state;
    conv2d_attrs a = plain;
    a.paddings[0] = a.paddings[1] = a.paddings[2] = a.paddings[3] = 1;
    for (int l = 0; l < 2; l++) {
        conv_case k;
        setup(&k, OP_conv2d, INK_BF16, layouts[l], (int64_t[]){1, 1, 4, 4}, (int64_t[]){2, 1, 3, 3}, &a, 1, 1);
        store_f64(k.w.data, INK_BF16, 0, INFINITY); /* top left tap of channel 0 */
        const kernel_list *list = registry_list_of(INK_CPU, OP_conv2d);
        for (int i = 0; i < list->count; i++)
            if (serves(&list->rows[i], &k.call)) {
                run(&k, &list->rows[i]);
                assert_true(load_f32(k.y.data, INK_BF16, at(&k.y, 0, 0, 0, 0)) == 4); /* the tap lies outside */
                assert_true(load_f32(k.y.data, INK_BF16, at(&k.y, 0, 0, 0, 3)) == 4);
                assert_true(load_f32(k.y.data, INK_BF16, at(&k.y, 0, 0, 2, 0)) == 6);
                assert_true(isinf(load_f32(k.y.data, INK_BF16, at(&k.y, 0, 0, 1, 1))));
                assert_true(load_f32(k.y.data, INK_BF16, at(&k.y, 0, 1, 1, 1)) == 9);
            }
        teardown(&k);
    }
}

/* An image's outputs do not depend on the images beside it: the patch embedding of 100 patches against each alone. */
static void test_images_are_independent(void **state)
{
    (void)state;
    enum { IMAGES = 100, M = 70 };
    conv_case many, one;
    rng r = {.seed = seed};
    conv2d_attrs a = plain;
    a.strides[0] = a.strides[1] = 14;
    setup(&many, OP_conv2d, INK_BF16, INK_NCHW, (int64_t[]){IMAGES, 3, 14, 14}, (int64_t[]){M, 3, 14, 14}, &a, 0, 0);
    setup(&one, OP_conv2d, INK_BF16, INK_NCHW, (int64_t[]){1, 3, 14, 14}, (int64_t[]){M, 3, 14, 14}, &a, 0, 0);
    for (int64_t i = 0; i < ink_tensor_numel(&many.x); i++)
        ((bf16 *)many.x.data)[i] = f32_to_bf16(rng_normal(&r));
    for (int64_t i = 0; i < ink_tensor_numel(&many.w); i++)
        ((bf16 *)one.w.data)[i] = ((bf16 *)many.w.data)[i] = f32_to_bf16(rng_normal(&r));
    const kernel_list *list = registry_list_of(INK_CPU, OP_conv2d);
    for (int i = 0; i < list->count; i++) {
        if (!serves(&list->rows[i], &many.call))
            continue;
        assert_true(serves(&list->rows[i], &one.call));
        run(&many, &list->rows[i]);
        for (int n = 0; n < IMAGES; n += list->rows[i].isa ? 1 : 33) {
            memcpy(one.x.data, (bf16 *)many.x.data + n * 588, 588 * sizeof(bf16));
            run(&one, &list->rows[i]);
            assert_memory_equal(one.y.data, (bf16 *)many.y.data + n * M, M * sizeof(bf16));
        }
    }
    teardown(&many);
    teardown(&one);
}

static void test_fused_messages(void **state)
{
    (void)state;
    conv_case k;
    setup(&k, OP_fused_conv2d_add_act, INK_BF16, INK_NCHW, (int64_t[]){1, 2, 4, 4}, (int64_t[]){3, 2, 3, 3}, &plain, 1, 1);
    ink_tensor bias, residual;
    assert_int_equal(ink_tensor_init(&bias, INK_BF16, 1, (int64_t[]){2}, NULL), INK_OK);
    k.call.in[2] = &bias;
    assert_int_equal(op_infer(&k.call), INK_INVALID_ARGUMENT);
    assert_string_equal(ink_last_error(), "fused_conv2d_add_act: bias has shape [2], expected [3]");
    k.call.in[2] = NULL;
    assert_int_equal(ink_tensor_init(&residual, INK_BF16, 4, (int64_t[]){1, 3, 4, 4}, NULL), INK_OK);
    k.call.in[3] = &residual;
    assert_int_equal(op_infer(&k.call), INK_INVALID_ARGUMENT);
    assert_string_equal(ink_last_error(), "fused_conv2d_add_act: residual has shape [1,3,4,4], expected [1,3,2,2]");
    teardown(&k);
}

static int open_cpu(void **state)
{
    (void)state;
    seed = (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)seed);
    return device_open_cpu(&cpu, 2, NULL) == INK_OK ? 0 : -1;
}

static int close_cpu(void **state)
{
    (void)state;
    device_close(&cpu);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_11_integers_are_exact),
        cmocka_unit_test(test_15_layouts_agree),
        cmocka_unit_test(test_28_unequal_dilations),
        cmocka_unit_test(test_29_large_filters),
        cmocka_unit_test(test_30_groups),
        cmocka_unit_test(test_31_more_than_2_31_elements),
        cmocka_unit_test(test_33_dimension_products),
        cmocka_unit_test(test_34_attributes_are_checked),
        cmocka_unit_test(test_38_asymmetric_pads),
        cmocka_unit_test(test_42_empty_filters_are_refused),
        cmocka_unit_test(test_43_no_images),
        cmocka_unit_test(test_163347_ones),
        cmocka_unit_test(test_infinite_weight_over_the_border),
        cmocka_unit_test(test_images_are_independent),
        cmocka_unit_test(test_fused_messages),
    };
    return cmocka_run_group_tests(tests, open_cpu, close_cpu);
}
