/* Random jobs for a cluster, and whether dt-tune takes each for one that can start.
 *
 *   shapes CLUSTER.json SEED N DIR
 *
 * CLUSTER.json is what dt-tune topo --save wrote. For shape i it writes DIR/i.verdict (one line:
 * "starts", or "never" and the reason; then what it is made of) and the batch scripts that stand
 * for it, DIR/i.1.sh and so on, which do nothing: one of a shape that can start; of one that
 * cannot, one for each way in which it could have been tried. Every third shape is a job as a user
 * may submit it, to the letter; the others are configurations of one role, or of two in one of the
 * layouts, of such a job. */
#include "expand/expand.h"

#include <stdlib.h>
#include <string.h>

static uint64_t state;

/* splitmix64 */
static uint64_t next_random(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static size_t below(size_t n)
{
    return (size_t)(next_random() % n);
}

static size_t between(size_t low, size_t high)
{
    return low + below(high - low + 1);
}

static bool one_in(size_t n)
{
    return below(n) == 0;
}

/* ---- a user's job ---- */

static size_t largest(const struct dt_system *s, size_t of)
{
    size_t most = 0;
    for (size_t i = 0; i < s->nkinds; i++) {
        const struct dt_node_class *k = &s->kinds[i].size;
        size_t v = of == 0 ? k->cpus : of == 1 ? (size_t)k->mem_mib : k->gpus;
        most = v > most ? v : most;
    }
    return most;
}

static size_t smallest(const struct dt_system *s)
{
    size_t least = s->kinds[0].size.cpus;
    for (size_t i = 1; i < s->nkinds; i++)
        least = s->kinds[i].size.cpus < least ? s->kinds[i].size.cpus : least;
    return least;
}

static size_t all_nodes(const struct dt_system *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->nkinds; i++)
        n += s->kinds[i].total;
    return n;
}

static void add_sizes(struct dt_strv *argv, const struct dt_system *s)
{
    size_t cpus = largest(s, 0), nodes = all_nodes(s);
    size_t tasks = between(1, cpus * 2), least_cpus = smallest(s);
    bool cpus_given = one_in(2);
    if (cpus_given)
        dt_strv_addf(argv, "--cpus-per-task=%zu",
                     between(1, one_in(8) ? cpus + 1 : (cpus + 2) / 3));
    if (one_in(3))
        dt_strv_addf(argv, "--nodes=%zu", between(1, nodes + one_in(4)));
    else if (one_in(4))
        dt_strv_addf(argv, "--nodes=%zu-%zu", between(1, 2), between(2, nodes));
    if (one_in(4))
        dt_strv_addf(argv, "--ntasks-per-node=%zu", between(1, one_in(3) ? cpus : least_cpus));
    if (!one_in(4))
        dt_strv_addf(argv, "--ntasks=%zu", one_in(2) ? between(1, 6) : tasks);
    if (one_in(8))
        dt_strv_add(argv, "--exclusive");
    if (one_in(12) && !cpus_given) /* with both a job waits for ever in Slurm 24.11 */
        dt_strv_add(argv, "--overcommit");
    if (one_in(12))
        dt_strv_addf(argv, "--ntasks-per-core=%zu", between(1, 2));
    if (one_in(20))
        dt_strv_addf(argv, "--extra-node-info=%zu:%zu", between(1, 2), between(1, 4));
}

static void add_memory(struct dt_strv *argv, const struct dt_system *s, bool gpus)
{
    size_t mem = largest(s, 1), cpus = largest(s, 0);
    switch (below(5)) {
    case 0:
        dt_strv_addf(argv, "--mem=%zuM", one_in(6) ? 0 : between(1, mem + mem / 8));
        break;
    case 1:
        dt_strv_addf(argv, "--mem-per-cpu=%zuM", between(1, (one_in(3) ? 2 : 1) * mem / cpus));
        break;
    case 2:
        if (gpus)
            dt_strv_addf(argv, "--mem-per-gpu=%zuM", between(1, mem / 2));
        break;
    }
}

/* "a100:", or nothing; the caller frees. */
static char *random_type(const struct dt_system *s)
{
    const char *gres = s->kinds[below(s->nkinds)].size.gres;
    size_t n = gres && dt_starts_with(gres, "gpu:") ? strcspn(gres + 4, ":") : 0;
    bool typed = n && gres[4 + n] == ':' && one_in(2);
    return typed ? dt_xstrndup(gres + 4, n + 1) : dt_xstrdup("");
}

static bool add_gpus(struct dt_strv *argv, const struct dt_system *s)
{
    size_t most = largest(s, 2);
    if (!most || one_in(2))
        return false;
    char *type = random_type(s);
    switch (below(4)) {
    case 0:
        dt_strv_addf(argv, "--gpus-per-node=%s%zu", type, between(1, most + one_in(4)));
        break;
    case 1:
        dt_strv_addf(argv, "--gres=gpu:%s%zu", type, between(1, most + one_in(4)));
        break;
    case 2:
        dt_strv_addf(argv, "--gpus-per-task=%s%zu", type, between(1, 2));
        break;
    default:
        dt_strv_addf(argv, "--gpus=%s%zu", type, between(1, 2 * most));
    }
    free(type);
    if (one_in(5))
        dt_strv_addf(argv, "--cpus-per-gpu=%zu", between(1, 3));
    return true;
}

static void add_demands(struct dt_strv *argv, const struct dt_system *s)
{
    const struct dt_node_kind *k = &s->kinds[below(s->nkinds)];
    const struct dt_partition *p = &s->partitions[below(s->npartitions)];
    dt_strv_addf(argv, "--partition=%s", p->name);
    if (one_in(6))
        dt_strv_addf(argv, "--time=%zu", between(1, 20));
    if (one_in(5) && k->size.features && *k->size.features && !strchr(k->size.features, ','))
        dt_strv_addf(argv, "--constraint=%s", k->size.features);
    if (one_in(12))
        dt_strv_addf(argv, "--tmp=%zuM", between(1, 20000));
    if (one_in(10) && s->licenses.n)
        dt_strv_addf(argv, "--licenses=%s:%zu", s->licenses.v[0].name,
                     between(1, s->licenses.v[0].n + 1));
}

static struct dt_submission *random_submission(const struct dt_system *s, const char *script)
{
    struct dt_strv argv = DT_STRV_INIT;
    struct dt_error e = DT_ERROR_INIT;
    dt_strv_add(&argv, "sbatch");
    add_sizes(&argv, s);
    bool gpus = add_gpus(&argv, s);
    add_memory(&argv, s, gpus);
    add_demands(&argv, s);
    dt_strv_add(&argv, script);
    struct dt_submission *sub = dt_submission_read(argv.v, (char *const[]){NULL}, -1, NULL, &e);
    if (!sub)
        fprintf(stderr, "shapes: %s\n", e.text);
    dt_error_clear(&e);
    dt_strv_free(&argv);
    return sub;
}

/* ---- a configuration of it ---- */

static struct dt_space *random_space(const struct dt_system *s, const struct dt_job *job,
                                     struct dt_spec **spec)
{
    struct dt_buf text = DT_BUF_INIT;
    struct dt_error e = DT_ERROR_INIT;
    const char *why;
    size_t cpus = largest(s, 0), mem = largest(s, 1), gpus = largest(s, 2);
    bool servers = !one_in(4);
    dt_buf_addf(&text,
                "{\"version\": 1, \"layout\": \"%s\", \"dt\": {\"workers\": {\"choices\": [%zu]}",
                one_in(2) ? "het" : "packed", between(1, one_in(2) ? 4 : cpus + 2));
    if (servers)
        dt_buf_addf(&text, ", \"ps\": {\"choices\": [%zu]}", between(1, 4));
    if (one_in(2))
        dt_buf_addf(&text, ", \"worker_cpus\": {\"choices\": [%zu]}",
                    between(1, one_in(5) ? cpus : (cpus + 2) / 3));
    if (servers && one_in(2))
        dt_buf_addf(&text, ", \"ps_cpus\": {\"choices\": [%zu]}", between(1, cpus / 2));
    if (one_in(3))
        dt_buf_addf(&text, ", \"worker_mem\": {\"choices\": [\"%zuM\"]}",
                    between(1, one_in(4) ? mem : mem / 4));
    if (servers && one_in(4))
        dt_buf_addf(&text, ", \"ps_mem\": {\"choices\": [\"%zuM\"]}", between(1, mem / 4));
    if (gpus && one_in(3))
        dt_buf_addf(&text, ", \"worker_gpus\": {\"choices\": [%zu]}", between(1, gpus));
    if (one_in(4))
        dt_buf_addf(&text, ", \"worker_nodes\": {\"choices\": [%zu]}", between(1, all_nodes(s)));
    dt_buf_add(&text, "}}");
    struct json_object *doc = dt_json_parse(text.s, "spec", &e);
    *spec = doc ? dt_spec_parse(doc, text.s, "spec", &e) : NULL;
    struct dt_space_source source = {*spec, job, NULL};
    struct dt_space *space = *spec ? dt_space_generate(&source, &why, &e) : NULL;
    if (!space)
        fprintf(stderr, "shapes: %s: %s\n", text.s, e.text);
    json_object_put(doc);
    dt_buf_free(&text);
    dt_error_clear(&e);
    return space;
}

/* ---- what is written ---- */

static void write_text(const char *dir, size_t i, const char *end, const char *text)
{
    struct dt_error e = DT_ERROR_INIT;
    char *path = dt_xasprintf("%s/%zu.%s", dir, i, end);
    if (dt_write_file(path, text, strlen(text), 0755, &e) < 0) {
        fprintf(stderr, "shapes: %s\n", e.text);
        exit(1);
    }
    free(path);
}

/* The options of a trial's script, and no work. */
static void write_script(const char *dir, size_t i, size_t way, const struct dt_trial_script *t)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_buf b = DT_BUF_INIT;
    char *text = dt_expand(t, &e), *end = dt_xasprintf("%zu.sh", way);
    if (!text) {
        fprintf(stderr, "shapes: %s\n", e.text);
        exit(1);
    }
    dt_buf_addf(&b, "#!/bin/sh\n#SBATCH --output=/dev/null --no-requeue\n");
    for (const char *p = text; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        if (dt_starts_with(p, "#SBATCH"))
            dt_buf_addf(&b, "%.*s\n", (int)strcspn(p, "\n"), p);
    dt_buf_addf(&b, "#SBATCH --job-name=%zu\nexit 0\n", i);
    write_text(dir, i, end, b.s);
    dt_buf_free(&b);
    free(end);
    free(text);
}

static void write_shape(const char *dir, size_t i, struct dt_trial_script *t,
                        struct dt_shape *shape, const char *why)
{
    bool both =
        shape->roles[0].count && shape->roles[1].count && !shape->het && !shape->as_submitted;
    size_t tasks = shape->roles[0].count + shape->roles[1].count;
    struct json_object *o = dt_submission_to_json(t->submission);
    char *config = dt_config_text(t->space, t->x), *submission = dt_json_text(o);
    char *verdict = dt_xasprintf("%s%s%s\n%s of %s\n", why ? "never" : "starts", why ? " " : "",
                                 why ? why : "", config, submission);
    write_text(dir, i, "verdict", verdict);
    free(verdict);
    free(submission);
    free(config);
    json_object_put(o);
    t->shape = shape;
    if (!why || !both) {
        write_script(dir, i, 1, t);
        return;
    }
    size_t given = shape->roles[0].nodes > shape->roles[1].nodes ? shape->roles[0].nodes
                                                                 : shape->roles[1].nodes;
    size_t cap = t->job->tasks_per_node, n = cap ? (shape->roles[1].count + cap - 1) / cap : 1;
    n = given ? given : n; /* tuned */
    for (; n <= tasks && n <= (given ? given : 6); n++) {
        shape->nodes = n;
        write_script(dir, i, n, t);
    }
}

/* A shape, or false where Slurm has no word for it (an option that contradicts another). */
static bool shape(const struct dt_system *s, const char *dir, const char *script, size_t i)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_submission *sub = random_submission(s, script);
    struct dt_job job = {0};
    struct dt_spec *spec = NULL;
    struct dt_shape shape = {.as_submitted = i % 3 == 0};
    struct dt_cluster *c = NULL;
    struct dt_space *space = NULL;
    const char *why = "no node is like that";
    bool ok =
        sub && dt_job_read(sub, &job, &e) == 0 && (space = random_space(s, &job, &spec)) != NULL;
    if (ok && (c = dt_job_cluster(s, sub, false, NULL)) != NULL) {
        if (!shape.as_submitted)
            dt_shape_make(space, space->points, &job, c, &shape);
        else
            shape.roles[1].count = job.tasks;
        why = dt_shape_why_not(&shape, &job, c);
    }
    struct dt_trial_script t = {.submission = sub,
                                .script = "#!/bin/sh\n",
                                .job = &job,
                                .space = space,
                                .x = ok ? space->points : NULL,
                                .launch = "/bin/true",
                                .spec = spec};
    if (ok)
        write_shape(dir, i, &t, &shape, why);
    else
        fprintf(stderr, "shapes: %zu: %s\n", i, e.text ? e.text : "not made");
    dt_error_clear(&e);
    dt_cluster_free(c);
    dt_space_free(space);
    dt_spec_free(spec);
    dt_job_free(&job);
    dt_submission_free(sub);
    return ok;
}

static struct dt_system *read_system(const char *path)
{
    struct dt_error e = DT_ERROR_INIT;
    char *text = dt_read_text(path, 1U << 20, &e);
    struct json_object *o = text ? dt_json_parse(text, path, &e) : NULL;
    struct dt_system *s = o ? dt_system_from_json(o, path, &e) : NULL;
    if (!s)
        fprintf(stderr, "shapes: %s\n", e.text);
    dt_error_clear(&e);
    json_object_put(o);
    free(text);
    return s;
}

int main(int argc, char **argv)
{
    struct dt_system *s = argc == 5 ? read_system(argv[1]) : NULL;
    if (!s)
        return 2;
    state = strtoull(argv[2], NULL, 10);
    char *script = dt_xasprintf("%s/train.sh", argv[4]);
    static const char text[] = "#!/bin/sh\nexit 0\n";
    if (dt_write_file(script, text, strlen(text), 0755, NULL) < 0)
        return 1;
    for (size_t i = 0, n = strtoul(argv[3], NULL, 10); i < n;)
        i += shape(s, argv[4], script, i);
    free(script);
    dt_system_free(s);
    return 0;
}
