/* The allocation that trials of layout steps run in. */
#include "backend/slurm_private.h"
#include "util/slurm.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPORT_TIME 60.0 /* seconds for the tuner's own end */

static const node_info_t *find_node(const node_info_msg_t *nodes, const char *name)
{
    for (uint32_t i = 0; i < nodes->record_count; i++)
        if (nodes->node_array[i].name && strcmp(nodes->node_array[i].name, name) == 0)
            return &nodes->node_array[i];
    return NULL;
}

/* MiB of the job on a node; 0 where Slurm does not count memory. */
static uint64_t memory_of(const slurm_job_info_t *job, const slurm_conf_t *conf,
                          const node_info_t *node, size_t cpus)
{
    uint64_t asked = job->pn_min_memory;
    if (!(conf->select_type_param & CR_MEMORY))
        return 0;
    if (asked & MEM_PER_CPU)
        return (asked & ~MEM_PER_CPU) * cpus;
    return asked ? asked : node ? node->real_memory : 0;
}

static int add_nodes(struct dt_allocation *a, const slurm_job_info_t *job, const slurm_conf_t *conf,
                     const node_info_msg_t *nodes, struct dt_error *e)
{
    const char *list = getenv("SLURM_JOB_NODELIST"), *counts = getenv("SLURM_JOB_CPUS_PER_NODE");
    struct dt_strv names = DT_STRV_INIT;
    int *cpus = NULL, rc = -1;
    if (!list || !counts)
        dt_fail(e, "layout steps: SLURM_JOB_NODELIST or SLURM_JOB_CPUS_PER_NODE is not set here");
    else if (dt_hostlist_expand(list, &names, e) == 0)
        rc = dt_counts_expand(counts, &cpus) == (int)names.n
                 ? 0
                 : dt_fail(e, "SLURM_JOB_CPUS_PER_NODE=%s does not fit the node list %s", counts,
                           list);
    for (size_t i = 0; i < names.n && rc == 0; i++) {
        const node_info_t *node = find_node(nodes, names.v[i]);
        struct dt_room room = {.cpus = (size_t)cpus[i],
                               .mem_mib = memory_of(job, conf, node, (size_t)cpus[i])};
        if (i < job->gres_detail_cnt)
            room.gpus = dt_slurm_gpus(job->gres_detail_str[i]);
        dt_books_add(&a->books, names.v[i], &room, node ? node->threads : 1);
        size_t gpus = node ? dt_slurm_gpus(node->gres) : 0;
        a->books.node_gpus = i == 0 || gpus == a->books.node_gpus ? gpus : 0;
    }
    free(cpus);
    dt_strv_free(&names);
    return rc;
}

static const slurm_job_info_t *find_job(const job_info_msg_t *jobs, uint32_t id)
{
    for (uint32_t i = 0; i < jobs->record_count; i++)
        if (jobs->job_array[i].job_id == id)
            return &jobs->job_array[i];
    return NULL;
}

static int read_job(struct dt_allocation *a, struct dt_error *e)
{
    job_info_msg_t *jobs = NULL;
    node_info_msg_t *nodes = NULL;
    slurm_conf_t *conf = NULL;
    int rc = -1;
    if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS ||
        slurm_load_job_user(&jobs, getuid(), SHOW_DETAIL) != SLURM_SUCCESS ||
        slurm_load_node(0, &nodes, SHOW_ALL) != SLURM_SUCCESS) {
        dt_fail(e, "slurmctld does not answer: %s", slurm_strerror(errno));
        goto out;
    }
    const slurm_job_info_t *job = find_job(jobs, a->job);
    if (!job) {
        dt_fail(e, "layout steps: Slurm knows no job %u of yours, which SLURM_JOB_ID names",
                a->job);
        goto out;
    }
    a->billing = dt_slurm_billing(job);
    a->end = job->time_limit == INFINITE ? INFINITY : (double)job->end_time;
    rc = add_nodes(a, job, conf, nodes, e);
out:
    slurm_free_ctl_conf(conf);
    slurm_free_job_info_msg(jobs);
    slurm_free_node_info_msg(nodes);
    return rc;
}

int dt_allocation_read(struct dt_allocation *a, struct dt_error *e)
{
    const char *job = getenv("SLURM_JOB_ID");
    int64_t id;
    *a = (struct dt_allocation){0};
    if (!job || dt_parse_int64(job, &id) < 0 || id < 1 || id > UINT32_MAX)
        return dt_fail(e, "layout steps: there is no allocation here, SLURM_JOB_ID is not set; run "
                          "this within salloc or a batch job, or leave out --here");
    if (getenv("SLURM_HET_SIZE"))
        return dt_fail(e,
                       "layout steps: trials cannot share a heterogeneous job; run this within a "
                       "plain one");
    a->job = (uint32_t)id;
    if (read_job(a, e) == 0)
        return 0;
    dt_allocation_free(a);
    return -1;
}

struct dt_cluster *dt_allocation_cluster(const struct dt_allocation *a)
{
    struct dt_cluster *c = dt_xcalloc(1, sizeof(*c));
    c->limits.max_time = INFINITY;
    for (size_t i = 0; i < a->books.n; i++) {
        const struct dt_room *all = &a->books.v[i].all;
        dt_cluster_add(c, &(struct dt_node_class){.count = 1,
                                                  .cpus = all->cpus,
                                                  .gpus = all->gpus,
                                                  .mem_mib = all->mem_mib,
                                                  .threads = a->books.threads});
    }
    return c;
}

double dt_allocation_closes(const struct dt_allocation *a)
{
    return a->end - REPORT_TIME;
}

void dt_allocation_free(struct dt_allocation *a)
{
    dt_books_free(&a->books);
}
