#include "backend/backend.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ---- */

enum outcome { ROW_OK, ROW_FAILED, ROW_TIMEOUT };

struct row {
    double value;    /* NaN where the cell holds no number */
    double duration; /* seconds; NaN: follows from the value */
    double nodes;    /* NaN: follows from the configuration */
    double quality;  /* NaN: not known */
    double step;     /* of a course */
    double ps, worker; /* how busy their CPUs were, 0 to 1; NaN: not known */
    enum outcome outcome;
    char *status; /* the cell, or NULL */
};

struct config {
    double *x;
    struct row *rows; /* repeats, or the course of one run in the order of its steps */
    size_t n, next;   /* next: the repeat whose turn it is */
};

struct measured {
    struct config *configs;
    size_t n;
};

/* The columns that matter, by index; -1: none. */
struct columns {
    int *params, *where;
    int objective, duration, nodes, status, quality, step, ps, worker;
};

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

static bool in_milliseconds(const char *column)
{
    return ends_with(column, "_ms");
}

/* Whether a column's name says that it holds seconds or milliseconds. */
static bool names_time(const char *column)
{
    return in_milliseconds(column) || (ends_with(column, "_s") && !ends_with(column, "per_s")) ||
           strcasestr(column, "time") || strcasestr(column, "duration") ||
           strcasestr(column, "seconds");
}

static void measured_free(struct measured *m)
{
    for (size_t i = 0; i < m->n; i++) {
        for (size_t j = 0; j < m->configs[i].n; j++)
            free(m->configs[i].rows[j].status);
        free(m->configs[i].rows);
        free(m->configs[i].x);
    }
    free(m->configs);
    *m = (struct measured){0};
}

static int find_columns(const struct dt_spec *spec, const struct dt_param *params, size_t n,
                        const struct dt_table *t, struct columns *c, struct dt_error *e)
{
    const struct dt_replay_spec *r = &spec->replay;
    if (!r->objective)
        return dt_fail(
            e, "SPEC has no \"replay\" section, which says how the table's columns stand for "
               "parameters and objective");
    for (size_t i = 0; i < n; i++) {
        const char *column = params[i].name;
        for (size_t j = 0; j < r->params.n; j++)
            if (strcmp(r->params.v[j], params[i].name) == 0)
                column = r->columns.v[j];
        if ((c->params[i] = dt_table_column(t, column, e)) < 0)
            return dt_fail_at(e, "parameter %s", params[i].name);
    }
    for (size_t i = 0; i < r->where_columns.n; i++)
        if ((c->where[i] = dt_table_column(t, r->where_columns.v[i], e)) < 0)
            return dt_fail_at(e, "replay.where");
    if ((c->objective = dt_table_column(t, r->objective, e)) < 0)
        return dt_fail_at(e, "replay.objective");
    if (r->duration && (c->duration = dt_table_column(t, r->duration, e)) < 0)
        return dt_fail_at(e, "replay.duration");
    if (r->nodes && (c->nodes = dt_table_column(t, r->nodes, e)) < 0)
        return dt_fail_at(e, "replay.nodes");
    const char *quality = r->quality ? r->quality : spec->quality.metric;
    if (quality && (c->quality = dt_table_column(t, quality, e)) < 0)
        return dt_fail_at(e, "replay.quality");
    if (r->step && (c->step = dt_table_column(t, r->step, e)) < 0)
        return dt_fail_at(e, "replay.step");
    if (r->ps_cpu && (c->ps = dt_table_column(t, r->ps_cpu, e)) < 0)
        return dt_fail_at(e, "replay.usage.ps_cpu");
    if (r->worker_cpu && (c->worker = dt_table_column(t, r->worker_cpu, e)) < 0)
        return dt_fail_at(e, "replay.usage.worker_cpu");
    if (r->status && (c->status = dt_table_column(t, r->status, e)) < 0)
        return dt_fail_at(e, "replay.status");
    return 0;
}

/* Equal as numbers where both are, else letter by letter. */
static bool same_text(const char *a, const char *b)
{
    double x, y;
    if (dt_parse_double(a, &x) == 0 && dt_parse_double(b, &y) == 0)
        return x == y;
    return strcmp(a, b) == 0;
}

static bool is_wanted(const struct dt_replay_spec *r, const struct columns *c,
                      const struct dt_table *t, size_t row)
{
    for (size_t i = 0; i < r->where_columns.n; i++)
        if (!same_text(dt_table_cell(t, row, c->where[i]), r->where_values.v[i]))
            return false;
    return true;
}

/* 1: x is the row's configuration; 0: it lies outside of the domains; -1: a cell makes no sense.
 * What stands in the column of an inactive parameter does not matter. */
static int row_config(const struct dt_conditions *when, const struct columns *c,
                      const struct dt_table *t, size_t row, double *x, struct dt_error *e)
{
    for (size_t k = 0; k < when->n; k++) {
        size_t i = when->order[k];
        const struct dt_param *p = &when->params[i];
        const char *text = dt_table_cell(t, row, c->params[i]);
        double number;
        uint64_t mib;
        x[i] = NAN;
        if (!dt_conditions_active(when, x, i) || dt_param_parse(p, text, &x[i], NULL) == 0)
            continue;
        if (p->kind == DT_PARAM_LABEL || dt_parse_double(text, &number) == 0 ||
            (p->labels && dt_parse_mem(text, &mib) == 0))
            return 0;
        return dt_fail(e, "row %zu: %s: \"%s\" is not a number", row + 1, p->name, text);
    }
    return 1;
}

static enum outcome outcome_of(const struct dt_replay_spec *r, const char *status)
{
    if (r->ok.n == 0 && strcmp(status, "ok") == 0)
        return ROW_OK;
    for (size_t i = 0; i < r->ok.n; i++)
        if (same_text(status, r->ok.v[i]))
            return ROW_OK;
    bool late = strcasestr(status, "timeout") || strcasestr(status, "timed out") ||
                strcasestr(status, "time limit");
    return late ? ROW_TIMEOUT : ROW_FAILED;
}

static double number_at(const struct dt_table *t, size_t row, int column)
{
    double x;
    return column >= 0 && dt_parse_double(dt_table_cell(t, row, column), &x) == 0 ? x : NAN;
}

static struct row read_row(const struct dt_replay_spec *r, const struct columns *c,
                           const struct dt_table *t, size_t at)
{
    struct row row = {number_at(t, at, c->objective),
                      number_at(t, at, c->duration),
                      number_at(t, at, c->nodes),
                      number_at(t, at, c->quality),
                      number_at(t, at, c->step),
                      fmin(number_at(t, at, c->ps) / r->all_busy, 1),
                      fmin(number_at(t, at, c->worker) / r->all_busy, 1),
                      ROW_OK,
                      NULL};
    if (r->duration && in_milliseconds(r->duration))
        row.duration /= 1000;
    if (c->status >= 0) {
        row.status = dt_xstrdup(dt_table_cell(t, at, c->status));
        row.outcome = outcome_of(r, row.status);
    }
    return row;
}

static struct config *config_find(const struct measured *m, const double *x, size_t n)
{
    for (size_t i = 0; i < m->n; i++)
        if (dt_config_equal(m->configs[i].x, x, n))
            return &m->configs[i];
    return NULL;
}

static void take_row(struct measured *m, const double *x, size_t n, const struct row *row)
{
    struct config *k = config_find(m, x, n);
    if (!k) {
        m->configs = dt_xrealloc(m->configs, m->n + 1, sizeof(*m->configs));
        k = &m->configs[m->n++];
        *k = (struct config){.x = dt_xcalloc(n, sizeof(double))};
        memcpy(k->x, x, n * sizeof(double));
    }
    k->rows = dt_xrealloc(k->rows, k->n + 1, sizeof(*k->rows));
    size_t at = k->n++;
    for (; at > 0 && k->rows[at - 1].step > row->step; at--)
        k->rows[at] = k->rows[at - 1];
    k->rows[at] = *row;
}

static int take_rows(const struct dt_spec *spec, const struct dt_conditions *when,
                     const struct columns *c, const struct dt_table *t, struct measured *m,
                     struct dt_error *e)
{
    double *x = dt_xcalloc(when->n, sizeof(*x));
    size_t wanted = 0;
    int rc = 0;
    for (size_t i = 0; i < t->nrows && rc >= 0; i++) {
        if (!is_wanted(&spec->replay, c, t, i))
            continue;
        wanted++;
        rc = row_config(when, c, t, i, x, e);
        if (rc == 1) {
            struct row row = read_row(&spec->replay, c, t, i);
            take_row(m, x, when->n, &row);
        }
    }
    free(x);
    if (rc < 0)
        return -1;
    if (!wanted)
        return dt_fail(e, "none of the %zu rows passes replay.where", t->nrows);
    if (!m->n)
        return dt_fail(e, "none of the %zu rows lies inside the domains of SPEC's parameters",
                       wanted);
    return 0;
}

static int measured_read(const struct dt_spec *spec, const struct dt_param *params, size_t n,
                         const char *path, struct measured *m, struct dt_error *e)
{
    struct columns c = {.params = dt_xcalloc(n, sizeof(int)),
                        .where = dt_xcalloc(spec->replay.where_columns.n, sizeof(int)),
                        .objective = -1,
                        .duration = -1,
                        .nodes = -1,
                        .status = -1,
                        .quality = -1,
                        .step = -1,
                        .ps = -1,
                        .worker = -1};
    struct dt_conditions *when = dt_conditions_new(params, n, NULL, 0, e);
    struct dt_table *t = when ? dt_table_read(path, e) : NULL;
    int rc = t ? 0 : -1;
    *m = (struct measured){0};
    if (t &&
        (find_columns(spec, params, n, t, &c, e) < 0 || take_rows(spec, when, &c, t, m, e) < 0)) {
        rc = dt_fail_at(e, "%s", path);
        measured_free(m);
    }
    dt_table_free(t);
    dt_conditions_free(when);
    free(c.params);
    free(c.where);
    return rc;
}

double *dt_replay_points(const struct dt_spec *spec, const struct dt_param *params, size_t n,
                         const char *table, size_t *npoints, struct dt_error *e)
{
    struct measured m;
    if (measured_read(spec, params, n, table, &m, e) < 0)
        return NULL;
    double *points = dt_xcalloc(m.n * n, sizeof(*points));
    for (size_t i = 0; i < m.n; i++)
        memcpy(points + i * n, m.configs[i].x, n * sizeof(double));
    *npoints = m.n;
    measured_free(&m);
    return points;
}

bool dt_replay_moves(const struct dt_spec *spec)
{
    return spec->replay.usage && spec->reallocate.allocator.rule != DT_ALLOCATE_NONE;
}

/* The objective is how much is done in a second, and nothing else tells how long a run takes. */
static bool is_rate(const struct dt_spec *spec)
{
    return spec->replay.maximize && !spec->replay.duration;
}

int dt_replay_adopt(struct dt_spec *spec, struct dt_error *e)
{
    const char *column = spec->replay.objective;
    if (!column)
        return dt_fail(
            e, "SPEC has no \"replay\" section, which says how the table's columns stand for "
               "parameters and objective");
    if (spec->pruner.rule == DT_PRUNE_PBT)
        return dt_fail(e, "search.early_stop: pbt cannot be simulated: a table has no course of a run "
                          "that goes on from another's checkpoint; use asha, hyperband or median");
    if (dt_replay_moves(spec) && spec->replay.step)
        return dt_fail(
            e, "replay.step: a row is a whole run where trials are re-allocated (replay.usage)");
    if (dt_replay_moves(spec) && is_rate(spec) && !(spec->reallocate.work > 0))
        return dt_fail(e, "reallocate.work is missing: how much of what %s counts is a whole run",
                       column);
    spec->reallocate.in_place = false; /* there is no telling what becomes of a row in the midst */
    spec->maximize = spec->replay.maximize;
    spec->objective = DT_OBJECTIVE_METRIC;
    /* of a time and of what grows with it a row that was cut off is a bound */
    if (!spec->maximize && names_time(column) && !in_milliseconds(column))
        spec->objective = DT_OBJECTIVE_TIME;
    else if (!spec->maximize && (strcasestr(column, "cost") || strcasestr(column, "usd")))
        spec->objective = DT_OBJECTIVE_COST;
    free(spec->metric);
    spec->metric = dt_xstrdup(column);
    free(spec->target.metric);
    spec->target.metric = NULL;
    return 0;
}

/* ---- the backend ---- */

/* How far a trial is that may be re-allocated. */
struct way {
    int trial;
    double at, since; /* it was at that step when its present run began to work */
    double pace;      /* seconds a step from then on */
};

struct replay {
    const struct dt_spec *spec;
    const struct dt_space *space;
    struct measured m;
    double noise, failures;
    gsl_rng *rng;
    double clock;
    uint32_t jobs;
    struct dt_event *due; /* in order of time, then of their making */
    size_t ndue;
    struct way *ways;
    size_t nways;
};

static double replay_now(void *b)
{
    return ((struct replay *)b)->clock;
}

static void schedule(struct replay *r, const struct dt_event *ev)
{
    size_t at = r->ndue;
    r->due = dt_xrealloc(r->due, r->ndue + 1, sizeof(*r->due));
    for (; at > 0 && r->due[at - 1].t > ev->t; at--)
        r->due[at] = r->due[at - 1];
    r->due[at] = *ev;
    r->ndue++;
}

static struct dt_event event_of(enum dt_event_kind kind, double t, int trial, int run, uint32_t job)
{
    struct dt_event ev = DT_EVENT(kind);
    ev.t = t;
    ev.trial = trial;
    ev.run = run;
    ev.job = job;
    return ev;
}

static double duration_of(const struct replay *r, const struct row *row, double value)
{
    double s = row->duration;
    if (!r->spec->replay.duration && !r->spec->replay.maximize &&
        names_time(r->spec->replay.objective))
        s = in_milliseconds(r->spec->replay.objective) ? value / 1000 : value;
    return isfinite(s) && s > 0 ? s : 1;
}

static void put_metric(struct replay *r, const struct dt_event *run, double t, const char *name,
                       double value, double step)
{
    if (!isfinite(value))
        return;
    struct dt_event ev = event_of(DT_EVENT_METRIC, t, run->trial, run->run, run->job);
    ev.text = dt_xstrdup(name);
    ev.value = value;
    ev.step = step;
    schedule(r, &ev);
}

/* So that the core comes to the row's value, whatever kind its objective is. Of a run that did only
 * a part of the work, in `duration`, the core knows by itself what the `whole` would have been. */
static void put_value(struct replay *r, struct dt_event *end, const struct row *row, double value,
                      double duration, double whole)
{
    const struct dt_spec *spec = r->spec;
    end->run_s = duration;
    bool time = spec->objective == DT_OBJECTIVE_TIME || spec->objective == DT_OBJECTIVE_TURNAROUND;
    if (time && duration > whole * (1 - 1e-9))
        end->run_s = value;
    else if (spec->objective == DT_OBJECTIVE_COST)
        end->billing = value / whole;
    else
        put_metric(r, end, end->t,
                   spec->objective == DT_OBJECTIVE_METRIC ? spec->metric : "throughput", value,
                   row->step);
    if (spec->quality.metric)
        put_metric(r, end, end->t, spec->quality.metric, row->quality, row->step);
}

/* A task a node, where the table does not say. */
static double nodes_of(const struct replay *r, const double *x, const struct row *row)
{
    double tasks = dt_space_value(r->space, x, "ps", 0) + dt_space_value(r->space, x, "workers", 1);
    return isfinite(row->nodes) && row->nodes > 0 ? row->nodes : fmax(tasks, 1);
}

/* Reports all of a run's course but its end; `last` is the index of that. Returns when it comes. */
static double put_course(struct replay *r, const struct dt_event *run, const struct config *k,
                         size_t last)
{
    double t = 0;
    for (size_t i = 0; i <= last; i++) {
        const struct row *row = &k->rows[i];
        t = isfinite(row->duration) ? fmax(row->duration, t) : t + 1;
        if (i < last)
            put_metric(r, run, run->t + t, r->spec->metric, row->value, row->step);
    }
    return t;
}

static const struct row bad_luck = {
    NAN, NAN, NAN, NAN, NAN, NAN, NAN, ROW_FAILED, (char *)"a failure by chance"};

/* ---- runs that may go on elsewhere ---- */

#define WORK 1000.0 /* steps of a whole run, where SPEC does not say */
#define SINGLE 16   /* samples that are told one by one; then ever more at once */

static struct way *way_of(struct replay *r, int trial)
{
    for (size_t i = 0; i < r->nways; i++)
        if (r->ways[i].trial == trial)
            return &r->ways[i];
    r->ways = dt_xrealloc(r->ways, r->nways + 1, sizeof(*r->ways));
    r->ways[r->nways] = (struct way){.trial = trial};
    return &r->ways[r->nways++];
}

static double work_of(const struct replay *r)
{
    return r->spec->reallocate.work > 0 ? r->spec->reallocate.work : WORK;
}

static double step_at(const struct way *w, double t)
{
    return w->at + fmax(t - w->since, 0) / w->pace;
}

static void put_usage(struct replay *r, const struct dt_event *run, double t, const char *role,
                      double busy, double samples)
{
    struct dt_event ev = event_of(DT_EVENT_USAGE, t, run->trial, run->run, run->job);
    if (isnan(busy))
        return;
    ev.text = dt_xstrdup(role);
    ev.usage = dt_usage_unknown(t);
    ev.usage.n = (int64_t)samples;
    ev.usage.mean[DT_RESOURCE_CPU] = ev.usage.max[DT_RESOURCE_CPU] = busy;
    schedule(r, &ev);
}

/* What the run says until its end at `end`; `done`: all its work is then. */
static void put_way(struct replay *r, const struct dt_event *run, const struct row *row, double end,
                    bool done)
{
    const struct way *w = way_of(r, run->trial);
    const char *name = r->spec->step ? r->spec->step : "step";
    double period = r->spec->monitor_period, told = 0, n = 1;
    put_metric(r, run, w->since, name, w->at, w->at);
    for (double t; (t = w->since + (told + n) * period) < end;) {
        put_metric(r, run, t, name, step_at(w, t), step_at(w, t));
        put_usage(r, run, t, "ps", row->ps, n);
        put_usage(r, run, t, "worker", row->worker, n);
        told += n;
        n = told < SINGLE ? 1 : floor(told / 2);
    }
    if (done)
        put_metric(r, run, end, name, work_of(r), work_of(r));
}

/* How long the rest of the trial's work takes on a row. `whole`: the time that the row has for all
 * of it. */
static double rest_of(struct replay *r, const struct dt_event *run, double value, double whole)
{
    struct way *w = way_of(r, run->trial);
    w->pace = is_rate(r->spec) && value > 0 ? 1 / value : whole / work_of(r);
    w->since = run->t;
    return (work_of(r) - w->at) * w->pace;
}

/* It has come so far by now, and goes on from there. */
static int replay_checkpoint(void *b, const struct dt_study *s, const struct dt_trial *t,
                             struct dt_error *e)
{
    struct replay *r = b;
    struct way *w = way_of(r, t->id);
    struct dt_event ev = event_of(DT_EVENT_CHECKPOINTED, r->clock, t->id, t->run, t->job);
    (void)s;
    (void)e;
    w->at = step_at(w, r->clock);
    w->since = r->clock;
    schedule(r, &ev);
    return 0;
}

/* ---- runs ---- */

/* Starts a run that takes a row, or goes through all of them. */
static void start(struct replay *r, const struct dt_event *submitted, struct config *k)
{
    bool course = r->spec->replay.step != NULL;
    const struct row *row = &k->rows[course ? k->n - 1 : k->next];
    double value = row->value, nodes = nodes_of(r, k->x, row);
    k->next = (k->next + 1) % k->n;
    if (r->noise > 0)
        value *= exp(gsl_ran_gaussian(r->rng, r->noise));
    struct dt_event ev = *submitted;
    bool moves = dt_replay_moves(r->spec);
    ev.kind = DT_EVENT_STARTED;
    ev.wait_s = moves ? r->spec->replay.restart : 0;
    ev.t += ev.wait_s;
    ev.nodes = nodes;
    schedule(r, &ev);
    double duration = course ? put_course(r, &ev, k, k->n - 1) : duration_of(r, row, value);
    double whole = moves && r->spec->objective == DT_OBJECTIVE_TIME ? value : duration;
    const struct row *ran = row;
    if (moves)
        duration = rest_of(r, &ev, value, whole);
    if (r->failures > 0 && row->outcome == ROW_OK && gsl_rng_uniform(r->rng) < r->failures) {
        duration *= course ? 1 : gsl_rng_uniform(r->rng);
        row = &bad_luck;
    }
    if (moves && ran->outcome == ROW_OK)
        put_way(r, &ev, ran, ev.t + duration, row == ran);
    ev.kind = DT_EVENT_ENDED;
    ev.t += duration;
    ev.startup_s = 0;
    ev.cause = row->outcome == ROW_OK        ? DT_CAUSE_OK
               : row->outcome == ROW_TIMEOUT ? DT_CAUSE_TIME_LIMIT
                                             : DT_CAUSE_EXIT;
    ev.exit_code = row->outcome == ROW_FAILED;
    ev.text = row->outcome != ROW_OK ? dt_xstrdup(row->status) : NULL;
    if (row->outcome == ROW_FAILED)
        ev.run_s = duration;
    else
        put_value(r, &ev, row, value, duration, whole);
    schedule(r, &ev);
}

static int replay_submit(void *b, const struct dt_study *s, const struct dt_trial *t,
                         struct dt_event *ev, struct dt_error *e)
{
    struct replay *r = b;
    struct config *k = config_find(&r->m, t->x, r->space->n);
    (void)s;
    (void)e;
    *ev = event_of(DT_EVENT_SUBMITTED, r->clock, t->id, t->run, ++r->jobs);
    if (!k) {
        ev->kind = DT_EVENT_ENDED;
        ev->cause = DT_CAUSE_NOT_SCHEDULABLE;
        ev->text = dt_xstrdup("the table has no row of this configuration");
        return 0;
    }
    start(r, ev, k);
    return 0;
}

static int replay_cancel(void *b, const struct dt_trial *t, struct dt_error *e)
{
    struct replay *r = b;
    size_t kept = 0, n = r->ndue;
    (void)e;
    for (size_t i = 0; i < n; i++) {
        if (r->due[i].job == t->job)
            dt_event_free(&r->due[i]);
        else
            r->due[kept++] = r->due[i];
    }
    r->ndue = kept;
    if (kept == n) /* it has ended already */
        return 0;
    struct dt_event ev = event_of(DT_EVENT_ENDED, r->clock, t->id, t->run, t->job);
    ev.cause = DT_CAUSE_CANCELLED;
    ev.wait_s = isnan(t->t_started) ? 0 : t->wait_s;
    ev.run_s = isnan(t->t_started) ? 0 : r->clock - t->t_started;
    ev.nodes = t->nodes;
    schedule(r, &ev);
    return 0;
}

static int replay_wait(void *b, const struct dt_study *s, double until, struct dt_event **events,
                       size_t *n, struct dt_error *e)
{
    struct replay *r = b;
    double next = r->ndue ? r->due[0].t : INFINITY;
    (void)s;
    if (next > until)
        next = until;
    if (!isfinite(next))
        return dt_fail(e, "replay: nothing is running and nothing is due");
    if (next > r->clock)
        r->clock = next;
    else if (!r->ndue || r->due[0].t > r->clock)
        r->clock =
            nextafter(r->clock, INFINITY); /* a clock that stands still would be asked for ever */
    size_t count = 0;
    while (count < r->ndue && r->due[count].t <= r->clock)
        count++;
    *events = dt_xrealloc(*events, *n + count, sizeof(**events));
    for (size_t i = 0; i < count; i++)
        (*events)[(*n)++] = r->due[i];
    r->ndue -= count;
    if (count)
        memmove(r->due, r->due + count, r->ndue * sizeof(*r->due));
    return 0;
}

static int replay_find(void *b, const struct dt_trial *t, uint32_t *job, struct dt_error *e)
{
    (void)b;
    (void)t;
    (void)job;
    (void)e;
    return 0;
}

static int replay_sweep(void *b, struct dt_error *e)
{
    struct replay *r = b;
    (void)e;
    for (size_t i = 0; i < r->ndue; i++)
        dt_event_free(&r->due[i]);
    r->ndue = 0;
    return 0;
}

static void replay_destroy(void *b)
{
    struct replay *r = b;
    replay_sweep(r, NULL);
    free(r->due);
    free(r->ways);
    measured_free(&r->m);
    gsl_rng_free(r->rng);
    free(r);
}

static const struct dt_backend_ops ops = {
    .name = "replay",
    .now = replay_now,
    .submit = replay_submit,
    .cancel = replay_cancel,
    .checkpoint = replay_checkpoint,
    .wait = replay_wait,
    .find = replay_find,
    .sweep = replay_sweep,
    .destroy = replay_destroy,
};

struct dt_backend *dt_backend_replay(const struct dt_spec *spec, const struct dt_space *space,
                                     const char *table, double noise, double failures,
                                     struct dt_error *e)
{
    struct replay *r = dt_xcalloc(1, sizeof(*r));
    r->spec = spec;
    r->space = space;
    r->noise = noise;
    r->failures = failures;
    if (measured_read(spec, space->params, space->n, table, &r->m, e) < 0) {
        free(r);
        return NULL;
    }
    r->rng = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(r->rng, (unsigned long)(spec->seed * 2654435761u + 1));
    struct dt_backend *b = dt_xcalloc(1, sizeof(*b));
    b->ops = &ops;
    b->b = r;
    return b;
}

static bool is_good(const struct dt_bound *quality, const struct row *row)
{
    return row->outcome == ROW_OK && isfinite(row->value) &&
           (!quality->metric || dt_bound_margin(quality, row->quality) >= 0);
}

double dt_replay_value(const struct dt_backend *b, const double *x)
{
    const struct replay *r = b->b;
    const struct config *k = config_find(&r->m, x, r->space->n);
    double sum = 0;
    size_t n = 0, first = k && r->spec->replay.step ? k->n - 1 : 0; /* of a course its end */
    for (size_t i = first; k && i < k->n; i++) {
        if (!is_good(&r->spec->quality, &k->rows[i]))
            continue;
        sum += k->rows[i].value;
        n++;
    }
    return n ? sum / (double)n : NAN;
}
