/* pattern: a POSIX extended regular expression with exactly one group, which holds a number. */
#ifndef DT_PATTERN_H
#define DT_PATTERN_H

#include "util/util.h"

#include <regex.h>

/* Compiles it; the caller calls regfree(). Refuses what other languages know and POSIX takes for something else without
 * a word: \d, lazy repetition; and back-references, which may take for ever. */
int dt_pattern_compile(const char *text, regex_t *re, struct dt_error *e);

enum dt_pattern_form { DT_PATTERN_NONE, DT_PATTERN_ODD, DT_PATTERN_PLAIN, DT_PATTERN_PERCENT };
/* Looks for the first match in a line of n bytes, NULs among them perhaps, and a NUL behind them. NONE: no match. ODD: the group holds no number,
 * but s[from..to). PLAIN, PERCENT: *value is the number that the group begins with, as it stands there (93 for 93%),
 * NaN for nan and inf; PERCENT: a per cent sign follows it. */
enum dt_pattern_form dt_pattern_match(const regex_t *re, const char *s, size_t n, double *value,
                                      size_t *from, size_t *to);

#endif
