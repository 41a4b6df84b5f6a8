/* A single job, as slurmctld has it. */
#include "backend/backend.h"
#include "util/slurm.h"

#include <errno.h>

/* NULL where slurmctld does not know it, or does not answer; else slurm_free_job_info_msg() it. */
static job_info_msg_t *load(uint32_t job)
{
    job_info_msg_t *msg = NULL;
    if (dt_slurm_load_job(&msg, job) != SLURM_SUCCESS)
        return NULL;
    if (msg->record_count)
        return msg;
    slurm_free_job_info_msg(msg);
    return NULL;
}

char *dt_slurm_work_dir(uint32_t job)
{
    job_info_msg_t *msg = load(job);
    const char *dir = msg ? msg->job_array[0].work_dir : NULL;
    char *copy = dir ? dt_xstrdup(dir) : NULL;
    if (msg)
        slurm_free_job_info_msg(msg);
    return copy;
}

enum dt_job_fate dt_slurm_fate(uint32_t job)
{
    job_info_msg_t *msg = load(job);
    if (!msg)
        return DT_JOB_STAYS;
    uint32_t state = msg->job_array[0].job_state & JOB_STATE_BASE;
    bool runs = state == JOB_RUNNING || state == JOB_SUSPENDED;
    bool preempted = msg->job_array[0].preempt_time;
    slurm_free_job_info_msg(msg);
    return !runs ? DT_JOB_ENDS : preempted ? DT_JOB_PREEMPTED : DT_JOB_STAYS;
}

bool dt_slurm_comment_is_free(uint32_t job)
{
    job_info_msg_t *msg = load(job);
    if (!msg)
        return false;
    const char *comment = msg->job_array[0].comment;
    bool is_free = !comment || !*comment || dt_starts_with(comment, "dt-tune");
    slurm_free_job_info_msg(msg);
    return is_free;
}

int dt_slurm_comment(uint32_t job, const char *comment, struct dt_error *e)
{
    job_desc_msg_t desc;
    dt_slurm_init_update(&desc, job);
    desc.comment = (char *)comment;
    if (slurm_update_job(&desc) == SLURM_SUCCESS)
        return 0;
    return dt_fail(e, "job %u: its comment cannot be changed: %s", job, slurm_strerror(errno));
}
