/* inkstone.h - reading documents with PaddleOCR-VL.
 *
 *     ink_model *model;
 *     ink_session *session;
 *     ink_image *image;
 *     ink_result result;
 *     ink_read_options options = INK_READ_OPTIONS_DEFAULT;
 *     if (ink_model_load(NULL, NULL, &model) ||               // NULL: the embedded model
 *         ink_session_create(model, NULL, &session) ||
 *         ink_image_load("page.png", &image) ||
 *         ink_read(session, image, &options, &result))
 *         return fprintf(stderr, "%s\n", ink_last_error()), 1;
 *     puts(result.text);
 *
 * Threads: a model is immutable after loading and may be shared by any number of sessions on any threads. A session belongs
 * to one thread at a time; only ink_cancel may be called from another. Images and results are plain data.
 * Ownership: the caller frees what a _load, _create or read call gave, with the matching _free; models outlive their sessions.
 * Strings are UTF-8. On failure out parameters are NULL or empty and ink_last_error() says what was wrong. */
#ifndef INKSTONE_INKSTONE_H
#define INKSTONE_INKSTONE_H
#include "inkstone/base.h"

#ifdef __cplusplus
extern "C" {
#endif

INK_API const char *ink_version(void); /* "0.1.0" */

/* ---- model ---- */
typedef struct ink_model ink_model;

typedef struct ink_model_options {
    ink_dtype dtype;              /* INK_BF16 (default), INK_F16 or INK_F32: weights and activations of every module ... */
    const char *fp32_modules;     /* ... except these, comma separated: visual, mlp_AR, language_model. NULL: none */
    int threads;                  /* 0: all cores this process may use */
    int64_t min_pixels, max_pixels; /* area an image is resized to; 0: the checkpoint's. Sizes the memory plan */
    int max_sequences;            /* images decoded together; 0: 16 */
    const char *disable_kernels;  /* registry rows to hide, "op:backend:dtype:name" with wildcards, comma separated; NULL */
    const char *delete_passes;    /* fusion passes to leave out, comma separated, or "all"; NULL */
    const char *assistant_prefix; /* for a chat template that is not recognised; NULL: found in the checkpoint */
} ink_model_options;
#define INK_MODEL_OPTIONS_DEFAULT ((ink_model_options){.dtype = INK_BF16})

/* Loads a Hugging Face directory (NULL: the embedded model) and plans it. Weights stay mapped from the file where the
 * file's type is the compute type. options NULL: defaults. INK_NOT_FOUND, INK_BAD_DATA: the checkpoint; INK_MISSING_KERNEL:
 * the message lists every gap. */
INK_API ink_status ink_model_load(const char *directory, const ink_model_options *options, ink_model **out);
INK_API void ink_model_free(ink_model *model);

/* ---- images ---- */
typedef struct ink_image ink_image;
typedef enum ink_pixel_format { INK_GREY, INK_GREY_ALPHA, INK_RGB, INK_RGBA, INK_BGR, INK_BGRA } ink_pixel_format;

/* JPEG, PNG, WebP or TIFF (first page), told apart by content, upright (EXIF), transparency on white. "-" is standard
 * input. Limits: 65500 pixels a side, 200 million pixels, 256 MiB of file. */
INK_API ink_status ink_image_load(const char *path, ink_image **out);
INK_API ink_status ink_image_decode(const void *data, size_t size, ink_image **out);
/* Copies rows of `stride` bytes (0: packed). The forms with alpha are composited on white, the others taken as they are. */
INK_API ink_status ink_image_from_pixels(const void *data, ink_pixel_format format, int width, int height, size_t stride,
                                         ink_image **out);
INK_API int ink_image_width(const ink_image *image);
INK_API int ink_image_height(const ink_image *image);
INK_API void ink_image_free(ink_image *image);

/* ---- reading ---- */
typedef struct ink_session ink_session;

typedef struct ink_session_options {
    int max_tokens_per_sequence; /* prompt and answer together; 0: enough for the largest image and 8192 tokens */
    bool profile;                /* collect times by kernel, for ink_session_profile */
} ink_session_options;

INK_API ink_status ink_session_create(const ink_model *model, const ink_session_options *options, ink_session **out);
INK_API void ink_session_free(ink_session *session);

/* Stops the read that is going on in another thread; it returns INK_OK with INK_FINISH_CANCELLED and the text so far. */
INK_API void ink_cancel(ink_session *session);

typedef enum ink_task { INK_TASK_OCR, INK_TASK_TABLE, INK_TASK_FORMULA, INK_TASK_CHART, INK_TASK_SPOTTING, INK_TASK_SEAL } ink_task;
INK_API bool ink_task_parse(const char *name, ink_task *out); /* "ocr", "table", "formula", "chart", "spotting", "seal" */
INK_API const char *ink_task_name(ink_task task);

/* A piece of text of image `index` of the call, whole characters only. Return false to stop that image. */
typedef bool (*ink_text_fn)(void *user, size_t index, const char *text, size_t length);

typedef struct ink_result ink_result;
/* Image `index` is finished (or has failed: result->status). The result is the one in the results array. */
typedef void (*ink_done_fn)(void *user, size_t index, const ink_result *result);

typedef struct ink_read_options {
    ink_task task;
    const char *prompt;             /* free text instead of the task's prompt; NULL: the task's */
    int max_tokens;                 /* of the answer; 0: the checkpoint's max_new_tokens or 8192 */
    int64_t min_pixels, max_pixels; /* of this call, within what the model was loaded for; 0: the model's */
    float temperature;              /* 0: greedy, the reference's way */
    float top_p;                    /* (0, 1] */
    float repetition_penalty;       /* 1: none */
    uint64_t seed;                  /* image i of a call draws from seed + i */
    bool loop_guard;                /* stop an answer that repeats itself without end (every 32 tokens looked at) */
    ink_text_fn on_text;            /* NULL: none */
    ink_done_fn on_done;            /* NULL: none */
    void *user;
} ink_read_options;
#define INK_READ_OPTIONS_DEFAULT ((ink_read_options){.top_p = 1, .repetition_penalty = 1})

typedef enum ink_finish { INK_FINISH_NONE, INK_FINISH_STOP, INK_FINISH_LENGTH, INK_FINISH_CANCELLED } ink_finish;
INK_API const char *ink_finish_name(ink_finish finish); /* "stop" */

/* A text found by the spotting task: its corners in pixels of the image, clockwise from the top left. */
typedef struct ink_polygon {
    char *text;
    float x[4], y[4];
} ink_polygon;

struct ink_result {
    ink_status status;   /* of this image; the rest is empty unless INK_OK */
    char *error;         /* message of a failed status; else NULL */
    char *text;          /* as the model wrote it (OTSL for tables); spotting: the texts, a blank line between */
    ink_polygon *polygons; /* spotting only */
    size_t polygon_count;
    ink_finish finish;
    bool looped;         /* the loop guard cut the text; finish is INK_FINISH_LENGTH */
    size_t prompt_tokens, image_tokens, generated_tokens;
    double decode_ms;    /* preprocessing: resize and patches */
    double vision_ms, prefill_ms, generate_ms;
};

/* Reads one image. *out is filled also on failure (status, error); free it either way. */
INK_API ink_status ink_read(ink_session *session, const ink_image *image, const ink_read_options *options, ink_result *out);

/* Reads n images, decoding them together; results[i] belongs to images[i] and does not depend on the others. A NULL image is
 * that entry's INK_INVALID_ARGUMENT. One image's failure fails only its result; the call itself fails for bad options or
 * when nothing more can be done. */
INK_API ink_status ink_read_batch(ink_session *session, const ink_image *const *images, size_t n, const ink_read_options *options,
                                  ink_result *results);
INK_API void ink_result_free(ink_result *result); /* frees what it holds, not the struct */

/* Text forms: OTSL to HTML or Markdown (tables), and '|' separated chart text likewise. Other tasks: HTML is the escaped text,
 * Markdown the text with its Markdown-active characters escaped. free() the string; NULL on failure. */
typedef enum ink_format { INK_FORMAT_RAW, INK_FORMAT_HTML, INK_FORMAT_MARKDOWN } ink_format;
INK_API char *ink_format_text(ink_task task, const char *text, ink_format format);

/* ---- introspection: free() the string; NULL on failure ---- */
INK_API char *ink_session_profile(const ink_session *session, bool json); /* table or JSON of all reads so far */
INK_API char *ink_model_report(const ink_model *model, bool json); /* per plan: kernels, FLOPs, bytes; memory by module */
INK_API char *ink_devices_report(bool json);
INK_API char *ink_kernels_report(const char *op, const char *backend, const char *dtype, ink_format format, bool json);

#ifdef __cplusplus
}
#endif
#endif
