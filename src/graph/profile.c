#include "graph/profile.h"

#include "core/memory.h"

#include <jansson.h>
#include <stdlib.h>

ink_status profile_add(profile *p, const kernel *k, const char *module, double seconds, op_cost cost)
{
    size_t i = 0;
    while (i < p->count && (p->entries[i].kernel != k || p->entries[i].module != module))
        i++;
    if (i == p->count) {
        TRY(grow_array(&p->entries, &p->capacity, p->count + 1, sizeof *p->entries));
        p->entries[p->count++] = (profile_entry){.kernel = k, .module = module};
    }
    p->entries[i].calls++;
    p->entries[i].seconds += seconds;
    p->entries[i].cost.flops += cost.flops;
    p->entries[i].cost.bytes += cost.bytes;
    return INK_OK;
}

void profile_free(profile *p)
{
    free(p->entries);
    *p = (profile){0};
}

bool op_is_gemm(op_id op)
{
    return op == OP_linear || op == OP_linear_gated || op == OP_conv2d || op == OP_fused_conv2d_add_act;
}

int64_t profile_fp32_gemms(const profile *p)
{
    int64_t n = 0;
    for (size_t i = 0; i < p->count; i++)
        if (p->entries[i].kernel->dtype == INK_F32 && op_is_gemm(p->entries[i].kernel->op))
            n += p->entries[i].calls;
    return n;
}

static int by_time(const void *a, const void *b)
{
    const profile_entry *x = a, *y = b;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

/* A sorted copy, or NULL when memory is short or there is nothing. */
static profile_entry *sorted(const profile *p)
{
    profile_entry *e = p->count ? alloc_array(p->count, sizeof *e) : NULL;
    for (size_t i = 0; e && i < p->count; i++)
        e[i] = p->entries[i];
    if (e)
        qsort(e, p->count, sizeof *e, by_time);
    return e;
}

void profile_table(const profile *p, strbuf *out)
{
    profile_entry *e = sorted(p);
    double total = 0;
    for (size_t i = 0; e && i < p->count; i++)
        total += e[i].seconds;
    strbuf_printf(out, "%-34s %-5s %-15s %8s %10s %6s %9s %8s\n", "kernel", "dtype", "module", "calls", "ms", "time",
                  "GFLOP/s", "GB/s");
    for (size_t i = 0; e && i < p->count; i++) {
        double s = e[i].seconds > 0 ? e[i].seconds : 1e-12;
        strbuf_printf(out, "%-34s %-5s %-15s %8lld %10.2f %5.1f%% %9.1f %8.2f\n", e[i].kernel->name,
                      ink_dtype_name(e[i].kernel->dtype), e[i].module ? e[i].module : "", (long long)e[i].calls,
                      e[i].seconds * 1e3, 100 * e[i].seconds / (total > 0 ? total : 1), e[i].cost.flops / s * 1e-9,
                      e[i].cost.bytes / s * 1e-9);
    }
    strbuf_printf(out, "total %.2f ms; GEMM calls in FP32: %lld\n", total * 1e3, (long long)profile_fp32_gemms(p));
    free(e);
}

ink_status profile_json(const profile *p, strbuf *out)
{
    profile_entry *e = sorted(p);
    json_t *rows = json_array();
    for (size_t i = 0; e && i < p->count; i++)
        json_array_append_new(rows,
                              json_pack("{s:s,s:s,s:s,s:s,s:I,s:f,s:f,s:f}", "kernel", e[i].kernel->name, "op",
                                        op_schema_of(e[i].kernel->op)->name, "dtype", ink_dtype_name(e[i].kernel->dtype),
                                        "module", e[i].module ? e[i].module : "", "calls", (json_int_t)e[i].calls, "ms",
                                        e[i].seconds * 1e3, "flops", e[i].cost.flops, "bytes", e[i].cost.bytes));
    json_t *root = json_pack("{s:o,s:I}", "kernels", rows, "fp32_gemm_calls", (json_int_t)profile_fp32_gemms(p));
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    free(e);
    if (!text)
        return failure(INK_RESOURCE_EXHAUSTED, "out of memory while writing the profile");
    strbuf_puts(out, text);
    strbuf_putc(out, '\n');
    free(text);
    return strbuf_status(out);
}
