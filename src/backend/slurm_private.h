/* The pieces of the Slurm backend: what libslurm says of jobs, and a trial's own records. */
#ifndef DT_SLURM_PRIVATE_H
#define DT_SLURM_PRIVATE_H

#include "backend/backend.h"

/* What matters of a job; for a heterogeneous one of the whole. */
struct dt_slurm_job {
    uint32_t id;
    char *name;
    uint32_t state; /* enum job_states, base state; a failed component's, where there is one */
    bool over;      /* every component has ended */
    bool completing; /* but processes of it are still there */
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
/* Like scancel. A job that is already gone is no error. */
int dt_slurm_cancel(uint32_t job, struct dt_error *e);

/* The files a trial's run leaves in its folder (records.c). */
struct dt_records {
    bool started, ended;
    bool told;   /* to end, while its script was still at work */
    bool orphan; /* it ended since its tuner was gone */
    double start, launch, end; /* launch: NaN if no role was started */
    int exit_code, signal;
    char *failed; /* which task failed first, and its last lines; else those of the output; NULL */
};
void dt_records_read(const char *dir, struct dt_records *r);
void dt_records_free(struct dt_records *r);
/* The job that the run says it is; 0 where it has not begun. */
uint32_t dt_records_job(const char *dir);
/* Reads what was added to the metrics file since *offset: whole lines only, at most 1 MiB a call. For each number in an
 * object calls `each` (t: the line's "time", else now). */
void dt_metrics_read(const char *path, long *offset,
                     void (*each)(void *arg, const char *name, double value, double t), void *arg);

#endif
