/* A program that loads the SPANK plugin, as Slurm's do: every context, the callbacks in any order,
 * options, environment, command line and plugstack.conf of any bytes, a prepare that ends in every
 * way, and the n-th allocation and any system call that fails. Where Slurm's daemons run the
 * plugin it does nothing at all; in sbatch, a job of which tuning was asked goes on with exactly
 * the study that prepare wrote, or sbatch ends and has said why.
 *
 * Four bytes of switches come first, see struct host; then strings, each up to a NUL, by their
 * first letter: "v" a variable of the environment, "w" a word of the command line, "k" one of
 * plugstack.conf, "y" what prepare writes (\1 for a NUL; "W" and "Y" are long ones), and in their
 * order the calls: "I" init, "P" post_opt, "O" an option, its number and value. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <slurm/spank.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

enum { CMDLINE_FD = 900, READ_FD, WRITE_FD };
enum { CHILD = 4321 };

/* How prepare ends: an exit code, a signal; it goes on until it is stopped; it cannot be run. */
enum { NO_END = -1, NO_START = -2 };
static const int ends[] = {0, 1, 2, 7, SIGPIPE, SIGKILL, NO_END, NO_START};

static struct host {
    /* switches */
    spank_context_t context;
    const char *program;
    unsigned failing_alloc; /* 0: none */
    int end;                /* of prepare: one of the ends */
    bool held_open;         /* a child of prepare's keeps the pipe */
    bool no_register, no_setenv, no_pipe, no_open, no_read, no_exec;
    unsigned interrupts; /* so many calls are interrupted */
    /* what there is to read */
    struct dt_buf cmdline, study;
    char **env;
    char **conf;
    size_t nenv, nconf;
    /* what the plugin did */
    struct spank_option options[64];
    size_t noptions;
    bool given, ignored, killed, reaped, sigchld_default;
    char *entry; /* the study that the job goes on with */
    size_t cmdline_at, study_at;
    int open_fds, spawned, errors;
    double clock;
    struct block {
        char *p;
        size_t size;
    } * blocks;
    size_t nblocks;
    jmp_buf end_of_process;
} host;

static bool interrupted(void)
{
    if (!host.interrupts)
        return false;
    host.interrupts--;
    errno = EINTR;
    return true;
}

/* ---- memory ---- */

static void *host_calloc(size_t n, size_t size)
{
    if (host.failing_alloc && --host.failing_alloc == 0) {
        errno = ENOMEM;
        return NULL;
    }
    host.blocks = dt_xrealloc(host.blocks, host.nblocks + 1, sizeof(*host.blocks));
    host.blocks[host.nblocks] = (struct block){dt_xcalloc(n, size), n * size};
    return host.blocks[host.nblocks++].p;
}

static void *host_malloc(size_t size)
{
    return host_calloc(1, size);
}

static struct block *block_of(void *p)
{
    size_t i = 0;
    while (i < host.nblocks && host.blocks[i].p != p)
        i++;
    require(i < host.nblocks);
    return &host.blocks[i];
}

static void host_free(void *p)
{
    if (!p)
        return;
    *block_of(p) = host.blocks[host.nblocks - 1];
    host.nblocks--;
    free(p);
}

static void *host_realloc(void *p, size_t size)
{
    char *s = host_malloc(size);
    size_t old = block_of(p)->size;
    if (!s)
        return NULL;
    memcpy(s, p, old < size ? old : size);
    host_free(p);
    return s;
}

static char *host_copy(const char *text)
{
    char *s = host_malloc(strlen(text) + 1);
    return s ? strcpy(s, text) : NULL;
}

__attribute__((format(printf, 2, 3))) static int host_asprintf(char **s, const char *format, ...)
{
    va_list ap;
    char *text;
    va_start(ap, format);
    require(vasprintf(&text, format, ap) >= 0);
    va_end(ap);
    *s = host_copy(text);
    free(text);
    return *s ? 0 : -1;
}

/* ---- the system ---- */

static char *host_realpath(const char *path, char *into)
{
    require(!strcmp(path, "/proc/self/exe") && !into);
    return host.program ? host_copy(host.program) : NULL;
}

static int host_open(const char *path, int flags)
{
    require(!strcmp(path, "/proc/self/cmdline") && flags & O_CLOEXEC);
    if (host.no_open)
        return -1;
    host.open_fds++;
    host.cmdline_at = 0;
    return CMDLINE_FD;
}

static int host_pipe2(int fds[2], int flags)
{
    require(flags == O_CLOEXEC);
    if (host.no_pipe)
        return -1;
    fds[0] = READ_FD;
    fds[1] = WRITE_FD;
    host.open_fds += 2;
    return 0;
}

static int host_close(int fd)
{
    require(fd >= CMDLINE_FD && fd <= WRITE_FD && host.open_fds > 0);
    host.open_fds--;
    return 0;
}

static int host_fcntl(int fd, int what, int flags)
{
    require(fd == WRITE_FD && what == F_SETFD && flags == 0);
    return 0;
}

static int host_clock_gettime(clockid_t clock, struct timespec *t)
{
    require(clock == CLOCK_MONOTONIC);
    t->tv_sec = (time_t)host.clock;
    t->tv_nsec = (long)((host.clock - (double)t->tv_sec) * 1e9);
    return 0;
}

static int host_nanosleep(const struct timespec *t, struct timespec *left)
{
    require(!left);
    host.clock += (double)t->tv_sec + (double)t->tv_nsec / 1e9;
    return 0;
}

static bool at_end(int fd)
{
    return fd == CMDLINE_FD || !(host.held_open || host.end == NO_END);
}

static size_t left_of(int fd)
{
    return fd == CMDLINE_FD ? host.cmdline.len - host.cmdline_at : host.study.len - host.study_at;
}

static int host_poll(struct pollfd *p, nfds_t n, int timeout)
{
    require(n == 1 && p->events == POLLIN && timeout > 0);
    if (interrupted())
        return -1;
    if (left_of(p->fd) || at_end(p->fd))
        return 1;
    host.clock += timeout / 1000.0;
    return 0;
}

static ssize_t host_read(int fd, void *into, size_t room)
{
    size_t *at = fd == CMDLINE_FD ? &host.cmdline_at : &host.study_at;
    const struct dt_buf *from = fd == CMDLINE_FD ? &host.cmdline : &host.study;
    size_t n = left_of(fd) < room ? left_of(fd) : room;
    require(fd == CMDLINE_FD || fd == READ_FD);
    if (interrupted())
        return -1;
    if (host.no_read && *at > 1000) {
        errno = EIO;
        return -1;
    }
    n = n > 1000 ? n - n / 3 : n;
    if (n)
        memcpy(into, from->s + *at, n);
    *at += n;
    return (ssize_t)n;
}

/* The command line arrives whole, and in its order. */
static void check_argv(char *const *argv, const char *third)
{
    require(!strcmp(argv[1], "prepare") && !strncmp(argv[2], "--sbatch=", 9));
    require(!strncmp(argv[3], third, strlen(third)) && !strcmp(argv[4], "--"));
    size_t i = 5;
    for (const char *w = host.cmdline.s; w < host.cmdline.s + host.cmdline.len; w += strlen(w) + 1)
        require(argv[i] && !strcmp(argv[i++], w));
    require(!argv[i]);
}

static int host_spawn(pid_t *pid, const char *tool, char *const *argv)
{
    require(tool[0] == '/' && !host.spawned++ && host.sigchld_default);
    check_argv(argv, "--fd=902");
    if (host.end == NO_START)
        return ENOENT;
    *pid = CHILD;
    return 0;
}

static int status_of(int end)
{
    return end == SIGPIPE || end == SIGKILL ? end : end << 8;
}

static pid_t host_waitpid(pid_t pid, int *status, int flags)
{
    require(pid == CHILD && host.spawned == 1 && !host.reaped);
    if (flags == WNOHANG && host.end == NO_END)
        return 0;
    require(host.end != NO_END || host.killed);
    host.reaped = true;
    *status = host.killed ? SIGKILL : status_of(host.end);
    return pid;
}

static int host_kill(pid_t pid, int signal)
{
    require(pid == CHILD && !host.reaped && signal == SIGKILL);
    host.killed = true;
    return 0;
}

static int host_sigaction(int signal, const struct sigaction *new, struct sigaction *old)
{
    require(signal == SIGCHLD);
    if (old)
        old->sa_handler = host.sigchld_default ? SIG_DFL : SIG_IGN;
    host.sigchld_default = new->sa_handler == SIG_DFL;
    return 0;
}

enum { EXIT = 1, EXEC = 1000 };

_Noreturn static void host_exit(int status)
{
    longjmp(host.end_of_process, EXIT + status);
}

static int host_execv(const char *tool, char *const *argv)
{
    require(tool[0] == '/' && host.reaped);
    check_argv(argv, "--submit");
    if (!host.no_exec)
        longjmp(host.end_of_process, EXEC);
    errno = ENOENT;
    return -1;
}

#define malloc host_malloc
#define calloc host_calloc
#define realloc host_realloc
#define free host_free
#define asprintf host_asprintf
#define realpath host_realpath
#define open host_open
#define pipe2 host_pipe2
#define close host_close
#define fcntl host_fcntl
#define clock_gettime host_clock_gettime
#define nanosleep host_nanosleep
#define poll(p, n, timeout) host_poll(p, n, timeout)
#define read host_read
#define posix_spawn(pid, tool, actions, attributes, argv, env) host_spawn(pid, tool, argv)
#define waitpid host_waitpid
#define kill host_kill
#define sigaction(signal, new, old) host_sigaction(signal, new, old)
#define exit host_exit
#define execv host_execv
#define BINDIR "/usr/bin"
#include "plugin/spank_dt_tune.c"
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef open
#undef close
#undef read

/* ---- Slurm ---- */

spank_context_t spank_context(void)
{
    return host.context;
}

spank_err_t spank_option_register(spank_t sp, struct spank_option *option)
{
    (void)sp;
    if (host.no_register || host.noptions == 64)
        return ESPANK_ERROR;
    host.options[host.noptions++] = *option;
    return ESPANK_SUCCESS;
}

spank_err_t spank_job_control_setenv(spank_t sp, const char *name, const char *value, int over)
{
    (void)sp;
    require(host.context == S_CTX_ALLOCATOR && over == 1);
    if (!strcmp(name, "DT_TUNE_INHERITED")) {
        host.ignored = true;
        return ESPANK_SUCCESS;
    }
    require(!strcmp(name, "DT_TUNE_STUDY") && !host.entry);
    if (host.no_setenv)
        return ESPANK_ENV_NOEXIST;
    host.entry = dt_xstrdup(value);
    return ESPANK_SUCCESS;
}

static void said(const char *format, va_list ap)
{
    char *line = dt_xvasprintf(format, ap);
    require(!strncmp(line, "dt-tune: ", 9) && !strchr(line, '\n'));
    free(line);
}

void slurm_error(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    said(format, ap);
    va_end(ap);
    host.errors++;
}

void slurm_info(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    said(format, ap);
    va_end(ap);
}

/* ---- a run ---- */

static bool in_a_daemon(void)
{
    return host.context != S_CTX_ALLOCATOR && host.context != S_CTX_LOCAL;
}

static bool ours(const char *variable)
{
    static const char *const names[] = {
        "SLURM_SPANK_DT_TUNE_STUDY=", "SLURM_SPANK_DT_TUNE_INHERITED=",
        "_SLURM_SPANK_OPTION_dt_tune_dt_ps=",
        "SLURM_SPANK__SLURM_SPANK_OPTION_dt_tune_dt_max_configs="};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!strncmp(variable, names[i], strlen(names[i])))
            return true;
    }
    return false;
}

static void call_init(void)
{
    require(slurm_spank_init(NULL, (int)host.nconf, host.conf) == 0);
    size_t n = 0;
    for (char **v = environ; *v; v++, n++)
        require(in_a_daemon() || !ours(*v));
    require(!in_a_daemon() || n == host.nenv);
}

static void call_option(const char *s)
{
    if (!s[0] || !host.noptions)
        return;
    const struct spank_option *o = &host.options[(unsigned char)s[0] % host.noptions];
    const char *value = s[1] ? s + 1 : NULL;
    int errors = host.errors, rc = o->cb(o->val, value, in_a_daemon());
    require(!in_a_daemon() || rc == 0);
    if (rc) {
        require(host.errors == errors + 1);
        longjmp(host.end_of_process, EXIT + 1); /* as Slurm does */
    }
    host.given |= !in_a_daemon();
}

static bool is_whole_study(const char *entry)
{
    size_t len = host.study.len;
    len -= len && host.study.s[len - 1] == '\n';
    return strlen(entry) == len && !memcmp(entry, host.study.s, len) && len <= DT_STUDY_LIMIT &&
           !strchr(entry, '\n') && *entry;
}

static void call_post_opt(void)
{
    require(slurm_spank_init_post_opt(NULL, (int)host.nconf, host.conf) == 0);
    require(host.open_fds == 0 && !host.sigchld_default);
    if (host.context != S_CTX_ALLOCATOR || !host.given)
        require(!host.spawned && !host.entry && !host.ignored);
    else if (getenv("DT_TRIAL") && getenv("SLURM_JOB_ID"))
        require(host.ignored && !host.spawned);
    else
        require(host.ignored || (host.entry && host.reaped && !host.killed && host.end == 0 &&
                                 is_whole_study(host.entry)));
}

static void call(const char *s)
{
    switch (s[0]) {
    case 'I':
        call_init();
        break;
    case 'P':
        call_post_opt();
        break;
    case 'O':
        call_option(s + 1);
        break;
    }
}

static void say(const char *s)
{
    size_t len = strlen(s), times = s[0] == 'Y' ? 70 : s[0] == 'W' ? 40 : 1;
    for (size_t i = 0; i < times; i++) {
        switch (s[0]) {
        case 'y':
        case 'Y':
            dt_buf_addn(&host.study, s + 1, len - 1);
            break;
        case 'w':
        case 'W':
            dt_buf_addn(&host.cmdline, s + 1, len - 1);
            break;
        }
    }
    if (s[0] == 'w' || s[0] == 'W')
        dt_buf_addn(&host.cmdline, "", 1);
    if (s[0] == 'v') {
        host.env = dt_xrealloc(host.env, host.nenv + 2, sizeof(char *));
        host.env[host.nenv++] = (char *)s + 1;
        host.env[host.nenv] = NULL;
    }
    if (s[0] == 'k' && !strchr(s, '\n')) {
        host.conf = dt_xrealloc(host.conf, host.nconf + 1, sizeof(char *));
        host.conf[host.nconf++] = (char *)s + 1;
    }
}

static void set_switches(const uint8_t *b)
{
    static const spank_context_t contexts[] = {S_CTX_ALLOCATOR, S_CTX_LOCAL, S_CTX_REMOTE,
                                               S_CTX_SLURMD,    S_CTX_ERROR, S_CTX_JOB_SCRIPT};
    static const char *const programs[] = {"/usr/bin/sbatch",      "/usr/bin/srun",
                                           "/usr/bin/salloc",      "/opt/x/sbatch.real",
                                           "/usr/sbin/slurmstepd", NULL};
    host.context = contexts[b[0] % 6];
    host.program = programs[b[0] / 6 % 6];
    host.failing_alloc = b[1] & 63;
    host.held_open = b[1] & 64;
    host.end = ends[b[2] & 7];
    host.interrupts = b[2] >> 3 & 3;
    host.no_register = b[3] & 1;
    host.no_setenv = b[3] & 2;
    host.no_pipe = b[3] & 4;
    host.no_open = b[3] & 8;
    host.no_read = b[3] & 16;
    host.no_exec = b[3] & 32;
}

/* How the process came to its end, if it did. */
static void check_end_of_process(int how)
{
    require(!in_a_daemon());
    if (how == EXIT)
        require(host.reaped && host.end == 0 && !host.entry && host.errors == 0 &&
                host.study.len <= 1);
    else if (how == EXEC)
        require(host.end == 0 && is_whole_study("apply"));
    else
        require(how == EXIT + 1 &&
                (host.errors || host.end == 1 || host.end == 2 || host.end == SIGPIPE));
}

static void free_host(void)
{
    for (size_t i = 0; i < host.nblocks; i++)
        free(host.blocks[i].p);
    free(host.blocks);
    free(host.entry);
    free(host.env);
    free(host.conf);
    dt_buf_free(&host.cmdline);
    dt_buf_free(&host.study);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char *none[] = {NULL};
    char **own = environ, *text;
    if (size < 4)
        return 0;
    memset(&host, 0, sizeof(host));
    given = 0;
    prepared = false;
    set_switches(data);
    text = text_of(data + 4, size - 4);
    for (char *s = text; s < text + size - 4; s += strlen(s) + 1)
        say(s);
    for (size_t i = 0; i < host.study.len; i++)
        host.study.s[i] = host.study.s[i] == 1 ? '\0' : host.study.s[i];
    environ = host.env ? host.env : none;
    int how = setjmp(host.end_of_process);
    if (how == 0) {
        for (const char *s = text; s < text + size - 4; s += strlen(s) + 1)
            call(s);
        /* what prepare was given is left to the end of sbatch */
        require(host.nblocks <= (host.spawned ? 3 : 0));
    } else {
        check_end_of_process(how);
    }
    environ = own;
    free_host();
    free(text);
    return 0;
}
