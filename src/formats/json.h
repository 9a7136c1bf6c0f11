/* json.h - reading settings from JSON: strict parsing, and typed fields whose errors name file and field.
 *
 * A field that is absent or null leaves the caller's default alone; one of the wrong type or out of range is INK_BAD_DATA,
 * e.g. `config.json: vision_config.patch_size is 0, expected 1 to 1024`. Unknown fields are never looked at. */
#ifndef FORMATS_JSON_H
#define FORMATS_JSON_H
#include "core/status.h"

#include <jansson.h>

#define JSON_ITEM_LIMIT 4000000 /* commas and colons; a checkpoint of 300,000 tensors stays below */

/* Parses one JSON object: UTF-8 is checked, nesting is limited to 2048 and size to JSON_ITEM_LIMIT; a duplicate key and
 * text behind the object are errors. `label` names the file in messages. The caller owns *out (json_decref). */
ink_status json_parse_object(const void *text, size_t size, const char *label, json_t **out);

/* An object whose fields are read. `path` is what to put before a field's name: "" or "vision_config.". */
typedef struct json_fields {
    const json_t *object; /* borrowed; NULL counts as an empty object */
    const char *label;
    char path[80];
} json_fields;

json_fields json_fields_of(const json_t *object, const char *label);

bool json_has(const json_fields *f, const char *name); /* present and not null */
ink_status json_int(const json_fields *f, const char *name, int64_t lo, int64_t hi, int64_t *value);
ink_status json_int32(const json_fields *f, const char *name, int lo, int hi, int *value);
ink_status json_number(const json_fields *f, const char *name, double lo, double hi, double *value); /* integers too */
ink_status json_bool(const json_fields *f, const char *name, bool *value);
ink_status json_text(const json_fields *f, const char *name, const char **value); /* borrowed from the object */

/* Exactly n numbers in [lo, hi]. */
ink_status json_numbers(const json_fields *f, const char *name, size_t n, double lo, double hi, double *values);
ink_status json_ints(const json_fields *f, const char *name, size_t n, int lo, int hi, int *values);

/* A nested object; out->object is NULL when absent or null. */
ink_status json_sub(const json_fields *f, const char *name, json_fields *out);
#endif
