/* What a run of a batch job has ended of, by its records and by what Slurm says at that time. */
#include "backend/slurm.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void preemption_that_was_announced_is_why_it_ended(void **state)
{
    static const struct {
        bool tasks_told, preempted;
        int exit_code;
        uint32_t state;
        enum dt_cause cause;
    } cases[] = {
        /* its record is there, and for Slurm it is still at work, or has ended by itself */
        {true, true, 0, JOB_RUNNING, DT_CAUSE_PREEMPTED},
        {true, true, 3, JOB_RUNNING, DT_CAUSE_PREEMPTED},
        {true, true, 0, JOB_PREEMPTED, DT_CAUSE_PREEMPTED},
        {true, false, 0, JOB_RUNNING, DT_CAUSE_CANCELLED},
        {true, false, 3, JOB_RUNNING, DT_CAUSE_CANCELLED},
        {false, false, 3, JOB_RUNNING, DT_CAUSE_EXIT},
        {false, true, 0, JOB_RUNNING, DT_CAUSE_OK}, /* its work was done */
    };
    const struct dt_submission none = {0};
    const struct slurm b = {.c = {.submission = &none}};
    const struct dt_study s = {0};
    const struct dt_trial t = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct dt_records r = {.ended = true, .tasks_told = cases[i].tasks_told};
        struct dt_slurm_job job = {.state = cases[i].state, .preempted = cases[i].preempted};
        r.exit_code = cases[i].exit_code;
        assert_int_equal(cause_of_end(&b, &s, &t, "/nowhere", &r, &job), cases[i].cause);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(preemption_that_was_announced_is_why_it_ended),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
