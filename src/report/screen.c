/* A study at this moment, for a terminal of some size. */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define QUIET 60.0    /* seconds without an event that are worth a word */
#define LEAST_ENDED 3 /* lines that those that ended get, however many run */

/* ---- lines that fit ---- */

/* The first `columns` characters, and '?' for what a terminal would obey. Takes the text over. */
static void add_line(struct dt_strv *lines, size_t columns, char *text)
{
    size_t width = 0, n = 0;
    for (; text[n]; n++) {
        unsigned char c = (unsigned char)text[n];
        bool begins = (c & 0xc0) != 0x80;
        if (begins && width == columns)
            break;
        width += begins;
        /* C1 controls are two bytes: 0xc2, then one below 0xa0 */
        bool control = c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char)text[n + 1] < 0xa0);
        if (control)
            text[n] = '?';
    }
    text[n] = '\0';
    char *clean = dt_clean_text(text, n);
    dt_strv_take(lines, clean);
    free(text);
}

static void linef(struct dt_strv *lines, size_t columns, const char *fmt, ...) DT_PRINTF(3, 4);
static void linef(struct dt_strv *lines, size_t columns, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add_line(lines, columns, dt_xvasprintf(fmt, ap));
    va_end(ap);
}

/* Text that goes on below itself, from column `indent`, where it does not fit behind `head`;
 * nothing where both are empty. Takes the text over. */
static void add_wrapped(struct dt_strv *lines, size_t columns, int indent, const char *head,
                        char *text)
{
    size_t room = columns > (size_t)indent + 10 ? columns - (size_t)indent : 10;
    const char *rest = text;
    while (*head || *rest) {
        size_t n = strlen(rest);
        if (n > room) {
            for (n = room; n > 0 && rest[n] != ' '; n--)
                ;
            n = n ? n : room;
        }
        linef(lines, columns, "%-*s%.*s", indent, head, (int)n, rest);
        head = "";
        rest += n + strspn(rest + n, " ");
    }
    free(text);
}

/* ---- words ---- */

static size_t count_state(const struct dt_study *s, enum dt_trial_state state)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->trials[i].state == state;
    return n;
}

static size_t count_failed(const struct dt_study *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->trials[i].state == DT_TRIAL_ENDED && s->trials[i].status == DT_STATUS_FAILED;
    return n;
}

/* " (1.82 x as submitted)", or nothing. Caller frees. */
static char *gain_text(const struct dt_study *s, const struct dt_trial *best, const char *as)
{
    int n;
    double before = dt_study_before(s), now = dt_study_mean(s, best, &n);
    double gain = s->spec->maximize ? now / before : before / now;
    return isfinite(gain) && gain > 0 ? dt_xasprintf(" (%.3g x%s)", gain, as) : dt_xstrdup("");
}

char *dt_report_progress(const struct dt_study *s)
{
    const struct dt_trial *best = dt_study_best(s);
    size_t ended = count_state(s, DT_TRIAL_ENDED);
    if (!best)
        return dt_xasprintf("%zu of at most %zu trials", ended, s->stopping.max_configs);
    int n;
    char *value = dt_report_value(s, dt_study_mean(s, best, &n)), *gain = gain_text(s, best, "");
    char *text = dt_xasprintf("%zu of at most %zu trials, best %s%s", ended,
                              s->stopping.max_configs, value, gain);
    free(value);
    free(gain);
    return text;
}

static const char *what_it_does(const struct dt_study *s)
{
    return s->complete      ? "ended"
           : s->stop_reason ? "ending"
           : s->n == 0      ? "beginning"
                            : "searching";
}

static void add_head(const struct dt_study *s, const char *name, const char *job,
                     struct dt_screen at, struct dt_strv *lines)
{
    bool begun = !isnan(s->t_start);
    double so_far =
        begun ? dt_study_elapsed(s) + (s->complete ? 0 : fmax(at.now - s->t_last, 0)) : 0;
    char *took = dt_format_duration(so_far);
    char *objective = dt_spec_objective_text(s->spec);
    double quiet = begun && !s->complete ? at.now - s->t_last : 0;
    char *ago = dt_format_duration(quiet);
    linef(lines, at.columns, "dt-tune study %s of %s: %s, for %s%s%s", name, job, what_it_does(s),
          took, quiet > QUIET ? ", quiet for " : "", quiet > QUIET ? ago : "");
    free(ago);
    linef(lines, at.columns,
          "objective: %s   trials: %zu of at most %zu ended, %zu run, %zu wait, %zu failed",
          objective, count_state(s, DT_TRIAL_ENDED), s->stopping.max_configs,
          count_state(s, DT_TRIAL_STARTED),
          count_state(s, DT_TRIAL_SUBMITTED) + count_state(s, DT_TRIAL_CREATED), count_failed(s));
    free(took);
    free(objective);
}

static void add_budget(const struct dt_study *s, struct dt_screen at, struct dt_strv *lines)
{
    struct dt_buf b = DT_BUF_INIT;
    const struct dt_stopping *st = &s->stopping;
    size_t left = st->max_configs > s->n ? st->max_configs - s->n : 0;
    dt_buf_addf(&b, "left: %zu trials", left);
    if (isfinite(st->deadline) && st->deadline > 0 && !isnan(s->t_start)) {
        char *time = dt_format_duration(fmax(s->t_start + st->deadline - at.now, 0));
        dt_buf_addf(&b, ", %s of the time", time);
        free(time);
    }
    if (isfinite(st->max_node_hours)) {
        double nodes, spent = dt_study_node_seconds(s, at.now, &nodes) / 3600;
        dt_buf_addf(&b, ", %.3g of %.3g node-hours", fmax(st->max_node_hours - spent, 0),
                    st->max_node_hours);
    }
    add_line(lines, at.columns, dt_buf_take(&b));
}

static void add_best(const struct dt_study *s, struct dt_screen at, struct dt_strv *lines)
{
    const struct dt_trial *best = dt_study_best(s);
    if (!best) {
        linef(lines, at.columns, "best: none yet");
        return;
    }
    int n;
    char *value = dt_report_value(s, dt_study_mean(s, best, &n)),
         *gain = gain_text(s, best, " as submitted");
    char *config = dt_config_text(s->space, best->x);
    linef(lines, at.columns, "best: %s in trial %d%s", value, best->id, gain);
    linef(lines, at.columns, "      %s", config);
    free(value);
    free(gain);
    free(config);
}

/* ---- those that are not over ---- */

static void add_level(struct dt_buf *b, const char *name, double level)
{
    if (!isnan(level))
        dt_buf_addf(b, " %s %.0f%%", name, 100 * level);
}

/* What it reported last. Caller frees. */
static char *metrics_of(const struct dt_trial *t)
{
    struct dt_buf b = DT_BUF_INIT;
    for (size_t i = 0; i < t->nmetrics; i++) {
        const struct dt_metric *m = &t->metrics[i];
        dt_buf_addf(&b, "%s%s=%.5g", b.len ? " " : "", m->name, m->last);
    }
    return dt_buf_take(&b);
}

/* What its roles use. Caller frees. */
static char *usage_of(const struct dt_trial *t)
{
    struct dt_buf b = DT_BUF_INIT;
    for (size_t i = 0; i < t->usage.n; i++) {
        const struct dt_role_usage *r = &t->usage.v[i];
        if (!r->n)
            continue;
        const struct dt_usage *u = &r->recent[r->n - 1];
        dt_buf_addf(&b, "%s%s", b.len ? " | " : "", r->role);
        add_level(&b, "cpu", u->mean[DT_RESOURCE_CPU]);
        add_level(&b, "mem", u->mean[DT_RESOURCE_MEM]);
        add_level(&b, "gpu", u->mean[DT_RESOURCE_GPU]);
    }
    return dt_buf_take(&b);
}

static void add_open_trial(const struct dt_study *s, const struct dt_trial *t, struct dt_screen at,
                           struct dt_strv *lines)
{
    static const char *const doing[] = {"waits", "queued", "runs"};
    const double since[] = {t->t_created, t->t_submitted, t->t_started};
    char *time = dt_format_duration(fmax(at.now - since[t->state], 0));
    char *head = dt_xasprintf("%5d %6s %9s", t->id, t->move.x ? "moves" : doing[t->state], time);
    add_wrapped(lines, at.columns, 35, head, dt_config_text(s->space, t->x));
    if (t->pruned)
        linef(lines, at.columns, "%13s%s", "", "to be stopped early");
    add_wrapped(lines, at.columns, 13, "", metrics_of(t));
    add_wrapped(lines, at.columns, 13, "", usage_of(t));
    free(head);
    free(time);
}

/* ---- those that are ---- */

/* How it ended stands before the configuration, which may be cut off. */
static void add_ended_trial(const struct dt_study *s, const struct dt_trial *t,
                            const struct dt_trial *best, struct dt_screen at, struct dt_strv *lines)
{
    char *run = isfinite(t->run_s) ? dt_format_duration(t->run_s) : dt_xstrdup("-");
    char *value = dt_report_value(s, t->value), *config = dt_config_text(s->space, t->x);
    bool well = t->cause == DT_CAUSE_OK || t->cause == DT_CAUSE_TARGET;
    const char *state = t == best ? "best" : t->status == DT_STATUS_FAILED ? "failed" : "ended";
    linef(lines, at.columns, "%5d %6s %9s %10s  %s%s%s", t->id, state, run, value,
          well ? "" : dt_cause_names[t->cause], well ? "" : ": ", config);
    free(run);
    free(value);
    free(config);
}

/* The last ones, the latest first, on so many lines at most. */
static void add_ended(const struct dt_study *s, size_t room, struct dt_screen at,
                      struct dt_strv *lines)
{
    size_t n;
    struct dt_milestone *course = dt_report_course(s, &n);
    for (size_t i = 0; i < n && i < room; i++)
        add_ended_trial(s, course[n - 1 - i].t, course[n - 1].best, at, lines);
    free(course);
}

/* ---- what is next ---- */

static const struct dt_trial *first_in(const struct dt_study *s, enum dt_trial_state state)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->trials[i].state == state)
            return &s->trials[i];
    return NULL;
}

static void add_next(const struct dt_study *s, struct dt_screen at, struct dt_strv *lines)
{
    const struct dt_trial *created = first_in(s, DT_TRIAL_CREATED);
    if (s->stop_reason)
        linef(lines, at.columns, "%s: %s", s->complete ? "stopped" : "stops", s->stop_reason);
    else if (created && isinf(created->deferred))
        linef(lines, at.columns, "next: trial %d, when another has ended", created->id);
    else if (created)
        linef(lines, at.columns, "next: trial %d (%s)", created->id, created->why);
    else if (count_state(s, DT_TRIAL_SUBMITTED) + count_state(s, DT_TRIAL_STARTED) == 0)
        linef(lines, at.columns, "next: a configuration is being chosen");
    else
        linef(lines, at.columns,
              "next: another configuration, unless the study stops, when a trial has ended");
}

void dt_report_screen(const struct dt_study *s, const char *name, const char *job,
                      struct dt_screen at, struct dt_strv *lines)
{
    size_t tail = 2; /* a gap, and how to leave */
    add_head(s, name, job, at, lines);
    add_budget(s, at, lines);
    add_best(s, at, lines);
    add_next(s, at, lines);
    add_line(lines, at.columns, dt_xstrdup(""));
    linef(lines, at.columns, "TRIAL  STATE       FOR  OBJECTIVE  CONFIGURATION");
    struct dt_strv open = DT_STRV_INIT;
    for (size_t i = 0; i < s->n; i++)
        if (s->trials[i].state != DT_TRIAL_ENDED)
            add_open_trial(s, &s->trials[i], at, &open);
    size_t room = at.rows > lines->n + tail ? at.rows - lines->n - tail : 0;
    size_t most = room > LEAST_ENDED ? room - LEAST_ENDED : room;
    bool all = open.n <= most;
    for (size_t i = 0; i < (all ? open.n : most ? most - 1 : 0); i++)
        dt_strv_add(lines, open.v[i]);
    if (!all && most)
        linef(lines, at.columns, "%5s and %zu lines of others that are not over", "",
              open.n - (most - 1));
    size_t taken = all ? open.n : most;
    add_ended(s, room > taken ? room - taken : 0, at, lines);
    dt_strv_free(&open);
}
