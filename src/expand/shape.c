#include "expand/expand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const dt_role_names[DT_ROLES] = {"ps", "worker"};

/* ---- from a configuration to roles ---- */

static struct dt_role role_of(const struct dt_space *space, const double *x, const struct dt_job *job,
                              int role)
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
    r.cpus = (size_t)value[0];
    r.gpus = (size_t)value[1];
    r.nodes = (size_t)value[2];
    r.mem_mib = (uint64_t)value[3];
    r.tmp_mib = (uint64_t)value[4];
    r.count = role == DT_ROLE_PS ? (size_t)dt_space_value(space, x, "ps", 0)
                                 : (size_t)dt_space_value(space, x, "workers", (double)job->tasks);
    return r;
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
        for (size_t j = 0; space->params[i].hyper && j < spec->nparams; j++)
            if (strcmp(spec->params[j].name, name) == 0)
                x[i] = spec->submitted[j];
    }
}

/* ---- what fits where ---- */

size_t dt_share(int role, size_t count, size_t n, size_t i)
{
    size_t place = role == DT_ROLE_PS ? i : n - 1 - i;
    return count / n + (place < count % n);
}

/* Tasks of a role that a node of the class holds. */
static size_t fit(const struct dt_role *r, int role, const struct dt_job *job,
                  const struct dt_node_class *k)
{
    size_t n = r->cpus ? k->cpus / r->cpus : SIZE_MAX;
    if (r->gpus)
        n = k->gpus / r->gpus < n ? k->gpus / r->gpus : n;
    if (r->mem_mib)
        n = k->mem_mib / r->mem_mib < n ? k->mem_mib / r->mem_mib : n;
    else if (job->mem_mib)
        n = k->mem_mib / job->mem_mib < n ? k->mem_mib / job->mem_mib : n;
    else if (job->node_mem_mib > k->mem_mib)
        n = 0;
    if (r->tmp_mib > k->tmp_mib)
        n = 0;
    if (role == DT_ROLE_WORKER && job->tasks_per_node && job->tasks_per_node < n)
        n = job->tasks_per_node;
    return n;
}

/* Takes nodes for a role out of `left` (node counts by class), largest class first or last; false if too few. */
static bool take(const struct dt_role *r, int role, const struct dt_job *job,
                 const struct dt_cluster *c, size_t *left, bool largest_first)
{
    size_t tasks = r->count, used = 0;
    size_t share = r->nodes ? (r->count + r->nodes - 1) / r->nodes : 0;
    for (size_t j = 0; j < c->n && tasks; j++) {
        size_t i = largest_first ? j : c->n - 1 - j;
        size_t per_node = fit(r, role, job, &c->classes[i]);
        if (share)
            per_node = per_node >= share ? share : 0;
        if (!per_node)
            continue;
        size_t need = (tasks + per_node - 1) / per_node;
        size_t n = need < left[i] ? need : left[i];
        left[i] -= n;
        used += n;
        tasks -= n * per_node < tasks ? n * per_node : tasks;
    }
    return tasks == 0 && (!c->max_nodes || used <= c->max_nodes);
}

static bool fits_apart(const struct dt_shape *s, const struct dt_job *job, const struct dt_cluster *c)
{
    bool ok = false;
    for (int first = 0; first < DT_ROLES && !ok; first++) {
        size_t *left = dt_xcalloc(c->n, sizeof(*left));
        for (size_t i = 0; i < c->n; i++)
            left[i] = c->classes[i].count;
        int second = 1 - first;
        ok = take(&s->roles[first], first, job, c, left, true) &&
             take(&s->roles[second], second, job, c, left, false);
        free(left);
    }
    return ok;
}

/* Whether n nodes can each hold their share of both roles. */
static bool fits_on(size_t n, const struct dt_shape *s, const struct dt_job *job,
                    const struct dt_cluster *c)
{
    struct dt_role most = {.cpus = 0};
    for (size_t i = 0; i < n; i++) {
        size_t cpus = 0, gpus = 0;
        uint64_t mem = 0, tmp = 0;
        for (int r = 0; r < DT_ROLES; r++) {
            const struct dt_role *role = &s->roles[r];
            size_t k = dt_share(r, role->count, n, i);
            cpus += k * role->cpus;
            gpus += k * role->gpus;
            mem += k * (role->mem_mib ? role->mem_mib : job->mem_mib);
            tmp = role->tmp_mib > tmp ? role->tmp_mib : tmp;
        }
        most.cpus = cpus > most.cpus ? cpus : most.cpus;
        most.gpus = gpus > most.gpus ? gpus : most.gpus;
        most.mem_mib = mem > most.mem_mib ? mem : most.mem_mib;
        most.tmp_mib = tmp > most.tmp_mib ? tmp : most.tmp_mib;
    }
    size_t workers = (s->roles[DT_ROLE_WORKER].count + n - 1) / n;
    if (job->tasks_per_node && workers > job->tasks_per_node)
        return false;
    size_t nodes = 0;
    for (size_t i = 0; i < c->n; i++)
        if (fit(&most, DT_ROLE_PS, job, &c->classes[i]) >= 1)
            nodes += c->classes[i].count;
    return nodes >= n && (!c->max_nodes || n <= c->max_nodes);
}

void dt_shape_make(const struct dt_space *space, const double *x, const struct dt_job *job,
                   const struct dt_cluster *cluster, struct dt_shape *s)
{
    *s = (struct dt_shape){0};
    for (int r = 0; r < DT_ROLES; r++)
        s->roles[r] = role_of(space, x, job, r);
    bool both = s->roles[DT_ROLE_PS].count && s->roles[DT_ROLE_WORKER].count;
    const char *layout = dt_space_label(space, x, "layout");
    s->het = both && layout && strcmp(layout, "het") == 0;
    if (s->het || !both)
        return;
    size_t given = s->roles[0].nodes > s->roles[1].nodes ? s->roles[0].nodes : s->roles[1].nodes;
    size_t tasks = s->roles[0].count + s->roles[1].count;
    size_t most = cluster ? dt_cluster_nodes(cluster) : 1;
    if (given) {
        s->nodes = !cluster || fits_on(given, s, job, cluster) ? given : 0;
        return;
    }
    for (size_t n = 1; n <= most && n <= tasks && !s->nodes; n++)
        if (!cluster || fits_on(n, s, job, cluster))
            s->nodes = n;
}

const char *dt_shape_why_not(const struct dt_shape *s, const struct dt_job *job,
                             const struct dt_cluster *c)
{
    bool both = s->roles[DT_ROLE_PS].count && s->roles[DT_ROLE_WORKER].count;
    if (s->roles[DT_ROLE_WORKER].count == 0)
        return "a job without workers does no work";
    if (!c)
        return NULL;
    if (s->het)
        return fits_apart(s, job, c)
                   ? NULL
                   : "layout het: too few or too small nodes (components never share a node)";
    if (both)
        return s->nodes ? NULL : "layout packed: more CPUs, memory or GPUs than the nodes have";
    size_t *left = dt_xcalloc(c->n, sizeof(*left));
    for (size_t i = 0; i < c->n; i++)
        left[i] = c->classes[i].count;
    bool ok = take(&s->roles[DT_ROLE_WORKER], DT_ROLE_WORKER, job, c, left, true);
    free(left);
    return ok ? NULL : "workers: more CPUs, memory or GPUs than the nodes have";
}
