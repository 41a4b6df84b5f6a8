/* The fidelity: trials on a part of the work are cheap, tell about the whole, and are never
 * recommended. */
#include "optimizer/observed.h"
#include "report/report.h"
#include "tuner/tuner.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* ---- helpers ---- */

static struct dt_spec *parse(const char *text, struct dt_error *e)
{
    struct json_object *json = dt_json_parse(text, "S.json", e);
    struct dt_spec *spec = json ? dt_spec_parse(json, text, "S.json", e) : NULL;
    json_object_put(json);
    return spec;
}

struct fixture {
    struct dt_spec *spec;
    struct dt_space *space;
    struct dt_study *s;
    double now;
};

#define SAMPLES "\"samples\": {\"choices\": [10000, 100, 1000], \"fidelity\": true}"

/* A study over {"a": 0-20, "b": 0-20} on 100, 1000 and 10000 samples; as submitted a=20 b=20, or
 * not. */
static struct fixture study(const char *sections, bool submitted)
{
    struct fixture f = {.now = 1000};
    struct dt_error e = DT_ERROR_INIT;
    char *text = dt_xasprintf("{\"hyperparameters\": {\"a\": {\"low\": 0, \"high\": 20}, \"b\": "
                              "{\"low\": 0, \"high\": 20}, " SAMPLES "}%s%s}",
                              *sections ? ", " : "", sections);
    f.spec = parse(text, &e);
    if (!f.spec)
        fail_msg("%s", e.text);
    f.space = dt_space_new(f.spec->params, f.spec->nparams, &f.spec->constraints, NULL, 0, NULL,
                           NULL, NULL, 0, &e);
    f.s = dt_study_new(f.spec, f.space, submitted ? (double[]){20, 20, 10000} : NULL, &e);
    assert_non_null(f.s);
    free(text);
    return f;
}

static void done(struct fixture *f)
{
    dt_study_free(f->s);
    dt_space_free(f->space);
    dt_spec_free(f->spec);
}

static void apply(struct fixture *f, struct dt_event ev)
{
    struct dt_error e = DT_ERROR_INIT;
    ev.t = f->now;
    ev.run = 1;
    if (dt_study_apply(f->s, &ev, &e) < 0)
        fail_msg("%s", e.text);
    dt_event_free(&ev);
}

/* What is decided next; where it is a new trial that is created, as `x` if that is not NULL. */
static enum dt_action_kind next(struct fixture *f, const double *x)
{
    struct dt_action a;
    struct dt_error e = DT_ERROR_INIT;
    if (dt_study_decide(f->s, f->now, &a, &e) < 0)
        fail_msg("%s", e.text);
    enum dt_action_kind kind = a.kind;
    struct dt_event ev = DT_EVENT(DT_EVENT_CREATED);
    if (kind == DT_ACTION_CREATE) {
        ev.trial = (int)f->s->n + 1;
        ev.again = a.again;
        ev.config = dt_config_to_json(f->space, x ? x : a.x);
        apply(f, ev);
    }
    dt_action_free(&a);
    return kind;
}

static const struct dt_trial *last(const struct fixture *f)
{
    return &f->s->trials[f->s->n - 1];
}

/* The last trial runs on two nodes and ends well; NaN: no such metric. */
static void run(struct fixture *f, double seconds, double accuracy)
{
    struct dt_event ev = DT_EVENT(DT_EVENT_STARTED);
    ev.trial = last(f)->id;
    ev.nodes = 2;
    apply(f, ev);
    f->now += seconds;
    if (!isnan(accuracy)) {
        struct dt_event metric = DT_EVENT(DT_EVENT_METRIC);
        metric.trial = last(f)->id;
        metric.text = dt_xstrdup("accuracy");
        metric.value = accuracy;
        apply(f, metric);
    }
    ev.kind = DT_EVENT_ENDED;
    ev.cause = DT_CAUSE_OK;
    ev.run_s = seconds;
    ev.billing = 1;
    apply(f, ev);
}

/* One more trial, of this configuration. */
static void tried(struct fixture *f, double a, double b, double samples, double seconds,
                  double accuracy)
{
    assert_int_equal(next(f, (double[]){a, b, samples}), DT_ACTION_CREATE);
    run(f, seconds, accuracy);
}

/* ---- SPEC and space ---- */

static void a_spec_names_what_is_wrong(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"{\"hyperparameters\": {" SAMPLES
         ",\n \"epochs\": {\"low\": 1, \"high\": 9, \"fidelity\": "
         "true}}}",
         "S.json:2: hyperparameters.epochs: samples is the fidelity already, and there can be one"},
        {"{\"hyperparameters\": {\"size\": {\"choices\": [\"s\", \"l\"], \"fidelity\": true}}}",
         "S.json:1: hyperparameters.size.fidelity: a fidelity is an amount of work and needs "
         "numbers, these choices are words"},
        {"{\"dt\": {\"workers\": {\"low\": 1, \"high\": 8, \"fidelity\": true}}}",
         "S.json:1: dt.workers.fidelity: only a hyperparameter can be the fidelity, not a part of "
         "the DT configuration; take it out"},
        {"{\"hyperparameters\": {\"n\": {\"choices\": [8], \"fidelity\": true}}}",
         "S.json:1: hyperparameters.n.fidelity: a fidelity needs a second value, lower and "
         "cheaper"},
        {"{\"hyperparameters\": {\"n\": {\"low\": 0, \"high\": 9, \"fidelity\": true}}}",
         "S.json:1: hyperparameters.n.fidelity: a fidelity is an amount of work and needs numbers "
         "above 0"},
        {"{\"hyperparameters\": {\"n\": {\"low\": 1, \"high\": 9, \"fidelity\": \"yes\"}}}",
         "S.json:1: hyperparameters.n.fidelity: true or false is needed here, this is a string"},
        {"{\"hyperparameters\": {\"n\": {\"low\": 1, \"high\": 9, \"fidelty\": true}}}",
         "S.json:1: hyperparameters.n.fidelty: unknown key; did you mean \"fidelity\"?"},
        {"{\"hyperparameters\": {\"n\": {\"low\": 1, \"high\": 9, \"fidelity\": true, \"default\": "
         "3}}}",
         "S.json:1: hyperparameters.n.default: the job as submitted is run at the highest "
         "fidelity, "
         "as the result is wanted for it; leave the default out"},
        {"{\"hyperparameters\": {\"a\": [1, 2], \"n\": {\"low\": 1, \"high\": 9, \"fidelity\": "
         "true, "
         "\"when\": \"a == 1\"}}}",
         "S.json:1: hyperparameters.n.fidelity: a fidelity is always needed and takes no \"when\""},
        {"{\"hyperparameters\": {" SAMPLES "}, \"search\": {\"algorithm\": \"sobol\"}}",
         "S.json:1: search.algorithm: only a model learns from cheaper trials, and sobol has none; "
         "choose auto, or give samples its highest value alone"},
        {"{\"hyperparameters\": {" SAMPLES "}, \"target\": {\"metric\": \"loss\", \"at_most\": 1}}",
         "S.json:1: target: a trial at less than the highest samples cannot be expected to reach "
         "it; ask for it as a \"quality\""},
        {"{\"hyperparameters\": {\"lr\": [1, 2], " SAMPLES "}, \"objective\": {\"metric\": \"loss\", \"goal\": \"minimize\"}, "
         "\"search\": {\"parallel\": 4, \"early_stop\": {\"rule\": \"pbt\", \"interval\": 1}}}",
         "S.json:1: search.early_stop: a member of a population goes on with what another has "
         "learnt, at the same samples; give that one value"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_error e = DT_ERROR_INIT;
        struct dt_spec *spec = parse(cases[i].text, &e);
        assert_null(spec);
        assert_string_equal(e.text, cases[i].error);
        dt_error_clear(&e);
    }
}

static void the_job_as_submitted_is_run_at_the_highest(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_spec *s = parse("{\"hyperparameters\": {\"a\": [1, 2], " SAMPLES "}}", &e);
    (void)state;
    assert_true(isnan(s->submitted[0]) && s->submitted[1] == 10000);
    dt_spec_free(s);
    s = parse("{\"hyperparameters\": {\"n\": {\"low\": 1, \"high\": 8, \"default\": 8, "
              "\"fidelity\": true}}}",
              &e);
    assert_true(s && s->params[0].fidelity && s->submitted[0] == 8);
    dt_spec_free(s);
}

static void lower_values_are_all_that_are_listed_or_halves(void **state)
{
    double listed[] = {100, 10, 1000}, *v;
    struct dt_param p = {.kind = DT_PARAM_INT, .nvalues = 3, .values = listed, .fidelity = true};
    (void)state;
    assert_true(dt_param_highest(&p) == 1000);
    assert_int_equal(dt_param_lower(&p, &v), 2);
    assert_true(v[0] == 10 && v[1] == 100);
    free(v);
    p = (struct dt_param){.kind = DT_PARAM_INT, .low = 3, .high = 27, .step = 1, .fidelity = true};
    assert_int_equal(dt_param_lower(&p, &v), 3);
    assert_true(v[0] == 3 && v[1] == 7 && v[2] == 14);
    free(v);
    p = (struct dt_param){.kind = DT_PARAM_FLOAT, .low = 0.25, .high = 1, .fidelity = true};
    assert_int_equal(dt_param_lower(&p, &v), 2);
    assert_true(v[0] == 0.25 && v[1] == 0.5);
    free(v);
}

static void the_space_says_which_value_counts(void **state)
{
    struct fixture f = study("", false);
    (void)state;
    char *text = dt_space_describe(f.space);
    assert_non_null(strstr(text, "10000, 100, 1000 (fidelity: the result is for 10000)\n"));
    assert_non_null(strstr(text, "  441 configurations, at all fidelities 1323\n"));
    assert_int_equal(dt_space_fidelity(f.space), 2);
    assert_true(dt_space_is_full(f.space, (double[]){1, 1, 10000}));
    assert_true(dt_space_is_full(f.space, (double[]){1, 1, NAN}));
    assert_false(dt_space_is_full(f.space, (double[]){1, 1, 1000}));
    assert_true(dt_space_has(f.space, (double[]){1, 1, 1000}));
    assert_false(dt_space_has(f.space, (double[]){1, 1, 500}));
    free(text);
    done(&f);
}

/* ---- what the model sees ---- */

/* Seconds grow in proportion: at all fidelities the same is then seen of the same configuration. */
static void a_time_is_brought_to_the_whole_work(void **state)
{
    struct fixture f = study("", false);
    const double x[][3] = {{1, 1, 100}, {1, 1, 1000}, {1, 1, 10000}, {9, 9, 100}};
    struct dt_observation obs[] = {{x[0], DT_STATUS_OK, .value = 2, .cost = 4},
                                   {x[1], DT_STATUS_OK, .value = 20, .cost = 40},
                                   {x[2], DT_STATUS_OK, .value = 200, .cost = 400},
                                   {x[3], DT_STATUS_OK, .value = 1, .cost = 2}};
    struct dt_context ctx = {.space = f.space, .obs = obs, .nobs = 4, .grows = true};
    struct dt_encoding *e = dt_encoding_new(f.space);
    (void)state;
    struct dt_observed *o = dt_observed_new(&ctx, e), *costs = dt_observed_costs(&ctx, e);
    assert_true(fabs(o->slope - 1) < 0.1 && fabs(costs->slope - 1) < 0.1);
    assert_true(fabs(o->y[0] - o->y[2]) < 0.5 && o->y[2] == o->best);
    assert_int_equal(o->nok, 4);
    double full[4];
    dt_context_full_costs(&ctx, full);
    assert_true(full[2] > 350 && full[2] < 450 && full[0] == full[2]);
    assert_true(full[3] > 100 && full[3] < 350);
    dt_observed_free(o);
    dt_observed_free(costs);

    ctx.grows = false; /* of a metric nothing is expected, but it is learnt */
    o = dt_observed_new(&ctx, e);
    assert_true(o->slope > 0.6 && o->slope < 1);
    dt_observed_free(o);
    dt_encoding_free(e);
    done(&f);
}

static void only_the_whole_work_is_recommended(void **state)
{
    struct fixture f = study("", false);
    const double x[][3] = {{1, 1, 100}, {1, 1, 10000}, {2, 2, 10000}, {3, 3, 1000}};
    struct dt_observation obs[] = {{x[0], DT_STATUS_OK, .value = 1},
                                   {x[1], DT_STATUS_OK, .value = 50},
                                   {x[2], DT_STATUS_OK, .value = 49},
                                   {x[3], DT_STATUS_OK, .value = 2}};
    struct dt_context ctx = {.space = f.space, .obs = obs, .nobs = 4};
    double mean;
    (void)state;
    assert_int_equal(dt_context_best(&ctx), 2);
    assert_int_equal(dt_context_mean(&ctx, 0, &mean), 0);
    assert_true(isnan(mean));
    int again = dt_context_repeat(&ctx);
    assert_true(again == 1 || again == 2);
    ctx.nobs = 1;
    assert_int_equal(dt_context_best(&ctx), -1);
    assert_int_equal(dt_context_repeat(&ctx), -1);
    done(&f);
}

/* ---- the search ---- */

/* Of the whole work; a few per cent of scatter. */
static double seconds(double a, double b)
{
    return 100 + 6 * fabs(a - 6) + 6 * fabs(b - 14) + fmod(a * 7 + b * 13, 5);
}

static double share(double samples)
{
    return 0.002 + 0.998 * samples / 10000;
}

/* Seconds until the whole work of a configuration within 5 % of the best was done. */
static double seconds_to(uint64_t seed, const char *search, bool whole, size_t *cheap)
{
    char *section =
        dt_xasprintf("\"search\": {\"seed\": %d, \"repeats\": 0, %s}", (int)seed, search);
    struct fixture f = study(section, true);
    if (whole) /* then there is no lower one */
        f.space->params[2].values[1] = f.space->params[2].values[2] = 10000;
    *cheap = 0;
    while (next(&f, NULL) == DT_ACTION_CREATE) {
        const double *x = last(&f)->x;
        run(&f, seconds(x[0], x[1]) * share(x[2]), NAN);
        *cheap += x[2] < 10000;
        if (x[2] == 10000 && seconds(x[0], x[1]) <= 105)
            break;
    }
    assert_true(last(&f)->x[2] == 10000 && last(&f)->value <= 105);
    double spent = f.now - 1000;
    done(&f);
    free(section);
    return spent;
}

static void cheap_trials_spare_costly_ones(void **state)
{
    double with = 0, without = 0;
    size_t cheap, all = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        with += seconds_to(seed, "\"min_configs\": 60", false, &cheap) / 5;
        all += cheap;
        without += seconds_to(seed, "\"min_configs\": 60", true, &cheap) / 5;
    }
    print_message(
        "# seconds to within 5 %%: %.0f with a fidelity (%.1f cheap trials), %.0f without\n", with,
        (double)all / 5, without);
    assert_true(with <= 0.6 * without);
    assert_true(all >= 5 * 3);
}

/* No configuration is tried twice, nor again at a fidelity below one that it was tried at. */
static void a_lower_fidelity_comes_first_or_not_at_all(void **state)
{
    struct fixture f = study("\"search\": {\"min_configs\": 60, \"repeats\": 0}", false);
    size_t cheap = 0, steps = 0;
    (void)state;
    while (next(&f, NULL) == DT_ACTION_CREATE) {
        const double *x = last(&f)->x;
        run(&f, seconds(x[0], x[1]) * share(x[2]), NAN);
        for (size_t i = 0; i + 1 < f.s->n; i++) {
            const double *y = f.s->trials[i].x;
            if (y[0] != x[0] || y[1] != x[1])
                continue;
            assert_true(y[2] < x[2]);
            steps++;
        }
        cheap += x[2] < 10000;
    }
    assert_true(f.s->trials[0].x[2] == 100); /* what a model begins with is as cheap as can be */
    assert_true(cheap >= 5 && steps >= 2);
    for (size_t i = 48; i < 60; i++) /* the last fifth is fit to be recommended */
        assert_true(f.s->trials[i].x[2] == 10000);
    done(&f);
}

/* Of trials at once none is a configuration that another is trying at a lower fidelity. */
static void what_is_under_way_is_waited_for(void **state)
{
    struct fixture f = study("\"search\": {\"repeats\": 0}", false);
    struct dt_observation *obs;
    double x[3];
    size_t cheap = 0;
    (void)state;
    while (f.s->n < 30) { /* at each of which a second trial is asked for while one is under way */
        const double *now;
        assert_int_equal(next(&f, NULL), DT_ACTION_CREATE);
        now = last(&f)->x;
        struct dt_context ctx = dt_study_context(f.s, &obs);
        assert_int_equal(dt_optimizer_suggest(f.s->optimizer, &ctx, x, NULL), 1);
        assert_false(dt_space_same_work(f.space, x, now));
        cheap += !dt_space_is_full(f.space, now);
        free(obs);
        run(&f, seconds(now[0], now[1]) * share(now[2]), NAN);
    }
    assert_true(cheap >= 5);
    done(&f);
}

/* Where a part of the work takes as long as the whole nothing is spared. */
static void a_fidelity_that_is_not_cheaper_is_left_alone(void **state)
{
    struct fixture f =
        study("\"search\": {\"min_configs\": 30, \"max_configs\": 30, \"repeats\": 0}", true);
    size_t cheap = 0;
    (void)state;
    while (next(&f, NULL) == DT_ACTION_CREATE) {
        const double *x = last(&f)->x;
        run(&f, seconds(x[0], x[1]), NAN);
        cheap += f.s->n > 8 && x[2] < 10000;
    }
    print_message("# trials at lower fidelities that cost as much: %zu after the first 8\n", cheap);
    assert_true(cheap <= 2);
    done(&f);
}

/* ---- a study ---- */

/* A cheap trial is one of the trials that have to be made, but nothing that could be an
 * improvement. */
static void only_the_whole_work_can_improve(void **state)
{
    struct fixture f =
        study("\"search\": {\"min_configs\": 5, \"window\": 2, \"min_improve\": 100, "
              "\"repeats\": 0}",
              true);
    (void)state;
    tried(&f, 20, 20, 10000, 100, NAN);
    for (int i = 0; i < 4; i++)
        tried(&f, i, i, 1000, 10, NAN);
    tried(&f, 6, 6, 10000, 99, NAN);
    assert_int_equal(next(&f, (double[]){7, 7, 10000}), DT_ACTION_CREATE);
    run(&f, 98, NAN);
    assert_int_equal(next(&f, NULL), DT_ACTION_STOP);
    assert_int_equal(dt_study_best(f.s)->id, 7);
    done(&f);
}

static void a_part_of_the_work_needs_no_quality(void **state)
{
    struct fixture f = study("\"quality\": {\"metric\": \"accuracy\", \"at_least\": 0.9}", true);
    (void)state;
    tried(&f, 20, 20, 10000, 100, 0.95);
    tried(&f, 1, 1, 1000, 10, 0.5);
    assert_int_equal(last(&f)->status, DT_STATUS_OK);
    assert_true(fabs(dt_trial_margin(f.s, last(&f)) + 0.4) < 1e-9); /* the model learns it */
    tried(&f, 1, 1, 10000, 90, 0.5);
    assert_int_equal(last(&f)->status, DT_STATUS_POOR);
    tried(&f, 2, 2, 1000, 9, NAN);
    assert_int_equal(last(&f)->cause, DT_CAUSE_NO_METRIC);
    assert_int_equal(dt_study_best(f.s)->id, 1);
    done(&f);
}

/* Of what a trial reports on a part of the work nothing follows for others. */
static void early_stopping_looks_at_the_whole_work_alone(void **state)
{
    struct fixture f =
        study("\"objective\": {\"metric\": \"accuracy\", \"goal\": \"maximize\"}, \"search\": "
              "{\"early_stop\": {\"rule\": \"median\", \"startup\": 1, \"max_step\": 9, "
              "\"min_step\": 1}}",
              false);
    const double samples[] = {10000, 1000, 10000}, accuracy[] = {0.5, 0.1, 0.2};
    const int stopped[] = {0, 0, 3};
    (void)state;
    for (int i = 0; i < 3; i++) {
        char *why = NULL;
        assert_int_equal(next(&f, (double[]){i, i, samples[i]}), DT_ACTION_CREATE);
        struct dt_event ev = DT_EVENT(DT_EVENT_STARTED), metric = DT_EVENT(DT_EVENT_METRIC);
        ev.trial = metric.trial = i + 1;
        apply(&f, ev);
        for (metric.step = 1; metric.step <= 2; metric.step++) {
            metric.text = dt_xstrdup("accuracy");
            metric.value = accuracy[i];
            apply(&f, metric);
        }
        assert_int_equal(dt_study_hopeless(f.s, &why), stopped[i]);
        free(why);
        ev.kind = DT_EVENT_ENDED;
        ev.run_s = 10;
        apply(&f, ev);
    }
    done(&f);
}

/* The best of an earlier study is tried at once, and in full: the best of those that were run so.
 */
static void the_past_is_tried_in_full(void **state)
{
    struct fixture f = study("", false);
    struct dt_observation obs[20];
    double x[20][3];
    struct dt_past_study then = {.name = (char *)"1", .same = true, .n = 20};
    struct dt_past past = {obs, 20, x[0], &then, 1};
    struct dt_context ctx = {.space = f.space, .grows = true, .seed = 1, .past = &past};
    double y[3];
    (void)state;
    for (int i = 0; i < 20; i++) {
        memcpy(x[i], (double[]){i, 20 - i, i % 3 ? 1000 : 10000}, sizeof(x[i]));
        obs[i] = (struct dt_observation){
            .x = x[i], .status = DT_STATUS_OK, .value = seconds(x[i][0], x[i][1]) * share(x[i][2])};
    }
    struct dt_optimizer *o = dt_optimizer_new("bayes", f.space, 1, NULL);
    assert_int_equal(dt_optimizer_suggest(o, &ctx, y, NULL), 1);
    assert_true(y[0] == 6 && y[1] == 14 && y[2] == 10000); /* the best of the full ones */
    dt_optimizer_free(o);
    done(&f);
}

static void the_report_says_what_was_spared(void **state)
{
    struct fixture f = study("\"search\": {\"repeats\": 0}", true);
    char *text = NULL;
    size_t size;
    (void)state;
    tried(&f, 20, 20, 10000, 200, NAN);
    tried(&f, 1, 1, 100, 2, NAN);
    tried(&f, 1, 1, 1000, 20, NAN);
    tried(&f, 2, 2, 1000, 20, NAN);
    tried(&f, 2, 2, 10000, 180, NAN);
    struct dt_thrift t = dt_report_thrift(f.s);
    assert_true(t.trials == 3 && t.run_s == 42 && t.node_s == 84);
    assert_true(t.spared == 1 && t.spared_run_s > 150 && t.spared_run_s < 260);
    assert_true(fabs(t.spared_node_s - 2 * t.spared_run_s) < 1);
    FILE *out = open_memstream(&text, &size);
    dt_report_trials(out, f.s);
    dt_report_final(out, f.s, NULL);
    fclose(out);
    assert_non_null(strstr(text, "a=1 b=1 samples=100 (cheap)\n"));
    assert_null(strstr(text, "samples=10000 (cheap)"));
    assert_non_null(strstr(text, "  1. trial 5     180.00 s  a=2 b=2 samples=10000\n"
                                 "  2. trial 1     200.00 s  a=20 b=20 samples=10000\n\n"));
    assert_non_null(strstr(text,
                           "cheap trials: 3 of these, below samples=10000, took 42.0 s (0.0233 "
                           "node-hours); 1 configuration was tried only so, and would take "
                           "about "));
    assert_non_null(strstr(text, "gain: 200.00 s as submitted, 180.00 s now"));
    struct json_object *json = dt_report_json(f.s, "1"),
                       *cheap = dt_json_get(dt_json_get(json, "cost"), "cheap");
    assert_int_equal(dt_json_int(cheap, "trials", 0), 3);
    assert_int_equal(dt_json_int(cheap, "spared", 0), 1);
    json_object_put(json);
    free(text);
    size_t n;
    struct dt_merit *front = dt_report_front(f.s, &n);
    assert_true(n == 1 && front[0].t->id == 5);
    free(front);
    done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spec_names_what_is_wrong),
        cmocka_unit_test(the_job_as_submitted_is_run_at_the_highest),
        cmocka_unit_test(lower_values_are_all_that_are_listed_or_halves),
        cmocka_unit_test(the_space_says_which_value_counts),
        cmocka_unit_test(a_time_is_brought_to_the_whole_work),
        cmocka_unit_test(only_the_whole_work_is_recommended),
        cmocka_unit_test(cheap_trials_spare_costly_ones),
        cmocka_unit_test(a_lower_fidelity_comes_first_or_not_at_all),
        cmocka_unit_test(what_is_under_way_is_waited_for),
        cmocka_unit_test(a_fidelity_that_is_not_cheaper_is_left_alone),
        cmocka_unit_test(only_the_whole_work_can_improve),
        cmocka_unit_test(a_part_of_the_work_needs_no_quality),
        cmocka_unit_test(early_stopping_looks_at_the_whole_work_alone),
        cmocka_unit_test(the_past_is_tried_in_full),
        cmocka_unit_test(the_report_says_what_was_spared),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
