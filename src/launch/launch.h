/* launch: starts the roles of a trial inside its Slurm job.
 *
 *   batch script ── dt-launch --carrier     batch.c   the wrapper around the user's script
 *                   beside it               learn.c   what the node is made of, for later studies
 *     user's script ── dt-launch PROGRAM    shim.c    what the command line means (also as `srun`)
 *                                           plan.c    who runs where
 *                                           ports.c   a free port for every task
 *                                           steps.c   one srun a role, supervised together
 *       task ── dt-launch --task ROLE ...   task.c    runs PROGRAM, keeps its output and its end
 *                                           env.c     what a task finds in its environment
 *       or by mpiexec ── dt-launch --hydra  hydra.c   mpiexec's process on each node
 *                                           bind.c    on which CPUs it is, and which GPUs it sees
 *     beside it                             patterns.c  finds metrics in what all of it prints
 */
#ifndef DT_LAUNCH_H
#define DT_LAUNCH_H

#include "topology/topology.h"
#include "util/util.h"

#include <sched.h>
#include <sys/types.h>

/* ---- plan.c ---- */

struct dt_launch_role {
    char *name;
    int count, cpus, gpus; /* cpus and gpus of one task */
    char *gpu_type;        /* or NULL */
    bool gpus_shared;      /* its tasks share all the GPUs of the job */
    int group;             /* het component; 0 in a plain job */
    int mem_per_cpu;       /* MiB that a step is to have; 0: as the job has it; layout steps only */
    bool background;       /* serves the others: is ended when they are done (ps) */
    bool coordinator;      /* one task that does no part of the work, beside the first that does */
};

struct dt_launch_node {
    char *name;    /* Slurm's name */
    char *address; /* by which the tasks reach it; NULL before dt_ports_assign() */
    int group;
    int cpus;  /* allocated here */
    int gpus;  /* allocated here; -1 where the environment does not tell */
    char *gpu_list; /* which, by the node's numbers, "0,1"; NULL where that is not known (yet) */
    int tasks; /* that Slurm itself would start here; 0 where unknown */
};

/* One task; tasks stand in order of their global rank, role by role. */
struct dt_launch_task {
    int role, role_rank, node;
    int port; /* 0 before dt_ports_assign() */
};

struct dt_launch_plan {
    struct json_object *json; /* the trial, as in DT_PLAN; an empty object outside a trial; owned */
    bool in_trial, het, bind_gpus;
    bool bind;        /* tasks choose their CPUs, and with bind_gpus their GPUs (bind.c) */
    bool together;    /* ... out of all that the job has on a node, all roles by one plan */
    bool unbind;      /* so, and Slurm would bind the tasks of each step on its own */
    bool steps;       /* the job is the tuner's, and the trial has a share of it */
    bool gpus_around; /* so, and the job has GPUs */
    int node_gpus;    /* so, and all its nodes have so many, the job's or not; else 0 */
    bool overcommit;  /* tasks are not counted against CPUs */
    bool share_cores; /* steps must overlap: whole cores for every task would not fit */
    int submitted_tasks;
    char *dir; /* where logs and results go, absolute */
    char *job;
    char *root; /* numeric address of the scheduler; NULL where there is none or it is not known */
    struct dt_launch_role *roles;
    size_t n_roles;
    struct dt_launch_node *nodes;
    size_t n_nodes;
    struct dt_launch_task *tasks;
    size_t n_tasks;
};

/* Reads DT_PLAN and Slurm's variables from an environ-style array and places every task on a node.
 * Without DT_PLAN: a heterogeneous job of two components is ps and worker, any other job all
 * workers. NULL on error. */
struct dt_launch_plan *dt_launch_plan_read(char *const *env, struct dt_error *e);
void dt_launch_plan_free(struct dt_launch_plan *p);
/* Adds the coordinator that the trial asks for, if any, as the last role: TensorFlow's "chief", which
 * the others serve, or the "scheduler" of DMLC's parameter servers. It has a step of its own that
 * overlaps the others', on the node of the first task. */
void dt_launch_add_coordinator(struct dt_launch_plan *p);
/* The value of a variable in an environ-style array, or NULL. */
const char *dt_launch_getenv(char *const *env, const char *name);
/* Replaces or adds NAME=VALUE in an environ-style list. */
void dt_launch_setenv(struct dt_strv *env, const char *name, const char *value);
void dt_launch_unsetenv(struct dt_strv *env, const char *name);
/* The folder of a trial: "dir" of the plan or $SLURM_SUBMIT_DIR/dt-job-$SLURM_JOB_ID. Caller frees.
 */
char *dt_launch_dir(struct json_object *plan, char *const *env);

/* ---- ports.c ---- */

/* Gives every node its address and list of GPUs and every task a port, asking the nodes themselves
 * where there are several. `number` counts the launches of the job from 1. */
int dt_ports_assign(struct dt_launch_plan *p, int number, char *const *env, struct dt_error *e);
/* The IPv4 address of a host as others reach it; NULL where it has none. Of this host itself not the
 * loopback address that /etc/hosts may give, if there is another. Caller frees. */
char *dt_numeric_address(const char *host);
/* Finds `need` free ports on this host, in the window of node `index` of `nodes` so that nodes that
 * share a host do not meet. `local_range` is the text of ip_local_port_range (may be NULL); `seed`
 * moves the start. */
int dt_ports_find(const char *local_range, uint64_t seed, int index, int nodes, int need, int *out,
                  struct dt_error *e);
/* dt-launch --probe: prints this node's name, address and free ports. Returns the exit code. */
int dt_ports_probe_main(int argc, char **argv);

/* ---- env.c: pure ---- */

/* By which programs are told what GPUs they see, a library each. */
#define DT_GPU_VARIABLES 5
extern const char *const dt_gpu_variables[DT_GPU_VARIABLES];
/* What all tasks and the batch script share: DT_PARAM*, DT_TRIAL*, DT_CHECKPOINT_DIR, DT_RESTARTS,
 * DT_METRICS_FILE. Sets them in `env`. */
void dt_trial_env(struct json_object *plan, const char *dir, int slurm_restarts,
                  struct dt_strv *env);
/* The description of one launch that every task gets: the trial, and every role with its tasks'
 * host:port. */
struct json_object *dt_launch_describe(const struct dt_launch_plan *p, int number);
/* Which task of a launch: `local_rank` of the `local_size` tasks of its role on its node. */
struct dt_task_place {
    const char *role;
    int role_rank, local_rank, local_size;
};
/* Sets in `env` what one task finds, and takes away the GPU variables of a role without GPUs. */
int dt_task_env(struct json_object *launch, const struct dt_task_place *task, int restarts,
                struct dt_strv *env, struct dt_error *e);

/* ---- bind.c ----
 *
 * Slurm gives a step CPUs and GPUs of a node without knowing which task wants which. Each task
 * works out the same plan for all tasks of its step on its node (topology.h) and takes what is its
 * own: CPUs next to its GPUs, or for a server next to the network, and of the GPUs of the step
 * those that belong together. Roles that meet on the nodes of a plain job have steps that overlap
 * there, each with all that the job has, and every task makes the plan for all of them. It never
 * takes CPUs that the step has not: where Slurm does not confine the step (neither task/affinity
 * nor task/cgroup), all CPUs are everybody's, and no task is bound to any. */

/* Whether the user binds tasks, by srun's options (or NULL) or by variables that srun takes for
 * such. */
bool dt_bind_is_given(const struct dt_strv *options, char *const *env);
/* The CPUs of the step on this node: what task/affinity gave its tasks together, or else this
 * task's affinity where that is less than all `online` CPUs of the node, or where the step is all
 * of the job's (`whole`) and the job has them all. NULL: the step is not confined, or it cannot be
 * told. Caller frees. */
hwloc_bitmap_t dt_bind_allowed(char *const *env, hwloc_const_bitmap_t affinity, size_t online,
                               bool whole);

/* The tasks of a role on the node. */
struct dt_bind_role {
    const char *name; /* borrowed; for messages */
    bool server;
    size_t cpus, gpus; /* of one task */
    bool own_gpus;     /* each task sees only its own; else it finds them by its local rank */
    size_t tasks;
};
struct dt_bind_step {
    struct dt_bind_role *roles; /* who shares what the step has */
    size_t nroles, role, local; /* this is task `local` of that role's here */
    hwloc_bitmap_t allowed;     /* NULL: not confined */
    const char *visible;        /* CUDA_VISIBLE_DEVICES or the like, or NULL */
    const char *gpus;           /* which the step has, by the node's numbers, or NULL */
};
struct dt_binding {
    hwloc_bitmap_t pus; /* NULL: none; owned */
    hwloc_bitmap_t mem; /* NUMA nodes; NULL: none in particular; owned */
    size_t gpus, *gpu;  /* positions among the visible ones; gpu NULL: as they are; owned */
};
/* Pure. `t` NULL: unknown, and GPUs are taken in order. On error *b may still say which GPUs. */
int dt_bind_plan(const struct dt_topology *t, const struct dt_bind_step *s, struct dt_binding *b,
                 struct dt_error *e);
void dt_binding_free(struct dt_binding *b);
/* Binds this process as "bind" of its LAUNCH says, has its memory come from near its CPUs first, and
 * sets DT_CPU_LIST and what tells it of its
 * GPUs in `env`. Nothing is changed where that cannot be done; the error says why. */
int dt_bind_task(struct json_object *launch, const char *role, int local, struct dt_strv *env,
                 struct dt_error *e);

/* ---- learn.c ---- */

/* Where the plan wants it ("learn"), begins to look at this node's topology and to keep it in
 * dt_topology_cache(), if no node of its kind is there. Nothing tells how that went. */
void dt_learn_start(struct json_object *plan);

/* ---- shim.c: pure ---- */

enum dt_shim_kind { DT_SHIM_ROLES, DT_SHIM_REAL };

struct dt_shim {
    enum dt_shim_kind kind;
    struct dt_strv pass;    /* options for every role's srun */
    struct dt_strv dropped; /* names of options that the trial decides */
    int program;            /* index of PROGRAM in argv; argc where there is none */
    bool keep_going;        /* -K0: a failing task does not end the others */
    bool to_file;           /* --output or --error is given */
    int tasks, nodes;       /* --ntasks, --nodes; 0: not given, -1: not as a number */
    const char *nodelist;   /* --nodelist, borrowed from argv; NULL */
    bool hydra; /* PROGRAM is what MPICH's mpiexec, or one made from it, has on every node */
};

/* Reads srun's options up to PROGRAM. `counts` are numbers of tasks that mean "all of the trial".
 */
void dt_shim_parse(int argc, char **argv, const int *counts, size_t n_counts, int nodes,
                   struct dt_shim *s);
void dt_shim_free(struct dt_shim *s);
/* dt-launch [OPTIONS] PROGRAM... and srun in a trial's script. Returns the exit code. */
int dt_shim_main(int argc, char **argv, bool as_srun);

/* ---- steps.c ---- */

/* The srun command of one role (without PROGRAM's own wrapping by a shell: argv to the letter). */
void dt_step_argv(const struct dt_launch_plan *p, size_t role, const char *srun,
                  const struct dt_shim *s, const char *self, const char *launch,
                  char *const *program, struct dt_strv *out);
/* Layout steps: the srun command by which PROGRAM, mpiexec's process on each node, gets the trial's
 * share there: a step of so many tasks of the workers, see hydra.c. */
void dt_hydra_argv(const struct dt_launch_plan *p, int tasks, const char *srun,
                   const struct dt_shim *s, const char *self, char *const *program,
                   struct dt_strv *out);
/* Becomes that command, which counts as a start of the roles. Returns only on error, -1. */
int dt_hydra_exec(const struct dt_launch_plan *p, const char *srun, const struct dt_shim *s,
                  char *const *program, struct dt_error *e);
/* Which GPUs a role's tasks see as Slurm starts them: "all" of the step on their node, and the
 * local rank says which are whose; "own": all, but each is to see its own only; "given": Slurm has
 * chosen. */
const char *dt_step_gpus(const struct dt_launch_plan *p, size_t role);
/* environ without what srun would take for options of its own. */
void dt_step_environ(char *const *env, struct dt_strv *out);
/* Starts all roles and waits. Returns the exit code for the caller, -1 where nothing could be
 * started. */
int dt_steps_run(struct dt_launch_plan *p, const char *srun, const struct dt_shim *s,
                 char *const *program, struct dt_error *e);
/* The earliest failed task under dir/tasks of launch `number` (0: any), or NULL. Caller puts. */
struct json_object *dt_first_failure(const char *dir, int number);
/* Exit code of a task as recorded: its own, or 128 + signal. */
int dt_failure_code(struct json_object *failure);

/* ---- hydra.c ---- */

/* The CPUs in masks as Slurm writes them, "0x3,0xc"; how many there are. `size`: of the set in
 * bytes. */
int dt_masks_union(const char *masks, cpu_set_t *set, size_t size);
/* dt-launch --hydra PROGRAM...: a task of the step of dt_hydra_argv(). Returns the exit code. */
int dt_hydra_main(int argc, char **argv);

/* ---- patterns.c ---- */

#define DT_LAUNCH_OUTPUT "output.log" /* in a trial's folder: the job's output */

/* The process that looks for metrics in a trial's output, by the text patterns of its plan ("metrics":
 * {"patterns": {NAME: PATTERN}, "target": ...}), and appends what it finds to dir/metrics.jsonl. Output that is there
 * already does not count. */
struct dt_watcher {
    pid_t pid;   /* 0: there is none */
    int control; /* its end is the order to finish */
    int result;
};
/* Starts it where the plan has patterns. The caller has blocked the signals that are not to end it. */
int dt_patterns_start(struct json_object *plan, const char *dir, struct dt_watcher *w,
                      struct dt_error *e);
/* Lets it read what was printed last, for 2 s of CPU time and 20 s at most, and ends it. Returns what
 * the user should know, an array of strings; NULL where there was none. Caller puts. */
struct json_object *dt_patterns_stop(struct dt_watcher *w);

/* ---- task.c, batch.c ---- */

/* dt-launch --task ROLE LAUNCH PROGRAM...: LAUNCH is the JSON of dt_launch_describe() or @FILE. With "monitor": {"period_s":
 * 10, "mem_mib": {ROLE: ...}} in the plan a sampler runs beside PROGRAM; mem_mib is what each task asked for. */
int dt_task_main(int argc, char **argv);
/* dt-launch --carrier SCRIPT [ARGS]. */
int dt_batch_main(int argc, char **argv);
/* dt-launch --tuner-gone JOB: 0 when the job surely has ended or never was, 1 when it is there or
 * unknown. */
int dt_tuner_gone_main(int argc, char **argv);
/* dt-launch --tell-tuner JOB: its batch script gets SIGUSR1, by one request to slurmctld. */
int dt_tell_tuner_main(int argc, char **argv);

#endif
