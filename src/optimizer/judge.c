#include "optimizer/judge.h"
#include "model/portable.h"
#include "optimizer/acquire.h"
#include "optimizer/belief.h"
#include "optimizer/lessons.h"

#include <stdlib.h>
#include <string.h>

#define TIE 0.01 /* a score, a logarithm, that is no difference */

/* With a past: by how much the law is more likely than no law, and what all studies see together
 * than what this one sees alone, before anything was observed. On measured tables 3 to 100 made
 * little difference; the larger, the longer a past that is wrong is believed. */
#define FAITH 10

/* This share of a budget is kept for trials at the highest fidelity, which alone can be
 * recommended. */
#define LATE 0.2

struct dt_judge {
    struct dt_belief *constant, *law;
    struct dt_lessons *lessons; /* NULL where there is no past */
    double log_weights;         /* of all views */
    struct dt_doubts *doubts;
    struct dt_feasibility *feasible;
    struct dt_observed *margins; /* NULL where no quality is asked for, or none is known */
    struct dt_belief *quality;
    struct dt_observed *costs; /* NULL where cost does not matter */
    struct dt_belief *cost;
    double thrift; /* the power of the cost */
};

/* The views of the objective: a constant or the law of speed as prior mean, and with a past what
 * all studies see. */
static void look(struct dt_judge *j, const struct dt_context *ctx, const struct dt_observed *o)
{
    j->constant = dt_belief_new(o, false);
    j->law = dt_belief_new(o, true);
    j->lessons = dt_lessons_new(ctx, o);
    if (j->lessons) {
        j->constant->log_weight -= dt_log(FAITH);
        j->lessons->log_weight += dt_log(FAITH);
    }
    j->log_weights = j->constant->log_weight;
    if (j->law)
        j->log_weights = dt_log_sum(j->log_weights, j->law->log_weight);
    if (j->lessons)
        j->log_weights = dt_log_sum(j->log_weights, j->lessons->log_weight);
}

struct dt_judge *dt_judge_new(const struct dt_context *ctx, const struct dt_observed *o)
{
    struct dt_judge *j = dt_xcalloc(1, sizeof(*j));
    look(j, ctx, o);
    j->doubts = dt_doubts_new(ctx, o->encoding);
    j->feasible = dt_feasibility_new(o);
    j->margins = ctx->quality ? dt_observed_margins(ctx, o->encoding) : NULL;
    j->quality = j->margins && j->margins->known.n > 1 ? dt_belief_new(j->margins, false) : NULL;
    /* "cost cooling" (Lee et al., "Cost-aware Bayesian optimization", 2020): while much of the
     * budget is left, what is cheap teaches more; towards its end what counts is to find the best
     */
    j->thrift = ctx->budget_left;
    bool matters = j->thrift > 0 || dt_space_fidelity(ctx->space) >= 0;
    j->costs = matters ? dt_observed_costs(ctx, o->encoding) : NULL;
    j->cost = j->costs && j->costs->known.n ? dt_belief_new(j->costs, false) : NULL;
    return j;
}

void dt_judge_free(struct dt_judge *j)
{
    dt_belief_free(j->constant);
    dt_belief_free(j->law);
    dt_lessons_free(j->lessons);
    dt_doubts_free(j->doubts);
    dt_feasibility_free(j->feasible);
    dt_observed_free(j->margins);
    dt_belief_free(j->quality);
    dt_observed_free(j->costs);
    dt_belief_free(j->cost);
    free(j);
}

static void subtract_cost(const struct dt_judge *j, const struct dt_points *p, double *score)
{
    double *cost = dt_xcalloc(p->n, sizeof(double));
    dt_belief_mean(j->cost, j->costs, p, cost, NULL);
    for (size_t i = 0; i < p->n; i++)
        score[i] -= j->thrift * cost[i];
    free(cost);
}

double *dt_judge_score(const struct dt_judge *j, const struct dt_observed *o,
                       const struct dt_points *p)
{
    double *score = dt_xcalloc(p->n, sizeof(double));
    for (size_t i = 0; i < p->n; i++)
        score[i] = -INFINITY;
    dt_belief_score(j->constant, o, p, score);
    if (j->law)
        dt_belief_score(j->law, o, p, score);
    if (j->lessons)
        dt_lessons_score(j->lessons, o, p, score);
    for (size_t i = 0; i < p->n; i++)
        score[i] -= j->log_weights;
    if (j->doubts)
        dt_doubts_score(j->doubts, p, score);
    if (j->feasible)
        dt_feasibility_score(j->feasible, o, p, score);
    if (j->quality)
        dt_belief_chance(j->quality, j->margins, 0, p, score);
    if (j->cost && j->thrift > 0)
        subtract_cost(j, p, score);
    return score;
}

double *dt_judge_mean(const struct dt_judge *j, const struct dt_observed *o,
                      const struct dt_points *p, double *sd)
{
    double *mean = dt_xcalloc(p->n + 1, sizeof(double));
    const struct dt_belief *b =
        j->law && j->law->log_weight > j->constant->log_weight ? j->law : j->constant;
    if (j->lessons && j->lessons->log_weight > b->log_weight)
        dt_lessons_mean(j->lessons, o, p, mean, sd);
    else
        dt_belief_mean(b, o, p, mean, sd);
    return mean;
}

/* ---- the fidelity ---- */

/* Whether a configuration was tried, or is, at this fidelity or a higher one. */
static bool is_answered(const struct dt_context *ctx, const double *x)
{
    size_t f = (size_t)dt_space_fidelity(ctx->space);
    for (size_t i = 0; i < ctx->nobs; i++)
        if (ctx->obs[i].x[f] >= x[f] && dt_space_same_work(ctx->space, ctx->obs[i].x, x))
            return true;
    return false;
}

/* How likely a trial at p's second point, of a lower fidelity, is to tell that y is above the limit
 * at its first: the chance that it is, times the part of the doubt that goes. */
static double warning(const struct dt_belief *b, const struct dt_observed *o, double limit,
                      const struct dt_points *p)
{
    double chance[2] = {0};
    dt_belief_chance(b, o, limit, p, chance);
    return (1 - dt_exp(chance[0])) * dt_belief_told(b, o, p->x, p->x + o->encoding->kernel.columns);
}

/* What the second costs as a fraction of the first; about as its fidelity while nothing is known.
 */
static double relative_cost(const struct dt_judge *j, const struct dt_points *p,
                            const struct dt_space *s)
{
    double cost[2] = {0}, ratio = dt_log_fidelity(s, p->raw[1]);
    if (!j->cost)
        return dt_exp(ratio);
    dt_belief_mean(j->cost, j->costs, p, cost, NULL);
    return dt_exp(cost[1] - cost[0] + j->costs->slope * ratio);
}

/* Whether the cost of the trial at the highest fidelity that the one at the lower is expected to
 * spare, by telling that it is of no use, is more than its own. */
static bool is_worth_it(const struct dt_judge *j, const struct dt_observed *o, const double *full,
                        const double *cheap)
{
    struct dt_points p = {0};
    const struct dt_belief *b =
        j->law && j->law->log_weight > j->constant->log_weight ? j->law : j->constant;
    dt_points_add(&p, o->encoding, full);
    dt_points_add(&p, o->encoding, cheap);
    double silence = 1 - warning(b, o, o->best, &p);
    if (j->quality)
        silence *= 1 - warning(j->quality, j->margins, 0, &p);
    bool worth = 1 - silence > relative_cost(j, &p, o->encoding->space);
    dt_points_free(&p);
    return worth;
}

/* The lowest fidelity that is worth its cost, as in BOCA (Kandasamy et al., "Multi-fidelity
 * Bayesian optimisation with continuous approximations", ICML 2017): there the lowest of which the
 * doubt is above a threshold that grows with its cost. */
void dt_judge_fidelity(const struct dt_judge *j, const struct dt_context *ctx,
                       const struct dt_observed *o, double *x)
{
    const struct dt_space *s = ctx->space;
    int f = dt_space_fidelity(s);
    bool late = ctx->budget_left > 0 && ctx->budget_left < LATE;
    if (f < 0 || ctx->conclude || late)
        return;
    double *lower, *cheap = dt_xcalloc(s->n, sizeof(double)), chosen = x[f];
    size_t n = dt_param_lower(&s->params[f], &lower);
    memcpy(cheap, x, s->n * sizeof(double));
    for (size_t i = 0; i < n && chosen == x[f]; i++) {
        cheap[f] = lower[i];
        bool open = !is_answered(ctx, cheap) && dt_space_has(s, cheap);
        if (open && is_worth_it(j, o, x, cheap))
            chosen = lower[i];
    }
    x[f] = chosen;
    free(lower);
    free(cheap);
}

static double tasks(const struct dt_space *s, const double *x)
{
    return dt_space_value(s, x, "ps", 0) + dt_space_value(s, x, "workers", 0);
}

size_t dt_judge_choose(const struct dt_space *s, const struct dt_points *p, const double *score)
{
    size_t best = 0, chosen;
    for (size_t i = 1; i < p->n; i++)
        if (score[i] > score[best])
            best = i;
    chosen = best;
    for (size_t i = 0; i < p->n; i++)
        if (score[i] >= score[best] - TIE && tasks(s, p->raw[i]) < tasks(s, p->raw[chosen]))
            chosen = i;
    return chosen;
}
