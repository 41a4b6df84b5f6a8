#include "monitor/monitor.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_ (1024 * 1024) /* no file that is read here is longer */
#define INFINIBAND 32           /* ARPHRD_INFINIBAND */

static char *read_at(const char *fmt, ...) DT_PRINTF(1, 2);
static char *read_at(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *path = dt_xvasprintf(fmt, ap);
    va_end(ap);
    char *text = dt_read_file(path, FILE_MAX_, NULL, NULL);
    free(path);
    return text;
}

/* The number behind a word at the beginning of a line: "VmRSS:   12 kB". NaN where it is not there.
 */
static double number_of(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, n) == 0)
            return strtod(line + n, NULL);
    }
    return NAN;
}

static double zero_if_unknown(double x)
{
    return isnan(x) ? 0 : x;
}

/* ---- processes ---- */

struct process {
    pid_t pid, parent;
    double ticks; /* with those of the children that it has waited for */
    bool in;      /* the tree */
};

/* PID (NAME) STATE PARENT ...; the name may hold anything, brackets and spaces too. */
static bool read_stat(const char *text, struct process *p)
{
    unsigned long long user, system;
    long long child_user, child_system;
    const char *rest = strrchr(text, ')');
    if (!rest || sscanf(rest + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld",
                        &p->parent, &user, &system, &child_user, &child_system) != 5)
        return false;
    p->ticks = (double)user + (double)system + (double)child_user + (double)child_system;
    return true;
}

/* All processes of the user that `top` belongs to. */
static struct process *list_processes(const char *root, pid_t top, size_t *n)
{
    char *path = dt_xasprintf("%s/proc/%d", root, (int)top), *proc = dt_xasprintf("%s/proc", root);
    struct process *list = NULL;
    struct stat owner, st;
    *n = 0;
    DIR *d = stat(path, &owner) == 0 ? opendir(proc) : NULL;
    for (struct dirent *entry; d && (entry = readdir(d));) {
        struct process p = {0};
        if (!isdigit((unsigned char)*entry->d_name) ||
            fstatat(dirfd(d), entry->d_name, &st, 0) < 0 || st.st_uid != owner.st_uid)
            continue;
        char *text = read_at("%s/%s/stat", proc, entry->d_name);
        p.pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (text && read_stat(text, &p)) {
            list = dt_xrealloc(list, *n + 1, sizeof(*list));
            list[(*n)++] = p;
        }
        free(text);
    }
    if (d)
        closedir(d);
    free(path);
    free(proc);
    return list;
}

static bool is_in(const struct process *list, size_t n, pid_t pid)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].pid == pid)
            return list[i].in;
    return false;
}

static void mark_tree(struct process *list, size_t n, pid_t top)
{
    bool more = true;
    for (size_t i = 0; i < n; i++)
        list[i].in = list[i].pid == top;
    while (more) {
        more = false;
        for (size_t i = 0; i < n; i++)
            if (!list[i].in && is_in(list, n, list[i].parent))
                more = list[i].in = true;
    }
}

/* `shared`: the largest part of shared memory so far, as usually all map the same. */
static double memory_of(const char *root, pid_t pid, double *shared)
{
    char *text = read_at("%s/proc/%d/status", root, (int)pid);
    double own = text ? number_of(text, "RssAnon:") : NAN;
    if (text && isnan(own)) /* before Linux 4.5 */
        own = number_of(text, "VmRSS:");
    *shared = fmax(*shared, zero_if_unknown(text ? number_of(text, "RssShmem:") : NAN));
    free(text);
    return zero_if_unknown(own); /* a process that is ending has none */
}

static double io_of(const char *root, pid_t pid)
{
    char *text = read_at("%s/proc/%d/io", root, (int)pid);
    double bytes = text ? number_of(text, "read_bytes:") + number_of(text, "write_bytes:") : NAN;
    free(text);
    return bytes;
}

void dt_proc_tree_read(const char *root, pid_t top, struct dt_proc_tree *t)
{
    size_t n;
    struct process *list = list_processes(root, top, &n);
    double ticks = 0, own = 0, shared = 0, io = 0;
    *t = (struct dt_proc_tree){0, NAN, NAN, NAN};
    mark_tree(list, n, top);
    for (size_t i = 0; i < n; i++) {
        if (!list[i].in)
            continue;
        t->n++;
        ticks += list[i].ticks;
        own += memory_of(root, list[i].pid, &shared);
        io += io_of(root, list[i].pid);
    }
    if (t->n) {
        t->cpu_s = ticks / (double)sysconf(_SC_CLK_TCK);
        t->mem = own + shared > 0 ? 1024 * (own + shared) : NAN; /* all are ending */
        t->io = io;
    }
    free(list);
}

/* ---- the node ---- */

double dt_node_mem_left(const char *root)
{
    char *text = read_at("%s/proc/meminfo", root);
    double left = text ? 1024 * number_of(text, "MemAvailable:") : NAN;
    free(text);
    return left;
}

static double number_at(const char *fmt, ...) DT_PRINTF(1, 2);
static double number_at(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *path = dt_xvasprintf(fmt, ap);
    va_end(ap);
    char *text = dt_read_file(path, FILE_MAX_, NULL, NULL);
    double x = text ? strtod(text, NULL) : NAN;
    free(text);
    free(path);
    return x;
}

/* Ports count words of 4 bytes. */
static double device_bytes(const char *ports)
{
    DIR *d = opendir(ports);
    double words = 0;
    for (struct dirent *port; d && (port = readdir(d));) {
        if (*port->d_name == '.')
            continue;
        const char *name = port->d_name;
        words += zero_if_unknown(number_at("%s/%s/counters/port_rcv_data", ports, name)) +
                 zero_if_unknown(number_at("%s/%s/counters/port_xmit_data", ports, name));
    }
    if (d)
        closedir(d);
    return 4 * words;
}

/* NaN where there is no such hardware. */
static double infiniband_bytes(const char *root)
{
    char *devices = dt_xasprintf("%s/sys/class/infiniband", root);
    double sum = NAN;
    DIR *d = opendir(devices);
    for (struct dirent *device; d && (device = readdir(d));) {
        if (*device->d_name == '.')
            continue;
        char *ports = dt_xasprintf("%s/%s/ports", devices, device->d_name);
        sum = zero_if_unknown(sum) + device_bytes(ports);
        free(ports);
    }
    if (d)
        closedir(d);
    free(devices);
    return sum;
}

/* "  eth0: RECEIVED ... SENT ...", the first and the ninth number. */
static double interface_bytes(const char *colon)
{
    unsigned long long in, out;
    return sscanf(colon + 1, "%llu %*u %*u %*u %*u %*u %*u %*u %llu", &in, &out) == 2
               ? (double)in + (double)out
               : 0;
}

static bool is_hardware(const char *root, const char *name)
{
    char *path = dt_xasprintf("%s/sys/class/net/%s/device", root, name);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

double dt_node_net(const char *root)
{
    char *text = read_at("%s/proc/net/dev", root), *save = NULL;
    double hardware = NAN, virtual = NAN, fabric = infiniband_bytes(root);
    for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save)) {
        char *name = line + strspn(line, " "), *colon = strrchr(name, ':');
        if (!colon || strncmp(name, "lo:", 3) == 0)
            continue;
        *colon = '\0';
        bool real = is_hardware(root, name);
        if (real && !isnan(fabric) &&
            number_at("%s/sys/class/net/%s/type", root, name) == INFINIBAND)
            continue; /* IP over it is in its own counters */
        double *sum = real ? &hardware : &virtual;
        *sum = zero_if_unknown(*sum) + interface_bytes(colon);
    }
    free(text);
    if (!isnan(hardware) || !isnan(fabric))
        return zero_if_unknown(hardware) + zero_if_unknown(fabric);
    return virtual;
}
