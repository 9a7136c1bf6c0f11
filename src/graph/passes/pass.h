/* pass.h - graph rewrites. A pass is a pattern, a replacement and the question to the registry whether this device has
 * the replacement's kernel for that dtype; without it the graph stays as it is. No pass knows a platform. */
#ifndef GRAPH_PASSES_PASS_H
#define GRAPH_PASSES_PASS_H
#include "graph/graph.h"
#include "registry/registry.h"

typedef enum pass_result { PASS_NO_MATCH, PASS_APPLIED, PASS_NO_KERNEL } pass_result;

typedef struct graph_pass {
    const char *name, *alias; /* alias: the Paddle pass users already have in their delete lists, or NULL */
    const char *what;         /* one line for people */
    pass_result (*try_node)(graph *g, const device *d, int node); /* rewrites around this node if the pattern ends in it */
} graph_pass;

typedef struct pass_report {
    int applied, no_kernel;
    bool deleted; /* switched off by the user */
} pass_report;

int pass_count(void);
const graph_pass *pass_at(int i);

/* Runs all passes in order. `deleted`: names or aliases, comma separated, or NULL; an unknown one is
 * INK_INVALID_ARGUMENT. reports (pass_count() of them) may be NULL. */
ink_status passes_run(graph *g, const device *d, const char *deleted, pass_report *reports);

/* ---- for the pass files ---- */

/* Would the device run node `n` as changed? */
bool pass_has_kernel(const graph *g, const device *d, const graph_node *n);

extern const graph_pass pass_linear_act_fuse, pass_linear_add_fuse, pass_gated_mlp_fuse;
#endif
