/* graphs.h - PaddleOCR-VL as four graphs: vision tower, projector, prefill, decode. Section numbers refer to
 * docs/spec/model.md.
 *
 * Names of inputs (i32 unless said), with P patches, I images, N = P / 4 features, T tokens, S sequences:
 *   vision     patches [P, 3, patch, patch] dtype; positions [P, 2] row, column; grid_thw [I, 3]; cu_seqlens [I + 1]
 *   projector  x [P, V] in the vision tower's dtype; grid_thw [I, 3]
 *   prefill    ids [T]; features [N, H] in the projector's dtype; feature_rows [T] (-1: a text token); positions [T, 3];
 *              slots [T]; block_table [S, B]; lengths [S]; cu_seqlens [S + 1]; last [S]: row of each sequence's last token;
 *              and the sampler's params [S, 3] f32, seeds [S, 2] i64, history [S, X], history_len [S]
 *   decode     as prefill without features, feature_rows and last, with T = S
 * States k_pool.L and v_pool.L [blocks, KV, 32, head_dim] of each text layer L. Outputs: vision "z" [P, V], projector
 * "features" [N, H], prefill and decode "logits" [S, vocab] f32 and "next" [S]. With `taps`, also the activations that the
 * golden files record: patch_conv, patch_embeddings, vision_layer_L, text_layer_L. */
#ifndef MODELS_PADDLEOCR_VL_GRAPHS_H
#define MODELS_PADDLEOCR_VL_GRAPHS_H
#include "graph/builder.h"
#include "models/paddleocr_vl/tensors.h"

/* Module names, as in the reference's _keep_in_fp32_modules. */
#define MODULE_VISION "visual"
#define MODULE_PROJECTOR "mlp_AR"
#define MODULE_TEXT "language_model"

typedef struct vl_graph_options {
    ink_dtype vision, projector, text; /* of activations and weights of each module */
    int64_t bounds[DIM_SYMBOLS];
    bool taps;
} vl_graph_options;

/* Each returns a graph whose weights point into *w, which must outlive it; NULL only when memory is short. Other mistakes
 * show in graph_status. */
graph *paddleocr_vl_vision_graph(const paddleocr_vl_config *c, const paddleocr_vl_weights *w, const vl_graph_options *o);
graph *paddleocr_vl_projector_graph(const paddleocr_vl_config *c, const paddleocr_vl_weights *w, const vl_graph_options *o);
graph *paddleocr_vl_prefill_graph(const paddleocr_vl_config *c, const paddleocr_vl_weights *w, const vl_graph_options *o);
graph *paddleocr_vl_decode_graph(const paddleocr_vl_config *c, const paddleocr_vl_weights *w, const vl_graph_options *o);

/* ---- shared by the graph files ---- */
value_id vl_weight(graph *g, const ink_tensor *t); /* NO_VALUE for a tensor without data (no bias) */
value_id vl_linear(graph *g, const char *name, value_id x, const affine_weights *w);
value_id vl_layer_norm(graph *g, const char *name, value_id x, const affine_weights *w, double epsilon);
#endif
