/* linear_fuse.c - what follows a matrix product joins its epilogue: fewer passes over memory and one rounding less.
 *
 * linear_act_fuse:  gelu | silu | relu (linear(x))              -> linear(x, act)
 * linear_add_fuse:  add(r, linear(x)), operands in either order  -> linear(x, residual = r)
 * gated_mlp_fuse:   multiply(silu(linear(x, a)), linear(x, b))   -> linear_gated(x, a, b), no biases */
#include "graph/passes/pass.h"

/* The live linear that made v, if v has no other reader and no epilogue yet. */
static graph_node *plain_linear(const graph *g, value_id v, bool bias_allowed)
{
    graph_node *l = graph_producer(g, v);
    if (!l || l->op != OP_linear || graph_uses(g, v) != 1 || l->in[3] != NO_VALUE || l->attrs.linear.out_f32)
        return NULL;
    return l->in[2] == NO_VALUE || bias_allowed ? l : NULL;
}

/* The fused node takes the place of the later one, `old`, whose inputs all exist by then. */
static pass_result replace(graph *g, const device *d, graph_node *old, const graph_node *fused)
{
    if (!pass_has_kernel(g, d, fused))
        return PASS_NO_KERNEL;
    *old = *fused;
    return PASS_APPLIED;
}

static bool activation_of(const graph_node *n, activation *act)
{
    switch (n->op) {
    case OP_gelu: *act = n->attrs.gelu.approximate ? ACT_GELU_TANH : ACT_GELU_ERF; return true;
    case OP_silu: *act = ACT_SILU; return true;
    case OP_relu: *act = ACT_RELU; return true;
    default: return false;
    }
}

static pass_result fuse_activation(graph *g, const device *d, int node)
{
    graph_node *n = &g->nodes[node], *l;
    activation act;
    if (!activation_of(n, &act) || !(l = plain_linear(g, n->in[0], true)) || l->attrs.linear.act != ACT_NONE)
        return PASS_NO_MATCH;
    graph_node fused = *l;
    fused.attrs.linear.act = act;
    fused.out[0] = n->out[0];
    pass_result r = replace(g, d, n, &fused);
    l->dead = r == PASS_APPLIED;
    return r;
}

static pass_result fuse_add(graph *g, const device *d, int node)
{
    graph_node *n = &g->nodes[node], *l = NULL;
    int side = 1;
    if (n->op != OP_add || n->in[0] == n->in[1])
        return PASS_NO_MATCH;
    for (; side >= 0 && !l; side--)
        l = plain_linear(g, n->in[side], true);
    side++; /* the operand that is the linear */
    if (!l)
        return PASS_NO_MATCH;
    graph_node fused = *l;
    fused.in[3] = n->in[1 - side];
    fused.out[0] = n->out[0];
    pass_result r = replace(g, d, n, &fused);
    l->dead = r == PASS_APPLIED;
    return r;
}

static pass_result fuse_gated(graph *g, const device *d, int node)
{
    graph_node *n = &g->nodes[node];
    if (n->op != OP_multiply)
        return PASS_NO_MATCH;
    for (int side = 0; side < 2; side++) {
        graph_node *silu = graph_producer(g, n->in[side]);
        if (!silu || silu->op != OP_silu || graph_uses(g, n->in[side]) != 1)
            continue;
        graph_node *gate = plain_linear(g, silu->in[0], false), *up = plain_linear(g, n->in[1 - side], false);
        if (!gate || !up || gate->in[0] != up->in[0] || gate->attrs.linear.act != ACT_NONE ||
            up->attrs.linear.act != ACT_NONE || gate->attrs.linear.few_rows != up->attrs.linear.few_rows)
            continue;
        graph_node fused = *gate;
        fused.op = OP_linear_gated;
        fused.in[2] = up->in[1];
        fused.attrs.linear.act = ACT_SILU;
        fused.out[0] = n->out[0];
        pass_result r = replace(g, d, n, &fused);
        gate->dead = up->dead = silu->dead = r == PASS_APPLIED;
        return r;
    }
    return PASS_NO_MATCH;
}

const graph_pass pass_linear_act_fuse = {"linear_act_fuse", "matmul_add_act_fuse_pass", "linear + activation",
                                         fuse_activation};
const graph_pass pass_linear_add_fuse = {"linear_add_fuse", NULL, "linear + residual", fuse_add};
const graph_pass pass_gated_mlp_fuse = {"gated_mlp_fuse", NULL, "silu(linear) * linear", fuse_gated};
