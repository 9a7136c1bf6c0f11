#define _POSIX_C_SOURCE 200809L
#include "conformance/conformance.h"

#include "core/dtype.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CONF(op) extern const conf_op conf_##op;
#include "conformance/ops.inc"
#undef CONF

static const conf_op *const ops[] = {
#define CONF(op) &conf_##op,
#include "conformance/ops.inc"
#undef CONF
};

const conf_op *conf_op_of(op_id op)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (ops[i]->op == op)
            return ops[i];
    return NULL;
}

/* ---- one case ---- */

enum { GUARD = 128 };     /* bytes before and behind each output */
#define POISON_16 0x7fc0u /* a NaN in BF16 and F16; twice, in F32 too */

static void poison(unsigned char *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)(i & 1 ? POISON_16 >> 8 : POISON_16 & 0xff);
}

/* Bytes `from` .. from+n-1 of a poisoned buffer are as they were. */
static bool poisoned(const unsigned char *p, size_t from, size_t n)
{
    for (size_t i = from; i < from + n; i++)
        if (p[i] != (i & 1 ? POISON_16 >> 8 : POISON_16 & 0xff))
            return false;
    return true;
}

static uint64_t checksum(const void *p, size_t n)
{
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const unsigned char *)p)[i]) * 1099511628211u;
    return h;
}

/* Draws, infers shapes, allocates outputs and references. */
static ink_status prepare(conf_case *k, const conf_op *op, ink_dtype dtype, ink_layout layout)
{
    k->call.op = op->op;
    TRY(op->draw(k, dtype, layout));
    const op_schema *s = op_schema_of(op->op);
    for (int i = 0; i < s->n_in; i++)
        if (k->call.in[i] && !k->in[i].data)
            return INK_RESOURCE_EXHAUSTED;
    for (int i = 0; i < s->n_out; i++)
        k->call.out[i] = &k->out[i];
    ink_status status = op_infer(&k->call);
    if (status != INK_OK)
        return failure_in(status, "the drawn case is invalid");
    for (int i = 0; i < s->n_out; i++) {
        size_t n = (size_t)ink_tensor_numel(&k->out[i]);
        k->expect[i] = arena_alloc(&k->memory, n * sizeof(double));
        k->bound[i] = arena_alloc(&k->memory, n * sizeof(double));
        if (!k->expect[i] || !k->bound[i])
            return INK_RESOURCE_EXHAUSTED;
    }
    return INK_OK;
}

typedef struct outputs {
    unsigned char *memory[OP_MAX_OUT];
    size_t bytes[OP_MAX_OUT];
} outputs;

static ink_status run_once(conf_case *k, const kernel *row, int threads, outputs *o, char *why, size_t why_size)
{
    const op_schema *s = op_schema_of(k->call.op);
    uint64_t sums[OP_MAX_IN] = {0};
    ink_tensor aliased[OP_MAX_IN];
    op_call c = k->call;
    c.threads = threads;
    for (int i = 0; i < s->n_in; i++)
        if (c.in[i])
            sums[i] = checksum(c.in[i]->data, ink_tensor_bytes(c.in[i]));
    for (int i = 0; i < s->n_out; i++) {
        size_t bytes = ink_tensor_bytes(&k->out[i]), padded = (bytes + 63) & ~(size_t)63;
        o->bytes[i] = bytes;
        if (!(o->memory[i] = alloc_aligned(padded + 2 * GUARD)))
            return INK_RESOURCE_EXHAUSTED;
        poison(o->memory[i], padded + 2 * GUARD);
        k->out[i].data = o->memory[i] + GUARD;
        if (s->alias[i]) { /* a state op writes into its input: give it a copy */
            int from = s->alias[i] - 1;
            memcpy(k->out[i].data, k->in[from].data, bytes);
            aliased[from] = k->in[from];
            aliased[from].data = k->out[i].data;
            c.in[from] = &aliased[from];
        }
    }
    c.workspace_bytes = row->workspace ? row->workspace(&c) : 0;
    if (!(c.workspace = alloc_aligned(c.workspace_bytes + GUARD)))
        return INK_RESOURCE_EXHAUSTED;
    poison(c.workspace, c.workspace_bytes + GUARD);
    ink_status status = row->run(&c);
    if (status != INK_OK)
        snprintf(why, why_size, "run failed: %s", ink_last_error());
    else if (!poisoned(c.workspace, c.workspace_bytes, GUARD))
        snprintf(why, why_size, "wrote behind its workspace of %zu bytes", c.workspace_bytes);
    free(c.workspace);
    for (int i = 0; i < s->n_out && !*why; i++)
        if (!poisoned(o->memory[i], 0, GUARD) || !poisoned(o->memory[i], GUARD + o->bytes[i], GUARD))
            snprintf(why, why_size, "wrote outside output %d", i);
    for (int i = 0; i < s->n_in && !*why; i++)
        if (k->call.in[i] && sums[i] != checksum(k->call.in[i]->data, ink_tensor_bytes(k->call.in[i])))
            snprintf(why, why_size, "changed input %d", i);
    return INK_OK;
}

/* Relative signed errors of bias-tested elements, by case and with each case's weight limited. */
typedef struct bias_sum {
    double sum, weight;
    int cases;
} bias_sum;

static void add_case_bias(bias_sum *b, double sum, int64_t count)
{
    double weight = count < CONF_BIAS_CASE_WEIGHT ? (double)count : CONF_BIAS_CASE_WEIGHT;
    if (!count)
        return;
    b->sum += sum / (double)count * weight;
    b->weight += weight;
    b->cases++;
}

/* y was rounded once from about e, and little else is in the bound b. Results near the smallest normal number round in
 * absolute steps; they are left out. */
static bool rounding_dominates(ink_dtype t, double e, double b)
{
    return (t == INK_BF16 || t == INK_F16) && isfinite(e) && fabs(e) >= (t == INK_BF16 ? 0x1p-120 : 0x1p-13) && b > 0 &&
           conf_store_error(t, e) > 0.5 * b;
}

static void compare(const conf_case *k, conf_row *row, bias_sum *bias, char *why, size_t why_size)
{
    const op_schema *s = op_schema_of(k->call.op);
    double bias_of_case = 0;
    int64_t tested = 0;
    for (int o = 0; o < s->n_out; o++)
        for (int64_t i = 0, n = ink_tensor_numel(&k->out[o]); i < n; i++) {
            double y = load_f64(k->out[o].data, k->out[o].dtype, i), e = k->expect[o][i], b = k->bound[o][i];
            bool same = (isnan(e) && isnan(y)) || y == e;
            if (!k->no_bias_test && isfinite(y) && rounding_dominates(k->out[o].dtype, e, b)) {
                bias_of_case += (y - e) / e;
                tested++;
            }
            if (same || (isinf(b) && (!isinf(e) || k->lost_infinities)))
                continue;
            double error = fabs(y - e), ratio = b > 0 ? error / b : INFINITY;
            if (isnan(y) || isnan(e) || isinf(y) || isinf(e))
                ratio = INFINITY;
            if (isinf(y) && isfinite(e) && fabs(e) + b >= (k->out[o].dtype == INK_F16 ? 65504.0 : 3.38e38))
                continue; /* the bound reaches over the largest finite value */
            if (ratio > row->worst)
                row->worst = ratio;
            if (ratio > 1 && !*why)
                snprintf(why, why_size, "output %d[%lld] is %.9g, expected %.9g within %.3g", o, (long long)i, y, e, b);
        }
    add_case_bias(bias, bias_of_case, tested);
}

static void describe_case(const conf_case *k, uint64_t seed, strbuf *out)
{
    op_describe(&k->call, out);
    strbuf_printf(out, " size=%d seed=%016llx", k->size, (unsigned long long)seed);
}

static void report_failure(conf_row *row, const conf_case *k, uint64_t seed, const char *why)
{
    strbuf d = {0};
    if (k->call.in[0] || k->call.in[1])
        describe_case(k, seed, &d);
    row->failed = true;
    snprintf(row->failure, sizeof row->failure, "%s: %s", strbuf_text(&d), why);
    strbuf_free(&d);
}

static void free_outputs(outputs *o)
{
    for (int i = 0; i < OP_MAX_OUT; i++)
        free(o->memory[i]);
}

static void free_case(conf_case *k)
{
    for (int i = 0; i < OP_MAX_IN; i++)
        free(k->input_memory[i]);
    arena_free(&k->memory);
}

/* Runs one drawn case. *reached is false when the row declines it. */
static ink_status run_case(const conf_op *op, conf_row *row, uint64_t seed, const conf_options *o, bias_sum *bias,
                           bool *reached)
{
    const kernel *kn = row->kernel;
    conf_case k = {.random = {.seed = seed}, .size = o->size, .kernel = kn};
    char why[512] = "";
    outputs one = {0}, many = {0};
    *reached = false;
    ink_status s = prepare(&k, op, kn->dtype, kn->layout);
    k.call.threads = 1;
    if (s == INK_OK && kn->decline && kn->decline(&k.call)) {
        free_case(&k);
        return INK_OK;
    }
    *reached = true;
    if (s == INK_OK)
        s = op->reference(&k);
    if (s == INK_OK)
        s = run_once(&k, kn, 1, &one, why, sizeof why);
    if (s == INK_OK && !*why)
        compare(&k, row, bias, why, sizeof why);
    if (s == INK_OK && !*why)
        s = run_once(&k, kn, o->threads ? o->threads : 3, &many, why, sizeof why);
    for (int i = 0; i < OP_MAX_OUT && s == INK_OK && !*why; i++)
        if (one.memory[i] && memcmp(one.memory[i] + GUARD, many.memory[i] + GUARD, one.bytes[i]))
            snprintf(why, sizeof why, "one thread and %d give different bits in output %d", o->threads ? o->threads : 3, i);
    if (s != INK_OK)
        snprintf(why, sizeof why, "%s", ink_last_error());
    if (*why)
        report_failure(row, &k, seed, why);
    row->cases++;
    free_outputs(&one);
    free_outputs(&many);
    free_case(&k);
    return s == INK_RESOURCE_EXHAUSTED ? s : INK_OK;
}

/* ---- rows ---- */

ink_status conf_tier(const char *name, conf_options *o)
{
    static const struct {
        const char *name;
        int cases, seconds, size;
    } tiers[] = {{"quick", CONF_QUICK_CASES, CONF_QUICK_SECONDS, 0},
                 {"ci", CONF_CI_CASES, CONF_CI_SECONDS, 0},
                 {"full", CONF_FULL_CASES, CONF_FULL_SECONDS, 1}};
    for (size_t i = 0; i < sizeof tiers / sizeof *tiers; i++)
        if (!strcmp(name, tiers[i].name)) {
            o->cases = tiers[i].cases;
            o->seconds = tiers[i].seconds;
            o->size = tiers[i].size;
            o->threads = 3;
            return INK_OK;
        }
    return failure(INK_INVALID_ARGUMENT, "selftest: tier '%s', expected quick, ci or full", name);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void judge_bias(conf_row *row, const bias_sum *bias)
{
    const double limit = row->kernel->dtype == INK_F16 ? CONF_BIAS_F16 : CONF_BIAS_BF16;
    row->bias = bias->weight > 0 ? bias->sum / bias->weight : 0;
    if (row->failed || bias->weight < CONF_BIAS_ELEMENTS || bias->cases < CONF_BIAS_CASES || fabs(row->bias) <= limit)
        return;
    row->failed = true;
    snprintf(row->failure, sizeof row->failure,
             "bias: results are off by %.2e of their size on average in %d cases, at most %.0e is centred rounding",
             row->bias, bias->cases, limit);
}

static ink_status run_row(const device *d, const conf_options *o, conf_row *row)
{
    const conf_op *op = conf_op_of(row->kernel->op);
    bias_sum bias = {0};
    if (d->backend == INK_CPU && row->kernel->isa > d->isa) {
        row->skipped = true;
        return INK_OK;
    }
    if (!op) {
        row->failed = true;
        snprintf(row->failure, sizeof row->failure, "the op has no conformance case");
        return INK_OK;
    }
    double start = now();
    uint64_t stream = o->seed ^ checksum(row->kernel->name, strlen(row->kernel->name));
    for (uint64_t i = 0; row->cases < o->cases && !row->failed && i < (uint64_t)o->cases * 50 + 2000; i++) {
        bool reached;
        if (o->seconds > 0 && row->cases >= 3 && now() - start > o->seconds)
            break;
        TRY(run_case(op, row, rng_at(stream, i), o, &bias, &reached));
    }
    judge_bias(row, &bias);
    row->seconds = now() - start;
    if (!row->cases) {
        row->failed = true;
        snprintf(row->failure, sizeof row->failure, "no drawn case is accepted by this row");
    }
    return INK_OK;
}

static bool wanted(const conf_options *o, const kernel *k)
{
    return (!o->op || !strcmp(o->op, op_schema_of(k->op)->name)) &&
           (!o->dtype || !strcmp(o->dtype, ink_dtype_name(k->dtype))) && (!o->kernel || !strcmp(o->kernel, k->name));
}

static ink_status add_row(conf_report *r, const kernel *k)
{
    TRY(grow_array(&r->rows, &r->capacity, r->count + 1, sizeof *r->rows));
    r->rows[r->count++] = (conf_row){.kernel = k};
    return INK_OK;
}

static void count(conf_report *r, const conf_row *row)
{
    r->failed += row->failed;
    r->skipped += row->skipped;
}

ink_status conf_run_kernel(const device *d, const conf_options *o, const kernel *k, conf_report *r)
{
    TRY(add_row(r, k));
    TRY(run_row(d, o, &r->rows[r->count - 1]));
    count(r, &r->rows[r->count - 1]);
    return INK_OK;
}

ink_status conf_run(const device *d, const conf_options *o, conf_report *r)
{
    for (int l = 0; l < registry_list_count(); l++) {
        const kernel_list *list = registry_list(l);
        for (int i = 0; list->backend == d->backend && i < list->count; i++) {
            if (wanted(o, &list->rows[i]))
                TRY(conf_run_kernel(d, o, &list->rows[i], r));
        }
    }
    return r->count ? INK_OK : failure(INK_NOT_FOUND, "selftest: no kernel matches");
}

ink_status conf_run_case(const device *d, const char *descriptor, conf_report *r)
{
    char op_name[64], dtype_name[16], layout_name[16];
    op_id op;
    ink_dtype dtype;
    const char *seed_text = strstr(descriptor, "seed="), *size_text = strstr(descriptor, "size=");
    if (sscanf(descriptor, "%63s %15s %15s", op_name, dtype_name, layout_name) != 3 || !op_parse(op_name, &op) ||
        !ink_dtype_parse(dtype_name, &dtype) || !seed_text)
        return failure(INK_INVALID_ARGUMENT, "'%s' is no case descriptor: expected 'OP DTYPE LAYOUT ... seed=HEX'",
                       descriptor);
    uint64_t seed = strtoull(seed_text + 5, NULL, 16);
    conf_options o = {.cases = 1, .size = size_text ? atoi(size_text + 5) : 0};
    const conf_op *c = conf_op_of(op);
    const kernel_list *list = registry_list_of(d->backend, op);
    for (int i = 0; list && c && i < list->count; i++) {
        const kernel *k = &list->rows[i];
        bias_sum bias = {0};
        bool reached;
        if (k->dtype != dtype || strcmp(ink_layout_name(k->layout), layout_name) ||
            (d->backend == INK_CPU && k->isa > d->isa))
            continue;
        TRY(add_row(r, k));
        TRY(run_case(c, &r->rows[r->count - 1], seed, &o, &bias, &reached));
        r->rows[r->count - 1].skipped = !reached;
        count(r, &r->rows[r->count - 1]);
    }
    return r->count ? INK_OK : failure(INK_NOT_FOUND, "selftest: no kernel matches '%s'", descriptor);
}

void conf_report_table(const device *d, const conf_options *o, const conf_report *r, strbuf *out)
{
    strbuf_printf(out, "%-40s %6s %9s %9s %6s  %s\n", "kernel", "cases", "err/bound", "bias", "s", "result");
    for (size_t i = 0; i < r->count; i++) {
        const conf_row *w = &r->rows[i];
        strbuf_printf(out, "%-40s %6d %9.3f %9.1e %6.2f  %s\n", w->kernel->name, w->cases, w->worst, w->bias, w->seconds,
                      w->failed    ? "FAILED"
                      : w->skipped ? "skipped (processor)"
                                   : "ok");
    }
    for (size_t i = 0; i < r->count; i++)
        if (r->rows[i].failed)
            strbuf_printf(out, "FAILED %s\n  %s\n", r->rows[i].kernel->name, r->rows[i].failure);
    strbuf_printf(out, "%s, inkstone %s, seed %llu: %zu rows, %d failed, %d skipped\n", d->name, INK_VERSION,
                  (unsigned long long)o->seed, r->count, r->failed, r->skipped);
}

void conf_report_free(conf_report *r)
{
    free(r->rows);
    *r = (conf_report){0};
}
