/* language.c - the language model (spec 6): prompt in, then one token per sequence and step, over a paged KV cache. */
#include "models/paddleocr_vl/graphs.h"

#include <math.h>

typedef struct text_inputs {
    value_id rope, slots, block_table, lengths, cu_seqlens;
    bool decode;
} text_inputs;

static value_id project(graph *g, const char *part, int layer, value_id x, const ink_tensor *w, bool decode)
{
    return g_linear(g, graph_name(g, "layers.%d.%s", layer, part), x, vl_weight(g, w), NO_VALUE,
                    &(linear_attrs){.few_rows = decode});
}

/* x + o_proj(attention(rms_norm(x))): GQA, M-RoPE on q and k, K after rotation and V into the cache (6.2 to 6.4). */
static value_id attend(graph *g, int layer, const paddleocr_vl_config *c, const paddleocr_vl_text_layer *w, value_id x,
                       const text_inputs *in)
{
    const paddleocr_vl_text_config *t = &c->text;
    const int64_t q_heads[3] = {0, t->num_attention_heads, t->head_dim},
                  kv_heads[3] = {0, t->num_key_value_heads, t->head_dim};
    dim pool[4] = {dim_of(DIM_POOL), dim_fixed(t->num_key_value_heads), dim_fixed(KV_BLOCK), dim_fixed(t->head_dim)};
    ink_dtype dtype = x == NO_VALUE ? INK_F32 : g->values[x].type.dtype;
    value_id k_pool = graph_state(g, graph_name(g, "k_pool.%d", layer), dtype, 4, pool);
    value_id v_pool = graph_state(g, graph_name(g, "v_pool.%d", layer), dtype, 4, pool);
    value_id h = g_rms_norm(g, graph_name(g, "layers.%d.input_layernorm", layer), x, vl_weight(g, &w->input_norm),
                            (float)t->rms_norm_eps);
    value_id q = g_reshape(g, project(g, "self_attn.q_proj", layer, h, &w->q, in->decode), 3, q_heads);
    value_id k = g_reshape(g, project(g, "self_attn.k_proj", layer, h, &w->k, in->decode), 3, kv_heads);
    value_id v = g_reshape(g, project(g, "self_attn.v_proj", layer, h, &w->v, in->decode), 3, kv_heads);
    q = g_rope(g, graph_name(g, "layers.%d.self_attn.rope_q", layer), q, in->rope);
    k = g_rope(g, graph_name(g, "layers.%d.self_attn.rope_k", layer), k, in->rope);
    k_pool =
        g_kv_append(g, graph_name(g, "layers.%d.self_attn.kv_append", layer), k, v, in->slots, k_pool, v_pool, &v_pool);
    attention_attrs causal = {.scale = (float)(1 / sqrt(t->head_dim)), .causal = true, .few_rows = in->decode};
    value_id a = g_paged_attention(g, graph_name(g, "layers.%d.self_attn", layer), q, k_pool, v_pool, in->block_table,
                                   in->lengths, in->cu_seqlens, &causal);
    a = g_reshape(g, a, 2, (int64_t[]){0, (int64_t)t->num_attention_heads * t->head_dim});
    return g_add(g, graph_name(g, "layers.%d.add1", layer), x, project(g, "self_attn.o_proj", layer, a, &w->o, in->decode));
}

/* x + down(silu(gate(rms_norm(x))) * up(rms_norm(x))) */
static value_id mlp(graph *g, int layer, const paddleocr_vl_config *c, const paddleocr_vl_text_layer *w, value_id x,
                    bool decode)
{
    value_id h = g_rms_norm(g, graph_name(g, "layers.%d.post_attention_layernorm", layer), x, vl_weight(g, &w->post_norm),
                            (float)c->text.rms_norm_eps);
    value_id gate =
        g_silu(g, graph_name(g, "layers.%d.mlp.silu", layer), project(g, "mlp.gate_proj", layer, h, &w->gate, decode));
    value_id up = project(g, "mlp.up_proj", layer, h, &w->up, decode);
    h = g_multiply(g, graph_name(g, "layers.%d.mlp.multiply", layer), gate, up);
    return g_add(g, graph_name(g, "layers.%d.add2", layer), x, project(g, "mlp.down_proj", layer, h, &w->down, decode));
}

/* Final norm, FP32 logits and the next token of each sequence. */
static void finish(graph *g, const paddleocr_vl_config *c, const paddleocr_vl_weights *w, value_id x)
{
    dim s = dim_of(DIM_SEQUENCES);
    value_id params = graph_input(g, "params", INK_F32, 2, (dim[]){s, dim_fixed(3)});
    value_id seeds = graph_input(g, "seeds", INK_I64, 2, (dim[]){s, dim_fixed(2)});
    value_id history = graph_input(g, "history", INK_I32, 2, (dim[]){s, dim_of(DIM_HISTORY)});
    value_id history_len = graph_input(g, "history_len", INK_I32, 1, &s);
    x = g_rms_norm(g, "norm", x, vl_weight(g, &w->norm), (float)c->text.rms_norm_eps);
    value_id logits =
        g_linear(g, "lm_head", x, vl_weight(g, &w->lm_head), NO_VALUE, &(linear_attrs){.few_rows = true, .out_f32 = true});
    graph_keep(g, logits, "logits");
    graph_keep(g, g_sample(g, "sample", logits, params, seeds, history, history_len), "next");
}

static value_id layers(graph *g, const paddleocr_vl_config *c, const paddleocr_vl_weights *w, const vl_graph_options *o,
                       value_id x, dim tokens, bool decode)
{
    const paddleocr_vl_text_config *t = &c->text;
    dim s = dim_of(DIM_SEQUENCES);
    text_inputs in = {.decode = decode};
    value_id positions = graph_input(g, "positions", INK_I32, 2, (dim[]){tokens, dim_fixed(3)});
    in.slots = graph_input(g, "slots", INK_I32, 1, &tokens);
    in.block_table = graph_input(g, "block_table", INK_I32, 2, (dim[]){s, dim_of(DIM_KV_BLOCKS)});
    in.lengths = graph_input(g, "lengths", INK_I32, 1, &s);
    in.cu_seqlens = graph_input(g, "cu_seqlens", INK_I32, 1, (dim[]){dim_plus(DIM_SEQUENCES, 1)});
    rope_table_attrs mrope = {.kind = ROPE_MROPE,
                              .theta = (float)t->rope_theta,
                              .head_dim = t->head_dim,
                              .sections = {t->mrope_section[0], t->mrope_section[1], t->mrope_section[2]}};
    in.rope = g_rope_table(g, "rope_table", positions, &mrope);
    for (int i = 0; i < t->num_hidden_layers; i++) {
        x = attend(g, i, c, &w->text_layers[i], x, &in);
        x = mlp(g, i, c, &w->text_layers[i], x, decode);
        if (o->taps)
            graph_keep(g, x, graph_name(g, "text_layer_%d", i));
    }
    return x;
}

graph *paddleocr_vl_prefill_graph(const paddleocr_vl_config *c, const paddleocr_vl_weights *w, const vl_graph_options *o)
{
    graph *g = graph_create(o->bounds);
    dim tokens = dim_of(DIM_TOKENS), s = dim_of(DIM_SEQUENCES);
    if (!g)
        return NULL;
    graph_set_module(g, MODULE_TEXT);
    value_id ids = graph_input(g, "ids", INK_I32, 1, &tokens);
    value_id features =
        graph_input(g, "features", o->projector, 2, (dim[]){dim_of(DIM_FEATURES), dim_fixed(c->text.hidden_size)});
    value_id rows = graph_input(g, "feature_rows", INK_I32, 1, &tokens);
    value_id last = graph_input(g, "last", INK_I32, 1, &s);
    value_id x = g_embedding(g, "embed_tokens", ids, vl_weight(g, &w->embed_tokens));
    x = g_merge_multimodal(g, "merge_multimodal", x, g_cast(g, "features.cast", features, o->text), rows);
    x = layers(g, c, w, o, x, tokens, false);
    finish(g, c, w, g_index_select(g, "last_tokens", x, last));
    return g;
}

graph *paddleocr_vl_decode_graph(const paddleocr_vl_config *c, const paddleocr_vl_weights *w, const vl_graph_options *o)
{
    graph *g = graph_create(o->bounds);
    dim s = dim_of(DIM_SEQUENCES);
    if (!g)
        return NULL;
    graph_set_module(g, MODULE_TEXT);
    value_id ids = graph_input(g, "ids", INK_I32, 1, &s);
    value_id x = g_embedding(g, "embed_tokens", ids, vl_weight(g, &w->embed_tokens));
    finish(g, c, w, layers(g, c, w, o, x, s, true));
    return g;
}
