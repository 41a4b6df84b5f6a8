#include "monitor/monitor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX_ (1024 * 1024)
#define UNLIMITED 0x1p60 /* version 1 writes the largest number that it has */

static char *read_in(const char *dir, const char *file)
{
    char *path = dt_xasprintf("%s/%s", dir, file);
    char *text = dt_read_file(path, FILE_MAX_, NULL, NULL);
    free(path);
    return text;
}

static double number_in(const char *dir, const char *file)
{
    char *text = read_in(dir, file), *end;
    double x = text ? strtod(text, &end) : NAN;
    if (text && end == text) /* "max" */
        x = INFINITY;
    free(text);
    return x;
}

/* A line "KEY NUMBER" of the file. */
static double stat_in(const char *dir, const char *file, const char *key)
{
    char *text = read_in(dir, file), *save = NULL;
    size_t n = strlen(key);
    double x = NAN;
    for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save))
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            x = strtod(line + n, NULL);
    free(text);
    return x;
}

/* ---- where ---- */

/* The path behind "N:...,CONTROLLER,...:", of version 2 behind "0::" (controller ""). Caller frees.
 */
static char *path_of(const char *text, const char *controller)
{
    struct dt_strv lines = DT_STRV_INIT;
    char *path = NULL;
    dt_strv_split(&lines, text, "\n");
    for (size_t i = 0; i < lines.n && !path; i++) {
        char *first = strchr(lines.v[i], ':'), *second = first ? strchr(first + 1, ':') : NULL;
        if (!second)
            continue;
        *second = '\0';
        bool found = !*controller && !first[1];
        struct dt_strv names = DT_STRV_INIT;
        dt_strv_split(&names, first + 1, ",");
        for (size_t k = 0; k < names.n; k++)
            found |= strcmp(names.v[k], controller) == 0;
        dt_strv_free(&names);
        if (found)
            path = dt_xstrdup(second + 1);
    }
    dt_strv_free(&lines);
    return path;
}

/* One level up; false at the top. */
static bool go_up(char *dir, size_t base)
{
    char *slash = strrchr(dir, '/');
    if (!slash || (size_t)(slash - dir) < base)
        return false;
    *slash = '\0';
    return true;
}

/* The nearest folder, from `path` on upwards, that has the file. */
static char *nearest(const char *base, const char *path, const char *file)
{
    size_t n = strlen(path);
    while (n && path[n - 1] == '/')
        n--;
    char *dir = dt_xasprintf("%s%.*s", base, (int)n, path);
    do {
        char *name = dt_xasprintf("%s/%s", dir, file);
        bool there = access(name, R_OK) == 0;
        free(name);
        if (there)
            return dir;
    } while (go_up(dir, strlen(base)));
    free(dir);
    return NULL;
}

/* Slurm's names: .../step_N for a step, below it .../task_N for a task. */
static bool is_own(const char *dir, bool alone)
{
    const char *name = dir ? strrchr(dir, '/') : NULL;
    return name && (dt_starts_with(name, "/task_") || (alone && strstr(dir, "/step_")));
}

static char *nearest_v1(const char *root, const char *text, const char *controller,
                        const char *file)
{
    char *base = dt_xasprintf("%s/sys/fs/cgroup/%s", root, controller);
    char *path = path_of(text, controller), *dir = path ? nearest(base, path, file) : NULL;
    free(base);
    free(path);
    return dir;
}

static void find_v2(struct dt_cgroup *g, const char *base, const char *path)
{
    g->v2 = true;
    g->mem = nearest(base, path, "memory.current");
    g->cpu = nearest(base, path, "cpu.stat");
    g->quota = nearest(base, path, "cpu.max");
}

void dt_cgroup_find(struct dt_cgroup *g, const char *root, bool alone)
{
    char *proc = dt_xasprintf("%s/proc/self", root), *text = read_in(proc, "cgroup");
    char *base = dt_xasprintf("%s/sys/fs/cgroup", root),
         *all = dt_xasprintf("%s/cgroup.controllers", base),
         *path = text ? path_of(text, "") : NULL;
    *g = (struct dt_cgroup){.base = strlen(base)};
    if (path && access(all, R_OK) == 0) {
        find_v2(g, base, path);
    } else if (text) {
        g->mem = nearest_v1(root, text, "memory", "memory.usage_in_bytes");
        g->cpu = nearest_v1(root, text, "cpuacct", "cpuacct.usage");
        g->quota = nearest_v1(root, text, "cpu", "cpu.cfs_quota_us");
    }
    g->own_mem = is_own(g->mem, alone);
    g->own_cpu = is_own(g->cpu, alone);
    free(proc);
    free(text);
    free(base);
    free(all);
    free(path);
}

void dt_cgroup_free(struct dt_cgroup *g)
{
    free(g->mem);
    free(g->cpu);
    free(g->quota);
    *g = (struct dt_cgroup){0};
}

/* ---- what ---- */

double dt_cgroup_cpu_s(const struct dt_cgroup *g)
{
    if (!g->cpu)
        return NAN;
    return g->v2 ? stat_in(g->cpu, "cpu.stat", "usage_usec") / 1e6
                 : number_in(g->cpu, "cpuacct.usage") / 1e9;
}

/* The kernel drops pages of files before it kills. */
static double mem_in(bool v2, const char *dir)
{
    double all = number_in(dir, v2 ? "memory.current" : "memory.usage_in_bytes");
    double files = stat_in(dir, "memory.stat", v2 ? "active_file" : "total_active_file") +
                   stat_in(dir, "memory.stat", v2 ? "inactive_file" : "total_inactive_file");
    return isnan(files) ? all : fmax(all - files, 0);
}

double dt_cgroup_mem(const struct dt_cgroup *g)
{
    return g->mem ? mem_in(g->v2, g->mem) : NAN;
}

double dt_cgroup_mem_left(const struct dt_cgroup *g)
{
    double left = NAN;
    char *dir = g->mem ? dt_xstrdup(g->mem) : NULL;
    while (dir) {
        double limit = number_in(dir, g->v2 ? "memory.max" : "memory.limit_in_bytes");
        double used = limit < UNLIMITED ? mem_in(g->v2, dir) : NAN;
        if (!isnan(used))
            left = fmin(left, fmax(limit - used, 0));
        if (!go_up(dir, g->base))
            break;
    }
    free(dir);
    return left;
}

static double quota_in(bool v2, const char *dir)
{
    if (!v2) {
        double quota = number_in(dir, "cpu.cfs_quota_us");
        return quota > 0 ? quota / number_in(dir, "cpu.cfs_period_us") : NAN; /* -1: none */
    }
    char *text = read_in(dir, "cpu.max");
    double quota, period;
    bool some = text && sscanf(text, "%lf %lf", &quota, &period) == 2 && period > 0;
    free(text);
    return some ? quota / period : NAN;
}

double dt_cgroup_cpus(const struct dt_cgroup *g)
{
    double cpus = INFINITY;
    char *dir = g->quota ? dt_xstrdup(g->quota) : NULL;
    while (dir) {
        double here = quota_in(g->v2, dir);
        if (here > 0)
            cpus = fmin(cpus, here);
        if (!go_up(dir, g->base))
            break;
    }
    free(dir);
    return cpus;
}
