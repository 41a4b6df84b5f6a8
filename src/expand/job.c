#include "expand/expand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *value_of(const struct dt_submission *s, const char *name)
{
    const struct dt_option *o = dt_submission_get(s, name);
    return o ? o->value : NULL;
}

/* A count in an option's value; of "2-4" the first number, and 2k is 2048. 0 where the option is absent. */
static int count_of(const struct dt_submission *s, const char *name, size_t *out, struct dt_error *e)
{
    const struct dt_option *o = dt_submission_get(s, name);
    *out = 0;
    if (!o || !o->value)
        return 0;
    char *end;
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

static void read_gpus(const struct dt_submission *s, struct dt_job *job, size_t per_node_tasks)
{
    const char *per_task = value_of(s, "gpus-per-task"), *per_node = value_of(s, "gpus-per-node");
    const char *total = value_of(s, "gpus"), *gres = value_of(s, "gres");
    size_t n = 0, over = 1;
    if (per_task) {
        n = gpu_count(per_task, &job->gpu_type);
        job->gpus_bound = true;
    } else if (per_node) {
        n = gpu_count(per_node, &job->gpu_type);
        over = per_node_tasks;
    } else if (total) {
        n = gpu_count(total, &job->gpu_type);
        over = job->tasks;
    } else if (gres) {
        n = gres_gpus(gres, &job->gpu_type);
        over = per_node_tasks;
    }
    job->gpus = n / over;
    job->gpus_shared = n > 0 && (n < over || n % over != 0);
    if (job->gpus_shared)
        job->gpus = 0;
}

static int read_memory(const struct dt_submission *s, struct dt_job *job, struct dt_error *e)
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
            job->mem_mib = mib * (i == 1 ? job->cpus : job->gpus);
    }
    return 0;
}

int dt_job_read(const struct dt_submission *s, struct dt_job *job, struct dt_error *e)
{
    size_t tasks, nodes, per_node, per_gpu;
    *job = (struct dt_job){0};
    if (count_of(s, "ntasks", &tasks, e) < 0 || count_of(s, "nodes", &nodes, e) < 0 ||
        count_of(s, "ntasks-per-node", &per_node, e) < 0 ||
        count_of(s, "cpus-per-task", &job->cpus, e) < 0 ||
        count_of(s, "cpus-per-gpu", &per_gpu, e) < 0)
        return -1;
    job->tasks_per_node = per_node;
    job->tasks = tasks ? tasks : (nodes ? nodes : 1) * (per_node ? per_node : 1);
    if (!per_node)
        per_node = nodes ? (job->tasks + nodes - 1) / nodes : job->tasks;
    read_gpus(s, job, per_node);
    if (!job->cpus)
        job->cpus = per_gpu && job->gpus ? per_gpu * job->gpus : 1;
    if (read_memory(s, job, e) < 0) {
        dt_job_free(job);
        return -1;
    }
    const struct dt_option *time = dt_submission_get(s, "time");
    if (time && time->value && dt_parse_time(time->value, &job->time) < 0) {
        char *place = dt_option_place(s, time);
        dt_fail(e, "%s: \"%s\" is no time limit; write it as Slurm does: 90 (minutes), 1:30:00, 1-12",
                place, time->value);
        free(place);
        dt_job_free(job);
        return -1;
    }
    job->nodelist = dt_submission_get(s, "nodelist") != NULL;
    const char *name = value_of(s, "job-name");
    const char *base = s->script_path ? strrchr(s->script_path, '/') : NULL;
    if (!name && s->script_path && strcmp(s->script_path, "--wrap") == 0)
        name = "wrap";
    if (!name && s->script_path && strcmp(s->script_path, "standard input") == 0)
        name = "sbatch"; /* both as sbatch itself names such jobs */
    job->name = dt_xstrdup(name ? name : base ? base + 1 : s->script_path ? s->script_path : "job");
    return 0;
}

void dt_job_free(struct dt_job *job)
{
    free(job->gpu_type);
    free(job->name);
    *job = (struct dt_job){0};
}
