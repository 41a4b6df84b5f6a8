#include "placement/placement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what there is ---- */

void dt_books_add(struct dt_books *p, const char *name, const struct dt_room *room, size_t threads)
{
    p->v = dt_xrealloc(p->v, p->n + 1, sizeof(*p->v));
    p->v[p->n++] = (struct dt_book_node){name ? dt_xstrdup(name) : NULL, *room, *room};
    threads = threads ? threads : 1;
    p->threads = threads > p->threads ? threads : p->threads;
    p->counts_memory |= room->mem_mib > 0;
}

void dt_books_free(struct dt_books *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->v[i].name);
    free(p->v);
    *p = (struct dt_books){0};
}

bool dt_books_empty(const struct dt_books *p, size_t i)
{
    const struct dt_room *all = &p->v[i].all, *left = &p->v[i].free;
    return left->cpus == all->cpus && left->gpus == all->gpus && left->mem_mib == all->mem_mib;
}

void dt_books_close(struct dt_books *p, size_t i)
{
    p->v[i].all = p->v[i].free = (struct dt_room){0};
}

struct dt_room dt_books_total(const struct dt_books *p)
{
    struct dt_room sum = {0};
    for (size_t i = 0; i < p->n; i++) {
        sum.cpus += p->v[i].all.cpus;
        sum.gpus += p->v[i].all.gpus;
        sum.mem_mib += p->v[i].all.mem_mib;
    }
    return sum;
}

uint64_t dt_books_mem_per_cpu(const struct dt_books *p)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < p->n; i++) {
        const struct dt_room *all = &p->v[i].all;
        if (all->cpus && all->mem_mib / all->cpus < least)
            least = all->mem_mib / all->cpus;
    }
    return p->counts_memory && least != UINT64_MAX ? least : 0;
}

size_t dt_whole_cores(size_t cpus, size_t threads)
{
    return threads > 1 ? (cpus + threads - 1) / threads * threads : cpus;
}

size_t dt_share(int role, size_t count, size_t n, size_t i)
{
    size_t place = role == 0 ? i : n - 1 - i;
    return count / n + (place < count % n);
}

/* ---- finding a place ---- */

/* So many tasks of a role on a node: one step, which Slurm gives whole cores. */
static struct dt_room room_of(const struct dt_books *p, const struct dt_need *need, size_t tasks)
{
    size_t cpus = need->cpus * tasks;
    return (struct dt_room){dt_whole_cores(cpus, p->threads), need->gpus * tasks,
                            need->mem_per_cpu * cpus};
}

static void add(struct dt_room *a, const struct dt_room *b)
{
    a->cpus += b->cpus;
    a->gpus += b->gpus;
    a->mem_mib += b->mem_mib;
}

static void subtract(struct dt_room *a, const struct dt_room *b)
{
    a->cpus -= b->cpus;
    a->gpus -= b->gpus;
    a->mem_mib -= b->mem_mib;
}

static bool holds(const struct dt_books *p, const struct dt_room *room, const struct dt_room *need)
{
    return room->cpus >= need->cpus && room->gpus >= need->gpus &&
           (!p->counts_memory || room->mem_mib >= need->mem_mib);
}

/* How many tasks of a role go into it. */
static size_t capacity(const struct dt_books *p, const struct dt_room *room,
                       const struct dt_need *need)
{
    size_t n = need->cpus ? room->cpus / need->cpus : need->count;
    uint64_t mem = need->mem_per_cpu * need->cpus;
    if (need->gpus && room->gpus / need->gpus < n)
        n = room->gpus / need->gpus;
    if (p->counts_memory && mem && room->mem_mib / mem < n)
        n = (size_t)(room->mem_mib / mem);
    n = n < need->count ? n : need->count;
    while (n && room_of(p, need, n).cpus > room->cpus)
        n--;
    return n;
}

static struct dt_place *part_of(struct dt_placement *s, size_t node)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].node == node)
            return &s->v[i];
    s->v = dt_xrealloc(s->v, s->n + 1, sizeof(*s->v));
    s->v[s->n] = (struct dt_place){.node = node, .tasks = dt_xcalloc(s->nroles, sizeof(size_t))};
    return &s->v[s->n++];
}

static void put(const struct dt_books *p, struct dt_placement *s, size_t node,
                const struct dt_need *needs, size_t role, size_t tasks)
{
    struct dt_place *part = part_of(s, node);
    struct dt_room room = room_of(p, &needs[role], tasks);
    part->tasks[role] += tasks;
    add(&part->room, &room);
}

/* The fullest node that holds all of `need`, among those not in `used`; p->n: none. */
static size_t tightest(const struct dt_books *p, const struct dt_room *need, const bool *used)
{
    size_t best = p->n;
    for (size_t i = 0; i < p->n; i++) {
        if ((used && used[i]) || !holds(p, &p->v[i].free, need))
            continue;
        if (best == p->n || p->v[i].free.cpus < p->v[best].free.cpus ||
            (p->v[i].free.cpus == p->v[best].free.cpus && p->v[i].free.gpus < p->v[best].free.gpus))
            best = i;
    }
    return best;
}

static bool on_one(const struct dt_books *p, const struct dt_need *needs, struct dt_placement *s)
{
    struct dt_room all = {0};
    for (size_t r = 0; r < s->nroles; r++) {
        struct dt_room room = room_of(p, &needs[r], needs[r].count);
        add(&all, &room);
    }
    size_t node = tightest(p, &all, NULL);
    for (size_t r = 0; node < p->n && r < s->nroles; r++)
        put(p, s, node, needs, r, needs[r].count);
    return node < p->n;
}

static bool on_many_alike(const struct dt_books *p, const struct dt_need *needs, size_t nodes,
                          struct dt_placement *s)
{
    bool *used = dt_xcalloc(p->n, sizeof(*used)), ok = true;
    for (size_t i = 0; i < nodes && ok; i++) {
        struct dt_room all = {0};
        for (size_t r = 0; r < s->nroles; r++) {
            struct dt_room room = room_of(p, &needs[r], dt_share((int)r, needs[r].count, nodes, i));
            add(&all, &room);
        }
        size_t node = tightest(p, &all, used);
        ok = node < p->n;
        for (size_t r = 0; ok && r < s->nroles; r++)
            put(p, s, node, needs, r, dt_share((int)r, needs[r].count, nodes, i));
        if (ok)
            used[node] = true;
    }
    free(used);
    return ok;
}

/* The largest tasks first: the small ones fit into what is left. */
static size_t next_role(const struct dt_need *needs, size_t n, const bool *done)
{
    size_t best = n;
    for (size_t r = 0; r < n; r++) {
        if (done[r])
            continue;
        if (best == n || needs[r].gpus > needs[best].gpus ||
            (needs[r].gpus == needs[best].gpus && needs[r].cpus > needs[best].cpus))
            best = r;
    }
    return best;
}

/* One role into what is free, where the share is begun first, then on the emptiest nodes. */
static bool fill_role(const struct dt_books *p, struct dt_room *left, const struct dt_need *needs,
                      size_t role, struct dt_placement *s)
{
    size_t tasks = needs[role].count;
    bool *seen = dt_xcalloc(p->n, sizeof(*seen));
    for (size_t k = 0; k < p->n && tasks; k++) {
        size_t best = p->n, most = 0;
        bool begun = false;
        for (size_t i = 0; i < p->n; i++) {
            size_t n = seen[i] ? 0 : capacity(p, &left[i], &needs[role]);
            bool ours = left[i].cpus != p->v[i].free.cpus;
            if (n && (best == p->n || (ours && !begun) || (ours == begun && n > most))) {
                best = i;
                most = n;
                begun = ours;
            }
        }
        if (best == p->n)
            break;
        seen[best] = true;
        most = most < tasks ? most : tasks;
        struct dt_room room = room_of(p, &needs[role], most);
        put(p, s, best, needs, role, most);
        subtract(&left[best], &room);
        tasks -= most;
    }
    free(seen);
    return tasks == 0;
}

static bool on_few(const struct dt_books *p, const struct dt_need *needs, struct dt_placement *s)
{
    struct dt_room *left = dt_xcalloc(p->n, sizeof(*left));
    bool *done = dt_xcalloc(s->nroles, sizeof(*done)), ok = true;
    for (size_t i = 0; i < p->n; i++)
        left[i] = p->v[i].free;
    for (size_t k = 0; k < s->nroles && ok; k++) {
        size_t role = next_role(needs, s->nroles, done);
        done[role] = true;
        ok = fill_role(p, left, needs, role, s);
    }
    free(left);
    free(done);
    return ok;
}

static int by_node(const void *a, const void *b)
{
    const struct dt_place *x = a, *y = b;
    return (x->node > y->node) - (x->node < y->node);
}

bool dt_placement_find(const struct dt_books *p, const struct dt_need *needs, size_t nroles,
                       size_t nodes, struct dt_placement *s)
{
    *s = (struct dt_placement){.nroles = nroles};
    bool ok =
        nodes ? on_many_alike(p, needs, nodes, s) : on_one(p, needs, s) || on_few(p, needs, s);
    if (!ok)
        dt_placement_free(s);
    else if (s->n)
        qsort(s->v, s->n, sizeof(*s->v), by_node);
    return ok;
}

/* ---- the books ---- */

void dt_placement_take(struct dt_books *p, const struct dt_placement *s)
{
    for (size_t i = 0; i < s->n; i++)
        subtract(&p->v[s->v[i].node].free, &s->v[i].room);
}

void dt_placement_give_back(struct dt_books *p, const struct dt_placement *s)
{
    for (size_t i = 0; i < s->n; i++)
        add(&p->v[s->v[i].node].free, &s->v[i].room);
}

void dt_placement_free(struct dt_placement *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i].tasks);
    free(s->v);
    *s = (struct dt_placement){0};
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static double part_of_node(const struct dt_books *p, const struct dt_place *part)
{
    const struct dt_room *all = &p->v[part->node].all, *room = &part->room;
    double cpus = ratio((double)room->cpus, (double)all->cpus);
    double gpus = ratio((double)room->gpus, (double)all->gpus);
    double mem = p->counts_memory ? ratio((double)room->mem_mib, (double)all->mem_mib) : 0;
    return fmax(cpus, fmax(gpus, mem));
}

double dt_placement_nodes(const struct dt_books *p, const struct dt_placement *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->n; i++)
        sum += part_of_node(p, &s->v[i]);
    return sum;
}

double dt_placement_fraction(const struct dt_books *p, const struct dt_placement *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->n; i++)
        sum += part_of_node(p, &s->v[i]) * (double)p->v[s->v[i].node].all.cpus;
    return ratio(sum, (double)dt_books_total(p).cpus);
}
