#include "backend/backend.h"
#include "expand/carrier.h"
#include "launch/launch.h"
#include "util/slurm.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define SCRIPT_MAX (64 * 1024 * 1024)
#define TUNER_LOOK 60.0 /* seconds between two looks whether the tuning job lives */
#define TUNER_WAIT 30.0 /* seconds that one look, or one message, may take */
#define LOOK 1          /* seconds between two looks at itself: how closely it knows a suspension */

struct batch {
    struct json_object *plan;
    char *dir, *self;
    char *script;      /* path of the user's script */
    int64_t tuner_job; /* at the time of the submission; 0: nobody to tell */
    pid_t tuner;       /* layout steps: the process that started this one; else 0 */
    bool told;         /* it was told to end before its script had ended, or was ending for that */
    bool tasks_told;   /* its tasks were */
    bool orphan;       /* it ends since the tuning job is gone */
    struct dt_strv env;
    double start, end;
    double suspended; /* seconds of them in which Slurm had stopped it, and the trial with it */
    double begun; /* monotonic: when start was, for how long it took depends on no clock that is set */
    pid_t child;
    struct dt_watcher watcher;
    struct json_object *notes; /* what it has to say of the metrics; NULL */
};

/* ---- the tuning job ---- */

static int read_job(int argc, char **argv, uint32_t *id)
{
    int64_t n;
    if (argc != 1 || dt_parse_int64(argv[0], &n) < 0 || n < 1 || n > UINT32_MAX)
        return -1;
    *id = (uint32_t)n;
    slurm_init(NULL);
    return 0;
}

int dt_tuner_gone_main(int argc, char **argv)
{
    uint32_t id;
    job_info_msg_t *info = NULL;
    bool gone;
    if (read_job(argc, argv, &id) < 0)
        return 2;
    if (dt_slurm_load_job(&info, id) != 0)
        return errno == ESLURM_INVALID_JOB_ID ? 0 : 1;
    gone = info->record_count > 0;
    for (uint32_t i = 0; i < info->record_count; i++)
        gone &= (info->job_array[i].job_state & JOB_STATE_BASE) > JOB_SUSPENDED;
    slurm_free_job_info_msg(info);
    return gone ? 0 : 1;
}

int dt_tell_tuner_main(int argc, char **argv)
{
    uint32_t id;
    if (read_job(argc, argv, &id) < 0)
        return 2;
    return dt_slurm_signal(id, SIGUSR1, true, NULL) == 0 ? 0 : 1;
}

/* The tuning job that looks after the study now: a resumed study has another. The tuner keeps it in
 * the study's folder, two levels above the trial's. */
static int64_t tuner_now(const struct batch *b)
{
    char *path = dt_xasprintf("%s/../../tuner.json", b->dir);
    char *text = b->tuner_job ? dt_read_file(path, 4096, NULL, NULL) : NULL;
    struct json_object *o = text ? dt_json_parse(text, path, NULL) : NULL;
    int64_t id = dt_json_int(o, "job", b->tuner_job);
    json_object_put(o);
    free(text);
    free(path);
    return id;
}

/* What dt-launch exits with where it is started so with the tuning job's number: in a process of
 * its own, since libslurm ends the process where it cannot read its configuration. -1: it did not
 * come to that. */
static int run_self(const struct batch *b, const char *mode, int64_t tuner)
{
    struct dt_proc_result r;
    char id[32];
    snprintf(id, sizeof(id), "%lld", (long long)tuner);
    char *argv[] = {b->self, (char *)mode, id, NULL};
    if (dt_proc_run(argv, NULL, TUNER_WAIT, &r, NULL) < 0)
        return -1;
    int code = WIFEXITED(r.status) ? WEXITSTATUS(r.status) : -1;
    dt_proc_result_free(&r);
    return code;
}

static bool tuner_is_gone(const struct batch *b)
{
    if (b->tuner)
        return getppid() != b->tuner;
    int64_t tuner = tuner_now(b);
    bool gone = tuner && run_self(b, "--tuner-gone", tuner) == 0;
    if (gone)
        fprintf(stderr, "dt-launch: tuning job %lld is gone; this trial ends\n", (long long)tuner);
    return gone;
}

/* The tuner looks by itself, too. Not by scancel, which has slurmctld list all jobs of the cluster
 * before it sends a signal. */
static void tell_tuner(const struct batch *b)
{
    int64_t tuner = tuner_now(b);
    if (tuner)
        run_self(b, "--tell-tuner", tuner);
}

/* ---- before the script ---- */

static int read_carrier(struct batch *b, const char *path, struct dt_error *e)
{
    struct dt_carrier c;
    char *text = dt_read_file(path, SCRIPT_MAX, NULL, e);
    int rc = -1;
    if (!text)
        return -1;
    if (dt_carrier_parse(text, &c) < 0) {
        dt_fail(e, "%s: is no script of dt-tune", path);
    } else {
        char *json = dt_xstrndup(c.json, c.json_len);
        b->plan = dt_json_parse(json, "trial", e);
        free(json);
    }
    if (b->plan) {
        b->dir = dt_launch_dir(b->plan, environ);
        b->script = dt_xasprintf("%s/script", b->dir);
        b->tuner_job = dt_json_int(b->plan, "tuner_job", 0);
        b->tuner = (pid_t)dt_json_int(b->plan, "tuner_pid", 0);
        if (b->tuner)
            prctl(PR_SET_PDEATHSIG, SIGTERM);
        b->orphan = tuner_is_gone(b);
        rc = b->orphan ? dt_fail(e, "nothing was started") : dt_mkdirs(b->dir, e);
        if (rc == 0)
            rc = dt_write_file(b->script, c.script, strlen(c.script), 0700, e);
    }
    free(text);
    return rc;
}

/* What an earlier run of this trial left must not be taken for this run's. */
static void remove_old(const char *dir)
{
    struct dirent *entry;
    char *tasks = dt_xasprintf("%s/tasks", dir), *end = dt_xasprintf("%s/end.json", dir);
    unlink(end);
    DIR *d = opendir(tasks);
    while (d && (entry = readdir(d)))
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(d), entry->d_name, 0);
    if (d)
        closedir(d);
    for (int n = 1;; n++) {
        char *path = dt_xasprintf("%s/launch-%d.json", dir, n);
        int rc = unlink(path);
        free(path);
        if (rc < 0)
            break;
    }
    free(end);
    free(tasks);
}

static int make_link(const char *target, const char *bin, const char *name, struct dt_error *e)
{
    char *path = dt_xasprintf("%s/%s", bin, name);
    unlink(path);
    int rc = symlink(target, path);
    if (rc < 0)
        dt_fail(e, "%s: cannot create the link: %s", path, strerror(errno));
    free(path);
    return rc;
}

static int make_folders(struct batch *b, struct dt_error *e)
{
    char *bin = dt_xasprintf("%s/bin", b->dir), *checkpoint = dt_xasprintf("%s/checkpoint", b->dir);
    char *folder = dt_self_dir(e), *tune = dt_xasprintf("%s/dt-tune", folder ? folder : "");
    int rc = folder ? 0 : -1;
    if (rc == 0)
        rc = dt_mkdirs(bin, e);
    if (rc == 0)
        rc = dt_mkdirs(checkpoint, e);
    if (rc == 0)
        rc = make_link(b->self, bin, "srun", e);
    if (rc == 0)
        rc = make_link(b->self, bin, "dt-launch", e);
    if (rc == 0)
        rc = make_link(tune, bin, "dt-tune", e);
    free(bin);
    free(checkpoint);
    free(folder);
    free(tune);
    return rc;
}

static int total_tasks(struct json_object *plan)
{
    struct json_object *roles = dt_json_get(plan, "roles");
    int64_t n = 0;
    for (size_t i = 0; i < dt_json_count(roles); i++)
        n += dt_json_int(dt_json_at(roles, i), "count", 0);
    return (int)n;
}

static void make_environment(struct batch *b)
{
    const char *path = getenv("PATH"), *restarts = getenv("SLURM_RESTART_COUNT");
    const char *ntasks = getenv("SLURM_NTASKS"), *job = getenv("SLURM_JOB_ID");
    char tasks[32],
        *with_bin = dt_xasprintf("%s/bin:%s", b->dir, path ? path : "/usr/local/bin:/usr/bin:/bin");
    dt_strv_addv(&b->env, environ);
    dt_trial_env(b->plan, b->dir, restarts ? atoi(restarts) : 0, &b->env);
    dt_launch_setenv(&b->env, "PATH", with_bin);
    json_object_object_add(b->plan, "dir", json_object_new_string(b->dir));
    char *plan = dt_json_text(b->plan);
    dt_launch_setenv(&b->env, "DT_PLAN", plan);
    /* a job that the script submits inherits all this, but is no part of the trial */
    dt_launch_setenv(&b->env, "DT_PLAN_JOB", job ? job : "");
    /* so that `srun -n $SLURM_NTASKS` means all tasks, in every layout */
    snprintf(tasks, sizeof(tasks), "%d", total_tasks(b->plan));
    dt_launch_setenv(&b->env, "DT_SLURM_NTASKS", ntasks ? ntasks : "");
    dt_launch_setenv(&b->env, "SLURM_NTASKS", tasks);
    dt_launch_setenv(&b->env, "SLURM_NPROCS", tasks);
    free(plan);
    free(with_bin);
}

static int write_json(const struct batch *b, const char *name, struct json_object *o,
                      struct dt_error *e)
{
    char *text = dt_json_text(o), *path = dt_xasprintf("%s/%s", b->dir, name);
    int rc = dt_write_file(path, text, strlen(text), 0666, e);
    free(path);
    free(text);
    json_object_put(o);
    return rc;
}

static int write_start(const struct batch *b, struct dt_error *e)
{
    const char *job = getenv("SLURM_JOB_ID"), *node = getenv("SLURMD_NODENAME");
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "version", json_object_new_int(1));
    json_object_object_add(o, "start", json_object_new_double(b->start));
    json_object_object_add(o, "job", json_object_new_string(job ? job : ""));
    json_object_object_add(o, "node", json_object_new_string(node ? node : ""));
    return write_json(b, "start.json", o, e);
}

/* ---- the script ---- */

static sigset_t our_signals(void)
{
    static const int taken[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
        sigaddset(&set, taken[i]);
    return set;
}

static int start_script(struct batch *b, char **args, struct dt_error *e)
{
    struct dt_strv argv = DT_STRV_INIT;
    posix_spawnattr_t attr;
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    dt_strv_add(&argv, b->script);
    dt_strv_addv(&argv, args);
    int rc = posix_spawn(&b->child, b->script, NULL, &attr, argv.v, b->env.v);
    if (rc == ENOEXEC) {
        struct dt_strv shell = DT_STRV_INIT;
        dt_strv_add(&shell, "/bin/sh");
        dt_strv_addv(&shell, argv.v);
        rc = posix_spawn(&b->child, shell.v[0], NULL, &attr, shell.v, b->env.v);
        dt_strv_free(&shell);
    }
    posix_spawnattr_destroy(&attr);
    dt_strv_free(&argv);
    return rc ? dt_fail(e, "%s: cannot start it: %s", b->script, strerror(rc)) : 0;
}

/* How long this process was stopped, to LOOK / 2, in `took` seconds that ended with a wait, which
 * returned `sig`. It is told only that it goes on, and so it is by scancel, too. */
static double stopped_for(double took, int sig)
{
    sigset_t pending;
    double late = took - LOOK;
    sigpending(&pending);
    bool goes_on = sig == SIGCONT || sigismember(&pending, SIGCONT) == 1;
    return goes_on && late > LOOK / 2.0 ? late + LOOK / 2.0 : 0;
}

/* Waits for the script's end, passing on signals. Returns its status as waitpid() gives it. */
static int wait_for_script(struct batch *b)
{
    sigset_t set = our_signals();
    double look = b->tuner_job || b->tuner ? dt_monotonic() + TUNER_LOOK : INFINITY;
    int status = 0;
    double last = b->begun; /* all time counts: a scheduler of gangs may stop what has just begun */
    for (;;) {
        struct timespec wait = {LOOK, 0};
        int sig = sigtimedwait(&set, NULL, &wait);
        double now = dt_monotonic();
        b->suspended += stopped_for(now - last, sig);
        last = now;
        b->told |= sig == SIGTERM;
        if (waitpid(b->child, &status, WNOHANG) == b->child)
            return status;
        if (sig > 0 && sig != SIGCHLD)
            kill(b->child, sig);
        if (b->tuner && !b->orphan && getppid() != b->tuner) {
            b->orphan = true; /* and nobody is left who would end the rest of the group */
            kill(0, SIGTERM);
            look = dt_monotonic() + TUNER_LOOK;
        }
        if (dt_monotonic() < look)
            continue;
        look = dt_monotonic() + TUNER_LOOK;
        if (!b->orphan && tuner_is_gone(b)) {
            b->orphan = true;
            kill(b->child, SIGTERM);
            look = dt_monotonic() + TUNER_LOOK;
        } else if (b->orphan) {
            kill(b->child, SIGKILL);
        }
    }
}

/* ---- after the script ---- */

static double first_launch(const struct batch *b)
{
    char *path = dt_xasprintf("%s/launch-1.json", b->dir);
    char *text = dt_read_file(path, (size_t)1 << 28, NULL, NULL);
    struct json_object *o = text ? dt_json_parse(text, path, NULL) : NULL;
    double time = o ? dt_json_num(o, "time", 0) : 0;
    json_object_put(o);
    free(text);
    free(path);
    return time;
}

static void add_failed(const struct batch *b, struct json_object *end)
{
    static const char *const copied[] = {"role", "rank", "exit_code", "signal", "node", "lines"};
    struct json_object *failure = dt_first_failure(b->dir, 0);
    bool obeyed = b->told && dt_json_int(failure, "signal", 0) == SIGTERM;
    struct json_object *o = failure && !obeyed ? json_object_new_object() : NULL;
    for (size_t i = 0; o && i < sizeof(copied) / sizeof(*copied); i++)
        json_object_object_add(o, copied[i], json_object_get(dt_json_get(failure, copied[i])));
    if (o)
        json_object_object_add(end, "failed", o);
    json_object_put(failure);
}

static int write_end(const struct batch *b, int code, int sig, struct dt_error *e)
{
    struct json_object *o = json_object_new_object();
    double launch = first_launch(b);
    json_object_object_add(o, "version", json_object_new_int(1));
    json_object_object_add(o, "start", json_object_new_double(b->start));
    json_object_object_add(o, "launch", launch > 0 ? json_object_new_double(launch) : NULL);
    json_object_object_add(o, "end", json_object_new_double(b->end > 0 ? b->end : dt_now()));
    json_object_object_add(o, "exit_code", json_object_new_int(code));
    json_object_object_add(o, "signal", json_object_new_int(sig));
    if (b->suspended > 0)
        json_object_object_add(o, "suspended_s", json_object_new_double(b->suspended));
    if (b->notes)
        json_object_object_add(o, "notes", json_object_get(b->notes));
    if (b->told)
        json_object_object_add(o, "told", json_object_new_boolean(true));
    if (b->tasks_told)
        json_object_object_add(o, "tasks_told", json_object_new_boolean(true));
    if (b->orphan)
        json_object_object_add(o, "orphan", json_object_new_boolean(true));
    if (code) /* a script that went on after a failed launch has dealt with it */
        add_failed(b, o);
    return write_json(b, "end.json", o, e);
}

#define LATE 2 /* seconds in which the end comes to a script whose tasks were told before */
#define LATE_OK 50000000L /* nanoseconds of the same where it ended well, for which all wait */

/* scancel tells tasks and script one after the other: the tasks' end may be that of the script
 * before it is told itself, however the program took it. dt-launch's tasks leave word; those of
 * another srun show by the script's exit code, as shells count. And the script may be told before
 * this process, and end well. */
static void hear_late(struct batch *b, int code)
{
    struct timespec wait = {LATE, 0}, wait_ok = {0, LATE_OK};
    char *word = dt_xasprintf("%s/tasks/told", b->dir);
    struct json_object *failure = dt_first_failure(b->dir, 0);
    bool left = access(word, F_OK) == 0;
    bool ended = code == 128 + SIGTERM || code == 128 + SIGKILL || left;
    /* where a task fails Slurm ends the others */
    b->tasks_told = left && (!failure || dt_json_int(failure, "signal", 0) == SIGTERM);
    sigset_t end;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    if (!b->told && (ended || code == 0))
        b->told = sigtimedwait(&end, NULL, ended ? &wait : &wait_ok) == SIGTERM;
    json_object_put(failure);
    free(word);
}

static int run_script(struct batch *b, char **args, struct dt_error *e)
{
    int rc = 1, sig = 0;
    if (dt_patterns_start(b->plan, b->dir, &b->watcher, e) < 0)
        fprintf(stderr, "dt-launch: %s; no metrics are found in the output\n", e->text);
    if (start_script(b, args, e) < 0) {
        fprintf(stderr, "dt-launch: %s\n", e->text);
        rc = 126;
    } else {
        int status = wait_for_script(b);
        b->end = b->start + dt_monotonic() - b->begun;
        sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        rc = b->orphan ? 1 : sig ? 128 + sig : WEXITSTATUS(status);
        hear_late(b, rc);
    }
    b->notes = dt_patterns_stop(&b->watcher);
    if (write_end(b, rc, sig, e) < 0)
        fprintf(stderr, "dt-launch: %s\n", e->text);
    tell_tuner(b);
    return rc;
}

static int prepare(struct batch *b, const char *carrier, struct dt_error *e)
{
    b->self = dt_self_exe(e);
    if (!b->self || read_carrier(b, carrier, e) < 0)
        return -1;
    remove_old(b->dir);
    if (write_start(b, e) < 0 || make_folders(b, e) < 0)
        return -1;
    make_environment(b);
    return 0;
}

int dt_batch_main(int argc, char **argv)
{
    struct dt_error e = DT_ERROR_INIT;
    struct batch b = {.start = dt_now(), .begun = dt_monotonic()};
    sigset_t set = our_signals();
    int rc = 1;
    if (argc < 1) {
        fputs("dt-launch: --carrier needs the script\n", stderr);
        return 2;
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (prepare(&b, argv[0], &e) == 0) {
        dt_learn_start(b.plan);
        rc = run_script(&b, argv + 1, &e);
    } else
        fprintf(stderr, "dt-launch: %s\n", e.text);
    if (b.orphan && !b.child) /* so that a resumed study does not take it for a failure */
        write_end(&b, rc, 0, &e);
    dt_error_clear(&e);
    json_object_put(b.plan);
    json_object_put(b.notes);
    dt_strv_free(&b.env);
    free(b.dir);
    free(b.self);
    free(b.script);
    return rc;
}
