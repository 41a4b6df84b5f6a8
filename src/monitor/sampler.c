/* The process beside a task that looks at it once a period. A process of its own: neither a file
 * system that hangs nor a driver that does keeps the task's output waiting. */
#include "monitor/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* ---- levels ---- */

static double rate(double before, double now, double seconds)
{
    return now >= before && seconds > 0 ? (now - before) / seconds : NAN;
}

void dt_levels(const struct dt_counters *before, const struct dt_counters *now,
               const struct dt_task_limits *limits, double levels[DT_RESOURCES])
{
    double seconds = now->t - before->t, asked = fmax(limits->mem - now->mem, 0);
    double cpu = rate(before->cpu_s, now->cpu_s, seconds) / limits->cpus;
    double left = fmin(now->mem_left, isnan(limits->mem) ? NAN : asked);
    if (isinf(limits->cpus))
        cpu = NAN;
    levels[DT_RESOURCE_CPU] = cpu > 1 ? 1 : cpu; /* one that is not bound may take more */
    levels[DT_RESOURCE_MEM] = now->mem + left > 0 ? now->mem / (now->mem + left) : NAN;
    levels[DT_RESOURCE_GPU] = now->gpu;
    levels[DT_RESOURCE_NET] = rate(before->net, now->net, seconds);
    levels[DT_RESOURCE_DISK] = rate(before->io, now->io, seconds);
}

char *dt_sample_line(const char *role, int rank, double time, const double levels[DT_RESOURCES])
{
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "role", json_object_new_string(role));
    json_object_object_add(o, "rank", json_object_new_int(rank));
    json_object_object_add(o, "time", dt_json_number(floor(time * 1000) / 1000));
    for (int i = 0; i < DT_RESOURCES; i++) {
        double unit = i == DT_RESOURCE_NET || i == DT_RESOURCE_DISK ? 1 : 10000;
        if (isfinite(levels[i]))
            json_object_object_add(o, dt_resource_names[i],
                                   dt_json_number(round(levels[i] * unit) / unit));
    }
    char *text = dt_json_text(o), *line = dt_xasprintf("%s\n", text);
    free(text);
    json_object_put(o);
    return line;
}

/* ---- looking ---- */

struct sampler {
    const struct dt_sampler_config *c;
    pid_t task;
    struct dt_cgroup group;
    struct dt_gpus *gpus;
    struct dt_task_limits limits;
    struct dt_counters last;
    int fd;
};

/* What a group of the task's own tells is exact, also of processes that are not its descendants. */
static bool look(struct sampler *s, struct dt_counters *now)
{
    struct dt_proc_tree tree;
    dt_proc_tree_read("", s->task, &tree);
    double group_cpu = s->group.own_cpu ? dt_cgroup_cpu_s(&s->group) : NAN;
    double group_mem = dt_cgroup_mem(&s->group), node_left = dt_node_mem_left("");
    now->t = dt_monotonic();
    now->cpu_s = isnan(group_cpu) ? tree.cpu_s : group_cpu;
    now->mem = s->group.own_mem ? group_mem : isnan(tree.mem) ? NAN : fmin(tree.mem, group_mem);
    now->mem_left = fmin(dt_cgroup_mem_left(&s->group), node_left);
    now->io = tree.io;
    now->net = s->c->first_here ? dt_node_net("") : NAN;
    now->gpu = s->gpus ? dt_gpus_busy(s->gpus) : NAN;
    return tree.n > 0;
}

/* The file of a node: its tasks append to it, a line at once. */
static void write_line(struct sampler *s, const char *line)
{
    if (s->fd < 0 && dt_mkdirs(s->c->dir, NULL) == 0) {
        char *path = dt_xasprintf("%s/%s.jsonl", s->c->dir, s->c->node);
        s->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        free(path);
    }
    if (s->fd >= 0 && write(s->fd, line, strlen(line)) < 0) {
        close(s->fd); /* next time it may work */
        s->fd = -1;
    }
}

static double cpus_bound_to(void)
{
    size_t size = CPU_ALLOC_SIZE(16384);
    cpu_set_t *set = CPU_ALLOC(16384);
    int n = set && sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    return n > 0 ? n : INFINITY;
}

/* ---- when ---- */

/* So many seconds until the task's next moment: once in each period, counted from the epoch, and
 * not at its ends, where clocks do not agree. The golden ratio spreads any number of ranks. */
static double until_next(const struct dt_sampler_config *c, double now)
{
    double turn = c->rank * 0.6180339887498949, at = now / c->period;
    at -= 0.1 + 0.8 * (turn - floor(turn));
    return (floor(at) + 1 - at) * c->period;
}

static void pause_for(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

static void sample(struct sampler *s)
{
    double levels[DT_RESOURCES];
    struct dt_counters now;
    if (!look(s, &now))
        return;
    dt_levels(&s->last, &now, &s->limits, levels);
    char *line = dt_sample_line(s->c->role, s->c->rank, dt_now(), levels);
    write_line(s, line);
    free(line);
    s->last = now;
}

static void work(const struct dt_sampler_config *c, pid_t task)
{
    struct sampler s = {.c = c, .task = task, .limits = c->limits, .fd = -1};
    dt_cgroup_find(&s.group, "", c->alone);
    s.limits.cpus = fmin(s.limits.cpus, fmin(cpus_bound_to(), dt_cgroup_cpus(&s.group)));
    s.gpus = dt_gpus_open(DT_NVML, getenv("CUDA_VISIBLE_DEVICES"));
    look(&s, &s.last);
    for (;;) {
        double pause = until_next(c, dt_now()), moment = dt_monotonic() + pause;
        pause_for(pause);
        if (dt_monotonic() - moment > c->period / 2)
            look(&s, &s.last); /* it was suspended: what was in between is no measure */
        else if (moment - s.last.t > c->period / 2) /* less tells little */
            sample(&s);
    }
}

/* Lets go of what the task's own parent holds: the ends of pipes, sockets of Slurm. */
static void close_all(void)
{
    long most = sysconf(_SC_OPEN_MAX);
    for (int fd = 0; fd < (most > 0 && most < 4096 ? most : 4096); fd++)
        close(fd);
    int null = open("/dev/null", O_RDWR);
    for (int i = 1; null == 0 && i < 3; i++)
        dup2(null, i);
}

pid_t dt_sampler_start(const struct dt_sampler_config *c, pid_t task)
{
    pid_t parent = getpid(), pid = fork();
    sigset_t all;
    if (pid != 0)
        return pid > 0 ? pid : 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    sigfillset(&all); /* Slurm sends the user's signals to every process of a step */
    sigprocmask(SIG_SETMASK, &all, NULL);
    setpriority(PRIO_PROCESS, 0, 10);
    close_all();
    work(c, task);
    _exit(0);
}
