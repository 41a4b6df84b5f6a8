/* placement: which tasks of a trial go to which nodes of an allocation, and what is free there. Pure: numbers only.
 *
 * The books count what trials were given, not what they use: a trial that was placed finds all of it free. */
#ifndef DT_PLACEMENT_H
#define DT_PLACEMENT_H

#include "util/util.h"

struct dt_room {
    size_t cpus, gpus;
    uint64_t mem_mib;
};

struct dt_book_node {
    char *name; /* owned; NULL where only sizes matter */
    struct dt_room all, free;
};

struct dt_books {
    struct dt_book_node *v;
    size_t n;
    size_t threads;     /* CPUs of a core, which no two steps share; at least 1 */
    size_t node_gpus;   /* each node has so many, given to us or not; 0: not the same on all, or not known */
    bool counts_memory; /* else memory is free for all, and mem_mib is 0 */
};
/* `name` is copied; NULL: none. `threads`, of this node, may be 0. */
void dt_books_add(struct dt_books *p, const char *name, const struct dt_room *room, size_t threads);
void dt_books_free(struct dt_books *p);
/* Whether there is nothing on node i. */
bool dt_books_empty(const struct dt_books *p, size_t i);
/* Node i is there no more: nothing finds room on it. */
void dt_books_close(struct dt_books *p, size_t i);
/* What is in all nodes together, taken or not. */
struct dt_room dt_books_total(const struct dt_books *p);
/* The memory in MiB that goes with a CPU where nobody says how much a task needs: every CPU of a node the same part, of
 * the node with the least. 0 where memory is not counted. */
uint64_t dt_books_mem_per_cpu(const struct dt_books *p);

/* What a role needs. */
struct dt_need {
    size_t count;
    size_t cpus, gpus;    /* of one task; all tasks of a node together get whole cores */
    uint64_t mem_per_cpu; /* MiB; 0: none is counted */
};
size_t dt_whole_cores(size_t cpus, size_t threads);
/* How many tasks of a role node i of n gets: servers (role 0) fill from the first node, others from the last, so that
 * the odd ones do not meet on one node. */
size_t dt_share(int role, size_t count, size_t n, size_t i);

/* Where a trial is, in order of the nodes. */
struct dt_placement {
    struct dt_place {
        size_t node; /* index in the books */
        size_t *tasks; /* of each role; owned */
        struct dt_room room;
    } *v;
    size_t n, nroles;
};
/* Finds a place for all tasks of the roles: on the one node that is left with the least if it takes them all, else on
 * as few as it needs, the emptiest first and each as full as it can be. `nodes` above 0: on so many, each with its
 * dt_share() of every role. False where there is none. Takes nothing. */
bool dt_placement_find(const struct dt_books *p, const struct dt_need *needs, size_t nroles, size_t nodes,
                   struct dt_placement *where);
void dt_placement_take(struct dt_books *p, const struct dt_placement *where);
void dt_placement_give_back(struct dt_books *p, const struct dt_placement *where);
void dt_placement_free(struct dt_placement *where);
/* How many nodes it comes to: of each the largest of its parts of the CPUs, memory and GPUs. */
double dt_placement_nodes(const struct dt_books *p, const struct dt_placement *where);
/* The part of the whole, 0 to 1: the same, weighted by the nodes' CPUs. */
double dt_placement_fraction(const struct dt_books *p, const struct dt_placement *where);

#endif
