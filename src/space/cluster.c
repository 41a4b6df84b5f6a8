#include "space/cluster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct json_object *dt_cluster_to_json(const struct dt_cluster *c)
{
    struct json_object *o = json_object_new_object(), *nodes = json_object_new_array();
    json_object_object_add(o, "partition",
                           c->partition ? json_object_new_string(c->partition) : NULL);
    json_object_object_add(o, "backfill", json_object_new_boolean(c->backfill));
    json_object_object_add(o, "max_nodes", json_object_new_int64((int64_t)c->max_nodes));
    json_object_object_add(o, "max_time",
                           isfinite(c->max_time) ? dt_json_number(c->max_time) : NULL);
    for (size_t i = 0; i < c->n; i++) {
        const struct dt_node_class *k = &c->classes[i];
        struct json_object *node = json_object_new_object();
        json_object_object_add(node, "count", json_object_new_int64((int64_t)k->count));
        json_object_object_add(node, "cpus", json_object_new_int64((int64_t)k->cpus));
        json_object_object_add(node, "mem", json_object_new_int64((int64_t)k->mem_mib));
        json_object_object_add(node, "tmp", json_object_new_int64((int64_t)k->tmp_mib));
        json_object_object_add(node, "gpus", json_object_new_int64((int64_t)k->gpus));
        if (k->threads)
            json_object_object_add(node, "threads", json_object_new_int64((int64_t)k->threads));
        json_object_array_add(nodes, node);
    }
    json_object_object_add(o, "nodes", nodes);
    return o;
}

struct dt_cluster *dt_cluster_from_json(struct json_object *o, struct dt_error *e)
{
    struct json_object *nodes = dt_json_get(o, "nodes");
    if (!json_object_is_type(nodes, json_type_array)) {
        dt_fail(e, "a cluster needs \"nodes\": [{\"count\": 4, \"cpus\": 16, \"mem\": 65536}]");
        return NULL;
    }
    struct dt_cluster *c = dt_xcalloc(1, sizeof(*c));
    const char *partition = dt_json_str(o, "partition", NULL);
    c->partition = partition ? dt_xstrdup(partition) : NULL;
    c->backfill = dt_json_bool(o, "backfill", true);
    c->max_nodes = (size_t)dt_json_int(o, "max_nodes", 0);
    c->max_time = dt_json_num(o, "max_time", INFINITY);
    for (size_t i = 0; i < json_object_array_length(nodes); i++) {
        struct json_object *node = json_object_array_get_idx(nodes, i);
        dt_cluster_add(c, &(struct dt_node_class){
                              .count = (size_t)dt_json_int(node, "count", 1),
                              .cpus = (size_t)dt_json_int(node, "cpus", 1),
                              .mem_mib = (uint64_t)dt_json_int(node, "mem", 0),
                              .tmp_mib = (uint64_t)dt_json_int(node, "tmp", 0),
                              .gpus = (size_t)dt_json_int(node, "gpus", 0),
                              .threads = (size_t)dt_json_int(node, "threads", 0),
                          });
    }
    return c;
}

void dt_cluster_free(struct dt_cluster *c)
{
    if (!c)
        return;
    free(c->classes);
    free(c->partition);
    free(c);
}

void dt_cluster_add(struct dt_cluster *c, const struct dt_node_class *node)
{
    size_t at = 0;
    for (; at < c->n && c->classes[at].cpus >= node->cpus; at++) {
        struct dt_node_class *k = &c->classes[at];
        if (k->cpus == node->cpus && k->mem_mib == node->mem_mib && k->tmp_mib == node->tmp_mib &&
            k->gpus == node->gpus && k->threads == node->threads) {
            k->count += node->count;
            return;
        }
    }
    c->classes = dt_xrealloc(c->classes, c->n + 1, sizeof(*c->classes));
    memmove(c->classes + at + 1, c->classes + at, (c->n - at) * sizeof(*c->classes));
    c->classes[at] = *node;
    c->n++;
}

size_t dt_cluster_nodes(const struct dt_cluster *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += c->classes[i].count;
    return n;
}

bool dt_cluster_has_fact(const char *name)
{
    struct dt_fact facts[DT_CLUSTER_FACTS];
    bool found = false;
    dt_cluster_facts(&(struct dt_cluster){0}, facts);
    for (size_t i = 0; i < DT_CLUSTER_FACTS; i++)
        found |= strcmp(facts[i].name, name) == 0;
    return found;
}

void dt_cluster_facts(const struct dt_cluster *c, struct dt_fact facts[DT_CLUSTER_FACTS])
{
    double cpus = 0, gpus = 0, node_cpus = 0, node_mem = 0, node_gpus = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct dt_node_class *k = &c->classes[i];
        cpus += (double)(k->count * k->cpus);
        gpus += (double)(k->count * k->gpus);
        node_cpus = fmax(node_cpus, (double)k->cpus);
        node_mem = fmax(node_mem, (double)k->mem_mib);
        node_gpus = fmax(node_gpus, (double)k->gpus);
    }
    const struct dt_fact all[DT_CLUSTER_FACTS] = {
        {"cluster_nodes", (double)dt_cluster_nodes(c)},
        {"cluster_cpus", cpus},
        {"cluster_gpus", gpus},
        {"node_cpus", node_cpus},
        {"node_mem", node_mem},
        {"node_gpus", node_gpus},
    };
    memcpy(facts, all, sizeof(all));
}
