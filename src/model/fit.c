/* The hyperparameters: log marginal likelihood (Rasmussen and Williams, equations 2.30 and 5.9)
 * plus the log of normal priors on their logarithms, and its maximum. */
#include "model/kernel.h"
#include "model/model.h"

#include <stdlib.h>

struct dt_evidence {
    const struct dt_kernel *kernel;
    const struct dt_prior *prior;
    const double *y;
    size_t n, pairs;
    double *dist; /* groups x pairs: squared distance of the pair (i, j < i), at i*(i-1)/2 + j */
    double *own;  /* pairs: covariance of the series' own courses; NULL: no series */
    double *k;    /* pairs: unit covariance */
    double *l;    /* packed lower triangle */
    double *inverse, *alpha, *slope;
};

struct dt_evidence *dt_evidence_new(const struct dt_kernel *kernel, const struct dt_prior *prior,
                                    const double *x, const double *y, size_t n)
{
    struct dt_evidence *ev = dt_xcalloc(1, sizeof(*ev));
    size_t pairs = n * (n - 1) / 2, columns = kernel->columns;
    ev->kernel = kernel;
    ev->prior = prior;
    ev->y = y;
    ev->n = n;
    ev->pairs = pairs;
    ev->dist = dt_xcalloc(kernel->groups * pairs + 1, sizeof(double));
    ev->own = kernel->series ? dt_xcalloc(pairs + 1, sizeof(double)) : NULL;
    ev->k = dt_xcalloc(pairs + 1, sizeof(double));
    ev->slope = dt_xcalloc(pairs + 1, sizeof(double));
    ev->l = dt_xcalloc(n * (n + 1) / 2, sizeof(double));
    ev->inverse = dt_xcalloc(n * (n + 1) / 2, sizeof(double));
    ev->alpha = dt_xcalloc(n, sizeof(double));
    for (size_t i = 0, at = 0; i < n; i++)
        for (size_t j = 0; j < i; j++, at++) {
            for (size_t c = 0; c < columns; c++) {
                double d = x[i * columns + c] - x[j * columns + c];
                ev->dist[kernel->group[c] * pairs + at] += d * d;
            }
            if (ev->own)
                ev->own[at] = dt_own_course(kernel, x + i * columns, 1, x + j * columns, 1);
        }
    return ev;
}

void dt_evidence_free(struct dt_evidence *ev)
{
    if (!ev)
        return;
    free(ev->dist);
    free(ev->own);
    free(ev->k);
    free(ev->slope);
    free(ev->l);
    free(ev->inverse);
    free(ev->alpha);
    free(ev);
}

/* Unit covariances of all pairs; slope: -2 dk/d(squared distance). */
static void covariances(struct dt_evidence *ev, const double *theta)
{
    double *restrict k = ev->k, *restrict slope = ev->slope;
    for (size_t p = 0; p < ev->pairs; p++)
        k[p] = 0;
    for (size_t g = 0; g < ev->kernel->groups; g++) {
        const double *restrict d = ev->dist + g * ev->pairs;
        double w = dt_exp(-2 * theta[g]);
        for (size_t p = 0; p < ev->pairs; p++)
            k[p] += d[p] * w;
    }
    for (size_t p = 0; p < ev->pairs; p++) {
        double r = sqrt(5 * k[p]), e = dt_exp(-r);
        k[p] = (1 + r + r * r / 3) * e;
        slope[p] = 5 * (1 + r) / 3 * e;
    }
}

/* Factorizes the covariance; returns the log likelihood and leaves l^-1 y in alpha. */
static double factorize(struct dt_evidence *ev, double signal, double noise)
{
    double log_likelihood = -(double)ev->n * DT_LN_SQRT_2PI,
           variance = signal + noise + (ev->own ? ev->kernel->own : 0);
    for (size_t i = 0; i < ev->n; i++) {
        double *row = ev->l + i * (i + 1) / 2;
        const double *k = ev->k + i * (i - 1) / 2,
                     *own = ev->own ? ev->own + i * (i - 1) / 2 : NULL;
        for (size_t j = 0; j < i; j++)
            row[j] = signal * k[j] + (own ? own[j] : 0);
        dt_solve(ev->l, row, i);
        row[i] = dt_pivot(variance, row, i);
        ev->alpha[i] = (ev->y[i] - dt_dot(row, ev->alpha, i)) / row[i];
        log_likelihood -= dt_log(row[i]) + 0.5 * ev->alpha[i] * ev->alpha[i];
    }
    return log_likelihood;
}

/* inverse := K^-1 - alpha alpha^T (lower triangle), alpha := K^-1 y: what the gradient is a trace
 * with. */
static void invert(struct dt_evidence *ev)
{
    size_t n = ev->n;
    double *column = dt_xcalloc(n, sizeof(double)), *l = ev->l, *a = ev->inverse;
    for (size_t i = n; i-- > 0;) { /* back substitution on l^T */
        ev->alpha[i] /= l[i * (i + 1) / 2 + i];
        for (size_t j = 0; j < i; j++)
            ev->alpha[j] -= l[i * (i + 1) / 2 + j] * ev->alpha[i];
    }
    for (size_t j = 0; j < n * (n + 1) / 2; j++)
        a[j] = 0;
    for (size_t c = 0; c < n; c++) { /* column c of l^-T l^-1, its entries c and below */
        for (size_t i = c; i < n; i++) {
            const double *row = l + i * (i + 1) / 2;
            double s = i == c ? 1 : 0;
            column[i] = (s - dt_dot(row + c, column + c, i - c)) / row[i];
        }
        for (size_t i = n; i-- > c;) {
            const double *row = l + i * (i + 1) / 2;
            column[i] /= row[i];
            for (size_t j = c; j < i; j++)
                column[j] -= row[j] * column[i];
            a[i * (i + 1) / 2 + c] = column[i] - ev->alpha[i] * ev->alpha[c];
        }
    }
    free(column);
}

static void gradient(struct dt_evidence *ev, const double *theta, double signal, double noise,
                     double *grad)
{
    size_t groups = ev->kernel->groups;
    double trace = 0, covariance = 0;
    invert(ev);
    for (size_t i = 0; i < ev->n; i++) {
        const double *a = ev->inverse + i * (i + 1) / 2;
        trace += a[i];
        covariance += dt_dot(a, ev->k + i * (i - 1) / 2, i);
        for (size_t j = 0; j < i; j++)
            ev->slope[i * (i - 1) / 2 + j] *= a[j];
    }
    for (size_t g = 0; g < groups; g++)
        grad[g] = -signal * dt_exp(-2 * theta[g]) *
                  dt_dot(ev->slope, ev->dist + g * ev->pairs, ev->pairs);
    grad[groups] = -signal * (trace + 2 * covariance);
    grad[groups + 1] = -noise * trace;
}

double dt_evidence_at(struct dt_evidence *ev, const double *theta, double *grad)
{
    const struct dt_kernel *kernel = ev->kernel;
    double signal = dt_exp(2 * theta[DT_SIGNAL(kernel)]),
           noise = dt_exp(2 * theta[DT_NOISE(kernel)]);
    covariances(ev, theta);
    double value = factorize(ev, signal, noise);
    if (grad)
        gradient(ev, theta, signal, noise, grad);
    for (size_t i = 0; i < DT_HYPERS(kernel); i++) {
        double z = (theta[i] - ev->prior[i].mean) / ev->prior[i].sd;
        value -= 0.5 * z * z;
        if (grad)
            grad[i] -= z / ev->prior[i].sd;
    }
    return value;
}

/* h := h updated by the step s and the change g of the (descent) gradient along it: Nocedal and
 * Wright, equation 6.17. */
static void update(double *h, const double *s, const double *g, size_t n)
{
    double sg = dt_dot(s, g, n), ghg = 0;
    if (sg <= 1e-10)
        return;
    double *hg = dt_xcalloc(n, sizeof(double));
    for (size_t i = 0; i < n; i++)
        hg[i] = dt_dot(h + i * n, g, n);
    ghg = dt_dot(g, hg, n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            h[i * n + j] += (1 + ghg / sg) * s[i] * s[j] / sg - (hg[i] * s[j] + s[i] * hg[j]) / sg;
    free(hg);
}

void dt_evidence_climb(struct dt_evidence *ev, double *theta)
{
    size_t n = DT_HYPERS(ev->kernel);
    double *h = dt_xcalloc(n * n + 5 * n, sizeof(double)), *grad = h + n * n, *next = grad + n,
           *next_grad = next + n, *step = next_grad + n, *change = step + n;
    for (size_t i = 0; i < n; i++)
        h[i * n + i] = 0.1;
    double value = dt_evidence_at(ev, theta, grad);
    for (int turn = 0; turn < 50; turn++) {
        double longest = 0, slope = 0, gain = -1;
        for (size_t i = 0; i < n; i++) {
            step[i] = dt_dot(h + i * n, grad, n);
            slope += step[i] * grad[i];
            longest = fabs(step[i]) > longest ? fabs(step[i]) : longest;
        }
        if (slope < 1e-5)
            break;
        for (double t = longest > 1 ? 1 / longest : 1; t > 1e-4; t /= 4) {
            for (size_t i = 0; i < n; i++)
                next[i] = theta[i] + t * step[i];
            gain = dt_evidence_at(ev, next, next_grad) - value;
            if (gain >= 1e-4 * t * slope)
                break;
        }
        if (!(gain > 0))
            break;
        for (size_t i = 0; i < n; i++) {
            step[i] = next[i] - theta[i];
            change[i] = grad[i] - next_grad[i];
            theta[i] = next[i];
            grad[i] = next_grad[i];
        }
        value += gain;
        update(h, step, change, n);
    }
    free(h);
}
