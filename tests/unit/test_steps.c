/* Layout steps without Slurm: who gets which part of an allocation, what fits at all, and what a
 * trial finds in its environment. */
#include "backend/steps.c"
#include "expand/expand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static struct dt_books books_of(const struct dt_room *rooms, size_t n, size_t threads)
{
    struct dt_books b = {0};
    for (size_t i = 0; i < n; i++) {
        char *name = dt_xasprintf("h%zu", i + 1);
        dt_books_add(&b, name, &rooms[i], threads);
        free(name);
    }
    return b;
}

/* "h1:1+2 h3:0+1": tasks of each role by node; "none". Caller frees. */
static char *text_of(const struct dt_books *b, const struct dt_placement *p)
{
    struct dt_strv words = DT_STRV_INIT;
    for (size_t i = 0; i < p->n; i++)
        dt_strv_addf(&words, "%s:%zu+%zu", b->v[p->v[i].node].name, p->v[i].tasks[0],
                     p->v[i].tasks[1]);
    char *text = words.n ? dt_strv_join(&words, " ") : dt_xstrdup("none");
    dt_strv_free(&words);
    return text;
}

static void expect_place(struct dt_books *b, struct dt_need ps, struct dt_need workers,
                         size_t nodes, const char *expected)
{
    struct dt_placement p = {0};
    dt_placement_find(b, (struct dt_need[]){ps, workers}, 2, nodes, &p);
    char *text = text_of(b, &p);
    assert_string_equal(text, expected);
    dt_placement_take(b, &p);
    dt_placement_free(&p);
    free(text);
}

static void the_tightest_node_that_holds_all_is_taken(void **state)
{
    struct dt_books b = books_of((struct dt_room[]){{8, 0, 0}, {3, 0, 0}, {4, 0, 0}}, 3, 1);
    (void)state;
    expect_place(&b, (struct dt_need){1, 1, 0, 0}, (struct dt_need){2, 1, 0, 0}, 0, "h2:1+2");
    expect_place(&b, (struct dt_need){1, 1, 0, 0}, (struct dt_need){2, 1, 0, 0}, 0, "h3:1+2");
    expect_place(&b, (struct dt_need){0, 1, 0, 0}, (struct dt_need){1, 1, 0, 0}, 0, "h3:0+1");
    expect_place(&b, (struct dt_need){0, 1, 0, 0}, (struct dt_need){8, 1, 0, 0}, 0, "h1:0+8");
    expect_place(&b, (struct dt_need){0, 1, 0, 0}, (struct dt_need){1, 1, 0, 0}, 0, "none");
    dt_books_free(&b);
}

static void what_one_node_cannot_hold_goes_to_few(void **state)
{
    struct dt_room rooms[] = {{4, 0, 0}, {4, 0, 0}, {4, 0, 0}};
    struct dt_books b = books_of(rooms, 3, 1);
    (void)state;
    /* the large tasks first, and the servers to where they have begun */
    expect_place(&b, (struct dt_need){2, 1, 0, 0}, (struct dt_need){2, 3, 0, 0}, 0,
                 "h1:1+1 h2:1+1");
    dt_books_free(&b);
    b = books_of(rooms, 3, 1);
    expect_place(&b, (struct dt_need){1, 1, 0, 0}, (struct dt_need){6, 1, 0, 0}, 0,
                 "h1:1+3 h2:0+3");
    expect_place(&b, (struct dt_need){1, 1, 0, 0}, (struct dt_need){5, 1, 0, 0}, 0, "none");
    dt_books_free(&b);
    b = books_of(rooms, 3, 1);
    /* on so many nodes as are asked for, each with its share */
    expect_place(&b, (struct dt_need){1, 1, 0, 0}, (struct dt_need){4, 1, 0, 0}, 3,
                 "h1:1+1 h2:0+1 h3:0+2");
    expect_place(&b, (struct dt_need){1, 1, 0, 0}, (struct dt_need){3, 1, 0, 0}, 4, "none");
    dt_books_free(&b);
}

static void memory_and_gpus_are_counted_too(void **state)
{
    struct dt_books b = books_of((struct dt_room[]){{8, 2, 1000}, {8, 1, 4000}}, 2, 1);
    (void)state;
    assert_int_equal(dt_books_mem_per_cpu(&b), 125); /* of the node with the least */
    expect_place(&b, (struct dt_need){0, 1, 0, 0}, (struct dt_need){3, 1, 1, 10}, 0,
                 "h1:0+2 h2:0+1");
    expect_place(&b, (struct dt_need){0, 1, 0, 0}, (struct dt_need){1, 1, 1, 10}, 0, "none");
    expect_place(&b, (struct dt_need){1, 2, 0, 500}, (struct dt_need){1, 2, 0, 500}, 0, "h2:1+1");
    expect_place(&b, (struct dt_need){1, 2, 0, 500}, (struct dt_need){1, 2, 0, 500}, 0, "none");
    dt_books_free(&b);
    b = books_of((struct dt_room[]){{2, 0, 0}}, 1, 2); /* memory is not counted here */
    assert_int_equal(dt_books_mem_per_cpu(&b), 0);
    expect_place(&b, (struct dt_need){0, 1, 0, 0}, (struct dt_need){1, 2, 0, 1 << 20}, 0, "h1:0+1");
    assert_int_equal(dt_whole_cores(1, b.threads), 2);
    assert_int_equal(dt_whole_cores(4, b.threads), 4);
    assert_int_equal(dt_whole_cores(3, 1), 3);
    dt_books_free(&b);
}

static void a_share_of_a_node_counts_as_that(void **state)
{
    struct dt_books b = books_of((struct dt_room[]){{8, 4, 1000}, {8, 0, 1000}}, 2, 1);
    struct dt_placement p;
    (void)state;
    assert_true(dt_placement_find(&b, (struct dt_need[]){{0, 1, 0, 0}, {2, 1, 1, 100}}, 2, 0,
                                  &p)); /* half of the GPUs */
    assert_true(dt_placement_nodes(&b, &p) == 0.5 && dt_placement_fraction(&b, &p) == 0.25);
    dt_placement_free(&p);
    assert_true(dt_placement_find(&b, (struct dt_need[]){{1, 1, 0, 0}, {15, 1, 0, 0}}, 2, 0, &p));
    assert_true(dt_placement_nodes(&b, &p) == 2 && dt_placement_fraction(&b, &p) == 1);
    dt_placement_free(&p);
    dt_books_free(&b);
}

static void a_node_that_was_given_back_takes_no_task(void **state)
{
    struct dt_books b = books_of((struct dt_room[]){{4, 0, 400}, {4, 0, 400}, {4, 0, 400}}, 3, 1);
    struct dt_need none = {0, 1, 0, 0}, four = {4, 1, 0, 100}, eight = {8, 1, 0, 100};
    (void)state;
    expect_place(&b, none, four, 0, "h1:0+4");
    assert_true(!dt_books_empty(&b, 0) && dt_books_empty(&b, 1));
    dt_books_close(&b, 1);
    assert_int_equal(dt_books_total(&b).cpus, 8);
    assert_int_equal(dt_books_mem_per_cpu(&b), 100);
    expect_place(&b, none, eight, 0, "none");
    expect_place(&b, none, four, 0, "h3:0+4");
    dt_books_free(&b);
}

/* Whatever comes and goes: nothing is given twice, all of it comes back, and all tasks have a
 * place. */
static void the_books_are_right_at_all_times(void **state)
{
    enum { NODES = 5, LIVE = 6 };
    unsigned dice = 7;
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct dt_room rooms[NODES];
        for (int i = 0; i < NODES; i++)
            rooms[i] = (struct dt_room){1 + rand_r(&dice) % 16, rand_r(&dice) % 5,
                                        100 + rand_r(&dice) % 1000};
        struct dt_books b = books_of(rooms, NODES, 1);
        struct dt_placement live[LIVE] = {0};
        for (int step = 0; step < 60; step++) {
            struct dt_placement *p = &live[rand_r(&dice) % LIVE];
            struct dt_need needs[2];
            dt_placement_give_back(&b, p);
            dt_placement_free(p);
            for (int r = 0; r < 2; r++)
                needs[r] = (struct dt_need){rand_r(&dice) % 6, 1 + rand_r(&dice) % 4,
                                            rand_r(&dice) % 2, rand_r(&dice) % 100};
            if (!dt_placement_find(&b, needs, 2, rand_r(&dice) % 3, p))
                continue;
            size_t tasks[2] = {0};
            for (size_t i = 0; i < p->n; i++) {
                const struct dt_room *room = &p->v[i].room, *free = &b.v[p->v[i].node].free;
                assert_true(room->cpus <= free->cpus && room->gpus <= free->gpus &&
                            room->mem_mib <= free->mem_mib);
                assert_true(i == 0 || p->v[i].node > p->v[i - 1].node);
                tasks[0] += p->v[i].tasks[0];
                tasks[1] += p->v[i].tasks[1];
            }
            assert_true(tasks[0] == needs[0].count && tasks[1] == needs[1].count);
            dt_placement_take(&b, p);
        }
        for (int i = 0; i < LIVE; i++) {
            dt_placement_give_back(&b, &live[i]);
            dt_placement_free(&live[i]);
        }
        for (int i = 0; i < NODES; i++)
            assert_memory_equal(&b.v[i].free, &b.v[i].all, sizeof(struct dt_room));
        dt_books_free(&b);
    }
}

/* ---- what fits at all ---- */

static struct dt_cluster *cluster_of(const char *text)
{
    struct dt_error e = DT_ERROR_INIT;
    struct json_object *o = dt_json_parse(text, "cluster", &e);
    struct dt_cluster *c = dt_cluster_from_json(o, &e);
    assert_non_null(c);
    json_object_put(o);
    return c;
}

static void what_never_fits_has_its_reason(void **state)
{
    static const char fits[] =
        "layout steps: more CPUs, memory or GPUs than the job's allocation has";
    static const struct {
        struct dt_role ps, workers;
        bool overcommit;
        const char *why; /* its beginning; NULL: it fits */
    } cases[] = {
        {{.count = 1, .cpus = 1}, {.count = 7, .cpus = 1}, false, NULL}, /* the two nodes in full */
        {{.count = 1, .cpus = 1}, {.count = 8, .cpus = 1}, false, fits},
        {{.count = 0, .cpus = 1}, {.count = 1, .cpus = 5}, false, fits},
        {{.count = 0, .cpus = 1}, {.count = 2, .cpus = 1, .gpus = 1}, false, NULL},
        {{.count = 0, .cpus = 1}, {.count = 3, .cpus = 1, .gpus = 1}, false, fits},
        {{.count = 0, .cpus = 1}, {.count = 2, .cpus = 1, .mem_mib = 1000}, false, NULL},
        {{.count = 0, .cpus = 1}, {.count = 2, .cpus = 1, .mem_mib = 1001}, false, fits},
        {{.count = 1, .cpus = 1, .nodes = 1}, {.count = 2, .cpus = 1, .nodes = 2}, false, NULL},
        {{.count = 1, .cpus = 1}, {.count = 3, .cpus = 1, .nodes = 3}, false, fits},
        {{.count = 0}, {.count = 1, .gpus_as_given = true}, false, "layout steps: GPUs that tasks"},
        {{.count = 0},
         {.count = 1, .cpus = 1, .tmp_mib = 5},
         false,
         "layout steps: Slurm does not"},
        {{.count = 0}, {.count = 1, .cpus = 1}, true, "layout steps: with --overcommit"},
        {{.count = 1, .cpus = 1}, {.count = 0}, false, "a job without workers"},
    };
    struct dt_cluster *c =
        cluster_of("{\"nodes\": [{\"count\": 2, \"cpus\": 4, \"mem\": 1000, \"gpus\": 1}]}");
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_job job = {.tasks = 1, .cpus = 1, .overcommit = cases[i].overcommit};
        struct dt_shape s = {.steps = true, .roles = {cases[i].ps, cases[i].workers}};
        const char *why = dt_shape_why_not(&s, &job, c);
        if (cases[i].why)
            assert_true(why && dt_starts_with(why, cases[i].why));
        else if (why)
            fail_msg("case %zu: %s", i, why);
    }
    dt_cluster_free(c);
}

/* What Slurm 22.05 does with steps: two tasks of a role on two threads of a core, but no two roles.
 */
static void steps_get_whole_cores(void **state)
{
    static const struct {
        size_t ps, workers, cpus;
        bool fits;
    } cases[] = {{0, 8, 1, true}, {1, 6, 1, true}, {1, 7, 1, false}, {0, 2, 3, true},
                 {1, 2, 3, true}, {2, 2, 3, true}, {3, 2, 3, false}};
    struct dt_cluster *c =
        cluster_of("{\"nodes\": [{\"count\": 1, \"cpus\": 8, \"mem\": 800, \"threads\": 2}]}");
    struct dt_job job = {.tasks = 1, .cpus = 1};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_shape s = {.steps = true,
                             .roles = {{.count = cases[i].ps, .cpus = 1},
                                       {.count = cases[i].workers, .cpus = cases[i].cpus}}};
        if (cases[i].fits != !dt_shape_why_not(&s, &job, c))
            fail_msg("case %zu", i);
    }
    struct dt_books b = dt_cluster_books(c);
    struct dt_need needs[DT_ROLES];
    struct dt_shape s = {.steps = true,
                         .roles = {{.count = 1, .cpus = 1}, {.count = 1, .cpus = 2}}};
    s.roles[DT_ROLE_WORKER].mem_mib = 151; /* all of it, in whole MiB a CPU */
    dt_shape_needs(&s, &b, needs);
    assert_true(needs[DT_ROLE_PS].mem_per_cpu == 100 && needs[DT_ROLE_WORKER].mem_per_cpu == 76);
    dt_books_free(&b);
    dt_cluster_free(c);
}

static void what_is_asked_for_is_about_what_comes(void **state)
{
    static const struct {
        struct dt_job job;
        bool whole;
        size_t nodes, cpus, gpus, mem;
    } cases[] = {
        {{.tasks = 16, .cpus = 1, .nodes = 4}, false, 4, 4, 0, 0},
        {{.tasks = 8, .cpus = 2, .tasks_per_node = 2, .mem_mib = 100}, false, 4, 4, 0, 200},
        {{.tasks = 12, .cpus = 1, .node_mem_mib = 500}, false, 2, 6, 0, 500}, /* the fewest nodes */
        {{.tasks = 2, .cpus = 1, .nodes = 2, .gpus = 2}, false, 2, 1, 2, 0},
        {{.tasks = 2, .cpus = 1, .nodes = 2}, true, 2, 8, 3, 4096},
        {{.tasks = 3, .cpus = 1, .nodes = 1, .gpus_shared = true}, false, 1, 3, 3, 0},
    };
    struct dt_cluster *c =
        cluster_of("{\"nodes\": [{\"count\": 8, \"cpus\": 8, \"mem\": 4096, \"gpus\": 3}]}");
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_cluster *a = dt_allocation_asked(&cases[i].job, c, cases[i].whole);
        const struct dt_node_class *k = &a->classes[0];
        if (a->n != 1 || k->count != cases[i].nodes || k->cpus != cases[i].cpus ||
            k->gpus != cases[i].gpus || k->mem_mib != cases[i].mem)
            fail_msg("case %zu: %zu nodes, %zu CPUs, %zu GPUs, %zu MiB", i, k->count, k->cpus,
                     k->gpus, (size_t)k->mem_mib);
        dt_cluster_free(a);
    }
    dt_cluster_free(c);
}

/* ---- the script ---- */

/* What dt-launch is told of the trial's share, and the user in words. */
static void a_trials_script_says_where_it_is(void **state)
{
    static const char text[] = "{\"dt\": {\"ps\": [1], \"workers\": [3]}, \"layout\": \"steps\"}";
    struct dt_error e = DT_ERROR_INIT;
    struct json_object *json = dt_json_parse(text, "S.json", &e);
    struct dt_spec *spec = dt_spec_parse(json, text, "S.json", &e);
    struct dt_job job = {.tasks = 4, .cpus = 1, .name = (char *)"t"};
    struct dt_space_source source = {spec, &job, NULL};
    const char *why;
    struct dt_space *space = dt_space_generate(&source, &why, &e);
    struct dt_books books = books_of((struct dt_room[]){{2, 1, 200}, {2, 1, 200}}, 2, 1);
    struct dt_shape shape;
    struct dt_placement where;
    double x[] = {1, 3};
    (void)state;
    assert_true(dt_starts_with(why, "layout steps: as asked"));
    assert_int_equal(dt_space_index(space, "layout"), -1);
    dt_shape_make_steps(space, x, &job, &shape);
    assert_true(dt_shape_place(&shape, &books, &where));
    struct dt_submission submission = {0};
    struct dt_trial_script t = {.submission = &submission,
                                .script = "srun train\n",
                                .job = &job,
                                .space = space,
                                .x = x,
                                .shape = &shape,
                                .launch = "/bin/dt-launch",
                                .study = "77",
                                .dir = "/d",
                                .trial = 5,
                                .run = 2,
                                .books = &books,
                                .where = &where,
                                .tuner_pid = 123};
    char *script = dt_expand(&t, &e);
    assert_null(strstr(script, "#SBATCH"));
    assert_non_null(strstr(script, "\n# ps: 1 x 1 CPU; 1 on h1\n"
                                   "# worker: 3 x 1 CPU; 1 on h1, 2 on h2\n"));
    assert_non_null(strstr(script, "\"layout\":\"steps\",\"name\":\"t.dt-77-5-2\","
                                   "\"tuner_pid\":123,\"gpus\":true,\"roles\":[{\"name\":\"ps\","
                                   "\"count\":1,\"cpus\":1,\"gpus\":0,\"mem_per_cpu\":100,"
                                   "\"on\":{\"h1\":1,\"h2\":0}},"));
    free(script);
    dt_placement_free(&where);
    dt_books_free(&books);
    dt_space_free(space);
    dt_spec_free(spec);
    json_object_put(json);
}

/* ---- the environment ---- */

static const char *get(const struct dt_strv *env, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < env->n; i++)
        if (strncmp(env->v[i], name, n) == 0 && env->v[i][n] == '=')
            return env->v[i] + n + 1;
    return "unset";
}

static void a_trial_sees_its_share_and_not_the_job(void **state)
{
    static const char *const jobs[][2] = {
        {"SLURM_JOB_ID", "77"},
        {"SLURM_JOB_PARTITION", "main"},
        {"SLURM_NTASKS_PER_NODE", "8"},
        {"SLURM_JOB_NODELIST", "h[1-3]"},
        {"SLURM_CPU_BIND", "x"},
        {"SLURM_STEP_ID", "4"},
        {"CUDA_VISIBLE_DEVICES", "0,1"},
        {"SLURM_RESTART_COUNT", "2"},
        {"DT_TRIAL", "9"},
        {"SLURM_GPUS_PER_NODE", "2"},
        {"MINE", "kept"},
    };
    static const char *const expected[][2] = {
        {"SLURM_JOB_ID", "77"},
        {"SLURM_JOB_PARTITION", "main"},
        {"MINE", "kept"},
        {"SLURM_JOB_NAME", "t.dt-77-3-1"},
        {"SLURM_JOB_NODELIST", "h1,h2,h3"},
        {"SLURM_JOB_NUM_NODES", "3"},
        {"SLURM_NNODES", "3"},
        {"SLURM_JOB_CPUS_PER_NODE", "4(x2),3"},
        {"SLURM_TASKS_PER_NODE", "2(x2),1"},
        {"SLURM_NTASKS", "5"},
        {"SLURM_CPUS_ON_NODE", "4"},
        {"SLURM_MEM_PER_NODE", "40"},
        {"SLURM_CPUS_PER_TASK", "3"},
        {"DT_SHARE", "t.dt-77-3-1"},
        {"DT_SHARE_NODES", "h1,h2,h3"},
        {"DT_SHARE_JOB", "77"},
        {"SLURM_NTASKS_PER_NODE", "unset"},
        {"SLURM_CPU_BIND", "unset"},
        {"SLURM_STEP_ID", "unset"},
        {"CUDA_VISIBLE_DEVICES", "unset"},
        {"SLURM_RESTART_COUNT", "unset"},
        {"SLURM_GPUS_PER_NODE", "unset"},
        {"DT_TRIAL", "unset"},
    };
    struct dt_room four = {4, 0, 400};
    struct dt_books b = books_of((struct dt_room[]){four, four, four}, 3, 1);
    struct dt_need needs[] = {{2, 1, 0, 10}, {3, 3, 0, 10}};
    struct dt_placement p;
    struct dt_strv env = DT_STRV_INIT;
    (void)state;
    for (size_t i = 0; i < COUNT(jobs); i++)
        setenv(jobs[i][0], jobs[i][1], 1);
    assert_true(dt_placement_find(&b, needs, 2, 0, &p));
    dt_steps_environ(&b, &p, "t.dt-77-3-1", 3, &env);
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_string_equal(get(&env, expected[i][0]), expected[i][1]);
    for (size_t i = 0; i < COUNT(jobs); i++)
        unsetenv(jobs[i][0]);
    dt_strv_free(&env);
    dt_placement_free(&p);
    dt_books_free(&b);
}

/* ---- runs ---- */

/* A program may write what it likes into its trial's folder, also over dt-launch's records. */
static void what_a_record_does_not_say_is_no_time(void **state)
{
    struct dt_event *events = NULL;
    size_t n = 0;
    struct dt_events out = {&events, &n};
    struct dt_trial t = {.id = 1, .run = 1};
    (void)state;
    dt_events_add(&out, DT_EVENT_STARTED, &t, NAN);
    dt_events_add(&out, DT_EVENT_STARTED, &t, INFINITY);
    dt_events_add(&out, DT_EVENT_STARTED, &t, 17);
    assert_true(fabs(events[0].t - dt_now()) < 60 && fabs(events[1].t - dt_now()) < 60);
    assert_true(n == 3 && events[2].t == 17);
    free(events);
}

static double set_by; /* seconds that the clock was set by, from its second reading on */
static int readings;

double __real_dt_now(void);
double __wrap_dt_now(void)
{
    return __real_dt_now() + (readings++ ? set_by : 0);
}

int __wrap_dt_slurm_steps_load(uint32_t job, const char *mark, struct dt_slurm_steps *steps,
                               struct dt_error *e)
{
    (void)job;
    (void)mark;
    (void)steps;
    return dt_fail(e, "slurmctld does not answer");
}

static void a_wait_is_as_long_however_the_clock_is_set(void **state)
{
    struct dt_study none = {0};
    struct steps b = {.c = {.wake_fd = -1}, .tick = TICK_MIN};
    struct dt_event *events = NULL;
    size_t n = 0;
    (void)state;
    double begun = dt_monotonic();
    readings = 0;
    set_by = -3600;
    alarm(60);
    assert_int_equal(wait_for(&b, &none, __real_dt_now() + 0.2, &events, &n, NULL), 0);
    alarm(0);
    set_by = 0;
    assert_true(dt_monotonic() - begun >= 0.15 && n == 0);
}

/* While slurmctld is away nobody knows whether steps are left, and the system gives numbers of
 * processes again. */
static void nobody_else_is_ended_for_a_run_that_is_gone(void **state)
{
    struct steps b = {0};
    struct run r = {.name = (char *)"t.dt-1-1-1", .ended = 1, .force = INFINITY};
    pid_t other = fork();
    (void)state;
    if (other == 0) {
        setpgid(0, 0);
        pause();
        _exit(0);
    }
    setpgid(other, other);
    r.group = fork();
    if (r.group == 0)
        _exit(0);
    setpgid(r.group, r.group);
    for (int i = 0; i < 1000 && !r.gone; i++) {
        assert_false(is_over(&b, &r));
        poll(NULL, 0, 10);
    }
    assert_true(r.gone);
    r.group = other;
    r.force = 0;
    assert_false(is_over(&b, &r));
    assert_true(kill(other, SIGTERM) == 0);
    int status;
    assert_true(waitpid(other, &status, 0) == other && WTERMSIG(status) == SIGTERM);
}

static enum dt_job_fate fate; /* what Slurm says of the tuning job, */
static int asked;             /* and how often it was asked */

enum dt_job_fate __wrap_dt_slurm_fate(uint32_t job);
enum dt_job_fate __wrap_dt_slurm_fate(uint32_t job)
{
    asked += job == 7;
    return fate;
}

static void what_ends_with_the_tuning_job_is_interrupted(void **state)
{
    static const struct {
        bool told, tasks_told;
        int exit_code;
        bool asked; /* by the tuner, to end */
        enum dt_job_fate fate;
        enum dt_cause cause;
        int questions;
    } cases[] = {
        {false, false, 0, false, DT_JOB_ENDS, DT_CAUSE_OK, 0},
        {false, false, 3, false, DT_JOB_STAYS, DT_CAUSE_EXIT, 1},
        {false, false, 3, false, DT_JOB_PREEMPTED, DT_CAUSE_PREEMPTED, 1},
        {false, false, 3, false, DT_JOB_ENDS, DT_CAUSE_INTERRUPTED, 1},
        {true, false, 0, false, DT_JOB_STAYS, DT_CAUSE_CANCELLED, 1},
        {true, false, 0, false, DT_JOB_PREEMPTED, DT_CAUSE_CANCELLED, 1},
        {true, false, 0, false, DT_JOB_ENDS, DT_CAUSE_INTERRUPTED, 1},
        {false, true, 0, false, DT_JOB_STAYS, DT_CAUSE_CANCELLED, 1},
        {false, true, 0, false, DT_JOB_PREEMPTED, DT_CAUSE_PREEMPTED, 1},
        {true, true, 143, true, DT_JOB_ENDS, DT_CAUSE_CANCELLED, 0},
        {false, true, 0, true, DT_JOB_ENDS, DT_CAUSE_CANCELLED, 1},
    };
    const struct dt_submission none = {0};
    const struct steps b = {.c = {.submission = &none}, .a = {.job = 7}};
    const struct dt_study s = {0};
    const struct dt_trial t = {0};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_records rec = {.ended = true, .launch = 1};
        struct run r = {.asked = cases[i].asked};
        rec.told = cases[i].told;
        rec.tasks_told = cases[i].tasks_told;
        rec.exit_code = cases[i].exit_code;
        fate = cases[i].fate;
        asked = 0;
        assert_int_equal(cause_of(&b, &s, &t, &r, &rec, "/nowhere"), cases[i].cause);
        assert_int_equal(asked, cases[i].questions);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tightest_node_that_holds_all_is_taken),
        cmocka_unit_test(what_one_node_cannot_hold_goes_to_few),
        cmocka_unit_test(memory_and_gpus_are_counted_too),
        cmocka_unit_test(a_share_of_a_node_counts_as_that),
        cmocka_unit_test(a_node_that_was_given_back_takes_no_task),
        cmocka_unit_test(the_books_are_right_at_all_times),
        cmocka_unit_test(what_never_fits_has_its_reason),
        cmocka_unit_test(steps_get_whole_cores),
        cmocka_unit_test(what_is_asked_for_is_about_what_comes),
        cmocka_unit_test(a_trials_script_says_where_it_is),
        cmocka_unit_test(what_ends_with_the_tuning_job_is_interrupted),
        cmocka_unit_test(a_trial_sees_its_share_and_not_the_job),
        cmocka_unit_test(what_a_record_does_not_say_is_no_time),
        cmocka_unit_test(a_wait_is_as_long_however_the_clock_is_set),
        cmocka_unit_test(nobody_else_is_ended_for_a_run_that_is_gone),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
