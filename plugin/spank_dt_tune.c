/* SPANK plugin dt_tune: gives sbatch the --dt-... options and has the tuning prepared before
 * anything is submitted.
 *
 * All work happens in sbatch, which runs as the user. In slurmd and slurmstepd, which run as root,
 * it only makes the options known. plugstack.conf:  optional spank_dt_tune.so
 * [dt_tune=/path/of/dt-tune] [timeout=SECONDS] */
#include "compat.h"
#include "names.h"
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <slurm/spank.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

SPANK_PLUGIN(dt_tune, 1)

#define PREPARE_SECONDS 60
#define CMDLINE_LIMIT (16u << 20)

extern char **environ;

/* One line to the user and the end of sbatch. It is the user's own process, and nothing has been
 * submitted yet. An error handed back to Slurm instead would add lines of Slurm's that explain
 * nothing, and where plugstack.conf says `optional` the job would be submitted all the same,
 * untuned and at full size. */
#define DIE(...)                                                                                   \
    do {                                                                                           \
        slurm_error("dt-tune: " __VA_ARGS__);                                                      \
        exit(1);                                                                                   \
    } while (0)

static unsigned given; /* bit i: dt_option_table[i] was written in this submission */
static bool prepared;

static bool option_given(const char *name)
{
    for (size_t i = 0; i < DT_OPTION_COUNT; i++) {
        if (!strcmp(dt_option_table[i].name, name))
            return given & 1u << i;
    }
    return false;
}

/* ---- which program we are in ---- */

/* The real path of this process's executable, or NULL. Caller frees. */
static char *own_executable(void)
{
    return realpath("/proc/self/exe", NULL);
}

static bool is_program(const char *name)
{
    char *path = own_executable();
    const char *base = path ? strrchr(path, '/') : NULL;
    /* Some sites put a wrapper in sbatch's place and call the real one sbatch.real or the like. */
    bool is = base && strncmp(base + 1, name, strlen(name)) == 0;

    free(path);
    return is;
}

/* ---- options ---- */

static int on_option(int index, const char *value, int remote)
{
    /* A missing value comes as NULL, "" or "(null)", depending on Slurm's version and on who calls;
     * what the options say, prepare reads from the command line and the script. */
    (void)value;
    if (remote)
        return 0;
    if (!is_program("sbatch")) {
        slurm_error("dt-tune: --%s works with sbatch only; put the job into a script",
                    dt_option_table[index].name);
        if (is_program("srun") || is_program("salloc"))
            exit(1);
        return -1;
    }
    given |= 1u << index;
    return 0;
}

static void register_options(spank_t sp)
{
    for (size_t i = 0; i < DT_OPTION_COUNT; i++) {
        const struct dt_option_entry *e = &dt_option_table[i];
        struct spank_option o = {(char *)e->name,  (char *)e->arginfo,
                                 (char *)e->usage, (int)e->has_arg,
                                 (int)i,           on_option};

        spank_option_register(sp, &o);
    }
}

/* Slurm hands the options of a job on to each sbatch, srun and salloc started in it, through
 * variables. The user did not write them there: forgotten before Slurm reads them, they have no
 * effect and travel no further. */
static void forget_inherited(void)
{
    static const char exported[] = DT_SPANK_EXPORT DT_SPANK_OPTION;

    for (size_t i = 0; i < DT_OPTION_COUNT; i++) {
        char name[128];
        int n = snprintf(name, sizeof(name), "%s%s", exported, dt_option_table[i].name);

        for (int k = (int)sizeof(exported) - 1; k < n && k < (int)sizeof(name); k++) {
            if (!isalnum((unsigned char)name[k]))
                name[k] = '_';
        }
        unsetenv(name);
        unsetenv(name + strlen(DT_SPANK_EXPORT));
    }
    unsetenv(DT_SPANK_EXPORT DT_ENTRY_STUDY);
    unsetenv(DT_SPANK_EXPORT DT_ENTRY_IGNORED);
}

/* ---- reading ---- */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool wait_readable(int fd, double deadline)
{
    struct pollfd p = {fd, POLLIN, 0};
    double left;
    int n;

    while ((left = deadline - now()) > 0) {
        n = poll(&p, 1, (int)(left * 1000) + 1);
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
    }
    return false;
}

/* One read into the rest of *s, which grows. What read() says; -1 with errno where there is no
 * memory, or the deadline comes first. */
static ssize_t read_more(int fd, char **s, size_t *cap, size_t len, double deadline)
{
    if (!wait_readable(fd, deadline)) {
        errno = ETIMEDOUT;
        return -1;
    }
    if (len == *cap) {
        char *more = realloc(*s, (*cap *= 2) + 1);

        if (!more)
            return -1;
        *s = more;
    }
    return read(fd, *s + len, *cap - len);
}

/* All that comes from fd until its end, or what is more than `max` bytes of it; NUL-terminated.
 * NULL with errno where the end cannot be read or does not come before the deadline: half a command
 * line is another job, and half a study none. Caller frees. */
static char *read_all(int fd, size_t max, double deadline, size_t *len)
{
    size_t cap = 4096;
    char *s = malloc(cap + 1);
    ssize_t n = 1;

    for (*len = 0; s && n != 0 && *len <= max; *len += n > 0 ? (size_t)n : 0) {
        n = read_more(fd, &s, &cap, *len, deadline);
        if (n < 0 && errno != EINTR && errno != EAGAIN) {
            free(s);
            s = NULL;
        }
    }
    if (s)
        s[*len] = '\0';
    return s;
}

/* ---- prepare ---- */

/* What plugstack.conf may say after the plugin's name. */
struct settings {
    const char *tool;
    int seconds; /* that prepare may take */
};

/* 0 where it is no number of seconds up to a day. */
static int read_seconds(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);

    return *end || n < 0 || n > 86400 ? 0 : (int)n;
}

static struct settings read_settings(int ac, char **av)
{
    struct settings s = {BINDIR "/dt-tune", PREPARE_SECONDS};

    for (int i = 0; i < ac; i++) {
        if (!strncmp(av[i], "dt_tune=/", 9))
            s.tool = av[i] + 8;
        else if (!strncmp(av[i], "timeout=", 8) && read_seconds(av[i] + 8) > 0)
            s.seconds = read_seconds(av[i] + 8);
        else
            DIE("plugstack.conf: cannot use %s; spank_dt_tune.so takes "
                "dt_tune=/absolute/path/of/dt-tune and timeout=SECONDS",
                av[i]);
    }
    return s;
}

/* dt-tune prepare --sbatch=... --fd=... -- and sbatch's own command line; to submit (out is -1)
 * --submit instead. Never freed: sbatch lives on for a moment only. */
static char **prepare_argv(const char *tool, int out)
{
    char *sbatch = own_executable();
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    size_t len = 0, words = 0, n = 0;
    char *cmdline = fd < 0 ? NULL : read_all(fd, CMDLINE_LIMIT, now() + PREPARE_SECONDS, &len);
    char **argv;

    if (!sbatch || !cmdline || len == 0 || len > CMDLINE_LIMIT)
        DIE("cannot read this command's own arguments in /proc (%s); is /proc mounted?",
            len > CMDLINE_LIMIT ? strerror(E2BIG) : strerror(errno));
    close(fd);
    for (size_t i = 0; i < len; i++)
        words += cmdline[i] == '\0';
    argv = calloc(words + 7, sizeof(*argv));
    if (!argv)
        DIE("out of memory");
    argv[n++] = (char *)tool;
    argv[n++] = "prepare";
    if (asprintf(&argv[n++], "--sbatch=%s", sbatch) < 0 ||
        (out < 0 ? asprintf(&argv[n++], "--submit") : asprintf(&argv[n++], "--fd=%d", out)) < 0)
        DIE("out of memory");
    argv[n++] = "--";
    for (char *p = cmdline; p < cmdline + len; p += strlen(p) + 1)
        argv[n++] = p;
    free(sbatch);
    return argv;
}

/* Waits for the child's end; false when the deadline comes first. */
static bool wait_child(pid_t pid, double deadline, int *status)
{
    const struct timespec pause = {0, 5000000};
    pid_t got;

    while ((got = waitpid(pid, status, WNOHANG)) == 0 && now() < deadline)
        nanosleep(&pause, NULL);
    return got == pid;
}

/* Starts prepare with the pipe's end `out` open in it; everything else, standard input too, stays
 * as it is, so that prepare can read a script from there again. */
static pid_t start_prepare(const char *tool, int out)
{
    char **argv = prepare_argv(tool, out);
    pid_t pid;
    int rc;

    fcntl(out, F_SETFD, 0);
    rc = posix_spawn(&pid, tool, NULL, NULL, argv, environ);
    if (rc)
        DIE("cannot run %s: %s; ask the administrator to install it or to correct dt_tune= in "
            "plugstack.conf",
            tool, strerror(rc));
    free(argv);
    return pid;
}

static void check_end(const char *tool, int status)
{
    /* sbatch --dt-dry-run | head: nobody wants to know more. */
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE)
        exit(1);
    if (WIFSIGNALED(status))
        DIE("%s prepare was ended by signal %d (%s); nothing was submitted", tool, WTERMSIG(status),
            strsignal(WTERMSIG(status)));
    /* With these two, prepare has said itself what is wrong. */
    if (WEXITSTATUS(status) == 1 || WEXITSTATUS(status) == 2)
        exit(1);
    if (WEXITSTATUS(status) != 0)
        DIE("%s prepare failed with exit code %d; nothing was submitted", tool,
            WEXITSTATUS(status));
}

/* Runs prepare and returns the study, one line without its newline; "" after a dry run. Caller
 * frees. */
static char *prepare(const struct settings *s)
{
    double deadline = now() + s->seconds;
    struct sigaction standard = {.sa_handler = SIG_DFL}, old;
    int fds[2], status = 0, error;
    size_t len = 0;
    char *study;
    pid_t pid;
    bool ended;

    if (pipe2(fds, O_CLOEXEC))
        DIE("cannot make a pipe: %s", strerror(errno));
    /* Whoever started sbatch may ignore SIGCHLD, and then a child's exit code is lost. */
    sigaction(SIGCHLD, &standard, &old);
    pid = start_prepare(s->tool, fds[1]);
    close(fds[1]);
    study = read_all(fds[0], DT_STUDY_LIMIT, deadline, &len);
    error = study ? 0 : errno;
    close(fds[0]);
    ended = study && wait_child(pid, deadline, &status);
    if (!ended) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    sigaction(SIGCHLD, &old, NULL);
    if (error && error != ETIMEDOUT)
        DIE("cannot read the study: %s; nothing was submitted", strerror(error));
    /* Before the end is looked at: with nobody reading the rest, prepare dies of a broken pipe. */
    if (len > DT_STUDY_LIMIT)
        DIE("the study is larger than 64 KiB; shorten SPEC or move its candidates to a file");
    if (!study || !ended)
        DIE("%s prepare took more than %d seconds and was stopped; nothing was submitted", s->tool,
            s->seconds);
    check_end(s->tool, status);
    if (len > 0 && study[len - 1] == '\n')
        study[--len] = '\0';
    if (strlen(study) != len || strchr(study, '\n'))
        DIE("%s prepare wrote something other than one line; are plugin and tool of the same "
            "version?",
            s->tool);
    return study;
}

/* An sbatch can submit only the job that it was asked for, and the stored configuration makes it
 * another, perhaps one of two components. So this process becomes the sbatch of that job, whose
 * script holds none of our options: what it prints, how long it waits and how it ends is sbatch's
 * own. Everything was checked already; dt-tune reads it again since a study has no room for a
 * script. */
static void submit_stored(const struct settings *s)
{
    char **argv = prepare_argv(s->tool, -1);

    execv(s->tool, argv);
    DIE("cannot run %s: %s; nothing was submitted", s->tool, strerror(errno));
}

/* ---- SPANK's entry points ---- */

int slurm_spank_init(spank_t sp, int ac, char **av)
{
    spank_context_t context = spank_context();

    (void)ac;
    (void)av;
    register_options(sp);
    if (context == S_CTX_ALLOCATOR || context == S_CTX_LOCAL)
        forget_inherited();
    return 0;
}

/* A trial's own submissions are its business. Its script may be one that asks for tuning when the
 * user submits it, and must not start studies from within a study. */
static int ignore_in_trial(spank_t sp)
{
    if (!prepared)
        slurm_info("dt-tune: the --dt-... options are ignored, for this is submitted by a trial");
    prepared = true;
    spank_job_control_setenv(sp, DT_ENTRY_IGNORED, "1", 1);
    return 0;
}

static void need_tune(void)
{
    if (option_given("dt-tune") || option_given("dt-resume") || option_given("dt-apply"))
        return;
    for (size_t i = 0; i < DT_OPTION_COUNT; i++) {
        if (given & 1u << i)
            DIE("--%s needs --dt-tune", dt_option_table[i].name);
    }
}

/* Called once for each component of the job. One call is enough: prepare reads the whole
 * submission, and refuses one of several components. */
int slurm_spank_init_post_opt(spank_t sp, int ac, char **av)
{
    struct settings settings;
    char *study;

    if (spank_context() != S_CTX_ALLOCATOR || given == 0)
        return 0;
    if (getenv("DT_TRIAL") && getenv("SLURM_JOB_ID"))
        return ignore_in_trial(sp);
    if (prepared)
        return 0;
    need_tune();
    settings = read_settings(ac, av);
    study = prepare(&settings);
    if (!*study)
        exit(0);
    if (!strcmp(study, "apply"))
        submit_stored(&settings);
    if (spank_job_control_setenv(sp, DT_ENTRY_STUDY, study, 1) != ESPANK_SUCCESS)
        DIE("Slurm refused the study as a job control variable; nothing was submitted");
    free(study);
    prepared = true;
    return 0;
}
