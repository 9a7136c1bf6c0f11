#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    ink_log_fn fn;
    void *user;
    ink_log_level level;
    bool configured;
} sink;

void ink_set_log(ink_log_level level, ink_log_fn fn, void *user)
{
    sink.fn = fn;
    sink.user = user;
    sink.level = level;
    sink.configured = true;
}

static int level_from_environment(void)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    const char *e = getenv("INK_LOG");
    for (int i = 0; e && i < 4; i++)
        if (!strcmp(e, names[i]))
            return i;
    return -1;
}

void log_line(ink_log_level level, const char *fmt, ...)
{
    char line[1024];
    int limit = sink.configured ? (sink.fn ? (int)sink.level : -1) : level_from_environment();
    if ((int)level > limit)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (sink.fn)
        sink.fn(sink.user, level, line);
    else
        fprintf(stderr, "inkstone: %s\n", line);
}
