/* Numbers in text. Nothing but libc, for the plugins read numbers, too. */
#ifndef DT_NUMBER_H
#define DT_NUMBER_H

#include <stdint.h>

/* Whole-string numbers; 0 or -1. Locale-independent; NaN, Inf and trailing text are errors. */
int dt_parse_double(const char *s, double *out);
int dt_parse_int64(const char *s, int64_t *out);
/* Slurm's memory text: 4G, 512M, 1T, 2048K, plain = MiB; to MiB, rounded up. */
int dt_parse_mem(const char *s, uint64_t *mib);
/* Slurm's time text: min, min:s, h:m:s, d-h, d-h:m, d-h:m:s; to seconds. "UNLIMITED" gives
 * INFINITY. */
int dt_parse_time(const char *s, double *seconds);

#endif
