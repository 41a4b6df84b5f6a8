/* The Bayesian optimizer and Sobol's sequence: what they promise, and that the search is worth its
 * name. */
#include "optimizer/optimizer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static double opt_index[] = {0, 1, 2}, mem_mib[] = {1024, 2048, 4096, 8192, 16384};
static char *opt_labels[] = {"sgd", "adam", "lamb"};
static const struct dt_param ps = {
    .name = "ps", .kind = DT_PARAM_INT, .low = 1, .high = 16, .step = 1};
static const struct dt_param workers = {
    .name = "workers", .kind = DT_PARAM_INT, .low = 1, .high = 16, .step = 1};
static const struct dt_param ps_mem = {
    .name = "ps_mem", .kind = DT_PARAM_INT, .nvalues = 5, .values = mem_mib};
static const struct dt_param opt = {.name = "opt",
                                    .kind = DT_PARAM_LABEL,
                                    .hyper = true,
                                    .nvalues = 3,
                                    .values = opt_index,
                                    .labels = opt_labels};
static const struct dt_param lr = {
    .name = "lr", .kind = DT_PARAM_FLOAT, .hyper = true, .log = true, .low = 1e-5, .high = 1};
static const struct dt_param momentum = {
    .name = "momentum", .kind = DT_PARAM_FLOAT, .hyper = true, .low = 0, .high = 0.9};

static const struct dt_param a = {
    .name = "a", .kind = DT_PARAM_INT, .hyper = true, .low = 0, .high = 20, .step = 1};
static const struct dt_param b = {
    .name = "b", .kind = DT_PARAM_INT, .hyper = true, .low = 0, .high = 20, .step = 1};

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

static struct dt_space *roles(void)
{
    const struct dt_param params[] = {ps, workers};
    return space_of(params, 2, "ps + workers <= 20");
}

/* A jagged surface over (ps, workers) whose best is (11, 4): the scatter depends on the point
 * alone. */
static double seconds(const double *x)
{
    double p = x[0], w = x[1], scatter = fmod(p * 7 + w * 13, 5) / 100;
    return 10 + 60 / w + 12 * w / p + 2 * w + 0.3 * p + fabs(log2(p / 11)) * 8 +
           fabs(log2(w / 4)) * 6 + scatter;
}

static double mixed(const double *x)
{
    return 1 + pow(log10(x[0]) + 2.5, 2) + 4 * pow(x[1] - 0.6, 2) + (x[2] == 1 ? 0 : 1.5);
}

struct study {
    struct dt_space *space;
    struct dt_optimizer *optimizer;
    struct dt_observation *obs;
    double *x;
    size_t n;
    uint64_t seed;
    bool maximize;
    bool quality;
    double budget_left, enough;
};

static struct study begin(struct dt_space *space, const char *algorithm, uint64_t seed, size_t room)
{
    struct study s = {.space = space, .seed = seed};
    s.optimizer = dt_optimizer_new(algorithm, space, seed, NULL);
    assert_non_null(s.optimizer);
    s.obs = dt_xcalloc(room, sizeof(*s.obs));
    s.x = dt_xcalloc((room + 1) * space->n, sizeof(double));
    return s;
}

static struct dt_context context(const struct study *s)
{
    return (struct dt_context){.space = s->space,
                               .obs = s->obs,
                               .nobs = s->n,
                               .maximize = s->maximize,
                               .seed = s->seed,
                               .grid_levels = 5,
                               .quality = s->quality,
                               .enough = s->enough,
                               .budget_left = s->budget_left};
}

/* Asks for one more, which is pending then; its configuration, or NULL where nothing is left. */
static const double *ask(struct study *s)
{
    struct dt_context ctx = context(s);
    struct dt_error e = DT_ERROR_INIT;
    double *x = s->x + s->n * s->space->n;
    int rc = dt_optimizer_suggest(s->optimizer, &ctx, x, &e);
    if (rc < 0)
        fail_msg("%s", e.text);
    if (rc == 0)
        return NULL;
    assert_true(dt_space_allows(s->space, x, NULL));
    assert_false(dt_context_tried(&ctx, x));
    for (size_t i = 0; i < s->space->n; i++)
        assert_true(dt_space_active(s->space, x, i) ? dt_param_contains(&s->space->params[i], x[i])
                                                    : isnan(x[i]));
    s->obs[s->n++] = (struct dt_observation){.x = x, .status = DT_STATUS_PENDING, .value = NAN};
    return x;
}

static void tell(struct study *s, size_t i, enum dt_status status, double value)
{
    s->obs[i].status = status;
    s->obs[i].value = value;
    s->obs[i].cost = 1;
}

static void end(struct study *s)
{
    dt_optimizer_free(s->optimizer);
    free(s->obs);
    free(s->x);
}

/* Trials until the value is at most the target, one after the other. */
static size_t trials_to(struct dt_space *space, const char *algorithm, uint64_t seed,
                        double (*f)(const double *), double target, size_t most)
{
    struct study s = begin(space, algorithm, seed, most);
    bool found = false;
    while (s.n < most && !found) {
        const double *x = ask(&s);
        tell(&s, s.n - 1, DT_STATUS_OK, f(x));
        found = f(x) <= target;
    }
    size_t n = found ? s.n : most + 1;
    end(&s);
    return n;
}

static double least(const struct dt_space *s, double (*f)(const double *))
{
    double best = INFINITY;
    for (size_t i = 0; i < s->npoints; i++)
        best = fmin(best, f(s->points + i * s->n));
    return best;
}

static void it_needs_a_fraction_of_the_trials_of_random_search(void **state)
{
    struct dt_space *space = roles();
    double target = 1.05 * least(space, seconds), bayes = 0, random = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        bayes += (double)trials_to(space, "bayes", seed, seconds, target, 100) / 20;
        random += (double)trials_to(space, "random", seed, seconds, target, 100) / 20;
    }
    print_message("# trials to 5 %%: bayes %.1f, random %.1f\n", bayes, random);
    assert_true(bayes <= 9);
    assert_true(bayes <= 0.35 * random);
    dt_space_free(space);
}

static void it_searches_continuous_and_mixed_spaces(void **state)
{
    const struct dt_param params[] = {lr, momentum, opt};
    struct dt_space *space = space_of(params, 3, NULL);
    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++)
        assert_true(trials_to(space, "bayes", seed, mixed, 1.05, 40) <= 40);
    dt_space_free(space);
}

static double conditional(const double *x)
{
    double sgd = 1.2 + 4 * pow(x[1] - 0.6, 2);
    return pow(log10(x[0]) + 2.5, 2) + (x[2] == 0 ? sgd : x[2] == 1 ? 1 : 1.5);
}

/* Most of what it learns from has no momentum, and neither has the best. */
static void it_learns_where_parameters_are_inactive(void **state)
{
    struct dt_param params[] = {lr, momentum, opt};
    double bayes = 0, random = 0;
    (void)state;
    params[1].when = (char *)"opt == \"sgd\"";
    struct dt_space *space = space_of(params, 3, NULL);
    for (uint64_t seed = 0; seed < 6; seed++) {
        bayes += (double)trials_to(space, "bayes", seed, conditional, 1.02, 60) / 6;
        random += (double)trials_to(space, "random", seed, conditional, 1.02, 60) / 6;
    }
    print_message("# trials where one is conditional: bayes %.1f, random %.1f\n", bayes, random);
    assert_true(bayes <= 20);
    assert_true(bayes <= 0.6 * random);
    dt_space_free(space);
}

static void both_algorithms_visit_a_finite_space_once(void **state)
{
    static const char *const algorithms[] = {"bayes", "sobol"};
    const struct dt_param few = {
        .name = "workers", .kind = DT_PARAM_INT, .low = 1, .high = 6, .step = 1};
    const struct dt_param params[] = {few, opt};
    struct dt_space *space = space_of(params, 2, "workers != 3 || opt == \"adam\"");
    (void)state;
    assert_int_equal(space->npoints, 16);
    for (size_t a = 0; a < COUNT(algorithms); a++) {
        struct study s = begin(space, algorithms[a], 1, 17);
        for (size_t i = 0; i < 16; i++) {
            const double *x = ask(&s);
            assert_non_null(x);
            if (i % 5)
                tell(&s, i, i % 4 ? DT_STATUS_OK : DT_STATUS_FAILED, x[0] + x[1]);
        }
        assert_null(ask(&s));
        end(&s);
    }
    dt_space_free(space);
}

/* A context that is built anew, as after a restart, continues the very same track. */
static void the_context_alone_decides(void **state)
{
    const struct dt_param params[] = {lr, momentum, opt};
    struct dt_space *spaces[] = {roles(), space_of(params, 3, NULL)};
    double (*f[])(const double *) = {seconds, mixed};
    static const char *const algorithms[] = {"bayes", "sobol"};
    (void)state;
    for (size_t k = 0; k < 4; k++) {
        struct study a = begin(spaces[k / 2], algorithms[k % 2], 9, 14);
        for (size_t i = 0; i < 14; i++)
            tell(&a, i, i == 4 ? DT_STATUS_FAILED : DT_STATUS_OK, f[k / 2](ask(&a)));
        for (size_t i = 0; i < 14; i++) {
            struct study b = begin(spaces[k / 2], algorithms[k % 2], 9, 15);
            memcpy(b.obs, a.obs, i * sizeof(*b.obs));
            b.n = i;
            assert_memory_equal(ask(&b), a.obs[i].x, spaces[k / 2]->n * sizeof(double));
            end(&b);
        }
        struct study other = begin(spaces[k / 2], algorithms[k % 2], 10, 14);
        bool differs = false;
        for (size_t i = 0; i < 5; i++) {
            const double *x = ask(&other);
            differs |= !dt_config_equal(x, a.obs[i].x, spaces[k / 2]->n);
            tell(&other, i, DT_STATUS_OK, f[k / 2](x));
        }
        assert_true(differs);
        end(&other);
        end(&a);
    }
    dt_space_free(spaces[0]);
    dt_space_free(spaces[1]);
}

/* Units and direction are the user's affair. */
static void a_speed_to_maximize_is_a_time_to_minimize(void **state)
{
    struct dt_space *space = roles();
    struct study time = begin(space, "bayes", 2, 12), speed = begin(space, "bayes", 2, 12);
    (void)state;
    speed.maximize = true;
    for (size_t i = 0; i < 12; i++) {
        const double *a = ask(&time), *b = ask(&speed);
        assert_true(dt_config_equal(a, b, 2));
        tell(&time, i, DT_STATUS_OK, seconds(a));
        tell(&speed, i, DT_STATUS_OK, 1 / seconds(b));
    }
    end(&time);
    end(&speed);
    dt_space_free(space);
}

static void a_region_that_fails_is_left_alone(void **state)
{
    struct dt_space *space = roles();
    struct study s = begin(space, "bayes", 3, 30);
    size_t failed = 0, late = 0;
    (void)state;
    for (size_t i = 0; i < 30; i++) {
        const double *x = ask(&s);
        bool fails = x[0] > 8; /* the best lie there */
        failed += fails;
        late += fails && i >= 20;
        tell(&s, i, fails ? DT_STATUS_FAILED : DT_STATUS_OK, fails ? NAN : seconds(x));
    }
    print_message("# %zu of 30 failed, %zu of the last 10\n", failed, late);
    assert_true(failed <= 14);
    assert_true(late <= 2);
    end(&s);
    dt_space_free(space);
}

static void avoids_less_memory(struct dt_space *space)
{
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct study s = begin(space, "bayes", seed, 10);
        static const double known[][3] = {
            {1, 16384, 0.9}, {2, 16384, 0.9}, {1, 4096, NAN}, {2, 2048, NAN}};
        for (size_t i = 0; i < 4; i++) {
            double *x = s.x + space->n * i;
            memcpy(x, known[i], space->n * sizeof(*x));
            s.obs[i].x = x;
            tell(&s, i, i < 2 ? DT_STATUS_OK : DT_STATUS_FAILED, 1);
        }
        s.n = 4;
        for (int i = 0; i < 3; i++) { /* of six that are left three are above what failed */
            const double *x = ask(&s);
            assert_true(x[0] == 1 ? x[1] > 4096 : x[1] > 2048);
        }
        end(&s);
    }
    dt_space_free(space);
}

static void less_memory_than_what_failed_is_not_tried(void **state)
{
    struct dt_param params[] = {
        {.name = "ps", .kind = DT_PARAM_INT, .low = 1, .high = 2, .step = 1}, ps_mem, momentum};
    (void)state;
    params[2].low = params[2].high;
    params[2].when = (char *)"ps_mem > 16000"; /* inactive in what failed */
    avoids_less_memory(space_of(params, 2, NULL));
    avoids_less_memory(space_of(params, 3, NULL));
}

static void a_bound_keeps_the_search_away(void **state)
{
    struct dt_space *space = roles();
    double target = 1.05 * least(space, seconds), trials = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct study s = begin(space, "bayes", seed, 60);
        bool found = false;
        while (s.n < 60 && !found) {
            double y = seconds(ask(&s));
            tell(&s, s.n - 1, y > 60 ? DT_STATUS_CENSORED : DT_STATUS_OK,
                 fmin(y, 60)); /* killed after a minute */
            found = y <= target;
        }
        trials += (double)s.n / 10;
        end(&s);
    }
    print_message("# trials to 5 %% with a time limit: %.1f\n", trials);
    assert_true(trials <= 13);
    dt_space_free(space);
}

/* Four at a time: they spread, and the search does not take much longer. */
static void pending_trials_count(void **state)
{
    struct dt_space *space = roles();
    double target = 1.05 * least(space, seconds), trials = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct study s = begin(space, "bayes", seed, 60);
        size_t done = 0;
        for (bool found = false; !found && done < 56; done++) {
            while (s.n < done + 4)
                ask(&s);
            double y = seconds(s.obs[done].x);
            tell(&s, done, DT_STATUS_OK, y);
            found = y <= target;
        }
        trials += (double)done / 10;
        end(&s);
    }
    print_message("# trials to 5 %%, four at a time: %.1f\n", trials);
    assert_true(trials <= 13);
    dt_space_free(space);
}

static void few_trials_at_once_are_of_use_at_the_start(void **state)
{
    struct dt_space *space = roles();
    struct study s = begin(space, "bayes", 1, 10), r = begin(space, "random", 1, 1);
    struct dt_context ctx = context(&s);
    (void)state;
    assert_int_equal(dt_optimizer_width(s.optimizer, &ctx), 3);
    assert_true(dt_optimizer_width(r.optimizer, &ctx) > 1000000); /* it learns nothing anyway */
    for (int i = 0; i < 3; i++)
        ask(&s);
    ctx = context(&s);
    assert_int_equal(dt_optimizer_width(s.optimizer, &ctx), 3);
    tell(&s, 0, DT_STATUS_OK, 1);
    tell(&s, 1, DT_STATUS_FAILED, NAN);
    ctx = context(&s);
    assert_int_equal(dt_optimizer_width(s.optimizer, &ctx), 5);
    end(&s);
    end(&r);
    dt_space_free(space);
}

static void odd_values_do_no_harm(void **state)
{
    struct dt_space *space = roles();
    static const double odd[] = {0, -1e300, 1e300, 5, 5, 5, 1e-300, -0.0};
    (void)state;
    struct study s = begin(space, "bayes", 1, 24), same = begin(space, "bayes", 1, 24);
    s.x[0] = s.x[1] = NAN; /* the job as submitted, its counts unknown */
    s.obs[s.n++] = (struct dt_observation){.x = s.x, .status = DT_STATUS_OK, .value = 3};
    for (size_t i = 1; i < 24; i++) {
        ask(&s);
        tell(&s, i, i % 6 == 5 ? DT_STATUS_VOID : DT_STATUS_OK, odd[i % COUNT(odd)]);
    }
    for (size_t i = 0; i < 24; i++) {
        ask(&same);
        tell(&same, i, DT_STATUS_OK, 7);
    }
    end(&s);
    end(&same);
    dt_space_free(space);
}

/* Hundreds of observations and a space of 10^8. */
static void many_observations_are_no_trouble(void **state)
{
    struct dt_param params[8];
    char names[8][2];
    for (int i = 0; i < 8; i++) {
        snprintf(names[i], sizeof(names[i]), "%c", 'a' + i);
        params[i] = (struct dt_param){
            .name = names[i], .kind = DT_PARAM_INT, .hyper = true, .low = 0, .high = 9, .step = 1};
    }
    struct dt_space *space = space_of(params, 8, "a + b <= 12");
    (void)state;
    assert_false(space->enumerated);
    struct study s = begin(space, "sobol", 1, 601);
    double best = INFINITY;
    for (size_t i = 0; i < 600; i++) {
        const double *x = ask(&s);
        double y = 1;
        for (int k = 0; k < 8; k++)
            y += (x[k] - 3) * (x[k] - 3) * (1 + k % 3);
        best = fmin(best, y);
        tell(&s, i, DT_STATUS_OK, y);
    }
    dt_optimizer_free(s.optimizer);
    s.optimizer = dt_optimizer_new("bayes", space, 1, NULL);
    const double *x = ask(&s);
    double y = 1;
    for (int k = 0; k < 8; k++)
        y += (x[k] - 3) * (x[k] - 3) * (1 + k % 3);
    print_message("# best of 600: %.0f, the next: %.0f\n", best, y);
    assert_true(y < best);
    end(&s);
    dt_space_free(space);
}

/* A valley around 10, where what is larger costs far more. */
static const double *next_in_the_valley(struct study *s, double budget_left)
{
    static const double known[] = {0, 4, 16, 20};
    s->n = 0;
    for (size_t i = 0; i < COUNT(known); i++) {
        s->x[i] = known[i];
        s->obs[i] = (struct dt_observation){.x = s->x + i,
                                            .status = DT_STATUS_OK,
                                            .value = 1 + pow(known[i] - 10, 2) / 50,
                                            .cost = exp(known[i])};
    }
    s->n = COUNT(known);
    s->budget_left = budget_left;
    return ask(s);
}

static void what_is_cheap_comes_first_where_there_is_a_budget(void **state)
{
    struct dt_space *space = space_of(&a, 1, NULL);
    struct study s = begin(space, "bayes", 1, 10);
    (void)state;
    double careless = *next_in_the_valley(&s, 0), spent = *next_in_the_valley(&s, 0.05),
           thrifty = *next_in_the_valley(&s, 1);
    print_message("# careless %g, nearly spent %g, thrifty %g\n", careless, spent, thrifty);
    assert_true(careless > 4 && careless < 16);
    assert_true(thrifty <= spent && spent <= careless);
    assert_true(thrifty < careless);
    end(&s);
    dt_space_free(space);
}

/* Fast where a is small, good where b is large; both matter, and most of the space is poor. */
static void quality_is_learnt_from_what_was_poor(void **state)
{
    const struct dt_param params[] = {a, b};
    struct dt_space *space = space_of(params, 2, NULL);
    size_t trials[2] = {0}; /* told how far the quality was off; told of a failure */
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        for (int blind = 0; blind < 2; blind++) {
            struct study s = begin(space, "bayes", seed, 61);
            bool found = false;
            s.quality = !blind;
            while (s.n < 60 && !found) {
                const double *x = ask(&s);
                double margin = x[1] - 12 - 0.3 * x[0], value = 10 + x[0] + 0.2 * x[1];
                struct dt_observation *o = &s.obs[s.n - 1];
                *o = (struct dt_observation){.x = x,
                                             .status = margin >= 0 ? DT_STATUS_OK
                                                       : blind     ? DT_STATUS_FAILED
                                                                   : DT_STATUS_POOR,
                                             .value = margin >= 0 || !blind ? value : NAN,
                                             .margin = margin};
                found = margin >= 0 && value <= 12.4 * 1.02;
            }
            trials[blind] += s.n;
            end(&s);
        }
    }
    print_message("# trials to 2 %%: told the quality %.1f, told that it failed %.1f\n",
                  (double)trials[0] / 10, (double)trials[1] / 10);
    assert_true(trials[0] < 120 && 10 * trials[0] < 8 * trials[1]);
    dt_space_free(space);
}

/* lr decides the quality, workers the pace, and a large batch is slower a step. */
static void pace_teaches_the_dt_configuration_and_quality_the_rest(void **state)
{
    static double sizes[] = {32, 64, 128};
    const struct dt_param batch = {
        .name = "batch", .kind = DT_PARAM_INT, .hyper = true, .nvalues = 3, .values = sizes};
    const struct dt_param params[] = {workers, lr, batch};
    struct dt_space *space = space_of(params, 3, NULL);
    struct study s = begin(space, "joint", 1, 40);
    double slowest_late = 0, best = INFINITY;
    (void)state;
    s.enough = 0.004;
    while (s.n < 30) {
        const double *x = ask(&s);
        double pace = x[2] / 32 * (1 / x[0] + 0.01 * x[0]), loss = 0.1 + fabs(log10(x[1]) + 2);
        s.obs[s.n - 1] = (struct dt_observation){
            .x = x, .status = DT_STATUS_OK, .value = loss, .pace = pace, .cost = 1};
        best = fmin(best, loss);
        if (s.n > 20) /* of the fastest of its batch size, workers = 10 */
            slowest_late = fmax(slowest_late, pace / (x[2] / 32 * 0.2));
    }
    print_message("# best loss %.3f, late trials at most %.2f x the least pace\n", best,
                  slowest_late);
    assert_true(best < 0.2 && slowest_late < 1.1);
    end(&s);
    dt_space_free(space);
}

static void the_promise_falls_as_the_search_goes_on(void **state)
{
    const struct dt_param params[] = {a, b};
    struct dt_space *space = space_of(params, 2, NULL);
    struct study s = begin(space, "bayes", 1, 40), r = begin(space, "random", 1, 1);
    struct dt_context ctx = context(&s);
    double early = 0, late;
    (void)state;
    assert_true(isinf(dt_optimizer_promise(s.optimizer, &ctx)));
    assert_true(dt_optimizer_promise(r.optimizer, &ctx) == 0); /* it has no model */
    while (s.n < 40) {
        const double *x = ask(&s);
        tell(&s, s.n - 1, DT_STATUS_OK, 1 + (pow(x[0] - 13, 2) + pow(x[1] - 6, 2)) / 50);
        ctx = context(&s);
        if (s.n == 5)
            early = dt_optimizer_promise(s.optimizer, &ctx);
    }
    late = dt_optimizer_promise(s.optimizer, &ctx);
    assert_true(early > 0.02 && late < 0.002);
    end(&s);
    end(&r);
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_needs_a_fraction_of_the_trials_of_random_search),
        cmocka_unit_test(it_searches_continuous_and_mixed_spaces),
        cmocka_unit_test(it_learns_where_parameters_are_inactive),
        cmocka_unit_test(both_algorithms_visit_a_finite_space_once),
        cmocka_unit_test(the_context_alone_decides),
        cmocka_unit_test(a_speed_to_maximize_is_a_time_to_minimize),
        cmocka_unit_test(a_region_that_fails_is_left_alone),
        cmocka_unit_test(less_memory_than_what_failed_is_not_tried),
        cmocka_unit_test(a_bound_keeps_the_search_away),
        cmocka_unit_test(pending_trials_count),
        cmocka_unit_test(what_is_cheap_comes_first_where_there_is_a_budget),
        cmocka_unit_test(quality_is_learnt_from_what_was_poor),
        cmocka_unit_test(pace_teaches_the_dt_configuration_and_quality_the_rest),
        cmocka_unit_test(the_promise_falls_as_the_search_goes_on),
        cmocka_unit_test(few_trials_at_once_are_of_use_at_the_start),
        cmocka_unit_test(odd_values_do_no_harm),
        cmocka_unit_test(many_observations_are_no_trouble),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
