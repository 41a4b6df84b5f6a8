#include "backend/backend.h"
#include "tuner/tuner.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct run {
    struct dt_study *s;
    struct dt_backend *b;
    struct dt_journal *j;
    const struct dt_reporter *r;
    const volatile int *stop;
    bool away;   /* what ended, ended while no tuner was there to see it */
    double here; /* what was over before, ended so, too, though it is only heard of later */
    bool unsure; /* the journal may have lost its last records, and so what was submitted */
};

/* How long a wait for Slurm lasts at most when nothing in particular is due. */
#define LONG_WAIT 3600.0
/* How long trials that were cancelled from outside are waited for before they are written off. */
#define INTERRUPT_GRACE 0.5

/* Journal first, then state, then the user. Takes what the event owns. */
static int record(struct run *run, struct dt_event *ev, struct dt_error *e)
{
    int rc = 0;
    if (run->j) {
        struct json_object *o = dt_event_to_json(ev);
        rc = dt_journal_append(run->j, o, e);
        json_object_put(o);
    }
    if (rc == 0)
        rc = dt_study_apply(run->s, ev, e);
    if (rc == 0 && run->r)
        run->r->event(run->r->arg, run->s, ev);
    dt_event_free(ev);
    return rc;
}

static double now(const struct run *run)
{
    return run->b->ops->now(run->b->b);
}

/* A run that has its checkpoint but was not yet told to end. A SIGTERM may have been the question.
 */
static bool ended_by_others(const struct run *run, const struct dt_trial *t)
{
    return t && t->move.x && t->move.checkpointed && !t->cancelling &&
           run->s->spec->checkpoint.signal != SIGTERM;
}

/* Why a run ended, where Slurm says no more than that it was cancelled: by this tuner, together with
 * it, with an earlier one, or by somebody. */
static enum dt_cause cause_of(const struct run *run, const struct dt_event *ev,
                              const struct dt_trial *t)
{
    enum dt_cause cause = ev->cause;
    bool ours = t && t->cancelling, before = ev->over > 0 && ev->over < run->here;
    /* asked to end, its script may have died of the signal before anything knew of it */
    if (cause == DT_CAUSE_EXIT && ours)
        cause = DT_CAUSE_CANCELLED;
    if (cause != DT_CAUSE_CANCELLED)
        return cause;
    if (t && !ours && (t->found || before))
        return DT_CAUSE_NO_TUNER;
    if (run->s->interrupted || run->away || (*run->stop && !run->s->stop_reason))
        return DT_CAUSE_INTERRUPTED;
    return run->s->stop_reason ? DT_CAUSE_STOPPED : DT_CAUSE_CANCELLED;
}

/* Waits until something happens or `until`, and records it. */
static int wait_events(struct run *run, double until, struct dt_error *e)
{
    struct dt_event *events = NULL;
    size_t n = 0;
    int rc = run->b->ops->wait(run->b->b, run->s, until, &events, &n, e);
    for (size_t i = 0; i < n; i++) {
        struct dt_event *ev = &events[i];
        const struct dt_trial *t = dt_study_trial(run->s, ev->trial);
        if (ev->kind == DT_EVENT_ENDED) {
            ev->cause = cause_of(run, ev, t);
            ev->foreign = ev->cause == DT_CAUSE_CANCELLED && ended_by_others(run, t);
        }
        bool stale = !t || (ev->kind == DT_EVENT_ENDED && !dt_trial_live(t));
        if (rc < 0 || stale)
            dt_event_free(ev);
        else
            rc = record(run, ev, e);
    }
    free(events);
    return rc;
}

static size_t live(const struct dt_study *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += dt_trial_live(&s->trials[i]);
    return n;
}

static int cancel_all(struct run *run, double grace, struct dt_error *e)
{
    for (size_t i = 0; i < run->s->n; i++) {
        struct dt_trial *t = &run->s->trials[i];
        if (!dt_trial_live(t))
            continue;
        t->cancelling = true;
        if (run->b->ops->cancel(run->b->b, t, e) < 0)
            return -1;
    }
    double begun = now(run), until = begun + grace;
    int told = *run->stop;
    /* a clock that is set back does not make it longer */
    while (live(run->s) && now(run) >= begun && now(run) < until && *run->stop == told)
        if (wait_events(run, until, e) < 0)
            return -1;
    return 0;
}

/* A submission of which only Slurm knows whether it came about. */
static int adopt(struct run *run, const struct dt_trial *t, uint32_t job, struct dt_error *e)
{
    struct dt_event ev = DT_EVENT(DT_EVENT_SUBMITTED);
    ev.t = now(run);
    ev.trial = t->id;
    ev.run = t->run;
    ev.job = job;
    return record(run, &ev, e);
}

/* Those whose submission was cut off by the same signal. */
static int adopt_deferred(struct run *run, struct dt_error *e)
{
    for (size_t i = 0; i < run->s->n; i++) {
        const struct dt_trial *t = &run->s->trials[i];
        uint32_t job;
        if (t->state != DT_TRIAL_CREATED || t->deferred <= 0)
            continue;
        /* Not within the call: which of its arguments comes first is not said. */
        int found = run->b->ops->find(run->b->b, t, &job, NULL);
        if (found > 0 && adopt(run, t, job, e) < 0)
            return -1;
    }
    return 0;
}

/* Told to end: the time is short (Slurm's KillWait), so trials are cancelled first and written off
 * if they do not end at once; a resume will run them again. */
static int interrupted(struct run *run, struct dt_error *e)
{
    struct dt_event ev = DT_EVENT(DT_EVENT_STOPPING);
    ev.t = now(run);
    ev.interrupted = true;
    ev.text = dt_xasprintf("interrupted: the tuner was told to end (signal %d)", *run->stop);
    if (record(run, &ev, e) < 0 || adopt_deferred(run, e) < 0 ||
        cancel_all(run, INTERRUPT_GRACE, e) < 0)
        return -1;
    for (size_t i = 0; i < run->s->n; i++) {
        if (!dt_trial_live(&run->s->trials[i]))
            continue;
        ev = (struct dt_event)DT_EVENT(DT_EVENT_ENDED);
        ev.t = now(run);
        ev.trial = run->s->trials[i].id;
        ev.run = run->s->trials[i].run;
        ev.cause = DT_CAUSE_INTERRUPTED;
        if (record(run, &ev, e) < 0)
            return -1;
    }
    ev = (struct dt_event)DT_EVENT(DT_EVENT_FINISHED);
    ev.t = now(run);
    return record(run, &ev, e);
}

/* After a restart slurmctld may itself be on its way back. */
#define FIND_TRIES 30
#define FIND_PAUSE 2.0

static int find_job(struct run *run, const struct dt_trial *t, uint32_t *job, struct dt_error *e)
{
    int found = run->b->ops->find(run->b->b, t, job, e);
    for (int i = 0; i < FIND_TRIES && found < 0 && !*run->stop; i++) {
        if (wait_events(run, now(run) + FIND_PAUSE, e) < 0)
            return -1;
        found = run->b->ops->find(run->b->b, t, job, e);
    }
    return found;
}

/* Trials come in order: once one is not known there, no later one is. */
static int submit(struct run *run, struct dt_trial *t, struct dt_error *e)
{
    struct dt_event ev = DT_EVENT(DT_EVENT_SUBMITTED);
    uint32_t job;
    int found = run->unsure ? find_job(run, t, &job, e) : 0;
    if (found < 0)
        return -1;
    t->found = found;
    if (found)
        return adopt(run, t, job, e);
    run->unsure = false;
    if (run->b->ops->submit(run->b->b, run->s, t, &ev, e) < 0)
        return -1;
    return record(run, &ev, e);
}

static int perform(struct run *run, const struct dt_action *a, struct dt_error *e)
{
    struct dt_event ev = DT_EVENT(DT_EVENT_STOPPING);
    struct dt_trial *t = dt_study_trial(run->s, a->trial);
    ev.t = now(run);
    switch (a->kind) {
    case DT_ACTION_CREATE:
        ev.kind = DT_EVENT_CREATED;
        ev.trial = (int)run->s->n + 1;
        ev.config = dt_config_to_json(run->s->space, a->x);
        ev.text = dt_xstrdup(a->why);
        ev.again = a->again;
        ev.parent = a->parent;
        ev.instead = a->instead;
        if (a->ask)
            ev.ask = json_object_get(run->s->asks[a->ask - 1].id);
        return record(run, &ev, e);
    case DT_ACTION_SUBMIT:
        return submit(run, t, e);
    case DT_ACTION_CANCEL:
        t->cancelling = true;
        return run->b->ops->cancel(run->b->b, t, e);
    case DT_ACTION_PRUNE:
        ev.kind = DT_EVENT_PRUNED;
        ev.trial = a->trial;
        ev.parent = a->parent;
        ev.text = dt_xstrdup(a->why);
        return record(run, &ev, e);
    case DT_ACTION_REALLOCATE:
    case DT_ACTION_SHRINK:
        ev.kind = a->kind == DT_ACTION_SHRINK ? DT_EVENT_SHRINKING : DT_EVENT_REALLOCATING;
        ev.trial = a->trial;
        ev.run = t->run;
        ev.config = dt_config_to_json(run->s->space, a->x);
        ev.text = dt_xstrdup(a->why);
        return record(run, &ev, e);
    case DT_ACTION_CHECKPOINT:
        t->move.asking = true;
        return run->b->ops->checkpoint(run->b->b, run->s, t, e);
    case DT_ACTION_SHED:
        t->shedding = true;
        return run->b->ops->shed(run->b->b, run->s, t, e);
    case DT_ACTION_KEEP:
        ev.kind = DT_EVENT_KEPT;
        ev.trial = a->trial;
        ev.run = t->run;
        ev.text = dt_xstrdup(a->why);
        return record(run, &ev, e);
    case DT_ACTION_STOP:
        ev.text = dt_xstrdup(a->why);
        return record(run, &ev, e);
    case DT_ACTION_FINISH:
        ev.kind = DT_EVENT_FINISHED;
        return record(run, &ev, e);
    case DT_ACTION_NONE:
        break;
    }
    return 0;
}

/* A journal that already holds trials: Slurm's state is the truth about what became of them. */
static int reconcile(struct run *run, struct json_object *limits, struct dt_error *e)
{
    run->away = true;
    for (size_t i = 0; i < run->s->n; i++) {
        struct dt_trial *t = &run->s->trials[i];
        uint32_t job;
        if (t->state != DT_TRIAL_CREATED)
            continue;
        int found = find_job(run, t, &job, e);
        if (found < 0 || (found && adopt(run, t, job, e) < 0))
            return -1;
    }
    /* an interruption was cut short: it asked for their end, which may not have come yet */
    if (run->s->stop_reason && live(run->s) && cancel_all(run, 60, e) < 0)
        return -1;
    if (live(run->s) && wait_events(run, now(run), e) < 0)
        return -1;
    run->away = false;
    run->here = now(run);
    struct dt_event ev = DT_EVENT(DT_EVENT_RESUMED);
    ev.t = now(run);
    ev.config = json_object_get(limits);
    return record(run, &ev, e);
}

static double next_due(const struct run *run)
{
    double due = now(run) + LONG_WAIT;
    double deadline = run->s->t_start + run->s->stopping.deadline;
    double nodes, spent = dt_study_node_seconds(run->s, now(run), &nodes);
    if (nodes > 0)
        deadline =
            fmin(deadline, now(run) + (3600 * run->s->stopping.max_node_hours - spent) / nodes);
    deadline = fmin(deadline, run->s->closes);
    if (!run->s->stop_reason && deadline < due)
        due = deadline;
    due = fmin(due, dt_study_move_due(run->s));
    for (size_t i = 0; i < run->s->n; i++) {
        const struct dt_trial *t = &run->s->trials[i];
        if (t->state == DT_TRIAL_CREATED && t->deferred > now(run) && t->deferred < due)
            due = t->deferred;
    }
    return due;
}

/* What no trial will use any more is of use to others. */
static int give_back(struct run *run, struct dt_error *e)
{
    struct dt_event ev = DT_EVENT(DT_EVENT_RELEASED);
    struct dt_error why = DT_ERROR_INIT;
    if (!run->b->ops->spare || !dt_study_all_begun(run->s) || !run->b->ops->spare(run->b->b, &ev))
        return 0;
    ev.t = now(run);
    if (record(run, &ev, e) < 0)
        return -1;
    if (run->b->ops->give_back(run->b->b, &why) == 0)
        return 0;
    ev = (struct dt_event)DT_EVENT(DT_EVENT_RELEASED);
    ev.t = now(run);
    ev.text = dt_xstrdup(why.text);
    dt_error_clear(&why);
    return record(run, &ev, e);
}

static int pause_for(struct run *run, struct dt_error *e)
{
    return give_back(run, e) < 0 ? -1 : wait_events(run, next_due(run), e);
}

/* A request of another program: 1; 0 where there is none. */
static int take_request(struct run *run, struct dt_error *e)
{
    struct dt_event ev;
    if (!run->r || !run->r->request || !run->r->request(run->r->arg, run->s, &ev))
        return 0;
    ev.t = now(run);
    return record(run, &ev, e) < 0 ? -1 : 1;
}

static int loop(struct run *run, struct dt_error *e)
{
    for (;;) {
        struct dt_action a;
        if (*run->stop)
            return interrupted(run, e) < 0 ? -1 : 1;
        int asked = take_request(run, e);
        if (asked < 0)
            return -1;
        if (asked)
            continue;
        if (dt_study_decide(run->s, now(run), &a, e) < 0)
            return -1;
        enum dt_action_kind kind = a.kind;
        int rc = kind == DT_ACTION_NONE ? pause_for(run, e) : perform(run, &a, e);
        dt_action_free(&a);
        if (rc < 0)
            return -1;
        if (kind == DT_ACTION_FINISH)
            return 0;
    }
}

int dt_study_run(struct dt_study *s, struct dt_backend *b, struct dt_journal *j,
                 const struct dt_reporter *r, struct json_object *limits, const volatile int *stop,
                 struct dt_error *e)
{
    struct run run = {.s = s, .b = b, .j = j, .r = r, .stop = stop};
    run.unsure = j && dt_journal_begun(j);
    bool begun = !isnan(s->t_start); /* it may have been told to end before its first trial */
    int rc = begun ? reconcile(&run, limits, e) : 0;
    if (rc == 0)
        rc = loop(&run, e);
    struct dt_error swept = DT_ERROR_INIT;
    /* what is left ends by itself: the result is not lost for it */
    b->ops->sweep(b->b, rc < 0 ? &swept : e);
    dt_error_clear(&swept);
    return rc;
}

void dt_backend_free(struct dt_backend *b)
{
    if (!b)
        return;
    b->ops->destroy(b->b);
    free(b);
}
