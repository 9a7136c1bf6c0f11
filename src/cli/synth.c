/* synth.c - inkstone synth: a checkpoint of the published shape with random weights. */
#include "cli/cli.h"

#include "models/paddleocr_vl/synth.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help_text[] =
    "usage: inkstone synth [OPTION...] DIR\n\n"
    "Writes a Hugging Face directory of PaddleOCR-VL's shape with random weights: for benchmarks and comparisons, not for\n"
    "reading. The same seed gives the same bytes on every machine.\n\n"
    "  --preset NAME            paddleocr-vl-1.5 (default) or paddleocr-vl-tiny\n"
    "  --seed N                 (default 0)\n"
    "  --layers V,L             vision and language layers, in place of the preset's\n"
    "  --threads N              (default: all cores)\n"
    "  --force                  write into a directory that is not empty\n"
    "  -h, --help               this text\n"
    "\nexamples:\n  inkstone synth /tmp/full\n  inkstone synth --layers 2,2 --seed 7 /tmp/small\n";

static void progress(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    fprintf(stderr, "\r%5.1f %% of %.2f GB", 100.0 * (double)done / (double)total, (double)total * 1e-9);
    if (done == total)
        fputc('\n', stderr);
}

static bool parse_layers(const char *text, synth_options *o)
{
    int used = 0;
    if (sscanf(text, "%d,%d%n", &o->vision_layers, &o->text_layers, &used) == 2 && !text[used] && o->vision_layers > 0 &&
        o->text_layers > 0)
        return true;
    usage_error("synth", "--layers: '%s', expected two positive numbers, e.g. 2,2", text);
    return false;
}

int command_synth(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'},
                                            {"preset", required_argument, NULL, 'p'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"layers", required_argument, NULL, 'l'},
                                            {"threads", required_argument, NULL, 't'},
                                            {"force", no_argument, NULL, 'f'},
                                            {0}};
    synth_options o = {0};
    int64_t n = 0;
    int code;
    while ((code = next_option(argc, argv, "h", options, help_text)) >= 0)
        switch (code) {
        case 'p': o.preset = optarg; break;
        case 's':
            if (!parse_int("synth", "--seed", optarg, 0, INT64_MAX, &n))
                return EXIT_USAGE;
            o.seed = (uint64_t)n;
            break;
        case 'l':
            if (!parse_layers(optarg, &o))
                return EXIT_USAGE;
            break;
        case 't':
            if (!parse_int("synth", "--threads", optarg, 1, 1024, &n))
                return EXIT_USAGE;
            o.threads = (int)n;
            break;
        default: o.force = true; break;
        }
    if (code != OPTION_END)
        return option_exit(code);
    if (argc - optind != 1)
        return usage_error("synth", argc == optind ? "no directory given" : "one directory at a time");
    if (isatty(STDERR_FILENO))
        o.progress = progress;
    return synth_write(argv[optind], &o) == INK_OK ? EXIT_OK : complain(NULL);
}
