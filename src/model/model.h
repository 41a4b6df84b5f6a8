/* model: what the observations say about configurations that were not tried: fit(observations),
 * then predict -> mean, sd.
 *
 * A Gaussian process with a Matern-5/2 kernel on points that are encoded into columns of about unit
 * range. Columns belong to groups (the one-hot columns of a choice, say); each group has a length
 * scale of its own. Hyperparameters are one vector of logarithms: groups x length scale, then the
 * signal's and the noise's standard deviation. */
#ifndef DT_MODEL_H
#define DT_MODEL_H

#include "util/util.h"

struct dt_kernel {
    size_t columns, groups;
    size_t *group; /* of each column */
    /* Where observations are of several series: the last so many columns are 1 for one of them and
     * else 0, and each series also has a smooth course of its own, a second process of this variance
     * and length. 0: no series. */
    size_t series;
    double own, reach;
};
#define DT_SIGNAL(k) ((k)->groups)
#define DT_NOISE(k) ((k)->groups + 1)
#define DT_HYPERS(k) ((k)->groups + 2)

/* A normal prior on one entry of the vector. */
struct dt_prior {
    double mean, sd;
};

/* ---- the process with given hyperparameters (gp.c) ---- */

struct dt_gp {
    const struct dt_kernel *kernel; /* borrowed */
    double *weight;                 /* 1/length^2 of each column */
    double signal, noise;           /* variances */
    size_t n, room;
    double *x;    /* columns x room: a column after the other */
    double *l;    /* lower Cholesky factor of the covariance, row i at l + i*(i+1)/2 */
    double *beta; /* l^-1 y */
    double *row;  /* scratch, room */
};

/* Copies theta; keeps the kernel. Room for at most `room` observations. */
struct dt_gp *dt_gp_new(const struct dt_kernel *kernel, const double *theta, size_t room);
void dt_gp_free(struct dt_gp *gp);
/* Takes one more observation: a new row of the factor, the others stay as they are. The prior mean
 * is 0. */
void dt_gp_add(struct dt_gp *gp, const double *x, double y);
/* Mean and standard deviation of the function (without noise) at x. */
void dt_gp_predict(struct dt_gp *gp, const double *x, double *mean, double *sd);

/* The same for many points at once, kept up to date at O(points) an observation. */
struct dt_field {
    size_t n, seen; /* points; observations taken in */
    double *x;      /* columns x n */
    double *mean, *var;
    double **v; /* v[i]: row i of l^-1 k(observations, points) */
};
/* `points`: n rows of kernel->columns. */
struct dt_field *dt_field_new(const struct dt_gp *gp, const double *points, size_t n);
/* Takes in what was added to gp since. */
void dt_field_update(struct dt_field *f, const struct dt_gp *gp);
void dt_field_free(struct dt_field *f);

/* ---- hyperparameters from observations (fit.c) ---- */

/* Logarithm of the posterior density of theta (up to a constant) given n observations, `x` being n
 * rows; if grad is not NULL, also its gradient. Built once, evaluated often. */
struct dt_evidence;
struct dt_evidence *dt_evidence_new(const struct dt_kernel *kernel, const struct dt_prior *prior,
                                    const double *x, const double *y, size_t n);
double dt_evidence_at(struct dt_evidence *ev, const double *theta, double *grad);
void dt_evidence_free(struct dt_evidence *ev);
/* Climbs from theta to a maximum (BFGS). */
void dt_evidence_climb(struct dt_evidence *ev, double *theta);
#endif
