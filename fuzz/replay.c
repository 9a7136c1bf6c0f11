/* replay.c - runs a fuzz target once on each file of the folders given: the seeds, as an ordinary test, with any compiler.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *folder, const char *name)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return -1;
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END))
        return -1;
    long size = ftell(f);
    rewind(f);
    uint8_t *data = size >= 0 ? malloc((size_t)size + !size) : NULL; /* exact, so that ASan sees a read behind the end */
    int status = data && fread(data, 1, (size_t)size, f) == (size_t)size ? 0 : -1;
    fclose(f);
    if (!status)
        LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    return status;
}

int main(int argc, char **argv)
{
    int files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *d = opendir(argv[i]);
        for (struct dirent *e; d && (e = readdir(d));)
            if (e->d_name[0] != '.') {
                if (replay(argv[i], e->d_name)) {
                    fprintf(stderr, "cannot read %s/%s\n", argv[i], e->d_name);
                    return 1;
                }
                files++;
            }
        if (d)
            closedir(d);
    }
    printf("%d files\n", files);
    return files ? 0 : 1;
}
