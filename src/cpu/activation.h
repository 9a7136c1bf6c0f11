/* activation.h - the activations of attrs.h on one FP32 value, for portable kernels and tails. */
#ifndef CPU_ACTIVATION_H
#define CPU_ACTIVATION_H
#include "ops/attrs.h"

#include <math.h>

/* x * sigmoid(s), sign(s) = sign(x): e^-|s| cannot overflow, so that results keep their relative accuracy down to the
 * subnormals; -inf gives -0. */
static inline float times_sigmoid(float x, float s)
{
    float e = expf(-fabsf(s));
    if (s < 0)
        x = (x < -3e38f ? -3e38f : x) * e;
    return x / (1.0f + e);
}

static inline float gelu_erf(float x)
{
    return isinf(x) ? (x > 0 ? x : -0.0f)
                    : (float)(0.5 * x * erfc(-0.70710678118654752440 * x)); /* FP64: the tail of erfc is steep */
}

static inline float activate(float x, activation a)
{
    switch (a) {
    case ACT_RELU: return x < 0 ? 0 : x; /* NaN stays */
    case ACT_GELU_ERF: return gelu_erf(x);
    case ACT_GELU_TANH: /* 0.5 (1 + tanh u) = sigmoid(2u), which keeps its relative accuracy for very negative u */
        return times_sigmoid(x, x * (1.59576912f + 0.0713548163f * x * x));
    case ACT_SILU: return times_sigmoid(x, x);
    default: return x;
    }
}
#endif
