#include "spec/submission_private.h"
#include "util/slurm.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define NONE no_argument
#define NEED required_argument
#define MAY optional_argument

#define SHAPE DT_OPT_SHAPE
#define TRIAL DT_OPT_TRIAL
#define LEADER DT_OPT_LEADER
#define TUNER DT_OPT_TUNER
#define REFUSE DT_OPT_REFUSE

#define WHY_ARRAY                                                                                  \
    "a job array cannot be tuned as one job: submit without it; values to try go into "            \
    "--dt-param=NAME=DOMAIN"
#define WHY_TEST                                                                                   \
    "nothing would run: use --dt-dry-run, which prints the search space and the first trials"
#define WHY_CLUSTERS                                                                               \
    "trials are submitted and watched where the tuning job runs: submit on that cluster's own "    \
    "login node"
#define WHY_EXTERNAL                                                                               \
    "an external job starts no script on a node, and the tuner is one: submit without it"

/* The classes, where they are not plain:
 *  - threads-per-core, hint, distribution and the like say how tasks sit on a node: they stay;
 *  - mail is taken from a heterogeneous job's first component only;
 *  - ignore-pbs belongs to every trial, because sbatch looks for #PBS lines in all of a script;
 *  - a deadline bounds the study: "now+2hours" would mean another moment for each trial. */
const struct dt_sbatch_option dt_sbatch_options[] = {
    {"account", 'A', NEED, "SBATCH_ACCOUNT", TRIAL, 0, 0, 0},
    {"acctg-freq", 0, NEED, "SBATCH_ACCTG_FREQ", TRIAL, 0, 0, 0},
    {"array", 'a', NEED, "SBATCH_ARRAY_INX", REFUSE, 0, WHY_ARRAY, 0},
#if DT_SLURM_AT_LEAST(23, 2)
    {"autocomplete", 0, NEED, NULL, TUNER, 0, 0, 0},
#endif
    {"batch", 0, NEED, "SBATCH_BATCH", LEADER, 0, 0, 0},
    {"bb", 0, NEED, "SBATCH_BURST_BUFFER", TRIAL, 0, 0, 0},
    {"bbf", 0, NEED, NULL, TRIAL, 0, 0, 0},
    {"begin", 'b', NEED, NULL, TUNER, 0, 0, 0},
    {"chdir", 'D', NEED, NULL, TRIAL, 0, 0, 0},
    {"cluster", 0, NEED, NULL, REFUSE, 0, WHY_CLUSTERS, "clusters"},
    {"cluster-constraint", 0, NEED, "SBATCH_CLUSTER_CONSTRAINT", REFUSE, 0, WHY_CLUSTERS, 0},
    {"clusters", 'M', NEED, "SBATCH_CLUSTERS", REFUSE, 0, WHY_CLUSTERS, 0},
    {"comment", 0, NEED, NULL, TRIAL, 0, 0, 0},
#if DT_SLURM_AT_LEAST(25, 11)
    {"consolidate-segments", 0, NONE, "SBATCH_CONSOLIDATE_SEGMENTS", TRIAL, 0, 0, 0},
#endif
    {"constraint", 'C', NEED, "SBATCH_CONSTRAINT", TRIAL, 0, 0, 0},
#if DT_SLURM_AT_LEAST(21, 8)
    {"container", 0, NEED, "SBATCH_CONTAINER", TRIAL, 0, 0, 0},
#endif
#if DT_SLURM_AT_LEAST(23, 2)
    {"container-id", 0, NEED, "SBATCH_CONTAINER_ID", TRIAL, 0, 0, 0},
#endif
#if DT_SLURM_AT_LEAST(26, 5)
    {"container-type", 0, NEED, "SBATCH_CONTAINER_TYPE", TRIAL, 0, 0, 0},
#endif
    {"context", 0, NEED, NULL, TRIAL, 0, 0, 0},
    {"contiguous", 0, NONE, NULL, TRIAL, 0, 0, 0},
    {"core-spec", 'S', NEED, "SBATCH_CORE_SPEC", TRIAL, DT_VAL_COUNT0, 0, 0},
    {"cores-per-socket", 0, NEED, NULL, SHAPE, DT_VAL_COUNT, 0, 0},
    {"cpu-freq", 0, NEED, "SBATCH_CPU_FREQ_REQ", TRIAL, 0, 0, 0},
    {"cpus-per-gpu", 0, NEED, "SBATCH_CPUS_PER_GPU", SHAPE, DT_VAL_COUNT, 0, 0},
    {"cpus-per-task", 'c', NEED, NULL, SHAPE, DT_VAL_COUNT, 0, 0},
    {"deadline", 0, NEED, NULL, TUNER, 0, 0, 0},
    {"delay-boot", 0, NEED, "SBATCH_DELAY_BOOT", TRIAL, 0, 0, 0},
    {"dependency", 'd', NEED, NULL, TUNER, 0, 0, 0},
    {"distribution", 'm', NEED, "SBATCH_DISTRIBUTION", TRIAL, 0, 0, 0},
    {"error", 'e', NEED, "SBATCH_ERROR", TUNER, 0, 0, 0},
    {"exclude", 'x', NEED, NULL, TRIAL, 0, 0, 0},
    {"exclusive", 0, MAY, "SBATCH_EXCLUSIVE", TRIAL, 0, 0, 0},
    {"export", 0, NEED, "SBATCH_EXPORT", TRIAL, 0, 0, 0},
    {"export-file", 0, NEED, NULL, TRIAL, DT_VAL_FILE, 0, 0},
#if DT_SLURM_AT_LEAST(25, 5)
    {"external", 0, NONE, NULL, REFUSE, 0, WHY_EXTERNAL, 0},
#endif
#if DT_SLURM_AT_LEAST(23, 2)
    {"extra", 0, NEED, NULL, TRIAL, 0, 0, 0},
#endif
    {"extra-node-info", 'B', NEED, NULL, SHAPE, 0, 0, 0},
    {"get-user-env", 0, DT_SLURM_AT_LEAST(25, 11) ? NONE : MAY, "SBATCH_GET_USER_ENV", TRIAL, 0, 0,
     0},
    {"gid", 0, NEED, NULL, TUNER, 0, 0, 0},
    {"gpu-bind", 0, NEED, "SBATCH_GPU_BIND", TRIAL, 0, 0, 0},
    {"gpu-freq", 0, NEED, "SBATCH_GPU_FREQ", TRIAL, 0, 0, 0},
    {"gpus", 'G', NEED, "SBATCH_GPUS", SHAPE, 0, 0, 0},
    {"gpus-per-node", 0, NEED, "SBATCH_GPUS_PER_NODE", SHAPE, 0, 0, 0},
    {"gpus-per-socket", 0, NEED, "SBATCH_GPUS_PER_SOCKET", SHAPE, 0, 0, 0},
    {"gpus-per-task", 0, NEED, "SBATCH_GPUS_PER_TASK", SHAPE, 0, 0, 0},
    {"gres", 0, NEED, "SBATCH_GRES", SHAPE, 0, 0, 0},
    {"gres-flags", 0, NEED, "SBATCH_GRES_FLAGS", TRIAL, 0, 0, 0},
    {"help", 'h', NONE, NULL, TUNER, 0, 0, 0},
    {"hint", 0, NEED, "SBATCH_HINT", TRIAL, 0, 0, 0},
    {"hold", 'H', NONE, NULL, TUNER, 0, 0, 0},
    {"ignore-pbs", 0, NONE, "SBATCH_IGNORE_PBS", TRIAL, 0, 0, 0},
    {"input", 'i', NEED, "SBATCH_INPUT", TUNER, 0, 0, 0},
    {"job-name", 'J', NEED, "SBATCH_JOB_NAME", TUNER, 0, 0, 0},
    {"kill-on-invalid-dep", 0, NEED, NULL, TUNER, 0, 0, 0},
    {"licenses", 'L', NEED, NULL, LEADER, 0, 0, 0},
    {"mail-type", 0, NEED, NULL, LEADER, 0, 0, 0},
    {"mail-user", 0, NEED, NULL, LEADER, 0, 0, 0},
    {"mcs-label", 0, NEED, NULL, TRIAL, 0, 0, 0},
    {"mem", 0, NEED, "SBATCH_MEM_PER_NODE", SHAPE, DT_VAL_MEM, 0, 0},
    {"mem-bind", 0, NEED, "SBATCH_MEM_BIND", TRIAL, 0, 0, 0},
    {"mem-per-cpu", 0, NEED, "SBATCH_MEM_PER_CPU", SHAPE, DT_VAL_MEM, 0, 0},
    {"mem-per-gpu", 0, NEED, "SBATCH_MEM_PER_GPU", SHAPE, DT_VAL_MEM, 0, 0},
#if DT_SLURM_AT_LEAST(26, 5)
    {"mem-update", 0, NEED, NULL, TRIAL, 0, 0, 0},
#endif
    {"mincpus", 0, NEED, NULL, SHAPE, DT_VAL_COUNT, 0, 0},
    {"network", 0, NEED, "SBATCH_NETWORK", TRIAL, 0, 0, 0},
    {"nice", 0, MAY, NULL, TRIAL, 0, 0, 0},
    {"no-kill", 'k', MAY, "SBATCH_NO_KILL", TRIAL, 0, 0, 0},
    {"no-requeue", 0, NONE, "SBATCH_NO_REQUEUE", TUNER, 0, 0, 0},
    {"nodefile", 'F', NEED, NULL, TRIAL, 0, 0, 0},
    {"nodelist", 'w', NEED, NULL, TRIAL, 0, 0, 0},
    {"nodes", 'N', NEED, NULL, SHAPE, DT_VAL_NODES, 0, 0},
    {"ntasks", 'n', NEED, NULL, SHAPE, DT_VAL_COUNT, 0, 0},
    {"ntasks-per-core", 0, NEED, NULL, SHAPE, DT_VAL_COUNT, 0, 0},
    {"ntasks-per-gpu", 0, NEED, NULL, SHAPE, DT_VAL_COUNT, 0, 0},
    {"ntasks-per-node", 0, NEED, NULL, SHAPE, DT_VAL_COUNT, 0, 0},
    {"ntasks-per-socket", 0, NEED, NULL, SHAPE, DT_VAL_COUNT, 0, 0},
    {"ntasks-per-tres", 0, NEED, NULL, SHAPE, DT_VAL_COUNT, 0, 0},
#if DT_SLURM_AT_LEAST(24, 11)
    {"oom-kill-step", 0, MAY, NULL, TRIAL, 0, 0, 0},
#endif
    {"open-mode", 0, NEED, "SBATCH_OPEN_MODE", TUNER, 0, 0, 0},
    {"output", 'o', NEED, "SBATCH_OUTPUT", TUNER, 0, 0, 0},
    {"overcommit", 'O', NONE, "SBATCH_OVERCOMMIT", TRIAL, 0, 0, 0},
    {"oversubscribe", 's', NONE, NULL, TRIAL, 0, 0, 0},
    {"parsable", 0, NONE, NULL, TUNER, 0, 0, 0},
    {"partition", 'p', NEED, "SBATCH_PARTITION", TRIAL, 0, 0, 0},
#if !DT_SLURM_AT_LEAST(24, 5)
    {"power", 0, NEED, "SBATCH_POWER", TRIAL, 0, 0, 0},
#endif
#if DT_SLURM_AT_LEAST(22, 5)
    {"prefer", 0, NEED, NULL, TRIAL, 0, 0, 0},
#endif
    {"priority", 0, NEED, NULL, TRIAL, 0, 0, 0},
    {"profile", 0, NEED, "SBATCH_PROFILE", TRIAL, 0, 0, 0},
    {"propagate", 0, MAY, NULL, TRIAL, 0, 0, 0},
    {"qos", 'q', NEED, "SBATCH_QOS", TRIAL, 0, 0, 0},
    {"quiet", 'Q', NONE, NULL, TUNER, 0, 0, 0},
    {"reboot", 0, NONE, NULL, TRIAL, 0, 0, 0},
    {"requeue", 0, DT_SLURM_AT_LEAST(25, 11) ? MAY : NONE, "SBATCH_REQUEUE", TUNER, 0, 0, 0},
    {"reservation", 0, NEED, "SBATCH_RESERVATION", TRIAL, 0, 0, 0},
#if DT_SLURM_AT_LEAST(25, 11)
    {"resources", 0, NEED, NULL, LEADER, 0, 0, 0},
#endif
#if DT_SLURM_AT_LEAST(24, 5)
    {"resv-ports", 0, MAY, NULL, TRIAL, 0, 0, 0},
    {"segment", 0, NEED, "SBATCH_SEGMENT_SIZE", TRIAL, 0, 0, 0},
#endif
    {"signal", 0, NEED, "SBATCH_SIGNAL", TRIAL, 0, 0, 0},
    {"sockets-per-node", 0, NEED, NULL, SHAPE, DT_VAL_COUNT, 0, 0},
    {"spread-job", 0, NONE, "SBATCH_SPREAD_JOB", TRIAL, 0, 0, 0},
#if DT_SLURM_AT_LEAST(25, 11)
    {"spread-segments", 0, NONE, "SBATCH_SPREAD_SEGMENTS", TRIAL, 0, 0, 0},
#endif
#if DT_SLURM_AT_LEAST(24, 5)
    {"stepmgr", 0, NONE, NULL, TRIAL, 0, 0, 0},
#endif
    {"switches", 0, NEED, NULL, TRIAL, DT_VAL_SWITCHES, 0, 0},
    {"tasks-per-node", 0, NEED, NULL, SHAPE, DT_VAL_COUNT, 0, "ntasks-per-node"},
    {"test-only", 0, NONE, NULL, REFUSE, 0, WHY_TEST, 0},
    {"thread-spec", 0, NEED, "SBATCH_THREAD_SPEC", TRIAL, 0, 0, 0},
    {"threads-per-core", 0, NEED, "SBATCH_THREADS_PER_CORE", TRIAL, DT_VAL_COUNT, 0, 0},
    {"time", 't', NEED, "SBATCH_TIMELIMIT", TRIAL, DT_VAL_TIME, 0, 0},
    {"time-min", 0, NEED, NULL, TRIAL, DT_VAL_TIME, 0, 0},
    {"tmp", 0, NEED, NULL, SHAPE, DT_VAL_MEM, 0, 0},
#if DT_SLURM_AT_LEAST(23, 11)
    {"tres-bind", 0, NEED, "SBATCH_TRES_BIND", TRIAL, 0, 0, 0},
#endif
#if DT_SLURM_AT_LEAST(23, 2)
    {"tres-per-task", 0, NEED, "SBATCH_TRES_PER_TASK", SHAPE, 0, 0, 0},
#endif
    {"uid", 0, NEED, NULL, TUNER, 0, 0, 0},
    {"usage", 0, NONE, NULL, TUNER, 0, 0, 0},
    {"use-min-nodes", 0, NONE, "SBATCH_USE_MIN_NODES", TRIAL, 0, 0, 0},
    {"verbose", 'v', NONE, "SBATCH_DEBUG", TUNER, 0, 0, 0},
    {"version", 'V', NONE, NULL, TUNER, 0, 0, 0},
    {"wait", 'W', NONE, "SBATCH_WAIT", TUNER, 0, 0, 0},
    {"wait-all-nodes", 0, NEED, "SBATCH_WAIT_ALL_NODES", TRIAL, DT_VAL_COUNT0, 0, 0},
    {"wckey", 0, NEED, "SBATCH_WCKEY", TRIAL, 0, 0, 0},
    {"wrap", 0, NEED, NULL, TUNER, 0, 0, 0},
    /* ours, as in plugin/options.h; the last two are dt-sbatch's alone */
    {"dt-tune", 0, MAY, NULL, DT_OPT_DT, 0, 0, 0},
    {"dt-ps", 0, NEED, NULL, DT_OPT_DT, 0, 0, 0},
    {"dt-workers", 0, NEED, NULL, DT_OPT_DT, 0, 0, 0},
    {"dt-param", 0, NEED, NULL, DT_OPT_DT, 0, 0, 0},
    {"dt-objective", 0, NEED, NULL, DT_OPT_DT, 0, 0, 0},
    {"dt-target", 0, NEED, NULL, DT_OPT_DT, 0, 0, 0},
    {"dt-max-configs", 0, NEED, NULL, DT_OPT_DT, 0, 0, 0},
    {"dt-min-improve", 0, NEED, NULL, DT_OPT_DT, 0, 0, 0},
    {"dt-parallel", 0, NEED, NULL, DT_OPT_DT, 0, 0, 0},
    {"dt-deadline", 0, NEED, NULL, DT_OPT_DT, 0, 0, 0},
    {"dt-repeats", 0, NEED, NULL, DT_OPT_DT, 0, 0, 0},
    {"dt-max-node-hours", 0, NEED, NULL, DT_OPT_DT, 0, 0, 0},
    {"dt-layout", 0, NEED, NULL, DT_OPT_DT, 0, 0, 0},
    {"dt-dry-run", 0, NONE, NULL, DT_OPT_DT, 0, 0, 0},
    {"dt-resume", 0, NEED, NULL, DT_OPT_DT, 0, 0, 0},
    {"dt-apply", 0, MAY, NULL, DT_OPT_DT, 0, 0, 0},
    {"dt-config", 0, NEED, NULL, DT_OPT_DT, 0, 0, 0},
    {"here", 0, NONE, NULL, DT_OPT_DT, 0, 0, 0},
    {NULL, 0, 0, NULL, 0, 0, 0, 0},
};

const struct dt_sbatch_option *dt_sbatch_option_find(const char *name)
{
    for (const struct dt_sbatch_option *o = dt_sbatch_options; o->name; o++)
        if (strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

const char *const *dt_sbatch_rivals(const char *name)
{
    /* Groups that share one place in the job: within one the last given counts. */
    static const char *const groups[][3] = {
        {"exclusive", "oversubscribe", NULL},
        {"requeue", "no-requeue", NULL},
    };
    for (size_t g = 0; g < sizeof(groups) / sizeof(*groups); g++)
        for (size_t i = 0; groups[g][i]; i++)
            if (strcmp(groups[g][i], name) == 0)
                return groups[g];
    static const char *const nobody[] = {NULL};
    return nobody;
}

static bool is_count(const char *s, long least)
{
    char *end;
    errno = 0;
    long n = strtol(s, &end, 10);
    return end != s && !*end && !errno && n >= least;
}

/* A number of nodes, k or m behind it; -1 where there is none, -2 where it is something else. */
static long node_count(const char *s)
{
    char *end;
    long n = strtol(s, &end, 10);
    if (end == s)
        n = -1;
    else if (n < 0 || n > INT_MAX)
        return -2;
    else if (*end && strchr("kKmM", *end))
        end++;
    return end[strspn(end, " \t")] ? -2 : n;
}

static bool is_nodes(const char *s)
{
    if (DT_SLURM_AT_LEAST(23, 11) && strpbrk(s, ",:"))
        return true; /* a list of sizes; slurmctld judges it */
    const char *dash = strchr(s, '-');
    if (!dash)
        return node_count(s) >= 0;
    char *first = dt_xstrndup(s, (size_t)(dash - s));
    long min = node_count(first), max = node_count(dash + 1);
    free(first);
    return min >= -1 && max >= (min < 0 ? 1 : min); /* "-4" is 1-4 */
}

static bool is_mem(const char *s)
{
    char *end;
    errno = 0;
    long long n = strtoll(s, &end, 10);
    if (end == s || errno || n < 0)
        return false;
    if (!*end)
        return true;
    if (!strchr("kKmMgGtT", *end++))
        return false;
    return !*end || ((*end == 'b' || *end == 'B') && !end[1]);
}

/* Minutes, or colons and a dash with a number on either side; words are the two that Slurm knows.
 */
static bool is_time(const char *s)
{
    int numbers = 0, dashes = 0, colons = 0;
    if (!strcasecmp(s, "UNLIMITED") || !strcasecmp(s, "INFINITE") || !strcmp(s, "-1"))
        return true;
    for (const char *p = s; *p; p++) {
        if (isdigit((unsigned char)*p))
            numbers += p == s || !isdigit((unsigned char)p[-1]);
        else if (*p == '-' && !colons)
            dashes++;
        else if (*p == ':')
            colons++;
        else
            return false;
    }
    if (!numbers || dashes > 1 || colons > 2)
        return false;
    return colons == 0 || numbers >= colons + 1 + dashes;
}

static bool is_switches(const char *s)
{
    const char *at = strchr(s, '@');
    char *count = dt_xstrndup(s, at ? (size_t)(at - s) : strlen(s));
    bool ok = is_count(count, 1);
    free(count);
    return ok;
}

const char *dt_sbatch_value_fault(const struct dt_sbatch_option *def, const char *value)
{
    switch (def->value) {
    case DT_VAL_ANY:
        break;
    case DT_VAL_COUNT:
        return is_count(value, 1) ? NULL : "a whole number above 0 is needed";
    case DT_VAL_COUNT0:
        return is_count(value, 0) ? NULL : "a whole number is needed";
    case DT_VAL_NODES:
        return is_nodes(value) ? NULL : "a number of nodes or a range (2-4) is needed";
    case DT_VAL_MEM:
        return is_mem(value) ? NULL : "an amount in MiB, or with K, M, G or T behind it, is needed";
    case DT_VAL_TIME:
        return is_time(value) ? NULL
                              : "a time is needed: minutes, MM:SS, HH:MM:SS, D-HH or D-HH:MM:SS";
    case DT_VAL_SWITCHES:
        return is_switches(value) ? NULL : "COUNT or COUNT@TIME is needed";
    case DT_VAL_FILE:
        return is_count(value, 0) ? "an open file can be read only once, and every trial needs it: "
                                    "give the file's name"
                                  : NULL;
    }
    return NULL;
}
