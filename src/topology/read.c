#include "topology/topology.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VENDOR_NVIDIA 0x10de
#define FAR 20 /* of another NUMA node, where the firmware says nothing */

/* ---- NUMA nodes and cores ---- */

static uint64_t mib(uint64_t bytes)
{
    return bytes / (1024 * 1024);
}

static void read_numas(struct dt_topology *t, hwloc_topology_t h)
{
    hwloc_obj_t obj = NULL;
    while ((obj = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_NUMANODE, obj))) {
        struct dt_numa numa = {.id = obj->os_index,
                               .mem_mib = mib(obj->attr->numanode.local_memory)};
        for (hwloc_obj_t p = obj->parent; p && p->type == HWLOC_OBJ_MEMCACHE; p = p->parent)
            numa.cache_mib += mib(p->attr->cache.size);
        t->numas = dt_xrealloc(t->numas, t->nnumas + 1, sizeof(*t->numas));
        t->numas[t->nnumas++] = numa;
    }
}

/* The smallest NUMA node that holds all of these PUs: of those with the same PUs (fast memory
 * beside slow) the first. */
static size_t numa_of(hwloc_topology_t h, hwloc_const_bitmap_t pus)
{
    size_t best = DT_NOWHERE, i = 0;
    int size = 0;
    hwloc_obj_t obj = NULL;
    if (hwloc_bitmap_iszero(pus))
        return DT_NOWHERE;
    for (; (obj = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_NUMANODE, obj)); i++) {
        int weight = hwloc_bitmap_weight(obj->complete_cpuset);
        if (!hwloc_bitmap_isincluded(pus, obj->complete_cpuset) ||
            (best != DT_NOWHERE && weight >= size))
            continue;
        best = i;
        size = weight;
    }
    return best;
}

static void add_core(struct dt_topology *t, hwloc_topology_t h, hwloc_obj_t obj)
{
    hwloc_bitmap_t pus = hwloc_bitmap_dup(obj->cpuset);
    hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(h, HWLOC_OBJ_PACKAGE, obj);
    hwloc_bitmap_and(pus, pus, hwloc_topology_get_allowed_cpuset(h));
    if (hwloc_bitmap_iszero(pus)) {
        hwloc_bitmap_free(pus);
        return;
    }
    size_t numa = numa_of(h, obj->cpuset);
    t->cores = dt_xrealloc(t->cores, t->ncores + 1, sizeof(*t->cores));
    t->cores[t->ncores++] =
        (struct dt_core){pus, numa == DT_NOWHERE ? 0 : numa, package ? package->logical_index : 0};
}

/* A machine that tells no cores has one for every PU. */
static void read_cores(struct dt_topology *t, hwloc_topology_t h)
{
    hwloc_obj_type_t type =
        hwloc_get_nbobjs_by_type(h, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    hwloc_obj_t obj = NULL;
    int packages = hwloc_get_nbobjs_by_type(h, HWLOC_OBJ_PACKAGE);
    t->npackages = packages > 0 ? (size_t)packages : 1;
    while ((obj = hwloc_get_next_obj_by_type(h, type, obj)))
        add_core(t, h, obj);
    for (size_t i = t->ncores; i-- > 0;)
        t->numas[t->cores[i].numa].package = t->cores[i].package;
}

/* ---- devices ---- */

static bool is_compute(hwloc_obj_t os)
{
    static const char *const names[] = {"cuda", "nvml", "rsmi", "ze", "opencl", "renderD"};
    if (os->attr->osdev.type != HWLOC_OBJ_OSDEV_GPU &&
        os->attr->osdev.type != HWLOC_OBJ_OSDEV_COPROC)
        return false;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (os->name && dt_starts_with(os->name, names[i]))
            return true;
    return false;
}

static bool is_gpu(hwloc_obj_t pci)
{
    unsigned class = pci->attr->pcidev.class_id;
    for (hwloc_obj_t os = pci->io_first_child; os; os = os->next_sibling)
        if (os->type == HWLOC_OBJ_OS_DEVICE && is_compute(os))
            return true;
    return class == 0x0302 || class == 0x0380 ||
           (class == 0x0300 && pci->attr->pcidev.vendor_id == VENDOR_NVIDIA);
}

static bool is_network(hwloc_obj_t pci, bool *fabric)
{
    bool found = false;
    unsigned class = pci->attr->pcidev.class_id;
    *fabric = class == 0x0207 || class == 0x0208 ||
              class == 0x0c06; /* InfiniBand, fabric; old InfiniBand */
    for (hwloc_obj_t os = pci->io_first_child; os; os = os->next_sibling) {
        if (os->type != HWLOC_OBJ_OS_DEVICE)
            continue;
        *fabric |= os->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;
        found |= os->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS ||
                 os->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK;
    }
    return found;
}

/* Of several names that of the management library, which numbers GPUs as Slurm does, or of the
 * fabric. */
static const char *best_name(hwloc_obj_t pci, bool gpu)
{
    static const char *const first[] = {"nvml", "rsmi", "ze", "cuda"};
    const char *name = NULL;
    size_t rank = sizeof(first) / sizeof(*first);
    for (hwloc_obj_t os = pci->io_first_child; os; os = os->next_sibling) {
        if (os->type != HWLOC_OBJ_OS_DEVICE || !os->name || (gpu && !is_compute(os)))
            continue;
        if (!name || (!gpu && os->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS))
            name = os->name;
        for (size_t i = 0; gpu && i < rank; i++) {
            if (!dt_starts_with(os->name, first[i]))
                continue;
            name = os->name;
            rank = i;
        }
    }
    return name;
}

static struct dt_device device_of(hwloc_topology_t h, hwloc_obj_t pci, bool gpu, bool fabric)
{
    const struct hwloc_pcidev_attr_s *a = &pci->attr->pcidev;
    char *bus = dt_xasprintf("%04x:%02x:%02x.%01x", a->domain, a->bus, a->dev, a->func);
    const char *name = best_name(pci, gpu);
    hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(h, pci);
    return (struct dt_device){.name = dt_xstrdup(name ? name : bus),
                              .bus = bus,
                              .numa = numa_of(h, near->cpuset),
                              .fabric = fabric};
}

static int compare_bus(const void *a, const void *b)
{
    const struct hwloc_pcidev_attr_s *x = &(*(const hwloc_obj_t *)a)->attr->pcidev,
                                     *y = &(*(const hwloc_obj_t *)b)->attr->pcidev;
    uint64_t p = (uint64_t)x->domain << 32 | (uint64_t)x->bus << 16 | (uint64_t)x->dev << 8 |
                 x->func,
             q = (uint64_t)y->domain << 32 | (uint64_t)y->bus << 16 | (uint64_t)y->dev << 8 |
                 y->func;
    return p < q ? -1 : p > q;
}

/* ---- what connects GPUs ---- */

static bool share_bridge(hwloc_obj_t a, hwloc_obj_t b)
{
    for (hwloc_obj_t p = a->parent; p && p->type == HWLOC_OBJ_BRIDGE; p = p->parent)
        for (hwloc_obj_t q = b->parent; q && q->type == HWLOC_OBJ_BRIDGE; q = q->parent)
            if (p == q)
                return true;
    return false;
}

/* The GPU to which an object of a distance matrix belongs, else DT_NOWHERE. */
static size_t gpu_of(hwloc_obj_t obj, const hwloc_obj_t *gpus, size_t n)
{
    for (; obj && (obj->type == HWLOC_OBJ_OS_DEVICE || obj->type == HWLOC_OBJ_PCI_DEVICE);
         obj = obj->parent)
        for (size_t i = 0; i < n; i++)
            if (gpus[i] == obj)
                return i;
    return DT_NOWHERE;
}

/* By switches a GPU has to another what both have to the same switches, which are what is neither
 * GPU nor processor. */
static uint64_t by_switch(const struct hwloc_distances_s *d, const size_t *gpu, size_t a, size_t b)
{
    uint64_t sum = 0;
    for (size_t s = 0; s < d->nbobjs; s++) {
        bool is_switch = gpu[s] == DT_NOWHERE && d->objs[s]->type == HWLOC_OBJ_PCI_DEVICE;
        uint64_t x = d->values[a * d->nbobjs + s], y = d->values[b * d->nbobjs + s];
        sum += !is_switch ? 0 : x < y ? x : y;
    }
    return sum;
}

static void take_nvlink(struct dt_topology *t, const struct hwloc_distances_s *d,
                        const hwloc_obj_t *gpus)
{
    size_t *gpu = dt_xcalloc(d->nbobjs, sizeof(*gpu));
    for (size_t i = 0; i < d->nbobjs; i++)
        gpu[i] = d->objs[i] ? gpu_of(d->objs[i], gpus, t->ngpus) : DT_NOWHERE;
    for (size_t i = 0; i < d->nbobjs; i++)
        for (size_t j = 0; j < d->nbobjs; j++) {
            if (gpu[i] == DT_NOWHERE || gpu[j] == DT_NOWHERE || gpu[i] == gpu[j])
                continue;
            uint64_t direct = d->values[i * d->nbobjs + j],
                     *best = &t->nvlink[gpu[i] * t->ngpus + gpu[j]];
            uint64_t all = direct + by_switch(d, gpu, i, j);
            *best = all > *best ? all : *best;
        }
    free(gpu);
}

static void read_links(struct dt_topology *t, hwloc_topology_t h, const hwloc_obj_t *gpus)
{
    struct hwloc_distances_s *d;
    unsigned one = 1;
    t->nvlink = dt_xcalloc(t->ngpus * t->ngpus, sizeof(*t->nvlink));
    t->bridge = dt_xcalloc(t->ngpus * t->ngpus, sizeof(*t->bridge));
    for (size_t i = 0; i < t->ngpus; i++)
        for (size_t j = 0; j < t->ngpus; j++)
            t->bridge[i * t->ngpus + j] = i != j && share_bridge(gpus[i], gpus[j]);
    if (hwloc_distances_get_by_name(h, "NVLinkBandwidth", &one, &d, 0) == 0 && one == 1) {
        take_nvlink(t, d, gpus);
        hwloc_distances_release(h, d);
    }
}

static void read_devices(struct dt_topology *t, hwloc_topology_t h)
{
    hwloc_obj_t obj = NULL, *all = NULL, *gpus;
    size_t n = 0;
    while ((obj = hwloc_get_next_pcidev(h, obj))) {
        all = dt_xrealloc(all, n + 1, sizeof(hwloc_obj_t));
        all[n++] = obj;
    }
    if (n)
        qsort(all, n, sizeof(hwloc_obj_t), compare_bus);
    t->gpus = dt_xcalloc(n, sizeof(*t->gpus));
    t->nics = dt_xcalloc(n, sizeof(*t->nics));
    gpus = dt_xcalloc(n, sizeof(hwloc_obj_t));
    for (size_t i = 0; i < n; i++) {
        bool fabric;
        if (is_gpu(all[i])) {
            gpus[t->ngpus] = all[i];
            t->gpus[t->ngpus++] = device_of(h, all[i], true, false);
        } else if (is_network(all[i], &fabric)) {
            t->nics[t->nnics++] = device_of(h, all[i], false, fabric);
        }
    }
    read_links(t, h, gpus);
    free(gpus);
    free(all);
}

/* ---- distances of NUMA nodes ---- */

static size_t numa_index(const struct dt_topology *t, hwloc_obj_t obj)
{
    for (size_t i = 0; obj && i < t->nnumas; i++)
        if (t->numas[i].id == obj->os_index)
            return i;
    return DT_NOWHERE;
}

static void read_far(struct dt_topology *t, hwloc_topology_t h)
{
    struct hwloc_distances_s *d;
    unsigned one = 1;
    t->far = dt_xcalloc(t->nnumas * t->nnumas, sizeof(*t->far));
    for (size_t i = 0; i < t->nnumas; i++)
        for (size_t j = 0; j < t->nnumas; j++)
            t->far[i * t->nnumas + j] = i == j                                       ? 10
                                        : t->numas[i].package == t->numas[j].package ? FAR - 5
                                                                                     : FAR;
    if (hwloc_distances_get_by_name(h, "NUMALatency", &one, &d, 0) != 0 || one != 1)
        return;
    for (size_t i = 0; i < d->nbobjs; i++)
        for (size_t j = 0; j < d->nbobjs; j++) {
            size_t a = numa_index(t, d->objs[i]), b = numa_index(t, d->objs[j]);
            if (a != DT_NOWHERE && b != DT_NOWHERE)
                t->far[a * t->nnumas + b] = (unsigned)d->values[i * d->nbobjs + j];
        }
    hwloc_distances_release(h, d);
}

/* ---- the whole ---- */

/* All that is there, also what is not for this process: who may use what is a question for the
 * plan. `xml` NULL: this node. */
static int load(hwloc_topology_t h, const char *xml)
{
    hwloc_topology_set_flags(h, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    hwloc_topology_set_io_types_filter(h, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    hwloc_topology_set_type_filter(h, HWLOC_OBJ_MEMCACHE, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (xml && hwloc_topology_set_xmlbuffer(h, xml, (int)strlen(xml) + 1) < 0)
        return -1;
    return hwloc_topology_load(h);
}

static int load_here(hwloc_topology_t h, struct dt_error *e)
{
    if (load(h, NULL) == 0)
        return 0;
    return dt_fail(e, "this node's topology: hwloc cannot find it out: %s", strerror(errno));
}

static struct dt_topology *read_all(hwloc_topology_t h, const char *path, struct dt_error *e)
{
    struct dt_topology *t = dt_xcalloc(1, sizeof(*t));
    read_numas(t, h);
    if (t->nnumas)
        read_cores(t, h);
    if (!t->ncores) {
        dt_fail(e, "%s: there is no core in it that is online and allowed",
                path ? path : "this node's topology");
        dt_topology_free(t);
        return NULL;
    }
    read_devices(t, h);
    read_far(t, h);
    return t;
}

static hwloc_topology_t new_topology(struct dt_error *e)
{
    hwloc_topology_t h;
    if (hwloc_topology_init(&h) == 0)
        return h;
    dt_fail(e, "hwloc cannot start: %s", strerror(errno));
    return NULL;
}

struct dt_topology *dt_topology_read(const char *path, struct dt_error *e)
{
    struct dt_topology *t = NULL;
    char *text = dt_read_text(path, 64 * 1024 * 1024, e);
    hwloc_topology_t h = text ? new_topology(e) : NULL;
    if (h && load(h, text) == 0)
        t = read_all(h, path, e);
    else if (h)
        dt_fail(e, "%s: is no topology in hwloc's XML", path);
    if (h)
        hwloc_topology_destroy(h);
    free(text);
    return t;
}

struct dt_topology *dt_topology_here(struct dt_error *e)
{
    static const char *const slow[] = {"cuda", "opencl", "gl", "levelzero", "nvml", "rsmi"};
    struct dt_topology *t = NULL;
    hwloc_topology_t h = new_topology(e);
    for (size_t i = 0; h && i < sizeof(slow) / sizeof(*slow); i++)
        hwloc_topology_set_components(h, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, slow[i]);
    if (h && load_here(h, e) == 0)
        t = read_all(h, NULL, e);
    if (h)
        hwloc_topology_destroy(h);
    return t;
}

char *dt_topology_export(struct dt_error *e)
{
    hwloc_topology_t h = new_topology(e);
    char *text = NULL, *xml;
    int n;
    if (h && load_here(h, e) == 0) {
        hwloc_topology_allow(h, NULL, NULL, HWLOC_ALLOW_FLAG_ALL); /* it is for other jobs, too */
        if (hwloc_topology_export_xmlbuffer(h, &xml, &n, 0) == 0) {
            text = dt_xstrdup(xml);
            hwloc_free_xmlbuffer(h, xml);
        } else {
            dt_fail(e, "hwloc cannot write this node's topology: %s", strerror(errno));
        }
    }
    if (h)
        hwloc_topology_destroy(h);
    return text;
}

static void free_devices(struct dt_device *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(v[i].name);
        free(v[i].bus);
    }
    free(v);
}

void dt_topology_free(struct dt_topology *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->ncores; i++)
        hwloc_bitmap_free(t->cores[i].pus);
    free_devices(t->gpus, t->ngpus);
    free_devices(t->nics, t->nnics);
    free(t->cores);
    free(t->numas);
    free(t->far);
    free(t->nvlink);
    free(t->bridge);
    free(t);
}
