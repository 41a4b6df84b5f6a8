#include "backend/slurm_private.h"
#include "util/slurm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

static char *copy(const char *s)
{
    return dt_xstrdup(s ? s : "");
}

static bool is_here(const node_info_t *n, const char *host)
{
    const char *name = n->node_hostname ? n->node_hostname : n->name;
    size_t len = strcspn(host, ".");
    bool same = name && strncmp(name, host, len) == 0 && (!name[len] || name[len] == '.');
    return same || (n->node_addr && dt_starts_with(n->node_addr, "127."));
}

static void take_nodes(struct dt_site *s, const node_info_msg_t *nodes)
{
    struct utsname host;
    uname(&host);
    for (uint32_t i = 0; i < nodes->record_count; i++) {
        const node_info_t *n = &nodes->node_array[i];
        if (!n->name)
            continue;
        s->nodes++;
        s->up += dt_slurm_usable(n);
        s->elsewhere += !is_here(n, host.nodename);
    }
}

int dt_site_read(struct dt_site *s, struct dt_error *e)
{
    slurm_conf_t *conf = NULL;
    node_info_msg_t *nodes = NULL;
    *s = (struct dt_site){.client =
                              dt_xasprintf("%u.%02u", SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER),
                                           SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER))};
    s->asked = dt_now();
    if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS)
        return dt_fail(e, "%s", slurm_strerror(errno));
    s->now = (double)conf->last_update;
    s->answered = dt_now();
    s->version = copy(conf->version);
    s->auth = copy(conf->authtype);
    s->auth_info = copy(conf->authinfo);
    s->plugstack = copy(conf->plugstack);
    s->plugin_dir = copy(conf->plugindir);
    s->job_submit = copy(conf->job_submit_plugins);
    s->scheduler = copy(conf->schedtype);
    s->accounting = copy(conf->accounting_storage_type);
    s->min_job_age = conf->min_job_age;
    slurm_free_ctl_conf(conf);
    if (slurm_load_node(0, &nodes, SHOW_ALL) != SLURM_SUCCESS)
        return dt_fail(e, "%s", slurm_strerror(errno));
    take_nodes(s, nodes);
    slurm_free_node_info_msg(nodes);
    return 0;
}

void dt_site_free(struct dt_site *s)
{
    char *const owned[] = {s->client,     s->version,    s->auth,      s->auth_info, s->plugstack,
                           s->plugin_dir, s->job_submit, s->scheduler, s->accounting};
    for (size_t i = 0; i < sizeof(owned) / sizeof(*owned); i++)
        free(owned[i]);
    *s = (struct dt_site){0};
}
