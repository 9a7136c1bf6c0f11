/* rope.c - the rows of rope_table and rope on the CPU, and rope's driver. */
#include "cpu/rope.h"

#include "cpu/parallel.h"
#include "cpu/rows.h"

ink_status rope_run(const op_call *c, rope_token *token)
{
    const ink_tensor *x = c->in[0];
    const rope_job j = {x->data, c->in[1]->data, c->out[0]->data, x->dtype, x->dims[1], x->dims[2] / 2};
#pragma omp parallel for num_threads(threads_for(c, 2 * tensor_bytes_or_0(x)))
    for (int64_t t = 0; t < x->dims[0]; t++)
        token(&j, t);
    return INK_OK;
}

FLOAT_LIST(rope);

static const kernel rope_table_rows[] = {ROW(rope_table, f32, INK_F32, portable, ISA_PORTABLE)};
LIST_OF(rope_table);
