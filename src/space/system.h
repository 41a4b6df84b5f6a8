/* system: what Slurm says of a whole cluster, gathered once: kinds of nodes with their states,
 * partitions, switches, licences, and the limits that bind this user. Plain data, the same from
 * slurmctld and from a file; what of it one job may use is a dt_cluster. */
#ifndef DT_SYSTEM_H
#define DT_SYSTEM_H

#include "space/cluster.h"

/* Nodes of a kind that are in one state. */
struct dt_node_group {
    char *state;             /* Slurm's word in lower case, "idle", "drain" */
    char *names;             /* "n[001-250]" */
    struct dt_places places; /* of them, one by one, in Slurm's table; none: not known */
    size_t count;
    bool usable; /* may run jobs, now or when others have ended */
};

/* Nodes that are alike in everything a job can ask for. */
struct dt_node_kind {
    struct dt_node_class size; /* of one node; count: all that are usable */
    size_t total;              /* all, whatever their state */
    char *partitions;          /* "main,short" */
    struct dt_node_group *groups;
    size_t ngroups;
};

struct dt_partition {
    char *name;
    char *state; /* "up", "down", "drain", "inactive" */
    bool preset; /* jobs go there that name none */
    struct dt_partition_limits limits;
};

struct dt_switch {
    char *name;
    size_t level;           /* 0: it connects nodes */
    char *nodes, *switches; /* what hangs on it directly; NULL: none */
};

struct dt_system {
    char *name, *version; /* of the cluster, and of its Slurm; or NULL */
    bool backfill;
    struct dt_scheduling scheduling;
    struct dt_node_kind *kinds; /* in the order of Slurm's node table */
    size_t nkinds;
    struct dt_partition *partitions;
    size_t npartitions;
    struct dt_switch *switches;
    size_t nswitches;
    struct dt_amounts licenses;
    struct dt_limits *limits; /* the narrowest first */
    size_t nlimits;
};

#define DT_SYSTEM_VERSION 1

/* The file of `dt-tune topo --save`, a JSON document; its format stands in dt-tune(1). `what` names
 * it in errors, which name the key too. Unknown keys are errors, and so is another version. */
struct json_object *dt_system_to_json(const struct dt_system *s);
struct dt_system *dt_system_from_json(struct json_object *o, const char *what, struct dt_error *e);
void dt_system_free(struct dt_system *s);

/* The partition by its name, NULL: the preset one; an error where there is none. */
const struct dt_partition *dt_system_partition(const struct dt_system *s, const char *name,
                                               struct dt_error *e);
/* Whether a kind's nodes belong to a partition. */
bool dt_kind_in(const struct dt_node_kind *k, const char *partition);

/* Leaves only this node, or only what belongs to this partition; NULL: any. An error where there is
 * none (system_part.c). */
int dt_system_keep(struct dt_system *s, const char *node, const char *partition,
                   struct dt_error *e);
/* The picture for people, no line longer than 100 columns (system_text.c). Caller frees. */
char *dt_system_text(const struct dt_system *s);

#endif
