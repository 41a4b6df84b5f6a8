#include "space/feasible_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- what is left unsaid ---- */

static bool wants_gpus(const struct dt_request *r)
{
    return r->gpus || r->gpus_per_node || r->gpus_per_task || r->gpus_per_socket;
}

/* A job without a word on memory gets the partition's default. */
static void complete_memory(struct dt_needed *n, const struct dt_partition_limits *l)
{
    const struct dt_request *r = n->request;
    n->memory = r->memory;
    n->mem_mib = r->mem_mib;
    if (n->memory != DT_MEMORY_UNSAID)
        return;
    n->memory = wants_gpus(r) && l->def_mem_per_gpu ? DT_MEMORY_GPU
                : l->def_mem_per_cpu                ? DT_MEMORY_CPU
                                                    : DT_MEMORY_NODE;
    n->mem_mib = n->memory == DT_MEMORY_GPU   ? l->def_mem_per_gpu
                 : n->memory == DT_MEMORY_CPU ? l->def_mem_per_cpu
                                              : l->def_mem_per_node;
}

/* Where a CPU may have no more memory, a task gets more CPUs for it rather than a refusal. */
static void raise_cpus(struct dt_needed *n, const struct dt_partition_limits *l)
{
    const struct dt_request *r = n->request;
    uint64_t cap = l->max_mem_per_cpu, mem = n->mem_mib;
    if (!cap)
        return;
    if (n->memory == DT_MEMORY_CPU && mem > cap) {
        uint64_t times = (mem + cap - 1) / cap;
        n->cpus *= (size_t)times;
        n->mem_mib = (mem + times - 1) / times;
        n->min_cpus = n->tasks * n->cpus; /* with --overcommit too */
        n->node_cpus = dt_most(n->node_cpus, dt_most(r->tasks_per_node, 1) * n->cpus);
    } else if (n->memory == DT_MEMORY_NODE && r->memory != DT_MEMORY_UNSAID) {
        size_t cpus = (size_t)(((mem ? mem : l->first_mem) + cap - 1) / cap);
        if (cpus <= n->node_cpus)
            return;
        n->node_cpus = cpus;
        if (r->tasks_per_node)
            n->cpus = dt_most(n->cpus, dt_parts(cpus, r->tasks_per_node));
    }
}

/* The most nodes that the limits leave to a job. */
static size_t nodes_allowed(const struct dt_cluster *c)
{
    uint64_t n = DT_NO_LIMIT;
    for (size_t i = 0; i < c->nbinding; i++)
        n = dt_least(n, dt_amounts_get(&c->binding[i].per_job, "node", DT_NO_LIMIT));
    return n;
}

static void complete_nodes(struct dt_needed *n, const struct dt_cluster *c,
                           const struct dt_partition_limits *l)
{
    const struct dt_request *r = n->request;
    size_t max = r->nodes_max ? r->nodes_max : DT_ANY, allowed = nodes_allowed(c);
    n->min_nodes = r->nodes ? r->nodes : 1;
    if (r->tasks && r->nodes) /* no more nodes than tasks: sbatch itself sees to that */
        max = dt_least(max, r->tasks);
    n->min_nodes = dt_least(n->min_nodes, max);
    if (max >= l->min_nodes)
        n->min_nodes = dt_most(n->min_nodes, l->min_nodes);
    n->asked_nodes = max;
    if (r->tasks_per_node)
        n->min_nodes = dt_most(n->min_nodes, r->tasks ? dt_parts(r->tasks, r->tasks_per_node) : 1);
    n->max_nodes = l->max_nodes ? dt_least(max, l->max_nodes) : max;
    if (n->min_nodes <= allowed)
        n->max_nodes = dt_least(n->max_nodes, allowed);
    if (r->tasks)
        n->max_nodes = dt_least(n->max_nodes, dt_most(r->tasks, n->min_nodes));
    if (r->gpus && r->nodes_max) /* of a number of nodes that is said; else one may have none */
        n->max_nodes = dt_least(n->max_nodes, r->gpus);
}

struct dt_needed dt_need_of(const struct dt_request *r, const struct dt_cluster *c,
                            const struct dt_cluster *p)
{
    const struct dt_partition_limits *l = &p->limits;
    struct dt_needed n = {.request = r, .whole_nodes = r->whole_nodes || l->exclusive};
    complete_nodes(&n, c, l);
    n.tasks = r->tasks ? r->tasks : dt_most(r->nodes, 1) * dt_most(r->tasks_per_node, 1);
    n.cpus_per_gpu = r->cpus_per_gpu ? r->cpus_per_gpu : r->cpus ? 0 : l->def_cpus_per_gpu;
    n.cpus = dt_most(r->cpus, 1);
    if (n.cpus_per_gpu && r->gpus_per_task)
        n.cpus = dt_most(n.cpus, n.cpus_per_gpu * r->gpus_per_task);
    n.min_cpus = r->overcommit ? n.min_nodes : n.tasks * n.cpus;
    n.node_cpus = n.cpus;
    if (n.cpus_per_gpu && r->gpus_per_node)
        n.node_cpus = dt_most(n.node_cpus, n.cpus_per_gpu * r->gpus_per_node);
    if (r->tasks_per_node) /* --overcommit or not, and however few tasks there are */
        n.node_cpus = dt_most(n.node_cpus, r->tasks_per_node * n.cpus);
    complete_memory(&n, l);
    raise_cpus(&n, l);
    return n;
}

/* ---- what forbids it ---- */

static const char *options_why_not(const struct dt_request *r)
{
    bool tasks = r->tasks || r->gpus ||
                 (r->nodes == r->nodes_max && (r->tasks_per_node || (r->nodes && !r->cpus)));
    size_t nodes =
        r->tasks ? dt_least(r->nodes, r->tasks) : r->nodes; /* as sbatch makes it first */
    if ((r->cpus_per_gpu && r->cpus) || (r->gpus_per_task && !tasks) ||
        (r->gpus_per_socket && !r->sockets) || (r->gpus && r->gpus < nodes))
        return "sbatch refuses these options for GPUs, tasks and CPUs together";
    return NULL;
}

/* Of whole nodes slurmctld takes the first of the partition for all, unless it raises the CPUs. */
static bool is_over_cpus(const struct dt_needed *n, const struct dt_partition_limits *l)
{
    uint64_t cap = l->max_mem_per_cpu, mem = n->request->mem_mib;
    return cap && l->first_cpus && n->whole_nodes && n->request->memory == DT_MEMORY_NODE &&
           n->request->cpus >= (mem + cap - 1) / cap && mem > l->first_cpus * cap;
}

static const char *memory_why_not(const struct dt_needed *n, const struct dt_partition_limits *l)
{
    const struct dt_request *r = n->request;
    uint64_t mem = n->mem_mib;
    size_t cpus = dt_most(r->tasks_per_node, 1);
    if (is_over_cpus(n, l))
        return "partition: it allows less memory a CPU";
    if (!l->max_mem_per_node)
        return NULL;
    if (n->memory == DT_MEMORY_NODE && !mem)
        mem = l->first_mem;
    if (r->tasks && r->nodes_max)
        cpus = dt_most(cpus, dt_parts(r->tasks, r->nodes_max));
    cpus = n->whole_nodes ? l->first_cpus : dt_most(cpus * n->cpus, n->node_cpus);
    if (n->memory == DT_MEMORY_CPU)
        mem *= cpus;
    return n->memory != DT_MEMORY_GPU && mem > l->max_mem_per_node
               ? "partition: it allows less memory a node"
               : NULL;
}

/* A QOS may override what its partition allows. */
static bool overridden(const struct dt_cluster *c, bool time)
{
    for (size_t i = 0; i < c->nbinding; i++)
        if (c->binding[i].is_qos && (time ? c->binding[i].own_time : c->binding[i].own_nodes))
            return true;
    return false;
}

static bool is_listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (strcspn(p, ",") == n && strncmp(p, name, n) == 0)
            return true;
    return false;
}

/* Of lists of who is allowed and who is not the first counts; of a name that is not known nothing
 * is. */
static bool admits(const char *allow, const char *deny, const char *name)
{
    return !name || (allow ? is_listed(allow, name) : !deny || !is_listed(deny, name));
}

static const char *partition_why_not(const struct dt_needed *n, const struct dt_cluster *c,
                                     const struct dt_cluster *p)
{
    const struct dt_partition_limits *l = &p->limits;
    size_t asked = n->request->nodes_max ? n->asked_nodes : n->min_nodes;
    /* a job that allows more nodes than it demands gets as many as the partition wants */
    bool raised = !p->scheduling.enforced || !n->request->nodes;
    if (l->reserved)
        return "partition: it is open to jobs in a reservation only";
    if (l->foreign)
        return l->root_only ? "partition: it is open to root only"
                            : "partition: you are in none of its groups";
    if (!admits(l->allow_accounts, l->deny_accounts, c->account))
        return "partition: it is not open to the job's account";
    if (!admits(l->allow_qos, l->deny_qos, c->qos))
        return "partition: it is not open to the job's QOS";
    if (n->request->time > l->max_time && !overridden(c, true))
        return "partition: it allows less than the job's --time";
    if (l->max_nodes && asked > l->max_nodes && !overridden(c, false))
        return "partition: it allows fewer nodes to a job";
    if (n->asked_nodes < l->min_nodes || (!raised && n->request->nodes < l->min_nodes))
        return "partition: it wants more nodes of a job";
    if (n->min_nodes > n->max_nodes || n->min_nodes > dt_cluster_nodes(p))
        return dt_no_room;
    return memory_why_not(n, l);
}

static const char *licenses_why_not(const struct dt_request *r, const struct dt_cluster *c)
{
    struct dt_strv all = DT_STRV_INIT;
    const char *why = NULL;
    if (!r->licenses || !c->licenses.n)
        return NULL;
    dt_strv_split(&all, r->licenses, ",;");
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

const char *dt_need_why_not(const struct dt_needed *n, const struct dt_cluster *c,
                            const struct dt_cluster *p)
{
    const char *why = options_why_not(n->request);
    why = why ? why : partition_why_not(n, c, p);
    return why ? why : licenses_why_not(n->request, c);
}
