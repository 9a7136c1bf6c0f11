/* rope.h - the frequencies of a rotary table, one definition for every backend. */
#ifndef OPS_ROPE_H
#define OPS_ROPE_H
#include "ops/op.h"

enum { ROPE_MAX_HALF = 128 }; /* head_dim is at most 256 */

/* For i in 0 .. head_dim/2 - 1: the frequency omega[i] and the column of `positions` that it turns with, axis[i].
 * omega = 1 / theta^(2k/d) with the roundings of the reference (`1.0 / theta ** (arange(0, d, 2).float() / d)`): the
 * exponent is rounded to FP32, the power too (computed in FP64, so correctly but for rare near-ties), and their quotient.
 * The angle is position * omega in FP32. */
void rope_frequencies(const rope_table_attrs *a, float omega[ROPE_MAX_HALF], int axis[ROPE_MAX_HALF]);
#endif
