/* read.c - inkstone read: text of images. Texts come out in the order of the files; the first unfinished one is streamed to a
 * terminal, the others wait for their turn. */
#include "cli/cli.h"

#include "core/memory.h"
#include "core/strbuf.h"

#include <getopt.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char help_text[] =
    "usage: inkstone read [OPTION...] IMAGE...\n\n"
    "Reads JPEG, PNG, WebP and TIFF (first page); '-' is standard input. A file that cannot be read fails alone; the\n"
    "exit code is then 1.\n\n"
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
    "  --profile[=json]         times by kernel, on standard error\n" MODEL_HELP
    "\nexamples:\n"
    "  inkstone read scan.png\n"
    "  inkstone read --json page1.jpg page2.jpg > pages.jsonl\n"
    "  inkstone read --model PaddleOCR-VL-1.5 --task table --format html table.png\n"
    "  curl -s https://example.org/scan.png | inkstone read -\n";

typedef struct read_arguments {
    model_arguments model;
    ink_read_options read;
    ink_format format;
    bool json, profile, profile_json;
    const char *output;
    int batch;
    char **files;
    int n_files;
} read_arguments;

/* One input, from its file to its printed result. */
typedef struct input {
    const char *file;
    ink_image *image;
    ink_result result;
    double load_ms; /* reading and decoding the file */
    bool done, failed;
    strbuf pending; /* text that waits for its turn on the terminal */
} input;

typedef struct reader {
    const read_arguments *args;
    output out;
    input *inputs;       /* of all files */
    size_t n, turn;      /* inputs[turn] is the next to be printed */
    size_t batch_first;  /* inputs of the running call begin here */
    const size_t *batch; /* their indices */
    bool stream;         /* print text as it comes */
    bool write_failed;
} reader;

static ink_session *interrupted_session;
static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
    (void)sig;
    interrupted = 1;
    if (interrupted_session)
        ink_cancel(interrupted_session); /* sets an atomic flag */
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- printing ---- */

static json_t *polygons_json(const ink_result *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->polygon_count; i++) {
        const ink_polygon *p = &r->polygons[i];
        json_t *points = json_array();
        for (int k = 0; k < 4; k++)
            json_array_append_new(points, json_pack("[f,f]", (double)p->x[k], (double)p->y[k]));
        json_array_append_new(list, json_pack("{s:s,s:o}", "text", p->text, "points", points));
    }
    return list;
}

static void print_json(reader *r, const input *in)
{
    const ink_result *x = &in->result;
    const read_arguments *a = r->args;
    json_t *file = json_string(in->file);
    if (!file) /* a file name that is not UTF-8 */
        file = json_string_nocheck("?");
    json_t *o = json_pack("{s:o,s:s}", "file", file, "task", ink_task_name(a->read.task));
    if (in->failed) {
        json_object_set_new(o, "text", json_string(""));
        json_object_set_new(o, "error", json_pack("{s:s,s:s}", "code", ink_status_name(x->status), "message", x->error ? x->error : "out of memory"));
    } else {
        json_object_set_new(o, "text", json_string(x->text));
        if (a->format != INK_FORMAT_RAW || a->read.task == INK_TASK_TABLE) {
            ink_format f = a->format == INK_FORMAT_RAW ? INK_FORMAT_HTML : a->format;
            char *formatted = ink_format_text(a->read.task, x->text, f);
            json_object_set_new(o, f == INK_FORMAT_HTML ? "html" : "markdown", formatted ? json_string(formatted) : json_null());
            free(formatted);
        }
        json_object_set_new(o, "finish_reason", json_string(ink_finish_name(x->finish)));
        json_object_set_new(o, "loop_guard", json_boolean(x->looped));
        json_object_set_new(o, "tokens", json_pack("{s:I,s:I,s:I}", "prompt", (json_int_t)x->prompt_tokens, "image", (json_int_t)x->image_tokens,
                                                   "generated", (json_int_t)x->generated_tokens));
        if (a->read.task == INK_TASK_SPOTTING)
            json_object_set_new(o, "polygons", polygons_json(x));
        json_object_set_new(o, "timing_ms", json_pack("{s:f,s:f,s:f,s:f}", "decode", in->load_ms + x->decode_ms, "vision", x->vision_ms, "prefill",
                                                      x->prefill_ms, "generate", x->generate_ms));
    }
    char *text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(6));
    if (!text || fprintf(r->out.file, "%s\n", text) < 0)
        r->write_failed = true;
    free(text);
    json_decref(o);
}

static void print_text(reader *r, input *in)
{
    char *formatted = r->args->format == INK_FORMAT_RAW ? NULL : ink_format_text(r->args->read.task, in->result.text, r->args->format);
    const char *text = formatted ? formatted : in->result.text;
    if (r->stream)
        text = ""; /* it is out already */
    if (fprintf(r->out.file, "%s\n", text) < 0)
        r->write_failed = true;
    free(formatted);
    if (in->result.looped)
        fprintf(stderr, "inkstone: %s: the answer began to repeat itself and was cut (--no-loop-guard keeps it)\n", in->file);
    else if (in->result.finish == INK_FINISH_LENGTH)
        fprintf(stderr, "inkstone: %s: the answer reached the token limit\n", in->file);
}

/* Prints every finished input whose turn it is; streams what the next one has so far. */
static void print_ready(reader *r)
{
    for (; r->turn < r->n && r->inputs[r->turn].done; r->turn++) {
        input *in = &r->inputs[r->turn];
        if (r->stream && !in->failed && in->pending.length)
            fputs(strbuf_text(&in->pending), r->out.file);
        strbuf_free(&in->pending);
        if (in->failed)
            fprintf(stderr, "inkstone: %s%s%s\n", in->result.error && strstr(in->result.error, in->file) == in->result.error ? "" : in->file,
                    in->result.error && strstr(in->result.error, in->file) == in->result.error ? "" : ": ",
                    in->result.error ? in->result.error : "out of memory");
        if (r->args->json)
            print_json(r, in);
        else if (!in->failed)
            print_text(r, in);
    }
    if (fflush(r->out.file) != 0)
        r->write_failed = true;
}

/* ---- callbacks of a batch ---- */

static bool on_text(void *user, size_t index, const char *text, size_t length)
{
    reader *r = user;
    size_t i = r->batch[index];
    if (i == r->turn) {
        if (r->inputs[i].pending.length) {
            fputs(strbuf_text(&r->inputs[i].pending), r->out.file);
            strbuf_free(&r->inputs[i].pending);
        }
        fwrite(text, 1, length, r->out.file);
        if (fflush(r->out.file) != 0)
            r->write_failed = true;
    } else
        strbuf_add(&r->inputs[i].pending, text, length);
    return !r->write_failed;
}

static void on_done(void *user, size_t index, const ink_result *result)
{
    reader *r = user;
    input *in = &r->inputs[r->batch[index]];
    in->done = true;
    in->failed = result->status != INK_OK;
    in->result = *result; /* moved: the array's entry is not freed */
    print_ready(r);
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
    in->result.error = strdup(ink_last_error());
    in->done = in->failed = true;
}

/* Loads and reads up to args->batch inputs from `first`; returns how many were taken. */
static size_t read_some(reader *r, ink_session *session, size_t first)
{
    size_t most = (size_t)r->args->batch, taken = 0, n = 0;
    const ink_image **images = alloc_array(most, sizeof *images);
    size_t *indices = alloc_array(most, sizeof *indices);
    ink_result *results = alloc_array(most, sizeof *results);
    for (; images && indices && results && taken < most && first + taken < r->n; taken++) {
        input *in = &r->inputs[first + taken];
        load_input(in);
        if (in->image) {
            images[n] = in->image;
            indices[n++] = first + taken;
        }
    }
    print_ready(r);
    ink_read_options o = r->args->read;
    o.seed += first;
    o.on_text = r->stream ? on_text : NULL;
    o.on_done = on_done;
    o.user = r;
    r->batch = indices;
    ink_status s = n ? ink_read_batch(session, images, n, &o, results) : INK_OK;
    for (size_t i = 0; i < n; i++) {
        input *in = &r->inputs[indices[i]];
        if (!in->done) { /* the call ended before this one was reported */
            in->result = results[i];
            in->done = in->failed = true;
            if (!in->result.error)
                in->result.error = strdup(s != INK_OK ? ink_last_error() : "not read");
            if (in->result.status == INK_OK)
                in->result.status = s != INK_OK ? s : INK_CANCELLED;
        }
        ink_image_free(in->image);
        in->image = NULL;
    }
    print_ready(r);
    free(images);
    free(indices);
    free(results);
    return taken;
}

static void print_profile(const read_arguments *a, const ink_session *session)
{
    char *text = a->profile ? ink_session_profile(session, a->profile_json) : NULL;
    if (text)
        fputs(text, stderr);
    free(text);
}

static int read_all(reader *r)
{
    ink_model *model;
    ink_session *session = NULL;
    const read_arguments *a = r->args;
    if (ink_model_load(a->model.directory, &a->model.options, &model) != INK_OK)
        return complain(NULL);
    ink_session_options so = {.profile = a->profile};
    if (ink_session_create(model, &so, &session) != INK_OK) {
        ink_model_free(model);
        return complain(NULL);
    }
    interrupted_session = session;
    signal(SIGINT, on_interrupt);
    size_t at = 0, failed = 0;
    while (at < r->n && !interrupted && !r->write_failed) {
        size_t n = read_some(r, session, at);
        if (!n)
            break;
        at += n;
    }
    signal(SIGINT, SIG_DFL);
    interrupted_session = NULL;
    print_profile(a, session);
    for (size_t i = 0; i < r->n; i++)
        failed += r->inputs[i].failed || !r->inputs[i].done;
    ink_session_free(session);
    ink_model_free(model);
    return failed || interrupted ? EXIT_FAILED : EXIT_OK;
}

static int run(const read_arguments *a)
{
    reader r = {.args = a, .n = (size_t)a->n_files};
    int code = EXIT_FAILED;
    if (!output_open(&r.out, a->output))
        return complain(NULL);
    r.stream = !a->json && a->format == INK_FORMAT_RAW && a->read.task != INK_TASK_SPOTTING && isatty(fileno(r.out.file));
    r.inputs = alloc_array(r.n, sizeof *r.inputs);
    if (r.inputs) {
        for (size_t i = 0; i < r.n; i++)
            r.inputs[i].file = a->files[i];
        code = read_all(&r);
    } else
        complain(NULL);
    for (size_t i = 0; r.inputs && i < r.n; i++) {
        ink_result_free(&r.inputs[i].result);
        strbuf_free(&r.inputs[i].pending);
    }
    bool printed = r.turn > 0; /* results, and errors told on stderr or as JSON lines */
    free(r.inputs);
    if (r.write_failed)
        complain("cannot write the output");
    if (!output_close(&r.out, printed && !r.write_failed))
        return complain(NULL);
    return r.write_failed ? EXIT_FAILED : code;
}

/* ---- arguments ---- */

enum { OPT_TASK = 256, OPT_PROMPT, OPT_FORMAT, OPT_JSON, OPT_MAX_TOKENS, OPT_TEMPERATURE, OPT_TOP_P, OPT_SEED, OPT_PENALTY, OPT_NO_GUARD, OPT_BATCH, OPT_PROFILE };

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'}, {"output", required_argument, NULL, 'o'}, {"task", required_argument, NULL, OPT_TASK},
    {"prompt", required_argument, NULL, OPT_PROMPT}, {"format", required_argument, NULL, OPT_FORMAT}, {"json", no_argument, NULL, OPT_JSON},
    {"max-tokens", required_argument, NULL, OPT_MAX_TOKENS}, {"temperature", required_argument, NULL, OPT_TEMPERATURE},
    {"top-p", required_argument, NULL, OPT_TOP_P}, {"seed", required_argument, NULL, OPT_SEED},
    {"repetition-penalty", required_argument, NULL, OPT_PENALTY}, {"no-loop-guard", no_argument, NULL, OPT_NO_GUARD},
    {"batch", required_argument, NULL, OPT_BATCH}, {"profile", optional_argument, NULL, OPT_PROFILE}, MODEL_LONG_OPTIONS, {0}};

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

static bool parse_one(read_arguments *a, int code, const char *value)
{
    int64_t n = 0;
    bool bad = false;
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
    case OPT_MAX_TOKENS:
        if (!parse_int("read", "--max-tokens", value, 1, 1000000, &n))
            return false;
        a->read.max_tokens = (int)n;
        return true;
    case OPT_TEMPERATURE: return parse_float("read", "--temperature", value, 0, 100, &a->read.temperature);
    case OPT_TOP_P: return parse_float("read", "--top-p", value, 1e-6, 1, &a->read.top_p);
    case OPT_PENALTY: return parse_float("read", "--repetition-penalty", value, 1e-3, 100, &a->read.repetition_penalty);
    case OPT_SEED:
        if (!parse_int("read", "--seed", value, 0, INT64_MAX, &n))
            return false;
        a->read.seed = (uint64_t)n;
        return true;
    case OPT_NO_GUARD: a->read.loop_guard = false; return true;
    case OPT_BATCH:
        if (!parse_int("read", "--batch", value, 1, 1024, &n))
            return false;
        a->batch = (int)n;
        return true;
    case OPT_PROFILE:
        if (value && strcmp(value, "json") && strcmp(value, "table")) {
            usage_error("read", "--profile: '%s', expected json or table", value);
            return false;
        }
        a->profile = true;
        a->profile_json = value && !strcmp(value, "json");
        return true;
    default: return model_argument("read", code, value, &a->model, &bad) && !bad;
    }
}

int command_read(int argc, char **argv)
{
    read_arguments a = {.model = {NULL, INK_MODEL_OPTIONS_DEFAULT}, .read = INK_READ_OPTIONS_DEFAULT, .batch = 8};
    int code;
    a.read.loop_guard = true;
    while ((code = getopt_long(argc, argv, "ho:", long_options, NULL)) != -1) {
        if (code == 'h') {
            fputs(help_text, stdout);
            return EXIT_OK;
        }
        if (code == '?') {
            fputs("See `inkstone read --help`.\n", stderr);
            return EXIT_USAGE;
        }
        if (!parse_one(&a, code, optarg))
            return EXIT_USAGE;
    }
    a.files = argv + optind;
    a.n_files = argc - optind;
    if (!a.n_files)
        return usage_error("read", "no image given");
    a.model.options.max_sequences = a.batch;
    if (a.read.task == INK_TASK_SPOTTING && !a.model.options.max_pixels)
        a.model.options.max_pixels = 1605632; /* spotting's own limit (spec 9.6) must fit the plan */
    return run(&a);
}
