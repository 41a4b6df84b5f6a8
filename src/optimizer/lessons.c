#include "optimizer/lessons.h"
#include "model/portable.h"
#include "optimizer/acquire.h"
#include "optimizer/belief.h"

#include <stdlib.h>
#include <string.h>

/* Past observations: of each study the better half and a sample of the rest. */
#define PAST_MAX 120
/* A study's own course: standard deviation in units of the scatter within a study, and over which
 * distance, where an axis is 1 long, it may turn. */
#define OWN_COURSE 2.0
#define OWN_REACH 2.0
/* What all failures of the past can make of a chance. */
#define LEAST_CHANCE 0.1

/* ---- what was measured ---- */

static struct dt_observed *measured(const struct dt_context *ctx, const struct dt_past_study *s,
                                    const struct dt_encoding *encoding)
{
    struct dt_context then = {.space = ctx->space,
                              .obs = s->n ? ctx->past->obs + s->first : NULL,
                              .nobs = s->n,
                              .maximize = ctx->maximize,
                              .grows = ctx->grows};
    return dt_observed_new(&then, encoding);
}

static struct dt_observed *thinned(struct dt_observed *all, size_t n)
{
    if (all->known.n <= n)
        return all;
    struct dt_observed *some = dt_observed_thin(all, n);
    dt_observed_free(all);
    return some;
}

/* Studies with values on the same scale; returns how many. */
static size_t usable_studies(const struct dt_context *ctx, const struct dt_observed *o,
                             size_t studies, struct dt_observed **then)
{
    size_t n = 0;
    for (size_t i = 0; i < studies; i++) {
        then[n] = thinned(measured(ctx, &ctx->past->studies[i], o->encoding), PAST_MAX / studies);
        if (then[n]->known.n > 1 && then[n]->log == o->log)
            n++;
        else
            dt_observed_free(then[n]);
    }
    return n;
}

/* A row of the process; `study` is 0 for the present one. */
static void row(const struct dt_lessons *l, const double *x, size_t study, double *out)
{
    size_t columns = l->kernel.columns - l->kernel.series;
    memcpy(out, x, columns * sizeof(double));
    for (size_t i = 0; i < l->kernel.series; i++)
        out[columns + i] = i == study;
}

static double law_at(const struct dt_lessons *l, const struct dt_space *s, const double *raw)
{
    double y = 0;
    for (size_t i = 0; i < l->nlaws; i++)
        y += dt_speed_at(s, raw, &l->laws[i]) / (double)l->nlaws;
    return y;
}

static double centre(double *y, size_t n, double *squares)
{
    double mean = 0;
    for (size_t i = 0; i < n; i++)
        mean += y[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        y[i] -= mean;
        *squares += y[i] * y[i];
    }
    return mean;
}

/* A law that most of the studies do not follow is none. */
static void fit_laws(struct dt_lessons *l, struct dt_observed *const *then, size_t n, bool *has_law)
{
    struct dt_speed *laws = l->laws;
    for (size_t i = 0; i < n; i++) {
        const struct dt_observed *o = then[i];
        has_law[i] = o->log && dt_speed_fit(o->encoding->space, o->known.raw, o->y, o->known.n,
                                            &laws[l->nlaws]);
        l->nlaws += has_law[i];
    }
    if (2 * l->nlaws > n)
        return;
    l->nlaws = 0;
    memset(has_law, 0, n * sizeof(*has_law));
}

static void take_study(struct dt_lessons *l, const struct dt_observed *o,
                       const struct dt_speed *law, double *squares)
{
    const struct dt_space *s = o->encoding->space;
    size_t columns = o->encoding->kernel.columns, n = o->known.n;
    double *y = l->y + l->n;
    l->nstudies++;
    for (size_t i = 0; i < n; i++) {
        row(l, o->known.x + i * columns, l->nstudies, l->x + (l->n + i) * l->kernel.columns);
        y[i] = o->y[i] - (law ? dt_speed_at(s, o->known.raw[i], law) : 0);
    }
    centre(y, n, squares);
    l->n += n;
}

/* Takes the studies over. */
static void take_studies(struct dt_lessons *l, struct dt_observed **then, size_t n, double *squares)
{
    bool has_law[DT_LESSONS_STUDIES];
    const struct dt_speed *law = l->laws;
    fit_laws(l, then, n, has_law);
    for (size_t i = 0; i < n; i++) {
        take_study(l, then[i], has_law[i] ? law : NULL, squares);
        law += has_law[i];
        dt_observed_free(then[i]);
    }
}

/* What the process sees of the present study. Caller frees. */
static double *residuals(const struct dt_lessons *l, const struct dt_observed *o)
{
    double *r = dt_xcalloc(o->known.n + 1, sizeof(double));
    for (size_t i = 0; i < o->known.n; i++)
        r[i] = (o->y[i] - law_at(l, o->encoding->space, o->known.raw[i]) - l->mean) / l->unit;
    return r;
}

static void standardise(struct dt_lessons *l, const struct dt_observed *o, double squares)
{
    l->unit = 1;
    double *r = residuals(l, o);
    l->mean = centre(r, o->known.n, &squares);
    size_t freedom = l->n - l->nstudies + (o->known.n ? o->known.n - 1 : 0);
    l->unit = squares > 0 ? sqrt(squares / (double)freedom) : 1;
    for (size_t i = 0; i < l->n; i++)
        l->y[i] /= l->unit;
    free(r);
}

/* ---- the process ---- */

static void make_kernel(struct dt_kernel *k, const struct dt_kernel *plain, size_t studies)
{
    *k = (struct dt_kernel){.columns = plain->columns + studies + 1,
                            .groups = plain->groups + studies + 1,
                            .series = studies + 1,
                            .own = OWN_COURSE * OWN_COURSE,
                            .reach = OWN_REACH};
    k->group = dt_xcalloc(k->columns, sizeof(size_t));
    memcpy(k->group, plain->group, plain->columns * sizeof(size_t));
    for (size_t i = 0; i <= studies; i++)
        k->group[plain->columns + i] = plain->groups + i;
}

/* Like those of a belief; a study has much in common with the others, as far as is known. Caller
 * frees. */
static struct dt_prior *priors(const struct dt_kernel *k, int fidelity)
{
    struct dt_prior *p = dt_xcalloc(DT_HYPERS(k), sizeof(*p));
    for (size_t g = 0; g < k->groups; g++)
        p[g] = g < k->groups - k->series ? (struct dt_prior){-0.5, 0.8} : (struct dt_prior){3, 1};
    if (fidelity >= 0)
        p[fidelity] = DT_PRIOR_FIDELITY;
    p[DT_SIGNAL(k)] = (struct dt_prior){0, 0.5};
    p[DT_NOISE(k)] = (struct dt_prior){-3, 1};
    return p;
}

static double *fit(const struct dt_lessons *l, const struct dt_observed *o)
{
    size_t columns = o->encoding->kernel.columns, wide = l->kernel.columns, n = l->n + o->known.n;
    double *x = dt_xcalloc(n * (wide + 1), sizeof(double)), *y = x + n * wide, *r = residuals(l, o);
    struct dt_prior *prior = priors(&l->kernel, dt_space_fidelity(o->encoding->space));
    memcpy(x, l->x, l->n * wide * sizeof(double));
    memcpy(y, l->y, l->n * sizeof(double));
    memcpy(y + l->n, r, o->known.n * sizeof(double));
    for (size_t i = 0; i < o->known.n; i++)
        row(l, o->known.x + i * columns, 0, x + (l->n + i) * wide);
    double *theta = dt_belief_fit(&l->kernel, prior, x, y, n, NULL);
    free(prior);
    free(r);
    free(x);
    return theta;
}

/* Takes one present observation; returns the log of its density given all before it. */
static double add(struct dt_gp *gp, const double *x, double y, bool bound)
{
    double mean, sd;
    if (bound) {
        dt_gp_predict(gp, x, &mean, &sd);
        y = fmax(y, mean + sd * dt_normal_above((y - mean) / sd));
    }
    dt_gp_add(gp, x, y);
    double pivot = gp->l[gp->n * (gp->n + 1) / 2 - 1], z = gp->beta[gp->n - 1];
    return -dt_log(pivot) - 0.5 * z * z - DT_LN_SQRT_2PI;
}

/* The process over past, known and pending, the latter two like a belief's. *evidence, where not
 * NULL: log density of what is known, given the past. */
static struct dt_gp *process(const struct dt_lessons *l, const struct dt_observed *o,
                             double *evidence)
{
    size_t columns = o->encoding->kernel.columns, n = o->known.n;
    struct dt_gp *gp = dt_gp_new(&l->kernel, l->theta, l->n + n + o->pending.n);
    double *x = dt_xcalloc(l->kernel.columns, sizeof(double)), *r = residuals(l, o), sum = 0, mean,
           sd;
    for (size_t i = 0; i < l->n; i++)
        dt_gp_add(gp, l->x + i * l->kernel.columns, l->y[i]);
    for (size_t i = 0; i < 2 * n; i++) { /* values first, then bounds */
        bool bound = i >= n;
        size_t k = bound ? i - n : i;
        row(l, o->known.x + k * columns, 0, x);
        if (o->bound[k] == bound)
            sum += add(gp, x, r[k], bound);
    }
    for (size_t i = 0; i < o->pending.n; i++) {
        row(l, o->pending.x + i * columns, 0, x);
        dt_gp_predict(gp, x, &mean, &sd);
        dt_gp_add(gp, x, mean);
    }
    if (evidence)
        *evidence = sum;
    free(r);
    free(x);
    return gp;
}

/* Points as the present study's. */
static struct dt_field *field(const struct dt_lessons *l, const struct dt_gp *gp,
                              const struct dt_observed *o, const struct dt_points *p)
{
    size_t columns = o->encoding->kernel.columns, wide = l->kernel.columns;
    double *x = dt_xcalloc(p->n * wide + 1, sizeof(double));
    for (size_t i = 0; i < p->n; i++)
        row(l, p->x + i * columns, 0, x + i * wide);
    struct dt_field *f = dt_field_new(gp, x, p->n);
    dt_field_update(f, gp);
    free(x);
    return f;
}

/* ---- lessons ---- */

struct dt_lessons *dt_lessons_new(const struct dt_context *ctx, const struct dt_observed *o)
{
    const struct dt_past *past = ctx->past;
    size_t studies = past ? past->nstudies : 0;
    if (studies == 0)
        return NULL;
    studies = studies < DT_LESSONS_STUDIES ? studies : DT_LESSONS_STUDIES;
    struct dt_observed *then[DT_LESSONS_STUDIES];
    size_t n = usable_studies(ctx, o, studies, then);
    if (n == 0)
        return NULL;
    struct dt_lessons *l = dt_xcalloc(1, sizeof(*l));
    double squares = 0;
    make_kernel(&l->kernel, &o->encoding->kernel, n);
    l->x = dt_xcalloc(PAST_MAX * l->kernel.columns, sizeof(double));
    l->y = dt_xcalloc(PAST_MAX, sizeof(double));
    take_studies(l, then, n, &squares);
    standardise(l, o, squares);
    l->theta = fit(l, o);
    dt_gp_free(process(l, o, &l->log_weight));
    l->log_weight -= (double)o->known.n * dt_log(l->unit);
    return l;
}

void dt_lessons_free(struct dt_lessons *l)
{
    if (!l)
        return;
    free(l->kernel.group);
    free(l->x);
    free(l->y);
    free(l->theta);
    free(l);
}

void dt_lessons_mean(const struct dt_lessons *l, const struct dt_observed *o,
                     const struct dt_points *p, double *mean, double *sd)
{
    struct dt_gp *gp = process(l, o, NULL);
    struct dt_field *f = field(l, gp, o, p);
    for (size_t j = 0; j < p->n; j++)
        mean[j] = law_at(l, o->encoding->space, p->raw[j]) + l->mean + l->unit * f->mean[j];
    for (size_t j = 0; sd && j < p->n; j++)
        sd[j] = l->unit * sqrt(fmax(f->var[j], 0));
    dt_field_free(f);
    dt_gp_free(gp);
}

void dt_lessons_score(const struct dt_lessons *l, const struct dt_observed *o,
                      const struct dt_points *p, double *score)
{
    double scale = l->log_weight + dt_log(l->unit);
    struct dt_gp *gp = process(l, o, NULL);
    struct dt_field *f = field(l, gp, o, p);
    for (size_t j = 0; j < p->n; j++) {
        double best = (o->best - law_at(l, o->encoding->space, p->raw[j]) - l->mean) / l->unit;
        double sd = sqrt(fmax(f->var[j], 1e-12 * gp->signal));
        score[j] =
            dt_log_sum(score[j], scale + dt_log(sd) + dt_log_improvement((best - f->mean[j]) / sd));
    }
    dt_field_free(f);
    dt_gp_free(gp);
}

/* ---- doubts ---- */

struct dt_doubts *dt_doubts_new(const struct dt_context *ctx, const struct dt_encoding *e)
{
    struct dt_doubts *d = ctx->past ? dt_xcalloc(1, sizeof(*d)) : NULL;
    if (!d)
        return NULL;
    struct dt_past_study all = {.n = ctx->past->nobs};
    d->runs = measured(ctx, &all, e);
    d->feasible = dt_feasibility_new(d->runs);
    if (d->feasible)
        return d;
    dt_doubts_free(d);
    return NULL;
}

void dt_doubts_free(struct dt_doubts *d)
{
    if (!d)
        return;
    dt_feasibility_free(d->feasible);
    dt_observed_free(d->runs);
    free(d);
}

void dt_doubts_score(const struct dt_doubts *d, const struct dt_points *p, double *score)
{
    double *chance = dt_xcalloc(p->n + 1, sizeof(double));
    dt_feasibility_score(d->feasible, d->runs, p, chance);
    for (size_t j = 0; j < p->n; j++)
        score[j] += fmax(chance[j], dt_log(LEAST_CHANCE));
    free(chance);
}

/* ---- the best of the past ---- */

/* What succeeded and can be tried here. Its arrays are the caller's. */
static struct dt_points candidates(const struct dt_context *ctx, const struct dt_encoding *e,
                                   bool untried)
{
    const struct dt_past *past = ctx->past;
    struct dt_points p = {.raw = dt_xcalloc(past->nobs + 1, sizeof(*p.raw)),
                          .x = dt_xcalloc(past->nobs * e->kernel.columns + 1, sizeof(double))};
    for (size_t i = 0; i < past->nobs; i++) {
        const struct dt_observation *o = &past->obs[i];
        if (o->status != DT_STATUS_OK || !dt_space_is_full(ctx->space, o->x) ||
            !dt_space_has(ctx->space, o->x) || (untried && dt_context_tried(ctx, o->x)))
            continue;
        p.raw[p.n] = o->x;
        dt_encode(e, o->x, p.x + p.n * e->kernel.columns);
        p.n++;
    }
    return p;
}

/* NULL where there are several studies, or its best cannot be tried here. */
static const double *best_of_one(const struct dt_context *ctx, bool untried)
{
    const struct dt_past *past = ctx->past;
    struct dt_context then = {
        .space = ctx->space, .obs = past->obs, .nobs = past->nobs, .maximize = ctx->maximize};
    int best = past->nstudies == 1 ? dt_context_best(&then) : -1;
    const double *x = best >= 0 ? past->obs[best].x : NULL;
    return x && dt_space_has(ctx->space, x) && !(untried && dt_context_tried(ctx, x)) ? x : NULL;
}

const double *dt_lessons_best(const struct dt_context *ctx, const struct dt_encoding *e,
                              bool untried)
{
    const double *best = best_of_one(ctx, untried);
    if (best)
        return best;
    struct dt_context alone = {.space = ctx->space, .maximize = ctx->maximize, .past = ctx->past};
    struct dt_observed *nothing = dt_observed_new(&alone, e);
    struct dt_lessons *l = dt_lessons_new(&alone, nothing);
    struct dt_points p = candidates(ctx, e, untried);
    double *mean = dt_xcalloc(p.n + 1, sizeof(double)), least = INFINITY;
    if (l)
        dt_lessons_mean(l, nothing, &p, mean, NULL);
    for (size_t i = 0; l && i < p.n; i++) {
        if (mean[i] < least) {
            least = mean[i];
            best = p.raw[i];
        }
    }
    free(mean);
    free(p.raw);
    free(p.x);
    dt_lessons_free(l);
    dt_observed_free(nothing);
    return best;
}
