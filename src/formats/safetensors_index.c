/* safetensors_index.c - a checkpoint's weights: the single file or the shards of its index. */
#include "core/strbuf.h"
#include "formats/json.h"
#include "formats/safetensors_internal.h"

#include <stdlib.h>
#include <string.h>

#define SINGLE_NAME "model.safetensors"
#define INDEX_NAME "model.safetensors.index.json"
#define LISTED_PROBLEMS 50 /* a longer list of missing tensors is cut, with its full count */

/* weight_map sorted by shard, so that each shard is one run. */
typedef struct mapping {
    const char *tensor, *shard;
} mapping;

typedef struct shard_index {
    json_t *json; /* owns the strings */
    mapping *map;
    size_t count;
    char *label;
} shard_index;

static int by_shard(const void *a, const void *b)
{
    const mapping *x = a, *y = b;
    int order = strcmp(x->shard, y->shard);
    return order ? order : strcmp(x->tensor, y->tensor);
}

static void index_free(shard_index *index)
{
    json_decref(index->json);
    free(index->map);
    free(index->label);
    *index = (shard_index){0};
}

static ink_status index_fill(shard_index *index)
{
    json_t *map = json_object_get(index->json, "weight_map");
    if (!json_is_object(map) || json_object_size(map) == 0)
        return failure(INK_BAD_DATA, "%s: weight_map is missing or empty", index->label);
    index->map = alloc_array(json_object_size(map), sizeof *index->map);
    if (!index->map)
        return INK_RESOURCE_EXHAUSTED;
    const char *tensor;
    json_t *value;
    json_object_foreach(map, tensor, value)
    {
        const char *shard = json_string_value(value);
        if (!tensor_name_is_clean(tensor))
            return failure(INK_BAD_DATA, "%s: a tensor name contains a control character", index->label);
        if (!shard || !file_name_is_plain(shard))
            return failure(INK_BAD_DATA, "%s: weight_map.%s: the shard must be the name of a file in the same directory",
                           index->label, tensor);
        index->map[index->count++] = (mapping){tensor, shard};
    }
    qsort(index->map, index->count, sizeof *index->map, by_shard);
    return INK_OK;
}

static ink_status index_read(const model_files *files, shard_index *index)
{
    *index = (shard_index){0};
    model_file file;
    TRY(model_file_open(files, INDEX_NAME, &file));
    index->label = copy_string(file.label);
    ink_status s =
        index->label ? json_parse_object(file.data, file.size, file.label, &index->json) : INK_RESOURCE_EXHAUSTED;
    model_file_close(&file);
    if (s == INK_OK)
        s = index_fill(index);
    if (s != INK_OK)
        index_free(index);
    return s;
}

static bool index_names(const shard_index *index, const char *shard)
{
    for (size_t i = 0; i < index->count; i++)
        if (!strcmp(index->map[i].shard, shard))
            return true;
    return false;
}

/* End of the run of tensors in the same shard as tensor `first`. */
static size_t run_end(const shard_index *index, size_t first)
{
    size_t i = first;
    while (i < index->count && !strcmp(index->map[i].shard, index->map[first].shard))
        i++;
    return i;
}

static ink_status check_shards_exist(const model_files *files, const shard_index *index)
{
    strbuf missing = {0};
    size_t shards = 0, absent = 0;
    for (size_t i = 0; i < index->count; i = run_end(index, i), shards++)
        if (!model_files_has(files, index->map[i].shard)) {
            if (absent++ < LISTED_PROBLEMS)
                strbuf_printf(&missing, "\n  %s", index->map[i].shard);
        }
    ink_status s = strbuf_status(&missing);
    if (s == INK_OK && absent) {
        strbuf text = {0};
        strbuf_printf(&text, "%s: %zu of %zu shards are missing:%s", index->label, absent, shards, strbuf_text(&missing));
        s = failure_text(INK_NOT_FOUND, strbuf_text(&text));
        strbuf_free(&text);
    }
    strbuf_free(&missing);
    return s;
}

/* A shard's entries in name order, for lookups while merging. */
static int entry_by_name(const void *a, const void *b)
{
    return strcmp(((const safetensors_entry *)a)->name, ((const safetensors_entry *)b)->name);
}

/* Opens one shard and moves the tensors the index assigns to it into the set; absent ones are appended to `missing`. */
static ink_status merge_shard(const model_files *files, const shard_index *index, size_t first, safetensors *st,
                              strbuf *missing, size_t *absent)
{
    safetensors_file *shard = &st->files[st->file_count];
    TRY(model_file_open(files, index->map[first].shard, &shard->file));
    st->file_count++;
    TRY(safetensors_file_parse(shard, &st->names));
    qsort(shard->entries, shard->count, sizeof *shard->entries, entry_by_name);
    size_t end = run_end(index, first);
    for (size_t i = first; i < end; i++) {
        safetensors_entry key = {.name = index->map[i].tensor};
        const safetensors_entry *e =
            shard->count ? bsearch(&key, shard->entries, shard->count, sizeof key, entry_by_name) : NULL;
        if (e)
            st->entries[st->count++] = *e;
        else if ((*absent)++ < LISTED_PROBLEMS)
            strbuf_printf(missing, "\n  %s (in %s)", index->map[i].tensor, index->map[i].shard);
    }
    free(shard->entries);
    shard->entries = NULL;
    return INK_OK;
}

static ink_status merge_all(const model_files *files, const shard_index *index, safetensors *st)
{
    size_t shards = 0, absent = 0;
    for (size_t i = 0; i < index->count; i = run_end(index, i))
        shards++;
    st->files = alloc_array(shards, sizeof *st->files);
    st->entries = alloc_array(index->count, sizeof *st->entries);
    if (!st->files || !st->entries)
        return INK_RESOURCE_EXHAUSTED;
    strbuf missing = {0};
    ink_status s = INK_OK;
    for (size_t i = 0; s == INK_OK && i < index->count; i = run_end(index, i))
        s = merge_shard(files, index, i, st, &missing, &absent);
    if (s == INK_OK)
        s = strbuf_status(&missing);
    if (s == INK_OK && absent) {
        strbuf text = {0};
        strbuf_printf(&text, "%s: %zu tensors are not in the shard the index names:%s", index->label, absent,
                      strbuf_text(&missing));
        s = failure_text(INK_BAD_DATA, strbuf_text(&text));
        strbuf_free(&text);
    }
    strbuf_free(&missing);
    if (s == INK_OK)
        safetensors_sort(st);
    return s;
}

static ink_status open_sharded(const model_files *files, const shard_index *index, safetensors **out)
{
    TRY(check_shards_exist(files, index));
    safetensors *st;
    TRY(safetensors_new(index->label, &st));
    ink_status s = merge_all(files, index, st);
    if (s != INK_OK) {
        safetensors_free(st);
        return s;
    }
    *out = st;
    return INK_OK;
}

static ink_status no_weights(const model_files *files)
{
    static const char *const others[] = {"pytorch_model.bin", "pytorch_model.bin.index.json", "model.pdparams",
                                         "model_state.pdparams"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (model_files_has(files, others[i]))
            return failure(INK_NOT_FOUND,
                           "%s holds no " SINGLE_NAME " and no " INDEX_NAME "; %s is not supported: save it as safetensors",
                           files->place, others[i]);
    return failure(INK_NOT_FOUND, "%s holds no " SINGLE_NAME " and no " INDEX_NAME, files->place);
}

ink_status safetensors_open_model(const model_files *files, safetensors **out)
{
    *out = NULL;
    bool single = model_files_has(files, SINGLE_NAME), indexed = model_files_has(files, INDEX_NAME);
    if (!single && !indexed)
        return no_weights(files);
    if (!indexed)
        return safetensors_open(files, SINGLE_NAME, out);
    shard_index index;
    ink_status s = index_read(files, &index);
    if (s != INK_OK)
        return single ? safetensors_open(files, SINGLE_NAME, out) : s;
    if (single && !index_names(&index, SINGLE_NAME))
        s = safetensors_open(files, SINGLE_NAME, out);
    else
        s = open_sharded(files, &index, out);
    index_free(&index);
    return s;
}
