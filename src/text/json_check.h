/* json_check.h - typed access to jansson values with errors that name the place in the file. */
#ifndef TEXT_JSON_CHECK_H
#define TEXT_JSON_CHECK_H
#include "core/status.h"

#include <jansson.h>
#include <string.h>

static inline const char *json_type_name(const json_t *j)
{
    static const char *const names[] = {"object", "array", "string", "integer", "real", "true", "false", "null"};
    return j ? names[json_typeof(j)] : "nothing";
}

/* Is the member absent or null? */
static inline bool json_is_absent(const json_t *j) { return !j || json_is_null(j); }

/* The boolean member `name` of `object`; `fallback` when it is absent or null. */
static inline ink_status json_read_bool(const json_t *object, const char *name, bool fallback, const char *where, bool *out)
{
    const json_t *j = json_object_get(object, name);
    *out = json_is_absent(j) ? fallback : json_is_true(j);
    if (!json_is_absent(j) && !json_is_boolean(j))
        return failure(INK_BAD_DATA, "%s: \"%s\" must be true or false, found %s", where, name, json_type_name(j));
    return INK_OK;
}

/* The string member `name`, which must be there. */
static inline ink_status json_read_string(const json_t *object, const char *name, const char *where, const char **text,
                                          size_t *length)
{
    const json_t *j = json_object_get(object, name);
    *text = json_is_string(j) ? json_string_value(j) : "";
    *length = json_string_length(j);
    if (!json_is_string(j))
        return failure(INK_BAD_DATA, "%s: \"%s\" must be a string, found %s", where, name, json_type_name(j));
    return INK_OK;
}
#endif
