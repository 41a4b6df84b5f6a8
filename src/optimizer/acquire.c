/* Ament et al., "Unexpected improvements to expected improvement for Bayesian optimization",
 * NeurIPS 2023: EI vanishes over most of a space, its logarithm does not. */
#include "optimizer/acquire.h"
#include "model/portable.h"

static double density(double z)
{
    return dt_exp(-0.5 * z * z - DT_LN_SQRT_2PI);
}

/* z <= -5: phi(z) * c / (|z| + c), where 1/(|z| + c) is Mills' ratio by its continued fraction
 * (Abramowitz and Stegun 26.2.14); c = 1/(|z| + 2/(|z| + 3/(|z| + ...))). */
static double tail_fraction(double z)
{
    double c = 0;
    for (int i = 40; i >= 1; i--)
        c = i / (z + c);
    return c;
}

/* |z| < 5: Marsaglia's series (Journal of Statistical Software 11(4), 2004). */
double dt_normal_cdf(double z)
{
    if (z <= -5)
        return density(z) / (-z + tail_fraction(-z));
    if (z >= 5)
        return 1 - dt_normal_cdf(-z);
    double term = z, sum = z, before = 0;
    for (int i = 3; sum != before; i += 2) {
        before = sum;
        term *= z * z / i;
        sum += term;
    }
    return 0.5 + sum * density(z);
}

double dt_normal_above(double z)
{
    return z >= 5 ? z + tail_fraction(z) : density(z) / dt_normal_cdf(-z);
}

double dt_log_sum(double a, double b)
{
    double high = fmax(a, b), low = fmin(a, b);
    return low == -INFINITY ? high : high + dt_log(1 + dt_exp(low - high));
}

double dt_log_improvement(double z)
{
    if (z > -5)
        return dt_log(density(z) + z * dt_normal_cdf(z));
    double c = tail_fraction(-z);
    return -0.5 * z * z - DT_LN_SQRT_2PI + dt_log(c / (-z + c));
}
