/* vision.c - the vision tower (spec 5.1 to 5.5) and the projector. */
#include "models/paddleocr_vl/graphs.h"

#include <math.h>

value_id vl_weight(graph *g, const ink_tensor *t) { return t->data ? graph_weight(g, "", t) : NO_VALUE; }

value_id vl_linear(graph *g, const char *name, value_id x, const affine_weights *w)
{
    return g_linear(g, name, x, vl_weight(g, &w->weight), vl_weight(g, &w->bias), NULL);
}

value_id vl_layer_norm(graph *g, const char *name, value_id x, const affine_weights *w, double epsilon)
{
    return g_layer_norm(g, name, x, vl_weight(g, &w->weight), vl_weight(g, &w->bias), (float)epsilon);
}

/* e[p] = W patch + b as a convolution whose stride is its kernel, then the resampled learned positions (5.1, 5.2). */
static value_id embed_patches(graph *g, const paddleocr_vl_config *c, const paddleocr_vl_weights *w,
                              const vl_graph_options *o, value_id grid)
{
    const paddleocr_vl_vision_config *v = &c->vision;
    dim shape[4] = {dim_of(DIM_PATCHES), dim_fixed(v->num_channels), dim_fixed(v->patch_size), dim_fixed(v->patch_size)};
    value_id x = graph_input(g, "patches", o->vision, 4, shape);
    if (x != NO_VALUE)
        g->values[x].type.layout = INK_NCHW;
    conv2d_attrs patch = {.strides = {v->patch_size, v->patch_size}, .dilations = {1, 1}, .groups = 1};
    x = g_conv2d(g, "patch_embedding", x, vl_weight(g, &w->patch_embedding.weight), vl_weight(g, &w->patch_embedding.bias),
                 &patch);
    x = g_reshape(g, x, 2, (int64_t[]){0, v->hidden_size});
    if (o->taps)
        graph_keep(g, x, "patch_conv");
    x = g_position_embedding(g, "position_embedding", x, vl_weight(g, &w->position_embedding), grid,
                             v->position_embedding_align_corners);
    if (o->taps)
        graph_keep(g, x, "patch_embeddings");
    return x;
}

/* Self-attention within each image (5.4 steps 1 to 5). */
static value_id attend(graph *g, int layer, const paddleocr_vl_config *c, const paddleocr_vl_vision_layer *w, value_id x,
                       value_id rope, value_id cu_seqlens)
{
    const paddleocr_vl_vision_config *v = &c->vision;
    const int64_t heads[3] = {0, v->num_attention_heads, v->head_dim};
    value_id h = vl_layer_norm(g, graph_name(g, "visual.layers.%d.layer_norm1", layer), x, &w->norm1, v->layer_norm_eps);
    value_id q = g_reshape(g, vl_linear(g, graph_name(g, "visual.layers.%d.self_attn.q_proj", layer), h, &w->q), 3, heads);
    value_id k = g_reshape(g, vl_linear(g, graph_name(g, "visual.layers.%d.self_attn.k_proj", layer), h, &w->k), 3, heads);
    value_id value =
        g_reshape(g, vl_linear(g, graph_name(g, "visual.layers.%d.self_attn.v_proj", layer), h, &w->v), 3, heads);
    q = g_rope(g, graph_name(g, "visual.layers.%d.self_attn.rope_q", layer), q, rope);
    k = g_rope(g, graph_name(g, "visual.layers.%d.self_attn.rope_k", layer), k, rope);
    attention_attrs full = {.scale = (float)(1 / sqrt(v->head_dim))};
    value_id a = g_attention(g, graph_name(g, "visual.layers.%d.self_attn", layer), q, k, value, cu_seqlens, &full);
    a = g_reshape(g, a, 2, (int64_t[]){0, v->hidden_size});
    value_id out = vl_linear(g, graph_name(g, "visual.layers.%d.self_attn.out_proj", layer), a, &w->out);
    return g_add(g, graph_name(g, "visual.layers.%d.add1", layer), x, out);
}

/* 5.4 step 6. */
static value_id mlp(graph *g, int layer, const paddleocr_vl_config *c, const paddleocr_vl_vision_layer *w, value_id x)
{
    value_id h =
        vl_layer_norm(g, graph_name(g, "visual.layers.%d.layer_norm2", layer), x, &w->norm2, c->vision.layer_norm_eps);
    h = vl_linear(g, graph_name(g, "visual.layers.%d.mlp.fc1", layer), h, &w->fc1);
    h = g_gelu(g, graph_name(g, "visual.layers.%d.mlp.gelu", layer), h, true);
    h = vl_linear(g, graph_name(g, "visual.layers.%d.mlp.fc2", layer), h, &w->fc2);
    return g_add(g, graph_name(g, "visual.layers.%d.add2", layer), x, h);
}

graph *paddleocr_vl_vision_graph(const paddleocr_vl_config *c, const paddleocr_vl_weights *w, const vl_graph_options *o)
{
    graph *g = graph_create(o->bounds);
    if (!g)
        return NULL;
    graph_set_module(g, MODULE_VISION);
    value_id positions = graph_input(g, "positions", INK_I32, 2, (dim[]){dim_of(DIM_PATCHES), dim_fixed(2)});
    value_id grid = graph_input(g, "grid_thw", INK_I32, 2, (dim[]){dim_of(DIM_IMAGES), dim_fixed(3)});
    value_id cu_seqlens = graph_input(g, "cu_seqlens", INK_I32, 1, (dim[]){dim_plus(DIM_IMAGES, 1)});
    rope_table_attrs axial = {.kind = ROPE_AXIAL_2D, .theta = (float)c->vision.rope_theta, .head_dim = c->vision.head_dim};
    value_id rope = g_rope_table(g, "visual.rope_table", positions, &axial);
    value_id x = embed_patches(g, c, w, o, grid);
    for (int i = 0; i < c->vision.num_hidden_layers; i++) {
        x = attend(g, i, c, &w->vision_layers[i], x, rope, cu_seqlens);
        x = mlp(g, i, c, &w->vision_layers[i], x);
        if (o->taps)
            graph_keep(g, x, graph_name(g, "vision_layer_%d", i));
    }
    graph_keep(g, vl_layer_norm(g, "visual.post_layernorm", x, &w->post_layernorm, c->vision.layer_norm_eps), "z");
    return g;
}

/* 5.5: norm with its own epsilon, 2 x 2 patches to one token, two linears around the exact GELU. */
graph *paddleocr_vl_projector_graph(const paddleocr_vl_config *c, const paddleocr_vl_weights *w, const vl_graph_options *o)
{
    graph *g = graph_create(o->bounds);
    if (!g)
        return NULL;
    graph_set_module(g, MODULE_PROJECTOR);
    value_id x = graph_input(g, "x", o->vision, 2, (dim[]){dim_of(DIM_PATCHES), dim_fixed(c->vision.hidden_size)});
    value_id grid = graph_input(g, "grid_thw", INK_I32, 2, (dim[]){dim_of(DIM_IMAGES), dim_fixed(3)});
    x = g_cast(g, "mlp_AR.cast", x, o->projector);
    x = vl_layer_norm(g, "mlp_AR.pre_norm", x, &w->pre_norm, c->projector_norm_eps);
    x = g_patch_merge(g, "mlp_AR.patch_merge", x, grid, c->vision.spatial_merge_size);
    x = g_gelu(g, "mlp_AR.gelu", vl_linear(g, "mlp_AR.linear_1", x, &w->linear_1), false);
    graph_keep(g, vl_linear(g, "mlp_AR.linear_2", x, &w->linear_2), "features");
    return g;
}
