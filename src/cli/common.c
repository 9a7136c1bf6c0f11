#define _GNU_SOURCE
#include "cli/cli.h"

#include "core/status.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int complain(const char *fmt, ...)
{
    fputs("inkstone: ", stderr);
    if (fmt) {
        va_list ap;
        va_start(ap, fmt);
        vfprintf(stderr, fmt, ap);
        va_end(ap);
    } else
        fputs(ink_last_error(), stderr);
    fputc('\n', stderr);
    return EXIT_FAILED;
}

int usage_error(const char *command, const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "inkstone %s: ", command);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\nSee `inkstone %s --help`.\n", command);
    return EXIT_USAGE;
}

bool parse_int(const char *command, const char *option, const char *text, int64_t lo, int64_t hi, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || end == text || *end || v < lo || v > hi) {
        usage_error(command, "%s: '%s' is not a whole number from %lld to %lld", option, text, (long long)lo, (long long)hi);
        return false;
    }
    *out = v;
    return true;
}

bool parse_float(const char *command, const char *option, const char *text, double lo, double hi, float *out)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !(v >= lo && v <= hi)) {
        usage_error(command, "%s: '%s' is not a number from %g to %g", option, text, lo, hi);
        return false;
    }
    *out = (float)v;
    return true;
}

/* ---- output ---- */

bool output_open(output *o, const char *path)
{
    *o = (output){.file = stdout};
    if (!path || !strcmp(path, "-"))
        return true;
    o->path = strdup(path);
    if (!o->path || asprintf(&o->temporary, "%s.XXXXXX", path) < 0) {
        failure(INK_RESOURCE_EXHAUSTED, "out of memory");
        return false;
    }
    int fd = mkstemp(o->temporary);
    mode_t mask = umask(0);
    umask(mask);
    o->file = fd >= 0 && fchmod(fd, 0666 & ~mask) == 0 ? fdopen(fd, "w") : NULL;
    if (o->file)
        return true;
    failure(INK_IO, "%s: cannot create: %s", path, strerror(errno));
    if (fd >= 0) {
        close(fd);
        unlink(o->temporary);
    }
    free(o->path);
    free(o->temporary);
    *o = (output){0};
    return false;
}

bool output_close(output *o, bool keep)
{
    if (!o->file)
        return true;
    bool ok = !ferror(o->file) && fflush(o->file) == 0;
    if (!o->path) {
        if (!ok)
            failure(INK_IO, "cannot write to standard output: %s", strerror(errno));
        return ok;
    }
    ok &= fsync(fileno(o->file)) == 0 || errno == EINVAL || errno == EROFS;
    ok = fclose(o->file) == 0 && ok;
    if (ok && keep)
        ok = rename(o->temporary, o->path) == 0;
    if (!ok)
        failure(INK_IO, "%s: cannot write: %s", o->path, strerror(errno));
    if (!ok || !keep)
        unlink(o->temporary);
    free(o->path);
    free(o->temporary);
    *o = (output){0};
    return ok;
}

/* ---- model arguments ---- */

bool model_argument(const char *command, int code, const char *value, model_arguments *m, bool *bad)
{
    int64_t n = 0;
    switch (code) {
    case 1000: m->directory = value; return true;
    case 1001:
        if (!ink_dtype_parse(value, &m->options.dtype) ||
            (m->options.dtype != INK_BF16 && m->options.dtype != INK_F16 && m->options.dtype != INK_F32)) {
            usage_error(command, "--dtype: '%s', expected bf16, f16 or f32", value);
            *bad = true;
        }
        return true;
    case 1002:
        *bad |= !parse_int(command, "--threads", value, 1, 1024, &n);
        m->options.threads = (int)n;
        return true;
    case 1003: m->options.fp32_modules = value; return true;
    case 1004: *bad |= !parse_int(command, "--min-pixels", value, 1, 1000000000, &m->options.min_pixels); return true;
    case 1005: *bad |= !parse_int(command, "--max-pixels", value, 1, 1000000000, &m->options.max_pixels); return true;
    case 1006: m->options.disable_kernels = value; return true;
    case 1007: m->options.delete_passes = value; return true;
    case 1008: m->options.assistant_prefix = value; return true;
    default: return false;
    }
}
