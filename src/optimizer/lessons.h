/* Lessons: the objective as earlier studies (ctx->past) and this one see it together.
 *
 * A Gaussian process over configurations and studies, in the way of multi-task processes (Bonilla
 * et al., NIPS 2007; Swersky et al., NIPS 2013): y of study s = law of study s + what all have in
 * common + a smooth course of its own. Of which study an observation is counts as one more
 * parameter of what they have in common, with a length scale for each study, so that the
 * observations themselves say how much one study has to do with another. The law of speed of a
 * study that has just begun is the average of the earlier ones'; levels are free, for only the
 * shape is taken over.
 *
 * One view of several: dt_judge weighs it against what the present observations say alone, by the
 * evidence of just these, so a past that predicts them badly is soon out of the game. */
#ifndef DT_LESSONS_H
#define DT_LESSONS_H

#include "model/speed.h"
#include "optimizer/observed.h"

/* So many studies, the last. */
#define DT_LESSONS_STUDIES 8

struct dt_lessons {
    struct dt_kernel kernel;
    size_t nstudies;
    struct dt_speed laws[DT_LESSONS_STUDIES];
    size_t nlaws;      /* 0: without a law, as none is of use */
    size_t n;          /* past observations */
    double *x, *y;     /* of them; y without law and the study's mean, in units */
    double unit, mean; /* y of this study = law + mean + unit x what the process sees */
    double *theta;
    double log_weight; /* log evidence of the present observations, comparable with a belief's */
};

/* NULL where there is nothing to learn: no past, or on another scale than `o`. Of many observations
 * a part, so that it takes bounded time. */
struct dt_lessons *dt_lessons_new(const struct dt_context *ctx, const struct dt_observed *o);
void dt_lessons_free(struct dt_lessons *l);
/* As dt_belief_mean(). */
void dt_lessons_mean(const struct dt_lessons *l, const struct dt_observed *o,
                     const struct dt_points *p, double *mean, double *sd);
/* Adds to each score the log of the weighted expected improvement, like dt_belief_score(). */
void dt_lessons_score(const struct dt_lessons *l, const struct dt_observed *o,
                      const struct dt_points *p, double *score);
/* The best configuration of the past by the past alone: that of a single study as it was measured,
 * of several the one of those that succeeded that is expected to be the best here. With `untried`,
 * of those that were not tried here. NULL where none can be tried here. Borrowed from the past. */
const double *dt_lessons_best(const struct dt_context *ctx, const struct dt_encoding *e,
                              bool untried);

/* What failures of the past let fear. */
struct dt_doubts {
    struct dt_observed *runs; /* what ran and what failed, of all studies */
    struct dt_feasibility *feasible;
};
/* NULL where nothing failed. */
struct dt_doubts *dt_doubts_new(const struct dt_context *ctx, const struct dt_encoding *e);
void dt_doubts_free(struct dt_doubts *d);
/* Adds the log of the chance to each score, as far as a hint, which is no verdict, may lower it. */
void dt_doubts_score(const struct dt_doubts *d, const struct dt_points *p, double *score);

#endif
