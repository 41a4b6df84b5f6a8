#include "optimizer/explain.h"
#include "optimizer/algorithms.h"
#include "optimizer/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Different configurations that a model needs: with fewer it says what was put into it. */
#define LEARN_FROM 3
/* Configurations from which each parameter in turn is drawn anew: shares are good to some per cent.
 */
#define BASES 300
/* So often another draw is tried where one is not allowed. A space that hardly allows any is then
 * looked at as if it allowed all. */
#define DRAWS 50
/* A mean square of changes of y that is no change. */
#define NOTHING 1e-9

struct dt_explanation {
    const struct dt_context *ctx;
    struct dt_encoding *encoding;
    struct dt_observed *o;
    struct dt_judge *judge;
};

struct dt_explanation *dt_explain_new(const struct dt_context *ctx)
{
    struct dt_explanation *e = dt_xcalloc(1, sizeof(*e));
    e->ctx = ctx;
    e->encoding = dt_encoding_new(ctx->space);
    e->o = dt_observed_new(ctx, e->encoding);
    if (e->o->known.n >= LEARN_FROM && e->o->nok > 0) {
        e->judge = dt_judge_new(ctx, e->o);
        return e;
    }
    dt_explain_free(e);
    return NULL;
}

void dt_explain_free(struct dt_explanation *e)
{
    if (!e)
        return;
    if (e->judge)
        dt_judge_free(e->judge);
    dt_observed_free(e->o);
    dt_encoding_free(e->encoding);
    free(e);
}

/* In the unit of y. Caller frees. */
static double *expect(const struct dt_explanation *e, const double *rows, size_t n, double *sd)
{
    struct dt_points p = {0};
    for (size_t i = 0; i < n; i++)
        dt_points_add(&p, e->encoding, rows + i * e->ctx->space->n);
    double *mean = dt_judge_mean(e->judge, e->o, &p, sd);
    dt_points_free(&p);
    return mean;
}

void dt_explain_at(const struct dt_explanation *e, const double *rows, size_t n,
                   struct dt_expected *out)
{
    double *sd = dt_xcalloc(n + 1, sizeof(double)), *mean = expect(e, rows, n, sd);
    for (size_t i = 0; i < n; i++) {
        double a = dt_observed_value(e->o, mean[i] - sd[i]),
               b = dt_observed_value(e->o, mean[i] + sd[i]);
        out[i] = (struct dt_expected){dt_observed_value(e->o, mean[i]), fmin(a, b), fmax(a, b)};
    }
    free(sd);
    free(mean);
}

/* ---- importance ---- */

/* A value for every parameter, also for those that are inactive in the configuration made of it:
 * with another value of what their condition mentions they take part. */
static void draw(const struct dt_space *s, gsl_rng *rng, double *raw)
{
    for (size_t i = 0; i < s->n; i++)
        raw[i] = dt_param_at(&s->params[i], gsl_rng_uniform(rng));
}

static bool settle(const struct dt_space *s, const double *raw, double *x)
{
    memcpy(x, raw, s->n * sizeof(double));
    dt_space_fill(s, x);
    dt_space_settle(s, x);
    return dt_space_allows(s, x, NULL);
}

/* Row 0: a configuration; row 1 + i: the same with parameter i drawn anew. */
static void family(const struct dt_space *s, gsl_rng *rng, double *raw, double *rows)
{
    int tries = 0;
    do
        draw(s, rng, raw);
    while (!settle(s, raw, rows) && ++tries < DRAWS);
    for (size_t i = 0; i < s->n; i++) {
        double kept = raw[i];
        tries = 0;
        do
            raw[i] = dt_param_at(&s->params[i], gsl_rng_uniform(rng));
        while (!settle(s, raw, rows + (1 + i) * s->n) && ++tries < DRAWS);
        raw[i] = kept;
    }
}

void dt_explain_importance(const struct dt_explanation *e, double *share)
{
    const struct dt_space *s = e->ctx->space;
    size_t family_size = 1 + s->n;
    double *rows = dt_xcalloc(BASES * family_size * s->n, sizeof(double)), sum = 0;
    double *raw = dt_xcalloc(s->n, sizeof(double));
    gsl_rng *rng = dt_rng_new(e->ctx->seed);
    for (size_t k = 0; k < BASES; k++)
        family(s, rng, raw, rows + k * family_size * s->n);
    double *y = expect(e, rows, BASES * family_size, NULL);
    for (size_t i = 0; i < s->n; i++) {
        share[i] = 0;
        for (size_t k = 0; k < BASES; k++) {
            double d = y[k * family_size + 1 + i] - y[k * family_size];
            share[i] += d * d;
        }
        sum += share[i];
    }
    for (size_t i = 0; i < s->n; i++)
        share[i] = sum > NOTHING * BASES ? share[i] / sum : 0;
    gsl_rng_free(rng);
    free(rows);
    free(raw);
    free(y);
}
