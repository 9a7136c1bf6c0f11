/* activation.h - the activations of attrs.h on one FP32 value, for portable kernels and tails. */
#ifndef CPU_ACTIVATION_H
#define CPU_ACTIVATION_H
#include "ops/attrs.h"

#include <math.h>

static inline float activate(float x, activation a)
{
    switch (a) {
    case ACT_RELU: return x < 0 ? 0 : x; /* NaN stays */
    case ACT_GELU_ERF: return 0.5f * x * erfcf(-0.70710678f * x);
    case ACT_GELU_TANH: /* 0.5 (1 + tanh u) = sigmoid(2u), which keeps its relative accuracy for very negative u */
        return isinf(x) ? (x > 0 ? x : -0.0f) : x / (1.0f + expf(-1.59576912f * (x + 0.044715f * x * x * x)));
    case ACT_SILU: return isinf(x) ? (x > 0 ? x : -0.0f) : x / (1.0f + expf(-x));
    default: return x;
    }
}
#endif
