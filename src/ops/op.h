/* op.h - an operator's schema: names, validation, shape inference, cost. No arithmetic lives here.
 *
 * One op_call describes one invocation. The same `infer` serves the graph builder, the planner, the executor and the
 * eager calls, so that there is one shape function and one error message per mistake; kernels never validate again. */
#ifndef OPS_OP_H
#define OPS_OP_H
#include "core/tensor.h"
#include "ops/attrs.h"

typedef enum op_id {
#define OP(name) OP_##name,
#include "ops/ops.inc"
#undef OP
    OP_COUNT
} op_id;

enum { OP_MAX_IN = 16, OP_MAX_OUT = 8, KV_BLOCK = 32 /* tokens per block of the paged KV pool */ };

typedef struct op_call {
    op_id op;
    const ink_tensor *in[OP_MAX_IN]; /* NULL: an optional input that is absent */
    ink_tensor *out[OP_MAX_OUT];
    op_attrs attrs;
    /* set by whoever runs the call */
    void *workspace; /* 64-byte aligned, any bits */
    size_t workspace_bytes;
    int threads;
} op_call;

typedef struct op_cost {
    double flops; /* 2 per multiply-add */
    double bytes; /* each input read once, each output written once */
} op_cost;

typedef struct op_schema {
    const char *name;
    const char *inputs; /* "x, weight, bias?": a question mark makes it optional */
    const char *outputs;
    int n_in, n_out;
    int key_input;         /* whose dtype is the registry key; -1: always F32 */
    int alias[OP_MAX_OUT]; /* 1 + index of the input whose storage output i is (state ops, reshape); 0: its own */
    bool view;             /* changes shape only: no kernel runs */
    bool strided;          /* accepts inputs that are not contiguous */

    /* Checks attributes and inputs, then fills the non-NULL out[]: dtype, dims, contiguous strides, layout. Required
     * inputs are present and inputs contiguous (unless `strided`) when it is called; call op_infer, not this. */
    ink_status (*infer)(op_call *c);
    op_cost (*cost)(const op_call *c);
    /* Attributes and shapes for a case descriptor: "m64 n1152 k1152 act=gelu_tanh bias". */
    void (*describe)(const op_call *c, strbuf *out);
} op_schema;

const op_schema *op_schema_of(op_id op);
bool op_parse(const char *name, op_id *out);

/* Validation and shape inference; every message starts with the op's name. */
ink_status op_infer(op_call *c);

/* The registry key of a call. */
ink_dtype op_key_dtype(const op_call *c);
ink_layout op_key_layout(const op_call *c);

/* "linear bf16 any m5 n17 k31 bias": op, dtype, layout, then the schema's part. */
void op_describe(const op_call *c, strbuf *out);

/* ---- for the schema files ---- */
double tensor_bytes_or_0(const ink_tensor *t);                        /* as double; 0 for NULL */
op_cost op_cost_streaming(const op_call *c, double flops_per_output); /* all inputs and outputs once */
void out_like(op_call *c, int i, const ink_tensor *like);
ink_status out_shape(op_call *c, int i, ink_dtype dtype, int rank, const int64_t *dims);
/* "linear: bias has shape [3], expected [17]" unless t (optional: NULL passes) has these dims; and so on. */
ink_status want_shape(op_id op, const char *name, const ink_tensor *t, int rank, const int64_t *dims);
ink_status want_rank(op_id op, const char *name, const ink_tensor *t, int rank);
ink_status want_dtype(op_id op, const char *name, const ink_tensor *t, ink_dtype dtype);
ink_status want_float(op_id op, const char *name, const ink_tensor *t); /* F32, F16 or BF16 */
const char *activation_name(activation a);
#endif
