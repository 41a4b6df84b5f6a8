/* judge: how promising configurations are, all that is believed in one number. */
#ifndef DT_JUDGE_H
#define DT_JUDGE_H

#include "optimizer/observed.h"

struct dt_judge;

/* Learns from the observations; keeps both for as long as it lives. */
struct dt_judge *dt_judge_new(const struct dt_context *ctx, const struct dt_observed *o);
void dt_judge_free(struct dt_judge *j);
/* The logarithm, for each point, of the improvement expected of it in units of y, times the chance
 * that it runs and has the quality asked for, over its expected cost as far as there is a budget. `o`
 * is what the judge learnt from, or a part of it. Caller frees. */
double *dt_judge_score(const struct dt_judge *j, const struct dt_observed *o,
                       const struct dt_points *p);
/* What is expected at each point, in the unit of y, and where sd is not NULL its standard
 * deviation. Caller frees. */
double *dt_judge_mean(const struct dt_judge *j, const struct dt_observed *o,
                      const struct dt_points *p, double *sd);
/* Puts x, of the highest fidelity, at the one at which it should be tried next. */
void dt_judge_fidelity(const struct dt_judge *j, const struct dt_context *ctx,
                       const struct dt_observed *o, double *x);
/* The point with the highest score; among about equals the one that takes the fewest tasks. */
size_t dt_judge_choose(const struct dt_space *s, const struct dt_points *p, const double *score);

#endif
