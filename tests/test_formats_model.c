/* test_formats_model.c - binding a checkpoint's tensors: names, shapes, dtypes, and everything wrong told at once. */
#include "core/dtype.h"
#include "formats/embedded.h"
#include "formats/safetensors_writer.h"
#include "models/paddleocr_vl/tensors.h"
#include "test_formats_support.h"

#include <jansson.h>

typedef struct mini {
    model_files files;
    paddleocr_vl_config config;
    safetensors *st;
} mini;

static void open_mini(mini *m)
{
    assert_ok(model_files_open_directory(MINI_DIR, &m->files));
    assert_ok(paddleocr_vl_config_read(&m->files, &m->config));
    assert_ok(safetensors_open_model(&m->files, &m->st));
}

static void close_mini(mini *m)
{
    safetensors_free(m->st);
    model_files_close(&m->files);
}

static void check_mini_weights(const mini *m, const paddleocr_vl_weights *w)
{
    assert_int_equal(w->vision_layers[5].fc1.weight.dims[0], 576);
    assert_int_equal(w->vision_layers[0].q.bias.dims[0], 216);
    assert_int_equal(w->text_layers[5].k.dims[0], 128);
    assert_int_equal(w->text_layers[0].o.dims[1], 384);
    assert_int_equal(w->linear_1.weight.dims[1], 864);
    assert_int_equal(w->patch_embedding.weight.rank, 4);
    assert_int_equal(w->position_embedding.dims[0], 729);
    assert_true(w->head_is_tied);
    assert_ptr_equal(w->lm_head.data, w->embed_tokens.data);
    assert_int_equal(w->bytes, safetensors_bytes(m->st));
    assert_int_equal(w->unused_count, 0);
}

static void test_mini(void **state)
{
    (void)state;
    mini m;
    paddleocr_vl_weights w;
    open_mini(&m);
    assert_ok(paddleocr_vl_bind(&m.config, m.st, &w));
    check_mini_weights(&m, &w);
    assert_int_equal(w.copied_bytes, 0);
    paddleocr_vl_weights_free(&w);
    close_mini(&m);
}

static void test_embedded_mini(void **state)
{
    (void)state;
    mini m;
    paddleocr_vl_weights w;
    if (!embedded_model_present())
        skip();
    assert_ok(embedded_model_files(&m.files));
    assert_ok(paddleocr_vl_config_read(&m.files, &m.config));
    assert_ok(safetensors_open_model(&m.files, &m.st));
    assert_ok(paddleocr_vl_bind(&m.config, m.st, &w));
    check_mini_weights(&m, &w);
    paddleocr_vl_weights_free(&w);
    close_mini(&m);
}

/* The published model: 620 tensors, parameters as in the specification's table. */
static void test_published_list(void **state)
{
    (void)state;
    paddleocr_vl_config c;
    paddleocr_vl_tensor *list;
    size_t count, unused = 0;
    int64_t all = 0, dead = 0, text = 0, vision = 0, projector = 0;
    paddleocr_vl_config_defaults(&c);
    assert_ok(paddleocr_vl_tensor_list(&c, NULL, &list, &count));
    assert_int_equal(count, 620);
    for (size_t i = 0; i < count; i++) {
        int64_t n = 1;
        for (int d = 0; d < list[i].rank; d++)
            n *= list[i].dims[d];
        all += n;
        if (list[i].use == PADDLEOCR_VL_UNUSED) {
            unused++;
            dead += n;
        } else if (!strncmp(list[i].name, "visual.", 7)) {
            vision += n;
        } else if (!strncmp(list[i].name, "mlp_AR.", 7)) {
            projector += n;
        } else if (strcmp(list[i].name, "lm_head.weight") != 0 && strcmp(list[i].name, "model.embed_tokens.weight") != 0) {
            text += n;
        }
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(list[i].name, list[k].name);
    }
    free(list);
    assert_int_equal(unused, 12);
    assert_int_equal(all, 958588736);
    assert_int_equal(dead, 52987088);
    assert_int_equal(text, 254841856);
    assert_int_equal(vision, 412987248);
    assert_int_equal(projector, 25960192);
}

/* The other scheme's names against the module names of the reference library. */
static void test_resaved_names(void **state)
{
    (void)state;
    json_t *names = json_load_file(DATA_DIR "names-resaved.json", 0, NULL);
    assert_non_null(names);
    paddleocr_vl_config c;
    paddleocr_vl_config_defaults(&c);
    c.text.num_hidden_layers = c.vision.num_hidden_layers = 1;
    paddleocr_vl_tensor *list;
    size_t count, found = 0;
    assert_ok(paddleocr_vl_tensor_list(&c, NULL, &list, &count));
    for (size_t i = 0; i < count; i++) {
        char name[160];
        paddleocr_vl_resaved_name(list[i].name, name, sizeof name);
        size_t k;
        json_t *value;
        bool here = false;
        json_array_foreach(names, k, value) here |= !strcmp(json_string_value(value), name);
        assert_int_equal(here, list[i].use != PADDLEOCR_VL_UNUSED);
        found += here;
    }
    assert_int_equal(found, json_array_size(names));
    free(list);
    json_decref(names);
}

/* ---- changed copies of the mini model ---- */

typedef struct changes {
    bool resaved_names;
    ink_dtype dtype;         /* storage of the copy */
    const char *drop[4];     /* tensors left out */
    const char *flatten;     /* tensor written with rank 1 */
    const char *as_integers; /* tensor written as I32 */
    bool own_head, extra;
} changes;

/* Writes the copy and opens it. */
static safetensors *write_copy(const mini *m, const char *dir, const changes *c)
{
    size_t n = safetensors_count(m->st), used = 0;
    char(*names)[160] = calloc(n + 2, sizeof *names);
    const char **list = calloc(n + 2, sizeof *list);
    ink_tensor *tensors = calloc(n + 2, sizeof *tensors);
    void **buffers = calloc(n + 2, sizeof *buffers);
    for (size_t i = 0; i < n; i++) {
        const safetensors_entry *e = safetensors_at(m->st, i);
        bool dropped = false;
        for (size_t k = 0; k < 4; k++)
            dropped |= c->drop[k] && !strcmp(c->drop[k], e->name);
        if (dropped)
            continue;
        snprintf(names[used], sizeof names[used], "%s", e->name);
        if (c->resaved_names)
            paddleocr_vl_resaved_name(e->name, names[used], sizeof names[used]);
        list[used] = names[used];
        int64_t count = ink_tensor_numel(&e->tensor);
        ink_dtype dtype = c->as_integers && !strcmp(c->as_integers, e->name) ? INK_I32 : c->dtype;
        bool flat = c->flatten && !strcmp(c->flatten, e->name);
        buffers[used] = calloc((size_t)count, 4);
        for (int64_t k = 0; k < count && dtype != INK_I32; k++)
            store_f32(buffers[used], dtype, k, load_f32(e->tensor.data, e->tensor.dtype, k));
        assert_ok(ink_tensor_init(&tensors[used], dtype, flat ? 1 : e->tensor.rank, flat ? &count : e->tensor.dims,
                                  buffers[used]));
        used++;
    }
    static float head[1024 * 256];
    if (c->own_head) {
        list[used] = "lm_head.weight";
        assert_ok(ink_tensor_init(&tensors[used++], INK_F32, 2, (int64_t[]){1024, 256}, head));
    }
    if (c->extra) {
        list[used] = "visual.vision_model.head.probe";
        assert_ok(ink_tensor_init(&tensors[used++], INK_F32, 3, (int64_t[]){1, 1, 216}, head));
    }
    char path[160];
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    assert_ok(safetensors_save(path, used, list, tensors));
    for (size_t i = 0; i < n; i++)
        free(buffers[i]);
    free(buffers);
    free(tensors);
    free(list);
    free(names);
    safetensors *st;
    assert_ok(safetensors_open_path(path, &st));
    return st;
}

static void test_both_schemes_and_dtypes(void **state)
{
    (void)state;
    static const ink_dtype dtypes[] = {INK_BF16, INK_F16, INK_F32};
    char dir[64];
    mini m;
    paddleocr_vl_weights w, original;
    open_mini(&m);
    make_dir(dir);
    assert_ok(paddleocr_vl_bind(&m.config, m.st, &original));
    for (size_t i = 0; i < 3; i++) {
        safetensors *st = write_copy(&m, dir, &(changes){.resaved_names = i != 1, .dtype = dtypes[i], .extra = true});
        assert_ok(paddleocr_vl_bind(&m.config, st, &w));
        assert_true(w.head_is_tied);
        assert_int_equal(w.unused_count, 1);
        assert_int_equal(w.embed_tokens.dtype, dtypes[i]);
        assert_int_equal(w.bytes, safetensors_bytes(st) - 864);
        const ink_tensor *a = &original.vision_layers[3].fc2.weight, *b = &w.vision_layers[3].fc2.weight;
        for (int64_t k = 0; k < ink_tensor_numel(a); k++) {
            float x = load_f32(a->data, a->dtype, k), y = load_f32(b->data, b->dtype, k);
            assert_true(dtypes[i] == INK_F16 ? y == f16_to_f32(f32_to_f16(x)) : x == y);
        }
        paddleocr_vl_weights_free(&w);
        safetensors_free(st);
    }
    paddleocr_vl_weights_free(&original);
    close_mini(&m);
    remove_dir(dir);
}

static void test_own_head(void **state)
{
    (void)state;
    char dir[64];
    mini m;
    paddleocr_vl_weights w;
    open_mini(&m);
    make_dir(dir);
    safetensors *st = write_copy(&m, dir, &(changes){.dtype = INK_BF16, .own_head = true});
    assert_ok(paddleocr_vl_bind(&m.config, st, &w)); /* config.json says tied: the file decides */
    assert_false(w.head_is_tied);
    assert_int_equal(w.lm_head.dtype, INK_F32);
    assert_ptr_not_equal(w.lm_head.data, w.embed_tokens.data);
    paddleocr_vl_weights_free(&w);
    safetensors_free(st);
    close_mini(&m);
    remove_dir(dir);
}

static void test_all_problems_at_once(void **state)
{
    (void)state;
    char dir[64];
    mini m;
    paddleocr_vl_weights w;
    open_mini(&m);
    make_dir(dir);
    safetensors *st = write_copy(&m, dir,
                                 &(changes){.dtype = INK_BF16,
                                            .drop = {"model.norm.weight", "mlp_AR.linear_2.bias",
                                                     "visual.vision_model.encoder.layers.2.self_attn.q_proj.weight",
                                                     "model.layers.5.mlp.up_proj.weight"},
                                            .flatten = "model.layers.1.self_attn.k_proj.weight",
                                            .as_integers = "model.embed_tokens.weight"});
    assert_fails(paddleocr_vl_bind(&m.config, st, &w), INK_BAD_DATA, "model.safetensors: 6 tensors do not fit");
    static const char *const lines[] = {
        "\n  model.norm.weight [256] is missing",
        "\n  mlp_AR.linear_2.bias [256] is missing",
        "\n  visual.vision_model.encoder.layers.2.self_attn.q_proj.weight [216,216] is missing",
        "\n  model.layers.5.mlp.up_proj.weight [320,256] is missing",
        "\n  model.layers.1.self_attn.k_proj.weight has shape [32768], expected [128,256]",
        "\n  model.embed_tokens.weight has dtype I32, expected BF16, F16 or F32",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_non_null(strstr(ink_last_error(), lines[i]));
    paddleocr_vl_weights_free(&w);
    safetensors_free(st);

    /* a config for a larger model: every difference is listed, however many */
    m.config.text.hidden_size = 128;
    m.config.vision.num_hidden_layers = 40;
    assert_int_equal(paddleocr_vl_bind(&m.config, m.st, &w), INK_BAD_DATA);
    assert_non_null(strstr(ink_last_error(), "encoder.layers.39.mlp.fc2.bias [216] is missing"));
    assert_non_null(strstr(ink_last_error(), "model.norm.weight has shape [256], expected [128]"));
    paddleocr_vl_weights_free(&w);
    close_mini(&m);
    remove_dir(dir);
}

static void test_fused_export_is_named(void **state)
{
    (void)state;
    char dir[64], path[160];
    mini m;
    paddleocr_vl_weights w;
    open_mini(&m);
    make_dir(dir);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    float one = 1;
    ink_tensor t;
    safetensors *st;
    assert_ok(ink_tensor_init(&t, INK_F32, 0, NULL, &one));
    assert_ok(safetensors_save(path, 1, (const char *const[]){"model.layers.0.self_attn.qkv_proj.weight"}, &t));
    assert_ok(safetensors_open_path(path, &st));
    assert_fails(paddleocr_vl_bind(&m.config, st, &w), INK_BAD_DATA, "fused qkv_proj");
    paddleocr_vl_weights_free(&w);
    safetensors_free(st);
    close_mini(&m);
    remove_dir(dir);
}

/* Old writers do not pad the header; one byte more moves every tensor to an odd address. */
static void test_unaligned_file(void **state)
{
    (void)state;
    size_t size;
    mini m;
    paddleocr_vl_weights w, original;
    open_mini(&m);
    assert_ok(paddleocr_vl_bind(&m.config, m.st, &original));
    unsigned char *file = get_file(MINI_DIR "/model.safetensors", &size);
    unsigned char *odd = malloc(size + 1);
    size_t header = file[0] | (size_t)file[1] << 8;
    memcpy(odd, file, 8 + header);
    odd[8 + header] = ' ';
    memcpy(odd + 8 + header + 1, file + 8 + header, size - 8 - header);
    odd[0] = (unsigned char)((header + 1) & 0xff);
    odd[1] = (unsigned char)((header + 1) >> 8);
    safetensors *st;
    assert_ok(safetensors_open_memory(odd, size + 1, "odd", &st));
    assert_int_equal(tensor_alignment(&safetensors_at(st, 0)->tensor), 1);
    assert_ok(paddleocr_vl_bind(&m.config, st, &w));
    assert_int_equal(w.copied_bytes, w.bytes);
    assert_true(tensor_is_aligned(&w.text_layers[2].gate));
    assert_memory_equal(w.text_layers[2].gate.data, original.text_layers[2].gate.data,
                        ink_tensor_bytes(&w.text_layers[2].gate));
    assert_ptr_equal(w.lm_head.data, w.embed_tokens.data);
    paddleocr_vl_weights_free(&w);
    paddleocr_vl_weights_free(&original);
    safetensors_free(st);
    free(odd);
    free(file);
    close_mini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mini),
        cmocka_unit_test(test_embedded_mini),
        cmocka_unit_test(test_published_list),
        cmocka_unit_test(test_resaved_names),
        cmocka_unit_test(test_both_schemes_and_dtypes),
        cmocka_unit_test(test_own_head),
        cmocka_unit_test(test_all_problems_at_once),
        cmocka_unit_test(test_fused_export_is_named),
        cmocka_unit_test(test_unaligned_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
