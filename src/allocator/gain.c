/* The rule of gain: to where the work is expected to be done soonest, by the law of work, if that
 * is worth a restart. */
#include "allocator/allocator_private.h"
#include "model/work.h"

#include <math.h>
#include <stdlib.h>

#define REACH 8       /* times as many tasks of a role, or as few, as where it was fastest */
#define PROMISED 1.05 /* times as fast: less is within the law's error */

static size_t take(struct dt_worked *o, size_t n, const struct dt_stretch *v, size_t nv)
{
    for (size_t i = 0; i < nv; i++)
        if (v[i].pace > 0 && isfinite(v[i].worker))
            o[n++] = (struct dt_worked){v[i].x, v[i].pace, v[i].worker};
    return n;
}

static bool learn(const struct dt_case *c, struct dt_work *law)
{
    struct dt_worked *o = dt_xcalloc(c->t->n + c->t->nothers, sizeof(*o));
    size_t n = take(o, take(o, 0, c->t->stretches, c->t->n), c->t->others, c->t->nothers);
    bool known = dt_work_fit(c->s, o, n, law);
    free(o);
    return known;
}

/* How much of the configuration changes: of equals the nearest is taken. */
static size_t changes(const struct dt_case *c, const double *x)
{
    size_t n = 0;
    for (size_t i = 0; i < c->s->n; i++)
        n += !dt_config_equal(x + i, c->now->x + i, 1);
    return n;
}

/* A law that is learnt from few runs is not believed at any distance. */
static bool within_reach(const struct dt_case *c, const double *from, const double *x)
{
    static const char *const counts[] = {"ps", "workers"};
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        double a = dt_space_value(c->s, from, counts[i], 1),
               b = dt_space_value(c->s, x, counts[i], 1);
        if (b > REACH * a || a > REACH * b)
            return false;
    }
    return true;
}

static const double *fastest_new(const struct dt_case *c, const struct dt_stretch *seen,
                                 const struct dt_work *law, double *pace)
{
    const double *best = NULL;
    *pace = INFINITY;
    for (size_t k = 0; k < c->nrows; k++) {
        const double *row = c->rows + k * c->s->n;
        double p = dt_work_pace(c->s, row, law);
        bool better = p < *pace || (p == *pace && best && changes(c, row) < changes(c, best));
        if (better && !dt_case_visited(c, row) && within_reach(c, seen->x, row)) {
            best = row;
            *pace = p;
        }
    }
    return best;
}

static const struct dt_stretch *fastest_seen(const struct dt_case *c)
{
    const struct dt_stretch *best = c->now;
    for (size_t i = 0; i < c->t->n; i++)
        if (c->t->stretches[i].pace < best->pace)
            best = &c->t->stretches[i];
    return best;
}

struct dt_wish dt_rule_model(const struct dt_case *c)
{
    const struct dt_stretch *seen = fastest_seen(c);
    struct dt_work law;
    double pace;
    if (!(c->now->pace > 0) || !learn(c, &law))
        return (struct dt_wish){0};
    const double *x = fastest_new(c, seen, &law, &pace);
    bool untried = x && seen->pace >= PROMISED * pace && (c->t->left > 1 || c->t->n == 1);
    if (!untried && seen != c->now) { /* the last one is kept to take a step back */
        x = seen->x;
        pace = seen->pace;
    }
    char *worth;
    if ((!untried && seen == c->now) || !dt_case_worth(c, c->now->pace - pace, &worth))
        return (struct dt_wish){0};
    char *loads = dt_loads_text(c->ps, c->worker);
    char *why = dt_xasprintf("%s: %.4g s a step here, %.4g s %s there: %s", loads, c->now->pace,
                             pace, untried ? "expected" : "measured", worth);
    free(loads);
    free(worth);
    return dt_wish_for(c, x, why);
}
