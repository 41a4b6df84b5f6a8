#include "history/history.h"
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_number(struct json_object *o, const char *key, double x)
{
    if (isfinite(x))
        json_object_object_add(o, key, dt_json_number(x));
}

static void add_string(struct json_object *o, const char *key, const char *value)
{
    if (value)
        json_object_object_add(o, key, json_object_new_string(value));
}

struct json_object *dt_report_config(const struct dt_space *s, const double *x)
{
    struct json_object *config = dt_config_to_json(s, x);
    for (size_t i = 0; i < s->n; i++)
        if (isnan(x[i]))
            json_object_object_del(config, s->params[i].name);
    return config;
}

struct json_object *dt_report_param(const struct dt_param *p)
{
    static const char *const types[] = {"int", "float", "categorical"};
    struct json_object *o = json_object_new_object(), *choices = NULL;
    add_string(o, "name", p->name);
    add_string(o, "type", types[p->kind]);
    json_object_object_add(o, "hyper", json_object_new_boolean(p->hyper));
    for (size_t i = 0; i < p->nvalues; i++) {
        if (!choices)
            json_object_object_add(o, "choices", choices = json_object_new_array());
        json_object_array_add(choices, p->labels ? json_object_new_string(p->labels[i])
                                                 : dt_json_number(p->values[i]));
    }
    if (!choices) {
        add_number(o, "low", p->low);
        add_number(o, "high", p->high);
        if (p->step > 0)
            add_number(o, "step", p->step);
    }
    if (p->log)
        json_object_object_add(o, "log", json_object_new_boolean(true));
    add_string(o, "when", p->when);
    return o;
}

/* One that teaches something; what is unknown is not in it. */
static struct json_object *observation_json(const struct dt_study *s, const struct dt_trial *t)
{
    struct json_object *o = json_object_new_object(), *metrics = json_object_new_object();
    json_object_object_add(o, "trial", json_object_new_int(t->id));
    json_object_object_add(o, "config", dt_config_to_json(s->space, t->x));
    add_number(o, "value", t->value);
    add_string(o, "status", dt_status_names[t->status]);
    add_number(o, "duration_s", dt_trial_time(s, t));
    add_number(o, "nodes", t->nodes);
    add_number(o, "margin", dt_trial_margin(s, t));
    for (size_t i = 0; i < t->nmetrics; i++)
        add_number(metrics, t->metrics[i].name, t->metrics[i].last);
    json_object_object_add(o, "metrics", metrics);
    if (t->usage.n)
        json_object_object_add(o, "usage", dt_report_usage_json(t));
    return o;
}

/* What the trial's earlier runs have shown of other configurations. */
static void add_parts(const struct dt_study *s, const struct dt_trial *t, struct json_object *list)
{
    for (size_t i = 0; i < t->nparts; i++) {
        struct dt_observation part;
        if (!dt_trial_observe_part(s, t, &t->parts[i], &part) || part.status != DT_STATUS_OK)
            continue;
        struct json_object *o = json_object_new_object();
        json_object_object_add(o, "trial", json_object_new_int(t->id));
        json_object_object_add(o, "config", dt_config_to_json(s->space, part.x));
        add_number(o, "value", part.value);
        add_string(o, "status", dt_status_names[part.status]);
        json_object_array_add(list, o);
    }
}

static struct json_object *best_json(const struct dt_study *s)
{
    const struct dt_trial *best = dt_study_best(s);
    if (!best)
        return NULL;
    struct json_object *o = json_object_new_object();
    double *x = dt_xcalloc(s->space->n, sizeof(double)), mean;
    int n;
    mean = dt_study_mean(s, best, &n);
    dt_study_pair(s, x);
    json_object_object_add(o, "trial", json_object_new_int(best->id));
    json_object_object_add(o, "config", dt_report_config(s->space, x));
    add_number(o, "value", mean);
    json_object_object_add(o, "measurements", json_object_new_int(n));
    struct json_object *schedule = dt_report_schedule(s);
    if (schedule)
        json_object_object_add(o, "schedule", schedule);
    free(x);
    return o;
}

struct json_object *dt_report_record(const struct dt_setup *setup, const struct dt_study *s,
                                     const char *name, const char *dir, double now)
{
    struct json_object *o = json_object_new_object(), *space = json_object_new_array(),
                       *list = json_object_new_array();
    struct dt_workload w;
    json_object_object_add(o, "version", json_object_new_int(1));
    json_object_object_add(o, "time", dt_json_number(now));
    add_string(o, "study", name);
    add_string(o, "dir", dir);
    add_string(o, "job_name", setup->job.name);
    dt_workload_make(&w, setup->spec, setup->script, &setup->submission->args);
    dt_workload_to_json(&w, setup->spec, &setup->submission->args, o);
    json_object_object_add(o, "complete", json_object_new_boolean(s->complete));
    add_string(o, "stop_reason", s->stop_reason);
    json_object_object_add(o, "trials", json_object_new_int64((int64_t)s->n));
    json_object_object_add(o, "best", best_json(s));
    for (size_t i = 0; i < s->space->n; i++)
        json_object_array_add(space, dt_report_param(&s->space->params[i]));
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_trial *t = &s->trials[i];
        /* what went on from another trial says nothing of its configuration from the beginning on */
        if (t->state == DT_TRIAL_ENDED && !t->parent && t->status != DT_STATUS_PENDING &&
            t->status != DT_STATUS_VOID)
            json_object_array_add(list, observation_json(s, t));
        add_parts(s, t, list);
    }
    json_object_object_add(o, "space", space);
    json_object_object_add(o, "observations", list);
    return o;
}
