/* Warm start: what earlier studies of the same space are worth, and that wrong ones do little harm.
 */
#include "history/history.h"
#include "model/encode.h"
#include "optimizer/optimizer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define PAST_TRIALS 20
#define SEEDS 12

static double opt_index[] = {0, 1, 2}, mem_mib[] = {1024, 2048, 4096, 8192};
static char *opt_labels[] = {"sgd", "adam", "lamb"};
static const struct dt_param ps = {
    .name = "ps", .kind = DT_PARAM_INT, .low = 1, .high = 16, .step = 1};
static const struct dt_param workers = {
    .name = "workers", .kind = DT_PARAM_INT, .low = 1, .high = 16, .step = 1};
static const struct dt_param mem = {
    .name = "worker_mem", .kind = DT_PARAM_INT, .nvalues = 4, .values = mem_mib};
static const struct dt_param lr = {
    .name = "lr", .kind = DT_PARAM_FLOAT, .hyper = true, .log = true, .low = 1e-5, .high = 1};
static const struct dt_param momentum = {
    .name = "momentum", .kind = DT_PARAM_FLOAT, .hyper = true, .low = 0, .high = 0.9};
static const struct dt_param opt = {.name = "opt",
                                    .kind = DT_PARAM_LABEL,
                                    .hyper = true,
                                    .nvalues = 3,
                                    .values = opt_index,
                                    .labels = opt_labels};

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

/* ---- objectives: jagged surfaces whose best lie near each other, and others that are of no help
 * ---- */

static double around(const double *x, double p, double w, double weight)
{
    double scatter = fmod(x[0] * 7 + x[1] * 13, 5) / 100;
    return 10 + 60 / x[1] + 12 * x[1] / x[0] + fabs(log2(x[0] / p)) * weight +
           fabs(log2(x[1] / w)) * weight + scatter;
}
static double present(const double *x)
{
    return around(x, 11, 4, 8);
}
static double similar(const double *x)
{
    return 7 * around(x, 10, 4, 6);
}
static double akin(const double *x)
{
    return 0.3 * around(x, 12, 5, 9);
}
static double reversed(const double *x)
{
    return 1e4 / present(x);
}
static double shuffled(const double *x)
{
    return 10 + fmod(x[0] * 7919 + x[1] * 104729 + x[0] * x[1] * 31337, 97);
}
static double mixed(const double *x)
{
    return 1 + pow(log10(x[0]) + 2.5, 2) + 4 * pow(x[1] - 0.6, 2) + (x[2] == 1 ? 0 : 1.5);
}
typedef double objective(const double *);

/* ---- studies ---- */

struct study {
    const struct dt_space *space;
    const struct dt_past *past;
    struct dt_optimizer *optimizer;
    struct dt_observation *obs;
    double *x;
    size_t n;
    uint64_t seed;
    bool maximize;
};

static struct study begin(const struct dt_space *space, const struct dt_past *past, uint64_t seed,
                          size_t room)
{
    return (struct study){.space = space,
                          .past = past,
                          .optimizer = dt_optimizer_new("bayes", space, seed, NULL),
                          .obs = dt_xcalloc(room, sizeof(struct dt_observation)),
                          .x = dt_xcalloc((room + 1) * space->n, sizeof(double)),
                          .seed = seed};
}

static struct dt_context context(const struct study *s)
{
    return (struct dt_context){.space = s->space,
                               .obs = s->obs,
                               .nobs = s->n,
                               .past = s->past,
                               .maximize = s->maximize,
                               .seed = s->seed};
}

/* Pending then. */
static const double *ask(struct study *s)
{
    struct dt_context ctx = context(s);
    struct dt_error e = DT_ERROR_INIT;
    double *x = s->x + s->n * s->space->n;
    if (dt_optimizer_suggest(s->optimizer, &ctx, x, &e) != 1)
        fail_msg("%s", e.text ? e.text : "nothing is left");
    assert_true(dt_space_allows(s->space, x, NULL));
    assert_false(dt_context_tried(&ctx, x));
    s->obs[s->n++] = (struct dt_observation){.x = x, .status = DT_STATUS_PENDING, .value = NAN};
    return x;
}

static void tell(struct study *s, size_t i, double value)
{
    s->obs[i].status = isnan(value) ? DT_STATUS_FAILED : DT_STATUS_OK;
    s->obs[i].value = value;
}

static void end(struct study *s)
{
    dt_optimizer_free(s->optimizer);
    free(s->obs);
    free(s->x);
}

/* The study as the history records it: a later one is added behind. */
static void remember(struct dt_past *p, const struct study *s)
{
    struct json_object *record = json_object_new_object(), *list = json_object_new_array();
    for (size_t i = 0; i < s->n; i++) {
        struct json_object *o = json_object_new_object();
        json_object_object_add(o, "config", dt_config_to_json(s->space, s->obs[i].x));
        json_object_object_add(o, "status",
                               json_object_new_string(dt_status_names[s->obs[i].status]));
        if (isfinite(s->obs[i].value))
            json_object_object_add(o, "value", dt_json_number(s->obs[i].value));
        json_object_array_add(list, o);
    }
    json_object_object_add(record, "study", json_object_new_string("earlier"));
    json_object_object_add(record, "observations", list);
    dt_past_add(p, s->space, record, true, false);
    json_object_put(record);
}

/* What studies of these objectives would have tried, each from the start. */
static struct dt_past *past_of(const struct dt_space *space, objective *const *f, size_t n,
                               uint64_t seed)
{
    struct dt_past *p = dt_xcalloc(1, sizeof(*p));
    for (size_t k = 0; k < n; k++) {
        struct study s = begin(space, NULL, 1000 * (k + 1) + seed, PAST_TRIALS);
        for (size_t i = 0; i < PAST_TRIALS; i++)
            tell(&s, i, f[k](ask(&s)));
        remember(p, &s);
        end(&s);
    }
    return p;
}

static double least(const struct dt_space *s, objective *f)
{
    double best = INFINITY;
    for (size_t i = 0; i < s->npoints; i++)
        best = fmin(best, f(s->points + i * s->n));
    return best;
}

/* Trials to within 5 % of the best, mean over the seeds. */
static double trials_to_5pct(const struct dt_space *space, objective *f, objective *const *past,
                             size_t npast)
{
    double target = 1.05 * least(space, f), sum = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct dt_past *p = past_of(space, past, npast, seed);
        struct study s = begin(space, npast ? p : NULL, seed, 60);
        double value = INFINITY;
        while (s.n < 60 && value > target) {
            value = fmin(value, f(ask(&s)));
            tell(&s, s.n - 1, f(s.obs[s.n - 1].x));
        }
        sum += (double)s.n / SEEDS;
        end(&s);
        dt_past_free(p);
    }
    return sum;
}

/* ---- tests ---- */

static void a_past_that_is_right_halves_the_trials(void **state)
{
    static objective *const one[] = {similar}, *const two[] = {similar, akin};
    struct dt_space *space = roles();
    double cold = trials_to_5pct(space, present, NULL, 0),
           warm = trials_to_5pct(space, present, one, 1),
           both = trials_to_5pct(space, present, two, 2);
    (void)state;
    print_message("# trials to 5 %%: %.1f, after one study %.1f, after two %.1f\n", cold, warm,
                  both);
    assert_true(warm <= 0.6 * cold);
    assert_true(both <= 0.5 * cold);
    dt_space_free(space);
}

static void a_past_that_is_wrong_costs_little(void **state)
{
    static objective *const wrong[][2] = {
        {reversed, shuffled}, {shuffled, shuffled}, {similar, reversed}};
    static const size_t n[] = {1, 1, 2};
    struct dt_space *space = roles();
    double cold = trials_to_5pct(space, present, NULL, 0);
    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        double warm = trials_to_5pct(space, present, wrong[i], n[i]);
        print_message("# trials to 5 %%: %.1f, with a past that is %s %.1f\n", cold,
                      i == 0   ? "reversed"
                      : i == 1 ? "shuffled"
                               : "partly reversed",
                      warm);
        assert_true(warm <= cold + 2);
    }
    dt_space_free(space);
}

static void the_best_of_the_last_study_comes_first(void **state)
{
    static objective *const one[] = {similar};
    const struct dt_param params[] = {lr, momentum, opt};
    struct dt_space *spaces[] = {roles(), space_of(params, 3, NULL)};
    objective *const f[] = {similar, mixed};
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        struct dt_past *p = past_of(spaces[k], k ? f + 1 : one, 1, 3);
        struct dt_context then = {.space = spaces[k], .obs = p->obs, .nobs = p->nobs};
        const double *best = p->obs[dt_context_best(&then)].x;
        struct study s = begin(spaces[k], p, 1, 4);
        assert_true(dt_config_equal(ask(&s), best, spaces[k]->n));
        tell(&s, 0, 5);
        assert_false(dt_config_equal(ask(&s), best, spaces[k]->n));
        end(&s);
        /* and second, where the job as submitted is first */
        s = begin(spaces[k], p, 1, 4);
        double *x = s.x;
        memcpy(x, p->obs[0].x == best ? p->obs[1].x : p->obs[0].x, spaces[k]->n * sizeof(*x));
        s.obs[s.n++] = (struct dt_observation){.x = x, .status = DT_STATUS_OK, .value = 50};
        assert_true(dt_config_equal(ask(&s), best, spaces[k]->n));
        end(&s);
        dt_past_free(p);
        dt_space_free(spaces[k]);
    }
}

static double nearest(const struct study *s, const struct dt_encoding *e, const double *x)
{
    double at[2], to[2], least = INFINITY;
    dt_encode(e, x, at);
    for (size_t i = 0; i < s->n; i++) {
        dt_encode(e, s->obs[i].x, to);
        least = fmin(least, dt_distance2(&e->kernel, at, to));
    }
    return least;
}

/* After the best of the past and what it and the first trial promise; whatever the seed. */
static void the_third_is_the_farthest_of_all(void **state)
{
    static objective *const two[] = {similar, akin};
    struct dt_space *space = roles();
    struct dt_encoding *e = dt_encoding_new(space);
    struct dt_past *p = past_of(space, two, 2, 3);
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct study s = begin(space, p, seed, 3);
        double farthest = 0;
        for (size_t i = 0; i < 2; i++)
            tell(&s, i, present(ask(&s)));
        for (size_t i = 0; i < space->npoints; i++)
            farthest = fmax(farthest, nearest(&s, e, space->points + i * space->n));
        const double *third = ask(&s);
        s.n--;
        assert_true(nearest(&s, e, third) == farthest);
        end(&s);
    }
    dt_past_free(p);
    dt_encoding_free(e);
    dt_space_free(space);
}

static void what_is_not_allowed_any_more_is_left_out(void **state)
{
    static objective *const one[] = {similar};
    const struct dt_param params[] = {ps, workers};
    struct dt_space *before = roles(), *now = space_of(params, 2, "ps <= 8");
    struct dt_past *p = past_of(before, one, 1, 1);
    struct study s = begin(now, p, 1, 10);
    (void)state;
    for (size_t i = 0; i < 10; i++) /* ask() looks whether it is allowed */
        tell(&s, i, present(ask(&s)));
    end(&s);
    dt_past_free(p);
    dt_space_free(before);
    dt_space_free(now);
}

/* A context that is built anew, from what the study keeps, continues the very same track. */
static void the_context_alone_decides(void **state)
{
    static objective *const two[] = {similar, akin};
    const struct dt_param params[] = {lr, momentum, opt};
    struct dt_space *spaces[] = {roles(), space_of(params, 3, NULL)};
    static objective *const others[] = {mixed};
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        struct dt_past *p = past_of(spaces[k], k ? others : two, k ? 1 : 2, 5);
        struct json_object *kept = dt_past_to_json(p, spaces[k]);
        struct dt_past *again = dt_past_from_json(kept, spaces[k]);
        assert_int_equal(again->nobs, p->nobs);
        struct study a = begin(spaces[k], p, 9, 8);
        for (size_t i = 0; i < 8; i++) {
            const double *x = ask(&a);
            tell(&a, i, i == 4 ? NAN : k ? mixed(x) : present(x));
        }
        for (size_t i = 0; i < 8; i++) {
            struct study b = begin(spaces[k], again, 9, 9);
            memcpy(b.obs, a.obs, i * sizeof(*b.obs));
            b.n = i;
            assert_memory_equal(ask(&b), a.obs[i].x, spaces[k]->n * sizeof(double));
            end(&b);
        }
        end(&a);
        dt_past_free(p);
        dt_past_free(again);
        json_object_put(kept);
        dt_space_free(spaces[k]);
    }
}

/* A speed that is to be maximized as well as the time. */
static void direction_does_not_matter(void **state)
{
    static objective *const one[] = {similar};
    struct dt_space *space = roles();
    struct dt_past *p = past_of(space, one, 1, 2), *q = past_of(space, one, 1, 2);
    struct study time = begin(space, p, 2, 8), speed = begin(space, q, 2, 8);
    (void)state;
    speed.maximize = true;
    for (size_t i = 0; i < q->nobs; i++)
        q->obs[i].value = 1 / q->obs[i].value;
    for (size_t i = 0; i < 8; i++) {
        const double *a = ask(&time), *b = ask(&speed);
        assert_true(dt_config_equal(a, b, 2));
        tell(&time, i, present(a));
        tell(&speed, i, 1 / present(b));
    }
    end(&time);
    end(&speed);
    dt_past_free(p);
    dt_past_free(q);
    dt_space_free(space);
}

/* With less than 4 GiB it ran out of memory; now it does not, and is cheaper for that. */
static double out_of_memory(const double *x)
{
    return x[1] < 4096 ? NAN : 10 + fabs(x[0] - 6);
}
static double roomy(const double *x)
{
    return (x[1] < 4096 ? 4 : 10) + fabs(x[0] - 6);
}

static void failures_of_the_past_are_a_hint_and_no_verdict(void **state)
{
    static objective *const one[] = {out_of_memory};
    const struct dt_param params[] = {workers, mem};
    struct dt_space *space = space_of(params, 2, NULL);
    struct dt_past *p = past_of(space, one, 1, 1);
    struct study s = begin(space, p, 1, 30);
    size_t first = 0;
    (void)state;
    for (size_t i = 0; i < 30; i++) {
        const double *x = ask(&s);
        if (x[1] < 4096 && !first)
            first = s.n;
        tell(&s, i, roomy(x));
    }
    print_message("# what had failed is tried as number %zu\n", first);
    assert_true(first > 2);
    end(&s);
    dt_past_free(p);
    dt_space_free(space);
}

static void odd_pasts_do_no_harm(void **state)
{
    static const double one_point[] = {3, 4}, other[] = {5, 6};
    struct dt_space *space = roles();
    enum dt_status status[][2] = {{DT_STATUS_OK, DT_STATUS_OK},
                                  {DT_STATUS_FAILED, DT_STATUS_FAILED},
                                  {DT_STATUS_CENSORED, DT_STATUS_POOR},
                                  {DT_STATUS_OK, DT_STATUS_FAILED}};
    static const double values[][2] = {{1, 1}, {0, 0}, {-5, 7}, {1e300, 1e-300}};
    (void)state;
    for (size_t i = 0; i < COUNT(status) * COUNT(values); i++) {
        struct dt_observation obs[] = {{.x = one_point}, {.x = other}};
        struct dt_past_study study = {.n = 1 + i % 2};
        struct dt_past p = {.obs = obs, .nobs = study.n, .studies = &study, .nstudies = 1};
        for (size_t k = 0; k < 2; k++) {
            obs[k].status = status[i % COUNT(status)][k];
            obs[k].value = values[i / COUNT(status)][k];
        }
        struct study s = begin(space, &p, 1, 6);
        for (size_t k = 0; k < 6; k++) {
            double value = present(ask(&s));
            tell(&s, k, k % 3 == 1 ? NAN : value - (k == 3 ? 100 : 0));
        }
        end(&s);
    }
    dt_space_free(space);
}

static void an_empty_past_changes_nothing(void **state)
{
    struct dt_space *space = roles();
    struct dt_past empty = {0};
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct study a = begin(space, NULL, seed, 6), b = begin(space, &empty, seed, 6);
        for (size_t i = 0; i < 6; i++) {
            const double *x = ask(&a);
            assert_memory_equal(ask(&b), x, space->n * sizeof(double));
            tell(&a, i, present(x));
            tell(&b, i, present(x));
        }
        end(&a);
        end(&b);
    }
    dt_space_free(space);
}

static void many_studies_are_no_trouble(void **state)
{
    static objective *const twenty[] = {similar, akin, shuffled, similar, akin, shuffled,
                                        similar, akin, shuffled, similar, akin, shuffled};
    struct dt_space *space = roles();
    struct dt_past *p = past_of(space, twenty, COUNT(twenty), 1);
    struct study s = begin(space, p, 1, 5);
    (void)state;
    for (size_t i = 0; i < 5; i++) /* all at once */
        ask(&s);
    for (size_t i = 0; i < 5; i++)
        tell(&s, i, present(s.obs[i].x));
    end(&s);
    dt_past_free(p);
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_past_that_is_right_halves_the_trials),
        cmocka_unit_test(a_past_that_is_wrong_costs_little),
        cmocka_unit_test(the_best_of_the_last_study_comes_first),
        cmocka_unit_test(the_third_is_the_farthest_of_all),
        cmocka_unit_test(what_is_not_allowed_any_more_is_left_out),
        cmocka_unit_test(the_context_alone_decides),
        cmocka_unit_test(direction_does_not_matter),
        cmocka_unit_test(failures_of_the_past_are_a_hint_and_no_verdict),
        cmocka_unit_test(odd_pasts_do_no_harm),
        cmocka_unit_test(an_empty_past_changes_nothing),
        cmocka_unit_test(many_studies_are_no_trouble),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
