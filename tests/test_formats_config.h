/* test_formats_config.h - two sets of settings compared field by field (structures have padding). */
#ifndef TEST_FORMATS_CONFIG_H
#define TEST_FORMATS_CONFIG_H
#include "models/paddleocr_vl/config.h"
#include "test_formats_support.h"

#define SAME(field)                               \
    do {                                          \
        if (!(a->field == b->field))              \
            fail_msg("settings differ: " #field); \
    } while (0)

static inline void assert_same_config(const paddleocr_vl_config *a, const paddleocr_vl_config *b)
{
    SAME(text.vocab_size);
    SAME(text.hidden_size);
    SAME(text.intermediate_size);
    SAME(text.num_hidden_layers);
    SAME(text.num_attention_heads);
    SAME(text.num_key_value_heads);
    SAME(text.head_dim);
    SAME(text.rms_norm_eps);
    SAME(text.rope_theta);
    SAME(text.max_position_embeddings);
    SAME(text.tie_word_embeddings);
    SAME(vision.hidden_size);
    SAME(vision.intermediate_size);
    SAME(vision.num_hidden_layers);
    SAME(vision.num_attention_heads);
    SAME(vision.head_dim);
    SAME(vision.num_channels);
    SAME(vision.patch_size);
    SAME(vision.image_size);
    SAME(vision.position_grid);
    SAME(vision.layer_norm_eps);
    SAME(vision.rope_theta);
    SAME(vision.spatial_merge_size);
    SAME(vision.position_embedding_align_corners);
    SAME(projector_norm_eps);
    SAME(image.min_pixels);
    SAME(image.max_pixels);
    if (a->image.rescale_factor < b->image.rescale_factor * (1 - 1e-14) ||
        a->image.rescale_factor > b->image.rescale_factor * (1 + 1e-14)) /* files hold 15 digits */
        fail_msg("settings differ: image.rescale_factor");
    for (int i = 0; i < 3; i++) {
        SAME(text.mrope_section[i]);
        SAME(image.image_mean[i]);
        SAME(image.image_std[i]);
    }
    SAME(generation.eos_count);
    for (int i = 0; i < a->generation.eos_count; i++)
        SAME(generation.eos_token_ids[i]);
    SAME(generation.bos_token_id);
    SAME(generation.pad_token_id);
    SAME(generation.max_new_tokens);
    SAME(generation.do_sample);
    SAME(generation.temperature);
    SAME(generation.top_p);
    SAME(generation.repetition_penalty);
    SAME(generation.top_k);
    SAME(image_token_id);
    SAME(vision_start_token_id);
    SAME(vision_end_token_id);
}
#undef SAME
#endif
