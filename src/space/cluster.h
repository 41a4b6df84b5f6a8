/* What of a cluster a study may use: the nodes of the job's partition that are up, in classes of equal size. */
#ifndef DT_CLUSTER_H
#define DT_CLUSTER_H

#include "space/space.h"

struct dt_node_class {
    size_t count, cpus, gpus;
    size_t threads; /* CPUs of a core; 0: unknown, one */
    uint64_t mem_mib, tmp_mib;
    char *features; /* "fast,big", "": none; NULL: not known */
};

struct dt_cluster {
    struct dt_node_class *classes; /* largest CPU count first */
    size_t n;
    char *partition;
    bool backfill;   /* heterogeneous jobs start only by the backfill scheduler */
    size_t max_nodes; /* of one job in the partition; 0: no limit */
    double max_time; /* seconds; INFINITY */
    bool closed;     /* the partition starts no job now */
    /* Only where kinds of nodes are searched: */
    char *features;  /* all that nodes here have, also those that are down; NULL: not known */
    struct dt_cluster *partitions; /* each with all its nodes that are up, whatever their features */
    size_t npartitions;
};

/* {"partition":"main","backfill":true,"max_nodes":0,"max_time":null,"nodes":[{"count":4,"cpus":4,"mem":4096,...}]} */
struct json_object *dt_cluster_to_json(const struct dt_cluster *c);
struct dt_cluster *dt_cluster_from_json(struct json_object *o, struct dt_error *e);
void dt_cluster_free(struct dt_cluster *c);
/* Adds nodes, keeping the classes in order; the features are copied. */
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
