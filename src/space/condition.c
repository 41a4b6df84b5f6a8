/* Conditions: which parameters take part in a configuration, and walks that respect them. */
#include "space/space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- walks ---- */

static void walk_from(struct dt_walk *w, size_t k)
{
    const struct dt_conditions *c = w->conditions;
    for (; k < c->n; k++) {
        size_t i = c->order[k];
        bool takes = (!w->among || w->among[i]) && dt_conditions_active(c, w->x, i);
        w->digit[i] = 0;
        w->x[i] = takes ? w->value(&c->params[i], 0, w->arg) : NAN;
    }
}

static size_t all_of(const struct dt_param *p, const void *arg)
{
    double n = dt_param_count(p);
    (void)arg;
    return isfinite(n) ? (size_t)n : 1;
}

static double nth_of(const struct dt_param *p, size_t i, const void *arg)
{
    (void)arg;
    return dt_param_nth(p, i);
}

void dt_walk_start(struct dt_walk *w)
{
    size_t n = w->conditions->n;
    if (!w->count) {
        w->count = all_of;
        w->value = nth_of;
    }
    w->x = dt_xcalloc(n, sizeof(*w->x));
    w->digit = dt_xcalloc(n, sizeof(*w->digit));
    walk_from(w, 0);
}

bool dt_walk_next(struct dt_walk *w)
{
    const struct dt_conditions *c = w->conditions;
    for (size_t k = c->n; k-- > 0;) {
        size_t i = c->order[k];
        if (isnan(w->x[i]) || w->digit[i] + 1 >= w->count(&c->params[i], w->arg))
            continue;
        w->x[i] = w->value(&c->params[i], ++w->digit[i], w->arg);
        walk_from(w, k + 1);
        return true;
    }
    return false;
}

void dt_walk_end(struct dt_walk *w)
{
    free(w->x);
    free(w->digit);
    w->x = NULL;
    w->digit = NULL;
}

/* ---- what is active ---- */

bool dt_conditions_active(const struct dt_conditions *c, const double *x, size_t i)
{
    return !c->when[i] || dt_condition_holds(c->when[i], x);
}

void dt_conditions_settle(const struct dt_conditions *c, double *x)
{
    for (size_t k = 0; k < c->n; k++)
        if (!dt_conditions_active(c, x, c->order[k]))
            x[c->order[k]] = NAN;
}

void dt_conditions_free(struct dt_conditions *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++)
        dt_constraint_free(c->when[i]);
    free(c->when);
    free(c->order);
    free(c->mentioned);
    free(c);
}

/* ---- checks ---- */

static int fail_at(const struct dt_param *p, struct dt_error *e)
{
    return p->when_place ? dt_fail_at(e, "%s", p->when_place) : dt_fail_at(e, "%s", p->name);
}

static int compile(struct dt_conditions *c, const struct dt_fact *facts, size_t nfacts,
                   struct dt_error *e)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct dt_param *p = &c->params[i];
        if (!p->when)
            continue;
        c->when[i] = dt_condition_new(p->when, c->params, c->n, facts, nfacts, e);
        if (!c->when[i])
            return fail_at(p, e);
        if (dt_constraint_mentions(c->when[i], i)) {
            dt_fail(e,
                    "condition \"%s\": it says when %s has a value, so it cannot mention %s; use "
                    "other parameters",
                    p->when, p->name, p->name);
            return fail_at(p, e);
        }
        for (size_t j = 0; j < c->n; j++)
            c->mentioned[j] |= dt_constraint_mentions(c->when[i], j);
    }
    return 0;
}

static bool depends(const struct dt_conditions *c, size_t i, size_t j)
{
    return c->when[i] && dt_constraint_mentions(c->when[i], j);
}

/* A parameter that is not done and that i depends on; c->n: none. */
static size_t waits_for(const struct dt_conditions *c, size_t i, const bool *done)
{
    size_t j = 0;
    while (j < c->n && (done[j] || !depends(c, i, j)))
        j++;
    return j;
}

/* Of those that are not done each waits for another one, and some in a circle. */
static int fail_circle(const struct dt_conditions *c, const bool *done, struct dt_error *e)
{
    size_t first = 0;
    while (done[first])
        first++;
    for (size_t k = 0; k < c->n; k++) /* so many steps lead into the circle */
        first = waits_for(c, first, done);
    for (size_t i = waits_for(c, first, done), start = first; i != start; i = waits_for(c, i, done))
        first = i < first ? i : first;
    struct dt_buf b = DT_BUF_INIT;
    size_t i = first;
    do {
        dt_buf_addf(&b, "%s on ", c->params[i].name);
        i = waits_for(c, i, done);
    } while (i != first);
    dt_fail(e, "conditions go round in a circle: %s%s; take one of these out", b.s,
            c->params[first].name);
    dt_buf_free(&b);
    return fail_at(&c->params[first], e);
}

static int sort(struct dt_conditions *c, struct dt_error *e)
{
    bool *done = dt_xcalloc(c->n, sizeof(*done));
    int rc = 0;
    for (size_t k = 0; k < c->n && rc == 0; k++) {
        size_t i = 0;
        while (i < c->n && (done[i] || waits_for(c, i, done) < c->n))
            i++;
        if (i == c->n) {
            rc = fail_circle(c, done, e);
        } else {
            done[i] = true;
            c->order[k] = i;
        }
    }
    free(done);
    return rc;
}

/* All that decides whether parameter i is active. Caller frees. */
static bool *deciders(const struct dt_conditions *c, size_t i)
{
    bool *among = dt_xcalloc(c->n, sizeof(*among));
    for (size_t j = 0; j < c->n; j++)
        among[j] = depends(c, i, j);
    for (size_t k = c->n; k-- > 0;)
        for (size_t j = 0; among[c->order[k]] && j < c->n; j++)
            among[j] |= depends(c, c->order[k], j);
    return among;
}

static bool is_continuous(const struct dt_walk *w)
{
    const struct dt_conditions *c = w->conditions;
    for (size_t i = 0; i < c->n; i++)
        if (!isnan(w->x[i]) && isinf(dt_param_count(&c->params[i])))
            return true;
    return false;
}

/* Whether the condition of parameter i can hold: where so many values have to be tried that one
 * cannot tell, yes. */
static bool may_hold(const struct dt_conditions *c, size_t i)
{
    bool *among = deciders(c, i), holds = false, more = true;
    struct dt_walk w = {.conditions = c, .among = among};
    dt_walk_start(&w);
    for (size_t steps = 0; more && !holds; steps++) {
        holds =
            steps == DT_SPACE_ENUMERATED || is_continuous(&w) || dt_conditions_active(c, w.x, i);
        more = dt_walk_next(&w);
    }
    dt_walk_end(&w);
    free(among);
    return holds;
}

/* Whether facts have a say in it; such a condition may well never hold on one cluster and hold on
 * another. */
static bool uses_facts(const struct dt_conditions *c, size_t i)
{
    struct dt_constraint *alone =
        c->when[i] ? dt_condition_new(c->params[i].when, c->params, c->n, NULL, 0, NULL) : NULL;
    bool uses = c->when[i] && !alone;
    dt_constraint_free(alone);
    for (size_t j = 0; j < c->n && !uses; j++)
        uses = depends(c, i, j) && uses_facts(c, j);
    return uses;
}

static int check_hold(const struct dt_conditions *c, struct dt_error *e)
{
    for (size_t k = 0; k < c->n; k++) {
        size_t i = c->order[k];
        if (!c->when[i] || may_hold(c, i) || uses_facts(c, i))
            continue;
        dt_fail(e,
                "condition \"%s\": it holds for no values of the parameters, so %s would never "
                "have one; loosen it, or take %s out",
                c->params[i].when, c->params[i].name, c->params[i].name);
        return fail_at(&c->params[i], e);
    }
    return 0;
}

struct dt_conditions *dt_conditions_new(const struct dt_param *params, size_t n,
                                        const struct dt_fact *facts, size_t nfacts,
                                        struct dt_error *e)
{
    struct dt_conditions *c = dt_xcalloc(1, sizeof(*c));
    c->params = params;
    c->n = n;
    c->when = dt_xcalloc(n, sizeof(*c->when));
    c->order = dt_xcalloc(n, sizeof(*c->order));
    c->mentioned = dt_xcalloc(n, sizeof(*c->mentioned));
    if (compile(c, facts, nfacts, e) == 0 && sort(c, e) == 0 && check_hold(c, e) == 0)
        return c;
    dt_conditions_free(c);
    return NULL;
}
