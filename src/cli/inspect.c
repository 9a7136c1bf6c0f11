/* inspect.c - inkstone check, kernels, devices: what would run, what exists, and where. */
#include "cli/cli.h"

static const char check_help[] =
    "usage: inkstone check [OPTION...] [MODEL]\n\n"
    "Loads a checkpoint directory (default: the embedded model), plans vision tower, projector, prefill and decode, and\n"
    "prints kernels, FLOPs, bytes and memory, or the list of everything that has no kernel (exit code 1).\n\n"
    "  --json                   the report as JSON\n" MODEL_HELP "  -h, --help               this text\n"
    "\nexamples:\n"
    "  inkstone check\n"
    "  inkstone check --fp32-modules visual,mlp_AR PaddleOCR-VL-1.5\n"
    "  INK_DISABLE='conv2d:*:bf16' inkstone check\n";

int command_check(int argc, char **argv)
{
    static const struct option options[] = {
        {"help", no_argument, NULL, 'h'}, {"json", no_argument, NULL, 'j'}, MODEL_LONG_OPTIONS, {0}};
    model_arguments m = {NULL, INK_MODEL_OPTIONS_DEFAULT};
    bool json = false;
    int code;
    while ((code = next_option(argc, argv, "h", options, check_help)) >= 0) {
        if (code == 'j')
            json = true;
        else if (!model_argument("check", code, optarg, &m))
            return EXIT_USAGE;
    }
    if (code != OPTION_END)
        return option_exit(code);
    if (argc - optind > 1 || (argc - optind == 1 && m.directory))
        return usage_error("check", "one model at a time");
    if (argc - optind == 1)
        m.directory = argv[optind];
    ink_model *model;
    if (ink_model_load(m.directory, &m.options, &model) != INK_OK)
        return complain(NULL);
    int result = print_report(ink_model_report(model, json ? INK_REPORT_JSON : INK_REPORT_TEXT));
    ink_model_free(model);
    return result;
}

static const char kernels_help[] =
    "usage: inkstone kernels [OPTION...]\n\n"
    "Lists the registry: every kernel with its key. Nothing else decides what is supported.\n\n"
    "  --op OP                  only this op\n"
    "  --backend cpu|hip|cuda   only this backend\n"
    "  --dtype bf16|f16|f32     only this dtype\n"
    "  --markdown               a Markdown table\n"
    "  --json                   the rows as JSON\n"
    "  -h, --help               this text\n"
    "\nexamples:\n  inkstone kernels --op conv2d\n  inkstone kernels --dtype bf16 --markdown\n";

int command_kernels(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'},
                                            {"op", required_argument, NULL, 'o'},
                                            {"backend", required_argument, NULL, 'b'},
                                            {"dtype", required_argument, NULL, 'd'},
                                            {"markdown", no_argument, NULL, 'm'},
                                            {"json", no_argument, NULL, 'j'},
                                            {0}};
    const char *op = NULL, *backend = NULL, *dtype = NULL;
    ink_report form = INK_REPORT_TEXT;
    int code;
    while ((code = next_option(argc, argv, "h", options, kernels_help)) >= 0)
        switch (code) {
        case 'o': op = optarg; break;
        case 'b': backend = optarg; break;
        case 'd': dtype = optarg; break;
        case 'm': form = INK_REPORT_MARKDOWN; break;
        default: form = INK_REPORT_JSON; break;
        }
    if (code != OPTION_END)
        return option_exit(code);
    if (optind < argc)
        return usage_error("kernels", "unexpected argument '%s'", argv[optind]);
    return print_report(ink_kernels_report(op, backend, dtype, form));
}

static const char devices_help[] = "usage: inkstone devices [--json]\n\n"
                                   "Lists what there is to compute on, and why something is not usable.\n\n"
                                   "  --json                   the list as JSON\n"
                                   "  -h, --help               this text\n"
                                   "\nexamples:\n  inkstone devices\n  INK_CPU=avx2 inkstone devices --json\n";

int command_devices(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {"json", no_argument, NULL, 'j'}, {0}};
    ink_report form = INK_REPORT_TEXT;
    int code;
    while ((code = next_option(argc, argv, "h", options, devices_help)) >= 0)
        form = INK_REPORT_JSON;
    if (code != OPTION_END)
        return option_exit(code);
    if (optind < argc)
        return usage_error("devices", "unexpected argument '%s'", argv[optind]);
    return print_report(ink_devices_report(form));
}
