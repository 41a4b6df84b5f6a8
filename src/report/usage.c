#include "report/report.h"

#include <math.h>
#include <stdlib.h>

#define BUSY 0.8 /* of the whole run, its beginning and its end included */
#define IDLE 0.5
#define FULL 0.9
#define UNUSED 0.3

/* Of the last run that told of it. */
static const struct dt_usage *latest(const struct dt_role_usage *r)
{
    return r->nruns ? &r->runs[r->nruns - 1].u : NULL;
}

struct json_object *dt_report_usage_json(const struct dt_trial *t)
{
    struct json_object *o = json_object_new_object();
    for (size_t i = 0; i < t->usage.n; i++) {
        const struct dt_usage *u = latest(&t->usage.v[i]);
        struct json_object *role = dt_usage_to_json(u);
        json_object_object_add(role, "samples", json_object_new_int64(u->n));
        json_object_object_add(o, t->usage.v[i].role, role);
    }
    return o;
}

static void print_level(FILE *f, const char *word, const struct dt_usage *u, enum dt_resource i)
{
    if (!isnan(u->mean[i]))
        fprintf(f, "  %s %3.0f %% (%3.0f %%)", word, 100 * u->mean[i], 100 * u->max[i]);
}

static void print_trial(FILE *f, const struct dt_trial *t, const char *what)
{
    for (size_t i = 0; i < t->usage.n; i++) {
        const struct dt_usage *u = latest(&t->usage.v[i]);
        char *head = i ? dt_xstrdup("") : dt_xasprintf("trial %d %s", t->id, what);
        fprintf(f, "     %-24s %-9s", head, t->usage.v[i].role);
        free(head);
        print_level(f, "CPU", u, DT_RESOURCE_CPU);
        print_level(f, "memory", u, DT_RESOURCE_MEM);
        print_level(f, "GPU", u, DT_RESOURCE_GPU);
        fputc('\n', f);
    }
}

static double mean_cpu(const struct dt_trial *t, const char *role)
{
    const struct dt_role_usage *r = dt_role_usages_find(&t->usage, role);
    return r ? latest(r)->mean[DT_RESOURCE_CPU] : NAN;
}

/* Only what is plain. */
static void print_hints(FILE *f, const struct dt_trial *t)
{
    double ps = mean_cpu(t, "ps"), worker = mean_cpu(t, "worker");
    if (ps >= BUSY && worker <= IDLE)
        fprintf(f,
                "hint: in trial %d the servers' CPUs are busy while the workers wait: more "
                "servers, or more CPUs for each, may pay\n",
                t->id);
    if (worker >= BUSY && ps <= UNUSED)
        fprintf(f,
                "hint: in trial %d the workers' CPUs are busy and the servers wait: more workers, "
                "or fewer servers, may pay\n",
                t->id);
    for (size_t i = 0; i < t->usage.n; i++) {
        const struct dt_role_usage *r = &t->usage.v[i];
        const struct dt_usage *u = latest(r);
        if (u->max[DT_RESOURCE_MEM] >= FULL)
            fprintf(f,
                    "hint: in trial %d the memory of a %s was full to %.0f %%: a longer training "
                    "may need more\n",
                    t->id, r->role, 100 * u->max[DT_RESOURCE_MEM]);
        if (u->mean[DT_RESOURCE_GPU] <= UNUSED)
            fprintf(f,
                    "hint: in trial %d the GPUs of a %s were busy for %.0f %% of the time: larger "
                    "batches, or more CPUs that load data, may pay\n",
                    t->id, r->role, 100 * u->mean[DT_RESOURCE_GPU]);
    }
}

void dt_report_usage(FILE *f, const struct dt_study *s)
{
    const struct dt_trial *best = dt_study_best(s), *base = dt_study_baseline(s);
    if ((!best || !best->usage.n) && (!base || !base->usage.n))
        return;
    fprintf(f, "\nwhat a role's tasks used, in the mean (and the busiest one at its peak):\n");
    if (base)
        print_trial(f, base, "(as submitted)");
    if (best && best != base)
        print_trial(f, best, "(the best)");
    if (best)
        print_hints(f, best);
}
