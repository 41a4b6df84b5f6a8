/* A trial's first node tells what it is made of, once for every kind of nodes, for sizes that later
 * studies leave to the nodes. Beside the trial, in a process of its own that nobody waits for:
 * libslurm ends the process where it cannot read its configuration. */
#include "backend/backend.h"
#include "launch/launch.h"
#include "util/slurm.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* A job with some of the node's GPUs may not see how all of them are connected. */
static bool sees_all(const struct dt_node_class *size)
{
    const char *gpus = getenv("SLURM_GPUS_ON_NODE");
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t have = 0;
    if (gpus && dt_parse_int64(gpus, &have) < 0)
        return false;
    return online > 0 && (size_t)online >= size->cpus && have == (int64_t)size->gpus;
}

/* What does not fit Slurm's words is of no use. */
static bool fits(const char *path, const struct dt_node_class *size)
{
    struct dt_topology *t = dt_topology_read(path, NULL);
    bool fits = t && dt_topology_pus(t) >= size->cpus && t->ngpus == size->gpus;
    dt_topology_free(t);
    return fits;
}

static void keep(const char *cache, const char *key, const char *node,
                 const struct dt_node_class *size)
{
    char *xml = dt_topology_export(NULL), *path = dt_xasprintf("%s/%s.xml", cache, key),
         *part = dt_xasprintf("%s.%s-%ld", path, node, (long)getpid());
    if (xml && dt_mkdirs(cache, NULL) == 0 &&
        dt_write_file(part, xml, strlen(xml), 0666, NULL) == 0 &&
        !(fits(part, size) && rename(part, path) == 0))
        unlink(part);
    free(part);
    free(path);
    free(xml);
}

static void learn(void)
{
    const char *node = getenv("SLURMD_NODENAME");
    char key[17], *cache = node ? dt_topology_cache() : NULL;
    struct dt_node_class size;
    if (!cache)
        return;
    slurm_init(NULL);
    if (dt_slurm_node(node, key, &size, NULL) == 0) {
        char *known = dt_topology_find(NULL, cache, NULL, key);
        if (!known && sees_all(&size))
            keep(cache, key, node, &size);
        free(known);
    }
    free(cache);
}

void dt_learn_start(struct json_object *plan)
{
    pid_t parent = getpid();
    sigset_t none;
    if (!dt_json_bool(plan, "learn", false) || fork() != 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    setpriority(PRIO_PROCESS, 0, 19);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setenv("HWLOC_HIDE_ERRORS", "2", 0);
    learn();
    _exit(0);
}
