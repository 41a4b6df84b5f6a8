#include "tuner/tuner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The finished trials in the order in which they ended: all, or without those that measure again or
 * at a lower fidelity. Caller frees. */
static struct dt_observation *finished(const struct dt_study *s, bool all, size_t *n)
{
    struct dt_observation *o = dt_xcalloc(s->nfinished + 1, sizeof(*o));
    *n = 0;
    for (size_t i = 0; i < s->nfinished; i++) {
        const struct dt_trial *t = dt_study_trial(s, s->finished[i]);
        if (all || (!t->again && dt_space_is_full(s->space, t->x)))
            o[(*n)++] = (struct dt_observation){.x = t->x, .status = t->status, .value = t->value};
    }
    return o;
}

static char *why_stop(const struct dt_study *s, double now)
{
    double nodes, spent = dt_study_node_seconds(s, now, &nodes);
    size_t n;
    if (now >= s->closes)
        return dt_xstrdup("time: that of the allocation is nearly over");
    struct dt_observation *o = finished(s, true, &n);
    char *why = dt_stopping_limit(&s->stopping, o, n, now - s->t_start, spent / 3600);
    free(o);
    return why ? why : dt_study_no_population(s);
}

static size_t count_cheap(const struct dt_study *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->nfinished; i++)
        n += !dt_space_is_full(s->space, dt_study_trial(s, s->finished[i])->x);
    return n;
}

/* No improvement over the window, and none to be expected over another: a lucky start is no reason
 * to stop (Makarova et al., "Automatic termination for hyperparameter optimization", AutoML 2022).
 * A trial at a lower fidelity is one of those that have to be made, but only full ones can improve.
 */
static char *why_settled(const struct dt_study *s)
{
    struct dt_stopping st = s->stopping;
    size_t n, cheap = count_cheap(s);
    struct dt_observation *o = finished(s, false, &n);
    st.min_configs -= cheap < st.min_configs ? cheap : st.min_configs;
    char *why = dt_stopping_settled(&st, o, n, s->spec->maximize);
    free(o);
    if (!why)
        return NULL;
    struct dt_context ctx = dt_study_context(s, &o);
    if (dt_optimizer_promise(s->optimizer, &ctx) > ctx.enough) {
        free(why);
        why = NULL;
    }
    free(o);
    return why;
}

/* Node-hours, or else time: the same that dt_study_context() counts as cost. */
double dt_study_budget_left(const struct dt_study *s, double now)
{
    double nodes, hours = dt_study_node_seconds(s, now, &nodes) / 3600;
    if (isfinite(s->stopping.max_node_hours))
        return fmax(1 - hours / s->stopping.max_node_hours, 0);
    if (isfinite(s->stopping.deadline))
        return fmax(1 - (now - s->t_start) / s->stopping.deadline, 0);
    return 0;
}

/* The last fifth of the trials is at the highest fidelity, which alone can be recommended. */
static bool is_late(const struct dt_study *s)
{
    size_t last = s->stopping.max_configs / 5;
    return s->n + (last ? last : 1) >= s->stopping.max_configs;
}

static int create(struct dt_study *s, double now, struct dt_action *a, struct dt_error *e)
{
    a->x = dt_xcalloc(s->space->n, sizeof(double));
    if (s->submitted && s->n == 0) {
        memcpy(a->x, s->submitted, s->space->n * sizeof(double));
        a->why = dt_xstrdup("as submitted");
        a->kind = DT_ACTION_CREATE;
        return 0;
    }
    struct dt_observation *o;
    struct dt_context ctx = dt_study_context(s, &o);
    ctx.budget_left = dt_study_budget_left(s, now);
    ctx.conclude = is_late(s);
    int rc = dt_optimizer_suggest(s->optimizer, &ctx, a->x, e);
    free(o);
    if (rc == 1) {
        a->why = dt_xstrdup(dt_study_algorithm(s->spec, s->space));
        a->kind = DT_ACTION_CREATE;
    } else {
        dt_action_free(a);
    }
    return rc < 0 ? -1 : 0;
}

/* ---- before the end ---- */

static size_t repeats_in_a_row(const struct dt_study *s)
{
    size_t n = 0;
    while (n < s->n && s->trials[s->n - 1 - n].again)
        n++;
    return n;
}

static bool better(const struct dt_study *s, double a, double b)
{
    return isnan(b) || (s->spec->maximize ? a > b : a < b);
}

/* The part of a re-allocated trial whose configuration promises to be the best of all but was never
 * run as a whole; NULL: there is none. It has to have done enough for its speed to mean something.
 */
static const struct dt_part *best_part(const struct dt_study *s, const struct dt_trial **of)
{
    const struct dt_trial *leader = dt_study_best(s);
    const struct dt_part *best = NULL;
    struct dt_observation o;
    int n;
    double least = leader ? dt_study_mean(s, leader, &n) : NAN;
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_trial *t = &s->trials[i];
        for (size_t k = 0; k < t->nparts; k++) {
            const struct dt_part *p = &t->parts[k];
            if (!dt_trial_observe_part(s, t, p, &o) || o.status != DT_STATUS_OK ||
                !better(s, o.value, least) || !dt_part_is_enough(s, t, p) ||
                dt_study_tried_whole(s, p->x))
                continue;
            best = p;
            *of = t;
            least = o.value;
        }
    }
    return best;
}

/* A trial that is left where it is, to measure what a part of another promised. */
static bool create_whole(const struct dt_study *s, struct dt_action *a)
{
    const struct dt_trial *of = NULL;
    const struct dt_part *p = s->repeats ? best_part(s, &of) : NULL;
    if (!p)
        return false;
    a->x = dt_xcalloc(s->space->n, sizeof(double));
    memcpy(a->x, p->x, s->space->n * sizeof(double));
    a->why =
        dt_xasprintf("measured as a whole: run %d of trial %d was the fastest", p->run, of->id);
    a->kind = DT_ACTION_CREATE;
    return true;
}

/* One more measurement of what may be recommended, where that is of use. */
static bool create_repeat(const struct dt_study *s, struct dt_action *a)
{
    if (create_whole(s, a))
        return true;
    if (repeats_in_a_row(s) >= s->repeats)
        return false;
    struct dt_observation *o;
    struct dt_context ctx = dt_study_context(s, &o);
    int i = dt_context_repeat(&ctx);
    free(o);
    if (i < 0)
        return false;
    a->x = dt_xcalloc(s->space->n, sizeof(double));
    memcpy(a->x, s->trials[i].x, s->space->n * sizeof(double));
    a->why = dt_xstrdup("measured again");
    a->again = s->trials[i].id;
    a->kind = DT_ACTION_CREATE;
    return true;
}

static bool repeat_open(const struct dt_study *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (dt_trial_measures(s, &s->trials[i]) && s->trials[i].state != DT_TRIAL_ENDED)
            return true;
    return false;
}

/* The last trials are kept for measuring again. */
static bool near_the_end(const struct dt_study *s)
{
    size_t kept = s->stopping.max_configs / 5;
    kept = kept < s->repeats ? kept : s->repeats;
    return s->n + kept >= s->stopping.max_configs;
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

/* A trial whose target is reached is done, and so is one that promises too little. */
static bool cancel_done(const struct dt_study *s, struct dt_action *a)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_trial *t = &s->trials[i];
        if (dt_trial_live(t) && (t->pruned || !isnan(t->t_target)) && !t->cancelling) {
            a->kind = DT_ACTION_CANCEL;
            a->trial = t->id;
            return true;
        }
    }
    return false;
}

static size_t width(const struct dt_study *s)
{
    struct dt_observation *o;
    struct dt_context ctx = dt_study_context(s, &o);
    size_t n = dt_optimizer_width(s->optimizer, &ctx);
    free(o);
    return n;
}

/* A clock that was set back says nothing of how long it has waited. */
static bool is_due(const struct dt_trial *t, double now)
{
    return t->deferred <= now || now < t->t_deferred;
}

/* Submits what is due; returns how many of the places for trials are taken. */
static size_t submit_due(const struct dt_study *s, double now, struct dt_action *a)
{
    size_t taken = 0;
    for (size_t i = 0; i < s->n; i++)
        taken += dt_trial_live(&s->trials[i]);
    for (size_t i = 0; i < s->n && taken < s->parallel; i++) {
        const struct dt_trial *t = &s->trials[i];
        if (t->state != DT_TRIAL_CREATED)
            continue;
        if (is_due(t, now)) {
            a->kind = DT_ACTION_SUBMIT;
            a->trial = t->id;
            return taken;
        }
        taken++;
    }
    return taken;
}

/* Whether a trial waits for the end of another, or for longer than there is time: it comes before
 * all new ones, and if nothing runs its turn will not come. */
static bool held_up(const struct dt_study *s, struct dt_action *a)
{
    bool held = false, live = false;
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_trial *t = &s->trials[i];
        live |= dt_trial_live(t);
        held |= t->state == DT_TRIAL_CREATED && t->deferred > 0 && t->deferred >= s->closes;
    }
    if (held && !live) {
        a->kind = DT_ACTION_STOP;
        a->why = dt_xstrdup("time: too little of the allocation's is left for another trial");
    }
    return held;
}

/* There is room for a trial, and each has to be asked for. */
static int decide_asked(struct dt_study *s, size_t taken, double now, struct dt_action *a,
                        struct dt_error *e)
{
    bool full = s->n >= s->stopping.max_configs;
    const char *why;
    for (size_t i = 0; i < s->nasks && !full; i++) {
        if (s->asks[i].trial || s->asks[i].withdrawn)
            continue;
        a->x = dt_xcalloc(s->space->n, sizeof(double));
        if (dt_study_place(s, &s->asks[i], now, a->x, &why, e) < 0)
            return -1;
        a->why = dt_xstrdup(why);
        a->ask = (int)i + 1;
        a->kind = DT_ACTION_CREATE;
        return 0;
    }
    if (taken > 0 || (!full && !s->no_more))
        return 0;
    a->kind = DT_ACTION_STOP;
    a->why = full ? dt_xasprintf("maximum of configurations: %zu were tried", s->n)
                  : dt_xstrdup("no more was asked for");
    return 0;
}

/* A population: so many trials begin by themselves as run at once, and each place is then handed on
 * until its trial ends by itself. */
static int decide_member(struct dt_study *s, size_t taken, double now, struct dt_action *a,
                         struct dt_error *e)
{
    size_t founders = dt_study_founders(s);
    bool room = taken < s->parallel && s->n < s->stopping.max_configs;
    if (held_up(s, a))
        return 0;
    if (room && dt_study_replace_failed(s, now, a))
        return 0;
    if (room && founders < s->parallel && create(s, now, a, e) < 0)
        return -1;
    if (a->kind != DT_ACTION_NONE || taken > 0)
        return 0;
    a->kind = DT_ACTION_STOP;
    a->why = dt_xasprintf("population: all %zu members are over", founders);
    return 0;
}

/* There is room for one more trial. `settled`: why new configurations promise nothing, or NULL. */
static int decide_next(struct dt_study *s, size_t taken, const char *settled, double now,
                       struct dt_action *a, struct dt_error *e)
{
    bool full = s->n >= s->stopping.max_configs;
    if (!full && (settled || near_the_end(s)) && create_repeat(s, a))
        return 0;
    if (!settled && !full && create(s, now, a, e) < 0)
        return -1;
    if (a->kind != DT_ACTION_NONE || (settled ? repeat_open(s) : taken > 0))
        return 0;
    if (!settled && !full && create_repeat(s, a)) /* the space is exhausted */
        return 0;
    a->kind = DT_ACTION_STOP;
    a->why = settled ? dt_xstrdup(settled)
             : full /* also where some taught nothing, so that it always ends */
                 ? dt_xasprintf("maximum of configurations: %zu were tried", s->n)
                 : dt_xstrdup("space: every configuration was tried");
    return 0;
}

int dt_study_decide(struct dt_study *s, double now, struct dt_action *a, struct dt_error *e)
{
    *a = (struct dt_action){.kind = DT_ACTION_NONE};
    if (s->stop_reason) {
        decide_ending(s, a);
        return 0;
    }
    if (cancel_done(s, a) || dt_study_move(s, now, a))
        return 0;
    bool population = dt_study_is_population(s);
    if (population && dt_study_create_child(s, a))
        return 0;
    a->trial =
        population ? dt_study_gives_way(s, &a->parent, &a->why) : dt_study_hopeless(s, &a->why);
    if (a->trial) {
        a->kind = DT_ACTION_PRUNE;
        return 0;
    }
    a->why = s->n || s->external ? why_stop(s, now) : NULL;
    if (a->why) {
        a->kind = DT_ACTION_STOP;
        return 0;
    }
    a->trial = dt_study_reallocate(s, now, &a->x, &a->why);
    if (a->trial) {
        a->kind = dt_study_shrinks(s, dt_study_trial(s, a->trial), a->x) ? DT_ACTION_SHRINK
                                                                         : DT_ACTION_REALLOCATE;
        return 0;
    }
    size_t taken = submit_due(s, now, a);
    if (a->kind == DT_ACTION_NONE && population)
        return decide_member(s, taken, now, a, e);
    if (a->kind != DT_ACTION_NONE || held_up(s, a) || taken >= s->parallel ||
        (taken > 0 && taken >= width(s)))
        return 0;
    char *settled = s->n && !s->external ? why_settled(s) : NULL;
    int rc = s->external ? decide_asked(s, taken, now, a, e)
                         : decide_next(s, taken, settled, now, a, e);
    free(settled);
    if (rc < 0)
        dt_action_free(a);
    return rc;
}

bool dt_study_all_begun(const struct dt_study *s)
{
    bool moves = s->spec->reallocate.allocator.rule != DT_ALLOCATE_NONE && !s->no_moves;
    bool full = s->n >= s->stopping.max_configs, none_asked = s->external && s->no_more;
    for (size_t i = 0; i < s->nasks; i++)
        none_asked &= s->asks[i].trial || s->asks[i].withdrawn;
    bool begun = !moves && (full || none_asked);
    for (size_t i = 0; i < s->n && begun; i++)
        begun = s->trials[i].state != DT_TRIAL_CREATED && !s->trials[i].heir;
    return begun;
}

void dt_action_free(struct dt_action *a)
{
    free(a->x);
    free(a->why);
    *a = (struct dt_action){.kind = DT_ACTION_NONE};
}
