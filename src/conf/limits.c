#include "conf/limits.h"

#include <grp.h>
#include <math.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of a search when SPEC says nothing; see dt_spec_parse(). */
#define DEFAULT_CONFIGS 60

char *dt_beside_slurm_conf(const char *name)
{
    const char *slurm_conf = getenv("SLURM_CONF");
    const char *slash = slurm_conf ? strrchr(slurm_conf, '/') : NULL;
    if (slash)
        return dt_xasprintf("%.*s/%s", (int)(slash - slurm_conf), slurm_conf, name);
    return dt_xasprintf("%s/%s", DT_SLURM_ETC, name);
}

char *dt_conf_path(void)
{
    return dt_beside_slurm_conf(DT_CONF_NAME);
}

int dt_conf_read(struct dt_conf *c, struct dt_error *e)
{
    char *path = dt_conf_path(), *why;
    int rc = dt_conf_load(path, c, &why);
    if (rc < 0)
        dt_fail(e, "%s: %s; ask the administrator to mend it", path, why ? why : "out of memory");
    free(why);
    free(path);
    return rc;
}

/* What is refused, with the file that says so. */
static int against(struct dt_error *e, const char *fmt, ...) DT_PRINTF(2, 3);

static int against(struct dt_error *e, const char *fmt, ...)
{
    char *path = dt_conf_path();
    va_list ap;
    va_start(ap, fmt);
    char *text = dt_xvasprintf(fmt, ap);
    va_end(ap);
    dt_fail(e, "%s: %s", path, text);
    free(text);
    free(path);
    return -1;
}

/* ---- who ---- */

static bool in_groups(const char *names)
{
    int n = getgroups(0, NULL);
    gid_t *gids = dt_xcalloc((size_t)(n > 0 ? n : 0) + 1, sizeof(*gids));
    bool in = false;
    n = n > 0 ? getgroups(n, gids) : 0;
    gids[n > 0 ? n : 0] = getgid();
    for (int i = 0; i <= n && !in; i++) {
        const struct group *g = getgrgid(gids[i]);
        in = g && dt_conf_has(names, g->gr_name);
    }
    free(gids);
    return in;
}

static int check_user(const struct dt_conf *c, struct dt_error *e)
{
    const struct passwd *user = getpwuid(getuid());
    if (!c->users && !c->groups)
        return 0;
    if ((c->users && user && dt_conf_has(c->users, user->pw_name)) ||
        (c->groups && in_groups(c->groups)))
        return 0;
    return against(e, "%s%s%s%s%s, and you are none of them; ask the administrator",
                   c->users ? "AllowUsers=" : "", c->users ? c->users : "",
                   c->users && c->groups ? " and " : "", c->groups ? "AllowGroups=" : "",
                   c->groups ? c->groups : "");
}

int dt_conf_may_tune(const struct dt_conf *c, const char *account, struct dt_error *e)
{
    if (c->refuse)
        return against(e, "Refuse=%s", c->refuse);
    if (check_user(c, e) < 0)
        return -1;
    if (!c->accounts || (account && dt_conf_has(c->accounts, account)))
        return 0;
    if (!account)
        return against(e, "AllowAccounts=%s: say with --account which of them pays", c->accounts);
    return against(e, "AllowAccounts=%s, and account %s is none of them", c->accounts, account);
}

/* ---- how much ---- */

struct limit {
    const char *key, *path; /* in dt-tune.conf and in SPEC's section "search" */
    double most;            /* 0: no limit */
    double unsaid;          /* what a search has where SPEC does not say; INFINITY: no end */
};

static int limit_one(const struct limit *l, struct json_object *search, const char *name,
                     struct dt_error *e)
{
    struct json_object *asked = NULL;
    if (json_object_object_get_ex(search, l->path, &asked) && !asked)
        return 0;
    double value = asked ? dt_json_num(search, l->path, -1) : l->unsaid;
    bool automatic = asked && strcmp(dt_json_str(search, l->path, ""), "auto") == 0;
    if (!(l->most > 0) || (value <= l->most && !automatic))
        return 0; /* what is no number its reader will say */
    if (!asked || automatic) {
        json_object_object_add(search, l->path, dt_json_number(l->most));
        return 0;
    }
    char *most = dt_format_double(l->most), *text = dt_format_double(value);
    against(e, "%s=%s, and %s asks for search.%s %s; ask for less", l->key, most, name, l->path,
            text);
    free(most);
    free(text);
    return -1;
}

int dt_conf_limit(const struct dt_conf *c, struct json_object *doc, const char *name,
                  struct dt_error *e)
{
    bool steps = strcmp(dt_json_str(doc, "layout", ""), "steps") == 0;
    const struct limit limits[] = {
        {"MaxParallel", "parallel", (double)c->parallel, steps ? INFINITY : 1},
        {"MaxConfigs", "max_configs", (double)c->configs, DEFAULT_CONFIGS},
        {"MaxNodeHours", "max_node_hours", c->node_hours, INFINITY}};
    struct json_object *search = NULL;
    bool none = !json_object_object_get_ex(doc, "search", &search);
    if (!none && !json_object_is_type(search, json_type_object))
        return 0; /* its reader will say so */
    if (none) {
        search = json_object_new_object();
        json_object_object_add(doc, "search", search);
    }
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
        if (limit_one(&limits[i], search, name, e) < 0)
            return -1;
    if (none && json_object_object_length(search) == 0)
        json_object_object_del(doc, "search");
    return 0;
}

/* ---- where ---- */

char *dt_conf_history(void)
{
    struct dt_conf c = {0};
    const struct passwd *user = getpwuid(getuid());
    struct dt_buf b = DT_BUF_INIT;
    if (dt_conf_read(&c, NULL) < 0 || !c.history || !user) {
        dt_conf_free(&c);
        return NULL;
    }
    for (const char *p = c.history, *mark; *p; p = mark) {
        mark = strstr(p, "%u");
        dt_buf_addn(&b, p, mark ? (size_t)(mark - p) : strlen(p));
        if (!mark)
            break;
        dt_buf_add(&b, user->pw_name);
        mark += 2;
    }
    dt_conf_free(&c);
    return dt_buf_take(&b);
}
