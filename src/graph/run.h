/* run.h - executing a plan: actual numbers for the symbols, memory for inputs and states, one pass over the nodes.
 *
 * A run belongs to one thread at a time. Nothing is allocated after run_create; shapes are inferred again only when a
 * symbol changed since the last execution. */
#ifndef GRAPH_RUN_H
#define GRAPH_RUN_H
#include "graph/plan.h"

typedef struct run run;

/* `memory`: plan_arena_bytes(p) bytes, 64-byte aligned, any bits, which runs that never execute at the same time may share;
 * NULL: the run maps its own. */
ink_status run_create(const plan *p, void *memory, run **out);
void run_free(run *r);

void run_set_symbol(run *r, dim_symbol s, int64_t n);
/* Binds memory of at least the size that the symbols of the next execution imply. */
ink_status run_bind(run *r, const char *name, void *data);
void run_bind_value(run *r, value_id v, void *data);

/* Runs all nodes. profile may be NULL. INK_FAILED_PRECONDITION for an unbound input, INK_OUT_OF_RANGE for a symbol over
 * the plan's bound; a kernel's own error (an id out of range) is passed on with the node's name. */
ink_status run_execute(run *r, profile *prof);

/* A kept output after run_execute: its actual shape and data in the arena, valid until the arena's next use. NULL when the
 * plan keeps nothing under that name. */
const ink_tensor *run_output(const run *r, const char *name);
#endif
