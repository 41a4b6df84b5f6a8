/* prune: which running trials are not worth running to their end, by the metric that they report. */
#ifndef DT_PRUNE_H
#define DT_PRUNE_H

#include "util/util.h"

enum dt_prune_rule { DT_PRUNE_NONE, DT_PRUNE_MEDIAN, DT_PRUNE_ASHA, DT_PRUNE_HYPERBAND, DT_PRUNE_PBT };

struct dt_pruner {
    enum dt_prune_rule rule;
    double min_step;  /* no trial is stopped before; the first rung. 0: max_step / reduction^3 */
    double max_step;  /* where trials end by themselves. 0: the farthest that one has come by its own end, and until one
                         has, none is stopped */
    double reduction; /* of the trials at a rung one in so many goes on; rungs are so many times apart */
    size_t startup;   /* median: so many trials have to have come as far */
    double interval;  /* pbt: members are looked at each time that they have come so many steps further */
    double quantile;  /* pbt: the share that gives way, and the share that is gone on from */
    double resample;  /* pbt: the chance of a hyperparameter to be drawn anew rather than perturbed */
};

/* What a trial has reported: steps that increase, values there, and when. Borrowed. */
struct dt_curve {
    const double *step, *value, *t;
    size_t n;
};

/* Whether trial `which` should be stopped for what it had reached at some step: the reason, which the caller frees, or
 * NULL. The decision about one step does not change with what others report later. Of pbt see population.h. */
char *dt_prune_check(const struct dt_pruner *p, const struct dt_curve *curves, size_t n, size_t which, bool maximize);

#endif
