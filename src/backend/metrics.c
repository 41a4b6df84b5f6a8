#include "backend/slurm_private.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECENT (256 * 1024) /* of a backlog that is skipped, so much at the end is read */
#define NAME_MAX_ 200
#define PAUSE 0.01 /* of a run's age: how long values wait */
#define PAUSE_MAX 30.0
#define DAY 86400.0 /* no two clocks of a cluster differ so much */
#define APART 0.05  /* two sources of one metric that differ so much are not the same thing */

enum source { BY_PROGRAM, BY_PATTERN, SOURCES };

struct report {
    double value, step, t;
};

struct value {
    char *name;
    struct report first, last;
    int64_t count;
    bool told;  /* by an event, also of an earlier tuner */
    bool fresh; /* no event has told the last one yet */
    bool hit;   /* it reached the target: later ones wait */
    double by[SOURCES];
};

struct dt_feed {
    char *path;
    int64_t offset; /* everything before was read or skipped */
    bool midline;   /* the rest of the line that begins before is to be passed over */
    struct value *values;
    size_t n;
    double next; /* monotonic: events are due then */
    bool urgent; /* the target was reached */
    bool skipped, long_line;
    char *extra;      /* the first name beyond those that count */
    char *unnamed;    /* the first name that is none */
    char *bad, *torn; /* the first line that is no JSON object; the last, without end */
    char *odd;        /* "accuracy was reported as ..." */
};

struct dt_feed *dt_feed_new(const char *path, const struct dt_trial *t)
{
    struct dt_feed *f = dt_xcalloc(1, sizeof(*f));
    f->path = dt_xstrdup(path);
    f->offset = t->metrics_read;
    f->values = dt_xcalloc(DT_METRICS_MAX, sizeof(*f->values));
    for (size_t i = 0; i < t->nmetrics && i < DT_METRICS_MAX; i++) {
        const struct dt_metric *m = &t->metrics[i];
        f->values[f->n++] = (struct value){.name = dt_xstrdup(m->name),
                                           .last.value = m->last,
                                           .count = m->read,
                                           .told = true,
                                           .by = {NAN, NAN}};
    }
    return f;
}

void dt_feed_free(struct dt_feed *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n; i++)
        free(f->values[i].name);
    free(f->values);
    free(f->path);
    free(f->extra);
    free(f->unnamed);
    free(f->bad);
    free(f->torn);
    free(f->odd);
    free(f);
}

/* ---- one line ---- */

/* What a reading is about. */
struct look {
    struct dt_feed *f;
    const struct dt_spec *spec;
    const struct dt_trial *t;
    bool targeted; /* the target has not been reached yet */
};

static struct value *find_value(const struct dt_feed *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->values[i].name, name) == 0)
            return &f->values[i];
    return NULL;
}

/* What can stand in a journal and a report. */
static bool good_name(const char *name)
{
    size_t n = strlen(name);
    if (n == 0 || n > NAME_MAX_)
        return false;
    for (const char *c = name; *c; c++)
        if (iscntrl((unsigned char)*c))
            return false;
    char *clean = dt_clean_text(name, n);
    bool same = strcmp(clean, name) == 0;
    free(clean);
    return same;
}

static struct value *value_of(struct dt_feed *f, const char *name)
{
    struct value *v = find_value(f, name);
    if (v)
        return v;
    char **why = f->n == DT_METRICS_MAX ? &f->extra : good_name(name) ? NULL : &f->unnamed;
    if (why) {
        if (!*why)
            *why = dt_snippet(name, strlen(name));
        return NULL;
    }
    v = &f->values[f->n++];
    *v = (struct value){.name = dt_xstrdup(name), .by = {NAN, NAN}};
    return v;
}

static bool is_number(struct json_object *v)
{
    return json_object_is_type(v, json_type_int) || json_object_is_type(v, json_type_double);
}

static double finite_or_nan(double x)
{
    return isfinite(x) ? x : NAN;
}

/* How far the run was when it said the line. What was found in the output goes with the last step
 * that was found. */
static double step_of(const struct look *l, struct json_object *line, enum source source)
{
    static const char *const usual[] = {"epoch", "step"};
    const char *const *names = l->spec->step ? (const char *const[]){l->spec->step, NULL} : usual;
    size_t n = l->spec->step ? 1 : 2;
    for (size_t i = 0; i < n; i++)
        if (is_number(dt_json_get(line, names[i])))
            return finite_or_nan(dt_json_num(line, names[i], NAN));
    for (size_t i = 0; source == BY_PATTERN && i < n; i++) {
        const struct value *v = find_value(l->f, names[i]);
        if (v)
            return finite_or_nan(v->last.value);
    }
    return NAN;
}

static void take_value(struct look *l, const char *name, double value, double step, double t,
                       enum source source)
{
    const struct dt_bound *target = &l->spec->target;
    struct value *v = value_of(l->f, name);
    if (!v)
        return;
    v->by[source] = finite_or_nan(value);
    if (v->hit)
        return;
    v->last = (struct report){value, step, t};
    if (v->count++ == 0)
        v->first = v->last;
    v->fresh = true;
    if (l->targeted && strcmp(name, target->metric) == 0 && isfinite(value) &&
        dt_bound_margin(target, value) >= 0)
        v->hit = l->f->urgent = true;
}

static bool is_needed(const struct dt_spec *spec, const char *name)
{
    const char *const needed[] = {spec->objective == DT_OBJECTIVE_METRIC ? spec->metric : NULL,
                                  spec->target.metric, spec->quality.metric};
    for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
        if (needed[i] && strcmp(name, needed[i]) == 0)
            return true;
    return false;
}

static void note_odd(struct look *l, const char *name, struct json_object *v)
{
    if (l->f->odd || !is_needed(l->spec, name))
        return;
    char *text = dt_json_text(v), *snippet = dt_snippet(text, strlen(text));
    l->f->odd = dt_xasprintf("%s was reported as %s, which is no number; write it as one, without "
                             "quotes or signs",
                             name, snippet);
    free(text);
    free(snippet);
}

/* When the line was said, by its own word where that can be: it may count from the run's beginning,
 * or milliseconds, or be no number. */
static double time_of(const struct look *l, struct json_object *line)
{
    double now = dt_now(), said = dt_json_num(line, "time", now);
    return said >= l->t->t_created - DAY && said <= now + DAY ? said : now;
}

/* 0, or -1 where it is no JSON object. `line` ends with NUL at line[n]. */
static int read_line(struct look *l, const char *line, size_t n)
{
    if (line[strspn(line, " \t\r")] == '\0' && strlen(line) == n)
        return 0;
    struct json_object *o = strlen(line) == n ? dt_json_parse(line, "metric", NULL) : NULL;
    if (!json_object_is_type(o, json_type_object)) {
        json_object_put(o);
        return -1;
    }
    enum source source = strcmp(dt_json_str(o, "dt", ""), "pattern") == 0 ? BY_PATTERN : BY_PROGRAM;
    double t = time_of(l, o), step = step_of(l, o, source);
    json_object_object_foreach(o, name, v)
    {
        if (!is_number(v))
            note_odd(l, name, v);
        else if (strcmp(name, "time") != 0)
            take_value(l, name, json_object_get_double(v), step, t, source);
    }
    json_object_put(o);
    return 0;
}

static void take_line(struct look *l, char *line, size_t n)
{
    line[n] = '\0';
    if (l->f->midline)
        l->f->midline = false;
    else if (n > DT_METRIC_LINE_MAX)
        l->f->long_line = true;
    else if (read_line(l, line, n) < 0 && !l->f->bad)
        l->f->bad = dt_snippet(line, n);
}

/* ---- the file ---- */

/* Takes the whole lines of a piece; returns how much that was. */
static size_t take_lines(struct look *l, char *piece, size_t n)
{
    size_t at = 0;
    for (char *end; (end = memchr(piece + at, '\n', n - at)); at = (size_t)(end - piece) + 1)
        take_line(l, piece + at, (size_t)(end - piece) - at);
    if (n - at > DT_METRIC_LINE_MAX) { /* what began too long will not become shorter */
        l->f->long_line |= !l->f->midline;
        l->f->midline = true;
        at = n;
    }
    return at;
}

/* The last line, which nobody will end any more. */
static void take_rest(struct look *l, char *line, size_t n)
{
    line[n] = '\0';
    if (!l->f->midline && read_line(l, line, n) < 0 && !l->f->torn)
        l->f->torn = dt_snippet(line, n);
    l->f->midline = false;
}

static void skip_backlog(struct dt_feed *f, int64_t size, bool to_end)
{
    if (size < f->offset) { /* it was written anew */
        f->offset = 0;
        f->midline = false;
    }
    if (size - f->offset <= (to_end ? DT_METRICS_END : DT_METRICS_BACKLOG))
        return;
    f->offset = size - (to_end ? DT_METRICS_END : RECENT);
    f->midline = f->skipped = true;
}

static void read_file(struct look *l, bool to_end)
{
    struct dt_feed *f = l->f;
    int fd = dt_open_regular(f->path);
    struct stat st;
    if (fd < 0)
        return;
    if (fstat(fd, &st) < 0)
        st.st_size = f->offset;
    skip_backlog(f, st.st_size, to_end);
    char *piece = st.st_size > f->offset ? dt_xcalloc(DT_METRICS_LOOK + 1, 1) : NULL;
    while (f->offset < st.st_size) {
        int64_t left = st.st_size - f->offset;
        size_t want = left < DT_METRICS_LOOK ? (size_t)left : DT_METRICS_LOOK;
        ssize_t n = pread(fd, piece, want, f->offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        size_t taken = take_lines(l, piece, (size_t)n);
        f->offset += (int64_t)taken;
        if (!to_end)
            break;
        if (f->offset + (n - (ssize_t)taken) >= st.st_size) {
            take_rest(l, piece + taken, (size_t)n - taken);
            f->offset = st.st_size;
        }
    }
    free(piece);
    close(fd);
}

/* ---- events ---- */

static void tell_report(const struct dt_trial *t, const char *name, const struct report *r,
                        int64_t count, const struct dt_events *out)
{
    struct dt_event *ev = dt_events_add(out, DT_EVENT_METRIC, t, r->t);
    ev->text = dt_xstrdup(name);
    ev->value = r->value;
    ev->step = r->step;
    ev->count = count;
}

/* The first report is told even where more have come since: a speed is counted from it. */
static void tell(struct dt_feed *f, const struct dt_trial *t, struct dt_event **events, size_t *n)
{
    const struct dt_events out = {events, n};
    size_t before = *n;
    for (size_t i = 0; i < f->n; i++) {
        struct value *v = &f->values[i];
        if (!v->fresh)
            continue;
        if (!v->told && v->count > 1)
            tell_report(t, v->name, &v->first, 1, &out);
        tell_report(t, v->name, &v->last, v->count, &out);
        v->told = true;
        v->fresh = v->hit = false;
    }
    if (*n > before) /* a journal that ends before this one has told less */
        (*events)[*n - 1].read = f->offset;
    f->urgent = false;
}

void dt_feed_read(struct dt_feed *f, const struct dt_spec *spec, const struct dt_trial *t,
                  bool to_end, struct dt_event **events, size_t *n)
{
    struct look l = {f, spec, t, spec->target.metric && isnan(t->t_target)};
    read_file(&l, to_end);
    double now = dt_monotonic();
    if (!to_end && !f->urgent && now < f->next)
        return;
    size_t before = *n;
    tell(f, t, events, n);
    double age = dt_now() - t->t_started;
    if (*n > before)
        f->next = now + (age > 0 ? fmin(PAUSE * age, PAUSE_MAX) : 0);
}

/* ---- words ---- */

static void note_sources(struct dt_strv *notes, const struct value *v)
{
    double file = v->by[BY_PROGRAM], text = v->by[BY_PATTERN];
    double most = fmax(fabs(file), fabs(text));
    if (isfinite(file - text) && fabs(file - text) > APART * most)
        dt_strv_addf(notes,
                     "%s comes from two places that differ: at last %g by metrics.jsonl, %g by its "
                     "pattern; both count, so take one out",
                     v->name, file, text);
}

char *dt_feed_note(const struct dt_feed *f)
{
    struct dt_strv notes = DT_STRV_INIT;
    if (f->skipped)
        dt_strv_addf(&notes,
                     "metrics were reported faster than they could be read, and some were passed "
                     "over; report less often");
    if (f->extra)
        dt_strv_addf(&notes, "only the first %d metrics count; \"%s\" and others were passed over",
                     DT_METRICS_MAX, f->extra);
    if (f->unnamed)
        dt_strv_addf(
            &notes, "metrics whose name is not plain text of at most %d bytes were passed over: %s",
            NAME_MAX_, f->unnamed);
    if (f->long_line)
        dt_strv_addf(&notes, "lines of metrics.jsonl longer than %d KiB were passed over",
                     DT_METRIC_LINE_MAX / 1024);
    if (f->bad)
        dt_strv_addf(&notes, "metrics.jsonl has lines that are no JSON object, such as: %s",
                     f->bad);
    if (f->torn)
        dt_strv_addf(&notes, "the last line of metrics.jsonl is not complete: %s", f->torn);
    if (f->odd)
        dt_strv_addf(&notes, "%s", f->odd);
    for (size_t i = 0; i < f->n; i++)
        note_sources(&notes, &f->values[i]);
    char *text = notes.n ? dt_strv_join(&notes, "\n") : NULL;
    dt_strv_free(&notes);
    return text;
}
