#define _GNU_SOURCE
#include "cli/cli.h"

#include "core/status.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio_ext.h>
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

int next_option(int argc, char **argv, const char *short_options, const struct option *options, const char *help)
{
    int code = getopt_long(argc, argv, short_options, options, NULL);
    if (code == 'h') {
        fputs(help, stdout);
        return OPTION_HELP;
    }
    if (code == '?') {
        fprintf(stderr, "See `%s --help`.\n", argv[0]);
        return OPTION_BAD;
    }
    return code;
}

int option_exit(int code) { return code == OPTION_HELP ? EXIT_OK : EXIT_USAGE; }

bool parse_int(const char *command, const char *option, const char *text, int64_t lo, int64_t hi, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || end == text || *end || v < lo || v > hi) {
        usage_error(command, "%s: '%s' is not a whole number from %lld to %lld", option, text, (long long)lo,
                    (long long)hi);
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

static void output_forget(output *o)
{
    free(o->path);
    free(o->temporary);
    *o = (output){0};
}

/* Not a regular file: nothing to rename over, the bytes go there. */
static bool open_directly(output *o, const char *path)
{
    if ((o->file = fopen(path, "w")))
        return true;
    failure(INK_IO, "%s: cannot write: %s", path, strerror(errno));
    return false;
}

static bool open_temporary(output *o, mode_t mode)
{
    int fd = mkstemp(o->temporary);
    if (fd >= 0 && fchmod(fd, mode) == 0 && (o->file = fdopen(fd, "w")))
        return true;
    failure(INK_IO, "%s: cannot create: %s", o->path, strerror(errno));
    if (fd >= 0) {
        close(fd);
        unlink(o->temporary);
    }
    return false;
}

bool output_open(output *o, const char *path)
{
    struct stat st;
    mode_t mask = umask(0), mode = 0666 & ~mask;
    umask(mask);
    *o = (output){.file = stdout};
    if (!path || !strcmp(path, "-"))
        return true;
    o->file = NULL;
    bool exists = stat(path, &st) == 0, direct = exists && !S_ISREG(st.st_mode);
    if (exists && !direct) {
        mode = st.st_mode & 07777;
        if (access(path, W_OK) != 0) {
            failure(INK_IO, "%s: cannot write: %s", path, strerror(errno));
            return false;
        }
    }
    o->path = exists ? realpath(path, NULL) : strdup(path);
    if (!o->path || (!direct && asprintf(&o->temporary, "%s.XXXXXX", o->path) < 0)) {
        o->temporary = NULL;
        failure(INK_IO, "%s: cannot write: %s", path, strerror(errno));
        output_forget(o);
        return false;
    }
    bool ok = direct ? open_directly(o, path) : open_temporary(o, mode);
    if (!ok)
        output_forget(o);
    return ok;
}

/* What could not be written has been told, here or by the caller: main must not find it again. */
static bool close_stdout(output *o, bool keep)
{
    bool ok = !keep || (fflush(stdout) == 0 && !ferror(stdout));
    if (!ok)
        failure(INK_IO, "cannot write to standard output: %s", strerror(errno));
    if (!ok || !keep) {
        __fpurge(stdout);
        clearerr(stdout);
    }
    output_forget(o);
    return ok;
}

bool output_close(output *o, bool keep)
{
    if (!o->file)
        return true;
    if (o->file == stdout)
        return close_stdout(o, keep);
    errno = 0;
    bool ok = fflush(o->file) == 0 && !ferror(o->file);
    if (ok && keep && o->temporary)
        ok = fsync(fileno(o->file)) == 0;
    ok = fclose(o->file) == 0 && ok;
    if (ok && keep && o->temporary)
        ok = rename(o->temporary, o->path) == 0;
    if (keep && !ok)
        failure(INK_IO, "%s: cannot write: %s", o->path, errno ? strerror(errno) : "an earlier write failed");
    if (o->temporary && (!ok || !keep))
        unlink(o->temporary);
    output_forget(o);
    return ok || !keep;
}

int print_report(char *text)
{
    output o;
    if (!text)
        return complain(NULL);
    output_open(&o, NULL);
    fputs(text, o.file);
    free(text);
    return output_close(&o, true) ? EXIT_OK : complain(NULL);
}

/* ---- model arguments ---- */

static bool parse_dtype(const char *command, const char *value, ink_dtype *out)
{
    if (ink_dtype_parse(value, out) && (*out == INK_BF16 || *out == INK_F16 || *out == INK_F32))
        return true;
    usage_error(command, "--dtype: '%s', expected bf16, f16 or f32", value);
    return false;
}

/* Copies text with \n, \t and \\ as the characters they mean; false for another escape or too long a text. */
static bool unescape(const char *text, char *out, size_t size)
{
    size_t n = 0;
    for (; *text; text++) {
        char c = *text;
        if (c == '\\') {
            text++;
            c = *text == 'n' ? '\n' : *text == 't' ? '\t' : *text == '\\' ? '\\' : 0;
            if (!c)
                return false;
        }
        if (n + 1 >= size)
            return false;
        out[n++] = c;
    }
    out[n] = 0;
    return true;
}

static bool parse_prefix(const char *command, const char *value, const char **out)
{
    static char prefix[256]; /* lives as long as the program, like the argument it was */
    if (!unescape(value, prefix, sizeof prefix)) {
        usage_error(command, "--assistant-prefix: '%s', expected at most 255 characters, with \\n for a line feed", value);
        return false;
    }
    *out = prefix;
    return true;
}

bool model_argument(const char *command, int code, const char *value, model_arguments *m)
{
    int64_t n = 0;
    switch (code) {
    case 1000: m->directory = value; return true;
    case 1001: return parse_dtype(command, value, &m->options.dtype);
    case 1002:
        if (!parse_int(command, "--threads", value, 1, 1024, &n))
            return false;
        m->options.threads = (int)n;
        return true;
    case 1003: m->options.fp32_modules = value; return true;
    case 1004: return parse_int(command, "--min-pixels", value, 1, 1000000000, &m->options.min_pixels);
    case 1005: return parse_int(command, "--max-pixels", value, 1, 1000000000, &m->options.max_pixels);
    case 1006: m->options.disable_kernels = value; return true;
    case 1007: m->options.delete_passes = value; return true;
    default: return parse_prefix(command, value, &m->options.assistant_prefix);
    }
}
