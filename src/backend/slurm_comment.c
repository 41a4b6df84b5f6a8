#include "backend/backend.h"

#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

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
