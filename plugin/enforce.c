#include "enforce.h"
#include "conf/conf.h"

#include <grp.h>
#include <pwd.h>
#include <pthread.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Names are looked up when the file is read, as slurmctld does for a partition's AllowGroups: no
 * directory service may hold up a submission. */
struct ids {
    uint32_t *v;
    size_t n;
};

struct limits {
    struct dt_conf conf;
    struct ids uids, gids; /* who may tune; uids with the members of groups */
};

/* slurmctld has no place for what a plugin keeps. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct limits limits;
static char *path;
static bool usable;               /* something was read */
static time_t read_at, read_conf; /* when, and Slurm's configuration of what time it was then */

/* ---- names ---- */

#define LOOKUP_MAX (1024 * 1024)

static bool add_id(struct ids *ids, uint32_t id)
{
    uint32_t *v = realloc(ids->v, (ids->n + 1) * sizeof(*v));

    if (!v)
        return false;
    ids->v = v;
    v[ids->n++] = id;
    return true;
}

static bool has_id(const struct ids *ids, uint32_t id)
{
    for (size_t i = 0; i < ids->n; i++) {
        if (ids->v[i] == id)
            return true;
    }
    return false;
}

static bool add_user(const char *name, char *room, struct limits *l)
{
    struct passwd entry, *found = NULL;

    getpwnam_r(name, &entry, room, LOOKUP_MAX, &found);
    return !found || add_id(&l->uids, found->pw_uid);
}

static bool add_group(const char *name, char *room, struct limits *l)
{
    struct group entry, *found = NULL;
    char *other = malloc(LOOKUP_MAX);
    bool ok = other != NULL;

    getgrnam_r(name, &entry, room, LOOKUP_MAX, &found);
    ok = ok && (!found || add_id(&l->gids, found->gr_gid));
    for (char **member = found ? found->gr_mem : NULL; ok && member && *member; member++)
        ok = add_user(*member, other, l);
    free(other);
    return ok;
}

static bool add_names(const char *names, bool (*add)(const char *, char *, struct limits *),
                      struct limits *l)
{
    char *copy = names ? strdup(names) : NULL, *rest = copy, *name, *room = malloc(LOOKUP_MAX);
    bool ok = room && (copy || !names);

    while (ok && (name = strsep(&rest, ",")))
        ok = add(name, room, l);
    free(room);
    free(copy);
    return ok;
}

static void free_limits(struct limits *l)
{
    dt_conf_free(&l->conf);
    free(l->uids.v);
    free(l->gids.v);
    *l = (struct limits){0};
}

/* ---- the file ---- */

static char *beside(const char *slurm_conf)
{
    const char *slash = slurm_conf ? strrchr(slurm_conf, '/') : NULL;
    char *made;

    if (!slash)
        return strdup(DT_SLURM_ETC "/" DT_CONF_NAME);
    return asprintf(&made, "%.*s/" DT_CONF_NAME, (int)(slash - slurm_conf), slurm_conf) < 0 ? NULL
                                                                                            : made;
}

static void read_again(void)
{
    struct limits new = {0};
    char *why = NULL;
    bool ok;

    read_at = time(NULL);
    read_conf = dt_slurm_conf_time();
    if (!path)
        path = beside(dt_slurm_conf_path());
    ok = path && dt_conf_load(path, &new.conf, &why) == 0 &&
         add_names(new.conf.users, add_user, &new) && add_names(new.conf.groups, add_group, &new);
    if (ok) {
        free_limits(&limits);
        limits = new;
        usable = true;
    } else {
        slurm_error("dt-tune: %s: %s; %s", path ? path : DT_CONF_NAME, why ? why : "out of memory",
                    usable ? "what was read before stays in force"
                           : "until it is mended --dt-tune is refused");
        free_limits(&new);
    }
    free(why);
}

void dt_limits_start(void)
{
    pthread_mutex_lock(&lock);
    read_again();
    pthread_mutex_unlock(&lock);
}

void dt_limits_end(void)
{
    pthread_mutex_lock(&lock);
    free_limits(&limits);
    free(path);
    path = NULL;
    usable = false;
    pthread_mutex_unlock(&lock);
}

/* ---- a job ---- */

static char *against(const char *what, const char *value, const char *advice)
{
    char *line;
    int n = asprintf(&line, "dt-tune: %s: %s%s%s", path ? path : DT_CONF_NAME, what, value, advice);

    return n < 0 ? NULL : line;
}

static char *refuse_user(const job_desc_msg_t *job, uint32_t uid)
{
    const struct dt_conf *c = &limits.conf;
    uint32_t user = job->user_id == NO_VAL ? uid : job->user_id;

    if ((!c->users && !c->groups) || has_id(&limits.uids, user) ||
        has_id(&limits.gids, job->group_id))
        return NULL;
    return c->users && c->groups ? against("AllowUsers and AllowGroups", "",
                                           ": you are none of them; ask the administrator")
           : c->users
               ? against("AllowUsers=", c->users, ": you are none of them; ask the administrator")
               : against("AllowGroups=", c->groups,
                         ": you are in none of them; ask the administrator");
}

static char *refuse_account(const job_desc_msg_t *job)
{
    const char *allowed = limits.conf.accounts;

    if (!allowed || (job->account && dt_conf_has(allowed, job->account)))
        return NULL;
    return against("AllowAccounts=", allowed,
                   job->account ? ": the job's account is none of them"
                                : ": say with --account which of them pays");
}

static char *refuse_by_conf(const job_desc_msg_t *job, uint32_t uid)
{
    char *line;

    if (!usable)
        return against("", "the file cannot be used", "; ask the administrator to mend it");
    if (limits.conf.refuse)
        return against("Refuse=", limits.conf.refuse, "");
    line = refuse_user(job, uid);
    return line ? line : refuse_account(job);
}

/* Up to 23.02 Slurm tells a plugin nothing of a reconfiguration; later it loads the plugin anew.
 * Its time is in seconds, so within one the file is read for every tuning job. */
char *dt_limits_refuse(const job_desc_msg_t *job, uint32_t uid)
{
    char *line;

    pthread_mutex_lock(&lock);
    if (dt_slurm_conf_time() != read_conf || read_conf == read_at)
        read_again();
    line = refuse_by_conf(job, uid);
    pthread_mutex_unlock(&lock);
    return line;
}

void dt_limits_keep_tuner(job_desc_msg_t *job)
{
    const struct dt_conf *c = &limits.conf;

    pthread_mutex_lock(&lock);
    if (c->tuner_partition) {
        dt_slurm_free(&job->partition);
        job->partition = slurm_xstrdup(c->tuner_partition);
    }
    if (c->tuner_mem_mib)
        job->pn_min_memory = c->tuner_mem_mib;
    if (c->tuner_time_min && job->time_limit > c->tuner_time_min) { /* NO_VAL too */
        job->time_limit = (uint32_t)c->tuner_time_min;
        job->time_min = NO_VAL;
    }
    pthread_mutex_unlock(&lock);
}
