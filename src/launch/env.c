#include "launch/launch.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

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

static void unset(struct dt_strv *env, const char *name)
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

static struct json_object *describe_role(const struct dt_launch_plan *p, size_t role)
{
    const struct dt_launch_role *r = &p->roles[role];
    struct json_object *o = json_object_new_object(), *hosts = json_object_new_array();
    for (size_t i = 0; i < p->n_tasks; i++) {
        if (p->tasks[i].role != (int)role)
            continue;
        const struct dt_launch_node *n = &p->nodes[p->tasks[i].node];
        char *host = dt_xasprintf("%s:%d", n->address ? n->address : n->name, p->tasks[i].port);
        json_object_array_add(hosts, json_object_new_string(host));
        free(host);
    }
    json_object_object_add(o, "name", json_object_new_string(r->name));
    json_object_object_add(o, "gpus", json_object_new_int(r->gpus));
    if (p->bind) {
        json_object_object_add(o, "cpus", json_object_new_int(r->cpus));
        json_object_object_add(o, "sees", json_object_new_string(dt_step_gpus(p, role)));
    }
    json_object_object_add(o, "background", json_object_new_boolean(r->background));
    json_object_object_add(o, "hosts", hosts);
    return o;
}

/* What bind.c wants to know of the launch. */
static struct json_object *describe_bind(const struct dt_launch_plan *p)
{
    struct json_object *o = json_object_new_object(), *folder = dt_json_get(p->json, "topology");
    if (folder)
        json_object_object_add(o, "topology", json_object_get(folder));
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
    int rank, world;                     /* rank of my role's first task, and all tasks */
    const char *first;                   /* host:port of global rank 0 */
};

static struct view look(struct json_object *launch, const char *role)
{
    struct view v = {0};
    struct json_object *roles = dt_json_get(launch, "roles");
    size_t n = json_object_is_type(roles, json_type_array) ? json_object_array_length(roles) : 0;
    for (size_t i = 0; i < n; i++) {
        struct json_object *r = json_object_array_get_idx(roles, i),
                           *hosts = dt_json_get(r, "hosts");
        const char *name = dt_json_str(r, "name", "");
        if (!json_object_is_type(hosts, json_type_array))
            continue;
        if (!v.first && json_object_array_length(hosts))
            v.first = json_object_get_string(json_object_array_get_idx(hosts, 0));
        if (strcmp(name, role) == 0) {
            v.mine = r;
            v.rank = v.world;
        }
        if (strcmp(name, "ps") == 0)
            v.hosts[0] = hosts;
        else if (strcmp(name, "worker") == 0)
            v.hosts[1] = hosts;
        v.world += (int)json_object_array_length(hosts);
    }
    return v;
}

static char *join_hosts(struct json_object *hosts)
{
    struct dt_buf b = DT_BUF_INIT;
    for (size_t i = 0; hosts && i < json_object_array_length(hosts); i++) {
        if (i)
            dt_buf_add(&b, ",");
        dt_buf_add(&b, json_object_get_string(json_object_array_get_idx(hosts, i)));
    }
    return dt_buf_take(&b);
}

/* TensorFlow: the evaluator stands beside the cluster, not in it. */
static void set_tf_config(struct json_object *launch, const char *role, int rank,
                          struct dt_strv *env)
{
    struct json_object *o = json_object_new_object(), *cluster = json_object_new_object();
    struct json_object *task = json_object_new_object(), *roles = dt_json_get(launch, "roles");
    for (size_t i = 0; i < json_object_array_length(roles); i++) {
        struct json_object *r = json_object_array_get_idx(roles, i);
        const char *name = dt_json_str(r, "name", "");
        if (strcmp(name, "evaluator") != 0)
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

static void set_frameworks(const struct view *v, const char *role, int rank, int local_rank,
                           struct dt_strv *env)
{
    const char *colon = strrchr(v->first, ':');
    char *address = dt_xstrndup(v->first, (size_t)(colon - v->first));
    dt_launch_setenv(env, "MASTER_ADDR", address);
    dt_launch_setenv(env, "MASTER_PORT", colon + 1);
    setf(env, "RANK", "%d", v->rank + rank);
    setf(env, "WORLD_SIZE", "%d", v->world);
    setf(env, "LOCAL_RANK", "%d", local_rank);
    dt_launch_setenv(env, "DMLC_ROLE", strcmp(role, "ps") == 0 ? "server" : "worker");
    dt_launch_setenv(env, "DMLC_PS_ROOT_URI", address);
    dt_launch_setenv(env, "DMLC_PS_ROOT_PORT", colon + 1);
    setf(env, "DMLC_NUM_SERVER", "%zu", v->hosts[0] ? json_object_array_length(v->hosts[0]) : 0);
    setf(env, "DMLC_NUM_WORKER", "%zu", v->hosts[1] ? json_object_array_length(v->hosts[1]) : 0);
    free(address);
}

int dt_task_env(struct json_object *launch, const char *role, int role_rank, int local_rank,
                int restarts, struct dt_strv *env, struct dt_error *e)
{
    static const char *const gpu[] = {"CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
                                      "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                      "ZE_AFFINITY_MASK"};
    static const char *const lists[] = {"DT_PS_HOSTS", "DT_WORKER_HOSTS"};
    struct view v = look(launch, role);
    if (!v.mine || !v.first || !strrchr(v.first, ':'))
        return dt_fail(e, "role %s is not part of this launch", role);
    if (role_rank < 0 || role_rank >= (int)json_object_array_length(dt_json_get(v.mine, "hosts")))
        return dt_fail(e, "role %s has no task %d in this launch", role, role_rank);
    dt_trial_env(launch, dt_json_str(launch, "dir", "."), restarts, env);
    dt_launch_setenv(env, "DT_ROLE", role);
    setf(env, "DT_RANK", "%d", v.rank + role_rank);
    setf(env, "DT_ROLE_RANK", "%d", role_rank);
    for (int i = 0; i < 2; i++) {
        char *hosts = join_hosts(v.hosts[i]);
        dt_launch_setenv(env, lists[i], hosts);
        free(hosts);
    }
    set_tf_config(launch, role, role_rank, env);
    set_frameworks(&v, role, role_rank, local_rank, env);
    if (dt_json_int(v.mine, "gpus", 0) == 0)
        for (size_t i = 0; i < sizeof(gpu) / sizeof(*gpu); i++)
            unset(env, gpu[i]);
    return 0;
}
