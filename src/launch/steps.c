#include "launch/launch.h"
#include "util/slurm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define INLINE_MAX                                                                                 \
    (64 * 1024) /* a longer description goes through a file: one argument holds 128 KiB */
#define FAILURE_MAX (256 * 1024)
#define LINGER 5.0 /* seconds from a task's failure to the forced end of everything */
#define BACKGROUND_END                                                                             \
    8.0 /* seconds for the servers: their own 5 s of grace, and srun's own end                     \
         */

/* ---- the srun command ---- */

void dt_step_environ(char *const *env, struct dt_strv *out)
{
    /* What sbatch set for srun to take as options: it speaks of the whole job, not of one role. An
     * mpiexec (MPICH 4.3) asks for an external launcher's step: one task a node. */
    static const char *const dropped[] = {
        "SLURM_NTASKS",
        "SLURM_NPROCS=",
        "SLURM_CPUS_PER_",
        "SLURM_GPUS",
        "SLURM_GPU_BIND",
        "SLURM_GRES",
        "SLURM_TRES_PER_",
        "SLURM_TRES_BIND",
        "SLURM_MEM_PER_",
        "SLURM_DISTRIBUTION",
        "SLURM_EXACT=",
        "SLURM_OVERLAP=",
        "SLURM_EXCLUSIVE=",
        "SLURM_WHOLE=",
        "SLURM_NNODES=",
        "SLURM_HOSTFILE=",
        "SLURM_KILL_BAD_EXIT=",
        "SLURM_WAIT=",
        "DT_PLAN",
        "DT_SLURM_NTASKS=",
        "SLURM_STEP_GRES=",
        "SLURM_HET_GROUP=",
        "SRUN_CPUS_PER_TASK=",
        "SLURM_EXTERNAL_",
    };
    for (; *env; env++) {
        bool drop = false;
        for (size_t i = 0; i < sizeof(dropped) / sizeof(*dropped); i++)
            drop |= dt_starts_with(*env, dropped[i]);
        if (!drop)
            dt_strv_add(out, *env);
    }
}

/* Tasks of a role by node. Caller frees. */
static int *count_tasks(const struct dt_launch_plan *p, size_t role)
{
    int *n = dt_xcalloc(p->n_nodes, sizeof(*n));
    for (size_t t = 0; t < p->n_tasks; t++)
        n[p->tasks[t].node] += p->tasks[t].role == (int)role;
    return n;
}

static int nodes_of(const struct dt_launch_plan *p, size_t role)
{
    int n = 0, *tasks = count_tasks(p, role);
    for (size_t i = 0; i < p->n_nodes; i++)
        n += tasks[i] > 0;
    free(tasks);
    return n;
}

static int roles_with_gpus(const struct dt_launch_plan *p)
{
    int n = 0;
    for (size_t i = 0; i < p->n_roles; i++)
        n += p->roles[i].gpus > 0;
    return n;
}

/* Tasks of a role on each of its nodes, 0 where they are not the same on all. */
static int even_tasks(const struct dt_launch_plan *p, size_t role)
{
    int nodes = nodes_of(p, role), even = nodes ? p->roles[role].count / nodes : 0;
    int *tasks = count_tasks(p, role);
    bool is_even = true;
    for (size_t i = 0; i < p->n_nodes; i++)
        is_even &= !tasks[i] || tasks[i] == even;
    free(tasks);
    return is_even ? even : 0;
}

/* Without a GPU option a step has all GPUs of the job on its nodes, and every task sees all of
 * them. Where the GPUs are not all this role's, or the job is not all this trial's, they are asked
 * for: by node, if that says it, so that again every task sees all of its node's and can choose
 * (bind.c); else by task. Then Slurm shows each task its own only; those that are to see all get a
 * mask of the node's GPUs, by which it shows all that the step has there. (With --gpu-bind=none it
 * leaves CUDA_VISIBLE_DEVICES out, and they would see other trials'.) */
enum gpus { GPUS_OF_JOB, GPUS_BY_NODE, GPUS_BY_MASK, GPUS_BY_TASK };

#define MASK_BITS 62 /* a mask must not have more bits than the node has GPUs */

static enum gpus gpus_of(const struct dt_launch_plan *p, size_t role)
{
    const struct dt_launch_role *r = &p->roles[role];
    bool others =
        p->steps || (!p->het && !p->together && !r->gpus_shared && roles_with_gpus(p) > 1);
    if (!others && (r->gpus_shared || p->bind || !p->bind_gpus))
        return GPUS_OF_JOB;
    if (!p->bind && !(p->steps && !p->bind_gpus))
        return GPUS_BY_TASK;
    if (even_tasks(p, role))
        return GPUS_BY_NODE;
    bool mask = p->steps && p->node_gpus > 0 && p->node_gpus <= MASK_BITS;
    return mask ? GPUS_BY_MASK : GPUS_BY_TASK;
}

const char *dt_step_gpus(const struct dt_launch_plan *p, size_t role)
{
    const struct dt_launch_role *r = &p->roles[role];
    if (!r->gpus || gpus_of(p, role) == GPUS_BY_TASK)
        return "given";
    return p->bind_gpus && !r->gpus_shared ? "own" : "all";
}

static void add_gpus(const struct dt_launch_plan *p, size_t role, struct dt_strv *out)
{
    const struct dt_launch_role *r = &p->roles[role];
    const char *type = r->gpu_type ? r->gpu_type : "", *colon = r->gpu_type ? ":" : "";
    enum gpus way = gpus_of(p, role);
    if (r->gpus == 0 && (p->steps ? p->gpus_around : !p->het && roles_with_gpus(p) > 0))
        dt_strv_add(out, "--gpus=0");
    if (r->gpus == 0 || way == GPUS_OF_JOB)
        return;
    if (way == GPUS_BY_NODE)
        dt_strv_addf(out, "--gres=gpu:%s%s%d", type, colon, r->gpus * even_tasks(p, role));
    else if (p->steps || p->bind_gpus)
        dt_strv_addf(out, "--gpus-per-task=%s%s%d", type, colon, r->gpus);
    else
        dt_strv_addf(out, "--gpus=%s%s%d", type, colon, r->gpus * r->count);
    if (way == GPUS_BY_MASK)
        dt_strv_addf(out, "--gpu-bind=mask_gpu:0x%llx", (1ULL << p->node_gpus) - 1);
    else if (p->steps && way == GPUS_BY_TASK && !p->bind_gpus)
        dt_strv_add(out, "--gpu-bind=none");
}

/* A share of an allocation that other trials have theirs of: all of it is said, so that Slurm holds
 * the limits and no step waits for another trial's. */
static void add_share(const struct dt_launch_role *r, struct dt_strv *out)
{
    dt_strv_add(out, "--exact");
    if (r->mem_per_cpu)
        dt_strv_addf(out, "--mem-per-cpu=%dM", r->mem_per_cpu);
    else
        dt_strv_add(out, "--mem=0");
}

void dt_step_argv(const struct dt_launch_plan *p, size_t role, const char *srun,
                  const struct dt_shim *s, const char *self, const char *launch,
                  char *const *program, struct dt_strv *out)
{
    const struct dt_launch_role *r = &p->roles[role];
    dt_strv_add(out, srun);
    if (p->het)
        dt_strv_addf(out, "--het-group=%d", r->group);
    if (p->steps) /* by its name the tuner knows it among all steps of the job */
        dt_strv_addf(out, "--job-name=%s.%s", dt_json_str(p->json, "name", "trial"), r->name);
    else
        dt_strv_addf(out, "--job-name=%s", r->name);
    dt_strv_addf(out, "--ntasks=%d", r->count);
    if (!p->together ||
        r->coordinator) /* it would confine the step to so many CPUs of Slurm's choice */
        dt_strv_addf(out, "--cpus-per-task=%d", r->cpus);
    dt_strv_add(out, "--distribution=arbitrary");
    if (r->coordinator) {
        dt_strv_add(out, "--overlap");
        dt_strv_add(out, "--mem=0");
        if (p->steps)
            dt_strv_add(out, "--exact");
    } else if (p->steps) {
        add_share(r, out);
    } else if (p->together) {
        dt_strv_add(out, "--overlap");
        dt_strv_add(out, "--mem=0");
        if (p->unbind)
            dt_strv_add(out, "--cpu-bind=none"); /* to all that the job has here, then */
    } else if (!p->het && p->n_roles > 1) {
        if (!p->overcommit) /* an exact step may not have more tasks than CPUs */
            dt_strv_add(out, "--exact");
        dt_strv_add(out, "--mem=0");
        if (p->share_cores)
            dt_strv_add(out, "--overlap");
    }
    add_gpus(p, role, out);
    dt_strv_add(out, "--kill-on-bad-exit=1");
    dt_strv_add(out, "--wait=0");
    dt_strv_addv(out, s->pass.v);
    if (s->to_file && p->n_roles > 1)
        dt_strv_add(out, "--open-mode=append"); /* the roles' steps write to one file */
    if (r->background)
        dt_strv_add(out, "--input=all"); /* its end is how the servers are told to end */
    dt_strv_add(out, self);
    dt_strv_add(out, "--task");
    dt_strv_add(out, r->name);
    dt_strv_add(out, launch);
    dt_strv_addv(out, program);
}

void dt_hydra_argv(const struct dt_launch_plan *p, int tasks, const char *srun,
                   const struct dt_shim *s, const char *self, char *const *program,
                   struct dt_strv *out)
{
    dt_strv_add(out, srun);
    dt_strv_addf(out, "--job-name=%s.mpi", dt_json_str(p->json, "name", "trial"));
    dt_strv_addf(out, "--ntasks=%d", tasks);
    dt_strv_addf(out, "--cpus-per-task=%d", p->roles[0].cpus);
    dt_strv_add(out, "--distribution=arbitrary");
    add_share(&p->roles[0], out);
    add_gpus(p, 0, out);
    dt_strv_add(out, "--kill-on-bad-exit=1");
    dt_strv_add(out, "--wait=0");
    dt_strv_addv(out, s->pass.v);
    dt_strv_add(out, self);
    dt_strv_add(out, "--hydra");
    dt_strv_addv(out, program);
}

/* ---- failures that tasks recorded ---- */

static struct json_object *read_failure(const char *path, int number)
{
    char *text = dt_read_file(path, FAILURE_MAX, NULL, NULL);
    struct json_object *o = text ? dt_json_parse(text, path, NULL) : NULL;
    free(text);
    if (o && number && dt_json_int(o, "launch", 0) != number) {
        json_object_put(o);
        return NULL;
    }
    return o;
}

struct json_object *dt_first_failure(const char *dir, int number)
{
    struct json_object *first = NULL;
    char *tasks = dt_xasprintf("%s/tasks", dir);
    DIR *d = opendir(tasks);
    struct dirent *entry;
    while (d && (entry = readdir(d))) {
        size_t n = strlen(entry->d_name);
        if (n < 6 || strcmp(entry->d_name + n - 5, ".json") != 0)
            continue;
        char *path = dt_xasprintf("%s/%s", tasks, entry->d_name);
        struct json_object *o = read_failure(path, number);
        free(path);
        if (o && first && dt_json_num(o, "time", 0) >= dt_json_num(first, "time", 0)) {
            json_object_put(o);
        } else if (o) {
            json_object_put(first);
            first = o;
        }
    }
    if (d)
        closedir(d);
    free(tasks);
    return first;
}

int dt_failure_code(struct json_object *failure)
{
    int signal = (int)dt_json_int(failure, "signal", 0);
    return signal ? 128 + signal : (int)dt_json_int(failure, "exit_code", 1);
}

/* ---- running ---- */

struct step {
    pid_t pid;   /* 0: not running */
    int control; /* our end of its standard input, -1 where it has the caller's */
    bool background;
};

struct run {
    struct dt_launch_plan *p;
    struct step *steps;
    int number;      /* of this launch in the trial's run */
    bool keep_going; /* tasks may fail */
    bool ending;     /* what still runs no longer decides the outcome */
    int code;        /* the outcome; srun's own, until a failed task's is known */
    double force_at; /* when what still runs is ended by force; INFINITY: not yet */
    double look_at;  /* next look for failed tasks */
};

static int spawn_step(struct step *st, char *const *argv, char *const *env, struct dt_error *e)
{
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t attr;
    sigset_t none, defaults;
    int control[2] = {-1, -1};
    if (st->background && pipe2(control, O_CLOEXEC) < 0)
        return dt_fail(e, "pipe: %s", strerror(errno));
    posix_spawn_file_actions_init(&fa);
    if (st->background)
        posix_spawn_file_actions_adddup2(&fa, control[0], 0);
    posix_spawnattr_init(&attr);
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &defaults);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int rc = posix_spawn(&st->pid, argv[0], &fa, &attr, argv, env);
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&attr);
    if (st->background)
        close(control[0]);
    st->control = control[1];
    if (rc == 0)
        return 0;
    st->pid = 0;
    return dt_fail(e, "cannot start %s: %s", argv[0], strerror(rc));
}

/* The nodes of a role's tasks, one a line, as srun reads them for --distribution=arbitrary. */
static char *write_hosts(const struct dt_launch_plan *p, size_t role, int number,
                         struct dt_error *e)
{
    struct dt_buf b = DT_BUF_INIT;
    char *path = dt_xasprintf("%s/launch-%d-%s.hosts", p->dir, number, p->roles[role].name);
    for (size_t t = 0; t < p->n_tasks; t++)
        if (p->tasks[t].role == (int)role)
            dt_buf_addf(&b, "%s\n", p->nodes[p->tasks[t].node].name);
    if (dt_write_file(path, b.s, b.len, 0600, e) < 0) {
        free(path);
        path = NULL;
    }
    dt_buf_free(&b);
    return path;
}

static int start_step(struct run *r, size_t role, const char *srun, const struct dt_shim *s,
                      const char *self, const char *launch, char *const *program,
                      struct dt_error *e)
{
    struct dt_strv argv = DT_STRV_INIT, env = DT_STRV_INIT;
    char *hosts = write_hosts(r->p, role, r->number, e);
    char *nodes = dt_xasprintf("%d", nodes_of(r->p, role));
    int rc = -1;
    if (hosts) {
        dt_step_environ(environ, &env);
        dt_launch_setenv(&env, "SLURM_HOSTFILE", hosts);
        /* newer versions refuse --nodes beside an arbitrary distribution, but take this */
        dt_launch_setenv(&env, "SLURM_NNODES", nodes);
        dt_step_argv(r->p, role, srun, s, self, launch, program, &argv);
        r->steps[role].background = r->p->roles[role].background;
        rc = spawn_step(&r->steps[role], argv.v, env.v, e);
    }
    dt_strv_free(&argv);
    dt_strv_free(&env);
    free(hosts);
    free(nodes);
    return rc;
}

static void signal_steps(struct run *r, int sig, bool background_too)
{
    for (size_t i = 0; i < r->p->n_roles; i++)
        if (r->steps[i].pid && (background_too || !r->steps[i].background))
            kill(r->steps[i].pid, sig);
}

static void close_control(struct step *st)
{
    if (st->control >= 0)
        close(st->control);
    st->control = -1;
}

/* Ends what still runs: servers by the end of their input, which lets them finish in order; for the
 * others srun turns SIGTERM into the immediate end of its step. */
static void end_all(struct run *r, bool workers_too)
{
    r->ending = true;
    for (size_t i = 0; i < r->p->n_roles; i++)
        close_control(&r->steps[i]);
    if (workers_too)
        signal_steps(r, SIGTERM, false);
    double at = dt_monotonic() + BACKGROUND_END;
    if (at < r->force_at)
        r->force_at = at;
}

static bool running(const struct run *r, bool foreground_only)
{
    for (size_t i = 0; i < r->p->n_roles; i++)
        if (r->steps[i].pid && !(foreground_only && r->steps[i].background))
            return true;
    return false;
}

static void step_ended(struct run *r, size_t i, int status)
{
    r->steps[i].pid = 0;
    close_control(&r->steps[i]);
    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (r->ending)
        return;
    if (code) {
        r->code = code;
        end_all(r, true);
    } else if (!running(r, true)) {
        end_all(r, false);
    }
}

static void reap(struct run *r)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (size_t i = 0; i < r->p->n_roles; i++)
            if (r->steps[i].pid == pid)
                step_ended(r, i, status);
}

/* A task failed but its step lives on, because other tasks ignore SIGTERM: Slurm would give them
 * KillWait. */
static void look_for_failure(struct run *r)
{
    r->look_at = dt_monotonic() + 1.0;
    if (r->ending || r->keep_going || isfinite(r->force_at))
        return;
    struct json_object *failure = dt_first_failure(r->p->dir, r->number);
    if (failure)
        r->force_at = dt_monotonic() + LINGER;
    json_object_put(failure);
}

static void take_signal(struct run *r, int sig)
{
    switch (sig) {
    case SIGCHLD:
        reap(r);
        break;
    case SIGTERM:
    case SIGINT:
    case SIGHUP:
        if (!r->code)
            r->code = 128 + sig;
        end_all(r, true);
        break;
    default:
        signal_steps(r, sig, true);
    }
}

static int open_signals(void)
{
    static const int taken[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
        sigaddset(&set, taken[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void supervise(struct run *r, int fd)
{
    struct signalfd_siginfo si;
    while (running(r, false)) {
        struct pollfd pfd = {fd, POLLIN, 0};
        double next = r->force_at < r->look_at ? r->force_at : r->look_at,
               left = next - dt_monotonic();
        poll(&pfd, 1, left > 0 ? (int)(left * 1000) + 1 : 0);
        while (read(fd, &si, sizeof(si)) == (ssize_t)sizeof(si))
            take_signal(r, (int)si.ssi_signo);
        if (dt_monotonic() >= r->force_at) {
            signal_steps(r, SIGTERM, true);
            r->force_at = dt_monotonic() + 1.0;
        }
        if (dt_monotonic() >= r->look_at)
            look_for_failure(r);
    }
}

/* Says which task failed first, and gives its exit code instead of srun's. */
static int outcome(const struct run *r)
{
    struct json_object *failure = r->code ? dt_first_failure(r->p->dir, r->number) : NULL;
    int code = r->code;
    if (failure) {
        int signal = (int)dt_json_int(failure, "signal", 0);
        code = dt_failure_code(failure);
        fprintf(stderr, "dt-launch: %s %d on %s %s %d\n", dt_json_str(failure, "role", "task"),
                (int)dt_json_int(failure, "rank", 0), dt_json_str(failure, "node", "?"),
                signal ? "was killed by signal" : "ended with exit code",
                signal ? signal : (int)dt_json_int(failure, "exit_code", 1));
        json_object_put(failure);
    }
    return code;
}

/* Takes the next number in the trial's run: records of several launches, also of simultaneous ones,
 * stand side by side. -1 on error. */
static int take_number(const char *dir, struct dt_error *e)
{
    for (int n = 1;; n++) {
        char *path = dt_xasprintf("%s/launch-%d.json", dir, n);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            n = dt_fail(e, "%s: cannot create it: %s", path, strerror(errno));
        bool taken = fd < 0 && n > 0;
        if (fd >= 0)
            close(fd);
        free(path);
        if (!taken)
            return n;
    }
}

/* Whether the tasks' output comes to the file that the job's output goes to. */
static bool joins_output(const struct dt_launch_plan *p, const struct dt_shim *s)
{
    char *path = dt_xasprintf("%s/" DT_LAUNCH_OUTPUT, p->dir);
    struct stat job, ours;
    bool joins = !s->to_file && stat(path, &job) == 0 && fstat(1, &ours) == 0 &&
                 job.st_dev == ours.st_dev && job.st_ino == ours.st_ino;
    free(path);
    return joins;
}

/* {"worker": [0, 512, ...]}: how long every task's log is before the launch. */
static struct json_object *log_sizes(const struct dt_launch_plan *p)
{
    struct json_object *o = json_object_new_object();
    for (size_t i = 0; i < p->n_tasks; i++) {
        const char *role = p->roles[p->tasks[i].role].name;
        char *path = dt_xasprintf("%s/%s-%d.log", p->dir, role, p->tasks[i].role_rank);
        struct stat st;
        struct json_object *sizes = dt_json_get(o, role);
        if (!sizes)
            json_object_object_add(o, role, sizes = json_object_new_array());
        json_object_array_add(sizes, json_object_new_int64(stat(path, &st) == 0 ? st.st_size : 0));
        free(path);
    }
    return o;
}

/* Writes dir/launch-N.json (when and where every task was started; where its output is to be looked
 * for, if that goes its own ways) and returns what tasks get as LAUNCH. */
static char *record_launch(const struct dt_launch_plan *p, int number, const struct dt_shim *s,
                           struct dt_error *e)
{
    struct json_object *o = dt_launch_describe(p, number);
    if (s->keep_going)
        json_object_object_add(o, "keep_going", json_object_new_boolean(true));
    char *brief = dt_json_text(o);
    char *path = dt_xasprintf("%s/launch-%d.json", p->dir, number);
    json_object_object_add(o, "time", json_object_new_double(dt_now()));
    if (dt_json_get(p->json, "metrics") && !joins_output(p, s))
        json_object_object_add(o, "logs", log_sizes(p));
    char *text = dt_json_text(o);
    int rc = dt_write_file(path, text, strlen(text), 0666, e);
    if (rc == 0 && strlen(brief) > INLINE_MAX) {
        free(brief);
        brief = dt_xasprintf("@%s", path);
    }
    if (rc < 0) {
        free(brief);
        brief = NULL;
    }
    free(text);
    free(path);
    json_object_put(o);
    return brief;
}

static int run_all(struct run *r, const char *srun, const struct dt_shim *s, const char *self,
                   const char *launch, char *const *program, struct dt_error *e)
{
    int fd = open_signals();
    if (fd < 0)
        return dt_fail(e, "signalfd: %s", strerror(errno));
    int rc = 0;
    for (size_t i = 0; i < r->p->n_roles && rc == 0; i++)
        rc = start_step(r, i, srun, s, self, launch, program, e);
    if (rc < 0)
        end_all(r, true);
    supervise(r, fd);
    close(fd);
    return rc < 0 ? -1 : outcome(r);
}

/* Whether tasks are bound without anybody's asking. Where that is not so, srun answers a word of
 * binding with a line of its own. */
static bool slurm_binds(void)
{
    slurm_conf_t *conf = NULL;
    slurm_init(NULL);
    if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS)
        return true;
    bool binds = conf->task_plugin && strstr(conf->task_plugin, "affinity");
    slurm_free_ctl_conf(conf);
    return binds;
}

int dt_steps_run(struct dt_launch_plan *p, const char *srun, const struct dt_shim *s,
                 char *const *program, struct dt_error *e)
{
    struct run r = {.p = p, .keep_going = s->keep_going, .force_at = INFINITY};
    char *self = dt_self_exe(e), *tasks = dt_xasprintf("%s/tasks", p->dir), *launch = NULL;
    int rc = -1;
    p->bind = p->bind && !dt_bind_is_given(&s->pass, environ);
    p->together = p->together && p->bind;
    p->unbind = p->together && slurm_binds();
    dt_launch_add_coordinator(p);
    r.steps = dt_xcalloc(p->n_roles, sizeof(*r.steps));
    for (size_t i = 0; i < p->n_roles; i++)
        r.steps[i].control = -1;
    if (self && dt_mkdirs(tasks, e) == 0)
        r.number = take_number(p->dir, e);
    if (r.number > 0 && dt_ports_assign(p, r.number, environ, e) == 0)
        launch = record_launch(p, r.number, s, e);
    if (launch)
        rc = run_all(&r, srun, s, self, launch, program, e);
    free(launch);
    free(tasks);
    free(self);
    free(r.steps);
    return rc;
}

/* The tasks on the nodes that mpiexec asks for, or on all where it names none, one node a line;
 * writes how many tasks and nodes. NULL on error. */
static char *write_asked(const struct dt_launch_plan *p, const char *asked, int number, int *tasks,
                         int *nodes, struct dt_error *e)
{
    struct dt_strv names = DT_STRV_INIT;
    struct dt_buf b = DT_BUF_INIT;
    char *path = dt_xasprintf("%s/launch-%d-mpi.hosts", p->dir, number);
    bool *seen = dt_xcalloc(p->n_nodes, sizeof(*seen));
    int rc = asked ? dt_hostlist_expand(asked, &names, e) : 0;
    *tasks = *nodes = 0;
    for (size_t t = 0; t < p->n_tasks && rc == 0; t++) {
        const char *name = p->nodes[p->tasks[t].node].name;
        bool wanted = !asked;
        for (size_t i = 0; i < names.n; i++)
            wanted |= strcmp(names.v[i], name) == 0;
        if (!wanted)
            continue;
        dt_buf_addf(&b, "%s\n", name);
        *nodes += !seen[p->tasks[t].node];
        seen[p->tasks[t].node] = true;
        ++*tasks;
    }
    if (rc == 0 && !*tasks)
        rc = dt_fail(e, "mpiexec asks for %s, which are not the trial's nodes", asked);
    if (rc == 0)
        rc = dt_write_file(path, b.s, b.len, 0600, e);
    dt_strv_free(&names);
    dt_buf_free(&b);
    free(seen);
    if (rc == 0)
        return path;
    free(path);
    return NULL;
}

int dt_hydra_exec(const struct dt_launch_plan *p, const char *srun, const struct dt_shim *s,
                  char *const *program, struct dt_error *e)
{
    struct dt_strv argv = DT_STRV_INIT, env = DT_STRV_INIT;
    int tasks, nodes, number = -1;
    if (p->n_roles > 1)
        return dt_fail(e, "a trial with servers cannot be started by mpiexec, whose processes are "
                          "all of one kind: use srun");
    char *self = dt_self_exe(e), *launch = NULL, *hosts = NULL;
    if (self)
        number = take_number(p->dir, e);
    if (number > 0)
        hosts = write_asked(p, s->nodelist, number, &tasks, &nodes, e);
    if (hosts && (launch = record_launch(p, number, s, e))) {
        char *count = dt_xasprintf("%d", nodes);
        dt_step_environ(environ, &env);
        dt_launch_setenv(&env, "SLURM_HOSTFILE", hosts);
        dt_launch_setenv(&env, "SLURM_NNODES", count);
        dt_hydra_argv(p, tasks, srun, s, self, program, &argv);
        execve(srun, argv.v, env.v);
        dt_fail(e, "cannot start %s: %s", srun, strerror(errno));
        free(count);
    }
    free(launch);
    free(hosts);
    free(self);
    dt_strv_free(&argv);
    dt_strv_free(&env);
    return -1;
}
