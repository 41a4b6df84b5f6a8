#include "backend/slurm_private.h"

#include <errno.h>
#include <math.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdlib.h>
#include <string.h>

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
#define slurm_free_ctl_conf slurm_free_conf
#endif

size_t dt_slurm_gpus(const char *gres)
{
    struct dt_strv parts = DT_STRV_INIT;
    size_t n = 0;
    dt_strv_split(&parts, gres ? gres : "", ",");
    for (size_t i = 0; i < parts.n; i++) {
        char *p = parts.v[i];
        p[strcspn(p, "(")] = '\0';
        if (!dt_starts_with(p, "gpu:"))
            continue;
        int64_t count;
        if (dt_parse_int64(strrchr(p, ':') + 1, &count) == 0 && count > 0)
            n += (size_t)count;
    }
    dt_strv_free(&parts);
    return n;
}

static bool in_hosts(const char *hosts, const char *name)
{
    if (!hosts)
        return false;
    __auto_type list = slurm_hostlist_create(
        hosts); /* a pointer to an opaque type that changed its name in 23.11 */
    bool found = list && slurm_hostlist_find(list, name) >= 0;
    slurm_hostlist_destroy(list);
    return found;
}

static bool usable(const node_info_t *node)
{
    uint32_t base = node->node_state & NODE_STATE_BASE;
    bool off = node->node_state & (NODE_STATE_DRAIN | NODE_STATE_FAIL | NODE_STATE_NO_RESPOND);
    return !off &&
           (base == NODE_STATE_IDLE || base == NODE_STATE_ALLOCATED || base == NODE_STATE_MIXED);
}

static const char *features_of(const node_info_t *n)
{
    const char *features = n->features_act ? n->features_act : n->features;
    return features ? features : "";
}

/* Nodes that allow the constraint; those of any kind (`kinds`) are told apart by their features. */
static void add_nodes(struct dt_cluster *c, const partition_info_t *part,
                      const node_info_msg_t *nodes, const char *exclude, const char *constraint,
                      bool kinds)
{
    for (uint32_t i = 0; i < nodes->record_count; i++) {
        const node_info_t *n = &nodes->node_array[i];
        if (!n->name || !usable(n) || !in_hosts(part->nodes, n->name) ||
            in_hosts(exclude, n->name) || !dt_features_allow(features_of(n), constraint))
            continue;
        dt_cluster_add(c,
                       &(struct dt_node_class){.count = 1,
                                               .cpus = n->cpus,
                                               .mem_mib = n->real_memory,
                                               .tmp_mib = n->tmp_disk,
                                               .gpus = dt_slurm_gpus(n->gres),
                                               .features = kinds ? (char *)features_of(n) : NULL});
    }
}

static void set_limits(struct dt_cluster *c, const partition_info_t *part)
{
    c->partition = dt_xstrdup(part->name);
    c->max_nodes = part->max_nodes >= NO_VAL - 1 ? 0 : part->max_nodes;
    c->max_time = part->max_time >= NO_VAL - 1 ? INFINITY : 60.0 * part->max_time;
    c->closed = !(part->state_up & PARTITION_SCHED);
}

static char *all_features(const node_info_msg_t *nodes)
{
    struct dt_strv all = DT_STRV_INIT;
    for (uint32_t i = 0; i < nodes->record_count; i++) {
        struct dt_strv own = DT_STRV_INIT;
        dt_strv_split(&own, features_of(&nodes->node_array[i]), ",");
        for (size_t j = 0; j < own.n; j++) {
            bool known = false;
            for (size_t k = 0; k < all.n && !known; k++)
                known = strcmp(all.v[k], own.v[j]) == 0;
            if (!known)
                dt_strv_add(&all, own.v[j]);
        }
        dt_strv_free(&own);
    }
    char *text = dt_strv_join(&all, ",");
    dt_strv_free(&all);
    return text;
}

/* What else there is but the nodes of the job as submitted. */
static void add_kinds(struct dt_cluster *c, const partition_info_msg_t *parts,
                      const node_info_msg_t *nodes, const char *exclude)
{
    c->features = all_features(nodes);
    c->partitions = dt_xcalloc(parts->record_count, sizeof(*c->partitions));
    for (uint32_t i = 0; i < parts->record_count; i++) {
        struct dt_cluster *p = &c->partitions[c->npartitions++];
        p->backfill = c->backfill;
        set_limits(p, &parts->partition_array[i]);
        add_nodes(p, &parts->partition_array[i], nodes, exclude, NULL, true);
    }
}

static const partition_info_t *find_partition(const partition_info_msg_t *parts, const char *wanted,
                                              struct dt_error *e)
{
    struct dt_strv names = DT_STRV_INIT, known = DT_STRV_INIT;
    const partition_info_t *found = NULL;
    dt_strv_split(&names, wanted ? wanted : "", ","); /* of several the first is the model */
    for (uint32_t i = 0; i < parts->record_count && !found; i++) {
        const partition_info_t *p = &parts->partition_array[i];
        dt_strv_add(&known, p->name);
        if (names.n ? strcmp(p->name, names.v[0]) == 0 : (p->flags & PART_FLAG_DEFAULT) != 0)
            found = p;
    }
    if (!found && names.n) {
        char *list = dt_strv_join(&known, ", ");
        dt_fail(e, "--partition: there is no partition \"%s\"; there are: %s", names.v[0], list);
        free(list);
    } else if (!found) {
        dt_fail(e, "no partition is the default here; choose one with --partition");
    }
    dt_strv_free(&names);
    dt_strv_free(&known);
    return found;
}

/* Nodes asked for by name must be there. */
static int check_nodelist(const struct dt_submission *s, const partition_info_t *part,
                          struct dt_error *e)
{
    const struct dt_option *o = dt_submission_get(s, "nodelist");
    const char *partitions = dt_submission_value(s, "partition");
    if (!o || !o->value || strchr(o->value, '/')) /* with a slash it is the name of a file */
        return 0;
    if (partitions && strchr(partitions, ','))
        return 0; /* they may lie in another one */
    __auto_type list = slurm_hostlist_create(o->value);
    char *name = NULL;
    while (list && (name = slurm_hostlist_shift(list)) && in_hosts(part->nodes, name))
        free(name);
    slurm_hostlist_destroy(list);
    if (!name)
        return 0;
    char *title = dt_option_title(s, o);
    dt_fail(e, "%s: there is no node \"%s\" in partition %s; its nodes are %s", title, name,
            part->name, part->nodes);
    free(title);
    free(name);
    return -1;
}

struct dt_cluster *dt_slurm_cluster(const struct dt_submission *s, bool kinds, struct dt_error *e)
{
    const char *exclude = dt_submission_value(s, "exclude");
    partition_info_msg_t *parts = NULL;
    node_info_msg_t *nodes = NULL;
    slurm_conf_t *conf = NULL;
    struct dt_cluster *c = NULL;
    if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS ||
        slurm_load_partitions(0, &parts, SHOW_ALL) != SLURM_SUCCESS ||
        slurm_load_node(0, &nodes, SHOW_ALL) != SLURM_SUCCESS) {
        dt_fail(e, "slurmctld does not answer: %s", slurm_strerror(errno));
        goto out;
    }
    const partition_info_t *part = find_partition(parts, dt_submission_value(s, "partition"), e);
    if (!part || check_nodelist(s, part, e) < 0)
        goto out;
    c = dt_xcalloc(1, sizeof(*c));
    set_limits(c, part);
    c->backfill = conf->schedtype && strcmp(conf->schedtype, "sched/backfill") == 0;
    add_nodes(c, part, nodes, exclude, dt_submission_value(s, "constraint"), false);
    if (kinds)
        add_kinds(c, parts, nodes, exclude);
    if (c->n == 0) {
        dt_fail(e,
                "partition %s has no node that is up and fits the job's --constraint and --exclude",
                part->name);
        dt_cluster_free(c);
        c = NULL;
    }
out:
    slurm_free_ctl_conf(conf);
    slurm_free_partition_info_msg(parts);
    slurm_free_node_info_msg(nodes);
    return c;
}
