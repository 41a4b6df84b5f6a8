#include "space/feasible_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- the nodes of a cluster ---- */

/* Neighbours in Slurm's table that are alike. */
struct span {
    size_t class, first; /* the place of the first; where places are not known the class's order */
    size_t free;         /* nodes that no earlier component has, */
    size_t open, taken;  /* of them those that this one still tries, and those that it takes */
};

struct pool {
    const struct dt_cluster *p;
    struct span *spans; /* as Slurm takes their nodes */
    size_t nspans;
    size_t *near; /* of a class: GPUs that draw components to it */
    struct dt_room *rooms;
    struct dt_part *parts; /* what is taken, in this order */
    size_t nparts;
};

static int by_weight(const void *a, const void *b, void *arg)
{
    const struct pool *pool = arg;
    const struct span *x = a, *y = b;
    const struct dt_node_class *k = pool->p->classes;
    if (k[x->class].weight != k[y->class].weight)
        return k[x->class].weight < k[y->class].weight ? -1 : 1;
    if (pool->near[x->class] != pool->near[y->class])
        return pool->near[x->class] > pool->near[y->class] ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->class < y->class ? -1 : 1;
}

/* Before a component of a heterogeneous job its others were tested, and the last that wants GPUs
 * has left the nodes with some a little lighter: they are taken first, also for those that want
 * none. Tests of other jobs undo that, so that beside them a job may start that never does alone.
 */
static size_t near_gpus(const struct dt_node_class *k, const struct dt_needed *needs, size_t n)
{
    size_t near = 0;
    for (size_t i = 0; n > 1 && i < n; i++) {
        const struct dt_request *r = needs[i].request;
        size_t tasks = r->tasks_per_node ? r->tasks_per_node : needs[i].tasks;
        size_t wanted = r->gpus_per_node ? r->gpus_per_node : r->gpus_per_task * tasks + r->gpus;
        near = wanted ? dt_least(wanted, dt_node_gpus(k, r->gpu_type)) : near;
    }
    return near;
}

static void add_spans(struct pool *pool, size_t class)
{
    const struct dt_node_class *k = &pool->p->classes[class];
    for (size_t i = 0; i < k->places.n; i++)
        pool->spans[pool->nspans++] =
            (struct span){.class = class, .first = k->places.v[i].first, .free = k->places.v[i].n};
    if (!k->places.n)
        pool->spans[pool->nspans++] =
            (struct span){.class = class, .first = k->order, .free = k->count};
}

static struct pool pool_of(const struct dt_cluster *p, const struct dt_needed *needs, size_t n)
{
    struct pool pool = {.p = p};
    size_t nspans = 0;
    for (size_t i = 0; i < p->n; i++)
        nspans += dt_most(p->classes[i].places.n, 1);
    pool.spans = dt_xcalloc(nspans, sizeof(*pool.spans));
    pool.near = dt_xcalloc(p->n, sizeof(*pool.near));
    pool.rooms = dt_xcalloc(p->n, sizeof(*pool.rooms));
    for (size_t i = 0; i < p->n; i++) {
        pool.near[i] = near_gpus(&p->classes[i], needs, n);
        add_spans(&pool, i);
    }
    qsort_r(pool.spans, nspans, sizeof(*pool.spans), by_weight, &pool);
    return pool;
}

static void pool_free(struct pool *pool)
{
    free(pool->spans);
    free(pool->near);
    free(pool->rooms);
    free(pool->parts);
}

/* ---- what is lacking ---- */

/* What a job still lacks while nodes are picked for it. */
struct lack {
    size_t nodes, spare; /* of the nodes the last `spare` are welcome, but need not be */
    size_t cpus, tasks, gpus;
    size_t left;             /* so many nodes more at most */
    size_t demanded, budget; /* nodes that it must have, CPUs that it gets */
};

static struct lack lack_of(const struct dt_needed *n)
{
    const struct dt_request *r = n->request;
    size_t hoped = r->nodes_max && !r->gpus ? dt_most(n->max_nodes, n->min_nodes) : n->min_nodes;
    size_t gpus = dt_most(r->gpus, n->min_nodes * r->gpus_per_node);
    return (struct lack){.nodes = hoped,
                         .spare = hoped - n->min_nodes,
                         .cpus = n->min_cpus,
                         .tasks = r->gpus_per_task ? n->tasks : 0,
                         .gpus = dt_most(r->gpus, n->tasks * r->gpus_per_task),
                         .left = n->max_nodes,
                         .demanded = n->min_nodes,
                         .budget = dt_most(n->min_cpus, n->cpus_per_gpu * gpus)};
}

static bool met(const struct lack *l)
{
    return !l->nodes && !l->cpus && !l->tasks && !l->gpus;
}

static bool is_enough(const struct lack *l, size_t nodes, const struct dt_room *r)
{
    return nodes + l->spare >= l->nodes && r->counted >= l->cpus && r->tasks >= l->tasks &&
           r->gpus >= l->gpus;
}

/* A core for each node that is still to come is kept out of what one gives. */
static size_t cpus_for(const struct lack *l, size_t core)
{
    size_t kept = l->demanded > 1 ? (l->demanded - 1) * core : 0;
    return l->budget > kept ? l->budget - kept : 0;
}

/* How many nodes of this room the job would still take, if each gives it so many CPUs. */
static size_t wanted(const struct lack *l, const struct dt_room *r, size_t cpus)
{
    size_t n = dt_most(l->nodes, dt_parts(l->cpus, cpus));
    if (r->tasks)
        n = dt_most(n, dt_parts(l->tasks, r->tasks));
    return r->gpus ? dt_most(n, dt_parts(l->gpus, r->gpus)) : n;
}

static void add_part(struct pool *pool, const struct dt_part *part)
{
    struct dt_part *last = pool->nparts ? &pool->parts[pool->nparts - 1] : NULL;
    if (last && last->class == part->class && last->place == part->place &&
        last->cpus == part->cpus) {
        last->nodes += part->nodes;
        return;
    }
    pool->parts = dt_xrealloc(pool->parts, pool->nparts + 1, sizeof(*pool->parts));
    pool->parts[pool->nparts++] = *part;
}

/* Nodes of a span, each for so many CPUs. */
static void take(struct pool *pool, struct span *s, size_t n, size_t cpus, struct lack *l)
{
    const struct dt_room *r = &pool->rooms[s->class];
    size_t counted = cpus == r->cpus ? r->counted : cpus;
    add_part(pool, &(struct dt_part){s->class, s->first, n, cpus, r->tasks});
    s->taken += n;
    l->left -= n;
    l->demanded -= dt_least(l->demanded, n);
    l->budget -= dt_least(l->budget, n * counted);
    l->nodes -= dt_least(l->nodes, n);
    l->cpus -= dt_least(l->cpus, n * counted);
    l->tasks -= dt_least(l->tasks, n * r->tasks);
    l->gpus -= dt_least(l->gpus, n * r->gpus);
}

/* Takes up to `n` nodes of a span; fewer where they would give different numbers of CPUs. A job
 * that gets whole nodes gets all that they have, another no more than it asks for. */
static size_t take_some(struct pool *pool, const struct dt_needed *need, struct span *s, size_t n,
                        struct lack *l)
{
    const struct dt_node_class *k = &pool->p->classes[s->class];
    const struct dt_room *r = &pool->rooms[s->class];
    size_t core = dt_of_core(need, k) * (pool->p->scheduling.sockets ? dt_most(k->cores, 1) : 1);
    size_t most = need->whole_nodes ? SIZE_MAX : cpus_for(l, core);
    bool cut = r->counted > most;
    size_t cpus = cut ? dt_most(most, need->node_cpus) : r->counted;
    if (!cut)
        n = dt_least(n, dt_most(most / cpus, 1));
    else if (cpus > need->node_cpus || cpus < core)
        n = 1;
    n = dt_least(n, wanted(l, r, cpus));
    if (n == l->left && l->cpus > (n - 1) * cpus + r->counted) /* the last must bring the rest */
        n--;
    if (n)
        take(pool, s, n, cut ? cpus : r->cpus, l);
    return n;
}

/* ---- which of them it gets ---- */

/* Equally heavy neighbours in Slurm's table: it looks for the set that fits best. */
struct set {
    size_t first, end; /* among the spans */
    size_t nodes;
    struct dt_room room; /* of all of them */
};

static bool are_alike(const struct pool *pool, const struct span *a, const struct span *b)
{
    return pool->p->classes[a->class].weight == pool->p->classes[b->class].weight &&
           pool->near[a->class] == pool->near[b->class];
}

static bool are_neighbours(const struct pool *pool, const struct span *a, const struct span *b)
{
    size_t length = pool->p->classes[a->class].places.n ? a->free : 1;
    return are_alike(pool, a, b) && (!b->first || b->first == a->first + length);
}

/* The set that begins with a span. */
static struct set set_at(const struct pool *pool, size_t first)
{
    struct set set = {.first = first, .end = first};
    for (; set.end < pool->nspans; set.end++) {
        const struct span *s = &pool->spans[set.end];
        const struct dt_room *r = &pool->rooms[s->class];
        if (!s->open || (set.end > first && !are_neighbours(pool, s - 1, s)))
            break;
        set.nodes += s->open;
        set.room.counted += s->open * r->counted;
        set.room.tasks += s->open * r->tasks;
        set.room.gpus += s->open * r->gpus;
    }
    return set;
}

/* The lightest; of equal ones the first that is enough, or the smallest such, or else the largest.
 */
static size_t best_set(const struct pool *pool, const struct set *sets, size_t n,
                       const struct lack *l)
{
    size_t best = n;
    for (size_t i = 0; i < n; i++) {
        if (!sets[i].nodes)
            continue;
        if (best < n && !are_alike(pool, &pool->spans[sets[best].first],
                                   &pool->spans[sets[i].first])) /* they are in order */
            break;
        bool enough = is_enough(l, sets[i].nodes, &sets[i].room);
        size_t cpus = sets[i].room.counted, most = best < n ? sets[best].room.counted : 0;
        if (best == n ||
            (enough && (!is_enough(l, sets[best].nodes, &sets[best].room) || cpus < most)) ||
            (!enough && cpus > most))
            best = i;
    }
    return best;
}

/* The span of the smallest node of the set that alone is enough, or NULL. */
static struct span *one_node(const struct pool *pool, const struct set *set, const struct lack *l)
{
    struct span *found = NULL;
    for (size_t k = set->first; k < set->end && l->nodes <= 1; k++) {
        struct span *s = &pool->spans[k];
        const struct dt_room *r = &pool->rooms[s->class];
        if (is_enough(l, 1, r) && (!found || r->counted < pool->rooms[found->class].counted))
            found = s;
    }
    return found;
}

static void take_from(struct pool *pool, const struct dt_needed *n, const struct set *set,
                      struct lack *l)
{
    struct span *one = one_node(pool, set, l);
    if (one) {
        take_some(pool, n, one, 1, l);
        return;
    }
    for (size_t k = set->first; k < set->end; k++) {
        struct span *s = &pool->spans[k];
        for (size_t got = 1; s->taken < s->open && got && l->left && !met(l);)
            got = take_some(pool, n, s, dt_least(s->open - s->taken, l->left), l);
    }
}

/* Takes open nodes as Slurm does; true where they suffice. */
static bool pick(struct pool *pool, const struct dt_needed *n)
{
    static const struct dt_room nothing;
    struct lack l = lack_of(n);
    struct set *sets = dt_xcalloc(pool->nspans, sizeof(*sets));
    size_t count = 0;
    pool->nparts = 0;
    for (size_t k = 0; k < pool->nspans;) {
        struct set set = set_at(pool, k);
        for (size_t end = dt_most(k + 1, set.end); k < end; k++)
            pool->spans[k].taken = 0;
        if (set.nodes)
            sets[count++] = set;
    }
    for (size_t best; !met(&l) && l.left && (best = best_set(pool, sets, count, &l)) < count;) {
        take_from(pool, n, &sets[best], &l);
        sets[best].nodes = 0;
    }
    free(sets);
    return is_enough(&l, 0, &nothing);
}

/* What a node counts for where the least are left out. */
static size_t size_of(const struct dt_needed *n, const struct dt_room *room)
{
    const struct dt_request *r = n->request;
    return room->cpus + (r->gpus || r->gpus_per_node || r->gpus_per_task ? room->gpus : 0);
}

/* Leaves the smallest open nodes out, down to as many as the job must have; false where there is
 * nothing more to leave out. */
static bool leave_out(struct pool *pool, const struct dt_needed *n)
{
    size_t least = DT_ANY, most = 0, open = 0;
    for (size_t i = 0; i < pool->nspans; i++) {
        const struct span *s = &pool->spans[i];
        size_t size = size_of(n, &pool->rooms[s->class]);
        open += s->open;
        most = s->open ? dt_most(most, size) : most;
        least = s->open ? dt_least(least, size) : least;
    }
    if (least >= most || open <= n->min_nodes)
        return false;
    for (size_t i = 0; i < pool->nspans; i++) {
        struct span *s = &pool->spans[i];
        size_t out = dt_least(s->open, open - n->min_nodes);
        if (size_of(n, &pool->rooms[s->class]) > least)
            continue;
        s->open -= out;
        open -= out;
    }
    return true;
}

/* Where the nodes of little weight do not suffice within the limit of nodes, Slurm leaves the
 * smallest out, one size after the other. */
static bool place(struct pool *pool, const struct dt_needed *n, struct dt_got *got)
{
    bool ok;
    for (size_t i = 0; i < pool->p->n; i++)
        pool->rooms[i] = dt_room_of(n, &pool->p->classes[i], pool->p);
    for (size_t i = 0; i < pool->nspans; i++) {
        struct span *s = &pool->spans[i];
        s->open = pool->rooms[s->class].cpus ? s->free : 0;
    }
    while (!(ok = pick(pool, n)) && leave_out(pool, n))
        ;
    *got = dt_got_on(n, pool->p, pool->parts, pool->nparts);
    return ok;
}

/* What a component has taken is gone for the next. */
static void close_taken(struct pool *pool)
{
    for (size_t i = 0; i < pool->nspans; i++) {
        struct span *s = &pool->spans[i];
        s->free -= s->taken;
        if (pool->p->classes[s->class].places.n)
            s->first += s->taken;
    }
}

bool dt_fit(const struct dt_cluster *p, const struct dt_needed *needs, size_t n, struct dt_got *got)
{
    struct pool pool = pool_of(p, needs, n);
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++)
        if ((ok = place(&pool, &needs[i], &got[i])))
            close_taken(&pool);
    pool_free(&pool);
    return ok;
}
