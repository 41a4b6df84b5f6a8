/* Bayesian optimization: after a few space-filling configurations the one with the largest expected
 * improvement, where views of the objective (a constant or the law of speed as prior mean, and what
 * earlier studies have seen) are averaged by their evidence, times the probability that it runs at
 * all. Nothing is kept between calls: the context alone decides, bit for bit.
 *
 * With earlier studies it begins with the best of theirs and, where that was the first trial, with
 * the most promising by what they and it tell: mostly that is good enough. Both lie where the past
 * was good and tell little of whether it is right here, so the third is the configuration farthest
 * from both (maximin distance, Johnson, Moore and Ylvisaker 1990): where the past predicts even
 * that, it is believed further on, else what was observed here soon outweighs it. */
#include "optimizer/algorithms.h"
#include "optimizer/belief.h"
#include "optimizer/judge.h"
#include "optimizer/lessons.h"
#include "optimizer/pool.h"
#include "model/portable.h"

#include <stdlib.h>
#include <string.h>

#define START 3         /* space-filling configurations */
#define WARM_TRIED 2    /* by the past, before one far away */
#define START_DRAWS 20  /* of so many random ones the farthest from all others is taken */
#define LEARN_FROM 2    /* finished ones that a model needs */
#define SCREEN_KNOWN 64 /* where both are larger: a model of so many observations ... */
#define SCREEN_POOL 500 /* ... picks so many points for the model of all */

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
 * Of many axes no random point is near the middle of all, so the pool's first is looked at too:
 * where nothing is known the middle is least far from the best. `whole`: no draws, but the farthest
 * of the pool. */
static size_t fill(const struct dt_context *ctx, const struct dt_observed *o,
                   const struct dt_pool *pool, bool whole, gsl_rng *rng)
{
    const struct dt_kernel *k = &o->encoding->kernel;
    size_t tried = o->known.n + o->pending.n + o->failed.n,
           draws = whole            ? pool->p.n
                   : tried >= START ? 5
                                    : START_DRAWS,
           chosen = 0;
    double *middle = middle_of(k, &pool->p), farthest = -INFINITY;
    double *log_chance = dt_xcalloc(pool->p.n, sizeof(double));
    struct dt_feasibility *f = dt_feasibility_new(o);
    if (f)
        dt_feasibility_score(f, o, &pool->p, log_chance);
    struct dt_doubts *d = dt_doubts_new(ctx, o->encoding);
    if (d)
        dt_doubts_score(d, &pool->p, log_chance);
    for (size_t t = 0; t < draws; t++) {
        size_t j = whole || (tried == 0 && t == 0) ? t : gsl_rng_uniform_int(rng, pool->p.n);
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
    dt_doubts_free(d);
    free(log_chance);
    free(middle);
    return chosen;
}

/* ---- the search ---- */

/* Replaces a large pool by its most promising points. */
static void screen(const struct dt_judge *j, const struct dt_observed *o, struct dt_pool **pool)
{
    if (o->known.n <= SCREEN_KNOWN || (*pool)->p.n <= SCREEN_POOL)
        return;
    struct dt_observed *few = dt_observed_thin(o, SCREEN_KNOWN);
    double *score = dt_judge_score(j, few, &(*pool)->p);
    struct dt_pool *best = dt_pool_best(*pool, o->encoding, score, SCREEN_POOL);
    dt_pool_free(*pool);
    *pool = best;
    free(score);
    dt_observed_free(few);
}

/* Climbs from x, where the score is `at`, by ever smaller variations. */
static double refine(const struct dt_context *ctx, const struct dt_judge *j,
                     const struct dt_observed *o, double *x, double at, gsl_rng *rng)
{
    for (double reach = 0.2; reach > 0.001; reach /= 2) {
        struct dt_pool *around = dt_pool_around(ctx, o->encoding, x, reach, 60, rng);
        if (around->p.n) {
            double *score = dt_judge_score(j, o, &around->p);
            size_t best = dt_judge_choose(ctx->space, &around->p, score);
            if (score[best] > at) {
                at = score[best];
                memcpy(x, around->p.raw[best], ctx->space->n * sizeof(double));
            }
            free(score);
        }
        dt_pool_free(around);
    }
    return at;
}

/* What a suggestion starts from. */
struct scene {
    struct dt_encoding *encoding;
    struct dt_observed *o;
    gsl_rng *rng;
    struct dt_pool *pool;
    bool start;         /* too little is known for a model */
    bool far;           /* it is time to look far away from where the past was good */
    const double *best; /* of the past; NULL: there is none to learn from */
};

static struct scene scene_open(const struct dt_context *ctx)
{
    struct scene s = {.encoding = dt_encoding_new(ctx->space),
                      .rng = dt_rng_new(dt_rng_stream(ctx))};
    const struct dt_observed *o = s.o = dt_observed_new(ctx, s.encoding);
    s.pool = dt_pool_new(ctx, o, s.rng);
    s.best = ctx->past ? dt_lessons_best(ctx, s.encoding, false) : NULL;
    s.far =
        s.best && ctx->nobs == WARM_TRIED && dt_config_equal(ctx->obs[0].x, s.best, ctx->space->n);
    if (s.best)
        s.start = s.far || o->known.n == 0;
    else
        s.start = o->known.n + o->pending.n < START || o->known.n < LEARN_FROM ||
                  (o->nok < LEARN_FROM && !ctx->quality);
    return s;
}

static void scene_close(struct scene *s)
{
    dt_pool_free(s->pool);
    gsl_rng_free(s->rng);
    dt_observed_free(s->o);
    dt_encoding_free(s->encoding);
}

/* Puts the most promising configuration into x and returns its score. */
static double search(const struct dt_context *ctx, struct scene *s, double *x)
{
    struct dt_judge *j = dt_judge_new(ctx, s->o);
    screen(j, s->o, &s->pool);
    double *score = dt_judge_score(j, s->o, &s->pool->p);
    size_t chosen = dt_judge_choose(ctx->space, &s->pool->p, score);
    double at = score[chosen];
    memcpy(x, s->pool->p.raw[chosen], ctx->space->n * sizeof(double));
    if (!ctx->space->enumerated)
        at = refine(ctx, j, s->o, x, at, s->rng);
    dt_judge_fidelity(j, ctx, s->o, x);
    free(score);
    dt_judge_free(j);
    return at;
}

/* What is known so far is too little to say what a fidelity tells: the lowest is enough to begin
 * with. (Fabolas, Klein et al., AISTATS 2017, begins on small parts of the data too.) */
static void begin(const struct dt_context *ctx, const struct scene *s, double *x)
{
    int f = dt_space_fidelity(ctx->space);
    memcpy(x, s->pool->p.raw[fill(ctx, s->o, s->pool, s->far, s->rng)],
           ctx->space->n * sizeof(double));
    if (f < 0 || ctx->conclude)
        return;
    double *lower, full = x[f];
    size_t n = dt_param_lower(&ctx->space->params[f], &lower);
    for (size_t i = 0; i < n && x[f] == full; i++) {
        x[f] = lower[i];
        if (dt_context_tried(ctx, x) || !dt_space_has(ctx->space, x))
            x[f] = full;
    }
    free(lower);
}

/* The best of the past, before anything else; what else was good there, until something is known.
 * NULL: neither, search or fill the space. */
static const double *of_the_past(const struct dt_context *ctx, const struct scene *s)
{
    if (!s->best || ctx->nobs > START)
        return NULL;
    if (!dt_context_tried(ctx, s->best))
        return s->best;
    return s->start && !s->far ? dt_lessons_best(ctx, s->encoding, true) : NULL;
}

static int suggest(void *cache, const struct dt_context *ctx, double *x, struct dt_error *e)
{
    struct scene s = scene_open(ctx);
    int rc = s.pool->p.n > 0;
    (void)cache;
    const double *past = rc ? of_the_past(ctx, &s) : NULL;
    if (past)
        memcpy(x, past, ctx->space->n * sizeof(double));
    else if (rc && s.start)
        begin(ctx, &s, x);
    else if (rc)
        search(ctx, &s, x);
    else if (!ctx->space->enumerated)
        rc = dt_fail(e, "no random configuration was both allowed and new; loosen the constraints");
    scene_close(&s);
    return rc;
}

/* y is a logarithm, or in units of the values' spread: its difference is about a fraction. */
static double promise(void *cache, const struct dt_context *ctx)
{
    struct dt_context careless = *ctx;
    careless.budget_left = 0; /* of the improvement alone, whatever it costs */
    struct scene s = scene_open(&careless);
    double *x = dt_xcalloc(ctx->space->n, sizeof(double)), fraction = 0;
    (void)cache;
    if (s.start)
        fraction = INFINITY;
    else if (s.pool->p.n)
        fraction = dt_exp(search(&careless, &s, x));
    free(x);
    scene_close(&s);
    return fraction;
}

/* The start, and one more for each that has ended: on measured tables eight at once so need 1.2 x
 * the trials of one after the other, without this 1.6 x. */
size_t dt_bayes_width(const struct dt_context *ctx)
{
    size_t width = START;
    for (size_t i = 0; i < ctx->nobs; i++)
        width += ctx->obs[i].status != DT_STATUS_PENDING;
    return width;
}

const struct dt_optimizer_ops dt_bayes = {
    .name = "bayes", .suggest = suggest, .promise = promise, .width = dt_bayes_width};
