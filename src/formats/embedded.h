/* embedded.h - the model that lives inside the library (models/mini), as a source of files. */
#ifndef FORMATS_EMBEDDED_H
#define FORMATS_EMBEDDED_H
#include "formats/files.h"

/* The embedded model's files. INK_NOT_FOUND in a build with INK_EMBED_MODEL=OFF; the message says so. */
ink_status embedded_model_files(model_files *out);

/* Was a model built in? */
bool embedded_model_present(void);
#endif
