/* What people look at: what the model believes, the page, the live view, and forms for other
 * programs. */
#include "history/history.h"
#include "optimizer/explain.h"
#include "report/report.h"
#include "tuner/tuner.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

/* What a name may be at worst. */
#define HOSTILE "</script><script>alert(1)</script><!--\"&\xff\x1b[2J"

struct fixture {
    struct dt_spec *spec;
    struct dt_space *space;
    struct dt_study *s;
    struct dt_chronicle c;
    double now;
};

/* Time is 8 / workers + 4 with adam, + 0.01 an x; of ps and workers no more than 6 are allowed. */
#define SPACE                                                                                       \
    "{\"dt\": {\"ps\": {\"low\": 0, \"high\": 3}, \"workers\": {\"low\": 1, \"high\": 6}}, "        \
    "\"hyperparameters\": {\"opt\": [\"sgd\", \"adam\"], \"x\": {\"type\": \"float\", \"low\": 0, " \
    "\"high\": 1}}, \"constraints\": [\"ps + workers <= 6\"], \"search\": {\"max_configs\": 30, "   \
    "\"deadline\": \"1:00:00\"}}"

static double time_of(const double *x)
{
    return 8 / x[1] + (x[2] == 1 ? 4 : 0) + 0.01 * x[3];
}

static struct fixture study(void)
{
    struct fixture f = {.now = 1000, .c = dt_chronicle_new()};
    struct dt_error e = DT_ERROR_INIT;
    struct json_object *json = dt_json_parse(SPACE, "S.json", &e);
    f.spec = json ? dt_spec_parse(json, SPACE, "S.json", &e) : NULL;
    if (!f.spec)
        fail_msg("%s", e.text);
    f.space = dt_space_new(f.spec->params, f.spec->nparams, &f.spec->constraints, NULL, 0, NULL,
                           NULL, NULL, 0, &e);
    f.s = dt_study_new(f.spec, f.space, (double[]){0, 1, 0, 0.5}, &e);
    assert_non_null(f.s);
    json_object_put(json);
    return f;
}

static void done(struct fixture *f)
{
    dt_chronicle_free(&f->c);
    dt_study_free(f->s);
    dt_space_free(f->space);
    dt_spec_free(f->spec);
}

static void apply(struct fixture *f, struct dt_event ev)
{
    struct dt_error e = DT_ERROR_INIT;
    ev.t = f->now;
    if (dt_study_apply(f->s, &ev, &e) < 0)
        fail_msg("%s", e.text);
    dt_chronicle_apply(&f->c, &ev);
    dt_event_free(&ev);
}

static struct dt_event event(enum dt_event_kind kind, int trial)
{
    struct dt_event ev = DT_EVENT(kind);
    ev.trial = trial;
    ev.run = 1;
    return ev;
}

static int create(struct fixture *f, const double *x)
{
    int id = (int)f->s->n + 1;
    struct dt_event ev = event(DT_EVENT_CREATED, id);
    ev.config = dt_config_to_json(f->space, x);
    ev.text = dt_xstrdup("because");
    apply(f, ev);
    ev = event(DT_EVENT_SUBMITTED, id);
    ev.job = (uint32_t)id;
    apply(f, ev);
    return id;
}

static void start(struct fixture *f, int id)
{
    struct dt_event ev = event(DT_EVENT_STARTED, id);
    f->now += 2;
    ev.wait_s = 2;
    ev.nodes = 1;
    apply(f, ev);
}

static void end(struct fixture *f, int id, enum dt_cause cause, double run_s)
{
    struct dt_event ev = event(DT_EVENT_ENDED, id);
    f->now += run_s;
    ev.cause = cause;
    ev.run_s = run_s;
    ev.wait_s = 2;
    ev.billing = ev.nodes = 1;
    if (cause == DT_CAUSE_EXIT) {
        ev.exit_code = 1;
        ev.text = dt_xstrdup(HOSTILE);
    }
    apply(f, ev);
}

static void run(struct fixture *f, const double *x)
{
    int id = create(f, x);
    start(f, id);
    end(f, id, DT_CAUSE_OK, time_of(x));
}

static void usage(struct fixture *f, int id, const char *role, double cpu)
{
    struct dt_event ev = event(DT_EVENT_USAGE, id);
    ev.text = dt_xstrdup(role);
    ev.usage = dt_usage_unknown(f->now);
    ev.usage.mean[DT_RESOURCE_CPU] = ev.usage.max[DT_RESOURCE_CPU] = cpu;
    apply(f, ev);
}

/* A dozen trials, the last of which failed, and one that runs. */
static struct fixture some(void)
{
    static const double x[][4] = {{0, 1, 0, 0.5}, {1, 2, 1, 0.1}, {2, 4, 0, 0.9}, {0, 6, 1, 0.3},
                                  {3, 3, 0, 0.2}, {1, 5, 0, 0.7}, {2, 1, 1, 0.6}, {0, 3, 1, 0.8},
                                  {1, 4, 1, 0},   {3, 2, 0, 1},   {0, 5, 0, 0.4}};
    struct fixture f = study();
    for (size_t i = 0; i < sizeof(x) / sizeof(*x); i++)
        run(&f, x[i]);
    int id = create(&f, (double[]){1, 1, 1, 0.5});
    start(&f, id);
    end(&f, id, DT_CAUSE_EXIT, 1);
    id = create(&f, (double[]){2, 2, 0, 0.5});
    start(&f, id);
    usage(&f, id, "ps", 0.25);
    usage(&f, id, "worker", 0.95);
    return f;
}

/* ---- events ---- */

static void a_reason_to_wait_is_told_once(void **state)
{
    static const char *const reasons[] = {"full", "full", "other", "full", "full"};
    struct fixture f = some();
    int id = create(&f, (double[]){1, 4, 0, 0.5});
    char *text = NULL, *expected;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    (void)state;
    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++) {
        struct dt_event ev = event(DT_EVENT_DEFERRED, id);
        ev.until = f.now + 15;
        ev.text = dt_xstrdup(reasons[i]);
        struct dt_event told = ev;
        told.text = (char *)reasons[i];
        apply(&f, ev);
        dt_report_event(out, f.s, &told);
    }
    fclose(out);
    expected = dt_xasprintf("%5d waits: full\n%5d waits: other\n%5d waits: full\n", id, id, id);
    assert_string_equal(text, expected);
    free(expected);
    free(text);
    done(&f);
}

/* ---- the model ---- */

static void importance_is_what_the_value_varies_by(void **state)
{
    struct fixture f = some();
    struct dt_observation *o;
    struct dt_context ctx = dt_study_context(f.s, &o);
    struct dt_explanation *e = dt_explain_new(&ctx);
    double share[4], again[4];
    (void)state;
    assert_non_null(e);
    dt_explain_importance(e, share);
    dt_explain_importance(e, again);
    assert_memory_equal(share, again, sizeof(share));
    assert_true(fabs(share[0] + share[1] + share[2] + share[3] - 1) < 1e-9);
    assert_true(share[1] > 0.3 && share[2] > 0.3);
    assert_true(share[3] < 0.05);
    dt_explain_free(e);
    free(o);
    done(&f);
}

static void the_model_expects_in_the_users_unit(void **state)
{
    struct fixture f = some();
    struct dt_observation *o;
    struct dt_context ctx = dt_study_context(f.s, &o);
    struct dt_explanation *e = dt_explain_new(&ctx);
    const double x[] = {0, 5, 0, 0.4};
    struct dt_expected at;
    (void)state;
    dt_explain_at(e, x, 1, &at);
    assert_true(fabs(at.mean / time_of(x) - 1) < 0.1);
    assert_true(at.low < at.mean && at.mean < at.high);
    dt_explain_free(e);
    ctx.nobs = 2; /* too little to say anything */
    assert_null(dt_explain_new(&ctx));
    free(o);
    done(&f);
}

static void a_metric_that_may_be_negative_comes_back_as_it_was(void **state)
{
    struct fixture f = some();
    struct dt_observation *o;
    struct dt_context ctx = dt_study_context(f.s, &o);
    struct dt_expected at;
    (void)state;
    ctx.maximize = true;
    ctx.grows = false;
    for (size_t i = 0; i < ctx.nobs; i++)
        o[i].value = 3 - o[i].value;
    struct dt_explanation *e = dt_explain_new(&ctx);
    const double best[] = {1, 5, 0, 0.7}, worst[] = {0, 1, 0, 0.5};
    dt_explain_at(e, best, 1, &at);
    assert_true(fabs(at.mean - (3 - time_of(best))) < 0.5 && at.low < at.high);
    dt_explain_at(e, worst, 1, &at);
    assert_true(at.mean < -2 && at.mean > -8);
    dt_explain_free(e);
    free(o);
    done(&f);
}

/* ---- the page ---- */

static void views_show_runs_usage_and_what_is_allowed(void **state)
{
    struct fixture f = some();
    struct json_object *o = dt_report_views("train", f.s, &f.c), *runs = dt_json_get(o, "runs");
    struct json_object *first = dt_json_at(runs, 0), *last = dt_json_at(runs, 12);
    (void)state;
    assert_int_equal(dt_json_count(runs), 13);
    assert_true(dt_json_num(first, "submitted", -1) == 0 && dt_json_num(first, "started", -1) == 2);
    assert_true(fabs(dt_json_num(first, "ended", -1) - 10.005) < 1e-9);
    assert_string_equal(dt_json_str(first, "cause", ""), "ok");
    assert_null(dt_json_get(last, "ended"));
    struct json_object *used = dt_json_at(dt_json_get(o, "usage"), 1);
    assert_string_equal(dt_json_str(used, "role", ""), "worker");
    struct json_object *course = dt_json_get(o, "course"), *end = dt_json_at(course, 11);
    assert_int_equal(dt_json_count(course), 12);
    assert_int_equal(dt_json_int(end, "best", 0), 11); /* ps=0 workers=5 sgd, by a hair */
    struct json_object *model = dt_json_get(o, "model"), *surfaces = dt_json_get(model, "surfaces");
    struct json_object *surface = dt_json_at(surfaces, 0);
    assert_int_equal(dt_json_count(surfaces), 6); /* each two of the four */
    assert_string_equal(dt_json_str(surface, "x", ""), "workers");
    assert_string_equal(dt_json_str(surface, "y", ""), "ps");
    struct json_object *mean = dt_json_get(surface, "mean"), *top = dt_json_at(mean, 3);
    assert_non_null(dt_json_at(top, 2)); /* ps=3 workers=3 */
    assert_null(dt_json_at(top, 3));     /* ps=3 workers=4 is one too many */
    struct json_object *low = dt_json_at(dt_json_at(dt_json_get(surface, "low"), 3), 2);
    assert_true(json_object_get_double(low) < json_object_get_double(dt_json_at(top, 2)));
    assert_int_equal(dt_json_count(dt_json_get(model, "slices")), 4);
    assert_null(dt_json_get(o, "speed"));
    json_object_put(o);
    done(&f);
}

static void a_study_without_trials_has_views_all_the_same(void **state)
{
    struct fixture f = study();
    struct json_object *o = dt_report_views("train", f.s, &f.c);
    (void)state;
    assert_null(dt_json_get(o, "model"));
    assert_int_equal(dt_json_count(dt_json_get(o, "course")), 0);
    json_object_put(o);
    done(&f);
}

/* What stands between two marks; caller frees. */
static char *between(const char *text, const char *from, const char *to)
{
    const char *a = strstr(text, from);
    assert_non_null(a);
    a += strlen(from);
    const char *b = strstr(a, to);
    assert_non_null(b);
    return dt_xstrndup(a, (size_t)(b - a));
}

static const char frame[] =
    "<title>@TITLE@</title><style>@STYLE@</style><script>@LIBRARY@</script><r>@REPORT@</r>"
    "<v>@VIEWS@</v><script>@SCRIPT@</script>";

static void names_stay_data_on_the_page(void **state)
{
    struct fixture f = some();
    struct dt_error e = DT_ERROR_INIT;
    struct dt_page p = {.frame = frame,
                        .style = "s{}",
                        .library = "lib()",
                        .script = "go(\"@TITLE@\")",
                        .title = HOSTILE,
                        .report = dt_report_json(f.s, HOSTILE),
                        .views = dt_report_views(HOSTILE, f.s, &f.c)};
    char *page = dt_report_page(&p, &e);
    (void)state;
    assert_non_null(page);
    assert_null(strstr(page, "<script>alert"));
    assert_null(strstr(page, "<!--"));
    assert_non_null(strstr(page, "go(\"@TITLE@\")")); /* what was put in is not looked at again */
    char *json = between(page, "<r>", "</r>");
    assert_null(strchr(json, '<'));
    struct json_object *report = dt_json_parse(json, "report", &e);
    assert_non_null(report);
    assert_true(dt_starts_with(dt_json_str(report, "study", ""), "</script><script>alert(1)"));
    assert_int_equal(dt_json_count(dt_json_get(report, "trials")), 13);
    char *views = between(page, "<v>", "</v>");
    struct json_object *parsed = dt_json_parse(views, "views", &e);
    assert_non_null(parsed);
    json_object_put(parsed);
    json_object_put(report);
    json_object_put(p.report);
    json_object_put(p.views);
    free(json);
    free(views);
    free(page);
    done(&f);
}

static void files_that_are_not_ours_make_no_page(void **state)
{
    struct json_object *o = json_object_new_object();
    struct dt_page p = {.frame = frame,
                        .style = "",
                        .library = "x = '</SCRIPT >'",
                        .script = "",
                        .title = "t",
                        .report = o,
                        .views = o};
    struct dt_error e = DT_ERROR_INIT;
    (void)state;
    assert_null(dt_report_page(&p, &e));
    assert_non_null(strstr(e.text, "script"));
    p.library = "";
    p.frame = "<title>@TITLE@</title>";
    assert_null(dt_report_page(&p, &e));
    assert_non_null(strstr(e.text, "@STYLE@"));
    dt_error_clear(&e);
    json_object_put(o);
}

/* ---- the live view ---- */

static char *screen(const struct fixture *f, const char *job, size_t columns, size_t rows)
{
    struct dt_strv lines = DT_STRV_INIT;
    dt_report_screen(f->s, "7", job, (struct dt_screen){f->now + 5, columns, rows}, &lines);
    assert_true(lines.n + 2 <= rows || rows < 10);
    for (size_t i = 0; i < lines.n; i++) {
        assert_true(strlen(lines.v[i]) <= columns);
        for (const char *c = lines.v[i]; *c; c++)
            assert_true((unsigned char)*c >= ' ');
    }
    char *text = dt_strv_join(&lines, "\n");
    dt_strv_free(&lines);
    return text;
}

static void the_screen_says_where_the_study_is(void **state)
{
    struct fixture f = some();
    char *text = screen(&f, "train", 100, 40);
    (void)state;
    assert_non_null(strstr(text, "dt-tune study 7 of train: searching"));
    assert_non_null(strstr(text, "12 of at most 30 ended, 1 run, 0 wait, 1 failed"));
    assert_non_null(strstr(text, "left: 17 trials"));
    assert_non_null(strstr(text, " of the time"));
    assert_non_null(strstr(text, "best: 1.60 s in trial 11 (4.99 x as submitted)"));
    assert_non_null(strstr(text, "   13   runs     5.0 s             ps=2 workers=2"));
    assert_non_null(strstr(text, "ps cpu 25% | worker cpu 95%"));
    assert_non_null(strstr(
        text, "   12 failed     1.0 s          -  exit code: ps=1 workers=1 opt=adam x=0.5"));
    assert_non_null(strstr(text, "   11   best     1.6 s     1.60 s  ps=0 workers=5"));
    free(text);
    char *words = dt_report_progress(f.s);
    assert_string_equal(words, "12 of at most 30 trials, best 1.60 s (4.99 x)");
    free(words);
    done(&f);
}

static void the_screen_fits_whatever_its_size_and_the_names(void **state)
{
    static const size_t sizes[][2] = {{200, 60}, {80, 24}, {40, 12}, {20, 10}, {1, 1}};
    struct fixture f = some();
    (void)state;
    for (int i = 0; i < 20; i++) /* more than there are lines */
        create(&f, (double[]){0, 1, 0, i / 20.0});
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        free(screen(&f, "train", sizes[i][0], sizes[i][1]));
    char *text = screen(&f, "a\x1b[2J\xc2\x9bz\r", 80, 24);
    assert_non_null(strstr(text, "of a?[2J"));
    assert_null(strchr(text, 0x1b));
    assert_non_null(strstr(text, "lines of others that are not over"));
    free(text);
    done(&f);
    f = study();
    text = screen(&f, "train", 80, 24);
    assert_non_null(strstr(text, "best: none yet"));
    free(text);
    done(&f);
}

/* ---- for other programs ---- */

#define RECORD                                                                                          \
    "{\"version\":1,\"time\":1000000,\"study\":\"7\",\"objective\":\"min:loss\",\"goal\":\"minimize\"," \
    "\"space\":[{\"name\":\"workers\",\"type\":\"int\",\"low\":1,\"high\":8},"                          \
    "{\"name\":\"opt, s\",\"type\":\"categorical\",\"choices\":[\"sgd\",\"adam\"]}],"                   \
    "\"observations\":[{\"trial\":1,\"config\":{\"workers\":2,\"opt, s\":\"adam\"},\"value\":0.5,"      \
    "\"status\":\"ok\",\"duration_s\":60,\"metrics\":{\"loss\":0.5}},"                                  \
    "{\"trial\":2,\"config\":{\"workers\":4,\"opt, s\":null},\"status\":\"failed\",\"metrics\":{}}]}"

static char *exported(void (*export)(FILE *f, struct json_object *record))
{
    struct json_object *record = dt_json_parse(RECORD, "record", NULL);
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    export(f, record);
    fclose(f);
    json_object_put(record);
    return text;
}

static void a_record_becomes_a_table(void **state)
{
    char *text = exported(dt_export_csv);
    (void)state;
    assert_string_equal(text, "trial,workers,\"opt, s\",status,value,duration_s,nodes,metric:loss\n"
                              "1,2,adam,ok,0.5,60,,0.5\n"
                              "2,4,,failed,,,,\n");
    free(text);
    text = exported(dt_export_observations);
    assert_true(dt_starts_with(text, "{\"trial\":1,\"config\":{\"workers\":2,"));
    free(text);
}

/* What Optuna itself makes of it is tested with Optuna. */
static void a_record_becomes_a_journal_of_optunas(void **state)
{
    char *text = exported(dt_export_optuna);
    struct dt_strv lines = DT_STRV_INIT;
    (void)state;
    dt_strv_split(&lines, text, "\n");
    assert_int_equal(lines.n, 5);
    assert_string_equal(
        lines.v[0],
        "{\"op_code\":0,\"worker_id\":\"dt-tune\",\"study_name\":\"7\",\"directions\":[1]}");
    struct json_object *o = dt_json_parse(lines.v[3], "line", NULL);
    assert_int_equal(dt_json_int(o, "op_code", 0), 4);
    assert_int_equal(dt_json_int(o, "state", 0), 1);
    assert_int_equal(dt_json_int(dt_json_get(o, "params"), "opt, s", 0), 1);
    assert_string_equal(
        dt_json_str(dt_json_get(o, "distributions"), "workers", ""),
        "{\"name\":\"IntDistribution\",\"attributes\":{\"low\":1,\"high\":8,\"log\":false,\"step\":1}}");
    json_object_put(o);
    o = dt_json_parse(lines.v[4], "line", NULL);
    assert_int_equal(dt_json_int(o, "state", 0), 3);
    assert_null(dt_json_get(o, "value"));
    assert_null(dt_json_get(dt_json_get(o, "params"), "opt, s"));
    json_object_put(o);
    dt_strv_free(&lines);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reason_to_wait_is_told_once),
        cmocka_unit_test(importance_is_what_the_value_varies_by),
        cmocka_unit_test(the_model_expects_in_the_users_unit),
        cmocka_unit_test(a_metric_that_may_be_negative_comes_back_as_it_was),
        cmocka_unit_test(views_show_runs_usage_and_what_is_allowed),
        cmocka_unit_test(a_study_without_trials_has_views_all_the_same),
        cmocka_unit_test(names_stay_data_on_the_page),
        cmocka_unit_test(files_that_are_not_ours_make_no_page),
        cmocka_unit_test(the_screen_says_where_the_study_is),
        cmocka_unit_test(the_screen_fits_whatever_its_size_and_the_names),
        cmocka_unit_test(a_record_becomes_a_table),
        cmocka_unit_test(a_record_becomes_a_journal_of_optunas),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
