#include "launch/launch.h"
#include "topology/topology.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BITS (8 * sizeof(unsigned long))
#define PREFERRED_MANY 5 /* MPOL_..., which Linux has from 5.15 on, its headers maybe not */

bool dt_bind_is_given(const struct dt_strv *options, char *const *env)
{
    static const char *const long_options[] = {"--cpu-bind", "--cpu_bind", "--mem-bind",
                                               "--mem_bind", "--hint",     "--threads-per-core"};
    static const char *const variables[] = {"SLURM_CPU_BIND", "SLURM_MEM_BIND", "SLURM_HINT"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
        if (dt_launch_getenv(env, variables[i]))
            return true;
    for (size_t i = 0; options && i < options->n; i++)
        for (size_t j = 0; j < sizeof(long_options) / sizeof(*long_options); j++)
            if (dt_starts_with(options->v[i], long_options[j]))
                return true;
    return false;
}

/* ---- what Slurm has given ---- */

/* Tasks of the step on this node. 0: it does not say. */
static size_t tasks_here(char *const *env)
{
    const char *counts = dt_launch_getenv(env, "SLURM_STEP_TASKS_PER_NODE"),
               *node = dt_launch_getenv(env, "SLURM_NODEID");
    int *list;
    int n = counts && node ? dt_counts_expand(counts, &list) : -1;
    int i = node ? atoi(node) : -1;
    size_t here = n > 0 && i >= 0 && i < n && list[i] > 0 ? (size_t)list[i] : 0;
    if (n >= 0)
        free(list);
    return here;
}

/* task/affinity tells every task the masks of all tasks of the step on its node. NULL: it does not.
 */
static hwloc_bitmap_t masks_here(char *const *env)
{
    const char *type = dt_launch_getenv(env, "SLURM_CPU_BIND_TYPE"),
               *text = dt_launch_getenv(env, "SLURM_CPU_BIND_LIST");
    struct dt_strv masks = DT_STRV_INIT;
    if (!type || !text || !strstr(type, "mask_cpu"))
        return NULL;
    hwloc_bitmap_t all = hwloc_bitmap_alloc(), one = hwloc_bitmap_alloc();
    dt_strv_split(&masks, text, ",");
    for (size_t i = 0; i < masks.n; i++)
        if (hwloc_bitmap_taskset_sscanf(one, masks.v[i]) == 0)
            hwloc_bitmap_or(all, all, one);
    dt_strv_free(&masks);
    hwloc_bitmap_free(one);
    return all;
}

hwloc_bitmap_t dt_bind_allowed(char *const *env, hwloc_const_bitmap_t affinity, size_t online,
                               bool whole)
{
    const char *type = dt_launch_getenv(env, "SLURM_CPU_BIND_TYPE"),
               *cpus = dt_launch_getenv(env, "SLURM_CPUS_ON_NODE");
    hwloc_bitmap_t masks = masks_here(env);
    int64_t have = 0;
    bool by_task = type && *type && strcmp(type, "none") != 0;
    if (masks || by_task) /* then the affinity is this task's own, and says nothing of the others */
        return masks;
    bool all = whole && cpus && dt_parse_int64(cpus, &have) == 0 && have == (int64_t)online;
    bool confined = (size_t)hwloc_bitmap_weight(affinity) < online;
    return confined || all ? hwloc_bitmap_dup(affinity) : NULL;
}

/* The node's numbers of the GPUs that tasks see, in their order, or where this task sees none of
 * all that the step has; 0: they cannot be told. A device cgroup lets tasks count from 0, while
 * `gpus` has the node's numbers. */
static size_t gpu_numbers(const struct dt_strv *visible, const char *gpus, size_t **out)
{
    struct dt_strv words = DT_STRV_INIT;
    const struct dt_strv *use = visible;
    size_t n = 0;
    dt_strv_split(&words, gpus ? gpus : "", ",");
    if (words.n == visible->n || !visible->n)
        use = &words;
    *out = dt_xcalloc(use->n, sizeof(**out));
    for (size_t i = 0; i < use->n; i++) {
        int64_t x;
        if (dt_parse_int64(use->v[i], &x) == 0 && x >= 0)
            (*out)[n++] = (size_t)x;
    }
    if (n < use->n)
        n = 0;
    dt_strv_free(&words);
    return n;
}

/* ---- the plan: the same in every task that shares the node's CPUs and GPUs ---- */

static void give_in_order(struct dt_seat *s, size_t first, const size_t *numbers, size_t n)
{
    s->gpus = s->gpus < n ? s->gpus : n;
    s->gpu = dt_xcalloc(s->gpus, sizeof(*s->gpu));
    for (size_t k = 0; k < s->gpus; k++)
        s->gpu[k] = numbers[(first + k) % n];
}

static bool knows_gpus(const struct dt_topology *t, const size_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (numbers[i] >= t->ngpus)
            return false;
    return n > 0;
}

/* Positions among the GPUs that tasks see, of those that seat `mine` has. */
static void set_positions(const struct dt_seat *mine, const size_t *numbers, size_t n,
                          struct dt_binding *b)
{
    b->gpus = mine->gpus;
    b->gpu = dt_xcalloc(mine->gpus, sizeof(*b->gpu));
    for (size_t k = 0; k < mine->gpus; k++)
        for (size_t i = 0; i < n; i++)
            if (numbers[i] == mine->gpu[k])
                b->gpu[k] = i;
}

/* Without a topology, or numbers that it knows, every task has the next GPUs. */
static void own_in_order(const struct dt_bind_step *s, struct dt_binding *b)
{
    const struct dt_bind_role *r = &s->roles[s->role];
    size_t first = s->local * r->gpus;
    for (size_t i = 0; i < s->role; i++)
        first += s->roles[i].tasks * s->roles[i].gpus;
    b->gpus = r->gpus;
    b->gpu = dt_xcalloc(r->gpus, sizeof(*b->gpu));
    for (size_t k = 0; k < r->gpus; k++)
        b->gpu[k] = first + k;
}

/* Slurm may have given the two threads of a core to two tasks. */
static int seat(const struct dt_topology *t, hwloc_const_bitmap_t allowed, struct dt_seat *seats,
                size_t n, struct dt_error *e)
{
    if (dt_topology_seat(t, allowed, false, seats, n, NULL) == 0)
        return 0;
    return dt_topology_seat(t, allowed, true, seats, n, e);
}

/* A seat for every task, role by role; returns which is this task's. GPUs that `numbers` has are
 * theirs by their local rank, but for the tasks that choose their own. */
static size_t set_seats(const struct dt_bind_step *s, const size_t *numbers, size_t n, bool choose,
                        struct dt_seat *seats)
{
    size_t at = 0, mine = 0;
    for (size_t i = 0; i < s->nroles; i++) {
        const struct dt_bind_role *r = &s->roles[i];
        if (i == s->role)
            mine = at + s->local;
        for (size_t k = 0; k < r->tasks; k++, at++) {
            seats[at] = (struct dt_seat){
                .role = r->name, .server = r->server, .cpus = r->cpus, .gpus = n ? r->gpus : 0};
            if (n && r->gpus && !(r->own_gpus && choose))
                give_in_order(&seats[at], k * r->gpus, numbers, n);
        }
    }
    return mine;
}

int dt_bind_plan(const struct dt_topology *t, const struct dt_bind_step *s, struct dt_binding *b,
                 struct dt_error *e)
{
    const struct dt_bind_role *r = &s->roles[s->role];
    struct dt_strv visible = DT_STRV_INIT;
    size_t *numbers = NULL, tasks = 0, need = 0, mine;
    int rc = 0;
    *b = (struct dt_binding){0};
    for (size_t i = 0; i < s->nroles; i++) {
        tasks += s->roles[i].tasks;
        need += s->roles[i].tasks * s->roles[i].gpus;
    }
    struct dt_seat *seats = dt_xcalloc(tasks, sizeof(*seats));
    dt_strv_split(&visible, need && s->visible ? s->visible : "", ",");
    size_t n = need ? gpu_numbers(&visible, s->gpus, &numbers) : 0;
    bool enough = need <= (visible.n ? visible.n : n), known = t && knows_gpus(t, numbers, n);
    bool own = r->own_gpus && r->gpus && enough;
    mine = set_seats(s, numbers, known ? n : 0, enough, seats);
    if (known)
        rc = dt_topology_share_gpus(t, numbers, n, seats, tasks, e);
    if (rc == 0 && own && known)
        set_positions(&seats[mine], numbers, n, b);
    else if (own)
        own_in_order(s, b);
    if (rc == 0 && t && s->allowed)
        rc = seat(t, s->allowed, seats, tasks, e);
    if (rc == 0 && seats[mine].pus) {
        b->pus = hwloc_bitmap_dup(seats[mine].pus);
        b->mem = dt_topology_near_mem(t, b->pus);
    }
    dt_seats_free(seats, tasks);
    free(seats);
    free(numbers);
    dt_strv_free(&visible);
    return rc;
}

void dt_binding_free(struct dt_binding *b)
{
    hwloc_bitmap_free(b->pus);
    hwloc_bitmap_free(b->mem);
    free(b->gpu);
    *b = (struct dt_binding){0};
}

/* ---- this task ---- */

static hwloc_bitmap_t affinity_of_task(void)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    for (int n = 1024; n <= 1 << 20; n *= 2) {
        cpu_set_t *c = CPU_ALLOC(n);
        size_t size = CPU_ALLOC_SIZE(n);
        bool ok = c && sched_getaffinity(0, size, c) == 0;
        for (int i = 0; ok && i < n; i++)
            if (CPU_ISSET_S(i, size, c))
                hwloc_bitmap_set(set, (unsigned)i);
        bool more = !ok && errno == EINVAL;
        CPU_FREE(c);
        if (!more)
            break;
    }
    return set;
}

static int apply_pus(hwloc_const_bitmap_t pus, struct dt_error *e)
{
    int n = hwloc_bitmap_last(pus) + 1, i;
    cpu_set_t *c = CPU_ALLOC(n);
    size_t size = CPU_ALLOC_SIZE(n);
    CPU_ZERO_S(size, c);
    hwloc_bitmap_foreach_begin(i, pus) CPU_SET_S(i, size, c);
    hwloc_bitmap_foreach_end();
    int rc = sched_setaffinity(0, size, c);
    if (rc < 0)
        dt_fail(e, "sched_setaffinity: %s", strerror(errno));
    CPU_FREE(c);
    return rc;
}

/* Memory near the task's CPUs first, and any where that is full. Linux takes it near the CPU that
 * first touches it, which is the same as long as a thread keeps to those CPUs; not all do (NCCL's
 * go to the network's). A policy that Slurm or the user has set holds; a kernel without such a node
 * has its own way. */
static void apply_mem(hwloc_const_bitmap_t nodes)
{
    unsigned count = (unsigned)hwloc_bitmap_last(nodes) / BITS + 1;
    unsigned long *mask = dt_xcalloc(count, sizeof(*mask));
    int mode = MPOL_DEFAULT, i;
    hwloc_bitmap_foreach_begin(i, nodes) mask[(size_t)i / BITS] |= 1UL << (size_t)i % BITS;
    hwloc_bitmap_foreach_end();
    if (syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) == 0 && mode == MPOL_DEFAULT)
        syscall(SYS_set_mempolicy,
                hwloc_bitmap_weight(nodes) == 1 ? MPOL_PREFERRED : PREFERRED_MANY, mask,
                count * BITS + 1);
    free(mask);
}

/* Keeps the words at these positions in every variable that lists GPUs. */
static void apply_gpus(const struct dt_binding *b, struct dt_strv *env)
{
    for (size_t d = 0; d < DT_GPU_VARIABLES; d++) {
        const char *value = dt_launch_getenv(env->v, dt_gpu_variables[d]);
        struct dt_strv words = DT_STRV_INIT, kept = DT_STRV_INIT;
        bool whole = value != NULL;
        dt_strv_split(&words, value ? value : "", ",");
        for (size_t i = 0; i < b->gpus; i++) {
            whole &= b->gpu[i] < words.n;
            if (whole)
                dt_strv_add(&kept, words.v[b->gpu[i]]);
        }
        if (whole) {
            char *text = dt_strv_join(&kept, ",");
            dt_launch_setenv(env, dt_gpu_variables[d], text);
            free(text);
        }
        dt_strv_free(&words);
        dt_strv_free(&kept);
    }
}

static struct dt_topology *read_topology(struct json_object *bind, char *const *env,
                                         struct dt_error *e)
{
    const char *folder = dt_json_str(bind, "topology", NULL),
               *node = dt_launch_getenv(env, "SLURMD_NODENAME");
    char *path = dt_topology_find(folder, NULL, node, NULL);
    setenv("HWLOC_HIDE_ERRORS", "2", 0); /* of firmware: they would come from every task */
    struct dt_topology *t = path ? dt_topology_read(path, e) : dt_topology_here(e);
    free(path);
    return t;
}

/* What the tasks of a role that are here share. */
static struct dt_bind_role read_role(struct json_object *r, size_t tasks)
{
    return (struct dt_bind_role){
        .name = dt_json_str(r, "name", "task"),
        .server = dt_json_bool(r, "background", false),
        .cpus = (size_t)dt_json_int(r, "cpus", 1),
        .gpus = (size_t)dt_json_int(r, "gpus", 0),
        .own_gpus = strcmp(dt_json_str(r, "sees", "given"), "own") == 0,
        .tasks = tasks,
    };
}

/* Whose tasks on this node share what the step has: those of its role, or where roles choose
 * together all. Returns this task's role as LAUNCH has it; NULL: it chooses nothing. */
static struct json_object *read_roles(struct json_object *launch, const char *role,
                                      char *const *env, struct dt_bind_step *s)
{
    struct json_object *roles = dt_json_get(launch, "roles"), *mine = NULL;
    const char *node = dt_launch_getenv(env, "SLURMD_NODENAME");
    size_t n = dt_json_count(roles);
    s->roles = dt_xcalloc(n, sizeof(*s->roles));
    for (size_t i = 0; i < n; i++) {
        struct json_object *r = dt_json_at(roles, i), *on = dt_json_get(r, "on");
        bool this = strcmp(dt_json_str(r, "name", ""), role) == 0;
        /* a coordinator is beside the others, wherever there is a moment */
        if ((!this && !on) || dt_json_bool(r, "coordinator", false))
            continue;
        int64_t here = on ? dt_json_int(on, node ? node : "", 0) : (int64_t)tasks_here(env);
        if (this)
            s->role = s->nroles;
        mine = this ? r : mine;
        s->roles[s->nroles++] = read_role(r, here > 0 ? (size_t)here : 0);
    }
    return mine;
}

static int apply(struct json_object *bind, const struct dt_bind_step *s, struct dt_strv *env,
                 struct dt_error *e)
{
    const struct dt_bind_role *r = &s->roles[s->role];
    struct dt_binding b;
    bool wanted = s->allowed || (r->own_gpus && (r->gpus > 1 || s->nroles > 1));
    struct dt_topology *t = wanted ? read_topology(bind, env->v, e) : NULL;
    int rc = wanted && !t ? -1 : 0;
    if (dt_bind_plan(t, s, &b, e) < 0)
        rc = -1;
    if (b.gpu)
        apply_gpus(&b, env);
    if (b.pus && apply_pus(b.pus, e) < 0)
        rc = -1;
    if (b.mem && rc == 0)
        apply_mem(b.mem);
    if (b.pus && rc == 0) {
        char *cpus = dt_pus_list(b.pus);
        dt_launch_setenv(env, "DT_CPU_LIST", cpus);
        free(cpus);
    }
    dt_binding_free(&b);
    dt_topology_free(t);
    return rc;
}

/* A step that has all of the job's CPUs here does not say how many a task has. */
static void tell_cpus(const struct dt_bind_role *r, struct dt_strv *env)
{
    char *text = dt_xasprintf("%zu", r->cpus);
    dt_launch_setenv(env, "SLURM_CPUS_PER_TASK", text);
    free(text);
}

int dt_bind_task(struct json_object *launch, const char *role, int local, struct dt_strv *env,
                 struct dt_error *e)
{
    struct json_object *bind = dt_json_get(launch, "bind"), *gpus = dt_json_get(bind, "gpus");
    const char *node = dt_launch_getenv(env->v, "SLURMD_NODENAME");
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    struct dt_bind_step s = {.local = (size_t)local};
    struct json_object *r = bind ? read_roles(launch, role, env->v, &s) : NULL;
    int rc = 0;
    if (r && local >= 0 && s.local < s.roles[s.role].tasks) {
        hwloc_bitmap_t affinity = affinity_of_task();
        bool together = gpus != NULL;
        /* where Slurm has chosen a task's GPUs, it knows nothing of the others' */
        bool given = !together && strcmp(dt_json_str(r, "sees", "given"), "given") == 0;
        s.gpus = together ? dt_json_str(gpus, node ? node : "", NULL)
                          : dt_launch_getenv(env->v, "SLURM_STEP_GPUS");
        for (size_t d = 0; d < DT_GPU_VARIABLES && !s.visible && !given; d++)
            s.visible = dt_launch_getenv(env->v, dt_gpu_variables[d]);
        s.gpus = given ? NULL : s.gpus;
        if (together)
            tell_cpus(&s.roles[s.role], env);
        s.allowed = dt_bind_allowed(env->v, affinity, online > 0 ? (size_t)online : 0, together);
        rc = apply(bind, &s, env, e);
        hwloc_bitmap_free(s.allowed);
        hwloc_bitmap_free(affinity);
    }
    free(s.roles);
    return rc;
}
