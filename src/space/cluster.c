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
        if (k->features)
            json_object_object_add(node, "features", json_object_new_string(k->features));
        json_object_array_add(nodes, node);
    }
    json_object_object_add(o, "nodes", nodes);
    if (c->closed)
        json_object_object_add(o, "closed", json_object_new_boolean(true));
    if (c->features)
        json_object_object_add(o, "features", json_object_new_string(c->features));
    struct json_object *partitions = c->npartitions ? json_object_new_array() : NULL;
    for (size_t i = 0; i < c->npartitions; i++)
        json_object_array_add(partitions, dt_cluster_to_json(&c->partitions[i]));
    if (partitions)
        json_object_object_add(o, "partitions", partitions);
    return o;
}

static char *own_text(struct json_object *o, const char *key)
{
    const char *text = dt_json_str(o, key, NULL);
    return text ? dt_xstrdup(text) : NULL;
}

static int read_partitions(struct dt_cluster *c, struct json_object *list, struct dt_error *e)
{
    size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    c->partitions = n ? dt_xcalloc(n, sizeof(*c->partitions)) : NULL;
    for (size_t i = 0; i < n; i++) {
        struct dt_cluster *p = dt_cluster_from_json(json_object_array_get_idx(list, i), e);
        if (!p)
            return -1;
        c->partitions[c->npartitions++] = *p;
        free(p);
    }
    return 0;
}

struct dt_cluster *dt_cluster_from_json(struct json_object *o, struct dt_error *e)
{
    struct json_object *nodes = dt_json_get(o, "nodes");
    if (!json_object_is_type(nodes, json_type_array)) {
        dt_fail(e, "a cluster needs \"nodes\": [{\"count\": 4, \"cpus\": 16, \"mem\": 65536}]");
        return NULL;
    }
    struct dt_cluster *c = dt_xcalloc(1, sizeof(*c));
    c->partition = own_text(o, "partition");
    c->closed = dt_json_bool(o, "closed", false);
    c->features = own_text(o, "features");
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
                              .features = (char *)dt_json_str(node, "features", NULL),
                          });
    }
    if (read_partitions(c, dt_json_get(o, "partitions"), e) < 0) {
        dt_cluster_free(c);
        return NULL;
    }
    return c;
}

static void empty(struct dt_cluster *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->classes[i].features);
    for (size_t i = 0; i < c->npartitions; i++)
        empty(&c->partitions[i]);
    free(c->partitions);
    free(c->classes);
    free(c->partition);
    free(c->features);
}

void dt_cluster_free(struct dt_cluster *c)
{
    if (!c)
        return;
    empty(c);
    free(c);
}

static bool same_features(const char *a, const char *b)
{
    return !a == !b && (!a || strcmp(a, b) == 0);
}

void dt_cluster_add(struct dt_cluster *c, const struct dt_node_class *node)
{
    size_t at = 0;
    for (; at < c->n && c->classes[at].cpus >= node->cpus; at++) {
        struct dt_node_class *k = &c->classes[at];
        if (k->cpus == node->cpus && k->mem_mib == node->mem_mib && k->tmp_mib == node->tmp_mib &&
            k->gpus == node->gpus && k->threads == node->threads &&
            same_features(k->features, node->features)) {
            k->count += node->count;
            return;
        }
    }
    c->classes = dt_xrealloc(c->classes, c->n + 1, sizeof(*c->classes));
    memmove(c->classes + at + 1, c->classes + at, (c->n - at) * sizeof(*c->classes));
    c->classes[at] = *node;
    if (node->features)
        c->classes[at].features = dt_xstrdup(node->features);
    c->n++;
}

const struct dt_cluster *dt_cluster_partition(const struct dt_cluster *c, const char *name)
{
    const char *wanted = name ? name : c->partition;
    if (!c->npartitions)
        return !name || (c->partition && strcmp(c->partition, name) == 0) ? c : NULL;
    for (size_t i = 0; i < c->npartitions; i++)
        if (wanted && strcmp(c->partitions[i].partition, wanted) == 0)
            return &c->partitions[i];
    return NULL;
}

bool dt_cluster_range(const struct dt_cluster *c, const char *const constraints[2],
                      struct dt_node_class *least, struct dt_node_class *most)
{
    bool found = false;
    for (size_t i = 0; i < c->n; i++) {
        const struct dt_node_class *k = &c->classes[i];
        if (!dt_features_allow(k->features, constraints[0]) ||
            !dt_features_allow(k->features, constraints[1]))
            continue;
        if (!found)
            *least = *most = *k;
        found = true;
        least->cpus = k->cpus < least->cpus ? k->cpus : least->cpus;
        least->gpus = k->gpus < least->gpus ? k->gpus : least->gpus;
        least->mem_mib = k->mem_mib < least->mem_mib ? k->mem_mib : least->mem_mib;
        most->cpus = k->cpus > most->cpus ? k->cpus : most->cpus;
        most->gpus = k->gpus > most->gpus ? k->gpus : most->gpus;
        most->mem_mib = k->mem_mib > most->mem_mib ? k->mem_mib : most->mem_mib;
    }
    return found;
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
