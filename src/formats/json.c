#include "formats/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Parsed values take many times the room of their text, so the number of separators is limited before parsing. */
static bool has_too_many_items(const char *text, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++)
        n += text[i] == ',' || text[i] == ':';
    return n > JSON_ITEM_LIMIT;
}

ink_status json_parse_object(const void *text, size_t size, const char *label, json_t **out)
{
    json_error_t error;
    *out = NULL;
    if (has_too_many_items(text, size))
        return failure(INK_BAD_DATA, "%s: the JSON text has more than %d items", label, JSON_ITEM_LIMIT);
    *out = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!*out) {
        if (json_error_code(&error) == json_error_out_of_memory)
            return failure(INK_RESOURCE_EXHAUSTED, "%s: out of memory while parsing JSON", label);
        return failure(INK_BAD_DATA, "%s: not valid JSON: %s (line %d, column %d)", label, error.text, error.line,
                       error.column);
    }
    if (!json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        return failure(INK_BAD_DATA, "%s: expected a JSON object", label);
    }
    return INK_OK;
}

json_fields json_fields_of(const json_t *object, const char *label)
{
    return (json_fields){.object = object, .label = label};
}

static const json_t *field(const json_fields *f, const char *name)
{
    const json_t *v = f->object ? json_object_get(f->object, name) : NULL;
    return v && !json_is_null(v) ? v : NULL;
}

bool json_has(const json_fields *f, const char *name) { return field(f, name) != NULL; }

static const char *type_name(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return "a number";
    case JSON_TRUE: return "true";
    case JSON_FALSE: return "false";
    case JSON_NULL: return "null";
    }
    return "?";
}

static ink_status wrong_type(const json_fields *f, const char *name, const json_t *v, const char *expected)
{
    return failure(INK_BAD_DATA, "%s: %s%s is %s, expected %s", f->label, f->path, name, type_name(v), expected);
}

static ink_status int_value(const json_fields *f, const char *name, const json_t *v, int64_t lo, int64_t hi, int64_t *value)
{
    int64_t n;
    if (json_is_integer(v))
        n = json_integer_value(v);
    else if (json_is_real(v) && json_real_value(v) == floor(json_real_value(v)) && fabs(json_real_value(v)) < 0x1p53)
        n = (int64_t)json_real_value(v); /* 1e6 and 470400.0 are integers that some writer spelt oddly */
    else
        return wrong_type(f, name, v, "an integer");
    if (n < lo || n > hi)
        return failure(INK_BAD_DATA, "%s: %s%s is %lld, expected %lld to %lld", f->label, f->path, name, (long long)n,
                       (long long)lo, (long long)hi);
    *value = n;
    return INK_OK;
}

static ink_status number_value(const json_fields *f, const char *name, const json_t *v, double lo, double hi, double *value)
{
    if (!json_is_number(v))
        return wrong_type(f, name, v, "a number");
    double d = json_number_value(v);
    if (!(d >= lo && d <= hi))
        return failure(INK_BAD_DATA, "%s: %s%s is %g, expected %g to %g", f->label, f->path, name, d, lo, hi);
    *value = d;
    return INK_OK;
}

ink_status json_int(const json_fields *f, const char *name, int64_t lo, int64_t hi, int64_t *value)
{
    const json_t *v = field(f, name);
    return v ? int_value(f, name, v, lo, hi, value) : INK_OK;
}

ink_status json_int32(const json_fields *f, const char *name, int lo, int hi, int *value)
{
    int64_t n = *value;
    TRY(json_int(f, name, lo, hi, &n));
    *value = (int)n;
    return INK_OK;
}

ink_status json_number(const json_fields *f, const char *name, double lo, double hi, double *value)
{
    const json_t *v = field(f, name);
    return v ? number_value(f, name, v, lo, hi, value) : INK_OK;
}

ink_status json_bool(const json_fields *f, const char *name, bool *value)
{
    const json_t *v = field(f, name);
    if (!v)
        return INK_OK;
    if (!json_is_boolean(v))
        return wrong_type(f, name, v, "true or false");
    *value = json_is_true(v);
    return INK_OK;
}

ink_status json_text(const json_fields *f, const char *name, const char **value)
{
    const json_t *v = field(f, name);
    if (!v)
        return INK_OK;
    if (!json_is_string(v))
        return wrong_type(f, name, v, "a string");
    *value = json_string_value(v);
    return INK_OK;
}

/* The list `name` of exactly n elements; NULL in *out when absent. */
static ink_status list_of(const json_fields *f, const char *name, size_t n, const json_t **out)
{
    const json_t *v = field(f, name);
    *out = v;
    if (!v)
        return INK_OK;
    if (!json_is_array(v))
        return wrong_type(f, name, v, "a list");
    if (json_array_size(v) != n)
        return failure(INK_BAD_DATA, "%s: %s%s has %zu elements, expected %zu", f->label, f->path, name, json_array_size(v),
                       n);
    return INK_OK;
}

ink_status json_numbers(const json_fields *f, const char *name, size_t n, double lo, double hi, double *values)
{
    const json_t *list;
    TRY(list_of(f, name, n, &list));
    for (size_t i = 0; list && i < n; i++) {
        char element[96];
        snprintf(element, sizeof element, "%s[%zu]", name, i);
        TRY(number_value(f, element, json_array_get(list, i), lo, hi, &values[i]));
    }
    return INK_OK;
}

ink_status json_ints(const json_fields *f, const char *name, size_t n, int lo, int hi, int *values)
{
    const json_t *list;
    TRY(list_of(f, name, n, &list));
    for (size_t i = 0; list && i < n; i++) {
        char element[96];
        int64_t value = 0;
        snprintf(element, sizeof element, "%s[%zu]", name, i);
        TRY(int_value(f, element, json_array_get(list, i), lo, hi, &value));
        values[i] = (int)value;
    }
    return INK_OK;
}

ink_status json_sub(const json_fields *f, const char *name, json_fields *out)
{
    const json_t *v = field(f, name);
    *out = (json_fields){.object = v, .label = f->label};
    if (v && !json_is_object(v))
        return wrong_type(f, name, v, "an object");
    size_t used = strlen(f->path), n = strlen(name);
    if (used + n + 2 > sizeof out->path)
        return failure(INK_INVALID_ARGUMENT, "%s: field path %s%s is too long", f->label, f->path, name);
    memcpy(out->path, f->path, used);
    memcpy(out->path + used, name, n);
    memcpy(out->path + used + n, ".", 2);
    return INK_OK;
}
