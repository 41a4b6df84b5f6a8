#include "world.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the points of a tuner's life ---- */

static struct fate fate;
static long points, writes;
static bool full;

static void point(void)
{
    if (++points == fate.kill_at)
        kill(getpid(), SIGKILL);
}

ssize_t __real_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len);
int __real_fsync(int fd);
int __wrap_fsync(int fd);

/* Only records end like this, and only the journal's are written by write(2). */
static bool is_record(const char *data, size_t len)
{
    return len > 2 && data[len - 1] == '\n' && data[len - 2] == '}';
}

ssize_t __wrap_write(int fd, const void *data, size_t len)
{
    if (!is_record(data, len))
        return full ? (errno = fate.full_by, -1) : __real_write(fd, data, len);
    point();
    if (full || ++writes == fate.full_at) {
        bool half = !full;
        full = true;
        return half ? __real_write(fd, data, len / 2) : (errno = fate.full_by, -1);
    }
    if (points + 1 == fate.kill_at)
        __real_write(fd, data, len / 2);
    point();
    ssize_t n = __real_write(fd, data, len);
    point();
    return n;
}

int __wrap_fsync(int fd)
{
    point();
    int rc = __real_fsync(fd);
    point();
    return rc;
}

/* ---- the cluster ---- */

struct job {
    int trial, run;
    uint32_t id;
    struct dt_event *events; /* in order: STARTED, METRIC, ENDED */
    size_t n;
    int submissions;
};

struct world {
    struct dt_spec *spec;
    struct dt_space *space;
    struct dt_backend *replay;
    char *journal;
    struct job *jobs;
    size_t n;
    double clock;
    char *words;
    long points;
};

#define MESSAGE_MAX ((size_t)1 << 17)

static void die(const struct dt_error *e)
{
    fprintf(stderr, "%s\n", e->text);
    exit(1);
}

struct world *world_new(const struct setting *s, const char *table, const char *journal)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_strv none = DT_STRV_INIT;
    struct world *w = dt_xcalloc(1, sizeof(*w));
    size_t n;
    struct json_object *json = dt_json_parse(s->sections, s->name, &e);
    w->spec = json ? dt_spec_parse(json, s->sections, s->name, &e) : NULL;
    json_object_put(json);
    if (!w->spec || dt_replay_adopt(w->spec, &e) < 0)
        die(&e);
    double *found = dt_replay_points(w->spec, w->spec->params, w->spec->nparams, table, &n, &e);
    if (found)
        w->space = dt_space_new(w->spec->params, w->spec->nparams, &none, NULL, 0, NULL, NULL,
                                found, n, &e);
    free(found);
    if (w->space)
        w->replay = dt_backend_replay(w->spec, w->space, table, 0, 0, &e);
    if (!w->replay)
        die(&e);
    w->journal = dt_xstrdup(journal);
    return w;
}

void world_free(struct world *w)
{
    for (size_t i = 0; i < w->n; i++) {
        for (size_t k = 0; k < w->jobs[i].n; k++)
            dt_event_free(&w->jobs[i].events[k]);
        free(w->jobs[i].events);
    }
    free(w->jobs);
    dt_backend_free(w->replay);
    dt_space_free(w->space);
    dt_spec_free(w->spec);
    free(w->journal);
    free(w->words);
    free(w);
}

static struct job *job_of(struct world *w, int trial, int run)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->jobs[i].trial == trial && w->jobs[i].run == run)
            return &w->jobs[i];
    return NULL;
}

static bool is_over(const struct job *job)
{
    return job->n && job->events[job->n - 1].kind == DT_EVENT_ENDED;
}

static void keep(struct world *w, const struct dt_event *ev)
{
    struct job *job = job_of(w, ev->trial, ev->run);
    job->events = dt_xrealloc(job->events, job->n + 1, sizeof(*job->events));
    job->events[job->n++] = *ev;
}

static struct json_object *told(const struct world *w, const struct dt_event *ev)
{
    struct dt_event copy = *ev;
    copy.t += w->clock;
    return dt_event_to_json(&copy);
}

static struct dt_trial trial_of(struct json_object *request)
{
    return (struct dt_trial){.id = (int)dt_json_int(request, "trial", 0),
                             .run = (int)dt_json_int(request, "run", 0),
                             .job = (uint32_t)dt_json_int(request, "job", 0),
                             .t_started = dt_json_num(request, "started", NAN)};
}

static struct json_object *do_submit(struct world *w, struct json_object *request)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_event ev;
    struct dt_trial t = trial_of(request);
    struct job *job = job_of(w, t.id, t.run);
    if (job) { /* a fault, which is told at the end */
        job->submissions++;
        ev = (struct dt_event)DT_EVENT(DT_EVENT_SUBMITTED);
        ev.t = w->replay->ops->now(w->replay->b);
        ev.trial = t.id;
        ev.run = t.run;
        ev.job = job->id;
        return told(w, &ev);
    }
    w->jobs = dt_xrealloc(w->jobs, w->n + 1, sizeof(*w->jobs));
    job = &w->jobs[w->n++];
    *job = (struct job){.trial = t.id, .run = t.run, .submissions = 1};
    double *x = dt_xcalloc(w->space->n, sizeof(*x));
    if (dt_config_from_json(w->space, dt_json_get(request, "config"), x, &e) < 0)
        die(&e);
    t.x = x;
    if (w->replay->ops->submit(w->replay->b, NULL, &t, &ev, &e) < 0)
        die(&e);
    job->id = ev.job;
    struct json_object *answer = told(w, &ev);
    dt_event_free(&ev);
    free(x);
    return answer;
}

/* What a tuner has not heard, or has forgotten, of the runs that it takes for live. */
static struct json_object *news(struct world *w, struct json_object *live)
{
    struct json_object *answer = json_object_new_array();
    for (size_t i = 0; i < dt_json_count(live); i++) {
        struct json_object *o = dt_json_at(live, i);
        struct dt_trial t = trial_of(o);
        const struct job *job = job_of(w, t.id, t.run);
        for (size_t k = (size_t)dt_json_int(o, "heard", 0); job && k < job->n; k++)
            json_object_array_add(answer, told(w, &job->events[k]));
    }
    return answer;
}

static struct json_object *do_wait(struct world *w, struct json_object *request)
{
    struct dt_error e = DT_ERROR_INIT;
    struct json_object *live = dt_json_get(request, "live"), *answer = news(w, live);
    struct dt_event *events = NULL;
    size_t n = 0;
    double until = dt_json_num(request, "until", INFINITY) - w->clock;
    if (dt_json_count(answer))
        return answer;
    if (w->replay->ops->wait(w->replay->b, NULL, until, &events, &n, &e) < 0)
        die(&e);
    for (size_t i = 0; i < n; i++)
        keep(w, &events[i]);
    free(events);
    json_object_put(answer);
    return news(w, live);
}

static struct json_object *do_cancel(struct world *w, struct json_object *request)
{
    struct dt_trial t = trial_of(request);
    const struct job *job = job_of(w, t.id, t.run);
    t.t_started = job && job->n ? job->events[0].t : NAN; /* by the cluster's own clock */
    w->replay->ops->cancel(w->replay->b, &t, NULL);
    return json_object_new_object();
}

static struct json_object *answer_to(struct world *w, struct json_object *request)
{
    const char *op = dt_json_str(request, "op", "");
    struct json_object *answer = json_object_new_object();
    if (strcmp(op, "now") == 0) {
        json_object_object_add(answer, "now",
                               dt_json_number(w->replay->ops->now(w->replay->b) + w->clock));
        return answer;
    }
    if (strcmp(op, "find") == 0) {
        struct dt_trial t = trial_of(request);
        const struct job *job = job_of(w, t.id, t.run);
        json_object_object_add(answer, "job", json_object_new_int64(job ? job->id : 0));
        return answer;
    }
    if (strcmp(op, "end") == 0) {
        free(w->words);
        w->words = dt_xstrdup(dt_json_str(request, "words", ""));
        w->points = (long)dt_json_int(request, "points", 0);
        return answer;
    }
    json_object_put(answer);
    return strcmp(op, "submit") == 0 ? do_submit(w, request)
           : strcmp(op, "wait") == 0 ? do_wait(w, request)
                                     : do_cancel(w, request);
}

char *world_complaint(const struct world *w)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct job *job = &w->jobs[i];
        if (job->submissions != 1)
            return dt_xasprintf("run %d of trial %d was submitted %d times", job->run, job->trial,
                                job->submissions);
        if (!is_over(job))
            return dt_xasprintf("run %d of trial %d is still there", job->run, job->trial);
    }
    return NULL;
}

/* ---- a tuner ---- */

struct stub {
    int fd;
};

static struct json_object *ask(int fd, struct json_object *request)
{
    struct dt_error e = DT_ERROR_INIT;
    char *text = dt_json_text(request), *answer = dt_xcalloc(1, MESSAGE_MAX);
    ssize_t n = send(fd, text, strlen(text), MSG_NOSIGNAL);
    if (n > 0)
        n = recv(fd, answer, MESSAGE_MAX - 1, 0);
    if (n <= 0)
        _exit(9); /* the campaign itself is over */
    answer[n] = '\0';
    struct json_object *o = dt_json_parse(answer, "answer", &e);
    if (!o)
        die(&e);
    free(answer);
    free(text);
    json_object_put(request);
    return o;
}

static struct json_object *request_of(const char *op, const struct dt_trial *t)
{
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "op", json_object_new_string(op));
    if (!t)
        return o;
    json_object_object_add(o, "trial", json_object_new_int(t->id));
    json_object_object_add(o, "run", json_object_new_int(t->run));
    json_object_object_add(o, "job", json_object_new_int64(t->job));
    if (isfinite(t->t_started))
        json_object_object_add(o, "started", dt_json_number(t->t_started));
    return o;
}

static double stub_now(void *arg)
{
    const struct stub *b = arg;
    struct json_object *o = ask(b->fd, request_of("now", NULL));
    double t = dt_json_num(o, "now", NAN);
    json_object_put(o);
    return t;
}

static int stub_submit(void *arg, const struct dt_study *s, const struct dt_trial *t,
                       struct dt_event *ev, struct dt_error *e)
{
    const struct stub *b = arg;
    struct json_object *request = request_of("submit", t);
    json_object_object_add(request, "config", dt_config_to_json(s->space, t->x));
    point();
    struct json_object *o = ask(b->fd, request);
    point();
    int rc = dt_event_from_json(o, ev, e);
    json_object_put(o);
    return rc;
}

static int stub_cancel(void *arg, const struct dt_trial *t, struct dt_error *e)
{
    const struct stub *b = arg;
    (void)e;
    point();
    json_object_put(ask(b->fd, request_of("cancel", t)));
    point();
    return 0;
}

static struct json_object *live_of(const struct dt_study *s)
{
    struct json_object *live = json_object_new_array();
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_trial *t = &s->trials[i];
        int64_t heard = t->state == DT_TRIAL_STARTED;
        if (!dt_trial_live(t))
            continue;
        for (size_t k = 0; k < t->nmetrics; k++)
            heard += t->metrics[k].count;
        struct json_object *o = request_of("live", t);
        json_object_object_add(o, "heard", json_object_new_int64(heard));
        json_object_array_add(live, o);
    }
    return live;
}

static int stub_wait(void *arg, const struct dt_study *s, double until, struct dt_event **events,
                     size_t *n, struct dt_error *e)
{
    const struct stub *b = arg;
    struct json_object *request = request_of("wait", NULL);
    if (isfinite(until))
        json_object_object_add(request, "until", dt_json_number(until));
    json_object_object_add(request, "live", live_of(s));
    point();
    struct json_object *o = ask(b->fd, request);
    point();
    int rc = 0;
    for (size_t i = 0; i < dt_json_count(o) && rc == 0; i++) {
        *events = dt_xrealloc(*events, *n + 1, sizeof(**events));
        rc = dt_event_from_json(dt_json_at(o, i), &(*events)[*n], e);
        *n += rc == 0;
    }
    json_object_put(o);
    return rc;
}

static int stub_find(void *arg, const struct dt_trial *t, uint32_t *job, struct dt_error *e)
{
    const struct stub *b = arg;
    (void)e;
    struct json_object *o = ask(b->fd, request_of("find", t));
    *job = (uint32_t)dt_json_int(o, "job", 0);
    json_object_put(o);
    return *job != 0;
}

static int stub_sweep(void *arg, struct dt_error *e)
{
    (void)arg;
    (void)e;
    return 0;
}

static void stub_destroy(void *arg)
{
    (void)arg;
}

static const struct dt_backend_ops ops = {
    .name = "campaign",
    .now = stub_now,
    .submit = stub_submit,
    .cancel = stub_cancel,
    .wait = stub_wait,
    .find = stub_find,
    .sweep = stub_sweep,
    .destroy = stub_destroy,
};

/* All that matters of a study in one text, so that two can be compared. */
static char *sum_up(const struct dt_study *s)
{
    struct dt_buf b = DT_BUF_INIT;
    const struct dt_trial *best = dt_study_best(s);
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_trial *t = &s->trials[i];
        struct json_object *config = dt_config_to_json(s->space, t->x);
        char *text = dt_json_text(config);
        dt_buf_addf(&b, "%d.%d %s %s %s %.17g again %d (%s)\n", t->id, t->run, text,
                    dt_status_names[t->status], dt_cause_names[t->cause], t->value, t->again,
                    t->why);
        free(text);
        json_object_put(config);
    }
    dt_buf_addf(&b, "best %d; %s\n", best ? best->id : 0,
                s->stop_reason ? s->stop_reason : "goes on");
    return dt_buf_take(&b);
}

static int take(void *s, struct json_object *record, struct dt_error *e)
{
    return dt_json_get(record, "name") ? 0 : dt_study_apply_record(s, record, e);
}

static int begin(struct dt_journal *j, struct dt_error *e)
{
    struct json_object *first = json_object_new_object();
    json_object_object_add(first, "name", json_object_new_string("campaign"));
    int rc = dt_journal_begun(j) ? 0 : dt_journal_append(j, first, e);
    json_object_put(first);
    return rc;
}

static void tune(const struct world *w, int fd)
{
    static const volatile int stop;
    struct dt_error e = DT_ERROR_INIT;
    struct stub stub = {.fd = fd};
    struct dt_backend b = {.ops = &ops, .b = &stub};
    struct dt_study *s = dt_study_new(w->spec, w->space, NULL, &e);
    struct dt_journal *j = s ? dt_journal_open(w->journal, take, s, &e) : NULL;
    int rc = j && begin(j, &e) == 0 ? dt_study_run(s, &b, j, NULL, NULL, &stop, &e) : -1;
    struct json_object *last = request_of("end", NULL);
    char *words = rc == 0 ? sum_up(s) : dt_xstrdup(e.text);
    json_object_object_add(last, "words", json_object_new_string(words));
    json_object_object_add(last, "points", json_object_new_int64(points));
    json_object_put(ask(fd, last));
    dt_journal_close(j);
    dt_study_free(s);
    free(words);
    dt_error_clear(&e);
    _exit(rc == 0 ? 0 : 3);
}

static void serve(struct world *w, const struct fate *f, int fd)
{
    char *text = dt_xcalloc(1, MESSAGE_MAX);
    ssize_t n;
    for (long requests = 1; (n = recv(fd, text, MESSAGE_MAX - 1, 0)) > 0; requests++) {
        struct dt_error e = DT_ERROR_INIT;
        if (requests == f->jump_at)
            w->clock += f->jump;
        text[n] = '\0';
        struct json_object *request = dt_json_parse(text, "request", &e);
        if (!request)
            die(&e);
        struct json_object *answer = answer_to(w, request);
        char *said = dt_json_text(answer);
        if (send(fd, said, strlen(said), MSG_NOSIGNAL) < 0 && errno != EPIPE &&
            errno != ECONNRESET) {
            perror("send");
            exit(1);
        }
        free(said);
        json_object_put(answer);
        json_object_put(request);
    }
    free(text);
}

enum outcome world_tune(struct world *w, const struct fate *f)
{
    int pair[2], status;
    w->clock = f->clock;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0) {
        perror("socketpair");
        exit(1);
    }
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        fate = *f;
        points = writes = 0; /* the campaign writes journals, too */
        if (fate.file_max) {
            signal(SIGXFSZ, SIG_IGN); /* as dt-tune does not end of it */
            setrlimit(RLIMIT_FSIZE, &(struct rlimit){(rlim_t)fate.file_max, RLIM_INFINITY});
        }
        tune(w, pair[1]);
    }
    close(pair[1]);
    serve(w, f, pair[0]);
    close(pair[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        perror("fork");
        exit(1);
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return TUNER_KILLED;
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3))
        return WEXITSTATUS(status) == 0 ? TUNER_DONE : TUNER_FAILED;
    fprintf(stderr, "a tuner ended with status %#x\n", (unsigned)status);
    exit(1);
}

const char *world_last_words(const struct world *w)
{
    return w->words;
}

long world_points(const struct world *w)
{
    return w->points;
}
