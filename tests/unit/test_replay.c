/* replay: measured tables as a backend, and whole studies on its virtual clock. */
#include "backend/backend.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* ---- helpers ---- */

static const char small[] = "model,n_ps,workers,opt,speed,time_s,status\n"
                            "a,0,1,sgd,10,20,ok\n"
                            "a,0,2,sgd,18,11,ok\n"
                            "a,0,2,sgd,22,9,ok\n"
                            "a,1,2,adam,30,7,ok\n"
                            "a,1,4,adam,,3,crashed\n"
                            "a,2,4,adam,5,60,timeout\n"
                            "a,2,8,adam,,8,ok\n"
                            "b,0,1,sgd,99,1,ok\n"
                            "a,7,1,sgd,98,1,ok\n";

#define PARAMETERS                                                                                 \
    "\"dt\": {\"ps\": {\"low\": 0, \"high\": 4}, \"workers\": {\"low\": 1, \"high\": 16}}, "       \
    "\"hyperparameters\": {\"opt\": [\"sgd\", \"adam\"]}"
#define REPLAY(rest)                                                                               \
    "\"replay\": {\"map\": {\"ps\": \"n_ps\"}, \"where\": {\"model\": \"a\"}, " rest "}"
#define SPEED                                                                                      \
    PARAMETERS ", " REPLAY("\"objective\": \"speed\", \"goal\": \"maximize\", \"duration\": "      \
                           "\"time_s\", \"status\": \"status\"")
#define TIME PARAMETERS ", " REPLAY("\"objective\": \"time_s\", \"status\": \"status\"")

struct fixture {
    char *path; /* of the table */
    struct dt_spec *spec;
    struct dt_space *space;
    struct dt_backend *b;
    struct dt_study *s;
    struct dt_error e;
};

static char *table_file(const char *text)
{
    const char *tmp = getenv("TMPDIR");
    char *path = dt_xasprintf("%s/dt-test-replay.XXXXXX", tmp ? tmp : P_tmpdir);
    close(mkstemp(path));
    assert_int_equal(dt_write_file(path, text, strlen(text), 0600, NULL), 0);
    return path;
}

static struct dt_spec *spec_of(const char *sections)
{
    struct dt_error e = DT_ERROR_INIT;
    char *text = dt_xasprintf("{%s}", sections);
    struct json_object *json = dt_json_parse(text, "S.json", &e);
    struct dt_spec *s = json ? dt_spec_parse(json, text, "S.json", &e) : NULL;
    if (!s)
        fail_msg("%s", e.text);
    json_object_put(json);
    free(text);
    return s;
}

/* `path`: of the table, taken over. */
static struct fixture fixture_on(char *path, const char *sections, double noise)
{
    struct fixture f = {.path = path, .spec = spec_of(sections)};
    struct dt_strv none = DT_STRV_INIT;
    size_t n;
    assert_int_equal(dt_replay_adopt(f.spec, &f.e), 0);
    double *points = dt_replay_points(f.spec, f.spec->params, f.spec->nparams, path, &n, &f.e);
    if (!points)
        fail_msg("%s", f.e.text);
    f.space =
        dt_space_new(f.spec->params, f.spec->nparams, &none, NULL, 0, NULL, NULL, points, n, &f.e);
    free(points);
    f.b = dt_backend_replay(f.spec, f.space, path, noise, 0, &f.e);
    f.s = dt_study_new(f.spec, f.space, NULL, &f.e);
    assert_true(f.space && f.b && f.s);
    return f;
}

static struct fixture fixture(const char *table, const char *sections)
{
    return fixture_on(table_file(table), sections, 0);
}

static void done(struct fixture *f, bool remove)
{
    dt_study_free(f->s);
    dt_backend_free(f->b);
    dt_space_free(f->space);
    dt_spec_free(f->spec);
    if (remove)
        unlink(f->path);
    free(f->path);
    dt_error_clear(&f->e);
}

static double now(const struct fixture *f)
{
    return f->b->ops->now(f->b->b);
}

static void apply(struct fixture *f, struct dt_event *ev)
{
    if (dt_study_apply(f->s, ev, &f->e) < 0)
        fail_msg("%s", f->e.text);
    dt_event_free(ev);
}

/* A trial of the configuration is created and submitted; gives its number. */
static int submit(struct fixture *f, const double *x)
{
    struct dt_event ev = DT_EVENT(DT_EVENT_CREATED);
    ev.trial = (int)f->s->n + 1;
    ev.config = dt_config_to_json(f->space, x);
    apply(f, &ev);
    struct dt_trial *t = &f->s->trials[f->s->n - 1];
    assert_int_equal(f->b->ops->submit(f->b->b, f->s, t, &ev, &f->e), 0);
    apply(f, &ev);
    return t->id;
}

/* Waits once; gives how many events came. */
static size_t wait_for(struct fixture *f, double until)
{
    struct dt_event *events = NULL;
    size_t n = 0;
    assert_int_equal(f->b->ops->wait(f->b->b, f->s, until, &events, &n, &f->e), 0);
    for (size_t i = 0; i < n; i++)
        apply(f, &events[i]);
    free(events);
    return n;
}

static const struct dt_trial *finish(struct fixture *f, int id)
{
    const struct dt_trial *t = dt_study_trial(f->s, id);
    while (dt_trial_live(t))
        wait_for(f, INFINITY);
    return t;
}

/* ---- tables ---- */

static void the_points_are_the_measured_configurations(void **state)
{
    static const double expected[][3] = {{0, 1, 0}, {0, 2, 0}, {1, 2, 1},
                                         {1, 4, 1}, {2, 4, 1}, {2, 8, 1}};
    struct fixture f = fixture(small, SPEED);
    (void)state;
    assert_int_equal(f.space->npoints, COUNT(expected));
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_true(dt_config_equal(f.space->points + 3 * i, expected[i], 3));
    assert_true(dt_replay_value(f.b, expected[0]) == 10);
    assert_true(dt_replay_value(f.b, expected[1]) == 20); /* the mean of repeats */
    assert_true(isnan(dt_replay_value(f.b, expected[3])) &&
                isnan(dt_replay_value(f.b, expected[4])));
    assert_true(isnan(dt_replay_value(f.b, (double[]){4, 4, 0})));
    done(&f, true);
}

static void tables_that_do_not_fit_are_refused(void **state)
{
#define ONE "\"dt\": {\"ps\": [1]}, "
    static const struct {
        const char *sections, *table, *error;
    } cases[] = {
        {"\"dt\": {\"ps\": [1]}", "ps,t\n1,2\n",
         "SPEC has no \"replay\" section, which says how the table's columns stand for parameters "
         "and objective"},
        {ONE "\"replay\": {\"objective\": \"tt\"}", "ps,t\n1,2\n",
         "replay.objective: no column \"tt\"; did you mean \"t\"?"},
        {ONE "\"replay\": {\"objective\": \"t\"}", "n_ps,t\n1,2\n",
         "parameter ps: no column \"ps\""},
        {ONE "\"replay\": {\"objective\": \"t\", \"duration\": \"dur\"}", "ps,t\n1,2\n",
         "replay.duration: no column \"dur\""},
        {ONE "\"replay\": {\"objective\": \"t\", \"status\": \"status\"}", "ps,t\n1,2\n",
         "replay.status: no column \"status\""},
        {ONE "\"replay\": {\"objective\": \"t\", \"where\": {\"model\": \"a\"}}", "ps,t\n1,2\n",
         "replay.where: no column \"model\""},
        {ONE "\"replay\": {\"objective\": \"t\", \"where\": {\"t\": 3}}", "ps,t\n1,2\n",
         "none of the 1 rows passes replay.where"},
        {ONE "\"replay\": {\"objective\": \"t\"}", "ps,t\n2,2\n3,1\n",
         "none of the 2 rows lies inside the domains of SPEC's parameters"},
        {ONE "\"replay\": {\"objective\": \"t\"}", "ps,t\n1,2\nmany,1\n",
         "row 2: ps: \"many\" is not a number"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_error e = DT_ERROR_INIT;
        struct dt_spec *spec = spec_of(cases[i].sections);
        char *path = table_file(cases[i].table),
             *expected = dt_xasprintf("%s: %s", path, cases[i].error);
        size_t n;
        assert_null(dt_replay_points(spec, spec->params, spec->nparams, path, &n, &e));
        if (!dt_starts_with(e.text, expected))
            fail_msg("%s; expected %s", e.text, expected);
        dt_error_clear(&e);
        dt_spec_free(spec);
        unlink(path);
        free(path);
        free(expected);
    }
}

/* What an inactive parameter's cell holds is of no account; such rows are repeats. */
static void inactive_cells_are_passed_over(void **state)
{
    struct fixture f = fixture(
        "opt,m,t\nsgd,0.1,5\nadam,,6\nadam,0.1,8\nadam,none,10\nsgd,0.2,7\nsgd,2,1\n",
        "\"hyperparameters\": {\"m\": {\"low\": 0, \"high\": 1.0, \"when\": \"opt == 'sgd'\"}, "
        "\"opt\": [\"sgd\", \"adam\"]}, \"replay\": {\"objective\": \"t\"}");
    static const double expected[][2] = {{0.1, 0}, {NAN, 1}, {0.2, 0}};
    (void)state;
    assert_int_equal(f.space->npoints, 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(dt_config_equal(f.space->points + 2 * i, expected[i], 2));
    assert_true(dt_replay_value(f.b, expected[1]) == 8); /* the mean of three */
    int id = submit(&f, expected[1]);
    assert_true(finish(&f, id)->value == 6);
    done(&f, true);
}

static void where_compares_numbers_as_numbers(void **state)
{
    struct fixture f = fixture("ps,k,t\n1,2.0,5\n2,3,6\n",
                               "\"dt\": {\"ps\": [1, 2]}, \"replay\": {\"objective\": \"t\", "
                               "\"where\": {\"k\": 2}}");
    (void)state;
    assert_int_equal(f.space->npoints, 1);
    done(&f, true);
}

/* ---- runs ---- */

static void a_run_lasts_as_long_as_its_row(void **state)
{
    struct fixture f = fixture(small, SPEED);
    int id = submit(&f, (double[]){1, 2, 1});
    const struct dt_trial *t = dt_study_trial(f.s, id);
    (void)state;
    assert_true(t->state == DT_TRIAL_SUBMITTED && now(&f) == 0);
    assert_int_equal(wait_for(&f, INFINITY), 1);
    assert_true(t->state == DT_TRIAL_STARTED && now(&f) == 0 && t->wait_s == 0);
    assert_int_equal(wait_for(&f, 5), 0);
    assert_true(now(&f) == 5);
    assert_int_equal(wait_for(&f, INFINITY), 2); /* the metric and the end */
    assert_true(now(&f) == 7 && t->status == DT_STATUS_OK && t->value == 30 && t->run_s == 7);
    assert_int_equal(wait_for(&f, 100), 0);
    assert_true(now(&f) == 100);
    assert_int_equal(wait_for(&f, 100), 0);
    assert_true(now(&f) > 100); /* a clock never stands still */
    struct dt_event *events = NULL;
    size_t n = 0;
    assert_int_equal(f.b->ops->wait(f.b->b, f.s, INFINITY, &events, &n, &f.e), -1);
    assert_string_equal(f.e.text, "replay: nothing is running and nothing is due");
    free(events);
    done(&f, true);
}

static void repeats_are_taken_in_turn(void **state)
{
    static const double expected[] = {18, 22, 18};
    struct fixture f = fixture(small, SPEED);
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_true(finish(&f, submit(&f, (double[]){0, 2, 0}))->value == expected[i]);
    assert_true(now(&f) == 11 + 9 + 11);
    done(&f, true);
}

static void rows_end_as_their_status_says(void **state)
{
    struct fixture f = fixture(small, SPEED);
    const struct dt_trial *t = finish(&f, submit(&f, (double[]){1, 4, 1}));
    (void)state;
    assert_true(t->status == DT_STATUS_FAILED && t->cause == DT_CAUSE_EXIT && t->exit_code == 1 &&
                isnan(t->value));
    assert_string_equal(t->text, "crashed");
    assert_true(now(&f) == 3);
    t = finish(&f, submit(&f, (double[]){2, 4, 1}));
    assert_true(t->cause == DT_CAUSE_TIME_LIMIT &&
                t->status == DT_STATUS_FAILED); /* of a speed it is no bound */
    assert_true(now(&f) == 63);
    t = finish(&f, submit(&f, (double[]){2, 8, 1}));
    assert_true(t->cause == DT_CAUSE_NO_METRIC && t->status == DT_STATUS_FAILED);
    t = dt_study_trial(f.s, submit(&f, (double[]){4, 16, 1}));
    assert_true(t->state == DT_TRIAL_ENDED && t->cause == DT_CAUSE_NOT_SCHEDULABLE &&
                t->status == DT_STATUS_FAILED);
    done(&f, true);

    f = fixture(small, TIME);
    assert_int_equal(f.spec->objective, DT_OBJECTIVE_TIME);
    t = finish(&f, submit(&f, (double[]){2, 4, 1}));
    assert_true(t->status == DT_STATUS_CENSORED && t->value == 60 && now(&f) == 60);
    done(&f, true);
}

static void the_clock_follows_the_best_known_duration(void **state)
{
    static const struct {
        const char *replay, *header, *row;
        double value, duration;
    } cases[] = {
        {"\"objective\": \"speed\", \"goal\": \"maximize\"", "speed", "40", 40, 1},
        {"\"objective\": \"loss\"", "loss", "0.5", 0.5, 1},
        {"\"objective\": \"time_s\"", "time_s", "12.5", 12.5, 12.5},
        {"\"objective\": \"time_ms\"", "time_ms", "250", 250, 0.25},
        {"\"objective\": \"loss\", \"duration\": \"d\"", "loss,d", "0.5,9", 0.5, 9},
        {"\"objective\": \"loss\", \"duration\": \"d_ms\"", "loss,d_ms", "0.5,500", 0.5, 0.5},
        {"\"objective\": \"time_s\", \"duration\": \"wall\"", "time_s,wall", "5,9", 5, 9},
        {"\"objective\": \"loss\", \"duration\": \"d\"", "loss,d", "0.5,", 0.5, 1},
        {"\"objective\": \"loss\", \"duration\": \"d\"", "loss,d", "0.5,0", 0.5, 1},
        {"\"objective\": \"cost_usd\", \"duration\": \"d\"", "cost_usd,d", "0.375,4", 0.375, 4},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *table = dt_xasprintf("ps,%s\n1,%s\n", cases[i].header, cases[i].row);
        char *sections = dt_xasprintf("\"dt\": {\"ps\": [1]}, \"replay\": {%s}", cases[i].replay);
        struct fixture f = fixture(table, sections);
        const struct dt_trial *t = finish(&f, submit(&f, (double[]){1}));
        if (t->value != cases[i].value || now(&f) != cases[i].duration)
            fail_msg("case %zu: %g after %g s", i, t->value, now(&f));
        done(&f, true);
        free(table);
        free(sections);
    }
}

static void noise_comes_from_the_seed_and_is_log_normal(void **state)
{
    double first[2000];
    (void)state;
    for (int repeat = 0; repeat < 3; repeat++) {
        struct fixture f =
            fixture_on(table_file("ps,loss\n1,8\n"),
                       "\"dt\": {\"ps\": [1]}, \"replay\": {\"objective\": \"loss\"}, "
                       "\"search\": {\"seed\": 4}",
                       0);
        double sum = 0, squares = 0;
        bool same = true;
        f.spec->seed = repeat == 2 ? 5 : 4;
        dt_backend_free(f.b);
        f.b = dt_backend_replay(f.spec, f.space, f.path, 0.4, 0, &f.e);
        for (int i = 0; i < 2000; i++) {
            double v = finish(&f, submit(&f, (double[]){1}))->value, l = log(v / 8);
            if (repeat == 0)
                first[i] = v;
            same &= v == first[i];
            sum += l;
            squares += l * l;
        }
        assert_true(same == (repeat < 2));
        assert_true(fabs(sum / 2000) < 0.03 && fabs(sqrt(squares / 2000) - 0.4) < 0.02);
        assert_true(dt_replay_value(f.b, (double[]){1}) == 8);
        done(&f, true);
    }
}

static void a_cancelled_run_ends_now(void **state)
{
    struct fixture f = fixture(small, SPEED);
    int a = submit(&f, (double[]){0, 1, 0}), b = submit(&f, (double[]){1, 2, 1});
    const struct dt_trial *t = dt_study_trial(f.s, a);
    (void)state;
    wait_for(&f, 0);
    wait_for(&f, 4);
    assert_int_equal(f.b->ops->cancel(f.b->b, t, &f.e), 0);
    assert_int_equal(f.b->ops->cancel(f.b->b, t, &f.e), 0); /* safe to repeat */
    assert_int_equal(wait_for(&f, INFINITY), 1);
    assert_true(t->cause == DT_CAUSE_CANCELLED && t->run_s == 4 && now(&f) == 4);
    assert_int_equal(f.b->ops->cancel(f.b->b, t, &f.e), 0);
    assert_true(finish(&f, b)->value == 30 && now(&f) == 7);
    assert_true(t->cause == DT_CAUSE_CANCELLED);
    done(&f, true);
}

static void the_table_names_the_objective(void **state)
{
    static const struct {
        const char *column;
        bool maximize;
        enum dt_objective_kind kind;
    } cases[] = {
        {"time_s", false, DT_OBJECTIVE_TIME},         {"time_s", true, DT_OBJECTIVE_METRIC},
        {"runtime", false, DT_OBJECTIVE_TIME},        {"time_ms", false, DT_OBJECTIVE_METRIC},
        {"cost_usd", false, DT_OBJECTIVE_COST},       {"samples_per_s", true, DT_OBJECTIVE_METRIC},
        {"joules_per_s", false, DT_OBJECTIVE_METRIC}, {"loss", false, DT_OBJECTIVE_METRIC}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = dt_xasprintf("\"objective\": {\"metric\": \"throughput\"}, \"target\": "
                                  "{\"metric\": \"x\", \"at_least\": 1}, "
                                  "\"replay\": {\"objective\": \"%s\", \"goal\": \"%s\"}",
                                  cases[i].column, cases[i].maximize ? "maximize" : "minimize");
        struct dt_spec *s = spec_of(text);
        assert_int_equal(dt_replay_adopt(s, NULL), 0);
        assert_true(s->objective == cases[i].kind && s->maximize == cases[i].maximize &&
                    !s->target.metric);
        assert_string_equal(s->metric, cases[i].column);
        dt_spec_free(s);
        free(text);
    }
    struct dt_spec *s = spec_of("");
    struct dt_error e = DT_ERROR_INIT;
    assert_int_equal(dt_replay_adopt(s, &e), -1);
    assert_true(dt_starts_with(e.text, "SPEC has no \"replay\" section"));
    dt_error_clear(&e);
    dt_spec_free(s);
}

/* ---- whole studies ---- */

static void run(struct fixture *f)
{
    static const volatile int stop;
    if (dt_study_run(f->s, f->b, NULL, NULL, NULL, &stop, &f->e) != 0)
        fail_msg("%s", f->e.text ? f->e.text : "interrupted");
}

static void parallel_trials_share_the_clock(void **state)
{
    static const struct {
        int parallel;
        double makespan;
    } cases[] = {{1, 10 + 20 + 30 + 40}, {2, 60}, {4, 40}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *sections = dt_xasprintf("\"dt\": {\"workers\": {\"low\": 1, \"high\": 4}}, "
                                      "\"replay\": {\"objective\": \"time_s\"}, "
                                      "\"search\": {\"algorithm\": \"grid\", \"parallel\": %d}",
                                      cases[i].parallel);
        struct fixture f = fixture("workers,time_s\n1,10\n2,20\n3,30\n4,40\n", sections);
        run(&f);
        assert_true(now(&f) == cases[i].makespan);
        assert_true(f.s->complete && f.s->n == 4 && dt_study_elapsed(f.s) == cases[i].makespan);
        assert_string_equal(f.s->stop_reason, "space: every configuration was tried");
        done(&f, true);
        free(sections);
    }
}

/* Three runs of four epochs each, 10 s an epoch; the last rows come first. */
#define COURSES                                                                                    \
    "lr,epoch,seconds,accuracy\n"                                                                  \
    "0.1,4,40,0.9\n0.1,3,30,0.8\n0.1,2,20,0.7\n0.1,1,10,0.6\n"                                     \
    "0.2,1,10,0.1\n0.2,2,20,0.2\n0.2,3,30,0.3\n0.2,4,40,0.95\n"                                    \
    "0.3,1,10,0.65\n0.3,2,20,0.7\n0.3,3,30,0.7\n0.3,4,40,0.7\n"
#define COURSE_SPEC                                                                                \
    "\"hyperparameters\": {\"lr\": {\"low\": 0.1, \"high\": 0.3}}, "                               \
    "\"replay\": {\"objective\": \"accuracy\", \"goal\": \"maximize\", \"duration\": "             \
    "\"seconds\", "                                                                                \
    "\"step\": \"epoch\"}, \"search\": {\"algorithm\": \"grid\", \"repeats\": 0"

static void the_rows_of_a_course_are_one_run(void **state)
{
    struct fixture f = fixture(COURSES, COURSE_SPEC "}");
    (void)state;
    assert_int_equal(f.space->npoints, 3);
    run(&f);
    assert_true(f.s->n == 3 && now(&f) == 120);
    const struct dt_trial *best = dt_study_best(f.s);
    assert_true(best->id == 2 && best->value == 0.95 && best->run_s == 40);
    const struct dt_metric *m = dt_trial_metric(best, "accuracy");
    assert_true(m && m->series.n == 4 && m->series.v[2].step == 3 && m->series.v[2].value == 0.3 &&
                m->series.v[2].t == 70);
    assert_true(dt_trial_pace(f.s, best) == 10);
    assert_true(dt_replay_value(f.b, best->x) == 0.95);
    done(&f, true);
}

static void what_promises_too_little_is_stopped_early(void **state)
{
    struct fixture f =
        fixture(COURSES, COURSE_SPEC ", \"early_stop\": {\"rule\": \"asha\", \"min_step\": 1, \"reduction\": 2}}");
    (void)state;
    run(&f);
    const struct dt_trial *t = f.s->trials;
    assert_true(f.s->n == 3 && now(&f) == 40 + 10 + 40);
    assert_true(t[0].status == DT_STATUS_OK && t[2].status == DT_STATUS_OK);
    assert_true(t[1].status == DT_STATUS_PRUNED && t[1].cause == DT_CAUSE_PRUNED);
    assert_true(t[1].value == 0.1 && t[1].run_s == 10);
    assert_string_equal(t[1].text, "at step 1 1 of 1 others were better; one in 2 goes on");
    assert_int_equal(dt_study_best(f.s)->id, 1); /* what was stopped is no candidate */
    done(&f, true);
}

static void a_run_without_the_quality_asked_for_is_poor(void **state)
{
    struct fixture f = fixture(
        "workers,time_s,acc\n1,40,0.95\n2,20,0.9\n3,10,0.5\n4,5,\n",
        "\"dt\": {\"workers\": {\"low\": 1, \"high\": 4}}, \"quality\": {\"metric\": \"acc\", "
        "\"at_least\": 0.9}, \"replay\": {\"objective\": \"time_s\"}, "
        "\"search\": {\"algorithm\": \"grid\", \"repeats\": 0}");
    (void)state;
    run(&f);
    const struct dt_trial *t = f.s->trials;
    assert_int_equal(dt_study_best(f.s)->id, 2);
    assert_true(t[2].status == DT_STATUS_POOR && t[2].cause == DT_CAUSE_POOR && t[2].value == 10);
    assert_true(fabs(dt_trial_margin(f.s, &t[2]) + 0.4) < 1e-12);
    assert_string_equal(t[2].text, "the last value of acc was 0.5");
    assert_true(t[3].status == DT_STATUS_FAILED && t[3].cause == DT_CAUSE_NO_METRIC);
    assert_true(dt_replay_value(f.b, t[1].x) == 20 && isnan(dt_replay_value(f.b, t[2].x)));
    done(&f, true);
}

static void a_deadline_is_kept_on_the_virtual_clock(void **state)
{
    struct fixture f = fixture("workers,time_s\n1,50\n2,50\n3,50\n4,50\n",
                               "\"dt\": {\"workers\": {\"low\": 1, \"high\": 4}}, \"replay\": "
                               "{\"objective\": \"time_s\"}, "
                               "\"search\": {\"algorithm\": \"grid\", \"deadline\": \"2\"}");
    (void)state;
    run(&f);
    assert_true(now(&f) == 120 && f.s->n == 3);
    assert_true(f.s->trials[2].cause == DT_CAUSE_STOPPED &&
                f.s->trials[2].status == DT_STATUS_VOID);
    done(&f, true);
}

static char *measured(const char *name)
{
    const char *src = getenv("srcdir");
    return dt_xasprintf("%s/tests/data/tables/%s", src ? src : ".", name);
}

#define TRIMTUNER                                                                                  \
    "\"dt\": {\"workers\": {\"low\": 1, \"high\": 80}}, \"hyperparameters\": {\"vm\": "            \
    "[\"t2.small\", \"t2.medium\", "                                                               \
    "\"t2.xlarge\", \"t2.2xlarge\"], \"batch_size\": [16, 256], \"learning_rate\": {\"low\": "     \
    "1e-5, \"high\": 1e-3, "                                                                       \
    "\"log\": true}, \"sync\": [\"sync\", \"async\"]}, \"replay\": {\"map\": {\"workers\": "       \
    "\"n_workers\"}, "                                                                             \
    "\"where\": {\"train_set_size\": 60000}, \"objective\": \"time_s\"}"

static void a_whole_measured_table_is_gone_through_once(void **state)
{
    static const char *const algorithms[] = {"random", "grid"};
    (void)state;
    for (size_t a = 0; a < COUNT(algorithms); a++) {
        char *sections =
            dt_xasprintf(TRIMTUNER ", \"search\": {\"algorithm\": \"%s\", \"max_configs\": 1000, "
                                   "\"min_configs\": 1000, \"parallel\": 5, \"repeats\": 0}",
                         algorithms[a]);
        struct fixture f = fixture_on(measured("trimtuner_tf_ps_multifidelity.csv"), sections, 0);
        assert_int_equal(f.space->npoints, 288);
        run(&f);
        assert_int_equal(f.s->n, 288);
        for (size_t i = 0; i < f.s->n; i++) {
            assert_int_equal(f.s->trials[i].status, DT_STATUS_OK);
            for (size_t j = 0; j < i; j++)
                assert_false(dt_config_equal(f.s->trials[i].x, f.s->trials[j].x, f.space->n));
        }
        assert_true(dt_study_best(f.s)->value == 59.3461);
        done(&f, false);
        free(sections);
    }
}

struct course {
    volatile int stop;
    int after; /* so many ended trials the tuner is told to end; 0: never */
    int ends;
};

static void watch(void *arg, const struct dt_study *s, const struct dt_event *ev)
{
    struct course *c = arg;
    (void)s;
    c->ends += ev->kind == DT_EVENT_ENDED;
    if (c->after && c->ends == c->after)
        c->stop = 15;
}

static int take_record(void *arg, struct json_object *record, struct dt_error *e)
{
    struct dt_event ev;
    if (dt_event_from_json(record, &ev, e) < 0)
        return -1;
    int rc = dt_study_apply(arg, &ev, e);
    dt_event_free(&ev);
    return rc;
}

/* A study that is told to end, and is continued from its journal, tries what the undisturbed one
 * tries. */
static void an_interrupted_study_takes_the_same_course(void **state)
{
    static const char sections[] = TRIMTUNER
        ", \"search\": {\"algorithm\": \"random\", \"max_configs\": 20, \"min_configs\": 20}";
    struct fixture whole = fixture_on(measured("trimtuner_tf_ps_multifidelity.csv"), sections, 0);
    (void)state;
    run(&whole);
    assert_int_equal(whole.s->n, 20);
    for (int after = 1; after < 20; after += 6) {
        char *path = table_file("");
        struct fixture f = fixture_on(measured("trimtuner_tf_ps_multifidelity.csv"), sections, 0);
        struct course c = {.after = after};
        struct dt_reporter reporter = {.event = watch, .arg = &c};
        struct dt_journal *j = dt_journal_open(path, take_record, f.s, &f.e);
        assert_int_equal(dt_study_run(f.s, f.b, j, &reporter, NULL, &c.stop, &f.e), 1);
        assert_true(f.s->interrupted && !f.s->complete);
        assert_int_equal(f.s->nfinished, after);
        dt_journal_close(j);
        done(&f, false);

        f = fixture_on(measured("trimtuner_tf_ps_multifidelity.csv"), sections, 0);
        c = (struct course){0};
        j = dt_journal_open(path, take_record, f.s, &f.e);
        assert_int_equal(dt_study_run(f.s, f.b, j, &reporter, NULL, &c.stop, &f.e), 0);
        assert_true(f.s->complete);
        assert_int_equal(f.s->n, whole.s->n);
        for (size_t i = 0; i < whole.s->n; i++) {
            assert_true(dt_config_equal(f.s->trials[i].x, whole.s->trials[i].x, f.space->n));
            assert_true(f.s->trials[i].value == whole.s->trials[i].value);
        }
        dt_journal_close(j);
        done(&f, false);
        unlink(path);
        free(path);
    }
    done(&whole, false);
}

static int sweep_in_vain(void *b, struct dt_error *e)
{
    (void)b;
    return dt_fail(e, "cannot cancel job 7: no answer");
}

/* Whoever answers for the cluster may be too busy to take the last cancellation. */
static void what_cannot_be_cancelled_at_the_end_costs_no_result(void **state)
{
    static const volatile int stop;
    struct fixture f = fixture("workers,time_s\n1,10\n2,20\n",
                               "\"dt\": {\"workers\": {\"low\": 1, \"high\": 2}}, "
                               "\"replay\": {\"objective\": \"time_s\"}");
    struct dt_backend_ops ops = *f.b->ops;
    struct dt_backend b = {&ops, f.b->b};
    (void)state;
    ops.sweep = sweep_in_vain;
    assert_int_equal(dt_study_run(f.s, &b, NULL, NULL, NULL, &stop, &f.e), 0);
    assert_string_equal(f.e.text, "cannot cancel job 7: no answer");
    assert_non_null(dt_study_best(f.s));
    dt_error_clear(&f.e);
    done(&f, true);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_points_are_the_measured_configurations),
        cmocka_unit_test(tables_that_do_not_fit_are_refused),
        cmocka_unit_test(inactive_cells_are_passed_over),
        cmocka_unit_test(where_compares_numbers_as_numbers),
        cmocka_unit_test(a_run_lasts_as_long_as_its_row),
        cmocka_unit_test(repeats_are_taken_in_turn),
        cmocka_unit_test(rows_end_as_their_status_says),
        cmocka_unit_test(the_clock_follows_the_best_known_duration),
        cmocka_unit_test(noise_comes_from_the_seed_and_is_log_normal),
        cmocka_unit_test(a_cancelled_run_ends_now),
        cmocka_unit_test(the_table_names_the_objective),
        cmocka_unit_test(parallel_trials_share_the_clock),
        cmocka_unit_test(the_rows_of_a_course_are_one_run),
        cmocka_unit_test(what_promises_too_little_is_stopped_early),
        cmocka_unit_test(a_run_without_the_quality_asked_for_is_poor),
        cmocka_unit_test(a_deadline_is_kept_on_the_virtual_clock),
        cmocka_unit_test(a_whole_measured_table_is_gone_through_once),
        cmocka_unit_test(an_interrupted_study_takes_the_same_course),
        cmocka_unit_test(what_cannot_be_cancelled_at_the_end_costs_no_result),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
