/* The kernel's own arithmetic, shared by gp.c and fit.c. */
#ifndef DT_KERNEL_H
#define DT_KERNEL_H

#include "model/model.h"
#include "model/portable.h"

#include <stddef.h>

/* Matern-5/2 with unit variance of the squared scaled distance: (1 + r + r^2/3) e^-r, r = sqrt(5
 * d2). */
static inline double dt_matern(double d2)
{
    double r = sqrt(5 * d2);
    return (1 + r + r * r / 3) * dt_exp(-r);
}

/* Covariance of the courses that the series have of their own; the points' columns are p and q
 * apart. */
static inline double dt_own_course(const struct dt_kernel *k, const double *x, size_t p,
                                   const double *y, size_t q)
{
    size_t columns = k->columns - k->series;
    double same = 0, d2 = 0;
    for (size_t c = columns; c < k->columns; c++)
        same += x[c * p] * y[c * q];
    if (same == 0)
        return 0;
    for (size_t c = 0; c < columns; c++)
        d2 += (x[c * p] - y[c * q]) * (x[c * p] - y[c * q]);
    return k->own * dt_exp(-0.5 * d2 / (k->reach * k->reach));
}

/* Scalar product in a fixed order of additions, eight sums side by side. */
static inline double dt_dot(const double *a, const double *b, size_t n)
{
    double s[8] = {0}, rest = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t j = 0; j < 8; j++)
            s[j] += a[i + j] * b[i + j];
    for (; i < n; i++)
        rest += a[i] * b[i];
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7])) + rest;
}

/* Solves l v = v for the lower triangle l (packed by rows) in place. */
static inline void dt_solve(const double *l, double *v, size_t n)
{
    for (size_t i = 0; i < n; l += ++i)
        v[i] = (v[i] - dt_dot(l, v, i)) / l[i];
}

/* The pivot of a new row of a Cholesky factor; rounding must not make it vanish. */
static inline double dt_pivot(double variance, const double *row, size_t n)
{
    double d = variance - dt_dot(row, row, n);
    return sqrt(d > 1e-12 * variance ? d : 1e-12 * variance);
}

#endif
