/* Slurm's own headers, and all that is not the same in them from version to version (20.11 to
 * 26.05). What has a function here is Slurm's own, called as its version wants it. */
#ifndef DT_UTIL_SLURM_H
#define DT_UTIL_SLURM_H

#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdint.h>

#define DT_SLURM_AT_LEAST(major, minor) (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(major, minor, 0))

#if DT_SLURM_AT_LEAST(26, 5)
#define slurm_free_ctl_conf slurm_free_conf
#define CR_MEMORY SELECT_MEMORY
#define CR_CORE SELECT_CORE
#define CR_SOCKET SELECT_SOCKET
#endif

/* slurm_load_job(). */
static inline int dt_slurm_load_job(job_info_msg_t **out, uint32_t job)
{
#if DT_SLURM_AT_LEAST(26, 5)
    slurm_step_id_t id = SLURM_STEP_ID_INITIALIZER;
    id.job_id = job;
    return slurm_load_job(out, id, 0);
#else
    return slurm_load_job(out, job, 0);
#endif
}

/* slurm_get_job_steps() for all steps of a job. */
static inline int dt_slurm_get_steps(uint32_t job, job_step_info_response_msg_t **out)
{
#if DT_SLURM_AT_LEAST(25, 11)
    slurm_step_id_t id = SLURM_STEP_ID_INITIALIZER;
    id.job_id = job;
    return slurm_get_job_steps(&id, out, SHOW_ALL);
#else
    return slurm_get_job_steps(0, job, NO_VAL, out, SHOW_ALL);
#endif
}

/* A description of nothing but which job it is, for slurm_update_job(). */
static inline void dt_slurm_init_update(job_desc_msg_t *desc, uint32_t job)
{
    slurm_init_job_desc_msg(desc);
#if DT_SLURM_AT_LEAST(25, 11)
    desc->step_id.job_id = job;
#else
    desc->job_id = job;
#endif
}

/* slurm_kill_job2() of a plain job or all of a heterogeneous one. */
static inline int dt_slurm_kill_job(const char *job, uint16_t signal, uint16_t flags)
{
#if DT_SLURM_AT_LEAST(21, 8)
    return slurm_kill_job2(job, signal, flags, NULL);
#else
    return slurm_kill_job2(job, signal, flags);
#endif
}

/* The CPUs of a node that jobs get. */
static inline uint16_t dt_slurm_node_cpus(const node_info_t *node)
{
#if DT_SLURM_AT_LEAST(22, 5)
    if (node->cpus_efctv && node->cpus_efctv < node->cpus)
        return node->cpus_efctv;
#endif
    return node->cpus;
}

#endif
