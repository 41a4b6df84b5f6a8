/* Runs as Slurm batch jobs. The end of a run is learnt from the record that its batch wrapper
 * writes (and announces by SIGUSR1 through Slurm); Slurm's own state is asked for everything that
 * leaves no record, one query for all trials, with growing pauses. */
#include "backend/slurm_private.h"
#include "util/slurm.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICK_MIN 0.1 /* how often records are looked for, at first and after news */
#define TICK_MAX 1.0
#define TICK_LEAST 0.02
#define POLL_MIN 1.0 /* how often Slurm is asked */
#define POLL_MAX 30.0
/* However many trials tell something, Slurm is asked for jobs 20 times a minute on the average, ten
 * times at once where it has been quiet. */
#define POLL_EVERY 3.0
#define POLL_BURST 10
/* A slurmctld that takes long to answer has much to do: for so many times as long it is left alone,
 * at most for so many seconds. */
#define POLL_REST 30
#define POLL_REST_MAX 30.0
#define GRACE                                                                                      \
    5.0 /* how long a record may lag behind Slurm's state, or the state behind the record */
#define AGAIN                                                                                      \
    2.0 /* pause before a cancellation is asked for again, or a run that still ends is looked at   \
         */
#define SWEEP 30.0 /* how long the last look for what is left is repeated while slurmctld is away */
#define LEAVING 5.0 /* how long the last look waits for jobs whose script has ended */
#define LOOK 0.3
#define LATE 10.0  /* surplus workers that are still there are told again, and Slurm of nodes */
#define DEFER 15.0 /* pause before a refused submission is tried again */

/* What is known of a live trial beyond the study's state. */
struct watch {
    int trial, run;
    struct dt_feed *feed; /* its metrics; NULL: not looked at yet */
    struct dt_usage_feed *usage; /* the same of what it uses */
    bool started;
    double billing, nodes;
    double cancel_due; /* when its end is to be asked for again; 0 */
    double ask_due;    /* when it is to be asked for a checkpoint, as it was not heard yet; 0 */
    struct dt_checkpoint_watch checkpoint;
    bool shedding;     /* surplus workers were told to end, and their nodes are to be given back */
    bool emptied;      /* they have all done so */
    bool shed;         /* it may have fewer nodes than at first */
    double shed_due;   /* when they are to be told again, or then Slurm of their nodes */
    double over_since; /* when Slurm first said it was over, or the record appeared; 0 */
};

struct slurm {
    struct dt_slurm_config c;
    struct watch *watches;
    size_t n;
    double tick, poll_pause, next_poll;
    struct dt_pace pace;       /* of listings */
    double turn;               /* when the poll that is due may be; 0: none is */
    double rest;               /* before that no poll may be, as slurmctld was slow */
    struct dt_slurm_jobs jobs; /* the last listing, */
    double listed;             /* and when that was; 0: something has happened since */
    struct dt_pace asks;       /* of questions what trials use */
};

static double now(void *b)
{
    (void)b;
    return dt_now();
}

/* ---- what Slurm knows ---- */

static int list_jobs(struct slurm *b, struct dt_error *e)
{
    struct dt_slurm_jobs jobs;
    double begin = dt_monotonic();
    int rc = dt_slurm_jobs_load(&jobs, e);
    double now = dt_monotonic();
    b->rest = now + fmin(POLL_REST * (now - begin), POLL_REST_MAX);
    if (rc < 0)
        return -1;
    dt_slurm_jobs_free(&b->jobs);
    b->jobs = jobs;
    b->listed = now;
    return 0;
}

/* What was listed lately will do, so that many trials that look at once ask once. */
static int listed_jobs(struct slurm *b, struct dt_error *e)
{
    if (b->listed > 0 && dt_monotonic() - b->listed < POLL_EVERY)
        return 0;
    dt_pace_turn(&b->pace, dt_monotonic()); /* polls make room for it */
    return list_jobs(b, e);
}

static void poll_soon(struct slurm *b, double pause)
{
    b->next_poll = fmin(b->next_poll, dt_monotonic() + pause);
}

/* When Slurm may be asked next. */
static double poll_due(const struct slurm *b)
{
    return fmax(fmax(b->next_poll, b->rest), b->turn);
}

/* Whether the poll that is due may be now. */
static bool poll_now(struct slurm *b)
{
    double now = dt_monotonic();
    if (now < b->next_poll || now < b->rest)
        return false;
    if (b->turn == 0)
        b->turn = dt_pace_turn(&b->pace, now);
    if (now < b->turn)
        return false;
    b->turn = 0;
    return true;
}

/* ---- submission ---- */

static char *write_script(const struct slurm *b, const struct dt_study *s, const struct dt_trial *t,
                          struct dt_error *e)
{
    struct dt_shape shape;
    dt_shape_make(s->space, t->x, b->c.job, b->c.cluster, &shape);
    shape.as_submitted = s->submitted && dt_config_equal(t->x, s->submitted, s->space->n);
    struct dt_trial_script script = {.shape = &shape, .tuner_job = b->c.tuner_job};
    return dt_trial_write_script(&b->c, s, t, &script, e);
}

/* The job of a run by its name, or, where Slurm has forgotten it, by the record that it left. 1
 * found, 0 not. */
static int find(void *arg, const struct dt_trial *t, uint32_t *id, struct dt_error *e)
{
    struct slurm *b = arg;
    if (listed_jobs(b, e) < 0)
        return -1;
    char *name = dt_trial_job_name(b->c.job, b->c.study, t->id, t->run);
    char *dir = dt_trial_dir(&b->c, t), *path = dt_xasprintf("%s/job.sh", dir);
    *id = 0;
    for (size_t i = 0; i < b->jobs.n && !*id; i++)
        if (strcmp(b->jobs.v[i].name, name) == 0)
            *id = b->jobs.v[i].id;
    if (!*id && dt_trial_written_run(path) == t->run)
        *id = dt_records_job(dir);
    free(path);
    free(dir);
    free(name);
    return *id != 0;
}

static void watch_new(struct slurm *b, const struct dt_trial *t)
{
    b->watches = dt_xrealloc(b->watches, b->n + 1, sizeof(*b->watches));
    b->watches[b->n++] = (struct watch){.trial = t->id,
                                        .run = t->run,
                                        .billing = NAN,
                                        .nodes = NAN,
                                        .checkpoint = DT_CHECKPOINT_WATCH,
                                        .started = t->state == DT_TRIAL_STARTED};
}

static struct watch *watch_of(struct slurm *b, const struct dt_trial *t)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->watches[i].trial == t->id && b->watches[i].run == t->run)
            return &b->watches[i];
    watch_new(b, t); /* from before a restart */
    return &b->watches[b->n - 1];
}

static void defer(struct dt_event *ev, double pause, const char *why)
{
    ev->kind = DT_EVENT_DEFERRED;
    ev->until = dt_now() + pause;
    if (why)
        ev->text = dt_xstrdup(why);
}

/* The last run was told to end, and may take its time for it: two runs of one trial would share its
 * folder. */
static bool last_run_remains(struct slurm *b, const struct dt_trial *t)
{
    bool remains = false;
    if (t->run < 2 || listed_jobs(b, NULL) < 0)
        return t->run >= 2;
    char *name = dt_trial_job_name(b->c.job, b->c.study, t->id, t->run - 1);
    for (size_t i = 0; i < b->jobs.n; i++)
        if (strcmp(b->jobs.v[i].name, name) == 0)
            remains |= !b->jobs.v[i].over || b->jobs.v[i].completing;
    free(name);
    return remains;
}

/* Whether there is nothing to submit now; then `ev` says why. */
static bool need_not_submit(struct slurm *b, const struct dt_trial *t, struct dt_event *ev)
{
    int found = 0;
    if (t->deferred > 0) /* what looked like a refusal may have been an answer that came too late */
        found = find(b, t, &ev->job, NULL);
    if (found < 0)
        defer(ev, DEFER, "slurmctld does not answer");
    else if (!found && last_run_remains(b, t))
        defer(ev, AGAIN, "its last run is still ending");
    return found > 0 || ev->kind == DT_EVENT_DEFERRED;
}

static int submit(void *arg, const struct dt_study *s, const struct dt_trial *t,
                  struct dt_event *ev, struct dt_error *e)
{
    struct slurm *b = arg;
    char *alone = NULL;
    *ev = (struct dt_event)DT_EVENT(DT_EVENT_SUBMITTED);
    ev->t = dt_now();
    ev->trial = t->id;
    ev->run = t->run;
    if (need_not_submit(b, t, ev) || !dt_trial_hand_over(&b->c, s, t, ev, &alone))
        return 0;
    char *path = write_script(b, s, t, e);
    int rc =
        path ? dt_slurm_submit(b->c.sbatch, path, &b->c.submission->args, &ev->job, &ev->text, e)
             : -1;
    if (rc == 0) {
        ev->text = alone;
        alone = NULL;
        watch_new(b, t);
        b->tick = TICK_MIN;
        b->poll_pause = POLL_MIN;
        poll_soon(b, POLL_MIN);
    } else if (rc == 1) {
        b->listed = 0; /* it may be there all the same */
        defer(ev, DEFER, NULL);
    } else if (rc == 2) {
        ev->kind = DT_EVENT_ENDED;
        ev->cause = DT_CAUSE_NOT_SCHEDULABLE;
    }
    free(path);
    free(alone);
    return rc < 0 ? -1 : 0;
}

/* Never fails: what slurmctld does not take now is asked for again while waiting. */
static int cancel(void *arg, const struct dt_trial *t, struct dt_error *e)
{
    struct slurm *b = arg;
    (void)e;
    b->tick = TICK_MIN;
    poll_soon(b, 0.2);
    if (t->job && dt_slurm_cancel(t->job, NULL) < 0)
        watch_of(b, t)->cancel_due = dt_monotonic() + AGAIN;
    return 0;
}

/* ---- checkpoints ---- */

/* The tasks are signalled, or the script where it started none: a shell that waits for them would
 * die of it. */
static void ask(struct slurm *b, const struct dt_study *s, const struct dt_trial *t, struct watch *w)
{
    char *dir = dt_trial_dir(&b->c, t);
    bool script = !dt_records_launched(dir);
    bool heard = dt_slurm_signal(t->job, s->spec->checkpoint.signal, script, NULL) == 0;
    w->ask_due = heard ? 0 : dt_monotonic() + AGAIN;
    free(dir);
}

static int checkpoint(void *arg, const struct dt_study *s, const struct dt_trial *t, struct dt_error *e)
{
    struct slurm *b = arg;
    struct watch *w = watch_of(b, t);
    char *dir = dt_trial_dir(&b->c, t);
    (void)e; /* what slurmctld does not take now is sent again while waiting */
    dt_checkpoint_wait(&w->checkpoint, dir);
    free(dir);
    ask(b, s, t, w);
    b->tick = TICK_MIN;
    return 0;
}

static void look_for_checkpoint(struct slurm *b, const struct dt_study *s, const struct dt_trial *t,
                                struct watch *w, const char *dir, bool ended, const struct dt_events *out)
{
    if (!t->move.asking || t->move.checkpointed)
        return;
    if (!ended && w->ask_due > 0 && dt_monotonic() >= w->ask_due)
        ask(b, s, t, w);
    if (dt_checkpoint_came(&w->checkpoint, dir, ended))
        dt_events_add(out, DT_EVENT_CHECKPOINTED, t, dt_now());
}

/* ---- fewer workers ---- */

static size_t workers_of(const struct slurm *b, const struct dt_trial *t)
{
    return (size_t)dt_space_value(b->c.space, t->x, "workers", 1);
}

static void tell_surplus(struct slurm *b, const struct dt_trial *t, struct watch *w)
{
    char *dir = dt_trial_dir(&b->c, t);
    bool heard = dt_shed_order(dir, t->run, workers_of(b, t), NULL) == 0 &&
                 dt_slurm_signal(t->job, SIGURG, false, NULL) == 0;
    w->shed_due = dt_monotonic() + (heard ? LATE : AGAIN);
    free(dir);
}

static int shed(void *arg, const struct dt_study *s, const struct dt_trial *t, struct dt_error *e)
{
    struct slurm *b = arg;
    struct watch *w = watch_of(b, t);
    (void)s;
    (void)e; /* what slurmctld does not take now is sent again while waiting */
    w->shedding = true;
    w->emptied = false;
    tell_surplus(b, t, w);
    b->tick = TICK_MIN;
    return 0;
}

static void look_for_surplus(struct slurm *b, const struct dt_trial *t, struct watch *w,
                             const char *dir)
{
    bool due = dt_monotonic() >= w->shed_due;
    if (!w->shedding || (w->emptied && !due))
        return;
    if (!w->emptied && due)
        tell_surplus(b, t, w);
    w->emptied = dt_shed_done(dir, t->run, workers_of(b, t));
    if (!w->emptied)
        return;
    int rc = dt_shed_nodes(dir, t->job, workers_of(b, t));
    w->shedding = rc < 0;
    w->shed = rc > 0;
    w->shed_due = dt_monotonic() + LATE;
    poll_soon(b, 0.2);
}

/* ---- watching ---- */

/* `job`: NULL where Slurm does not know it. One whose end is recorded may be at work for Slurm for
 * a while longer. */
static enum dt_cause cause_of_state(const struct dt_slurm_job *job, bool failed)
{
    bool announced = job && job->preempted && job->state < JOB_COMPLETE;
    switch (announced ? JOB_PREEMPTED : job ? job->state : JOB_END) {
    case JOB_OOM:
        return DT_CAUSE_OUT_OF_MEMORY;
    case JOB_TIMEOUT:
    case JOB_DEADLINE:
        return DT_CAUSE_TIME_LIMIT;
    case JOB_NODE_FAIL:
    case JOB_BOOT_FAIL:
        return DT_CAUSE_NODE_FAILURE;
    case JOB_PREEMPTED:
        return DT_CAUSE_PREEMPTED;
    case JOB_CANCELLED:
        return DT_CAUSE_CANCELLED;
    }
    return failed ? DT_CAUSE_EXIT : DT_CAUSE_OK;
}

#define NOT_LAUNCHED                                                                               \
    "the script ended well but started no servers: Slurm's own srun ran, as PATH was set anew (a " \
    "login shell, a module) or srun has a path; call dt-launch instead of srun"

/* Of a run that was told to end, though Slurm takes what came of it for an end of its own. */
static enum dt_cause cause_of_told(const struct slurm *b, const struct dt_study *s,
                                   enum dt_cause cause)
{
    if (!dt_trials_are_warned(&b->c))
        return DT_CAUSE_CANCELLED;
    /* what it has measured until its time was up is a result, how long it took is none */
    bool result = cause == DT_CAUSE_OK && !dt_spec_objective_is_time(s->spec);
    return result ? cause : DT_CAUSE_TIME_LIMIT;
}

static enum dt_cause cause_of_end(const struct slurm *b, const struct dt_study *s,
                                  const struct dt_trial *t, const char *dir,
                                  const struct dt_records *r, const struct dt_slurm_job *job)
{
    bool failed = r->ended ? r->exit_code || r->signal : !job || job->state != JOB_COMPLETE;
    bool done = r->ended && !failed && !r->told && !r->tasks_told;
    enum dt_cause cause = cause_of_state(job, failed);
    if (job && job->never)
        return job->launch_failed ? DT_CAUSE_NODE_FAILURE : DT_CAUSE_NOT_SCHEDULABLE;
    if (r->orphan)
        return DT_CAUSE_NO_TUNER;
    if (!job && (!r->ended || dt_trial_told(r, s, t)))
        return DT_CAUSE_LOST;
    /* its work was done, whatever came after; but preemption may come by the user's signal */
    if (done && !(cause == DT_CAUSE_PREEMPTED && dt_trials_are_warned(&b->c)))
        return DT_CAUSE_OK;
    if (cause == DT_CAUSE_EXIT && !r->told && dt_records_out_of_memory(dir))
        return DT_CAUSE_OUT_OF_MEMORY;
    if ((cause == DT_CAUSE_OK || cause == DT_CAUSE_EXIT) && dt_trial_told(r, s, t))
        return cause_of_told(b, s, cause); /* Slurm may not have said so yet */
    /* told by the tuner, which asks for checkpoints so */
    return cause == DT_CAUSE_EXIT && r->told ? DT_CAUSE_CANCELLED : cause;
}

static void emit_end(const struct slurm *b, const struct dt_study *s, const struct dt_trial *t,
                     const struct watch *w, const char *dir, const struct dt_records *r,
                     const struct dt_slurm_job *job, const struct dt_events *out)
{
    struct dt_event *ev = dt_events_add(out, DT_EVENT_ENDED, t, dt_now());
    bool by_slurm = job && !(r->started && r->ended); /* which counts whole seconds */
    double start = r->started ? r->start : job ? job->start : NAN;
    ev->cause = cause_of_end(b, s, t, dir, r, job);
    ev->over = ev->t - (w->over_since > 0 ? dt_monotonic() - w->over_since : 0);
    ev->exit_code = r->ended ? r->exit_code : job ? job->exit_code : 0;
    ev->signal = r->ended ? r->signal : job ? job->signal : 0;
    if (r->started || w->started) {
        ev->wait_s = fmax(0, start - t->t_submitted);
        ev->startup_s = r->launch - r->start;
        ev->run_s = by_slurm ? fmax(job->end - job->start, 0.5) : r->run_s;
    }
    ev->billing = job ? job->billing : w->billing;
    ev->nodes = job ? job->nodes : w->nodes;
    ev->note = dt_trial_note(w->feed, r);
    bool servers = dt_space_value(b->c.space, t->x, "ps", 0) > 0;
    if (ev->cause == DT_CAUSE_OK && servers && r->ended && isnan(r->launch)) {
        ev->cause = DT_CAUSE_NOT_LAUNCHED; /* whatever it measured was not this configuration */
        ev->text = dt_xstrdup(NOT_LAUNCHED);
    } else if (r->failed)
        ev->text = dt_xstrdup(r->failed);
    else if (job && job->reason)
        ev->text = dt_xstrdup(job->reason);
}

/* Whether all is known of a run's end. `asked`: Slurm has answered, so that no `job` means that it
 * knows of none. */
static bool is_final(const struct slurm *b, struct watch *w, const struct dt_trial *t,
                     const struct dt_records *r, const struct dt_slurm_job *job, bool asked)
{
    bool over = job ? job->over : asked;
    bool told = r->told || r->tasks_told || dt_trials_are_warned(&b->c);
    bool good = r->ended && !r->exit_code && !r->signal && !told;
    bool broken = job && !job->over && job->state >= JOB_COMPLETE; /* a part of it has failed */
    if ((over || r->ended || broken) && w->over_since == 0)
        w->over_since = dt_monotonic();
    bool waited = w->over_since > 0 && dt_monotonic() - w->over_since > GRACE;
    if (broken && waited && w->cancel_due == 0)
        w->cancel_due = dt_monotonic();
    if (job && job->never && (job->launch_failed || t->state == DT_TRIAL_SUBMITTED))
        return true;
    if (r->ended) /* one that was told to end may look like one that had finished: Slurm knows */
        return (good && !isnan(w->billing)) || (job && over) || (waited && (asked || !told));
    if (over && job && job->state == JOB_CANCELLED && !w->started)
        return true; /* it never ran, so there will be no record */
    return asked && over && waited;
}

/* By number and name: a slurmctld that crashed may give the numbers that it had not yet saved to
 * other jobs. */
static const struct dt_slurm_job *find_in(const struct slurm *b, const struct dt_slurm_jobs *jobs,
                                          const struct dt_trial *t)
{
    const struct dt_slurm_job *job = jobs ? dt_slurm_jobs_find(jobs, t->job) : NULL;
    char *name = dt_trial_job_name(b->c.job, b->c.study, t->id, t->run);
    bool ours = job && strcmp(job->name, name) == 0;
    free(name);
    return ours ? job : NULL;
}

/* Everything that can be said of one trial now. `jobs` is NULL where Slurm was not asked. True when
 * there was news: what it uses is none, for it comes as long as it runs, and says nothing of Slurm. */
static bool look_at(struct slurm *b, const struct dt_study *s, const struct dt_trial *t,
                    const struct dt_slurm_jobs *jobs, const struct dt_events *out)
{
    struct watch *w = watch_of(b, t);
    const struct dt_slurm_job *job = find_in(b, jobs, t);
    struct dt_records r;
    size_t before = *out->n;
    char *dir = dt_trial_dir(&b->c, t);
    dt_records_read(dir, &r);
    if (job) {
        w->billing = job->billing;
        w->nodes = job->state == JOB_PENDING ? NAN : job->nodes;
    }
    if (job && !job->over && w->cancel_due > 0 && dt_monotonic() >= w->cancel_due) {
        dt_slurm_cancel(t->job, NULL);
        w->cancel_due = dt_monotonic() + AGAIN;
    }
    if (!w->started && (r.started || (job && job->state == JOB_RUNNING))) {
        double start = r.started ? r.start : job->start;
        struct dt_event *ev = dt_events_add(out, DT_EVENT_STARTED, t, start);
        ev->wait_s = fmax(0, start - t->t_submitted);
        ev->nodes = w->nodes;
        w->started = true;
        b->poll_pause = POLL_MIN;
        poll_soon(b, POLL_MIN);
    } else if (w->started && !isnan(w->nodes) &&
               (isnan(t->nodes) || (w->shed && job && !job->over && w->nodes < t->nodes))) {
        /* its own record was seen before Slurm was asked, or some were given back */
        dt_events_add(out, DT_EVENT_ALLOCATED, t, dt_now())->nodes = w->nodes;
    }
    if (w->started)
        dt_trial_metrics(&b->c, s, t, &w->feed, r.ended, out);
    bool news = *out->n > before, final = is_final(b, w, t, &r, job, jobs != NULL);
    if (w->started || final)
        dt_trial_usage(&b->c, s, t, &b->asks, &w->usage, r.ended || final, out);
    size_t told = *out->n;
    look_for_checkpoint(b, s, t, w, dir, final, out);
    if (!final)
        look_for_surplus(b, t, w, dir);
    news |= *out->n > told;
    if (final) {
        if (!w->started || !r.ended)
            dt_trial_metrics(&b->c, s, t, &w->feed, true, out);
        if (job && job->never)
            dt_slurm_cancel(t->job, NULL);
        emit_end(b, s, t, w, dir, &r, job, out);
        dt_feed_free(w->feed);
        dt_usage_feed_free(w->usage);
        w->feed = NULL;
        w->usage = NULL;
        b->listed = 0; /* its next run asks whether Slurm has done with this one */
        news = true;
    } else if (w->over_since > 0) {
        poll_soon(b, 0.1);
    }
    dt_records_free(&r);
    free(dir);
    return news;
}

static bool look(struct slurm *b, const struct dt_study *s, const struct dt_events *out)
{
    bool ask = poll_now(b), news = false;
    bool asked = ask && list_jobs(b, NULL) == 0; /* if not, ask again later; records still count */
    if (ask) {
        b->poll_pause = fmin(b->poll_pause * 1.5, POLL_MAX);
        b->next_poll = dt_monotonic() + (asked ? b->poll_pause : POLL_MIN);
    }
    for (size_t i = 0; i < s->n; i++)
        if (dt_trial_live(&s->trials[i]))
            news |= look_at(b, s, &s->trials[i], asked ? &b->jobs : NULL, out);
    return news;
}

static int wait_for(void *arg, const struct dt_study *s, double until, struct dt_event **events,
                    size_t *n, struct dt_error *e)
{
    struct slurm *b = arg;
    struct dt_events out = {events, n};
    size_t before = *n;
    bool woken = false;
    double end = dt_monotonic() + until - dt_now(); /* however clocks are set meanwhile */
    (void)e;
    for (;;) {
        if (look(b, s, &out))
            b->tick = TICK_MIN;
        double left = end - dt_monotonic();
        if (*n > before || woken || left <= 0)
            return 0;
        double tick = fmin(fmin(b->tick, left), poll_due(b) - dt_monotonic());
        woken = dt_slurm_nap(b->c.wake_fd, fmax(TICK_LEAST, tick));
        b->tick = fmin(b->tick * 1.3, TICK_MAX);
    }
}

/* ---- restart and end ---- */

/* The script has said how it ended: the job is about to be over. Its name ends in "TRIAL-RUN". */
static bool has_ended(const struct slurm *b, const char *number)
{
    struct dt_trial t = {.id = atoi(number)};
    struct dt_records rec;
    char *dir = dt_trial_dir(&b->c, &t);
    dt_records_read(dir, &rec);
    bool ended = rec.ended;
    dt_records_free(&rec);
    free(dir);
    return ended;
}

/* Cancels every job of the study that is not over, and counts instead those that end by themselves where there is `leaving`.
 * The number of those cancelled, or -1. */
static int sweep_once(struct slurm *b, size_t *leaving, struct dt_error *e)
{
    struct dt_slurm_jobs jobs;
    if (dt_slurm_jobs_load(&jobs, e) < 0)
        return -1;
    char *mark = dt_xasprintf(".dt-%s-", b->c.study);
    int n = 0, rc = 0;
    if (leaving)
        *leaving = 0;
    for (size_t i = 0; i < jobs.n; i++) {
        const char *at = strstr(jobs.v[i].name, mark);
        if (!at || jobs.v[i].over)
            continue;
        if (leaving && has_ended(b, at + strlen(mark))) {
            ++*leaving;
            continue;
        }
        rc |= dt_slurm_cancel(jobs.v[i].id, e);
        n++;
    }
    free(mark);
    dt_slurm_jobs_free(&jobs);
    return rc < 0 ? -1 : n;
}

static int sweep(void *arg, struct dt_error *e)
{
    struct slurm *b = arg;
    size_t leaving = 0;
    double end = dt_monotonic() + SWEEP, patience = dt_monotonic() + LEAVING;
    int n = sweep_once(b, &leaving, e);
    while (n < 0 && dt_monotonic() < end) { /* slurmctld may be back soon */
        dt_slurm_nap(b->c.wake_fd, AGAIN);  /* trials that have ended say so, too */
        dt_error_clear(e);
        n = sweep_once(b, &leaving, e);
    }
    while (n >= 0 && leaving && dt_monotonic() < patience) {
        dt_slurm_nap(b->c.wake_fd, LOOK);
        n = sweep_once(b, &leaving, e);
    }
    if (n > 0 || leaving) { /* a submission may have been on its way while we looked */
        dt_slurm_nap(b->c.wake_fd, LOOK);
        n = sweep_once(b, NULL, e);
    }
    return n < 0 ? -1 : 0;
}

static void destroy(void *arg)
{
    struct slurm *b = arg;
    for (size_t i = 0; i < b->n; i++) {
        dt_feed_free(b->watches[i].feed);
        dt_usage_feed_free(b->watches[i].usage);
    }
    free(b->watches);
    dt_slurm_jobs_free(&b->jobs);
    free(b);
}

static const struct dt_backend_ops ops = {
    .name = "slurm",
    .now = now,
    .submit = submit,
    .cancel = cancel,
    .checkpoint = checkpoint,
    .shed = shed,
    .wait = wait_for,
    .find = find,
    .sweep = sweep,
    .destroy = destroy,
};

struct dt_backend *dt_backend_slurm(const struct dt_slurm_config *config)
{
    struct slurm *b = dt_xcalloc(1, sizeof(*b));
    struct dt_backend *backend = dt_xcalloc(1, sizeof(*backend));
    b->c = *config;
    b->tick = TICK_MIN;
    b->poll_pause = POLL_MIN;
    b->pace = (struct dt_pace){POLL_EVERY, POLL_BURST, 0};
    b->asks = (struct dt_pace)DT_PACE_ASKS;
    *backend = (struct dt_backend){&ops, b};
    return backend;
}
