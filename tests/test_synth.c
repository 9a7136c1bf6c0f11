/* test_synth.c - synthetic checkpoints: same bytes from the same seed, right statistics, and our own loader reads them. */
#include "models/paddleocr_vl/synth.h"

#include "core/dtype.h"
#include "formats/json.h"
#include "test_formats_config.h"

#include <math.h>

/* FNV-1a of every file of the tiny preset with seed 7, names in the order below. A change of this number means that an old
 * seed no longer gives its old bytes: benchmarks and comparisons that name a seed then mean something else. */
#define GOLDEN_HASH 0x63c7244ab0cc5c82u
#define GOLDEN_WEIGHTS_HASH 0xb1ef5afe27681d04u

static uint64_t hash_bytes(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

static uint64_t hash_file(uint64_t h, const char *dir, const char *name)
{
    char path[256];
    model_file f;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_ok(model_file_open_path(path, &f));
    h = hash_bytes(h, f.data, f.size);
    model_file_close(&f);
    return h;
}

static uint64_t hash_texts(const char *dir)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (const char *const *name = synth_file_names(); *name; name++)
        h = hash_file(h, dir, *name);
    return h;
}

static uint64_t hash_weights(const char *dir) { return hash_file(0xcbf29ce484222325u, dir, "model.safetensors"); }

static void write_tiny(const char *dir, uint64_t seed, int threads, int vision_layers, bool force)
{
    synth_options o = {
        .preset = "paddleocr-vl-tiny", .seed = seed, .threads = threads, .vision_layers = vision_layers, .force = force};
    assert_ok(synth_write(dir, &o));
}

static void test_golden_hash(void **state)
{
    (void)state;
    char root[64], a[96], b[96];
    make_dir(root);
    snprintf(a, sizeof a, "%s/a", root);
    snprintf(b, sizeof b, "%s/b/", root); /* the slash is harmless */
    write_tiny(a, 7, 1, 0, false);
    write_tiny(b, 7, 3, 0, false);
    assert_int_equal(count_files(a), 8);
    assert_int_equal(count_files(root), 2); /* no temporary directory is left */
    uint64_t texts = hash_texts(a), weights = hash_weights(a);
    assert_true(texts == hash_texts(b) && weights == hash_weights(b));
    if (texts != GOLDEN_HASH || weights != GOLDEN_WEIGHTS_HASH)
        fail_msg("hashes are 0x%llx (texts) and 0x%llx (weights)", (unsigned long long)texts, (unsigned long long)weights);
    write_tiny(b, 8, 2, 0, true);
    assert_true(weights != hash_weights(b));
    assert_int_equal(count_files(b), 8);
    remove_dir(root);
}

static void test_reload(void **state)
{
    (void)state;
    char root[64], dir[96];
    make_dir(root);
    snprintf(dir, sizeof dir, "%s/m", root);
    synth_options o = {.preset = "paddleocr-vl-tiny", .seed = 1};
    assert_ok(synth_write(dir, &o));
    model_files files;
    paddleocr_vl_config want, c;
    safetensors *st;
    paddleocr_vl_weights w;
    assert_ok(synth_config(&o, &want));
    assert_ok(model_files_open_directory(dir, &files));
    assert_ok(paddleocr_vl_config_read(&files, &c));
    assert_same_config(&c, &want);
    assert_true(c.vision.position_embedding_align_corners);
    assert_false(c.text.tie_word_embeddings);
    assert_ok(safetensors_open_model(&files, &st));
    assert_ok(paddleocr_vl_bind(&c, st, &w));
    assert_false(w.head_is_tied);
    assert_int_equal(w.unused_count, 12);
    assert_int_equal(w.copied_bytes, 0);
    for (size_t i = 0; i < safetensors_count(st); i++) {
        const safetensors_entry *e = safetensors_at(st, i);
        assert_true(e->bytes % 64 || tensor_alignment(&e->tensor) >= 64);
    }
    paddleocr_vl_weights_free(&w);
    safetensors_free(st);
    model_files_close(&files);
    remove_dir(root);
}

static void moments(const paddleocr_vl_tensor *t, int64_t n, double *mean, double *deviation, double *lowest,
                    double *highest)
{
    bf16 *v = malloc((size_t)n * sizeof *v);
    synth_fill(3, t, 0, n, v);
    double sum = 0, squares = 0;
    *lowest = INFINITY;
    *highest = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        double x = bf16_to_f32(v[i]);
        sum += x;
        squares += x * x;
        *lowest = fmin(*lowest, x);
        *highest = fmax(*highest, x);
    }
    free(v);
    *mean = sum / (double)n;
    *deviation = sqrt(squares / (double)n - *mean * *mean);
}

static void test_distribution(void **state)
{
    (void)state;
    double mean, deviation, lowest, highest;
    const int64_t n = 200000;
    paddleocr_vl_tensor matrix = {.name = "m", .rank = 2, .dims = {n, 400}, .kind = PADDLEOCR_VL_MATRIX};
    moments(&matrix, n, &mean, &deviation, &lowest, &highest);
    assert_true(fabs(mean) < 5 * 0.05 / sqrt((double)n) && fabs(deviation - 0.05) < 0.0005);
    assert_true(lowest > -0.175 && lowest < -0.15 && highest < 0.175 && highest > 0.15);
    paddleocr_vl_tensor filter = {.name = "f", .rank = 4, .dims = {1000, 3, 14, 14}, .kind = PADDLEOCR_VL_MATRIX};
    moments(&filter, n, &mean, &deviation, &lowest, &highest);
    assert_true(fabs(deviation * sqrt(588.0) - 1) < 0.01);
    paddleocr_vl_tensor bias = {.name = "b", .rank = 1, .dims = {n}, .kind = PADDLEOCR_VL_BIAS};
    moments(&bias, n, &mean, &deviation, &lowest, &highest);
    assert_true(fabs(mean) < 0.0005 && fabs(deviation - 0.02) < 0.0002);
    paddleocr_vl_tensor norm = {.name = "n", .rank = 1, .dims = {n}, .kind = PADDLEOCR_VL_NORM};
    moments(&norm, n, &mean, &deviation, &lowest, &highest);
    assert_true(fabs(mean - 1) < 0.001 && lowest >= 0.898 && highest <= 1.102 && fabs(deviation - 0.2 / sqrt(12)) < 0.001);
}

/* Any part of a tensor can be made alone, and a tensor does not depend on how many layers the model has. */
static void test_pure_function(void **state)
{
    (void)state;
    paddleocr_vl_tensor t = {
        .name = "model.layers.0.mlp.up_proj.weight", .rank = 2, .dims = {96, 64}, .kind = PADDLEOCR_VL_MATRIX};
    bf16 whole[96 * 64], part[50];
    synth_fill(5, &t, 0, 96 * 64, whole);
    synth_fill(5, &t, 1234, 50, part);
    assert_memory_equal(part, whole + 1234, sizeof part);
    strcpy(t.name, "model.layers.1.mlp.up_proj.weight");
    synth_fill(5, &t, 1234, 50, part);
    assert_memory_not_equal(part, whole + 1234, sizeof part);

    char root[64], dir[96], path[128];
    make_dir(root);
    snprintf(dir, sizeof dir, "%s/m", root);
    write_tiny(dir, 5, 2, 1, false);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    safetensors *st;
    ink_tensor got;
    assert_ok(safetensors_open_path(path, &st));
    assert_ok(safetensors_get(st, "model.layers.0.mlp.up_proj.weight", &got));
    assert_memory_equal(got.data, whole, sizeof whole);
    assert_null(safetensors_find(st, "visual.vision_model.encoder.layers.1.layer_norm1.weight"));
    safetensors_free(st);
    remove_dir(root);
}

static void test_tokenizer_ids(void **state)
{
    (void)state;
    static const struct {
        const char *piece;
        int id;
    } ids[] = {{"<unk>", 0},
               {"</s>", 2},
               {"<0x0A>", 23},
               {"<|begin_of_sentence|>", 100273},
               {"<|end_of_sentence|>", 100272},
               {"<|IMAGE_PLACEHOLDER|>", 100295},
               {"<|LOC_0|>", 100297},
               {"<|LOC_1000|>", 101297},
               {"<|LOC_BEGIN|>", 101298},
               {"<|LOC_END|>", 101299},
               {"<|LOC_SEP|>", 101300},
               {"<|image_pad|>", 101304},
               {"<|IMAGE_START|>", 101305},
               {"<|IMAGE_END|>", 101306},
               {"<|video_pad|>", 101307},
               {"<ecel>", 101308},
               {"<fcel>", 101309},
               {"<xcel>", 101310},
               {"<lcel>", 101311},
               {"<ucel>", 101312},
               {"<nl>", 101313},
               {"<|filler_103423|>", 103423}};
    paddleocr_vl_config c;
    assert_ok(synth_config(&(synth_options){.seed = 1}, &c));
    char *text;
    size_t size;
    assert_ok(synth_file_text("tokenizer.json", &c, &text, &size));
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL); /* every piece is there once */
    assert_non_null(root);
    free(text);
    json_t *vocab = json_object_get(json_object_get(root, "model"), "vocab"),
           *added = json_object_get(root, "added_tokens");
    assert_int_equal(json_object_size(vocab), 103424);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        assert_int_equal(json_integer_value(json_object_get(vocab, ids[i].piece)), ids[i].id);
    unsigned char *seen = calloc(103424, 1);
    const char *piece;
    json_t *value;
    json_object_foreach(vocab, piece, value)
    {
        json_int_t id = json_integer_value(value);
        if (id < 0 || id >= 103424 || seen[id])
            fail_msg("piece %s has id %lld", piece, (long long)id);
        else
            seen[id] = 1;
    }
    free(seen);
    size_t i;
    json_array_foreach(added, i, value)
        assert_int_equal(json_integer_value(json_object_get(vocab, json_string_value(json_object_get(value, "content")))),
                         json_integer_value(json_object_get(value, "id")));
    assert_int_equal(json_array_size(added), 1023);
    json_decref(root);
    assert_fails(synth_file_text("model.gguf", &c, &text, &size), INK_NOT_FOUND, "model.gguf");
}

static void test_refusals(void **state)
{
    (void)state;
    char root[64], dir[96];
    make_dir(root);
    snprintf(dir, sizeof dir, "%s/m", root);
    synth_options o = {.preset = "paddleocr-vl-9", .seed = 1};
    assert_fails(synth_write(dir, &o), INK_NOT_FOUND, "there are: paddleocr-vl-1.5");
    o.preset = "paddleocr-vl-tiny";
    o.vision_layers = -1;
    assert_fails(synth_write(dir, &o), INK_INVALID_ARGUMENT, "layers -1,0");
    o.vision_layers = 1;
    put_string(root, "precious.txt", "mine");
    assert_fails(synth_write(root, &o), INK_FAILED_PRECONDITION, "is not empty (it holds precious.txt)");
    assert_int_equal(count_files(root), 1);
    snprintf(dir, sizeof dir, "%s/precious.txt", root);
    assert_fails(synth_write(dir, &o), INK_INVALID_ARGUMENT, "not a directory");
    assert_fails(synth_write("/nonexistent/a/b", &o), INK_IO, "/nonexistent/a/b");
    assert_fails(synth_write("", &o), INK_INVALID_ARGUMENT, "empty");
    o.force = true;
    assert_ok(synth_write(root, &o));
    assert_int_equal(count_files(root), 9); /* the eight and precious.txt */
    remove_dir(root);

    make_dir(root); /* an existing empty directory is fine without force */
    o.force = false;
    assert_ok(synth_write(root, &o));
    assert_int_equal(count_files(root), 8);
    remove_dir(root);
}

typedef struct progress_log {
    uint64_t last, total;
    int calls;
} progress_log;

static void log_progress(void *user, uint64_t done, uint64_t total)
{
    progress_log *p = user;
    assert_true(done >= p->last && done <= total);
    *p = (progress_log){done, total, p->calls + 1};
}

static void test_progress(void **state)
{
    (void)state;
    char root[64];
    progress_log p = {0};
    make_dir(root);
    synth_options o = {.preset = "paddleocr-vl-tiny", .threads = 1, .progress = log_progress, .user = &p};
    assert_ok(synth_write(root, &o));
    assert_true(p.calls > 0 && p.last == p.total);
    remove_dir(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_hash),   cmocka_unit_test(test_reload),        cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_pure_function), cmocka_unit_test(test_tokenizer_ids), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
