#include "space/feasible_private.h"

#include <stdlib.h>

/* A job gets whole tasks on each node for as long as one fits somewhere. Then Slurm deals out the
 * rest of its tasks to nodes that are full: in the order of its table each gets one more, with the
 * CPUs that are left there, too few for it. Only CPUs of the same core, which are given out
 * together, may make that good; else the job has fewer CPUs than its tasks ask for, and srun
 * refuses to start them. */

static size_t nodes_of(const struct dt_part *parts, size_t n)
{
    size_t nodes = 0;
    for (size_t i = 0; i < n; i++)
        nodes += parts[i].nodes;
    return nodes;
}

static size_t whole_tasks(const struct dt_needed *n, const struct dt_part *p)
{
    return dt_most(dt_least(p->cpus / n->cpus, p->tasks), 1);
}

/* As many tasks as Slurm deals out: from CPUs, which may be more than the job's tasks need. */
static size_t dealt_tasks(const struct dt_needed *n, size_t nodes)
{
    size_t of_node = n->request->tasks_per_node, gpus = n->request->gpus * n->cpus_per_gpu;
    if (of_node)
        return of_node * nodes;
    return dt_most(dt_most(n->min_cpus, gpus), nodes * n->node_cpus) / n->cpus;
}

static size_t in_units(const struct dt_needed *n, const struct dt_node_class *k,
                       const struct dt_cluster *p, size_t cpus)
{
    size_t unit = dt_unit(k, p);
    if (p->scheduling.cores) /* where a core gives the job fewer CPUs than it has */
        cpus = dt_parts(cpus, dt_of_core(n, k)) * dt_most(k->threads, 1);
    return dt_parts(cpus, unit) * unit;
}

static int in_table(const void *a, const void *b, void *arg)
{
    const struct dt_part *parts = arg;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    if (parts[i].place != parts[j].place)
        return parts[i].place < parts[j].place ? -1 : 1;
    return i < j ? -1 : 1;
}

/* The CPUs of a job that gets a task more than fits on some nodes. */
static size_t dealt_cpus(const struct dt_needed *n, const struct dt_cluster *c,
                         const struct dt_part *parts, size_t nparts, size_t extra)
{
    size_t *order = dt_xcalloc(nparts, sizeof(*order)), cpus = 0;
    for (size_t i = 0; i < nparts; i++)
        order[i] = i;
    qsort_r(order, nparts, sizeof(*order), in_table, (void *)parts);
    for (size_t i = 0; i < nparts; i++) {
        const struct dt_part *p = &parts[order[i]];
        const struct dt_node_class *k = &c->classes[p->class];
        size_t turn = dt_most(dt_of_core(n, k) / n->cpus, 1);
        size_t full = dt_least(p->nodes, dt_parts(extra, turn));
        extra -= dt_least(extra, full * turn);
        cpus += full * in_units(n, k, c, p->cpus);
        cpus += (p->nodes - full) * in_units(n, k, c, whole_tasks(n, p) * n->cpus);
    }
    free(order);
    return cpus;
}

/* No less than it gets, as near as can be told. */
static size_t cpus_on(const struct dt_needed *n, const struct dt_cluster *c,
                      const struct dt_part *parts, size_t nparts)
{
    size_t unit = 1, whole = 0, nodes = nodes_of(parts, nparts), dealt = dealt_tasks(n, nodes);
    for (size_t i = 0; i < nparts; i++) {
        unit = dt_most(unit, dt_unit(&c->classes[parts[i].class], c));
        whole += parts[i].nodes * whole_tasks(n, &parts[i]);
    }
    if (whole < dealt && !n->request->overcommit)
        return dealt_cpus(n, c, parts, nparts, dealt - whole);
    return dt_parts(dt_most(n->min_cpus, nodes * n->node_cpus), unit) * unit;
}

struct dt_got dt_got_on(const struct dt_needed *n, const struct dt_cluster *c,
                        const struct dt_part *parts, size_t nparts)
{
    const struct dt_request *r = n->request;
    struct dt_got g = {0};
    uint64_t all_mem = 0, all_cpus = 0, all_gpus = 0;
    for (size_t i = 0; i < nparts; i++) {
        const struct dt_node_class *k = &c->classes[parts[i].class];
        all_cpus += parts[i].nodes * k->cpus;
        all_gpus += parts[i].nodes * k->gpus;
        all_mem += parts[i].nodes * k->mem_mib;
    }
    uint64_t nodes = g.n[DT_GET_NODES] = nodes_of(parts, nparts);
    g.n[DT_GET_CPUS] = n->whole_nodes ? all_cpus : cpus_on(n, c, parts, nparts);
    g.n[DT_GET_GPUS] = n->whole_nodes ? all_gpus : dt_most(n->tasks * r->gpus_per_task, r->gpus);
    if (!n->whole_nodes)
        g.n[DT_GET_GPUS] =
            dt_most(g.n[DT_GET_GPUS], nodes * dt_most(r->gpus_per_node, r->gpus_per_socket));
    if (n->memory == DT_MEMORY_NODE)
        g.n[DT_GET_MEMORY] = n->mem_mib ? n->mem_mib * nodes : all_mem;
    else
        g.n[DT_GET_MEMORY] =
            n->mem_mib * g.n[n->memory == DT_MEMORY_GPU ? DT_GET_GPUS : DT_GET_CPUS];
    g.torn = !r->overcommit && g.n[DT_GET_CPUS] < n->tasks * dt_most(r->cpus, 1);
    return g;
}
