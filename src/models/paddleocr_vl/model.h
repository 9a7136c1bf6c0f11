/* model.h - a loaded PaddleOCR-VL: checkpoint, weights in their compute types, and the four plans. Immutable after load;
 * any number of sessions may share one. */
#ifndef MODELS_PADDLEOCR_VL_MODEL_H
#define MODELS_PADDLEOCR_VL_MODEL_H
#include "graph/plan.h"
#include "models/paddleocr_vl/graphs.h"
#include "text/tokenizer.h"

typedef enum vl_plan { VL_VISION, VL_PROJECTOR, VL_PREFILL, VL_DECODE, VL_PLANS } vl_plan;
const char *vl_plan_name(vl_plan p); /* "vision" */

typedef struct vl_model_options {
    const char *directory;          /* NULL: the embedded model */
    ink_dtype dtype;                /* INK_BF16, INK_F16 or INK_F32, for all modules not in fp32_modules */
    const char *fp32_modules;       /* "visual,mlp_AR,language_model" or a part; NULL: none */
    int threads;                    /* 0: all cores */
    const char *disable;            /* registry rows to hide, see device_open_cpu */
    const char *delete_passes;      /* fusion passes to switch off, see plan_options */
    int64_t min_pixels, max_pixels; /* of one resized image; 0: the checkpoint's. They set the plans' upper bounds */
    int max_sequences;              /* decoded together; 0: 16 */
    const char *assistant_prefix;   /* overrides the one of the chat template; NULL: as text/prompt.h finds it */
    bool taps;                      /* keep the golden activations, for tests */
} vl_model_options;

typedef struct vl_memory {
    size_t weights[3];   /* bytes of visual, mlp_AR, language_model in their compute types */
    size_t converted[3]; /* of those, bytes that had to be converted to another type at load (not in the file's mapping) */
} vl_memory;

typedef struct vl_model {
    char *label; /* directory, or "embedded mini model" */
    model_files files;
    safetensors *st;
    paddleocr_vl_config config;
    paddleocr_vl_weights weights;
    tokenizer *tokens;
    char *assistant_prefix;
    ink_dtype dtypes[3]; /* of visual, mlp_AR, language_model */
    vl_memory memory;
    void **converted; /* owned */
    size_t n_converted;
    device dev;
    int64_t bounds[DIM_SYMBOLS];
    plan *plans[VL_PLANS];
} vl_model;

/* Loads and plans. On failure ink_last_error says which file, field, tensors or kernels, and *out is NULL. */
ink_status vl_model_load(const vl_model_options *o, vl_model **out);
void vl_model_free(vl_model *m);
#endif
