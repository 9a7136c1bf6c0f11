#include "graph/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t dim_value(dim d, const int64_t symbols[DIM_SYMBOLS])
{
    return d.symbol == DIM_FIXED ? d.offset : symbols[d.symbol] / d.divisor + d.offset;
}

const char *dim_symbol_name(dim_symbol s)
{
    static const char *const names[] = {"fixed",     "patches",   "images",  "features", "tokens",
                                        "sequences", "kv_blocks", "history", "pool"};
    return (unsigned)s < DIM_SYMBOLS ? names[s] : "?";
}

graph *graph_create(const int64_t bounds[DIM_SYMBOLS])
{
    graph *g = alloc_array(1, sizeof *g);
    if (g)
        memcpy(g->bounds, bounds, sizeof g->bounds);
    return g;
}

void graph_free(graph *g)
{
    if (!g)
        return;
    free(g->values);
    free(g->nodes);
    free(g->error);
    arena_free(&g->names);
    free(g);
}

static void remember(graph *g, ink_status s)
{
    if (s == INK_OK || g->status != INK_OK)
        return;
    g->status = s;
    g->error = strdup(ink_last_error());
}

ink_status graph_status(const graph *g)
{
    if (g->status != INK_OK && g->error)
        failure_text(g->status, g->error);
    return g->status;
}

void graph_set_module(graph *g, const char *module) { g->module = module; }

char *graph_name(graph *g, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    char *s = arena_string(&g->names, text);
    if (!s)
        remember(g, INK_RESOURCE_EXHAUSTED);
    return s;
}

static value_id add_value(graph *g, const graph_value *v)
{
    if (g->status != INK_OK)
        return NO_VALUE;
    ink_status s = grow_array(&g->values, &g->cap_values, g->n_values + 1, sizeof *g->values);
    if (s != INK_OK) {
        remember(g, s);
        return NO_VALUE;
    }
    g->values[g->n_values] = *v;
    return (value_id)g->n_values++;
}

static value_id add_external(graph *g, value_kind kind, const char *name, ink_dtype dtype, int rank, const dim *dims)
{
    graph_value v = {.kind = kind, .name = graph_name(g, "%s", name), .producer = -1};
    int64_t at_bounds[INK_MAX_RANK] = {0};
    if (rank < 0 || rank > INK_MAX_RANK) {
        remember(g, failure(INK_INVALID_ARGUMENT, "graph: %s has rank %d", name, rank));
        return NO_VALUE;
    }
    for (int i = 0; i < rank; i++) {
        v.dims[i] = dims[i];
        at_bounds[i] = dim_value(dims[i], g->bounds);
    }
    ink_status s = ink_tensor_init(&v.type, dtype, rank, at_bounds, NULL);
    if (s != INK_OK) {
        remember(g, failure_in(s, "graph: %s", name));
        return NO_VALUE;
    }
    return add_value(g, &v);
}

value_id graph_input(graph *g, const char *name, ink_dtype dtype, int rank, const dim *dims)
{
    return add_external(g, VALUE_INPUT, name, dtype, rank, dims);
}

value_id graph_state(graph *g, const char *name, ink_dtype dtype, int rank, const dim *dims)
{
    return add_external(g, VALUE_STATE, name, dtype, rank, dims);
}

value_id graph_weight(graph *g, const char *name, const ink_tensor *t)
{
    graph_value v = {.kind = VALUE_WEIGHT, .name = graph_name(g, "%s", name), .type = *t, .producer = -1};
    return add_value(g, &v);
}

void graph_call_of(const graph *g, const graph_node *n, node_call *c)
{
    *c = (node_call){.call = {.op = n->op, .attrs = n->attrs}};
    for (int i = 0; i < OP_MAX_IN; i++)
        if (n->in[i] != NO_VALUE) {
            c->in[i] = g->values[n->in[i]].type;
            c->call.in[i] = &c->in[i];
        }
    for (int i = 0; i < OP_MAX_OUT; i++)
        if (n->out[i] != NO_VALUE) {
            c->out[i] = g->values[n->out[i]].type;
            c->call.out[i] = &c->out[i];
        }
}

static ink_status infer_node(const graph *g, const graph_node *n, int n_out, ink_tensor types[OP_MAX_OUT])
{
    node_call c;
    graph_call_of(g, n, &c);
    for (int i = 0; i < n_out; i++)
        c.call.out[i] = &c.out[i];
    ink_status s = op_infer(&c.call);
    if (s != INK_OK)
        return n->name ? failure_in(s, "%s", n->name) : s;
    memcpy(types, c.out, sizeof c.out);
    return INK_OK;
}

value_id graph_add(graph *g, op_id op, const char *name, int n_in, const value_id *in, const op_attrs *attrs, int n_out)
{
    graph_node n = {.op = op, .module = g->module, .name = name ? graph_name(g, "%s", name) : NULL};
    ink_tensor types[OP_MAX_OUT] = {{0}};
    if (g->status != INK_OK)
        return NO_VALUE;
    for (int i = 0; i < OP_MAX_IN; i++)
        n.in[i] = i < n_in ? in[i] : NO_VALUE;
    for (int i = 0; i < OP_MAX_OUT; i++)
        n.out[i] = NO_VALUE;
    if (attrs)
        n.attrs = *attrs;
    ink_status s = infer_node(g, &n, n_out, types);
    if (s == INK_OK)
        s = grow_array(&g->nodes, &g->cap_nodes, g->n_nodes + 1, sizeof *g->nodes);
    for (int i = 0; i < n_out && s == INK_OK; i++) {
        graph_value v = {.kind = VALUE_NODE, .name = n.name, .type = types[i], .producer = (int)g->n_nodes, .slot = i};
        n.out[i] = add_value(g, &v);
        s = g->status;
    }
    remember(g, s);
    if (s != INK_OK)
        return NO_VALUE;
    g->nodes[g->n_nodes++] = n;
    return n.out[0];
}

value_id graph_output_of(const graph *g, value_id first, int i)
{
    return first == NO_VALUE ? NO_VALUE : g->nodes[g->values[first].producer].out[i];
}

void graph_keep(graph *g, value_id v, const char *name)
{
    char *copy = graph_name(g, "%s", name);
    if (g->status != INK_OK || v == NO_VALUE)
        return;
    g->values[v].output = true;
    g->values[v].name = copy;
}

int graph_uses(const graph *g, value_id v)
{
    int uses = g->values[v].output;
    for (size_t i = 0; i < g->n_nodes; i++)
        for (int j = 0; j < OP_MAX_IN && !g->nodes[i].dead; j++)
            uses += g->nodes[i].in[j] == v;
    return uses;
}

graph_node *graph_producer(const graph *g, value_id v)
{
    if (v == NO_VALUE || g->values[v].kind != VALUE_NODE)
        return NULL;
    graph_node *n = &g->nodes[g->values[v].producer];
    return n->dead ? NULL : n;
}
