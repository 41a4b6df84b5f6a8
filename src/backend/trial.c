/* What both backends that start runs have in common: a run is a folder with a script, metrics and
 * records, and a tuner waits for what happens to it. */
#include "backend/slurm_private.h"
#include "expand/carrier.h"
#include "topology/topology.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCRIPT_MAX (64 * 1024 * 1024)
#define BUSY 2.0  /* seconds until a checkpoint that kept changing is looked at again */
#define QUIET 2.0 /* a checkpoint is whole when nothing was written for so long */

struct dt_event *dt_events_add(const struct dt_events *out, enum dt_event_kind kind,
                               const struct dt_trial *t, double when)
{
    *out->v = dt_xrealloc(*out->v, *out->n + 1, sizeof(**out->v));
    struct dt_event *ev = &(*out->v)[(*out->n)++];
    *ev = (struct dt_event)DT_EVENT(kind);
    ev->trial = t->id;
    ev->run = t->run;
    ev->job = t->job;
    ev->t = isfinite(when) ? when : dt_now();
    return ev;
}

char *dt_trial_dir(const struct dt_slurm_config *c, const struct dt_trial *t)
{
    return dt_xasprintf("%s/trials/%04d", c->dir, t->id);
}

/* ---- the script ---- */

/* A second run keeps the first one's records under their number. */
static void keep_old_records(const char *dir, int run)
{
    static const char *const names[][2] = {
        {"start", "json"}, {"end", "json"}, {"metrics", "jsonl"}, {"job", "sh"}};
    for (size_t i = 0; run > 1 && i < sizeof(names) / sizeof(*names); i++) {
        char *from = dt_xasprintf("%s/%s.%s", dir, names[i][0], names[i][1]);
        char *to = dt_xasprintf("%s/%s-%d.%s", dir, names[i][0], run - 1, names[i][1]);
        if (rename(from, to) < 0 && errno != ENOENT)
            unlink(from);
        free(from);
        free(to);
    }
}

int dt_trial_written_run(const char *path)
{
    char *text = dt_read_file(path, SCRIPT_MAX, NULL, NULL);
    struct dt_carrier c;
    int run = 0;
    if (text && dt_carrier_parse(text, &c) == 0) {
        char *json = dt_xstrndup(c.json, c.json_len);
        struct json_object *plan = dt_json_parse(json, path, NULL);
        run = (int)dt_json_int(plan, "run", 0);
        json_object_put(plan);
        free(json);
    }
    free(text);
    return run;
}

char *dt_trial_write_script(const struct dt_slurm_config *c, const struct dt_study *s,
                            const struct dt_trial *t, struct dt_trial_script *script,
                            struct dt_error *e)
{
    char *dir = dt_trial_dir(c, t), *path = dt_xasprintf("%s/job.sh", dir), *text = NULL;
    script->submission = c->submission;
    script->script = c->script;
    script->job = c->job;
    script->space = s->space;
    script->x = t->x;
    script->launch = c->launch;
    script->study = c->study;
    script->dir = dir;
    script->trial = t->id;
    script->run = t->run;
    script->spec = s->spec;
    script->coordinator = s->spec->coordinator;
    script->learn = c->cluster && !s->spec->topology && dt_topology_unknown(c->cluster);
    if (dt_mkdirs(dir, e) == 0) {
        if (dt_trial_written_run(path) != t->run) /* else this run was tried before, in vain */
            keep_old_records(dir, t->run);
        text = dt_expand(script, e);
    }
    if (!text || dt_write_file(path, text, strlen(text), 0777, e) < 0) {
        free(path);
        path = NULL;
    }
    script->dir = NULL;
    free(text);
    free(dir);
    return path;
}

/* ---- where it begins ---- */

bool dt_trial_hand_over(const struct dt_slurm_config *c, const struct dt_study *s,
                        const struct dt_trial *t, struct dt_event *ev, char **alone)
{
    struct dt_error e = DT_ERROR_INIT;
    if (!t->parent || t->run > 1) /* a later run goes on from its own */
        return true;
    char *theirs = dt_trial_dir(c, dt_study_trial(s, t->parent)), *ours = dt_trial_dir(c, t);
    char *from = dt_xasprintf("%s/checkpoint", theirs), *to = dt_xasprintf("%s/checkpoint", ours);
    enum dt_handover done =
        dt_mkdirs(ours, &e) < 0 ? DT_HANDOVER_FAILED : dt_handover(from, to, &e);
    if (done == DT_HANDOVER_NOTHING) {
        *alone = dt_xasprintf("trial %d has written no checkpoint: it began from nothing", t->parent);
    } else if (done == DT_HANDOVER_BUSY) {
        ev->kind = DT_EVENT_DEFERRED;
        ev->until = dt_now() + BUSY;
        ev->text = dt_xasprintf("trial %d is writing its checkpoint", t->parent);
    } else if (done == DT_HANDOVER_FAILED) {
        ev->kind = DT_EVENT_ENDED;
        ev->cause = DT_CAUSE_NOT_HANDED_OVER;
        ev->text = dt_xstrdup(e.text);
    }
    dt_error_clear(&e);
    free(from);
    free(to);
    free(theirs);
    free(ours);
    return done == DT_HANDOVER_DONE || done == DT_HANDOVER_NOTHING;
}

/* ---- metrics and usage ---- */

void dt_trial_metrics(const struct dt_slurm_config *c, const struct dt_study *s,
                      const struct dt_trial *t, struct dt_feed **feed, bool to_end,
                      const struct dt_events *out)
{
    if (!*feed) {
        char *dir = dt_trial_dir(c, t), *path = dt_xasprintf("%s/metrics.jsonl", dir);
        *feed = dt_feed_new(path, t);
        free(path);
        free(dir);
    }
    dt_feed_read(*feed, s->spec, t, to_end, out->v, out->n);
}

/* Who can tell what its steps use; NULL: nobody is to be asked but the samplers. */
static struct dt_step_watch *watch_steps(const struct dt_slurm_config *c, const struct dt_study *s,
                                         const struct dt_trial *t, struct dt_pace *asks)
{
    bool steps = s->spec->layout == DT_LAYOUT_STEPS;
    struct dt_shape shape;
    if (!c->gathers)
        return NULL;
    if (steps)
        dt_shape_make_steps(s->space, t->x, c->job, &shape);
    else
        dt_shape_make(s->space, t->x, c->job, c->cluster, &shape);
    char *name = steps ? dt_trial_job_name(c->job, c->study, t->id, t->run) : NULL;
    struct dt_step_source source = {.job = t->job, .name = name, .pace = asks};
    source.het = shape.het;
    source.servers = shape.roles[DT_ROLE_PS].count > 0;
    for (int r = 0; r < DT_ROLES; r++) {
        uint64_t mib = dt_role_mem(&shape, c->job, r);
        source.limits[r] = (struct dt_task_limits){.cpus = (double)shape.roles[r].cpus,
                                                   .mem = mib ? (double)mib * 1024 * 1024 : NAN};
    }
    struct dt_step_watch *w = dt_step_watch_new(&source);
    free(name);
    return w;
}

void dt_trial_usage(const struct dt_slurm_config *c, const struct dt_study *s,
                    const struct dt_trial *t, struct dt_pace *asks, struct dt_usage_feed **feed,
                    bool to_end, const struct dt_events *out)
{
    if (!(s->spec->monitor_period > 0))
        return;
    if (!*feed) {
        char *dir = dt_trial_dir(c, t), *samples = dt_xasprintf("%s/usage/%d", dir, t->run);
        *feed = dt_usage_feed_new(samples, s->spec->monitor_period, t, watch_steps(c, s, t, asks),
                                  s->spec->monitor_source == DT_MONITOR_AUTO);
        free(samples);
        free(dir);
    }
    dt_usage_feed_read(*feed, t, to_end, out->v, out->n);
}

bool dt_trial_told(const struct dt_records *r, const struct dt_study *s, const struct dt_trial *t)
{
    bool asked = t->move.asking && s->spec->checkpoint.signal == SIGTERM;
    return (r->told || r->tasks_told) && !asked;
}

bool dt_trials_are_warned(const struct dt_slurm_config *c)
{
    return dt_submission_value(c->submission, "signal") != NULL;
}

char *dt_trial_note(const struct dt_feed *feed, const struct dt_records *r)
{
    char *read = feed ? dt_feed_note(feed) : NULL;
    if (!r->notes)
        return read;
    char *both = dt_xasprintf("%s%s%s", r->notes, read ? "\n" : "", read ? read : "");
    free(read);
    return both;
}

/* ---- waiting ---- */

void dt_checkpoint_wait(struct dt_checkpoint_watch *w, const char *dir)
{
    *w = (struct dt_checkpoint_watch){.newest = dt_records_checkpoint(dir)};
}

bool dt_checkpoint_came(struct dt_checkpoint_watch *w, const char *dir, bool ended)
{
    double newest = dt_records_checkpoint(dir);
    if (newest > w->newest) {
        w->newest = newest;
        w->newer_since = dt_monotonic();
    }
    return w->newer_since > 0 && (ended || dt_monotonic() - w->newer_since >= QUIET);
}

bool dt_slurm_nap(int wake_fd, double seconds)
{
    struct pollfd wake = {wake_fd, POLLIN, 0};
    char drained[64];
    bool woken = poll(&wake, 1, (int)ceil(fmax(0, fmin(seconds, 3600)) * 1000)) > 0;
    while (woken && read(wake_fd, drained, sizeof(drained)) > 0)
        ;
    return woken;
}
