#include "launch/launch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* What an option of srun means when all roles of a trial are to be started. */
enum meaning {
    PASS, /* goes to every role's srun */
    DROP, /* the trial's configuration decides it */
    REAL, /* the caller wants something else than the roles: srun itself */
    NTASKS,
    NODES,
    PER_NODE,
    KILL,  /* --kill-on-bad-exit */
    FILE_, /* --output, --error: passed on */
};

struct srun_option {
    const char *name;
    char letter; /* 0: long only */
    char arg;    /* 0 none, 'r' required, 'o' optional */
    enum meaning meaning;
};

/* clang-format off */
/* srun's options of Slurm 22.05 to 26.05, and pyxis', whose values may stand as a word alone. */
static const struct srun_option options[] = {
    {"accel-bind", 0, 'r', DROP}, {"account", 'A', 'r', PASS}, {"acctg-freq", 0, 'r', PASS},
    {"async", 0, 0, REAL}, {"autocomplete", 0, 'r', REAL}, {"bb", 0, 'r', PASS},
    {"bbf", 0, 'r', PASS},
    {"bcast", 0, 'o', DROP}, {"bcast-exclude", 0, 'r', DROP}, {"begin", 'b', 'r', PASS},
    {"bell", 0, 0, PASS}, {"chdir", 'D', 'r', PASS}, {"cluster", 0, 'r', REAL},
    {"cluster-constraint", 0, 'r', PASS}, {"clusters", 'M', 'r', REAL}, {"comment", 0, 'r', PASS},
    {"compress", 0, 'o', DROP}, {"consolidate-segments", 0, 0, PASS},
    {"constraint", 'C', 'r', PASS},
    {"container", 0, 'r', PASS}, {"container-id", 0, 'r', PASS}, {"contiguous", 0, 0, PASS},
    {"container-env", 0, 'r', PASS}, {"container-entrypoint", 0, 0, PASS},
    {"container-image", 0, 'r', PASS}, {"container-mount-home", 0, 0, PASS},
    {"container-mounts", 0, 'r', PASS}, {"container-name", 0, 'r', PASS},
    {"container-readonly", 0, 0, PASS}, {"container-remap-root", 0, 0, PASS},
    {"container-save", 0, 'r', PASS}, {"container-workdir", 0, 'r', PASS},
    {"container-writable", 0, 0, PASS}, {"no-container-entrypoint", 0, 0, PASS},
    {"no-container-mount-home", 0, 0, PASS}, {"no-container-remap-root", 0, 0, PASS},
    {"core-spec", 'S', 'r', PASS}, {"cores-per-socket", 0, 'r', DROP}, {"cpu-bind", 0, 'r', PASS},
    {"cpu-freq", 0, 'r', PASS}, {"cpu_bind", 0, 'r', PASS}, {"cpus-per-gpu", 0, 'r', DROP},
    {"cpus-per-task", 'c', 'r', DROP}, {"deadline", 0, 'r', PASS}, {"debugger-test", 0, 0, REAL},
    {"delay-boot", 0, 'r', PASS}, {"dependency", 'd', 'r', PASS}, {"disable-status", 'X', 0, PASS},
    {"distribution", 'm', 'r', DROP}, {"epilog", 0, 'r', PASS}, {"error", 'e', 'r', FILE_},
    {"exact", 0, 0, DROP}, {"exclude", 'x', 'r', REAL}, {"exclusive", 0, 'o', DROP},
    {"export", 0, 'r', PASS}, {"external", 0, 0, REAL}, {"external-launcher", 0, 'o', REAL},
    {"extra", 0, 'r', PASS}, {"extra-node-info", 'B', 'r', DROP}, {"gid", 0, 'r', PASS},
    {"gpu-bind", 0, 'r', DROP}, {"gpu-freq", 0, 'r', PASS}, {"gpus", 'G', 'r', DROP},
    {"gpus-per-node", 0, 'r', DROP}, {"gpus-per-socket", 0, 'r', DROP},
    {"gpus-per-task", 0, 'r', DROP},
    {"gres", 0, 'r', DROP}, {"gres-flags", 0, 'r', DROP}, {"help", 'h', 0, REAL},
    {"het-group", 0, 'r', REAL}, {"hint", 0, 'r', PASS}, {"hold", 'H', 0, PASS},
    {"ignore-signals", 0, 'r', PASS}, {"immediate", 'I', 'o', PASS}, {"input", 'i', 'r', PASS},
    {"interactive", 0, 0, REAL}, {"job-name", 'J', 'r', PASS}, {"jobid", 0, 'r', REAL},
    {"kill-on-bad-exit", 'K', 'o', KILL}, {"label", 'l', 0, PASS}, {"licenses", 'L', 'r', PASS},
    {"mail-type", 0, 'r', PASS}, {"mail-user", 0, 'r', PASS}, {"mcs-label", 0, 'r', PASS},
    {"mem", 0, 'r', DROP}, {"mem-bind", 0, 'r', PASS}, {"mem_bind", 0, 'r', PASS},
    {"mem-per-cpu", 0, 'r', DROP}, {"mem-per-gpu", 0, 'r', DROP}, {"mincpus", 0, 'r', DROP},
    {"mpi", 0, 'r', PASS}, {"msg-timeout", 0, 'r', PASS}, {"multi-prog", 0, 0, REAL},
    {"network", 0, 'r', PASS}, {"nice", 0, 'o', PASS}, {"no-allocate", 'Z', 0, REAL},
    {"no-kill", 'k', 'o', PASS}, {"nodefile", 'F', 'r', REAL}, {"nodelist", 'w', 'r', REAL},
    {"nodes", 'N', 'r', NODES}, {"ntasks", 'n', 'r', NTASKS}, {"ntasks-per-core", 0, 'r', DROP},
    {"ntasks-per-gpu", 0, 'r', DROP}, {"ntasks-per-node", 0, 'r', PER_NODE},
    {"ntasks-per-socket", 0, 'r', DROP}, {"ntasks-per-tres", 0, 'r', DROP},
    {"oom-kill-step", 0, 'o', PASS}, {"open-mode", 0, 'r', PASS}, {"output", 'o', 'r', FILE_},
    {"overcommit", 'O', 0, PASS}, {"overlap", 0, 'o', DROP}, {"oversubscribe", 's', 0, DROP},
    {"pack-group", 0, 'r', REAL}, {"partition", 'p', 'r', PASS}, {"power", 0, 'r', PASS},
    {"prefer", 0, 'r', PASS}, {"preserve-env", 'E', 0, PASS}, {"priority", 0, 'r', PASS},
    {"profile", 0, 'r', PASS}, {"prolog", 0, 'r', PASS}, {"propagate", 0, 'o', PASS},
    {"pty", 0, 'o', REAL}, {"qos", 'q', 'r', PASS}, {"quiet", 'Q', 0, PASS},
    {"quit-on-interrupt", 0, 0, PASS}, {"reboot", 0, 0, PASS}, {"relative", 'r', 'r', REAL},
    {"reservation", 0, 'r', PASS}, {"resv-ports", 0, 'o', PASS}, {"segment", 0, 'r', PASS},
    {"send-libs", 0, 'o', DROP}, {"signal", 0, 'r', PASS}, {"slurmd-debug", 0, 'r', PASS},
    {"sockets-per-node", 0, 'r', DROP}, {"spread-job", 0, 0, DROP}, {"spread-segments", 0, 0, PASS},
    {"stepmgr", 0, 0, PASS}, {"switches", 0, 'r', PASS}, {"task-epilog", 0, 'r', PASS},
    {"task-prolog", 0, 'r', PASS}, {"tasks-per-node", 0, 'r', PER_NODE}, {"test-only", 0, 0, REAL},
    {"thread-spec", 0, 'r', PASS}, {"threads", 'T', 'r', PASS}, {"threads-per-core", 0, 'r', PASS},
    {"time", 't', 'r', PASS}, {"time-min", 0, 'r', PASS}, {"tmp", 0, 'r', DROP},
    {"treewidth", 0, 'r', PASS}, {"tres-bind", 0, 'r', DROP}, {"tres-per-task", 0, 'r', DROP},
    {"uid", 0, 'r', PASS}, {"unbuffered", 'u', 0, PASS}, {"usage", 0, 0, REAL},
    {"use-min-nodes", 0, 0, DROP}, {"verbose", 'v', 0, PASS}, {"version", 'V', 0, REAL},
    {"wait", 'W', 'r', PASS}, {"wait-for-children", 0, 0, PASS}, {"wckey", 0, 'r', PASS},
    {"whole", 0, 0, DROP}, {"x11", 0, 'o', PASS},
};
/* clang-format on */
#define N_OPTIONS (sizeof(options) / sizeof(*options))

static const struct srun_option *find_letter(char letter)
{
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (letter && options[i].letter == letter)
            return &options[i];
    return NULL;
}

/* The whole name, or the only one that starts so. */
static const struct srun_option *find_long(const char *word, size_t n, bool *ambiguous)
{
    const struct srun_option *found = NULL;
    *ambiguous = false;
    for (size_t i = 0; i < N_OPTIONS; i++) {
        if (strncmp(options[i].name, word, n) != 0)
            continue;
        if (options[i].name[n] == '\0') {
            *ambiguous = false;
            return &options[i];
        }
        *ambiguous |= found != NULL;
        found = &options[i];
    }
    return *ambiguous ? NULL : found;
}

struct counts {
    int tasks, nodes, per_node; /* 0: not given; -1: given as something else than a number */
};

static int number(const char *value)
{
    int64_t n;
    return value && dt_parse_int64(value, &n) == 0 && n > 0 && n < 1000000 ? (int)n : -1;
}

static void note(struct dt_shim *s, struct counts *c, const struct srun_option *o,
                 const char *value)
{
    switch (o->meaning) {
    case PASS:
        break;
    case FILE_:
        s->to_file = true;
        break;
    case KILL:
        s->keep_going = value && strcmp(value, "0") == 0;
        break;
    case DROP:
        dt_strv_addf(&s->dropped, "--%s", o->name);
        return;
    case REAL:
        s->kind = DT_SHIM_REAL;
        if (strcmp(o->name, "nodelist") == 0)
            s->nodelist = value;
        return;
    case NTASKS:
        c->tasks = number(value);
        return;
    case NODES:
        c->nodes = number(value);
        return;
    case PER_NODE:
        c->per_node = number(value);
        return;
    }
    if (value)
        dt_strv_addf(&s->pass, "--%s=%s", o->name, value);
    else
        dt_strv_addf(&s->pass, "--%s", o->name);
}

/* argv[i] is "--name", "--name=value" or a foreign option; returns the index of the next word. */
static int read_long(int argc, char **argv, int i, struct dt_shim *s, struct counts *c)
{
    const char *word = argv[i] + 2, *equals = strchr(word, '=');
    bool ambiguous;
    const struct srun_option *o =
        find_long(word, equals ? (size_t)(equals - word) : strlen(word), &ambiguous);
    const char *value = equals ? equals + 1 : NULL;
    if (!o) {
        if (ambiguous)
            s->kind = DT_SHIM_REAL; /* srun will say so */
        /* another plugin's option: only with "=" can its value be told from PROGRAM */
        dt_strv_add(&s->pass, argv[i]);
        return i + 1;
    }
    if (o->arg == 'r' && !value && i + 1 < argc)
        value = argv[++i];
    note(s, c, o, value);
    return i + 1;
}

/* argv[i] is a bundle of letters: -lu, -n4, -n 4. */
static int read_letters(int argc, char **argv, int i, struct dt_shim *s, struct counts *c)
{
    for (const char *l = argv[i] + 1; *l; l++) {
        const struct srun_option *o = find_letter(*l);
        if (!o) {
            s->kind = DT_SHIM_REAL; /* srun will say what is wrong */
            return i + 1;
        }
        if (!o->arg) {
            note(s, c, o, NULL);
            continue;
        }
        const char *value = l[1] ? l + 1 : NULL;
        if (!value && o->arg == 'r' && i + 1 < argc)
            value = argv[++i];
        note(s, c, o, value);
        break;
    }
    return i + 1;
}

/* Does what was asked for come to the whole trial? */
static bool means_all(const struct counts *c, const int *counts, size_t n, int nodes)
{
    int asked = c->tasks;
    if (!asked && c->nodes > 0 && c->per_node > 0)
        asked = c->nodes * c->per_node;
    if (!asked && c->nodes) {
        if (c->nodes == nodes)
            return true;
        asked = c->nodes;
    }
    if (!asked)
        return true;
    for (size_t i = 0; i < n; i++)
        if (counts[i] > 0 && counts[i] == asked)
            return true;
    return false;
}

static bool is_named(const char *program, const char *const *names, size_t n)
{
    const char *slash = strrchr(program, '/');
    for (size_t i = 0; i < n; i++)
        if (strcmp(slash ? slash + 1 : program, names[i]) == 0)
            return true;
    return false;
}

/* What an mpirun starts by srun on every node, whatever the number of tasks. Open MPI's starts what
 * is on its own node by itself. */
static bool is_hydra(const char *program)
{
    static const char *const names[] = {"hydra_pmi_proxy", "hydra_bstrap_proxy", "pmi_proxy"};
    return is_named(program, names, sizeof(names) / sizeof(*names));
}

static bool is_mpi_daemon(const char *program)
{
    static const char *const names[] = {"orted", "prted"};
    return is_hydra(program) || is_named(program, names, sizeof(names) / sizeof(*names));
}

void dt_shim_parse(int argc, char **argv, const int *counts, size_t n_counts, int nodes,
                   struct dt_shim *s)
{
    struct counts c = {0};
    int i = 1;
    *s = (struct dt_shim){.kind = DT_SHIM_ROLES};
    while (i < argc && argv[i][0] == '-' && argv[i][1]) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        i = argv[i][1] == '-' ? read_long(argc, argv, i, s, &c)
                              : read_letters(argc, argv, i, s, &c);
    }
    s->program = i;
    s->tasks = c.tasks;
    s->nodes = c.nodes;
    if (c.per_node && !c.nodes)
        dt_strv_add(&s->dropped, "--ntasks-per-node");
    if (i >= argc || !means_all(&c, counts, n_counts, nodes))
        s->kind = DT_SHIM_REAL;
    /* to srun, but not to dt-launch, a lone colon begins another het component's command */
    const char *slash = strrchr(argv[0], '/');
    bool is_srun = strcmp(slash ? slash + 1 : argv[0], "srun") == 0;
    for (int k = i; k < argc && is_srun; k++)
        if (strcmp(argv[k], ":") == 0 || (k == i && is_mpi_daemon(argv[k])))
            s->kind = DT_SHIM_REAL;
    s->hydra = is_srun && i < argc && is_hydra(argv[i]);
}

void dt_shim_free(struct dt_shim *s)
{
    dt_strv_free(&s->pass);
    dt_strv_free(&s->dropped);
}

/* The trial's nodes, as many of them as srun can use: newer versions (24.11) refuse a list of more.
 */
static void add_nodelist(const char *nodes, char **argv, struct dt_strv *out)
{
    struct dt_strv names = DT_STRV_INIT;
    struct dt_shim s;
    int argc = 0, limit;
    while (argv[argc])
        argc++;
    dt_shim_parse(argc, argv, NULL, 0, 0, &s);
    limit = s.tasks ? s.tasks : number(getenv("SLURM_NTASKS"));
    if (s.nodes > 0 && (limit <= 0 || s.nodes < limit))
        limit = s.nodes;
    dt_strv_split(&names, nodes, ",");
    if (limit > 0 && (size_t)limit < names.n) {
        char count[16];
        snprintf(count, sizeof(count), "%d", limit);
        setenv("SLURM_NNODES", count, 1);
        while (names.n > (size_t)limit)
            free(names.v[--names.n]);
    }
    char *list = dt_strv_join(&names, ",");
    dt_strv_addf(out, "--nodelist=%s", list);
    free(list);
    dt_strv_free(&names);
    dt_shim_free(&s);
}

/* In layout steps srun sees the whole allocation: such a step runs beside the trial's roles, on its
 * nodes, and takes from no other trial what it was given. */
static void stay_in_share(char **asked, struct dt_strv *argv)
{
    const char *name = getenv("DT_SHARE"), *nodes = getenv("DT_SHARE_NODES");
    const char *ours = getenv("DT_SHARE_JOB"), *job = getenv("SLURM_JOB_ID");
    if (!name || !nodes || !ours || !job || strcmp(ours, job) != 0)
        return;
    dt_strv_addf(argv, "--job-name=%s.srun", name);
    add_nodelist(nodes, asked, argv);
    setenv("SLURM_OVERLAP", "1", 1);
    setenv("SLURM_EXACT", "1", 1);
    setenv("SLURM_MEM_PER_NODE", "0", 1);
    unsetenv("SLURM_MEM_PER_CPU");
    /* a task's own binding: the step's CPUs may be others */
    unsetenv("SLURM_CPU_BIND");
    unsetenv("SLURM_CPU_BIND_LIST");
    unsetenv("SLURM_CPU_BIND_TYPE");
    unsetenv("SLURM_CPU_BIND_VERBOSE");
}

/* srun as it was meant, with the counts that Slurm itself had set. */
static int exec_srun(const char *srun, char **argv)
{
    struct dt_strv real = DT_STRV_INIT;
    const char *tasks = getenv("DT_SLURM_NTASKS");
    if (tasks && *tasks) {
        setenv("SLURM_NTASKS", tasks, 1);
        setenv("SLURM_NPROCS", tasks, 1);
    } else if (tasks) {
        unsetenv("SLURM_NTASKS");
        unsetenv("SLURM_NPROCS");
    }
    dt_strv_add(&real, srun);
    stay_in_share(argv, &real);
    dt_strv_addv(&real, argv + 1);
    execv(srun, real.v);
    fprintf(stderr, "dt-launch: cannot start %s: %s\n", srun, strerror(errno));
    return 127;
}

static void tell_dropped(const struct dt_shim *s)
{
    if (!s->dropped.n)
        return;
    char *names = dt_strv_join(&s->dropped, " ");
    fprintf(stderr, "dt-launch: left out, this trial's configuration decides: %s\n", names);
    free(names);
}

/* mpiexec would wait for its processes for ever. But first it is to hand on what was said here. */
static void end_mpiexec(void)
{
    struct timespec moment = {0, 50 * 1000 * 1000};
    int unread;
    for (int i = 0; i < 100 && ioctl(STDERR_FILENO, FIONREAD, &unread) == 0 && unread > 0; i++)
        nanosleep(&moment, NULL);
    nanosleep(&moment, NULL);
    kill(getppid(), SIGTERM);
}

static int start_roles(struct dt_launch_plan *p, int argc, char **argv, bool as_srun,
                       const char *srun, struct dt_error *e)
{
    struct dt_shim s;
    int counts[] = {(int)p->n_tasks, p->submitted_tasks}, rc;
    const char *nodes = getenv("SLURM_JOB_NUM_NODES");
    dt_shim_parse(argc, argv, counts, 2, nodes ? atoi(nodes) : 0, &s);
    if (s.hydra && p->steps) {
        dt_hydra_exec(p, srun, &s, argv + s.program, e);
        fprintf(stderr, "dt-launch: %s\n", e->text);
        end_mpiexec();
        rc = 2;
    } else if (s.kind == DT_SHIM_REAL) {
        if (s.program >= argc && !as_srun)
            rc = dt_fail(e, "which program? see dt-launch --help");
        else
            rc = exec_srun(srun, argv);
    } else {
        tell_dropped(&s);
        rc = dt_steps_run(p, srun, &s, argv + s.program, e);
    }
    dt_shim_free(&s);
    return rc;
}

/* A job that was submitted from within a trial has the trial's environment, but is none. */
static void leave_other_trial(void)
{
    const char *ours = getenv("DT_PLAN_JOB"), *job = getenv("SLURM_JOB_ID");
    if (!ours || (job && strcmp(ours, job) == 0))
        return;
    unsetenv("DT_PLAN");
    unsetenv("DT_PLAN_JOB");
    unsetenv("DT_SLURM_NTASKS");
}

int dt_shim_main(int argc, char **argv, bool as_srun)
{
    struct dt_error e = DT_ERROR_INIT;
    leave_other_trial();
    char *self = dt_self_exe(&e), *srun = self ? dt_find_program("srun", self) : NULL;
    int rc = -1;
    if (!self || !srun) {
        dt_fail(&e, "srun is not on PATH: is this a Slurm node?");
    } else if (getenv("DT_ROLE")) {
        /* a task's own srun concerns the task, not the trial */
        rc = as_srun ? exec_srun(srun, argv) : dt_fail(&e, "is already running in this task");
    } else if (as_srun && !getenv("DT_PLAN")) {
        rc = exec_srun(srun, argv);
    } else {
        struct dt_launch_plan *p = dt_launch_plan_read(environ, &e);
        if (p)
            rc = start_roles(p, argc, argv, as_srun, srun, &e);
        dt_launch_plan_free(p);
    }
    if (rc < 0) {
        fprintf(stderr, "dt-launch: %s\n", e.text);
        rc = 2;
    }
    dt_error_clear(&e);
    free(srun);
    free(self);
    return rc;
}
