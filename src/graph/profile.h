/* profile.h - calls, time, FLOPs and bytes by kernel. A kernel has one dtype, so "how many FP32 GEMMs ran" is a sum. */
#ifndef GRAPH_PROFILE_H
#define GRAPH_PROFILE_H
#include "registry/registry.h"

typedef struct profile_entry {
    const kernel *kernel;
    const char *module;
    int64_t calls;
    double seconds;
    op_cost cost;
} profile_entry;

typedef struct profile {
    profile_entry *entries;
    size_t count, capacity;
    double fma_peak_flops; /* measured roof for the table's percentages; 0: unknown */
} profile;

/* Counts one call; memory shortage drops the sample and sets the error. */
ink_status profile_add(profile *p, const kernel *k, const char *module, double seconds, op_cost cost);
void profile_free(profile *p);

bool op_is_gemm(op_id op); /* linear, linear_gated and the convolutions */

/* GEMM calls in FP32 kernels. */
int64_t profile_fp32_gemms(const profile *p);

/* A table for people, most time first; and the same as one JSON object. */
void profile_table(const profile *p, strbuf *out);
ink_status profile_json(const profile *p, strbuf *out);
#endif
