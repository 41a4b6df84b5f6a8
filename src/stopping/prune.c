/* Asynchronous successive halving in its stopping form and its brackets, Hyperband (Li et al., "A
 * system for massively parallel hyperparameter tuning", MLSys 2020; "Hyperband", JMLR 2018), and
 * the median rule (Golovin et al., "Google Vizier", KDD 2017). */
#include "stopping/prune.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>

/* The first point at or beyond a step; c->n where the trial has not come so far. */
static size_t reach(const struct dt_curve *c, double step)
{
    size_t i = 0;
    while (i < c->n && c->step[i] < step)
        i++;
    return i;
}

static double oriented(double value, bool maximize)
{
    return maximize ? -value : value;
}

/* ---- successive halving ---- */

/* How often min_step can be multiplied by the reduction below max_step. */
static size_t brackets(const struct dt_pruner *p)
{
    size_t n = 1;
    for (double r = p->min_step * p->reduction; r < p->max_step; r *= p->reduction)
        n++;
    return n;
}

/* Hyperband gives the bracket whose first rung is min_step * reduction^k about reduction^(n-1-k) /
 * (n-k) of the trials; here each trial goes where most are missing. */
static size_t bracket_of(const struct dt_pruner *p, size_t which)
{
    size_t n = p->rule == DT_PRUNE_HYPERBAND ? brackets(p) : 1, chosen = 0;
    double *share = dt_xcalloc(2 * n, sizeof(double)), *given = share + n, size = 1;
    for (size_t k = n; k-- > 0; size *= p->reduction)
        share[k] = size / (double)(n - k);
    for (size_t i = 0; n > 1 && i <= which; i++) {
        chosen = 0;
        for (size_t k = 1; k < n; k++)
            if ((given[k] + 1) / share[k] < (given[chosen] + 1) / share[chosen])
                chosen = k;
        given[chosen]++;
    }
    free(share);
    return chosen;
}

/* Whether one in `reduction` of those who have come to the rung so far, at least one, is no worse.
 */
static bool survives(const struct dt_pruner *p, const struct dt_curve *curves, size_t n,
                     size_t which, double rung, bool maximize, size_t *better, size_t *others)
{
    const struct dt_curve *own = &curves[which];
    size_t at = reach(own, rung);
    double value = oriented(own->value[at], maximize);
    *better = *others = 0;
    for (size_t i = 0; i < n; i++) {
        size_t k = reach(&curves[i], rung);
        bool same = bracket_of(p, i) == bracket_of(p, which);
        if (i == which || !same || k >= curves[i].n || curves[i].t[k] > own->t[at])
            continue;
        (*others)++;
        *better += oriented(curves[i].value[k], maximize) < value;
    }
    return (double)*better < fmax(floor((double)(*others + 1) / p->reduction), 1);
}

static char *check_halving(const struct dt_pruner *p, const struct dt_curve *curves, size_t n,
                           size_t which, bool maximize)
{
    const struct dt_curve *own = &curves[which];
    double rung = p->min_step;
    size_t better, others;
    for (size_t i = bracket_of(p, which); i > 0; i--)
        rung *= p->reduction;
    for (; reach(own, rung) < own->n; rung *= p->reduction)
        if (!survives(p, curves, n, which, rung, maximize, &better, &others))
            return dt_xasprintf("at step %g %zu of %zu others were better; one in %g goes on", rung,
                                better, others, p->reduction);
    return NULL;
}

/* ---- median ---- */

static double mean_until(const struct dt_curve *c, size_t last)
{
    double sum = 0;
    for (size_t i = 0; i <= last; i++)
        sum += c->value[i];
    return sum / (double)(last + 1);
}

static double best_until(const struct dt_curve *c, size_t last, bool maximize)
{
    double best = c->value[0];
    for (size_t i = 1; i <= last; i++)
        if (oriented(c->value[i], maximize) < oriented(best, maximize))
            best = c->value[i];
    return best;
}

/* Worse at its best than half of the others on the average until there. */
static char *check_median(const struct dt_pruner *p, const struct dt_curve *curves, size_t n,
                          size_t which, bool maximize)
{
    const struct dt_curve *own = &curves[which];
    double *means = dt_xcalloc(n, sizeof(double));
    char *why = NULL;
    for (size_t at = reach(own, p->min_step); at < own->n && !why; at++) {
        size_t m = 0;
        for (size_t i = 0; i < n; i++) {
            size_t k = reach(&curves[i], own->step[at]);
            if (i != which && k < curves[i].n && curves[i].t[k] <= own->t[at])
                means[m++] = mean_until(&curves[i], k);
        }
        if (m < p->startup || m == 0)
            continue;
        gsl_sort(means, 1, m);
        double median = 0.5 * (means[(m - 1) / 2] + means[m / 2]),
               best = best_until(own, at, maximize);
        if (oriented(best, maximize) > oriented(median, maximize))
            why = dt_xasprintf("at step %g its best was %g, the median of %zu others %g",
                               own->step[at], best, m, median);
    }
    free(means);
    return why;
}

char *dt_prune_check(const struct dt_pruner *p, const struct dt_curve *curves, size_t n,
                     size_t which, bool maximize)
{
    switch (p->rule) {
    case DT_PRUNE_NONE:
    case DT_PRUNE_PBT:
        break;
    case DT_PRUNE_MEDIAN:
        return check_median(p, curves, n, which, maximize);
    case DT_PRUNE_ASHA:
    case DT_PRUNE_HYPERBAND:
        return check_halving(p, curves, n, which, maximize);
    }
    return NULL;
}
