#include "tuner/tuner.h"
#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>

#define DRY_TRIALS 3

static int print_trial(const struct dt_setup *s, const double *x, int id, const char *launch,
                       struct dt_error *e)
{
    struct dt_shape shape;
    char *config = dt_config_text(s->space, x),
         *dir = dt_xasprintf("dt-tune-JOBID/trials/%04d", id);
    trial_shape(s, x, &shape);
    struct dt_trial_script script = {
        .submission = s->submission,
        .script = s->script,
        .job = &s->job,
        .space = s->space,
        .x = x,
        .shape = &shape,
        .launch = launch,
        .study = "JOBID",
        .dir = dir,
        .trial = id,
        .run = 1,
        .coordinator = s->spec->coordinator,
        .spec = s->spec,
    };
    char *text = dt_expand(&script, e);
    if (text)
        printf("\n==== trial %d: %s%s\n%s", id, config,
               dt_config_equal(x, s->submitted, s->space->n) ? " (as submitted)" : "", text);
    free(config);
    free(dir);
    free(text);
    return text ? 0 : -1;
}

/* Of --dt-apply: the script that would be submitted. */
static int print_script(const struct dt_setup *s, struct dt_error *e)
{
    char *text = expand_config(s, s->config, e);
    if (text) {
        fputs(text, stdout);
        print_applied(s);
    }
    free(text);
    return text ? 0 : -1;
}

int print_dry_run(const struct dt_setup *s, struct dt_error *e)
{
    if (s->applied)
        return print_script(s, e);
    char *space = dt_space_describe(s->space), *objective = dt_spec_objective_text(s->spec);
    char *launch = sibling("dt-launch", e);
    struct dt_optimizer *o =
        launch ? dt_optimizer_new(dt_study_algorithm(s->spec, s->space), s->space, s->spec->seed, e) : NULL;
    size_t n = s->space->n;
    double *x = dt_xcalloc(DRY_TRIALS * n, sizeof(double));
    struct dt_observation obs[DRY_TRIALS];
    int rc = o ? 0 : -1;
    printf("objective: %s\nsearch space:\n%s  %s\n", objective, space, s->why_layout);
    for (int i = 0; i < DRY_TRIALS && rc == 0; i++) {
        struct dt_context ctx = {.space = s->space,
                                 .obs = obs,
                                 .nobs = (size_t)i,
                                 .maximize = s->spec->maximize,
                                 .seed = s->spec->seed,
                                 .grid_levels = s->spec->grid_levels};
        int more = 1;
        if (i == 0 && dt_setup_first(s))
            memcpy(x, dt_setup_first(s), n * sizeof(double));
        else
            more = dt_optimizer_suggest(o, &ctx, x + (size_t)i * n, e);
        if (more <= 0) {
            rc = more;
            break;
        }
        obs[i] = (struct dt_observation){.x = x + (size_t)i * n, .status = DT_STATUS_PENDING};
        rc = print_trial(s, obs[i].x, i + 1, launch, e);
    }
    dt_optimizer_free(o);
    free(x);
    free(launch);
    free(space);
    free(objective);
    return rc;
}
