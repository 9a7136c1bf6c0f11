/* builder.h - one call per op, for models to be written in. Names may be NULL. */
#ifndef GRAPH_BUILDER_H
#define GRAPH_BUILDER_H
#include "graph/graph.h"

value_id g_conv2d(graph *g, const char *name, value_id x, value_id filter, value_id bias, const conv2d_attrs *a);
value_id g_linear(graph *g, const char *name, value_id x, value_id weight, value_id bias, const linear_attrs *a);
value_id g_layer_norm(graph *g, const char *name, value_id x, value_id scale, value_id bias, float epsilon); /* last axis */
value_id g_rms_norm(graph *g, const char *name, value_id x, value_id weight, float epsilon);
value_id g_attention(graph *g, const char *name, value_id q, value_id k, value_id v, value_id cu_seqlens,
                     const attention_attrs *a);
value_id g_paged_attention(graph *g, const char *name, value_id q, value_id k_pool, value_id v_pool, value_id block_table,
                           value_id lengths, value_id cu_seqlens, const attention_attrs *a);
/* Returns the updated k_pool; the updated v_pool goes to *v_out. Attention must read the returned values. */
value_id g_kv_append(graph *g, const char *name, value_id k, value_id v, value_id slots, value_id k_pool, value_id v_pool,
                     value_id *v_out);
value_id g_rope_table(graph *g, const char *name, value_id positions, const rope_table_attrs *a);
value_id g_rope(graph *g, const char *name, value_id x, value_id table);
value_id g_position_embedding(graph *g, const char *name, value_id x, value_id table, value_id grid_thw,
                              bool align_corners);
value_id g_patch_merge(graph *g, const char *name, value_id x, value_id grid_thw, int merge);
value_id g_embedding(graph *g, const char *name, value_id ids, value_id weight);
value_id g_index_select(graph *g, const char *name, value_id x, value_id index);
value_id g_merge_multimodal(graph *g, const char *name, value_id x, value_id features, value_id rows);
value_id g_gelu(graph *g, const char *name, value_id x, bool approximate);
value_id g_silu(graph *g, const char *name, value_id x);
value_id g_add(graph *g, const char *name, value_id x, value_id y);
value_id g_multiply(graph *g, const char *name, value_id x, value_id y);
value_id g_cast(graph *g, const char *name, value_id x, ink_dtype to); /* x itself when it already has that dtype */
value_id g_reshape(graph *g, value_id x, int rank, const int64_t *dims);
value_id g_sample(graph *g, const char *name, value_id logits, value_id params, value_id seeds, value_id history,
                  value_id history_len);
#endif
