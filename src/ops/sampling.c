/* sampling.c - schemas of argmax and sample over FP32 logits [S, V].
 *
 * argmax: the lowest index among the largest values; NaN counts as larger than any number (so that damage shows).
 * sample, per row s, from params [S, 3] FP32 = temperature, top_p, repetition_penalty and seeds [S, 2] I64 = seed, step:
 *   1. repetition penalty over the distinct ids in history[s][0 .. history_len[s]): l > 0 ? l / penalty : l * penalty
 *   2. temperature 0: argmax. Otherwise p = softmax(l / temperature)
 *   3. top_p < 1: the smallest set of most probable ids (ties: lower id first) whose sum reaches top_p
 *   4. the id at which the cumulated probability, in order of id, passes u * sum, u = uniform number of (seed, step)
 * A row therefore depends on its own logits, history, parameters, seed and step only. */
#include "ops/op.h"

static ink_status infer_argmax(op_call *c)
{
    const ink_tensor *x = c->in[0];
    TRY(want_rank(c->op, "x", x, 2));
    TRY(want_dtype(c->op, "x", x, INK_F32));
    if (x->dims[1] < 1)
        return failure(INK_INVALID_ARGUMENT, "argmax: rows are empty");
    return out_shape(c, 0, INK_I32, 1, x->dims);
}

static ink_status infer_sample(op_call *c)
{
    const ink_tensor *x = c->in[0];
    TRY(want_rank(c->op, "logits", x, 2));
    TRY(want_dtype(c->op, "logits", x, INK_F32));
    if (x->dims[1] < 1)
        return failure(INK_INVALID_ARGUMENT, "sample: rows are empty");
    TRY(want_dtype(c->op, "params", c->in[1], INK_F32));
    TRY(want_shape(c->op, "params", c->in[1], 2, (int64_t[]){x->dims[0], 3}));
    TRY(want_dtype(c->op, "seeds", c->in[2], INK_I64));
    TRY(want_shape(c->op, "seeds", c->in[2], 2, (int64_t[]){x->dims[0], 2}));
    TRY(want_rank(c->op, "history", c->in[3], 2));
    TRY(want_dtype(c->op, "history", c->in[3], INK_I32));
    TRY(want_shape(c->op, "history", c->in[3], 2, (int64_t[]){x->dims[0], c->in[3]->dims[1]}));
    TRY(want_dtype(c->op, "history_len", c->in[4], INK_I32));
    TRY(want_shape(c->op, "history_len", c->in[4], 1, x->dims));
    return out_shape(c, 0, INK_I32, 1, x->dims);
}

static op_cost cost(const op_call *c) { return (op_cost){.bytes = tensor_bytes_or_0(c->in[0])}; }
static void describe(const op_call *c, strbuf *out) { tensor_shape_text(c->in[0], out); }

const op_schema schema_argmax = {
    .name = "argmax",
    .inputs = "x",
    .outputs = "index",
    .n_in = 1,
    .n_out = 1,
    .infer = infer_argmax,
    .cost = cost,
    .describe = describe,
};
const op_schema schema_sample = {
    .name = "sample",
    .inputs = "logits, params, seeds, history, history_len",
    .outputs = "ids",
    .n_in = 5,
    .n_out = 1,
    .infer = infer_sample,
    .cost = cost,
    .describe = describe,
};
