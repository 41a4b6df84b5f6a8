#include "launch/launch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RANGE_FILE "/proc/sys/net/ipv4/ip_local_port_range"
#define LOWEST 10000 /* below it are the services that sites run */
#define ENOUGH 1000  /* a range smaller than this is passed over for the next best */
#define PROBE_MARK "DT-PORTS"
#define PROBE_TIMEOUT 120.0

/* Bound on all addresses of both families, as a server would. */
static bool port_is_free(int port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET};
    int off = 0;
    six.sin6_port = four.sin_port = htons((uint16_t)port);
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        int rc = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
        if (rc == 0)
            rc = bind(fd, (struct sockaddr *)&six, sizeof(six));
        int why = errno;
        close(fd);
        if (rc == 0 || why == EADDRINUSE || why == EACCES)
            return rc == 0;
    }
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    int rc = bind(fd, (struct sockaddr *)&four, sizeof(four));
    close(fd);
    return rc == 0;
}

/* The ports outside the range from which the kernel picks for outgoing connections: those could be
 * taken between our look and the program's start. */
static void choose_range(const char *local_range, int *low, int *high)
{
    int a = 32768, b = 60999;
    if (local_range && sscanf(local_range, "%d %d", &a, &b) != 2) {
        a = 32768;
        b = 60999;
    }
    if (a - LOWEST >= ENOUGH) {
        *low = LOWEST;
        *high = a - 1;
    } else if (65535 - b >= ENOUGH) {
        *low = b + 1;
        *high = 65535;
    } else if (a - 1025 >= ENOUGH / 10) {
        *low = 1025;
        *high = a - 1;
    } else {
        *low = LOWEST;
        *high = 65535;
    }
}

int dt_ports_find(const char *local_range, uint64_t seed, int index, int nodes, int need, int *out,
                  struct dt_error *e)
{
    int low, high, found = 0;
    choose_range(local_range, &low, &high);
    int span = high - low + 1;
    int window = nodes > 0 ? span / nodes : span;
    if (window < 2 * need)
        window = 2 * need;
    /* Knuth's multiplier spreads consecutive job ids over the range */
    uint64_t start = (seed * 2654435761u) % (uint64_t)span + (uint64_t)index * (uint64_t)window;
    for (int i = 0; i < span && found < need; i++) {
        int port = low + (int)((start + (uint64_t)i) % (uint64_t)span);
        if (port_is_free(port))
            out[found++] = port;
    }
    if (found < need)
        return dt_fail(e, "only %d of %d ports are free between %d and %d on this node", found,
                       need, low, high);
    return 0;
}

static bool resolves(const char *name)
{
    struct addrinfo *list = NULL;
    if (!name || !*name || getaddrinfo(name, NULL, NULL, &list) != 0)
        return false;
    freeaddrinfo(list);
    return true;
}

/* By what name other nodes reach this one. Caller frees. */
static char *own_address(void)
{
    char name[256] = "";
    const char *slurm = getenv("SLURMD_NODENAME");
    if (gethostname(name, sizeof(name) - 1) == 0 && resolves(name))
        return dt_xstrdup(name);
    return dt_xstrdup(resolves(slurm) ? slurm : "127.0.0.1");
}

/* The first address of this host that others may reach, or 0. */
static in_addr_t outer_address(void)
{
    struct ifaddrs *list = NULL;
    in_addr_t found = 0;
    if (getifaddrs(&list) < 0)
        return 0;
    for (struct ifaddrs *i = list; i && !found; i = i->ifa_next) {
        const struct sockaddr_in *a = (const void *)i->ifa_addr;
        if (a && a->sin_family == AF_INET && (i->ifa_flags & IFF_UP) &&
            !(i->ifa_flags & IFF_LOOPBACK))
            found = a->sin_addr.s_addr;
    }
    freeifaddrs(list);
    return found;
}

char *dt_numeric_address(const char *host)
{
    struct addrinfo *list = NULL, hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    char text[INET_ADDRSTRLEN];
    if (getaddrinfo(host, NULL, &hints, &list) != 0)
        return NULL;
    struct in_addr a = ((const struct sockaddr_in *)(const void *)list->ai_addr)->sin_addr;
    freeaddrinfo(list);
    in_addr_t outer = ntohl(a.s_addr) >> 24 == IN_LOOPBACKNET ? outer_address() : 0;
    if (outer)
        a.s_addr = outer;
    return dt_xstrdup(inet_ntop(AF_INET, &a, text, sizeof(text)));
}

static int find_here(uint64_t seed, int index, int nodes, int need, int *out, struct dt_error *e)
{
    char *range = dt_read_file(RANGE_FILE, 4096, NULL, NULL);
    int rc = dt_ports_find(range, seed, index, nodes, need, out, e);
    free(range);
    return rc;
}

int dt_ports_probe_main(int argc, char **argv)
{
    struct dt_error e = DT_ERROR_INIT;
    int64_t seed, nodes, need;
    const char *name = getenv("SLURMD_NODENAME"), *id = getenv("SLURM_NODEID");
    if (argc != 3 || dt_parse_int64(argv[0], &seed) < 0 || dt_parse_int64(argv[1], &nodes) < 0 ||
        dt_parse_int64(argv[2], &need) < 0 || nodes < 1 || need < 1 || need > 65535 || !name) {
        fputs("dt-launch: --probe SEED NODES COUNT is for dt-launch's own use in a job step\n",
              stderr);
        return 2;
    }
    int *ports = dt_xcalloc((size_t)need, sizeof(*ports));
    char *address = own_address();
    int rc = find_here((uint64_t)seed, id ? atoi(id) : 0, (int)nodes, (int)need, ports, &e);
    if (rc == 0) {
        const char *gpus = getenv("SLURM_STEP_GPUS");
        printf(PROBE_MARK " %s %s %s", name, address, gpus && *gpus ? gpus : "-");
        for (int64_t i = 0; i < need; i++)
            printf(" %d", ports[i]);
        putchar('\n');
    } else {
        fprintf(stderr, "dt-launch: node %s: %s\n", name, e.text);
    }
    dt_error_clear(&e);
    free(address);
    free(ports);
    return rc == 0 ? 0 : 1;
}

static int tasks_on(const struct dt_launch_plan *p, size_t node)
{
    int n = 0;
    for (size_t t = 0; t < p->n_tasks; t++)
        n += p->tasks[t].node == (int)node;
    return n;
}

static void give(struct dt_launch_plan *p, size_t node, const char *address, const char *gpus,
                 const int *ports, int n)
{
    int next = 0;
    free(p->nodes[node].address);
    free(p->nodes[node].gpu_list);
    p->nodes[node].address = dt_xstrdup(address);
    p->nodes[node].gpu_list = gpus && strcmp(gpus, "-") != 0 ? dt_xstrdup(gpus) : NULL;
    for (size_t t = 0; t < p->n_tasks && next < n; t++)
        if (p->tasks[t].node == (int)node)
            p->tasks[t].port = ports[next++];
}

/* One line of the probe: MARK node address GPUs port port... */
static void take_line(struct dt_launch_plan *p, const char *line)
{
    struct dt_strv w = DT_STRV_INIT;
    dt_strv_split(&w, line, " \r");
    if (w.n > 4 && strcmp(w.v[0], PROBE_MARK) == 0) {
        int n = (int)(w.n - 4), *ports = dt_xcalloc(w.n, sizeof(*ports));
        for (int i = 0; i < n; i++)
            ports[i] = atoi(w.v[i + 4]);
        for (size_t i = 0; i < p->n_nodes; i++)
            if (strcmp(p->nodes[i].name, w.v[1]) == 0)
                give(p, i, w.v[2], w.v[3], ports, n);
        free(ports);
    }
    dt_strv_free(&w);
}

/* Of an allocation that others use too, only the trial's nodes, and none of the GPUs. */
static void probe_share(const struct dt_launch_plan *p, struct dt_strv *argv)
{
    struct dt_strv names = DT_STRV_INIT;
    for (size_t i = 0; i < p->n_nodes; i++)
        dt_strv_add(&names, p->nodes[i].name);
    char *list = dt_strv_join(&names, ",");
    dt_strv_addf(argv, "--nodelist=%s", list);
    if (p->gpus_around)
        dt_strv_add(argv, "--gpus=0");
    free(list);
    dt_strv_free(&names);
}

static void probe_argv(const struct dt_launch_plan *p, const char *srun, const char *self,
                       uint64_t seed, int need, struct dt_strv *argv)
{
    int groups = 1;
    for (size_t i = 0; i < p->n_roles; i++)
        if (p->roles[i].group >= groups)
            groups = p->roles[i].group + 1;
    dt_strv_add(argv, srun);
    for (int g = 0; g < groups; g++) {
        int nodes = 0;
        for (size_t i = 0; i < p->n_nodes; i++)
            nodes += p->nodes[i].group == g;
        if (g)
            dt_strv_add(argv, ":");
        if (p->het)
            dt_strv_addf(argv, "--het-group=%d", g);
        dt_strv_addf(argv, "--nodes=%d", nodes);
        if (p->steps)
            probe_share(p, argv);
        dt_strv_addf(argv, "--ntasks=%d", nodes);
        dt_strv_add(argv, "--ntasks-per-node=1");
        dt_strv_add(argv, "--cpus-per-task=1");
        dt_strv_add(argv, "--overlap");
        dt_strv_add(argv, "--mem=0");
        dt_strv_add(argv, "--mpi=none");
        dt_strv_addf(argv, "--job-name=%s%sdt-probe",
                     p->steps ? dt_json_str(p->json, "name", "trial") : "", p->steps ? "." : "");
        dt_strv_add(argv, self);
        dt_strv_add(argv, "--probe");
        dt_strv_addf(argv, "%llu", (unsigned long long)seed);
        dt_strv_addf(argv, "%zu", p->n_nodes);
        dt_strv_addf(argv, "%d", need);
    }
}

static int ask_nodes(struct dt_launch_plan *p, uint64_t seed, char *const *env, int need,
                     struct dt_error *e)
{
    struct dt_strv argv = DT_STRV_INIT, step_env = DT_STRV_INIT, lines = DT_STRV_INIT;
    struct dt_proc_result r;
    char *self = dt_self_exe(e), *srun = self ? dt_find_program("srun", self) : NULL;
    int rc = -1;
    if (self && !srun)
        dt_fail(e, "srun is not on PATH");
    if (srun) {
        probe_argv(p, srun, self, seed, need, &argv);
        dt_step_environ(env, &step_env);
        rc = dt_proc_run(argv.v, step_env.v, PROBE_TIMEOUT, &r, e);
    }
    if (rc == 0) {
        dt_strv_split(&lines, r.out, "\n");
        for (size_t i = 0; i < lines.n; i++)
            take_line(p, lines.v[i]);
        for (size_t i = 0; i < p->n_nodes && rc == 0; i++)
            if (!p->nodes[i].address)
                rc = dt_fail(e, "no ports from node %s: %s", p->nodes[i].name,
                             *r.err ? r.err : "the probe step printed nothing");
        dt_proc_result_free(&r);
    }
    dt_strv_free(&argv);
    dt_strv_free(&step_env);
    dt_strv_free(&lines);
    free(srun);
    free(self);
    return rc;
}

static int assign(struct dt_launch_plan *p, int number, char *const *env, struct dt_error *e)
{
    /* another start for every launch of a job, and every trial in it: two may run at once */
    uint64_t launch = (uint64_t)(number - 1);
    uint64_t trial = p->steps ? (uint64_t)dt_json_int(p->json, "trial", 0) : 0;
    uint64_t seed = (strtoull(p->job, NULL, 10) + launch * 7919 + trial * 1000003) % UINT32_MAX;
    int need = 1;
    for (size_t i = 0; i < p->n_nodes; i++)
        if (tasks_on(p, i) > need)
            need = tasks_on(p, i);
    if (p->n_nodes > 1)
        return ask_nodes(p, seed, env, need, e);
    int *ports = dt_xcalloc((size_t)need, sizeof(*ports));
    int rc = find_here(seed, 0, 1, need, ports, e);
    if (rc == 0) {
        char *address = own_address();
        give(p, 0, address, dt_launch_getenv(env, "SLURM_JOB_GPUS"), ports, need);
        free(address);
    }
    free(ports);
    return rc;
}

int dt_ports_assign(struct dt_launch_plan *p, int number, char *const *env, struct dt_error *e)
{
    int rc = assign(p, number, env, e);
    for (size_t t = 0; t < p->n_tasks && rc == 0; t++)
        if (strcmp(p->roles[p->tasks[t].role].name, "scheduler") == 0)
            p->root = dt_numeric_address(p->nodes[p->tasks[t].node].address);
    return rc;
}
