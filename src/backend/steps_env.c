#include "backend/slurm_private.h"
#include "launch/launch.h"

#include <stdlib.h>
#include <string.h>

/* Of the whole job, and true of each part of it. */
static const char *const kept[] = {
    "SLURM_CLUSTER_NAME", "SLURM_JOB_ID",          "SLURM_JOBID",           "SLURM_JOB_PARTITION",
    "SLURM_JOB_ACCOUNT",  "SLURM_JOB_QOS",         "SLURM_JOB_UID",         "SLURM_JOB_GID",
    "SLURM_JOB_USER",     "SLURM_JOB_GROUP",       "SLURM_JOB_START_TIME",  "SLURM_JOB_END_TIME",
    "SLURM_SUBMIT_DIR",   "SLURM_SUBMIT_HOST",     "SLURM_WORKING_CLUSTER", "SLURM_PRIO_PROCESS",
    "SLURM_UMASK",        "SLURM_JOB_RESERVATION",
};

static void set(struct dt_strv *env, const char *name, size_t n)
{
    char text[32];
    snprintf(text, sizeof(text), "%zu", n);
    dt_launch_setenv(env, name, text);
}

/* 4 4 3 -> "4(x2),3", as Slurm writes counts by node. */
static void set_counts(struct dt_strv *env, const char *name, const size_t *counts, size_t n)
{
    struct dt_buf b = DT_BUF_INIT;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && counts[end] == counts[i];)
            end++;
        dt_buf_addf(&b, "%s%zu", i ? "," : "", counts[i]);
        if (end - i > 1)
            dt_buf_addf(&b, "(x%zu)", end - i);
    }
    dt_launch_setenv(env, name, b.s ? b.s : "");
    dt_buf_free(&b);
}

static void set_nodes(const struct dt_books *books, const struct dt_placement *where,
                      struct dt_strv *out)
{
    struct dt_strv names = DT_STRV_INIT;
    size_t *cpus = dt_xcalloc(where->n, sizeof(*cpus)),
           *tasks = dt_xcalloc(where->n, sizeof(*tasks));
    size_t all = 0;
    uint64_t mem = 0;
    for (size_t i = 0; i < where->n; i++) {
        const struct dt_place *part = &where->v[i];
        dt_strv_add(&names, books->v[part->node].name);
        cpus[i] = part->room.cpus;
        for (size_t r = 0; r < where->nroles; r++)
            tasks[i] += part->tasks[r];
        all += tasks[i];
        mem = part->room.mem_mib > mem ? part->room.mem_mib : mem;
    }
    char *list = dt_strv_join(&names, ",");
    dt_launch_setenv(out, "DT_SHARE_NODES", list);
    dt_launch_setenv(out, "SLURM_JOB_NODELIST", list);
    dt_launch_setenv(out, "SLURM_NODELIST", list);
    set(out, "SLURM_JOB_NUM_NODES", where->n);
    set(out, "SLURM_NNODES", where->n);
    set_counts(out, "SLURM_JOB_CPUS_PER_NODE", cpus, where->n);
    set_counts(out, "SLURM_TASKS_PER_NODE", tasks, where->n);
    set(out, "SLURM_CPUS_ON_NODE", where->v[0].room.cpus);
    set(out, "SLURM_NTASKS", all);
    set(out, "SLURM_NPROCS", all);
    if (where->v[0].room.gpus)
        set(out, "SLURM_GPUS_ON_NODE", where->v[0].room.gpus);
    if (mem)
        set(out, "SLURM_MEM_PER_NODE", mem);
    free(list);
    free(cpus);
    free(tasks);
    dt_strv_free(&names);
}

void dt_steps_environ(const struct dt_books *books, const struct dt_placement *where,
                      const char *name, size_t worker_cpus, struct dt_strv *out)
{
    dt_scrubbed_environ(out);
    /* the GPUs of the tuner's node, which may not be the trial's: its steps get their own */
    for (size_t i = 0; i < DT_GPU_VARIABLES; i++)
        dt_launch_unsetenv(out, dt_gpu_variables[i]);
    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
        const char *value = getenv(kept[i]);
        if (value)
            dt_launch_setenv(out, kept[i], value);
    }
    dt_launch_setenv(out, "SLURM_JOB_NAME", name);
    /* for an srun that a script or a task calls for itself; not in a job that it submits */
    const char *job = getenv("SLURM_JOB_ID");
    dt_launch_setenv(out, "DT_SHARE", name);
    dt_launch_setenv(out, "DT_SHARE_JOB", job ? job : "");
    set_nodes(books, where, out);
    set(out, "SLURM_CPUS_PER_TASK", worker_cpus);
    set(out, "SLURM_NODEID", 0);
    set(out, "SLURM_PROCID", 0);
    set(out, "SLURM_LOCALID", 0);
}
