#include "models/paddleocr_vl/config.h"

#include "core/strbuf.h"
#include "formats/json.h"

#include <stdlib.h>
#include <string.h>

#define MAX_WIDTH 65536 /* of any hidden vector: products of two stay far inside 63 bits */
#define MAX_LAYERS 1024
#define MAX_HEADS 1024
#define MAX_VOCAB (1 << 24)
#define MAX_POSITIONS (1 << 26)
#define MAX_PIXELS ((int64_t)1 << 31)

void paddleocr_vl_config_defaults(paddleocr_vl_config *c)
{
    *c = (paddleocr_vl_config){
        .text = {.vocab_size = 103424,
                 .hidden_size = 1024,
                 .intermediate_size = 3072,
                 .num_hidden_layers = 18,
                 .num_attention_heads = 16,
                 .num_key_value_heads = 2,
                 .head_dim = 128,
                 .rms_norm_eps = 1e-5,
                 .rope_theta = 500000,
                 .mrope_section = {16, 24, 24},
                 .max_position_embeddings = 131072},
        .vision = {.hidden_size = 1152,
                   .intermediate_size = 4304,
                   .num_hidden_layers = 27,
                   .num_attention_heads = 16,
                   .head_dim = 72,
                   .num_channels = 3,
                   .patch_size = 14,
                   .image_size = 384,
                   .position_grid = 27,
                   .layer_norm_eps = 1e-6,
                   .rope_theta = 10000,
                   .spatial_merge_size = 2},
        .projector_norm_eps = 1e-5,
        .image = {.min_pixels = 112896,
                  .max_pixels = 1003520,
                  .image_mean = {0.5, 0.5, 0.5},
                  .image_std = {0.5, 0.5, 0.5},
                  .rescale_factor = 1.0 / 255},
        .generation = {.eos_token_ids = {2},
                       .eos_count = 1,
                       .bos_token_id = 1,
                       .pad_token_id = 0,
                       .temperature = 1,
                       .top_p = 1,
                       .repetition_penalty = 1},
        .image_token_id = 100295,
        .vision_start_token_id = 101305,
        .vision_end_token_id = 101306,
    };
}

/* ---- fields that several sections share ---- */

/* A field whose value must be one of the names given (NULL-terminated); absent is fine. */
static ink_status expect_name(const json_fields *f, const char *name, const char *const *allowed)
{
    const char *value = NULL;
    TRY(json_text(f, name, &value));
    for (size_t i = 0; value && allowed[i]; i++)
        if (!strcmp(value, allowed[i]))
            return INK_OK;
    return value ? failure(INK_UNIMPLEMENTED, "%s: %s%s is \"%.64s\", only \"%s\" is supported", f->label, f->path, name,
                           value, allowed[0])
                 : INK_OK;
}

static ink_status expect_bool(const json_fields *f, const char *name, bool wanted)
{
    bool value = wanted;
    TRY(json_bool(f, name, &value));
    if (value != wanted)
        return failure(INK_UNIMPLEMENTED, "%s: %s%s is %s, only %s is supported", f->label, f->path, name,
                       value ? "true" : "false", wanted ? "true" : "false");
    return INK_OK;
}

static ink_status expect_int(const json_fields *f, const char *name, int wanted)
{
    int value = wanted;
    TRY(json_int32(f, name, INT32_MIN, INT32_MAX, &value));
    if (value != wanted)
        return failure(INK_UNIMPLEMENTED, "%s: %s%s is %d, only %d is supported", f->label, f->path, name, value, wanted);
    return INK_OK;
}

static ink_status read_eos(const json_fields *f, paddleocr_vl_generation_config *g)
{
    const json_t *v = json_has(f, "eos_token_id") ? json_object_get(f->object, "eos_token_id") : NULL;
    if (!v)
        return INK_OK;
    if (!json_is_array(v)) {
        TRY(json_int32(f, "eos_token_id", 0, MAX_VOCAB, &g->eos_token_ids[0]));
        g->eos_count = 1;
        return INK_OK;
    }
    size_t n = json_array_size(v);
    if (n < 1 || n > PADDLEOCR_VL_MAX_EOS)
        return failure(INK_BAD_DATA, "%s: %seos_token_id lists %zu ids, expected 1 to %d", f->label, f->path, n,
                       PADDLEOCR_VL_MAX_EOS);
    TRY(json_ints(f, "eos_token_id", n, 0, MAX_VOCAB, g->eos_token_ids));
    g->eos_count = (int)n;
    return INK_OK;
}

static ink_status read_token_ids(const json_fields *f, paddleocr_vl_generation_config *g)
{
    TRY(read_eos(f, g));
    TRY(json_int32(f, "bos_token_id", -1, MAX_VOCAB, &g->bos_token_id));
    return json_int32(f, "pad_token_id", -1, MAX_VOCAB, &g->pad_token_id);
}

/* ---- config.json ---- */

/* Rope in any of its spellings: rope_theta beside rope_scaling, or both inside rope_parameters. */
static ink_status read_text_rope(const json_fields *f, paddleocr_vl_text_config *t)
{
    static const char *const plain[] = {"default", "mrope", NULL};
    TRY(json_number(f, "rope_theta", 1, 1e12, &t->rope_theta));
    static const char *const spellings[] = {"rope_scaling", "rope_parameters"};
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        json_fields rope;
        TRY(json_sub(f, spellings[i], &rope));
        TRY(expect_name(&rope, "rope_type", plain));
        TRY(expect_name(&rope, "type", plain));
        TRY(json_number(&rope, "rope_theta", 1, 1e12, &t->rope_theta));
        TRY(json_ints(&rope, "mrope_section", 3, 0, MAX_WIDTH, t->mrope_section));
    }
    return INK_OK;
}

static ink_status read_text(const json_fields *f, paddleocr_vl_text_config *t)
{
    static const char *const silu[] = {"silu", "swish", NULL};
    TRY(json_int32(f, "vocab_size", 1, MAX_VOCAB, &t->vocab_size));
    TRY(json_int32(f, "hidden_size", 1, MAX_WIDTH, &t->hidden_size));
    TRY(json_int32(f, "intermediate_size", 1, MAX_WIDTH, &t->intermediate_size));
    TRY(json_int32(f, "num_hidden_layers", 1, MAX_LAYERS, &t->num_hidden_layers));
    TRY(json_int32(f, "num_attention_heads", 1, MAX_HEADS, &t->num_attention_heads));
    if (f->object && json_is_null(json_object_get(f->object, "num_key_value_heads")))
        t->num_key_value_heads = t->num_attention_heads;
    TRY(json_int32(f, "num_key_value_heads", 1, MAX_HEADS, &t->num_key_value_heads));
    if (f->object && json_is_null(json_object_get(f->object, "head_dim")))
        t->head_dim = t->hidden_size / t->num_attention_heads;
    TRY(json_int32(f, "head_dim", 2, 1024, &t->head_dim));
    TRY(json_number(f, "rms_norm_eps", 0, 1, &t->rms_norm_eps));
    TRY(json_int32(f, "max_position_embeddings", 1, MAX_POSITIONS, &t->max_position_embeddings));
    TRY(json_bool(f, "tie_word_embeddings", &t->tie_word_embeddings));
    TRY(expect_name(f, "hidden_act", silu));
    TRY(expect_bool(f, "use_bias", false));
    return read_text_rope(f, t);
}

static ink_status read_vision(const json_fields *f, paddleocr_vl_vision_config *v)
{
    static const char *const gelu_tanh[] = {"gelu_pytorch_tanh", "gelu_tanh", NULL};
    static const char *const axial[] = {"axial", "default", NULL};
    json_fields rope;
    TRY(json_int32(f, "hidden_size", 4, MAX_WIDTH / 4, &v->hidden_size));
    TRY(json_int32(f, "intermediate_size", 1, MAX_WIDTH, &v->intermediate_size));
    TRY(json_int32(f, "num_hidden_layers", 1, MAX_LAYERS, &v->num_hidden_layers));
    TRY(json_int32(f, "num_attention_heads", 1, MAX_HEADS, &v->num_attention_heads));
    TRY(expect_int(f, "num_channels", 3));
    TRY(json_int32(f, "patch_size", 1, 256, &v->patch_size));
    TRY(json_int32(f, "image_size", 1, MAX_WIDTH, &v->image_size));
    TRY(json_number(f, "layer_norm_eps", 0, 1, &v->layer_norm_eps));
    TRY(expect_int(f, "spatial_merge_size", 2));
    TRY(expect_name(f, "hidden_act", gelu_tanh));
    TRY(json_bool(f, "position_embedding_align_corners", &v->position_embedding_align_corners));
    TRY(json_number(f, "rope_theta", 1, 1e12, &v->rope_theta));
    TRY(json_sub(f, "rope_parameters", &rope));
    TRY(expect_name(&rope, "rope_type", axial));
    TRY(json_number(&rope, "rope_theta", 1, 1e12, &v->rope_theta));
    v->head_dim = v->hidden_size / v->num_attention_heads;
    v->position_grid = v->image_size / v->patch_size;
    return INK_OK;
}

static ink_status read_model_type(const json_fields *f)
{
    const char *type = NULL;
    TRY(json_text(f, "model_type", &type));
    if (!type)
        return failure(INK_BAD_DATA, "%s: model_type is missing, expected \"paddleocr_vl\"", f->label);
    if (strcmp(type, "paddleocr_vl") != 0)
        return failure(INK_UNIMPLEMENTED, "%s: model_type is \"%.64s\", only \"paddleocr_vl\" is supported", f->label,
                       type);
    if (json_has(f, "quantization_config"))
        return failure(INK_UNIMPLEMENTED, "%s: quantization_config is set; quantised checkpoints are not supported",
                       f->label);
    return INK_OK;
}

static ink_status read_config(const json_fields *root, paddleocr_vl_config *c)
{
    json_fields text, vision;
    TRY(read_model_type(root));
    TRY(json_sub(root, "text_config", &text));
    TRY(json_sub(root, "vision_config", &vision));
    if (!text.object)
        text = *root;
    TRY(json_bool(root, "tie_word_embeddings", &c->text.tie_word_embeddings));
    TRY(read_text(&text, &c->text));
    TRY(read_vision(&vision, &c->vision));
    TRY(read_token_ids(root, &c->generation));
    if (text.object != root->object)
        TRY(read_token_ids(&text, &c->generation));
    TRY(json_int32(root, "image_token_id", 0, MAX_VOCAB, &c->image_token_id));
    TRY(json_int32(root, "vision_start_token_id", 0, MAX_VOCAB, &c->vision_start_token_id));
    return json_int32(root, "vision_end_token_id", 0, MAX_VOCAB, &c->vision_end_token_id);
}

/* ---- generation_config.json ---- */

static ink_status read_generation(const json_fields *f, paddleocr_vl_config *c)
{
    paddleocr_vl_generation_config *g = &c->generation;
    TRY(read_token_ids(f, g));
    TRY(json_int32(f, "max_new_tokens", 1, MAX_POSITIONS, &g->max_new_tokens));
    TRY(json_bool(f, "do_sample", &g->do_sample));
    TRY(json_number(f, "temperature", 0, 1000, &g->temperature));
    TRY(json_number(f, "top_p", 0, 1, &g->top_p));
    TRY(json_int32(f, "top_k", 0, MAX_VOCAB, &g->top_k));
    return json_number(f, "repetition_penalty", 1e-6, 1000, &g->repetition_penalty);
}

/* ---- image processor ---- */

/* A list of three numbers, or one for all channels. */
static ink_status read_channels(const json_fields *f, const char *name, double lo, double hi, double values[3])
{
    if (json_has(f, name) && json_is_number(json_object_get(f->object, name))) {
        TRY(json_number(f, name, lo, hi, &values[0]));
        values[1] = values[2] = values[0];
        return INK_OK;
    }
    return json_numbers(f, name, 3, lo, hi, values);
}

/* Explicit min_pixels/max_pixels win over the ones in `size`, which win over its edges (areas in spite of their name). */
static ink_status read_limits(const json_fields *f, paddleocr_vl_image_config *image)
{
    json_fields size;
    TRY(json_sub(f, "size", &size));
    TRY(json_int(&size, "shortest_edge", 1, MAX_PIXELS, &image->min_pixels));
    TRY(json_int(&size, "longest_edge", 1, MAX_PIXELS, &image->max_pixels));
    TRY(json_int(&size, "min_pixels", 1, MAX_PIXELS, &image->min_pixels));
    TRY(json_int(&size, "max_pixels", 1, MAX_PIXELS, &image->max_pixels));
    TRY(json_int(f, "min_pixels", 1, MAX_PIXELS, &image->min_pixels));
    return json_int(f, "max_pixels", 1, MAX_PIXELS, &image->max_pixels);
}

static ink_status read_image(const json_fields *f, paddleocr_vl_config *c)
{
    paddleocr_vl_image_config *image = &c->image;
    TRY(read_limits(f, image));
    if (image->min_pixels > image->max_pixels)
        return failure(INK_BAD_DATA, "%s: min_pixels %lld is larger than max_pixels %lld", f->label,
                       (long long)image->min_pixels, (long long)image->max_pixels);
    TRY(read_channels(f, "image_mean", -10, 10, image->image_mean));
    TRY(read_channels(f, "image_std", 1e-6, 1e6, image->image_std));
    TRY(json_number(f, "rescale_factor", 1e-9, 1e9, &image->rescale_factor));
    TRY(expect_bool(f, "do_resize", true));
    TRY(expect_bool(f, "do_rescale", true));
    TRY(expect_bool(f, "do_normalize", true));
    TRY(expect_int(f, "resample", 3)); /* PIL's number of the bicubic filter */
    TRY(expect_int(f, "temporal_patch_size", 1));
    TRY(expect_int(f, "merge_size", c->vision.spatial_merge_size));
    return expect_int(f, "patch_size", c->vision.patch_size);
}

/* ---- files ---- */

typedef ink_status (*section_reader)(const json_fields *f, paddleocr_vl_config *c);

static ink_status parse(const void *json, size_t size, const char *label, section_reader read, paddleocr_vl_config *c)
{
    json_t *object;
    TRY(json_parse_object(json, size, label, &object));
    json_fields f = json_fields_of(object, label);
    ink_status s = read(&f, c);
    json_decref(object);
    return s;
}

static ink_status read_image_file(const json_fields *f, paddleocr_vl_config *c)
{
    json_fields nested;
    TRY(json_sub(f, "image_processor", &nested));
    return read_image(nested.object ? &nested : f, c);
}

ink_status paddleocr_vl_config_parse(const void *json, size_t size, const char *label, paddleocr_vl_config *c)
{
    return parse(json, size, label, read_config, c);
}

ink_status paddleocr_vl_generation_parse(const void *json, size_t size, const char *label, paddleocr_vl_config *c)
{
    return parse(json, size, label, read_generation, c);
}

ink_status paddleocr_vl_image_parse(const void *json, size_t size, const char *label, paddleocr_vl_config *c)
{
    return parse(json, size, label, read_image_file, c);
}

ink_status paddleocr_vl_config_check(const paddleocr_vl_config *c, const char *label)
{
    const paddleocr_vl_text_config *t = &c->text;
    const paddleocr_vl_vision_config *v = &c->vision;
    if (t->num_attention_heads % t->num_key_value_heads)
        return failure(INK_BAD_DATA, "%s: num_attention_heads %d is not a multiple of num_key_value_heads %d", label,
                       t->num_attention_heads, t->num_key_value_heads);
    if (t->head_dim % 2)
        return failure(INK_BAD_DATA, "%s: head_dim is %d, expected an even number", label, t->head_dim);
    int sections = t->mrope_section[0] + t->mrope_section[1] + t->mrope_section[2];
    if (sections != t->head_dim / 2)
        return failure(INK_BAD_DATA, "%s: mrope_section [%d,%d,%d] sums to %d, expected head_dim / 2 = %d", label,
                       t->mrope_section[0], t->mrope_section[1], t->mrope_section[2], sections, t->head_dim / 2);
    if (v->hidden_size % v->num_attention_heads || v->head_dim % 4)
        return failure(INK_BAD_DATA, "%s: vision_config.hidden_size %d over num_attention_heads %d must be a multiple of 4",
                       label, v->hidden_size, v->num_attention_heads);
    if (v->position_grid < 1)
        return failure(INK_BAD_DATA, "%s: vision_config.image_size %d is smaller than patch_size %d", label, v->image_size,
                       v->patch_size);
    const struct {
        const char *name;
        int id;
    } ids[] = {{"image_token_id", c->image_token_id},
               {"vision_start_token_id", c->vision_start_token_id},
               {"vision_end_token_id", c->vision_end_token_id},
               {"bos_token_id", c->generation.bos_token_id},
               {"pad_token_id", c->generation.pad_token_id}};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (ids[i].id >= t->vocab_size)
            return failure(INK_BAD_DATA, "%s: %s is %d, expected less than vocab_size %d", label, ids[i].name, ids[i].id,
                           t->vocab_size);
    for (int i = 0; i < c->generation.eos_count; i++)
        if (c->generation.eos_token_ids[i] >= t->vocab_size)
            return failure(INK_BAD_DATA,
                           "%s: eos_token_id (here or in generation_config.json) is %d, expected less than vocab_size %d",
                           label, c->generation.eos_token_ids[i], t->vocab_size);
    return INK_OK;
}

/* Reads an optional file if it is there. */
static ink_status read_file(const model_files *files, const char *name, bool required, section_reader read,
                            paddleocr_vl_config *c)
{
    if (!required && !model_files_has(files, name))
        return INK_OK;
    model_file file;
    TRY(model_file_open(files, name, &file));
    ink_status s = parse(file.data, file.size, file.label, read, c);
    model_file_close(&file);
    return s;
}

/* processor_config.json also exists without image settings; it then says nothing here. */
static ink_status read_processor_file(const json_fields *f, paddleocr_vl_config *c)
{
    json_fields nested;
    TRY(json_sub(f, "image_processor", &nested));
    return nested.object ? read_image(&nested, c) : INK_NOT_FOUND;
}

ink_status paddleocr_vl_config_read(const model_files *files, paddleocr_vl_config *out)
{
    paddleocr_vl_config_defaults(out);
    TRY(read_file(files, "config.json", true, read_config, out));
    TRY(read_file(files, "generation_config.json", false, read_generation, out));
    ink_status s = model_files_has(files, "processor_config.json")
                       ? read_file(files, "processor_config.json", true, read_processor_file, out)
                       : INK_NOT_FOUND;
    if (s == INK_NOT_FOUND)
        s = read_file(files, "preprocessor_config.json", false, read_image_file, out);
    TRY(s);
    strbuf label = {0};
    strbuf_printf(&label, "%s/config.json", files->place);
    s = strbuf_status(&label);
    if (s == INK_OK)
        s = paddleocr_vl_config_check(out, strbuf_text(&label));
    strbuf_free(&label);
    return s;
}

bool paddleocr_vl_is_eos(const paddleocr_vl_config *c, int64_t id)
{
    for (int i = 0; i < c->generation.eos_count; i++)
        if (c->generation.eos_token_ids[i] == id)
            return true;
    return false;
}
