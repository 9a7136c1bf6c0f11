/* tensors.h - the tensors of a PaddleOCR-VL checkpoint: which there are, under which names, and where they are in memory.
 *
 * Two naming schemes exist for the same tensors. The hub's (`visual.`, `mlp_AR.`, `model.`) is the one used here; files
 * saved by transformers 5 may say `model.visual.`, `model.projector.`, `model.language_model.` instead. Either is found.
 *
 * Shapes below: V = vision hidden_size, F = vision intermediate_size, M = 4 V (merged), H = text hidden_size,
 * I = text intermediate_size, Q = heads * head_dim, K = kv heads * head_dim, G = position_grid. Linear weights are
 * row-major [out, in]. */
#ifndef MODELS_PADDLEOCR_VL_TENSORS_H
#define MODELS_PADDLEOCR_VL_TENSORS_H
#include "formats/safetensors.h"
#include "models/paddleocr_vl/config.h"

/* A weight with its bias, or with bias.data NULL where the model has none. */
typedef struct affine_weights {
    ink_tensor weight, bias;
} affine_weights;

typedef struct paddleocr_vl_vision_layer {
    affine_weights norm1;        /* [V], [V] */
    affine_weights q, k, v, out; /* [V, V], [V] */
    affine_weights norm2;
    affine_weights fc1; /* [F, V], [F] */
    affine_weights fc2; /* [V, F], [V] */
} paddleocr_vl_vision_layer;

typedef struct paddleocr_vl_text_layer {
    ink_tensor input_norm; /* [H] */
    ink_tensor q, k, v;    /* [Q, H], [K, H], [K, H] */
    ink_tensor o;          /* [H, Q] */
    ink_tensor post_norm;  /* [H] */
    ink_tensor gate, up;   /* [I, H] */
    ink_tensor down;       /* [H, I] */
} paddleocr_vl_text_layer;

/* Views of the checkpoint's memory in its own dtype (F32, F16 or BF16, which may differ from tensor to tensor). The set
 * the tensors came from must outlive this. */
typedef struct paddleocr_vl_weights {
    /* vision tower */
    affine_weights patch_embedding; /* [V, 3, patch, patch], [V] */
    ink_tensor position_embedding;  /* [G * G, V] */
    paddleocr_vl_vision_layer *vision_layers;
    affine_weights post_layernorm; /* [V], [V] */
    /* projector */
    affine_weights pre_norm; /* [V], [V] */
    affine_weights linear_1; /* [M, M], [M] */
    affine_weights linear_2; /* [H, M], [H] */
    /* language model */
    ink_tensor embed_tokens; /* [vocab, H] */
    paddleocr_vl_text_layer *text_layers;
    ink_tensor norm;    /* [H] */
    ink_tensor lm_head; /* [vocab, H]; the embedding itself when head_is_tied */
    bool head_is_tied;

    size_t bytes;        /* of all bound tensors, a shared head counted once */
    size_t unused_count; /* tensors of the file that nothing reads (pooling head, packing positions, ...) */
    size_t copied_bytes; /* copied because the file leaves them at an address their type cannot be loaded from; usually 0 */
    void **copies;       /* owned */
    size_t copy_count;
} paddleocr_vl_weights;

/* What a tensor is, for those who fill or describe a checkpoint. */
typedef enum paddleocr_vl_tensor_kind {
    PADDLEOCR_VL_MATRIX, /* also embeddings and the convolution's filter: rank 2 and more */
    PADDLEOCR_VL_NORM,   /* scale of a normalisation, near 1 */
    PADDLEOCR_VL_BIAS,
} paddleocr_vl_tensor_kind;

typedef enum paddleocr_vl_tensor_use {
    PADDLEOCR_VL_REQUIRED,
    PADDLEOCR_VL_HEAD,   /* lm_head.weight: the embedding takes its place if it is absent */
    PADDLEOCR_VL_UNUSED, /* published, never read in inference */
} paddleocr_vl_tensor_use;

typedef struct paddleocr_vl_tensor {
    char name[128]; /* hub name */
    int rank;
    int64_t dims[4];
    paddleocr_vl_tensor_kind kind;
    paddleocr_vl_tensor_use use;
    ink_tensor *slot; /* where binding puts it; NULL for unused ones or without weights */
} paddleocr_vl_tensor;

/* Every tensor a published checkpoint of this shape holds (620 for the 0.9B model), in hub order; free(*list). With
 * `weights`, whose layer arrays must exist, each entry also knows its slot. */
ink_status paddleocr_vl_tensor_list(const paddleocr_vl_config *c, paddleocr_vl_weights *weights, paddleocr_vl_tensor **list,
                                    size_t *count);

/* The other scheme's name of a hub name, e.g. "visual.x" to "model.visual.x"; cut if it does not fit. */
void paddleocr_vl_resaved_name(const char *hub_name, char *out, size_t size);

/* Finds every tensor. All missing, misshapen and wrongly typed ones are reported in one message (ink_last_error), one per
 * line. A file with `lm_head.weight` uses it, whatever tie_word_embeddings says; one without shares the embedding. Free
 * with paddleocr_vl_weights_free, also when this failed. */
ink_status paddleocr_vl_bind(const paddleocr_vl_config *c, const safetensors *st, paddleocr_vl_weights *out);
void paddleocr_vl_weights_free(paddleocr_vl_weights *w);
#endif
