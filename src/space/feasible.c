#include "space/feasible.h"

#include <stdlib.h>
#include <string.h>

#define ANY SIZE_MAX

const char dt_no_room[] = "more CPUs, memory, disk or GPUs than the nodes have";
const char dt_not_apart[] = "too few nodes: components never share one";

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t parts(size_t whole, size_t part)
{
    return (whole + part - 1) / part;
}

/* ---- what is asked for, as slurmctld completes it ---- */

/* An ask with nothing left unsaid. */
struct need {
    const struct dt_request *ask;
    size_t min_nodes, max_nodes; /* max_nodes: ANY where nobody says */
    size_t tasks, cpus;
    size_t min_cpus;      /* of the job */
    size_t node_cpus;     /* of a node, at least */
    enum dt_memory_of memory;
    uint64_t mem_mib;
    size_t cpus_per_gpu;
    bool whole_nodes;
};

/* A job without a word on memory gets the partition's default. */
static void complete_memory(struct need *n, const struct dt_partition_limits *l)
{
    const struct dt_request *a = n->ask;
    bool gpus = a->gpus || a->gpus_per_node || a->gpus_per_task || a->gpus_per_socket;
    n->memory = a->memory;
    n->mem_mib = a->mem_mib;
    if (n->memory != DT_MEMORY_UNSAID)
        return;
    n->memory = gpus && l->def_mem_per_gpu ? DT_MEMORY_GPU
                : l->def_mem_per_cpu       ? DT_MEMORY_CPU
                                           : DT_MEMORY_NODE;
    n->mem_mib = n->memory == DT_MEMORY_GPU   ? l->def_mem_per_gpu
                 : n->memory == DT_MEMORY_CPU ? l->def_mem_per_cpu
                                              : l->def_mem_per_node;
}

/* Where a CPU may have no more memory, a task gets more CPUs for it rather than a refusal. */
static void raise_cpus(struct need *n, const struct dt_partition_limits *l)
{
    const struct dt_request *a = n->ask;
    uint64_t cap = l->max_mem_per_cpu;
    if (!cap)
        return;
    if (n->memory == DT_MEMORY_CPU && n->mem_mib > cap) {
        uint64_t times = (n->mem_mib + cap - 1) / cap;
        n->cpus *= (size_t)times;
        n->mem_mib = (n->mem_mib + times - 1) / times;
        n->min_cpus = n->tasks * n->cpus;
    } else if (n->memory == DT_MEMORY_NODE && n->mem_mib) {
        size_t cpus = (size_t)((n->mem_mib + cap - 1) / cap);
        if (cpus <= n->node_cpus)
            return;
        n->node_cpus = cpus;
        if (a->tasks_per_node)
            n->cpus = most(n->cpus, parts(cpus, a->tasks_per_node));
    }
}

/* The most nodes that the limits leave to a job. */
static size_t nodes_allowed(const struct dt_cluster *c)
{
    uint64_t n = DT_NO_LIMIT;
    for (size_t i = 0; i < c->nbinding; i++)
        n = least(n, dt_amounts_get(&c->binding[i].per_job, "node", DT_NO_LIMIT));
    return n;
}

static struct need need_of(const struct dt_request *a, const struct dt_cluster *c, const struct dt_cluster *p)
{
    const struct dt_partition_limits *l = &p->limits;
    struct need n = {.ask = a, .whole_nodes = a->whole_nodes || l->exclusive};
    n.min_nodes = a->nodes ? a->nodes : most(l->min_nodes, 1);
    n.max_nodes = a->nodes_max ? a->nodes_max : ANY;
    n.tasks = a->tasks ? a->tasks : most(a->nodes, 1) * most(a->tasks_per_node, 1);
    if (a->tasks && a->nodes > a->tasks) /* as sbatch itself does, with a warning */
        n.min_nodes = n.max_nodes = a->tasks;
    n.cpus_per_gpu = a->cpus_per_gpu ? a->cpus_per_gpu : a->cpus ? 0 : l->def_cpus_per_gpu;
    n.cpus = most(a->cpus, 1);
    if (n.cpus_per_gpu && a->gpus_per_task)
        n.cpus = most(n.cpus, n.cpus_per_gpu * a->gpus_per_task);
    n.min_cpus = a->overcommit ? n.min_nodes : n.tasks * n.cpus;
    n.node_cpus = a->overcommit ? 1 : n.cpus;
    if (n.cpus_per_gpu && a->gpus_per_node)
        n.node_cpus = most(n.node_cpus, n.cpus_per_gpu * a->gpus_per_node);
    if (a->tasks_per_node) {
        n.min_nodes = most(n.min_nodes, parts(n.tasks, a->tasks_per_node));
        if (!a->overcommit)
            n.node_cpus = most(n.node_cpus, least(a->tasks_per_node, n.tasks) * n.cpus);
    }
    complete_memory(&n, l);
    raise_cpus(&n, l);
    if (l->max_nodes)
        n.max_nodes = least(n.max_nodes, l->max_nodes);
    if (n.min_nodes <= nodes_allowed(c))
        n.max_nodes = least(n.max_nodes, nodes_allowed(c));
    if (a->tasks)
        n.max_nodes = least(n.max_nodes, most(n.tasks, n.min_nodes));
    return n;
}

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
static size_t open_cpus(const struct need *n, const struct dt_node_class *k, const struct dt_cluster *p)
{
    const struct dt_request *a = n->ask;
    size_t threads = most(k->threads, 1), cores = k->cpus / threads, cpus = k->cpus;
    size_t cap = p->limits.max_cpus_per_node, of_core = threads;
    if (a->sockets > k->sockets && k->sockets)
        return 0;
    if ((a->cores > k->cores && k->cores) || a->threads > threads)
        return 0;
    if (a->threads)
        of_core = least(of_core, a->threads);
    if (a->tasks_per_core)
        of_core = least(of_core, a->tasks_per_core * n->cpus);
    cpus = cores * of_core;
    if (a->tasks_per_socket && k->sockets && k->cores)
        cpus = least(cpus, k->sockets * least(k->cores * of_core, a->tasks_per_socket * n->cpus));
    if (cap && cpus > cap)
        cpus = n->whole_nodes ? 0 : cap;
    return cpus;
}

/* What is taken at a time of the CPUs of a node. */
static size_t unit_of(const struct dt_node_class *k, const struct dt_cluster *p)
{
    size_t threads = most(k->threads, 1);
    return p->scheduling.sockets ? most(k->cores, 1) * threads : p->scheduling.cores ? threads : 1;
}

/* The same once memory is given out with them. */
static size_t cpus_with_memory(const struct need *n, const struct dt_node_class *k, const struct dt_cluster *p,
                               size_t cpus)
{
    size_t unit = unit_of(k, p);
    if (p->scheduling.known && !p->scheduling.memory)
        return cpus;
    if (n->memory == DT_MEMORY_NODE)
        return n->mem_mib > k->mem_mib ? 0 : cpus;
    if (n->memory != DT_MEMORY_CPU)
        return cpus;
    if (n->whole_nodes && n->mem_mib * cpus > k->mem_mib)
        return 0;
    while (cpus && n->mem_mib * cpus > k->mem_mib)
        cpus -= least(unit, cpus);
    return cpus - cpus % n->cpus;
}

/* What a node of a class holds. */
struct room {
    size_t cpus, tasks, gpus;
};

static size_t tasks_by_gpus(const struct need *n, const struct dt_node_class *k, size_t gpus)
{
    const struct dt_request *a = n->ask;
    size_t tasks = a->gpus_per_task ? gpus / a->gpus_per_task : ANY;
    if (n->memory == DT_MEMORY_GPU && n->mem_mib && a->gpus_per_task)
        tasks = least(tasks, (size_t)(k->mem_mib / n->mem_mib) / a->gpus_per_task);
    return tasks;
}

static struct room room_of(const struct need *n, const struct dt_node_class *k, const struct dt_cluster *p)
{
    const struct dt_request *a = n->ask;
    const struct room none = {0};
    struct room r = {.gpus = node_gpus(k, a->gpu_type)};
    bool per_gpu = n->memory == DT_MEMORY_GPU && n->mem_mib;
    if (!dt_features_allow(k->features, a->constraint) || a->tmp_mib > k->tmp_mib || !has_gres(k, a->gres))
        return none;
    if (a->gpus_per_node > r.gpus || (a->gpus && !r.gpus) || a->gpus_per_socket > r.gpus ||
        (per_gpu && n->mem_mib * most(a->gpus_per_node, 1) > k->mem_mib))
        return none;
    r.cpus = cpus_with_memory(n, k, p, open_cpus(n, k, p));
    size_t one = a->overcommit ? 1 : n->cpus;
    size_t here = a->overcommit ? 1
                  : a->tasks_per_node ? least(a->tasks_per_node, n->tasks)
                  : a->nodes_max == 1 ? n->tasks
                                      : 1;
    if (r.cpus < most(n->node_cpus, here * one))
        return none;
    r.tasks = a->overcommit ? ANY : r.cpus / n->cpus;
    r.tasks = least(r.tasks, tasks_by_gpus(n, k, r.gpus));
    if (a->tasks_per_node)
        r.tasks = least(r.tasks, a->tasks_per_node);
    return r.tasks < here ? none : r;
}

/* ---- which nodes it gets ---- */

/* How many nodes of each class are free, and how many a job takes. */
struct pool {
    const struct dt_cluster *p;
    size_t *order; /* the classes, those of little weight first */
    size_t *free, *taken;
};

static int by_weight(const void *a, const void *b, void *arg)
{
    const struct dt_cluster *p = arg;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    size_t x = p->classes[i].weight, y = p->classes[j].weight;
    return x != y ? (x < y ? -1 : 1) : (i < j ? 1 : -1); /* of equals the smaller nodes: they lie last */
}

static struct pool pool_of(const struct dt_cluster *p)
{
    struct pool pool = {.p = p};
    pool.order = dt_xcalloc(p->n, sizeof(size_t));
    pool.free = dt_xcalloc(p->n, sizeof(size_t));
    pool.taken = dt_xcalloc(p->n, sizeof(size_t));
    for (size_t i = 0; i < p->n; i++) {
        pool.order[i] = i;
        pool.free[i] = p->classes[i].count;
    }
    qsort_r(pool.order, p->n, sizeof(size_t), by_weight, (void *)p);
    return pool;
}

static void pool_free(struct pool *pool)
{
    free(pool->order);
    free(pool->free);
    free(pool->taken);
}

/* What a job still lacks while nodes are picked for it. */
struct lack {
    size_t nodes, tasks, gpus, left; /* left: so many nodes more at most */
};

static bool met(const struct lack *l)
{
    return !l->nodes && !l->tasks && !l->gpus;
}

static void take(struct pool *pool, size_t class, size_t n, const struct room *r, struct lack *l)
{
    pool->taken[class] += n;
    l->left -= n;
    l->nodes -= least(l->nodes, n);
    l->tasks -= r->tasks == ANY ? l->tasks : least(l->tasks, n * r->tasks);
    l->gpus -= least(l->gpus, n * r->gpus);
}

/* The class of the one node that is enough, and the least of those of the least weight; -1: there is none. */
static int one_node(const struct pool *pool, const struct room *rooms, const struct lack *l, size_t floor)
{
    int found = -1;
    for (size_t k = 0; k < pool->p->n; k++) {
        size_t i = pool->order[k];
        const struct room *r = &rooms[i];
        bool enough = pool->free[i] > pool->taken[i] && r->tasks >= most(l->tasks, 1) && r->gpus >= l->gpus &&
                      r->cpus > floor;
        if (enough && found >= 0 && pool->p->classes[i].weight > pool->p->classes[found].weight)
            break;
        if (enough && (found < 0 || r->cpus < rooms[found].cpus))
            found = (int)i;
    }
    return found;
}

/* Takes nodes of at least more than `floor` CPUs, of little weight first, as Slurm does; true where they suffice. */
static bool pick(struct pool *pool, const struct need *n, const struct room *rooms, size_t floor)
{
    struct lack l = {n->min_nodes, n->tasks, n->ask->gpus, n->max_nodes};
    memset(pool->taken, 0, pool->p->n * sizeof(size_t));
    if (l.nodes <= 1) {
        int one = one_node(pool, rooms, &l, floor);
        if (one >= 0) {
            take(pool, (size_t)one, 1, &rooms[one], &l);
            return true;
        }
    }
    for (size_t k = 0; k < pool->p->n && !met(&l); k++) {
        size_t i = pool->order[k];
        const struct room *r = &rooms[i];
        if (!r->tasks || r->cpus <= floor)
            continue;
        size_t want = l.nodes;
        want = most(want, r->tasks == ANY ? l.tasks > 0 : parts(l.tasks, r->tasks));
        want = most(want, r->gpus ? parts(l.gpus, r->gpus) : 0);
        take(pool, i, least(want, least(pool->free[i], l.left)), r, &l);
    }
    return met(&l);
}

/* Where the nodes of little weight do not suffice within the limit of nodes, Slurm leaves the smallest out, one size after
 * the other. */
static bool place(struct pool *pool, const struct need *n)
{
    struct room *rooms = dt_xcalloc(pool->p->n, sizeof(*rooms));
    bool ok = false, more = true;
    for (size_t i = 0; i < pool->p->n; i++)
        rooms[i] = room_of(n, &pool->p->classes[i], pool->p);
    for (size_t floor = 0, next; more && !ok; floor = next) {
        ok = pick(pool, n, rooms, floor);
        next = ANY;
        for (size_t i = 0; i < pool->p->n; i++)
            if (rooms[i].cpus > floor)
                next = least(next, rooms[i].cpus);
        more = next != ANY;
    }
    free(rooms);
    return ok;
}

/* ---- what Slurm would give it, for the limits ---- */

enum { CPUS, MEMORY, NODES, GPUS, NCOUNTED };

struct given {
    uint64_t n[NCOUNTED];
};

/* On the nodes that were taken for it; no less than it gets, as near as can be told. */
static struct given given_on(const struct pool *pool, const struct need *n)
{
    const struct dt_request *a = n->ask;
    struct given g = {0};
    uint64_t all_mem = 0, all_cpus = 0, all_gpus = 0;
    size_t unit = 1;
    for (size_t i = 0; i < pool->p->n; i++) {
        const struct dt_node_class *k = &pool->p->classes[i];
        g.n[NODES] += pool->taken[i];
        all_cpus += pool->taken[i] * k->cpus;
        all_gpus += pool->taken[i] * k->gpus;
        all_mem += pool->taken[i] * k->mem_mib;
        if (pool->taken[i])
            unit = most(unit, unit_of(k, pool->p));
    }
    g.n[CPUS] = n->whole_nodes ? all_cpus : parts(most(n->min_cpus, g.n[NODES] * n->node_cpus), unit) * unit;
    g.n[GPUS] = n->whole_nodes ? all_gpus : most(n->tasks * a->gpus_per_task, a->gpus);
    if (!n->whole_nodes)
        g.n[GPUS] = most(g.n[GPUS], g.n[NODES] * most(a->gpus_per_node, a->gpus_per_socket));
    if (n->memory == DT_MEMORY_NODE)
        g.n[MEMORY] = n->mem_mib ? n->mem_mib * g.n[NODES] : all_mem;
    else
        g.n[MEMORY] = n->mem_mib * g.n[n->memory == DT_MEMORY_GPU ? GPUS : CPUS];
    return g;
}

static const char *const counted[NCOUNTED] = {"cpu", "mem", "node", "gres/gpu"};

static const char *over_job[NCOUNTED] = {"limits: more CPUs than a job of yours may have",
                                         "limits: more memory than a job of yours may have",
                                         "limits: more nodes than a job of yours may have",
                                         "limits: more GPUs than a job of yours may have"};
static const char *over_all[NCOUNTED] = {
    "limits: more CPUs than your jobs may have at a time, the tuning job among them",
    "limits: more memory than your jobs may have at a time, the tuning job among them",
    "limits: more nodes than your jobs may have at a time, the tuning job among them",
    "limits: more GPUs than your jobs may have at a time, the tuning job among them"};

static const char *amounts_why_not(const struct dt_limits *l, const struct given *g, const struct given *all)
{
    for (int i = 0; i < NCOUNTED; i++) {
        uint64_t together = least(dt_amounts_get(&l->group, counted[i], DT_NO_LIMIT),
                                  dt_amounts_get(&l->per_user, counted[i], DT_NO_LIMIT));
        if (g->n[i] > dt_amounts_get(&l->per_job, counted[i], DT_NO_LIMIT))
            return over_job[i];
        if (all->n[i] > together)
            return over_all[i];
    }
    return NULL;
}

/* Whether a limit of the job as a whole forbids its components; `all`: with what the tuning job has. */
static const char *limit_why_not(const struct dt_limits *l, const struct need *needs, const struct given *given,
                                 size_t n, const struct given *all, size_t others)
{
    const char *why = NULL;
    uint64_t jobs = n + others;
    for (size_t i = 0; i < n && !why; i++) {
        why = amounts_why_not(l, &given[i], all);
        if (needs[i].ask->time > l->max_time)
            why = "limits: a longer --time than a job of yours may have";
        if (needs[i].node_cpus > dt_amounts_get(&l->per_node, "cpu", DT_NO_LIMIT))
            why = "limits: more CPUs of a node than a job of yours may have";
    }
    if (jobs > l->jobs || jobs > l->group_jobs)
        why = "limits: more jobs at a time than you may run, the tuning job among them";
    if (jobs > l->submitted || jobs > l->group_submitted)
        why = "limits: more jobs than you may submit, the tuning job among them";
    return why;
}

/* Each component on nodes of its own. `given`: what each gets. */
static bool fits(const struct dt_cluster *p, const struct need *needs, size_t n, struct given *given)
{
    struct pool pool = pool_of(p);
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        ok = place(&pool, &needs[i]);
        given[i] = given_on(&pool, &needs[i]);
        for (size_t k = 0; k < p->n && ok; k++)
            pool.free[k] -= pool.taken[k];
    }
    pool_free(&pool);
    return ok;
}

static const char *limits_why_not(const struct dt_cluster *c, const struct need *needs, const struct given *given,
                                  size_t n)
{
    struct given all = {{c->tuner_jobs, c->tuner_jobs * DT_TUNER_MEM_MIB, c->tuner_jobs, 0}};
    const char *why = NULL;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < NCOUNTED; k++)
            all.n[k] += given[i].n[k];
    for (size_t i = 0; i < c->nbinding && !why; i++)
        why = limit_why_not(&c->binding[i], needs, given, n, &all, c->tuner_jobs);
    return why;
}

/* ---- what forbids it whatever the nodes ---- */

static const char *partition_why_not(const struct need *n, const struct dt_cluster *p)
{
    const struct dt_partition_limits *l = &p->limits;
    const struct dt_request *a = n->ask;
    size_t nodes = dt_cluster_nodes(p);
    if (l->reserved)
        return "partition: it is open to jobs in a reservation only";
    if (a->time > l->max_time)
        return "partition: it allows less than the job's --time";
    if (l->max_nodes && most(n->min_nodes, a->nodes_max) > l->max_nodes)
        return "partition: it allows fewer nodes to a job";
    if (a->nodes_max && a->nodes_max < l->min_nodes)
        return "partition: it wants more nodes of a job";
    if (n->min_nodes > most(nodes, l->total_nodes))
        return dt_no_room;
    if (l->max_mem_per_node && n->memory == DT_MEMORY_NODE && n->mem_mib > l->max_mem_per_node)
        return "partition: it allows less memory a node";
    if (n->min_nodes > n->max_nodes)
        return "fewer nodes than its tasks a node need";
    return NULL;
}

static const char *licenses_why_not(const struct dt_request *a, const struct dt_cluster *c)
{
    struct dt_strv all = DT_STRV_INIT;
    const char *why = NULL;
    if (!a->licenses || !c->licenses.n)
        return NULL;
    dt_strv_split(&all, a->licenses, ",;");
    for (size_t i = 0; i < all.n && !why; i++) {
        char *colon = strrchr(all.v[i], ':');
        uint64_t n = colon ? strtoull(colon + 1, NULL, 10) : 1;
        if (colon)
            *colon = '\0';
        if (n > dt_amounts_get(&c->licenses, all.v[i], 0))
            why = "more licences than there are";
    }
    dt_strv_free(&all);
    return why;
}

const char *dt_feasible_why_not(const struct dt_cluster *c, const struct dt_cluster *partition, const struct dt_request *requests,
                                size_t n)
{
    const struct dt_cluster *p = partition ? partition : c;
    struct need *needs = dt_xcalloc(n, sizeof(*needs));
    struct given *given = dt_xcalloc(n, sizeof(*given));
    const char *why = n > 1 && !c->backfill ? "heterogeneous jobs need the backfill scheduler" : NULL;
    for (size_t i = 0; i < n && !why; i++) {
        needs[i] = need_of(&requests[i], c, p);
        why = partition_why_not(&needs[i], p);
        why = why ? why : licenses_why_not(&requests[i], c);
    }
    for (size_t i = 0; i < n && !why; i++)
        if (!fits(p, &needs[i], 1, given))
            why = dt_no_room;
    if (!why && !fits(p, needs, n, given))
        why = dt_not_apart;
    why = why ? why : limits_why_not(c, needs, given, n);
    free(needs);
    free(given);
    return why;
}
