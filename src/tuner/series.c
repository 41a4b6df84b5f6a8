#include "tuner/tuner.h"

#include <math.h>
#include <stdlib.h>

/* Drops every other point. What was the latest goes too: the caller has a later one. */
static void thin(struct dt_series *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i += 2)
        s->v[kept++] = s->v[i];
    s->n = kept;
    s->stride *= 2;
}

void dt_series_add(struct dt_series *s, double step, double value, double t)
{
    if (s->n == s->room && s->room < DT_SERIES_MAX) {
        s->room = s->room ? 2 * s->room : 8;
        s->v = dt_xrealloc(s->v, s->room, sizeof(*s->v));
    }
    if (!s->stride)
        s->stride = 1;
    bool passing = s->n > 0 && (s->seen - 1) % s->stride != 0; /* the last was only the latest */
    if (passing)
        s->n--;
    else if (s->n == DT_SERIES_MAX)
        thin(s);
    s->seen++;
    s->v[s->n++] = (struct dt_point){isnan(step) ? (double)s->seen : step, value, t};
}

void dt_series_free(struct dt_series *s)
{
    free(s->v);
    *s = (struct dt_series){0};
}

/* One piece of memory: the steps, the values, the times. */
struct dt_curve dt_curve_new(size_t room)
{
    double *v = dt_xcalloc(3 * room, sizeof(double));
    return (struct dt_curve){v, v + room, v + 2 * room, 0};
}

void dt_curve_add(struct dt_curve *c, const struct dt_point *p)
{
    if (c->n > 0 && p->step <= c->step[c->n - 1])
        return;
    ((double *)c->step)[c->n] = p->step;
    ((double *)c->value)[c->n] = p->value;
    ((double *)c->t)[c->n++] = p->t;
}

void dt_curve_free(struct dt_curve *c)
{
    free((double *)c->step);
    *c = (struct dt_curve){0};
}
