/* spec: every section, every kind of mistake with its exact message, and options merged into the
 * document. */
#include "spec/spec.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static struct dt_spec *parse(const char *text, struct dt_error *e)
{
    struct json_object *json = dt_json_parse(text, "S.json", e);
    struct dt_spec *s = json ? dt_spec_parse(json, text, "S.json", e) : NULL;
    json_object_put(json);
    return s;
}

static struct dt_spec *good(const char *text)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_spec *s = parse(text, &e);
    if (!s)
        fail_msg("%s", e.text);
    return s;
}

static const struct dt_param *param(const struct dt_spec *s, const char *name)
{
    for (size_t i = 0; i < s->nparams; i++)
        if (strcmp(s->params[i].name, name) == 0)
            return &s->params[i];
    fail_msg("no parameter %s", name);
    return NULL;
}

/* ---- what is right ---- */

static void an_empty_spec_has_the_documented_defaults(void **state)
{
    struct dt_spec *s = good("{}");
    (void)state;
    assert_int_equal(s->nparams, 0);
    assert_string_equal(s->algorithm, "auto");
    assert_true(s->seed == 1 && s->max_configs == 60 && s->min_configs == 12 && s->window == 5);
    assert_true(s->max_failures == 3 && s->parallel == 1 && s->grid_levels == 5);
    assert_true(s->min_improve == 0.02 && isinf(s->deadline));
    assert_true(s->repeats == 8 && isinf(s->max_node_hours));
    assert_true(s->objective == DT_OBJECTIVE_TIME && !s->maximize && s->layout == DT_LAYOUT_AUTO);
    assert_null(s->target.metric);
    assert_null(s->candidates);
    assert_null(s->replay.objective);
    char *text = dt_spec_objective_text(s);
    assert_string_equal(text, "time");
    free(text);
    dt_spec_free(s);
}

static void as_many_as_fit_is_a_matter_of_the_layout(void **state)
{
    static const struct {
        const char *text;
        size_t parallel;
    } cases[] = {
        {"{\"layout\": \"steps\"}", SIZE_MAX},
        {"{\"layout\": \"steps\", \"search\": {\"parallel\": \"auto\"}}", SIZE_MAX},
        {"{\"layout\": \"steps\", \"search\": {\"parallel\": 3}}", 3},
        {"{\"search\": {\"parallel\": \"auto\"}}", 1},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct json_object *o = dt_json_parse(cases[i].text, "S.json", NULL);
        struct dt_spec *s = dt_spec_parse(o, cases[i].text, "S.json", NULL);
        assert_true(s && s->parallel == cases[i].parallel);
        assert_true(s->layout == (i < 3 ? DT_LAYOUT_STEPS : DT_LAYOUT_AUTO));
        dt_spec_free(s);
        json_object_put(o);
    }
}

static const char full[] =
    "{ \"version\": 1,\n"
    "  \"dt\": { \"ps\": {\"low\": 0, \"high\": 4}, \"workers\": {\"low\": 2, \"high\": 16, "
    "\"step\": 2},\n"
    "          \"worker_cpus\": {\"choices\": [8, 2, 4]}, \"ps_mem\": {\"choices\": [\"2G\", "
    "\"512M\"]},\n"
    "          \"worker_gpus\": 1, \"worker_mem\": {\"low\": \"1G\", \"high\": \"4G\", \"step\": "
    "\"1G\"} },\n"
    "  \"hyperparameters\": { \"lr\": {\"type\": \"float\", \"low\": 1e-4, \"high\": 0.1, \"log\": "
    "true, \"default\": 0.01},\n"
    "                       \"batch\": {\"type\": \"int\", \"low\": 32, \"high\": 1024, \"log\": "
    "true},\n"
    "                       \"momentum\": {\"low\": 0.0, \"high\": 0.9, \"step\": 0.1},\n"
    "                       \"opt\": {\"choices\": [\"sgd\", \"adam\"], \"default\": \"adam\"},\n"
    "                       \"nesterov\": [true, false], \"decay\": [0.1, 1, 0.01], \"epochs\": 3, "
    "\"mode\": \"fast\",\n"
    "                       \"whole\": {\"low\": 1, \"high\": 3} },\n"
    "  \"constraints\": [\"ps + workers <= 24\", \"batch >= 64\"],\n"
    "  \"candidates\": \"rows.csv\",\n"
    "  \"objective\": {\"metric\": \"accuracy\", \"goal\": \"maximize\"},\n"
    "  \"target\": {\"metric\": \"loss\", \"at_most\": 0.5}, \"quality\": {\"metric\": "
    "\"acc\", \"at_least\": 0.9},\n"
    "  \"layout\": \"het\", \"launch\": {\"coordinator\": \"chief\"},\n"
    "  \"search\": {\"algorithm\": \"grid\", \"seed\": 7, \"max_configs\": 40, \"min_configs\": 3, "
    "\"window\": 4,\n"
    "             \"min_improve\": 5, \"max_failures\": 2, \"parallel\": 8, \"grid_levels\": 3, "
    "\"repeats\": 0, \"max_node_hours\": 12.5, \"deadline\": \"1-12\"},\n"
    "  \"replay\": {\"map\": {\"ps\": \"n_ps\", \"workers\": \"n_workers\"}, \"where\": "
    "{\"model\": \"resnet-50\", \"n\": 3},\n"
    "             \"objective\": \"samples_per_s\", \"goal\": \"maximize\", \"duration\": "
    "\"time_s\", \"status\": \"status\",\n"
    "             \"ok\": [\"ok\", \"fine\"]} }\n";

static void every_parameter_gets_its_domain(void **state)
{
    struct dt_spec *s = good(full);
    const struct dt_param *p;
    (void)state;
    assert_int_equal(s->nparams, 15);
    assert_string_equal(s->params[0].name, "ps"); /* in SPEC's order */
    assert_string_equal(s->params[6].name, "lr");
    p = param(s, "workers");
    assert_true(p->kind == DT_PARAM_INT && !p->hyper && p->low == 2 && p->high == 16 &&
                p->step == 2);
    p = param(s, "worker_cpus");
    assert_true(p->kind == DT_PARAM_INT && p->nvalues == 3 && p->values[0] == 8 && !p->labels);
    p = param(s, "ps_mem");
    assert_true(p->kind == DT_PARAM_INT && p->values[0] == 2048 && p->values[1] == 512);
    assert_string_equal(p->labels[1], "512M");
    p = param(s, "worker_gpus");
    assert_true(p->nvalues == 1 && p->values[0] == 1);
    p = param(s, "worker_mem");
    assert_true(p->low == 1024 && p->high == 4096 && p->step == 1024 && dt_param_count(p) == 4);
    p = param(s, "lr");
    assert_true(p->kind == DT_PARAM_FLOAT && p->hyper && p->log && p->low == 1e-4 && p->step == 0);
    p = param(s, "batch");
    assert_true(p->kind == DT_PARAM_INT && p->log && p->step == 1);
    assert_true(dt_param_count(param(s, "momentum")) == 10);
    p = param(s, "nesterov");
    assert_true(p->kind == DT_PARAM_LABEL && strcmp(p->labels[0], "true") == 0);
    p = param(s, "decay");
    assert_true(p->kind == DT_PARAM_FLOAT && p->nvalues == 3 && p->values[1] == 1);
    assert_true(param(s, "epochs")->kind == DT_PARAM_INT && param(s, "epochs")->values[0] == 3);
    assert_string_equal(param(s, "mode")->labels[0], "fast");
    assert_true(param(s, "whole")->kind == DT_PARAM_INT);
    for (size_t i = 0; i < s->nparams; i++) {
        bool lr = strcmp(s->params[i].name, "lr") == 0, opt = strcmp(s->params[i].name, "opt") == 0;
        assert_true(lr    ? s->submitted[i] == 0.01
                    : opt ? s->submitted[i] == 1
                          : isnan(s->submitted[i]));
    }
    dt_spec_free(s);
}

static void every_section_is_read(void **state)
{
    struct dt_spec *s = good(full);
    (void)state;
    assert_int_equal(s->constraints.n, 2);
    assert_string_equal(s->constraints.v[1], "batch >= 64");
    assert_string_equal(s->candidates, "rows.csv");
    assert_string_equal(s->coordinator, "chief");
    assert_true(s->objective == DT_OBJECTIVE_METRIC && s->maximize);
    char *text = dt_spec_objective_text(s);
    assert_string_equal(text, "max:accuracy");
    free(text);
    assert_string_equal(s->target.metric, "loss");
    assert_true(s->target.value == 0.5 && !s->target.at_least);
    assert_string_equal(s->quality.metric, "acc");
    assert_true(s->quality.value == 0.9 && s->quality.at_least);
    assert_true(fabs(dt_bound_margin(&s->quality, 0.8) + 0.1) < 1e-12);
    assert_true(dt_bound_margin(&s->target, 0.4) > 0);
    assert_true(s->layout == DT_LAYOUT_HET);
    assert_string_equal(s->algorithm, "grid");
    assert_true(s->seed == 7 && s->max_configs == 40 && s->min_configs == 3 && s->window == 4);
    assert_true(s->min_improve == 0.05 && s->max_failures == 2 && s->parallel == 8 &&
                s->grid_levels == 3);
    assert_true(s->deadline == 129600 && s->max_node_hours == 12.5 && s->repeats == 0);
    assert_string_equal(s->replay.columns.v[0], "n_ps");
    assert_string_equal(s->replay.columns.v[2], "worker_cpus");
    assert_string_equal(s->replay.params.v[1], "workers");
    assert_string_equal(s->replay.where_values.v[0], "resnet-50");
    assert_string_equal(s->replay.where_columns.v[1], "n");
    assert_string_equal(s->replay.where_values.v[1], "3");
    assert_true(s->replay.maximize && s->replay.ok.n == 2);
    dt_spec_free(s);
}

static void conditions_are_kept_with_their_place(void **state)
{
    struct dt_spec *s = good("{\"hyperparameters\": {\"opt\": [\"sgd\", \"adam\"],\n"
                             "\"m\": {\"low\": 0.0, \"high\": 0.9,\n"
                             "\"when\": \"opt == 'sgd'\", \"default\": 0.5}}}");
    struct dt_param copy;
    (void)state;
    assert_null(param(s, "opt")->when);
    dt_param_copy(&copy, param(s, "m"));
    assert_string_equal(copy.when, "opt == 'sgd'");
    assert_string_equal(copy.when_place, "S.json:3: hyperparameters.m.when");
    assert_true(s->submitted[1] == 0.5);
    dt_param_free(&copy);
    dt_spec_free(s);
}

static void objectives_have_a_direction(void **state)
{
    static const struct {
        const char *text;
        enum dt_objective_kind kind;
        bool maximize;
    } cases[] = {
        {"{\"objective\": {\"metric\": \"time\"}}", DT_OBJECTIVE_TIME, false},
        {"{\"objective\": {\"metric\": \"time\", \"goal\": \"minimize\"}}", DT_OBJECTIVE_TIME,
         false},
        {"{\"objective\": {\"metric\": \"turnaround\"}}", DT_OBJECTIVE_TURNAROUND, false},
        {"{\"objective\": {\"metric\": \"cost\"}}", DT_OBJECTIVE_COST, false},
        {"{\"objective\": {\"metric\": \"throughput\"}}", DT_OBJECTIVE_THROUGHPUT, true},
        {"{\"objective\": {\"metric\": \"loss\", \"goal\": \"minimize\"}}", DT_OBJECTIVE_METRIC,
         false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_spec *s = good(cases[i].text);
        assert_true(s->objective == cases[i].kind && s->maximize == cases[i].maximize);
        dt_spec_free(s);
    }
}

/* ---- what is wrong ---- */

#define DT(domain) "{\n\"dt\": {\"ps\": " domain "}}"
#define NO_NULL "a value is needed here, this is null; without the key the default holds"
#define HP(domain) "{\n\"hyperparameters\": {\n\"lr\": " domain "}}"
#define PBT(keys, search, sections)                                                                  \
    "{\"search\": {" search ", \"early_stop\": {\"rule\": \"pbt\", " keys "}}, \"objective\": "       \
    "{\"metric\": \"loss\", \"goal\": \"minimize\"}, " sections "}"
#define LR "\"hyperparameters\": {\"lr\": {\"low\": 0.1, \"high\": 1}}"
#define SEARCH(pair) "{\"search\":\n{" pair "}}"
#define REPLAY(pairs) "{\"dt\": {\"ps\": 1},\n\"replay\": {" pairs "}}"

static const struct {
    const char *text, *error;
} wrong[] = {
    {"[]", "S.json: an object is needed here, this is an array"},
    {"\"x\"", "S.json: an object is needed here, this is a string"},
    {"{\"version\": 2}", "S.json:1: version: this dt-tune reads version 1"},
    {"{\"version\": \"1\"}", "S.json:1: version: this dt-tune reads version 1"},
    {"{\n\"hyperparameter\": {}}",
     "S.json:2: hyperparameter: unknown key; did you mean \"hyperparameters\"?"},
    {"{\"zzzzzzzz\": {}}",
     "S.json:1: zzzzzzzz: unknown key; known are: version, dt, hyperparameters, constraints, "
     "candidates, objective, target, quality, search, metrics, layout, replay, history, "
     "monitor, reallocate, checkpoint, placement, launch"},
    {"{\"dt\": []}", "S.json:1: dt: an object is needed here, this is an array"},
    {"{\"dt\": {\n\"worker\": 1}}", "S.json:2: dt.worker: unknown key; did you mean \"workers\"?"},
    {"{\"dt\": {\n\"lr\": 1}}",
     "S.json:2: dt.lr: unknown key; known are: ps, workers, ps_cpus, worker_cpus, ps_mem, "
     "worker_mem, ps_tmp, worker_tmp, ps_gpus, worker_gpus, ps_nodes, worker_nodes, "
     "ps_constraint, worker_constraint, partition"},
    {DT("{\"low\": 0}"), "S.json:2: dt.ps: \"high\" is missing (or give \"choices\")"},
    {DT("{\"high\": 4}"), "S.json:2: dt.ps: \"low\" is missing (or give \"choices\")"},
    {DT("{\"low\": 4, \"high\": 1}"), "S.json:2: dt.ps: low (4) is above high (1)"},
    {DT("{\"low\": -1, \"high\": 1}"), "S.json:2: dt.ps: -1 is too small, the least is 0"},
    {DT("{\"low\": 0, \"high\": 1.5}"),
     "S.json:2: dt.ps: low and high of an int must be whole numbers"},
    {DT("{\"low\": 0, \"high\": 4, \"type\": \"float\"}"),
     "S.json:2: dt.ps: whole numbers are needed here"},
    {DT("[0.5]"), "S.json:2: dt.ps: whole numbers are needed here"},
    {DT("{\"low\": 0, \"high\": 4, \"setp\": 1}"),
     "S.json:2: dt.ps.setp: unknown key; did you mean \"step\"?"},
    {DT("{\"low\": 0, \"high\": 4, \"step\": 0}"),
     "S.json:2: dt.ps.step: the step must be above 0, and whole for an int"},
    {DT("{\"low\": 0, \"high\": 4, \"step\": 0.5}"),
     "S.json:2: dt.ps.step: the step must be above 0, and whole for an int"},
    {DT("{\"low\": 0, \"high\": 4, \"log\": true}"),
     "S.json:2: dt.ps.log: a log scale needs numbers above 0"},
    {DT("{\"low\": 0, \"high\": 4, \"log\": 1}"),
     "S.json:2: dt.ps.log: true or false is needed here, this is a number"},
    {DT("{\"low\": \"0\", \"high\": 4}"),
     "S.json:2: dt.ps.low: a number is needed here, this is a string"},
    {DT("{\"low\": null, \"high\": 4}"), "S.json:2: dt.ps.low: " NO_NULL},
    {DT("{\"low\": 0, \"high\": 4, \"default\": 1}"),
     "S.json:2: dt.ps.default: the job itself says what it was submitted with; only "
     "hyperparameters take a default"},
    {DT("[]"), "S.json:2: dt.ps: the list of choices is empty"},
    {DT("[1, 2, 1]"), "S.json:2: dt.ps: the choice 1 stands twice"},
    {DT("[\"one\"]"), "S.json:2: dt.ps: \"one\" is no number"},
    {DT("{\"choices\": 3}"), "S.json:2: dt.ps.choices: an array is needed here, this is a number"},
    {DT("{\"choices\": null}"), "S.json:2: dt.ps.choices: " NO_NULL},
    {DT("{\"choices\": [1], \"low\": 1}"),
     "S.json:2: dt.ps: give either choices or low and high, not both"},
    {DT("null"), "S.json:2: dt.ps: " NO_NULL},
    {"{\"dt\": {\"workers\": {\"low\": 0, \"high\": 4}}}",
     "S.json:1: dt.workers: 0 is too small, the least is 1"},
    {"{\"dt\": {\"worker_cpus\": [4, 0]}}",
     "S.json:1: dt.worker_cpus: 0 is too small, the least is 1"},
    {"{\"dt\": {\"ps_constraint\": [\"fast\", 2]}}",
     "S.json:1: dt.ps_constraint: features as for --constraint: that is a string"},
    {"{\"dt\": {\"ps_constraint\": [true]}}",
     "S.json:1: dt.ps_constraint: features as for --constraint: that is a string"},
    {"{\"dt\": {\"worker_constraint\": [\"a b\"]}}",
     "S.json:1: dt.worker_constraint: \"a b\" is not features as for --constraint"},
    {"{\"dt\": {\"worker_constraint\": {\"low\": 1, \"high\": 2}}}",
     "S.json:1: dt.worker_constraint: words are needed here: {\"choices\": [\"a\", \"b\"]}"},
    {"{\"dt\": {\"partition\": [\"main,short\"]}}",
     "S.json:1: dt.partition: \"main,short\" is not the name of a partition"},
    {"{\"dt\": {\"partition\": \"\"}}",
     "S.json:1: dt.partition: \"\" is not the name of a partition"},
    {"{\"dt\": {\"partitions\": [\"a\"]}}",
     "S.json:1: dt.partitions: unknown key; did you mean \"partition\"?"},
    {"{\"hyperparameters\": {\"partition\": [1, 2]}}",
     "S.json:1: hyperparameters.partition: this belongs under \"dt\" in SPEC"},
    {"{\"dt\": {\"ps_mem\": [\"2X\"]}}",
     "S.json:1: dt.ps_mem: \"2X\" is no size; write it like \"512M\" or \"4G\""},
    {"{\"dt\": {\"ps_mem\": [\"2G\", \"2048M\"]}}",
     "S.json:1: dt.ps_mem: the choice 2048M stands twice"},
    {"{\"dt\": {\"ps_mem\": [512, \"2G\"]}}",
     "S.json:1: dt.ps_mem: write all sizes as strings (\"2G\") or all as MiB"},
    {"{\"hyperparameters\": 1}",
     "S.json:1: hyperparameters: an object is needed here, this is a number"},
    {"{\"hyperparameters\": {\"learning rate\": 1}}",
     "S.json:1: hyperparameters.learning rate: a name must consist of letters, digits and _, as it "
     "becomes "
     "DT_PARAM_learning rate"},
    {"{\"hyperparameters\": {\"1x\": 1}}", "S.json:1: hyperparameters.1x: a name must consist of "
                                           "letters, digits and _, as it becomes DT_PARAM_1x"},
    {"{\"hyperparameters\": {\"\": 1}}", "S.json:1: hyperparameters.: a name must consist of "
                                         "letters, digits and _, as it becomes DT_PARAM_"},
    {"{\"hyperparameters\": {\"workers\": 1}}",
     "S.json:1: hyperparameters.workers: this belongs under \"dt\" in SPEC"},
    {"{\"hyperparameters\": {\"layout\": [\"a\"]}}",
     "S.json:1: hyperparameters.layout: this name is taken by dt-tune"},
    {HP("{\"type\": \"double\", \"low\": 0, \"high\": 1}"),
     "S.json:3: hyperparameters.lr.type: \"double\" is not a type; \"int\" or \"float\" with low "
     "and high, "
     "\"categorical\" with choices"},
    {HP("{\"type\": 1, \"low\": 0, \"high\": 1}"),
     "S.json:3: hyperparameters.lr.type: a string is needed here, this is a number"},
    {HP("{\"type\": \"categorical\", \"low\": 0, \"high\": 1}"),
     "S.json:3: hyperparameters.lr.type: a categorical parameter has choices, not low and high"},
    {HP("{\"type\": \"bogus\", \"choices\": [1]}"),
     "S.json:3: hyperparameters.lr.type: \"bogus\" is not a type; \"int\" or \"float\" with low "
     "and high, "
     "\"categorical\" with choices"},
    {HP("{\"low\": 0.0, \"high\": 0.1, \"log\": true}"),
     "S.json:3: hyperparameters.lr.log: a log scale needs numbers above 0"},
    {HP("{\"choices\": [\"a\", \"b\"], \"log\": true}"),
     "S.json:3: hyperparameters.lr.log: a log scale is for numbers, these choices are words"},
    {HP("{\"choices\": [0, 1], \"log\": true}"),
     "S.json:3: hyperparameters.lr.log: a log scale needs numbers above 0"},
    {HP("{\"low\": 0, \"high\": 1e999}"),
     "S.json:3: hyperparameters.lr.high: a finite number is needed here"},
    {HP("{\"low\": 0, \"high\": NaN}"),
     "S.json:3: hyperparameters.lr.high: a finite number is needed here"},
    {HP("[\"a\", 1]"),
     "S.json:3: hyperparameters.lr: the choices must be all numbers or all strings"},
    {HP("[1, \"a\"]"),
     "S.json:3: hyperparameters.lr: the choices must be all numbers or all strings"},
    {HP("[[1]]"), "S.json:3: hyperparameters.lr: a number is needed here, this is an array"},
    {HP("[\"a\", \"a\"]"), "S.json:3: hyperparameters.lr: the choice a stands twice"},
    {HP("{\"choices\": [\"a\"], \"default\": \"b\"}"),
     "S.json:3: hyperparameters.lr.default: \"b\" is not one of the choices"},
    {HP("{\"low\": 0, \"high\": 1, \"when\": 1}"),
     "S.json:3: hyperparameters.lr.when: a string is needed here, this is a number"},
    {HP("{\"low\": 0, \"high\": 1, \"when\": \"\"}"),
     "S.json:3: hyperparameters.lr.when: an empty value; write one or leave it out"},
    {HP("{\"low\": 0, \"high\": 1, \"when\": null}"),
     "S.json:3: hyperparameters.lr.when: " NO_NULL},
    {HP("{\"low\": 0, \"high\": 1, \"whne\": \"a\"}"),
     "S.json:3: hyperparameters.lr.whne: unknown key; did you mean \"when\"?"},
    {DT("{\"low\": 0, \"high\": 1, \"when\": \"workers > 1\"}"),
     "S.json:2: dt.ps.when: only hyperparameters take a condition, a job always has its servers, "
     "workers and budgets; use \"constraints\""},
    {HP("{\"low\": 0, \"high\": 1, \"default\": \"b\"}"),
     "S.json:3: hyperparameters.lr.default: a number is needed here, this is a string"},
    {"{\"constraints\": \"ps < 4\"}",
     "S.json:1: constraints: an array of strings is needed here, this is a string"},
    {"{\"constraints\": [1]}",
     "S.json:1: constraints: an array of strings is needed here, this is a number"},
    {"{\"candidates\": [1]}", "S.json:1: candidates: a string is needed here, this is an array"},
    {"{\"objective\": \"time\"}",
     "S.json:1: objective: an object is needed here, this is a string"},
    {"{\"objective\": {}}", "S.json:1: objective: \"metric\" is missing: time, throughput, cost, "
                            "turnaround or a metric's name"},
    {"{\"objective\": {\"metric\": \"loss\"}}",
     "S.json:1: objective: \"goal\" is missing: should loss be minimized or maximized?"},
    {"{\"objective\": {\"metric\": \"loss\", \"goal\": \"min\"}}",
     "S.json:1: objective.goal: \"min\" is not a goal; minimize or maximize"},
    {"{\"objective\": {\"metric\": \"time\", \"goal\": \"maximize\"}}",
     "S.json:1: objective.goal: time can only be minimized"},
    {"{\"objective\": {\"metric\": \"throughput\", \"goal\": \"minimize\"}}",
     "S.json:1: objective.goal: throughput can only be maximized"},
    {"{\"target\": {\"metric\": \"acc\"}}",
     "S.json:1: target: \"metric\" and one of \"at_least\" and \"at_most\" are needed"},
    {"{\"target\": {\"metric\": \"acc\", \"at_least\": 1, \"at_most\": 2}}",
     "S.json:1: target: \"metric\" and one of \"at_least\" and \"at_most\" are needed"},
    {"{\"target\": {\"metric\": \"acc\", \"at_least\": \"x\"}}",
     "S.json:1: target.at_least: a number is needed here, this is a string"},
    {"{\"target\": {\"metric\": \"acc\", \"at_least\": NaN}}",
     "S.json:1: target.at_least: a finite number is needed here"},
    {"{\"checkpoint\": {\"grace_s\": 1e999}}",
     "S.json:1: checkpoint.grace_s: a finite number is needed here"},
    {SEARCH("\"max_node_hours\": Infinity"),
     "S.json:2: search.max_node_hours: a finite number is needed here"},
    {"{\"quality\": {\"metric\": \"acc\"}}",
     "S.json:1: quality: \"metric\" and one of \"at_least\" and \"at_most\" are needed"},
    {SEARCH("\"alg\": 1"),
     "S.json:2: search.alg: unknown key; known are: algorithm, seed, max_configs, min_configs, "
     "min_improve, window, repeats, max_failures, parallel, max_node_hours, deadline, grid_levels, "
     "early_stop"},
    {SEARCH("\"early_stop\": \"asha\""), "S.json:2: search.early_stop: trials are stopped early by "
                                         "the metric that is the objective; give "
                                         "one: min:METRIC or max:METRIC"},
    {"{\"dt\": {\"workers\": 2},\n\"reallocate\": \"modle\"}",
     "S.json:2: reallocate: \"modle\" is not a rule; did you mean model"},
    {"{\"dt\": {\"workers\": 2},\n\"reallocate\": {\"hihg\": 90}}",
     "S.json:2: reallocate.hihg: unknown key; did you mean \"high\"?"},
    {"{\"dt\": {\"workers\": 2},\n\"reallocate\": {\"rule\": false}}",
     "S.json:2: reallocate.rule: a string is needed here, this is a boolean"},
    {"{\"dt\": {\"workers\": 2},\n\"reallocate\": {\"in_place\": 1}}",
     "S.json:2: reallocate.in_place: true or false is needed here, this is a number"},
    {"{\"dt\": {\"workers\": 2},\n\"reallocate\": {\"high\": 20}}",
     "S.json:2: reallocate: \"low\" must be below \"high\", both between 0 and 100 per cent"},
    {"{\"dt\": {\"workers\": 2},\n\"reallocate\": {\"low_samples\": 33}}",
     "S.json:2: reallocate: no more than 32 samples are looked at"},
    {"{\"dt\": {\"workers\": 2}, \"monitor\": false,\n\"reallocate\": \"model\"}",
     "S.json:2: reallocate: it needs to know what the tasks use; leave \"monitor\": false out"},
    {"{\"hyperparameters\": {\"lr\": [1, 2]},\n\"objective\": {\"metric\": \"loss\", \"goal\": \"minimize\"}, "
     "\"search\": {\"parallel\": 4, \"early_stop\": {\"rule\": \"pbt\", \"interval\": 1}},\n"
     "\"reallocate\": \"thresholds\"}",
     "S.json:3: reallocate: a population (pbt) keeps its DT configurations; leave one of both out"},
    {"{\"dt\": {\"workers\": 2},\n\"checkpoint\": {\"signal\": \"KILL\"}}",
     "S.json:2: checkpoint.signal: \"KILL\" is not a signal for this; there are USR1, USR2, TERM, INT and HUP"},
    {"{\"dt\": {\"workers\": 2},\n\"checkpoint\": {\"exit_code\": 256}}",
     "S.json:2: checkpoint.exit_code: a program's exit code is at most 255"},
    {"{\"dt\": {\n\"ps_cpus\": \"auto\"}}",
     "S.json:2: dt.ps_cpus: only worker_gpus, worker_cpus, worker_mem and worker_nodes can be \"auto\""},
    {"{\"dt\": {\"workers\": 2},\n\"placement\": {\"bind\": \"all\"}}",
     "S.json:2: placement.bind: \"all\" is not a way to bind tasks; auto or none"},
    {"{\"dt\": {\"workers\": 2},\n\"placement\": {\"bnd\": \"none\"}}",
     "S.json:2: placement.bnd: unknown key; did you mean \"bind\"?"},
    {"{\"dt\": {\"workers\": 2},\n\"placement\": {\"topology\": \"here\"}}",
     "S.json:2: placement.topology: an absolute path is needed here: tasks look for it on their nodes"},
    {"{\"dt\": {\"workers\": 2},\n\"checkpoint\": {\"grace_s\": 0}}",
     "S.json:2: checkpoint: \"grace_s\" must be above 0"},
    {SEARCH("\"early_stop\": \"ash\""),
     "S.json:2: search.early_stop: a rule is needed: none, median, asha, hyperband or pbt"},
    {SEARCH("\"early_stop\": {\"min_step\": 2}"),
     "S.json:2: search.early_stop: a rule is needed: none, median, asha, hyperband or pbt"},
    {SEARCH("\"early_stop\": {\"rule\": \"median\", \"min_step\": 9, \"max_step\": 9}"),
     "S.json:2: search.early_stop: \"min_step\" must be below \"max_step\""},
    {SEARCH("\"early_stop\": {\"rule\": \"asha\", \"reduction\": 1}"),
     "S.json:2: search.early_stop: no step may be below 0, and \"reduction\" must be above 1"},
    {PBT("\"intervall\": 1", "\"parallel\": 4", LR),
     "S.json:1: search.early_stop.intervall: unknown key; did you mean \"interval\"?"},
    {PBT("\"quantile\": 0.25", "\"parallel\": 4", LR),
     "S.json:1: search.early_stop: \"interval\" is missing: after how many steps, again and again, "
     "the worst trials go on from the best"},
    {PBT("\"interval\": -1", "\"parallel\": 4", LR),
     "S.json:1: search.early_stop: \"interval\" is missing: after how many steps, again and again, "
     "the worst trials go on from the best"},
    {PBT("\"interval\": \"1\"", "\"parallel\": 4", LR),
     "S.json:1: search.early_stop.interval: a number of steps is needed here, this is a string"},
    {PBT("\"interval\": 1, \"quantile\": 0.6", "\"parallel\": 4", LR),
     "S.json:1: search.early_stop: \"quantile\" must be above 0 and at most 0.5"},
    {PBT("\"interval\": 1, \"resample\": 1.5", "\"parallel\": 4", LR),
     "S.json:1: search.early_stop: \"resample\" must be between 0 and 1"},
    {PBT("\"interval\": 1", "\"seed\": 4", LR),
     "S.json:1: search.early_stop: the population are the trials at once: let \"parallel\" be 2 at "
     "least (4 to 20 are usual)"},
    {PBT("\"interval\": 1", "\"parallel\": 4", "\"dt\": {\"workers\": {\"low\": 1, \"high\": 4}}"),
     "S.json:1: search.early_stop: pbt changes hyperparameters, and there are none"},
    {PBT("\"interval\": 1", "\"parallel\": 4", LR ", \"candidates\": \"c.csv\""),
     "S.json:1: search.early_stop: pbt changes hyperparameters freely and cannot keep to "
     "\"candidates\"; use constraints"},
    {"{\"search\": {\"parallel\": 4, \"early_stop\": {\"rule\": \"pbt\", \"interval\": 1}}, \"replay\": "
     "{\"objective\": \"loss\"}}",
     "S.json:1: search.early_stop: pbt compares trials by the metric that is the objective; give one: "
     "min:METRIC or max:METRIC"},
    {SEARCH("\"seed\": -1"),
     "S.json:2: search.seed: a whole number between 0 and 1000000000 is needed here"},
    {SEARCH("\"seed\": 1.5"),
     "S.json:2: search.seed: a whole number between 0 and 1000000000 is needed here"},
    {SEARCH("\"max_configs\": 0"),
     "S.json:2: search.max_configs: a whole number between 1 and 1000000000 is needed here"},
    {SEARCH("\"parallel\": \"2\""),
     "S.json:2: search.parallel: a whole number between 1 and 1000000000 is needed here"},
    {SEARCH("\"grid_levels\": 1"),
     "S.json:2: search.grid_levels: a whole number between 2 and 1000000000 is needed here"},
    {SEARCH("\"min_improve\": 101"),
     "S.json:2: search.min_improve: per cent between 0 and 100 are needed here"},
    {SEARCH("\"min_improve\": \"2\""),
     "S.json:2: search.min_improve: a number of per cent is needed here, this is a string"},
    {SEARCH("\"repeats\": -1"),
     "S.json:2: search.repeats: a whole number between 0 and 1000000000 is needed here"},
    {SEARCH("\"max_node_hours\": 0"),
     "S.json:2: search.max_node_hours: a number of hours above 0 is needed here"},
    {SEARCH("\"max_node_hours\": \"5\""),
     "S.json:2: search.max_node_hours: a number of hours is needed here, this is a string"},
    {SEARCH("\"deadline\": 90"),
     "S.json:2: search.deadline: a string is needed here, this is a number"},
    {SEARCH("\"deadline\": \"soon\""), "S.json:2: search.deadline: \"soon\" is not a time; write "
                                       "it as Slurm does: \"90\" (minutes), \"1:30:00\", \"1-12\""},
    {SEARCH("\"deadline\": \"0\""), "S.json:2: search.deadline: \"0\" is not a time; write it as "
                                    "Slurm does: \"90\" (minutes), \"1:30:00\", \"1-12\""},
    {"{\"layout\": \"mixed\"}",
     "S.json:1: layout: \"mixed\" is not a layout; there are auto, het, packed and steps"},
    {"{\"layout\": 1}", "S.json:1: layout: a string is needed here, this is a number"},
    {"{\"layout\": null}", "S.json:1: layout: " NO_NULL},
    {REPLAY(""),
     "S.json:2: replay: \"objective\" is missing: the column that is to be minimized or maximized"},
    {REPLAY("\"objective\": \"t\", \"map\": 1"),
     "S.json:2: replay.map: an object is needed here, this is a number"},
    {REPLAY("\"objective\": \"t\", \"map\": {\"pss\": \"n\"}"),
     "S.json:2: replay.map.pss: unknown key; did you mean \"ps\"?"},
    {REPLAY("\"objective\": \"t\", \"map\": {\"ps\": 1}"),
     "S.json:2: replay.map.ps: the name of a column is needed here, this is a number"},
    {REPLAY("\"objective\": \"t\", \"where\": {\"a\": null}"),
     "S.json:2: replay.where.a: a string or a number is needed here, this is null"},
    {REPLAY("\"objective\": \"t\", \"where\": {\"a\": [1]}"),
     "S.json:2: replay.where.a: a string or a number is needed here, this is an array"},
    {REPLAY("\"objective\": \"t\", \"ok\": \"ok\""),
     "S.json:2: replay.ok: an array of strings is needed here, this is a string"},
    {REPLAY("\"objective\": \"t\", \"goal\": \"up\""),
     "S.json:2: replay.goal: \"up\" is not a goal; minimize or maximize"},
    {REPLAY("\"objective\": \"t\", \"usage\": {\"ps_cp\": \"a\"}"),
     "S.json:2: replay.usage.ps_cp: unknown key; did you mean \"ps_cpu\"?"},
    {REPLAY("\"objective\": \"t\", \"usage\": {\"of\": 0}"),
     "S.json:2: replay.usage.of: what stands for 100 % must be above 0"},
    {REPLAY("\"objective\": \"t\", \"restart_s\": -1"),
     "S.json:2: replay.restart_s: it may not be below 0"},
    {REPLAY("\"objective\": \"t\", \"submitted\": 1"),
     "S.json:2: replay.submitted: an object is needed here, this is a number"},
};

static void every_mistake_has_its_place_and_cure(void **state)
{
    size_t bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct dt_error e = DT_ERROR_INIT;
        struct dt_spec *s = parse(wrong[i].text, &e);
        if (s || strcmp(e.text, wrong[i].error) != 0) {
            print_error("%s\n  gave     %s\n  expected %s\n", wrong[i].text,
                        s ? "no error" : e.text, wrong[i].error);
            bad++;
        }
        dt_spec_free(s);
        dt_error_clear(&e);
    }
    assert_int_equal(bad, 0);
}

static void an_unknown_algorithm_is_named(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    (void)state;
    assert_null(parse("{\"search\": {\"algorithm\": \"rnadom\"}}", &e));
    assert_string_equal(
        e.text, "S.json:1: search.algorithm: \"rnadom\" is not an algorithm; did you mean random");
    dt_error_clear(&e);
}

/* ---- options ---- */

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

/* The merged document as text, or "error: ...". Caller frees. */
static char *merged(const char *const *words)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_submission *s = submission(words);
    char *text, *name, *result;
    struct json_object *o = dt_spec_merge(s, &text, &name, &e);
    struct dt_spec *spec = o ? dt_spec_parse(o, text, name, &e) : NULL;
    result = spec ? dt_json_text(o) : dt_xasprintf("error: %s", e.text);
    dt_spec_free(spec);
    json_object_put(o);
    dt_error_clear(&e);
    dt_submission_free(s);
    free(text);
    free(name);
    return result;
}

#define WORDS(...)                                                                                 \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static void options_become_sections_of_the_document(void **state)
{
    static const struct {
        const char *words[8], *json;
    } cases[] = {
        {WORDS("dt-tune"), "{}"},
        {WORDS("dt-ps=0-4"), "{\"dt\":{\"ps\":{\"low\":0,\"high\":4}}}"},
        {WORDS("dt-ps=0-16:4"), "{\"dt\":{\"ps\":{\"low\":0,\"high\":16,\"step\":4}}}"},
        {WORDS("dt-workers=1,2,4"), "{\"dt\":{\"workers\":{\"choices\":[1,2,4]}}}"},
        {WORDS("dt-workers=3"), "{\"dt\":{\"workers\":{\"choices\":[3]}}}"},
        {WORDS("dt-workers=1-3,8,10-14:2"),
         "{\"dt\":{\"workers\":{\"choices\":[1,2,3,8,10,12,14]}}}"},
        {WORDS("dt-ps=0-4", "dt-ps=1-2"), "{\"dt\":{\"ps\":{\"low\":1,\"high\":2}}}"},
        {WORDS("dt-param=lr=1e-4..1e-1:log"),
         "{\"hyperparameters\":{\"lr\":{\"low\":1e-4,\"high\":1e-1,\"log\":true}}}"},
        {WORDS("dt-param=batch=32..256:log2"),
         "{\"hyperparameters\":{\"batch\":{\"choices\":[32,64,128,256],\"log\":true}}}"},
        {WORDS("dt-param=n=1..9223372036854775807:log2", "dt-param=n=1..8:log2"),
         "{\"hyperparameters\":{\"n\":{\"choices\":[1,2,4,8],\"log\":true}}}"},
        {WORDS("dt-param=m=0.5..1.5:0.25"),
         "{\"hyperparameters\":{\"m\":{\"low\":0.5,\"high\":1.5,\"step\":0.25}}}"},
        {WORDS("dt-param=n=1..8"), "{\"hyperparameters\":{\"n\":{\"low\":1,\"high\":8}}}"},
        {WORDS("dt-param=opt={sgd,adam}"),
         "{\"hyperparameters\":{\"opt\":{\"choices\":[\"sgd\",\"adam\"]}}}"},
        {WORDS("dt-param=b={16,32}"), "{\"hyperparameters\":{\"b\":{\"choices\":[16,32]}}}"},
        {WORDS("dt-param=b={16,x}"), "{\"hyperparameters\":{\"b\":{\"choices\":[\"16\",\"x\"]}}}"},
        {WORDS("dt-param=opt=sgd"), "{\"hyperparameters\":{\"opt\":{\"choices\":[\"sgd\"]}}}"},
        /* what a shell makes of --dt-param=opt={sgd,adam,lamb} */
        {WORDS("dt-param=opt=sgd", "dt-param=opt=adam", "dt-param=opt=lamb", "dt-param=b=3"),
         "{\"hyperparameters\":{\"opt\":{\"choices\":[\"sgd\",\"adam\",\"lamb\"]},\"b\":{"
         "\"choices\":[3]}}}"},
        {WORDS("dt-param=opt=sgd", "dt-param=optimizer=adam"),
         "{\"hyperparameters\":{\"opt\":{\"choices\":[\"sgd\"]},\"optimizer\":{\"choices\":["
         "\"adam\"]}}}"},
        {WORDS("dt-objective=cost"), "{\"objective\":{\"metric\":\"cost\"}}"},
        {WORDS("dt-objective=max:acc"),
         "{\"objective\":{\"metric\":\"acc\",\"goal\":\"maximize\"}}"},
        {WORDS("dt-objective=min:loss"),
         "{\"objective\":{\"metric\":\"loss\",\"goal\":\"minimize\"}}"},
        {WORDS("dt-target=acc>=0.9"), "{\"target\":{\"metric\":\"acc\",\"at_least\":0.9}}"},
        {WORDS("dt-target=loss<=1e-3"), "{\"target\":{\"metric\":\"loss\",\"at_most\":1e-3}}"},
        {WORDS("dt-max-configs=9", "dt-parallel=2", "dt-min-improve=2:5", "dt-deadline=1-12",
               "dt-repeats=0", "dt-max-node-hours=2.5", "dt-layout=packed"),
         "{\"search\":{\"max_configs\":9,\"parallel\":2,\"min_improve\":2,\"window\":5,"
         "\"deadline\":\"1-12\",\"repeats\":0,\"max_node_hours\":2.5},\"layout\":\"packed\"}"},
        {WORDS("dt-min-improve=0.5%"), "{\"search\":{\"min_improve\":0.5}}"},
        {WORDS("dt-dry-run", "ntasks=4", "partition=main"), "{}"},
    };
    size_t bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *json = merged(cases[i].words);
        if (strcmp(json, cases[i].json) != 0) {
            print_error("%s gave     %s\n  expected %s\n", cases[i].words[0], json, cases[i].json);
            bad++;
        }
        free(json);
    }
    assert_int_equal(bad, 0);
}

static void wrong_options_are_named(void **state)
{
#define RANGE(v) "\"" v "\" is not a range; write it like 0-4, 1,2,4 or 0-16:4"
#define CHOICES(v) "\"" v "\" is not a list of choices; write it like {sgd,adam}"
    static const struct {
        const char *word, *error;
    } cases[] = {
        {"dt-ps=4-0", RANGE("4-0")},
        {"dt-ps=", RANGE("")},
        {"dt-ps=a", RANGE("a")},
        {"dt-ps=-4", RANGE("-4")},
        {"dt-ps=1,", RANGE("1,")},
        {"dt-ps=1,,2", RANGE("1,,2")},
        {"dt-ps=0-4:0", RANGE("0-4:0")},
        {"dt-ps=0-4:", RANGE("0-4:")},
        {"dt-ps=1 2", RANGE("1 2")},
        {"dt-ps=0-999999999", RANGE("0-999999999")},
        {"dt-param=lr",
         "\"lr\": write it like lr=1e-4..0.1:log, batch=32..1024:log2 or opt={sgd,adam}"},
        {"dt-param==1",
         "\"=1\": write it like lr=1e-4..0.1:log, batch=32..1024:log2 or opt={sgd,adam}"},
        {"dt-param=lr=1..x", "\"lr=1..x\": \"x\" is not a number"},
        {"dt-param=lr=..2", "\"lr=..2\": \"\" is not a number"},
        {"dt-param=lr=1..2:logg",
         "\"lr=1..2:logg\": \":logg\": after the colon comes log, log2 or a step"},
        {"dt-param=b=0..8:log2", "\"b=0..8:log2\": :log2 doubles from low to high, so both must be "
                                 "whole, above 0 and in order"},
        {"dt-param=opt={sgd,adam", "\"opt={sgd,adam\": " CHOICES("{sgd,adam")},
        {"dt-param=opt={}", "\"opt={}\": " CHOICES("{}")},
        {"dt-param=opt={a,,b}", "\"opt={a,,b}\": " CHOICES("{a,,b}")},
        {"dt-param=opt={a,}", "\"opt={a,}\": " CHOICES("{a,}")},
        {"dt-objective=speed", "\"speed\" is not an objective; time, throughput, cost, turnaround, "
                               "min:METRIC or max:METRIC"},
        {"dt-objective=max:", "\"max:\": the metric's name is missing after the colon"},
        {"dt-target=acc", "\"acc\": write it like accuracy>=0.9 or loss<=0.1"},
        {"dt-target=acc>0.9", "\"acc>0.9\": write it like accuracy>=0.9 or loss<=0.1"},
        {"dt-target=>=0.9", "\">=0.9\": write it like accuracy>=0.9 or loss<=0.1"},
        {"dt-max-configs=0", "\"0\": a whole number between 1 and 1000000 is needed"},
        {"dt-parallel=many", "\"many\": a whole number between 1 and 1000000 is needed"},
        {"dt-min-improve=x",
         "\"x\": write it like 2 or 2:5 (per cent, over the last 5 configurations)"},
        {"dt-min-improve=2:0",
         "\"2:0\": write it like 2 or 2:5 (per cent, over the last 5 configurations)"},
        {"dt-deadline=1h",
         "\"1h\" is not a time; write it as Slurm does: 90 (minutes), 1:30:00, 1-12"},
        {"dt-layout=both", "\"both\" is not a layout; there are auto, het, packed and steps"},
    };
    size_t bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *json = merged((const char *[]){cases[i].word, NULL});
        char *expected = dt_xasprintf("error: --%.*s: %s", (int)strcspn(cases[i].word, "="),
                                      cases[i].word, cases[i].error);
        if (strcmp(json, expected) != 0) {
            print_error("%s gave     %s\n  expected %s\n", cases[i].word, json, expected);
            bad++;
        }
        free(json);
        free(expected);
    }
    assert_int_equal(bad, 0);
}

static char *write_spec(const char *text)
{
    const char *tmp = getenv("TMPDIR");
    char *path = dt_xasprintf("%s/dt-test-spec.XXXXXX", tmp ? tmp : P_tmpdir);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(dt_write_file(path, text, strlen(text), 0600, NULL), 0);
    return path;
}

static void an_option_wins_over_the_file(void **state)
{
    char *path = write_spec("{\"dt\": {\"ps\": [1], \"workers\": [2]},\n \"search\": {\"seed\": "
                            "3}, \"layout\": \"het\"}");
    char *tune = dt_xasprintf("dt-tune=%s", path);
    char *json =
        merged((const char *[]){tune, "dt-ps=2", "dt-max-configs=5", "dt-layout=packed", NULL});
    (void)state;
    assert_string_equal(json, "{\"dt\":{\"ps\":{\"choices\":[2]},\"workers\":[2]},\"search\":{"
                              "\"seed\":3,\"max_configs\":5},"
                              "\"layout\":\"packed\"}");
    free(json);
    unlink(path);
    json = merged((const char *[]){tune, NULL});
    char *expected = dt_xasprintf("error: --dt-tune: %s: No such file or directory", path);
    assert_string_equal(json, expected);
    free(expected);
    free(json);
    free(path);
    free(tune);
    path = write_spec("[]");
    tune = dt_xasprintf("dt-tune=%s", path);
    json = merged((const char *[]){tune, NULL});
    expected = dt_xasprintf("error: %s: SPEC must be one JSON object", path);
    assert_string_equal(json, expected);
    unlink(path);
    free(expected);
    free(json);
    free(tune);
    free(path);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_spec_has_the_documented_defaults),
        cmocka_unit_test(as_many_as_fit_is_a_matter_of_the_layout),
        cmocka_unit_test(every_parameter_gets_its_domain),
        cmocka_unit_test(every_section_is_read),
        cmocka_unit_test(conditions_are_kept_with_their_place),
        cmocka_unit_test(objectives_have_a_direction),
        cmocka_unit_test(every_mistake_has_its_place_and_cure),
        cmocka_unit_test(an_unknown_algorithm_is_named),
        cmocka_unit_test(options_become_sections_of_the_document),
        cmocka_unit_test(wrong_options_are_named),
        cmocka_unit_test(an_option_wins_over_the_file),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
