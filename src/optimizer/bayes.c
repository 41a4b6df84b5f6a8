/* Bayesian optimization: after a few space-filling configurations the one with the largest expected
 * improvement, where two views of the objective (a constant or the law of speed as prior mean) are
 * averaged by their evidence, times the probability that it runs at all. Nothing is kept between
 * calls: the context alone decides, bit for bit. */
#include "optimizer/algorithms.h"
#include "optimizer/belief.h"
#include "optimizer/pool.h"
#include "model/portable.h"

#include <stdlib.h>
#include <string.h>

#define START 3         /* space-filling configurations */
#define START_DRAWS 20  /* of so many random ones the farthest from all others is taken */
#define LEARN_FROM 2    /* finished ones that a model needs */
#define KNOWN_MAX 256   /* observations in the model */
#define SCREEN_KNOWN 64 /* where both are larger: a model of so many observations ... */
#define SCREEN_POOL 500 /* ... picks so many points for the model of all */
#define TIE 0.01        /* a score, a logarithm, that is no difference */

/* ---- the start ---- */

static double nearest(const struct dt_kernel *k, const struct dt_points *p, const double *x)
{
    double least = INFINITY;
    for (size_t i = 0; i < p->n; i++)
        least = fmin(least, dt_distance2(k, p->x + i * k->columns, x));
    return least;
}

static double *middle_of(const struct dt_kernel *k, const struct dt_points *p)
{
    double *middle = dt_xcalloc(k->columns, sizeof(double));
    for (size_t i = 0; i < p->n; i++)
        for (size_t c = 0; c < k->columns; c++)
            middle[c] += p->x[i * k->columns + c] / (double)p->n;
    return middle;
}

/* The first lies in the middle, the next ones far from all others and where they are likely to run.
 */
static size_t fill(const struct dt_observed *o, const struct dt_pool *pool, gsl_rng *rng)
{
    const struct dt_kernel *k = &o->encoding->kernel;
    size_t tried = o->known.n + o->pending.n + o->failed.n, draws = tried < START ? START_DRAWS : 5,
           chosen = 0;
    double *middle = middle_of(k, &pool->p), farthest = -INFINITY;
    double *log_chance = dt_xcalloc(pool->p.n, sizeof(double));
    struct dt_feasibility *f = dt_feasibility_new(o);
    if (f)
        dt_feasibility_score(f, o, &pool->p, log_chance);
    for (size_t t = 0; t < draws; t++) {
        size_t j = gsl_rng_uniform_int(rng, pool->p.n);
        const double *x = pool->p.x + j * k->columns;
        double far = fmin(nearest(k, &o->known, x),
                          fmin(nearest(k, &o->pending, x), nearest(k, &o->failed, x)));
        if (tried == 0)
            far = -dt_distance2(k, x, middle);
        far *= dt_exp(log_chance[j]);
        if (far > farthest) {
            farthest = far;
            chosen = j;
        }
    }
    dt_feasibility_free(f);
    free(log_chance);
    free(middle);
    return chosen;
}

/* ---- the search ---- */

struct judge {
    struct dt_belief *constant, *law;
    struct dt_feasibility *feasible;
    const struct dt_observed *o;
};

static struct judge judge_new(const struct dt_observed *o)
{
    return (struct judge){dt_belief_new(o, false), dt_belief_new(o, true), dt_feasibility_new(o),
                          o};
}

static void judge_free(struct judge *j)
{
    dt_belief_free(j->constant);
    dt_belief_free(j->law);
    dt_feasibility_free(j->feasible);
}

/* Caller frees. */
static double *scores(const struct judge *j, const struct dt_observed *o, const struct dt_points *p)
{
    double *score = dt_xcalloc(p->n, sizeof(double));
    for (size_t i = 0; i < p->n; i++)
        score[i] = -INFINITY;
    dt_belief_score(j->constant, o, p, score);
    if (j->law)
        dt_belief_score(j->law, o, p, score);
    if (j->feasible)
        dt_feasibility_score(j->feasible, o, p, score);
    return score;
}

static double tasks(const struct dt_space *s, const double *x)
{
    return dt_space_value(s, x, "ps", 0) + dt_space_value(s, x, "workers", 0);
}

/* The best; among about equals the one that takes the fewest tasks. */
static size_t choose(const struct dt_space *s, const struct dt_points *p, const double *score)
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

/* Replaces a large pool by its most promising points. */
static void screen(const struct judge *j, struct dt_pool **pool)
{
    if (j->o->known.n <= SCREEN_KNOWN || (*pool)->p.n <= SCREEN_POOL)
        return;
    struct dt_observed *few = dt_observed_thin(j->o, SCREEN_KNOWN);
    double *score = scores(j, few, &(*pool)->p);
    struct dt_pool *best = dt_pool_best(*pool, j->o->encoding, score, SCREEN_POOL);
    dt_pool_free(*pool);
    *pool = best;
    free(score);
    dt_observed_free(few);
}

/* Climbs from x, where the score is `at`, by ever smaller variations. */
static void refine(const struct dt_context *ctx, const struct judge *j, double *x, double at,
                   gsl_rng *rng)
{
    for (double reach = 0.2; reach > 0.001; reach /= 2) {
        struct dt_pool *around = dt_pool_around(ctx, j->o->encoding, x, reach, 60, rng);
        if (around->p.n) {
            double *score = scores(j, j->o, &around->p);
            size_t best = choose(ctx->space, &around->p, score);
            if (score[best] > at) {
                at = score[best];
                memcpy(x, around->p.raw[best], ctx->space->n * sizeof(double));
            }
            free(score);
        }
        dt_pool_free(around);
    }
}

static void search(const struct dt_context *ctx, const struct dt_observed *o, struct dt_pool **pool,
                   gsl_rng *rng, double *x)
{
    struct judge j = judge_new(o);
    screen(&j, pool);
    double *score = scores(&j, o, &(*pool)->p);
    size_t chosen = choose(ctx->space, &(*pool)->p, score);
    memcpy(x, (*pool)->p.raw[chosen], ctx->space->n * sizeof(double));
    if (!ctx->space->enumerated)
        refine(ctx, &j, x, score[chosen], rng);
    free(score);
    judge_free(&j);
}

static struct dt_observed *observe(const struct dt_context *ctx, const struct dt_encoding *e)
{
    struct dt_observed *all = dt_observed_new(ctx, e);
    if (all->known.n <= KNOWN_MAX)
        return all;
    struct dt_observed *some = dt_observed_thin(all, KNOWN_MAX);
    dt_observed_free(all);
    return some;
}

static int suggest(void *cache, const struct dt_context *ctx, double *x, struct dt_error *e)
{
    struct dt_encoding *encoding = dt_encoding_new(ctx->space);
    struct dt_observed *o = observe(ctx, encoding);
    gsl_rng *rng = dt_rng_new(dt_rng_stream(ctx));
    struct dt_pool *pool = dt_pool_new(ctx, o, rng);
    bool start =
        o->known.n + o->pending.n < START || o->known.n < LEARN_FROM || o->nok < LEARN_FROM;
    int rc = pool->p.n > 0;
    (void)cache;
    if (rc && start)
        memcpy(x, pool->p.raw[fill(o, pool, rng)], ctx->space->n * sizeof(double));
    else if (rc)
        search(ctx, o, &pool, rng, x);
    else if (!ctx->space->enumerated)
        rc = dt_fail(e, "no random configuration was both allowed and new; loosen the constraints");
    dt_pool_free(pool);
    gsl_rng_free(rng);
    dt_observed_free(o);
    dt_encoding_free(encoding);
    return rc;
}

const struct dt_optimizer_ops dt_bayes = {"bayes", NULL, NULL, suggest, NULL};
