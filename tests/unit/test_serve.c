/* Another program chooses the hyperparameters: what it asks for in the core of a study, and the conversation with it. */
#include "serve/lines.h"
#include "serve/serve.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define MAX_EVENTS 400

/* ---- helpers ---- */

struct fixture {
    struct dt_spec *spec;
    struct dt_space *space;
    struct dt_study *s;
    double now;
    struct json_object *journal[MAX_EVENTS];
    size_t n;
};

static const double submitted[] = {4, NAN, NAN, NAN}; /* workers lr opt momentum */

static struct dt_study *new_study(const struct fixture *f)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_study *s = dt_study_new(f->spec, f->space, submitted, &e);
    assert_non_null(s);
    return s;
}

/* workers 1 to 4; lr, opt and, of sgd, momentum. The job as submitted has 4 workers. */
static struct fixture study(const char *sections)
{
    struct fixture f = {.now = 1000};
    struct dt_error e = DT_ERROR_INIT;
    char *text = dt_xasprintf(
        "{\"dt\": {\"workers\": {\"low\": 1, \"high\": 4}}, \"hyperparameters\": {"
        "\"lr\": {\"type\": \"float\", \"low\": 0, \"high\": 1},"
        "\"opt\": {\"choices\": [\"sgd\", \"adam\"]},"
        "\"momentum\": {\"type\": \"float\", \"low\": 0, \"high\": 0.9, \"step\": 0.1,"
        "               \"when\": \"opt == 'sgd'\"}}%s%s}",
        *sections ? ", " : "", sections);
    struct json_object *json = dt_json_parse(text, "S.json", &e);
    f.spec = json ? dt_spec_parse(json, text, "S.json", &e) : NULL;
    if (!f.spec)
        fail_msg("%s", e.text);
    free(f.spec->algorithm);
    f.spec->algorithm = dt_xstrdup("external");
    f.space = dt_space_new(f.spec->params, f.spec->nparams, &f.spec->constraints, NULL, 0, NULL, NULL,
                           NULL, 0, &e);
    assert_non_null(f.space);
    f.s = new_study(&f);
    json_object_put(json);
    free(text);
    return f;
}

static void done(struct fixture *f)
{
    for (size_t i = 0; i < f->n; i++)
        json_object_put(f->journal[i]);
    dt_study_free(f->s);
    dt_space_free(f->space);
    dt_spec_free(f->spec);
}

/* Takes an event as run.c does: it is in the journal, then in the state. */
static void apply(struct fixture *f, struct dt_event ev)
{
    struct dt_error e = DT_ERROR_INIT;
    ev.t = f->now;
    assert_true(f->n < MAX_EVENTS);
    f->journal[f->n++] = dt_event_to_json(&ev);
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

static struct dt_event asked(const char *id, const char *hyperparameters)
{
    struct dt_event ev = event(DT_EVENT_ASKED, 0);
    ev.ask = json_object_new_string(id);
    ev.config = dt_json_parse(hyperparameters, "h", NULL);
    return ev;
}

/* A request for lr=X with adam. */
static void ask(struct fixture *f, const char *id, double lr)
{
    char *text = dt_xasprintf("{\"lr\": %g, \"opt\": \"adam\"}", lr);
    apply(f, asked(id, text));
    free(text);
}

/* The decision as text, and what comes of it where that is to create or to submit. Caller frees. */
static char *step(struct fixture *f, bool act)
{
    struct dt_action a;
    struct dt_error e = DT_ERROR_INIT;
    if (dt_study_decide(f->s, f->now, &a, &e) < 0)
        fail_msg("%s", e.text);
    char *config = a.x ? dt_config_text(f->space, a.x) : NULL, *text = NULL;
    struct dt_event ev = event(DT_EVENT_CREATED, (int)f->s->n + 1);
    switch (a.kind) {
    case DT_ACTION_CREATE:
        text = dt_xasprintf("create %s for %s", config, json_object_get_string(f->s->asks[a.ask - 1].id));
        ev.ask = json_object_get(f->s->asks[a.ask - 1].id);
        ev.config = dt_config_to_json(f->space, a.x);
        ev.text = dt_xstrdup(a.why);
        break;
    case DT_ACTION_SUBMIT:
        text = dt_xasprintf("submit %d", a.trial);
        ev = event(DT_EVENT_SUBMITTED, a.trial);
        ev.run = f->s->trials[a.trial - 1].run;
        ev.job = 1;
        break;
    case DT_ACTION_CANCEL:
        text = dt_xasprintf("cancel %d", a.trial);
        break;
    case DT_ACTION_STOP:
        text = dt_xasprintf("stop: %s", a.why);
        break;
    case DT_ACTION_REALLOCATE:
    case DT_ACTION_CHECKPOINT:
    case DT_ACTION_KEEP:
    case DT_ACTION_SHRINK:
    case DT_ACTION_SHED:
    case DT_ACTION_PRUNE:
    case DT_ACTION_FINISH:
        text = dt_xstrdup("finish");
        break;
    case DT_ACTION_NONE:
        text = dt_xstrdup("wait");
        break;
    }
    if (act && (a.kind == DT_ACTION_CREATE || a.kind == DT_ACTION_SUBMIT))
        apply(f, ev);
    else
        dt_event_free(&ev);
    free(config);
    dt_action_free(&a);
    return text;
}

static void expect(struct fixture *f, const char *expected)
{
    char *text = step(f, true);
    assert_string_equal(text, expected);
    free(text);
}

static void go(struct fixture *f)
{
    size_t before;
    do {
        before = f->n;
        free(step(f, true));
    } while (f->n > before);
}

static void started(struct fixture *f, int trial)
{
    apply(f, event(DT_EVENT_STARTED, trial));
}

static void ended(struct fixture *f, int trial, enum dt_cause cause, double run_s)
{
    struct dt_event ev = event(DT_EVENT_ENDED, trial);
    ev.run = f->s->trials[trial - 1].run;
    ev.cause = cause;
    ev.run_s = run_s;
    apply(f, ev);
}

static void metric(struct fixture *f, int trial, double step, double value)
{
    struct dt_event ev = event(DT_EVENT_METRIC, trial);
    ev.text = dt_xstrdup("accuracy");
    ev.step = step;
    ev.value = value;
    apply(f, ev);
}

static void pruned(struct fixture *f, const char *id, int trial)
{
    struct dt_event ev = event(DT_EVENT_PRUNED, trial);
    if (!trial)
        ev.ask = json_object_new_string(id);
    ev.text = dt_xstrdup("enough");
    apply(f, ev);
}

static double workers(const struct fixture *f, int trial)
{
    return f->s->trials[trial - 1].x[0];
}

#define ACCURACY "\"objective\": {\"metric\": \"accuracy\", \"goal\": \"maximize\"}"

/* ---- the core ---- */

static void requests_wait_for_room_in_order(void **state)
{
    struct fixture f = study("\"search\": {\"parallel\": 2}");
    (void)state;
    expect(&f, "wait");
    ask(&f, "a", 0.1);
    ask(&f, "b", 0.2);
    ask(&f, "c", 0.3);
    expect(&f, "create workers=4 lr=0.1 opt=adam for a");
    expect(&f, "submit 1");
    expect(&f, "create workers=1 lr=0.2 opt=adam for b");
    expect(&f, "submit 2");
    expect(&f, "wait");
    ended(&f, 2, DT_CAUSE_OK, 10);
    expect(&f, "create workers=2 lr=0.3 opt=adam for c");
    expect(&f, "submit 3");
    ended(&f, 3, DT_CAUSE_OK, 10);
    expect(&f, "wait");
    f.s->no_more = true;
    expect(&f, "wait");
    ended(&f, 1, DT_CAUSE_OK, 10);
    assert_string_equal(f.s->trials[0].why, "asked for, DT configuration as submitted");
    assert_int_equal(f.s->asks[1].trial, 2);
    assert_null(dt_study_baseline(f.s));
    expect(&f, "stop: no more was asked for");
    done(&f);
}

/* A run of so many seconds, by the workers: 3 are the fastest. */
static void finish_by_law(struct fixture *f, int trial, bool by_metric)
{
    static const double seconds[] = {0, 40, 22, 15, 30};
    double run_s = seconds[(int)workers(f, trial)];
    started(f, trial);
    for (int i = 1; by_metric && i <= 3; i++) {
        f->now += run_s / 3;
        metric(f, trial, i, 0.5 + 0.001 * i);
    }
    ended(f, trial, DT_CAUSE_OK, run_s);
}

static void the_fastest_dt_configuration_is_found(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct fixture f = study(k ? ACCURACY : "");
        bool seen[5] = {false};
        for (int i = 1; i <= 12; i++) {
            char *id = dt_xasprintf("%d", i);
            ask(&f, id, 0.05 * i);
            go(&f);
            finish_by_law(&f, i, k == 1);
            seen[(int)workers(&f, i)] = true;
            free(id);
        }
        assert_true(seen[3] && seen[1] + seen[2] + seen[4] >= 2);
        for (int i = 9; i <= 12; i++)
            assert_true(workers(&f, i) == 3);
        done(&f);
    }
}

/* More often than there are DT configurations. */
static void the_same_hyperparameters_may_be_asked_for_again(void **state)
{
    struct fixture f = study("");
    (void)state;
    for (int i = 1; i <= 8; i++) {
        char *id = dt_xasprintf("%d", i);
        ask(&f, id, 0.5);
        go(&f);
        assert_int_equal(f.s->n, i);
        finish_by_law(&f, i, false);
        free(id);
    }
    for (int i = 5; i <= 8; i++)
        assert_true(workers(&f, i) == 3);
    done(&f);
}

static void requests_are_checked(void **state)
{
    static const struct {
        const char *json, *error;
    } cases[] = {
        {"[1]", "hyperparameters must be an object like {\"lr\": 0.01}"},
        {"{\"lr\": 0.1}", "\"opt\" is missing"},
        {"{\"lr\": null, \"opt\": \"adam\"}", "\"lr\": null is no value"},
        {"{\"lx\": 0.1, \"opt\": \"adam\"}",
         "\"lx\" is not a hyperparameter of this study; did you mean \"lr\"?"},
        {"{\"lr\": 0.1, \"opt\": \"adam\", \"workers\": 2}",
         "\"workers\" is part of the DT configuration, which dt-tune chooses"},
        {"{\"lr\": 1.5, \"opt\": \"adam\"}", "\"lr\": 1.5 is outside its domain"},
        {"{\"lr\": \"0.1\", \"opt\": \"adam\"}",
         "configuration: \"lr\": \"0.1\" is not one of its values"},
        {"{\"lr\": 0.1, \"opt\": \"adamw\"}",
         "configuration: \"opt\": \"adamw\" is not one of its values"},
        {"{\"lr\": 0.1, \"opt\": \"sgd\"}", "\"momentum\" is missing"},
        {"{\"lr\": 0.1, \"opt\": \"sgd\", \"momentum\": 0.25}",
         "\"momentum\": 0.25 is outside its domain"},
        {"{\"lr\": 0.1, \"opt\": \"adam\", \"momentum\": 0.2}",
         "configuration: \"momentum\" has a value, but its condition opt == 'sgd' does not hold; leave "
         "it out"},
        {"{\"lr\": 0.1, \"opt\": \"sgd\", \"momentum\": 0.30000000000000004}", NULL},
        {"{\"lr\": 1, \"opt\": \"adam\"}", NULL},
    };
    struct fixture f = study("\"constraints\": [\"lr < 0.9 || workers > 9\"]");
    double x[4];
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_error e = DT_ERROR_INIT;
        struct json_object *o = dt_json_parse(cases[i].json, "h", NULL);
        int rc = dt_study_read_ask(f.s, o, x, &e);
        assert_int_equal(rc, cases[i].error ? -1 : 0);
        if (cases[i].error)
            assert_string_equal(e.text, cases[i].error);
        if (i == COUNT(cases) - 2)
            assert_true(x[3] == 0.3 && isnan(x[0]) && dt_study_can_place(f.s, x));
        dt_error_clear(&e);
        json_object_put(o);
    }
    assert_false(dt_study_can_place(f.s, x)); /* what the constraints leave out beside any workers */
    done(&f);
}

static void limits_hold(void **state)
{
    struct fixture f = study("\"search\": {\"max_configs\": 4, \"deadline\": \"1:40\"}");
    (void)state;
    for (int i = 1; i <= 4; i++) { /* failures are for the other program to see */
        char *id = dt_xasprintf("%d", i);
        ask(&f, id, 0.1 * i);
        go(&f);
        ended(&f, i, i < 4 ? DT_CAUSE_EXIT : DT_CAUSE_CANCELLED, 10);
        free(id);
    }
    ask(&f, "5", 0.5);
    expect(&f, "stop: maximum of configurations: 4 were tried");
    f.now += 101;
    expect(&f, "stop: deadline: the study's time (1:40) is over");
    done(&f);
}

static void a_deadline_passes_while_nobody_asks(void **state)
{
    struct fixture f = study("\"search\": {\"deadline\": \"1:40\"}");
    (void)state;
    apply(&f, event(DT_EVENT_RESUMED, 0));
    f.now += 99;
    expect(&f, "wait");
    f.now += 1;
    expect(&f, "stop: deadline: the study's time (1:40) is over");
    done(&f);
}

static void trials_are_ended_early(void **state)
{
    struct fixture f = study(ACCURACY ", \"search\": {\"parallel\": 3}");
    (void)state;
    ask(&f, "a", 0.1);
    ask(&f, "b", 0.2);
    ask(&f, "c", 0.3);
    ask(&f, "d", 0.4);
    go(&f);
    started(&f, 1);
    metric(&f, 1, 1, 0.25);
    started(&f, 2);
    pruned(&f, "a", 1);
    expect(&f, "cancel 1");
    ended(&f, 1, DT_CAUSE_CANCELLED, 3);
    assert_int_equal(f.s->trials[0].cause, DT_CAUSE_PRUNED);
    assert_int_equal(f.s->trials[0].status, DT_STATUS_PRUNED);
    assert_true(f.s->trials[0].value == 0.25);
    pruned(&f, "b", 2); /* before it said anything: no fault of its configuration */
    ended(&f, 2, DT_CAUSE_CANCELLED, 3);
    assert_int_equal(f.s->trials[1].status, DT_STATUS_VOID);
    pruned(&f, "d", 0); /* before it had a trial */
    expect(&f, "wait");
    assert_int_equal(f.s->asks[3].trial, 0);
    assert_string_equal(f.s->asks[3].withdrawn, "enough");
    done(&f);
}

static void a_fast_end_by_request_is_no_fast_run(void **state)
{
    struct fixture f = study("");
    (void)state;
    ask(&f, "a", 0.1);
    go(&f);
    started(&f, 1);
    pruned(&f, "a", 1);
    ended(&f, 1, DT_CAUSE_CANCELLED, 1);
    assert_int_equal(f.s->trials[0].status, DT_STATUS_VOID);
    assert_true(isnan(f.s->trials[0].value) && isnan(dt_trial_pace(f.s, &f.s->trials[0])));
    done(&f);
}

static void what_was_cut_off_is_run_again_for_its_request(void **state)
{
    struct fixture f = study("");
    (void)state;
    ask(&f, "a", 0.1);
    ask(&f, "b", 0.1);
    go(&f);
    started(&f, 1);
    struct dt_event ev = event(DT_EVENT_STOPPING, 0);
    ev.text = dt_xstrdup("told to end");
    ev.interrupted = true;
    apply(&f, ev);
    ended(&f, 1, DT_CAUSE_INTERRUPTED, 3);
    expect(&f, "finish");
    apply(&f, event(DT_EVENT_RESUMED, 0));
    expect(&f, "submit 1");
    assert_int_equal(f.s->trials[0].ask, 1);
    ended(&f, 1, DT_CAUSE_OK, 3);
    expect(&f, "create workers=1 lr=0.1 opt=adam for b");
    done(&f);
}

static void events_that_make_no_sense_are_refused(void **state)
{
    struct fixture f = study("");
    struct dt_error e = DT_ERROR_INIT;
    struct dt_event again = asked("a", "{\"lr\": 0.1, \"opt\": \"adam\"}"),
                    bad = asked("b", "{\"lr\": 2, \"opt\": \"adam\"}"),
                    created = event(DT_EVENT_CREATED, 2), drop = event(DT_EVENT_PRUNED, 0);
    (void)state;
    ask(&f, "a", 0.1);
    go(&f);
    assert_int_equal(dt_study_apply(f.s, &again, &e), -1);
    assert_string_equal(e.text, "\"a\" was asked for twice");
    assert_int_equal(dt_study_apply(f.s, &bad, &e), -1);
    assert_string_equal(e.text, "\"b\": \"lr\": 2 is outside its domain");
    created.config = dt_json_parse("{\"workers\": 1, \"lr\": 0.1, \"opt\": \"adam\"}", "c", NULL);
    created.ask = json_object_new_string("a");
    assert_int_equal(dt_study_apply(f.s, &created, &e), -1);
    assert_string_equal(e.text, "trial 2 answers \"a\", which nobody asks");
    drop.ask = json_object_new_string("a");
    drop.text = dt_xstrdup("enough");
    assert_int_equal(dt_study_apply(f.s, &drop, &e), -1);
    assert_string_equal(e.text, "\"a\", which has one, is to get no trial");
    assert_int_equal(f.s->n, 1);
    assert_int_equal(f.s->nasks, 1);
    dt_event_free(&again);
    dt_event_free(&bad);
    dt_event_free(&created);
    dt_event_free(&drop);
    dt_error_clear(&e);
    done(&f);
}

/* At every point of its journal a study decides as it did then. */
static void a_replay_decides_as_the_study_did(void **state)
{
    struct fixture f = study(ACCURACY ", \"search\": {\"parallel\": 2}");
    char *then[MAX_EVENTS];
    (void)state;
    for (int i = 1; i <= 8; i++) {
        char *id = dt_xasprintf("%d", i), *late = dt_xasprintf("late %d", i);
        ask(&f, id, 0.1 * i);
        ask(&f, late, 0.1 * i);
        pruned(&f, late, 0);
        go(&f);
        if (i == 4)
            pruned(&f, id, i);
        finish_by_law(&f, i, true);
        free(id);
        free(late);
    }
    struct dt_study *whole = f.s;
    f.s = new_study(&f);
    for (size_t i = 0; i < f.n; i++) {
        struct dt_error e = DT_ERROR_INIT;
        struct json_object *record;
        char *line = dt_json_text(f.journal[i]);
        record = dt_json_parse(line, "record", &e);
        if (dt_study_apply_record(f.s, record, &e) < 0)
            fail_msg("%s", e.text);
        const char *kind = dt_json_str(record, "event", "");
        f.now = dt_json_num(record, "t", 0);
        then[i] = step(&f, false);
        if (i > 0 && strcmp(kind, "created") == 0) { /* it was decided by the event before */
            double x[4];
            assert_int_equal(dt_config_from_json(f.space, dt_json_get(record, "config"), x, &e), 0);
            char *config = dt_config_text(f.space, x);
            char *expected = dt_xasprintf("create %s for %s", config, dt_json_str(record, "ask", ""));
            assert_string_equal(then[i - 1], expected);
            free(config);
            free(expected);
        }
        json_object_put(record);
        free(line);
    }
    assert_int_equal(f.s->nasks, whole->nasks);
    for (size_t i = 0; i < whole->nasks; i++) {
        assert_int_equal(f.s->asks[i].trial, whole->asks[i].trial);
        assert_int_equal(!f.s->asks[i].withdrawn, !whole->asks[i].withdrawn);
    }
    for (size_t i = 0; i < f.n; i++)
        free(then[i]);
    dt_study_free(whole);
    done(&f);
}

/* ---- the conversation ---- */

struct talk {
    struct fixture f;
    struct dt_serve *v;
    int in, out; /* our ends */
    int their_in, their_out;
};

static struct talk talk_new(const char *sections)
{
    struct talk t = {.f = study(sections)};
    struct dt_error e = DT_ERROR_INIT;
    int in[2], out[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    t.in = in[1];
    t.out = out[0];
    t.their_in = in[0];
    t.their_out = out[1];
    t.v = dt_serve_new(in[0], out[1], -1, &e);
    assert_non_null(t.v);
    return t;
}

static void say(struct talk *t, const char *text, size_t len)
{
    while (len) {
        ssize_t n = write(t->in, text, len);
        assert_true(n > 0);
        text += n;
        len -= (size_t)n;
    }
}

static void take(struct talk *t, struct dt_event ev)
{
    size_t n = t->f.n;
    struct dt_event copy;
    apply(&t->f, ev);
    assert_int_equal(dt_event_from_json(t->f.journal[n], &copy, NULL), 0);
    dt_serve_event(t->v, t->f.s, &copy);
    dt_event_free(&copy);
}

/* Takes requests until the other side says that there are no more. */
static void listen_to_end(struct talk *t)
{
    t->f.s->no_more = false;
    while (!t->f.s->no_more) {
        struct dt_event ev;
        if (dt_serve_request(t->v, t->f.s, &ev))
            take(t, ev);
        else
            usleep(1000);
    }
}

/* Ends the conversation; all that was answered, without the beginning of the lines. Caller frees. */
static char *answers(struct talk *t)
{
    struct dt_buf b = DT_BUF_INIT;
    char chunk[4096];
    dt_serve_free(t->v, 60, NULL);
    close(t->their_out);
    for (ssize_t n; (n = read(t->out, chunk, sizeof(chunk))) > 0;)
        dt_buf_addn(&b, chunk, (size_t)n);
    return dt_buf_take(&b);
}

static void talk_end(struct talk *t)
{
    if (t->in >= 0)
        close(t->in);
    if (t->out >= 0)
        close(t->out);
    close(t->their_in);
    done(&t->f);
}

#define LR(x) "\"hyperparameters\": {\"lr\": " #x ", \"opt\": \"adam\"}"

static void bad_requests_are_refused_and_nothing_is_lost(void **state)
{
    static const char requests[] =
        "\n \r\n"
        "nonsense\n"
        "{\"id\": 1\n"
        "[1]\n"
        "{\"id\": 1, \"id\": 2}\n"
        "{}\n"
        "{\"id\": 1.5, " LR(0.1) "}\n"
        "{\"id\": 9007199254740993, " LR(0.1) "}\n"
        "{\"id\": \"a\"}\n"
        "{\"id\": \"a\", \"prune\": false}\n"
        "{\"id\": \"a\", \"prune\": true}\n"
        "{\"id\": \"a\", " LR(0.1) ", \"prune\": true}\n"
        "{\"id\": \"a\", \"hyperparamters\": {}}\n"
        "{\"id\": \"a\", " LR(7) "}\n"
        "{\"id\": \"\xff\", " LR(0.1) "}\n"
        "{\"id\": \"a\", " LR(0.1) "}\r\n"
        "{\"id\": \"a\", " LR(0.2) "}\n"
        "{\"id\": 17, " LR(0.1) "}\n"
        "{\"id\": \"17\", " LR(0.1) "}\n"
        "{\"end\": true}\n"
        "{\"id\": \"late\", " LR(0.1) "}\n";
    static const char expected[] =
        "{\"event\":\"refused\",\"error\":\"request:1: not valid JSON: null expected\"}\n"
        "{\"event\":\"refused\",\"error\":\"request:1: not valid JSON: unexpected end of data\"}\n"
        "{\"event\":\"refused\",\"error\":\"request: it is no JSON object\"}\n"
        "{\"event\":\"refused\",\"error\":\"request:1: the key \\\"id\\\" stands twice in one object\"}\n"
        "{\"event\":\"refused\",\"error\":\"\\\"id\\\" is missing: a string or a whole number\"}\n"
        "{\"event\":\"refused\",\"error\":\"\\\"id\\\" must be a string or a whole number\"}\n"
        "{\"event\":\"refused\",\"error\":\"\\\"id\\\": the number is too large; write it as a string\"}\n"
        "{\"id\":\"a\",\"event\":\"refused\",\"error\":\"beside \\\"id\\\" there must be either "
        "\\\"hyperparameters\\\" or \\\"prune\\\": true\"}\n"
        "{\"id\":\"a\",\"event\":\"refused\",\"error\":\"beside \\\"id\\\" there must be either "
        "\\\"hyperparameters\\\" or \\\"prune\\\": true\"}\n"
        "{\"id\":\"a\",\"event\":\"refused\",\"error\":\"there is no trial to end: nobody asked for this "
        "id\"}\n"
        "{\"id\":\"a\",\"event\":\"refused\",\"error\":\"beside \\\"id\\\" there must be either "
        "\\\"hyperparameters\\\" or \\\"prune\\\": true\"}\n"
        "{\"id\":\"a\",\"event\":\"refused\",\"error\":\"unknown key \\\"hyperparamters\\\"; did you mean "
        "\\\"hyperparameters\\\"?\"}\n"
        "{\"id\":\"a\",\"event\":\"refused\",\"error\":\"\\\"lr\\\": 7 is outside its domain\"}\n"
        "{\"event\":\"refused\",\"error\":\"request: not valid JSON: it is no text in UTF-8\"}\n"
        "{\"id\":\"a\",\"event\":\"refused\",\"error\":\"this id was used with other hyperparameters: "
        "lr=0.1 opt=adam\"}\n"
        "{\"id\":\"late\",\"event\":\"refused\",\"error\":\"the end of requests was told already\"}\n";
    struct talk t = talk_new("");
    (void)state;
    say(&t, requests, sizeof(requests) - 1);
    close(t.in);
    t.in = -1;
    listen_to_end(&t);
    assert_int_equal(t.f.s->nasks, 3);
    assert_int_equal(t.f.n, 3);
    struct dt_event ev;
    assert_int_equal(dt_serve_request(t.v, t.f.s, &ev), 0);
    char *text = answers(&t);
    assert_string_equal(text, expected);
    free(text);
    talk_end(&t);
}

static void reports(struct talk *t, const char *name, double value)
{
    struct dt_event ev = event(DT_EVENT_METRIC, 1);
    ev.text = dt_xstrdup(name);
    ev.value = value;
    take(t, ev);
}

/* A run starts, and goes from one step to another, a second each. */
static void goes(struct talk *t, int run, double from, double to)
{
    struct dt_event ev = event(DT_EVENT_STARTED, 1);
    ev.run = run;
    take(t, ev);
    t->f.now += 1;
    reports(t, "step", from);
    t->f.now += to - from;
    reports(t, "step", to);
}

static void ends(struct talk *t, int exit_code, double run_s)
{
    struct dt_event ev = event(DT_EVENT_ENDED, 1);
    ev.cause = exit_code ? DT_CAUSE_EXIT : DT_CAUSE_OK;
    ev.exit_code = exit_code;
    ev.run_s = run_s;
    take(t, ev);
}

static void a_re_allocated_trial_took_the_time_of_the_whole(void **state)
{
    static const char requests[] = "{\"id\": \"a\", " LR(0.1) "}\n{\"end\": true}\n";
    struct talk t = talk_new(ACCURACY);
    (void)state;
    say(&t, requests, sizeof(requests) - 1);
    listen_to_end(&t);
    go(&t.f);
    goes(&t, 1, 1, 11);
    struct dt_event ev = event(DT_EVENT_REALLOCATING, 1);
    ev.config = dt_json_parse("{\"workers\": 2, \"lr\": 0.1, \"opt\": \"adam\"}", "config", NULL);
    ev.text = dt_xstrdup("");
    take(&t, ev);
    ends(&t, 143, 12);
    take(&t, event(DT_EVENT_SUBMITTED, 1));
    goes(&t, 2, 12, 21);
    reports(&t, "accuracy", 0.75);
    ends(&t, 0, 10);
    char *text = answers(&t);
    assert_non_null(strstr(text, "\"event\":\"ended\",\"trial\":1,\"status\":\"ok\",\"cause\":\"ok\","
                                 "\"value\":0.75,\"duration_s\":21,"));
    free(text);
    talk_end(&t);
}

static void a_request_that_is_known_gets_what_is_known(void **state)
{
    static const char requests[] = "{\"id\": \"a\", " LR(0.1) "}\n{\"id\": \"b\", " LR(0.2) "}\n"
                                   "{\"id\": \"c\", " LR(0.3) "}\n{\"id\": \"d\", " LR(0.4) "}\n"
                                   "{\"id\": \"d\", \"prune\": true}\n{\"end\": true}\n";
    static const char first[] =
        "{\"study\":\"dt-tune-7\",\"version\":1,\"dir\":\"/home/me/dt-tune-7\"}\n"
        "{\"id\":\"d\",\"event\":\"ended\",\"trial\":null,\"status\":\"pruned\",\"cause\":\"stopped "
        "early\",\"text\":\"the program that asked for it has seen enough\",\"value\":null,\"duration_s\":"
        "null,\"metrics\":{},\"config\":null}\n"
        "{\"id\":\"a\",\"event\":\"started\",\"trial\":1,\"run\":1,\"config\":{\"workers\":4,\"lr\":0.1,"
        "\"opt\":\"adam\"}}\n"
        "{\"id\":\"a\",\"event\":\"metric\",\"name\":\"accuracy\",\"step\":1,\"value\":0.5}\n"
        "{\"id\":\"a\",\"event\":\"metric\",\"name\":\"accuracy\",\"step\":2,\"value\":null}\n"
        "{\"id\":\"a\",\"event\":\"metric\",\"name\":\"accuracy\",\"step\":4,\"value\":0.75}\n"
        "{\"id\":\"a\",\"event\":\"ended\",\"trial\":1,\"status\":\"ok\",\"cause\":\"ok\",\"value\":0.75,"
        "\"duration_s\":10,\"metrics\":{\"accuracy\":0.75},\"config\":{\"workers\":4,\"lr\":0.1,\"opt\":"
        "\"adam\"}}\n"
        "{\"id\":\"b\",\"event\":\"started\",\"trial\":2,\"run\":1,\"config\":{\"workers\":1,\"lr\":0.2,"
        "\"opt\":\"adam\"}}\n"
        "{\"id\":\"b\",\"event\":\"metric\",\"name\":\"accuracy\",\"step\":1,\"value\":0.25}\n";
    static const char again[] =
        "{\"id\":\"a\",\"event\":\"ended\",\"trial\":1,\"status\":\"ok\"";
    static const char running[] =
        "\n{\"id\":\"b\",\"event\":\"started\",\"trial\":2,\"run\":1,\"config\":{\"workers\":1,\"lr\":0.2,"
        "\"opt\":\"adam\"}}\n"
        "{\"id\":\"b\",\"event\":\"metric\",\"name\":\"accuracy\",\"step\":1,\"value\":0.25}\n"
        "{\"id\":\"d\",\"event\":\"ended\",\"trial\":null,\"status\":\"pruned\"";
    static const char last[] =
        "\n{\"id\":\"c\",\"event\":\"refused\",\"error\":\"the study ended before this trial (deadline); "
        "ask again when it goes on\"}\n"
        "{\"event\":\"finished\",\"reason\":\"deadline\",\"best\":{\"id\":\"a\",\"trial\":1,\"value\":0.75,"
        "\"config\":{\"workers\":4,\"lr\":0.1,\"opt\":\"adam\"}}}\n";
    (void)state;
    struct talk t = talk_new(ACCURACY);
    dt_serve_hello(t.v, "/home/me/dt-tune-7");
    say(&t, requests, sizeof(requests) - 1);
    listen_to_end(&t);
    go(&t.f);
    take(&t, event(DT_EVENT_STARTED, 1));
    const double values[] = {0.5, NAN, NAN, 0.75};
    for (int i = 0; i < 4; i++) {
        struct dt_event ev = event(DT_EVENT_METRIC, 1);
        if (i == 2)
            continue;
        ev.text = dt_xstrdup("accuracy");
        ev.step = i + 1;
        ev.value = values[i];
        take(&t, ev);
    }
    struct dt_event end = event(DT_EVENT_ENDED, 1);
    end.run_s = 10;
    take(&t, end);
    go(&t.f);
    take(&t, event(DT_EVENT_STARTED, 2));
    struct dt_event m = event(DT_EVENT_METRIC, 2);
    m.text = dt_xstrdup("accuracy");
    m.value = 0.25;
    take(&t, m);
    char *text = answers(&t);
    assert_string_equal(text, first);
    free(text);
    close(t.in);
    close(t.out);
    close(t.their_in);
    /* another sitting, and another caller that asks for the same: no event comes of it */
    struct fixture f = t.f;
    t = talk_new(ACCURACY);
    done(&t.f);
    t.f = f;
    size_t before = t.f.n;
    say(&t, requests, sizeof(requests) - 1);
    listen_to_end(&t);
    assert_int_equal(t.f.n, before);
    struct dt_event stop = event(DT_EVENT_STOPPING, 0);
    stop.text = dt_xstrdup("deadline");
    take(&t, stop);
    struct dt_event cut = event(DT_EVENT_ENDED, 2);
    cut.cause = DT_CAUSE_STOPPED;
    take(&t, cut);
    dt_serve_finish(t.v, t.f.s, NULL);
    text = answers(&t);
    assert_int_equal(strncmp(text, again, strlen(again)), 0);
    assert_non_null(strstr(text, running));
    assert_non_null(strstr(text, "\"id\":\"b\",\"event\":\"ended\",\"trial\":2,\"status\":\"void\",\"cause\":"
                                 "\"stopped\""));
    assert_non_null(strstr(text, last));
    free(text);
    talk_end(&t);
}

static void lines_may_come_in_parts_and_be_long(void **state)
{
    struct talk t = talk_new("");
    static const char request[] = "{\"id\": \"a\", " LR(0.1) "}", next[] = "\n{\"id\": \"b\", " LR(0.1);
    struct dt_event ev;
    size_t len = 3 * DT_LINE_MAX;
    char *much = dt_xcalloc(len + 1, 1);
    (void)state;
    for (size_t i = 0; i + 1 < sizeof(request); i++) {
        say(&t, request + i, 1);
        usleep(i % 8 ? 0 : 2000);
        assert_int_equal(dt_serve_request(t.v, t.f.s, &ev), 0);
    }
    memset(much, 'x', len);
    say(&t, next, sizeof(next) - 1);
    much[len - 1] = '\n';
    say(&t, "\n", 1); /* so b is not whole */
    usleep(2000);
    while (!t.f.s->nasks)
        if (dt_serve_request(t.v, t.f.s, &ev))
            take(&t, ev);
    for (size_t at = 0; at < len; at += DT_LINE_MAX / 2) {
        say(&t, much + at, DT_LINE_MAX / 2);
        if (dt_serve_request(t.v, t.f.s, &ev))
            fail_msg("a request out of nothing");
    }
    say(&t, much, DT_LINE_MAX);     /* as long as a line may be, and no JSON */
    say(&t, "\n", 1);
    say(&t, "{\"id\": \"c\", " LR(0.1) "}", strlen("{\"id\": \"c\", " LR(0.1) "}")); /* without an end */
    close(t.in);
    t.in = -1;
    listen_to_end(&t);
    assert_int_equal(t.f.s->nasks, 2);
    char *text = answers(&t), *at = strstr(text, "a line may be 1 MiB long");
    assert_non_null(strstr(text, "unexpected end of data"));
    assert_non_null(at);
    assert_null(strstr(at + 1, "a line may be 1 MiB long"));
    assert_non_null(strstr(at, "not valid JSON"));
    free(text);
    free(much);
    talk_end(&t);
}

static void a_program_that_is_gone_asks_no_more(void **state)
{
    struct talk t = talk_new("");
    static const char request[] = "{\"id\": \"a\", " LR(0.1) "}\n";
    (void)state;
    close(t.out);
    t.out = -1;
    dt_serve_hello(t.v, "/d");
    struct dt_event ev;
    while (!t.f.s->no_more) {
        assert_int_equal(dt_serve_request(t.v, t.f.s, &ev), 0);
        usleep(1000);
    }
    say(&t, request, sizeof(request) - 1);
    usleep(5000);
    assert_int_equal(dt_serve_request(t.v, t.f.s, &ev), 0);
    dt_serve_free(t.v, 1000, NULL);
    close(t.their_out);
    talk_end(&t);
}

/* One that does not read is not waited for, and loses metrics only. */
static void a_slow_reader_is_not_waited_for(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    int out[2], in[2];
    char *line = dt_xcalloc(64 * 1024 + 1, 1), chunk[65536];
    struct dt_buf b = DT_BUF_INIT;
    (void)state;
    memset(line, 'm', 64 * 1024);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    struct dt_lines *l = dt_lines_new(in[0], out[1], -1, &e);
    assert_non_null(l);
    for (int i = 0; i < 1000; i++)
        dt_lines_put(l, line, true);
    for (int i = 0; i < 10; i++)
        dt_lines_put(l, "needed", false);
    for (size_t needed = 0; needed < 10;) {
        ssize_t n = read(out[0], chunk, sizeof(chunk));
        assert_true(n > 0);
        dt_buf_addn(&b, chunk, (size_t)n);
        needed = 0;
        for (const char *s = b.s; (s = strstr(s, "needed\n")); s++)
            needed++;
    }
    assert_true(b.len < 6 * DT_LINE_MAX);
    for (int i = 0; i < 10; i++)
        dt_lines_put(l, line, false);
    double since = dt_monotonic();
    dt_lines_free(l, 0.2, NULL);
    assert_true(dt_monotonic() - since < 60);
    close(in[0]);
    close(in[1]);
    close(out[0]);
    close(out[1]);
    dt_buf_free(&b);
    free(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_wait_for_room_in_order),
        cmocka_unit_test(the_fastest_dt_configuration_is_found),
        cmocka_unit_test(the_same_hyperparameters_may_be_asked_for_again),
        cmocka_unit_test(requests_are_checked),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(a_deadline_passes_while_nobody_asks),
        cmocka_unit_test(trials_are_ended_early),
        cmocka_unit_test(a_fast_end_by_request_is_no_fast_run),
        cmocka_unit_test(what_was_cut_off_is_run_again_for_its_request),
        cmocka_unit_test(events_that_make_no_sense_are_refused),
        cmocka_unit_test(a_replay_decides_as_the_study_did),
        cmocka_unit_test(bad_requests_are_refused_and_nothing_is_lost),
        cmocka_unit_test(a_re_allocated_trial_took_the_time_of_the_whole),
        cmocka_unit_test(a_request_that_is_known_gets_what_is_known),
        cmocka_unit_test(lines_may_come_in_parts_and_be_long),
        cmocka_unit_test(a_program_that_is_gone_asks_no_more),
        cmocka_unit_test(a_slow_reader_is_not_waited_for),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
