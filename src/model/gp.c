/* Gaussian process regression by bordering: each observation adds a row to the Cholesky factor
 * (Rasmussen and Williams, "Gaussian Processes for Machine Learning", algorithm 2.1, one row at a
 * time). */
#include "model/kernel.h"
#include "model/model.h"

#include <stdlib.h>

struct dt_gp *dt_gp_new(const struct dt_kernel *kernel, const double *theta, size_t room)
{
    struct dt_gp *gp = dt_xcalloc(1, sizeof(*gp));
    gp->kernel = kernel;
    gp->weight = dt_xcalloc(kernel->columns, sizeof(double));
    for (size_t c = 0; c < kernel->columns; c++)
        gp->weight[c] = dt_exp(-2 * theta[kernel->group[c]]);
    gp->signal = dt_exp(2 * theta[DT_SIGNAL(kernel)]);
    gp->noise = dt_exp(2 * theta[DT_NOISE(kernel)]);
    gp->room = room;
    gp->x = dt_xcalloc(kernel->columns * room, sizeof(double));
    gp->l = dt_xcalloc(room * (room + 1) / 2, sizeof(double));
    gp->beta = dt_xcalloc(room, sizeof(double));
    gp->row = dt_xcalloc(room, sizeof(double));
    return gp;
}

void dt_gp_free(struct dt_gp *gp)
{
    if (!gp)
        return;
    free(gp->weight);
    free(gp->x);
    free(gp->l);
    free(gp->beta);
    free(gp->row);
    free(gp);
}

/* Covariances of one point, its columns `stride` apart, with n points whose columns are `room`
 * apart. */
static void covariances(const struct dt_gp *gp, const double *q, size_t stride, const double *x,
                        size_t room, size_t n, double *restrict k)
{
    for (size_t i = 0; i < n; i++)
        k[i] = 0;
    for (size_t c = 0; c < gp->kernel->columns; c++) {
        const double *restrict column = x + c * room;
        double at = q[c * stride], w = gp->weight[c];
        for (size_t i = 0; i < n; i++)
            k[i] += (column[i] - at) * (column[i] - at) * w;
    }
    for (size_t i = 0; i < n; i++)
        k[i] = gp->signal * dt_matern(k[i]);
    for (size_t i = 0; i < n && gp->kernel->series; i++)
        k[i] += dt_own_course(gp->kernel, q, stride, x + i, room);
}

/* Of the function at a point, before anything was observed. */
static double variance(const struct dt_gp *gp)
{
    return gp->signal + (gp->kernel->series ? gp->kernel->own : 0);
}

void dt_gp_add(struct dt_gp *gp, const double *x, double y)
{
    size_t n = gp->n;
    double *row = gp->l + n * (n + 1) / 2;
    covariances(gp, x, 1, gp->x, gp->room, n, row);
    dt_solve(gp->l, row, n);
    row[n] = dt_pivot(variance(gp) + gp->noise, row, n);
    gp->beta[n] = (y - dt_dot(row, gp->beta, n)) / row[n];
    for (size_t c = 0; c < gp->kernel->columns; c++)
        gp->x[c * gp->room + n] = x[c];
    gp->n++;
}

void dt_gp_predict(struct dt_gp *gp, const double *x, double *mean, double *sd)
{
    covariances(gp, x, 1, gp->x, gp->room, gp->n, gp->row);
    dt_solve(gp->l, gp->row, gp->n);
    *mean = dt_dot(gp->row, gp->beta, gp->n);
    *sd = dt_pivot(variance(gp), gp->row, gp->n);
}

struct dt_field *dt_field_new(const struct dt_gp *gp, const double *points, size_t n)
{
    struct dt_field *f = dt_xcalloc(1, sizeof(*f));
    size_t columns = gp->kernel->columns;
    f->n = n;
    f->x = dt_xcalloc(columns * n, sizeof(double));
    for (size_t c = 0; c < columns; c++)
        for (size_t j = 0; j < n; j++)
            f->x[c * n + j] = points[j * columns + c];
    f->mean = dt_xcalloc(n, sizeof(double));
    f->var = dt_xcalloc(n, sizeof(double));
    f->v = dt_xcalloc(gp->room, sizeof(*f->v));
    for (size_t j = 0; j < n; j++)
        f->var[j] = variance(gp);
    return f;
}

void dt_field_update(struct dt_field *f, const struct dt_gp *gp)
{
    for (; f->seen < gp->n; f->seen++) {
        size_t i = f->seen;
        const double *l = gp->l + i * (i + 1) / 2;
        double *restrict v = f->v[i] = dt_xcalloc(f->n, sizeof(double));
        covariances(gp, gp->x + i, gp->room, f->x, f->n, f->n, v);
        for (size_t m = 0; m < i; m++) {
            const double *restrict u = f->v[m];
            double lm = l[m];
            for (size_t j = 0; j < f->n; j++)
                v[j] -= lm * u[j];
        }
        for (size_t j = 0; j < f->n; j++) {
            v[j] /= l[i];
            f->mean[j] += v[j] * gp->beta[i];
            f->var[j] -= v[j] * v[j];
        }
    }
}

void dt_field_free(struct dt_field *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->seen; i++)
        free(f->v[i]);
    free(f->v);
    free(f->x);
    free(f->mean);
    free(f->var);
    free(f);
}
