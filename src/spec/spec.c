#include "spec/spec_private.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define HISTORY_KEY_MAX 200
#define MONITOR_PERIOD 10.0
#define MONITOR_PERIOD_MIN 0.1
#define MONITOR_PERIOD_MAX 3600.0

static int parse_goal(const struct dt_place *p, struct json_object *o, bool *maximize,
                      struct dt_error *e)
{
    char *goal = NULL;
    struct dt_place q = dt_spec_under(p, "goal");
    if (dt_spec_get_string(p, o, "goal", &goal, e) < 0)
        return -1;
    int rc = 0;
    if (goal && strcmp(goal, "maximize") == 0)
        *maximize = true;
    else if (goal && strcmp(goal, "minimize") == 0)
        *maximize = false;
    else if (goal)
        rc = dt_spec_fail(&q, e, "\"%s\" is not a goal; minimize or maximize", goal);
    free(goal);
    return rc;
}

static int parse_objective(struct dt_spec *s, const struct dt_place *top, struct json_object *o,
                           struct dt_error *e)
{
    static const char *const keys[] = {"metric", "goal"};
    static const struct {
        const char *name;
        enum dt_objective_kind kind;
    } kinds[] = {{"time", DT_OBJECTIVE_TIME},
                 {"turnaround", DT_OBJECTIVE_TURNAROUND},
                 {"cost", DT_OBJECTIVE_COST},
                 {"throughput", DT_OBJECTIVE_THROUGHPUT}};
    struct dt_place p = dt_spec_under(top, "objective");
    if (!o)
        return 0;
    if (dt_spec_check_keys(&p, o, keys, COUNT(keys), e) < 0 ||
        dt_spec_get_string(&p, o, "metric", &s->metric, e) < 0)
        return -1;
    if (!s->metric)
        return dt_spec_fail(
            &p, e, "\"metric\" is missing: time, throughput, cost, turnaround or a metric's name");
    s->objective = DT_OBJECTIVE_METRIC;
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (strcmp(s->metric, kinds[i].name) == 0)
            s->objective = kinds[i].kind;
    s->maximize = s->objective == DT_OBJECTIVE_THROUGHPUT;
    bool fixed = s->maximize;
    if (parse_goal(&p, o, &s->maximize, e) < 0)
        return -1;
    struct dt_place q = dt_spec_under(&p, "goal");
    if (s->objective == DT_OBJECTIVE_METRIC && !dt_json_get(o, "goal"))
        return dt_spec_fail(&p, e, "\"goal\" is missing: should %s be minimized or maximized?",
                            s->metric);
    if (s->objective != DT_OBJECTIVE_METRIC && s->maximize != fixed)
        return dt_spec_fail(&q, e, "%s can only be %s", s->metric,
                            fixed ? "maximized" : "minimized");
    return 0;
}

double dt_bound_margin(const struct dt_bound *b, double x)
{
    return b->at_least ? x - b->value : b->value - x;
}

static int parse_bound(struct dt_bound *b, const struct dt_place *top, const char *name,
                       struct json_object *json, struct dt_error *e)
{
    static const char *const keys[] = {"metric", "at_least", "at_most"};
    struct dt_place p = dt_spec_under(top, name);
    struct json_object *o = dt_json_get(json, name);
    if (!o)
        return 0;
    if (dt_spec_check_keys(&p, o, keys, COUNT(keys), e) < 0 ||
        dt_spec_get_string(&p, o, "metric", &b->metric, e) < 0)
        return -1;
    struct json_object *least = dt_json_get(o, "at_least"), *most = dt_json_get(o, "at_most");
    if (!b->metric || !least == !most)
        return dt_spec_fail(&p, e, "\"metric\" and one of \"at_least\" and \"at_most\" are needed");
    b->at_least = least != NULL;
    struct dt_place q = dt_spec_under(&p, least ? "at_least" : "at_most");
    if (dt_spec_want(&q, least ? least : most, json_type_double, "a number", e) < 0)
        return -1;
    b->value = json_object_get_double(least ? least : most);
    return isfinite(b->value) ? 0 : dt_spec_fail(&q, e, "a finite number is needed here");
}

static int parse_deadline(struct dt_spec *s, const struct dt_place *p, struct json_object *o,
                          struct dt_error *e)
{
    struct dt_place q = dt_spec_under(p, "deadline");
    char *deadline = NULL;
    int rc = dt_spec_get_string(p, o, "deadline", &deadline, e);
    if (deadline && (dt_parse_time(deadline, &s->deadline) < 0 || s->deadline <= 0))
        rc = dt_spec_fail(
            &q, e,
            "\"%s\" is not a time; write it as Slurm does: \"90\" (minutes), \"1:30:00\", \"1-12\"",
            deadline);
    free(deadline);
    return rc;
}

static int parse_algorithm(struct dt_spec *s, const struct dt_place *p, struct json_object *o,
                           struct dt_error *e)
{
    static const char *const algorithms[] = {"auto", "bayes", "joint", "random", "sobol", "grid"};
    struct dt_place q = dt_spec_under(p, "algorithm");
    if (dt_spec_get_string(p, o, "algorithm", &s->algorithm, e) < 0)
        return -1;
    for (size_t i = 0; i < COUNT(algorithms); i++)
        if (strcmp(s->algorithm, algorithms[i]) == 0)
            return 0;
    if (strcmp(s->algorithm, "external") == 0)
        return dt_spec_fail(&q, e, "\"external\" needs a program that chooses the hyperparameters; "
                                   "start the study by dt-tune serve");
    const char *near = dt_nearest(s->algorithm, algorithms, COUNT(algorithms));
    return dt_spec_fail(&q, e, "\"%s\" is not an algorithm; %s%s", s->algorithm,
                        near ? "did you mean " : "there are auto, bayes, joint, random, sobol and ",
                        near ? near : "grid");
}

int dt_spec_get_number(const struct dt_place *p, struct json_object *o, const char *key,
                       const char *word, double *x, struct dt_error *e)
{
    struct dt_place q = dt_spec_under(p, key);
    struct json_object *v = dt_json_get(o, key);
    if (v && dt_spec_want(&q, v, json_type_double, word, e) < 0)
        return -1;
    double given = v ? json_object_get_double(v) : 0;
    if (!isfinite(given))
        return dt_spec_fail(&q, e, "a finite number is needed here");
    if (v)
        *x = given;
    return 0;
}

/* What population-based training needs beyond its own keys. */
static int check_population(const struct dt_spec *s, const struct dt_place *p, struct dt_error *e)
{
    const struct dt_pruner *r = &s->pruner;
    size_t hyper = 0;
    for (size_t i = 0; i < s->nparams; i++)
        hyper += s->params[i].hyper;
    if (s->objective != DT_OBJECTIVE_METRIC)
        return dt_spec_fail(p, e, "pbt compares trials by the metric that is the objective; give one: "
                                  "min:METRIC or max:METRIC");
    if (!(r->interval > 0))
        return dt_spec_fail(p, e, "\"interval\" is missing: after how many steps, again and again, "
                                  "the worst trials go on from the best");
    if (!(r->quantile > 0 && r->quantile <= 0.5))
        return dt_spec_fail(p, e, "\"quantile\" must be above 0 and at most 0.5");
    if (!(r->resample >= 0 && r->resample <= 1))
        return dt_spec_fail(p, e, "\"resample\" must be between 0 and 1");
    if (!hyper)
        return dt_spec_fail(p, e, "pbt changes hyperparameters, and there are none");
    if (s->candidates)
        return dt_spec_fail(p, e, "pbt changes hyperparameters freely and cannot keep to "
                                  "\"candidates\"; use constraints");
    if (s->parallel < 2)
        return dt_spec_fail(p, e, "the population are the trials at once: let \"parallel\" be 2 at "
                                  "least (4 to 20 are usual)");
    return 0;
}

/* "asha", or {"rule": "asha", "min_step": 1, ...} */
static int parse_early_stop(struct dt_spec *s, const struct dt_place *top,
                            struct json_object *search, struct dt_error *e)
{
    static const char *const keys[] = {"rule",    "min_step", "max_step", "reduction",
                                       "startup", "interval", "quantile", "resample"};
    static const char *const rules[] = {"none", "median", "asha", "hyperband", "pbt"};
    struct dt_place p = dt_spec_under(top, "early_stop");
    struct json_object *o = dt_json_get(search, "early_stop");
    struct dt_pruner *r = &s->pruner;
    bool brief = json_object_is_type(o, json_type_string);
    if (!o)
        return 0;
    if (!brief && (dt_spec_check_keys(&p, o, keys, COUNT(keys), e) < 0 ||
                   dt_spec_get_number(&p, o, "min_step", "a number of steps", &r->min_step, e) < 0 ||
                   dt_spec_get_number(&p, o, "max_step", "a number of steps", &r->max_step, e) < 0 ||
                   dt_spec_get_number(&p, o, "reduction", "a number", &r->reduction, e) < 0 ||
                   dt_spec_get_number(&p, o, "interval", "a number of steps", &r->interval, e) < 0 ||
                   dt_spec_get_number(&p, o, "quantile", "a number", &r->quantile, e) < 0 ||
                   dt_spec_get_number(&p, o, "resample", "a number", &r->resample, e) < 0 ||
                   dt_spec_get_size(&p, o, "startup", 1, &r->startup, e) < 0))
        return -1;
    const char *rule = brief ? json_object_get_string(o) : dt_json_str(o, "rule", "");
    int found = -1;
    for (int i = 0; i < (int)COUNT(rules); i++)
        if (strcmp(rule, rules[i]) == 0)
            found = i;
    if (found < 0)
        return dt_spec_fail(&p, e, "a rule is needed: none, median, asha, hyperband or pbt");
    r->rule = (enum dt_prune_rule)found;
    if (!(r->min_step >= 0) || !(r->max_step >= 0) || !(r->reduction > 1))
        return dt_spec_fail(&p, e, "no step may be below 0, and \"reduction\" must be above 1");
    if (r->max_step > 0 && r->min_step >= r->max_step)
        return dt_spec_fail(&p, e, "\"min_step\" must be below \"max_step\"");
    bool replay = dt_json_get(s->json, "replay") != NULL; /* which brings its own objective */
    if (r->rule && s->objective != DT_OBJECTIVE_METRIC && !replay)
        return dt_spec_fail(&p, e,
                            "trials are stopped early by the metric that is the objective; give "
                            "one: min:METRIC or max:METRIC");
    return r->rule == DT_PRUNE_PBT ? check_population(s, &p, e) : 0;
}

/* "auto" depends on the layout, which is read later; until then it is 0. */
static int parse_parallel(struct dt_spec *s, const struct dt_place *search, struct json_object *o,
                          struct dt_error *e)
{
    if (strcmp(dt_json_str(o, "parallel", ""), "auto") == 0)
        return 0;
    return dt_spec_get_size(search, o, "parallel", 1, &s->parallel, e);
}

static int parse_search(struct dt_spec *s, const struct dt_place *top, struct json_object *o,
                        struct dt_error *e)
{
    static const char *const keys[] = {
        "algorithm", "seed",        "max_configs",  "min_configs", "min_improve",
        "window",    "repeats",     "max_failures", "parallel",    "max_node_hours",
        "deadline",  "grid_levels", "early_stop"};
    struct dt_place p = dt_spec_under(top, "search"), q;
    size_t seed = (size_t)s->seed;
    double improve = 100 * s->min_improve;
    if (!o)
        return 0;
    if (dt_spec_check_keys(&p, o, keys, COUNT(keys), e) < 0 || parse_algorithm(s, &p, o, e) < 0 ||
        dt_spec_get_size(&p, o, "seed", 0, &seed, e) < 0 ||
        dt_spec_get_size(&p, o, "max_configs", 1, &s->max_configs, e) < 0 ||
        dt_spec_get_size(&p, o, "min_configs", 1, &s->min_configs, e) < 0 ||
        dt_spec_get_size(&p, o, "window", 1, &s->window, e) < 0 ||
        dt_spec_get_size(&p, o, "repeats", 0, &s->repeats, e) < 0 ||
        dt_spec_get_size(&p, o, "max_failures", 1, &s->max_failures, e) < 0 ||
        parse_parallel(s, &p, o, e) < 0 ||
        dt_spec_get_size(&p, o, "grid_levels", 2, &s->grid_levels, e) < 0 ||
        dt_spec_get_number(&p, o, "min_improve", "a number of per cent", &improve, e) < 0 ||
        dt_spec_get_number(&p, o, "max_node_hours", "a number of hours", &s->max_node_hours, e) < 0 ||
        parse_early_stop(s, &p, o, e) < 0 || parse_deadline(s, &p, o, e) < 0)
        return -1;
    s->seed = seed;
    s->min_improve = improve / 100;
    q = dt_spec_under(&p, "min_improve");
    if (!(s->min_improve >= 0 && s->min_improve <= 1))
        return dt_spec_fail(&q, e, "per cent between 0 and 100 are needed here");
    q = dt_spec_under(&p, "max_node_hours");
    if (!(s->max_node_hours > 0))
        return dt_spec_fail(&q, e, "a number of hours above 0 is needed here");
    return 0;
}

static int parse_layout(struct dt_spec *s, const struct dt_place *top, struct json_object *json,
                        struct dt_error *e)
{
    static const char *const names[] = {"auto", "het", "packed", "steps"};
    char *layout = NULL;
    struct dt_place p = dt_spec_under(top, "layout");
    if (dt_spec_get_string(top, json, "layout", &layout, e) < 0)
        return -1;
    if (!layout)
        return 0;
    int found = -1;
    for (int i = 0; i < (int)COUNT(names); i++)
        if (strcmp(layout, names[i]) == 0)
            found = i;
    int rc = 0;
    if (found < 0)
        rc = dt_spec_fail(&p, e, "\"%s\" is not a layout; there are auto, het, packed and steps",
                          layout);
    else
        s->layout = (enum dt_layout_choice)found;
    free(layout);
    return rc;
}

/* Every key must be a parameter, every value a column's name. */
static int parse_map(const struct dt_spec *s, const struct dt_place *p, struct json_object *map,
                     struct dt_error *e)
{
    const char **names = dt_xcalloc(s->nparams, sizeof(*names));
    for (size_t i = 0; i < s->nparams; i++)
        names[i] = s->params[i].name;
    int rc = dt_spec_check_keys(p, map, names, s->nparams, e);
    free(names);
    if (rc < 0)
        return -1;
    json_object_object_foreach(map, key, column)
    {
        struct dt_place q = dt_spec_under(p, key);
        if (dt_spec_want(&q, column, json_type_string, "the name of a column", e) < 0)
            return -1;
    }
    return 0;
}

static int parse_where(struct dt_replay_spec *r, const struct dt_place *p,
                       struct json_object *where, struct dt_error *e)
{
    if (dt_spec_want(p, where, json_type_object, "an object", e) < 0)
        return -1;
    json_object_object_foreach(where, key, value)
    {
        struct dt_place q = dt_spec_under(p, key);
        json_type type = json_object_get_type(value);
        if (type != json_type_string && type != json_type_int && type != json_type_double)
            return dt_spec_fail(&q, e, "a string or a number is needed here, this is %s",
                                dt_spec_type_word(value));
        dt_strv_add(&r->where_columns, key);
        dt_strv_add(&r->where_values, json_object_get_string(value));
    }
    return 0;
}

/* {"ps_cpu": "ps_cpu_mean", "worker_cpu": "worker_cpu_mean", "of": 2} */
static int parse_replay_usage(struct dt_replay_spec *r, const struct dt_place *top,
                              struct json_object *o, struct dt_error *e)
{
    static const char *const keys[] = {"ps_cpu", "worker_cpu", "of"};
    struct dt_place p = dt_spec_under(top, "usage"), q = dt_spec_under(&p, "of");
    r->usage = o != NULL;
    if (!o)
        return 0;
    if (dt_spec_check_keys(&p, o, keys, COUNT(keys), e) < 0 ||
        dt_spec_get_string(&p, o, "ps_cpu", &r->ps_cpu, e) < 0 ||
        dt_spec_get_string(&p, o, "worker_cpu", &r->worker_cpu, e) < 0 ||
        dt_spec_get_number(&p, o, "of", "a number", &r->all_busy, e) < 0)
        return -1;
    return r->all_busy > 0 ? 0 : dt_spec_fail(&q, e, "what stands for 100 %% must be above 0");
}

/* What running trials are re-allocated by, where they are. */
static int parse_moves(struct dt_replay_spec *r, const struct dt_place *p, struct json_object *o,
                       struct dt_error *e)
{
    struct dt_place q = dt_spec_under(p, "restart_s"), first = dt_spec_under(p, "submitted");
    r->all_busy = 1;
    r->submitted = dt_json_get(o, "submitted");
    if (parse_replay_usage(r, p, dt_json_get(o, "usage"), e) < 0 ||
        dt_spec_get_number(p, o, "restart_s", "a number of seconds", &r->restart, e) < 0)
        return -1;
    if (!(r->restart >= 0))
        return dt_spec_fail(&q, e, "it may not be below 0");
    return r->submitted ? dt_spec_want(&first, r->submitted, json_type_object, "an object", e) : 0;
}

static int parse_replay(struct dt_spec *s, const struct dt_place *top, struct json_object *o,
                        struct dt_error *e)
{
    static const char *const keys[] = {"map",   "where",     "objective", "goal", "duration",
                                       "nodes", "status",    "quality",   "step", "ok",
                                       "usage", "restart_s", "submitted"};
    struct dt_replay_spec *r = &s->replay;
    struct dt_place p = dt_spec_under(top, "replay"), q;
    if (!o)
        return 0;
    if (dt_spec_check_keys(&p, o, keys, COUNT(keys), e) < 0 ||
        dt_spec_get_string(&p, o, "objective", &r->objective, e) < 0 ||
        dt_spec_get_string(&p, o, "duration", &r->duration, e) < 0 ||
        dt_spec_get_string(&p, o, "nodes", &r->nodes, e) < 0 ||
        dt_spec_get_string(&p, o, "status", &r->status, e) < 0 ||
        dt_spec_get_string(&p, o, "quality", &r->quality, e) < 0 ||
        dt_spec_get_string(&p, o, "step", &r->step, e) < 0 ||
        dt_spec_get_strings(&p, o, "ok", &r->ok, e) < 0 || parse_moves(r, &p, o, e) < 0)
        return -1;
    if (!r->objective)
        return dt_spec_fail(
            &p, e, "\"objective\" is missing: the column that is to be minimized or maximized");
    if (parse_goal(&p, o, &r->maximize, e) < 0)
        return -1;
    struct json_object *map = dt_json_get(o, "map"), *where = dt_json_get(o, "where");
    q = dt_spec_under(&p, "map");
    if (map && parse_map(s, &q, map, e) < 0)
        return -1;
    for (size_t i = 0; i < s->nparams; i++) {
        const char *column = dt_json_str(map, s->params[i].name, s->params[i].name);
        dt_strv_add(&r->params, s->params[i].name);
        dt_strv_add(&r->columns, column);
    }
    q = dt_spec_under(&p, "where");
    return where ? parse_where(r, &q, where, e) : 0;
}

/* false, or {"key": "resnet-on-imagenet", "from": ["123", ...]} */
static int parse_history(struct dt_spec *s, const struct dt_place *top, struct json_object *o,
                         struct dt_error *e)
{
    static const char *const keys[] = {"key", "from"};
    struct dt_place p = dt_spec_under(top, "history"), q = dt_spec_under(&p, "key");
    if (!o)
        return 0;
    if (json_object_is_type(o, json_type_boolean)) {
        s->no_history = !json_object_get_boolean(o);
        return 0;
    }
    if (!json_object_is_type(o, json_type_object))
        return dt_spec_fail(&p, e, "false or an object like {\"key\": \"my-model\"} is needed here, "
                                   "this is %s", dt_spec_type_word(o));
    if (dt_spec_check_keys(&p, o, keys, COUNT(keys), e) < 0 ||
        dt_spec_get_string(&p, o, "key", &s->history_key, e) < 0 ||
        dt_spec_get_strings(&p, o, "from", &s->history_from, e) < 0)
        return -1;
    for (const char *c = s->history_key; c && *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return dt_spec_fail(&q, e, "a key cannot have a control character (code %d)", *c);
    if (s->history_key && strlen(s->history_key) > HISTORY_KEY_MAX)
        return dt_spec_fail(&q, e, "a key may be %d bytes long", HISTORY_KEY_MAX);
    return 0;
}

static int parse_source(struct dt_spec *s, const struct dt_place *p, struct json_object *o,
                        struct dt_error *e)
{
    static const char *const sources[] = {"auto", "agent", "slurm"};
    struct dt_place q = dt_spec_under(p, "source");
    char *source = NULL;
    int found = -1;
    if (dt_spec_get_string(p, o, "source", &source, e) < 0)
        return -1;
    for (int i = 0; source && i < (int)COUNT(sources); i++)
        found = strcmp(source, sources[i]) == 0 ? i : found;
    int rc =
        source && found < 0
            ? dt_spec_fail(&q, e, "\"%s\" is not a source; there are auto, agent and slurm", source)
            : 0;
    s->monitor_source = found < 0 ? DT_MONITOR_AUTO : (enum dt_monitor_source)found;
    free(source);
    return rc;
}

/* false, or {"period_s": 30, "source": "auto"} */
static int parse_monitor(struct dt_spec *s, const struct dt_place *top, struct json_object *o,
                         struct dt_error *e)
{
    static const char *const keys[] = {"period_s", "source"};
    struct dt_place p = dt_spec_under(top, "monitor"), q = dt_spec_under(&p, "period_s");
    if (!o)
        return 0;
    if (json_object_is_type(o, json_type_boolean)) {
        s->monitor_period = json_object_get_boolean(o) ? MONITOR_PERIOD : 0;
        return 0;
    }
    if (!json_object_is_type(o, json_type_object))
        return dt_spec_fail(&p, e, "false or an object like {\"period_s\": 10} is needed here, this "
                                   "is %s", dt_spec_type_word(o));
    if (dt_spec_check_keys(&p, o, keys, COUNT(keys), e) < 0 ||
        dt_spec_get_number(&p, o, "period_s", "a number of seconds", &s->monitor_period, e) < 0 ||
        parse_source(s, &p, o, e) < 0)
        return -1;
    if (!(s->monitor_period >= MONITOR_PERIOD_MIN && s->monitor_period <= MONITOR_PERIOD_MAX))
        return dt_spec_fail(&q, e, "seconds between %g and %g are needed here; to switch the monitor "
                                   "off, write \"monitor\": false",
                            MONITOR_PERIOD_MIN, MONITOR_PERIOD_MAX);
    return 0;
}

/* {"bind": "auto" | "none", "topology": "/a/folder"} */
static int parse_placement(struct dt_spec *s, const struct dt_place *top, struct json_object *o,
                           struct dt_error *e)
{
    static const char *const keys[] = {"bind", "topology"};
    struct dt_place p = dt_spec_under(top, "placement"), q = dt_spec_under(&p, "bind"),
                    r = dt_spec_under(&p, "topology");
    char *bind = NULL;
    if (!o)
        return 0;
    if (dt_spec_check_keys(&p, o, keys, COUNT(keys), e) < 0 ||
        dt_spec_get_string(&p, o, "bind", &bind, e) < 0 ||
        dt_spec_get_string(&p, o, "topology", &s->topology, e) < 0) {
        free(bind);
        return -1;
    }
    int rc = 0;
    s->no_bind = bind && strcmp(bind, "none") == 0;
    if (bind && !s->no_bind && strcmp(bind, "auto") != 0)
        rc = dt_spec_fail(&q, e, "\"%s\" is not a way to bind tasks; auto or none", bind);
    else if (s->topology && s->topology[0] != '/')
        rc = dt_spec_fail(&r, e,
                          "an absolute path is needed here: tasks look for it on their nodes");
    free(bind);
    return rc;
}

/* {"coordinator": "chief"} */
static int parse_launch(struct dt_spec *s, const struct dt_place *top, struct json_object *o,
                        struct dt_error *e)
{
    static const char *const keys[] = {"coordinator"};
    struct dt_place p = dt_spec_under(top, "launch"), q = dt_spec_under(&p, "coordinator");
    if (!o)
        return 0;
    if (!json_object_is_type(o, json_type_object))
        return dt_spec_fail(&p, e, "an object like {\"coordinator\": \"chief\"} is needed here, this "
                                   "is %s", dt_spec_type_word(o));
    if (dt_spec_check_keys(&p, o, keys, COUNT(keys), e) < 0 ||
        dt_spec_get_string(&p, o, "coordinator", &s->coordinator, e) < 0)
        return -1;
    if (s->coordinator && strcmp(s->coordinator, "chief") != 0 &&
        strcmp(s->coordinator, "scheduler") != 0)
        return dt_spec_fail(&q, e, "\"%s\" is not a coordinator; there are chief (TensorFlow) and "
                                   "scheduler (MXNet, BytePS)", s->coordinator);
    return 0;
}

/* Where a section stands in its file; NULL where there is no file. Caller frees. */
static char *place_of(const struct dt_place *top, const char *key)
{
    struct dt_buf b = DT_BUF_INIT;
    struct dt_place p = dt_spec_under(top, key);
    if (!top->text)
        return NULL;
    dt_spec_place_text(&p, &b);
    return dt_buf_take(&b);
}

/* What a fidelity does not go with. */
static int check_fidelity(const struct dt_spec *s, const struct dt_place *top, struct dt_error *e)
{
    struct dt_place search = dt_spec_under(top, "search"), q = dt_spec_under(&search, "algorithm"),
                    target = dt_spec_under(top, "target"),
                    stop = dt_spec_under(&search, "early_stop");
    for (size_t i = 0; i < s->nparams; i++) {
        if (!s->params[i].fidelity)
            continue;
        if (!dt_spec_has_model(s))
            return dt_spec_fail(&q, e,
                                "only a model learns from cheaper trials, and %s has none; "
                                "choose auto, or give %s its highest value alone",
                                s->algorithm, s->params[i].name);
        if (s->pruner.rule == DT_PRUNE_PBT)
            return dt_spec_fail(&stop, e, "a member of a population goes on with what another has "
                                          "learnt, at the same %s; give that one value",
                                s->params[i].name);
        if (s->target.metric)
            return dt_spec_fail(&target, e,
                                "a trial at less than the highest %s cannot be "
                                "expected to reach it; ask for it as a \"quality\"",
                                s->params[i].name);
    }
    return 0;
}

static int parse_all(struct dt_spec *s, const struct dt_place *top, struct dt_error *e)
{
    static const char *const keys[] = {
        "version", "dt",      "hyperparameters", "constraints", "candidates", "objective",
        "target",  "quality", "search",          "metrics",     "layout",     "replay",
        "history", "monitor", "reallocate",      "checkpoint",  "placement",  "launch"};
    struct json_object *json = s->json;
    struct dt_place q = dt_spec_under(top, "version");
    if (dt_spec_check_keys(top, json, keys, COUNT(keys), e) < 0)
        return -1;
    if (dt_json_get(json, "version") && dt_json_int(json, "version", 0) != 1)
        return dt_spec_fail(&q, e, "this dt-tune reads version 1");
    if (dt_spec_parse_params(s, top, dt_json_get(json, "dt"), "dt", false, e) < 0 ||
        dt_spec_parse_params(s, top, dt_json_get(json, "hyperparameters"), "hyperparameters", true,
                             e) < 0 ||
        dt_spec_get_strings(top, json, "constraints", &s->constraints, e) < 0 ||
        dt_spec_get_string(top, json, "candidates", &s->candidates, e) < 0 ||
        parse_objective(s, top, dt_json_get(json, "objective"), e) < 0 ||
        parse_bound(&s->target, top, "target", json, e) < 0 ||
        parse_bound(&s->quality, top, "quality", json, e) < 0 ||
        parse_search(s, top, dt_json_get(json, "search"), e) < 0 ||
        dt_spec_parse_metrics(s, top, dt_json_get(json, "metrics"), e) < 0 ||
        parse_layout(s, top, json, e) < 0 ||
        parse_replay(s, top, dt_json_get(json, "replay"), e) < 0 ||
        parse_history(s, top, dt_json_get(json, "history"), e) < 0 ||
        parse_launch(s, top, dt_json_get(json, "launch"), e) < 0 ||
        parse_monitor(s, top, dt_json_get(json, "monitor"), e) < 0 ||
        parse_placement(s, top, dt_json_get(json, "placement"), e) < 0 ||
        dt_spec_parse_reallocate(s, top, dt_json_get(json, "reallocate"), e) < 0 ||
        dt_spec_parse_checkpoint(s, top, dt_json_get(json, "checkpoint"), e) < 0 ||
        check_fidelity(s, top, e) < 0)
        return -1;
    s->constraints_place = place_of(top, "constraints");
    s->candidates_place = place_of(top, "candidates");
    return 0;
}

struct dt_spec *dt_spec_parse(struct json_object *json, const char *text, const char *name,
                              struct dt_error *e)
{
    struct dt_spec *s = dt_xcalloc(1, sizeof(*s));
    struct dt_place top = {.text = text, .name = name};
    s->json = json_object_get(json);
    s->algorithm = dt_xstrdup("auto");
    s->seed = 1;
    s->max_configs = 60;
    s->min_configs = 12;
    s->window = 5;
    s->max_failures = 3;
    s->grid_levels = 5;
    s->min_improve = 0.02;
    s->deadline = s->max_node_hours = INFINITY;
    s->repeats = 8;
    s->reallocate = (struct dt_reallocate){
        .allocator = DT_ALLOCATOR_INIT, .most = 3, .cooldown = 300};
    s->checkpoint = (struct dt_checkpoint){.signal = SIGUSR1, .grace = 60, .exit_code = 143};
    s->monitor_period = MONITOR_PERIOD;
    s->pruner = (struct dt_pruner){
        .reduction = 3, .startup = 5, .quantile = 0.25, .resample = 0.25};
    if (parse_all(s, &top, e) < 0) {
        dt_spec_free(s);
        return NULL;
    }
    if (!s->parallel)
        s->parallel = s->layout == DT_LAYOUT_STEPS ? SIZE_MAX : 1;
    return s;
}

struct dt_spec *dt_spec_read(const char *path, struct dt_error *e)
{
    char *text = dt_read_text(path, 1024 * 1024, e);
    if (!text)
        return NULL;
    struct json_object *json = dt_json_parse(text, path, e);
    struct dt_spec *s = json ? dt_spec_parse(json, text, path, e) : NULL;
    json_object_put(json);
    free(text);
    return s;
}

void dt_spec_free(struct dt_spec *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->nparams; i++)
        dt_param_free(&s->params[i]);
    json_object_put(s->json);
    free(s->params);
    free(s->submitted);
    dt_strv_free(&s->constraints);
    free(s->candidates);
    free(s->constraints_place);
    free(s->candidates_place);
    free(s->metric);
    free(s->target.metric);
    free(s->quality.metric);
    free(s->algorithm);
    free(s->history_key);
    free(s->coordinator);
    dt_strv_free(&s->history_from);
    dt_strv_free(&s->pattern_names);
    dt_strv_free(&s->patterns);
    free(s->step);
    free(s->topology);
    free(s->replay.objective);
    free(s->replay.duration);
    free(s->replay.nodes);
    free(s->replay.quality);
    free(s->replay.step);
    free(s->replay.status);
    free(s->replay.ps_cpu);
    free(s->replay.worker_cpu);
    dt_strv_free(&s->replay.params);
    dt_strv_free(&s->replay.columns);
    dt_strv_free(&s->replay.where_columns);
    dt_strv_free(&s->replay.where_values);
    dt_strv_free(&s->replay.ok);
    free(s);
}

bool dt_spec_has_model(const struct dt_spec *s)
{
    static const char *const models[] = {"auto", "bayes", "joint"};
    for (size_t i = 0; i < COUNT(models); i++)
        if (strcmp(s->algorithm, models[i]) == 0)
            return true;
    return false;
}

bool dt_spec_objective_is_time(const struct dt_spec *s)
{
    return s->objective == DT_OBJECTIVE_TIME || s->objective == DT_OBJECTIVE_COST ||
           s->objective == DT_OBJECTIVE_TURNAROUND;
}

char *dt_spec_objective_text(const struct dt_spec *s)
{
    if (s->objective == DT_OBJECTIVE_METRIC)
        return dt_xasprintf("%s:%s", s->maximize ? "max" : "min", s->metric);
    return dt_xstrdup(s->metric ? s->metric : "time");
}
