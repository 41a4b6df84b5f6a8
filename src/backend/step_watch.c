/* Asks Slurm what the steps of a run use: one list of the job's steps by slurmctld, and one answer
 * a step by the nodes that it is on. */
#include "backend/slurm_private.h"
#include "util/slurm.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define SSTAT_TIMEOUT 10.0
#define PERIOD_MIN 30.0  /* seconds between two questions */
#define PERIOD_MAX 600.0 /* where nobody answers */
#define SOON 5.0         /* where the tasks have not begun */

struct dt_step_watch {
    struct dt_step_source source; /* owns its name */
    uint32_t *jobs;               /* that its steps are in; NULL: not known yet */
    size_t njobs;
    struct dt_step_stat *last; /* as of the last answer */
    size_t n;
    double asked; /* monotonic: when that was */
    double next, pause;
    double turn; /* when it may ask, as it is due; 0: it is not */
};

bool dt_slurm_gathers(void)
{
    slurm_conf_t *conf = NULL;
    if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS)
        return false;
    const char *type = conf->job_acct_gather_type;
    char *sstat = dt_find_program("sstat", NULL);
    bool gathers = sstat && type && *type && !strstr(type, "none");
    slurm_free_ctl_conf(conf);
    free(sstat);
    return gathers;
}

struct dt_step_watch *dt_step_watch_new(const struct dt_step_source *source)
{
    struct dt_step_watch *w = dt_xcalloc(1, sizeof(*w));
    w->source = *source;
    w->source.name = source->name ? dt_xstrdup(source->name) : NULL;
    return w;
}

static void forget(struct dt_step_watch *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->last[i].step);
    free(w->last);
    w->last = NULL;
    w->n = 0;
}

void dt_step_watch_free(struct dt_step_watch *w)
{
    if (!w)
        return;
    forget(w);
    free(w->jobs);
    free((char *)w->source.name);
    free(w);
}

/* ---- whose step it is ---- */

/* A step of the run that has a role. */
struct step {
    const char *id; /* borrowed */
    int role;
    struct dt_task_limits limits; /* of a task, */
    bool whole;                   /* or of all together */
};

#define MPI DT_ROLES /* all workers of a node are one task */

/* As dt-launch names it; -1: otherwise. Steps of other trials in the same allocation are none of
 * ours. */
static int role_of(const struct dt_step_source *s, const char *name)
{
    size_t n = s->name ? strlen(s->name) : 0;
    if (s->name && (strncmp(name, s->name, n) != 0 || name[n] != '.'))
        return -1;
    for (int r = 0; r < DT_ROLES; r++)
        if (strcmp(s->name ? name + n + 1 : name, dt_role_names[r]) == 0)
            return r;
    return s->name && strcmp(name + n, ".mpi") == 0 ? MPI : -1;
}

/* What its tasks were given is what the step has. */
static struct step of_workers(const struct dt_slurm_steps *all, size_t i)
{
    return (struct step){all->ids.v[i], DT_ROLE_WORKER, {(double)all->cpus[i], NAN}, true};
}

/* Where dt-launch has started nothing, and there are no servers, all steps of the job are the
 * workers'. Returns how many there are; caller frees *v. */
static size_t find_steps(const struct dt_step_source *s, const struct dt_slurm_steps *all,
                         struct step **v)
{
    size_t n = 0;
    *v = dt_xcalloc(all->ids.n + 1, sizeof(**v));
    for (size_t i = 0; i < all->ids.n; i++) {
        int role = role_of(s, all->names.v[i]);
        if (role == MPI)
            (*v)[n++] = of_workers(all, i);
        else if (role >= 0)
            (*v)[n++] = (struct step){all->ids.v[i], role, s->limits[role], false};
    }
    for (size_t i = 0; i < all->ids.n && !n && !s->servers && !s->name; i++)
        if (!strstr(all->ids.v[i], "extern"))
            (*v)[n++] = of_workers(all, i);
    return n;
}

/* ---- asking ---- */

static struct dt_step_stat *ask(const struct step *steps, size_t nsteps, size_t *n)
{
    struct dt_strv argv = DT_STRV_INIT, ids = DT_STRV_INIT, lines = DT_STRV_INIT;
    struct dt_proc_result r;
    struct dt_step_stat *v = dt_xcalloc(nsteps + 1, sizeof(*v));
    for (size_t i = 0; i < nsteps; i++)
        dt_strv_add(&ids, steps[i].id);
    char *list = dt_strv_join(&ids, ",");
    *n = 0;
    dt_strv_add(&argv, "sstat");
    dt_strv_add(&argv, "--parsable2");
    dt_strv_add(&argv, "--noheader");
    dt_strv_add(&argv, "--noconvert");
    dt_strv_add(&argv, "--format=" DT_SSTAT_FORMAT);
    dt_strv_addf(&argv, "--jobs=%s", list);
    if (dt_proc_run(argv.v, NULL, SSTAT_TIMEOUT, &r, NULL) == 0) {
        dt_strv_split(&lines, r.out, "\n");
        for (size_t i = 0; i < lines.n && *n < nsteps; i++)
            *n += dt_step_stat_parse(lines.v[i], &v[*n]);
        dt_proc_result_free(&r);
    }
    dt_strv_free(&lines);
    dt_strv_free(&argv);
    dt_strv_free(&ids);
    free(list);
    return v;
}

static void take(const struct dt_step_watch *w, const struct step *steps, size_t nsteps,
                 const struct dt_step_stat *now, double seconds, struct dt_gather *g)
{
    const struct dt_step_stat *before = NULL;
    double mean[DT_RESOURCES], max[DT_RESOURCES];
    size_t i = 0;
    for (size_t k = 0; k < w->n && !before; k++)
        before = strcmp(w->last[k].step, now->step) == 0 ? &w->last[k] : NULL;
    while (i < nsteps && strcmp(steps[i].id, now->step) != 0)
        i++;
    if (!before || i == nsteps)
        return;
    struct dt_task_limits limits = steps[i].limits;
    if (steps[i].whole)
        limits.cpus /= (double)now->tasks;
    dt_step_levels(before, now, seconds, &limits, mean, max);
    dt_gather_take(g, dt_role_names[steps[i].role], dt_now(), dt_now(), mean, max, now->tasks);
}

static bool load(struct dt_step_watch *w, struct dt_slurm_steps *all)
{
    const char *mark = w->source.name ? w->source.name : "";
    bool known = true;
    if (!w->source.het)
        return dt_slurm_steps_load(w->source.job, mark, all, NULL) == 0;
    if (!w->jobs)
        w->jobs = dt_slurm_components(w->source.job, &w->njobs);
    for (size_t i = 0; i < w->njobs; i++)
        known &= dt_slurm_steps_load(w->jobs[i], mark, all, NULL) == 0;
    return known && w->jobs;
}

void dt_step_watch_look(struct dt_step_watch *w, double period, struct dt_gather *g)
{
    struct dt_slurm_steps all = {0};
    struct step *steps = NULL;
    double now = dt_monotonic();
    if (now < w->next)
        return;
    if (w->turn == 0)
        w->turn = dt_pace_turn(w->source.pace, now);
    if (now < w->turn)
        return;
    w->turn = 0;
    bool known = load(w, &all);
    size_t nsteps = find_steps(&w->source, &all, &steps), n = 0;
    double begun = dt_monotonic(); /* the list of steps may have taken its time */
    struct dt_step_stat *v = nsteps ? ask(steps, nsteps, &n) : NULL;
    double asked = (begun + dt_monotonic()) / 2;
    for (size_t i = 0; i < n; i++)
        take(w, steps, nsteps, &v[i], asked - w->asked, g);
    forget(w);
    w->last = v;
    w->n = n;
    w->asked = asked;
    bool silent = !known || (nsteps && !n);
    w->pause = silent ? fmin(2 * fmax(w->pause, PERIOD_MIN), PERIOD_MAX) : fmax(period, PERIOD_MIN);
    w->next = now + (known && !nsteps ? SOON : w->pause);
    dt_slurm_steps_free(&all);
    free(steps);
}
