/* test_conformance.c - the ci tier of the suite: every registry row against FP64; INK_CONF_CASES sets the number per row. */
#include "conformance/conformance.h"

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
    conf_options o = {.seed = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL), .cases = cases ? atoi(cases) : 100,
                      .size = size ? atoi(size) : 0};
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_row), cmocka_unit_test(test_descriptor_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
