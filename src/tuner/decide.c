#include "tuner/tuner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *why_stop(const struct dt_study *s, double now)
{
    struct dt_observation *o = dt_xcalloc(s->nfinished, sizeof(*o));
    for (size_t i = 0; i < s->nfinished; i++) {
        const struct dt_trial *t = dt_study_trial(s, s->finished[i]);
        o[i] = (struct dt_observation){t->x, t->status, t->value, t->run_s};
    }
    char *why =
        dt_stopping_check(&s->stopping, o, s->nfinished, s->spec->maximize, now - s->t_start);
    free(o);
    return why;
}

static int create(struct dt_study *s, struct dt_action *a, struct dt_error *e)
{
    a->x = dt_xcalloc(s->space->n, sizeof(double));
    if (s->submitted && s->n == 0) {
        memcpy(a->x, s->submitted, s->space->n * sizeof(double));
        a->why = dt_xstrdup("as submitted");
        a->kind = DT_ACTION_CREATE;
        return 0;
    }
    struct dt_observation *o = dt_study_observations(s);
    struct dt_context ctx = {
        s->space, o, s->n, s->spec->maximize, s->spec->seed, s->spec->grid_levels};
    int rc = dt_optimizer_suggest(s->optimizer, &ctx, a->x, e);
    free(o);
    if (rc == 1) {
        a->why = dt_xstrdup(s->spec->algorithm);
        a->kind = DT_ACTION_CREATE;
    }
    return rc < 0 ? -1 : 0;
}

static void decide_ending(const struct dt_study *s, struct dt_action *a)
{
    bool ending = false;
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_trial *t = &s->trials[i];
        if (dt_trial_live(t) && !t->cancelling) {
            a->kind = DT_ACTION_CANCEL;
            a->trial = t->id;
            return;
        }
        ending |= dt_trial_live(t);
    }
    if (!ending)
        a->kind = DT_ACTION_FINISH;
}

int dt_study_decide(struct dt_study *s, double now, struct dt_action *a, struct dt_error *e)
{
    size_t live = 0, waiting = 0;
    *a = (struct dt_action){.kind = DT_ACTION_NONE};
    if (s->stop_reason) {
        decide_ending(s, a);
        return 0;
    }
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_trial *t = &s->trials[i];
        live += dt_trial_live(t);
        if (dt_trial_live(t) && !isnan(t->t_target) && !t->cancelling) {
            a->kind = DT_ACTION_CANCEL; /* the target is reached: the trial is done */
            a->trial = t->id;
            return 0;
        }
    }
    a->why = s->n ? why_stop(s, now) : NULL;
    if (a->why) {
        a->kind = DT_ACTION_STOP;
        return 0;
    }
    for (size_t i = 0; i < s->n && live < s->parallel; i++) {
        const struct dt_trial *t = &s->trials[i];
        if (t->state != DT_TRIAL_CREATED)
            continue;
        if (t->deferred <= now) {
            a->kind = DT_ACTION_SUBMIT;
            a->trial = t->id;
            return 0;
        }
        waiting++;
    }
    if (live + waiting >= s->parallel)
        return 0;
    if (s->n >=
        s->stopping.max_configs) { /* also where some taught nothing, so that it always ends */
        if (live + waiting == 0) {
            a->kind = DT_ACTION_STOP;
            a->why = dt_xasprintf("maximum of configurations: %zu were tried", s->n);
        }
        return 0;
    }
    if (create(s, a, e) < 0) {
        dt_action_free(a);
        return -1;
    }
    if (a->kind == DT_ACTION_NONE && live + waiting == 0) {
        a->kind = DT_ACTION_STOP;
        a->why = dt_xstrdup("space: every configuration was tried");
    }
    return 0;
}

void dt_action_free(struct dt_action *a)
{
    free(a->x);
    free(a->why);
    *a = (struct dt_action){.kind = DT_ACTION_NONE};
}
