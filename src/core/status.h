/* status.h - how a function fails: `return failure(INK_BAD_DATA, "...", ...)`. */
#ifndef CORE_STATUS_H
#define CORE_STATUS_H
#include "inkstone/base.h"

/* Sets this thread's message and returns `s`. Names the op or file, the value and what was expected. */
ink_status failure(ink_status s, const char *fmt, ...) INK_PRINTF(2, 3);
#ifdef __clang_analyzer__ /* which cannot see that it returns what it is given */
#define failure(s, ...) (failure(s, __VA_ARGS__), (s))
#endif

/* Puts `prefix: ` in front of this thread's message (e.g. the file being read) and returns `s`. */
ink_status failure_in(ink_status s, const char *fmt, ...) INK_PRINTF(2, 3);

/* Sets the message to one of any length (a list of missing kernels) and returns `s`. The text is copied. */
ink_status failure_text(ink_status s, const char *text);

#define TRY(expr)                        \
    do {                                 \
        ink_status try_status_ = (expr); \
        if (try_status_ != INK_OK)       \
            return try_status_;          \
    } while (0)
#endif
