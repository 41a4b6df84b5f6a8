#include "space/space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int dt_space_index(const struct dt_space *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->params[i].name, name) == 0)
            return (int)i;
    return -1;
}

double dt_space_value(const struct dt_space *s, const double *x, const char *name, double fallback)
{
    int i = dt_space_index(s, name);
    return i < 0 || isnan(x[i]) ? fallback : x[i];
}

const char *dt_space_label(const struct dt_space *s, const double *x, const char *name)
{
    int i = dt_space_index(s, name);
    for (size_t j = 0; i >= 0 && s->params[i].labels && j < s->params[i].nvalues; j++)
        if (s->params[i].values[j] == x[i])
            return s->params[i].labels[j];
    return NULL;
}

bool dt_config_equal(const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i] && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

bool dt_space_allows(const struct dt_space *s, const double *x, const char **why)
{
    const char *reason = NULL;
    for (size_t i = 0; i < s->nconstraints && !reason; i++)
        if (!dt_constraint_holds(s->constraints[i], x))
            reason = dt_constraint_text(s->constraints[i]);
    if (!reason && s->filter)
        reason = s->filter(s->filter_arg, s, x);
    if (why)
        *why = reason;
    return !reason;
}

bool dt_space_has(const struct dt_space *s, const double *x)
{
    for (size_t i = 0; i < s->n; i++)
        if (isnan(x[i]) == dt_space_active(s, x, i))
            return false;
    for (size_t i = 0; i < s->npoints && s->enumerated; i++)
        if (dt_config_equal(s->points + i * s->n, x, s->n))
            return true;
    return !s->enumerated && dt_space_allows(s, x, NULL);
}

bool dt_space_active(const struct dt_space *s, const double *x, size_t i)
{
    return dt_conditions_active(s->conditions, x, i);
}

void dt_space_settle(const struct dt_space *s, double *x)
{
    dt_conditions_settle(s->conditions, x);
}

static void exclude(struct dt_space *s, const char *reason)
{
    for (size_t i = 0; i < s->nexclusions; i++) {
        if (strcmp(s->exclusions[i].reason, reason) == 0) {
            s->exclusions[i].count++;
            return;
        }
    }
    s->exclusions = dt_xrealloc(s->exclusions, s->nexclusions + 1, sizeof(*s->exclusions));
    s->exclusions[s->nexclusions++] = (struct dt_exclusion){dt_xstrdup(reason), 1};
}

/* Takes x into points[] if it is allowed; else counts the reason. */
static void offer(struct dt_space *s, const double *x, size_t *room)
{
    const char *why;
    if (!dt_space_allows(s, x, &why)) {
        exclude(s, why);
        return;
    }
    if (s->npoints == *room) {
        *room = *room ? *room * 2 : 64;
        s->points = dt_xrealloc(s->points, *room * s->n, sizeof(double));
    }
    memcpy(s->points + s->npoints++ * s->n, x, s->n * sizeof(double));
}

/* How many configurations there are with these values of what conditions mention. */
static double size_with(const struct dt_space *s, const double *x)
{
    double size = 1;
    for (size_t i = 0; i < s->n; i++) {
        double n = dt_param_count(&s->params[i]);
        if (dt_space_active(s, x, i) && (isnan(x[i]) || isinf(n)))
            size *= n;
    }
    return size;
}

/* Only what conditions mention has to be walked over. Where even that is too much it is the bound
 * without any condition. */
static double product_of(const struct dt_space *s)
{
    struct dt_walk w = {.conditions = s->conditions, .among = s->conditions->mentioned};
    double sum = 0, bound = 1;
    bool more = true;
    for (size_t i = 0; i < s->n; i++)
        bound *= dt_param_count(&s->params[i]);
    dt_walk_start(&w);
    for (size_t steps = 0; more && steps < DT_SPACE_ENUMERATED; steps++) {
        sum += size_with(s, w.x);
        more = dt_walk_next(&w);
    }
    dt_walk_end(&w);
    return more ? bound : sum;
}

static void enumerate(struct dt_space *s)
{
    struct dt_walk w = {.conditions = s->conditions};
    size_t room = 0;
    dt_walk_start(&w);
    do {
        offer(s, w.x, &room);
    } while (dt_walk_next(&w));
    dt_walk_end(&w);
}

/* The parameters of the DT configuration; NULL where it is not a space of its own. Caller frees. */
static bool *dt_part(const struct dt_space *s)
{
    bool *among = dt_xcalloc(s->n, sizeof(*among));
    double size = 1;
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_constraint *when = s->conditions->when[i];
        among[i] = !s->params[i].hyper;
        size *= among[i] ? dt_param_count(&s->params[i]) : 1;
        for (size_t k = 0; among[i] && when && k < s->n; k++)
            if (s->params[k].hyper && dt_constraint_mentions(when, k))
                size = INFINITY;
    }
    if (size > 1 && size <= DT_SPACE_ENUMERATED)
        return among;
    free(among);
    return NULL;
}

/* Where all is too much, at least the DT configurations are looked at: what none of the
 * hyperparameters can make possible is counted with its reason. */
static void count_dt(struct dt_space *s)
{
    bool *among = dt_part(s);
    struct dt_walk w = {.conditions = s->conditions, .among = among};
    const char *why;
    if (!among)
        return;
    dt_walk_start(&w);
    do {
        if (dt_space_allows(s, w.x, &why))
            s->ndt++;
        else
            exclude(s, why);
    } while (dt_walk_next(&w));
    dt_walk_end(&w);
    free(among);
}

/* NaN comes behind all numbers. */
static int compare_rows(const void *a, const void *b, void *arg)
{
    const double *x = *(const double *const *)a, *y = *(const double *const *)b;
    for (size_t i = 0; i < *(const size_t *)arg; i++) {
        if (x[i] == y[i] || (isnan(x[i]) && isnan(y[i])))
            continue;
        return isnan(y[i]) || x[i] < y[i] ? -1 : 1;
    }
    return x < y ? -1 : x > y; /* the first of equals stays the first */
}

/* Takes the rows in their order, equal ones once. */
static void offer_rows(struct dt_space *s, const double *rows, size_t n)
{
    double *x = dt_xcalloc(n * s->n, sizeof(*x));
    const double **sorted = dt_xcalloc(n, sizeof(*sorted));
    bool *again = dt_xcalloc(n, sizeof(*again));
    size_t room = 0;
    memcpy(x, rows, n * s->n * sizeof(*x));
    for (size_t i = 0; i < n; i++) {
        dt_space_settle(s, x + i * s->n);
        sorted[i] = x + i * s->n;
    }
    qsort_r(sorted, n, sizeof(*sorted), compare_rows, &s->n);
    for (size_t i = 1; i < n; i++)
        if (dt_config_equal(sorted[i - 1], sorted[i], s->n))
            again[(size_t)(sorted[i] - x) / s->n] = true;
    for (size_t i = 0; i < n; i++)
        if (!again[i])
            offer(s, x + i * s->n, &room);
    free(x);
    free(sorted);
    free(again);
}

static int refuse_empty(const struct dt_space *s, const struct dt_fact *facts, size_t nfacts,
                        struct dt_error *e)
{
    struct dt_buf known = DT_BUF_INIT;
    for (size_t i = 0; i < nfacts; i++)
        dt_buf_addf(&known, "%s%s %.0f%s", i ? ", " : " (", facts[i].name, facts[i].value,
                    i + 1 < nfacts ? "" : ")");
    struct dt_buf b = DT_BUF_INIT;
    for (size_t i = 0; i < s->nexclusions; i++)
        dt_buf_addf(&b, "%s%zu excluded by \"%s\"", i ? ", " : "", s->exclusions[i].count,
                    s->exclusions[i].reason);
    dt_fail(e, "the search space is empty: %s; widen the ranges or loosen the constraints%s",
            b.s ? b.s : "no candidate", known.s ? known.s : "");
    dt_buf_free(&known);
    dt_buf_free(&b);
    return -1;
}

static int compile(struct dt_space *s, const struct dt_strv *constraints,
                   const struct dt_fact *facts, size_t nfacts, struct dt_error *e)
{
    s->conditions = dt_conditions_new(s->params, s->n, facts, nfacts, e);
    if (!s->conditions)
        return -1;
    s->constraints = dt_xcalloc(constraints->n, sizeof(*s->constraints));
    for (size_t i = 0; i < constraints->n; i++) {
        struct dt_constraint *c =
            dt_constraint_new(constraints->v[i], s->params, s->n, facts, nfacts, e);
        if (!c)
            return -1;
        s->constraints[s->nconstraints++] = c;
    }
    return 0;
}

struct dt_space *dt_space_new(const struct dt_param *params, size_t n,
                              const struct dt_strv *constraints, const struct dt_fact *facts,
                              size_t nfacts, dt_space_filter *filter, void *filter_arg,
                              const double *candidates, size_t ncandidates, struct dt_error *e)
{
    struct dt_space *s = dt_xcalloc(1, sizeof(*s));
    s->params = dt_xcalloc(n, sizeof(*s->params));
    s->n = n;
    s->filter = filter;
    s->filter_arg = filter_arg;
    for (size_t i = 0; i < n; i++)
        dt_param_copy(&s->params[i], &params[i]);
    if (compile(s, constraints, facts, nfacts, e) < 0) {
        dt_space_free(s);
        return NULL;
    }
    s->product = product_of(s);
    s->enumerated = candidates || s->product <= DT_SPACE_ENUMERATED;
    if (candidates)
        offer_rows(s, candidates, ncandidates);
    else if (s->enumerated)
        enumerate(s);
    else
        count_dt(s);
    if (s->npoints + s->ndt == 0 && (s->enumerated || s->nexclusions)) {
        refuse_empty(s, facts, nfacts, e);
        dt_space_free(s);
        return NULL;
    }
    return s;
}

void dt_space_free(struct dt_space *s)
{
    if (!s)
        return;
    dt_conditions_free(s->conditions);
    for (size_t i = 0; i < s->n; i++)
        dt_param_free(&s->params[i]);
    for (size_t i = 0; i < s->nconstraints; i++)
        dt_constraint_free(s->constraints[i]);
    for (size_t i = 0; i < s->nexclusions; i++)
        free(s->exclusions[i].reason);
    free(s->params);
    free(s->constraints);
    free(s->exclusions);
    free(s->points);
    free(s);
}

struct json_object *dt_config_to_json(const struct dt_space *s, const double *x)
{
    struct json_object *o = json_object_new_object();
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_param *p = &s->params[i];
        struct json_object *v = NULL;
        if (!dt_space_active(s, x, i))
            continue;
        if (!isnan(x[i])) {
            char *text = dt_param_text(p, x[i]);
            v = p->labels ? json_object_new_string(text) : dt_json_number(x[i]);
            free(text);
        }
        json_object_object_add(o, p->name, v);
    }
    return o;
}

static int value_from_json(const struct dt_param *p, struct json_object *v, double *x,
                           struct dt_error *e)
{
    if (!v) {
        *x = NAN;
        return 0;
    }
    for (size_t i = 0; p->labels && i < p->nvalues; i++) {
        if (json_object_is_type(v, json_type_string) &&
            strcmp(json_object_get_string(v), p->labels[i]) == 0) {
            *x = p->values[i];
            return 0;
        }
    }
    bool number = json_object_is_type(v, json_type_int) || json_object_is_type(v, json_type_double);
    if (number && p->kind != DT_PARAM_LABEL) {
        *x = json_object_get_double(v);
        return isfinite(*x) ? 0 : dt_fail(e, "\"%s\": not a finite number", p->name);
    }
    if (json_object_is_type(v, json_type_string) && p->kind != DT_PARAM_LABEL) {
        uint64_t mib; /* a memory size outside the list, of the job as submitted */
        if (p->labels && dt_parse_mem(json_object_get_string(v), &mib) == 0) {
            *x = (double)mib;
            return 0;
        }
    }
    return dt_fail(e, "\"%s\": %s is not one of its values", p->name,
                   json_object_to_json_string(v));
}

/* Parameter i of a configuration; what its condition mentions is in x already. */
static int take_value(const struct dt_space *s, size_t i, struct json_object *o, const double *rest,
                      double *x, struct dt_error *e)
{
    const struct dt_param *p = &s->params[i];
    struct json_object *v = NULL;
    bool given = json_object_object_get_ex(o, p->name, &v);
    x[i] = NAN;
    if (!dt_space_active(s, x, i))
        return !v ? 0
                  : dt_fail(e,
                            "\"%s\" has a value, but its condition %s does not hold; leave it out",
                            p->name, p->when);
    if (given)
        return value_from_json(p, v, &x[i], e);
    if (rest)
        x[i] = rest[i];
    else if (p->when)
        return dt_fail(e, "\"%s\" is missing, as its condition %s holds", p->name, p->when);
    else
        return dt_fail(e, "\"%s\" is missing", p->name);
    return 0;
}

int dt_config_complete(const struct dt_space *s, struct json_object *o, const double *rest,
                       double *x, struct dt_error *e)
{
    if (!json_object_is_type(o, json_type_object))
        return dt_fail(e, "a configuration must be an object like {\"ps\": 1, \"workers\": 4}");
    json_object_object_foreach(o, key, unused)
    {
        (void)unused;
        if (dt_space_index(s, key) < 0)
            return dt_fail(e, "configuration: \"%s\" is not a parameter of the space", key);
    }
    for (size_t k = 0; k < s->n; k++)
        if (take_value(s, s->conditions->order[k], o, rest, x, e) < 0)
            return dt_fail_at(e, "configuration");
    return 0;
}

int dt_config_from_json(const struct dt_space *s, struct json_object *o, double *x,
                        struct dt_error *e)
{
    return dt_config_complete(s, o, NULL, x, e);
}

char *dt_config_text(const struct dt_space *s, const double *x)
{
    struct dt_buf b = DT_BUF_INIT;
    for (size_t i = 0; i < s->n; i++) {
        if (isnan(x[i]))
            continue;
        char *text = dt_param_text(&s->params[i], x[i]);
        dt_buf_addf(&b, "%s%s=%s", b.len ? " " : "", s->params[i].name, text);
        free(text);
    }
    return dt_buf_take(&b);
}

static void describe_param(struct dt_buf *b, const struct dt_param *p)
{
    dt_buf_addf(b, "  %-14s ", p->name);
    if (p->values) {
        for (size_t i = 0; i < p->nvalues; i++) {
            char *text = dt_param_text(p, p->values[i]);
            dt_buf_addf(b, "%s%s", i ? ", " : "", text);
            free(text);
        }
    } else {
        char *low = dt_format_double(p->low), *high = dt_format_double(p->high);
        dt_buf_addf(b, "%s .. %s", low, high);
        if (p->step > 0 && !(p->kind == DT_PARAM_INT && p->step == 1)) {
            char *step = dt_format_double(p->step);
            dt_buf_addf(b, " by %s", step);
            free(step);
        }
        free(low);
        free(high);
    }
    dt_buf_add(b, p->log ? " (log scale)" : "");
    if (p->fidelity) {
        char *highest = dt_format_double(dt_param_highest(p));
        dt_buf_addf(b, " (fidelity: the result is for %s)", highest);
        free(highest);
    }
    if (p->when)
        dt_buf_addf(b, " (when %s)", p->when);
    dt_buf_add(b, "\n");
}

static size_t count_full(const struct dt_space *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->npoints; i++)
        n += dt_space_is_full(s, s->points + i * s->n);
    return n;
}

char *dt_space_describe(const struct dt_space *s)
{
    struct dt_buf b = DT_BUF_INIT;
    for (size_t i = 0; i < s->n; i++)
        describe_param(&b, &s->params[i]);
    for (size_t i = 0; i < s->nconstraints; i++)
        dt_buf_addf(&b, "  subject to     %s\n", dt_constraint_text(s->constraints[i]));
    if (s->enumerated && dt_space_fidelity(s) >= 0)
        dt_buf_addf(&b, "  %zu configurations, at all fidelities %zu\n", count_full(s), s->npoints);
    else if (s->enumerated)
        dt_buf_addf(&b, "  %zu configurations\n", s->npoints);
    else if (isfinite(s->product))
        dt_buf_addf(&b, "  up to %.4g configurations\n", s->product);
    else
        dt_buf_add(&b, "  infinitely many configurations (a parameter is continuous)\n");
    if (s->ndt)
        dt_buf_addf(&b, "  %zu DT configurations\n", s->ndt);
    for (size_t i = 0; i < s->nexclusions; i++)
        dt_buf_addf(&b, "  %zu excluded: %s\n", s->exclusions[i].count, s->exclusions[i].reason);
    return dt_buf_take(&b);
}
