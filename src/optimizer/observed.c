#include "optimizer/observed.h"
#include "model/portable.h"

#include <gsl/gsl_sort.h>
#include <stdlib.h>
#include <string.h>

/* Pending and failed trials beyond so many: only the latest count. */
#define RECENT 128
/* Valued ones beyond so many: only the better half and a sample of the rest count. */
#define KNOWN_MAX 256
/* What is believed of the slope beforehand is worth a trial at e^2 times less than the others. */
#define PRIOR_SLOPE 4

void dt_points_add(struct dt_points *p, const struct dt_encoding *e, const double *raw)
{
    size_t columns = e->kernel.columns;
    p->raw = dt_xrealloc(p->raw, p->n + 1, sizeof(*p->raw));
    p->x = dt_xrealloc(p->x, (p->n + 1) * columns, sizeof(double));
    p->raw[p->n] = raw;
    dt_encode(e, raw, p->x + p->n * columns);
    p->n++;
}

static void points_keep_latest(struct dt_points *p, size_t columns)
{
    size_t drop = p->n > RECENT ? p->n - RECENT : 0;
    if (!drop)
        return;
    p->n = RECENT;
    memmove(p->raw, p->raw + drop, p->n * sizeof(*p->raw));
    memmove(p->x, p->x + drop * columns, p->n * columns * sizeof(double));
}

void dt_points_free(struct dt_points *p)
{
    free(p->raw);
    free(p->x);
}

static void add_value(struct dt_observed *o, const double *raw, double y, bool bound)
{
    size_t n = o->known.n;
    dt_points_add(&o->known, o->encoding, raw);
    o->y = dt_xrealloc(o->y, n + 1, sizeof(double));
    o->bound = dt_xrealloc(o->bound, n + 1, sizeof(bool));
    o->y[n] = y;
    o->bound[n] = bound;
}

/* What was stopped early counts as what it had come to: it is no candidate for the best, and the
 * truth is of no interest. */
static bool valued(const struct dt_observation *o)
{
    return o->status == DT_STATUS_OK || o->status == DT_STATUS_CENSORED ||
           o->status == DT_STATUS_POOR || o->status == DT_STATUS_PRUNED;
}

static bool is_known(const struct dt_space *s, const double *x)
{
    for (size_t i = 0; i < s->n; i++)
        if (isnan(x[i]) && dt_space_active(s, x, i))
            return false;
    return true;
}

/* Time, cost and speed matter by their ratios: the logarithm. A metric that is not always positive
 * stays as it is on the good side of its median; the bad side, which may be any number of times
 * worse, is compressed. */
static double transform(double value, bool log, double middle, double spread, bool maximize)
{
    double y = log ? dt_log(fmax(value, 1e-300)) : (value - middle) / spread;
    y = maximize ? -y : y;
    return log || y <= 0 ? y : dt_log(1 + y);
}

double dt_observed_value(const struct dt_observed *o, double y)
{
    y = o->log || y <= 0 ? y : dt_exp(y) - 1;
    y = o->maximize ? -y : y;
    return o->log ? dt_exp(y) : o->middle + o->spread * y;
}

/* Median and half the distance of the quartiles; whether all are positive. */
static bool look_at(const struct dt_context *ctx, double *middle, double *spread)
{
    double *v = dt_xcalloc(ctx->nobs + 1, sizeof(double));
    size_t n = 0;
    for (size_t i = 0; i < ctx->nobs; i++)
        if (valued(&ctx->obs[i]))
            v[n++] = ctx->obs[i].value;
    gsl_sort(v, 1, n);
    bool positive = n == 0 || v[0] > 0;
    *middle = v[n / 2];
    *spread = 0.5 * (v[n * 3 / 4] - v[n / 4]);
    if (*spread <= 0)
        *spread = n && v[n - 1] > v[0] ? v[n - 1] - v[0] : 1;
    free(v);
    return positive;
}

double dt_log_fidelity(const struct dt_space *s, const double *x)
{
    int f = dt_space_fidelity(s);
    return f < 0 || isnan(x[f]) ? 0 : dt_log(x[f] / dt_param_highest(&s->params[f]));
}

/* Bayesian linear regression, of which the prior mean is `usual`. */
static double slope_of(const struct dt_observed *o, double usual)
{
    const struct dt_space *s = o->encoding->space;
    size_t n = o->known.n;
    double t = 0, y = 0, tt = PRIOR_SLOPE, ty = PRIOR_SLOPE * usual;
    for (size_t i = 0; i < n; i++) {
        t += dt_log_fidelity(s, o->known.raw[i]) / (double)n;
        y += o->y[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        double d = dt_log_fidelity(s, o->known.raw[i]) - t;
        tt += d * d;
        ty += d * (o->y[i] - y);
    }
    return ty / tt;
}

static void bring_to_full(struct dt_observed *o, double usual)
{
    const struct dt_space *s = o->encoding->space;
    if (dt_space_fidelity(s) < 0)
        return;
    o->slope = slope_of(o, usual);
    for (size_t i = 0; i < o->known.n; i++)
        o->y[i] -= o->slope * dt_log_fidelity(s, o->known.raw[i]);
}

static struct dt_observed *limit(struct dt_observed *all)
{
    if (all->known.n <= KNOWN_MAX)
        return all;
    struct dt_observed *some = dt_observed_thin(all, KNOWN_MAX);
    dt_observed_free(all);
    return some;
}

struct dt_observed *dt_observed_new(const struct dt_context *ctx,
                                    const struct dt_encoding *encoding)
{
    struct dt_observed *o = dt_xcalloc(1, sizeof(*o));
    o->encoding = encoding;
    o->best = INFINITY;
    o->maximize = ctx->maximize;
    o->log = look_at(ctx, &o->middle, &o->spread);
    for (size_t i = 0; i < ctx->nobs; i++) {
        const struct dt_observation *b = &ctx->obs[i];
        bool known = is_known(ctx->space, b->x);
        if (valued(b)) {
            double y = transform(b->value, o->log, o->middle, o->spread, ctx->maximize);
            if (b->status == DT_STATUS_OK) {
                o->nok++;
                if (dt_space_is_full(ctx->space, b->x))
                    o->best = fmin(o->best, y);
            }
            if (known)
                add_value(o, b->x, y, b->status == DT_STATUS_CENSORED);
        } else if (known && b->status == DT_STATUS_PENDING) {
            dt_points_add(&o->pending, encoding, b->x);
        } else if (known && b->status == DT_STATUS_FAILED) {
            dt_points_add(&o->failed, encoding, b->x);
        }
    }
    bring_to_full(o, ctx->grows && o->log ? 1 : 0);
    if (isinf(o->best)) /* then anything is to be better than the worst */
        for (size_t i = 0; i < o->known.n; i++)
            o->best = i ? fmax(o->best, o->y[i]) : o->y[i];
    points_keep_latest(&o->pending, encoding->kernel.columns);
    points_keep_latest(&o->failed, encoding->kernel.columns);
    return limit(o);
}

static double middle_of_sizes(const struct dt_context *ctx)
{
    double *v = dt_xcalloc(ctx->nobs + 1, sizeof(double));
    size_t n = 0;
    for (size_t i = 0; i < ctx->nobs; i++)
        if (isfinite(ctx->obs[i].margin) && ctx->obs[i].margin != 0)
            v[n++] = fabs(ctx->obs[i].margin);
    gsl_sort(v, 1, n);
    double middle = n ? v[n / 2] : 1;
    free(v);
    return middle;
}

struct dt_observed *dt_observed_margins(const struct dt_context *ctx,
                                        const struct dt_encoding *encoding)
{
    struct dt_observed *o = dt_xcalloc(1, sizeof(*o));
    double spread = middle_of_sizes(ctx);
    o->encoding = encoding;
    for (size_t i = 0; i < ctx->nobs; i++) {
        const struct dt_observation *b = &ctx->obs[i];
        if (b->status != DT_STATUS_PENDING && isfinite(b->margin) && is_known(ctx->space, b->x))
            add_value(o, b->x, transform(b->margin, false, 0, spread, true), false);
    }
    bring_to_full(o, 0);
    return limit(o);
}

struct dt_observed *dt_observed_costs(const struct dt_context *ctx,
                                      const struct dt_encoding *encoding)
{
    struct dt_observation *obs = dt_xcalloc(ctx->nobs + 1, sizeof(*obs));
    struct dt_context costs = {.space = ctx->space, .obs = obs, .grows = true};
    for (size_t i = 0; i < ctx->nobs; i++) {
        if (!valued(&ctx->obs[i]) || !(ctx->obs[i].cost > 0))
            continue;
        obs[costs.nobs] = ctx->obs[i];
        obs[costs.nobs++].value = ctx->obs[i].cost;
    }
    struct dt_observed *o = costs.nobs ? dt_observed_new(&costs, encoding) : NULL;
    free(obs);
    return o;
}

struct dt_observed *dt_observed_thin(const struct dt_observed *o, size_t n)
{
    struct dt_observed *t = dt_xcalloc(1, sizeof(*t));
    size_t all = o->known.n, half = n < all ? n / 2 : all, rest = n < all ? n - half : 0;
    size_t *order = dt_xcalloc(all + 1, sizeof(*order));
    gsl_sort_index(order, o->y, 1, all);
    *t = (struct dt_observed){.encoding = o->encoding,
                              .log = o->log,
                              .middle = o->middle,
                              .spread = o->spread,
                              .maximize = o->maximize,
                              .nok = o->nok,
                              .best = o->best,
                              .slope = o->slope};
    for (size_t i = 0; i < half; i++)
        add_value(t, o->known.raw[order[i]], o->y[order[i]], o->bound[order[i]]);
    for (size_t i = 0; i < rest; i++) {
        size_t k = order[half + i * (all - half) / rest];
        add_value(t, o->known.raw[k], o->y[k], o->bound[k]);
    }
    for (size_t i = 0; i < o->pending.n; i++)
        dt_points_add(&t->pending, o->encoding, o->pending.raw[i]);
    for (size_t i = 0; i < o->failed.n; i++)
        dt_points_add(&t->failed, o->encoding, o->failed.raw[i]);
    free(order);
    return t;
}

void dt_observed_free(struct dt_observed *o)
{
    if (!o)
        return;
    dt_points_free(&o->known);
    dt_points_free(&o->pending);
    dt_points_free(&o->failed);
    free(o->y);
    free(o->bound);
    free(o);
}
