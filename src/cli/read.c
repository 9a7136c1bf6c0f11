/* read.c - inkstone read: text of images. */
#include "cli/read.h"

#include "core/memory.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const char help_text[] =
    "usage: inkstone read [OPTION...] IMAGE...\n\n"
    "Reads JPEG, PNG, WebP and TIFF (first page); '-' is standard input. One text per image, in the order given; on a\n"
    "terminal it appears as it is written. A file that cannot be read fails alone; the exit code is then 1.\n\n"
    "  --task ocr|table|formula|chart|seal|spotting   what to read (default ocr)\n"
    "  --prompt TEXT            free prompt in place of the task's\n"
    "  --format raw|html|markdown   form of the text (default raw: as the model wrote it, OTSL for tables)\n"
    "  --json                   one JSON object per image and line\n"
    "  -o, --output FILE        write there (complete or not at all) in place of standard output\n"
    "  --max-tokens N           longest answer (default: the checkpoint's max_new_tokens or 8192)\n"
    "  --temperature T --top-p P --seed N   sampling (default: greedy)\n"
    "  --repetition-penalty R   (default 1: none)\n"
    "  --no-loop-guard          do not stop answers that repeat themselves without end\n"
    "  --batch N                images decoded together (default 8)\n"
    "  --profile[=json|table][:FILE]   calls, time, FLOPs and bytes by kernel, to FILE or standard error\n" MODEL_HELP
    "  -h, --help               this text\n"
    "\nexamples:\n"
    "  inkstone read scan.png\n"
    "  inkstone read --json page1.jpg page2.jpg > pages.jsonl\n"
    "  inkstone read --model PaddleOCR-VL-1.5 --task table --format html -o table.html table.png\n"
    "  inkstone read --profile=json:profile.json scan.png\n"
    "  curl -s https://example.org/scan.png | inkstone read -\n";

static ink_session *volatile running;
static volatile sig_atomic_t interrupted; /* the signal */

static void on_signal(int sig)
{
    interrupted = sig;
    ink_session *session = running;
    if (session)
        ink_cancel(session); /* sets an atomic flag */
}

/* Ends reading cleanly on the first signal, at once on the second. One that was ignored (nohup) stays ignored. */
static void catch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    struct sigaction old;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- callbacks of a batch: image `index` of the call is input batch_first + index ---- */

static bool on_text(void *user, size_t index, const char *text, size_t length)
{
    reader *r = user;
    reader_stream(r, r->batch_first + index, text, length);
    return !r->write_failed && !interrupted;
}

static void on_done(void *user, size_t index, const ink_result *result)
{
    reader *r = user;
    input *in = &r->inputs[r->batch_first + index];
    if (in->done)
        return; /* the file could not be read: its place in the batch was empty */
    in->result = *result;
    in->moved = true;
    in->done = result->status != INK_OK || result->finish != INK_FINISH_CANCELLED;
    reader_print_ready(r);
}

/* ---- reading ---- */

static void load_input(input *in)
{
    double start = now_ms();
    ink_status s = ink_image_load(in->file, &in->image);
    in->load_ms = now_ms() - start;
    if (s == INK_OK)
        return;
    in->result.status = s;
    in->result.error = copy_string(ink_last_error());
    in->done = true;
}

/* Loads and reads up to args->batch inputs from `first`. */
static ink_status read_some(reader *r, ink_session *session, size_t first, size_t n)
{
    const ink_image **images = alloc_array(n, sizeof *images);
    ink_result *results = alloc_array(n, sizeof *results);
    ink_status s = images && results ? INK_OK : INK_RESOURCE_EXHAUSTED;
    input *inputs = r->inputs + first;
    for (size_t i = 0; i < n && s == INK_OK; i++) {
        load_input(&inputs[i]);
        images[i] = inputs[i].image;
        reader_print_ready(r);
    }
    ink_read_options o = r->args->read;
    o.seed += first;
    o.on_text = on_text;
    o.on_done = on_done;
    o.user = r;
    r->batch_first = first;
    if (s == INK_OK && !interrupted)
        s = ink_read_batch(session, images, n, &o, results);
    for (size_t i = 0; i < n; i++) {
        if (results && !inputs[i].moved)
            ink_result_free(&results[i]);
        ink_image_free(inputs[i].image);
        inputs[i].image = NULL;
    }
    free(images);
    free(results);
    return s;
}

static bool print_profile(const read_arguments *a, const ink_session *session)
{
    output o;
    char *text = ink_session_profile(session, a->profile_form);
    if (!text)
        return false;
    if (!a->profile_file) {
        fputs(text, stderr);
        free(text);
        return true;
    }
    bool ok = output_open(&o, a->profile_file);
    if (ok) {
        fputs(text, o.file);
        ok = output_close(&o, true);
    }
    free(text);
    return ok;
}

/* Reads all inputs; false when something other than an input failed (it has been told). */
static bool read_with(reader *r, ink_session *session)
{
    const read_arguments *a = r->args;
    size_t most = (size_t)a->batch;
    ink_status s = INK_OK;
    running = session;
    for (size_t at = 0; at < r->n && s == INK_OK && !interrupted && !r->write_failed; at += most)
        s = read_some(r, session, at, r->n - at < most ? r->n - at : most);
    running = NULL;
    if (s != INK_OK)
        complain(NULL);
    else if (a->profile && !interrupted && !print_profile(a, session)) {
        complain(NULL);
        return false;
    }
    return s == INK_OK;
}

static bool read_all(reader *r)
{
    ink_model *model = NULL;
    ink_session *session = NULL;
    const read_arguments *a = r->args;
    ink_session_options so = INK_SESSION_OPTIONS_DEFAULT;
    so.profile = a->profile;
    bool ok = ink_model_load(a->model.directory, &a->model.options, &model) == INK_OK &&
              ink_session_create(model, &so, &session) == INK_OK;
    if (ok)
        ok = read_with(r, session);
    else
        complain(NULL);
    ink_session_free(session);
    ink_model_free(model);
    return ok;
}

static int run(const read_arguments *a)
{
    reader r = {.args = a, .n = (size_t)a->n_files};
    if (!output_open(&r.out, a->output))
        return complain(NULL);
    r.inputs = alloc_array(r.n, sizeof *r.inputs);
    for (size_t i = 0; r.inputs && i < r.n; i++)
        r.inputs[i].file = a->files[i];
    reader_start(&r);
    bool ok = r.inputs ? read_all(&r) : (complain(NULL), false);
    size_t unread = reader_finish(&r);
    /* A file appears when every input was dealt with and there is something to put in it. */
    bool keep = ok && !interrupted && !r.write_failed && (a->json || r.texts);
    if (!output_close(&r.out, keep)) {
        complain(NULL);
        ok = false;
    }
    if (interrupted)
        raise(interrupted); /* back to the default by now: the caller learns why */
    return ok && !unread && !r.write_failed ? EXIT_OK : EXIT_FAILED;
}

/* ---- arguments ---- */

enum {
    OPT_TASK = 256,
    OPT_PROMPT,
    OPT_FORMAT,
    OPT_JSON,
    OPT_MAX_TOKENS,
    OPT_TEMPERATURE,
    OPT_TOP_P,
    OPT_SEED,
    OPT_PENALTY,
    OPT_NO_GUARD,
    OPT_BATCH,
    OPT_PROFILE
};

static const struct option long_options[] = {{"help", no_argument, NULL, 'h'},
                                             {"output", required_argument, NULL, 'o'},
                                             {"task", required_argument, NULL, OPT_TASK},
                                             {"prompt", required_argument, NULL, OPT_PROMPT},
                                             {"format", required_argument, NULL, OPT_FORMAT},
                                             {"json", no_argument, NULL, OPT_JSON},
                                             {"max-tokens", required_argument, NULL, OPT_MAX_TOKENS},
                                             {"temperature", required_argument, NULL, OPT_TEMPERATURE},
                                             {"top-p", required_argument, NULL, OPT_TOP_P},
                                             {"seed", required_argument, NULL, OPT_SEED},
                                             {"repetition-penalty", required_argument, NULL, OPT_PENALTY},
                                             {"no-loop-guard", no_argument, NULL, OPT_NO_GUARD},
                                             {"batch", required_argument, NULL, OPT_BATCH},
                                             {"profile", optional_argument, NULL, OPT_PROFILE},
                                             MODEL_LONG_OPTIONS,
                                             {0}};

static bool parse_format(const char *text, ink_format *out)
{
    static const char *const names[] = {"raw", "html", "markdown"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(text, names[i])) {
            *out = (ink_format)i;
            return true;
        }
    usage_error("read", "--format: '%s', expected raw, html or markdown", text);
    return false;
}

/* "", "json", "table", either with ":FILE". */
static bool parse_profile(const char *text, read_arguments *a)
{
    size_t n = text ? strcspn(text, ":") : 0;
    a->profile = true;
    a->profile_form = n == 4 && !memcmp(text, "json", 4) ? INK_REPORT_JSON : INK_REPORT_TEXT;
    if (n && a->profile_form == INK_REPORT_TEXT && !(n == 5 && !memcmp(text, "table", 5))) {
        usage_error("read", "--profile: '%s', expected json or table, and :FILE if it should go to one", text);
        return false;
    }
    a->profile_file = n && text[n] && text[n + 1] ? text + n + 1 : NULL;
    return true;
}

static bool parse_count(const char *option, const char *text, int64_t most, int *out)
{
    int64_t n;
    if (!parse_int("read", option, text, 1, most, &n))
        return false;
    *out = (int)n;
    return true;
}

static bool parse_one(read_arguments *a, int code, const char *value)
{
    int64_t n = 0;
    switch (code) {
    case 'o': a->output = value; return true;
    case OPT_TASK:
        if (ink_task_parse(value, &a->read.task))
            return true;
        usage_error("read", "--task: '%s', expected ocr, table, formula, chart, seal or spotting", value);
        return false;
    case OPT_PROMPT: a->read.prompt = value; return true;
    case OPT_FORMAT: return parse_format(value, &a->format);
    case OPT_JSON: a->json = true; return true;
    case OPT_MAX_TOKENS: return parse_count("--max-tokens", value, 1000000, &a->read.max_tokens);
    case OPT_TEMPERATURE: return parse_float("read", "--temperature", value, 0, 100, &a->read.temperature);
    case OPT_TOP_P: return parse_float("read", "--top-p", value, 1e-6, 1, &a->read.top_p);
    case OPT_PENALTY: return parse_float("read", "--repetition-penalty", value, 1e-3, 100, &a->read.repetition_penalty);
    case OPT_SEED:
        if (!parse_int("read", "--seed", value, 0, INT64_MAX, &n))
            return false;
        a->read.seed = (uint64_t)n;
        return true;
    case OPT_NO_GUARD: a->read.loop_guard = false; return true;
    case OPT_BATCH: return parse_count("--batch", value, 1024, &a->batch);
    case OPT_PROFILE: return parse_profile(value, a);
    default: return model_argument("read", code, value, &a->model);
    }
}

/* Would writing the output destroy an input? */
static bool output_is_input(const read_arguments *a)
{
    struct stat out, in;
    if (!a->output || stat(a->output, &out) != 0 || !S_ISREG(out.st_mode))
        return false;
    for (int i = 0; i < a->n_files; i++)
        if (stat(a->files[i], &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return true;
    return false;
}

/* Limits of the images go to the model, which plans for them, and to each read; spotting has its own (spec 9.6). */
static void set_pixel_limits(read_arguments *a)
{
    enum { SPOTTING_MAX_PIXELS = 1605632 };
    a->read.min_pixels = a->model.options.min_pixels;
    a->read.max_pixels = a->model.options.max_pixels;
    if (a->read.task == INK_TASK_SPOTTING && !a->model.options.max_pixels)
        a->model.options.max_pixels = SPOTTING_MAX_PIXELS;
}

int command_read(int argc, char **argv)
{
    read_arguments a = {.model = {NULL, INK_MODEL_OPTIONS_DEFAULT}, .read = INK_READ_OPTIONS_DEFAULT, .batch = 8};
    int code;
    a.read.loop_guard = true;
    while ((code = next_option(argc, argv, "ho:", long_options, help_text)) >= 0)
        if (!parse_one(&a, code, optarg))
            return EXIT_USAGE;
    if (code != OPTION_END)
        return option_exit(code);
    a.files = argv + optind;
    a.n_files = argc - optind;
    if (!a.n_files)
        return usage_error("read", "no image given");
    if (output_is_input(&a))
        return usage_error("read", "--output: '%s' is one of the images", a.output);
    a.model.options.max_sequences = a.batch;
    set_pixel_limits(&a);
    catch_signals();
    return run(&a);
}
