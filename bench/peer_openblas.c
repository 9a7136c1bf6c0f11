#include "peer.h"

#include <cblas.h>
#include <stdlib.h>

typedef struct state {
    const float *a, *w;
    float *c;
    int64_t m, n, k;
} state;

char *openblas_get_corename(void); /* not in every distribution's header */

static const char *about(void) { return openblas_get_corename(); }
static void limit(const char *isa) { (void)isa; } /* it chooses by processor model; nothing is forced on it here */

static void *create(ink_dtype dtype, const float *a, const float *w, float *c, int64_t m, int64_t n, int64_t k, int threads)
{
    state *s = dtype == INK_F32 ? malloc(sizeof *s) : NULL;
    if (s)
        *s = (state){a, w, c, m, n, k};
    openblas_set_num_threads(threads);
    return s;
}

static void run(void *p)
{
    const state *s = p;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)s->m, (int)s->n, (int)s->k, 1, s->a, (int)s->k, s->w,
                (int)s->k, 0, s->c, (int)s->n);
}

const peer peer_openblas = {"openblas", about, limit, create, run, free};
