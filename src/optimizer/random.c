/* Random search without replacement. */
#include "optimizer/algorithms.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <stdlib.h>
#include <string.h>

struct cache {
    size_t *order; /* of the points of an enumerated space */
    uint64_t seed;
};

/* The finalizer of splitmix64: neighbouring seeds give unrelated streams. */
static unsigned long mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (unsigned long)((z ^ (z >> 31)) & 0xffffffffu); /* mt19937 takes 32 bits */
}

static void *create(const struct dt_space *space, uint64_t seed)
{
    struct cache *c = dt_xcalloc(1, sizeof(*c));
    c->seed = seed;
    if (space->enumerated) {
        gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
        gsl_rng_set(rng, mix(seed));
        c->order = dt_xcalloc(space->npoints, sizeof(*c->order));
        for (size_t i = 0; i < space->npoints; i++)
            c->order[i] = i;
        gsl_ran_shuffle(rng, c->order, space->npoints, sizeof(*c->order));
        gsl_rng_free(rng);
    }
    return c;
}

static void destroy(void *cache)
{
    struct cache *c = cache;
    free(c->order);
    free(c);
}

/* Draws from the whole product until a draw is allowed and new. */
static int sample(uint64_t seed, const struct dt_context *ctx, double *x, struct dt_error *e)
{
    const struct dt_space *s = ctx->space;
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    const char *why = "already tried";
    int rc = -1;
    gsl_rng_set(rng, mix(seed + 0x100000001u * (ctx->nobs + 1)));
    for (int tries = 0; tries < 100000 && rc < 0; tries++) {
        for (size_t i = 0; i < s->n; i++)
            x[i] = dt_param_at(&s->params[i], gsl_rng_uniform(rng));
        if (dt_space_allows(s, x, &why) && !dt_context_tried(ctx, x))
            rc = 1;
    }
    gsl_rng_free(rng);
    if (rc < 0)
        dt_fail(e,
                "100000 random configurations were all excluded, the last by \"%s\"; loosen the "
                "constraints",
                why ? why : "already tried");
    return rc;
}

static int suggest(void *cache, const struct dt_context *ctx, double *x, struct dt_error *e)
{
    struct cache *c = cache;
    if (!ctx->space->enumerated)
        return sample(c->seed, ctx, x, e);
    for (size_t i = 0; i < ctx->space->npoints; i++) {
        const double *p = ctx->space->points + c->order[i] * ctx->space->n;
        if (!dt_context_tried(ctx, p)) {
            memcpy(x, p, ctx->space->n * sizeof(double));
            return 1;
        }
    }
    return 0;
}

const struct dt_optimizer_ops dt_random = {"random", create, destroy, suggest};
