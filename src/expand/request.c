/* What a shape requests of Slurm: the options that the expansion writes, as numbers. */
#include "expand/expand.h"

#include <stdlib.h>
#include <string.h>

/* ---- the job as submitted ---- */

static size_t count(const struct dt_submission *s, const char *name)
{
    const char *value = dt_submission_value(s, name);
    size_t n = value ? strtoul(value, NULL, 10) : 0;
    return value && strpbrk(value, "kK") ? n * 1024 : n;
}

static void read_nodes(const struct dt_submission *s, struct dt_request *a)
{
    const char *value = dt_submission_value(s, "nodes");
    char *end;
    if (!value)
        return;
    a->nodes = *value == '-' ? 1 : strtoul(value, &end, 10);
    const char *dash = strchr(value, '-');
    a->nodes *= *value != '-' && strchr("kK", *end) && *end ? 1024 : 1;
    a->nodes_max = dash ? strtoul(dash + 1, NULL, 10) : a->nodes;
}

/* --extra-node-info=sockets[:cores[:threads]]; * stands for any. */
static void read_geometry(const struct dt_submission *s, struct dt_request *a)
{
    size_t *const of[] = {&a->sockets, &a->cores, &a->threads};
    const char *text = dt_submission_value(s, "extra-node-info");
    a->sockets = count(s, "sockets-per-node");
    a->cores = count(s, "cores-per-socket");
    a->threads = count(s, "threads-per-core");
    for (int i = 0; text && i < 3; i++) {
        *of[i] = strtoul(text, NULL, 10);
        text = strchr(text, ':') ? strchr(text, ':') + 1 : NULL;
    }
}

static void read_memory(const struct dt_submission *s, struct dt_request *a)
{
    static const struct {
        const char *name;
        enum dt_memory_of of;
    } forms[] = {
        {"mem", DT_MEMORY_NODE}, {"mem-per-cpu", DT_MEMORY_CPU}, {"mem-per-gpu", DT_MEMORY_GPU}};
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        const char *value = dt_submission_value(s, forms[i].name);
        if (value && dt_parse_mem(value, &a->mem_mib) == 0)
            a->memory = forms[i].of;
    }
}

/* The number at the end of "a100:4", "4"; 1 of a type alone. */
static size_t last_number(const char *text)
{
    const char *colon = strrchr(text, ':');
    char *end;
    size_t n = strtoul(colon ? colon + 1 : text, &end, 10);
    return *end ? 1 : n;
}

static size_t gpus_of(const struct dt_submission *s, const char *name)
{
    struct dt_strv types = DT_STRV_INIT;
    const char *value = dt_submission_value(s, name);
    size_t n = 0;
    dt_strv_split(&types, value ? value : "", ",");
    for (size_t i = 0; i < types.n; i++)
        n += last_number(types.v[i]);
    dt_strv_free(&types);
    return n;
}

void dt_job_request(const struct dt_submission *s, struct dt_job *job)
{
    struct dt_request *a = &job->given;
    const char *exclusive = dt_submission_value(s, "exclusive"),
               *gres = dt_submission_value(s, "gres");
    char *rest = gres ? dt_gres_others(gres) : NULL;
    *a = (struct dt_request){0};
    read_nodes(s, a);
    read_geometry(s, a);
    read_memory(s, a);
    a->tasks = count(s, "ntasks");
    a->cpus = count(s, "cpus-per-task");
    a->tasks_per_node = count(s, "ntasks-per-node");
    a->tasks_per_socket = count(s, "ntasks-per-socket");
    a->tasks_per_core = count(s, "ntasks-per-core");
    a->gpus_per_task = gpus_of(s, "gpus-per-task");
    a->gpus_per_node = gpus_of(s, "gpus-per-node");
    a->gpus_per_socket = gpus_of(s, "gpus-per-socket");
    a->gpus = gpus_of(s, "gpus");
    if (gres && !a->gpus_per_node)
        a->gpus_per_node = dt_gres_gpus(gres);
    a->cpus_per_gpu = count(s, "cpus-per-gpu");
    a->gpu_type = job->gpu_type;
    job->gres = rest && *rest ? rest : NULL;
    if (!job->gres)
        free(rest);
    a->gres = job->gres;
    const char *tmp = dt_submission_value(s, "tmp"), *licenses = dt_submission_value(s, "licenses");
    if (tmp)
        dt_parse_mem(tmp, &a->tmp_mib);
    job->licenses = licenses ? dt_xstrdup(licenses) : NULL;
    a->licenses = job->licenses;
    a->constraint = NULL; /* the cluster holds only nodes that allow it */
    if (a->nodes < job->listed) { /* all nodes of --nodelist */
        a->nodes = job->listed;
        a->nodes_max = a->nodes_max && a->nodes_max < a->nodes ? a->nodes : a->nodes_max;
    }
    a->time = job->time;
    a->overcommit = job->overcommit;
    a->whole_nodes =
        dt_submission_get(s, "exclusive") && (!exclusive || strcmp(exclusive, "exclusive") == 0);
}

/* ---- trials ---- */

/* What all trials ask for as the user wrote it. */
static struct dt_request common(const struct dt_job *job)
{
    const struct dt_request *g = &job->given;
    return (struct dt_request){.sockets = g->sockets,
                               .cores = g->cores,
                               .threads = g->threads,
                               .memory = g->memory,
                               .mem_mib = g->mem_mib,
                               .gpu_type = g->gpu_type,
                               .gres = g->gres,
                               .tmp_mib = g->tmp_mib,
                               .time = g->time,
                               .licenses = g->licenses,
                               .whole_nodes = g->whole_nodes,
                               .overcommit = g->overcommit};
}

static void set_memory(struct dt_request *a, enum dt_memory_of of, uint64_t mib, size_t parts)
{
    a->memory = of;
    a->mem_mib = (mib + parts - 1) / parts;
}

/* GPUs that tasks share, as put_shared_gpus() writes them. */
static void share_gpus(struct dt_request *a, const struct dt_job *job, size_t workers, size_t nodes)
{
    size_t total = job->tasks_per_gpu ? (workers + job->tasks_per_gpu - 1) / job->tasks_per_gpu
                                      : job->gpus_total;
    if (!total) {
        a->gpus_per_task = job->given.gpus_per_task;
        a->gpus_per_node = job->given.gpus_per_node;
        a->gpus_per_socket = job->given.gpus_per_socket;
    } else if (nodes > 1) {
        a->gpus_per_node = (total + nodes - 1) / nodes;
    } else {
        a->gpus = total;
    }
}

static struct dt_request role_request(const struct dt_shape *s, const struct dt_job *job, int role)
{
    const struct dt_role *r = &s->roles[role];
    struct dt_request a = common(job);
    a.tasks = r->count;
    a.cpus = r->cpus;
    a.nodes = r->nodes;
    a.nodes_max = r->nodes_max > r->nodes ? r->nodes_max : r->nodes;
    a.tasks_per_node = r->per_node;
    a.tasks_per_core = job->given.tasks_per_core;
    a.tasks_per_socket = role == DT_ROLE_WORKER ? job->given.tasks_per_socket : 0;
    a.constraint = r->constraint;
    a.gpus_per_task = r->gpus;
    a.tmp_mib = r->tmp_mib ? r->tmp_mib : a.tmp_mib;
    uint64_t mem = dt_role_mem_written(s, job, role);
    if (mem && a.memory == DT_MEMORY_GPU && r->gpus)
        set_memory(&a, DT_MEMORY_GPU, mem, r->gpus);
    else if (mem)
        set_memory(&a, DT_MEMORY_CPU, mem, r->cpus);
    else if (a.memory == DT_MEMORY_GPU && !r->gpus && !r->gpus_as_given && job->mem_mib)
        set_memory(&a, DT_MEMORY_CPU, job->mem_mib, job->cpus);
    if (r->gpus_as_given)
        share_gpus(&a, job, r->count, r->nodes);
    return a;
}

/* Both roles side by side: every node gets the largest share, as put_packed() writes it. */
static struct dt_request packed_request(const struct dt_shape *s, const struct dt_job *job)
{
    const struct dt_role *ps = &s->roles[DT_ROLE_PS], *workers = &s->roles[DT_ROLE_WORKER];
    struct dt_node_share share = dt_shape_share(s, job, s->nodes);
    struct dt_request a = common(job);
    a.nodes = a.nodes_max = s->nodes;
    a.tasks = a.overcommit ? ps->count + workers->count : s->nodes;
    a.tasks_per_node = a.overcommit ? 0 : 1;
    a.cpus = share.cpus;
    a.gpus_per_node = share.gpus;
    a.tmp_mib = share.tmp_mib ? share.tmp_mib : a.tmp_mib;
    if (ps->mem_mib || workers->mem_mib || (a.memory == DT_MEMORY_GPU && share.mem_mib))
        set_memory(&a, DT_MEMORY_NODE, share.mem_mib, 1);
    if (workers->gpus_as_given)
        share_gpus(&a, job, workers->count, s->nodes);
    a.constraint =
        workers->constraint; /* that of the servers is looked at where the nodes are chosen */
    return a;
}

size_t dt_shape_requests(const struct dt_shape *s, const struct dt_job *job,
                         struct dt_request requests[DT_ROLES])
{
    size_t n = 0;
    if (s->as_submitted)
        requests[n++] = job->given;
    else if (s->nodes)
        requests[n++] = packed_request(s, job);
    else
        for (int r = 0; r < DT_ROLES; r++)
            if (s->roles[r].count)
                requests[n++] = role_request(s, job, r);
    for (size_t i = 1; i < n; i++)
        requests[i].licenses = NULL; /* Slurm takes them from the first component only */
    return n;
}
