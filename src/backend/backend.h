/* backend: where trials run. The only part that talks to Slurm. */
#ifndef DT_BACKEND_H
#define DT_BACKEND_H

#include "placement/placement.h"
#include "space/system.h"
#include "tuner/tuner.h"

struct dt_backend_ops {
    const char *name;
    /* Seconds since the epoch, or of a virtual clock. */
    double (*now)(void *b);
    /* Starts the trial's current run. Gives the event that tells what came of it: SUBMITTED, DEFERRED or ENDED. */
    int (*submit)(void *b, const struct dt_study *s, const struct dt_trial *t, struct dt_event *ev,
                  struct dt_error *e);
    /* Asks for the end of a run; its ENDED event comes by wait(). Safe to repeat; asks again by itself until it was heard. */
    int (*cancel)(void *b, const struct dt_trial *t, struct dt_error *e);
    /* Asks a run for a checkpoint, for t->move; once there is one, a CHECKPOINTED event may come by wait(). */
    int (*checkpoint)(void *b, const struct dt_study *s, const struct dt_trial *t, struct dt_error *e);
    /* Ends the workers that the run has more than t->x says, and gives nodes that have no task left
     * back to Slurm; an ALLOCATED event tells of them. Safe to repeat. NULL where runs are never
     * made smaller in place. */
    int (*shed)(void *b, const struct dt_study *s, const struct dt_trial *t, struct dt_error *e);
    /* Waits for something to happen, at most until `until` (this backend's clock), and appends events. Returns early
     * when a signal arrives. */
    int (*wait)(void *b, const struct dt_study *s, double until, struct dt_event **events, size_t *n,
                struct dt_error *e);
    /* After a restart: finds the job of a run that may have been submitted without the journal knowing, also one that
     * has ended. 1 found (job set), 0 not. */
    int (*find)(void *b, const struct dt_trial *t, uint32_t *job, struct dt_error *e);
    /* Nodes that nothing runs on, in `ev`: true where there are any that Slurm may take back. NULL where there is nothing to
     * give. */
    bool (*spare)(void *b, struct dt_event *ev);
    /* Gives those back to Slurm. Safe to repeat; where Slurm refuses, it is not tried again. */
    int (*give_back)(void *b, struct dt_error *e);
    /* Last act: whatever of this study is still queued or running is cancelled, known to us or not. */
    int (*sweep)(void *b, struct dt_error *e);
    void (*destroy)(void *b);
};

struct dt_backend {
    const struct dt_backend_ops *ops;
    void *b;
};
/* NULL is none. */
void dt_backend_free(struct dt_backend *b);

/* ---- slurm: each run is a batch job (slurm.c) ---- */

struct dt_slurm_config {
    const struct dt_submission *submission;
    const char *script;
    const struct dt_job *job;
    const struct dt_space *space;
    const struct dt_cluster *cluster;
    const char *study;  /* name, part of every job's name */
    const char *dir;    /* absolute folder of the study */
    const char *sbatch; /* path */
    const char *launch; /* path of dt-launch */
    uint32_t tuner_job; /* 0: the tuner runs in the foreground */
    bool gathers;       /* Slurm is to be asked what the steps of trials use, and knows it */
    int wake_fd;        /* becomes readable when a wait should end early (a signal came); non-blocking */
};
struct dt_backend *dt_backend_slurm(const struct dt_slurm_config *config);
/* Submits a batch script with a scrubbed environment. 0 and *job; 1: not now (limits, busy controller), *why says so; 2: refused,
 * *why likewise; -1 error. Caller frees *why. */
int dt_slurm_submit(const char *sbatch, const char *path, const struct dt_strv *args, uint32_t *job,
                    char **why, struct dt_error *e);
/* How Slurm is set up here, as far as it matters to a study (slurm_site.c). Strings are never NULL
 * once it was read. */
struct dt_site {
    char *client;  /* the version that this was built with */
    char *version; /* slurmctld's */
    char *auth, *auth_info, *plugstack, *plugin_dir, *job_submit, *scheduler, *accounting;
    double now;           /* slurmctld's clock, in whole seconds, when it was asked ... */
    double asked, answered; /* ... which was between these, by ours */
    uint32_t min_job_age;
    size_t nodes, up, elsewhere; /* all; those that may run jobs; those that are not this host */
};
/* slurm_init() must have been called. dt_site_free() is safe whatever it returns. */
int dt_site_read(struct dt_site *s, struct dt_error *e);
void dt_site_free(struct dt_site *s);
/* The folder that a job was submitted from; NULL where slurmctld does not know it. Caller frees. */
char *dt_slurm_work_dir(uint32_t job);
enum dt_job_fate {
    DT_JOB_STAYS,     /* or slurmctld does not answer */
    DT_JOB_PREEMPTED, /* Slurm has announced that it will end it for another */
    DT_JOB_ENDS,      /* Slurm knows before it tells any of its processes */
};
/* Of a job that ran: one request. */
enum dt_job_fate dt_slurm_fate(uint32_t job);
/* Whether a job has no comment, or one of ours: the user's, or the site's, is left alone. False
 * where slurmctld does not answer. */
bool dt_slurm_comment_is_free(uint32_t job);
/* Changes the comment of a job of this user's: one request. */
int dt_slurm_comment(uint32_t job, const char *comment, struct dt_error *e);
/* Whether Slurm gathers what job steps use (JobAcctGatherType), and can be asked (sstat). */
bool dt_slurm_gathers(void);
/* The whole cluster. slurm_init() must have been called. Licences only with `licenses` or `all`,
 * switches with `all`: each is a request more to slurmctld. NULL, with an error, where that does
 * not answer. */
struct dt_system *dt_slurm_system(bool all, bool licenses, struct dt_error *e);
/* One node: its size, without features and gres, and the name of its kind, dt_topology_key().
 * slurm_init() must have been called. */
int dt_slurm_node(const char *name, char key[17], struct dt_node_class *size, struct dt_error *e);
/* Like scancel --signal: the steps of the job get it, or with `script` the batch script alone. A job that is already gone is
 * no error. */
int dt_slurm_signal(uint32_t job, int signal, bool script, struct dt_error *e);
/* What of it the submission may use: dt_job_cluster(). */
struct dt_cluster *dt_slurm_cluster(const struct dt_submission *s, bool kinds, struct dt_error *e);

/* ---- steps: each run is a share of the tuner's own allocation (steps.c) ----
 *
 * The batch wrapper of a run is a process group on the tuner's node; all that it starts by srun or dt-launch are steps on
 * the nodes, and with the CPUs, memory and GPUs, that the run was given. A run waits in no queue: one that finds no place
 * is DEFERRED until another ends (until is INFINITY), one that cannot end in time until the allocation ends. */

struct dt_allocation {
    uint32_t job;
    struct dt_books books;
    double billing; /* what Slurm bills a second of it */
    double end;     /* seconds since the epoch; INFINITY: no time limit */
};
/* The allocation that this process is in, by its environment and by what slurmctld says of it. slurm_init() must have been
 * called. */
int dt_allocation_read(struct dt_allocation *a, struct dt_error *e);
/* The same nodes, for a space of what fits. */
struct dt_cluster *dt_allocation_cluster(const struct dt_allocation *a);
/* Before that time the runs must have ended, so that there is time for the report. */
double dt_allocation_closes(const struct dt_allocation *a);
void dt_allocation_free(struct dt_allocation *a);
/* Takes the allocation over. `config` as for dt_backend_slurm(); SIGCHLD must write to its wake_fd. */
struct dt_backend *dt_backend_steps(const struct dt_slurm_config *config, struct dt_allocation *a);

/* ---- replay: a measured table and a virtual clock that begins at 0 (replay.c) ----
 *
 * A run starts at once and lasts as long as its row says: the column replay.duration (one named
 * *_ms is in milliseconds); without it the objective, where that is a time to be minimized; else 1
 * s. Several rows of one configuration are repeats, taken in turn. A status that is not among
 * replay.ok (default "ok") is a failure, one that speaks of a time-out is the time limit, with the
 * row's value as the bound. A run is on as many nodes as the column replay.nodes says, else on one
 * for each task. A configuration without a row is not schedulable.
 *
 * With replay.usage and a rule in "reallocate" a run also tells how far it is, once a monitor's
 * period, and how busy its roles are, as its row says; asked for a checkpoint it has one at once,
 * and goes on from there on the new configuration's row. It does reallocate.work steps (1000) in
 * its row's time; where a rate is the objective it does so many a second. Every start of a run
 * waits for replay.restart_s first. */

/* `noise` is the standard deviation of log(objective), 0.02 for 2 %; `failures` the chance that a run fails which the table
 * has as good; the random numbers come from spec->seed. `spec` and `space` must outlive the backend. */
struct dt_backend *dt_backend_replay(const struct dt_spec *spec, const struct dt_space *space,
                                     const char *table, double noise, double failures, struct dt_error *e);
/* The configurations that the table has inside the parameters' domains, each once, as candidates for the space:
 * npoints rows of `n`. Caller frees. */
double *dt_replay_points(const struct dt_spec *spec, const struct dt_param *params, size_t n,
                         const char *table, size_t *npoints, struct dt_error *e);
/* Whether its trials are re-allocated while they run. */
bool dt_replay_moves(const struct dt_spec *spec);
/* Makes the table's objective the study's own, and drops a target. -1 where SPEC has no replay section. */
int dt_replay_adopt(struct dt_spec *spec, struct dt_error *e);
/* What the table says of a configuration, without noise: the mean of its rows that are good, and have the quality asked
 * for, or of a course the last; NaN if there is none. `b` must be a replay. */
double dt_replay_value(const struct dt_backend *b, const double *x);

#endif
