/* A carrier: a batch script of ours that brings along one line of JSON and the user's script, unchanged.
 *
 *     #!/bin/sh
 *     <header: #SBATCH lines, comments>
 *     exec 'PROGRAM' 'ARG' ... --carrier "$0" "$@"
 *     #DT-TUNE-JSON {"version":1,...}
 *     #DT-TUNE-SCRIPT
 *     <the user's script, byte for byte>
 *
 * The tuning job and every trial are carriers. job_submit builds one inside slurmctld, so this file uses nothing
 * but libc, allocates once, and never aborts. */
#ifndef DT_CARRIER_H
#define DT_CARRIER_H

#include <stddef.h>

/* Builds the text; `header` may be "". `argv` is NULL-terminated, absolute argv[0] first. `json` must be one line.
 * NULL when out of memory or when json holds a newline. Caller frees. */
char *dt_carrier_build(const char *header, const char *const *argv, const char *json, const char *script);

struct dt_carrier {
    const char *json;   /* borrowed from the text; not NUL-terminated */
    size_t json_len;
    const char *script; /* borrowed; to the end of the text */
};
/* Finds the parts. -1 where the text is no carrier. */
int dt_carrier_parse(const char *text, struct dt_carrier *c);

#endif
