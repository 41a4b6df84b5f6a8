/* A run that is made smaller in place: its last workers end, told by a file and a signal, and each
 * leaves a file behind; then nodes on which no task is left can be given back. See task.c. */
#include "backend/slurm_private.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOSTS_MAX (64 * 1024 * 1024)

int dt_shed_order(const char *dir, int run, size_t workers, struct dt_error *e)
{
    char *path = dt_xasprintf("%s/keep.json", dir);
    char *text = dt_xasprintf("{\"version\":1,\"run\":%d,\"worker\":%zu}\n", run, workers);
    int rc = dt_write_file(path, text, strlen(text), 0666, e);
    free(path);
    free(text);
    return rc;
}

static size_t count_left(const char *dir, int run)
{
    char *path = dt_xasprintf("%s/left-%d", dir, run);
    DIR *d = opendir(path);
    size_t n = 0;
    for (struct dirent *entry; d && (entry = readdir(d));)
        n += entry->d_name[0] != '.';
    if (d)
        closedir(d);
    free(path);
    return n;
}

/* The nodes of a role's tasks in the first launch, in the order of their ranks. */
static void read_hosts(const char *dir, const char *role, struct dt_strv *out)
{
    char *path = dt_xasprintf("%s/launch-1-%s.hosts", dir, role);
    char *text = dt_read_file(path, HOSTS_MAX, NULL, NULL);
    if (text)
        dt_strv_split(out, text, "\n");
    free(text);
    free(path);
}

static void add_once(struct dt_strv *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->v[i], name) == 0)
            return;
    dt_strv_add(names, name);
}

/* The nodes of all tasks and of those that stay. */
static void find_nodes(const char *dir, size_t workers, const char *batch, struct dt_strv *all,
                       struct dt_strv *kept)
{
    struct dt_strv ps = DT_STRV_INIT, worker = DT_STRV_INIT;
    read_hosts(dir, "ps", &ps);
    read_hosts(dir, "worker", &worker);
    if (batch) /* in a het job the workers' component has neither */
        dt_strv_add(&ps, batch);
    for (size_t i = 0; i < ps.n && batch; i++) {
        add_once(all, ps.v[i]);
        add_once(kept, ps.v[i]);
    }
    for (size_t i = 0; i < worker.n; i++) {
        add_once(all, worker.v[i]);
        if (i < workers)
            add_once(kept, worker.v[i]);
    }
    dt_strv_free(&ps);
    dt_strv_free(&worker);
}

bool dt_shed_done(const char *dir, int run, size_t workers)
{
    struct dt_strv begun = DT_STRV_INIT;
    read_hosts(dir, "worker", &begun);
    size_t surplus = begun.n > workers ? begun.n - workers : 0;
    dt_strv_free(&begun);
    return count_left(dir, run) >= surplus;
}

/* A script that has started its roles more than once has tasks elsewhere. */
static bool launched_again(const char *dir)
{
    char *path = dt_xasprintf("%s/launch-2.json", dir);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

int dt_shed_nodes(const char *dir, uint32_t job, size_t workers)
{
    struct dt_strv all = DT_STRV_INIT, kept = DT_STRV_INIT;
    size_t n;
    uint32_t *parts = dt_slurm_components(job, &n); /* one, or one for each role */
    char *batch = n == 1 ? dt_records_node(dir) : NULL;
    int rc = n > 0 ? 0 : -1;
    if (!launched_again(dir) && (batch || n == DT_ROLES))
        find_nodes(dir, workers, batch, &all, &kept);
    if (kept.n < all.n) {
        dt_slurm_keep_nodes(parts[n - 1], &kept, NULL); /* if not now, it was done before */
        rc = 1;
    }
    dt_strv_free(&all);
    dt_strv_free(&kept);
    free(parts);
    free(batch);
    return rc;
}
