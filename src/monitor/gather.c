#include "monitor/monitor.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define APART 0.05       /* levels that differ so much are not the same */
#define PAUSE 0.01       /* of a run's age: between two events of a role */
#define PERIODS_MAX 4096 /* that wait to be over; older ones are then passed over */
#define ROLE_NAME_MAX 64

/* The samples of a role's tasks in one period. */
struct period {
    int64_t number;
    double sum[DT_RESOURCES], max[DT_RESOURCES];
    int64_t tasks[DT_RESOURCES]; /* that know of it */
};

struct role {
    char *name;
    int64_t over;        /* periods up to this one do not count any more */
    struct period *open; /* in order */
    size_t n;
    struct dt_usage told; /* last; n 0: nothing yet */
    int64_t row;          /* samples told in a row at this level */
    double told_at, now;  /* ends of periods: when it was told, and of the latest */
    struct dt_usage pool; /* not told yet; n 0: nothing */
    int64_t known[DT_RESOURCES];
};

struct dt_gather {
    double period, start;
    struct role roles[DT_ROLES_MAX];
    size_t n;
};

struct dt_gather *dt_gather_new(double period, double start)
{
    struct dt_gather *g = dt_xcalloc(1, sizeof(*g));
    g->period = period;
    g->start = start;
    return g;
}

void dt_gather_free(struct dt_gather *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->n; i++) {
        free(g->roles[i].name);
        free(g->roles[i].open);
    }
    free(g);
}

/* ---- lines ---- */

static bool good_name(const char *name)
{
    size_t n = strlen(name);
    if (n == 0 || n > ROLE_NAME_MAX)
        return false;
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_' && *c != '-')
            return false;
    return true;
}

static struct role *role_of(struct dt_gather *g, const char *name)
{
    for (size_t i = 0; i < g->n; i++)
        if (strcmp(g->roles[i].name, name) == 0)
            return &g->roles[i];
    if (g->n == DT_ROLES_MAX || !good_name(name))
        return NULL;
    g->roles[g->n] = (struct role){.name = dt_xstrdup(name), .over = INT64_MIN};
    return &g->roles[g->n++];
}

static int64_t number_at(const struct dt_gather *g, double t)
{
    return (int64_t)floor(t / g->period);
}

void dt_gather_resume(struct dt_gather *g, const char *role, const struct dt_usage *told)
{
    struct role *r = role_of(g, role);
    if (!r)
        return;
    r->over = (int64_t)ceil(told->t / g->period - 1e-6) -
              1; /* the period that ended then, or is cut off */
    r->told = *told;
    r->told_at = r->now = told->t;
    r->row = told->n;
}

static struct period *period_of(struct role *r, int64_t number)
{
    size_t at = r->n;
    while (at > 0 && r->open[at - 1].number > number)
        at--;
    if (at > 0 && r->open[at - 1].number == number)
        return &r->open[at - 1];
    r->open = dt_xrealloc(r->open, r->n + 1, sizeof(*r->open));
    memmove(r->open + at + 1, r->open + at, (r->n++ - at) * sizeof(*r->open));
    r->open[at] = (struct period){.number = number};
    return &r->open[at];
}

/* A level, or NaN where the line has none that makes sense. */
static double level_of(struct json_object *line, enum dt_resource i)
{
    struct json_object *v = dt_json_get(line, dt_resource_names[i]);
    bool number = json_object_is_type(v, json_type_int) || json_object_is_type(v, json_type_double);
    double x = number ? json_object_get_double(v) : NAN;
    return isfinite(x) && x >= 0 ? x : NAN;
}

static void take_sample(struct period *p, const double *mean, const double *max, int64_t tasks)
{
    for (int i = 0; i < DT_RESOURCES; i++) {
        if (isnan(mean[i]))
            continue;
        p->max[i] = p->tasks[i] ? fmax(p->max[i], max[i]) : max[i];
        p->sum[i] += mean[i] * (double)tasks;
        p->tasks[i] += tasks;
    }
}

bool dt_gather_take(struct dt_gather *g, const char *role, double t, double now,
                    const double mean[DT_RESOURCES], const double max[DT_RESOURCES], int64_t tasks)
{
    struct role *r = isfinite(t) && fabs(t) < 1e12 ? role_of(g, role) : NULL;
    if (r) {
        int64_t number = number_at(g, t), latest = number_at(g, now);
        if (number > r->over && number > latest - PERIODS_MAX && number <= latest + 1)
            take_sample(period_of(r, number), mean, max, tasks);
    }
    return r != NULL;
}

bool dt_gather_line(struct dt_gather *g, const char *line, double now)
{
    struct json_object *o = dt_json_parse(line, "sample", NULL);
    double level[DT_RESOURCES];
    for (int i = 0; i < DT_RESOURCES; i++)
        level[i] = level_of(o, (enum dt_resource)i);
    bool good = dt_gather_take(g, dt_json_str(o, "role", ""), dt_json_num(o, "time", NAN), now,
                               level, level, 1);
    json_object_put(o);
    return good;
}

/* ---- what is told ---- */

/* At the end of a run its last period may not be over. */
static struct dt_usage usage_of(const struct dt_gather *g, const struct period *p, double now)
{
    struct dt_usage u = dt_usage_unknown(fmin((double)(p->number + 1) * g->period, now));
    for (int i = 0; i < DT_RESOURCES; i++) {
        if (!p->tasks[i])
            continue;
        u.mean[i] = p->sum[i] / (double)p->tasks[i];
        u.max[i] = p->max[i];
    }
    return u;
}

static bool differs(double a, double b)
{
    return isnan(a) != isnan(b) || fabs(a - b) > APART;
}

/* Of what goes by bytes the levels are averaged only. */
static bool differ(const struct dt_usage *a, const struct dt_usage *b)
{
    for (int i = DT_RESOURCE_CPU; i <= DT_RESOURCE_GPU; i++)
        if (differs(a->mean[i], b->mean[i]) || differs(a->max[i], b->max[i]))
            return true;
    return false;
}

struct out {
    struct dt_told *v;
    size_t n;
};

static double rounded(double x, int resource)
{
    double unit = resource == DT_RESOURCE_NET || resource == DT_RESOURCE_DISK ? 1 : 10000;
    return round(x * unit) / unit;
}

static void tell(struct role *r, struct out *out)
{
    if (!r->pool.n)
        return;
    for (int i = 0; i < DT_RESOURCES; i++) {
        r->pool.mean[i] = rounded(r->pool.mean[i], i);
        r->pool.max[i] = rounded(r->pool.max[i], i);
    }
    bool same = r->told.n && !differ(&r->pool, &r->told);
    r->row = r->pool.n + (same ? r->row : 0);
    r->told = r->pool;
    r->told_at = r->now;
    r->pool.n = 0;
    out->v = dt_xrealloc(out->v, out->n + 1, sizeof(*out->v));
    out->v[out->n++] = (struct dt_told){r->name, r->told};
}

static void take_period(const struct dt_gather *g, struct role *r, const struct period *p,
                        double now, struct out *out)
{
    struct dt_usage u = usage_of(g, p, now);
    double age = fmax(u.t - g->start, 0);
    bool first = !r->told.n, news = first || differ(&u, &r->told);
    bool due = first || u.t - r->told_at >= PAUSE * age;
    bool apart = due && news && r->pool.n && !differ(&r->pool, &r->told);
    r->now = u.t;
    if (apart) /* what was before the change is told by itself */
        tell(r, out);
    dt_usage_add(&r->pool, r->known, &u);
    if (due && !apart && (news || 2 * r->pool.n >= r->row))
        tell(r, out);
    r->over = p->number;
}

size_t dt_gather_tell(struct dt_gather *g, double now, bool all, struct dt_told **told)
{
    struct out out = {NULL, 0};
    for (size_t i = 0; i < g->n; i++) {
        struct role *r = &g->roles[i];
        size_t done = 0;
        while (done < r->n && (all || ((double)r->open[done].number + 1.5) * g->period <= now))
            take_period(g, r, &r->open[done++], now, &out);
        if (done)
            memmove(r->open, r->open + done, (r->n -= done) * sizeof(*r->open));
        if (all)
            tell(r, &out);
    }
    *told = out.v;
    return out.n;
}
