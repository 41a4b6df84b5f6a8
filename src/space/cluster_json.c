/* Clusters, and their parts, as JSON. */
#include "space/cluster_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void dt_put_text(struct json_object *o, const char *key, const char *value)
{
    if (value)
        json_object_object_add(o, key, json_object_new_string(value));
}

static void put_size(struct json_object *o, const char *key, uint64_t value)
{
    if (value)
        json_object_object_add(o, key, json_object_new_int64((int64_t)value));
}

void dt_put_flag(struct json_object *o, const char *key, bool value)
{
    if (value)
        json_object_object_add(o, key, json_object_new_boolean(true));
}

/* ---- amounts ---- */

void dt_put_amounts(struct json_object *o, const char *key, const struct dt_amounts *a)
{
    struct json_object *all = a->n ? json_object_new_object() : NULL;
    for (size_t i = 0; i < a->n; i++)
        json_object_object_add(all, a->v[i].name, json_object_new_int64((int64_t)a->v[i].n));
    if (all)
        json_object_object_add(o, key, all);
}

void dt_take_amounts(struct dt_fields *f, const char *key, struct dt_amounts *a)
{
    struct json_object *all = dt_json_get(f->o, key);
    if (f->failed)
        return;
    dt_strv_add(&f->asked, key);
    if (!all)
        return;
    if (!json_object_is_type(all, json_type_object)) {
        dt_fields_fail(f, key, "an object like {\"cpu\": 16} is needed here");
        return;
    }
    json_object_object_foreach(all, name, v)
    {
        if (!json_object_is_type(v, json_type_int) || json_object_get_int64(v) < 0) {
            dt_fields_fail(f, key, "\"%s\": a whole number, 0 or more, is needed here", name);
            return;
        }
        dt_amounts_set(a, name, (uint64_t)json_object_get_int64(v));
    }
}

/* ---- nodes ---- */

void dt_put_class(struct json_object *o, const struct dt_node_class *k)
{
    json_object_object_add(o, "cpus", json_object_new_int64((int64_t)k->cpus));
    json_object_object_add(o, "mem", json_object_new_int64((int64_t)k->mem_mib));
    json_object_object_add(o, "tmp", json_object_new_int64((int64_t)k->tmp_mib));
    json_object_object_add(o, "gpus", json_object_new_int64((int64_t)k->gpus));
    put_size(o, "threads", k->threads);
    put_size(o, "sockets", k->sockets);
    put_size(o, "cores", k->cores);
    put_size(o, "weight", k->weight);
    put_size(o, "order", k->order);
    dt_put_text(o, "features", k->features);
    dt_put_text(o, "gres", k->gres);
}

void dt_take_class(struct dt_fields *f, struct dt_node_class *k)
{
    dt_fields_size(f, "cpus", &k->cpus);
    dt_fields_u64(f, "mem", &k->mem_mib);
    dt_fields_u64(f, "tmp", &k->tmp_mib);
    dt_fields_size(f, "gpus", &k->gpus);
    dt_fields_size(f, "threads", &k->threads);
    dt_fields_size(f, "sockets", &k->sockets);
    dt_fields_size(f, "cores", &k->cores);
    dt_fields_size(f, "weight", &k->weight);
    dt_fields_size(f, "order", &k->order);
    dt_fields_text(f, "features", &k->features);
    dt_fields_text(f, "gres", &k->gres);
}

/* ---- what a partition demands ---- */

void dt_put_partition_limits(struct json_object *o, const struct dt_partition_limits *l)
{
    json_object_object_add(o, "max_nodes", json_object_new_int64((int64_t)l->max_nodes));
    json_object_object_add(o, "max_time",
                           isfinite(l->max_time) ? dt_json_number(l->max_time) : NULL);
    put_size(o, "min_nodes", l->min_nodes);
    put_size(o, "max_cpus_per_node", l->max_cpus_per_node);
    put_size(o, "def_mem_per_cpu", l->def_mem_per_cpu);
    put_size(o, "def_mem_per_node", l->def_mem_per_node);
    put_size(o, "def_mem_per_gpu", l->def_mem_per_gpu);
    put_size(o, "def_cpus_per_gpu", l->def_cpus_per_gpu);
    put_size(o, "max_mem_per_cpu", l->max_mem_per_cpu);
    put_size(o, "max_mem_per_node", l->max_mem_per_node);
    put_size(o, "total_nodes", l->total_nodes);
    put_size(o, "total_cpus", l->total_cpus);
    put_size(o, "first_cpus", l->first_cpus);
    put_size(o, "first_mem", l->first_mem);
    dt_put_flag(o, "exclusive", l->exclusive);
    dt_put_flag(o, "reserved", l->reserved);
    dt_put_flag(o, "root_only", l->root_only);
    dt_put_flag(o, "foreign", l->foreign);
    dt_put_text(o, "allow_accounts", l->allow_accounts);
    dt_put_text(o, "deny_accounts", l->deny_accounts);
    dt_put_text(o, "allow_qos", l->allow_qos);
    dt_put_text(o, "deny_qos", l->deny_qos);
    dt_put_text(o, "allow_groups", l->allow_groups);
    dt_put_text(o, "qos", l->qos);
}

void dt_take_partition_limits(struct dt_fields *f, struct dt_partition_limits *l)
{
    l->max_time = INFINITY;
    dt_fields_size(f, "max_nodes", &l->max_nodes);
    dt_fields_seconds(f, "max_time", &l->max_time);
    dt_fields_size(f, "min_nodes", &l->min_nodes);
    dt_fields_size(f, "max_cpus_per_node", &l->max_cpus_per_node);
    dt_fields_u64(f, "def_mem_per_cpu", &l->def_mem_per_cpu);
    dt_fields_u64(f, "def_mem_per_node", &l->def_mem_per_node);
    dt_fields_u64(f, "def_mem_per_gpu", &l->def_mem_per_gpu);
    dt_fields_size(f, "def_cpus_per_gpu", &l->def_cpus_per_gpu);
    dt_fields_u64(f, "max_mem_per_cpu", &l->max_mem_per_cpu);
    dt_fields_u64(f, "max_mem_per_node", &l->max_mem_per_node);
    dt_fields_size(f, "total_nodes", &l->total_nodes);
    dt_fields_size(f, "total_cpus", &l->total_cpus);
    dt_fields_size(f, "first_cpus", &l->first_cpus);
    dt_fields_u64(f, "first_mem", &l->first_mem);
    dt_fields_bool(f, "exclusive", &l->exclusive);
    dt_fields_bool(f, "reserved", &l->reserved);
    dt_fields_bool(f, "root_only", &l->root_only);
    dt_fields_bool(f, "foreign", &l->foreign);
    dt_fields_text(f, "allow_accounts", &l->allow_accounts);
    dt_fields_text(f, "deny_accounts", &l->deny_accounts);
    dt_fields_text(f, "allow_qos", &l->allow_qos);
    dt_fields_text(f, "deny_qos", &l->deny_qos);
    dt_fields_text(f, "allow_groups", &l->allow_groups);
    dt_fields_text(f, "qos", &l->qos);
}

/* ---- how resources are given out ---- */

void dt_put_scheduling(struct json_object *o, const struct dt_scheduling *s)
{
    if (!s->known)
        return;
    struct json_object *all = json_object_new_object();
    dt_put_flag(all, "memory", s->memory);
    dt_put_flag(all, "cores", s->cores);
    dt_put_flag(all, "sockets", s->sockets);
    dt_put_flag(all, "enforced", s->enforced);
    json_object_object_add(o, "scheduling", all);
}

void dt_take_scheduling(struct dt_fields *f, struct dt_scheduling *s)
{
    struct json_object *all = dt_json_get(f->o, "scheduling");
    if (f->failed)
        return;
    dt_strv_add(&f->asked, "scheduling");
    if (!all)
        return;
    struct dt_fields own = dt_fields_of(
        all, dt_xasprintf("%s%sscheduling", f->place ? f->place : "", f->place ? ": " : ""), f->e);
    s->known = true;
    dt_fields_bool(&own, "memory", &s->memory);
    dt_fields_bool(&own, "cores", &s->cores);
    dt_fields_bool(&own, "sockets", &s->sockets);
    dt_fields_bool(&own, "enforced", &s->enforced);
    f->failed |= dt_fields_end(&own) < 0;
}

/* ---- limits of the user ---- */

static void put_limit(struct json_object *o, const char *key, uint64_t n)
{
    if (n != DT_NO_LIMIT)
        json_object_object_add(o, key, json_object_new_int64((int64_t)n));
}

void dt_put_limits(struct json_object *o, const struct dt_limits *l, size_t n)
{
    struct json_object *all = n ? json_object_new_array() : NULL;
    for (size_t i = 0; i < n; i++, l++) {
        struct json_object *one = json_object_new_object();
        dt_put_text(one, "who", l->who);
        dt_put_text(one, "account", l->account);
        dt_put_text(one, "parent", l->parent);
        dt_put_text(one, "user", l->user);
        dt_put_text(one, "partition", l->partition);
        dt_put_text(one, "qos", l->qos);
        dt_put_flag(one, "is_qos", l->is_qos);
        dt_put_flag(one, "preset", l->preset);
        dt_put_flag(one, "own_nodes", l->own_nodes);
        dt_put_flag(one, "own_time", l->own_time);
        dt_put_flag(one, "refuses", l->refuses);
        dt_put_amounts(one, "per_job", &l->per_job);
        dt_put_amounts(one, "per_node", &l->per_node);
        dt_put_amounts(one, "per_user", &l->per_user);
        dt_put_amounts(one, "group", &l->group);
        if (isfinite(l->max_time))
            json_object_object_add(one, "max_time", dt_json_number(l->max_time));
        put_limit(one, "jobs", l->jobs);
        put_limit(one, "submitted", l->submitted);
        put_limit(one, "group_jobs", l->group_jobs);
        put_limit(one, "group_submitted", l->group_submitted);
        json_object_array_add(all, one);
    }
    if (all)
        json_object_object_add(o, "limits", all);
}

static void take_limit(struct dt_fields *f, struct dt_limits *l)
{
    *l = (struct dt_limits){.max_time = INFINITY,
                            .jobs = DT_NO_LIMIT,
                            .submitted = DT_NO_LIMIT,
                            .group_jobs = DT_NO_LIMIT,
                            .group_submitted = DT_NO_LIMIT};
    dt_fields_text(f, "who", &l->who);
    dt_fields_text(f, "account", &l->account);
    dt_fields_text(f, "parent", &l->parent);
    dt_fields_text(f, "user", &l->user);
    dt_fields_text(f, "partition", &l->partition);
    dt_fields_text(f, "qos", &l->qos);
    dt_fields_bool(f, "is_qos", &l->is_qos);
    dt_fields_bool(f, "preset", &l->preset);
    dt_fields_bool(f, "own_nodes", &l->own_nodes);
    dt_fields_bool(f, "own_time", &l->own_time);
    dt_fields_bool(f, "refuses", &l->refuses);
    dt_take_amounts(f, "per_job", &l->per_job);
    dt_take_amounts(f, "per_node", &l->per_node);
    dt_take_amounts(f, "per_user", &l->per_user);
    dt_take_amounts(f, "group", &l->group);
    dt_fields_seconds(f, "max_time", &l->max_time);
    dt_fields_u64(f, "jobs", &l->jobs);
    dt_fields_u64(f, "submitted", &l->submitted);
    dt_fields_u64(f, "group_jobs", &l->group_jobs);
    dt_fields_u64(f, "group_submitted", &l->group_submitted);
    if (!f->failed && !l->who)
        dt_fields_fail(f, "who", "whose limits these are is needed here");
}

void dt_take_limits(struct dt_fields *f, struct dt_limits **l, size_t *n)
{
    size_t count = dt_fields_array(f, "limits");
    *l = count ? dt_xcalloc(count, sizeof(**l)) : NULL;
    for (*n = 0; *n < count && !f->failed;) {
        struct dt_fields one = dt_fields_element(f, "limits", *n);
        take_limit(&one, &(*l)[(*n)++]);
        f->failed |= dt_fields_end(&one) < 0;
    }
}

/* ---- the cluster of a job ---- */

struct json_object *dt_cluster_to_json(const struct dt_cluster *c)
{
    struct json_object *o = json_object_new_object(), *nodes = json_object_new_array();
    json_object_object_add(o, "partition",
                           c->partition ? json_object_new_string(c->partition) : NULL);
    json_object_object_add(o, "backfill", json_object_new_boolean(c->backfill));
    dt_put_partition_limits(o, &c->limits);
    for (size_t i = 0; i < c->n; i++) {
        struct json_object *node = json_object_new_object();
        json_object_object_add(node, "count", json_object_new_int64((int64_t)c->classes[i].count));
        dt_put_class(node, &c->classes[i]);
        dt_put_places(node, &c->classes[i].places);
        json_object_array_add(nodes, node);
    }
    json_object_object_add(o, "nodes", nodes);
    dt_put_scheduling(o, &c->scheduling);
    dt_put_amounts(o, "licenses", &c->licenses);
    dt_put_limits(o, c->binding, c->nbinding);
    dt_put_text(o, "job_account", c->account);
    dt_put_text(o, "job_qos", c->qos);
    put_size(o, "tuner_jobs", c->tuner_jobs);
    dt_put_flag(o, "closed", c->closed);
    dt_put_text(o, "features", c->features);
    struct json_object *partitions = c->npartitions ? json_object_new_array() : NULL;
    for (size_t i = 0; i < c->npartitions; i++)
        json_object_array_add(partitions, dt_cluster_to_json(&c->partitions[i]));
    if (partitions)
        json_object_object_add(o, "partitions", partitions);
    return o;
}

static void take_nodes(struct dt_fields *f, struct dt_cluster *c)
{
    size_t n = dt_fields_array(f, "nodes");
    if (!f->failed && !dt_json_get(f->o, "nodes"))
        dt_fields_fail(f, NULL,
                       "a cluster needs \"nodes\": [{\"count\": 4, \"cpus\": 16, \"mem\": 65536}]");
    for (size_t i = 0; i < n && !f->failed; i++) {
        struct dt_node_class k = {.count = 1, .cpus = 1};
        struct dt_fields one = dt_fields_element(f, "nodes", i);
        dt_fields_size(&one, "count", &k.count);
        dt_take_class(&one, &k);
        dt_take_places(&one, &k.places, k.count);
        f->failed |= dt_fields_end(&one) < 0;
        dt_cluster_add(c, &k);
        dt_class_free(&k);
    }
}

static void take_cluster(struct dt_fields *f, struct dt_cluster *c)
{
    c->backfill = true;
    dt_fields_text(f, "partition", &c->partition);
    dt_fields_bool(f, "backfill", &c->backfill);
    dt_take_partition_limits(f, &c->limits);
    take_nodes(f, c);
    dt_take_scheduling(f, &c->scheduling);
    dt_take_amounts(f, "licenses", &c->licenses);
    dt_take_limits(f, &c->binding, &c->nbinding);
    dt_fields_text(f, "job_account", &c->account);
    dt_fields_text(f, "job_qos", &c->qos);
    dt_fields_size(f, "tuner_jobs", &c->tuner_jobs);
    dt_fields_bool(f, "closed", &c->closed);
    dt_fields_text(f, "features", &c->features);
    size_t n = dt_fields_array(f, "partitions");
    c->partitions = n ? dt_xcalloc(n, sizeof(*c->partitions)) : NULL;
    for (; c->npartitions < n && !f->failed;) {
        struct dt_fields one = dt_fields_element(f, "partitions", c->npartitions);
        take_cluster(&one, &c->partitions[c->npartitions++]);
        f->failed |= dt_fields_end(&one) < 0;
    }
}

struct dt_cluster *dt_cluster_from_json(struct json_object *o, struct dt_error *e)
{
    struct dt_cluster *c = dt_xcalloc(1, sizeof(*c));
    struct dt_fields f = dt_fields_of(o, NULL, e);
    take_cluster(&f, c);
    if (dt_fields_end(&f) == 0)
        return c;
    dt_cluster_free(c);
    return NULL;
}
