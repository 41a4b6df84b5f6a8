/* stopping: each rule alone, and which comes first. */
#include "stopping/stopping.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static const struct dt_stopping usual = {.max_configs = 60,
                                         .min_configs = 12,
                                         .window = 5,
                                         .min_improve = 0.02,
                                         .max_failures = 3,
                                         .deadline = INFINITY,
                                         .max_node_hours = INFINITY};

/* Values as text: numbers; F failed; C12 censored at 12. Gives the reason, or "go on". Caller
 * frees. */
static char *check(const struct dt_stopping *s, const char *text, bool maximize, double now)
{
    struct dt_strv words = DT_STRV_INIT;
    dt_strv_split(&words, text, " ");
    struct dt_observation *o = dt_xcalloc(words.n, sizeof(*o));
    for (size_t i = 0; i < words.n; i++) {
        const char *w = words.v[i];
        o[i].status = *w == 'F' ? DT_STATUS_FAILED : *w == 'C' ? DT_STATUS_CENSORED : DT_STATUS_OK;
        o[i].value = *w == 'F' ? NAN : strtod(*w == 'C' ? w + 1 : w, NULL);
    }
    char *why = dt_stopping_limit(s, o, words.n, now, now / 3600); /* on one node */
    if (!why)
        why = dt_stopping_settled(s, o, words.n, maximize);
    free(o);
    dt_strv_free(&words);
    return why ? why : dt_xstrdup("go on");
}

static void expect(const struct dt_stopping *s, const char *values, bool maximize, double now,
                   const char *expected)
{
    char *why = check(s, values, maximize, now);
    assert_string_equal(why, expected);
    free(why);
}

static void the_window_of_no_improvement_ends_a_study(void **state)
{
    struct dt_stopping s = usual;
    (void)state;
    s.min_configs = 1;
    s.window = 3;
    expect(&s, "", false, 0, "go on");
    expect(&s, "10 9 8", false, 0, "go on"); /* nothing before the window */
    expect(
        &s, "10 10 10 10", false, 0,
        "improvement: the best improved by 0 % over the last 3 configurations, no more than 2 %");
    expect(
        &s, "10 11 12 9.9", false, 0,
        "improvement: the best improved by 1 % over the last 3 configurations, no more than 2 %");
    expect(&s, "10 11 12 9", false, 0, "go on");
    expect(
        &s, "10 11 12 9 9.5 9.2 9.1", false, 0,
        "improvement: the best improved by 0 % over the last 3 configurations, no more than 2 %");
    expect(&s, "10 9 9.5 9.2", false, 0, "go on"); /* 10 % better within the last three */
    expect(&s, "10 5 7 11", true, 0, "go on");
    expect(
        &s, "10 5 7 10.1", true, 0,
        "improvement: the best improved by 1 % over the last 3 configurations, no more than 2 %");
    expect(
        &s, "-10 -9 -8 -10", false, 0,
        "improvement: the best improved by 0 % over the last 3 configurations, no more than 2 %");
    expect(
        &s, "0 0 0 0", false, 0,
        "improvement: the best improved by 0 % over the last 3 configurations, no more than 2 %");
}

static void exactly_the_threshold_is_not_enough(void **state)
{
    struct dt_stopping s = usual;
    (void)state;
    s.min_configs = 1;
    s.window = 1;
    s.min_improve = 0.25;
    expect(
        &s, "8 6", false, 0,
        "improvement: the best improved by 25 % over the last 1 configurations, no more than 25 %");
    expect(&s, "8 5.99", false, 0, "go on");
}

static void failures_in_the_window_count_as_no_improvement(void **state)
{
    struct dt_stopping s = usual;
    (void)state;
    s.min_configs = 1;
    s.window = 3;
    expect(
        &s, "10 F C5 F", false, 0,
        "improvement: the best improved by 0 % over the last 3 configurations, no more than 2 %");
    expect(&s, "F C5 F 10", false, 0, "go on"); /* nothing to compare with before */
}

static void it_never_stops_before_the_least_number(void **state)
{
    (void)state;
    expect(&usual, "1 1 1 1 1 1 1 1 1 1 1", false, 0, "go on");
    expect(
        &usual, "1 1 1 1 1 1 1 1 1 1 1 1", false, 0,
        "improvement: the best improved by 0 % over the last 5 configurations, no more than 2 %");
}

static void failures_at_the_start_end_a_study(void **state)
{
    (void)state;
    expect(&usual, "F F", false, 0, "go on");
    expect(&usual, "F F F", false, 0, "failures: the first 3 trials all failed");
    expect(&usual, "F F F F", false, 0, "failures: the first 4 trials all failed");
    expect(&usual, "F F 1 F F F", false, 0, "go on");
    expect(&usual, "F F C1", false, 0, "go on");
}

static void the_maximum_ends_a_study(void **state)
{
    struct dt_stopping s = usual;
    (void)state;
    s.max_configs = 4;
    expect(&s, "1 2 3", false, 0, "go on");
    expect(&s, "1 2 F C3", false, 0, "maximum of configurations: 4 of 4 were tried");
}

static void the_deadline_comes_first(void **state)
{
    struct dt_stopping s = usual;
    (void)state;
    s.deadline = 3600;
    expect(&s, "1 2", false, 3599, "go on");
    expect(&s, "1 2", false, 3600, "deadline: the study's time (1:00:00) is over");
    expect(&s, "F F F", false, 1e9, "deadline: the study's time (1:00:00) is over");
}

static void node_hours_are_a_limit(void **state)
{
    struct dt_stopping s = usual;
    (void)state;
    s.max_node_hours = 0.5;
    expect(&s, "1 2", false, 1799, "go on");
    expect(&s, "1 2", false, 1800, "node-hours: 0.5 of 0.5 are spent");
    expect(&s, "F F F", false, 2700, "node-hours: 0.75 of 0.5 are spent");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_window_of_no_improvement_ends_a_study),
        cmocka_unit_test(exactly_the_threshold_is_not_enough),
        cmocka_unit_test(failures_in_the_window_count_as_no_improvement),
        cmocka_unit_test(it_never_stops_before_the_least_number),
        cmocka_unit_test(failures_at_the_start_end_a_study),
        cmocka_unit_test(the_maximum_ends_a_study),
        cmocka_unit_test(the_deadline_comes_first),
        cmocka_unit_test(node_hours_are_a_limit),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
