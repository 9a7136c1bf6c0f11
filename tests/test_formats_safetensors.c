/* test_formats_safetensors.c - reading, refusing and writing safetensors files; sharded checkpoints. */
#include "core/dtype.h"
#include "core/rng.h"
#include "core/tensor.h"
#include "formats/safetensors_writer.h"
#include "test_formats_support.h"

#include <time.h>

static const char two_tensors[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                                  "\"b\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[6,22]},"
                                  "\"a\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[0,6]}}";

static ink_status open_header(const char *header, size_t data, safetensors **st)
{
    size_t size;
    unsigned char *file = make_safetensors(header, data, &size);
    ink_status s = safetensors_open_memory(file, size, "t.safetensors", st);
    if (s == INK_OK) { /* the bytes must outlive the set: look at what is needed, then drop both */
        for (size_t i = 0; i < safetensors_count(*st); i++) {
            const safetensors_entry *e = safetensors_at(*st, i);
            const unsigned char *p = e->tensor.data;
            assert_true(!e->bytes || (p >= file && p + e->bytes <= file + size));
        }
        safetensors_free(*st);
    }
    free(file);
    return s;
}

static void test_two_tensors(void **state)
{
    (void)state;
    size_t size;
    unsigned char *file = make_safetensors(two_tensors, 22, &size);
    safetensors *st;
    assert_ok(safetensors_open_memory(file, size, "t.safetensors", &st));
    assert_int_equal(safetensors_count(st), 2);
    assert_int_equal(safetensors_bytes(st), 22);
    assert_string_equal(safetensors_at(st, 0)->name, "a");
    assert_string_equal(safetensors_at(st, 1)->name, "b");
    const safetensors_entry *e = safetensors_find(st, "b");
    assert_string_equal(e->dtype, "F32");
    assert_int_equal(e->tensor.rank, 2);
    assert_int_equal(e->tensor.dims[1], 2);
    assert_true(ink_tensor_is_contiguous(&e->tensor));
    assert_ptr_equal(e->tensor.data, file + size - 16);
    assert_null(safetensors_find(st, "c"));
    assert_null(safetensors_find(st, "__metadata__"));
    ink_tensor t;
    assert_fails(safetensors_get(st, "c", &t), INK_NOT_FOUND, "t.safetensors has no tensor c");
    safetensors_free(st);
    free(file);
    safetensors_free(NULL);
}

/* A file as the reference library writes it: every storage type. */
static void test_reference_file(void **state)
{
    (void)state;
    safetensors *st;
    assert_ok(safetensors_open_path(DATA_DIR "all_types.safetensors", &st));
    assert_int_equal(safetensors_count(st), 19);
    static const char *const known[] = {"f64", "f32", "f16", "bf16", "i64", "i32", "u8"};
    ink_tensor t;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        assert_ok(safetensors_get(st, known[k], &t));
        assert_string_equal(ink_dtype_name(t.dtype), known[k]);
        assert_int_equal(t.rank, 2);
        assert_true(tensor_is_aligned(&t));
        for (int i = 0; i < 6; i++)
            assert_true(load_f64(t.data, t.dtype, i) == i);
    }
    assert_ok(safetensors_get(st, "bool", &t));
    for (int i = 0; i < 6; i++)
        assert_true(load_f64(t.data, t.dtype, i) == i % 2);
    assert_ok(safetensors_get(st, "scalar", &t));
    assert_int_equal(t.rank, 0);
    assert_true(load_f64(t.data, t.dtype, 0) == 7);
    assert_ok(safetensors_get(st, "empty", &t));
    assert_int_equal(ink_tensor_numel(&t), 0);
    static const char *const strange[] = {"i16", "i8", "u16", "u32", "u64", "f8_e4m3", "f8_e5m2", "c64", "rank7"};
    for (size_t k = 0; k < sizeof strange / sizeof *strange; k++) {
        assert_non_null(safetensors_find(st, strange[k]));
        assert_fails(safetensors_get(st, strange[k], &t), INK_UNIMPLEMENTED, strange[k]);
    }
    safetensors_free(st);
}

static void test_golden_file(void **state)
{
    (void)state;
    safetensors *st;
    ink_tensor t;
    assert_ok(safetensors_open_path(MINI_DIR "/golden/01.fp32.safetensors", &st));
    assert_ok(safetensors_get(st, "input_ids", &t));
    assert_int_equal(t.dtype, INK_I64);
    assert_int_equal(ink_tensor_numel(&t), 27);
    safetensors_free(st);
}

/* Cut anywhere, the file is an error; the sanitizer build also sees any read behind the end. */
static void test_truncation(void **state)
{
    (void)state;
    size_t size;
    unsigned char *file = make_safetensors(two_tensors, 22, &size);
    for (size_t n = 0; n < size; n++) {
        unsigned char *cut = malloc(n ? n : 1);
        memcpy(cut, file, n);
        safetensors *st;
        assert_fails(safetensors_open_memory(cut, n, "t.safetensors", &st), INK_BAD_DATA, "truncated");
        assert_null(st);
        free(cut);
    }
    free(file);
}

/* Every header byte set to every value: an error or a set whose tensors lie inside the file. */
static void test_mutation(void **state)
{
    (void)state;
    size_t size, accepted = 0, refused = 0;
    unsigned char *file = make_safetensors(two_tensors, 22, &size);
    for (size_t i = 0; i < size - 22; i++) {
        unsigned char was = file[i];
        for (unsigned v = 0; v < 256; v++) {
            safetensors *st;
            file[i] = (unsigned char)v;
            if (safetensors_open_memory(file, size, "t.safetensors", &st) != INK_OK) {
                refused++;
                continue;
            }
            accepted++;
            for (size_t k = 0; k < safetensors_count(st); k++) {
                const safetensors_entry *e = safetensors_at(st, k);
                const unsigned char *p = e->tensor.data;
                assert_true(!e->bytes || (p >= file && p + e->bytes <= file + size));
            }
            safetensors_free(st);
        }
        file[i] = was;
    }
    assert_true(accepted > 100 && refused > 10000); /* names may change freely, structure may not */
    free(file);
}

/* Random damage to a longer header: two bytes changed, or a run copied elsewhere. */
static void test_random_damage(void **state)
{
    (void)state;
    rng r = {.seed = (uint64_t)time(NULL)};
    print_message("seed %llu\n", (unsigned long long)r.seed);
    size_t size;
    unsigned char *good = get_file(DATA_DIR "all_types.safetensors", &size);
    for (int round = 0; round < 3000; round++) {
        unsigned char *bad = (unsigned char *)copy_bytes(good, size);
        if (round % 2) {
            size_t n = 1 + rng_below(&r, 40);
            memmove(bad + rng_below(&r, size - n), bad + rng_below(&r, size - n), n);
        } else {
            bad[rng_below(&r, size)] = (unsigned char)rng_u64(&r);
            bad[8 + rng_below(&r, 200)] = "0123456789[],:\"{}-"[rng_below(&r, 18)];
        }
        safetensors *st;
        if (safetensors_open_memory(bad, size, "t", &st) == INK_OK)
            safetensors_free(st);
        free(bad);
    }
    free(good);
}

#define T(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void test_lying_headers(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        const char *message;
    } cases[] = {
        {"{\"x\":" T("F32", "[2]", "[0,4]") "}", 4, "span 4 bytes, its shape and dtype F32 need 8"},
        {"{\"x\":" T("F32", "[2]", "[0,8]") "}", 7, "truncated"},
        {"{\"x\":" T("F32", "[2]", "[0,8]") "}", 9, "1 bytes behind the last tensor"},
        {"{\"x\":" T("F32", "[2]", "[4,12]") "}", 12, "4 bytes before tensor x"},
        {"{\"x\":" T("F32", "[2]", "[8,0]") "}", 8, "not ordered"},
        {"{\"x\":" T("F32", "[2]", "[-8,0]") "}", 8, "not ordered"},
        {"{\"x\":" T("F32", "[2]", "[0]") "}", 8, "not a pair"},
        {"{\"x\":" T("F32", "[2]", "[0,8,9]") "}", 8, "not a pair"},
        {"{\"x\":" T("F32", "[2]", "[0.0,8.0]") "}", 8, "not a pair"},
        {"{\"x\":" T("F32", "[2]", "\"0,8\"") "}", 8, "not a pair"},
        {"{\"x\":" T("F32", "[-2]", "[0,8]") "}", 8, "dimension 0"},
        {"{\"x\":" T("F32", "[2.0]", "[0,8]") "}", 8, "dimension 0"},
        {"{\"x\":" T("F32", "2", "[0,8]") "}", 8, "shape is not a list"},
        {"{\"x\":" T("F32", "[4294967296,4294967296]", "[0,8]") "}", 8, "overflows"},
        {"{\"x\":" T("F32", "[9223372036854775807]", "[0,8]") "}", 8, "overflows"},
        {"{\"x\":" T("F32", "[9223372036854775807,2,0]", "[0,0]") "}", 0, "overflows"},
        {"{\"x\":" T("U8", "[9223372036854775807,1,1,1,1,1,1,1,1,2]", "[0,8]") "}", 8, "overflows"},
        {"{\"x\":" T("F32", "[18446744073709551618]", "[0,8]") "}", 8, "too big"},
        {"{\"x\":" T("F32", "[2]", "[9223372036854775800,9223372036854775807]") "}", 8, "span 7 bytes"},
        {"{\"x\":" T("X9", "[2]", "[0,9223372036854775807]") ",\"y\":" T("X9", "[2]",
                                                                         "[9223372036854775807,9223372036854775807]") "}",
         8, ""},
        {"{\"x\":" T("X9", "[2]", "[0,9223372036854775807]") ",\"y\":" T("U8", "[1]",
                                                                         "[9223372036854775806,9223372036854775807]") "}",
         8, "overlap"},
        {"{\"x\":" T("F32", "[0]", "[100,100]") "}", 8, "behind the end"},
        {"{\"x\":" T("F32", "[1]", "[0,4]") ",\"y\":" T("F32", "[1]", "[2,6]") "}", 6, "x and y overlap"},
        {"{\"x\":" T("F32", "[1]", "[0,4]") ",\"y\":" T("F32", "[1]", "[0,4]") "}", 4, "overlap"},
        {"{\"x\":" T("F32", "[1]", "[0,4]") ",\"y\":" T("F32", "[1]", "[5,9]") "}", 9, "1 bytes before tensor y"},
        {"{\"x\":" T("F32", "[1]", "[0,4]") ",\"x\":" T("F32", "[1]", "[4,8]") "}", 8, "duplicate"},
        {"{\"x\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "not a pair"},
        {"{\"x\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype"},
        {"{\"x\":{\"dtype\":5,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype"},
        {"{\"x\":{\"dtype\":\"a very long name of a type\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype"},
        {"{\"x\":7}", 0, "dtype"},
        {"{\"x\\u001b[2J\":" T("F32", "[1]", "[0,4]") "}", 4, "control character"},
        {"{\"x\\u0000y\":" T("F32", "[1]", "[0,4]") "}", 4, "t.safetensors"},
        {"[]", 0, "JSON object"},
        {"", 0, "not valid JSON"},
        {"{}{}", 0, "not valid JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        safetensors *st;
        assert_fails(open_header(cases[i].header, cases[i].data, &st), INK_BAD_DATA, cases[i].message);
    }
    /* a header length that lies */
    unsigned char file[32] = {0};
    safetensors *st;
    memset(file, 0xff, 8);
    assert_fails(safetensors_open_memory(file, sizeof file, "t", &st), INK_BAD_DATA, "beyond the format's limit");
    memset(file, 0, 8);
    file[0] = 25;
    assert_fails(safetensors_open_memory(file, sizeof file, "t", &st), INK_BAD_DATA, "truncated");
    file[0] = 0;
    assert_fails(safetensors_open_memory(file, sizeof file, "t", &st), INK_BAD_DATA, "not valid JSON");
}

static void test_valid_oddities(void **state)
{
    (void)state;
    safetensors *st;
    assert_ok(open_header("{}", 0, &st));
    assert_ok(open_header("{\"__metadata__\":{\"a\":\"b\"}}      ", 0, &st));
    assert_ok(open_header(
        "{\"x\":" T("F32", "[1]", "[0,4]") ",\"e\":" T("F32", "[0,9]", "[4,4]") ",\"f\":" T("I8", "[0]", "[0,0]") "}", 4,
        &st));
    assert_ok(open_header("{\"\":" T("F32", "[]", "[0,4]") "}", 4, &st));
    assert_ok(open_header("{\"x\":" T("F4", "[3]", "[0,2]") "}", 2, &st)); /* unknown type: size cannot be checked */
}

static void test_alignment(void **state)
{
    (void)state;
    _Alignas(4096) static unsigned char memory[8192];
    ink_tensor t;
    static const size_t offsets[] = {0, 1, 2, 4, 64, 4096, 100};
    static const size_t expected[] = {4096, 1, 2, 4, 64, 4096, 4};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        assert_ok(ink_tensor_init(&t, INK_F32, 1, (int64_t[]){1}, memory + offsets[i]));
        assert_int_equal(tensor_alignment(&t), expected[i]);
        assert_int_equal(tensor_is_aligned(&t), expected[i] >= 4);
    }
}

/* ---- writer ---- */

static void test_write_and_read(void **state)
{
    (void)state;
    rng r = {.seed = (uint64_t)time(NULL)};
    print_message("seed %llu\n", (unsigned long long)r.seed);
    char dir[64], path[128];
    make_dir(dir);
    snprintf(path, sizeof path, "%s/w.safetensors", dir);
    enum { N = 24 };
    char names[N][32];
    const char *name_list[N];
    ink_tensor tensors[N];
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], i == 3 ? "quo\"te\\%d" : "é.%d", i);
        name_list[i] = names[i];
        int rank = (int)rng_below(&r, INK_MAX_RANK + 1);
        int64_t dims[INK_MAX_RANK];
        for (int d = 0; d < rank; d++)
            dims[d] = rng_range(&r, i % 7 == 0 ? 0 : 1, 5);
        assert_ok(ink_tensor_init(&tensors[i], (ink_dtype)rng_below(&r, INK_DTYPE_COUNT), rank, dims, NULL));
        size_t bytes = ink_tensor_bytes(&tensors[i]);
        unsigned char *data = malloc(bytes ? bytes : 1);
        for (size_t b = 0; b < bytes; b++)
            data[b] = (unsigned char)rng_u64(&r);
        tensors[i].data = data;
    }
    assert_ok(safetensors_save(path, N, name_list, tensors));
    assert_int_equal(count_files(dir), 1);
    safetensors *st;
    assert_ok(safetensors_open_path(path, &st));
    assert_int_equal(safetensors_count(st), N);
    for (int i = 0; i < N; i++) {
        ink_tensor t;
        assert_ok(safetensors_get(st, names[i], &t));
        assert_int_equal(t.dtype, tensors[i].dtype);
        assert_int_equal(t.rank, tensors[i].rank);
        assert_memory_equal(t.dims, tensors[i].dims, (size_t)t.rank * sizeof *t.dims);
        size_t bytes = ink_tensor_bytes(&t);
        if (bytes)
            assert_memory_equal(t.data, tensors[i].data, bytes);
        assert_true(!bytes || bytes % 64 || tensor_alignment(&t) >= 64);
        free(tensors[i].data);
    }
    safetensors_free(st);
    remove_dir(dir);
}

static void test_writer_misuse(void **state)
{
    (void)state;
    char dir[64], path[128];
    make_dir(dir);
    snprintf(path, sizeof path, "%s/w.safetensors", dir);
    safetensors_writer *w;
    float v[4] = {1, 2, 3, 4};
    assert_ok(safetensors_writer_create(path, &w));
    assert_fails(safetensors_writer_declare(w, "__metadata__", INK_F32, 0, NULL), INK_INVALID_ARGUMENT, "__metadata__");
    assert_fails(safetensors_writer_declare(w, "a\nb", INK_F32, 0, NULL), INK_INVALID_ARGUMENT, "control character");
    assert_ok(safetensors_writer_declare(w, "x", INK_F32, 1, (int64_t[]){4}));
    assert_fails(safetensors_writer_write(w, 0, 0, v, 16), INK_FAILED_PRECONDITION, "before the header");
    assert_fails(safetensors_writer_finish(w), INK_FAILED_PRECONDITION, "before it was begun");
    assert_ok(safetensors_writer_begin(w));
    assert_fails(safetensors_writer_begin(w), INK_FAILED_PRECONDITION, "twice");
    assert_fails(safetensors_writer_declare(w, "y", INK_F32, 0, NULL), INK_FAILED_PRECONDITION, "after the header");
    assert_fails(safetensors_writer_write(w, 1, 0, v, 4), INK_OUT_OF_RANGE, "tensor 1 of 1");
    assert_fails(safetensors_writer_write(w, 0, 12, v, 8), INK_OUT_OF_RANGE, "which has 16");
    assert_ok(safetensors_writer_write(w, 0, 8, v + 2, 8));
    assert_fails(safetensors_writer_finish(w), INK_FAILED_PRECONDITION, "8 of 16");
    assert_int_equal(count_files(dir), 1); /* only the partial file */
    safetensors_writer_free(w);
    assert_int_equal(count_files(dir), 0); /* given up: nothing is left */

    assert_ok(safetensors_writer_create(path, &w));
    assert_ok(safetensors_writer_declare(w, "x", INK_F32, 1, (int64_t[]){4}));
    assert_ok(safetensors_writer_declare(w, "x", INK_F16, 1, (int64_t[]){32}));
    assert_fails(safetensors_writer_begin(w), INK_INVALID_ARGUMENT, "x is declared twice");
    safetensors_writer_free(w);
    ink_tensor t;
    assert_ok(ink_tensor_init(&t, INK_F32, 1, (int64_t[]){4}, v));
    assert_fails(safetensors_save("/nonexistent/w.safetensors", 1, (const char *const[]){"x"}, &t), INK_IO,
                 "/nonexistent/w.safetensors");
    remove_dir(dir);
}

/* ---- sharded checkpoints ---- */

#define SHARD_TENSORS 10

/* Ten tensors t0..t9 of i + 1 floats with value i, spread over `shards` files, and the index. */
static void write_shards(const char *dir, int shards)
{
    strbuf index = {0};
    strbuf_puts(&index, "{\"metadata\": {\"total_size\": 220}, \"weight_map\": {");
    for (int s = 0; s < shards; s++) {
        char path[128], file[64], names[SHARD_TENSORS][16];
        const char *list[SHARD_TENSORS];
        ink_tensor tensors[SHARD_TENSORS];
        float values[SHARD_TENSORS][SHARD_TENSORS];
        size_t n = 0;
        snprintf(file, sizeof file, "model-%05d-of-%05d.safetensors", s + 1, shards);
        for (int i = s; i < SHARD_TENSORS; i += shards, n++) {
            snprintf(names[n], sizeof names[n], "t%d", i);
            list[n] = names[n];
            for (int k = 0; k <= i; k++)
                values[n][k] = (float)i;
            assert_ok(ink_tensor_init(&tensors[n], INK_F32, 1, (int64_t[]){i + 1}, values[n]));
            strbuf_printf(&index, "%s\"t%d\": \"%s\"", s + (int)n ? ", " : "", i, file);
        }
        snprintf(path, sizeof path, "%s/%s", dir, file);
        assert_ok(safetensors_save(path, n, list, tensors));
    }
    strbuf_puts(&index, "}}");
    put_string(dir, "model.safetensors.index.json", strbuf_text(&index));
    strbuf_free(&index);
}

static ink_status open_dir(const char *dir, safetensors **st)
{
    model_files files;
    assert_ok(model_files_open_directory(dir, &files));
    ink_status s = safetensors_open_model(&files, st);
    model_files_close(&files);
    return s;
}

static void check_ten(const safetensors *st)
{
    assert_int_equal(safetensors_count(st), SHARD_TENSORS);
    for (int i = 0; i < SHARD_TENSORS; i++) {
        char name[16];
        ink_tensor t;
        snprintf(name, sizeof name, "t%d", i);
        assert_ok(safetensors_get(st, name, &t));
        assert_int_equal(ink_tensor_numel(&t), i + 1);
        assert_true(load_f64(t.data, t.dtype, i) == i);
        safetensors_prefetch(st, safetensors_find(st, name));
    }
}

static void test_shards(void **state)
{
    (void)state;
    static const int counts[] = {1, 2, 5};
    for (size_t c = 0; c < 3; c++) {
        char dir[64];
        safetensors *st;
        make_dir(dir);
        write_shards(dir, counts[c]);
        assert_ok(open_dir(dir, &st));
        check_ten(st);
        assert_non_null(strstr(safetensors_label(st), "index.json"));
        safetensors_free(st);
        remove_dir(dir);
    }
}

static void test_damaged_shards(void **state)
{
    (void)state;
    char dir[64], path[128];
    safetensors *st;
    make_dir(dir);
    write_shards(dir, 5);
    snprintf(path, sizeof path, "%s/model-00003-of-00005.safetensors", dir);

    size_t size;
    unsigned char *bytes = get_file(path, &size);
    put_file(dir, "model-00003-of-00005.safetensors", bytes, size - 30); /* its end is cut off */
    assert_fails(open_dir(dir, &st), INK_BAD_DATA, "model-00003-of-00005.safetensors is truncated");

    char *offsets = strstr((char *)bytes + 8, "\"data_offsets\":[");
    offsets[strlen("\"data_offsets\":[")] = '8'; /* a wrong offset */
    put_file(dir, "model-00003-of-00005.safetensors", bytes, size);
    assert_fails(open_dir(dir, &st), INK_BAD_DATA, "model-00003-of-00005.safetensors: tensor t");
    free(bytes);

    unlink(path);
    snprintf(path, sizeof path, "%s/model-00005-of-00005.safetensors", dir);
    unlink(path);
    assert_fails(open_dir(dir, &st), INK_NOT_FOUND, "2 of 5 shards are missing");
    assert_non_null(strstr(ink_last_error(), "model-00003-of-00005.safetensors"));
    assert_non_null(strstr(ink_last_error(), "model-00005-of-00005.safetensors"));
    remove_dir(dir);
}

static void test_bad_indexes(void **state)
{
    (void)state;
    static const struct {
        const char *index, *message;
    } cases[] = {
        {"{", "not valid JSON"},
        {"{}", "weight_map is missing"},
        {"{\"weight_map\": {}}", "weight_map is missing or empty"},
        {"{\"weight_map\": []}", "weight_map is missing"},
        {"{\"weight_map\": {\"t0\": 1}}", "weight_map.t0"},
        {"{\"weight_map\": {\"t0\": \"../model-00001-of-00001.safetensors\"}}", "same directory"},
        {"{\"weight_map\": {\"t0\": \"/etc/passwd\"}}", "same directory"},
        {"{\"weight_map\": {\"t0\": \"\"}}", "same directory"},
        {"{\"weight_map\": {\"t\\u001b\": \"model-00001-of-00001.safetensors\"}}", "control character"},
        {"{\"weight_map\": {\"t0\": \"model-00001-of-00001.safetensors\", \"zz\": \"model-00001-of-00001.safetensors\"}}",
         "1 tensors are not in the shard the index names:\n  zz (in model-00001-of-00001.safetensors)"},
    };
    char dir[64];
    safetensors *st;
    make_dir(dir);
    write_shards(dir, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_string(dir, "model.safetensors.index.json", cases[i].index);
        assert_fails(open_dir(dir, &st), INK_BAD_DATA, cases[i].message);
    }
    /* a tensor the index leaves out is not part of the set */
    put_string(dir, "model.safetensors.index.json", "{\"weight_map\": {\"t4\": \"model-00001-of-00001.safetensors\"}}");
    assert_ok(open_dir(dir, &st));
    assert_int_equal(safetensors_count(st), 1);
    safetensors_free(st);
    remove_dir(dir);
}

/* Users rename the only shard to model.safetensors; the index beside it then names a file that is gone. */
static void test_renamed_single_shard(void **state)
{
    (void)state;
    char dir[64], from[128], to[128];
    safetensors *st;
    make_dir(dir);
    write_shards(dir, 1);
    snprintf(from, sizeof from, "%s/model-00001-of-00001.safetensors", dir);
    snprintf(to, sizeof to, "%s/model.safetensors", dir);
    assert_int_equal(rename(from, to), 0);
    assert_ok(open_dir(dir, &st));
    check_ten(st);
    safetensors_free(st);

    /* An index that lists model.safetensors itself counts. */
    put_string(dir, "model.safetensors.index.json",
               "{\"weight_map\": {\"t4\": \"model.safetensors\", \"u\": \"more.safetensors\"}}");
    assert_fails(open_dir(dir, &st), INK_NOT_FOUND, "more.safetensors");
    remove_dir(dir);
}

static void test_no_weights(void **state)
{
    (void)state;
    char dir[64];
    safetensors *st;
    make_dir(dir);
    assert_fails(open_dir(dir, &st), INK_NOT_FOUND, "no model.safetensors and no model.safetensors.index.json");
    put_string(dir, "pytorch_model.bin", "x");
    assert_fails(open_dir(dir, &st), INK_NOT_FOUND, "pytorch_model.bin is not supported");
    remove_dir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_tensors),
        cmocka_unit_test(test_reference_file),
        cmocka_unit_test(test_golden_file),
        cmocka_unit_test(test_truncation),
        cmocka_unit_test(test_mutation),
        cmocka_unit_test(test_random_damage),
        cmocka_unit_test(test_lying_headers),
        cmocka_unit_test(test_valid_oddities),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_write_and_read),
        cmocka_unit_test(test_writer_misuse),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_damaged_shards),
        cmocka_unit_test(test_bad_indexes),
        cmocka_unit_test(test_renamed_single_shard),
        cmocka_unit_test(test_no_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
