#include "tuner/tuner.h"

#include <math.h>
#include <stdlib.h>

/* Adds the points of one run; what an earlier run reported from where this one begins is gone. */
static void add_run(struct dt_curve *c, const struct dt_point *v, size_t n)
{
    while (n && c->n && c->step[c->n - 1] >= v[0].step)
        c->n--;
    for (size_t i = 0; i < n; i++)
        if (isfinite(v[i].value))
            dt_curve_add(c, &v[i]);
}

/* The course of the objective's metric over all runs of a trial; nothing of one at a lower
 * fidelity, which is no measure for others. dt_curve_free() it. */
static struct dt_curve curve_of(const struct dt_study *s, const struct dt_trial *t)
{
    const struct dt_metric *m = dt_trial_metric(t, s->spec->metric);
    size_t room = m ? m->series.n : 0;
    for (size_t i = 0; i < t->nparts; i++)
        room += t->parts[i].ncurve;
    struct dt_curve c = dt_curve_new(room);
    bool full = dt_space_is_full(s->space, t->x);
    for (size_t i = 0; i < t->nparts && full; i++)
        add_run(&c, t->parts[i].curve, t->parts[i].ncurve);
    if (m && full)
        add_run(&c, m->series.v, m->series.n);
    return c;
}

/* What is measured again is measured to its end, and so is what is cheap. */
static bool may_be_stopped(const struct dt_study *s, const struct dt_trial *t)
{
    return dt_space_is_full(s->space, t->x) && t->state == DT_TRIAL_STARTED && !t->again &&
           !t->pruned && !t->cancelling && isnan(t->t_target);
}

/* With the steps that SPEC does not give. False: not known yet. */
static bool pruner_of(const struct dt_study *s, const struct dt_curve *curves, struct dt_pruner *p)
{
    *p = s->spec->pruner;
    for (size_t i = 0; i < s->n && s->spec->pruner.max_step <= 0; i++)
        if (s->trials[i].status == DT_STATUS_OK && curves[i].n)
            p->max_step = fmax(p->max_step, curves[i].step[curves[i].n - 1]);
    if (p->min_step <= 0)
        p->min_step = p->max_step / (p->reduction * p->reduction * p->reduction);
    return p->min_step > 0;
}

int dt_study_hopeless(const struct dt_study *s, char **why)
{
    struct dt_pruner p;
    bool any = false;
    int id = 0;
    for (size_t i = 0; i < s->n && !any; i++)
        any = may_be_stopped(s, &s->trials[i]);
    if (s->spec->pruner.rule == DT_PRUNE_NONE || !any)
        return 0;
    struct dt_curve *curves = dt_xcalloc(s->n, sizeof(*curves));
    for (size_t i = 0; i < s->n; i++)
        curves[i] = curve_of(s, &s->trials[i]);
    bool known = pruner_of(s, curves, &p);
    for (size_t i = 0; i < s->n && !id && known; i++) {
        if (!may_be_stopped(s, &s->trials[i]))
            continue;
        *why = dt_prune_check(&p, curves, s->n, i, s->spec->maximize);
        id = *why ? s->trials[i].id : 0;
    }
    for (size_t i = 0; i < s->n; i++)
        dt_curve_free(&curves[i]);
    free(curves);
    return id;
}
