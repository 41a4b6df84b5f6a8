/* dt-tune simulate: the whole tuner on a measured table and a virtual clock. */
#include "tools/simulate.h"
#include "tools/tools.h"

#include "backend/backend.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage_text[] =
    "usage: dt-tune simulate --spec=S.json --table=T.csv [OPTION...]\n"
    "Runs whole studies on measured rows, without a cluster: a trial takes its row's objective and "
    "duration, on\n"
    "a virtual clock. SPEC's section \"replay\" says which columns hold what; its \"search\" says "
    "how to search and\n"
    "when to stop. The space is what the table has inside the domains and constraints of SPEC "
    "(\"candidates\" is not\n"
    "read). Where SPEC has a rule in \"reallocate\" and its \"replay\" names columns of \"usage\", trials "
    "are re-allocated.\n"
    "  --spec=FILE      the SPEC, with a section \"replay\"\n"
    "  --table=FILE     the table, CSV with a header line\n"
    "  --seed=N         the first study's seed (default: SPEC's)\n"
    "  --repeat=R       R studies, with the seeds N, N+1, ... (default 1)\n"
    "  --noise=PCT      log-normal noise of PCT % on each measured objective (default 0)\n"
    "  --failures=PCT   so many of the runs fail that the table has as good (default 0)\n"
    "  --past=SPEC      each study knows what an earlier one of this SPEC has found: its search "
    "without "
    "a past, 20 trials\n"
    "                   with a seed of its own, on the rows of the same table that its \"replay\" "
    "selects; may be repeated,\n"
    "                   the latest study first\n"
    "  --cluster=FILE   leave out rows that could never start on this cluster, as dt-tune topo --save "
    "writes it\n"
    "  --timing         also CPU seconds a suggestion; all else is the same for the same seed\n"
    "  --format=FORMAT  text (default), json, or html: the page of plots that a study on a cluster leaves\n"
    "A gap is how far the configuration that would be recommended, by its value in the table, is "
    "from the table's\n"
    "best, in per cent; after 10, 20 and 40 trials it is that of the one then. Duplicates are "
    "configurations that were\n"
    "tried again by mistake, repeats those that were measured again on purpose. Where SPEC has a "
    "fidelity, all of this\n"
    "is about the highest one; trials at lower ones count as trials.\n"
    "JSON, version 1: {\"version\", \"spec\", \"table\", \"objective\", \"goal\", \"noise_pct\", "
    "\"failures_pct\",\n"
    "\"configurations\", \"table_best\": {\"value\", \"config\"}, \"studies\": [{\"seed\", "
    "\"trials\", \"stopped\",\n"
    "\"best\": {\"config\", \"value\", \"observed\"} or null, \"gap_pct\", \"gap_pct_after\": "
    "{\"10\", \"20\", \"40\"},\n"
    "\"trials_to_5pct\", \"trials_to_1pct\", \"duplicates\", \"repeats\", \"failed\", "
    "\"censored\", "
    "\"node_hours\",\n"
    "\"virtual_time_s\", where trials are re-allocated \"reallocations\", with a fidelity \"cheap\" and \"node_hours_to_5pct\", with --timing "
    "\"suggestion_s\", \"history\": [{\"config\", \"status\", "
    "\"value\", \"again\": true\n"
    "for a repeat, \"gap_pct\", \"node_hours\"}]}], \"summary\": {\"studies\", \"within_5pct\", "
    "\"within_1pct\", and "
    "\"median\" and\n"
    "\"p90\" of each number}}; null stands for never or none.\n"
    "Exit status: 0 done, 1 a study failed, 2 wrong use or bad input.\n";

#define MARKS 3
static const size_t marks[MARKS] = {10, 20, 40};

struct options {
    const char *spec, *table, *cluster;
    struct dt_strv past; /* SPECs of earlier studies */
    int64_t seed;        /* -1: SPEC's */
    int64_t repeat;
    double noise, failures; /* per cent */
    bool json, html, timing;
};

/* One study's outcome. Gaps are fractions, INFINITY while nothing was found; numbers of trials are
 * 0 for never. */
struct result {
    uint64_t seed;
    size_t trials, failed, censored, duplicates, repeats, cheap, to_5pct, to_1pct, moves;
    double *best; /* or NULL */
    double value, observed, gap, gap_after[MARKS], time, node_hours, hours_to_5pct, suggestion;
    char *stopped;
    struct json_object *history;
};

struct simulation {
    const struct options *o;
    struct dt_spec *spec;
    struct dt_job job; /* only where there is a cluster */
    struct dt_cluster *cluster;
    struct dt_space_source source;
    struct dt_space *space;
    double table_best;
    double *table_best_x; /* borrowed from the space */
    double *submitted;    /* the first trial's configuration, or NULL */
    struct result *results;
    size_t n;
    /* of the study under way */
    struct dt_backend *b;
    struct result *r;
    struct dt_chronicle chronicle;
};

/* ---- one study ---- */

static double gap_of(const struct simulation *m, double value)
{
    double behind = m->spec->maximize ? m->table_best - value : value - m->table_best;
    return behind / fmax(fabs(m->table_best), 1e-300);
}

static bool tried_before(const struct dt_study *s, const struct dt_trial *t)
{
    for (const struct dt_trial *u = s->trials; u < t; u++)
        if (dt_config_equal(u->x, t->x, s->space->n))
            return true;
    return false;
}

static void take_best(struct simulation *m, const struct dt_study *s)
{
    struct result *r = m->r;
    const struct dt_trial *best = dt_study_best(s);
    int n;
    if (!best)
        return;
    if (!r->best)
        r->best = dt_xcalloc(m->space->n, sizeof(double));
    memcpy(r->best, best->x, m->space->n * sizeof(double));
    r->observed = dt_study_mean(s, best, &n);
    r->value = dt_replay_value(m->b, best->x);
    r->gap = gap_of(m, r->value);
}

static void add(struct json_object *o, const char *key, double x)
{
    json_object_object_add(o, key, isfinite(x) ? dt_json_number(x) : NULL);
}

static void add_history(struct simulation *m, const struct dt_study *s, const struct dt_trial *t)
{
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "config", dt_config_to_json(m->space, t->x));
    json_object_object_add(o, "status", json_object_new_string(dt_status_names[t->status]));
    add(o, "value", t->value);
    if (t->again)
        json_object_object_add(o, "again", json_object_new_boolean(true));
    add(o, "gap_pct", 100 * m->r->gap);
    add(o, "node_hours", dt_study_cost(s).node_s / 3600);
    json_object_array_add(m->r->history, o);
}

/* dt_reporter: counts what ended. */
static void on_event(void *arg, const struct dt_study *s, const struct dt_event *ev)
{
    struct simulation *m = arg;
    struct result *r = m->r;
    if (m->o->html)
        dt_chronicle_apply(&m->chronicle, ev);
    if (ev->kind != DT_EVENT_ENDED)
        return;
    const struct dt_trial *t = dt_study_trial(s, ev->trial);
    if (t->status == DT_STATUS_VOID || t->status == DT_STATUS_PENDING)
        return;
    r->trials++;
    r->failed += t->status == DT_STATUS_FAILED;
    r->censored += t->status == DT_STATUS_CENSORED;
    r->repeats += t->again > 0;
    r->cheap += !dt_space_is_full(m->space, t->x);
    r->duplicates += !t->again && tried_before(s, t);
    take_best(m, s);
    add_history(m, s, t);
    if (!r->to_5pct && r->gap <= 0.05) {
        r->to_5pct = r->trials;
        r->hours_to_5pct = dt_study_cost(s).node_s / 3600;
    }
    if (!r->to_1pct && r->gap <= 0.01)
        r->to_1pct = r->trials;
    for (int i = 0; i < MARKS; i++)
        if (r->trials <= marks[i])
            r->gap_after[i] = r->gap;
}

/* Earlier studies get seeds that none of the others has. */
#define PAST_SEEDS 1000003

/* NULL on errors; empty where there are no earlier studies. */
static struct dt_past *remember(const struct simulation *m, uint64_t seed, struct dt_error *e)
{
    struct dt_past *p = dt_xcalloc(1, sizeof(*p));
    for (size_t i = 0; i < m->o->past.n; i++) {
        struct rehearsal r = {.spec = m->o->past.v[i],
                              .table = m->o->table,
                              .seed = seed + PAST_SEEDS * (i + 1),
                              .noise = m->o->noise / 100,
                              .failures = m->o->failures / 100};
        if (rehearse(&r, m->space, p, e) == 0)
            continue;
        dt_past_free(p);
        return NULL;
    }
    return p;
}

static int print_page(const struct simulation *m, const struct dt_study *s, struct dt_error *e)
{
    char *page = report_page(m->o->spec, NULL, s, &m->chronicle, e);
    if (page)
        fputs(page, stdout);
    free(page);
    return page ? 0 : -1;
}

static int simulate_one(struct simulation *m, uint64_t seed, struct dt_error *e)
{
    static const volatile int stop;
    struct dt_reporter reporter = {.event = on_event, .arg = m};
    struct result *r = m->r = &m->results[m->n++];
    *r = (struct result){
        .seed = seed, .value = NAN, .observed = NAN, .gap = INFINITY, .hours_to_5pct = INFINITY};
    r->history = json_object_new_array();
    for (int i = 0; i < MARKS; i++)
        r->gap_after[i] = INFINITY;
    m->spec->seed = seed;
    m->b = dt_backend_replay(m->spec, m->space, m->o->table, m->o->noise / 100,
                             m->o->failures / 100, e);
    struct dt_past *past = m->b ? remember(m, seed, e) : NULL;
    struct dt_study *s = past ? dt_study_new(m->spec, m->space, m->submitted, e) : NULL;
    if (s)
        s->past = past;
    else
        dt_past_free(past);
    if (s && s->parallel == SIZE_MAX) /* a table knows no allocation that would be full some time */
        s->parallel = 1;
    m->chronicle = dt_chronicle_new();
    clock_t begin = clock();
    int rc = s ? dt_study_run(s, m->b, NULL, &reporter, NULL, &stop, e) : -1;
    if (rc == 0) {
        r->stopped = dt_xstrdup(s->stop_reason ? s->stop_reason : "");
        for (size_t i = 0; i < s->n; i++)
            r->moves += s->trials[i].moves;
        r->time = dt_study_elapsed(s);
        r->node_hours = dt_study_cost(s).node_s / 3600;
        r->suggestion = (double)(clock() - begin) / CLOCKS_PER_SEC /
                        fmax((double)s->n, 1); /* nothing else takes time */
        if (m->o->html)
            rc = print_page(m, s, e);
    }
    dt_chronicle_free(&m->chronicle);
    dt_study_free(s);
    dt_backend_free(m->b);
    m->b = NULL;
    return rc < 0 ? dt_fail_at(e, "seed %llu", (unsigned long long)seed) : 0;
}

/* ---- the space and its best ---- */

static int find_table_best(struct simulation *m, struct dt_error *e)
{
    struct dt_backend *b = dt_backend_replay(m->spec, m->space, m->o->table, 0, 0, e);
    if (!b)
        return -1;
    for (size_t i = 0; i < m->space->npoints; i++) {
        double *x = m->space->points + i * m->space->n, value = dt_replay_value(b, x);
        bool better = isfinite(value) && dt_space_is_full(m->space, x) &&
                      (!m->table_best_x ||
                       (m->spec->maximize ? value > m->table_best : value < m->table_best));
        if (better) {
            m->table_best = value;
            m->table_best_x = x;
        }
    }
    dt_backend_free(b);
    return m->table_best_x ? 0
                           : dt_fail(e, "%s: no row of the search space succeeded", m->o->table);
}

struct dt_space *replay_space(const struct dt_spec *spec, const char *name, const char *table,
                              struct dt_space_source *source, struct dt_error *e)
{
    size_t n;
    double *points = dt_replay_points(spec, spec->params, spec->nparams, table, &n, e);
    if (!points)
        return NULL;
    struct dt_space *space = dt_space_new(spec->params, spec->nparams, &spec->constraints, NULL, 0,
                                          source ? dt_space_why_not : NULL, source, points, n, e);
    free(points);
    if (!space)
        dt_fail_at(e, "%s", spec->constraints_place ? spec->constraints_place : name);
    return space;
}

static int read_submitted(struct simulation *m, struct dt_error *e)
{
    struct json_object *config = m->spec->replay.submitted;
    if (!config)
        return 0;
    m->submitted = dt_xcalloc(m->space->n, sizeof(double));
    const char *why = NULL;
    if (dt_config_from_json(m->space, config, m->submitted, e) < 0)
        return dt_fail_at(e, "%s: replay.submitted", m->o->spec);
    if (!dt_space_allows(m->space, m->submitted, &why))
        return dt_fail(e, "%s: replay.submitted: it is not among the configurations", m->o->spec);
    return 0;
}

static int prepare(struct simulation *m, struct dt_error *e)
{
    m->spec = dt_spec_read(m->o->spec, e);
    if (!m->spec)
        return -1;
    if (dt_replay_adopt(m->spec, e) < 0 || m->spec->nparams == 0) {
        if (m->spec->nparams == 0)
            dt_fail(
                e, "there is nothing to tune: name parameters under \"dt\" or \"hyperparameters\"");
        return dt_fail_at(e, "%s", m->o->spec);
    }
    if (m->o->cluster && !(m->cluster = read_cluster(m->o->cluster, NULL, e)))
        return -1;
    if (dt_natural_fill(m->spec, &m->job, m->cluster, e) < 0)
        return -1;
    m->source = (struct dt_space_source){m->spec, &m->job, m->cluster};
    m->space = replay_space(m->spec, m->o->spec, m->o->table, m->cluster ? &m->source : NULL, e);
    return m->space && read_submitted(m, e) == 0 ? find_table_best(m, e) : -1;
}

static void clear(struct simulation *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->results[i].best);
        free(m->results[i].stopped);
        json_object_put(m->results[i].history);
    }
    free(m->results);
    free(m->submitted);
    dt_space_free(m->space);
    dt_cluster_free(m->cluster);
    dt_spec_free(m->spec);
}

/* ---- numbers of all studies ---- */

enum {
    NUM_TRIALS,
    NUM_GAP,
    NUM_GAP_10,
    NUM_GAP_20,
    NUM_GAP_40,
    NUM_TO_5,
    NUM_TO_1,
    NUM_DUPLICATES,
    NUM_REPEATS,
    NUM_FAILED,
    NUM_CENSORED,
    NUM_NODE_HOURS,
    NUM_TIME,
    NUM_MOVES,      /* only where trials are re-allocated */
    NUM_CHEAP,      /* only with a fidelity */
    NUM_HOURS_TO_5, /* only with a fidelity */
    NUM_SUGGESTION, /* only with --timing */
    NUMBERS
};
static const struct {
    const char *key, *label;
} numbers[NUMBERS] = {
    {"trials", "trials run"},
    {"gap_pct", "gap at the end, %"},
    {"gap_pct_after_10", "gap after 10 trials, %"},
    {"gap_pct_after_20", "gap after 20 trials, %"},
    {"gap_pct_after_40", "gap after 40 trials, %"},
    {"trials_to_5pct", "trials to within 5 %"},
    {"trials_to_1pct", "trials to within 1 %"},
    {"duplicates", "duplicates"},
    {"repeats", "repeats"},
    {"failed", "failed trials"},
    {"censored", "trials cut at a time limit"},
    {"node_hours", "node-hours"},
    {"virtual_time_s", "virtual time, s"},
    {"reallocations", "re-allocations"},
    {"cheap", "trials at lower fidelities"},
    {"node_hours_to_5pct", "node-hours to within 5 %"},
    {"suggestion_s", "CPU s a suggestion"},
};

static double number_of(const struct result *r, int which)
{
    switch (which) {
    case NUM_TRIALS:
        return (double)r->trials;
    case NUM_GAP:
        return 100 * r->gap;
    case NUM_GAP_10:
    case NUM_GAP_20:
    case NUM_GAP_40:
        return 100 * r->gap_after[which - NUM_GAP_10];
    case NUM_TO_5:
        return r->to_5pct ? (double)r->to_5pct : INFINITY;
    case NUM_TO_1:
        return r->to_1pct ? (double)r->to_1pct : INFINITY;
    case NUM_DUPLICATES:
        return (double)r->duplicates;
    case NUM_REPEATS:
        return (double)r->repeats;
    case NUM_FAILED:
        return (double)r->failed;
    case NUM_CENSORED:
        return (double)r->censored;
    case NUM_NODE_HOURS:
        return r->node_hours;
    case NUM_MOVES:
        return (double)r->moves;
    case NUM_CHEAP:
        return (double)r->cheap;
    case NUM_HOURS_TO_5:
        return r->hours_to_5pct;
    case NUM_SUGGESTION:
        return r->suggestion;
    }
    return r->time;
}

static bool is_told(const struct simulation *m, int which)
{
    if (which == NUM_MOVES)
        return dt_replay_moves(m->spec);
    if (which == NUM_CHEAP || which == NUM_HOURS_TO_5)
        return dt_space_fidelity(m->space) >= 0;
    return which != NUM_SUGGESTION || m->o->timing;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The smallest value that at least the share q of the studies does not exceed. */
static double quantile(const struct simulation *m, int which, double q)
{
    double *v = dt_xcalloc(m->n, sizeof(*v));
    for (size_t i = 0; i < m->n; i++)
        v[i] = number_of(&m->results[i], which);
    qsort(v, m->n, sizeof(*v), compare);
    double x = v[(size_t)fmax(ceil(q * (double)m->n) - 1, 0)];
    free(v);
    return x;
}

static size_t studies_within(const struct simulation *m, int which)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        n += isfinite(number_of(&m->results[i], which));
    return n;
}

/* ---- text ---- */

static char *short_number(double x)
{
    return isfinite(x) ? dt_xasprintf("%.4g", x) : dt_xstrdup("-");
}

static void print_studies(const struct simulation *m)
{
    static const int shown[] = {NUM_TRIALS, NUM_FAILED, NUM_DUPLICATES, NUM_REPEATS,
                                NUM_GAP_10, NUM_GAP_20, NUM_GAP_40,     NUM_GAP,
                                NUM_TO_5,   NUM_TO_1,   NUM_TIME};
    printf("\n%8s %7s %7s %5s %5s %8s %8s %8s %8s %6s %6s %10s  %s\n", "seed", "trials", "failed",
           "dup", "again", "gap@10 %", "gap@20 %", "gap@40 %", "gap %", "to 5 %", "to 1 %",
           "time, s", "best found");
    for (size_t i = 0; i < m->n; i++) {
        static const int widths[] = {7, 7, 5, 5, 8, 8, 8, 8, 6, 6, 10};
        const struct result *r = &m->results[i];
        printf("%8llu", (unsigned long long)r->seed);
        for (size_t j = 0; j < sizeof(shown) / sizeof(*shown); j++) {
            char *text = short_number(number_of(r, shown[j]));
            printf(" %*s", widths[j], text);
            free(text);
        }
        char *value = short_number(r->value),
             *config = r->best ? dt_config_text(m->space, r->best) : NULL;
        printf("  %s%s%s\n", value, config ? ": " : "", config ? config : "");
        free(value);
        free(config);
    }
}

static void print_text(const struct simulation *m)
{
    char *best = dt_config_text(m->space, m->table_best_x), *value = short_number(m->table_best);
    printf("%s: %zu configurations; %s is to be %s, the best is %s: %s\n", m->o->table,
           m->space->npoints, m->spec->replay.objective,
           m->spec->maximize ? "maximized" : "minimized", value, best);
    free(best);
    free(value);
    print_studies(m);
    printf("\n%zu %s; within 5 %% of the best: %zu, within 1 %%: %zu\n", m->n,
           m->n == 1 ? "study" : "studies", studies_within(m, NUM_TO_5),
           studies_within(m, NUM_TO_1));
    if (m->n == 1) {
        printf("stopped: %s\n", m->results[0].stopped);
        return;
    }
    printf("%28s %10s %10s\n", "", "median", "90 %");
    for (int i = 0; i < NUMBERS; i++) {
        if (!is_told(m, i))
            continue;
        char *median = short_number(quantile(m, i, 0.5)), *p90 = short_number(quantile(m, i, 0.9));
        printf("%-28s %10s %10s\n", numbers[i].label, median, p90);
        free(median);
        free(p90);
    }
}

/* ---- JSON ---- */

static struct json_object *result_json(const struct simulation *m, const struct result *r)
{
    struct json_object *o = json_object_new_object(), *best = NULL,
                       *after = json_object_new_object();
    json_object_object_add(o, "seed", json_object_new_int64((int64_t)r->seed));
    add(o, "trials", (double)r->trials);
    json_object_object_add(o, "stopped", json_object_new_string(r->stopped));
    if (r->best) {
        best = json_object_new_object();
        json_object_object_add(best, "config", dt_config_to_json(m->space, r->best));
        add(best, "value", r->value);
        add(best, "observed", r->observed);
    }
    json_object_object_add(o, "best", best);
    add(o, "gap_pct", 100 * r->gap);
    for (int i = 0; i < MARKS; i++) {
        char *key = dt_xasprintf("%zu", marks[i]);
        add(after, key, 100 * r->gap_after[i]);
        free(key);
    }
    json_object_object_add(o, "gap_pct_after", after);
    for (int i = NUM_TO_5; i < NUMBERS; i++)
        if (is_told(m, i))
            add(o, numbers[i].key, number_of(r, i));
    json_object_object_add(o, "history", json_object_get(r->history));
    return o;
}

static struct json_object *summary_json(const struct simulation *m)
{
    struct json_object *o = json_object_new_object();
    struct json_object *median = json_object_new_object(), *p90 = json_object_new_object();
    add(o, "studies", (double)m->n);
    add(o, "within_5pct", (double)studies_within(m, NUM_TO_5));
    add(o, "within_1pct", (double)studies_within(m, NUM_TO_1));
    for (int i = 0; i < NUMBERS; i++) {
        if (!is_told(m, i))
            continue;
        add(median, numbers[i].key, quantile(m, i, 0.5));
        add(p90, numbers[i].key, quantile(m, i, 0.9));
    }
    json_object_object_add(o, "median", median);
    json_object_object_add(o, "p90", p90);
    return o;
}

static void print_json(const struct simulation *m)
{
    struct json_object *o = json_object_new_object(), *best = json_object_new_object();
    struct json_object *studies = json_object_new_array();
    json_object_object_add(o, "version", json_object_new_int(1));
    json_object_object_add(o, "spec", json_object_new_string(m->o->spec));
    json_object_object_add(o, "table", json_object_new_string(m->o->table));
    json_object_object_add(o, "objective", json_object_new_string(m->spec->replay.objective));
    json_object_object_add(o, "goal",
                           json_object_new_string(m->spec->maximize ? "maximize" : "minimize"));
    add(o, "noise_pct", m->o->noise);
    add(o, "failures_pct", m->o->failures);
    add(o, "configurations", (double)m->space->npoints);
    add(best, "value", m->table_best);
    json_object_object_add(best, "config", dt_config_to_json(m->space, m->table_best_x));
    json_object_object_add(o, "table_best", best);
    for (size_t i = 0; i < m->n; i++)
        json_object_array_add(studies, result_json(m, &m->results[i]));
    json_object_object_add(o, "studies", studies);
    json_object_object_add(o, "summary", summary_json(m));
    char *text = dt_json_text(o);
    puts(text);
    free(text);
    json_object_put(o);
}

/* ---- the command ---- */

/* 0: go on; else 1 + the exit code. */
static int read_options(int argc, char **argv, struct options *o, struct dt_error *e)
{
    static const struct option longs[] = {
        {"spec", required_argument, NULL, 's'},     {"table", required_argument, NULL, 't'},
        {"seed", required_argument, NULL, 'n'},     {"repeat", required_argument, NULL, 'r'},
        {"noise", required_argument, NULL, 'p'},    {"format", required_argument, NULL, 'f'},
        {"failures", required_argument, NULL, 'b'}, {"timing", no_argument, NULL, 'c'},
        {"past", required_argument, NULL, 'o'},     {"cluster", required_argument, NULL, 'k'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
    *o = (struct options){.seed = -1, .repeat = 1};
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        if (c == 'h') {
            fputs(usage_text, stdout);
            return 1 + EXIT_DONE;
        }
        bool bad = c == '?';
        if (c == 's')
            o->spec = optarg;
        else if (c == 't')
            o->table = optarg;
        else if (c == 'o')
            dt_strv_add(&o->past, optarg);
        else if (c == 'k')
            o->cluster = optarg;
        else if (c == 'n')
            bad = dt_parse_int64(optarg, &o->seed) < 0 || o->seed < 0;
        else if (c == 'r')
            bad = dt_parse_int64(optarg, &o->repeat) < 0 || o->repeat < 1 || o->repeat > 100000;
        else if (c == 'p')
            bad = dt_parse_double(optarg, &o->noise) < 0 || o->noise < 0 || o->noise > 1000;
        else if (c == 'b')
            bad = dt_parse_double(optarg, &o->failures) < 0 || o->failures < 0 || o->failures > 100;
        else if (c == 'c')
            o->timing = true;
        else if (c == 'f')
            bad = !(o->json = strcmp(optarg, "json") == 0) &&
                  !(o->html = strcmp(optarg, "html") == 0) && strcmp(optarg, "text") != 0;
        if (bad && c != '?')
            dt_fail(e, "simulate: \"%s\" cannot be used there; see dt-tune simulate --help",
                    optarg);
        if (bad)
            return 1 + EXIT_USAGE;
    }
    if (o->html && o->repeat > 1)
        dt_fail(e, "simulate: --format=html shows one study: leave out --repeat");
    else if (optind == argc && o->spec && o->table)
        return 0;
    else
        dt_fail(
            e, "simulate: --spec=S.json and --table=T.csv are needed and nothing else; see dt-tune "
               "simulate --help");
    return 1 + EXIT_USAGE;
}

static int run_all(const struct options *o)
{
    struct dt_error e = DT_ERROR_INIT;
    struct simulation m = {.o = o, .job = {.tasks = 1, .cpus = 1}};
    if (prepare(&m, &e) < 0) {
        clear(&m);
        return fail_with(&e, EXIT_USAGE);
    }
    m.results = dt_xcalloc((size_t)o->repeat, sizeof(*m.results));
    uint64_t first = o->seed >= 0 ? (uint64_t)o->seed : m.spec->seed;
    for (int64_t i = 0; i < o->repeat; i++) {
        if (simulate_one(&m, first + (uint64_t)i, &e) < 0) {
            clear(&m);
            return fail_with(&e, EXIT_WORK_FAILED);
        }
    }
    if (o->json)
        print_json(&m);
    else if (!o->html)
        print_text(&m);
    clear(&m);
    return fflush(stdout) == 0 ? EXIT_DONE : EXIT_WORK_FAILED;
}

int cmd_simulate(int argc, char **argv)
{
    struct dt_error e = DT_ERROR_INIT;
    struct options o;
    int rc = read_options(argc, argv, &o, &e);
    if (rc)
        rc = e.text ? fail_with(&e, rc - 1) : rc - 1;
    else
        rc = run_all(&o);
    dt_strv_free(&o.past);
    return rc;
}
