/* test_conformance.c - the ci tier of the suite: every registry row against FP64 (INK_CONF_CASES sets the number per row);
 * and the suite itself: wrong kernels of each kind must fail it. */
#include "conformance/conformance.h"
#include "core/dtype.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void test_every_row(void **state)
{
    (void)state;
    device d;
    const char *cases = getenv("INK_CONF_CASES"), *size = getenv("INK_CONF_SIZE"), *seed = getenv("INK_CONF_SEED");
    conf_options o = {.seed = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL)};
    assert_int_equal(conf_tier("ci", &o), INK_OK);
    o.cases = cases ? atoi(cases) : o.cases;
    o.size = size ? atoi(size) : o.size;
    conf_report r = {0};
    strbuf table = {0};
    assert_int_equal(device_open_cpu(&d, 2, NULL), INK_OK);
    assert_int_equal(conf_run(&d, &o, &r), INK_OK);
    conf_report_table(&d, &o, &r, &table);
    fputs(strbuf_text(&table), stdout); /* print_message would cut it */
    assert_int_equal(r.failed, 0);
    strbuf_free(&table);
    conf_report_free(&r);
    device_close(&d);
}

static void test_descriptor_errors(void **state)
{
    (void)state;
    device d;
    conf_report r = {0};
    assert_int_equal(device_open_cpu(&d, 1, NULL), INK_OK);
    assert_int_equal(conf_run_case(&d, "nonsense", &r), INK_INVALID_ARGUMENT);
    assert_int_equal(conf_run_case(&d, "linear bf16 any m1", &r), INK_INVALID_ARGUMENT);
    assert_int_equal(conf_run_case(&d, "linear bf16 any seed=12", &r), INK_OK);
    assert_int_equal(r.failed, 0);
    assert_true(r.count > 0);
    conf_report_free(&r);
    device_close(&d);
}
/* ---- wrong kernels: BF16 add, right but for one thing ---- */

typedef enum fault {
    NO_FAULT,
    TRUNCATES,
    TRUNCATES_WITHIN_BOUND,
    WRITES_BEHIND,
    WRITES_BEFORE,
    CHANGES_INPUT,
    DEPENDS_ON_THREADS,
    LEAVES_ONE_OUT,
    OVERRUNS_WORKSPACE,
    FAILS_TO_RUN,
} fault;

static bf16 rounded(float v, fault f)
{
    const bf16 nearest = f32_to_bf16(v), truncated = (bf16)(f32_bits(v) >> 16);
    if (f == TRUNCATES && !isnan(v))
        return truncated;
    if (f == TRUNCATES_WITHIN_BOUND && isfinite(v) &&
        fabs((double)v - bf16_to_f32(truncated)) <= 0.999 * conf_store_error(INK_BF16, v))
        return truncated;
    return nearest;
}

static ink_status add_with(const op_call *c, fault f)
{
    const int64_t n = ink_tensor_numel(c->in[0]);
    const bf16 *x = c->in[0]->data, *y = c->in[1]->data;
    bf16 *z = c->out[0]->data;
    for (int64_t i = 0; i < n - (f == LEAVES_ONE_OUT); i++)
        z[i] = rounded(bf16_to_f32(x[i]) + bf16_to_f32(y[i]), f);
    if (f == WRITES_BEHIND)
        z[n + 3] = 0;
    if (f == WRITES_BEFORE)
        z[-1] = 0;
    if (f == CHANGES_INPUT && n)
        ((bf16 *)c->in[1]->data)[n / 2] ^= 1;
    if (f == DEPENDS_ON_THREADS && c->threads > 1)
        for (int64_t i = 0; i < n; i++)
            z[i] = rounded(bf16_to_f32(x[i]) + bf16_to_f32(y[i]), TRUNCATES_WITHIN_BOUND);
    if (f == OVERRUNS_WORKSPACE)
        ((char *)c->workspace)[c->workspace_bytes] = 1;
    return f == FAILS_TO_RUN ? failure(INK_UNAVAILABLE, "add: not today") : INK_OK;
}

#define FAULTY(name, fault) \
    static ink_status name(const op_call *c) { return add_with(c, fault); }
FAULTY(add_right, NO_FAULT)
FAULTY(add_truncating, TRUNCATES)
FAULTY(add_biased, TRUNCATES_WITHIN_BOUND)
FAULTY(add_writing_behind, WRITES_BEHIND)
FAULTY(add_writing_before, WRITES_BEFORE)
FAULTY(add_changing_input, CHANGES_INPUT)
FAULTY(add_by_threads, DEPENDS_ON_THREADS)
FAULTY(add_leaving_one_out, LEAVES_ONE_OUT)
FAULTY(add_overrunning, OVERRUNS_WORKSPACE)
FAULTY(add_failing, FAILS_TO_RUN)

static size_t small_workspace(const op_call *c)
{
    (void)c;
    return 33;
}

static const char *never(const op_call *c)
{
    (void)c;
    return "declines everything";
}

static void test_wrong_kernels_fail(void **state)
{
    (void)state;
    static const struct {
        kernel row;
        const char *message; /* NULL: passes */
    } cases[] = {
        {{.name = "right", .run = add_right}, NULL},
        {{.name = "truncating", .run = add_truncating}, "expected"},
        {{.name = "biased", .run = add_biased}, "bias: results are off by -"},
        {{.name = "behind", .run = add_writing_behind}, "wrote outside output 0"},
        {{.name = "before", .run = add_writing_before}, "wrote outside output 0"},
        {{.name = "input", .run = add_changing_input}, "changed input 1"},
        {{.name = "threads", .run = add_by_threads}, "one thread and 3 give different bits in output 0"},
        {{.name = "leaves", .run = add_leaving_one_out}, "nan, expected"},
        {{.name = "workspace", .run = add_overrunning, .workspace = small_workspace},
         "wrote behind its workspace of 33 bytes"},
        {{.name = "fails", .run = add_failing}, "run failed: add: not today"},
        {{.name = "declines", .run = add_right, .decline = never}, "no drawn case is accepted"},
    };
    device d;
    assert_int_equal(device_open_cpu(&d, 2, NULL), INK_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kernel k = cases[i].row;
        conf_options o = {.seed = (uint64_t)time(NULL) + i, .cases = 100};
        conf_report r = {0};
        k.op = OP_add;
        k.dtype = INK_BF16;
        assert_int_equal(conf_run_kernel(&d, &o, &k, &r), INK_OK);
        assert_int_equal(r.count, 1);
        if ((cases[i].message != NULL) != (r.failed == 1) ||
            (cases[i].message && !strstr(r.rows[0].failure, cases[i].message)))
            fail_msg("%s (seed %llu): failed %d: %s", k.name, (unsigned long long)o.seed, r.failed, r.rows[0].failure);
        conf_report_free(&r);
    }
    device_close(&d);
}

/* The descriptor that a failure prints must rebuild the failing case. */
static void test_failure_is_reproducible(void **state)
{
    (void)state;
    device d;
    const kernel k = {.name = "truncating", .op = OP_add, .dtype = INK_BF16, .run = add_truncating};
    conf_options o = {.seed = (uint64_t)time(NULL), .cases = 100};
    conf_report first = {0}, again = {0};
    assert_int_equal(device_open_cpu(&d, 1, NULL), INK_OK);
    assert_int_equal(conf_run_kernel(&d, &o, &k, &first), INK_OK);
    assert_int_equal(conf_run_case(&d, first.rows[0].failure, &again), INK_OK);
    assert_int_equal(again.failed, 0); /* the registered rows are right */
    assert_true(again.count >= 1);
    conf_report_free(&first);
    conf_report_free(&again);
    device_close(&d);
}

static void test_tiers(void **state)
{
    (void)state;
    conf_options quick = {.seed = 5}, ci = {0}, full = {0};
    assert_int_equal(conf_tier("quick", &quick), INK_OK);
    assert_int_equal(conf_tier("ci", &ci), INK_OK);
    assert_int_equal(conf_tier("full", &full), INK_OK);
    assert_true(quick.cases < ci.cases && ci.cases < full.cases && quick.seconds < full.seconds);
    assert_int_equal(quick.seed, 5);
    assert_int_equal(conf_tier("fast", &quick), INK_INVALID_ARGUMENT);
    assert_string_equal(ink_last_error(), "selftest: tier 'fast', expected quick, ci or full");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row),
        cmocka_unit_test(test_descriptor_errors),
        cmocka_unit_test(test_wrong_kernels_fail),
        cmocka_unit_test(test_failure_is_reproducible),
        cmocka_unit_test(test_tiers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
