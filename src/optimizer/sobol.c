/* Sobol's sequence (GSL's, after Bratley and Fox), shifted by the seed modulo 1 (Cranley and
 * Patterson). In an enumerated space each point of the sequence stands for the nearest
 * configuration that is left; else it is the configuration. */
#include "model/encode.h"
#include "optimizer/algorithms.h"

#include <gsl/gsl_qrng.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DIMENSIONS 40 /* GSL's tables */
#define MAX_DRAWS 100000

struct sequence {
    gsl_qrng *q;
    double *shift, *u;
    const struct dt_space *space;
};

static struct sequence sequence_new(const struct dt_context *ctx)
{
    struct sequence s = {.space = ctx->space};
    size_t n = ctx->space->n;
    gsl_rng *rng = dt_rng_new(ctx->seed);
    s.q = gsl_qrng_alloc(gsl_qrng_sobol, (unsigned)n);
    s.shift = dt_xcalloc(n, sizeof(double));
    s.u = dt_xcalloc(n, sizeof(double));
    for (size_t i = 0; i < n; i++)
        s.shift[i] = gsl_rng_uniform(rng);
    gsl_rng_free(rng);
    return s;
}

static void sequence_next(struct sequence *s, double *x)
{
    gsl_qrng_get(s->q, s->u);
    for (size_t i = 0; i < s->space->n; i++) {
        double u = s->u[i] + s->shift[i];
        x[i] = dt_param_at(&s->space->params[i], u >= 1 ? u - 1 : u);
    }
    dt_space_settle(s->space, x);
}

static void sequence_free(struct sequence *s)
{
    gsl_qrng_free(s->q);
    free(s->shift);
    free(s->u);
}

/* Moves x to the nearest point that was not tried; 0 if there is none. */
static int snap(const struct dt_context *ctx, double *x)
{
    const struct dt_space *s = ctx->space;
    struct dt_encoding *e = dt_encoding_new(s);
    size_t columns = e->kernel.columns;
    double *at = dt_xcalloc(2 * columns, sizeof(double)), *point = at + columns, least = INFINITY;
    const double *found = NULL;
    dt_encode(e, x, at);
    for (size_t i = 0; i < s->npoints; i++) {
        dt_encode(e, s->points + i * s->n, point);
        double d = dt_distance2(&e->kernel, point, at);
        if (d < least && !dt_context_tried(ctx, s->points + i * s->n)) {
            least = d;
            found = s->points + i * s->n;
        }
    }
    if (found)
        memcpy(x, found, s->n * sizeof(double));
    free(at);
    dt_encoding_free(e);
    return found != NULL;
}

static int suggest(void *cache, const struct dt_context *ctx, double *x, struct dt_error *e)
{
    (void)cache;
    if (ctx->space->n > MAX_DIMENSIONS)
        return dt_fail(e, "sobol searches at most %d parameters, here are %zu; use bayes or random",
                       MAX_DIMENSIONS, ctx->space->n);
    struct sequence s = sequence_new(ctx);
    const char *why = NULL;
    int rc = -1;
    for (size_t draw = 0; draw < MAX_DRAWS && rc < 0; draw++) {
        sequence_next(&s, x);
        if (ctx->space->enumerated)
            rc = draw < ctx->nobs ? -1 : snap(ctx, x);
        else if (dt_space_allows(ctx->space, x, &why) && !dt_context_tried(ctx, x))
            rc = 1;
    }
    sequence_free(&s);
    if (rc < 0)
        dt_fail(e,
                "%d points of Sobol's sequence were all excluded or tried, the last by \"%s\"; "
                "loosen the constraints",
                MAX_DRAWS, why ? why : "already tried");
    return rc;
}

const struct dt_optimizer_ops dt_sobol = {.name = "sobol", .suggest = suggest};
