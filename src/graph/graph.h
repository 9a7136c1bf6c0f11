/* graph.h - values and nodes in topological order, built by calls, rewritten by passes, bound to a device by a plan.
 *
 * Dimensions may be symbolic. The graph is built for upper bounds of the symbols: every value's `type` has the dims at
 * those bounds, and shapes for the numbers of a run come from running the same shape inference again (run.h).
 * A failing builder call is remembered; later calls do nothing, and graph_status reports the first failure, so that a
 * model reads as a list of ops. */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H
#include "core/memory.h"
#include "ops/op.h"

typedef enum dim_symbol {
    DIM_FIXED,
    DIM_PATCHES, /* vision patches of all images */
    DIM_IMAGES,
    DIM_FEATURES, /* image tokens handed to the language model */
    DIM_TOKENS,   /* text positions of all sequences */
    DIM_SEQUENCES,
    DIM_KV_BLOCKS, /* columns of the block table */
    DIM_HISTORY,   /* columns of the sampler's token history */
    DIM_POOL,      /* blocks in the KV pools of a session */
    DIM_SYMBOLS
} dim_symbol;

/* symbol * 1 / divisor + offset; DIM_FIXED: offset alone. */
typedef struct dim {
    dim_symbol symbol;
    int64_t divisor, offset;
} dim;

static inline dim dim_fixed(int64_t n) { return (dim){DIM_FIXED, 1, n}; }
static inline dim dim_of(dim_symbol s) { return (dim){s, 1, 0}; }
static inline dim dim_plus(dim_symbol s, int64_t offset) { return (dim){s, 1, offset}; }
int64_t dim_value(dim d, const int64_t symbols[DIM_SYMBOLS]);
const char *dim_symbol_name(dim_symbol s);

typedef int value_id; /* index into graph.values; NO_VALUE for an absent optional input */
enum { NO_VALUE = -1 };

typedef enum value_kind { VALUE_INPUT, VALUE_WEIGHT, VALUE_STATE, VALUE_NODE } value_kind;

typedef struct graph_value {
    value_kind kind;
    const char *name;       /* unique among inputs, states and outputs; else for messages */
    ink_tensor type;        /* shape at the upper bounds; a weight's data */
    dim dims[INK_MAX_RANK]; /* inputs and states */
    int producer, slot;     /* VALUE_NODE: node and its output index */
    bool output;            /* kept for the caller under `name` */
} graph_value;

typedef struct graph_node {
    op_id op;
    value_id in[OP_MAX_IN], out[OP_MAX_OUT];
    op_attrs attrs;
    const char *name;   /* "visual.layers.3.mlp.fc1" */
    const char *module; /* "visual", "mlp_AR", "language_model" */
    bool dead;          /* removed by a pass */
} graph_node;

typedef struct graph {
    int64_t bounds[DIM_SYMBOLS];
    graph_value *values;
    graph_node *nodes;
    size_t n_values, n_nodes, cap_values, cap_nodes;
    const char *module;
    arena names;
    ink_status status;
    char *error; /* message of the first failure */
} graph;

graph *graph_create(const int64_t bounds[DIM_SYMBOLS]); /* NULL with the error set when memory is short */
void graph_free(graph *g);
ink_status graph_status(const graph *g); /* restores the first failure's message */

void graph_set_module(graph *g, const char *module); /* static string; for the nodes added from here on */

value_id graph_input(graph *g, const char *name, ink_dtype dtype, int rank, const dim *dims);
value_id graph_state(graph *g, const char *name, ink_dtype dtype, int rank,
                     const dim *dims);                                  /* read and written in place */
value_id graph_weight(graph *g, const char *name, const ink_tensor *t); /* t's memory must outlive the graph */

/* Adds a node with n_out outputs and returns the first; graph_output_of gives the others. name may be NULL. */
value_id graph_add(graph *g, op_id op, const char *name, int n_in, const value_id *in, const op_attrs *attrs, int n_out);
value_id graph_output_of(const graph *g, value_id first, int i);

/* Keeps v for the caller under `name`. */
void graph_keep(graph *g, value_id v, const char *name);

/* ---- for passes and the planner ---- */

/* Storage for one call made from a node: tensors with the values' types. */
typedef struct node_call {
    op_call call;
    ink_tensor in[OP_MAX_IN], out[OP_MAX_OUT];
} node_call;
void graph_call_of(const graph *g, const graph_node *n, node_call *c);

int graph_uses(const graph *g, value_id v);                        /* by live nodes, plus 1 if kept */
graph_node *graph_producer(const graph *g, value_id v);            /* live producer or NULL */
char *graph_name(graph *g, const char *fmt, ...) INK_PRINTF(2, 3); /* string owned by the graph */
#endif
