/* Hyperparameters in the neighbourhood of others ("explore" in Jaderberg et al., "Population based
 * training of neural networks", 2017). */
#include "optimizer/algorithms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UP 1.2
#define DOWN 0.8
#define TRIES 100 /* draws until one is allowed */

static double neighbour(const struct dt_param *p, double x, bool up)
{
    size_t i = 0;
    while (i + 1 < p->nvalues && p->values[i] != x)
        i++;
    bool room = up ? i + 1 < p->nvalues : i > 0;
    return p->values[room ? (up ? i + 1 : i - 1) : i];
}

/* As people would write it. */
static double rounded(double x)
{
    char *s = dt_xasprintf("%.4g", x);
    x = strtod(s, NULL);
    free(s);
    return x;
}

/* A number goes one step of its domain at least, if there is room. */
static double scaled(const struct dt_param *p, double x, bool up)
{
    double y = x * (up ? UP : DOWN);
    if (p->step > 0) {
        double last = dt_param_count(p) - 1, at = round((x - p->low) / p->step),
               to = round((y - p->low) / p->step);
        to = to == at ? at + (up ? 1 : -1) : to;
        return dt_param_nth(p, (size_t)fmin(fmax(to, 0), last));
    }
    return fmin(fmax(rounded(y), p->low), p->high);
}

/* At the edge of the domain the other way. */
static double perturbed(const struct dt_param *p, double x, bool up)
{
    double y = p->values ? neighbour(p, x, up) : scaled(p, x, up);
    if (y == x)
        y = p->values ? neighbour(p, x, !up) : scaled(p, x, !up);
    return y;
}

void dt_perturb(const struct dt_space *s, const double *from, double resample, uint64_t stream,
                double *x)
{
    gsl_rng *rng = dt_rng_new(stream);
    bool allowed = false;
    for (int tries = 0; tries < TRIES && !allowed; tries++) {
        for (size_t i = 0; i < s->n; i++) {
            const struct dt_param *p = &s->params[i];
            double anew = gsl_rng_uniform(rng), u = gsl_rng_uniform(rng);
            x[i] = from[i];
            if (p->hyper && (isnan(from[i]) || anew < resample))
                x[i] = dt_param_at(p, u);
            else if (p->hyper)
                x[i] = perturbed(p, from[i], u < 0.5);
        }
        dt_space_settle(s, x);
        allowed = dt_space_allows(s, x, NULL);
    }
    if (!allowed)
        memcpy(x, from, s->n * sizeof(double));
    gsl_rng_free(rng);
}
