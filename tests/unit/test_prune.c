/* prune: which trials are stopped early, and that it does not depend on what comes later. */
#include "stopping/prune.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define MAX 12

/* Curves as text, one a string: values at the steps 1, 2, ...; "@5" before them: the first is
 * reported at time 5, and each takes 1 more. */
struct curves {
    struct dt_curve v[MAX];
    size_t n;
};

static struct curves curves(const char *const *texts, size_t n)
{
    struct curves c = {.n = n};
    for (size_t i = 0; i < n; i++) {
        struct dt_strv words = DT_STRV_INIT;
        dt_strv_split(&words, texts[i], " ");
        size_t first = words.n && *words.v[0] == '@';
        double t = first ? strtod(words.v[0] + 1, NULL) : 0;
        double *v = dt_xcalloc(3 * words.n + 1, sizeof(*v));
        c.v[i] = (struct dt_curve){v, v + words.n, v + 2 * words.n, words.n - first};
        for (size_t k = 0; k < c.v[i].n; k++) {
            v[k] = (double)(k + 1);
            v[words.n + k] = strtod(words.v[first + k], NULL);
            v[2 * words.n + k] = t + (double)k;
        }
        dt_strv_free(&words);
    }
    return c;
}

static void curves_free(struct curves *c)
{
    for (size_t i = 0; i < c->n; i++)
        free((double *)c->v[i].step);
}

static void expect(const struct dt_pruner *p, const char *const *texts, size_t n, size_t which,
                   bool maximize, const char *expected)
{
    struct curves c = curves(texts, n);
    char *why = dt_prune_check(p, c.v, n, which, maximize);
    assert_string_equal(why ? why : "go on", expected);
    free(why);
    curves_free(&c);
}

static void nothing_is_stopped_without_a_rule(void **state)
{
    const struct dt_pruner p = {.rule = DT_PRUNE_NONE, .min_step = 1, .reduction = 3, .startup = 1};
    const char *const texts[] = {"1 1 1", "9 9 9"};
    (void)state;
    expect(&p, texts, 2, 1, false, "go on");
}

static void one_in_three_goes_on_at_each_rung(void **state)
{
    const struct dt_pruner p = {.rule = DT_PRUNE_ASHA, .min_step = 1, .reduction = 3};
    const char *const texts[] = {"3 3 3", "@0.1 2 2 2", "@0.2 5", "@0.3 1 1 9", "@0.4 1.5"};
    (void)state;
    expect(&p, texts, 5, 0, false, "go on"); /* the first has nobody to compare with */
    expect(&p, texts, 5, 1, false, "go on");
    expect(&p, texts, 5, 2, false, "at step 1 2 of 2 others were better; one in 3 goes on");
    expect(&p, texts, 5, 3, false,
           "at step 3 2 of 2 others were better; one in 3 goes on"); /* survived the first rung */
    expect(&p, texts, 5, 4, false, "at step 1 1 of 4 others were better; one in 3 goes on");
    expect(&p, texts, 5, 2, true, "go on");
    expect(&p, texts, 5, 1, true, "at step 1 1 of 1 others were better; one in 3 goes on");
}

static void a_decision_does_not_change_with_what_comes_later(void **state)
{
    const struct dt_pruner p = {.rule = DT_PRUNE_ASHA, .min_step = 1, .reduction = 2};
    const char *const before[] = {"5 5", "@1 4"};
    const char *const after[] = {"5 5", "@1 4", "@1.5 3", "@1.6 2", "@1.7 1"};
    (void)state;
    expect(&p, before, 2, 0, false, "go on");
    expect(&p, after, 5, 0, false, "go on"); /* it had been the best of those who were there */
    expect(&p, after, 5, 1, false, "go on");
}

static void nobody_is_stopped_before_the_first_rung(void **state)
{
    const struct dt_pruner p = {.rule = DT_PRUNE_ASHA, .min_step = 3, .reduction = 3};
    const char *const texts[] = {"1 1 1", "@0.1 9 9", "@0.2 9 9 9"};
    (void)state;
    expect(&p, texts, 3, 1, false, "go on");
    expect(&p, texts, 3, 2, false, "at step 3 1 of 1 others were better; one in 3 goes on");
}

static void hyperband_compares_within_a_bracket(void **state)
{
    const struct dt_pruner p = {
        .rule = DT_PRUNE_HYPERBAND, .min_step = 1, .max_step = 9, .reduction = 3};
    /* two brackets: 0, 2 and 3 from step 1 on, 1 and 4 from step 3 on */
    const char *const texts[] = {"1", "@0.1 9 9 9", "@0.2 2", "@0.3 0.5", "@0.4 3 3 3"};
    (void)state;
    expect(&p, texts, 5, 2, false, "at step 1 1 of 1 others were better; one in 3 goes on");
    expect(&p, texts, 5, 3, false, "go on");
    expect(&p, texts, 5, 1, false, "go on");
    expect(&p, texts, 5, 4, false, "go on");
    expect(&p, texts, 5, 4, true, "at step 3 1 of 1 others were better; one in 3 goes on");
}

static void the_median_rule_wants_enough_others(void **state)
{
    const struct dt_pruner p = {.rule = DT_PRUNE_MEDIAN, .min_step = 2, .startup = 3};
    const char *const few[] = {"1 1", "1 1", "@9 5 5"};
    const char *const enough[] = {"4 2", "4 2", "4 2", "@9 5 4 3", "@9.1 5 3", "@9 9"};
    (void)state;
    expect(&p, few, 3, 2, false, "go on");
    expect(&p, enough, 6, 3, false, "at step 2 its best was 4, the median of 3 others 3");
    expect(&p, enough, 6, 4, false, "go on"); /* as good as the median of their means */
    expect(&p, enough, 6, 5, false, "go on"); /* too early */
    expect(&p, enough, 6, 0, true, "go on");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_stopped_without_a_rule),
        cmocka_unit_test(one_in_three_goes_on_at_each_rung),
        cmocka_unit_test(a_decision_does_not_change_with_what_comes_later),
        cmocka_unit_test(nobody_is_stopped_before_the_first_rung),
        cmocka_unit_test(hyperband_compares_within_a_bracket),
        cmocka_unit_test(the_median_rule_wants_enough_others),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
