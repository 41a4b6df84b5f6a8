/* The rule of saving: the smallest budgets that keep the speed. From what the trial began with, one
 * budget after the other is halved by bisection, CPUs first, as long as the speed stays (PipeTune,
 * Rocha et al., Middleware 2020, looks for such a setting by trying them all; more of a resource
 * never makes a training slower, so bisection is enough). */
#include "allocator/allocator_private.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEEP 0.95 /* of the speed that it began with */

static const char *const budgets[] = {"worker_cpus", "ps_cpus", "worker_mem", "ps_mem"};
#define BUDGETS (sizeof(budgets) / sizeof(*budgets))

static bool equal_but_for(const struct dt_space *s, const double *a, const double *b, size_t i)
{
    for (size_t j = 0; j < s->n; j++)
        if (j != i && !dt_config_equal(a + j, b + j, 1))
            return false;
    return true;
}

/* Narrows down what is left of parameter i, with all others as in base: base[i] becomes the
 * smallest value that is known to keep the speed. Returns the row to try next, the middle of those
 * between that and the largest known not to keep it; NULL where there is none. */
static const double *halve(const struct dt_case *c, size_t i, double *base)
{
    const struct dt_stretch *v = c->t->stretches;
    double too_small = -INFINITY;
    for (size_t k = 0; k < c->t->n; k++) {
        if (!equal_but_for(c->s, v[k].x, base, i))
            continue;
        if (v[k].pace * KEEP <= v[0].pace)
            base[i] = fmin(base[i], v[k].x[i]);
        else
            too_small = fmax(too_small, v[k].x[i]);
    }
    size_t n = 0, *order;
    const double **between = dt_xcalloc(c->nrows + 1, sizeof(*between)), *middle = NULL;
    double *value = dt_xcalloc(c->nrows + 1, sizeof(*value));
    for (size_t k = 0; k < c->nrows; k++) {
        const double *row = c->rows + k * c->s->n;
        if (row[i] > too_small && row[i] < base[i] && equal_but_for(c->s, row, base, i)) {
            value[n] = row[i];
            between[n++] = row;
        }
    }
    order = dt_xcalloc(n + 1, sizeof(*order));
    if (n) {
        gsl_sort_index(order, value, 1, n);
        middle = between[order[n / 2]];
    }
    free(order);
    free(value);
    free(between);
    return middle;
}

/* What is given back is to be worth the restart, in which all that the trial has lies idle. */
static bool worth(const struct dt_case *c, const double *x, size_t i)
{
    double left = c->t->remaining * c->now->pace;
    return x[i] > c->now->x[i] || left * (1 - x[i] / c->now->x[i]) > c->a->restart_s;
}

struct dt_wish dt_rule_save(const struct dt_case *c)
{
    const struct dt_stretch *first = &c->t->stretches[0];
    struct dt_wish w = {0};
    if (!(first->pace > 0 && c->now->pace > 0))
        return w;
    double *base = dt_xcalloc(c->s->n, sizeof(double));
    memcpy(base, first->x, c->s->n * sizeof(double));
    for (size_t k = 0; k < BUDGETS && !w.x; k++) {
        int i = dt_space_index(c->s, budgets[k]);
        const double *x = i >= 0 && c->t->left > 1 ? halve(c, (size_t)i, base) : NULL;
        if (x && worth(c, x, (size_t)i))
            w = dt_wish_for(c, x,
                            dt_xasprintf("whether less %s keeps %.0f %% of the speed (%.4g s a "
                                         "step here, %.4g s at first)",
                                         budgets[k], 100 * KEEP, c->now->pace, first->pace));
    }
    if (!w.x && !dt_config_equal(base, c->now->x, c->s->n) && c->now->pace * KEEP > first->pace)
        w = dt_wish_for(c, base,
                        dt_xasprintf("too small: %.4g s a step here, %.4g s at first", c->now->pace,
                                     first->pace));
    free(base);
    return w;
}
