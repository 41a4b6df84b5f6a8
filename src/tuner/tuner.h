/* tuner: one study.
 *
 * The core is pure: a study is the fold of dt_study_apply() over its events, and dt_study_decide() says from that state
 * alone what to do next. The shell (run.c) performs decisions through a backend, and turns everything that
 * happens into events, each in the journal before it counts. So a restart is a replay of the journal. */
#ifndef DT_TUNER_H
#define DT_TUNER_H

#include "expand/expand.h"
#include "monitor/monitor.h"
#include "optimizer/optimizer.h"
#include "spec/spec.h"
#include "stopping/prune.h"
#include "stopping/stopping.h"

#include <math.h>

/* ---- events (event.c) ---- */

enum dt_event_kind {
    DT_EVENT_CREATED,   /* trial, config, text: why this one; again: the trial that it measures once more; ask: whose;
                           parent: the trial that it goes on from, instead: in the place of which */
    DT_EVENT_SUBMITTED, /* trial, run, job; text: why it goes on from nothing though it has a parent */
    DT_EVENT_DEFERRED,  /* trial: it cannot be started now; text, until; INFINITY: until another ends */
    DT_EVENT_STARTED,   /* trial, wait_s, nodes where they are known by then */
    DT_EVENT_ALLOCATED, /* trial, nodes: Slurm has told on how many the run is */
    DT_EVENT_METRIC,    /* trial, text: name, value, step, count, read; t is when the program said it */
    DT_EVENT_USAGE,     /* trial, run, text: role, usage */
    DT_EVENT_REALLOCATING, /* trial, run, config: on which it is to go on, text: why; its run is asked for a checkpoint */
    DT_EVENT_CHECKPOINTED, /* trial, run: there is a newer checkpoint than when it was asked */
    DT_EVENT_KEPT,         /* trial, run, text: why it goes on as it is after all */
    DT_EVENT_PRUNED,    /* trial, text: why it is not worth running to its end; parent: its place goes on from that trial;
                           or ask, which is to get no trial */
    DT_EVENT_ENDED,     /* trial, run, cause, text, note, exit_code, signal, wait_s, startup_s, run_s, billing, nodes */
    DT_EVENT_STOPPING,  /* text: the reason; interrupted: unfinished trials are to be run again on resume */
    DT_EVENT_RESUMED,   /* config: search limits to change, or NULL */
    DT_EVENT_FINISHED,
    DT_EVENT_ASKED, /* ask, config: hyperparameters that another program wants tried */
    DT_EVENT_SHRINKING, /* trial, run, config, text: why; its last workers are to end, and the run
                           goes on without them */
    DT_EVENT_RELEASED,  /* nodes, text: so many, and their names, go back to Slurm; 0: why they do not */
    DT_EVENT_KINDS,
};

/* How a run ended. */
enum dt_cause {
    DT_CAUSE_OK,
    DT_CAUSE_TARGET, /* ended by us, as the target was reached */
    DT_CAUSE_EXIT,   /* exit code not 0, or a signal of its own */
    DT_CAUSE_OUT_OF_MEMORY,
    DT_CAUSE_TIME_LIMIT,
    DT_CAUSE_NO_METRIC,       /* ended well but never reported the objective, or not a finite number */
    DT_CAUSE_TARGET_MISSED,   /* ended well without reaching the target */
    DT_CAUSE_POOR,            /* ended well but without the quality asked for */
    DT_CAUSE_NOT_LAUNCHED,    /* ended well, but its servers were never started */
    DT_CAUSE_NOT_SCHEDULABLE, /* Slurm refused it, or would never start it */
    DT_CAUSE_PRUNED,          /* stopped by us, as its metric promised too little */
    /* from here on no fault of the configuration */
    DT_CAUSE_NODE_FAILURE,
    DT_CAUSE_PREEMPTED,
    DT_CAUSE_CANCELLED,   /* by somebody else */
    DT_CAUSE_STOPPED,     /* by us, at the end of the study */
    DT_CAUSE_INTERRUPTED, /* by us, since the tuner itself was told to end */
    DT_CAUSE_LOST,        /* Slurm no longer knows the job and it left no record */
    DT_CAUSE_NO_TUNER,    /* it found that no tuner was there any more, and ended */
    DT_CAUSE_NOT_HANDED_OVER, /* its parent's checkpoint could not be copied */
    DT_CAUSES,
};
extern const char *const dt_cause_names[DT_CAUSES]; /* "out of memory" */

struct dt_event {
    enum dt_event_kind kind;
    double t; /* seconds since the epoch (virtual in a replay) */
    int trial, run, again, parent, instead;
    uint32_t job;
    struct json_object *config; /* owned */
    struct json_object *ask;    /* owned; the id of a request: a string or a whole number */
    char *text;                 /* owned */
    enum dt_cause cause;
    int exit_code, signal;
    double wait_s, startup_s, run_s; /* NaN: unknown */
    double billing;                  /* what Slurm bills a second of the job */
    double nodes;                    /* that it was given */
    double step; /* how far the trial was, by its own count, when it said the value; NaN: it did not say */
    double value, until;
    int64_t count; /* how often this run has reported the metric by then; 0: unknown */
    int64_t read;  /* so many bytes of the run's metrics file count by now; 0: look at an earlier or later event */
    char *note;    /* owned; what the user should know of the run's metrics, a line each */
    bool interrupted;
    bool foreign; /* of ENDED: cancelled by somebody else, when its checkpoint was there */
    double over;  /* of ENDED, not journaled: when that was first seen; 0: now */
    struct dt_usage usage; /* of USAGE alone; its time is t */
};
#define DT_EVENT(k) {.kind = (k), .wait_s = NAN, .startup_s = NAN, .run_s = NAN, .billing = NAN, .nodes = NAN, .step = NAN, .value = NAN}

/* A journal's record; what is not known or 0 is left out. */
struct json_object *dt_event_to_json(const struct dt_event *ev);
/* The reverse. On an error ev stays as it was. */
int dt_event_from_json(struct json_object *o, struct dt_event *ev, struct dt_error *e);
void dt_event_free(struct dt_event *ev); /* what it owns */

/* ---- the study (study.c, decide.c, series.c, ask.c) ---- */

enum dt_trial_state { DT_TRIAL_CREATED, DT_TRIAL_SUBMITTED, DT_TRIAL_STARTED, DT_TRIAL_ENDED };

/* The course of a metric. Never more than DT_SERIES_MAX points: when it is full every other one goes, and from then on
 * only every second, fourth, ... value gets a place. The first value and the latest are always there. It follows from
 * the METRIC events alone. */
#define DT_SERIES_MAX 256
struct dt_point {
    double step;  /* as the event says, else the count of values; not always increasing: a run may repeat steps */
    double value; /* NaN: not a finite number */
    double t;     /* seconds since the epoch */
};
struct dt_series {
    struct dt_point *v; /* owned; in the order of the events */
    size_t n, room;
    size_t stride, seen; /* v[i] is value number i * stride, from 0, but the last is always number seen - 1 */
};
/* A step that is NaN becomes the number of values by then. */
void dt_series_add(struct dt_series *s, double step, double value, double t);
void dt_series_free(struct dt_series *s);

/* A curve of several series, with room for so many points; none so far. Its owner frees it by
 * dt_curve_free(). */
struct dt_curve dt_curve_new(size_t room);
/* A point whose step is no larger than the last is passed over. */
void dt_curve_add(struct dt_curve *c, const struct dt_point *p);
void dt_curve_free(struct dt_curve *c);

struct dt_metric {
    char *name;
    double first, last, first_t, last_t;
    int64_t count; /* how often it was reported, as far as was read */
    int64_t read;  /* so, up to the trial's metrics_read: what comes after is read again */
    bool stepless; /* a value came without a step */
    struct dt_series series;
};

struct dt_cost {
    double wait_s, run_s, billed_s, node_s;
};

/* What a run had done that was not its trial's last. Steps are the trial's own count of its work. */
struct dt_part {
    double *x; /* owned */
    int run;
    bool moved;        /* it ended with a checkpoint for the next shape, or went on in that */
    double from, to;   /* steps, as first and last reported; NaN: not reported */
    double pace;       /* steady seconds a step; NaN: not known */
    double before;     /* seconds of the run before its first report; NaN */
    double rate;       /* its throughput; NaN: not known */
    double ps, worker; /* how busy its servers and workers were, 0 to 1; NaN: not known */
    double billing, wait_s, run_s;
    double checkpoint_s; /* from asking for a checkpoint to the end of the run; NaN where it was not asked */
    struct dt_point *curve; /* owned; what it reported of the metric that is the objective */
    size_t ncurve;
};

/* A re-allocation under way. */
struct dt_move {
    double *x;         /* owned; where to; NULL: none is under way */
    double t_asked;    /* when the run was asked for a checkpoint */
    bool checkpointed; /* there is one */
    bool kept;         /* it was not heard: the run goes on, but may still end by it */
    bool asking;       /* set by the shell once it was asked; not journaled, asking again is safe */
};

struct dt_trial {
    int id; /* from 1 */
    int again; /* the trial whose configuration it measures once more; 0: none */
    int parent;  /* the trial from whose checkpoint it goes on; 0: none */
    int instead; /* the trial whose place it takes; 0: none */
    int heir;    /* its place is still to be taken by one that goes on from this trial; 0: it is not */
    double from; /* the step from which on it has its hyperparameters; NaN: it is not submitted yet */
    double start; /* the step that its present run goes on from, as far as is known; NaN likewise */
    char *alone; /* why it goes on from nothing though it has a parent; NULL */
    int ask;   /* 1 + the index of the request that it answers; 0: none */
    double *x;
    char *why;
    enum dt_trial_state state;
    int run;            /* from 1; the run under way or the last */
    uint32_t job;       /* 0: not submitted, or not known */
    double deferred;    /* not to be submitted before; INFINITY: before another trial has ended */
    double t_deferred;  /* when that was said */
    char *waits;        /* why it was deferred last; NULL */
    bool waits_on;      /* for the same reason as the time before */
    double t_created, t_submitted, t_started, t_pruned, t_ended;
    double wait_s, startup_s, run_s, billing, nodes;
    struct dt_cost earlier; /* of the runs before this one */
    enum dt_cause cause;
    char *text; /* what the end said: last lines of output, Slurm's reason */
    int exit_code, signal;
    enum dt_status status;
    double value;      /* the objective, unless status is failed or void */
    double t_target;   /* when the target was reached; NaN */
    char *pruned;      /* why it is to be stopped early; NULL: it is not */
    bool found; /* set by the shell where Slurm knew the run and the journal did not; not journaled */
    bool cancelling; /* set by the shell once its end was asked for; not journaled, asking again is safe */
    struct dt_metric *metrics;
    size_t nmetrics;
    int64_t metrics_read; /* bytes of this run's metrics file that are in here */
    char *note;           /* what the user should know of its metrics, a line each; NULL */
    struct dt_move move;
    struct dt_part *parts; /* its runs before this one that told how far they were, in order */
    size_t nparts;
    size_t moves;          /* re-allocations that were begun */
    int untended;          /* runs that ended since no tuner was there */
    bool shrunk;     /* its run began with more workers than it has now, */
    double t_shrunk; /* since then */
    bool shedding; /* set by the shell once these were told to end; not journaled, telling again is safe */
    struct dt_role_usages usage; /* what its roles use; empty where the monitor is off */
};

/* What another program has asked for. */
struct dt_ask {
    struct json_object *id; /* owned */
    double *x;              /* the hyperparameters; the DT configuration is NaN */
    int trial;              /* 0: it has none yet */
    char *withdrawn;        /* why it is to get none; NULL: it is not */
};

struct dt_study {
    const struct dt_spec *spec;
    const struct dt_space *space;
    struct dt_optimizer *optimizer;
    struct dt_past *past; /* what earlier studies observed here, or NULL; owned, set at the beginning */
    struct dt_stopping stopping;
    size_t parallel, repeats;
    double *submitted; /* the configuration as submitted, or NULL: then there is no such trial */
    bool external;     /* each trial has the hyperparameters of a request, the first the DT configuration as submitted */
    struct dt_ask *asks; /* in order */
    size_t nasks;
    const struct dt_cluster *cluster; /* set by the shell; NULL: no role moves to nodes of another kind */
    const struct dt_job *job;         /* set with it */
    double closes; /* set by the shell: what trials run in is not there for longer; INFINITY */
    bool no_more; /* set by the shell: nobody will ask any more; not journaled, the next sitting may be asked */
    struct dt_trial *trials;
    size_t n;
    int *finished; /* trial ids in the order they ended with something learnt */
    size_t nfinished;
    double t_start; /* of this sitting: the deadline counts from here; NaN before the first event */
    double t_last;
    double earlier; /* seconds of earlier sittings */
    char *no_moves;     /* owned; why nothing is re-allocated any more; NULL: it may be */
    char *stop_reason;  /* set once the study is to end */
    bool interrupted;   /* ended from outside; can be resumed */
    bool complete;
};

/* ---- requests of another program (ask.c) ---- */

/* The index of the request with this id, or -1. */
int dt_study_find_ask(const struct dt_study *s, struct json_object *id);
/* Reads hyperparameters, all that have a value and nothing else, each in its domain, into x (space->n values; the DT
 * configuration is NaN). */
int dt_study_read_ask(const struct dt_study *s, struct json_object *hyperparameters, double *x,
                      struct dt_error *e);
/* Whether some DT configuration is allowed beside them. */
bool dt_study_can_place(const struct dt_study *s, const double *x);
/* Takes ASKED, and the withdrawal of what was asked for, into the state. */
int dt_study_apply_asked(struct dt_study *s, const struct dt_event *ev, struct dt_error *e);
int dt_study_apply_withdrawn(struct dt_study *s, const struct dt_event *ev, struct dt_error *e);
/* The configuration for a request, in x, and why this one (static). -1 where none is allowed. */
int dt_study_place(struct dt_study *s, const struct dt_ask *ask, double now, double *x, const char **why,
                   struct dt_error *e);
void dt_study_free_asks(struct dt_study *s);

/* ---- a study's course ---- */

/* The search algorithm's name: "auto" is "joint" where a metric is the objective and both hyperparameters and DT
 * configuration vary, else "bayes". */
const char *dt_study_algorithm(const struct dt_spec *spec, const struct dt_space *space);
/* `submitted` (space->n values, copied) is tried first; NULL where there is no job as submitted. */
struct dt_study *dt_study_new(const struct dt_spec *spec, const struct dt_space *space,
                              const double *submitted, struct dt_error *e);
void dt_study_free(struct dt_study *s);
/* Takes one event into the state. -1 where the event makes no sense (a damaged journal). */
int dt_study_apply(struct dt_study *s, const struct dt_event *ev, struct dt_error *e);
/* The same for an event as the journal holds it. */
int dt_study_apply_record(struct dt_study *s, struct json_object *record, struct dt_error *e);
/* The configuration that an event of a trial has, space->n values; caller frees. NULL: it makes no
 * sense. */
double *dt_study_read_config(const struct dt_study *s, const struct dt_event *ev,
                             struct dt_error *e);

enum dt_action_kind {
    DT_ACTION_NONE,   /* wait */
    DT_ACTION_CREATE, /* x, why, again, ask, parent, instead */
    DT_ACTION_SUBMIT, /* trial */
    DT_ACTION_CANCEL, /* trial */
    DT_ACTION_PRUNE,  /* trial, why, parent */
    DT_ACTION_REALLOCATE, /* trial, x, why */
    DT_ACTION_CHECKPOINT, /* trial: its run is to be asked for one */
    DT_ACTION_KEEP,       /* trial, why */
    DT_ACTION_SHRINK,     /* trial, x, why */
    DT_ACTION_SHED,       /* trial: its surplus workers are to be ended */
    DT_ACTION_STOP,   /* why */
    DT_ACTION_FINISH,
};
struct dt_action {
    enum dt_action_kind kind;
    int trial, again, ask, parent, instead;
    double *x; /* owned */
    char *why; /* owned */
};
/* A running trial that is to be stopped early by the rule of SPEC's early_stop, and why (caller frees); 0: none (early.c). */
int dt_study_hopeless(const struct dt_study *s, char **why);

/* ---- population-based training: early_stop's rule pbt (population.c) ---- */

/* Whether that is the rule. */
bool dt_study_is_population(const struct dt_study *s);
/* A running trial whose place is to go on from the checkpoint of another (parent), and why (caller frees); 0: none. */
int dt_study_gives_way(const struct dt_study *s, int *parent, char **why);
/* Fills in the CREATE action for a place that is to go on from another trial. False: there is none. */
bool dt_study_create_child(const struct dt_study *s, struct dt_action *a);
/* The same for the place of one that failed, from one of the best that run now. */
bool dt_study_replace_failed(const struct dt_study *s, double now, struct dt_action *a);
/* Whether another may go on in the place of this one. */
bool dt_study_has_place(const struct dt_study *s, const struct dt_trial *t);
/* What makes it impossible; NULL: nothing. Caller frees. */
char *dt_study_no_population(const struct dt_study *s);
/* How many trials began by themselves. */
size_t dt_study_founders(const struct dt_study *s);
/* How a trial came to where it is: itself and those that it goes on from, the first first, each with the step from which
 * on its hyperparameters were in force. Caller frees. */
struct dt_stage {
    const struct dt_trial *t;
    double from;
};
struct dt_stage *dt_study_schedule(const struct dt_study *s, const struct dt_trial *t, size_t *n);
/* "lr 0.01 -> 0.012, batch_size 32 -> 38": what is other than in its parent. Caller frees. */
char *dt_trial_changes(const struct dt_study *s, const struct dt_trial *t);
/* ---- re-allocation (reallocate.c) ---- */

/* A running trial that should go on elsewhere, where (s->space->n values, caller frees) and why (caller frees);
 * 0: none. */
int dt_study_reallocate(const struct dt_study *s, double now, double **x, char **why);
/* Whether it gets to x by ending its last workers, in place; then x has the layout that it is in. */
bool dt_study_shrinks(const struct dt_study *s, const struct dt_trial *t, double *x);
/* What there is to do for re-allocations under way. */
bool dt_study_move(const struct dt_study *s, double now, struct dt_action *a);
/* When that is to be asked again at the latest; INFINITY where nothing is waited for. */
double dt_study_move_due(const struct dt_study *s);
/* Takes REALLOCATING, SHRINKING, CHECKPOINTED and KEPT into the state. */
int dt_study_apply_move(struct dt_study *s, struct dt_trial *t, const struct dt_event *ev, struct dt_error *e);
/* What the end of a run that was asked for a checkpoint means. */
enum dt_move_end {
    DT_MOVE_NONE, /* what the end of any run means */
    DT_MOVE_DONE, /* it goes on in the new shape */
    DT_MOVE_LOST, /* it has to go on in the old shape */
};
/* The run's end is in t but for its cause; sets s->no_moves where the program turned out not to be up to it. */
enum dt_move_end dt_study_move_ended(struct dt_study *s, struct dt_trial *t, const struct dt_event *ev);
/* A run failed: no more is re-allocated where it was to go on from a checkpoint. */
void dt_study_move_failed(struct dt_study *s, const struct dt_trial *t);
/* Keeps what the run that just ended had done, where it told how far it was, or was asked for a checkpoint. */
void dt_trial_keep_part(const struct dt_study *s, struct dt_trial *t, bool moved);
/* Whether its last run went on where an earlier one had ended, so that it is not the whole. */
bool dt_trial_resumed(const struct dt_study *s, const struct dt_trial *t);
/* Of its last run: the metric "throughput", else how many of its own steps it made a second between
 * its first report and its last. NaN: it reported neither, or no growing steps. */
double dt_trial_throughput(const struct dt_study *s, const struct dt_trial *t);
/* What the whole of a re-allocated trial would have been worth in the shape of a part, or of its last run (part NULL),
 * from its steady speed there: NaN where that is not known. */
double dt_trial_worth(const struct dt_study *s, const struct dt_trial *t, const struct dt_part *part);
/* Seconds that the trial would have taken in the shape of its last run: where that was the whole, as it was measured,
 * else by its steady speed. NaN: not known. */
double dt_trial_time(const struct dt_study *s, const struct dt_trial *t);
/* What a part of a trial teaches, o->x borrowed from it; status void: nothing but its pace, if any. False: it is in the
 * configuration that its trial is known for. */
bool dt_trial_observe_part(const struct dt_study *s, const struct dt_trial *t, const struct dt_part *p,
                           struct dt_observation *o);
/* Whether a part did so much of its trial's work that its speed may decide what is recommended. */
bool dt_part_is_enough(const struct dt_study *s, const struct dt_trial *t, const struct dt_part *p);
/* Whether a trial is, or ended, in this configuration. */
bool dt_study_tried_whole(const struct dt_study *s, const double *x);
/* Whether a trial measures what was tried before, once more or as a whole what a part of another
 * did: it is left where it is. */
bool dt_trial_measures(const struct dt_study *s, const struct dt_trial *t);
void dt_trial_free_moves(struct dt_trial *t);

/* The next thing to do, from the state alone. */
int dt_study_decide(struct dt_study *s, double now, struct dt_action *a, struct dt_error *e);
void dt_action_free(struct dt_action *a);
/* Whether all trials have begun that there will be, as far as can be told, and none of them will go on elsewhere. */
bool dt_study_all_begun(const struct dt_study *s);

/* What an optimizer needs to know: *obs holds all trials in order of creation, and the caller frees it. The cost is in
 * node-seconds where node-hours are limited, else in seconds; what is left of the budget is not filled in. */
struct dt_context dt_study_context(const struct dt_study *s, struct dt_observation **obs);
/* The share of the node-hours, or else of the time, that is left; 0 where neither is limited. */
double dt_study_budget_left(const struct dt_study *s, double now);
/* The (first) trial of the configuration to recommend, or NULL while none succeeded; the job as submitted, or NULL where it
 * is not tried, or was re-allocated. */
const struct dt_trial *dt_study_best(const struct dt_study *s);
const struct dt_trial *dt_study_baseline(const struct dt_study *s);
/* What the job as submitted is worth, where it is known: where it was re-allocated, by its speed until then. */
double dt_study_before(const struct dt_study *s);
/* The configuration to run from now on, in x (space->n values): the best, or where quality and speed are searched for
 * side by side its hyperparameters with the fastest DT configuration. False where no trial succeeded. */
bool dt_study_pair(const struct dt_study *s, double *x);
/* The mean of all measurements of a trial's configuration and how many there are; NaN and 0 where it has none. */
double dt_study_mean(const struct dt_study *s, const struct dt_trial *t, int *n);
/* Seconds that the study took, without the pauses between sittings. */
double dt_study_elapsed(const struct dt_study *s);
/* What all runs took that have ended, repeated ones too, as far as it is known. */
struct dt_cost dt_study_cost(const struct dt_study *s);
/* Node-seconds of all runs until now, and how many nodes they are on at this moment. */
double dt_study_node_seconds(const struct dt_study *s, double now, double *nodes);
struct dt_trial *dt_study_trial(const struct dt_study *s, int id);
const struct dt_metric *dt_trial_metric(const struct dt_trial *t, const char *name);
/* Steady seconds a step, by the objective's metric (of one reported once: a run); NaN where it was not reported. Where a
 * run is to be fast itself and the hyperparameters are not ours to choose: what it took, or the least that it may take. */
double dt_trial_pace(const struct dt_study *s, const struct dt_trial *t);
/* How much better than asked for a trial's quality is; NaN where it is not known or nothing is asked. */
double dt_trial_margin(const struct dt_study *s, const struct dt_trial *t);
bool dt_trial_live(const struct dt_trial *t); /* submitted or started */

/* ---- journal (journal.c): JSON lines, each with its check sum "crc", appended and fsynced; one writer ---- */

struct dt_journal;
/* Only reads; a torn last line, and damage to one of the last three records, is passed over. */
int dt_journal_read(const char *path,
                    int (*each)(void *arg, struct json_object *record, struct dt_error *e), void *arg,
                    struct dt_error *e);
/* Opens or creates. `each` is called for every record already there, in order, without its check; a torn last line is cut
 * off, and damage to one of the last three records (never the first) sets it and what follows aside in PATH.damaged. Other
 * damage is an error. With NULL, errno is EWOULDBLOCK where another process has it open (and `each` was not called). */
struct dt_journal *dt_journal_open(const char *path,
                                   int (*each)(void *arg, struct json_object *record, struct dt_error *e),
                                   void *arg, struct dt_error *e);
/* Whether there were records in it already. */
bool dt_journal_begun(const struct dt_journal *j);
/* What was set aside; NULL: nothing. */
const char *dt_journal_note(const struct dt_journal *j);
int dt_journal_append(struct dt_journal *j, struct json_object *record, struct dt_error *e);
void dt_journal_close(struct dt_journal *j);

/* ---- the shell (run.c) ---- */

struct dt_backend;
struct dt_reporter {
    void (*event)(void *arg, const struct dt_study *s, const struct dt_event *ev);
    void *arg;
    /* The next request of another program (ASKED or PRUNED; its time is filled in by the caller): 1; 0: there is none now.
     * Sets s->no_more once there will be none. NULL: nobody asks. */
    int (*request)(void *arg, struct dt_study *s, struct dt_event *ev);
};
/* Runs the study to its end: 0 done, 1 interrupted, -1 error. A study that was begun goes on: `limits` (or NULL)
 * are search limits to change then. `stop` is polled: once it is set (a signal), trials are cancelled and the
 * study ends as interrupted. Then what is left of its jobs is cancelled: where that does not work,
 * e says so, but the result stands. journal may be NULL (simulation). */
int dt_study_run(struct dt_study *s, struct dt_backend *b, struct dt_journal *j,
                 const struct dt_reporter *r, struct json_object *limits, const volatile int *stop,
                 struct dt_error *e);

#endif
