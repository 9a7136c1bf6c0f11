/* log.h - one line to the user's log function; nothing is formatted when nobody listens. */
#ifndef CORE_LOG_H
#define CORE_LOG_H
#include "inkstone/base.h"

void log_line(ink_log_level level, const char *fmt, ...) INK_PRINTF(2, 3);
#endif
