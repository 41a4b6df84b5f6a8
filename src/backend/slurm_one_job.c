/* A single job, as slurmctld has it. */
#include "backend/backend.h"

#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

/* NULL where slurmctld does not know it, or does not answer; else slurm_free_job_info_msg() it. */
static job_info_msg_t *load(uint32_t job)
{
    job_info_msg_t *msg = NULL;
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
    slurm_step_id_t id = SLURM_STEP_ID_INITIALIZER;
    id.job_id = job;
#else
    uint32_t id = job;
#endif
    if (slurm_load_job(&msg, id, 0) != SLURM_SUCCESS)
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
    slurm_init_job_desc_msg(&desc);
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
    desc.step_id.job_id = job;
#else
    desc.job_id = job;
#endif
    desc.comment = (char *)comment;
    if (slurm_update_job(&desc) == SLURM_SUCCESS)
        return 0;
    return dt_fail(e, "job %u: its comment cannot be changed: %s", job, slurm_strerror(errno));
}
