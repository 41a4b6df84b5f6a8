#include "expand/expand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A count in an option's value; of "2-4" the first number, and 2k is 2048. 0 where the option is
 * absent. */
static int count_of(const struct dt_submission *s, const char *name, size_t *out,
                    struct dt_error *e)
{
    const struct dt_option *o = dt_submission_get(s, name);
    *out = 0;
    if (!o || !o->value)
        return 0;
    char *end;
    if (strcmp(name, "nodes") == 0 && o->value[0] == '-') { /* "-4": up to four */
        *out = 1;
        return 0;
    }
    unsigned long long n = strtoull(o->value, &end, 10);
    if ((*end == 'k' || *end == 'K') && n < 10000000) {
        n *= 1024;
        end++;
    }
    bool ok = end != o->value && n >= 1 && n <= 10000000 && (!*end || *end == '-' || *end == ',');
    if (ok) {
        *out = (size_t)n;
        return 0;
    }
    char *place = dt_option_place(s, o);
    dt_fail(e, "%s: \"%s\" is not a number of %s above 0", place, o->value, name);
    free(place);
    return -1;
}

/* [type:]N of a GPU option, or the gpu part of --gres; 0 where there is none. */
static size_t gpu_count(const char *text, char **type)
{
    const char *colon = strrchr(text, ':');
    char *end;
    const char *digits = colon ? colon + 1 : text;
    unsigned long long n = strtoull(digits, &end, 10);
    if (end == digits || *end) { /* "k80" or "1080ti" alone is one of that type */
        free(*type);
        *type = dt_xstrdup(text);
        return 1;
    }
    if (colon && colon > text) {
        free(*type);
        *type = dt_xstrndup(text, (size_t)(colon - text));
    }
    return (size_t)n;
}

/* The GPUs a node gets by --gres=gpu[:type]:N. */
static size_t gres_gpus(const char *gres, char **type)
{
    struct dt_strv parts = DT_STRV_INIT;
    size_t n = 0;
    dt_strv_split(&parts, gres, ",");
    for (size_t i = 0; i < parts.n; i++) {
        const char *p = parts.v[i];
        if (dt_starts_with(p, "gres:"))
            p += 5;
        if (strcmp(p, "gpu") == 0)
            n += 1;
        else if (dt_starts_with(p, "gpu:") || dt_starts_with(p, "gpu="))
            n += gpu_count(p + 4, type);
    }
    dt_strv_free(&parts);
    return n;
}

size_t dt_gres_gpus(const char *gres)
{
    char *type = NULL;
    size_t n = gres_gpus(gres, &type);
    free(type);
    return n;
}

char *dt_gres_others(const char *gres)
{
    static const char *const gpus[] = {"gpu", "shard", "mps"};
    struct dt_strv parts = DT_STRV_INIT, kept = DT_STRV_INIT;
    dt_strv_split(&parts, gres, ",");
    for (size_t i = 0; i < parts.n; i++) {
        const char *p = dt_starts_with(parts.v[i], "gres:") ? parts.v[i] + 5 : parts.v[i];
        size_t n = strcspn(p, ":=");
        bool gpu = false;
        for (size_t j = 0; j < sizeof(gpus) / sizeof(*gpus); j++)
            gpu |= strlen(gpus[j]) == n && strncmp(p, gpus[j], n) == 0;
        if (!gpu)
            dt_strv_add(&kept, parts.v[i]);
    }
    char *text = dt_strv_join(&kept, ",");
    dt_strv_free(&parts);
    dt_strv_free(&kept);
    return text;
}

/* "k80:2,p100:1", or "gpu:k80:2,gpu:p100:1" of --gres: more than one type. */
static bool mixed_types(const char *text, bool gres)
{
    const char *first = gres ? strstr(text, "gpu") : text;
    return first && strstr(first, gres ? ",gpu" : ",");
}

/* --gpu-bind that leaves each task its own GPUs, though they were not asked for by task. */
static bool binds_apart(const char *bind)
{
    return bind && (strstr(bind, "single:") || strstr(bind, "per_task:") ||
                    strstr(bind, "map_gpu:") || strstr(bind, "mask_gpu:"));
}

struct gpu_share {
    size_t gpus, tasks; /* so many GPUs for so many tasks */
};

static struct gpu_share read_gpus(const struct dt_submission *s, struct dt_job *job,
                                  size_t per_node_tasks, size_t sockets)
{
    static const char *const names[] = {"gpus-per-task", "gpus-per-node", "gpus-per-socket", "gpus",
                                        "gres"};
    const struct gpu_share over[] = {{1, 1},
                                     {1, per_node_tasks},
                                     {sockets ? sockets : 1, per_node_tasks},
                                     {1, job->tasks},
                                     {1, per_node_tasks}};
    const char *bind = dt_submission_value(s, "gpu-bind");
    struct gpu_share g = {0, 1};
    bool mixed = false;
    for (int i = 0; i < 5 && g.gpus == 0; i++) {
        const char *value = dt_submission_value(s, names[i]);
        if (!value)
            continue;
        size_t n = i == 4 ? gres_gpus(value, &job->gpu_type) : gpu_count(value, &job->gpu_type);
        g = (struct gpu_share){n * over[i].gpus, over[i].tasks};
        mixed = n > 0 && mixed_types(value, i == 4);
        job->gpus_bound = n > 0 && (i == 0 ? !bind || !strstr(bind, "none") : binds_apart(bind));
        job->gpus_total = i == 3 ? n : 0;
    }
    if (job->tasks_per_gpu)
        g = (struct gpu_share){1, job->tasks_per_gpu};
    job->gpus = g.gpus / g.tasks;
    job->gpus_shared = g.gpus > 0 && (g.gpus % g.tasks != 0 || mixed || job->tasks_per_gpu);
    const char *gres = dt_submission_value(s, "gres");
    if (gres && g.gpus == 0) /* parts of GPUs */
        job->gpus_shared = strstr(gres, "shard") || strstr(gres, "mps");
    if (job->gpus_shared) {
        job->gpus = 0;
        job->gpus_bound = false;
    } else {
        job->gpus_total = 0;
    }
    if (mixed) {
        free(job->gpu_type);
        job->gpu_type = NULL;
    }
    return g;
}

static size_t part_of(size_t whole, struct gpu_share g)
{
    size_t part = whole * g.gpus / g.tasks;
    return part ? part : 1;
}

static int read_memory(const struct dt_submission *s, struct dt_job *job, struct gpu_share g,
                       struct dt_error *e)
{
    static const char *const names[] = {"mem", "mem-per-cpu", "mem-per-gpu"};
    for (int i = 0; i < 3; i++) {
        const struct dt_option *o = dt_submission_get(s, names[i]);
        uint64_t mib;
        if (!o || !o->value)
            continue;
        if (dt_parse_mem(o->value, &mib) < 0) {
            char *place = dt_option_place(s, o);
            dt_fail(e, "%s: \"%s\" is no memory size; write it like 512M or 4G", place, o->value);
            free(place);
            return -1;
        }
        if (i == 0)
            job->node_mem_mib = mib;
        else
            job->mem_mib = i == 1 ? mib * job->cpus : g.gpus && mib ? part_of(mib, g) : 0;
    }
    return 0;
}

/* The nodes of --nodelist; 0 where it is the name of a file. */
static size_t listed_nodes(const char *list)
{
    struct dt_strv names = DT_STRV_INIT;
    size_t n = 0;
    if (list && !strchr(list, '/') && dt_hostlist_expand(list, &names, NULL) == 0)
        n = names.n;
    dt_strv_free(&names);
    return n;
}

/* Nodes and tasks; returns the tasks of a node through *per_node. */
static int read_tasks(const struct dt_submission *s, struct dt_job *job, size_t *per_node,
                      struct dt_error *e)
{
    size_t gpus = 0;
    if (count_of(s, "ntasks", &job->tasks, e) < 0 || count_of(s, "nodes", &job->nodes, e) < 0 ||
        count_of(s, "ntasks-per-node", &job->tasks_per_node, e) < 0 ||
        count_of(s, "ntasks-per-gpu", &job->tasks_per_gpu, e) < 0)
        return -1;
    if (!job->tasks_per_gpu && count_of(s, "ntasks-per-tres", &job->tasks_per_gpu, e) < 0)
        return -1;
    const char *nodes = dt_submission_value(s, "nodes"), *total = dt_submission_value(s, "gpus");
    const char *dash = nodes ? strchr(nodes, '-') : NULL;
    job->nodes_max = dash ? strtoul(dash + 1, NULL, 10) : 0;
    job->listed = listed_nodes(dt_submission_value(s, "nodelist"));
    job->nodelist = dt_submission_get(s, "nodelist") || dt_submission_get(s, "nodefile");
    job->overcommit = dt_submission_get(s, "overcommit") != NULL;
    if (job->tasks_per_gpu && total) {
        char *type = NULL;
        gpus = gpu_count(total, &type);
        free(type);
    }
    if (!job->tasks && gpus) /* as sbatch itself reckons */
        job->tasks = gpus * job->tasks_per_gpu;
    *per_node = job->tasks_per_node;
    if (!job->tasks)
        job->tasks = (job->nodes ? job->nodes : 1) * (*per_node ? *per_node : 1);
    if (!*per_node)
        *per_node = job->nodes ? (job->tasks + job->nodes - 1) / job->nodes : job->tasks;
    return 0;
}

int dt_job_read(const struct dt_submission *s, struct dt_job *job, struct dt_error *e)
{
    size_t per_node, sockets;
    *job = (struct dt_job){0};
    if (read_tasks(s, job, &per_node, e) < 0 || count_of(s, "cpus-per-task", &job->cpus, e) < 0 ||
        count_of(s, "cpus-per-gpu", &job->cpus_per_gpu, e) < 0 ||
        count_of(s, "sockets-per-node", &sockets, e) < 0)
        return -1;
    struct gpu_share gpus = read_gpus(s, job, per_node, sockets);
    if (job->cpus || !gpus.gpus)
        job->cpus_per_gpu = 0;
    if (!job->cpus)
        job->cpus = job->cpus_per_gpu ? part_of(job->cpus_per_gpu, gpus) : 1;
    if (read_memory(s, job, gpus, e) < 0) {
        dt_job_free(job);
        return -1;
    }
    job->share_mib = job->node_mem_mib / per_node;
    const struct dt_option *time = dt_submission_get(s, "time");
    if (time && time->value && dt_parse_time(time->value, &job->time) < 0) {
        char *place = dt_option_place(s, time);
        dt_fail(e,
                "%s: \"%s\" is no time limit; write it as Slurm does: 90 (minutes), 1:30:00, 1-12",
                place, time->value);
        free(place);
        dt_job_free(job);
        return -1;
    }
    const char *constraint = dt_submission_value(s, "constraint"),
               *partition = dt_submission_value(s, "partition");
    job->constraint = constraint ? dt_xstrdup(constraint) : NULL;
    job->partition = partition ? dt_xstrdup(partition) : NULL;
    const char *name = dt_submission_value(s, "job-name");
    const char *base = s->script_path ? strrchr(s->script_path, '/') : NULL;
    if (!name && s->script_path && strcmp(s->script_path, "--wrap") == 0)
        name = "wrap";
    if (!name && s->script_path && strcmp(s->script_path, "standard input") == 0)
        name = "sbatch"; /* both as sbatch itself names such jobs */
    dt_job_request(s, job);
    job->name = dt_xstrdup(name ? name : base ? base + 1 : s->script_path ? s->script_path : "job");
    return 0;
}

void dt_job_free(struct dt_job *job)
{
    free(job->gpu_type);
    free(job->name);
    free(job->constraint);
    free(job->partition);
    free(job->gres);
    free(job->licenses);
    *job = (struct dt_job){0};
}
