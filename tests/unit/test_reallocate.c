/* Re-allocation: what the allocator wishes, and a trial's way over several runs. */
#include "allocator/allocator.h"
#include "model/work.h"
#include "report/report.h"
#include "tuner/tuner.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* ---- a space, and what roles use ---- */

static struct dt_spec *spec_of(const char *more)
{
    struct dt_error e = DT_ERROR_INIT;
    bool grid = !strstr(more, "fidelity");
    char *text = dt_xasprintf("{\"dt\": {\"ps\": {\"low\": 1, \"high\": 8}, \"workers\": {\"low\": 1, \"high\": 8}, "
                              "\"ps_mem\": {\"choices\": [\"1G\", \"2G\", \"4G\"]}}, "
                              "\"constraints\": [\"ps + workers <= 12\"], \"search\": {\"algorithm\": \"%s\"}%s%s}",
                              grid ? "grid" : "bayes", *more ? ", " : "", more);
    struct json_object *o = dt_json_parse(text, "SPEC", &e);
    struct dt_spec *s = o ? dt_spec_parse(o, NULL, "SPEC", &e) : NULL;
    if (!s)
        fail_msg("%s", e.text);
    json_object_put(o);
    free(text);
    return s;
}

static struct dt_space *space_of(const struct dt_spec *spec)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_space *s = dt_space_new(spec->params, spec->nparams, &spec->constraints, NULL, 0, NULL,
                                      NULL, NULL, 0, &e);
    if (!s)
        fail_msg("%s", e.text);
    return s;
}

static void use(struct dt_role_usages *all, const char *role, size_t samples, double cpu, double mem)
{
    struct dt_usage u = dt_usage_unknown(0);
    u.mean[DT_RESOURCE_CPU] = u.max[DT_RESOURCE_CPU] = cpu;
    u.mean[DT_RESOURCE_MEM] = u.max[DT_RESOURCE_MEM] = mem;
    for (size_t i = 0; i < samples; i++)
        dt_role_usages_add(all, role, 1, &u);
}

/* A trial on one configuration after another. */
struct way {
    struct dt_spec *spec;
    struct dt_space *space;
    struct dt_role_usages usage;
    struct dt_stretch v[8];
    double x[8][3];
    size_t n;
};

static struct way way_new(void)
{
    struct way w = {.spec = spec_of("")};
    w.space = space_of(w.spec);
    return w;
}

static void way_free(struct way *w)
{
    dt_role_usages_free(&w->usage);
    dt_space_free(w->space);
    dt_spec_free(w->spec);
}

/* The next stretch; the roles' usage is that of the last. */
static void went(struct way *w, double ps, double workers, double pace, double ps_cpu,
                 double worker_cpu, size_t samples)
{
    double *x = w->x[w->n];
    x[0] = ps;
    x[1] = workers;
    x[2] = 1024;
    w->v[w->n++] = (struct dt_stretch){x, pace, ps_cpu, worker_cpu};
    dt_role_usages_free(&w->usage);
    use(&w->usage, "ps", samples, ps_cpu, 0.5);
    use(&w->usage, "worker", samples, worker_cpu, 0.5);
}

/* What it should go on with: "ps=2 workers=1 ps_mem=1G: why", "stay". Caller frees. */
static char *wish(const struct way *w, enum dt_allocate_rule rule, double remaining, double restart,
                  size_t left)
{
    struct dt_allocator a = DT_ALLOCATOR_INIT;
    struct dt_running t = {
        .usage = &w->usage, .stretches = w->v, .n = w->n, .remaining = remaining, .left = left};
    struct dt_wish got;
    a.rule = rule;
    a.restart_s = restart;
    dt_allocate(&a, w->space, &t, 1, &got);
    if (!got.x)
        return dt_xstrdup("stay");
    assert_true(dt_space_allows(w->space, got.x, NULL));
    char *config = dt_config_text(w->space, got.x), *text = dt_xasprintf("%s: %s", config, got.why);
    free(config);
    dt_wish_free(&got);
    return text;
}

static void expect_wish(const struct way *w, enum dt_allocate_rule rule, double remaining,
                        double restart, size_t left, const char *expected)
{
    char *text = wish(w, rule, remaining, restart, left);
    if (strncmp(text, expected, strlen(expected)) != 0)
        fail_msg("gave %s, expected %s", text, expected);
    free(text);
}

/* ---- thresholds ---- */

static void the_bottleneck_follows_from_both_roles(void **state)
{
    static const struct {
        double ps, workers, ps_cpu, worker_cpu;
        size_t samples;
        const char *expected;
    } cases[] = {
        {1, 2, 0.95, 0.4, 10, "ps=3 workers=2 ps_mem=1G: servers saturated (95 %), workers partly busy (40 %)"},
        {1, 2, 0.95, 0.4, 3, "ps=3 workers=2"}, /* three samples say that servers are saturated, */
        {1, 2, 0.95, 0.4, 2, "stay"},           /* two do not, */
        {1, 2, 0.85, 0.4, 9, "stay"},           /* nor do nine that workers wait */
        {1, 2, 0.85, 0.4, 10, "ps=3 workers=2"},
        {2, 2, 0.4, 0.95, 3, "ps=2 workers=4 ps_mem=1G: servers partly busy (40 %), workers saturated (95 %)"},
        {2, 2, 0.5, 0.95, 3, "ps=4 workers=4"}, /* twice the workers would saturate the servers */
        {2, 2, 0.95, 0.95, 3, "ps=4 workers=4"},
        {4, 4, 0.1, 0.1, 10, "ps=2 workers=2"}, /* both idle */
        {4, 4, 0.1, 0.1, 9, "stay"},
        {8, 4, 0.95, 0.1, 10, "ps=8 workers=2"}, /* no more servers are allowed */
        {8, 4, 0.5, 0.95, 10, "stay"},           /* nothing is left */
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct way w = way_new();
        went(&w, cases[i].ps, cases[i].workers, 1, cases[i].ps_cpu, cases[i].worker_cpu,
             cases[i].samples);
        expect_wish(&w, DT_ALLOCATE_THRESHOLDS, 1000, 0, 3, cases[i].expected);
        way_free(&w);
    }
}

/* Tasks are all there may be: then CPUs. What is as the script has it does not stand in the way. */
static void cpus_come_after_tasks(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_param params[] = {
        {.name = "ps", .kind = DT_PARAM_INT, .low = 1, .high = 2, .step = 1},
        {.name = "workers", .kind = DT_PARAM_INT, .low = 2, .high = 2, .step = 1},
        {.name = "ps_cpus", .kind = DT_PARAM_INT, .low = 1, .high = 4, .step = 1},
        {.name = "ps_tmp", .kind = DT_PARAM_INT, .low = 1, .high = 2, .step = 1}};
    struct dt_strv none = DT_STRV_INIT;
    struct dt_space *s = dt_space_new(params, 4, &none, NULL, 0, NULL, NULL, NULL, 0, &e);
    const double from[][4] = {{1, 2, 1, NAN}, {2, 2, 1, NAN}};
    const double to[][4] = {{2, 2, 1, 1}, {2, 2, 2, 1}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct dt_role_usages usage = {0};
        struct dt_stretch now = {from[i], 1, 0.95, 0.4};
        struct dt_running t = {
            .usage = &usage, .stretches = &now, .n = 1, .remaining = 1000, .left = 3};
        struct dt_allocator a = DT_ALLOCATOR_INIT;
        struct dt_wish got;
        a.rule = DT_ALLOCATE_THRESHOLDS;
        use(&usage, "ps", 3, 0.95, 0.5);
        use(&usage, "worker", 3, 0.4, 0.5);
        dt_allocate(&a, s, &t, 1, &got);
        assert_non_null(got.x);
        assert_true(dt_config_equal(got.x, to[i], 4));
        dt_wish_free(&got);
        dt_role_usages_free(&usage);
    }
    dt_space_free(s);
}

static void one_sample_on_the_other_side_is_no_reason(void **state)
{
    struct way w = way_new();
    (void)state;
    went(&w, 1, 2, 1, 0.95, 0.2, 10);
    use(&w.usage, "ps", 1, 0.5, 0.5);
    use(&w.usage, "ps", 2, 0.95, 0.5);
    use(&w.usage, "worker", 3, 0.5, 0.5);
    char *text = wish(&w, DT_ALLOCATE_THRESHOLDS, 1000, 0, 3);
    assert_non_null(strstr(text, "servers partly busy"));
    assert_non_null(strstr(text, "workers partly busy"));
    free(text);
    way_free(&w);
}

static void a_step_that_did_not_help_is_taken_back(void **state)
{
    struct way w = way_new();
    (void)state;
    went(&w, 1, 2, 1.0, 0.95, 0.6, 10);
    went(&w, 2, 2, 1.2, 0.5, 0.5, 10);
    /* not that way again; more workers instead, as seen from where it was faster */
    expect_wish(&w, DT_ALLOCATE_THRESHOLDS, 1000, 0, 3, "ps=1 workers=4 ps_mem=1G: servers saturated (95 %), "
                                                        "workers partly busy (60 %), as long as it was faster");
    expect_wish(&w, DT_ALLOCATE_THRESHOLDS, 1000, 0, 1, "ps=1 workers=2 ps_mem=1G: 1.2 s a step here, 1 s there");
    expect_wish(&w, DT_ALLOCATE_THRESHOLDS, 10, 5, 1, "stay"); /* saves 2 s, costs 5 s */
    way_free(&w);
}

static void what_was_given_back_is_not_taken_again(void **state)
{
    struct way w = way_new();
    (void)state;
    went(&w, 8, 4, 1.0, 0.95, 0.1, 10);
    expect_wish(&w, DT_ALLOCATE_THRESHOLDS, 1000, 0, 3, "ps=8 workers=2");
    went(&w, 8, 2, 1.01, 0.95, 0.5, 10);
    expect_wish(&w, DT_ALLOCATE_THRESHOLDS, 1000, 0, 3, "stay");
    way_free(&w);
}

static void no_step_is_taken_at_the_end(void **state)
{
    struct way w = way_new();
    (void)state;
    went(&w, 1, 2, 1, 0.95, 0.4, 10);
    /* of the 60 % that they wait, 2.5 times the servers may save 60 % */
    expect_wish(&w, DT_ALLOCATE_THRESHOLDS, 28, 10, 3, "ps=3 workers=2 ps_mem=1G: servers saturated (95 %), workers "
                                                       "partly busy (40 %): may save 10.08 s of the 28 s left, a restart "
                                                       "costs 10 s");
    expect_wish(&w, DT_ALLOCATE_THRESHOLDS, 27, 10, 3, "stay");
    expect_wish(&w, DT_ALLOCATE_THRESHOLDS, NAN, 10, 3, "ps=3"); /* nobody knows how much is left */
    way_free(&w);
}

static void memory_comes_before_the_kernel(void **state)
{
    struct way w = way_new();
    (void)state;
    went(&w, 1, 2, 1, 0.5, 0.6, 10);
    use(&w.usage, "ps", 3, 0.5, 0.96);
    expect_wish(&w, DT_ALLOCATE_THRESHOLDS, 1, 100, 3,
                "ps=1 workers=2 ps_mem=2G: ps: memory at 96 % of its limit over 3 samples");
    expect_wish(&w, DT_ALLOCATE_MODEL, 1, 100, 3, "ps=1 workers=2 ps_mem=2G");
    way_free(&w);
}

/* ---- the law of work ---- */

static void the_law_finds_its_own(void **state)
{
    struct way w = way_new();
    double x[6][3] = {{1, 1, 1024}, {4, 2, 1024}, {2, 4, 1024}, {8, 1, 1024}, {6, 6, 1024}, {3, 8, 1024}};
    struct dt_worked o[6];
    struct dt_work law;
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        double busy = 2 / x[i][1] + 0.1, wait = 3 * x[i][1] / x[i][0] + 0.05 * x[i][0];
        o[i] = (struct dt_worked){x[i], busy + wait, busy / (busy + wait)};
    }
    assert_false(dt_work_fit(w.space, o, 0, &law));
    assert_true(dt_work_fit(w.space, o, 6, &law));
    for (size_t i = 0; i < 6; i++)
        assert_true(fabs(dt_work_pace(w.space, o[i].x, &law) / o[i].pace - 1) < 0.1);
    /* from the first alone: more of both */
    assert_true(dt_work_fit(w.space, o, 1, &law));
    assert_true(fabs(dt_work_pace(w.space, o[0].x, &law) / o[0].pace - 1) < 0.2);
    assert_true(dt_work_pace(w.space, x[1], &law) < dt_work_pace(w.space, x[0], &law));
    way_free(&w);
}

static void the_model_moves_where_the_gain_pays(void **state)
{
    struct way w = way_new();
    (void)state;
    went(&w, 1, 1, 1, 0.9, 0.5, 10);
    expect_wish(&w, DT_ALLOCATE_MODEL, 1000, 10, 3, "ps=8 workers=3 ps_mem=1G: servers saturated (90 %), workers partly "
                                                    "busy (50 %): 1 s a step here, ");
    expect_wish(&w, DT_ALLOCATE_MODEL, 10, 10, 3, "stay");
    went(&w, 8, 3, 2, 0.1, 0.2, 10); /* of which nothing came */
    expect_wish(&w, DT_ALLOCATE_MODEL, 1000, 10, 1, "ps=1 workers=1 ps_mem=1G: servers idle (10 %), workers idle (20 %): "
                                                    "2 s a step here, 1 s measured there: saves 1000 s of the 2000 s left, "
                                                    "a restart costs 10 s");
    way_free(&w);
}

static void what_other_trials_saw_counts(void **state)
{
    struct way w = way_new();
    double x[3] = {8, 3, 1024};
    struct dt_stretch other = {x, 5, 0.1, 0.9};
    struct dt_allocator a = DT_ALLOCATOR_INIT;
    (void)state;
    went(&w, 1, 1, 1, 0.9, 0.5, 10);
    struct dt_running t = {.usage = &w.usage,
                           .stretches = w.v,
                           .n = 1,
                           .others = &other,
                           .nothers = 1,
                           .remaining = 1000,
                           .left = 3};
    struct dt_wish got;
    a.rule = DT_ALLOCATE_MODEL;
    dt_allocate(&a, w.space, &t, 1, &got);
    assert_true(!got.x || got.x[0] != 8 || got.x[1] != 3);
    dt_wish_free(&got);
    way_free(&w);
}

static void saving_goes_to_the_least_that_keeps_the_speed(void **state)
{
    struct way w = way_new();
    (void)state;
    went(&w, 1, 1, 1, 0.9, 0.5, 10);
    w.x[0][2] = 4096;
    expect_wish(&w, DT_ALLOCATE_SAVE, 1000, 0, 9, "ps=1 workers=1 ps_mem=2G");
    went(&w, 1, 1, 1.02, 0.9, 0.5, 10);
    w.x[1][2] = 2048;
    expect_wish(&w, DT_ALLOCATE_SAVE, 1000, 0, 9, "ps=1 workers=1 ps_mem=1G");
    went(&w, 1, 1, 1.2, 0.9, 0.5, 10);
    expect_wish(&w, DT_ALLOCATE_SAVE, 1000, 0, 9, "ps=1 workers=1 ps_mem=2G: too small");
    went(&w, 1, 1, 1.02, 0.9, 0.5, 10);
    w.x[3][2] = 2048;
    expect_wish(&w, DT_ALLOCATE_SAVE, 1000, 0, 9, "stay");
    way_free(&w);
}

/* ---- other nodes ---- */

static const char nodes[] =
    "{\"partition\": \"main\", \"backfill\": true, \"nodes\": [{\"count\": 8, \"cpus\": 8, \"mem\": 4096}, "
    "{\"count\": 4, \"cpus\": 2, \"mem\": 4096}], "
    "\"features\": \"slow,mid,fast,wide,gpu,big\", \"partitions\": [{\"partition\": \"main\", \"nodes\": ["
    "{\"count\": 2, \"cpus\": 8, \"mem\": 4096, \"features\": \"fast\"}, "
    "{\"count\": 2, \"cpus\": 3, \"mem\": 4096, \"features\": \"mid\"}, "
    "{\"count\": 4, \"cpus\": 2, \"mem\": 4096, \"features\": \"slow\"}, "
    "{\"count\": 2, \"cpus\": 2, \"mem\": 4096, \"gpus\": 4, \"features\": \"gpu\"}, "
    "{\"count\": 2, \"cpus\": 2, \"mem\": 16384, \"features\": \"big\"}]}, "
    "{\"partition\": \"large\", \"nodes\": [{\"count\": 4, \"cpus\": 64, \"mem\": 4096, "
    "\"features\": \"wide\"}]}]}";

struct roles {
    double ps_cpu, ps_mem, ps_gpu, worker_cpu;
};

/* What a trial on `config`, at 1 s a step, is to go on with; `before` is what it was on at first, at
 * `pace` seconds a step, or NULL. Caller frees. */
static char *move_of(const char *dt, const char *options, const char *before, double pace,
                     const char *config, struct roles r, double restart)
{
    struct dt_error e = DT_ERROR_INIT;
    char *text = dt_xasprintf("{\"dt\": {%s}, \"layout\": \"%s\"}", dt,
                              strstr(options, "packed") ? "packed" : "het");
    struct json_object *json = dt_json_parse(text, "SPEC", &e),
                       *cluster_json = dt_json_parse(nodes, "C", &e);
    struct dt_spec *spec = dt_spec_parse(json, NULL, "SPEC", &e);
    struct dt_cluster *cluster = dt_cluster_from_json(cluster_json, &e);
    struct dt_job job = {.tasks = 3, .cpus = 1};
    struct dt_space_source source = {spec, &job, cluster};
    const char *why;
    struct dt_space *s = spec ? dt_space_generate(&source, &why, &e) : NULL;
    if (!s)
        fail_msg("%s", e.text);
    double x[2][8];
    const char *configs[] = {before ? before : config, config};
    for (size_t i = 0; i < 2; i++) {
        struct json_object *o = dt_json_parse(configs[i], "C", &e);
        if (!o || dt_config_from_json(s, o, x[i], &e) < 0)
            fail_msg("%s", e.text);
        json_object_put(o);
    }
    struct dt_usage u = dt_usage_unknown(0);
    struct dt_role_usages usage = {0};
    u.mean[DT_RESOURCE_CPU] = u.max[DT_RESOURCE_CPU] = r.ps_cpu;
    u.mean[DT_RESOURCE_MEM] = u.max[DT_RESOURCE_MEM] = r.ps_mem;
    u.mean[DT_RESOURCE_GPU] = u.max[DT_RESOURCE_GPU] = r.ps_gpu;
    for (size_t i = 0; i < 3; i++)
        dt_role_usages_add(&usage, "ps", 1, &u);
    use(&usage, "worker", 3, r.worker_cpu, 0.1);
    struct dt_stretch v[] = {{x[0], pace, 0.9, 0.5}, {x[1], 1, 0.9, 0.5}};
    struct dt_running t = {.usage = &usage,
                           .stretches = before ? v : v + 1,
                           .n = before ? 2 : 1,
                           .remaining = 1000,
                           .left = 3};
    struct dt_allocator a = DT_ALLOCATOR_INIT;
    struct dt_wish got;
    a.rule = strstr(options, "model") ? DT_ALLOCATE_MODEL : DT_ALLOCATE_THRESHOLDS;
    a.restart_s = restart;
    a.cluster = strstr(options, "unknown") ? NULL : cluster;
    a.constraint = strstr(options, "slow") ? "slow" : NULL;
    a.mem_given = strstr(options, "mem") != NULL;
    dt_allocate(&a, s, &t, 1, &got);
    char *to = got.x ? dt_config_text(s, got.x) : NULL,
         *answer = to ? dt_xasprintf("%s: %s", to, got.why) : dt_xstrdup("stay");
    free(to);
    dt_wish_free(&got);
    dt_role_usages_free(&usage);
    dt_space_free(s);
    dt_cluster_free(cluster);
    dt_spec_free(spec);
    json_object_put(cluster_json);
    json_object_put(json);
    free(text);
    return answer;
}

static void a_role_moves_to_nodes_with_more(void **state)
{
#define FIXED "\"ps\": [1], \"workers\": [2]"
#define AT(more) "{\"ps\": 1, \"workers\": 2, " more ", \"layout\": \"het\"}"
#define PACKED_AT(more) "{\"ps\": 1, \"workers\": 2, " more "}"
    static const char ps[] = FIXED ", \"ps_constraint\": [\"slow\", \"mid\", \"fast\", \"gpu\", \"big\"]";
    static const char packed[] = FIXED ", \"ps_constraint\": [\"slow\", \"fast\"], \"worker_constraint\": [\"slow\", \"fast\"]";
    static const char cpus[] = FIXED ", \"ps_constraint\": [\"slow\", \"fast\"], \"ps_cpus\": [1, 2, 4, 8]";
    static const char partition[] = FIXED ", \"partition\": [\"main\", \"large\"]";
    static const char mem[] = FIXED ", \"ps_constraint\": [\"slow\", \"big\"], \"ps_mem\": [\"1G\", \"4G\", \"8G\"]";
    static const char workers[] = FIXED ", \"worker_constraint\": [\"slow\", \"fast\"]";
    const struct roles busy = {0.97, 0.1, NAN, 0.4}, busy_gpu = {0.2, 0.1, 0.95, 0.4},
                       full = {0.5, 0.95, NAN, 0.4}, busy_worker = {0.1, 0.1, NAN, 0.96};
    const struct {
        const char *dt, *options, *before;
        double pace;
        const char *config;
        struct roles roles;
        double restart;
        const char *expected;
    } cases[] = {
        /* the kind nearest to twice as much; the rest is named */
        {ps, "", NULL, 0, AT("\"ps_constraint\": \"slow\""), busy, 0,
         "ps=1 workers=2 ps_constraint=mid layout=het: ps: CPU 97 % over 3 samples, moves from slow "
         "(2 CPUs a node) to mid (3 CPUs a node); not fast (8 CPUs a node), gpu (2 CPUs a node), big "
         "(2 CPUs a node): may save 200 s of the 1000 s left, a restart costs 0 s"},
        {ps, "model", NULL, 0, AT("\"ps_constraint\": \"slow\""), busy, 0,
         "ps=1 workers=2 ps_constraint=mid"},
        {ps, "", NULL, 0, AT("\"ps_constraint\": \"slow\""), busy, 201, "stay"},
        {ps, "unknown", NULL, 0, AT("\"ps_constraint\": \"slow\""), busy, 0, "stay"},
        {ps, "", NULL, 0, AT("\"ps_constraint\": \"fast\""), busy, 0, "stay"},
        /* again where it was faster, not where it was not */
        {ps, "", AT("\"ps_constraint\": \"slow\""), 2, AT("\"ps_constraint\": \"mid\""), busy, 0,
         "ps=1 workers=2 ps_constraint=fast"},
        {ps, "", AT("\"ps_constraint\": \"slow\""), 1, AT("\"ps_constraint\": \"mid\""), busy, 0, "stay"},
        {ps, "", AT("\"ps_constraint\": \"slow\""), 0.5, AT("\"ps_constraint\": \"mid\""), busy, 0,
         "ps=1 workers=2 ps_constraint=slow layout=het: 1 s a step here, 0.5 s there"},
        /* what the script leaves open, and what it says */
        {ps, "", NULL, 0, AT("\"ps_constraint\": null"), busy, 0, "ps=1 workers=2 ps_constraint=fast layout=het: "
         "ps: CPU 97 % over 3 samples, moves from any (2 to 8 CPUs a node) to fast (8 CPUs a node)"},
        {ps, "slow", NULL, 0, AT("\"ps_constraint\": null"), busy, 0, "ps=1 workers=2 ps_constraint=mid layout=het: "
         "ps: CPU 97 % over 3 samples, moves from slow (2 CPUs a node) to mid (3 CPUs a node)"},
        /* by what it is short of */
        {ps, "", NULL, 0, AT("\"ps_constraint\": \"slow\""), busy_gpu, 0,
         "ps=1 workers=2 ps_constraint=gpu layout=het: ps: GPU 95 % over 3 samples, moves from slow (0 GPUs a node) to gpu (4 GPUs a node)"},
        {ps, "", NULL, 0, AT("\"ps_constraint\": \"slow\""), full, 0,
         "ps=1 workers=2 ps_constraint=big layout=het: ps: memory 95 % over 3 samples, moves from slow (4096 MiB a node) to big (16384 MiB a node)"},
        {ps, "mem", NULL, 0, AT("\"ps_constraint\": \"slow\""), full, 0, "stay"},
        {mem, "mem", NULL, 0, AT("\"ps_constraint\": \"slow\", \"ps_mem\": \"1G\""), full, 0,
         "ps=1 workers=2 ps_constraint=slow ps_mem=4G"},
        {mem, "mem", NULL, 0, AT("\"ps_constraint\": \"slow\", \"ps_mem\": \"4G\""), full, 0,
         "ps=1 workers=2 ps_constraint=big ps_mem=8G"},
        /* more CPUs first, then more CPUs than the nodes have */
        {cpus, "", NULL, 0, AT("\"ps_constraint\": \"slow\", \"ps_cpus\": 1"), busy, 0,
         "ps=1 workers=2 ps_constraint=slow ps_cpus=2"},
        {cpus, "", NULL, 0, AT("\"ps_constraint\": \"slow\", \"ps_cpus\": 2"), busy, 0,
         "ps=1 workers=2 ps_constraint=fast ps_cpus=4"},
        /* both where they share nodes */
        {packed, "packed", NULL, 0, PACKED_AT("\"ps_constraint\": \"slow\", \"worker_constraint\": \"slow\""), busy, 0,
         "ps=1 workers=2 ps_constraint=fast worker_constraint=fast: ps: CPU 97 %"},
        {packed, "", NULL, 0, AT("\"ps_constraint\": \"slow\", \"worker_constraint\": \"slow\""), busy, 0,
         "ps=1 workers=2 ps_constraint=fast worker_constraint=slow"},
        {workers, "", NULL, 0, AT("\"worker_constraint\": \"slow\""), busy_worker, 0,
         "ps=1 workers=2 worker_constraint=fast layout=het: worker: CPU 96 % over 3 samples, moves from slow (2 CPUs a node) to fast"},
        {partition, "", NULL, 0, AT("\"partition\": \"main\""), busy, 0,
         "ps=1 workers=2 partition=large layout=het: ps: CPU 97 % over 3 samples, moves from partition main (2 to 8 CPUs a node) to partition large (64 CPUs a node)"},
    };
    size_t bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *got = move_of(cases[i].dt, cases[i].options, cases[i].before, cases[i].pace,
                            cases[i].config, cases[i].roles, cases[i].restart);
        if (strncmp(got, cases[i].expected, strlen(cases[i].expected)) != 0) {
            print_error("case %zu gave\n  %s\nexpected\n  %s\n", i, got, cases[i].expected);
            bad++;
        }
        free(got);
    }
    assert_int_equal(bad, 0);
}

/* ---- a trial's way over several runs ---- */

struct fixture {
    struct dt_spec *spec;
    struct dt_space *space;
    struct dt_study *s;
    struct dt_buf journal;
    double now;
};

#define ON "\"reallocate\": {\"rule\": \"thresholds\", \"cooldown_s\": 0}, \"checkpoint\": {\"grace_s\": 20}"

static struct fixture study(const char *more)
{
    struct dt_error e = DT_ERROR_INIT;
    struct fixture f = {.spec = spec_of(more), .now = 1000};
    f.space = space_of(f.spec);
    f.s = dt_study_new(f.spec, f.space, NULL, &e);
    if (!f.s)
        fail_msg("%s", e.text);
    return f;
}

static void done(struct fixture *f)
{
    dt_study_free(f->s);
    dt_space_free(f->space);
    dt_spec_free(f->spec);
    dt_buf_free(&f->journal);
}

static void apply(struct fixture *f, struct dt_event ev)
{
    struct dt_error e = DT_ERROR_INIT;
    ev.t = f->now;
    struct json_object *o = dt_event_to_json(&ev);
    char *line = dt_json_text(o);
    dt_buf_addf(&f->journal, "%s\n", line);
    free(line);
    json_object_put(o);
    if (dt_study_apply(f->s, &ev, &e) < 0)
        fail_msg("%s", e.text);
    dt_event_free(&ev);
}

static struct dt_event event(enum dt_event_kind kind, int trial)
{
    struct dt_event ev = DT_EVENT(kind);
    ev.trial = trial;
    return ev;
}

static struct dt_trial *trial(const struct fixture *f)
{
    return &f->s->trials[0];
}

static void metric(struct fixture *f, const char *name, double value)
{
    struct dt_event ev = event(DT_EVENT_METRIC, 1);
    ev.text = dt_xstrdup(name);
    ev.value = value;
    apply(f, ev);
}

static void usage(struct fixture *f, const char *role, double cpu)
{
    struct dt_event ev = event(DT_EVENT_USAGE, 1);
    ev.run = trial(f)->run;
    ev.text = dt_xstrdup(role);
    ev.usage = dt_usage_unknown(f->now);
    ev.usage.mean[DT_RESOURCE_CPU] = ev.usage.max[DT_RESOURCE_CPU] = cpu;
    apply(f, ev);
}

/* What is decided, as a text; the caller frees. What only the journal changes is done. */
static char *decide(struct fixture *f)
{
    struct dt_action a;
    struct dt_error e = DT_ERROR_INIT;
    struct dt_event ev = event(DT_EVENT_CREATED, 1);
    char *text = NULL;
    if (dt_study_decide(f->s, f->now, &a, &e) < 0)
        fail_msg("%s", e.text);
    char *config = a.x ? dt_config_text(f->space, a.x) : NULL;
    switch (a.kind) {
    case DT_ACTION_CREATE:
        ev.config = dt_config_to_json(f->space, a.x);
        ev.text = dt_xstrdup(a.why);
        break;
    case DT_ACTION_SUBMIT:
        ev.kind = DT_EVENT_SUBMITTED;
        ev.run = trial(f)->run;
        ev.job = 7;
        break;
    case DT_ACTION_REALLOCATE:
        ev.kind = DT_EVENT_REALLOCATING;
        ev.run = trial(f)->run;
        ev.config = dt_config_to_json(f->space, a.x);
        ev.text = dt_xstrdup(a.why);
        text = dt_xasprintf("reallocate to %s", config);
        break;
    case DT_ACTION_SHRINK:
        ev.kind = DT_EVENT_SHRINKING;
        ev.run = trial(f)->run;
        ev.config = dt_config_to_json(f->space, a.x);
        ev.text = dt_xstrdup(a.why);
        text = dt_xasprintf("shrink to %s", config);
        break;
    case DT_ACTION_SHED:
        trial(f)->shedding = true;
        text = dt_xstrdup("shed");
        break;
    case DT_ACTION_KEEP:
        ev.kind = DT_EVENT_KEPT;
        ev.text = dt_xstrdup(a.why);
        text = dt_xasprintf("keep: %s", a.why);
        break;
    case DT_ACTION_CHECKPOINT:
        trial(f)->move.asking = true;
        text = dt_xstrdup("checkpoint");
        break;
    case DT_ACTION_CANCEL:
        trial(f)->cancelling = true;
        text = dt_xstrdup("cancel");
        break;
    default:
        text = dt_xstrdup("wait");
    }
    if (!text)
        text = dt_xstrdup(a.kind == DT_ACTION_CREATE ? "create" : "submit");
    bool applies = a.kind != DT_ACTION_NONE && ev.kind != DT_EVENT_CREATED;
    if (applies || a.kind == DT_ACTION_CREATE)
        apply(f, ev);
    else
        dt_event_free(&ev);
    free(config);
    dt_action_free(&a);
    return text;
}

static void expect(struct fixture *f, const char *expected)
{
    char *text = decide(f);
    assert_string_equal(text, expected);
    free(text);
}

/* The run starts 5 s from now, reports after 5 s more, and then every second: from and to are steps, at so many
 * seconds each. */
static void runs(struct fixture *f, double from, double to, double pace)
{
    struct dt_event ev = event(DT_EVENT_STARTED, 1);
    f->now += 5;
    ev.wait_s = 5;
    ev.nodes = 2;
    apply(f, ev);
    f->now += 5;
    for (double step = from; step <= to; step += 10) {
        metric(f, "step", step);
        if (step < to)
            f->now += 10 * pace;
    }
}

static void ended(struct fixture *f, enum dt_cause cause, int exit_code, double run_s)
{
    struct dt_event ev = event(DT_EVENT_ENDED, 1);
    ev.cause = cause;
    ev.exit_code = exit_code;
    ev.run_s = run_s;
    ev.wait_s = 5;
    ev.billing = 3;
    apply(f, ev);
}

/* The first trial runs on one server and one worker, its server saturated, and is asked for a checkpoint. */
static struct fixture asked(const char *more)
{
    struct fixture f = study(*more ? more : ON);
    expect(&f, "create");
    expect(&f, "submit");
    runs(&f, 10, 100, 1);
    expect(&f, "wait");
    for (int i = 0; i < 3; i++) {
        usage(&f, "ps", 0.95);
        usage(&f, "worker", 0.4);
    }
    expect(&f, "reallocate to ps=3 workers=1 ps_mem=1G");
    expect(&f, "checkpoint");
    expect(&f, "wait");
    return f;
}

/* A study that is replayed from its journal is in the same state. */
static void same_after_replay(struct fixture *f, const char *more)
{
    struct dt_error e = DT_ERROR_INIT;
    struct fixture g = study(*more ? more : ON);
    struct dt_strv lines = DT_STRV_INIT;
    dt_strv_split(&lines, f->journal.s, "\n");
    for (size_t i = 0; i < lines.n; i++) {
        struct json_object *o = *lines.v[i] ? dt_json_parse(lines.v[i], "journal", &e) : NULL;
        if (o && dt_study_apply_record(g.s, o, &e) < 0)
            fail_msg("%s", e.text);
        json_object_put(o);
    }
    dt_strv_free(&lines);
    const struct dt_trial *a = trial(f), *b = trial(&g);
    assert_int_equal(a->state, b->state);
    assert_int_equal(a->run, b->run);
    assert_int_equal(a->nparts, b->nparts);
    assert_int_equal(a->moves, b->moves);
    assert_true(dt_config_equal(a->x, b->x, f->space->n));
    assert_true(a->value == b->value || (isnan(a->value) && isnan(b->value)));
    assert_true(!f->s->no_moves == !g.s->no_moves);
    assert_true(!a->move.x == !b->move.x && a->move.kept == b->move.kept);
    done(&g);
}

static void a_trial_goes_on_in_another_shape(void **state)
{
    struct fixture f = asked("");
    struct dt_observation *o;
    (void)state;
    f.now += 4;
    ended(&f, DT_CAUSE_EXIT, 143, 104);
    assert_int_equal(trial(&f)->state, DT_TRIAL_CREATED);
    assert_int_equal(trial(&f)->run, 2);
    assert_int_equal(f.s->nfinished, 0);
    assert_true(trial(&f)->x[0] == 3);
    expect(&f, "submit");
    runs(&f, 110, 200, 0.5);
    f.now += 2;
    ended(&f, DT_CAUSE_OK, 0, 52);
    const struct dt_trial *t = trial(&f);
    assert_int_equal(t->status, DT_STATUS_OK);
    /* 5 s to the first report, 190 steps, and 2 s behind the last */
    assert_true(fabs(t->value - (5 + 190 * 0.5 + 2)) < 1e-6);
    assert_int_equal(t->nparts, 1);
    assert_true(fabs(dt_trial_worth(f.s, t, &t->parts[0]) - (5 + 190 * 1 + 2)) < 1e-6);
    assert_true(t->parts[0].checkpoint_s == 4 && t->parts[0].moved);
    /* both teach, the last is what the trial stands for */
    struct dt_context ctx = dt_study_context(f.s, &o);
    assert_int_equal(ctx.nobs, 2);
    assert_true(o[1].part && o[1].x[0] == 1 && o[1].status == DT_STATUS_OK);
    assert_true(fabs(o[1].value - 197) < 1e-6);
    assert_int_equal(dt_context_best(&ctx), 0);
    assert_true(dt_context_tried(&ctx, o[1].x)); /* another trial would leave it, too */
    free(o);
    same_after_replay(&f, "");
    done(&f);
}

static void of_trial(struct fixture *f, enum dt_event_kind kind, int id, double run_s)
{
    struct dt_event ev = event(kind, id);
    char *config = dt_xasprintf("{\"ps\": %d, \"workers\": 5, \"ps_mem\": \"1G\"}", id);
    ev.run = 1;
    ev.wait_s = 5;
    ev.run_s = run_s;
    ev.config = kind == DT_EVENT_CREATED ? dt_json_parse(config, "c", NULL) : NULL;
    free(config);
    apply(f, ev);
}

/* It was faster before it moved, and then as slow as all others. */
static void a_part_that_promises_the_best_is_run_as_a_whole(void **state)
{
    struct fixture f = asked("");
    struct dt_action a;
    (void)state;
    f.s->stopping.max_configs = 5;
    ended(&f, DT_CAUSE_EXIT, 143, 104);
    expect(&f, "submit");
    runs(&f, 110, 200, 3);
    ended(&f, DT_CAUSE_OK, 0, 300);
    assert_true(trial(&f)->status == DT_STATUS_OK && trial(&f)->value > 500);
    for (int id = 2; id <= 4; id++) {
        of_trial(&f, DT_EVENT_CREATED, id, NAN);
        of_trial(&f, DT_EVENT_SUBMITTED, id, NAN);
        of_trial(&f, DT_EVENT_STARTED, id, NAN);
        of_trial(&f, DT_EVENT_ENDED, id, 300);
    }
    assert_int_equal(dt_study_decide(f.s, f.now, &a, NULL), 0);
    assert_int_equal(a.kind, DT_ACTION_CREATE);
    assert_true(dt_config_equal(a.x, trial(&f)->parts[0].x, f.space->n) && a.again == 0);
    assert_string_equal(a.why, "measured as a whole: run 1 of trial 1 was the fastest");
    dt_action_free(&a);
    f.s->repeats = 0;
    assert_int_equal(dt_study_decide(f.s, f.now, &a, NULL), 0);
    assert_true(!a.why || !strstr(a.why, "as a whole"));
    dt_action_free(&a);
    f.s->repeats = 8;
    struct dt_event ev = event(DT_EVENT_CREATED, 5);
    ev.config = dt_config_to_json(f.space, trial(&f)->parts[0].x);
    apply(&f, ev);
    assert_true(dt_trial_measures(f.s, &f.s->trials[4])); /* so it stays what it is */
    assert_false(dt_trial_measures(f.s, &f.s->trials[3]));
    done(&f);
}

static void a_checkpoint_without_an_end_is_ended(void **state)
{
    struct fixture f = asked("");
    (void)state;
    apply(&f, event(DT_EVENT_CHECKPOINTED, 1));
    expect(&f, "cancel");
    ended(&f, DT_CAUSE_CANCELLED, 0, 110);
    assert_int_equal(trial(&f)->run, 2);
    assert_true(trial(&f)->x[0] == 3);
    same_after_replay(&f, "");
    done(&f);
}

static void what_somebody_else_cancels_is_not_ours(void **state)
{
    struct fixture f = asked("");
    (void)state;
    apply(&f, event(DT_EVENT_CHECKPOINTED, 1));
    struct dt_event ev = event(DT_EVENT_ENDED, 1);
    ev.cause = DT_CAUSE_CANCELLED;
    ev.foreign = true;
    ev.run_s = 110;
    apply(&f, ev);
    assert_int_equal(trial(&f)->state, DT_TRIAL_ENDED);
    assert_int_equal(trial(&f)->cause, DT_CAUSE_CANCELLED);
    assert_true(trial(&f)->run == 1 && trial(&f)->nparts == 0 && !trial(&f)->move.x);
    same_after_replay(&f, "");
    done(&f);
}

#define IN_PLACE                                                                                   \
    "\"reallocate\": {\"rule\": \"thresholds\", \"cooldown_s\": 100, \"in_place\": true}"

/* Idle workers are more than are of use, and the run goes on without its last ones. */
static void a_run_goes_on_with_fewer_workers(void **state)
{
    struct fixture f = study(IN_PLACE);
    (void)state;
    expect(&f, "create");
    f.s->trials[0].x[1] = 4;
    expect(&f, "submit");
    runs(&f, 10, 100, 1);
    for (int i = 0; i < 10; i++) {
        usage(&f, "ps", 0.1);
        usage(&f, "worker", 0.1);
    }
    expect(&f, "shrink to ps=1 workers=2 ps_mem=1G");
    const struct dt_trial *t = trial(&f);
    assert_true(t->state == DT_TRIAL_STARTED && t->run == 1 && t->x[1] == 2 && t->moves == 1);
    assert_true(t->nparts == 1 && t->parts[0].moved && t->parts[0].x[1] == 4);
    assert_true(fabs(t->parts[0].pace - 1) < 1e-9 && t->parts[0].to == 100);
    expect(&f, "shed");
    expect(&f, "wait");
    /* nodes are counted as long as they were there */
    struct dt_event ev = event(DT_EVENT_ALLOCATED, 1);
    double since = f.now - t->t_started;
    ev.nodes = 1;
    apply(&f, ev);
    assert_true(fabs(dt_study_cost(f.s).node_s - since) < 1e-9);
    for (double step = 110; step <= 200; step += 10) {
        f.now += 12;
        metric(&f, "step", step);
    }
    f.now += 2;
    ended(&f, DT_CAUSE_OK, 0, f.now - t->t_started);
    assert_int_equal(t->status, DT_STATUS_OK);
    assert_true(fabs(t->value - (5 + 190 * 1.2 + 2)) < 1e-6); /* by its speed with two workers */
    assert_true(fabs(dt_trial_worth(f.s, t, &t->parts[0]) - (5 + 190 * 1 + 2)) < 1e-6);
    assert_true(fabs(dt_study_cost(f.s).node_s - (since + t->run_s)) < 1e-6);
    done(&f);
}

static void who_does_not_hear_goes_on(void **state)
{
    struct fixture f = asked("");
    (void)state;
    f.now += 19;
    expect(&f, "wait");
    f.now += 1;
    expect(&f, "keep: no checkpoint within 20 s");
    expect(&f, "wait"); /* and is not asked again */
    assert_non_null(f.s->no_moves);
    same_after_replay(&f, "");
    f.now += 100;
    ended(&f, DT_CAUSE_OK, 0, 230);
    assert_int_equal(trial(&f)->status, DT_STATUS_OK);
    assert_true(trial(&f)->value == 230);
    same_after_replay(&f, "");
    done(&f);
}

static void who_is_late_is_heard(void **state)
{
    struct fixture f = asked("");
    (void)state;
    f.now += 20;
    expect(&f, "keep: no checkpoint within 20 s");
    f.now += 5;
    ended(&f, DT_CAUSE_EXIT, 143, 130);
    assert_int_equal(trial(&f)->run, 2);
    assert_true(trial(&f)->x[0] == 3);
    assert_null(f.s->no_moves);
    same_after_replay(&f, "");
    done(&f);
}

/* Without a checkpoint nobody knows what an end is worth, so the trial is run again as it was. */
static void what_ends_without_a_checkpoint_is_repeated(void **state)
{
    static const struct {
        enum dt_cause cause;
        int exit_code;
    } ends[] = {{DT_CAUSE_OK, 0}, {DT_CAUSE_EXIT, 1}, {DT_CAUSE_EXIT, 138}};
    (void)state;
    for (size_t i = 0; i < COUNT(ends); i++) {
        struct fixture f = asked("");
        ended(&f, ends[i].cause, ends[i].exit_code, 100);
        assert_int_equal(trial(&f)->state, DT_TRIAL_CREATED);
        assert_int_equal(trial(&f)->run, 2);
        assert_true(trial(&f)->x[0] == 1);
        assert_non_null(f.s->no_moves);
        assert_int_equal(f.s->nfinished, 0);
        /* it begins anew, so its time is that of the whole */
        expect(&f, "submit");
        runs(&f, 10, 200, 1);
        for (int k = 0; k < 3; k++)
            usage(&f, "ps", 0.95);
        expect(&f, "wait");
        ended(&f, DT_CAUSE_OK, 0, 196);
        assert_true(trial(&f)->value == 196);
        same_after_replay(&f, "");
        done(&f);
    }
}

/* A program that never says how far it is may have gone on from a checkpoint: its time is no measure. */
static void who_says_nothing_is_not_timed(void **state)
{
    struct fixture f = study(ON);
    (void)state;
    expect(&f, "create");
    expect(&f, "submit");
    apply(&f, event(DT_EVENT_STARTED, 1));
    for (int i = 0; i < 10; i++) {
        usage(&f, "ps", 0.95);
        usage(&f, "worker", 0.4);
    }
    expect(&f, "reallocate to ps=3 workers=1 ps_mem=1G");
    expect(&f, "checkpoint");
    ended(&f, DT_CAUSE_OK, 0, 100);
    assert_int_equal(trial(&f)->run, 2);
    expect(&f, "submit");
    apply(&f, event(DT_EVENT_STARTED, 1));
    ended(&f, DT_CAUSE_OK, 0, 1);
    assert_int_equal(trial(&f)->status, DT_STATUS_VOID);
    assert_true(isnan(trial(&f)->value));
    same_after_replay(&f, "");
    done(&f);
}

/* Exit code 0 is its end where all the work is done. */
static void a_finished_program_is_finished(void **state)
{
    const char *more = "\"reallocate\": {\"rule\": \"thresholds\", \"cooldown_s\": 0, \"work\": 100000}";
    struct fixture f = asked(more);
    (void)state;
    metric(&f, "step", 100000);
    apply(&f, event(DT_EVENT_CHECKPOINTED, 1));
    ended(&f, DT_CAUSE_OK, 0, 300);
    assert_int_equal(trial(&f)->state, DT_TRIAL_ENDED);
    assert_true(trial(&f)->value == 300);
    same_after_replay(&f, more);
    done(&f);
}

/* The first trial begins, in such a configuration, and is asked to go on with three servers. */
static void moves(struct fixture *f, const char *config)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_event ev = event(DT_EVENT_CREATED, 1);
    char *text = dt_xasprintf("{\"ps\": 1, %s}", config);
    ev.config = dt_json_parse(text, "config", &e);
    ev.text = dt_xstrdup("");
    apply(f, ev);
    apply(f, event(DT_EVENT_SUBMITTED, 1));
    runs(f, 10, 100, 1);
    free(text);
    text = dt_xasprintf("{\"ps\": 3, %s}", config);
    ev = event(DT_EVENT_REALLOCATING, 1);
    ev.config = dt_json_parse(text, "config", &e);
    ev.text = dt_xstrdup("");
    apply(f, ev);
    free(text);
}

/* How far the whole goes does not tell how far a trial at a lower fidelity does. */
static void cheap_work_is_not_the_whole(void **state)
{
    static const struct {
        int epochs;
        enum dt_trial_state state;
    } cases[] = {{100, DT_TRIAL_CREATED}, {1000, DT_TRIAL_ENDED}};
    const char *more = "\"reallocate\": {\"rule\": \"model\", \"work\": 100}, \"hyperparameters\": "
                       "{\"epochs\": {\"choices\": [100, 1000], \"fidelity\": true}}";
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fixture f = study(more);
        char *config = dt_xasprintf("\"workers\": 1, \"ps_mem\": 1024, \"epochs\": %d", cases[i].epochs);
        moves(&f, config);
        ended(&f, DT_CAUSE_OK, 0, 100);
        assert_int_equal(trial(&f)->state, cases[i].state);
        same_after_replay(&f, more);
        free(config);
        done(&f);
    }
}

/* The report counts all runs of a cheap trial, and needs room for what each has shown. */
static void all_runs_of_cheap_trials_are_told(void **state)
{
    const char *more = "\"reallocate\": {\"rule\": \"model\"}, \"hyperparameters\": "
                       "{\"epochs\": {\"choices\": [100, 1000], \"fidelity\": true}}";
    struct fixture f = study(more);
    (void)state;
    moves(&f, "\"workers\": 1, \"ps_mem\": 1024, \"epochs\": 100");
    for (int i = 0; i < 9; i++) {
        ended(&f, DT_CAUSE_LOST, 0, 100);
        trial(&f)->moves++; /* as often as it takes */
        apply(&f, event(DT_EVENT_SUBMITTED, 1));
        runs(&f, 10, 100, 1);
        trial(&f)->x[0] = i % 8 + 1;
    }
    ended(&f, DT_CAUSE_OK, 0, 100);
    struct dt_thrift t = dt_report_thrift(f.s);
    assert_int_equal(t.trials, 1);
    assert_true(t.run_s == 1000);
    done(&f);
}

/* What came between the target and the end, which is only our way to notice, does not count. */
static void a_target_is_the_end(void **state)
{
    const char *more = ON ", \"target\": {\"metric\": \"accuracy\", \"at_least\": 0.9}";
    struct fixture f = asked(more);
    (void)state;
    ended(&f, DT_CAUSE_EXIT, 143, 104);
    expect(&f, "submit");
    runs(&f, 110, 200, 0.5);
    f.now += 1;
    metric(&f, "accuracy", 0.95);
    f.now += 4;
    metric(&f, "step", 208);
    f.now += 10;
    expect(&f, "cancel");
    ended(&f, DT_CAUSE_CANCELLED, 0, 65);
    assert_int_equal(trial(&f)->cause, DT_CAUSE_TARGET);
    double pace = 50.0 / 98;
    assert_true(fabs(trial(&f)->value - (5 + 198 * pace - 4)) < 1e-6);
    same_after_replay(&f, more);
    done(&f);
}

/* A trial that goes on at step 60 is not as good at step 20 as others that are only there. */
static void rungs_below_are_what_they_were(void **state)
{
    const char *more = ON ", \"objective\": {\"metric\": \"loss\", \"goal\": \"minimize\"}";
    struct fixture f = study(more);
    char *why = NULL;
    (void)state;
    f.spec->pruner.rule = DT_PRUNE_MEDIAN;
    f.spec->pruner.startup = 1;
    f.spec->pruner.min_step = f.spec->pruner.max_step = 20;
    moves(&f, "\"workers\": 1, \"ps_mem\": 1024");
    metric(&f, "loss", 5); /* the 1st to be reported */
    for (int i = 0; i < 20; i++)
        metric(&f, "loss", 5);
    ended(&f, DT_CAUSE_EXIT, 143, 104);
    apply(&f, event(DT_EVENT_SUBMITTED, 1));
    runs(&f, 110, 200, 1);
    struct dt_event ev = event(DT_EVENT_METRIC, 1);
    ev.text = dt_xstrdup("loss");
    ev.step = 60;
    ev.value = 1;
    apply(&f, ev);
    ended(&f, DT_CAUSE_OK, 0, 95);
    ev = event(DT_EVENT_CREATED, 2);
    ev.config = dt_config_to_json(f.space, trial(&f)->x);
    ev.text = dt_xstrdup("");
    apply(&f, ev);
    apply(&f, event(DT_EVENT_SUBMITTED, 2));
    apply(&f, event(DT_EVENT_STARTED, 2));
    ev = event(DT_EVENT_METRIC, 2);
    ev.text = dt_xstrdup("loss");
    ev.step = 20;
    ev.value = 4;
    apply(&f, ev);
    assert_int_equal(dt_study_hopeless(f.s, &why), 0);
    done(&f);
}

/* It may have been stopped when its work was done, before it could say so. */
static void who_finds_all_done_has_not_failed(void **state)
{
    const char *more = ON ", \"objective\": {\"metric\": \"loss\", \"goal\": \"minimize\"}";
    struct fixture f = asked(more);
    (void)state;
    ended(&f, DT_CAUSE_EXIT, 143, 104);
    expect(&f, "submit");
    apply(&f, event(DT_EVENT_STARTED, 1));
    ended(&f, DT_CAUSE_OK, 0, 1);
    assert_int_equal(trial(&f)->cause, DT_CAUSE_NO_METRIC);
    assert_int_equal(trial(&f)->status, DT_STATUS_VOID);
    same_after_replay(&f, more);
    done(&f);
}

static void a_corrupt_checkpoint_teaches_nothing(void **state)
{
    struct fixture f = asked("");
    (void)state;
    ended(&f, DT_CAUSE_EXIT, 143, 104);
    expect(&f, "submit");
    struct dt_event ev = event(DT_EVENT_STARTED, 1);
    ev.wait_s = 5;
    apply(&f, ev);
    ended(&f, DT_CAUSE_EXIT, 2, 3);
    assert_int_equal(trial(&f)->state, DT_TRIAL_ENDED);
    assert_int_equal(trial(&f)->status, DT_STATUS_VOID);
    assert_non_null(f.s->no_moves);
    same_after_replay(&f, "");
    done(&f);
}

static void a_study_that_ends_does_not_wait_for_checkpoints(void **state)
{
    struct fixture f = asked("");
    struct dt_event ev = event(DT_EVENT_STOPPING, 0);
    (void)state;
    ev.text = dt_xstrdup("interrupted");
    ev.interrupted = true;
    apply(&f, ev);
    expect(&f, "cancel");
    ended(&f, DT_CAUSE_INTERRUPTED, 0, 100);
    assert_null(trial(&f)->move.x);
    apply(&f, event(DT_EVENT_FINISHED, 0));
    apply(&f, event(DT_EVENT_RESUMED, 0));
    assert_int_equal(trial(&f)->run, 2);
    assert_true(trial(&f)->x[0] == 1);
    /* its program has saved its work when it was told to end: then its time is not that of the whole */
    expect(&f, "submit");
    runs(&f, 110, 200, 1);
    ended(&f, DT_CAUSE_OK, 0, 95);
    assert_true(fabs(trial(&f)->value - (5 + 190)) < 1e-6);
    same_after_replay(&f, "");
    done(&f);
}

static void nothing_moves_unless_asked_for(void **state)
{
    struct fixture f = study("");
    (void)state;
    expect(&f, "create");
    expect(&f, "submit");
    runs(&f, 10, 100, 1);
    for (int i = 0; i < 10; i++) {
        usage(&f, "ps", 0.95);
        usage(&f, "worker", 0.1);
    }
    expect(&f, "wait");
    done(&f);
}

static void so_many_moves_and_no_more(void **state)
{
    const char *more = "\"reallocate\": {\"rule\": \"thresholds\", \"cooldown_s\": 60, \"max_per_trial\": 2}";
    struct fixture f = asked(more);
    (void)state;
    ended(&f, DT_CAUSE_EXIT, 143, 104);
    expect(&f, "submit");
    runs(&f, 110, 140, 2); /* slower: 30 steps in 60 s */
    for (int i = 0; i < 10; i++) {
        usage(&f, "ps", 0.1);
        usage(&f, "worker", 0.4);
    }
    expect(&f, "reallocate to ps=1 workers=1 ps_mem=1G");
    expect(&f, "checkpoint");
    ended(&f, DT_CAUSE_EXIT, 143, 104);
    expect(&f, "submit");
    runs(&f, 150, 300, 1);
    for (int i = 0; i < 10; i++) {
        usage(&f, "ps", 0.95);
        usage(&f, "worker", 0.4);
    }
    expect(&f, "wait");
    assert_int_equal(trial(&f)->moves, 2);
    assert_int_equal(trial(&f)->run, 3);
    same_after_replay(&f, more);
    done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bottleneck_follows_from_both_roles),
        cmocka_unit_test(cpus_come_after_tasks),
        cmocka_unit_test(one_sample_on_the_other_side_is_no_reason),
        cmocka_unit_test(a_step_that_did_not_help_is_taken_back),
        cmocka_unit_test(what_was_given_back_is_not_taken_again),
        cmocka_unit_test(no_step_is_taken_at_the_end),
        cmocka_unit_test(memory_comes_before_the_kernel),
        cmocka_unit_test(the_law_finds_its_own),
        cmocka_unit_test(the_model_moves_where_the_gain_pays),
        cmocka_unit_test(what_other_trials_saw_counts),
        cmocka_unit_test(saving_goes_to_the_least_that_keeps_the_speed),
        cmocka_unit_test(a_role_moves_to_nodes_with_more),
        cmocka_unit_test(a_trial_goes_on_in_another_shape),
        cmocka_unit_test(a_part_that_promises_the_best_is_run_as_a_whole),
        cmocka_unit_test(a_checkpoint_without_an_end_is_ended),
        cmocka_unit_test(what_somebody_else_cancels_is_not_ours),
        cmocka_unit_test(a_run_goes_on_with_fewer_workers),
        cmocka_unit_test(who_does_not_hear_goes_on),
        cmocka_unit_test(who_is_late_is_heard),
        cmocka_unit_test(what_ends_without_a_checkpoint_is_repeated),
        cmocka_unit_test(who_says_nothing_is_not_timed),
        cmocka_unit_test(a_finished_program_is_finished),
        cmocka_unit_test(cheap_work_is_not_the_whole),
        cmocka_unit_test(all_runs_of_cheap_trials_are_told),
        cmocka_unit_test(a_target_is_the_end),
        cmocka_unit_test(rungs_below_are_what_they_were),
        cmocka_unit_test(who_finds_all_done_has_not_failed),
        cmocka_unit_test(a_corrupt_checkpoint_teaches_nothing),
        cmocka_unit_test(a_study_that_ends_does_not_wait_for_checkpoints),
        cmocka_unit_test(nothing_moves_unless_asked_for),
        cmocka_unit_test(so_many_moves_and_no_more),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
