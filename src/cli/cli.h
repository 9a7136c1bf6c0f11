/* cli.h - what the commands share. A command gets its own arguments (argv[0] is its name) and returns the exit code:
 * 0 done, 1 something failed, 2 wrong usage. */
#ifndef CLI_CLI_H
#define CLI_CLI_H
#include "inkstone/inkstone.h"

#include <getopt.h>
#include <stdio.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

int command_read(int argc, char **argv);
int command_check(int argc, char **argv);
int command_kernels(int argc, char **argv);
int command_devices(int argc, char **argv);
int command_selftest(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_synth(int argc, char **argv);

/* "inkstone: message" (ink_last_error() when fmt is NULL) on stderr; returns EXIT_FAILED. */
int complain(const char *fmt, ...) INK_PRINTF(1, 2);
/* The same with a pointer to --help; returns EXIT_USAGE. */
int usage_error(const char *command, const char *fmt, ...) INK_PRINTF(2, 3);

/* getopt_long that answers -h and --help with `help` on stdout and everything wrong with a message (a long option may be
 * cut short while it stays unique, "--" ends the options). argv[0] is "inkstone COMMAND". */
enum { OPTION_END = -1, OPTION_HELP = -2, OPTION_BAD = -3 };
int next_option(int argc, char **argv, const char *short_options, const struct option *options, const char *help);
/* Exit code of a command whose options ended with `code`, one of the last two. */
int option_exit(int code);

/* Numbers from arguments: the whole text must be one, within the range; otherwise a usage error is printed and false
 * returned. */
bool parse_int(const char *command, const char *option, const char *text, int64_t lo, int64_t hi, int64_t *out);
bool parse_float(const char *command, const char *option, const char *text, double lo, double hi, float *out);

/* Output to a file that appears complete or not at all: a temporary name beside it, renamed by output_close. An existing
 * file keeps its permissions, a symbolic link stays one. path NULL or "-": stdout; a device or pipe is written directly. */
typedef struct output {
    FILE *file;
    char *path, *temporary; /* temporary NULL: written directly */
} output;
bool output_open(output *o, const char *path); /* false: the error is set (ink_last_error) */
bool output_close(output *o, bool keep);       /* flushes; with keep false a file is discarded. false: the error is set */

/* Writes `text` (a report, freed; NULL: the error is set) to stdout; the exit code. */
int print_report(char *text);

/* Model options that several commands take: --model --dtype --threads --fp32-modules --min-pixels --max-pixels --disable
 * --delete-pass --assistant-prefix. */
typedef struct model_arguments {
    const char *directory;
    ink_model_options options;
} model_arguments;
#define MODEL_LONG_OPTIONS                                                                            \
    {"model", required_argument, NULL, 1000}, {"dtype", required_argument, NULL, 1001},               \
        {"threads", required_argument, NULL, 1002}, {"fp32-modules", required_argument, NULL, 1003},  \
        {"min-pixels", required_argument, NULL, 1004}, {"max-pixels", required_argument, NULL, 1005}, \
        {"disable", required_argument, NULL, 1006}, {"delete-pass", required_argument, NULL, 1007},   \
    {                                                                                                 \
        "assistant-prefix", required_argument, NULL, 1008                                             \
    }
#define MODEL_HELP                                                                                 \
    "  --model DIR              checkpoint directory (default: the embedded mini model)\n"         \
    "  --dtype bf16|f16|f32     compute type of all modules (default bf16)\n"                      \
    "  --fp32-modules LIST      modules kept in f32: visual, mlp_AR, language_model\n"             \
    "  --threads N              threads (default: all cores)\n"                                    \
    "  --min-pixels N, --max-pixels N   area an image is resized to (default: the checkpoint's)\n" \
    "  --disable PATTERNS       hide kernels: op:backend:dtype:name, '*' and '?' match\n"          \
    "  --delete-pass LIST       leave out fusion passes, by name or 'all'\n"                       \
    "  --assistant-prefix TEXT  generation prefix for a chat template that is not recognised\n"
/* Takes option `code`, one of them; false after a usage error. */
bool model_argument(const char *command, int code, const char *value, model_arguments *m);
#endif
