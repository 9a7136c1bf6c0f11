/* report.h - what the command line and the library say about plans, kernels and devices. */
#ifndef ENGINE_REPORT_H
#define ENGINE_REPORT_H
#include "graph/profile.h"
#include "models/paddleocr_vl/model.h"

ink_status model_report(const vl_model *m, bool json, strbuf *out);
ink_status devices_report(bool json, strbuf *out);

typedef enum report_format { REPORT_TABLE, REPORT_MARKDOWN, REPORT_JSON } report_format;
/* Registry rows; filters NULL: all. INK_NOT_FOUND for a filter that names nothing. */
ink_status kernels_report(const char *op, const char *backend, const char *dtype, report_format format, strbuf *out);
#endif
