/* Layout steps: a trial as a share of the tuning job's own allocation. */
#include "expand/expand.h"

#include <stdlib.h>

struct dt_books dt_cluster_books(const struct dt_cluster *c)
{
    struct dt_books books = {.threads = 1};
    for (size_t i = 0; i < c->n; i++) {
        const struct dt_node_class *k = &c->classes[i];
        for (size_t j = 0; j < k->count; j++)
            dt_books_add(&books, NULL, &(struct dt_room){k->cpus, k->gpus, k->mem_mib}, k->threads);
    }
    return books;
}

static struct dt_need need_of(const struct dt_role *role, const struct dt_books *books)
{
    struct dt_need need = {.count = role->count,
                           .cpus = role->cpus,
                           .gpus = role->gpus,
                           .mem_per_cpu = dt_books_mem_per_cpu(books)};
    if (role->mem_mib)
        need.mem_per_cpu = (role->mem_mib + need.cpus - 1) / need.cpus;
    return need;
}

void dt_shape_needs(const struct dt_shape *s, const struct dt_books *books,
                    struct dt_need needs[DT_ROLES])
{
    for (int r = 0; r < DT_ROLES; r++)
        needs[r] = need_of(&s->roles[r], books);
}

bool dt_shape_place(const struct dt_shape *s, const struct dt_books *books,
                    struct dt_placement *where)
{
    const struct dt_role *ps = &s->roles[DT_ROLE_PS], *workers = &s->roles[DT_ROLE_WORKER];
    struct dt_need needs[DT_ROLES];
    size_t nodes = ps->nodes > workers->nodes ? ps->nodes : workers->nodes;
    dt_shape_needs(s, books, needs);
    return dt_placement_find(books, needs, DT_ROLES, nodes, where);
}

const char *dt_steps_why_not(const struct dt_shape *s, const struct dt_job *job,
                             const struct dt_cluster *c)
{
    struct dt_placement where;
    if (s->kinds)
        return "layout steps: the nodes are those of the tuning job; leave out ps_constraint, "
               "worker_constraint and partition";
    for (int r = 0; r < DT_ROLES; r++) {
        if (s->roles[r].gpus_as_given)
            return "layout steps: GPUs that tasks share cannot be divided; ask for so many a task";
        if (s->roles[r].tmp_mib)
            return "layout steps: Slurm does not divide the disk of a job among its steps";
    }
    if (job->overcommit)
        return "layout steps: with --overcommit there are no CPUs to divide";
    if (!c)
        return NULL;
    struct dt_books books = dt_cluster_books(c);
    bool fits = dt_shape_place(s, &books, &where);
    if (fits)
        dt_placement_free(&where);
    dt_books_free(&books);
    return fits ? NULL : "layout steps: more CPUs, memory or GPUs than the job's allocation has";
}

static size_t divide_up(size_t a, size_t b)
{
    return b ? (a + b - 1) / b : a;
}

struct dt_cluster *dt_allocation_asked(const struct dt_job *job, const struct dt_cluster *c,
                                       bool whole_nodes)
{
    const struct dt_node_class *largest = &c->classes[0];
    struct dt_cluster *a = dt_xcalloc(1, sizeof(*a));
    size_t nodes = job->nodes > job->listed ? job->nodes : job->listed;
    if (!nodes && job->tasks_per_node)
        nodes = divide_up(job->tasks, job->tasks_per_node);
    if (!nodes)
        nodes = divide_up(job->tasks * job->cpus, largest->cpus);
    size_t tasks = divide_up(job->tasks, nodes);
    struct dt_node_class node = {.count = nodes,
                                 .cpus = tasks * job->cpus,
                                 .gpus = tasks * job->gpus,
                                 .mem_mib = tasks * job->mem_mib,
                                 .tmp_mib = largest->tmp_mib};
    if (job->node_mem_mib)
        node.mem_mib = job->node_mem_mib;
    if (job->gpus_shared)
        node.gpus = largest->gpus;
    if (whole_nodes) {
        node = *largest;
        node.count = nodes;
    }
    a->partition = c->partition ? dt_xstrdup(c->partition) : NULL;
    a->backfill = c->backfill;
    a->limits.max_time = c->limits.max_time;
    dt_cluster_add(a, &node);
    return a;
}
