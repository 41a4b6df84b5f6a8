/* What a context says, in the form that models take. */
#ifndef DT_OBSERVED_H
#define DT_OBSERVED_H

#include "model/encode.h"
#include "optimizer/optimizer.h"

struct dt_points {
    size_t n;
    const double **raw; /* configurations; borrowed */
    double *x;          /* encoded, a row each */
};

struct dt_observed {
    const struct dt_encoding *encoding;
    struct dt_points known, pending, failed;
    double *y;   /* of the known: transformed, to be small */
    bool *bound; /* the truth is no smaller than y */
    bool log;    /* y is a logarithm */
    size_t nok;  /* finished with a value */
    double best; /* least y of those */
};

/* A configuration with an active parameter that is NaN (as the user's script has it) counts for nok
 * and best alone: where it lies is not known. */
struct dt_observed *dt_observed_new(const struct dt_context *ctx,
                                    const struct dt_encoding *encoding);
/* At most n of the known: the better half, and of the rest an even sample by value. */
struct dt_observed *dt_observed_thin(const struct dt_observed *o, size_t n);
void dt_observed_free(struct dt_observed *o);

#endif
