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
    double best; /* least y of those at the highest fidelity */
    double middle, spread; /* where it is none: of the values */
    bool maximize;
    /* By how much y grows with the logarithm of the fidelity. The y of what was observed at a lower
     * one are brought to the highest by that; how far single configurations depart from it is the
     * model's to learn. */
    double slope;
};

/* Takes one more, borrowed; frees the arrays. */
void dt_points_add(struct dt_points *p, const struct dt_encoding *e, const double *raw);
void dt_points_free(struct dt_points *p);

/* Of many observations a part, so that a model takes bounded time.
 * A configuration with an active parameter that is NaN (as the user's script has it) counts for nok
 * and best alone: where it lies is not known. */
struct dt_observed *dt_observed_new(const struct dt_context *ctx,
                                    const struct dt_encoding *encoding);
/* The same of their quality: y is no larger than 0 where it is what was asked for. */
struct dt_observed *dt_observed_margins(const struct dt_context *ctx,
                                        const struct dt_encoding *encoding);
/* The same of what they cost: y is the logarithm of that. NULL where it is known of none. */
struct dt_observed *dt_observed_costs(const struct dt_context *ctx,
                                      const struct dt_encoding *encoding);
/* The value, in the user's unit, of which y was made. */
double dt_observed_value(const struct dt_observed *o, double y);
/* Logarithm of a configuration's fidelity over the highest; 0 where there is no fidelity. */
double dt_log_fidelity(const struct dt_space *s, const double *x);
/* At most n of the known: the better half, and of the rest an even sample by value. */
struct dt_observed *dt_observed_thin(const struct dt_observed *o, size_t n);
void dt_observed_free(struct dt_observed *o);

#endif
