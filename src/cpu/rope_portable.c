#include "core/dtype.h"
#include "cpu/parallel.h"
#include "cpu/rope.h"
#include "ops/rope.h"

#include <math.h>

ink_status rope_table_portable(const op_call *c)
{
    const ink_tensor *positions = c->in[0];
    const int32_t *position = positions->data;
    float *table = c->out[0]->data, omega[ROPE_MAX_HALF];
    int axis[ROPE_MAX_HALF];
    const int half = c->attrs.rope_table.head_dim / 2;
    const int64_t tokens = positions->dims[0], axes = positions->dims[1];
    rope_frequencies(&c->attrs.rope_table, omega, axis);
#pragma omp parallel for num_threads(threads_for(c, 8.0 * tensor_bytes_or_0(c->out[0]))) /* about 8 bytes' time a value */
    for (int64_t t = 0; t < tokens; t++)
        for (int i = 0; i < half; i++) {
            float angle = (float)position[t * axes + axis[i]] * omega[i];
            table[2 * (t * half + i)] = cosf(angle);
            table[2 * (t * half + i) + 1] = sinf(angle);
        }
    return INK_OK;
}

static void token(const rope_job *j, int64_t t)
{
    for (int64_t h = 0; h < j->heads; h++)
        for (int64_t i = 0; i < j->half; i++) {
            const int64_t low = 2 * j->half * (t * j->heads + h) + i, high = low + j->half;
            const float c = j->table[2 * (t * j->half + i)], s = j->table[2 * (t * j->half + i) + 1];
            const float a = load_f32(j->x, j->dtype, low), b = load_f32(j->x, j->dtype, high);
            store_f32(j->y, j->dtype, low, a * c - b * s);
            store_f32(j->y, j->dtype, high, b * c + a * s);
        }
}

ink_status rope_portable(const op_call *c) { return rope_run(c, token); }
