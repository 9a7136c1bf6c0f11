/* tokenizer_normalize.c - the normalizer section: what happens to text before it is cut into words. */
#include "text/tokenizer_impl.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <utf8proc.h>

static ink_status unicode_form(const strbuf *text, int options, strbuf *out)
{
    utf8proc_uint8_t *form = NULL;
    utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)strbuf_text(text), (utf8proc_ssize_t)text->length, &form,
                                      (utf8proc_option_t)options);
    if (n < 0)
        return failure(n == UTF8PROC_ERROR_NOMEM ? INK_RESOURCE_EXHAUSTED : INK_BAD_DATA, "Unicode normalisation: %s",
                       utf8proc_errmsg(n));
    strbuf_add(out, (const char *)form, (size_t)n);
    free(form);
    return INK_OK;
}

ink_status normalizer_apply(const normalizer_step *steps, size_t n, strbuf *text, strbuf *spare)
{
    for (size_t i = 0; i < n && text->length > 0; i++) {
        const normalizer_step *s = &steps[i];
        strbuf_truncate(spare, 0);
        if (s->kind == NORMALIZER_REPLACE) {
            add_replaced(spare, text->text, text->length, s->pattern, s->pattern_length, s->content, s->content_length);
        } else if (s->kind == NORMALIZER_PREPEND) {
            strbuf_add(spare, s->content, s->content_length);
            strbuf_add(spare, text->text, text->length);
        } else {
            TRY(unicode_form(text, s->unicode, spare));
        }
        TRY(strbuf_status(spare));
        strbuf swap = *text;
        *text = *spare;
        *spare = swap;
    }
    return INK_OK;
}
