/* What dt-tune.conf says that slurmctld has to enforce: who may tune, and where and how large the
 * tuning job is. */
#ifndef DT_ENFORCE_H
#define DT_ENFORCE_H

#include "compat.h"

/* Reads dt-tune.conf beside slurm.conf. One that cannot be used is said in one line of slurmctld's
 * log; then what was read before stays, and before anything was, nobody may tune. */
void dt_limits_start(void);
void dt_limits_end(void);
/* Why this job of this user may not be tuned, a line that the caller free()s, or NULL. The file is
 * read again first if slurmctld has been reconfigured since. */
char *dt_limits_refuse(const job_desc_msg_t *job, uint32_t uid);
/* Gives a tuning job the partition and the size that dt-tune.conf says. */
void dt_limits_keep_tuner(job_desc_msg_t *job);

#endif
