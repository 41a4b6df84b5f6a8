/* Job descriptions as slurmctld hands them to the plugin, with any bytes in what a submitter can
 * say: the control environment, the job's environment, the script and other strings; and Slurm's
 * allocator fails at some call. Nothing may be lost, read that is not there, or changed in a job
 * that does not ask for tuning.
 *
 * The first byte says which fields there are, the second which allocation fails (0: none); then
 * strings, each up to a NUL: "c" goes into the control environment, "e" into the job's environment,
 * "s" is the script, any other letter a field. */
#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local long living, fails_in;

char *slurm_xstrdup(const char *s);
void slurm_xfree(void **p);

#include "plugin/job_submit_dt_tune.c"
#include "plugin/enforce.c"

slurm_conf_t slurm_conf;

void slurm_error(const char *format, ...)
{
    (void)format;
}

#include "tests/fuzz/fuzz.h"

char *slurm_xstrdup(const char *s)
{
    if (!s || (fails_in > 0 && --fails_in == 0))
        return NULL;
    living++;
    return strdup(s);
}

void slurm_xfree(void **p)
{
    living -= *p != NULL;
    free(*p);
    *p = NULL;
}

static void add(char ***list, uint32_t *n, const char *entry)
{
    *list = realloc(*list, (*n + 2) * sizeof(char *));
    (*list)[(*n)++] = slurm_xstrdup(entry);
    (*list)[*n] = NULL;
}

static void put(char **field, const char *value)
{
    slurm_xfree((void **)field);
    *field = slurm_xstrdup(value);
}

static void fill(job_desc_msg_t *job, const char *s)
{
    switch (s[0]) {
    case 'c':
        add(&job->spank_job_env, &job->spank_job_env_size, s + 1);
        break;
    case 'e':
        add(&job->environment, &job->env_size, s + 1);
        break;
    case 's':
        put(&job->script, s + 1);
        break;
    case 'a':
        put(&job->array_inx, s + 1);
        break;
    case 't':
        put(&job->tres_per_task, s + 1);
        break;
    default:
        put(&job->comment, s);
        break;
    }
}

static void free_list(char **list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        slurm_xfree((void **)&list[i]);
    free(list);
}

static void free_job(job_desc_msg_t *job)
{
    char **strings[] = {&job->script, &job->comment, &job->tres_per_task, &job->array_inx,
                        &job->partition};
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
        slurm_xfree((void **)strings[i]);
    free_list(job->environment, job->env_size);
    free_list(job->spank_job_env, job->spank_job_env_size);
}

/* As if an administrator had said where tuners run. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    usable = true;
    read_at = 1; /* and not again */
    limits.conf.tuner_partition = strdup("tuners");
    limits.conf.tuner_mem_mib = 128;
    limits.conf.tuner_time_min = 60;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    job_desc_msg_t job;
    char *error = NULL, *text;
    if (size < 2)
        return 0;
    memset(&job, 0, sizeof(job));
    living = fails_in = 0;
    job.het_job_offset = data[0] & 1 ? 0 : NO_VAL;
    text = text_of(data + 2, size - 2);
    for (const char *s = text; s < text + size - 2; s += strlen(s) + 1)
        fill(&job, s);
    char *script = job.script ? strdup(job.script) : NULL;
    bool asked = was_asked(&job);
    fails_in = data[1];
    int rc = job_submit(&job, 1000, &error);
    if (!asked)
        require(rc == SLURM_SUCCESS && !error &&
                (script ? strcmp(script, job.script) == 0 : !job.script));
    if (rc != SLURM_SUCCESS)
        require(!error || !strchr(error, '\n'));
    fails_in = 0;
    slurm_xfree((void **)&error);
    free_job(&job);
    require(living == 0);
    free(script);
    free(text);
    return 0;
}
