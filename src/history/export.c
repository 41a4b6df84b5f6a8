/* A study's record in forms that other programs read. */
#include "history/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- CSV ---- */

static void print_cell(FILE *f, const char *text)
{
    bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    if (quoted)
        fputc('"', f);
    for (; *text; text++)
        fprintf(f, *text == '"' ? "\"\"" : "%c", *text);
    if (quoted)
        fputc('"', f);
}

static void print_value(FILE *f, struct json_object *v)
{
    char *text = !v                                         ? dt_xstrdup("")
                 : json_object_is_type(v, json_type_string) ? dt_xstrdup(json_object_get_string(v))
                                                            : dt_json_text(v);
    fputc(',', f);
    print_cell(f, text);
    free(text);
}

/* Names of all metrics, as they first come. */
static void metric_names(struct json_object *observations, struct dt_strv *names)
{
    for (size_t i = 0; i < dt_json_count(observations); i++) {
        struct json_object *metrics = dt_json_get(dt_json_at(observations, i), "metrics");
        if (!json_object_is_type(metrics, json_type_object))
            continue;
        json_object_object_foreach(metrics, name, value)
        {
            bool known = false;
            (void)value;
            for (size_t k = 0; k < names->n && !known; k++)
                known = strcmp(names->v[k], name) == 0;
            if (!known)
                dt_strv_add(names, name);
        }
    }
}

void dt_export_csv(FILE *f, struct json_object *record)
{
    static const char *const columns[] = {"status", "value", "duration_s", "nodes"};
    struct json_object *space = dt_json_get(record, "space"),
                       *list = dt_json_get(record, "observations");
    struct dt_strv metrics = DT_STRV_INIT;
    metric_names(list, &metrics);
    fputs("trial", f);
    for (size_t i = 0; i < dt_json_count(space); i++) {
        fputc(',', f);
        print_cell(f, dt_json_str(dt_json_at(space, i), "name", ""));
    }
    for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
        fprintf(f, ",%s", columns[i]);
    for (size_t i = 0; i < metrics.n; i++) {
        fputs(",metric:", f);
        print_cell(f, metrics.v[i]);
    }
    fputc('\n', f);
    for (size_t i = 0; i < dt_json_count(list); i++) {
        struct json_object *o = dt_json_at(list, i), *config = dt_json_get(o, "config");
        fprintf(f, "%ld", (long)dt_json_int(o, "trial", 0));
        for (size_t k = 0; k < dt_json_count(space); k++)
            print_value(f, dt_json_get(config, dt_json_str(dt_json_at(space, k), "name", "")));
        for (size_t k = 0; k < sizeof(columns) / sizeof(*columns); k++)
            print_value(f, dt_json_get(o, columns[k]));
        for (size_t k = 0; k < metrics.n; k++)
            print_value(f, dt_json_get(dt_json_get(o, "metrics"), metrics.v[k]));
        fputc('\n', f);
    }
    dt_strv_free(&metrics);
}

void dt_export_observations(FILE *f, struct json_object *record)
{
    struct json_object *list = dt_json_get(record, "observations");
    for (size_t i = 0; i < dt_json_count(list); i++) {
        char *line = dt_json_text(dt_json_at(list, i));
        fprintf(f, "%s\n", line);
        free(line);
    }
}

/* ---- Optuna's journal ----
 *
 * The format of optuna's JournalStorage (3.1 to 4 at least): one operation a line, of which two are
 * needed; a parameter's distribution is JSON in a string, its value the number, or the index of the
 * choice. */

enum { OP_CREATE_STUDY = 0, OP_SET_STUDY_USER_ATTR = 2, OP_CREATE_TRIAL = 4 };
enum { TRIAL_COMPLETE = 1, TRIAL_PRUNED = 2, TRIAL_FAIL = 3 };
enum { MINIMIZE = 1, MAXIMIZE = 2 };

static struct json_object *operation(int code)
{
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "op_code", json_object_new_int(code));
    json_object_object_add(o, "worker_id", json_object_new_string("dt-tune"));
    return o;
}

static void print_line(FILE *f, struct json_object *o)
{
    char *line = dt_json_text(o);
    fprintf(f, "%s\n", line);
    free(line);
    json_object_put(o);
}

static void add_range(struct json_object *attributes, struct json_object *param, const char *key)
{
    struct json_object *x = dt_json_get(param, key);
    json_object_object_add(attributes, key, x ? json_object_get(x) : NULL);
}

/* Caller frees. */
static char *distribution(struct json_object *param)
{
    struct json_object *o = json_object_new_object(), *attributes = json_object_new_object();
    struct json_object *choices = dt_json_get(param, "choices");
    bool whole = strcmp(dt_json_str(param, "type", ""), "int") == 0,
         log = dt_json_bool(param, "log", false);
    const char *name = choices ? "CategoricalDistribution"
                       : whole ? "IntDistribution"
                               : "FloatDistribution";
    if (choices) {
        json_object_object_add(attributes, "choices", json_object_get(choices));
    } else {
        add_range(attributes, param, "low");
        add_range(attributes, param, "high");
        json_object_object_add(attributes, "log", json_object_new_boolean(log));
        if (log || !dt_json_get(param, "step")) /* with log it takes no step */
            json_object_object_add(attributes, "step", whole ? json_object_new_int(1) : NULL);
        else
            add_range(attributes, param, "step");
    }
    json_object_object_add(o, "name", json_object_new_string(name));
    json_object_object_add(o, "attributes", attributes);
    char *text = dt_json_text(o);
    json_object_put(o);
    return text;
}

/* The value as the journal has it; NULL where it is none of the parameter's. */
static struct json_object *internal(struct json_object *param, struct json_object *value)
{
    struct json_object *choices = dt_json_get(param, "choices");
    if (!choices)
        return value && !json_object_is_type(value, json_type_string) ? json_object_get(value)
                                                                      : NULL;
    for (size_t i = 0; i < dt_json_count(choices); i++) {
        const char *a = json_object_get_string(dt_json_at(choices, i));
        if (value && strcmp(a, json_object_get_string(value)) == 0)
            return json_object_new_int64((int64_t)i);
    }
    return NULL;
}

static struct json_object *time_json(double t)
{
    time_t seconds = (time_t)t;
    struct tm tm;
    char text[40] = "1970-01-01T00:00:00";
    if (localtime_r(&seconds, &tm))
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    return json_object_new_string(text);
}

/* A trial that is no good by the quality asked for must not be the best there. */
static int state_of(const char *status)
{
    if (strcmp(status, "ok") == 0)
        return TRIAL_COMPLETE;
    return strcmp(status, "pruned") == 0 || strcmp(status, "censored") == 0 ? TRIAL_PRUNED
                                                                            : TRIAL_FAIL;
}

static struct json_object *attributes_of(struct json_object *o)
{
    static const char *const keys[] = {"trial", "status",  "duration_s",
                                       "nodes", "metrics", "usage"};
    struct json_object *attrs = json_object_new_object();
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (dt_json_get(o, keys[i]))
            json_object_object_add(attrs, keys[i], json_object_get(dt_json_get(o, keys[i])));
    return attrs;
}

static void print_trial(FILE *f, struct json_object *space, struct json_object *o, double start)
{
    struct json_object *line = operation(OP_CREATE_TRIAL), *params = json_object_new_object(),
                       *distributions = json_object_new_object(),
                       *config = dt_json_get(o, "config");
    int state = state_of(dt_json_str(o, "status", ""));
    for (size_t i = 0; i < dt_json_count(space); i++) {
        struct json_object *param = dt_json_at(space, i);
        const char *name = dt_json_str(param, "name", "");
        struct json_object *value = internal(param, dt_json_get(config, name));
        if (!value)
            continue;
        char *text = distribution(param);
        json_object_object_add(params, name, value);
        json_object_object_add(distributions, name, json_object_new_string(text));
        free(text);
    }
    struct json_object *value = state == TRIAL_FAIL ? NULL : dt_json_get(o, "value");
    json_object_object_add(line, "study_id", json_object_new_int(0));
    json_object_object_add(line, "state", json_object_new_int(value ? state : TRIAL_FAIL));
    json_object_object_add(line, "value", json_object_get(value));
    json_object_object_add(line, "values", NULL);
    json_object_object_add(line, "datetime_start", time_json(start));
    json_object_object_add(line, "datetime_complete",
                           time_json(start + dt_json_num(o, "duration_s", 0)));
    json_object_object_add(line, "distributions", distributions);
    json_object_object_add(line, "params", params);
    json_object_object_add(line, "user_attrs", attributes_of(o));
    json_object_object_add(line, "system_attrs", json_object_new_object());
    json_object_object_add(line, "intermediate_values", json_object_new_object());
    print_line(f, line);
}

static void print_attribute(FILE *f, const char *name, const char *value)
{
    struct json_object *line = operation(OP_SET_STUDY_USER_ATTR), *attr = json_object_new_object();
    json_object_object_add(attr, name, json_object_new_string(value));
    json_object_object_add(line, "study_id", json_object_new_int(0));
    json_object_object_add(line, "user_attr", attr);
    print_line(f, line);
}

void dt_export_optuna(FILE *f, struct json_object *record)
{
    struct json_object *list = dt_json_get(record, "observations"),
                       *space = dt_json_get(record, "space");
    struct json_object *line = operation(OP_CREATE_STUDY), *directions = json_object_new_array();
    bool large = strcmp(dt_json_str(record, "goal", ""), "maximize") == 0;
    double t = dt_json_num(record, "time", 0);
    json_object_array_add(directions, json_object_new_int(large ? MAXIMIZE : MINIMIZE));
    json_object_object_add(line, "study_name",
                           json_object_new_string(dt_json_str(record, "study", "study")));
    json_object_object_add(line, "directions", directions);
    print_line(f, line);
    print_attribute(f, "objective", dt_json_str(record, "objective", ""));
    print_attribute(f, "job_name", dt_json_str(record, "job_name", ""));
    for (size_t i = 0; i < dt_json_count(list); i++)
        t -= dt_json_num(dt_json_at(list, i), "duration_s", 0);
    for (size_t i = 0; i < dt_json_count(list); i++) {
        print_trial(f, space, dt_json_at(list, i), t);
        t += dt_json_num(dt_json_at(list, i), "duration_s", 0);
    }
}
