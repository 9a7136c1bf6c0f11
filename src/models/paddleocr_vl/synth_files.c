/* synth_files.c - the small files of a synthetic checkpoint. Numbers with a point are literal text: printf would write them
 * in the process's locale. */
#include "models/paddleocr_vl/synth.h"
#include "models/paddleocr_vl/synth_internal.h"

#include <stdlib.h>
#include <string.h>

static const char *truth(bool b) { return b ? "true" : "false"; }

/* transformers 5.17 warns of the model's own mrope_section unless it is told to expect the key. */
static void put_text_config(strbuf *b, const paddleocr_vl_config *c)
{
    const paddleocr_vl_text_config *t = &c->text;
    strbuf_printf(b,
                  "  \"text_config\": {\n"
                  "    \"bos_token_id\": %d,\n"
                  "    \"dtype\": \"bfloat16\",\n"
                  "    \"eos_token_id\": %d,\n"
                  "    \"head_dim\": %d,\n"
                  "    \"hidden_act\": \"silu\",\n"
                  "    \"hidden_size\": %d,\n"
                  "    \"ignore_keys_at_rope_validation\": [\"mrope_section\"],\n"
                  "    \"intermediate_size\": %d,\n"
                  "    \"max_position_embeddings\": %d,\n"
                  "    \"model_type\": \"paddleocr_vl_text\",\n"
                  "    \"num_attention_heads\": %d,\n"
                  "    \"num_hidden_layers\": %d,\n"
                  "    \"num_key_value_heads\": %d,\n"
                  "    \"pad_token_id\": %d,\n"
                  "    \"rms_norm_eps\": 1e-05,\n",
                  c->generation.bos_token_id, c->generation.eos_token_ids[0], t->head_dim, t->hidden_size,
                  t->intermediate_size, t->max_position_embeddings, t->num_attention_heads, t->num_hidden_layers,
                  t->num_key_value_heads, c->generation.pad_token_id);
    strbuf_printf(b,
                  "    \"rope_parameters\": {\n"
                  "      \"mrope_section\": [%d, %d, %d],\n"
                  "      \"rope_theta\": 500000.0,\n"
                  "      \"rope_type\": \"default\"\n"
                  "    },\n"
                  "    \"tie_word_embeddings\": %s,\n"
                  "    \"use_bias\": false,\n"
                  "    \"use_cache\": true,\n"
                  "    \"vocab_size\": %d\n"
                  "  },\n",
                  t->mrope_section[0], t->mrope_section[1], t->mrope_section[2], truth(t->tie_word_embeddings),
                  t->vocab_size);
}

static void put_config(strbuf *b, const paddleocr_vl_config *c)
{
    const paddleocr_vl_vision_config *v = &c->vision;
    strbuf_printf(b,
                  "{\n"
                  "  \"architectures\": [\"PaddleOCRVLForConditionalGeneration\"],\n"
                  "  \"dtype\": \"bfloat16\",\n"
                  "  \"image_token_id\": %d,\n"
                  "  \"model_type\": \"paddleocr_vl\",\n",
                  c->image_token_id);
    put_text_config(b, c);
    strbuf_printf(b,
                  "  \"tie_word_embeddings\": %s,\n"
                  "  \"video_token_id\": 101307,\n"
                  "  \"vision_config\": {\n"
                  "    \"attention_dropout\": 0.0,\n"
                  "    \"dtype\": \"bfloat16\",\n"
                  "    \"hidden_act\": \"gelu_pytorch_tanh\",\n"
                  "    \"hidden_size\": %d,\n"
                  "    \"image_size\": %d,\n"
                  "    \"intermediate_size\": %d,\n"
                  "    \"layer_norm_eps\": 1e-06,\n"
                  "    \"model_type\": \"paddleocr_vl_vision\",\n"
                  "    \"num_attention_heads\": %d,\n"
                  "    \"num_channels\": %d,\n"
                  "    \"num_hidden_layers\": %d,\n"
                  "    \"patch_size\": %d,\n"
                  "    \"position_embedding_align_corners\": %s,\n"
                  "    \"rope_parameters\": {\"rope_theta\": 10000.0, \"rope_type\": \"axial\"},\n"
                  "    \"spatial_merge_size\": %d\n"
                  "  },\n"
                  "  \"vision_end_token_id\": %d,\n"
                  "  \"vision_start_token_id\": %d\n"
                  "}\n",
                  truth(c->text.tie_word_embeddings), v->hidden_size, v->image_size, v->intermediate_size,
                  v->num_attention_heads, v->num_channels, v->num_hidden_layers, v->patch_size,
                  truth(v->position_embedding_align_corners), v->spatial_merge_size, c->vision_end_token_id,
                  c->vision_start_token_id);
}

static void put_generation_config(strbuf *b, const paddleocr_vl_config *c)
{
    strbuf_printf(b,
                  "{\n"
                  "  \"bos_token_id\": %d,\n"
                  "  \"do_sample\": false,\n"
                  "  \"eos_token_id\": %d,\n"
                  "  \"pad_token_id\": %d,\n"
                  "  \"use_cache\": true\n"
                  "}\n",
                  c->generation.bos_token_id, c->generation.eos_token_ids[0], c->generation.pad_token_id);
}

static void put_preprocessor_config(strbuf *b, const paddleocr_vl_config *c)
{
    strbuf_printf(b,
                  "{\n"
                  "  \"do_convert_rgb\": true,\n"
                  "  \"do_normalize\": true,\n"
                  "  \"do_rescale\": true,\n"
                  "  \"do_resize\": true,\n"
                  "  \"image_mean\": [0.5, 0.5, 0.5],\n"
                  "  \"image_processor_type\": \"PaddleOCRVLImageProcessor\",\n"
                  "  \"image_std\": [0.5, 0.5, 0.5],\n"
                  "  \"max_pixels\": %lld,\n"
                  "  \"merge_size\": %d,\n"
                  "  \"min_pixels\": %lld,\n"
                  "  \"patch_size\": %d,\n"
                  "  \"resample\": 3,\n"
                  "  \"rescale_factor\": 0.00392156862745098,\n"
                  "  \"size\": {\"longest_edge\": %lld, \"shortest_edge\": %lld},\n"
                  "  \"temporal_patch_size\": 1\n"
                  "}\n",
                  (long long)c->image.max_pixels, c->vision.spatial_merge_size, (long long)c->image.min_pixels,
                  c->vision.patch_size, (long long)c->image.max_pixels, (long long)c->image.min_pixels);
}

/* One user turn renders as
 *     <|begin_of_sentence|>User: <|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>{text}\nAssistant:\n
 * with the images of a turn before its text. The image tags are written out rather than kept in a variable `image_token`,
 * because transformers passes a variable of that name that lacks the start and end tags. Every block trims the white space
 * around it, so nothing but the quoted strings is printed. */
static const char chat_template[] = "{%- if add_generation_prompt is not defined -%}\n"
                                    "    {%- set add_generation_prompt = true -%}\n"
                                    "{%- endif -%}\n"
                                    "{{- \"<|begin_of_sentence|>\" -}}\n"
                                    "{%- for message in messages -%}\n"
                                    "    {%- if message[\"content\"] is string -%}\n"
                                    "        {%- set parts = [{\"type\": \"text\", \"text\": message[\"content\"]}] -%}\n"
                                    "    {%- else -%}\n"
                                    "        {%- set parts = message[\"content\"] -%}\n"
                                    "    {%- endif -%}\n"
                                    "    {%- if message[\"role\"] == \"user\" -%}\n"
                                    "        {{- \"User: \" -}}\n"
                                    "        {%- for part in parts -%}\n"
                                    "            {%- if part[\"type\"] == \"image\" -%}\n"
                                    "                {{- \"<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>\" -}}\n"
                                    "            {%- endif -%}\n"
                                    "        {%- endfor -%}\n"
                                    "        {%- for part in parts -%}\n"
                                    "            {%- if part[\"type\"] == \"text\" -%}\n"
                                    "                {{- part[\"text\"] -}}\n"
                                    "            {%- endif -%}\n"
                                    "        {%- endfor -%}\n"
                                    "        {{- \"\\n\" -}}\n"
                                    "    {%- elif message[\"role\"] == \"assistant\" -%}\n"
                                    "        {{- \"Assistant:\\n\" -}}\n"
                                    "        {%- for part in parts -%}\n"
                                    "            {%- if part[\"type\"] == \"text\" -%}\n"
                                    "                {{- part[\"text\"] -}}\n"
                                    "            {%- endif -%}\n"
                                    "        {%- endfor -%}\n"
                                    "        {{- \"</s>\" -}}\n"
                                    "    {%- elif message[\"role\"] == \"system\" -%}\n"
                                    "        {%- for part in parts -%}\n"
                                    "            {%- if part[\"type\"] == \"text\" -%}\n"
                                    "                {{- part[\"text\"] + \"\\n\" -}}\n"
                                    "            {%- endif -%}\n"
                                    "        {%- endfor -%}\n"
                                    "    {%- endif -%}\n"
                                    "{%- endfor -%}\n"
                                    "{%- if add_generation_prompt -%}\n"
                                    "    {{- \"Assistant:\\n\" -}}\n"
                                    "{%- endif -%}\n";

static void put_chat_template(strbuf *b, const paddleocr_vl_config *c)
{
    (void)c;
    strbuf_puts(b, chat_template);
}

static const struct {
    const char *name;
    void (*put)(strbuf *b, const paddleocr_vl_config *c);
} file_table[] = {
    {"tokenizer.json", synth_put_tokenizer},
    {"tokenizer_config.json", synth_put_tokenizer_config},
    {"special_tokens_map.json", synth_put_special_tokens_map},
    {"chat_template.jinja", put_chat_template},
    {"preprocessor_config.json", put_preprocessor_config},
    {"generation_config.json", put_generation_config},
    {"config.json", put_config},
};

#define FILE_COUNT (sizeof file_table / sizeof *file_table)

const char *const *synth_file_names(void)
{
    static const char *const names[FILE_COUNT + 1] = {"tokenizer.json",
                                                      "tokenizer_config.json",
                                                      "special_tokens_map.json",
                                                      "chat_template.jinja",
                                                      "preprocessor_config.json",
                                                      "generation_config.json",
                                                      "config.json",
                                                      NULL};
    return names;
}

ink_status synth_file_text(const char *name, const paddleocr_vl_config *c, char **text, size_t *size)
{
    *text = NULL;
    *size = 0;
    for (size_t i = 0; i < FILE_COUNT; i++)
        if (!strcmp(file_table[i].name, name)) {
            strbuf b = {0};
            file_table[i].put(&b, c);
            *size = b.length;
            *text = strbuf_take(&b);
            return *text ? INK_OK : INK_RESOURCE_EXHAUSTED;
        }
    return failure(INK_NOT_FOUND, "a synthetic checkpoint has no file %s", name);
}
