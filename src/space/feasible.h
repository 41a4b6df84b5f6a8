/* feasible: whether Slurm would ever start a job on a cluster, as long as its nodes stay as they
 * are. Pure.
 *
 * sbatch --test-only cannot be asked: of heterogeneous jobs it promises starts that never come, and
 * it costs slurmctld a request for each. The rules are those of slurmctld's scheduler with
 * select/cons_tres (job_mgr.c, node_scheduler.c and select/cons_tres/job_test.c of Slurm 22.05),
 * told in their own words. */
#ifndef DT_FEASIBLE_H
#define DT_FEASIBLE_H

#include "space/cluster.h"

enum dt_memory_of { DT_MEMORY_UNSAID, DT_MEMORY_NODE, DT_MEMORY_CPU, DT_MEMORY_GPU };

/* A job, or a component of a heterogeneous one, as its options say. 0 and NULL: not said. */
struct dt_request {
    size_t nodes, nodes_max; /* --nodes=2 is 2 and 2, 2-4 is 2 and 4 */
    size_t tasks, cpus;      /* cpus: of a task */
    size_t tasks_per_node, tasks_per_socket, tasks_per_core;
    size_t sockets, cores, threads; /* of a node, of a socket, of a core: at least */
    enum dt_memory_of memory;
    uint64_t mem_mib; /* with DT_MEMORY_NODE 0: all of a node */
    size_t gpus_per_task, gpus_per_node, gpus_per_socket, gpus; /* gpus: in all */
    size_t cpus_per_gpu;
    const char *gpu_type;
    const char *gres; /* of a node, beside GPUs: "nic:1" */
    uint64_t tmp_mib;
    double time; /* seconds */
    const char *constraint;
    const char *licenses; /* "matlab:2,fluent" */
    bool whole_nodes, overcommit;
};

/* Reasons that callers may put in words of their own. */
extern const char dt_no_room[];   /* a component alone is too large for the nodes */
extern const char dt_not_apart[]; /* all components together are */
/* Slurm would start the job, but srun not its tasks: CPUs enough, in parts that are no whole tasks.
 */
extern const char dt_torn[];

/* NULL: it can start. Else why it never does, the same text for the same kind of reason: static.
 * The components of a heterogeneous job start together, on nodes of their own. `partition` (NULL:
 * the cluster itself) is where the nodes are; licences and limits are those of `c`. */
const char *dt_feasible_why_not(const struct dt_cluster *c, const struct dt_cluster *partition,
                                const struct dt_request *requests, size_t n);

#endif
