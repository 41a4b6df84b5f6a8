#include "backend/backend.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* Shorter than Slurm's usual KillWait (30 s): meanwhile the tuner hears no signal, and it must have
 * time left to cancel its trials. sbatch itself waits up to 2 minutes where slurmctld's queue is
 * full. */
#define SBATCH_TIMEOUT 20.0

/* A limit that no waiting cures: Slurm has one sentence for all limits that refuse a job, but names
 * this one before. */
static bool is_lasting_limit(const char *text)
{
    for (const char *p = text; (p = strpbrk(p, "AQ")); p++) {
        size_t n = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
        bool named = (dt_starts_with(p, "Assoc") || dt_starts_with(p, "QOS")) && n > 5 &&
                     strncmp(p + n - 5, "Limit", 5) == 0;
        const char *submit = strstr(p, "Submit");
        if (named)
            return !submit || submit >= p + n;
    }
    return false;
}

/* What sbatch says when it is worth asking again later. */
static bool passing(const char *text)
{
    static const char *const words[] = {
        "Socket timed out",
        "Unable to contact slurm controller",
        "Connection refused",
        "submit limit",
        "AssocMaxSubmitJobLimit",
        "QOSMaxSubmitJob",
        "temporarily",
        "try again",
        "Zero Bytes were transmitted",
        "Transport endpoint",
        "too many jobs",
        "job count limit",
        "in standby mode",
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(*words) && !is_lasting_limit(text); i++)
        if (strcasestr(text, words[i]))
            return true;
    return false;
}

/* The job id on the last line that begins with a digit: sites' wrappers may print more. */
static uint32_t job_id(const char *out)
{
    uint32_t id = 0;
    for (const char *s = out; s && *s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL)
        if (isdigit((unsigned char)*s))
            id = (uint32_t)strtoul(s, NULL, 10);
    return id;
}

static char *one_line(const char *text)
{
    char *s = dt_xstrdup(text);
    size_t n = strlen(s);
    while (n && isspace((unsigned char)s[n - 1]))
        s[--n] = '\0';
    for (char *p = s; *p; p++)
        if (*p == '\n')
            *p = ';';
    return s;
}

int dt_slurm_submit(const char *sbatch, const char *path, const struct dt_strv *args, uint32_t *job,
                    char **why, struct dt_error *e)
{
    struct dt_strv argv = DT_STRV_INIT, env = DT_STRV_INIT;
    struct dt_proc_result r;
    *why = NULL;
    dt_strv_add(&argv, sbatch);
    dt_strv_add(&argv, "--parsable");
    dt_strv_add(&argv, path);
    if (args)
        dt_strv_addv(&argv, args->v);
    dt_scrubbed_environ(&env);
    int rc = dt_proc_run(argv.v, env.v, SBATCH_TIMEOUT, &r, e);
    if (rc < 0) {
        char *found = dt_find_program(sbatch, NULL);
        *why = found ? dt_xstrdup(e && e->text ? e->text : "sbatch could not be run") : NULL;
        rc = found ? 1 : -1; /* too slow, or no memory for a process: later */
        free(found);
    } else if (WIFEXITED(r.status) && WEXITSTATUS(r.status) == 0 && (*job = job_id(r.out)) != 0) {
        rc = 0;
    } else {
        bool killed =
            WIFSIGNALED(r.status) || WEXITSTATUS(r.status) > 128; /* or a wrapper's child was */
        *why = *r.err   ? one_line(r.err)
               : killed ? dt_xstrdup("sbatch was killed")
                        : dt_xstrdup("sbatch failed without a word");
        rc = killed || passing(*why) ? 1 : 2;
    }
    dt_proc_result_free(&r);
    dt_strv_free(&argv);
    dt_strv_free(&env);
    return rc;
}
