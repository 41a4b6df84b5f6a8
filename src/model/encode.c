#include "model/encode.h"
#include "model/portable.h"

#include <stdlib.h>

static void bounds(const struct dt_param *p, double *low, double *high)
{
    *low = p->low;
    *high = p->high;
    for (size_t i = 0; p->values && i < p->nvalues; i++) {
        *low = i ? fmin(*low, p->values[i]) : p->values[i];
        *high = i ? fmax(*high, p->values[i]) : p->values[i];
    }
}

/* Counts matter by their ratios, and so does what was listed over a wide range (64, 128, ..., 1024;
 * 2G, 4G, ...). */
static enum dt_scale scale_of(const struct dt_param *p, double low, double high)
{
    if (p->kind == DT_PARAM_LABEL)
        return DT_SCALE_CHOICE;
    bool count = !p->hyper && p->kind == DT_PARAM_INT && low >= 0;
    bool wide = p->values && low > 0 && high >= 8 * low;
    return p->log || p->fidelity || count || wide ? DT_SCALE_LOG : DT_SCALE_LINEAR;
}

static double on_scale(const struct dt_axis *a, double x)
{
    return a->scale == DT_SCALE_LOG ? dt_log(fmax(x + a->shift, 1e-300)) : x;
}

struct dt_encoding *dt_encoding_new(const struct dt_space *space)
{
    struct dt_encoding *e = dt_xcalloc(1, sizeof(*e));
    struct dt_kernel *k = &e->kernel;
    e->space = space;
    e->axes = dt_xcalloc(space->n, sizeof(*e->axes));
    k->groups = space->n;
    for (size_t i = 0; i < space->n; i++) {
        const struct dt_param *p = &space->params[i];
        struct dt_axis *a = &e->axes[i];
        double low, high;
        bounds(p, &low, &high);
        a->scale = scale_of(p, low, high);
        a->shift = low > 0 ? 0 : 1 - low; /* 0 parameter servers are as far from 1 as 1 from 2 */
        a->low = on_scale(a, low);
        a->range = fmax(on_scale(a, high) - a->low, 1e-300);
        a->column = k->columns;
        k->columns += a->scale == DT_SCALE_CHOICE ? p->nvalues : 1;
        k->group = dt_xrealloc(k->group, k->columns, sizeof(*k->group));
        for (size_t c = a->column; c < k->columns; c++)
            k->group[c] = i;
    }
    return e;
}

void dt_encoding_free(struct dt_encoding *e)
{
    if (!e)
        return;
    free(e->axes);
    free(e->kernel.group);
    free(e);
}

void dt_encode(const struct dt_encoding *e, const double *x, double *out)
{
    for (size_t i = 0; i < e->space->n; i++) {
        const struct dt_param *p = &e->space->params[i];
        const struct dt_axis *a = &e->axes[i];
        if (a->scale != DT_SCALE_CHOICE) {
            out[a->column] = isnan(x[i]) ? 0.5 : (on_scale(a, x[i]) - a->low) / a->range;
            continue;
        }
        for (size_t j = 0; j < p->nvalues; j++)
            out[a->column + j] = p->values[j] == x[i] ? sqrt(0.5) : 0;
    }
}

double dt_distance2(const struct dt_kernel *k, const double *a, const double *b)
{
    double d = 0;
    for (size_t c = 0; c < k->columns; c++)
        d += (a[c] - b[c]) * (a[c] - b[c]);
    return d;
}
