#include "launch/launch.h"
#include "topology/topology.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const devices[] = {"CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
                                      "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                      "ZE_AFFINITY_MASK"};
#define N_DEVICES (sizeof(devices) / sizeof(*devices))

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

hwloc_bitmap_t dt_bind_allowed(char *const *env, hwloc_const_bitmap_t affinity, size_t online)
{
    const char *type = dt_launch_getenv(env, "SLURM_CPU_BIND_TYPE");
    hwloc_bitmap_t masks = masks_here(env);
    bool by_task = type && *type && strcmp(type, "none") != 0;
    if (masks || by_task) /* then the affinity is this task's own, and says nothing of the others */
        return masks;
    return (size_t)hwloc_bitmap_weight(affinity) < online ? hwloc_bitmap_dup(affinity) : NULL;
}

/* The node's numbers of the GPUs that tasks see, in their order; 0: they cannot be told. A device
 * cgroup lets tasks count from 0, while SLURM_STEP_GPUS has the node's numbers. */
static size_t gpu_numbers(const struct dt_strv *visible, const char *step, size_t **out)
{
    struct dt_strv words = DT_STRV_INIT;
    const struct dt_strv *use = visible;
    size_t n = 0;
    dt_strv_split(&words, step ? step : "", ",");
    if (words.n == visible->n)
        use = &words;
    *out = dt_xcalloc(use->n, sizeof(**out));
    for (size_t i = 0; i < use->n; i++) {
        int64_t x;
        if (dt_parse_int64(use->v[i], &x) == 0 && x >= 0)
            (*out)[n++] = (size_t)x;
    }
    if (n < visible->n)
        n = 0;
    dt_strv_free(&words);
    return n;
}

/* ---- the plan: the same in every task of the step on a node ---- */

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
    b->gpus = s->gpus;
    b->gpu = dt_xcalloc(s->gpus, sizeof(*b->gpu));
    for (size_t k = 0; k < s->gpus; k++)
        b->gpu[k] = s->local * s->gpus + k;
}

/* Slurm may have given the two threads of a core to two tasks. */
static int seat(const struct dt_topology *t, hwloc_const_bitmap_t allowed, struct dt_seat *seats,
                size_t n, struct dt_error *e)
{
    if (dt_topology_seat(t, allowed, false, seats, n, NULL) == 0)
        return 0;
    return dt_topology_seat(t, allowed, true, seats, n, e);
}

int dt_bind_plan(const struct dt_topology *t, const struct dt_bind_step *s, struct dt_binding *b,
                 struct dt_error *e)
{
    struct dt_strv visible = DT_STRV_INIT;
    size_t *numbers = NULL, n;
    struct dt_seat *seats = dt_xcalloc(s->tasks, sizeof(*seats));
    int rc = 0;
    *b = (struct dt_binding){0};
    dt_strv_split(&visible, s->gpus && s->visible ? s->visible : "", ",");
    n = gpu_numbers(&visible, s->step_gpus, &numbers);
    bool enough = s->tasks * s->gpus <= visible.n, known = t && knows_gpus(t, numbers, n);
    for (size_t i = 0; i < s->tasks; i++) {
        seats[i] = (struct dt_seat){
            .role = s->role, .server = s->server, .cpus = s->cpus, .gpus = known ? s->gpus : 0};
        if (known && !(s->own_gpus && enough))
            give_in_order(&seats[i], i * s->gpus, numbers, n);
    }
    if (known)
        rc = dt_topology_share_gpus(t, numbers, n, seats, s->tasks, e);
    if (rc == 0 && s->own_gpus && enough && known)
        set_positions(&seats[s->local], numbers, n, b);
    else if (s->own_gpus && enough && s->gpus)
        own_in_order(s, b);
    if (rc == 0 && t && s->allowed)
        rc = seat(t, s->allowed, seats, s->tasks, e);
    if (rc == 0 && seats[s->local].pus)
        b->pus = hwloc_bitmap_dup(seats[s->local].pus);
    dt_seats_free(seats, s->tasks);
    free(seats);
    free(numbers);
    dt_strv_free(&visible);
    return rc;
}

void dt_binding_free(struct dt_binding *b)
{
    hwloc_bitmap_free(b->pus);
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

/* Keeps the words at these positions in every variable that lists GPUs. */
static void apply_gpus(const struct dt_binding *b, struct dt_strv *env)
{
    for (size_t d = 0; d < N_DEVICES; d++) {
        const char *value = dt_launch_getenv(env->v, devices[d]);
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
            dt_launch_setenv(env, devices[d], text);
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

static struct json_object *find_role(struct json_object *launch, const char *role)
{
    struct json_object *roles = dt_json_get(launch, "roles");
    for (size_t i = 0; i < dt_json_count(roles); i++) {
        struct json_object *r = dt_json_at(roles, i);
        if (strcmp(dt_json_str(r, "name", ""), role) == 0)
            return r;
    }
    return NULL;
}

static int apply(struct json_object *bind, const struct dt_bind_step *s, struct dt_strv *env,
                 struct dt_error *e)
{
    struct dt_binding b;
    bool wanted = s->allowed || (s->own_gpus && s->gpus > 1);
    struct dt_topology *t = wanted ? read_topology(bind, env->v, e) : NULL;
    int rc = wanted && !t ? -1 : 0;
    if (dt_bind_plan(t, s, &b, e) < 0)
        rc = -1;
    if (b.gpu)
        apply_gpus(&b, env);
    if (b.pus && apply_pus(b.pus, e) < 0)
        rc = -1;
    if (b.pus && rc == 0) {
        char *cpus = dt_pus_list(b.pus);
        dt_launch_setenv(env, "DT_CPU_LIST", cpus);
        free(cpus);
    }
    dt_binding_free(&b);
    dt_topology_free(t);
    return rc;
}

int dt_bind_task(struct json_object *launch, const char *role, int local, struct dt_strv *env,
                 struct dt_error *e)
{
    struct json_object *bind = dt_json_get(launch, "bind"), *r = find_role(launch, role);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    struct dt_bind_step s = {.role = role, .local = (size_t)local, .tasks = tasks_here(env->v)};
    if (!bind || !r || local < 0 || s.local >= s.tasks)
        return 0;
    if (dt_json_bool(r, "coordinator",
                     false)) /* it is beside the others, wherever there is a moment */
        return 0;
    hwloc_bitmap_t affinity = affinity_of_task();
    s.server = dt_json_bool(r, "background", false);
    s.cpus = (size_t)dt_json_int(r, "cpus", 1);
    s.gpus = (size_t)dt_json_int(r, "gpus", 0);
    const char *sees = dt_json_str(r, "sees", "given");
    bool given = strcmp(sees, "given") == 0; /* then a task knows nothing of the others' */
    s.own_gpus = strcmp(sees, "own") == 0;
    s.step_gpus = dt_launch_getenv(env->v, "SLURM_STEP_GPUS");
    for (size_t d = 0; d < N_DEVICES && !s.visible && !given; d++)
        s.visible = dt_launch_getenv(env->v, devices[d]);
    s.allowed = dt_bind_allowed(env->v, affinity, online > 0 ? (size_t)online : 0);
    int rc = apply(bind, &s, env, e);
    hwloc_bitmap_free(s.allowed);
    hwloc_bitmap_free(affinity);
    return rc;
}
