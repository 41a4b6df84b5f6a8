#include "optimizer/algorithms.h"
#include "stopping/population.h"
#include "tuner/tuner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool dt_study_is_population(const struct dt_study *s)
{
    return s->spec->pruner.rule == DT_PRUNE_PBT;
}

size_t dt_study_founders(const struct dt_study *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->trials[i].parent == 0;
    return n;
}

static const struct dt_series *series_of(const struct dt_study *s, const struct dt_trial *t)
{
    static const struct dt_series none;
    const struct dt_metric *m = dt_trial_metric(t, s->spec->metric);
    return m ? &m->series : &none;
}

/* ---- lineages ---- */

struct dt_stage *dt_study_schedule(const struct dt_study *s, const struct dt_trial *t, size_t *n)
{
    const struct dt_trial *up = t;
    *n = 1;
    for (; up->parent && !up->alone; up = dt_study_trial(s, up->parent))
        (*n)++;
    struct dt_stage *v = dt_xcalloc(*n, sizeof(*v));
    for (size_t i = *n - 1; i > 0; i--, t = dt_study_trial(s, t->parent)) {
        const struct dt_series *own = series_of(s, t);
        /* its checkpoint may have been from before what the parent had last reported */
        v[i] = (struct dt_stage){t, own->n ? fmin(t->from, own->v[0].step) : t->from};
    }
    v[0] = (struct dt_stage){t, 0};
    return v;
}

/* What a stage's trial reported until the next one went on from it. */
static void add_stage(const struct dt_study *s, const struct dt_stage *stage,
                      const struct dt_stage *next, struct dt_curve *c)
{
    const struct dt_series *own = series_of(s, stage->t);
    const struct dt_series *after = next ? series_of(s, next->t) : NULL;
    for (size_t i = 0; i < own->n; i++) {
        const struct dt_point *p = &own->v[i];
        bool passed = after && (after->n ? p->step >= after->v[0].step : p->step > next->from);
        if (!passed)
            dt_curve_add(c, p);
    }
}

/* dt_curve_free() it. */
static struct dt_curve lineage(const struct dt_study *s, const struct dt_trial *t)
{
    size_t n, room = 0;
    struct dt_stage *stages = dt_study_schedule(s, t, &n);
    for (size_t i = 0; i < n; i++)
        room += series_of(s, stages[i].t)->n;
    struct dt_curve c = dt_curve_new(room);
    for (size_t i = 0; i < n; i++)
        add_stage(s, &stages[i], i + 1 < n ? &stages[i + 1] : NULL, &c);
    free(stages);
    return c;
}

/* ---- who gives way ---- */

static bool is_running(const struct dt_trial *t)
{
    return t->state == DT_TRIAL_STARTED && !t->pruned && !t->cancelling && isnan(t->t_target);
}

/* One that has to wait is no member yet; one that goes on from another has begun with what that
 * had. */
static double begin_of(const struct dt_trial *t)
{
    return t->parent ? t->t_created : isnan(t->t_started) ? INFINITY : t->t_started;
}

/* One that was stopped has its place taken by another, and one that failed has none any more. */
static double end_of(const struct dt_trial *t)
{
    bool failed = t->state == DT_TRIAL_ENDED && !isfinite(t->value);
    return t->pruned ? t->t_pruned : failed ? t->t_ended : INFINITY;
}

/* Another one for each trial that is created, as for suggestions. */
static uint64_t stream_of(const struct dt_study *s)
{
    return s->spec->seed + 0x100000001u * (s->n + 1);
}

/* Owns its members' curves. */
static struct dt_member *members_of(const struct dt_study *s)
{
    struct dt_member *members = dt_xcalloc(s->n + 1, sizeof(*members));
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_trial *t = &s->trials[i];
        members[i] =
            (struct dt_member){lineage(s, t), t->start, is_running(t), begin_of(t), end_of(t)};
    }
    return members;
}

static void free_members(struct dt_member *members, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dt_curve_free(&members[i].curve);
    free(members);
}

int dt_study_gives_way(const struct dt_study *s, int *parent, char **why)
{
    int id = 0;
    if (s->n >= s->stopping.max_configs) /* then nobody could take the place */
        return 0;
    struct dt_member *members = members_of(s);
    gsl_rng *rng = dt_rng_new(~stream_of(s));
    for (size_t i = 0; i < s->n && !id; i++) {
        int better = dt_population_gives_way(&s->spec->pruner, members, s->n, i, s->spec->maximize,
                                             rng, why);
        if (better < 0)
            continue;
        id = s->trials[i].id;
        *parent = s->trials[better].id;
    }
    gsl_rng_free(rng);
    free_members(members, s->n);
    return id;
}

/* ---- who takes the place ---- */

static void create_child(const struct dt_study *s, const struct dt_trial *gone, int parent,
                         struct dt_action *a)
{
    a->kind = DT_ACTION_CREATE;
    a->parent = parent;
    a->instead = gone->id;
    a->x = dt_xcalloc(s->space->n, sizeof(double));
    dt_perturb(s->space, dt_study_trial(s, parent)->x, s->spec->pruner.resample, stream_of(s),
               a->x);
    a->why = dt_xasprintf("pbt: goes on from trial %d in the place of trial %d%s", parent, gone->id,
                          gone->heir ? "" : ", which failed");
}

bool dt_study_create_child(const struct dt_study *s, struct dt_action *a)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->trials[i].heir) {
            create_child(s, &s->trials[i], s->trials[i].heir, a);
            return true;
        }
    }
    return false;
}

/* By itself, or its nodes did as often as a run is repeated; not one that somebody has ended. */
static bool has_failed(const struct dt_trial *t)
{
    bool nodes = t->cause == DT_CAUSE_NODE_FAILURE || t->cause == DT_CAUSE_PREEMPTED ||
                 t->cause == DT_CAUSE_LOST;
    return t->state == DT_TRIAL_ENDED && !t->pruned && (t->status == DT_STATUS_FAILED || nodes);
}

/* How often in a row a place is taken anew whose trial failed. */
#define MAX_FAILURES 3

bool dt_study_has_place(const struct dt_study *s, const struct dt_trial *t)
{
    size_t failures = 0;
    if (t->heir)
        return true;
    for (size_t i = 0; i < s->n; i++)
        if (s->trials[i].instead == t->id)
            return false;
    for (const struct dt_trial *u = t; u && has_failed(u); u = dt_study_trial(s, u->instead))
        failures++;
    return dt_study_is_population(s) && failures > 0 && failures <= MAX_FAILURES;
}

bool dt_study_replace_failed(const struct dt_study *s, double now, struct dt_action *a)
{
    const struct dt_trial *gone = NULL;
    for (size_t i = 0; i < s->n && !gone; i++)
        if (dt_study_has_place(s, &s->trials[i]))
            gone = &s->trials[i];
    if (!gone)
        return false;
    struct dt_member *members = members_of(s);
    gsl_rng *rng = dt_rng_new(~stream_of(s));
    int best =
        dt_population_successor(&s->spec->pruner, members, s->n, now, s->spec->maximize, rng);
    gsl_rng_free(rng);
    free_members(members, s->n);
    if (best >= 0)
        create_child(s, gone, s->trials[best].id, a);
    return best >= 0;
}

char *dt_study_no_population(const struct dt_study *s)
{
    for (size_t i = 0; dt_study_is_population(s) && i < s->n; i++) {
        const struct dt_metric *m = dt_trial_metric(&s->trials[i], s->spec->metric);
        if (m && m->stepless)
            return dt_xasprintf("population: trial %d reported %s without a step, so it cannot be "
                                "compared; report epoch or step in the same line, or name the "
                                "metric that says how far it is: metrics.step",
                                s->trials[i].id, m->name);
    }
    return NULL;
}

static char *short_text(const struct dt_param *p, double x)
{
    bool any = !p->values && p->step <= 0 && !isnan(x);
    return any ? dt_xasprintf("%.4g", x) : dt_param_text(p, x);
}

char *dt_trial_changes(const struct dt_study *s, const struct dt_trial *t)
{
    const struct dt_trial *parent = dt_study_trial(s, t->parent);
    struct dt_buf b = DT_BUF_INIT;
    for (size_t i = 0; parent && i < s->space->n; i++) {
        const struct dt_param *p = &s->space->params[i];
        if (t->x[i] == parent->x[i] || (isnan(t->x[i]) && isnan(parent->x[i])))
            continue;
        char *from = short_text(p, parent->x[i]), *to = short_text(p, t->x[i]);
        dt_buf_addf(&b, "%s%s %s -> %s", b.len ? ", " : "", p->name, from, to);
        free(from);
        free(to);
    }
    return dt_buf_take(&b);
}
