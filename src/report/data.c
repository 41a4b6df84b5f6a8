#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_number(struct json_object *o, const char *key, double x)
{
    json_object_object_add(o, key, isfinite(x) ? dt_json_number(x) : NULL);
}

/* Its runs before the last one that told how far they were. */
static struct json_object *parts_json(const struct dt_study *s, const struct dt_trial *t)
{
    struct json_object *list = json_object_new_array();
    for (size_t i = 0; i < t->nparts; i++) {
        const struct dt_part *p = &t->parts[i];
        struct json_object *o = json_object_new_object();
        json_object_object_add(o, "run", json_object_new_int(p->run));
        json_object_object_add(o, "config", dt_config_to_json(s->space, p->x));
        json_object_object_add(o, "reallocated", json_object_new_boolean(p->moved));
        add_number(o, "from", p->from);
        add_number(o, "to", p->to);
        add_number(o, "pace_s", p->pace);
        add_number(o, "value", dt_trial_worth(s, t, p));
        add_number(o, "checkpoint_s", p->checkpoint_s);
        add_number(o, "run_s", p->run_s);
        json_object_array_add(list, o);
    }
    return list;
}

static struct json_object *trial_json(const struct dt_study *s, const struct dt_trial *t)
{
    struct json_object *o = json_object_new_object(), *metrics = json_object_new_object();
    json_object_object_add(o, "trial", json_object_new_int(t->id));
    json_object_object_add(o, "config", dt_config_to_json(s->space, t->x));
    json_object_object_add(o, "why", json_object_new_string(t->why));
    if (t->again)
        json_object_object_add(o, "again", json_object_new_int(t->again));
    if (t->parent) {
        json_object_object_add(o, "parent", json_object_new_int(t->parent));
        json_object_object_add(o, "instead", json_object_new_int(t->instead));
        add_number(o, "from_step", t->from);
    }
    if (!dt_space_is_full(s->space, t->x))
        json_object_object_add(o, "cheap", json_object_new_boolean(true));
    json_object_object_add(o, "status", json_object_new_string(dt_status_names[t->status]));
    json_object_object_add(
        o, "cause",
        t->state == DT_TRIAL_ENDED ? json_object_new_string(dt_cause_names[t->cause]) : NULL);
    add_number(o, "value", t->value);
    add_number(o, "queue_s", t->wait_s);
    add_number(o, "startup_s", t->startup_s);
    add_number(o, "run_s", t->run_s);
    add_number(o, "billing", t->billing);
    add_number(o, "nodes", t->nodes);
    json_object_object_add(o, "runs", json_object_new_int(t->run));
    json_object_object_add(o, "job", json_object_new_int64(t->job));
    if (t->nparts)
        json_object_object_add(o, "parts", parts_json(s, t));
    for (size_t i = 0; i < t->nmetrics; i++)
        add_number(metrics, t->metrics[i].name, t->metrics[i].last);
    json_object_object_add(o, "metrics", metrics);
    if (t->usage.n)
        json_object_object_add(o, "usage", dt_report_usage_json(t));
    if (t->text)
        json_object_object_add(o, "text", json_object_new_string(t->text));
    if (t->note)
        json_object_object_add(o, "note", json_object_new_string(t->note));
    return o;
}

/* A trial that stands for its configuration. */
static struct json_object *standing_json(const struct dt_study *s, const struct dt_trial *t)
{
    struct json_object *o = trial_json(s, t);
    int n;
    double mean = dt_study_mean(s, t, &n);
    add_number(o, "mean", mean);
    json_object_object_add(o, "measurements", json_object_new_int(n));
    return o;
}

static struct json_object *front_json(const struct dt_study *s)
{
    struct json_object *list = json_object_new_array();
    size_t n;
    struct dt_merit *front = dt_report_front(s, &n);
    for (size_t i = 0; i < n; i++) {
        struct json_object *o = json_object_new_object();
        json_object_object_add(o, "trial", json_object_new_int(front[i].t->id));
        add_number(o, "run_s", front[i].time);
        add_number(o, "billed_s", front[i].cost);
        add_number(o, "quality", front[i].quality);
        json_object_array_add(list, o);
    }
    free(front);
    return list;
}

struct json_object *dt_report_schedule(const struct dt_study *s)
{
    const struct dt_trial *best = dt_study_best(s);
    size_t n = 0;
    struct dt_stage *stages = best ? dt_study_schedule(s, best, &n) : NULL;
    struct json_object *list = n > 1 ? json_object_new_array() : NULL;
    for (size_t i = 0; i < n && n > 1; i++) {
        struct json_object *o = json_object_new_object();
        add_number(o, "from_step", stages[i].from);
        json_object_object_add(o, "trial", json_object_new_int(stages[i].t->id));
        json_object_object_add(o, "config", dt_report_config(s->space, stages[i].t->x));
        json_object_array_add(list, o);
    }
    free(stages);
    return list;
}

static double gain(const struct dt_study *s, const struct dt_trial *best)
{
    int n;
    double before = dt_study_before(s),
           now = best ? dt_study_mean(s, best, &n) : NAN;
    return s->spec->maximize ? now / before : before / now;
}

static struct json_object *thrift_json(const struct dt_study *s)
{
    struct json_object *o = json_object_new_object();
    struct dt_thrift t = dt_report_thrift(s);
    json_object_object_add(o, "trials", json_object_new_int64((int64_t)t.trials));
    add_number(o, "run_s", t.run_s);
    add_number(o, "node_hours", t.node_s / 3600);
    json_object_object_add(o, "spared", json_object_new_int64((int64_t)t.spared));
    add_number(o, "spared_run_s", t.spared_run_s);
    add_number(o, "spared_node_hours", t.spared_node_s / 3600);
    return o;
}

struct json_object *dt_report_json(const struct dt_study *s, const char *name)
{
    struct json_object *o = json_object_new_object(), *trials = json_object_new_array();
    const struct dt_trial *best = dt_study_best(s), *base = dt_study_baseline(s);
    char *objective = dt_spec_objective_text(s->spec);
    struct dt_cost spent = dt_study_cost(s);
    for (size_t i = 0; i < s->n; i++)
        json_object_array_add(trials, trial_json(s, &s->trials[i]));
    struct json_object *cost = json_object_new_object();
    json_object_object_add(cost, "trials", json_object_new_int64((int64_t)s->n));
    add_number(cost, "elapsed_s", dt_study_elapsed(s));
    add_number(cost, "run_s", spent.run_s);
    add_number(cost, "queue_s", spent.wait_s);
    add_number(cost, "billed_s", spent.billed_s);
    add_number(cost, "node_hours", spent.node_s / 3600);
    if (dt_space_fidelity(s->space) >= 0)
        json_object_object_add(cost, "cheap", thrift_json(s));
    json_object_object_add(o, "version", json_object_new_int(1));
    json_object_object_add(o, "study", json_object_new_string(name));
    json_object_object_add(o, "objective", json_object_new_string(objective));
    json_object_object_add(o, "goal",
                           json_object_new_string(s->spec->maximize ? "maximize" : "minimize"));
    json_object_object_add(o, "complete", json_object_new_boolean(s->complete));
    json_object_object_add(o, "stop_reason",
                           s->stop_reason ? json_object_new_string(s->stop_reason) : NULL);
    json_object_object_add(o, "best", best ? standing_json(s, best) : NULL);
    json_object_object_add(o, "schedule", dt_report_schedule(s));
    json_object_object_add(o, "submitted", base ? standing_json(s, base) : NULL);
    add_number(o, "gain", gain(s, best));
    json_object_object_add(o, "front", front_json(s));
    json_object_object_add(o, "cost", cost);
    json_object_object_add(o, "trials", trials);
    free(objective);
    return o;
}

static void print_cell(FILE *f, const char *text)
{
    bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    fputs(quoted ? ",\"" : ",", f);
    for (; *text; text++)
        fprintf(f, *text == '"' ? "\"\"" : "%c", *text);
    if (quoted)
        fputc('"', f);
}

void dt_report_csv(FILE *f, const struct dt_study *s)
{
    fputs("trial", f);
    for (size_t i = 0; i < s->space->n; i++)
        fprintf(f, ",%s", s->space->params[i].name);
    fputs(",again,status,cause,value,queue_s,startup_s,run_s,billing,nodes\n", f);
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_trial *t = &s->trials[i];
        const double numbers[] = {t->value, t->wait_s,  t->startup_s,
                                  t->run_s, t->billing, t->nodes};
        fprintf(f, "%d", t->id);
        for (size_t j = 0; j < s->space->n; j++) {
            char *text =
                isnan(t->x[j]) ? dt_xstrdup("") : dt_param_text(&s->space->params[j], t->x[j]);
            print_cell(f, text);
            free(text);
        }
        if (t->again)
            fprintf(f, ",%d", t->again);
        else
            fputc(',', f);
        fprintf(f, ",%s,%s", dt_status_names[t->status],
                t->state == DT_TRIAL_ENDED ? dt_cause_names[t->cause] : "");
        for (size_t j = 0; j < sizeof(numbers) / sizeof(*numbers); j++) {
            char *text = isfinite(numbers[j]) ? dt_format_double(numbers[j]) : dt_xstrdup("");
            fprintf(f, ",%s", text);
            free(text);
        }
        fputc('\n', f);
    }
}
