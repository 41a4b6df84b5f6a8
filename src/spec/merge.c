/* --dt-... options put into the SPEC document, so that one reader checks both. */
#include "spec/spec.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The named section of the document, made where it is absent. NULL if it is there but no object. */
static struct json_object *section(struct json_object *doc, const char *name)
{
    struct json_object *o = NULL;
    if (!json_object_object_get_ex(doc, name, &o)) {
        o = json_object_new_object();
        json_object_object_add(doc, name, o);
    }
    return json_object_is_type(o, json_type_object) ? o : NULL;
}

static int put(struct json_object *doc, const char *section_name, const char *key,
               struct json_object *value, struct dt_error *e)
{
    struct json_object *o = section(doc, section_name);
    if (!o) {
        json_object_put(value);
        return dt_fail(e, "\"%s\" in SPEC must be an object", section_name);
    }
    json_object_object_add(o, key, value);
    return 0;
}

/* Slurm's range syntax: 0-4, 1,2,4, 0-16:4 and mixtures, to {"low","high","step"} or {"choices"}.
 */
static struct json_object *range_domain(const char *text, struct dt_error *e)
{
    struct json_object *list = json_object_new_array(), *single = NULL;
    struct dt_strv parts = DT_STRV_INIT;
    dt_strv_split(&parts, text, ",");
    bool bad =
        parts.n == 0 || text[0] == ',' || text[strlen(text) - 1] == ',' || strstr(text, ",,");
    for (size_t i = 0; i < parts.n && !bad; i++) {
        int64_t v[3] = {0, 0, 1};
        int n = 0, used = 0;
        const char *s = parts.v[i];
        bad = strspn(s, "0123456789-:") != strlen(s) || strlen(s) > 40;
        if (!bad &&
            sscanf(s, "%8ld%n-%8ld%n:%8ld%n", &v[0], &used, &v[1], &used, &v[2], &used) >= 1)
            n = used;
        bad = bad || n == 0 || s[n] || v[2] < 1 || v[0] < 0;
        if (!strchr(s, '-'))
            v[1] = v[0];
        bad = bad || v[1] < v[0] || (v[1] - v[0]) / v[2] > 100000;
        if (!bad && parts.n == 1 && v[1] > v[0]) {
            single = json_object_new_object();
            json_object_object_add(single, "low", json_object_new_int64(v[0]));
            json_object_object_add(single, "high", json_object_new_int64(v[1]));
            if (v[2] != 1)
                json_object_object_add(single, "step", json_object_new_int64(v[2]));
        }
        for (int64_t x = v[0]; !bad && !single && x <= v[1]; x += v[2])
            json_object_array_add(list, json_object_new_int64(x));
    }
    dt_strv_free(&parts);
    if (bad || single) {
        json_object_put(list);
        if (bad)
            dt_fail(e, "\"%s\" is not a range; write it like 0-4, 1,2,4 or 0-16:4", text);
        return single;
    }
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "choices", list);
    return o;
}

/* A number as JSON, keeping "is it whole"; NULL if it is none. */
static struct json_object *number(const char *s)
{
    int64_t i;
    double x;
    if (dt_parse_int64(s, &i) == 0)
        return json_object_new_int64(i);
    if (dt_parse_double(s, &x) == 0)
        return json_object_new_double_s(x, s);
    return NULL;
}

/* {sgd,adam}, or the same without braces */
static struct json_object *choices_domain(const char *text, struct dt_error *e)
{
    size_t len = strlen(text), inner = len;
    bool braces = *text == '{';
    if (braces)
        inner = len >= 2 && text[len - 1] == '}' ? len - 2 : 0;
    const char *first = text + braces;
    if (!inner || strcspn(first, "{}") < inner || *first == ',' || first[inner - 1] == ',' ||
        strstr(text, ",,")) {
        dt_fail(e, "\"%s\" is not a list of choices; write it like {sgd,adam}", text);
        return NULL;
    }
    struct json_object *list = json_object_new_array(), *o = json_object_new_object();
    struct dt_strv words = DT_STRV_INIT;
    dt_strv_split(&words, text, "{,}");
    bool numbers = true;
    for (size_t i = 0; i < words.n; i++) {
        struct json_object *x = number(words.v[i]);
        numbers &= x != NULL;
        json_object_put(x);
    }
    for (size_t i = 0; i < words.n; i++)
        json_object_array_add(list,
                              numbers ? number(words.v[i]) : json_object_new_string(words.v[i]));
    dt_strv_free(&words);
    json_object_object_add(o, "choices", list);
    return o;
}

/* low..high[:log|:log2|:STEP] */
static struct json_object *interval_domain(const char *text, struct dt_error *e)
{
    const char *dots = strstr(text, ".."), *colon = strchr(text, ':');
    char *low_text = dt_xstrndup(text, (size_t)(dots - text));
    char *high_text = dt_xstrndup(dots + 2, colon ? (size_t)(colon - dots - 2) : strlen(dots + 2));
    struct json_object *low = number(low_text), *high = number(high_text);
    struct json_object *o = NULL, *step = NULL;
    if (!low || !high) {
        dt_fail(e, "\"%s\" is not a number", low ? high_text : low_text);
    } else if (colon && strcmp(colon, ":log2") == 0) {
        int64_t a = json_object_get_int64(low), b = json_object_get_int64(high);
        bool whole =
            json_object_is_type(low, json_type_int) && json_object_is_type(high, json_type_int);
        if (!whole || a < 1 || b < a) {
            dt_fail(e,
                    ":log2 doubles from low to high, so both must be whole, above 0 and in order");
        } else {
            struct json_object *list = json_object_new_array();
            for (; a <= b; a *= 2) {
                json_object_array_add(list, json_object_new_int64(a));
                if (a > b / 2)
                    break; /* before it overflows */
            }
            o = json_object_new_object();
            json_object_object_add(o, "choices", list);
            json_object_object_add(o, "log", json_object_new_boolean(true));
        }
    } else if (colon && strcmp(colon, ":log") != 0 && !(step = number(colon + 1))) {
        dt_fail(e, "\"%s\": after the colon comes log, log2 or a step", colon);
    } else {
        o = json_object_new_object();
        json_object_object_add(o, "low", json_object_get(low));
        json_object_object_add(o, "high", json_object_get(high));
        if (step)
            json_object_object_add(o, "step", json_object_get(step));
        else if (colon)
            json_object_object_add(o, "log", json_object_new_boolean(true));
    }
    json_object_put(low);
    json_object_put(high);
    json_object_put(step);
    free(low_text);
    free(high_text);
    return o;
}

static int put_param(struct json_object *doc, const char *text, struct dt_error *e)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return dt_fail(
            e, "\"%s\": write it like lr=1e-4..0.1:log, batch=32..1024:log2 or opt={sgd,adam}",
            text);
    struct json_object *domain;
    if (strstr(equals, ".."))
        domain = interval_domain(equals + 1, e);
    else
        domain = choices_domain(equals + 1, e);
    if (!domain)
        return dt_fail_at(e, "\"%s\"", text);
    char *name = dt_xstrndup(text, (size_t)(equals - text));
    int rc = put(doc, "hyperparameters", name, domain, e);
    free(name);
    return rc;
}

static int put_objective(struct json_object *doc, const char *text, struct dt_error *e)
{
    struct json_object *o = json_object_new_object();
    bool min = dt_starts_with(text, "min:"), max = dt_starts_with(text, "max:");
    if ((!min && !max) && strcmp(text, "time") != 0 && strcmp(text, "throughput") != 0 &&
        strcmp(text, "cost") != 0 && strcmp(text, "turnaround") != 0) {
        json_object_put(o);
        return dt_fail(e,
                       "\"%s\" is not an objective; time, throughput, cost, turnaround, min:METRIC "
                       "or max:METRIC",
                       text);
    }
    if ((min || max) && !text[4]) {
        json_object_put(o);
        return dt_fail(e, "\"%s\": the metric's name is missing after the colon", text);
    }
    json_object_object_add(o, "metric", json_object_new_string(min || max ? text + 4 : text));
    if (min || max)
        json_object_object_add(o, "goal", json_object_new_string(min ? "minimize" : "maximize"));
    json_object_object_add(doc, "objective", o);
    return 0;
}

static int put_target(struct json_object *doc, const char *text, struct dt_error *e)
{
    const char *op = strpbrk(text, "<>");
    double x;
    if (!op || op == text || op[1] != '=' || dt_parse_double(op + 2, &x) < 0)
        return dt_fail(e, "\"%s\": write it like accuracy>=0.9 or loss<=0.1", text);
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "metric", json_object_new_string_len(text, (int)(op - text)));
    json_object_object_add(o, *op == '>' ? "at_least" : "at_most", number(op + 2));
    json_object_object_add(doc, "target", o);
    return 0;
}

static int put_count(struct json_object *doc, const char *key, const char *text, struct dt_error *e)
{
    int64_t n;
    if (!isdigit((unsigned char)*text) || dt_parse_int64(text, &n) < 0 || n < 1 || n > 1000000)
        return dt_fail(e, "\"%s\": a whole number between 1 and 1000000 is needed", text);
    return put(doc, "search", key, json_object_new_int64(n), e);
}

static int put_min_improve(struct json_object *doc, const char *text, struct dt_error *e)
{
    const char *colon = strchr(text, ':');
    char *pct = dt_xstrndup(text, colon ? (size_t)(colon - text) : strlen(text));
    size_t len = strlen(pct);
    double x;
    if (len && pct[len - 1] == '%')
        pct[len - 1] = '\0';
    int64_t window = 1;
    int rc = dt_parse_double(pct, &x) < 0 || x < 0 || x > 100 ? -1 : 0;
    if (colon && (dt_parse_int64(colon + 1, &window) < 0 || window < 1))
        rc = -1;
    free(pct);
    if (rc < 0)
        return dt_fail(
            e, "\"%s\": write it like 2 or 2:5 (per cent, over the last 5 configurations)", text);
    if (put(doc, "search", "min_improve", dt_json_number(x), e) < 0)
        return -1;
    return colon ? put_count(doc, "window", colon + 1, e) : 0;
}

static int put_repeats(struct json_object *doc, const char *text, struct dt_error *e)
{
    int64_t n;
    if (dt_parse_int64(text, &n) < 0 || n < 0 || n > 1000000)
        return dt_fail(e, "\"%s\": a whole number between 0 and 1000000 is needed", text);
    return put(doc, "search", "repeats", json_object_new_int64(n), e);
}

static int put_hours(struct json_object *doc, const char *text, struct dt_error *e)
{
    double hours;
    if (dt_parse_double(text, &hours) < 0 || !(hours > 0))
        return dt_fail(e, "\"%s\": a number of hours above 0 is needed", text);
    return put(doc, "search", "max_node_hours", dt_json_number(hours), e);
}

static int put_deadline(struct json_object *doc, const char *text, struct dt_error *e)
{
    double s;
    if (dt_parse_time(text, &s) < 0 || s <= 0)
        return dt_fail(
            e, "\"%s\" is not a time; write it as Slurm does: 90 (minutes), 1:30:00, 1-12", text);
    return put(doc, "search", "deadline", json_object_new_string(text), e);
}

/* Whether two options give single choices of the same parameter: opt=sgd and opt=adam. */
static bool same_choices(const struct dt_option *a, const struct dt_option *b)
{
    if (a->origin != DT_FROM_ARGV || b->origin != DT_FROM_ARGV ||
        strcmp(a->name, "dt-param") != 0 || strcmp(b->name, "dt-param") != 0 || !a->value ||
        !b->value)
        return false;
    size_t n = strcspn(a->value, "=");
    return a->value[n] && strncmp(a->value, b->value, n + 1) == 0 &&
           !strpbrk(a->value + n, "{,}") && !strpbrk(b->value + n, "{,}") &&
           !strstr(a->value + n, "..") && !strstr(b->value + n, "..");
}

/* A shell tears --dt-param=opt={sgd,adam} into --dt-param=opt=sgd --dt-param=opt=adam; this puts it
 * together again: the value of option i with those of its like right before it. Caller frees. */
static char *value_of(const struct dt_submission *s, size_t i)
{
    const char *v = s->options[i].value ? s->options[i].value : "";
    size_t first = i;
    while (first > 0 && same_choices(&s->options[first - 1], &s->options[i]))
        first--;
    if (first == i)
        return dt_xstrdup(v);
    int n = (int)strcspn(v, "=") + 1;
    struct dt_buf b = DT_BUF_INIT;
    dt_buf_addf(&b, "%.*s{", n, v);
    for (; first <= i; first++)
        dt_buf_addf(&b, "%s%c", s->options[first].value + n, first < i ? ',' : '}');
    return dt_buf_take(&b);
}

static int put_option(struct json_object *doc, const struct dt_option *o, const char *v,
                      struct dt_error *e)
{
    const char *name = o->name;
    struct json_object *domain;
    if (strcmp(name, "dt-ps") == 0 || strcmp(name, "dt-workers") == 0) {
        domain = range_domain(v, e);
        return domain ? put(doc, "dt", name + 3, domain, e) : -1;
    }
    if (strcmp(name, "dt-param") == 0)
        return put_param(doc, v, e);
    if (strcmp(name, "dt-objective") == 0)
        return put_objective(doc, v, e);
    if (strcmp(name, "dt-target") == 0)
        return put_target(doc, v, e);
    if (strcmp(name, "dt-max-configs") == 0)
        return put_count(doc, "max_configs", v, e);
    if (strcmp(name, "dt-repeats") == 0)
        return put_repeats(doc, v, e);
    if (strcmp(name, "dt-parallel") == 0 && strcmp(v, "auto") == 0)
        return put(doc, "search", "parallel", json_object_new_string(v), e);
    if (strcmp(name, "dt-parallel") == 0)
        return put_count(doc, "parallel", v, e);
    if (strcmp(name, "dt-min-improve") == 0)
        return put_min_improve(doc, v, e);
    if (strcmp(name, "dt-max-node-hours") == 0)
        return put_hours(doc, v, e);
    if (strcmp(name, "dt-deadline") == 0)
        return put_deadline(doc, v, e);
    if (strcmp(name, "dt-layout") == 0)
        json_object_object_add(doc, "layout", json_object_new_string(v));
    /* --dt-tune, --dt-resume, --dt-dry-run, --dt-config, --dt-apply are not about the search */
    return 0;
}

/* Puts an option into the document, after a check on its own: once it is in there, nobody could
 * tell where it came from. */
static int put_checked(struct json_object *doc, const struct dt_submission *s, size_t i,
                       struct dt_error *e)
{
    const struct dt_option *o = &s->options[i];
    char *value = value_of(s, i);
    struct json_object *alone = json_object_new_object();
    struct dt_spec *spec = NULL;
    int rc = put_option(alone, o, value, e);
    if (rc == 0 && !(spec = dt_spec_parse(alone, NULL, NULL, e)))
        rc = strcmp(o->name, "dt-param") == 0 ? dt_fail_at(e, "\"%s\"", value) : -1;
    if (rc == 0)
        rc = put_option(doc, o, value, e);
    if (rc < 0)
        dt_fail_at_option(s, o, e);
    dt_spec_free(spec);
    json_object_put(alone);
    free(value);
    return rc;
}

struct json_object *dt_spec_merge(const struct dt_submission *s, char **text, char **name,
                                  struct dt_error *e)
{
    struct json_object *doc = NULL;
    const struct dt_option *tune = dt_submission_get(s, "dt-tune");
    *text = *name = NULL;
    if (tune && tune->value) {
        if (*tune->value)
            *text = dt_read_text(tune->value, 1024 * 1024, e);
        else
            dt_fail(e, "the file's name is missing; write --dt-tune=SPEC.json, or --dt-tune alone");
        doc = *text ? dt_json_parse(*text, tune->value, e) : NULL;
        if (doc && !json_object_is_type(doc, json_type_object)) {
            dt_fail(e, "%s: SPEC must be one JSON object", tune->value);
            json_object_put(doc);
            doc = NULL;
        }
        if (!*text)
            dt_fail_at_option(s, tune, e);
        if (!doc)
            return NULL;
        *name = dt_xstrdup(tune->value);
    } else {
        doc = json_object_new_object();
        *name = dt_xstrdup("options");
    }
    for (size_t i = 0; i < s->n; i++) {
        bool ours = s->options[i].def && s->options[i].def->class == DT_OPT_DT;
        if (ours && put_checked(doc, s, i, e) < 0) {
            json_object_put(doc);
            return NULL;
        }
    }
    return doc;
}

void dt_spec_add_config(struct json_object *doc, struct json_object *config)
{
    struct json_object *dt = section(doc, "dt"), *hyper = section(doc, "hyperparameters");
    if (!dt || !hyper || !json_object_is_type(config, json_type_object))
        return; /* the reader of the document or of the configuration will say so */
    json_object_object_foreach(config, key, value)
    {
        if (strcmp(key, "layout") != 0 && !dt_json_get(dt, key) && !dt_json_get(hyper, key))
            json_object_object_add(dt_spec_is_dt_name(key) ? dt : hyper, key,
                                   json_object_get(value));
    }
}
