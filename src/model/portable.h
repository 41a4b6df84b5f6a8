/* Elementary functions whose results are the same bits on every machine.
 *
 * The C library and a tuned BLAS pick their code by the processor they find, and differ in the last
 * bit. Argmax and line searches turn that bit into another suggestion, and a study that is resumed
 * on another node would leave its own track. These need only IEEE arithmetic (and
 * -ffp-contract=off), and loops over them can be vectorized. */
#ifndef DT_PORTABLE_H
#define DT_PORTABLE_H

#include <math.h> /* sqrt(), fabs(), isnan(): exact everywhere */
#include <stdint.h>
#include <string.h>

#define DT_LN2 0.693147180559945309417
#define DT_LN_SQRT_2PI 0.918938533204672741780

/* e^x to 2 ulp; x is clamped to [-700, 700]. Cody and Waite's reduction, then Taylor's series on
 * [-ln2/2, ln2/2]. */
static inline double dt_exp(double x)
{
    const double round = 0x1.8p52; /* adding it leaves the nearest integer in the low bits */
    x = x < -700 ? -700 : x > 700 ? 700 : x;
    double shifted = x * (1 / DT_LN2) + round, k = shifted - round;
    double r = (x - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;
    double p = 1. / 479001600;
    p = p * r + 1. / 39916800;
    p = p * r + 1. / 3628800;
    p = p * r + 1. / 362880;
    p = p * r + 1. / 40320;
    p = p * r + 1. / 5040;
    p = p * r + 1. / 720;
    p = p * r + 1. / 120;
    p = p * r + 1. / 24;
    p = p * r + 1. / 6;
    p = p * r + 0.5;
    p = p * r + 1;
    p = p * r + 1;
    uint64_t bits;
    double two_to_k;
    memcpy(&bits, &shifted, sizeof(bits));
    bits = (bits + 1023) << 52;
    memcpy(&two_to_k, &bits, sizeof(bits));
    return p * two_to_k;
}

/* Natural logarithm of a normal positive number to 2 ulp: 2 artanh((m-1)/(m+1)) + k ln2, m in
 * [sqrt(1/2), sqrt(2)). */
static inline double dt_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    int64_t k = (int64_t)((bits - 0x3fe6a09e667f3bcdu) >> 52);
    k = (k ^ 0x800) - 0x800; /* sign of a 12-bit number */
    bits -= (uint64_t)k << 52;
    double m;
    memcpy(&m, &bits, sizeof(m));
    double f = (m - 1) / (m + 1), g = f * f, s = 0;
    for (int i = 23; i >= 3; i -= 2)
        s = (s + 1. / i) * g;
    return (double)k * 0x1.62e42feep-1 + (2 * f + (2 * f * s + (double)k * 0x1.a39ef35793c76p-33));
}

static inline double dt_pow(double x, double y)
{
    return dt_exp(y * dt_log(x));
}

#endif
