/* Population-based training: who gives way to whom, what the next hyperparameters are, and a
 * study's course by events. */
#include "optimizer/algorithms.h"
#include "report/report.h"
#include "stopping/population.h"
#include "tuner/tuner.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define MAX 8

/* ---- who gives way ---- */

/* Members as text: "STEP:VALUE@TIME" each, after "from=STEP", "begin=TIME", "end=TIME" and "over"
 * where they hold. */
struct members {
    struct dt_member v[MAX];
    size_t n;
};

static struct members members(const char *const *texts)
{
    struct members m = {.n = 0};
    for (; *texts; texts++, m.n++) {
        struct dt_strv words = DT_STRV_INIT;
        dt_strv_split(&words, *texts, " ");
        double *v = dt_xcalloc(3 * words.n + 1, sizeof(*v));
        struct dt_member *one = &m.v[m.n];
        *one = (struct dt_member){{v, v + words.n, v + 2 * words.n, 0}, 0, true, 0, INFINITY};
        for (size_t i = 0; i < words.n; i++) {
            double step, value, t;
            if (sscanf(words.v[i], "%lf:%lf@%lf", &step, &value, &t) == 3) {
                v[one->curve.n] = step;
                v[words.n + one->curve.n] = value;
                v[2 * words.n + one->curve.n++] = t;
            } else if (sscanf(words.v[i], "from=%lf", &one->from) != 1 &&
                       sscanf(words.v[i], "begin=%lf", &one->begin) != 1 &&
                       sscanf(words.v[i], "end=%lf", &one->end) != 1) {
                one->running = false;
            }
        }
        dt_strv_free(&words);
    }
    return m;
}

/* The member that `which` gives way to, or -1. */
static int gives_way(const struct dt_pruner *p, const char *const *texts, size_t which,
                     bool maximize, const char *why)
{
    struct members m = members(texts);
    gsl_rng *rng = dt_rng_new(1);
    char *said = NULL;
    int parent = dt_population_gives_way(p, m.v, m.n, which, maximize, rng, &said);
    if (parent >= 0 && why)
        assert_string_equal(said, why);
    assert_true((parent >= 0) == (said != NULL));
    free(said);
    gsl_rng_free(rng);
    for (size_t i = 0; i < m.n; i++)
        free((double *)m.v[i].curve.step);
    return parent;
}

static const struct dt_pruner rule = {
    .rule = DT_PRUNE_PBT, .interval = 10, .quantile = 0.25, .resample = 0.25};

static void the_worst_gives_way_to_the_best(void **state)
{
    static const char *const four[] = {"5:3@1 10:2@2", "10:1@2", "10:1.5@2", "5:8@1 10:9@3", NULL};
    (void)state;
    assert_int_equal(gives_way(&rule, four, 3, false, "at step 10 3 of 3 others were better"), 1);
    assert_int_equal(gives_way(&rule, four, 0, false, NULL), -1);
    assert_int_equal(gives_way(&rule, four, 1, true, NULL), 3);
    assert_int_equal(gives_way(&rule, four, 3, true, NULL), -1);
}

static void others_count_as_far_as_they_were(void **state)
{
    /* the first is at 10 before the others, who are behind but better; what they report later is
     * not looked at */
    static const char *const ahead[] = {"10:5@5", "9:1@4 10:8@6", "9:2@4", "8:3@4", NULL};
    static const char *const worse[] = {"10:5@5", "9:6@4 10:1@6", "9:2@4", "8:3@4", NULL};
    static const char *const alone[] = {"10:5@5", "10:1@6", "from=nan", NULL};
    (void)state;
    assert_int_equal(gives_way(&rule, ahead, 0, false, "at step 10 3 of 3 others were better"), 1);
    assert_int_equal(gives_way(&rule, worse, 0, false, NULL), -1);
    assert_int_equal(gives_way(&rule, alone, 0, false, NULL), -1);
}

static void who_joins_or_leaves_later_changes_nothing(void **state)
{
    static const char *const before[] = {"10:5@5", "10:1@4", "10:2@4", "10:9@4", NULL};
    static const char *const after[] = {"10:5@5",         "10:1@4", "10:2@4", "end=6 over 10:9@4",
                                        "begin=6 10:1@4", NULL};
    static const char *const sooner[] = {"10:5@5",         "10:1@4", "10:2@4", "end=5 over 10:9@4",
                                         "begin=5 10:1@4", NULL};
    (void)state;
    assert_int_equal(gives_way(&rule, before, 0, false, NULL), -1);
    assert_int_equal(gives_way(&rule, after, 0, false, NULL), -1);
    assert_int_not_equal(gives_way(&rule, sooner, 0, false, NULL), -1);
}

static void who_has_reported_nothing_may_be_worse(void **state)
{
    static const char *const silent[] = {"10:5@5", "10:1@4", "begin=3", NULL};
    static const char *const waits[] = {"10:5@5", "10:1@4", "begin=inf", NULL};
    (void)state;
    assert_int_equal(gives_way(&rule, silent, 0, false, NULL), -1);
    assert_int_equal(gives_way(&rule, waits, 0, false, "at step 10 1 of 1 others were better"), 1);
}

static void a_member_is_looked_at_once_a_step(void **state)
{
    static const char *const past[] = {"10:9@1 11:9@2", "11:1@1", NULL};
    static const char *const over[] = {"9:9@1 10.5:9@2", "11:1@1", NULL};
    static const char *const early[] = {"5:9@1 9.9:9@2", "11:1@1", NULL};
    (void)state;
    assert_int_equal(gives_way(&rule, past, 0, false, NULL), -1);
    assert_int_equal(gives_way(&rule, over, 0, false, "at step 10 1 of 1 others were better"), 1);
    assert_int_equal(gives_way(&rule, early, 0, false, NULL), -1);
}

static void first_and_last_step_are_kept_to(void **state)
{
    static const char *const two[] = {"20:9@1", "20:1@1", NULL};
    struct dt_pruner p = rule;
    (void)state;
    p.min_step = 25;
    assert_int_equal(gives_way(&p, two, 0, false, NULL), -1);
    p.min_step = 20;
    assert_int_equal(gives_way(&p, two, 0, false, NULL), 1);
    p.max_step = 20;
    assert_int_equal(gives_way(&p, two, 0, false, NULL), -1);
}

static void new_hyperparameters_get_half_an_interval(void **state)
{
    static const char *const fresh[] = {"from=17 18:9@1 20:9@2", "20:1@1", NULL};
    static const char *const tried[] = {"from=15 16:9@1 20:9@2", "20:1@1", NULL};
    static const char *const waits[] = {"from=nan 16:9@1 20:9@2", "20:1@1", NULL};
    (void)state;
    assert_int_equal(gives_way(&rule, fresh, 0, false, NULL), -1);
    assert_int_equal(gives_way(&rule, tried, 0, false, NULL), 1);
    assert_int_equal(gives_way(&rule, waits, 0, false, NULL), -1);
}

static void only_who_runs_is_gone_on_from(void **state)
{
    static const char *const two[] = {"10:9@2", "over 10:1@1", "10:2@1", NULL};
    static const char *const wide[] = {"10:9@2", "over 10:1@1", "10:2@1", "10:3@1", NULL};
    struct dt_pruner half = rule;
    half.quantile = 0.5;
    (void)state;
    assert_int_equal(gives_way(&rule, two, 0, false, NULL), -1);
    assert_int_equal(gives_way(&half, wide, 0, false, NULL), 2);
    assert_int_equal(gives_way(&rule, two, 1, true, NULL), -1);
}

static int successor(const struct dt_pruner *p, const char *const *texts, bool maximize)
{
    struct members m = members(texts);
    gsl_rng *rng = dt_rng_new(1);
    int one = dt_population_successor(p, m.v, m.n, 5, maximize, rng);
    gsl_rng_free(rng);
    for (size_t i = 0; i < m.n; i++)
        free((double *)m.v[i].curve.step);
    return one;
}

static void a_successor_goes_on_from_the_best_that_runs(void **state)
{
    static const char *const four[] = {"10:3@2",   "over 10:1@1", "5:2@1 9:7@8",
                                       "10:nan@1", "begin=2",     NULL};
    static const char *const none[] = {"over 10:1@1", "10:nan@1", "begin=2", NULL};
    struct dt_pruner last = rule;
    (void)state;
    assert_int_equal(successor(&rule, four, false), 2); /* by what it had come to at that time */
    assert_int_equal(successor(&rule, four, true), 0);
    assert_int_equal(successor(&rule, none, false), -1);
    last.max_step = 9;
    assert_int_equal(successor(&last, four, true), -1);
}

static void no_number_is_worst_and_equals_stay(void **state)
{
    static const char *const nan_value[] = {"10:nan@2", "10:1@1", NULL};
    static const char *const same[] = {"10:1@2", "10:1@1", NULL};
    (void)state;
    assert_int_equal(gives_way(&rule, nan_value, 0, false, NULL), 1);
    assert_int_equal(gives_way(&rule, nan_value, 0, true, NULL), 1);
    assert_int_equal(gives_way(&rule, same, 0, false, NULL), -1);
}

/* ---- the next hyperparameters ---- */

struct fixture {
    struct dt_spec *spec;
    struct dt_space *space;
    struct dt_study *s;
    double now;
};

static struct fixture study(const char *text)
{
    struct fixture f = {.now = 1000};
    struct dt_error e = DT_ERROR_INIT;
    struct json_object *json = dt_json_parse(text, "S.json", &e);
    f.spec = json ? dt_spec_parse(json, text, "S.json", &e) : NULL;
    if (!f.spec)
        fail_msg("%s", e.text);
    f.space = dt_space_new(f.spec->params, f.spec->nparams, &f.spec->constraints, NULL, 0, NULL,
                           NULL, NULL, 0, &e);
    f.s = f.space ? dt_study_new(f.spec, f.space, NULL, &e) : NULL;
    if (!f.s)
        fail_msg("%s", e.text);
    json_object_put(json);
    return f;
}

static void done(struct fixture *f)
{
    dt_study_free(f->s);
    dt_space_free(f->space);
    dt_spec_free(f->spec);
}

/* Counts how often each text comes of so many streams; `expected` has all of them, in the order of
 * the alphabet. */
static void perturbs(const char *hyperparameters, const char *constraints, const double *from,
                     double resample, const char *expected)
{
    char *text = dt_xasprintf("{\"hyperparameters\": {%s}, \"constraints\": [%s]}", hyperparameters,
                              constraints);
    struct fixture f = study(text);
    struct dt_strv seen = DT_STRV_INIT;
    double x[4];
    for (uint64_t stream = 0; stream < 200; stream++) {
        dt_perturb(f.space, from, resample, stream, x);
        for (size_t i = 0; i < f.space->n; i++)
            assert_true(isnan(x[i]) || dt_param_contains(&f.space->params[i], x[i]));
        char *one = dt_config_text(f.space, x);
        size_t at = 0;
        while (at < seen.n && strcmp(seen.v[at], one) < 0)
            at++;
        bool known = at < seen.n && strcmp(seen.v[at], one) == 0;
        if (!known) {
            dt_strv_add(&seen, "");
            char *last = seen.v[seen.n - 1];
            memmove(seen.v + at + 1, seen.v + at, (seen.n - 1 - at) * sizeof(char *));
            seen.v[at] = one;
            free(last);
        } else {
            free(one);
        }
    }
    char *all = dt_strv_join(&seen, ", ");
    assert_string_equal(all, expected);
    free(all);
    dt_strv_free(&seen);
    free(text);
    done(&f);
}

static void numbers_go_up_or_down_a_fifth(void **state)
{
    (void)state;
    perturbs("\"lr\": {\"type\": \"float\", \"low\": 0.001, \"high\": 1, \"log\": true}", "",
             (double[]){0.5}, 0, "lr=0.4, lr=0.6");
    perturbs("\"lr\": {\"type\": \"float\", \"low\": 0.001, \"high\": 1}", "", (double[]){0.9}, 0,
             "lr=0.72, lr=1");
    perturbs("\"lr\": {\"type\": \"float\", \"low\": 0.001, \"high\": 1}", "", (double[]){1}, 0,
             "lr=0.8"); /* there is no more room above */
    perturbs("\"batch\": {\"type\": \"int\", \"low\": 32, \"high\": 64, \"step\": 8}", "",
             (double[]){48}, 0, "batch=40, batch=56");
    perturbs("\"n\": {\"type\": \"int\", \"low\": 1, \"high\": 9}", "", (double[]){2}, 0,
             "n=1, n=3");
}

static void of_listed_values_a_neighbour_is_taken(void **state)
{
    (void)state;
    perturbs("\"opt\": {\"choices\": [\"a\", \"b\", \"c\", \"d\"]}", "", (double[]){1}, 0,
             "opt=a, opt=c");
    perturbs("\"n\": {\"choices\": [1, 10, 100]}", "", (double[]){100}, 0, "n=10");
    perturbs("\"n\": {\"choices\": [7]}", "", (double[]){7}, 0, "n=7");
    perturbs("\"n\": {\"choices\": [1, 2, 4, 8]}", "", (double[]){8}, 1, "n=1, n=2, n=4, n=8");
}

static void constraints_and_conditions_hold(void **state)
{
    (void)state;
    perturbs("\"a\": {\"choices\": [1, 2, 3]}, \"b\": {\"choices\": [1, 2, 3]}", "\"a <= b\"",
             (double[]){2, 2}, 0, "a=1 b=1, a=1 b=3, a=3 b=3");
    perturbs("\"a\": {\"choices\": [1]}, \"b\": {\"choices\": [5]}", "", (double[]){1, 5}, 0.5,
             "a=1 b=5");
    perturbs("\"opt\": {\"choices\": [\"sgd\", \"adam\"]}, \"m\": {\"choices\": [1, 2], \"when\": "
             "\"opt == 'sgd'\"}",
             "", (double[]){1, NAN}, 0, "opt=sgd m=1, opt=sgd m=2");
}

/* ---- a study's course ---- */

#define SPEC                                                                                       \
    "{\"hyperparameters\": {\"lr\": {\"type\": \"float\", \"low\": 0.001, \"high\": 1, \"log\": "  \
    "true}}, \"dt\": {\"workers\": {\"low\": 1, \"high\": 4}}, \"objective\": {\"metric\": "       \
    "\"loss\", \"goal\": \"minimize\"}, \"search\": {\"algorithm\": \"random\", \"parallel\": 4, " \
    "\"seed\": 3, \"early_stop\": {\"rule\": \"pbt\", \"interval\": 10, \"resample\": 0}}}"

/* The events as JSON, and decisions.v[i]: what was decided after i + 1 of them. */
struct history {
    struct dt_strv records, decisions;
};

static void history_free(struct history *h)
{
    dt_strv_free(&h->records);
    dt_strv_free(&h->decisions);
}

static struct dt_event event(enum dt_event_kind kind, int trial)
{
    struct dt_event ev = DT_EVENT(kind);
    ev.trial = trial;
    ev.run = 1;
    return ev;
}

/* What is decided next, as text; whom to end is not journaled and is passed over. Caller frees. */
static char *decision(struct fixture *f)
{
    static const char *const words[] = {
        [DT_ACTION_NONE] = "wait",     [DT_ACTION_CREATE] = "create", [DT_ACTION_SUBMIT] = "submit",
        [DT_ACTION_CANCEL] = "cancel", [DT_ACTION_PRUNE] = "prune",   [DT_ACTION_STOP] = "stop",
        [DT_ACTION_FINISH] = "finish"};
    struct dt_error e = DT_ERROR_INIT;
    for (;;) {
        struct dt_action a;
        if (dt_study_decide(f->s, f->now, &a, &e) < 0)
            fail_msg("%s", e.text);
        char *config = a.x ? dt_config_text(f->space, a.x) : dt_xstrdup("-");
        bool cancel = a.kind == DT_ACTION_CANCEL;
        char *text = dt_xasprintf("%s %d parent %d instead %d %s: %s",
                                  cancel ? "cancel" : words[a.kind], a.trial, a.parent, a.instead,
                                  config, a.why ? a.why : "-");
        if (cancel)
            dt_study_trial(f->s, a.trial)->cancelling = true;
        free(config);
        dt_action_free(&a);
        if (!cancel)
            return text;
        free(text);
    }
}

/* Applies the event and keeps it, as a journal does. */
static void note(struct fixture *f, struct history *h, struct dt_event ev)
{
    struct dt_error e = DT_ERROR_INIT;
    ev.t = f->now;
    struct json_object *o = dt_event_to_json(&ev);
    dt_strv_take(&h->records, dt_json_text(o));
    json_object_put(o);
    if (dt_study_apply(f->s, &ev, &e) < 0)
        fail_msg("%s", e.text);
    dt_event_free(&ev);
    dt_strv_take(&h->decisions, decision(f));
}

/* Does what is decided until there is nothing to do. */
static void go(struct fixture *f, struct history *h)
{
    for (;;) {
        struct dt_action a;
        struct dt_error e = DT_ERROR_INIT;
        if (dt_study_decide(f->s, f->now, &a, &e) < 0)
            fail_msg("%s", e.text);
        struct dt_event ev = event(DT_EVENT_CREATED, a.trial);
        enum dt_action_kind kind = a.kind;
        ev.parent = a.parent;
        ev.instead = a.instead;
        ev.text = kind != DT_ACTION_SUBMIT && a.why ? dt_xstrdup(a.why) : NULL;
        if (kind == DT_ACTION_CREATE) {
            ev.trial = (int)f->s->n + 1;
            ev.config = dt_config_to_json(f->space, a.x);
        } else {
            ev.kind = kind == DT_ACTION_SUBMIT  ? DT_EVENT_SUBMITTED
                      : kind == DT_ACTION_PRUNE ? DT_EVENT_PRUNED
                                                : DT_EVENT_STOPPING;
        }
        dt_action_free(&a);
        if (kind == DT_ACTION_NONE || kind == DT_ACTION_FINISH) {
            dt_event_free(&ev);
            return;
        }
        note(f, h, ev);
        if (kind == DT_ACTION_SUBMIT)
            note(f, h, event(DT_EVENT_STARTED, ev.trial));
    }
}

static void reports(struct fixture *f, struct history *h, int trial, double step, double loss)
{
    struct dt_event ev = event(DT_EVENT_METRIC, trial);
    ev.text = dt_xstrdup("loss");
    ev.value = loss;
    ev.step = step;
    f->now += 1;
    note(f, h, ev);
    go(f, h);
}

static void ends(struct fixture *f, struct history *h, int trial, enum dt_cause cause)
{
    struct dt_event ev = event(DT_EVENT_ENDED, trial);
    ev.cause = cause;
    ev.run_s = 10;
    note(f, h, ev);
    go(f, h);
}

static const struct dt_trial *trial(const struct fixture *f, int id)
{
    return dt_study_trial(f->s, id);
}

static void a_place_goes_on_from_the_best(void **state)
{
    struct fixture f = study(SPEC);
    struct history j = {DT_STRV_INIT, DT_STRV_INIT};
    (void)state;
    go(&f, &j);
    assert_int_equal(f.s->n, 4);
    for (int i = 1; i <= 4; i++)
        reports(&f, &j, i, 5, i);
    for (int i = 1; i <= 3; i++)
        reports(&f, &j, i, 10, i / 2.0);
    assert_int_equal(f.s->n, 4);
    reports(&f, &j, 4, 10, 3);
    const struct dt_trial *gone = trial(&f, 4), *child = trial(&f, 5);
    assert_string_equal(gone->pruned, "at step 10 3 of 3 others were better");
    assert_int_equal(f.s->n, 5);
    assert_true(child->parent == 1 && child->instead == 4 && child->state == DT_TRIAL_CREATED);
    assert_true(isnan(child->from));                /* its place is free once the other has ended */
    assert_true(child->x[0] == trial(&f, 1)->x[0]); /* as many workers */
    double ratio = child->x[1] / trial(&f, 1)->x[1];
    assert_true(fabs(ratio - 1.2) < 1e-3 || fabs(ratio - 0.8) < 1e-3);
    reports(&f, &j, 1, 12, 0.4);
    ends(&f, &j, 4, DT_CAUSE_CANCELLED);
    assert_true(trial(&f, 4)->status == DT_STATUS_PRUNED);
    assert_true(trial(&f, 5)->state == DT_TRIAL_STARTED && trial(&f, 5)->from == 12);
    reports(&f, &j, 5, 11, 0.45); /* from a checkpoint at 10 */
    size_t n;
    struct dt_stage *stages = dt_study_schedule(f.s, trial(&f, 5), &n);
    assert_true(n == 2 && stages[0].t->id == 1 && stages[0].from == 0 && stages[1].from == 11);
    free(stages);
    for (int i = 1; i <= 5; i++)
        if (i != 4)
            ends(&f, &j, i, DT_CAUSE_OK);
    struct dt_merit *front = dt_report_front(f.s, &n);
    for (size_t i = 0; i < n; i++)
        assert_int_not_equal(front[i].t->id, 5); /* it did only the rest of the work */
    assert_true(n > 0);
    free(front);
    struct json_object *schedule = dt_report_schedule(f.s);
    assert_null(schedule); /* the best is its parent */
    char *changes = dt_trial_changes(f.s, trial(&f, 5));
    assert_true(dt_starts_with(changes, "lr ") && strstr(changes, " -> "));
    free(changes);
    history_free(&j);
    done(&f);
}

static void members_begin_with_what_the_search_suggests(void **state)
{
    static const char *const algorithms[] = {"random", "sobol", "grid", "bayes", "joint"};
    (void)state;
    for (size_t i = 0; i < COUNT(algorithms); i++) {
        struct dt_strv parts = DT_STRV_INIT;
        dt_strv_split(&parts, SPEC, "\"");
        for (size_t k = 0; k < parts.n; k++) {
            bool name = strcmp(parts.v[k], "random") == 0;
            char *part = name ? dt_xstrdup(algorithms[i]) : dt_xstrdup(parts.v[k]);
            free(parts.v[k]);
            parts.v[k] = part;
        }
        char *text = dt_strv_join(&parts, "\"");
        struct fixture f = study(text);
        struct history j = {DT_STRV_INIT, DT_STRV_INIT};
        go(&f, &j);
        assert_int_equal(f.s->n, 4); /* all at once, however few would learn from each other */
        for (int a = 1; a <= 4; a++)
            for (int b = 1; b < a; b++)
                assert_false(dt_config_equal(trial(&f, a)->x, trial(&f, b)->x, 2));
        history_free(&j);
        done(&f);
        free(text);
        dt_strv_free(&parts);
    }
}

static void the_study_ends_when_all_members_are_over(void **state)
{
    struct fixture f = study(SPEC);
    struct history j = {DT_STRV_INIT, DT_STRV_INIT};
    (void)state;
    go(&f, &j);
    for (int i = 1; i <= 4; i++)
        reports(&f, &j, i, 10, 1);
    for (int i = 1; i <= 3; i++)
        ends(&f, &j, i, i == 2 ? DT_CAUSE_CANCELLED : DT_CAUSE_OK);
    assert_int_equal(f.s->n, 4); /* who is over is not replaced, nor measured again */
    reports(&f, &j, 4, 20, 9);
    assert_null(trial(&f, 4)->pruned); /* nobody else runs */
    assert_null(f.s->stop_reason);
    ends(&f, &j, 4, DT_CAUSE_OK);
    assert_string_equal(f.s->stop_reason, "population: all 4 members are over");
    assert_int_equal(dt_study_best(f.s)->id, 1);
    history_free(&j);
    done(&f);
}

static void the_place_of_a_failed_one_goes_on_from_the_best(void **state)
{
    struct fixture f = study(SPEC);
    struct history j = {DT_STRV_INIT, DT_STRV_INIT};
    (void)state;
    go(&f, &j);
    ends(&f, &j, 4, DT_CAUSE_EXIT);
    assert_int_equal(f.s->n, 4); /* nobody has reported anything yet */
    for (int i = 1; i <= 3; i++)
        reports(&f, &j, i, 5, i == 2 ? 1 : 2);
    assert_int_equal(f.s->n, 5);
    const struct dt_trial *child = trial(&f, 5);
    assert_true(child->parent == 1 && child->instead == 4 && child->from == 5);
    assert_string_equal(child->why,
                        "pbt: goes on from trial 1 in the place of trial 4, which failed");
    ends(&f, &j, 3, DT_CAUSE_OK);
    for (int id = 5; id <= 7; id++) { /* three times in a row, from the best by now */
        ends(&f, &j, id, DT_CAUSE_EXIT);
        assert_int_equal(f.s->n, id < 7 ? id + 1 : 7);
    }
    assert_true(trial(&f, 7)->parent == 2 && trial(&f, 7)->instead == 6);
    for (int i = 1; i <= 2; i++)
        ends(&f, &j, i, DT_CAUSE_OK);
    assert_string_equal(f.s->stop_reason, "population: all 4 members are over");
    history_free(&j);
    done(&f);
}

/* In layout steps, where no trial took as little time as is left. */
static void members_that_are_too_late_end_the_study(void **state)
{
    struct fixture f = study(SPEC);
    struct history j = {DT_STRV_INIT, DT_STRV_INIT};
    (void)state;
    f.s->closes = 5000;
    for (int i = 1; i <= 4; i++) {
        struct dt_event ev = event(DT_EVENT_CREATED, i);
        ev.config = dt_json_parse("{\"workers\": 1, \"lr\": 0.5}", "c", NULL);
        note(&f, &j, ev);
        ev = event(DT_EVENT_DEFERRED, i);
        ev.text = dt_xstrdup("too little time is left");
        ev.until = 5060;
        note(&f, &j, ev);
    }
    char *next = decision(&f);
    assert_string_equal(next,
                        "stop 0 parent 0 instead 0 -: time: too little of the allocation's is "
                        "left for another trial");
    free(next);
    history_free(&j);
    done(&f);
}

static void any_other_study_has_no_schedule(void **state)
{
    struct fixture f = study("{\"dt\": {\"workers\": {\"low\": 1, \"high\": 4}}}");
    struct history j = {DT_STRV_INIT, DT_STRV_INIT};
    (void)state;
    go(&f, &j);
    reports(&f, &j, 1, 5, 1);
    ends(&f, &j, 1, DT_CAUSE_OK);
    assert_int_equal(dt_study_best(f.s)->id, 1);
    assert_null(dt_report_schedule(f.s));
    history_free(&j);
    done(&f);
}

static void at_the_maximum_nobody_gives_way(void **state)
{
    struct fixture f = study(SPEC);
    struct history j = {DT_STRV_INIT, DT_STRV_INIT};
    (void)state;
    f.s->stopping.max_configs = 4;
    go(&f, &j);
    for (int i = 1; i <= 4; i++)
        reports(&f, &j, i, 10, i);
    assert_int_equal(f.s->n, 4);
    assert_null(trial(&f, 4)->pruned);
    history_free(&j);
    done(&f);
}

static void who_has_no_checkpoint_to_go_on_from_begins_anew(void **state)
{
    struct fixture f = study(SPEC);
    struct history j = {DT_STRV_INIT, DT_STRV_INIT};
    (void)state;
    go(&f, &j);
    for (int i = 1; i <= 4; i++)
        reports(&f, &j, i, 10, i);
    struct dt_event ev = event(DT_EVENT_ENDED, 4);
    ev.cause = DT_CAUSE_CANCELLED;
    note(&f, &j, ev);
    ev = event(DT_EVENT_SUBMITTED, 5);
    ev.text = dt_xstrdup("trial 1 has written no checkpoint");
    note(&f, &j, ev);
    note(&f, &j, event(DT_EVENT_STARTED, 5));
    assert_true(trial(&f, 5)->from == 0 && trial(&f, 5)->alone);
    size_t n;
    struct dt_stage *stages = dt_study_schedule(f.s, trial(&f, 5), &n);
    assert_true(n == 1 && stages[0].t->id == 5 && stages[0].from == 0);
    free(stages);
    for (int i = 1; i <= 3; i++)
        reports(&f, &j, i, 20, i / 2.0);
    reports(&f, &j, 5, 10, 9); /* and counts from the beginning on */
    assert_string_equal(trial(&f, 5)->pruned, "at step 10 3 of 3 others were better");
    history_free(&j);
    done(&f);
}

/* Its parent may come to its end before there is room for it: then there is nothing left to do. */
static void who_goes_on_from_a_finished_one_has_not_failed(void **state)
{
    struct fixture f = study(SPEC);
    struct history j = {DT_STRV_INIT, DT_STRV_INIT};
    (void)state;
    go(&f, &j);
    for (int i = 1; i <= 4; i++)
        reports(&f, &j, i, 10, i);
    ends(&f, &j, 1, DT_CAUSE_OK);
    ends(&f, &j, 4, DT_CAUSE_CANCELLED);
    assert_int_equal(trial(&f, 5)->parent, 1);
    ends(&f, &j, 5, DT_CAUSE_OK);
    assert_int_equal(trial(&f, 5)->cause, DT_CAUSE_NO_METRIC);
    assert_int_equal(trial(&f, 5)->status, DT_STATUS_VOID);
    ends(&f, &j, 2, DT_CAUSE_OK);
    history_free(&j);
    done(&f);
}

static void who_was_interrupted_gets_half_an_interval(void **state)
{
    struct fixture f = study(SPEC);
    struct history j = {DT_STRV_INIT, DT_STRV_INIT};
    (void)state;
    go(&f, &j);
    for (int i = 1; i <= 4; i++)
        reports(&f, &j, i, 7, i);
    struct dt_event ev = event(DT_EVENT_STOPPING, 0);
    ev.text = dt_xstrdup("interrupted");
    ev.interrupted = true;
    note(&f, &j, ev);
    for (int i = 1; i <= 4; i++) {
        ev = event(DT_EVENT_ENDED, i);
        ev.cause = DT_CAUSE_INTERRUPTED;
        note(&f, &j, ev);
    }
    note(&f, &j, event(DT_EVENT_RESUMED, 0));
    go(&f, &j);
    for (int i = 1; i <= 4; i++)
        reports(&f, &j, i, 11, i);
    assert_int_equal(f.s->n, 4);
    for (int i = 1; i <= 4; i++)
        reports(&f, &j, i, 20, i);
    assert_int_equal(f.s->n, 5);
    assert_true(trial(&f, 5)->parent == 1 && trial(&f, 5)->instead == 4);
    history_free(&j);
    done(&f);
}

static void a_metric_without_a_step_ends_it(void **state)
{
    struct fixture f = study(SPEC);
    struct history j = {DT_STRV_INIT, DT_STRV_INIT};
    (void)state;
    go(&f, &j);
    reports(&f, &j, 2, NAN, 5);
    assert_true(
        dt_starts_with(f.s->stop_reason, "population: trial 2 reported loss without a step"));
    history_free(&j);
    done(&f);
}

static void events_of_no_population_are_refused(void **state)
{
    struct fixture f = study(SPEC);
    struct history j = {DT_STRV_INIT, DT_STRV_INIT};
    struct dt_error e = DT_ERROR_INIT;
    (void)state;
    go(&f, &j);
    struct dt_event ev = event(DT_EVENT_CREATED, 5);
    ev.parent = 1;
    ev.instead = 2;
    assert_int_equal(dt_study_apply(f.s, &ev, &e), -1);
    assert_string_equal(e.text, "trial 5 cannot go on from trial 1 in the place of trial 2");
    ev = event(DT_EVENT_PRUNED, 4);
    ev.parent = 9;
    ev.text = dt_xstrdup("damaged");
    assert_int_equal(dt_study_apply(f.s, &ev, &e), -1);
    assert_string_equal(e.text, "trial 4 cannot give way to trial 9");
    dt_event_free(&ev);
    dt_error_clear(&e);
    history_free(&j);
    done(&f);
}

/* Trains all members to step 60 by dice; whoever goes on from another begins a little before it. */
static void train(struct fixture *f, struct history *h, unsigned dice)
{
    double at[64] = {0};
    go(f, h);
    for (int turns = 0; turns < 2000 && !f->s->stop_reason; turns++) {
        const struct dt_trial *t = trial(f, 1 + rand_r(&dice) % (int)f->s->n);
        size_t id = (size_t)t->id;
        if (t->state != DT_TRIAL_STARTED || id >= COUNT(at))
            continue;
        if (at[id] == 0)
            at[id] = fmax(0, floor(t->from) - rand_r(&dice) % 3);
        at[id] += 1 + rand_r(&dice) % 3;
        if (t->pruned && rand_r(&dice) % 2)
            ends(f, h, t->id, DT_CAUSE_CANCELLED);
        else if (at[id] >= 60)
            ends(f, h, t->id, DT_CAUSE_OK);
        else
            reports(f, h, t->id, at[id], rand_r(&dice) % 9 ? rand_r(&dice) / 1e9 : NAN);
    }
}

static void a_resumed_study_goes_on_as_it_would_have(void **state)
{
    size_t children = 0;
    (void)state;
    for (unsigned dice = 1; dice <= 10; dice++) {
        struct fixture f = study(SPEC);
        struct history h = {DT_STRV_INIT, DT_STRV_INIT};
        train(&f, &h, dice);
        assert_string_equal(f.s->stop_reason ? f.s->stop_reason : "-",
                            "population: all 4 members are over");
        children += f.s->n - 4;
        for (size_t n = 1; n <= h.records.n; n += 3) {
            struct fixture g = study(SPEC);
            struct dt_error e = DT_ERROR_INIT;
            for (size_t i = 0; i < n; i++) {
                struct json_object *o = dt_json_parse(h.records.v[i], "record", &e);
                assert_int_equal(dt_study_apply_record(g.s, o, &e), 0);
                json_object_put(o);
            }
            g.now = g.s->t_last;
            char *next = decision(&g);
            assert_string_equal(next, h.decisions.v[n - 1]);
            free(next);
            done(&g);
        }
        history_free(&h);
        done(&f);
    }
    assert_true(children >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_worst_gives_way_to_the_best),
        cmocka_unit_test(others_count_as_far_as_they_were),
        cmocka_unit_test(who_joins_or_leaves_later_changes_nothing),
        cmocka_unit_test(who_has_reported_nothing_may_be_worse),
        cmocka_unit_test(a_member_is_looked_at_once_a_step),
        cmocka_unit_test(first_and_last_step_are_kept_to),
        cmocka_unit_test(new_hyperparameters_get_half_an_interval),
        cmocka_unit_test(only_who_runs_is_gone_on_from),
        cmocka_unit_test(a_successor_goes_on_from_the_best_that_runs),
        cmocka_unit_test(no_number_is_worst_and_equals_stay),
        cmocka_unit_test(numbers_go_up_or_down_a_fifth),
        cmocka_unit_test(of_listed_values_a_neighbour_is_taken),
        cmocka_unit_test(constraints_and_conditions_hold),
        cmocka_unit_test(a_place_goes_on_from_the_best),
        cmocka_unit_test(members_begin_with_what_the_search_suggests),
        cmocka_unit_test(the_study_ends_when_all_members_are_over),
        cmocka_unit_test(the_place_of_a_failed_one_goes_on_from_the_best),
        cmocka_unit_test(members_that_are_too_late_end_the_study),
        cmocka_unit_test(any_other_study_has_no_schedule),
        cmocka_unit_test(at_the_maximum_nobody_gives_way),
        cmocka_unit_test(who_has_no_checkpoint_to_go_on_from_begins_anew),
        cmocka_unit_test(who_goes_on_from_a_finished_one_has_not_failed),
        cmocka_unit_test(who_was_interrupted_gets_half_an_interval),
        cmocka_unit_test(a_metric_without_a_step_ends_it),
        cmocka_unit_test(events_of_no_population_are_refused),
        cmocka_unit_test(a_resumed_study_goes_on_as_it_would_have),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
