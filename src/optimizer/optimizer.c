#include "optimizer/optimizer.h"
#include "optimizer/algorithms.h"

#include <stdlib.h>
#include <string.h>

const char *const dt_status_names[] = {"pending", "ok",     "failed", "censored",
                                       "poor",    "pruned", "void"};

static const struct dt_optimizer_ops *const algorithms[] = {&dt_bayes, &dt_joint, &dt_random,
                                                            &dt_sobol, &dt_grid,  &dt_external};

struct dt_optimizer {
    const struct dt_optimizer_ops *ops;
    void *cache;
};

struct dt_optimizer *dt_optimizer_new(const char *name, const struct dt_space *space, uint64_t seed,
                                      struct dt_error *e)
{
    for (size_t i = 0; i < sizeof(algorithms) / sizeof(*algorithms); i++) {
        if (strcmp(algorithms[i]->name, name) != 0)
            continue;
        struct dt_optimizer *o = dt_xcalloc(1, sizeof(*o));
        o->ops = algorithms[i];
        o->cache = o->ops->create ? o->ops->create(space, seed) : NULL;
        return o;
    }
    dt_fail(e, "there is no search algorithm \"%s\"", name);
    return NULL;
}

int dt_optimizer_suggest(struct dt_optimizer *o, const struct dt_context *ctx, double *x,
                         struct dt_error *e)
{
    return o->ops->suggest(o->cache, ctx, x, e);
}

double dt_optimizer_promise(struct dt_optimizer *o, const struct dt_context *ctx)
{
    return o->ops->promise ? o->ops->promise(o->cache, ctx) : 0;
}

size_t dt_optimizer_width(struct dt_optimizer *o, const struct dt_context *ctx)
{
    return o->ops->width ? o->ops->width(ctx) : SIZE_MAX;
}

bool dt_optimizer_fastest(struct dt_optimizer *o, const struct dt_context *ctx, double *x)
{
    return o->ops->fastest && o->ops->fastest(ctx, x);
}

bool dt_optimizer_place(struct dt_optimizer *o, const struct dt_context *ctx, double *x)
{
    return o->ops->place && o->ops->place(ctx, x);
}

void dt_optimizer_free(struct dt_optimizer *o)
{
    if (!o)
        return;
    if (o->ops->destroy)
        o->ops->destroy(o->cache);
    free(o);
}

bool dt_context_tried(const struct dt_context *ctx, const double *x)
{
    for (size_t i = 0; i < ctx->nobs; i++)
        if (dt_config_equal(ctx->obs[i].x, x, ctx->space->n))
            return true;
    return false;
}

/* The finalizer of splitmix64. */
gsl_rng *dt_rng_new(uint64_t stream)
{
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    uint64_t z = stream + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    gsl_rng_set(rng, (unsigned long)((z ^ (z >> 31)) & 0xffffffffu)); /* mt19937 takes 32 bits */
    return rng;
}

uint64_t dt_rng_stream(const struct dt_context *ctx)
{
    return ctx->seed + 0x100000001u * (ctx->nobs + 1);
}
