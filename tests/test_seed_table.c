/* test_seed_table.c - the README's table of the cases that started this project, computed from the registry. A stale table
 * fails; INK_UPDATE=1 rewrites it. */
#include "conformance/conformance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BEGIN "<!-- seed table: written by tests/test_seed_table.c -->\n"
#define END "<!-- seed table: end -->\n"

static const char *const cases[][2] = {
    {"conv2d", "conv2d"},
    {"conv2d gradient", "conv2d_grad"},
    {"conv2d_transpose", "conv2d_transpose"},
    {"conv2d_transpose gradient", "conv2d_transpose_grad"},
    {"depthwise_conv2d_transpose", "depthwise_conv2d_transpose"},
    {"layer_norm", "layer_norm"},
    {"softmax over 8192", "softmax"},
    {"fused_conv2d_add_act", "fused_conv2d_add_act"},
};

/* A row of the softmax case: [4, 8192] must find a kernel. */
static bool takes_long_rows(const device *d)
{
    ink_tensor x, y = {0};
    op_call c = {.op = OP_softmax, .in = {&x}, .out = {&y}, .attrs = {.axis = {-1}}};
    assert_int_equal(ink_tensor_init(&x, INK_BF16, 2, (int64_t[]){4, 8192}, NULL), INK_OK);
    assert_int_equal(op_infer(&c), INK_OK);
    return registry_find(d, &c, NULL) != NULL;
}

/* "measured": the suite runs it there against FP64. The GPU backends will say "simulated + compiled" first. */
static const char *cell(const device *cpu, const char *name, ink_backend backend)
{
    op_id op;
    if (!op_parse(name, &op) || !registry_has(backend, op, INK_LAYOUT_ANY, INK_BF16) || !conf_op_of(op))
        return "not yet";
    if (backend != INK_CPU)
        return "simulated + compiled";
    return op != OP_softmax || takes_long_rows(cpu) ? "measured" : "not yet";
}

static void make_table(strbuf *out)
{
    device d;
    assert_int_equal(device_open_cpu(&d, 1, NULL), INK_OK);
    strbuf_puts(out, "| BF16 | CPU | AMD | NVIDIA |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        strbuf_printf(out, "| %s | %s | %s | %s |\n", cases[i][0], cell(&d, cases[i][1], INK_CPU),
                      cell(&d, cases[i][1], INK_HIP), cell(&d, cases[i][1], INK_CUDA));
    device_close(&d);
}

static void read_file(const char *path, strbuf *out)
{
    char block[4096];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        strbuf_add(out, block, n);
    fclose(f);
}

static void test_table_is_current(void **state)
{
    (void)state;
    strbuf readme = {0}, table = {0};
    const char *path = INK_SOURCE_DIR "/README.md";
    read_file(path, &readme);
    make_table(&table);
    const char *begin = strstr(strbuf_text(&readme), BEGIN), *end = strstr(strbuf_text(&readme), END);
    assert_true(begin && end && begin < end);
    begin += strlen(BEGIN);
    bool current = (size_t)(end - begin) == table.length && !memcmp(begin, strbuf_text(&table), table.length);
    if (!current && getenv("INK_UPDATE")) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fprintf(f, "%.*s%s%s", (int)(begin - strbuf_text(&readme)), strbuf_text(&readme), strbuf_text(&table), end);
        assert_int_equal(fclose(f), 0);
        current = true;
    }
    if (!current)
        print_error("README.md's table is stale; INK_UPDATE=1 ctest -R test_seed_table writes:\n%s", strbuf_text(&table));
    assert_true(current);
    strbuf_free(&readme);
    strbuf_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table_is_current)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
