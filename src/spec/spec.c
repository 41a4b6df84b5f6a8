#include "spec/spec.h"
#include "space/cluster.h"

#include <ctype.h>
#include <stdarg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static const char *const dt_names[] = {
    "ps",      "workers",     "ps_cpus",    "worker_cpus", "ps_mem",   "worker_mem",
    "ps_tmp",  "worker_tmp",  "ps_gpus",    "worker_gpus", "ps_nodes", "worker_nodes",
};

bool dt_spec_is_dt_name(const char *name)
{
    for (size_t i = 0; i < COUNT(dt_names); i++)
        if (strcmp(name, dt_names[i]) == 0)
            return true;
    return false;
}

/* Where an error is: the document and a path of keys in it. */
struct place {
    const char *text, *name;
    const char *path[5]; /* NULL-terminated */
};

static struct place under(const struct place *p, const char *key)
{
    struct place q = *p;
    size_t n = 0;
    while (q.path[n])
        n++;
    if (n + 1 < COUNT(q.path))
        q.path[n] = key;
    return q;
}

/* "SPEC.json:12", or nothing where the place has no name. */
static void place_text(const struct place *p, struct dt_buf *b)
{
    int line = p->text && p->path[0] ? dt_json_line(p->text, p->path) : 0;
    if (p->name)
        dt_buf_add(b, p->name);
    if (p->name && line)
        dt_buf_addf(b, ":%d", line);
}

/* "SPEC.json:12: dt.ps: MESSAGE" */
static int fail_at(const struct place *p, struct dt_error *e, const char *fmt, ...) DT_PRINTF(3, 4);
static int fail_at(const struct place *p, struct dt_error *e, const char *fmt, ...)
{
    struct dt_buf b = DT_BUF_INIT;
    va_list ap;
    char *message = NULL;
    va_start(ap, fmt);
    if (vasprintf(&message, fmt, ap) < 0)
        abort();
    va_end(ap);
    place_text(p, &b);
    for (size_t i = 0; p->name && p->path[i]; i++)
        dt_buf_addf(&b, "%s%s", i ? "." : ": ", p->path[i]);
    dt_fail(e, "%s%s%s", b.s ? b.s : "", b.s ? ": " : "", message);
    free(message);
    dt_buf_free(&b);
    return -1;
}

static const char *type_word(struct json_object *o)
{
    switch (json_object_get_type(o)) {
    case json_type_null:
        return "null";
    case json_type_boolean:
        return "a boolean";
    case json_type_double:
    case json_type_int:
        return "a number";
    case json_type_object:
        return "an object";
    case json_type_array:
        return "an array";
    case json_type_string:
        return "a string";
    }
    return "something else";
}

static int want(const struct place *p, struct json_object *o, json_type type, const char *word,
                struct dt_error *e)
{
    if (json_object_is_type(o, type) ||
        (type == json_type_double && json_object_is_type(o, json_type_int)))
        return 0;
    return fail_at(p, e, "%s is needed here, this is %s", word, type_word(o));
}

/* Every key of the object must be one of the names. */
static int check_keys(const struct place *p, struct json_object *o, const char *const *names, size_t n,
                      struct dt_error *e)
{
    if (want(p, o, json_type_object, "an object", e) < 0)
        return -1;
    json_object_object_foreach(o, key, value)
    {
        bool known = false;
        struct place q = under(p, key);
        for (size_t i = 0; i < n; i++)
            known |= strcmp(key, names[i]) == 0;
        if (known && !value)
            return fail_at(&q, e, "a value is needed here, this is null; without the key the default holds");
        if (known)
            continue;
        const char *near = dt_nearest(key, names, n);
        if (near)
            return fail_at(&q, e, "unknown key; did you mean \"%s\"?", near);
        struct dt_strv all = DT_STRV_INIT;
        for (size_t i = 0; i < n; i++)
            dt_strv_add(&all, names[i]);
        char *list = dt_strv_join(&all, ", ");
        fail_at(&q, e, "unknown key; known are: %s", list);
        free(list);
        dt_strv_free(&all);
        return -1;
    }
    return 0;
}

static int get_string(const struct place *p, struct json_object *o, const char *key, char **out,
                      struct dt_error *e)
{
    struct json_object *v;
    struct place q = under(p, key);
    if (!json_object_object_get_ex(o, key, &v))
        return 0;
    if (want(&q, v, json_type_string, "a string", e) < 0)
        return -1;
    if (!*json_object_get_string(v))
        return fail_at(&q, e, "an empty value; write one or leave it out");
    free(*out);
    *out = dt_xstrdup(json_object_get_string(v));
    return 0;
}

static int get_size(const struct place *p, struct json_object *o, const char *key, size_t min,
                    size_t *out, struct dt_error *e)
{
    struct json_object *v;
    struct place q = under(p, key);
    if (!json_object_object_get_ex(o, key, &v))
        return 0;
    int64_t x = json_object_get_int64(v);
    if (!json_object_is_type(v, json_type_int) || x < (int64_t)min || x > 1000000000)
        return fail_at(&q, e, "a whole number between %zu and 1000000000 is needed here", min);
    *out = (size_t)x;
    return 0;
}

static int get_strings(const struct place *p, struct json_object *o, const char *key,
                       struct dt_strv *out, struct dt_error *e)
{
    struct json_object *v;
    struct place q = under(p, key);
    if (!json_object_object_get_ex(o, key, &v))
        return 0;
    if (want(&q, v, json_type_array, "an array of strings", e) < 0)
        return -1;
    for (size_t i = 0; i < json_object_array_length(v); i++) {
        struct json_object *item = json_object_array_get_idx(v, i);
        if (want(&q, item, json_type_string, "an array of strings", e) < 0)
            return -1;
        dt_strv_add(out, json_object_get_string(item));
    }
    return 0;
}

/* ---- domains ---- */

static bool is_size(const char *name) /* memory or disk: "2G" */
{
    size_t n = strlen(name);
    return n > 4 && (strcmp(name + n - 4, "_mem") == 0 || strcmp(name + n - 4, "_tmp") == 0);
}

static int number_of(const struct place *p, const struct dt_param *d, struct json_object *v, double *x,
                     struct dt_error *e)
{
    uint64_t mib;
    if (!d->hyper && is_size(d->name) && json_object_is_type(v, json_type_string)) {
        if (dt_parse_mem(json_object_get_string(v), &mib) < 0)
            return fail_at(p, e, "\"%s\" is no size; write it like \"512M\" or \"4G\"",
                           json_object_get_string(v));
        *x = (double)mib;
        return 0;
    }
    if (want(p, v, json_type_double, "a number", e) < 0)
        return -1;
    *x = json_object_get_double(v);
    if (!isfinite(*x))
        return fail_at(p, e, "a finite number is needed here");
    bool exact = fabs(*x) < 9e18 && (double)(int64_t)*x == *x && json_object_get_int64(v) == (int64_t)*x;
    if (json_object_is_type(v, json_type_int) && !exact)
        return fail_at(p, e, "%s is too large to be told from its neighbours; write it as a float (1e20)",
                       json_object_get_string(v));
    return 0;
}

static void add_value(struct dt_param *d, double x, const char *label)
{
    d->values = dt_xrealloc(d->values, d->nvalues + 1, sizeof(*d->values));
    d->values[d->nvalues] = x;
    if (label) {
        d->labels = dt_xrealloc(d->labels, d->nvalues + 1, sizeof(*d->labels));
        d->labels[d->nvalues] = dt_xstrdup(label);
    }
    d->nvalues++;
}

static bool has_control(const char *s)
{
    while (*s && !iscntrl((unsigned char)*s))
        s++;
    return *s != '\0';
}

static int add_choice(const struct place *p, struct dt_param *d, struct json_object *v,
                      struct dt_error *e)
{
    bool text = json_object_is_type(v, json_type_string) || json_object_is_type(v, json_type_boolean);
    bool size = !d->hyper && is_size(d->name);
    bool first = d->nvalues == 0;
    double x = (double)d->nvalues;
    if (!text || size) {
        if (number_of(p, d, v, &x, e) < 0)
            return -1;
    }
    bool label = text && !size;
    if (label && has_control(json_object_get_string(v)))
        return fail_at(p, e, "\"%s\" holds a control character, such as a line end; take it out",
                       json_object_get_string(v));
    if (label && !d->hyper)
        return fail_at(p, e, "\"%s\" is no number", json_object_get_string(v));
    if (first)
        d->kind = label ? DT_PARAM_LABEL : DT_PARAM_INT;
    if (!first && label != (d->kind == DT_PARAM_LABEL))
        return fail_at(p, e, "the choices must be all numbers or all strings");
    if (!label && x != floor(x))
        d->kind = DT_PARAM_FLOAT;
    for (size_t i = 0; i < d->nvalues; i++) {
        bool same = label ? strcmp(d->labels[i], json_object_get_string(v)) == 0 : d->values[i] == x;
        if (same)
            return fail_at(p, e, "the choice %s stands twice", json_object_get_string(v));
    }
    bool keep_text = label || (size && text);
    if (size && !text && d->labels)
        keep_text = true;
    if (size && text && !first && !d->labels)
        return fail_at(p, e, "write all sizes as strings (\"2G\") or all as MiB");
    add_value(d, x, keep_text ? json_object_get_string(v) : NULL);
    return 0;
}

static int parse_choices(const struct place *p, struct dt_param *d, struct json_object *list,
                         struct dt_error *e)
{
    if (want(p, list, json_type_array, "an array", e) < 0)
        return -1;
    if (json_object_array_length(list) == 0)
        return fail_at(p, e, "the list of choices is empty");
    for (size_t i = 0; i < json_object_array_length(list); i++)
        if (add_choice(p, d, json_object_array_get_idx(list, i), e) < 0)
            return -1;
    return 0;
}

static int parse_bounds(const struct place *p, struct dt_param *d, struct json_object *o,
                        struct dt_error *e)
{
    static const char *const ends[] = {"low", "high"};
    double *const at[] = {&d->low, &d->high};
    bool whole = true;
    for (int i = 0; i < 2; i++) {
        struct json_object *v;
        struct place q = under(p, ends[i]);
        if (!json_object_object_get_ex(o, ends[i], &v))
            return fail_at(p, e, "\"%s\" is missing (or give \"choices\")", ends[i]);
        if (number_of(&q, d, v, at[i], e) < 0)
            return -1;
        whole &= !json_object_is_type(v, json_type_double);
    }
    const char *type = dt_json_str(o, "type", !d->hyper || whole ? "int" : "float");
    struct place q = under(p, "type");
    if (strcmp(type, "categorical") == 0)
        return fail_at(&q, e, "a categorical parameter has choices, not low and high");
    d->kind = strcmp(type, "int") == 0 ? DT_PARAM_INT : DT_PARAM_FLOAT;
    if (d->kind == DT_PARAM_INT && (d->low != floor(d->low) || d->high != floor(d->high)))
        return fail_at(p, e, "low and high of an int must be whole numbers");
    if (d->low > d->high)
        return fail_at(p, e, "low (%g) is above high (%g)", d->low, d->high);
    struct json_object *step = dt_json_get(o, "step");
    q = under(p, "step");
    d->step = d->kind == DT_PARAM_INT ? 1 : 0;
    if (step && number_of(&q, d, step, &d->step, e) < 0)
        return -1;
    if (step && (d->step <= 0 || (d->kind == DT_PARAM_INT && d->step != floor(d->step))))
        return fail_at(&q, e, "the step must be above 0, and whole for an int");
    return 0;
}

static double smallest(const struct dt_param *d)
{
    double x = d->values ? d->values[0] : d->low;
    for (size_t i = 1; i < d->nvalues; i++)
        x = fmin(x, d->values[i]);
    return x;
}

static int parse_log(const struct place *p, struct dt_param *d, struct json_object *o, struct dt_error *e)
{
    struct json_object *log = dt_json_get(o, "log");
    struct place q = under(p, "log");
    if (log && want(&q, log, json_type_boolean, "true or false", e) < 0)
        return -1;
    d->log = json_object_get_boolean(log);
    if (d->log && d->kind == DT_PARAM_LABEL)
        return fail_at(&q, e, "a log scale is for numbers, these choices are words");
    if (d->log && smallest(d) <= 0)
        return fail_at(&q, e, "a log scale needs numbers above 0");
    return 0;
}

/* "type" must be one of the three words and go with what else is there. */
static int check_type(const struct place *p, struct json_object *o, struct dt_error *e)
{
    static const char *const types[] = {"int", "float", "categorical"};
    struct place q = under(p, "type");
    char *type = NULL;
    bool known = false;
    if (get_string(p, o, "type", &type, e) < 0)
        return -1;
    for (size_t i = 0; type && i < COUNT(types); i++)
        known |= strcmp(type, types[i]) == 0;
    int rc = 0;
    if (type && !known)
        rc = fail_at(&q, e, "\"%s\" is not a type; \"int\" or \"float\" with low and high, \"categorical\" with choices", type);
    free(type);
    return rc;
}

static int check_choices_type(const struct place *p, const struct dt_param *d, struct json_object *o,
                              struct dt_error *e)
{
    const char *type = dt_json_str(o, "type", "categorical");
    struct place q = under(p, "type");
    bool fits = strcmp(type, "int") == 0     ? d->kind == DT_PARAM_INT
                : strcmp(type, "float") == 0 ? d->kind != DT_PARAM_LABEL
                                             : true;
    return fits ? 0 : fail_at(&q, e, "the choices are not all of the type \"%s\"; change it or them", type);
}

static int parse_domain(const struct place *p, struct dt_param *d, struct json_object *o,
                        double *submitted, struct dt_error *e)
{
    static const char *const keys[] = {"type", "low", "high", "step", "log", "choices", "default"};
    *submitted = NAN;
    if (json_object_is_type(o, json_type_array))
        return parse_choices(p, d, o, e);
    if (!json_object_is_type(o, json_type_object))
        return add_choice(p, d, o, e); /* one fixed value */
    if (check_keys(p, o, keys, COUNT(keys), e) < 0)
        return -1;
    if (check_type(p, o, e) < 0)
        return -1;
    struct json_object *choices;
    if (json_object_object_get_ex(o, "choices", &choices)) {
        struct place q = under(p, "choices");
        if (dt_json_get(o, "low") || dt_json_get(o, "high") || dt_json_get(o, "step"))
            return fail_at(p, e, "give either choices or low and high, not both");
        if (parse_choices(&q, d, choices, e) < 0 || check_choices_type(p, d, o, e) < 0)
            return -1;
    } else if (parse_bounds(p, d, o, e) < 0) {
        return -1;
    }
    if (parse_log(p, d, o, e) < 0)
        return -1;
    struct json_object *given = dt_json_get(o, "default");
    struct place q = under(p, "default");
    if (given && !d->hyper)
        return fail_at(&q, e, "the job itself says what it was submitted with; only hyperparameters take a default");
    for (size_t i = 0; given && d->kind == DT_PARAM_LABEL && i < d->nvalues; i++)
        if (strcmp(json_object_get_string(given), d->labels[i]) == 0)
            *submitted = d->values[i];
    if (given && d->kind != DT_PARAM_LABEL && number_of(&q, d, given, submitted, e) < 0)
        return -1;
    if (given && (isnan(*submitted) || (d->values && !dt_param_contains(d, *submitted))))
        return fail_at(&q, e, "\"%s\" is not one of the choices", json_object_get_string(given));
    return 0;
}

static bool valid_name(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '_')
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '_')
            return false;
    return true;
}

/* Names that mean something else in constraints. */
static bool is_taken(const char *name)
{
    return strcmp(name, "layout") == 0 || strcmp(name, "_e") == 0 || strcmp(name, "_pi") == 0 ||
           dt_cluster_has_fact(name);
}

static double largest(const struct dt_param *d)
{
    double x = d->values ? d->values[0] : d->high;
    for (size_t i = 1; i < d->nvalues; i++)
        x = fmax(x, d->values[i]);
    return x;
}

static int check_dt_param(const struct place *p, const struct dt_param *d, struct dt_error *e)
{
    double most = is_size(d->name) ? 1e12 : 1e6; /* an exabyte; more than any cluster has of anything */
    double low = strcmp(d->name, "ps") == 0 || strstr(d->name, "_gpus") ? 0 : 1;
    if (d->kind != DT_PARAM_INT)
        return fail_at(p, e, "whole numbers are needed here");
    if (smallest(d) < low)
        return fail_at(p, e, "%g is too small, the least is %g", smallest(d), low);
    if (largest(d) > most)
        return fail_at(p, e, "%g is too large, the most is %g", largest(d), most);
    return 0;
}

static int parse_params(struct dt_spec *s, const struct place *top, struct json_object *section,
                        const char *section_name, bool hyper, struct dt_error *e)
{
    struct place p = under(top, section_name);
    if (!section)
        return 0;
    if (want(&p, section, json_type_object, "an object", e) < 0)
        return -1;
    if (!hyper && check_keys(&p, section, dt_names, COUNT(dt_names), e) < 0)
        return -1;
    json_object_object_foreach(section, key, domain)
    {
        struct place q = under(&p, key);
        if (hyper && !valid_name(key))
            return fail_at(&q, e, "a name must consist of letters, digits and _, as it becomes DT_PARAM_%s", key);
        if (hyper && dt_spec_is_dt_name(key))
            return fail_at(&q, e, "this belongs under \"dt\" in SPEC");
        if (hyper && is_taken(key))
            return fail_at(&q, e, "this name is taken by dt-tune");
        s->params = dt_xrealloc(s->params, s->nparams + 1, sizeof(*s->params));
        s->submitted = dt_xrealloc(s->submitted, s->nparams + 1, sizeof(*s->submitted));
        struct dt_param *d = &s->params[s->nparams];
        *d = (struct dt_param){.name = dt_xstrdup(key), .hyper = hyper};
        s->nparams++;
        if (parse_domain(&q, d, domain, &s->submitted[s->nparams - 1], e) < 0)
            return -1;
        if (!hyper && check_dt_param(&q, d, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- the other sections ---- */

static int parse_goal(const struct place *p, struct json_object *o, bool *maximize, struct dt_error *e)
{
    char *goal = NULL;
    struct place q = under(p, "goal");
    if (get_string(p, o, "goal", &goal, e) < 0)
        return -1;
    int rc = 0;
    if (goal && strcmp(goal, "maximize") == 0)
        *maximize = true;
    else if (goal && strcmp(goal, "minimize") == 0)
        *maximize = false;
    else if (goal)
        rc = fail_at(&q, e, "\"%s\" is not a goal; minimize or maximize", goal);
    free(goal);
    return rc;
}

static int parse_objective(struct dt_spec *s, const struct place *top, struct json_object *o,
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
    struct place p = under(top, "objective");
    if (!o)
        return 0;
    if (check_keys(&p, o, keys, COUNT(keys), e) < 0 || get_string(&p, o, "metric", &s->metric, e) < 0)
        return -1;
    if (!s->metric)
        return fail_at(&p, e, "\"metric\" is missing: time, throughput, cost, turnaround or a metric's name");
    s->objective = DT_OBJECTIVE_METRIC;
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (strcmp(s->metric, kinds[i].name) == 0)
            s->objective = kinds[i].kind;
    s->maximize = s->objective == DT_OBJECTIVE_THROUGHPUT;
    bool fixed = s->maximize;
    if (parse_goal(&p, o, &s->maximize, e) < 0)
        return -1;
    struct place q = under(&p, "goal");
    if (s->objective == DT_OBJECTIVE_METRIC && !dt_json_get(o, "goal"))
        return fail_at(&p, e, "\"goal\" is missing: should %s be minimized or maximized?", s->metric);
    if (s->objective != DT_OBJECTIVE_METRIC && s->maximize != fixed)
        return fail_at(&q, e, "%s can only be %s", s->metric, fixed ? "maximized" : "minimized");
    return 0;
}

static int parse_target(struct dt_spec *s, const struct place *top, struct json_object *o,
                        struct dt_error *e)
{
    static const char *const keys[] = {"metric", "at_least", "at_most"};
    struct place p = under(top, "target");
    if (!o)
        return 0;
    if (check_keys(&p, o, keys, COUNT(keys), e) < 0 ||
        get_string(&p, o, "metric", &s->target_metric, e) < 0)
        return -1;
    struct json_object *least = dt_json_get(o, "at_least"), *most = dt_json_get(o, "at_most");
    if (!s->target_metric || !least == !most)
        return fail_at(&p, e, "\"metric\" and one of \"at_least\" and \"at_most\" are needed");
    s->target_at_least = least != NULL;
    struct place q = under(&p, least ? "at_least" : "at_most");
    if (want(&q, least ? least : most, json_type_double, "a number", e) < 0)
        return -1;
    s->target = json_object_get_double(least ? least : most);
    return isfinite(s->target) ? 0 : fail_at(&q, e, "a finite number is needed here");
}

static int parse_search(struct dt_spec *s, const struct place *top, struct json_object *o,
                        struct dt_error *e)
{
    static const char *const keys[] = {"algorithm",   "seed",         "max_configs", "min_configs",
                                       "min_improve", "window",       "max_failures", "parallel",
                                       "grid_levels", "deadline"};
    static const char *const algorithms[] = {"random", "grid"};
    struct place p = under(top, "search");
    size_t seed = (size_t)s->seed;
    char *deadline = NULL;
    if (!o)
        return 0;
    if (check_keys(&p, o, keys, COUNT(keys), e) < 0 ||
        get_string(&p, o, "algorithm", &s->algorithm, e) < 0 ||
        get_size(&p, o, "seed", 0, &seed, e) < 0 ||
        get_size(&p, o, "max_configs", 1, &s->max_configs, e) < 0 ||
        get_size(&p, o, "min_configs", 1, &s->min_configs, e) < 0 ||
        get_size(&p, o, "window", 1, &s->window, e) < 0 ||
        get_size(&p, o, "max_failures", 1, &s->max_failures, e) < 0 ||
        get_size(&p, o, "parallel", 1, &s->parallel, e) < 0 ||
        get_size(&p, o, "grid_levels", 2, &s->grid_levels, e) < 0 ||
        get_string(&p, o, "deadline", &deadline, e) < 0)
        return -1;
    s->seed = seed;
    struct place q = under(&p, "deadline");
    int rc = 0;
    if (deadline && (dt_parse_time(deadline, &s->deadline) < 0 || s->deadline <= 0))
        rc = fail_at(&q, e, "\"%s\" is not a time; write it as Slurm does: \"90\" (minutes), \"1:30:00\", \"1-12\"",
                     deadline);
    free(deadline);
    if (rc < 0)
        return -1;
    bool known = false;
    for (size_t i = 0; i < COUNT(algorithms); i++)
        known |= strcmp(s->algorithm, algorithms[i]) == 0;
    q = under(&p, "algorithm");
    if (!known) {
        const char *near = dt_nearest(s->algorithm, algorithms, COUNT(algorithms));
        return fail_at(&q, e, "\"%s\" is not an algorithm; %s%s", s->algorithm,
                       near ? "did you mean " : "there are random and ", near ? near : "grid");
    }
    struct json_object *improve = dt_json_get(o, "min_improve");
    q = under(&p, "min_improve");
    if (improve && want(&q, improve, json_type_double, "a number of per cent", e) < 0)
        return -1;
    if (improve)
        s->min_improve = json_object_get_double(improve) / 100;
    if (!(s->min_improve >= 0 && s->min_improve <= 1))
        return fail_at(&q, e, "per cent between 0 and 100 are needed here");
    return 0;
}

static int parse_layout(struct dt_spec *s, const struct place *top, struct json_object *json,
                        struct dt_error *e)
{
    static const char *const names[] = {"auto", "het", "packed"};
    char *layout = NULL;
    struct place p = under(top, "layout");
    if (get_string(top, json, "layout", &layout, e) < 0)
        return -1;
    if (!layout)
        return 0;
    int found = -1;
    for (int i = 0; i < (int)COUNT(names); i++)
        if (strcmp(layout, names[i]) == 0)
            found = i;
    int rc = 0;
    if (strcmp(layout, "steps") == 0)
        rc = fail_at(&p, e, "\"steps\" is not there yet; choose auto, het or packed");
    else if (found < 0)
        rc = fail_at(&p, e, "\"%s\" is not a layout; there are auto, het and packed", layout);
    else
        s->layout = (enum dt_layout_choice)found;
    free(layout);
    return rc;
}

/* Every key must be a parameter, every value a column's name. */
static int parse_map(const struct dt_spec *s, const struct place *p, struct json_object *map,
                     struct dt_error *e)
{
    const char **names = dt_xcalloc(s->nparams, sizeof(*names));
    for (size_t i = 0; i < s->nparams; i++)
        names[i] = s->params[i].name;
    int rc = check_keys(p, map, names, s->nparams, e);
    free(names);
    if (rc < 0)
        return -1;
    json_object_object_foreach(map, key, column)
    {
        struct place q = under(p, key);
        if (want(&q, column, json_type_string, "the name of a column", e) < 0)
            return -1;
    }
    return 0;
}

static int parse_where(struct dt_replay_spec *r, const struct place *p, struct json_object *where,
                       struct dt_error *e)
{
    if (want(p, where, json_type_object, "an object", e) < 0)
        return -1;
    json_object_object_foreach(where, key, value)
    {
        struct place q = under(p, key);
        json_type type = json_object_get_type(value);
        if (type != json_type_string && type != json_type_int && type != json_type_double)
            return fail_at(&q, e, "a string or a number is needed here, this is %s", type_word(value));
        dt_strv_add(&r->where_columns, key);
        dt_strv_add(&r->where_values, json_object_get_string(value));
    }
    return 0;
}

static int parse_replay(struct dt_spec *s, const struct place *top, struct json_object *o,
                        struct dt_error *e)
{
    static const char *const keys[] = {"map",  "where",    "objective", "goal",
                                       "duration", "status", "ok"};
    struct dt_replay_spec *r = &s->replay;
    struct place p = under(top, "replay"), q;
    if (!o)
        return 0;
    if (check_keys(&p, o, keys, COUNT(keys), e) < 0 ||
        get_string(&p, o, "objective", &r->objective, e) < 0 ||
        get_string(&p, o, "duration", &r->duration, e) < 0 ||
        get_string(&p, o, "status", &r->status, e) < 0 || get_strings(&p, o, "ok", &r->ok, e) < 0)
        return -1;
    if (!r->objective)
        return fail_at(&p, e, "\"objective\" is missing: the column that is to be minimized or maximized");
    if (parse_goal(&p, o, &r->maximize, e) < 0)
        return -1;
    struct json_object *map = dt_json_get(o, "map"), *where = dt_json_get(o, "where");
    q = under(&p, "map");
    if (map && parse_map(s, &q, map, e) < 0)
        return -1;
    for (size_t i = 0; i < s->nparams; i++) {
        const char *column = dt_json_str(map, s->params[i].name, s->params[i].name);
        dt_strv_add(&r->params, s->params[i].name);
        dt_strv_add(&r->columns, column);
    }
    q = under(&p, "where");
    return where ? parse_where(r, &q, where, e) : 0;
}

/* Where a section stands in its file; NULL where there is no file. Caller frees. */
static char *place_of(const struct place *top, const char *key)
{
    struct dt_buf b = DT_BUF_INIT;
    struct place p = under(top, key);
    if (!top->text)
        return NULL;
    place_text(&p, &b);
    return dt_buf_take(&b);
}

static int parse_all(struct dt_spec *s, const struct place *top, struct dt_error *e)
{
    static const char *const keys[] = {"version", "dt",     "hyperparameters", "constraints",
                                       "candidates", "objective", "target",    "search",
                                       "layout",  "replay"};
    struct json_object *json = s->json;
    struct place q = under(top, "version");
    if (check_keys(top, json, keys, COUNT(keys), e) < 0)
        return -1;
    if (dt_json_get(json, "version") && dt_json_int(json, "version", 0) != 1)
        return fail_at(&q, e, "this dt-tune reads version 1");
    if (parse_params(s, top, dt_json_get(json, "dt"), "dt", false, e) < 0 ||
        parse_params(s, top, dt_json_get(json, "hyperparameters"), "hyperparameters", true, e) < 0 ||
        get_strings(top, json, "constraints", &s->constraints, e) < 0 ||
        get_string(top, json, "candidates", &s->candidates, e) < 0 ||
        parse_objective(s, top, dt_json_get(json, "objective"), e) < 0 ||
        parse_target(s, top, dt_json_get(json, "target"), e) < 0 ||
        parse_search(s, top, dt_json_get(json, "search"), e) < 0 ||
        parse_layout(s, top, json, e) < 0 || parse_replay(s, top, dt_json_get(json, "replay"), e) < 0)
        return -1;
    s->constraints_place = place_of(top, "constraints");
    s->candidates_place = place_of(top, "candidates");
    return 0;
}

struct dt_spec *dt_spec_parse(struct json_object *json, const char *text, const char *name,
                              struct dt_error *e)
{
    struct dt_spec *s = dt_xcalloc(1, sizeof(*s));
    struct place top = {.text = text, .name = name};
    s->json = json_object_get(json);
    s->algorithm = dt_xstrdup("random");
    s->seed = 1;
    s->max_configs = 60;
    s->min_configs = 12;
    s->window = 5;
    s->max_failures = 3;
    s->parallel = 1;
    s->grid_levels = 5;
    s->min_improve = 0.02;
    s->deadline = INFINITY;
    if (parse_all(s, &top, e) < 0) {
        dt_spec_free(s);
        return NULL;
    }
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
    free(s->target_metric);
    free(s->algorithm);
    free(s->replay.objective);
    free(s->replay.duration);
    free(s->replay.status);
    dt_strv_free(&s->replay.params);
    dt_strv_free(&s->replay.columns);
    dt_strv_free(&s->replay.where_columns);
    dt_strv_free(&s->replay.where_values);
    dt_strv_free(&s->replay.ok);
    free(s);
}

char *dt_spec_objective_text(const struct dt_spec *s)
{
    if (s->objective == DT_OBJECTIVE_METRIC)
        return dt_xasprintf("%s:%s", s->maximize ? "max" : "min", s->metric);
    return dt_xstrdup(s->metric ? s->metric : "time");
}
