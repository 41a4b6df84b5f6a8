/* monitor: what the roles of a running trial use of what they were given. */
#ifndef DT_MONITOR_H
#define DT_MONITOR_H

#include "util/util.h"

#include <sys/types.h>

/* ---- usage of one role (usage.c): pure ---- */

enum dt_resource {
    DT_RESOURCE_CPU,  /* fraction of the CPUs that a task was given; 1: all busy */
    DT_RESOURCE_MEM,  /* what it holds, as a fraction of that and of what is left to it: below its
                         limit, or in the node */
    DT_RESOURCE_GPU,  /* fraction of the time that its GPUs were busy */
    DT_RESOURCE_NET,  /* bytes/s, in and out together */
    DT_RESOURCE_DISK, /* bytes/s, read and written together */
    DT_RESOURCES
};
extern const char *const dt_resource_names[DT_RESOURCES]; /* "cpu" */

/* Samples of one role of one run, over all its tasks. What is not known is NaN. */
struct dt_usage {
    double t;                  /* when the last of them ended, seconds since the epoch */
    int64_t n;                 /* so many samples in a row, at about one level: at least 1 */
    double mean[DT_RESOURCES]; /* the tasks' mean, averaged over the samples */
    double max[DT_RESOURCES];  /* the busiest task's, in the sample where it was highest */
};
/* One sample of which nothing is known. */
struct dt_usage dt_usage_unknown(double t);
/* How busy the tasks were, 0 to 1, by their CPUs or GPUs, whichever were busier; NaN: not known. */
double dt_usage_busy(const struct dt_usage *u);
/* Puts `more` samples to those of `sum`. known[i] counts the samples in sum->mean[i] that have a
 * value; zeroed where sum->n is 0. */
void dt_usage_add(struct dt_usage *sum, int64_t known[DT_RESOURCES], const struct dt_usage *more);

/* {"cpu": [mean, max], ...} without what is not known. The caller puts() it. */
struct json_object *dt_usage_to_json(const struct dt_usage *u);
/* The other way; t and n are the caller's. What is no pair of finite numbers, not negative, is
 * unknown. */
void dt_usage_from_json(struct json_object *levels, struct dt_usage *u);

/* A role of a trial, as the USAGE events told it. */
#define DT_USAGE_WINDOW 32
struct dt_usage_total { /* of all samples of one run */
    int run;
    struct dt_usage u;
    int64_t known[DT_RESOURCES];
};
struct dt_role_usage {
    char *role;                              /* owned */
    struct dt_usage recent[DT_USAGE_WINDOW]; /* of the present run; the newest last */
    size_t n;
    struct dt_usage_total *runs; /* owned; those that told anything, in order */
    size_t nruns;
};
struct dt_role_usages {
    struct dt_role_usage *v; /* owned; in the order of their names */
    size_t n;
};
void dt_role_usages_add(struct dt_role_usages *all, const char *role, int run,
                        const struct dt_usage *u);
/* A new run begins: what is recent is forgotten. */
void dt_role_usages_new_run(struct dt_role_usages *all);
const struct dt_role_usage *dt_role_usages_find(const struct dt_role_usages *all, const char *role);
void dt_role_usages_free(struct dt_role_usages *all);

/* ---- what processes and a node use (proc.c) ----
 *
 * Here and below `root` stands before /proc and /sys: "", but in tests. What cannot be read is NaN.
 */

/* A process and all its descendants, also those that have ended and were waited for. */
struct dt_proc_tree {
    size_t n;     /* processes; 0: it is gone */
    double cpu_s; /* user and system time */
    double mem; /* bytes that cannot be dropped: anonymous memory, and of shared memory the largest
                   part; NaN where no process has any */
    double io;  /* bytes that went to and came from storage */
};
void dt_proc_tree_read(const char *root, pid_t top, struct dt_proc_tree *t);
/* Bytes that may still be used on this node before it swaps. */
double dt_node_mem_left(const char *root);
/* Bytes in and out so far of all interfaces that lead out of this node, InfiniBand included; where
 * there are none but virtual ones (in a container), of those. */
double dt_node_net(const char *root);

/* ---- control groups, version 1 and 2, at their usual place /sys/fs/cgroup (cgroup.c) ---- */

struct dt_cgroup {
    char *mem, *cpu, *quota; /* folders of the nearest groups that tell memory, CPU time, CPU limit;
                                NULL: none */
    size_t base;             /* length of what above the folders is no group */
    bool v2;
    bool own_mem, own_cpu; /* nothing but this task is in it */
};
/* Where this process is. `alone`: its step has no other task on this node. */
void dt_cgroup_find(struct dt_cgroup *g, const char *root, bool alone);
/* CPU time of the group in seconds; and bytes that cannot be dropped. */
double dt_cgroup_cpu_s(const struct dt_cgroup *g);
double dt_cgroup_mem(const struct dt_cgroup *g);
/* Bytes that may still be used before the limit of the group, or of one that it is in. */
double dt_cgroup_mem_left(const struct dt_cgroup *g);
/* So many CPUs may be used at once; INFINITY: no limit. */
double dt_cgroup_cpus(const struct dt_cgroup *g);
void dt_cgroup_free(struct dt_cgroup *g);

/* ---- NVIDIA GPUs, by NVML if it is there (gpu.c) ---- */

struct dt_gpus;
/* `visible` is a list as in CUDA_VISIBLE_DEVICES (or NULL), `library` usually DT_NVML. NULL where
 * there are none. */
#define DT_NVML "libnvidia-ml.so.1"
struct dt_gpus *dt_gpus_open(const char *library, const char *visible);
/* The fraction of the time since the last call that they were busy, their mean. */
double dt_gpus_busy(struct dt_gpus *g);
void dt_gpus_close(struct dt_gpus *g);

/* ---- one task (sampler.c) ---- */

struct dt_task_limits {
    double cpus; /* that it was given */
    double mem;  /* bytes that it asked for; NaN */
};
/* What counts up, and what is so now. */
struct dt_counters {
    double t; /* seconds of a monotonic clock */
    double cpu_s, net, io;
    double mem, mem_left, gpu;
};
/* The levels between two looks. A counter that went back says nothing. */
void dt_levels(const struct dt_counters *before, const struct dt_counters *now,
               const struct dt_task_limits *limits, double levels[DT_RESOURCES]);
/* {"role":"ps","rank":0,"time":...,"cpu":0.5,...} and a newline, without what is not known. Caller
 * frees. */
char *dt_sample_line(const char *role, int rank, double time, const double levels[DT_RESOURCES]);

struct dt_sampler_config {
    const char
        *dir; /* of the samples of this run; a file for each node, made with the first sample */
    const char *node;
    const char *role;
    int rank;
    bool first_here; /* of its step on this node: it tells of the network */
    bool alone;      /* its step has no other task on this node */
    double period;   /* seconds */
    struct dt_task_limits limits;
};
/* Starts a process that samples `task` and its descendants until it is ended or its parent is. Each
 * task has its own moment in the period, so that not all write at once. The process's id, to be
 * killed; 0 where there is none. */
pid_t dt_sampler_start(const struct dt_sampler_config *c, pid_t task);

/* ---- what Slurm gathers of a step (step_stat.c): pure ---- */

#define DT_SSTAT_FORMAT "JobID,NTasks,TRESUsageInTot,TRESUsageInMax,TRESUsageOutTot,TRESUsageOutMax"
struct dt_step_amounts { /* so far, but memory, which is so now; NaN: not gathered */
    double cpu_s;
    double mem, io, net; /* bytes; net of InfiniBand */
};
struct dt_step_stat {
    char *step; /* owned; "123.4" */
    int64_t tasks;
    struct dt_step_amounts all, most; /* of all tasks together, and of the one that has most */
};
/* A line of sstat --parsable2 --noheader --format=DT_SSTAT_FORMAT. False where it is none. */
bool dt_step_stat_parse(const char *line, struct dt_step_stat *s);
/* The levels between two looks that are so many seconds apart, for dt_gather_take(). `limits`: of
 * each task. */
void dt_step_levels(const struct dt_step_stat *before, const struct dt_step_stat *now,
                    double seconds, const struct dt_task_limits *limits, double mean[DT_RESOURCES],
                    double max[DT_RESOURCES]);

/* ---- from the tasks' samples to what the journal is told of the roles (gather.c): pure ----
 *
 * Time is cut into periods, counted from the epoch; each gives one sample of a role, over the tasks
 * that sampled in it. A sample is told at once where its levels differ by more than a twentieth
 * from those told last; while they do not, samples wait until they are half as many as those that
 * were told at this level; so of a steady run the journal grows with the logarithm of its time. Of
 * a restless one too: from one event to the next passes at least 1 % of its age, and what comes in
 * between is told as one. So many samples are behind each event that their sum is that of all. */

#define DT_ROLES_MAX 8          /* further names of roles are passed over */
#define DT_SAMPLE_LINE_MAX 4096 /* longer lines are passed over */

struct dt_told {
    const char *role; /* borrowed until the gatherer is freed */
    struct dt_usage u;
};
struct dt_gather;
/* `start`: of the run, seconds since the epoch. */
struct dt_gather *dt_gather_new(double period, double start);
/* This was the last that the journal was told of a role: what is not later does not count again. */
void dt_gather_resume(struct dt_gather *g, const char *role, const struct dt_usage *told);
/* Takes a line as dt_sample_line() writes it, read at `now`. One of a period that is over, or has
 * not begun, does not count. False where it is no such line. */
bool dt_gather_line(struct dt_gather *g, const char *line, double now);
/* The same for so many tasks of a role together, sampled at time t: what one of them was in the
 * mean, and at most. */
bool dt_gather_take(struct dt_gather *g, const char *role, double t, double now,
                    const double mean[DT_RESOURCES], const double max[DT_RESOURCES], int64_t tasks);
/* What is to be told of the periods that are over, and half a period more; with `all` of every
 * sample. Caller frees the array *told; returns its length. */
size_t dt_gather_tell(struct dt_gather *g, double now, bool all, struct dt_told **told);
void dt_gather_free(struct dt_gather *g);

#endif
