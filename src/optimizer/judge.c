#include "optimizer/judge.h"
#include "model/portable.h"
#include "optimizer/acquire.h"
#include "optimizer/belief.h"
#include "optimizer/lessons.h"

#include <stdlib.h>

#define TIE 0.01 /* a score, a logarithm, that is no difference */

/* With a past: by how much the law is more likely than no law, and what all studies see together
 * than what this one sees alone, before anything was observed. On measured tables 3 to 100 made
 * little difference; the larger, the longer a past that is wrong is believed. */
#define FAITH 10

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
    j->costs = j->thrift > 0 ? dt_observed_costs(ctx, o->encoding) : NULL;
    j->cost = j->costs ? dt_belief_new(j->costs, false) : NULL;
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
    dt_belief_mean(j->cost, j->costs, p, cost);
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
        dt_belief_chance(j->quality, j->margins, p, score);
    if (j->cost)
        subtract_cost(j, p, score);
    return score;
}

double *dt_judge_mean(const struct dt_judge *j, const struct dt_observed *o,
                      const struct dt_points *p)
{
    double *mean = dt_xcalloc(p->n + 1, sizeof(double));
    const struct dt_belief *b =
        j->law && j->law->log_weight > j->constant->log_weight ? j->law : j->constant;
    if (j->lessons && j->lessons->log_weight > b->log_weight)
        dt_lessons_mean(j->lessons, o, p, mean);
    else
        dt_belief_mean(b, o, p, mean);
    return mean;
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
