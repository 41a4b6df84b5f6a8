#include "stopping/population.h"

#include <math.h>
#include <stdlib.h>

/* The last step that was to be looked at, if it has just been come to; NaN: none was. Whoever has
 * new hyperparameters gets half an interval at least to show what they are worth. */
static double step_reached(const struct dt_pruner *p, const struct dt_member *m)
{
    const struct dt_curve *c = &m->curve;
    if (!c->n)
        return NAN;
    double step = floor(c->step[c->n - 1] / p->interval + 1e-9) * p->interval;
    bool early = step < fmax(p->min_step, p->interval) || !(step >= m->from + p->interval / 2);
    bool before = c->n > 1 && c->step[c->n - 2] >= step;
    bool late = p->max_step > 0 && step >= p->max_step;
    return early || before || late ? NAN : step;
}

static bool was_there(const struct dt_member *m, double t)
{
    return m->begin <= t && t < m->end;
}

/* What a member had come to at a step, or by a time as far as it was then: the smaller, the better.
 * NaN: nothing. */
static double standing(const struct dt_member *m, double step, double t, bool maximize)
{
    const struct dt_curve *c = &m->curve;
    size_t i = 0;
    if (!was_there(m, t))
        return NAN;
    while (i + 1 < c->n && c->step[i] < step && c->t[i + 1] <= t)
        i++;
    if (!c->n || c->t[i] > t)
        return NAN;
    return isnan(c->value[i]) ? INFINITY : maximize ? -c->value[i] : c->value[i];
}

static size_t count_better(const double *v, size_t n, size_t than)
{
    size_t better = 0;
    for (size_t i = 0; i < n; i++)
        better += v[i] < v[than];
    return better;
}

/* One of the best `share`, each with the same chance; -1 where none of them can be gone on from. */
static int choose(const struct dt_member *members, const double *v, size_t n, size_t share,
                  size_t which, gsl_rng *rng)
{
    size_t *best = dt_xcalloc(n, sizeof(*best)), nbest = 0;
    for (size_t i = 0; i < n; i++)
        if (members[i].running && v[i] < v[which] && count_better(v, n, i) < share)
            best[nbest++] = i;
    int chosen = nbest ? (int)best[gsl_rng_uniform_int(rng, nbest)] : -1;
    free(best);
    return chosen;
}

int dt_population_gives_way(const struct dt_pruner *p, const struct dt_member *members, size_t n,
                            size_t which, bool maximize, gsl_rng *rng, char **why)
{
    const struct dt_curve *own = &members[which].curve;
    double step = members[which].running ? step_reached(p, &members[which]) : NAN;
    if (isnan(step))
        return -1;
    double *v = dt_xcalloc(n, sizeof(*v)), t = own->t[own->n - 1];
    size_t all = 0;
    for (size_t i = 0; i < n; i++) {
        v[i] = standing(&members[i], step, t, maximize);
        all += was_there(&members[i], t);
    }
    size_t share = (size_t)fmin(ceil(p->quantile * (double)all), floor((double)all / 2));
    size_t better = count_better(v, n, which);
    int parent = share && better + share >= all ? choose(members, v, n, share, which, rng) : -1;
    if (parent >= 0)
        *why = dt_xasprintf("at step %g %zu of %zu others were better", step, better, all - 1);
    free(v);
    return parent;
}

/* NaN, too, where nothing would be left to do for one that goes on from it. */
static double promise(const struct dt_pruner *p, const struct dt_member *m, double t, bool maximize)
{
    const struct dt_curve *c = &m->curve;
    double x = m->running ? standing(m, INFINITY, t, maximize) : NAN;
    bool over = c->n && p->max_step > 0 && c->step[c->n - 1] >= p->max_step;
    return isfinite(x) && !over ? x : NAN;
}

int dt_population_successor(const struct dt_pruner *p, const struct dt_member *members, size_t n,
                            double t, bool maximize, gsl_rng *rng)
{
    double *v = dt_xcalloc(n + 1, sizeof(*v));
    size_t *best = dt_xcalloc(n + 1, sizeof(*best)), all = 0, nbest = 0;
    for (size_t i = 0; i < n; i++) {
        v[i] = promise(p, &members[i], t, maximize);
        all += !isnan(v[i]);
    }
    for (size_t i = 0; i < n; i++)
        if (!isnan(v[i]) && (double)count_better(v, n, i) < fmax(p->quantile * (double)all, 1))
            best[nbest++] = i;
    int chosen = nbest ? (int)best[gsl_rng_uniform_int(rng, nbest)] : -1;
    free(best);
    free(v);
    return chosen;
}
