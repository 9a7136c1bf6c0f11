#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Short messages live in the fixed buffer, so that running out of memory can still be reported. A long one (a list of
 * missing kernels) is allocated; the thread's next message frees it. */
static _Thread_local char short_message[1024];
static _Thread_local char *long_message;

static void set_message(const char *text)
{
    free(long_message);
    long_message = NULL;
    size_t n = strlen(text);
    if (n >= sizeof short_message)
        long_message = strdup(text);
    if (n >= sizeof short_message)
        n = sizeof short_message - 1;
    memcpy(short_message, text, n);
    short_message[n] = 0;
}

const char *ink_last_error(void) { return long_message ? long_message : short_message; }

static ink_status failure_va(ink_status s, const char *suffix, const char *fmt, va_list ap)
{
    char text[2 * sizeof short_message];
    int n = vsnprintf(text, sizeof text, fmt, ap);
    if (n < 0)
        n = 0;
    if (suffix && (size_t)n < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, ": %s", suffix);
    set_message(text);
    return s;
}

ink_status(failure)(ink_status s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    failure_va(s, NULL, fmt, ap);
    va_end(ap);
    return s;
}

ink_status failure_in(ink_status s, const char *fmt, ...)
{
    char cause[sizeof short_message];
    snprintf(cause, sizeof cause, "%s", ink_last_error());
    va_list ap;
    va_start(ap, fmt);
    failure_va(s, cause, fmt, ap);
    va_end(ap);
    return s;
}

ink_status failure_text(ink_status s, const char *text)
{
    set_message(text);
    return s;
}

const char *ink_status_name(ink_status s)
{
    static const char *const names[] = {
        "ok",           "invalid_argument",   "not_found",           "unimplemented",  "unavailable",
        "out_of_range", "resource_exhausted", "failed_precondition", "missing_kernel", "bad_data",
        "io",           "cancelled"};
    return (unsigned)s < sizeof names / sizeof *names ? names[s] : "unknown";
}
