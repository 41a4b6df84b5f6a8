/* monitor: what the roles of a running trial use of what they were given. */
#ifndef DT_MONITOR_H
#define DT_MONITOR_H

#include "util/util.h"

/* ---- usage of one role (usage.c): pure ---- */

enum dt_resource {
    DT_RESOURCE_CPU,  /* fraction of the CPUs that a task was given; 1: all busy */
    DT_RESOURCE_MEM,  /* fraction of its memory limit, of the node's memory where there is none */
    DT_RESOURCE_GPU,  /* fraction of the time that its GPUs were busy */
    DT_RESOURCE_NET,  /* bytes/s, in and out together */
    DT_RESOURCE_DISK, /* bytes/s, read and written together */
    DT_RESOURCES
};
extern const char *const dt_resource_names[DT_RESOURCES]; /* "cpu" */

/* Samples of one role of one run, over all its tasks. What is not known is NaN. */
struct dt_usage {
    double t;                  /* when the last of them ended, seconds since the epoch */
    int64_t n;                 /* so many samples in a row, at about one level: at least 1 */
    double mean[DT_RESOURCES]; /* the tasks' mean, averaged over the samples */
    double max[DT_RESOURCES];  /* the busiest task's, in the sample where it was highest */
};
/* One sample of which nothing is known. */
struct dt_usage dt_usage_unknown(double t);
/* Puts `more` samples to those of `sum`. known[i] counts the samples in sum->mean[i] that have a
 * value; zeroed where sum->n is 0. */
void dt_usage_add(struct dt_usage *sum, int64_t known[DT_RESOURCES], const struct dt_usage *more);

/* {"cpu": [mean, max], ...} without what is not known. The caller puts() it. */
struct json_object *dt_usage_to_json(const struct dt_usage *u);
/* The other way; t and n are the caller's. What is no pair of finite numbers, not negative, is
 * unknown. */
void dt_usage_from_json(struct json_object *levels, struct dt_usage *u);

/* A role of a trial, as the USAGE events told it. */
#define DT_USAGE_WINDOW 32
struct dt_usage_total { /* of all samples of one run */
    int run;
    struct dt_usage u;
    int64_t known[DT_RESOURCES];
};
struct dt_role_usage {
    char *role;                              /* owned */
    struct dt_usage recent[DT_USAGE_WINDOW]; /* of the present run; the newest last */
    size_t n;
    struct dt_usage_total *runs; /* owned; those that told anything, in order */
    size_t nruns;
};
struct dt_role_usages {
    struct dt_role_usage *v; /* owned; in the order in which they were first heard of */
    size_t n;
};
void dt_role_usages_add(struct dt_role_usages *all, const char *role, int run,
                        const struct dt_usage *u);
/* A new run begins: what is recent is forgotten. */
void dt_role_usages_new_run(struct dt_role_usages *all);
const struct dt_role_usage *dt_role_usages_find(const struct dt_role_usages *all, const char *role);
/* What a run used as a whole; NULL where nothing is known. */
const struct dt_usage *dt_role_usage_of_run(const struct dt_role_usage *r, int run);
void dt_role_usages_free(struct dt_role_usages *all);

#endif
