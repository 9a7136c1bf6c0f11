/* test_image_memory.c - allocations fail, one at a time, from decoding to patches: an error comes back, nothing leaks.
 *
 * This program replaces malloc and its relatives (glibc lets it) by ones that count and can be told to fail; under a
 * sanitizer, which replaces them itself, it has nothing to do. */
#include "image/processor.h"
#include "image/resize.h"
#include "image_files.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#define COUNTED_HEAP 1
static _Thread_local long until_failure = -1; /* allocations left before one fails; negative: none does */
static _Thread_local long live;
static _Thread_local size_t smallest; /* bytes of an allocation that may be told to fail */

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);
void *malloc(size_t n) __attribute__((visibility("default")));
void *calloc(size_t n, size_t size) __attribute__((visibility("default")));
void *realloc(void *p, size_t n) __attribute__((visibility("default")));
void *aligned_alloc(size_t align, size_t n) __attribute__((visibility("default")));
void *memalign(size_t align, size_t n) __attribute__((visibility("default")));
int posix_memalign(void **p, size_t align, size_t n) __attribute__((visibility("default")));
void free(void *p) __attribute__((visibility("default")));

static bool fails(size_t n) { return until_failure >= 0 && n >= smallest && until_failure-- == 0; }

static void *counted(void *p)
{
    live += p != NULL;
    return p;
}

void *malloc(size_t n) { return fails(n) ? NULL : counted(__libc_malloc(n)); }
void *calloc(size_t n, size_t size) { return fails(n * size) ? NULL : counted(__libc_calloc(n, size)); }
/* Counted, never failing: OpenMP's run time allocates its teams so and ends the process when it cannot. */
void *aligned_alloc(size_t align, size_t n) { return counted(__libc_memalign(align, n)); }
void *memalign(size_t align, size_t n) { return aligned_alloc(align, n); }

int posix_memalign(void **p, size_t align, size_t n)
{
    *p = aligned_alloc(align, n);
    return *p ? 0 : ENOMEM;
}

void *realloc(void *p, size_t n)
{
    if (fails(n))
        return NULL;
    return p ? __libc_realloc(p, n) : counted(__libc_malloc(n));
}

void free(void *p)
{
    live -= p != NULL;
    __libc_free(p);
}
#endif

#ifdef COUNTED_HEAP
static ink_status decode_and_process(const uint8_t *data, size_t size)
{
    static float patches[3 * 400000];
    image_processor p = IMAGE_PROCESSOR_DEFAULT;
    image img;
    image_grid g;
    TRY(image_decode(data, size, NULL, &img));
    ink_status s = image_processor_grid(&p, img.width, img.height, &g);
    if (s == INK_OK)
        s = image_processor_run(&p, &img, &g, INK_F32, patches, sizeof patches, 1);
    image_free(&img);
    return s;
}
#endif

static void test_every_allocation(void **state)
{
    (void)state;
#ifdef COUNTED_HEAP
    FILE *list = fopen(IMAGE_DIR "cases.txt", "r");
    assert_non_null(list);
    char file[100];
    long failures = 0;
    while (fscanf(list, "%99s %*s %*d", file) == 1) {
        /* libtiff 4.5 and libwebp 1.2 themselves crash when some of their small tables cannot be allocated. */
        smallest = strstr(file, ".jpg") || strstr(file, ".png") ? 0 : 2500;
        size_t size;
        uint8_t *data = read_fixture(file, &size);
        assert_non_null(data);
        assert_int_equal(decode_and_process(data, size), INK_OK); /* also: what libraries allocate once and keep */
        for (long n = 0;; n++) {
            long before = live;
            until_failure = n;
            ink_status s = decode_and_process(data, size);
            bool failed = until_failure < 0;
            until_failure = -1;
            if (live != before)
                fail_msg("%s: %ld blocks leaked when allocation %ld failed", file, live - before, n);
            if (!failed)
                break;
            failures += s != INK_OK;
            if (s != INK_OK && s != INK_RESOURCE_EXHAUSTED && s != INK_BAD_DATA)
                fail_msg("%s: %s when allocation %ld failed", file, ink_last_error(), n);
        }
        free(data);
    }
    fclose(list);
    print_message("%ld failures came back as errors\n", failures);
    assert_true(failures > 1000);
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
