/* What of a cluster a study may use: the nodes of the job's partition that are up, in classes of equal size. */
#ifndef DT_CLUSTER_H
#define DT_CLUSTER_H

#include "space/space.h"

struct dt_node_class {
    size_t count, cpus, gpus;
    size_t threads; /* CPUs of a core; 0: unknown, one */
    uint64_t mem_mib, tmp_mib;
};

struct dt_cluster {
    struct dt_node_class *classes; /* largest CPU count first */
    size_t n;
    char *partition;
    bool backfill;   /* heterogeneous jobs start only by the backfill scheduler */
    size_t max_nodes; /* of one job in the partition; 0: no limit */
    double max_time; /* seconds; INFINITY */
};

/* {"partition":"main","backfill":true,"max_nodes":0,"max_time":null,"nodes":[{"count":4,"cpus":4,"mem":4096,...}]} */
struct json_object *dt_cluster_to_json(const struct dt_cluster *c);
struct dt_cluster *dt_cluster_from_json(struct json_object *o, struct dt_error *e);
void dt_cluster_free(struct dt_cluster *c);
/* Adds nodes, keeping the classes in order. */
void dt_cluster_add(struct dt_cluster *c, const struct dt_node_class *node);
size_t dt_cluster_nodes(const struct dt_cluster *c);
/* Constants that constraints may use: cluster_nodes, cluster_cpus, cluster_gpus, node_cpus, node_mem, node_gpus. */
#define DT_CLUSTER_FACTS 6
void dt_cluster_facts(const struct dt_cluster *c, struct dt_fact facts[DT_CLUSTER_FACTS]);
bool dt_cluster_has_fact(const char *name);

#endif
