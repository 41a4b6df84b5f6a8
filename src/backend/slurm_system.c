/* The whole cluster as slurmctld describes it: one request each for configuration, partitions and
 * nodes, and only where they are wanted for switches, licences and limits. */
#include "backend/slurm_private.h"
#include "util/slurm.h"

#include <errno.h>
#include <grp.h>
#include <math.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *own(const char *text)
{
    return text && *text ? dt_xstrdup(text) : NULL;
}

/* ---- nodes ---- */

static const char *state_word(const node_info_t *node)
{
    static const char *const words[] = {
        [NODE_STATE_UNKNOWN] = "unknown", [NODE_STATE_DOWN] = "down",
        [NODE_STATE_IDLE] = "idle",       [NODE_STATE_ALLOCATED] = "allocated",
        [NODE_STATE_ERROR] = "error",     [NODE_STATE_MIXED] = "mixed",
        [NODE_STATE_FUTURE] = "future",
    };
    uint32_t base = node->node_state & NODE_STATE_BASE;
    if (node->node_state & NODE_STATE_DRAIN)
        return "drain";
    if (node->node_state & NODE_STATE_FAIL)
        return "fail";
    if (node->node_state & NODE_STATE_NO_RESPOND)
        return "silent";
    return base < sizeof(words) / sizeof(*words) ? words[base] : "unknown";
}

/* The partitions of each node: "main,short". */
static struct dt_buf *memberships(const partition_info_msg_t *parts, const node_info_msg_t *nodes)
{
    struct dt_buf *of = dt_xcalloc(nodes->record_count, sizeof(*of));
    for (uint32_t p = 0; p < parts->record_count; p++) {
        const partition_info_t *part = &parts->partition_array[p];
        const int *range = (const int *)part->node_inx;
        for (; range && range[0] >= 0; range += 2)
            for (int i = range[0]; i <= range[1] && i < (int)nodes->record_count; i++)
                dt_buf_addf(&of[i], "%s%s", of[i].len ? "," : "", part->name);
    }
    return of;
}

/* While nodes are counted: of each group of each kind the names. */
struct counting {
    struct dt_system *s;
    struct dt_strv **names;
};

static struct dt_node_kind *kind_for(struct counting *c, const struct dt_node_class *size,
                                     const char *partitions)
{
    struct dt_system *s = c->s;
    for (size_t i = 0; i < s->nkinds; i++)
        if (dt_class_same(&s->kinds[i].size, size) &&
            strcmp(s->kinds[i].partitions, partitions) == 0)
            return &s->kinds[i];
    s->kinds = dt_xrealloc(s->kinds, s->nkinds + 1, sizeof(*s->kinds));
    c->names = dt_xrealloc(c->names, s->nkinds + 1, sizeof(*c->names));
    c->names[s->nkinds] = NULL;
    struct dt_node_kind *k = &s->kinds[s->nkinds++];
    *k = (struct dt_node_kind){.size = *size, .partitions = dt_xstrdup(partitions)};
    k->size.features = dt_xstrdup(size->features);
    k->size.gres = dt_xstrdup(size->gres);
    return k;
}

/* `place`: in Slurm's table, from 1. */
static void count_node(struct counting *c, const node_info_t *n, const char *partitions,
                       size_t place)
{
    const struct dt_node_class size = dt_slurm_size(n);
    struct dt_node_kind *k = kind_for(c, &size, partitions);
    struct dt_strv **names = &c->names[k - c->s->kinds];
    const char *state = state_word(n);
    size_t i = 0;
    while (i < k->ngroups && strcmp(k->groups[i].state, state) != 0)
        i++;
    if (i == k->ngroups) {
        k->groups = dt_xrealloc(k->groups, ++k->ngroups, sizeof(*k->groups));
        *names = dt_xrealloc(*names, k->ngroups, sizeof(**names));
        k->groups[i] =
            (struct dt_node_group){.state = dt_xstrdup(state), .usable = dt_slurm_usable(n)};
        (*names)[i] = (struct dt_strv)DT_STRV_INIT;
    }
    dt_strv_add(&(*names)[i], n->name);
    dt_places_add(&k->groups[i].places, place, 1);
    k->groups[i].count++;
    k->total++;
    k->size.count += k->groups[i].usable;
}

static void add_nodes(struct dt_system *s, const partition_info_msg_t *parts,
                      const node_info_msg_t *nodes)
{
    struct counting c = {.s = s};
    struct dt_buf *of = memberships(parts, nodes);
    for (uint32_t i = 0; i < nodes->record_count; i++) {
        if (nodes->node_array[i].name)
            count_node(&c, &nodes->node_array[i], of[i].s ? of[i].s : "", i + 1);
        dt_buf_free(&of[i]);
    }
    free(of);
    for (size_t i = 0; i < s->nkinds; i++) {
        for (size_t j = 0; j < s->kinds[i].ngroups; j++) {
            s->kinds[i].groups[j].names = dt_hostlist_compress(&c.names[i][j]);
            dt_strv_free(&c.names[i][j]);
        }
        free(c.names[i]);
    }
    free(c.names);
}

/* ---- partitions ---- */

/* An amount of memory in Slurm's form, a flag telling of what: of a CPU, or of a node. */
static void set_memory(uint64_t own_value, uint64_t general, uint64_t *per_cpu, uint64_t *per_node)
{
    uint64_t v = own_value ? own_value : general;
    if (!v || v == NO_VAL64 || v == INFINITE64 || v == MEM_PER_CPU)
        return;
    if (v & MEM_PER_CPU)
        *per_cpu = v & ~MEM_PER_CPU;
    else
        *per_node = v;
}

/* What jobs get with each GPU. The list's type has another name in newer headers. */
static void take_defaults(void *list, struct dt_partition_limits *l)
{
    if (!list)
        return;
    __auto_type all = slurm_list_iterator_create(list);
    for (const job_defaults_t *d; (d = slurm_list_next(all));) {
        if (d->type == JOB_DEF_CPU_PER_GPU)
            l->def_cpus_per_gpu = d->value;
        else if (d->type == JOB_DEF_MEM_PER_GPU)
            l->def_mem_per_gpu = d->value;
    }
    slurm_list_iterator_destroy(all);
}

static uint64_t limit32(uint32_t n)
{
    return n >= NO_VAL - 1 ? 0 : n;
}

static const char *partition_state(uint16_t state)
{
    bool takes = state & PARTITION_SUBMIT, starts = state & PARTITION_SCHED;
    return takes && starts ? "up" : takes ? "down" : starts ? "drain" : "inactive";
}

static void set_first_node(struct dt_partition_limits *l, const partition_info_t *part,
                           const node_info_msg_t *nodes)
{
    int first = part->node_inx ? part->node_inx[0] : -1;
    if (first < 0 || first >= (int)nodes->record_count || !nodes->node_array[first].name)
        return;
    const struct dt_node_class size = dt_slurm_size(&nodes->node_array[first]);
    l->first_cpus = size.cpus;
    l->first_mem = size.mem_mib;
}

/* Whether this user is in one of the groups, by the group database as it is here. */
static bool is_member(const char *groups)
{
    struct passwd *me = getpwuid(getuid());
    struct dt_strv names = DT_STRV_INIT;
    int n = 0;
    gid_t *mine = NULL;
    if (me)
        getgrouplist(me->pw_name, me->pw_gid, NULL, &n);
    mine = dt_xcalloc((size_t)n + 1, sizeof(*mine));
    n = me ? getgrouplist(me->pw_name, me->pw_gid, mine, &n) : -1;
    dt_strv_split(&names, groups, ",");
    bool found = n < 0; /* then it is not known */
    for (size_t i = 0; i < names.n && !found; i++) {
        const struct group *g = getgrnam(names.v[i]);
        for (int k = 0; g && k < n; k++)
            found |= mine[k] == g->gr_gid;
    }
    dt_strv_free(&names);
    free(mine);
    return found;
}

/* As slurmctld judges: root and its own user may go anywhere. */
static bool is_foreign(const struct dt_partition_limits *l, const slurm_conf_t *conf)
{
    uid_t me = getuid();
    if (me == 0 || me == conf->slurm_user_id)
        return false;
    return l->root_only || (l->allow_groups && !is_member(l->allow_groups));
}

static void add_partition(struct dt_system *s, const partition_info_t *part,
                          const node_info_msg_t *nodes, const slurm_conf_t *conf)
{
    struct dt_partition *p = &s->partitions[s->npartitions++];
    struct dt_partition_limits *l = &p->limits;
    p->name = dt_xstrdup(part->name);
    p->state = dt_xstrdup(partition_state(part->state_up));
    p->preset = part->flags & PART_FLAG_DEFAULT;
    l->max_nodes = limit32(part->max_nodes);
    l->min_nodes = part->min_nodes > 1 ? limit32(part->min_nodes) : 0;
    l->max_cpus_per_node = limit32(part->max_cpus_per_node);
    l->max_time = part->max_time >= NO_VAL - 1 ? INFINITY : 60.0 * part->max_time;
    set_memory(part->def_mem_per_cpu, conf->def_mem_per_cpu, &l->def_mem_per_cpu,
               &l->def_mem_per_node);
    set_memory(part->max_mem_per_cpu, conf->max_mem_per_cpu, &l->max_mem_per_cpu,
               &l->max_mem_per_node);
    take_defaults(conf->job_defaults_list, l);
    take_defaults(part->job_defaults_list, l);
    l->total_nodes = part->total_nodes;
    l->total_cpus = part->total_cpus;
    set_first_node(l, part, nodes);
    l->exclusive = part->max_share == 0;
    l->reserved = part->flags & PART_FLAG_REQ_RESV;
    l->root_only = part->flags & PART_FLAG_ROOT_ONLY;
    l->allow_accounts = own(part->allow_accounts);
    l->deny_accounts = own(part->deny_accounts);
    l->allow_qos = own(part->allow_qos);
    l->deny_qos = own(part->deny_qos);
    l->allow_groups = own(part->allow_groups);
    l->qos = own(part->qos_char);
    l->foreign = is_foreign(l, conf);
}

static void set_scheduling(struct dt_system *s, const slurm_conf_t *conf)
{
    uint16_t type = conf->select_type_param;
    bool linear = conf->select_type && strcmp(conf->select_type, "select/linear") == 0;
    s->name = own(conf->cluster_name);
    s->version = own(conf->version);
    s->backfill = conf->schedtype && strcmp(conf->schedtype, "sched/backfill") == 0;
    s->scheduling = (struct dt_scheduling){.known = !linear,
                                           .memory = type & CR_MEMORY,
                                           .cores = type & CR_CORE,
                                           .sockets = type & CR_SOCKET,
                                           .enforced = conf->enforce_part_limits};
}

/* ---- switches and licences ---- */

/* From 25.05 on the library gives no table of them. */
static void load_switches(struct dt_system *s)
{
#if !DT_SLURM_AT_LEAST(25, 5)
    topo_info_response_msg_t *topo = NULL;
    if (slurm_load_topo(&topo) != SLURM_SUCCESS)
        return;
    s->switches = dt_xcalloc(topo->record_count, sizeof(*s->switches));
    for (uint32_t i = 0; i < topo->record_count; i++) {
        const topo_info_t *t = &topo->topo_array[i];
        if (t->name && *t->name)
            s->switches[s->nswitches++] = (struct dt_switch){.name = dt_xstrdup(t->name),
                                                             .level = t->level,
                                                             .nodes = own(t->nodes),
                                                             .switches = own(t->switches)};
    }
    slurm_free_topo_info_msg(topo);
#else
    (void)s;
#endif
}

static void load_licenses(struct dt_system *s)
{
    license_info_msg_t *lic = NULL;
    if (slurm_load_licenses(0, &lic, SHOW_ALL) != SLURM_SUCCESS)
        return;
    for (uint32_t i = 0; i < lic->num_lic; i++)
        dt_amounts_set(&s->licenses, lic->lic_array[i].name, lic->lic_array[i].total);
    slurm_free_license_info_msg(lic);
}

struct dt_system *dt_slurm_system(bool all, bool licenses, struct dt_error *e)
{
    partition_info_msg_t *parts = NULL;
    node_info_msg_t *nodes = NULL;
    slurm_conf_t *conf = NULL;
    struct dt_system *s = NULL;
    if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS ||
        slurm_load_partitions(0, &parts, SHOW_ALL) != SLURM_SUCCESS ||
        slurm_load_node(0, &nodes, SHOW_ALL) != SLURM_SUCCESS) {
        dt_fail(e, "slurmctld does not answer: %s", slurm_strerror(errno));
        goto out;
    }
    s = dt_xcalloc(1, sizeof(*s));
    set_scheduling(s, conf);
    s->partitions = dt_xcalloc(parts->record_count, sizeof(*s->partitions));
    for (uint32_t i = 0; i < parts->record_count; i++)
        add_partition(s, &parts->partition_array[i], nodes, conf);
    add_nodes(s, parts, nodes);
    if (all)
        load_switches(s);
    if (all || licenses)
        load_licenses(s);
    if (conf->accounting_storage_enforce)
        dt_slurm_limits(s, conf->accounting_storage_enforce);
out:
    slurm_free_ctl_conf(conf);
    slurm_free_partition_info_msg(parts);
    slurm_free_node_info_msg(nodes);
    return s;
}
