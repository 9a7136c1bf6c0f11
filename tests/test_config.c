/* test_config.c - a checkpoint's settings: both forms of config.json, the image processor's files, and bad values. */
#include "models/paddleocr_vl/config.h"

#include "test_formats_config.h"

#include <math.h>

static void parse_ok(const char *json, paddleocr_vl_config *c)
{
    paddleocr_vl_config_defaults(c);
    assert_ok(paddleocr_vl_config_parse(json, strlen(json), "config.json", c));
    assert_ok(paddleocr_vl_config_check(c, "config.json"));
}

static void parse_file(const char *path, paddleocr_vl_config *c)
{
    size_t size;
    unsigned char *text = get_file(path, &size);
    paddleocr_vl_config_defaults(c);
    assert_ok(paddleocr_vl_config_parse(text, size, path, c));
    assert_ok(paddleocr_vl_config_check(c, path));
    free(text);
}

static void test_published_values(void **state)
{
    (void)state;
    paddleocr_vl_config c;
    parse_file(DATA_DIR "config-flat.json", &c);
    assert_int_equal(c.text.vocab_size, 103424);
    assert_int_equal(c.text.hidden_size, 1024);
    assert_int_equal(c.text.intermediate_size, 3072);
    assert_int_equal(c.text.num_hidden_layers, 18);
    assert_int_equal(c.text.num_attention_heads, 16);
    assert_int_equal(c.text.num_key_value_heads, 2);
    assert_int_equal(c.text.head_dim, 128);
    assert_true(c.text.rms_norm_eps == 1e-5 && c.text.rope_theta == 500000);
    assert_int_equal(c.text.mrope_section[0], 16);
    assert_int_equal(c.text.mrope_section[1], 24);
    assert_int_equal(c.text.mrope_section[2], 24);
    assert_int_equal(c.text.max_position_embeddings, 131072);
    assert_false(c.text.tie_word_embeddings);
    assert_int_equal(c.vision.hidden_size, 1152);
    assert_int_equal(c.vision.intermediate_size, 4304);
    assert_int_equal(c.vision.num_hidden_layers, 27);
    assert_int_equal(c.vision.head_dim, 72);
    assert_int_equal(c.vision.position_grid, 27);
    assert_true(c.vision.layer_norm_eps == 1e-6 && c.vision.rope_theta == 10000 && c.projector_norm_eps == 1e-5);
    assert_false(c.vision.position_embedding_align_corners);
    assert_int_equal(paddleocr_vl_merged_size(&c), 4608);
    assert_int_equal(c.image_token_id, 100295);
    assert_int_equal(c.vision_start_token_id, 101305);
    assert_int_equal(c.vision_end_token_id, 101306);
    assert_true(paddleocr_vl_is_eos(&c, 2));
    assert_false(paddleocr_vl_is_eos(&c, 1));
    assert_int_equal(c.generation.bos_token_id, 1);
    assert_int_equal(c.generation.pad_token_id, 0);
    assert_int_equal(c.image.min_pixels, 112896);
    assert_int_equal(c.image.max_pixels, 1003520);
}

/* The nested file is what transformers makes of the flat one; it reports every such model as tied. */
static void test_flat_and_nested_agree(void **state)
{
    (void)state;
    paddleocr_vl_config flat, nested;
    parse_file(DATA_DIR "config-flat.json", &flat);
    parse_file(DATA_DIR "config-nested.json", &nested);
    assert_false(flat.text.tie_word_embeddings);
    assert_true(nested.text.tie_word_embeddings);
    nested.text.tie_word_embeddings = false;
    assert_same_config(&flat, &nested);
}

static void test_defaults_equal_published(void **state)
{
    (void)state;
    paddleocr_vl_config bare, flat;
    parse_ok("{\"model_type\": \"paddleocr_vl\"}", &bare);
    parse_file(DATA_DIR "config-flat.json", &flat);
    assert_same_config(&bare, &flat);
}

/* With a text_config, language-model fields at the root mean nothing. */
static void test_nested_wins(void **state)
{
    (void)state;
    paddleocr_vl_config c;
    parse_ok("{\"model_type\": \"paddleocr_vl\", \"hidden_size\": 99, \"eos_token_id\": 7, \"text_config\": "
             "{\"hidden_size\": 64, "
             "\"eos_token_id\": [3, 4]}}",
             &c);
    assert_int_equal(c.text.hidden_size, 64);
    assert_int_equal(c.generation.eos_count, 2);
    assert_true(paddleocr_vl_is_eos(&c, 4));
    assert_false(paddleocr_vl_is_eos(&c, 7));
}

static void test_rope_spellings(void **state)
{
    (void)state;
    paddleocr_vl_config c;
    parse_ok("{\"model_type\": \"paddleocr_vl\", \"rope_theta\": 10000, \"head_dim\": 8, \"rope_scaling\": {\"type\": "
             "\"default\", "
             "\"mrope_section\": [2, 1, 1]}}",
             &c);
    assert_true(c.text.rope_theta == 10000 && c.text.mrope_section[0] == 2);
    parse_ok("{\"model_type\": \"paddleocr_vl\", \"head_dim\": 8, \"rope_parameters\": {\"rope_type\": \"default\", "
             "\"rope_theta\": 77.5, "
             "\"mrope_section\": [2, 1, 1]}, \"vision_config\": {\"rope_parameters\": {\"rope_type\": \"axial\", "
             "\"rope_theta\": 5000.0}}}",
             &c);
    assert_true(c.text.rope_theta == 77.5 && c.vision.rope_theta == 5000);
    parse_ok("{\"model_type\": \"paddleocr_vl\", \"rope_scaling\": null, \"num_key_value_heads\": null}", &c);
    assert_int_equal(c.text.num_key_value_heads, 16);
}

#define CFG(fields) "{\"model_type\": \"paddleocr_vl\", " fields "}"

static void test_bad_configs(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        ink_status status;
        const char *message;
    } cases[] = {
        {"{}", INK_BAD_DATA, "config.json: model_type is missing"},
        {"{\"model_type\": \"qwen2_vl\"}", INK_UNIMPLEMENTED, "model_type is \"qwen2_vl\", only \"paddleocr_vl\""},
        {"{\"model_type\": 3}", INK_BAD_DATA, "model_type is an integer, expected a string"},
        {"[]", INK_BAD_DATA, "expected a JSON object"},
        {"{\"model_type\": \"paddleocr_vl\"", INK_BAD_DATA, "config.json: not valid JSON"},
        {CFG("\"quantization_config\": {\"bits\": 4}"), INK_UNIMPLEMENTED, "quantised"},
        {CFG("\"hidden_act\": \"gelu\""), INK_UNIMPLEMENTED, "hidden_act is \"gelu\", only \"silu\""},
        {CFG("\"use_bias\": true"), INK_UNIMPLEMENTED, "use_bias is true"},
        {CFG("\"use_bias\": \"no\""), INK_BAD_DATA, "use_bias is a string"},
        {CFG("\"hidden_size\": 0"), INK_BAD_DATA, "hidden_size is 0, expected 1 to 65536"},
        {CFG("\"hidden_size\": -5"), INK_BAD_DATA, "hidden_size is -5"},
        {CFG("\"hidden_size\": 99999999999"), INK_BAD_DATA, "hidden_size is 99999999999"},
        {CFG("\"hidden_size\": 10.5"), INK_BAD_DATA, "hidden_size is a number, expected an integer"},
        {CFG("\"hidden_size\": \"1024\""), INK_BAD_DATA, "hidden_size is a string"},
        {CFG("\"intermediate_size\": 0"), INK_BAD_DATA, "intermediate_size"},
        {CFG("\"num_hidden_layers\": 100000"), INK_BAD_DATA, "num_hidden_layers is 100000"},
        {CFG("\"num_attention_heads\": 0"), INK_BAD_DATA, "num_attention_heads is 0"},
        {CFG("\"num_key_value_heads\": 3"), INK_BAD_DATA,
         "num_attention_heads 16 is not a multiple of num_key_value_heads 3"},
        {CFG("\"head_dim\": 127"), INK_BAD_DATA, "head_dim is 127, expected an even number"},
        {CFG("\"head_dim\": 64"), INK_BAD_DATA, "mrope_section [16,24,24] sums to 64, expected head_dim / 2 = 32"},
        {CFG("\"head_dim\": 0"), INK_BAD_DATA, "head_dim is 0"},
        {CFG("\"vocab_size\": 0"), INK_BAD_DATA, "vocab_size is 0"},
        {CFG("\"vocab_size\": 50000"), INK_BAD_DATA, "image_token_id is 100295, expected less than vocab_size 50000"},
        {CFG("\"vision_end_token_id\": 200000"), INK_BAD_DATA, "vision_end_token_id is 200000"},
        {CFG("\"image_token_id\": -1"), INK_BAD_DATA, "image_token_id is -1"},
        {CFG("\"eos_token_id\": 103424"), INK_BAD_DATA, "eos_token_id"},
        {CFG("\"eos_token_id\": []"), INK_BAD_DATA, "eos_token_id lists 0 ids"},
        {CFG("\"eos_token_id\": [1,2,3,4,5,6,7,8,9]"), INK_BAD_DATA, "eos_token_id lists 9 ids"},
        {CFG("\"eos_token_id\": [\"a\"]"), INK_BAD_DATA, "eos_token_id[0] is a string"},
        {CFG("\"rms_norm_eps\": -1e-5"), INK_BAD_DATA, "rms_norm_eps is -1e-05"},
        {CFG("\"rms_norm_eps\": 2"), INK_BAD_DATA, "rms_norm_eps is 2"},
        {CFG("\"rope_theta\": 0"), INK_BAD_DATA, "rope_theta is 0"},
        {CFG("\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4}"), INK_UNIMPLEMENTED, "rope_scaling.type is \"yarn\""},
        {CFG("\"rope_scaling\": []"), INK_BAD_DATA, "rope_scaling is a list, expected an object"},
        {CFG("\"rope_scaling\": {\"mrope_section\": [32, 32]}"), INK_BAD_DATA,
         "rope_scaling.mrope_section has 2 elements, expected 3"},
        {CFG("\"rope_scaling\": {\"mrope_section\": [64, 64, -64]}"), INK_BAD_DATA, "mrope_section[2] is -64"},
        {CFG("\"max_position_embeddings\": 0"), INK_BAD_DATA, "max_position_embeddings"},
        {CFG("\"text_config\": 5"), INK_BAD_DATA, "text_config is an integer, expected an object"},
        {CFG("\"text_config\": {\"hidden_size\": 0}"), INK_BAD_DATA, "text_config.hidden_size is 0"},
        {CFG("\"text_config\": {\"rope_parameters\": {\"rope_type\": \"linear\"}}"), INK_UNIMPLEMENTED,
         "text_config.rope_parameters.rope_type is \"linear\""},
        {CFG("\"vision_config\": []"), INK_BAD_DATA, "vision_config is a list"},
        {CFG("\"vision_config\": {\"patch_size\": 0}"), INK_BAD_DATA, "vision_config.patch_size is 0, expected 1 to 256"},
        {CFG("\"vision_config\": {\"image_size\": 13}"), INK_BAD_DATA, "image_size 13 is smaller than patch_size 14"},
        {CFG("\"vision_config\": {\"num_channels\": 4}"), INK_UNIMPLEMENTED, "num_channels is 4, only 3"},
        {CFG("\"vision_config\": {\"spatial_merge_size\": 3}"), INK_UNIMPLEMENTED, "spatial_merge_size is 3, only 2"},
        {CFG("\"vision_config\": {\"num_attention_heads\": 7}"), INK_BAD_DATA,
         "hidden_size 1152 over num_attention_heads 7"},
        {CFG("\"vision_config\": {\"num_attention_heads\": 192}"), INK_BAD_DATA, "must be a multiple of 4"},
        {CFG("\"vision_config\": {\"hidden_act\": \"gelu\"}"), INK_UNIMPLEMENTED, "vision_config.hidden_act is \"gelu\""},
        {CFG("\"vision_config\": {\"layer_norm_eps\": \"x\"}"), INK_BAD_DATA, "layer_norm_eps is a string"},
        {CFG("\"vision_config\": {\"position_embedding_align_corners\": 1}"), INK_BAD_DATA,
         "position_embedding_align_corners is an integer"},
        {CFG("\"vision_config\": {\"rope_parameters\": {\"rope_type\": \"yarn\"}}"), INK_UNIMPLEMENTED, "only \"axial\""},
        {CFG("\"hidden_size\": 1, \"hidden_size\": 2"), INK_BAD_DATA, "duplicate"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        paddleocr_vl_config c;
        paddleocr_vl_config_defaults(&c);
        ink_status s = paddleocr_vl_config_parse(cases[i].json, strlen(cases[i].json), "config.json", &c);
        if (s == INK_OK)
            s = paddleocr_vl_config_check(&c, "config.json");
        assert_fails(s, cases[i].status, cases[i].message);
        assert_non_null(strstr(ink_last_error(), "config.json: "));
    }
}

static ink_status parse_image(const char *json, paddleocr_vl_config *c)
{
    paddleocr_vl_config_defaults(c);
    return paddleocr_vl_image_parse(json, strlen(json), "preprocessor_config.json", c);
}

static void test_image_limits(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int64_t min, max;
    } cases[] = {
        {"{}", 112896, 1003520},
        {"{\"min_pixels\": 100, \"max_pixels\": 200}", 100, 200},
        {"{\"size\": {\"shortest_edge\": 300, \"longest_edge\": 400}}", 300, 400},
        {"{\"size\": {\"min_pixels\": 500, \"max_pixels\": 600}}", 500, 600},
        {"{\"size\": {\"shortest_edge\": 300, \"longest_edge\": 400, \"min_pixels\": 350}}", 350, 400},
        {"{\"min_pixels\": 100, \"size\": {\"shortest_edge\": 300, \"longest_edge\": 400}}", 100, 400},
        {"{\"max_pixels\": null, \"size\": {\"longest_edge\": 120000}}", 112896, 120000},
        {"{\"image_processor\": {\"min_pixels\": 7, \"max_pixels\": 8}, \"min_pixels\": 1}", 7, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        paddleocr_vl_config c;
        assert_ok(parse_image(cases[i].json, &c));
        assert_int_equal(c.image.min_pixels, cases[i].min);
        assert_int_equal(c.image.max_pixels, cases[i].max);
        assert_true(c.image.image_mean[0] == 0.5 && c.image.image_std[2] == 0.5);
    }
    paddleocr_vl_config c;
    assert_ok(
        parse_image("{\"image_mean\": [0.1, 0.2, 0.3], \"image_std\": 0.25, \"rescale_factor\": 0.00392156862745098}", &c));
    assert_true(c.image.image_mean[1] == 0.2 && c.image.image_std[1] == 0.25);
    assert_true(fabs(c.image.rescale_factor - 1.0 / 255) < 1e-16);
}

static void test_bad_image_settings(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        ink_status status;
        const char *message;
    } cases[] = {
        {"{\"min_pixels\": 300, \"max_pixels\": 200}", INK_BAD_DATA, "min_pixels 300 is larger than max_pixels 200"},
        {"{\"min_pixels\": 0}", INK_BAD_DATA, "min_pixels is 0"},
        {"{\"size\": {\"longest_edge\": -1}}", INK_BAD_DATA, "size.longest_edge is -1"},
        {"{\"size\": 5}", INK_BAD_DATA, "size is an integer, expected an object"},
        {"{\"image_std\": [0.5, 0, 0.5]}", INK_BAD_DATA, "image_std[1] is 0"},
        {"{\"image_mean\": [0.5]}", INK_BAD_DATA, "image_mean has 1 elements, expected 3"},
        {"{\"rescale_factor\": 0}", INK_BAD_DATA, "rescale_factor is 0"},
        {"{\"resample\": 2}", INK_UNIMPLEMENTED, "resample is 2, only 3"},
        {"{\"patch_size\": 16}", INK_UNIMPLEMENTED, "patch_size is 16, only 14"},
        {"{\"merge_size\": 1}", INK_UNIMPLEMENTED, "merge_size is 1, only 2"},
        {"{\"temporal_patch_size\": 2}", INK_UNIMPLEMENTED, "temporal_patch_size is 2, only 1"},
        {"{\"do_normalize\": false}", INK_UNIMPLEMENTED, "do_normalize is false"},
        {"{\"image_processor\": {\"resample\": 1}}", INK_UNIMPLEMENTED, "image_processor.resample is 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        paddleocr_vl_config c;
        assert_fails(parse_image(cases[i].json, &c), cases[i].status, cases[i].message);
    }
}

static void test_generation(void **state)
{
    (void)state;
    paddleocr_vl_config c;
    paddleocr_vl_config_defaults(&c);
    const char *json = "{\"eos_token_id\": [2, 5], \"bos_token_id\": null, \"pad_token_id\": -1, \"max_new_tokens\": 512, "
                       "\"do_sample\": true, "
                       "\"temperature\": 0.5, \"top_p\": 0.9, \"top_k\": 50, \"repetition_penalty\": 1.1, \"unknown\": {}}";
    assert_ok(paddleocr_vl_generation_parse(json, strlen(json), "generation_config.json", &c));
    assert_int_equal(c.generation.eos_count, 2);
    assert_int_equal(c.generation.bos_token_id, 1);
    assert_int_equal(c.generation.pad_token_id, -1);
    assert_int_equal(c.generation.max_new_tokens, 512);
    assert_true(c.generation.do_sample && c.generation.temperature == 0.5 && c.generation.top_p == 0.9);
    assert_int_equal(c.generation.top_k, 50);
    assert_true(c.generation.repetition_penalty == 1.1);
    json = "{\"top_p\": 1.5}";
    assert_fails(paddleocr_vl_generation_parse(json, strlen(json), "generation_config.json", &c), INK_BAD_DATA,
                 "generation_config.json: top_p is 1.5, expected 0 to 1");
    json = "{\"repetition_penalty\": 0}";
    assert_fails(paddleocr_vl_generation_parse(json, strlen(json), "generation_config.json", &c), INK_BAD_DATA,
                 "repetition_penalty is 0");
}

static void test_mini(void **state)
{
    (void)state;
    model_files files;
    paddleocr_vl_config c;
    assert_ok(model_files_open_directory(MINI_DIR, &files));
    assert_ok(paddleocr_vl_config_read(&files, &c));
    model_files_close(&files);
    assert_int_equal(c.text.hidden_size, 256);
    assert_int_equal(c.text.head_dim, 64);
    assert_int_equal(c.text.mrope_section[0], 8);
    assert_true(c.text.tie_word_embeddings);
    assert_true(c.vision.position_embedding_align_corners);
    assert_int_equal(c.vision.head_dim, 72);
    assert_int_equal(c.image.min_pixels, 3136);
    assert_int_equal(c.image.max_pixels, 470400);
    assert_int_equal(c.image_token_id, 1014);
    assert_int_equal(c.generation.max_new_tokens, 512);
}

/* Which file the image settings come from, and that errors carry the file's path. */
static void test_directory(void **state)
{
    (void)state;
    char dir[64];
    model_files files;
    paddleocr_vl_config c;
    make_dir(dir);
    assert_ok(model_files_open_directory(dir, &files));
    assert_fails(paddleocr_vl_config_read(&files, &c), INK_NOT_FOUND, "/config.json");
    put_string(dir, "config.json", "{\"model_type\": \"paddleocr_vl\"}");
    assert_ok(paddleocr_vl_config_read(&files, &c)); /* alone it is enough */
    assert_int_equal(c.image.max_pixels, 1003520);
    put_string(dir, "preprocessor_config.json", "{\"max_pixels\": 2822400}");
    assert_ok(paddleocr_vl_config_read(&files, &c));
    assert_int_equal(c.image.max_pixels, 2822400);
    put_string(dir, "processor_config.json", "{\"processor_class\": \"PaddleOCRVLProcessor\"}");
    assert_ok(paddleocr_vl_config_read(&files, &c));
    assert_int_equal(c.image.max_pixels, 2822400);
    size_t size;
    unsigned char *resaved = get_file(DATA_DIR "processor-resaved.json", &size);
    put_file(dir, "processor_config.json", resaved, size);
    free(resaved);
    assert_ok(paddleocr_vl_config_read(&files, &c));
    assert_int_equal(c.image.min_pixels, 3136);
    assert_int_equal(c.image.max_pixels, 470400);
    put_string(dir, "generation_config.json", "{\"eos_token_id\": 3}");
    assert_ok(paddleocr_vl_config_read(&files, &c));
    assert_true(paddleocr_vl_is_eos(&c, 3) && !paddleocr_vl_is_eos(&c, 2));
    put_string(dir, "generation_config.json", "{\"eos_token_id\": 900000}");
    assert_fails(paddleocr_vl_config_read(&files, &c), INK_BAD_DATA, dir);
    put_string(dir, "generation_config.json", "{\"eos_token_id\": {}}");
    assert_fails(paddleocr_vl_config_read(&files, &c), INK_BAD_DATA, "/generation_config.json: eos_token_id is an object");
    put_string(dir, "processor_config.json", "[");
    put_string(dir, "generation_config.json", "{}");
    assert_fails(paddleocr_vl_config_read(&files, &c), INK_BAD_DATA, "/processor_config.json: not valid JSON");
    model_files_close(&files);
    remove_dir(dir);
}

/* The published flat file cut at every byte and with every byte changed to a few others: never a crash. */
static void test_damage(void **state)
{
    (void)state;
    size_t size;
    unsigned char *good = get_file(DATA_DIR "config-flat.json", &size);
    paddleocr_vl_config c;
    for (size_t n = 0; n + 2 < size; n++) { /* the last two bytes are "}" and a line feed */
        unsigned char *cut = malloc(n ? n : 1);
        memcpy(cut, good, n);
        paddleocr_vl_config_defaults(&c);
        assert_fails(paddleocr_vl_config_parse(cut, n, "config.json", &c), INK_BAD_DATA, "config.json");
        free(cut);
    }
    for (size_t i = 0; i < size; i++)
        for (const char *v = "0-9\"{}[],:x\xff"; *v; v++) {
            unsigned char was = good[i];
            good[i] = (unsigned char)*v;
            paddleocr_vl_config_defaults(&c);
            if (paddleocr_vl_config_parse(good, size, "config.json", &c) == INK_OK &&
                paddleocr_vl_config_check(&c, "config.json") == INK_OK)
                assert_true(c.text.hidden_size > 0 && c.vision.head_dim % 4 == 0 && c.vision.position_grid > 0);
            good[i] = was;
        }
    free(good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_values),
        cmocka_unit_test(test_flat_and_nested_agree),
        cmocka_unit_test(test_defaults_equal_published),
        cmocka_unit_test(test_nested_wins),
        cmocka_unit_test(test_rope_spellings),
        cmocka_unit_test(test_bad_configs),
        cmocka_unit_test(test_image_limits),
        cmocka_unit_test(test_bad_image_settings),
        cmocka_unit_test(test_generation),
        cmocka_unit_test(test_mini),
        cmocka_unit_test(test_directory),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
