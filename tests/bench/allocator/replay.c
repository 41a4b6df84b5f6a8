/* Replays measured tables through the allocator: allocator_replay dl2|synergy TABLE.csv prints a
 * line a model and rule: the way from one configuration to the next, and how the last compares with
 * the best of the table. */
#include "allocator/allocator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES 10

/* How a table is read. */
struct layout {
    const char *params[2], *columns[2]; /* the space */
    double scale[2];                    /* of the columns, to whole numbers */
    const char *speed, *ps, *worker;    /* usage in cores, or NULL */
    double cores;                       /* that a task had */
    size_t most;                        /* re-allocations */
};
static const struct layout dl2 = {{"ps", "workers"}, {"n_ps", "n_workers"}, {1, 1}, "samples_per_s",
                                  "ps_cpu_mean",     "worker_cpu_mean",     2,      5};
static const struct layout synergy = {{"worker_cpus", "worker_mem"},
                                      {"cpus_per_gpu", "mem_gb_per_gpu"},
                                      {1, 100},
                                      "rel_throughput",
                                      NULL,
                                      NULL,
                                      1,
                                      20};

struct row {
    double x[2], speed, ps, worker;
};
struct model {
    const char *name;
    struct row *v;
    size_t n;
};

static void die(const char *text)
{
    fprintf(stderr, "allocator_replay: %s\n", text ? text : "unknown error");
    exit(1);
}

static double cell(const struct dt_table *t, size_t row, const char *name)
{
    struct dt_error e = DT_ERROR_INIT;
    double x = NAN;
    int column = name ? dt_table_column(t, name, &e) : -1;
    if (name && column < 0)
        die(e.text);
    if (name && dt_parse_double(dt_table_cell(t, row, column), &x) < 0)
        x = NAN;
    return x;
}

/* The rows of one model that ran well. */
static struct model rows_of(const struct dt_table *t, const struct layout *l, const char *name)
{
    struct model m = {.name = name, .v = dt_xcalloc(t->nrows, sizeof(*m.v))};
    for (size_t i = 0; i < t->nrows; i++) {
        struct row r = {.speed = cell(t, i, l->speed),
                        .ps = cell(t, i, l->ps) / l->cores,
                        .worker = cell(t, i, l->worker) / l->cores};
        int status = dt_table_column(t, "status", NULL);
        bool ok = status < 0 || strcmp(dt_table_cell(t, i, status), "ok") == 0;
        for (int k = 0; k < 2; k++)
            r.x[k] = round(cell(t, i, l->columns[k]) * l->scale[k]);
        if (ok && r.speed > 0 && strcmp(dt_table_cell(t, i, 0), name) == 0)
            m.v[m.n++] = r;
    }
    return m;
}

static struct dt_space *space_of(const struct model *m, const struct layout *l)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_param params[2];
    struct dt_strv none = DT_STRV_INIT;
    double *points = dt_xcalloc(2 * m->n, sizeof(double));
    for (int k = 0; k < 2; k++) {
        params[k] = (struct dt_param){
            .name = (char *)l->params[k], .kind = DT_PARAM_INT, .low = 1, .high = 1e6, .step = 1};
        for (size_t i = 0; i < m->n; i++)
            points[2 * i + (size_t)k] = m->v[i].x[k];
    }
    struct dt_space *s = dt_space_new(params, 2, &none, NULL, 0, NULL, NULL, points, m->n, &e);
    if (!s)
        die(e.text);
    free(points);
    return s;
}

static const struct row *find(const struct model *m, const double *x)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->v[i].x[0] == x[0] && m->v[i].x[1] == x[1])
            return &m->v[i];
    die("the allocator left the table");
    return NULL;
}

static const struct row *start_of(const struct model *m, bool from_least)
{
    const struct row *r = &m->v[0];
    for (size_t i = 1; i < m->n; i++) {
        double d = m->v[i].x[0] + m->v[i].x[1] - r->x[0] - r->x[1];
        if (from_least ? d < 0 : d > 0)
            r = &m->v[i];
    }
    return r;
}

static void use(struct dt_role_usages *all, const char *role, double level)
{
    struct dt_usage u = dt_usage_unknown(0);
    u.mean[DT_RESOURCE_CPU] = u.max[DT_RESOURCE_CPU] = level;
    for (int i = 0; i < SAMPLES; i++)
        dt_role_usages_add(all, role, 1, &u);
}

/* The wish of a trial that has come so far; x is NULL at the end of the way. */
static struct dt_wish ask(const struct dt_allocator *a, const struct dt_space *s,
                          const struct dt_stretch *way, size_t n, size_t most)
{
    struct dt_role_usages usage = {0};
    struct dt_running t = {
        .usage = &usage, .stretches = way, .n = n, .remaining = 1e9, .left = most + 1 - n};
    struct dt_wish w = {0};
    if (!isnan(way[n - 1].worker)) {
        use(&usage, "ps", way[n - 1].ps);
        use(&usage, "worker", way[n - 1].worker);
    }
    if (n <= most)
        dt_allocate(a, s, &t, 1, &w);
    dt_role_usages_free(&usage);
    return w;
}

struct result {
    double share;  /* of the best speed */
    size_t probes; /* configurations that were seen */
};

static struct result walk(const struct dt_allocator *a, const struct model *m,
                          const struct layout *l, bool from_least)
{
    struct dt_space *s = space_of(m, l);
    struct dt_stretch *way = dt_xcalloc(l->most + 1, sizeof(*way));
    const struct row *r = start_of(m, from_least);
    struct result result = {0};
    double best = 0;
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        best = fmax(best, m->v[i].speed);
    while (r) {
        bool seen = false;
        for (size_t i = 0; i < n; i++)
            seen |= way[i].x == r->x;
        result.probes += !seen;
        result.share = r->speed / best;
        way[n++] = (struct dt_stretch){r->x, 1 / r->speed, r->ps, r->worker};
        printf(" (%g,%g) %.2f", r->x[0] / l->scale[0], r->x[1] / l->scale[1], result.share);
        struct dt_wish w = ask(a, s, way, n, l->most);
        r = w.x ? find(m, w.x) : NULL;
        dt_wish_free(&w);
    }
    free(way);
    dt_space_free(s);
    return result;
}

int main(int argc, char **argv)
{
    static const char *const rules[] = {"none", "thresholds", "model", "save"};
    struct dt_error e = DT_ERROR_INIT;
    bool is_dl2 = argc == 3 && strcmp(argv[1], "dl2") == 0;
    if (argc != 3 || (!is_dl2 && strcmp(argv[1], "synergy") != 0))
        die("usage: allocator_replay dl2|synergy TABLE.csv");
    const struct layout *l = is_dl2 ? &dl2 : &synergy;
    struct dt_table *t = dt_table_read(argv[2], &e);
    if (!t)
        die(e.text);
    int first = is_dl2 ? DT_ALLOCATE_THRESHOLDS : DT_ALLOCATE_SAVE;
    int last = is_dl2 ? DT_ALLOCATE_MODEL : DT_ALLOCATE_SAVE;
    for (int rule = first; rule <= last; rule++) {
        struct dt_allocator a = DT_ALLOCATOR_INIT;
        double sum = 0, worst = INFINITY, n = 0;
        size_t most = 0;
        a.rule = (enum dt_allocate_rule)rule;
        for (size_t i = 0; i < t->nrows; i++) {
            const char *name = dt_table_cell(t, i, 0);
            if (i && strcmp(name, dt_table_cell(t, i - 1, 0)) == 0)
                continue;
            struct model m = rows_of(t, l, name);
            printf("%-10s %-24s", rules[rule], name);
            struct result r = walk(&a, &m, l, is_dl2);
            printf("  | %zu configurations\n", r.probes);
            sum += r.share;
            worst = fmin(worst, r.share);
            most = r.probes > most ? r.probes : most;
            n++;
            free(m.v);
        }
        printf("%-10s mean %.3f of the best, worst %.3f, at most %zu configurations\n", rules[rule],
               sum / n, worst, most);
    }
    dt_table_free(t);
    return 0;
}
