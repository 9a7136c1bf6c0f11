/* movement.c - the rows of embedding, index_select and merge_multimodal on the CPU: one memcpy per row. */
#include "cpu/movement.h"

#include "cpu/parallel.h"
#include "cpu/rows.h"

#include <string.h>

/* Every index must be below `rows`; negative ones only where they have a meaning. */
static ink_status check_indices(const op_call *c, const char *name, const ink_tensor *index, int64_t rows, bool negative)
{
    const int32_t *v = index->data;
    for (int64_t i = 0; i < index->dims[0]; i++)
        if (v[i] >= rows || (v[i] < 0 && !negative))
            return failure(INK_OUT_OF_RANGE, "%s: %s[%lld] is %d, the table has %lld rows", op_schema_of(c->op)->name, name,
                           (long long)i, (int)v[i], (long long)rows);
    return INK_OK;
}

/* y[t] = index[t] < 0 ? other[t] : table[index[t]] */
static void copy_rows(const op_call *c, const ink_tensor *table, const ink_tensor *index, const ink_tensor *other)
{
    const int32_t *v = index->data;
    const size_t bytes = (size_t)table->dims[1] * ink_dtype_size(table->dtype);
    if (!bytes)
        return;
#pragma omp parallel for num_threads(threads_for(c, 2 * tensor_bytes_or_0(c->out[0])))
    for (int64_t t = 0; t < index->dims[0]; t++) {
        const char *from =
            v[t] < 0 ? (const char *)other->data + (size_t)t * bytes : (const char *)table->data + (size_t)v[t] * bytes;
        memcpy((char *)c->out[0]->data + (size_t)t * bytes, from, bytes);
    }
}

ink_status embedding_portable(const op_call *c)
{
    TRY(check_indices(c, "ids", c->in[0], c->in[1]->dims[0], false));
    copy_rows(c, c->in[1], c->in[0], NULL);
    return INK_OK;
}

ink_status index_select_portable(const op_call *c)
{
    TRY(check_indices(c, "index", c->in[1], c->in[0]->dims[0], false));
    copy_rows(c, c->in[0], c->in[1], NULL);
    return INK_OK;
}

ink_status merge_multimodal_portable(const op_call *c)
{
    TRY(check_indices(c, "rows", c->in[2], c->in[1]->dims[0], true));
    copy_rows(c, c->in[1], c->in[2], c->in[0]);
    return INK_OK;
}

PORTABLE_LIST(embedding);
PORTABLE_LIST(index_select);
PORTABLE_LIST(merge_multimodal);
