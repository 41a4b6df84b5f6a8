/* Pool: the configurations among which the next one is chosen; all are allowed and none was tried.
 */
#ifndef DT_POOL_H
#define DT_POOL_H

#include "optimizer/observed.h"

#include <gsl/gsl_rng.h>

struct dt_pool {
    struct dt_points p; /* raw rows point into `rows` or into the space */
    double *rows;
};

/* An enumerated space: what is left of it, or of a large one an even sample and what lies around
 * the best. Else the middle of all axes, where it is allowed and new, random configurations and
 * variations of the best observed ones. Empty where nothing was found. */
struct dt_pool *dt_pool_new(const struct dt_context *ctx, const struct dt_observed *o,
                            gsl_rng *rng);
/* Variations of one configuration that change a parameter or a few by about `reach` of their range.
 */
struct dt_pool *dt_pool_around(const struct dt_context *ctx, const struct dt_encoding *e,
                               const double *x, double reach, size_t n, gsl_rng *rng);
/* All configurations with the hyperparameters of x, or those that were not tried. */
struct dt_pool *dt_pool_beside(const struct dt_context *ctx, const struct dt_encoding *e,
                               const double *x, bool untried);
/* Of p the n points with the highest scores, best first. */
struct dt_pool *dt_pool_best(const struct dt_pool *p, const struct dt_encoding *e,
                             const double *score, size_t n);
void dt_pool_free(struct dt_pool *p);

#endif
