/* test_core.c - conversions (vectors of operators.md 5.1), tensors, status, strings, arena. */
#include "core/dtype.h"
#include "core/memory.h"
#include "core/rng.h"
#include "core/tensor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

static void test_bf16_vectors(void **state)
{
    (void)state;
    static const struct {
        uint32_t f32;
        bf16 rne;
    } vectors[] = {
        {0x3F800000, 0x3F80}, {0x3F808000, 0x3F80}, {0x3F818000, 0x3F82}, {0x3F808001, 0x3F81}, {0x3F80FFFF, 0x3F81},
        {0x3EAAAAAB, 0x3EAB}, {0x40490FDB, 0x4049}, {0x7F7F8000, 0x7F80}, {0x7F7F7FFF, 0x7F7F}, {0x7F7FFFFF, 0x7F80},
        {0x7F800001, 0x7FC0}, {0x00008000, 0x0000}, {0x00008001, 0x0001}, {0x007FFFFF, 0x0080}, {0x80000000, 0x8000},
        {0xFFFFFFFF, 0xFFFF}, {0x00000001, 0x0000}, {0xFF800000, 0xFF80},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        assert_int_equal(f32_to_bf16(f32_from_bits(vectors[i].f32)), vectors[i].rne);
}

/* Rounding to a 16-bit type by search over its neighbours: slow and obviously right. */
static double distance16(double d, double v) { return fabs(d - v); }

static void check_narrow(double d, uint16_t got, double (*widen)(uint16_t))
{
    double v = widen(got), up = widen((uint16_t)(got + 1)), down = got & 0x7fff ? widen((uint16_t)(got - 1)) : v;
    if (isinf(v))
        return;
    assert_true(distance16(d, v) <= distance16(d, up) || isinf(up));
    assert_true(distance16(d, v) <= distance16(d, down));
    if (distance16(d, v) == distance16(d, up) || (down != v && distance16(d, v) == distance16(d, down)))
        assert_int_equal(got & 1, 0);
}

static double widen_bf16(uint16_t h) { return bf16_to_f32(h); }
static double widen_f16(uint16_t h) { return f16_to_f32(h); }

static void test_narrowing_random(void **state)
{
    (void)state;
    rng r = {.seed = (uint64_t)time(NULL)};
    print_message("seed %llu\n", (unsigned long long)r.seed);
    for (int i = 0; i < 200000; i++) {
        float f = f32_from_bits((uint32_t)rng_u64(&r));
        double d = ldexp(rng_unit(&r) - 0.5, (int)rng_range(&r, -30, 20));
        if (isnan(f)) {
            assert_true(isnan(bf16_to_f32(f32_to_bf16(f))) && isnan(f16_to_f32(f32_to_f16(f))));
            continue;
        }
        check_narrow(f, f32_to_bf16(f), widen_bf16);
        if (fabsf(f) < 65504)
            check_narrow(f, f32_to_f16(f), widen_f16);
        check_narrow(d, f64_to_bf16(d), widen_bf16);
        if (fabs(d) < 65504)
            check_narrow(d, f64_to_f16(d), widen_f16);
    }
}

static void test_all_f16_round_trip(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = f16_to_f32((f16)h);
        if (isnan(f))
            assert_int_equal(f32_to_f16(f), h | 0x200);
        else
            assert_int_equal(f32_to_f16(f), h);
        if (!isnan(bf16_to_f32((bf16)h)))
            assert_int_equal(f32_to_bf16(bf16_to_f32((bf16)h)), h);
    }
    assert_int_equal(f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(f64_to_bf16(1.0 + 0x1p-8 + 0x1p-40), 0x3f81); /* FP32 would tie to even: double rounding */
}

static void test_tensor(void **state)
{
    (void)state;
    ink_tensor t;
    assert_int_equal(ink_tensor_init(&t, INK_BF16, 3, (int64_t[]){2, 3, 4}, NULL), INK_OK);
    assert_int_equal(ink_tensor_numel(&t), 24);
    assert_int_equal(ink_tensor_bytes(&t), 48);
    assert_int_equal(t.strides[0], 12);
    assert_true(ink_tensor_is_contiguous(&t));
    t.strides[0] = 16;
    assert_false(ink_tensor_is_contiguous(&t));
    assert_int_equal(ink_tensor_init(&t, INK_F32, 2, (int64_t[]){INT64_MAX, 2}, NULL), INK_INVALID_ARGUMENT);
    assert_int_equal(ink_tensor_init(&t, INK_F32, 1, (int64_t[]){-1}, NULL), INK_INVALID_ARGUMENT);
    assert_int_equal(ink_tensor_init(&t, INK_F32, 7, (int64_t[]){1, 1, 1, 1, 1, 1, 1}, NULL), INK_INVALID_ARGUMENT);
    assert_int_equal(ink_tensor_init(&t, INK_F32, 3, (int64_t[]){INT64_MAX, 2, 0}, NULL), INK_OK);
}

static void test_status_messages(void **state)
{
    (void)state;
    failure(INK_BAD_DATA, "offset %d", 7);
    failure_in(INK_BAD_DATA, "file %s", "a.bin");
    assert_string_equal(ink_last_error(), "file a.bin: offset 7");
    strbuf b = {0};
    for (int i = 0; i < 1000; i++)
        strbuf_printf(&b, "line %d\n", i);
    failure_text(INK_MISSING_KERNEL, strbuf_text(&b));
    assert_int_equal(strlen(ink_last_error()), b.length);
    strbuf_free(&b);
}

static void test_memory(void **state)
{
    (void)state;
    assert_null(alloc_array(SIZE_MAX / 2, 4));
    arena a = {0};
    for (int i = 0; i < 10000; i++) {
        unsigned char *p = arena_alloc(&a, (size_t)i);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        memset(p, 0xff, (size_t)i);
    }
    arena_free(&a);
    char *s = copy_bytes("abc", 2);
    assert_string_equal(s, "ab");
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bf16_vectors),       cmocka_unit_test(test_narrowing_random),
        cmocka_unit_test(test_all_f16_round_trip), cmocka_unit_test(test_tensor),
        cmocka_unit_test(test_status_messages),    cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
