#include "core/tensor.h"
#include "core/status.h"

ink_status ink_tensor_init(ink_tensor *t, ink_dtype dtype, int rank, const int64_t *dims, void *data)
{
    if (rank < 0 || rank > INK_MAX_RANK)
        return failure(INK_INVALID_ARGUMENT, "tensor: rank %d, expected 0 to %d", rank, INK_MAX_RANK);
    if ((unsigned)dtype >= INK_DTYPE_COUNT)
        return failure(INK_INVALID_ARGUMENT, "tensor: unknown dtype %d", (int)dtype);
    *t = (ink_tensor){.dtype = dtype, .rank = rank, .data = data};
    int64_t n = (int64_t)ink_dtype_size(dtype);
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return failure(INK_INVALID_ARGUMENT, "tensor: dimension %d is %lld", i, (long long)dims[i]);
        empty |= dims[i] == 0;
        t->dims[i] = dims[i];
    }
    for (int i = rank - 1; i >= 0 && !empty; i--)
        if (__builtin_mul_overflow(n, dims[i], &n))
            return failure(INK_INVALID_ARGUMENT, "tensor: the product of its dimensions does not fit 63 bits");
    tensor_make_contiguous(t);
    return INK_OK;
}

void tensor_make_contiguous(ink_tensor *t)
{
    uint64_t s =
        1; /* unsigned: in an empty tensor the other dimensions' product may wrap, and nobody follows its strides */
    for (int i = t->rank - 1; i >= 0; i--) {
        t->strides[i] = (int64_t)s;
        s *= t->dims[i] > 1 ? (uint64_t)t->dims[i] : 1;
    }
}

int64_t ink_tensor_numel(const ink_tensor *t)
{
    uint64_t n = 1; /* unsigned: a product that ends in 0 may wrap on the way */
    for (int i = 0; i < t->rank; i++)
        n *= (uint64_t)t->dims[i];
    return (int64_t)n;
}

size_t ink_tensor_bytes(const ink_tensor *t) { return (size_t)ink_tensor_numel(t) * ink_dtype_size(t->dtype); }

bool ink_tensor_is_contiguous(const ink_tensor *t)
{
    uint64_t s = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->dims[i] > 1 && (uint64_t)t->strides[i] != s)
            return false;
        s *= t->dims[i] > 1 ? (uint64_t)t->dims[i] : 1;
    }
    return true;
}

void tensor_shape_text(const ink_tensor *t, strbuf *out)
{
    strbuf_putc(out, '[');
    for (int i = 0; i < t->rank; i++)
        strbuf_printf(out, "%s%lld", i ? "," : "", (long long)t->dims[i]);
    strbuf_putc(out, ']');
}

const char *ink_layout_name(ink_layout l)
{
    static const char *const names[] = {"any", "nchw", "nhwc", "ncdhw", "ndhwc"};
    return (unsigned)l < INK_LAYOUT_COUNT ? names[l] : "?";
}

const char *ink_backend_name(ink_backend b)
{
    static const char *const names[] = {"cpu", "hip", "cuda"};
    return (unsigned)b < INK_BACKEND_COUNT ? names[b] : "?";
}
