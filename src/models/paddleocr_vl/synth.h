/* synth.h - a PaddleOCR-VL checkpoint with random weights, for benchmarks and comparisons where no trained one is at hand.
 *
 * The directory has the published layout: config.json (nested form), generation_config.json, preprocessor_config.json,
 * chat_template.jinja (1.5 form, prefix "Assistant:\n"), a byte-fallback tokenizer with the special ids of the published
 * one and fillers up to the vocabulary's size, and model.safetensors with every tensor in BF16, the ones inference never
 * reads included.
 *
 * Values are a pure function of (seed, hub tensor name, element index), from integer arithmetic and correctly rounded FP32
 * products: the same bytes on every machine, with any thread count, and for a tensor whatever --layers says.
 *   matrices, embeddings, the convolution filter: N(0, 1/fan_in), fan_in = product of all dimensions but the first
 *   scales of normalisations: uniform in [0.9, 1.1]
 *   biases: normal with standard deviation 0.02
 * "Normal" is the sum of four 16-bit uniforms (rng_normal_bits): symmetric, variance 1, never beyond 3.47 deviations. */
#ifndef MODELS_PADDLEOCR_VL_SYNTH_H
#define MODELS_PADDLEOCR_VL_SYNTH_H
#include "models/paddleocr_vl/tensors.h"

typedef struct synth_options {
    const char *preset; /* NULL: "paddleocr-vl-1.5" */
    uint64_t seed;
    int vision_layers, text_layers; /* 0: the preset's number */
    int threads;                    /* 0: all cores */
    bool force;                     /* write into a directory that is not empty, replacing files of the same names */
    /* Told now and then, always from the calling thread, how many bytes of weights are written; may be NULL. */
    void (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
} synth_options;

/* Names of the presets, NULL-terminated: the published shapes, and "paddleocr-vl-tiny" for tests. */
const char *const *synth_presets(void);

/* The configuration that the written config.json describes. INK_NOT_FOUND lists the presets. */
ink_status synth_config(const synth_options *o, paddleocr_vl_config *out);

/* Writes the directory under a temporary name beside `dir` and renames it. An existing `dir` must be empty unless `force`
 * is set; then the files are renamed into it one by one, config.json last, and other files in it stay. */
ink_status synth_write(const char *dir, const synth_options *o);

/* Elements [first, first + count) of one tensor. */
void synth_fill(uint64_t seed, const paddleocr_vl_tensor *tensor, int64_t first, int64_t count, uint16_t *bf16_out);

/* The text of one small file of the directory, e.g. "tokenizer.json"; NULL after INK_NOT_FOUND for an unknown name. The
 * caller frees it. */
ink_status synth_file_text(const char *name, const paddleocr_vl_config *c, char **text, size_t *size);

/* Names of the small files, NULL-terminated, config.json last. */
const char *const *synth_file_names(void);
#endif
