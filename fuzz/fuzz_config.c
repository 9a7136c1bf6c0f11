/* fuzz_config.c - any bytes are either refused or give settings within the documented ranges. The first byte picks the
 * file. */
#include "models/paddleocr_vl/config.h"
#include "models/paddleocr_vl/tensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
    if (!truth)
        abort();
}

static void check_settings(const paddleocr_vl_config *c)
{
    require(c->text.num_attention_heads % c->text.num_key_value_heads == 0);
    require(c->text.mrope_section[0] + c->text.mrope_section[1] + c->text.mrope_section[2] == c->text.head_dim / 2);
    require(c->vision.head_dim * c->vision.num_attention_heads == c->vision.hidden_size && c->vision.head_dim % 4 == 0);
    require(c->vision.position_grid > 0 && c->image.min_pixels <= c->image.max_pixels);
    require(c->generation.eos_count > 0 && c->image_token_id < c->text.vocab_size);
    if (c->text.num_hidden_layers + c->vision.num_hidden_layers > 64)
        return; /* the list grows with the layers; a short one shows as much */
    paddleocr_vl_tensor *list;
    size_t count;
    if (paddleocr_vl_tensor_list(c, NULL, &list, &count) != INK_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        ink_tensor t;
        require(ink_tensor_init(&t, INK_F32, list[i].rank, list[i].dims, NULL) == INK_OK);
    }
    free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    paddleocr_vl_config c;
    ink_status s;
    if (size < 1)
        return 0;
    paddleocr_vl_config_defaults(&c);
    if (data[0] == 'g')
        s = paddleocr_vl_generation_parse(data + 1, size - 1, "fuzz", &c);
    else if (data[0] == 'i')
        s = paddleocr_vl_image_parse(data + 1, size - 1, "fuzz", &c);
    else
        s = paddleocr_vl_config_parse(data + 1, size - 1, "fuzz", &c);
    if (s == INK_OK && paddleocr_vl_config_check(&c, "fuzz") == INK_OK)
        check_settings(&c);
    return 0;
}
