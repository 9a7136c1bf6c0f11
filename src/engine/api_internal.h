/* api_internal.h - what is behind the handles of inkstone.h. */
#ifndef ENGINE_API_INTERNAL_H
#define ENGINE_API_INTERNAL_H
#include "engine/session.h"
#include "inkstone/inkstone.h"

struct ink_model {
    vl_model *model;
};

struct ink_image {
    image img;
};

struct ink_session {
    session *s;
};

/* INK_INVALID_ARGUMENT "call: what is NULL" unless `p` is there. */
ink_status api_wants(const void *p, const char *call, const char *what);
#endif
