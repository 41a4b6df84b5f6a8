#include "backend/backend.h"

#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

bool dt_slurm_comment_is_free(uint32_t job)
{
    job_info_msg_t *msg = NULL;
    if (slurm_load_job(&msg, job, 0) != SLURM_SUCCESS)
        return false;
    const char *comment = msg->record_count ? msg->job_array[0].comment : "?";
    bool is_free = !comment || !*comment || dt_starts_with(comment, "dt-tune");
    slurm_free_job_info_msg(msg);
    return is_free;
}

int dt_slurm_comment(uint32_t job, const char *comment, struct dt_error *e)
{
    job_desc_msg_t desc;
    slurm_init_job_desc_msg(&desc);
    desc.job_id = job;
    desc.comment = (char *)comment;
    if (slurm_update_job(&desc) == SLURM_SUCCESS)
        return 0;
    return dt_fail(e, "job %u: its comment cannot be changed: %s", job, slurm_strerror(errno));
}
