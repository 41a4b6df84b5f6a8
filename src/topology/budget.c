#include "topology/topology.h"

#include <math.h>
#include <stdlib.h>

/* Hardware threads of the core that has the fewest. */
static size_t least_threads(const struct dt_topology *t)
{
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < t->ncores; i++) {
        size_t n = (size_t)hwloc_bitmap_weight(t->cores[i].pus);
        least = n < least ? n : least;
    }
    return least;
}

static void add(struct dt_budget *list, size_t *n, struct dt_budget b)
{
    bool known = !b.workers;
    for (size_t i = 0; i < *n; i++)
        known |= list[i].workers == b.workers && list[i].gpus == b.gpus;
    if (!known)
        list[(*n)++] = b;
}

/* ---- with GPUs ---- */

static size_t gpus_at(const struct dt_topology *t, size_t numa)
{
    size_t n = 0;
    for (size_t i = 0; i < t->ngpus; i++)
        n += t->gpus[i].numa == numa;
    return n;
}

/* A GPU's part of the cores, or of the memory, of its NUMA node; of the whole where that has no
 * cores. */
static void add_part(const struct dt_topology *t, size_t gpu, double *cores, double *mem)
{
    size_t numa = t->gpus[gpu].numa;
    bool whole = numa == DT_NOWHERE || !dt_topology_cores(t, numa);
    double sharers = (double)(whole ? t->ngpus : gpus_at(t, numa));
    *cores += (double)dt_topology_cores(t, whole ? DT_NOWHERE : numa) / sharers;
    *mem += (double)(whole ? dt_topology_mem(t) : t->numas[numa].mem_mib) / sharers;
}

static struct dt_budget gpu_budget(const struct dt_topology *t, const size_t *group, size_t ngroups,
                                   size_t gpus)
{
    struct dt_budget b = {.gpus = gpus};
    double least_cores = INFINITY, least_mem = INFINITY;
    for (size_t g = 0; g < ngroups; g++) {
        double cores = 0, mem = 0, size = 0;
        for (size_t i = 0; i < t->ngpus; i++) {
            if (group[i] != g)
                continue;
            add_part(t, i, &cores, &mem);
            size++;
        }
        b.workers += (size_t)size / gpus;
        least_cores = fmin(least_cores, cores * (double)gpus / size);
        least_mem = fmin(least_mem, mem * (double)gpus / size);
    }
    size_t cores = (size_t)fmax(1, floor(least_cores + 1e-9)),
           all = dt_topology_cores(t, DT_NOWHERE);
    b.cpus = cores * least_threads(t);
    b.workers = b.workers * cores > all ? all / cores : b.workers;
    b.mem_mib = (uint64_t)least_mem;
    return b;
}

/* The size of all groups where it is one above 1; else 0. */
static size_t common_size(const size_t *group, size_t ngroups, size_t ngpus)
{
    size_t common = 0;
    for (size_t g = 0; g < ngroups; g++) {
        size_t size = 0;
        for (size_t i = 0; i < ngpus; i++)
            size += group[i] == g;
        if (g && size != common)
            return 0;
        common = size;
    }
    return common > 1 ? common : 0;
}

static size_t with_gpus(const struct dt_topology *t, struct dt_budget *list)
{
    size_t n = 0, *group = dt_xcalloc(t->ngpus, sizeof(*group));
    size_t ngroups = dt_topology_groups(t, group), size = common_size(group, ngroups, t->ngpus);
    add(list, &n, gpu_budget(t, group, ngroups, 1));
    if (size)
        add(list, &n, gpu_budget(t, group, ngroups, size));
    free(group);
    return n;
}

/* ---- without ---- */

/* A worker for each package or NUMA node that has cores, all as small as the smallest. */
static struct dt_budget part_budget(const struct dt_topology *t, size_t nparts, bool numa)
{
    struct dt_budget b = {0};
    size_t least = SIZE_MAX;
    for (size_t p = 0; p < nparts; p++) {
        size_t pus = 0;
        for (size_t i = 0; i < t->ncores; i++)
            if ((numa ? t->cores[i].numa : t->cores[i].package) == p)
                pus += (size_t)hwloc_bitmap_weight(t->cores[i].pus);
        b.workers += pus > 0;
        least = pus && pus < least ? pus : least;
    }
    b.cpus = least;
    b.mem_mib = b.workers ? dt_topology_mem(t) / b.workers : 0;
    return b;
}

static int by_workers(const void *a, const void *b)
{
    size_t x = ((const struct dt_budget *)a)->workers, y = ((const struct dt_budget *)b)->workers;
    return x < y ? 1 : -(x > y);
}

size_t dt_topology_budgets(const struct dt_topology *t, struct dt_budget budgets[DT_BUDGETS])
{
    size_t n = 0;
    if (t->ngpus)
        return with_gpus(t, budgets);
    add(budgets, &n, part_budget(t, t->nnumas, true));
    add(budgets, &n, part_budget(t, t->npackages, false));
    add(budgets, &n,
        (struct dt_budget){
            .cpus = dt_topology_pus(t), .workers = 1, .mem_mib = dt_topology_mem(t)});
    qsort(budgets, n, sizeof(*budgets), by_workers);
    return n;
}
