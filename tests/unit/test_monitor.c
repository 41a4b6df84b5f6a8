/* The monitor: levels, their way through the journal, and what a trial keeps of them. */
#include "monitor/monitor.h"
#include "tuner/tuner.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-12)

/* ---- levels ---- */

static struct dt_usage cpu(double t, int64_t n, double mean, double max)
{
    struct dt_usage u = dt_usage_unknown(t);
    u.n = n;
    u.mean[DT_RESOURCE_CPU] = mean;
    u.max[DT_RESOURCE_CPU] = max;
    return u;
}

static void sums_weigh_by_samples(void **state)
{
    struct dt_usage sum = {0}, a = cpu(10, 1, 0.5, 0.6), b = cpu(40, 3, 0.9, 1.0),
                    c = cpu(50, 4, NAN, NAN);
    int64_t known[DT_RESOURCES];
    (void)state;
    c.mean[DT_RESOURCE_MEM] = c.max[DT_RESOURCE_MEM] = 0.25;
    dt_usage_add(&sum, known, &a);
    dt_usage_add(&sum, known, &b);
    dt_usage_add(&sum, known, &c);
    assert_true(sum.n == 8 && sum.t == 50 && known[DT_RESOURCE_CPU] == 4 &&
                known[DT_RESOURCE_GPU] == 0);
    NEAR(sum.mean[DT_RESOURCE_CPU], 0.8);
    NEAR(sum.max[DT_RESOURCE_CPU], 1.0);
    NEAR(sum.mean[DT_RESOURCE_MEM], 0.25);
    assert_true(isnan(sum.mean[DT_RESOURCE_GPU]) && isnan(sum.max[DT_RESOURCE_GPU]));
}

static void odd_levels_are_unknown(void **state)
{
    static const char *const odd[] = {
        "{}",
        "{\"cpu\": 1}",
        "{\"cpu\": []}",
        "{\"cpu\": [0.5]}",
        "{\"cpu\": [0.5, \"1\"]}",
        "{\"cpu\": [null, 1]}",
        "{\"cpu\": [-0.1, 1]}",
        "{\"cpu\": [1e999, 1]}",
        "{\"cpus\": [0.5, 1]}",
        "[1]",
    };
    struct dt_usage u = dt_usage_unknown(0);
    (void)state;
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        struct json_object *o = dt_json_parse(odd[i], "levels", NULL);
        u.mean[DT_RESOURCE_CPU] = 1;
        dt_usage_from_json(o, &u);
        assert_true(isnan(u.mean[DT_RESOURCE_CPU]) && isnan(u.max[DT_RESOURCE_CPU]));
        json_object_put(o);
    }
    dt_usage_from_json(NULL, &u);
    assert_true(isnan(u.mean[DT_RESOURCE_CPU]));
}

/* ---- events ---- */

static struct dt_event usage_event(int run, const char *role, struct dt_usage u)
{
    struct dt_event ev = DT_EVENT(DT_EVENT_USAGE);
    ev.trial = 1;
    ev.run = run;
    ev.t = u.t;
    ev.text = dt_xstrdup(role);
    ev.usage = u;
    return ev;
}

static void events_go_through_json(void **state)
{
    struct dt_usage u = cpu(1764441600.125, 7, 0.1 + 0.2, 1);
    struct dt_event ev = usage_event(2, "ps", u), back;
    (void)state;
    ev.usage.mean[DT_RESOURCE_NET] = 1.25e9;
    ev.usage.max[DT_RESOURCE_NET] = 2e9;
    struct json_object *o = dt_event_to_json(&ev);
    assert_int_equal(dt_event_from_json(o, &back, NULL), 0);
    assert_true(back.kind == DT_EVENT_USAGE && back.trial == 1 && back.run == 2);
    assert_string_equal(back.text, "ps");
    assert_memory_equal(&back.usage.t, &ev.usage.t, sizeof(double));
    assert_true(back.usage.n == 7);
    for (int i = 0; i < DT_RESOURCES; i++) {
        double a = ev.usage.mean[i], b = back.usage.mean[i];
        assert_true((isnan(a) && isnan(b)) || a == b);
    }
    assert_true(back.usage.max[DT_RESOURCE_NET] == 2e9);
    json_object_put(o);
    dt_event_free(&ev);
    dt_event_free(&back);
}

static void an_event_names_its_role(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_event ev;
    struct json_object *o =
        dt_json_parse("{\"event\": \"usage\", \"trial\": 1, \"levels\": {}}", "r", NULL);
    (void)state;
    assert_int_equal(dt_event_from_json(o, &ev, &e), -1);
    assert_string_equal(e.text, "event \"usage\" without \"text\"");
    dt_error_clear(&e);
    json_object_put(o);
}

/* ---- what a trial keeps ---- */

struct fixture {
    struct dt_spec *spec;
    struct dt_space *space;
    struct dt_study *s, *replayed;
};

static struct dt_study *with_one_trial(const struct fixture *f)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_study *s = dt_study_new(f->spec, f->space, NULL, &e);
    struct dt_event ev = DT_EVENT(DT_EVENT_CREATED);
    ev.trial = 1;
    ev.config = dt_json_parse("{\"workers\": 2}", "c", &e);
    if (dt_study_apply(s, &ev, &e) < 0)
        fail_msg("%s", e.text);
    dt_event_free(&ev);
    return s;
}

static int begin(void **state)
{
    static const char text[] = "{\"dt\": {\"workers\": {\"low\": 1, \"high\": 4}}}";
    struct fixture *f = dt_xcalloc(1, sizeof(*f));
    struct dt_error e = DT_ERROR_INIT;
    struct json_object *json = dt_json_parse(text, "S.json", &e);
    f->spec = dt_spec_parse(json, text, "S.json", &e);
    f->space = dt_space_new(f->spec->params, f->spec->nparams, &f->spec->constraints, NULL, 0, NULL,
                            NULL, NULL, 0, &e);
    f->s = with_one_trial(f);
    f->replayed = with_one_trial(f);
    json_object_put(json);
    *state = f;
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;
    dt_study_free(f->s);
    dt_study_free(f->replayed);
    dt_space_free(f->space);
    dt_spec_free(f->spec);
    free(f);
    return 0;
}

/* To one study as it happens, to the other as its journal tells it. */
static void apply(struct fixture *f, struct dt_event ev)
{
    struct json_object *o = dt_event_to_json(&ev);
    char *text = dt_json_text(o);
    json_object_put(o);
    o = dt_json_parse(text, "record", NULL);
    assert_int_equal(dt_study_apply(f->s, &ev, NULL), 0);
    assert_int_equal(dt_study_apply_record(f->replayed, o, NULL), 0);
    json_object_put(o);
    free(text);
    dt_event_free(&ev);
}

static void a_trial_keeps_a_window_and_the_whole(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 100; i++) {
        apply(f, usage_event(1, "ps", cpu(i, 1, i / 100.0, 1)));
        if (i % 2)
            apply(f, usage_event(1, "worker", cpu(i, 2, 0.5, 0.5)));
    }
    for (int i = 0; i < 2; i++) {
        const struct dt_role_usages *all = &dt_study_trial(i ? f->s : f->replayed, 1)->usage;
        const struct dt_role_usage *ps = dt_role_usages_find(all, "ps");
        assert_int_equal(all->n, 2);
        assert_int_equal(ps->n, DT_USAGE_WINDOW);
        assert_true(ps->recent[0].t == 100 - DT_USAGE_WINDOW && ps->recent[ps->n - 1].t == 99);
        const struct dt_usage *whole = dt_role_usage_of_run(ps, 1);
        assert_true(whole->n == 100 && whole->t == 99);
        NEAR(whole->mean[DT_RESOURCE_CPU], 0.495);
        assert_true(dt_role_usage_of_run(dt_role_usages_find(all, "worker"), 1)->n == 100);
        assert_null(dt_role_usages_find(all, "chief"));
        assert_null(dt_role_usage_of_run(ps, 2));
    }
}

static void a_new_run_begins_anew_and_the_old_is_kept(void **state)
{
    struct fixture *f = *state;
    apply(f, usage_event(1, "ps", cpu(5, 1, 1, 1)));
    struct dt_event ended = DT_EVENT(DT_EVENT_ENDED);
    ended.trial = ended.run = 1;
    ended.cause = DT_CAUSE_NODE_FAILURE;
    apply(f, ended);
    const struct dt_trial *t = dt_study_trial(f->replayed, 1);
    const struct dt_role_usage *ps = dt_role_usages_find(&t->usage, "ps");
    assert_true(t->run == 2 && ps->n == 0);
    apply(f, usage_event(1, "ps", cpu(6, 1, 1, 1))); /* too late */
    assert_int_equal(ps->n, 0);
    apply(f, usage_event(2, "ps", cpu(9, 1, 0.25, 0.5)));
    assert_int_equal(ps->n, 1);
    NEAR(dt_role_usage_of_run(ps, 1)->mean[DT_RESOURCE_CPU], 1);
    NEAR(dt_role_usage_of_run(ps, 2)->mean[DT_RESOURCE_CPU], 0.25);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_weigh_by_samples),
        cmocka_unit_test(odd_levels_are_unknown),
        cmocka_unit_test(events_go_through_json),
        cmocka_unit_test(an_event_names_its_role),
        cmocka_unit_test_setup_teardown(a_trial_keeps_a_window_and_the_whole, begin, end),
        cmocka_unit_test_setup_teardown(a_new_run_begins_anew_and_the_old_is_kept, begin, end),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
