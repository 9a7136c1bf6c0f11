#include "formats/embedded.h"

#ifdef INK_EMBED_DIR

/* The assembler copies each file into read-only data, 64-byte aligned: no array in C source, no copy at run time. */
#define EMBED(symbol, name)                                                                                   \
    __asm__(".pushsection .rodata\n"                                                                          \
            ".balign 64\n"                                                                                    \
            ".global embedded_" #symbol "\n.hidden embedded_" #symbol "\nembedded_" #symbol ":\n"             \
            ".incbin \"" INK_EMBED_DIR "/" name "\"\n"                                                        \
            ".global embedded_" #symbol "_end\n.hidden embedded_" #symbol "_end\nembedded_" #symbol "_end:\n" \
            ".byte 0\n" /* so that no file's end is the next one's beginning */                               \
            ".popsection\n");                                                                                 \
    extern const unsigned char embedded_##symbol[], embedded_##symbol##_end[];

/* Keep in step with INK_EMBEDDED_FILES in src/CMakeLists.txt, which rebuilds this file when one of them changes. */
EMBED(config, "config.json")
EMBED(generation_config, "generation_config.json")
EMBED(preprocessor_config, "preprocessor_config.json")
EMBED(processor_config, "processor_config.json")
EMBED(tokenizer, "tokenizer.json")
EMBED(tokenizer_config, "tokenizer_config.json")
EMBED(special_tokens_map, "special_tokens_map.json")
EMBED(chat_template, "chat_template.jinja")
EMBED(model, "model.safetensors")

static const embedded_file table[] = {
    {"config.json", embedded_config, embedded_config_end},
    {"generation_config.json", embedded_generation_config, embedded_generation_config_end},
    {"preprocessor_config.json", embedded_preprocessor_config, embedded_preprocessor_config_end},
    {"processor_config.json", embedded_processor_config, embedded_processor_config_end},
    {"tokenizer.json", embedded_tokenizer, embedded_tokenizer_end},
    {"tokenizer_config.json", embedded_tokenizer_config, embedded_tokenizer_config_end},
    {"special_tokens_map.json", embedded_special_tokens_map, embedded_special_tokens_map_end},
    {"chat_template.jinja", embedded_chat_template, embedded_chat_template_end},
    {"model.safetensors", embedded_model, embedded_model_end},
};

bool embedded_model_present(void) { return true; }

ink_status embedded_model_files(model_files *out)
{
    return model_files_open_table("(embedded model)", table, sizeof table / sizeof *table, out);
}

#else

bool embedded_model_present(void) { return false; }

ink_status embedded_model_files(model_files *out)
{
    *out = (model_files){0};
    return failure(INK_NOT_FOUND,
                   "this build has no embedded model (INK_EMBED_MODEL=OFF); give a model directory, e.g. --model DIR");
}

#endif
