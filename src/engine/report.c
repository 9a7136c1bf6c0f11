#include "engine/report.h"

#include "conformance/conformance.h"
#include "inkstone/inkstone.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- model ---- */

/* Each node once, as if it ran at the plan's upper bounds. */
static ink_status plan_profile(const plan *p, profile *out)
{
    for (size_t i = 0; i < p->n_nodes; i++) {
        const kernel *k = p->nodes[i].kernel[p->options.n_buckets - 1];
        node_call c;
        if (!k)
            continue;
        graph_call_of(p->graph, &p->nodes[i].node, &c);
        TRY(profile_add(out, k, p->nodes[i].node.module, 0, op_schema_of(k->op)->cost(&c.call)));
    }
    return INK_OK;
}

static void plan_text(const plan *p, const char *name, const profile *prof, strbuf *out)
{
    double flops = 0;
    for (size_t i = 0; i < prof->count; i++)
        flops += prof->entries[i].cost.flops;
    strbuf_printf(out, "\nplan %s: %zu nodes, activations %.1f MB, workspace %.1f MB, %.1f GFLOP at the upper bounds\n",
                  name, p->n_nodes, (double)p->activation_bytes * 1e-6, (double)p->workspace_bytes * 1e-6, flops * 1e-9);
    for (size_t i = 0; i < prof->count; i++)
        strbuf_printf(out, "  %6lld x %-36s %-5s %-15s %10.2f GFLOP %10.2f MB\n", (long long)prof->entries[i].calls,
                      prof->entries[i].kernel->name, ink_dtype_name(prof->entries[i].kernel->dtype),
                      prof->entries[i].module ? prof->entries[i].module : "", prof->entries[i].cost.flops * 1e-9,
                      prof->entries[i].cost.bytes * 1e-6);
    for (int i = 0; i < pass_count(); i++)
        if (p->passes[i].applied || p->passes[i].no_kernel || p->passes[i].deleted)
            strbuf_printf(out, "  pass %-20s %s%d applied, %d skipped for want of a kernel\n", pass_at(i)->name,
                          p->passes[i].deleted ? "(deleted) " : "", p->passes[i].applied, p->passes[i].no_kernel);
}

static json_t *plan_json(const plan *p, const char *name, const profile *prof)
{
    json_t *kernels = json_array(), *passes = json_array();
    for (size_t i = 0; i < prof->count; i++)
        json_array_append_new(kernels, json_pack("{s:s,s:s,s:s,s:s,s:I,s:f,s:f}", "kernel", prof->entries[i].kernel->name,
                                                 "op", op_schema_of(prof->entries[i].kernel->op)->name, "dtype",
                                                 ink_dtype_name(prof->entries[i].kernel->dtype), "module",
                                                 prof->entries[i].module ? prof->entries[i].module : "", "nodes",
                                                 (json_int_t)prof->entries[i].calls, "flops", prof->entries[i].cost.flops,
                                                 "bytes", prof->entries[i].cost.bytes));
    for (int i = 0; i < pass_count(); i++)
        json_array_append_new(passes,
                              json_pack("{s:s,s:i,s:i,s:b}", "name", pass_at(i)->name, "applied", p->passes[i].applied,
                                        "no_kernel", p->passes[i].no_kernel, "deleted", (int)p->passes[i].deleted));
    return json_pack("{s:s,s:I,s:I,s:I,s:o,s:o,s:I}", "name", name, "nodes", (json_int_t)p->n_nodes, "activation_bytes",
                     (json_int_t)p->activation_bytes, "workspace_bytes", (json_int_t)p->workspace_bytes, "kernels", kernels,
                     "passes", passes, "fp32_gemm_nodes", (json_int_t)profile_fp32_gemms(prof));
}

static const char *const modules[3] = {MODULE_VISION, MODULE_PROJECTOR, MODULE_TEXT};

static void model_head(const vl_model *m, int64_t fp32, strbuf *out)
{
    strbuf_printf(out, "%s: plans completely on %s\n", m->label, m->dev.name);
    strbuf_printf(out, "%-15s %-6s %12s %22s\n", "module", "dtype", "weights MB", "converted at load MB");
    for (int i = 0; i < 3; i++)
        strbuf_printf(out, "%-15s %-6s %12.1f %22.1f\n", modules[i], ink_dtype_name(m->dtypes[i]),
                      (double)m->memory.weights[i] * 1e-6, (double)m->memory.converted[i] * 1e-6);
    strbuf_printf(out, "unused tensors in the file: %zu; head %s; GEMM nodes in FP32: %lld\n", m->weights.unused_count,
                  m->weights.head_is_tied ? "tied to the embedding" : "separate", (long long)fp32);
}

static ink_status write_json(json_t *root, strbuf *out)
{
    char *text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
    json_decref(root);
    if (!text)
        return failure(INK_RESOURCE_EXHAUSTED, "out of memory while writing JSON");
    strbuf_puts(out, text);
    strbuf_putc(out, '\n');
    free(text);
    return strbuf_status(out);
}

static json_t *model_json(const vl_model *m, const profile profs[VL_PLANS], int64_t fp32)
{
    json_t *plans = json_array(), *mods = json_array();
    for (int i = 0; i < VL_PLANS; i++)
        json_array_append_new(plans, plan_json(m->plans[i], vl_plan_name((vl_plan)i), &profs[i]));
    for (int i = 0; i < 3; i++)
        json_array_append_new(
            mods, json_pack("{s:s,s:s,s:I,s:I}", "name", modules[i], "dtype", ink_dtype_name(m->dtypes[i]), "weight_bytes",
                            (json_int_t)m->memory.weights[i], "converted_bytes", (json_int_t)m->memory.converted[i]));
    return json_pack("{s:s,s:s,s:b,s:I,s:o,s:o}", "model", m->label, "device", m->dev.name, "plans_completely", 1,
                     "fp32_gemm_nodes", (json_int_t)fp32, "modules", mods, "plans", plans);
}

ink_status model_report(const vl_model *m, bool json, strbuf *out)
{
    profile profs[VL_PLANS] = {{0}};
    ink_status s = INK_OK;
    int64_t fp32 = 0;
    for (int i = 0; i < VL_PLANS && s == INK_OK; i++) {
        s = plan_profile(m->plans[i], &profs[i]);
        fp32 += profile_fp32_gemms(&profs[i]);
    }
    if (s == INK_OK && json)
        s = write_json(model_json(m, profs, fp32), out);
    else if (s == INK_OK) {
        model_head(m, fp32, out);
        for (int i = 0; i < VL_PLANS; i++)
            plan_text(m->plans[i], vl_plan_name((vl_plan)i), &profs[i], out);
        s = strbuf_status(out);
    }
    for (int i = 0; i < VL_PLANS; i++)
        profile_free(&profs[i]);
    return s;
}

/* ---- devices ---- */

static void cpu_brand(char *out, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];
    snprintf(out, size, "unknown processor");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "model name", 10) && strchr(line, ':')) {
            snprintf(out, size, "%.*s", (int)strcspn(strchr(line, ':') + 2, "\n"), strchr(line, ':') + 2);
            break;
        }
    if (f)
        fclose(f);
}

ink_status devices_report(bool json, strbuf *out)
{
    device d;
    char brand[192];
    TRY(device_open_cpu(&d, 0, NULL));
    cpu_brand(brand, sizeof brand);
    double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    static const char gpu[] = "no kernels for this backend in this build";
    ink_status s = INK_OK;
    if (json)
        s = write_json(json_pack("[{s:s,s:i,s:s,s:s,s:i,s:f,s:b},{s:s,s:b,s:s},{s:s,s:b,s:s}]", "backend", "cpu", "index",
                                 0, "name", brand, "isa", cpu_isa_name((cpu_isa)d.isa), "threads", d.threads,
                                 "memory_bytes", memory, "usable", 1, "backend", "hip", "usable", 0, "reason", gpu,
                                 "backend", "cuda", "usable", 0, "reason", gpu),
                       out);
    else {
        strbuf_printf(out, "cpu   0  %s: %s, %d threads, %.1f GB of memory\n", brand, cpu_isa_name((cpu_isa)d.isa),
                      d.threads, memory * 1e-9);
        strbuf_printf(out, "hip   -  not usable: %s\ncuda  -  not usable: %s\n", gpu, gpu);
        s = strbuf_status(out);
    }
    device_close(&d);
    return s;
}

/* ---- kernels ---- */

static bool row_wanted(const kernel_list *l, const kernel *k, const char *op, const char *backend, const char *dtype)
{
    return (!op || !strcmp(op, op_schema_of(k->op)->name)) &&
           (!backend || !strcmp(backend, ink_backend_name(l->backend))) &&
           (!dtype || !strcmp(dtype, ink_dtype_name(k->dtype)));
}

static ink_status check_filters(const char *op, const char *backend, const char *dtype)
{
    op_id id;
    ink_dtype t;
    if (op && !op_parse(op, &id))
        return failure(INK_NOT_FOUND, "no op is called '%s'; `inkstone kernels` lists them", op);
    if (dtype && !ink_dtype_parse(dtype, &t))
        return failure(INK_NOT_FOUND, "no dtype is called '%s': f32, f16, bf16", dtype);
    if (backend && strcmp(backend, "cpu") && strcmp(backend, "hip") && strcmp(backend, "cuda"))
        return failure(INK_NOT_FOUND, "no backend is called '%s': cpu, hip, cuda", backend);
    return INK_OK;
}

static void kernel_line(const kernel_list *l, const kernel *k, report_format format, strbuf *out, json_t *rows)
{
    const char *op = op_schema_of(k->op)->name, *backend = ink_backend_name(l->backend),
               *layout = ink_layout_name(k->layout), *dtype = ink_dtype_name(k->dtype),
               *isa = l->backend == INK_CPU ? cpu_isa_name((cpu_isa)k->isa) : "";
    bool tested = conf_op_of(k->op) != NULL;
    if (format == REPORT_JSON)
        json_array_append_new(rows, json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:b,s:b,s:b}", "op", op, "direction", "forward",
                                              "backend", backend, "arch", isa, "layout", layout, "dtype", dtype, "kernel",
                                              k->name, "predicate", k->decline != NULL, "tested", (int)tested, "sim", 0));
    else
        strbuf_printf(out,
                      format == REPORT_MARKDOWN ? "| %s | %s | %s | %s | %s | %s | %s |\n"
                                                : "%-22s %-7s %-9s %-6s %-5s %-40s %s\n",
                      op, backend, isa, layout, dtype, k->name, tested ? "tested" : "untested");
}

ink_status kernels_report(const char *op, const char *backend, const char *dtype, report_format format, strbuf *out)
{
    TRY(check_filters(op, backend, dtype));
    json_t *rows = json_array();
    if (format == REPORT_MARKDOWN)
        strbuf_puts(out, "| op | backend | arch | layout | dtype | kernel | conformance |\n| --- | --- | --- | --- | --- | "
                         "--- | --- |\n");
    else if (format == REPORT_TABLE)
        strbuf_printf(out, "%-22s %-7s %-9s %-6s %-5s %-40s %s\n", "op", "backend", "arch", "layout", "dtype", "kernel",
                      "conformance");
    for (int i = 0; i < registry_list_count(); i++) {
        const kernel_list *l = registry_list(i);
        for (int r = 0; r < l->count; r++)
            if (row_wanted(l, &l->rows[r], op, backend, dtype))
                kernel_line(l, &l->rows[r], format, out, rows);
    }
    if (format == REPORT_JSON)
        return write_json(rows, out);
    json_decref(rows);
    return strbuf_status(out);
}
