/* What the files of dt-tune simulate share. */
#ifndef DT_SIMULATE_H
#define DT_SIMULATE_H

#include "expand/expand.h"
#include "history/history.h"

/* What the table has inside the domains and constraints of a SPEC, which the file `name` holds, but
 * what the cluster of the source (NULL: none) would never start. */
struct dt_space *replay_space(const struct dt_spec *spec, const char *name, const char *table,
                              struct dt_space_source *source, struct dt_error *e);

/* An earlier study: the SPEC's file, the table, the rest as dt_backend_replay() takes it. */
struct rehearsal {
    const char *spec, *table;
    uint64_t seed;
    double noise, failures;
};
/* Adds to the past, on the space `present`, what such a study tries from the start. */
int rehearse(const struct rehearsal *r, const struct dt_space *present, struct dt_past *p,
             struct dt_error *e);

#endif
