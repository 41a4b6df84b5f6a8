/* Runs as shares of the tuner's own allocation. The batch wrapper of a run is a process group here;
 * its roles are job steps, which Slurm keeps to the CPUs, memory and GPUs that the books gave them.
 * A run is over, and its share free, when its wrapper has ended and nothing of it is left: neither
 * a process of the group nor a step. */
#include "backend/slurm_private.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_MIN 0.1 /* how often metrics are looked for, at first and after news */
#define TICK_MAX 1.0
#define TICK_CLEAR 0.05 /* how often it is looked whether what ended has left anything */
#define GRACE 15.0      /* from the request to end, by SIGTERM, to the end by force */
#define LINGER 3.0      /* what a run leaves behind ends so long after it by force */
#define AGAIN 1.0       /* pause before the same force is used again */
#define TOLD 1.0        /* so long after a run that ended by a signal our own may arrive */
#define SWEEP 10.0      /* at the end of the study all that still runs has so much time */
#define DEFER 15.0      /* pause before a process is asked for again that the system refused */

struct run {
    int trial, run;
    pid_t group; /* also the wrapper's process id */
    char *name;  /* beginning of its steps' names */
    struct dt_placement where;
    struct dt_feed *feed;
    struct dt_usage_feed *usage;
    struct dt_checkpoint_watch checkpoint;
    double ask_due; /* monotonic: when it is to be asked again, as it was not heard; 0 */
    bool started;
    bool asked;   /* to end, by us */
    double ended; /* monotonic: when the wrapper did; 0: it runs */
    int status;   /* of the wrapper, as waitpid() gives it */
    bool gone;    /* no process of the group is left: its number may be another's by now */
    bool clear;   /* nothing of it is left */
    double force; /* monotonic: when what is left of it is ended by force; INFINITY */
};

struct steps {
    struct dt_slurm_config c;
    struct dt_allocation a;
    struct run *runs; /* under way */
    size_t n;
    double tick;
    struct dt_pace asks; /* of questions what runs use */
    bool keeps; /* all its nodes: Slurm does not take them back */
};

static double now(void *b)
{
    (void)b;
    return dt_now();
}

static struct run *run_of(const struct steps *b, const struct dt_trial *t)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->runs[i].trial == t->id && b->runs[i].run == t->run)
            return &b->runs[i];
    return NULL;
}

static void run_free(struct run *r)
{
    dt_placement_free(&r->where);
    dt_feed_free(r->feed);
    dt_usage_feed_free(r->usage);
    free(r->name);
}

/* ---- start ---- */

/* 1: not now, the system has no process to give. */
static int spawn_wrapper(struct run *r, const char *dir, char *const *argv, char *const *env,
                         const char *cwd, struct dt_error *e)
{
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t attr;
    sigset_t none, defaults;
    char *output = dt_xasprintf("%s/output.log", dir);
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&fa, 1, output, O_WRONLY | O_CREAT | O_APPEND, 0666);
    posix_spawn_file_actions_adddup2(&fa, 1, 2);
    if (cwd)
        posix_spawn_file_actions_addchdir_np(&fa, cwd);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &defaults);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                        POSIX_SPAWN_SETPGROUP);
    int rc = posix_spawn(&r->group, argv[0], &fa, &attr, argv, env);
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&attr);
    free(output);
    if (rc)
        dt_fail(e, "cannot start %s: %s", argv[0], strerror(rc));
    return rc == EAGAIN || rc == ENOMEM ? 1 : rc ? -1 : 0;
}

/* What an attempt at the same run has left must not be taken for this one's. */
static void remove_records(const char *dir)
{
    static const char *const names[] = {"start.json", "end.json"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char *path = dt_xasprintf("%s/%s", dir, names[i]);
        unlink(path);
        free(path);
    }
}

static int start(struct steps *b, const struct dt_study *s, const struct dt_trial *t,
                 struct dt_shape *shape, struct run *r, struct dt_error *e)
{
    struct dt_strv argv = DT_STRV_INIT, env = DT_STRV_INIT;
    struct dt_trial_script script = {
        .shape = shape, .books = &b->a.books, .where = &r->where, .tuner_pid = (int)getpid()};
    char *dir = dt_trial_dir(&b->c, t), *path = dt_trial_write_script(&b->c, s, t, &script, e);
    int rc = -1;
    if (path) {
        remove_records(dir);
        dt_strv_add(&argv, b->c.launch);
        dt_strv_add(&argv, "--carrier");
        dt_strv_add(&argv, path);
        dt_strv_addv(&argv, b->c.submission->args.v);
        dt_steps_environ(&b->a.books, &r->where, r->name, shape->roles[DT_ROLE_WORKER].cpus, &env);
        rc = spawn_wrapper(r, dir, argv.v, env.v, dt_submission_value(b->c.submission, "chdir"), e);
    }
    dt_strv_free(&argv);
    dt_strv_free(&env);
    free(path);
    free(dir);
    return rc;
}

/* The shortest time that a trial took which came to its end; INFINITY before there is one. */
static double shortest(const struct dt_study *s)
{
    double least = INFINITY;
    for (size_t i = 0; i < s->n; i++)
        if (s->trials[i].status == DT_STATUS_OK && isfinite(s->trials[i].run_s))
            least = fmin(least, s->trials[i].run_s);
    return least;
}

/* How long a run takes is not known, but one that is faster than all others is not to be hoped for;
 * unless it goes on with what another run has left. */
static bool too_late(const struct steps *b, const struct dt_study *s, const struct dt_trial *t,
                     struct dt_event *ev)
{
    double left = dt_allocation_closes(&b->a) - ev->t, least = shortest(s);
    if (t->parent || t->nparts || !(isfinite(least) && least > left))
        return false;
    char *time = dt_format_duration(fmax(left, 0)), *took = dt_format_duration(least);
    ev->kind = DT_EVENT_DEFERRED;
    ev->until = b->a.end;
    ev->text = dt_xasprintf("%s are left of the allocation's time, and no trial took less than %s",
                            time, took);
    free(time);
    free(took);
    return true;
}

/* There is no place for it: until another ends, or for ever. */
static void no_place(const struct steps *b, struct dt_event *ev)
{
    if (b->n > 0) {
        ev->kind = DT_EVENT_DEFERRED;
        ev->until = INFINITY;
        ev->text = dt_xstrdup("there is no room for it beside the trials that run");
        return;
    }
    ev->kind = DT_EVENT_ENDED;
    ev->cause = DT_CAUSE_NOT_SCHEDULABLE;
    ev->text = dt_xstrdup("it needs more CPUs, memory or GPUs than this allocation has");
}

static int submit(void *arg, const struct dt_study *s, const struct dt_trial *t,
                  struct dt_event *ev, struct dt_error *e)
{
    struct steps *b = arg;
    struct dt_shape shape;
    struct run r = {
        .trial = t->id, .run = t->run, .checkpoint = DT_CHECKPOINT_WATCH, .force = INFINITY};
    *ev = (struct dt_event)DT_EVENT(DT_EVENT_SUBMITTED);
    ev->t = dt_now();
    ev->trial = t->id;
    ev->run = t->run;
    ev->job = b->a.job;
    dt_shape_make_steps(s->space, t->x, b->c.job, &shape);
    if (too_late(b, s, t, ev))
        return 0;
    if (!dt_shape_place(&shape, &b->a.books, &r.where)) {
        no_place(b, ev);
        return 0;
    }
    if (!dt_trial_hand_over(&b->c, s, t, ev, &ev->text)) {
        run_free(&r);
        return 0;
    }
    r.name = dt_trial_job_name(b->c.job, b->c.study, t->id, t->run);
    int rc = start(b, s, t, &shape, &r, e);
    if (rc > 0) {
        ev->kind = DT_EVENT_DEFERRED;
        ev->until = ev->t + DEFER;
        free(ev->text);
        ev->text = dt_xstrdup(e->text);
        dt_error_clear(e);
    }
    if (rc) {
        run_free(&r);
        return rc < 0 ? -1 : 0;
    }
    dt_placement_take(&b->a.books, &r.where);
    b->runs = dt_xrealloc(b->runs, b->n + 1, sizeof(*b->runs));
    b->runs[b->n++] = r;
    b->tick = TICK_MIN;
    return 0;
}

/* ---- end ---- */

static void ask_to_end(struct run *r)
{
    if (!r->asked && !r->ended)
        kill(-r->group, SIGTERM);
    r->asked = true;
    r->force = fmin(r->force, dt_monotonic() + GRACE);
}

static int cancel(void *arg, const struct dt_trial *t, struct dt_error *e)
{
    struct steps *b = arg;
    struct run *r = run_of(b, t);
    (void)e;
    if (r)
        ask_to_end(r);
    return 0;
}

/* Reaps what has ended of the group. Whatever loses its parent becomes a child of this process. */
static bool group_is_gone(struct run *r)
{
    int status;
    if (r->gone)
        return true;
    for (pid_t pid; (pid = waitpid(-r->group, &status, WNOHANG)) > 0;) {
        if (pid != r->group)
            continue;
        r->status = status;
        r->ended = dt_monotonic();
    }
    r->gone = kill(-r->group, 0) < 0 && errno == ESRCH;
    return r->gone;
}

/* How many steps the run has, by their names; each gets the signal, if it is one. -1: not known, or
 * they may not have got it. */
static int steps_of(const struct steps *b, const struct run *r, int signal)
{
    struct dt_slurm_steps all = {0}, ours = {0};
    char *mark = dt_xasprintf("%s.", r->name);
    int n = -1;
    if (dt_slurm_steps_load(b->a.job, mark, &all, NULL) == 0) {
        for (size_t i = 0; i < all.ids.n; i++)
            if (dt_starts_with(all.names.v[i], mark))
                dt_strv_add(&ours.ids, all.ids.v[i]);
        n = (int)ours.ids.n;
        if (signal && dt_slurm_steps_signal(&ours, signal) < 0)
            n = -1;
        dt_slurm_steps_free(&all);
        dt_slurm_steps_free(&ours);
    }
    free(mark);
    return n;
}

/* Whether nothing of the run is left; what will not go is made to. */
static bool is_over(const struct steps *b, struct run *r)
{
    if (r->clear)
        return true;
    bool running = !r->ended, gone = group_is_gone(r), by_force = dt_monotonic() >= r->force;
    if (running && r->ended) {
        r->force = fmin(r->force, r->ended + LINGER);
        if (!gone) /* as Slurm does with what a batch script leaves */
            kill(-r->group, SIGTERM);
    }
    if (by_force) {
        if (!gone)
            kill(-r->group, SIGKILL);
        r->force = dt_monotonic() + AGAIN;
    }
    if (by_force || (r->ended && gone))
        r->clear = steps_of(b, r, by_force ? SIGKILL : 0) == 0 && r->ended && gone;
    return r->clear;
}

/* ---- checkpoints ---- */

/* The tasks are signalled, or the script where it started none, by way of its wrapper. */
static void ask(const struct steps *b, const struct dt_study *s, struct run *r, const char *dir)
{
    int signal = s->spec->checkpoint.signal;
    bool heard =
        dt_records_launched(dir) ? steps_of(b, r, signal) > 0 : kill(r->group, signal) == 0;
    r->ask_due = heard ? 0 : dt_monotonic() + AGAIN;
}

static int checkpoint(void *arg, const struct dt_study *s, const struct dt_trial *t,
                      struct dt_error *e)
{
    struct steps *b = arg;
    struct run *r = run_of(b, t);
    (void)e;
    if (r && !r->ended) {
        char *dir = dt_trial_dir(&b->c, t);
        dt_checkpoint_wait(&r->checkpoint, dir);
        ask(b, s, r, dir);
        b->tick = TICK_MIN;
        free(dir);
    }
    return 0;
}

static void look_for_checkpoint(const struct steps *b, const struct dt_study *s,
                                const struct dt_trial *t, struct run *r, const char *dir, bool over,
                                const struct dt_events *out)
{
    if (!t->move.asking || t->move.checkpointed)
        return;
    if (!r->ended && r->ask_due > 0 && dt_monotonic() >= r->ask_due)
        ask(b, s, r, dir);
    if (dt_checkpoint_came(&r->checkpoint, dir, over))
        dt_events_add(out, DT_EVENT_CHECKPOINTED, t, dt_now());
}

/* ---- what a run has come to ---- */

#define NOT_LAUNCHED                                                                               \
    "the script ended well but started no roles, so its work was not done in the trial's share; "  \
    "with layout steps start it by srun or dt-launch"

static enum dt_cause cause_of(const struct steps *b, const struct dt_study *s,
                              const struct dt_trial *t, const struct run *r,
                              const struct dt_records *rec, const char *dir)
{
    bool failed = rec->ended ? rec->exit_code || rec->signal : r->status != 0;
    bool told = rec->told || rec->tasks_told;
    if (rec->orphan)
        return DT_CAUSE_NO_TUNER;
    if (r->asked && (failed || rec->told))
        return DT_CAUSE_CANCELLED;
    enum dt_job_fate fate = failed || told ? dt_slurm_fate(b->a.job) : DT_JOB_STAYS;
    if (fate == DT_JOB_ENDS && !r->asked)
        return DT_CAUSE_INTERRUPTED; /* with the tuner, which is told last */
    if (rec->told)
        return DT_CAUSE_CANCELLED;
    if (fate == DT_JOB_PREEMPTED)
        return DT_CAUSE_PREEMPTED; /* the tuner is told at the end of the partition's GraceTime */
    if (failed && dt_records_out_of_memory(dir))
        return DT_CAUSE_OUT_OF_MEMORY;
    if (dt_trial_told(rec, s, t)) /* or warned of the end of the allocation */
        return dt_trials_are_warned(&b->c) ? DT_CAUSE_INTERRUPTED : DT_CAUSE_CANCELLED;
    if (failed)
        return DT_CAUSE_EXIT;
    return isnan(rec->launch) ? DT_CAUSE_NOT_LAUNCHED : DT_CAUSE_OK;
}

static void emit_end(const struct steps *b, const struct dt_study *s, const struct dt_trial *t,
                     const struct run *r, const struct dt_records *rec, const struct dt_events *out)
{
    struct dt_event *ev = dt_events_add(out, DT_EVENT_ENDED, t, dt_now());
    char *dir = dt_trial_dir(&b->c, t);
    ev->cause = cause_of(b, s, t, r, rec, dir);
    ev->exit_code = rec->ended ? rec->exit_code : WIFEXITED(r->status) ? WEXITSTATUS(r->status) : 0;
    ev->signal = rec->ended ? rec->signal : WIFSIGNALED(r->status) ? WTERMSIG(r->status) : 0;
    ev->wait_s = 0;
    ev->startup_s = rec->launch - rec->start;
    ev->run_s = rec->ended ? rec->run_s : ev->t - (rec->started ? rec->start : t->t_submitted);
    ev->billing = b->a.billing * dt_placement_fraction(&b->a.books, &r->where);
    ev->nodes = dt_placement_nodes(&b->a.books, &r->where);
    ev->note = dt_trial_note(r->feed, rec);
    if (ev->cause == DT_CAUSE_NOT_LAUNCHED)
        ev->text = dt_xstrdup(NOT_LAUNCHED);
    else if (rec->failed)
        ev->text = dt_xstrdup(rec->failed);
    free(dir);
}

/* One that this process did not start: its tuner went down, and it with it. */
static void emit_cut_off(const struct steps *b, const struct dt_study *s, const struct dt_trial *t,
                         const struct dt_records *rec, const struct dt_events *out)
{
    struct run none = {.where = {0}};
    emit_end(b, s, t, &none, rec, out);
    struct dt_event *ev = &(*out->v)[*out->n - 1];
    ev->billing = ev->nodes = NAN;
    if (!rec->ended || rec->orphan || rec->told || rec->tasks_told) {
        ev->cause = DT_CAUSE_INTERRUPTED;
        ev->run_s = NAN;
    }
}

static void forget(struct steps *b, struct run *r)
{
    dt_placement_give_back(&b->a.books, &r->where);
    run_free(r);
    *r = b->runs[--b->n];
}

static void look_at(struct steps *b, const struct dt_study *s, const struct dt_trial *t,
                    const struct dt_events *out)
{
    struct run *r = run_of(b, t);
    bool over = r && is_over(b, r);
    struct dt_records rec;
    char *dir = dt_trial_dir(&b->c, t);
    dt_records_read(dir, &rec);
    if (!r) {
        emit_cut_off(b, s, t, &rec, out);
    } else if (over && rec.told && !r->asked && dt_monotonic() < r->ended + TOLD) {
        b->tick = TICK_MIN; /* whoever told it may be about to tell us */
    } else {
        if (rec.started && !r->started) {
            struct dt_event *ev = dt_events_add(out, DT_EVENT_STARTED, t, rec.start);
            ev->wait_s = 0;
            ev->nodes = dt_placement_nodes(&b->a.books, &r->where);
            r->started = true;
        }
        if (r->started)
            dt_trial_metrics(&b->c, s, t, &r->feed, over, out);
        if (r->started || over)
            dt_trial_usage(&b->c, s, t, &b->asks, &r->usage, over, out);
        look_for_checkpoint(b, s, t, r, dir, over, out);
        if (over) {
            emit_end(b, s, t, r, &rec, out);
            forget(b, r);
        }
    }
    dt_records_free(&rec);
    free(dir);
}

static bool clearing(const struct steps *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->runs[i].ended)
            return true;
    return false;
}

static double next_force(const struct steps *b)
{
    double next = INFINITY;
    for (size_t i = 0; i < b->n; i++)
        next = fmin(next, b->runs[i].force);
    return next - dt_monotonic();
}

static int wait_for(void *arg, const struct dt_study *s, double until, struct dt_event **events,
                    size_t *n, struct dt_error *e)
{
    struct steps *b = arg;
    struct dt_events out = {events, n};
    bool woken = false;
    double end = dt_monotonic() + until - dt_now(); /* however clocks are set meanwhile */
    (void)e;
    for (;;) {
        for (size_t i = 0; i < s->n; i++)
            if (dt_trial_live(&s->trials[i]))
                look_at(b, s, &s->trials[i], &out);
        double left = end - dt_monotonic();
        if (*n > 0)
            b->tick = TICK_MIN;
        if (*n > 0 || woken || left <= 0)
            return 0;
        double tick = clearing(b) ? TICK_CLEAR : fmin(b->tick, fmax(next_force(b), TICK_CLEAR));
        woken = dt_slurm_nap(b->c.wake_fd, fmin(tick, left));
        b->tick = fmin(b->tick * 1.3, TICK_MAX);
    }
}

/* ---- nodes that are not needed any more ---- */

/* The tuner's own node is never given back. */
static bool is_spare(const struct dt_books *books, size_t i, const char *here)
{
    return books->v[i].all.cpus && dt_books_empty(books, i) && strcmp(books->v[i].name, here) != 0;
}

/* What is billed grows with the CPUs, as dt_placement_fraction() has it. */
static void close_spare(struct dt_allocation *a, const char *here)
{
    size_t before = dt_books_total(&a->books).cpus;
    for (size_t i = 0; i < a->books.n; i++)
        if (is_spare(&a->books, i, here))
            dt_books_close(&a->books, i);
    a->billing *= (double)dt_books_total(&a->books).cpus / (double)before;
}

/* The names of those that are spare, or of those that are not. An allocation that somebody else has
 * made is not ours to make smaller. */
static struct dt_strv nodes_that(const struct steps *b, bool spare)
{
    const struct dt_books *books = &b->a.books;
    struct dt_strv names = DT_STRV_INIT;
    const char *here = getenv("SLURMD_NODENAME");
    bool ours = b->c.tuner_job && here && !b->keeps;
    for (size_t i = 0; i < books->n && ours; i++)
        if (books->v[i].all.cpus && is_spare(books, i, here) == spare)
            dt_strv_add(&names, books->v[i].name);
    return names;
}

static bool spare(void *arg, struct dt_event *ev)
{
    struct dt_strv names = nodes_that(arg, true);
    bool any = names.n > 0;
    if (any) {
        ev->nodes = (double)names.n;
        ev->text = dt_strv_join(&names, ",");
    }
    dt_strv_free(&names);
    return any;
}

static int give_back(void *arg, struct dt_error *e)
{
    struct steps *b = arg;
    struct dt_strv kept = nodes_that(b, false);
    int rc = dt_slurm_keep_nodes(b->a.job, &kept, e);
    if (rc == 0)
        close_spare(&b->a, getenv("SLURMD_NODENAME"));
    b->keeps |= rc < 0;
    dt_strv_free(&kept);
    return rc;
}

/* ---- restart and end ---- */

/* What another tuner had started went down with it. */
static int find(void *arg, const struct dt_trial *t, uint32_t *job, struct dt_error *e)
{
    (void)arg;
    (void)t;
    (void)e;
    *job = 0;
    return 0;
}

/* Steps of the study that nobody knows of: a tuner before this one, in the same allocation, may
 * have been killed. */
static void sweep_steps(const struct steps *b)
{
    struct dt_slurm_steps left = {0};
    char *mark = dt_xasprintf(".dt-%s-", b->c.study);
    if (dt_slurm_steps_load(b->a.job, mark, &left, NULL) == 0) {
        dt_slurm_steps_signal(&left, SIGKILL);
        dt_slurm_steps_free(&left);
    }
    free(mark);
}

/* Runs that the study no longer counts as live may still be on their way out. */
static int sweep(void *arg, struct dt_error *e)
{
    struct steps *b = arg;
    double end = dt_monotonic() + SWEEP;
    (void)e;
    for (size_t i = 0; i < b->n; i++)
        ask_to_end(&b->runs[i]);
    while (b->n > 0 && dt_monotonic() < end + SWEEP) {
        for (size_t i = b->n; i-- > 0;) {
            b->runs[i].force = fmin(b->runs[i].force, end);
            if (is_over(b, &b->runs[i]))
                forget(b, &b->runs[i]);
        }
        if (b->n > 0)
            dt_slurm_nap(b->c.wake_fd, TICK_CLEAR);
    }
    sweep_steps(b);
    return 0;
}

static void destroy(void *arg)
{
    struct steps *b = arg;
    for (size_t i = 0; i < b->n; i++)
        run_free(&b->runs[i]);
    dt_allocation_free(&b->a);
    free(b->runs);
    free(b);
}

static const struct dt_backend_ops ops = {
    .name = "steps",
    .now = now,
    .submit = submit,
    .cancel = cancel,
    .checkpoint = checkpoint,
    .wait = wait_for,
    .find = find,
    .spare = spare,
    .give_back = give_back,
    .sweep = sweep,
    .destroy = destroy,
};

struct dt_backend *dt_backend_steps(const struct dt_slurm_config *config, struct dt_allocation *a)
{
    struct steps *b = dt_xcalloc(1, sizeof(*b));
    struct dt_backend *backend = dt_xcalloc(1, sizeof(*backend));
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* see group_is_gone() */
    b->c = *config;
    b->a = *a;
    *a = (struct dt_allocation){0};
    b->tick = TICK_MIN;
    b->asks = (struct dt_pace)DT_PACE_ASKS;
    *backend = (struct dt_backend){&ops, b};
    return backend;
}
