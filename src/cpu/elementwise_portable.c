#include "core/dtype.h"
#include "cpu/activation.h"
#include "cpu/elementwise.h"

static void activate_range(const map_job *j, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        store_f32(j->z, j->to, i, activate(load_f32(j->x, j->from, i), j->act));
}

static void add_range(const map_job *j, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        store_f32(j->z, j->to, i, load_f32(j->x, j->from, i) + load_f32(j->y, j->from, i));
}

static void multiply_range(const map_job *j, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        store_f32(j->z, j->to, i, load_f32(j->x, j->from, i) * load_f32(j->y, j->from, i));
}

static void cast_range(const map_job *j, int64_t begin, int64_t end)
{
    size_t size = ink_dtype_size(j->from);
    if (j->from == j->to && end > begin)
        memcpy((char *)j->z + (size_t)begin * size, (const char *)j->x + (size_t)begin * size,
               (size_t)(end - begin) * size);
    else
        for (int64_t i = begin; i < end; i++)
            store_f32(j->z, j->to, i, load_f32(j->x, j->from, i));
}

ink_status gelu_portable(const op_call *c) { return map_run(c, activate_range); }
ink_status silu_portable(const op_call *c) { return map_run(c, activate_range); }
ink_status relu_portable(const op_call *c) { return map_run(c, activate_range); }
ink_status add_portable(const op_call *c) { return map_run(c, add_range); }
ink_status multiply_portable(const op_call *c) { return map_run(c, multiply_range); }
ink_status cast_portable(const op_call *c) { return map_run(c, cast_range); }
