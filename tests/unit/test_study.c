/* The core of a study: a list of events, and what it decides to do after each. */
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

struct fixture {
    struct dt_spec *spec;
    struct dt_space *space;
    struct dt_study *s;
    double now;
};

/* A study over {"ps": 0-1, "workers": 1-4}, in grid order; the job as submitted is ps=0 workers=4,
 * or there is none. */
static struct fixture study(const char *sections, bool submitted)
{
    struct fixture f = {.now = 1000};
    struct dt_error e = DT_ERROR_INIT;
    char *text = dt_xasprintf(
        "{\"dt\": {\"ps\": {\"low\": 0, \"high\": 1}, \"workers\": {\"low\": 1, \"high\": 4}}%s%s}",
        *sections ? ", " : "", sections);
    struct json_object *json = dt_json_parse(text, "S.json", &e);
    f.spec = json ? dt_spec_parse(json, text, "S.json", &e) : NULL;
    if (!f.spec)
        fail_msg("%s", e.text);
    f.space = dt_space_new(f.spec->params, f.spec->nparams, &f.spec->constraints, NULL, 0, NULL,
                           NULL, NULL, 0, &e);
    f.s = dt_study_new(f.spec, f.space, submitted ? (double[]){0, 4} : NULL, &e);
    assert_non_null(f.s);
    json_object_put(json);
    free(text);
    return f;
}

static void done(struct fixture *f)
{
    dt_study_free(f->s);
    dt_space_free(f->space);
    dt_spec_free(f->spec);
}

/* The decision as text. Caller frees. */
static char *decision(struct dt_study *s, double now)
{
    struct dt_action a;
    struct dt_error e = DT_ERROR_INIT;
    char *text = NULL, *config;
    if (dt_study_decide(s, now, &a, &e) < 0) {
        text = dt_xasprintf("error: %s", e.text);
        dt_error_clear(&e);
        return text;
    }
    switch (a.kind) {
    case DT_ACTION_NONE:
        text = dt_xstrdup("wait");
        break;
    case DT_ACTION_CREATE:
        config = dt_config_text(s->space, a.x);
        text = dt_xasprintf("create %s (%s)", config, a.why);
        free(config);
        break;
    case DT_ACTION_SUBMIT:
        text = dt_xasprintf("submit %d", a.trial);
        break;
    case DT_ACTION_CANCEL:
        text = dt_xasprintf("cancel %d", a.trial);
        break;
    case DT_ACTION_PRUNE:
        text = dt_xasprintf("prune %d: %s", a.trial, a.why);
        break;
    case DT_ACTION_REALLOCATE:
        config = dt_config_text(s->space, a.x);
        text = dt_xasprintf("reallocate %d to %s: %s", a.trial, config, a.why);
        free(config);
        break;
    case DT_ACTION_CHECKPOINT:
        text = dt_xasprintf("checkpoint %d", a.trial);
        break;
    case DT_ACTION_SHRINK:
    case DT_ACTION_SHED:
        text = dt_xasprintf("shrink %d", a.trial);
        break;
    case DT_ACTION_KEEP:
        text = dt_xasprintf("keep %d: %s", a.trial, a.why);
        break;
    case DT_ACTION_STOP:
        text = dt_xasprintf("stop: %s", a.why);
        break;
    case DT_ACTION_FINISH:
        text = dt_xstrdup("finish");
        break;
    }
    dt_action_free(&a);
    return text;
}

static void expect(struct fixture *f, const char *expected)
{
    char *text = decision(f->s, f->now);
    assert_string_equal(text, expected);
    free(text);
}

static void apply(struct fixture *f, struct dt_event ev)
{
    struct dt_error e = DT_ERROR_INIT;
    ev.t = f->now;
    if (dt_study_apply(f->s, &ev, &e) < 0)
        fail_msg("%s", e.text);
    dt_event_free(&ev);
}

static struct dt_event event(enum dt_event_kind kind, int trial)
{
    struct dt_event ev = DT_EVENT(kind);
    ev.trial = trial;
    ev.run = 1;
    return ev;
}

/* Does what is decided, as long as that is to create or to submit; jobs get the number 100 * trial
 * + run. */
static void go(struct fixture *f)
{
    for (;;) {
        struct dt_action a;
        struct dt_error e = DT_ERROR_INIT;
        if (dt_study_decide(f->s, f->now, &a, &e) < 0)
            fail_msg("%s", e.text);
        struct dt_event ev = event(DT_EVENT_CREATED, a.trial);
        if (a.kind == DT_ACTION_CREATE) {
            ev.trial = (int)f->s->n + 1;
            ev.config = dt_config_to_json(f->space, a.x);
            ev.text = dt_xstrdup(a.why);
            ev.again = a.again;
        } else if (a.kind == DT_ACTION_SUBMIT) {
            ev.kind = DT_EVENT_SUBMITTED;
            ev.run = dt_study_trial(f->s, a.trial)->run;
            ev.job = (uint32_t)(100 * a.trial + ev.run);
        }
        bool more = a.kind == DT_ACTION_CREATE || a.kind == DT_ACTION_SUBMIT;
        dt_action_free(&a);
        if (!more)
            return;
        apply(f, ev);
    }
}

static void started(struct fixture *f, int trial)
{
    struct dt_event ev = event(DT_EVENT_STARTED, trial);
    ev.wait_s = 2;
    ev.nodes = 4;
    apply(f, ev);
}

static void ended(struct fixture *f, int trial, enum dt_cause cause, double run_s)
{
    struct dt_event ev = event(DT_EVENT_ENDED, trial);
    ev.cause = cause;
    ev.run_s = run_s;
    ev.wait_s = 2;
    ev.billing = 3;
    apply(f, ev);
}

static void metric(struct fixture *f, int trial, const char *name, double value)
{
    struct dt_event ev = event(DT_EVENT_METRIC, trial);
    ev.text = dt_xstrdup(name);
    ev.value = value;
    apply(f, ev);
}

static void stopping(struct fixture *f, const char *why, bool interrupted)
{
    struct dt_event ev = event(DT_EVENT_STOPPING, 0);
    ev.text = dt_xstrdup(why);
    ev.interrupted = interrupted;
    apply(f, ev);
}

static const struct dt_trial *trial(const struct fixture *f, int id)
{
    return dt_study_trial(f->s, id);
}

#define GRID "\"search\": {\"algorithm\": \"grid\"}"

/* ---- the course of a study ---- */

static void the_first_trial_is_the_job_as_submitted(void **state)
{
    struct fixture f = study(GRID, true);
    (void)state;
    expect(&f, "create ps=0 workers=4 (as submitted)");
    go(&f);
    expect(&f, "wait");
    started(&f, 1);
    expect(&f, "wait");
    ended(&f, 1, DT_CAUSE_OK, 30);
    expect(&f, "create ps=0 workers=1 (grid)");
    go(&f);
    ended(&f, 2, DT_CAUSE_OK, 20);
    assert_int_equal(dt_study_best(f.s)->id, 2);
    assert_int_equal(dt_study_baseline(f.s)->id, 1);
    assert_true(dt_study_best(f.s)->value == 20);
    done(&f);
    f = study(GRID, false);
    expect(&f, "create ps=0 workers=1 (grid)");
    assert_null(dt_study_best(f.s));
    assert_null(dt_study_baseline(f.s));
    done(&f);
}

static void so_many_trials_run_at_once_as_asked(void **state)
{
    struct fixture f = study("\"search\": {\"algorithm\": \"grid\", \"parallel\": 3}", true);
    (void)state;
    go(&f);
    assert_int_equal(f.s->n, 3);
    assert_true(dt_trial_live(trial(&f, 1)) && dt_trial_live(trial(&f, 2)) &&
                dt_trial_live(trial(&f, 3)));
    ended(&f, 2, DT_CAUSE_OK, 5);
    expect(&f, "create ps=0 workers=3 (grid)"); /* pending ones count as tried */
    go(&f);
    assert_int_equal(f.s->n, 4);
    expect(&f, "wait");
    done(&f);
}

static void a_trial_that_slurm_defers_is_submitted_later(void **state)
{
    struct fixture f = study(GRID, true);
    struct dt_event ev = event(DT_EVENT_DEFERRED, 1);
    (void)state;
    apply(&f, (struct dt_event){.kind = DT_EVENT_CREATED,
                                .trial = 1,
                                .config = dt_config_to_json(f.space, f.s->submitted)});
    expect(&f, "submit 1");
    ev.until = f.now + 30;
    ev.text = dt_xstrdup("limit of submitted jobs");
    apply(&f, ev);
    expect(&f, "wait"); /* and nothing else is created for it */
    f.now += 29;
    expect(&f, "wait");
    f.now += 1;
    expect(&f, "submit 1");
    f.now -= 3600; /* a clock that was set back does not make it wait for an hour */
    expect(&f, "submit 1");
    done(&f);
}

/* As in an allocation that is full. */
static void a_trial_without_room_comes_next(void **state)
{
    struct fixture f = study("\"search\": {\"algorithm\": \"grid\"}, \"layout\": \"steps\"", false);
    struct dt_event ev = event(DT_EVENT_SUBMITTED, 1);
    (void)state;
    for (int i = 1; i <= 3; i++) {
        apply(&f,
              (struct dt_event){.kind = DT_EVENT_CREATED,
                                .trial = i,
                                .config = dt_json_parse("{\"ps\": 0, \"workers\": 1}", "c", NULL)});
        if (i == 3)
            break;
        ev.trial = i;
        apply(&f, ev);
    }
    expect(&f, "submit 3");
    ev = event(DT_EVENT_DEFERRED, 3);
    ev.until = INFINITY;
    ev.text = dt_xstrdup("no room");
    apply(&f, ev);
    f.now += 1e6;
    expect(&f, "wait"); /* nor is another created that might go before it */
    ended(&f, 2, DT_CAUSE_OK, 5);
    expect(&f, "submit 3");
    done(&f);
}

static void what_cannot_end_in_time_is_not_begun(void **state)
{
    struct fixture f = study("\"search\": {\"algorithm\": \"grid\"}, \"layout\": \"steps\"", true);
    (void)state;
    assert_true(f.s->parallel == SIZE_MAX);
    f.s->closes = f.now + 100;
    apply(&f, (struct dt_event){.kind = DT_EVENT_CREATED,
                                .trial = 1,
                                .config = dt_config_to_json(f.space, f.s->submitted)});
    expect(&f, "submit 1");
    struct dt_event ev = event(DT_EVENT_DEFERRED, 1);
    ev.until = f.s->closes + 60;
    ev.text = dt_xstrdup("too late");
    apply(&f, ev);
    expect(&f, "stop: time: too little of the allocation's is left for another trial");
    f.now = f.s->closes;
    expect(&f, "stop: time: that of the allocation is nearly over");
    done(&f);
}

static void a_run_that_a_node_failed_is_repeated_twice(void **state)
{
    static const enum dt_cause causes[] = {DT_CAUSE_NODE_FAILURE, DT_CAUSE_PREEMPTED,
                                           DT_CAUSE_LOST};
    (void)state;
    for (size_t i = 0; i < COUNT(causes); i++) {
        struct fixture f = study(GRID, true);
        go(&f);
        metric(&f, 1, "step", 5);
        ended(&f, 1, causes[i], 5);
        assert_true(trial(&f, 1)->run == 2 && trial(&f, 1)->status == DT_STATUS_PENDING &&
                    trial(&f, 1)->job == 0);
        assert_null(dt_trial_metric(trial(&f, 1), "step")); /* the next run starts anew */
        expect(&f, "submit 1");
        go(&f);
        ended(&f, 1, causes[i], 5);
        expect(&f, "submit 1");
        go(&f);
        assert_int_equal(trial(&f, 1)->run, 3);
        ended(&f, 1, causes[i], 5);
        assert_int_equal(trial(&f, 1)->status, DT_STATUS_VOID);
        assert_true(isnan(trial(&f, 1)->value));
        assert_int_equal(f.s->nfinished, 0); /* taught nothing */
        expect(&f, "create ps=0 workers=1 (grid)");
        done(&f);
    }
}

/* However often tuners come and go: it never ran, and that is not its fault. */
static void a_run_that_lacked_a_tuner_is_repeated_as_often_as_it_takes(void **state)
{
    struct fixture f = study(GRID, true);
    (void)state;
    for (int run = 1; run <= 20; run++) {
        go(&f);
        assert_int_equal(trial(&f, 1)->run, run);
        ended(&f, 1, DT_CAUSE_NO_TUNER, 0);
        expect(&f, "submit 1");
    }
    go(&f);
    ended(&f, 1, DT_CAUSE_LOST, 5);
    expect(&f, "submit 1");
    done(&f);
}

static void causes_are_judged(void **state)
{
    static const struct {
        enum dt_cause cause;
        double run_s;
        enum dt_status status;
        enum dt_cause judged;
    } cases[] = {
        {DT_CAUSE_OK, 5, DT_STATUS_OK, DT_CAUSE_OK},
        {DT_CAUSE_OK, NAN, DT_STATUS_FAILED, DT_CAUSE_NO_METRIC},
        {DT_CAUSE_EXIT, 5, DT_STATUS_FAILED, DT_CAUSE_EXIT},
        {DT_CAUSE_OUT_OF_MEMORY, 5, DT_STATUS_FAILED, DT_CAUSE_OUT_OF_MEMORY},
        {DT_CAUSE_TIME_LIMIT, 5, DT_STATUS_CENSORED, DT_CAUSE_TIME_LIMIT},
        {DT_CAUSE_TIME_LIMIT, NAN, DT_STATUS_FAILED, DT_CAUSE_TIME_LIMIT},
        {DT_CAUSE_NOT_SCHEDULABLE, NAN, DT_STATUS_FAILED, DT_CAUSE_NOT_SCHEDULABLE},
        {DT_CAUSE_CANCELLED, 5, DT_STATUS_VOID, DT_CAUSE_CANCELLED},
        {DT_CAUSE_STOPPED, 5, DT_STATUS_VOID, DT_CAUSE_STOPPED},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fixture f = study(GRID, true);
        go(&f);
        ended(&f, 1, cases[i].cause, cases[i].run_s);
        const struct dt_trial *t = trial(&f, 1);
        bool valued = cases[i].status == DT_STATUS_OK || cases[i].status == DT_STATUS_CENSORED;
        if (t->status != cases[i].status || t->cause != cases[i].judged ||
            isnan(t->value) == valued)
            fail_msg("case %zu: %s, %s, %g", i, dt_status_names[t->status],
                     dt_cause_names[t->cause], t->value);
        done(&f);
    }
}

static void objectives_are_what_was_asked_for(void **state)
{
    static const struct {
        const char *objective;
        double value;
    } cases[] = {{"{\"metric\": \"time\"}", 40},
                 {"{\"metric\": \"turnaround\"}", 42},
                 {"{\"metric\": \"cost\"}", 120},
                 {"{\"metric\": \"throughput\"}", 4},
                 {"{\"metric\": \"loss\", \"goal\": \"minimize\"}", 0.25},
                 {"{\"metric\": \"accuracy\", \"goal\": \"maximize\"}", NAN}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *sections = dt_xasprintf("\"objective\": %s", cases[i].objective);
        struct fixture f = study(sections, true);
        go(&f);
        started(&f, 1);
        metric(&f, 1, "step", 100);
        metric(&f, 1, "loss", 0.5);
        f.now += 10;
        metric(&f, 1, "step", 140);
        metric(&f, 1, "loss", 0.25);
        ended(&f, 1, DT_CAUSE_OK, 40);
        const struct dt_trial *t = trial(&f, 1);
        if (isnan(cases[i].value)) {
            assert_true(t->status == DT_STATUS_FAILED && t->cause == DT_CAUSE_NO_METRIC);
            assert_string_equal(t->text, "accuracy was not reported; reported: step, loss");
        } else {
            assert_true(t->status == DT_STATUS_OK && t->value == cases[i].value);
        }
        done(&f);
        free(sections);
    }
}

/* Where a program counts within an epoch its count begins anew. */
static void steps_that_do_not_grow_are_no_throughput(void **state)
{
    static const double last[] = {100, 99};
    (void)state;
    for (size_t i = 0; i < COUNT(last); i++) {
        struct fixture f = study("\"objective\": {\"metric\": \"throughput\"}", true);
        go(&f);
        started(&f, 1);
        metric(&f, 1, "step", 100);
        f.now += 10;
        metric(&f, 1, "step", last[i]);
        ended(&f, 1, DT_CAUSE_OK, 40);
        assert_true(trial(&f, 1)->cause == DT_CAUSE_NO_METRIC && isnan(trial(&f, 1)->value));
        done(&f);
    }
}

static void a_metric_that_is_no_number_is_no_objective(void **state)
{
    static const double values[] = {NAN, INFINITY, -INFINITY};
    (void)state;
    for (size_t i = 0; i < COUNT(values); i++) {
        struct fixture f = study("\"objective\": {\"metric\": \"loss\", \"goal\": \"minimize\"}, "
                                 "\"target\": {\"metric\": \"acc\", \"at_least\": 0.9}",
                                 true);
        go(&f);
        started(&f, 1);
        metric(&f, 1, "acc", values[i]);
        assert_true(isnan(trial(&f, 1)->t_target)); /* infinity reaches no target */
        metric(&f, 1, "acc", 1);
        metric(&f, 1, "loss", values[i]);
        ended(&f, 1, DT_CAUSE_OK, 5);
        assert_true(trial(&f, 1)->cause == DT_CAUSE_NO_METRIC && isnan(trial(&f, 1)->value));
        assert_string_equal(trial(&f, 1)->text, "the last value of loss was not a finite number");
        done(&f);
    }
}

static void a_trial_at_its_target_is_ended(void **state)
{
    struct fixture f = study("\"target\": {\"metric\": \"loss\", \"at_most\": 0.1}, \"search\": "
                             "{\"algorithm\": \"grid\", "
                             "\"parallel\": 2}",
                             true);
    (void)state;
    go(&f);
    f.now += 5;
    started(&f, 1);
    started(&f, 2);
    f.now += 7;
    metric(&f, 2, "loss", 0.3);
    expect(&f, "wait");
    metric(&f, 2, "loss", 0.1);
    expect(&f, "cancel 2");
    dt_study_trial(f.s, 2)->cancelling = true; /* as the shell does */
    expect(&f, "wait");
    f.now += 3;
    ended(&f, 2, DT_CAUSE_CANCELLED, 10);
    const struct dt_trial *t = trial(&f, 2);
    assert_true(t->status == DT_STATUS_OK && t->cause == DT_CAUSE_TARGET && t->value == 7);
    ended(&f, 1, DT_CAUSE_OK, 10);
    t = trial(&f, 1);
    assert_true(t->status == DT_STATUS_FAILED && t->cause == DT_CAUSE_TARGET_MISSED);
    done(&f);
}

static void the_time_to_a_target_is_without_what_the_run_was_suspended_for(void **state)
{
    struct fixture f = study("\"target\": {\"metric\": \"loss\", \"at_most\": 0.1}", true);
    (void)state;
    go(&f);
    started(&f, 1);
    f.now += 40;
    metric(&f, 1, "loss", 0.1);
    ended(&f, 1, DT_CAUSE_CANCELLED, 12);
    assert_true(trial(&f, 1)->status == DT_STATUS_OK && trial(&f, 1)->value == 12);
    done(&f);
}

/* ---- how a study ends ---- */

static void an_exhausted_space_ends_a_study(void **state)
{
    struct fixture f = study("\"search\": {\"algorithm\": \"grid\", \"parallel\": 3}", true);
    (void)state;
    for (int i = 1; i <= 8; i++) {
        go(&f);
        ended(&f, i, DT_CAUSE_OK, i);
    }
    assert_int_equal(f.s->n, 8);
    expect(&f, "stop: space: every configuration was tried");
    stopping(&f, "space", false);
    expect(&f, "finish");
    apply(&f, event(DT_EVENT_FINISHED, 0));
    assert_true(f.s->complete);
    done(&f);
}

#define SETTLES "\"min_configs\": 2, \"window\": 1, \"min_improve\": 2"

static void what_may_be_recommended_is_measured_again(void **state)
{
    struct fixture f =
        study("\"search\": {\"algorithm\": \"grid\", \"repeats\": 3, " SETTLES "}", true);
    const double times[] = {10, 9.9, 10.6, 10.2, 10.3};
    (void)state;
    for (int i = 1; i <= 5; i++) { /* settled after two; then 2, 1 and 1 again, the limit */
        go(&f);
        assert_int_equal(f.s->n, i);
        ended(&f, i, DT_CAUSE_OK, times[i - 1]);
    }
    assert_true(trial(&f, 3)->again == 2 && trial(&f, 4)->again == 1 && trial(&f, 5)->again == 1);
    assert_string_equal(trial(&f, 3)->why, "measured again");
    expect(&f,
           "stop: improvement: the best improved by 1 % over the last 1 configurations, no more "
           "than 2 %");
    int n;
    assert_int_equal(dt_study_best(f.s)->id, 1);
    assert_true(fabs(dt_study_mean(f.s, trial(&f, 5), &n) - 10.166667) < 1e-6 && n == 3);
    done(&f);

    f = study("\"search\": {\"algorithm\": \"grid\", \"repeats\": 0, " SETTLES "}", true);
    for (int i = 1; i <= 2; i++) {
        go(&f);
        ended(&f, i, DT_CAUSE_OK, times[i - 1]);
    }
    expect(&f,
           "stop: improvement: the best improved by 1 % over the last 1 configurations, no more "
           "than 2 %");
    done(&f);
}

static void the_last_configurations_are_kept_for_measuring_again(void **state)
{
    struct fixture f = study("\"search\": {\"algorithm\": \"grid\", \"max_configs\": 5}", true);
    (void)state;
    for (int i = 1; i <= 4; i++) {
        go(&f);
        ended(&f, i, DT_CAUSE_OK, 10 + 0.1 * i);
    }
    expect(&f, "create ps=0 workers=4 (measured again)");
    go(&f);
    ended(&f, 5, DT_CAUSE_OK, 11);
    expect(&f, "stop: maximum of configurations: 5 of 5 were tried");
    done(&f);
}

static void measuring_again_waits_for_room_and_the_study_for_it(void **state)
{
    struct fixture f =
        study("\"search\": {\"algorithm\": \"grid\", \"parallel\": 2, " SETTLES "}", true);
    (void)state;
    go(&f); /* 1, 2 */
    ended(&f, 1, DT_CAUSE_OK, 10);
    go(&f); /* 3 */
    ended(&f, 2, DT_CAUSE_OK, 10);
    expect(&f, "create ps=0 workers=4 (measured again)");
    go(&f); /* 4: trial 1 again, while 3 still runs */
    assert_true(f.s->n == 4 && trial(&f, 4)->again == 1);
    expect(&f, "wait");
    ended(&f, 3, DT_CAUSE_OK, 20);
    go(&f); /* 5: trial 2 again, as 4 runs */
    assert_true(f.s->n == 5 && trial(&f, 5)->again == 2);
    ended(&f, 4, DT_CAUSE_OK, 10);
    go(&f); /* 6: one repeat alone may be chance */
    assert_true(f.s->n == 6 && trial(&f, 6)->again == 1);
    ended(&f, 5, DT_CAUSE_OK, 10);
    expect(&f, "wait");
    ended(&f, 6, DT_CAUSE_OK, 10);
    expect(&f,
           "stop: improvement: the best improved by 0 % over the last 1 configurations, no more "
           "than 2 %");
    done(&f);
}

static void a_trial_that_promises_too_little_is_stopped(void **state)
{
    struct fixture f = study("\"objective\": {\"metric\": \"loss\", \"goal\": \"minimize\"}, \"search\": "
                             "{\"algorithm\": \"grid\", \"parallel\": 2, "
                             "\"early_stop\": {\"rule\": \"asha\", \"min_step\": 1}}",
                             true);
    (void)state;
    go(&f);
    started(&f, 1);
    started(&f, 2);
    metric(&f, 1, "loss", 1);
    expect(&f, "wait");
    f.now += 1;
    metric(&f, 2, "loss", 2);
    expect(&f, "prune 2: at step 1 1 of 1 others were better; one in 3 goes on");
    struct dt_event ev = event(DT_EVENT_PRUNED, 2);
    ev.text = dt_xstrdup("at step 1");
    apply(&f, ev);
    expect(&f, "cancel 2");
    dt_study_trial(f.s, 2)->cancelling = true;
    expect(&f, "wait");
    ended(&f, 2, DT_CAUSE_CANCELLED, 3);
    assert_true(trial(&f, 2)->status == DT_STATUS_PRUNED && trial(&f, 2)->value == 2);
    assert_string_equal(trial(&f, 2)->text, "at step 1");
    assert_int_equal(f.s->nfinished, 1);
    assert_null(dt_study_best(f.s)); /* it is no candidate */
    go(&f);
    assert_int_equal(f.s->n, 3);
    done(&f);
}

/* The ids on the front, the fastest first. Caller frees. */
static char *front(const struct fixture *f)
{
    struct dt_buf b = DT_BUF_INIT;
    size_t n;
    struct dt_merit *m = dt_report_front(f->s, &n);
    for (size_t i = 0; i < n; i++)
        dt_buf_addf(&b, "%s%d", i ? " " : "", m[i].t->id);
    free(m);
    return dt_buf_take(&b);
}

static void the_front_is_what_nothing_else_beats(void **state)
{
    static const struct {
        double run_s, billing, accuracy;
    } trials[] = {{10, 1, 0.9}, {5, 4, 0.9}, {20, 1, 0.95}, {12, 1, 0.9}, {10, 1, 0.8}, {30, 1, 0.94}};
    struct fixture f = study("\"objective\": {\"metric\": \"accuracy\", \"goal\": \"maximize\"}, " GRID,
                             true);
    (void)state;
    for (int i = 1; i <= 6; i++) {
        go(&f);
        started(&f, i);
        metric(&f, i, "accuracy", trials[i - 1].accuracy);
        struct dt_event ev = event(DT_EVENT_ENDED, i);
        ev.run_s = trials[i - 1].run_s;
        ev.billing = trials[i - 1].billing;
        apply(&f, ev);
    }
    char *ids = front(&f);
    assert_string_equal(ids, "2 1 3");
    free(ids);
    struct dt_event ev = event(DT_EVENT_CREATED, 7); /* the fastest was a lucky run */
    ev.again = 2;
    ev.config = dt_config_to_json(f.s->space, trial(&f, 2)->x);
    ev.text = dt_xstrdup("once more");
    apply(&f, ev);
    go(&f);
    started(&f, 7);
    metric(&f, 7, "accuracy", 0.9);
    ev = event(DT_EVENT_ENDED, 7);
    ev.run_s = 50;
    ev.billing = 4;
    apply(&f, ev);
    ids = front(&f);
    assert_string_equal(ids, "1 3");
    free(ids);
    done(&f);
}

static void node_hours_are_counted_while_trials_run(void **state)
{
    struct fixture f =
        study("\"search\": {\"algorithm\": \"grid\", \"max_node_hours\": 0.5}", true);
    double nodes;
    (void)state;
    go(&f);
    started(&f, 1);
    f.now += 200;
    ended(&f, 1, DT_CAUSE_OK, 200); /* on 4 nodes: 800 of 1800 node-seconds */
    assert_true(dt_study_node_seconds(f.s, f.now, &nodes) == 800 && nodes == 0);
    go(&f);
    struct dt_event ev = event(DT_EVENT_STARTED, 2); /* Slurm tells later on how many nodes */
    apply(&f, ev);
    f.now += 100;
    assert_true(dt_study_node_seconds(f.s, f.now, &nodes) == 800 && nodes == 0);
    ev = event(DT_EVENT_ALLOCATED, 2);
    ev.nodes = 4;
    apply(&f, ev);
    f.now += 100;
    assert_true(dt_study_node_seconds(f.s, f.now, &nodes) == 1600 && nodes == 4);
    assert_true(dt_study_cost(f.s).node_s == 800);
    expect(&f, "wait");
    f.now += 50;
    expect(&f, "stop: node-hours: 0.5 of 0.5 are spent");
    ev = event(DT_EVENT_RESUMED, 0);
    struct dt_error e = DT_ERROR_INIT;
    ev.config = dt_json_parse("{\"max_node_hours\": 1}", "limits", &e);
    apply(&f, ev);
    expect(&f, "wait");
    f.now += 450;
    expect(&f, "stop: node-hours: 1 of 1 are spent");
    done(&f);
}

static void the_last_trials_are_waited_for(void **state)
{
    struct fixture f =
        study("\"search\": {\"algorithm\": \"grid\", \"parallel\": 8, \"max_configs\": 4}", true);
    (void)state;
    go(&f);
    assert_int_equal(f.s->n, 4);
    for (int i = 1; i <= 3; i++) {
        ended(&f, i, DT_CAUSE_OK, i);
        expect(&f, "wait");
    }
    ended(&f, 4, DT_CAUSE_OK, 4);
    expect(&f, "stop: maximum of configurations: 4 of 4 were tried");
    done(&f);
}

static void when_all_trials_have_begun_is_known(void **state)
{
    struct fixture f =
        study("\"search\": {\"algorithm\": \"grid\", \"parallel\": 2, \"max_configs\": 2}", true);
    (void)state;
    assert_false(dt_study_all_begun(f.s));
    go(&f);
    assert_true(dt_study_all_begun(f.s));
    ended(&f, 1, DT_CAUSE_NODE_FAILURE, 1); /* it is to run again */
    assert_false(dt_study_all_begun(f.s));
    go(&f);
    assert_true(dt_study_all_begun(f.s));
    done(&f);
    f = study("\"search\": {\"algorithm\": \"grid\", \"max_configs\": 1}, "
              "\"reallocate\": \"thresholds\"",
              true);
    go(&f);
    assert_false(dt_study_all_begun(f.s)); /* it may go on elsewhere */
    done(&f);
}

static void the_maximum_holds_where_nothing_was_learnt(void **state)
{
    struct fixture f = study("\"search\": {\"algorithm\": \"grid\", \"max_configs\": 2}", true);
    (void)state;
    for (int i = 1; i <= 2; i++) {
        go(&f);
        ended(&f, i, DT_CAUSE_CANCELLED, NAN);
    }
    expect(&f, "stop: maximum of configurations: 2 were tried");
    done(&f);
}

static void failures_at_the_start_end_a_study(void **state)
{
    struct fixture f = study(GRID, true);
    (void)state;
    for (int i = 1; i <= 3; i++) {
        go(&f);
        ended(&f, i, DT_CAUSE_EXIT, 1);
    }
    expect(&f, "stop: failures: the first 3 trials all failed");
    done(&f);
}

static void a_deadline_cancels_what_runs(void **state)
{
    struct fixture f =
        study("\"search\": {\"algorithm\": \"grid\", \"parallel\": 2, \"deadline\": \"10\"}", true);
    (void)state;
    go(&f);
    f.now += 599;
    expect(&f, "wait");
    f.now += 1;
    expect(&f, "stop: deadline: the study's time (10:00) is over");
    stopping(&f, "deadline", false);
    expect(&f, "cancel 1");
    dt_study_trial(f.s, 1)->cancelling = true;
    expect(&f, "cancel 2");
    dt_study_trial(f.s, 2)->cancelling = true;
    expect(&f, "wait");
    ended(&f, 1, DT_CAUSE_STOPPED, 5);
    expect(&f, "wait");
    ended(&f, 2, DT_CAUSE_OK, 5); /* it made it */
    expect(&f, "finish");
    assert_int_equal(dt_study_best(f.s)->id, 2);
    done(&f);
}

static void an_interrupted_study_goes_on_where_it_was(void **state)
{
    struct fixture f = study("\"search\": {\"algorithm\": \"grid\", \"parallel\": 2}", true);
    (void)state;
    go(&f);
    ended(&f, 1, DT_CAUSE_OK, 5);
    go(&f); /* 2 and 3 run */
    metric(&f, 2, "step", 1);
    stopping(&f, "interrupted: the tuner was told to end (signal 15)", true);
    ended(&f, 2, DT_CAUSE_INTERRUPTED, 5);
    ended(&f, 3, DT_CAUSE_INTERRUPTED, NAN);
    expect(&f, "finish");
    apply(&f, event(DT_EVENT_FINISHED, 0));
    assert_false(f.s->complete);
    assert_true(f.s->interrupted);
    assert_int_equal(f.s->nfinished, 1);

    f.now += 1e6;
    apply(&f, event(DT_EVENT_RESUMED, 0));
    assert_null(f.s->stop_reason);
    assert_true(trial(&f, 2)->run == 2 && trial(&f, 3)->run == 2 && trial(&f, 1)->run == 1);
    expect(&f, "submit 2");
    go(&f);
    assert_true(dt_trial_live(trial(&f, 2)) && dt_trial_live(trial(&f, 3)));
    assert_int_equal(f.s->n, 3);
    assert_null(dt_trial_metric(trial(&f, 2), "step"));
    assert_true(isnan(trial(&f, 2)->run_s));
    ended(&f, 2, DT_CAUSE_OK, 4);
    assert_int_equal(dt_study_best(f.s)->id, 2);
    assert_true(dt_study_cost(f.s).run_s == 5 + 5 + 4); /* what was cut off had its cost too */
    expect(&f, "create ps=0 workers=3 (grid)");
    done(&f);
}

static void a_resumed_study_takes_new_limits(void **state)
{
    struct fixture f = study(
        "\"search\": {\"algorithm\": \"grid\", \"max_configs\": 2, \"deadline\": \"10\"}", true);
    (void)state;
    for (int i = 1; i <= 2; i++) {
        go(&f);
        ended(&f, i, DT_CAUSE_OK, 5);
    }
    expect(&f, "stop: maximum of configurations: 2 of 2 were tried");
    f.now += 20;
    stopping(&f, "maximum", false);
    apply(&f, event(DT_EVENT_FINISHED, 0));
    assert_true(f.s->complete);
    double took = dt_study_elapsed(f.s);
    assert_true(took >= 20 && took < 1000);
    f.now += 1000; /* the deadline counts anew, and the pause is no cost of the search */
    apply(&f, event(DT_EVENT_RESUMED, 0));
    assert_true(dt_study_elapsed(f.s) == took);
    assert_false(f.s->complete);
    expect(&f, "stop: maximum of configurations: 2 of 2 were tried");
    struct dt_event ev = event(DT_EVENT_RESUMED, 0);
    ev.config =
        dt_json_parse("{\"max_configs\": 6, \"min_configs\": 2, \"window\": 3, \"parallel\": 2, \"repeats\": 1, "
                      "\"min_improve\": 5, \"deadline\": \"1:00:00\"}",
                      "limits", NULL);
    apply(&f, ev);
    assert_true(f.s->stopping.max_configs == 6 && f.s->stopping.min_configs == 2 &&
                f.s->stopping.window == 3);
    assert_true(f.s->parallel == 2 && f.s->stopping.min_improve == 0.05 &&
                f.s->stopping.deadline == 3600 && f.s->repeats == 1);
    go(&f);
    assert_int_equal(f.s->n, 4);
    done(&f);
}

static void fewer_trials_at_once_hold_for_those_cut_off_too(void **state)
{
    struct fixture f = study("\"search\": {\"algorithm\": \"grid\", \"parallel\": 3}", true);
    struct dt_event ev = event(DT_EVENT_RESUMED, 0);
    (void)state;
    go(&f);
    stopping(&f, "interrupted", true);
    for (int i = 1; i <= 3; i++)
        ended(&f, i, DT_CAUSE_INTERRUPTED, NAN);
    ev.config = dt_json_parse("{\"parallel\": 1}", "limits", NULL);
    apply(&f, ev);
    expect(&f, "submit 1");
    go(&f);
    assert_false(dt_trial_live(trial(&f, 2)) || dt_trial_live(trial(&f, 3)));
    expect(&f, "wait");
    ended(&f, 1, DT_CAUSE_OK, 5);
    expect(&f, "submit 2");
    done(&f);
}

/* ---- events ---- */

static void events_that_make_no_sense_are_refused(void **state)
{
    struct fixture f = study(GRID, true);
    struct dt_error e = DT_ERROR_INIT;
    struct dt_event ev = event(DT_EVENT_STARTED, 1);
    (void)state;
    assert_int_equal(dt_study_apply(f.s, &ev, &e), -1);
    assert_string_equal(e.text, "an event speaks of trial 1, which was never created");
    ev = event(DT_EVENT_CREATED, 2);
    assert_int_equal(dt_study_apply(f.s, &ev, &e), -1);
    assert_string_equal(e.text, "trial 2 was created out of order");
    ev = event(DT_EVENT_CREATED, 1);
    ev.config = dt_json_parse("{\"ps\": 1}", "c", NULL);
    assert_int_equal(dt_study_apply(f.s, &ev, &e), -1);
    assert_string_equal(e.text, "trial 1: configuration: \"workers\" is missing");
    dt_event_free(&ev);
    ev = event(DT_EVENT_CREATED, 1);
    assert_int_equal(dt_study_apply(f.s, &ev, &e), -1);
    assert_int_equal(f.s->n, 0);
    dt_error_clear(&e);
    done(&f);
}

static void records_that_are_no_events_are_refused(void **state)
{
    static const struct {
        const char *json, *error;
    } cases[] = {
        {"{}", "unknown event \"\""},
        {"{\"event\": \"starte\", \"t\": 1}", "unknown event \"starte\""},
        {"{\"event\": \"ended\", \"cause\": \"bad luck\"}", "unknown cause \"bad luck\""},
        {"{\"event\": \"metric\", \"trial\": 1}", "event \"metric\" without \"text\""},
        {"{\"event\": \"stopping\"}", "event \"stopping\" without \"text\""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_error e = DT_ERROR_INIT;
        struct json_object *o = dt_json_parse(cases[i].json, "r", &e);
        struct dt_event ev;
        assert_int_equal(dt_event_from_json(o, &ev, &e), -1);
        assert_string_equal(e.text, cases[i].error);
        dt_error_clear(&e);
        json_object_put(o);
    }
}

static void events_go_through_json_unchanged(void **state)
{
    (void)state;
    for (int kind = 0; kind < DT_EVENT_KINDS; kind++) {
        for (int cause = 0; cause < DT_CAUSES; cause++) {
            struct dt_event ev = event((enum dt_event_kind)kind, 7), back;
            struct dt_error e = DT_ERROR_INIT;
            ev.t = 1764441600.1234567;
            ev.run = 2;
            ev.job = 4000000000;
            ev.cause = kind == DT_EVENT_ENDED ? (enum dt_cause)cause : DT_CAUSE_OK;
            ev.text = dt_xstrdup("line \"one\"\n\tzwei \xc3\xbc");
            ev.config = dt_json_parse("{\"ps\": 1, \"lr\": null}", "c", &e);
            ev.again = 3;
            ev.parent = 4;
            ev.instead = 5;
            ev.nodes = 2.5;
            ev.run_s = 0.1 + 0.2;
            ev.value = -1e-300;
            ev.until = cause == 1 ? INFINITY : cause ? 5 : 0;
            ev.exit_code = 137;
            ev.signal = 9;
            ev.interrupted = cause % 2;
            ev.foreign = cause % 3 == 1;
            struct json_object *o = dt_event_to_json(&ev);
            char *text = dt_json_text(o);
            json_object_put(o);
            o = dt_json_parse(text, "record", &e);
            assert_null(strchr(text, '\n'));
            assert_int_equal(dt_event_from_json(o, &back, &e), 0);
            assert_true(back.kind == ev.kind && back.t == ev.t && back.trial == 7 &&
                        back.run == 2 && back.job == ev.job && back.again == 3 &&
                        back.parent == 4 && back.instead == 5 &&
                        back.nodes == 2.5);
            assert_true(back.cause == ev.cause && back.run_s == ev.run_s && back.value == ev.value);
            assert_true(isnan(back.wait_s) && isnan(back.startup_s) && isnan(back.billing) &&
                        back.until == ev.until);
            assert_true(back.exit_code == 137 && back.signal == 9 &&
                        back.interrupted == ev.interrupted && back.foreign == ev.foreign);
            assert_string_equal(back.text, ev.text);
            assert_true(json_object_equal(back.config, ev.config));
            dt_event_free(&ev);
            dt_event_free(&back);
            json_object_put(o);
            free(text);
        }
    }
}

/* ---- a study is a function of its events ---- */

struct history {
    struct dt_strv records;   /* events as JSON text */
    struct dt_strv decisions; /* decisions.v[i]: the first after i events */
};

static void note(struct fixture *f, struct history *h, struct dt_event ev)
{
    ev.t = f->now;
    struct json_object *o = dt_event_to_json(&ev);
    dt_strv_take(&h->records, dt_json_text(o));
    json_object_put(o);
    apply(f, ev);
    dt_strv_take(&h->decisions, decision(f->s, f->now));
}

/* Ends the live trial whose turn it is, in a way that the dice decide. */
static void end_one(struct fixture *f, struct history *h, unsigned *dice)
{
    size_t at = (size_t)rand_r(dice) % f->s->n;
    while (!dt_trial_live(&f->s->trials[at]))
        at = (at + 1) % f->s->n;
    int id = f->s->trials[at].id;
    f->now += 1 + rand_r(dice) % 1000 / 7.0;
    if (rand_r(dice) % 3 == 0) {
        struct dt_event ev = event(DT_EVENT_METRIC, id);
        ev.text = dt_xstrdup("loss");
        ev.value = rand_r(dice) % 5 ? rand_r(dice) / 1e9 : INFINITY;
        note(f, h, ev);
        return;
    }
    struct dt_event ev = event(DT_EVENT_ENDED, id);
    ev.cause = (enum dt_cause)(rand_r(dice) % 3 ? DT_CAUSE_OK : rand_r(dice) % DT_CAUSES);
    ev.run_s = rand_r(dice) / 1e6;
    ev.wait_s = rand_r(dice) / 1e7;
    note(f, h, ev);
}

static void run_by_dice(struct fixture *f, struct history *h, unsigned dice)
{
    for (int steps = 0; steps < 2000; steps++) {
        struct dt_action a;
        struct dt_error e = DT_ERROR_INIT;
        assert_int_equal(dt_study_decide(f->s, f->now, &a, &e), 0);
        struct dt_event ev = event(DT_EVENT_CREATED, a.trial);
        enum dt_action_kind kind = a.kind;
        if (kind == DT_ACTION_CREATE) {
            ev.trial = (int)f->s->n + 1;
            ev.config = dt_config_to_json(f->space, a.x);
            ev.text = dt_xstrdup(a.why);
        } else if (kind == DT_ACTION_STOP) {
            ev.kind = DT_EVENT_STOPPING;
            ev.text = dt_xstrdup(a.why);
        } else if (kind == DT_ACTION_SUBMIT) {
            ev.kind = rand_r(&dice) % 5 ? DT_EVENT_SUBMITTED : DT_EVENT_DEFERRED;
            ev.until = ev.kind == DT_EVENT_DEFERRED ? f->now : 0;
        } else if (kind == DT_ACTION_FINISH) {
            ev.kind = DT_EVENT_FINISHED;
        }
        if (kind == DT_ACTION_CANCEL)
            dt_study_trial(f->s, a.trial)->cancelling = true;
        dt_action_free(&a);
        if (kind == DT_ACTION_NONE)
            end_one(f, h, &dice);
        else if (kind != DT_ACTION_CANCEL)
            note(f, h, ev);
        if (kind == DT_ACTION_FINISH)
            return;
    }
    fail_msg("the study does not end");
}

static void replay(struct fixture *f, const struct history *h, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct dt_error e = DT_ERROR_INIT;
        struct dt_event ev;
        struct json_object *o = dt_json_parse(h->records.v[i], "record", &e);
        if (dt_event_from_json(o, &ev, &e) < 0 || dt_study_apply(f->s, &ev, &e) < 0)
            fail_msg("%s", e.text);
        f->now = ev.t;
        dt_event_free(&ev);
        json_object_put(o);
    }
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void a_replay_decides_as_the_study_did(void **state)
{
    static const char sections[] =
        "\"search\": {\"algorithm\": \"random\", \"parallel\": 3, \"seed\": 5}, "
        "\"objective\": {\"metric\": \"loss\", \"goal\": \"minimize\"}";
    (void)state;
    for (unsigned dice = 1; dice <= 20; dice++) {
        struct fixture f = study(sections, true);
        struct history h = {DT_STRV_INIT, DT_STRV_INIT};
        run_by_dice(&f, &h, dice);
        for (size_t n = 1; n <= h.records.n; n++) {
            struct fixture g = study(sections, true);
            replay(&g, &h, n);
            /* a replay has forgotten whom it asked to end, and asks again */
            char *next = decision(g.s, g.now);
            if (strcmp(h.decisions.v[n - 1], "wait") != 0 || !dt_starts_with(next, "cancel"))
                assert_string_equal(next, h.decisions.v[n - 1]);
            free(next);
            if (n < h.records.n) {
                done(&g);
                continue;
            }
            assert_int_equal(g.s->n, f.s->n);
            assert_int_equal(g.s->nfinished, f.s->nfinished);
            for (size_t i = 0; i < f.s->n; i++) {
                const struct dt_trial *a = &f.s->trials[i], *b = &g.s->trials[i];
                assert_true(dt_config_equal(a->x, b->x, 2) && a->state == b->state &&
                            a->status == b->status);
                assert_true(a->cause == b->cause && a->run == b->run && same(a->value, b->value));
            }
            done(&g);
        }
        dt_strv_free(&h.records);
        dt_strv_free(&h.decisions);
        done(&f);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_trial_is_the_job_as_submitted),
        cmocka_unit_test(so_many_trials_run_at_once_as_asked),
        cmocka_unit_test(a_trial_that_slurm_defers_is_submitted_later),
        cmocka_unit_test(a_trial_without_room_comes_next),
        cmocka_unit_test(what_cannot_end_in_time_is_not_begun),
        cmocka_unit_test(a_run_that_a_node_failed_is_repeated_twice),
        cmocka_unit_test(a_run_that_lacked_a_tuner_is_repeated_as_often_as_it_takes),
        cmocka_unit_test(causes_are_judged),
        cmocka_unit_test(objectives_are_what_was_asked_for),
        cmocka_unit_test(steps_that_do_not_grow_are_no_throughput),
        cmocka_unit_test(a_metric_that_is_no_number_is_no_objective),
        cmocka_unit_test(a_trial_at_its_target_is_ended),
        cmocka_unit_test(the_time_to_a_target_is_without_what_the_run_was_suspended_for),
        cmocka_unit_test(an_exhausted_space_ends_a_study),
        cmocka_unit_test(what_may_be_recommended_is_measured_again),
        cmocka_unit_test(the_last_configurations_are_kept_for_measuring_again),
        cmocka_unit_test(measuring_again_waits_for_room_and_the_study_for_it),
        cmocka_unit_test(a_trial_that_promises_too_little_is_stopped),
        cmocka_unit_test(the_front_is_what_nothing_else_beats),
        cmocka_unit_test(node_hours_are_counted_while_trials_run),
        cmocka_unit_test(the_last_trials_are_waited_for),
        cmocka_unit_test(when_all_trials_have_begun_is_known),
        cmocka_unit_test(the_maximum_holds_where_nothing_was_learnt),
        cmocka_unit_test(failures_at_the_start_end_a_study),
        cmocka_unit_test(a_deadline_cancels_what_runs),
        cmocka_unit_test(an_interrupted_study_goes_on_where_it_was),
        cmocka_unit_test(a_resumed_study_takes_new_limits),
        cmocka_unit_test(fewer_trials_at_once_hold_for_those_cut_off_too),
        cmocka_unit_test(events_that_make_no_sense_are_refused),
        cmocka_unit_test(records_that_are_no_events_are_refused),
        cmocka_unit_test(events_go_through_json_unchanged),
        cmocka_unit_test(a_replay_decides_as_the_study_did),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
