/* population: which member of a population gives way to which (Jaderberg et al., "Population based
 * training of neural networks", 2017: truncation selection). */
#ifndef DT_POPULATION_H
#define DT_POPULATION_H

#include "stopping/prune.h"

#include <gsl/gsl_rng.h>

struct dt_member {
    struct dt_curve curve; /* with that of the trials which it goes on from; a value may be NaN, the
                              worst of all */
    double from; /* where its present run began: it is not looked at before half an interval later;
                    NaN: not yet */
    bool running;
    double begin,
        end; /* when it was a member: from then on, and no longer then; seconds since the epoch */
};

/* Whether member `which` has just come to a step at which it gives way: the index of the member to
 * go on from, and why (caller frees); -1: it does not. Its value there is compared with those that
 * the others had by then, at the same step or as far as they were; one that had none yet may be
 * worse. Later reports, and who joined or left later, change nothing. */
int dt_population_gives_way(const struct dt_pruner *p, const struct dt_member *members, size_t n,
                            size_t which, bool maximize, gsl_rng *rng, char **why);

/* Whom the place of one that has failed goes on from at time t: one of the best `quantile` of those
 * that run, by what they have come to, each with the same chance; -1: none of them has reported
 * anything, or all are at their last steps. */
int dt_population_successor(const struct dt_pruner *p, const struct dt_member *members, size_t n,
                            double t, bool maximize, gsl_rng *rng);

#endif
