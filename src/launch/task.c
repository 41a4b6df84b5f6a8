#include "launch/launch.h"
#include "monitor/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define LOG_MAX (8 * 1024 * 1024)
#define LAST_LINES 20
#define LINE_MAX_ 2000
#define GRACE 5.0  /* seconds between SIGTERM and SIGKILL when it is no longer needed */
#define LATE 1.0   /* seconds in which a signal may still come that PROGRAM has got already */
#define LATE_OK .05 /* the same where it ended well: who is told seldom does, and all would wait */
#define DRAIN 0.25 /* seconds that output may still come from what PROGRAM left behind */

/* The last lines of both streams together, as they came. */
struct tail {
    char *lines[LAST_LINES];
    int next; /* where the next whole line goes */
    struct dt_buf part[2];
};

struct task {
    const char *role;
    int rank, launch, run;
    char *dir, *node;
    struct dt_sampler_config monitor; /* period 0: off */
    char *samples;                    /* folder */
    bool keep_going;                  /* others may fail */
    bool controlled;                  /* standard input says when to end */
    bool told;                        /* to end, by a signal or by the end of the input */
    bool late;                        /* so, when PROGRAM had ended */
    bool by_slurm;                    /* so, and not by PROGRAM, which may signal all its group */
    bool dismissed; /* by the end of the input, or as it is not needed: its status does not count */
    bool surplus;   /* the latter */
    pid_t child;
    int status;
    bool done;
    double ended; /* when it was, by the clock */
    int in[2]; /* PROGRAM's stdout and stderr; -1 at their end */
    int log;
    uint64_t log_size;
    struct tail tail;
    double kill_at, drained_at;
};

/* ---- output ---- */

static void log_output(struct task *t, const char *s, size_t n)
{
    if (t->log < 0)
        return;
    if (t->log_size + n <= LOG_MAX) {
        t->log_size += n;
        if (dt_write_all(t->log, s, n) == 0)
            return;
    } else {
        char *line = dt_xasprintf("\n[dt-launch: the log ends here, at its limit of %d MiB]\n",
                                  LOG_MAX / (1024 * 1024));
        dt_write_all(t->log, line, strlen(line));
        free(line);
    }
    close(t->log);
    t->log = -1;
}

static void end_line(struct tail *tail, int stream)
{
    struct dt_buf *part = &tail->part[stream];
    size_t n = part->len;
    if (n && part->s[n - 1] == '\r')
        n--;
    free(tail->lines[tail->next]);
    tail->lines[tail->next] = dt_clean_text(part->s ? part->s : "", n);
    tail->next = (tail->next + 1) % LAST_LINES;
    dt_buf_free(part);
    *part = (struct dt_buf)DT_BUF_INIT;
}

static void keep_tail(struct tail *tail, int stream, const char *s, size_t n)
{
    while (n) {
        const char *newline = memchr(s, '\n', n);
        size_t len = newline ? (size_t)(newline - s) : n;
        size_t room = LINE_MAX_ - tail->part[stream].len;
        dt_buf_addn(&tail->part[stream], s, len < room ? len : room);
        if (!newline)
            return;
        end_line(tail, stream);
        s = newline + 1;
        n -= len + 1;
    }
}

static struct json_object *tail_to_json(struct tail *tail)
{
    struct json_object *lines = json_object_new_array();
    for (int stream = 0; stream < 2; stream++)
        if (tail->part[stream].len)
            end_line(tail, stream);
    for (int i = 0; i < LAST_LINES; i++) {
        const char *line = tail->lines[(tail->next + i) % LAST_LINES];
        if (line)
            json_object_array_add(lines, json_object_new_string(line));
    }
    return lines;
}

static void copy_output(struct task *t, int stream)
{
    char chunk[32768];
    ssize_t n = read(t->in[stream], chunk, sizeof(chunk));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        close(t->in[stream]);
        t->in[stream] = -1;
        return;
    }
    dt_write_all(stream + 1, chunk, (size_t)n); /* a reader that is gone does not stop the log */
    log_output(t, chunk, (size_t)n);
    keep_tail(&t->tail, stream, chunk, (size_t)n);
}

/* ---- PROGRAM ---- */

/* As srun does: a name without a slash is looked for along PATH, then here. */
static void exec_program(char **program, bool controlled)
{
    if (controlled) {
        int null = open("/dev/null", O_RDONLY);
        if (null >= 0)
            dup2(null, 0);
        if (null > 0)
            close(null);
    }
    execvp(program[0], program);
    if (errno == ENOENT && !strchr(program[0], '/') && access(program[0], X_OK) == 0) {
        char *here = dt_xasprintf("./%s", program[0]);
        execv(here, program);
    }
    int why = errno;
    fprintf(stderr, "dt-launch: cannot start %s: %s\n", program[0], strerror(why));
    _exit(why == ENOENT ? 127 : 126);
}

static int start_program(struct task *t, char **program, const sigset_t *mask, struct dt_error *e)
{
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) < 0)
        return dt_fail(e, "pipe: %s", strerror(errno));
    if (pipe2(err, O_CLOEXEC) < 0) {
        close(out[0]);
        close(out[1]);
        return dt_fail(e, "pipe: %s", strerror(errno));
    }
    pid_t parent = getpid();
    t->child = fork();
    if (t->child == 0) {
        /* when Slurm kills us, PROGRAM must not live on */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(137);
        dup2(out[1], 1);
        dup2(err[1], 2);
        signal(SIGPIPE, SIG_DFL);
        sigprocmask(SIG_SETMASK, mask, NULL);
        exec_program(program, t->controlled);
    }
    int why = errno;
    close(out[1]);
    close(err[1]);
    t->in[0] = out[0];
    t->in[1] = err[0];
    return t->child < 0 ? dt_fail(e, "fork: %s", strerror(why)) : 0;
}

static void tell_to_end(struct task *t)
{
    t->told = true;
    if (!t->done)
        kill(t->child, SIGTERM);
    t->kill_at = dt_monotonic() + GRACE;
}

/* Standard input of a server holds nothing; its end means that the others are done. */
static void read_control(struct task *t)
{
    char chunk[512];
    ssize_t n = read(0, chunk, sizeof(chunk));
    if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
        return;
    t->controlled = false;
    t->dismissed = true;
    tell_to_end(t);
}

/* The tuner may go on with fewer workers: then it says with how many, and the last ones end. */
static void read_order(struct task *t)
{
    char *path = dt_xasprintf("%s/keep.json", t->dir), *text = dt_read_file(path, 4096, NULL, NULL);
    struct json_object *o = text ? dt_json_parse(text, path, NULL) : NULL;
    bool now = o && dt_json_int(o, "run", 0) == t->run;
    if (now && t->rank >= dt_json_int(o, t->role, INT64_MAX) && !t->dismissed) {
        t->surplus = t->dismissed = true;
        tell_to_end(t);
    }
    json_object_put(o);
    free(text);
    free(path);
}

/* DIR/NAME, an empty file; several tasks may make the same at once. */
static void leave_word(const char *dir, const char *name)
{
    struct dt_error e = DT_ERROR_INIT;
    char *path = dt_xasprintf("%s/%s", dir, name);
    int rc = dt_mkdirs(dir, &e);
    int fd = rc == 0 ? open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666) : -1;
    if (rc == 0 && fd < 0)
        dt_fail(&e, "%s: cannot write: %s", path, strerror(errno));
    if (fd < 0)
        fprintf(stderr, "dt-launch: %s\n", e.text);
    else
        close(fd);
    dt_error_clear(&e);
    free(path);
}

/* So that the tuner knows that this task was one of the last workers, which were to end. */
static void tell_left(const struct task *t)
{
    char *dir = dt_xasprintf("%s/left-%d", t->dir, t->run);
    char *name = dt_xasprintf("%s-%d", t->role, t->rank);
    leave_word(dir, name);
    free(name);
    free(dir);
}

/* So that the batch script's wrapper knows, which scancel may tell later than the tasks. */
static void tell_told(const struct task *t)
{
    char *dir = dt_xasprintf("%s/tasks", t->dir);
    leave_word(dir, "told");
    free(dir);
}

/* Whether another task has failed, for which Slurm ends this one. */
static bool another_failed(const struct task *t)
{
    struct json_object *failure = t->keep_going ? NULL : dt_first_failure(t->dir, t->launch);
    bool failed = failure;
    json_object_put(failure);
    return failed;
}

static void take_signals(struct task *t, int fd)
{
    struct signalfd_siginfo si;
    while (read(fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
        int sig = (int)si.ssi_signo;
        if (sig == SIGCHLD) {
            if (!t->done && waitpid(t->child, &t->status, WNOHANG) == t->child) {
                t->done = true;
                t->ended = dt_now();
                t->drained_at = dt_monotonic() + DRAIN;
            }
            continue;
        }
        if (sig == SIGURG) {
            read_order(t);
            continue;
        }
        if (sig == SIGTERM || sig == SIGINT || sig == SIGHUP || sig == SIGQUIT) {
            t->late |= t->done && !t->told;
            t->told = true;
            t->by_slurm |= (pid_t)si.ssi_pid == getppid();
            /* told since another task has failed, as far as can be known: Slurm would wait for
             * KillWait */
            if (t->by_slurm && !t->done && t->kill_at == 0 && another_failed(t))
                t->kill_at = dt_monotonic() + GRACE;
        }
        if (!t->done)
            kill(t->child, sig);
    }
}

static int wait_ms(const struct task *t)
{
    double next = t->done ? t->drained_at : t->kill_at;
    double left = next - dt_monotonic();
    if (next == 0)
        return -1;
    return left > 0 ? (int)(left * 1000) + 1 : 0;
}

static void supervise(struct task *t, int fd)
{
    while (!t->done || t->in[0] >= 0 || t->in[1] >= 0) {
        struct pollfd p[4] = {{fd, POLLIN, 0},
                              {t->in[0], POLLIN, 0},
                              {t->in[1], POLLIN, 0},
                              {t->controlled ? 0 : -1, POLLIN, 0}};
        int n = poll(p, 4, wait_ms(t));
        if (n == 0 && t->done)
            return;
        if (n < 0 && errno != EINTR)
            return;
        if (!t->done && t->kill_at > 0 && dt_monotonic() >= t->kill_at) {
            kill(t->child, SIGKILL);
            t->kill_at = dt_monotonic() + GRACE;
        }
        if (p[0].revents)
            take_signals(t, fd);
        for (int i = 0; i < 2; i++)
            if (p[i + 1].revents && t->in[i] >= 0)
                copy_output(t, i);
        if (p[3].revents)
            read_control(t);
    }
}

/* ---- the end ---- */

/* Slurm tells one process after the other: PROGRAM may have ended of what is still to come here. */
static void hear_late(struct task *t, int fd)
{
    struct pollfd p = {fd, POLLIN, 0};
    double left = t->status == 0 ? LATE_OK : LATE, until = dt_monotonic() + left;
    for (; left > 0 && !t->told; left = until - dt_monotonic())
        if (poll(&p, 1, (int)ceil(left * 1000)) > 0)
            take_signals(t, fd);
}

/* Slurm ends what is left when a task failed. This one may have failed before, and that one because
 * of it: a peer that lost contact, say, and was faster to tell. */
static bool failed_itself(const struct task *t, bool terminated)
{
    return !t->told || (t->late && !terminated && another_failed(t));
}

static void record_failure(struct task *t)
{
    struct dt_error e = DT_ERROR_INIT;
    struct json_object *o = json_object_new_object();
    int signal = WIFSIGNALED(t->status) ? WTERMSIG(t->status) : 0;
    json_object_object_add(o, "version", json_object_new_int(1));
    json_object_object_add(o, "launch", json_object_new_int(t->launch));
    json_object_object_add(o, "role", json_object_new_string(t->role));
    json_object_object_add(o, "rank", json_object_new_int(t->rank));
    json_object_object_add(o, "exit_code",
                           json_object_new_int(signal ? 128 + signal : WEXITSTATUS(t->status)));
    json_object_object_add(o, "signal", json_object_new_int(signal));
    json_object_object_add(o, "node", json_object_new_string(t->node));
    json_object_object_add(o, "time", json_object_new_double(t->ended));
    json_object_object_add(o, "lines", tail_to_json(&t->tail));
    char *text = dt_json_text(o),
         *path = dt_xasprintf("%s/tasks/%s-%d.json", t->dir, t->role, t->rank);
    if (dt_write_file(path, text, strlen(text), 0666, &e) < 0)
        fprintf(stderr, "dt-launch: %s\n", e.text);
    dt_error_clear(&e);
    free(path);
    free(text);
    json_object_put(o);
}

/* Ends as PROGRAM did, so that Slurm's records tell the same. */
static int end_like(int status)
{
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    int sig = WTERMSIG(status);
    struct rlimit no_core = {0, 0};
    sigset_t set;
    setrlimit(RLIMIT_CORE, &no_core); /* PROGRAM's own core is the interesting one */
    signal(sig, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, sig);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(sig);
    return 128 + sig;
}

static void open_log(struct task *t)
{
    struct stat st;
    char *path = dt_xasprintf("%s/%s-%d.log", t->dir, t->role, t->rank);
    t->log = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (t->log < 0)
        fprintf(stderr, "dt-launch: %s: %s; its output is not kept\n", path, strerror(errno));
    else if (fstat(t->log, &st) == 0)
        t->log_size = (uint64_t)st.st_size;
    free(path);
    char last;
    bool open_line =
        t->log_size > 0 && pread(t->log, &last, 1, (off_t)t->log_size - 1) == 1 && last != '\n';
    if (open_line) /* by an earlier launch */
        log_output(t, "\n", 1);
}

static int run_task(struct task *t, char **program, struct dt_error *e)
{
    static const int taken[] = {SIGCHLD, SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,
                                SIGUSR1, SIGUSR2, SIGCONT, SIGALRM, SIGURG};
    sigset_t set, old;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
        sigaddset(&set, taken[i]);
    sigprocmask(SIG_BLOCK, &set, &old);
    signal(SIGPIPE, SIG_IGN);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return dt_fail(e, "signalfd: %s", strerror(errno));
    open_log(t);
    if (start_program(t, program, &old, e) < 0)
        return -1;
    pid_t sampler = t->monitor.period > 0 ? dt_sampler_start(&t->monitor, t->child) : 0;
    supervise(t, fd);
    if (sampler)
        kill(sampler, SIGKILL);
    bool terminated = WIFSIGNALED(t->status) && WTERMSIG(t->status) == SIGTERM;
    if (WIFEXITED(t->status) || terminated)
        hear_late(t, fd);
    close(fd);
    bool failed = t->status != 0 && failed_itself(t, terminated);
    if (failed)
        record_failure(t);
    if (t->surplus)
        tell_left(t);
    if (!t->dismissed && ((t->by_slurm && !failed) || terminated))
        tell_told(t);
    if (t->log >= 0)
        close(t->log);
    return 0;
}

/* ---- the beginning ---- */

static int env_number(const char *name)
{
    int64_t n;
    const char *value = getenv(name);
    return value && dt_parse_int64(value, &n) == 0 && n >= 0 && n < 1000000 ? (int)n : -1;
}

static struct json_object *read_launch(const char *arg, struct dt_error *e)
{
    if (arg[0] != '@')
        return dt_json_parse(arg, "description of the launch", e);
    char *text = dt_read_file(arg + 1, (size_t)1 << 30, NULL, e);
    struct json_object *o = text ? dt_json_parse(text, arg + 1, e) : NULL;
    free(text);
    return o;
}

static bool has_flag(struct json_object *launch, const char *role, const char *flag)
{
    struct json_object *roles = dt_json_get(launch, "roles");
    for (size_t i = 0; i < dt_json_count(roles); i++) {
        struct json_object *r = dt_json_at(roles, i);
        if (strcmp(dt_json_str(r, "name", ""), role) == 0)
            return dt_json_bool(r, flag, false);
    }
    return false;
}

/* What the step has on its nodes: whether one task on each, and how many on this one (1 where Slurm
 * does not tell). */
static bool look_at_step(int *here)
{
    int *counts, node = env_number("SLURM_NODEID");
    const char *text = getenv("SLURM_STEP_TASKS_PER_NODE");
    int n = text ? dt_counts_expand(text, &counts) : -1;
    bool alone = n > 0;
    *here = node >= 0 && node < n ? counts[node] : 1;
    for (int i = 0; i < n; i++)
        alone &= counts[i] == 1;
    if (n >= 0)
        free(counts);
    return alone;
}

static void prepare_monitor(struct task *t, struct json_object *launch, bool alone)
{
    struct json_object *monitor = dt_json_get(launch, "monitor");
    double mib = dt_json_num(dt_json_get(monitor, "mem_mib"), t->role, NAN);
    int cpus = env_number("SLURM_CPUS_PER_TASK"), local = env_number("SLURM_LOCALID");
    t->samples = dt_xasprintf("%s/usage/%d", t->dir, (int)dt_json_int(launch, "run", 1));
    t->monitor = (struct dt_sampler_config){
        .dir = t->samples,
        .node = t->node,
        .role = t->role,
        .rank = t->rank,
        .first_here = local == 0,
        .alone = alone,
        .period =
            has_flag(launch, t->role, "coordinator") ? 0 : dt_json_num(monitor, "period_s", 0),
        .limits = {cpus > 0 ? cpus : INFINITY, mib * 1024 * 1024},
    };
}

/* A task that cannot be bound runs where Slurm lets it; the first one says so. */
static void bind(const struct task *t, struct json_object *launch, int local, struct dt_strv *env)
{
    struct dt_error e = DT_ERROR_INIT;
    if (dt_bind_task(launch, t->role, local, env, &e) < 0 && t->rank == 0)
        fprintf(stderr, "dt-launch: tasks are not bound to CPUs: %s\n", e.text);
    dt_error_clear(&e);
}

static int prepare(struct task *t, struct json_object *launch, struct dt_error *e)
{
    struct dt_strv env = DT_STRV_INIT;
    const char *node = getenv("SLURMD_NODENAME");
    int local = env_number("SLURM_LOCALID"), restarts = env_number("SLURM_RESTART_COUNT"), here;
    bool alone = look_at_step(&here);
    t->rank = env_number("SLURM_PROCID");
    t->launch = (int)dt_json_int(launch, "number", 0);
    t->run = (int)dt_json_int(launch, "run", 1);
    t->keep_going = dt_json_bool(launch, "keep_going", false);
    t->dir = dt_xstrdup(dt_json_str(launch, "dir", "."));
    t->node = dt_xstrdup(node ? node : "?");
    t->controlled = has_flag(launch, t->role, "background");
    /* How the role was laid out: a step that the task starts would be laid out so, too; with fewer
     * tasks than nodes Slurm 24.11 refuses that. */
    unsetenv("SLURM_HOSTFILE");
    unsetenv("SLURM_DISTRIBUTION");
    dt_strv_addv(&env, environ);
    struct dt_task_place place = {t->role, t->rank, local < 0 ? 0 : local, here};
    if (dt_task_env(launch, &place, restarts < 0 ? 0 : restarts, &env, e) < 0) {
        dt_strv_free(&env);
        return -1;
    }
    bind(t, launch, local, &env);
    environ = env.v; /* kept to the end of the process */
    prepare_monitor(t, launch, alone);
    return 0;
}

static void release(struct task *t)
{
    for (int i = 0; i < LAST_LINES; i++)
        free(t->tail.lines[i]);
    dt_buf_free(&t->tail.part[0]);
    dt_buf_free(&t->tail.part[1]);
    free(t->dir);
    free(t->node);
    free(t->samples);
}

int dt_task_main(int argc, char **argv)
{
    struct dt_error e = DT_ERROR_INIT;
    struct task t = {.log = -1, .in = {-1, -1}};
    int rc = -1;
    if (argc < 3) {
        fputs("dt-launch: --task ROLE LAUNCH PROGRAM is for dt-launch's own use in a job step\n",
              stderr);
        return 2;
    }
    t.role = argv[0];
    struct json_object *launch = read_launch(argv[1], &e);
    if (launch && prepare(&t, launch, &e) == 0)
        rc = run_task(&t, argv + 2, &e);
    if (rc < 0)
        fprintf(stderr, "dt-launch: %s\n", e.text);
    json_object_put(launch);
    dt_error_clear(&e);
    release(&t);
    return rc < 0 ? 2 : t.dismissed ? 0 : end_like(t.status);
}
