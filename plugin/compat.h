/* Everything in the plugins that depends on Slurm's version (20.11 to 26.05) or that Slurm's public
 * headers leave out. The plugins are built from those headers alone and linked to nothing: the
 * program that loads them has all the symbols below. */
#ifndef DT_COMPAT_H
#define DT_COMPAT_H

#include "util/slurm.h"

#include <string.h>

/* Slurm frees the strings of a job description with its own allocator, so only its own may make
 * them. */
extern char *slurm_xstrdup(const char *s);
extern void slurm_xfree(void **p);

static inline void dt_slurm_free(char **s)
{
    slurm_xfree((void **)s);
}

/* slurmctld's own configuration: the path of slurm.conf and when it was read. Weak, so that a
 * program without it can load the plugin, to look at its version. */
extern slurm_conf_t slurm_conf __attribute__((weak));

/* job_submit() is called with the configuration locked. */
static inline const char *dt_slurm_conf_path(void)
{
    return &slurm_conf ? slurm_conf.slurm_conf : NULL;
}

static inline time_t dt_slurm_conf_time(void)
{
    return &slurm_conf ? slurm_conf.last_update : 0;
}

/* job_modify() got a message for the user in 23.02. The job's record is private to slurmctld. */
#if DT_SLURM_AT_LEAST(23, 2)
#define DT_JOB_MODIFY_PARAMETERS job_desc_msg_t *job, void *record, uint32_t uid, char **err_msg
#define DT_JOB_MODIFY_UNUSED ((void)job, (void)record, (void)uid, (void)err_msg)
#else
#define DT_JOB_MODIFY_PARAMETERS job_desc_msg_t *job, void *record, uint32_t uid
#define DT_JOB_MODIFY_UNUSED ((void)job, (void)record, (void)uid)
#endif

/* Requests about the size or the place of a job that came after 20.11. */
static inline void dt_clear_newer_requests(job_desc_msg_t *job)
{
#if DT_SLURM_AT_LEAST(21, 8)
    dt_slurm_free(&job->container);
#endif
#if DT_SLURM_AT_LEAST(22, 5)
    dt_slurm_free(&job->prefer);
#endif
#if DT_SLURM_AT_LEAST(23, 2)
    dt_slurm_free(&job->job_size_str);
#endif
#if DT_SLURM_AT_LEAST(24, 5)
    job->segment_size = NO_VAL16;
    job->resv_port_cnt = NO_VAL16;
#endif
    (void)job;
}

/* Since 22.05 a job carries hashes of its script and environment, made when the request arrived;
 * the accounting database stores each text once, under its hash. A changed text needs another hash,
 * or it would be shown as the script of every job that was submitted with the user's. The new text
 * follows from the old one and `added`, so mixing `added` in gives every new text its own. */
#if DT_SLURM_AT_LEAST(22, 5)
static inline void dt_mix_hash(slurm_hash_t *hash, const char *added)
{
    uint64_t lane[4] = {0xcbf29ce484222325, 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9,
                        0x94d049bb133111eb};

    for (; *added; added++) {
        for (int i = 0; i < 4; i++)
            lane[i] = (lane[i] ^ (unsigned char)*added) * 0x100000001b3;
    }
    for (size_t i = 0; i < sizeof(hash->hash); i++)
        hash->hash[i] ^= (unsigned char)(lane[i / 8 % 4] >> (i % 8 * 8));
}
#endif

static inline void dt_script_changed(job_desc_msg_t *job, const char *added)
{
#if DT_SLURM_AT_LEAST(22, 5)
    if (job->script_hash.type)
        dt_mix_hash(&job->script_hash, added);
#endif
    (void)job, (void)added;
}

static inline void dt_environment_changed(job_desc_msg_t *job)
{
#if DT_SLURM_AT_LEAST(22, 5)
    if (job->env_hash.type)
        dt_mix_hash(&job->env_hash, "dt-tune");
#endif
    (void)job;
}

#endif
