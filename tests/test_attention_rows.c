/* test_attention_rows.c - what a row of attention may depend on: for every registered kernel, the bits of a query are the
 * same however its prompt is cut into chunks, whatever other sequences are in the call, wherever its blocks lie and for any
 * number of threads. Also the integer inputs that must be refused, and softmax of the special rows by value. */
#include "core/dtype.h"
#include "core/memory.h"
#include "core/rng.h"
#include "registry/registry.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static uint64_t seed;

typedef struct head_shape {
    int64_t heads, kv, dim;
} head_shape;
static const head_shape shapes[] = {{16, 2, 128}, {6, 2, 64}};

/* ---- tensors and calls ---- */

static ink_tensor tensor(ink_dtype t, int rank, const int64_t *dims)
{
    ink_tensor x;
    assert_int_equal(ink_tensor_init(&x, t, rank, dims, NULL), INK_OK);
    assert_non_null(x.data = alloc_array(ink_tensor_bytes(&x) + 1, 1));
    return x;
}

static ink_tensor random_tensor(ink_dtype t, int rank, const int64_t *dims, uint64_t stream)
{
    ink_tensor x = tensor(t, rank, dims);
    for (int64_t i = 0; i < ink_tensor_numel(&x); i++)
        store_f32(x.data, t, i, rng_normal_bits(rng_at(seed ^ stream, (uint64_t)i)));
    return x;
}

static ink_status run(const kernel *k, op_call *c, int threads)
{
    c->threads = threads;
    assert_int_equal(op_infer(c), INK_OK);
    c->workspace_bytes = k->workspace ? k->workspace(c) : 0;
    c->workspace = alloc_aligned(c->workspace_bytes + 64);
    assert_non_null(c->workspace);
    memset(c->workspace, 0x7f, c->workspace_bytes);
    ink_status s = k->run(c);
    free(c->workspace);
    return s;
}

/* One sequence as the tests see it: keys 0 .. length-1 of a random pool, queries for every position. */
typedef struct sequence {
    ink_tensor q, k, v; /* [length, H, D], [length, KV, D] */
    int64_t length;
} sequence;

static sequence make_sequence(const head_shape *h, ink_dtype t, int64_t length, uint64_t stream)
{
    return (sequence){random_tensor(t, 3, (int64_t[]){length, h->heads, h->dim}, 3 * stream),
                      random_tensor(t, 3, (int64_t[]){length, h->kv, h->dim}, 3 * stream + 1),
                      random_tensor(t, 3, (int64_t[]){length, h->kv, h->dim}, 3 * stream + 2), length};
}

static void free_sequence(sequence *s) { free(s->q.data), free(s->k.data), free(s->v.data); }

/* Part of a sequence in a call: `queries` rows that end at position `end` - 1. */
typedef struct part {
    const sequence *s;
    int64_t end, queries;
} part;

enum { MAX_PARTS = 6 };

/* Rows first .. first+n-1 of a [.., heads, dim] tensor. */
static void copy_rows(void *to, const ink_tensor *from, int64_t first, int64_t n)
{
    size_t row = (size_t)(from->dims[1] * from->dims[2]) * ink_dtype_size(from->dtype);
    memcpy(to, (const char *)from->data + (size_t)first * row, (size_t)n * row);
}

/* Runs paged_attention on the parts, their blocks scattered through a pool full of NaN by `scatter`; y: rows in order. */
static void run_paged(const kernel *k, const head_shape *h, const part *parts, int n, bool few, uint64_t scatter,
                      int threads, char *y)
{
    int64_t rows = 0, width = 1, blocks = 3, next = 0;
    for (int i = 0; i < n; i++) {
        int64_t used = (parts[i].end + KV_BLOCK - 1) / KV_BLOCK;
        rows += parts[i].queries;
        width = used > width ? used : width;
        blocks += used;
    }
    int64_t pool[4] = {blocks, h->kv, KV_BLOCK, h->dim};
    ink_tensor q = tensor(k->dtype, 3, (int64_t[]){rows, h->heads, h->dim}), kp = tensor(k->dtype, 4, pool),
               vp = tensor(k->dtype, 4, pool);
    ink_tensor table = tensor(INK_I32, 2, (int64_t[]){n, width}), lengths = tensor(INK_I32, 1, (int64_t[]){n});
    ink_tensor cu = tensor(INK_I32, 1, (int64_t[]){n + 1}), out = {0};
    size_t row = (size_t)h->dim * ink_dtype_size(k->dtype);
    for (int64_t i = 0; i < ink_tensor_numel(&kp); i++) {
        store_f32(kp.data, k->dtype, i, NAN);
        store_f32(vp.data, k->dtype, i, NAN);
    }
    int32_t *order = alloc_array((size_t)blocks, sizeof *order);
    for (int64_t i = 0; i < blocks; i++) {
        int64_t j = (int64_t)(rng_at(scatter, (uint64_t)i) % (uint64_t)(i + 1));
        order[i] = order[j];
        order[j] = (int32_t)i;
    }
    for (int i = 0; i < n; i++) {
        const part *p = &parts[i];
        int32_t *blocks_of = (int32_t *)table.data + i * width, *starts = cu.data;
        for (int64_t j = 0; j < p->end; j++) {
            if (j % KV_BLOCK == 0)
                blocks_of[j / KV_BLOCK] = order[next++];
            for (int64_t g = 0; g < h->kv; g++) {
                size_t to = (size_t)((blocks_of[j / KV_BLOCK] * h->kv + g) * KV_BLOCK + j % KV_BLOCK) * row,
                       from = (size_t)(j * h->kv + g) * row;
                memcpy((char *)kp.data + to, (char *)p->s->k.data + from, row);
                memcpy((char *)vp.data + to, (char *)p->s->v.data + from, row);
            }
        }
        ((int32_t *)lengths.data)[i] = (int32_t)p->end;
        copy_rows((char *)q.data + (size_t)(starts[i] * h->heads) * row, &p->s->q, p->end - p->queries, p->queries);
        starts[i + 1] = starts[i] + (int32_t)p->queries;
    }
    op_call c = {.op = OP_paged_attention, .in = {&q, &kp, &vp, &table, &lengths, &cu}, .out = {&out}};
    c.attrs.attention = (attention_attrs){.scale = 1 / sqrtf((float)h->dim), .causal = true, .few_rows = few};
    out.data = y;
    if (!k->decline || !k->decline(&c))
        assert_int_equal(run(k, &c, threads), INK_OK);
    free(q.data), free(kp.data), free(vp.data), free(table.data), free(lengths.data), free(cu.data), free(order);
}

static bool usable(const device *d, const kernel *k) { return k->isa <= d->isa; }

static void assert_rows_equal(const kernel *k, const char *what, const void *a, const void *b, size_t bytes)
{
    if (memcmp(a, b, bytes))
        fail_msg("%s: %s changes the bits (seed %llu)", k->name, what, (unsigned long long)seed);
}

/* ---- prompts in chunks, batches, threads ---- */

static void check_prompt(const kernel *k, const head_shape *h)
{
    const int64_t length = 333;
    const size_t row = (size_t)(h->heads * h->dim) * ink_dtype_size(k->dtype), bytes = (size_t)length * row;
    sequence a = make_sequence(h, k->dtype, length, 1), b = make_sequence(h, k->dtype, 70, 2),
             c = make_sequence(h, k->dtype, 290, 3);
    char *whole = alloc_array(bytes, 1), *other = alloc_array(3 * bytes, 1);
    run_paged(k, h, &(part){&a, length, length}, 1, false, 1, 1, whole);
    for (int64_t threads = 2; threads <= 5; threads += 3) {
        run_paged(k, h, &(part){&a, length, length}, 1, false, 1, (int)threads, other);
        assert_rows_equal(k, "the number of threads", whole, other, bytes);
    }
    static const int64_t cuts[][6] = {{37, 38, 64, 300, 333}, {1, 2, 256, 257, 333}, {128, 333}, {31, 160, 333}};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        for (int64_t from = 0, j = 0; from < length; from = cuts[i][j++]) {
            int64_t n = cuts[i][j] - from;
            run_paged(k, h, &(part){&a, cuts[i][j], n}, 1, false, 2 + i, 2, other);
            assert_rows_equal(k, "cutting the prompt into chunks", whole + (size_t)from * row, other, (size_t)n * row);
        }
    part parts[] = {{&b, 70, 70}, {&c, 290, 5}, {&a, length, length}, {&b, 64, 1}};
    run_paged(k, h, parts, 4, false, 9, 3, other);
    assert_rows_equal(k, "other sequences in the call", whole, other + 75 * row, bytes);
    free(whole), free(other);
    free_sequence(&a), free_sequence(&b), free_sequence(&c);
}

static void check_tokens(const kernel *k, const head_shape *h)
{
    static const int64_t lengths[] = {1, 31, 32, 129, 1000, 3001};
    enum { N = sizeof lengths / sizeof *lengths };
    const size_t row = (size_t)(h->heads * h->dim) * ink_dtype_size(k->dtype);
    sequence s[N];
    part parts[N], turned[N];
    char *alone = alloc_array(N * row, 1), *together = alloc_array(N * row, 1);
    for (int i = 0; i < N; i++) {
        s[i] = make_sequence(h, k->dtype, lengths[i], 10 + (uint64_t)i);
        parts[i] = (part){&s[i], lengths[i], 1};
        turned[N - 1 - i] = parts[i];
        run_paged(k, h, &parts[i], 1, true, (uint64_t)i, 1 + i, alone + (size_t)i * row);
    }
    for (int threads = 1; threads <= 4; threads++) {
        run_paged(k, h, parts, N, true, 50 + (uint64_t)threads, threads, together);
        assert_rows_equal(k, "the batch of generated tokens", alone, together, N * row);
    }
    run_paged(k, h, turned, N, true, 60, 2, together);
    for (int i = 0; i < N; i++)
        assert_rows_equal(k, "the order of the batch", alone + (size_t)i * row, together + (size_t)(N - 1 - i) * row, row);
    free(alone), free(together);
    for (int i = 0; i < N; i++)
        free_sequence(&s[i]);
}

static void for_every_row(op_id op, void (*check)(const kernel *, const head_shape *))
{
    device d;
    const kernel_list *l = registry_list_of(INK_CPU, op);
    assert_int_equal(device_open_cpu(&d, 1, NULL), INK_OK);
    for (int i = 0; i < l->count; i++)
        for (size_t j = 0; j < sizeof shapes / sizeof *shapes; j++)
            /* the large heads for the type that models use; the portable rows are slow: one of them stands for three */
            if (usable(&d, &l->rows[i]) && (l->rows[i].dtype == INK_BF16 ? l->rows[i].isa || j : l->rows[i].isa && j))
                check(&l->rows[i], &shapes[j]);
    device_close(&d);
}

static void test_prompt_rows(void **state)
{
    (void)state;
    for_every_row(OP_paged_attention, check_prompt);
}

static void test_token_rows(void **state)
{
    (void)state;
    for_every_row(OP_paged_attention, check_tokens);
}

/* ---- packed segments ---- */

static void run_packed(const kernel *k, const head_shape *h, const part *parts, int n, bool causal, int threads, char *y)
{
    int64_t rows = 0;
    for (int i = 0; i < n; i++)
        rows += parts[i].end;
    ink_tensor q = tensor(k->dtype, 3, (int64_t[]){rows, h->heads, h->dim}),
               kk = tensor(k->dtype, 3, (int64_t[]){rows, h->kv, h->dim});
    ink_tensor v = tensor(k->dtype, 3, (int64_t[]){rows, h->kv, h->dim}), cu = tensor(INK_I32, 1, (int64_t[]){n + 1}),
               out = {0};
    size_t element = ink_dtype_size(k->dtype);
    for (int i = 0; i < n; i++) {
        int32_t *starts = cu.data;
        copy_rows((char *)q.data + (size_t)(starts[i] * h->heads * h->dim) * element, &parts[i].s->q, 0, parts[i].end);
        copy_rows((char *)kk.data + (size_t)(starts[i] * h->kv * h->dim) * element, &parts[i].s->k, 0, parts[i].end);
        copy_rows((char *)v.data + (size_t)(starts[i] * h->kv * h->dim) * element, &parts[i].s->v, 0, parts[i].end);
        starts[i + 1] = starts[i] + (int32_t)parts[i].end;
    }
    op_call c = {.op = OP_attention, .in = {&q, &kk, &v, &cu}, .out = {&out}};
    c.attrs.attention = (attention_attrs){.scale = 1 / sqrtf((float)h->dim), .causal = causal};
    out.data = y;
    assert_int_equal(run(k, &c, threads), INK_OK);
    free(q.data), free(kk.data), free(v.data), free(cu.data);
}

static void check_segments(const kernel *k, const head_shape *h)
{
    const size_t row = (size_t)(h->heads * h->dim) * ink_dtype_size(k->dtype);
    sequence a = make_sequence(h, k->dtype, 300, 21), b = make_sequence(h, k->dtype, 45, 22);
    char *alone = alloc_array(300 * row, 1), *together = alloc_array(700 * row, 1);
    for (int causal = 0; causal < 2; causal++) {
        run_packed(k, h, &(part){&a, 300, 0}, 1, causal, 1, alone);
        run_packed(k, h, &(part){&a, 300, 0}, 1, causal, 4, together);
        assert_rows_equal(k, "the number of threads", alone, together, 300 * row);
        part parts[] = {{&b, 45, 0}, {&b, 0, 0}, {&b, 1, 0}, {&a, 300, 0}, {&b, 33, 0}};
        run_packed(k, h, parts, 5, causal, 3, together);
        assert_rows_equal(k, "packing with other segments", alone, together + 46 * row, 300 * row);
        if (causal) { /* a causal row sees nothing behind it */
            run_packed(k, h, &(part){&a, 211, 0}, 1, causal, 2, together);
            assert_rows_equal(k, "later rows", alone, together, 211 * row);
        }
    }
    free(alone), free(together);
    free_sequence(&a), free_sequence(&b);
}

static void test_segments(void **state)
{
    (void)state;
    for_every_row(OP_attention, check_segments);
}

/* ---- integer inputs that lie ---- */

typedef struct bad_data {
    const char *what;
    int input, at, value;
} bad_data;

/* Two sequences of 40 and 3 keys, 2 queries each, in a pool of 4 blocks. */
static void check_bad_paged(const kernel *k, bool few, const bad_data *bad)
{
    const head_shape h = {2, 1, 16};
    int64_t pool[4] = {4, h.kv, KV_BLOCK, h.dim};
    int32_t table_data[] = {3, 1, 0, 77}, lengths_data[] = {40, 3}, cu_data[] = {0, 2, 4};
    int32_t *data[] = {table_data, lengths_data, cu_data};
    ink_tensor q = random_tensor(k->dtype, 3, (int64_t[]){4, h.heads, h.dim}, 1), kp = random_tensor(k->dtype, 4, pool, 2);
    ink_tensor vp = random_tensor(k->dtype, 4, pool, 3), table, lengths, cu, out = {0};
    ink_tensor_init(&table, INK_I32, 2, (int64_t[]){2, 2}, table_data);
    ink_tensor_init(&lengths, INK_I32, 1, (int64_t[]){2}, lengths_data);
    ink_tensor_init(&cu, INK_I32, 1, (int64_t[]){3}, cu_data);
    unsigned char y[4 * 2 * 16 * 4], before[sizeof y];
    memset(y, 0x5a, sizeof y);
    memcpy(before, y, sizeof y);
    op_call c = {.op = OP_paged_attention, .in = {&q, &kp, &vp, &table, &lengths, &cu}, .out = {&out}};
    c.attrs.attention = (attention_attrs){.scale = 1, .causal = true, .few_rows = few};
    out.data = y;
    if (bad)
        data[bad->input][bad->at] = bad->value;
    if (!k->decline || !k->decline(&c)) {
        assert_int_equal(run(k, &c, 2), bad ? INK_OUT_OF_RANGE : INK_OK);
        if (bad && memcmp(y, before, sizeof y))
            fail_msg("%s wrote although %s", k->name, bad->what);
    }
    free(q.data), free(kp.data), free(vp.data);
}

static void test_bad_paged(void **state)
{
    static const bad_data cases[] = {
        {"a block is behind the pool", 0, 0, 4},
        {"a block is far out", 0, 1, INT32_MAX},
        {"a block is negative", 0, 2, -1},
        {"a length is negative", 1, 0, -1},
        {"a length exceeds the table", 1, 1, 65},
        {"cu_seqlens does not start at 0", 2, 0, 1},
        {"cu_seqlens falls", 2, 1, 5},
        {"cu_seqlens ends early", 2, 2, 3},
        {"cu_seqlens ends late", 2, 2, 5},
        {"a length is huge", 1, 0, INT32_MAX},
    };
    device d;
    const kernel_list *l = registry_list_of(INK_CPU, OP_paged_attention);
    (void)state;
    assert_int_equal(device_open_cpu(&d, 1, NULL), INK_OK);
    for (int i = 0; i < l->count; i++)
        for (int few = 0; few < 2 && usable(&d, &l->rows[i]); few++) {
            check_bad_paged(&l->rows[i], few, NULL); /* the entry 77 behind the last block is never looked at */
            for (size_t b = 0; b < sizeof cases / sizeof *cases; b++)
                check_bad_paged(&l->rows[i], few, &cases[b]);
        }
    device_close(&d);
}

static void test_bad_segments(void **state)
{
    static const int32_t starts[][3] = {{1, 2, 4}, {0, 3, 2}, {0, 2, 3}, {0, 2, 5}, {0, -1, 4}, {0, 5, 4}};
    device d;
    const kernel_list *l = registry_list_of(INK_CPU, OP_attention);
    (void)state;
    assert_int_equal(device_open_cpu(&d, 1, NULL), INK_OK);
    for (int i = 0; i < l->count; i++)
        for (size_t s = 0; s < sizeof starts / sizeof *starts && usable(&d, &l->rows[i]); s++) {
            ink_tensor q = random_tensor(l->rows[i].dtype, 3, (int64_t[]){4, 1, 8}, 1), cu, out = {0};
            float y[32] = {7}, before[32] = {7};
            ink_tensor_init(&cu, INK_I32, 1, (int64_t[]){3}, (void *)starts[s]);
            op_call c = {.op = OP_attention, .in = {&q, &q, &q, &cu}, .out = {&out}, .attrs.attention = {.scale = 1}};
            out.data = y;
            assert_int_equal(run(&l->rows[i], &c, 1), INK_OUT_OF_RANGE);
            assert_memory_equal(y, before, sizeof y);
            free(q.data);
        }
    device_close(&d);
}

static void test_bad_slots(void **state)
{
    const kernel_list *l = registry_list_of(INK_CPU, OP_kv_append);
    (void)state;
    for (int i = 0; i < l->count; i++) {
        const ink_dtype t = l->rows[i].dtype;
        ink_tensor k = random_tensor(t, 3, (int64_t[]){3, 2, 4}, 1),
                   pool = random_tensor(t, 4, (int64_t[]){2, 2, KV_BLOCK, 4}, 2);
        ink_tensor pool2 = random_tensor(t, 4, (int64_t[]){2, 2, KV_BLOCK, 4}, 2), slots, out[2] = {{0}, {0}};
        int32_t numbers[] = {5, 63, 64};
        ink_tensor_init(&slots, INK_I32, 1, (int64_t[]){3}, numbers);
        op_call c = {.op = OP_kv_append, .in = {&k, &k, &slots, &pool, &pool2}, .out = {&out[0], &out[1]}};
        out[0].data = pool.data;
        out[1].data = pool2.data;
        ink_tensor copy = random_tensor(t, 4, (int64_t[]){2, 2, KV_BLOCK, 4}, 2);
        assert_int_equal(run(&l->rows[i], &c, 1), INK_OUT_OF_RANGE);
        assert_memory_equal(pool.data, copy.data, ink_tensor_bytes(&pool));
        assert_memory_equal(pool2.data, copy.data, ink_tensor_bytes(&pool));
        numbers[2] = INT32_MIN;
        assert_int_equal(run(&l->rows[i], &c, 1), INK_OK);
        free(k.data), free(pool.data), free(pool2.data), free(copy.data);
    }
}

/* ---- softmax of special rows ---- */

static void test_softmax_special(void **state)
{
    static const struct {
        float x[2], y[2];
    } rows[] = {
        {{1, NAN}, {NAN, NAN}},
        {{NAN, NAN}, {NAN, NAN}},
        {{INFINITY, 1}, {NAN, NAN}},
        {{INFINITY, INFINITY}, {NAN, NAN}},
        {{-INFINITY, -INFINITY}, {NAN, NAN}},
        {{-INFINITY, 1}, {0, 1}},
        {{-INFINITY, INFINITY}, {NAN, NAN}},
        {{3, 3}, {0.5f, 0.5f}},
        {{-30000, 30000}, {0, 1}},
    };
    enum { N = sizeof rows / sizeof *rows };
    device d;
    const kernel_list *l = registry_list_of(INK_CPU, OP_softmax);
    (void)state;
    assert_int_equal(device_open_cpu(&d, 1, NULL), INK_OK);
    for (int i = 0; i < l->count; i++)
        for (int axis = 0; axis < 2 && usable(&d, &l->rows[i]);
             axis++) { /* lines along the last axis, then along the first */
            const ink_dtype t = l->rows[i].dtype;
            ink_tensor x = tensor(t, 2, axis ? (int64_t[]){N, 2} : (int64_t[]){2, N}), y = {0}, out = tensor(t, 2, x.dims);
            for (int j = 0; j < 2 * N; j++)
                store_f32(x.data, t, axis ? j : j % 2 * N + j / 2, rows[j / 2].x[j % 2]);
            op_call c = {.op = OP_softmax, .in = {&x}, .out = {&y}, .attrs.axis = {axis}};
            y.data = out.data;
            assert_int_equal(run(&l->rows[i], &c, 1), INK_OK);
            for (int j = 0; j < 2 * N; j++) {
                float got = load_f32(out.data, t, axis ? j : j % 2 * N + j / 2), want = rows[j / 2].y[j % 2];
                if (got != want && !(isnan(got) && isnan(want)))
                    fail_msg("%s: softmax(%g, %g)[%d] is %g, expected %g", l->rows[i].name, (double)rows[j / 2].x[0],
                             (double)rows[j / 2].x[1], j % 2, (double)got, (double)want);
            }
            free(x.data), free(out.data);
        }
    device_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prompt_rows),     cmocka_unit_test(test_token_rows),   cmocka_unit_test(test_segments),
        cmocka_unit_test(test_bad_paged),       cmocka_unit_test(test_bad_segments), cmocka_unit_test(test_bad_slots),
        cmocka_unit_test(test_softmax_special),
    };
    seed = (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
