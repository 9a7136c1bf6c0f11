/* prompt.h - the chat prompt of PaddleOCR-VL as token ids, and the tasks it was trained on.
 *
 * One user turn reads (images first, whatever their place in the request):
 *
 *     <|begin_of_sentence|>User: [<|IMAGE_START|><|IMAGE_PLACEHOLDER|>×N<|IMAGE_END|>]*TEXT\nPREFIX
 *
 * PREFIX is "Assistant: " in version 1.0 and "Assistant:\n" in 1.5 and 1.6; earlier answers are PREFIX TEXT </s>, system
 * text is TEXT\n. The text between two special tokens is tokenised as one span, as the reference does. */
#ifndef TEXT_PROMPT_H
#define TEXT_PROMPT_H
#include "text/tokenizer.h"

/* ---- tasks ---- */
typedef struct prompt_task {
    const char *name;        /* "ocr", as on the command line */
    const char *prompt;      /* "OCR:", exactly */
    const char *since;       /* first model version that knows it: "1.0" or "1.5" */
    size_t repetition_count; /* shortest text, in code points, that repetition rules look at (repetition.h) */
    bool keeps_special;      /* decode with special tokens: the answer is made of them */
} prompt_task;

#define PROMPT_TASKS 6
extern const prompt_task prompt_tasks[PROMPT_TASKS];
const prompt_task *prompt_task_find(const char *name); /* NULL: unknown */

/* ---- the generation prefix ---- */

/* The prefix of a model directory, in *out (free it). `override` wins when not NULL. Otherwise the published templates
 * are recognised by the literal they hold, in chat_template.jinja or else in "chat_template" of tokenizer_config.json (a
 * string, or a list of named templates); pass NULL for a file that is not there. No template at all gives the form of
 * 1.5. INK_UNIMPLEMENTED for any other template; the message names --assistant-prefix. */
ink_status prompt_find_prefix(const char *jinja, size_t jinja_length, const char *config, size_t config_length,
                              const char *override, char **out);

/* ---- building ---- */
typedef enum prompt_role { PROMPT_USER, PROMPT_ASSISTANT, PROMPT_SYSTEM } prompt_role;
bool prompt_role_find(const char *name, prompt_role *out); /* "user", "assistant", "system" */

typedef struct prompt_message {
    prompt_role role;
    const char *text; /* all text parts, one after the other */
    size_t length;
    size_t images; /* how many images the message has; only the user's may have any */
} prompt_message;

/* Where the placeholders of one image are in the ids. */
typedef struct prompt_image {
    size_t first, count;
} prompt_image;

/* Start with {0}; free with prompt_free. */
typedef struct prompt {
    token_list ids;
    prompt_image *images;
    size_t image_count, image_capacity;
} prompt;

/* Builds the ids for `messages`, ending with the prefix. image_tokens[i] is the number of placeholders (> 0) of image i,
 * counted over all messages in order. Literal special tokens in texts stay text: the number and place of the special ids
 * depends on the messages' structure alone. INK_INVALID_ARGUMENT if the counts of images disagree (both are named), or for
 * no messages; INK_BAD_DATA if the tokenizer lacks a token the prompt needs. On failure *out is empty. */
ink_status prompt_build(const tokenizer *t, const char *prefix, const prompt_message *messages, size_t message_count,
                        const size_t *image_tokens, size_t image_count, prompt *out);
void prompt_free(prompt *p);
#endif
