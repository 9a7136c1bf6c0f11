/* synth_internal.h - the parts of the synthetic checkpoint's text files. */
#ifndef MODELS_PADDLEOCR_VL_SYNTH_INTERNAL_H
#define MODELS_PADDLEOCR_VL_SYNTH_INTERNAL_H
#include "core/strbuf.h"
#include "models/paddleocr_vl/config.h"

/* Each appends one file's text. A failed append is remembered by the buffer. */
void synth_put_tokenizer(strbuf *b, const paddleocr_vl_config *c);          /* tokenizer.json */
void synth_put_tokenizer_config(strbuf *b, const paddleocr_vl_config *c);   /* tokenizer_config.json */
void synth_put_special_tokens_map(strbuf *b, const paddleocr_vl_config *c); /* special_tokens_map.json */
#endif
