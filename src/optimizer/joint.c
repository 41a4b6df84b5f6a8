/* Two loops in one study: what a trial comes to teaches the search for hyperparameters, how fast it
 * works the search for the DT configuration, and so the best DT configuration costs no runs of its
 * own. The first trials explore DT configurations; once none promises to be faster, the rest run on
 * the one that is expected to be the fastest for their hyperparameters. What matters to speed (a
 * batch size) is part of what is learnt, so that a new value of it opens the question again where
 * it is open. */
#include "optimizer/algorithms.h"
#include "optimizer/judge.h"
#include "optimizer/pool.h"
#include "model/portable.h"

#include <stdlib.h>
#include <string.h>

#define LEARN_FROM                                                                                 \
    3 /* paces that a model needs; the first trials are spread over the whole space */

struct dt_context dt_context_paces(const struct dt_context *ctx, struct dt_observation **obs)
{
    struct dt_context c = *ctx;
    *obs = dt_xcalloc(ctx->nobs + 1, sizeof(**obs));
    for (size_t i = 0; i < ctx->nobs; i++) {
        (*obs)[i] = ctx->obs[i];
        if (ctx->obs[i].pace > 0) {
            bool bound = ctx->obs[i].status == DT_STATUS_CENSORED;
            (*obs)[i].status = bound ? DT_STATUS_CENSORED : DT_STATUS_OK;
            (*obs)[i].value = ctx->obs[i].pace;
        } else if (ctx->obs[i].status != DT_STATUS_PENDING &&
                   ctx->obs[i].status != DT_STATUS_FAILED) {
            (*obs)[i].status = DT_STATUS_VOID;
        }
    }
    c.obs = *obs;
    c.past = NULL;
    c.maximize = c.quality = false;
    return c;
}

/* The point with the least expected pace; that becomes the best to compare with. */
static size_t fastest_of(const struct dt_context *ctx, const struct dt_judge *j,
                         struct dt_observed *o, const struct dt_points *p)
{
    double *score = dt_judge_mean(j, o, p, NULL);
    o->best = INFINITY;
    for (size_t i = 0; i < p->n; i++) {
        o->best = fmin(o->best, score[i]);
        score[i] = -score[i];
    }
    size_t chosen = dt_judge_choose(ctx->space, p, score);
    free(score);
    return chosen;
}

/* The most promising point of `open` (none: NULL), or where none promises much the fastest of p. */
static const double *choose(const struct dt_context *ctx, struct dt_observed *o,
                            const struct dt_points *p, const struct dt_points *open)
{
    struct dt_judge *j = dt_judge_new(ctx, o);
    const double *x = p->raw[fastest_of(ctx, j, o, p)];
    if (open && open->n) {
        double *score = dt_judge_score(j, o, open);
        size_t chosen = dt_judge_choose(ctx->space, open, score);
        if (dt_exp(score[chosen]) > ctx->enough)
            x = open->raw[chosen];
        free(score);
    }
    dt_judge_free(j);
    return x;
}

/* Gives the hyperparameters in x a DT configuration: one to try, or the fastest. False, and x as it
 * was, where too little is known. */
static bool place(const struct dt_context *ctx, bool explore, double *x)
{
    struct dt_observation *obs;
    struct dt_context c = dt_context_paces(ctx, &obs);
    struct dt_encoding *encoding = dt_encoding_new(ctx->space);
    struct dt_observed *o = dt_observed_new(&c, encoding);
    struct dt_pool *pool = dt_pool_beside(ctx, encoding, x, explore);
    bool known = o->known.n >= LEARN_FROM && pool->p.n > 0;
    if (known)
        memcpy(x, choose(&c, o, &pool->p, explore ? &pool->p : NULL),
               ctx->space->n * sizeof(double));
    dt_pool_free(pool);
    dt_observed_free(o);
    dt_encoding_free(encoding);
    free(obs);
    return known;
}

static int suggest(void *cache, const struct dt_context *ctx, double *x, struct dt_error *e)
{
    int rc = dt_bayes.suggest(cache, ctx, x, e);
    if (rc == 1)
        place(ctx, true, x);
    return rc;
}

static bool fastest(const struct dt_context *ctx, double *x)
{
    return place(ctx, false, x);
}

static double promise(void *cache, const struct dt_context *ctx)
{
    return dt_bayes.promise(cache, ctx);
}

const struct dt_optimizer_ops dt_joint = {.name = "joint",
                                          .suggest = suggest,
                                          .promise = promise,
                                          .width = dt_bayes_width,
                                          .fastest = fastest};

/* ---- hyperparameters from outside ---- */

/* The point whose DT configuration is the farthest from those that were tried. */
static const double *spread(const struct dt_context *ctx, const struct dt_encoding *e,
                            const struct dt_points *p)
{
    const struct dt_space *s = ctx->space;
    size_t columns = e->kernel.columns;
    double *far = dt_xcalloc(p->n, sizeof(double)), *x = dt_xcalloc(s->n, sizeof(double)),
           *at = dt_xcalloc(columns, sizeof(double));
    for (size_t j = 0; j < p->n; j++)
        far[j] = ctx->nobs ? INFINITY : 0;
    for (size_t i = 0; i < ctx->nobs; i++) {
        for (size_t k = 0; k < s->n; k++)
            x[k] = s->params[k].hyper ? p->raw[0][k] : ctx->obs[i].x[k];
        dt_encode(e, x, at);
        for (size_t j = 0; j < p->n; j++)
            far[j] = fmin(far[j], dt_distance2(&e->kernel, p->x + j * columns, at));
    }
    const double *chosen = p->raw[dt_judge_choose(s, p, far)];
    free(far);
    free(x);
    free(at);
    return chosen;
}

/* The same hyperparameters may be asked for again: then a DT configuration may be used again too. */
static bool place_asked(const struct dt_context *ctx, double *x)
{
    struct dt_observation *obs;
    struct dt_context c = dt_context_paces(ctx, &obs);
    struct dt_encoding *encoding = dt_encoding_new(ctx->space);
    struct dt_observed *o = dt_observed_new(&c, encoding);
    struct dt_pool *all = dt_pool_beside(ctx, encoding, x, false),
                   *open = dt_pool_beside(ctx, encoding, x, true);
    bool allowed = all->p.n > 0;
    const double *chosen = NULL;
    if (allowed && o->known.n >= LEARN_FROM)
        chosen = choose(&c, o, &all->p, &open->p);
    else if (allowed)
        chosen = spread(ctx, encoding, open->p.n ? &open->p : &all->p);
    if (chosen)
        memcpy(x, chosen, ctx->space->n * sizeof(double));
    dt_pool_free(all);
    dt_pool_free(open);
    dt_observed_free(o);
    dt_encoding_free(encoding);
    free(obs);
    return allowed;
}

static int suggest_nothing(void *cache, const struct dt_context *ctx, double *x, struct dt_error *e)
{
    (void)cache;
    (void)ctx;
    (void)x;
    (void)e;
    return 0;
}

const struct dt_optimizer_ops dt_external = {
    .name = "external", .suggest = suggest_nothing, .fastest = fastest, .place = place_asked};
