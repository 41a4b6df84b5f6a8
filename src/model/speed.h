/* The law of speed of parameter-server and all-reduce training, as a prior mean. */
#ifndef DT_SPEED_H
#define DT_SPEED_H

#include "space/space.h"

#define DT_SPEED_TERMS 7

struct dt_speed {
    double coefficient[DT_SPEED_TERMS]; /* of the seconds a unit of work takes; none is negative */
};

/* Fits the law to n configurations and the logarithms y of the time that work took there (or of the
 * inverse of a speed). False where it is of no use: no number of workers in the space, too few
 * observations, or a constant predicts what is left out better. */
bool dt_speed_fit(const struct dt_space *s, const double *const *x, const double *y, size_t n,
                  struct dt_speed *law);
/* Logarithm of the time at x. */
double dt_speed_at(const struct dt_space *s, const double *x, const struct dt_speed *law);

#endif
