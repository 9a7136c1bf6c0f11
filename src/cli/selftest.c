/* selftest.c - inkstone selftest: the conformance suite on this machine. */
#include "cli/cli.h"

#include "conformance/conformance.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char help_text[] = "usage: inkstone selftest [OPTION...]\n\n"
                                "Runs every kernel that this processor can run on random cases against an FP64 reference: "
                                "poisoned buffers, guard bytes,\n"
                                "one thread against several. The table at the end belongs into a bug report.\n\n"
                                "  --op OP, --dtype T, --kernel NAME   only these\n"
                                "  --seed N                 seed of the random cases (default: new each time, printed)\n"
                                "  --cases N                cases per kernel (default: 25, with --full 1000)\n"
                                "  --full                   many and larger cases\n"
                                "  --threads N              threads of the second run of each case (default 3)\n"
                                "  --case DESCRIPTOR        run one case again, as printed by a failure\n"
                                "  --json                   results as JSON\n"
                                "  -h, --help               this text\n"
                                "\nexamples:\n  inkstone selftest\n  inkstone selftest --op conv2d --full\n"
                                "  INK_CPU=avx2 inkstone selftest --dtype bf16\n";

static void print_json(const device *d, const conf_options *o, const conf_report *r)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < r->count; i++) {
        const conf_row *w = &r->rows[i];
        json_array_append_new(rows,
                              json_pack("{s:s,s:s,s:s,s:s,s:i,s:f,s:f,s:s,s:s}", "op", op_schema_of(w->kernel->op)->name,
                                        "dtype", ink_dtype_name(w->kernel->dtype), "layout",
                                        ink_layout_name(w->kernel->layout), "kernel", w->kernel->name, "cases", w->cases,
                                        "worst", w->worst < 1e300 ? w->worst : 1e300, "bias", w->bias, "result",
                                        w->failed    ? "failed"
                                        : w->skipped ? "skipped"
                                                     : "ok",
                                        "failure", w->failed ? w->failure : ""));
    }
    json_t *root = json_pack("{s:s,s:s,s:I,s:i,s:i,s:o}", "device", d->name, "version", ink_version(), "seed",
                             (json_int_t)o->seed, "failed", r->failed, "skipped", r->skipped, "rows", rows);
    char *text = json_dumps(root, JSON_INDENT(1));
    puts(text ? text : "{}");
    free(text);
    json_decref(root);
}

int command_selftest(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'},
                                            {"op", required_argument, NULL, 'o'},
                                            {"dtype", required_argument, NULL, 'd'},
                                            {"kernel", required_argument, NULL, 'k'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"cases", required_argument, NULL, 'c'},
                                            {"full", no_argument, NULL, 'f'},
                                            {"threads", required_argument, NULL, 't'},
                                            {"case", required_argument, NULL, 'C'},
                                            {"json", no_argument, NULL, 'j'},
                                            {0}};
    conf_options o = {.seed = (uint64_t)time(NULL) * 2654435761u, .cases = 25, .seconds = 0.35};
    const char *descriptor = NULL;
    bool json = false;
    int64_t n = 0;
    int code;
    o.seed &= INT64_MAX;
    while ((code = next_option(argc, argv, "h", options, help_text)) >= 0)
        switch (code) {
        case 'o': o.op = optarg; break;
        case 'd': o.dtype = optarg; break;
        case 'k': o.kernel = optarg; break;
        case 's':
            if (!parse_int("selftest", "--seed", optarg, 0, INT64_MAX, &n))
                return EXIT_USAGE;
            o.seed = (uint64_t)n;
            break;
        case 'c':
            if (!parse_int("selftest", "--cases", optarg, 1, 1000000, &n))
                return EXIT_USAGE;
            o.cases = (int)n;
            o.seconds = 0;
            break;
        case 'f':
            o.size = 1;
            o.cases = o.cases == 25 ? 1000 : o.cases;
            o.seconds = 0;
            break;
        case 't':
            if (!parse_int("selftest", "--threads", optarg, 1, 1024, &n))
                return EXIT_USAGE;
            o.threads = (int)n;
            break;
        case 'C': descriptor = optarg; break;
        default: json = true; break;
        }
    if (code != OPTION_END)
        return option_exit(code);
    if (optind < argc)
        return usage_error("selftest", "unexpected argument '%s'", argv[optind]);
    device d;
    conf_report r = {0};
    if (device_open_cpu(&d, 0, NULL) != INK_OK)
        return complain(NULL);
    ink_status s = descriptor ? conf_run_case(&d, descriptor, &r) : conf_run(&d, &o, &r);
    if (s == INK_OK && json)
        print_json(&d, &o, &r);
    else if (s == INK_OK) {
        strbuf table = {0};
        conf_report_table(&d, &o, &r, &table);
        fputs(strbuf_text(&table), stdout);
        strbuf_free(&table);
    }
    int result = s != INK_OK ? complain(NULL) : r.failed ? EXIT_FAILED : EXIT_OK;
    conf_report_free(&r);
    device_close(&d);
    return result;
}
