#include "report/report.h"

#include <math.h>
#include <stdlib.h>

const struct dt_bound *dt_report_quality(const struct dt_study *s, struct dt_bound *objective)
{
    if (s->spec->quality.metric)
        return &s->spec->quality;
    if (s->spec->objective != DT_OBJECTIVE_METRIC)
        return NULL;
    *objective = (struct dt_bound){.metric = s->spec->metric, .at_least = s->spec->maximize};
    return objective;
}

static bool ended_well(const struct dt_study *s, const struct dt_trial *t)
{
    bool whole = t->status == DT_STATUS_OK || t->status == DT_STATUS_POOR;
    /* one that went on from another did only the rest of the work */
    return whole && t->state == DT_TRIAL_ENDED && !t->parent && dt_space_is_full(s->space, t->x);
}

/* The means over all that measured its configuration. */
static struct dt_merit merit_of(const struct dt_study *s, const struct dt_trial *first,
                                const struct dt_bound *quality)
{
    struct dt_merit m = {.t = first};
    double n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_trial *t = &s->trials[i];
        if ((t != first && t->again != first->id) || !ended_well(s, t))
            continue;
        const struct dt_metric *metric = quality ? dt_trial_metric(t, quality->metric) : NULL;
        double time = dt_trial_time(s, t);
        m.time += time;
        m.cost += time * t->billing;
        m.quality += metric ? metric->last : NAN;
        n++;
    }
    m.time /= n;
    m.cost /= n;
    m.quality /= n;
    return m;
}

/* Smaller or equal, or one of them is not known. */
static bool no_worse(double a, double b)
{
    return !(a > b);
}

static bool dominates(const struct dt_merit *a, const struct dt_merit *b, bool large)
{
    double qa = large ? -a->quality : a->quality, qb = large ? -b->quality : b->quality;
    bool better = a->time < b->time || a->cost < b->cost || qa < qb;
    return better && no_worse(a->time, b->time) && no_worse(a->cost, b->cost) && no_worse(qa, qb);
}

static int by_time(const void *a, const void *b)
{
    const struct dt_merit *x = a, *y = b;
    return x->time < y->time ? -1 : x->time > y->time ? 1 : x->t->id - y->t->id;
}

struct dt_merit *dt_report_front(const struct dt_study *s, size_t *n)
{
    struct dt_bound objective;
    const struct dt_bound *quality = dt_report_quality(s, &objective);
    struct dt_merit *all = dt_xcalloc(s->n + 1, sizeof(*all)),
                    *front = dt_xcalloc(s->n + 1, sizeof(*front));
    size_t m = 0;
    *n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_trial *t = &s->trials[i];
        if (!t->again && ended_well(s, t))
            all[m++] = merit_of(s, t, quality);
    }
    for (size_t i = 0; i < m; i++) {
        bool beaten = false;
        for (size_t j = 0; j < m && !beaten; j++)
            beaten = dominates(&all[j], &all[i], quality && quality->at_least);
        if (!beaten)
            front[(*n)++] = all[i];
    }
    qsort(front, *n, sizeof(*front), by_time);
    free(all);
    return front;
}
