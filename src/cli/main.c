#include "cli/cli.h"

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
          "environment: INK_CPU=portable|avx2|avx512|amx caps the instruction set, INK_DISABLE hides kernels, INK_LOG=info logs\n",
          f);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error, not a signal */
    if (argc < 2) {
        help(stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        help(stdout);
        return EXIT_OK;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        printf("inkstone %s\n", ink_version());
        return EXIT_OK;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    fprintf(stderr, "inkstone: no command '%s'\n", argv[1]);
    help(stderr);
    return EXIT_USAGE;
}
