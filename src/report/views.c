/* What the plots of a page need beyond the report: the course of the study, and what the model
 * believes. */
#include "optimizer/explain.h"
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AXIS 24     /* values of a parameter that are looked at, at most */
#define SURFACES 15 /* pairs of parameters, at most */

/* To six digits: nobody reads more off a plot. */
static struct json_object *rounded(double x)
{
    char text[32];
    double y = x;
    snprintf(text, sizeof(text), "%.6g", x);
    return isfinite(x) && dt_parse_double(text, &y) == 0 ? dt_json_number(y) : NULL;
}

static void add_string(struct json_object *o, const char *key, const char *value)
{
    json_object_object_add(o, key, value ? json_object_new_string(value) : NULL);
}

static struct json_object *course_json(const struct dt_study *s)
{
    struct json_object *list = json_object_new_array();
    size_t n;
    struct dt_milestone *course = dt_report_course(s, &n);
    for (size_t i = 0; i < n; i++) {
        struct json_object *o = json_object_new_object();
        json_object_object_add(o, "trial", json_object_new_int(course[i].t->id));
        json_object_object_add(o, "best",
                               course[i].best ? json_object_new_int(course[i].best->id) : NULL);
        json_object_object_add(o, "mean", rounded(course[i].mean));
        json_object_array_add(list, o);
    }
    free(course);
    return list;
}

/* ---- the model ---- */

struct view {
    const struct dt_explanation *of;
    const struct dt_space *space;
    const double *best; /* what is not looked at is as there */
};

struct axis {
    size_t param, n;
    double at[AXIS];
};

static struct axis axis_of(const struct dt_space *s, size_t param)
{
    struct axis a = {.param = param};
    const struct dt_param *p = &s->params[param];
    double count = dt_param_count(p);
    bool all = count <= AXIS;
    size_t most = all ? (size_t)count : AXIS;
    for (size_t i = 0; i < most; i++) {
        double x = all ? dt_param_nth(p, i) : dt_param_at(p, (double)i / (AXIS - 1));
        if (!a.n || a.at[a.n - 1] != x)
            a.at[a.n++] = x;
    }
    return a;
}

static struct json_object *axis_json(const struct dt_space *s, const struct axis *a)
{
    struct json_object *list = json_object_new_array();
    for (size_t i = 0; i < a->n; i++) {
        const struct dt_param *p = &s->params[a->param];
        char *text = dt_param_text(p, a->at[i]);
        json_object_array_add(list, p->labels ? json_object_new_string(text) : rounded(a->at[i]));
        free(text);
    }
    return list;
}

/* Puts the configuration of the best, but for the values of x and y, into row; whether that is
 * allowed. With layout het there is no ps=0, for one: so where it is not, another layout will do.
 */
static bool vary(const struct view *v, const struct axis *x, double at_x, const struct axis *y,
                 double at_y, double *row)
{
    const struct dt_space *s = v->space;
    int layout = dt_space_index(s, "layout");
    bool fixed = layout < 0 || (size_t)layout == x->param || (y && (size_t)layout == y->param);
    size_t others = fixed ? 0 : s->params[layout].nvalues;
    for (size_t i = 0; i <= others; i++) {
        memcpy(row, v->best, s->n * sizeof(double));
        row[x->param] = at_x;
        if (y)
            row[y->param] = at_y;
        if (i)
            row[layout] = s->params[layout].values[i - 1];
        dt_space_settle(s, row);
        bool active = !isnan(row[x->param]) && (!y || !isnan(row[y->param]));
        if (active && dt_space_allows(s, row, NULL))
            return true;
    }
    return false;
}

/* What is expected for each value of x, and where y is not NULL with each of y; NaN where nothing
 * like that is allowed. Caller frees. */
static struct dt_expected *look(const struct view *v, const struct axis *x, const struct axis *y)
{
    size_t columns = v->space->n, ny = y ? y->n : 1, n = x->n * ny;
    double *rows = dt_xcalloc(n * columns, sizeof(double));
    bool *allowed = dt_xcalloc(n, sizeof(bool));
    struct dt_expected *out = dt_xcalloc(n, sizeof(*out));
    for (size_t i = 0; i < n; i++)
        allowed[i] = vary(v, x, x->at[i % x->n], y, y ? y->at[i / x->n] : 0, rows + i * columns);
    dt_explain_at(v->of, rows, n, out);
    for (size_t i = 0; i < n; i++)
        if (!allowed[i])
            out[i] = (struct dt_expected){NAN, NAN, NAN};
    free(rows);
    free(allowed);
    return out;
}

static struct json_object *slice_json(const struct view *v, size_t param)
{
    struct json_object *o = json_object_new_object(), *mean = json_object_new_array(),
                       *low = json_object_new_array(), *high = json_object_new_array();
    struct axis a = axis_of(v->space, param);
    struct dt_expected *at = look(v, &a, NULL);
    for (size_t i = 0; i < a.n; i++) {
        json_object_array_add(mean, rounded(at[i].mean));
        json_object_array_add(low, rounded(at[i].low));
        json_object_array_add(high, rounded(at[i].high));
    }
    add_string(o, "param", v->space->params[param].name);
    json_object_object_add(o, "at", axis_json(v->space, &a));
    json_object_object_add(o, "mean", mean);
    json_object_object_add(o, "low", low);
    json_object_object_add(o, "high", high);
    free(at);
    return o;
}

/* Which of the three numbers that are known of what is expected. */
enum told { TOLD_MEAN, TOLD_LOW, TOLD_HIGH };

static struct json_object *rows_json(const struct dt_expected *at, size_t nx, size_t ny,
                                     enum told told)
{
    struct json_object *rows = json_object_new_array();
    for (size_t i = 0; i < ny; i++) {
        struct json_object *row = json_object_new_array();
        for (size_t j = 0; j < nx; j++) {
            const struct dt_expected *x = &at[i * nx + j];
            double value = told == TOLD_MEAN ? x->mean : told == TOLD_LOW ? x->low : x->high;
            json_object_array_add(row, rounded(value));
        }
        json_object_array_add(rows, row);
    }
    return rows;
}

static struct json_object *surface_json(const struct view *v, size_t px, size_t py)
{
    struct json_object *o = json_object_new_object();
    struct axis x = axis_of(v->space, px), y = axis_of(v->space, py);
    struct dt_expected *at = look(v, &x, &y);
    add_string(o, "x", v->space->params[px].name);
    add_string(o, "y", v->space->params[py].name);
    json_object_object_add(o, "xs", axis_json(v->space, &x));
    json_object_object_add(o, "ys", axis_json(v->space, &y));
    json_object_object_add(o, "mean", rows_json(at, x.n, y.n, TOLD_MEAN));
    json_object_object_add(o, "low", rows_json(at, x.n, y.n, TOLD_LOW));
    json_object_object_add(o, "high", rows_json(at, x.n, y.n, TOLD_HIGH));
    free(at);
    return o;
}

static bool varies(const struct dt_space *s, size_t i)
{
    return dt_param_count(&s->params[i]) > 1 && (int)i != dt_space_fidelity(s);
}

struct pair {
    size_t x, y;
    double weight;
};

/* The heavier first; of two that weigh the same the one that SPEC names first. */
static int heavier(const void *a, const void *b)
{
    const struct pair *p = a, *q = b;
    if (p->weight != q->weight)
        return p->weight > q->weight ? -1 : 1;
    return p->y != q->y ? (p->y > q->y) - (p->y < q->y) : (p->x > q->x) - (p->x < q->x);
}

/* Each two parameters: servers and workers first, then what matters most. */
static struct json_object *surfaces_json(const struct view *v, const double *share)
{
    const struct dt_space *s = v->space;
    size_t workers = (size_t)dt_space_index(s, "workers"), ps = (size_t)dt_space_index(s, "ps");
    struct json_object *list = json_object_new_array();
    struct pair *pairs = dt_xcalloc(s->n * s->n + 1, sizeof(*pairs));
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        for (size_t j = i + 1; j < s->n; j++)
            if (varies(s, i) && varies(s, j)) {
                bool usual = i == workers && j == ps;
                bool dt = usual || (i == ps && j == workers);
                pairs[n++] = (struct pair){.x = usual ? i : j,
                                           .y = usual ? j : i,
                                           .weight = dt ? INFINITY : share[i] + share[j]};
            }
    qsort(pairs, n, sizeof(*pairs), heavier);
    for (size_t i = 0; i < n && i < SURFACES; i++)
        json_object_array_add(list, surface_json(v, pairs[i].x, pairs[i].y));
    free(pairs);
    return list;
}

/* `of`: what the values are, as people call it. NULL where too little is known. */
static struct json_object *model_json(const struct dt_context *ctx, const double *best,
                                      const char *of)
{
    struct dt_explanation *e = dt_explain_new(ctx);
    const struct dt_space *s = ctx->space;
    if (!e)
        return NULL;
    struct json_object *o = json_object_new_object(), *importance = json_object_new_array(),
                       *slices = json_object_new_array();
    struct view v = {e, s, best};
    double *share = dt_xcalloc(s->n, sizeof(double));
    dt_explain_importance(e, share);
    for (size_t i = 0; i < s->n; i++) {
        if (!varies(s, i))
            continue;
        struct json_object *one = json_object_new_object();
        add_string(one, "param", s->params[i].name);
        json_object_object_add(one, "share", rounded(share[i]));
        json_object_array_add(importance, one);
        if (!isnan(best[i]))
            json_object_array_add(slices, slice_json(&v, i));
    }
    add_string(o, "of", of);
    json_object_object_add(o, "importance", importance);
    json_object_object_add(o, "slices", slices);
    json_object_object_add(o, "surfaces", surfaces_json(&v, share));
    free(share);
    dt_explain_free(e);
    return o;
}

/* What a value of the objective is, with its unit. */
static const char *unit_of(const struct dt_spec *spec)
{
    switch (spec->objective) {
    case DT_OBJECTIVE_TIME:
    case DT_OBJECTIVE_TURNAROUND:
        return "s";
    case DT_OBJECTIVE_COST:
        return "billed seconds";
    default:
        return "";
    }
}

/* The view of the objective; and where a metric is the objective, of the speed, for which the DT
 * configuration is chosen. */
static void add_models(const struct dt_study *s, struct json_object *o)
{
    struct dt_observation *obs, *paces;
    struct dt_context ctx = dt_study_context(s, &obs);
    struct dt_context speed = dt_context_paces(&ctx, &paces);
    char *objective = dt_spec_objective_text(s->spec);
    const struct dt_trial *best = dt_study_best(s);
    double *pair = dt_xcalloc(s->space->n, sizeof(double));
    bool metric = dt_study_pair(s, pair) && s->spec->objective == DT_OBJECTIVE_METRIC;
    json_object_object_add(o, "model", best ? model_json(&ctx, best->x, objective) : NULL);
    json_object_object_add(o, "speed", metric ? model_json(&speed, pair, "seconds a step") : NULL);
    free(pair);
    free(objective);
    free(paces);
    free(obs);
}

struct json_object *dt_report_views(const char *job, const struct dt_study *s,
                                    const struct dt_chronicle *c)
{
    struct json_object *o = json_object_new_object(), *params = json_object_new_array();
    struct dt_bound objective;
    const struct dt_bound *quality = dt_report_quality(s, &objective);
    for (size_t i = 0; i < s->space->n; i++)
        json_object_array_add(params, dt_report_param(&s->space->params[i]));
    json_object_object_add(o, "version", json_object_new_int(1));
    add_string(o, "dt_tune", DT_VERSION);
    add_string(o, "job_name", job);
    add_string(o, "unit", unit_of(s->spec));
    add_string(o, "quality", quality ? quality->metric : NULL);
    json_object_object_add(o, "start", isnan(c->start) ? NULL : dt_json_number(c->start));
    json_object_object_add(o, "elapsed", isnan(c->start) ? NULL : rounded(s->t_last - c->start));
    json_object_object_add(o, "params", params);
    json_object_object_add(o, "course", course_json(s));
    json_object_object_add(o, "runs", json_object_get(c->runs));
    json_object_object_add(o, "usage", json_object_get(c->usage));
    add_models(s, o);
    return o;
}
