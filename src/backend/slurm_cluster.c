#include "backend/backend.h"

struct dt_cluster *dt_slurm_cluster(const struct dt_submission *s, bool kinds, struct dt_error *e)
{
    struct dt_system *all = dt_slurm_system(false, dt_submission_get(s, "licenses") != NULL, e);
    struct dt_cluster *c = all ? dt_job_cluster(all, s, kinds, e) : NULL;
    dt_system_free(all);
    return c;
}
