/* dt-tune simulate, the program: what it prints and how it exits. */
#include "util/util.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPEC                                                                                       \
    "{\"dt\": {\"workers\": {\"low\": 1, \"high\": 8}}, \"hyperparameters\": {\"opt\": "           \
    "[\"sgd\", \"adam\"]}, \"constraints\": [\"workers <= 7\"], \"search\": {\"seed\": 5, "        \
    "\"max_configs\": 12, \"min_configs\": 12}, \"replay\": {\"objective\": \"time_s\", "          \
    "\"status\": \"status\"}}"

static char *spec, *table;

static char *file_with(const char *text)
{
    const char *tmp = getenv("TMPDIR");
    char *path = dt_xasprintf("%s/dt-test-simulate.XXXXXX", tmp ? tmp : P_tmpdir);
    close(mkstemp(path));
    assert_int_equal(dt_write_file(path, text, strlen(text), 0600, NULL), 0);
    return path;
}

/* Runs a command of dt-tune with the words; gives its exit status. */
static int run(const char *command, const char *const *words, struct dt_proc_result *r)
{
    struct dt_strv argv = DT_STRV_INIT;
    struct dt_error e = DT_ERROR_INIT;
    dt_strv_add(&argv, "./dt-tune");
    dt_strv_add(&argv, command);
    for (; *words; words++)
        dt_strv_add(&argv, *words);
    if (dt_proc_run(argv.v, NULL, 60, r, &e) < 0)
        fail_msg("%s", e.text);
    dt_strv_free(&argv);
    assert_true(WIFEXITED(r->status));
    return WEXITSTATUS(r->status);
}

static int simulate(const char *const *words, struct dt_proc_result *r)
{
    return run("simulate", words, r);
}

#define WORDS(...) ((const char *[]){"--spec", spec, "--table", table, __VA_ARGS__, NULL})

static struct json_object *simulate_json(const char *seed, const char *repeat, const char *noise)
{
    struct dt_proc_result r;
    struct dt_error e = DT_ERROR_INIT;
    const char *const *words =
        WORDS("--seed", seed, "--repeat", repeat, "--noise", noise, "--format", "json");
    if (simulate(words, &r) != 0)
        fail_msg("%s", r.err);
    struct json_object *o = dt_json_parse(r.out, "output", &e);
    assert_non_null(o);
    dt_proc_result_free(&r);
    return o;
}

static void json_tells_every_study_and_their_summary(void **state)
{
    struct json_object *o = simulate_json("1", "9", "0"), *studies = dt_json_get(o, "studies");
    struct json_object *best = dt_json_get(o, "table_best"), *summary = dt_json_get(o, "summary");
    int within = 0;
    (void)state;
    assert_int_equal(dt_json_int(o, "version", 0), 1);
    assert_int_equal(dt_json_int(o, "configurations", 0), 14);
    assert_string_equal(dt_json_str(o, "goal", ""), "minimize");
    assert_true(dt_json_num(best, "value", 0) == 10);
    assert_int_equal(dt_json_int(dt_json_get(best, "config"), "workers", 0), 7);
    assert_int_equal(dt_json_count(studies), 9);
    for (size_t i = 0; i < 9; i++) {
        struct json_object *s = dt_json_at(studies, i), *found = dt_json_get(s, "best");
        double gap = dt_json_num(s, "gap_pct", NAN), value = dt_json_num(found, "value", NAN);
        assert_int_equal(dt_json_int(s, "seed", 0), i + 1);
        assert_int_equal(dt_json_int(s, "trials", 0), 12);
        assert_int_equal(dt_json_int(s, "duplicates", 9), 0);
        assert_true(dt_json_int(s, "failed", 9) <= 2);
        assert_string_equal(dt_json_str(s, "stopped", ""),
                            "maximum of configurations: 12 of 12 were tried");
        assert_true(fabs(gap - 100 * (value - 10) / 10) < 1e-9);
        assert_true(dt_json_num(dt_json_get(s, "gap_pct_after"), "20", 0) == gap);
        assert_true(dt_json_num(dt_json_get(s, "gap_pct_after"), "10", 0) >= gap);
        assert_true(dt_json_num(s, "virtual_time_s", 0) > 100);
        within += dt_json_get(s, "trials_to_1pct") != NULL;
        assert_int_equal(dt_json_get(s, "trials_to_1pct") != NULL, gap <= 1);
    }
    assert_int_equal(dt_json_int(summary, "studies", 0), 9);
    assert_int_equal(dt_json_int(summary, "within_1pct", -1), within);
    assert_int_equal(dt_json_int(dt_json_get(summary, "median"), "trials", 0), 12);
    json_object_put(o);
}

static void a_seed_gives_the_same_study_alone_or_among_others(void **state)
{
    struct json_object *many = simulate_json("3", "4", "5"), *one = simulate_json("5", "1", "5");
    struct json_object *a = dt_json_at(dt_json_get(many, "studies"), 2);
    struct json_object *b = dt_json_at(dt_json_get(one, "studies"), 0);
    struct json_object *c = dt_json_at(dt_json_get(many, "studies"), 1);
    (void)state;
    assert_true(json_object_equal(a, b));
    assert_false(json_object_equal(dt_json_get(a, "best"), dt_json_get(c, "best")));
    json_object_put(many);
    json_object_put(one);
}

static void text_names_the_best_and_the_reason(void **state)
{
    struct dt_proc_result r;
    (void)state;
    assert_int_equal(simulate(WORDS("--seed=2"), &r), 0);
    assert_non_null(strstr(r.out, "14 configurations; time_s is to be minimized, the best is 10: "
                                  "workers=7 opt=adam"));
    assert_non_null(strstr(r.out, "stopped: maximum of configurations: 12 of 12 were tried"));
    dt_proc_result_free(&r);
    assert_int_equal(simulate((const char *[]){"--help", NULL}, &r), 0);
    assert_non_null(strstr(r.out, "--noise=PCT"));
    assert_null(strstr(r.out, "%%"));
    dt_proc_result_free(&r);
}

static void wrong_use_and_bad_input_exit_with_2(void **state)
{
    char *no_replay = file_with("{\"dt\": {\"workers\": [1]}}");
    char *bad_constraint =
        file_with("{\"dt\": {\"workers\": [1]},\n\"constraints\": [\"worker < 2\"],\n"
                  "\"replay\": {\"objective\": \"time_s\"}}");
    char *nothing = file_with("{\"replay\": {\"objective\": \"time_s\"}}");
    const struct {
        const char *words[8], *error;
    } cases[] = {
        {{NULL}, "--spec=S.json and --table=T.csv are needed"},
        {{"--spec", spec}, "--spec=S.json and --table=T.csv are needed"},
        {{"--spec", spec, "--table", table, "more"}, "are needed and nothing else"},
        {{"--spec", spec, "--table", "/no/table.csv"}, "/no/table.csv: No such file"},
        {{"--spec", "/no/spec.json", "--table", table}, "/no/spec.json: No such file"},
        {{"--spec", spec, "--table", table, "--noise=-1"}, "\"-1\" cannot be used there"},
        {{"--spec", spec, "--table", table, "--repeat=0"}, "\"0\" cannot be used there"},
        {{"--spec", spec, "--table", table, "--seed=x"}, "\"x\" cannot be used there"},
        {{"--spec", spec, "--table", table, "--format=xml"}, "\"xml\" cannot be used there"},
        {{"--spec", spec, "--table", table, "--bogus"}, "bogus"},
        {{"--spec", no_replay, "--table", table}, "SPEC has no \"replay\" section"},
        {{"--spec", bad_constraint, "--table", table}, ":2: "},
        {{"--spec", nothing, "--table", table}, "there is nothing to tune"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct dt_proc_result r;
        int rc = simulate(cases[i].words, &r);
        if (rc != 2 || !strstr(r.err, cases[i].error) || *r.out)
            fail_msg("case %zu: %d, %s", i, rc, r.err);
        dt_proc_result_free(&r);
    }
    unlink(no_replay);
    unlink(bad_constraint);
    unlink(nothing);
    free(no_replay);
    free(bad_constraint);
    free(nothing);
}

/* sgd has five momenta, adam, which is best, none: six configurations, and each is found once. */
#define CONDITIONAL                                                                                \
    "{\"hyperparameters\": {\"m\": {\"low\": 1, \"high\": 5, \"when\": \"opt == 'sgd'\"}, "        \
    "\"opt\": "                                                                                    \
    "[\"sgd\", \"adam\"]}, \"search\": {\"max_configs\": 9, \"min_configs\": 9}, \"replay\": "     \
    "{\"objective\": \"t\"}}"

static void a_conditional_table_is_searched(void **state)
{
    char *s = file_with(CONDITIONAL),
         *t = file_with("m,opt,t\n1,sgd,14\n2,sgd,13\n3,sgd,12\n4,sgd,11\n5,sgd,10.5\n,adam,10\n");
    struct dt_proc_result r;
    struct dt_error e = DT_ERROR_INIT;
    (void)state;
    const char *const words[] = {"--spec", s, "--table", t, "--repeat=3", "--format=json", NULL};
    if (simulate(words, &r) != 0)
        fail_msg("%s", r.err);
    struct json_object *o = dt_json_parse(r.out, "output", &e),
                       *studies = dt_json_get(o, "studies");
    assert_int_equal(dt_json_int(o, "configurations", 0), 6);
    for (size_t i = 0; i < 3; i++) {
        struct json_object *one = dt_json_at(studies, i);
        char *config = dt_json_text(dt_json_get(dt_json_get(one, "best"), "config"));
        assert_string_equal(config, "{\"opt\":\"adam\"}");
        assert_true(dt_json_num(one, "gap_pct", 1) == 0);
        free(config);
    }
    json_object_put(o);
    dt_proc_result_free(&r);
    unlink(s);
    unlink(t);
    free(s);
    free(t);
}

static void suggestions_leave_out_what_is_inactive(void **state)
{
    char *s = file_with(CONDITIONAL), *known = file_with(""),
         *wrong = file_with(
             "{\"config\": {\"workers\": 1, \"opt\": \"adam\"}, \"value\": 3}\n"
             "{\"config\": {\"workers\": 1, \"opt\": \"adam\", \"m\": 2}, \"value\": 3}\n");
    char *given = dt_xasprintf("--observations=%s", known);
    struct dt_proc_result r;
    struct dt_error e = DT_ERROR_INIT;
    (void)state;
    size_t n = 0, with = 0;
    for (bool more = true; more;) { /* what is suggested comes back as an observation */
        assert_int_equal(run("suggest", (const char *[]){"--spec", s, given, NULL}, &r), 0);
        more = *r.out != '\0';
        if (more) {
            struct json_object *line = dt_json_parse(r.out, "line", &e),
                               *config = dt_json_get(line, "config");
            bool sgd = strcmp(dt_json_str(config, "opt", ""), "sgd") == 0;
            assert_int_equal(json_object_object_get_ex(config, "m", NULL), sgd);
            json_object_object_add(line, "value", json_object_new_int((int)n));
            char *text = dt_json_text(line), *old = dt_read_file(known, 65536, NULL, &e);
            char *all = dt_xasprintf("%s%s\n", old, text);
            assert_int_equal(dt_write_file(known, all, strlen(all), 0600, &e), 0);
            with += sgd;
            n++;
            free(text);
            free(old);
            free(all);
            json_object_put(line);
        }
        dt_proc_result_free(&r);
    }
    assert_int_equal(n, 6);
    assert_int_equal(with, 5);
    free(given);
    given = dt_xasprintf("--observations=%s", wrong);
    assert_int_equal(run("suggest", (const char *[]){"--spec", s, given, NULL}, &r), 2);
    assert_non_null(strstr(r.err, ":2: configuration: \"m\" has a value, but its condition opt == "
                                  "'sgd' does not hold; leave it out"));
    dt_proc_result_free(&r);
    unlink(s);
    unlink(known);
    unlink(wrong);
    free(s);
    free(known);
    free(wrong);
    free(given);
}

/* The same table as its own past: the first trial is the best. */
static void a_past_gives_a_warm_start(void **state)
{
    struct dt_proc_result r, again;
    struct dt_error e = DT_ERROR_INIT;
    const char *const *words = WORDS("--past", spec, "--seed", "3", "--format", "json");
    (void)state;
    assert_int_equal(simulate(words, &r), 0);
    assert_int_equal(simulate(words, &again), 0);
    assert_string_equal(r.out, again.out);
    struct json_object *o = dt_json_parse(r.out, "output", &e);
    assert_int_equal(dt_json_int(dt_json_at(dt_json_get(o, "studies"), 0), "trials_to_1pct", 0), 1);
    json_object_put(o);
    dt_proc_result_free(&r);
    dt_proc_result_free(&again);
    assert_int_equal(simulate(WORDS("--past", "/nowhere.json"), &r), 1);
    assert_non_null(strstr(r.err, "--past=/nowhere.json: "));
    dt_proc_result_free(&r);
}

#define FIDELITY                                                                                   \
    "{\"hyperparameters\": {\"a\": {\"low\": 1, \"high\": 20}, \"n\": {\"choices\": [10, 100], "   \
    "\"fidelity\": true}}, \"search\": {\"max_configs\": 20, \"min_configs\": 20, \"repeats\": "   \
    "0}, "                                                                                         \
    "\"replay\": {\"objective\": \"time_s\"}}"

/* Trials at a lower fidelity are cheap and short, but nothing is found by them. */
static void only_the_highest_fidelity_is_what_was_found(void **state)
{
    struct dt_buf b = DT_BUF_INIT;
    struct dt_proc_result r;
    struct dt_error e = DT_ERROR_INIT;
    double hours = 0;
    int cheap = 0, to_5pct = 0;
    (void)state;
    dt_buf_add(&b, "a,n,time_s\n");
    for (int a = 1; a <= 20; a++)
        dt_buf_addf(&b, "%d,10,%d\n%d,100,%d\n", a, 4 + abs(a - 13), a, 40 + 10 * abs(a - 13));
    char *s = file_with(FIDELITY), *t = file_with(b.s);
    const char *const words[] = {"--spec", s, "--table", t, "--format=json", NULL};
    assert_int_equal(simulate(words, &r), 0);
    struct json_object *o = dt_json_parse(r.out, "output", &e),
                       *best = dt_json_get(o, "table_best");
    assert_true(dt_json_num(best, "value", 0) == 40);
    assert_int_equal(dt_json_int(dt_json_get(best, "config"), "n", 0), 100);
    struct json_object *one = dt_json_at(dt_json_get(o, "studies"), 0),
                       *history = dt_json_get(one, "history"), *before = NULL;
    for (size_t i = 0; i < dt_json_count(history); i++) {
        struct json_object *h = dt_json_at(history, i), *gap = dt_json_get(h, "gap_pct");
        bool full = dt_json_int(dt_json_get(h, "config"), "n", 0) == 100;
        cheap += !full;
        if (!full)
            assert_true(json_object_equal(gap, before));
        before = gap;
        if (!to_5pct && gap && json_object_get_double(gap) <= 5) {
            to_5pct = (int)i + 1;
            hours = dt_json_num(h, "node_hours", 0);
        }
    }
    assert_true(cheap >= 3);
    assert_int_equal(dt_json_int(one, "cheap", 0), cheap);
    assert_int_equal(dt_json_int(one, "trials_to_5pct", 0), to_5pct);
    assert_true(to_5pct > 0 && dt_json_num(one, "node_hours_to_5pct", 0) == hours);
    json_object_put(o);
    dt_proc_result_free(&r);
    assert_int_equal(simulate(WORDS("--format=json"), &r), 0);
    assert_null(strstr(r.out, "cheap")); /* nothing is new where there is no fidelity */
    dt_proc_result_free(&r);
    dt_buf_free(&b);
    unlink(s);
    unlink(t);
    free(s);
    free(t);
}

#define MOVING(rule)                                                                               \
    "{\"dt\": {\"ps\": {\"low\": 1, \"high\": 2}, \"workers\": {\"low\": 1, \"high\": 2}}, "       \
    "\"search\": {\"max_configs\": 1, \"repeats\": 0}, "                                           \
    "\"reallocate\": {\"rule\": \"" rule "\", \"work\": 10000}, "                                  \
    "\"replay\": {\"objective\": \"rate\", \"goal\": \"maximize\", \"restart_s\": 40, "            \
    "\"submitted\": {\"ps\": 1, \"workers\": 1}, "                                                 \
    "\"usage\": {\"ps_cpu\": \"p\", \"worker_cpu\": \"w\", \"of\": 2}}}"

/* From a server that is saturated: three samples, a checkpoint, a restart, and the rest of the work
 * at the new rate. */
static void trials_are_reallocated(void **state)
{
    static const char rows[] =
        "ps,workers,rate,p,w\n1,1,10,1.9,0.8\n2,1,20,1,1.2\n1,2,5,2,0.2\n2,2,1,2,1\n";
    char *t = file_with(rows), *on = file_with(MOVING("thresholds")),
         *off = file_with(MOVING("none"));
    struct dt_error e = DT_ERROR_INIT;
    struct dt_proc_result r, again;
    (void)state;
    assert_int_equal(
        simulate((const char *[]){"--spec", on, "--table", t, "--format=json", NULL}, &r), 0);
    assert_int_equal(
        simulate((const char *[]){"--spec", on, "--table", t, "--format=json", NULL}, &again), 0);
    assert_string_equal(r.out, again.out);
    struct json_object *o = dt_json_parse(r.out, "output", &e),
                       *one = dt_json_at(dt_json_get(o, "studies"), 0);
    assert_int_equal(dt_json_int(one, "reallocations", 0), 1);
    assert_true(dt_json_num(one, "gap_pct", NAN) == 0);
    /* 40 s, 30 s at 10 a second, 40 s, 9700 steps at 20 a second */
    assert_true(fabs(dt_json_num(one, "virtual_time_s", 0) - (40 + 30 + 40 + 485)) < 1e-6);
    json_object_put(o);
    dt_proc_result_free(&r);
    dt_proc_result_free(&again);
    assert_int_equal(
        simulate((const char *[]){"--spec", off, "--table", t, "--format=json", NULL}, &r), 0);
    o = dt_json_parse(r.out, "output", &e);
    one = dt_json_at(dt_json_get(o, "studies"), 0);
    assert_null(dt_json_get(one, "reallocations"));
    assert_true(dt_json_num(one, "gap_pct", NAN) == 50);
    json_object_put(o);
    dt_proc_result_free(&r);
    unlink(t);
    unlink(on);
    unlink(off);
    free(t);
    free(on);
    free(off);
}

static int make_files(void **state)
{
    struct dt_buf b = DT_BUF_INIT;
    (void)state;
    dt_buf_add(&b, "workers,opt,time_s,status\n");
    for (int w = 1; w <= 8; w++) {
        for (int o = 0; o < 2; o++) /* 7 adam is the best allowed, 2 sgd and 3 adam crash */
            dt_buf_addf(&b, "%d,%s,%d,%s\n", w, o ? "adam" : "sgd",
                        10 + 5 * (7 - w) * (7 - w) + 3 * !o, w == 2 + o ? "crashed" : "ok");
    }
    spec = file_with(SPEC);
    table = file_with(b.s);
    dt_buf_free(&b);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    unlink(spec);
    unlink(table);
    free(spec);
    free(table);
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_tells_every_study_and_their_summary),
        cmocka_unit_test(a_seed_gives_the_same_study_alone_or_among_others),
        cmocka_unit_test(text_names_the_best_and_the_reason),
        cmocka_unit_test(wrong_use_and_bad_input_exit_with_2),
        cmocka_unit_test(a_conditional_table_is_searched),
        cmocka_unit_test(suggestions_leave_out_what_is_inactive),
        cmocka_unit_test(a_past_gives_a_warm_start),
        cmocka_unit_test(only_the_highest_fidelity_is_what_was_found),
        cmocka_unit_test(trials_are_reallocated),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
