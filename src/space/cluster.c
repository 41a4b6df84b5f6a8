#include "space/cluster_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void dt_amounts_set(struct dt_amounts *a, const char *name, uint64_t n)
{
    for (size_t i = 0; i < a->n; i++) {
        if (strcmp(a->v[i].name, name) == 0) {
            a->v[i].n = n;
            return;
        }
    }
    a->v = dt_xrealloc(a->v, a->n + 1, sizeof(*a->v));
    a->v[a->n++] = (struct dt_amount){dt_xstrdup(name), n};
}

uint64_t dt_amounts_get(const struct dt_amounts *a, const char *name, uint64_t fallback)
{
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->v[i].name, name) == 0)
            return a->v[i].n;
    return fallback;
}

void dt_amounts_free(struct dt_amounts *a)
{
    for (size_t i = 0; i < a->n; i++)
        free(a->v[i].name);
    free(a->v);
    *a = (struct dt_amounts){0};
}

static char *own(const char *text)
{
    return text ? dt_xstrdup(text) : NULL;
}

void dt_amounts_copy(struct dt_amounts *to, const struct dt_amounts *from)
{
    *to = (struct dt_amounts){0};
    for (size_t i = 0; i < from->n; i++)
        dt_amounts_set(to, from->v[i].name, from->v[i].n);
}

void dt_class_free(struct dt_node_class *k)
{
    free(k->features);
    free(k->gres);
    dt_places_free(&k->places);
}

void dt_partition_limits_copy(struct dt_partition_limits *to,
                              const struct dt_partition_limits *from)
{
    *to = *from;
    to->allow_accounts = own(from->allow_accounts);
    to->deny_accounts = own(from->deny_accounts);
    to->allow_qos = own(from->allow_qos);
    to->deny_qos = own(from->deny_qos);
    to->allow_groups = own(from->allow_groups);
    to->qos = own(from->qos);
}

void dt_partition_limits_free(struct dt_partition_limits *l)
{
    free(l->allow_accounts);
    free(l->deny_accounts);
    free(l->allow_qos);
    free(l->deny_qos);
    free(l->allow_groups);
    free(l->qos);
}

void dt_limits_copy(struct dt_limits *to, const struct dt_limits *from)
{
    *to = *from;
    to->who = own(from->who);
    to->account = own(from->account);
    to->parent = own(from->parent);
    to->user = own(from->user);
    to->partition = own(from->partition);
    to->qos = own(from->qos);
    dt_amounts_copy(&to->per_job, &from->per_job);
    dt_amounts_copy(&to->per_node, &from->per_node);
    dt_amounts_copy(&to->per_user, &from->per_user);
    dt_amounts_copy(&to->group, &from->group);
}

void dt_limits_free(struct dt_limits *l)
{
    free(l->who);
    free(l->account);
    free(l->parent);
    free(l->user);
    free(l->partition);
    free(l->qos);
    dt_amounts_free(&l->per_job);
    dt_amounts_free(&l->per_node);
    dt_amounts_free(&l->per_user);
    dt_amounts_free(&l->group);
}

static void empty(struct dt_cluster *c)
{
    for (size_t i = 0; i < c->n; i++)
        dt_class_free(&c->classes[i]);
    for (size_t i = 0; i < c->npartitions; i++)
        empty(&c->partitions[i]);
    for (size_t i = 0; i < c->nbinding; i++)
        dt_limits_free(&c->binding[i]);
    dt_partition_limits_free(&c->limits);
    dt_amounts_free(&c->licenses);
    free(c->binding);
    free(c->account);
    free(c->qos);
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

static bool same_text(const char *a, const char *b)
{
    return !a == !b && (!a || strcmp(a, b) == 0);
}

bool dt_class_same(const struct dt_node_class *a, const struct dt_node_class *b)
{
    return a->cpus == b->cpus && a->mem_mib == b->mem_mib && a->tmp_mib == b->tmp_mib &&
           a->gpus == b->gpus && a->threads == b->threads && a->sockets == b->sockets &&
           a->cores == b->cores && a->weight == b->weight && same_text(a->features, b->features) &&
           same_text(a->gres, b->gres);
}

/* Places are known of all of them or of none. */
static void add_alike(struct dt_node_class *k, const struct dt_node_class *node)
{
    k->count += node->count;
    if (k->places.n && node->places.n)
        dt_places_join(&k->places, &node->places);
    else
        dt_places_free(&k->places);
}

void dt_cluster_add(struct dt_cluster *c, const struct dt_node_class *node)
{
    size_t at = 0;
    for (; at < c->n && c->classes[at].cpus >= node->cpus; at++) {
        if (dt_class_same(&c->classes[at], node)) {
            add_alike(&c->classes[at], node);
            return;
        }
    }
    c->classes = dt_xrealloc(c->classes, c->n + 1, sizeof(*c->classes));
    memmove(c->classes + at + 1, c->classes + at, (c->n - at) * sizeof(*c->classes));
    c->classes[at] = *node;
    c->classes[at].features = own(node->features);
    c->classes[at].gres = own(node->gres);
    c->classes[at].places = (struct dt_places){0};
    dt_places_join(&c->classes[at].places, &node->places);
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
