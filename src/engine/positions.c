#include "engine/positions.h"

static void place_image(merged_grid g, int32_t start, int32_t *out)
{
    for (int32_t r = 0; r < g.rows; r++)
        for (int32_t c = 0; c < g.columns; c++, out += 3) {
            out[0] = start;
            out[1] = start + r;
            out[2] = start + c;
        }
}

ink_status mrope_positions(const int32_t *ids, size_t n, int32_t image_token_id, const merged_grid *grids, size_t n_images,
                           int32_t *positions, int32_t *delta)
{
    int32_t next = 0;
    size_t image = 0, i = 0;
    while (i < n) {
        if (ids[i] != image_token_id) {
            positions[3 * i] = positions[3 * i + 1] = positions[3 * i + 2] = next++;
            i++;
            continue;
        }
        size_t run = 0, want = image < n_images ? (size_t)grids[image].rows * (size_t)grids[image].columns : 0;
        while (i + run < n && run < want && ids[i + run] == image_token_id)
            run++;
        if (!want || run != want)
            return failure(INK_INVALID_ARGUMENT, "prompt: image %zu of %zu has %zu placeholder tokens, its grid needs %zu",
                           image + 1, n_images, run, want);
        place_image(grids[image], next, positions + 3 * i);
        next += grids[image].rows > grids[image].columns ? grids[image].rows : grids[image].columns;
        image++;
        i += run;
    }
    if (image != n_images)
        return failure(INK_INVALID_ARGUMENT, "prompt: %zu images given, placeholders for %zu", n_images, image);
    *delta = next - (int32_t)n;
    return INK_OK;
}
