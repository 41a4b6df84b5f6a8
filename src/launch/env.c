#include "launch/launch.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *const dt_gpu_variables[DT_GPU_VARIABLES] = {
    "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK"};

static void setf(struct dt_strv *env, const char *name, const char *fmt, ...) DT_PRINTF(3, 4);

static void setf(struct dt_strv *env, const char *name, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *value = dt_xvasprintf(fmt, ap);
    va_end(ap);
    dt_launch_setenv(env, name, value);
    free(value);
}

/* A parameter as a program's command line would have it: a string without quotes, true or false, a
 * number. */
static char *param_text(struct json_object *value)
{
    if (json_object_is_type(value, json_type_string))
        return dt_xstrdup(json_object_get_string(value));
    if (json_object_is_type(value, json_type_double))
        return dt_format_double(json_object_get_double(value));
    return dt_json_text(value);
}

void dt_trial_env(struct json_object *plan, const char *dir, int slurm_restarts,
                  struct dt_strv *env)
{
    struct json_object *params = dt_json_get(plan, "params");
    int64_t run = dt_json_int(plan, "run", 1);
    if (dt_json_get(plan, "trial"))
        setf(env, "DT_TRIAL", "%lld", (long long)dt_json_int(plan, "trial", 0));
    dt_launch_setenv(env, "DT_TRIAL_DIR", dir);
    setf(env, "DT_CHECKPOINT_DIR", "%s/checkpoint", dir);
    setf(env, "DT_METRICS_FILE", "%s/metrics.jsonl", dir);
    setf(env, "DT_RESTARTS", "%lld", (long long)(run > 1 ? run - 1 : 0) + slurm_restarts);
    if (!json_object_is_type(params, json_type_object)) {
        dt_launch_setenv(env, "DT_PARAMS", "{}");
        return;
    }
    json_object_object_foreach(params, name, value)
    {
        char *variable = dt_xasprintf("DT_PARAM_%s", name), *text = param_text(value);
        for (char *c = variable; *c; c++)
            if (!isalnum((unsigned char)*c))
                *c = '_';
        dt_launch_setenv(env, variable, text);
        free(variable);
        free(text);
    }
    char *text = dt_json_text(params);
    dt_launch_setenv(env, "DT_PARAMS", text);
    free(text);
}

/* {"h1": 2, ...}: how many tasks of the role are where. */
static struct json_object *describe_nodes(const struct dt_launch_plan *p, size_t role)
{
    struct json_object *o = json_object_new_object();
    for (size_t i = 0; i < p->n_tasks; i++) {
        const char *node = p->nodes[p->tasks[i].node].name;
        int64_t n = dt_json_int(o, node, 0);
        if (p->tasks[i].role == (int)role)
            json_object_object_add(o, node, json_object_new_int64(n + 1));
    }
    return o;
}

static struct json_object *describe_role(const struct dt_launch_plan *p, size_t role)
{
    const struct dt_launch_role *r = &p->roles[role];
    struct json_object *o = json_object_new_object(), *hosts = json_object_new_array();
    for (size_t i = 0; i < p->n_tasks; i++) {
        if (p->tasks[i].role != (int)role)
            continue;
        const struct dt_launch_node *n = &p->nodes[p->tasks[i].node];
        const char *address = n->address ? n->address : n->name;
        if (p->root && strcmp(r->name, "scheduler") == 0)
            address = p->root;
        char *host = dt_xasprintf("%s:%d", address, p->tasks[i].port);
        json_object_array_add(hosts, json_object_new_string(host));
        free(host);
    }
    json_object_object_add(o, "name", json_object_new_string(r->name));
    json_object_object_add(o, "gpus", json_object_new_int(r->gpus));
    if (p->bind) {
        json_object_object_add(o, "cpus", json_object_new_int(r->cpus));
        json_object_object_add(o, "sees", json_object_new_string(dt_step_gpus(p, role)));
    }
    if (p->together)
        json_object_object_add(o, "on", describe_nodes(p, role));
    json_object_object_add(o, "background", json_object_new_boolean(r->background));
    if (r->coordinator)
        json_object_object_add(o, "coordinator", json_object_new_boolean(true));
    json_object_object_add(o, "hosts", hosts);
    return o;
}

/* {"h1": "0,1", ...}: the job's GPUs on each node, where that is known. */
static struct json_object *describe_gpus(const struct dt_launch_plan *p)
{
    struct json_object *o = json_object_new_object();
    for (size_t i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].gpu_list)
            json_object_object_add(o, p->nodes[i].name,
                                   json_object_new_string(p->nodes[i].gpu_list));
    return o;
}

/* What bind.c wants to know of the launch. */
static struct json_object *describe_bind(const struct dt_launch_plan *p)
{
    struct json_object *o = json_object_new_object(), *folder = dt_json_get(p->json, "topology");
    if (folder)
        json_object_object_add(o, "topology", json_object_get(folder));
    if (p->together)
        json_object_object_add(o, "gpus", describe_gpus(p));
    return o;
}

struct json_object *dt_launch_describe(const struct dt_launch_plan *p, int number)
{
    static const char *const copied[] = {"trial", "run", "params", "monitor"};
    struct json_object *o = json_object_new_object(), *roles = json_object_new_array();
    json_object_object_add(o, "version", json_object_new_int(1));
    json_object_object_add(o, "number", json_object_new_int(number));
    json_object_object_add(o, "dir", json_object_new_string(p->dir));
    for (size_t i = 0; i < sizeof(copied) / sizeof(*copied); i++) {
        struct json_object *value = dt_json_get(p->json, copied[i]);
        if (value)
            json_object_object_add(o, copied[i], json_object_get(value));
    }
    for (size_t i = 0; i < p->n_roles; i++)
        json_object_array_add(roles, describe_role(p, i));
    json_object_object_add(o, "roles", roles);
    if (p->bind)
        json_object_object_add(o, "bind", describe_bind(p));
    return o;
}

/* What env needs to know of all roles at once. */
struct view {
    struct json_object *mine, *hosts[2]; /* of ps and of worker, or NULL */
    int rank, world;   /* rank of my role's first task, and all tasks but the coordinator's */
    const char *first; /* host:port of global rank 0 */
    const char *root;  /* and of DMLC's scheduler; where there is none the same as first */
    bool coordinator;  /* I am the one that the others do not count */
};

static const char *first_host(struct json_object *hosts)
{
    return json_object_get_string(dt_json_at(hosts, 0));
}

static struct view look(struct json_object *launch, const char *role)
{
    struct view v = {0};
    struct json_object *roles = dt_json_get(launch, "roles");
    size_t n = dt_json_count(roles);
    for (size_t i = 0; i < n; i++) {
        struct json_object *r = dt_json_at(roles, i), *hosts = dt_json_get(r, "hosts");
        const char *name = dt_json_str(r, "name", "");
        bool coordinator = dt_json_bool(r, "coordinator", false);
        if (!json_object_is_type(hosts, json_type_array))
            continue;
        if (!v.first && dt_json_count(hosts))
            v.first = first_host(hosts);
        if (strcmp(name, role) == 0) {
            v.mine = r;
            v.rank = v.world;
            v.coordinator = coordinator;
        }
        if (strcmp(name, "ps") == 0)
            v.hosts[0] = hosts;
        else if (strcmp(name, "worker") == 0)
            v.hosts[1] = hosts;
        else if (strcmp(name, "scheduler") == 0)
            v.root = first_host(hosts);
        if (!coordinator)
            v.world += (int)dt_json_count(hosts);
    }
    if (!v.root)
        v.root = v.first;
    return v;
}

static char *join_hosts(struct json_object *hosts)
{
    struct dt_buf b = DT_BUF_INIT;
    for (size_t i = 0; i < dt_json_count(hosts); i++) {
        if (i)
            dt_buf_add(&b, ",");
        dt_buf_add(&b, json_object_get_string(dt_json_at(hosts, i)));
    }
    return dt_buf_take(&b);
}

/* TensorFlow knows ps, worker and chief; its evaluator would stand beside the cluster, not in it.
 */
static void set_tf_config(struct json_object *launch, const char *role, int rank,
                          struct dt_strv *env)
{
    struct json_object *o = json_object_new_object(), *cluster = json_object_new_object();
    struct json_object *task = json_object_new_object(), *roles = dt_json_get(launch, "roles");
    for (size_t i = 0; i < dt_json_count(roles); i++) {
        struct json_object *r = dt_json_at(roles, i);
        const char *name = dt_json_str(r, "name", "");
        if (strcmp(name, "evaluator") != 0 && strcmp(name, "scheduler") != 0)
            json_object_object_add(cluster, name, json_object_get(dt_json_get(r, "hosts")));
    }
    json_object_object_add(task, "type", json_object_new_string(role));
    json_object_object_add(task, "index", json_object_new_int(rank));
    json_object_object_add(o, "cluster", cluster);
    json_object_object_add(o, "task", task);
    char *text = dt_json_text(o);
    dt_launch_setenv(env, "TF_CONFIG", text);
    free(text);
    json_object_put(o);
}

/* The two variables that an address is told by. */
static void set_address(struct dt_strv *env, const char *host, const char *addr, const char *port)
{
    const char *colon = strrchr(host, ':');
    char *address = dt_xstrndup(host, (size_t)(colon - host));
    dt_launch_setenv(env, addr, address);
    dt_launch_setenv(env, port, colon + 1);
    free(address);
}

/* env://, and for workers the defaults of torchrun's options: each runs one torchrun. */
static void set_torch(const struct view *v, const struct dt_task_place *t, struct dt_strv *env)
{
    static const char *const own[] = {
        "RANK",       "WORLD_SIZE",    "LOCAL_RANK",       "LOCAL_WORLD_SIZE",
        "PET_NNODES", "PET_NODE_RANK", "PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT"};
    set_address(env, v->first, "MASTER_ADDR", "MASTER_PORT");
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        dt_launch_unsetenv(env, own[i]);
    if (v->coordinator)
        return;
    setf(env, "RANK", "%d", v->rank + t->role_rank);
    setf(env, "WORLD_SIZE", "%d", v->world);
    setf(env, "LOCAL_RANK", "%d", t->local_rank);
    setf(env, "LOCAL_WORLD_SIZE", "%d", t->local_size);
    if (strcmp(t->role, "worker") != 0)
        return;
    setf(env, "PET_NNODES", "%zu", dt_json_count(v->hosts[1]));
    setf(env, "PET_NODE_RANK", "%d", t->role_rank);
    dt_launch_setenv(env, "PET_RDZV_BACKEND", "c10d");
    dt_launch_setenv(env, "PET_RDZV_ENDPOINT", first_host(v->hosts[1]));
}

/* MXNet, BytePS and all that is made with ps-lite. */
static void set_dmlc(const struct view *v, const struct dt_task_place *t, struct dt_strv *env)
{
    const char *role = strcmp(t->role, "ps") == 0 ? "server" : t->role;
    set_address(env, v->root, "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT");
    dt_launch_setenv(env, "DMLC_ROLE", role);
    setf(env, "DMLC_NUM_SERVER", "%zu", dt_json_count(v->hosts[0]));
    setf(env, "DMLC_NUM_WORKER", "%zu", dt_json_count(v->hosts[1]));
    dt_launch_unsetenv(env, "DMLC_WORKER_ID");
    if (strcmp(role, "worker") == 0)
        setf(env, "DMLC_WORKER_ID", "%d", t->role_rank);
}

int dt_task_env(struct json_object *launch, const struct dt_task_place *t, int restarts,
                struct dt_strv *env, struct dt_error *e)
{
    static const char *const lists[] = {"DT_PS_HOSTS", "DT_WORKER_HOSTS"};
    struct view v = look(launch, t->role);
    if (!v.mine || !v.first || !strrchr(v.first, ':'))
        return dt_fail(e, "role %s is not part of this launch", t->role);
    if (t->role_rank < 0 || t->role_rank >= (int)dt_json_count(dt_json_get(v.mine, "hosts")))
        return dt_fail(e, "role %s has no task %d in this launch", t->role, t->role_rank);
    dt_trial_env(launch, dt_json_str(launch, "dir", "."), restarts, env);
    dt_launch_setenv(env, "DT_ROLE", t->role);
    setf(env, "DT_RANK", "%d", v.rank + t->role_rank);
    setf(env, "DT_ROLE_RANK", "%d", t->role_rank);
    for (int i = 0; i < 2; i++) {
        char *hosts = join_hosts(v.hosts[i]);
        dt_launch_setenv(env, lists[i], hosts);
        free(hosts);
    }
    if (strcmp(t->role, "scheduler") == 0)
        dt_launch_unsetenv(env, "TF_CONFIG");
    else
        set_tf_config(launch, t->role, t->role_rank, env);
    set_torch(&v, t, env);
    if (strcmp(t->role, "chief") != 0)
        set_dmlc(&v, t, env);
    if (dt_json_int(v.mine, "gpus", 0) == 0)
        for (size_t i = 0; i < DT_GPU_VARIABLES; i++)
            dt_launch_unsetenv(env, dt_gpu_variables[i]);
    return 0;
}
