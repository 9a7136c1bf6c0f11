#include "engine/teacher.h"

#include "core/dtype.h"
#include "engine/session_internal.h"
#include "formats/safetensors_writer.h"

#include <stdlib.h>
#include <string.h>

/* Integers of any type as i32; *n is their number. */
static ink_status read_integers(const safetensors *in, const char *name, int32_t **out, size_t *n)
{
    ink_tensor t;
    TRY(safetensors_get(in, name, &t));
    *n = (size_t)ink_tensor_numel(&t);
    if (t.dtype != INK_I64 && t.dtype != INK_I32)
        return failure(INK_INVALID_ARGUMENT, "%s is %s, expected integers", name, ink_dtype_name(t.dtype));
    if (!(*out = alloc_array(*n, sizeof **out)))
        return INK_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < *n; i++)
        (*out)[i] = (int32_t)load_f64(t.data, t.dtype, (int64_t)i);
    return INK_OK;
}

static ink_status encode_pixels(session *s, const safetensors *in, features *f)
{
    const paddleocr_vl_vision_config *v = &s->model->config.vision;
    ink_tensor pixels;
    int32_t *grid = NULL;
    size_t n = 0;
    TRY(safetensors_get(in, "pixel_values", &pixels));
    TRY(read_integers(in, "image_grid_thw", &grid, &n));
    int64_t values = (int64_t)v->num_channels * v->patch_size * v->patch_size;
    if (n == 3) {
        f->grid = (image_grid){.thw = {1, grid[1], grid[2]}, .patches = (int64_t)grid[1] * grid[2]};
        f->grid.tokens = f->grid.patches / (v->spatial_merge_size * v->spatial_merge_size);
    }
    free(grid);
    if (n != 3 || f->grid.patches * values != ink_tensor_numel(&pixels))
        return failure(INK_INVALID_ARGUMENT, "pixel_values and image_grid_thw disagree");
    const ink_dtype dtype = s->model->dtypes[0];
    void *patches = alloc_aligned((size_t)(f->grid.patches * values) * ink_dtype_size(dtype));
    if (!patches)
        return INK_RESOURCE_EXHAUSTED;
    for (int64_t i = 0; i < f->grid.patches * values; i++)
        store_f32(patches, dtype, i, load_f32(pixels.data, pixels.dtype, i));
    ink_status status = session_encode_patches(s, patches, f);
    free(patches);
    return status;
}

/* Logits of the whole forced sequence, [m + 1, vocab]. */
static ink_status collect_logits(session *s, const features *f, const int32_t *prompt, size_t n, const int32_t *forced,
                                 size_t m, float *logits)
{
    const size_t vocab = (size_t)s->model->config.text.vocab_size;
    generation_request r = {.ids = prompt,
                            .n_ids = n,
                            .images = f,
                            .n_images = 1,
                            .max_tokens = (int)m + 2,
                            .top_p = 1,
                            .repetition_penalty = 1};
    sequence *q;
    TRY(session_add(s, &r, &q));
    memcpy(logits, run_output(s->runs[VL_PREFILL], "logits")->data, vocab * sizeof *logits);
    for (size_t i = 0; i < m; i++) {
        q->last_id = forced[i];
        TRY(decode_sequences(s, &q, 1));
        memcpy(logits + (i + 1) * vocab, run_output(s->runs[VL_DECODE], "logits")->data, vocab * sizeof *logits);
    }
    session_remove(s, q);
    return INK_OK;
}

static ink_status save(const char *path, const vl_model *m, const features *f, float *logits, size_t rows)
{
    ink_tensor t[2];
    const char *names[2] = {"projector", "logits"};
    int64_t count = f->grid.tokens * m->config.text.hidden_size;
    float *projector = alloc_array((size_t)count, sizeof *projector);
    if (!projector)
        return INK_RESOURCE_EXHAUSTED;
    for (int64_t i = 0; i < count; i++)
        projector[i] = load_f32(f->data, m->dtypes[1], i);
    ink_status s = ink_tensor_init(&t[0], INK_F32, 2, (int64_t[]){f->grid.tokens, m->config.text.hidden_size}, projector);
    if (s == INK_OK)
        s = ink_tensor_init(&t[1], INK_F32, 2, (int64_t[]){(int64_t)rows, m->config.text.vocab_size}, logits);
    if (s == INK_OK)
        s = safetensors_save(path, 2, names, t);
    free(projector);
    return s;
}

ink_status teacher_force(const vl_model *m, const safetensors *in, const char *out_path)
{
    session *s;
    features f = {0};
    int32_t *prompt = NULL, *forced = NULL;
    size_t n = 0, steps = 0;
    float *logits = NULL;
    TRY(session_create(m, NULL, &s));
    ink_status status = encode_pixels(s, in, &f);
    if (status == INK_OK)
        status = read_integers(in, "input_ids", &prompt, &n);
    if (status == INK_OK)
        status = read_integers(in, "forced_ids", &forced, &steps);
    if (status == INK_OK && !(logits = alloc_array((steps + 1) * (size_t)m->config.text.vocab_size, sizeof *logits)))
        status = INK_RESOURCE_EXHAUSTED;
    if (status == INK_OK)
        status = collect_logits(s, &f, prompt, n, forced, steps, logits);
    if (status == INK_OK)
        status = save(out_path, m, &f, logits, steps + 1);
    free(prompt);
    free(forced);
    free(logits);
    features_free(&f);
    session_free(s);
    return status;
}
