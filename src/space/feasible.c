#include "space/feasible_private.h"

#include <stdlib.h>

const char dt_no_room[] = "more CPUs, memory, disk or GPUs than the nodes have";
const char dt_not_apart[] = "too few nodes: components never share one";
const char dt_torn[] =
    "Slurm would start the job on nodes whose CPUs are enough, but not for whole tasks: "
    "its tasks would not start";

/* ---- what limits say of what it would get ---- */

static const char *const counted[DT_NGET] = {"cpu", "mem", "node", "gres/gpu"};

static const char *over_job[DT_NGET] = {"limits: more CPUs than a job of yours may have",
                                        "limits: more memory than a job of yours may have",
                                        "limits: more nodes than a job of yours may have",
                                        "limits: more GPUs than a job of yours may have"};
static const char *over_all[DT_NGET] = {"limits: more CPUs than your jobs may have at a time",
                                        "limits: more memory than your jobs may have at a time",
                                        "limits: more nodes than your jobs may have at a time",
                                        "limits: more GPUs than your jobs may have at a time"};

static const char *amounts_why_not(const struct dt_limits *l, const struct dt_got *g,
                                   const struct dt_got *all)
{
    for (int i = 0; i < DT_NGET; i++) {
        uint64_t together = dt_least(dt_amounts_get(&l->group, counted[i], DT_NO_LIMIT),
                                     dt_amounts_get(&l->per_user, counted[i], DT_NO_LIMIT));
        if (g->n[i] > dt_amounts_get(&l->per_job, counted[i], DT_NO_LIMIT))
            return over_job[i];
        if (all->n[i] > together)
            return over_all[i];
    }
    return NULL;
}

/* Whether a limit of the job as a whole forbids its components; `all`: with what the tuning job
 * has. */
static const char *limit_why_not(const struct dt_limits *l, const struct dt_needed *needs,
                                 const struct dt_got *got, size_t n, const struct dt_got *all,
                                 size_t others)
{
    const char *why = NULL;
    uint64_t jobs = n + others;
    for (size_t i = 0; i < n && !why; i++) {
        why = amounts_why_not(l, &got[i], all);
        if (needs[i].request->time > l->max_time)
            why = "limits: a longer --time than a job of yours may have";
        if (needs[i].node_cpus > dt_amounts_get(&l->per_node, "cpu", DT_NO_LIMIT))
            why = "limits: more CPUs of a node than a job of yours may have";
    }
    if (jobs > l->jobs || jobs > l->group_jobs)
        why = others ? "limits: more jobs at a time than you may run, the tuning job among them"
                     : "limits: more jobs at a time than you may run";
    if (jobs > l->submitted || jobs > l->group_submitted)
        why = others ? "limits: more jobs than you may submit, the tuning job among them"
                     : "limits: more jobs than you may submit";
    return why;
}

static const char *limits_why_not(const struct dt_cluster *c, const struct dt_needed *needs,
                                  const struct dt_got *got, size_t n)
{
    struct dt_got all = {.n = {c->tuner_jobs, c->tuner_jobs * DT_TUNER_MEM_MIB, c->tuner_jobs, 0}};
    const char *why = NULL;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < DT_NGET; k++)
            all.n[k] += got[i].n[k];
    for (size_t i = 0; i < c->nbinding && !why; i++)
        why = limit_why_not(&c->binding[i], needs, got, n, &all, c->tuner_jobs);
    return why;
}

const char *dt_feasible_why_not(const struct dt_cluster *c, const struct dt_cluster *partition,
                                const struct dt_request *requests, size_t n)
{
    const struct dt_cluster *p = partition ? partition : c;
    struct dt_needed *needs = dt_xcalloc(n, sizeof(*needs));
    struct dt_got *got = dt_xcalloc(n, sizeof(*got));
    const char *why =
        n > 1 && !c->backfill ? "heterogeneous jobs need the backfill scheduler" : NULL;
    for (size_t i = 0; i < n && !why; i++) {
        needs[i] = dt_need_of(&requests[i], c, p);
        why = dt_need_why_not(&needs[i], c, p);
    }
    for (size_t i = 0; i < n && !why; i++)
        if (!dt_fit(p, &needs[i], 1, got))
            why = dt_no_room;
    if (!why && n > 1 && !dt_fit(p, needs, n, got))
        why = dt_not_apart;
    why = why ? why : limits_why_not(c, needs, got, n);
    for (size_t i = 0; i < n && !why; i++)
        why = got[i].torn ? dt_torn : NULL;
    free(needs);
    free(got);
    return why;
}
