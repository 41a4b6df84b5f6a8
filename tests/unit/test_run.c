/* The shell of the tuner on a backend of its own, for moments that no real one can be brought to.
 */
#include "backend/backend.h"
#include "tuner/tuner.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define JOB 77

/* Of two configurations, without a job as submitted. */
struct study {
    struct dt_spec *spec;
    struct dt_space *space;
    struct dt_study *s;
};

static struct study study(void)
{
    static const char text[] = "{\"dt\": {\"workers\": [1, 2]}}";
    struct json_object *json = dt_json_parse(text, "S.json", NULL);
    struct dt_spec *spec = dt_spec_parse(json, text, "S.json", NULL);
    struct dt_space *space = dt_space_new(spec->params, spec->nparams, &spec->constraints, NULL, 0,
                                          NULL, NULL, NULL, 0, NULL);
    json_object_put(json);
    return (struct study){spec, space, dt_study_new(spec, space, NULL, NULL)};
}

static void done(struct study *f)
{
    dt_study_free(f->s);
    dt_space_free(f->space);
    dt_spec_free(f->spec);
}

/* Slurm took the job, but what it answered was lost, and the signal comes before the next try. */
struct cut_off {
    double now;
    int stop;
    uint32_t cancelled;
    bool swept;
    struct dt_buf said; /* the events, a word each */
};

static double now(void *b)
{
    return ((struct cut_off *)b)->now;
}

static int submit(void *b, const struct dt_study *s, const struct dt_trial *t, struct dt_event *ev,
                  struct dt_error *e)
{
    struct cut_off *c = b;
    (void)s;
    (void)e;
    *ev = (struct dt_event)DT_EVENT(DT_EVENT_DEFERRED);
    ev->t = c->now;
    ev->trial = t->id;
    ev->run = t->run;
    ev->until = c->now + 60;
    ev->text = dt_xstrdup("Connection timed out");
    return 0;
}

static int cancel(void *b, const struct dt_trial *t, struct dt_error *e)
{
    (void)e;
    ((struct cut_off *)b)->cancelled = t->job;
    return 0;
}

static int wait_for(void *b, const struct dt_study *s, double until, struct dt_event **events,
                    size_t *n, struct dt_error *e)
{
    struct cut_off *c = b;
    (void)s;
    (void)e;
    *events = NULL;
    *n = 0;
    c->stop = SIGTERM;
    c->now = until;
    return 0;
}

static int find(void *b, const struct dt_trial *t, uint32_t *job, struct dt_error *e)
{
    (void)b;
    (void)t;
    (void)e;
    *job = JOB;
    return 1;
}

static int sweep(void *b, struct dt_error *e)
{
    (void)e;
    ((struct cut_off *)b)->swept = true;
    return 0;
}

static void note(void *arg, const struct dt_study *s, const struct dt_event *ev)
{
    struct cut_off *c = arg;
    (void)s;
    dt_buf_addf(&c->said, "%s%d", c->said.len ? " " : "", (int)ev->kind);
}

static void a_job_found_at_the_end_is_cancelled_by_its_own_number(void **state)
{
    const struct dt_backend_ops ops = {
        .name = "cut off",
        .now = now,
        .submit = submit,
        .cancel = cancel,
        .wait = wait_for,
        .find = find,
        .sweep = sweep,
    };
    struct cut_off c = {.now = 1000, .said = DT_BUF_INIT};
    struct dt_backend b = {&ops, &c};
    struct dt_reporter r = {.event = note, .arg = &c};
    struct dt_error e = DT_ERROR_INIT;
    struct study f = study();
    struct dt_study *s = f.s;
    char *want;
    (void)state;
    assert_int_equal(dt_study_run(s, &b, NULL, &r, NULL, &c.stop, &e), 1);
    want = dt_xasprintf("%d %d %d %d %d %d", DT_EVENT_CREATED, DT_EVENT_DEFERRED, DT_EVENT_STOPPING,
                        DT_EVENT_SUBMITTED, DT_EVENT_ENDED, DT_EVENT_FINISHED);
    assert_string_equal(c.said.s, want);
    assert_int_equal(s->trials[0].job, JOB);
    assert_int_equal(c.cancelled, JOB);
    assert_int_equal(s->trials[0].cause, DT_CAUSE_INTERRUPTED);
    assert_true(c.swept);
    free(want);
    dt_buf_free(&c.said);
    done(&f);
}

/* ---- waits that go by a plan ---- */

struct plan {
    double now;
    int stop, waits;
    double over;         /* of late_wait(): when the trial's job was seen to be over */
    enum dt_cause cause; /* of its end */
};

static double plan_now(void *b)
{
    return ((struct plan *)b)->now;
}

static int plan_submit(void *b, const struct dt_study *s, const struct dt_trial *t,
                       struct dt_event *ev, struct dt_error *e)
{
    struct plan *c = b;
    (void)s;
    (void)e;
    *ev = (struct dt_event)DT_EVENT(DT_EVENT_SUBMITTED);
    ev->t = c->now;
    ev->trial = t->id;
    ev->run = t->run;
    ev->job = JOB;
    return 0;
}

static int plan_cancel(void *b, const struct dt_trial *t, struct dt_error *e)
{
    (void)b;
    (void)t;
    (void)e;
    return 0;
}

static int plan_sweep(void *b, struct dt_error *e)
{
    (void)b;
    (void)e;
    return 0;
}

static struct dt_backend_ops plan_ops(int (*wait)(void *b, const struct dt_study *s, double until,
                                                  struct dt_event **events, size_t *n,
                                                  struct dt_error *e))
{
    return (struct dt_backend_ops){.name = "plan",
                                   .now = plan_now,
                                   .submit = plan_submit,
                                   .cancel = plan_cancel,
                                   .wait = wait,
                                   .sweep = plan_sweep};
}

/* ---- a clock that is set back ---- */

/* The trial does not end, and each wait is over at its time, but by a clock of an hour before. */
static int set_back_wait(void *b, const struct dt_study *s, double until, struct dt_event **events,
                         size_t *n, struct dt_error *e)
{
    struct plan *c = b;
    (void)s;
    *events = NULL;
    *n = 0;
    c->stop = SIGTERM;
    c->now = until - 3600;
    return ++c->waits < 10 ? 0 : dt_fail(e, "it waits for ever");
}

static void trials_that_were_cancelled_are_not_waited_for_by_a_clock_that_is_set_back(void **state)
{
    const struct dt_backend_ops ops = plan_ops(set_back_wait);
    struct plan c = {.now = 10000};
    struct dt_backend b = {&ops, &c};
    struct dt_error e = DT_ERROR_INIT;
    struct study f = study();
    struct dt_study *s = f.s;
    (void)state;
    assert_int_equal(dt_study_run(s, &b, NULL, NULL, NULL, &c.stop, &e), 1);
    assert_int_equal(c.waits, 2);
    assert_int_equal(s->trials[0].cause, DT_CAUSE_INTERRUPTED);
    done(&f);
}

/* ---- a job that was cancelled, of which Slurm says so late ---- */

/* Nothing at the first look, then the end, then the tuner is told to end. */
static int late_wait(void *b, const struct dt_study *s, double until, struct dt_event **events,
                     size_t *n, struct dt_error *e)
{
    struct plan *c = b;
    const struct dt_trial *t = &s->trials[0];
    (void)e;
    c->now = until;
    *events = NULL;
    *n = c->waits == 1;
    c->stop = c->waits++ > 1 ? SIGTERM : 0;
    if (*n) {
        *events = dt_xcalloc(1, sizeof(**events));
        **events = (struct dt_event)DT_EVENT(DT_EVENT_ENDED);
        (*events)->trial = t->id;
        (*events)->run = t->run;
        (*events)->t = c->now;
        (*events)->over = c->over;
        (*events)->cause = DT_CAUSE_CANCELLED;
    }
    return 0;
}

static void late_note(void *arg, const struct dt_study *s, const struct dt_event *ev)
{
    struct plan *c = arg;
    (void)s;
    if (ev->kind == DT_EVENT_ENDED && ev->trial == 1 && ev->run == 1)
        c->cause = ev->cause;
}

static enum dt_cause cause_of_end_at(double t)
{
    const struct dt_backend_ops ops = plan_ops(late_wait);
    struct plan c = {.now = 1000, .over = t};
    struct dt_backend b = {&ops, &c};
    struct dt_reporter r = {.event = late_note, .arg = &c};
    struct dt_error e = DT_ERROR_INIT;
    struct study f = study();
    struct dt_event ev = DT_EVENT(DT_EVENT_CREATED);
    ev.t = 900;
    ev.trial = 1;
    ev.config = dt_json_parse("{\"workers\": 1}", "config", NULL);
    assert_int_equal(dt_study_apply(f.s, &ev, &e), 0);
    dt_event_free(&ev);
    ev = (struct dt_event)DT_EVENT(DT_EVENT_SUBMITTED);
    ev.t = 901;
    ev.trial = ev.run = 1;
    ev.job = JOB;
    assert_int_equal(dt_study_apply(f.s, &ev, &e), 0);
    dt_study_run(f.s, &b, NULL, &r, NULL, &c.stop, &e);
    dt_error_clear(&e);
    done(&f);
    return c.cause;
}

static void what_was_over_before_the_tuner_came_was_not_cancelled_under_its_eyes(void **state)
{
    (void)state;
    assert_int_equal(cause_of_end_at(999), DT_CAUSE_NO_TUNER); /* it is repeated */
}

static void what_is_cancelled_later_is_cancelled(void **state)
{
    (void)state;
    assert_int_equal(cause_of_end_at(1001), DT_CAUSE_CANCELLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_found_at_the_end_is_cancelled_by_its_own_number),
        cmocka_unit_test(trials_that_were_cancelled_are_not_waited_for_by_a_clock_that_is_set_back),
        cmocka_unit_test(what_was_over_before_the_tuner_came_was_not_cancelled_under_its_eyes),
        cmocka_unit_test(what_is_cancelled_later_is_cancelled),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
