/* read.h - inkstone read, in two parts: read.c takes arguments and reads, read_print.c prints. Texts come out in the order
 * of the files; the first unfinished one is streamed to a terminal, the others wait for their turn. */
#ifndef CLI_READ_H
#define CLI_READ_H
#include "cli/cli.h"
#include "core/strbuf.h"

typedef struct read_arguments {
    model_arguments model;
    ink_read_options read;
    ink_format format;
    bool json, profile;
    ink_report profile_form;
    const char *profile_file; /* NULL: standard error */
    const char *output;
    int batch;
    char **files;
    int n_files;
} read_arguments;

/* One input, from its file to its printed result. */
typedef struct input {
    const char *file;
    ink_image *image;
    ink_result result; /* owned once `moved` or `done` */
    double load_ms;    /* reading and decoding the file */
    bool done;         /* finished or failed: may be printed */
    bool moved;        /* the result was taken over from the batch's array */
    strbuf pending;    /* text that waits for its turn on the terminal */
} input;

typedef struct reader {
    const read_arguments *args;
    output out;
    input *inputs;      /* of all files */
    size_t n, turn;     /* inputs[turn] is the next to be printed */
    size_t batch_first; /* first input of the running call */
    size_t texts;       /* printed so far, failures not counted */
    bool terminal;      /* the output is one: control characters are not let through */
    bool stream;        /* print text as it comes */
    bool partial;       /* inputs[turn] has text on the terminal already */
    bool write_failed;
} reader;

void reader_start(reader *r); /* after r->out is open */

/* New text of input i: onto the terminal if it is its turn, else kept. Nothing unless streaming. */
void reader_stream(reader *r, size_t i, const char *text, size_t length);

/* Prints every finished input whose turn it is; a failure goes to standard error. */
void reader_print_ready(reader *r);

/* Ends a line left open, frees the inputs; the number of inputs that failed or were not read. */
size_t reader_finish(reader *r);
#endif
