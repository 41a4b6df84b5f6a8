/* Non-negative least squares on relative errors, for laws that are sums of a few terms. */
#ifndef DT_NNLS_H
#define DT_NNLS_H

#include <stddef.h>

#define DT_NNLS_TERMS 8

/* Minimises the sum of (a . f_i - 1)^2 over n rows f_i of `terms` terms (at most DT_NNLS_TERMS), each divided by the value
 * that it is to come to, and the ridges for a >= 0, a coordinate after the other. Row `without` is left out; n: none is.
 * A ridge is the weight of the wish for a small coefficient, with terms scaled to equal length, so that equal ridges weigh
 * on all alike. */
void dt_nnls(const double *f, size_t n, size_t without, size_t terms, const double *ridge, double *a);

#endif
