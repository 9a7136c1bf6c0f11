#include "graph/plan.h"

#include <stdlib.h>
#include <string.h>

void plan_free(plan *p)
{
    if (!p)
        return;
    graph_free(p->graph);
    free(p->nodes);
    free(p->offset);
    free(p->root);
    free(p->passes);
    free(p);
}

size_t plan_arena_bytes(const plan *p) { return p->activation_bytes + p->workspace_bytes; }

value_id plan_find(const plan *p, const char *name)
{
    for (size_t i = 0; i < p->graph->n_values; i++) {
        const graph_value *v = &p->graph->values[i];
        if ((v->kind == VALUE_INPUT || v->kind == VALUE_STATE || v->output) && v->name && !strcmp(v->name, name))
            return (value_id)i;
    }
    return NO_VALUE;
}

int plan_bucket(const plan *p, const int64_t symbols[DIM_SYMBOLS])
{
    int b = 0;
    while (b + 1 < p->options.n_buckets && symbols[p->options.bucket_symbol] > p->options.buckets[b])
        b++;
    return b;
}

/* ---- kernels ---- */

/* Shapes of all values for given symbols, by running the schemas in order. */
static ink_status shapes_at(const graph *g, const plan_node *nodes, size_t n_nodes, const int64_t symbols[DIM_SYMBOLS],
                            ink_tensor *types)
{
    for (size_t i = 0; i < g->n_values; i++) {
        types[i] = g->values[i].type;
        if (g->values[i].kind != VALUE_INPUT && g->values[i].kind != VALUE_STATE)
            continue;
        for (int k = 0; k < types[i].rank; k++)
            types[i].dims[k] = dim_value(g->values[i].dims[k], symbols);
        tensor_make_contiguous(&types[i]);
    }
    for (size_t i = 0; i < n_nodes; i++) {
        const graph_node *n = &nodes[i].node;
        op_call c = {.op = n->op, .attrs = n->attrs};
        for (int k = 0; k < OP_MAX_IN; k++)
            c.in[k] = n->in[k] == NO_VALUE ? NULL : &types[n->in[k]];
        for (int k = 0; k < OP_MAX_OUT; k++)
            c.out[k] = n->out[k] == NO_VALUE ? NULL : &types[n->out[k]];
        ink_status s = op_infer(&c);
        if (s != INK_OK)
            return n->name ? failure_in(s, "%s", n->name) : s;
    }
    return INK_OK;
}

typedef struct missing_list {
    strbuf text;
    int keys, nodes;
    uint64_t seen[OP_COUNT]; /* bit dtype + 8 * layout */
} missing_list;

static void note_missing(missing_list *m, const plan *p, const graph_node *n, const op_call *c)
{
    uint64_t bit = (uint64_t)1 << (op_key_dtype(c) + 8 * op_key_layout(c));
    m->nodes++;
    if (m->seen[n->op] & bit)
        return;
    m->seen[n->op] |= bit;
    m->keys++;
    registry_explain(p->device, c, n->name, n->module, &m->text);
}

static ink_status choose_bucket(plan *p, int bucket, ink_tensor *types, missing_list *missing)
{
    int64_t symbols[DIM_SYMBOLS];
    memcpy(symbols, p->graph->bounds, sizeof symbols);
    if (p->options.bucket_symbol != DIM_FIXED)
        symbols[p->options.bucket_symbol] = p->options.buckets[bucket];
    TRY(shapes_at(p->graph, p->nodes, p->n_nodes, symbols, types));
    for (size_t i = 0; i < p->n_nodes; i++) {
        const graph_node *n = &p->nodes[i].node;
        op_call c = {.op = n->op, .attrs = n->attrs, .threads = p->device->threads};
        for (int k = 0; k < OP_MAX_IN; k++)
            c.in[k] = n->in[k] == NO_VALUE ? NULL : &types[n->in[k]];
        for (int k = 0; k < OP_MAX_OUT; k++)
            c.out[k] = n->out[k] == NO_VALUE ? NULL : &types[n->out[k]];
        if (op_schema_of(n->op)->view)
            continue;
        const kernel *chosen = registry_find(p->device, &c, NULL);
        p->nodes[i].kernel[bucket] = chosen;
        if (!chosen) {
            note_missing(missing, p, n, &c);
            continue;
        }
        size_t w = chosen->workspace ? chosen->workspace(&c) : 0;
        if (w > p->workspace_bytes)
            p->workspace_bytes = w;
    }
    return INK_OK;
}

static ink_status choose_kernels(plan *p, const char *what)
{
    missing_list missing = {0};
    ink_tensor *types = alloc_array(p->graph->n_values, sizeof *types);
    ink_status s = types ? INK_OK : INK_RESOURCE_EXHAUSTED;
    for (int b = 0; b < p->options.n_buckets && s == INK_OK && !missing.keys; b++)
        s = choose_bucket(p, b, types, &missing);
    free(types);
    if (s == INK_OK && missing.keys) {
        strbuf text = {0};
        strbuf_printf(&text, "plan '%s' on %s: %d of %zu nodes have no kernel (%d key%s)\n%s", what, p->device->name,
                      missing.nodes, p->n_nodes, missing.keys, missing.keys == 1 ? "" : "s", strbuf_text(&missing.text));
        s = failure_text(INK_MISSING_KERNEL, strbuf_text(&text));
        strbuf_free(&text);
    }
    strbuf_free(&missing.text);
    return s;
}

/* ---- memory ---- */

typedef struct interval {
    value_id value;
    int first, last; /* node indices; both inclusive */
    int64_t bytes;
} interval;

static int larger_first(const void *a, const void *b)
{
    const interval *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return (x->value > y->value) - (x->value < y->value);
}

static int by_offset(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (x[0] > y[0]) - (x[0] < y[0]);
}

/* Lowest offset where `it` overlaps no placed interval that lives at the same time. `scratch`: 2 numbers per interval. */
static int64_t find_place(const plan *p, const interval *all, size_t placed, const interval *it, int64_t *scratch)
{
    size_t n = 0;
    for (size_t i = 0; i < placed; i++)
        if (all[i].first <= it->last && it->first <= all[i].last) {
            scratch[2 * n] = p->offset[all[i].value];
            scratch[2 * n++ + 1] = p->offset[all[i].value] + all[i].bytes;
        }
    qsort(scratch, n, 2 * sizeof *scratch, by_offset);
    int64_t at = 0;
    for (size_t i = 0; i < n && scratch[2 * i] < at + it->bytes; i++)
        if (scratch[2 * i + 1] > at)
            at = scratch[2 * i + 1];
    return at;
}

static size_t collect_intervals(const plan *p, interval *all)
{
    const graph *g = p->graph;
    for (size_t v = 0; v < g->n_values; v++)
        all[v] = (interval){.value = (value_id)v, .first = -1};
    for (size_t i = 0; i < p->n_nodes; i++) {
        const graph_node *n = &p->nodes[i].node;
        for (int k = 0; k < OP_MAX_OUT; k++)
            if (n->out[k] != NO_VALUE) {
                interval *it = &all[p->root[n->out[k]]];
                if (it->first < 0)
                    it->first = (int)i;
                it->last = g->values[n->out[k]].output ? (int)p->n_nodes : it->last > (int)i ? it->last : (int)i;
            }
        for (int k = 0; k < OP_MAX_IN; k++)
            if (n->in[k] != NO_VALUE) {
                interval *it = &all[p->root[n->in[k]]];
                it->last = it->last > (int)i ? it->last : (int)i;
            }
    }
    size_t n = 0;
    for (size_t v = 0; v < g->n_values; v++)
        if (p->root[v] == (value_id)v && g->values[v].kind == VALUE_NODE && all[v].first >= 0) {
            all[n] = all[v];
            all[n++].bytes = (int64_t)((ink_tensor_bytes(&g->values[v].type) + 63) & ~(size_t)63);
        }
    return n;
}

/* Greedy by size: the largest value first, each at the lowest free offset of its lifetime. */
static ink_status place_values(plan *p)
{
    size_t n_values = p->graph->n_values;
    interval *all = alloc_array(n_values, sizeof *all);
    int64_t *scratch = alloc_array(2 * n_values, sizeof *scratch);
    ink_status s = all && scratch ? INK_OK : INK_RESOURCE_EXHAUSTED;
    size_t n = s == INK_OK ? collect_intervals(p, all) : 0;
    if (n)
        qsort(all, n, sizeof *all, larger_first);
    for (size_t i = 0; i < n; i++) {
        int64_t at = find_place(p, all, i, &all[i], scratch);
        p->offset[all[i].value] = at;
        if ((size_t)(at + all[i].bytes) > p->activation_bytes)
            p->activation_bytes = (size_t)(at + all[i].bytes);
    }
    free(all);
    free(scratch);
    return s;
}

static void find_roots(plan *p)
{
    for (size_t v = 0; v < p->graph->n_values; v++) {
        p->root[v] = (value_id)v;
        p->offset[v] = -1;
    }
    for (size_t i = 0; i < p->n_nodes; i++) {
        const graph_node *n = &p->nodes[i].node;
        const op_schema *s = op_schema_of(n->op);
        for (int k = 0; k < OP_MAX_OUT; k++)
            if (n->out[k] != NO_VALUE && s->alias[k])
                p->root[n->out[k]] = p->root[n->in[s->alias[k] - 1]];
    }
}

static ink_status collect_nodes(plan *p)
{
    p->nodes = alloc_array(p->graph->n_nodes, sizeof *p->nodes);
    p->offset = alloc_array(p->graph->n_values, sizeof *p->offset);
    p->root = alloc_array(p->graph->n_values, sizeof *p->root);
    if (!p->nodes || !p->offset || !p->root)
        return INK_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < p->graph->n_nodes; i++)
        if (!p->graph->nodes[i].dead)
            p->nodes[p->n_nodes++].node = p->graph->nodes[i];
    return INK_OK;
}

static ink_status run_passes(plan *p)
{
    p->passes = alloc_array((size_t)pass_count(), sizeof *p->passes);
    if (!p->passes)
        return INK_RESOURCE_EXHAUSTED;
    if (p->options.delete_passes && !strcmp(p->options.delete_passes, "all")) {
        for (int i = 0; i < pass_count(); i++)
            p->passes[i].deleted = true;
        return INK_OK;
    }
    return passes_run(p->graph, p->device, p->options.delete_passes, p->passes);
}

/* The classes must cover every size a run may have: workspace is reserved for their upper bounds. */
static ink_status check_buckets(const plan_options *o, const int64_t bounds[DIM_SYMBOLS])
{
    if (o->bucket_symbol == DIM_FIXED)
        return INK_OK;
    for (int i = 0; i < o->n_buckets && i < PLAN_MAX_BUCKETS; i++)
        if (i && o->buckets[i] <= o->buckets[i - 1])
            return failure(INK_INVALID_ARGUMENT, "plan: size classes must ascend");
    if (o->n_buckets > PLAN_MAX_BUCKETS || o->buckets[o->n_buckets - 1] != bounds[o->bucket_symbol])
        return failure(INK_INVALID_ARGUMENT, "plan: at most %d size classes, the last one the bound of %s",
                       PLAN_MAX_BUCKETS, dim_symbol_name(o->bucket_symbol));
    return INK_OK;
}

ink_status plan_create(graph *g, const device *d, const plan_options *o, const char *what, plan **out)
{
    plan *p = alloc_array(1, sizeof *p);
    *out = NULL;
    if (!p || !g) {
        graph_free(g);
        free(p);
        return INK_RESOURCE_EXHAUSTED;
    }
    p->graph = g;
    p->device = d;
    if (o)
        p->options = *o;
    if (p->options.n_buckets < 1 || p->options.bucket_symbol == DIM_FIXED) {
        p->options.n_buckets = 1;
        p->options.bucket_symbol = DIM_FIXED;
    }
    ink_status s = graph_status(g);
    if (s == INK_OK)
        s = check_buckets(&p->options, g->bounds);
    if (s == INK_OK)
        s = run_passes(p);
    if (s == INK_OK)
        s = collect_nodes(p);
    if (s == INK_OK)
        s = choose_kernels(p, what);
    if (s == INK_OK) {
        find_roots(p);
        s = place_values(p);
    }
    if (s == INK_OK)
        *out = p;
    else
        plan_free(p);
    return s;
}
