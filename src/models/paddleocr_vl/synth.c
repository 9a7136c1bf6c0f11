#define _DEFAULT_SOURCE
#include "models/paddleocr_vl/synth.h"

#include "core/dtype.h"
#include "core/memory.h"
#include "core/rng.h"
#include "core/strbuf.h"
#include "core/threads.h"
#include "formats/safetensors_writer.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- presets ---- */

static const char *const preset_names[] = {"paddleocr-vl-1.5", "paddleocr-vl-tiny", NULL};

const char *const *synth_presets(void) { return preset_names; }

/* The published proportions at a few percent of the width, same vocabulary and ids. */
static void make_tiny(paddleocr_vl_config *c)
{
    c->text.hidden_size = 64;
    c->text.intermediate_size = 96;
    c->text.num_hidden_layers = 2;
    c->text.num_attention_heads = 4;
    c->text.head_dim = 32;
    c->text.mrope_section[0] = 4;
    c->text.mrope_section[1] = c->text.mrope_section[2] = 6;
    c->text.max_position_embeddings = 4096;
    c->vision.hidden_size = 144;
    c->vision.intermediate_size = 304;
    c->vision.num_hidden_layers = 2;
    c->vision.num_attention_heads = 2;
}

ink_status synth_config(const synth_options *o, paddleocr_vl_config *out)
{
    const char *preset = o->preset ? o->preset : preset_names[0];
    paddleocr_vl_config_defaults(out);
    out->vision.position_embedding_align_corners = true; /* so that transformers 5.17 computes the same */
    if (!strcmp(preset, "paddleocr-vl-tiny"))
        make_tiny(out);
    else if (strcmp(preset, "paddleocr-vl-1.5") != 0)
        return failure(INK_NOT_FOUND, "no preset \"%.64s\"; there are: %s, %s", preset, preset_names[0], preset_names[1]);
    if (o->vision_layers < 0 || o->vision_layers > 1024 || o->text_layers < 0 || o->text_layers > 1024)
        return failure(INK_INVALID_ARGUMENT, "layers %d,%d: expected 1 to 1024 each", o->vision_layers, o->text_layers);
    if (o->vision_layers)
        out->vision.num_hidden_layers = o->vision_layers;
    if (o->text_layers)
        out->text.num_hidden_layers = o->text_layers;
    return INK_OK;
}

/* ---- values ---- */

/* FNV-1a, 64 bits. */
static uint64_t hash_name(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}

/* 0.9 + 0.2 u for u in [0, 1) with 24 bits, as one correctly rounded quotient of integers. */
static float norm_scale(uint64_t random)
{
    uint64_t n = ((uint64_t)9 << 24) + 2 * (random >> 40);
    return (float)((double)n / (10.0 * 0x1p24));
}

void synth_fill(uint64_t seed, const paddleocr_vl_tensor *tensor, int64_t first, int64_t count, uint16_t *bf16_out)
{
    uint64_t stream = rng_at(seed, hash_name(tensor->name));
    if (tensor->kind == PADDLEOCR_VL_NORM) {
        for (int64_t i = 0; i < count; i++)
            bf16_out[i] = f32_to_bf16(norm_scale(rng_at(stream, (uint64_t)(first + i))));
        return;
    }
    int64_t fan_in = 1;
    for (int d = 1; d < tensor->rank; d++)
        fan_in *= tensor->dims[d];
    /* IEEE square root, quotient and products: the same bits everywhere. */
    float scale = tensor->kind == PADDLEOCR_VL_BIAS ? 0.02f : (float)(1.0 / sqrt((double)fan_in));
    for (int64_t i = 0; i < count; i++)
        bf16_out[i] = f32_to_bf16(rng_normal_bits(rng_at(stream, (uint64_t)(first + i))) * scale);
}

/* ---- weights ---- */

#define CHUNK (1 << 19) /* elements made and written at a time; 1 MiB */

typedef struct chunk {
    size_t tensor;
    int64_t first, count;
} chunk;

typedef struct weight_job {
    const synth_options *options;
    const paddleocr_vl_tensor *list;
    size_t tensor_count;
    chunk *chunks;
    size_t chunk_count;
    safetensors_writer *writer;
    uint64_t total;
    _Atomic uint64_t done;
    _Atomic int status; /* first failure of any thread ... */
    char *message;      /* ... and its text, since messages belong to threads */
} weight_job;

static int64_t element_count(const paddleocr_vl_tensor *t)
{
    int64_t n = 1;
    for (int d = 0; d < t->rank; d++)
        n *= t->dims[d];
    return n;
}

static ink_status cut_chunks(weight_job *job)
{
    size_t capacity = 0;
    for (size_t t = 0; t < job->tensor_count; t++) {
        int64_t n = element_count(&job->list[t]);
        for (int64_t first = 0; first < n; first += CHUNK) {
            TRY(grow_array(&job->chunks, &capacity, job->chunk_count + 1, sizeof *job->chunks));
            job->chunks[job->chunk_count++] = (chunk){t, first, n - first < CHUNK ? n - first : CHUNK};
        }
        job->total += (uint64_t)n * 2;
    }
    return INK_OK;
}

static ink_status make_chunk(weight_job *job, const chunk *c, uint16_t *buffer)
{
    if (!buffer)
        return failure(INK_RESOURCE_EXHAUSTED, "out of memory: %d bytes", CHUNK * 2);
    synth_fill(job->options->seed, &job->list[c->tensor], c->first, c->count, buffer);
    return safetensors_writer_write(job->writer, c->tensor, (size_t)c->first * 2, buffer, (size_t)c->count * 2);
}

static void run_chunks(weight_job *job, int threads)
{
#pragma omp parallel num_threads(threads)
    {
        uint16_t *buffer = alloc_aligned((size_t)CHUNK * 2);
#pragma omp for schedule(dynamic)
        for (size_t i = 0; i < job->chunk_count; i++) {
            if (job->status != INK_OK)
                continue;
            ink_status s = make_chunk(job, &job->chunks[i], buffer);
            job->done += (uint64_t)job->chunks[i].count * 2;
            if (s != INK_OK) {
#pragma omp critical(synth_failure)
                if (job->status == INK_OK) {
                    job->message = copy_string(ink_last_error());
                    job->status = (int)s;
                }
            }
            if (thread_index() == 0 && job->options->progress)
                job->options->progress(job->options->user, job->done, job->total);
        }
        free(buffer);
    }
}

static ink_status write_all_chunks(weight_job *job, const char *path)
{
    TRY(cut_chunks(job));
    TRY(safetensors_writer_create(path, &job->writer));
    for (size_t i = 0; i < job->tensor_count; i++)
        TRY(safetensors_writer_declare(job->writer, job->list[i].name, INK_BF16, job->list[i].rank, job->list[i].dims));
    TRY(safetensors_writer_begin(job->writer));
    run_chunks(job, job->options->threads > 0 ? job->options->threads : threads_default());
    if (job->status != INK_OK)
        return failure_text((ink_status)job->status, job->message ? job->message : "out of memory");
    return safetensors_writer_finish(job->writer);
}

static ink_status write_weights(const char *path, const synth_options *o, const paddleocr_vl_config *c)
{
    paddleocr_vl_tensor *list;
    size_t count;
    TRY(paddleocr_vl_tensor_list(c, NULL, &list, &count));
    weight_job job = {.options = o, .list = list, .tensor_count = count};
    ink_status s = write_all_chunks(&job, path);
    safetensors_writer_free(job.writer);
    free(job.chunks);
    free(job.message);
    free(list);
    return s;
}

/* ---- directory ---- */

static ink_status write_text(const char *path, const char *text, size_t size)
{
    FILE *f = fopen(path, "wbe");
    if (!f)
        return failure(INK_IO, "cannot create %s: %s", path, strerror(errno));
    bool ok = fwrite(text, 1, size, f) == size;
    int reason = errno;
    if (fclose(f) != 0 && ok) {
        ok = false;
        reason = errno;
    }
    return ok ? INK_OK : failure(INK_IO, "cannot write %s: %s", path, strerror(reason));
}

typedef struct target {
    char *dir;     /* without trailing slashes */
    char *partial; /* temporary directory: beside a new `dir`, inside an existing one */
    bool exists;
} target;

static char *path_of(const char *dir, const char *name)
{
    size_t n = strlen(dir) + strlen(name) + 2;
    char *path = alloc_array(n, 1);
    if (path)
        snprintf(path, n, "%s/%s", dir, name);
    return path;
}

static ink_status check_target(target *t, bool force)
{
    struct stat st;
    if (stat(t->dir, &st) != 0)
        return errno == ENOENT ? INK_OK : failure(INK_IO, "%s: %s", t->dir, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return failure(INK_INVALID_ARGUMENT, "%s exists and is not a directory", t->dir);
    t->exists = true;
    DIR *d = opendir(t->dir);
    if (!d)
        return failure(INK_IO, "cannot read directory %s: %s", t->dir, strerror(errno));
    const char *found = NULL;
    char name[256];
    for (struct dirent *e; !found && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            snprintf(name, sizeof name, "%s", e->d_name);
            found = name;
        }
    closedir(d);
    if (found && !force)
        return failure(INK_FAILED_PRECONDITION, "%s is not empty (it holds %s); nothing was written", t->dir, found);
    return INK_OK;
}

static ink_status make_partial(target *t)
{
    size_t n = strlen(t->dir) + 64;
    if (!(t->partial = alloc_array(n, 1)))
        return INK_RESOURCE_EXHAUSTED;
    for (int attempt = 0; attempt < 100; attempt++) {
        snprintf(t->partial, n, t->exists ? "%s/.partial-%ld-%d" : "%s.partial-%ld-%d", t->dir, (long)getpid(), attempt);
        if (mkdir(t->partial, 0777) == 0)
            return INK_OK;
        if (errno != EEXIST)
            break;
    }
    ink_status s = failure(INK_IO, "cannot create directory %s: %s", t->partial, strerror(errno));
    free(t->partial);
    t->partial = NULL;
    return s;
}

static ink_status write_files(const target *t, const synth_options *o, const paddleocr_vl_config *c)
{
    for (const char *const *name = synth_file_names(); *name; name++) {
        char *text = NULL, *path = path_of(t->partial, *name);
        size_t size = 0;
        ink_status s = path ? synth_file_text(*name, c, &text, &size) : INK_RESOURCE_EXHAUSTED;
        if (s == INK_OK)
            s = write_text(path, text, size);
        free(text);
        free(path);
        TRY(s);
    }
    char *path = path_of(t->partial, "model.safetensors");
    ink_status s = path ? write_weights(path, o, c) : INK_RESOURCE_EXHAUSTED;
    free(path);
    return s;
}

static ink_status move_file(const target *t, const char *name)
{
    char *from = path_of(t->partial, name), *to = path_of(t->dir, name);
    ink_status s = from && to ? INK_OK : INK_RESOURCE_EXHAUSTED;
    if (s == INK_OK && rename(from, to) != 0)
        s = failure(INK_IO, "cannot rename %s to %s: %s", from, to, strerror(errno));
    free(from);
    free(to);
    return s;
}

static ink_status put_in_place(const target *t)
{
    if (!t->exists) {
        if (rename(t->partial, t->dir) != 0)
            return failure(INK_IO, "cannot rename %s to %s: %s", t->partial, t->dir, strerror(errno));
        return INK_OK;
    }
    TRY(move_file(t, "model.safetensors"));
    for (const char *const *name = synth_file_names(); *name; name++)
        TRY(move_file(t, *name));
    rmdir(t->partial);
    return INK_OK;
}

static void remove_partial(const target *t)
{
    for (const char *const *name = synth_file_names(); *name; name++) {
        char *path = path_of(t->partial, *name);
        if (path)
            unlink(path);
        free(path);
    }
    char *path = path_of(t->partial, "model.safetensors");
    if (path)
        unlink(path);
    free(path);
    rmdir(t->partial);
}

ink_status synth_write(const char *dir, const synth_options *o)
{
    paddleocr_vl_config c;
    TRY(synth_config(o, &c));
    target t = {.dir = copy_string(dir)};
    if (!t.dir)
        return INK_RESOURCE_EXHAUSTED;
    for (size_t n = strlen(t.dir); n > 1 && t.dir[n - 1] == '/'; n--)
        t.dir[n - 1] = 0;
    ink_status s = *t.dir ? check_target(&t, o->force) : failure(INK_INVALID_ARGUMENT, "the directory's name is empty");
    if (s == INK_OK)
        s = make_partial(&t);
    if (t.partial) {
        s = write_files(&t, o, &c);
        if (s == INK_OK)
            s = put_in_place(&t);
        if (s != INK_OK)
            remove_partial(&t);
    }
    free(t.partial);
    free(t.dir);
    return s;
}
