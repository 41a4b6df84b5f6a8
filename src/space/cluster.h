/* What of a cluster a study may use: the nodes of the job's partition that are up, in classes of equal size. */
#ifndef DT_CLUSTER_H
#define DT_CLUSTER_H

#include "space/space.h"

struct dt_run {
    size_t first, n;
};
/* Where nodes are in Slurm's table, the first at 1: rising, neighbours in one run. */
struct dt_places {
    struct dt_run *v;
    size_t n;
};
void dt_places_add(struct dt_places *p, size_t first, size_t n);

struct dt_node_class {
    size_t count, cpus, gpus;
    size_t threads; /* CPUs of a core; 0: unknown, one */
    size_t sockets, cores; /* cores: of a socket; 0: not known */
    size_t weight;         /* Slurm takes nodes of little weight first, */
    size_t order;          /* of equal weight those that come first in its table; 0: not known */
    struct dt_places places; /* of all of them; none: not known */
    uint64_t mem_mib, tmp_mib;
    char *features; /* "fast,big", "": none; NULL: not known */
    char *gres;     /* "gpu:a100:4,nic:1"; NULL: only the number of GPUs is known */
};

/* Amounts by Slurm's names of what it counts (TRES): "cpu", "mem" (MiB), "node", "gres/gpu:a100",
 * "license/x". */
struct dt_amounts {
    struct dt_amount {
        char *name;
        uint64_t n;
    } * v;
    size_t n;
};
#define DT_NO_LIMIT UINT64_MAX
void dt_amounts_set(struct dt_amounts *a, const char *name, uint64_t n);
uint64_t dt_amounts_get(const struct dt_amounts *a, const char *name, uint64_t fallback);
void dt_amounts_copy(struct dt_amounts *to, const struct dt_amounts *from);
void dt_amounts_free(struct dt_amounts *a);

/* What a partition demands of one job. Amounts of 0: no limit, or not set. */
struct dt_partition_limits {
    size_t max_nodes, min_nodes, max_cpus_per_node;
    double max_time;                            /* seconds; INFINITY */
    uint64_t def_mem_per_cpu, def_mem_per_node; /* MiB, of jobs that ask for none */
    uint64_t max_mem_per_cpu, max_mem_per_node; /* MiB */
    uint64_t def_mem_per_gpu;                   /* MiB */
    size_t def_cpus_per_gpu;
    size_t total_nodes, total_cpus; /* with those that are down; 0: not known */
    size_t first_cpus; /* of the partition's first node, by which slurmctld judges memory; 0: not
                          known */
    uint64_t first_mem;
    bool exclusive;           /* whole nodes only */
    bool reserved, root_only; /* for jobs in a reservation only, or for root */
    bool foreign; /* this user is none of those, or in none of the groups, that may use it */
    /* Lists, "a,b"; NULL: all, or nobody. */
    char *allow_accounts, *deny_accounts, *allow_qos, *deny_qos, *allow_groups;
    char *qos; /* whose limits hold for all jobs in the partition */
};

/* What an association, an account above it, or a QOS allows. Numbers: DT_NO_LIMIT where there is no
 * limit. */
struct dt_limits {
    char *who;              /* "user ann in account ml", "account ml", "QOS normal" */
    char *account, *parent; /* of an association; parent: the account above an account */
    char *user, *partition; /* of an association for them alone; or NULL */
    char *qos;           /* a QOS: its name; an association: its jobs' QOS, unless they name one */
    bool is_qos, preset; /* preset: the user's jobs go by it that name no account */
    bool own_nodes, own_time; /* a QOS that overrides the partition's node and time limits */
    bool refuses;             /* a QOS: what is beyond it is refused at once, else it waits */
    struct dt_amounts per_job, per_node, per_user, group;
    double max_time;                      /* seconds, of one job */
    uint64_t jobs, submitted;             /* of the user, running; running or waiting */
    uint64_t group_jobs, group_submitted; /* of all who share it */
};

/* How Slurm gives out what a node has. */
struct dt_scheduling {
    bool known;  /* else nothing is known but the sizes of nodes */
    bool memory; /* is given out; else it is not looked at */
    bool cores;  /* whole cores are given out, not single CPUs; with `sockets` whole sockets */
    bool sockets;
    bool enforced; /* what breaks a partition's limits is refused at once (EnforcePartLimits) */
};

#define DT_TUNER_MEM_MIB 512 /* of the tuning job */

struct dt_cluster {
    struct dt_node_class *classes; /* largest CPU count first */
    size_t n;
    char *partition;
    bool backfill;   /* heterogeneous jobs start only by the backfill scheduler */
    bool closed;     /* the partition starts no job now */
    struct dt_partition_limits limits;
    struct dt_scheduling scheduling;
    struct dt_amounts licenses;
    struct dt_limits *binding; /* the user's limits, as far as they are known */
    size_t nbinding;
    char *account, *qos; /* by which the job goes; NULL: not known */
    size_t tuner_jobs; /* 1: the tuner is itself a job, with a CPU and DT_TUNER_MEM_MIB, and counts
                          for the limits */
    /* Only where kinds of nodes are searched: */
    char *features;  /* all that nodes here have, also those that are down; NULL: not known */
    struct dt_cluster *partitions; /* each with all its nodes that are up, whatever their features */
    size_t npartitions;
};

/* {"partition":"main","backfill":true,"max_nodes":0,"max_time":null,"nodes":[{"count":4,"cpus":4,"mem":4096,...}]}.
 * Errors name the key. */
struct json_object *dt_cluster_to_json(const struct dt_cluster *c);
struct dt_cluster *dt_cluster_from_json(struct json_object *o, struct dt_error *e);
void dt_cluster_free(struct dt_cluster *c);
/* Whether nodes of both are alike in all but their count and order. */
bool dt_class_same(const struct dt_node_class *a, const struct dt_node_class *b);
/* Adds nodes, keeping the classes in order; the texts are copied. */
void dt_cluster_add(struct dt_cluster *c, const struct dt_node_class *node);
size_t dt_cluster_nodes(const struct dt_cluster *c);
/* A partition by its name, NULL: the job's; NULL where there is none. Where partitions are not known, the cluster is the
 * only one. */
const struct dt_cluster *dt_cluster_partition(const struct dt_cluster *c, const char *name);
/* The least, and the most, that a node has which allows both constraints (NULL: any), each quantity for itself. False
 * where there is no such node. */
bool dt_cluster_range(const struct dt_cluster *c, const char *const constraints[2],
                      struct dt_node_class *least, struct dt_node_class *most);

/* ---- constraints of nodes, as for --constraint (features.c) ----
 *
 * Understood are names joined by & (or a comma), or by |. Of anything richer nobody here can tell: it is left to Slurm. */

/* False only where nodes with these features cannot be meant. NULL, as features: not known; as constraint: none. */
bool dt_features_allow(const char *features, const char *constraint);
/* The first name in it that is not among the features; NULL: none, or one cannot tell. Caller frees. */
char *dt_features_missing(const char *features, const char *constraint);
/* One that means both; NULL where they cannot be joined, or both are NULL. Caller frees. */
char *dt_features_join(const char *a, const char *b);
/* Constants that constraints may use: cluster_nodes, cluster_cpus, cluster_gpus, node_cpus, node_mem, node_gpus. */
#define DT_CLUSTER_FACTS 6
void dt_cluster_facts(const struct dt_cluster *c, struct dt_fact facts[DT_CLUSTER_FACTS]);
bool dt_cluster_has_fact(const char *name);

#endif
