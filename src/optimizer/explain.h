/* explain: what the model believes, for people to look at. */
#ifndef DT_EXPLAIN_H
#define DT_EXPLAIN_H

#include "optimizer/optimizer.h"

/* Of a value, in the user's unit: between low and high it is expected in two of three cases. */
struct dt_expected {
    double mean, low, high;
};

struct dt_explanation;

/* The likeliest view of the context's values, as the search with a model has it, whatever algorithm
 * searches. The context must outlive it. NULL where too little is known. */
struct dt_explanation *dt_explain_new(const struct dt_context *ctx);
void dt_explain_free(struct dt_explanation *e);
/* Of n configurations, rows of space->n. What a trial at the highest fidelity is expected to come
 * to is told, so rows should be there, and settled. */
void dt_explain_at(const struct dt_explanation *e, const double *rows, size_t n,
                   struct dt_expected *out);
/* Puts into share[i] how much parameter i matters; the shares add up to 1, or are all 0 where
 * nothing does. It is the total effect of the variance of what is expected (Saltelli et al. 2008,
 * of functional ANOVA; estimated as by Jansen 1999): half the mean square of what changes in the
 * logarithm of the value, if it has one, when the parameter alone is drawn anew, over all
 * configurations that are allowed. So an effect that two parameters have together counts for both.
 * The fidelity is held. */
void dt_explain_importance(const struct dt_explanation *e, double *share);

#endif
