/* conformance.h - every kernel against an FP64 reference on random data: the suite behind `inkstone selftest`, CI and a
 * user's bug report.
 *
 * For each op there is one conf_op: `draw` makes a random valid call, `reference` computes in FP64, from the inputs as
 * stored (already rounded), what each output element must be and how far it may be off. The driver runs every registry
 * row on such cases with poisoned outputs and workspaces, guard bytes around outputs, one thread against several (bitwise
 * equal), inputs checked unchanged. Over all cases of a row the roundings of its 16-bit stores must be centred (the bias
 * test of operators.md 5.4: truncation shifts results by 2^-8.5 of their size, far below any tolerance for single
 * elements). A row whose op has no conf_op, or that no drawn case reaches, fails the suite.
 *
 * A case is named by a descriptor, e.g. `linear bf16 any m5 n17 k31 bias=bf16 seed=9f3a6c0e11d2a007`; op, dtype, layout and
 * seed alone rebuild it, on every machine. */
#ifndef CONFORMANCE_CONFORMANCE_H
#define CONFORMANCE_CONFORMANCE_H
#include "core/memory.h"
#include "core/rng.h"
#include "registry/registry.h"

typedef struct conf_case {
    rng random;
    int size;             /* 0: shapes for a quick run .. 2: larger ones; `draw` scales its ranges */
    const kernel *kernel; /* the row under test, for its flags */
    op_call call;
    ink_tensor in[OP_MAX_IN], out[OP_MAX_OUT];
    double *expect[OP_MAX_OUT];    /* by output, contiguous order; may hold NaN and infinities, which must be met exactly */
    double *bound[OP_MAX_OUT];     /* largest |y - expect|; 0: bit-exact after rounding; infinity: not checked */
    bool lost_infinities;          /* an infinite bound also frees an expected infinity: attention, where a probability that
                                    * underflows in FP32 meets an infinite value; elsewhere infinities are met exactly */
    bool no_bias_test;             /* rounding of this op's outputs is not centred (a comparison, a copy) */
    void *input_memory[OP_MAX_IN]; /* of in[]: exactly as large as the tensor, so that a sanitizer sees any over-read */
    arena memory;                  /* everything else; both are freed by the driver */
} conf_case;

typedef struct conf_op {
    op_id op;
    /* Fills call.attrs and call.in (through conf_input and friends) for the key. Includes sizes 0 and 1, tails around
     * the tiles in use, and now and then special values. Shapes must be valid. */
    ink_status (*draw)(conf_case *k, ink_dtype dtype, ink_layout layout);
    /* Fills expect and bound, allocated by the driver for every output present. */
    ink_status (*reference)(conf_case *k);
} conf_op;

/* ---- for draw ---- */

/* Input i: a contiguous tensor with elements N(0,1) * scale, rounded to dtype. */
ink_tensor *conf_input(conf_case *k, int i, ink_dtype dtype, int rank, const int64_t *dims, double scale);
/* Input i of integers in lo..hi: F32/F16/BF16 (exact), I32 or I64. */
ink_tensor *conf_input_int(conf_case *k, int i, ink_dtype dtype, int rank, const int64_t *dims, int64_t lo, int64_t hi);
/* Overwrites a few elements of input i with zeros of either sign, subnormals, huge values; `nonfinite` adds inf and NaN. */
void conf_special_values(conf_case *k, int i, bool nonfinite);
/* A dimension: often small or around a multiple of 8, 16, 32; 0 now and then if `zero`. At most `most`. */
int64_t conf_dim(conf_case *k, int64_t most, bool zero);
bool conf_chance(conf_case *k, int percent);

/* ---- for reference ---- */
double conf_in(const conf_case *k, int input, int64_t i); /* element i as FP64 */
/* Rounding of one store to `t`, relative to the value, plus the smallest subnormal step. */
double conf_store_error(ink_dtype t, double value);
/* FP32 accumulation of n terms whose absolute values sum to `magnitude`: n 2^-24 magnitude, any order. */
double conf_sum_error(double n, double magnitude);

/* ---- driver ---- */
typedef struct conf_options {
    uint64_t seed;
    int cases; /* per row */
    int size;
    int threads;                     /* of the second run; 0: 3 */
    const char *op, *dtype, *kernel; /* filters, NULL: all */
    double seconds;                  /* stop drawing cases of a row after this long; 0: no limit */
} conf_options;

typedef struct conf_row {
    const kernel *kernel;
    int cases;
    double worst; /* largest error / bound */
    double bias;  /* mean of (y - ref) / ref over bias-tested elements */
    double seconds;
    bool skipped; /* this processor or INK_CPU cannot run it */
    bool failed;
    char failure[768]; /* descriptor and what differed */
} conf_row;

typedef struct conf_report {
    conf_row *rows;
    size_t count, capacity;
    int failed, skipped;
} conf_report;

const conf_op *conf_op_of(op_id op); /* NULL: none */

/* How much to run: "quick" (a user's check of a device: seconds), "ci" (every push), "full" (releases, bug hunts; larger
 * shapes). Fills cases, size, seconds and threads, nothing else. INK_INVALID_ARGUMENT for another name. */
enum {
    CONF_QUICK_CASES = 12,
    CONF_QUICK_SECONDS = 1,
    CONF_CI_CASES = 100,
    CONF_CI_SECONDS = 2,
    CONF_FULL_CASES = 1500,
    CONF_FULL_SECONDS = 300,
};
ink_status conf_tier(const char *name, conf_options *o);

/* The bias test: a row fails when |bias| is over the limit, given this many tested elements from this many cases. Elements
 * count whose store error is more than half of their bound, each by its relative error, so that large values do not drown
 * the others; a case counts for at most CONF_BIAS_CASE_WEIGHT elements, since one with few distinct values (small integers)
 * repeats the same rounding. The limits lie 5 times below what truncation gives and some 10 standard deviations above
 * centred rounding. */
enum { CONF_BIAS_ELEMENTS = 2000, CONF_BIAS_CASES = 10, CONF_BIAS_CASE_WEIGHT = 500 };
#define CONF_BIAS_BF16 5e-4
#define CONF_BIAS_F16 6e-5

ink_status conf_run(const device *d, const conf_options *o, conf_report *r);
/* One row, which need not be registered: to show that the suite catches a wrong kernel, or to try one that is not listed.
 */
ink_status conf_run_kernel(const device *d, const conf_options *o, const kernel *k, conf_report *r);
/* Re-runs the case of one descriptor on every row that accepts it. INK_INVALID_ARGUMENT if it is not one. */
ink_status conf_run_case(const device *d, const char *descriptor, conf_report *r);
void conf_report_table(const device *d, const conf_options *o, const conf_report *r, strbuf *out);
void conf_report_free(conf_report *r);
#endif
