#include "optimizer/judge.h"
#include "model/portable.h"
#include "optimizer/belief.h"

#include <stdlib.h>

#define TIE 0.01 /* a score, a logarithm, that is no difference */

struct dt_judge {
    struct dt_belief *constant, *law;
    double log_weights; /* of both */
    struct dt_feasibility *feasible;
    struct dt_observed *margins; /* NULL where no quality is asked for, or none is known */
    struct dt_belief *quality;
    struct dt_observed *costs; /* NULL where cost does not matter */
    struct dt_belief *cost;
    double thrift; /* the power of the cost */
};

static double log_sum(double a, double b)
{
    double high = fmax(a, b), low = fmin(a, b);
    return high + dt_log(1 + dt_exp(low - high));
}

struct dt_judge *dt_judge_new(const struct dt_context *ctx, const struct dt_observed *o)
{
    struct dt_judge *j = dt_xcalloc(1, sizeof(*j));
    j->constant = dt_belief_new(o, false);
    j->law = dt_belief_new(o, true);
    j->log_weights =
        j->law ? log_sum(j->constant->log_weight, j->law->log_weight) : j->constant->log_weight;
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
    for (size_t i = 0; i < p->n; i++)
        score[i] -= j->log_weights;
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
    bool law = j->law && j->law->log_weight > j->constant->log_weight;
    dt_belief_mean(law ? j->law : j->constant, o, p, mean);
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
