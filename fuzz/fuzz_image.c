/* fuzz_image.c - any bytes to the picture decoders, and what they accept on through the image processor.
 *
 *   fuzz_image -max_len=20000 fuzz/seeds/image */
#include "image/decode.h"
#include "image/processor.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const image_limits limits = {1 << 20, 2000, 200000};
    image_processor p = IMAGE_PROCESSOR_DEFAULT;
    p.min_pixels = 784;
    p.max_pixels = 15680;
    image img;
    if (image_decode(data, size, &limits, &img) != INK_OK) {
        if (img.pixels || img.width || img.height)
            abort();
        return 0;
    }
    if (!img.pixels || img.width < 1 || img.height < 1 || (int64_t)img.width * img.height > limits.max_pixels)
        abort();
    image_grid g;
    if (image_processor_grid(&p, img.width, img.height, &g) == INK_OK) {
        size_t bytes = image_grid_bytes(&p, &g, INK_BF16);
        void *patches = malloc(bytes);
        if (patches && image_processor_run(&p, &img, &g, INK_BF16, patches, bytes, 1) != INK_OK)
            abort();
        free(patches);
    }
    image_free(&img);
    return 0;
}
