/* test_formats.c - where files come from: directories, the embedded model; JSON fields. */
#include "formats/embedded.h"
#include "formats/files.h"
#include "formats/json.h"
#include "test_formats_support.h"

static void test_plain_names(void **state)
{
    (void)state;
    static const char *const good[] = {"config.json", "model-00001-of-00005.safetensors", "a..b", "...", "é.json"};
    static const char *const bad[] = {"", ".", "..", "/etc/passwd", "a/b", "../config.json", "a\\b", "a\nb", "\x7f"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(file_name_is_plain(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(file_name_is_plain(bad[i]));
}

static void test_directory(void **state)
{
    (void)state;
    char dir[64], path[256];
    make_dir(dir);
    put_string(dir, "a.json", "{}");
    put_string(dir, "empty", "");
    put_string(dir, "\xe6\x96\x87.txt", "utf-8");
    snprintf(path, sizeof path, "%s/sub", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/fifo", dir);
    assert_int_equal(mkfifo(path, 0600), 0);

    model_files files;
    model_file f;
    assert_ok(model_files_open_directory(dir, &files));
    assert_true(model_files_has(&files, "a.json"));
    assert_false(model_files_has(&files, "b.json"));
    assert_false(model_files_has(&files, "../a.json"));
    assert_ok(model_file_open(&files, "a.json", &f));
    assert_int_equal(f.size, 2);
    assert_memory_equal(f.data, "{}", 2);
    assert_non_null(strstr(f.label, "/a.json"));
    model_file_prefetch(&f, 1, SIZE_MAX);
    model_file_prefetch(&f, SIZE_MAX, 1);
    model_file_close(&f);
    assert_ok(model_file_open(&files, "empty", &f));
    assert_int_equal(f.size, 0);
    assert_non_null(f.data);
    model_file_close(&f);
    assert_ok(model_file_open(&files, "\xe6\x96\x87.txt", &f));
    assert_int_equal(f.size, 5);
    model_file_close(&f);

    assert_fails(model_file_open(&files, "b.json", &f), INK_NOT_FOUND, "/b.json: No such file");
    assert_fails(model_file_open(&files, "../x", &f), INK_BAD_DATA, "leads out");
    assert_fails(model_file_open(&files, "fifo", &f), INK_BAD_DATA, "not a regular file"); /* and does not hang */
    assert_fails(model_file_open(&files, "sub", &f), INK_BAD_DATA, "not a regular file");
    model_file_close(&f); /* after a failure: harmless */
    model_files_close(&files);

    assert_fails(model_files_open_directory("/nonexistent/x", &files), INK_NOT_FOUND, "/nonexistent/x");
    assert_fails(model_files_open_directory("", &files), INK_INVALID_ARGUMENT, "empty");
    snprintf(path, sizeof path, "%s/a.json", dir);
    assert_fails(model_files_open_directory(path, &files), INK_INVALID_ARGUMENT, "not a directory");
    remove_dir(dir);
}

/* A file opened before its source is closed stays valid. */
static void test_lifetime(void **state)
{
    (void)state;
    model_files files;
    model_file f;
    assert_ok(model_files_open_directory(MINI_DIR, &files));
    assert_ok(model_file_open(&files, "config.json", &f));
    model_files_close(&files);
    assert_int_equal(*(const char *)f.data, '{');
    model_file_close(&f);
}

static void test_embedded(void **state)
{
    (void)state;
    model_files embedded, disk;
    if (!embedded_model_present()) {
        assert_fails(embedded_model_files(&embedded), INK_NOT_FOUND, "INK_EMBED_MODEL=OFF");
        return;
    }
    assert_ok(embedded_model_files(&embedded));
    assert_ok(model_files_open_directory(MINI_DIR, &disk));
    static const char *const names[] = {"config.json",           "generation_config.json",  "preprocessor_config.json",
                                        "processor_config.json", "tokenizer.json",          "tokenizer_config.json",
                                        "chat_template.jinja",   "special_tokens_map.json", "model.safetensors"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        model_file a, b;
        assert_true(model_files_has(&embedded, names[i]));
        assert_ok(model_file_open(&embedded, names[i], &a));
        assert_ok(model_file_open(&disk, names[i], &b));
        assert_int_equal(a.size, b.size);
        assert_memory_equal(a.data, b.data, a.size);
        assert_int_equal((uintptr_t)a.data % 64, 0);
        model_file_prefetch(&a, 0, a.size); /* not a mapping of ours: nothing happens */
        model_file_close(&a);
        model_file_close(&b);
    }
    model_file f;
    assert_false(model_files_has(&embedded, "model.safetensors.index.json"));
    assert_fails(model_file_open(&embedded, "nothing", &f), INK_NOT_FOUND, "(embedded model) has no file nothing");
    model_files_close(&embedded);
    model_files_close(&disk);
}

static void test_json_fields(void **state)
{
    (void)state;
    const char *text =
        "{\"i\": 5, \"r\": 2.5, \"w\": 1e3, \"b\": true, \"s\": \"x\", \"n\": null, \"l\": [1, 2], \"o\": {\"i\": -1}}";
    json_t *object;
    assert_ok(json_parse_object(text, strlen(text), "f.json", &object));
    json_fields f = json_fields_of(object, "f.json"), sub;
    int64_t i = 9;
    int small = 0, pair[2] = {0, 0};
    double d = 9;
    bool b = false;
    const char *s = NULL;
    assert_ok(json_int(&f, "i", 0, 5, &i));
    assert_int_equal(i, 5);
    assert_ok(json_int(&f, "w", 0, 2000, &i));
    assert_int_equal(i, 1000);
    assert_ok(json_int(&f, "absent", 0, 1, &i));
    assert_ok(json_int(&f, "n", 0, 1, &i));
    assert_int_equal(i, 1000);
    assert_ok(json_number(&f, "i", 0, 10, &d));
    assert_true(d == 5);
    assert_ok(json_bool(&f, "b", &b));
    assert_true(b);
    assert_ok(json_text(&f, "s", &s));
    assert_string_equal(s, "x");
    assert_ok(json_ints(&f, "l", 2, 0, 2, pair));
    assert_int_equal(pair[1], 2);
    assert_ok(json_sub(&f, "o", &sub));
    assert_fails(json_int32(&sub, "i", 0, 7, &small), INK_BAD_DATA, "f.json: o.i is -1, expected 0 to 7");
    assert_fails(json_int(&f, "r", 0, 7, &i), INK_BAD_DATA, "f.json: r is a number, expected an integer");
    assert_fails(json_int(&f, "s", 0, 7, &i), INK_BAD_DATA, "f.json: s is a string, expected an integer");
    assert_fails(json_number(&f, "r", 3, 4, &d), INK_BAD_DATA, "f.json: r is 2.5, expected 3 to 4");
    assert_fails(json_bool(&f, "i", &b), INK_BAD_DATA, "true or false");
    assert_fails(json_ints(&f, "l", 3, 0, 2, pair), INK_BAD_DATA, "l has 2 elements, expected 3");
    assert_fails(json_ints(&f, "l", 2, 0, 1, pair), INK_BAD_DATA, "l[1] is 2, expected 0 to 1");
    assert_fails(json_sub(&f, "l", &sub), INK_BAD_DATA, "l is a list, expected an object");
    json_decref(object);

    static const char *const bad[] = {"",
                                      "[]",
                                      "{",
                                      "{} x",
                                      "{\"a\": 1, \"a\": 2}",
                                      "{\"a\": 1e999}",
                                      "{\"a\": 99999999999999999999}",
                                      "{\"a\xff\": 1}",
                                      "{\"a\": NaN}"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        assert_fails(json_parse_object(bad[k], strlen(bad[k]), "f.json", &object), INK_BAD_DATA, "f.json: ");
    char deep[5000];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"a\":", 5);
    assert_fails(json_parse_object(deep, sizeof deep, "f.json", &object), INK_BAD_DATA, "depth");
    size_t many = 2 * (size_t)JSON_ITEM_LIMIT + 16;
    char *list = malloc(many);
    for (size_t at = 0; at < many; at += 2)
        memcpy(list + at, "0,", 2);
    memcpy(list, "{\"a\":[0,", 8);
    memcpy(list + many - 3, "0]}", 3);
    assert_fails(json_parse_object(list, many, "f.json", &object), INK_BAD_DATA,
                 "f.json: the JSON text has more than 4000000 items");
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_names), cmocka_unit_test(test_directory),   cmocka_unit_test(test_lifetime),
        cmocka_unit_test(test_embedded),    cmocka_unit_test(test_json_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
