/* job_submit/dt_tune: turns a job submitted with --dt-tune into a tuning job.
 *
 * Runs in slurmctld, for every submission, with locks held, since 23.02 in several threads at once.
 * So: nothing but bounded work on the strings of the request; no file, network, process, log line
 * or global state, but for what enforce.c keeps of dt-tune.conf; and a job without our option costs
 * one walk over a short array. */
#include "compat.h"
#include "enforce.h"
#include "names.h"
#include "expand/carrier.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

const char plugin_name[] = "distributed-training tuning jobs";
const char plugin_type[] = "job_submit/dt_tune";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

#define STUDY_START "{\"version\":1,\"exec\":\""
#define STUDY_TUNER "\",\"tuner\":{"
#define STUDY_STEPS "\"steps\":true"
#define STUDY_MEMORY "\"mem_mib\":"
#define STUDY_TIME ",\"time_min\":"

/* The tuner gets a word this long before its time is up, to end its trials and write its report.
 * With layout steps it looks at the time itself: Slurm's word, up to a minute too early, would cut
 * the study off before its own end. */
#define WARN_SECONDS 60

/* The few facts of a study that concern slurmctld. They stand at its start, in this order, so that
 * no JSON has to be understood here. */
struct study {
    const char *exec; /* not NUL-terminated */
    size_t exec_len;
    bool steps;        /* trials run inside the tuning job, which stays as large as it is */
    uint32_t mem_mib;  /* else what the tuner needs */
    uint32_t time_min; /* 0: not given */
};

static bool has_prefix(const char *s, const char *prefix)
{
    return s && strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool is_variable(const char *entry, const char *name)
{
    return has_prefix(entry, name) && entry[strlen(name)] == '=';
}

static bool was_asked(const job_desc_msg_t *job)
{
    for (uint32_t i = 0; i < job->spank_job_env_size; i++) {
        if (has_prefix(job->spank_job_env[i], DT_SPANK_OPTION))
            return true;
    }
    return false;
}

static const char *control_value(const job_desc_msg_t *job, const char *name)
{
    for (uint32_t i = 0; i < job->spank_job_env_size; i++) {
        if (is_variable(job->spank_job_env[i], name))
            return job->spank_job_env[i] + strlen(name) + 1;
    }
    return NULL;
}

static int refuse(char **err_msg, int rc, const char *line)
{
    dt_slurm_free(err_msg);
    *err_msg = slurm_xstrdup(line);
    return rc;
}

/* ---- the start of a study ---- */

static bool eat(const char **p, const char *word)
{
    if (!has_prefix(*p, word))
        return false;
    *p += strlen(word);
    return true;
}

static bool eat_number(const char **p, uint32_t *n)
{
    int digits = 0;

    for (*n = 0; **p >= '0' && **p <= '9' && digits < 9; (*p)++, digits++)
        *n = *n * 10 + (uint32_t)(**p - '0');
    return *n > 0;
}

static bool eat_path(const char **p, struct study *s)
{
    s->exec = *p;
    while (**p != '"' && **p != '\\' && (unsigned char)**p >= ' ' && **p != 0x7f)
        (*p)++;
    s->exec_len = (size_t)(*p - s->exec);
    return s->exec[0] == '/' && s->exec_len > 1 && s->exec_len < PATH_MAX && **p == '"';
}

static bool read_study(const char *text, struct study *s)
{
    const char *p = text;

    if (strpbrk(text, "\r\n"))
        return false;
    if (!eat(&p, STUDY_START) || !eat_path(&p, s) || !eat(&p, STUDY_TUNER))
        return false;
    s->steps = eat(&p, STUDY_STEPS);
    if (s->steps)
        return *p == '}';
    if (!eat(&p, STUDY_MEMORY) || !eat_number(&p, &s->mem_mib))
        return false;
    if (eat(&p, STUDY_TIME) && !eat_number(&p, &s->time_min))
        return false;
    return *p == ',' || *p == '}';
}

/* ---- the parts of a tuning job ---- */

static int replace_script(job_desc_msg_t *job, const struct study *s, const char *text)
{
    char *exec = strndup(s->exec, s->exec_len);
    const char *argv[] = {exec, "run", NULL};
    char *carrier = exec ? dt_carrier_build("", argv, text, job->script) : NULL;

    free(exec);
    if (!carrier)
        return -1;
    dt_script_changed(job, text);
    dt_slurm_free(&job->script);
    job->script = slurm_xstrdup(carrier);
    free(carrier);
    return 0;
}

static void shrink_to_one_task(job_desc_msg_t *job, const struct study *s)
{
    job->num_tasks = 1;
    job->cpus_per_task = 1;
    job->min_cpus = 1;
    job->max_cpus = NO_VAL;
    job->min_nodes = 1;
    job->max_nodes = 1;
    job->pn_min_cpus = NO_VAL16;
    job->pn_min_memory = s->mem_mib;
    job->pn_min_tmp_disk = NO_VAL;
    job->ntasks_per_node = NO_VAL16;
    job->ntasks_per_socket = NO_VAL16;
    job->ntasks_per_core = NO_VAL16;
    job->ntasks_per_board = NO_VAL16;
    job->ntasks_per_tres = NO_VAL16;
    job->boards_per_node = NO_VAL16;
    job->sockets_per_board = NO_VAL16;
    job->sockets_per_node = NO_VAL16;
    job->cores_per_socket = NO_VAL16;
    job->threads_per_core = NO_VAL16;
    job->plane_size = NO_VAL16;
    job->task_dist = NO_VAL;
    job->overcommit = NO_VAL8;
    job->shared = NO_VAL16;
    dt_slurm_free(&job->tres_per_job);
    dt_slurm_free(&job->tres_per_node);
    dt_slurm_free(&job->tres_per_socket);
    dt_slurm_free(&job->tres_per_task);
    dt_slurm_free(&job->tres_bind);
    dt_slurm_free(&job->tres_freq);
    dt_slurm_free(&job->cpus_per_tres);
    dt_slurm_free(&job->mem_per_tres);
}

/* What the trials need of nodes, the tuner does not: it can run anywhere in the partition. Licences
 * and burst buffers most of all: it would hold what its own trials wait for. Nodes that the user
 * excluded stay excluded. */
static void drop_requests_of_trials(job_desc_msg_t *job)
{
    dt_slurm_free(&job->req_nodes);
    dt_slurm_free(&job->features);
    dt_slurm_free(&job->batch_features);
    dt_slurm_free(&job->licenses);
    dt_slurm_free(&job->burst_buffer);
    dt_slurm_free(&job->network);
    job->contiguous = NO_VAL16;
    job->core_spec = NO_VAL16;
    job->req_switch = NO_VAL;
    job->wait4switch = NO_VAL;
    job->reboot = NO_VAL16;
    job->x11 = 0;
    job->bitflags &=
        ~(uint64_t)(GRES_ENFORCE_BIND | GRES_DISABLE_BIND | SPREAD_JOB | USE_MIN_NODES);
    dt_clear_newer_requests(job);
}

static void set_time_and_warning(job_desc_msg_t *job, const struct study *s)
{
    if (s->time_min) {
        job->time_limit = s->time_min;
        job->time_min = NO_VAL;
    }
    if (job->warn_signal == 0 && !s->steps) {
        job->warn_signal = SIGTERM;
        job->warn_time = WARN_SECONDS;
        job->warn_flags = KILL_JOB_BATCH;
    }
}

/* ---- the two environments ---- */

static bool is_our_entry(const char *entry)
{
    return has_prefix(entry, DT_SPANK_OPTION) || is_variable(entry, DT_ENTRY_STUDY);
}

/* sbatch set these from the size of the job as submitted; in a job of one task they would mislead,
 * and since they work as defaults of srun and sbatch, every command in it too. */
static bool speaks_of_size(const char *entry)
{
    static const char *const prefixes[] = {
        "SLURM_NTASKS",     "SLURM_NPROCS=",      "SLURM_CPUS_PER_",   "SRUN_CPUS_PER_TASK=",
        "SLURM_TASKS_PER_", "SLURM_GPU",          "SLURM_MEM_PER_",    "SLURM_TRES_",
        "SLURM_DIST",       "SLURM_THREADS_PER_", "SLURM_THREAD_SPEC", "SLURM_CORE_SPEC",
        "SLURM_OVERCOMMIT", "SLURM_SPREAD_JOB",   "SLURM_HINT="};

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (has_prefix(entry, prefixes[i]))
            return true;
    }
    return false;
}

/* The study travels in the script; left in the environment it would only be copied on and on, and
 * an option left there would make every submission from within ask for a tuning again. */
static bool is_ours(const char *entry)
{
    return is_our_entry(entry) ||
           (has_prefix(entry, DT_SPANK_EXPORT) && is_our_entry(entry + strlen(DT_SPANK_EXPORT)));
}

static bool is_unwanted(const char *entry)
{
    return speaks_of_size(entry) || is_ours(entry);
}

/* Frees the entries that `drop` is true of and closes the gaps. */
static bool filter(char **entries, uint32_t *n, bool (*drop)(const char *))
{
    uint32_t kept = 0, all = *n;

    for (uint32_t i = 0; i < all; i++) {
        if (entries[i] && drop(entries[i]))
            dt_slurm_free(&entries[i]);
        else
            entries[kept++] = entries[i];
    }
    for (uint32_t i = kept; i < all; i++)
        entries[i] = NULL;
    *n = kept;
    return kept < all;
}

static int make_tuning_job(job_desc_msg_t *job, const struct study *s, const char *text)
{
    if (replace_script(job, s, text))
        return -1;
    if (!s->steps) {
        shrink_to_one_task(job, s);
        drop_requests_of_trials(job);
    }
    set_time_and_warning(job, s);
    if (!s->steps)
        dt_limits_keep_tuner(job);
    if (!job->comment)
        job->comment = slurm_xstrdup("dt-tune");
    if (filter(job->environment, &job->env_size, s->steps ? is_ours : is_unwanted))
        dt_environment_changed(job);
    /* Last, for `text` lies in it. Without the option's entries a second look at this job lets it
     * pass. */
    filter(job->spank_job_env, &job->spank_job_env_size, is_our_entry);
    return 0;
}

/* ---- Slurm's entry points ---- */

extern int init(void)
{
    dt_limits_start();
    return SLURM_SUCCESS;
}

extern int fini(void)
{
    dt_limits_end();
    return SLURM_SUCCESS;
}

static int refuse_kind(const job_desc_msg_t *job, char **err_msg)
{
    struct dt_carrier carrier;

    /* Before the script is missed: only the first component has one. */
    if (job->het_job_offset != NO_VAL)
        return refuse(err_msg, ESLURM_NOT_SUPPORTED,
                      "dt-tune: a heterogeneous job cannot be tuned; submit a plain job, dt-tune "
                      "makes the components");
    if (job->array_inx)
        return refuse(err_msg, ESLURM_INVALID_ARRAY,
                      "dt-tune: a job array cannot be tuned; submit one job without --array");
    if (!job->script)
        return refuse(err_msg, ESLURM_BATCH_ONLY,
                      "dt-tune: --dt-tune works with sbatch only; put the job into a script");
    if (dt_carrier_parse(job->script, &carrier) == 0)
        return refuse(
            err_msg, ESLURM_NOT_SUPPORTED,
            "dt-tune: this script is one that dt-tune made; submit the original with --dt-tune");
    return SLURM_SUCCESS;
}

extern int job_submit(job_desc_msg_t *job, uint32_t uid, char **err_msg)
{
    const char *text;
    struct study study = {0};
    char *why;
    int rc;

    if (!was_asked(job) || control_value(job, DT_ENTRY_IGNORED))
        return SLURM_SUCCESS;
    if ((rc = refuse_kind(job, err_msg)))
        return rc;
    text = control_value(job, DT_ENTRY_STUDY);
    if (!text)
        return refuse(
            err_msg, ESLURM_NOT_SUPPORTED,
            "dt-tune: the study is missing from this submission; ask the administrator to "
            "install the current spank_dt_tune.so on the host that you submit from");
    if (strnlen(text, DT_STUDY_LIMIT) == DT_STUDY_LIMIT)
        return refuse(err_msg, ESLURM_PATHNAME_TOO_LONG,
                      "dt-tune: the study is larger than 64 KiB; shorten SPEC or move its "
                      "candidates to a file");
    if (!read_study(text, &study))
        return refuse(err_msg, ESLURM_NOT_SUPPORTED,
                      "dt-tune: the study is not of the form that slurmctld's "
                      "job_submit_dt_tune.so knows; ask "
                      "the administrator to install the same version of dt-tune on all hosts");
    if ((why = dt_limits_refuse(job, uid))) {
        rc = refuse(err_msg, ESLURM_ACCESS_DENIED, why);
        free(why);
        return rc;
    }
    if (make_tuning_job(job, &study, text))
        return refuse(err_msg, ENOMEM, "dt-tune: slurmctld is short of memory; submit again later");
    return SLURM_SUCCESS;
}

/* An update changes a job that is a tuning job already: nothing to do. */
extern int job_modify(DT_JOB_MODIFY_PARAMETERS)
{
    DT_JOB_MODIFY_UNUSED;
    return SLURM_SUCCESS;
}
