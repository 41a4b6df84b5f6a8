#include "backend/slurm_private.h"
#include "util/slurm.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Pending reasons that waiting does not cure. */
static const struct {
    uint32_t reason;
    const char *words;
} hopeless[] = {
    {WAIT_PART_NODE_LIMIT, "PartitionNodeLimit: more nodes than the partition allows"},
    {WAIT_PART_TIME_LIMIT, "PartitionTimeLimit: --time is longer than the partition allows"},
    {FAIL_BAD_CONSTRAINTS, "BadConstraints: no nodes are like that"},
    {FAIL_ACCOUNT, "InvalidAccount"},
    {FAIL_QOS, "InvalidQOS"},
    {WAIT_QOS_MAX_CPU_PER_JOB, "QOSMaxCpuPerJobLimit"},
    {WAIT_QOS_MAX_NODE_PER_JOB, "QOSMaxNodePerJobLimit"},
    {WAIT_QOS_MAX_WALL_PER_JOB, "QOSMaxWallDurationPerJobLimit"},
    {WAIT_PN_MEM_LIMIT, "MaxMemPerLimit: more memory than the partition allows"},
    {WAIT_QOS_MAX_MEM_PER_JOB, "QOSMaxMemoryPerJob"},
    {WAIT_QOS_MAX_GRES_PER_JOB, "QOSMaxGRESPerJob"},
    {WAIT_ASSOC_MAX_MEM_PER_JOB, "AssocMaxMemPerJob"},
    {WAIT_ASSOC_MAX_GRES_PER_JOB, "AssocMaxGRESPerJob"},
    {WAIT_ASSOC_MAX_CPU_PER_JOB, "AssocMaxCpuPerJobLimit"},
    {WAIT_ASSOC_MAX_NODE_PER_JOB, "AssocMaxNodePerJobLimit"},
    {WAIT_ASSOC_MAX_WALL_PER_JOB, "AssocMaxWallDurationPerJobLimit"},
};

static void take_reason(struct dt_slurm_job *job, const slurm_job_info_t *info)
{
    for (size_t i = 0; i < sizeof(hopeless) / sizeof(*hopeless); i++) {
        if (job->state == JOB_PENDING && info->state_reason == hopeless[i].reason) {
            job->never = true;
            job->reason = dt_xstrdup(hopeless[i].words);
            return;
        }
    }
    job->launch_failed = job->state == JOB_PENDING && info->priority == 0 && info->state_desc &&
                         dt_starts_with(info->state_desc, "launch failed");
    job->never = job->launch_failed;
    if (info->state_desc)
        job->reason = dt_xstrdup(info->state_desc);
}

double dt_slurm_billing(const struct job_info *job)
{
    double b = job->billable_tres;
    return b >= 0 && b < (double)NO_VAL ? b : (double)job->num_cpus;
}

/* A partition or QOS with GraceTime tells the tasks first, and Slurm takes what they do then for an end of its own. */
static uint32_t state_of(const slurm_job_info_t *info)
{
    uint32_t state = info->job_state & JOB_STATE_BASE;
    return info->preempt_time && (state == JOB_COMPLETE || state == JOB_FAILED) ? JOB_PREEMPTED : state;
}

static void take(struct dt_slurm_jobs *jobs, const slurm_job_info_t *info)
{
    jobs->v = dt_xrealloc(jobs->v, jobs->n + 1, sizeof(*jobs->v));
    struct dt_slurm_job *job = &jobs->v[jobs->n++];
    *job = (struct dt_slurm_job){
        .id = info->job_id,
        .name = dt_xstrdup(info->name ? info->name : ""),
        .state = state_of(info),
        .over = (info->job_state & JOB_STATE_BASE) >= JOB_COMPLETE,
        .completing = info->job_state & JOB_COMPLETING,
        .preempted = info->preempt_time != 0,
        .exit_code = (int)(info->exit_code >> 8 & 0xff),
        .signal = (int)(info->exit_code & 0x7f),
        .start = (double)info->start_time,
        .end = (double)info->end_time,
        .billing = dt_slurm_billing(info),
        .nodes = (double)info->num_nodes,
    };
    take_reason(job, info);
}

/* Adds a component other than the leader to its leader. */
static void add_component(struct dt_slurm_jobs *jobs, const slurm_job_info_t *info)
{
    struct dt_slurm_job *leader = (struct dt_slurm_job *)dt_slurm_jobs_find(jobs, info->het_job_id);
    struct dt_slurm_job part = {.state = state_of(info)};
    if (!leader)
        return;
    leader->billing += dt_slurm_billing(info);
    leader->nodes += (double)info->num_nodes;
    leader->over &= part.state >= JOB_COMPLETE;
    leader->completing |= (info->job_state & JOB_COMPLETING) != 0;
    leader->preempted |= info->preempt_time != 0;
    take_reason(&part, info);
    if (part.never && !leader->never) {
        free(leader->reason);
        leader->never = true;
        leader->launch_failed = part.launch_failed;
        leader->reason = part.reason;
        part.reason = NULL;
    }
    /* one that somebody cancels leaves the others running, or failing of it; where the script fails all fail with it */
    bool alone = leader->state < JOB_COMPLETE && part.state > JOB_COMPLETE;
    if (part.state == JOB_OOM || part.state == JOB_NODE_FAIL || part.state == JOB_CANCELLED ||
        part.state == JOB_PREEMPTED || alone)
        leader->state = part.state;
    free(part.reason);
}

/* SHOW_ALL: those in hidden partitions, too. */
int dt_slurm_jobs_load(struct dt_slurm_jobs *jobs, struct dt_error *e)
{
    job_info_msg_t *msg = NULL;
    *jobs = (struct dt_slurm_jobs){0};
    if (slurm_load_job_user(&msg, getuid(), SHOW_ALL) != SLURM_SUCCESS)
        return dt_fail(e, "slurmctld does not answer: %s", slurm_strerror(errno));
    for (uint32_t i = 0; i < msg->record_count; i++)
        if (!msg->job_array[i].het_job_id || msg->job_array[i].het_job_offset == 0)
            take(jobs, &msg->job_array[i]);
    for (uint32_t i = 0; i < msg->record_count; i++)
        if (msg->job_array[i].het_job_id && msg->job_array[i].het_job_offset != 0)
            add_component(jobs, &msg->job_array[i]);
    slurm_free_job_info_msg(msg);
    return 0;
}

void dt_slurm_jobs_free(struct dt_slurm_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++) {
        free(jobs->v[i].name);
        free(jobs->v[i].reason);
    }
    free(jobs->v);
    *jobs = (struct dt_slurm_jobs){0};
}

const struct dt_slurm_job *dt_slurm_jobs_find(const struct dt_slurm_jobs *jobs, uint32_t id)
{
    for (size_t i = 0; i < jobs->n; i++)
        if (jobs->v[i].id == id)
            return &jobs->v[i];
    return NULL;
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

uint32_t *dt_slurm_components(uint32_t leader, size_t *n)
{
    job_info_msg_t *msg = NULL;
    uint32_t *ids = NULL;
    *n = 0;
    if (slurm_load_job_user(&msg, getuid(), SHOW_ALL) != SLURM_SUCCESS)
        return NULL;
    for (uint32_t i = 0; i < msg->record_count; i++) {
        const slurm_job_info_t *info = &msg->job_array[i];
        if (info->job_id != leader && info->het_job_id != leader)
            continue;
        ids = dt_xrealloc(ids, *n + 1, sizeof(*ids));
        ids[(*n)++] = info->job_id;
    }
    if (ids)
        qsort(ids, *n, sizeof(*ids), by_id);
    slurm_free_job_info_msg(msg);
    return ids;
}

int dt_slurm_keep_nodes(uint32_t id, const struct dt_strv *names, struct dt_error *e)
{
    job_desc_msg_t job;
    dt_slurm_init_update(&job, id);
    job.req_nodes = dt_strv_join(names, ",");
    int rc = slurm_update_job(&job);
    int code = errno;
    free(job.req_nodes);
    if (rc == SLURM_SUCCESS)
        return 0;
    return dt_fail(e, "Slurm does not take nodes of job %u back: %s", id, slurm_strerror(code));
}

static int kill_job(uint32_t job, int signal, uint16_t flags, const char *doing, struct dt_error *e)
{
    char *id = dt_xasprintf("%u", job);
    int rc = dt_slurm_kill_job(id, (uint16_t)signal, flags);
    int code = errno;
    free(id);
    if (rc == SLURM_SUCCESS || code == ESLURM_ALREADY_DONE || code == ESLURM_INVALID_JOB_ID)
        return 0;
    return dt_fail(e, "cannot %s job %u: %s", doing, job, slurm_strerror(code));
}

int dt_slurm_cancel(uint32_t job, struct dt_error *e)
{
    return kill_job(job, SIGKILL, 0, "cancel", e);
}

int dt_slurm_signal(uint32_t job, int signal, bool script, struct dt_error *e)
{
    return kill_job(job, signal, script ? KILL_JOB_BATCH : 0, "signal", e);
}
