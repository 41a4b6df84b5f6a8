#include "backend/slurm_private.h"
#include "util/slurm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define SCANCEL_TIMEOUT 20.0

static void add_id(struct dt_strv *ids, uint32_t job, uint32_t step)
{
    if (step == SLURM_BATCH_SCRIPT)
        dt_strv_addf(ids, "%u.batch", job);
    else if (step == SLURM_EXTERN_CONT)
        dt_strv_addf(ids, "%u.extern", job);
    else
        dt_strv_addf(ids, "%u.%u", job, step);
}

int dt_slurm_steps_load(uint32_t job, const char *mark, struct dt_slurm_steps *steps,
                        struct dt_error *e)
{
    job_step_info_response_msg_t *msg = NULL;
    if (dt_slurm_get_steps(job, &msg) != SLURM_SUCCESS)
        return dt_fail(e, "slurmctld does not answer: %s", slurm_strerror(errno));
    for (uint32_t i = 0; i < msg->job_step_count; i++) {
        const job_step_info_t *step = &msg->job_steps[i];
        if (step->state != JOB_RUNNING || !step->name || !strstr(step->name, mark))
            continue;
        add_id(&steps->ids, job, step->step_id.step_id);
        dt_strv_add(&steps->names, step->name);
        steps->cpus = dt_xrealloc(steps->cpus, steps->ids.n, sizeof(*steps->cpus));
        steps->cpus[steps->ids.n - 1] = step->num_cpus;
    }
    slurm_free_job_step_info_response_msg(msg);
    return 0;
}

void dt_slurm_steps_free(struct dt_slurm_steps *steps)
{
    dt_strv_free(&steps->ids);
    dt_strv_free(&steps->names);
    free(steps->cpus);
    *steps = (struct dt_slurm_steps){0};
}

int dt_slurm_steps_signal(const struct dt_slurm_steps *steps, int signal)
{
    struct dt_strv argv = DT_STRV_INIT;
    struct dt_proc_result r;
    if (!steps->ids.n)
        return 0;
    dt_strv_add(&argv, "scancel");
    dt_strv_addf(&argv, "--signal=%d", signal);
    dt_strv_addv(&argv, steps->ids.v);
    int rc = dt_proc_run(argv.v, NULL, SCANCEL_TIMEOUT, &r, NULL);
    if (rc == 0) {
        rc = WIFEXITED(r.status) && WEXITSTATUS(r.status) == 0 ? 0 : -1;
        dt_proc_result_free(&r);
    }
    dt_strv_free(&argv);
    return rc;
}
