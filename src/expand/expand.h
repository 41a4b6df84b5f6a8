/* expand: a submission and one configuration -> the shape of the Slurm job -> the batch script of a
 * trial. */
#ifndef DT_EXPAND_H
#define DT_EXPAND_H

#include "placement/placement.h"
#include "space/cluster.h"
#include "space/feasible.h"
#include "space/system.h"
#include "spec/spec.h"
#include "spec/submission.h"

/* ---- what the submission asks for, in numbers (job.c) ---- */

struct dt_job {
    size_t tasks, cpus; /* cpus and gpus: of one task */
    size_t gpus;
    size_t cpus_per_gpu; /* --cpus-per-gpu, 0 if not given */
    char *gpu_type;      /* "k80", or NULL */
    bool gpus_shared;  /* no whole number of GPUs a task, or several types: they stay as written */
    size_t gpus_total; /* shared ones in all, from --gpus; else 0 */
    size_t tasks_per_gpu;    /* --ntasks-per-gpu, 0 if not given */
    bool gpus_bound;         /* each task sees only its own, as with --gpus-per-task */
    size_t tasks_per_node;   /* --ntasks-per-node, 0 if not given */
    size_t nodes, nodes_max; /* --nodes, the second of a range only; 0 if not given */
    size_t listed;           /* nodes that --nodelist names: none of them may be left out */
    bool nodelist;           /* --nodelist or --nodefile was given */
    bool overcommit;         /* tasks are not counted against CPUs */
    uint64_t mem_mib;        /* of one task; 0: not given, or given for a node */
    uint64_t node_mem_mib;   /* --mem; 0 if not given or 0 (all) */
    uint64_t share_mib;      /* a task's part of node_mem_mib */
    double time;             /* seconds; 0 if not given */
    char *name;              /* job name */
    char *constraint, *partition; /* as given, or NULL */
    char *gres, *licenses;        /* likewise; gres: but GPUs */
    /* All that bears on whether it can start, to the letter; its texts are the job's. */
    struct dt_request given;
};
int dt_job_read(const struct dt_submission *s, struct dt_job *job, struct dt_error *e);
void dt_job_free(struct dt_job *job);
/* The GPUs in a value of --gres, and what else is in it, "" where nothing is (the caller frees). */
size_t dt_gres_gpus(const char *gres);
char *dt_gres_others(const char *gres);
/* Sets job->given; part of dt_job_read() (request.c). */
void dt_job_request(const struct dt_submission *s, struct dt_job *job);

/* What of the system such a job may use: the nodes of its partition (of several the first) that are
 * usable, allow its constraint and are not excluded, and the limits that bind it. With `kinds` all
 * partitions and features beside. NULL, with an error, where there is none such (job_cluster.c). */
struct dt_cluster *dt_job_cluster(const struct dt_system *s, const struct dt_submission *sub,
                                  bool kinds, struct dt_error *e);

/* ---- shape: roles and layout (shape.c) ---- */

enum { DT_ROLE_PS, DT_ROLE_WORKER, DT_ROLES };
extern const char *const dt_role_names[DT_ROLES];

struct dt_role {
    size_t count, cpus, gpus;
    bool gpus_as_given; /* GPUs that tasks share, as the user's options say; gpus is 0 */
    size_t nodes;       /* the role spreads over this many; 0: as Slurm likes */
    size_t nodes_max;   /* or up to that many; 0: not more */
    size_t per_node;    /* tasks of a node, where the user limits them; else 0 */
    uint64_t mem_mib;   /* of one task; 0: as the user's options say */
    uint64_t tmp_mib;   /* of a node; 0 likewise */
    const char *constraint; /* of its nodes, where `kinds`; NULL: any. Borrowed from the space or the job */
};

struct dt_shape {
    struct dt_role roles[DT_ROLES];
    bool het;          /* one component a role; else one plain job */
    bool steps;        /* no job at all, but steps in the tuning job's allocation */
    bool as_submitted; /* the user's own size options, to the letter */
    size_t nodes;      /* packed, both roles: nodes of the job, each with the same share; else 0 */
    bool kinds;        /* the kind of its nodes is searched: the job's --constraint is replaced */
    const char *partition; /* in the place of the job's; NULL: that. Borrowed from the space */
};

/* The configuration of the job as submitted: servers 0 where that is allowed, else the fewest; the
 * other tasks workers. x has space->n values. */
void dt_config_submitted(const struct dt_spec *spec, const struct dt_space *space,
                         const struct dt_job *job, double *x);
/* The shape of a configuration. Nodes: as many as the user asked for where they can hold it, else
 * the next number that can; where nothing was asked for, as Slurm likes, but of two roles on one job
 * the fewest that can hold them. Without a cluster (NULL) anything fits. */
void dt_shape_make(const struct dt_space *space, const double *x, const struct dt_job *job,
                   const struct dt_cluster *cluster, struct dt_shape *shape);
/* The same for layout steps, where the user's nodes are those of the whole allocation: a role has nodes only where they
 * are tuned. */
void dt_shape_make_steps(const struct dt_space *space, const double *x, const struct dt_job *job,
                         struct dt_shape *shape);
/* The most that one of n nodes needs where both roles share them evenly. mem_mib: 0 where nothing
 * says it. */
struct dt_node_share {
    size_t cpus, gpus;
    uint64_t mem_mib, tmp_mib;
};
struct dt_node_share dt_shape_share(const struct dt_shape *shape, const struct dt_job *job,
                                    size_t n);
/* What the shape asks of Slurm, for each component of the job; returns how many. Not of a shape of
 * steps (request.c). */
size_t dt_shape_requests(const struct dt_shape *shape, const struct dt_job *job,
                         struct dt_request requests[DT_ROLES]);
/* What one job of both roles is to demand of its nodes. NULL: nothing, or nothing that can be said. Caller frees. */
char *dt_shape_constraint(const struct dt_shape *shape);
/* Why the cluster, or with layout steps the allocation, can never run it, or NULL: the same text for the same kind of
 * reason. */
const char *dt_shape_why_not(const struct dt_shape *shape, const struct dt_job *job,
                             const struct dt_cluster *cluster);
/* Memory of one task for a sum over roles: its own, else the user's, else the other role's. 0:
 * unknown. */
uint64_t dt_role_mem(const struct dt_shape *shape, const struct dt_job *job, int role);

/* Memory of one task that the expansion writes, as that of its CPUs; 0: the user's own option
 * stands. In the first component that is not --mem where the second has another form: sbatch would
 * hand it on. */
uint64_t dt_role_mem_written(const struct dt_shape *shape, const struct dt_job *job, int role);

/* ---- layout steps: shares of an allocation (steps.c) ---- */

/* The nodes of an allocation, all free and without names. */
struct dt_books dt_cluster_books(const struct dt_cluster *c);
/* What each role needs. The memory of a task is its own where it is tuned, else the part that goes with its CPUs. */
void dt_shape_needs(const struct dt_shape *shape, const struct dt_books *books,
                    struct dt_need needs[DT_ROLES]);
/* A place in what is free; false where there is none. Caller frees *where. */
bool dt_shape_place(const struct dt_shape *shape, const struct dt_books *books,
                    struct dt_placement *where);
/* dt_shape_why_not() for a shape of steps. */
const char *dt_steps_why_not(const struct dt_shape *shape, const struct dt_job *job,
                             const struct dt_cluster *allocation);
/* About what Slurm will give to a job like that, for a check before it runs: as few nodes as the options allow, no
 * smaller than they say. `whole_nodes`: --exclusive. */
struct dt_cluster *dt_allocation_asked(const struct dt_job *job, const struct dt_cluster *cluster,
                                       bool whole_nodes);

/* Gives the worker's sizes that SPEC leaves to us ("auto") their values, in its document too, so
 * that a study that goes on has the same: by the topologies of the nodes, out of spec->topology or
 * the user's cache, else by what Slurm says of them (natural.c). An error where there is such a size
 * and no cluster (NULL), or nothing of its kind. */
int dt_natural_fill(struct dt_spec *spec, const struct dt_job *job, const struct dt_cluster *cluster,
                    struct dt_error *e);

/* The space of a study: SPEC's parameters, defaults where it names none, the parameter "layout"
 * where both layouts can run, the constraints, and what the cluster cannot run excluded.
 * `*why_layout` (borrowed, static) says how the layout was chosen. `source` must live as long as
 * the space. */
struct dt_space_source {
    const struct dt_spec *spec;
    const struct dt_job *job;
    const struct dt_cluster *cluster; /* with layout steps the allocation; NULL: nothing is excluded for want of nodes */
};
/* The filter of such a space; `source` is a struct dt_space_source. */
const char *dt_space_why_not(void *source, const struct dt_space *space, const double *x);
struct dt_space *dt_space_generate(struct dt_space_source *source, const char **why_layout,
                                   struct dt_error *e);

/* ---- the batch script (expand.c) ---- */

struct dt_trial_script {
    const struct dt_submission *submission;
    const char *script; /* the user's script, text */
    const struct dt_job *job;
    const struct dt_space *space;
    const double *x;
    const struct dt_shape *shape;
    const char *launch; /* absolute path of dt-launch */
    const char *study;  /* its name, "123"; NULL outside a study */
    const char *dir;    /* the trial's folder; NULL: the job makes its own */
    int trial, run;     /* 0 outside a study */
    uint32_t tuner_job; /* 0: none */
    const char *coordinator; /* a task more, see spec.h; NULL: none */
    const struct dt_spec *spec; /* how metrics are found in the output; NULL: nobody looks for them */
    const struct dt_books *books; /* of a shape of steps: where it is; NULL: not known yet */
    const struct dt_placement *where;
    int tuner_pid; /* the process that starts it; 0: not known yet */
    bool learn; /* some kind of nodes has a topology that nobody has looked at */
};
/* The text of the batch script; of a shape of steps the same without options for sbatch. Caller frees. */
char *dt_expand(const struct dt_trial_script *t, struct dt_error *e);
/* "train.dt-123-7": the name by which a trial's job is known. Caller frees. */
char *dt_trial_job_name(const struct dt_job *job, const char *study, int trial, int run);

#endif
