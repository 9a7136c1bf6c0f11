/* base.h - what both halves of Inkstone share: status codes, data types, tensors, logging.
 *
 * Include inkstone.h rather than this file. */
#ifndef INKSTONE_BASE_H
#define INKSTONE_BASE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define INK_API __attribute__((visibility("default")))
#define INK_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define INK_API
#define INK_PRINTF(fmt, first)
#endif

/* ---- status ----
 * Every call that can fail returns one of these; ink_last_error() then holds one line that names the op or file, the
 * offending value and what was expected. The numbers are stable. */
typedef enum ink_status {
    INK_OK = 0,
    INK_INVALID_ARGUMENT = 1,    /* the caller's value cannot be right */
    INK_NOT_FOUND = 2,           /* no such file, tensor, op or device */
    INK_UNIMPLEMENTED = 3,       /* valid, but this build cannot do it */
    INK_UNAVAILABLE = 4,         /* the device or driver is not usable now */
    INK_OUT_OF_RANGE = 5,        /* an index or id outside its table */
    INK_RESOURCE_EXHAUSTED = 6,  /* memory, KV blocks or a configured limit */
    INK_FAILED_PRECONDITION = 7, /* right call, wrong state */
    INK_MISSING_KERNEL = 8,      /* the registry has no row for the key; the message lists what exists */
    INK_BAD_DATA = 9,            /* a file or stream is damaged or lies about itself */
    INK_IO = 10,                 /* the operating system refused a read or write */
    INK_CANCELLED = 11,          /* stopped by the caller */
} ink_status;

/* Stable name of a status for programs, e.g. "invalid_argument"; "unknown" for a number outside the enumeration. Static. */
INK_API const char *ink_status_name(ink_status s);

/* Message of the last failed call on this thread; "" if none. Valid until the next failing call on the thread. */
INK_API const char *ink_last_error(void);

/* ---- log ---- */
typedef enum ink_log_level { INK_LOG_ERROR, INK_LOG_WARN, INK_LOG_INFO, INK_LOG_DEBUG } ink_log_level;
typedef void (*ink_log_fn)(void *user, ink_log_level level, const char *line);

/* Sends log lines of `level` and above in importance to `fn` (NULL: drop them, the default). Not thread-safe: call it
 * before other calls. INK_LOG=error|warn|info|debug in the environment sends lines to stderr when no `fn` is set. */
INK_API void ink_set_log(ink_log_level level, ink_log_fn fn, void *user);

/* ---- data types ---- */
typedef enum ink_dtype {
    INK_F32,
    INK_F16,
    INK_BF16,
    INK_F64,
    INK_I32,
    INK_I64,
    INK_U8,
    INK_BOOL,
    INK_DTYPE_COUNT
} ink_dtype;

INK_API size_t ink_dtype_size(ink_dtype t);      /* bytes of one element */
INK_API const char *ink_dtype_name(ink_dtype t); /* "bf16" */
INK_API bool ink_dtype_parse(const char *name, ink_dtype *out);

/* ---- tensors ---- */
#define INK_MAX_RANK 6

typedef enum ink_layout { INK_LAYOUT_ANY, INK_NCHW, INK_NHWC, INK_NCDHW, INK_NDHWC, INK_LAYOUT_COUNT } ink_layout;
typedef enum ink_backend { INK_CPU, INK_HIP, INK_CUDA, INK_BACKEND_COUNT } ink_backend;

INK_API const char *ink_layout_name(ink_layout l);   /* "nhwc"; "any" */
INK_API const char *ink_backend_name(ink_backend b); /* "cpu" */

/* A view of memory. Whoever allocated `data` owns it; a tensor never frees. dims[0] is the slowest axis of a contiguous
 * tensor; strides count elements, not bytes. */
typedef struct ink_tensor {
    ink_dtype dtype;
    int rank;
    int64_t dims[INK_MAX_RANK];
    int64_t strides[INK_MAX_RANK];
    ink_layout layout; /* meaning of the axes for convolution and pooling; INK_LAYOUT_ANY elsewhere */
    ink_backend backend;
    void *data;
} ink_tensor;

/* A contiguous tensor on the CPU over `data` (may be NULL for a shape only). INK_INVALID_ARGUMENT for a bad rank, a
 * negative dimension or a size that does not fit 63 bits. */
INK_API ink_status ink_tensor_init(ink_tensor *t, ink_dtype dtype, int rank, const int64_t *dims, void *data);
INK_API int64_t ink_tensor_numel(const ink_tensor *t);
INK_API size_t ink_tensor_bytes(const ink_tensor *t); /* numel times element size */
INK_API bool ink_tensor_is_contiguous(const ink_tensor *t);

#ifdef __cplusplus
}
#endif
#endif
