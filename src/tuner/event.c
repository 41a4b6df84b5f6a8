#include "tuner/tuner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[DT_EVENT_KINDS] = {
    "created",  "submitted",    "deferred",     "started", "allocated", "metric",
    "usage",    "reallocating", "checkpointed", "kept",    "pruned",    "ended",
    "stopping", "resumed",      "finished",     "asked",   "shrinking", "released",
};
const char *const dt_cause_names[DT_CAUSES] = {
    "ok",        "target reached", "exit code",         "out of memory",   "time limit",
    "no metric", "target missed",  "quality missed", "roles not started", "not schedulable",
    "stopped early", "node failure", "preempted", "cancelled",      "stopped",           "interrupted",     "lost",
    "no tuner",  "checkpoint not copied",
};

static int index_of(const char *name, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

static bool needs_text(int kind)
{
    return kind == DT_EVENT_METRIC || kind == DT_EVENT_USAGE || kind == DT_EVENT_PRUNED ||
           kind == DT_EVENT_REALLOCATING || kind == DT_EVENT_SHRINKING || kind == DT_EVENT_KEPT ||
           kind == DT_EVENT_STOPPING;
}

static void add_number(struct json_object *o, const char *key, double x)
{
    if (isfinite(x))
        json_object_object_add(o, key, dt_json_number(x));
}

static void add_count(struct json_object *o, const char *key, int64_t x)
{
    if (x)
        json_object_object_add(o, key, json_object_new_int64(x));
}

struct json_object *dt_event_to_json(const struct dt_event *ev)
{
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "t", dt_json_number(ev->t));
    json_object_object_add(o, "event", json_object_new_string(kind_names[ev->kind]));
    add_count(o, "trial", ev->trial);
    add_count(o, "run", ev->run);
    add_count(o, "job", ev->job);
    add_count(o, "again", ev->again);
    add_count(o, "parent", ev->parent);
    add_count(o, "instead", ev->instead);
    if (ev->ask)
        json_object_object_add(o, "ask", json_object_get(ev->ask));
    if (ev->config)
        json_object_object_add(o, "config", json_object_get(ev->config));
    if (ev->kind == DT_EVENT_ENDED)
        json_object_object_add(o, "cause", json_object_new_string(dt_cause_names[ev->cause]));
    if (ev->text)
        json_object_object_add(o, "text", json_object_new_string(ev->text));
    add_count(o, "exit_code", ev->exit_code);
    add_count(o, "signal", ev->signal);
    add_number(o, "wait_s", ev->wait_s);
    add_number(o, "startup_s", ev->startup_s);
    add_number(o, "run_s", ev->run_s);
    add_number(o, "billing", ev->billing);
    add_number(o, "nodes", ev->nodes);
    add_number(o, "step", ev->step);
    add_number(o, "value", ev->value);
    add_count(o, "count", ev->count);
    add_count(o, "read", ev->read);
    if (ev->kind == DT_EVENT_USAGE) {
        add_count(o, "samples", ev->usage.n);
        json_object_object_add(o, "levels", dt_usage_to_json(&ev->usage));
    }
    if (ev->note)
        json_object_object_add(o, "note", json_object_new_string(ev->note));
    if (isinf(ev->until))
        json_object_object_add(o, "until", NULL);
    else if (ev->until != 0)
        add_number(o, "until", ev->until);
    if (ev->interrupted)
        json_object_object_add(o, "interrupted", json_object_new_boolean(true));
    if (ev->foreign)
        json_object_object_add(o, "foreign", json_object_new_boolean(true));
    return o;
}

static void read_usage(struct json_object *o, struct dt_event *ev)
{
    int64_t n = dt_json_int(o, "samples", 1);
    ev->usage = dt_usage_unknown(ev->t);
    ev->usage.n = n > 0 ? n : 1;
    dt_usage_from_json(dt_json_get(o, "levels"), &ev->usage);
}

int dt_event_from_json(struct json_object *o, struct dt_event *ev, struct dt_error *e)
{
    const char *kind = dt_json_str(o, "event", ""), *text = dt_json_str(o, "text", NULL);
    const char *note = dt_json_str(o, "note", NULL);
    int k = index_of(kind, kind_names, DT_EVENT_KINDS);
    int cause = index_of(dt_json_str(o, "cause", "ok"), dt_cause_names, DT_CAUSES);
    if (k < 0)
        return dt_fail(e, "unknown event \"%s\"", kind);
    if (cause < 0)
        return dt_fail(e, "unknown cause \"%s\"", dt_json_str(o, "cause", ""));
    if (!text && needs_text(k))
        return dt_fail(e, "event \"%s\" without \"text\"", kind);
    *ev = (struct dt_event)DT_EVENT((enum dt_event_kind)k);
    ev->cause = (enum dt_cause)cause;
    ev->t = dt_json_num(o, "t", 0);
    ev->trial = (int)dt_json_int(o, "trial", 0);
    ev->run = (int)dt_json_int(o, "run", 0);
    ev->job = (uint32_t)dt_json_int(o, "job", 0);
    ev->again = (int)dt_json_int(o, "again", 0);
    ev->parent = (int)dt_json_int(o, "parent", 0);
    ev->instead = (int)dt_json_int(o, "instead", 0);
    ev->config = json_object_get(dt_json_get(o, "config"));
    ev->ask = json_object_get(dt_json_get(o, "ask"));
    ev->text = text ? dt_xstrdup(text) : NULL;
    ev->exit_code = (int)dt_json_int(o, "exit_code", 0);
    ev->signal = (int)dt_json_int(o, "signal", 0);
    ev->wait_s = dt_json_num(o, "wait_s", NAN);
    ev->startup_s = dt_json_num(o, "startup_s", NAN);
    ev->run_s = dt_json_num(o, "run_s", NAN);
    ev->billing = dt_json_num(o, "billing", NAN);
    ev->nodes = dt_json_num(o, "nodes", NAN);
    ev->step = dt_json_num(o, "step", NAN);
    ev->value = dt_json_num(o, "value", NAN);
    ev->count = dt_json_int(o, "count", 0);
    ev->read = dt_json_int(o, "read", 0);
    ev->note = note ? dt_xstrdup(note) : NULL;
    bool open = json_object_object_get_ex(o, "until", NULL) && !dt_json_get(o, "until");
    ev->until = open ? INFINITY : dt_json_num(o, "until", 0);
    ev->interrupted = dt_json_bool(o, "interrupted", false);
    ev->foreign = dt_json_bool(o, "foreign", false);
    if (k == DT_EVENT_USAGE)
        read_usage(o, ev);
    return 0;
}

void dt_event_free(struct dt_event *ev)
{
    json_object_put(ev->config);
    json_object_put(ev->ask);
    free(ev->text);
    free(ev->note);
    ev->config = ev->ask = NULL;
    ev->text = ev->note = NULL;
}
