/* Random search without replacement. */
#include "optimizer/algorithms.h"

#include <gsl/gsl_randist.h>
#include <stdlib.h>
#include <string.h>

struct cache {
    size_t *order; /* of the points of an enumerated space */
    size_t
        tried; /* so many of them, from the first on, are known to be tried: that never changes */
};

static void *create(const struct dt_space *space, uint64_t seed)
{
    struct cache *c = dt_xcalloc(1, sizeof(*c));
    if (space->enumerated) {
        gsl_rng *rng = dt_rng_new(seed);
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
static int sample(const struct dt_context *ctx, double *x, struct dt_error *e)
{
    const struct dt_space *s = ctx->space;
    gsl_rng *rng = dt_rng_new(dt_rng_stream(ctx));
    const char *why = "already tried";
    int rc = -1;
    for (int tries = 0; tries < 100000 && rc < 0; tries++) {
        for (size_t i = 0; i < s->n; i++)
            x[i] = dt_param_at(&s->params[i], gsl_rng_uniform(rng));
        dt_space_settle(s, x);
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
    const struct dt_space *s = ctx->space;
    if (!s->enumerated)
        return sample(ctx, x, e);
    while (c->tried < s->npoints && dt_context_tried(ctx, s->points + c->order[c->tried] * s->n))
        c->tried++;
    if (c->tried == s->npoints)
        return 0;
    memcpy(x, s->points + c->order[c->tried] * s->n, s->n * sizeof(double));
    return 1;
}

const struct dt_optimizer_ops dt_random = {
    .name = "random", .create = create, .destroy = destroy, .suggest = suggest};
