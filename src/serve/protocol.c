#include "serve/lines.h"
#include "serve/serve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ID_MAX 256                    /* bytes */
#define ID_LARGEST ((int64_t)1 << 53) /* what every program's numbers can hold */

struct dt_serve {
    struct dt_lines *lines;
    bool *told; /* of each of the study's requests: it was asked for in this sitting, so answers are
                   expected */
    size_t ntold;
    bool ended; /* {"end": true} */
};

struct dt_serve *dt_serve_new(int in_fd, int out_fd, int wake_fd, struct dt_error *e)
{
    struct dt_lines *lines = dt_lines_new(in_fd, out_fd, wake_fd, e);
    if (!lines)
        return NULL;
    struct dt_serve *v = dt_xcalloc(1, sizeof(*v));
    v->lines = lines;
    return v;
}

void dt_serve_free(struct dt_serve *v, double patience, const volatile int *stop)
{
    if (!v)
        return;
    dt_lines_free(v->lines, patience, stop);
    free(v->told);
    free(v);
}

/* ---- answers ---- */

static void add_string(struct json_object *o, const char *key, const char *text)
{
    json_object_object_add(o, key, text ? json_object_new_string(text) : NULL);
}

static void add_number(struct json_object *o, const char *key, double x)
{
    json_object_object_add(o, key, isfinite(x) ? dt_json_number(x) : NULL);
}

static struct json_object *answer(struct json_object *id, const char *event)
{
    struct json_object *o = json_object_new_object();
    if (id)
        json_object_object_add(o, "id", json_object_get(id));
    add_string(o, "event", event);
    return o;
}

/* Takes the object over. */
static void put(struct dt_serve *v, struct json_object *o, bool can_be_spared)
{
    char *line = dt_json_text(o);
    dt_lines_put(v->lines, line, can_be_spared);
    free(line);
    json_object_put(o);
}

static void refuse(struct dt_serve *v, struct json_object *id, const char *why)
{
    struct json_object *o = answer(id, "refused");
    add_string(o, "error", why);
    put(v, o, false);
}

/* The whole configuration; what is as the user's script has it is not in it. */
static struct json_object *config_json(const struct dt_study *s, const double *x)
{
    struct json_object *o = dt_config_to_json(s->space, x);
    for (size_t i = 0; i < s->space->n; i++)
        if (isnan(x[i]))
            json_object_object_del(o, s->space->params[i].name);
    return o;
}

static void tell_started(struct dt_serve *v, const struct dt_study *s, const struct dt_trial *t)
{
    struct json_object *o = answer(s->asks[t->ask - 1].id, "started");
    json_object_object_add(o, "trial", json_object_new_int(t->id));
    json_object_object_add(o, "run", json_object_new_int(t->run));
    json_object_object_add(o, "config", config_json(s, t->x));
    put(v, o, false);
}

static void tell_metric(struct dt_serve *v, struct json_object *id, const char *name,
                        const struct dt_point *p)
{
    struct json_object *o = answer(id, "metric");
    add_string(o, "name", name);
    add_number(o, "step", p->step);
    add_number(o, "value", p->value);
    put(v, o, true);
}

static void tell_ended(struct dt_serve *v, const struct dt_study *s, const struct dt_trial *t)
{
    struct json_object *o = answer(s->asks[t->ask - 1].id, "ended"),
                       *metrics = json_object_new_object();
    bool pruned = t->cause == DT_CAUSE_PRUNED;
    json_object_object_add(o, "trial", json_object_new_int(t->id));
    add_string(o, "status", pruned ? "pruned" : dt_status_names[t->status]);
    add_string(o, "cause", dt_cause_names[t->cause]);
    if (t->text)
        add_string(o, "text", t->text);
    add_number(o, "value", t->value);
    add_number(o, "duration_s", dt_trial_time(s, t));
    for (size_t i = 0; i < t->nmetrics; i++)
        add_number(metrics, t->metrics[i].name, t->metrics[i].last);
    json_object_object_add(o, "metrics", metrics);
    json_object_object_add(o, "config", config_json(s, t->x));
    put(v, o, false);
}

/* One that was to end before it had a trial. */
static void tell_withdrawn(struct dt_serve *v, const struct dt_ask *ask)
{
    struct json_object *o = answer(ask->id, "ended");
    json_object_object_add(o, "trial", NULL);
    add_string(o, "status", "pruned");
    add_string(o, "cause", dt_cause_names[DT_CAUSE_PRUNED]);
    add_string(o, "text", ask->withdrawn);
    add_number(o, "value", NAN);
    add_number(o, "duration_s", NAN);
    json_object_object_add(o, "metrics", json_object_new_object());
    json_object_object_add(o, "config", NULL);
    put(v, o, false);
}

static void tell_latest(struct dt_serve *v, struct json_object *id, const struct dt_metric *m)
{
    tell_metric(v, id, m->name, &m->series.v[m->series.n - 1]);
}

/* What is known of a request that is made again. */
static void tell_again(struct dt_serve *v, const struct dt_study *s, const struct dt_ask *ask)
{
    const struct dt_trial *t = dt_study_trial(s, ask->trial);
    if (ask->withdrawn)
        tell_withdrawn(v, ask);
    if (!t)
        return;
    if (t->state == DT_TRIAL_ENDED)
        tell_ended(v, s, t);
    if (t->state != DT_TRIAL_STARTED)
        return;
    tell_started(v, s, t);
    for (size_t i = 0; i < t->nmetrics; i++)
        for (size_t k = 0; k < t->metrics[i].series.n; k++)
            tell_metric(v, ask->id, t->metrics[i].name, &t->metrics[i].series.v[k]);
}

static bool is_told(const struct dt_serve *v, size_t i)
{
    return i < v->ntold && v->told[i];
}

static void tell_from_now_on(struct dt_serve *v, size_t i)
{
    if (i >= v->ntold) {
        v->told = dt_xrealloc(v->told, i + 1, sizeof(*v->told));
        memset(v->told + v->ntold, 0, (i + 1 - v->ntold) * sizeof(*v->told));
        v->ntold = i + 1;
    }
    v->told[i] = true;
}

void dt_serve_hello(struct dt_serve *v, const char *dir)
{
    const char *slash = strrchr(dir, '/');
    struct json_object *o = json_object_new_object();
    add_string(o, "study", slash ? slash + 1 : dir);
    json_object_object_add(o, "version", json_object_new_int(1));
    add_string(o, "dir", dir);
    put(v, o, false);
}

void dt_serve_event(struct dt_serve *v, const struct dt_study *s, const struct dt_event *ev)
{
    const struct dt_trial *t = dt_study_trial(s, ev->trial);
    int i = ev->ask ? dt_study_find_ask(s, ev->ask) : t ? t->ask - 1 : -1;
    if (i < 0)
        return;
    if (ev->kind == DT_EVENT_ASKED)
        tell_from_now_on(v, (size_t)i);
    if (!is_told(v, (size_t)i))
        return;
    if (ev->kind == DT_EVENT_PRUNED && s->asks[i].withdrawn)
        tell_withdrawn(v, &s->asks[i]);
    else if (ev->kind == DT_EVENT_STARTED)
        tell_started(v, s, t);
    else if (ev->kind == DT_EVENT_METRIC)
        tell_latest(v, s->asks[i].id, dt_trial_metric(t, ev->text));
    else if (ev->kind == DT_EVENT_ENDED && t->state == DT_TRIAL_ENDED)
        tell_ended(v, s, t);
}

static struct json_object *best_json(const struct dt_study *s)
{
    const struct dt_trial *t = s ? dt_study_best(s) : NULL;
    if (!t)
        return NULL;
    struct json_object *o = json_object_new_object();
    if (t->ask)
        json_object_object_add(o, "id", json_object_get(s->asks[t->ask - 1].id));
    json_object_object_add(o, "trial", json_object_new_int(t->id));
    add_number(o, "value", t->value);
    json_object_object_add(o, "config", config_json(s, t->x));
    return o;
}

void dt_serve_finish(struct dt_serve *v, const struct dt_study *s, const char *error)
{
    const char *reason = error ? error : s && s->stop_reason ? s->stop_reason : "unknown";
    for (size_t i = 0; s && i < s->nasks; i++) {
        const struct dt_trial *t = dt_study_trial(s, s->asks[i].trial);
        if (!is_told(v, i) || s->asks[i].withdrawn || (t && t->state == DT_TRIAL_ENDED))
            continue;
        char *why = dt_xasprintf(
            "the study ended before this trial (%s); ask again when it goes on", reason);
        refuse(v, s->asks[i].id, why);
        free(why);
    }
    struct json_object *o = answer(NULL, "finished");
    add_string(o, "reason", reason);
    json_object_object_add(o, "best", best_json(s));
    put(v, o, false);
}

/* ---- requests ---- */

static int check_keys(struct json_object *o, struct dt_error *e)
{
    static const char *const keys[] = {"id", "hyperparameters", "prune", "end"};
    size_t n = sizeof(keys) / sizeof(*keys);
    json_object_object_foreach(o, key, unused)
    {
        bool known = false;
        (void)unused;
        for (size_t i = 0; i < n; i++)
            known |= strcmp(key, keys[i]) == 0;
        const char *near = known ? NULL : dt_nearest(key, keys, n);
        if (!known)
            return dt_fail(e, "unknown key \"%s\"; %s%s%s", key,
                           near ? "did you mean \"" : "there are ",
                           near ? near : "id, hyperparameters, prune and end", near ? "\"?" : "");
    }
    return 0;
}

static int check_id(struct json_object *id, struct dt_error *e)
{
    if (!id)
        return dt_fail(e, "\"id\" is missing: a string or a whole number");
    if (json_object_is_type(id, json_type_int)) {
        int64_t x = json_object_get_int64(id);
        return x >= -ID_LARGEST && x <= ID_LARGEST
                   ? 0
                   : dt_fail(e, "\"id\": the number is too large; write it as a string");
    }
    if (!json_object_is_type(id, json_type_string))
        return dt_fail(e, "\"id\" must be a string or a whole number");
    if (json_object_get_string_len(id) > ID_MAX)
        return dt_fail(e, "\"id\" may be %d bytes long", ID_MAX);
    return 0;
}

static bool is_true(struct json_object *o, const char *key)
{
    return dt_json_bool(o, key, false);
}

/* 1: `ev` is what it comes to; 0: it is answered; -1: refused. */
static int ask(struct dt_serve *v, const struct dt_study *s, struct json_object *id,
               struct json_object *hyperparameters, struct dt_event *ev, struct dt_error *e)
{
    double *x = dt_xcalloc(s->space->n, sizeof(double));
    int i = dt_study_find_ask(s, id), rc = dt_study_read_ask(s, hyperparameters, x, e);
    if (rc == 0 && i >= 0 && !dt_config_equal(x, s->asks[i].x, s->space->n)) {
        char *before = dt_config_text(s->space, s->asks[i].x);
        rc = dt_fail(e, "this id was used with other hyperparameters: %s", before);
        free(before);
    } else if (rc == 0 && i >= 0) {
        tell_from_now_on(v, (size_t)i);
        tell_again(v, s, &s->asks[i]);
    } else if (rc == 0 && s->stop_reason) {
        rc = dt_fail(e, "the study is ending (%s); ask again when it goes on", s->stop_reason);
    } else if (rc == 0 && v->ended) {
        rc = dt_fail(e, "the end of requests was told already");
    } else if (rc == 0 && !dt_study_can_place(s, x)) {
        rc = dt_fail(e, "no DT configuration is allowed beside these hyperparameters");
    } else if (rc == 0) {
        ev->kind = DT_EVENT_ASKED;
        ev->ask = json_object_get(id);
        ev->config = json_object_get(hyperparameters);
        rc = 1;
    }
    free(x);
    return rc;
}

#define WHY_PRUNED "the program that asked for it has seen enough"

static int prune(const struct dt_study *s, struct json_object *id, struct dt_event *ev,
                 struct dt_error *e)
{
    int i = dt_study_find_ask(s, id);
    if (i < 0)
        return dt_fail(e, "there is no trial to end: nobody asked for this id");
    const struct dt_trial *t = dt_study_trial(s, s->asks[i].trial);
    if (s->asks[i].withdrawn || (t && (t->state == DT_TRIAL_ENDED || t->pruned)))
        return 0; /* its end was told, or will be */
    ev->kind = DT_EVENT_PRUNED;
    ev->trial = s->asks[i].trial;
    if (!t)
        ev->ask = json_object_get(id);
    ev->text = dt_xstrdup(WHY_PRUNED);
    return 1;
}

static int take_object(struct dt_serve *v, const struct dt_study *s, struct json_object *o,
                       struct dt_event *ev, struct dt_error *e)
{
    struct json_object *id = dt_json_get(o, "id"), *hyper = NULL;
    bool asks = json_object_object_get_ex(o, "hyperparameters", &hyper);
    if (check_keys(o, e) < 0)
        return -1;
    if (is_true(o, "end") && json_object_object_length(o) == 1) {
        v->ended = true;
        return 0;
    }
    if (check_id(id, e) < 0)
        return -1;
    if (json_object_object_length(o) == 2 && asks)
        return ask(v, s, id, hyper, ev, e);
    if (json_object_object_length(o) == 2 && is_true(o, "prune"))
        return prune(s, id, ev, e);
    return dt_fail(e, "beside \"id\" there must be either \"hyperparameters\" or \"prune\": true");
}

static bool is_blank(const char *line)
{
    return line[strspn(line, " \t\r")] == '\0';
}

static int take_line(struct dt_serve *v, const struct dt_study *s, const char *line, size_t len,
                     struct dt_event *ev)
{
    struct dt_error e = DT_ERROR_INIT;
    struct json_object *o = NULL, *id = NULL;
    int rc = 0;
    char *clean = dt_clean_text(line, len);
    if (strlen(line) != len || strcmp(line, clean) != 0)
        rc = dt_fail(&e, "request: not valid JSON: it is no text in UTF-8");
    else if (!is_blank(line))
        rc = (o = dt_json_parse(line, "request", &e)) ? 0 : -1;
    if (o && !json_object_is_type(o, json_type_object))
        rc = dt_fail(&e, "request: it is no JSON object");
    else if (o) {
        struct dt_error bad = DT_ERROR_INIT;
        id = check_id(dt_json_get(o, "id"), &bad) == 0 ? dt_json_get(o, "id") : NULL;
        dt_error_clear(&bad);
        rc = take_object(v, s, o, ev, &e);
    }
    if (rc < 0)
        refuse(v, id, e.text);
    free(clean);
    json_object_put(o);
    dt_error_clear(&e);
    return rc;
}

int dt_serve_request(struct dt_serve *v, struct dt_study *s, struct dt_event *ev)
{
    *ev = (struct dt_event)DT_EVENT(DT_EVENT_ASKED);
    while (!dt_lines_gone(v->lines)) {
        char *line;
        size_t len;
        enum dt_line kind = dt_lines_next(v->lines, &line, &len);
        if (kind == DT_LINE_TOO_LONG)
            refuse(v, NULL, "request: a line may be 1 MiB long");
        int rc = kind == DT_LINE_ONE ? take_line(v, s, line, len, ev) : 0;
        free(line);
        if (rc > 0)
            return 1;
        s->no_more = s->no_more || v->ended || kind == DT_LINE_END;
        if (kind == DT_LINE_NONE || kind == DT_LINE_END)
            return 0;
    }
    s->no_more = true;
    return 0;
}
