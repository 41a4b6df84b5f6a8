/* Running a study to its report: what `dt-tune run`, `dt-tune serve` and `dt-sbatch --here` have in common. */
#include "backend/backend.h"
#include "history/history.h"
#include "report/report.h"
#include "serve/serve.h"
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

static volatile int told_to_end; /* the signal, 0 while there is none */
static int wake_pipe[2] = {-1, -1};

/* May run in any thread that a library has started, so a signal does not interrupt the tuner's wait
 * by itself. */
static void on_signal(int sig)
{
    int saved = errno;
    if (sig != SIGUSR1 && sig != SIGCHLD) /* those only wake the tuner: a trial has ended */
        told_to_end = sig;
    if (write(wake_pipe[1], "", 1) < 0)
        (void)0; /* full: the tuner will wake all the same */
    errno = saved;
}

static void on_failed_write(int sig)
{
    (void)sig;
}

static int catch_signals(struct dt_error *e)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD};
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_NOCLDSTOP};
    if (pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
        return dt_fail(e, "pipe: %s", strerror(errno));
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        sigaction(signals[i], &sa, NULL);
    /* whoever read our words may be gone, and the study is not over for that; a file may get as long
     * as `ulimit -f` lets it, and that is an error to be told; a handler, unlike ignoring, is not
     * inherited by what we start */
    sa.sa_handler = on_failed_write;
    sigaction(SIGPIPE, &sa, NULL);
    sigaction(SIGXFSZ, &sa, NULL);
    return 0;
}

struct opening {
    struct dt_setup **setup;
    struct dt_study *s;
    char **name;
    const char *dir;
    bool fresh;
};

/* A tuning job that Slurm starts anew finds its own study and goes on. Another study's folder can
 * only be there from before Slurm's job numbers began anew. */
static int check_same(const struct opening *o, struct json_object *doc, const char *script,
                      struct dt_error *e)
{
    const struct dt_setup *now = *o->setup;
    char *exec = dt_self_exe(e), *text = exec ? dt_setup_text(now, exec) : NULL;
    struct json_object *mine = text ? dt_json_parse(text, "study", e) : NULL;
    int rc = mine ? 0 : -1;
    /* started anew, it may have got other nodes: the space stays that of the first */
    if (mine && dt_json_get(doc, "allocation"))
        json_object_object_add(mine, "allocation", json_object_get(dt_json_get(doc, "allocation")));
    if (rc == 0 && !now->resume &&
        (!json_object_equal(mine, doc) || strcmp(script, now->script) != 0))
        rc = dt_fail(
            e,
            "it is that of another study: move the folder away, or go on with it by --dt-resume=%s",
            o->dir);
    json_object_put(mine);
    free(text);
    free(exec);
    return rc;
}

/* The script that the study began with: what was measured with another would not compare. Caller
 * frees. */
static char *first_script(const char *dir, const char *now)
{
    char *path = dt_xasprintf("%s/script", dir),
         *text = dt_read_file(path, DT_SCRIPT_MAX, NULL, NULL);
    if (text && strcmp(text, now) != 0)
        printf("the study goes on with the script that it began with, %s, not with the one given "
               "now\n",
               path);
    free(path);
    return text ? text : dt_xstrdup(now);
}

/* Trials that are jobs need no resources of the tuning job, and those that are steps do. */
static int check_layout(const struct dt_setup *stored, const struct dt_setup *now,
                        struct dt_error *e)
{
    bool steps = stored->spec->layout == DT_LAYOUT_STEPS;
    if (steps == (now->spec->layout == DT_LAYOUT_STEPS))
        return 0;
    return steps
               ? dt_fail(e,
                         "the trials of this study share the tuning job's allocation: go on with "
                         "it by --dt-layout=steps, in a job as large")
               : dt_fail(e, "the trials of this study are jobs of their own: go on with it without "
                            "--dt-layout=steps");
}

/* Whether a study can go on in this way. */
static int check_who_asks(const struct dt_setup *stored, const struct dt_setup *now,
                          const char *dir, struct dt_error *e)
{
    if (stored->external == now->external)
        return 0;
    if (stored->external)
        return dt_fail(e, "another program chooses the hyperparameters of this study: go on with it "
                          "by dt-tune serve --dt-resume=%s", dir);
    return dt_fail(e, "this study chooses the hyperparameters itself: go on with it by --dt-tune "
                      "--dt-resume=%s", dir);
}

/* One record of an existing journal: the first holds the study itself, the others are events. */
static int on_record(void *arg, struct json_object *record, struct dt_error *e)
{
    struct opening *o = arg;
    if (o->fresh) {
        struct json_object *doc = dt_json_get(record, "study");
        char *script = first_script(o->dir, (*o->setup)->script);
        bool usable = doc && check_same(o, doc, script, e) == 0;
        struct dt_setup *stored = usable ? dt_setup_from_json(doc, script, e) : NULL;
        free(script);
        if (stored && (check_who_asks(stored, *o->setup, o->dir, e) < 0 ||
                       check_layout(stored, *o->setup, e) < 0)) {
            dt_setup_free(stored);
            return -1;
        }
        if (!stored)
            return doc ? -1 : dt_fail(e, "it does not begin with a study");
        free(*o->name);
        *o->name = dt_xstrdup(dt_json_str(record, "name", "?"));
        /* where the tools are is a matter of this sitting */
        free(stored->sbatch);
        stored->sbatch = (*o->setup)->sbatch ? dt_xstrdup((*o->setup)->sbatch) : NULL;
        free(stored->resume);
        stored->resume = (*o->setup)->resume ? dt_xstrdup((*o->setup)->resume) : NULL;
        free(stored->history);
        stored->history = (*o->setup)->history ? dt_xstrdup((*o->setup)->history) : NULL;
        dt_setup_free(*o->setup);
        *o->setup = stored;
        o->s = dt_study_new(stored->spec, stored->space, dt_setup_first(stored), e);
        o->fresh = false;
        if (o->s)
            o->s->past = dt_past_from_json(dt_json_get(record, "past"), stored->space);
        return o->s ? 0 : -1;
    }
    return dt_study_apply_record(o->s, record, e);
}

/* A tuner that was started anew may have to wait until its predecessor, on another node, is dead.
 */
#define LOCK_TRIES 15

static int ignore_record(void *arg, struct json_object *record, struct dt_error *e)
{
    (void)arg;
    (void)record;
    (void)e;
    return 0;
}

/* One whose caller is gone still finishes what runs; the next is to see how that ended. */
static void wait_for_last_caller(const char *path)
{
    fprintf(stderr, "dt-tune: another dt-tune serve still finishes trials of this study; waiting\n");
    while (!told_to_end) {
        struct dt_error e = DT_ERROR_INIT;
        struct dt_journal *j = dt_journal_open(path, ignore_record, NULL, &e);
        bool busy = !j && errno == EWOULDBLOCK;
        dt_journal_close(j);
        dt_error_clear(&e);
        if (!busy)
            break;
        sleep(1);
    }
}

static struct dt_journal *open_journal(const char *path, struct opening *o, struct dt_error *e)
{
    struct dt_journal *j = dt_journal_open(path, on_record, o, e);
    if (!j && errno == EWOULDBLOCK && (*o->setup)->external) {
        wait_for_last_caller(path);
        j = dt_journal_open(path, on_record, o, e);
    }
    for (int i = 0; i < LOCK_TRIES && !j && errno == EWOULDBLOCK && !(*o->setup)->resume; i++) {
        sleep(1);
        j = dt_journal_open(path, on_record, o, e);
    }
    if (j)
        dt_error_clear(e); /* of the times before */
    return j;
}

/* What the history has of the same workload, or SPEC's studies, as the journal will keep it; NULL:
 * nothing. Only a search with a model has a use for it. */
static struct json_object *look_back(const struct dt_setup *s, const char *dir)
{
    bool by_nodes = isfinite(s->spec->max_node_hours);
    struct dt_workload w;
    struct dt_error e = DT_ERROR_INIT;
    if (!dt_spec_has_model(s->spec) || s->external || s->spec->no_history || !s->history)
        return NULL;
    dt_workload_make(&w, s->spec, s->script, &s->submission->args);
    struct dt_past *p = s->spec->history_from.n
                            ? dt_history_load_named(s->history, &w, &s->spec->history_from, s->space,
                                                    by_nodes, &e)
                            : dt_history_load(s->history, &w, false, dir, s->space, by_nodes, &e);
    struct json_object *past = p && p->nstudies ? dt_past_to_json(p, s->space) : NULL;
    if (!p)
        printf("warning: the study starts without a past: %s\n", e.text);
    dt_error_clear(&e);
    dt_past_free(p);
    return past;
}

/* `past` or NULL: from now on part of the study, whatever becomes of the history. */
static int begin_journal(struct dt_journal *j, const struct dt_setup *s, const char *name,
                         struct json_object *past, struct dt_error *e)
{
    char *exec = dt_self_exe(e), *text = exec ? dt_setup_text(s, exec) : NULL;
    struct json_object *record = json_object_new_object();
    json_object_object_add(record, "version", json_object_new_int(1));
    json_object_object_add(record, "name", json_object_new_string(name));
    json_object_object_add(record, "study", text ? dt_json_parse(text, "study", e) : NULL);
    if (past)
        json_object_object_add(record, "past", json_object_get(past));
    int rc = text ? dt_journal_append(j, record, e) : -1;
    json_object_put(record);
    free(exec);
    free(text);
    return rc;
}

static int write_in(const char *dir, const char *name, const char *text, unsigned mode,
                    struct dt_error *e)
{
    char *path = dt_xasprintf("%s/%s", dir, name);
    int rc = dt_write_file(path, text, strlen(text), mode, e);
    free(path);
    return rc;
}

/* The study's folder. All that is done is written there first, and trials are submitted from there:
 * who else could write in it could run programs as this user. Its name can be guessed, so that
 * somebody may have put one there before. */
static int make_folder(const char *dir, bool resumed, struct dt_error *e)
{
    struct stat st;
    if (dt_mkdir_private(dir, e) < 0)
        return -1;
    if ((resumed ? stat(dir, &st) : lstat(dir, &st)) < 0)
        return dt_fail(e, "%s: %s", dir, strerror(errno));
    if (S_ISLNK(st.st_mode))
        return dt_fail(e, "%s: is a link that dt-tune has not made: remove it and submit anew",
                       dir);
    if (st.st_uid != geteuid())
        return dt_fail(
            e, "%s: belongs to another user (uid %u): only its owner can go on with a study", dir,
            (unsigned)st.st_uid);
    return 0;
}

/* Which job looks after the study now (0: a process without a job): its trials look here. */
static int write_tuner(const char *dir, uint32_t job, struct dt_error *e)
{
    char *text = dt_xasprintf("{\"version\":1,\"job\":%u}\n", job);
    int rc = write_in(dir, "tuner.json", text, 0666, e);
    free(text);
    return rc;
}

/* Trials run where the study was submitted, from wherever it is resumed. */
static int enter_study(const char *dir, struct dt_error *e)
{
    char *parent = dt_xstrdup(dir), *slash = strrchr(parent, '/');
    int rc = 0;
    if (slash && slash != parent) {
        *slash = '\0';
        rc = chdir(parent) < 0 ? dt_fail(e, "%s: %s", parent, strerror(errno)) : 0;
    }
    free(parent);
    return rc;
}

/* spec.json and the script as they were submitted, once. */
static int write_inputs(const char *dir, const struct dt_setup *s, struct dt_error *e)
{
    const char *spec = json_object_to_json_string_ext(
        s->spec->json, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);
    char *text = dt_xasprintf("%s\n", spec);
    int rc = write_in(dir, "spec.json", text, 0666, e);
    free(text);
    return rc == 0 ? write_in(dir, "script", s->script, 0777, e) : -1;
}

#define NOT_THE_SCHEDULE                                                                           \
    "# The best model came from a schedule of hyperparameters, in schedule.json. This runs its last\n" \
    "# values from the beginning, which may come to something else.\n"

/* Whoever reads best.sh is to know what it is not. */
static void remark(char **script)
{
    size_t first = strcspn(*script, "\n") + 1;
    char *text = dt_xasprintf("%.*s%s%s", (int)first, *script, NOT_THE_SCHEDULE, *script + first);
    free(*script);
    *script = text;
}

static int write_schedule(const char *dir, const struct dt_study *study,
                          struct json_object *schedule, struct dt_error *e)
{
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "version", json_object_new_int(1));
    json_object_object_add(o, "schedule", json_object_get(schedule));
    char *checkpoint = dt_xasprintf("trials/%04d/checkpoint", dt_study_best(study)->id);
    json_object_object_add(o, "checkpoint", json_object_new_string(checkpoint));
    char *json = dt_json_text(o), *line = dt_xasprintf("%s\n", json);
    int rc = write_in(dir, "schedule.json", line, 0666, e);
    json_object_put(o);
    free(checkpoint);
    free(json);
    free(line);
    return rc;
}

/* That of an earlier sitting. */
static void remove_schedule(const char *dir)
{
    char *path = dt_xasprintf("%s/schedule.json", dir);
    unlink(path);
    free(path);
}

/* best.json, best.sh and, where there is one, schedule.json. */
static int write_best(const char *dir, const struct dt_setup *s, const struct dt_study *study,
                      struct dt_error *e)
{
    double *x = dt_xcalloc(s->space->n, sizeof(double));
    bool found = dt_study_pair(study, x);
    struct json_object *config = dt_report_config(s->space, x);
    free(x);
    if (!found) {
        json_object_put(config);
        return 0;
    }
    char *json = dt_json_text(config), *line = dt_xasprintf("%s\n", json);
    char *script = expand_config(s, config, e);
    struct json_object *schedule = dt_report_schedule(study);
    if (script && schedule)
        remark(&script);
    int rc = script ? write_in(dir, "best.json", line, 0666, e) : -1;
    if (rc == 0)
        rc = write_in(dir, "best.sh", script, 0777, e);
    if (rc == 0 && schedule)
        rc = write_schedule(dir, study, schedule, e);
    else if (rc == 0)
        remove_schedule(dir);
    json_object_put(schedule);
    json_object_put(config);
    free(json);
    free(line);
    free(script);
    return rc;
}

/* "dt-tune-123/best.sh ARGS", as one types it in the folder of the submission. */
static char *best_command(const char *dir, const struct dt_setup *s)
{
    char *cwd = s->resume ? NULL : getcwd(NULL, 0);
    size_t n = cwd ? strlen(cwd) : 0;
    bool below = n && strncmp(dir, cwd, n) == 0 && dir[n] == '/';
    char *path = dt_xasprintf("%s/best.sh", below ? dir + n + 1 : dir);
    char *text = command_text(path, s->submission);
    free(path);
    free(cwd);
    return text;
}

/* The study's script has to be named, but is not read: the study has its own. dt-sbatch is there
 * with and without the plugins. */
static void print_how_to_resume(const char *dir, bool here, const struct dt_setup *s)
{
    const char *how = s->external ? "dt-tune serve"
                      : here      ? "dt-sbatch --here --dt-tune"
                                  : "dt-sbatch --dt-tune";
    bool steps = s->spec->layout == DT_LAYOUT_STEPS;
    char *script = dt_xasprintf("%s/script", dir), *folder = command_text(dir, NULL);
    char *file = command_text(script, NULL);
    printf("go on with: %s%s --dt-resume=%s %s\n", how, steps ? " --dt-layout=steps" : "", folder,
           file);
    if (steps)
        printf("in an allocation, or with options for one, as large as this was\n");
    free(script);
    free(folder);
    free(file);
}

/* For later studies. What goes wrong here is no fault of this one, which has ended well. */
static void keep_history(const struct dt_setup *s, const struct dt_study *study, const char *name,
                         const char *dir)
{
    struct dt_error e = DT_ERROR_INIT;
    char *folder = s->history ? dt_xstrdup(s->history) : dt_history_dir();
    struct json_object *record =
        s->spec->no_history ? NULL : dt_report_record(s, study, name, dir, dt_now());
    int rc = 0;
    if (record && json_object_array_length(dt_json_get(record, "observations")) > 0)
        rc = folder ? dt_history_append(folder, record, &e)
                    : dt_fail(&e, "nobody knows where the user's home is");
    if (rc < 0)
        printf("warning: this study is not in the history: %s\n", e.text);
    json_object_put(record);
    free(folder);
    dt_error_clear(&e);
}

/* Who is told of what happens: people, and the program that asks for trials, if any. */
struct audience {
    struct dt_serve *serve; /* or NULL */
    struct board board;
};

static void on_event(void *arg, const struct dt_study *s, const struct dt_event *ev)
{
    struct audience *a = arg;
    dt_report_event(stdout, s, ev);
    board_show(&a->board, s);
    if (a->serve)
        dt_serve_event(a->serve, s, ev);
}

static int on_request(void *arg, struct dt_study *s, struct dt_event *ev)
{
    return dt_serve_request(((struct audience *)arg)->serve, s, ev);
}

/* What else only stood on standard error. */
static void write_report(const char *dir, const struct dt_setup *s, const struct dt_study *study,
                         const char *name, const char *best)
{
    char *path = dt_xasprintf("%s/report.txt", dir);
    FILE *f = fopen(path, "we");
    if (f) {
        dt_report_intro(f, s, study, name, dir);
        dt_report_trials(f, study);
        dt_report_final(f, study, best);
        fclose(f);
    } else {
        printf("warning: %s: %s\n", path, strerror(errno));
    }
    free(path);
}

/* Plots are worth a warning, no more: all that they show is in the journal. */
static void draw_report(const char *dir)
{
    struct dt_error e = DT_ERROR_INIT;
    if (write_page(dir, &e) == 0)
        printf("plots: %s/report.html\n", dir);
    else
        printf("warning: there is no report.html: %s\n", e.text);
    dt_error_clear(&e);
}

static int run_open(struct dt_setup *s, struct dt_study *study, struct dt_journal *j,
                    const char *name, const char *dir, uint32_t tuner_job, struct dt_allocation *a,
                    struct json_object *limits, struct dt_serve *serve, struct dt_error *e)
{
    char *launch = sibling("dt-launch", e);
    struct dt_slurm_config config = {.submission = s->submission,
                                     .script = s->script,
                                     .job = &s->job,
                                     .space = s->space,
                                     .cluster = s->cluster,
                                     .study = name,
                                     .dir = dir,
                                     .sbatch = s->sbatch ? s->sbatch : "sbatch",
                                     .launch = launch,
                                     .tuner_job = tuner_job,
                                     .wake_fd = wake_pipe[0]};
    config.gathers = s->spec->monitor_period > 0 && s->spec->monitor_source != DT_MONITOR_AGENT &&
                     dt_slurm_gathers();
    struct dt_backend *b = NULL;
    study->cluster = s->cluster;
    study->job = &s->job;
    if (a->job)
        study->closes = dt_allocation_closes(a);
    if (launch)
        b = a->job ? dt_backend_steps(&config, a) : dt_backend_slurm(&config);
    if (s->spec->monitor_period > 0 && s->spec->monitor_source == DT_MONITOR_SLURM &&
        !config.gathers)
        printf("warning: monitor.source is slurm, but this cluster gathers nothing of job steps "
               "(JobAcctGatherType in slurm.conf), or has no sstat: what trials use will not be "
               "known\n");
    struct audience audience = {serve, board_new(tuner_job)};
    struct dt_reporter reporter = {
        .event = on_event, .arg = &audience, .request = serve ? on_request : NULL};
    if (serve)
        dt_serve_hello(serve, dir);
    dt_report_intro(stdout, s, study, name, dir);
    if (dt_journal_note(j))
        printf("warning: %s\n", dt_journal_note(j));
    int rc = b ? dt_study_run(study, b, j, &reporter, limits, &told_to_end, e) : -1;
    if (rc >= 0 && e->text)
        printf("warning: %s; whether jobs of the study are left, squeue tells\n", e->text);
    if (rc >= 0)
        dt_error_clear(e);
    if (rc >= 0 && write_best(dir, s, study, e) < 0)
        rc = -1;
    char *best = best_command(dir, s);
    dt_report_final(stdout, study, rc >= 0 ? best : NULL);
    if (rc == 1)
        print_how_to_resume(dir, tuner_job == 0, s);
    if (serve)
        write_report(dir, s, study, name, rc >= 0 ? best : NULL);
    keep_history(s, study, name, dir);
    if (rc >= 0)
        draw_report(dir);
    free(best);
    board_free(&audience.board);
    dt_backend_free(b);
    free(launch);
    return rc;
}

/* How long the last answers wait for somebody who reads, in seconds. */
#define PATIENCE 30
#define HURRY 5 /* where a signal has ended the study */

static void end_serve(struct dt_serve *serve, const struct dt_study *study, const char *error)
{
    if (!serve)
        return;
    dt_serve_finish(serve, study, error);
    bool told = told_to_end != 0;
    dt_serve_free(serve, told ? HURRY : PATIENCE, told ? NULL : &told_to_end);
}

/* What the trials of layout steps are to share; of any other layout nothing. */
static int read_allocation(struct dt_setup *s, struct dt_allocation *a, struct dt_error *e)
{
    *a = (struct dt_allocation){0};
    if (s->spec->layout != DT_LAYOUT_STEPS)
        return 0;
    if (dt_allocation_read(a, e) < 0)
        return -1;
    return dt_setup_allocate(s, dt_allocation_cluster(a), e);
}

int run_study(struct dt_setup *s, const char *study_name, const char *dir, uint32_t tuner_job,
              int answers)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_allocation a;
    if (read_allocation(s, &a, &e) < 0) {
        dt_setup_free(s);
        return fail_with(&e, EXIT_USAGE);
    }
    char *path = dt_xasprintf("%s/journal.jsonl", dir), *name = dt_xstrdup(study_name);
    struct json_object *limits = json_object_get(dt_json_get(s->spec->json, "search"));
    struct opening o = {.setup = &s, .name = &name, .dir = dir, .fresh = true};
    bool resumed = s->resume != NULL;
    int rc = catch_signals(&e) == 0 ? make_folder(dir, resumed, &e) : -1;
    struct dt_serve *serve = NULL;
    if (rc == 0 && answers >= 0)
        rc = (serve = dt_serve_new(STDIN_FILENO, answers, wake_pipe[1], &e)) ? 0 : -1;
    struct dt_journal *j = rc == 0 ? open_journal(path, &o, &e) : NULL;
    rc = j && write_tuner(dir, tuner_job, &e) == 0 && (!resumed || enter_study(dir, &e) == 0) ? 0
                                                                                              : -1;
    if (rc == 0 && o.fresh) {
        struct json_object *past = look_back(s, dir);
        rc = write_inputs(dir, s, &e) < 0 || begin_journal(j, s, name, past, &e) < 0 ? -1 : 0;
        o.s = rc == 0 ? dt_study_new(s->spec, s->space, dt_setup_first(s), &e) : NULL;
        if (o.s)
            o.s->past = dt_past_from_json(past, s->space);
        json_object_put(past);
    }
    if (rc == 0 && o.s)
        rc = run_open(s, o.s, j, name, dir, tuner_job, &a, limits, serve, &e);
    else
        rc = -1;
    bool found = o.s && (dt_study_best(o.s) || (s->external && o.s->n == 0));
    end_serve(serve, o.s, rc < 0 ? e.text : NULL);
    dt_study_free(o.s);
    dt_journal_close(j);
    dt_setup_free(s);
    dt_allocation_free(&a);
    json_object_put(limits);
    free(path);
    free(name);
    if (rc < 0)
        return fail_with(&e, EXIT_WORK_FAILED);
    return rc == 0 && found ? EXIT_DONE : EXIT_WORK_FAILED;
}

int run_study_here(struct dt_setup *s, int answers)
{
    struct utsname host; /* in the name, as process ids are the same on many hosts */
    uname(&host);
    char *name = dt_xasprintf("%s-%ld", host.nodename, (long)getpid()), *cwd = getcwd(NULL, 0);
    char *dir =
        s->resume ? dt_xstrdup(s->resume) : dt_xasprintf("%s/dt-tune-%s", cwd ? cwd : ".", name);
    int rc = run_study(s, name, dir, 0, answers);
    free(name);
    free(cwd);
    free(dir);
    return rc;
}
