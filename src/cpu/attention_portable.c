#include "core/dtype.h"
#include "cpu/attention.h"

#include <math.h>

/* One query head of one row: keys in strips of 32, softmax with a running maximum. `o` is scratch of dim floats. */
typedef struct online {
    float top, sum; /* maximum of scale * score and sum of exp(scale * score - top), so far */
    float o[256];   /* sum of exp(..) v */
} online;

static void add_strip(const attention_view *a, const float *q, int64_t strip, int n, online *r)
{
    float s[KV_BLOCK], top = r->top;
    for (int j = 0; j < n; j++) {
        s[j] = 0;
        for (int64_t d = 0; d < a->dim; d++)
            s[j] = fmaf(q[d], load_f32(a->k, a->dtype, strip + j * a->key_step + d), s[j]);
        s[j] *= a->scale;
        top = s[j] > top ? s[j] : top;
    }
    float base = top == -INFINITY ? 0 : top; /* only -inf so far: exp(-inf) = 0, not NaN */
    float fix = r->top == -INFINITY ? 0 : expf(r->top - base);
    r->top = top;
    r->sum *= fix;
    for (int64_t d = 0; d < a->dim; d++)
        r->o[d] *= fix;
    for (int j = 0; j < n; j++) {
        float p = expf(s[j] - base);
        r->sum += p;
        for (int64_t d = 0; d < a->dim; d++)
            r->o[d] = fmaf(p, load_f32(a->v, a->dtype, strip + j * a->key_step + d), r->o[d]);
    }
}

static void attend(const attention_view *a, int64_t s, int64_t i, int64_t h)
{
    const int64_t at = attention_query(a, a->starts[s] + i, h), visible = attention_visible(a, s, i);
    float q[256];
    online r = {.top = -INFINITY};
    for (int64_t d = 0; d < a->dim; d++)
        q[d] = load_f32(a->q, a->dtype, at + d);
    for (int64_t k = 0; k < visible; k += KV_BLOCK)
        add_strip(a, q, attention_strip(a, s, h / a->group, k / KV_BLOCK),
                  (int)(visible - k < KV_BLOCK ? visible - k : KV_BLOCK), &r);
    for (int64_t d = 0; d < a->dim; d++)
        store_f32(a->y, a->dtype, at + d, visible > 0 ? r.o[d] / r.sum : 0);
}

ink_status attention_portable(const op_call *c)
{
    attention_view a;
    TRY(attention_open(c, &a));
    for (int64_t s = 0; s < a.sequences; s++) {
        const int64_t n = attention_queries(&a, s);
#pragma omp parallel for collapse(2) schedule(dynamic, 4) num_threads(c->threads)
        for (int64_t i = 0; i < n; i++)
            for (int64_t h = 0; h < a.heads; h++)
                attend(&a, s, i, h);
    }
    return INK_OK;
}
