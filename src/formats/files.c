#define _DEFAULT_SOURCE
#include "formats/files.h"

#include "core/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_name_is_plain(const char *name)
{
    if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
        return false;
    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        if (*p == '/' || *p == '\\' || *p < 0x20 || *p == 0x7f)
            return false;
    return true;
}

/* "place/name"; owned by the caller. */
static char *join(const char *place, const char *name)
{
    size_t a = strlen(place), b = strlen(name);
    bool slash = a && place[a - 1] != '/';
    char *path = alloc_array(a + b + 2, 1);
    if (path)
        snprintf(path, a + b + 2, "%s%s%s", place, slash ? "/" : "", name);
    return path;
}

ink_status model_files_open_directory(const char *path, model_files *out)
{
    *out = (model_files){0};
    struct stat st;
    if (!path || !*path)
        return failure(INK_INVALID_ARGUMENT, "the model directory's path is empty");
    if (stat(path, &st) != 0)
        return failure(errno == ENOENT || errno == ENOTDIR ? INK_NOT_FOUND : INK_IO, "cannot open model directory %s: %s",
                       path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return failure(INK_INVALID_ARGUMENT,
                       "%s is not a directory; expected the folder that holds config.json and model.safetensors", path);
    out->place = copy_string(path);
    return out->place ? INK_OK : INK_RESOURCE_EXHAUSTED;
}

ink_status model_files_open_table(const char *label, const embedded_file *table, size_t count, model_files *out)
{
    *out = (model_files){.table = table, .table_count = count};
    out->place = copy_string(label);
    return out->place ? INK_OK : INK_RESOURCE_EXHAUSTED;
}

void model_files_close(model_files *files)
{
    free(files->place);
    *files = (model_files){0};
}

static const embedded_file *find_embedded(const model_files *files, const char *name)
{
    for (size_t i = 0; i < files->table_count; i++)
        if (!strcmp(files->table[i].name, name))
            return &files->table[i];
    return NULL;
}

bool model_files_has(const model_files *files, const char *name)
{
    if (files->table)
        return find_embedded(files, name) != NULL;
    if (!file_name_is_plain(name))
        return false;
    char *path = join(files->place, name);
    bool found = path && access(path, R_OK) == 0;
    free(path);
    return found;
}

/* Maps an open descriptor. O_NONBLOCK at open keeps a FIFO in a checkpoint's place from hanging us; it is refused here. */
static ink_status map_descriptor(int fd, const char *path, model_file *out)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return failure(INK_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return failure(INK_BAD_DATA, "%s is not a regular file", path);
    if (st.st_size < 0 || (uintmax_t)st.st_size > SIZE_MAX / 2)
        return failure(INK_RESOURCE_EXHAUSTED, "%s: %jd bytes cannot be mapped", path, (intmax_t)st.st_size);
    out->size = (size_t)st.st_size;
    out->data = "";
    if (!out->size)
        return INK_OK;
    void *p = mmap(NULL, out->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return failure(INK_IO, "%s: cannot map %zu bytes: %s", path, out->size, strerror(errno));
    out->data = p;
    out->mapped = true;
    return INK_OK;
}

ink_status model_file_open_path(const char *path, model_file *out)
{
    *out = (model_file){.data = ""};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return failure(errno == ENOENT || errno == ENOTDIR ? INK_NOT_FOUND : INK_IO, "cannot open %s: %s", path,
                       strerror(errno));
    ink_status s = map_descriptor(fd, path, out);
    close(fd);
    if (s == INK_OK && !(out->label = copy_string(path)))
        s = INK_RESOURCE_EXHAUSTED;
    if (s != INK_OK)
        model_file_close(out);
    return s;
}

ink_status model_file_open(const model_files *files, const char *name, model_file *out)
{
    *out = (model_file){.data = ""};
    if (!file_name_is_plain(name))
        return failure(INK_BAD_DATA, "file name \"%s\" leads out of the model directory", name);
    char *path = join(files->place, name);
    if (!path)
        return INK_RESOURCE_EXHAUSTED;
    ink_status s = INK_OK;
    if (!files->table) {
        s = model_file_open_path(path, out);
    } else {
        const embedded_file *e = find_embedded(files, name);
        if (e) {
            *out = (model_file){.data = e->begin, .size = (size_t)(e->end - e->begin), .label = path};
            return INK_OK;
        }
        s = failure(INK_NOT_FOUND, "%s has no file %s", files->place, name);
    }
    free(path);
    return s;
}

void model_file_close(model_file *file)
{
    if (file->mapped)
        munmap((void *)(uintptr_t)file->data, file->size);
    free(file->label);
    *file = (model_file){.data = ""};
}

void model_file_release(const model_file *file, size_t offset, size_t bytes)
{
    if (!file->mapped || offset >= file->size)
        return;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), begin = (offset + page - 1) / page * page;
    size_t end =
        (bytes > file->size - offset ? file->size : offset + bytes) / page * page; /* whole pages: neighbours stay */
    if (begin < end)
        madvise((char *)(uintptr_t)file->data + begin, end - begin, MADV_DONTNEED);
}

void model_file_prefetch(const model_file *file, size_t offset, size_t bytes)
{
    if (!file->mapped || offset >= file->size)
        return;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), begin = offset / page * page;
    size_t end = bytes > file->size - offset ? file->size : offset + bytes;
    madvise((char *)(uintptr_t)file->data + begin, end - begin, MADV_WILLNEED); /* only advice: a refusal changes nothing */
}
