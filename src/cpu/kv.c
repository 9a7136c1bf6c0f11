/* kv.c - kv_append on the CPU: one kernel for all, since it only moves bytes. */
#include "cpu/kv.h"

#include "core/status.h"
#include "registry/registry.h"

#include <string.h>

/* Rows of `from` [T, KV, D] for key head h into the pool [blocks, KV, 32, D], in order. */
static void append_head(const ink_tensor *from, const int32_t *slots, int64_t h, ink_tensor *pool)
{
    const int64_t heads = from->dims[1];
    const size_t row = (size_t)from->dims[2] * ink_dtype_size(from->dtype);
    for (int64_t t = 0; t < from->dims[0]; t++) {
        if (slots[t] < 0)
            continue;
        int64_t to = (slots[t] / KV_BLOCK * heads + h) * KV_BLOCK + slots[t] % KV_BLOCK;
        memcpy((char *)pool->data + (size_t)to * row, (const char *)from->data + (size_t)(t * heads + h) * row, row);
    }
}

ink_status kv_append_copy(const op_call *c)
{
    const ink_tensor *k = c->in[0], *v = c->in[1];
    const int32_t *slots = c->in[2]->data;
    const int64_t end = c->out[0]->dims[0] * KV_BLOCK;
    for (int64_t t = 0; t < k->dims[0]; t++)
        if (slots[t] >= end)
            return failure(INK_OUT_OF_RANGE, "kv_append: slots[%lld] is %d, the pool has %lld", (long long)t, (int)slots[t],
                           (long long)end);
            /* A head of a pool is one thread's work: its rows then land in their order. */
#pragma omp parallel for num_threads(c->threads) if (ink_tensor_bytes(k) > 1 << 17)
    for (int64_t i = 0; i < 2 * k->dims[1]; i++)
        append_head(i & 1 ? v : k, slots, i / 2, c->out[i & 1]);
    return INK_OK;
}

static const kernel kv_append_rows[] = {
    {.name = "kv_append_bf16_copy", .op = OP_kv_append, .dtype = INK_BF16, .run = kv_append_copy},
    {.name = "kv_append_f16_copy", .op = OP_kv_append, .dtype = INK_F16, .run = kv_append_copy},
    {.name = "kv_append_f32_copy", .op = OP_kv_append, .dtype = INK_F32, .run = kv_append_copy},
};
const kernel_list kernels_cpu_kv_append = {INK_CPU, OP_kv_append, sizeof kv_append_rows / sizeof *kv_append_rows,
                                           kv_append_rows};
