/* The limits of this user, as slurmctld holds them: of the user's associations, of the accounts
 * above, and of QOSs. It has them from slurmdbd, which nobody here asks: one that is down keeps
 * nobody waiting. */
#include "backend/slurm_private.h"
#include "space/cluster_private.h"
#include "util/slurm.h"

#include <math.h>
#include <pwd.h>
#include <slurm/slurmdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bits of AccountingStorageEnforce; no header that is installed names them. */
#define ENFORCE_LIMITS 0x2
#define ENFORCE_QOS 0x8

static char *own(const char *text)
{
    return text && *text ? dt_xstrdup(text) : NULL;
}

static uint64_t limit32(uint32_t n)
{
    return n >= NO_VAL - 1 ? DT_NO_LIMIT : n;
}

static struct dt_amounts amounts_of(const assoc_mgr_info_msg_t *msg, const uint64_t *ctld)
{
    struct dt_amounts a = {0};
    for (uint32_t i = 0; ctld && i < msg->tres_cnt; i++)
        if (ctld[i] < NO_VAL64 - 1)
            dt_amounts_set(&a, msg->tres_names[i], ctld[i]);
    return a;
}

static struct dt_limits *add(struct dt_system *s)
{
    s->limits = dt_xrealloc(s->limits, s->nlimits + 1, sizeof(*s->limits));
    struct dt_limits *l = &s->limits[s->nlimits++];
    *l = (struct dt_limits){0};
    return l;
}

static double minutes(uint32_t n)
{
    return n >= NO_VAL - 1 ? INFINITY : 60.0 * n;
}

static void add_association(struct dt_system *s, const assoc_mgr_info_msg_t *msg,
                            const slurmdb_assoc_rec_t *a, const char *qos)
{
    struct dt_limits *l = add(s);
    bool user = a->user && *a->user;
    l->who =
        user ? dt_xasprintf("user %s in account %s%s%s", a->user, a->acct,
                            a->partition ? ", partition " : "", a->partition ? a->partition : "")
             : dt_xasprintf("account %s", a->acct);
    l->account = own(a->acct);
    l->parent = user ? NULL : own(a->parent_acct);
    l->user = own(a->user);
    l->partition = own(a->partition);
    l->qos = own(qos);
    l->preset = user && a->is_def == 1;
    l->per_job = amounts_of(msg, a->max_tres_ctld);
    l->per_node = amounts_of(msg, a->max_tres_pn_ctld);
    l->group = amounts_of(msg, a->grp_tres_ctld);
    l->max_time = minutes(a->max_wall_pj);
    l->jobs = limit32(a->max_jobs);
    l->submitted = limit32(a->max_submit_jobs);
    l->group_jobs = limit32(a->grp_jobs);
    l->group_submitted = limit32(a->grp_submit_jobs);
}

static void add_qos(struct dt_system *s, const assoc_mgr_info_msg_t *msg,
                    const slurmdb_qos_rec_t *q)
{
    struct dt_limits *l = add(s);
    l->who = dt_xasprintf("QOS %s", q->name);
    l->qos = dt_xstrdup(q->name);
    l->is_qos = true;
    l->own_nodes = q->flags & QOS_FLAG_PART_MAX_NODE;
    l->own_time = q->flags & QOS_FLAG_PART_TIME_LIMIT;
    l->refuses = q->flags & QOS_FLAG_DENY_LIMIT;
    l->per_job = amounts_of(msg, q->max_tres_pj_ctld);
    l->per_node = amounts_of(msg, q->max_tres_pn_ctld);
    l->per_user = amounts_of(msg, q->max_tres_pu_ctld);
    l->group = amounts_of(msg, q->grp_tres_ctld);
    l->max_time = minutes(q->max_wall_pj);
    l->jobs = limit32(q->max_jobs_pu);
    l->submitted = limit32(q->max_submit_jobs_pu);
    l->group_jobs = limit32(q->grp_jobs);
    l->group_submitted = limit32(q->grp_submit_jobs);
}

/* The name of the QOS with that number. */
static const char *qos_name(const assoc_mgr_info_msg_t *msg, uint32_t id)
{
    const char *name = NULL;
    __auto_type all = slurm_list_iterator_create(msg->qos_list);
    for (const slurmdb_qos_rec_t *q; !name && (q = slurm_list_next(all));)
        if (q->id == id)
            name = q->name;
    slurm_list_iterator_destroy(all);
    return name;
}

static void take(struct dt_system *s, const assoc_mgr_info_msg_t *msg)
{
    if (msg->assoc_list && msg->qos_list) {
        __auto_type all = slurm_list_iterator_create(msg->assoc_list);
        for (const slurmdb_assoc_rec_t *a; (a = slurm_list_next(all));)
            add_association(s, msg, a, qos_name(msg, a->def_qos_id));
        slurm_list_iterator_destroy(all);
    }
    if (msg->qos_list) {
        __auto_type all = slurm_list_iterator_create(msg->qos_list);
        for (const slurmdb_qos_rec_t *q; (q = slurm_list_next(all));)
            add_qos(s, msg, q);
        slurm_list_iterator_destroy(all);
    }
}

/* The account of that name; s->nlimits: there is none. */
static size_t find_account(const struct dt_system *s, const char *name)
{
    for (size_t i = 0; name && i < s->nlimits; i++) {
        const struct dt_limits *l = &s->limits[i];
        if (!l->is_qos && !l->user && l->account && strcmp(l->account, name) == 0)
            return i;
    }
    return s->nlimits;
}

/* Of the accounts leaves only those above the user's own associations. */
static void drop_strangers(struct dt_system *s)
{
    bool *kept = dt_xcalloc(s->nlimits, sizeof(*kept));
    size_t n = 0;
    for (size_t i = 0; i < s->nlimits; i++) {
        const struct dt_limits *l = &s->limits[i];
        kept[i] |= l->is_qos || l->user;
        size_t up = l->user ? find_account(s, l->account) : s->nlimits;
        for (; up < s->nlimits && !kept[up]; up = find_account(s, s->limits[up].parent))
            kept[up] = true;
    }
    for (size_t i = 0; i < s->nlimits; i++) {
        if (kept[i])
            s->limits[n++] = s->limits[i];
        else
            dt_limits_free(&s->limits[i]);
    }
    s->nlimits = n;
    free(kept);
}

void dt_slurm_limits(struct dt_system *s, unsigned enforce)
{
    struct passwd *me = getpwuid(getuid());
    assoc_mgr_info_msg_t *msg = NULL;
    /* by user: slurmctld leaves other users' associations out, accounts it gives all */
    assoc_mgr_info_request_msg_t ask = {.flags =
                                            ASSOC_MGR_INFO_FLAG_ASSOC | ASSOC_MGR_INFO_FLAG_QOS};
    if (!me || !(enforce & (ENFORCE_LIMITS | ENFORCE_QOS)))
        return;
    ask.user_list = slurm_list_create(NULL);
    slurm_list_append(ask.user_list, me->pw_name);
    if (slurm_load_assoc_mgr_info(&ask, &msg) == SLURM_SUCCESS && msg)
        take(s, msg);
    drop_strangers(s);
    slurm_list_destroy(ask.user_list);
    if (msg)
        slurm_free_assoc_mgr_info_msg(msg);
}
