#include "expand/expand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const dt_role_names[DT_ROLES] = {"ps", "worker"};

/* ---- from a configuration to roles ---- */

static bool tuned(const struct dt_space *space, const char *role, const char *what)
{
    char *name = dt_xasprintf("%s_%s", role, what);
    bool found = dt_space_index(space, name) >= 0;
    free(name);
    return found;
}

static struct dt_role role_of(const struct dt_space *space, const double *x,
                              const struct dt_job *job, int role)
{
    const char *prefix = dt_role_names[role];
    struct dt_role r = {0};
    const struct {
        const char *suffix;
        double fallback;
    } budget[] = {{"cpus", (double)job->cpus},
                  {"gpus", role == DT_ROLE_WORKER ? (double)job->gpus : 0},
                  {"nodes", 0},
                  {"mem", 0},
                  {"tmp", 0}};
    double value[5];
    for (int i = 0; i < 5; i++) {
        char *name = dt_xasprintf("%s_%s", prefix, budget[i].suffix);
        value[i] = dt_space_value(space, x, name, budget[i].fallback);
        free(name);
    }
    r.gpus = (size_t)value[1];
    r.cpus = (size_t)value[0];
    if (job->cpus_per_gpu && r.gpus && !tuned(space, prefix, "cpus"))
        r.cpus = job->cpus_per_gpu * r.gpus;
    r.gpus_as_given = role == DT_ROLE_WORKER && job->gpus_shared && !tuned(space, prefix, "gpus");
    r.nodes = (size_t)value[2];
    r.mem_mib = (uint64_t)value[3];
    r.tmp_mib = (uint64_t)value[4];
    r.count = role == DT_ROLE_PS ? (size_t)dt_space_value(space, x, "ps", 0)
                                 : (size_t)dt_space_value(space, x, "workers", (double)job->tasks);
    return r;
}

/* Whether the configuration says on which nodes the roles are to be; what it leaves open is as the
 * job says. */
static void set_kinds(const struct dt_space *space, const double *x, const struct dt_job *job,
                      struct dt_shape *s)
{
    const char *ps = s->roles[DT_ROLE_PS].count ? dt_space_label(space, x, "ps_constraint") : NULL,
               *worker = dt_space_label(space, x, "worker_constraint");
    s->partition = dt_space_label(space, x, "partition");
    s->kinds = ps || worker || s->partition;
    if (!s->kinds)
        return;
    s->roles[DT_ROLE_PS].constraint = ps ? ps : job->constraint;
    s->roles[DT_ROLE_WORKER].constraint = worker ? worker : job->constraint;
}

char *dt_shape_constraint(const struct dt_shape *s)
{
    return dt_features_join(s->roles[DT_ROLE_PS].constraint, s->roles[DT_ROLE_WORKER].constraint);
}

static double label_index(const struct dt_param *p, const char *label)
{
    for (size_t i = 0; label && i < p->nvalues; i++)
        if (strcmp(p->labels[i], label) == 0)
            return p->values[i];
    return NAN;
}

void dt_config_submitted(const struct dt_spec *spec, const struct dt_space *space,
                         const struct dt_job *job, double *x)
{
    int ps_at = dt_space_index(space, "ps");
    size_t ps = 0;
    if (ps_at >= 0 && !dt_param_contains(&space->params[ps_at], 0)) {
        ps = (size_t)dt_param_at(&space->params[ps_at], 0);
        for (size_t i = 0; i < space->params[ps_at].nvalues; i++)
            ps = (size_t)fmin((double)ps, space->params[ps_at].values[i]);
        if (ps >= job->tasks)
            ps = 0; /* so few tasks cannot be both */
    }
    for (size_t i = 0; i < space->n; i++) {
        const char *name = space->params[i].name;
        x[i] = NAN;
        if (strcmp(name, "ps") == 0)
            x[i] = (double)ps;
        else if (strcmp(name, "workers") == 0)
            x[i] = (double)(job->tasks - ps);
        else if (strcmp(name, "layout") == 0 && strcmp(space->params[i].labels[0], "packed") == 0)
            x[i] = 0; /* else only het is searched, and the job as submitted is outside */
        else if (strcmp(name, "worker_cpus") == 0 || strcmp(name, "ps_cpus") == 0)
            x[i] = (double)job->cpus;
        else if (strcmp(name, "worker_gpus") == 0)
            x[i] = (double)job->gpus;
        else if ((strcmp(name, "worker_mem") == 0 || strcmp(name, "ps_mem") == 0) && job->mem_mib)
            x[i] = (double)job->mem_mib;
        else if (strcmp(name, "ps_constraint") == 0 && !ps)
            x[i] = 0; /* there is nothing that it would say */
        else if (strcmp(name, "ps_constraint") == 0 || strcmp(name, "worker_constraint") == 0)
            x[i] = label_index(&space->params[i], job->constraint);
        else if (strcmp(name, "partition") == 0)
            x[i] = label_index(&space->params[i], job->partition);
        for (size_t j = 0; space->params[i].hyper && j < spec->nparams; j++)
            if (strcmp(spec->params[j].name, name) == 0)
                x[i] = spec->submitted[j];
    }
    dt_space_settle(space, x);
}

/* ---- what fits where ---- */

uint64_t dt_role_mem(const struct dt_shape *s, const struct dt_job *job, int role)
{
    const struct dt_role *r = &s->roles[role], *other = &s->roles[1 - role];
    if (r->mem_mib)
        return r->mem_mib;
    return job->mem_mib ? job->mem_mib : job->share_mib ? job->share_mib : other->mem_mib;
}

uint64_t dt_role_mem_written(const struct dt_shape *s, const struct dt_job *job, int role)
{
    uint64_t own = s->roles[role].mem_mib;
    bool handed_on = s->het && role == DT_ROLE_PS && s->roles[DT_ROLE_WORKER].mem_mib;
    return own || !handed_on || job->given.memory != DT_MEMORY_NODE ? own
                                                                    : dt_role_mem(s, job, role);
}

struct dt_node_share dt_shape_share(const struct dt_shape *s, const struct dt_job *job, size_t n)
{
    struct dt_node_share most = {0};
    bool tuned_mem = s->roles[DT_ROLE_PS].mem_mib || s->roles[DT_ROLE_WORKER].mem_mib;
    for (size_t i = 0; i < n; i++) {
        struct dt_node_share here = {0};
        for (int r = 0; r < DT_ROLES; r++) {
            const struct dt_role *role = &s->roles[r];
            size_t k = dt_share(r, role->count, n, i);
            here.cpus = job->overcommit ? (here.cpus > role->cpus ? here.cpus : role->cpus)
                                        : here.cpus + k * role->cpus;
            here.gpus += k * role->gpus;
            here.mem_mib += k * (tuned_mem ? dt_role_mem(s, job, r) : job->mem_mib);
            most.tmp_mib = role->tmp_mib > most.tmp_mib ? role->tmp_mib : most.tmp_mib;
        }
        most.cpus = here.cpus > most.cpus ? here.cpus : most.cpus;
        most.gpus = here.gpus > most.gpus ? here.gpus : most.gpus;
        most.mem_mib = here.mem_mib > most.mem_mib ? here.mem_mib : most.mem_mib;
    }
    return most;
}

/* Whether a node of the class has what both roles together want of it, as far as sizes tell. */
static bool fits(const struct dt_node_share *share, const struct dt_shape *s,
                 const struct dt_node_class *k)
{
    const struct dt_role *ps = &s->roles[DT_ROLE_PS], *workers = &s->roles[DT_ROLE_WORKER];
    bool tuned_mem = ps->mem_mib || workers->mem_mib; /* else the job's own words go for a node */
    return share->cpus <= k->cpus && share->gpus <= k->gpus &&
           (!tuned_mem || share->mem_mib <= k->mem_mib) && share->tmp_mib <= k->tmp_mib &&
           dt_features_allow(k->features, ps->constraint) &&
           dt_features_allow(k->features, workers->constraint);
}

/* Whether there are n such nodes. */
static bool fits_on(size_t n, const struct dt_shape *s, const struct dt_job *job,
                    const struct dt_cluster *c)
{
    struct dt_node_share share = dt_shape_share(s, job, n);
    size_t nodes = 0;
    for (size_t i = 0; i < c->n; i++)
        nodes += fits(&share, s, &c->classes[i]) ? c->classes[i].count : 0;
    return nodes >= n && (!c->limits.max_nodes || n <= c->limits.max_nodes);
}

static void set_worker_nodes(struct dt_shape *s, const struct dt_job *job, size_t nodes)
{
    struct dt_role *w = &s->roles[DT_ROLE_WORKER];
    w->nodes = nodes;
    w->per_node = w->nodes_max = 0;
    if (job->tasks_per_node && nodes)
        w->per_node = (w->count + nodes - 1) / nodes;
    else if (nodes && nodes < job->nodes_max)
        w->nodes_max = job->nodes_max < w->count ? job->nodes_max : w->count;
}

/* Spreads the shape over so many nodes; why it could not start then, or NULL. */
static const char *spread(size_t nodes, struct dt_shape *s, const struct dt_job *job,
                          const struct dt_cluster *c)
{
    bool packed = s->roles[DT_ROLE_PS].count && s->roles[DT_ROLE_WORKER].count && !s->het;
    struct dt_request requests[DT_ROLES];
    size_t workers = (s->roles[DT_ROLE_WORKER].count + nodes - 1) / nodes; /* on a node */
    if (packed)
        s->nodes = nodes;
    else
        set_worker_nodes(s, job, nodes);
    if (!c)
        return NULL;
    if (packed && job->tasks_per_node && workers > job->tasks_per_node)
        return dt_no_room;
    if (nodes < c->limits.min_nodes || (packed && !fits_on(nodes, s, job, c)))
        return dt_no_room;
    return dt_feasible_why_not(c, NULL, requests, dt_shape_requests(s, job, requests));
}

/* Whether another number of nodes may help. */
static bool is_about_nodes(const char *why)
{
    return why == dt_no_room || why == dt_not_apart || why == dt_torn ||
           dt_starts_with(why, "partition:");
}

/* The number of nodes that can hold it: `wanted`, else the next larger one, else the next smaller
 * one; 0: none. Never more than there are tasks, never less than `least`. */
static size_t choose_nodes(size_t wanted, size_t least, size_t tasks, struct dt_shape *s,
                           const struct dt_job *job, const struct dt_cluster *c)
{
    size_t most = c ? dt_cluster_nodes(c) : tasks;
    const char *why = dt_no_room;
    most = most < tasks ? most : tasks;
    for (size_t n = wanted; n <= most; n++)
        if (!(why = spread(n, s, job, c)) || !is_about_nodes(why))
            return n;
    for (size_t n = wanted < most ? wanted : most; n >= least && n > 0; n--)
        if (!(why = spread(n, s, job, c)) || !is_about_nodes(why))
            return n;
    return 0;
}

static size_t at_least(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Workers on nodes of their own: where the user says how many nodes, or how many tasks a node, that
 * holds. */
static void spread_workers(struct dt_shape *s, const struct dt_job *job, const struct dt_cluster *c)
{
    struct dt_role *w = &s->roles[DT_ROLE_WORKER];
    size_t cap = job->tasks_per_node, least = job->listed;
    if (w->nodes) { /* tuned */
        w->nodes = w->nodes < w->count ? w->nodes : w->count;
        return;
    }
    if (cap)
        least = at_least(least, (w->count + cap - 1) / cap);
    size_t wanted = at_least(least, cap ? 0 : job->nodes < w->count ? job->nodes : w->count);
    if ((!cap && !job->nodes && !job->listed) || !w->count)
        return;
    size_t nodes = choose_nodes(wanted, least ? least : 1, w->count, s, job, c);
    /* where there is none, too few or too many: the reason is found later */
    set_worker_nodes(s, job, nodes ? nodes : least);
}

void dt_shape_make(const struct dt_space *space, const double *x, const struct dt_job *job,
                   const struct dt_cluster *cluster, struct dt_shape *s)
{
    *s = (struct dt_shape){0};
    for (int r = 0; r < DT_ROLES; r++)
        s->roles[r] = role_of(space, x, job, r);
    set_kinds(space, x, job, s);
    if (s->kinds && cluster)
        cluster = dt_cluster_partition(cluster, s->partition);
    struct dt_role *ps = &s->roles[DT_ROLE_PS], *workers = &s->roles[DT_ROLE_WORKER];
    const char *layout = dt_space_label(space, x, "layout");
    s->het = ps->count && workers->count && layout && strcmp(layout, "het") == 0;
    ps->nodes = ps->nodes < ps->count ? ps->nodes : ps->count;
    if (s->het || !ps->count || !workers->count) {
        spread_workers(s, job, cluster);
        return;
    }
    size_t tasks = ps->count + workers->count, given = at_least(ps->nodes, workers->nodes);
    if (given) {
        given = given < tasks ? given : tasks;
        s->nodes = !cluster || fits_on(given, s, job, cluster) ? given : 0;
        return;
    }
    size_t wanted = job->tasks_per_node ? 1 : job->nodes < tasks ? job->nodes : tasks;
    s->nodes = choose_nodes(at_least(at_least(wanted, job->listed), 1), at_least(job->listed, 1),
                            tasks, s, job, cluster);
}

void dt_shape_make_steps(const struct dt_space *space, const double *x, const struct dt_job *job,
                         struct dt_shape *s)
{
    *s = (struct dt_shape){.steps = true};
    for (int r = 0; r < DT_ROLES; r++) {
        struct dt_role *role = &s->roles[r];
        *role = role_of(space, x, job, r);
        role->nodes = role->nodes < role->count ? role->nodes : role->count;
    }
    set_kinds(space, x, job, s);
}

static bool has_nodes(const struct dt_cluster *c, const char *a, const char *b)
{
    struct dt_node_class least, most;
    return dt_cluster_range(c, (const char *[]){a, b}, &least, &most);
}

/* Why there are no nodes of the kinds that are asked for. */
static const char *why_no_kind(const struct dt_shape *s, const struct dt_job *job,
                               const struct dt_cluster *c)
{
    const char *ps = s->roles[DT_ROLE_PS].constraint, *worker = s->roles[DT_ROLE_WORKER].constraint;
    bool together = s->roles[DT_ROLE_PS].count && !s->het;
    if (job->nodelist)
        return "--nodelist says which nodes the job has, whatever their partition and features";
    if (together && (ps || worker)) {
        char *both = dt_shape_constraint(s);
        free(both);
        if (!both)
            return "layout packed: both roles share nodes, and constraints with |, [ or ( cannot "
                   "be joined";
    }
    if (!c)
        return "partition: there is none of that name";
    if (c->closed)
        return "partition: it is down, or drained";
    if (job->time > c->limits.max_time)
        return "partition: it allows less than the job's --time";
    if (!has_nodes(c, worker, NULL))
        return "worker_constraint: no node of the partition that is up has these features";
    if (s->roles[DT_ROLE_PS].count && !has_nodes(c, ps, NULL))
        return "ps_constraint: no node of the partition that is up has these features";
    if (together && !has_nodes(c, ps, worker))
        return "layout packed: both roles share nodes, and none has the features of both "
               "ps_constraint and worker_constraint";
    return NULL;
}

/* The reasons that depend on the cluster; those that speak of room name the layout. */
static const char *cluster_why_not(const struct dt_shape *s, const struct dt_job *job,
                                   const struct dt_cluster *c)
{
    bool both = s->roles[DT_ROLE_PS].count && s->roles[DT_ROLE_WORKER].count;
    const struct dt_cluster *partition = s->kinds ? dt_cluster_partition(c, s->partition) : c;
    const char *why = s->kinds ? why_no_kind(s, job, partition) : NULL;
    struct dt_request requests[DT_ROLES];
    if (why)
        return why;
    if (both && !s->het && !s->nodes)
        return "layout packed: more CPUs, memory or GPUs than the nodes have";
    why = dt_feasible_why_not(c, partition, requests, dt_shape_requests(s, job, requests));
    if (why != dt_no_room && why != dt_not_apart)
        return why;
    return s->het ? "layout het: too few or too small nodes (components never share a node)"
           : both ? "layout packed: more CPUs, memory or GPUs than the nodes have"
                  : "workers: more CPUs, memory or GPUs than the nodes have";
}

const char *dt_shape_why_not(const struct dt_shape *s, const struct dt_job *job,
                             const struct dt_cluster *c)
{
    bool both = s->roles[DT_ROLE_PS].count && s->roles[DT_ROLE_WORKER].count;
    if (s->roles[DT_ROLE_WORKER].count == 0)
        return "a job without workers does no work";
    if (s->steps)
        return dt_steps_why_not(s, job, c);
    if (s->het && job->nodelist)
        return "layout het: every component would demand all the nodes of --nodelist, and they "
               "never share one";
    if (!both && job->listed > s->roles[DT_ROLE_WORKER].count)
        return "workers: fewer than the nodes of --nodelist, which the job must all have";
    return c ? cluster_why_not(s, job, c) : NULL;
}
