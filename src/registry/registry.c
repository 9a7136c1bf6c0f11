#include "registry/registry.h"

#include "core/memory.h"
#include "core/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST(backend, op) extern const kernel_list kernels_##backend##_##op;
#include "registry/lists.inc"
#undef LIST

static const kernel_list *const lists[] = {
#define LIST(backend, op) &kernels_##backend##_##op,
#include "registry/lists.inc"
#undef LIST
};

int registry_list_count(void) { return (int)(sizeof lists / sizeof *lists); }
const kernel_list *registry_list(int i) { return lists[i]; }

const kernel_list *registry_list_of(ink_backend backend, op_id op)
{
    for (int i = 0; i < registry_list_count(); i++)
        if (lists[i]->backend == backend && lists[i]->op == op)
            return lists[i];
    return NULL;
}

static bool layout_matches(const kernel *k, ink_layout layout)
{
    return k->layout == INK_LAYOUT_ANY || layout == INK_LAYOUT_ANY || k->layout == layout;
}

bool registry_has(ink_backend backend, op_id op, ink_layout layout, ink_dtype dtype)
{
    const kernel_list *l = registry_list_of(backend, op);
    for (int i = 0; l && i < l->count; i++)
        if (l->rows[i].dtype == dtype && layout_matches(&l->rows[i], layout))
            return true;
    return false;
}

/* ---- device ---- */

ink_status device_open_cpu(device *d, int threads, const char *disable)
{
    cpu_isa isa;
    *d = (device){.backend = INK_CPU};
    if (threads < 0 || threads > 1024)
        return failure(INK_INVALID_ARGUMENT, "threads: %d, expected 0 (all cores) to 1024", threads);
    TRY(cpu_isa_detect(&isa));
    d->isa = isa;
    d->threads = threads ? threads : threads_default();
    snprintf(d->name, sizeof d->name, "cpu (%s, %d thread%s)", cpu_isa_name(isa), d->threads, d->threads == 1 ? "" : "s");
    const char *from_env = getenv("INK_DISABLE");
    strbuf b = {0};
    strbuf_printf(&b, "%s%s%s", disable ? disable : "", disable && from_env ? "," : "", from_env ? from_env : "");
    return (d->disabled = strbuf_take(&b)) ? INK_OK : INK_RESOURCE_EXHAUSTED;
}

void device_close(device *d)
{
    free(d->disabled);
    d->disabled = NULL;
}

/* Glob match of p[0..n) against the whole of s. */
static bool glob(const char *p, size_t n, const char *s)
{
    if (!n)
        return !*s;
    if (*p == '*')
        return glob(p + 1, n - 1, s) || (*s && glob(p, n, s + 1));
    return *s && (*p == '?' || *p == *s) && glob(p + 1, n - 1, s + 1);
}

static bool pattern_matches(const char *p, size_t n, ink_backend backend, const kernel *k)
{
    const char *const parts[4] = {op_schema_of(k->op)->name, ink_backend_name(backend), ink_dtype_name(k->dtype), k->name};
    for (int i = 0; i < 4 && n; i++) {
        const char *colon = memchr(p, ':', n);
        size_t m = colon ? (size_t)(colon - p) : n;
        if (!glob(p, m, parts[i]))
            return false;
        p += colon ? m + 1 : m;
        n -= colon ? m + 1 : m;
    }
    return !n;
}

bool device_hides(const device *d, const kernel *k)
{
    for (const char *p = d->disabled; p && *p;) {
        size_t n = strcspn(p, ",");
        if (n && pattern_matches(p, n, d->backend, k))
            return true;
        p += n + (p[n] == ',');
    }
    return false;
}

/* ---- choice ---- */

/* NULL when row k serves the call on this device, or why not; *same_key is false for rows of other keys. */
static const char *row_declines(const device *d, const kernel *k, const op_call *c, bool *same_key)
{
    *same_key = k->dtype == op_key_dtype(c) && layout_matches(k, op_key_layout(c));
    if (!*same_key)
        return "another key";
    if (device_hides(d, k))
        return "hidden by INK_DISABLE or the disable option";
    if (d->backend == INK_CPU && k->isa > d->isa)
        return "needs instructions that the processor lacks or INK_CPU forbids";
    const char *why = k->avoid ? k->avoid() : NULL;
    return why || !k->decline ? why : k->decline(c);
}

const kernel *registry_find(const device *d, const op_call *c, strbuf *reasons)
{
    const kernel_list *l = registry_list_of(d->backend, c->op);
    for (int i = 0; l && i < l->count; i++) {
        bool same_key;
        const char *why = row_declines(d, &l->rows[i], c, &same_key);
        if (!why)
            return &l->rows[i];
        if (same_key && reasons)
            strbuf_printf(reasons, "%s: %s\n", l->rows[i].name, why);
    }
    return NULL;
}

/* ---- explanation ---- */

/* "cpu: bf16/nchw (hidden), f32/any; " for each backend that has kernels of the op. */
static void list_registered(const device *d, op_id op, strbuf *out)
{
    bool any = false;
    for (int b = 0; b < INK_BACKEND_COUNT; b++) {
        const kernel_list *l = registry_list_of((ink_backend)b, op);
        if (!l)
            continue;
        strbuf_printf(out, "%s%s:", any ? "; " : "", ink_backend_name((ink_backend)b));
        any = true;
        const char *separator = " ";
        for (int t = 0; t < INK_DTYPE_COUNT; t++)
            for (int y = 0; y < INK_LAYOUT_COUNT; y++) {
                int rows = 0, hidden = 0;
                for (int i = 0; i < l->count; i++)
                    if (l->rows[i].dtype == (ink_dtype)t && l->rows[i].layout == (ink_layout)y)
                        rows++, hidden += (ink_backend)b == d->backend && device_hides(d, &l->rows[i]);
                if (!rows)
                    continue;
                strbuf_printf(out, "%s%s/%s", separator, ink_dtype_name((ink_dtype)t), ink_layout_name((ink_layout)y));
                if (hidden == rows)
                    strbuf_puts(out, " (hidden)");
                separator = ", ";
            }
    }
    if (!any)
        strbuf_puts(out, "none");
}

/* A call's float tensors as another dtype, to ask whether that key would be served. */
typedef struct retyped_call {
    op_call call;
    ink_tensor in[OP_MAX_IN], out[OP_MAX_OUT];
} retyped_call;

static void retype(const op_call *c, ink_dtype from, ink_dtype to, retyped_call *r)
{
    r->call = *c;
    for (int i = 0; i < OP_MAX_IN; i++)
        if (c->in[i]) {
            r->in[i] = *c->in[i];
            if (r->in[i].dtype == from)
                r->in[i].dtype = to;
            r->call.in[i] = &r->in[i];
        }
    for (int i = 0; i < OP_MAX_OUT; i++)
        if (c->out[i]) {
            r->out[i] = *c->out[i];
            if (r->out[i].dtype == from)
                r->out[i].dtype = to;
            r->call.out[i] = &r->out[i];
        }
}

static void explain_declined(const device *d, const op_call *c, strbuf *out)
{
    strbuf reasons = {0};
    registry_find(d, c, &reasons);
    for (const char *p = strbuf_text(&reasons); *p;) {
        size_t n = strcspn(p, "\n");
        strbuf_printf(out, "\n  declined: %.*s", (int)n, p);
        p += n + (p[n] == '\n');
    }
    strbuf_free(&reasons);
}

/* Bytes of the call's tensors that have the key's dtype: what a cast to another one would go over. */
static double bytes_of_key(const op_call *c)
{
    ink_dtype dtype = op_key_dtype(c);
    double bytes = 0;
    for (int i = 0; i < OP_MAX_IN; i++)
        bytes += c->in[i] && c->in[i]->dtype == dtype ? tensor_bytes_or_0(c->in[i]) : 0;
    for (int i = 0; i < OP_MAX_OUT; i++)
        bytes += c->out[i] && c->out[i]->dtype == dtype ? tensor_bytes_or_0(c->out[i]) : 0;
    return bytes;
}

/* The kernel that would serve the call in another dtype, the safest first, or NULL. */
static const kernel *nearest_dtype(const device *d, const op_call *c)
{
    static const ink_dtype safest_first[] = {INK_F32, INK_F16, INK_BF16};
    const kernel *near = NULL;
    for (size_t i = 0; i < sizeof safest_first / sizeof *safest_first && !near; i++) {
        retyped_call r;
        if (safest_first[i] == op_key_dtype(c))
            continue;
        retype(c, op_key_dtype(c), safest_first[i], &r);
        near = registry_find(d, &r.call, NULL);
    }
    return near;
}

static void explain_nearest(const device *d, const op_call *c, const char *module, strbuf *out)
{
    const char *op = op_schema_of(c->op)->name;
    const kernel *near = nearest_dtype(d, c);
    for (int b = 0; b < INK_BACKEND_COUNT; b++)
        if ((ink_backend)b != d->backend && registry_has((ink_backend)b, c->op, op_key_layout(c), op_key_dtype(c)))
            strbuf_printf(out, "\n  nearest: the same key on backend %s", ink_backend_name((ink_backend)b));
    if (!near) {
        strbuf_printf(out, "\n  nearest: no other dtype of %s serves this call on %s\n  fallback: none", op,
                      ink_backend_name(d->backend));
        return;
    }
    strbuf_printf(out, "\n  nearest: %s in %s (%s)\n  fallback: never taken silently; ", op, ink_dtype_name(near->dtype),
                  near->name);
    if (near->dtype == INK_F32 && module)
        strbuf_printf(out, "--fp32-modules %s allows it", module);
    else
        strbuf_printf(out, "--dtype %s allows it", ink_dtype_name(near->dtype));
    strbuf_printf(out, "; cost at this node: %.1f MB to convert", bytes_of_key(c) * 1e-6);
}

void registry_explain(const device *d, const op_call *c, const char *node, const char *module, strbuf *out)
{
    strbuf_printf(out, "E_MISSING_KERNEL op=%s backend=%s layout=%s dtype=%s", op_schema_of(c->op)->name,
                  ink_backend_name(d->backend), ink_layout_name(op_key_layout(c)), ink_dtype_name(op_key_dtype(c)));
    if (node)
        strbuf_printf(out, " node=%s", node);
    if (module)
        strbuf_printf(out, " module=%s", module);
    strbuf_printf(out, "\n  device: %s\n  call: ", d->name);
    op_describe(c, out);
    strbuf_puts(out, "\n  registered: ");
    list_registered(d, c->op, out);
    explain_declined(d, c, out);
    explain_nearest(d, c, module, out);
    strbuf_printf(out, "\n  see: inkstone kernels --op %s\n", op_schema_of(c->op)->name);
}
