/* repetition.h - texts in which the model got stuck.
 *
 * The three rules are PaddleX's (lengths in code points, `min` = shortest text that is looked at):
 *   1 SUFFIX  a text of one line, longer than 100, ends with five or more copies of a unit of 8 or more characters (the
 *             longest such unit counts), which make up more than half of it: what stands before them is kept;
 *   2 WHOLE   a text of one line, longer than 10, is ten or more copies of a unit: one copy is kept;
 *   3 LINES   of ten or more lines (blank ones aside), four fifths and at least ten are the same: one of them is kept. */
#ifndef TEXT_REPETITION_H
#define TEXT_REPETITION_H
#include "core/status.h"

enum {
    REPETITION_SUFFIX = 1,
    REPETITION_WHOLE = 2,
    REPETITION_LINES = 4,
    REPETITION_REFERENCE = 7, /* all three, as in the reference */
    /* Two extensions of ours. */
    REPETITION_LAST_LINE = 8,   /* rule 1 also looks at the last line of a text of several lines */
    REPETITION_BROKEN_END = 16, /* U+FFFD and a cut character at the end are ignored */
    REPETITION_ROBUST = 31,
};

#define REPETITION_MIN 50         /* `min` for everything but tables */
#define REPETITION_MIN_TABLE 5000 /* ... and for tables */

/* Applies the rules in the mask, lowest first, to a finished text. *kept, *kept_length: the part of the text to keep (all
 * of it when no rule applies). Returns the rule that applied in *rule (0: none). */
ink_status repetition_truncate(const char *text, size_t n, size_t min, unsigned rules, const char **kept,
                               size_t *kept_length, unsigned *rule);

/* Is the text of a generation in progress stuck? By rules 1 (on its last line) and 3, ignoring a broken end. *keep: the
 * number of bytes to keep, up to the end of the first copy of what repeats; n if the text is not stuck. A unit of fewer
 * than 8 characters ("....") must fill 256, since a leader of dots is no loop. The work is linear in n, and rule 1 looks
 * at the last 65536 bytes at most. */
ink_status repetition_guard(const char *text, size_t n, size_t min, size_t *keep);
#endif
