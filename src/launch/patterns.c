/* Looks for metrics in what a trial prints. A process of its own beside the user's script: it reads
 * the files that the output goes to, so that nobody waits for it; it takes a tenth of one CPU at
 * most, at a low priority; and one that hangs in a pattern can be ended. */
#include "launch/launch.h"
#include "util/pattern.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_ (64 * 1024)     /* longer lines are passed over */
#define BACKLOG (8 * 1024 * 1024) /* more that waits to be read is skipped but for its end */
#define RECENT (256 * 1024)       /* which is so long */
#define LOOK 0.025                /* seconds of one look */
#define REST 9                    /* times as long it rests */
#define REST_MIN 0.05
#define TICK 1.0      /* seconds between looks where nothing tells of new output */
#define LAST_LOOK 1.0 /* seconds that what the trial printed last may take */
#define END 2.0       /* seconds of its CPU time after which it is ended, */
#define END_MAX 20.0  /* and of any: it may have to wait for a CPU, or for a disk */
#define EACH 20       /* so many lines of a look are reported one by one, then the last */
#define NOTES_MAX (1024 * 1024)

/* A file that output goes to. */
struct source {
    char *path;
    int64_t offset;
    struct dt_buf part; /* the beginning of a line */
    bool midline;       /* the rest of a line is to be passed over */
    bool log;           /* a task's own, which is cut at a limit */
};

struct pattern {
    char *name;
    regex_t re;
    enum dt_pattern_form form; /* PLAIN or PERCENT, as at first; else NONE */
    bool both;                 /* the other form was there, too */
    char *odd;                 /* what was matched first without being a number */
};

struct patterns {
    const char *dir;
    char *metrics; /* path */
    struct pattern *v;
    size_t n;
    struct source *sources;
    size_t n_sources, turn; /* turn: where the last look stopped short */
    int news;               /* tells of new output; -1 where it cannot */
    bool *launches;         /* launches[i]: launch i + 1 is known */
    size_t n_launches;
    int target; /* the pattern whose metric has a target; -1: none, or it was reached */
    double target_value;
    bool target_at_least;
    double *values,
        *held; /* of a line; of those that were not reported one by one. NaN and inf are values: */
    bool *has, *holds;
    size_t told; /* lines in this look */
    struct dt_buf out;
    bool skipped, long_line, log_full;
    char *trouble; /* why values could not be written */
};

/* ---- what is found ---- */

static void add_line(struct patterns *p, const double *values, const bool *has)
{
    struct json_object *o = json_object_new_object();
    for (size_t i = 0; i < p->n; i++)
        if (has[i])
            json_object_object_add(o, p->v[i].name,
                                   isnan(values[i]) ? json_object_new_double(NAN)
                                                    : dt_json_number(values[i]));
    json_object_object_add(o, "time", json_object_new_double(dt_now()));
    json_object_object_add(o, "dt", json_object_new_string("pattern"));
    char *text = dt_json_text(o);
    dt_buf_addf(&p->out, "%s\n", text);
    free(text);
    json_object_put(o);
    p->told++;
}

static void add_held(struct patterns *p)
{
    bool any = false;
    for (size_t i = 0; i < p->n; i++)
        any |= p->holds[i];
    if (any)
        add_line(p, p->held, p->holds);
    memset(p->holds, 0, p->n * sizeof(*p->holds));
}

/* The first line that reaches the target. */
static bool reaches(struct patterns *p)
{
    if (p->target < 0 || !p->has[p->target])
        return false;
    double x = p->values[p->target];
    if (!(p->target_at_least ? x >= p->target_value : x <= p->target_value))
        return false;
    p->target = -1;
    return true;
}

static bool take_match(struct pattern *q, const char *s, size_t n, double *value)
{
    size_t from, to;
    enum dt_pattern_form form = dt_pattern_match(&q->re, s, n, value, &from, &to);
    if (form == DT_PATTERN_ODD && !q->odd)
        q->odd = dt_snippet(s + from, to - from);
    if (form != DT_PATTERN_PLAIN && form != DT_PATTERN_PERCENT)
        return false;
    if (q->form == DT_PATTERN_NONE)
        q->form = form;
    q->both |= form != q->form; /* 93% is no 93 where others are 0.93 */
    return form == q->form;
}

static void take_line(struct patterns *p, const struct source *src, const char *s, size_t n)
{
    bool any = false;
    p->log_full |= src->log && n > 32 && memcmp(s, "[dt-launch: the log ends here", 29) == 0;
    for (size_t i = 0; i < p->n; i++)
        any |= p->has[i] = take_match(&p->v[i], s, n, &p->values[i]);
    if (!any)
        return;
    bool reached = reaches(p);
    if (reached)
        add_held(p);
    if (reached || p->told < EACH) {
        add_line(p, p->values, p->has);
        return;
    }
    for (size_t i = 0; i < p->n; i++)
        if (p->has[i]) {
            p->held[i] = p->values[i];
            p->holds[i] = true;
        }
}

/* ---- the files ---- */

/* Lines end with a newline, or, as progress bars do, with a carriage return. */
static size_t line_length(const char *s, size_t n)
{
    const char *newline = memchr(s, '\n', n);
    size_t len = newline ? (size_t)(newline - s) : n;
    const char *back = memchr(s, '\r', len);
    return back ? (size_t)(back - s) : len;
}

/* Puts a NUL in place of each line's end. */
static void take_text(struct patterns *p, struct source *src, char *s, size_t n)
{
    while (n) {
        size_t len = line_length(s, n), whole = len < n;
        if (!src->midline && src->part.len + len > LINE_MAX_) {
            p->long_line = src->midline = true;
            dt_buf_free(&src->part);
        }
        if (whole)
            s[len] = '\0';
        if (!src->midline && whole && !src->part.len) {
            take_line(p, src, s, len);
        } else if (!src->midline) {
            dt_buf_addn(&src->part, s, len);
            if (whole)
                take_line(p, src, src->part.s, src->part.len);
        }
        if (whole) {
            src->midline = false;
            src->part.len = 0;
        }
        s += len + whole;
        n -= len + whole;
    }
}

static void skip_to(struct patterns *p, struct source *src, int64_t offset)
{
    if (offset <= src->offset)
        return;
    src->offset = offset;
    src->midline = p->skipped = true;
    src->part.len = 0;
}

/* Returns whether all that is there, up to `end`, was read. */
static bool read_source(struct patterns *p, struct source *src, int64_t end, double deadline,
                        bool last)
{
    char chunk[64 * 1024];
    struct stat st;
    ssize_t n = 0;
    int fd = dt_open_regular(src->path);
    if (fd < 0)
        return true;
    if (fstat(fd, &st) < 0)
        st.st_size = src->offset;
    st.st_size = st.st_size < end ? st.st_size : end;
    if (st.st_size < src->offset) { /* somebody has emptied it */
        src->offset = 0;
        src->part.len = 0;
    }
    if (st.st_size - src->offset > BACKLOG)
        skip_to(p, src, st.st_size - RECENT);
    bool late = false;
    while (src->offset < st.st_size && !(late && !last)) {
        if (late)
            skip_to(p, src, st.st_size - RECENT);
        int64_t left = st.st_size - src->offset;
        n = pread(fd, chunk, left < (int64_t)sizeof(chunk) ? (size_t)left : sizeof(chunk),
                  src->offset);
        if (n <= 0)
            break;
        take_text(p, src, chunk, (size_t)n);
        src->offset += n;
        late = dt_monotonic() > deadline;
    }
    close(fd);
    if (last && src->part.len && !src->midline) /* nobody will end this line any more */
        take_line(p, src, src->part.s, src->part.len);
    return n <= 0 || src->offset >= st.st_size;
}

static void add_source(struct patterns *p, char *path, int64_t offset, bool log)
{
    for (size_t i = 0; i < p->n_sources; i++) {
        if (strcmp(p->sources[i].path, path) == 0) {
            free(path);
            return;
        }
    }
    p->sources = dt_xrealloc(p->sources, p->n_sources + 1, sizeof(*p->sources));
    p->sources[p->n_sources++] = (struct source){.path = path, .offset = offset, .log = log};
    if (p->news >= 0)
        inotify_add_watch(p->news, path, IN_MODIFY);
}

/* A launch whose output does not go to the job's: its tasks' own logs show it. */
static void add_logs(struct patterns *p, struct json_object *launch)
{
    struct json_object *logs = dt_json_get(launch, "logs");
    if (!json_object_is_type(logs, json_type_object))
        return;
    json_object_object_foreach(logs, role, sizes)
    {
        for (size_t i = 0; i < dt_json_count(sizes); i++)
            add_source(p, dt_xasprintf("%s/%s-%zu.log", p->dir, role, i),
                       json_object_get_int64(dt_json_at(sizes, i)), true);
    }
}

/* Launches record themselves as dir/launch-N.json, empty at first; several may begin together. */
static void find_launches(struct patterns *p)
{
    for (size_t i = 0;; i++) {
        if (i == p->n_launches) {
            p->launches = dt_xrealloc(p->launches, i + 1, sizeof(*p->launches));
            p->launches[p->n_launches++] = false;
        }
        if (p->launches[i])
            continue;
        char *path = dt_xasprintf("%s/launch-%zu.json", p->dir, i + 1);
        bool there = access(path, F_OK) == 0;
        char *text = there ? dt_read_file(path, (size_t)1 << 28, NULL, NULL) : NULL;
        struct json_object *o = text && *text ? dt_json_parse(text, path, NULL) : NULL;
        add_logs(p, o);
        p->launches[i] = o != NULL;
        json_object_put(o);
        free(text);
        free(path);
        if (!there)
            return;
    }
}

static void write_out(struct patterns *p)
{
    if (!p->out.len)
        return;
    int fd = open(p->metrics, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if ((fd < 0 || write(fd, p->out.s, p->out.len) < 0) && !p->trouble)
        p->trouble = dt_xstrdup(strerror(errno));
    if (fd >= 0)
        close(fd);
    p->out.len = 0;
}

/* Returns whether all that is there was read. */
static bool look(struct patterns *p, bool last)
{
    double deadline = dt_monotonic() + (last ? LAST_LOOK : LOOK);
    struct stat own;
    bool all = true;
    /* the job's own output comes last, as it is now: more of it may tell of what tasks print only
     * once their logs were read */
    int64_t end = !last && stat(p->sources[0].path, &own) == 0 ? own.st_size : INT64_MAX;
    p->told = 0;
    find_launches(p);
    if (last)
        p->turn = 0;
    for (size_t i = 0; i < p->n_sources && (last || all); i++) {
        size_t at = (p->turn + 1 + i) % p->n_sources;
        all = read_source(p, &p->sources[at], at ? INT64_MAX : end, deadline, last);
        if (!all)
            p->turn = (at + p->n_sources - 1) % p->n_sources;
    }
    if (all)
        p->turn = 0;
    add_held(p);
    write_out(p);
    return all;
}

/* ---- the process ---- */

static void take_target(struct patterns *p, struct json_object *target)
{
    const char *metric = dt_json_str(target, "metric", "");
    p->target = -1;
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->v[i].name, metric) == 0)
            p->target = (int)i;
    p->target_at_least = dt_json_get(target, "at_least") != NULL;
    p->target_value = dt_json_num(target, p->target_at_least ? "at_least" : "at_most", NAN);
}

static int prepare(struct patterns *p, struct json_object *plan, const char *dir,
                   struct dt_error *e)
{
    struct json_object *metrics = dt_json_get(plan, "metrics"),
                       *patterns = dt_json_get(metrics, "patterns");
    struct stat st;
    p->dir = dir;
    p->metrics = dt_xasprintf("%s/metrics.jsonl", dir);
    if (!json_object_is_type(patterns, json_type_object))
        return dt_fail(e, "plan.json: \"metrics\" has no \"patterns\"");
    p->v = dt_xcalloc((size_t)json_object_object_length(patterns) + 1, sizeof(*p->v));
    json_object_object_foreach(patterns, name, text)
    {
        if (dt_pattern_compile(json_object_get_string(text), &p->v[p->n].re, e) < 0)
            return -1;
        p->v[p->n++].name = dt_xstrdup(name);
    }
    p->values = dt_xcalloc(p->n, sizeof(*p->values));
    p->held = dt_xcalloc(p->n, sizeof(*p->held));
    p->has = dt_xcalloc(p->n, sizeof(*p->has));
    p->holds = dt_xcalloc(p->n, sizeof(*p->holds));
    take_target(p, dt_json_get(metrics, "target"));
    /* what an earlier run of the trial printed does not count */
    char *output = dt_xasprintf("%s/" DT_LAUNCH_OUTPUT, dir);
    add_source(p, output, stat(output, &st) == 0 ? st.st_size : 0, false);
    return 0;
}

/* Waits for new output; false once the script has ended. */
static bool wait_for_more(int control, int news, double seconds)
{
    char drained[4096];
    struct pollfd p[2] = {{control, POLLIN, 0}, {news, POLLIN, 0}};
    int rc = poll(p, 2, (int)ceil(seconds * 1000));
    while (news >= 0 && read(news, drained, sizeof(drained)) > 0)
        ;
    return rc <= 0 || !p[0].revents;
}

static void watch(struct patterns *p, int control)
{
    p->news = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (p->news >= 0)
        inotify_add_watch(p->news, p->sources[0].path, IN_MODIFY);
    bool more = true, all = false;
    while (more) {
        double begin = dt_monotonic();
        all = look(p, false);
        double rest = fmax(REST_MIN, REST * (dt_monotonic() - begin));
        more = wait_for_more(control, -1, rest);
        if (more && all)
            more = wait_for_more(control, p->news, fmax(TICK - rest, 0));
    }
    look(p, true);
    if (p->news >= 0)
        close(p->news);
}

static void note(struct json_object *notes, const char *fmt, ...) DT_PRINTF(2, 3);
static void note(struct json_object *notes, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = dt_xvasprintf(fmt, ap);
    va_end(ap);
    json_object_array_add(notes, json_object_new_string(text));
    free(text);
}

static struct json_object *notes_of(const struct patterns *p)
{
    struct json_object *notes = json_object_new_array();
    if (p->skipped)
        note(notes,
             "the output came faster than it can be searched for metrics, and some was passed "
             "over; print less, or report by dt-tune metric");
    if (p->log_full)
        note(notes, "a task's output goes to a file of its own and was searched in its log only, "
                    "which is cut at its limit; let it go to the job's output, or print less");
    if (p->long_line)
        note(notes, "lines of output longer than %d KiB were not searched for metrics",
             LINE_MAX_ / 1024);
    if (p->trouble)
        note(notes, "%s: values that patterns found could not be written: %s", p->metrics,
             p->trouble);
    for (size_t i = 0; i < p->n; i++) {
        const struct pattern *q = &p->v[i];
        bool percent = q->form == DT_PATTERN_PERCENT;
        if (q->both)
            note(
                notes,
                "%s is printed both with and without a per cent sign; only those %s it count, like "
                "the first; let its pattern match one form",
                q->name, percent ? "with" : "without");
        if (q->odd)
            note(notes, "the pattern of %s also matched \"%s\", which is no number", q->name,
                 q->odd);
    }
    return notes;
}

static void release(struct patterns *p)
{
    for (size_t i = 0; i < p->n; i++) {
        regfree(&p->v[i].re);
        free(p->v[i].name);
        free(p->v[i].odd);
    }
    for (size_t i = 0; i < p->n_sources; i++) {
        free(p->sources[i].path);
        dt_buf_free(&p->sources[i].part);
    }
    free(p->v);
    free(p->sources);
    free(p->launches);
    free(p->values);
    free(p->held);
    free(p->has);
    free(p->holds);
    free(p->metrics);
    free(p->trouble);
    dt_buf_free(&p->out);
}

static void send_notes(const struct patterns *p, int fd)
{
    struct json_object *notes = notes_of(p);
    char *text = dt_json_text(notes);
    dt_write_all(fd, text, strlen(text)); /* who does not read them does not need them */
    free(text);
    json_object_put(notes);
}

static void child_main(struct patterns *p, int control, int result)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3 && null >= 0; fd++) /* the output is the user's */
        dup2(null, fd);
    setpriority(PRIO_PROCESS, 0, 10);
    signal(SIGPIPE, SIG_IGN); /* all others are blocked: what ends the script does not end this */
    watch(p, control);
    send_notes(p, result);
}

int dt_patterns_start(struct json_object *plan, const char *dir, struct dt_watcher *w,
                      struct dt_error *e)
{
    struct patterns p = {.news = -1};
    int control[2] = {-1, -1}, result[2] = {-1, -1};
    *w = (struct dt_watcher){.control = -1, .result = -1};
    if (!json_object_is_type(dt_json_get(dt_json_get(plan, "metrics"), "patterns"),
                             json_type_object))
        return 0;
    int rc = prepare(&p, plan, dir, e);
    if (rc == 0 && (pipe2(control, O_CLOEXEC) < 0 || pipe2(result, O_CLOEXEC) < 0))
        rc = dt_fail(e, "pipe: %s", strerror(errno));
    if (rc == 0 && (w->pid = fork()) < 0)
        rc = dt_fail(e, "fork: %s", strerror(errno));
    if (rc == 0 && w->pid == 0) {
        close(control[1]);
        close(result[0]);
        child_main(&p, control[0], result[1]);
        release(&p);
        _exit(0);
    }
    release(&p);
    if (control[0] >= 0)
        close(control[0]);
    if (result[1] >= 0)
        close(result[1]);
    w->control = control[1];
    w->result = result[0];
    return rc;
}

static double cpu_time(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    bool known = clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &t) == 0;
    return known ? (double)t.tv_sec + (double)t.tv_nsec / 1e9 : 0;
}

struct json_object *dt_patterns_stop(struct dt_watcher *w)
{
    struct dt_buf text = DT_BUF_INIT;
    double until = dt_monotonic() + END_MAX, spent = w->pid > 0 ? cpu_time(w->pid) : 0;
    char chunk[4096];
    ssize_t n = 1;
    if (w->control >= 0)
        close(w->control);
    while (w->pid > 0 && n > 0 && text.len < NOTES_MAX) {
        struct pollfd p = {w->result, POLLIN, 0};
        double left = fmin(until - dt_monotonic(), spent + END - cpu_time(w->pid));
        int rc = poll(&p, 1, left > 0 ? (int)ceil(fmin(left, TICK) * 1000) : 0);
        if ((rc < 0 && errno == EINTR) || (rc == 0 && left > 0))
            continue;
        n = rc > 0 ? read(w->result, chunk, sizeof(chunk)) : 0;
        if (n > 0)
            dt_buf_addn(&text, chunk, (size_t)n);
    }
    if (w->result >= 0)
        close(w->result);
    struct json_object *notes = text.s ? dt_json_parse(text.s, "notes", NULL) : NULL;
    if (w->pid > 0 && !notes) {
        notes = json_object_new_array();
        note(notes, "the search for metrics in the output took too long and was ended; make the "
                    "patterns simpler, or print less");
    }
    if (w->pid > 0) {
        kill(w->pid, SIGKILL);
        while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    dt_buf_free(&text);
    *w = (struct dt_watcher){.control = -1, .result = -1};
    return notes;
}
