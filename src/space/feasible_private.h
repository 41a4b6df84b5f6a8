/* The pieces of the judgement whether a job can start: what it needs (need.c), which nodes it would
 * get (room.c, fit.c), what it gets on them (share.c), what limits say of that (feasible.c). */
#ifndef DT_FEASIBLE_PRIVATE_H
#define DT_FEASIBLE_PRIVATE_H

#include "space/feasible.h"

#define DT_ANY SIZE_MAX

static inline size_t dt_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t dt_most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static inline size_t dt_parts(size_t whole, size_t part)
{
    return (whole + part - 1) / part;
}

/* ---- need.c ---- */

/* A request with nothing left unsaid, as sbatch and slurmctld complete it. */
struct dt_needed {
    const struct dt_request *request;
    size_t min_nodes, max_nodes; /* max_nodes: DT_ANY where nobody says */
    size_t asked_nodes;          /* the most that the job itself allows */
    size_t tasks, cpus;          /* cpus: of a task */
    size_t min_cpus;             /* of the job */
    size_t node_cpus;            /* of a node, at least */
    enum dt_memory_of memory;
    uint64_t mem_mib;
    size_t cpus_per_gpu;
    bool whole_nodes;
};
struct dt_needed dt_need_of(const struct dt_request *r, const struct dt_cluster *c,
                            const struct dt_cluster *p);
/* What forbids it whatever nodes there are: options that sbatch refuses together, the partition,
 * licences; or NULL. */
const char *dt_need_why_not(const struct dt_needed *n, const struct dt_cluster *c,
                            const struct dt_cluster *p);

/* ---- room.c ---- */

/* What a node of a class holds of a job; nothing where it is of no use. */
struct dt_room {
    size_t cpus, tasks, gpus;
    size_t counted; /* of the CPUs, when nodes are picked: beside GRES only those of whole tasks or
                       of GPUs */
};
struct dt_room dt_room_of(const struct dt_needed *n, const struct dt_node_class *k,
                          const struct dt_cluster *p);
/* GPUs of a type, or all (NULL). */
size_t dt_node_gpus(const struct dt_node_class *k, const char *type);
/* CPUs that are given out together: one, those of a core, or those of a socket. */
size_t dt_unit(const struct dt_node_class *k, const struct dt_cluster *p);
/* The CPUs of a core that tasks may use. */
size_t dt_of_core(const struct dt_needed *n, const struct dt_node_class *k);

/* ---- share.c ---- */

enum { DT_GET_CPUS, DT_GET_MEMORY, DT_GET_NODES, DT_GET_GPUS, DT_NGET };

/* What Slurm would give a component. */
struct dt_got {
    uint64_t n[DT_NGET];
    bool torn; /* its tasks do not fit on the nodes, though its CPUs do */
};
/* Nodes of a class that a component takes, each for so many CPUs. */
struct dt_part {
    size_t class, place; /* place: parts rise by it as their nodes do in Slurm's table */
    size_t nodes, cpus;
    size_t tasks; /* of a node, at the most */
};
struct dt_got dt_got_on(const struct dt_needed *n, const struct dt_cluster *p,
                        const struct dt_part *parts, size_t nparts);

/* ---- fit.c ---- */

/* Each component on nodes of its own, one after the other as Slurm takes them; false where they do
 * not fit. */
bool dt_fit(const struct dt_cluster *p, const struct dt_needed *needs, size_t n,
            struct dt_got *got);

#endif
