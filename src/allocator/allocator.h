/* allocator: what running trials should go on with. A pure function of what is known of them: no clock, no Slurm. Its
 * answer is a wish; the tuner carries it out by a checkpoint and a new run, or does not. */
#ifndef DT_ALLOCATOR_H
#define DT_ALLOCATOR_H

#include "monitor/monitor.h"
#include "space/space.h"

/* What a trial did on one configuration. */
struct dt_stretch {
    const double *x; /* borrowed */
    double pace;     /* steady seconds a step of its work; NaN: not known */
    double ps, worker; /* how busy the tasks of each role were, 0 to 1; NaN: not known */
};

/* A running trial. All of it is borrowed. */
struct dt_running {
    const struct dt_role_usages *usage; /* what is recent there is of the present configuration */
    double since; /* samples until then are of its start-up and do not count; seconds since the epoch */
    const struct dt_stretch *stretches; /* in order; the last is the present one, at least that is there */
    size_t n;
    const struct dt_stretch *others; /* of other trials with its hyperparameters */
    size_t nothers;
    double remaining; /* steps of its work that are left; NaN: not known */
    size_t left;      /* so many re-allocations it may still have, at least 1 */
};

struct dt_cluster;

enum dt_allocate_rule {
    DT_ALLOCATE_NONE,
    DT_ALLOCATE_THRESHOLDS, /* in the direction that the usage of the roles points to, a bold step at a time */
    DT_ALLOCATE_MODEL,      /* to the configuration that the law of work expects to be the fastest (model/work.h) */
    DT_ALLOCATE_SAVE,       /* to the smallest budgets that keep the speed that it began with */
};

struct dt_allocator {
    enum dt_allocate_rule rule;
    double high, low; /* a role is saturated at `high` or above, idle below `low`: fractions */
    size_t high_samples, low_samples; /* for so many samples in a row */
    double restart_s; /* what a re-allocation costs, measured; 0: not known yet */
    /* What its kinds of nodes mean in the space. */
    const struct dt_cluster *cluster; /* borrowed; NULL: not known, no role moves to other nodes */
    const char *constraint; /* of the job as submitted, or NULL; borrowed */
    bool mem_given;         /* the job says how much memory it may have */
};
#define DT_ALLOCATOR_INIT {.high = 0.9, .low = 0.3, .high_samples = 3, .low_samples = 10}

struct dt_wish {
    double *x;   /* owned; NULL: it should go on as it is */
    char *why;   /* owned; in words and numbers */
};

/* wishes[i] is for trials[i]. */
void dt_allocate(const struct dt_allocator *a, const struct dt_space *s, const struct dt_running *trials, size_t n,
                 struct dt_wish *wishes);
void dt_wish_free(struct dt_wish *w);

#endif
