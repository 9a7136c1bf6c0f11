/* sampling_vec.h - argmax in vectors, for sampling_avx2.c and sampling_avx512.c, which define ISA(name). One pass finds the
 * largest value and the block it is in; only that block is searched for the index. */
#include "cpu/sampling.h"
#include "cpu/vec.h"

static int64_t argmax_blocks(const float *x, int64_t n)
{
    enum { BLOCK = 1024 };
    float best = -INFINITY;
    int64_t best_at = 0, i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        vf top[4];
        unsigned nan = 0;
        for (int k = 0; k < 4; k++)
            top[k] = v_set(-INFINITY);
        for (int64_t e = i; e < i + BLOCK; e += 4 * VF)
            for (int k = 0; k < 4; k++) {
                vf v = v_load(x + e + k * VF);
                nan |= v_nan_lanes(v);
                top[k] = v_max(top[k], v);
            }
        if (nan)
            return i + argmax_of(x + i, BLOCK);
        float m = v_top(v_max(v_max(top[0], top[1]), v_max(top[2], top[3])));
        if (m > best) {
            best = m;
            best_at = i;
        }
    }
    int64_t rest = n > i ? i + argmax_of(x + i, n - i) : best_at;
    if (x[rest] != x[rest] || x[rest] > best || i == 0)
        return rest;
    return best_at + argmax_of(x + best_at, BLOCK);
}

ink_status ISA(argmax)(const op_call *c) { return argmax_run(c, argmax_blocks); }
