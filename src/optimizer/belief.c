#include "optimizer/belief.h"
#include "model/portable.h"
#include "optimizer/acquire.h"

#include <stdlib.h>
#include <string.h>

/* Hyperparameters are fitted to so many observations at most, an even sample; of several series
 * twice as many. */
#define FIT_MAX 64
/* The scatter of a logarithm that is expected before anything was seen, worth one observation. */
#define USUAL_SCATTER 0.3

/* Weak priors in the units of the process. Length scales do not grow with the number of parameters:
 * far from all observations the mean then goes back to the prior's and the search stays near the
 * best, while longer ones carry a slope on into the corners, which are most of a space of many
 * axes. */
static struct dt_prior *priors(const struct dt_encoding *e, struct dt_prior length,
                               struct dt_prior noise)
{
    const struct dt_kernel *k = &e->kernel;
    struct dt_prior *p = dt_xcalloc(DT_HYPERS(k), sizeof(*p));
    int fidelity = dt_space_fidelity(e->space);
    for (size_t g = 0; g < k->groups; g++)
        p[g] = (int)g == fidelity ? DT_PRIOR_FIDELITY : length;
    p[DT_SIGNAL(k)] = (struct dt_prior){0, 0.5};
    p[DT_NOISE(k)] = noise;
    return p;
}

double *dt_belief_fit(const struct dt_kernel *k, const struct dt_prior *prior, const double *x,
                      const double *y, size_t n, double *evidence)
{
    size_t most = k->series ? 2 * FIT_MAX : FIT_MAX, m = n < most ? n : most, columns = k->columns;
    double *theta = dt_xcalloc(DT_HYPERS(k), sizeof(double));
    double *some_x = dt_xcalloc(m * (columns + 1), sizeof(double)), *some_y = some_x + m * columns;
    for (size_t i = 0; i < m; i++) {
        memcpy(some_x + i * columns, x + i * n / m * columns, columns * sizeof(double));
        some_y[i] = y[i * n / m];
    }
    for (size_t i = 0; i < DT_HYPERS(k); i++)
        theta[i] = prior[i].mean;
    struct dt_evidence *ev = dt_evidence_new(k, prior, some_x, some_y, m);
    dt_evidence_climb(ev, theta);
    if (evidence)
        *evidence = dt_evidence_at(ev, theta, NULL);
    dt_evidence_free(ev);
    free(some_x);
    return theta;
}

static double law_at(const struct dt_belief *b, const struct dt_observed *o, const double *raw)
{
    return b->has_law ? dt_speed_at(o->encoding->space, raw, &b->law) : 0;
}

/* What the process sees of the observations. Caller frees. */
static double *residuals(const struct dt_belief *b, const struct dt_observed *o)
{
    double *r = dt_xcalloc(o->known.n + 1, sizeof(double));
    for (size_t i = 0; i < o->known.n; i++)
        r[i] = (o->y[i] - law_at(b, o, o->known.raw[i]) - b->mean) / b->unit;
    return r;
}

static void standardise(struct dt_belief *b, const struct dt_observed *o)
{
    size_t n = o->known.n;
    double sum = 0, usual = o->log ? USUAL_SCATTER : 0;
    b->unit = 1;
    double *r = residuals(b, o);
    for (size_t i = 0; i < n; i++)
        b->mean += r[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        sum += (r[i] - b->mean) * (r[i] - b->mean);
    double variance = o->log ? (sum + usual * usual) / (double)n : sum / fmax((double)n - 1, 1);
    b->unit = variance > 0 ? sqrt(variance) : 1;
    free(r);
}

struct dt_belief *dt_belief_new(const struct dt_observed *o, bool law)
{
    const struct dt_kernel *k = &o->encoding->kernel;
    struct dt_belief *b = dt_xcalloc(1, sizeof(*b));
    size_t n = o->known.n;
    b->has_law = law && o->log && dt_speed_fit(o->encoding->space, o->known.raw, o->y, n, &b->law);
    if (law && !b->has_law) {
        free(b);
        return NULL;
    }
    standardise(b, o);
    struct dt_prior *prior =
        priors(o->encoding, (struct dt_prior){-0.5, 0.8}, (struct dt_prior){-3, 1});
    double *r = residuals(b, o);
    b->theta = dt_belief_fit(k, prior, o->known.x, r, n, &b->log_weight);
    b->log_weight -= (double)(n < FIT_MAX ? n : FIT_MAX) * dt_log(b->unit);
    free(prior);
    free(r);
    return b;
}

void dt_belief_free(struct dt_belief *b)
{
    if (!b)
        return;
    free(b->theta);
    free(b);
}

/* The process over everything known and pending. A bound counts with the mean of what lies above
 * it, given the values; a pending trial with what is expected of it ("kriging believer",
 * Ginsbourger et al. 2010). */
static struct dt_gp *process(const struct dt_belief *b, const struct dt_observed *o)
{
    size_t columns = o->encoding->kernel.columns;
    struct dt_gp *gp = dt_gp_new(&o->encoding->kernel, b->theta, o->known.n + o->pending.n + 1);
    double *r = residuals(b, o), mean, sd;
    for (size_t i = 0; i < o->known.n; i++)
        if (!o->bound[i])
            dt_gp_add(gp, o->known.x + i * columns, r[i]);
    for (size_t i = 0; i < o->known.n; i++) {
        if (!o->bound[i])
            continue;
        dt_gp_predict(gp, o->known.x + i * columns, &mean, &sd);
        r[i] = fmax(r[i], mean + sd * dt_normal_above((r[i] - mean) / sd));
        dt_gp_add(gp, o->known.x + i * columns, r[i]);
    }
    for (size_t i = 0; i < o->pending.n; i++) {
        dt_gp_predict(gp, o->pending.x + i * columns, &mean, &sd);
        dt_gp_add(gp, o->pending.x + i * columns, mean);
    }
    free(r);
    return gp;
}

void dt_belief_mean(const struct dt_belief *b, const struct dt_observed *o,
                    const struct dt_points *p, double *mean, double *sd)
{
    struct dt_gp *gp = process(b, o);
    struct dt_field *f = dt_field_new(gp, p->x, p->n);
    dt_field_update(f, gp);
    for (size_t j = 0; j < p->n; j++)
        mean[j] = law_at(b, o, p->raw[j]) + b->mean + b->unit * f->mean[j];
    for (size_t j = 0; sd && j < p->n; j++)
        sd[j] = b->unit * sqrt(fmax(f->var[j], 0));
    dt_field_free(f);
    dt_gp_free(gp);
}

void dt_belief_chance(const struct dt_belief *b, const struct dt_observed *o, double limit,
                      const struct dt_points *p, double *score)
{
    struct dt_gp *gp = process(b, o);
    struct dt_field *f = dt_field_new(gp, p->x, p->n);
    dt_field_update(f, gp);
    for (size_t j = 0; j < p->n; j++) {
        double sd = sqrt(gp->noise + fmax(f->var[j], 0));
        double z = (limit - law_at(b, o, p->raw[j]) - b->mean) / b->unit - f->mean[j];
        z /= sd;
        score[j] += dt_log(fmax(dt_normal_cdf(z), 1e-300));
    }
    dt_field_free(f);
    dt_gp_free(gp);
}

double dt_belief_told(const struct dt_belief *b, const struct dt_observed *o, const double *point,
                      const double *other)
{
    struct dt_gp *gp = process(b, o);
    double mean, before, after;
    dt_gp_predict(gp, point, &mean, &before);
    dt_gp_add(gp, other, 0); /* whatever its value */
    dt_gp_predict(gp, point, &mean, &after);
    dt_gp_free(gp);
    return 1 - after * after / (before * before);
}

void dt_belief_score(const struct dt_belief *b, const struct dt_observed *o,
                     const struct dt_points *p, double *score)
{
    struct dt_gp *gp = process(b, o);
    struct dt_field *f = dt_field_new(gp, p->x, p->n);
    double scale = b->log_weight + dt_log(b->unit);
    dt_field_update(f, gp);
    for (size_t j = 0; j < p->n; j++) {
        double best = (o->best - law_at(b, o, p->raw[j]) - b->mean) / b->unit;
        double sd = sqrt(fmax(f->var[j], 1e-12 * gp->signal));
        score[j] =
            dt_log_sum(score[j], scale + dt_log(sd) + dt_log_improvement((best - f->mean[j]) / sd));
    }
    dt_field_free(f);
    dt_gp_free(gp);
}

/* ---- feasibility: least-squares classification (Rasmussen and Williams, section 6.5) ---- */

/* Rows of those that ran, then those that failed, and their labels 1 and -1, standardised. Caller
 * frees both. */
static size_t labelled(const struct dt_observed *o, double **x, double **y, double *mean)
{
    size_t ran = o->known.n, n = ran + o->failed.n, columns = o->encoding->kernel.columns;
    double share = ((double)ran + 0.5) / ((double)n + 1), sd = 2 * sqrt(share * (1 - share));
    *mean = (2 * share - 1) / sd;
    *x = dt_xcalloc(n * columns, sizeof(double));
    *y = dt_xcalloc(n, sizeof(double));
    if (ran)
        memcpy(*x, o->known.x, ran * columns * sizeof(double));
    memcpy(*x + ran * columns, o->failed.x, o->failed.n * columns * sizeof(double));
    for (size_t i = 0; i < n; i++)
        (*y)[i] = (i < ran ? 1 : -1) / sd - *mean;
    return n;
}

struct dt_feasibility *dt_feasibility_new(const struct dt_observed *o)
{
    const struct dt_kernel *k = &o->encoding->kernel;
    if (o->failed.n == 0)
        return NULL;
    struct dt_feasibility *f = dt_xcalloc(1, sizeof(*f));
    struct dt_prior *prior =
        priors(o->encoding, (struct dt_prior){-0.5, 0.8}, (struct dt_prior){-1, 1});
    double *x, *y, mean, evidence, at_random = 0;
    size_t n = labelled(o, &x, &y, &mean);
    f->theta = dt_belief_fit(k, prior, x, y, n, &evidence);
    for (size_t i = 0; i < n; i++)
        at_random -= 0.5 * y[i] * y[i] + DT_LN_SQRT_2PI;
    f->share = ((double)o->known.n + 0.5) / ((double)n + 1);
    at_random *= n > FIT_MAX ? FIT_MAX / (double)n : 1; /* as many as were fitted */
    f->weight = 1 / (1 + dt_exp(at_random - evidence));
    free(prior);
    free(x);
    free(y);
    return f;
}

void dt_feasibility_free(struct dt_feasibility *f)
{
    if (!f)
        return;
    free(f->theta);
    free(f);
}

/* What failed fails with less memory as well: whether b is a, but for memory amounts of which none
 * is larger. */
static bool is_smaller(const struct dt_space *s, const double *a, const double *b)
{
    bool less = false;
    for (size_t i = 0; i < s->n; i++) {
        size_t len = strlen(s->params[i].name);
        bool memory = len >= 4 && strcmp(s->params[i].name + len - 4, "_mem") == 0;
        if (b[i] == a[i] || (isnan(a[i]) && isnan(b[i])))
            continue;
        if (!memory || b[i] > a[i])
            return false;
        less = true;
    }
    return less;
}

void dt_feasibility_score(const struct dt_feasibility *f, const struct dt_observed *o,
                          const struct dt_points *p, double *score)
{
    const double hopeless = -1000;
    double *x, *y, mean;
    size_t n = labelled(o, &x, &y, &mean), columns = o->encoding->kernel.columns;
    struct dt_gp *gp = dt_gp_new(&o->encoding->kernel, f->theta, n);
    for (size_t i = 0; i < n; i++)
        dt_gp_add(gp, x + i * columns, y[i]);
    struct dt_field *field = dt_field_new(gp, p->x, p->n);
    dt_field_update(field, gp);
    for (size_t j = 0; j < p->n; j++) {
        double sd = sqrt(gp->noise + fmax(field->var[j], 0));
        double chance = dt_normal_cdf((field->mean[j] + mean) / sd);
        score[j] += 2 * dt_log(f->weight * chance + (1 - f->weight) * f->share);
        for (size_t i = 0; i < o->failed.n; i++)
            score[j] += is_smaller(o->encoding->space, o->failed.raw[i], p->raw[j]) ? hopeless : 0;
    }
    dt_field_free(field);
    dt_gp_free(gp);
    free(x);
    free(y);
}
