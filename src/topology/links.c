#include "topology/topology.h"

#include <stdlib.h>

const char *const dt_link_names[] = {"far", "numa", "bridge", "nvlink"};

size_t dt_topology_pus(const struct dt_topology *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->ncores; i++)
        n += (size_t)hwloc_bitmap_weight(t->cores[i].pus);
    return n;
}

uint64_t dt_topology_mem(const struct dt_topology *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < t->nnumas; i++)
        sum += t->numas[i].mem_mib;
    return sum;
}

size_t dt_topology_cores(const struct dt_topology *t, size_t numa)
{
    size_t n = 0;
    for (size_t i = 0; i < t->ncores; i++)
        n += numa == DT_NOWHERE || t->cores[i].numa == numa;
    return n;
}

void dt_topology_nearest(const struct dt_topology *t, size_t numa, size_t *order)
{
    for (size_t i = 0; i < t->nnumas; i++) {
        size_t at = i;
        for (; numa != DT_NOWHERE && at > 0; at--) {
            if (t->far[numa * t->nnumas + order[at - 1]] <= t->far[numa * t->nnumas + i])
                break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
}

hwloc_bitmap_t dt_topology_near_mem(const struct dt_topology *t, hwloc_const_bitmap_t pus)
{
    hwloc_bitmap_t near = hwloc_bitmap_alloc();
    bool all = true;
    for (size_t i = 0; i < t->ncores; i++)
        if (hwloc_bitmap_intersects(t->cores[i].pus, pus))
            hwloc_bitmap_set(near, t->numas[t->cores[i].numa].id);
    for (size_t i = 0; i < t->nnumas; i++)
        all &= !t->numas[i].mem_mib || hwloc_bitmap_isset(near, t->numas[i].id);
    if (!all && !hwloc_bitmap_iszero(near))
        return near;
    hwloc_bitmap_free(near);
    return NULL;
}

const struct dt_device *dt_topology_nic(const struct dt_topology *t)
{
    for (size_t i = 0; i < t->nnics; i++)
        if (t->nics[i].fabric)
            return &t->nics[i];
    return t->nnics ? &t->nics[0] : NULL;
}

enum dt_link dt_topology_link(const struct dt_topology *t, size_t a, size_t b)
{
    if (t->nvlink[a * t->ngpus + b])
        return DT_LINK_NVLINK;
    if (t->bridge[a * t->ngpus + b])
        return DT_LINK_BRIDGE;
    return t->gpus[a].numa == t->gpus[b].numa ? DT_LINK_NUMA : DT_LINK_FAR;
}

static bool has_nvlink(const struct dt_topology *t, size_t gpu)
{
    for (size_t i = 0; i < t->ngpus; i++)
        if (t->nvlink[gpu * t->ngpus + i])
            return true;
    return false;
}

/* Gives `to`'s group to all that `from`'s group has. */
static void merge(size_t *group, size_t n, size_t from, size_t to)
{
    for (size_t i = 0; i < n; i++)
        if (group[i] == from)
            group[i] = to;
}

size_t dt_topology_groups(const struct dt_topology *t, size_t *group)
{
    size_t n = t->ngpus, count = 0;
    for (size_t i = 0; i < n; i++)
        group[i] = n + i; /* not yet one of those that are counted */
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            bool together = has_nvlink(t, i) || has_nvlink(t, j)
                                ? t->nvlink[i * n + j] > 0
                                : t->gpus[i].numa == t->gpus[j].numa;
            if (together)
                merge(group, n, group[i], group[j]);
        }
    for (size_t i = 0; i < n; i++)
        if (group[i] >= n)
            merge(group, n, group[i], count++);
    return count;
}
