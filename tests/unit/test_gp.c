/* model: the Gaussian process and what it stands on, against values that were worked out otherwise.
 */
#include "model/encode.h"
#include "model/kernel.h"
#include "model/speed.h"
#include "optimizer/acquire.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <stdlib.h>
#include <string.h>

#define N 30
#define COLUMNS 3

static size_t group[COLUMNS] = {0, 1, 1};
static const struct dt_kernel kernel = {.columns = COLUMNS, .groups = 2, .group = group};
static const struct dt_prior prior[4] = {{-0.5, 0.8}, {-0.5, 0.8}, {0, 0.5}, {-3, 1}};
static const double theta[4] = {-0.7, -0.3, 0.2, -2.5};

static bool near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fmax(1, fabs(b));
}

/* Points of the unit cube and a smooth function of them. */
static void make_data(double *x, double *y, size_t n)
{
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    for (size_t i = 0; i < n * COLUMNS; i++)
        x[i] = gsl_rng_uniform(rng);
    for (size_t i = 0; i < n; i++)
        y[i] = sin(4 * x[i * COLUMNS]) - x[i * COLUMNS + 1] + 0.1 * gsl_rng_uniform(rng);
    gsl_rng_free(rng);
}

static double k_of(const double *a, const double *b)
{
    double d2 = 0;
    for (size_t c = 0; c < COLUMNS; c++)
        d2 += pow((a[c] - b[c]) / exp(theta[group[c]]), 2);
    double r = sqrt(5 * d2);
    return exp(2 * theta[2]) * (1 + r + r * r / 3) * exp(-r);
}

static void exp_and_log_agree_with_the_c_library(void **state)
{
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    (void)state;
    for (int i = 0; i < 100000; i++) {
        double x = 1380 * (gsl_rng_uniform(rng) - 0.5),
               v = exp((i % 2 ? 1 : 600) * (gsl_rng_uniform(rng) - 0.5));
        assert_true(fabs(dt_exp(x) / exp(x) - 1) < 5e-16);
        assert_true(fabs(dt_log(v) - log(v)) <= 5e-16 * fabs(log(v)));
    }
    assert_true(dt_log(1) == 0 && dt_exp(0) == 1);
    assert_true(dt_exp(-1e9) > 0 && isfinite(dt_exp(1e9)));
    gsl_rng_free(rng);
}

static void improvement_is_right_where_it_is_small_and_where_it_is_tiny(void **state)
{
    (void)state;
    for (double z = -37; z < 8; z += 0.37) {
        assert_true(near(dt_normal_cdf(z) / gsl_cdf_ugaussian_P(z), 1, 1e-8));
        assert_true(
            near(dt_normal_above(z), gsl_ran_ugaussian_pdf(z) / gsl_cdf_ugaussian_Q(z), 1e-8));
    }
    /* phi(z) + z Phi(z), with mpmath to 50 digits */
    assert_true(near(dt_log_improvement(2), 0.697383545788228, 1e-14));
    assert_true(near(dt_log_improvement(0), -0.918938533204673, 1e-14));
    assert_true(near(dt_log_improvement(-8), -37.12236426169263, 1e-14));
    assert_true(near(dt_log_improvement(-32), -519.8533300764164, 1e-14));
    assert_true(dt_log_improvement(-1e6) < dt_log_improvement(-1e5));
    double before = -INFINITY;
    for (double z = -5.1; z < -4.9; z += 0.001) { /* where one formula gives way to the other */
        assert_true(dt_log_improvement(z) > before);
        before = dt_log_improvement(z);
    }
}

static void matern_has_its_known_values(void **state)
{
    (void)state;
    assert_true(dt_matern(0) == 1);
    /* distance 1: (1 + sqrt5 + 5/3) e^-sqrt5 */
    assert_true(near(dt_matern(1), 0.523994108831820, 1e-14));
    assert_true(dt_matern(4) < dt_matern(1));
}

static void one_observation_is_done_by_hand(void **state)
{
    const size_t g[1] = {0};
    const struct dt_kernel one = {.columns = 1, .groups = 1, .group = (size_t *)g};
    const double t[3] = {0, 0, log(0.5)}, x = 0, q = 1;
    struct dt_gp *gp = dt_gp_new(&one, t, 1);
    double mean, sd, k = 0.523994108831820;
    (void)state;
    dt_gp_predict(gp, &q, &mean, &sd);
    assert_true(mean == 0 && near(sd, 1, 1e-15));
    dt_gp_add(gp, &x, 2);
    dt_gp_predict(gp, &q, &mean, &sd);
    assert_true(near(mean, k / 1.25 * 2, 1e-14));
    assert_true(near(sd * sd, 1 - k * k / 1.25, 1e-14));
    dt_gp_free(gp);
}

/* The same by GSL's dense solver. */
static void predictions_agree_with_a_dense_solution(void **state)
{
    double x[N * COLUMNS], y[N], mean, sd;
    const double q[COLUMNS] = {0.2, 0.9, 0.4};
    gsl_matrix *k = gsl_matrix_alloc(N, N);
    gsl_vector *v = gsl_vector_alloc(N), *w = gsl_vector_alloc(N);
    (void)state;
    make_data(x, y, N);
    for (size_t i = 0; i < N; i++) {
        for (size_t j = 0; j < N; j++)
            gsl_matrix_set(
                k, i, j, k_of(x + i * COLUMNS, x + j * COLUMNS) + (i == j ? exp(2 * theta[3]) : 0));
        gsl_vector_set(v, i, k_of(x + i * COLUMNS, q));
    }
    gsl_linalg_cholesky_decomp1(k);
    gsl_linalg_cholesky_solve(k, v, w);
    double expected = 0, variance = k_of(q, q);
    for (size_t i = 0; i < N; i++) {
        expected += gsl_vector_get(w, i) * y[i];
        variance -= gsl_vector_get(w, i) * gsl_vector_get(v, i);
    }
    struct dt_gp *gp = dt_gp_new(&kernel, theta, N);
    for (size_t i = 0; i < N; i++)
        dt_gp_add(gp, x + i * COLUMNS, y[i]);
    dt_gp_predict(gp, q, &mean, &sd);
    assert_true(near(mean, expected, 1e-10));
    assert_true(near(sd * sd, variance, 1e-10));
    for (size_t i = 0; i < N; i++) /* the factor itself */
        for (size_t j = 0; j <= i; j++)
            assert_true(near(gp->l[i * (i + 1) / 2 + j], gsl_matrix_get(k, i, j), 1e-10));
    dt_gp_free(gp);
    gsl_matrix_free(k);
    gsl_vector_free(v);
    gsl_vector_free(w);
}

static void a_field_is_predictions_and_grows_bit_for_bit(void **state)
{
    double x[N * COLUMNS], y[N], q[N * COLUMNS], unused[N], mean, sd;
    (void)state;
    make_data(x, y, N);
    make_data(q, unused, N);
    for (size_t i = 0; i < N * COLUMNS; i++)
        q[i] = 1 - q[i];
    struct dt_gp *a = dt_gp_new(&kernel, theta, N), *b = dt_gp_new(&kernel, theta, N);
    struct dt_field *grown = dt_field_new(a, q, N), *once = dt_field_new(b, q, N);
    for (size_t i = 0; i < N; i++) {
        dt_gp_add(a, x + i * COLUMNS, y[i]);
        dt_gp_add(b, x + i * COLUMNS, y[i]);
        dt_field_update(grown, a);
    }
    dt_field_update(once, b);
    assert_memory_equal(grown->mean, once->mean, N * sizeof(double));
    assert_memory_equal(grown->var, once->var, N * sizeof(double));
    for (size_t j = 0; j < N; j++) {
        dt_gp_predict(a, q + j * COLUMNS, &mean, &sd);
        assert_true(near(grown->mean[j], mean, 1e-11) && near(sqrt(grown->var[j]), sd, 1e-9));
    }
    dt_field_free(grown);
    dt_field_free(once);
    dt_gp_free(a);
    dt_gp_free(b);
}

static void equal_points_do_not_break_the_factor(void **state)
{
    const double noiseless[4] = {0, 0, 0, -40}, x[COLUMNS] = {0.5, 0.5, 0.5};
    struct dt_gp *gp = dt_gp_new(&kernel, noiseless, 8);
    double mean, sd;
    (void)state;
    for (int i = 0; i < 8; i++)
        dt_gp_add(gp, x, 1);
    dt_gp_predict(gp, x, &mean, &sd);
    assert_true(near(mean, 1, 1e-6) && sd >= 0 && sd < 1e-3);
    dt_gp_free(gp);
}

static void the_gradient_is_that_of_the_evidence(void **state)
{
    double x[N * COLUMNS], y[N], grad[4], t[4];
    (void)state;
    make_data(x, y, N);
    struct dt_evidence *ev = dt_evidence_new(&kernel, prior, x, y, N);
    dt_evidence_at(ev, theta, grad);
    for (int i = 0; i < 4; i++) {
        memcpy(t, theta, sizeof(t));
        t[i] = theta[i] + 1e-5;
        double up = dt_evidence_at(ev, t, NULL);
        t[i] = theta[i] - 1e-5;
        double down = dt_evidence_at(ev, t, NULL);
        assert_true(near(grad[i], (up - down) / 2e-5, 1e-5));
    }
    dt_evidence_free(ev);
}

static void evidence_of_one_observation_is_a_normal_density(void **state)
{
    const double x[COLUMNS] = {0}, y = 0.7;
    double sd = sqrt(exp(2 * theta[2]) + exp(2 * theta[3])),
           expected = log(gsl_ran_gaussian_pdf(y, sd));
    (void)state;
    for (int i = 0; i < 4; i++)
        expected -= 0.5 * pow((theta[i] - prior[i].mean) / prior[i].sd, 2);
    struct dt_evidence *ev = dt_evidence_new(&kernel, prior, x, &y, 1);
    assert_true(near(dt_evidence_at(ev, theta, NULL), expected, 1e-13));
    dt_evidence_free(ev);
}

static void climbing_ends_on_a_maximum(void **state)
{
    double x[N * COLUMNS], y[N], grad[4], t[4];
    (void)state;
    make_data(x, y, N);
    struct dt_evidence *ev = dt_evidence_new(&kernel, prior, x, y, N);
    memcpy(t, theta, sizeof(t));
    double start = dt_evidence_at(ev, t, NULL);
    dt_evidence_climb(ev, t);
    double top = dt_evidence_at(ev, t, grad);
    assert_true(top > start);
    for (int i = 0; i < 4; i++)
        assert_true(fabs(grad[i]) < 0.05);
    assert_true(t[0] < t[1]); /* the function changes faster along the first column */
    dt_evidence_free(ev);
}

static void scales_follow_what_a_parameter_is(void **state)
{
    static double index[] = {0, 1, 2}, mem[] = {2048, 4096, 8192, 16384};
    static char *labels[] = {"a", "b", "c"};
    const struct dt_param params[] = {
        {.name = "ps", .kind = DT_PARAM_INT, .low = 0, .high = 7, .step = 1},
        {.name = "depth", .kind = DT_PARAM_INT, .hyper = true, .low = 1, .high = 5, .step = 1},
        {.name = "opt",
         .kind = DT_PARAM_LABEL,
         .hyper = true,
         .nvalues = 3,
         .values = index,
         .labels = labels},
        {.name = "ps_mem", .kind = DT_PARAM_INT, .nvalues = 4, .values = mem},
    };
    struct dt_strv none = DT_STRV_INIT;
    struct dt_error error = DT_ERROR_INIT;
    struct dt_space *s = dt_space_new(params, 4, &none, NULL, 0, NULL, NULL, NULL, 0, &error);
    (void)state;
    assert_non_null(s);
    struct dt_encoding *e = dt_encoding_new(s);
    assert_int_equal(e->kernel.columns, 6);
    assert_int_equal(e->kernel.groups, 4);
    double out[6], other[6];
    dt_encode(e, (const double[]){1, 2, 1, 4096}, out);
    assert_true(near(out[0], 1. / 3, 1e-14)); /* log2(1+1) of log2(8) */
    assert_true(near(out[1], 0.25, 1e-14));
    assert_true(near(out[5], 1. / 3, 1e-14));
    dt_encode(e, (const double[]){1, 2, 2, 4096}, other);
    double d2 = 0;
    for (int i = 0; i < 6; i++)
        d2 += (out[i] - other[i]) * (out[i] - other[i]);
    assert_true(near(d2, 1, 1e-14)); /* two labels are 1 apart */
    dt_encode(e, (const double[]){NAN, NAN, NAN, NAN}, out);
    assert_true(out[0] == 0.5 && out[2] == 0);
    dt_encoding_free(e);
    dt_space_free(s);
}

static struct dt_space *grid_of_roles(void)
{
    const struct dt_param params[] = {
        {.name = "ps", .kind = DT_PARAM_INT, .low = 1, .high = 12, .step = 1},
        {.name = "workers", .kind = DT_PARAM_INT, .low = 1, .high = 12, .step = 1}};
    struct dt_strv none = DT_STRV_INIT;
    struct dt_space *s = dt_space_new(params, 2, &none, NULL, 0, NULL, NULL, NULL, 0, NULL);
    assert_non_null(s);
    return s;
}

static void the_law_of_speed_is_recovered(void **state)
{
    struct dt_space *s = grid_of_roles();
    const double *x[12];
    double y[12];
    struct dt_speed law;
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        x[i] = s->points + 2 * (i * 11);
        y[i] = log(20 / x[i][1] + 1 + 3 * x[i][1] / x[i][0] + 0.1 * x[i][0]);
    }
    assert_true(dt_speed_fit(s, x, y, 12, &law));
    for (size_t i = 0; i < s->npoints; i++) {
        const double *q = s->points + 2 * i;
        double truth = log(20 / q[1] + 1 + 3 * q[1] / q[0] + 0.1 * q[0]);
        assert_true(fabs(dt_speed_at(s, q, &law) - truth) < 0.15);
    }
    for (size_t j = 0; j < DT_SPEED_TERMS; j++)
        assert_true(law.coefficient[j] >= 0);
    dt_space_free(s);
}

static void a_law_that_predicts_nothing_is_dropped(void **state)
{
    struct dt_space *s = grid_of_roles();
    const double *x[12];
    double y[12];
    struct dt_speed law;
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        x[i] = s->points + 2 * (i * 11);
        y[i] = i % 2 ? 1 : -1;
    }
    assert_false(dt_speed_fit(s, x, y, 12, &law));
    assert_false(dt_speed_fit(s, x, y, 2, &law)); /* too few */
    dt_space_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_and_log_agree_with_the_c_library),
        cmocka_unit_test(improvement_is_right_where_it_is_small_and_where_it_is_tiny),
        cmocka_unit_test(matern_has_its_known_values),
        cmocka_unit_test(one_observation_is_done_by_hand),
        cmocka_unit_test(predictions_agree_with_a_dense_solution),
        cmocka_unit_test(a_field_is_predictions_and_grows_bit_for_bit),
        cmocka_unit_test(equal_points_do_not_break_the_factor),
        cmocka_unit_test(the_gradient_is_that_of_the_evidence),
        cmocka_unit_test(evidence_of_one_observation_is_a_normal_density),
        cmocka_unit_test(climbing_ends_on_a_maximum),
        cmocka_unit_test(scales_follow_what_a_parameter_is),
        cmocka_unit_test(the_law_of_speed_is_recovered),
        cmocka_unit_test(a_law_that_predicts_nothing_is_dropped),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
