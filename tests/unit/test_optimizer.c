/* optimizer: what every algorithm must keep to, and what each promises. */
#include "optimizer/optimizer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static double opt_values[] = {0, 1, 2};
static char *opt_labels[] = {"sgd", "adam", "lamb"};
static const struct dt_param ps = {
    .name = "ps", .kind = DT_PARAM_INT, .low = 0, .high = 3, .step = 1};
static const struct dt_param workers = {
    .name = "workers", .kind = DT_PARAM_INT, .low = 1, .high = 6, .step = 1};
static const struct dt_param opt = {.name = "opt",
                                    .kind = DT_PARAM_LABEL,
                                    .nvalues = 3,
                                    .values = opt_values,
                                    .labels = opt_labels};
static const struct dt_param lr = {
    .name = "lr", .kind = DT_PARAM_FLOAT, .log = true, .low = 1e-4, .high = 0.1};
static const struct dt_param momentum = {
    .name = "momentum", .kind = DT_PARAM_FLOAT, .low = 0, .high = 0.9};

static struct dt_space *space_of(const struct dt_param *params, size_t n, const char *constraint)
{
    struct dt_strv list = DT_STRV_INIT;
    struct dt_error e = DT_ERROR_INIT;
    if (constraint)
        dt_strv_add(&list, constraint);
    struct dt_space *s = dt_space_new(params, n, &list, NULL, 0, NULL, NULL, NULL, 0, &e);
    if (!s)
        fail_msg("%s", e.text);
    dt_strv_free(&list);
    return s;
}

/* A search without values: every suggestion at once becomes an observation. */
struct search {
    struct dt_space *space;
    struct dt_optimizer *optimizer;
    struct dt_observation *obs;
    double *x;
    size_t n;
    uint64_t seed;
    struct dt_error e;
};

static struct search start(struct dt_space *space, const char *algorithm, uint64_t seed,
                           size_t room)
{
    struct search s = {.space = space, .seed = seed, .e = DT_ERROR_INIT};
    s.optimizer = dt_optimizer_new(algorithm, space, seed, &s.e);
    assert_non_null(s.optimizer);
    s.obs = dt_xcalloc(room, sizeof(*s.obs));
    s.x = dt_xcalloc((room + 1) * space->n,
                     sizeof(double)); /* one more for the question that gets no answer */
    return s;
}

static int step(struct search *s)
{
    struct dt_context ctx = {.space = s->space, .obs = s->obs, .nobs = s->n, .seed = s->seed, .grid_levels = 3};
    double *x = s->x + s->n * s->space->n;
    int rc = dt_optimizer_suggest(s->optimizer, &ctx, x, &s->e);
    if (rc == 1)
        s->obs[s->n++] = (struct dt_observation){.x = x, .status = DT_STATUS_PENDING};
    return rc;
}

static void finish(struct search *s)
{
    dt_optimizer_free(s->optimizer);
    free(s->obs);
    free(s->x);
    dt_error_clear(&s->e);
}

static void every_algorithm_visits_a_finite_space_once(void **state)
{
    static const char *const algorithms[] = {"random", "grid"};
    const struct dt_param params[] = {ps, workers, opt};
    struct dt_space *space =
        space_of(params, 3, "ps + workers <= 6 && (opt != \"lamb\" || ps > 0)");
    (void)state;
    for (size_t a = 0; a < COUNT(algorithms); a++) {
        struct search s = start(space, algorithms[a], 5, space->npoints);
        for (size_t i = 0; i < space->npoints; i++) {
            assert_int_equal(step(&s), 1);
            const double *x = s.obs[i].x;
            bool member = false;
            for (size_t j = 0; j < space->npoints; j++)
                member |= dt_config_equal(x, space->points + j * 3, 3);
            assert_true(member);
            for (size_t j = 0; j < i; j++)
                assert_false(dt_config_equal(x, s.obs[j].x, 3));
        }
        assert_int_equal(step(&s), 0);
        finish(&s);
    }
    dt_space_free(space);
}

static void what_was_tried_elsewhere_is_not_tried_again(void **state)
{
    const struct dt_param params[] = {workers};
    struct dt_space *space = space_of(params, 1, NULL);
    struct search s = start(space, "random", 1, 8);
    (void)state;
    s.x[0] = 3; /* the job as submitted, say */
    s.obs[s.n++] = (struct dt_observation){.x = s.x, .status = DT_STATUS_OK, .value = 1};
    s.x[1] = NAN; /* not a point of the space: takes nothing away */
    s.obs[s.n++] = (struct dt_observation){.x = s.x + 1, .status = DT_STATUS_FAILED};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(step(&s), 1);
        assert_true(s.obs[s.n - 1].x[0] != 3);
    }
    assert_int_equal(step(&s), 0);
    finish(&s);
    dt_space_free(space);
}

static bool same_order(struct dt_space *space, const char *algorithm, uint64_t a, uint64_t b,
                       size_t n)
{
    struct search s = start(space, algorithm, a, n), t = start(space, algorithm, b, n);
    bool same = true;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(step(&s), 1);
        assert_int_equal(step(&t), 1);
        same &= dt_config_equal(s.obs[i].x, t.obs[i].x, space->n);
    }
    finish(&s);
    finish(&t);
    return same;
}

static void the_same_seed_gives_the_same_order_another_seed_another(void **state)
{
    const struct dt_param finite[] = {ps, workers}, infinite[] = {workers, lr};
    struct dt_space *spaces[] = {space_of(finite, 2, NULL), space_of(infinite, 2, NULL)};
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_true(same_order(spaces[i], "random", 7, 7, 20));
        assert_true(same_order(spaces[i], "random", 1ULL << 40, 1ULL << 40, 20));
        assert_false(same_order(spaces[i], "random", 7, 8, 20));
        assert_false(
            same_order(spaces[i], "random", 7, 7 + (1ULL << 32), 20)); /* all 64 bits count */
        assert_true(same_order(spaces[i], "grid", 7, 8, 5));
        dt_space_free(spaces[i]);
    }
}

/* A suggestion follows from the observations alone, not from what the optimizer was asked before.
 */
static void a_restarted_search_goes_on_as_before(void **state)
{
    const struct dt_param params[] = {workers, lr};
    struct dt_space *space = space_of(params, 2, NULL);
    struct search s = start(space, "random", 3, 20);
    (void)state;
    for (int i = 0; i < 20; i++)
        assert_int_equal(step(&s), 1);
    for (size_t at = 0; at < 20; at++) {
        struct dt_optimizer *o = dt_optimizer_new("random", space, 3, &s.e);
        struct dt_context ctx = {.space = space, .obs = s.obs, .nobs = at, .seed = 3, .grid_levels = 3};
        double x[2];
        assert_int_equal(dt_optimizer_suggest(o, &ctx, x, &s.e), 1);
        assert_true(dt_config_equal(x, s.obs[at].x, 2));
        dt_optimizer_free(o);
    }
    finish(&s);
    dt_space_free(space);
}

static void samples_of_a_continuous_space_keep_to_it_and_spread(void **state)
{
    const struct dt_param params[] = {workers, lr, momentum};
    struct dt_space *space = space_of(params, 3, "workers * lr <= 0.2");
    struct search s = start(space, "random", 11, 600);
    int decades[3] = {0}, low = 0;
    (void)state;
    for (int i = 0; i < 600; i++) {
        assert_int_equal(step(&s), 1);
        const double *x = s.obs[i].x;
        assert_true(dt_param_contains(&workers, x[0]) && dt_param_contains(&lr, x[1]) &&
                    dt_param_contains(&momentum, x[2]));
        assert_true(x[0] * x[1] <= 0.2);
        decades[x[1] < 1e-3 ? 0 : x[1] < 1e-2 ? 1 : 2]++;
        low += x[2] < 0.45;
    }
    /* a third of lr falls into each decade (the last is cut by the constraint), half of momentum
     * below its middle */
    assert_true(decades[0] > 160 && decades[1] > 160 && decades[2] > 80);
    assert_true(low > 240 && low < 360);
    finish(&s);
    dt_space_free(space);
}

static void a_space_that_constraints_all_but_empty_ends_in_words(void **state)
{
    const struct dt_param params[] = {workers, lr};
    struct dt_space *space = space_of(params, 2, "lr < 0");
    struct search s = start(space, "random", 1, 1);
    (void)state;
    assert_int_equal(step(&s), -1);
    assert_string_equal(
        s.e.text,
        "100000 random configurations were all excluded, the last by \"lr < 0\"; loosen the "
        "constraints");
    finish(&s);
    dt_space_free(space);
}

static void a_grid_goes_in_order_the_last_parameter_fastest(void **state)
{
    const struct dt_param params[] = {ps, opt};
    struct dt_space *space = space_of(params, 2, "ps != 1");
    struct search s = start(space, "grid", 1, 9);
    static const double expected[][2] = {{0, 0}, {0, 1}, {0, 2}, {2, 0}, {2, 1},
                                         {2, 2}, {3, 0}, {3, 1}, {3, 2}};
    (void)state;
    for (size_t i = 0; i < COUNT(expected); i++) {
        assert_int_equal(step(&s), 1);
        assert_true(dt_config_equal(s.obs[i].x, expected[i], 2));
    }
    assert_int_equal(step(&s), 0);
    finish(&s);
    dt_space_free(space);
}

static void a_grid_takes_a_few_levels_of_a_continuous_parameter(void **state)
{
    const struct dt_param params[] = {lr, opt};
    struct dt_space *space = space_of(params, 2, NULL);
    struct search s = start(space, "grid", 1, 9);
    (void)state;
    for (int i = 0; i < 9; i++)
        assert_int_equal(step(&s), 1);
    assert_int_equal(step(&s), 0);
    assert_true(s.obs[0].x[0] == 1e-4 && s.obs[8].x[0] == 0.1);
    assert_true(fabs(log10(s.obs[3].x[0]) + 2.5) < 1e-9);
    finish(&s);
    dt_space_free(space);
}

static const char *const all_algorithms[] = {"bayes", "random", "sobol", "grid"};

/* sgd has a momentum, and a large one something more. */
static struct dt_space *conditional(bool continuous)
{
    struct dt_param m = workers, n = lr;
    m.name = (char *)"m";
    m.when = (char *)"opt == \"sgd\"";
    n.name = (char *)"n";
    n.when = (char *)"m > 3";
    if (continuous) {
        m.kind = DT_PARAM_FLOAT;
        m.step = 0;
    } else {
        n.low = n.step = 0.05;
        n.log = false;
    }
    const struct dt_param params[] = {n, m, opt};
    return space_of(params, 3, NULL);
}

/* The last suggestion has values where it should and nowhere else, and is new. */
static void check_last(const struct search *s)
{
    const struct dt_space *space = s->space;
    const double *x = s->obs[s->n - 1].x;
    for (size_t i = 0; i < space->n; i++)
        assert_true(dt_space_active(space, x, i) ? dt_param_contains(&space->params[i], x[i])
                                                 : isnan(x[i]));
    for (size_t j = 0; j + 1 < s->n; j++)
        assert_false(dt_config_equal(x, s->obs[j].x, space->n));
}

static void finish_last(struct search *s)
{
    struct dt_observation *o = &s->obs[s->n - 1];
    o->status = s->n % 5 ? DT_STATUS_OK : DT_STATUS_FAILED;
    o->value = 1 + o->x[2] + (isnan(o->x[1]) ? 0 : o->x[1]);
}

static void a_conditional_space_is_visited_once(void **state)
{
    struct dt_space *space = conditional(false);
    (void)state;
    assert_int_equal(space->npoints, 3 + 3 * 2 + 2);
    for (size_t a = 0; a < COUNT(all_algorithms); a++) {
        struct search s = start(space, all_algorithms[a], 3, 12);
        for (size_t i = 0; i < space->npoints; i++) {
            assert_int_equal(step(&s), 1);
            check_last(&s);
            finish_last(&s);
        }
        assert_int_equal(step(&s), 0);
        finish(&s);
    }
    dt_space_free(space);
}

/* Two of the three labels stand alone, so each is suggested once at most. */
static void what_is_inactive_never_gets_a_value(void **state)
{
    struct dt_space *space = conditional(true);
    (void)state;
    assert_false(space->enumerated);
    for (size_t a = 0; a < COUNT(all_algorithms); a++) {
        struct search s = start(space, all_algorithms[a], 3, 24);
        bool is_grid = strcmp(all_algorithms[a], "grid") == 0;
        size_t n = is_grid ? 1 + 2 * 3 + 2 : 24, with_n = 0;
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(step(&s), 1);
            check_last(&s);
            finish_last(&s);
            with_n += !isnan(s.obs[i].x[0]);
        }
        assert_true(with_n >= 4 && with_n < n);
        if (is_grid)
            assert_int_equal(step(&s), 0);
        finish(&s);
    }
    dt_space_free(space);
}

static void unknown_algorithms_are_an_error(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_space *space = space_of(&ps, 1, NULL);
    (void)state;
    assert_null(dt_optimizer_new("magic", space, 1, &e));
    assert_string_equal(e.text, "there is no search algorithm \"magic\"");
    dt_error_clear(&e);
    dt_space_free(space);
}

/* What is recommended depends on the space only in whether that has a fidelity. */
static const struct dt_space without_fidelity;

static void the_best_is_the_best_finished_one(void **state)
{
    const double x[] = {0};
    const struct dt_observation obs[] = {
        {x, DT_STATUS_PENDING, NAN, 0, 0, 0, 0, false}, {x, DT_STATUS_OK, 5, 1, 0, 0, 0, false},
        {x, DT_STATUS_CENSORED, 1, 1, 0, 0, 0, false},  {x, DT_STATUS_OK, 3, 1, 0, 0, 0, false},
        {x, DT_STATUS_FAILED, NAN, 1, 0, 0, 0, false},  {x, DT_STATUS_OK, 3, 1, 0, 0, 0, false},
        {x, DT_STATUS_OK, 9, 1, 0, 0, 0, false},        {x, DT_STATUS_VOID, NAN, 1, 0, 0, 0, false}};
    struct dt_context ctx = {.space = &without_fidelity, .obs = obs, .nobs = COUNT(obs)};
    (void)state;
    assert_int_equal(dt_context_best(&ctx), 3);
    ctx.maximize = true;
    assert_int_equal(dt_context_best(&ctx), 6);
    ctx.nobs = 1;
    assert_int_equal(dt_context_best(&ctx), -1);
}

static void a_configuration_stands_for_its_mean(void **state)
{
    const double x[] = {0};
    const struct dt_observation obs[] = {
        {x, DT_STATUS_OK, 10, 1, 0, 0, 0, false},      {x, DT_STATUS_OK, 9, 1, 0, 0, 0, false}, {x, DT_STATUS_OK, 13, 1, 0, 2, 0, false},
        {x, DT_STATUS_FAILED, NAN, 1, 0, 2, 0, false}, {x, DT_STATUS_OK, 8, 1, 0, 2, 0, false}, {x, DT_STATUS_OK, 8, 1, 0, 1, 0, false}};
    struct dt_context ctx = {.space = &without_fidelity, .obs = obs, .nobs = 2};
    double mean;
    (void)state;
    assert_int_equal(dt_context_best(&ctx), 1);
    ctx.nobs = COUNT(obs);
    assert_int_equal(dt_context_best(&ctx), 0);
    assert_int_equal(dt_context_mean(&ctx, 0, &mean), 2);
    assert_true(mean == 9);
    assert_int_equal(dt_context_mean(&ctx, 4, &mean), 3); /* asked for by one that measured again */
    assert_true(mean == 10);
    ctx.maximize = true;
    assert_int_equal(dt_context_best(&ctx), 1);
    assert_int_equal(dt_context_mean(&ctx, 1, &mean), 3);
    assert_true(mean == 10);
    ctx.maximize = false;
    ctx.nobs = 1;
    const struct dt_observation failed = {x, DT_STATUS_FAILED, NAN, 1, 0, 0, 0, false};
    ctx.obs = &failed;
    assert_int_equal(dt_context_mean(&ctx, 0, &mean), 0);
    assert_true(isnan(mean));
}

/* Observations as text: a number is a value, "3=8" one of 8 that measures number 3 again, "?" and
 * "3?" such ones under way, F a failure. Gives what is to be measured again, from 1; 0: nothing. */
static int repeat(const char *text, bool maximize)
{
    static const double x[] = {0};
    struct dt_strv words = DT_STRV_INIT;
    dt_strv_split(&words, text, " ");
    struct dt_observation *o = dt_xcalloc(words.n + 1, sizeof(*o));
    for (size_t i = 0; i < words.n; i++) {
        const char *w = words.v[i], *equals = strchr(w, '='), *open = strchr(w, '?');
        o[i] = (struct dt_observation){x, DT_STATUS_OK, 0, 1, 0, 0, 0, false};
        if (equals || open)
            o[i].again = strtoul(w, NULL, 10);
        if (open)
            o[i].status = DT_STATUS_PENDING;
        else if (*w == 'F')
            o[i].status = DT_STATUS_FAILED;
        else
            o[i].value = strtod(equals ? equals + 1 : w, NULL);
    }
    struct dt_context ctx = {
        .space = &without_fidelity, .obs = o, .nobs = words.n, .maximize = maximize};
    int i = dt_context_repeat(&ctx);
    free(o);
    dt_strv_free(&words);
    return i + 1;
}

static void the_few_best_are_measured_again_where_runs_are_noisy(void **state)
{
    (void)state;
    assert_int_equal(repeat("", false), 0);
    assert_int_equal(repeat("F F", false), 0);
    assert_int_equal(repeat("5", false), 0);
    assert_int_equal(repeat("14 10 20", false), 0); /* no noise is so large */
    assert_int_equal(repeat("12 10 20", false), 2);
    assert_int_equal(repeat("12 19 20", true), 3);
    assert_int_equal(repeat("12 10 20 2?", false), 1); /* there is room for one more */
    assert_int_equal(repeat("12 10 20 2=10", false), 0);
    assert_int_equal(repeat("10.1 10 30 2=10", false), 1); /* one repeat alone may be chance */
    assert_int_equal(repeat("10.1 10 30 2=10 1=10.1", false), 0); /* no noise: no more of it */
    assert_int_equal(repeat("12 10 20 2=10.5", false), 0);        /* noisy, but clear enough */
    assert_int_equal(repeat("10.5 10 30 2=11", false), 1); /* now as good, and measured less */
    assert_int_equal(repeat("10.5 10 30 2=11 1=10.4", false), 1);
    assert_int_equal(repeat("10 10.5 30 1=10.6", false), 2);
    assert_int_equal(repeat("10 10.5 30 1=10.6 2?", false), 1);
    assert_int_equal(repeat("-1 0 1 1=-0.9", false), 0); /* not relative where there is no ratio */
    assert_int_equal(repeat("-1 -0.9 1 1=-0.5", false), 2);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_visits_a_finite_space_once),
        cmocka_unit_test(what_was_tried_elsewhere_is_not_tried_again),
        cmocka_unit_test(the_same_seed_gives_the_same_order_another_seed_another),
        cmocka_unit_test(a_restarted_search_goes_on_as_before),
        cmocka_unit_test(samples_of_a_continuous_space_keep_to_it_and_spread),
        cmocka_unit_test(a_space_that_constraints_all_but_empty_ends_in_words),
        cmocka_unit_test(a_grid_goes_in_order_the_last_parameter_fastest),
        cmocka_unit_test(a_grid_takes_a_few_levels_of_a_continuous_parameter),
        cmocka_unit_test(a_conditional_space_is_visited_once),
        cmocka_unit_test(what_is_inactive_never_gets_a_value),
        cmocka_unit_test(unknown_algorithms_are_an_error),
        cmocka_unit_test(the_best_is_the_best_finished_one),
        cmocka_unit_test(a_configuration_stands_for_its_mean),
        cmocka_unit_test(the_few_best_are_measured_again_where_runs_are_noisy),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
