/* The rule of thresholds: which role holds the training up follows from how busy both are.
 *
 *   servers \ workers  saturated                  partly busy    idle
 *   saturated          both                       more servers   more servers, else fewer workers
 *   partly busy        more workers               more servers   more servers, else fewer workers
 *   idle               more workers               more servers   fewer of both
 *
 * Workers that are not saturated wait, and what they wait for are the servers, whose CPUs may be
 * idle at that: the exchange itself takes its time. A step at least doubles what is too small, as a
 * restart is not for free. A step that did not help is taken back, and its direction is not tried
 * again; where more servers do not help, more workers may. */
#include "allocator/allocator_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP 2.0 /* factor of a step */
#define STEP_MAX 4.0

/* The parameters that moves are about. */
enum { PS, WORKERS, PS_CPUS, WORKER_CPUS, MOVED };
static const char *const names[MOVED] = {"ps", "workers", "ps_cpus", "worker_cpus"};

struct move {
    double factor[MOVED]; /* 0: stays as it is */
};

#define MOVES_MAX 4
struct moves {
    struct move v[MOVES_MAX]; /* the first that is possible is taken */
    size_t n;
};

static void add(struct moves *m, struct move move)
{
    m->v[m->n++] = move;
}

static struct moves moves_of(const struct dt_allocator *a, struct dt_role_load ps,
                             struct dt_role_load worker, bool servers)
{
    struct moves m = {.n = 0};
    double f = fmin(fmax(1 / worker.level, STEP), STEP_MAX); /* as far as they wait */
    struct move more_servers = {{[PS] = isnan(f) ? STEP : f}};
    if (worker.load == DT_LOAD_SATURATED) {
        if (servers && STEP * ps.level >= a->high) /* or else they would be next */
            add(&m, (struct move){{[PS] = STEP, [WORKERS] = STEP}});
        add(&m, (struct move){{[WORKERS] = STEP}});
        add(&m, (struct move){{[WORKER_CPUS] = STEP}});
        if (ps.load == DT_LOAD_SATURATED)
            add(&m, more_servers);
        return m;
    }
    if (worker.load == DT_LOAD_IDLE && ps.load == DT_LOAD_IDLE)
        add(&m, (struct move){{[PS] = 1 / STEP, [WORKERS] = 1 / STEP}});
    else if (servers)
        add(&m, more_servers);
    if (ps.load == DT_LOAD_SATURATED)
        add(&m, (struct move){{[PS_CPUS] = STEP}});
    /* what is left where servers do not help */
    if (servers || worker.load == DT_LOAD_IDLE)
        add(&m, (struct move){{[WORKERS] = worker.load == DT_LOAD_IDLE ? 1 / STEP : STEP}});
    return m;
}

/* ---- where to ---- */

static int sign(double d)
{
    return d > 0 ? 1 : d < 0 ? -1 : 0;
}

/* The direction from one configuration to another, a digit a parameter. */
static int direction(const struct dt_space *s, const double *from, const double *to)
{
    int code = 0;
    for (int k = 0; k < MOVED; k++) {
        int i = dt_space_index(s, names[k]);
        code = 3 * code + (i < 0 ? 0 : sign(to[i] - from[i])) + 1;
    }
    return code;
}

static int direction_of_move(const struct move *m)
{
    int code = 0;
    for (int k = 0; k < MOVED; k++)
        code = 3 * code + (m->factor[k] > 0 ? sign(m->factor[k] - 1) : 0) + 1;
    return code;
}

/* How far a row is from where the move wants to be; INFINITY where it is not in its direction. */
static double distance(const struct dt_case *c, const double *from, const struct move *m,
                       const double *row)
{
    double d = 0;
    bool known[MOVED] = {false};
    for (size_t i = 0; i < c->s->n; i++) {
        int k = 0;
        while (k < MOVED && strcmp(c->s->params[i].name, names[k]) != 0)
            k++;
        double f = k < MOVED ? m->factor[k] : 0;
        if (!(f > 0)) {
            d = dt_case_alike(from[i], row[i]) ? d : INFINITY;
            continue;
        }
        known[k] = true;
        bool there = from[i] > 0 && row[i] > 0 && sign(row[i] - from[i]) == sign(f - 1);
        d += there ? fabs(log(row[i] / (from[i] * f))) : INFINITY;
    }
    for (int k = 0; k < MOVED; k++)
        d += m->factor[k] > 0 && !known[k] ? INFINITY : 0;
    return d;
}

static const double *reach(const struct dt_case *c, const double *from, const struct move *m)
{
    const double *best = NULL;
    double least = INFINITY;
    for (size_t k = 0; k < c->nrows; k++) {
        const double *row = c->rows + k * c->s->n;
        double d = distance(c, from, m, row);
        if (d < least && !dt_case_visited(c, row)) {
            least = d;
            best = row;
        }
    }
    return best;
}

/* ---- what was learnt on the way ---- */

struct lesson {
    size_t best; /* stretch from which to go on */
    int *closed; /* directions in which there is nothing to be found */
    size_t nclosed;
};

static bool grows(const struct dt_space *s, const double *from, const double *to)
{
    for (int k = 0; k < MOVED; k++) {
        int i = dt_space_index(s, names[k]);
        if (i >= 0 && to[i] > from[i])
            return true;
    }
    return false;
}

/* A step that did not help closes its direction, one that did the way back. */
static struct lesson learn(const struct dt_case *c)
{
    const struct dt_stretch *v = c->t->stretches;
    struct lesson l = {.closed = dt_xcalloc(c->t->n, sizeof(int))};
    for (size_t k = 1; k < c->t->n; k++) {
        const struct dt_stretch *best = &v[l.best];
        double gain = best->pace / v[k].pace,
               need = grows(c->s, best->x, v[k].x) ? DT_HELPED : 1 / DT_HELPED;
        bool helped = isnan(gain) || gain >= need;
        l.closed[l.nclosed++] =
            helped ? direction(c->s, v[k].x, best->x) : direction(c->s, best->x, v[k].x);
        l.best = helped ? k : l.best;
    }
    return l;
}

static bool is_closed(const struct lesson *l, const struct move *m)
{
    for (size_t i = 0; i < l->nclosed; i++)
        if (l->closed[i] == direction_of_move(m))
            return true;
    return false;
}

/* ---- the rule ---- */

/* The part of the time that a step may save at the most: of what workers compute where they become
 * more, of what they wait where servers do. */
static double most_saved(const struct move *m, struct dt_role_load worker)
{
    double computing = isnan(worker.level) ? 0.5 : worker.level, saved = 0;
    for (int k = 0; k < MOVED; k++) {
        bool workers = k == WORKERS || k == WORKER_CPUS;
        double f = m->factor[k], part = workers ? computing : 1 - computing;
        saved += f > 1 ? part * (1 - 1 / f) : 0;
    }
    return saved;
}

/* The part of a role's tasks that a step gives back. */
static double most_given(const struct move *m)
{
    double given = 0;
    for (int k = 0; k < MOVED; k++)
        given = m->factor[k] > 0 ? fmax(given, 1 - m->factor[k]) : given;
    return given;
}

/* Why a step is taken; NULL where it cannot pay. Caller frees. Where nobody knows how much is left,
 * it may. */
static char *why_step(const struct dt_case *c, const struct move *m, bool here,
                      struct dt_role_load ps, struct dt_role_load worker)
{
    double saved = most_saved(m, worker), part = saved > 0 ? saved : most_given(m);
    double left = c->t->remaining * c->now->pace;
    if (left * part <= c->a->restart_s)
        return NULL;
    char *loads = dt_loads_text(ps, worker), *why;
    const char *where = here ? "" : ", as long as it was faster";
    if (isnan(left))
        why = dt_xasprintf("%s%s", loads, where);
    else if (!(saved > 0))
        why = dt_xasprintf("%s%s: gives back %.0f %% for the %.4g s left, a restart costs %.3g s",
                           loads, where, 100 * part, left, c->a->restart_s);
    else
        why = dt_xasprintf("%s%s: may save %.4g s of the %.4g s left, a restart costs %.3g s",
                           loads, where, left * part, left, c->a->restart_s);
    free(loads);
    return why;
}

static struct dt_wish step_from(const struct dt_case *c, const struct lesson *l)
{
    const struct dt_stretch *from = &c->t->stretches[l->best];
    bool here = from == c->now;
    struct dt_role_load ps = here ? c->ps : dt_load_of_level(c->a, from->ps);
    struct dt_role_load worker = here ? c->worker : dt_load_of_level(c->a, from->worker);
    struct moves m = moves_of(c->a, ps, worker, dt_space_value(c->s, from->x, "ps", 0) > 0);
    for (size_t i = 0; i < m.n; i++) {
        const double *x = is_closed(l, &m.v[i]) ? NULL : reach(c, from->x, &m.v[i]);
        char *why = x ? why_step(c, &m.v[i], here, ps, worker) : NULL;
        if (why)
            return dt_wish_for(c, x, why);
    }
    return (struct dt_wish){0};
}

struct dt_wish dt_rule_thresholds(const struct dt_case *c)
{
    struct lesson l = learn(c);
    const struct dt_stretch *best = &c->t->stretches[l.best];
    struct dt_wish w = {0};
    char *worth;
    if (c->t->left > 1 || c->t->n == 1) /* the last one is kept to take a step back */
        w = step_from(c, &l);
    if (!w.x && best != c->now && dt_case_worth(c, c->now->pace - best->pace, &worth)) {
        w = dt_wish_for(
            c, best->x,
            dt_xasprintf("%.4g s a step here, %.4g s there: %s", c->now->pace, best->pace, worth));
        free(worth);
    }
    free(l.closed);
    return w;
}
