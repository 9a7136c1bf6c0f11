/* registry.h - kernels as data: ordered rows per op and backend, and the one function that chooses among them.
 *
 * A row is a kernel for a key (op, backend, layout, dtype). The first row of the op's list that the device can run, that
 * nobody disabled and whose predicate accepts wins. Listing the rows is the coverage report; a capability is never
 * stated anywhere else. Adding a kernel: one file, one row in its op's list (src/cpu/<family>.c). */
#ifndef REGISTRY_REGISTRY_H
#define REGISTRY_REGISTRY_H
#include "cpu/isa.h"
#include "ops/op.h"

enum {
    KERNEL_FTZ = 1, /* flushes BF16 subnormal operands or results (AVX512-BF16, AMX) */
    KERNEL_P16 = 2, /* rounds attention probabilities to 16 bits before P V */
};

typedef struct kernel {
    const char *name; /* op, tile and ISA: what a profile prints */
    op_id op;
    ink_layout layout; /* INK_LAYOUT_ANY: every layout */
    ink_dtype dtype;
    int isa; /* minimum cpu_isa */
    unsigned flags;

    /* NULL: takes every valid call of its key. Otherwise NULL for yes, or why not. Sees shapes and attributes, no data. */
    const char *(*decline)(const op_call *c);
    /* NULL, or why a later row is faster on this processor: then the choice passes over this one. The suite runs it. */
    const char *(*avoid)(void);
    /* Bytes of scratch for c with c->threads threads; NULL: none. Does not shrink when a dimension grows. */
    size_t (*workspace)(const op_call *c);
    ink_status (*run)(const op_call *c);
} kernel;

typedef struct kernel_list {
    ink_backend backend;
    op_id op;
    int count;
    const kernel *rows;
} kernel_list;

/* Where kernels run, and which of them are visible. Immutable once opened; shared by threads. */
typedef struct device {
    ink_backend backend;
    int index, isa, threads;
    char name[96];  /* "cpu (avx2, 8 threads)" */
    char *disabled; /* patterns, comma separated, or NULL */
} device;

/* The CPU. threads 0: all cores this process may use. `disable`: patterns hiding rows, "op:backend:dtype:name" with '*'
 * and '?' as wildcards and trailing parts optional ("conv2d:*:bf16"); added to those of INK_DISABLE. */
ink_status device_open_cpu(device *d, int threads, const char *disable);
void device_close(device *d);

/* True when the row is hidden by a pattern of the device. */
bool device_hides(const device *d, const kernel *k);

/* Chooses. NULL: none, and `reasons` (may be NULL) gets one line per row of the key that declined. */
const kernel *registry_find(const device *d, const op_call *c, strbuf *reasons);

/* Why registry_find found nothing for `c` (operators.md 2.3): a line for programs (E_MISSING_KERNEL and the key), then for
 * people the device, the call, every registered key of the op by backend, why each row of the key declined, the nearest key
 * that would be served, what it would cost and the exact option that asks for it. `node` and `module` name where it was
 * wanted; NULL: unknown. */
void registry_explain(const device *d, const op_call *c, const char *node, const char *module, strbuf *out);

/* All lists, for reports, tests and benchmarks. */
int registry_list_count(void);
const kernel_list *registry_list(int i);
const kernel_list *registry_list_of(ink_backend backend, op_id op); /* NULL: no kernels */

/* Coverage: does any row of the backend exist for the key, regardless of shapes? */
bool registry_has(ink_backend backend, op_id op, ink_layout layout, ink_dtype dtype);
#endif
