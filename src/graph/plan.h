/* plan.h - a graph bound to one device: a kernel for every node, a place in memory for every value, costs.
 *
 * Planning fails with the full list of missing kernels; no dtype and no device is ever substituted. Sizes: a plan is made
 * once for the graph's upper bounds. Where the choice of a row may depend on size, `bucket_symbol` and `buckets` (ascending
 * upper bounds of that symbol) give one choice per size class. A plan is immutable and may serve many runs at once. */
#ifndef GRAPH_PLAN_H
#define GRAPH_PLAN_H
#include "graph/passes/pass.h"
#include "graph/profile.h"

enum { PLAN_MAX_BUCKETS = 8 };

typedef struct plan_options {
    const char *delete_passes; /* names, comma separated; "all" switches every pass off; NULL: none */
    dim_symbol bucket_symbol;  /* DIM_FIXED: one bucket, the upper bounds */
    int n_buckets;
    int64_t buckets[PLAN_MAX_BUCKETS];
} plan_options;

typedef struct plan_node {
    graph_node node;
    const kernel *kernel[PLAN_MAX_BUCKETS]; /* NULL for a view */
} plan_node;

typedef struct plan {
    graph *graph; /* owned */
    const device *device;
    plan_options options;
    plan_node *nodes; /* live nodes in order */
    size_t n_nodes;
    int64_t *offset;         /* by value: place in the arena; -1: none of its own (input, weight, state, alias) */
    value_id *root;          /* by value: whose storage it shares (itself, unless an alias) */
    size_t activation_bytes; /* arena part for values: the peak */
    size_t workspace_bytes;  /* behind it, shared by all kernels */
    pass_report *passes;     /* pass_count() of them */
} plan;

/* Takes ownership of g, also on failure. INK_MISSING_KERNEL: ink_last_error lists every key without a kernel. `what` names
 * the plan in messages ("vision"). */
ink_status plan_create(graph *g, const device *d, const plan_options *o, const char *what, plan **out);
void plan_free(plan *p);

size_t plan_arena_bytes(const plan *p);
int plan_bucket(const plan *p, const int64_t symbols[DIM_SYMBOLS]);
value_id plan_find(const plan *p, const char *name); /* input, state or kept output; NO_VALUE if absent */
#endif
