/* What of a whole cluster one job may use. */
#include "expand/expand.h"
#include "space/cluster_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_in(const struct dt_strv *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->v[i], name) == 0)
            return true;
    return false;
}

/* The nodes that a node list names; none where it is the name of a file. */
static struct dt_strv listed(const char *list)
{
    struct dt_strv names = DT_STRV_INIT;
    if (list && !strchr(list, '/'))
        dt_hostlist_expand(list, &names, NULL);
    return names;
}

static void remove_excluded(const struct dt_node_group *g, const struct dt_strv *excluded,
                            struct dt_node_class *size)
{
    struct dt_strv names = listed(g->names);
    const struct dt_run *run = g->places.v;
    for (size_t i = 0, skipped = 0; i < names.n; i++) {
        if (g->places.n && i - skipped == run->n)
            skipped += run++->n;
        if (is_in(excluded, names.v[i]))
            size->count--;
        else if (g->places.n)
            dt_places_add(&size->places, run->first + i - skipped, 1);
    }
    dt_strv_free(&names);
}

/* Of the kind those that are usable and not excluded. */
static void take_usable(const struct dt_node_kind *k, const struct dt_strv *excluded,
                        struct dt_node_class *size)
{
    bool known = true;
    for (size_t i = 0; i < k->ngroups; i++) {
        const struct dt_node_group *g = &k->groups[i];
        if (!g->usable)
            continue;
        known = known && g->places.n;
        if (excluded->n)
            remove_excluded(g, excluded, size);
        else
            dt_places_join(&size->places, &g->places);
    }
    if (!known)
        dt_places_free(&size->places);
}

/* Those that allow the constraint; those of any kind (`kinds`) are told apart by their features. */
static void add_nodes(struct dt_cluster *c, const struct dt_system *s, const char *partition,
                      const struct dt_strv *excluded, const char *constraint, bool kinds)
{
    for (size_t i = 0; i < s->nkinds; i++) {
        const struct dt_node_kind *k = &s->kinds[i];
        struct dt_node_class size = k->size;
        if (!dt_kind_in(k, partition) || !dt_features_allow(size.features, constraint))
            continue;
        size.places = (struct dt_places){0};
        take_usable(k, excluded, &size);
        size.order = i + 1;
        size.features = kinds ? size.features : NULL;
        if (size.count)
            dt_cluster_add(c, &size);
        dt_places_free(&size.places);
    }
}

static void set_partition(struct dt_cluster *c, const struct dt_system *s,
                          const struct dt_partition *p)
{
    c->partition = dt_xstrdup(p->name);
    c->backfill = s->backfill;
    c->scheduling = s->scheduling;
    c->closed = strcmp(p->state, "up") != 0;
    dt_partition_limits_copy(&c->limits, &p->limits);
}

static char *all_features(const struct dt_system *s)
{
    struct dt_strv all = DT_STRV_INIT;
    for (size_t i = 0; i < s->nkinds; i++) {
        struct dt_strv own = DT_STRV_INIT;
        dt_strv_split(&own, s->kinds[i].size.features ? s->kinds[i].size.features : "", ",");
        for (size_t j = 0; j < own.n; j++)
            if (!is_in(&all, own.v[j]))
                dt_strv_add(&all, own.v[j]);
        dt_strv_free(&own);
    }
    char *text = dt_strv_join(&all, ",");
    dt_strv_free(&all);
    return text;
}

/* What else there is but the nodes of the job as submitted. */
static void add_kinds(struct dt_cluster *c, const struct dt_system *s,
                      const struct dt_strv *excluded)
{
    c->features = all_features(s);
    c->partitions = dt_xcalloc(s->npartitions, sizeof(*c->partitions));
    for (size_t i = 0; i < s->npartitions; i++) {
        struct dt_cluster *p = &c->partitions[c->npartitions++];
        set_partition(p, s, &s->partitions[i]);
        add_nodes(p, s, s->partitions[i].name, excluded, NULL, true);
    }
}

/* ---- limits ---- */

static bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* The user's association that the job goes by: of the account it names, else of the user's own; one
 * for the partition comes before one for all. */
static const struct dt_limits *association(const struct dt_system *s, const char *account,
                                           const char *partition)
{
    const struct dt_limits *found = NULL;
    for (size_t i = 0; i < s->nlimits; i++) {
        const struct dt_limits *l = &s->limits[i];
        bool meant = l->user && (account ? same(l->account, account) : l->preset);
        if (meant && (!l->partition ? !found : same(l->partition, partition)))
            found = l;
    }
    return found;
}

static const struct dt_limits *account_limits(const struct dt_system *s, const char *account)
{
    for (size_t i = 0; i < s->nlimits; i++)
        if (!s->limits[i].is_qos && !s->limits[i].user && same(s->limits[i].account, account))
            return &s->limits[i];
    return NULL;
}

/* Leaves only the amounts that `by` says nothing of. */
static void yield_amounts(struct dt_amounts *a, const struct dt_amounts *by)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        if (dt_amounts_get(by, a->v[i].name, DT_NO_LIMIT) == DT_NO_LIMIT)
            a->v[n++] = a->v[i];
        else
            free(a->v[i].name);
    }
    a->n = n;
}

static void yield_number(uint64_t *n, uint64_t by)
{
    *n = by == DT_NO_LIMIT ? *n : DT_NO_LIMIT;
}

/* What a QOS limits nothing behind it limits any more. */
static void yield(struct dt_limits *l, const struct dt_limits *qos)
{
    yield_amounts(&l->per_job, &qos->per_job);
    yield_amounts(&l->per_node, &qos->per_node);
    yield_amounts(&l->per_user, &qos->per_user);
    yield_amounts(&l->group, &qos->group);
    l->max_time = isfinite(qos->max_time) ? INFINITY : l->max_time;
    yield_number(&l->jobs, qos->jobs);
    yield_number(&l->submitted, qos->submitted);
    yield_number(&l->group_jobs, qos->group_jobs);
    yield_number(&l->group_submitted, qos->group_submitted);
}

/* An account's limits of one job and of one user are those of the user's own association, which
 * has them from there or its own in their place. */
static void leave_groups(struct dt_limits *l)
{
    dt_amounts_free(&l->per_job);
    dt_amounts_free(&l->per_node);
    l->max_time = INFINITY;
    l->jobs = l->submitted = DT_NO_LIMIT;
}

static void bind(struct dt_cluster *c, const struct dt_limits *l)
{
    struct dt_limits *own;
    c->binding = dt_xrealloc(c->binding, c->nbinding + 1, sizeof(*c->binding));
    own = &c->binding[c->nbinding++];
    dt_limits_copy(own, l);
    if (!own->is_qos && !own->user)
        leave_groups(own);
    for (size_t i = 0; i + 1 < c->nbinding; i++)
        if (c->binding[i].is_qos)
            yield(own, &c->binding[i]);
}

static void bind_qos(struct dt_cluster *c, const struct dt_system *s, const char *name)
{
    for (size_t i = 0; i < s->nlimits; i++)
        if (s->limits[i].is_qos && same(s->limits[i].qos, name))
            bind(c, &s->limits[i]);
}

static void add_limits(struct dt_cluster *c, const struct dt_system *s,
                       const struct dt_submission *sub)
{
    const char *qos = dt_submission_value(sub, "qos");
    const struct dt_limits *own = association(s, dt_submission_value(sub, "account"), c->partition);
    if (!s->nlimits)
        return;
    if (!qos)
        qos = own && own->qos ? own->qos : "normal";
    c->account = own ? dt_xstrdup(own->account) : NULL;
    c->qos = dt_xstrdup(qos);
    if (c->limits.qos)
        bind_qos(c, s, c->limits.qos);
    if (!same(qos, c->limits.qos))
        bind_qos(c, s, qos);
    if (own)
        bind(c, own);
    const struct dt_limits *l = own ? account_limits(s, own->account) : NULL;
    for (size_t i = 0; l && i <= s->nlimits;
         i++) { /* the bound: a file's accounts may go in a circle */
        bind(c, l);
        l = account_limits(s, l->parent);
    }
}

/* ---- all of it ---- */

/* Nodes asked for by name must be there. */
static int check_nodelist(const struct dt_system *s, const struct dt_submission *sub,
                          const char *partition, struct dt_error *e)
{
    const struct dt_option *o = dt_submission_get(sub, "nodelist");
    const char *partitions = dt_submission_value(sub, "partition");
    if (!o || !o->value || (partitions && strchr(partitions, ',')))
        return 0; /* in several they may lie in another one */
    struct dt_strv wanted = listed(o->value), there = DT_STRV_INIT;
    const char *missing = NULL;
    for (size_t i = 0; wanted.n && i < s->nkinds; i++)
        for (size_t j = 0; dt_kind_in(&s->kinds[i], partition) && j < s->kinds[i].ngroups; j++)
            dt_hostlist_expand(s->kinds[i].groups[j].names, &there, NULL);
    for (size_t i = 0; i < wanted.n && !missing; i++)
        missing = is_in(&there, wanted.v[i]) ? NULL : wanted.v[i];
    if (missing) {
        char *title = dt_option_title(sub, o), *names = dt_hostlist_compress(&there);
        dt_fail(e, "%s: there is no node \"%s\" in partition %s; its nodes are %s", title, missing,
                partition, names);
        free(title);
        free(names);
    }
    int rc = missing ? -1 : 0;
    dt_strv_free(&wanted);
    dt_strv_free(&there);
    return rc;
}

/* The looser of two limits of which 0 is none. */
static uint64_t looser(uint64_t a, uint64_t b)
{
    return !a || !b ? 0 : a > b ? a : b;
}

/* Where a job may go to several partitions, only what all of them forbid is forbidden. */
static void loosen(struct dt_partition_limits *l, const struct dt_partition_limits *other)
{
    char **const lists[] = {&l->allow_accounts, &l->deny_accounts, &l->allow_qos, &l->deny_qos};
    l->max_nodes = looser(l->max_nodes, other->max_nodes);
    l->max_cpus_per_node = looser(l->max_cpus_per_node, other->max_cpus_per_node);
    l->max_mem_per_cpu = looser(l->max_mem_per_cpu, other->max_mem_per_cpu);
    l->max_mem_per_node = looser(l->max_mem_per_node, other->max_mem_per_node);
    l->min_nodes = l->min_nodes < other->min_nodes ? l->min_nodes : other->min_nodes;
    l->max_time = l->max_time > other->max_time ? l->max_time : other->max_time;
    l->exclusive &= other->exclusive;
    l->reserved &= other->reserved;
    l->foreign &= other->foreign;
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        free(*lists[i]);
        *lists[i] = NULL;
    }
}

/* Of several partitions the first is the model, but for its limits. */
static int set_partitions(struct dt_cluster *c, const struct dt_system *s,
                          const struct dt_strv *names, struct dt_error *e)
{
    for (size_t i = 0; i < names->n || i == 0; i++) {
        const struct dt_partition *p =
            dt_system_partition(s, names->n ? names->v[i] : NULL, i ? NULL : e);
        if (!p && i == 0)
            return -1;
        if (i == 0)
            set_partition(c, s, p);
        else if (p)
            loosen(&c->limits, &p->limits);
    }
    return 0;
}

struct dt_cluster *dt_job_cluster(const struct dt_system *s, const struct dt_submission *sub,
                                  bool kinds, struct dt_error *e)
{
    struct dt_cluster *c = dt_xcalloc(1, sizeof(*c));
    struct dt_strv names = DT_STRV_INIT, excluded = listed(dt_submission_value(sub, "exclude"));
    const char *wanted = dt_submission_value(sub, "partition");
    dt_strv_split(&names, wanted ? wanted : "", ",");
    bool ok = set_partitions(c, s, &names, e) == 0 && check_nodelist(s, sub, c->partition, e) == 0;
    if (ok)
        add_nodes(c, s, c->partition, &excluded, dt_submission_value(sub, "constraint"), false);
    if (ok && !c->n) {
        dt_fail(e,
                "partition %s has no node that is up and fits the job's --constraint and --exclude",
                c->partition);
        ok = false;
    }
    if (ok && kinds)
        add_kinds(c, s, &excluded);
    if (ok) {
        dt_amounts_copy(&c->licenses, &s->licenses);
        add_limits(c, s, sub);
    } else {
        dt_cluster_free(c);
    }
    dt_strv_free(&names);
    dt_strv_free(&excluded);
    return ok ? c : NULL;
}
