#include "models/paddleocr_vl/tensors.h"

#include "core/log.h"
#include "core/memory.h"
#include "core/tensor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the list ---- */

typedef struct list_builder {
    paddleocr_vl_tensor *items;
    size_t count, capacity;
    char prefix[80];
    paddleocr_vl_tensor_use use;
    ink_status status;
} list_builder;

static void set_prefix(list_builder *b, const char *fmt, ...) INK_PRINTF(2, 3);
static void set_prefix(list_builder *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(b->prefix, sizeof b->prefix, fmt, ap);
    va_end(ap);
}

static void add_shape(list_builder *b, ink_tensor *slot, paddleocr_vl_tensor_kind kind, const char *name, int rank,
                      const int64_t *dims)
{
    if (b->status == INK_OK)
        b->status = grow_array(&b->items, &b->capacity, b->count + 1, sizeof *b->items);
    if (b->status != INK_OK)
        return;
    paddleocr_vl_tensor *t = &b->items[b->count++];
    *t = (paddleocr_vl_tensor){.rank = rank, .kind = kind, .use = b->use, .slot = slot};
    snprintf(t->name, sizeof t->name, "%s%s", b->prefix, name);
    memcpy(t->dims, dims, (size_t)rank * sizeof *dims);
}

static void add_matrix(list_builder *b, ink_tensor *slot, const char *name, int64_t rows, int64_t cols)
{
    add_shape(b, slot, PADDLEOCR_VL_MATRIX, name, 2, (int64_t[]){rows, cols});
}

static void add_vector(list_builder *b, ink_tensor *slot, paddleocr_vl_tensor_kind kind, const char *name, int64_t n)
{
    add_shape(b, slot, kind, name, 1, &n);
}

/* name.weight [rows, cols] and name.bias [rows]. */
static void add_linear(list_builder *b, affine_weights *a, const char *name, int64_t rows, int64_t cols)
{
    char full[48];
    snprintf(full, sizeof full, "%s.weight", name);
    add_matrix(b, a ? &a->weight : NULL, full, rows, cols);
    snprintf(full, sizeof full, "%s.bias", name);
    add_vector(b, a ? &a->bias : NULL, PADDLEOCR_VL_BIAS, full, rows);
}

static void add_norm(list_builder *b, affine_weights *a, const char *name, int64_t n)
{
    char full[48];
    snprintf(full, sizeof full, "%s.weight", name);
    add_vector(b, a ? &a->weight : NULL, PADDLEOCR_VL_NORM, full, n);
    snprintf(full, sizeof full, "%s.bias", name);
    add_vector(b, a ? &a->bias : NULL, PADDLEOCR_VL_BIAS, full, n);
}

static void list_text(list_builder *b, const paddleocr_vl_text_config *t, paddleocr_vl_weights *w)
{
    int64_t h = t->hidden_size, q = (int64_t)t->num_attention_heads * t->head_dim;
    int64_t kv = (int64_t)t->num_key_value_heads * t->head_dim, inner = t->intermediate_size;
    set_prefix(b, "%s", "");
    b->use = PADDLEOCR_VL_HEAD;
    add_matrix(b, w ? &w->lm_head : NULL, "lm_head.weight", t->vocab_size, h);
    b->use = PADDLEOCR_VL_REQUIRED;
    add_matrix(b, w ? &w->embed_tokens : NULL, "model.embed_tokens.weight", t->vocab_size, h);
    add_vector(b, w ? &w->norm : NULL, PADDLEOCR_VL_NORM, "model.norm.weight", h);
    for (int i = 0; i < t->num_hidden_layers; i++) {
        paddleocr_vl_text_layer *l = w ? &w->text_layers[i] : NULL;
        set_prefix(b, "model.layers.%d.", i);
        add_vector(b, l ? &l->input_norm : NULL, PADDLEOCR_VL_NORM, "input_layernorm.weight", h);
        add_vector(b, l ? &l->post_norm : NULL, PADDLEOCR_VL_NORM, "post_attention_layernorm.weight", h);
        add_matrix(b, l ? &l->q : NULL, "self_attn.q_proj.weight", q, h);
        add_matrix(b, l ? &l->k : NULL, "self_attn.k_proj.weight", kv, h);
        add_matrix(b, l ? &l->v : NULL, "self_attn.v_proj.weight", kv, h);
        add_matrix(b, l ? &l->o : NULL, "self_attn.o_proj.weight", h, q);
        add_matrix(b, l ? &l->gate : NULL, "mlp.gate_proj.weight", inner, h);
        add_matrix(b, l ? &l->up : NULL, "mlp.up_proj.weight", inner, h);
        add_matrix(b, l ? &l->down : NULL, "mlp.down_proj.weight", h, inner);
    }
}

static void list_projector(list_builder *b, const paddleocr_vl_config *c, paddleocr_vl_weights *w)
{
    int64_t merged = paddleocr_vl_merged_size(c);
    set_prefix(b, "mlp_AR.");
    add_norm(b, w ? &w->pre_norm : NULL, "pre_norm", c->vision.hidden_size);
    add_linear(b, w ? &w->linear_1 : NULL, "linear_1", merged, merged);
    add_linear(b, w ? &w->linear_2 : NULL, "linear_2", c->text.hidden_size, merged);
}

static void list_vision(list_builder *b, const paddleocr_vl_vision_config *v, paddleocr_vl_weights *w)
{
    int64_t n = v->hidden_size, inner = v->intermediate_size, p = v->patch_size, grid = v->position_grid;
    set_prefix(b, "visual.vision_model.embeddings.");
    add_shape(b, w ? &w->patch_embedding.weight : NULL, PADDLEOCR_VL_MATRIX, "patch_embedding.weight", 4,
              (int64_t[]){n, v->num_channels, p, p});
    add_vector(b, w ? &w->patch_embedding.bias : NULL, PADDLEOCR_VL_BIAS, "patch_embedding.bias", n);
    add_matrix(b, w ? &w->position_embedding : NULL, "position_embedding.weight", grid * grid, n);
    for (int i = 0; i < v->num_hidden_layers; i++) {
        paddleocr_vl_vision_layer *l = w ? &w->vision_layers[i] : NULL;
        set_prefix(b, "visual.vision_model.encoder.layers.%d.", i);
        add_norm(b, l ? &l->norm1 : NULL, "layer_norm1", n);
        add_norm(b, l ? &l->norm2 : NULL, "layer_norm2", n);
        add_linear(b, l ? &l->q : NULL, "self_attn.q_proj", n, n);
        add_linear(b, l ? &l->k : NULL, "self_attn.k_proj", n, n);
        add_linear(b, l ? &l->v : NULL, "self_attn.v_proj", n, n);
        add_linear(b, l ? &l->out : NULL, "self_attn.out_proj", n, n);
        add_linear(b, l ? &l->fc1 : NULL, "mlp.fc1", inner, n);
        add_linear(b, l ? &l->fc2 : NULL, "mlp.fc2", n, inner);
    }
    set_prefix(b, "visual.vision_model.");
    add_norm(b, w ? &w->post_layernorm : NULL, "post_layernorm", n);
}

/* The SigLIP leftovers of the published files: positions for a path without interpolation, and an attention pooling head.
 */
static void list_unused(list_builder *b, const paddleocr_vl_vision_config *v)
{
    int64_t n = v->hidden_size, inner = v->intermediate_size;
    b->use = PADDLEOCR_VL_UNUSED;
    set_prefix(b, "visual.vision_model.");
    add_matrix(b, NULL, "embeddings.packing_position_embedding.weight", 32768, n);
    set_prefix(b, "visual.vision_model.head.");
    add_shape(b, NULL, PADDLEOCR_VL_MATRIX, "probe", 3, (int64_t[]){1, 1, n});
    add_matrix(b, NULL, "attention.in_proj_weight", 3 * n, n);
    add_vector(b, NULL, PADDLEOCR_VL_BIAS, "attention.in_proj_bias", 3 * n);
    add_linear(b, NULL, "attention.out_proj", n, n);
    add_norm(b, NULL, "layernorm", n);
    add_linear(b, NULL, "mlp.fc1", inner, n);
    add_linear(b, NULL, "mlp.fc2", n, inner);
}

ink_status paddleocr_vl_tensor_list(const paddleocr_vl_config *c, paddleocr_vl_weights *weights, paddleocr_vl_tensor **list,
                                    size_t *count)
{
    list_builder b = {.status = INK_OK};
    list_text(&b, &c->text, weights);
    list_projector(&b, c, weights);
    list_vision(&b, &c->vision, weights);
    list_unused(&b, &c->vision);
    if (b.status != INK_OK) {
        free(b.items);
        b = (list_builder){.status = b.status};
    }
    *list = b.items;
    *count = b.count;
    return b.status;
}

/* ---- names ---- */

void paddleocr_vl_resaved_name(const char *hub_name, char *out, size_t size)
{
    static const struct {
        const char *hub, *resaved;
    } renames[] = {{"visual.", "model.visual."}, {"mlp_AR.", "model.projector."}, {"model.", "model.language_model."}};
    for (size_t i = 0; i < sizeof renames / sizeof *renames; i++) {
        size_t n = strlen(renames[i].hub);
        if (!strncmp(hub_name, renames[i].hub, n)) {
            snprintf(out, size, "%s%s", renames[i].resaved, hub_name + n);
            return;
        }
    }
    snprintf(out, size, "%s", hub_name);
}

static const safetensors_entry *find_either(const safetensors *st, const char *hub_name)
{
    char other[160];
    const safetensors_entry *e = safetensors_find(st, hub_name);
    if (e)
        return e;
    paddleocr_vl_resaved_name(hub_name, other, sizeof other);
    return safetensors_find(st, other);
}

/* ---- binding ---- */

static void put_dims(strbuf *out, int rank, const int64_t *dims)
{
    strbuf_putc(out, '[');
    for (int i = 0; i < rank; i++)
        strbuf_printf(out, "%s%lld", i ? "," : "", (long long)dims[i]);
    strbuf_putc(out, ']');
}

/* Nothing if the entry fits; else one line that says why it does not. */
static bool entry_fits(const paddleocr_vl_tensor *want, const safetensors_entry *e, strbuf *problems)
{
    const ink_tensor *t = &e->tensor;
    if (!e->usable || (t->dtype != INK_F32 && t->dtype != INK_F16 && t->dtype != INK_BF16)) {
        strbuf_printf(problems, "\n  %s has dtype %s, expected BF16, F16 or F32", e->name, e->dtype);
        return false;
    }
    if (t->rank == want->rank && !memcmp(t->dims, want->dims, (size_t)want->rank * sizeof *want->dims))
        return true;
    strbuf_printf(problems, "\n  %s has shape ", e->name);
    tensor_shape_text(t, problems);
    strbuf_puts(problems, ", expected ");
    put_dims(problems, want->rank, want->dims);
    return false;
}

/* A file with an unpadded header can leave a tensor at an odd address; its elements could then not be loaded. */
static ink_status copy_aligned(paddleocr_vl_weights *w, ink_tensor *t)
{
    size_t bytes = ink_tensor_bytes(t);
    void *copy = alloc_aligned(bytes);
    if (!copy)
        return INK_RESOURCE_EXHAUSTED;
    w->copies[w->copy_count++] = copy;
    memcpy(copy, t->data, bytes);
    t->data = copy;
    w->copied_bytes += bytes;
    return INK_OK;
}

typedef struct bind_report {
    strbuf problems;
    size_t problem_count, found;
} bind_report;

static ink_status bind_tensor(paddleocr_vl_weights *w, const safetensors *st, const paddleocr_vl_tensor *want,
                              bind_report *r)
{
    const safetensors_entry *e = find_either(st, want->name);
    if (!e && want->use == PADDLEOCR_VL_REQUIRED) {
        strbuf_printf(&r->problems, "\n  %s ", want->name);
        put_dims(&r->problems, want->rank, want->dims);
        strbuf_puts(&r->problems, " is missing");
        r->problem_count++;
    }
    if (!e || want->use == PADDLEOCR_VL_UNUSED)
        return INK_OK;
    if (!entry_fits(want, e, &r->problems)) {
        r->problem_count++;
        return INK_OK;
    }
    *want->slot = e->tensor;
    r->found++;
    w->bytes += e->bytes;
    return tensor_is_aligned(want->slot) ? INK_OK : copy_aligned(w, want->slot);
}

/* Paddle-native exports fuse matrices; say so, since every tensor then looks missing. */
static bool has_fused_names(const safetensors *st)
{
    for (size_t i = 0; i < safetensors_count(st); i++) {
        const char *name = safetensors_at(st, i)->name;
        if (strstr(name, "qkv_proj") || strstr(name, "up_gate_proj"))
            return true;
    }
    return false;
}

static ink_status report_problems(const safetensors *st, const bind_report *r)
{
    strbuf text = {0};
    strbuf_printf(&text, "%s: %zu tensor%s not fit this model's config.json:%s", safetensors_label(st), r->problem_count,
                  r->problem_count == 1 ? " does" : "s do", strbuf_text(&r->problems));
    if (has_fused_names(st))
        strbuf_puts(
            &text,
            "\nThe file has fused qkv_proj or up_gate_proj tensors (a Paddle-native export), which are not supported.");
    ink_status s = strbuf_status(&r->problems);
    if (s == INK_OK)
        s = strbuf_status(&text);
    if (s == INK_OK)
        s = failure_text(INK_BAD_DATA, strbuf_text(&text));
    strbuf_free(&text);
    return s;
}

ink_status paddleocr_vl_bind(const paddleocr_vl_config *c, const safetensors *st, paddleocr_vl_weights *out)
{
    *out = (paddleocr_vl_weights){0};
    out->vision_layers = alloc_array((size_t)c->vision.num_hidden_layers, sizeof *out->vision_layers);
    out->text_layers = alloc_array((size_t)c->text.num_hidden_layers, sizeof *out->text_layers);
    if (!out->vision_layers || !out->text_layers)
        return INK_RESOURCE_EXHAUSTED;
    paddleocr_vl_tensor *list;
    size_t count;
    TRY(paddleocr_vl_tensor_list(c, out, &list, &count));
    bind_report report = {.found = 0};
    out->copies = alloc_array(count, sizeof *out->copies);
    ink_status s = out->copies ? INK_OK : INK_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < count && s == INK_OK; i++)
        s = bind_tensor(out, st, &list[i], &report);
    free(list);
    if (s == INK_OK && report.problem_count)
        s = report_problems(st, &report);
    strbuf_free(&report.problems);
    TRY(s);
    out->unused_count = safetensors_count(st) - report.found;
    out->head_is_tied = !out->lm_head.data;
    if (out->head_is_tied)
        out->lm_head = out->embed_tokens;
    if (out->copied_bytes)
        log_line(INK_LOG_WARN, "%s: %zu bytes of weights are not aligned in the file and were copied",
                 safetensors_label(st), out->copied_bytes);
    return INK_OK;
}

void paddleocr_vl_weights_free(paddleocr_vl_weights *w)
{
    for (size_t i = 0; i < w->copy_count; i++)
        free(w->copies[i]);
    free(w->copies);
    free(w->vision_layers);
    free(w->text_layers);
    *w = (paddleocr_vl_weights){0};
}
