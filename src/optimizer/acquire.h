/* The normal distribution, as acquisition needs it. */
#ifndef DT_ACQUIRE_H
#define DT_ACQUIRE_H

/* Distribution function of the standard normal. */
double dt_normal_cdf(double z);
/* Mean of a standard normal variable given that it is above z. */
double dt_normal_above(double z);
/* log(e^a + e^b); either may be -INFINITY. */
double dt_log_sum(double a, double b);
/* Logarithm of phi(z) + z Phi(z): by how much a normal variable with mean -z and sd 1 improves on
 * 0, as expected. Neither under- nor overflows. */
double dt_log_improvement(double z);

#endif
