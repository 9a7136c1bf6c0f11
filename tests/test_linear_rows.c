/* test_linear_rows.c - a row of linear or linear_gated has the same bits whatever rows are beside it and however many
 * threads run: for every registry row, at sizes of the model and at awkward ones. Exact sums of small integers come out
 * exactly. */
#include "core/dtype.h"
#include "core/memory.h"
#include "core/rng.h"
#include "registry/registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { MOST = 300 }; /* input rows */

typedef struct operands {
    ink_tensor x, w, up, bias, residual;
    void *memory[5];
} operands;

static void *fill(ink_tensor *t, ink_dtype dtype, int rank, const int64_t *dims, rng *r, bool integers, double scale)
{
    assert_int_equal(ink_tensor_init(t, dtype, rank, dims, NULL), INK_OK);
    void *p = alloc_aligned(ink_tensor_bytes(t) + 1);
    assert_non_null(p);
    for (int64_t i = 0, n = ink_tensor_numel(t); i < n; i++)
        store_f32(p, dtype, i, integers ? (float)rng_range(r, -2, 2) : rng_normal(r) * (float)scale);
    return t->data = p;
}

static void make(operands *o, ink_dtype dtype, int64_t n, int64_t k, rng *r, bool integers)
{
    o->memory[0] = fill(&o->x, dtype, 2, (int64_t[]){MOST, k}, r, integers, 1);
    o->memory[1] = fill(&o->w, dtype, 2, (int64_t[]){n, k}, r, integers, 0.03);
    o->memory[2] = fill(&o->up, dtype, 2, (int64_t[]){n, k}, r, integers, 0.03);
    o->memory[3] = fill(&o->bias, dtype, 1, (int64_t[]){n}, r, integers, 1);
    o->memory[4] = fill(&o->residual, dtype, 2, (int64_t[]){MOST, n}, r, integers, 1);
}

static void release(operands *o)
{
    for (int i = 0; i < 5; i++)
        free(o->memory[i]);
}

/* Runs the kernel on input rows first .. first+m; the caller frees the result, FP32 or the input's dtype. */
static unsigned char *run_rows(const kernel *kn, const operands *o, int64_t first, int64_t m, const linear_attrs *attrs,
                               int threads)
{
    ink_tensor x = o->x, residual = o->residual, y;
    const size_t element = x.dtype == INK_F32 ? 4 : 2;
    const bool gated = kn->op == OP_linear_gated;
    x.dims[0] = residual.dims[0] = m;
    x.data = (char *)x.data + (size_t)(first * x.dims[1]) * element;
    residual.data = (char *)residual.data + (size_t)(first * residual.dims[1]) * element;
    op_call c = {.op = kn->op,
                 .in = {&x, &o->w, gated ? &o->up : &o->bias, gated ? NULL : &residual},
                 .out = {&y},
                 .attrs.linear = *attrs,
                 .threads = threads};
    assert_int_equal(op_infer(&c), INK_OK);
    c.workspace_bytes = kn->workspace ? kn->workspace(&c) : 0;
    c.workspace = alloc_aligned(c.workspace_bytes + 1);
    y.data = alloc_aligned(ink_tensor_bytes(&y) + 1);
    assert_true(c.workspace && y.data);
    assert_int_equal(kn->run(&c), INK_OK);
    free(c.workspace);
    return y.data;
}

static void check_row_bits(const kernel *kn, const operands *o, rng *r)
{
    linear_attrs attrs = {.act = kn->op == OP_linear_gated ? ACT_SILU : ACT_GELU_TANH};
    op_call probe = {.op = kn->op, .in = {&o->x, &o->w}, .attrs.linear = attrs};
    attrs.few_rows = probe.attrs.linear.few_rows = kn->decline && kn->decline(&probe);
    const size_t row = (size_t)o->w.dims[0] * (o->x.dtype == INK_F32 ? 4 : 2);
    unsigned char *all = run_rows(kn, o, 0, MOST, &attrs, 1);
    const int64_t counts[] = {1, 2, 3, 5, 17, 33, 64, 65, 200};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const int64_t m = counts[i], first = rng_range(r, 0, MOST - m);
        unsigned char *some = run_rows(kn, o, first, m, &attrs, 1 + (int)(i % 4));
        if (memcmp(some, all + (size_t)first * row, row * (size_t)m))
            fail_msg("%s n%lld k%lld: rows %lld..%lld of %d differ when computed alone", kn->name, (long long)o->w.dims[0],
                     (long long)o->w.dims[1], (long long)first, (long long)(first + m), MOST);
        free(some);
    }
    for (int threads = 2; threads <= 7; threads += 5) {
        unsigned char *shared = run_rows(kn, o, 0, MOST, &attrs, threads);
        if (memcmp(shared, all, row * MOST))
            fail_msg("%s n%lld k%lld: %d threads change the result", kn->name, (long long)o->w.dims[0],
                     (long long)o->w.dims[1], threads);
        free(shared);
    }
    free(all);
}

/* Sums up to 2^11 are exact in every dtype here; residual and bias included. */
static void check_integers(const kernel *kn, const operands *o)
{
    linear_attrs attrs = {.out_f32 = true, .act = kn->op == OP_linear_gated ? ACT_SILU : ACT_NONE};
    op_call probe = {.op = kn->op, .in = {&o->x, &o->w}, .attrs.linear = attrs};
    attrs.few_rows = kn->decline && kn->decline(&probe);
    if (kn->op == OP_linear_gated)
        return;
    const int64_t n = o->w.dims[0], k = o->w.dims[1];
    unsigned char *y = run_rows(kn, o, 0, MOST, &attrs, 2);
    for (int64_t i = 0; i < MOST; i += 7)
        for (int64_t j = 0; j < n; j++) {
            int64_t sum =
                (int64_t)load_f32(o->bias.data, o->x.dtype, j) + (int64_t)load_f32(o->residual.data, o->x.dtype, i * n + j);
            for (int64_t p = 0; p < k; p++)
                sum += (int64_t)load_f32(o->x.data, o->x.dtype, i * k + p) *
                       (int64_t)load_f32(o->w.data, o->x.dtype, j * k + p);
            assert_true(load_f32(y, INK_F32, i * n + j) == (float)sum);
        }
    free(y);
}

static void each_row(const int64_t shapes[][2], int n_shapes, bool integers, bool portable)
{
    rng r = {.seed = (uint64_t)time(NULL)};
    device d;
    print_message("seed %llu\n", (unsigned long long)r.seed);
    assert_int_equal(device_open_cpu(&d, 2, NULL), INK_OK);
    const op_id ops[] = {OP_linear, OP_linear_gated};
    for (int q = 0; q < 2; q++) {
        const kernel_list *l = registry_list_of(INK_CPU, ops[q]);
        for (int i = 0; i < l->count; i++) {
            const kernel *kn = &l->rows[i];
            if (kn->isa > d.isa || (kn->isa == ISA_PORTABLE && !portable))
                continue;
            for (int s = 0; s < n_shapes; s++) {
                operands o;
                make(&o, kn->dtype, shapes[s][0], shapes[s][1], &r, integers);
                if (integers)
                    check_integers(kn, &o);
                else
                    check_row_bits(kn, &o, &r);
                release(&o);
            }
        }
    }
    device_close(&d);
}

static void test_rows_at_awkward_sizes(void **state)
{
    (void)state;
    each_row((const int64_t[][2]){{1, 1}, {37, 72}, {97, 589}}, 3, false, true);
}

static void test_rows_at_model_sizes(void **state)
{
    (void)state;
    each_row((const int64_t[][2]){{256, 1024}, {1152, 1152}, {129, 4304}}, 3, false, false);
}

static void test_small_integers_are_exact(void **state)
{
    (void)state;
    each_row((const int64_t[][2]){{35, 33}, {70, 300}}, 2, true, true);
}

/* A weight so large that it is packed in several parts, whose task grids differ: which thread takes which task is a matter
 * of timing, so this runs several times. */
static void test_parts_of_a_large_weight(void **state)
{
    (void)state;
    const int64_t m = 286, n = 4304, k = 1152;
    rng r = {.seed = (uint64_t)time(NULL)};
    linear_attrs attrs = {0};
    device d;
    operands o;
    print_message("seed %llu\n", (unsigned long long)r.seed);
    assert_int_equal(device_open_cpu(&d, 2, NULL), INK_OK);
    make(&o, INK_BF16, n, k, &r, false);
    const op_call probe = {.op = OP_linear, .in = {&o.x, &o.w}, .attrs.linear = attrs};
    const kernel_list *l = registry_list_of(INK_CPU, OP_linear);
    for (int i = 0; i < l->count; i++) {
        const kernel *kn = &l->rows[i];
        if (kn->dtype != INK_BF16 || kn->isa > d.isa || kn->isa == ISA_PORTABLE || (kn->decline && kn->decline(&probe)))
            continue;
        unsigned char *alone = run_rows(kn, &o, 0, m, &attrs, 1);
        for (int repeat = 0; repeat < 8; repeat++) {
            unsigned char *shared = run_rows(kn, &o, 0, m, &attrs, 3 + repeat % 2);
            if (memcmp(alone, shared, (size_t)(m * n) * 2))
                fail_msg("%s m%lld n%lld k%lld: threads change the result", kn->name, (long long)m, (long long)n,
                         (long long)k);
            free(shared);
        }
        free(alone);
    }
    release(&o);
    device_close(&d);
}

/* Scratch that is planned for upper bounds must do for every smaller size. */
static void test_workspace_never_shrinks(void **state)
{
    (void)state;
    const int64_t sizes[] = {0,   1,   5,   6,    7,    14,   31,   32,   33,   100,  288,
                             511, 512, 513, 1000, 1152, 3072, 4304, 4608, 5000, 50000};
    const int n = sizeof sizes / sizeof *sizes;
    const op_id ops[] = {OP_linear, OP_linear_gated};
    for (int q = 0; q < 2; q++)
        for (int i = 0; i < registry_list_of(INK_CPU, ops[q])->count; i++) {
            const kernel *kn = &registry_list_of(INK_CPU, ops[q])->rows[i];
            for (int dim = 0; dim < 3; dim++)
                for (int a = 0; kn->workspace && a < n * n; a++) {
                    size_t last = 0;
                    for (int b = 0; b < n; b++) {
                        int64_t s[3] = {sizes[a % n], sizes[a / n], sizes[(a + 7) % n]};
                        s[dim] = sizes[b];
                        ink_tensor x = {.dtype = kn->dtype, .rank = 2, .dims = {s[0], s[2]}},
                                   w = {.dtype = kn->dtype, .rank = 2, .dims = {s[1], s[2]}};
                        op_call c = {.op = kn->op, .in = {&x, &w}, .threads = 2};
                        size_t bytes = kn->workspace(&c);
                        if (bytes < last)
                            fail_msg("%s: %zu bytes after %zu, m%lld n%lld k%lld", kn->name, bytes, last, (long long)s[0],
                                     (long long)s[1], (long long)s[2]);
                        last = bytes;
                    }
                }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_of_a_large_weight), cmocka_unit_test(test_rows_at_awkward_sizes),
        cmocka_unit_test(test_rows_at_model_sizes),     cmocka_unit_test(test_small_integers_are_exact),
        cmocka_unit_test(test_workspace_never_shrinks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
