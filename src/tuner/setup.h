/* setup: everything a study is made of, put together from a submission and carried as one JSON document from the login
 * node to the tuner, and from sitting to sitting in the journal. */
#ifndef DT_SETUP_H
#define DT_SETUP_H

#include "conf/conf.h"
#include "expand/expand.h"
#include "spec/spec.h"
#include "spec/submission.h"

struct dt_setup {
    struct dt_submission *submission;
    char *script; /* the user's script; NULL until the carrier is read */
    struct dt_spec *spec;
    struct dt_job job;
    struct dt_job any_job; /* with --dt-apply: one that fits anywhere, for the space */
    struct dt_cluster *cluster; /* NULL: unknown, nothing is excluded for it */
    struct dt_cluster *allocation; /* layout steps: what the trials share; NULL before it is known, then as asked for */
    struct dt_cluster *asked;
    struct dt_space_source source;
    struct dt_space *space;
    const char *why_layout;
    char *sbatch;     /* path of sbatch, or NULL */
    char *slurm_conf; /* SLURM_CONF of the submission, or NULL */
    struct json_object *config; /* of --dt-config, or NULL */
    char *resume;     /* absolute folder of the study to continue, or NULL */
    double *submitted; /* the configuration as submitted, space->n values */
    struct dt_conf conf; /* the administrator's limits, when the study was submitted; in the tuner empty */
    char *history;     /* absolute folder of the history, or NULL where there is none to be kept */
    bool external;     /* dt-tune serve: another program chooses the hyperparameters */
    char *applied;     /* --dt-apply: "study 123 (time 3.21 s)", whose best configuration `config` is; else NULL */
};

/* Whether the submission is to be submitted straight, in a stored configuration, though its script may say how to tune
 * it: of --dt-apply and --dt-tune, --dt-resume or --dt-config the one counts that has precedence, an option over the
 * environment over a #SBATCH line. 1, 0, or -1 with an error where they stand side by side, or --dt-apply stands beside
 * another option of the command line that means nothing to it. */
int dt_setup_applies(const struct dt_submission *s, struct dt_error *e);
/* Takes the submission and the cluster over. `cluster` NULL: Slurm is asked. The file that --dt-config names is read; its
 * parameters that SPEC does not name join the space, each with that one value. With --dt-apply the space has just the one
 * configuration, whether the cluster can run it or not. */
struct dt_setup *dt_setup_new(struct dt_submission *submission, const char *sbatch, struct dt_cluster *cluster,
                              struct dt_error *e);
/* The same for a study whose hyperparameters another program chooses; Slurm is asked for the cluster. */
struct dt_setup *dt_setup_new_external(struct dt_submission *submission, const char *sbatch, struct dt_error *e);
/* Tells, with layout steps, what allocation the trials have, and makes the space anew for it. Takes it over. */
int dt_setup_allocate(struct dt_setup *s, struct dt_cluster *allocation, struct dt_error *e);
/* The configuration of the first trial: the job as submitted. NULL with layout steps where the space does not have it: what
 * the user asks for is there to be shared, and need not be a job that makes sense. */
const double *dt_setup_first(const struct dt_setup *s);
/* What is asked for by a job in one configuration, outside of a study: in layout steps without the nodes, which are those of
 * the whole allocation. The strings are the setup's. */
struct dt_job dt_setup_job(const struct dt_setup *s);
/* The document, on one line: {"version":1,"exec":"...","tuner":{"mem_mib":512,"time_min":90},...}; job_submit reads the
 * beginning, so the order of the first three is fixed. With layout steps it is "tuner":{"steps":true}: the job stays as
 * large as it is. `exec` is dt-tune's path. Caller frees. */
char *dt_setup_text(const struct dt_setup *s, const char *exec);
/* The reverse; `script` is copied. */
struct dt_setup *dt_setup_from_json(struct json_object *doc, const char *script, struct dt_error *e);
void dt_setup_free(struct dt_setup *s);

#endif
