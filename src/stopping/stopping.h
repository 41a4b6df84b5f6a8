/* stopping: when a study has seen enough. Every rule names itself in the report. */
#ifndef DT_STOPPING_H
#define DT_STOPPING_H

#include "optimizer/optimizer.h"

struct dt_stopping {
    size_t max_configs;  /* finished configurations */
    size_t min_configs;  /* before that the improvement rule is silent */
    size_t window;       /* configurations over which the best must have improved ... */
    double min_improve;  /* ... by more than this fraction */
    size_t max_failures; /* so many failures at the start, in a row, end the study */
    double deadline;     /* seconds since the study began; INFINITY */
    double max_node_hours; /* of all trials; INFINITY */
};

/* Both look at the finished observations, in the order in which they finished (VOID ones do not count). NULL: go on;
 * else the reason. Caller frees. */

/* The limits: no trial may run on. `now`: seconds since the study began. */
char *dt_stopping_limit(const struct dt_stopping *s, const struct dt_observation *finished, size_t n, double now,
                        double node_hours);
/* Whether more configurations promise nothing: no improvement over the window. `finished` without repeated measurements. */
char *dt_stopping_settled(const struct dt_stopping *s, const struct dt_observation *finished, size_t n, bool maximize);

#endif
