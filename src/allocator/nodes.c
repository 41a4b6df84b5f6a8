/* Where no better number of tasks, CPUs, or memory is left in the space for a role that is
 * saturated, it moves to the kind of nodes that has more of what it is short of: other features, or
 * another partition. */
#include "allocator/allocator_private.h"
#include "space/cluster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP 2.0    /* a kind with twice as much is what is looked for */

enum role { PS, WORKER };
static const char *const names[] = {"ps", "worker"};
static const char *const kinds[] = {"ps_constraint", "worker_constraint", "partition"};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* ---- what nodes have ---- */

struct ground {
    double least, most; /* of a node, in the resource in question */
};

static double amount(const struct dt_node_class *k, enum dt_resource r)
{
    return r == DT_RESOURCE_CPU   ? (double)k->cpus
           : r == DT_RESOURCE_GPU ? (double)k->gpus
                                  : (double)k->mem_mib;
}

static bool is_kind(const char *name)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(name, kinds[i]) == 0)
            return true;
    return false;
}

static const char *constraint_of(const struct dt_case *c, const double *x, enum role role)
{
    const char *own = dt_space_label(c->s, x, kinds[role]);
    return own ? own : c->a->constraint;
}

/* Of the nodes on which a role is by the configuration; packed, both roles are on the same. */
static bool ground_of(const struct dt_case *c, const double *x, enum role role, enum dt_resource r,
                      struct ground *g)
{
    const char *layout = dt_space_label(c->s, x, "layout");
    bool apart = !(dt_space_value(c->s, x, "ps", 0) > 0) || (layout && strcmp(layout, "het") == 0);
    const struct dt_cluster *p =
        dt_cluster_partition(c->a->cluster, dt_space_label(c->s, x, "partition"));
    struct dt_node_class least, most;
    const char *both[] = {constraint_of(c, x, role), apart ? NULL : constraint_of(c, x, 1 - role)};
    if (!p || !dt_cluster_range(p, both, &least, &most))
        return false;
    *g = (struct ground){amount(&least, r), amount(&most, r)};
    return true;
}

/* "slow (2 CPUs a node)", "fast in partition big (8 to 16 CPUs a node)". */
static void add_kind(struct dt_buf *b, const struct dt_case *c, const double *x, enum role role,
                     enum dt_resource r)
{
    const char *constraint = constraint_of(c, x, role),
               *partition = dt_space_label(c->s, x, "partition");
    struct ground g;
    if (!ground_of(c, x, role, r, &g))
        return;
    dt_buf_addf(b, "%s", constraint ? constraint : partition ? "" : "any");
    if (partition)
        dt_buf_addf(b, "%spartition %s", constraint ? " in " : "", partition);
    dt_buf_addf(b, " (%.0f", g.least);
    if (g.most > g.least)
        dt_buf_addf(b, " to %.0f", g.most);
    dt_buf_addf(b, " %s a node)",
                r == DT_RESOURCE_CPU   ? "CPUs"
                : r == DT_RESOURCE_GPU ? "GPUs"
                                       : "MiB");
}

/* ---- where to ---- */

static bool is_budget(const char *name, enum role role, enum dt_resource r)
{
    static const char *const suffixes[DT_RESOURCES] = {
        [DT_RESOURCE_CPU] = "_cpus", [DT_RESOURCE_MEM] = "_mem", [DT_RESOURCE_GPU] = "_gpus"};
    size_t n = strlen(names[role]);
    return strncmp(name, names[role], n) == 0 && strcmp(name + n, suffixes[r]) == 0;
}

/* Whether the row is the present configuration but for kinds of nodes, and for the role's budget,
 * which may grow. *far: how far the growth is from a step, and the number of changes. */
static bool is_move(const struct dt_case *c, const double *row, enum role role, enum dt_resource r,
                    double *far)
{
    const double *x = c->now->x;
    *far = 0;
    for (size_t i = 0; i < c->s->n; i++) {
        const char *name = c->s->params[i].name;
        if (is_kind(name)) {
            *far += dt_case_alike(x[i], row[i]) ? 0 : 0.01;
        } else if (is_budget(name, role, r)) {
            if (row[i] < x[i] || (r == DT_RESOURCE_MEM && row[i] <= x[i]))
                return false;
            *far += 0.1 * fabs(log(fmax(row[i], 1) / fmax(STEP * x[i], 1)));
        } else if (!dt_case_alike(x[i], row[i])) {
            return false;
        }
    }
    return true;
}

/* Strictly more where each node of a kind has the same; of mixed ones never less, and the least
 * more. */
static bool has_more(struct ground from, struct ground to)
{
    return to.least > from.least && to.least >= from.most;
}

static const double *more_nodes(const struct dt_case *c, enum role role, enum dt_resource r,
                                double *ratio)
{
    const double *best = NULL;
    double least = INFINITY, far;
    struct ground from, other, to, then;
    bool both = dt_space_value(c->s, c->now->x, "ps", 0) > 0;
    if (!c->a->cluster || !ground_of(c, c->now->x, role, r, &from) ||
        (both && !ground_of(c, c->now->x, 1 - role, r, &other)))
        return NULL;
    for (size_t k = 0; k < c->nrows; k++) {
        const double *row = c->rows + k * c->s->n;
        if (dt_case_visited(c, row) || !is_move(c, row, role, r, &far) ||
            !ground_of(c, row, role, r, &to) || !has_more(from, to) ||
            (both && (!ground_of(c, row, 1 - role, r, &then) || then.least < other.least)))
            continue;
        far += fabs(log(to.least / fmax(STEP * from.least, 1)));
        if (far < least) {
            least = far;
            best = row;
            *ratio = to.least / fmax(from.least, 1);
        }
    }
    return best;
}

/* Whether either role would be on nodes with fewer CPUs than it may be on now. */
static bool is_lesser(const struct dt_case *c, const double *row)
{
    for (int role = PS; role <= WORKER; role++) {
        struct ground now, then;
        if (ground_of(c, c->now->x, role, DT_RESOURCE_CPU, &now) &&
            ground_of(c, row, role, DT_RESOURCE_CPU, &then) && then.most < now.most)
            return true;
    }
    return false;
}

size_t dt_nodes_keep(const struct dt_case *c, double *rows)
{
    size_t n = 0, kept = 0;
    bool open = false;
    for (size_t i = 0; i < c->s->n; i++)
        open |= is_kind(c->s->params[i].name) && isnan(c->now->x[i]);
    if (!open || !c->a->cluster)
        return c->nrows;
    for (; n < c->nrows; n++) {
        const double *row = c->rows + n * c->s->n;
        if (!is_lesser(c, row))
            memmove(rows + kept++ * c->s->n, row, c->s->n * sizeof(double));
    }
    return kept;
}

/* Other kinds that were open to the role, but were not taken: "; not mid (3 CPUs a node)". */
static void add_others(struct dt_buf *b, const struct dt_case *c, const double *x, enum role role,
                       enum dt_resource r)
{
    struct dt_strv seen = DT_STRV_INIT;
    for (size_t k = 0; k <= c->nrows + 1; k++) {
        const double *row = k == 0 ? x : k == 1 ? c->now->x : c->rows + (k - 2) * c->s->n;
        struct dt_buf kind = DT_BUF_INIT;
        bool known = false;
        add_kind(&kind, c, row, role, r);
        for (size_t i = 0; i < seen.n && !known; i++)
            known = !kind.len || strcmp(seen.v[i], kind.s) == 0;
        if (!known && kind.len) {
            if (k > 1)
                dt_buf_addf(b, "%s%s", seen.n == 2 ? "; not " : ", ", kind.s);
            dt_strv_add(&seen, kind.s);
        }
        dt_buf_free(&kind);
    }
    dt_strv_free(&seen);
}

static char *why_move(const struct dt_case *c, const double *x, enum role role, enum dt_resource r,
                      double level, const char *worth)
{
    static const char *const words[DT_RESOURCES] = {
        [DT_RESOURCE_CPU] = "CPU", [DT_RESOURCE_MEM] = "memory", [DT_RESOURCE_GPU] = "GPU"};
    struct dt_buf b = DT_BUF_INIT;
    dt_buf_addf(&b, "%s: %s %.0f %% over %zu samples, moves from ", names[role], words[r],
                100 * level, c->a->high_samples);
    add_kind(&b, c, c->now->x, role, r);
    dt_buf_add(&b, " to ");
    add_kind(&b, c, x, role, r);
    add_others(&b, c, x, role, r);
    dt_buf_add(&b, worth);
    return dt_buf_take(&b);
}

/* ---- whether ---- */

/* A move to other nodes that was of no use is not followed by another. */
static bool was_in_vain(const struct dt_case *c)
{
    const struct dt_stretch *v = c->t->stretches;
    for (size_t k = 1; k < c->t->n; k++)
        for (size_t i = 0; i < c->s->n; i++)
            if (is_kind(c->s->params[i].name) && !dt_case_alike(v[k - 1].x[i], v[k].x[i]) &&
                v[k - 1].pace < DT_HELPED * v[k].pace)
                return true;
    return false;
}

/* What a move may save at the most, with `ratio` times as much: of what workers compute, or of what
 * they wait for servers. In words, caller frees; NULL where it cannot pay. */
static char *worth_moving(const struct dt_case *c, enum role role, double ratio)
{
    double computing = isnan(c->worker.level) ? 0.5 : c->worker.level;
    double left = c->t->remaining * c->now->pace;
    double saved = left * (role == WORKER ? computing : 1 - computing) * (1 - 1 / ratio);
    if (isnan(left))
        return dt_xstrdup("");
    if (saved <= c->a->restart_s)
        return NULL;
    return dt_xasprintf(": may save %.4g s of the %.4g s left, a restart costs %.3g s", saved, left,
                        c->a->restart_s);
}

static struct dt_wish move_busy(const struct dt_case *c, enum role role)
{
    const struct dt_role_load *l = role == PS ? &c->ps : &c->worker;
    double ratio;
    const double *x =
        l->load == DT_LOAD_SATURATED ? more_nodes(c, role, l->resource, &ratio) : NULL;
    char *worth = x ? worth_moving(c, role, ratio) : NULL;
    struct dt_wish w = {0};
    if (worth)
        w = dt_wish_for(c, x, why_move(c, x, role, l->resource, l->level, worth));
    free(worth);
    return w;
}

struct dt_wish dt_rule_nodes(const struct dt_case *c)
{
    struct dt_wish w = {0};
    if ((c->t->left > 1 || c->t->n == 1) && !was_in_vain(c)) { /* the last is for a step back */
        w = move_busy(c, WORKER);
        if (!w.x)
            w = move_busy(c, PS);
    }
    return w;
}

struct dt_wish dt_rule_nodes_memory(const struct dt_case *c, const char *role, double level)
{
    enum role of = strcmp(role, names[PS]) == 0 ? PS : WORKER;
    char *budget = dt_xasprintf("%s_mem", role);
    bool tuned = dt_space_index(c->s, budget) >= 0;
    double ratio;
    free(budget);
    if (!tuned && c->a->mem_given) /* the limit would be the same on any node */
        return (struct dt_wish){0};
    const double *x = more_nodes(c, of, DT_RESOURCE_MEM, &ratio);
    return x ? dt_wish_for(c, x, why_move(c, x, of, DT_RESOURCE_MEM, level, ""))
             : (struct dt_wish){0};
}
