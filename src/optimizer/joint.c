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

/* The context with paces as values. Caller frees the observations. */
static struct dt_context paces(const struct dt_context *ctx, struct dt_observation **obs)
{
    struct dt_context c = *ctx;
    *obs = dt_xcalloc(ctx->nobs + 1, sizeof(**obs));
    for (size_t i = 0; i < ctx->nobs; i++) {
        (*obs)[i] = ctx->obs[i];
        if (ctx->obs[i].pace > 0) {
            (*obs)[i].status = DT_STATUS_OK;
            (*obs)[i].value = ctx->obs[i].pace;
        } else if (ctx->obs[i].status != DT_STATUS_PENDING &&
                   ctx->obs[i].status != DT_STATUS_FAILED) {
            (*obs)[i].status = DT_STATUS_VOID;
        }
    }
    c.obs = *obs;
    c.maximize = c.quality = false;
    return c;
}

/* The point with the least expected pace; that becomes the best to compare with. */
static size_t fastest_of(const struct dt_context *ctx, const struct dt_judge *j,
                         struct dt_observed *o, const struct dt_points *p)
{
    double *score = dt_judge_mean(j, o, p);
    o->best = INFINITY;
    for (size_t i = 0; i < p->n; i++) {
        o->best = fmin(o->best, score[i]);
        score[i] = -score[i];
    }
    size_t chosen = dt_judge_choose(ctx->space, p, score);
    free(score);
    return chosen;
}

/* The most promising point, or where none promises much the fastest. */
static size_t choose(const struct dt_context *ctx, struct dt_observed *o, const struct dt_points *p,
                     bool explore)
{
    struct dt_judge *j = dt_judge_new(ctx, o);
    size_t fastest = fastest_of(ctx, j, o, p);
    double *score = dt_judge_score(j, o, p);
    size_t chosen = dt_judge_choose(ctx->space, p, score);
    bool promising = explore && dt_exp(score[chosen]) > ctx->enough;
    free(score);
    dt_judge_free(j);
    return promising ? chosen : fastest;
}

/* Gives the hyperparameters in x a DT configuration: one to try, or the fastest. False, and x as it
 * was, where too little is known. */
static bool place(const struct dt_context *ctx, bool explore, double *x)
{
    struct dt_observation *obs;
    struct dt_context c = paces(ctx, &obs);
    struct dt_encoding *encoding = dt_encoding_new(ctx->space);
    struct dt_observed *o = dt_observed_new(&c, encoding);
    struct dt_pool *pool = dt_pool_beside(ctx, encoding, x, explore);
    bool known = o->known.n >= LEARN_FROM && pool->p.n > 0;
    if (known)
        memcpy(x, pool->p.raw[choose(&c, o, &pool->p, explore)], ctx->space->n * sizeof(double));
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
