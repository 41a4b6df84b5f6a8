/* expand: the job in numbers, shapes of configurations, what fits a cluster, generated spaces,
 * batch scripts. */
#include "expand/carrier.h"
#include "expand/expand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* ---- helpers ---- */

static struct dt_submission *submission(const char *const *words)
{
    struct dt_submission *s = dt_xcalloc(1, sizeof(*s));
    s->script_name = dt_xstrdup("train.sh");
    s->script_path = dt_xstrdup("/home/u/train.sh");
    for (; *words; words++) {
        size_t n = strcspn(*words, "=");
        s->options = dt_xrealloc(s->options, s->n + 1, sizeof(*s->options));
        struct dt_option *o = &s->options[s->n++];
        *o = (struct dt_option){.origin = DT_FROM_ARGV, .name = dt_xstrndup(*words, n)};
        o->def = dt_sbatch_option_find(o->name);
        o->value = (*words)[n] ? dt_xstrdup(*words + n + 1) : NULL;
    }
    return s;
}

#define WORDS(...) ((const char *[]){__VA_ARGS__, NULL})

static struct dt_job job_of(const char *const *words)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_submission *s = submission(words);
    struct dt_job job;
    if (dt_job_read(s, &job, &e) < 0)
        fail_msg("%s", e.text);
    dt_submission_free(s);
    return job;
}

static struct dt_spec *spec_of(const char *text)
{
    struct dt_error e = DT_ERROR_INIT;
    struct json_object *json = dt_json_parse(text, "S.json", &e);
    struct dt_spec *s = json ? dt_spec_parse(json, text, "S.json", &e) : NULL;
    if (!s)
        fail_msg("%s", e.text);
    json_object_put(json);
    return s;
}

static struct dt_cluster *cluster_of(const char *text)
{
    struct json_object *o = dt_json_parse(text, "C.json", NULL);
    struct dt_cluster *c = dt_cluster_from_json(o, NULL);
    json_object_put(o);
    return c;
}

/* ---- the job ---- */

static void a_job_is_read_in_numbers(void **state)
{
    static const struct {
        const char *words[6];
        size_t tasks, cpus, gpus;
        uint64_t mem, node_mem;
        bool shared, bound;
        const char *type;
    } cases[] = {
        {{NULL}, 1, 1, 0, 0, 0, false, false, NULL},
        {{"ntasks=4", "cpus-per-task=2"}, 4, 2, 0, 0, 0, false, false, NULL},
        {{"nodes=3"}, 3, 1, 0, 0, 0, false, false, NULL},
        {{"nodes=2", "ntasks-per-node=4"}, 8, 1, 0, 0, 0, false, false, NULL},
        {{"nodes=2-4"}, 2, 1, 0, 0, 0, false, false, NULL},
        {{"nodes=1k"}, 1024, 1, 0, 0, 0, false, false, NULL},
        {{"mem=4G"}, 1, 1, 0, 0, 4096, false, false, NULL},
        {{"mem-per-cpu=512", "cpus-per-task=4"}, 1, 4, 0, 2048, 0, false, false, NULL},
        {{"ntasks=4", "gpus-per-task=2"}, 4, 1, 2, 0, 0, false, true, NULL},
        {{"ntasks=4", "gpus-per-task=k80:1"}, 4, 1, 1, 0, 0, false, true, "k80"},
        {{"ntasks=4", "gpus=4"}, 4, 1, 1, 0, 0, false, false, NULL},
        {{"ntasks=4", "gpus=2"}, 4, 1, 0, 0, 0, true, false, NULL},
        {{"nodes=2", "ntasks=4", "gpus-per-node=2"}, 4, 1, 1, 0, 0, false, false, NULL},
        {{"nodes=2", "ntasks=4", "gres=gpu:v100:4,shard:1"}, 4, 1, 2, 0, 0, false, false, "v100"},
        {{"ntasks=1", "gres=gpu"}, 1, 1, 1, 0, 0, false, false, NULL},
        {{"ntasks=1", "gres=gpu:1080ti"}, 1, 1, 1, 0, 0, false, false, "1080ti"},
        {{"ntasks=2", "gres=gres:gpu:2"}, 2, 1, 1, 0, 0, false, false, NULL},
        {{"ntasks=2", "gpus-per-task=2", "cpus-per-gpu=3"}, 2, 6, 2, 0, 0, false, true, NULL},
        {{"ntasks=2", "gpus-per-task=2", "mem-per-gpu=1G"}, 2, 1, 2, 2048, 0, false, true, NULL},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_job j = job_of(cases[i].words);
        bool same_type = !j.gpu_type == !cases[i].type &&
                         (!j.gpu_type || strcmp(j.gpu_type, cases[i].type) == 0);
        if (j.tasks != cases[i].tasks || j.cpus != cases[i].cpus || j.gpus != cases[i].gpus ||
            j.mem_mib != cases[i].mem || j.node_mem_mib != cases[i].node_mem ||
            j.gpus_shared != cases[i].shared || j.gpus_bound != cases[i].bound || !same_type)
            fail_msg("case %zu: tasks %zu cpus %zu gpus %zu mem %lu/%lu shared %d bound %d type %s",
                     i, j.tasks, j.cpus, j.gpus, (unsigned long)j.mem_mib,
                     (unsigned long)j.node_mem_mib, j.gpus_shared, j.gpus_bound,
                     j.gpu_type ? j.gpu_type : "none");
        dt_job_free(&j);
    }
}

static void a_job_has_a_name_and_a_time(void **state)
{
    struct dt_job j = job_of(WORDS("time=1:30:00", "ntasks-per-node=2"));
    (void)state;
    assert_string_equal(j.name, "train.sh");
    assert_true(j.time == 5400 && j.tasks_per_node == 2);
    char *name = dt_trial_job_name(&j, "123", 7, 1);
    assert_string_equal(name, "train.sh.dt-123-7-1");
    free(name);
    dt_job_free(&j);
    j = job_of(WORDS("job-name=my job"));
    assert_string_equal(j.name, "my job");
    dt_job_free(&j);
}

static void a_job_that_makes_no_sense_is_refused(void **state)
{
    static const struct {
        const char *word, *error;
    } cases[] = {
        {"ntasks=0", "--ntasks: \"0\" is not a number of ntasks above 0"},
        {"ntasks=four", "--ntasks: \"four\" is not a number of ntasks above 0"},
        {"cpus-per-task=-1", "--cpus-per-task: \"-1\" is not a number of cpus-per-task above 0"},
        {"mem=4X", "--mem: \"4X\" is no memory size; write it like 512M or 4G"},
        {"time=soon",
         "--time: \"soon\" is no time limit; write it as Slurm does: 90 (minutes), 1:30:00, 1-12"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_error e = DT_ERROR_INIT;
        struct dt_submission *s = submission(WORDS(cases[i].word, "gpus-per-task=k80:1"));
        struct dt_job job;
        assert_int_equal(dt_job_read(s, &job, &e), -1);
        assert_string_equal(e.text, cases[i].error);
        dt_error_clear(&e);
        dt_submission_free(s);
    }
}

/* ---- shares and shapes ---- */

static void shares_add_up_and_odd_ones_stay_apart(void **state)
{
    (void)state;
    for (int role = 0; role < DT_ROLES; role++) {
        for (size_t count = 0; count <= 20; count++) {
            for (size_t n = 1; n <= 7; n++) {
                size_t sum = 0, most = 0, least = SIZE_MAX;
                for (size_t i = 0; i < n; i++) {
                    size_t k = dt_share(role, count, n, i);
                    sum += k;
                    most = k > most ? k : most;
                    least = k < least ? k : least;
                }
                assert_int_equal(sum, count);
                assert_true(most - least <= 1);
            }
        }
    }
    assert_int_equal(dt_share(DT_ROLE_PS, 1, 3, 0), 1);
    assert_int_equal(dt_share(DT_ROLE_WORKER, 1, 3, 0), 0);
    assert_int_equal(dt_share(DT_ROLE_WORKER, 1, 3, 2), 1);
}

/* The shape of {"ps": .., ...} in the space of the SPEC. */
static struct dt_shape shape_of(const char *spec_text, const char *config, const struct dt_job *job,
                                const struct dt_cluster *cluster)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_spec *spec = spec_of(spec_text);
    struct dt_space_source source = {spec, job, NULL};
    const char *why;
    struct dt_space *space = dt_space_generate(&source, &why, &e);
    struct json_object *o = dt_json_parse(config, "config", &e);
    double x[16];
    struct dt_shape shape;
    if (!space || dt_config_from_json(space, o, x, &e) < 0)
        fail_msg("%s", e.text);
    dt_shape_make(space, x, job, cluster, &shape);
    json_object_put(o);
    dt_space_free(space);
    dt_spec_free(spec);
    return shape;
}

static void configurations_become_roles(void **state)
{
    static const char spec[] =
        "{\"dt\": {\"ps\": [0, 1, 2], \"workers\": [1, 2, 4], \"worker_cpus\": [2, 4], "
        "\"ps_mem\": [\"1G\", \"2G\"], \"worker_gpus\": [0, 1]}}";
    struct dt_job job = job_of(WORDS("ntasks=4", "cpus-per-task=3", "gpus-per-task=1"));
    struct dt_shape s =
        shape_of(spec,
                 "{\"ps\": 2, \"workers\": 4, \"worker_cpus\": 4, \"ps_mem\": \"2G\", "
                 "\"worker_gpus\": 1, \"layout\": \"het\"}",
                 &job, NULL);
    (void)state;
    assert_true(s.het && s.nodes == 0 && !s.as_submitted);
    assert_true(s.roles[DT_ROLE_PS].count == 2 && s.roles[DT_ROLE_PS].cpus == 3 &&
                s.roles[DT_ROLE_PS].mem_mib == 2048);
    assert_true(s.roles[DT_ROLE_PS].gpus == 0);
    assert_true(s.roles[DT_ROLE_WORKER].count == 4 && s.roles[DT_ROLE_WORKER].cpus == 4);
    assert_true(s.roles[DT_ROLE_WORKER].gpus == 1 && s.roles[DT_ROLE_WORKER].mem_mib == 0);
    s = shape_of(spec,
                 "{\"ps\": 2, \"workers\": 4, \"worker_cpus\": 4, \"ps_mem\": \"2G\", "
                 "\"worker_gpus\": 1, \"layout\": \"packed\"}",
                 &job, NULL);
    assert_true(!s.het && s.nodes == 1); /* without a cluster one node is assumed */
    s = shape_of(spec,
                 "{\"ps\": 0, \"workers\": 4, \"worker_cpus\": 4, \"ps_mem\": \"2G\", "
                 "\"worker_gpus\": 1, \"layout\": \"het\"}",
                 &job, NULL);
    assert_true(!s.het && s.nodes == 0); /* one role is one plain job */
    s = shape_of(spec,
                 "{\"ps\": 1, \"workers\": 4, \"worker_cpus\": null, \"ps_mem\": null, "
                 "\"worker_gpus\": null, \"layout\": null}",
                 &job, NULL);
    assert_true(s.roles[DT_ROLE_WORKER].cpus == 3 && s.roles[DT_ROLE_WORKER].gpus == 1 && !s.het);
    dt_job_free(&job);
}

/* ---- what fits ---- */

static void clusters_refuse_what_they_cannot_run(void **state)
{
    static const char four[] = "{\"nodes\": [{\"count\": 4, \"cpus\": 4, \"mem\": 4096}]}";
    static const char mixed[] =
        "{\"nodes\": [{\"count\": 1, \"cpus\": 16, \"mem\": 16384, \"gpus\": 4}, "
        "{\"count\": 2, \"cpus\": 4, \"mem\": 2048}]}";
    static const char two_max[] =
        "{\"max_nodes\": 2, \"nodes\": [{\"count\": 8, \"cpus\": 4, \"mem\": 4096}]}";
    static const struct {
        const char *cluster;
        const char *job[4];
        struct dt_shape shape;
        const char *why; /* begins with; NULL: fits */
        size_t nodes;    /* of a packed job */
    } cases[] = {
#define ROLES(p, pc, w, wc) .roles = {{.count = p, .cpus = pc}, {.count = w, .cpus = wc}}
        {four, {0}, {ROLES(0, 1, 16, 1)}, NULL, 0},
        {four, {0}, {ROLES(0, 1, 17, 1)}, "workers:", 0},
        {four, {0}, {ROLES(0, 1, 4, 4)}, NULL, 0},
        {four, {0}, {ROLES(0, 1, 5, 4)}, "workers:", 0},
        {four, {0}, {ROLES(0, 1, 1, 5)}, "workers:", 0},
        {four, {0}, {ROLES(1, 1, 0, 1)}, "a job without workers", 0},
        {four, {"ntasks-per-node=1"}, {ROLES(0, 1, 5, 1)}, "workers:", 0},
        {four, {"ntasks-per-node=1"}, {ROLES(0, 1, 4, 1)}, NULL, 0},
        {four, {"mem=8G"}, {ROLES(0, 1, 1, 1)}, "workers:", 0},
        {four, {"mem-per-cpu=2G"}, {ROLES(0, 1, 8, 1)}, NULL, 0},
        {four, {"mem-per-cpu=2G"}, {ROLES(0, 1, 9, 1)}, "workers:", 0},
        {four, {0}, {ROLES(1, 1, 12, 1), .het = true}, NULL, 0},
        {four, {0}, {ROLES(1, 1, 13, 1), .het = true}, "layout het:", 0},
        {four, {0}, {ROLES(5, 1, 8, 1), .het = true}, NULL, 0},
        {four, {0}, {ROLES(5, 1, 9, 1), .het = true}, "layout het:", 0},
        {four, {0}, {ROLES(1, 1, 3, 1)}, NULL, 1},
        {four, {0}, {ROLES(1, 1, 4, 1)}, NULL, 2},
        {four, {0}, {ROLES(4, 1, 12, 1)}, NULL, 4},
        {four, {0}, {ROLES(4, 1, 13, 1)}, "layout packed:", 0},
        {four, {0}, {ROLES(2, 2, 2, 2)}, NULL, 2},
        {four, {0}, {ROLES(1, 4, 1, 1)}, NULL, 2},
        {mixed, {0}, {ROLES(1, 4, 4, 4), .het = true}, NULL, 0},
        {mixed, {0}, {ROLES(2, 4, 4, 4), .het = true}, "layout het:", 0}, /* Slurm: the large node
                                                                             for servers */
        {mixed, {0}, {ROLES(3, 4, 4, 4), .het = true}, "layout het:", 0},
        {mixed, {0}, {ROLES(1, 1, 15, 1)}, NULL, 1},
        {two_max, {0}, {ROLES(0, 1, 9, 1)}, "workers:", 0},
        {two_max, {0}, {ROLES(1, 1, 8, 1)}, "layout packed:", 0},
        {two_max, {0}, {ROLES(8, 1, 8, 1), .het = true}, NULL, 0}, /* a limit of each component */
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_cluster *c = cluster_of(cases[i].cluster);
        struct dt_job job = job_of(cases[i].job);
        struct dt_shape s = cases[i].shape;
        s.roles[DT_ROLE_WORKER].per_node = job.tasks_per_node;
        if (s.roles[0].count && s.roles[1].count &&
            !s.het) { /* by way of a configuration, to get its nodes */
            char *spec =
                dt_xasprintf("{\"layout\": \"packed\", \"dt\": {\"ps\": %zu, \"workers\": %zu, "
                             "\"ps_cpus\": %zu, "
                             "\"worker_cpus\": %zu}}",
                             s.roles[0].count, s.roles[1].count, s.roles[0].cpus, s.roles[1].cpus);
            char *config = dt_xasprintf(
                "{\"ps\": %zu, \"workers\": %zu, \"ps_cpus\": %zu, \"worker_cpus\": %zu}",
                s.roles[0].count, s.roles[1].count, s.roles[0].cpus, s.roles[1].cpus);
            s = shape_of(spec, config, &job, c);
            free(spec);
            free(config);
        }
        const char *why = dt_shape_why_not(&s, &job, c);
        if (!why != !cases[i].why || (why && !dt_starts_with(why, cases[i].why)) ||
            s.nodes != cases[i].nodes)
            fail_msg("case %zu: %s, %zu nodes", i, why ? why : "fits", s.nodes);
        dt_job_free(&job);
        dt_cluster_free(c);
    }
}

static void gpus_and_memory_of_roles_count(void **state)
{
    struct dt_cluster *c = cluster_of(
        "{\"nodes\": [{\"count\": 2, \"cpus\": 8, \"mem\": 8192, \"gpus\": 2, \"tmp\": 100}]}");
    struct dt_job job = job_of((const char *[]){NULL});
    struct dt_shape s = {.roles = {[DT_ROLE_WORKER] = {.count = 4, .cpus = 1, .gpus = 1}}};
    struct dt_role *w = &s.roles[DT_ROLE_WORKER];
    (void)state;
    assert_null(dt_shape_why_not(&s, &job, c));
    w->count = 5;
    assert_non_null(dt_shape_why_not(&s, &job, c));
    *w = (struct dt_role){.count = 4, .cpus = 1, .mem_mib = 4096};
    assert_null(dt_shape_why_not(&s, &job, c));
    w->mem_mib = 4097;
    assert_non_null(dt_shape_why_not(&s, &job, c));
    *w = (struct dt_role){.count = 1, .cpus = 1, .tmp_mib = 101};
    assert_non_null(dt_shape_why_not(&s, &job, c));
    *w = (struct dt_role){.count = 4, .cpus = 1, .nodes = 2};
    assert_null(dt_shape_why_not(&s, &job, c));
    w->nodes = 1;
    assert_null(dt_shape_why_not(&s, &job, c));
    w->count = 9; /* one node cannot hold nine */
    assert_non_null(dt_shape_why_not(&s, &job, c));
    assert_null(dt_shape_why_not(&s, &job, NULL));
    dt_job_free(&job);
    dt_cluster_free(c);
}

/* ---- generated spaces ---- */

/* Independent of shape.c: whether ps + workers tasks of one CPU fit n nodes of `cpus` side by side,
 * dealt evenly, the odd servers to the first nodes and the odd workers to the last. */
static bool packs(size_t ps, size_t workers, size_t nodes, size_t cpus)
{
    for (size_t n = 1; n <= nodes; n++) {
        size_t *load = dt_xcalloc(n, sizeof(*load)), most = 0;
        for (size_t i = 0; i < ps; i++)
            load[i % n]++;
        for (size_t i = 0; i < workers; i++)
            load[n - 1 - i % n]++;
        for (size_t i = 0; i < n; i++)
            most = load[i] > most ? load[i] : most;
        free(load);
        if (most <= cpus)
            return true;
    }
    return false;
}

static void a_generated_space_is_what_the_cluster_can_run(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_spec *spec = spec_of(
        "{\"dt\": {\"ps\": {\"low\": 0, \"high\": 6}, \"workers\": {\"low\": 1, \"high\": 14}}}");
    struct dt_cluster *c = cluster_of("{\"nodes\": [{\"count\": 4, \"cpus\": 4, \"mem\": 4096}]}");
    struct dt_job job = job_of(WORDS("ntasks=4"));
    struct dt_space_source source = {spec, &job, c};
    const char *why;
    struct dt_space *s = dt_space_generate(&source, &why, &e);
    size_t expected = 0;
    (void)state;
    assert_non_null(s);
    assert_true(dt_starts_with(why, "layouts packed and het"));
    for (size_t p = 0; p <= 6; p++) {
        for (size_t w = 1; w <= 14; w++) {
            expected += packs(p, w, 4, 4);
            expected += p > 0 && (p + 3) / 4 + (w + 3) / 4 <= 4;
        }
    }
    assert_int_equal(s->npoints, expected);
    size_t excluded = 0;
    for (size_t i = 0; i < s->nexclusions; i++)
        excluded += s->exclusions[i].count;
    assert_int_equal(s->npoints + excluded, 2 * 7 * 14);
    dt_space_free(s);
    dt_job_free(&job);
    dt_cluster_free(c);
    dt_spec_free(spec);
}

static void layouts_follow_spec_and_cluster(void **state)
{
    static const struct {
        const char *spec, *cluster, *why;
        int labels; /* of the parameter layout; 0: no such parameter */
    } cases[] = {
        {"{\"dt\": {\"ps\": [0, 1]}}", "{\"nodes\": [{\"count\": 4, \"cpus\": 4}]}",
         "layouts packed and het", 2},
        {"{\"dt\": {\"ps\": [0, 1]}}", NULL, "layouts packed and het", 2},
        {"{\"dt\": {\"ps\": [0, 1]}}", "{\"nodes\": [{\"count\": 1, \"cpus\": 16}]}",
         "layout packed: heterogeneous comp", 0},
        {"{\"dt\": {\"ps\": [0, 1]}}",
         "{\"backfill\": false, \"nodes\": [{\"count\": 4, \"cpus\": 4}]}",
         "layout packed: heterogeneous jobs need", 0},
        {"{\"dt\": {\"ps\": [0, 1]}, \"layout\": \"packed\"}", NULL, "layout packed: as asked", 0},
        {"{\"dt\": {\"ps\": [1]}, \"layout\": \"het\"}", NULL, "layout het: as asked", 1},
        {"{\"dt\": {\"ps\": [0]}, \"layout\": \"het\"}", NULL,
         "layout packed: there is only one role", 0},
        {"{\"dt\": {\"workers\": [1, 2]}}", NULL, "layout packed: there is only one role", 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_error e = DT_ERROR_INIT;
        struct dt_spec *spec = spec_of(cases[i].spec);
        struct dt_cluster *c = cases[i].cluster ? cluster_of(cases[i].cluster) : NULL;
        struct dt_job job = job_of(WORDS("ntasks=2"));
        struct dt_space_source source = {spec, &job, c};
        const char *why;
        struct dt_space *s = dt_space_generate(&source, &why, &e);
        if (!s)
            fail_msg("%s", e.text);
        int at = dt_space_index(s, "layout");
        if (!dt_starts_with(why, cases[i].why) ||
            (at < 0 ? 0 : (int)s->params[at].nvalues) != cases[i].labels)
            fail_msg("case %zu: %s", i, why);
        dt_space_free(s);
        dt_job_free(&job);
        dt_cluster_free(c);
        dt_spec_free(spec);
    }
}

static void what_spec_leaves_out_has_a_default(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    static const struct {
        const char *spec;
        size_t n, npoints;
    } cases[] = {
        {"{}", 1, 16},                                 /* up to four times the workers */
        {"{\"dt\": {\"worker_cpus\": [1, 2]}}", 2, 2}, /* workers stay as submitted */
        {"{\"hyperparameters\": {\"opt\": [\"a\", \"b\", \"c\"]}}", 2, 3},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_spec *spec = spec_of(cases[i].spec);
        struct dt_job job = job_of(WORDS("ntasks=4"));
        struct dt_space_source source = {spec, &job, NULL};
        const char *why;
        struct dt_space *s = dt_space_generate(&source, &why, &e);
        assert_non_null(s);
        assert_int_equal(s->n, cases[i].n);
        assert_int_equal(s->npoints, cases[i].npoints);
        dt_space_free(s);
        dt_job_free(&job);
        dt_spec_free(spec);
    }
}

static void the_job_as_submitted_is_a_configuration(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    static const struct {
        const char *spec, *config;
    } cases[] = {
        {"{\"dt\": {\"ps\": {\"low\": 0, \"high\": 2}, \"workers\": {\"low\": 1, \"high\": 8}}}",
         "ps=0 workers=4 layout=packed"},
        {"{\"dt\": {\"ps\": {\"low\": 1, \"high\": 2}, \"workers\": {\"low\": 1, \"high\": 8}}}",
         "ps=1 workers=3 layout=packed"},
        {"{\"dt\": {\"ps\": [3, 2], \"workers\": [1, 2]}}", "ps=2 workers=2 layout=packed"},
        {"{\"dt\": {\"ps\": [9], \"workers\": [1, 2]}}", "ps=0 workers=4 layout=packed"},
        {"{\"dt\": {\"ps\": [1], \"workers\": [1, 2]}, \"layout\": \"het\"}", "ps=1 workers=3"},
        {"{\"dt\": {\"ps\": [0, 1], \"workers\": [2, 4], \"ps_constraint\": [\"slow\", \"fast\"]}}",
         "ps=0 workers=4 ps_constraint=slow layout=packed"},
        {"{\"dt\": {\"ps\": [1], \"workers\": [2, 4], \"ps_constraint\": [\"slow\", \"fast\"]}}",
         "ps=1 workers=3 ps_constraint=fast layout=packed"},
        {"{\"dt\": {\"worker_constraint\": [\"slow\", \"fast\"], \"partition\": [\"main\"]}}",
         "worker_constraint=fast workers=4"},
        {"{\"dt\": {\"worker_cpus\": [2, 4], \"worker_mem\": [\"1G\"], \"worker_tmp\": [5]}}",
         "worker_cpus=2 worker_mem=1G workers=4"},
        {"{\"hyperparameters\": {\"lr\": {\"low\": 0.1, \"high\": 1, \"default\": 0.5}, \"m\": [1, "
         "2]}}",
         "workers=4 lr=0.5"},
        {"{\"hyperparameters\": {\"m\": {\"low\": 0, \"high\": 1, \"default\": 0.5, \"when\": "
         "\"opt == "
         "'sgd'\"}, \"opt\": {\"choices\": [\"sgd\", \"adam\"], \"default\": \"sgd\"}}}",
         "workers=4 m=0.5 opt=sgd"},
        {"{\"hyperparameters\": {\"m\": {\"low\": 0, \"high\": 1, \"default\": 0.5, \"when\": "
         "\"opt == "
         "'sgd'\"}, \"opt\": {\"choices\": [\"sgd\", \"adam\"], \"default\": \"adam\"}}}",
         "workers=4 opt=adam"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_spec *spec = spec_of(cases[i].spec);
        struct dt_job job =
            job_of(WORDS("ntasks=4", "cpus-per-task=2", "mem-per-cpu=512M", "constraint=fast"));
        struct dt_space_source source = {spec, &job, NULL};
        const char *why;
        double x[8];
        struct dt_space *s = dt_space_generate(&source, &why, &e);
        assert_non_null(s);
        dt_config_submitted(spec, s, &job, x);
        char *text = dt_config_text(s, x);
        assert_string_equal(text, cases[i].config);
        free(text);
        dt_space_free(s);
        dt_job_free(&job);
        dt_spec_free(spec);
    }
}

static void candidates_come_from_a_file(void **state)
{
    static const char momentum[] =
        ", \"m\": {\"low\": 0.1, \"high\": 0.9, \"when\": \"opt == 'sgd'\"}";
    static const struct {
        const char *csv, *error;
        size_t n;
        const char *more; /* hyperparameters */
    } cases[] = {
        {"workers,ps,opt\n1,0,sgd\n4,1,adam\n", NULL, 2, NULL},
        {"workers,opt\n1,sgd\n", ": no column \"ps\"", 0, NULL},
        {"workers,ps,opt\n1,0,sgd\n99,1,adam\n", ":3: workers: 99 is outside its domain", 0, NULL},
        {"workers,ps,ps_cpus,opt\n1,0,1,sgd\n", ": column \"ps_cpus\" needs its domain", 0, NULL},
        {"workers,ps,opt,note\n1,0,sgd,slow\n", NULL, 1, NULL},
        {"workers,ps,opt\n1,0,lamb\n", ":2: \"lamb\" is not one of the choices of opt", 0, NULL},
        {"m,workers,ps,opt\n0.5,1,0,sgd\n,1,0,adam\n-,2,0,adam\nNaN,3,0,adam\nnull,4,0,adam\n",
         NULL, 5, momentum},
        {"m,workers,ps,opt\n0.5,1,0,sgd\n0.2,1,0,sgd\n0,1,0,adam\n7,1,0,adam\n,1,0,adam\n", NULL, 3,
         momentum},
        {"m,workers,ps,opt\n,1,0,adam\n,1,0,sgd\n",
         ":3: where opt == 'sgd': m: \"\" is not a number", 0, momentum},
        {"m,workers,ps,opt\n0,1,0,sgd\n", ":2: where opt == 'sgd': m: 0 is outside its domain", 0,
         momentum},
    };
    const char *tmp = getenv("TMPDIR");
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_error e = DT_ERROR_INIT;
        char *path = dt_xasprintf("%s/dt-test-expand.XXXXXX", tmp ? tmp : P_tmpdir);
        close(mkstemp(path));
        assert_int_equal(dt_write_file(path, cases[i].csv, strlen(cases[i].csv), 0600, &e), 0);
        char *text = dt_xasprintf("{\"dt\": {\"ps\": [0, 1], \"workers\": {\"low\": 1, \"high\": "
                                  "8}}, \"candidates\": \"%s\", "
                                  "\"hyperparameters\": {\"opt\": [\"sgd\", \"adam\"]%s}}",
                                  path, cases[i].more ? cases[i].more : "");
        struct dt_spec *spec = spec_of(text);
        struct dt_job job = job_of((const char *[]){NULL});
        struct dt_space_source source = {spec, &job, NULL};
        const char *why;
        struct dt_space *s = dt_space_generate(&source, &why, &e);
        if (cases[i].error) {
            char *expected = dt_xasprintf("S.json:1: candidates: %s%s", path, cases[i].error);
            assert_null(s);
            if (!dt_starts_with(e.text, expected))
                fail_msg("%s; expected %s", e.text, expected);
            free(expected);
        } else {
            assert_non_null(s);
            assert_int_equal(s->npoints, cases[i].n);
            assert_true(dt_space_index(s, "layout") < 0);
        }
        unlink(path);
        dt_space_free(s);
        dt_job_free(&job);
        dt_spec_free(spec);
        dt_error_clear(&e);
        free(text);
        free(path);
    }
}

/* ---- batch scripts ---- */

/* The #SBATCH lines of a configuration's script, without "#SBATCH --". Caller frees. */
static char *directives(const char *const *words, const char *spec_text, const char *config,
                        const char *cluster_text, bool as_submitted)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_submission *sub = submission(words);
    struct dt_job job = job_of(words);
    struct dt_spec *spec = spec_of(spec_text);
    struct dt_space_source source = {spec, &job, NULL};
    struct dt_cluster *cluster = cluster_text ? cluster_of(cluster_text) : NULL;
    const char *why;
    struct dt_space *space = dt_space_generate(&source, &why, &e);
    struct json_object *o = dt_json_parse(config, "config", &e);
    double x[16];
    struct dt_shape shape;
    if (!space || dt_config_from_json(space, o, x, &e) < 0)
        fail_msg("%s", e.text);
    dt_shape_make(space, x, &job, cluster, &shape);
    shape.as_submitted = as_submitted;
    struct dt_trial_script t = {.submission = sub,
                                .script = "#!/bin/sh\n#SBATCH --ntasks=99\necho \"hi\"\n",
                                .job = &job,
                                .space = space,
                                .x = x,
                                .shape = &shape,
                                .launch = "/opt/bin/dt-launch",
                                .study = "123",
                                .dir = "/home/u/dt 100%/trials/0007",
                                .trial = 7,
                                .run = 1,
                                .tuner_job = 123};
    char *text = dt_expand(&t, &e);
    if (!text)
        fail_msg("%s", e.text);
    struct dt_carrier carrier;
    assert_int_equal(dt_carrier_parse(text, &carrier), 0);
    assert_string_equal(carrier.script, t.script);
    struct dt_buf b = DT_BUF_INIT;
    const char *end = strstr(text, "\nexec ");
    assert_non_null(end);
    for (const char *s = text; s && s < end; s = strchr(s, '\n')) {
        s += *s == '\n';
        if (dt_starts_with(s, "#SBATCH hetjob"))
            dt_buf_add(&b, "| ");
        else if (dt_starts_with(s, "#SBATCH --"))
            dt_buf_addf(&b, "%.*s ", (int)strcspn(s + 10, "\n"), s + 10);
    }
    free(text);
    json_object_put(o);
    dt_space_free(space);
    dt_spec_free(spec);
    dt_job_free(&job);
    dt_cluster_free(cluster);
    dt_submission_free(sub);
    return dt_buf_take(&b);
}

static void trials_ask_slurm_for_their_shape(void **state)
{
#define OWN                                                                                        \
    "ignore-pbs job-name=train.sh.dt-123-7-1 output=\"/home/u/dt 100%%/trials/0007/output.log\" "  \
    "open-mode=append no-requeue "
    static const char spec[] = "{\"dt\": {\"ps\": [0, 1, 2], \"workers\": [1, 2, 4]}}";
    static const char four[] = "{\"nodes\": [{\"count\": 4, \"cpus\": 4, \"mem\": 4096}]}";
    static const struct {
        const char *words[6], *config, *cluster, *lines;
        bool as_submitted;
    } cases[] = {
        {{"ntasks=4", "cpus-per-task=2", "partition=main", "output=x.log"},
         "{\"ps\":0,\"workers\":2,\"layout\":\"packed\"}",
         NULL,
         "partition=main ntasks=2 cpus-per-task=2 ",
         false},
        {{"ntasks=4", "cpus-per-task=2", "partition=main"},
         "{\"ps\":1,\"workers\":2,\"layout\":\"het\"}",
         NULL,
         "partition=main ntasks=1 cpus-per-task=2 | partition=main ntasks=2 cpus-per-task=2 ",
         false},
        {{"ntasks=4", "mem-per-cpu=1G"},
         "{\"ps\":2,\"workers\":4,\"layout\":\"packed\"}",
         four,
         "nodes=2 ntasks-per-node=1 cpus-per-task=3 mem-per-cpu=1G ",
         false},
        {{"ntasks=4", "nodes=2", "ntasks-per-node=2"},
         "{\"ps\":0,\"workers\":4,\"layout\":\"packed\"}",
         NULL,
         "ntasks=4 nodes=2 ntasks-per-node=2 ",
         true},
        {{"ntasks=4", "gpus-per-task=k80:1"},
         "{\"ps\":1,\"workers\":2,\"layout\":\"het\"}",
         NULL,
         "ntasks=1 cpus-per-task=1 | ntasks=2 cpus-per-task=1 gpus-per-task=k80:1 ",
         false},
        {{"ntasks=4", "gres=gpu:4"},
         "{\"ps\":1,\"workers\":2,\"layout\":\"packed\"}",
         NULL,
         "nodes=1 ntasks-per-node=1 cpus-per-task=3 gres=gpu:2 ",
         false},
    };
    size_t bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *lines = directives(cases[i].words, spec, cases[i].config, cases[i].cluster,
                                 cases[i].as_submitted);
        char *expected = dt_xasprintf("%s%s", OWN, cases[i].lines);
        if (strcmp(lines, expected) != 0) {
            print_error("case %zu gave\n  %s\nexpected\n  %s\n", i, lines, expected);
            bad++;
        }
        free(lines);
        free(expected);
    }
    assert_int_equal(bad, 0);
}

/* What is tuned is written as the user writes it: the same options, types and units. */
static void tuned_sizes_keep_the_users_style(void **state)
{
    static const char spec[] =
        "{\"dt\": {\"ps\": [0, 1], \"workers\": [2, 4], \"worker_mem\": [\"4G\", \"4100M\"], "
        "\"worker_gpus\": [1, 2]}}";
    static const struct {
        const char *words[6], *config, *lines;
    } cases[] = {
#define ONE "{\"ps\":0,\"workers\":2,\"worker_mem\":\"4G\",\"worker_gpus\":2,\"layout\":\"packed\"}"
#define ODD                                                                                        \
    "{\"ps\":0,\"workers\":2,\"worker_mem\":\"4100M\",\"worker_gpus\":2,\"layout\":\"packed\"}"
#define TWO "{\"ps\":1,\"workers\":2,\"worker_mem\":\"4G\",\"worker_gpus\":2,\"layout\":\"packed\"}"
#define HET "{\"ps\":1,\"workers\":2,\"worker_mem\":\"4G\",\"worker_gpus\":2,\"layout\":\"het\"}"
        {{"ntasks=2", "mem-per-cpu=1G"},
         ONE,
         "ntasks=2 cpus-per-task=1 mem-per-cpu=4G gpus-per-task=2 gpu-bind=none "},
        {{"ntasks=2", "mem-per-cpu=1000M"},
         ONE,
         "ntasks=2 cpus-per-task=1 mem-per-cpu=4096M gpus-per-task=2 gpu-bind=none "},
        {{"ntasks=2", "mem-per-cpu=1G"},
         ODD,
         "ntasks=2 cpus-per-task=1 mem-per-cpu=4100M gpus-per-task=2 gpu-bind=none "},
        {{"ntasks=2", "gpus-per-task=a100:1", "mem-per-gpu=8G"},
         ONE,
         "ntasks=2 cpus-per-task=1 mem-per-gpu=2G gpus-per-task=a100:2 "},
        {{"ntasks=2", "gres=gpu:a100:2,nic:1", "mem=8g"},
         TWO,
         "nodes=1 ntasks-per-node=1 cpus-per-task=3 mem=12G gres=gpu:a100:4,nic:1 "},
        {{"ntasks=2", "gpus-per-node=a100:2", "mem=0"},
         TWO,
         "nodes=1 ntasks-per-node=1 cpus-per-task=3 mem=12288M gpus-per-node=a100:4 "},
        /* sbatch would hand --mem on to the workers, who have another form */
        {{"ntasks=2", "mem=2G"},
         HET,
         "ntasks=1 cpus-per-task=1 mem-per-cpu=1G | ntasks=2 cpus-per-task=1 mem-per-cpu=4G gpus-per-task=2 gpu-bind=none "},
        {{"ntasks=2", "exclusive", "mem=0"},
         HET,
         "exclusive ntasks=1 cpus-per-task=1 mem-per-cpu=4096M | exclusive ntasks=2 cpus-per-task=1 mem-per-cpu=4096M "
         "gpus-per-task=2 gpu-bind=none "},
    };
    size_t bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *lines = directives(cases[i].words, spec, cases[i].config, NULL, false);
        char *expected = dt_xasprintf("%s%s", OWN, cases[i].lines);
        if (strcmp(lines, expected) != 0) {
            print_error("case %zu gave\n  %s\nexpected\n  %s\n", i, lines, expected);
            bad++;
        }
        free(lines);
        free(expected);
    }
    assert_int_equal(bad, 0);
}

/* Every way in which Slurm lets one write the same thing. */
static void spellings_are_the_same_request(void **state)
{
    static const struct {
        const char *words[5];
        struct dt_request r;
    } cases[] = {
        {{"mem=4G"}, {.memory = DT_MEMORY_NODE, .mem_mib = 4096}},
        {{"mem=4096M"}, {.memory = DT_MEMORY_NODE, .mem_mib = 4096}},
        {{"mem=4096"}, {.memory = DT_MEMORY_NODE, .mem_mib = 4096}},
        {{"mem=4194304k"}, {.memory = DT_MEMORY_NODE, .mem_mib = 4096}},
        {{"mem=0"}, {.memory = DT_MEMORY_NODE}},
        {{"mem-per-cpu=1500"}, {.memory = DT_MEMORY_CPU, .mem_mib = 1500}},
        {{"mem-per-gpu=1t"}, {.memory = DT_MEMORY_GPU, .mem_mib = 1048576}},
        {{"gres=gpu:a100:2"}, {.gpus_per_node = 2, .gpu_type = "a100"}},
        {{"gres=gres:gpu:2,nic:1"}, {.gpus_per_node = 2, .gres = "nic:1"}},
        {{"gres=nic:2"}, {.gres = "nic:2"}},
        {{"gpus-per-node=a100:2"}, {.gpus_per_node = 2, .gpu_type = "a100"}},
        {{"gpus-per-node=a100:2,v100:1"}, {.gpus_per_node = 3}},
        {{"gpus-per-task=1", "ntasks=3"}, {.gpus_per_task = 1, .tasks = 3}},
        {{"gpus=8"}, {.gpus = 8}},
        {{"gpus-per-socket=2", "sockets-per-node=2"}, {.gpus_per_socket = 2, .sockets = 2}},
        {{"cpus-per-gpu=4", "gpus=1"}, {.cpus_per_gpu = 4, .gpus = 1}},
        {{"exclusive"}, {.whole_nodes = true}},
        {{"exclusive=user"}, {.whole_nodes = false}},
        {{"nodes=3"}, {.nodes = 3, .nodes_max = 3}},
        {{"nodes=2-4"}, {.nodes = 2, .nodes_max = 4}},
        {{"nodes=-4"}, {.nodes = 1, .nodes_max = 4}},
        {{"nodes=1k"}, {.nodes = 1024, .nodes_max = 1024}},
        {{"nodes=1", "nodelist=n[1-3]"}, {.nodes = 3, .nodes_max = 3}},
        {{"nodelist=n[1-3]"}, {.nodes = 3}},
        {{"ntasks-per-node=4", "ntasks=1k"}, {.tasks_per_node = 4, .tasks = 1024}},
        {{"extra-node-info=2:8:1"}, {.sockets = 2, .cores = 8, .threads = 1}},
        {{"extra-node-info=2:*:2"}, {.sockets = 2, .threads = 2}},
        {{"tmp=2G", "time=1:30:00", "licenses=m:2"},
         {.tmp_mib = 2048, .time = 5400, .licenses = "m:2"}},
        {{"overcommit", "ntasks-per-core=2", "ntasks-per-socket=3"},
         {.overcommit = true, .tasks_per_core = 2, .tasks_per_socket = 3}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_job job = job_of(cases[i].words);
        struct dt_request *got = &job.given, want = cases[i].r;
#define SAME_TEXT(x, y) (!(x) == !(y) && (!(x) || strcmp(x, y) == 0))
        bool texts = SAME_TEXT(got->gpu_type, want.gpu_type) && SAME_TEXT(got->gres, want.gres) &&
                     SAME_TEXT(got->licenses, want.licenses);
        got->gpu_type = want.gpu_type = got->gres = want.gres = got->licenses = want.licenses =
            NULL;
        if (!texts || got->nodes != want.nodes || got->nodes_max != want.nodes_max ||
            got->tasks != want.tasks || got->tasks_per_node != want.tasks_per_node ||
            got->tasks_per_socket != want.tasks_per_socket ||
            got->tasks_per_core != want.tasks_per_core || got->sockets != want.sockets ||
            got->cores != want.cores || got->threads != want.threads ||
            got->memory != want.memory || got->mem_mib != want.mem_mib ||
            got->gpus_per_task != want.gpus_per_task || got->gpus_per_node != want.gpus_per_node ||
            got->gpus_per_socket != want.gpus_per_socket || got->gpus != want.gpus ||
            got->cpus_per_gpu != want.cpus_per_gpu || got->tmp_mib != want.tmp_mib ||
            got->time != want.time || got->whole_nodes != want.whole_nodes ||
            got->overcommit != want.overcommit)
            fail_msg("case %zu: %s", i, cases[i].words[0]);
        dt_job_free(&job);
    }
}

/* ---- kinds of nodes ---- */

static void constraints_are_read_as_far_as_that_is_sure(void **state)
{
    static const struct {
        const char *features, *constraint;
        bool allow;
        const char *missing;
    } cases[] = {
        {"fast,big", "fast", true, NULL},
        {"fast,big", "slow", false, "slow"},
        {"fast,big", "fast&big", true, NULL},
        {"fast,big", "fast&slow", false, "slow"},
        {"fast,big", "slow|big", true, "slow"},
        {"fast,big", "slow|odd", false, "slow"},
        {"fast,big", "fast&(slow|odd)", true, NULL}, /* nobody can tell */
        {"fast,big", "[slow|odd]", true, NULL},
        {"fast,big", "slow*2", true, NULL},
        {"faster", "fast", false, "fast"},
        {"", "fast", false, "fast"},
        {NULL, "fast", true, NULL},
        {"fast", NULL, true, NULL},
    };
    static const struct {
        const char *a, *b, *both;
    } joined[] = {{"a", "b", "a&b"},    {"a&b", "c", "a&b&c"}, {"a|b", "a|b", "a|b"},
                  {"a|b", "c", NULL},   {"a", "[b|c]", NULL},  {NULL, "[b|c]", "[b|c]"},
                  {"a|b", NULL, "a|b"}, {NULL, NULL, NULL},    {"a", "a", "a"}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *missing = dt_features_missing(cases[i].features, cases[i].constraint);
        const char *want = cases[i].missing;
        if (dt_features_allow(cases[i].features, cases[i].constraint) != cases[i].allow ||
            !missing != !want || (want && strcmp(missing, want) != 0))
            fail_msg("case %zu: missing %s", i, missing ? missing : "none");
        free(missing);
    }
    for (size_t i = 0; i < COUNT(joined); i++) {
        char *both = dt_features_join(joined[i].a, joined[i].b);
        if (!both != !joined[i].both || (both && strcmp(both, joined[i].both) != 0))
            fail_msg("join %zu gave %s", i, both ? both : "nothing");
        free(both);
    }
}

/* Two fast and four slow nodes; beside them a partition for short jobs, one of big nodes and one
 * that is down. */
static const char kinds_cluster[] =
    "{\"partition\": \"main\", \"nodes\": [{\"count\": 2, \"cpus\": 8, \"mem\": 8192}, "
    "{\"count\": 4, \"cpus\": 2, \"mem\": 4096}], \"features\": \"fast,slow,huge,off\", "
    "\"partitions\": [{\"partition\": \"main\", \"nodes\": "
    "[{\"count\": 2, \"cpus\": 8, \"mem\": 8192, \"features\": \"fast\"}, "
    "{\"count\": 4, \"cpus\": 2, \"mem\": 4096, \"features\": \"slow\"}]}, "
    "{\"partition\": \"short\", \"max_time\": 600, \"nodes\": "
    "[{\"count\": 2, \"cpus\": 8, \"mem\": 8192, \"features\": \"fast\"}]}, "
    "{\"partition\": \"large\", \"max_nodes\": 1, \"nodes\": "
    "[{\"count\": 2, \"cpus\": 64, \"mem\": 65536, \"features\": \"huge,fast\"}]}, "
    "{\"partition\": \"down\", \"closed\": true, \"nodes\": []}]}";

static void kinds_that_cannot_be_are_excluded(void **state)
{
    static const struct {
        const char *job[4], *dt, *config, *why; /* begins with; NULL: fits */
    } cases[] = {
#define BOTH "\"ps\": 1, \"workers\": 2"
        {{0}, "\"worker_constraint\": \"slow\", \"workers\": 4", "\"worker_cpus\": 2", NULL},
        {{0},
         "\"worker_constraint\": \"slow\", \"workers\": 5",
         "\"worker_cpus\": 2",
         "workers: more"},
        {{0},
         "\"worker_constraint\": \"slow\", \"workers\": 1",
         "\"worker_cpus\": 3",
         "workers: more"},
        {{0}, "\"worker_constraint\": \"fast\", \"workers\": 1", "\"worker_cpus\": 3", NULL},
        {{0},
         "\"worker_constraint\": \"huge\", \"workers\": 1",
         "\"worker_cpus\": 1",
         "worker_constraint: no node"},
        {{0}, "\"worker_constraint\": \"[huge]\", \"workers\": 1", "\"worker_cpus\": 1", NULL},
        {{"nodelist=n1"},
         "\"worker_constraint\": \"fast\", \"workers\": 1",
         "\"worker_cpus\": 1",
         "--nodelist says"},
        {{0}, "\"partition\": \"large\", \"workers\": 1", "\"worker_cpus\": 64", NULL},
        {{0}, "\"partition\": \"main\", \"workers\": 1", "\"worker_cpus\": 64", "workers: more"},
        {{0}, "\"partition\": \"large\", \"workers\": 2", "\"worker_cpus\": 64", "workers: more"},
        {{"constraint=slow"},
         "\"partition\": \"large\", \"workers\": 1",
         "\"worker_cpus\": 1",
         "worker_constraint: no node"},
        {{"time=10"}, "\"partition\": \"short\", \"workers\": 1", "\"worker_cpus\": 1", NULL},
        {{"time=11"},
         "\"partition\": \"short\", \"workers\": 1",
         "\"worker_cpus\": 1",
         "partition: it allows less"},
        {{0},
         "\"partition\": \"down\", \"workers\": 1",
         "\"worker_cpus\": 1",
         "partition: it is down"},
        {{0},
         "\"partition\": \"none\", \"workers\": 1",
         "\"worker_cpus\": 1",
         "partition: there is none"},
        {{0},
         BOTH ", \"ps_constraint\": \"slow\", \"worker_constraint\": \"fast\"",
         "\"worker_cpus\": 8, \"layout\": \"het\"",
         NULL},
        {{0},
         BOTH ", \"ps_constraint\": \"fast\", \"worker_constraint\": \"fast\"",
         "\"worker_cpus\": 8, \"layout\": \"het\"",
         "layout het:"},
        {{0},
         BOTH ", \"ps_constraint\": \"huge\", \"worker_constraint\": \"fast\"",
         "\"worker_cpus\": 1, \"layout\": \"het\"",
         "ps_constraint: no node"},
        {{0},
         BOTH ", \"ps_constraint\": \"fast\", \"worker_constraint\": \"fast\"",
         "\"worker_cpus\": 7, \"layout\": \"packed\"",
         NULL},
        {{0},
         BOTH ", \"ps_constraint\": \"slow\", \"worker_constraint\": \"fast\"",
         "\"worker_cpus\": 1, \"layout\": \"packed\"",
         "layout packed: both roles share nodes, and none has"},
        {{0},
         BOTH ", \"ps_constraint\": \"slow|fast\", \"worker_constraint\": \"fast\"",
         "\"worker_cpus\": 1, \"layout\": \"packed\"",
         "layout packed: both roles share nodes, and constraints with |"},
        {{0},
         BOTH ", \"ps_constraint\": \"slow|fast\", \"worker_constraint\": \"slow|fast\"",
         "\"worker_cpus\": 1, \"layout\": \"packed\"",
         NULL},
        {{"constraint=slow"},
         BOTH ", \"worker_constraint\": \"fast\"",
         "\"worker_cpus\": 1, \"layout\": \"packed\"",
         "layout packed: both roles share nodes, and none has"},
        {{"constraint=slow"},
         BOTH ", \"worker_constraint\": \"fast\"",
         "\"worker_cpus\": 8, \"layout\": \"het\"",
         NULL},
    };
    struct dt_cluster *c = cluster_of(kinds_cluster);
    struct json_object *again = dt_cluster_to_json(c);
    dt_cluster_free(c);
    c = dt_cluster_from_json(again, NULL); /* as a study that is resumed has it */
    json_object_put(again);
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_job job = job_of(cases[i].job);
        char *spec =
            dt_xasprintf("{\"dt\": {%s, \"worker_cpus\": [1, 2, 3, 7, 8, 64]}}", cases[i].dt);
        char *config = dt_xasprintf("{%s, %s}", cases[i].dt, cases[i].config);
        struct json_object *json = dt_json_parse(spec, "S.json", NULL);
        struct dt_spec *parsed = dt_spec_parse(json, spec, "S.json", NULL);
        struct dt_space_source source = {parsed, &job, NULL};
        struct json_object *o = dt_json_parse(config, "C.json", NULL);
        const char *why_layout;
        struct dt_space *space = dt_space_generate(&source, &why_layout, NULL);
        struct dt_shape s;
        double x[8];
        assert_int_equal(dt_config_from_json(space, o, x, NULL), 0);
        dt_shape_make(space, x, &job, c, &s);
        const char *why = dt_shape_why_not(&s, &job, c);
        if (!why != !cases[i].why || (why && !dt_starts_with(why, cases[i].why)))
            fail_msg("case %zu: %s", i, why ? why : "fits");
        dt_space_free(space);
        json_object_put(o);
        json_object_put(json);
        dt_spec_free(parsed);
        free(spec);
        free(config);
        dt_job_free(&job);
    }
    dt_cluster_free(c);
}

static void names_that_exist_nowhere_are_errors(void **state)
{
    static const struct {
        const char *dt, *error;
    } cases[] = {
        {"\"worker_constraint\": [\"fast\", \"fats\"]",
         "S.json:1: dt.worker_constraint: no node has the feature \"fats\"; there are: fast,slow,huge,off"},
        {"\"ps\": [1], \"ps_constraint\": [\"fast&no\"]",
         "S.json:1: dt.ps_constraint: no node has the feature \"no\"; there are: fast,slow,huge,off"},
        {"\"partition\": [\"main\", \"mian\"]",
         "S.json:1: dt.partition: there is no partition \"mian\"; there are: main, short, large, down"},
        {"\"worker_constraint\": [\"off\"]",
         "the search space is empty"}, /* of nodes that are down */
        {"\"worker_constraint\": [\"fast\", \"off\"]", NULL},
    };
    struct dt_cluster *c = cluster_of(kinds_cluster);
    struct dt_job job = job_of((const char *[]){NULL});
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_error e = DT_ERROR_INIT;
        char *text = dt_xasprintf("{\"dt\": {%s}}", cases[i].dt);
        struct dt_spec *spec = spec_of(text);
        struct dt_space_source source = {spec, &job, c};
        const char *why;
        struct dt_space *s = dt_space_generate(&source, &why, &e);
        if (!s != !!cases[i].error || (!s && !strstr(e.text, cases[i].error)))
            fail_msg("case %zu: %s", i, s ? "no error" : e.text);
        if (s) {
            assert_int_equal(s->nexclusions, 1);
            assert_string_equal(
                s->exclusions[0].reason,
                "worker_constraint: no node of the partition that is up has these features");
        }
        dt_space_free(s);
        dt_error_clear(&e);
        dt_spec_free(spec);
        free(text);
    }
    dt_job_free(&job);
    dt_cluster_free(c);
}

static void kinds_take_the_place_of_the_options(void **state)
{
    static const char spec[] =
        "{\"dt\": {\"ps\": [0, 1], \"workers\": [2], \"ps_constraint\": [\"slow\", \"fast\"], "
        "\"worker_constraint\": [\"fast\", \"huge|fast\"], \"partition\": [\"main\", \"large\"]}}";
#define CONFIG(ps, sc, wc, p, l)                                                                   \
    "{\"ps\":" ps ",\"workers\":2,\"ps_constraint\":" sc ",\"worker_constraint\":" wc              \
    ",\"partition\":" p ",\"layout\":\"" l "\"}"
    static const struct {
        const char *words[4], *config, *lines;
        bool as_submitted;
    } cases[] = {
        {{"constraint=old", "partition=main", "qos=high"},
         CONFIG("1", "\"slow\"", "\"fast\"", "\"large\"", "het"),
         "qos=high partition=large constraint=slow ntasks=1 cpus-per-task=1 | qos=high partition=large "
         "constraint=fast ntasks=2 cpus-per-task=1 ",
         false},
        {{"constraint=old"},
         CONFIG("1", "\"slow\"", "null", "null", "het"),
         "constraint=slow ntasks=1 cpus-per-task=1 | constraint=old ntasks=2 cpus-per-task=1 ",
         false},
        {{"constraint=old", "partition=a"},
         CONFIG("1", "\"slow\"", "\"fast\"", "null", "packed"),
         "partition=a constraint=\"slow&fast\" nodes=1 ntasks-per-node=1 cpus-per-task=3 ",
         false},
        {{NULL},
         CONFIG("0", "null", "\"huge|fast\"", "\"large\"", "packed"),
         "partition=large constraint=\"huge|fast\" ntasks=2 cpus-per-task=1 ",
         false},
        {{"constraint=old", "partition=a"},
         CONFIG("0", "\"slow\"", "null", "null", "packed"),
         "constraint=old partition=a ntasks=2 cpus-per-task=1 ",
         false},
        {{"constraint=fast", "ntasks=2"},
         CONFIG("0", "null", "\"fast\"", "null", "packed"),
         "constraint=fast ntasks=2 ",
         true},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *lines =
            directives(cases[i].words, spec, cases[i].config, NULL, cases[i].as_submitted);
        char *expected = dt_xasprintf("%s%s", OWN, cases[i].lines);
        if (strcmp(lines, expected) != 0)
            fail_msg("case %zu gave\n  %s\nexpected\n  %s\n", i, lines, expected);
        free(lines);
        free(expected);
    }
}

/* ---- natural sizes ---- */

/* "worker_cpus=1,2,4 worker_mem=..." of the parameters under "dt", as the document has them afterwards; or the error. */
static char *natural(const char *dt, const char *cluster, size_t gpus)
{
    const char *src = getenv("srcdir");
    struct dt_error e = DT_ERROR_INIT;
    char *folder = realpath(src ? src : ".", NULL);
    char *text = dt_xasprintf("{\"dt\": {%s}, \"placement\": {\"topology\": \"%s/tests/data/hwloc\"}}", dt, folder);
    struct dt_spec *spec = spec_of(text);
    struct dt_cluster *c = cluster_of(cluster);
    struct dt_job job = {.tasks = 1, .cpus = 1, .gpus = gpus};
    struct dt_strv words = DT_STRV_INIT;
    if (dt_natural_fill(spec, &job, c, &e) < 0)
        dt_strv_add(&words, e.text);
    struct dt_spec *again = e.text ? NULL : dt_spec_parse(spec->json, NULL, "again", &e);
    for (size_t i = 0; again && i < again->nparams; i++) {
        const struct dt_param *p = &spec->params[i], *q = &again->params[i];
        struct dt_buf b = DT_BUF_INIT;
        assert_int_equal(q->nvalues, p->nvalues);
        for (size_t k = 0; k < p->nvalues; k++) {
            assert_true(p->values[k] == q->values[k]);
            dt_buf_addf(&b, "%s%g", k ? "," : "", q->values[k]);
        }
        dt_strv_addf(&words, "%s=%s", q->name, b.s);
        dt_buf_free(&b);
    }
    char *result = dt_strv_join(&words, " ");
    dt_strv_free(&words);
    dt_error_clear(&e);
    dt_spec_free(again);
    dt_spec_free(spec);
    dt_cluster_free(c);
    free(folder);
    free(text);
    return result;
}

static void natural_sizes(void **state)
{
    static const struct {
        const char *dt, *cluster;
        size_t gpus;
        const char *want;
    } cases[] = {
        /* as Slurm describes them: halves by packages, and less */
        {"\"worker_cpus\": \"auto\", \"worker_mem\": \"auto\"",
         "{\"nodes\": [{\"count\": 4, \"cpus\": 64, \"threads\": 2, \"sockets\": 2, \"cores\": 16, \"mem\": 64000}]}", 0,
         "worker_cpus=8,16,32,64 worker_mem=8000,16000,32000,64000"},
        {"\"worker_cpus\": \"auto\", \"worker_gpus\": \"auto\"",
         "{\"nodes\": [{\"count\": 4, \"cpus\": 40, \"gpus\": 3, \"mem\": 64000}]}", 0,
         "worker_cpus=3,6,13,40 worker_gpus=1,3"},
        /* the job's own number of GPUs, and none of a node's GPUs */
        {"\"worker_cpus\": \"auto\"", "{\"nodes\": [{\"count\": 4, \"cpus\": 40, \"gpus\": 4, \"mem\": 64000}]}", 2,
         "worker_cpus=5,10,20"},
        {"\"worker_cpus\": \"auto\"", "{\"nodes\": [{\"count\": 4, \"cpus\": 40, \"gpus\": 4, \"mem\": 64000}]}", 0,
         "worker_cpus=10,20,40"},
        /* topologies with the same CPUs and GPUs: pairs of GPUs; a GPU alone and three, so one at a time */
        {"\"worker_gpus\": \"auto\", \"worker_cpus\": \"auto\", \"worker_mem\": \"auto\"",
         "{\"nodes\": [{\"count\": 2, \"cpus\": 16, \"gpus\": 4, \"mem\": 130659}]}", 0,
         "worker_gpus=1,2 worker_cpus=1,2,4,8 worker_mem=8159,16319,32639,65279"},
        {"\"worker_gpus\": \"auto\", \"worker_cpus\": \"auto\"",
         "{\"nodes\": [{\"count\": 2, \"cpus\": 32, \"gpus\": 4, \"mem\": 64000}]}", 0,
         "worker_gpus=1 worker_cpus=1,2,4"},
        /* four NUMA nodes in two packages, and only half of the memory for jobs */
        {"\"worker_cpus\": \"auto\", \"worker_mem\": \"auto\"",
         "{\"nodes\": [{\"count\": 2, \"cpus\": 28, \"mem\": 32634}]}", 0,
         "worker_cpus=1,3,7,14,28 worker_mem=2039,4079,8158,16317,32634"},
        /* from one node to as many as there are workers, or nodes, or as a job may have */
        {"\"worker_nodes\": \"auto\", \"workers\": [2, 6]",
         "{\"nodes\": [{\"count\": 9, \"cpus\": 4, \"mem\": 1000}]}", 0, "worker_nodes=1,2,4,6 workers=2,6"},
        {"\"worker_nodes\": \"auto\", \"workers\": [64]",
         "{\"nodes\": [{\"count\": 9, \"cpus\": 4, \"mem\": 1000}, {\"count\": 3, \"cpus\": 8, \"mem\": 1000}]}", 0,
         "worker_nodes=1,2,4,8,12 workers=64"},
        {"\"worker_nodes\": \"auto\", \"workers\": [64]",
         "{\"nodes\": [{\"count\": 9, \"cpus\": 4, \"mem\": 1000}], \"max_nodes\": 4}", 0,
         "worker_nodes=1,2,4 workers=64"},
        {"\"worker_nodes\": \"auto\"", "{\"nodes\": [{\"count\": 9, \"cpus\": 4, \"mem\": 1000}]}", 0,
         "worker_nodes=1"},
        {"\"worker_gpus\": \"auto\"", "{\"nodes\": [{\"count\": 2, \"cpus\": 30, \"mem\": 32634}]}", 0,
         "dt.worker_gpus: \"auto\" finds none on these nodes; leave it out"},
    };
    (void)state;
    setenv("XDG_CACHE_HOME", "/nowhere", 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *text = natural(cases[i].dt, cases[i].cluster, cases[i].gpus);
        assert_string_equal(text, cases[i].want);
        free(text);
    }
    /* without a cluster there is nothing to go by */
    struct dt_error e = DT_ERROR_INIT;
    struct dt_spec *spec = spec_of("{\"dt\": {\"worker_cpus\": \"auto\"}}");
    struct dt_job job = {.tasks = 1, .cpus = 1};
    assert_int_equal(dt_natural_fill(spec, &job, NULL, &e), -1);
    assert_string_equal(
        e.text, "dt.worker_cpus: \"auto\" needs to know the nodes: give --cluster=FILE, or values");
    dt_error_clear(&e);
    dt_spec_free(spec);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(natural_sizes),
        cmocka_unit_test(a_job_is_read_in_numbers),
        cmocka_unit_test(a_job_has_a_name_and_a_time),
        cmocka_unit_test(a_job_that_makes_no_sense_is_refused),
        cmocka_unit_test(shares_add_up_and_odd_ones_stay_apart),
        cmocka_unit_test(configurations_become_roles),
        cmocka_unit_test(clusters_refuse_what_they_cannot_run),
        cmocka_unit_test(gpus_and_memory_of_roles_count),
        cmocka_unit_test(a_generated_space_is_what_the_cluster_can_run),
        cmocka_unit_test(layouts_follow_spec_and_cluster),
        cmocka_unit_test(what_spec_leaves_out_has_a_default),
        cmocka_unit_test(the_job_as_submitted_is_a_configuration),
        cmocka_unit_test(candidates_come_from_a_file),
        cmocka_unit_test(trials_ask_slurm_for_their_shape),
        cmocka_unit_test(tuned_sizes_keep_the_users_style),
        cmocka_unit_test(spellings_are_the_same_request),
        cmocka_unit_test(constraints_are_read_as_far_as_that_is_sure),
        cmocka_unit_test(kinds_that_cannot_be_are_excluded),
        cmocka_unit_test(names_that_exist_nowhere_are_errors),
        cmocka_unit_test(kinds_take_the_place_of_the_options),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
