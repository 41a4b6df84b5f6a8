#include "tools/tools.h"

#include <getopt.h>
#include <math.h>
#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static const char usage_text[] =
    "usage: dt-tune expand [--spec=SPEC.json] [--config=C.json] [--cluster=FILE] [SBATCH OPTIONS] "
    "SCRIPT [ARGS]\n"
    "Prints the batch script that runs SCRIPT in one configuration; sbatch takes it as it stands "
    "(but with layout\n"
    "steps it is not for sbatch, and says how the tuner starts it).\n"
    "  --spec=SPEC.json   what may be tuned (default: what the --dt-... options say)\n"
    "  --config=C.json    the configuration, e.g. {\"ps\": 1, \"workers\": 4}; default: the job as "
    "submitted\n"
    "  --cluster=FILE     take the nodes from this JSON file instead of asking Slurm\n";

static void cannot_apply(const struct dt_setup *s, const double *x, const char *why,
                         struct dt_error *e)
{
    char *config = dt_config_text(s->space, x);
    dt_fail(e,
            "--dt-apply: the configuration of %s, %s, cannot run here: %s; tune anew, or give "
            "another study: --dt-apply=STUDY",
            s->applied, config, why);
    free(config);
}

void trial_shape(const struct dt_setup *s, const double *x, struct dt_shape *shape)
{
    if (s->spec->layout == DT_LAYOUT_STEPS) {
        dt_shape_make_steps(s->space, x, &s->job, shape);
        return;
    }
    dt_shape_make(s->space, x, &s->job, s->cluster, shape);
    shape->as_submitted = dt_config_equal(x, s->submitted, s->space->n);
}

/* A job of its own, as after the study, in whatever layout that searches. */
static void job_shape(const struct dt_setup *s, const double *x, const struct dt_job *job,
                      struct dt_shape *shape)
{
    dt_shape_make(s->space, x, job, s->cluster, shape);
    shape->as_submitted = dt_config_equal(x, s->submitted, s->space->n);
}

/* What a configuration does not say is as in the job that was submitted, which has no layout where
 * only het is searched: what is not that job has the one that is. */
static int complete(const struct dt_setup *s, struct json_object *config, double *x,
                    struct dt_error *e)
{
    int layout = dt_space_index(s->space, "layout");
    if (dt_config_complete(s->space, config, s->submitted, x, e) < 0)
        return -1;
    bool submitted = dt_config_equal(x, s->submitted, s->space->n);
    if (!submitted && layout >= 0 && isnan(x[layout]))
        x[layout] = s->space->params[layout].values[0];
    return 0;
}

static char *expand(const struct dt_setup *s, struct json_object *config, bool trial,
                    struct dt_error *e)
{
    struct dt_job job = dt_setup_job(s);
    bool steps = trial && s->spec->layout == DT_LAYOUT_STEPS;
    double *x = dt_xcalloc(s->space->n, sizeof(double));
    struct dt_shape shape;
    char *text = NULL, *launch = sibling("dt-launch", e);
    memcpy(x, s->submitted, s->space->n * sizeof(double));
    bool ok = launch && (!config || complete(s, config, x, e) == 0);
    if (ok) {
        if (steps)
            trial_shape(s, x, &shape);
        else
            job_shape(s, x, &job, &shape);
        const struct dt_cluster *cluster = steps ? s->source.cluster : s->cluster;
        const char *why = shape.as_submitted ? NULL : dt_shape_why_not(&shape, &job, cluster);
        struct dt_trial_script script = {.submission = s->submission,
                                         .script = s->script,
                                         .job = &job,
                                         .space = s->space,
                                         .x = x,
                                         .shape = &shape,
                                         .coordinator = s->spec->coordinator,
                                         .launch = launch};
        if (why && s->applied)
            cannot_apply(s, x, why, e);
        else if (why)
            dt_fail(e, "this configuration cannot run here: %s", why);
        else
            text = dt_expand(&script, e);
    }
    free(launch);
    free(x);
    return text;
}

char *expand_config(const struct dt_setup *s, struct json_object *config, struct dt_error *e)
{
    return expand(s, config, false, e);
}

int cmd_expand(int argc, char **argv)
{
    struct dt_strv sbatch = DT_STRV_INIT;
    const char *cluster_file = NULL;
    struct dt_cluster *cluster = NULL;
    struct dt_error e = DT_ERROR_INIT;
    dt_strv_add(&sbatch, "sbatch");
    /* Ours come first; what follows the first other word is sbatch's. */
    int i = 1;
    for (; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(usage_text, stdout);
            dt_strv_free(&sbatch);
            return EXIT_DONE;
        }
        bool separate = strcmp(argv[i], "--config") == 0 || strcmp(argv[i], "--spec") == 0 ||
                        strcmp(argv[i], "--cluster") == 0;
        const char *value = separate               ? argv[i + 1]
                            : strchr(argv[i], '=') ? strchr(argv[i], '=') + 1
                                                   : "";
        if (!value)
            break;
        if (dt_starts_with(argv[i], "--config"))
            dt_strv_addf(&sbatch, "--dt-config=%s", value);
        else if (dt_starts_with(argv[i], "--cluster") && !dt_starts_with(argv[i], "--cluster-"))
            cluster_file = value;
        else if (dt_starts_with(argv[i], "--spec"))
            dt_strv_addf(&sbatch, "--dt-tune=%s", value);
        else
            break;
        i += separate;
    }
    if (i >= argc) {
        fputs(usage_text, stderr);
        dt_strv_free(&sbatch);
        return EXIT_USAGE;
    }
    dt_strv_addv(&sbatch, argv + i);
    struct dt_submission *submission = NULL;
    struct dt_setup *s = NULL;
    char *text = NULL;
    if (!cluster_file)
        slurm_init(NULL);
    submission = dt_submission_read(sbatch.v, environ, STDIN_FILENO, NULL, &e);
    bool ok =
        submission && (!cluster_file || (cluster = read_cluster(cluster_file, submission, &e)));
    if (ok)
        s = dt_setup_new(submission, NULL, cluster, &e);
    else
        dt_submission_free(submission);
    if (s)
        text = expand(s, s->config, true, &e);
    if (text)
        fputs(text, stdout);
    int rc = text ? EXIT_DONE : fail_with(&e, EXIT_USAGE);
    free(text);
    dt_setup_free(s);
    dt_strv_free(&sbatch);
    return rc;
}
