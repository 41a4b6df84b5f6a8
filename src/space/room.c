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

size_t dt_node_gpus(const struct dt_node_class *k, const char *type)
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

size_t dt_of_core(const struct dt_needed *n, const struct dt_node_class *k)
{
    const struct dt_request *r = n->request;
    size_t cpus = dt_most(k->threads, 1);
    if (r->threads)
        cpus = dt_least(cpus, r->threads);
    return r->tasks_per_core ? dt_least(cpus, r->tasks_per_core * n->cpus) : cpus;
}

/* CPUs of the node that Slurm lets such a job use, before memory. */
static size_t open_cpus(const struct dt_needed *n, const struct dt_node_class *k,
                        const struct dt_cluster *p)
{
    const struct dt_request *a = n->request;
    size_t threads = dt_most(k->threads, 1), cores = k->cpus / threads, cpus = k->cpus;
    size_t cap = p->limits.max_cpus_per_node, of_core = dt_of_core(n, k);
    if (a->sockets > k->sockets && k->sockets)
        return 0;
    if ((a->cores > k->cores && k->cores) || a->threads > threads)
        return 0;
    cpus = cores * of_core;
    if (a->tasks_per_socket && k->sockets && k->cores)
        cpus = dt_least(cpus,
                        k->sockets * dt_least(k->cores * of_core, a->tasks_per_socket * n->cpus));
    if (cap && cpus > cap)
        cpus = n->whole_nodes ? 0 : cap;
    return cpus;
}

size_t dt_unit(const struct dt_node_class *k, const struct dt_cluster *p)
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
    size_t unit = dt_unit(k, p), threads = 1;
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

/* The GPUs that the node's memory is enough for: they count for the job, though not for the tasks
 * of this node. */
static size_t gpus_with_memory(const struct dt_needed *n, const struct dt_node_class *k,
                               const struct dt_cluster *p, size_t gpus)
{
    bool given_out =
        n->memory == DT_MEMORY_GPU && n->mem_mib && (!p->scheduling.known || p->scheduling.memory);
    return given_out ? dt_least(gpus, (size_t)(k->mem_mib / n->mem_mib)) : gpus;
}

/* The tasks that a node must hold for it to be of use: as many as a socket or a core may have, too,
 * though fewer will do once it is taken. */
static size_t tasks_at_least(const struct dt_needed *n)
{
    const struct dt_request *r = n->request;
    size_t part = r->tasks_per_socket ? r->tasks_per_socket : r->tasks_per_core;
    if (r->tasks_per_node)
        return r->tasks_per_node;
    return dt_most(part, n->asked_nodes == 1 ? n->tasks : 1);
}

static bool has_gpus(const struct dt_needed *n, const struct dt_node_class *k, size_t gpus)
{
    const struct dt_request *r = n->request;
    size_t used = dt_most(r->gpus_per_node, r->gpus_per_task * r->tasks_per_node);
    used = n->whole_nodes ? gpus : dt_most(used, 1);
    if (r->gpus_per_node > gpus || r->gpus_per_task > gpus || r->gpus_per_socket > gpus ||
        (r->gpus && !gpus))
        return false;
    return n->memory != DT_MEMORY_GPU || n->mem_mib * used <= k->mem_mib;
}

struct dt_room dt_room_of(const struct dt_needed *n, const struct dt_node_class *k,
                          const struct dt_cluster *p)
{
    const struct dt_request *r = n->request;
    const struct dt_room none = {0};
    struct dt_room room = {.gpus = dt_node_gpus(k, r->gpu_type)};
    size_t here = tasks_at_least(n);
    bool gpus = r->gpus || r->gpus_per_node || r->gpus_per_task;
    if (!dt_features_allow(k->features, r->constraint) || r->tmp_mib > k->tmp_mib ||
        !has_gres(k, r->gres) || !has_gpus(n, k, room.gpus))
        return none;
    room.cpus = room.counted = cpus_with_memory(n, k, p, open_cpus(n, k, p));
    room.tasks = room.cpus / n->cpus;
    if (r->gpus_per_task)
        room.tasks = dt_least(room.tasks, room.gpus / r->gpus_per_task);
    room.gpus = gpus_with_memory(n, k, p, room.gpus);
    if (r->gpus && n->cpus_per_gpu) /* a GPU counts with its CPUs only */
        room.gpus = dt_least(room.gpus, room.cpus / n->cpus_per_gpu);
    if (room.cpus < n->node_cpus || (r->gpus && !room.gpus))
        return none;
    /* GPUs are counted with all the tasks of one node, also where their CPUs are not */
    if (room.tasks < here && (!r->overcommit || (gpus && here > 1)))
        return none;
    if (r->tasks_per_node)
        room.tasks = dt_least(room.tasks, r->tasks_per_node);
    if ((gpus || r->gpus_per_socket || r->gres) && !n->cpus_per_gpu && !r->overcommit)
        room.counted = (room.tasks - room.tasks % here) * n->cpus;
    if (r->cpus_per_gpu && (r->gpus || r->gpus_per_task))
        room.counted = dt_least(room.counted, room.gpus * r->cpus_per_gpu);
    return room;
}
