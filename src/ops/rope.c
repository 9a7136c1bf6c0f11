/* rope.c - schemas of rope_table and rope.
 *
 * rope_table: angles once per position, [T, D/2, 2] FP32 (cosine, sine), for the two forms of PaddleOCR-VL
 *   ROPE_AXIAL_2D (spec 5.3): positions [T, 2] = row, column; frequency i < D/4 turns with the row, the others with the
 *   column; omega_k = theta^(-2k / (D/2)), k = i mod D/4
 *   ROPE_MROPE (spec 6.4): positions [T, 3] = t, h, w; omega_i = theta^(-2i / D); contiguous sections
 * rope: half-split rotation of x [T, H, D] by the table, in FP32, rounded once:
 *   y_i = x_i cos_i - x_{i+D/2} sin_i;  y_{i+D/2} = x_{i+D/2} cos_i + x_i sin_i */
#include "ops/rope.h"

#include <math.h>

void rope_frequencies(const rope_table_attrs *a, float omega[ROPE_MAX_HALF], int axis[ROPE_MAX_HALF])
{
    const bool axial = a->kind == ROPE_AXIAL_2D;
    const int half = a->head_dim / 2, period = axial ? half / 2 : half;
    for (int i = 0; i < half; i++) {
        float exponent = (float)(2 * (i % period)) / (float)(2 * period);
        omega[i] = 1.0f / (float)pow(a->theta, exponent);
        axis[i] = axial ? i >= period : i < a->sections[0] ? 0 : i < a->sections[0] + a->sections[1] ? 1 : 2;
    }
}

static ink_status infer_rope_table(op_call *c)
{
    const rope_table_attrs *a = &c->attrs.rope_table;
    const ink_tensor *p = c->in[0];
    int axes = a->kind == ROPE_AXIAL_2D ? 2 : 3;
    if (a->head_dim < 2 || a->head_dim > 256 || a->head_dim % (a->kind == ROPE_AXIAL_2D ? 4 : 2))
        return failure(INK_INVALID_ARGUMENT, "rope_table: head_dim is %d, expected a multiple of %d up to 256", a->head_dim,
                       a->kind == ROPE_AXIAL_2D ? 4 : 2);
    if (!(a->theta > 0))
        return failure(INK_INVALID_ARGUMENT, "rope_table: theta is %g, expected a positive number", (double)a->theta);
    if (a->kind == ROPE_MROPE && (a->sections[0] < 0 || a->sections[1] < 0 || a->sections[2] < 0 ||
                                  a->sections[0] + a->sections[1] + a->sections[2] != a->head_dim / 2))
        return failure(INK_INVALID_ARGUMENT, "rope_table: sections %d,%d,%d do not add up to %d", a->sections[0],
                       a->sections[1], a->sections[2], a->head_dim / 2);
    TRY(want_rank(c->op, "positions", p, 2));
    TRY(want_dtype(c->op, "positions", p, INK_I32));
    TRY(want_shape(c->op, "positions", p, 2, (int64_t[]){p->dims[0], axes}));
    return out_shape(c, 0, INK_F32, 3, (int64_t[]){p->dims[0], a->head_dim / 2, 2});
}

static op_cost cost_rope_table(const op_call *c) { return op_cost_streaming(c, 20); }

static void describe_rope_table(const op_call *c, strbuf *out)
{
    strbuf_printf(out, "t%lld d%d %s", (long long)c->in[0]->dims[0], c->attrs.rope_table.head_dim,
                  c->attrs.rope_table.kind == ROPE_AXIAL_2D ? "axial_2d" : "mrope");
}

const op_schema schema_rope_table = {
    .name = "rope_table",
    .inputs = "positions",
    .outputs = "table",
    .n_in = 1,
    .n_out = 1,
    .key_input = -1,
    .infer = infer_rope_table,
    .cost = cost_rope_table,
    .describe = describe_rope_table,
};

static ink_status infer_rope(op_call *c)
{
    const ink_tensor *x = c->in[0], *table = c->in[1];
    TRY(want_float(c->op, "x", x));
    TRY(want_rank(c->op, "x", x, 3));
    if (x->dims[2] % 2)
        return failure(INK_INVALID_ARGUMENT, "rope: head size %lld is odd", (long long)x->dims[2]);
    TRY(want_dtype(c->op, "table", table, INK_F32));
    TRY(want_shape(c->op, "table", table, 3, (int64_t[]){x->dims[0], x->dims[2] / 2, 2}));
    out_like(c, 0, x);
    return INK_OK;
}

static op_cost cost_rope(const op_call *c) { return op_cost_streaming(c, 3); }
static void describe_rope(const op_call *c, strbuf *out) { tensor_shape_text(c->in[0], out); }

const op_schema schema_rope = {
    .name = "rope",
    .inputs = "x, table",
    .outputs = "y",
    .n_in = 2,
    .n_out = 1,
    .infer = infer_rope,
    .cost = cost_rope,
    .describe = describe_rope,
};
