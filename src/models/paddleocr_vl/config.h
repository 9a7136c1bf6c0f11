/* config.h - a PaddleOCR-VL checkpoint's settings: config.json, generation_config.json and the image processor's file.
 *
 * Both forms of config.json are read: flat (language-model fields at the root, as on the hub) and nested (`text_config`,
 * as transformers 5 saves it; fields of the language model at the root are then ignored, as transformers does). A missing
 * field takes the published model's value. Every number is checked; what the architecture here does not do (a bias in the
 * language model, another activation, scaled rope, quantised weights) is INK_UNIMPLEMENTED, not silently ignored. Errors
 * name file, field, value and what was expected. */
#ifndef MODELS_PADDLEOCR_VL_CONFIG_H
#define MODELS_PADDLEOCR_VL_CONFIG_H
#include "formats/files.h"

#define PADDLEOCR_VL_MAX_EOS 8

/* Language model (ERNIE-4.5 shape). */
typedef struct paddleocr_vl_text_config {
    int vocab_size, hidden_size, intermediate_size;
    int num_hidden_layers;
    int num_attention_heads, num_key_value_heads; /* heads are a multiple of kv heads */
    int head_dim;                                 /* independent of hidden_size / heads; even */
    double rms_norm_eps;
    double rope_theta;
    int mrope_section[3]; /* frequencies taking their position from time, height, width; sum is head_dim / 2 */
    int max_position_embeddings;
    bool tie_word_embeddings; /* informative: the file decides, see tensors.h */
} paddleocr_vl_text_config;

/* Vision tower (SigLIP shape). */
typedef struct paddleocr_vl_vision_config {
    int hidden_size, intermediate_size, num_hidden_layers, num_attention_heads;
    int head_dim;     /* hidden_size / heads; a multiple of 4, for two axes of rotated pairs */
    int num_channels; /* 3 */
    int patch_size, image_size;
    int position_grid; /* image_size / patch_size, rounded down: the learned positions are a square of this side */
    double layer_norm_eps;
    double rope_theta;
    int spatial_merge_size;                /* 2 */
    bool position_embedding_align_corners; /* how the grid is resampled; false unless the file says true */
} paddleocr_vl_vision_config;

/* Image processor. Limits count pixels of the resized image. */
typedef struct paddleocr_vl_image_config {
    int64_t min_pixels, max_pixels;
    double image_mean[3], image_std[3]; /* RGB */
    double rescale_factor;
} paddleocr_vl_image_config;

/* Generation. An id of -1 means there is none. */
typedef struct paddleocr_vl_generation_config {
    int eos_token_ids[PADDLEOCR_VL_MAX_EOS], eos_count; /* any of them ends the text */
    int bos_token_id, pad_token_id;
    int max_new_tokens; /* 0: not given */
    bool do_sample;
    double temperature, top_p, repetition_penalty; /* 1 where not given */
    int top_k;                                     /* 0: not given */
} paddleocr_vl_generation_config;

typedef struct paddleocr_vl_config {
    paddleocr_vl_text_config text;
    paddleocr_vl_vision_config vision;
    double projector_norm_eps; /* pre_norm of the projector: 1e-5, fixed in the reference's code */
    paddleocr_vl_image_config image;
    paddleocr_vl_generation_config generation;
    int image_token_id, vision_start_token_id, vision_end_token_id;
} paddleocr_vl_config;

/* The published 1.5 model's values. */
void paddleocr_vl_config_defaults(paddleocr_vl_config *c);

/* Reads the files of a checkpoint; config.json is required, the others are not. The image processor's settings come from
 * `processor_config.json` if it has an `image_processor` object, else from `preprocessor_config.json`. */
ink_status paddleocr_vl_config_read(const model_files *files, paddleocr_vl_config *out);

/* The single files, on top of what *c holds; `label` names the file in messages. paddleocr_vl_config_parse checks each
 * field as it goes, paddleocr_vl_config_check what concerns several fields or files: call it last. */
ink_status paddleocr_vl_config_parse(const void *json, size_t size, const char *label, paddleocr_vl_config *c);
ink_status paddleocr_vl_generation_parse(const void *json, size_t size, const char *label, paddleocr_vl_config *c);
ink_status paddleocr_vl_image_parse(const void *json, size_t size, const char *label, paddleocr_vl_config *c);
ink_status paddleocr_vl_config_check(const paddleocr_vl_config *c, const char *label);

bool paddleocr_vl_is_eos(const paddleocr_vl_config *c, int64_t id);

/* Width of one merged token before the projector: hidden_size times merge squared. */
static inline int paddleocr_vl_merged_size(const paddleocr_vl_config *c)
{
    return c->vision.hidden_size * c->vision.spatial_merge_size * c->vision.spatial_merge_size;
}
#endif
