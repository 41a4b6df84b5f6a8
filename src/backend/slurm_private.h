/* The pieces of the Slurm backend: what libslurm says of jobs, and a trial's own records. */
#ifndef DT_SLURM_PRIVATE_H
#define DT_SLURM_PRIVATE_H

#include "backend/backend.h"

/* ---- pace.c: however many trials there are, slurmctld is asked no more often ---- */

/* Turns that are taken one after the other, on the average one each `every` seconds; after a pause
 * some can be had at once, as many as `burst`. All 0 but these two at first. */
struct dt_pace {
    double every, burst;
    double last; /* monotonic: what the turns that were given away come to */
};
/* Takes the next turn: when it is, now or later (monotonic). First come, first served. */
double dt_pace_turn(struct dt_pace *p, double now);
/* Of questions what the runs of a study use: 6 a minute, whatever their number. */
#define DT_PACE_ASKS {10.0, 1, 0}

/* ---- slurm_jobs.c: the jobs of this user ---- */

/* What matters of a job; for a heterogeneous one of the whole. */
struct dt_slurm_job {
    uint32_t id;
    char *name;
    uint32_t state; /* enum job_states, base state; a failed component's, where there is one. Preempted is also one that
                       ended by itself when Slurm had announced it */
    bool over;      /* every component has ended */
    bool completing; /* but processes of it are still there */
    bool preempted;  /* or about to be: Slurm has announced it, and may have told the tasks */
    bool never;     /* pending for a reason that will not pass */
    bool launch_failed; /* so, since a node could not start it: Slurm holds such jobs */
    char *reason;   /* of the state, in words; may be NULL */
    int exit_code, signal;
    double start, end;
    double billing, nodes; /* all components; NaN if unknown */
};
struct dt_slurm_jobs {
    struct dt_slurm_job *v;
    size_t n;
};
/* All jobs of this user that slurmctld knows, in one query. -1 where it does not answer. */
int dt_slurm_jobs_load(struct dt_slurm_jobs *jobs, struct dt_error *e);
void dt_slurm_jobs_free(struct dt_slurm_jobs *jobs);
const struct dt_slurm_job *dt_slurm_jobs_find(const struct dt_slurm_jobs *jobs, uint32_t id);
/* Gives all nodes of a running job back to Slurm but those named; what runs on the others ends. */
int dt_slurm_keep_nodes(uint32_t id, const struct dt_strv *names, struct dt_error *e);
/* The job ids of a heterogeneous job's components, its leader's first; caller frees. NULL where
 * slurmctld does not answer or knows no such job. */
uint32_t *dt_slurm_components(uint32_t leader, size_t *n);
/* What Slurm bills for a job, or what it does where the site says nothing of it: the CPUs. */
struct job_info;
double dt_slurm_billing(const struct job_info *job);
/* Like scancel. A job that is already gone is no error. */
int dt_slurm_cancel(uint32_t job, struct dt_error *e);
/* GPUs in a node's gres text: "gpu:k80:4(S:0-1),nvme:1". */
size_t dt_slurm_gpus(const char *gres);
struct node_info;
/* Whether jobs can start on the node, now or when others have ended. */
bool dt_slurm_usable(const struct node_info *n);
/* What jobs get of a node: without the cores and the memory that are set aside for the system. Its
 * texts are the node's. */
struct dt_node_class dt_slurm_size(const struct node_info *n);
/* Adds the limits of this user, as far as AccountingStorageEnforce lets any hold; none where
 * slurmctld does not say. */
void dt_slurm_limits(struct dt_system *s, unsigned enforce);

/* ---- slurm_steps.c: the steps of a job ---- */

struct dt_slurm_steps {
    struct dt_strv ids, names; /* "123.4", "train.dt-122-7-1.worker" */
    size_t *cpus;              /* of each, of all its tasks; owned */
};
/* Adds those that run in the job and have `mark` in their name to *steps, which is {0} or has
 * others. -1 where slurmctld does not answer. */
int dt_slurm_steps_load(uint32_t job, const char *mark, struct dt_slurm_steps *steps, struct dt_error *e);
void dt_slurm_steps_free(struct dt_slurm_steps *steps);
/* A signal to each, by scancel; -1 where that did not work. */
int dt_slurm_steps_signal(const struct dt_slurm_steps *steps, int signal);

/* ---- step_watch.c: what Slurm itself gathers ---- */

/* The steps of a run: all of its job, or with `name` those that it begins the names of. */
struct dt_step_source {
    uint32_t job;
    const char *name; /* or NULL */
    bool het;         /* the job has a component for each role */
    bool servers;     /* there are any: else every step is the workers' */
    struct dt_task_limits limits[DT_ROLES];
    struct dt_pace *pace; /* of all runs that are asked about, borrowed */
};
struct dt_step_watch;
struct dt_step_watch *dt_step_watch_new(const struct dt_step_source *source);
/* Asks Slurm, where the last time is `period` seconds ago, or 30 s where that is more, and its turn
 * has come, and gives what it says. Waits for the answer, 10 s at most. */
void dt_step_watch_look(struct dt_step_watch *w, double period, struct dt_gather *g);
void dt_step_watch_free(struct dt_step_watch *w);

/* ---- steps_env.c ---- */

/* What the processes of a trial find in their environment in layout steps, before its own variables: of Slurm's only what
 * is true of the trial, as a job of its size and place would have it. */
void dt_steps_environ(const struct dt_books *books, const struct dt_placement *where, const char *name,
                      size_t worker_cpus, struct dt_strv *out);

/* The files a trial's run leaves in its folder (records.c). */
struct dt_records {
    bool started, ended;
    bool told;   /* to end, while its script was still at work */
    bool tasks_told; /* so its tasks, by Slurm, and not since one of them had failed */
    bool orphan; /* it ended since its tuner was gone */
    double start, launch, end; /* launch: NaN if no role was started */
    double run_s; /* from start to end, without what it was suspended for */
    int exit_code, signal;
    char *failed; /* which task failed first, and its last lines; else those of the output; NULL */
    char *notes;  /* on the text patterns, and on its run time, a line each; NULL */
};
void dt_records_read(const char *dir, struct dt_records *r);
void dt_records_free(struct dt_records *r);
/* Whether the run has started roles. */
bool dt_records_launched(const char *dir);
/* When the newest file in the trial's checkpoint folder was last written, by the file system's clock; -INFINITY where
 * there is none. */
double dt_records_checkpoint(const char *dir);
/* The end of the trial's output; NULL where there is none. Caller frees. */
char *dt_records_last_lines(const char *dir);
/* Whether Slurm says there that the run needed more memory than it had. */
bool dt_records_out_of_memory(const char *dir);
/* The node that the run's script is on; NULL where it has not begun. Caller frees. */
char *dt_records_node(const char *dir);
/* The job that the run says it is; 0 where it has not begun. */
uint32_t dt_records_job(const char *dir);
/* ---- shed.c: a run goes on with fewer workers ---- */

/* Writes down how many workers are to stay; a signal SIGURG to the tasks has them look. */
int dt_shed_order(const char *dir, int run, size_t workers, struct dt_error *e);
/* Whether all others have ended. */
bool dt_shed_done(const char *dir, int run, size_t workers);
/* Gives the nodes that no task is left on back to Slurm. 1: done, 0: there are none, or nobody
 * knows; -1: Slurm does not answer. */
int dt_shed_nodes(const char *dir, uint32_t job, size_t workers);

/* ---- handover.c: the checkpoint of the trial that another goes on from ---- */

enum dt_handover {
    DT_HANDOVER_DONE,    /* it is there, now or since an earlier time */
    DT_HANDOVER_NOTHING, /* the parent has no file there */
    DT_HANDOVER_BUSY,    /* it kept changing: later */
    DT_HANDOVER_FAILED,  /* with an error */
};
/* Copies a folder to another place, where nothing but an empty folder may be (else that stays as it is): complete and
 * as it was at one moment, or not at all. Links are copied as links. */
enum dt_handover dt_handover(const char *from, const char *to, struct dt_error *e);

/* ---- metrics.c: what a run reports ----
 *
 * JSON lines, {"step": 120, "loss": 0.31, "time": 1732900000.1}, from the program or from dt-launch, which marks what it
 * found in the output by "dt": "pattern". However much is written, a look costs a bounded time and gives at most one
 * event a metric: its latest value, or the first that reaches the target; before the first of these its first value. */

#define DT_METRICS_MAX 64                       /* of a run; further names are passed over */
#define DT_METRIC_LINE_MAX (64 * 1024)          /* longer lines are passed over */
#define DT_METRICS_LOOK (512 * 1024)            /* bytes that are read in one look */
#define DT_METRICS_BACKLOG (8 * 1024 * 1024)    /* more that waits to be read is skipped but for its end */
#define DT_METRICS_END (4 * 1024 * 1024)        /* so much of it where the run has ended */

struct dt_feed;
/* Begins where the trial's journaled metrics end. */
struct dt_feed *dt_feed_new(const char *path, const struct dt_trial *t);
/* Appends METRIC events for what was added since. The longer the run, the longer values wait to be put together: 1 % of
 * its age, at most 30 s; but one that reaches the target does not. `to_end`: the run has ended, and all counts that is
 * there, at least the last DT_METRICS_END of it. */
void dt_feed_read(struct dt_feed *f, const struct dt_spec *spec, const struct dt_trial *t, bool to_end,
                  struct dt_event **events, size_t *n);
/* What the user should know of how it was read, a line each; NULL: nothing. Caller frees. */
char *dt_feed_note(const struct dt_feed *f);
void dt_feed_free(struct dt_feed *f);

/* ---- usage.c: what a run's samplers tell ----
 *
 * A folder with a file of JSON lines for each node; see monitor.h. A look costs a bounded time, however much is there. */

struct dt_usage_feed;
/* Goes on after what the trial's journaled usage tells. `period`: of the samples, in seconds.
 * `steps` (taken over; or NULL) is looked at besides: always, or with `spare` once there should
 * have been samples for long and are none. */
struct dt_usage_feed *dt_usage_feed_new(const char *dir, double period, const struct dt_trial *t,
                                        struct dt_step_watch *steps, bool spare);
/* Appends USAGE events for what was added since, looking twice a period. `to_end`: the run has ended, and all counts that
 * is there. */
void dt_usage_feed_read(struct dt_usage_feed *f, const struct dt_trial *t, bool to_end, struct dt_event **events,
                        size_t *n);
void dt_usage_feed_free(struct dt_usage_feed *f);
/* ---- trial.c: a run's folder, and waiting for it ---- */

/* Where events are appended. */
struct dt_events {
    struct dt_event **v;
    size_t *n;
};
/* `when` may be NaN, of a record that does not say it: then it is now. */
struct dt_event *dt_events_add(const struct dt_events *out, enum dt_event_kind kind,
                               const struct dt_trial *t, double when);
/* Caller frees. */
char *dt_trial_dir(const struct dt_slurm_config *c, const struct dt_trial *t);
/* The run that the trial's script at `path` was written for; 0 where there is none. */
int dt_trial_written_run(const char *path);
/* Writes the script of the trial's run and returns its path (caller frees); an earlier run's records stay under its number.
 * `script` says what only the backend knows: the shape, and by whom and where it is started. */
char *dt_trial_write_script(const struct dt_slurm_config *c, const struct dt_study *s, const struct dt_trial *t,
                            struct dt_trial_script *script, struct dt_error *e);
/* Gives a trial the checkpoint of the one that it goes on from. Whether it can be started; else `ev` says why not. *alone,
 * which the caller frees, says why it begins from nothing; else it stays as it is. */
bool dt_trial_hand_over(const struct dt_slurm_config *c, const struct dt_study *s, const struct dt_trial *t,
                        struct dt_event *ev, char **alone);
/* dt_feed_read() on the run's metrics; *feed is NULL before the first look. */
void dt_trial_metrics(const struct dt_slurm_config *c, const struct dt_study *s, const struct dt_trial *t,
                      struct dt_feed **feed, bool to_end, const struct dt_events *out);
/* dt_usage_feed_read() on what the run uses, where that is watched; *feed likewise. `asks` is the
 * backend's. */
void dt_trial_usage(const struct dt_slurm_config *c, const struct dt_study *s, const struct dt_trial *t,
                    struct dt_pace *asks, struct dt_usage_feed **feed, bool to_end,
                    const struct dt_events *out);
/* Waiting for a checkpoint that a run was asked for. */
struct dt_checkpoint_watch {
    double newest;      /* the newest one's time when it was asked, and since; -INFINITY */
    double newer_since; /* monotonic: when that changed last; 0: it did not */
};
#define DT_CHECKPOINT_WATCH {.newest = -INFINITY}
/* `dir` is the trial's folder. */
void dt_checkpoint_wait(struct dt_checkpoint_watch *w, const char *dir);
/* Whether there is a newer one than by then, and whole: nothing was written for a while, or the run has ended. */
bool dt_checkpoint_came(struct dt_checkpoint_watch *w, const char *dir, bool ended);
/* Sleeps; true where it was woken. */
bool dt_slurm_nap(int wake_fd, double seconds);
/* Whether somebody told the run to end, other than the tuner who asks for a checkpoint so: its work
 * may be cut short, however well it took that. */
bool dt_trial_told(const struct dt_records *r, const struct dt_study *s, const struct dt_trial *t);
/* Whether Slurm tells trials that their end is near, by a signal of the user's choice. */
bool dt_trials_are_warned(const struct dt_slurm_config *c);
/* What the user should know of the run's metrics, of how they were found and how read; NULL: nothing. Caller frees. */
char *dt_trial_note(const struct dt_feed *feed, const struct dt_records *r);

#endif
