#include "launch/launch.h"

#include <stdlib.h>
#include <string.h>

#define MAX_COUNT 1000000

const char *dt_launch_getenv(char *const *env, const char *name)
{
    size_t n = strlen(name);
    for (; env && *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}

void dt_launch_setenv(struct dt_strv *env, const char *name, const char *value)
{
    size_t n = strlen(name);
    char *entry = dt_xasprintf("%s=%s", name, value);
    for (size_t i = 0; i < env->n; i++) {
        if (strncmp(env->v[i], name, n) == 0 && env->v[i][n] == '=') {
            free(env->v[i]);
            env->v[i] = entry;
            return;
        }
    }
    dt_strv_take(env, entry);
}

void dt_launch_unsetenv(struct dt_strv *env, const char *name)
{
    size_t n = strlen(name), kept = 0;
    for (size_t i = 0; i < env->n; i++) {
        if (strncmp(env->v[i], name, n) == 0 && env->v[i][n] == '=')
            free(env->v[i]);
        else
            env->v[kept++] = env->v[i];
    }
    env->n = kept;
    if (env->v)
        env->v[kept] = NULL;
}

/* NAME, or NAME_HET_GROUP_<group> in a heterogeneous job. */
static const char *group_env(char *const *env, const char *name, bool het, int group)
{
    if (!het)
        return dt_launch_getenv(env, name);
    char *full = dt_xasprintf("%s_HET_GROUP_%d", name, group);
    const char *value = dt_launch_getenv(env, full);
    free(full);
    return value;
}

static int env_int(const char *value, int fallback)
{
    int64_t n;
    if (!value || dt_parse_int64(value, &n) < 0 || n < 0 || n > MAX_COUNT)
        return fallback;
    return (int)n;
}

/* ---- roles ---- */

static int read_roles(struct dt_launch_plan *p, struct dt_error *e)
{
    struct json_object *roles = dt_json_get(p->json, "roles");
    if (dt_json_count(roles) == 0)
        return dt_fail(e, "DT_PLAN: has no \"roles\"; start this in a trial's own batch script");
    size_t n = dt_json_count(roles);
    p->roles = dt_xcalloc(n, sizeof(*p->roles));
    for (size_t i = 0; i < n; i++) {
        struct json_object *o = dt_json_at(roles, i);
        const char *name = dt_json_str(o, "name", NULL);
        int64_t count = dt_json_int(o, "count", 0), cpus = dt_json_int(o, "cpus", 1);
        int64_t gpus = dt_json_int(o, "gpus", 0);
        if (!name || count < 1 || count > MAX_COUNT || cpus < 1 || cpus > MAX_COUNT || gpus < 0 ||
            gpus > MAX_COUNT)
            return dt_fail(e, "DT_PLAN: role %zu needs a name and a count of at least 1", i);
        const char *type = dt_json_str(o, "gpu_type", NULL);
        p->roles[p->n_roles++] = (struct dt_launch_role){
            .name = dt_xstrdup(name),
            .count = (int)count,
            .cpus = (int)cpus,
            .gpus = (int)gpus,
            .gpu_type = type ? dt_xstrdup(type) : NULL,
            .gpus_shared = dt_json_bool(o, "gpus_shared", false),
            .group = p->het ? (int)i : 0,
            .mem_per_cpu = (int)dt_json_int(o, "mem_per_cpu", 0),
        };
    }
    return 0;
}

/* The sum of SLURM_TASKS_PER_NODE, which is there also where no number of tasks was asked for. */
static int slurm_tasks(char *const *env, bool het, int group)
{
    int *list, sum = 0;
    int n = dt_counts_expand(group_env(env, "SLURM_TASKS_PER_NODE", het, group), &list);
    for (int i = 0; i < n; i++)
        sum += list[i];
    free(list);
    return sum;
}

static void roles_of_plain_job(struct dt_launch_plan *p, char *const *env)
{
    size_t n = p->het ? 2 : 1;
    p->roles = dt_xcalloc(n, sizeof(*p->roles));
    for (size_t i = 0; i < n; i++) {
        const char *per_task = group_env(env, "SLURM_GPUS_PER_TASK", p->het, (int)i);
        int tasks = slurm_tasks(env, p->het, (int)i);
        if (tasks < 1)
            tasks = env_int(group_env(env, "SLURM_NTASKS", p->het, (int)i), 1);
        int gpus = 0;
        if (per_task) {
            const char *colon = strrchr(per_task, ':');
            gpus = env_int(colon ? colon + 1 : per_task, 1);
            p->bind_gpus = true;
        } else if (dt_launch_getenv(env, "SLURM_JOB_GPUS") ||
                   dt_launch_getenv(env, "SLURM_GPUS_ON_NODE") ||
                   group_env(env, "SLURM_GPUS_PER_NODE", p->het, (int)i)) {
            gpus = 1; /* how many does not matter: without binding a step sees all of its node */
        }
        p->roles[p->n_roles++] = (struct dt_launch_role){
            .name = dt_xstrdup(n == 2 && i == 0 ? "ps" : "worker"),
            .count = tasks < 1 ? 1 : tasks,
            .cpus = env_int(group_env(env, "SLURM_CPUS_PER_TASK", p->het, (int)i), 1),
            .gpus = gpus,
            .group = (int)i,
        };
    }
}

/* ---- nodes ---- */

static int read_group(struct dt_launch_plan *p, char *const *env, int group, struct dt_error *e)
{
    const char *list = group_env(env, "SLURM_JOB_NODELIST", p->het, group);
    struct dt_strv names = DT_STRV_INIT;
    int *cpus = NULL, *tasks = NULL, rc = 0;
    if (!list)
        return dt_fail(e, "%s is not set: start this inside a Slurm job",
                       p->het ? "SLURM_JOB_NODELIST_HET_GROUP_<n>" : "SLURM_JOB_NODELIST");
    if (dt_hostlist_expand(list, &names, e) < 0) {
        dt_strv_free(&names);
        return -1;
    }
    int n_cpus = dt_counts_expand(group_env(env, "SLURM_JOB_CPUS_PER_NODE", p->het, group), &cpus);
    int n_tasks = dt_counts_expand(group_env(env, "SLURM_TASKS_PER_NODE", p->het, group), &tasks);
    const char *gpus = group_env(env, "SLURM_GPUS_PER_NODE", p->het, group);
    const char *colon = gpus ? strrchr(gpus, ':') : NULL;
    p->nodes = dt_xrealloc(p->nodes, p->n_nodes + names.n, sizeof(*p->nodes));
    if (n_cpus != (int)names.n)
        rc = dt_fail(e, "SLURM_JOB_CPUS_PER_NODE does not fit the node list %s", list);
    for (size_t i = 0; i < names.n && rc == 0; i++)
        p->nodes[p->n_nodes++] = (struct dt_launch_node){
            .name = dt_xstrdup(names.v[i]),
            .group = group,
            .cpus = cpus[i],
            .gpus = env_int(colon ? colon + 1 : gpus, -1),
            .tasks = n_tasks == (int)names.n ? tasks[i] : 0,
        };
    dt_strv_free(&names);
    free(cpus);
    free(tasks);
    return rc;
}

/* ---- placement ---- */

struct room {
    int *cpus, *gpus; /* free, by node */
    int *counts;      /* tasks of the present role, by node */
};

static bool fits(const struct dt_launch_plan *p, const struct room *room,
                 const struct dt_launch_role *r, size_t node)
{
    return p->nodes[node].group == r->group && (p->overcommit || room->cpus[node] >= r->cpus) &&
           (p->nodes[node].gpus < 0 || r->gpus_shared || room->gpus[node] >= r->gpus);
}

/* Every task to a node with the fewest of its role, and of those the emptiest. */
static int spread(const struct dt_launch_plan *p, struct room *room, const struct dt_launch_role *r,
                  struct dt_error *e)
{
    for (int k = 0; k < r->count; k++) {
        size_t best = SIZE_MAX;
        for (size_t i = 0; i < p->n_nodes; i++) {
            if (!fits(p, room, r, i))
                continue;
            if (best == SIZE_MAX || room->counts[i] < room->counts[best] ||
                (room->counts[i] == room->counts[best] && room->cpus[i] > room->cpus[best]))
                best = i;
        }
        if (best == SIZE_MAX)
            return dt_fail(
                e, "role %s: task %d of %d finds no node with %d free CPUs%s in this allocation",
                r->name, k + 1, r->count, r->cpus, r->gpus ? " and its GPUs" : "");
        room->counts[best]++;
        room->cpus[best] -= r->cpus;
        room->gpus[best] -= r->gpus_shared ? 0 : r->gpus;
    }
    return 0;
}

/* Where a role has its nodes for itself and Slurm planned that many tasks, Slurm's own layout is
 * kept. */
static bool take_slurms_layout(const struct dt_launch_plan *p, struct room *room,
                               const struct dt_launch_role *r)
{
    int sum = 0;
    if (!p->het && p->n_roles > 1)
        return false;
    for (size_t i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].group == r->group)
            sum += p->nodes[i].tasks;
    if (sum != r->count)
        return false;
    for (size_t i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].group == r->group)
            room->counts[i] = p->nodes[i].tasks;
    return true;
}

/* In layout steps the tuner has placed every task already. */
static int take_tuners_layout(const struct dt_launch_plan *p, struct room *room, size_t role,
                              struct dt_error *e)
{
    struct json_object *roles = dt_json_get(p->json, "roles");
    struct json_object *on = dt_json_get(dt_json_at(roles, role), "on");
    int64_t sum = 0;
    for (size_t i = 0; i < p->n_nodes; i++) {
        int64_t n = dt_json_int(on, p->nodes[i].name, 0);
        room->counts[i] = n > 0 && n <= MAX_COUNT ? (int)n : 0;
        sum += room->counts[i];
    }
    if (sum == p->roles[role].count)
        return 0;
    return dt_fail(e, "DT_PLAN: role %s has %d tasks, but places for %lld on the trial's nodes",
                   p->roles[role].name, p->roles[role].count, (long long)sum);
}

static size_t next_role(const struct dt_launch_plan *p, const bool *done)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < p->n_roles; i++) {
        const struct dt_launch_role *r = &p->roles[i];
        if (done[i])
            continue;
        if (best == SIZE_MAX || r->gpus > p->roles[best].gpus ||
            (r->gpus == p->roles[best].gpus && r->cpus > p->roles[best].cpus))
            best = i;
    }
    return best;
}

static int fill(struct dt_launch_plan *p, struct room *room, int **counts, struct dt_error *e)
{
    bool *done = dt_xcalloc(p->n_roles, sizeof(*done));
    int rc = 0;
    /* the largest tasks first: the small ones fit into what is left */
    for (size_t k = 0; k < p->n_roles && rc == 0; k++) {
        size_t i = next_role(p, done);
        done[i] = true;
        room->counts = counts[i] = dt_xcalloc(p->n_nodes, sizeof(int));
        if (p->steps)
            rc = take_tuners_layout(p, room, i, e);
        else if (!take_slurms_layout(p, room, &p->roles[i]))
            rc = spread(p, room, &p->roles[i], e);
    }
    free(done);
    return rc;
}

/* How many tasks in a row go to a node before the next one has its turn; 0: all of them. */
static int tasks_at_a_turn(char *const *env, bool het, int group)
{
    const char *distribution = group_env(env, "SLURM_DISTRIBUTION", het, group);
    if (distribution && dt_starts_with(distribution, "cyclic"))
        return 1;
    if (distribution && dt_starts_with(distribution, "plane"))
        return env_int(group_env(env, "SLURM_DIST_PLANESIZE", het, group), 0);
    return 0;
}

/* The tasks of a role in the order of their ranks. */
static void add_tasks(struct dt_launch_plan *p, size_t role, int *counts, int turn)
{
    size_t end = p->n_tasks + (size_t)p->roles[role].count;
    int rank = 0;
    p->tasks = dt_xrealloc(p->tasks, end, sizeof(*p->tasks));
    while (p->n_tasks < end)
        for (size_t i = 0; i < p->n_nodes; i++)
            for (int k = 0; counts[i] > 0 && (!turn || k < turn); k++) {
                p->tasks[p->n_tasks++] = (struct dt_launch_task){(int)role, rank++, (int)i, 0};
                counts[i]--;
            }
}

static int place(struct dt_launch_plan *p, char *const *env, struct dt_error *e)
{
    struct room room = {.cpus = dt_xcalloc(p->n_nodes, sizeof(int)),
                        .gpus = dt_xcalloc(p->n_nodes, sizeof(int))};
    int **counts = dt_xcalloc(p->n_roles, sizeof(*counts));
    for (size_t i = 0; i < p->n_nodes; i++) {
        room.cpus[i] = p->nodes[i].cpus;
        room.gpus[i] = p->nodes[i].gpus;
    }
    int rc = fill(p, &room, counts, e);
    for (size_t r = 0; r < p->n_roles && rc == 0; r++)
        add_tasks(p, r, counts[r], tasks_at_a_turn(env, p->het, p->roles[r].group));
    for (size_t r = 0; r < p->n_roles; r++)
        free(counts[r]);
    free(counts);
    free(room.cpus);
    free(room.gpus);
    return rc;
}

/* Slurm gives a step whole cores. Where the roles' cores, rounded up, are more than a node has, the
 * second step would wait for the first for ever; then the steps must be allowed to overlap. */
static bool cores_are_short(const struct dt_launch_plan *p, int threads)
{
    for (size_t i = 0; i < p->n_nodes; i++) {
        int need = 0;
        for (size_t t = 0; t < p->n_tasks; t++)
            if (p->tasks[t].node == (int)i)
                need += (p->roles[p->tasks[t].role].cpus + threads - 1) / threads * threads;
        if (need > p->nodes[i].cpus)
            return true;
    }
    return false;
}

/* Hardware threads of a core of this host. */
static int threads_per_core(void)
{
    static const char path[] = "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list";
    FILE *f = fopen(path, "re");
    int c, n = 1;
    if (!f)
        return 1;
    while ((c = getc(f)) != EOF)
        if (c == ',' || c == '-')
            n++;
    fclose(f);
    return n;
}

static bool roles_meet(const struct dt_launch_plan *p)
{
    int *first = dt_xcalloc(p->n_nodes, sizeof(*first)); /* role + 1 of each node's first task */
    bool meet = false;
    for (size_t t = 0; t < p->n_tasks; t++) {
        int *on = &first[p->tasks[t].node], role = p->tasks[t].role + 1;
        meet |= *on && *on != role;
        *on = role;
    }
    free(first);
    return meet;
}

/* Whether the roles can choose among all that the job has on a node. Where several have GPUs, each
 * task must leave the others' alone. */
static bool can_choose_together(const struct dt_launch_plan *p)
{
    int with_gpus = 0;
    bool shared = false;
    for (size_t i = 0; i < p->n_roles; i++) {
        with_gpus += p->roles[i].gpus > 0;
        shared |= p->roles[i].gpus_shared;
    }
    return !p->het && !p->steps && (with_gpus < 2 || (p->bind_gpus && !shared)) && roles_meet(p);
}

char *dt_launch_dir(struct json_object *plan, char *const *env)
{
    const char *dir = dt_json_str(plan, "dir", NULL);
    const char *submit = dt_launch_getenv(env, "SLURM_SUBMIT_DIR"),
               *job = dt_launch_getenv(env, "SLURM_JOB_ID");
    if (dir)
        return dt_xstrdup(dir);
    return dt_xasprintf("%s/dt-job-%s", submit ? submit : ".", job ? job : "0");
}

static int read_all(struct dt_launch_plan *p, char *const *env, struct dt_error *e)
{
    const char *text = dt_launch_getenv(env, "DT_PLAN"),
               *job = dt_launch_getenv(env, "SLURM_JOB_ID");
    int groups = env_int(dt_launch_getenv(env, "SLURM_HET_SIZE"), 1);
    if (!job)
        return dt_fail(e, "SLURM_JOB_ID is not set: start this inside a Slurm job's batch script");
    p->job = dt_xstrdup(job);
    p->in_trial = text != NULL;
    p->json = text ? dt_json_parse(text, "DT_PLAN", e) : json_object_new_object();
    if (!p->json)
        return -1;
    p->dir = dt_launch_dir(p->json, env);
    p->submitted_tasks = (int)dt_json_int(p->json, "submitted_tasks", 0);
    p->overcommit = dt_launch_getenv(env, "SLURM_OVERCOMMIT") != NULL;
    p->bind_gpus = strcmp(dt_json_str(p->json, "gpu_bind", "none"), "task") == 0;
    p->bind = text && strcmp(dt_json_str(p->json, "bind", "auto"), "auto") == 0;
    const char *layout = dt_json_str(p->json, "layout", "packed");
    p->het = text ? strcmp(layout, "het") == 0 : groups == 2;
    p->steps = strcmp(layout, "steps") == 0;
    p->gpus_around = dt_json_bool(p->json, "gpus", false);
    p->node_gpus = (int)dt_json_int(p->json, "node_gpus", 0);
    if (!text)
        roles_of_plain_job(p, env);
    else if (read_roles(p, e) < 0)
        return -1;
    for (size_t i = 0; i < p->n_roles; i++)
        p->roles[i].background = p->n_roles > 1 && strcmp(p->roles[i].name, "ps") == 0;
    for (size_t i = 0; i < (p->het ? p->n_roles : 1); i++)
        if (read_group(p, env, (int)i, e) < 0)
            return -1;
    if (place(p, env, e) < 0)
        return -1;
    p->share_cores =
        !p->het && !p->steps && p->n_roles > 1 && cores_are_short(p, threads_per_core());
    p->bind = p->bind && !p->overcommit; /* there are not CPUs for every task */
    p->together = p->bind && can_choose_together(p);
    p->bind = p->bind && (p->together || !p->share_cores);
    return 0;
}

void dt_launch_add_coordinator(struct dt_launch_plan *p)
{
    const char *name = dt_json_str(p->json, "coordinator", NULL);
    if (!name || p->n_tasks == 0)
        return;
    bool chief = strcmp(name, "chief") == 0;
    for (size_t i = 0; chief && i < p->n_roles; i++)
        p->roles[i].background = true;
    p->roles = dt_xrealloc(p->roles, p->n_roles + 1, sizeof(*p->roles));
    p->roles[p->n_roles++] = (struct dt_launch_role){
        .name = dt_xstrdup(name),
        .count = 1,
        .cpus = 1,
        .group = p->roles[p->tasks[0].role].group,
        .background = !chief,
        .coordinator = true,
    };
    p->tasks = dt_xrealloc(p->tasks, p->n_tasks + 1, sizeof(*p->tasks));
    p->tasks[p->n_tasks++] = (struct dt_launch_task){(int)p->n_roles - 1, 0, p->tasks[0].node, 0};
}

struct dt_launch_plan *dt_launch_plan_read(char *const *env, struct dt_error *e)
{
    struct dt_launch_plan *p = dt_xcalloc(1, sizeof(*p));
    if (read_all(p, env, e) == 0)
        return p;
    dt_launch_plan_free(p);
    return NULL;
}

void dt_launch_plan_free(struct dt_launch_plan *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n_roles; i++) {
        free(p->roles[i].name);
        free(p->roles[i].gpu_type);
    }
    for (size_t i = 0; i < p->n_nodes; i++) {
        free(p->nodes[i].name);
        free(p->nodes[i].address);
        free(p->nodes[i].gpu_list);
    }
    json_object_put(p->json);
    free(p->roles);
    free(p->nodes);
    free(p->tasks);
    free(p->dir);
    free(p->job);
    free(p->root);
    free(p);
}
