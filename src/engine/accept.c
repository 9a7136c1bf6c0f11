/* accept.c - what happens to a generated token: end conditions, text, callback, loop guard. */
#include "engine/session_internal.h"
#include "text/repetition.h"

enum { GUARD_INTERVAL = 32 }; /* tokens between two looks of the loop guard */

/* New text since `from` to the caller; false when the caller wants no more. */
static bool deliver(sequence *q, size_t from)
{
    const generation_request *r = &q->request;
    return !r->on_text || q->text.length == from ||
           r->on_text(r->user, strbuf_text(&q->text) + from, q->text.length - from);
}

static ink_status finish(sequence *q, finish_reason reason)
{
    size_t from = q->text.length;
    q->finish = reason;
    TRY(detokenizer_finish(q->decoder, &q->text));
    TRY(strbuf_status(&q->text));
    deliver(q, from);
    return INK_OK;
}

/* Rules 1 and 3 of the reference's repetition truncation, applied while generating. */
static ink_status guard(sequence *q)
{
    size_t keep;
    if (!q->request.loop_guard || q->generated.count % GUARD_INTERVAL)
        return INK_OK;
    TRY(repetition_guard(strbuf_text(&q->text), q->text.length, q->request.loop_min_count, &keep));
    if (keep < q->text.length) {
        strbuf_truncate(&q->text, keep);
        q->looped = true;
        q->finish = FINISH_LENGTH;
    }
    return INK_OK;
}

ink_status accept_token(session *s, sequence *q, int32_t id)
{
    if (session_cancelled(s))
        return finish(q, FINISH_CANCELLED);
    if (paddleocr_vl_is_eos(&s->model->config, id))
        return finish(q, FINISH_STOP);
    size_t from = q->text.length;
    TRY(token_list_add(&q->generated, id));
    TRY(token_list_add(&q->history, id));
    TRY(detokenizer_feed(q->decoder, id, &q->text));
    TRY(strbuf_status(&q->text));
    if (!deliver(q, from))
        return finish(q, FINISH_CANCELLED);
    TRY(guard(q));
    if (q->finish == FINISH_NONE && (int64_t)q->generated.count >= q->request.max_tokens)
        return finish(q, FINISH_LENGTH);
    return INK_OK;
}
