#include "space/feasible_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- what a node holds of it ---- */

/* How many of a GRES ("gpu", or "gpu" of a type) a node's text has: "gpu:a100:4(S:0-1),nic:1". */
static size_t gres_count(const char *text, const char *name, const char *type)
{
    size_t n = 0, len = strlen(name);
    for (const char *p = text; p && *p;) {
        size_t word = strcspn(p, ",("), type_len = type ? strlen(type) : 0;
        const char *rest = p + len;
        bool ours = word >= len && strncmp(p, name, len) == 0 && (word == len || *rest == ':');
        const char *last = p + word;
        while (last > p && last[-1] != ':')
            last--;
        bool typed = ours && last > rest + 1;
        if (type)
            ours = typed && strncmp(rest + 1, type, type_len) == 0 && rest[1 + type_len] == ':';
        if (ours)
            n += word == len ? 1 : strtoul(last, NULL, 10);
        p += word;
        if (*p == '(')
            p += strcspn(p, ")") + (strchr(p, ')') != NULL);
        p += *p == ',';
    }
    return n;
}

static size_t node_gpus(const struct dt_node_class *k, const char *type)
{
    return k->gres && type ? gres_count(k->gres, "gpu", type) : k->gpus;
}

/* Whether the node has the user's other GRES: "nic:1,ssd". */
static bool has_gres(const struct dt_node_class *k, const char *wanted)
{
    struct dt_strv all = DT_STRV_INIT;
    bool ok = true;
    if (!wanted || !k->gres)
        return true;
    dt_strv_split(&all, wanted, ",");
    for (size_t i = 0; i < all.n && ok; i++) {
        char *name = all.v[i], *colon = strrchr(name, ':');
        char *end = NULL;
        size_t n = colon ? strtoul(colon + 1, &end, 10) : 1;
        if (dt_starts_with(name, "gres:"))
            name += 5;
        if (colon && end != colon + 1 && !*end)
            *colon = '\0';
        else
            n = 1;
        char *type = strchr(name, ':');
        if (type)
            *type++ = '\0';
        ok = gres_count(k->gres, name, type) >= n;
    }
    dt_strv_free(&all);
    return ok;
}

/* CPUs of the node that Slurm lets such a job use, before memory. */
static size_t open_cpus(const struct dt_needed *n, const struct dt_node_class *k,
                        const struct dt_cluster *p)
{
    const struct dt_request *a = n->request;
    size_t threads = dt_most(k->threads, 1), cores = k->cpus / threads, cpus = k->cpus;
    size_t cap = p->limits.max_cpus_per_node, of_core = threads;
    if (a->sockets > k->sockets && k->sockets)
        return 0;
    if ((a->cores > k->cores && k->cores) || a->threads > threads)
        return 0;
    if (a->threads)
        of_core = dt_least(of_core, a->threads);
    if (a->tasks_per_core)
        of_core = dt_least(of_core, a->tasks_per_core * n->cpus);
    cpus = cores * of_core;
    if (a->tasks_per_socket && k->sockets && k->cores)
        cpus = dt_least(cpus,
                        k->sockets * dt_least(k->cores * of_core, a->tasks_per_socket * n->cpus));
    if (cap && cpus > cap)
        cpus = n->whole_nodes ? 0 : cap;
    return cpus;
}

/* What is taken at a time of the CPUs of a node. */
static size_t unit_of(const struct dt_node_class *k, const struct dt_cluster *p)
{
    size_t threads = dt_most(k->threads, 1);
    return p->scheduling.sockets ? dt_most(k->cores, 1) * threads
           : p->scheduling.cores ? threads
                                 : 1;
}

/* The same once memory is given out with them. Where it is not, a node must still have as much as
 * is asked for. */
static size_t cpus_with_memory(const struct dt_needed *n, const struct dt_node_class *k,
                               const struct dt_cluster *p, size_t cpus)
{
    const struct dt_request *r = n->request;
    size_t unit = unit_of(k, p), threads = 1;
    if (n->memory == DT_MEMORY_GPU)
        return cpus;
    if (n->mem_mib > k->mem_mib)
        return 0;
    if (n->memory == DT_MEMORY_NODE || (p->scheduling.known && !p->scheduling.memory))
        return cpus;
    if (n->whole_nodes && n->mem_mib * k->cpus > k->mem_mib)
        return 0;
    if (p->scheduling.cores && r->tasks_per_core == 1 &&
        n->cpus == 1) { /* then CPUs are cores here */
        threads = dt_most(k->threads, 1);
        unit = 1;
    }
    while (cpus && n->mem_mib * cpus * threads > k->mem_mib)
        cpus -= dt_least(unit, cpus);
    return cpus - cpus % n->cpus;
}

/* What a node of a class holds. */
struct room {
    size_t cpus, tasks, gpus;
};

static size_t tasks_by_gpus(const struct dt_needed *n, const struct dt_node_class *k, size_t gpus)
{
    const struct dt_request *a = n->request;
    size_t tasks = a->gpus_per_task ? gpus / a->gpus_per_task : DT_ANY;
    if (n->memory == DT_MEMORY_GPU && n->mem_mib && a->gpus_per_task)
        tasks = dt_least(tasks, (size_t)(k->mem_mib / n->mem_mib) / a->gpus_per_task);
    return tasks;
}

/* The tasks that a node must hold for it to be of use. */
static size_t tasks_at_least(const struct dt_needed *n)
{
    const struct dt_request *r = n->request;
    if (r->tasks_per_node)
        return r->tasks_per_node;
    return n->asked_nodes == 1 ? n->tasks : 1;
}

static bool has_gpus(const struct dt_needed *n, const struct dt_node_class *k, size_t gpus)
{
    const struct dt_request *r = n->request;
    size_t used = n->whole_nodes ? gpus : dt_most(r->gpus_per_node, 1);
    if (r->gpus_per_node > gpus || r->gpus_per_task > gpus || r->gpus_per_socket > gpus ||
        (r->gpus && !gpus))
        return false;
    return n->memory != DT_MEMORY_GPU || n->mem_mib * used <= k->mem_mib;
}

static struct room room_of(const struct dt_needed *n, const struct dt_node_class *k,
                           const struct dt_cluster *p)
{
    const struct dt_request *r = n->request;
    const struct room none = {0};
    struct room room = {.gpus = node_gpus(k, r->gpu_type)};
    size_t here = tasks_at_least(n);
    bool gpus = r->gpus || r->gpus_per_node || r->gpus_per_task;
    if (!dt_features_allow(k->features, r->constraint) || r->tmp_mib > k->tmp_mib ||
        !has_gres(k, r->gres) || !has_gpus(n, k, room.gpus))
        return none;
    room.cpus = cpus_with_memory(n, k, p, open_cpus(n, k, p));
    room.tasks = dt_least(room.cpus / n->cpus, tasks_by_gpus(n, k, room.gpus));
    if (r->gpus && n->cpus_per_gpu) /* a GPU counts with its CPUs only */
        room.gpus = dt_least(room.gpus, room.cpus / n->cpus_per_gpu);
    if (room.cpus < n->node_cpus || (r->gpus && !room.gpus))
        return none;
    /* GPUs are counted with all the tasks of one node, also where their CPUs are not */
    if (room.tasks < here && (!r->overcommit || (gpus && here > 1)))
        return none;
    if (r->tasks_per_node)
        room.tasks = dt_least(room.tasks, r->tasks_per_node);
    return room;
}

/* ---- which nodes it gets ---- */

/* How many nodes of each class are free, and how many a job takes. */
struct pool {
    const struct dt_cluster *p;
    size_t *order; /* the classes, as Slurm takes their nodes */
    size_t *free, *taken;
    size_t *near; /* GPUs that draw components to the class */
};

static int by_weight(const void *a, const void *b, void *arg)
{
    const struct pool *pool = arg;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    const struct dt_node_class *x = &pool->p->classes[i], *y = &pool->p->classes[j];
    if (x->weight != y->weight)
        return x->weight < y->weight ? -1 : 1;
    if (pool->near[i] != pool->near[j])
        return pool->near[i] > pool->near[j] ? -1 : 1;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return i < j ? -1 : 1;
}

/* Before a component of a heterogeneous job its others were tested, and the last that wants GPUs
 * has left the nodes with some a little lighter: they are taken first, also for those that want
 * none. */
static size_t near_gpus(const struct dt_node_class *k, const struct dt_needed *needs, size_t n)
{
    size_t near = 0;
    for (size_t i = 0; n > 1 && i < n; i++) {
        const struct dt_request *r = needs[i].request;
        size_t tasks = r->tasks_per_node ? r->tasks_per_node : needs[i].tasks;
        size_t wanted = r->gpus_per_node ? r->gpus_per_node : r->gpus_per_task * tasks + r->gpus;
        near = wanted ? dt_least(wanted, node_gpus(k, r->gpu_type)) : near;
    }
    return near;
}

static struct pool pool_of(const struct dt_cluster *p, const struct dt_needed *needs, size_t n)
{
    struct pool pool = {.p = p};
    pool.order = dt_xcalloc(p->n, sizeof(size_t));
    pool.free = dt_xcalloc(p->n, sizeof(size_t));
    pool.taken = dt_xcalloc(p->n, sizeof(size_t));
    pool.near = dt_xcalloc(p->n, sizeof(size_t));
    for (size_t i = 0; i < p->n; i++) {
        pool.order[i] = i;
        pool.free[i] = p->classes[i].count;
        pool.near[i] = near_gpus(&p->classes[i], needs, n);
    }
    qsort_r(pool.order, p->n, sizeof(size_t), by_weight, &pool);
    return pool;
}

static void pool_free(struct pool *pool)
{
    free(pool->order);
    free(pool->free);
    free(pool->taken);
    free(pool->near);
}

/* What a job still lacks while nodes are picked for it. */
struct lack {
    size_t nodes, cpus, tasks, gpus, left; /* left: so many nodes more at most */
};

static bool met(const struct lack *l)
{
    return !l->nodes && !l->cpus && !l->tasks && !l->gpus;
}

static void take(struct pool *pool, size_t class, size_t n, const struct room *r, struct lack *l)
{
    pool->taken[class] += n;
    l->left -= n;
    l->nodes -= dt_least(l->nodes, n);
    l->cpus -= dt_least(l->cpus, n * r->cpus);
    l->tasks -= dt_least(l->tasks, n * r->tasks);
    l->gpus -= dt_least(l->gpus, n * r->gpus);
}

/* How many nodes of this room the job would still take. */
static size_t wanted(const struct lack *l, const struct room *r)
{
    size_t n = dt_most(l->nodes, dt_parts(l->cpus, r->cpus));
    if (r->tasks)
        n = dt_most(n, dt_parts(l->tasks, r->tasks));
    return r->gpus ? dt_most(n, dt_parts(l->gpus, r->gpus)) : n;
}

/* Neighbours in Slurm's table that are equally heavy: it looks for the set that fits best. */
struct set {
    size_t first, end; /* in the pool's order */
    size_t nodes;
    struct room room; /* of all of them */
};

static bool are_neighbours(const struct pool *pool, size_t i, size_t j)
{
    const struct dt_node_class *a = &pool->p->classes[i], *b = &pool->p->classes[j];
    return a->weight == b->weight && pool->near[i] == pool->near[j] &&
           (!b->order || b->order == a->order + 1);
}

/* The set that begins at place `first` of the order, of nodes with more than `floor` CPUs. */
static struct set set_at(const struct pool *pool, const struct room *rooms, size_t floor,
                         size_t first)
{
    struct set set = {.first = first, .end = first};
    for (; set.end < pool->p->n; set.end++) {
        size_t i = pool->order[set.end], n = pool->free[i];
        if (!n || rooms[i].cpus <= floor ||
            (set.end > first && !are_neighbours(pool, pool->order[set.end - 1], i)))
            break;
        set.nodes += n;
        set.room.cpus += n * rooms[i].cpus;
        set.room.tasks += n * rooms[i].tasks;
        set.room.gpus += n * rooms[i].gpus;
    }
    return set;
}

static bool is_enough(const struct lack *l, size_t nodes, const struct room *r)
{
    return nodes >= l->nodes && r->cpus >= l->cpus && r->tasks >= l->tasks && r->gpus >= l->gpus;
}

/* The lightest; of equal ones the first that is enough, or the smallest such, or else the largest.
 */
static size_t best_set(const struct pool *pool, const struct set *sets, size_t n,
                       const struct lack *l)
{
    size_t best = n;
    for (size_t i = 0; i < n; i++) {
        if (!sets[i].nodes)
            continue;
        size_t a = pool->order[sets[i].first], b = best < n ? pool->order[sets[best].first] : a;
        bool heavier = best < n && (pool->p->classes[a].weight != pool->p->classes[b].weight ||
                                    pool->near[a] != pool->near[b]);
        if (heavier) /* the sets are in order */
            break;
        bool enough = is_enough(l, sets[i].nodes, &sets[i].room);
        size_t cpus = sets[i].room.cpus, most = best < n ? sets[best].room.cpus : 0;
        if (best == n ||
            (enough && (!is_enough(l, sets[best].nodes, &sets[best].room) || cpus < most)) ||
            (!enough && cpus > most))
            best = i;
    }
    return best;
}

/* The class of the smallest node of the set that alone is enough; pool->p->n: there is none. */
static size_t one_node(const struct pool *pool, const struct room *rooms, const struct set *set,
                       const struct lack *l)
{
    size_t found = pool->p->n;
    for (size_t k = set->first; k < set->end && l->nodes <= 1; k++) {
        size_t i = pool->order[k];
        if (is_enough(l, 1, &rooms[i]) &&
            (found == pool->p->n || rooms[i].cpus < rooms[found].cpus))
            found = i;
    }
    return found;
}

static void take_from(struct pool *pool, const struct room *rooms, const struct set *set,
                      struct lack *l)
{
    size_t one = one_node(pool, rooms, set, l);
    if (one < pool->p->n) {
        take(pool, one, 1, &rooms[one], l);
        return;
    }
    for (size_t k = set->first; k < set->end && !met(l); k++) {
        size_t i = pool->order[k],
               n = dt_least(wanted(l, &rooms[i]), dt_least(pool->free[i], l->left));
        if (n && n == l->left &&
            n * rooms[i].cpus < l->cpus) /* the last one must bring all the rest */
            n--;
        take(pool, i, n, &rooms[i], l);
    }
}

/* Takes nodes of more than `floor` CPUs as Slurm does; true where they suffice. */
static bool pick(struct pool *pool, const struct dt_needed *n, const struct room *rooms,
                 size_t floor)
{
    const struct dt_request *r = n->request;
    struct lack l = {n->min_nodes, n->min_cpus, r->gpus_per_task ? n->tasks : 0, r->gpus,
                     n->max_nodes};
    struct set *sets = dt_xcalloc(pool->p->n, sizeof(*sets));
    size_t count = 0;
    memset(pool->taken, 0, pool->p->n * sizeof(size_t));
    for (size_t k = 0; k < pool->p->n;) {
        struct set set = set_at(pool, rooms, floor, k);
        k = dt_most(k + 1, set.end);
        if (set.nodes)
            sets[count++] = set;
    }
    for (size_t best; !met(&l) && l.left && (best = best_set(pool, sets, count, &l)) < count;) {
        take_from(pool, rooms, &sets[best], &l);
        sets[best].nodes = 0;
    }
    free(sets);
    return met(&l);
}

/* On the nodes that were taken for it; no less than it gets, as near as can be told. */
static struct dt_got got_on(const struct pool *pool, const struct dt_needed *n)
{
    const struct dt_request *a = n->request;
    struct dt_got g = {0};
    uint64_t all_mem = 0, all_cpus = 0, all_gpus = 0;
    size_t unit = 1;
    for (size_t i = 0; i < pool->p->n; i++) {
        const struct dt_node_class *k = &pool->p->classes[i];
        g.n[DT_GET_NODES] += pool->taken[i];
        all_cpus += pool->taken[i] * k->cpus;
        all_gpus += pool->taken[i] * k->gpus;
        all_mem += pool->taken[i] * k->mem_mib;
        if (pool->taken[i])
            unit = dt_most(unit, unit_of(k, pool->p));
    }
    g.n[DT_GET_CPUS] =
        n->whole_nodes
            ? all_cpus
            : dt_parts(dt_most(n->min_cpus, g.n[DT_GET_NODES] * n->node_cpus), unit) * unit;
    g.n[DT_GET_GPUS] = n->whole_nodes ? all_gpus : dt_most(n->tasks * a->gpus_per_task, a->gpus);
    if (!n->whole_nodes)
        g.n[DT_GET_GPUS] = dt_most(
            g.n[DT_GET_GPUS], g.n[DT_GET_NODES] * dt_most(a->gpus_per_node, a->gpus_per_socket));
    if (n->memory == DT_MEMORY_NODE)
        g.n[DT_GET_MEMORY] = n->mem_mib ? n->mem_mib * g.n[DT_GET_NODES] : all_mem;
    else
        g.n[DT_GET_MEMORY] =
            n->mem_mib * g.n[n->memory == DT_MEMORY_GPU ? DT_GET_GPUS : DT_GET_CPUS];
    return g;
}

/* Where the nodes of little weight do not suffice within the limit of nodes, Slurm leaves the
 * smallest out, one size after the other. */
static bool place(struct pool *pool, const struct dt_needed *n, struct dt_got *got)
{
    struct room *rooms = dt_xcalloc(pool->p->n, sizeof(*rooms));
    size_t tasks = 0;
    bool ok = false, more = true;
    for (size_t i = 0; i < pool->p->n; i++)
        rooms[i] = room_of(n, &pool->p->classes[i], pool->p);
    for (size_t floor = 0, next; more && !ok; floor = next) {
        ok = pick(pool, n, rooms, floor);
        next = DT_ANY;
        for (size_t i = 0; i < pool->p->n; i++)
            if (rooms[i].cpus > floor)
                next = dt_least(next, rooms[i].cpus);
        more = next != DT_ANY;
    }
    for (size_t i = 0; i < pool->p->n; i++)
        tasks += pool->taken[i] * rooms[i].tasks;
    *got = got_on(pool, n);
    got->torn = tasks < n->tasks && !n->request->overcommit;
    free(rooms);
    return ok;
}

bool dt_fit(const struct dt_cluster *p, const struct dt_needed *needs, size_t n, struct dt_got *got)
{
    struct pool pool = pool_of(p, needs, n);
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        ok = place(&pool, &needs[i], &got[i]);
        for (size_t k = 0; k < p->n && ok; k++)
            pool.free[k] -= pool.taken[k];
    }
    pool_free(&pool);
    return ok;
}
