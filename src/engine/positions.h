/* positions.h - M-RoPE position ids of a prompt (spec 6.5). */
#ifndef ENGINE_POSITIONS_H
#define ENGINE_POSITIONS_H
#include "core/status.h"

/* Merged grid of one image: rows x columns of image tokens. */
typedef struct merged_grid {
    int32_t rows, columns;
} merged_grid;

/* Fills positions [n, 3] (t, h, w) for ids[0..n) and *delta: a generated token at index i of the sequence has position
 * i + *delta on all three axes. Each run of image tokens belongs to the next image of grids[0..n_images); runs of adjacent
 * images are split by their sizes. INK_INVALID_ARGUMENT names both counts when tokens and grids disagree. */
ink_status mrope_positions(const int32_t *ids, size_t n, int32_t image_token_id, const merged_grid *grids, size_t n_images,
                           int32_t *positions, int32_t *delta);
#endif
