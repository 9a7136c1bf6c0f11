/* teacher.h - running a model on given pixel values and given token ids, for comparison with another implementation: both
 * see the same inputs at every step, so that one early difference does not hide all later ones. */
#ifndef ENGINE_TEACHER_H
#define ENGINE_TEACHER_H
#include "engine/session.h"

/* Reads from `in`: pixel_values [P, 3, patch, patch] F32, image_grid_thw [3] or [1, 3], input_ids (the prompt with its
 * placeholders) and forced_ids [m], integers. Writes to the file `out_path`: projector [N, H] F32 and logits [m + 1, vocab]
 * F32, row 0 after the prompt, row i after forced_ids[i - 1]. */
ink_status teacher_force(const vl_model *m, const safetensors *in, const char *out_path);
#endif
