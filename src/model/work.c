#include "model/work.h"
#include "model/nnls.h"

#include <math.h>
#include <stdlib.h>

#define RIDGE 0.3  /* on every term but the leading ones */
#define LEAST 0.01 /* no time is taken for a smaller part of the whole than this */

static double count(const struct dt_space *s, const double *x, const char *tasks, double fallback)
{
    return fmax(dt_space_value(s, x, tasks, fallback), 0);
}

/* Tasks count by the CPUs that each has where that is tuned, too. */
static double strength(const struct dt_space *s, const double *x, double tasks, const char *cpus)
{
    return tasks * fmax(dt_space_value(s, x, cpus, 1), 1);
}

static void busy_terms(const struct dt_space *s, const double *x, double *f)
{
    f[0] = 1 / strength(s, x, fmax(count(s, x, "workers", 1), 1), "worker_cpus");
    f[1] = 1;
}

/* All-reduce has no servers: there each worker serves the others. */
static void waiting_terms(const struct dt_space *s, const double *x, double *f)
{
    double w = fmax(count(s, x, "workers", 1), 1), p = count(s, x, "ps", 0);
    f[0] = p > 0 ? w / strength(s, x, p, "ps_cpus") : 1;
    f[1] = 1;
    f[2] = w;
    f[3] = p;
}

typedef void terms_of(const struct dt_space *s, const double *x, double *f);

static double dot(const double *a, const double *f, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * f[i];
    return sum;
}

/* Fits one part of the time. */
static void fit(const struct dt_space *s, const struct dt_worked *o, size_t n, bool waiting,
                double *a)
{
    static const double ridge[DT_NNLS_TERMS] = {0, RIDGE, RIDGE, RIDGE};
    size_t terms = waiting ? DT_WORK_WAITING : DT_WORK_BUSY;
    terms_of *of = waiting ? waiting_terms : busy_terms;
    double *f = dt_xcalloc(n * terms, sizeof(double));
    for (size_t i = 0; i < n; i++) {
        double busy = fmin(o[i].busy, 1), part = fmax(waiting ? 1 - busy : busy, LEAST);
        of(s, o[i].x, f + i * terms);
        for (size_t j = 0; j < terms; j++)
            f[i * terms + j] /= o[i].pace * part;
    }
    dt_nnls(f, n, n, terms, ridge, a);
    free(f);
}

bool dt_work_fit(const struct dt_space *s, const struct dt_worked *o, size_t n, struct dt_work *law)
{
    if (n == 0 || dt_space_index(s, "workers") < 0)
        return false;
    fit(s, o, n, false, law->busy);
    fit(s, o, n, true, law->waiting);
    return true;
}

double dt_work_pace(const struct dt_space *s, const double *x, const struct dt_work *law)
{
    double busy[DT_WORK_BUSY], waiting[DT_WORK_WAITING];
    busy_terms(s, x, busy);
    waiting_terms(s, x, waiting);
    return dot(law->busy, busy, DT_WORK_BUSY) + dot(law->waiting, waiting, DT_WORK_WAITING);
}
