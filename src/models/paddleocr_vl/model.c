#include "models/paddleocr_vl/model.h"

#include "core/dtype.h"
#include "core/log.h"
#include "formats/embedded.h"
#include "image/processor.h"
#include "text/prompt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const modules[3] = {MODULE_VISION, MODULE_PROJECTOR, MODULE_TEXT};

const char *vl_plan_name(vl_plan p)
{
    static const char *const names[VL_PLANS] = {"vision", "projector", "prefill", "decode"};
    return names[p];
}

/* ---- dtypes of the modules ---- */

static ink_status choose_dtypes(vl_model *m, const vl_model_options *o)
{
    if (o->dtype != INK_BF16 && o->dtype != INK_F16 && o->dtype != INK_F32)
        return failure(INK_INVALID_ARGUMENT, "dtype %s, expected bf16, f16 or f32", ink_dtype_name(o->dtype));
    for (int i = 0; i < 3; i++)
        m->dtypes[i] = o->dtype;
    for (const char *s = o->fp32_modules; s && *s;) {
        size_t n = strcspn(s, ",");
        int found = -1;
        for (int i = 0; i < 3; i++)
            if (strlen(modules[i]) == n && !memcmp(modules[i], s, n))
                found = i;
        if (found < 0)
            return failure(INK_INVALID_ARGUMENT, "fp32 modules: '%.*s', expected visual, mlp_AR or language_model", (int)n,
                           s);
        m->dtypes[found] = INK_F32;
        s += n + (s[n] == ',');
    }
    return INK_OK;
}

static int module_of(const char *hub_name)
{
    return !strncmp(hub_name, "visual.", 7) ? 0 : !strncmp(hub_name, "mlp_AR.", 7) ? 1 : 2;
}

/* ---- weights in another type than the file's: converted once, explicitly, and counted ---- */

static ink_status convert(vl_model *m, const char *name, ink_tensor *t, ink_dtype to)
{
    int64_t n = ink_tensor_numel(t), overflows = 0;
    void *data = alloc_aligned((size_t)n * ink_dtype_size(to));
    if (!data)
        return INK_RESOURCE_EXHAUSTED;
    const ink_dtype from = t->dtype;
    const void *source = t->data;
    m->converted[m->n_converted++] = data;
    if (from == INK_BF16 && to == INK_F32) { /* the usual case, exact: a loop that vectorises */
#pragma omp parallel for num_threads(m->dev.threads)
        for (int64_t i = 0; i < n; i++)
            ((float *)data)[i] = bf16_to_f32(((const bf16 *)source)[i]);
    } else {
#pragma omp parallel for num_threads(m->dev.threads) reduction(+ : overflows)
        for (int64_t i = 0; i < n; i++) {
            const float v = load_f32(source, from, i);
            store_f32(data, to, i, v);
            overflows += isfinite(v) && !isfinite(load_f32(data, to, i));
        }
    }
    if (overflows)
        return failure(INK_OUT_OF_RANGE, "%s: %lld values of %s do not fit %s; use another --dtype", m->label,
                       (long long)overflows, name, ink_dtype_name(to));
    safetensors_release(m->st, t);
    t->data = data;
    t->dtype = to;
    return INK_OK;
}

static ink_status convert_weights(vl_model *m)
{
    paddleocr_vl_tensor *list = NULL;
    size_t count = 0;
    TRY(paddleocr_vl_tensor_list(&m->config, &m->weights, &list, &count));
    ink_status s = (m->converted = alloc_array(count, sizeof *m->converted)) ? INK_OK : INK_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < count && s == INK_OK; i++) {
        ink_tensor *t = list[i].slot;
        int module = module_of(list[i].name);
        if (!t || !t->data || (m->weights.head_is_tied && list[i].use == PADDLEOCR_VL_HEAD))
            continue;
        if (t->dtype != m->dtypes[module]) {
            s = convert(m, list[i].name, t, m->dtypes[module]);
            m->memory.converted[module] += ink_tensor_bytes(t);
        }
        m->memory.weights[module] += ink_tensor_bytes(t);
    }
    if (m->weights.head_is_tied)
        m->weights.lm_head = m->weights.embed_tokens;
    free(list);
    if (s == INK_OK && m->n_converted)
        log_line(INK_LOG_INFO, "%s: %zu tensors converted at load to the type they are computed in", m->label,
                 m->n_converted);
    return s;
}

/* ---- plans ---- */

/* The most patches that smart_resize can give (image/smart_resize.h): the area limit; a strip of aspect ratio 200 whose
 * short side stays at one factor; or min_pixels with both sides rounded up by a factor, at most
 * min + f (a + b) + f^2 with a b = min and a / b <= 200. */
static int64_t most_patches(const paddleocr_vl_vision_config *v, int64_t min_pixels, int64_t max_pixels)
{
    double f = (double)v->patch_size * v->spatial_merge_size, lo = (double)min_pixels, hi = (double)max_pixels;
    double strip = f * (sqrt(200 * hi) + f), rounded_up = lo + f * 14.3 * sqrt(lo) + f * f;
    double pixels = fmax(hi, fmax(strip, rounded_up));
    int64_t merge = (int64_t)v->spatial_merge_size * v->spatial_merge_size;
    return ((int64_t)(pixels / (v->patch_size * v->patch_size)) / merge + 1) * merge;
}

static void set_bounds(vl_model *m, const vl_model_options *o)
{
    const paddleocr_vl_vision_config *v = &m->config.vision;
    int64_t patches = most_patches(v, m->config.image.min_pixels, m->config.image.max_pixels);
    int64_t merge = (int64_t)v->spatial_merge_size * v->spatial_merge_size;
    m->bounds[DIM_PATCHES] = patches;
    m->bounds[DIM_IMAGES] = 1;
    m->bounds[DIM_FEATURES] = patches / merge;
    m->bounds[DIM_TOKENS] = patches / merge + 1024; /* longer prompts go through prefill in chunks */
    m->bounds[DIM_SEQUENCES] = o->max_sequences > 0 ? o->max_sequences : 16;
    m->bounds[DIM_KV_BLOCKS] = (m->config.text.max_position_embeddings + KV_BLOCK - 1) / KV_BLOCK;
    m->bounds[DIM_HISTORY] = m->config.text.max_position_embeddings;
    m->bounds[DIM_POOL] = INT32_MAX / KV_BLOCK;
}

static ink_status make_plans(vl_model *m, const vl_model_options *o)
{
    graph *(*const builders[VL_PLANS])(const paddleocr_vl_config *, const paddleocr_vl_weights *,
                                       const vl_graph_options *) = {paddleocr_vl_vision_graph, paddleocr_vl_projector_graph,
                                                                    paddleocr_vl_prefill_graph, paddleocr_vl_decode_graph};
    vl_graph_options go = {m->dtypes[0], m->dtypes[1], m->dtypes[2], {0}, o->taps};
    memcpy(go.bounds, m->bounds, sizeof go.bounds);
    strbuf missing = {0};
    ink_status s = INK_OK;
    for (int i = 0; i < VL_PLANS && (s == INK_OK || s == INK_MISSING_KERNEL); i++) {
        plan_options po = {.delete_passes = o->delete_passes};
        ink_status one =
            plan_create(builders[i](&m->config, &m->weights, &go), &m->dev, &po, vl_plan_name((vl_plan)i), &m->plans[i]);
        if (one == INK_MISSING_KERNEL)
            strbuf_puts(&missing, ink_last_error()); /* go on: all plans' gaps are reported at once */
        if (one != INK_OK)
            s = one;
    }
    if (missing.length && s == INK_MISSING_KERNEL)
        failure_text(INK_MISSING_KERNEL, strbuf_text(&missing));
    strbuf_free(&missing);
    return s;
}

/* ---- tokenizer and prompt ---- */

static ink_status read_tokenizer(vl_model *m, const vl_model_options *o)
{
    model_file json, template = {0}, config = {0};
    TRY(model_file_open(&m->files, "tokenizer.json", &json));
    ink_status s = tokenizer_parse(json.data, json.size, &m->tokens);
    if (s != INK_OK)
        failure_in(s, "%s", json.label);
    model_file_close(&json);
    bool has_template = s == INK_OK && model_files_has(&m->files, "chat_template.jinja");
    bool has_config = s == INK_OK && model_files_has(&m->files, "tokenizer_config.json");
    if (has_template)
        s = model_file_open(&m->files, "chat_template.jinja", &template);
    if (s == INK_OK && has_config)
        s = model_file_open(&m->files, "tokenizer_config.json", &config);
    if (s == INK_OK)
        s = prompt_find_prefix(template.data, template.size, config.data, config.size, o->assistant_prefix,
                               &m->assistant_prefix);
    model_file_close(&template);
    model_file_close(&config);
    return s;
}

static ink_status load(vl_model *m, const vl_model_options *o)
{
    TRY(device_open_cpu(&m->dev, o->threads, o->disable));
    TRY(choose_dtypes(m, o));
    TRY(o->directory ? model_files_open_directory(o->directory, &m->files) : embedded_model_files(&m->files));
    m->label = copy_string(o->directory ? o->directory : "embedded mini model");
    if (!m->label)
        return INK_RESOURCE_EXHAUSTED;
    TRY(paddleocr_vl_config_read(&m->files, &m->config));
    TRY(image_processor_limit(&m->config.image.min_pixels, &m->config.image.max_pixels, o->min_pixels, o->max_pixels));
    TRY(paddleocr_vl_config_check(&m->config, "the pixel limits given"));
    TRY(read_tokenizer(m, o));
    TRY(safetensors_open_model(&m->files, &m->st));
    TRY(paddleocr_vl_bind(&m->config, m->st, &m->weights));
    TRY(convert_weights(m));
    set_bounds(m, o);
    return make_plans(m, o);
}

ink_status vl_model_load(const vl_model_options *o, vl_model **out)
{
    vl_model *m = alloc_array(1, sizeof *m);
    *out = NULL;
    if (!m)
        return INK_RESOURCE_EXHAUSTED;
    ink_status s = load(m, o);
    if (s == INK_OK)
        *out = m;
    else
        vl_model_free(m);
    return s;
}

void vl_model_free(vl_model *m)
{
    if (!m)
        return;
    for (int i = 0; i < VL_PLANS; i++)
        plan_free(m->plans[i]);
    for (size_t i = 0; i < m->n_converted; i++)
        free(m->converted[i]);
    free(m->converted);
    paddleocr_vl_weights_free(&m->weights);
    safetensors_free(m->st);
    tokenizer_free(m->tokens);
    free(m->assistant_prefix);
    model_files_close(&m->files);
    device_close(&m->dev);
    free(m->label);
    free(m);
}
