#include "report/report.h"

#include <math.h>

struct dt_chronicle dt_chronicle_new(void)
{
    return (struct dt_chronicle){json_object_new_array(), json_object_new_array(), NAN};
}

void dt_chronicle_free(struct dt_chronicle *c)
{
    json_object_put(c->runs);
    json_object_put(c->usage);
    c->runs = c->usage = NULL;
}

static void add_time(const struct dt_chronicle *c, struct json_object *o, const char *key, double t)
{
    json_object_object_add(o, key, dt_json_number(round(1000 * (t - c->start)) / 1000));
}

static struct json_object *add_run(struct json_object *list, int trial, int run)
{
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "trial", json_object_new_int(trial));
    json_object_object_add(o, "run", json_object_new_int(run));
    json_object_array_add(list, o);
    return o;
}

/* The trial's latest run, or NULL. */
static struct json_object *latest(const struct dt_chronicle *c, int trial)
{
    for (size_t i = dt_json_count(c->runs); i > 0; i--) {
        struct json_object *o = dt_json_at(c->runs, i - 1);
        if (dt_json_int(o, "trial", 0) == trial)
            return o;
    }
    return NULL;
}

static void add_usage(struct dt_chronicle *c, const struct dt_event *ev)
{
    struct json_object *o = add_run(c->usage, ev->trial, ev->run);
    json_object_object_add(o, "role", json_object_new_string(ev->text));
    add_time(c, o, "t", ev->t);
    json_object_object_add(o, "samples", json_object_new_int64(ev->usage.n));
    json_object_object_add(o, "levels", dt_usage_to_json(&ev->usage));
}

void dt_chronicle_apply(struct dt_chronicle *c, const struct dt_event *ev)
{
    struct json_object *o = latest(c, ev->trial);
    if (isnan(c->start))
        c->start = ev->t;
    switch (ev->kind) {
    case DT_EVENT_SUBMITTED:
        add_time(c, add_run(c->runs, ev->trial, ev->run), "submitted", ev->t);
        break;
    case DT_EVENT_STARTED:
        if (o)
            add_time(c, o, "started", ev->t);
        break;
    case DT_EVENT_ENDED:
        if (!o)
            break;
        add_time(c, o, "ended", ev->t);
        json_object_object_add(o, "cause", json_object_new_string(dt_cause_names[ev->cause]));
        break;
    case DT_EVENT_USAGE:
        add_usage(c, ev);
        break;
    default:
        break;
    }
}
