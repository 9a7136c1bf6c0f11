/* files.h - where a checkpoint's files come from: a directory, or a table of files embedded in the program.
 *
 * Files are read-only and never copied: a directory's file is mapped (MAP_PRIVATE, PROT_READ), an embedded one is used
 * where the linker put it. Mapping touches no page, so a checkpoint of any size opens in well under a millisecond; pages
 * come in as kernels read them. The size is taken once, when the file is opened, and every parser checks against it. A
 * file that another process shortens *while* it is mapped raises SIGBUS on access, as with every mmap user: replace
 * checkpoints by renaming, not by writing into them. */
#ifndef FORMATS_FILES_H
#define FORMATS_FILES_H
#include "core/status.h"

typedef struct embedded_file {
    const char *name;                 /* "config.json" */
    const unsigned char *begin, *end; /* an end rather than a size: link-time addresses make constant tables */
} embedded_file;

/* A source of files. Free with model_files_close; opened files stay valid after it. */
typedef struct model_files {
    char *place;                /* the directory's path, or what to call the table in messages; owned */
    const embedded_file *table; /* NULL for a directory; borrowed */
    size_t table_count;
} model_files;

/* One read-only file. `data` is page-aligned when mapped. Close with model_file_close. */
typedef struct model_file {
    const void *data; /* never NULL, not even for an empty file */
    size_t size;
    char *label; /* for messages: "dir/config.json"; owned */
    bool mapped;
} model_file;

/* `path` names a directory (UTF-8, as the system takes it). INK_NOT_FOUND if there is none, INK_INVALID_ARGUMENT if it
 * is something else, e.g. the safetensors file inside. */
ink_status model_files_open_directory(const char *path, model_files *out);

/* `table` is borrowed and must outlive every file opened from it. */
ink_status model_files_open_table(const char *label, const embedded_file *table, size_t count, model_files *out);
void model_files_close(model_files *files);

/* Is there a readable entry of that name? */
bool model_files_has(const model_files *files, const char *name);

/* Opens the file `name` (no '/' and no ".." in it). INK_NOT_FOUND names the path that was tried; INK_IO carries the
 * system's reason; INK_BAD_DATA if it is no regular file. */
ink_status model_file_open(const model_files *files, const char *name, model_file *out);

/* The same for one path of its own. */
ink_status model_file_open_path(const char *path, model_file *out);
void model_file_close(model_file *file);

/* Asks the system to start reading a range from disk; returns at once and cannot fail. For large ranges right before
 * they are used; nothing here calls it on its own. */
void model_file_prefetch(const model_file *file, size_t offset, size_t bytes);

/* Lets the system take back the memory of a range that will hardly be read again; reading it again reads the file. */
void model_file_release(const model_file *file, size_t offset, size_t bytes);

/* A name that stays inside its directory: not empty, no '/', no '\', not "." or "..", no control character. */
bool file_name_is_plain(const char *name);
#endif
