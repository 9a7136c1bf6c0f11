/* resize_loops.h - the inner loop of image_resize, per instruction set; the results are the same bytes. */
#ifndef IMAGE_RESIZE_LOOPS_H
#define IMAGE_RESIZE_LOOPS_H
#include <stddef.h>
#include <stdint.h>

enum { RESIZE_FRACTION_BITS = 22 };

/* dst[i] = clamp8((half + sum over t of weights[t] * src[i + t * stride]) >> 22) for i in [0, n); half = 2^21. Sums stay
 * inside 32 bits, because the absolute weights of both filters add up to less than 2. */
typedef void resize_loop(const uint8_t *src, size_t stride, const int32_t *weights, int count, size_t n, uint8_t *dst);

resize_loop resize_loop_portable;
#ifdef __x86_64__
resize_loop resize_loop_avx2;
#endif
#endif
