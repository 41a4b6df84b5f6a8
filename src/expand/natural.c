/* Natural sizes of a worker, for what SPEC leaves to us ("auto"): parts of a node that its GPUs,
 * packages and NUMA nodes suggest. */
#include "expand/expand.h"
#include "topology/topology.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Whole numbers above 0, each once, the smallest first. */
struct sizes {
    double *v;
    size_t n;
};

static void add_size(struct sizes *s, double x)
{
    size_t at = 0;
    while (at < s->n && s->v[at] < x)
        at++;
    if (x < 1 || (at < s->n && s->v[at] == x))
        return;
    s->v = dt_xrealloc(s->v, s->n + 1, sizeof(*s->v));
    memmove(&s->v[at + 1], &s->v[at], (s->n - at) * sizeof(*s->v));
    s->v[at] = x;
    s->n++;
}

/* ---- a kind of nodes ---- */

/* The first topology in a folder that has the CPUs and GPUs which Slurm says. NULL: none. */
static struct dt_topology *alike(const char *folder, const struct dt_node_class *k)
{
    DIR *d = folder ? opendir(folder) : NULL;
    struct dt_topology *t = NULL;
    struct dirent *entry;
    while (d && !t && (entry = readdir(d))) {
        size_t n = strlen(entry->d_name);
        if (n < 5 || strcmp(entry->d_name + n - 4, ".xml") != 0)
            continue;
        char *path = dt_xasprintf("%s/%s", folder, entry->d_name);
        t = dt_topology_read(path, NULL);
        free(path);
        if (t && (dt_topology_pus(t) != k->cpus || t->ngpus != k->gpus)) {
            dt_topology_free(t);
            t = NULL;
        }
    }
    if (d)
        closedir(d);
    return t;
}

static struct dt_topology *topology_of(const struct dt_node_class *k, const char *folder,
                                       const char *cache)
{
    char key[17];
    dt_topology_key(k, key);
    char *given = dt_topology_find(folder, NULL, NULL, key),
         *known = dt_topology_find(NULL, cache, NULL, key);
    struct dt_topology *t = given ? dt_topology_read(given, NULL) : alike(folder, k);
    if (!t && known)
        t = dt_topology_read(known, NULL);
    free(given);
    free(known);
    return t;
}

/* Of so many equal parts of the node, as Slurm describes it. */
static struct dt_budget part(const struct dt_node_class *k, size_t gpus, size_t parts)
{
    size_t threads = k->threads ? k->threads : 1, cores = k->cpus / threads / parts;
    return (struct dt_budget){.gpus = gpus,
                              .cpus = (cores ? cores : 1) * threads,
                              .workers = parts,
                              .mem_mib = k->mem_mib / parts};
}

static size_t from_slurm(const struct dt_node_class *k, struct dt_budget list[DT_BUDGETS])
{
    size_t n = 0;
    if (k->gpus) {
        list[n++] = part(k, 1, k->gpus);
        if (k->gpus > 1)
            list[n++] = part(k, k->gpus, 1);
        return n;
    }
    if (k->sockets > 1)
        list[n++] = part(k, 0, k->sockets);
    list[n++] = part(k, 0, 1);
    return n;
}

/* By the node's topology where it is known; of the memory Slurm may give out less than there is. */
static size_t budgets_of(const struct dt_node_class *k, const char *folder, const char *cache,
                         struct dt_budget list[DT_BUDGETS])
{
    struct dt_topology *t = topology_of(k, folder, cache);
    if (!t || (t->ngpus == 0) != (k->gpus == 0)) {
        dt_topology_free(t);
        return from_slurm(k, list);
    }
    size_t n = dt_topology_budgets(t, list);
    double whole = (double)dt_topology_mem(t);
    for (size_t i = 0; i < n; i++)
        list[i].mem_mib = whole > 0
                              ? (uint64_t)((double)k->mem_mib * (double)list[i].mem_mib / whole)
                              : k->mem_mib / list[i].workers;
    dt_topology_free(t);
    return n;
}

/* ---- values ---- */

struct natural {
    struct sizes gpus, cpus, mem, nodes;
};

/* A worker of `gpus` GPUs, or of any natural number (SIZE_MAX). */
static void add_class(struct natural *a, const struct dt_node_class *k, size_t gpus,
                      const char *folder, const char *cache)
{
    struct dt_budget list[DT_BUDGETS];
    struct dt_node_class bare = *k;
    bare.gpus = 0;
    bool idle = gpus == 0 && k->gpus; /* then the GPUs do not say how to divide the node */
    size_t n = idle ? from_slurm(&bare, list) : budgets_of(k, folder, cache, list);
    for (size_t i = 0; i < n; i++) {
        bool fits = gpus == SIZE_MAX || list[i].gpus == gpus;
        size_t times = fits ? 1 : list[i].gpus == 1 ? gpus : 0; /* of one GPU's part */
        add_size(&a->gpus, (double)list[i].gpus);
        add_size(&a->cpus, (double)(list[i].cpus * times));
        add_size(&a->mem, (double)(list[i].mem_mib * times));
    }
}

/* Half and a quarter of the least, for programs that a worker's whole part is too much for. */
static void add_less(struct sizes *s)
{
    double least = s->n ? s->v[0] : 0;
    for (int part = 2; part <= 4; part *= 2)
        add_size(s, (double)(uint64_t)(least / part));
}

/* From all workers on one node to each on its own: ones that do not hold them, and more than there
 * are workers, are left out with the other shapes that do not fit. */
static void add_nodes(struct natural *a, const struct dt_spec *spec, const struct dt_job *job,
                      const struct dt_cluster *c)
{
    double most = (double)job->tasks, nodes = (double)dt_cluster_nodes(c);
    for (size_t i = 0; i < spec->nparams; i++)
        if (strcmp(spec->params[i].name, "workers") == 0)
            most = dt_param_highest(&spec->params[i]);
    if (c->limits.max_nodes)
        nodes = fmin(nodes, (double)c->limits.max_nodes);
    most = fmin(most, nodes);
    for (double n = 1; n < most; n *= 2)
        add_size(&a->nodes, n);
    add_size(&a->nodes, most);
}

static void set_values(struct dt_param *p, const struct sizes *s, struct json_object *dt)
{
    struct json_object *o = json_object_new_object(), *choices = json_object_new_array();
    p->natural = false;
    p->nvalues = s->n;
    p->values = dt_xcalloc(s->n, sizeof(*p->values));
    for (size_t i = 0; i < s->n; i++) {
        p->values[i] = s->v[i];
        json_object_array_add(choices, dt_json_number(s->v[i]));
    }
    json_object_object_add(o, "choices", choices);
    json_object_object_add(dt, p->name, o);
}

static const struct sizes *sizes_for(const struct natural *a, const char *name)
{
    const char *what = strchr(name, '_') + 1;
    return strcmp(what, "gpus") == 0    ? &a->gpus
           : strcmp(what, "cpus") == 0  ? &a->cpus
           : strcmp(what, "nodes") == 0 ? &a->nodes
                                        : &a->mem;
}

int dt_natural_fill(struct dt_spec *spec, const struct dt_job *job,
                    const struct dt_cluster *cluster, struct dt_error *e)
{
    struct natural a = {0};
    size_t gpus = job->gpus;
    const char *wanted = NULL;
    for (size_t i = 0; i < spec->nparams; i++) {
        if (spec->params[i].natural)
            wanted = spec->params[i].name;
        if (strcmp(spec->params[i].name, "worker_gpus") == 0)
            gpus = SIZE_MAX;
    }
    if (!wanted)
        return 0;
    if (!cluster)
        return dt_fail(e, "dt.%s: \"auto\" needs to know the nodes: give --cluster=FILE, or values",
                       wanted);
    char *cache = dt_topology_cache();
    for (size_t i = 0; i < cluster->n; i++)
        add_class(&a, &cluster->classes[i], gpus, spec->topology, cache);
    free(cache);
    add_less(&a.cpus);
    add_less(&a.mem);
    add_nodes(&a, spec, job, cluster);
    int rc = 0;
    for (size_t i = 0; i < spec->nparams && rc == 0; i++) {
        struct dt_param *p = &spec->params[i];
        const struct sizes *s = p->natural ? sizes_for(&a, p->name) : NULL;
        if (s && !s->n)
            rc = dt_fail(e, "dt.%s: \"auto\" finds none on these nodes; leave it out", p->name);
        else if (s)
            set_values(p, s, dt_json_get(spec->json, "dt"));
    }
    free(a.gpus.v);
    free(a.cpus.v);
    free(a.mem.v);
    free(a.nodes.v);
    return rc;
}
