/* Belief: what is expected of configurations that were not tried. */
#ifndef DT_BELIEF_H
#define DT_BELIEF_H

#include "model/speed.h"
#include "optimizer/observed.h"

/* Of the length scale of the fidelity, whose axis is 1 long: what is seen at one fidelity holds at the
 * others, as far as is known. */
#define DT_PRIOR_FIDELITY ((struct dt_prior){1, 1})

/* One view of the objective: a prior mean plus a Gaussian process. */
struct dt_belief {
    bool has_law; /* the prior mean is the law of speed; else a constant */
    struct dt_speed law;
    double mean, unit; /* y of the observations = law + mean + unit x what the process sees */
    double *theta;
    double log_weight; /* log evidence, comparable between views */
};

/* The most probable hyperparameters given the priors and n rows; of many an even sample is looked
 * at. Caller frees. *evidence, where not NULL: the logarithm of the posterior density there. */
double *dt_belief_fit(const struct dt_kernel *k, const struct dt_prior *prior, const double *x,
                      const double *y, size_t n, double *evidence);
/* With the law: NULL where it is of no use. */
struct dt_belief *dt_belief_new(const struct dt_observed *o, bool law);
void dt_belief_free(struct dt_belief *b);
/* What is expected at each point, in the unit of o->y, and where sd is not NULL its standard
 * deviation. */
void dt_belief_mean(const struct dt_belief *b, const struct dt_observed *o,
                    const struct dt_points *p, double *mean, double *sd);
/* Adds to each score the log of the probability that y is no larger than `limit` there. */
void dt_belief_chance(const struct dt_belief *b, const struct dt_observed *o, double limit,
                      const struct dt_points *p, double *score);
/* Which share of the variance at an encoded point goes when one trial is observed at another. */
double dt_belief_told(const struct dt_belief *b, const struct dt_observed *o, const double *point,
                      const double *other);
/* Adds to each score the log of the weighted expected improvement at that point: score :=
 * log(e^score + e^weight EI). */
void dt_belief_score(const struct dt_belief *b, const struct dt_observed *o,
                     const struct dt_points *p, double *score);

/* Whether a configuration will run at all, learnt from those that did and those that failed. */
struct dt_feasibility {
    double *theta;
    double share;  /* of those that ran */
    double weight; /* probability that failures depend on the configuration, rather than come at
                      random */
};
/* NULL where nothing failed. */
struct dt_feasibility *dt_feasibility_new(const struct dt_observed *o);
void dt_feasibility_free(struct dt_feasibility *f);
/* Adds the log of the probability, squared, to each score: a failure costs a trial and tells
 * little. */
void dt_feasibility_score(const struct dt_feasibility *f, const struct dt_observed *o,
                          const struct dt_points *p, double *score);

#endif
