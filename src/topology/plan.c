#include "topology/topology.h"

#include <stdlib.h>
#include <string.h>

void dt_seats_free(struct dt_seat *seats, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(seats[i].gpu);
        hwloc_bitmap_free(seats[i].pus);
        seats[i].gpu = NULL;
        seats[i].pus = NULL;
    }
}

/* ---- GPUs ---- */

struct pool {
    const struct dt_topology *t;
    bool *free;    /* by GPU */
    size_t *group; /* of each GPU */
    size_t ngroups, left;
};

static int open_pool(struct pool *p, const struct dt_topology *t, const size_t *gpus, size_t n,
                     const struct dt_seat *seats, size_t nseats, struct dt_error *e)
{
    *p = (struct pool){.t = t,
                       .free = dt_xcalloc(t->ngpus, sizeof(bool)),
                       .group = dt_xcalloc(t->ngpus, sizeof(size_t))};
    p->ngroups = dt_topology_groups(t, p->group);
    for (size_t i = 0; i < n; i++) {
        if (gpus[i] >= t->ngpus)
            return dt_fail(e, "GPU %zu is not in the node's topology, which has %zu", gpus[i],
                           t->ngpus);
        p->left += !p->free[gpus[i]];
        p->free[gpus[i]] = true;
    }
    for (size_t i = 0; i < nseats; i++)
        for (size_t j = 0; seats[i].gpu && j < seats[i].gpus; j++) {
            size_t g = seats[i].gpu[j];
            p->left -= g < t->ngpus && p->free[g];
            if (g < t->ngpus)
                p->free[g] = false;
        }
    return 0;
}

static size_t room_of(const struct pool *p, size_t group)
{
    size_t n = 0;
    for (size_t i = 0; i < p->t->ngpus; i++)
        n += p->free[i] && p->group[i] == group;
    return n;
}

/* The group with the least room that holds so many, DT_NOWHERE: none does. */
static size_t tightest(const struct pool *p, size_t need)
{
    size_t best = DT_NOWHERE, least = SIZE_MAX;
    for (size_t g = 0; g < p->ngroups; g++) {
        size_t room = room_of(p, g);
        if (room < need || room >= least)
            continue;
        best = g;
        least = room;
    }
    return best;
}

static size_t roomiest(const struct pool *p)
{
    size_t best = 0;
    for (size_t g = 1; g < p->ngroups; g++)
        if (room_of(p, g) > room_of(p, best))
            best = g;
    return best;
}

static bool is_nearer(const struct dt_topology *t, size_t to, size_t a, size_t b)
{
    enum dt_link x = dt_topology_link(t, to, a), y = dt_topology_link(t, to, b);
    return x != y ? x > y : t->nvlink[to * t->ngpus + a] > t->nvlink[to * t->ngpus + b];
}

/* The seat's first GPU out of a group, the others as near to it as there are. */
static void take_gpus(struct pool *p, struct dt_seat *s, size_t group)
{
    s->gpu = dt_xcalloc(s->gpus, sizeof(*s->gpu));
    for (size_t k = 0; k < s->gpus; k++) {
        size_t best = DT_NOWHERE;
        for (size_t i = 0; i < p->t->ngpus; i++) {
            if (!p->free[i] || (k == 0 && p->group[i] != group))
                continue;
            if (best == DT_NOWHERE || (k > 0 && is_nearer(p->t, s->gpu[0], i, best)))
                best = i;
        }
        s->gpu[k] = best;
        p->free[best] = false;
        p->left--;
    }
}

int dt_topology_share_gpus(const struct dt_topology *t, const size_t *pool, size_t npool,
                           struct dt_seat *seats, size_t n, struct dt_error *e)
{
    struct pool p;
    size_t need = 0;
    int rc = open_pool(&p, t, pool, npool, seats, n, e);
    for (size_t i = 0; i < n; i++)
        need += seats[i].gpu ? 0 : seats[i].gpus;
    if (rc == 0 && need > p.left)
        rc = dt_fail(e, "the tasks on the node need %zu GPUs, and it has %zu for them", need,
                     p.left);
    size_t home = rc == 0 ? tightest(&p, need) : DT_NOWHERE;
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (seats[i].gpu || !seats[i].gpus)
            continue;
        size_t group = home != DT_NOWHERE ? home : tightest(&p, seats[i].gpus);
        take_gpus(&p, &seats[i], group != DT_NOWHERE ? group : roomiest(&p));
    }
    free(p.free);
    free(p.group);
    return rc;
}

/* ---- cores ---- */

/* What seats are made of: cores, or hardware threads where cores may be shared. */
struct part {
    hwloc_bitmap_t pus; /* those that are allowed, at least one */
    size_t numa;
    bool free;
};

struct floor {
    const struct dt_topology *t;
    struct part *parts;
    size_t n;
    size_t *order; /* NUMA nodes, as one seat likes them */
};

static size_t free_pus(const struct floor *f, size_t numa)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (f->parts[i].free && (numa == DT_NOWHERE || f->parts[i].numa == numa))
            n += (size_t)hwloc_bitmap_weight(f->parts[i].pus);
    return n;
}

/* Seats it in so many nodes of the order from the first of them; false where they have not enough.
 */
static bool sit(struct floor *f, struct dt_seat *s, size_t first, size_t nodes)
{
    size_t have = 0;
    for (size_t o = first; o < first + nodes; o++)
        have += free_pus(f, f->order[o]);
    if (have < s->cpus || !have)
        return false;
    s->pus = hwloc_bitmap_alloc();
    for (size_t o = first; o < first + nodes; o++)
        for (size_t i = 0; i < f->n; i++) {
            struct part *p = &f->parts[i];
            if (!p->free || p->numa != f->order[o])
                continue;
            if (!hwloc_bitmap_iszero(s->pus) && (size_t)hwloc_bitmap_weight(s->pus) >= s->cpus)
                return true;
            hwloc_bitmap_or(s->pus, s->pus, p->pus);
            p->free = false;
        }
    return true;
}

/* Puts the nodes of the seat's GPUs first, and returns how many there are; 0: it is near none in
 * particular. */
static size_t near_gpus(struct floor *f, const struct dt_seat *s)
{
    const struct dt_topology *t = f->t;
    size_t n = 0;
    for (size_t i = 0; i < s->gpus; i++)
        if (t->gpus[s->gpu[i]].numa != DT_NOWHERE && n++ == 0)
            dt_topology_nearest(t, t->gpus[s->gpu[i]].numa, f->order);
    if (!n)
        return 0;
    n = 0;
    for (size_t o = 0; o < t->nnumas; o++) {
        size_t numa = f->order[o];
        bool own = false;
        for (size_t i = 0; i < s->gpus; i++)
            own |= t->gpus[s->gpu[i]].numa == numa;
        if (!own)
            continue;
        memmove(&f->order[n + 1], &f->order[n], (o - n) * sizeof(*f->order));
        f->order[n++] = numa;
    }
    return n;
}

/* The node with most that is free. */
static size_t emptiest(const struct floor *f)
{
    size_t best = 0;
    for (size_t i = 1; i < f->t->nnumas; i++)
        if (free_pus(f, i) > free_pus(f, best))
            best = i;
    return best;
}

enum kind { WITH_GPUS, SERVER, OTHER, KINDS };

static enum kind kind_of(const struct dt_topology *t, const struct dt_seat *s)
{
    const struct dt_device *nic = dt_topology_nic(t);
    if (s->gpus && s->gpu)
        return WITH_GPUS;
    return s->server && nic && nic->numa != DT_NOWHERE ? SERVER : OTHER;
}

/* Sets the order in which the seat likes the nodes; returns how many of the first are its own. */
static size_t set_order(struct floor *f, const struct dt_seat *s)
{
    size_t n = 1;
    switch (kind_of(f->t, s)) {
    case WITH_GPUS:
        n = near_gpus(f, s);
        if (n)
            return n;
        break;
    case SERVER:
        dt_topology_nearest(f->t, dt_topology_nic(f->t)->numa, f->order);
        return n;
    default:
        break;
    }
    dt_topology_nearest(f->t, emptiest(f), f->order);
    return n;
}

static int check_seats(const struct dt_topology *t, const struct dt_seat *seats, size_t n,
                       struct dt_error *e)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; seats[i].gpu && j < seats[i].gpus; j++)
            if (seats[i].gpu[j] >= t->ngpus)
                return dt_fail(e, "GPU %zu is not in the node's topology, which has %zu",
                               seats[i].gpu[j], t->ngpus);
    return 0;
}

/* In one node, or else over several. */
static bool sit_anywhere(struct floor *f, struct dt_seat *s)
{
    set_order(f, s);
    for (size_t o = 0; o < f->t->nnumas; o++)
        if (sit(f, s, o, 1))
            return true;
    return sit(f, s, 0, f->t->nnumas);
}

static int sit_all(struct floor *f, const char *what, struct dt_seat *seats, size_t n,
                   struct dt_error *e)
{
    size_t all = free_pus(f, DT_NOWHERE);
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < n; i++)
            if ((int)kind_of(f->t, &seats[i]) == kind)
                sit(f, &seats[i], 0, set_order(f, &seats[i]));
    for (size_t i = 0; i < n; i++)
        if (!seats[i].pus && !sit_anywhere(f, &seats[i]))
            return dt_fail(e,
                           "%s, task %zu of %zu on the node, needs %s%zu CPUs, and %zu are free "
                           "of %zu",
                           seats[i].role, i + 1, n, what, seats[i].cpus, free_pus(f, DT_NOWHERE),
                           all);
    return 0;
}

/* A set is taken over where anything of it is allowed, else freed. */
static void add_part(struct floor *f, hwloc_bitmap_t pus, size_t numa, hwloc_const_bitmap_t allowed)
{
    if (allowed)
        hwloc_bitmap_and(pus, pus, allowed);
    if (hwloc_bitmap_iszero(pus))
        hwloc_bitmap_free(pus);
    else
        f->parts[f->n++] = (struct part){pus, numa, true};
}

static void open_floor(struct floor *f, const struct dt_topology *t, hwloc_const_bitmap_t allowed,
                       bool threads)
{
    *f = (struct floor){.t = t,
                        .parts = dt_xcalloc(dt_topology_pus(t), sizeof(struct part)),
                        .order = dt_xcalloc(t->nnumas, sizeof(size_t))};
    for (size_t i = 0; i < t->ncores; i++) {
        const struct dt_core *c = &t->cores[i];
        if (!threads) {
            add_part(f, hwloc_bitmap_dup(c->pus), c->numa, allowed);
            continue;
        }
        for (int pu = hwloc_bitmap_first(c->pus); pu >= 0; pu = hwloc_bitmap_next(c->pus, pu)) {
            hwloc_bitmap_t one = hwloc_bitmap_alloc();
            hwloc_bitmap_set(one, (unsigned)pu);
            add_part(f, one, c->numa, allowed);
        }
    }
}

static void close_floor(struct floor *f)
{
    for (size_t i = 0; i < f->n; i++)
        hwloc_bitmap_free(f->parts[i].pus);
    free(f->parts);
    free(f->order);
}

int dt_topology_seat(const struct dt_topology *t, hwloc_const_bitmap_t allowed, bool threads,
                     struct dt_seat *seats, size_t n, struct dt_error *e)
{
    struct floor f;
    if (check_seats(t, seats, n, e) < 0)
        return -1;
    open_floor(&f, t, allowed, threads);
    int rc = sit_all(&f, threads ? "" : "whole cores with ", seats, n, e);
    for (size_t i = 0; i < n && rc < 0; i++) {
        hwloc_bitmap_free(seats[i].pus);
        seats[i].pus = NULL;
    }
    close_floor(&f);
    return rc;
}
