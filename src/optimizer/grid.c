/* Grid search: every point of an enumerated space in order; of a larger one a grid with a few
 * levels for each parameter that has more. */
#include "optimizer/algorithms.h"

#include <stdlib.h>
#include <string.h>

static size_t levels_of(const struct dt_param *p, const void *arg)
{
    const struct dt_context *ctx = arg;
    double n = dt_param_count(p);
    return n <= (double)ctx->grid_levels ? (size_t)n : ctx->grid_levels;
}

static double level(const struct dt_param *p, size_t i, const void *arg)
{
    const struct dt_context *ctx = arg;
    if (dt_param_count(p) <= (double)ctx->grid_levels)
        return dt_param_nth(p, i);
    return dt_param_at(p, (double)i / (double)(ctx->grid_levels - 1));
}

static int suggest_coarse(const struct dt_context *ctx, double *x)
{
    const struct dt_space *s = ctx->space;
    struct dt_walk w = {
        .conditions = s->conditions, .count = levels_of, .value = level, .arg = ctx};
    int rc = 0;
    dt_walk_start(&w);
    for (bool more = true; more && !rc; more = !rc && dt_walk_next(&w))
        rc = dt_space_allows(s, w.x, NULL) && !dt_context_tried(ctx, w.x);
    if (rc)
        memcpy(x, w.x, s->n * sizeof(double));
    dt_walk_end(&w);
    return rc;
}

static int suggest(void *cache, const struct dt_context *ctx, double *x, struct dt_error *e)
{
    const struct dt_space *s = ctx->space;
    size_t *tried = cache; /* so many points are known to be tried: that never changes */
    (void)e;
    if (!s->enumerated)
        return suggest_coarse(ctx, x);
    while (*tried < s->npoints && dt_context_tried(ctx, s->points + *tried * s->n))
        ++*tried;
    if (*tried == s->npoints)
        return 0;
    memcpy(x, s->points + *tried * s->n, s->n * sizeof(double));
    return 1;
}

static void *create(const struct dt_space *space, uint64_t seed)
{
    (void)space;
    (void)seed;
    return dt_xcalloc(1, sizeof(size_t));
}

const struct dt_optimizer_ops dt_grid = {
    .name = "grid", .create = create, .destroy = free, .suggest = suggest};
