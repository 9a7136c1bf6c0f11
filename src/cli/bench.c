/* bench.c - inkstone bench: load, vision tower, prefill and decode of a model, in numbers a reader can compare. */
#include "cli/cli.h"

#include "core/memory.h"
#include "core/rng.h"
#include "cpu/roof.h"
#include "engine/teacher.h"
#include "models/paddleocr_vl/synth.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char help_text[] =
    "usage: inkstone bench [OPTION...] [MODEL]\n\n"
    "Times loading, the vision tower at several image sizes, prefill, and decoding at context 256, 2048 and 8192.\n\n"
    "  --synthetic              write the full-size synthetic checkpoint to --work and time that\n"
    "  --work DIR               where (default: $TMPDIR/inkstone-synthetic); an existing one is used again\n"
    "  --images WxH,...         image sizes (default 384x384,1024x768)\n"
    "  --contexts N,...         decode contexts (default 256,2048,8192)\n"
    "  --sequences N            sequences decoded together (default 1)\n"
    "  --repeat N               timed runs of each step; the median is printed (default 3)\n"
    "  --profile                the kernels' share of each step\n"
    "  --teacher IN --out OUT   no timing: run pixel_values, input_ids and forced_ids of the safetensors file IN and "
    "write\n"
    "                           the projector's output and all logits to OUT (bench/compare_transformers.py)\n" MODEL_HELP
    "  -h, --help               this text\n"
    "\nexamples:\n  inkstone bench\n  inkstone bench --synthetic --threads 8 --images 1024x768\n";

enum { MAX_LIST = 16 };

typedef struct bench_arguments {
    model_arguments model;
    bool synthetic, profile;
    const char *work, *teacher, *out;
    int widths[MAX_LIST], heights[MAX_LIST], n_images;
    int64_t contexts[MAX_LIST];
    int n_contexts, sequences, repeat;
} bench_arguments;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    return n & 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static double peak_resident_mb(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss / 1024;
}

/* What decoding can reach at most: all threads reading the checkpoint where it lies, in bytes per second. 0 when it is so
 * small that caches would answer. */
static double read_bandwidth(const vl_model *m)
{
    const char *low = NULL, *high = NULL;
    for (size_t i = 0; i < safetensors_count(m->st); i++) {
        const safetensors_entry *e = safetensors_at(m->st, i);
        const char *at = e->tensor.data;
        if (!e->usable || (low && strcmp(e->file, safetensors_at(m->st, 0)->file)))
            continue; /* of shards, the first one's */
        low = !low || at < low ? at : low;
        high = !high || at + e->bytes > high ? at + e->bytes : high;
    }
    if (low)
        low += -(uintptr_t)low % 64;
    size_t bytes = low && high > low ? (size_t)(high - low) : 0;
    return bytes < (size_t)1 << 29 ? 0 : roof_read_bandwidth(low, bytes, m->dev.threads) * 1e9;
}

static void print_roofs(const device *d)
{
    printf("ceilings measured now, GFLOP/s:");
    for (int r = 0; r < ROOF_COUNT; r++) {
        double g = roof_gflops((roof)r, d->isa, d->threads);
        if (g > 0)
            printf("  %s %.0f", roof_name((roof)r), g);
    }
    putchar('\n');
}

static void step_profile(session *s, const bench_arguments *a)
{
    strbuf t = {0};
    if (!a->profile)
        return;
    profile_table(session_profile(s), &t);
    fputs(strbuf_text(&t), stdout);
    strbuf_free(&t);
    session_profile_reset(s);
}

/* ---- steps ---- */

static ink_status bench_vision(session *s, const bench_arguments *a, int width, int height)
{
    image img;
    double times[64];
    int64_t patches = 0;
    TRY(image_alloc(&img, width, height));
    rng r = {.seed = 1};
    for (size_t i = 0; i < (size_t)width * (size_t)height * 3; i++)
        img.pixels[i] = (uint8_t)rng_u64(&r);
    ink_status status = INK_OK;
    session_profile_reset(s);
    for (int i = 0; i < a->repeat && status == INK_OK; i++) {
        features f;
        status = session_encode_image(s, &img, NULL, &f);
        times[i] = f.vision_ms;
        patches = f.grid.patches;
        if (status == INK_OK)
            features_free(&f);
    }
    image_free(&img);
    if (status != INK_OK)
        return status;
    double flops = 0;
    const profile *p = session_profile(s);
    for (size_t i = 0; i < p->count; i++)
        flops += p->entries[i].cost.flops / a->repeat;
    double ms = median(times, a->repeat);
    const roof fma = session_model(s)->dev.isa >= ISA_AVX512 ? ROOF_AVX512 : ROOF_AVX2;
    double peak = roof_gflops(fma, session_model(s)->dev.isa, session_model(s)->dev.threads);
    printf("vision + projector %dx%d: %lld patches, %.1f ms, %.1f GFLOP, %.1f GFLOP/s = %.0f %% of %s; GEMM calls in FP32: "
           "%lld\n",
           width, height, (long long)patches, ms, flops * 1e-9, flops / ms * 1e-6,
           peak > 0 ? 100 * flops / ms * 1e-6 / peak : 0, roof_name(fma), (long long)profile_fp32_gemms(p) / a->repeat);
    step_profile(s, a);
    return INK_OK;
}

static ink_status add_sequence(session *s, int64_t context, int steps, uint64_t seed, sequence **q)
{
    const paddleocr_vl_config *c = &session_model(s)->config;
    int32_t *ids = alloc_array((size_t)context, sizeof *ids);
    rng r = {.seed = seed};
    if (!ids)
        return INK_RESOURCE_EXHAUSTED;
    for (int64_t i = 0; i < context; i++)
        do
            ids[i] = (int32_t)rng_below(&r, (uint64_t)c->text.vocab_size);
        while (ids[i] == c->image_token_id);
    generation_request g = {
        .ids = ids, .n_ids = (size_t)context, .max_tokens = steps, .top_p = 1, .repetition_penalty = 1, .seed = seed};
    ink_status status = session_add(s, &g, q);
    free(ids);
    return status;
}

/* Weight bytes that one decode step reads: everything of the language model but the embedding table, unless it is also the
 * head. */
static double step_weight_bytes(const vl_model *m)
{
    double bytes = (double)m->memory.weights[2];
    return m->weights.head_is_tied ? bytes : bytes - (double)ink_tensor_bytes(&m->weights.embed_tokens);
}

static ink_status bench_decode(session *s, const bench_arguments *a, int64_t context)
{
    enum { STEPS = 24 };
    sequence *q[64] = {0};
    double times[STEPS], prefill = 0;
    const vl_model *m = session_model(s);
    if (context + STEPS + 2 > m->config.text.max_position_embeddings) {
        printf("decode at context %lld: skipped, the model's context is %d\n", (long long)context,
               m->config.text.max_position_embeddings);
        return INK_OK;
    }
    session_profile_reset(s);
    for (int i = 0; i < a->sequences; i++) {
        TRY(add_sequence(s, context, STEPS + 2, (uint64_t)i + 1, &q[i]));
        prefill += q[i]->prefill_ms;
    }
    step_profile(s, a);
    int n = 0;
    for (; n < STEPS && session_active(s) == a->sequences; n++) {
        double start = now();
        TRY(session_step(s));
        times[n] = now() - start;
    }
    for (int i = 0; i < a->sequences; i++)
        session_remove(s, q[i]);
    if (!n) {
        printf("decode at context %lld: the sequence ended at once\n", (long long)context);
        return INK_OK;
    }
    double t = median(times, n);
    double kv = 2.0 * m->config.text.num_hidden_layers * m->config.text.num_key_value_heads * m->config.text.head_dim *
                (double)ink_dtype_size(m->dtypes[2]) * (double)context * a->sequences;
    double bytes = step_weight_bytes(m) + kv, bandwidth = read_bandwidth(m);
    printf("context %lld, %d sequence%s: prefill %.1f ms (%.0f tokens/s), decode %.2f ms a step, %.1f tokens/s, %.1f GB/s",
           (long long)context, a->sequences, a->sequences == 1 ? "" : "s", prefill / a->sequences,
           (double)context * a->sequences / prefill * 1e3, t * 1e3, a->sequences / t, bytes / t * 1e-9);
    if (bandwidth > 0)
        printf(" = %.0f %% of %.1f GB/s read", 100 * bytes / t / bandwidth, bandwidth * 1e-9);
    putchar('\n');
    step_profile(s, a);
    return INK_OK;
}

static ink_status load_model(const bench_arguments *a, vl_model **m)
{
    const ink_model_options *mo = &a->model.options;
    const vl_model_options o = {.directory = a->model.directory,
                                .dtype = mo->dtype,
                                .fp32_modules = mo->fp32_modules,
                                .threads = mo->threads,
                                .disable = mo->disable_kernels,
                                .delete_passes = mo->delete_passes,
                                .min_pixels = mo->min_pixels,
                                .max_pixels = mo->max_pixels,
                                .max_sequences = a->sequences,
                                .assistant_prefix = mo->assistant_prefix};
    return vl_model_load(&o, m);
}

static ink_status run_teacher(const bench_arguments *a)
{
    vl_model *m;
    safetensors *in;
    TRY(load_model(a, &m));
    ink_status s = safetensors_open_path(a->teacher, &in);
    if (s == INK_OK) {
        s = teacher_force(m, in, a->out);
        safetensors_free(in);
    }
    vl_model_free(m);
    return s;
}

static ink_status bench_all(const bench_arguments *a)
{
    vl_model *m;
    session *s = NULL;
    double start = now();
    TRY(load_model(a, &m));
    double loaded = now();
    int64_t longest = 0;
    for (int i = 0; i < a->n_contexts; i++)
        longest = a->contexts[i] > longest ? a->contexts[i] : longest;
    session_options so = {.max_tokens_per_sequence = (int32_t)longest + 64, .profile = true};
    ink_status status = session_create(m, &so, &s);
    printf("%s on %s\nload and plan %.1f ms\n", m->label, m->dev.name, (loaded - start) * 1e3);
    printf("weights: visual %.1f MB %s, mlp_AR %.1f MB %s, language_model %.1f MB %s\n",
           (double)m->memory.weights[0] * 1e-6, ink_dtype_name(m->dtypes[0]), (double)m->memory.weights[1] * 1e-6,
           ink_dtype_name(m->dtypes[1]), (double)m->memory.weights[2] * 1e-6, ink_dtype_name(m->dtypes[2]));
    printf("tower (visual + mlp_AR): weights %.1f MB, activations %.1f MB at the upper bounds\n",
           (double)(m->memory.weights[0] + m->memory.weights[1]) * 1e-6,
           (double)(plan_arena_bytes(m->plans[VL_VISION]) + plan_arena_bytes(m->plans[VL_PROJECTOR])) * 1e-6);
    print_roofs(&m->dev);
    for (int i = 0; i < a->n_images && status == INK_OK; i++)
        status = bench_vision(s, a, a->widths[i], a->heights[i]);
    double resident = peak_resident_mb(), file = (double)safetensors_bytes(m->st) / 1048576;
    for (int i = 0; i < a->n_contexts && status == INK_OK; i++)
        status = bench_decode(s, a, a->contexts[i]);
    if (status == INK_OK)
        printf("peak resident after vision %.0f MiB, at the end, with every byte of the checkpoint read, %.0f MiB; tensors "
               "in the "
               "file %.0f MiB\n",
               resident, peak_resident_mb(), file);
    session_free(s);
    vl_model_free(m);
    return status;
}

/* ---- arguments ---- */

static bool parse_images(const char *text, bench_arguments *a)
{
    a->n_images = 0;
    for (const char *p = text; *p;) {
        int used = 0, *w = &a->widths[a->n_images], *h = &a->heights[a->n_images];
        if (a->n_images == MAX_LIST) {
            usage_error("bench", "--images: more than %d sizes", MAX_LIST);
            return false;
        }
        if (sscanf(p, "%dx%d%n", w, h, &used) != 2 || *w < 1 || *h < 1 || *w > 20000 || *h > 20000 ||
            (p[used] && p[used] != ',')) {
            usage_error("bench", "--images: '%s', expected WxH,...", text);
            return false;
        }
        a->n_images++;
        p += used + (p[used] == ',');
    }
    return true;
}

static bool parse_contexts(const char *text, bench_arguments *a)
{
    a->n_contexts = 0;
    for (const char *p = text; *p;) {
        char *end;
        long long v = strtoll(p, &end, 10);
        if (a->n_contexts == MAX_LIST) {
            usage_error("bench", "--contexts: more than %d numbers", MAX_LIST);
            return false;
        }
        if (end == p || v < 1 || v > 1000000 || (*end && *end != ',')) {
            usage_error("bench", "--contexts: '%s', expected positive numbers", text);
            return false;
        }
        a->contexts[a->n_contexts++] = v;
        p = end + (*end == ',');
    }
    return true;
}

static ink_status make_synthetic(bench_arguments *a, char *path, size_t size)
{
    const char *tmp = getenv("TMPDIR");
    const char *folder = a->work ? a->work : tmp && *tmp ? tmp : "/tmp";
    struct stat st;
    if (snprintf(path, size, "%s%s/config.json", folder, a->work ? "" : "/inkstone-synthetic") >= (int)size)
        return failure(INK_INVALID_ARGUMENT, "--work: '%s' is too long", folder);
    bool there = stat(path, &st) == 0;
    *strrchr(path, '/') = 0;
    a->model.directory = path;
    if (there)
        return INK_OK;
    synth_options o = {0};
    fprintf(stderr, "writing the synthetic checkpoint to %s\n", path);
    return synth_write(path, &o);
}

int command_bench(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'},
                                            {"synthetic", no_argument, NULL, 's'},
                                            {"work", required_argument, NULL, 'w'},
                                            {"images", required_argument, NULL, 'i'},
                                            {"contexts", required_argument, NULL, 'c'},
                                            {"sequences", required_argument, NULL, 'q'},
                                            {"repeat", required_argument, NULL, 'r'},
                                            {"teacher", required_argument, NULL, 't'},
                                            {"out", required_argument, NULL, 'O'},
                                            {"profile", no_argument, NULL, 'p'},
                                            MODEL_LONG_OPTIONS,
                                            {0}};
    bench_arguments a = {.model = {NULL, INK_MODEL_OPTIONS_DEFAULT},
                         .widths = {384, 1024},
                         .heights = {384, 768},
                         .n_images = 2,
                         .contexts = {256, 2048, 8192},
                         .n_contexts = 3,
                         .sequences = 1,
                         .repeat = 3};
    char path[4096];
    int64_t n = 0;
    int code;
    while ((code = next_option(argc, argv, "h", options, help_text)) >= 0)
        switch (code) {
        case 's': a.synthetic = true; break;
        case 'w': a.work = optarg; break;
        case 't': a.teacher = optarg; break;
        case 'O': a.out = optarg; break;
        case 'p': a.profile = true; break;
        case 'i':
            if (!parse_images(optarg, &a))
                return EXIT_USAGE;
            break;
        case 'c':
            if (!parse_contexts(optarg, &a))
                return EXIT_USAGE;
            break;
        case 'q':
            if (!parse_int("bench", "--sequences", optarg, 1, 64, &n))
                return EXIT_USAGE;
            a.sequences = (int)n;
            break;
        case 'r':
            if (!parse_int("bench", "--repeat", optarg, 1, 64, &n))
                return EXIT_USAGE;
            a.repeat = (int)n;
            break;
        default:
            if (!model_argument("bench", code, optarg, &a.model))
                return EXIT_USAGE;
        }
    if (code != OPTION_END)
        return option_exit(code);
    if (argc - optind > 1 || (argc > optind && (a.model.directory || a.synthetic)))
        return usage_error("bench", "one model at a time");
    if (argc > optind)
        a.model.directory = argv[optind];
    if (!a.teacher != !a.out)
        return usage_error("bench", "--teacher and --out go together");
    ink_status s = a.synthetic ? make_synthetic(&a, path, sizeof path) : INK_OK;
    if (s == INK_OK)
        s = a.teacher ? run_teacher(&a) : bench_all(&a);
    return s == INK_OK ? EXIT_OK : complain(NULL);
}
