/* Parameters and their domains: the sections "dt" and "hyperparameters". */
#include "spec/spec_private.h"
#include "space/cluster.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const dt_names[] = {
    "ps",         "workers",      "ps_cpus",       "worker_cpus",       "ps_mem",
    "worker_mem", "ps_tmp",       "worker_tmp",    "ps_gpus",           "worker_gpus",
    "ps_nodes",   "worker_nodes", "ps_constraint", "worker_constraint", "partition",
};

bool dt_spec_is_dt_name(const char *name)
{
    for (size_t i = 0; i < COUNT(dt_names); i++)
        if (strcmp(name, dt_names[i]) == 0)
            return true;
    return false;
}

static bool is_size(const char *name) /* memory or disk: "2G" */
{
    size_t n = strlen(name);
    return n > 4 && (strcmp(name + n - 4, "_mem") == 0 || strcmp(name + n - 4, "_tmp") == 0);
}

static bool is_kind(const char *name) /* of nodes, in words that Slurm knows */
{
    return strcmp(name, "ps_constraint") == 0 || strcmp(name, "worker_constraint") == 0 ||
           strcmp(name, "partition") == 0;
}

bool dt_spec_has_kinds(const struct dt_spec *s)
{
    for (size_t i = 0; i < s->nparams; i++)
        if (is_kind(s->params[i].name))
            return true;
    return false;
}

static int check_kind(const struct dt_place *p, const char *name, struct json_object *v,
                      struct dt_error *e)
{
    bool partition = strcmp(name, "partition") == 0;
    const char *what = partition ? "the name of a partition" : "features as for --constraint";
    if (!json_object_is_type(v, json_type_string))
        return dt_spec_fail(p, e, "%s: that is a string", what);
    const char *text = json_object_get_string(v);
    if (!*text || text[strcspn(text, " \t")] || (partition && strchr(text, ',')))
        return dt_spec_fail(p, e, "\"%s\" is not %s", text, what);
    return 0;
}

static int number_of(const struct dt_place *p, const struct dt_param *d, struct json_object *v,
                     double *x, struct dt_error *e)
{
    uint64_t mib;
    if (!d->hyper && is_size(d->name) && json_object_is_type(v, json_type_string)) {
        if (dt_parse_mem(json_object_get_string(v), &mib) < 0)
            return dt_spec_fail(p, e, "\"%s\" is no size; write it like \"512M\" or \"4G\"",
                                json_object_get_string(v));
        *x = (double)mib;
        return 0;
    }
    if (dt_spec_want(p, v, json_type_double, "a number", e) < 0)
        return -1;
    *x = json_object_get_double(v);
    if (!isfinite(*x))
        return dt_spec_fail(p, e, "a finite number is needed here");
    bool exact =
        fabs(*x) < 9e18 && (double)(int64_t)*x == *x && json_object_get_int64(v) == (int64_t)*x;
    if (json_object_is_type(v, json_type_int) && !exact)
        return dt_spec_fail(
            p, e, "%s is too large to be told from its neighbours; write it as a float (1e20)",
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

static int add_choice(const struct dt_place *p, struct dt_param *d, struct json_object *v,
                      struct dt_error *e)
{
    bool text =
        json_object_is_type(v, json_type_string) || json_object_is_type(v, json_type_boolean);
    bool size = !d->hyper && is_size(d->name), kind = !d->hyper && is_kind(d->name);
    bool first = d->nvalues == 0;
    double x = (double)d->nvalues;
    if (kind && check_kind(p, d->name, v, e) < 0)
        return -1;
    if (!text || size) {
        if (number_of(p, d, v, &x, e) < 0)
            return -1;
    }
    bool label = text && !size;
    if (label && has_control(json_object_get_string(v)))
        return dt_spec_fail(p, e,
                            "\"%s\" holds a control character, such as a line end; take it out",
                            json_object_get_string(v));
    if (label && !d->hyper && !kind)
        return dt_spec_fail(p, e, "\"%s\" is no number", json_object_get_string(v));
    if (first)
        d->kind = label ? DT_PARAM_LABEL : DT_PARAM_INT;
    if (!first && label != (d->kind == DT_PARAM_LABEL))
        return dt_spec_fail(p, e, "the choices must be all numbers or all strings");
    if (!label && x != floor(x))
        d->kind = DT_PARAM_FLOAT;
    for (size_t i = 0; i < d->nvalues; i++) {
        bool same =
            label ? strcmp(d->labels[i], json_object_get_string(v)) == 0 : d->values[i] == x;
        if (same)
            return dt_spec_fail(p, e, "the choice %s stands twice", json_object_get_string(v));
    }
    bool keep_text = label || (size && text);
    if (size && !text && d->labels)
        keep_text = true;
    if (size && text && !first && !d->labels)
        return dt_spec_fail(p, e, "write all sizes as strings (\"2G\") or all as MiB");
    add_value(d, x, keep_text ? json_object_get_string(v) : NULL);
    return 0;
}

static int parse_choices(const struct dt_place *p, struct dt_param *d, struct json_object *list,
                         struct dt_error *e)
{
    if (dt_spec_want(p, list, json_type_array, "an array", e) < 0)
        return -1;
    if (dt_json_count(list) == 0)
        return dt_spec_fail(p, e, "the list of choices is empty");
    for (size_t i = 0; i < dt_json_count(list); i++)
        if (add_choice(p, d, dt_json_at(list, i), e) < 0)
            return -1;
    return 0;
}

static int parse_bounds(const struct dt_place *p, struct dt_param *d, struct json_object *o,
                        struct dt_error *e)
{
    static const char *const ends[] = {"low", "high"};
    double *const at[] = {&d->low, &d->high};
    bool whole = true;
    for (int i = 0; i < 2; i++) {
        struct json_object *v;
        struct dt_place q = dt_spec_under(p, ends[i]);
        if (!json_object_object_get_ex(o, ends[i], &v))
            return dt_spec_fail(p, e, "\"%s\" is missing (or give \"choices\")", ends[i]);
        if (number_of(&q, d, v, at[i], e) < 0)
            return -1;
        whole &= !json_object_is_type(v, json_type_double);
    }
    const char *type = dt_json_str(o, "type", !d->hyper || whole ? "int" : "float");
    struct dt_place q = dt_spec_under(p, "type");
    if (strcmp(type, "categorical") == 0)
        return dt_spec_fail(&q, e, "a categorical parameter has choices, not low and high");
    d->kind = strcmp(type, "int") == 0 ? DT_PARAM_INT : DT_PARAM_FLOAT;
    if (d->kind == DT_PARAM_INT && (d->low != floor(d->low) || d->high != floor(d->high)))
        return dt_spec_fail(p, e, "low and high of an int must be whole numbers");
    if (d->low > d->high)
        return dt_spec_fail(p, e, "low (%g) is above high (%g)", d->low, d->high);
    struct json_object *step = dt_json_get(o, "step");
    q = dt_spec_under(p, "step");
    d->step = d->kind == DT_PARAM_INT ? 1 : 0;
    if (step && number_of(&q, d, step, &d->step, e) < 0)
        return -1;
    if (step && (d->step <= 0 || (d->kind == DT_PARAM_INT && d->step != floor(d->step))))
        return dt_spec_fail(&q, e, "the step must be above 0, and whole for an int");
    return 0;
}

static double smallest(const struct dt_param *d)
{
    double x = d->values ? d->values[0] : d->low;
    for (size_t i = 1; i < d->nvalues; i++)
        x = fmin(x, d->values[i]);
    return x;
}

static int parse_log(const struct dt_place *p, struct dt_param *d, struct json_object *o,
                     struct dt_error *e)
{
    struct json_object *log = dt_json_get(o, "log");
    struct dt_place q = dt_spec_under(p, "log");
    if (log && dt_spec_want(&q, log, json_type_boolean, "true or false", e) < 0)
        return -1;
    d->log = json_object_get_boolean(log);
    if (d->log && d->kind == DT_PARAM_LABEL)
        return dt_spec_fail(&q, e, "a log scale is for numbers, these choices are words");
    if (d->log && smallest(d) <= 0)
        return dt_spec_fail(&q, e, "a log scale needs numbers above 0");
    return 0;
}

/* "type" must be one of the three words and go with what else is there. */
static int check_type(const struct dt_place *p, struct json_object *o, struct dt_error *e)
{
    static const char *const types[] = {"int", "float", "categorical"};
    struct dt_place q = dt_spec_under(p, "type");
    char *type = NULL;
    bool known = false;
    if (dt_spec_get_string(p, o, "type", &type, e) < 0)
        return -1;
    for (size_t i = 0; type && i < COUNT(types); i++)
        known |= strcmp(type, types[i]) == 0;
    int rc = 0;
    if (type && !known)
        rc = dt_spec_fail(&q, e,
                          "\"%s\" is not a type; \"int\" or \"float\" with low and high, "
                          "\"categorical\" with choices",
                          type);
    free(type);
    return rc;
}

static int check_choices_type(const struct dt_place *p, const struct dt_param *d,
                              struct json_object *o, struct dt_error *e)
{
    const char *type = dt_json_str(o, "type", "categorical");
    struct dt_place q = dt_spec_under(p, "type");
    bool fits = strcmp(type, "int") == 0     ? d->kind == DT_PARAM_INT
                : strcmp(type, "float") == 0 ? d->kind != DT_PARAM_LABEL
                                             : true;
    return fits ? 0
                : dt_spec_fail(
                      &q, e, "the choices are not all of the type \"%s\"; change it or them", type);
}

/* The condition is compiled where all parameters are known. */
static int parse_when(const struct dt_place *p, struct dt_param *d, struct json_object *o,
                      struct dt_error *e)
{
    struct dt_place q = dt_spec_under(p, "when");
    if (!dt_json_get(o, "when"))
        return 0;
    if (!d->hyper)
        return dt_spec_fail(&q, e,
                            "only hyperparameters take a condition, a job always has its servers, "
                            "workers and budgets; use \"constraints\"");
    d->when_place = dt_spec_place_path(&q);
    return dt_spec_get_string(p, o, "when", &d->when, e);
}

/* What the user wants is the result at the highest value, so that is also what the job as submitted
 * is run with. */
static int parse_fidelity(const struct dt_place *p, struct dt_param *d, struct json_object *o,
                          double *submitted, struct dt_error *e)
{
    struct dt_place q = dt_spec_under(p, "fidelity"), given = dt_spec_under(p, "default");
    struct json_object *fidelity = dt_json_get(o, "fidelity");
    if (fidelity && dt_spec_want(&q, fidelity, json_type_boolean, "true or false", e) < 0)
        return -1;
    d->fidelity = json_object_get_boolean(fidelity);
    if (!d->fidelity)
        return 0;
    if (!d->hyper)
        return dt_spec_fail(&q, e,
                            "only a hyperparameter can be the fidelity, not a part of the DT "
                            "configuration; take it out");
    if (d->kind == DT_PARAM_LABEL)
        return dt_spec_fail(&q, e,
                            "a fidelity is an amount of work and needs numbers, these "
                            "choices are words");
    if (smallest(d) <= 0)
        return dt_spec_fail(&q, e, "a fidelity is an amount of work and needs numbers above 0");
    if (dt_param_count(d) < 2)
        return dt_spec_fail(&q, e, "a fidelity needs a second value, lower and cheaper");
    if (d->when)
        return dt_spec_fail(&q, e, "a fidelity is always needed and takes no \"when\"");
    if (!isnan(*submitted) && *submitted < dt_param_highest(d))
        return dt_spec_fail(&given, e,
                            "the job as submitted is run at the highest fidelity, as the "
                            "result is wanted for it; leave the default out");
    *submitted = dt_param_highest(d);
    return 0;
}

/* Sizes of a worker that the nodes suggest, and how many of them there are. */
static bool may_be_natural(const char *name)
{
    return strcmp(name, "worker_gpus") == 0 || strcmp(name, "worker_cpus") == 0 ||
           strcmp(name, "worker_mem") == 0 || strcmp(name, "worker_nodes") == 0;
}

static bool is_auto(const struct dt_param *d, struct json_object *o)
{
    return !d->hyper && !is_kind(d->name) && json_object_is_type(o, json_type_string) &&
           strcmp(json_object_get_string(o), "auto") == 0;
}

static int parse_domain(const struct dt_place *p, struct dt_param *d, struct json_object *o,
                        double *submitted, struct dt_error *e)
{
    static const char *const keys[] = {"type",    "low",     "high", "step",    "log",
                                       "choices", "default", "when", "fidelity"};
    *submitted = NAN;
    if (is_auto(d, o)) {
        d->natural = true;
        return may_be_natural(d->name)
                   ? 0
                   : dt_spec_fail(
                         p, e,
                         "only worker_gpus, worker_cpus, worker_mem and worker_nodes can be "
                         "\"auto\"");
    }
    if (json_object_is_type(o, json_type_array))
        return parse_choices(p, d, o, e);
    if (!json_object_is_type(o, json_type_object))
        return add_choice(p, d, o, e); /* one fixed value */
    if (dt_spec_check_keys(p, o, keys, COUNT(keys), e) < 0)
        return -1;
    if (check_type(p, o, e) < 0)
        return -1;
    struct json_object *choices;
    if (json_object_object_get_ex(o, "choices", &choices)) {
        struct dt_place q = dt_spec_under(p, "choices");
        if (dt_json_get(o, "low") || dt_json_get(o, "high") || dt_json_get(o, "step"))
            return dt_spec_fail(p, e, "give either choices or low and high, not both");
        if (parse_choices(&q, d, choices, e) < 0 || check_choices_type(p, d, o, e) < 0)
            return -1;
    } else if (parse_bounds(p, d, o, e) < 0) {
        return -1;
    }
    if (parse_log(p, d, o, e) < 0 || parse_when(p, d, o, e) < 0)
        return -1;
    struct json_object *given = dt_json_get(o, "default");
    struct dt_place q = dt_spec_under(p, "default");
    if (given && !d->hyper)
        return dt_spec_fail(
            &q, e,
            "the job itself says what it was submitted with; only hyperparameters take a default");
    for (size_t i = 0; given && d->kind == DT_PARAM_LABEL && i < d->nvalues; i++)
        if (strcmp(json_object_get_string(given), d->labels[i]) == 0)
            *submitted = d->values[i];
    if (given && d->kind != DT_PARAM_LABEL && number_of(&q, d, given, submitted, e) < 0)
        return -1;
    if (given && (isnan(*submitted) || (d->values && !dt_param_contains(d, *submitted))))
        return dt_spec_fail(&q, e, "\"%s\" is not one of the choices",
                            json_object_get_string(given));
    return parse_fidelity(p, d, o, submitted, e);
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

static int check_dt_param(const struct dt_place *p, const struct dt_param *d, struct dt_error *e)
{
    if (is_kind(d->name))
        return d->kind == DT_PARAM_LABEL
                   ? 0
                   : dt_spec_fail(p, e, "words are needed here: {\"choices\": [\"a\", \"b\"]}");
    double most =
        is_size(d->name) ? 1e12 : 1e6; /* an exabyte; more than any cluster has of anything */
    double low = strcmp(d->name, "ps") == 0 || strstr(d->name, "_gpus") ? 0 : 1;
    if (d->kind != DT_PARAM_INT)
        return dt_spec_fail(p, e, "whole numbers are needed here");
    if (smallest(d) < low)
        return dt_spec_fail(p, e, "%g is too small, the least is %g", smallest(d), low);
    double largest = d->values ? dt_param_highest(d) : d->high; /* a wild one has no steps */
    if (largest > most)
        return dt_spec_fail(p, e, "%g is too large, the most is %g", largest, most);
    return 0;
}

int dt_spec_parse_params(struct dt_spec *s, const struct dt_place *top, struct json_object *section,
                         const char *section_name, bool hyper, struct dt_error *e)
{
    struct dt_place p = dt_spec_under(top, section_name);
    if (!section)
        return 0;
    if (dt_spec_want(&p, section, json_type_object, "an object", e) < 0)
        return -1;
    if (!hyper && dt_spec_check_keys(&p, section, dt_names, COUNT(dt_names), e) < 0)
        return -1;
    json_object_object_foreach(section, key, domain)
    {
        struct dt_place q = dt_spec_under(&p, key);
        if (hyper && !valid_name(key))
            return dt_spec_fail(
                &q, e, "a name must consist of letters, digits and _, as it becomes DT_PARAM_%s",
                key);
        if (hyper && dt_spec_is_dt_name(key))
            return dt_spec_fail(&q, e, "this belongs under \"dt\" in SPEC");
        if (hyper && is_taken(key))
            return dt_spec_fail(&q, e, "this name is taken by dt-tune");
        s->params = dt_xrealloc(s->params, s->nparams + 1, sizeof(*s->params));
        s->submitted = dt_xrealloc(s->submitted, s->nparams + 1, sizeof(*s->submitted));
        struct dt_param *d = &s->params[s->nparams];
        *d = (struct dt_param){.name = dt_xstrdup(key), .hyper = hyper};
        s->nparams++;
        if (parse_domain(&q, d, domain, &s->submitted[s->nparams - 1], e) < 0)
            return -1;
        for (size_t i = 0; d->fidelity && i + 1 < s->nparams; i++)
            if (s->params[i].fidelity)
                return dt_spec_fail(&q, e, "%s is the fidelity already, and there can be one",
                                    s->params[i].name);
        if (!hyper && !d->natural && check_dt_param(&q, d, e) < 0)
            return -1;
        if (!hyper && is_kind(key))
            d->place = dt_spec_place_path(&q);
    }
    return 0;
}
