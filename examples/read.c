/* read.c - the text of each image named on the command line, with the model embedded in the library.
 *
 *     cc -o read read.c $(pkg-config --cflags --libs inkstone) && ./read page.png */
#include <inkstone/inkstone.h>
#include <stdio.h>

static ink_status read_file(ink_session *session, const char *path)
{
    ink_read_options options = INK_READ_OPTIONS_DEFAULT;
    ink_image *image;
    ink_result result;
    ink_status status = ink_image_load(path, &image);
    if (status != INK_OK)
        return status;
    status = ink_read(session, image, &options, &result);
    if (status == INK_OK)
        puts(result.text);
    ink_result_free(&result);
    ink_image_free(image);
    return status;
}

int main(int argc, char **argv)
{
    ink_model *model = NULL;
    ink_session *session = NULL;
    ink_status status = ink_model_load(NULL, NULL, &model);
    if (status == INK_OK)
        status = ink_session_create(model, NULL, &session);
    for (int i = 1; i < argc && status == INK_OK; i++)
        status = read_file(session, argv[i]);
    if (status != INK_OK)
        fprintf(stderr, "%s\n", ink_last_error());
    ink_session_free(session);
    ink_model_free(model);
    return status != INK_OK;
}
