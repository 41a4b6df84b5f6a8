/* Optimus (Peng et al., EuroSys 2018) models the time of a training step with p parameter servers
 * and w workers as M/w, 1, w/p, w and p with weights >= 0 in synchronous training, and the inverse
 * speed as 1/w, 1/p, 1 and p/w in asynchronous training. This is the union of both, by non-negative
 * least squares on relative errors. */
#include "model/speed.h"
#include "model/nnls.h"
#include "model/portable.h"

#include <stdlib.h>

#define TERMS DT_SPEED_TERMS
#define RIDGE                                                                                      \
    0.003 /* weight of the wish for small coefficients: with few points there are many fits */
#define MIN_OBSERVATIONS 3

static void terms(const struct dt_space *s, const double *x, double *f)
{
    double p = dt_space_value(s, x, "ps", 0), w = fmax(dt_space_value(s, x, "workers", 1), 1);
    f[0] = 1;
    f[1] = 1 / w;
    f[2] = w;
    f[3] = p > 0 ? w / p : 0; /* all-reduce has no servers to wait for */
    f[4] = p;
    f[5] = p > 0 ? 1 / p : 0;
    f[6] = p / w;
}

static void fit(const double *f, size_t n, size_t without, double *a)
{
    static const double ridge[TERMS] = {RIDGE, RIDGE, RIDGE, RIDGE, RIDGE, RIDGE, RIDGE};
    dt_nnls(f, n, without, TERMS, ridge, a);
}

static double log_time(const double *a, const double *f)
{
    double t = 0;
    for (size_t j = 0; j < TERMS; j++)
        t += a[j] * f[j];
    return dt_log(fmax(t, 1e-300));
}

bool dt_speed_fit(const struct dt_space *s, const double *const *x, const double *y, size_t n,
                  struct dt_speed *law)
{
    if (dt_space_index(s, "workers") < 0 || n < MIN_OBSERVATIONS)
        return false;
    double *f = dt_xcalloc(2 * n * TERMS, sizeof(double)), *relative = f + n * TERMS;
    double mean = 0, error = 0, error_of_constant = 0;
    for (size_t i = 0; i < n; i++) {
        terms(s, x[i], f + i * TERMS);
        for (size_t j = 0; j < TERMS; j++)
            relative[i * TERMS + j] = f[i * TERMS + j] * dt_exp(-y[i]);
        mean += y[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        fit(relative, n, i, law->coefficient);
        double d = y[i] - log_time(law->coefficient, f + i * TERMS);
        double c = (y[i] - mean) * (double)n / (double)(n - 1);
        error += d * d;
        error_of_constant += c * c;
    }
    fit(relative, n, n, law->coefficient);
    free(f);
    return error < error_of_constant;
}

double dt_speed_at(const struct dt_space *s, const double *x, const struct dt_speed *law)
{
    double f[TERMS];
    terms(s, x, f);
    return log_time(law->coefficient, f);
}
