#include "ops/op.h"

#include <string.h>

#define OP(name) extern const op_schema schema_##name;
#include "ops/ops.inc"
#undef OP

static const op_schema *const schemas[OP_COUNT] = {
#define OP(name) [OP_##name] = &schema_##name,
#include "ops/ops.inc"
#undef OP
};

const op_schema *op_schema_of(op_id op) { return schemas[op]; }

bool op_parse(const char *name, op_id *out)
{
    for (int i = 0; i < OP_COUNT; i++)
        if (!strcmp(schemas[i]->name, name)) {
            *out = (op_id)i;
            return true;
        }
    return false;
}

/* Finds input i in the schema's list "x, weight, bias?": start and length of its name; true when optional. */
static bool input_name(const op_schema *s, int i, const char **name, int *length)
{
    const char *p = s->inputs;
    for (; i > 0; i--)
        p = strchr(p, ',') + 2;
    size_t n = strcspn(p, ",");
    bool optional = n && p[n - 1] == '?';
    *name = p;
    *length = (int)(n - optional);
    return optional;
}

ink_status op_infer(op_call *c)
{
    const op_schema *s = schemas[c->op];
    for (int i = 0; i < s->n_in; i++) {
        const char *name;
        int n;
        bool optional = input_name(s, i, &name, &n);
        if (!c->in[i] && !optional)
            return failure(INK_INVALID_ARGUMENT, "%s: input %.*s is missing", s->name, n, name);
        if (c->in[i] && !s->strided && !ink_tensor_is_contiguous(c->in[i]))
            return failure(INK_INVALID_ARGUMENT, "%s: input %.*s must be contiguous", s->name, n, name);
    }
    return s->infer(c);
}

ink_dtype op_key_dtype(const op_call *c)
{
    int k = schemas[c->op]->key_input;
    return k < 0 ? INK_F32 : c->in[k]->dtype;
}

ink_layout op_key_layout(const op_call *c)
{
    return c->in[0] && (c->op == OP_conv2d || c->op == OP_fused_conv2d_add_act) ? c->in[0]->layout : INK_LAYOUT_ANY;
}

void op_describe(const op_call *c, strbuf *out)
{
    const op_schema *s = schemas[c->op];
    strbuf_printf(out, "%s %s %s ", s->name, ink_dtype_name(op_key_dtype(c)), ink_layout_name(op_key_layout(c)));
    s->describe(c, out);
}

double tensor_bytes_or_0(const ink_tensor *t) { return t ? (double)ink_tensor_bytes(t) : 0; }

op_cost op_cost_streaming(const op_call *c, double flops_per_output)
{
    op_cost k = {0};
    for (int i = 0; i < OP_MAX_IN; i++)
        k.bytes += tensor_bytes_or_0(c->in[i]);
    for (int i = 0; i < OP_MAX_OUT; i++)
        k.bytes += tensor_bytes_or_0(c->out[i]);
    if (c->out[0])
        k.flops = flops_per_output * (double)ink_tensor_numel(c->out[0]);
    return k;
}

void out_like(op_call *c, int i, const ink_tensor *like)
{
    if (!c->out[i])
        return;
    void *data = c->out[i]->data;
    *c->out[i] = *like;
    c->out[i]->data = data;
    tensor_make_contiguous(c->out[i]);
}

ink_status out_shape(op_call *c, int i, ink_dtype dtype, int rank, const int64_t *dims)
{
    if (!c->out[i])
        return INK_OK;
    ink_tensor t;
    if (ink_tensor_init(&t, dtype, rank, dims, c->out[i]->data) != INK_OK)
        return failure_in(INK_INVALID_ARGUMENT, "%s", schemas[c->op]->name);
    t.layout = c->in[0] ? c->in[0]->layout : INK_LAYOUT_ANY;
    *c->out[i] = t;
    return INK_OK;
}

ink_status want_shape(op_id op, const char *name, const ink_tensor *t, int rank, const int64_t *dims)
{
    if (!t)
        return INK_OK;
    bool same = t->rank == rank;
    for (int i = 0; same && i < rank; i++)
        same = t->dims[i] == dims[i];
    if (same)
        return INK_OK;
    strbuf is = {0}, want = {0};
    ink_tensor expected = {.rank = rank};
    for (int i = 0; i < rank; i++)
        expected.dims[i] = dims[i];
    tensor_shape_text(t, &is);
    tensor_shape_text(&expected, &want);
    ink_status s = failure(INK_INVALID_ARGUMENT, "%s: %s has shape %s, expected %s", schemas[op]->name, name,
                           strbuf_text(&is), strbuf_text(&want));
    strbuf_free(&is);
    strbuf_free(&want);
    return s;
}

ink_status want_rank(op_id op, const char *name, const ink_tensor *t, int rank)
{
    if (t && t->rank != rank)
        return failure(INK_INVALID_ARGUMENT, "%s: %s has rank %d, expected %d", schemas[op]->name, name, t->rank, rank);
    return INK_OK;
}

ink_status want_dtype(op_id op, const char *name, const ink_tensor *t, ink_dtype dtype)
{
    if (t && t->dtype != dtype)
        return failure(INK_INVALID_ARGUMENT, "%s: %s is %s, expected %s", schemas[op]->name, name, ink_dtype_name(t->dtype),
                       ink_dtype_name(dtype));
    return INK_OK;
}

ink_status want_float(op_id op, const char *name, const ink_tensor *t)
{
    if (t && t->dtype != INK_F32 && t->dtype != INK_F16 && t->dtype != INK_BF16)
        return failure(INK_INVALID_ARGUMENT, "%s: %s is %s, expected f32, f16 or bf16", schemas[op]->name, name,
                       ink_dtype_name(t->dtype));
    return INK_OK;
}

const char *activation_name(activation a)
{
    static const char *const names[] = {"none", "relu", "gelu_erf", "gelu_tanh", "silu"};
    return (unsigned)a < ACT_COUNT ? names[a] : "?";
}
