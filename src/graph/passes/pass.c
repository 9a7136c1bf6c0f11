#include "graph/passes/pass.h"

#include <string.h>

static const graph_pass *const passes[] = {&pass_gated_mlp_fuse, &pass_linear_act_fuse, &pass_linear_add_fuse};

int pass_count(void) { return (int)(sizeof passes / sizeof *passes); }
const graph_pass *pass_at(int i) { return passes[i]; }

static bool named(const graph_pass *p, const char *s, size_t n)
{
    return (strlen(p->name) == n && !memcmp(p->name, s, n)) ||
           (p->alias && strlen(p->alias) == n && !memcmp(p->alias, s, n));
}

static bool listed(const char *list, const graph_pass *p)
{
    for (const char *s = list; s && *s;) {
        size_t n = strcspn(s, ",");
        if (named(p, s, n))
            return true;
        s += n + (s[n] == ',');
    }
    return false;
}

static ink_status check_names(const char *list)
{
    for (const char *s = list; s && *s;) {
        size_t n = strcspn(s, ",");
        bool known = !n;
        for (int i = 0; i < pass_count(); i++)
            known |= named(passes[i], s, n);
        if (!known)
            return failure(INK_INVALID_ARGUMENT, "no pass is called '%.*s'; `inkstone check` lists them", (int)n, s);
        s += n + (s[n] == ',');
    }
    return INK_OK;
}

bool pass_has_kernel(const graph *g, const device *d, const graph_node *n)
{
    node_call c;
    graph_call_of(g, n, &c);
    return op_infer(&c.call) == INK_OK && registry_find(d, &c.call, NULL);
}

ink_status passes_run(graph *g, const device *d, const char *deleted, pass_report *reports)
{
    TRY(graph_status(g));
    TRY(check_names(deleted));
    for (int i = 0; i < pass_count(); i++) {
        pass_report r = {.deleted = listed(deleted, passes[i])};
        for (size_t n = 0; n < g->n_nodes && !r.deleted; n++) {
            pass_result result = g->nodes[n].dead ? PASS_NO_MATCH : passes[i]->try_node(g, d, (int)n);
            r.applied += result == PASS_APPLIED;
            r.no_kernel += result == PASS_NO_KERNEL;
        }
        if (reports)
            reports[i] = r;
    }
    return INK_OK;
}
