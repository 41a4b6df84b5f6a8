#include "topology/topology.h"

#include <stdlib.h>

char *dt_pus_list(hwloc_const_bitmap_t pus)
{
    char *s;
    if (hwloc_bitmap_list_asprintf(&s, pus) < 0)
        return dt_xstrdup("");
    char *text = dt_xstrdup(s);
    free(s);
    return text;
}

static char *pus_mask(hwloc_const_bitmap_t pus)
{
    char *s;
    if (hwloc_bitmap_taskset_asprintf(&s, pus) < 0)
        return dt_xstrdup("0x0");
    char *text = dt_xstrdup(s);
    free(s);
    return text;
}

/* All PUs of a NUMA node's cores. */
static char *pus_of(const struct dt_topology *t, size_t numa)
{
    hwloc_bitmap_t pus = hwloc_bitmap_alloc();
    for (size_t i = 0; i < t->ncores; i++)
        if (t->cores[i].numa == numa)
            hwloc_bitmap_or(pus, pus, t->cores[i].pus);
    char *text = dt_pus_list(pus);
    hwloc_bitmap_free(pus);
    return text;
}

static const char *s(size_t n)
{
    return n == 1 ? "" : "s";
}

static void put_devices(struct dt_buf *b, const struct dt_topology *t, size_t numa)
{
    for (size_t i = 0; i < t->ngpus; i++)
        if (t->gpus[i].numa == numa)
            dt_buf_addf(b, "    GPU %zu: %s (%s)\n", i, t->gpus[i].name, t->gpus[i].bus);
    for (size_t i = 0; i < t->nnics; i++)
        if (t->nics[i].numa == numa)
            dt_buf_addf(b, "    network: %s%s\n", t->nics[i].name,
                        t->nics[i].fabric ? " (fabric)" : "");
}

static void put_numa(struct dt_buf *b, const struct dt_topology *t, size_t i)
{
    const struct dt_numa *numa = &t->numas[i];
    size_t cores = dt_topology_cores(t, i);
    char *pus = pus_of(t, i);
    dt_buf_addf(b, "  NUMA node %u, package %zu:", numa->id, numa->package);
    if (numa->mem_mib)
        dt_buf_addf(b, " %llu MiB,", (unsigned long long)numa->mem_mib);
    if (numa->cache_mib)
        dt_buf_addf(b, " behind a cache of %llu MiB,", (unsigned long long)numa->cache_mib);
    dt_buf_addf(b, " %zu core%s%s%s\n", cores, s(cores), cores ? ": CPUs " : "", pus);
    put_devices(b, t, i);
    free(pus);
}

static void put_groups(struct dt_buf *b, const struct dt_topology *t)
{
    size_t *group = dt_xcalloc(t->ngpus, sizeof(*group)), n = dt_topology_groups(t, group);
    dt_buf_add(b, "  GPUs that belong together:");
    for (size_t g = 0; g < n; g++) {
        const char *sep = g ? " | " : " ";
        for (size_t i = 0; i < t->ngpus; i++) {
            if (group[i] != g)
                continue;
            dt_buf_addf(b, "%s%zu", sep, i);
            sep = ",";
        }
    }
    dt_buf_add(b, "\n");
    free(group);
}

static void put_budgets(struct dt_buf *b, const struct dt_topology *t)
{
    struct dt_budget budgets[DT_BUDGETS];
    size_t n = dt_topology_budgets(t, budgets);
    for (size_t i = 0; i < n; i++) {
        const struct dt_budget *x = &budgets[i];
        dt_buf_addf(b, "  %zu worker%s:", x->workers, s(x->workers));
        if (x->gpus)
            dt_buf_addf(b, " %zu GPU%s,", x->gpus, s(x->gpus));
        dt_buf_addf(b, " %zu CPU%s", x->cpus, s(x->cpus));
        if (x->mem_mib)
            dt_buf_addf(b, ", %llu MiB", (unsigned long long)x->mem_mib);
        dt_buf_addf(b, "%s\n", x->workers > 1 ? " each" : "");
    }
}

char *dt_topology_text(const struct dt_topology *t)
{
    struct dt_buf b = DT_BUF_INIT;
    size_t pus = dt_topology_pus(t);
    dt_buf_addf(&b, "%zu package%s, %zu NUMA node%s, %zu core%s, %zu CPU%s, %zu GPU%s\n",
                t->npackages, s(t->npackages), t->nnumas, s(t->nnumas), t->ncores, s(t->ncores),
                pus, s(pus), t->ngpus, s(t->ngpus));
    for (size_t i = 0; i < t->nnumas; i++)
        put_numa(&b, t, i);
    bool nowhere = false;
    for (size_t i = 0; i < t->ngpus; i++)
        nowhere |= t->gpus[i].numa == DT_NOWHERE;
    for (size_t i = 0; i < t->nnics; i++)
        nowhere |= t->nics[i].numa == DT_NOWHERE;
    if (nowhere)
        dt_buf_add(&b, "  near no NUMA node in particular:\n");
    put_devices(&b, t, DT_NOWHERE);
    if (t->ngpus > 1)
        put_groups(&b, t);
    put_budgets(&b, t);
    return dt_buf_take(&b);
}

/* ---- JSON ---- */

static void set(struct json_object *o, const char *key, uint64_t x)
{
    json_object_object_add(o, key, json_object_new_int64((int64_t)x));
}

static void take_text(struct json_object *o, const char *key, char *text)
{
    json_object_object_add(o, key, json_object_new_string(text));
    free(text);
}

static struct json_object *devices(const struct dt_topology *t, const struct dt_device *v, size_t n,
                                   bool gpus)
{
    struct json_object *list = json_object_new_array();
    size_t *group = dt_xcalloc(t->ngpus, sizeof(*group));
    dt_topology_groups(t, group);
    for (size_t i = 0; i < n; i++) {
        struct json_object *o = json_object_new_object();
        json_object_object_add(o, "name", json_object_new_string(v[i].name));
        json_object_object_add(o, "bus", json_object_new_string(v[i].bus));
        if (v[i].numa == DT_NOWHERE)
            json_object_object_add(o, "numa", NULL);
        else
            set(o, "numa", t->numas[v[i].numa].id);
        if (gpus)
            set(o, "group", group[i]);
        else
            json_object_object_add(o, "fabric", json_object_new_boolean(v[i].fabric));
        json_object_array_add(list, o);
    }
    free(group);
    return list;
}

static struct json_object *links(const struct dt_topology *t)
{
    struct json_object *rows = json_object_new_array();
    for (size_t i = 0; i < t->ngpus; i++) {
        struct json_object *row = json_object_new_array();
        for (size_t j = 0; j < t->ngpus; j++)
            json_object_array_add(
                row,
                i == j ? NULL : json_object_new_string(dt_link_names[dt_topology_link(t, i, j)]));
        json_object_array_add(rows, row);
    }
    return rows;
}

static struct json_object *budgets(const struct dt_topology *t)
{
    struct json_object *list = json_object_new_array();
    struct dt_budget b[DT_BUDGETS];
    size_t n = dt_topology_budgets(t, b);
    for (size_t i = 0; i < n; i++) {
        struct json_object *o = json_object_new_object();
        set(o, "workers", b[i].workers);
        set(o, "gpus", b[i].gpus);
        set(o, "cpus", b[i].cpus);
        if (b[i].mem_mib)
            set(o, "mem", b[i].mem_mib);
        json_object_array_add(list, o);
    }
    return list;
}

struct json_object *dt_topology_to_json(const struct dt_topology *t)
{
    struct json_object *o = json_object_new_object(), *numas = json_object_new_array();
    set(o, "version", 1);
    set(o, "packages", t->npackages);
    set(o, "cores", t->ncores);
    set(o, "cpus", dt_topology_pus(t));
    for (size_t i = 0; i < t->nnumas; i++) {
        struct json_object *n = json_object_new_object();
        set(n, "id", t->numas[i].id);
        set(n, "package", t->numas[i].package);
        set(n, "mem", t->numas[i].mem_mib);
        if (t->numas[i].cache_mib)
            set(n, "cache", t->numas[i].cache_mib);
        set(n, "cores", dt_topology_cores(t, i));
        take_text(n, "cpus", pus_of(t, i));
        json_object_array_add(numas, n);
    }
    json_object_object_add(o, "numa", numas);
    json_object_object_add(o, "gpus", devices(t, t->gpus, t->ngpus, true));
    json_object_object_add(o, "links", links(t));
    json_object_object_add(o, "network", devices(t, t->nics, t->nnics, false));
    json_object_object_add(o, "workers", budgets(t));
    return o;
}

/* ---- seats ---- */

/* Of which nodes the seat has its memory first, "0,2"; NULL: of none in particular. Caller frees.
 */
static char *mem_of(const struct dt_topology *t, const struct dt_seat *s)
{
    hwloc_bitmap_t nodes = dt_topology_near_mem(t, s->pus);
    char *text = nodes ? dt_pus_list(nodes) : NULL;
    hwloc_bitmap_free(nodes);
    return text;
}

char *dt_seats_text(const struct dt_topology *t, const struct dt_seat *seats, size_t n)
{
    struct dt_buf b = DT_BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        char *list = dt_pus_list(seats[i].pus), *mask = pus_mask(seats[i].pus),
             *mem = mem_of(t, &seats[i]);
        dt_buf_addf(&b, "%s: CPUs %s (%s)", seats[i].role, list, mask);
        for (size_t j = 0; j < seats[i].gpus; j++)
            dt_buf_addf(&b, "%s%zu",
                        j                   ? ","
                        : seats[i].gpus > 1 ? ", GPUs "
                                            : ", GPU ",
                        seats[i].gpu[j]);
        if (mem)
            dt_buf_addf(&b, ", memory of NUMA node %s", mem);
        dt_buf_add(&b, "\n");
        free(mem);
        free(list);
        free(mask);
    }
    return dt_buf_take(&b);
}

struct json_object *dt_seats_to_json(const struct dt_topology *t, const struct dt_seat *seats,
                                     size_t n)
{
    struct json_object *list = json_object_new_array();
    for (size_t i = 0; i < n; i++) {
        struct json_object *o = json_object_new_object(), *gpus = json_object_new_array();
        json_object_object_add(o, "role", json_object_new_string(seats[i].role));
        take_text(o, "cpus", dt_pus_list(seats[i].pus));
        take_text(o, "mask", pus_mask(seats[i].pus));
        for (size_t j = 0; j < seats[i].gpus; j++)
            json_object_array_add(gpus, json_object_new_int64((int64_t)seats[i].gpu[j]));
        json_object_object_add(o, "gpus", gpus);
        char *mem = mem_of(t, &seats[i]);
        if (mem)
            take_text(o, "memory", mem);
        json_object_array_add(list, o);
    }
    return list;
}
