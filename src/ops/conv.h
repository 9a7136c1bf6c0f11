/* conv.h - geometry of a validated convolution, for the schema and the kernels: pads and dilation are resolved. */
#ifndef OPS_CONV_H
#define OPS_CONV_H
#include "ops/op.h"

typedef struct conv2d_geometry {
    int64_t n, c, m, groups;                                     /* batch, input channels, output channels */
    int64_t in[2], out[2], k[2], stride[2], dilation[2], pad[2]; /* height, width; pad: cells before the first */
} conv2d_geometry;

/* Fails as the schema does; cannot fail once op_infer has accepted the call. */
ink_status conv2d_geometry_of(const op_call *c, conv2d_geometry *g);

int conv2d_channel_axis(const ink_tensor *x);
int conv2d_height_axis(const ink_tensor *x); /* width is the next */
#endif
