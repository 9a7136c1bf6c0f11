#include "cpu/gemv.h"

#include "core/threads.h"

enum { SERIAL_BYTES = 1 << 17 }; /* of weights: reading them takes as long as waking the threads */

size_t gemv_scratch_bytes(const gemv_tile *t, int64_t m, int64_t k) { return t->packed_bytes(m, k); }

/* Row where share i of `shares` begins: even shares of whole blocks. */
static int64_t share_start(int64_t n, int block, int64_t i, int64_t shares)
{
    int64_t blocks = (n + block - 1) / block, start = blocks * i / shares * block;
    return start < n ? start : n;
}

void gemv_run(const gemv_tile *t, const gemm_job *j)
{
    if (!j->m || !j->n)
        return;
    const double bytes = (double)j->n * (double)j->k * (j->dtype == INK_F32 ? 4 : 2) * (j->w[1] ? 2 : 1);
    const int threads = bytes * (double)j->m < SERIAL_BYTES ? 1 : j->threads;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        const int count = thread_count(), me = thread_index();
        if (t->enter)
            t->enter();
        t->pack(j, j->scratch, me, count);
#pragma omp barrier
        t->rows(j, j->scratch, share_start(j->n, t->block, me, count), share_start(j->n, t->block, me + 1, count));
        if (t->leave)
            t->leave();
    }
}
