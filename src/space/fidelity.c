/* The parameter that says how much of the work a trial does: samples of the data, epochs. */
#include "space/space.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>

int dt_space_fidelity(const struct dt_space *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->params[i].fidelity)
            return (int)i;
    return -1;
}

double dt_param_highest(const struct dt_param *p)
{
    double x = p->values ? p->values[0] : dt_param_at(p, 1);
    for (size_t i = 1; i < p->nvalues; i++)
        x = fmax(x, p->values[i]);
    return x;
}

bool dt_space_is_full(const struct dt_space *s, const double *x)
{
    int f = dt_space_fidelity(s);
    return f < 0 || isnan(x[f]) || x[f] >= dt_param_highest(&s->params[f]);
}

bool dt_space_same_work(const struct dt_space *s, const double *a, const double *b)
{
    int f = dt_space_fidelity(s);
    for (size_t i = 0; i < s->n; i++)
        if ((int)i != f && !dt_config_equal(a + i, b + i, 1))
            return false;
    return true;
}

void dt_space_fill(const struct dt_space *s, double *x)
{
    int f = dt_space_fidelity(s);
    if (f >= 0)
        x[f] = dt_param_highest(&s->params[f]);
}

/* The value of the domain next to x. */
static double nearest(const struct dt_param *p, double x)
{
    return p->step > 0 ? dt_param_nth(p, (size_t)round((x - p->low) / p->step)) : x;
}

size_t dt_param_lower(const struct dt_param *p, double **values)
{
    double highest = dt_param_highest(p), *v = NULL;
    size_t n = 0;
    if (p->values) {
        v = dt_xcalloc(p->nvalues, sizeof(double));
        for (size_t i = 0; i < p->nvalues; i++)
            if (p->values[i] < highest)
                v[n++] = p->values[i];
    }
    for (double x = highest / 2; !p->values && x >= p->low; x /= 2) {
        double y = nearest(p, x);
        if (y >= highest || (n && y >= v[n - 1]))
            continue;
        v = dt_xrealloc(v, n + 1, sizeof(double));
        v[n++] = y;
    }
    if (n)
        gsl_sort(v, 1, n);
    *values = v;
    return n;
}
