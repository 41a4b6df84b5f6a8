#include "allocator/allocator_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 20000

static const char *const load_words[] = {"unknown", "idle", "partly busy", "saturated"};

/* ---- loads ---- */

static double memory(const struct dt_usage *u)
{
    return u->max[DT_RESOURCE_MEM];
}

/* The mean level of the last samples, at least `least` of them; NaN where there are fewer, or one
 * is not on the side of the limit that is asked for. */
static double level_of_last(const struct dt_role_usage *r, double since,
                            double (*level)(const struct dt_usage *), size_t least, double from,
                            double below)
{
    double sum = 0, n = 0;
    for (size_t i = r->n; i > 0 && n < (double)least && r->recent[i - 1].t >= since; i--) {
        double x = level(&r->recent[i - 1]), weight = (double)r->recent[i - 1].n;
        if (!(x >= from && x < below))
            return NAN;
        sum += weight * x;
        n += weight;
    }
    return n >= (double)least ? sum / n : NAN;
}

static struct dt_role_load load_of(const struct dt_allocator *a, const struct dt_running *t,
                                   const char *role)
{
    const struct dt_role_usage *r = t->usage ? dt_role_usages_find(t->usage, role) : NULL;
    double x;
    if (!r || !r->n)
        return (struct dt_role_load){DT_LOAD_UNKNOWN, NAN, DT_RESOURCE_CPU};
    const struct dt_usage *last = &r->recent[r->n - 1];
    bool gpus = last->mean[DT_RESOURCE_GPU] > 0 && /* where CPUs are not known, too */
                !(last->mean[DT_RESOURCE_CPU] >= last->mean[DT_RESOURCE_GPU]);
    enum dt_resource busier = gpus ? DT_RESOURCE_GPU : DT_RESOURCE_CPU;
    x = level_of_last(r, t->since, dt_usage_busy, a->high_samples, a->high, INFINITY);
    if (!isnan(x))
        return (struct dt_role_load){DT_LOAD_SATURATED, x, busier};
    x = level_of_last(r, t->since, dt_usage_busy, a->low_samples, 0, a->low);
    if (!isnan(x))
        return (struct dt_role_load){DT_LOAD_IDLE, x, busier};
    x = level_of_last(r, t->since, dt_usage_busy, a->low_samples, 0, INFINITY);
    if (!isnan(x)) /* neither all along */
        return (struct dt_role_load){DT_LOAD_PARTLY, x, busier};
    x = level_of_last(r, t->since, dt_usage_busy, a->high_samples, 0, INFINITY);
    return (struct dt_role_load){DT_LOAD_UNKNOWN, x, busier};
}

struct dt_role_load dt_load_of_level(const struct dt_allocator *a, double level)
{
    struct dt_role_load l = {DT_LOAD_PARTLY, level, DT_RESOURCE_CPU};
    if (isnan(level))
        l.load = DT_LOAD_UNKNOWN;
    else if (level >= a->high)
        l.load = DT_LOAD_SATURATED;
    else if (level < a->low)
        l.load = DT_LOAD_IDLE;
    return l;
}

static void add_load(struct dt_buf *b, const char *role, struct dt_role_load l)
{
    if (!isnan(l.level))
        dt_buf_addf(b, "%s%s %s (%.0f %%)", b->len ? ", " : "", role,
                    load_words[l.load == DT_LOAD_UNKNOWN ? DT_LOAD_PARTLY : l.load],
                    100 * l.level);
}

char *dt_loads_text(struct dt_role_load ps, struct dt_role_load worker)
{
    struct dt_buf b = DT_BUF_INIT;
    add_load(&b, "servers", ps);
    add_load(&b, "workers", worker);
    return dt_buf_take(&b);
}

/* ---- one trial ---- */

bool dt_case_alike(double from, double to)
{
    return isnan(from) || from == to;
}

bool dt_case_visited(const struct dt_case *c, const double *x)
{
    for (size_t i = 0; i < c->t->n; i++)
        if (dt_config_equal(c->t->stretches[i].x, x, c->s->n))
            return true;
    return false;
}

bool dt_case_worth(const struct dt_case *c, double saved, char **why)
{
    double gain = saved * c->t->remaining;
    if (isnan(gain) || gain <= c->a->restart_s)
        return false;
    *why = dt_xasprintf("saves %.4g s of the %.4g s left, a restart costs %.3g s", gain,
                        c->t->remaining * c->now->pace, c->a->restart_s);
    return true;
}

struct dt_wish dt_wish_for(const struct dt_case *c, const double *x, char *why)
{
    struct dt_wish w = {dt_xcalloc(c->s->n, sizeof(double)), why};
    memcpy(w.x, x, c->s->n * sizeof(double));
    return w;
}

void dt_wish_free(struct dt_wish *w)
{
    free(w->x);
    free(w->why);
    *w = (struct dt_wish){0};
}

/* The allowed row that differs from the present configuration in parameter i alone, in which it is
 * the next larger; NULL where there is none. */
static const double *next_larger(const struct dt_case *c, size_t i)
{
    const double *best = NULL, *x = c->now->x;
    for (size_t k = 0; k < c->nrows; k++) {
        const double *row = c->rows + k * c->s->n;
        bool alone = row[i] > x[i] && (!best || row[i] < best[i]);
        for (size_t j = 0; j < c->s->n && alone; j++)
            alone = j == i || dt_case_alike(x[j], row[j]);
        best = alone ? row : best;
    }
    return best;
}

/* How full the memory of a role was in the last samples; NaN where it was not nearly full in each.
 */
static double full_memory(const struct dt_case *c, const char *role)
{
    const struct dt_role_usage *r = c->t->usage ? dt_role_usages_find(c->t->usage, role) : NULL;
    return r ? level_of_last(r, -INFINITY, memory, c->a->high_samples, c->a->high, INFINITY) : NAN;
}

/* More memory before the kernel ends the trial: whatever it costs, it is less than that. */
static struct dt_wish more_memory(const struct dt_case *c, const char *role)
{
    double level = full_memory(c, role);
    char *name = dt_xasprintf("%s_mem", role);
    int i = dt_space_index(c->s, name);
    const double *x = isnan(level) || i < 0 ? NULL : next_larger(c, (size_t)i);
    free(name);
    if (isnan(level))
        return (struct dt_wish){0};
    if (!x)
        return dt_rule_nodes_memory(c, role, level);
    return dt_wish_for(c, x,
                       dt_xasprintf("%s: memory at %.0f %% of its limit over %zu samples", role,
                                    100 * level, c->a->high_samples));
}

/* Whether enough is known of the trial to look around. */
static bool has_reason(const struct dt_case *c)
{
    return c->a->rule == DT_ALLOCATE_SAVE || c->ps.load == DT_LOAD_SATURATED ||
           c->worker.load != DT_LOAD_UNKNOWN || !isnan(full_memory(c, "ps")) ||
           !isnan(full_memory(c, "worker"));
}

static struct dt_wish examine(const struct dt_case *c)
{
    struct dt_wish w = more_memory(c, "worker");
    if (!w.x)
        w = more_memory(c, "ps");
    if (w.x)
        return w;
    if (c->a->rule == DT_ALLOCATE_SAVE)
        return dt_rule_save(c);
    if (c->ps.load != DT_LOAD_SATURATED && c->worker.load == DT_LOAD_UNKNOWN)
        return w; /* its memory was full, but there is no more */
    w = c->a->rule == DT_ALLOCATE_MODEL ? dt_rule_model(c) : dt_rule_thresholds(c);
    return w.x ? w : dt_rule_nodes(c);
}

void dt_allocate(const struct dt_allocator *a, const struct dt_space *s,
                 const struct dt_running *trials, size_t n, struct dt_wish *wishes)
{
    for (size_t i = 0; i < n; i++) {
        const struct dt_running *t = &trials[i];
        struct dt_case c = {.a = a,
                            .s = s,
                            .t = t,
                            .now = &t->stretches[t->n - 1],
                            .ps = load_of(a, t, "ps"),
                            .worker = load_of(a, t, "worker")};
        wishes[i] = (struct dt_wish){0};
        if (!has_reason(&c))
            continue;
        double *rows = dt_space_beside(s, c.now->x, ROWS_MAX, &c.nrows);
        c.rows = rows;
        c.nrows = dt_nodes_keep(&c, rows);
        wishes[i] = examine(&c);
        free(rows);
    }
}
