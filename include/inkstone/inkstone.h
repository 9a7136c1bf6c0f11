/* inkstone.h - reading documents with PaddleOCR-VL.
 *
 *     ink_model *model;
 *     ink_session *session;
 *     ink_image *image;
 *     ink_result result;
 *     if (ink_model_load(NULL, NULL, &model) ||               // NULL: the embedded model, default options
 *         ink_session_create(model, NULL, &session) ||
 *         ink_image_load("page.png", &image) ||
 *         ink_read(session, image, NULL, &result))
 *         return fprintf(stderr, "%s\n", ink_last_error()), 1;
 *     puts(result.text);
 *
 * examples/read.c is the whole program.
 *
 * Ownership. What a _load, _create, _decode or _from_ call gave is freed with the _free of its type; a result with
 *   ink_result_free; a returned char * with free(). All _free calls take NULL. A model must outlive its sessions; a session
 *   copies what it needs of images, options and prompts before a call returns.
 * Threads. A model never changes after loading: any number of sessions on any threads may share it. A session belongs to
 *   one thread at a time; only ink_cancel may be called from another (or from a signal handler). An image is only read by
 *   the library, so several threads may pass the same one. ink_last_error is the calling thread's own. A call with a model
 *   of n threads runs on the calling thread and n - 1 helpers.
 * Errors. A failed call leaves its out parameter NULL (a result: empty), and ink_last_error() says what was wrong. A
 *   missing handle or out pointer is INK_INVALID_ARGUMENT, not a crash.
 * Strings are UTF-8 and end with 0. File names are passed to the system as they are.
 * Growth. Options and results hold reserved fields, so that a later version can add fields without a new ABI; take options
 *   from their _DEFAULT, or leave what you do not know at 0: in every field but ink_model_options.dtype 0 means the
 *   default. Enumerations only grow at their ends. */
#ifndef INKSTONE_INKSTONE_H
#define INKSTONE_INKSTONE_H
#include "inkstone/base.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

INK_API const char *ink_version(void); /* "0.1.0" */

/* ---- model ---- */
typedef struct ink_model ink_model;

typedef struct ink_model_options {
    ink_dtype dtype;          /* INK_BF16 (default), INK_F16 or INK_F32: weights and activations of every module ... */
    int threads;              /* 0: all cores this process may use */
    const char *fp32_modules; /* ... except these, comma separated, in F32: visual, mlp_AR, language_model. NULL: none */
    int64_t min_pixels, max_pixels; /* area an image is resized to; 0: the checkpoint's. Sizes the memory plan */
    const char *disable_kernels;  /* registry rows to hide, "op:backend:dtype:name" with wildcards, comma separated; NULL */
    const char *delete_passes;    /* fusion passes to leave out, comma separated, or "all"; NULL */
    const char *assistant_prefix; /* for a chat template that is not recognised; NULL: found in the checkpoint */
    int max_sequences;            /* images decoded together; 0: 16, at most 1024 */
    int reserved_int;
    void *reserved[6];
} ink_model_options;

static inline ink_model_options ink_model_options_default(void)
{
    ink_model_options o;
    memset(&o, 0, sizeof o);
    o.dtype = INK_BF16;
    return o;
}
#define INK_MODEL_OPTIONS_DEFAULT ink_model_options_default()

/* Loads a Hugging Face directory (NULL: the embedded model) and plans it. Weights stay mapped from the file where the
 * file's type is the compute type: replace checkpoints by renaming, never by writing into them. options NULL: defaults.
 * INK_NOT_FOUND, INK_BAD_DATA, INK_UNIMPLEMENTED: the checkpoint (all missing tensors are named at once);
 * INK_MISSING_KERNEL: the message lists every gap. */
INK_API ink_status ink_model_load(const char *directory, const ink_model_options *options, ink_model **out);
INK_API void ink_model_free(ink_model *model);

/* ---- images ---- */
typedef struct ink_image ink_image;
typedef enum ink_pixel_format { INK_GREY, INK_GREY_ALPHA, INK_RGB, INK_RGBA, INK_BGR, INK_BGRA } ink_pixel_format;

/* JPEG, PNG, WebP or TIFF (first page), told apart by content, upright (EXIF), transparency on white. "-" is standard
 * input. Limits: 65500 pixels a side, 200 million pixels, 256 MiB of file (INK_RESOURCE_EXHAUSTED beyond). INK_BAD_DATA:
 * damaged or no image; INK_UNIMPLEMENTED: a kind not decoded here; INK_NOT_FOUND, INK_IO: the file. */
INK_API ink_status ink_image_load(const char *path, ink_image **out);
INK_API ink_status ink_image_decode(const void *data, size_t size, ink_image **out);
/* Copies `height` rows of `width` pixels, 8 bits a channel, rows `stride` bytes apart (0: packed; bytes between rows are
 * never read). The forms with alpha are composited on white, the others taken as they are. INK_INVALID_ARGUMENT for a bad
 * size, stride or format. */
INK_API ink_status ink_image_from_pixels(const void *data, ink_pixel_format format, int width, int height, size_t stride,
                                         ink_image **out);
INK_API int ink_image_width(const ink_image *image); /* upright, in pixels; 0 for NULL */
INK_API int ink_image_height(const ink_image *image);
INK_API void ink_image_free(ink_image *image);

/* ---- reading ---- */
typedef struct ink_session ink_session;

typedef struct ink_session_options {
    int max_tokens_per_sequence; /* prompt and answer of each of max_sequences images: the size of the KV cache, which takes
                                    memory as it fills. 0: enough for the largest image and 8192 tokens of answer */
    bool profile;                /* collect times by kernel, for ink_session_profile */
    void *reserved[6];
} ink_session_options;

static inline ink_session_options ink_session_options_default(void)
{
    ink_session_options o;
    memset(&o, 0, sizeof o);
    return o;
}
#define INK_SESSION_OPTIONS_DEFAULT ink_session_options_default()

INK_API ink_status ink_session_create(const ink_model *model, const ink_session_options *options, ink_session **out);
INK_API void ink_session_free(ink_session *session);

/* Ends the read that is going on in another thread at its next token: it returns INK_OK, its unfinished images with
 * INK_FINISH_CANCELLED and the text so far. Without a read going on it has no effect. */
INK_API void ink_cancel(ink_session *session);

typedef enum ink_task {
    INK_TASK_OCR,
    INK_TASK_TABLE,
    INK_TASK_FORMULA,
    INK_TASK_CHART,
    INK_TASK_SPOTTING,
    INK_TASK_SEAL
} ink_task;
INK_API bool ink_task_parse(const char *name, ink_task *out); /* "ocr", "table", "formula", "chart", "spotting", "seal" */
INK_API const char *ink_task_name(ink_task task);             /* "?" for none of them */

/* A piece of text of image `index` of the call, whole characters only, not terminated. Return false to stop that image
 * (INK_FINISH_CANCELLED). Runs on the thread of the read; it must not use the session, except ink_cancel. */
typedef bool (*ink_text_fn)(void *user, size_t index, const char *text, size_t length);

typedef struct ink_result ink_result;
/* Image `index` is finished (or has failed: result->status). Called once for each image before the read returns,
 * except when the call refuses its arguments. The result is the one in the results array: it may be moved out of it (copied
 * and not freed there). The rules of ink_text_fn hold. */
typedef void (*ink_done_fn)(void *user, size_t index, const ink_result *result);

typedef struct ink_read_options {
    ink_task task;
    int max_tokens;     /* of the answer; 0: the checkpoint's max_new_tokens or 8192, as far as the session allows */
    const char *prompt; /* free text instead of the task's prompt; NULL: the task's */
    int64_t min_pixels, max_pixels; /* of this call, within what the model was loaded for; 0: the model's */
    uint64_t seed;                  /* image i of a call draws from seed + i */
    float temperature;              /* 0: greedy, the reference's way; at most 100 */
    float top_p;                    /* (0, 1]; 0 is taken as 1: all */
    float repetition_penalty;       /* (0, 100]; 0 is taken as 1: none */
    bool loop_guard;                /* stop an answer that repeats itself without end (every 32 tokens looked at); the
                                       result is cut, text that on_text has seen is not called back */
    ink_text_fn on_text;            /* NULL: none */
    ink_done_fn on_done;            /* NULL: none */
    void *user;
    void *reserved[6];
} ink_read_options;

static inline ink_read_options ink_read_options_default(void)
{
    ink_read_options o;
    memset(&o, 0, sizeof o);
    o.top_p = 1;
    o.repetition_penalty = 1;
    return o;
}
#define INK_READ_OPTIONS_DEFAULT ink_read_options_default()

typedef enum ink_finish { INK_FINISH_NONE, INK_FINISH_STOP, INK_FINISH_LENGTH, INK_FINISH_CANCELLED } ink_finish;
INK_API const char *ink_finish_name(ink_finish finish); /* "stop"; "?" for none of them */

/* A text found by the spotting task: its corners in pixels of the image, clockwise from the top left. */
typedef struct ink_polygon {
    char *text;
    float x[4], y[4];
} ink_polygon;

struct ink_result {
    ink_status status; /* of this image; the rest is empty unless INK_OK */
    ink_finish finish;
    char *error; /* message of a failed status; else NULL */
    char *text;  /* as the model wrote it (OTSL for tables); spotting: the texts, a blank line between. Valid UTF-8 */
    size_t text_length;    /* bytes before the terminating 0; a model can write U+0000 too */
    ink_polygon *polygons; /* spotting only */
    size_t polygon_count;
    size_t prompt_tokens, image_tokens, generated_tokens;
    double decode_ms; /* preprocessing: resize and patches */
    double vision_ms, prefill_ms;
    double generate_ms; /* of the steps this image took part in */
    bool looped;        /* the loop guard cut the text; finish is INK_FINISH_LENGTH */
    void *reserved[6];
};

/* Reads one image. *out says what happened also on failure (status, error); free it either way. options NULL: defaults. */
INK_API ink_status ink_read(ink_session *session, const ink_image *image, const ink_read_options *options, ink_result *out);

/* Reads n images, decoding up to the model's max_sequences together; results[i] belongs to images[i], and its text does not
 * depend on the others. A NULL image is that entry's INK_INVALID_ARGUMENT. One image's failure fails only its result; the
 * call itself fails for bad options or when nothing more can be done, and every unfinished result then carries that
 * status. Free each result either way. */
INK_API ink_status ink_read_batch(ink_session *session, const ink_image *const *images, size_t n,
                                  const ink_read_options *options, ink_result *results);
INK_API void ink_result_free(ink_result *result); /* frees what it holds, not the struct, and empties it */

/* Text forms: OTSL to HTML or Markdown (tables), and '|' separated chart text likewise. Other tasks: HTML is the escaped
 * text, Markdown the text with its Markdown-active characters escaped. free() the string; NULL on failure. */
typedef enum ink_format { INK_FORMAT_RAW, INK_FORMAT_HTML, INK_FORMAT_MARKDOWN } ink_format;
INK_API char *ink_format_text(ink_task task, const char *text, size_t length, ink_format format);

/* ---- introspection: free() the string; NULL on failure ---- */
typedef enum ink_report { INK_REPORT_TEXT, INK_REPORT_JSON, INK_REPORT_MARKDOWN /* kernels only */ } ink_report;
INK_API char *ink_session_profile(const ink_session *session, ink_report form); /* kernels by time, of all reads so far */
INK_API char *ink_model_report(const ink_model *model,
                               ink_report form); /* per plan: kernels, FLOPs, bytes; memory by module */
INK_API char *ink_devices_report(ink_report form);
/* Registry rows; a filter that is NULL lets all pass. */
INK_API char *ink_kernels_report(const char *op, const char *backend, const char *dtype, ink_report form);

#ifdef __cplusplus
}
#endif
#endif
