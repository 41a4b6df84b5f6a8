#include "monitor/monitor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const dt_resource_names[DT_RESOURCES] = {"cpu", "mem", "gpu", "net", "disk"};

struct dt_usage dt_usage_unknown(double t)
{
    struct dt_usage u = {.t = t, .n = 1};
    for (int i = 0; i < DT_RESOURCES; i++)
        u.mean[i] = u.max[i] = NAN;
    return u;
}

double dt_usage_busy(const struct dt_usage *u)
{
    double x =
        fmax(u->mean[DT_RESOURCE_CPU], u->mean[DT_RESOURCE_GPU]); /* where one is known, it */
    return x > 1 ? 1 : x;
}

void dt_usage_add(struct dt_usage *sum, int64_t known[DT_RESOURCES], const struct dt_usage *more)
{
    if (!sum->n) {
        *sum = dt_usage_unknown(more->t);
        sum->n = 0;
        memset(known, 0, DT_RESOURCES * sizeof(*known));
    }
    sum->t = more->t;
    sum->n += more->n;
    for (int i = 0; i < DT_RESOURCES; i++) {
        if (isnan(more->mean[i]))
            continue;
        double before = known[i] ? sum->mean[i] : 0;
        known[i] += more->n;
        sum->mean[i] = before + (more->mean[i] - before) * (double)more->n / (double)known[i];
        sum->max[i] = fmax(sum->max[i], more->max[i]); /* the other one where one is NaN */
    }
}

/* ---- JSON ---- */

struct json_object *dt_usage_to_json(const struct dt_usage *u)
{
    struct json_object *o = json_object_new_object();
    for (int i = 0; i < DT_RESOURCES; i++) {
        if (!isfinite(u->mean[i]) || !isfinite(u->max[i]))
            continue;
        struct json_object *pair = json_object_new_array_ext(2);
        json_object_array_add(pair, dt_json_number(u->mean[i]));
        json_object_array_add(pair, dt_json_number(u->max[i]));
        json_object_object_add(o, dt_resource_names[i], pair);
    }
    return o;
}

static double level_at(struct json_object *pair, size_t i)
{
    struct json_object *v = dt_json_at(pair, i);
    bool number = json_object_is_type(v, json_type_int) || json_object_is_type(v, json_type_double);
    double x = number ? json_object_get_double(v) : NAN;
    return isfinite(x) && x >= 0 ? x : NAN;
}

void dt_usage_from_json(struct json_object *levels, struct dt_usage *u)
{
    for (int i = 0; i < DT_RESOURCES; i++) {
        struct json_object *pair = dt_json_get(levels, dt_resource_names[i]);
        double mean = level_at(pair, 0), max = level_at(pair, 1);
        bool both = !isnan(mean) && !isnan(max);
        u->mean[i] = both ? mean : NAN;
        u->max[i] = both ? max : NAN;
    }
}

/* ---- the roles of a trial ---- */

const struct dt_role_usage *dt_role_usages_find(const struct dt_role_usages *all, const char *role)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->v[i].role, role) == 0)
            return &all->v[i];
    return NULL;
}

static struct dt_usage_total *total_of(struct dt_role_usage *r, int run)
{
    if (r->nruns && r->runs[r->nruns - 1].run == run)
        return &r->runs[r->nruns - 1];
    r->runs = dt_xrealloc(r->runs, r->nruns + 1, sizeof(*r->runs));
    r->runs[r->nruns] = (struct dt_usage_total){.run = run};
    return &r->runs[r->nruns++];
}

static struct dt_role_usage *new_role(struct dt_role_usages *all, const char *role)
{
    size_t at = all->n;
    while (at > 0 && strcmp(all->v[at - 1].role, role) > 0)
        at--;
    all->v = dt_xrealloc(all->v, all->n + 1, sizeof(*all->v));
    memmove(all->v + at + 1, all->v + at, (all->n++ - at) * sizeof(*all->v));
    all->v[at] = (struct dt_role_usage){.role = dt_xstrdup(role)};
    return &all->v[at];
}

void dt_role_usages_add(struct dt_role_usages *all, const char *role, int run,
                        const struct dt_usage *u)
{
    struct dt_role_usage *r = (struct dt_role_usage *)dt_role_usages_find(all, role);
    if (!r)
        r = new_role(all, role);
    if (r->n == DT_USAGE_WINDOW)
        memmove(r->recent, r->recent + 1, --r->n * sizeof(*r->recent));
    r->recent[r->n++] = *u;
    struct dt_usage_total *total = total_of(r, run);
    dt_usage_add(&total->u, total->known, u);
}

void dt_role_usages_new_run(struct dt_role_usages *all)
{
    for (size_t i = 0; i < all->n; i++)
        all->v[i].n = 0;
}

void dt_role_usages_free(struct dt_role_usages *all)
{
    for (size_t i = 0; i < all->n; i++) {
        free(all->v[i].role);
        free(all->v[i].runs);
    }
    free(all->v);
    *all = (struct dt_role_usages){0};
}
