#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_time(const struct dt_study *s)
{
    return s->spec->objective == DT_OBJECTIVE_TIME || s->spec->objective == DT_OBJECTIVE_TURNAROUND;
}

char *dt_report_value(const struct dt_study *s, double x)
{
    if (!isfinite(x))
        return dt_xstrdup("-");
    return is_time(s) ? dt_xasprintf("%.2f s", x) : dt_xasprintf("%.5g", x);
}

static char *seconds_text(double x)
{
    return isfinite(x) ? dt_xasprintf("%.1f s", x) : dt_xstrdup("-");
}

/* "3 trials". Caller frees. */
static char *parallel_text(const struct dt_study *s)
{
    if (s->parallel == SIZE_MAX)
        return dt_xstrdup("as many trials as fit");
    return dt_xasprintf("%zu trial%s", s->parallel, s->parallel == 1 ? "" : "s");
}

static void print_limits(FILE *f, const struct dt_study *s)
{
    const struct dt_stopping *st = &s->stopping;
    if (s->external)
        fprintf(f, "no more is asked for, or after %zu", st->max_configs);
    else if (dt_study_is_population(s))
        fputs("all members of the population are over", f);
    else
        fprintf(f,
                "best improved by no more than %.3g %% over %zu configurations (from %zu on), or "
                "after %zu",
                100 * st->min_improve, st->window, st->min_configs, st->max_configs);
    if (isfinite(st->deadline) && st->deadline > 0) {
        char *deadline = dt_format_duration(st->deadline);
        fprintf(f, ", or after a time of %s", deadline);
        free(deadline);
    }
    if (isfinite(st->max_node_hours))
        fprintf(f, ", or after %.4g node-hours", st->max_node_hours);
}

/* What the trials of layout steps share. */
static void print_allocation(FILE *f, const struct dt_cluster *c, double closes)
{
    struct dt_books books = dt_cluster_books(c);
    struct dt_room all = dt_books_total(&books);
    fprintf(f, "allocation: %zu node%s, %zu CPUs", books.n, books.n == 1 ? "" : "s", all.cpus);
    if (all.mem_mib)
        fprintf(f, ", %llu MiB", (unsigned long long)all.mem_mib);
    if (all.gpus)
        fprintf(f, ", %zu GPUs", all.gpus);
    if (isfinite(closes)) {
        char *left = dt_format_duration(fmax(closes - dt_now(), 0));
        fprintf(f, "; for %s", left);
        free(left);
    }
    fputc('\n', f);
    dt_books_free(&books);
}

void dt_report_intro(FILE *f, const struct dt_setup *setup, const struct dt_study *s,
                     const char *name, const char *dir)
{
    const struct dt_spec *spec = setup->spec;
    char *objective = dt_spec_objective_text(spec), *space = dt_space_describe(setup->space);
    char *submitted = dt_config_text(setup->space, setup->submitted);
    fprintf(f, "dt-tune %s: study %s of %s, records in %s\n", DT_VERSION, name, setup->job.name,
            dir);
    char *parallel = parallel_text(s);
    fprintf(f, "objective: %s, search: %s (seed %lu), %s at a time\n", objective,
            dt_study_algorithm(spec, setup->space), (unsigned long)spec->seed, parallel);
    if (s->external)
        fprintf(f, "hyperparameters: as another program asks for\n");
    else if (s->submitted)
        fprintf(f, "as submitted: %s\n", submitted);
    else
        fprintf(f, "as submitted: not among the configurations that are searched\n");
    if (dt_study_is_population(s))
        fprintf(f, "population: %zu members, every %g steps the worst %.3g %% give way to trials that "
                   "go on from one of the best %.3g %%, as long as there are less than %zu\n",
                s->parallel, spec->pruner.interval, 100 * spec->pruner.quantile,
                100 * spec->pruner.quantile, s->stopping.max_configs);
    if (s->past && s->past->nstudies)
        fprintf(f, "warm start: %zu earlier stud%s, %zu observation%s\n", s->past->nstudies,
                s->past->nstudies == 1 ? "y" : "ies", s->past->nobs, s->past->nobs == 1 ? "" : "s");
    fprintf(f, "search space:\n%s  %s\n", space, setup->why_layout);
    if (setup->cluster)
        fprintf(f, "cluster: partition %s, %zu nodes\n", setup->cluster->partition,
                dt_cluster_nodes(setup->cluster));
    if (setup->allocation)
        print_allocation(f, setup->allocation, s->closes);
    fputs("stops: ", f);
    print_limits(f, s);
    fputs("\n\n", f);
    fprintf(f, "trial      queue        run  objective       best  configuration\n");
    fflush(f);
    free(objective);
    free(space);
    free(submitted);
    free(parallel);
}

static void print_lines_indented(FILE *f, const char *text)
{
    for (const char *s = text; s && *s;) {
        size_t n = strcspn(s, "\n");
        fprintf(f, "       | %.*s\n", (int)n, s);
        s += n + (s[n] == '\n');
    }
}

/* What there is to say of its metrics, unless an earlier trial said the same. */
static void print_note(FILE *f, const struct dt_study *s, const struct dt_trial *t)
{
    for (size_t i = 0; t->note && i < s->n; i++) {
        const struct dt_trial *o = &s->trials[i];
        bool earlier = o->t_ended < t->t_ended || (o->t_ended == t->t_ended && o->id < t->id);
        if (o->state == DT_TRIAL_ENDED && earlier && o->note && strcmp(o->note, t->note) == 0)
            return;
    }
    print_lines_indented(f, t->note);
}

/* Where it began, if that was in another trial. */
static void print_parent(FILE *f, const struct dt_study *s, const struct dt_trial *t)
{
    char *changes = dt_trial_changes(s, t);
    if (t->parent && !t->alone && !isnan(t->from))
        fprintf(f, " (goes on from trial %d%s%s)", t->parent, *changes ? ", " : "", changes);
    else if (t->alone)
        fprintf(f, " (%s)", t->alone);
    free(changes);
}

/* What its runs had done on other configurations. */
static void print_parts(FILE *f, const struct dt_study *s, const struct dt_trial *t)
{
    for (size_t i = 0; i < t->nparts; i++) {
        const struct dt_part *p = &t->parts[i];
        char *config = dt_config_text(s->space, p->x);
        double worth = dt_trial_worth(s, t, p);
        fprintf(f, "       | run %d on %s", p->run, config);
        if (isfinite(p->from))
            fprintf(f, ": %.5g to %.5g by its own count", p->from, p->to);
        if (isfinite(p->pace))
            fprintf(f, ", %.4g s a step", p->pace);
        if (isfinite(worth)) {
            char *value = dt_report_value(s, worth);
            fprintf(f, ", in all it would have come to %s", value);
            free(value);
        }
        fputc('\n', f);
        free(config);
    }
}

/* `best`: the trial of the best configuration by then, or NULL, and its mean. */
static void print_ended(FILE *f, const struct dt_study *s, const struct dt_trial *t,
                        const struct dt_trial *best, double mean)
{
    char *wait = seconds_text(t->wait_s), *run = seconds_text(t->run_s);
    char *measured = dt_report_value(s, t->value), *top = dt_report_value(s, mean);
    char *value = dt_xasprintf("%s%s", t->status == DT_STATUS_CENSORED ? "> " : "", measured);
    char *config = dt_config_text(s->space, t->x);
    bool ours = t->cause == DT_CAUSE_STOPPED || t->cause == DT_CAUSE_INTERRUPTED;
    bool first = dt_study_baseline(s) == t;
    fprintf(f, "%5d %10s %10s %10s %10s  %s%s%s", t->id, wait, run, value, top, config,
            first ? " (as submitted)" : "", best == t ? " *" : "");
    if (!dt_space_is_full(s->space, t->x))
        fputs(" (cheap)", f);
    if (t->again)
        fprintf(f, " (trial %d again)", t->again);
    print_parent(f, s, t);
    if (t->cause == DT_CAUSE_TARGET)
        fputs(" (target reached)", f);
    else if (t->cause == DT_CAUSE_EXIT && t->signal)
        fprintf(f, "  failed: signal %d", t->signal);
    else if (t->cause == DT_CAUSE_EXIT)
        fprintf(f, "  failed: exit code %d", t->exit_code);
    else if (t->cause != DT_CAUSE_OK)
        fprintf(f, "  %s: %s", t->status == DT_STATUS_FAILED ? "failed" : "ended",
                dt_cause_names[t->cause]);
    else if (t->status == DT_STATUS_VOID) /* it went on, so only its speed would count */
        fputs("  not timed: after it went on, it did not say twice how far it was", f);
    fputc('\n', f);
    if (t->cause != DT_CAUSE_OK && t->cause != DT_CAUSE_TARGET && !ours)
        print_lines_indented(f, t->text);
    print_note(f, s, t);
    print_parts(f, s, t);
    free(wait);
    free(run);
    free(measured);
    free(value);
    free(top);
    free(config);
}

/* "ps=1 workers=2 -> ps=4 workers=2": what a move changes, and what it keeps. Caller frees. */
static char *move_text(const struct dt_space *s, const double *from, const double *to)
{
    char *a = dt_config_text(s, from), *b = dt_config_text(s, to);
    char *text = dt_xasprintf("%s -> %s", a, b);
    free(a);
    free(b);
    return text;
}

/* The end of a run that is not the end of its trial. */
static void print_run_ended(FILE *f, const struct dt_study *s, const struct dt_trial *t,
                            const struct dt_event *ev)
{
    const struct dt_part *p = t->nparts ? &t->parts[t->nparts - 1] : NULL;
    bool asked = p && p->run == ev->run && !isnan(p->checkpoint_s);
    if (asked && p->moved) {
        char *config = dt_config_text(s->space, t->x);
        fprintf(f, "%5d run %d wrote its checkpoint and ended after %.1f s: goes on with %s\n",
                t->id, ev->run, p->checkpoint_s, config);
        free(config);
    } else if (asked) {
        fprintf(f,
                "%5d run %d ended without a checkpoint: it is repeated as it was; nothing is "
                "re-allocated any more: %s\n",
                t->id, ev->run, s->no_moves);
        print_lines_indented(f, ev->text);
    } else {
        fprintf(f, "%5d run %d ended (%s), no fault of the configuration: it is repeated\n", t->id,
                ev->run, dt_cause_names[ev->cause]);
    }
}

void dt_report_event(FILE *f, const struct dt_study *s, const struct dt_event *ev)
{
    const struct dt_trial *t = dt_study_trial(s, ev->trial), *best = dt_study_best(s);
    char *parallel;
    int n;
    switch (ev->kind) {
    case DT_EVENT_ENDED:
        if (t->state == DT_TRIAL_ENDED)
            print_ended(f, s, t, best, best ? dt_study_mean(s, best, &n) : NAN);
        else
            print_run_ended(f, s, t, ev);
        break;
    case DT_EVENT_REALLOCATING: {
        char *move = move_text(s->space, t->x, t->move.x);
        fprintf(f, "%5d re-allocation: %s: %s\n", t->id, move, ev->text);
        free(move);
        break;
    }
    case DT_EVENT_SHRINKING: {
        char *move = move_text(s->space, t->parts[t->nparts - 1].x, t->x);
        fprintf(f, "%5d re-allocation in place: %s: %s\n", t->id, move, ev->text);
        free(move);
        break;
    }
    case DT_EVENT_RELEASED:
        if (ev->nodes > 0)
            fprintf(f, "gives back %.0f node%s, which no trial will use any more: %s\n", ev->nodes,
                    ev->nodes > 1 ? "s" : "", ev->text);
        else
            fprintf(f, "the nodes stay: %s\n", ev->text);
        break;
    case DT_EVENT_KEPT:
        fprintf(f, "%5d goes on as it is: %s; nothing is re-allocated any more\n", t->id, ev->text);
        break;
    case DT_EVENT_DEFERRED:
        /* to wait for one another is their way; it is tried every few seconds */
        if (isfinite(ev->until) && !t->waits_on)
            fprintf(f, "%5d waits: %s\n", t->id, ev->text);
        break;
    case DT_EVENT_RESUMED:
        parallel = parallel_text(s);
        fprintf(f, "resumed with %zu trials, %zu of them finished; %s at a time, stops: ", s->n,
                s->nfinished, parallel);
        free(parallel);
        print_limits(f, s);
        fputc('\n', f);
        break;
    default:
        return;
    }
    fflush(f);
}

static int by_end(const void *a, const void *b)
{
    const struct dt_trial *x = *(const struct dt_trial *const *)a,
                          *y = *(const struct dt_trial *const *)b;
    return x->t_ended < y->t_ended ? -1 : x->t_ended > y->t_ended ? 1 : x->id - y->id;
}

struct dt_milestone *dt_report_course(const struct dt_study *s, size_t *n)
{
    const struct dt_trial **v = dt_xcalloc(s->n + 1, sizeof(*v));
    struct dt_milestone *course = dt_xcalloc(s->n + 1, sizeof(*course));
    struct dt_observation *o;
    struct dt_context ctx = dt_study_context(s, &o);
    *n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->trials[i].state == DT_TRIAL_ENDED)
            v[(*n)++] = &s->trials[i];
        o[i].status = DT_STATUS_PENDING;
    }
    qsort(v, *n, sizeof(*v), by_end);
    for (size_t i = 0; i < *n; i++) {
        o[v[i]->id - 1].status = v[i]->status;
        int best = dt_context_best(&ctx);
        course[i] = (struct dt_milestone){v[i], best < 0 ? NULL : &s->trials[best], NAN};
        if (best >= 0)
            dt_context_mean(&ctx, (size_t)best, &course[i].mean);
    }
    free(o);
    free(v);
    return course;
}

void dt_report_trials(FILE *f, const struct dt_study *s)
{
    size_t n;
    struct dt_milestone *course = dt_report_course(s, &n);
    for (size_t i = 0; i < n; i++)
        print_ended(f, s, course[i].t, course[i].best, course[i].mean);
    free(course);
}

#define TOP 5

/* A configuration with a value: its first trial, the mean, and of how many. */
struct entry {
    const struct dt_trial *t;
    double mean;
    int n;
};

static int by_mean(const void *a, const void *b, void *arg)
{
    const struct dt_study *s = arg;
    const struct entry *x = a, *y = b;
    double d = s->spec->maximize ? y->mean - x->mean : x->mean - y->mean;
    return d < 0 ? -1 : d > 0 ? 1 : x->t->id - y->t->id;
}

static void print_top(FILE *f, const struct dt_study *s)
{
    struct entry *v = dt_xcalloc(s->n, sizeof(*v));
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        v[n].t = &s->trials[i];
        v[n].mean = dt_study_mean(s, v[n].t, &v[n].n);
        n += !v[n].t->again && v[n].n > 0;
    }
    qsort_r(v, n, sizeof(*v), by_mean, (void *)s);
    fprintf(f, "\nthe best:\n");
    for (size_t i = 0; i < n && i < TOP; i++) {
        char *value = dt_report_value(s, v[i].mean), *config = dt_config_text(s->space, v[i].t->x);
        fprintf(f, "%3zu. trial %-3d %10s  %s", i + 1, v[i].t->id, value, config);
        if (v[i].n > 1)
            fprintf(f, " (mean of %d runs)", v[i].n);
        fputc('\n', f);
        free(value);
        free(config);
    }
    free(v);
}

static void print_gain(FILE *f, const struct dt_study *s)
{
    const struct dt_trial *best = dt_study_best(s), *base = dt_study_baseline(s);
    int nbest;
    double before = dt_study_before(s), now = dt_study_mean(s, best, &nbest);
    if (isnan(before)) {
        fprintf(f, "gain: unknown, the job as submitted %s\n",
                 !s->submitted                               ? "is not among what was searched"
                 : !base                              ? "was re-allocated"
                 : base->status == DT_STATUS_PRUNED ? "was stopped early"
                                                    : "did not end well");
        return;
    }
    char *from = dt_report_value(s, before), *to = dt_report_value(s, now);
    if (best == base)
        fprintf(f, "gain: none, the job as submitted is the best that was found (%s)\n", to);
    else if (before > 0 && now > 0)
        fprintf(f, "gain: %s as submitted, %s now: %.2f x\n", from, to,
                s->spec->maximize ? now / before : before / now);
    else
        fprintf(f, "gain: %s as submitted, %s now\n", from, to);
    free(from);
    free(to);
}

static size_t count_status(const struct dt_study *s, enum dt_status status)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->trials[i].state == DT_TRIAL_ENDED && s->trials[i].status == status;
    return n;
}

static void print_cost(FILE *f, const struct dt_study *s)
{
    struct dt_cost cost = dt_study_cost(s);
    char *all = dt_format_duration(dt_study_elapsed(s)), *running = dt_format_duration(cost.run_s);
    char *waiting = dt_format_duration(cost.wait_s);
    fprintf(f,
            "cost of the search: %zu trial%s (%zu failed) in %s; %s running, %s in the queue, %.0f "
            "billed seconds, %.3g node-hours\n",
            s->n, s->n == 1 ? "" : "s", count_status(s, DT_STATUS_FAILED), all, running, waiting,
            cost.billed_s, cost.node_s / 3600);
    free(all);
    free(running);
    free(waiting);
}

/* What trials at lower fidelities cost, and what they spared. */
static void print_thrift(FILE *f, const struct dt_study *s)
{
    struct dt_thrift t = dt_report_thrift(s);
    int i = dt_space_fidelity(s->space);
    if (!t.trials)
        return;
    char *highest = dt_format_double(dt_param_highest(&s->space->params[i]));
    char *took = dt_format_duration(t.run_s), *spared = dt_format_duration(t.spared_run_s);
    fprintf(f,
            "cheap trials: %zu of these, below %s=%s, took %s (%.3g node-hours); %zu "
            "configuration%s tried only so, and would take about %s (%.3g node-hours) at %s\n",
            t.trials, s->space->params[i].name, highest, took, t.node_s / 3600, t.spared,
            t.spared == 1 ? " was" : "s were", spared, t.spared_node_s / 3600, highest);
    free(highest);
    free(took);
    free(spared);
}

/* Where more than one thing may matter. */
static void print_front(FILE *f, const struct dt_study *s)
{
    struct dt_bound objective;
    const struct dt_bound *quality = dt_report_quality(s, &objective);
    size_t n;
    struct dt_merit *front = dt_report_front(s, &n);
    if (n > 1) {
        fprintf(f,
                "\nnone of these is worse than another in run time%s cost (billed seconds)%s%s:\n",
                quality ? "," : " and", quality ? " and " : "", quality ? quality->metric : "");
        for (size_t i = 0; i < n && i < 2 * TOP; i++) {
            char *config = dt_config_text(s->space, front[i].t->x),
                 *run = seconds_text(front[i].time);
            fprintf(f, "     trial %-3d %10s %10.5g", front[i].t->id, run, front[i].cost);
            if (quality)
                fprintf(f, " %10.5g", front[i].quality);
            fprintf(f, "  %s\n", config);
            free(config);
            free(run);
        }
        if (n > 2 * TOP)
            fprintf(f, "     and %zu more: dt-tune report --format json\n", n - 2 * TOP);
    }
    free(front);
}

/* "lr=0.01 batch=64": the hyperparameters of x, or its DT configuration. Caller frees. */
static char *part_text(const struct dt_space *s, const double *x, bool hyper)
{
    struct dt_buf b = DT_BUF_INIT;
    for (size_t i = 0; i < s->n; i++) {
        if (s->params[i].hyper != hyper || isnan(x[i]))
            continue;
        char *value = dt_param_text(&s->params[i], x[i]);
        dt_buf_addf(&b, "%s%s=%s", b.s ? " " : "", s->params[i].name, value);
        free(value);
    }
    return b.s ? dt_buf_take(&b) : dt_xstrdup("as submitted");
}

/* What each of the two loops has found, and both together. */
static void print_pair(FILE *f, const struct dt_study *s, const struct dt_trial *best)
{
    double *x = dt_xcalloc(s->space->n, sizeof(double));
    dt_study_pair(s, x);
    char *config = dt_config_text(s->space, x);
    if (s->external || strcmp(dt_study_algorithm(s->spec, s->space), "joint") == 0) {
        char *hyper = part_text(s->space, x, true), *dt = part_text(s->space, x, false);
        bool together = dt_config_equal(x, best->x, s->space->n);
        fprintf(f, "best hyperparameters: %s (trial %d)\n", hyper, best->id);
        fprintf(f, "fastest DT configuration: %s%s\n", dt,
                together ? "" : " (expected for these hyperparameters from all trials)");
        free(hyper);
        free(dt);
    }
    fprintf(f, "best configuration: %s\n", config);
    free(config);
    free(x);
}

/* What led to a model that went on from others. */
static void print_schedule(FILE *f, const struct dt_study *s, const struct dt_trial *best)
{
    size_t n;
    struct dt_stage *stages = dt_study_schedule(s, best, &n);
    if (n > 1)
        fprintf(f, "\nthe best model came from a schedule, not from its last values alone:\n");
    for (size_t i = 0; i < n && n > 1; i++) {
        char *hyper = part_text(s->space, stages[i].t->x, true);
        fprintf(f, "     from step %-8.6g %s (trial %d)\n", stages[i].from, hyper, stages[i].t->id);
        free(hyper);
    }
    if (n > 1)
        fprintf(f, "the model itself: trials/%04d/checkpoint in the folder of the study; the schedule: "
                   "schedule.json\nbest.sh runs the last values from the beginning, which may come to "
                   "something else\n", best->id);
    free(stages);
}

static size_t count_ended(const struct dt_study *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->trials[i].state == DT_TRIAL_ENDED;
    return n;
}

void dt_report_final(FILE *f, const struct dt_study *s, const char *best_sh)
{
    const struct dt_trial *best = dt_study_best(s);
    if (s->stop_reason)
        fprintf(f, "\nstopped: %s\n", s->stop_reason);
    else
        fprintf(f, "\nnot finished: %zu of %zu trials ended so far\n", count_ended(s), s->n);
    if (best) {
        print_top(f, s);
        print_front(f, s);
        dt_report_usage(f, s);
        fputc('\n', f);
        if (!s->external)
            print_gain(f, s);
        print_cost(f, s);
        print_thrift(f, s);
        print_pair(f, s, best);
        print_schedule(f, s, best);
        if (best_sh)
            fprintf(f, "submit it with: sbatch %s\n", best_sh);
    } else {
        if (count_status(s, DT_STATUS_FAILED) + count_status(s, DT_STATUS_CENSORED))
            fprintf(f, "no trial succeeded; the last lines of the failures are above, all output "
                       "is in trials/*/output.log\n");
        print_cost(f, s);
        print_thrift(f, s);
    }
    fflush(f);
}
