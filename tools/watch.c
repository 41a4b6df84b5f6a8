/* A study as it goes on: on a terminal one screen that is kept up to date, else the lines of the
 * job's output. All is read from the journal; nothing is asked of Slurm, but once where the folder
 * is not here. */
#include "backend/backend.h"
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

static const char usage_text[] =
    "usage: dt-tune watch JOBID|DIR\n"
    "A study as it goes on, until it ends. On a terminal: q leaves, and the study goes on.\n";

#define LOOK_MS 1000
/* Records that are read before the screen is drawn again: of a long study in some looks. */
#define CHUNK ((size_t)16 << 20)

struct watch {
    const char *path; /* of the journal */
    int fd;           /* -1: it is not there yet */
    off_t at;         /* what is before was read */
    struct loaded l;
    bool over;   /* the last record ended the study */
    bool screen; /* on a terminal */
    bool behind; /* there is more to read at once */
};

/* ---- reading ---- */

static void tell(const struct watch *w, struct json_object *record)
{
    struct dt_event ev;
    if (dt_event_from_json(record, &ev, NULL) < 0)
        return;
    dt_report_event(stdout, w->l.study, &ev);
    dt_event_free(&ev);
}

static int take_line(struct watch *w, const char *line, size_t len, const char *dir,
                     struct dt_error *e)
{
    char *text = dt_xstrndup(line, len);
    struct json_object *record = dt_json_parse(text, "record", e);
    bool first = !w->l.setup;
    int rc = record ? loaded_take(&w->l, record, e) : -1;
    free(text);
    if (rc < 0)
        dt_fail_at(e, "%s: the journal is damaged", w->path);
    else if (!w->screen && first)
        dt_report_intro(stdout, w->l.setup, w->l.study, w->l.name, dir);
    else if (!w->screen)
        tell(w, record);
    w->over = strcmp(dt_json_str(record, "event", ""), "finished") == 0;
    json_object_put(record);
    return rc;
}

/* Takes what was added: whole lines, for the tuner may be writing one. */
static int follow(struct watch *w, const char *dir, struct dt_error *e)
{
    if (w->fd < 0 && (w->fd = open(w->path, O_RDONLY | O_CLOEXEC)) < 0)
        return errno == ENOENT ? 0 : dt_fail(e, "%s: %s", w->path, strerror(errno));
    char *text = dt_xcalloc(CHUNK, 1);
    ssize_t n = pread(w->fd, text, CHUNK, w->at);
    int rc = n < 0 ? dt_fail(e, "%s: %s", w->path, strerror(errno)) : 0;
    const char *s = text, *end;
    while (rc == 0 && (end = memchr(s, '\n', (size_t)n - (size_t)(s - text)))) {
        rc = take_line(w, s, (size_t)(end - s), dir, e);
        s = end + 1;
    }
    w->behind = n == (ssize_t)CHUNK && s > text;
    w->at += s - text;
    free(text);
    return rc;
}

/* ---- the terminal ---- */

struct terminal {
    struct termios before;
    bool keys; /* standard input is a terminal, too */
};

static void put(const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
}

/* A second screen, so that what was on the first is there again afterwards. */
static void enter(struct terminal *t)
{
    t->keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &t->before) == 0;
    if (t->keys) {
        struct termios now = t->before;
        now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        now.c_cc[VSUSP] = _POSIX_VDISABLE; /* it would leave the terminal as we have it */
        tcsetattr(STDIN_FILENO, TCSANOW, &now);
    }
    put("\033[?1049h\033[?25l");
}

static void leave(const struct terminal *t)
{
    put("\033[?25h\033[?1049l");
    if (t->keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &t->before);
}

static struct dt_screen size_of_terminal(void)
{
    struct winsize size = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;
    return (struct dt_screen){dt_now(), known ? size.ws_col : 80, known ? size.ws_row : 24};
}

static void draw(const struct watch *w, const char *dir)
{
    struct dt_screen at = size_of_terminal();
    struct dt_strv lines = DT_STRV_INIT;
    if (w->l.study)
        dt_report_screen(w->l.study, w->l.name, w->l.setup->job.name, at, &lines);
    else
        dt_strv_addf(&lines, "%.*s", (int)at.columns,
                     "The study has not begun. Its folder will be");
    if (!w->l.study)
        dt_strv_addf(&lines, "%.*s", (int)at.columns, dir);
    dt_strv_add(&lines, "");
    dt_strv_addf(&lines, "%.*s", (int)at.columns, "q: leave; the study goes on");
    fputs("\033[H", stdout);
    for (size_t i = 0; i < lines.n && i < at.rows; i++) {
        bool head =
            i == 0 || dt_starts_with(lines.v[i], "TRIAL ") || dt_starts_with(lines.v[i], "best: ");
        printf("%s%s%s%s\033[K", i ? "\r\n" : "", head ? "\033[1m" : "", lines.v[i],
               head ? "\033[0m" : "");
    }
    put("\033[J");
    dt_strv_free(&lines);
}

/* ---- waiting ---- */

/* The signals that end a program, and that of a new size, as a descriptor: there is time for the
 * terminal. */
static int catch_signals(struct dt_error *e)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC);
    return fd < 0 ? dt_fail(e, "watch: signalfd: %s", strerror(errno)) : fd;
}

/* Whether to leave: q, the end of the keys, or a signal. */
static bool wait_look(int signals, bool keys, bool at_once)
{
    struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
                           {.fd = keys ? STDIN_FILENO : -1, .events = POLLIN}};
    struct signalfd_siginfo info;
    char key;
    if (poll(fds, 2, at_once ? 0 : LOOK_MS) <= 0)
        return false;
    if (fds[0].revents && read(signals, &info, sizeof(info)) == sizeof(info))
        return info.ssi_signo != SIGWINCH;
    return fds[1].revents && (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q');
}

/* Until it is over or somebody leaves; 1: left. */
static int look_on(struct watch *w, const char *dir, struct dt_error *e)
{
    struct terminal t = {0};
    int signals = catch_signals(e), rc = signals < 0 ? -1 : 0;
    if (w->screen)
        enter(&t);
    while (rc == 0) {
        rc = follow(w, dir, e);
        if (rc < 0 || (w->over && !w->behind))
            break;
        if (w->screen && !w->behind)
            draw(w, dir);
        rc = wait_look(signals, t.keys, w->behind);
    }
    if (w->screen)
        leave(&t);
    if (signals >= 0)
        close(signals);
    return rc;
}

/* ---- the study ---- */

/* The folder of a study that is not here: where its tuning job was submitted. */
static char *ask_slurm(const char *what, struct dt_error *e)
{
    int64_t id;
    if (dt_parse_int64(what, &id) < 0 || id <= 0 || id > UINT32_MAX)
        return NULL;
    slurm_init(NULL);
    char *where = dt_slurm_work_dir((uint32_t)id),
         *dir = where ? dt_xasprintf("%s/dt-tune-%s", where, what) : NULL;
    if (dir)
        dt_error_clear(e);
    free(where);
    return dir;
}

static void print_end(const struct watch *w, const char *dir)
{
    char *best = dt_xasprintf("%s/best.sh", dir),
         *command = command_text(best, w->l.setup->submission);
    if (w->screen) {
        dt_report_intro(stdout, w->l.setup, w->l.study, w->l.name, dir);
        dt_report_trials(stdout, w->l.study);
    }
    dt_report_final(stdout, w->l.study, access(best, R_OK) == 0 ? command : NULL);
    free(best);
    free(command);
}

static bool is_screen(void)
{
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

static int watch(const char *dir, struct dt_error *e)
{
    char *path = dt_xasprintf("%s/journal.jsonl", dir);
    struct watch w = {.path = path, .fd = -1, .screen = is_screen()};
    int rc = look_on(&w, dir, e);
    if (rc == 0) {
        print_end(&w, dir);
        rc = w.l.study->complete && dt_study_best(w.l.study) ? EXIT_DONE : EXIT_WORK_FAILED;
    } else if (rc > 0) {
        rc = EXIT_DONE;
    }
    if (w.fd >= 0)
        close(w.fd);
    loaded_free(&w.l);
    free(path);
    return rc;
}

int cmd_watch(int argc, char **argv)
{
    struct dt_error e = DT_ERROR_INIT;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage_text, stdout);
        return EXIT_DONE;
    }
    if (argc != 2 || argv[1][0] == '-') {
        fputs(usage_text, stderr);
        return EXIT_USAGE;
    }
    char *dir = find_study("watch", argv[1], &e);
    if (!dir)
        dir = ask_slurm(argv[1], &e);
    if (!dir)
        return fail_with(&e, EXIT_USAGE);
    int rc = watch(dir, &e);
    free(dir);
    return rc < 0 ? fail_with(&e, EXIT_WORK_FAILED) : rc;
}
