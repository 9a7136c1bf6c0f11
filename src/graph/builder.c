#include "graph/builder.h"

#define INPUTS(...) \
    (int)(sizeof((value_id[]){__VA_ARGS__}) / sizeof(value_id)), (value_id[]) { __VA_ARGS__ }

value_id g_conv2d(graph *g, const char *name, value_id x, value_id filter, value_id bias, const conv2d_attrs *a)
{
    return graph_add(g, OP_conv2d, name, INPUTS(x, filter, bias), &(op_attrs){.conv2d = *a}, 1);
}
value_id g_linear(graph *g, const char *name, value_id x, value_id weight, value_id bias, const linear_attrs *a)
{
    return graph_add(g, OP_linear, name, INPUTS(x, weight, bias), a ? &(op_attrs){.linear = *a} : NULL, 1);
}
value_id g_layer_norm(graph *g, const char *name, value_id x, value_id scale, value_id bias, float epsilon)
{
    int axis = x == NO_VALUE ? 0 : g->values[x].type.rank - 1;
    return graph_add(g, OP_layer_norm, name, INPUTS(x, scale, bias), &(op_attrs){.norm = {epsilon, axis}}, 1);
}
value_id g_rms_norm(graph *g, const char *name, value_id x, value_id weight, float epsilon)
{
    return graph_add(g, OP_rms_norm, name, INPUTS(x, weight), &(op_attrs){.norm = {.epsilon = epsilon}}, 1);
}
value_id g_attention(graph *g, const char *name, value_id q, value_id k, value_id v, value_id cu_seqlens,
                     const attention_attrs *a)
{
    return graph_add(g, OP_attention, name, INPUTS(q, k, v, cu_seqlens), &(op_attrs){.attention = *a}, 1);
}
value_id g_paged_attention(graph *g, const char *name, value_id q, value_id k_pool, value_id v_pool, value_id block_table,
                           value_id lengths, value_id cu_seqlens, const attention_attrs *a)
{
    return graph_add(g, OP_paged_attention, name, INPUTS(q, k_pool, v_pool, block_table, lengths, cu_seqlens),
                     &(op_attrs){.attention = *a}, 1);
}
value_id g_kv_append(graph *g, const char *name, value_id k, value_id v, value_id slots, value_id k_pool, value_id v_pool,
                     value_id *v_out)
{
    value_id k_out = graph_add(g, OP_kv_append, name, INPUTS(k, v, slots, k_pool, v_pool), NULL, 2);
    *v_out = graph_output_of(g, k_out, 1);
    return k_out;
}
value_id g_rope_table(graph *g, const char *name, value_id positions, const rope_table_attrs *a)
{
    return graph_add(g, OP_rope_table, name, INPUTS(positions), &(op_attrs){.rope_table = *a}, 1);
}
value_id g_rope(graph *g, const char *name, value_id x, value_id table)
{
    return graph_add(g, OP_rope, name, INPUTS(x, table), NULL, 1);
}
value_id g_position_embedding(graph *g, const char *name, value_id x, value_id table, value_id grid_thw, bool align_corners)
{
    return graph_add(g, OP_position_embedding, name, INPUTS(x, table, grid_thw), &(op_attrs){.position = {align_corners}},
                     1);
}
value_id g_patch_merge(graph *g, const char *name, value_id x, value_id grid_thw, int merge)
{
    return graph_add(g, OP_patch_merge, name, INPUTS(x, grid_thw), &(op_attrs){.merge = {merge}}, 1);
}
value_id g_embedding(graph *g, const char *name, value_id ids, value_id weight)
{
    return graph_add(g, OP_embedding, name, INPUTS(ids, weight), NULL, 1);
}
value_id g_index_select(graph *g, const char *name, value_id x, value_id index)
{
    return graph_add(g, OP_index_select, name, INPUTS(x, index), NULL, 1);
}
value_id g_merge_multimodal(graph *g, const char *name, value_id x, value_id features, value_id rows)
{
    return graph_add(g, OP_merge_multimodal, name, INPUTS(x, features, rows), NULL, 1);
}
value_id g_gelu(graph *g, const char *name, value_id x, bool approximate)
{
    return graph_add(g, OP_gelu, name, INPUTS(x), &(op_attrs){.gelu = {approximate}}, 1);
}
value_id g_silu(graph *g, const char *name, value_id x) { return graph_add(g, OP_silu, name, INPUTS(x), NULL, 1); }
value_id g_add(graph *g, const char *name, value_id x, value_id y)
{
    return graph_add(g, OP_add, name, INPUTS(x, y), NULL, 1);
}
value_id g_multiply(graph *g, const char *name, value_id x, value_id y)
{
    return graph_add(g, OP_multiply, name, INPUTS(x, y), NULL, 1);
}
value_id g_cast(graph *g, const char *name, value_id x, ink_dtype to)
{
    if (x == NO_VALUE || g->values[x].type.dtype == to)
        return x;
    return graph_add(g, OP_cast, name, INPUTS(x), &(op_attrs){.cast = {to}}, 1);
}
value_id g_reshape(graph *g, value_id x, int rank, const int64_t *dims)
{
    op_attrs a = {.reshape = {.rank = rank}};
    for (int i = 0; i < rank && i < INK_MAX_RANK; i++)
        a.reshape.dims[i] = dims[i];
    return graph_add(g, OP_reshape, NULL, INPUTS(x), &a, 1);
}
value_id g_sample(graph *g, const char *name, value_id logits, value_id params, value_id seeds, value_id history,
                  value_id history_len)
{
    return graph_add(g, OP_sample, name, INPUTS(logits, params, seeds, history, history_len), NULL, 1);
}
