/* space: domains, constraints, enumeration, configurations as JSON. */
#include "space/cluster.h"
#include "space/space.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static double cpu_values[] = {2, 4, 8}, mem_values[] = {2048, 512, 4096}, opt_values[] = {0, 1, 2};
static char *mem_labels[] = {"2G", "512M", "4G"}, *opt_labels[] = {"sgd", "adam", "ada max"};
static double act_values[] = {0, 1};
static char *act_labels[] = {"relu", "sgd"};

static const struct dt_param ps = {
    .name = "ps", .kind = DT_PARAM_INT, .low = 0, .high = 4, .step = 1};
static const struct dt_param workers = {
    .name = "workers", .kind = DT_PARAM_INT, .low = 1, .high = 8, .step = 1};
static const struct dt_param cpus = {
    .name = "worker_cpus", .kind = DT_PARAM_INT, .nvalues = 3, .values = cpu_values};
static const struct dt_param mem = {.name = "ps_mem",
                                    .kind = DT_PARAM_INT,
                                    .nvalues = 3,
                                    .values = mem_values,
                                    .labels = mem_labels};
static const struct dt_param opt = {.name = "opt",
                                    .kind = DT_PARAM_LABEL,
                                    .hyper = true,
                                    .nvalues = 3,
                                    .values = opt_values,
                                    .labels = opt_labels};
static const struct dt_param act = {.name = "act",
                                    .kind = DT_PARAM_LABEL,
                                    .hyper = true,
                                    .nvalues = 2,
                                    .values = act_values,
                                    .labels = act_labels};
static const struct dt_param lr = {
    .name = "lr", .kind = DT_PARAM_FLOAT, .hyper = true, .log = true, .low = 1e-4, .high = 0.1};
static const struct dt_param momentum = {
    .name = "momentum", .kind = DT_PARAM_FLOAT, .hyper = true, .low = 0, .high = 0.9, .step = 0.1};

static struct dt_space *space_of(const struct dt_param *params, size_t n,
                                 const char *const *constraints, struct dt_error *e)
{
    struct dt_strv list = DT_STRV_INIT;
    for (; constraints && *constraints; constraints++)
        dt_strv_add(&list, *constraints);
    struct dt_space *s = dt_space_new(params, n, &list, NULL, 0, NULL, NULL, NULL, 0, e);
    dt_strv_free(&list);
    return s;
}

/* ---- domains ---- */

static void domains_count_their_values(void **state)
{
    static const struct {
        double low, high, step;
        enum dt_param_kind kind;
        double count, last;
    } cases[] = {{0, 4, 1, DT_PARAM_INT, 5, 4},          {1, 10, 4, DT_PARAM_INT, 3, 9},
                 {3, 3, 1, DT_PARAM_INT, 1, 3},          {0, 1, 0.1, DT_PARAM_FLOAT, 11, 1},
                 {0, 0.9, 0.1, DT_PARAM_FLOAT, 10, 0.9}, {0.1, 0.3, 0.1, DT_PARAM_FLOAT, 3, 0.3},
                 {0.5, 0.5, 0, DT_PARAM_FLOAT, 1, 0.5},  {0, 10, 4, DT_PARAM_FLOAT, 3, 8}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_param p = {.name = "p",
                             .kind = cases[i].kind,
                             .low = cases[i].low,
                             .high = cases[i].high,
                             .step = cases[i].step};
        assert_true(dt_param_count(&p) == cases[i].count);
        assert_true(dt_param_nth(&p, (size_t)cases[i].count - 1) == cases[i].last);
        for (size_t j = 0; j < (size_t)cases[i].count; j++)
            assert_true(dt_param_contains(&p, dt_param_nth(&p, j)));
    }
    assert_true(isinf(dt_param_count(&lr)));
    assert_true(dt_param_count(&opt) == 3);
    assert_true(dt_param_nth(&momentum, 3) == 0.3); /* the number that one writes */
}

static void domains_contain_their_values_only(void **state)
{
    (void)state;
    assert_true(dt_param_contains(&ps, 0) && dt_param_contains(&ps, 4));
    assert_false(dt_param_contains(&ps, 5) || dt_param_contains(&ps, -1) ||
                 dt_param_contains(&ps, 1.5));
    assert_false(dt_param_contains(&ps, NAN));
    assert_true(dt_param_contains(&cpus, 8) && !dt_param_contains(&cpus, 6));
    assert_true(dt_param_contains(&lr, 1e-4) && dt_param_contains(&lr, 0.1) &&
                !dt_param_contains(&lr, 0.2));
    assert_true(dt_param_contains(&momentum, 0.7) && !dt_param_contains(&momentum, 0.75));
}

/* Every value of a grid is reached from [0,1], the ends too, and nothing else. */
static void points_of_the_unit_interval_reach_every_value(void **state)
{
    static const struct dt_param grids[] = {
        {.name = "a", .kind = DT_PARAM_INT, .low = 1, .high = 8, .step = 1},
        {.name = "b", .kind = DT_PARAM_INT, .log = true, .low = 1, .high = 64, .step = 1},
        {.name = "c", .kind = DT_PARAM_INT, .log = true, .low = 32, .high = 1000, .step = 100},
        {.name = "d", .kind = DT_PARAM_INT, .low = 0, .high = 10, .step = 4},
        {.name = "e", .kind = DT_PARAM_FLOAT, .log = true, .low = 0.1, .high = 1.05, .step = 0.1},
        {.name = "f", .kind = DT_PARAM_FLOAT, .low = 0, .high = 1, .step = 0.25},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(grids); i++) {
        size_t n = (size_t)dt_param_count(&grids[i]), *hits = dt_xcalloc(n, sizeof(*hits));
        for (int u = 0; u <= 10000; u++) {
            double x = dt_param_at(&grids[i], u / 10000.0);
            size_t j = 0;
            while (j < n && dt_param_nth(&grids[i], j) != x)
                j++;
            if (j == n)
                fail_msg("%s: %g is off the grid", grids[i].name, x);
            hits[j]++;
        }
        for (size_t j = 0; j < n; j++)
            if (!hits[j])
                fail_msg("%s: value %zu is never reached", grids[i].name, j);
        free(hits);
    }
}

static void a_log_scale_spreads_orders_of_magnitude_evenly(void **state)
{
    (void)state;
    assert_true(dt_param_at(&lr, 0) == 1e-4);
    assert_true(dt_param_at(&lr, 1) == 0.1);
    assert_true(fabs(log10(dt_param_at(&lr, 1 / 3.0)) + 3) < 1e-9);
    assert_true(fabs(log10(dt_param_at(&lr, 2 / 3.0)) + 2) < 1e-9);
}

static void texts_stand_for_values(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    double x;
    (void)state;
    assert_int_equal(dt_param_parse(&opt, "adam", &x, &e), 0);
    assert_true(x == 1);
    assert_int_equal(dt_param_parse(&mem, "512M", &x, &e), 0);
    assert_true(x == 512);
    assert_int_equal(dt_param_parse(&mem, "2048", &x, &e), 0);
    assert_true(x == 2048);
    assert_int_equal(dt_param_parse(&mem, "4096M", &x, &e), 0);
    assert_true(x == 4096);
    assert_int_equal(dt_param_parse(&lr, "0.01", &x, &e), 0);
    assert_true(x == 0.01);
    assert_int_equal(dt_param_parse(&opt, "adamw", &x, &e), -1);
    assert_string_equal(e.text, "\"adamw\" is not one of the choices of opt");
    assert_int_equal(dt_param_parse(&ps, "9", &x, &e), -1);
    assert_string_equal(e.text, "ps: 9 is outside its domain");
    assert_int_equal(dt_param_parse(&ps, "two", &x, &e), -1);
    assert_string_equal(e.text, "ps: \"two\" is not a number");
    dt_error_clear(&e);
}

/* ---- constraints ---- */

static void constraints_hold_or_not(void **state)
{
    static const struct {
        const char *text;
        bool holds; /* at ps=2 workers=4 lr=0.01 opt=adam act=sgd ps_mem=2048 */
    } cases[] = {
        {"ps + workers <= 6", true},
        {"ps + workers < 6", false},
        {"ps == 2 && workers == 4", true},
        {"ps == 0 || workers != 4", false},
        {"workers % ps == 0", true},
        {"workers % 3 == 0", false},
        {"2 * workers % 5 == 3", true},
        {"ps > 0 ? lr > 0.1 : lr < 0.1", false},
        {"opt == \"adam\"", true},
        {"opt == 'sgd'", false},
        {"opt != \"ada max\"", true},
        {"act == \"sgd\"", true},
        {"opt == act", false},
        {"max(ps, workers) >= 4", true},
        {"ps_mem >= 1024", true},
        {"lr * workers <= 0.04", true},
        {"workers <= nodes * 2", true},
        {"workers <= nodes", false},
        {"ps/0 > 1", true},
        {"0 / (ps - 2)", true},
        {"!(ps == 2)", false},
        {"!(opt == \"sgd\") && ps != 3", true},
    };
    const struct dt_param params[] = {ps, workers, lr, opt, act, mem};
    const double x[] = {2, 4, 0.01, 1, 1, 2048};
    const struct dt_fact facts[] = {{"nodes", 2}};
    struct dt_error e = DT_ERROR_INIT;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_constraint *c =
            dt_constraint_new(cases[i].text, params, COUNT(params), facts, 1, &e);
        if (!c)
            fail_msg("%s", e.text);
        if (dt_constraint_holds(c, x) != cases[i].holds)
            fail_msg("%s", cases[i].text);
        assert_string_equal(dt_constraint_text(c), cases[i].text);
        dt_constraint_free(c);
    }
}

static void faulty_constraints_are_explained(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"ps + worker <= 6", "unknown name \"worker\"; did you mean \"workers\"?"},
        {"ps + zzzzzz <= 6", "zzzzzz"},
        {"ps + <= 6", "Unexpected"},
        {"ps +", "Unexpected end of expression"},
        {"(ps < 4", "parenthesis"},
        {"", "Expression is empty"},
        {"opt == \"adma\"", "no parameter has the value \"adma\"; did you mean \"adam\"?"},
        {"opt == \"adam", "the quote \" is not closed"},
        {"ps = 2", "= sets a value; write == to compare"},
        {"ps < 4, workers < 4", "these are 2 expressions; write each as a constraint of its own"},
        {"ps < 4 and workers < 4",
         "unexpected word \"and\"; the names here are ps, workers, opt; and, "
         "or, not are &&, ||, !"},
        {"works(ps)", ""},
    };
    const struct dt_param params[] = {ps, workers, opt};
    struct dt_error e = DT_ERROR_INIT;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_constraint *c =
            dt_constraint_new(cases[i].text, params, COUNT(params), NULL, 0, &e);
        if (c)
            fail_msg("\"%s\" was accepted", cases[i].text);
        char *prefix = dt_xasprintf("constraint \"%s\": ", cases[i].text);
        assert_true(dt_starts_with(e.text, prefix));
        free(prefix);
        if (!strstr(e.text, cases[i].error))
            fail_msg("%s; expected %s", e.text, cases[i].error);
    }
    dt_error_clear(&e);
}

static void what_is_not_known_breaks_no_constraint(void **state)
{
    const struct dt_param params[] = {ps, lr, opt};
    struct dt_error e = DT_ERROR_INIT;
    struct dt_constraint *c = dt_constraint_new("lr < 0.001 && ps < 2", params, 3, NULL, 0, &e);
    (void)state;
    assert_false(dt_constraint_holds(c, (double[]){1, 0.01, 0}));
    assert_true(dt_constraint_holds(c, (double[]){1, NAN, 0}));
    assert_false(dt_constraint_holds(c, (double[]){1, 0.01, NAN})); /* opt is not in it */
    dt_constraint_free(c);
}

/* ---- spaces ---- */

static void enumeration_is_the_product_less_the_constraints(void **state)
{
    const struct dt_param params[] = {ps, workers, cpus, opt};
    static const char *const constraints[] = {"ps + workers <= 8", "workers * worker_cpus <= 24",
                                              "opt != \"sgd\" || ps > 0", NULL};
    struct dt_error e = DT_ERROR_INIT;
    struct dt_space *s = space_of(params, 4, constraints, &e);
    size_t n = 0, excluded[3] = {0};
    (void)state;
    assert_non_null(s);
    for (int p = 0; p <= 4; p++) {
        for (int w = 1; w <= 8; w++) {
            for (int c = 0; c < 3; c++) {
                for (int o = 0; o < 3; o++) {
                    double x[] = {p, w, cpu_values[c], o};
                    if (p + w > 8)
                        excluded[0]++;
                    else if (w * cpu_values[c] > 24)
                        excluded[1]++;
                    else if (o == 0 && p == 0)
                        excluded[2]++;
                    else
                        assert_true(n < s->npoints && dt_config_equal(s->points + n++ * 4, x, 4));
                }
            }
        }
    }
    assert_true(s->enumerated && s->product == 360);
    assert_int_equal(s->npoints, n);
    assert_int_equal(s->nexclusions, 3);
    for (size_t i = 0; i < 3; i++) {
        size_t j = 0;
        while (strcmp(s->exclusions[j].reason, constraints[i]) != 0)
            j++;
        assert_int_equal(s->exclusions[j].count, excluded[i]);
    }
    dt_space_free(s);
}

static void continuous_and_huge_spaces_are_not_enumerated(void **state)
{
    const struct dt_param params[] = {workers, lr};
    struct dt_param many[6];
    struct dt_error e = DT_ERROR_INIT;
    struct dt_space *s = space_of(params, 2, NULL, &e);
    (void)state;
    assert_false(s->enumerated);
    assert_true(isinf(s->product) && s->npoints == 0);
    dt_space_free(s);
    for (int i = 0; i < 6; i++)
        many[i] = workers;
    many[5].high = 4;
    s = space_of(many, 6, NULL, &e); /* 8^5 * 4 = 131072 */
    assert_false(s->enumerated);
    assert_true(s->product == 131072);
    dt_space_free(s);
    many[5].high = 3;
    s = space_of(many, 6, NULL, &e);
    assert_true(s->enumerated);
    assert_int_equal(s->npoints, 98304);
    dt_space_free(s);
}

static void an_empty_space_says_what_emptied_it(void **state)
{
    const struct dt_param params[] = {ps, workers};
    static const char *const constraints[] = {"workers > 8 || ps > 4", "ps < 0", NULL};
    struct dt_error e = DT_ERROR_INIT;
    (void)state;
    assert_null(space_of(params, 2, constraints, &e));
    assert_string_equal(
        e.text, "the search space is empty: 40 excluded by \"workers > 8 || ps > 4\"; widen the "
                "ranges or loosen the constraints");
    dt_error_clear(&e);
}

static const char *odd_only(void *arg, const struct dt_space *s, const double *x)
{
    (void)s;
    return fmod(x[0], 2) == 0 ? arg : NULL;
}

static void candidates_and_filters_narrow_a_space(void **state)
{
    const struct dt_param params[] = {workers, lr};
    const double candidates[] = {1, 0.01, 2, 0.01, 3, 0.05, 7, 0.001};
    struct dt_strv constraints = DT_STRV_INIT;
    struct dt_error e = DT_ERROR_INIT;
    (void)state;
    dt_strv_add(&constraints, "workers < 5");
    struct dt_space *s =
        dt_space_new(params, 2, &constraints, NULL, 0, odd_only, "even", candidates, 4, &e);
    assert_true(s->enumerated);
    assert_int_equal(s->npoints, 2);
    assert_true(dt_config_equal(s->points, (double[]){1, 0.01}, 2));
    assert_true(dt_config_equal(s->points + 2, (double[]){3, 0.05}, 2));
    const char *why;
    assert_false(dt_space_allows(s, (double[]){2, 0.01}, &why));
    assert_string_equal(why, "even");
    assert_false(dt_space_allows(s, (double[]){7, 0.01}, &why));
    assert_string_equal(why, "workers < 5");
    assert_true(dt_space_allows(s, (double[]){1, 0.02}, NULL));
    char *text = dt_space_describe(s);
    assert_non_null(strstr(text, "subject to     workers < 5"));
    assert_non_null(strstr(text, "2 configurations"));
    assert_non_null(strstr(text, "1 excluded: even"));
    free(text);
    dt_space_free(s);
    dt_strv_free(&constraints);
}

/* Of a space that cannot be enumerated the DT configurations are counted, and what none of the
 * hyperparameters can make possible. */
static void dt_configurations_beside_continuous_parameters(void **state)
{
    struct dt_param params[] = {ps, workers, lr};
    static const char *const some[] = {"ps + workers <= 3", "lr < 0.05 || workers == 1", NULL};
    static const char *const none[] = {"ps + workers > 99", NULL};
    struct dt_error e = DT_ERROR_INIT;
    (void)state;
    params[2].hyper = true;
    struct dt_space *s = space_of(params, 3, some, &e);
    assert_false(s->enumerated);
    char *text = dt_space_describe(s);
    assert_non_null(strstr(text, "\n  6 DT configurations\n  34 excluded: ps + workers <= 3\n"));
    free(text);
    dt_space_free(s);
    assert_null(space_of(params, 3, none, &e));
    assert_string_equal(
        e.text, "the search space is empty: 40 excluded by \"ps + workers > 99\"; widen the "
                "ranges or loosen the constraints");
    dt_error_clear(&e);
    params[0].when = (char *)"lr > 0.01";
    s = space_of(params, 3, some, &e);
    assert_int_equal(s->ndt, 0);
    dt_space_free(s);
}

/* ---- configurations ---- */

static void configurations_go_through_json_unchanged(void **state)
{
    const struct dt_param params[] = {ps, mem, lr, opt};
    static const double configs[][4] = {
        {2, 2048, 0.013, 1}, {0, 512, 1e-4, 2}, {3, NAN, NAN, NAN}, {1, 999, 0.1, 0}};
    static const char *const texts[] = {
        "{\"ps\":2,\"ps_mem\":\"2G\",\"lr\":0.013,\"opt\":\"adam\"}",
        "{\"ps\":0,\"ps_mem\":\"512M\",\"lr\":0.0001,\"opt\":\"ada max\"}",
        "{\"ps\":3,\"ps_mem\":null,\"lr\":null,\"opt\":null}",
        "{\"ps\":1,\"ps_mem\":\"999\",\"lr\":0.1,\"opt\":\"sgd\"}"};
    struct dt_error e = DT_ERROR_INIT;
    struct dt_space *s = space_of(params, 4, NULL, &e);
    (void)state;
    for (size_t i = 0; i < COUNT(configs); i++) {
        struct json_object *o = dt_config_to_json(s, configs[i]), *again;
        char *text = dt_json_text(o);
        double x[4];
        assert_string_equal(text, texts[i]);
        again = dt_json_parse(text, "c", &e);
        assert_int_equal(dt_config_from_json(s, again, x, &e), 0);
        assert_true(dt_config_equal(x, configs[i], 4));
        json_object_put(o);
        json_object_put(again);
        free(text);
    }
    char *text = dt_config_text(s, configs[0]);
    assert_string_equal(text, "ps=2 ps_mem=2G lr=0.013 opt=adam");
    free(text);
    assert_string_equal(dt_space_label(s, configs[0], "ps_mem"), "2G");
    assert_string_equal(dt_space_label(s, configs[0], "opt"), "adam");
    assert_null(dt_space_label(s, configs[2], "opt"));
    assert_null(dt_space_label(s, configs[0], "ps"));
    assert_null(dt_space_label(s, configs[0], "layout"));
    assert_true(dt_space_value(s, configs[2], "lr", 7) == 7 &&
                dt_space_value(s, configs[2], "none", 8) == 8);
    dt_space_free(s);
}

static void wrong_configurations_are_refused(void **state)
{
    static const struct {
        const char *json, *error;
    } cases[] = {
        {"[]", "a configuration must be an object like {\"ps\": 1, \"workers\": 4}"},
        {"{\"ps\": 1}", "configuration: \"opt\" is missing"},
        {"{\"ps\": 1, \"opt\": \"sgd\", \"x\": 1}",
         "configuration: \"x\" is not a parameter of the space"},
        {"{\"ps\": \"1\", \"opt\": \"sgd\"}",
         "configuration: \"ps\": \"1\" is not one of its values"},
        {"{\"ps\": 1, \"opt\": \"adamw\"}",
         "configuration: \"opt\": \"adamw\" is not one of its values"},
        {"{\"ps\": 1, \"opt\": 1}", "configuration: \"opt\": 1 is not one of its values"},
        {"{\"ps\": true, \"opt\": \"sgd\"}",
         "configuration: \"ps\": true is not one of its values"},
        {"{\"ps\": 1e999, \"opt\": \"sgd\"}", "configuration: \"ps\": not a finite number"},
    };
    const struct dt_param params[] = {ps, opt};
    struct dt_error e = DT_ERROR_INIT;
    struct dt_space *s = space_of(params, 2, NULL, &e);
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        double x[2];
        struct json_object *o = dt_json_parse(cases[i].json, "c", &e);
        assert_int_equal(dt_config_from_json(s, o, x, &e), -1);
        assert_string_equal(e.text, cases[i].error);
        json_object_put(o);
    }
    dt_error_clear(&e);
    dt_space_free(s);
}

/* ---- conditions ---- */

/* The parameter with another name and condition. */
static struct dt_param only_when(struct dt_param p, char *name, char *when)
{
    p.name = name;
    p.when = when;
    return p;
}

static size_t count_equal(const struct dt_space *s, const double *x)
{
    size_t n = 0;
    for (size_t i = 0; i < s->npoints; i++)
        n += dt_config_equal(s->points + i * s->n, x, s->n);
    return n;
}

static void a_conditional_space_holds_each_configuration_once(void **state)
{
    const struct dt_param five = {
        .kind = DT_PARAM_INT, .hyper = true, .low = 1, .high = 5, .step = 1};
    const struct dt_param params[] = {only_when(five, "m", "opt == \"sgd\""), opt};
    static const double expected[][2] = {{1, 0}, {2, 0},   {3, 0},  {4, 0},
                                         {5, 0}, {NAN, 1}, {NAN, 2}};
    struct dt_error e = DT_ERROR_INIT;
    struct dt_space *s = space_of(params, 2, NULL, &e);
    (void)state;
    assert_non_null(s);
    assert_true(s->enumerated && s->product == 7);
    assert_int_equal(s->npoints, COUNT(expected));
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_true(dt_config_equal(s->points + 2 * i, expected[i], 2));
    char *text = dt_space_describe(s);
    assert_non_null(strstr(text, "m              1 .. 5 (when opt == \"sgd\")\n"));
    assert_non_null(strstr(text, "  7 configurations\n"));
    free(text);
    dt_space_free(s);
}

/* Against all combinations of all values, settled: none is missing, none is there twice. */
static void conditions_may_depend_on_conditional_parameters(void **state)
{
    const struct dt_param params[] = {
        only_when(cpus, "c", "b == 3 || a == 0"), /* where a == 0 there is no b, so no c either */
        only_when(workers, "b", "a > 0 && opt != \"adam\""),
        only_when(ps, "a", "act == \"relu\""),
        opt,
        act,
        only_when(workers, "d", "workers % 2 == 0"),
        workers,
    };
    static const char *const constraints[] = {"b + workers <= 9", "opt != \"sgd\" || workers < 7",
                                              NULL};
    struct dt_error e = DT_ERROR_INIT;
    struct dt_space *s = space_of(params, 7, constraints, &e), *all;
    double product = 0;
    (void)state;
    if (!s)
        fail_msg("%s", e.text);
    struct dt_param plain[7];
    for (size_t i = 0; i < 7; i++)
        plain[i] = only_when(params[i], params[i].name, NULL);
    plain[1].high = 3; /* so that all combinations can be enumerated; the others are counted */
    plain[5].high = 2;
    all = space_of(plain, 7, NULL, &e);
    assert_true(all && all->enumerated);
    for (size_t i = 0; i < all->npoints; i++) {
        double *x = all->points + i * 7;
        dt_space_settle(s, x);
        assert_int_equal(count_equal(s, x), dt_space_allows(s, x, NULL));
    }
    for (int o = 0; o < 3; o++) {
        /* not relu; a == 0; a > 0: adam has no b, the others have 8, and c where b == 3 */
        double inner = 1 + 1 + (o == 1 ? 4 : 4 * (7 + 3));
        product += inner * (4 + 4 * 8);
    }
    assert_true(s->enumerated && s->product == product);
    size_t excluded = 0;
    for (size_t i = 0; i < s->nexclusions; i++)
        excluded += s->exclusions[i].count;
    assert_true((double)(s->npoints + excluded) == product);
    for (size_t i = 0; i < s->npoints; i++)
        for (size_t j = 0; j < 7; j++)
            assert_true(isnan(s->points[i * 7 + j]) == !dt_space_active(s, s->points + i * 7, j));
    dt_space_free(all);
    dt_space_free(s);
}

/* Two branches of five parameters each: 10^10 combinations, 2 * 10^5 configurations. */
static void sizes_count_distinct_configurations(void **state)
{
    struct dt_param params[11];
    char names[10][16];
    struct dt_error e = DT_ERROR_INIT;
    const struct dt_param digit = {
        .kind = DT_PARAM_INT, .hyper = true, .low = 0, .high = 9, .step = 1};
    (void)state;
    params[0] = act;
    for (int i = 0; i < 10; i++) {
        snprintf(names[i], sizeof(names[i]), "p%d", i);
        params[i + 1] = only_when(digit, names[i], i % 2 ? "act == \"relu\"" : "act == \"sgd\"");
    }
    struct dt_space *s = space_of(params, 11, NULL, &e);
    assert_false(s->enumerated);
    assert_true(s->product == 200000);
    dt_space_free(s);
    params[1].high = params[2].high = 3;
    s = space_of(params, 11, NULL, &e);
    assert_true(s->enumerated && s->product == 80000);
    assert_int_equal(s->npoints, 80000);
    dt_space_free(s);
    params[1].kind = DT_PARAM_FLOAT; /* continuous, in one branch */
    params[1].step = 0;
    s = space_of(params, 11, NULL, &e);
    assert_true(!s->enumerated && isinf(s->product));
    dt_space_free(s);
}

static void faulty_conditions_are_explained(void **state)
{
    static const struct {
        char *a, *b, *c; /* conditions of the parameters a, b and c, each 1 to 3 */
        const char *error;
    } cases[] = {
        {"aa > 1", NULL, NULL, "S.json:7: a.when: condition \"aa > 1\": unknown name \"aa\"; did "},
        {"b >", NULL, NULL, "S.json:7: a.when: condition \"b >\": Unexpected end of expression"},
        {"b = 1", NULL, NULL,
         "S.json:7: a.when: condition \"b = 1\": = sets a value; write == to compare"},
        {"b > 1, c > 1", NULL, NULL,
         "S.json:7: a.when: condition \"b > 1, c > 1\": these are 2 expressions; join "
         "them by &&"},
        {"b == \"x\"", NULL, NULL,
         "S.json:7: a.when: condition \"b == \"x\"\": no parameter has the value "
         "\"x\""},
        {"a > 1", NULL, NULL,
         "S.json:7: a.when: condition \"a > 1\": it says when a has a value, so it "
         "cannot mention "
         "a; use other parameters"},
        {"b > 1", "a > 1", NULL,
         "S.json:7: a.when: conditions go round in a circle: a on b on a; take one of "
         "these out"},
        {"b > 1", "c > 1", "b > 1",
         "S.json:7: b.when: conditions go round in a circle: b on c on b; take one of "
         "these out"},
        {"b > 3", NULL, NULL,
         "S.json:7: a.when: condition \"b > 3\": it holds for no values of the "
         "parameters, so a "
         "would never have one; loosen it, or take a out"},
        {"c > 1", "a > 1 && c < 2", NULL,
         "S.json:7: b.when: condition \"a > 1 && c < 2\": it holds for no values of "
         "the "
         "parameters, so b would never have one; loosen it, or take b out"},
        {"(b - 1) / 0 > 9 && b < 2", NULL, NULL, "S.json:7: a.when: condition"}, /* NaN */
        {"b > 2", "c > 2", NULL, NULL},
        {"1", NULL, NULL, NULL},
        {"nodes > 3", "a > 1", NULL, NULL}, /* never here, but elsewhere */
    };
    static const struct dt_fact facts[] = {{"nodes", 2}};
    static const struct dt_strv none = DT_STRV_INIT;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_error e = DT_ERROR_INIT;
        struct dt_param params[3];
        char *const when[] = {cases[i].a, cases[i].b, cases[i].c};
        char *const names[] = {"a", "b", "c"}, *const places[] = {"S.json:7: a.when",
                                                                  "S.json:7: b.when",
                                                                  "S.json:7: c.when"};
        for (int j = 0; j < 3; j++) {
            params[j] = only_when(workers, names[j], when[j]);
            params[j].high = 3;
            params[j].when_place = places[j];
        }
        struct dt_space *s = dt_space_new(params, 3, &none, facts, 1, NULL, NULL, NULL, 0, &e);
        if (cases[i].error && (s || !dt_starts_with(e.text, cases[i].error)))
            fail_msg("%s; expected %s", s ? "no error" : e.text, cases[i].error);
        if (!cases[i].error && !s)
            fail_msg("%s", e.text);
        dt_space_free(s);
        dt_error_clear(&e);
    }
}

static void equal_candidates_count_once(void **state)
{
    const struct dt_param params[] = {opt, only_when(momentum, "m", "opt == \"sgd\"")};
    const double rows[] = {1, 0.5, 0, 0.5, 1, 0.1, 1, NAN, 0, 0.1, 0, 0.5, 2, 0};
    static const double expected[][2] = {{1, NAN}, {0, 0.5}, {0, 0.1}, {2, NAN}};
    static const struct dt_strv none = DT_STRV_INIT;
    struct dt_error e = DT_ERROR_INIT;
    struct dt_space *s = dt_space_new(params, 2, &none, NULL, 0, NULL, NULL, rows, 7, &e);
    (void)state;
    assert_int_equal(s->npoints, COUNT(expected));
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_true(dt_config_equal(s->points + 2 * i, expected[i], 2));
    dt_space_free(s);
}

static void inactive_parameters_stay_out_of_json_and_text(void **state)
{
    static const struct {
        const char *json, *error; /* or how it is written again */
    } cases[] = {
        {"{\"opt\":\"adam\"}", NULL},
        {"{\"m\":null,\"opt\":\"adam\",\"n\":null}", NULL},
        {"{\"m\":0.3,\"opt\":\"sgd\",\"n\":0}", NULL},
        {"{\"m\":null,\"opt\":\"sgd\"}", NULL}, /* as submitted, so n is not known either */
        {"{\"m\":0.3,\"opt\":\"adam\"}", "configuration: \"m\" has a value, but its condition opt "
                                         "== \"sgd\" does not hold; leave it "
                                         "out"},
        {"{\"opt\":\"adam\",\"n\":1}", "configuration: \"n\" has a value, but its "
                                       "condition m > 0 does not hold; leave it out"},
        {"{\"opt\":\"sgd\"}",
         "configuration: \"m\" is missing, as its condition opt == \"sgd\" holds"},
        {"{\"opt\":\"sgd\",\"m\":0.1}",
         "configuration: \"n\" is missing, as its condition m > 0 holds"},
    };
    const struct dt_param params[] = {only_when(momentum, "m", "opt == \"sgd\""), opt,
                                      only_when(ps, "n", "m > 0")};
    struct dt_error e = DT_ERROR_INIT;
    struct dt_space *s = space_of(params, 3, NULL, &e);
    double x[3];
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct json_object *o = dt_json_parse(cases[i].json, "c", &e);
        int rc = dt_config_from_json(s, o, x, &e);
        json_object_put(o);
        if ((rc < 0) != (cases[i].error != NULL))
            fail_msg("%s: %s", cases[i].json, rc < 0 ? e.text : "no error");
        if (cases[i].error) {
            assert_string_equal(e.text, cases[i].error);
            continue;
        }
        o = dt_config_to_json(s, x);
        char *text = dt_json_text(o);
        assert_string_equal(text, cases[i == 1 ? 0 : i].json);
        free(text);
        json_object_put(o);
    }
    const double adam[] = {NAN, 1, NAN}, sgd[] = {0.5, 0, 3};
    char *text = dt_config_text(s, adam);
    assert_string_equal(text, "opt=adam");
    free(text);
    /* what is not given is as in another configuration, where it is active */
    struct json_object *o = dt_json_parse("{\"opt\": \"adam\"}", "c", &e);
    assert_int_equal(dt_config_complete(s, o, sgd, x, &e), 0);
    assert_true(dt_config_equal(x, adam, 3));
    json_object_put(o);
    o = dt_json_parse("{\"n\": 2}", "c", &e);
    assert_int_equal(dt_config_complete(s, o, sgd, x, &e), 0);
    assert_true(dt_config_equal(x, (double[]){0.5, 0, 2}, 3));
    assert_int_equal(dt_config_complete(s, o, adam, x, &e), -1);
    json_object_put(o);
    dt_error_clear(&e);
    dt_space_free(s);
}

static void what_is_inactive_breaks_no_constraint(void **state)
{
    const struct dt_param params[] = {opt, only_when(momentum, "m", "opt == \"sgd\"")};
    static const char *const constraints[] = {"m > 0.75", NULL};
    struct dt_error e = DT_ERROR_INIT;
    struct dt_space *s = space_of(params, 2, constraints, &e);
    (void)state;
    assert_int_equal(s->npoints, 4); /* sgd 0.8 and 0.9, adam, ada max */
    assert_true(s->product == 12);
    dt_space_free(s);
}

/* ---- clusters ---- */

static void clusters_go_through_json_and_give_facts(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct json_object *o = dt_json_parse(
        "{\"partition\": \"main\", \"backfill\": false, \"max_nodes\": 3, \"nodes\": ["
        "{\"count\": 2, \"cpus\": 4, \"mem\": 4096},"
        "{\"count\": 1, \"cpus\": 16, \"mem\": 1024, \"gpus\": 2, \"tmp\": 7},"
        "{\"count\": 3, \"cpus\": 4, \"mem\": 4096}]}",
        "c", &e);
    struct dt_cluster *c = dt_cluster_from_json(o, &e);
    struct dt_fact facts[DT_CLUSTER_FACTS];
    static const struct dt_fact expected[] = {{"cluster_nodes", 6}, {"cluster_cpus", 36},
                                              {"cluster_gpus", 2},  {"node_cpus", 16},
                                              {"node_mem", 4096},   {"node_gpus", 2}};
    (void)state;
    assert_non_null(c);
    assert_int_equal(c->n, 2); /* equal nodes are one class, the largest first */
    assert_int_equal(c->classes[0].cpus, 16);
    assert_int_equal(c->classes[1].count, 5);
    assert_true(!c->backfill && c->limits.max_nodes == 3 && isinf(c->limits.max_time));
    dt_cluster_facts(c, facts);
    for (int i = 0; i < DT_CLUSTER_FACTS; i++) {
        assert_string_equal(facts[i].name, expected[i].name);
        assert_true(facts[i].value == expected[i].value);
    }
    struct json_object *again = dt_cluster_to_json(c);
    char *text = dt_json_text(again);
    assert_string_equal(
        text,
        "{\"partition\":\"main\",\"backfill\":false,\"max_nodes\":3,\"max_time\":null,\"nodes\":["
        "{\"count\":1,\"cpus\":16,\"mem\":1024,\"tmp\":7,\"gpus\":2},"
        "{\"count\":5,\"cpus\":4,\"mem\":4096,\"tmp\":0,\"gpus\":0}]}");
    free(text);
    json_object_put(again);
    json_object_put(o);
    dt_cluster_free(c);
    o = dt_json_parse("{}", "c", &e);
    assert_null(dt_cluster_from_json(o, &e));
    json_object_put(o);
    dt_error_clear(&e);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(domains_count_their_values),
        cmocka_unit_test(domains_contain_their_values_only),
        cmocka_unit_test(points_of_the_unit_interval_reach_every_value),
        cmocka_unit_test(a_log_scale_spreads_orders_of_magnitude_evenly),
        cmocka_unit_test(texts_stand_for_values),
        cmocka_unit_test(constraints_hold_or_not),
        cmocka_unit_test(faulty_constraints_are_explained),
        cmocka_unit_test(what_is_not_known_breaks_no_constraint),
        cmocka_unit_test(enumeration_is_the_product_less_the_constraints),
        cmocka_unit_test(continuous_and_huge_spaces_are_not_enumerated),
        cmocka_unit_test(an_empty_space_says_what_emptied_it),
        cmocka_unit_test(candidates_and_filters_narrow_a_space),
        cmocka_unit_test(configurations_go_through_json_unchanged),
        cmocka_unit_test(dt_configurations_beside_continuous_parameters),
        cmocka_unit_test(wrong_configurations_are_refused),
        cmocka_unit_test(a_conditional_space_holds_each_configuration_once),
        cmocka_unit_test(conditions_may_depend_on_conditional_parameters),
        cmocka_unit_test(sizes_count_distinct_configurations),
        cmocka_unit_test(faulty_conditions_are_explained),
        cmocka_unit_test(equal_candidates_count_once),
        cmocka_unit_test(inactive_parameters_stay_out_of_json_and_text),
        cmocka_unit_test(what_is_inactive_breaks_no_constraint),
        cmocka_unit_test(clusters_go_through_json_and_give_facts),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
