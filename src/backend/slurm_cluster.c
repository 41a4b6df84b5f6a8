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

/* --constraint of plain words joined by & is understood; anything richer is left to Slurm. */
static bool has_features(const char *features, const char *constraint)
{
    struct dt_strv want = DT_STRV_INIT, have = DT_STRV_INIT;
    bool ok = true;
    if (!constraint || strpbrk(constraint, "|[]*()"))
        return true;
    dt_strv_split(&want, constraint, "&,");
    dt_strv_split(&have, features ? features : "", ",");
    for (size_t i = 0; i < want.n; i++) {
        bool found = false;
        for (size_t j = 0; j < have.n; j++)
            found |= strcmp(want.v[i], have.v[j]) == 0;
        ok &= found;
    }
    dt_strv_free(&want);
    dt_strv_free(&have);
    return ok;
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

static void add_nodes(struct dt_cluster *c, const partition_info_t *part,
                      const node_info_msg_t *nodes, const struct dt_submission *s)
{
    const char *exclude = dt_submission_value(s, "exclude"),
               *constraint = dt_submission_value(s, "constraint");
    for (uint32_t i = 0; i < nodes->record_count; i++) {
        const node_info_t *n = &nodes->node_array[i];
        if (!n->name || !usable(n) || !in_hosts(part->nodes, n->name) ||
            in_hosts(exclude, n->name) ||
            !has_features(n->features_act ? n->features_act : n->features, constraint))
            continue;
        dt_cluster_add(c, &(struct dt_node_class){.count = 1,
                                                  .cpus = n->cpus,
                                                  .mem_mib = n->real_memory,
                                                  .tmp_mib = n->tmp_disk,
                                                  .gpus = dt_slurm_gpus(n->gres)});
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

struct dt_cluster *dt_slurm_cluster(const struct dt_submission *s, struct dt_error *e)
{
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
    c->partition = dt_xstrdup(part->name);
    c->backfill = conf->schedtype && strcmp(conf->schedtype, "sched/backfill") == 0;
    c->max_nodes = part->max_nodes >= NO_VAL - 1 ? 0 : part->max_nodes;
    c->max_time = part->max_time >= NO_VAL - 1 ? INFINITY : 60.0 * part->max_time;
    add_nodes(c, part, nodes, s);
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
