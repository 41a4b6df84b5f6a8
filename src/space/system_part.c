/* A part of a system: one node, or one partition. */
#include "space/system_private.h"

#include <stdlib.h>
#include <string.h>

static bool is_in(const struct dt_strv *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->v[i], name) == 0)
            return true;
    return false;
}

static struct dt_strv expanded(const char *list)
{
    struct dt_strv names = DT_STRV_INIT;
    if (list)
        dt_hostlist_expand(list, &names, NULL);
    return names;
}

/* Cuts the kind down to one node; false where it is not of this kind. */
static bool cut_kind(struct dt_node_kind *k, const char *node)
{
    bool found = false;
    for (size_t i = 0; i < k->ngroups; i++) {
        struct dt_node_group *g = &k->groups[i];
        struct dt_strv names = expanded(g->names);
        bool here = !found && is_in(&names, node);
        dt_strv_free(&names);
        if (!here) {
            dt_node_group_free(g);
            continue;
        }
        free(g->names);
        g->names = dt_xstrdup(node);
        dt_places_free(&g->places);
        g->count = 1;
        k->size.count = g->usable;
        k->groups[0] = *g;
        found = true;
    }
    k->ngroups = k->total = found;
    return found;
}

static void keep_kinds(struct dt_system *s, const char *node, const char *partition)
{
    size_t n = 0;
    for (size_t i = 0; i < s->nkinds; i++) {
        bool wanted = !partition || dt_kind_in(&s->kinds[i], partition);
        if (wanted && (!node || cut_kind(&s->kinds[i], node)))
            s->kinds[n++] = s->kinds[i];
        else
            dt_node_kind_free(&s->kinds[i]);
    }
    s->nkinds = n;
}

/* With a partition it alone, with a node those that it is in. */
static void keep_partitions(struct dt_system *s, const char *partition)
{
    size_t n = 0;
    for (size_t i = 0; i < s->npartitions; i++) {
        struct dt_partition *p = &s->partitions[i];
        bool wanted =
            partition ? strcmp(p->name, partition) == 0 : dt_kind_in(&s->kinds[0], p->name);
        if (wanted)
            s->partitions[n++] = *p;
        else
            dt_partition_free(p);
    }
    s->npartitions = n;
}

/* Those that lead to a node that is left, from below upwards. */
static void keep_switches(struct dt_system *s)
{
    struct dt_strv nodes = DT_STRV_INIT;
    size_t n = 0;
    for (size_t i = 0; i < s->nkinds; i++)
        for (size_t j = 0; j < s->kinds[i].ngroups; j++)
            dt_hostlist_expand(s->kinds[i].groups[j].names, &nodes, NULL);
    for (size_t i = 0; i < s->nswitches; i++) {
        struct dt_switch *w = &s->switches[i];
        struct dt_strv below = expanded(w->nodes);
        bool wanted = false;
        for (size_t j = 0; j < below.n && !wanted; j++)
            wanted = is_in(&nodes, below.v[j]);
        dt_strv_free(&below);
        if (wanted)
            s->switches[n++] = *w;
        else
            dt_switch_free(w);
    }
    s->nswitches = n;
    dt_strv_free(&nodes);
}

int dt_system_keep(struct dt_system *s, const char *node, const char *partition, struct dt_error *e)
{
    if (partition && !dt_system_partition(s, partition, e))
        return -1;
    if (!node && !partition)
        return 0;
    keep_kinds(s, node, partition);
    if (node && !s->nkinds)
        return dt_fail(e, "--node: there is no node \"%s\"%s%s", node,
                       partition ? " in partition " : "", partition ? partition : "");
    keep_partitions(s, partition);
    keep_switches(s);
    return 0;
}
