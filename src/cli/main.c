#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
} commands[] = {
    {"read", command_read, "text of images"},
    {"check", command_check, "does a model plan on this device, and what would run"},
    {"kernels", command_kernels, "the coverage table: op x dtype x backend"},
    {"devices", command_devices, "what is there to compute on"},
    {"selftest", command_selftest, "every kernel against an FP64 reference, on this machine"},
    {"bench", command_bench, "time of load, vision tower, prefill and decode"},
    {"synth", command_synth, "write a checkpoint with random weights"},
};

static void help(FILE *f)
{
    fputs("Inkstone reads documents with PaddleOCR-VL in native BF16.\n\nusage: inkstone COMMAND [OPTION...]\n\n", f);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(f, "  %-9s %s\n", commands[i].name, commands[i].what);
    fputs("\n  inkstone COMMAND --help   options and examples\n  inkstone --version\n\n"
          "examples:\n  inkstone read page.png\n  inkstone read --task table --format html -o table.html table.jpg\n"
          "  inkstone check --fp32-modules visual,mlp_AR\n\n"
          "exit codes: 0 done, 1 something failed, 2 wrong usage\n"
          "environment: INK_CPU=portable|avx2|avx512|amx caps the instruction set, INK_DISABLE hides kernels,\n"
          "  INK_LOG=error|warn|info|debug logs to standard error\n",
          f);
}

/* Output that never arrived is a failure, for help and version too. */
static int finish(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    int reason = errno;
    return complain("cannot write to standard output: %s", strerror(reason));
}

static int run_command(int argc, char **argv)
{
    static char program[32];
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(argv[0], commands[i].name)) {
            snprintf(program, sizeof program, "inkstone %s", argv[0]); /* how getopt's messages begin */
            argv[0] = program;
            return commands[i].run(argc, argv);
        }
    fprintf(stderr, "inkstone: no command '%s'\nSee `inkstone --help`.\n", argv[0]);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error, not a signal */
    if (argc < 2) {
        help(stderr);
        return EXIT_USAGE;
    }
    const char *first = argv[1];
    if (!strcmp(first, "help") && argc == 3) { /* inkstone help read */
        char *arguments[] = {argv[2], "--help", NULL};
        return finish(run_command(2, arguments));
    }
    if (!strcmp(first, "--help") || !strcmp(first, "-h") || !strcmp(first, "help")) {
        help(stdout);
        return finish(EXIT_OK);
    }
    if (!strcmp(first, "--version") || !strcmp(first, "-V")) {
        printf("inkstone %s\n", ink_version());
        return finish(EXIT_OK);
    }
    return finish(run_command(argc - 1, argv + 1));
}
