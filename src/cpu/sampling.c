/* sampling.c - the rows of argmax and sample on the CPU, and argmax's driver. */
#include "cpu/sampling.h"

#include "cpu/parallel.h"
#include "cpu/rows.h"

ink_status argmax_run(const op_call *c, argmax_row *row)
{
    const ink_tensor *x = c->in[0];
    int32_t *index = c->out[0]->data;
#pragma omp parallel for num_threads(threads_for(c, tensor_bytes_or_0(x)))
    for (int64_t r = 0; r < x->dims[0]; r++)
        index[r] = (int32_t)row((const float *)x->data + r * x->dims[1], x->dims[1]);
    return INK_OK;
}

static const kernel argmax_rows[] = {
#ifdef __x86_64__
    ROW(argmax, f32, INK_F32, avx512, ISA_AVX512) ROW(argmax, f32, INK_F32, avx2, ISA_AVX2)
#endif
        ROW(argmax, f32, INK_F32, portable, ISA_PORTABLE)};
LIST_OF(argmax);

static const kernel sample_rows[] = {{.name = "sample_f32_portable",
                                      .op = OP_sample,
                                      .dtype = INK_F32,
                                      .workspace = sample_workspace,
                                      .run = sample_portable}};
LIST_OF(sample);
