/* How often slurmctld is asked. */
#include "backend/slurm_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <math.h>

/* The last turn of n that are wanted at once. */
static double last_of(struct dt_pace *p, int n, double now)
{
    double turn = NAN;
    for (int i = 0; i < n; i++)
        turn = dt_pace_turn(p, now);
    return turn;
}

static void turns_come_one_after_the_other(void **state)
{
    struct dt_pace p = {.every = 5, .burst = 1};
    (void)state;
    assert_true(dt_pace_turn(&p, 100) == 100);
    assert_true(dt_pace_turn(&p, 100) == 105);
    assert_true(dt_pace_turn(&p, 104) == 110);
    assert_true(dt_pace_turn(&p, 1000) == 1000); /* what nobody wanted is not saved up */
    assert_true(dt_pace_turn(&p, 1000) == 1005);
}

static void after_a_pause_some_come_at_once(void **state)
{
    struct dt_pace p = {.every = 3, .burst = 10};
    (void)state;
    assert_true(last_of(&p, 10, 100) == 100);
    assert_true(dt_pace_turn(&p, 100) == 103);
    assert_true(last_of(&p, 100, 103) == 403); /* however many want one */
    assert_true(last_of(&p, 11, 1000) == 1003);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_come_one_after_the_other),
        cmocka_unit_test(after_a_pause_some_come_at_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
