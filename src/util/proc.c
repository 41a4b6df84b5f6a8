#include "util/util.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define OUTPUT_MAX (1024 * 1024)
#define CHUNK 4096
#define LEFT_BEHIND 0.25 /* seconds that output may still come from what was left behind */
#define LOOK_MIN 0.001   /* seconds between looks whether it has ended, at first and after output */
#define LOOK_MAX 0.1

static double clock_seconds(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

double dt_now(void)
{
    return clock_seconds(CLOCK_REALTIME);
}

double dt_monotonic(void)
{
    return clock_seconds(CLOCK_MONOTONIC);
}

static int spawn(char *const *argv, char *const *env, int out, int err, pid_t *pid)
{
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t attr;
    sigset_t block;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&fa, out, 1);
    posix_spawn_file_actions_adddup2(&fa, err, 2);
    posix_spawnattr_init(&attr);
    sigemptyset(&block);
    sigaddset(&block, SIGTERM);
    sigaddset(&block, SIGINT);
    sigaddset(&block, SIGHUP);
    sigaddset(&block, SIGUSR1);
    posix_spawnattr_setsigmask(&attr, &block);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    int rc = posix_spawnp(pid, argv[0], &fa, &attr, argv, env);
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&attr);
    return rc;
}

/* Takes what a pipe has; false at its end. */
static bool take_output(int fd, struct dt_buf *buf)
{
    char chunk[CHUNK];
    ssize_t n = read(fd, chunk, sizeof(chunk));
    size_t room = OUTPUT_MAX - buf->len;
    if (n > 0)
        dt_buf_addn(buf, chunk, (size_t)n < room ? (size_t)n : room);
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* What a process that has ended had to say is all there, however late we come to read it. */
static void take_last(int fd, struct dt_buf *buf)
{
    int n;
    if (ioctl(fd, FIONREAD, &n) < 0)
        return;
    for (; n > 0; n -= CHUNK)
        take_output(fd, buf);
}

/* Reads both pipes to the end of the process, and a moment longer where something that it has left
 * behind still holds them. -1: it has not ended at the deadline (0: there is none). */
static int drain(pid_t pid, const int fd[2], struct dt_buf buf[2], int *status, double deadline)
{
    bool open_[2] = {true, true}, ended = false;
    double until = deadline > 0 ? deadline : INFINITY, pause = LOOK_MIN;
    while (open_[0] || open_[1] || !ended) {
        struct pollfd p[2] = {{open_[0] ? fd[0] : -1, POLLIN, 0},
                              {open_[1] ? fd[1] : -1, POLLIN, 0}};
        pid_t gone = ended ? 0 : waitpid(pid, status, WNOHANG);
        if (gone == pid || (gone < 0 && errno == ECHILD)) { /* where SIGCHLD is ignored */
            ended = true;
            for (int i = 0; i < 2; i++)
                take_last(fd[i], &buf[i]);
            until = dt_monotonic() + LEFT_BEHIND;
        }
        double left = until - dt_monotonic();
        if (left <= 0)
            return ended ? 0 : -1;
        if (poll(p, 2, (int)ceil(1000 * fmin(left, pause))) < 0 && errno != EINTR)
            return -1;
        pause = fmin(2 * pause, LOOK_MAX);
        for (int i = 0; i < 2; i++) {
            if (!open_[i] || !p[i].revents)
                continue;
            open_[i] = take_output(fd[i], &buf[i]);
            pause = LOOK_MIN;
        }
    }
    return 0;
}

int dt_proc_run(char *const *argv, char *const *env, double timeout, struct dt_proc_result *r,
                struct dt_error *e)
{
    int out[2], err[2];
    pid_t pid;
    struct dt_buf buf[2] = {DT_BUF_INIT, DT_BUF_INIT};
    *r = (struct dt_proc_result){0};
    if (pipe2(out, O_CLOEXEC) < 0)
        return dt_fail(e, "%s: pipe: %s", argv[0], strerror(errno));
    if (pipe2(err, O_CLOEXEC) < 0) {
        dt_fail(e, "%s: pipe: %s", argv[0], strerror(errno));
        close(out[0]);
        close(out[1]);
        return -1;
    }
    int rc = spawn(argv, env ? env : environ, out[1], err[1], &pid);
    close(out[1]);
    close(err[1]);
    bool late = false;
    if (rc == 0) {
        late = drain(pid, (int[]){out[0], err[0]}, buf, &r->status,
                     timeout > 0 ? dt_monotonic() + timeout : 0) < 0;
        if (late)
            kill(pid, SIGKILL);
        while (late && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close(out[0]);
    close(err[0]);
    r->out = dt_buf_take(&buf[0]);
    r->err = dt_buf_take(&buf[1]);
    if (rc == 0 && !late)
        return 0;
    if (late)
        dt_fail(e, "%s did not end within %.0f s and was killed", argv[0], timeout);
    else
        dt_fail(e, "cannot start %s: %s", argv[0], strerror(rc));
    dt_proc_result_free(r);
    return -1;
}

void dt_proc_result_free(struct dt_proc_result *r)
{
    free(r->out);
    free(r->err);
    *r = (struct dt_proc_result){0};
}

void dt_scrubbed_environ(struct dt_strv *out)
{
    static const char *const dropped[] = {
        "SLURM_",
        "SRUN_",
        "SBATCH_",
        "SALLOC_",
        "SPANK_",
        "_SLURM_",
        "PMI",
        "DT_TRIAL",
        "DT_PLAN",
        "DT_SHARE",
        "DT_SLURM_NTASKS=",
        "DT_PARAM",
        "DT_ROLE",
        "DT_RANK=",
        "DT_PS_HOSTS=",
        "DT_WORKER_HOSTS=",
        "DT_CHECKPOINT_DIR=",
        "DT_RESTARTS=",
        "DT_METRICS_FILE=",
        "DT_CPU_LIST=",
        "DT_TUNE_",
    };
    for (char **p = environ; *p; p++) {
        bool drop = false;
        for (size_t i = 0; i < sizeof(dropped) / sizeof(*dropped); i++)
            drop |= dt_starts_with(*p, dropped[i]);
        if (!drop || dt_starts_with(*p, "SLURM_CONF="))
            dt_strv_add(out, *p);
    }
}
