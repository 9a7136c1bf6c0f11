/* inspect.c - inkstone check, kernels, devices: what would run, what exists, and where. */
#include "cli/cli.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static int print_report(char *text)
{
    if (!text)
        return complain(NULL);
    bool ok = fputs(text, stdout) >= 0 && fflush(stdout) == 0;
    free(text);
    return ok ? EXIT_OK : complain("cannot write to standard output");
}

static const char check_help[] =
    "usage: inkstone check [OPTION...] [MODEL]\n\n"
    "Loads a checkpoint directory (default: the embedded model), plans vision tower, projector, prefill and decode, and\n"
    "prints kernels, FLOPs, bytes and memory, or the list of everything that has no kernel (exit code 1).\n\n"
    "  --json                   the report as JSON\n" MODEL_HELP
    "\nexamples:\n"
    "  inkstone check\n"
    "  inkstone check --fp32-modules visual,mlp_AR PaddleOCR-VL-1.5\n"
    "  INK_DISABLE='conv2d:*:bf16' inkstone check\n";

int command_check(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {"json", no_argument, NULL, 'j'}, MODEL_LONG_OPTIONS, {0}};
    model_arguments m = {NULL, INK_MODEL_OPTIONS_DEFAULT};
    bool json = false, bad = false;
    int code;
    while ((code = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (code == 'h') {
            fputs(check_help, stdout);
            return EXIT_OK;
        }
        if (code == 'j')
            json = true;
        else if (!model_argument("check", code, optarg, &m, &bad) || bad) {
            if (code == '?')
                fputs("See `inkstone check --help`.\n", stderr);
            return EXIT_USAGE;
        }
    }
    if (argc - optind > 1 || (argc - optind == 1 && m.directory))
        return usage_error("check", "one model at a time");
    if (argc - optind == 1)
        m.directory = argv[optind];
    ink_model *model;
    if (ink_model_load(m.directory, &m.options, &model) != INK_OK)
        return complain(NULL);
    int result = print_report(ink_model_report(model, json));
    ink_model_free(model);
    return result;
}

static const char kernels_help[] =
    "usage: inkstone kernels [--op OP] [--backend cpu|hip|cuda] [--dtype bf16|f16|f32] [--markdown|--json]\n\n"
    "Lists the registry: every kernel with its key. Nothing else decides what is supported.\n\n"
    "examples:\n  inkstone kernels --op conv2d\n  inkstone kernels --dtype bf16 --markdown\n";

int command_kernels(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'},       {"op", required_argument, NULL, 'o'},
                                            {"backend", required_argument, NULL, 'b'}, {"dtype", required_argument, NULL, 'd'},
                                            {"markdown", no_argument, NULL, 'm'},   {"json", no_argument, NULL, 'j'}, {0}};
    const char *op = NULL, *backend = NULL, *dtype = NULL;
    ink_format format = INK_FORMAT_RAW;
    bool json = false;
    int code;
    while ((code = getopt_long(argc, argv, "h", options, NULL)) != -1)
        switch (code) {
        case 'h': fputs(kernels_help, stdout); return EXIT_OK;
        case 'o': op = optarg; break;
        case 'b': backend = optarg; break;
        case 'd': dtype = optarg; break;
        case 'm': format = INK_FORMAT_MARKDOWN; break;
        case 'j': json = true; break;
        default: fputs("See `inkstone kernels --help`.\n", stderr); return EXIT_USAGE;
        }
    if (optind < argc)
        return usage_error("kernels", "unexpected argument '%s'", argv[optind]);
    return print_report(ink_kernels_report(op, backend, dtype, format, json));
}

int command_devices(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {"json", no_argument, NULL, 'j'}, {0}};
    bool json = false;
    int code;
    while ((code = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (code == 'h') {
            fputs("usage: inkstone devices [--json]\n\nLists what there is to compute on, and why something is not usable.\n\n"
                  "example:\n  inkstone devices\n  INK_CPU=avx2 inkstone devices\n", stdout);
            return EXIT_OK;
        }
        if (code != 'j') {
            fputs("See `inkstone devices --help`.\n", stderr);
            return EXIT_USAGE;
        }
        json = true;
    }
    if (optind < argc)
        return usage_error("devices", "unexpected argument '%s'", argv[optind]);
    return print_report(ink_devices_report(json));
}
