/* dt-tune topo of a single node: its cores and devices, and who of a trial's tasks would sit where.
 */
#include "tools/tools.h"
#include "topology/topology.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEATS_MAX 4096
#define GATHER_START 30 /* seconds in which the step must begin */
#define GATHER_END 120

/* ---- --plan ---- */

/* ROLE:CPUS or ROLE:CPUS:GPUS; the seat's role is the caller's. */
static int read_seat(const char *word, struct dt_seat *seat, struct dt_error *e)
{
    struct dt_strv parts = DT_STRV_INIT;
    int64_t cpus = 0, gpus = 0;
    dt_strv_split(&parts, word, ":");
    bool ok = (parts.n == 2 || parts.n == 3) && dt_parse_int64(parts.v[1], &cpus) == 0 &&
              cpus > 0 && (parts.n == 2 || (dt_parse_int64(parts.v[2], &gpus) == 0 && gpus >= 0));
    if (ok)
        *seat = (struct dt_seat){.role = dt_xstrdup(parts.v[0]),
                                 .server = strcmp(parts.v[0], "ps") == 0,
                                 .cpus = (size_t)cpus,
                                 .gpus = (size_t)gpus};
    dt_strv_free(&parts);
    return ok ? 0
              : dt_fail(e,
                        "topo: --plan: \"%s\" is no task; write ROLE:CPUS or ROLE:CPUS:GPUS, and "
                        "NxROLE:CPUS:GPUS for N of them",
                        word);
}

static void free_seats(struct dt_seat *seats, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free((char *)seats[i].role);
    dt_seats_free(seats, n);
    free(seats);
}

/* "1xps:2,4xworker:4:1"; *n tasks, owned by the caller also on error. */
static int read_seats(const char *text, struct dt_seat **seats, size_t *n, struct dt_error *e)
{
    struct dt_strv words = DT_STRV_INIT;
    int rc = 0;
    dt_strv_split(&words, text, ", ");
    for (size_t i = 0; i < words.n && rc == 0; i++) {
        char *rest;
        unsigned long count = strtoul(words.v[i], &rest, 10);
        bool many = rest != words.v[i] && *rest == 'x';
        if (many && (count < 1 || count > SEATS_MAX))
            rc = dt_fail(e, "topo: --plan: \"%s\": so many tasks are on no node", words.v[i]);
        for (size_t k = 0; k < (many ? count : 1) && rc == 0; k++) {
            *seats = dt_xrealloc(*seats, *n + 1, sizeof(**seats));
            rc = read_seat(many ? rest + 1 : words.v[i], &(*seats)[*n], e);
            *n += rc == 0;
        }
    }
    dt_strv_free(&words);
    return rc;
}

static int print_plan(const struct dt_topology *t, const char *plan, bool json, struct dt_error *e)
{
    struct dt_seat *seats = NULL;
    size_t n = 0, *pool = dt_xcalloc(t->ngpus, sizeof(*pool));
    for (size_t i = 0; i < t->ngpus; i++)
        pool[i] = i;
    int rc = read_seats(plan, &seats, &n, e);
    if (rc == 0)
        rc = dt_topology_share_gpus(t, pool, t->ngpus, seats, n, e);
    if (rc == 0)
        rc = dt_topology_seat(t, NULL, false, seats, n, e);
    if (rc == 0)
        print_either(json ? NULL : dt_seats_text(t, seats, n),
                     json ? dt_seats_to_json(t, seats, n) : NULL);
    free_seats(seats, n);
    free(pool);
    return rc;
}

/* ---- a machine ---- */

static void print_topology(const struct dt_topology *t, bool json)
{
    print_either(json ? NULL : dt_topology_text(t), json ? dt_topology_to_json(t) : NULL);
}

int print_machine(const char *path, const char *plan, enum topo_format format, struct dt_error *e)
{
    bool here = strcmp(path, "here") == 0, json = format == TOPO_JSON;
    if (format == TOPO_XML) {
        char *xml =
            here ? dt_topology_export(e)
                 : (dt_fail(e, "topo: --format=xml writes this node's: --machine=here"), NULL);
        int rc = xml && fputs(xml, stdout) >= 0 ? 0 : -1;
        free(xml);
        return rc;
    }
    struct dt_topology *t = here ? dt_topology_here(e) : dt_topology_read(path, e);
    int rc = t ? 0 : -1;
    if (t && plan)
        rc = print_plan(t, plan, json, e);
    else if (t)
        print_topology(t, json);
    dt_topology_free(t);
    return rc;
}

/* ---- --gather ---- */

/* A node of the kind that may run something, an idle one first. Caller frees; NULL: none. */
static char *any_node(const struct dt_node_kind *k)
{
    const struct dt_node_group *best = NULL;
    struct dt_strv names = DT_STRV_INIT;
    for (size_t i = 0; i < k->ngroups; i++) {
        const struct dt_node_group *g = &k->groups[i];
        if (g->usable && (!best || strcmp(g->state, "idle") == 0))
            best = g;
    }
    if (best)
        dt_hostlist_expand(best->names, &names, NULL);
    char *name = names.n ? dt_xstrdup(names.v[0]) : NULL;
    dt_strv_free(&names);
    return name;
}

/* With the node's GPUs in the step their driver tells how they are connected, also where steps are
 * kept to their own. */
static int run_there(const struct dt_node_kind *k, const char *node, const char *self,
                     const char *output, bool gpus, struct dt_error *e)
{
    struct dt_strv argv = DT_STRV_INIT, env = DT_STRV_INIT;
    struct dt_proc_result r;
    char *partition = dt_xstrndup(k->partitions, strcspn(k->partitions, ","));
    dt_strv_add(&argv, "srun");
    dt_strv_add(&argv, "--job-name=dt-topo");
    dt_strv_addf(&argv, "--nodelist=%s", node);
    dt_strv_addf(&argv, "--partition=%s", partition);
    dt_strv_addf(&argv, "--immediate=%d", GATHER_START);
    dt_strv_addf(&argv, "--output=%s", output);
    if (gpus)
        dt_strv_addf(&argv, "--gpus-per-node=%zu", k->size.gpus);
    dt_strv_add(&argv, "--nodes=1");
    dt_strv_add(&argv, "--ntasks=1");
    dt_strv_add(&argv, "--time=2");
    dt_strv_add(&argv, self);
    dt_strv_add(&argv, "topo");
    dt_strv_add(&argv, "--machine=here");
    dt_strv_add(&argv, "--format=xml");
    dt_scrubbed_environ(&env);
    int rc = dt_proc_run(argv.v, env.v, GATHER_END, &r, e);
    if (rc == 0) {
        if (!WIFEXITED(r.status) || WEXITSTATUS(r.status) != 0) {
            r.err[strcspn(r.err, "\n")] = '\0';
            rc = dt_fail(e, "node %s: %s", node, *r.err ? r.err : "the step did not end well");
        }
        dt_proc_result_free(&r);
    }
    dt_strv_free(&argv);
    dt_strv_free(&env);
    free(partition);
    return rc;
}

static int gather_kind(const struct dt_node_kind *k, const char *folder, const char *self,
                       struct dt_error *e)
{
    char key[17], *node = any_node(k);
    dt_topology_key(&k->size, key);
    char *path = dt_xasprintf("%s/%s.xml", folder, key), *part = dt_xasprintf("%s.part", path);
    int rc =
        node ? -1
             : dt_fail(e, "%s: none of these nodes is up", k->ngroups ? k->groups[0].names : "?");
    if (node && k->size.gpus)
        rc = run_there(k, node, self, part, true, NULL);
    if (node && rc < 0)
        rc = run_there(k, node, self, part, false, e);
    struct dt_topology *t = rc == 0 ? dt_topology_read(part, e) : NULL;
    if (t && rename(part, path) == 0) {
        printf("%s, as on %s: %s\n", k->groups[0].names, node, path);
        print_topology(t, false);
    } else if (rc == 0) {
        rc = t ? dt_fail(e, "%s: cannot be written", path) : -1;
    }
    unlink(part);
    dt_topology_free(t);
    free(part);
    free(path);
    free(node);
    return rc;
}

int gather_machines(const struct dt_system *s, struct dt_error *e)
{
    char *folder = dt_topology_cache(), *self = dt_self_exe(e);
    int rc = self ? 0 : -1;
    size_t failed = 0;
    if (!folder)
        rc = dt_fail(e, "nobody knows where your home is: set XDG_CACHE_HOME");
    else if (rc == 0)
        rc = dt_mkdirs(folder, e);
    for (size_t i = 0; i < s->nkinds && rc == 0; i++) {
        struct dt_error one = DT_ERROR_INIT;
        if (gather_kind(&s->kinds[i], folder, self, &one) < 0) {
            fprintf(stderr, "dt-tune: %s\n", one.text);
            failed++;
        }
        dt_error_clear(&one);
    }
    if (failed)
        rc = dt_fail(e, "topo: %zu of %zu kinds of nodes could not be asked", failed, s->nkinds);
    free(folder);
    free(self);
    return rc;
}

void print_known_machine(const struct dt_node_class *kind)
{
    char key[17], *cache = dt_topology_cache();
    dt_topology_key(kind, key);
    char *path = dt_topology_find(NULL, cache, NULL, key);
    struct dt_topology *t = path ? dt_topology_read(path, NULL) : NULL;
    if (t)
        print_topology(t, false);
    dt_topology_free(t);
    free(path);
    free(cache);
}
