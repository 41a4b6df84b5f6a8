/* The launcher's pure parts: who runs where, what a task finds in its environment, what a command
 * line of srun means, which ports are chosen. */
#include "expand/carrier.h"
#include "launch/launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* ---- Slurm's lists ---- */

static void test_hostlist(void **state)
{
    static const char *const cases[][2] = {
        {"h1", "h1"},
        {"h[1-3]", "h1 h2 h3"},
        {"h[1-3,07,09-10],x", "h1 h2 h3 h07 h09 h10 x"},
        {"a,b[2],c-1", "a b2 c-1"},
        {"r[1-2]n[08-09]x", "r1n08x r1n09x r2n08x r2n09x"},
    };
    static const char *const bad[] = {
        "h[1-", "h[x]", "h[3-1]", "h[1-2x]", "h[0-99999][0-99999]", "h[99999999999999999999]"};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_strv out = DT_STRV_INIT;
        assert_int_equal(dt_hostlist_expand(cases[i][0], &out, NULL), 0);
        char *text = dt_strv_join(&out, " ");
        assert_string_equal(text, cases[i][1]);
        free(text);
        dt_strv_free(&out);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct dt_strv out = DT_STRV_INIT;
        struct dt_error e = DT_ERROR_INIT;
        assert_int_equal(dt_hostlist_expand(bad[i], &out, &e), -1);
        assert_non_null(strstr(e.text, "node list"));
        dt_error_clear(&e);
        dt_strv_free(&out);
    }
}

static void test_counts(void **state)
{
    static const char *const bad[] = {NULL, "", "x", "4(x", "4(x0)", "4,", "-1", "4;5"};
    int *list;
    (void)state;
    assert_int_equal(dt_counts_expand("4(x2),3,0", &list), 4);
    assert_int_equal(list[0] * 1000 + list[1] * 100 + list[2] * 10 + list[3], 4430);
    free(list);
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(dt_counts_expand(bad[i], &list), -1);
}

/* ---- plan ---- */

#define PACKED(roles) "DT_PLAN={\"layout\":\"packed\",\"dir\":\"/d\",\"roles\":[" roles "]}"
#define ROLE(name, count, cpus, gpus)                                                              \
    "{\"name\":\"" name "\",\"count\":" #count ",\"cpus\":" #cpus ",\"gpus\":" #gpus "}"

/* "ps@h1 ps@h2 worker@h1 ..." in order of the global rank. Caller frees. */
static char *layout(char *const *env)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_launch_plan *p = dt_launch_plan_read(env, &e);
    struct dt_strv words = DT_STRV_INIT;
    if (!p)
        dt_strv_add(&words, e.text);
    for (size_t i = 0; p && i < p->n_tasks; i++)
        dt_strv_addf(&words, "%s%d@%s", p->roles[p->tasks[i].role].name, p->tasks[i].role_rank,
                     p->nodes[p->tasks[i].node].name);
    char *text = dt_strv_join(&words, " ");
    dt_strv_free(&words);
    dt_launch_plan_free(p);
    dt_error_clear(&e);
    return text;
}

static void expect_layout(char *const *env, const char *expected)
{
    char *text = layout(env);
    assert_string_equal(text, expected);
    free(text);
}

static void test_packed_spreads(void **state)
{
    (void)state;
    expect_layout((char *[]){PACKED(ROLE("ps", 2, 1, 0) "," ROLE("worker", 4, 2, 1)),
                             "SLURM_JOB_ID=5", "SLURM_JOB_NODELIST=h[1-2]",
                             "SLURM_JOB_CPUS_PER_NODE=5(x2)", NULL},
                  "ps0@h1 ps1@h2 worker0@h1 worker1@h1 worker2@h2 worker3@h2");
    /* the large tasks first, or they would not fit any more */
    expect_layout((char *[]){PACKED(ROLE("ps", 2, 1, 0) "," ROLE("worker", 1, 3, 0)),
                             "SLURM_JOB_ID=5", "SLURM_JOB_NODELIST=h[1-2]",
                             "SLURM_JOB_CPUS_PER_NODE=2,3", NULL},
                  "ps0@h1 ps1@h1 worker0@h2");
    /* GPUs bound how many fit on a node */
    expect_layout((char *[]){PACKED(ROLE("ps", 1, 1, 0) "," ROLE("worker", 2, 1, 2)),
                             "SLURM_JOB_ID=5", "SLURM_JOB_NODELIST=h[1-2]",
                             "SLURM_JOB_CPUS_PER_NODE=8,2", "SLURM_GPUS_PER_NODE=k80:2", NULL},
                  "ps0@h1 worker0@h1 worker1@h2");
    expect_layout((char *[]){PACKED(ROLE("ps", 1, 1, 0) "," ROLE("worker", 2, 4, 0)),
                             "SLURM_JOB_ID=5", "SLURM_JOB_NODELIST=h1", "SLURM_JOB_CPUS_PER_NODE=8",
                             NULL},
                  "role ps: task 1 of 1 finds no node with 1 free CPUs in this allocation");
}

static void test_slurms_layout_kept(void **state)
{
    (void)state;
    expect_layout((char *[]){PACKED(ROLE("worker", 4, 1, 0)), "SLURM_JOB_ID=5",
                             "SLURM_JOB_NODELIST=h[1-2]", "SLURM_JOB_CPUS_PER_NODE=8(x2)",
                             "SLURM_TASKS_PER_NODE=3,1", NULL},
                  "worker0@h1 worker1@h1 worker2@h1 worker3@h2");
    expect_layout((char *[]){PACKED(ROLE("worker", 4, 1, 0)), "SLURM_JOB_ID=5",
                             "SLURM_JOB_NODELIST=h[1-2]", "SLURM_JOB_CPUS_PER_NODE=8(x2)",
                             "SLURM_TASKS_PER_NODE=1(x2)", NULL},
                  "worker0@h1 worker1@h1 worker2@h2 worker3@h2");
    /* and the order of ranks that the user wants, of every role */
    expect_layout((char *[]){PACKED(ROLE("worker", 4, 1, 0)), "SLURM_JOB_ID=5",
                             "SLURM_JOB_NODELIST=h[1-2]", "SLURM_JOB_CPUS_PER_NODE=8(x2)",
                             "SLURM_TASKS_PER_NODE=3,1", "SLURM_DISTRIBUTION=cyclic:block", NULL},
                  "worker0@h1 worker1@h2 worker2@h1 worker3@h1");
    expect_layout(
        (char *[]){PACKED(ROLE("ps", 2, 1, 0) "," ROLE("worker", 6, 1, 0)), "SLURM_JOB_ID=5",
                   "SLURM_JOB_NODELIST=h[1-2]", "SLURM_JOB_CPUS_PER_NODE=8(x2)",
                   "SLURM_DISTRIBUTION=plane", "SLURM_DIST_PLANESIZE=2", NULL},
        "ps0@h1 ps1@h2 worker0@h1 worker1@h1 worker2@h2 worker3@h2 worker4@h1 worker5@h2");
}

static void test_het(void **state)
{
    char *env[] = {"DT_PLAN={\"layout\":\"het\",\"dir\":\"/d\",\"roles\":[" ROLE(
                       "ps", 1, 1, 0) "," ROLE("worker", 3, 2, 1) "]}",
                   "SLURM_JOB_ID=5",
                   "SLURM_HET_SIZE=2",
                   "SLURM_JOB_NODELIST=h9",
                   "SLURM_JOB_NODELIST_HET_GROUP_0=h1",
                   "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_0=1",
                   "SLURM_JOB_NODELIST_HET_GROUP_1=h[2-3]",
                   "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1=4(x2)",
                   "SLURM_TASKS_PER_NODE_HET_GROUP_1=1,2",
                   NULL};
    (void)state;
    expect_layout(env, "ps0@h1 worker0@h2 worker1@h3 worker2@h3");
    env[3] = "SLURM_DISTRIBUTION_HET_GROUP_1=cyclic";
    env[8] = "SLURM_TASKS_PER_NODE_HET_GROUP_1=2,1";
    expect_layout(env, "ps0@h1 worker0@h2 worker1@h3 worker2@h2");
    env[4] = "X=";
    expect_layout(env,
                  "SLURM_JOB_NODELIST_HET_GROUP_<n> is not set: start this inside a Slurm job");
}

static void test_outside_a_trial(void **state)
{
    (void)state;
    expect_layout((char *[]){"SLURM_JOB_ID=5", "SLURM_JOB_NODELIST=h1", "SLURM_JOB_CPUS_PER_NODE=8",
                             "SLURM_TASKS_PER_NODE=2", NULL},
                  "worker0@h1 worker1@h1");
    expect_layout(
        (char *[]){"SLURM_JOB_ID=5", "SLURM_HET_SIZE=2", "SLURM_JOB_NODELIST_HET_GROUP_0=h1",
                   "SLURM_JOB_NODELIST_HET_GROUP_1=h2", "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_0=1",
                   "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1=1", "SLURM_TASKS_PER_NODE_HET_GROUP_0=1",
                   "SLURM_TASKS_PER_NODE_HET_GROUP_1=1", NULL},
        "ps0@h1 worker0@h2");
    expect_layout((char *[]){"X=1", NULL},
                  "SLURM_JOB_ID is not set: start this inside a Slurm job's batch script");
    expect_layout((char *[]){"SLURM_JOB_ID=5", "DT_PLAN={}", NULL},
                  "DT_PLAN: has no \"roles\"; start this in a trial's own batch script");
}

/* ---- a step's command ---- */

static char *step(char *const *env, size_t role, const char *const *pass)
{
    struct dt_launch_plan *p = dt_launch_plan_read(env, NULL);
    struct dt_shim s = {0};
    struct dt_strv out = DT_STRV_INIT;
    for (; pass && *pass; pass++)
        dt_strv_add(&s.pass, *pass);
    p->share_cores = false; /* depends on this host */
    p->unbind = p->together;
    dt_step_argv(p, role, "srun", &s, "/dt-launch", "{}", (char *[]){"prog", "a b", NULL}, &out);
    char *text = dt_strv_join(&out, "|");
    dt_strv_free(&out);
    dt_shim_free(&s);
    dt_launch_plan_free(p);
    return text;
}

static void test_step_argv(void **state)
{
    char *env[] = {PACKED(ROLE("ps", 1, 1, 0) "," ROLE("worker", 3, 2, 1)), "SLURM_JOB_ID=5",
                   "SLURM_JOB_NODELIST=h[1-2]", "SLURM_JOB_CPUS_PER_NODE=8(x2)", NULL};
    (void)state;
    char *ps = step(env, 0, NULL);
    assert_string_equal(ps,
                        "srun|--job-name=ps|--ntasks=1|--distribution=arbitrary|--overlap|--mem=0|"
                        "--cpu-bind=none|--gpus=0|--kill-on-bad-exit=1|--wait=0|--input=all|"
                        "/dt-launch|--task|ps|{}|prog|a b");
    char *worker = step(env, 1, (const char *[]){"--mpi=pmi2", NULL});
    assert_string_equal(worker, "srun|--job-name=worker|--ntasks=3|--distribution=arbitrary|"
                                "--overlap|--mem=0|--cpu-bind=none|--kill-on-bad-exit=1|--wait=0|"
                                "--mpi=pmi2|/dt-launch|--task|worker|{}|prog|a b");
    free(ps);
    free(worker);
    /* Slurm binds: each step must have its own */
    env[0] = "DT_PLAN={\"layout\":\"packed\",\"dir\":\"/d\",\"bind\":\"none\",\"roles\":[" ROLE(
        "ps", 1, 1, 0) "," ROLE("worker", 3, 2, 1) "]}";
    ps = step(env, 0, NULL);
    assert_string_equal(ps,
                        "srun|--job-name=ps|--ntasks=1|--cpus-per-task=1|"
                        "--distribution=arbitrary|--exact|--mem=0|--gpus=0|--kill-on-bad-exit=1|"
                        "--wait=0|--input=all|/dt-launch|--task|ps|{}|prog|a b");
    worker = step(env, 1, (const char *[]){"--mpi=pmi2", NULL});
    assert_string_equal(worker, "srun|--job-name=worker|--ntasks=3|--cpus-per-task=2|"
                                "--distribution=arbitrary|--exact|--mem=0|--kill-on-bad-exit=1|"
                                "--wait=0|--mpi=pmi2|/dt-launch|--task|worker|{}|prog|a b");
    free(ps);
    free(worker);
}

#define STEPS(roles)                                                                               \
    "DT_PLAN={\"layout\":\"steps\",\"dir\":\"/"                                                    \
    "d\",\"name\":\"t.dt-5-7-1\",\"gpus\":true,\"roles\":[" roles "]}"
#define SHARE(name, count, cpus, gpus, more)                                                       \
    "{\"name\":\"" name "\",\"count\":" #count ",\"cpus\":" #cpus ",\"gpus\":" #gpus "," more "}"

/* A share of a job: where the tuner says, and no more than was given. */
static void test_share(void **state)
{
    char *env[] = {STEPS(SHARE("ps", 1, 1, 0, "\"mem_per_cpu\":100,\"on\":{\"h2\":1}") "," SHARE(
                       "worker", 3, 2, 1, "\"mem_per_cpu\":50,\"on\":{\"h1\":2,\"h2\":1}")),
                   "SLURM_JOB_ID=5", "SLURM_JOB_NODELIST=h1,h2", "SLURM_JOB_CPUS_PER_NODE=4,3",
                   NULL};
    char *fewer[] = {STEPS(SHARE("worker", 3, 2, 1, "\"on\":{\"h1\":2,\"h9\":1}")),
                     "SLURM_JOB_ID=5", "SLURM_JOB_NODELIST=h1,h2", "SLURM_JOB_CPUS_PER_NODE=4,3",
                     NULL};
    (void)state;
    expect_layout(env, "ps0@h2 worker0@h1 worker1@h1 worker2@h2");
    expect_layout(fewer, "DT_PLAN: role worker has 3 tasks, but places for 2 on the trial's nodes");
    char *ps = step(env, 0, NULL);
    assert_string_equal(
        ps, "srun|--job-name=t.dt-5-7-1.ps|--ntasks=1|--cpus-per-task=1|"
            "--distribution=arbitrary|--exact|--mem-per-cpu=100M|--gpus=0|"
            "--kill-on-bad-exit=1|--wait=0|--input=all|/dt-launch|--task|ps|{}|prog|a b");
    char *worker = step(env, 1, NULL);
    assert_string_equal(worker, "srun|--job-name=t.dt-5-7-1.worker|--ntasks=3|--cpus-per-task=2|"
                                "--distribution=arbitrary|--exact|--mem-per-cpu=50M|"
                                "--gpus-per-task=1|--gpu-bind=none|--kill-on-bad-exit=1|--wait=0|"
                                "/dt-launch|--task|worker|{}|prog|a b");
    free(ps);
    free(worker);
}

/* mpiexec has one process on each node, which is to have all of the trial's share there. */
static void test_hydra_in_a_share(void **state)
{
    char *env[] = {STEPS(SHARE("worker", 3, 2, 1, "\"mem_per_cpu\":50,\"on\":{\"h1\":2,\"h2\":1}")),
                   "SLURM_JOB_ID=5", "SLURM_JOB_NODELIST=h1,h2", "SLURM_JOB_CPUS_PER_NODE=4,2",
                   NULL};
    struct dt_launch_plan *p = dt_launch_plan_read(env, NULL);
    struct dt_strv words = DT_STRV_INIT, out = DT_STRV_INIT;
    struct dt_shim s;
    (void)state;
    dt_strv_split(&words, "/x/srun --nodelist h1,h2 -N 2 -n 2 --input none /b/hydra_pmi_proxy -x",
                  " ");
    dt_shim_parse((int)words.n, words.v, NULL, 0, 2, &s);
    assert_true(s.hydra && s.kind == DT_SHIM_REAL);
    assert_string_equal(s.nodelist, "h1,h2");
    dt_hydra_argv(p, 3, "srun", &s, "/dt-launch", words.v + s.program, &out);
    char *text = dt_strv_join(&out, "|");
    assert_string_equal(text,
                        "srun|--job-name=t.dt-5-7-1.mpi|--ntasks=3|--cpus-per-task=2|"
                        "--distribution=arbitrary|--exact|--mem-per-cpu=50M|--gpus-per-task=1|"
                        "--gpu-bind=none|--kill-on-bad-exit=1|--wait=0|--input=none|/dt-launch|"
                        "--hydra|/b/hydra_pmi_proxy|-x");
    free(text);
    dt_strv_free(&out);
    dt_strv_free(&words);
    dt_shim_free(&s);
    dt_launch_plan_free(p);
}

static void test_masks(void **state)
{
    cpu_set_t set;
    (void)state;
    assert_int_equal(dt_masks_union("0x3,0x8", &set, sizeof(set)), 3);
    assert_true(CPU_ISSET(0, &set) && CPU_ISSET(1, &set) && CPU_ISSET(3, &set));
    assert_int_equal(dt_masks_union("0xF00000000000000000,0x1", &set, sizeof(set)), 5);
    assert_true(CPU_ISSET(68, &set) && CPU_ISSET(71, &set) && CPU_ISSET(0, &set));
    assert_int_equal(dt_masks_union("", &set, sizeof(set)), 0);
}

/* The GPU options of a role's srun, between the memory and what always follows. Caller frees. */
static char *gpu_options(char *const *env, size_t role)
{
    char *all = step(env, role, NULL), *from = strstr(all, "|--gpus"),
         *gres = strstr(all, "|--gres"), *end = strstr(all, "|--kill");
    from = from ? from : gres;
    char *text = from ? dt_xstrndup(from + 1, (size_t)(end - from - 1)) : dt_xstrdup("");
    free(all);
    return text;
}

/* Where tasks choose their GPUs themselves they must see all of the step; a user who does so, and
 * Slurm where the nodes' parts are not the same, choose for them. */
static void test_step_gpus(void **state)
{
#define JOB "SLURM_JOB_ID=5", "SLURM_JOB_NODELIST=h[1-2]", "SLURM_JOB_CPUS_PER_NODE=8(x2)", NULL
#define PLAN(layout, more, roles)                                                                  \
    "DT_PLAN={\"layout\":\"" layout "\",\"dir\":\"/d\",\"gpus\":true" more ",\"roles\":[" roles "]}"
#define OWN ",\"gpu_bind\":\"task\""
#define OFF ",\"bind\":\"none\""
#define UNEVEN "\"on\":{\"h1\":1,\"h2\":2}"
    static const struct {
        char *env[6];
        const char *options, *sees; /* of the last role */
    } cases[] = {
        {{PLAN("packed", OWN, ROLE("worker", 2, 1, 2)), JOB}, "", "own"},
        {{PLAN("packed", "", ROLE("worker", 2, 1, 2)), JOB}, "", "all"},
        {{PLAN("packed", OWN OFF, ROLE("worker", 2, 1, 2)), JOB}, "--gpus-per-task=2", "given"},
        {{PLAN("packed", OFF, ROLE("worker", 2, 1, 2)), JOB}, "", "all"},
        {{PLAN("packed", OWN, ROLE("ps", 2, 1, 1) "," ROLE("worker", 3, 1, 2)), JOB}, "", "own"},
        {{PLAN("packed", "", ROLE("ps", 2, 1, 1) "," ROLE("worker", 4, 1, 2)), JOB},
         "--gres=gpu:4",
         "all"},
        {{PLAN("packed", "", ROLE("ps", 2, 1, 1) "," ROLE("worker", 3, 1, 2)), JOB},
         "--gpus=6",
         "given"},
        {{PLAN("steps", OWN, SHARE("worker", 4, 1, 1, "\"on\":{\"h1\":2,\"h2\":2}")),
          "SLURM_DISTRIBUTION=cyclic", JOB},
         "--gres=gpu:2",
         "own"},
        {{PLAN("packed", OWN OFF, ROLE("ps", 2, 1, 1) "," ROLE("worker", 4, 1, 2)), JOB},
         "--gpus-per-task=2",
         "given"},
        {{PLAN("packed", OWN, ROLE("worker", 2, 1, 2) "," ROLE("ps", 2, 1, 0)), JOB},
         "--gpus=0",
         "given"},
        {{PLAN("steps", OWN, SHARE("worker", 2, 1, 1, "\"on\":{\"h2\":2}")), JOB},
         "--gres=gpu:2",
         "own"},
        {{PLAN("steps", "", SHARE("worker", 2, 1, 1, "\"on\":{\"h1\":1,\"h2\":1}")), JOB},
         "--gres=gpu:1",
         "all"},
        {{PLAN("steps", OWN, SHARE("worker", 3, 1, 1, UNEVEN)), JOB}, "--gpus-per-task=1", "given"},
        {{PLAN("steps", OWN ",\"node_gpus\":4", SHARE("worker", 3, 1, 1, UNEVEN)), JOB},
         "--gpus-per-task=1|--gpu-bind=mask_gpu:0xf",
         "own"},
        {{PLAN("steps", ",\"node_gpus\":8", SHARE("worker", 3, 1, 1, UNEVEN)), JOB},
         "--gpus-per-task=1|--gpu-bind=mask_gpu:0xff",
         "all"},
        {{PLAN("steps", OFF ",\"node_gpus\":8", SHARE("worker", 3, 1, 1, UNEVEN)), JOB},
         "--gpus-per-task=1|--gpu-bind=mask_gpu:0xff",
         "all"},
        {{PLAN("steps", OFF, SHARE("worker", 3, 1, 1, UNEVEN)), JOB},
         "--gpus-per-task=1|--gpu-bind=none",
         "given"},
        {{PLAN("steps", OWN OFF ",\"node_gpus\":8", SHARE("worker", 3, 1, 1, UNEVEN)), JOB},
         "--gpus-per-task=1",
         "given"},
        {{PLAN("steps", OFF, SHARE("worker", 2, 1, 1, "\"on\":{\"h2\":2}")), JOB},
         "--gres=gpu:2",
         "all"},
        {{PLAN("steps", "", SHARE("ps", 1, 1, 0, "\"on\":{\"h2\":1}")), JOB}, "--gpus=0", "given"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_launch_plan *p = dt_launch_plan_read(cases[i].env, NULL);
        assert_non_null(p);
        char *options = gpu_options(cases[i].env, p->n_roles - 1);
        assert_string_equal(options, cases[i].options);
        assert_string_equal(dt_step_gpus(p, p->n_roles - 1), cases[i].sees);
        struct json_object *o = dt_launch_describe(p, 1), *roles = dt_json_get(o, "roles");
        struct json_object *last = dt_json_at(roles, p->n_roles - 1);
        assert_int_equal(dt_json_get(o, "bind") != NULL, p->bind);
        assert_string_equal(dt_json_str(last, "sees", "none"), p->bind ? cases[i].sees : "none");
        assert_int_equal(dt_json_int(last, "cpus", 0), p->bind ? 1 : 0);
        json_object_put(o);
        free(options);
        dt_launch_plan_free(p);
    }
}

/* ---- binding ---- */

static void test_bind_is_given(void **state)
{
    char *plain[] = {"SLURM_JOB_ID=5", NULL}, *hint[] = {"SLURM_HINT=nomultithread", NULL};
    struct dt_strv options = DT_STRV_INIT;
    (void)state;
    dt_strv_add(&options, "--mpi=pmi2");
    assert_false(dt_bind_is_given(&options, plain));
    assert_true(dt_bind_is_given(&options, hint));
    dt_strv_add(&options, "--cpu-bind=cores");
    assert_true(dt_bind_is_given(&options, plain));
    dt_strv_free(&options);
}

/* What the step may have: the masks of all its tasks, or what a cgroup leaves; nothing where that
 * is every CPU, but for a step that is the whole job's, which has them all. */
static void test_bind_allowed(void **state)
{
#define MASKS "SLURM_CPU_BIND_TYPE=mask_cpu:"
#define LIST "SLURM_CPU_BIND_LIST="
    static const struct {
        char *type, *list;
        const char *affinity, *cpus, *want;
        bool whole;
    } cases[] = {
        {MASKS, LIST "0x3,0x30", "0-1", "2", "0-1,4-5", false},
        {MASKS, LIST "0xff", "0-7", "8", "0-7", false},
        {MASKS, LIST "0x10000000000000000", "64", "1", "64", false},
        {MASKS, LIST "0xf", "0-3", "4", "0-3", true},
        {"SLURM_CPU_BIND_TYPE=rank", "A=", "0", "1", "none", false},
        {"SLURM_CPU_BIND_TYPE=none", LIST "", "0-3", "4", "0-3", false},
        {"A=", "B=", "2-5", "4", "2-5", false},
        {"A=", "B=", "0-7", "8", "none", false},
        {"SLURM_CPU_BIND_TYPE=none", LIST "", "0-7", "8", "0-7", true},
        {"SLURM_CPU_BIND_TYPE=none", LIST "", "0-7", "7", "none", true},
        {"SLURM_CPU_BIND_TYPE=none", LIST "", "0-3", "7", "0-3", true},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *cpus = dt_xasprintf("SLURM_CPUS_ON_NODE=%s", cases[i].cpus);
        char *env[] = {cases[i].type, cases[i].list, cpus, NULL};
        hwloc_bitmap_t affinity = hwloc_bitmap_alloc();
        hwloc_bitmap_list_sscanf(affinity, cases[i].affinity);
        hwloc_bitmap_t allowed = dt_bind_allowed(env, affinity, 8, cases[i].whole);
        char *text = allowed ? dt_pus_list(allowed) : dt_xstrdup("none");
        assert_string_equal(text, cases[i].want);
        free(text);
        free(cpus);
        hwloc_bitmap_free(allowed);
        hwloc_bitmap_free(affinity);
    }
}

/* "CPUs/positions of GPUs" of every task of the roles on a node of two pairs of GPUs, 0-1 and 2-3,
 * next to the CPUs below and from 80; or the error. */
static char *binding(const struct dt_bind_role roles[2], const char *visible, const char *gpus,
                     const char *allowed)
{
    const char *src = getenv("srcdir");
    char *path = dt_xasprintf("%s/tests/data/hwloc/power8gpudistances.xml", src ? src : ".");
    struct dt_topology *t = dt_topology_read(path, NULL);
    struct dt_strv words = DT_STRV_INIT;
    struct dt_error e = DT_ERROR_INIT;
    struct dt_bind_role both[2] = {roles[0], roles[1]};
    struct dt_bind_step s = {.roles = both, .nroles = roles[1].name ? 2 : 1, .gpus = gpus};
    if (allowed) {
        s.allowed = hwloc_bitmap_alloc();
        hwloc_bitmap_list_sscanf(s.allowed, allowed);
    }
    for (; s.role < s.nroles; s.role++)
        for (s.local = 0; s.local < roles[s.role].tasks; s.local++) {
            struct dt_binding b;
            struct dt_buf text = DT_BUF_INIT;
            s.visible = roles[s.role].gpus ? visible : NULL; /* as Slurm has it */
            int rc = dt_bind_plan(t, &s, &b, &e);
            char *pus = b.pus ? dt_pus_list(b.pus) : dt_xstrdup(rc < 0 ? "?" : "");
            dt_buf_addf(&text, "%s/", pus);
            for (size_t i = 0; i < b.gpus; i++)
                dt_buf_addf(&text, "%s%zu", i ? "," : "", b.gpu[i]);
            dt_strv_take(&words, dt_buf_take(&text));
            free(pus);
            dt_binding_free(&b);
        }
    if (e.text)
        dt_strv_add(&words, e.text);
    char *text = dt_strv_join(&words, " ");
    dt_strv_free(&words);
    dt_error_clear(&e);
    hwloc_bitmap_free(s.allowed);
    dt_topology_free(t);
    free(path);
    return text;
}

static void test_bind_plan(void **state)
{
    static const struct {
        struct dt_bind_role roles[2];
        const char *visible, *gpus, *allowed, *want;
    } cases[] = {
        {{{.name = "worker", .cpus = 4, .gpus = 1, .own_gpus = true, .tasks = 2}},
         "0,3",
         "0,3",
         "0-1,8-9,80-81,88-89",
         "0-1,8-9/0 80-81,88-89/1"},
        /* a device cgroup: tasks count from 0, and have the node's GPUs 2 and 1 */
        {{{.name = "worker", .cpus = 2, .gpus = 1, .own_gpus = true, .tasks = 2}},
         "0,1",
         "1,2",
         "0-1,80-81",
         "0-1/0 80-81/1"},
        /* pairs that belong together */
        {{{.name = "worker", .cpus = 2, .gpus = 2, .own_gpus = true, .tasks = 2}},
         "0,2,1,3",
         "0,2,1,3",
         "0-1,80-81",
         "0-1/0,2 80-81/1,3"},
        /* not confined: no CPUs, but GPUs */
        {{{.name = "worker", .cpus = 2, .gpus = 2, .own_gpus = true, .tasks = 1}},
         "1,2,3",
         "1,2,3",
         NULL,
         "/1,2"},
        /* all of them see all, and each uses those of its local rank */
        {{{.name = "worker", .cpus = 2, .gpus = 1, .tasks = 2}},
         "2,0",
         "2,0",
         "0-1,80-81",
         "80-81/ 0-1/"},
        /* more tasks than GPUs, which they share */
        {{{.name = "worker", .cpus = 2, .gpus = 1, .tasks = 3}},
         "2",
         "2",
         "0-1,80-81,88-89",
         "80-81/ 88-89/ 0-1/"},
        /* names that are no numbers: in order, and CPUs anywhere */
        {{{.name = "worker", .cpus = 2, .gpus = 1, .own_gpus = true, .tasks = 2}},
         "MIG-a,MIG-b",
         NULL,
         "0-1,80-81",
         "0-1/0 80-81/1"},
        {{{.name = "worker", .cpus = 2, .gpus = 1, .own_gpus = true, .tasks = 2}},
         "8,9",
         "8,9",
         "0-1,80-81",
         "0-1/0 80-81/1"},
        /* fewer than Slurm should have given: as they are */
        {{{.name = "worker", .cpus = 2, .gpus = 2, .own_gpus = true, .tasks = 2}},
         "0,1,2",
         "0,1,2",
         "0-1,80-81",
         "0-1/ 80-81/"},
        /* no device files: Slurm does not say which */
        {{{.name = "worker", .cpus = 2, .gpus = 1, .own_gpus = true, .tasks = 2}},
         NULL,
         NULL,
         "0-1,80-81",
         "0-1/ 80-81/"},
        {{{.name = "ps", .server = true, .cpus = 1, .tasks = 2}},
         NULL,
         NULL,
         "0-1,80-81",
         "0-1/ 80-81/"},
        /* two threads of a core for two tasks */
        {{{.name = "worker", .cpus = 1, .tasks = 2}}, NULL, NULL, "80-81", "80/ 81/"},
        {{{.name = "worker", .cpus = 4, .gpus = 1, .own_gpus = true, .tasks = 1}},
         "1,0",
         "1,0",
         "0-1",
         "?/1 worker, task 1 of 1 on the node, needs 4 CPUs, and 2 are free of 2"},
        /* roles that meet: the server has what the workers leave, and no GPU */
        {{{.name = "ps", .server = true, .cpus = 2, .tasks = 1},
          {.name = "worker", .cpus = 2, .gpus = 1, .own_gpus = true, .tasks = 2}},
         "0,3",
         "0,3",
         "0-1,80-81,88-89",
         "88-89/ 0-1/0 80-81/1"},
        {{{.name = "ps", .cpus = 2, .gpus = 1, .own_gpus = true, .tasks = 1},
          {.name = "worker", .cpus = 2, .gpus = 1, .own_gpus = true, .tasks = 2}},
         "0,1,2",
         "0,1,2",
         "0-1,8-9,80-81",
         "80-81/2 0-1/0 8-9/1"},
        {{{.name = "ps", .cpus = 1, .gpus = 1, .own_gpus = true, .tasks = 2},
          {.name = "worker", .cpus = 1, .gpus = 2, .own_gpus = true, .tasks = 1}},
         "MIG-a,MIG-b,MIG-c,MIG-d",
         NULL,
         "0,8,80",
         "0/0 8/1 80/2,3"},
        /* not on this node */
        {{{.name = "ps", .server = true, .cpus = 1}, {.name = "worker", .cpus = 2, .tasks = 2}},
         NULL,
         NULL,
         "0-1,80-81",
         "0-1/ 80-81/"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = binding(cases[i].roles, cases[i].visible, cases[i].gpus, cases[i].allowed);
        assert_string_equal(text, cases[i].want);
        free(text);
    }
}

static void test_step_environ(void **state)
{
    char *env[] = {"SLURM_NTASKS=4",
                   "SLURM_GPUS_PER_TASK=1",
                   "SLURM_MEM_PER_CPU=5",
                   "SLURM_JOB_ID=5",
                   "SLURM_CPUS_PER_TASK=2",
                   "SRUN_CPUS_PER_TASK=2",
                   "PATH=/bin",
                   "DT_PLAN={}",
                   "DT_PLAN_JOB=5",
                   "SLURM_EXTERNAL_LAUNCHER=1",
                   "DT_TRIAL=7",
                   NULL};
    struct dt_strv out = DT_STRV_INIT;
    (void)state;
    dt_step_environ(env, &out);
    char *text = dt_strv_join(&out, " ");
    assert_string_equal(text, "SLURM_JOB_ID=5 PATH=/bin DT_TRIAL=7");
    free(text);
    dt_strv_free(&out);
}

/* ---- a task's environment ---- */

static const char launch_text[] =
    "{\"number\":1,\"dir\":\"/d\",\"trial\":3,\"run\":2,"
    "\"params\":{\"lr\":0.0001,\"opt\":\"a b\",\"big\":1e-7,\"n\":32,\"on\":false,\"x.y\":1},"
    "\"roles\":[{\"name\":\"ps\",\"gpus\":0,\"hosts\":[\"a:1\",\"b:2\"]},"
    "{\"name\":\"worker\",\"gpus\":1,\"hosts\":[\"a:3\",\"b:4\",\"b:5\"]}]}";

static void test_task_env(void **state)
{
    static const char *const expected[][2] = {
        {"DT_ROLE", "worker"},
        {"DT_RANK", "3"},
        {"DT_ROLE_RANK", "1"},
        {"DT_PS_HOSTS", "a:1,b:2"},
        {"DT_WORKER_HOSTS", "a:3,b:4,b:5"},
        {"DT_PARAM_lr", "0.0001"},
        {"DT_PARAM_opt", "a b"},
        {"DT_PARAM_big", "1e-07"},
        {"DT_PARAM_n", "32"},
        {"DT_PARAM_on", "false"},
        {"DT_PARAM_x_y", "1"},
        {"DT_TRIAL", "3"},
        {"DT_TRIAL_DIR", "/d"},
        {"DT_CHECKPOINT_DIR", "/d/checkpoint"},
        {"DT_METRICS_FILE", "/d/metrics.jsonl"},
        {"DT_RESTARTS", "3"},
        {"MASTER_ADDR", "a"},
        {"MASTER_PORT", "1"},
        {"RANK", "3"},
        {"WORLD_SIZE", "5"},
        {"LOCAL_RANK", "0"},
        {"LOCAL_WORLD_SIZE", "2"},
        {"PET_NNODES", "3"},
        {"PET_NODE_RANK", "1"},
        {"PET_RDZV_BACKEND", "c10d"},
        {"PET_RDZV_ENDPOINT", "a:3"},
        {"DMLC_ROLE", "worker"},
        {"DMLC_PS_ROOT_URI", "a"},
        {"DMLC_PS_ROOT_PORT", "1"},
        {"DMLC_NUM_SERVER", "2"},
        {"DMLC_NUM_WORKER", "3"},
        {"DMLC_WORKER_ID", "1"},
        {"CUDA_VISIBLE_DEVICES", "2"},
        {"TF_CONFIG",
         "{\"cluster\":{\"ps\":[\"a:1\",\"b:2\"],\"worker\":[\"a:3\",\"b:4\",\"b:5\"]},"
         "\"task\":{\"type\":\"worker\",\"index\":1}}"},
    };
    struct json_object *launch = dt_json_parse(launch_text, "launch", NULL);
    struct dt_strv env = DT_STRV_INIT;
    struct dt_error e = DT_ERROR_INIT;
    (void)state;
    dt_strv_add(&env, "CUDA_VISIBLE_DEVICES=2");
    dt_strv_add(&env, "RANK=17");
    assert_int_equal(dt_task_env(launch, &(struct dt_task_place){"worker", 1, 0, 2}, 2, &env, &e),
                     0);
    for (size_t i = 0; i < COUNT(expected); i++) {
        const char *value = dt_launch_getenv(env.v, expected[i][0]);
        if (!value)
            fail_msg("%s is not set", expected[i][0]);
        else
            assert_string_equal(value, expected[i][1]);
    }
    assert_int_equal(dt_task_env(launch, &(struct dt_task_place){"ps", 1, 0, 1}, 0, &env, &e), 0);
    assert_null(dt_launch_getenv(env.v, "CUDA_VISIBLE_DEVICES"));
    assert_string_equal(dt_launch_getenv(env.v, "DMLC_ROLE"), "server");
    assert_null(dt_launch_getenv(env.v, "DMLC_WORKER_ID"));
    assert_null(dt_launch_getenv(env.v, "PET_NNODES"));
    assert_int_equal(dt_task_env(launch, &(struct dt_task_place){"ps", 2, 0, 1}, 0, &env, &e), -1);
    assert_int_equal(dt_task_env(launch, &(struct dt_task_place){"chief", 0, 0, 1}, 0, &env, &e),
                     -1);
    dt_error_clear(&e);
    dt_strv_free(&env);
    json_object_put(launch);
}

/* The environment of one task of env's trial with that coordinator, one variable. */
static void expect_task(const char *coordinator, const char *role, const char *name,
                        const char *expected)
{
    char *plan = dt_xasprintf("DT_PLAN={\"dir\":\"/d\",\"coordinator\":\"%s\",\"roles\":[" ROLE(
                                  "ps", 1, 1, 0) "," ROLE("worker", 2, 2, 1) "]}",
                              coordinator);
    char *env[] = {plan, "SLURM_JOB_ID=5", "SLURM_JOB_NODELIST=h[1-2]",
                   "SLURM_JOB_CPUS_PER_NODE=8(x2)", NULL};
    struct dt_launch_plan *p = dt_launch_plan_read(env, NULL);
    struct dt_strv out = DT_STRV_INIT;
    assert_non_null(p);
    assert_int_equal(p->n_tasks, 3);
    dt_launch_add_coordinator(p);
    assert_int_equal(p->n_tasks, 4);
    assert_int_equal(p->tasks[3].node, p->tasks[0].node);
    bool chief = strcmp(coordinator, "chief") == 0;
    assert_int_equal(p->roles[1].background, chief);
    assert_int_equal(p->roles[2].background, !chief);
    for (size_t i = 0; i < p->n_tasks; i++)
        p->tasks[i].port = 10 + (int)i;
    p->root = chief ? NULL : dt_xstrdup("10.0.0.1");
    struct json_object *launch = dt_launch_describe(p, 1);
    dt_strv_add(&out, "RANK=7");
    dt_strv_add(&out, "TF_CONFIG=x");
    assert_int_equal(dt_task_env(launch, &(struct dt_task_place){role, 0, 0, 1}, 0, &out, NULL), 0);
    const char *value = dt_launch_getenv(out.v, name);
    assert_string_equal(value ? value : "(none)", expected);
    json_object_put(launch);
    dt_strv_free(&out);
    dt_launch_plan_free(p);
    free(plan);
}

static void test_coordinator(void **state)
{
    (void)state;
    expect_task(
        "chief", "chief", "TF_CONFIG",
        "{\"cluster\":{\"ps\":[\"h1:10\"],\"worker\":[\"h1:11\",\"h2:12\"],\"chief\":[\"h1:13\"]},"
        "\"task\":{\"type\":\"chief\",\"index\":0}}");
    expect_task("chief", "chief", "RANK", "(none)");
    expect_task("chief", "worker", "WORLD_SIZE", "3");
    expect_task("scheduler", "scheduler", "TF_CONFIG", "(none)");
    expect_task("scheduler", "scheduler", "DMLC_ROLE", "scheduler");
    expect_task("scheduler", "worker", "DMLC_PS_ROOT_URI", "10.0.0.1");
    expect_task("scheduler", "ps", "DMLC_PS_ROOT_PORT", "13");
}

/* Of this host not the loopback address, if it has another. */
static void test_numeric_address(void **state)
{
    (void)state;
    char *here = dt_numeric_address("localhost"), *nowhere = dt_numeric_address("no such host");
    assert_non_null(here);
    assert_int_equal(strspn(here, "0123456789."), strlen(here));
    assert_null(nowhere);
    free(here);
}

/* ---- the command line ---- */

struct line {
    const char *words; /* separated by blanks, without srun itself */
    enum dt_shim_kind kind;
    const char *pass, *dropped, *program;
};

static void test_shim(void **state)
{
    /* a trial of 5 tasks, submitted as 4, on 2 nodes */
    static const struct line lines[] = {
        {"prog", DT_SHIM_ROLES, "", "", "prog"},
        {"prog -n 3", DT_SHIM_ROLES, "", "", "prog"},
        {"-- prog", DT_SHIM_ROLES, "", "", "prog"},
        {"-n5 prog", DT_SHIM_ROLES, "", "", "prog"},
        {"-n 4 prog", DT_SHIM_ROLES, "", "", "prog"},
        {"--ntasks=4 prog", DT_SHIM_ROLES, "", "", "prog"},
        {"--ntasks 4 prog", DT_SHIM_ROLES, "", "", "prog"},
        {"--nta 4 prog", DT_SHIM_REAL, "--nta", "", "4"},
        {"-N2 prog", DT_SHIM_ROLES, "", "", "prog"},
        {"-N4 prog", DT_SHIM_ROLES, "", "", "prog"},
        {"-N2 -n3 prog", DT_SHIM_REAL, "", "", "prog"},
        {"-N1-2 prog", DT_SHIM_REAL, "", "", "prog"},
        {"-N2 --ntasks-per-node=2 prog", DT_SHIM_ROLES, "", "", "prog"},
        {"-N2 --ntasks-per-node=1 prog", DT_SHIM_REAL, "", "", "prog"},
        {"--ntasks-per-node=1 prog", DT_SHIM_ROLES, "", "--ntasks-per-node", "prog"},
        {"-n1 hostname", DT_SHIM_REAL, "", "", "hostname"},
        {"-N2 -n4 --input none /usr/bin/hydra_pmi_proxy", DT_SHIM_REAL, "--input=none", "",
         "/usr/bin/hydra_pmi_proxy"},
        {"-lun4 prog", DT_SHIM_ROLES, "--label --unbuffered", "", "prog"},
        {"-lu -c 8 --gres gpu:1 --mem=4G --mpi pmi2 prog x", DT_SHIM_ROLES,
         "--label --unbuffered --mpi=pmi2", "--cpus-per-task --gres --mem", "prog"},
        {"--lab prog", DT_SHIM_ROLES, "--label", "", "prog"},
        {"--exclusive prog", DT_SHIM_ROLES, "", "--exclusive", "prog"},
        {"--exclusive=user prog", DT_SHIM_ROLES, "", "--exclusive", "prog"},
        {"-K prog", DT_SHIM_ROLES, "--kill-on-bad-exit", "", "prog"},
        {"-K0 prog", DT_SHIM_ROLES, "--kill-on-bad-exit=0", "", "prog"},
        {"--container-image img prog", DT_SHIM_ROLES, "--container-image=img", "", "prog"},
        {"--other-plugin=x prog", DT_SHIM_ROLES, "--other-plugin=x", "", "prog"},
        {"--het-group=1 prog", DT_SHIM_REAL, "", "", "prog"},
        {"--jobid 7 prog", DT_SHIM_REAL, "", "", "prog"},
        {"--pty bash", DT_SHIM_REAL, "", "", "bash"},
        {"-w h1 prog", DT_SHIM_REAL, "", "", "prog"},
        {"a : b", DT_SHIM_REAL, "", "", "a"},
        {"--version", DT_SHIM_REAL, "", "", NULL},
        {"-n 4", DT_SHIM_REAL, "", "", NULL},
        {"-q", DT_SHIM_REAL, "--qos", "", NULL},
        {"-9 prog", DT_SHIM_REAL, "", "", "prog"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(lines); i++) {
        struct dt_strv words = DT_STRV_INIT;
        struct dt_shim s;
        dt_strv_add(&words, "/x/srun");
        dt_strv_split(&words, lines[i].words, " ");
        dt_shim_parse((int)words.n, words.v, (int[]){5, 4}, 2, 2, &s);
        char *pass = dt_strv_join(&s.pass, " "), *dropped = dt_strv_join(&s.dropped, " ");
        if (s.kind != lines[i].kind || strcmp(pass, lines[i].pass) ||
            strcmp(dropped, lines[i].dropped))
            fail_msg("\"%s\": kind %d, pass \"%s\", dropped \"%s\"", lines[i].words, s.kind, pass,
                     dropped);
        if (lines[i].program)
            assert_string_equal(words.v[s.program], lines[i].program);
        else
            assert_int_equal(s.program, words.n);
        free(pass);
        free(dropped);
        dt_shim_free(&s);
        dt_strv_free(&words);
    }
}

static void test_colon_is_dt_launchs_own_argument(void **state)
{
    struct dt_shim s;
    (void)state;
    dt_shim_parse(4, (char *[]){"dt-launch", "a", ":", "b", NULL}, NULL, 0, 1, &s);
    assert_int_equal(s.kind, DT_SHIM_ROLES);
    dt_shim_free(&s);
}

/* ---- ports ---- */

static void test_ports(void **state)
{
    int seen[65536] = {0}, ports[8];
    (void)state;
    for (int node = 0; node < 4; node++) {
        assert_int_equal(dt_ports_find("32768\t60999\n", 12345, node, 4, 8, ports, NULL), 0);
        for (int i = 0; i < 8; i++) {
            assert_true(ports[i] >= 1025 && ports[i] <= 32767);
            assert_int_equal(seen[ports[i]]++, 0);
        }
    }
    assert_int_equal(dt_ports_find("1024\t60999\n", 1, 0, 1, 1, ports, NULL), 0);
    assert_true(ports[0] >= 61000 && ports[0] <= 65535);
    assert_int_equal(dt_ports_find("1024\t65535\n", 1, 0, 1, 1, ports, NULL), 0);
}

static void test_taken_port_is_passed_over(void **state)
{
    int first, again;
    struct sockaddr_in a = {.sin_family = AF_INET};
    (void)state;
    assert_int_equal(dt_ports_find("32768 60999", 99, 0, 1, 1, &first, NULL), 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    a.sin_port = htons((uint16_t)first);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(dt_ports_find("32768 60999", 99, 0, 1, 1, &again, NULL), 0);
    assert_int_not_equal(first, again);
    close(fd);
}

/* ---- failures ---- */

static void test_first_failure(void **state)
{
    char dir[] = "/tmp/test_launch.XXXXXX";
    char *tasks, *a, *b, *c;
    static const char early[] =
        "{\"launch\":2,\"time\":1.0,\"rank\":1,\"exit_code\":139,\"signal\":11}";
    static const char late[] =
        "{\"launch\":1,\"time\":2.0,\"rank\":2,\"exit_code\":7,\"signal\":0}";
    (void)state;
    assert_non_null(mkdtemp(dir));
    tasks = dt_xasprintf("%s/tasks", dir);
    a = dt_xasprintf("%s/worker-1.json", tasks);
    b = dt_xasprintf("%s/worker-2.json", tasks);
    c = dt_xasprintf("%s/broken.json", tasks);
    assert_null(dt_first_failure(dir, 0));
    assert_int_equal(mkdir(tasks, 0700), 0);
    assert_int_equal(dt_write_file(a, early, strlen(early), 0600, NULL), 0);
    assert_int_equal(dt_write_file(b, late, strlen(late), 0600, NULL), 0);
    assert_int_equal(dt_write_file(c, "{", 1, 0600, NULL), 0);
    struct json_object *any = dt_first_failure(dir, 0), *of_one = dt_first_failure(dir, 1);
    assert_int_equal(dt_json_int(any, "rank", 0), 1);
    assert_int_equal(dt_failure_code(any), 139);
    assert_int_equal(dt_json_int(of_one, "rank", 0), 2);
    assert_int_equal(dt_failure_code(of_one), 7);
    assert_null(dt_first_failure(dir, 3));
    json_object_put(any);
    json_object_put(of_one);
    unlink(a);
    unlink(b);
    unlink(c);
    rmdir(tasks);
    rmdir(dir);
    free(tasks);
    free(a);
    free(b);
    free(c);
}

/* ---- tasks and the batch script's wrapper ---- */

static bool told_late;  /* who waits for its end alone, gets it */
static bool told_after; /* who notes the end of its program, is told just then */

double __real_dt_now(void);
double __wrap_dt_now(void);
double __wrap_dt_now(void)
{
    if (told_after)
        raise(SIGTERM);
    return __real_dt_now();
}

int __real_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout);
int __wrap_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
    if (told_late && !sigismember(set, SIGCHLD))
        raise(SIGTERM);
    return __real_sigtimedwait(set, info, timeout);
}

/* Runs a script as a trial's; says what its record has of "told". */
static bool is_told(const char *script)
{
    static const char *const run_argv[] = {"/bin/true", NULL};
    char dir[] = "/tmp/test_launch.XXXXXX";
    struct dt_proc_result r;
    assert_non_null(mkdtemp(dir));
    char *json = dt_xasprintf("{\"dir\":\"%s\"}", dir), *path = dt_xasprintf("%s/job.sh", dir);
    char *text = dt_carrier_build("", run_argv, json, script), *end = dt_xasprintf("%s/end.json", dir);
    assert_int_equal(dt_write_file(path, text, strlen(text), 0700, NULL), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(dt_batch_main(1, (char *[]){path, NULL}));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    char *record = dt_read_file(end, 4096, NULL, NULL);
    struct json_object *o = record ? dt_json_parse(record, "end", NULL) : NULL;
    assert_int_equal(dt_json_int(o, "exit_code", -1), 0);
    bool told = dt_json_bool(o, "told", false);
    json_object_put(o);
    assert_int_equal(dt_proc_run((char *[]){"rm", "-rf", dir, NULL}, NULL, 0, &r, NULL), 0);
    dt_proc_result_free(&r);
    free(record);
    free(end);
    free(text);
    free(path);
    free(json);
    return told;
}

/* Runs a task that ends with 3 and is told to end right after, where another has failed; whether it
 * is on record as failed. */
static bool fails(const char *keep_going)
{
    static const char other[] = "{\"launch\":1,\"time\":1.0,\"rank\":0,\"exit_code\":7}";
    char dir[] = "/tmp/test_launch.XXXXXX";
    struct dt_proc_result r;
    assert_non_null(mkdtemp(dir));
    char *first = dt_xasprintf("%s/tasks/worker-0.json", dir),
         *own = dt_xasprintf("%s/tasks/worker-1.json", dir), *tasks = dt_xasprintf("%s/tasks", dir);
    char *launch = dt_xasprintf("{\"number\":1,\"dir\":\"%s\",%s\"roles\":[{\"name\":\"worker\","
                                "\"hosts\":[\"h1:1\",\"h1:2\"]}]}",
                                dir, keep_going);
    assert_int_equal(mkdir(tasks, 0700), 0);
    assert_int_equal(dt_write_file(first, other, strlen(other), 0600, NULL), 0);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("SLURM_PROCID", "1", 1);
        told_after = true;
        int code = dt_task_main(5, (char *[]){"worker", launch, "sh", "-c", "exit 3", NULL});
        execl("/bin/sh", "sh", "-c", code == 3 ? "exit 3" : "exit 1", NULL); /* frees all that is left */
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 3);
    bool failed = access(own, F_OK) == 0;
    assert_int_equal(dt_proc_run((char *[]){"rm", "-rf", dir, NULL}, NULL, 0, &r, NULL), 0);
    dt_proc_result_free(&r);
    free(first);
    free(own);
    free(tasks);
    free(launch);
    return failed;
}

/* It was first where Slurm tells it for the other's sake, and obeyed where it tells all. */
static void test_task_told_late(void **state)
{
    (void)state;
    assert_true(fails(""));
    assert_false(fails("\"keep_going\":true,"));
}

static void test_script_told_first(void **state)
{
    (void)state;
    assert_false(is_told("#!/bin/sh\nexit 0\n"));
    told_late = true;
    bool told = is_told("#!/bin/sh\nexit 0\n");
    told_late = false;
    assert_true(told);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostlist),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_packed_spreads),
        cmocka_unit_test(test_slurms_layout_kept),
        cmocka_unit_test(test_het),
        cmocka_unit_test(test_outside_a_trial),
        cmocka_unit_test(test_step_argv),
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_step_gpus),
        cmocka_unit_test(test_bind_is_given),
        cmocka_unit_test(test_bind_allowed),
        cmocka_unit_test(test_bind_plan),
        cmocka_unit_test(test_step_environ),
        cmocka_unit_test(test_task_env),
        cmocka_unit_test(test_hydra_in_a_share),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_coordinator),
        cmocka_unit_test(test_numeric_address),
        cmocka_unit_test(test_shim),
        cmocka_unit_test(test_colon_is_dt_launchs_own_argument),
        cmocka_unit_test(test_ports),
        cmocka_unit_test(test_taken_port_is_passed_over),
        cmocka_unit_test(test_first_failure),
        cmocka_unit_test(test_task_told_late),
        cmocka_unit_test(test_script_told_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
