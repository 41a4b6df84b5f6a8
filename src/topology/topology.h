/* topology: what a node is made of, and which of its cores and GPUs a trial's tasks should have.
 *
 * hwloc reads it (read.c), everything else is pure (links.c, plan.c, budget.c, text.c): numbers and
 * sets of PUs. A PU is what the kernel calls a CPU; sets hold the kernel's numbers, as taskset(1)
 * has them. */
#ifndef DT_TOPOLOGY_H
#define DT_TOPOLOGY_H

#include "space/cluster.h"
#include "util/util.h"

#include <hwloc.h>

#define DT_NOWHERE SIZE_MAX /* of a device: next to no NUMA node in particular */

struct dt_numa {
    unsigned id; /* the kernel's number */
    size_t package;
    uint64_t mem_mib;   /* 0: not known */
    uint64_t cache_mib; /* the memory-side cache before it; 0: none */
};

struct dt_core {
    hwloc_bitmap_t pus; /* its hardware threads that are online and allowed; at least one */
    size_t numa, package;
};

/* A device on the PCI bus. */
struct dt_device {
    char *name; /* "nvml0", "mlx5_0"; its place on the bus where the system has no name for it */
    char *bus;  /* "0000:3b:00.0" */
    size_t numa;
    bool fabric; /* of a network device: InfiniBand and the like, which tasks prefer */
};

struct dt_topology {
    struct dt_numa *numas; /* in the order of the machine, also those all of whose PUs are off */
    size_t nnumas, npackages;
    struct dt_core *cores; /* in the order of the machine: neighbours share caches */
    size_t ncores;
    struct dt_device *gpus, *nics; /* in the order of the bus, by which Slurm and NVML count GPUs */
    size_t ngpus, nnics;
    unsigned *far;    /* nnumas x nnumas: 10 is a node to itself, as ACPI's SLIT has it */
    uint64_t *nvlink; /* ngpus x ngpus: MB/s, directly or by a switch; 0: none */
    bool *bridge;     /* ngpus x ngpus: behind one PCI bridge */
};

/* ---- reading (read.c) ----
 *
 * A GPU is a PCI device of class 0302 or 0380 (3D or display controller), or one for which CUDA,
 * NVML, RSMI, Level Zero or OpenCL has a name, or a VGA controller of NVIDIA's or with a render
 * node: other VGA controllers are a server's console. Only the host's own GPUs count, whole. */

/* From a file that lstopo or dt-tune topo --gather wrote. */
struct dt_topology *dt_topology_read(const char *path, struct dt_error *e);
/* This node's, with all that is not for this process too; what takes long to start (CUDA, OpenCL,
 * GL) is not asked. As always with hwloc, HWLOC_XMLFILE names a file to be taken instead. */
struct dt_topology *dt_topology_here(struct dt_error *e);
/* This node as hwloc's XML, with all that hwloc finds. Caller frees. */
char *dt_topology_export(struct dt_error *e);
void dt_topology_free(struct dt_topology *t);

/* ---- what is near what (links.c) ---- */

size_t dt_topology_pus(const struct dt_topology *t);   /* how many */
uint64_t dt_topology_mem(const struct dt_topology *t); /* MiB of all NUMA nodes */
/* The cores of a NUMA node; DT_NOWHERE: all. */
size_t dt_topology_cores(const struct dt_topology *t, size_t numa);
/* All NUMA nodes, the nearest to `numa` first, by the distances of the firmware, then in order.
 * DT_NOWHERE: in order. order has nnumas elements. */
void dt_topology_nearest(const struct dt_topology *t, size_t numa, size_t *order);
/* The NUMA nodes of the cores with these PUs, by the kernel's numbers. NULL where those are all
 * that have memory. Caller frees. */
hwloc_bitmap_t dt_topology_near_mem(const struct dt_topology *t, hwloc_const_bitmap_t pus);
/* The network device that servers should sit next to: the first of a fabric, else the first; NULL:
 * none. */
const struct dt_device *dt_topology_nic(const struct dt_topology *t);

enum dt_link {
    DT_LINK_FAR,    /* in different NUMA nodes */
    DT_LINK_NUMA,   /* of one NUMA node */
    DT_LINK_BRIDGE, /* behind one PCI bridge */
    DT_LINK_NVLINK, /* by NVLink, directly or by a switch */
};
extern const char *const dt_link_names[];
/* The best between two GPUs. */
enum dt_link dt_topology_link(const struct dt_topology *t, size_t a, size_t b);
/* group[i]: of GPU i, counted from 0 in the order of their first GPU. GPUs are of one group that
 * NVLink connects, maybe by way of others; those without NVLink, of one NUMA node. Returns how many
 * groups. */
size_t dt_topology_groups(const struct dt_topology *t, size_t *group);

/* ---- who gets what (plan.c) ---- */

/* A task on this node. */
struct dt_seat {
    const char *role; /* borrowed; for messages */
    bool server;      /* belongs next to the network */
    size_t cpus;
    size_t gpus, *gpu; /* how many, and which; gpu is owned, NULL before dt_topology_share_gpus() */
    hwloc_bitmap_t pus; /* owned; NULL before dt_topology_seat() */
};
void dt_seats_free(struct dt_seat *seats, size_t n);

/* Chooses among the GPUs in `pool` (numbers, in order) for seats that have none yet: all in one
 * group where one has room for them, the smallest such; else each seat in the group with the least
 * room for it; else over groups. -1 where there are too few, or the node has no such GPU. */
int dt_topology_share_gpus(const struct dt_topology *t, const size_t *pool, size_t npool,
                           struct dt_seat *seats, size_t n, struct dt_error *e);
/* Chooses cores for all seats out of `allowed` (NULL: all): each seat gets whole cores, as many as
 * it needs for its CPUs, and no two seats share one; with `threads`, single hardware threads. In
 * this order: tasks with GPUs the cores of their GPUs' NUMA nodes, servers those of the network's,
 * the others the emptiest node that holds them; then who finds no room there, the nearest node that
 * has it, or else several. -1 where the cores do not suffice, and nothing is changed. */
int dt_topology_seat(const struct dt_topology *t, hwloc_const_bitmap_t allowed, bool threads,
                     struct dt_seat *seats, size_t n, struct dt_error *e);

/* ---- natural sizes (budget.c) ---- */

/* Workers of one size that divide the node. */
struct dt_budget {
    size_t gpus, cpus, workers; /* GPUs and CPUs of one; how many the node holds */
    uint64_t mem_mib;           /* of one: its part of the memory; 0: not known */
};
/* With GPUs: one a worker, and a group where all groups are of one size above 1; its CPUs are its
 * GPUs' part of the cores of their NUMA nodes, whole cores, at least one. Without: the node, its
 * packages, its NUMA nodes. The largest number of workers first. Returns how many, at most
 * DT_BUDGETS. */
#define DT_BUDGETS 3
size_t dt_topology_budgets(const struct dt_topology *t, struct dt_budget budgets[DT_BUDGETS]);

/* ---- words (text.c) ---- */

/* A set of PUs as "0-3,8". Caller frees. */
char *dt_pus_list(hwloc_const_bitmap_t pus);
/* A picture of a few lines, and {"version":1,"packages":...}; both with the natural sizes. Caller
 * frees, puts. */
char *dt_topology_text(const struct dt_topology *t);
struct json_object *dt_topology_to_json(const struct dt_topology *t);
/* Seats, one a line: "worker 0  CPUs 0-3 (0xf)  GPUs 0,1"; and as an array of objects. */
char *dt_seats_text(const struct dt_topology *t, const struct dt_seat *seats, size_t n);
struct json_object *dt_seats_to_json(const struct dt_topology *t, const struct dt_seat *seats,
                                     size_t n);

/* ---- files of topologies (store.c) ---- */

/* $XDG_CACHE_HOME/dt-tune/topology, else ~/.cache/dt-tune/topology; need not exist. Caller frees.
 * NULL where nobody knows the user's home. */
char *dt_topology_cache(void);
/* The name of a kind of nodes: a hash (FNV-1a, 64 bits) of what Slurm says of their hardware, CPUs,
 * sockets, cores, threads, memory and gres. Not of their features, which a cluster of a job may
 * leave out. */
void dt_topology_key(const struct dt_node_class *kind, char key[17]);
/* The file for a node: in the folder `given` (or NULL) NAME.xml, where NAME is the node's name or a
 * list of nodes as Slurm writes it ("dgx[01-16]"), else KEY.xml; else in `cache` (or NULL) KEY.xml.
 * `key` may be NULL. NULL where there is none. Caller frees. */
char *dt_topology_find(const char *given, const char *cache, const char *node, const char *key);
/* Whether the cache could have a file for every kind of nodes, and has not. */
bool dt_topology_unknown(const struct dt_cluster *c);

#endif
