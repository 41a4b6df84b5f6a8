#include "optimizer/pool.h"
#include "model/portable.h"

#include <gsl/gsl_sort.h>
#include <stdlib.h>
#include <string.h>

/* A suggestion takes bounded time: of a larger enumerated space half the pool is an even sample,
 * half what is nearest to the best. */
#define POOL_MAX 20000
#define RANDOM_POINTS 2000
#define PAST_POINTS 200
#define BEST_POINTS 5
#define VARIATIONS 100

static struct dt_pool *pool_of(const double **raw, size_t n, double *rows,
                               const struct dt_encoding *e)
{
    struct dt_pool *p = dt_xcalloc(1, sizeof(*p));
    p->rows = rows;
    p->p = (struct dt_points){n, raw, dt_xcalloc(n * e->kernel.columns + 1, sizeof(double))};
    for (size_t i = 0; i < n; i++)
        dt_encode(e, raw[i], p->p.x + i * e->kernel.columns);
    return p;
}

void dt_pool_free(struct dt_pool *p)
{
    if (!p)
        return;
    free(p->p.raw);
    free(p->p.x);
    free(p->rows);
    free(p);
}

/* ---- enumerated ---- */

static const double *best_known(const struct dt_observed *o)
{
    size_t best = 0;
    for (size_t i = 1; i < o->known.n; i++)
        if (o->y[i] < o->y[best])
            best = i;
    return o->known.n ? o->known.x + best * o->encoding->kernel.columns : NULL;
}

/* Moves the nearest half to the front, and behind it an even sample of the rest. */
static void prefer_near(const double **raw, size_t n, const struct dt_observed *o)
{
    const struct dt_kernel *k = &o->encoding->kernel;
    const double *best = best_known(o);
    double *far = dt_xcalloc(n, sizeof(double)), *x = dt_xcalloc(k->columns, sizeof(double));
    const double **old = dt_xcalloc(n, sizeof(*old));
    size_t *order = dt_xcalloc(n, sizeof(*order)), half = best ? POOL_MAX / 2 : 0;
    for (size_t i = 0; i < n && best; i++) {
        dt_encode(o->encoding, raw[i], x);
        far[i] = dt_distance2(k, x, best);
    }
    memcpy(old, raw, n * sizeof(*old));
    gsl_sort_index(order, far, 1, n);
    for (size_t i = 0; i < POOL_MAX; i++) {
        size_t at = i < half ? i : half + (i - half) * (n - half) / (POOL_MAX - half);
        raw[i] = old[order[at]];
    }
    free(far);
    free(x);
    free(old);
    free(order);
}

/* Whether x was tried, or is being tried: at a lower fidelity too, for what that tells comes first.
 */
static bool is_taken(const struct dt_context *ctx, const double *x)
{
    bool fidelity = dt_space_fidelity(ctx->space) >= 0;
    for (size_t i = 0; i < ctx->nobs && fidelity; i++)
        if (ctx->obs[i].status == DT_STATUS_PENDING &&
            dt_space_same_work(ctx->space, ctx->obs[i].x, x))
            return true;
    return dt_context_tried(ctx, x);
}

static struct dt_pool *what_is_left(const struct dt_context *ctx, const struct dt_observed *o)
{
    const struct dt_space *s = ctx->space;
    const double **raw = dt_xcalloc(s->npoints + 1, sizeof(*raw));
    size_t n = 0;
    for (size_t i = 0; i < s->npoints; i++) {
        const double *x = s->points + i * s->n;
        if (dt_space_is_full(s, x) && !is_taken(ctx, x))
            raw[n++] = x;
    }
    if (n > POOL_MAX) {
        prefer_near(raw, n, o);
        n = POOL_MAX;
    }
    return pool_of(raw, n, NULL, o->encoding);
}

/* ---- not enumerated ---- */

/* About normal with standard deviation 1/2, in [-3/2, 3/2]; GSL's own uses the C library's
 * logarithm. */
static double scatter(gsl_rng *rng)
{
    double sum = -1.5;
    for (int i = 0; i < 3; i++)
        sum += gsl_rng_uniform(rng);
    return sum;
}

/* A number that a user can write down, the same on every machine. */
static double round_off(const struct dt_param *p, double x)
{
    char text[32];
    snprintf(text, sizeof(text), "%.6g", x);
    return fmin(fmax(strtod(text, NULL), p->low), p->high);
}

static double draw(const struct dt_param *p, double u)
{
    double x = dt_param_at(p, u);
    return p->kind == DT_PARAM_FLOAT && !p->values && p->step <= 0 ? round_off(p, x) : x;
}

static double place(const struct dt_param *p, double x)
{
    for (size_t i = 0; p->values && i < p->nvalues; i++)
        if (p->values[i] == x)
            return (double)i;
    return (x - p->low) / p->step;
}

static double vary(const struct dt_param *p, double x, double reach, gsl_rng *rng)
{
    double n = dt_param_count(p);
    if (isnan(x) || p->kind == DT_PARAM_LABEL)
        return draw(p, gsl_rng_uniform(rng));
    if (isfinite(n)) { /* at least one step */
        double by = reach * n * scatter(rng), to = place(p, x) + (by < 0 ? floor(by) : ceil(by));
        return dt_param_nth(p, (size_t)fmin(fmax(round(to), 0), n - 1));
    }
    double u = p->log ? (dt_log(x) - dt_log(p->low)) / (dt_log(p->high) - dt_log(p->low))
                      : (x - p->low) / (p->high - p->low);
    return draw(p, fmin(fmax(u + reach * scatter(rng), 0), 1));
}

/* One parameter for certain, the others with a chance that makes two more of them change. */
static void variation(const struct dt_space *s, const double *from, double reach, gsl_rng *rng,
                      double *x)
{
    size_t certain = gsl_rng_uniform_int(rng, s->n);
    for (size_t i = 0; i < s->n; i++) {
        bool change = i == certain || gsl_rng_uniform(rng) * (double)s->n < 2;
        x[i] = change || isnan(from[i]) ? vary(&s->params[i], from[i], reach, rng) : from[i];
    }
}

static bool is_new(const struct dt_context *ctx, const double *rows, size_t n, const double *x)
{
    size_t columns = ctx->space->n;
    for (size_t i = 0; i < n; i++)
        if (dt_config_equal(rows + i * columns, x, columns))
            return false;
    return dt_space_allows(ctx->space, x, NULL) && !is_taken(ctx, x);
}

/* Appends at most n new configurations, variations of `from` or random ones; returns how many rows
 * there are then. */
static size_t gather(const struct dt_context *ctx, const double *from, double reach, size_t n,
                     gsl_rng *rng, double *rows, size_t have)
{
    const struct dt_space *s = ctx->space;
    size_t end = have + n;
    for (size_t tries = 20 * n; tries > 0 && have < end; tries--) {
        double *x = rows + have * s->n;
        if (from)
            variation(s, from, reach, rng, x);
        else
            for (size_t i = 0; i < s->n; i++)
                x[i] = draw(&s->params[i], gsl_rng_uniform(rng));
        dt_space_fill(s, x);
        dt_space_settle(s, x);
        have += is_new(ctx, rows, from ? have : 0, x);
    }
    return have;
}

static struct dt_pool *pool_of_rows(double *rows, size_t n, const struct dt_encoding *e)
{
    const double **raw = dt_xcalloc(n + 1, sizeof(*raw));
    for (size_t i = 0; i < n; i++)
        raw[i] = rows + i * e->space->n;
    return pool_of(raw, n, rows, e);
}

/* Puts the middle of all axes into x; returns whether it may be tried. */
static bool middle(const struct dt_context *ctx, double *x)
{
    for (size_t i = 0; i < ctx->space->n; i++)
        x[i] = draw(&ctx->space->params[i], 0.5);
    dt_space_fill(ctx->space, x);
    dt_space_settle(ctx->space, x);
    return is_new(ctx, x, 0, x);
}

/* Appends what succeeded in earlier studies, at most PAST_POINTS. */
static size_t from_past(const struct dt_context *ctx, double *rows, size_t n)
{
    const struct dt_past *past = ctx->past;
    size_t columns = ctx->space->n;
    for (size_t i = 0; past && i < past->nobs && n < PAST_POINTS; i++) {
        double *x = rows + n * columns;
        bool whole = true;
        memcpy(x, past->obs[i].x, columns * sizeof(double));
        dt_space_fill(ctx->space, x);
        for (size_t k = 0; k < columns; k++)
            whole &= !isnan(x[k]) || !dt_space_active(ctx->space, x, k);
        n += whole && past->obs[i].status == DT_STATUS_OK && is_new(ctx, rows, n, x);
    }
    return n;
}

static struct dt_pool *sample(const struct dt_context *ctx, const struct dt_observed *o,
                              gsl_rng *rng)
{
    double *rows =
        dt_xcalloc((RANDOM_POINTS + BEST_POINTS * VARIATIONS) * ctx->space->n, sizeof(double));
    size_t n = middle(ctx, rows), best[BEST_POINTS];
    n = from_past(ctx, rows, n);
    n = gather(ctx, NULL, 0, RANDOM_POINTS - n, rng, rows, n);
    size_t few = o->known.n < BEST_POINTS ? o->known.n : BEST_POINTS;
    gsl_sort_smallest_index(best, few, o->y, 1, o->known.n);
    for (size_t i = 0; i < few; i++)
        for (size_t k = 0; k < 4; k++)
            n = gather(ctx, o->known.raw[best[i]], 0.4 / (double)(1 << 2 * k), VARIATIONS / 4, rng,
                       rows, n);
    return pool_of_rows(rows, n, o->encoding);
}

struct dt_pool *dt_pool_new(const struct dt_context *ctx, const struct dt_observed *o, gsl_rng *rng)
{
    return ctx->space->enumerated ? what_is_left(ctx, o) : sample(ctx, o, rng);
}

struct dt_pool *dt_pool_around(const struct dt_context *ctx, const struct dt_encoding *e,
                               const double *x, double reach, size_t n, gsl_rng *rng)
{
    double *rows = dt_xcalloc(n * ctx->space->n, sizeof(double));
    return pool_of_rows(rows, gather(ctx, x, reach, n, rng, rows, 0), e);
}

struct dt_pool *dt_pool_beside(const struct dt_context *ctx, const struct dt_encoding *e,
                               const double *x, bool untried)
{
    const struct dt_space *s = ctx->space;
    size_t all, n = 0;
    double *rows = dt_space_beside(s, x, s->enumerated ? s->npoints : POOL_MAX, &all);
    for (size_t i = 0; i < all; i++) {
        const double *row = rows + i * s->n;
        if (!untried || !dt_context_tried(ctx, row))
            memmove(rows + n++ * s->n, row, s->n * sizeof(double));
    }
    return pool_of_rows(rows, n, e);
}

struct dt_pool *dt_pool_best(const struct dt_pool *p, const struct dt_encoding *e,
                             const double *score, size_t n)
{
    size_t columns = e->space->n;
    size_t *best = dt_xcalloc(n, sizeof(*best));
    double *rows = dt_xcalloc(n * columns, sizeof(double));
    gsl_sort_largest_index(best, n, score, 1, p->p.n);
    for (size_t i = 0; i < n; i++)
        memcpy(rows + i * columns, p->p.raw[best[i]], columns * sizeof(double));
    free(best);
    return pool_of_rows(rows, n, e);
}
