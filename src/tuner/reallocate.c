/* Re-allocation: a running trial is asked for a checkpoint and goes on in another shape, as the
 * allocator wishes. */
#include "tuner/tuner.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ENOUGH 0.02 /* of the whole work: from then on a part's speed is more than a glimpse */

/* ---- how far a trial is, and how fast ---- */

/* How far the trial is by its own count: the metric, or NULL where it does not say. */
static const struct dt_metric *progress_of(const struct dt_study *s, const struct dt_trial *t)
{
    if (s->spec->step)
        return dt_trial_metric(t, s->spec->step);
    const struct dt_metric *m = dt_trial_metric(t, "epoch");
    return m ? m : dt_trial_metric(t, "step");
}

static double pace_of(const struct dt_metric *m)
{
    return m && m->last > m->first && m->last_t > m->first_t
               ? (m->last_t - m->first_t) / (m->last - m->first)
               : NAN;
}

double dt_trial_throughput(const struct dt_study *s, const struct dt_trial *t)
{
    const struct dt_metric *m = dt_trial_metric(t, "throughput");
    if (m)
        return m->last;
    m = dt_trial_metric(t, s->spec->step ? s->spec->step : "step");
    return isnan(pace_of(m)) ? NAN : (m->last - m->first) / (m->last_t - m->first_t);
}

/* From when on the present run was at work. */
static double at_work_since(const struct dt_study *s, const struct dt_trial *t)
{
    const struct dt_metric *m = progress_of(s, t);
    return m ? m->first_t : -INFINITY;
}

/* How busy a role of the present run was of late, by its CPUs or GPUs, whichever were busier. */
static double level(const struct dt_study *s, const struct dt_trial *t, const char *role)
{
    const struct dt_role_usage *r = dt_role_usages_find(&t->usage, role);
    double sum = 0, n = 0, since = at_work_since(s, t);
    for (size_t i = 0; r && i < r->n; i++) {
        const struct dt_usage *u = &r->recent[i];
        double x = dt_usage_busy(u);
        if (isnan(x) || u->t < since)
            continue;
        sum += (double)u->n * x;
        n += (double)u->n;
    }
    return sum / n;
}

void dt_trial_keep_part(const struct dt_study *s, struct dt_trial *t, bool moved)
{
    const struct dt_metric *m = progress_of(s, t);
    if (!m && !t->move.x)
        return;
    struct dt_part p = {.x = dt_xcalloc(s->space->n, sizeof(double)),
                        .run = t->run,
                        .moved = moved,
                        .from = m ? m->first : NAN,
                        .to = m ? m->last : NAN,
                        .pace = pace_of(m),
                        .before = m ? m->first_t - t->t_started : NAN,
                        .rate = dt_trial_throughput(s, t),
                        .ps = level(s, t, "ps"),
                        .worker = level(s, t, "worker"),
                        .billing = t->billing,
                        .wait_s = t->wait_s,
                        .run_s = t->run_s,
                        .checkpoint_s = t->move.x ? t->t_ended - t->move.t_asked : NAN};
    memcpy(p.x, t->x, s->space->n * sizeof(double));
    const struct dt_metric *o = s->spec->metric ? dt_trial_metric(t, s->spec->metric) : NULL;
    if (o && o->series.n) {
        p.ncurve = o->series.n;
        p.curve = dt_xcalloc(p.ncurve, sizeof(*p.curve));
        memcpy(p.curve, o->series.v, p.ncurve * sizeof(*p.curve));
    }
    t->parts = dt_xrealloc(t->parts, t->nparts + 1, sizeof(*t->parts));
    t->parts[t->nparts++] = p;
}

bool dt_trial_resumed(const struct dt_study *s, const struct dt_trial *t)
{
    const struct dt_metric *m = progress_of(s, t);
    bool asked = false;
    for (size_t i = 0; i < t->nparts; i++) {
        if (t->parts[i].moved)
            return true;
        asked |= !isnan(t->parts[i].checkpoint_s);
    }
    bool anew = t->nparts == 0 || (m && m->first <= t->parts[0].from);
    /* one that was asked for a checkpoint may have written it without a word */
    return !anew && (asked || (m && m->first > t->parts[0].from));
}

/* ---- what the work is worth ---- */

/* Steps of a trial's whole work, as those at the same fidelity that ended well have done it: all,
 * or `alike` the ones with the same hyperparameters. NaN where there are none. */
static double whole_work(const struct dt_study *s, const struct dt_trial *of, bool alike)
{
    double most = NAN;
    int f = dt_space_fidelity(s->space);
    if (s->spec->reallocate.work > 0 && dt_space_is_full(s->space, of->x))
        return s->spec->reallocate.work;
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_trial *t = &s->trials[i];
        const struct dt_metric *m = progress_of(s, t);
        bool same = alike ? dt_config_same_hyper(s->space, t->x, of->x)
                          : f < 0 || dt_config_equal(t->x + f, of->x + f, 1);
        if (m && same && t->status == DT_STATUS_OK)
            most = fmax(most, m->last);
    }
    return most;
}

/* Seconds from the last report to the end of the trial, or to the target, which is before it. */
static double rest_of(const struct dt_trial *t, const struct dt_metric *m)
{
    double rest = t->run_s - (m->last_t - t->t_started);
    if (!isnan(t->t_target))
        return t->t_target - m->last_t;
    return isfinite(rest) ? fmax(rest, 0) : 0;
}

/* The first run's time until its first report, the steps from there at the steady speed, and what
 * comes behind. */
static double whole_time(const struct dt_study *s, const struct dt_trial *t, double pace)
{
    const struct dt_metric *m = progress_of(s, t);
    const struct dt_part *first = &t->parts[0];
    bool ended = t->cause == DT_CAUSE_OK || t->cause == DT_CAUSE_TARGET;
    double work = ended && m ? m->last : whole_work(s, t, true);
    return first->before + pace * (work - first->from) + (ended && m ? rest_of(t, m) : 0);
}

double dt_trial_time(const struct dt_study *s, const struct dt_trial *t)
{
    return dt_trial_resumed(s, t) ? whole_time(s, t, pace_of(progress_of(s, t))) : t->run_s;
}

double dt_trial_worth(const struct dt_study *s, const struct dt_trial *t,
                      const struct dt_part *part)
{
    double pace = part ? part->pace : pace_of(progress_of(s, t));
    switch (s->spec->objective) {
    case DT_OBJECTIVE_TIME:
        return whole_time(s, t, pace);
    case DT_OBJECTIVE_TURNAROUND:
        return whole_time(s, t, pace) + (part ? part->wait_s : t->wait_s);
    case DT_OBJECTIVE_COST:
        return whole_time(s, t, pace) * (part ? part->billing : t->billing);
    case DT_OBJECTIVE_THROUGHPUT:
        return part ? part->rate : dt_trial_throughput(s, t);
    case DT_OBJECTIVE_METRIC:
        break; /* what it came to, all its shapes came to together */
    }
    return NAN;
}

/* ---- what the allocator is to know ---- */

/* What a restart takes until the first report: of ten so far the ninth. */
static double start_cost(const struct dt_study *s)
{
    double *v = dt_xcalloc(2 * s->n + 1, sizeof(double));
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_trial *t = &s->trials[i];
        const struct dt_metric *m = progress_of(s, t);
        if (m && isfinite(t->wait_s) && isfinite(t->t_started))
            v[n++] = t->wait_s + fmax(m->first_t - t->t_started, 0);
        if (t->nparts && isfinite(t->parts[0].wait_s + t->parts[0].before))
            v[n++] = t->parts[0].wait_s + t->parts[0].before;
    }
    gsl_sort(v, 1, n);
    double cost = n ? v[(n - 1) * 9 / 10] : 0;
    free(v);
    return cost;
}

static double checkpoint_cost(const struct dt_study *s)
{
    double most = 0;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < s->trials[i].nparts; k++)
            most = fmax(most, s->trials[i].parts[k].checkpoint_s); /* not NaN: the other */
    return most;
}

bool dt_part_is_enough(const struct dt_study *s, const struct dt_trial *t, const struct dt_part *p)
{
    const struct dt_metric *m = progress_of(s, t);
    double work = whole_work(s, t, true);
    return p->to - p->from >= ENOUGH * (isnan(work) && m ? m->last : work);
}

bool dt_study_tried_whole(const struct dt_study *s, const double *x)
{
    for (size_t i = 0; i < s->n; i++)
        if (dt_config_equal(s->trials[i].x, x, s->space->n))
            return true;
    return false;
}

bool dt_trial_measures(const struct dt_study *s, const struct dt_trial *t)
{
    for (const struct dt_trial *o = s->trials; t->moves == 0 && o < t; o++)
        for (size_t k = 0; k < o->nparts; k++)
            if (dt_config_equal(o->parts[k].x, t->x, s->space->n))
                return true;
    return t->again != 0;
}

/* A repetition is a measurement, and left alone. So is a trial for some time after a restart, one
 * that promises too little, and one that starts up: until it has told twice how far it is, or has
 * run for long without a word. */
static bool may_move(const struct dt_study *s, const struct dt_trial *t, double now)
{
    static const char *const counts[] = {"ps", "workers", "ps_cpus", "worker_cpus"};
    bool known = t->state == DT_TRIAL_STARTED && !dt_trial_measures(s, t) && !t->pruned &&
                 !t->cancelling && !t->move.x && isnan(t->t_target) &&
                 t->moves < s->spec->reallocate.most;
    for (size_t i = 0; known && i < sizeof(counts) / sizeof(*counts); i++)
        known = dt_space_index(s->space, counts[i]) < 0 ||
                isfinite(dt_space_value(s->space, t->x, counts[i], NAN));
    bool at_work = t->moves == 0 && isfinite(pace_of(progress_of(s, t)));
    double since = t->shrunk ? t->t_shrunk : t->t_started;
    return known && (at_work || now - since >= s->spec->reallocate.cooldown);
}

static struct dt_stretch stretch_of_part(const struct dt_part *p)
{
    return (struct dt_stretch){p->x, p->pace, p->ps, p->worker};
}

static struct dt_stretch present_stretch(const struct dt_study *s, const struct dt_trial *t)
{
    return (struct dt_stretch){t->x, pace_of(progress_of(s, t)), level(s, t, "ps"),
                               level(s, t, "worker")};
}

/* As much is left as is done where nobody knows how much the whole is. */
static double remaining(const struct dt_study *s, const struct dt_trial *t)
{
    const struct dt_metric *m = progress_of(s, t);
    double work = whole_work(s, t, false);
    if (!m)
        return NAN;
    return isnan(work) ? m->last : fmax(work - m->last, 0);
}

/* Owns its stretches. */
static struct dt_running running(const struct dt_study *s, const struct dt_trial *t)
{
    struct dt_stretch *own = dt_xcalloc(t->nparts + 1, sizeof(*own)), *others = NULL;
    size_t n = 0, nothers = 0;
    for (size_t i = 0; i < t->nparts; i++)
        if (t->parts[i].moved)
            own[n++] = stretch_of_part(&t->parts[i]);
    own[n++] = present_stretch(s, t);
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_trial *o = &s->trials[i];
        if (o == t || !dt_config_same_hyper(s->space, o->x, t->x))
            continue;
        others = dt_xrealloc(others, nothers + o->nparts + 1, sizeof(*others));
        others[nothers++] = present_stretch(s, o);
        for (size_t k = 0; k < o->nparts; k++)
            others[nothers++] = stretch_of_part(&o->parts[k]);
    }
    return (struct dt_running){.usage = &t->usage,
                               .since = at_work_since(s, t),
                               .stretches = own,
                               .n = n,
                               .others = others,
                               .nothers = nothers,
                               .remaining = remaining(s, t),
                               .left = s->spec->reallocate.most - t->moves};
}

int dt_study_reallocate(const struct dt_study *s, double now, double **x, char **why)
{
    struct dt_allocator a = s->spec->reallocate.allocator;
    int id = 0;
    if (a.rule == DT_ALLOCATE_NONE || s->no_moves)
        return 0;
    struct dt_running *v = dt_xcalloc(s->n, sizeof(*v));
    struct dt_wish *wishes = dt_xcalloc(s->n, sizeof(*wishes));
    int *ids = dt_xcalloc(s->n, sizeof(*ids));
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (!may_move(s, &s->trials[i], now))
            continue;
        ids[n] = s->trials[i].id;
        v[n++] = running(s, &s->trials[i]);
    }
    a.restart_s = n ? start_cost(s) + checkpoint_cost(s) : 0;
    a.cluster = s->cluster;
    a.constraint = s->job ? s->job->constraint : NULL;
    a.mem_given = s->job && (s->job->mem_mib || s->job->node_mem_mib);
    dt_allocate(&a, s->space, v, n, wishes);
    for (size_t i = 0; i < n; i++) {
        if (wishes[i].x && !id) {
            id = ids[i];
            *x = wishes[i].x;
            *why = wishes[i].why;
            wishes[i] = (struct dt_wish){0};
        }
        dt_wish_free(&wishes[i]);
        free((struct dt_stretch *)v[i].stretches);
        free((struct dt_stretch *)v[i].others);
    }
    free(v);
    free(wishes);
    free(ids);
    return id;
}

/* A step of Slurm has its CPUs until all of it has ended, so in layout steps nothing would come
 * free. Whatever layout the job as submitted has, it stays. */
bool dt_study_shrinks(const struct dt_study *s, const struct dt_trial *t, double *x)
{
    int workers = dt_space_index(s->space, "workers"), layout = dt_space_index(s->space, "layout");
    bool fewer = s->spec->reallocate.in_place && s->spec->layout != DT_LAYOUT_STEPS &&
                 workers >= 0 && x[workers] < t->x[workers] && progress_of(s, t);
    for (int i = 0; i < (int)s->space->n && fewer; i++)
        fewer =
            i == workers || dt_config_equal(x + i, t->x + i, 1) || (i == layout && isnan(t->x[i]));
    if (fewer && layout >= 0)
        x[layout] = t->x[layout];
    return fewer;
}

/* ---- carrying it out ---- */

static double give_up_at(const struct dt_study *s, const struct dt_trial *t)
{
    bool waits = dt_trial_live(t) && t->move.x && !t->move.kept && !t->move.checkpointed;
    return waits ? t->move.t_asked + s->spec->checkpoint.grace : INFINITY;
}

double dt_study_move_due(const struct dt_study *s)
{
    double due = INFINITY;
    for (size_t i = 0; i < s->n; i++)
        due = fmin(due, give_up_at(s, &s->trials[i]));
    return due;
}

bool dt_study_move(const struct dt_study *s, double now, struct dt_action *a)
{
    for (size_t i = 0; i < s->n && a->kind == DT_ACTION_NONE; i++) {
        const struct dt_trial *t = &s->trials[i];
        if (dt_trial_live(t) && t->shrunk && !t->shedding) {
            a->kind = DT_ACTION_SHED;
            a->trial = t->id;
            break;
        }
        if (!dt_trial_live(t) || !t->move.x)
            continue;
        if (now >= give_up_at(s, t)) {
            a->kind = DT_ACTION_KEEP;
            a->why = dt_xasprintf("no checkpoint within %g s", s->spec->checkpoint.grace);
        } else if (t->move.checkpointed && !t->cancelling) {
            a->kind = DT_ACTION_CANCEL;
        } else if (!t->move.asking && !t->move.kept) {
            a->kind = DT_ACTION_CHECKPOINT;
        }
        a->trial = a->kind == DT_ACTION_NONE ? 0 : t->id;
    }
    return a->kind != DT_ACTION_NONE;
}

static void forget_move(struct dt_trial *t)
{
    free(t->move.x);
    t->move = (struct dt_move){0};
}

static int begin_move(struct dt_study *s, struct dt_trial *t, const struct dt_event *ev,
                      struct dt_error *e)
{
    double *x = dt_study_read_config(s, ev, e);
    if (!x)
        return -1;
    forget_move(t);
    t->move = (struct dt_move){.x = x, .t_asked = ev->t};
    t->moves++;
    return 0;
}

/* From here on the speed is that of the new shape: a metric's course begins anew where it is. */
static void rebase(struct dt_metric *m)
{
    struct dt_point last =
        m->series.n ? m->series.v[m->series.n - 1] : (struct dt_point){NAN, NAN, m->last_t};
    m->first = m->last;
    m->first_t = m->last_t;
    dt_series_free(&m->series);
    m->series = (struct dt_series){0};
    if (!isnan(last.step))
        dt_series_add(&m->series, last.step, last.value, last.t);
}

static int shrink(struct dt_study *s, struct dt_trial *t, const struct dt_event *ev,
                  struct dt_error *e)
{
    double *x = dt_study_read_config(s, ev, e);
    if (!x)
        return -1;
    dt_trial_keep_part(s, t, true);
    for (size_t i = 0; i < t->nmetrics; i++)
        rebase(&t->metrics[i]);
    dt_role_usages_new_run(&t->usage);
    free(t->x);
    t->x = x;
    t->moves++;
    t->shrunk = true;
    t->t_shrunk = ev->t;
    t->shedding = false;
    return 0;
}

/* A program that does not do it once is not asked again, in no trial. */
static void no_more_moves(struct dt_study *s, const struct dt_trial *t, const char *what)
{
    if (!s->no_moves)
        s->no_moves = dt_xasprintf("trial %d, asked for a checkpoint, %s", t->id, what);
}

int dt_study_apply_move(struct dt_study *s, struct dt_trial *t, const struct dt_event *ev,
                        struct dt_error *e)
{
    if (ev->kind == DT_EVENT_REALLOCATING)
        return begin_move(s, t, ev, e);
    if (ev->kind == DT_EVENT_SHRINKING)
        return shrink(s, t, ev, e);
    if (!t->move.x)
        return 0; /* it has ended meanwhile */
    if (ev->kind == DT_EVENT_CHECKPOINTED) {
        t->move.checkpointed = true;
    } else {
        t->move.kept = true;
        no_more_moves(s, t, "wrote none in time");
    }
    return 0;
}

/* Whether the run, by its own count, had done all there was to do. */
static bool work_is_done(const struct dt_study *s, const struct dt_trial *t)
{
    const struct dt_metric *m = progress_of(s, t);
    double work = whole_work(s, t, true);
    return m && isfinite(work) && m->last >= work * (1 - 1e-6);
}

static void move_done(struct dt_study *s, struct dt_trial *t)
{
    dt_trial_keep_part(s, t, true);
    free(t->x);
    t->x = t->move.x;
    t->move.x = NULL;
    free(s->no_moves); /* it was only late */
    s->no_moves = NULL;
}

enum dt_move_end dt_study_move_ended(struct dt_study *s, struct dt_trial *t,
                                     const struct dt_event *ev)
{
    bool word = ev->cause == DT_CAUSE_EXIT && ev->exit_code == s->spec->checkpoint.exit_code;
    bool ours =
        ev->cause == DT_CAUSE_CANCELLED && t->move.checkpointed && !ev->foreign && !s->stop_reason;
    enum dt_move_end end = DT_MOVE_NONE;
    if (!t->move.x)
        return end;
    if (t->pruned || !isnan(t->t_target)) {
        end = DT_MOVE_NONE;
    } else if (ours || word ||
               (ev->cause == DT_CAUSE_OK && t->move.checkpointed && !work_is_done(s, t))) {
        move_done(s, t);
        end = DT_MOVE_DONE;
    } else if (ev->cause == DT_CAUSE_OK && !t->move.kept && !work_is_done(s, t)) {
        no_more_moves(s, t, "ended without one, and whether its work was done is not known");
        end = DT_MOVE_LOST;
    } else if (ev->cause == DT_CAUSE_EXIT && !t->move.kept) {
        no_more_moves(s, t, "failed");
        end = DT_MOVE_LOST;
    }
    if (end == DT_MOVE_LOST)
        dt_trial_keep_part(s, t, false);
    forget_move(t);
    return end;
}

void dt_study_move_failed(struct dt_study *s, const struct dt_trial *t)
{
    bool moved = t->nparts && t->parts[t->nparts - 1].moved;
    if (moved && t->cause == DT_CAUSE_EXIT)
        no_more_moves(s, t, "failed when it was to go on from it");
}

void dt_trial_free_moves(struct dt_trial *t)
{
    forget_move(t);
    for (size_t i = 0; i < t->nparts; i++) {
        free(t->parts[i].x);
        free(t->parts[i].curve);
    }
    free(t->parts);
}
