#include "space/space.h"

#include <stdlib.h>
#include <string.h>

bool dt_config_same_hyper(const struct dt_space *s, const double *a, const double *b)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->params[i].hyper && !dt_config_equal(a + i, b + i, 1))
            return false;
    return true;
}

static double *of_enumerated(const struct dt_space *s, const double *x, size_t max, size_t *n)
{
    double *rows = dt_xcalloc(s->npoints * s->n + 1, sizeof(double));
    for (size_t i = 0; i < s->npoints && *n < max; i++) {
        const double *point = s->points + i * s->n;
        if (dt_config_same_hyper(s, point, x))
            memcpy(rows + (*n)++ * s->n, point, s->n * sizeof(double));
    }
    return rows;
}

double *dt_space_beside(const struct dt_space *s, const double *x, size_t max, size_t *n)
{
    *n = 0;
    if (s->enumerated)
        return of_enumerated(s, x, max, n);
    bool *among = dt_xcalloc(s->n, sizeof(*among));
    double *rows = dt_xcalloc(max * s->n, sizeof(double));
    for (size_t i = 0; i < s->n; i++)
        among[i] = !s->params[i].hyper;
    struct dt_walk w = {.conditions = s->conditions, .among = among};
    dt_walk_start(&w);
    do {
        double *row = rows + *n * s->n;
        for (size_t i = 0; i < s->n; i++)
            row[i] = among[i] ? w.x[i] : x[i];
        *n += dt_space_allows(s, row, NULL);
    } while (*n < max && dt_walk_next(&w));
    dt_walk_end(&w);
    free(among);
    return rows;
}
