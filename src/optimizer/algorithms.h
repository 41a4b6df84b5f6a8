/* The algorithms behind the border, a file each. */
#ifndef DT_ALGORITHMS_H
#define DT_ALGORITHMS_H

#include "optimizer/optimizer.h"

#include <gsl/gsl_rng.h>

extern const struct dt_optimizer_ops dt_bayes;  /* Gaussian process and expected improvement */
extern const struct dt_optimizer_ops dt_joint;  /* quality teaches hyperparameters, pace the DT configuration */
extern const struct dt_optimizer_ops dt_random; /* without replacement */
extern const struct dt_optimizer_ops dt_sobol; /* a low-discrepancy sequence, shifted by the seed */
extern const struct dt_optimizer_ops dt_grid;  /* in order, the last parameter turning fastest */
extern const struct dt_optimizer_ops dt_external; /* hyperparameters from outside, the DT configuration as in joint */

/* Of the algorithms with a model. */
size_t dt_bayes_width(const struct dt_context *ctx);

/* A generator of its own stream: neighbouring numbers give unrelated streams. Caller frees. */
gsl_rng *dt_rng_new(uint64_t stream);
/* The number of the stream for the next suggestion of a context. */
uint64_t dt_rng_stream(const struct dt_context *ctx);

#endif
