/* reference.h - pieces of the FP64 references: sums with their magnitude, activations with their slope. */
#ifndef CONFORMANCE_REFERENCE_H
#define CONFORMANCE_REFERENCE_H
#include "conformance/conformance.h"

/* A sum of products with what its error bound needs. */
typedef struct ref_sum {
    double sum, magnitude; /* sum of terms, sum of their absolute values */
    double flushed;        /* what flushing subnormal operands could remove */
    double terms;
} ref_sum;

void ref_product(ref_sum *s, double a, double b);
void ref_term(ref_sum *s, double v);

/* FP32 accumulation in any order, and the flushing of subnormal BF16 operands where the row under test does that. */
double ref_sum_error(const conf_case *k, const ref_sum *s);

/* Value at x, and the largest |derivative| of the activation anywhere (an error e before it is at most slope * e behind).
 */
double ref_activation(double x, activation a, double *slope);
#endif
