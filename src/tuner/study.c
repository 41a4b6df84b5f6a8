#include "history/history.h"
#include "tuner/tuner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool varies(const struct dt_space *space, bool hyper)
{
    for (size_t i = 0; i < space->n; i++)
        if (space->params[i].hyper == hyper && dt_param_count(&space->params[i]) > 1)
            return true;
    return false;
}

const char *dt_study_algorithm(const struct dt_spec *spec, const struct dt_space *space)
{
    if (strcmp(spec->algorithm, "auto") != 0)
        return spec->algorithm;
    bool two =
        spec->objective == DT_OBJECTIVE_METRIC && varies(space, true) && varies(space, false);
    return two ? "joint" : "bayes";
}

struct dt_study *dt_study_new(const struct dt_spec *spec, const struct dt_space *space,
                              const double *submitted, struct dt_error *e)
{
    struct dt_study *s = dt_xcalloc(1, sizeof(*s));
    s->spec = spec;
    s->space = space;
    s->parallel = spec->parallel;
    s->repeats = spec->repeats;
    s->t_start = NAN;
    s->closes = INFINITY;
    s->stopping = (struct dt_stopping){
        .max_configs = spec->max_configs,
        .min_configs = spec->min_configs,
        .window = spec->window,
        .min_improve = spec->min_improve,
        .max_failures = spec->max_failures,
        .deadline = spec->deadline,
        .max_node_hours = spec->max_node_hours,
    };
    s->external = strcmp(spec->algorithm, "external") == 0;
    if (s->external)
        s->stopping.max_failures = 0; /* whoever chooses them sees them fail */
    if (submitted) {
        s->submitted = dt_xcalloc(space->n, sizeof(double));
        memcpy(s->submitted, submitted, space->n * sizeof(double));
    }
    s->optimizer = dt_optimizer_new(dt_study_algorithm(spec, space), space, spec->seed, e);
    if (!s->optimizer) {
        dt_study_free(s);
        return NULL;
    }
    return s;
}

static void forget_metrics(struct dt_trial *t)
{
    for (size_t i = 0; i < t->nmetrics; i++) {
        free(t->metrics[i].name);
        dt_series_free(&t->metrics[i].series);
    }
    free(t->metrics);
    free(t->note);
    t->metrics = NULL;
    t->note = NULL;
    t->nmetrics = 0;
    t->metrics_read = 0;
}

void dt_study_free(struct dt_study *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++) {
        struct dt_trial *t = &s->trials[i];
        forget_metrics(t);
        dt_role_usages_free(&t->usage);
        dt_trial_free_moves(t);
        free(t->x);
        free(t->why);
        free(t->text);
        free(t->pruned);
        free(t->alone);
        free(t->waits);
    }
    free(s->trials);
    free(s->finished);
    free(s->submitted);
    free(s->stop_reason);
    free(s->no_moves);
    dt_study_free_asks(s);
    dt_optimizer_free(s->optimizer);
    dt_past_free(s->past);
    free(s);
}

struct dt_trial *dt_study_trial(const struct dt_study *s, int id)
{
    return id >= 1 && (size_t)id <= s->n ? &s->trials[id - 1] : NULL;
}

bool dt_trial_live(const struct dt_trial *t)
{
    return t->state == DT_TRIAL_SUBMITTED || t->state == DT_TRIAL_STARTED;
}

const struct dt_metric *dt_trial_metric(const struct dt_trial *t, const char *name)
{
    for (size_t i = 0; i < t->nmetrics; i++)
        if (strcmp(t->metrics[i].name, name) == 0)
            return &t->metrics[i];
    return NULL;
}

/* ---- what an ended run is worth ---- */

/* Of a run that went on where an earlier one had ended the time says nothing: then its speed does. */
static bool by_speed(const struct dt_study *s, const struct dt_trial *t)
{
    return dt_spec_objective_is_time(s->spec) && dt_trial_resumed(s, t);
}

/* How long its work took: until it got to its target, if it did. That is no longer than it ran, where
 * it was suspended meanwhile, or the clock that says so was set or is another node's. */
static double work_time(const struct dt_trial *t)
{
    double to_target = t->t_target - t->t_started;
    return to_target < 0 && !isnan(t->run_s) ? t->run_s : fmin(to_target, t->run_s);
}

static double objective(const struct dt_study *s, const struct dt_trial *t)
{
    if (by_speed(s, t))
        return dt_trial_worth(s, t, NULL);
    const struct dt_metric *m;
    double run_s = isnan(t->t_target) ? t->run_s : work_time(t);
    switch (s->spec->objective) {
    case DT_OBJECTIVE_TIME:
        return run_s;
    case DT_OBJECTIVE_TURNAROUND:
        return run_s + t->wait_s;
    case DT_OBJECTIVE_COST:
        return run_s * t->billing;
    case DT_OBJECTIVE_THROUGHPUT:
        return dt_trial_throughput(s, t);
    case DT_OBJECTIVE_METRIC:
        m = dt_trial_metric(t, s->spec->metric);
        return m ? m->last : NAN;
    }
    return NAN;
}

double dt_trial_margin(const struct dt_study *s, const struct dt_trial *t)
{
    const struct dt_bound *b = &s->spec->quality;
    const struct dt_metric *m = b->metric ? dt_trial_metric(t, b->metric) : NULL;
    return m ? dt_bound_margin(b, m->last) : NAN;
}

double dt_trial_pace(const struct dt_study *s, const struct dt_trial *t)
{
    if (s->external && s->spec->objective != DT_OBJECTIVE_METRIC)
        return t->state != DT_TRIAL_ENDED ? NAN : s->spec->maximize ? 1 / t->value : t->value;
    const struct dt_metric *m = s->spec->metric ? dt_trial_metric(t, s->spec->metric) : NULL;
    if (!m || !m->series.n)
        return NAN;
    const struct dt_point *first = &m->series.v[0], *last = &m->series.v[m->series.n - 1];
    if (last->step > first->step && last->t > first->t)
        return (last->t - first->t) / (last->step - first->step);
    return last->step > 0 && !t->nparts && t->status == DT_STATUS_OK ? t->run_s / last->step : NAN;
}

/* What a run that ended well may still be short of. */
static enum dt_cause shortcoming(const struct dt_study *s, const struct dt_trial *t)
{
    double margin = dt_trial_margin(s, t);
    if (s->spec->target.metric && isnan(t->t_target))
        return DT_CAUSE_TARGET_MISSED;
    if ((!isfinite(t->value) && !by_speed(s, t)) || (s->spec->quality.metric && isnan(margin)))
        return DT_CAUSE_NO_METRIC;
    if (s->spec->quality.metric && margin < 0 && dt_space_is_full(s->space, t->x))
        return DT_CAUSE_POOR; /* of a part of the work it is not asked */
    return t->cause;
}

static enum dt_status status_of(const struct dt_study *s, const struct dt_trial *t)
{
    switch (t->cause) {
    case DT_CAUSE_OK:
    case DT_CAUSE_TARGET:
        return isfinite(t->value) ? DT_STATUS_OK : DT_STATUS_VOID;
    case DT_CAUSE_POOR:
        return DT_STATUS_POOR;
    case DT_CAUSE_PRUNED:
        if (s->external && (!isfinite(t->value) || s->spec->objective != DT_OBJECTIVE_METRIC))
            return DT_STATUS_VOID; /* nobody says that its configuration was to blame */
        return isfinite(t->value) ? DT_STATUS_PRUNED : DT_STATUS_FAILED;
    case DT_CAUSE_EXIT: /* of one that was to go on from a checkpoint nobody knows whether it could
                         */
        return dt_trial_resumed(s, t) ? DT_STATUS_VOID : DT_STATUS_FAILED;
    case DT_CAUSE_NO_METRIC: /* one that goes on may have found all its work done */
        return dt_trial_resumed(s, t) || (t->parent && !t->alone) ? DT_STATUS_VOID
                                                                  : DT_STATUS_FAILED;
    case DT_CAUSE_TIME_LIMIT: /* it takes at least so long */
        if (by_speed(s, t))
            return DT_STATUS_VOID;
        return dt_spec_objective_is_time(s->spec) && isfinite(t->value) ? DT_STATUS_CENSORED
                                                                        : DT_STATUS_FAILED;
    default:
        return t->cause >= DT_CAUSE_NODE_FAILURE ? DT_STATUS_VOID : DT_STATUS_FAILED;
    }
}

static void judge(const struct dt_study *s, struct dt_trial *t)
{
    t->value = objective(s, t);
    if (t->cause == DT_CAUSE_OK || t->cause == DT_CAUSE_TARGET)
        t->cause = shortcoming(s, t);
    t->status = status_of(s, t);
    if (t->status == DT_STATUS_FAILED || t->status == DT_STATUS_VOID)
        t->value = NAN;
}

/* What the user should know of a run that ended well and is worth nothing; NULL: nothing. */
static char *what_is_missing(const struct dt_study *s, const struct dt_trial *t)
{
    const char *name = s->spec->objective == DT_OBJECTIVE_METRIC ? s->spec->metric : NULL;
    if (t->cause == DT_CAUSE_TARGET_MISSED)
        name = s->spec->target.metric;
    else if (t->cause == DT_CAUSE_POOR ||
             (t->cause == DT_CAUSE_NO_METRIC && isfinite(objective(s, t))))
        name = s->spec->quality.metric;
    else if (t->cause != DT_CAUSE_NO_METRIC)
        return NULL;
    else if (s->spec->objective == DT_OBJECTIVE_THROUGHPUT && !dt_trial_metric(t, "throughput"))
        return dt_xasprintf("neither throughput nor %s, growing with time, was reported",
                            s->spec->step ? s->spec->step : "step");
    const struct dt_metric *m = name ? dt_trial_metric(t, name) : NULL;
    if (m && isfinite(m->last))
        return dt_xasprintf("the last value of %s was %g", name, m->last);
    if (m)
        return dt_xasprintf("the last value of %s was not a finite number", name);
    if (!name)
        return NULL;
    struct dt_buf b = DT_BUF_INIT;
    const char *pattern = dt_spec_pattern(s->spec, name);
    dt_buf_addf(&b, "%s was not reported; ", name);
    if (pattern)
        dt_buf_addf(&b, "the pattern \"%s\" matched no line with a number; ", pattern);
    dt_buf_add(&b, "reported: ");
    for (size_t i = 0; i < t->nmetrics; i++)
        dt_buf_addf(&b, "%s%s", i ? ", " : "", t->metrics[i].name);
    if (!t->nmetrics)
        dt_buf_add(&b, pattern
                           ? "nothing"
                           : "nothing (dt-tune metric reports it, or a pattern in SPEC finds it "
                             "in the output: METRICS in dt-tune(1))");
    return dt_buf_take(&b);
}

/* ---- the fold ---- */

static int check_parent(const struct dt_study *s, const struct dt_event *ev, struct dt_error *e)
{
    const struct dt_trial *instead = dt_study_trial(s, ev->instead);
    if (ev->parent &&
        (!dt_study_trial(s, ev->parent) || !instead || !dt_study_has_place(s, instead)))
        return dt_fail(e, "trial %d cannot go on from trial %d in the place of trial %d", ev->trial,
                       ev->parent, ev->instead);
    return 0;
}

double *dt_study_read_config(const struct dt_study *s, const struct dt_event *ev,
                             struct dt_error *e)
{
    double *x = dt_xcalloc(s->space->n, sizeof(double));
    if (dt_config_from_json(s->space, ev->config, x, e) == 0)
        return x;
    free(x);
    dt_fail_at(e, "trial %d", ev->trial);
    return NULL;
}

static int apply_created(struct dt_study *s, const struct dt_event *ev, struct dt_error *e)
{
    if (ev->trial != (int)s->n + 1)
        return dt_fail(e, "trial %d was created out of order", ev->trial);
    if (ev->again < 0 || ev->again > (int)s->n || (ev->again && s->trials[ev->again - 1].again))
        return dt_fail(e, "trial %d cannot measure trial %d again", ev->trial, ev->again);
    if (check_parent(s, ev, e) < 0)
        return -1;
    int ask = ev->ask ? dt_study_find_ask(s, ev->ask) : -1;
    if (ev->ask && (ask < 0 || s->asks[ask].trial))
        return dt_fail(e, "trial %d answers %s, which nobody asks", ev->trial,
                       json_object_to_json_string(ev->ask));
    double *x = dt_study_read_config(s, ev, e);
    if (!x)
        return -1;
    s->trials = dt_xrealloc(s->trials, s->n + 1, sizeof(*s->trials));
    s->trials[s->n++] = (struct dt_trial){
        .id = ev->trial,
        .again = ev->again,
        .parent = ev->parent,
        .instead = ev->instead,
        .from = ev->parent ? NAN : 0,
        .start = ev->parent ? NAN : 0,
        .ask = ask + 1,
        .x = x,
        .why = dt_xstrdup(ev->text ? ev->text : ""),
        .run = 1,
        .wait_s = NAN,
        .startup_s = NAN,
        .run_s = NAN,
        .billing = NAN,
        .nodes = NAN,
        .t_created = ev->t,
        .t_started = NAN,
        .t_target = NAN,
        .value = NAN,
    };
    if (ask >= 0)
        s->asks[ask].trial = ev->trial;
    if (ev->parent)
        dt_study_trial(s, ev->instead)->heir = 0;
    return 0;
}

/* All that was found before there is told by now. */
static void mark_read(struct dt_trial *t, int64_t offset)
{
    t->metrics_read = offset;
    for (size_t i = 0; i < t->nmetrics; i++)
        t->metrics[i].read = t->metrics[i].count;
}

static void apply_metric(const struct dt_study *s, struct dt_trial *t, const struct dt_event *ev)
{
    struct dt_metric *m = (struct dt_metric *)dt_trial_metric(t, ev->text);
    if (!m) {
        t->metrics = dt_xrealloc(t->metrics, t->nmetrics + 1, sizeof(*t->metrics));
        m = &t->metrics[t->nmetrics++];
        *m = (struct dt_metric){.name = dt_xstrdup(ev->text), .first_t = ev->t};
        m->first = isfinite(ev->value) ? ev->value : NAN;
    }
    /* the journal holds no infinities, and a replay must come to the same state */
    m->last = isfinite(ev->value) ? ev->value : NAN;
    m->last_t = ev->t;
    m->count = ev->count ? ev->count : m->count + 1;
    m->stepless |= isnan(ev->step);
    dt_series_add(&m->series, isnan(ev->step) ? (double)m->count : ev->step, m->last, ev->t);
    if (ev->read)
        mark_read(t, ev->read);
    bool hit = s->spec->target.metric && strcmp(ev->text, s->spec->target.metric) == 0 &&
               isfinite(ev->value) && dt_bound_margin(&s->spec->target, ev->value) >= 0;
    if (hit && isnan(t->t_target))
        t->t_target = ev->t;
}

/* How far a trial's present run has come, where a metric is the objective. */
static double last_step(const struct dt_study *s, const struct dt_trial *t)
{
    const struct dt_metric *m = dt_trial_metric(t, s->spec->metric);
    return m && m->series.n ? m->series.v[m->series.n - 1].step : t->start;
}

/* It goes on from its parent's checkpoint: at most from where the parent was by then. */
static void apply_handed_over(const struct dt_study *s, struct dt_trial *t,
                              const struct dt_event *ev)
{
    t->alone = ev->text ? dt_xstrdup(ev->text) : NULL;
    t->from = t->start = t->alone ? 0 : last_step(s, dt_study_trial(s, t->parent));
}

static void apply_submitted(const struct dt_study *s, struct dt_trial *t, const struct dt_event *ev)
{
    t->state = DT_TRIAL_SUBMITTED;
    free(t->waits);
    t->waits = NULL;
    t->job = ev->job;
    t->t_submitted = ev->t;
    t->t_started = NAN;
    if (t->parent && isnan(t->from))
        apply_handed_over(s, t, ev);
}

static void apply_deferred(struct dt_trial *t, const struct dt_event *ev)
{
    t->deferred = ev->until;
    t->t_deferred = ev->t;
    t->waits_on = t->waits && ev->text && strcmp(t->waits, ev->text) == 0;
    free(t->waits);
    t->waits = ev->text ? dt_xstrdup(ev->text) : NULL;
}

static int apply_pruned(const struct dt_study *s, struct dt_trial *t, const struct dt_event *ev,
                        struct dt_error *e)
{
    if (ev->parent && !dt_study_trial(s, ev->parent))
        return dt_fail(e, "trial %d cannot give way to trial %d", t->id, ev->parent);
    free(t->pruned);
    t->pruned = dt_xstrdup(ev->text);
    t->heir = ev->parent;
    t->t_pruned = ev->t;
    return 0;
}

/* How often a trial is run that fails through no fault of the configuration; runs that only lacked a tuner do not count. */
#define MAX_RUNS 3

static void add_cost(struct dt_cost *c, const struct dt_trial *t)
{
    c->wait_s += isfinite(t->wait_s) ? t->wait_s : 0;
    c->run_s += isfinite(t->run_s) ? t->run_s : 0;
    c->billed_s += isfinite(t->run_s * t->billing) ? t->run_s * t->billing : 0;
    c->node_s += isfinite(t->run_s * t->nodes) ? t->run_s * t->nodes : 0;
}

/* What the run that ended had reported says nothing about the next, but it had its cost. */
static void run_again(const struct dt_study *s, struct dt_trial *t)
{
    if (dt_study_is_population(s))
        t->start = last_step(s, t); /* it goes on from its own checkpoint */
    add_cost(&t->earlier, t);
    t->wait_s = t->startup_s = t->run_s = t->billing = t->nodes = NAN;
    forget_metrics(t);
    dt_role_usages_new_run(&t->usage);
    t->state = DT_TRIAL_CREATED;
    t->shrunk = t->shedding = t->found = false;
    t->status = DT_STATUS_PENDING;
    t->run++;
    t->job = 0;
}

/* There is room now for those that waited for it. */
static void let_in(struct dt_study *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (isinf(s->trials[i].deferred))
            s->trials[i].deferred = 0;
}

/* At its end the whole run is counted on the nodes that it has then. */
static void apply_allocated(struct dt_trial *t, const struct dt_event *ev)
{
    double more = (t->nodes - ev->nodes) * (ev->t - t->t_started);
    if (isfinite(more))
        t->earlier.node_s += more;
    t->nodes = ev->nodes;
}

static void apply_ended(struct dt_study *s, struct dt_trial *t, const struct dt_event *ev)
{
    let_in(s);
    t->t_ended = ev->t;
    t->wait_s = ev->wait_s;
    t->startup_s = ev->startup_s;
    t->run_s = ev->run_s;
    t->billing = ev->billing;
    t->nodes = isnan(ev->nodes) ? t->nodes : ev->nodes;
    t->exit_code = ev->exit_code;
    t->signal = ev->signal;
    t->cause = t->pruned ? DT_CAUSE_PRUNED : isnan(t->t_target) ? ev->cause : DT_CAUSE_TARGET;
    free(t->text);
    t->text = t->pruned ? dt_xstrdup(t->pruned) : ev->text ? dt_xstrdup(ev->text) : NULL;
    free(t->note);
    t->note = ev->note ? dt_xstrdup(ev->note) : NULL;
    t->state = DT_TRIAL_ENDED;
    t->cancelling = false;
    if (dt_study_move_ended(s, t, ev) != DT_MOVE_NONE) {
        run_again(s, t);
        return;
    }
    judge(s, t);
    dt_study_move_failed(s, t);
    if (!t->text)
        t->text = what_is_missing(s, t);
    t->untended += t->cause == DT_CAUSE_NO_TUNER;
    bool again = t->cause == DT_CAUSE_NODE_FAILURE || t->cause == DT_CAUSE_PREEMPTED ||
                 t->cause == DT_CAUSE_LOST || t->cause == DT_CAUSE_NO_TUNER;
    if (again && t->run - (int)t->moves - t->untended < MAX_RUNS) {
        dt_trial_keep_part(s, t, false);
        run_again(s, t);
    } else if (t->status != DT_STATUS_VOID) {
        s->finished = dt_xrealloc(s->finished, s->nfinished + 1, sizeof(*s->finished));
        s->finished[s->nfinished++] = t->id;
    }
}

static void apply_stopping(struct dt_study *s, const struct dt_event *ev)
{
    if (s->stop_reason && !ev->interrupted)
        return;
    free(s->stop_reason);
    s->stop_reason = dt_xstrdup(ev->text);
    s->interrupted = ev->interrupted;
}

/* A resumed study runs again what its interruption cut off, and looks anew whether it should stop.
 */
static void apply_resumed(struct dt_study *s, const struct dt_event *ev)
{
    struct dt_stopping *st = &s->stopping;
    free(s->stop_reason);
    s->stop_reason = NULL;
    s->interrupted = s->complete = false;
    s->t_start = ev->t;
    st->max_configs = (size_t)dt_json_int(ev->config, "max_configs", (int64_t)st->max_configs);
    st->min_configs = (size_t)dt_json_int(ev->config, "min_configs", (int64_t)st->min_configs);
    st->window = (size_t)dt_json_int(ev->config, "window", (int64_t)st->window);
    s->parallel = (size_t)dt_json_int(ev->config, "parallel", (int64_t)s->parallel);
    s->repeats = (size_t)dt_json_int(ev->config, "repeats", (int64_t)s->repeats);
    st->max_node_hours = dt_json_num(ev->config, "max_node_hours", st->max_node_hours);
    if (dt_json_get(ev->config, "min_improve"))
        st->min_improve = dt_json_num(ev->config, "min_improve", 0) / 100;
    const char *deadline = dt_json_str(ev->config, "deadline", NULL);
    if (deadline)
        dt_parse_time(deadline, &st->deadline);
    for (size_t i = 0; i < s->n; i++) {
        struct dt_trial *t = &s->trials[i];
        bool cut = t->cause == DT_CAUSE_INTERRUPTED || t->cause == DT_CAUSE_STOPPED;
        if (t->state == DT_TRIAL_ENDED && cut) {
            dt_trial_keep_part(s, t, false);
            run_again(s, t);
        }
        t->deferred = 0; /* whether it was submitted is known by now */
    }
}

int dt_study_apply(struct dt_study *s, const struct dt_event *ev, struct dt_error *e)
{
    struct dt_trial *t = dt_study_trial(s, ev->trial);
    bool withdrawn = !t && ev->kind == DT_EVENT_PRUNED && ev->ask;
    if (!t && !withdrawn && ev->kind != DT_EVENT_CREATED && ev->kind < DT_EVENT_STOPPING)
        return dt_fail(e, "an event speaks of trial %d, which was never created", ev->trial);
    if (isnan(s->t_start))
        s->t_start = s->t_last = ev->t;
    if (ev->kind == DT_EVENT_RESUMED)
        s->earlier += s->t_last - s->t_start;
    s->t_last = ev->t;
    switch (ev->kind) {
    case DT_EVENT_CREATED:
        return apply_created(s, ev, e);
    case DT_EVENT_SUBMITTED:
        apply_submitted(s, t, ev);
        break;
    case DT_EVENT_DEFERRED:
        apply_deferred(t, ev);
        break;
    case DT_EVENT_STARTED:
        t->state = DT_TRIAL_STARTED;
        t->t_started = ev->t;
        t->wait_s = ev->wait_s;
        t->nodes = ev->nodes;
        break;
    case DT_EVENT_ALLOCATED:
        apply_allocated(t, ev);
        break;
    case DT_EVENT_METRIC:
        apply_metric(s, t, ev);
        break;
    case DT_EVENT_USAGE:
        if (ev->run == t->run)
            dt_role_usages_add(&t->usage, ev->text, ev->run, &ev->usage);
        break;
    case DT_EVENT_ASKED:
        return dt_study_apply_asked(s, ev, e);
    case DT_EVENT_REALLOCATING:
    case DT_EVENT_SHRINKING:
    case DT_EVENT_CHECKPOINTED:
    case DT_EVENT_KEPT:
        return dt_study_apply_move(s, t, ev, e);
    case DT_EVENT_PRUNED:
        return withdrawn ? dt_study_apply_withdrawn(s, ev, e) : apply_pruned(s, t, ev, e);
    case DT_EVENT_ENDED:
        apply_ended(s, t, ev);
        break;
    case DT_EVENT_STOPPING:
        apply_stopping(s, ev);
        break;
    case DT_EVENT_RESUMED:
        apply_resumed(s, ev);
        break;
    case DT_EVENT_FINISHED:
        s->complete = !s->interrupted;
        break;
    case DT_EVENT_RELEASED: /* what trials run in is the shell's */
    case DT_EVENT_KINDS:
        break;
    }
    return 0;
}

int dt_study_apply_record(struct dt_study *s, struct json_object *record, struct dt_error *e)
{
    struct dt_event ev;
    if (dt_event_from_json(record, &ev, e) < 0)
        return -1;
    int rc = dt_study_apply(s, &ev, e);
    dt_event_free(&ev);
    return rc;
}

/* ---- views ---- */

bool dt_trial_observe_part(const struct dt_study *s, const struct dt_trial *t,
                           const struct dt_part *p, struct dt_observation *o)
{
    double value =
        s->spec->quality.metric && t->status != DT_STATUS_OK ? NAN : dt_trial_worth(s, t, p);
    *o = (struct dt_observation){.x = p->x,
                                 .status = isfinite(value) ? DT_STATUS_OK : DT_STATUS_VOID,
                                 .value = value,
                                 .pace = isfinite(p->pace) ? p->pace : 0,
                                 .margin = NAN,
                                 .part = true};
    return !dt_config_equal(p->x, t->x, s->space->n);
}

struct dt_context dt_study_context(const struct dt_study *s, struct dt_observation **obs)
{
    bool by_nodes = isfinite(s->stopping.max_node_hours);
    size_t parts = 0, n = s->n;
    for (size_t i = 0; i < s->n; i++)
        parts += s->trials[i].nparts;
    *obs = dt_xcalloc(s->n + parts + 1, sizeof(**obs));
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_trial *t = &s->trials[i];
        double time = dt_trial_time(s, t), pace = dt_trial_pace(s, t);
        double cost = by_nodes ? time * t->nodes : time;
        (*obs)[i] = (struct dt_observation){.x = t->x,
                                            .status = t->status,
                                            .value = t->value,
                                            .cost = isnan(cost) ? 0 : cost,
                                            .pace = isfinite(pace) ? pace : 0,
                                            .again = (size_t)t->again,
                                            .margin = dt_trial_margin(s, t)};
        for (size_t k = 0; k < t->nparts; k++)
            n += dt_trial_observe_part(s, t, &t->parts[k], &(*obs)[n]);
    }
    return (struct dt_context){.space = s->space,
                               .obs = *obs,
                               .nobs = n,
                               .past = s->past,
                               .maximize = s->spec->maximize,
                               .seed = s->spec->seed,
                               .grows = dt_spec_objective_is_time(s->spec),
                               .grid_levels = s->spec->grid_levels,
                               .enough = s->stopping.min_improve / (double)s->stopping.window,
                               .quality = s->spec->quality.metric != NULL};
}

const struct dt_trial *dt_study_best(const struct dt_study *s)
{
    struct dt_observation *o;
    struct dt_context ctx = dt_study_context(s, &o);
    int best = dt_context_best(&ctx);
    free(o);
    return best < 0 ? NULL : &s->trials[best];
}

bool dt_study_pair(const struct dt_study *s, double *x)
{
    struct dt_observation *o;
    struct dt_context ctx = dt_study_context(s, &o);
    int best = dt_context_best(&ctx);
    if (best >= 0) {
        memcpy(x, s->trials[best].x, s->space->n * sizeof(double));
        dt_optimizer_fastest(s->optimizer, &ctx, x);
    }
    free(o);
    return best >= 0;
}

double dt_study_mean(const struct dt_study *s, const struct dt_trial *t, int *n)
{
    double mean;
    struct dt_observation *o;
    struct dt_context ctx = dt_study_context(s, &o);
    *n = dt_context_mean(&ctx, (size_t)t->id - 1, &mean);
    free(o);
    return mean;
}

double dt_study_node_seconds(const struct dt_study *s, double now, double *nodes)
{
    double spent = dt_study_cost(s).node_s;
    *nodes = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_trial *t = &s->trials[i];
        if (t->state != DT_TRIAL_STARTED || isnan(t->nodes))
            continue;
        *nodes += t->nodes;
        spent += t->nodes * fmax(now - t->t_started, 0);
    }
    return spent;
}

struct dt_cost dt_study_cost(const struct dt_study *s)
{
    struct dt_cost c = {0};
    for (size_t i = 0; i < s->n; i++) {
        c.wait_s += s->trials[i].earlier.wait_s;
        c.run_s += s->trials[i].earlier.run_s;
        c.billed_s += s->trials[i].earlier.billed_s;
        c.node_s += s->trials[i].earlier.node_s;
        add_cost(&c, &s->trials[i]);
    }
    return c;
}

double dt_study_elapsed(const struct dt_study *s)
{
    return s->earlier + s->t_last - s->t_start;
}

const struct dt_trial *dt_study_baseline(const struct dt_study *s)
{
    bool tried = s->submitted && s->n && !s->external;
    return tried && dt_config_equal(s->trials[0].x, s->submitted, s->space->n) ? &s->trials[0]
                                                                               : NULL;
}

double dt_study_before(const struct dt_study *s)
{
    const struct dt_trial *base = dt_study_baseline(s);
    int n;
    if (base)
        return dt_study_mean(s, base, &n);
    bool moved = s->submitted && s->n && !s->external && s->trials[0].nparts;
    return moved ? dt_trial_worth(s, &s->trials[0], &s->trials[0].parts[0]) : NAN;
}
