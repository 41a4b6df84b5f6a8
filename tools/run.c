/* dt-tune run: the tuner, started by the tuning job's script. */
#include "expand/carrier.h"
#include "tools/tools.h"

#include <errno.h>
#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage_text[] =
    "usage: dt-tune run --carrier SCRIPT\n"
    "Runs the study that a tuning job's script carries. Started by that script, not by hand.\n";

#define CARRIER_MAX (8 * 1024 * 1024)

static struct dt_setup *read_carrier(const char *path, char *const *args, struct dt_error *e)
{
    struct dt_setup *s = NULL;
    struct dt_carrier c;
    char *text = dt_read_file(path, CARRIER_MAX, NULL, e);
    if (text && dt_carrier_parse(text, &c) < 0)
        dt_fail(e, "%s: this is not the script of a tuning job", path);
    else if (text) {
        char *json = dt_xstrndup(c.json, c.json_len);
        struct json_object *doc = dt_json_parse(json, path, e);
        s = doc ? dt_setup_from_json(doc, c.script, e) : NULL;
        json_object_put(doc);
        free(json);
    }
    free(text);
    if (s && *args) { /* sbatch's own view of the script's arguments */
        dt_strv_free(&s->submission->args);
        dt_strv_addv(&s->submission->args, args);
    }
    return s;
}

int cmd_run(int argc, char **argv)
{
    struct dt_error e = DT_ERROR_INIT;
    if (argc >= 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage_text, stdout);
        return EXIT_DONE;
    }
    const char *job = getenv("SLURM_JOB_ID");
    if (argc < 3 || strcmp(argv[1], "--carrier") != 0 || !job) {
        fputs(usage_text, stderr);
        return EXIT_USAGE;
    }
    struct dt_setup *s = read_carrier(argv[2], argv + 3, &e);
    if (!s)
        return fail_with(&e, EXIT_USAGE);
    if (s->slurm_conf && access(s->slurm_conf, R_OK) == 0)
        setenv("SLURM_CONF", s->slurm_conf, 1);
    slurm_init(NULL);
    /* Trials are submitted from where the user submitted: relative names in their options mean the
     * same. */
    const char *submit = getenv("SLURM_SUBMIT_DIR");
    if (submit && chdir(submit) < 0)
        fprintf(stderr, "dt-tune: %s: %s; going on in the job's own folder\n", submit,
                strerror(errno));
    char *cwd = getcwd(NULL, 0);
    char *dir =
        s->resume ? dt_xstrdup(s->resume) : dt_xasprintf("%s/dt-tune-%s", cwd ? cwd : ".", job);
    int rc = run_study(s, job, dir, (uint32_t)strtoul(job, NULL, 10), -1);
    free(cwd);
    free(dir);
    return rc;
}
