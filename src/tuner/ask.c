/* Another program chooses the hyperparameters: what it asks for waits here for a trial. */
#include "tuner/tuner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int dt_study_find_ask(const struct dt_study *s, struct json_object *id)
{
    for (size_t i = 0; i < s->nasks; i++)
        if (json_object_equal(s->asks[i].id, id))
            return (int)i;
    return -1;
}

/* ---- reading ---- */

static int check_names(const struct dt_space *space, struct json_object *o, struct dt_error *e)
{
    const char **names = dt_xcalloc(space->n + 1, sizeof(*names));
    size_t n = 0;
    int rc = 0;
    for (size_t i = 0; i < space->n; i++)
        if (space->params[i].hyper)
            names[n++] = space->params[i].name;
    json_object_object_foreach(o, key, unused)
    {
        (void)unused;
        int i = dt_space_index(space, key);
        const char *near = dt_nearest(key, names, n);
        if (rc < 0 || (i >= 0 && space->params[i].hyper))
            continue;
        if (i >= 0)
            rc = dt_fail(e, "\"%s\" is part of the DT configuration, which dt-tune chooses", key);
        else
            rc = dt_fail(e, "\"%s\" is not a hyperparameter of this study%s%s%s", key,
                         near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
    free(names);
    return rc;
}

/* The value of the domain that x means. */
static double snap(const struct dt_param *p, double x)
{
    if (p->values || p->step <= 0)
        return x;
    return dt_param_nth(p, (size_t)round((x - p->low) / p->step));
}

static int check_values(const struct dt_space *space, struct json_object *o, double *x,
                        struct dt_error *e)
{
    for (size_t i = 0; i < space->n; i++) {
        const struct dt_param *p = &space->params[i];
        if (!p->hyper) {
            x[i] = NAN;
            continue;
        }
        if (isnan(x[i]) && dt_space_active(space, x, i))
            return dt_fail(e,
                           json_object_object_get_ex(o, p->name, NULL) ? "\"%s\": null is no value"
                                                                       : "\"%s\" is missing",
                           p->name);
        if (isnan(x[i]))
            continue;
        if (!dt_param_contains(p, x[i])) {
            char *text = dt_param_text(p, x[i]);
            dt_fail(e, "\"%s\": %s is outside its domain", p->name, text);
            free(text);
            return -1;
        }
        x[i] = snap(p, x[i]);
    }
    return 0;
}

int dt_study_read_ask(const struct dt_study *s, struct json_object *hyperparameters, double *x,
                      struct dt_error *e)
{
    const struct dt_space *space = s->space;
    if (!json_object_is_type(hyperparameters, json_type_object))
        return dt_fail(e, "hyperparameters must be an object like {\"lr\": 0.01}");
    if (check_names(space, hyperparameters, e) < 0)
        return -1;
    double *any = dt_xcalloc(2 * space->n, sizeof(double)), *rest = any + space->n;
    for (size_t i = 0; i < space->n; i++)
        rest[i] = NAN;
    int rc = dt_config_complete(space, hyperparameters, rest, any, e);
    if (rc == 0 && (rc = check_values(space, hyperparameters, any, e)) == 0)
        memcpy(x, any, space->n * sizeof(double));
    free(any);
    return rc;
}

/* ---- the queue ---- */

int dt_study_apply_asked(struct dt_study *s, const struct dt_event *ev, struct dt_error *e)
{
    const char *id = json_object_to_json_string(ev->ask);
    if (!ev->ask || !s->external)
        return dt_fail(e, "something was asked for %s",
                       s->external ? "without an id" : "of a study that chooses itself");
    if (dt_study_find_ask(s, ev->ask) >= 0)
        return dt_fail(e, "%s was asked for twice", id);
    double *x = dt_xcalloc(s->space->n, sizeof(double));
    if (dt_study_read_ask(s, ev->config, x, e) < 0) {
        free(x);
        return dt_fail_at(e, "%s", id);
    }
    s->asks = dt_xrealloc(s->asks, s->nasks + 1, sizeof(*s->asks));
    s->asks[s->nasks++] = (struct dt_ask){.id = json_object_get(ev->ask), .x = x};
    return 0;
}

int dt_study_apply_withdrawn(struct dt_study *s, const struct dt_event *ev, struct dt_error *e)
{
    int i = dt_study_find_ask(s, ev->ask);
    if (i < 0 || s->asks[i].trial)
        return dt_fail(e, "%s, which %s, is to get no trial", json_object_to_json_string(ev->ask),
                       i < 0 ? "nobody asks" : "has one");
    free(s->asks[i].withdrawn);
    s->asks[i].withdrawn = dt_xstrdup(ev->text);
    return 0;
}

void dt_study_free_asks(struct dt_study *s)
{
    for (size_t i = 0; i < s->nasks; i++) {
        json_object_put(s->asks[i].id);
        free(s->asks[i].x);
        free(s->asks[i].withdrawn);
    }
    free(s->asks);
}

/* ---- a DT configuration for it ---- */

/* The first trial shows what the job as submitted does with other hyperparameters. */
static bool as_submitted(const struct dt_study *s, double *x)
{
    double *y = dt_xcalloc(s->space->n, sizeof(double));
    for (size_t i = 0; i < s->space->n; i++)
        y[i] = s->space->params[i].hyper ? x[i] : s->submitted[i];
    dt_space_settle(s->space, y);
    bool allowed = dt_space_allows(s->space, y, NULL);
    if (allowed)
        memcpy(x, y, s->space->n * sizeof(double));
    free(y);
    return allowed;
}

int dt_study_place(struct dt_study *s, const struct dt_ask *ask, double now, double *x,
                   const char **why, struct dt_error *e)
{
    struct dt_observation *o;
    memcpy(x, ask->x, s->space->n * sizeof(double));
    *why = "asked for, DT configuration as submitted";
    if (s->n == 0 && s->submitted && as_submitted(s, x))
        return 0;
    struct dt_context ctx = dt_study_context(s, &o);
    ctx.budget_left = dt_study_budget_left(s, now);
    bool placed = dt_optimizer_place(s->optimizer, &ctx, x);
    free(o);
    *why = "asked for";
    return placed ? 0
                  : dt_fail(e, "%s: no DT configuration is allowed beside these hyperparameters",
                            json_object_to_json_string(ask->id));
}

bool dt_study_can_place(const struct dt_study *s, const double *x)
{
    struct dt_context ctx = {.space = s->space};
    double *y = dt_xcalloc(s->space->n, sizeof(double));
    memcpy(y, x, s->space->n * sizeof(double));
    bool can = dt_optimizer_place(s->optimizer, &ctx, y);
    free(y);
    return can;
}
