#define _POSIX_C_SOURCE 200809L
#include "graph/run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct run {
    const plan *plan;
    int64_t symbols[DIM_SYMBOLS];
    ink_tensor *values; /* actual shapes and data, by value */
    op_call *calls;     /* by node; pointers into values */
    pages own;
    char *arena;
    int bucket;
    bool shaped; /* shapes fit `symbols` */
};

ink_status run_create(const plan *p, void *memory, run **out)
{
    run *r = alloc_array(1, sizeof *r);
    *out = NULL;
    if (!r)
        return INK_RESOURCE_EXHAUSTED;
    r->plan = p;
    memcpy(r->symbols, p->graph->bounds, sizeof r->symbols);
    r->values = alloc_array(p->graph->n_values, sizeof *r->values);
    r->calls = alloc_array(p->n_nodes, sizeof *r->calls);
    ink_status s = r->values && r->calls ? INK_OK : INK_RESOURCE_EXHAUSTED;
    if (s == INK_OK && !memory) {
        s = pages_map(&r->own, plan_arena_bytes(p));
        memory = r->own.data;
    }
    if (s != INK_OK) {
        run_free(r);
        return s;
    }
    r->arena = memory;
    for (size_t v = 0; v < p->graph->n_values; v++)
        r->values[v] = p->graph->values[v].type;
    *out = r;
    return INK_OK;
}

void run_free(run *r)
{
    if (!r)
        return;
    pages_unmap(&r->own);
    free(r->values);
    free(r->calls);
    free(r);
}

void run_set_symbol(run *r, dim_symbol s, int64_t n)
{
    r->shaped &= r->symbols[s] == n;
    r->symbols[s] = n;
}

void run_bind_value(run *r, value_id v, void *data)
{
    r->shaped &= r->values[v].data == data;
    r->values[v].data = data;
}

ink_status run_bind(run *r, const char *name, void *data)
{
    value_id v = plan_find(r->plan, name);
    if (v == NO_VALUE || r->plan->graph->values[v].kind == VALUE_NODE)
        return failure(INK_NOT_FOUND, "the plan has no input '%s'", name);
    run_bind_value(r, v, data);
    return INK_OK;
}

/* Shapes of inputs, then of every node in order, by the schemas; data pointers of values in the arena and of aliases. */
static ink_status shape_inputs(run *r)
{
    const graph *g = r->plan->graph;
    for (int s = 0; s < DIM_SYMBOLS; s++)
        if (r->symbols[s] < 0 || r->symbols[s] > g->bounds[s])
            return failure(INK_OUT_OF_RANGE, "%lld %s, the plan was made for at most %lld", (long long)r->symbols[s],
                           dim_symbol_name((dim_symbol)s), (long long)g->bounds[s]);
    for (size_t v = 0; v < g->n_values; v++) {
        const graph_value *gv = &g->values[v];
        ink_tensor *t = &r->values[v];
        if (gv->kind != VALUE_INPUT && gv->kind != VALUE_STATE)
            continue;
        for (int k = 0; k < t->rank; k++)
            t->dims[k] = dim_value(gv->dims[k], r->symbols);
        tensor_make_contiguous(t);
        if (!t->data && ink_tensor_numel(t))
            return failure(INK_FAILED_PRECONDITION, "input '%s' is not bound", gv->name);
    }
    return INK_OK;
}

static ink_status shape_node(run *r, size_t i)
{
    const plan *p = r->plan;
    const graph_node *n = &p->nodes[i].node;
    op_call *c = &r->calls[i];
    *c = (op_call){.op = n->op,
                   .attrs = n->attrs,
                   .threads = p->device->threads,
                   .workspace = r->arena ? r->arena + p->activation_bytes : NULL,
                   .workspace_bytes = p->workspace_bytes};
    for (int k = 0; k < OP_MAX_IN; k++)
        c->in[k] = n->in[k] == NO_VALUE ? NULL : &r->values[n->in[k]];
    for (int k = 0; k < OP_MAX_OUT; k++) {
        value_id v = n->out[k];
        if (v == NO_VALUE)
            continue;
        value_id root = p->root[v];
        r->values[v].data = root == v ? r->arena + p->offset[v] : r->values[root].data;
        c->out[k] = &r->values[v];
    }
    return op_infer(c);
}

static ink_status shape_run(run *r)
{
    TRY(shape_inputs(r));
    for (size_t i = 0; i < r->plan->n_nodes; i++) {
        ink_status s = shape_node(r, i);
        if (s != INK_OK)
            return r->plan->nodes[i].node.name ? failure_in(s, "%s", r->plan->nodes[i].node.name) : s;
    }
    r->bucket = plan_bucket(r->plan, r->symbols);
    r->shaped = true;
    return INK_OK;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

ink_status run_execute(run *r, profile *prof)
{
    if (!r->shaped)
        TRY(shape_run(r));
    for (size_t i = 0; i < r->plan->n_nodes; i++) {
        const plan_node *n = &r->plan->nodes[i];
        const kernel *k = n->kernel[r->bucket];
        if (!k)
            continue;
        double start = prof ? seconds() : 0;
        ink_status s = k->run(&r->calls[i]);
        if (s != INK_OK)
            return n->node.name ? failure_in(s, "%s", n->node.name) : s;
        if (prof)
            TRY(profile_add(prof, k, n->node.module, seconds() - start, op_schema_of(k->op)->cost(&r->calls[i])));
    }
    return INK_OK;
}

const ink_tensor *run_output(const run *r, const char *name)
{
    value_id v = plan_find(r->plan, name);
    return v != NO_VALUE && r->plan->graph->values[v].output ? &r->values[v] : NULL;
}
